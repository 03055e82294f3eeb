/* core/ask.c - what is asked of a task that is here. */
#include "core/core_int.h"

#include <stdlib.h>

static void live_handle_get(struct live *l, struct call *c)
{
    if ((c->snapshot = dgm_live_snapshot(l)))
        dgm_live_answer_when_published(l, c, l->log->last);
    else
        dgm_call_refuse_with(
            c, DGM_TOO_LARGE,
            "the task is larger than the limit task_bytes (32 MiB): subscribe to it "
            "with Last-Event-ID 0 to read its events one by one");
}

/* ---- subscribing --------------------------------------------------------------------------------------------- */

bool dgm_live_has_max_readers(struct live *l, struct call *c)
{
    size_t max = l->shard->limits.subscribers;
    dgm_err err = {0};
    if (dgm_log_n_readers(l->log) < max)
        return false;
    dgm_fail(&err, DGM_RATE_LIMITED, NULL,
             "the task has %zu subscribers, the limit subscribers: try later", max);
    dgm_call_refuse(c, &err);
    return true;
}

static void live_handle_subscribe(struct live *l, struct call *c)
{
    uint64_t last = l->log->last;
    bool has_cursor = c->cursor != DGM_NO_CURSOR;
    if (!has_cursor && dgm_state_is_terminal(l->task_state)) {
        dgm_call_refuse_with(c, DGM_UNSUPPORTED_OPERATION, "the task has ended: get it instead");
        return;
    }
    if (dgm_live_has_max_readers(l, c))
        return;
    has_cursor = has_cursor && c->cursor <= last; /* beyond the end: lost with the power */
    if (has_cursor && dgm_live_load_older(l, c, c->cursor + 1))
        return;
    c->log = dgm_log_ref(l->log);
    if (has_cursor && c->cursor + 1 >= l->log->first_seq) {
        c->after = c->cursor;
        dgm_live_answer_when_published(l, c, c->cursor);
        return;
    }
    c->snapshot = dgm_live_snapshot(l);
    c->after = last;
    dgm_live_answer_when_published(l, c, last);
}

/* ---- canceling ----------------------------------------------------------------------------------------------- */

/* A timer that knows its task by name: when it is up the task may be gone. */
struct wait {
    dgm_timer timer;
    dgm_loop_stop stop;
    struct shard *shard;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str id;
    uint32_t turn;
    void (*fn)(struct wait *w, struct live *l); /* l NULL: it is gone */
};

static void free_wait(void *arg)
{
    struct wait *w = arg;
    dgm_arena_free(w->arena);
}

static void end_wait(void *arg)
{
    struct wait *w = arg;
    dgm_loop_off_stop(w->shard->loop, &w->stop);
    dgm_timer_close(&w->timer, free_wait, w);
}

static void on_wait_over(void *arg)
{
    struct wait *w = arg;
    struct live *l = dgm_live_find(w->shard, w->owner, w->id);
    if (l && l->state == LIVE_READY)
        w->fn(w, l);
    end_wait(w);
}

static void wait_then(struct live *l, uint32_t turn, uint64_t ms,
                      void (*fn)(struct wait *, struct live *))
{
    dgm_arena *a = dgm_arena_new();
    struct wait *w = dgm_new(a, struct wait);
    w->arena = a;
    w->shard = l->shard;
    w->owner = (dgm_owner){dgm_arena_dup(a, dgm_live_owner(l).tenant),
                           dgm_arena_dup(a, dgm_live_owner(l).principal)};
    w->id = dgm_arena_dup(a, l->id);
    w->turn = turn;
    w->fn = fn;
    dgm_timer_init(l->shard->loop, &w->timer, on_wait_over, w);
    dgm_timer_start(&w->timer, ms);
    w->stop = (dgm_loop_stop){.fn = end_wait, .arg = w};
    dgm_loop_on_stop(l->shard->loop, &w->stop);
}

/* The agent has not stopped in time: answer with the task as it is. */
static void cancel_timed_out(struct wait *w, struct live *l)
{
    (void)w;
    while (l->rare->canceling) {
        struct call *c = l->rare->canceling;
        dgm_live_rare(l)->canceling = c->next;
        c->snapshot = dgm_live_snapshot(l);
        dgm_live_answer_when_published(l, c, l->log->last);
    }
}

/* A run that waits for its start gets one: its agent passes the cancel on. */
static void live_cancel_run(struct live *l)
{
    if (l->run->is_queued)
        dgm_resume_now(l->run);
    if (l->run)
        dgm_core_run_cancel(l->run);
}

/* The task waits, and its agent has to know of the cancel. */
static bool live_cancel_waiting(struct live *l)
{
    return l->agent->backend->cancels_waiting && dgm_state_is_interrupted(l->task_state) &&
           !l->shard->core->draining && dgm_core_run_resume(l);
}

static void live_handle_cancel(struct live *l, struct call *c)
{
    dgm_err err = {0};
    if (l->task_state == DGM_STATE_CANCELED) {
        live_handle_get(l, c);
        return;
    }
    if (dgm_state_is_terminal(l->task_state)) {
        dgm_live_refuse_ended(l, c, "the task has ended");
        return;
    }
    if (l->state == LIVE_BROKEN) {
        dgm_call_refuse(c, l->rare->store_fault);
        return;
    }
    if (l->rare->share && !dgm_share_may_write(l, c))
        return;
    c->next = l->rare->canceling;
    dgm_live_rare(l)->canceling = c;
    dgm_core_cancel_waiting_children(l);
    if (l->run || live_cancel_waiting(l)) {
        if (!c->next)
            wait_then(l, l->turns.last.turn, DGM_CANCEL_WAIT_MS, cancel_timed_out);
        live_cancel_run(l);
    } else if (dgm_live_end_task(l, DGM_STATE_CANCELED, NULL, &err)) {
        dgm_live_rare(l)->canceling = c->next;
        dgm_call_refuse(c, &err);
    }
}

/* ---- the caller has disconnected --------------------------------------------------------------------------------- */

/* After this time another server that follows the task has informed this one, also if wake-ups are polled. */
#define FOLLOWED_MS (4 * DGM_FOLLOW_POLL_MS)

static void cancel_without_readers(struct wait *w, struct live *l)
{
    if (!l->run || !dgm_live_turn_runs(l, w->turn) || dgm_log_n_clients(l->log))
        return;
    if (l->rare->share && dgm_store_is_followed(l->shard->core->o.store, dgm_live_owner(l), l->id))
        wait_then(l, w->turn, DGM_FOLLOW_MS / 4,
                  cancel_without_readers); /* by readers elsewhere, or it was */
    else
        live_cancel_run(l);
}

static void live_handle_disconnect(struct live *l, struct call *c)
{
    if (l->rare->share && !dgm_live_is_ours(l)) {
        dgm_forward(l, c);
        return;
    }
    uint64_t ms = l->rare->share && c->grace_ms < FOLLOWED_MS ? FOLLOWED_MS : c->grace_ms;
    if (l->state == LIVE_READY && dgm_live_turn_runs(l, c->turn.number))
        wait_then(l, l->turns.last.turn, ms, cancel_without_readers);
    dgm_call_answer(c);
}

/* ---- after a crash ------------------------------------------------------------------------------------------------ */

dgm_code dgm_live_settle(struct live *l, dgm_err *err)
{
    bool unfinished =
        !l->run && l->state == LIVE_READY && !dgm_live_is_at_rest(l) && dgm_live_is_ours(l);
    bool is_resumed = unfinished && dgm_backend_resumes(l->agent->backend, l->agent->agent) &&
                      dgm_core_run_resume(l);
    return unfinished && !is_resumed
               ? dgm_live_end_task(l, DGM_STATE_FAILED, DGM_SERVER_STOPPED, err)
               : DGM_OK;
}

static void live_handle_settle(struct live *l, struct call *c)
{
    dgm_err err = {0};
    if (dgm_live_settle(l, &err))
        dgm_call_refuse(c, &err);
    else
        dgm_live_answer_when_published(l, c, l->log->last);
}

void dgm_live_handle(struct live *l, struct call *c)
{
    dgm_err err = {0};
    l->held++;
    if (c->agent && dgm_str_eq(c->agent->id, l->agent->id))
        l->agent = c->agent;                /* the newest: a reload may have replaced it */
    if (c->agent && c->agent != l->agent) { /* at another agent's address there is no such task */
        dgm_call_refuse_with(c, DGM_TASK_NOT_FOUND, "Task not found");
    } else if (l->rare->share && l->rare->share->fold_is_stale && l->state == LIVE_READY) {
        dgm_follow_then_handle(l, c); /* the lease was lost while it waited for the store */
    } else if (c->forward && dgm_forward_finish(l, c)) {
        /* another server has handled it */
    } else if (l->rare->share && dgm_follow_fold(l, UINT64_MAX, &err)) {
        dgm_call_refuse(c, &err);
    } else {
        switch (c->kind) {
        case CALL_SEND: dgm_send_to_task(l, c); break;
        case CALL_GET: live_handle_get(l, c); break;
        case CALL_SUBSCRIBE: live_handle_subscribe(l, c); break;
        case CALL_TURN: dgm_live_handle_turn(l, c); break;
        case CALL_CANCEL: live_handle_cancel(l, c); break;
        case CALL_SETTLE: live_handle_settle(l, c); break;
        case CALL_GONE: live_handle_disconnect(l, c); break;
        }
    }
    l->held--;
    dgm_live_free_if_idle(l);
}
