/*
 * lib/api_agui.c - dragoman/agui.h's events as JSON, and back.
 *
 * The table maps members to fields. A member without a field, or of another JSON type than its field, is in
 * `others`; so is the `type` of an event that this version does not know.
 */
#include "canon/canon.h"
#include "lib/api_int.h"
#include "json/build.h"

#include <stddef.h>

#define TEXT(field, name_)                                                                         \
    {                                                                                              \
        offsetof(dgm_agui_event, field), true, name_                                               \
    }
#define JSON(field, name_)                                                                         \
    {                                                                                              \
        offsetof(dgm_agui_event, field), false, name_                                              \
    }
static const struct agui_member {
    size_t offset;
    bool is_text;
    const char *name;
} agui_members[] = {
    TEXT(thread_id, "threadId"),
    TEXT(run_id, "runId"),
    TEXT(parent_run_id, "parentRunId"),
    TEXT(message_id, "messageId"),
    TEXT(parent_message_id, "parentMessageId"),
    TEXT(tool_call_id, "toolCallId"),
    TEXT(tool_call_name, "toolCallName"),
    TEXT(step_name, "stepName"),
    TEXT(role, "role"),
    TEXT(name, "name"),
    TEXT(delta, "delta"),
    TEXT(content, "content"),
    TEXT(message, "message"),
    TEXT(code, "code"),
    JSON(timestamp, "timestamp"),
    JSON(result, "result"),
    JSON(snapshot, "snapshot"),
    JSON(messages, "messages"),
    JSON(value, "value"),
    JSON(metadata, "metadata"),
};
#undef TEXT
#undef JSON
#define N_AGUI_MEMBERS (sizeof agui_members / sizeof *agui_members)

#define X(sym) _Static_assert((int)DGM_AGUI_##sym == (int)DGM_CANON_##sym, #sym);
DGM_CANON_KINDS(X)
#undef X

const char *dgm_agui_type_name(dgm_agui_type type)
{
    return type > DGM_AGUI_NONE && type <= DGM_AGUI_CUSTOM
               ? dgm_canon_kind_name((dgm_canon_kind)type)
               : "";
}

static void agui_put_key(dgm_buf *out, dgm_str key)
{
    dgm_buf_add_char(out, ',');
    dgm_json_put_str(out, key);
    dgm_buf_add_char(out, ':');
}

static dgm_code agui_write_others(dgm_buf *out, const dgm_json *others, dgm_err *err)
{
    dgm_str key;
    if (others && dgm_json_kind_of(others) != DGM_JSON_KIND_OBJECT)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "others"),
                        "expected an object, got %s", dgm_json_type(others));
    for (const dgm_json *v = NULL; (v = dgm_json_iterate(others, v, &key));) {
        agui_put_key(out, key);
        dgm_json_put(out, v);
    }
    return DGM_OK;
}

dgm_code dgm_agui_event_write(dgm_buf *out, const dgm_agui_event *event, dgm_err *err)
{
    const char *type = event ? dgm_agui_type_name(event->type) : "";
    if (!*type)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "type"),
                        "unknown type of an AG-UI event");
    dgm_buf_add_lit(out, "{\"type\":");
    dgm_json_put_str(out, dgm_str_from(type));
    for (size_t i = 0; i < N_AGUI_MEMBERS; i++) {
        const struct agui_member *m = &agui_members[i];
        const void *field = (const char *)event + m->offset;
        const dgm_str *text = m->is_text ? field : NULL;
        const dgm_json *value = m->is_text ? NULL : *(const dgm_json *const *)field;
        if (text && text->p && dgm_utf8_check(*text) < text->n)
            return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(m->name)),
                            "the text is not valid UTF-8");
        if (!(text ? text->p != NULL : value != NULL))
            continue;
        agui_put_key(out, dgm_str_from(m->name));
        if (text)
            dgm_json_put_str(out, *text);
        else
            dgm_json_put(out, value);
    }
    dgm_code rc = agui_write_others(out, event->others, err);
    dgm_buf_add_char(out, '}');
    return rc;
}

/* The field of a member, if the value has its type. */
static const struct agui_member *agui_member_for(dgm_str key, const yyjson_val *v)
{
    for (size_t i = 0; i < N_AGUI_MEMBERS; i++) {
        if (dgm_str_eq(dgm_str_from(agui_members[i].name), key))
            return !agui_members[i].is_text || dgm_json_kind_of(v) == DGM_JSON_KIND_STRING
                       ? &agui_members[i]
                       : NULL;
    }
    return NULL;
}

dgm_code dgm_agui_event_read(dgm_arena *a, const yyjson_val *v, dgm_agui_event *ret_event,
                             dgm_err *err)
{
    const dgm_str type = dgm_json_str_member(v, "type");
    dgm_agui_event event = {0};
    dgm_json_build others = dgm_json_build_start(a);
    dgm_str key;
    bool any = false;
    for (int t = DGM_AGUI_RUN_STARTED; t <= DGM_AGUI_CUSTOM; t++) {
        if (dgm_str_eq(type, dgm_str_from(dgm_agui_type_name((dgm_agui_type)t))))
            event.type = (dgm_agui_type)t;
    }
    if (!event.type)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "type"),
                        "unknown type of an AG-UI event");
    dgm_json_build_object(&others, NULL);
    for (const dgm_json *value = NULL; (value = dgm_json_iterate(v, value, &key));) {
        const struct agui_member *m = agui_member_for(key, value);
        char *field = (char *)&event + (m ? m->offset : 0);
        if (m && m->is_text) {
            *(dgm_str *)(void *)field = dgm_json_str(value);
        } else if (m) {
            *(const dgm_json **)(void *)field = value;
        } else if (!dgm_str_eq(key, DGM_STR("type"))) {
            dgm_json_build_member(&others, key, value);
            any = true;
        }
    }
    dgm_json_build_close(&others);
    event.others = any ? dgm_json_build_end(&others) : NULL;
    *ret_event = event;
    return DGM_OK;
}
