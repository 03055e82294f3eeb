/*
 * core/run.c - one execution of an agent for one turn.
 *
 *   UNDECIDED ── message, refuse ──► ANSWERED: with a Message or an error, without a task; nothing may follow
 *       ├─────── any other event ──► TASK: created and stored; from here on every event is a record of its log
 *       ├─────── time is up ───────► EARLY_TASK: created before the agent's first event, which makes it TASK
 *       └─────── the caller left ──► ABANDONED: events are ignored; becomes ANSWERED when the agent has stopped
 *
 * Each of them ends as ENDED. The first event decides; nothing is streamed or stored before it. A run of a task that
 * exists starts as TASK. A Message answer is one record in a log of its own (of a send that wants a task: that task,
 * completed with the Message).
 */
#include "base/ids.h"
#include "core/core_int.h"

#include <assert.h>
#include <stdlib.h>

#define X(state, name, may_become) name,
static const char *const run_state_names[] = {RUN_STATES(X)};
#undef X
#define X(state, name, may_become) [state] = (may_become),
static const uint16_t run_may_become[] = {RUN_STATES(X)};
#undef X
const dgm_machine dgm_core_run_machine = {.name = "run",
                                          .states = run_state_names,
                                          .may_become = run_may_become,
                                          .n = N_RUN_STATES,
                                          .is_of_task = true};

/* The only writer of r->state. */
static void run_set_state(struct run *r, enum run_state to)
{
    dgm_loop_trace(r->shard->loop, &dgm_core_run_machine, dgm_trace_task_object(r->input.task_id),
                   r->state, to);
    r->state = to;
}

/* Its scratch is the shard's spare arena. One event is dealt with at a time on a loop, except that a Message answer may
 * start the next copy of its message: then that one has an arena of its own. */
static void return_scratch(struct run *r)
{
    dgm_arena *a = dgm_take(r->scratch);
    if (r->shard->spare) {
        dgm_arena_free(a);
    } else {
        dgm_arena_reset(a);
        r->shard->spare = a;
    }
}

/* ---- deciding ----------------------------------------------------------------------------------------------------- */

/* The ids are the texts of the task, of the call as long as there is no task, or of r->base.arena. */
static void run_set_ids(struct run *r, dgm_str task_id, dgm_str context_id)
{
    r->input.task_id = task_id;
    r->input.context_id = context_id;
    dgm_message *shown = (dgm_message *)(uintptr_t)r->input.message;
    if (r->message) {
        r->message->task_id = task_id;
        r->message->context_id = context_id;
    }
    if (shown && shown != r->message) {
        shown->task_id = task_id;
        shown->context_id = context_id;
    }
}

/* Its send, which is answered now, without a task. */
static struct call *release_send(struct run *r)
{
    struct call *c = dgm_take(r->caller);
    c->send.run = NULL;
    /* the call may be freed before the run */
    run_set_ids(r, dgm_arena_dup(r->base.arena, r->input.task_id),
                dgm_arena_dup(r->base.arena, r->input.context_id));
    return c;
}

/* One record in a log of its own, without a task. */
static dgm_code answer_with_message(struct run *r, const dgm_event *event, dgm_err *err)
{
    dgm_record *record;
    dgm_code rc =
        dgm_record_new(event, (dgm_record_head){.seq = 1, .time = r->shard->now, .turn = 1},
                       &r->shard->scratch, &record, err);
    if (rc)
        return rc;
    struct call *c = release_send(r);
    run_set_state(r, RUN_ANSWERED);
    c->log = dgm_log_new(r->shard->core->o.loops, 1);
    dgm_log_append(c->log, record);
    dgm_log_close(c->log, c->log->last);
    c->after = 0;
    c->turn.number = 1;
    c->turn.first_seq = 1;
    c->send.is_message = true;
    c->task_id = (dgm_str){0};
    atomic_fetch_add_explicit(&r->shard->core->messages, 1, memory_order_relaxed);
    dgm_resend_decided(r->shard, c, NULL);
    c->send.message = NULL;
    if (c->send.keep_turn)
        dgm_message_turn_store(r->shard, c, record);
    else
        dgm_call_answer(c);
    return DGM_OK;
}

static void answer_with_error(struct run *r, const dgm_err *err)
{
    struct call *c = release_send(r);
    if (r->state != RUN_ENDED)
        run_set_state(r, RUN_ANSWERED);
    dgm_resend_decided(r->shard, c, NULL);
    c->send.message = NULL;
    dgm_call_refuse(c, err);
}

/* The `task` event of a new task: submitted, with the caller's message as its history. */
static dgm_code run_create_task(struct run *r, const dgm_task *like, dgm_err *err)
{
    struct call *c = r->caller;
    struct live *l = dgm_live_alloc(r->shard, c->owner, r->input.task_id, r->input.context_id.n);
    dgm_task task = {0};
    dgm_code rc;
    dgm_live_set_state(l, LIVE_READY);
    if (l->rare->share)
        dgm_share_own_new(l);
    l->agent = r->agent;
    dgm_live_open(l, r->input.context_id, 1);
    l->kept_first = 1;
    l->created_ms = dgm_loop_unix_ms();
    atomic_fetch_add_explicit(&r->shard->core->tasks, 1, memory_order_relaxed);
    if (like)
        task = *like;
    task.id = l->id;
    task.context_id = l->context_id;
    if (!like)
        task.status = (dgm_status){.state = DGM_STATE_SUBMITTED,
                                   .timestamp = dgm_time_text(r->scratch, r->shard->now)};
    task.history = (dgm_messages){r->message, 1};
    if (r->routing)
        task.metadata = dgm_core_run_routed(r->scratch, r->routing, task.metadata);
    dgm_event event = {.kind = DGM_EVENT_TASK, .task = &task};
    l->run = r;
    if ((rc = dgm_live_start_turn(l, c, &event, err))) {
        dgm_live_free(l);
        return rc;
    }
    r->live = l;
    run_set_ids(r, l->id, l->context_id);
    r->caller = NULL;
    c->send.run = NULL;
    c->log = dgm_log_ref(l->log);
    c->after = 0;
    c->task_id = dgm_arena_dup(c->arena, l->id);
    dgm_resend_decided(r->shard, c, l);
    c->send.message = NULL;
    dgm_live_answer_when_published(l, c, 1);
    return DGM_OK;
}

/* A task's stream has no messages: what an agent says to one ends it with these words. */
static dgm_event as_completed(struct run *r, const dgm_message *m)
{
    dgm_status_update *u = dgm_new(r->scratch, dgm_status_update);
    u->task_id = r->input.task_id;
    u->context_id = r->input.context_id;
    u->status = (dgm_status){.state = DGM_STATE_COMPLETED,
                             .message = (dgm_message *)(uintptr_t)m,
                             .timestamp = dgm_time_text(r->scratch, r->shard->now)};
    return (dgm_event){.kind = DGM_EVENT_STATUS, .status = u};
}

/* The `task` event of an agent whose task was made before it: only a change of state is new in it. */
static dgm_event as_update(struct run *r, const dgm_task *t)
{
    dgm_status_update *u = dgm_new(r->scratch, dgm_status_update);
    *u = (dgm_status_update){.task_id = r->input.task_id,
                             .context_id = r->input.context_id,
                             .status = t->status,
                             .metadata = t->metadata};
    return (dgm_event){.kind = DGM_EVENT_STATUS, .status = u};
}

/* Once its agent has read it, and the log has it. */
static void run_release_input(struct run *r)
{
    if (!r->has_read || r->caller) /* undecided */
        return;
    r->message = NULL;
    r->input.message = NULL;
    r->input.metadata = NULL;
    r->input.accepted_output_modes = (dgm_strs){0};
    r->input.history = (dgm_messages){0};
    r->input.accepted = (dgm_messages){0};
    dgm_arena_free(dgm_take(r->given));
    dgm_arena_free(dgm_take(r->past));
}

/* ---- what agents call ------------------------------------------------------------------------------------------------ */

static bool is_over_limit(const struct run *r)
{
    const dgm_core_limits *max = &r->shard->limits;
    return r->live->log->bytes >= max->log_bytes ||
           r->live->log->last + 1 >= max->log_records; /* the last one reports the limit */
}

static dgm_code fail_over_limit(struct run *r, dgm_err *err)
{
    dgm_code rc = dgm_live_end_task(
        r->live, DGM_STATE_FAILED,
        "log_limit: the events of the task exceed the limit log_bytes or log_records", err);
    if (rc)
        return rc;
    return dgm_fail(err, DGM_TOO_LARGE, NULL,
                    "more than the limits log_bytes and log_records allow: the task has failed");
}

/* Bits of r->warned behind those of the rules: reported once per run. */
#define WARNED_FOLD (1u << N_RULES)
#define WARNED_METADATA (1u << (N_RULES + 1))

static dgm_code run_handle_event(struct run *r, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    dgm_core_run_lint(r, event);
    r->shard->guard.removed = 0;
    dgm_event filled = dgm_core_run_fill(r, event);
    if (r->shard->guard.removed && !(r->warned & WARNED_METADATA)) {
        dgm_err what = {0};
        r->warned |= WARNED_METADATA;
        dgm_fail(&what, DGM_INVALID_AGENT_RESPONSE, NULL,
                 "the agent set metadata that only the server sets (keys with the prefix aion: or "
                 "dragoman:, and canonical_type of tasks and updates): removed");
        dgm_core_run_warn(r, "server-metadata", &what);
    }
    if (!r->live) {
        if (r->state == RUN_ABANDONED)
            return DGM_OK;
        if (filled.kind == DGM_EVENT_MESSAGE)
            return answer_with_message(r, &filled, err);
        bool is_task = filled.kind == DGM_EVENT_TASK;
        if ((rc = run_create_task(r, is_task ? filled.task : NULL, err)))
            return rc;
        run_set_state(r, RUN_TASK);
        return is_task ? DGM_OK : dgm_live_append(r->live, &filled, DGM_BY_AGENT, err);
    }
    if (dgm_state_is_terminal(r->live->task_state))
        return DGM_OK; /* too late, and of no consequence */
    if (is_over_limit(r))
        return fail_over_limit(r, err);
    if (filled.kind == DGM_EVENT_MESSAGE)
        filled = as_completed(r, filled.message);
    if (r->state == RUN_EARLY_TASK) {
        if (filled.kind == DGM_EVENT_TASK && !filled.task->artifacts.n)
            filled = as_update(r, filled.task);
        run_set_state(r, RUN_TASK);
    }
    /* Events that the fold could not apply: the rules report most of them. */
    size_t n_warnings = dgm_fold_n_warnings(r->live->fold);
    rc = dgm_live_append(r->live, &filled, DGM_BY_AGENT, err);
    if (dgm_fold_n_warnings(r->live->fold) > n_warnings && !(r->warned & WARNED_FOLD)) {
        r->warned |= WARNED_FOLD;
        dgm_core_run_warn(r, "fold", dgm_fold_warning(r->live->fold));
    }
    return rc;
}

static dgm_code run_emit(dgm_run *base, const dgm_event *event, dgm_err *err)
{
    struct run *r = (struct run *)(void *)base;
    assert(r->state != RUN_ENDED);
    if (event->kind == DGM_EVENT_NONE)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "an event without a kind");
    if (r->state == RUN_ANSWERED)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "nothing follows a Message answer");
    if (r->base.suspended || r->is_detached)
        return DGM_OK;
    r->shard->now = dgm_loop_unix_ms();
    dgm_code rc = DGM_OK;
    if (r->state != RUN_TASK || is_over_limit(r) ||
        !dgm_live_append_next_chunk(r->live, event, r->shard->now)) {
        r->scratch = r->shard->spare ? dgm_take(r->shard->spare) : dgm_arena_new();
        rc = run_handle_event(r, event, err);
        return_scratch(r);
    }
    if (r->given)
        run_release_input(r);
    return rc;
}

/* True until the store has answered. Agents that can wait look again by and by: it becomes false when the
 * store has caught up, and at once when it has failed. */
static bool run_is_full(const dgm_run *base)
{
    const struct run *r = (const struct run *)(const void *)base;
    const struct live *l = r->live;
    if (!l || l->state == LIVE_BROKEN)
        return false;
    return l->log->last - l->log->published > DGM_MAX_UNWRITTEN_RECORDS ||
           l->write.bytes > DGM_MAX_UNWRITTEN_BYTES;
}

static void run_note(dgm_run *base, dgm_str line)
{
    struct run *r = (struct run *)(void *)base;
    const dgm_core_options *o = &r->shard->core->o;
    if (o->on_note)
        o->on_note(o->user, r->agent->id, r->input.task_id, line);
}

static void run_report_fault(dgm_run *base, const dgm_run_fault *what)
{
    struct run *r = (struct run *)(void *)base;
    const dgm_core_options *o = &r->shard->core->o;
    if (o->on_fault)
        o->on_fault(o->user, r->agent->id, r->input.task_id, what);
}

/* ---- its end ---------------------------------------------------------------------------------------------------- */

void dgm_core_run_drop(struct run *r)
{
    dgm_core_run_forget_notes(r);
    dgm_core_history_forget(r);
    if (r->shard->invoked)
        dgm_core_invoked_forget(r);
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    r->shard->n_runs--;
    atomic_fetch_sub_explicit(&r->shard->core->running, 1, memory_order_relaxed);
    dgm_record_unref(r->task_before);
    dgm_arena_free(r->given);
    dgm_arena_free(r->past);
    dgm_arena_free(r->base.arena); /* r lives in it */
}

/* Its task stays as it is: the next process finds it in the middle. Readers see the end of the stream. */
static void run_finish_suspended(struct run *r)
{
    struct shard *s = r->shard;
    struct live *l = r->live;
    if (l)
        l->run = NULL;
    dgm_core_run_drop(r);
    if (l)
        dgm_live_free_if_idle(l);
    if (s->is_draining)
        dgm_drain_check(s);
}

static void run_finish(struct run *r)
{
    struct shard *s = r->shard;
    struct live *l;
    dgm_err err = {0};
    if (r->base.suspended || r->is_detached) {
        run_finish_suspended(r);
        return;
    }
    r->shard->now = dgm_loop_unix_ms();
    r->scratch = r->shard->spare ? dgm_take(r->shard->spare) : dgm_arena_new();
    if (r->caller && run_create_task(r, NULL, &err)) /* no event at all is a task, too */
        answer_with_error(r, &err);
    /* Sets the final state, if the agent has not emitted one. */
    if ((l = r->live) && !dgm_state_is_terminal(l->task_state) &&
        (!dgm_state_is_interrupted(l->task_state) || r->error || r->base.canceled))
        dgm_live_end_task(l,
                          r->error           ? DGM_STATE_FAILED
                          : r->base.canceled ? DGM_STATE_CANCELED
                                             : DGM_STATE_COMPLETED,
                          r->error, &err);
    return_scratch(r);
    if (l)
        dgm_live_run_ended(l);
    dgm_core_run_drop(r);
    if (s->is_draining)
        dgm_drain_check(s);
}

static void run_end(dgm_run *base, const char *error)
{
    struct run *r = (struct run *)(void *)base;
    if (r->state == RUN_ABANDONED) {
        dgm_err err = {0};
        dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the caller disconnected before there was a task");
        answer_with_error(r, &err);
    }
    run_set_state(r, RUN_ENDED);
    dgm_core_run_forget_notes(r);
    dgm_core_history_forget(r);
    if (r->shard->invoked)
        dgm_core_invoked_forget(r);
    if (error)
        r->error = dgm_arena_dup(r->base.arena, dgm_str_from(error)).p;
    if (!r->is_starting)
        run_finish(r);
}

static void run_refuse(dgm_run *base, const dgm_err *error)
{
    struct run *r = (struct run *)(void *)base;
    if (r->caller)
        answer_with_error(r, error);
    run_end(base, error->msg); /* of a task that is there already it is the reason of its failure */
}

static void run_has_read(dgm_run *base)
{
    struct run *r = (struct run *)(void *)base;
    r->has_read = true;
    run_release_input(r);
}

static const dgm_run_ops ops = {.emit = run_emit,
                                .end = run_end,
                                .is_full = run_is_full,
                                .note = run_note,
                                .refuse = run_refuse,
                                .has_read = run_has_read,
                                .fault = run_report_fault,
                                .remember = dgm_core_run_remember,
                                .recall = dgm_core_run_recall,
                                .commit = dgm_core_run_commit,
                                .review = dgm_core_run_review,
                                .invoke = dgm_core_run_invoke,
                                .cancel_invoked = dgm_core_run_cancel_invoked};

/* ---- starting and stopping --------------------------------------------------------------------------------------------- */

/* Ids that this loop owns: the hash of what is drawn decides. Another last digit costs less than another id. */
static dgm_str draw_id(struct shard *s, dgm_arena *a, dgm_owner owner)
{
    char id[DGM_UUID_CHARS + 1];
    char *last = &id[DGM_UUID_CHARS - 1];
    for (unsigned n = 0;
         n == 0 || dgm_core_shard_of(s->core, owner, (dgm_str){id, DGM_UUID_CHARS}) != s; n++) {
        if (n % 16 == 0)
            dgm_uuid7(id);
        else
            *last = *last == '9' ? 'a' : *last == 'f' ? '0' : (char)(*last + 1);
    }
    return dgm_arena_dup(a, (dgm_str){id, DGM_UUID_CHARS});
}

/* The message of the call becomes the run's own: it may outlive the call. */
static struct run *new_run(struct shard *s, struct call *c, struct live *live)
{
    /* A run may wait for hours: its first block has room for the run and its owner, and no more. */
    size_t tenant = c->owner.tenant.n, principal = c->owner.principal.n;
    dgm_arena *a = dgm_arena_new_small(sizeof(struct run) + (tenant ? tenant + 1 : 0) +
                                       (principal ? principal + 1 : 0));
    struct run *r = dgm_new(a, struct run);
    r->shard = s;
    r->agent = c->agent;
    r->live = live;
    r->base = (dgm_run){.ops = &ops, .input = &r->input, .loop = s->loop, .arena = a};
    r->given = dgm_take(c->send.given);
    r->message = c->send.message;
    r->input = (dgm_run_input){
        .message = r->message,
        .metadata = c->send.metadata,
        .accepted_output_modes = c->send.accepted_output_modes,
        .agent = r->agent->id,
        .tenant = c->owner.tenant.n ? dgm_arena_dup(a, c->owner.tenant) : (dgm_str){0},
        .principal = c->owner.principal.n ? dgm_arena_dup(a, c->owner.principal) : (dgm_str){0}};
    if (s->core->is_shared) /* that of the task that it will make: 1 */
        r->input.fence = live ? live->rare->share->lease.fence : 1;
    if (!live && !c->turn.context_id.n)
        c->turn.context_id = draw_id(s, c->arena, c->owner);
    run_set_ids(r, live ? live->id : draw_id(s, c->arena, c->owner),
                live ? live->context_id : c->turn.context_id);
    if (r->agent->backend->has_threads)
        r->routing = dgm_core_run_find_routing(a, r->input.metadata, r->message->metadata);
    dgm_send_mark_message(r->given, c->owner, r->message);
    r->next = s->runs;
    r->prev = &s->runs;
    if (r->next)
        r->next->prev = &r->next;
    s->runs = r;
    s->n_runs++;
    atomic_fetch_add_explicit(&s->core->runs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->core->running, 1, memory_order_relaxed);
    return r;
}

void dgm_core_run_start(struct shard *s, struct call *c, struct live *live, dgm_record *before)
{
    dgm_event event = {0};
    if (s->core->draining && !live) {
        dgm_resend_decided(s, c, NULL);
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
        return;
    }
    if (!live && c->send.has_left && !dgm_resend_copies_of(c)) {
        dgm_resend_decided(s, c, NULL);
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the caller disconnected before there was a task");
        return;
    }
    struct run *r = new_run(s, c, live);
    if (live) {
        run_set_state(r, RUN_TASK);
        live->run = r;
        c->send.message = NULL; /* the run may be over before the call is */
        if ((r->task_before = before) && !dgm_record_event(before, r->base.arena, &event, NULL))
            r->input.task = event.task;
    } else {
        r->caller = c;
        c->send.run = r;
    }
    if (!live && c->send.is_late)
        r->is_late = true;
    r->has_no_note[DGM_RUN_TASK] = !live;
    r->has_no_note[DGM_RUN_CONTEXT] = !live && !c->send.asked_context.n;
    if (dgm_core_history_is_ready(r, !live && !c->send.asked_context.n))
        dgm_core_run_begin(r);
    else if (r->is_late)
        dgm_core_run_make_task(r);
}

/* ---- after a restart --------------------------------------------------------------------------------------------------- */

/* Of the last run: the message that started it, then those that it has accepted. Messages that waited for it were not
 * stored. n 0: unknown. */
static dgm_messages messages_of_run(const struct live *l, dgm_arena *a)
{
    const dgm_task *task = dgm_fold_task(l->fold);
    size_t max = dgm_live_n_joined(l) + (size_t)1;
    dgm_message *found = dgm_new_n(a, dgm_message, max);
    size_t n = 0;
    for (size_t i = task ? task->history.n : 0; i-- > 0 && n < max;) {
        if (task->history.at[i].role == DGM_ROLE_USER)
            found[max - ++n] = dgm_message_copy(a, &task->history.at[i]);
    }
    return (dgm_messages){found + max - n, n};
}

bool dgm_core_run_resume(struct live *l)
{
    struct shard *s = l->shard;
    dgm_event event = {0};
    dgm_arena *given = dgm_arena_new();
    dgm_messages messages = messages_of_run(l, given);
    if (!messages.n) {
        dgm_arena_free(given);
        return false;
    }
    struct call *c =
        dgm_call_new(s->core, CALL_SEND, dgm_live_owner(l)); /* as a run is made of it */
    c->agent = l->agent;
    c->send.given = given;
    c->send.message = messages.at;
    struct run *r = new_run(s, c, l);
    dgm_arena_free(c->arena);
    run_set_state(r, RUN_EARLY_TASK); /* its log begins with a `task` event */
    l->run = r;
    r->input.is_resumed = true;
    r->input.accepted = (dgm_messages){messages.at + 1, messages.n - 1};
    if (r->agent->backend
            ->has_threads) /* the metadata of the request is not stored, that of its task is */
        r->routing =
            dgm_core_run_find_routing(r->base.arena, r->routing, dgm_fold_task(l->fold)->metadata);
    if ((r->task_before = dgm_live_snapshot(l)) &&
        !dgm_record_event(r->task_before, r->base.arena, &event, NULL))
        r->input.task = event.task;
    dgm_resume_run(r);
    return true;
}

void dgm_core_run_begin(struct run *r)
{
    r->is_started = r->is_starting = true;
    r->agent->backend->start(r->agent->agent, &r->base);
    r->is_starting = false;
    if (r->state == RUN_ENDED)
        run_finish(r);
    else if (r->is_late)
        dgm_core_run_make_task(r);
    else if (r->live && r->live->rare->queued)
        dgm_send_offer_queued(r->live);
}

void dgm_core_run_make_task(struct run *r)
{
    dgm_err err = {0};
    if (r->state != RUN_UNDECIDED && r->state != RUN_ABANDONED)
        return;
    r->shard->now = dgm_loop_unix_ms();
    r->scratch = r->shard->spare ? dgm_take(r->shard->spare) : dgm_arena_new();
    dgm_code rc = run_create_task(r, NULL, &err);
    return_scratch(r);
    if (rc) {
        answer_with_error(r, &err);
        dgm_core_run_cancel(r);
        return;
    }
    run_set_state(r, RUN_EARLY_TASK);
    if (r->given)
        run_release_input(r);
}

void dgm_core_run_detach(struct run *r, bool suspends)
{
    struct live *l = r->live;
    run_set_ids(r, dgm_arena_dup(r->base.arena, l->id),
                dgm_arena_dup(r->base.arena, l->context_id));
    l->run = NULL;
    r->live = NULL;
    r->is_detached = true;
    r->base.suspended = suspends;
    dgm_core_run_cancel(r);
}

void dgm_core_run_abandon(struct run *r)
{
    if (r->state != RUN_UNDECIDED)
        return;
    run_set_state(r, RUN_ABANDONED);
    dgm_core_run_cancel(r);
}

void dgm_core_run_cancel(struct run *r)
{
    if (r->base.canceled)
        return;
    r->base.canceled = true;
    if (r->state == RUN_ENDED)
        return;
    if (r->shard->invoked && !r->base.suspended)
        dgm_core_invoked_cancel_all(r);
    if (r->is_started && r->agent->backend->cancel)
        r->agent->backend->cancel(r->agent->agent, &r->base);
    else
        run_end(&r->base, NULL);
}

void dgm_core_run_abort(struct run *r)
{
    dgm_err err = {0};
    if (r->caller) {
        dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        answer_with_error(r, &err);
    } else if (r->live && r->live->state == LIVE_READY &&
               !dgm_state_is_terminal(r->live->task_state)) {
        r->base.suspended = dgm_backend_resumes(r->agent->backend, r->agent->agent) &&
                            !r->base.canceled && !dgm_state_is_interrupted(r->live->task_state);
        if (!r->base.suspended)
            dgm_live_end_task(r->live, DGM_STATE_FAILED, DGM_SERVER_STOPPED, &err);
    }
    dgm_core_run_cancel(r);
}
