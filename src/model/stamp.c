/* model/stamp.c - canonical types, times. */
#include "model/stamp.h"
#include "json/json.h"

#include <time.h>

#define CANONICAL_TYPE "canonical_type"

static bool has_list(const dgm_message *m, dgm_str name)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        const dgm_part *part = &m->parts.at[i];
        if (part->kind == DGM_PART_DATA && yyjson_arr_size(dgm_json_get(part->data, name)))
            return true;
    }
    return false;
}

const char *dgm_message_canonical_type(const dgm_message *m)
{
    /* Users make no calls: what stands there is data as any other. */
    if (m->role == DGM_ROLE_AGENT && has_list(m, DGM_STR("tool_calls")))
        return "ToolCallStartEvent";
    if (has_list(m, DGM_STR("tool_results")))
        return "ToolCallResultEvent";
    return m->role == DGM_ROLE_AGENT ? "TextMessageEndEvent" : "TextMessageContentEvent";
}

/* The object with one member set over whatever is there. */
static const dgm_json *with_member(dgm_arena *a, const dgm_json *object, dgm_str name,
                                   const dgm_json *value)
{
    yyjson_val *old = (yyjson_val *)(uintptr_t)object;
    size_t n = yyjson_obj_size(old), k = 0;
    dgm_member *members = dgm_new_n(a, dgm_member, n + 1);
    yyjson_obj_iter it = yyjson_obj_iter_with(old);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        if (!dgm_str_eq(dgm_json_str(key), name))
            members[k++] = (dgm_member){dgm_json_str(key), yyjson_obj_iter_get_val(key)};
    }
    members[k++] = (dgm_member){name, value};
    return dgm_json_object(a, members, k);
}

void dgm_message_stamp(dgm_arena *a, dgm_message *m)
{
    const char *type = dgm_message_canonical_type(m);
    dgm_str quoted = {NULL, strlen(type) + 2};
    char *p = dgm_arena_alloc_raw(a, quoted.n);
    p[0] = p[quoted.n - 1] = '"';
    memcpy(p + 1, type, quoted.n - 2);
    quoted.p = p;
    m->metadata = with_member(a, m->metadata, DGM_STR(CANONICAL_TYPE), dgm_json_made(a, quoted));
}

bool dgm_metadata_has_type(const dgm_json *metadata)
{
    return yyjson_is_str(dgm_json_get(metadata, DGM_STR(CANONICAL_TYPE)));
}

const dgm_json *dgm_value_keep(dgm_arena *a, const dgm_json *value)
{
    return dgm_json_copy(a, value);
}

const dgm_json *dgm_error_metadata(dgm_arena *a, dgm_str text)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"error\":");
    dgm_json_put_str(&b, text);
    dgm_buf_add_char(&b, '}');
    const dgm_json *made = dgm_json_made(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return made;
}

dgm_str dgm_metadata_error(const dgm_json *metadata)
{
    const dgm_json *error = dgm_json_get(metadata, DGM_STR("error"));
    return error && yyjson_is_str((yyjson_val *)(uintptr_t)error) ? dgm_json_str(error)
                                                                  : (dgm_str){0};
}

const dgm_json *dgm_metadata_with_error(dgm_arena *a, const dgm_json *metadata, dgm_str text)
{
    const dgm_json *error = dgm_json_get(dgm_error_metadata(a, text), DGM_STR("error"));
    return with_member(a, metadata, DGM_STR("error"), error);
}

dgm_str dgm_time_text(dgm_arena *a, int64_t unix_ms)
{
    struct tm tm;
    time_t seconds = (time_t)(unix_ms / 1000);
    gmtime_r(&seconds, &tm);
    return dgm_arena_printf(a, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (tm.tm_year + 1900) % 10000,
                            tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                            (int)(unix_ms % 1000));
}
