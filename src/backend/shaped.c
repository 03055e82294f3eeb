/*
 * backend/shaped.c - reply, final_text and working_message, for agents of every type.
 *
 *   core ◄── outer run ◄── shape ◄── inner run ◄── agent
 *
 * An inner run is placed between the core's run and the agent. Its emit passes events on, changes them,
 * adds some or holds some back:
 *
 *   reply: message   everything is folded; the result is one Message. A failure is an error to the
 *                    caller; other results that a Message cannot express (rejected, canceled) are a Task.
 *   reply: task      a Message becomes working, one artifact, completed. So it does when a task is
 *                    there already: its answers are its own (a2a.md 5.2).
 *   working_message  the first working status carries it as a status indicator. When it is clear that
 *                    there will be a task, it is emitted before the agent's first event.
 *   answer_source    text in a working status is progress and counts for nothing here, unless this
 *                    says `status`, or the message itself says that it is text (canonical_type).
 *   final_text       completed says the text again: added for agents that leave it out, left out on
 *                    `omit`. Text that was not streamed moves to an artifact then: nothing gets lost.
 *
 * With nothing to do the agent gets the core's run itself and this costs nothing.
 */
#include "backend/backend_int.h"
#include "base/limits.h"
#include "model/fold.h"
#include "model/reconcile.h"

#include <stdlib.h>

struct shaped {
    const dgm_inner *inner;
    void *agent;
    dgm_agent_options options;
    char *working_message;
    bool is_plain; /* events pass as they are, unless there was a task before */
};

struct shape {
    dgm_run run; /* the agent's; first, so that one is the other */
    dgm_run *outer;
    const struct shaped *shaped;
    bool as_message, as_task;
    /* as_message */
    dgm_fold *fold;
    bool answered;       /* the Message, or the Task in its place, was emitted */
    const char *failure; /* ... is reported when the run ends */
    /* both */
    dgm_text_pieces pieces;
    dgm_status_text *status_texts; /* answers in working statuses so far, in the run's arena */
    size_t n_status_texts, status_bytes;
    bool status_over; /* more than final_text_bytes: they are not repeated */
    /* all others */
    bool said_working; /* the working message was emitted */
    bool said_early;   /* before the agent's first event: its own first `working` is dropped */
    size_t n_texts;    /* text streams of artifacts so far */
    dgm_str text_id;   /* of the last one, in the run's arena */
    dgm_sum stream;    /* its text; of agents that leave the final text out */
    dgm_buf text;      /* the text itself, while there is one stream only and it is not too long */
};

static bool is_all_text(dgm_parts parts)
{
    for (size_t i = 0; i < parts.n; i++) {
        if (parts.at[i].kind != DGM_PART_TEXT)
            return false;
    }
    return parts.n > 0;
}

static dgm_code pass(struct shape *s, const dgm_event *event, dgm_err *err)
{
    return s->outer->ops->emit(s->outer, event, err);
}

/* ---- text in a status ------------------------------------------------------------------------------------- */

static bool shaped_is_answer(const struct shape *s, const dgm_message *m)
{
    yyjson_val *type = dgm_json_get(m->metadata, DGM_STR("canonical_type"));
    if (s->shaped->options.answer_in_status)
        return true;
    return yyjson_is_str(type) && (dgm_str_is(dgm_json_str(type), "TextMessageChunkEvent") ||
                                   dgm_str_is(dgm_json_str(type), "TextMessageEndEvent"));
}

static size_t status_open(void *arg, dgm_str message_id)
{
    struct shape *s = arg;
    size_t n = s->n_status_texts;
    (void)message_id;
    if ((n & (n - 1)) == 0) { /* a power of two: the list is full */
        size_t size = sizeof *s->status_texts;
        s->status_texts =
            dgm_arena_realloc(s->run.arena, s->status_texts, n * size, (n ? 2 * n : 1) * size);
    }
    s->status_texts[n] = (dgm_status_text){0};
    dgm_buf_init(&s->status_texts[n].text, DGM_MAX_FINAL_TEXT_BYTES);
    s->status_bytes += sizeof *s->status_texts;
    return s->n_status_texts++;
}

/* Together they stay below final_text_bytes. */
static void status_count(struct shape *s, size_t before, size_t after)
{
    s->status_bytes += after - before;
    s->status_over = s->status_over || s->status_bytes > DGM_MAX_FINAL_TEXT_BYTES;
}

static void status_add(void *arg, size_t i, dgm_str piece)
{
    struct shape *s = arg;
    size_t before = s->status_texts[i].text.n;
    dgm_status_text_add(&s->status_texts[i], piece);
    status_count(s, before, s->status_texts[i].text.n);
}

static void status_replace(void *arg, size_t i, dgm_str whole)
{
    struct shape *s = arg;
    size_t before = s->status_texts[i].text.n;
    dgm_status_text_set(&s->status_texts[i], whole);
    status_count(s, before, s->status_texts[i].text.n);
}

static void status_close(void *arg, size_t i)
{
    (void)arg;
    (void)i;
}

static void status_add_whole(void *arg, dgm_str message_id, dgm_str whole)
{
    status_replace(arg, status_open(arg, message_id), whole);
}

static size_t status_begins(void *arg, size_t i, dgm_str whole)
{
    return dgm_status_text_begins(&((struct shape *)arg)->status_texts[i], whole);
}

static dgm_text_sink status_sink(struct shape *s)
{
    return (dgm_text_sink){.open = status_open,
                           .add = status_add,
                           .replace = status_replace,
                           .close = status_close,
                           .add_whole = status_add_whole,
                           .begins = status_begins,
                           .arg = s};
}

static void status_free(struct shape *s)
{
    for (size_t i = 0; i < s->n_status_texts; i++)
        dgm_buf_done(&s->status_texts[i].text);
    s->n_status_texts = 0;
    dgm_text_pieces_done(&s->pieces);
}

/* Texts of several messages are joined by a blank line. False if there is no text or it is too long to repeat. */
static bool status_answer(struct shape *s, dgm_arena *a, dgm_str *ret_text)
{
    dgm_buf b;
    dgm_text_pieces_close(&s->pieces, status_sink(s));
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    for (size_t i = 0; i < s->n_status_texts && !s->status_over; i++) {
        dgm_str text = dgm_buf_str(&s->status_texts[i].text);
        s->status_over = s->status_texts[i].text.over;
        if (b.n && text.n)
            dgm_buf_add_lit(&b, "\n\n");
        dgm_buf_add_str(&b, text);
    }
    bool is_known = b.n > 0 && !b.over && !s->status_over;
    if (is_known)
        *ret_text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return is_known;
}

/* A chunk of an answer, or its End, which replaces the chunks: see model/text_pieces.h. */
static void watch_status(struct shape *s, const dgm_status *status)
{
    const dgm_message *m = status->message;
    if (status->state != DGM_STATE_WORKING || !m || !is_all_text(m->parts) ||
        !shaped_is_answer(s, m) || s->status_over)
        return;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_parts_text(m->parts, a);
    yyjson_val *type = dgm_json_get(m->metadata, DGM_STR("canonical_type"));
    if (yyjson_is_str(type) && dgm_str_is(dgm_json_str(type), "TextMessageEndEvent"))
        dgm_text_pieces_end(&s->pieces, status_sink(s), m->message_id, text);
    else
        dgm_text_pieces_chunk(&s->pieces, status_sink(s), m->message_id, text);
}

/* ---- one Message of everything --------------------------------------------------------------------------- */

static dgm_code collect(struct shape *s, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    if (!s->fold) {
        dgm_task task = {
            .id = s->run.input->task_id,
            .context_id = s->run.input->context_id,
            .status.state = DGM_STATE_SUBMITTED,
        };
        dgm_event begin = {.kind = DGM_EVENT_TASK, .task = &task};
        s->fold = dgm_fold_new((dgm_fold_options){.foreign = true, .keep_transitory = true});
        if ((rc = dgm_fold_add(s->fold, &begin, DGM_BY_AGENT, err)))
            return rc;
    }
    if (dgm_fold_cost_of(s->fold).copied > 2 * DGM_MAX_RECORD_BYTES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the answer is longer than the limit record_bytes of %zu: a Message has to "
                        "hold all of it",
                        DGM_MAX_RECORD_BYTES);
    return dgm_fold_add(s->fold, event, DGM_BY_AGENT, err);
}

/* Where the answer's parts come together. */
struct answer {
    dgm_arena *a;
    dgm_part *at;
    size_t n, cap;
};

static void shaped_add_part(struct answer *x, const dgm_part *part)
{
    if (x->n == x->cap) {
        size_t cap = x->cap ? 2 * x->cap : 8;
        x->at = dgm_arena_realloc(x->a, x->at, x->cap * sizeof *x->at, cap * sizeof *x->at);
        x->cap = cap;
    }
    x->at[x->n++] = *part;
}

/* Texts of several artifacts are set apart by a blank line. */
static void shaped_add_text(struct answer *x, dgm_str text, bool is_first)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    if (!is_first)
        part.content = dgm_arena_printf(x->a, "\n\n%.*s", DGM_P(text));
    shaped_add_part(x, &part);
}

static dgm_code answer_with_message(struct shape *s, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_task *task = s->fold ? dgm_fold_task(s->fold) : NULL;
    const dgm_message *said = task ? task->status.message : NULL;
    struct answer x = {.a = a};
    bool has_text = false;
    for (size_t i = 0; said && i < said->parts.n; i++) {
        has_text |= said->parts.at[i].kind == DGM_PART_TEXT;
        shaped_add_part(&x, &said->parts.at[i]);
    }
    dgm_str answer;
    if (!has_text && status_answer(s, a, &answer)) {
        shaped_add_text(&x, answer, true);
        has_text = true;
    }
    bool text_was_said = has_text;
    for (size_t i = 0; task && i < task->artifacts.n; i++) {
        dgm_parts parts = task->artifacts.at[i].parts;
        dgm_str text = dgm_parts_text(parts, a);
        if (text.n > 0 && !text_was_said) {
            shaped_add_text(&x, text, !has_text);
            has_text = true;
        }
        for (size_t k = 0; k < parts.n; k++) {
            if (parts.at[k].kind != DGM_PART_TEXT)
                shaped_add_part(&x, &parts.at[k]);
        }
    }
    if (x.n == 0)
        shaped_add_text(&x, DGM_STR(""), true); /* a Message has at least one part */
    dgm_message message = {
        .role = DGM_ROLE_AGENT,
        .parts = {x.at, x.n},
        .metadata = said ? said->metadata : NULL,
        .extensions = said ? said->extensions : (dgm_strs){0},
    };
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &message};
    dgm_code rc = pass(s, &event, err);
    s->answered = !rc;
    return rc;
}

static dgm_code tell_by_task(struct shape *s, const dgm_event *event, dgm_err *err)
{
    s->answered = true;
    return pass(s, event, err);
}

/* metadata.error, or the text of the agent's message. */
static void keep_failure(struct shape *s, const dgm_event *event)
{
    bool is_task = event->kind == DGM_EVENT_TASK;
    const dgm_json *metadata = is_task ? event->task->metadata : event->status->metadata;
    const dgm_message *said = is_task ? event->task->status.message : event->status->status.message;
    yyjson_val *error = dgm_json_get(metadata, DGM_STR("error"));
    dgm_str text = DGM_STR("the agent failed");
    if (yyjson_is_str(error))
        text = dgm_json_str(error);
    else if (said && is_all_text(said->parts))
        text = dgm_parts_text(said->parts, s->run.arena);
    s->failure = dgm_arena_dup(s->run.arena, text).p;
    s->answered = true;
}

static dgm_code emit_as_message(struct shape *s, const dgm_event *event, dgm_err *err)
{
    dgm_task_state state = DGM_STATE_UNKNOWN;
    dgm_code rc;
    if (s->answered)
        return DGM_OK;
    if (event->kind == DGM_EVENT_MESSAGE)
        return tell_by_task(s, event, err); /* it is one already */
    if (event->kind == DGM_EVENT_STATUS)
        state = event->status->status.state;
    else if (event->kind == DGM_EVENT_TASK)
        state = event->task->status.state;
    if (state == DGM_STATE_FAILED && s->outer->ops->refuse) {
        keep_failure(s, event);
        return DGM_OK;
    }
    if (dgm_state_is_terminal(state) && state != DGM_STATE_COMPLETED)
        return tell_by_task(s, event, err);
    if (event->kind == DGM_EVENT_STATUS)
        watch_status(s, &event->status->status);
    if ((rc = collect(s, event, err)))
        return rc;
    if (state == DGM_STATE_COMPLETED || dgm_state_is_interrupted(state))
        return answer_with_message(s, err);
    return DGM_OK;
}

/* ---- the working message --------------------------------------------------------------------------------- */

static dgm_code say_working(struct shape *s, dgm_err *err)
{
    s->said_working = true;
    return dgm_run_indicate(s->outer, s->shaped->options.working_message, err);
}

/* A working status or a task in an early state: with the working message in it. */
static dgm_code pass_with_indicator(struct shape *s, const dgm_event *event, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part part = dgm_status_indicator(a, s->shaped->options.working_message);
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_status_update update;
    dgm_task task;
    dgm_event changed = {.kind = event->kind, .extra = event->extra};
    if (event->kind == DGM_EVENT_STATUS) {
        update = *event->status;
        update.status.message = &message;
        changed.status = &update;
    } else {
        task = *event->task;
        task.status.state = DGM_STATE_WORKING;
        task.status.message = &message;
        changed.task = &task;
    }
    s->said_working = true;
    return pass(s, &changed, err);
}

/* The next three: true when the event was dealt with. */
static bool working_with_status(struct shape *s, const dgm_event *event, dgm_code *ret_rc,
                                dgm_err *err)
{
    const dgm_status_update *u = event->status;
    bool is_working = u->status.state == DGM_STATE_WORKING;
    bool is_bare = !u->status.message;
    if (s->said_early && is_bare && (is_working || u->status.state == DGM_STATE_SUBMITTED)) {
        s->said_early = !is_working;
        return !is_working || !u->metadata; /* no news */
    }
    if (s->said_working || !is_working)
        return false;
    s->said_working = true;
    if (is_bare)
        *ret_rc = pass_with_indicator(s, event, err);
    return is_bare;
}

static bool working_with_task(struct shape *s, const dgm_event *event, dgm_code *ret_rc,
                              dgm_err *err)
{
    const dgm_status *status = &event->task->status;
    if (!s->said_early || status->message || dgm_state_is_terminal(status->state) ||
        dgm_state_is_interrupted(status->state))
        return false;
    *ret_rc = pass_with_indicator(s, event, err); /* it must not go back to submitted */
    return true;
}

static bool with_working_message(struct shape *s, const dgm_event *event, dgm_code *ret_rc,
                                 dgm_err *err)
{
    *ret_rc = DGM_OK;
    if (event->kind == DGM_EVENT_STATUS)
        return working_with_status(s, event, ret_rc, err);
    if (event->kind == DGM_EVENT_TASK)
        return working_with_task(s, event, ret_rc, err);
    if (!s->said_working)
        *ret_rc = say_working(s, err); /* and then the event */
    return *ret_rc != DGM_OK;
}

/* ---- the final text -------------------------------------------------------------------------------------- */

static void add_text(struct shape *s, dgm_parts parts)
{
    for (size_t i = 0; i < parts.n; i++) {
        if (s->shaped->options.omit_final_text)
            dgm_sum_add(&s->stream, parts.at[i].content);
        else if (s->shaped->inner->lacks_final_text)
            dgm_buf_add_str(&s->text, parts.at[i].content);
    }
}

/* A run that was lost has sent the start of this text: it is in the task. */
static void resume_text(struct shape *s, const dgm_artifact_update *u)
{
    const dgm_task *task = s->run.input->task;
    for (size_t i = 0; s->run.input->is_resumed && task && i < task->artifacts.n; i++) {
        const dgm_artifact *a = &task->artifacts.at[i];
        if (!dgm_str_eq(a->artifact_id, u->artifact.artifact_id) || !is_all_text(a->parts))
            continue;
        s->n_texts = 1;
        s->text_id = dgm_arena_dup(s->run.arena, a->artifact_id);
        add_text(s, a->parts);
    }
}

static void watch_text(struct shape *s, const dgm_artifact_update *u)
{
    if (!is_all_text(u->artifact.parts))
        return;
    if (u->append == DGM_TRUE && s->n_texts == 0)
        resume_text(s, u);
    bool goes_on =
        u->append == DGM_TRUE && s->n_texts > 0 && dgm_str_eq(u->artifact.artifact_id, s->text_id);
    bool starts_over =
        u->append != DGM_TRUE && s->n_texts > 0 && dgm_str_eq(u->artifact.artifact_id, s->text_id);
    if (!goes_on) {
        s->n_texts += !starts_over;
        if (!starts_over)
            s->text_id = dgm_arena_dup(s->run.arena, u->artifact.artifact_id);
        s->stream = (dgm_sum){0};
        dgm_buf_clear(&s->text);
        s->text.over = false;
    }
    add_text(s, u->artifact.parts);
}

static dgm_code complete_without_text(struct shape *s, const dgm_status_update *u, dgm_err *err)
{
    const dgm_message *said = u->status.message;
    dgm_sum final = {0}, streamed = {0};
    dgm_code rc;
    for (size_t i = 0; i < said->parts.n; i++)
        dgm_sum_add(&final, said->parts.at[i].content);
    dgm_status_update bare = *u;
    bare.status.message = NULL;
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &bare};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str answer;
    bool by_status = s->n_texts == 0 && status_answer(s, a, &answer);
    if (by_status)
        dgm_sum_add(&streamed, answer);
    else
        streamed = s->stream;
    if (s->n_texts == 0 && !by_status &&
        (rc = dgm_run_artifact(s->outer, DGM_STR(DGM_ANSWER_ID), (dgm_str){0}, said->parts, err)))
        return rc;
    if ((s->n_texts > 0 || by_status) && !dgm_sum_eq(&final, &streamed))
        bare.status.message = u->status.message; /* its text differs from the streamed one */
    return pass(s, &event, err);
}

static dgm_code complete(struct shape *s, const dgm_event *event, dgm_err *err)
{
    const dgm_status_update *u = event->status;
    if (s->shaped->options.omit_final_text) {
        if (u->status.message && is_all_text(u->status.message->parts))
            return complete_without_text(s, u, err);
        return pass(s, event, err);
    }
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str answer = dgm_buf_str(&s->text);
    /* of the texts of several artifacts, it is not known which one is the answer */
    bool is_artifact =
        s->shaped->inner->lacks_final_text && s->n_texts == 1 && !s->text.over && answer.n;
    if (u->status.message || (!status_answer(s, a, &answer) && !is_artifact))
        return pass(s, event, err);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = answer};
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_status_update full = *u;
    full.status.message = &message;
    dgm_event changed = {.kind = DGM_EVENT_STATUS, .status = &full, .extra = event->extra};
    return pass(s, &changed, err);
}

/* ---- a Task of a Message --------------------------------------------------------------------------------- */

static dgm_code emit_shaped(struct shape *s, const dgm_event *event, dgm_err *err);

static dgm_code task_of_message(struct shape *s, const dgm_message *m, dgm_err *err)
{
    dgm_message said = *m;
    dgm_status_update working = {.status.state = DGM_STATE_WORKING};
    dgm_status_update done = {.status = {.state = DGM_STATE_COMPLETED, .message = &said}};
    dgm_artifact_update answer = {
        .artifact = {.artifact_id = DGM_STR(DGM_ANSWER_ID), .parts = m->parts},
        .append = DGM_FALSE,
        .last_chunk = DGM_TRUE,
    };
    const dgm_event events[] = {
        {.kind = DGM_EVENT_STATUS, .status = &working},
        {.kind = DGM_EVENT_ARTIFACT, .artifact = &answer},
        {.kind = DGM_EVENT_STATUS, .status = &done},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        dgm_code rc = emit_shaped(s, &events[i], err);
        if (rc)
            return rc;
    }
    return DGM_OK;
}

static dgm_code emit_shaped(struct shape *s, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    if (event->kind == DGM_EVENT_MESSAGE)
        return s->as_task ? task_of_message(s, event->message, err) : pass(s, event, err);
    if (s->shaped->options.working_message.n > 0 && with_working_message(s, event, &rc, err))
        return rc;
    if (event->kind == DGM_EVENT_ARTIFACT)
        watch_text(s, event->artifact);
    if (event->kind != DGM_EVENT_STATUS)
        return pass(s, event, err);
    if (event->status->status.state == DGM_STATE_COMPLETED)
        return complete(s, event, err);
    watch_status(s, &event->status->status);
    return pass(s, event, err);
}

/* ---- the run between ------------------------------------------------------------------------------------- */

static dgm_code on_emit(dgm_run *run, const dgm_event *event, dgm_err *err)
{
    struct shape *s = (struct shape *)run;
    return s->as_message ? emit_as_message(s, event, err) : emit_shaped(s, event, err);
}

static void on_end(dgm_run *run, const char *error)
{
    struct shape *s = (struct shape *)run;
    dgm_run *outer = s->outer;
    dgm_err err = {0};
    if (s->as_message && !s->answered && !error && !run->canceled && answer_with_message(s, &err))
        error = dgm_arena_dup(s->run.arena, dgm_str_from(err.msg)).p;
    if (s->as_message && !s->answered && error)
        s->failure = error;
    bool is_refused = s->failure && outer->ops->refuse;
    if (is_refused)
        dgm_fail(&err, DGM_INVALID_AGENT_RESPONSE, NULL, "%s", s->failure);
    dgm_fold_free(s->fold);
    status_free(s);
    dgm_buf_done(&s->text);
    /* s is gone with its arena */
    if (is_refused)
        outer->ops->refuse(outer, &err);
    else
        outer->ops->end(outer, error);
}

static bool on_is_full(const dgm_run *run)
{
    const struct shape *s = (const struct shape *)run;
    return s->outer->ops->is_full(s->outer);
}

static void on_note(dgm_run *run, dgm_str line)
{
    struct shape *s = (struct shape *)run;
    if (s->outer->ops->note)
        s->outer->ops->note(s->outer, line);
}

static void on_has_read(dgm_run *run)
{
    dgm_run_has_read(((struct shape *)run)->outer);
}

static void shape_report_fault(dgm_run *run, const dgm_run_fault *fault)
{
    struct shape *s = (struct shape *)run;
    dgm_run_report(s->outer, fault);
}

static void shape_remember(dgm_run *run, dgm_run_scope scope, dgm_str text,
                           void (*stored)(void *arg, dgm_code code), void *arg)
{
    dgm_run *outer = ((struct shape *)run)->outer;
    outer->ops->remember(outer, scope, text, stored, arg);
}

static void shape_recall(dgm_run *run, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                         void *arg)
{
    dgm_run *outer = ((struct shape *)run)->outer;
    outer->ops->recall(outer, scope, found, arg);
}

static uint64_t shape_review(dgm_run *run, uint64_t after, const dgm_task **ret_task,
                             void (*on_event)(void *arg, const dgm_event *event), void *arg)
{
    dgm_run *outer = ((struct shape *)run)->outer;
    *ret_task = NULL;
    return outer->ops->review ? outer->ops->review(outer, after, ret_task, on_event, arg) : 0;
}

static void shape_commit(dgm_run *run, void (*done)(void *arg, dgm_code code), void *arg)
{
    dgm_run *outer = ((struct shape *)run)->outer;
    outer->ops->commit(outer, done, arg);
}

static dgm_code shape_invoke(dgm_run *run, const dgm_run_invocation *what,
                             const dgm_run_invoked_handler *handler, dgm_run_invoked **ret_invoked,
                             dgm_err *err)
{
    dgm_run *outer = ((struct shape *)run)->outer;
    return outer->ops->invoke(outer, what, handler, ret_invoked, err);
}

#define SHAPE_OPS                                                                                  \
    .emit = on_emit, .end = on_end, .is_full = on_is_full, .note = on_note,                        \
    .has_read = on_has_read, .fault = shape_report_fault

static const dgm_run_ops shape_ops = {SHAPE_OPS, .remember = shape_remember, .recall = shape_recall,
                                      .review = shape_review};
/* Of an outer run that stores nothing. */
static const dgm_run_ops shape_ops_without_store = {SHAPE_OPS};

/* ---- from outside ---------------------------------------------------------------------------------------- */

dgm_code dgm_shaped_open(const dgm_inner *inner, const dgm_json *config,
                         const dgm_agent_options *options, void **ret_agent, dgm_err *err)
{
    void *agent = NULL;
    dgm_code rc = inner->open ? inner->open(config, options, &agent, err)
                              : dgm_settings_read(config, NULL, NULL, err);
    if (rc)
        return rc;
    struct shaped *x = dgm_xcalloc(1, sizeof *x);
    x->inner = inner;
    x->agent = agent;
    if (options)
        x->options = *options;
    size_t n = x->options.working_message.n;
    if (n > 0) {
        x->working_message = dgm_xmalloc(n);
        memcpy(x->working_message, x->options.working_message.p, n);
        x->options.working_message.p = x->working_message;
    }
    bool is_task = inner->has_only_tasks && x->options.reply == DGM_REPLY_TASK;
    x->is_plain = (x->options.reply == DGM_REPLY_AUTO || is_task) && !x->options.omit_final_text &&
                  !x->options.answer_in_status && n == 0 && !inner->lacks_final_text;
    *ret_agent = x;
    return DGM_OK;
}

void dgm_shaped_close(void *agent)
{
    struct shaped *x = agent;
    if (!x)
        return;
    if (x->inner->close)
        x->inner->close(x->agent);
    free(x->working_message);
    free(x);
}

/* The functions that the outer run has, too. Few agents commit and invoke others: only their runs have a table of their own. */
static const dgm_run_ops *shape_ops_for(struct shape *s)
{
    const dgm_run_ops *outer = s->outer->ops;
    bool stores = outer->remember && outer->recall;
    if (!s->shaped->inner->message)
        return stores ? &shape_ops : &shape_ops_without_store;
    dgm_run_ops *ops = dgm_new(s->run.arena, dgm_run_ops);
    *ops = stores ? shape_ops : shape_ops_without_store;
    ops->commit = outer->commit ? shape_commit : NULL;
    ops->invoke = outer->invoke ? shape_invoke : NULL;
    ops->cancel_invoked = outer->cancel_invoked;
    return ops;
}

void dgm_shaped_start(void *agent, dgm_run *run)
{
    struct shaped *x = agent;
    dgm_err err = {0};
    if (x->is_plain && !run->input->task) {
        x->inner->start(x->agent, run);
        return;
    }
    struct shape *s = dgm_new(run->arena, struct shape);
    s->run = *run;
    s->run.agent_data = NULL;
    s->outer = run;
    s->shaped = x;
    s->run.ops = shape_ops_for(s);
    s->as_task = x->options.reply == DGM_REPLY_TASK || run->input->task;
    s->as_message = x->options.reply == DGM_REPLY_MESSAGE && !s->as_task;
    s->stream = (dgm_sum){0};
    dgm_text_pieces_init(&s->pieces);
    dgm_buf_init(&s->text, DGM_MAX_FINAL_TEXT_BYTES);
    run->agent_data = s;
    /* The process before has shown it. */
    s->said_working = run->input->is_resumed && run->input->task &&
                      run->input->task->status.state == DGM_STATE_WORKING;
    if (s->as_task && x->options.working_message.n > 0 && !s->said_working) {
        s->said_early = true;
        if (say_working(s, &err)) {
            s->run.ops->end(&s->run, err.msg);
            return;
        }
    }
    x->inner->start(x->agent, &s->run);
}

void dgm_shaped_cancel(void *agent, dgm_run *run)
{
    struct shaped *x = agent;
    dgm_run *inner = run;
    if (!x->is_plain || run->input->task) {
        inner = &((struct shape *)run->agent_data)->run;
        inner->canceled = run->canceled;
        inner->suspended = run->suspended;
    }
    x->inner->cancel(x->agent, inner);
}

bool dgm_shaped_message(void *agent, dgm_run *run, const dgm_message *message,
                        const dgm_json *metadata)
{
    struct shaped *x = agent;
    if (!x->inner->message)
        return false;
    bool is_inner = x->is_plain && !run->input->task;
    return x->inner->message(x->agent, is_inner ? run : &((struct shape *)run->agent_data)->run,
                             message, metadata);
}

void dgm_shaped_prepare(void *agent, dgm_loops *loops)
{
    struct shaped *x = agent;
    if (x->inner->prepare)
        x->inner->prepare(x->agent, loops);
}

void dgm_shaped_retire(void *agent, bool wait)
{
    struct shaped *x = agent;
    if (x->inner->retire)
        x->inner->retire(x->agent, wait);
}

bool dgm_shaped_resumes(void *agent)
{
    struct shaped *x = agent;
    return !x->inner->resumes || x->inner->resumes(x->agent);
}

dgm_str dgm_shaped_describe(void *agent, dgm_arena *a)
{
    struct shaped *x = agent;
    return x->inner->describe ? x->inner->describe(x->agent, a) : (dgm_str){0};
}
