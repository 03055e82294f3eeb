/*
 * core/send.c - a message comes in: may it be accepted, where does it go, and when is its caller answered?
 *
 * A send may have to be answered in time, whatever the agent does (dgm_send.answer_ms):
 *
 *   its run has emitted nothing ──────────────► the run gets its task now
 *   it is a copy of a message like that ──────► likewise
 *   it waits for the task's run to end ───────► it is answered with the task as it is, and stays in the queue
 *
 * In every other case the answer waits for the store, not for an agent.
 *
 * A message to a task that works is offered to its run (dgm_backend.message). If the run accepts it, the message is a turn
 * of its own, without a run of its own: both turns end with the run. Else it waits in the queue.
 *
 * A caller may disconnect before there is a task. No client can find, read or stop a run without a task, so the run
 * ends when all callers that wait for its first event have left. A message that was sent several times has several
 * callers.
 */
#include "core/core_int.h"
#include "model/approval.h"
#include "model/form.h"

#include <stdlib.h>

/* Most messages never need it: those that become a task do, and those whose id was seen before. */
dgm_str dgm_call_content(struct call *c)
{
    if (c->send.content.p)
        return c->send.content;
    struct shard *s = &c->core->shards[dgm_loop_current()->index];
    dgm_message content = {
        .message_id = DGM_STR("-"), .role = c->send.message->role, .parts = c->send.message->parts};
    dgm_buf_clear(&s->scratch);
    dgm_writer w = {.out = &s->scratch, .format = DGM_FORMAT_A2A_10};
    dgm_shape_write(&w, &dgm_form_message, &content);
    dgm_str text = dgm_buf_str(&s->scratch);
    unsigned char digest[DGM_DIGEST_BYTES];
    if (text.n > DGM_CONTENT_BYTES) {
        dgm_content_digest(&s->sha256, text, digest);
        text = (dgm_str){(const char *)digest, sizeof digest};
    }
    return c->send.content = dgm_arena_dup(c->arena, text);
}

void dgm_send_mark_message(dgm_arena *a, dgm_owner owner, dgm_message *m)
{
    if (owner.principal.n)
        m->metadata =
            dgm_metadata_with_text(a, m->metadata, DGM_STR(DGM_META_PRINCIPAL), owner.principal);
    if (owner.tenant.n)
        m->metadata =
            dgm_metadata_with_text(a, m->metadata, DGM_STR(DGM_META_TENANT), owner.tenant);
    dgm_message_stamp(a, m);
}

/* ---- to a task ----------------------------------------------------------------------------------------------- */

static dgm_code send_check(const struct live *l, const struct call *c, dgm_err *err)
{
    const dgm_core_limits *max = &l->shard->limits;
    if (l->state == LIVE_BROKEN) {
        *err = *l->rare->store_fault;
        return err->code;
    }
    if (c->send.asked_context.n && !dgm_str_eq(c->send.asked_context, l->context_id))
        return dgm_fail(
            err, DGM_BAD_PARAMS, NULL,
            "the task belongs to another context: leave contextId out, or send the task's");
    if (dgm_state_is_terminal(l->task_state))
        return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL,
                        "the task has ended: send a message without its id, in the same context");
    if (l->shard->core->draining)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    if (l->run && l->rare->n_queued >= max->queued_messages)
        return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL,
                        "the task is working and %u messages wait for it: send it later",
                        l->rare->n_queued);
    if (l->log->bytes >= max->log_bytes || l->log->last >= max->log_records)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the log of the task is at its limit: send a message without its id, in "
                        "the same context");
    return DGM_OK;
}

/* As the log and the agent get it. */
static dgm_message send_fill_message(const struct live *l, const struct call *c, dgm_arena *a)
{
    dgm_message m = *c->send.message;
    m.context_id = l->context_id;
    m.task_id = l->id;
    dgm_send_mark_message(a, dgm_live_owner(l), &m);
    return m;
}

/* The message is its turn's first record, and in the Task that the caller sees first. */
static dgm_code send_append_message(struct live *l, struct call *c, dgm_message *m, dgm_arena *a,
                                    dgm_err *err)
{
    dgm_internal accepted = {.kind = DGM_INTERNAL_MESSAGE,
                             .task_id = l->id,
                             .message = m,
                             .timestamp = dgm_time_text(a, dgm_loop_unix_ms())};
    dgm_event taken = {.kind = DGM_EVENT_INTERNAL, .internal = &accepted};
    return dgm_live_start_turn(l, c, &taken, err);
}

/* The question is answered: clients that see an interrupted state at the start of a stream close it. */
static dgm_code send_end_question(struct live *l, dgm_arena *a, dgm_err *err)
{
    dgm_status_update update = {
        .task_id = l->id,
        .context_id = l->context_id,
        .status = {.state = DGM_STATE_WORKING, .timestamp = dgm_time_text(a, dgm_loop_unix_ms())}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    return dgm_state_is_interrupted(l->task_state) ? dgm_live_append(l, &event, DGM_BY_SERVER, err)
                                                   : DGM_OK;
}

/* The task with the message, and what follows. Returns the record that must be published before it is answered: by then
 * the message and the new state are stored. */
static uint64_t send_fill_answer(struct live *l, struct call *c)
{
    c->turn.context_id = dgm_arena_dup(c->arena, l->context_id);
    c->log = dgm_log_ref(l->log);
    c->after = l->log->last;
    if (!(c->snapshot = dgm_live_snapshot(l)))
        c->after = c->turn.first_seq - 1; /* too large to be shown: then from the message on */
    return l->log->last;
}

/* The answer to a request to sign in may be a credential: neither the log nor the agent gets it. A resend is recognised by
 * its digest. */
static void send_hide_auth_answer(struct live *l, struct call *c)
{
    unsigned char digest[DGM_DIGEST_BYTES];
    if (l->task_state != DGM_STATE_AUTH_REQUIRED || !l->agent->backend->hides_auth_answers)
        return;
    dgm_content_digest(&l->shard->sha256, dgm_call_content(c), digest);
    c->send.content = dgm_arena_dup(c->arena, (dgm_str){(const char *)digest, sizeof digest});
    *c->send.message = dgm_auth_answer_hidden(c->send.given, c->send.message);
    if (c->turn.request.n)
        c->turn.request = dgm_auth_request_hidden(c->arena, c->turn.request);
}

static void send_start_turn(struct live *l, struct call *c)
{
    dgm_err err = {0};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    send_hide_auth_answer(l, c);
    dgm_message message = send_fill_message(l, c, a);
    dgm_record *before = dgm_live_snapshot(l);
    if (send_append_message(l, c, &message, a, &err) || send_end_question(l, a, &err)) {
        dgm_record_unref(before);
        dgm_call_refuse(c, &err);
        return;
    }
    uint64_t visible = send_fill_answer(l, c);
    dgm_core_run_start(l->shard, c, l, before);
    dgm_resend_decided(l->shard, c, l);
    dgm_live_answer_when_published(l, c, visible);
}

/* ---- to a run that works -------------------------------------------------------------------------------------------- */

static bool may_offer(const struct live *l)
{
    const struct run *r = l->run;
    return r && r->agent->backend->message && r->is_started && !r->is_starting &&
           (r->state == RUN_TASK || r->state == RUN_EARLY_TASK) && !r->base.canceled &&
           l->state == LIVE_READY && !l->shard->core->stopping &&
           !dgm_state_is_terminal(l->task_state) && !dgm_state_is_interrupted(l->task_state);
}

/* The turn before ends here for the store, so that its records can be trimmed by whole rows. */
static void end_turn_before_join(struct live *l)
{
    l->turns.last.last_seq = l->log->last;
    l->write.turn = true;
    dgm_loop_at_turn_end(l->shard->loop, &l->write.flush); /* dgm_live_start_turn writes it now */
}

/* False: the run does not accept it. True: it has its turn, and will be answered. */
static bool send_join_run(struct live *l, struct call *c)
{
    dgm_err err = {0};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run *r = l->run;
    if (!may_offer(l))
        return false;
    dgm_message message = send_fill_message(l, c, a);
    if (!r->agent->backend->message(r->agent->agent, &r->base, &message, c->send.metadata))
        return false;
    dgm_deadline_stop(c);
    end_turn_before_join(l);
    if (send_append_message(l, c, &message, a, &err)) {
        dgm_call_refuse(c, &err);
        return true;
    }
    l->turns.items[l->turns.n - 1].is_joined = true;
    uint64_t visible = send_fill_answer(l, c);
    dgm_resend_decided(l->shard, c, l);
    dgm_live_answer_when_published(l, c, visible);
    return true;
}

void dgm_send_offer_queued(struct live *l)
{
    struct call *c;
    l->held++;
    while (may_offer(l) && (c = l->rare->queued)) {
        dgm_live_rare(l)->queued = c->next;
        c->send.queue = NULL;
        if (!send_join_run(l, c)) { /* it stays the first one */
            dgm_live_rare(l)->queued = c;
            c->send.queue = l;
            break;
        }
        dgm_live_rare(l)->n_queued--;
    }
    l->held--;
}

static void send_wait(struct live *l, struct call *c)
{
    struct call **at = &dgm_live_rare(l)->queued;
    while (*at)
        at = &(*at)->next;
    c->next = NULL;
    *at = c;
    dgm_live_rare(l)->n_queued++;
    c->send.queue = l;
    dgm_deadline_start(l->shard, c);
}

static void ignore_answer(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    (void)code, (void)sent, (void)err, (void)arg; /* it was answered early */
}

void dgm_send_answer_early(struct live *l, struct call *c)
{
    struct call *now = dgm_call_new(c->core, CALL_SEND, c->owner);
    now->home = c->home;
    now->on.sent = c->on.sent;
    now->arg = c->arg;
    c->on.sent = ignore_answer;
    now->task_id = dgm_arena_dup(now->arena, l->id);
    now->turn.context_id = dgm_arena_dup(now->arena, l->context_id);
    now->log = dgm_log_ref(l->log);
    now->after = l->log->last;
    if (!(now->snapshot = dgm_live_snapshot(l)))
        now->after = l->log->first_seq - 1;
    dgm_live_answer_when_published(l, now, l->log->last);
}

void dgm_send_to_task(struct live *l, struct call *c)
{
    dgm_err err = {0};
    if (c->send.is_resend) {
        dgm_resend_answer(l, c);
        return;
    }
    if (dgm_resend_attach(l, c))
        return;
    if (send_check(l, c, &err)) {
        dgm_call_refuse(c, &err);
        return;
    }
    if (l->rare->share && !dgm_share_may_write(l, c))
        return;
    if (l->run && !l->rare->queued && send_join_run(l, c)) /* messages do not overtake others */
        return;
    if (c->send.joins_run) {
        dgm_call_refuse_with(c, DGM_UNSUPPORTED_OPERATION,
                             "the task does not accept messages while it works");
        return;
    }
    if (!l->run) {
        l->held++; /* what is written before the turn begins may be refused */
        send_start_turn(l, c);
        l->held--;
        return;
    }
    send_wait(l, c);
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

struct deadline {
    dgm_timer timer;
    dgm_loop_stop stop;
    struct shard *shard;
    struct call *call;
};

void dgm_deadline_stop(struct call *c)
{
    struct deadline *d = dgm_take(c->send.deadline);
    if (!d)
        return;
    dgm_loop_off_stop(d->shard->loop, &d->stop);
    dgm_timer_close(&d->timer, free, d);
}

static void end_at_stop(void *arg)
{
    struct deadline *d = arg;
    dgm_deadline_stop(d->call);
}

static void deadline_passed(void *arg)
{
    struct deadline *d = arg;
    struct call *c = d->call,
                *first = c->send.waits_for ? dgm_resend_first_of(c->send.waits_for) : c;
    struct live *l = c->send.queue;
    dgm_deadline_stop(c);
    if (l) {
        l->held++;
        dgm_send_answer_early(l, c);
        l->held--;
        return;
    }
    if (!first)
        return;
    first->send.is_late = true; /* if the store has not answered yet whether the message is new */
    if (first->send.run)
        dgm_core_run_make_task(first->send.run);
}

void dgm_deadline_start(struct shard *s, struct call *c)
{
    if (!c->send.answer_ms || c->send.deadline)
        return;
    struct deadline *d = c->send.deadline = dgm_xcalloc(1, sizeof *d);
    d->shard = s;
    d->call = c;
    dgm_timer_init(s->loop, &d->timer, deadline_passed, d);
    dgm_timer_start(&d->timer, c->send.answer_ms);
    d->stop = (dgm_loop_stop){.fn = end_at_stop, .arg = d};
    dgm_loop_on_stop(s->loop, &d->stop);
}

/* ---- callers that leave ------------------------------------------------------------------------------------------ */

struct leaving {
    dgm_core *core;
    uint64_t number;
};

static bool all_callers_left(const struct call *first)
{
    for (const struct call *c = dgm_resend_copies_of(first); c; c = c->next) {
        if (!c->send.has_left)
            return false;
    }
    return first->send.has_left;
}

/* Messages without an id that is remembered are only known by their runs. */
static struct call *find_send(struct shard *s, uint64_t number, struct call **ret_first)
{
    struct call *c = dgm_resend_find(s, number, ret_first);
    for (struct run *r = s->runs; !c && r; r = r->next) {
        if (r->caller && r->caller->send.number == number)
            c = *ret_first = r->caller;
    }
    return c;
}

static void handle_caller_left(void *arg)
{
    struct leaving *l = arg;
    struct shard *s = &l->core->shards[l->number % DGM_MAX_LOOPS];
    struct call *first = NULL, *c = find_send(s, l->number, &first);
    free(l);
    if (!c)
        return; /* it was decided before */
    c->send.has_left = true;
    if (first && first->send.run && all_callers_left(first))
        dgm_core_run_abandon(first->send.run);
}

void dgm_core_caller_left(dgm_core *core, uint64_t sent)
{
    if (!sent)
        return;
    struct leaving *l = dgm_xmalloc(sizeof *l);
    *l = (struct leaving){core, sent};
    dgm_loop_post(core->shards[sent % DGM_MAX_LOOPS].loop, handle_caller_left, l);
}
