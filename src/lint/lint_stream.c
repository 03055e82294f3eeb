/*
 * lint/lint_stream.c - events of A2A in their order.
 *
 * model/rules.h checks single events. This file has the state that they are checked against, and the rules for complete
 * streams. A file may contain several streams one after the other: a task after the end of another one starts the
 * next stream.
 */
#include "lint/lint_int.h"

#include "base/err.h"
#include "canon/message_content.h"

#include <stdio.h>

/* What is kept of an artifact. */
enum lint_artifact { OPEN = 1, SEALED = 2, IN_CHUNKS = 4 };

/* ---- ids ---------------------------------------------------------------------------------------------------- */

static dgm_str lint_stream_id_of(const struct lint_id *id)
{
    return (dgm_str){id->text, id->n};
}

/* One that is longer than any we know of is not kept: its rule is silent. */
static void lint_store_id(struct lint_id *to, dgm_str id)
{
    if (to->n || id.n > sizeof to->text)
        return;
    if (id.n)
        memcpy(to->text, id.p, id.n);
    to->n = id.n;
}

static void lint_store_ids(struct lint_stream *s, const dgm_event *e)
{
    dgm_str task = {0}, context = {0};
    if (e->kind == DGM_EVENT_TASK) {
        task = e->task->id;
        context = e->task->context_id;
    } else if (e->kind == DGM_EVENT_STATUS) {
        task = e->status->task_id;
        context = e->status->context_id;
    } else if (e->kind == DGM_EVENT_ARTIFACT) {
        task = e->artifact->task_id;
        context = e->artifact->context_id;
    }
    lint_store_id(&s->task_id, task);
    lint_store_id(&s->context_id, context);
}

void dgm_lint_request_id(dgm_linter *l, const dgm_json *id)
{
    struct lint_stream *s = &l->stream;
    if (!id)
        return;
    dgm_str json = dgm_json_text_in(l->arena, id);
    if (!s->request_id.n || json.n > sizeof s->request_id.text) {
        lint_store_id(&s->request_id, json);
        return;
    }
    if (!dgm_str_eq(lint_stream_id_of(&s->request_id), json) && !s->ended)
        dgm_lint_report(l, LINT_CHANGING_REQUEST, "/id",
                        "the JSON-RPC id is %.*s here and was %.*s before",
                        (int)(json.n < 60 ? json.n : 60), json.p,
                        (int)(s->request_id.n < 60 ? s->request_id.n : 60), s->request_id.text);
}

/* ---- artifacts ---------------------------------------------------------------------------------------------- */

static dgm_fold_artifact artifact_of(const struct lint_stream *s, const dgm_event *e)
{
    if (e->kind != DGM_EVENT_ARTIFACT || !e->artifact->artifact.artifact_id.n)
        return DGM_ARTIFACT_OPEN; /* without an id there is nothing to check */
    uint64_t *there = dgm_lint_seen_find(&s->artifacts, e->artifact->artifact.artifact_id);
    if (!there)
        return s->artifacts.full ? DGM_ARTIFACT_OPEN : DGM_ARTIFACT_NEW;
    return *there & SEALED ? DGM_ARTIFACT_SEALED : DGM_ARTIFACT_OPEN;
}

static void lint_store_artifact(struct lint_stream *s, const dgm_artifact_update *u)
{
    if (!u->artifact.artifact_id.n)
        return;
    uint64_t *there = dgm_lint_seen_add(&s->artifacts, u->artifact.artifact_id);
    if (!there)
        return;
    bool was_owed = *there & IN_CHUNKS && !(*there & SEALED);
    *there |= OPEN;
    if (u->append == DGM_TRUE)
        *there |= IN_CHUNKS;
    if (u->last_chunk == DGM_TRUE)
        *there |= SEALED;
    bool is_owed = *there & IN_CHUNKS && !(*there & SEALED);
    s->n_unsealed += (size_t)is_owed - (size_t)was_owed;
}

static void lint_store_task_artifacts(struct lint_stream *s, const dgm_task *t)
{
    for (size_t i = 0; i < t->artifacts.n; i++) {
        uint64_t *there = dgm_lint_seen_add(&s->artifacts, t->artifacts.at[i].artifact_id);
        if (there)
            *there |= OPEN;
    }
}

/* ---- texts -------------------------------------------------------------------------------------------------- */

static dgm_str lint_stream_text_of(dgm_linter *l, const dgm_parts *parts)
{
    bool others;
    return dgm_content_text(l->arena, parts, &others);
}

static void lint_artifact_text(dgm_linter *l, const dgm_artifact_update *u)
{
    dgm_str id = u->artifact.artifact_id, text = lint_stream_text_of(l, &u->artifact.parts);
    if (!id.n)
        return;
    if (u->append == DGM_TRUE)
        dgm_lint_text_append(l, id, text, "/artifact/parts");
    else
        dgm_lint_text_start(l, id, text);
    if (u->append != DGM_TRUE || u->last_chunk == DGM_TRUE)
        dgm_lint_text_complete(l, id, "/artifact/parts");
}

static void lint_status_text(dgm_linter *l, const dgm_status *s)
{
    const char *at =
        l->format->dialect == LINT_03_REST ? "/status/message/content" : "/status/message/parts";
    if (s->state == DGM_STATE_COMPLETED && s->message)
        dgm_lint_text_final(l, lint_stream_text_of(l, &s->message->parts), at);
}

/* ---- one event ------------------------------------------------------------------------------------------------ */

/* Messages of 0.3's proto have `content` where the others have `parts`. */
static void lint_pointer_of_dialect(const dgm_linter *l, char *at, size_t size)
{
    char rest[sizeof((dgm_err *)0)->at], *parts = strstr(at, "message/parts/");
    if (l->format->dialect != LINT_03_REST || !parts)
        return;
    snprintf(rest, sizeof rest, "%s", parts + strlen("message/parts"));
    size_t used = (size_t)(parts - at);
    snprintf(parts, size - used, "message/content%s", rest);
}

static void apply_rules(dgm_linter *l, const dgm_event_view *view)
{
    for (int i = 0; i < DGM_N_EVENT_RULES; i++) {
        dgm_event_rule rule = (dgm_event_rule)i;
        dgm_err what = {0};
        /* the decoder has looked for required members */
        if (rule == DGM_RULE_REQUIRED_MEMBER || !dgm_event_breaks(rule, view, &what))
            continue;
        lint_pointer_of_dialect(l, what.at, sizeof what.at);
        dgm_lint_report_in(l, (lint_rule)(LINT_REQUIRED_MEMBER + i), what.at, "%s", what.msg);
    }
}

static const dgm_status *lint_stream_status_of(const dgm_event *e)
{
    return e->kind == DGM_EVENT_STATUS ? &e->status->status
           : e->kind == DGM_EVENT_TASK ? &e->task->status
                                       : NULL;
}

static void lint_check_tools(dgm_linter *l, const dgm_event *e)
{
    const dgm_status *status = lint_stream_status_of(e);
    const dgm_at *history = DGM_AT_LIT(NULL, "history");
    for (size_t i = 0; e->kind == DGM_EVENT_TASK && i < e->task->history.n; i++)
        dgm_lint_message_tools(l, &e->task->history.at[i], DGM_AT_I(history, i));
    if (status && status->message)
        dgm_lint_message_tools(l, status->message,
                               DGM_AT_LIT(DGM_AT_LIT(NULL, "status"), "message"));
    if (e->kind == DGM_EVENT_MESSAGE)
        dgm_lint_message_tools(l, e->message, NULL);
}

/* Of a stream that was resumed behind its first event: ids count from 1. */
static bool is_resumed(const dgm_linter *l)
{
    dgm_str id = l->item->sse_id;
    bool number = id.n && id.p[0] >= '1' && id.p[0] <= '9';
    for (size_t i = 0; i < id.n; i++)
        number = number && id.p[i] >= '0' && id.p[i] <= '9';
    return number && !dgm_str_is(id, "1");
}

static void lint_check_first(dgm_linter *l, const dgm_event *e)
{
    struct lint_stream *s = &l->stream;
    if (s->ended && e->kind == DGM_EVENT_TASK && s->task_id.n &&
        !dgm_str_eq(e->task->id, lint_stream_id_of(&s->task_id)))
        dgm_lint_stream_end(l);
    if (!s->any && e->kind != DGM_EVENT_TASK && e->kind != DGM_EVENT_MESSAGE && !is_resumed(l))
        dgm_lint_report_in(l, LINT_FIRST_EVENT, "", NULL);
    if (s->ended && !s->has_task)
        dgm_lint_report_in(l, LINT_AFTER_TERMINAL, "",
                           "an event follows the message that ended the stream");
}

static void move_on(dgm_linter *l, const dgm_event *e)
{
    struct lint_stream *s = &l->stream;
    const dgm_status *status = lint_stream_status_of(e);
    s->any = true;
    lint_store_ids(s, e);
    if (e->kind == DGM_EVENT_ARTIFACT)
        lint_store_artifact(s, e->artifact);
    if (e->kind == DGM_EVENT_TASK)
        lint_store_task_artifacts(s, e->task);
    if (e->kind == DGM_EVENT_MESSAGE)
        s->ended = true;
    else
        s->has_task = true;
    if (status && !dgm_state_is_terminal(s->state))
        s->state = status->state;
    s->ended = s->ended || dgm_state_is_terminal(s->state);
}

void dgm_lint_event(dgm_linter *l, const dgm_event *e, bool in_stream)
{
    const struct lint_stream *s = &l->stream;
    const dgm_status *status = lint_stream_status_of(e);
    dgm_event_view view = {.event = e, .artifact = DGM_ARTIFACT_OPEN};
    if (in_stream) {
        lint_check_first(l, e);
        view.task_id = lint_stream_id_of(&s->task_id);
        view.context_id = lint_stream_id_of(&s->context_id);
        view.has_task = s->has_task;
        view.state = s->state;
        view.artifact = artifact_of(s, e);
    }
    apply_rules(l, &view);
    if (status && status->state == DGM_STATE_UNKNOWN)
        dgm_lint_report_in(l, LINT_UNKNOWN_STATE, "/status/state", NULL);
    if (in_stream || l->where.in_list || e->kind == DGM_EVENT_TASK)
        lint_check_tools(l, e);
    if (!in_stream)
        return;
    if (e->kind == DGM_EVENT_ARTIFACT)
        lint_artifact_text(l, e->artifact);
    if (e->kind == DGM_EVENT_STATUS && !s->ended)
        lint_status_text(l, &e->status->status);
    move_on(l, e);
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void dgm_lint_stream_error(dgm_linter *l)
{
    if (l->stream.ended)
        dgm_lint_report_in(l, LINT_AFTER_TERMINAL, "", NULL);
    l->stream.any = l->stream.ended = true;
}

void dgm_lint_stream_end(dgm_linter *l)
{
    struct lint_stream *s = &l->stream;
    const dgm_frames_item *item = l->item;
    l->item = NULL; /* it is about what came before */
    if (s->any && !s->ended && !dgm_state_is_interrupted(s->state))
        dgm_lint_report(l, LINT_MISSING_FINAL, "", NULL);
    if (s->any && s->n_unsealed)
        dgm_lint_report(l, LINT_MISSING_LAST_CHUNK, "",
                        "%zu artifact%s sent in chunks without a lastChunk", s->n_unsealed,
                        s->n_unsealed == 1 ? "" : "s");
    l->item = item;
    dgm_lint_seen_clear(&s->artifacts);
    *s = (struct lint_stream){0};
    l->texts.n = l->texts.pieces = 0;
    l->dialects = l->requested && l->requested->dialect ? l->requested->dialect : LINT_ANY_DIALECT;
}
