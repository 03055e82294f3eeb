/*
 * core/follow.c - a task of another server in memory: its log grows by reading the store.
 *
 *   the row ─► the records behind the log ─► the turns, if the task has become ours ─► the calls that waited
 *   the log has grown (the store reports it), or it is time to read ─► the records behind the log
 *
 * A task of another server may have changed since it was read: each call waits for a read of the row that starts after the call.
 * Readers are attached to the log as to any other log. While a log has readers, the task is in the list of its loop, whose timer
 * reads the store also without a wake-up.
 *
 * The fold follows the log only when a call needs the Task.
 */
#include "core/core_int.h"

#include <assert.h>

#define PAGE_RECORDS 4096
#define PAGE_BYTES ((size_t)8 << 20)

/* Soon at first: records that were stored between the read and the request for wake-ups are not reported. */
#define FIRST_POLL_MS 20
/* If wake-ups come: in case that one is lost. Of a task without an owner: more tasks are read less often, so that the number of
 * reads per second has a limit. */
#define WOKEN_POLL_MS 1000
#define ROW_MS 2000

static uint64_t follow_now(const struct live *l)
{
    return uv_now(&l->shard->loop->uv);
}

void dgm_follow_refuse_all(struct live *l, const dgm_err *err)
{
    struct live_share *x = l->rare->share;
    dgm_call_refuse_all(&x->served, err);
    dgm_call_refuse_all(&x->waiting, err);
    dgm_call_refuse_all(&x->delayed, err);
}

/* ---- the fold ------------------------------------------------------------------------------------------------------ */

dgm_code dgm_follow_fold(struct live *l, uint64_t seq, dgm_err *err)
{
    struct live_share *x = l->rare->share;
    dgm_code rc = DGM_OK;
    if (dgm_live_is_ours(l) || l->state != LIVE_READY || x->folded_to >= l->log->last)
        return DGM_OK;
    assert(!x->fold_is_stale);
    size_t n = (size_t)(l->log->last - x->folded_to);
    dgm_record **records = dgm_log_tail(l->log, n, &l->shard->batch);
    for (size_t i = 0; i < n && !rc && records[i]->head.seq <= seq; i++) {
        if (!(rc = dgm_live_fold_record(l, records[i], err)))
            x->folded_to = records[i]->head.seq;
    }
    return rc;
}

/* From the Task that the row has. The log holds every record behind it, or will. */
static dgm_code follow_rebuild_fold(struct live *l, const dgm_task_row *row, dgm_err *err)
{
    struct live_share *x = l->rare->share;
    if (!x->fold_is_stale)
        return DGM_OK;
    dgm_live_reset_fold(l);
    dgm_code rc = dgm_live_fold_row(l, row, err);
    if (!rc && row->folded_seq + 1 < l->log->first_seq)
        rc = dgm_fail(err, DGM_INTERNAL, NULL, "the Task of the row is older than the log");
    x->folded_to = row->folded_seq;
    x->fold_is_stale = rc != DGM_OK;
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static void follow_set_state(struct live *l, dgm_task_state to)
{
    if (dgm_state_may_become(l->task_state, to))
        dgm_live_set_task_state(l, to);
    else
        l->task_state = to; /* what was read before was lost with the server that wrote it */
}

/* The readers come back with their cursors, and get what there is then. */
static void follow_close(struct live *l, const dgm_err *err)
{
    dgm_live_break(l, err);
    dgm_follow_refuse_all(l, err);
    l->rare->share->lease = l->rare->share->row_lease = (dgm_lease){.holder = DGM_LEASE_NONE};
}

static void follow_add_turn(struct live *l, const dgm_record *record)
{
    if (record->head.turn <= l->turns.last.turn)
        return;
    l->turns.last.turn = record->head.turn;
    l->turns.last.first_seq = record->head.seq;
    dgm_live_push_turn(l);
    l->rare->share->turns_are_stale = true; /* its texts are not known here */
}

static dgm_code follow_add_record(struct live *l, dgm_record *record, dgm_err *err)
{
    if (record->head.seq != l->log->last + 1)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "records of the task were removed while it was read: read it again");
    dgm_log_append(l->log, dgm_record_ref(record));
    follow_add_turn(l, record);
    if (record->head.state != DGM_STATE_UNKNOWN &&
        dgm_state_may_become(l->task_state, record->head.state))
        follow_set_state(l, record->head.state);
    return DGM_OK;
}

static void follow_next(struct live *l);

/* False: the server ends, or the read has failed, and the calls were refused. */
static bool follow_is_read(struct live *l, dgm_code code, const dgm_err *err)
{
    struct live_share *x = l->rare->share;
    dgm_err stopping = {0};
    x->reading = READ_NOTHING;
    if (l->shard->core->stopping) {
        code = dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        err = &stopping;
    }
    if (!code && l->state == LIVE_READY)
        return true;
    l->held++;
    if (l->state != LIVE_READY)
        err = l->rare->store_fault;
    x->poll_ms = 2 * x->poll_ms < WOKEN_POLL_MS ? 2 * x->poll_ms : WOKEN_POLL_MS;
    dgm_call_refuse_all(&x->served, err);
    dgm_follow_read(l);
    l->held--;
    dgm_live_free_if_idle(l);
    return false;
}

static void follow_fail(struct live *l, const dgm_err *err)
{
    struct live_share *x = l->rare->share;
    l->held++;
    if (x->is_row_read && x->row_lease.holder == DGM_LEASE_OURS && err->code == DGM_UNAVAILABLE)
        dgm_store_release(l->shard->core->o.store, dgm_live_owner(l), l->id, x->row_lease.fence,
                          NULL, NULL); /* it is loaded again, then */
    follow_close(l, err);
    l->held--;
    dgm_live_free_if_idle(l);
}

static void follow_handle_served(struct live *l)
{
    struct live_share *x = l->rare->share;
    for (struct call *c = x->served; c; c = c->next)
        c->is_looked_up = false; /* others may have handled the same message meanwhile */
    dgm_live_handle_all(l, &x->served);
}

/* The row and what is behind the log were read. */
static void follow_finish_row(struct live *l)
{
    struct live_share *x = l->rare->share;
    dgm_err err = {0};
    if (l->log->last == x->row_last && l->task_state != x->row_state)
        follow_set_state(l, x->row_state);
    l->turns.last.last_seq = l->log->last;
    x->is_unsure = false;
    if (x->row_lease.holder == DGM_LEASE_OURS) {
        if (dgm_follow_fold(l, UINT64_MAX, &err)) { /* it is that of another server until here */
            follow_close(l, &err);
            return;
        }
        x->lease = x->row_lease;
        dgm_share_settle(l);
    }
    follow_handle_served(l);
}

static void follow_finish(struct live *l)
{
    struct live_share *x = l->rare->share;
    l->held++;
    if (x->is_row_read)
        follow_finish_row(l);
    dgm_follow_read(l);
    l->held--;
    dgm_live_free_if_idle(l);
}

static void follow_on_turns(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                            void *arg)
{
    struct live *l = arg;
    if (!follow_is_read(l, code, err))
        return;
    dgm_live_set_turns(l, turns, n);
    l->rare->share->turns_are_stale = false;
    follow_next(l);
}

/* Of a task in the list: what its last read has found. */
static void follow_set_lag(struct live_share *x, size_t n_read)
{
    uint64_t change = (uint64_t)n_read - x->lag; /* may wrap around: the sum is right */
    if (!x->prev || !change)
        return;
    x->lag = n_read;
    atomic_fetch_add_explicit(&x->live->shard->core->lag, change, memory_order_relaxed);
}

/* How soon the store is read again without a wake-up. */
static void follow_set_poll(struct live *l, size_t n_read)
{
    struct live_share *x = l->rare->share;
    dgm_core *core = l->shard->core;
    uint64_t most = x->lease.holder != DGM_LEASE_OTHER ? WOKEN_POLL_MS + l->shard->share.n_followed
                    : core->is_woken                   ? WOKEN_POLL_MS
                                                       : DGM_FOLLOW_POLL_MS;
    if (n_read && !x->was_woken && x->lease.holder == DGM_LEASE_OTHER)
        core->is_woken = false; /* that should have been reported */
    if (n_read)
        x->poll_ms = DGM_FOLLOW_POLL_MS;
    else
        x->poll_ms = 2 * x->poll_ms < most ? 2 * x->poll_ms : most;
    if (x->was_woken && !n_read)
        x->wants_row = true; /* then its owner has changed */
    x->was_woken = false;
    x->poll_at = follow_now(l) + x->poll_ms;
    follow_set_lag(x, n_read);
}

static void follow_on_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                              void *arg)
{
    struct live *l = arg;
    struct live_share *x = l->rare->share;
    dgm_err fault = {0};
    size_t bytes = 0;
    if (!follow_is_read(l, code, err))
        return;
    for (size_t i = 0; i < n && !code; i++) {
        bytes += records[i]->n;
        code = follow_add_record(l, records[i], &fault);
    }
    if (!code && !n && x->is_row_read)
        code = dgm_fail(&fault, DGM_UNAVAILABLE, NULL,
                        "records of the task were removed while it was read: read it again");
    dgm_log_publish(l->log, l->log->last);
    if (code) {
        follow_fail(l, &fault);
        return;
    }
    follow_set_poll(l, n);
    x->wants_records |= n == PAGE_RECORDS || bytes > PAGE_BYTES / 2; /* that may not be all */
    follow_next(l);
}

static void follow_next(struct live *l)
{
    struct live_share *x = l->rare->share;
    dgm_store *store = l->shard->core->o.store;
    if (x->is_row_read && l->log->last < x->row_last) {
        x->reading = READ_RECORDS;
        dgm_store_get_records(store, dgm_live_owner(l), l->id, l->log->last + 1, PAGE_RECORDS,
                              PAGE_BYTES, follow_on_records, l);
    } else if (x->is_row_read && x->row_lease.holder == DGM_LEASE_OURS && x->turns_are_stale) {
        x->reading = READ_TURNS;
        dgm_store_get_turns(store, dgm_live_owner(l), l->id, follow_on_turns, l);
    } else {
        follow_finish(l);
    }
}

static void follow_on_row(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct live *l = arg;
    struct live_share *x = l->rare->share;
    dgm_err fault = {0};
    if (!follow_is_read(l, code, err))
        return;
    if (!row) {
        dgm_fail(&fault, DGM_TASK_NOT_FOUND, NULL, "Task not found");
        follow_fail(l, &fault);
        return;
    }
    x->row_lease = row->lease;
    if (row->last_seq < l->log->last)
        code = dgm_fail(&fault, DGM_UNAVAILABLE, NULL,
                        "the store has lost records of the task: read it again");
    else
        code = follow_rebuild_fold(l, row, &fault);
    if (code) {
        follow_fail(l, &fault);
        return;
    }
    if (row->lease.replica != x->lease.replica)
        x->follow_at = 0;
    /* Until the log, the turns and the fold are complete, a call must not find a task that it may write. */
    x->lease =
        row->lease.holder == DGM_LEASE_OURS ? (dgm_lease){.holder = DGM_LEASE_NONE} : row->lease;
    if (x->is_unsure && l->task_state != row->state)
        follow_set_state(l, row->state); /* records that are read next may change it */
    x->is_unsure |= row->lease.holder == DGM_LEASE_OURS;
    x->row_last = row->last_seq;
    x->row_state = row->state;
    x->row_at = follow_now(l) + ROW_MS;
    l->status_ms = row->status_ms;
    follow_next(l);
}

void dgm_follow_read(struct live *l)
{
    struct live_share *x = l->rare->share;
    dgm_store *store = l->shard->core->o.store;
    dgm_err stopping = {0};
    if (x->reading || x->is_releasing || l->state == LIVE_LOADING)
        return;
    if (l->state == LIVE_BROKEN || l->shard->core->stopping) {
        dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        dgm_follow_refuse_all(l, l->state == LIVE_BROKEN ? l->rare->store_fault : &stopping);
        return;
    }
    if (dgm_live_is_ours(l)) {
        x->wants_lease = x->wants_row = x->wants_records = false;
        dgm_live_handle_all(l, &x->waiting);
        return;
    }
    if (l->write.n_appends || l->write.n_records)
        return; /* it goes on when they are answered */
    if (x->releases_first) {
        dgm_share_release(l);
        return;
    }
    bool acquires = x->wants_lease, reads_row = acquires || x->wants_row || x->waiting;
    if (!reads_row && !x->wants_records)
        return;
    assert(!x->served);
    x->served = dgm_take(x->waiting);
    x->is_row_read = reads_row;
    x->row_lease.holder = DGM_LEASE_NONE;
    x->wants_lease = x->wants_row = x->wants_records = false;
    x->reading = reads_row ? READ_ROW : READ_RECORDS;
    if (acquires)
        dgm_store_acquire(store, dgm_live_owner(l), l->id, follow_on_row, l);
    else if (reads_row)
        dgm_store_get_task(store, dgm_live_owner(l), l->id, follow_on_row, l);
    else
        dgm_store_get_records(store, dgm_live_owner(l), l->id, l->log->last + 1, PAGE_RECORDS,
                              PAGE_BYTES, follow_on_records, l);
}

void dgm_follow_then_handle(struct live *l, struct call *c)
{
    struct live_share *x = l->rare->share;
    bool writes = (c->kind == CALL_SEND && !c->send.is_resend) || c->kind == CALL_CANCEL;
    x->wants_lease |= writes && l->state == LIVE_READY && x->lease.holder == DGM_LEASE_NONE;
    c->next = x->waiting;
    x->waiting = c;
    dgm_follow_read(l);
}

/* ---- the list ------------------------------------------------------------------------------------------------------- */

static void follow_close_timer(void *arg)
{
    struct shard *s = arg;
    s->share.is_open = false;
    dgm_timer_close(&s->share.timer, NULL, NULL);
}

/* They wait for the next read of the row now, like calls that have just come. */
static void follow_try_delayed(struct live *l)
{
    struct live_share *x = l->rare->share;
    struct call *c;
    dgm_err stopping = {0};
    if (l->shard->core->draining && !dgm_live_is_ours(l)) {
        dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        dgm_call_refuse_all(&x->delayed, &stopping);
    }
    while ((c = x->delayed)) {
        x->delayed = c->next;
        c->next = x->waiting;
        x->waiting = c;
    }
}

/* Its time has come. */
static void follow_poll(struct live *l)
{
    struct live_share *x = l->rare->share;
    uint64_t now = follow_now(l);
    follow_try_delayed(l);
    x->poll_at = now + x->poll_ms;
    if (dgm_live_is_ours(l) || l->state != LIVE_READY || l->shard->core->draining ||
        (!x->waiting && !x->is_unsure && !dgm_log_is_shared(l->log))) {
        if (dgm_live_is_ours(l))
            x->poll_at = now;
        dgm_follow_release(x);
        l->held++;
        dgm_follow_read(l); /* for calls that were delayed: the timer does not come back to them */
        l->held--;
        dgm_live_free_if_idle(l);
        return;
    }
    if (x->lease.holder == DGM_LEASE_OTHER && x->lease.replica && x->follow_at <= now) {
        dgm_store_follow(l->shard->core->o.store, dgm_live_owner(l), l->id, x->lease.replica);
        x->follow_at = now + DGM_FOLLOW_MS / 2;
    }
    x->wants_records = true;
    x->wants_row |= x->row_at <= now || x->is_unsure;
    x->wants_lease |= x->is_unsure && x->lease.holder == DGM_LEASE_NONE;
    dgm_follow_read(l);
}

static void follow_start_timer(struct shard *s, uint64_t at);

static void follow_on_timer(void *arg)
{
    struct shard *s = arg;
    uint64_t now = uv_now(&s->loop->uv), first = UINT64_MAX;
    s->share.due_at = 0; /* it has fired */
    for (struct live_share *x = s->share.followed, *next; x; x = next) {
        next = x->next;
        if (x->poll_at <= now)
            follow_poll(x->live); /* frees no other one */
    }
    for (const struct live_share *x = s->share.followed; x; x = x->next)
        first = x->poll_at < first ? x->poll_at : first;
    if (s->share.followed)
        follow_start_timer(s, first);
}

/* One timer for all of them: it is not moved to a later time, or each new task would delay the others. */
static void follow_start_timer(struct shard *s, uint64_t at)
{
    if (!s->share.is_open) {
        s->share.is_open = true;
        dgm_timer_init(s->loop, &s->share.timer, follow_on_timer, s);
        s->share.stop = (dgm_loop_stop){.fn = follow_close_timer, .arg = s};
        dgm_loop_on_stop(s->loop, &s->share.stop);
    }
    uint64_t now = uv_now(&s->loop->uv);
    if (s->share.due_at && s->share.due_at <= at)
        return;
    s->share.due_at = at;
    dgm_timer_start(&s->share.timer, at > now ? at - now : 1);
}

void dgm_follow_start(struct live *l)
{
    struct live_share *x = l->rare->share;
    struct share_loop *all = &l->shard->share;
    if (x->prev || l->shard->loop->stopping)
        return;
    uint64_t now = follow_now(l);
    bool is_release = dgm_live_is_ours(l); /* that has to be tried again, at poll_at */
    x->next = all->followed;
    x->prev = &all->followed;
    if (x->next)
        x->next->prev = &x->next;
    all->followed = x;
    all->n_followed++;
    atomic_fetch_add_explicit(&l->shard->core->followed, 1, memory_order_relaxed);
    x->poll_ms = FIRST_POLL_MS;
    if (!is_release) {
        x->poll_at = now + FIRST_POLL_MS;
        x->follow_at = now + DGM_FOLLOW_MS / 2;
        if (x->lease.holder == DGM_LEASE_OTHER && x->lease.replica)
            dgm_store_follow(l->shard->core->o.store, dgm_live_owner(l), l->id, x->lease.replica);
    }
    follow_start_timer(l->shard, now + FIRST_POLL_MS);
}

void dgm_follow_delay(struct live *l, struct call *c)
{
    c->next = l->rare->share->delayed;
    l->rare->share->delayed = c;
    dgm_follow_start(l);
}

void dgm_follow_release(struct live_share *x)
{
    if (!x->prev)
        return;
    follow_set_lag(x, 0);
    atomic_fetch_sub_explicit(&x->live->shard->core->followed, 1, memory_order_relaxed);
    *x->prev = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->prev = NULL;
    x->live->shard->share.n_followed--;
}
