/*
 * backend/a2a/a2a_job.c - one run of a remote agent: which request follows which.
 *
 *   recall ─► card ─► send ──► events ... the task ends or asks: so does ours
 *                      │ the stream ends before that
 *                      ▼
 *               subscribe (if the server has it) ─► GetTask decides ─► GetTask again, while it works
 *
 * The id of the remote task is stored before any client sees an event of it (dgm_run_ops.remember), so that a run that goes on
 * after a restart follows the same task. A message whose sending failed in a way that it may have arrived is not sent again, unless the agent
 * recognises ids of messages (setting `resend`).
 */
#include "backend/a2a/a2a_int.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

static void job_after_call(struct a2a_job *j, const dgm_remote_end *end);
static void job_get_card(struct a2a_job *j);
static void job_request(struct a2a_job *j, dgm_method method, enum a2a_step step);

/* ---- the end --------------------------------------------------------------------------------------------------------------- */

static void job_on_timer_closed(void *arg)
{
    struct a2a_job *j = arg;
    if (--j->n_closing)
        return;
    dgm_a2a_show_done(&j->show);
    dgm_a2a_card_unref(j->card);
    dgm_buf_done(&j->last_event);
    dgm_a2a_answers_done(&j->answers);
    dgm_arena_free(j->arena); /* j lives in it */
}

static void job_drop_calls(struct a2a_job *j)
{
    if (j->call)
        dgm_remote_cancel(j->call);
    if (j->fetch)
        dgm_a2a_card_fetch_cancel(j->fetch);
    j->call = NULL;
    j->fetch = NULL;
    dgm_timer_stop(&j->timer);
}

static void job_finish(struct a2a_job *j, const char *error)
{
    dgm_run *run = j->run;
    if (j->call && !error)
        dgm_remote_release(dgm_take(j->call));
    job_drop_calls(j);
    j->step = A2A_ENDED;
    dgm_loop_off_stop(run->loop, &j->stop);
    j->n_closing = 3;
    dgm_timer_close(&j->timer, job_on_timer_closed, j);
    dgm_timer_close(&j->limit, job_on_timer_closed, j);
    dgm_timer_close(&j->show.hold, job_on_timer_closed, j);
    run->ops->end(run, error);
}

/* A state of ours that ends the task. */
static void job_settle(struct a2a_job *j, dgm_task_state state, const char *error)
{
    dgm_err err = {0};
    dgm_code rc = dgm_a2a_show_close_texts(&j->show, &err);
    if (!rc && state == DGM_STATE_FAILED)
        rc = dgm_run_fail(j->run, dgm_str_from(error), &err);
    else if (!rc)
        rc = dgm_run_status(j->run, state, (dgm_str){0}, &err);
    job_finish(j, !rc ? NULL : error ? error : dgm_arena_dup(j->arena, dgm_str_from(err.msg)).p);
}

static void job_fail(struct a2a_job *j, const char *what)
{
    dgm_run_report(j->run, &(dgm_run_fault){.what = dgm_str_from(what), .detail = DGM_STR("")});
    job_settle(j, DGM_STATE_FAILED, what);
}

static void job_on_stop(void *arg)
{
    job_finish(arg, DGM_SHUTTING_DOWN);
}

/* ---- canceling ------------------------------------------------------------------------------------------------------------- */

/* Is note.task the task that our message went to? */
static bool job_knows_task(const struct a2a_job *j)
{
    return j->note.task.n && (j->continues || dgm_str_eq(j->note.message, j->message_id));
}

static void job_settle_canceled(struct a2a_job *j)
{
    if (j->failure)
        job_fail(j, j->failure);
    else
        job_settle(j, DGM_STATE_CANCELED, NULL);
}

static void job_cancel_remote(struct a2a_job *j)
{
    job_drop_calls(j);
    dgm_timer_start(&j->limit, A2A_CANCEL_MS);
    job_request(j, DGM_METHOD_CANCEL, A2A_CANCEL);
}

void dgm_a2a_cancel(void *agent, dgm_run *run)
{
    struct a2a_job *j = run->agent_data;
    (void)agent;
    if (run->suspended) { /* the remote task goes on, and the next process follows it again */
        job_finish(j, NULL);
        return;
    }
    j->is_canceling = true;
    j->failure = NULL;
    if (j->step == A2A_CANCEL)
        return;
    if (j->card && job_knows_task(j))
        job_cancel_remote(j);
    else if (j->step == A2A_SEND || (run->input->is_resumed && !j->card))
        dgm_timer_start(&j->limit, A2A_CANCEL_MS); /* until the agent's task is known */
    else
        job_settle_canceled(j);
}

static void job_on_limit(void *arg)
{
    struct a2a_job *j = arg;
    if (j->is_canceling || j->step == A2A_CANCEL) {
        job_settle_canceled(j);
        return;
    }
    j->failure = dgm_arena_printf(j->arena, "the agent took longer than %g seconds",
                                  j->agent->set.remote.timeout)
                     .p;
    if (j->card && job_knows_task(j))
        job_cancel_remote(j);
    else
        job_fail(j, j->failure);
}

/* ---- requests --------------------------------------------------------------------------------------------------------------- */

static void job_on_item(void *user, const dgm_frames_item *item);
static void job_on_end(void *user, const dgm_remote_end *end);

static void job_request(struct a2a_job *j, dgm_method method, enum a2a_step step)
{
    const char *error = dgm_a2a_request(
        j, method, step,
        (dgm_remote_handler){.on_item = job_on_item, .on_end = job_on_end, .user = j});
    if (error)
        job_fail(j, error);
}

static void job_send(struct a2a_job *j)
{
    bool streams = j->card->streams && !j->no_stream;
    job_request(j, streams ? DGM_METHOD_STREAM : DGM_METHOD_SEND, A2A_SEND);
}

static void job_get(struct a2a_job *j)
{
    job_request(j, DGM_METHOD_GET, A2A_GET);
}

/* The stream is over and the task is not, as far as we know. */
static void job_follow(struct a2a_job *j)
{
    dgm_a2a_show_reconnected(&j->show);
    if (j->no_subscribe || !j->card->streams)
        job_get(j);
    else
        job_request(j, DGM_METHOD_SUBSCRIBE, A2A_FOLLOW);
}

static void job_wait(struct a2a_job *j, enum a2a_step next)
{
    j->step = A2A_WAIT;
    j->next = next;
    dgm_timer_start(&j->timer, j->wait_ms);
    j->wait_ms = j->wait_ms * 8 / 5 < A2A_POLL_MAX_MS ? j->wait_ms * 8 / 5 : A2A_POLL_MAX_MS;
}

/* Tries again for a while. */
static void job_lost(struct a2a_job *j, const char *why, enum a2a_step next)
{
    uint64_t now = uv_now(&j->run->loop->uv);
    if (!j->lost_since)
        j->lost_since = now;
    if ((double)(now - j->lost_since) >= j->agent->set.reconnect_timeout * 1000)
        job_fail(j, dgm_arena_printf(j->arena, "the connection to the agent was lost: %s", why).p);
    else
        job_wait(j, next);
}

static void job_on_timer(void *arg)
{
    struct a2a_job *j = arg;
    switch (j->next) {
    case A2A_SEND: job_send(j); break;
    case A2A_FOLLOW: job_follow(j); break;
    case A2A_CARD: job_get_card(j); break;
    default: job_get(j); break;
    }
}

/* ---- what is stored about the remote task ---------------------------------------------------------------------------------- */

static void job_on_stored(void *arg, dgm_code code)
{
    struct a2a_job *j = arg;
    if (code)
        dgm_run_note(j->run, "the id of the remote task could not be stored");
}

/* A new context id there: for the next tasks of ours in this context. */
static void job_learn_context(struct a2a_job *j, dgm_str context)
{
    if (!context.n || context.n > DGM_MAX_ID_BYTES || dgm_str_eq(context, j->note.context))
        return;
    j->note.context = dgm_arena_dup(j->arena, context);
    if (j->run->ops->remember)
        j->run->ops->remember(j->run, DGM_RUN_CONTEXT,
                              dgm_a2a_write_note(j->answers.arena,
                                                 &(struct a2a_note){.context = j->note.context},
                                                 NULL),
                              NULL, NULL);
}

/* Which task our message went to. */
static void job_learn_task(struct a2a_job *j, const dgm_a2a_answer *answer)
{
    dgm_str id = answer->task_id;
    if (j->step != A2A_SEND || answer->event.kind == DGM_EVENT_MESSAGE || !id.n ||
        id.n > DGM_MAX_ID_BYTES ||
        (dgm_str_eq(id, j->note.task) && dgm_str_eq(j->note.message, j->message_id)))
        return;
    j->note.task = dgm_arena_dup(j->arena, id);
    j->note.message = j->message_id;
    j->note.request = (dgm_str){0}; /* it arrived */
    if (!j->is_canceling && j->run->ops->remember)
        j->run->ops->remember(j->run, DGM_RUN_TASK,
                              dgm_a2a_write_note(j->answers.arena, &j->note, j->peer),
                              job_on_stored, j);
}

/* ---- answers ---------------------------------------------------------------------------------------------------------------- */

/* For each event of a stream: its texts are hundreds of bytes, which only a failure sets. */
static inline void job_clear(dgm_err *err)
{
    err->code = DGM_OK;
    err->at[0] = err->msg[0] = '\0';
    err->line = err->column = 0;
}

static dgm_task_state state_of_event(const dgm_event *e)
{
    return e->kind == DGM_EVENT_TASK     ? e->task->status.state
           : e->kind == DGM_EVENT_STATUS ? e->status->status.state
                                         : DGM_STATE_UNKNOWN;
}

/* A Message is complete. */
static void job_handle_message(struct a2a_job *j, const dgm_message *m)
{
    dgm_err err = {0};
    dgm_message own = dgm_a2a_show_clean(m);
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &own};
    dgm_code rc = own.parts.n ? dgm_a2a_show_close_texts(&j->show, &err) : DGM_OK;
    if (!own.parts.n) {
        job_fail(j, "the agent answered with a message that has no parts");
        return;
    }
    if (!rc)
        rc = j->run->ops->emit(j->run, &event, &err);
    if (rc)
        job_fail(j, dgm_arena_printf(j->arena, "the agent's answer cannot be used: %s", err.msg).p);
    else
        job_finish(j, NULL);
}

static void job_handle_event(struct a2a_job *j, const dgm_event *e)
{
    dgm_err err;
    dgm_task_state state = state_of_event(e);
    bool is_first = j->is_first;
    job_clear(&err);
    j->is_first = false;
    if (e->kind == DGM_EVENT_MESSAGE) {
        job_handle_message(j, e->message);
        return;
    }
    /* the first event of a stream may be the task as it was before it got our message */
    if (is_first && e->kind == DGM_EVENT_TASK && j->step == A2A_SEND && j->continues &&
        !j->is_alone && dgm_state_is_interrupted(state))
        return;
    if (dgm_a2a_show_event(&j->show, e, &err)) {
        dgm_run_note(j->run, "%s: %s", err.at, err.msg);
        job_fail(j, dgm_arena_printf(j->arena, "the agent's answer cannot be used: %s", err.msg).p);
    } else if (dgm_state_is_terminal(state) || dgm_state_is_interrupted(state)) {
        job_finish(j, NULL);
    }
}

static void job_handle_text(struct a2a_job *j, dgm_str text)
{
    const dgm_a2a_answer *answer;
    dgm_err err;
    job_clear(&err);
    if (dgm_a2a_answers_read(&j->answers, j->peer->codec, &j->mint, text, &answer, &err)) {
        j->bad =
            dgm_arena_printf(j->arena, "the answer of the agent's server cannot be read: %s%s%s",
                             err.msg, err.at[0] ? " at " : "", err.at)
                .p;
        return;
    }
    if (answer->error) {
        j->peer_error = dgm_a2a_error_sentence(j->arena, answer->error);
        j->peer_code = answer->error->code ? answer->error->code : DGM_INTERNAL;
        return;
    }
    if (j->step == A2A_CANCEL)
        return;
    job_learn_context(j, answer->context_id);
    job_learn_task(j, answer);
    if (j->is_canceling && job_knows_task(j)) {
        job_cancel_remote(j);
        return;
    }
    j->n_items++;
    j->lost_since = 0;
    if (!j->is_alone)
        j->wait_ms = A2A_POLL_MIN_MS;
    job_handle_event(j, &answer->event);
}

static void job_on_item(void *user, const dgm_frames_item *item)
{
    struct a2a_job *j = user;
    if (item->done || j->step == A2A_ENDED)
        return;
    if (j->bad || j->peer_error) { /* more behind it: it was not the end of a broken stream */
        dgm_remote_end end = {.error = j->bad, .status = 200, .is_stream = true};
        job_drop_calls(j);
        job_after_call(j, &end);
        return;
    }
    j->is_alone = item->alone;
    if (item->sse_id.n && item->sse_id.n <= DGM_MAX_ID_BYTES) {
        dgm_buf_clear(&j->last_event);
        dgm_buf_add_str(&j->last_event, item->sse_id);
    }
    job_handle_text(j, item->text);
}

static void job_on_end(void *user, const dgm_remote_end *end)
{
    struct a2a_job *j = user;
    j->call = NULL;
    if (end->end == DGM_FETCH_STOPPED)
        job_finish(j, DGM_SHUTTING_DOWN);
    else
        job_after_call(j, end);
}

/* ---- after a call ------------------------------------------------------------------------------------------------------------ */

/* The error of an answer, by its body, its status or its bytes; NULL: it has none. */
static const char *job_error(struct a2a_job *j, const dgm_remote_end *end)
{
    dgm_peer_error *e;
    if (j->peer_error)
        return j->peer_error;
    if (end->status && (end->status < 200 || end->status > 299) &&
        (e = dgm_a2a_error_of(j->arena, j->peer->codec, end->body)) && e->message.n) {
        j->peer_code = e->code;
        return dgm_arena_printf(j->arena, "%s (%.*s)", end->error,
                                (int)(e->message.n < 300 ? e->message.n : 300), e->message.p)
            .p;
    }
    if (end->error)
        return dgm_arena_dup(j->arena, dgm_str_from(end->error)).p;
    return j->bad;
}

/* The settings or the agent may have changed since the card was fetched. */
static bool job_try_new_card(struct a2a_job *j)
{
    if (!j->card_was_cached || j->agent->set.card == 1)
        return false;
    dgm_a2a_card_expire(j->card);
    dgm_a2a_card_unref(j->card);
    j->card = NULL;
    j->card_was_cached = false;
    job_get_card(j);
    return true;
}

/* The card's next interface, for this run and those after it. */
static void job_use_next_interface(struct a2a_job *j)
{
    size_t next = ((size_t)(j->peer - j->card->peers) + 1) % j->card->n_peers;
    j->peer = &j->card->peers[next];
    atomic_store(&j->card->preferred, next);
}

/* The message did not get to this interface, for certain. false: every one was tried. */
static bool job_try_next_interface(struct a2a_job *j, const char *why)
{
    if (++j->n_refused >= j->card->n_peers)
        return false;
    if (!j->refusal)
        j->refusal = why;
    job_use_next_interface(j);
    dgm_run_note(j->run, "%s: the next interface of the agent card is used, %.*s", why,
                 DGM_P(j->peer->url));
    j->no_stream = false;
    job_send(j);
    return true;
}

/* A request that only reads failed without an answer: the next one goes to another interface. */
static void job_avoid_interface(struct a2a_job *j, const dgm_remote_end *end)
{
    if (end->error && !end->status && j->card->n_peers > 1)
        job_use_next_interface(j);
}

static void job_doubt(struct a2a_job *j, const char *why)
{
    if (j->agent->set.resend && j->n_resent < j->agent->set.remote.retries) {
        j->n_resent++;
        job_wait(j, A2A_SEND);
        return;
    }
    job_fail(j, dgm_arena_printf(
                    j->arena,
                    "%s: the message may have been received, therefore it was not sent again", why)
                    .p);
}

/* The message got no answer, or an error. */
static void job_after_failed_send(struct a2a_job *j, const dgm_remote_end *end)
{
    const char *error = job_error(j, end);
    bool is_refused = end->status == 404 || end->status == 405 || end->status == 410;
    if ((j->peer_code == DGM_UNSUPPORTED_OPERATION || j->peer_code == DGM_NO_SUCH_METHOD) &&
        j->card->streams && !j->no_stream) {
        j->no_stream = true;
        job_send(j);
        return;
    }
    bool is_unsent = end->error && !end->status && !end->may_be_received;
    /* a task that is not found is no reason to look elsewhere */
    bool is_no_task = j->continues && j->peer_code == DGM_TASK_NOT_FOUND;
    if (!j->peer_error && (is_refused || is_unsent) &&
        (job_try_new_card(j) || (!is_no_task && job_try_next_interface(j, error))))
        return;
    dgm_a2a_card_expire(j->card);
    if (j->refusal && error)
        error = dgm_arena_printf(j->arena, "%s; another interface of the agent card: %s",
                                 j->refusal, error)
                    .p;
    if (!error)
        job_fail(j, "the agent's server ended its answer without a task or a message");
    else if (!j->peer_error && end->may_be_received && (end->is_cut || !end->status))
        job_doubt(j, error);
    else
        job_fail(j, error);
}

static void job_after_send(struct a2a_job *j, const dgm_remote_end *end)
{
    if (!dgm_str_eq(j->note.message, j->message_id)) {
        job_after_failed_send(j, end);
        return;
    }
    if (j->peer_error)
        j->pending = j->peer_error;
    if (end->is_stream && !j->pending)
        job_follow(j);
    else if (j->pending || end->error || j->bad)
        job_get(j);
    else
        job_wait(j, A2A_GET);
}

static void job_after_follow(struct a2a_job *j, const dgm_remote_end *end)
{
    const char *error = job_error(j, end);
    bool is_lost = end->error && (!end->status || end->is_cut);
    if (is_lost && !j->n_items) {
        job_avoid_interface(j, end);
        job_lost(j, error, A2A_FOLLOW);
        return;
    }
    if (is_lost || j->n_items > 1) { /* it went on for a while */
        job_wait(j, A2A_FOLLOW);
        return;
    }
    if (end->status != 429 && end->status < 500)
        j->no_subscribe = true;
    job_get(j);
}

static void job_after_get(struct a2a_job *j, const dgm_remote_end *end)
{
    const char *error = job_error(j, end);
    bool is_final = j->peer_code && j->peer_code != DGM_INTERNAL &&
                    j->peer_code != DGM_UNAVAILABLE && j->peer_code != DGM_RATE_LIMITED;
    if (end->status >= 400 && end->status < 500 && end->status != 408 && end->status != 429)
        is_final = true;
    if (error && (is_final || j->pending)) {
        job_fail(
            j,
            j->pending
                ? j->pending
                : dgm_arena_printf(j->arena, "the task of the agent cannot be read: %s", error).p);
    } else if (error || !j->n_items) {
        job_avoid_interface(j, end);
        job_lost(j, error ? error : "the answer is empty", A2A_GET);
    } else if (j->pending) {
        job_fail(j, j->pending);
    } else {
        job_wait(j, A2A_GET);
    }
}

static void job_after_call(struct a2a_job *j, const dgm_remote_end *end)
{
    if (j->is_canceling || j->step == A2A_CANCEL) {
        job_settle_canceled(j);
        return;
    }
    switch (j->step) {
    case A2A_SEND: job_after_send(j, end); break;
    case A2A_FOLLOW: job_after_follow(j, end); break;
    case A2A_GET: job_after_get(j, end); break;
    default: break;
    }
}

/* ---- before the message is sent -------------------------------------------------------------------------------------------- */

static void job_on_request_stored(void *arg, dgm_code code)
{
    struct a2a_job *j = arg;
    if (code)
        dgm_run_note(j->run, "the metadata of the message could not be stored");
    if (j->step == A2A_CARD) /* it was not canceled */
        job_send(j);
}

/* For the first time. A message that may be sent again after a restart needs all that belongs to it; the core stores the
 * message itself. */
static void job_send_first(struct a2a_job *j)
{
    struct a2a_note note = j->note;
    dgm_str text = {0};
    note.request = j->message_id;
    note.metadata = j->metadata;
    note.output_modes = j->output_modes;
    if (j->agent->set.resend && j->run->ops->remember && (j->metadata || j->output_modes.n))
        text = dgm_a2a_write_note(j->answers.arena, &note, j->peer);
    if (text.n)
        j->run->ops->remember(j->run, DGM_RUN_TASK, text, job_on_request_stored, j);
    else
        job_send(j);
}

static void job_send_again(struct a2a_job *j)
{
    if (dgm_str_eq(j->note.request, j->message_id)) {
        j->metadata = j->note.metadata;
        j->output_modes = j->note.output_modes;
    }
    job_send(j);
}

/* The interface is known. */
static void job_begin(struct a2a_job *j)
{
    j->peer = &j->card->peers[atomic_load(&j->card->preferred)];
    j->n_refused = 0;
    bool is_known = j->note.task.n && dgm_str_eq(j->note.message, j->message_id);
    j->continues = j->run->input->task && j->note.task.n && !is_known;
    if (j->is_canceling && is_known) {
        job_cancel_remote(j);
    } else if (j->is_canceling) {
        job_settle_canceled(j);
    } else if (!j->run->input->is_resumed) {
        job_send_first(j);
    } else if (is_known) {
        job_follow(j);
    } else if (j->agent->set.resend) {
        job_send_again(j);
    } else {
        job_fail(j, "the server was restarted before the agent had named its task: the message may "
                    "have been received, therefore it was not sent again");
    }
}

static void job_on_card(void *arg, struct a2a_card *card, const char *error)
{
    struct a2a_job *j = arg;
    j->fetch = NULL;
    j->card = card;
    if (card)
        job_begin(j);
    else if (j->run->loop->stopping)
        job_finish(j, DGM_SHUTTING_DOWN);
    else if (j->run->input->is_resumed) /* both may have been restarted */
        job_lost(j, dgm_arena_dup(j->arena, dgm_str_from(error)).p, A2A_CARD);
    else
        job_fail(j, dgm_arena_dup(j->arena, dgm_str_from(error)).p);
}

static void job_get_card(struct a2a_job *j)
{
    j->step = A2A_CARD;
    j->card = dgm_a2a_card_cached(j->agent);
    if (j->card) {
        j->card_was_cached = true;
        job_begin(j);
        return;
    }
    struct a2a_fetch *fetch = dgm_a2a_card_fetch(j->agent, j->run, job_on_card, j);
    if (fetch)
        j->fetch = fetch;
}

static void job_on_context(void *arg, dgm_str text)
{
    struct a2a_job *j = arg;
    j->note.context = dgm_a2a_read_note(j->arena, text).context;
    job_get_card(j);
}

static void job_recall_context(struct a2a_job *j)
{
    if (!j->note.context.n && j->run->ops->recall)
        j->run->ops->recall(j->run, DGM_RUN_CONTEXT, job_on_context, j);
    else
        job_get_card(j);
}

static void job_on_task(void *arg, dgm_str text)
{
    struct a2a_job *j = arg;
    j->note = dgm_a2a_read_note(j->arena, text);
    job_recall_context(j);
}

void dgm_a2a_start(void *agent, dgm_run *run)
{
    struct a2a_agent *x = agent;
    dgm_arena *a = dgm_arena_new();
    struct a2a_job *j = dgm_new(a, struct a2a_job);
    j->arena = a;
    dgm_a2a_answers_init(&j->answers);
    j->run = run;
    j->agent = x;
    j->wait_ms = A2A_POLL_MIN_MS;
    j->mint.seed[0] = dgm_hash(1, run->input->task_id.p, run->input->task_id.n);
    j->mint.seed[1] = uv_hrtime() ^ (uint64_t)(uintptr_t)j;
    dgm_buf_init(&j->last_event, DGM_MAX_ID_BYTES);
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timer, job_on_timer, j);
    dgm_timer_init(run->loop, &j->limit, job_on_limit, j);
    dgm_a2a_show_init(&j->show, run, a, x);
    j->stop = (dgm_loop_stop){.fn = job_on_stop, .arg = j};
    dgm_loop_on_stop(run->loop, &j->stop);
    dgm_timer_start(&j->limit, (uint64_t)(x->set.remote.timeout * 1000));
    dgm_a2a_copy_message(j);
    dgm_run_has_read(run);
    if ((run->input->task || run->input->is_resumed) && run->ops->recall)
        run->ops->recall(run, DGM_RUN_TASK, job_on_task, j);
    else
        job_recall_context(j);
}
