/*
 * lib/direct_history.c - tasks, and whatever else holds messages, as lists of chat messages.
 *
 * Invariant: every text appears once, in the order in which it was sent, and progress does not appear
 * at all.
 */
#include "canon/compact.h"
#include "lib/direct_int.h"
#include "model/history.h"
#include "model/reconcile.h"
#include "model/stamp.h"
#include "wire/a2a/a2a.h"

/* ---- histories ------------------------------------------------------------------------------------------- */

static void append(dgm_arena *a, dgm_chat_messages *list, const dgm_chat_message *m)
{
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    list->at[list->n++] = *m;
}

static dgm_code direct_history_add_message(dgm_arena *a, const dgm_message *m, const dgm_at *at,
                                           bool trusted, dgm_chat_messages *list, dgm_err *err)
{
    dgm_direct_pair pair = {0};
    dgm_code rc;
    if ((rc = dgm_direct_to_chat(a, m, at, trusted, &pair, err)))
        return rc;
    const dgm_chat_message *one = pair.openai_message;
    bool calls = one && (one->tool_calls.n || one->function_call);
    if (calls)
        append(a, list, one);
    for (size_t i = 0; i < pair.tool_messages.n; i++)
        append(a, list, &pair.tool_messages.at[i]);
    if (one && !calls)
        append(a, list, one);
    return DGM_OK;
}

dgm_code dgm_direct_message_to_chat(dgm_arena *a, const dgm_message *m, const dgm_at *at,
                                    bool trusted, dgm_chat_messages *ret_messages, dgm_err *err)
{
    dgm_chat_messages list = {0};
    dgm_code rc;
    if ((rc = direct_history_add_message(a, m, at, trusted, &list, err)))
        return rc;
    *ret_messages = list;
    return DGM_OK;
}

/* The text of parts that are nothing but text; absent when there are others. */
static dgm_str plain_text(dgm_arena *a, const dgm_parts *parts)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_str text = {0};
    size_t i = 0;
    while (i < parts->n && parts->at[i].kind == DGM_PART_TEXT)
        dgm_buf_add_str(&b, parts->at[i++].content);
    if (i == parts->n)
        text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* Does the message of a failed status only repeat metadata.error? */
static bool is_reason(dgm_arena *a, const dgm_task *t)
{
    dgm_str error = dgm_metadata_error(t->metadata);
    return t->status.state == DGM_STATE_FAILED && error.n &&
           dgm_str_eq(plain_text(a, &t->status.message->parts), error);
}

/* Does the status message belong to the conversation? Not if it only reports progress. */
static bool direct_history_is_answer(dgm_arena *a, const dgm_task *t)
{
    const dgm_status *s = &t->status;
    if (!s->message || is_reason(a, t))
        return false;
    if (s->state != DGM_STATE_SUBMITTED && s->state != DGM_STATE_WORKING)
        return true;
    return dgm_str_is(dgm_json_str_member(s->message->metadata, DIRECT_CANONICAL_TYPE),
                      "TextMessageEndEvent");
}

static bool is_in_history(dgm_arena *a, const dgm_messages *history, const dgm_message *m)
{
    for (size_t i = 0; m->message_id.n && i < history->n; i++) {
        if (dgm_str_eq(history->at[i].message_id, m->message_id))
            return true;
    }
    const dgm_message *last = history->n ? &history->at[history->n - 1] : NULL;
    if (!last || last->role != m->role)
        return false;
    dgm_str text = plain_text(a, &m->parts), said = plain_text(a, &last->parts);
    return text.n && (dgm_str_eq(text, said) || dgm_history_ends_with(history, text));
}

/* The text that an artifact may be a copy of: the final answer's. */
static dgm_str final_text(dgm_arena *a, const dgm_task *t)
{
    if (direct_history_is_answer(a, t) && t->status.message->role == DGM_ROLE_AGENT)
        return plain_text(a, &t->status.message->parts);
    const dgm_message *last = t->history.n ? &t->history.at[t->history.n - 1] : NULL;
    return last && last->role == DGM_ROLE_AGENT ? plain_text(a, &last->parts) : (dgm_str){0};
}

/*
 * Does the final text contain this text? Agents join the texts of their artifacts in order, with or without blank space
 * between them; `*from` is the end of the previous one.
 */
static bool is_in_final_text(dgm_str final, size_t *from, dgm_str text)
{
    dgm_sum sum = {0};
    if (!text.p)
        return false;
    dgm_sum_add(&sum, text);
    size_t end = dgm_sum_end_in(&sum, final, *from, true);
    if (end != SIZE_MAX) {
        *from = end;
        return true;
    }
    return final.n >= text.n && dgm_str_eq((dgm_str){final.p + final.n - text.n, text.n}, text);
}

dgm_code dgm_direct_each_message(dgm_arena *a, const dgm_task *t, const dgm_at *at,
                                 dgm_on_message on_message, void *arg)
{
    dgm_code rc;
    const dgm_at *history = DGM_AT_LIT(at, "history"), *artifacts = DGM_AT_LIT(at, "artifacts");
    for (size_t i = 0; i < t->history.n; i++) {
        if ((rc = on_message(arg, &t->history.at[i], DGM_AT_I(history, i))))
            return rc;
    }
    dgm_str final = final_text(a, t);
    size_t said = 0;
    for (size_t i = 0; i < t->artifacts.n; i++) {
        const dgm_artifact *artifact = &t->artifacts.at[i];
        dgm_message m = {
            .message_id = artifact->artifact_id, .role = DGM_ROLE_AGENT, .parts = artifact->parts};
        if (!m.parts.n || (final.p && is_in_final_text(final, &said, plain_text(a, &m.parts))))
            continue;
        if ((rc = on_message(arg, &m, DGM_AT_I(artifacts, i))))
            return rc;
    }
    if (!direct_history_is_answer(a, t) || is_in_history(a, &t->history, t->status.message))
        return DGM_OK;
    const dgm_at *status = DGM_AT_LIT(at, "status");
    return on_message(arg, t->status.message, DGM_AT_LIT(status, "message"));
}

struct adding {
    dgm_arena *a;
    bool trusted;
    dgm_chat_messages *list;
    dgm_err *err;
};

static dgm_code add_next(void *arg, const dgm_message *m, const dgm_at *at)
{
    struct adding *k = arg;
    return direct_history_add_message(k->a, m, at, k->trusted, k->list, k->err);
}

static dgm_code add_task(dgm_arena *a, const dgm_task *t, const dgm_at *at, bool trusted,
                         dgm_chat_messages *list, dgm_err *err)
{
    struct adding k = {a, trusted, list, err};
    dgm_task whole;
    dgm_code rc;
    if ((rc = dgm_compact_task(a, t, trusted, at, &whole, err)))
        return rc;
    return dgm_direct_each_message(a, &whole, at, add_next, &k);
}

dgm_code dgm_direct_task_to_chat(dgm_arena *a, const dgm_task *t, const dgm_at *at, bool trusted,
                                 dgm_chat_messages *ret_messages, dgm_err *err)
{
    dgm_chat_messages list = {0};
    dgm_code rc;
    if ((rc = add_task(a, t, at, trusted, &list, err)))
        return rc;
    *ret_messages = list;
    return DGM_OK;
}

/* ---- any object -------------------------------------------------------------------------------------------- */

dgm_code dgm_direct_object_to_chat(dgm_arena *a, const dgm_frame *frame, const dgm_codec *codec,
                                   bool trusted, dgm_chat_messages *ret_messages, bool *ret_is_list,
                                   dgm_err *err)
{
    const dgm_object *o = &frame->object;
    const dgm_task *task = dgm_a2a_task_in(o);
    const dgm_message *message = dgm_a2a_message_in(o);
    dgm_chat_messages list = {0};
    dgm_message artifact = {.role = DGM_ROLE_AGENT};
    dgm_code rc = DGM_OK;
    if (o->kind == DGM_OBJECT_SEND_REQUEST)
        message = ((const dgm_send_request *)o->it)->message;
    if (o->kind == DGM_OBJECT_ARTIFACT)
        artifact.parts = ((const dgm_artifact *)o->it)->parts;
    if (message)
        rc = direct_history_add_message(a, message, DGM_AT_LIT(NULL, "message"), trusted, &list,
                                        err);
    else if (task)
        rc = add_task(a, task, DGM_AT_LIT(NULL, "task"), trusted, &list, err);
    else if (artifact.parts.n)
        rc = direct_history_add_message(a, &artifact, DGM_AT_LIT(NULL, "artifact"), trusted, &list,
                                        err);
    else if (o->kind != DGM_OBJECT_ARTIFACT && o->kind != DGM_OBJECT_STREAM_RESPONSE &&
             o->kind != DGM_OBJECT_SEND_RESPONSE && o->kind != DGM_OBJECT_STATUS_UPDATE &&
             o->kind != DGM_OBJECT_ARTIFACT_UPDATE && o->kind != DGM_OBJECT_INTERNAL_EVENT)
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL,
                      "a %s is not part of a conversation: only messages and tasks become chat "
                      "messages",
                      dgm_object_kind_name(o->kind));
    if (rc) {
        if (err)
            dgm_a2a_name_pointer(codec, frame, err);
        return rc;
    }
    *ret_messages = list;
    *ret_is_list = task != NULL;
    return DGM_OK;
}
