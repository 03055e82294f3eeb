/* model/stamp.c - canonical types, times. */
#include "model/stamp.h"
#include "model/calls.h"
#include "json/json.h"

#include <stdatomic.h>
#include <stdlib.h>

#define CANONICAL_TYPE "canonical_type"

enum type { TYPE_CALLS, TYPE_RESULTS, TYPE_SAID, TYPE_ASKED, N_TYPES };

static const char *const type_names[N_TYPES] = {"ToolCallStartEvent", "ToolCallResultEvent",
                                                "TextMessageEndEvent", "TextMessageContentEvent"};

static enum type type_of(const dgm_message *m)
{
    if (dgm_message_has(m, DGM_CALLS))
        return TYPE_CALLS;
    if (dgm_message_has(m, DGM_RESULTS))
        return TYPE_RESULTS;
    return m->role == DGM_ROLE_AGENT ? TYPE_SAID : TYPE_ASKED;
}

const char *dgm_message_canonical_type(const dgm_message *m)
{
    return type_names[type_of(m)];
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

/* Metadata with nothing but a type, made once for all messages: most have no other. */
struct stamps {
    dgm_arena *arena;
    const dgm_json *at[N_TYPES];
    dgm_str texts[N_TYPES];
};

static _Atomic(const struct stamps *) made; /* with the first message; until the process ends */

static const struct stamps *stamps(void)
{
    const struct stamps *seen = atomic_load_explicit(&made, memory_order_acquire);
    if (seen)
        return seen;
    dgm_arena *a = dgm_arena_new();
    struct stamps *mine = dgm_xmalloc(sizeof *mine); /* whose pointers a leak checker can follow */
    mine->arena = a;
    for (size_t i = 0; i < N_TYPES; i++) {
        yyjson_val *type = dgm_json_make_string(a, dgm_str_from(type_names[i]));
        mine->at[i] = dgm_json_object(a, &(dgm_member){DGM_STR(CANONICAL_TYPE), type}, 1);
        mine->texts[i] = dgm_json_text_in(a, mine->at[i]);
    }
    if (atomic_compare_exchange_strong_explicit(&made, &seen, mine, memory_order_acq_rel,
                                                memory_order_acquire))
        return mine;
    dgm_arena_free(a); /* another thread was faster */
    free(mine);
    return seen;
}

void dgm_message_stamp(dgm_arena *a, dgm_message *m)
{
    const dgm_json *stamp = stamps()->at[type_of(m)];
    if (!yyjson_obj_size((yyjson_val *)(uintptr_t)m->metadata))
        m->metadata = stamp;
    else
        m->metadata = with_member(a, m->metadata, DGM_STR(CANONICAL_TYPE),
                                  dgm_json_get(stamp, DGM_STR(CANONICAL_TYPE)));
}

dgm_str dgm_stamp_text(const dgm_json *metadata)
{
    const struct stamps *s = atomic_load_explicit(&made, memory_order_acquire);
    for (size_t i = 0; s && i < N_TYPES; i++)
        if (s->at[i] == metadata)
            return s->texts[i];
    return (dgm_str){0};
}

dgm_str dgm_metadata_type(const dgm_json *metadata)
{
    const yyjson_val *type = dgm_json_get(metadata, DGM_STR(CANONICAL_TYPE));
    return yyjson_is_str((yyjson_val *)(uintptr_t)type) ? dgm_json_str(type) : (dgm_str){0};
}

static bool is_status_indicator(const dgm_part *part)
{
    const dgm_json *type =
        part->kind == DGM_PART_DATA ? dgm_json_get(part->data, DGM_STR("type")) : NULL;
    return type && yyjson_is_str((yyjson_val *)(uintptr_t)type) &&
           dgm_str_is(dgm_json_str(type), "status-indicator");
}

dgm_status_content dgm_status_content_of(dgm_task_state state, const dgm_message *m)
{
    dgm_str type = dgm_metadata_type(m->metadata);
    if (dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "ToolCallArgsEvent"))
        return DGM_STATUS_PASSING;
    bool is_early =
        state == DGM_STATE_SUBMITTED || state == DGM_STATE_WORKING || state == DGM_STATE_UNKNOWN;
    if (!is_early || m->role == DGM_ROLE_USER || dgm_str_is(type, "TextMessageEndEvent"))
        return DGM_STATUS_COMPLETE;
    return dgm_message_has(m, DGM_CALLS) || dgm_message_has(m, DGM_RESULTS) ? DGM_STATUS_CALLS
                                                                            : DGM_STATUS_PASSING;
}

void dgm_message_drop_progress(dgm_message *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->parts.n; i++) {
        const dgm_part *part = &m->parts.at[i];
        if (part->kind != DGM_PART_TEXT && !is_status_indicator(part))
            m->parts.at[n++] = *part;
    }
    m->parts.n = n;
}

const dgm_json *dgm_error_metadata(dgm_arena *a, dgm_str text)
{
    return dgm_metadata_with_text(a, NULL, DGM_STR("error"), text);
}

dgm_str dgm_metadata_error(const dgm_json *metadata)
{
    const dgm_json *error = dgm_json_get(metadata, DGM_STR("error"));
    return error && yyjson_is_str((yyjson_val *)(uintptr_t)error) ? dgm_json_str(error)
                                                                  : (dgm_str){0};
}

const dgm_json *dgm_metadata_with_text(dgm_arena *a, const dgm_json *metadata, dgm_str key,
                                       dgm_str text)
{
    return with_member(a, metadata, key, dgm_json_make_string(a, text));
}

const dgm_json *dgm_metadata_with_error(dgm_arena *a, const dgm_json *metadata, dgm_str text)
{
    return dgm_metadata_with_text(a, metadata, DGM_STR("error"), text);
}

dgm_message *dgm_error_message(dgm_arena *a, dgm_str text)
{
    dgm_message *m = dgm_new(a, dgm_message);
    dgm_part *part = dgm_new(a, dgm_part);
    *part = (dgm_part){.kind = DGM_PART_TEXT, .content = text};
    *m = (dgm_message){.role = DGM_ROLE_AGENT, .parts = {part, 1}};
    dgm_message_stamp(a, m);
    return m;
}

#define TIME_CHARS 24

dgm_str dgm_time_text(dgm_arena *a, int64_t unix_ms)
{
    /* Events of one moment, mostly: printed once. */
    static _Thread_local struct {
        int64_t unix_ms;
        char text[TIME_CHARS];
    } last = {0, "1970-01-01T00:00:00.000Z"};
    if (last.unix_ms == unix_ms)
        return dgm_arena_dup(a, (dgm_str){last.text, TIME_CHARS});
    last.unix_ms = unix_ms;
    int64_t day_ms = (int64_t)24 * 3600 * 1000;
    int64_t days = unix_ms / day_ms - (unix_ms % day_ms < 0);
    unsigned ms = (unsigned)(unix_ms - days * day_ms);
    /* The date of a day since 1970: years begin in March, so that the leap day is the last, and 400 of them have
     * 146097 days. */
    days += 719468; /* since 0000-03-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned of_era = (unsigned)(days - era * 146097);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* from March */
    const struct {
        unsigned value, at, end;
    } fields[] = {{(unsigned)((era * 400 + year + (month >= 10)) % 10000), 0, 4},
                  {month < 10 ? month + 3 : month - 9, 5, 7},
                  {of_year - (153 * month + 2) / 5 + 1, 8, 10},
                  {ms / 3600000, 11, 13},
                  {ms / 60000 % 60, 14, 16},
                  {ms / 1000 % 60, 17, 19},
                  {ms % 1000, 20, 23}};
    memcpy(last.text, "yyyy-mm-ddThh:mm:ss.mmmZ", TIME_CHARS);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        unsigned value = fields[i].value;
        for (unsigned k = fields[i].end; k-- > fields[i].at; value /= 10)
            last.text[k] = (char)('0' + value % 10);
    }
    return dgm_arena_dup(a, (dgm_str){last.text, TIME_CHARS});
}
