/*
 * lint/lint_a2a.c - one value of A2A: an envelope, an event, a noun, a card.
 *
 * It is decoded twice: strictly, for the first fault that the decoder finds, and then as tolerantly as `convert` does,
 * so that the rules for streams are checked after a fault, too.
 */
#include "lint/lint_int.h"

#include "wire/a2a/a2a_card.h"
#include "wire/jsonrpc/jsonrpc.h"

#include <stdio.h>

static bool has(const yyjson_val *v, const char *camel, const char *snake)
{
    return dgm_json_get(v, dgm_str_from(camel)) || (snake && dgm_json_get(v, dgm_str_from(snake)));
}

static void step_into(dgm_linter *l, const char *key)
{
    size_t n = strlen(l->object);
    snprintf(l->object + n, sizeof l->object - n, "/%s", key);
}

/* ---- the content of a value -------------------------------------------------------------------------------- */

static yyjson_val *open_envelope(dgm_linter *l, yyjson_val *v)
{
    static const char *const members[] = {"result", "params"};
    for (size_t i = 0; dgm_rpc_is(v) && i < 2; i++) {
        yyjson_val *inner = dgm_json_get(v, dgm_str_from(members[i]));
        if (yyjson_is_obj(inner)) {
            step_into(l, members[i]);
            return inner;
        }
    }
    return v;
}

/* 1.0 and both REST dialects wrap their events: returns the member that holds this event. */
static yyjson_val *open_wrapper(dgm_linter *l, yyjson_val *v, dgm_event_kind kind)
{
    static const char *const names[][3] = {
        [DGM_EVENT_TASK] = {"task"},
        [DGM_EVENT_MESSAGE] = {"message", "msg"},
        [DGM_EVENT_STATUS] = {"statusUpdate", "status_update"},
        [DGM_EVENT_ARTIFACT] = {"artifactUpdate", "artifact_update"},
    };
    if (kind == DGM_EVENT_NONE || kind > DGM_EVENT_ARTIFACT || l->format->dialect == LINT_03)
        return v;
    for (size_t i = 0; names[kind][i]; i++) {
        yyjson_val *inner = dgm_json_get(v, dgm_str_from(names[kind][i]));
        if (yyjson_is_obj(inner)) {
            step_into(l, names[kind][i]);
            return inner;
        }
    }
    return v;
}

static bool is_internal(const yyjson_val *v)
{
    yyjson_val *kind = dgm_json_get(v, DGM_STR("kind"));
    return yyjson_is_str(kind) && dgm_str_starts(dgm_json_str(kind), DGM_STR("internal:"));
}

/* ---- events ----------------------------------------------------------------------------------------------- */

/* Ids that the decoder made up are not the sender's. */
static void forget_made_up(dgm_event *e, const yyjson_val *o)
{
    bool has_task = has(o, "taskId", "task_id"), has_context = has(o, "contextId", "context_id");
    dgm_str none = {0};
    switch (e->kind) {
    case DGM_EVENT_TASK:
        e->task->id = has(o, "id", NULL) ? e->task->id : none;
        e->task->context_id = has_context ? e->task->context_id : none;
        break;
    case DGM_EVENT_STATUS:
        e->status->task_id = has_task ? e->status->task_id : none;
        e->status->context_id = has_context ? e->status->context_id : none;
        break;
    case DGM_EVENT_ARTIFACT:
        e->artifact->task_id = has_task ? e->artifact->task_id : none;
        e->artifact->context_id = has_context ? e->artifact->context_id : none;
        if (!has(dgm_json_get(o, DGM_STR("artifact")), "artifactId", "artifact_id"))
            e->artifact->artifact.artifact_id = none;
        break;
    case DGM_EVENT_NONE:
    case DGM_EVENT_MESSAGE:
    case DGM_EVENT_INTERNAL: break;
    }
}

/* 0.3's final: its schema wants it, ProtoJSON leaves false out. */
static void lint_check_final(dgm_linter *l, const dgm_event *e, const yyjson_val *o)
{
    yyjson_val *final = dgm_json_get(o, DGM_STR("final"));
    if (e->kind != DGM_EVENT_STATUS || l->format->dialect == LINT_10)
        return;
    if (!final && l->format->dialect == LINT_03) {
        dgm_lint_report_in(l, LINT_REQUIRED_MEMBER, "/final",
                           "missing: required in a status-update of 0.3");
        return;
    }
    bool is_final = final && yyjson_is_true(final);
    dgm_task_state s = e->status->status.state;
    if (!is_final && dgm_state_is_terminal(s))
        dgm_lint_report_in(l, LINT_FINAL_CONTRADICTS, "/final",
                           "final is not true, but the state ends the task");
    if (is_final && (s == DGM_STATE_SUBMITTED || s == DGM_STATE_WORKING))
        dgm_lint_report_in(l, LINT_FINAL_CONTRADICTS, "/final",
                           "final is true, but the state does not end the task");
}

/* The schema of 0.3 wants the tag; readers tell by the members. */
static void lint_check_kind(dgm_linter *l, const yyjson_val *o)
{
    if (l->format->dialect == LINT_03 && !dgm_json_get(o, DGM_STR("kind")))
        dgm_lint_report_in(l, LINT_REQUIRED_MEMBER, "/kind",
                           "missing: A2A 0.3 needs it to identify the object");
}

static void lint_check_event(dgm_linter *l, dgm_event *e, yyjson_val *v, bool in_stream)
{
    yyjson_val *o = open_wrapper(l, v, e->kind);
    forget_made_up(e, o);
    lint_check_kind(l, o);
    lint_check_final(l, e, o);
    dgm_lint_event(l, e, in_stream);
}

static void lint_check_noun(dgm_linter *l, dgm_event_kind kind, void *it, yyjson_val *v)
{
    dgm_event e = {.kind = kind, .any = it};
    forget_made_up(&e, v);
    lint_check_kind(l, v);
    if (kind == DGM_EVENT_STATUS)
        lint_check_final(l, &e, v);
    dgm_lint_event(l, &e, false);
}

static void lint_check_tasks(dgm_linter *l, const dgm_tasks *tasks, yyjson_val *v)
{
    yyjson_val *list = dgm_json_get(v, DGM_STR("tasks"));
    size_t before = strlen(l->object);
    for (size_t i = 0; i < tasks->n && i < yyjson_arr_size(list); i++) {
        char key[40];
        snprintf(key, sizeof key, "tasks/%zu", i);
        step_into(l, key);
        lint_check_noun(l, DGM_EVENT_TASK, &tasks->at[i], yyjson_arr_get(list, i));
        l->object[before] = 0;
    }
}

/* ---- any object ---------------------------------------------------------------------------------------------- */

/* Before 1.0 a user's message alone looks like an event; no stream has one. */
static bool is_of_stream(const dgm_linter *l, const dgm_frame *f)
{
    const dgm_event *e = f->object.it;
    return l->where.in_stream &&
           !(e->kind == DGM_EVENT_MESSAGE && e->message->role == DGM_ROLE_USER);
}

static void lint_check_request(dgm_linter *l, dgm_send_request *request, yyjson_val *v)
{
    yyjson_val *message = dgm_json_get(v, DGM_STR("message"));
    dgm_lint_stream_end(l); /* what follows it is another stream */
    if (!yyjson_is_obj(message))
        return;
    step_into(l, "message");
    lint_check_noun(l, DGM_EVENT_MESSAGE, request->message, message);
}

static void lint_check_object(dgm_linter *l, const dgm_frame *f, yyjson_val *o)
{
    void *it = f->object.it;
    switch (f->object.kind) {
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE:
        if (is_of_stream(l, f) && f->envelope == DGM_ENVELOPE_RESPONSE)
            dgm_lint_request_id(l, f->id);
        lint_check_event(l, it, o, is_of_stream(l, f));
        break;
    case DGM_OBJECT_TASK: lint_check_noun(l, DGM_EVENT_TASK, it, o); break;
    case DGM_OBJECT_MESSAGE: lint_check_noun(l, DGM_EVENT_MESSAGE, it, o); break;
    case DGM_OBJECT_STATUS_UPDATE: lint_check_noun(l, DGM_EVENT_STATUS, it, o); break;
    case DGM_OBJECT_ARTIFACT_UPDATE: lint_check_noun(l, DGM_EVENT_ARTIFACT, it, o); break;
    case DGM_OBJECT_SEND_REQUEST: lint_check_request(l, it, o); break;
    case DGM_OBJECT_LIST_TASKS_RESPONSE:
        lint_check_tasks(l, &((dgm_list_tasks_result *)it)->tasks, o);
        break;
    case DGM_OBJECT_CARD: dgm_lint_card(l, o, it); break;
    case DGM_OBJECT_ERROR:
        if (l->where.in_stream)
            dgm_lint_stream_error(l);
        break;
    default: break; /* requests and parts: the decoder has reported every fault */
    }
}

static dgm_code decode(dgm_linter *l, yyjson_val *v, bool strict, dgm_frame *ret, dgm_err *err)
{
    dgm_mint mint = {{0}, 0, {0}};
    dgm_reader r = {.arena = l->arena, .strict = strict, .mint = strict ? NULL : &mint, .err = err};
    return l->format->a2a->decode(&r, v, DGM_OBJECT_NONE, l->where.in_stream, ret);
}

void dgm_lint_a2a_value(dgm_linter *l, yyjson_val *v)
{
    dgm_err err = {0};
    dgm_frame frame;
    yyjson_val *o = open_envelope(l, v);
    bool is_card = dgm_a2a_looks_like_card(o);
    if (is_internal(o)) {
        dgm_lint_report_in(l, LINT_INTERNAL_EVENT, "/kind", NULL);
        return;
    }
    /* what a decoder says of a mixture follows from that */
    bool faulty = dgm_lint_walk_a2a(l, v, is_card);
    size_t before = l->found[DGM_SEVERITY_ERROR];
    if (is_card)
        dgm_lint_card_members(l, o);
    else if (decode(l, v, true, &frame, &err) && !faulty)
        dgm_lint_report_decoder(l, v, &err);
    faulty = faulty || l->found[DGM_SEVERITY_ERROR] > before;
    if (decode(l, v, false, &frame, &err)) {
        if (!faulty)
            dgm_lint_report_decoder(l, v, &err);
        return;
    }
    lint_check_object(l, &frame, o);
}
