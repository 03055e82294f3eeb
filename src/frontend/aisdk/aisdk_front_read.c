/*
 * frontend/aisdk/aisdk_front_read.c - what a request of useChat says, and what is noted of the turn it begins.
 *
 * The SDK posts the whole chat. It ends with a message of the user's, or with one of the assistant's whose
 * tools have been run: then that message goes on, under its name.
 */
#include "base/list.h"
#include "base/map.h"
#include "canon/message_content.h"
#include "frontend/aisdk/aisdk_front_int.h"
#include "frontend/list_limits.h"

/* ---- notes ------------------------------------------------------------------------------------------------- */

static void put_names(dgm_buf *b, const char *key, const dgm_strs *names)
{
    if (!names->n)
        return;
    dgm_buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < names->n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, names->at[i]);
    }
    dgm_buf_add_char(b, ']');
}

dgm_str dgm_aisdk_note_text(dgm_arena *a, const struct aisdk_note *note)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"messageId\":");
    dgm_json_put_str(&b, note->message_id);
    put_names(&b, "tools", &note->tools);
    put_names(&b, "results", &note->results);
    if (note->is_approval)
        dgm_buf_add_lit(&b, ",\"approval\":true");
    put_names(&b, "decided", &note->decided);
    put_names(&b, "denied", &note->denied);
    dgm_buf_add_char(&b, '}');
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_strs read_names(dgm_arena *a, yyjson_val *list)
{
    dgm_strs names = {dgm_new_n(a, dgm_str, yyjson_arr_size(list)), 0};
    yyjson_val *v;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, v) {
        if (yyjson_is_str(v))
            names.at[names.n++] = dgm_json_str(v);
    }
    return names;
}

struct aisdk_note dgm_aisdk_note_read(dgm_arena *a, dgm_str text)
{
    yyjson_val *v = NULL;
    if (!text.n ||
        dgm_json_read(a, dgm_arena_dup(a, text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL))
        return (struct aisdk_note){0};
    return (struct aisdk_note){.message_id = dgm_json_str_member(v, "messageId"),
                               .tools = read_names(a, dgm_json_get(v, DGM_STR("tools"))),
                               .results = read_names(a, dgm_json_get(v, DGM_STR("results"))),
                               .decided = read_names(a, dgm_json_get(v, DGM_STR("decided"))),
                               .denied = read_names(a, dgm_json_get(v, DGM_STR("denied"))),
                               .is_approval = yyjson_is_true(dgm_json_get(v, DGM_STR("approval")))};
}

dgm_str dgm_aisdk_answer_id(dgm_arena *a, dgm_str user_message_id)
{
    return dgm_arena_printf(a, "%.*s.answer", DGM_P(user_message_id));
}

/* ---- tools --------------------------------------------------------------------------------------------------- */

static dgm_code read_tool(dgm_reader *r, yyjson_val *v, dgm_str name, const dgm_at *at,
                          dgm_canon_tools *tools)
{
    yyjson_val *parameters = dgm_json_get(v, DGM_STR("parameters"));
    yyjson_val *description = dgm_json_get(v, DGM_STR("description"));
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (tool)");
    if (!name.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                        "missing: a tool has a name");
    if (description && !yyjson_is_str(description))
        return dgm_read_wrong(r, description, DGM_AT_LIT(at, "description"), "a string");
    if (parameters && !yyjson_is_obj(parameters))
        return dgm_read_wrong(r, parameters, DGM_AT_LIT(at, "parameters"),
                              "an object (JSON Schema)");
    tools->at = dgm_list_grow(r->arena, tools->at, tools->n, sizeof *tools->at);
    tools->at[tools->n++] = (dgm_canon_tool){.name = name,
                                             .description = dgm_json_str_member(v, "description"),
                                             .parameters = parameters};
    return DGM_OK;
}

/* What the page can run: [{name, description, parameters}], or the same by name. */
static dgm_code read_tools(dgm_reader *r, yyjson_val *v, dgm_canon_tools *tools)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "tools");
    yyjson_val *key, *e;
    size_t i, n;
    dgm_code rc = DGM_OK;
    if (!v || yyjson_is_null(v))
        return DGM_OK;
    if (!yyjson_is_arr(v) && !yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an array of tools, or an object of them by name");
    yyjson_arr_foreach (v, i, n, e) {
        if (!rc)
            rc = read_tool(r, e, dgm_json_str_member(e, "name"), DGM_AT_I(at, i), tools);
    }
    yyjson_obj_foreach (v, i, n, key, e) {
        if (!rc)
            rc = read_tool(r, e, dgm_json_str(key), DGM_AT(at, dgm_json_str(key)), tools);
    }
    return rc;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static bool is_callers_result(const yyjson_val *part)
{
    dgm_str state = dgm_json_str_member(part, "state");
    return !yyjson_is_true(dgm_json_get(part, DGM_STR("providerExecuted"))) &&
           (dgm_str_starts(state, DGM_STR("output-")) || dgm_str_is(state, "approval-responded"));
}

static void read_decided(dgm_arena *a, yyjson_val *message, struct aisdk_request *q)
{
    yyjson_val *parts = dgm_json_get(message, DGM_STR("parts")), *part;
    size_t i, n;
    q->decided = (dgm_strs){dgm_new_n(a, dgm_str, yyjson_arr_size(parts) + 1), 0};
    q->is_denied = dgm_new_n(a, bool, yyjson_arr_size(parts) + 1);
    yyjson_arr_foreach (parts, i, n, part) {
        yyjson_val *approval = dgm_json_get(part, DGM_STR("approval"));
        if (!dgm_str_is(dgm_json_str_member(part, "state"), "approval-responded"))
            continue;
        q->is_denied[q->decided.n] = yyjson_is_false(dgm_json_get(approval, DGM_STR("approved")));
        q->decided.at[q->decided.n++] = dgm_json_str_member(part, "toolCallId");
    }
}

static dgm_strs callers_results(dgm_arena *a, yyjson_val *message)
{
    yyjson_val *parts = dgm_json_get(message, DGM_STR("parts")), *part;
    dgm_strs ids = {dgm_new_n(a, dgm_str, yyjson_arr_size(parts)), 0};
    size_t i, n;
    yyjson_arr_foreach (parts, i, n, part) {
        if (is_callers_result(part))
            ids.at[ids.n++] = dgm_json_str_member(part, "toolCallId");
    }
    return ids;
}

/* Results at the end are what is sent, if the caller ran the tools: the agent knows its own. False if the
 * messages end with something else. */
static bool take_results(dgm_reader *r, yyjson_val *last, struct aisdk_request *q)
{
    dgm_canon_messages *list = &q->input.messages;
    size_t from = list->n, n;
    while (from && list->at[from - 1].role == DGM_CANON_TOOL)
        from--;
    dgm_map own;
    dgm_map_init(&own);
    q->note.results = callers_results(r->arena, last);
    for (size_t i = 0; i < q->note.results.n; i++)
        dgm_map_put(&own, q->note.results.at[i], i);
    n = from;
    for (size_t i = from; i < list->n; i++) {
        if (dgm_map_get(&own, list->at[i].tool_call_id))
            list->at[n++] = list->at[i];
    }
    dgm_map_done(&own);
    list->n = n;
    return n > from;
}

static dgm_code read_trigger(dgm_reader *r, yyjson_val *body, bool *ret_again)
{
    yyjson_val *trigger = dgm_json_get(body, DGM_STR("trigger"));
    yyjson_val *id = dgm_json_get(body, DGM_STR("messageId"));
    *ret_again = false;
    if (trigger && !yyjson_is_str(trigger))
        return dgm_read_wrong(r, trigger, DGM_AT_LIT(NULL, "trigger"), "a string");
    if (id && !yyjson_is_null(id) && !yyjson_is_str(id))
        return dgm_read_wrong(r, id, DGM_AT_LIT(NULL, "messageId"), "a string");
    if (!trigger || dgm_str_is(dgm_json_str(trigger), "submit-message"))
        *ret_again = yyjson_is_str(id); /* of a message that was there before: it was edited */
    else if (dgm_str_is(dgm_json_str(trigger), "regenerate-message"))
        *ret_again = true;
    else
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "trigger"),
                        "\"submit-message\" and \"regenerate-message\" are known");
    return DGM_OK;
}

static dgm_code read_end(dgm_reader *r, yyjson_val *body, struct aisdk_request *q)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "messages");
    yyjson_val *last = yyjson_arr_get_last(dgm_json_get(body, DGM_STR("messages")));
    dgm_str role = dgm_json_str_member(last, "role"), id = dgm_json_str_member(last, "id");
    if (dgm_str_is(role, "user")) {
        q->note.message_id = dgm_aisdk_answer_id(r->arena, id);
        return DGM_OK;
    }
    q->note.message_id = id;
    q->again = false; /* messageId says which message goes on */
    read_decided(r->arena, last, q);
    bool has_results = dgm_str_is(role, "assistant") && take_results(r, last, q);
    return has_results || q->input.resume.n
               ? DGM_OK
               : dgm_fail(r->err, DGM_BAD_PARAMS, at,
                          "nothing to answer: the last message is not from the user and has no "
                          "tool result");
}

dgm_code dgm_aisdk_read_request(dgm_reader *r, yyjson_val *body, struct aisdk_request *ret)
{
    struct aisdk_request q = {0};
    dgm_code rc;
    if ((rc = dgm_check_lists(body, dgm_list_limits_aisdk, r->err)) ||
        (rc = dgm_codec_aisdk.read_request(r, body, NULL, &q.input)) ||
        (rc = read_trigger(r, body, &q.again)) || (rc = read_end(r, body, &q)) ||
        (rc = read_tools(r, dgm_json_get(body, DGM_STR("tools")), &q.input.tools)))
        return rc;
    if (!q.input.thread_id.n || q.input.thread_id.n > DGM_MAX_ID_BYTES)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "id"),
                        q.input.thread_id.n ? "longer than the limit id_bytes"
                                            : "empty: a chat has an id");
    q.note.tools.at = dgm_new_n(r->arena, dgm_str, q.input.tools.n);
    for (size_t i = 0; i < q.input.tools.n; i++)
        q.note.tools.at[q.note.tools.n++] = q.input.tools.at[i].name;
    *ret = q;
    return DGM_OK;
}
