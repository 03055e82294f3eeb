/*
 * canon/records_to_events_status.c - messages, states and tasks: what of them is the answer, and how a run ends.
 */
#include "canon/compact.h"
#include "canon/interrupts.h"
#include "canon/records_to_events_int.h"
#include "model/history.h"
#include "model/stamp.h"

/* ---- messages ------------------------------------------------------------------------------------------- */

bool dgm_from_read(dgm_records_to_events *f, const dgm_message *m, const dgm_at *at,
                   dgm_content *said)
{
    dgm_code rc = dgm_content_read(f->scratch, m, f->params.trusted, at, said, f->err);
    if (!f->rc)
        f->rc = rc;
    return !f->rc;
}

/* A message of the history, or the user's. */
static void say_message(dgm_records_to_events *f, const dgm_message *m, const dgm_at *at)
{
    dgm_content said;
    if (!dgm_from_read(f, m, at, &said) || said.delta)
        return;
    /* results first, then what the user says about them; an agent's text before its calls */
    if (!said.calls.n)
        dgm_from_results(f, &said);
    if (said.role == DGM_CANON_ASSISTANT) {
        f->parent = (dgm_str){0};
        dgm_from_whole_text(f, dgm_canon_content_text(f->scratch, &said.content), m->message_id);
    } else {
        dgm_from_user_text(f, dgm_canon_content_text(f->scratch, &said.content), said.content.parts,
                           m->message_id, said.role);
    }
    dgm_from_calls(f, &said, m->message_id, true);
    if (said.calls.n)
        dgm_from_results(f, &said);
}

static dgm_strs waiting_calls(dgm_records_to_events *f, const dgm_content *said)
{
    dgm_strs ids = {dgm_new_n(f->scratch, dgm_str, said->calls.n), 0};
    for (size_t i = 0; i < said->calls.n; i++) {
        if (dgm_from_is_waiting(f, said->calls.at[i].call_id))
            ids.at[ids.n++] = said->calls.at[i].call_id;
    }
    return ids;
}

void dgm_from_on_message(dgm_records_to_events *f, const dgm_message *m)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "message");
    dgm_content said;
    dgm_from_begin(f, m->context_id, m->task_id.n || f->has_task ? m->task_id : m->message_id,
                   false);
    if (m->role != DGM_ROLE_AGENT) {
        if (f->params.say_history || f->params.fragment)
            say_message(f, m, at);
        return;
    }
    if (!dgm_from_read(f, m, at, &said))
        return;
    dgm_from_results(f, &said);
    /* Pieces of calls behind a complete message are another's, unless they say that they are its own. */
    if (m->message_id.n && dgm_str_eq(m->message_id, dgm_buf_str(&f->speaker)))
        f->parent = f->speakers_parent;
    else if (!said.delta || (f->parent_done && !dgm_str_eq(m->message_id, f->parent)))
        f->parent = (dgm_str){0};
    if (said.content.text.n)
        dgm_from_piece(f, said.content.text, m->message_id, !said.delta);
    dgm_from_calls(f, &said, m->message_id, f->params.fragment);
    f->parent_done = !said.delta;
    dgm_buf_clear(&f->speaker);
    dgm_buf_add_str(&f->speaker, said.delta ? (dgm_str){0} : m->message_id);
    f->speakers_parent = f->parent;
    if (f->has_task || f->params.fragment || said.delta)
        return;
    if (f->params.many_messages)
        f->answered = true;
    else
        dgm_from_finish(f, (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS,
                                               .pending_tool_call_ids = waiting_calls(f, &said)});
}

/* ---- status ---------------------------------------------------------------------------------------------- */

static bool from_records_is_answer(const dgm_records_to_events *f, const dgm_message *m)
{
    dgm_str type = dgm_json_str_member(m->metadata, "canonical_type");
    return f->params.answer_source == DGM_ANSWER_STATUS ||
           dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "TextMessageEndEvent");
}

static bool has_indicator(const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA &&
            dgm_str_is(dgm_json_str_member(m->parts.at[i].data, "type"), "status-indicator"))
            return true;
    }
    return false;
}

static void on_working(dgm_records_to_events *f, const dgm_message *m, const dgm_at *at)
{
    dgm_from_step(f, DGM_STR("working"), true);
    if (!m)
        return;
    if (has_indicator(m)) {
        dgm_from_status_progress(f, m);
        return;
    }
    dgm_content said;
    if (!dgm_from_read(f, m, at, &said))
        return;
    bool ends =
        dgm_str_is(dgm_json_str_member(m->metadata, "canonical_type"), "TextMessageEndEvent");
    dgm_from_results(f, &said);
    if (from_records_is_answer(f, m))
        dgm_from_piece(f, dgm_canon_content_text(f->scratch, &said.content), m->message_id, ends);
    else if (!said.calls.n && !said.results.n)
        dgm_from_status_progress(f, m);
    dgm_from_calls(f, &said, m->message_id, false);
}

/* The text of a status that ends the turn. */
static void closing_message(dgm_records_to_events *f, const dgm_message *m, const dgm_at *at,
                            bool is_question, dgm_content *said)
{
    if (!dgm_from_read(f, m, at, said))
        return;
    if (said->results.n)
        dgm_from_results(f, said);
    dgm_from_final(f, dgm_canon_content_text(f->scratch, &said->content), m->message_id,
                   is_question);
    if (said->calls.n)
        dgm_from_calls(f, said, m->message_id, false);
}

static bool is_text_only(const dgm_message *m)
{
    bool any = false;
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_TEXT)
            return false;
        any |= m->parts.at[i].content.n > 0;
    }
    return any;
}

static void on_interrupted(dgm_records_to_events *f, dgm_task_state state, const dgm_message *m,
                           const dgm_at *at)
{
    dgm_content said = {0};
    bool text_only = state == DGM_STATE_INPUT_REQUIRED && is_text_only(m);
    if (m)
        closing_message(f, m, at, true, &said);
    dgm_strs waiting = waiting_calls(f, &said);
    if (waiting.n) { /* of the caller's own tools: no question, but work */
        dgm_from_finish(
            f, (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = waiting});
    } else {
        dgm_asking asking = {.message = m,
                             .state = state,
                             .id = f->task_id.n ? f->task_id : f->run_id,
                             .turn = f->turn,
                             .text = dgm_canon_content_text(f->scratch, &said.content)};
        dgm_canon_outcome outcome = {.kind = DGM_CANON_INTERRUPT,
                                     .interrupts = dgm_interrupts_of_question(f->scratch, &asking)};
        outcome.interrupts.at[0].text_only = text_only;
        dgm_from_finish(f, outcome);
    }
    f->interrupted = true;
}

static void on_failed(dgm_records_to_events *f, dgm_task_state state, const dgm_message *m,
                      const dgm_json *meta, const dgm_at *at)
{
    bool rejected = state == DGM_STATE_REJECTED;
    dgm_str text = {0}, error = dgm_metadata_error(meta);
    dgm_content said = {0};
    if (m && dgm_from_read(f, m, at, &said))
        text = dgm_canon_content_text(f->scratch, &said.content);
    if (text.n && error.n && !dgm_str_eq(text, error)) /* the event itself has the error */
        dgm_from_whole_text(f, text, m->message_id);
    dgm_from_finish_with_error(f,
                               error.n    ? error
                               : text.n   ? text
                               : rejected ? DGM_STR("The task was rejected")
                                          : DGM_STR("The task failed"),
                               rejected ? DGM_STR("rejected") : DGM_STR("failed"));
}

/* The metadata of a status: a CUSTOM event; and the usage of the turn from agents whose internal events are not sent. */
static void on_metadata(dgm_records_to_events *f, dgm_task_state state, const dgm_json *meta)
{
    bool failed = state == DGM_STATE_FAILED || state == DGM_STATE_REJECTED;
    bool over = dgm_state_is_terminal(state) || dgm_state_is_interrupted(state);
    yyjson_val *usage = dgm_json_get(meta, DGM_STR("usage"));
    /* the event that ends the run has the error */
    if (yyjson_obj_size((yyjson_val *)(uintptr_t)meta) >
        (failed && dgm_metadata_error(meta).n ? 1 : 0))
        dgm_from_custom(f, DGM_STR(DGM_NAME_METADATA), meta);
    if (over && !f->usage.n && yyjson_is_obj(usage))
        dgm_from_usage(f, usage);
}

void dgm_from_on_status(dgm_records_to_events *f, const dgm_status *s, const dgm_json *meta,
                        const dgm_at *at)
{
    const dgm_at *message = DGM_AT_LIT(at, "message");
    dgm_content said = {0};
    dgm_strs waiting = {0};
    if (meta)
        on_metadata(f, s->state, meta);
    switch (s->state) {
    case DGM_STATE_UNKNOWN: break;
    case DGM_STATE_SUBMITTED: break;
    case DGM_STATE_WORKING: on_working(f, s->message, message); break;
    case DGM_STATE_INPUT_REQUIRED:
    case DGM_STATE_AUTH_REQUIRED: on_interrupted(f, s->state, s->message, message); break;
    case DGM_STATE_COMPLETED:
        if (s->message)
            closing_message(f, s->message, message, false, &said);
        if (said.calls.n)
            waiting = waiting_calls(f, &said);
        dgm_from_finish(
            f, (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = waiting});
        break;
    case DGM_STATE_CANCELED:
        if (s->message && dgm_from_read(f, s->message, message, &said))
            dgm_from_final(f, dgm_canon_content_text(f->scratch, &said.content),
                           s->message->message_id, false);
        dgm_from_finish(f, (dgm_canon_outcome){.kind = DGM_CANON_CANCELLED});
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
static bool is_in_history(dgm_records_to_events *f, const dgm_task *t)
{
    const dgm_message *m = t->status.message;
    const dgm_message *last = t->history.n ? &t->history.at[t->history.n - 1] : NULL;
    bool others, other;
    if (!m || !last || last->role != m->role)
        return false;
    if (m->message_id.n && dgm_str_eq(m->message_id, last->message_id))
        return true;
    dgm_str a = dgm_content_text(f->scratch, &m->parts, &others);
    dgm_str b = dgm_content_text(f->scratch, &last->parts, &other);
    return a.n && !others &&
           ((!other && dgm_str_eq(a, b)) || dgm_history_ends_with(&t->history, a));
}

/* The text of an answer that is in the history already: artifacts repeat it. */
static dgm_str answer_in_history(dgm_records_to_events *f, const dgm_task *t)
{
    const dgm_message *last = t->history.n ? &t->history.at[t->history.n - 1] : NULL;
    bool others;
    if (!last || last->role != DGM_ROLE_AGENT)
        return (dgm_str){0};
    dgm_str text = dgm_content_text(f->scratch, &last->parts, &others);
    return others ? (dgm_str){0} : text;
}

static bool artifact_is_said(dgm_records_to_events *f, const dgm_artifact *artifact, dgm_str answer)
{
    bool others;
    dgm_str text = dgm_content_text(f->scratch, &artifact->parts, &others);
    return answer.n && text.n && !others &&
           (dgm_str_starts(answer, text) ||
            (answer.n >= text.n &&
             dgm_str_eq((dgm_str){answer.p + answer.n - text.n, text.n}, text)));
}

void dgm_from_on_task(dgm_records_to_events *f, const dgm_task *given)
{
    const dgm_at *task = DGM_AT_LIT(NULL, "task");
    const dgm_at *history = DGM_AT_LIT(task, "history");
    const dgm_task *t = given;
    dgm_task compacted;
    f->has_task = true;
    dgm_from_begin(f, t->context_id, t->id, true);
    if (!f->task_seen && f->params.say_history && dgm_messages_have_pieces(&t->history)) {
        dgm_code rc = dgm_compact_task(f->scratch, given, f->params.trusted, task, &compacted,
                                       f->params.complete ? f->err : NULL);
        /* In a live stream, a call that cannot be put together is left out: the stream goes on. */
        if (rc && f->params.complete) {
            f->rc = f->rc ? f->rc : rc;
            return;
        }
        t = rc ? given : &compacted;
    }
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
    dgm_from_on_status(f, &status, t->metadata, DGM_AT_LIT(task, "status"));
}
