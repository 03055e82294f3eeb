/* canon/records_to_events.c - see records_to_events.h: the run, and which event becomes what. */
#include "canon/records_to_events.h"
#include "base/limits.h"
#include "canon/records_to_events_int.h"

#include <stdlib.h>

/* ---- the machine ---------------------------------------------------------------------------------------- */

static void begin_turn(dgm_records_to_events *f)
{
    f->texts_said = dgm_reconcile_new(f->params.status_texts);
    if (f->turn) /* its message may have reached a task that was at work */
        dgm_reconcile_join(f->texts_said, false);
    dgm_text_pieces_init(&f->pieces);
    f->touched = DGM_NO_STREAM;
    f->turn++;
}

static void end_turn(dgm_records_to_events *f)
{
    dgm_reconcile_free(f->texts_said);
    dgm_text_pieces_done(&f->pieces);
    dgm_from_free_files(f);
    f->files = NULL;
    dgm_map_done(&f->artifacts);
    dgm_map_done(&f->ids);
    dgm_map_done(&f->calls_by_id);
    for (size_t i = 0; i < f->n_calls; i++)
        dgm_from_forget_call(&f->calls[i]);
    f->n_texts = f->n_calls = f->n_steps = f->n_subagents = f->n_ids = 0;
    f->parent = f->reasoning = (dgm_str){0};
    f->usage = (dgm_canon_usages){0};
    f->started = f->finished = f->interrupted = f->after_result = f->model_calls_sent = false;
    f->answered = false;
    dgm_buf_clear(&f->speaker);
}

dgm_records_to_events *dgm_records_to_events_new(const dgm_records_params *params)
{
    dgm_records_to_events *f = dgm_xcalloc(1, sizeof *f);
    f->params = *params;
    f->arena = dgm_arena_new();
    f->scratch = dgm_arena_new();
    dgm_buf_init(&f->speaker, SIZE_MAX);
    f->more.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    if (params->thread_id.p)
        f->thread_id = dgm_arena_dup(f->arena, params->thread_id);
    if (params->run_id.p)
        f->run_id = dgm_arena_dup(f->arena, params->run_id);
    if (params->whole_snapshots) {
        f->fold = dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES);
        for (size_t i = 0; i < params->messages.n; i++)
            dgm_canon_fold_add_message(f->fold, &params->messages.at[i]);
    }
    f->params.messages = (dgm_canon_messages){0};
    f->turn = params->turn ? params->turn - 1 : 0;
    begin_turn(f);
    return f;
}

void dgm_records_to_events_free(dgm_records_to_events *f)
{
    if (!f)
        return;
    end_turn(f);
    if (f->fold)
        dgm_canon_fold_free(f->fold);
    dgm_buf_done(&f->speaker);
    dgm_arena_free(f->arena);
    dgm_arena_free(f->scratch);
    free(f->texts);
    free(f->calls);
    free(f->steps);
    free(f->subagents);
    free(f);
}

bool dgm_records_to_events_is_over(const dgm_records_to_events *f)
{
    return f->finished;
}

/* ---- giving --------------------------------------------------------------------------------------------- */

void dgm_from_out(dgm_records_to_events *f, dgm_canon_event *e)
{
    if (f->rc)
        return;
    /* our own snapshots are made of the fold */
    if (f->fold && e->kind != DGM_CANON_MESSAGES_SNAPSHOT)
        dgm_canon_fold_add(f->fold, e);
    f->rc = f->sink.on_event(f->sink.arg, e);
}

dgm_str dgm_from_id(dgm_records_to_events *f, char letter)
{
    char digits[24], *p = digits + sizeof digits;
    size_t n = ++f->n_ids;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    *--p = letter;
    *--p = '-';
    return dgm_arena_join(f->arena, f->run_id, (dgm_str){p, (size_t)(digits + sizeof digits - p)});
}

dgm_str dgm_from_message_id(dgm_records_to_events *f, dgm_str id)
{
    bool is_new = id.n && !dgm_map_get(&f->ids, id);
    if (is_new)
        id = dgm_arena_dup(f->arena, id);
    while (
        !is_new) { /* the sender may use ids of the same form as ours: a stream that we made comes back */
        id = dgm_from_id(f, 'm');
        is_new = !dgm_map_get(&f->ids, id);
    }
    dgm_map_put(&f->ids, id, 0);
    return id;
}

/* A patch that events_to_records.c stored as it was; an agent may use the name for something else. */
static bool is_state_patch(dgm_str name, const dgm_json *value)
{
    size_t i, n;
    yyjson_val *op;
    if (!dgm_str_is(name, DGM_NAME_STATE_DELTA) || !yyjson_is_arr((yyjson_val *)(uintptr_t)value))
        return false;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)value, i, n, op) {
        dgm_str path = dgm_json_str_member(op, "path");
        if (!dgm_json_str_member(op, "op").n || !path.p || (path.n && path.p[0] != '/'))
            return false;
    }
    return true;
}

void dgm_from_custom(dgm_records_to_events *f, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    if (is_state_patch(name, value)) {
        e.kind = DGM_CANON_STATE_DELTA;
        e.state_delta.patch = value;
        dgm_from_out(f, &e);
        return;
    }
    e.custom.name = name;
    e.custom.value = value;
    dgm_canon_artifact_from_custom(f->scratch, NULL, &e);
    dgm_from_out(f, &e);
}

/* ---- the run -------------------------------------------------------------------------------------------- */

void dgm_from_begin(dgm_records_to_events *f, dgm_str context_id, dgm_str task_id, bool start)
{
    /* The ids are those of the caller, of the task, or at least the same for the same message. */
    if (!f->task_id.n && task_id.n)
        f->task_id = dgm_arena_dup(f->arena, task_id);
    if (!f->run_id.n)
        f->run_id = dgm_arena_dup(f->arena, task_id.n ? task_id : DGM_STR("run"));
    if (!f->thread_id.n)
        f->thread_id = context_id.n ? dgm_arena_dup(f->arena, context_id) : f->run_id;
    if (f->started || (f->params.fragment && !start))
        return;
    f->started = true;
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.thread_id = f->thread_id;
    e.run_started.run_id = f->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    dgm_from_out(f, &e);
}

/* Ends everything that is open, then the run. */
static void from_records_end_run(dgm_records_to_events *f, dgm_canon_event *e)
{
    dgm_from_close_texts(f);
    if (f->n_calls)
        dgm_from_close_calls(f);
    if (f->reasoning.n)
        dgm_from_end_reasoning(f);
    while (f->n_steps)
        dgm_from_step(f, f->steps[f->n_steps - 1], false);
    if (f->n_subagents)
        dgm_from_close_subagents(f);
    dgm_from_out(f, e);
    f->finished = true;
}

void dgm_from_finish(dgm_records_to_events *f, dgm_canon_outcome outcome)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    e.run_finished.thread_id = f->thread_id;
    e.run_finished.run_id = f->run_id;
    if (outcome.kind != DGM_CANON_SUCCESS || outcome.pending_tool_call_ids.n)
        e.run_finished.outcome = outcome; /* success alone is what no outcome means */
    e.run_finished.usage = f->usage;
    from_records_end_run(f, &e);
}

void dgm_from_finish_with_error(dgm_records_to_events *f, dgm_str message, dgm_str code)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    e.run_error.message = message;
    e.run_error.code = code;
    e.run_error.thread_id = f->thread_id;
    e.run_error.run_id = f->run_id;
    e.run_error.usage = f->usage;
    from_records_end_run(f, &e);
}

/* ---- internal events ----------------------------------------------------------------------------------------- */

static void on_internal(dgm_records_to_events *f, const dgm_internal *e)
{
    dgm_content said;
    switch (e->kind) {
    case DGM_INTERNAL_LLM_CALL:
        f->model_calls_sent = true;
        f->parent = (dgm_str){0};
        dgm_from_end_delta(f);
        dgm_from_end_reasoning(f);
        break;
    case DGM_INTERNAL_TOOL_START: dgm_from_tool_start(f, e); break;
    case DGM_INTERNAL_TOOL_COMPLETE: dgm_from_tool_complete(f, e); break;
    case DGM_INTERNAL_CHECKPOINT: break;
    case DGM_INTERNAL_MESSAGE: /* its text was streamed */
        if (dgm_from_read(f, e->message, DGM_AT_LIT(NULL, "message"), &said)) {
            dgm_from_calls(f, &said, e->message->message_id, false);
            dgm_from_results(f, &said);
        }
        break;
    case DGM_INTERNAL_REASONING: dgm_from_reasoning(f, e->text); break;
    case DGM_INTERNAL_STATE: dgm_from_state(f, e->name, e->value); break;
    case DGM_INTERNAL_STEP: dgm_from_step(f, e->name, e->success == DGM_UNSET); break;
    case DGM_INTERNAL_USAGE: dgm_from_usage(f, e->value); break;
    case DGM_INTERNAL_CUSTOM: dgm_from_custom(f, e->name, e->value); break;
    }
}

/* ---- events ------------------------------------------------------------------------------------------------- */

/* After an interrupt the same task may continue: another run, with an id of its own. */
static void start_next_run(dgm_records_to_events *f, const dgm_event *e)
{
    if (e->kind != DGM_EVENT_MESSAGE &&
        (e->kind != DGM_EVENT_STATUS || dgm_state_is_interrupted(e->status->status.state)))
        return;
    end_turn(f);
    begin_turn(f);
    dgm_str id = f->task_id.n ? f->task_id : f->run_id;
    f->run_id = dgm_arena_printf(f->arena, "%.*s-%u", DGM_P(id), f->turn);
}

dgm_code dgm_records_to_events_feed(dgm_records_to_events *f, const dgm_event *event,
                                    dgm_canon_sink sink, dgm_err *err)
{
    if (f->interrupted && f->params.many_turns)
        start_next_run(f, event);
    if (f->rc || f->finished)
        return f->rc;
    f->sink = sink;
    f->err = err;
    switch (event->kind) {
    case DGM_EVENT_NONE: break;
    case DGM_EVENT_TASK: dgm_from_on_task(f, event->task); break;
    case DGM_EVENT_MESSAGE: dgm_from_on_message(f, event->message); break;
    case DGM_EVENT_STATUS: {
        const dgm_status_update *u = event->status;
        const dgm_at *at = DGM_AT_LIT(NULL, "statusUpdate");
        f->has_task = true;
        dgm_from_begin(f, u->context_id, u->task_id, u->status.state == DGM_STATE_SUBMITTED);
        dgm_from_on_status(f, &u->status, u->metadata, DGM_AT_LIT(at, "status"));
        break;
    }
    case DGM_EVENT_ARTIFACT: {
        const dgm_artifact_update *u = event->artifact;
        f->has_task = true;
        dgm_from_begin(f, u->context_id, u->task_id, false);
        dgm_from_artifact(f, &u->artifact, u->append == DGM_TRUE, u->last_chunk == DGM_TRUE);
        break;
    }
    case DGM_EVENT_INTERNAL:
        dgm_from_begin(f, (dgm_str){0}, event->internal->task_id, false);
        on_internal(f, event->internal);
        break;
    }
    dgm_arena_reset(f->scratch);
    return f->rc;
}

void dgm_records_to_events_set_turn(dgm_records_to_events *f, uint32_t turn)
{
    f->turn = turn;
}

dgm_code dgm_records_to_events_end(dgm_records_to_events *f, dgm_canon_sink sink, dgm_err *err)
{
    f->sink = sink;
    f->err = err;
    if (f->rc || f->finished)
        return f->rc;
    if (f->params.fragment && f->params.open_end) {
        dgm_from_settle_texts(f);
    } else if (f->params.fragment) {
        if (f->params.complete)
            dgm_from_check_calls(f);
        dgm_from_close_texts(f);
        dgm_from_close_calls(f);
        dgm_from_end_reasoning(f);
    } else if (f->answered && !f->has_task) {
        dgm_from_finish(f, (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS,
                                               .pending_tool_call_ids = dgm_from_waiting_calls(f)});
    } else {
        dgm_from_begin(f, (dgm_str){0}, (dgm_str){0}, false);
        dgm_from_finish_with_error(f, DGM_STR("The agent's stream ended before its task did"),
                                   DGM_STR("incomplete"));
    }
    return f->rc;
}
