/* canon/from_records.c - see from_records.h: the run, and which event becomes what. */
#include "canon/from_records.h"
#include "base/limits.h"
#include "canon/from_int.h"
#include "model/stamp.h"

#include <stdlib.h>

/* ---- the machine ---------------------------------------------------------------------------------------- */

static dgm_str keep(dgm_arena *a, dgm_str s)
{
    return s.p ? dgm_arena_dup(a, s) : (dgm_str){0};
}

static void begin_turn(dgm_from_records *f)
{
    f->texts_said = dgm_reconcile_new(f->params.status_texts);
    dgm_map_init(&f->artifacts);
    dgm_map_init(&f->ids);
    dgm_map_init(&f->calls_by_id);
    f->message_text = f->touched = DGM_NO_STREAM;
    f->turn++;
}

static void end_turn(dgm_from_records *f)
{
    dgm_reconcile_free(f->texts_said);
    dgm_map_done(&f->artifacts);
    dgm_map_done(&f->ids);
    dgm_map_done(&f->calls_by_id);
    for (size_t i = 0; i < f->n_calls; i++)
        dgm_from_forget_call(&f->calls[i]);
    f->n_texts = f->n_calls = f->n_steps = f->n_subagents = f->n_ids = 0;
    f->parent = f->reasoning = (dgm_str){0};
    f->usage = (dgm_canon_usages){0};
    f->pending = (dgm_strs){0};
    f->started = f->finished = f->interrupted = f->after_result = f->model_calls_told = false;
}

dgm_from_records *dgm_from_records_new(const dgm_from_params *params)
{
    dgm_from_records *f = dgm_xcalloc(1, sizeof *f);
    f->params = *params;
    f->arena = dgm_arena_new();
    f->scratch = dgm_arena_new();
    f->thread_id = keep(f->arena, params->thread_id);
    f->run_id = keep(f->arena, params->run_id);
    if (params->whole_snapshots) {
        f->fold = dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES);
        for (size_t i = 0; i < params->messages.n; i++)
            dgm_canon_fold_add_message(f->fold, &params->messages.at[i]);
    }
    f->params.messages = (dgm_canon_messages){0};
    begin_turn(f);
    return f;
}

void dgm_from_records_free(dgm_from_records *f)
{
    if (!f)
        return;
    end_turn(f);
    dgm_canon_fold_free(f->fold);
    dgm_arena_free(f->arena);
    dgm_arena_free(f->scratch);
    free(f->texts);
    free(f->calls);
    free(f->steps);
    free(f->subagents);
    free(f);
}

bool dgm_from_records_is_over(const dgm_from_records *f)
{
    return f->finished;
}

/* ---- giving --------------------------------------------------------------------------------------------- */

void dgm_from_fail(dgm_from_records *f, dgm_code rc)
{
    if (!f->rc)
        f->rc = rc;
}

void dgm_from_out(dgm_from_records *f, dgm_canon_event *e)
{
    if (f->rc)
        return;
    /* our own snapshots are made of the fold */
    if (f->fold && e->kind != DGM_CANON_MESSAGES_SNAPSHOT)
        dgm_canon_fold_add(f->fold, e);
    dgm_from_fail(f, dgm_canon_emit(f->sink, e));
}

dgm_str dgm_from_id(dgm_from_records *f, char letter)
{
    return dgm_arena_printf(f->arena, "%.*s-%c%zu", DGM_P(f->run_id), letter, ++f->n_ids);
}

dgm_str dgm_from_message_id(dgm_from_records *f, dgm_str id)
{
    id = id.n && !dgm_map_get(&f->ids, id) ? dgm_arena_dup(f->arena, id) : dgm_from_id(f, 'm');
    dgm_map_put(&f->ids, id, 0);
    return id;
}

void dgm_from_custom(dgm_from_records *f, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    e.custom.name = name;
    e.custom.value = value;
    dgm_from_out(f, &e);
}

static void metadata(dgm_from_records *f, const dgm_json *value)
{
    if (yyjson_obj_size((yyjson_val *)(uintptr_t)value))
        dgm_from_custom(f, DGM_STR("dragoman:metadata"), value);
}

/* ---- the run -------------------------------------------------------------------------------------------- */

/* Its ids are those of the caller, of the task, or at least the same for the same message. */
static void name_run(dgm_from_records *f, dgm_str context_id, dgm_str task_id)
{
    if (!f->task_id.n && task_id.n)
        f->task_id = dgm_arena_dup(f->arena, task_id);
    if (!f->run_id.n)
        f->run_id = dgm_arena_dup(f->arena, task_id.n ? task_id : DGM_STR("run"));
    if (!f->thread_id.n)
        f->thread_id = context_id.n ? dgm_arena_dup(f->arena, context_id) : f->run_id;
}

void dgm_from_begin(dgm_from_records *f, dgm_str context_id, dgm_str task_id)
{
    name_run(f, context_id, task_id);
    if (f->started)
        return;
    f->started = true;
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.thread_id = f->thread_id;
    e.run_started.run_id = f->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    dgm_from_out(f, &e);
}

/* As far as there is a run: pieces of one begin none. */
static void ensure_begun(dgm_from_records *f, dgm_str context_id, dgm_str task_id)
{
    name_run(f, context_id, task_id);
    if (!f->params.fragment)
        dgm_from_begin(f, context_id, task_id);
}

static void close_all(dgm_from_records *f)
{
    dgm_from_close_texts(f);
    dgm_from_close_calls(f);
    dgm_from_end_reasoning(f);
    dgm_from_close_steps(f);
    dgm_from_close_subagents(f);
}

static void finish(dgm_from_records *f, dgm_canon_outcome outcome)
{
    close_all(f);
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    e.run_finished.thread_id = f->thread_id;
    e.run_finished.run_id = f->run_id;
    e.run_finished.outcome = outcome;
    e.run_finished.usage = f->usage;
    dgm_from_out(f, &e);
    f->finished = true;
}

static void finish_with_error(dgm_from_records *f, dgm_str message, dgm_str code)
{
    close_all(f);
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    e.run_error.message = message;
    e.run_error.code = code;
    e.run_error.usage = f->usage;
    dgm_from_out(f, &e);
    f->finished = true;
}

/* ---- messages ------------------------------------------------------------------------------------------- */

static bool read_message(dgm_from_records *f, const dgm_message *m, const dgm_at *at,
                         dgm_said *said)
{
    dgm_from_fail(f, dgm_said_read(f->scratch, m, f->params.trusted, at, said, f->err));
    return !f->rc;
}

static dgm_str text_of(dgm_from_records *f, const dgm_said *said)
{
    const dgm_canon_content *c = &said->content;
    if (c->kind != DGM_CANON_CONTENT_PARTS)
        return c->text;
    /* a stream has no parts: their texts, and what was attached is told apart */
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->parts.n; i++)
        dgm_buf_add_str(&b, c->parts.at[i].text);
    dgm_str text = dgm_arena_dup(f->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* A message of the history, or the user's. */
static void say_message(dgm_from_records *f, const dgm_message *m, const dgm_at *at)
{
    dgm_said said;
    if (!read_message(f, m, at, &said) || said.delta)
        return;
    /* results first, then what the user says about them; an agent's text before its calls */
    if (!said.calls.n)
        dgm_from_results(f, &said);
    if (said.role == DGM_CANON_ASSISTANT)
        f->parent = (dgm_str){0};
    dgm_from_whole_text(f, text_of(f, &said), m->message_id, said.role);
    dgm_from_calls(f, &said, m->message_id);
    if (said.calls.n)
        dgm_from_results(f, &said);
}

static dgm_strs waiting_calls(dgm_from_records *f, const dgm_said *said)
{
    dgm_strs ids = {dgm_new_n(f->scratch, dgm_str, said->calls.n), 0};
    for (size_t i = 0; i < said->calls.n; i++) {
        if (dgm_from_is_waiting(f, said->calls.at[i].call_id))
            ids.at[ids.n++] = said->calls.at[i].call_id;
    }
    return ids;
}

/* A turn that ends well; calls that nobody answered are the caller's to make. */
static void finish_well(dgm_from_records *f, const dgm_said *said)
{
    dgm_strs waiting = waiting_calls(f, said);
    finish(f, waiting.n
                  ? (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = waiting}
                  : (dgm_canon_outcome){0});
}

static void on_message(dgm_from_records *f, const dgm_message *m)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "message");
    dgm_said said;
    ensure_begun(f, m->context_id, m->task_id.n || f->has_task ? m->task_id : m->message_id);
    if (m->role != DGM_ROLE_AGENT) {
        if (f->params.say_history || f->params.fragment)
            say_message(f, m, at);
        return;
    }
    if (!read_message(f, m, at, &said))
        return;
    dgm_from_results(f, &said);
    if (!said.delta)
        f->parent = (dgm_str){0};
    if (said.content.text.n)
        dgm_from_piece(f, said.content.text, m->message_id, !said.delta);
    dgm_from_calls(f, &said, m->message_id);
    if (!f->has_task && !f->params.fragment && !said.delta)
        finish_well(f, &said);
}

/* ---- status ---------------------------------------------------------------------------------------------- */

static bool is_answer(const dgm_from_records *f, const dgm_message *m)
{
    dgm_str type = dgm_said_mark(m->metadata, "canonical_type");
    return f->params.answer_source == DGM_ANSWER_STATUS ||
           dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "TextMessageEndEvent");
}

static bool has_indicator(const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA &&
            dgm_str_is(dgm_said_mark(m->parts.at[i].data, "type"), "status-indicator"))
            return true;
    }
    return false;
}

static void on_working(dgm_from_records *f, const dgm_message *m, const dgm_at *at)
{
    dgm_from_step(f, DGM_STR("working"), true);
    if (!m)
        return;
    if (has_indicator(m)) {
        dgm_from_status_progress(f, m);
        return;
    }
    dgm_said said;
    if (!read_message(f, m, at, &said))
        return;
    bool ends = dgm_str_is(dgm_said_mark(m->metadata, "canonical_type"), "TextMessageEndEvent");
    dgm_from_results(f, &said);
    if (is_answer(f, m))
        dgm_from_piece(f, text_of(f, &said), m->message_id, ends);
    else if (!said.calls.n && !said.results.n)
        dgm_from_status_progress(f, m);
    dgm_from_calls(f, &said, m->message_id);
}

/* The text of a status that ends the turn. */
static void closing_message(dgm_from_records *f, const dgm_message *m, const dgm_at *at,
                            dgm_said *said)
{
    *said = (dgm_said){0};
    if (!m || !read_message(f, m, at, said))
        return;
    dgm_from_results(f, said);
    dgm_from_final(f, text_of(f, said), m->message_id);
    dgm_from_calls(f, said, m->message_id);
}

static void on_interrupted(dgm_from_records *f, dgm_task_state state, const dgm_message *m,
                           const dgm_at *at)
{
    dgm_said said;
    closing_message(f, m, at, &said);
    if (waiting_calls(f, &said).n) { /* of the caller's own tools: no question, but work */
        finish_well(f, &said);
    } else {
        dgm_str text = text_of(f, &said), id = f->task_id.n ? f->task_id : f->run_id;
        dgm_canon_interrupt interrupt = {
            .id = f->turn > 1 ? dgm_arena_printf(f->scratch, "%.*s-%u", DGM_P(id), f->turn) : id,
            .reason = state == DGM_STATE_AUTH_REQUIRED ? DGM_STR("a2a:auth_required")
                                                       : DGM_STR("input_required"),
            .message = text.n ? text : (dgm_str){0},
            .metadata =
                m && yyjson_obj_size((yyjson_val *)(uintptr_t)m->metadata) ? m->metadata : NULL,
        };
        finish(f, (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {&interrupt, 1}});
    }
    f->interrupted = true;
}

static void on_failed(dgm_from_records *f, dgm_task_state state, const dgm_message *m,
                      const dgm_json *meta, const dgm_at *at)
{
    bool rejected = state == DGM_STATE_REJECTED;
    dgm_str text = {0}, error = dgm_metadata_error(meta);
    dgm_said said = {0};
    if (m && read_message(f, m, at, &said))
        text = text_of(f, &said);
    if (text.n && error.n && !dgm_str_eq(text, error)) /* the error is said by the event itself */
        dgm_from_whole_text(f, text, m->message_id, DGM_CANON_ASSISTANT);
    finish_with_error(f,
                      error.n    ? error
                      : text.n   ? text
                      : rejected ? DGM_STR("The task was rejected")
                                 : DGM_STR("The task failed"),
                      rejected ? DGM_STR("rejected") : DGM_STR("failed"));
}

static void on_status(dgm_from_records *f, const dgm_status *s, const dgm_json *meta,
                      const dgm_at *at)
{
    const dgm_at *message = DGM_AT_LIT(at, "message");
    dgm_said said;
    metadata(f, meta);
    switch (s->state) {
    case DGM_STATE_UNKNOWN: break;
    case DGM_STATE_SUBMITTED: break;
    case DGM_STATE_WORKING: on_working(f, s->message, message); break;
    case DGM_STATE_INPUT_REQUIRED:
    case DGM_STATE_AUTH_REQUIRED: on_interrupted(f, s->state, s->message, message); break;
    case DGM_STATE_COMPLETED:
        closing_message(f, s->message, message, &said);
        finish_well(f, &said);
        break;
    case DGM_STATE_CANCELED:
        if (s->message && read_message(f, s->message, message, &said))
            dgm_from_final(f, text_of(f, &said), s->message->message_id);
        finish(f, (dgm_canon_outcome){.kind = DGM_CANON_CANCELLED});
        break;
    case DGM_STATE_FAILED:
    case DGM_STATE_REJECTED: on_failed(f, s->state, s->message, meta, message); break;
    }
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

static bool is_progress(dgm_task_state s)
{
    return s == DGM_STATE_SUBMITTED || s == DGM_STATE_WORKING || s == DGM_STATE_UNKNOWN;
}

/* Is the status message the last one of the history, again? */
static bool is_in_history(dgm_from_records *f, const dgm_task *t)
{
    const dgm_message *m = t->status.message;
    const dgm_message *last = t->history.n ? &t->history.at[t->history.n - 1] : NULL;
    bool others, other;
    if (!m || !last || last->role != m->role)
        return false;
    if (m->message_id.n && dgm_str_eq(m->message_id, last->message_id))
        return true;
    dgm_str a = dgm_said_text(f->scratch, &m->parts, &others);
    dgm_str b = dgm_said_text(f->scratch, &last->parts, &other);
    return a.n && !others && !other && dgm_str_eq(a, b);
}

/* Texts that artifacts repeat: of an answer that stands in the history already. */
static dgm_str answer_in_history(dgm_from_records *f, const dgm_task *t)
{
    const dgm_message *last = t->history.n ? &t->history.at[t->history.n - 1] : NULL;
    bool others;
    if (!last || last->role != DGM_ROLE_AGENT)
        return (dgm_str){0};
    dgm_str text = dgm_said_text(f->scratch, &last->parts, &others);
    return others ? (dgm_str){0} : text;
}

static bool artifact_is_said(dgm_from_records *f, const dgm_artifact *artifact, dgm_str answer)
{
    bool others;
    dgm_str text = dgm_said_text(f->scratch, &artifact->parts, &others);
    return answer.n && text.n && !others &&
           (dgm_str_starts(answer, text) ||
            (answer.n >= text.n &&
             dgm_str_eq((dgm_str){answer.p + answer.n - text.n, text.n}, text)));
}

static void on_task(dgm_from_records *f, const dgm_task *t)
{
    const dgm_at *task = DGM_AT_LIT(NULL, "task");
    const dgm_at *history = DGM_AT_LIT(task, "history");
    f->has_task = true;
    dgm_from_begin(f, t->context_id, t->id);
    bool first = !f->task_seen;
    f->task_seen = true;
    dgm_str said = {0};
    if (first && f->params.say_history) {
        for (size_t i = 0; i < t->history.n && !f->rc; i++)
            say_message(f, &t->history.at[i], DGM_AT_I(history, i));
        said = answer_in_history(f, t);
        dgm_reconcile_forget(f->texts_said);
        f->parent = (dgm_str){0};
    }
    for (size_t i = 0; i < t->artifacts.n && !f->rc; i++) {
        if (!artifact_is_said(f, &t->artifacts.at[i], said))
            dgm_from_artifact(f, &t->artifacts.at[i], false, !is_progress(t->status.state));
    }
    dgm_status status = t->status;
    if (said.p && is_in_history(f, t))
        status.message = NULL;
    on_status(f, &status, t->metadata, DGM_AT_LIT(task, "status"));
}

/* ---- internal events ----------------------------------------------------------------------------------------- */

static void on_internal(dgm_from_records *f, const dgm_internal *e)
{
    dgm_said said;
    switch (e->kind) {
    case DGM_INTERNAL_LLM_CALL:
        f->model_calls_told = true;
        f->parent = (dgm_str){0};
        dgm_from_end_reasoning(f);
        break;
    case DGM_INTERNAL_TOOL_START: dgm_from_tool_start(f, e); break;
    case DGM_INTERNAL_TOOL_COMPLETE: dgm_from_tool_complete(f, e); break;
    case DGM_INTERNAL_CHECKPOINT: break;
    case DGM_INTERNAL_MESSAGE: /* its text was streamed */
        if (read_message(f, e->message, DGM_AT_LIT(NULL, "message"), &said)) {
            dgm_from_calls(f, &said, e->message->message_id);
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

/* After an interrupt the same task may go on: another run, with an id of its own. */
static void maybe_go_on(dgm_from_records *f, const dgm_event *e)
{
    bool goes_on =
        e->kind == DGM_EVENT_MESSAGE ||
        (e->kind == DGM_EVENT_STATUS && !dgm_state_is_interrupted(e->status->status.state));
    if (!f->interrupted || !f->params.many_turns || !goes_on)
        return;
    end_turn(f);
    begin_turn(f);
    dgm_str id = f->task_id.n ? f->task_id : f->run_id;
    f->run_id = dgm_arena_printf(f->arena, "%.*s-%u", DGM_P(id), f->turn);
}

dgm_code dgm_from_records_feed(dgm_from_records *f, const dgm_event *event, dgm_canon_sink sink,
                               dgm_err *err)
{
    maybe_go_on(f, event);
    if (f->rc || f->finished)
        return f->rc;
    f->sink = sink;
    f->err = err;
    switch (event->kind) {
    case DGM_EVENT_NONE: break;
    case DGM_EVENT_TASK: on_task(f, event->task); break;
    case DGM_EVENT_MESSAGE: on_message(f, event->message); break;
    case DGM_EVENT_STATUS: {
        const dgm_status_update *u = event->status;
        const dgm_at *at = DGM_AT_LIT(NULL, "statusUpdate");
        f->has_task = true;
        if (u->status.state == DGM_STATE_SUBMITTED)
            dgm_from_begin(f, u->context_id, u->task_id);
        else
            ensure_begun(f, u->context_id, u->task_id);
        on_status(f, &u->status, u->metadata, DGM_AT_LIT(at, "status"));
        break;
    }
    case DGM_EVENT_ARTIFACT: {
        const dgm_artifact_update *u = event->artifact;
        f->has_task = true;
        ensure_begun(f, u->context_id, u->task_id);
        dgm_from_artifact(f, &u->artifact, u->append == DGM_TRUE, u->last_chunk == DGM_TRUE);
        break;
    }
    case DGM_EVENT_INTERNAL:
        ensure_begun(f, (dgm_str){0}, event->internal->task_id);
        on_internal(f, event->internal);
        break;
    }
    dgm_arena_reset(f->scratch);
    return f->rc;
}

dgm_code dgm_from_records_end(dgm_from_records *f, dgm_canon_sink sink, dgm_err *err)
{
    f->sink = sink;
    f->err = err;
    if (f->rc || f->finished)
        return f->rc;
    if (f->params.fragment) {
        dgm_from_close_texts(f);
        dgm_from_close_calls(f);
        dgm_from_end_reasoning(f);
    } else {
        ensure_begun(f, (dgm_str){0}, (dgm_str){0});
        finish_with_error(f, DGM_STR("The agent's stream ended before its task did"),
                          DGM_STR("incomplete"));
    }
    return f->rc;
}
