/*
 * wire/chat/chat_read.c - what of Chat Completions a value is, and the messages in it.
 *
 * An array is detected from its first element.
 */
#include "base/limits.h"
#include "wire/chat/chat.h"

/* ---- recognising ------------------------------------------------------------------------------------------ */

static yyjson_val *list_in(const yyjson_val *v, dgm_str key)
{
    yyjson_val *list = dgm_json_get(v, key);
    return yyjson_is_arr(list) ? list : NULL;
}

static bool has_any(const yyjson_val *v, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dgm_json_get(v, dgm_str_from(names[i])))
            return true;
    }
    return false;
}
#define HAS_ANY(v, names) has_any((v), (names), sizeof(names) / sizeof *(names))

static bool has_role(const yyjson_val *v)
{
    yyjson_val *role = dgm_json_get(v, DGM_STR("role"));
    for (int i = 1; yyjson_is_str(role) && i < DGM_N_CHAT_ROLES; i++) {
        if (dgm_str_eq(dgm_json_str(role), dgm_str_from(dgm_chat_role_name((dgm_chat_role)i))))
            return true;
    }
    return false;
}

/* Parts of Responses, which are called otherwise. */
static bool has_parts_of_responses(const yyjson_val *v)
{
    static const char *const types[] = {"input_text", "input_image", "input_file", "output_text"};
    yyjson_val *part = yyjson_arr_get_first(list_in(v, DGM_STR("content")));
    yyjson_val *type = dgm_json_get(part, DGM_STR("type"));
    for (size_t i = 0; yyjson_is_str(type) && i < sizeof types / sizeof *types; i++) {
        if (dgm_str_eq(dgm_json_str(type), dgm_str_from(types[i])))
            return true;
    }
    return false;
}

static int looks_like_message(const yyjson_val *v)
{
    static const char *const marks[] = {"tool_calls", "function_call", "refusal", "tool_call_id"};
    /* A2A, with its parts missing: its reader reports that; AG-UI; the AI SDK */
    static const char *const others[] = {"parts",        "kind",      "messageId",
                                         "activityType", "toolCalls", "toolCallId"};
    if (!has_role(v) || HAS_ANY(v, others))
        return 0;
    if (HAS_ANY(v, marks))
        return 2;
    if (!dgm_json_get(v, DGM_STR("content")))
        return 0;
    /* chat messages have no id and no type; those of other formats look the same except for that */
    return dgm_json_get(v, DGM_STR("id")) || dgm_json_get(v, DGM_STR("type")) ||
                   has_parts_of_responses(v)
               ? 1
               : 2;
}

/* A request of AG-UI or the AI SDK has messages too. */
static int looks_like_request(const yyjson_val *v, yyjson_val *messages)
{
    static const char *const others[] = {"threadId", "runId", "trigger"};
    if (HAS_ANY(v, others))
        return 0;
    if (!yyjson_arr_size(messages))
        return dgm_json_get(v, DGM_STR("model")) ? 1 : 0;
    int score = looks_like_message(yyjson_arr_get_first(messages));
    return score && dgm_json_get(v, DGM_STR("model")) ? 2 : score;
}

static int looks_like_answer(const yyjson_val *v, yyjson_val *choices, dgm_form *ret_form)
{
    yyjson_val *first = yyjson_arr_get_first(choices), *object = dgm_json_get(v, DGM_STR("object"));
    bool message = dgm_json_get(first, DGM_STR("message"));
    bool delta = dgm_json_get(first, DGM_STR("delta"));
    bool named = yyjson_is_str(object) && dgm_str_is(dgm_json_str(object), "chat.completion");
    *ret_form = (message || named) && !delta ? DGM_FORM_RESPONSE : DGM_FORM_EVENTS;
    return message || delta || named || !first ? 2 : 1;
}

/* {"error":{"message":...,"type":...}}, as a stream may end. */
static int looks_like_error(const yyjson_val *v)
{
    yyjson_val *error = dgm_json_get(v, DGM_STR("error"));
    return dgm_json_get(error, DGM_STR("message")) && dgm_json_get(error, DGM_STR("type")) &&
           !dgm_json_get(v, DGM_STR("jsonrpc")) && !dgm_json_get(v, DGM_STR("type"));
}

/* Without choices there is not much in them, but they are no messages. */
static const char *const marks_of_chunks[] = {"error", "usage", "object", "created", "model"};

int dgm_chat_recognise_form(const yyjson_val *v, dgm_form *ret_form)
{
    yyjson_val *list;
    int score;
    if (yyjson_is_arr((yyjson_val *)(uintptr_t)v))
        v = yyjson_arr_get_first((yyjson_val *)(uintptr_t)v);
    if ((list = list_in(v, DGM_STR("choices"))))
        return looks_like_answer(v, list, ret_form);
    *ret_form = DGM_FORM_REQUEST;
    if ((list = list_in(v, DGM_STR("messages"))))
        return looks_like_request(v, list);
    *ret_form = DGM_FORM_MESSAGES;
    if ((score = looks_like_message(v)))
        return score;
    if (HAS_ANY(v, marks_of_chunks))
        *ret_form = DGM_FORM_EVENTS;
    return looks_like_error(v);
}

int dgm_chat_recognise(const yyjson_val *v)
{
    dgm_form form;
    return dgm_chat_recognise_form(v, &form);
}

bool dgm_chat_is_message(const yyjson_val *v)
{
    return yyjson_is_obj((yyjson_val *)(uintptr_t)v) && !list_in(v, DGM_STR("messages")) &&
           !list_in(v, DGM_STR("choices"));
}

/* ---- reading ---------------------------------------------------------------------------------------------- */

/* Choices hold their message one step down. */
static dgm_code chat_read_choice(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                 dgm_chat_message *ret)
{
    yyjson_val *message = dgm_json_get(v, DGM_STR("message"));
    if (message)
        return dgm_shape_read(r, &dgm_chat_message_shape, message, DGM_AT_LIT(at, "message"), ret);
    if (dgm_json_get(v, DGM_STR("delta")))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "delta"),
                        "a chunk of a stream: give complete messages, or ask without `stream`");
    return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "message"),
                    "missing: a choice needs it");
}

static dgm_code read_list(dgm_reader *r, yyjson_val *v, const dgm_at *at, bool choices,
                          dgm_chat_messages *ret)
{
    size_t i, n = yyjson_arr_size(v);
    dgm_code rc;
    if (n > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu messages, more than the limit list_items of %d: send fewer at once", n,
                        DGM_MAX_LIST_ITEMS);
    dgm_chat_messages list = {dgm_new_n(r->arena, dgm_chat_message, n), n};
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        const dgm_at *here = DGM_AT_I(at, i);
        rc = choices ? chat_read_choice(r, e, here, &list.at[i])
                     : dgm_shape_read(r, &dgm_chat_message_shape, e, here, &list.at[i]);
        if (rc)
            return rc;
    }
    *ret = list;
    return DGM_OK;
}

dgm_code dgm_chat_read(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_chat_messages *ret)
{
    yyjson_val *list;
    dgm_code rc;
    r->format = DGM_FORMAT_CHAT;
    if (yyjson_is_arr(v))
        return read_list(r, v, at, false, ret);
    if ((list = list_in(v, DGM_STR("messages"))))
        return read_list(r, list, DGM_AT_LIT(at, "messages"), false, ret);
    if ((list = list_in(v, DGM_STR("choices"))))
        return read_list(r, list, DGM_AT_LIT(at, "choices"), true, ret);
    dgm_chat_messages one = {dgm_new(r->arena, dgm_chat_message), 1};
    if ((rc = dgm_shape_read(r, &dgm_chat_message_shape, v, at, one.at)))
        return rc;
    *ret = one;
    return DGM_OK;
}
