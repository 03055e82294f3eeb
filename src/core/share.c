/*
 * core/share.c - the leases of tasks, in a store that several servers share (store/share.h).
 *
 *   a new task: ours ── its turn ends: the append of the last record releases the lease ──► no owner
 *   no owner ── a message or a cancel: dgm_store_acquire, then the records of other servers are read ──► ours
 *            ── another server was faster ──► its task: calls are sent to it (forward.c)
 *   ours ── the store refuses an append, because another server owns the task ──► its task: the log continues as stored
 *
 * Invariants: records that the store has refused were never visible. Nothing is written to a task that this server does not
 * own. While this server has a lease, the task has a run or a call that needs it; otherwise the lease is released.
 */
#include "core/core_int.h"

#include <stdlib.h>

/* A lease that could not be given back. */
#define RELEASE_AGAIN_MS 1000

void dgm_share_open(struct live *l)
{
    struct live_share *x = dgm_live_rare(l)->share = dgm_xcalloc(1, sizeof *x);
    x->live = l;
    x->lease.holder = DGM_LEASE_NONE;
}

void dgm_share_done(struct live *l)
{
    dgm_follow_release(l->rare->share);
    free(l->rare->share);
}

void dgm_share_own_new(struct live *l)
{
    l->rare->share->lease = (dgm_lease){.holder = DGM_LEASE_OURS,
                                        .replica = dgm_store_replica(l->shard->core->o.store).id,
                                        .fence = 1};
}

dgm_fence dgm_share_fence(const struct live *l)
{
    if (!l || !l->rare->share)
        return (dgm_fence){0};
    return (dgm_fence){dgm_live_owner(l), l->id, l->rare->share->lease.fence};
}

/* ---- giving back ------------------------------------------------------------------------------------------------- */

bool dgm_share_releases(struct live *l)
{
    struct live_share *x = l->rare->share;
    bool releases = x->lease.holder == DGM_LEASE_OURS && l->write.folded && !l->run &&
                    dgm_live_is_at_rest(l) && !l->rare->queued && !l->n_lookups &&
                    !x->is_continuing;
    if (releases) {
        x->lease.holder = DGM_LEASE_NONE;
        x->lease.replica = 0;
        x->is_releasing = true;
        x->folded_to = l->log->last;
    }
    return releases;
}

static void on_released(dgm_code code, const dgm_err *err, void *arg)
{
    struct live *l = arg;
    struct live_share *x = l->rare->share;
    struct shard *s = l->shard;
    x->is_releasing = false;
    s->n_writing--;
    l->held++;
    if (code == DGM_UNAVAILABLE && !dgm_store_is_lost(err) && !s->is_draining) {
        x->poll_at = x->release_at = uv_now(&s->loop->uv) + RELEASE_AGAIN_MS;
        dgm_follow_start(l);
        if (!x->releases_first)
            dgm_follow_read(l); /* calls came meanwhile: it is ours */
    } else {
        x->releases_first = false;
        x->lease = (dgm_lease){.holder = DGM_LEASE_NONE};
        x->folded_to = l->log->last;
        dgm_follow_read(l);
    }
    l->held--;
    dgm_live_free_if_idle(l);
    if (s->is_draining)
        dgm_drain_check(s);
}

void dgm_share_release(struct live *l)
{
    struct live_share *x = l->rare->share;
    if (x->release_at > uv_now(&l->shard->loop->uv))
        return;
    x->is_releasing = true;
    l->shard->n_writing++;
    dgm_store_release(l->shard->core->o.store, dgm_live_owner(l), l->id, x->lease.fence,
                      on_released, l);
}

bool dgm_share_is_busy(struct live *l)
{
    struct live_share *x = l->rare->share;
    if (x->reading || x->is_releasing || x->waiting || x->served || x->delayed)
        return true;
    if (x->is_unsure && l->state == LIVE_READY && !l->shard->core->draining) {
        dgm_follow_start(
            l); /* until the row was read: perhaps it is a task that works and has no run */
        return true;
    }
    if (x->lease.holder != DGM_LEASE_OURS || l->shard->core->stopping)
        return false;
    dgm_share_release(l); /* a task that works and has no run is an orphan from then on */
    return true;
}

/* ---- acquiring ---------------------------------------------------------------------------------------------------- */

bool dgm_share_may_write(struct live *l, struct call *c)
{
    struct live_share *x = l->rare->share;
    if (x->lease.holder == DGM_LEASE_OURS)
        return true;
    if (x->lease.holder == DGM_LEASE_OTHER) {
        dgm_forward(l, c);
    } else {
        x->wants_lease = true;
        dgm_follow_then_handle(l, c);
    }
    return false;
}

void dgm_share_settle(struct live *l)
{
    dgm_err err = {0};
    const dgm_core *core = l->shard->core;
    l->rare->share->folded_to = l->log->last;
    if (l->rare->share->lease.holder == DGM_LEASE_OURS && !core->draining && !core->stopping &&
        dgm_live_settle(l, &err))
        dgm_live_break(l, &err);
}

/* ---- losing ------------------------------------------------------------------------------------------------------- */

/* Of the turns that were not stored. */
static void share_drop_turns(struct live *l)
{
    while (l->turns.n && l->turns.items[l->turns.n - 1].first_seq > l->log->published)
        l->turns.n--;
    l->turns.last.turn = l->turns.n ? l->turns.items[l->turns.n - 1].turn : 0;
    l->rare->share->turns_are_stale = true;
}

/* Nothing that waits to be written is. */
static void share_drop_writes(struct live *l)
{
    dgm_record **records =
        l->write.n_records ? dgm_log_tail(l->log, l->write.n_records, &l->shard->batch) : NULL;
    for (size_t i = 0; i < l->write.n_records; i++)
        l->write.bytes -= records[i]->n;
    dgm_loop_not_at_turn_end(l->shard->loop, &l->write.flush);
    l->write.n_records = 0;
    l->write.sync = l->write.turn = l->write.folded = false;
    dgm_live_clear_names(l);
    dgm_resend_drop(l, UINT64_MAX);
    dgm_log_truncate(l->log);
    l->rare->share->fold_is_stale = true;
}

/*
 * Why a task is not ours any more. The outcome of an append may be unknown: the database was not reached, or did not answer.
 * What it has is found by reading it, as another server would: the lease is given back, since no append of before may be stored
 * after that, and acquired again.
 */
enum share_loss { LOSS_TAKEN, LOSS_DUPLICATE, LOSS_UNKNOWN };

/* Their answers speak of records that the store has refused. */
static void share_route_again(struct live *l, struct call *list, bool is_duplicate,
                              const dgm_err *err)
{
    for (struct call *c = list, *next; c; c = next) {
        next = c->next;
        if (c->kind == CALL_SEND && is_duplicate && c->send.dedupes) {
            dgm_resend_find_first(c, c->send.asked_task.n ? l->context_id : c->send.asked_context);
        } else if (c->kind == CALL_SEND || l->state == LIVE_BROKEN) {
            dgm_call_refuse(c, err);
        } else {
            dgm_call_reset(c);
            c->next = l->rare->share->waiting;
            l->rare->share->waiting = c;
        }
    }
}

/* Messages that wait for the run: they have not become a part of the task. Copies are calls like the others. */
static void share_route_queued(struct live *l)
{
    struct call *c, *copy;
    while ((c = l->rare->queued)) {
        dgm_live_rare(l)->queued = c->next;
        c->next = c->send.copies;
        c->send.copies = NULL;
        for (; c; c = copy) {
            copy = c->next;
            c->send.queue = NULL;
            dgm_deadline_stop(c);
            c->is_looked_up = false;
            c->next = l->rare->share->waiting;
            l->rare->share->waiting = c;
        }
    }
    dgm_live_rare(l)->n_queued = 0;
}

static void share_lose(struct live *l, enum share_loss why, const dgm_err *err)
{
    bool is_duplicate = why == LOSS_DUPLICATE;
    struct live_share *x = l->rare->share;
    struct call *waiting = l->waiting, *canceling = l->rare->canceling;
    dgm_err lost = *err; /* it is the answer's */
    if (!is_duplicate)
        atomic_fetch_add_explicit(&l->shard->core->lost, 1, memory_order_relaxed);
    x->epoch++;
    x->lease = (dgm_lease){.holder = why == LOSS_TAKEN ? DGM_LEASE_OTHER : DGM_LEASE_NONE,
                           .fence = x->lease.fence};
    x->is_releasing = false;
    x->releases_first = why == LOSS_UNKNOWN;
    x->is_unsure = true;
    l->waiting = NULL;
    l->waiting_end = &l->waiting;
    if (canceling)
        dgm_live_rare(l)->canceling = NULL;
    if (l->run) {
        dgm_core_run_written(l->run, DGM_UNAVAILABLE);
        dgm_core_run_detach(l->run, !is_duplicate);
    }
    share_drop_writes(l);
    share_drop_turns(l);
    if (!l->log->published && why != LOSS_UNKNOWN) { /* nothing of the task is stored */
        dgm_live_break(l, &lost);
    } else if (!l->log->published) { /* perhaps: its callers do not know the task */
        dgm_call_refuse_all(&dgm_live_rare(l)->queued, &lost);
        dgm_live_rare(l)->n_queued = 0;
    } else if (l->rare->queued) {
        share_route_queued(l);
    }
    share_route_again(l, waiting, is_duplicate, &lost);
    share_route_again(l, canceling, is_duplicate, &lost);
    x->wants_row = why == LOSS_TAKEN;
    x->wants_lease = why != LOSS_TAKEN && !l->shard->core->draining;
}

bool dgm_share_is_refused(struct live *l, uint32_t epoch, dgm_code code, const dgm_err *err)
{
    struct live_share *x = l->rare->share;
    bool was_releasing = x->is_releasing;
    if (!l->write.n_appends)
        x->is_releasing = false;
    if (epoch != x->epoch || l->state == LIVE_BROKEN)
        return true;
    if (!code)
        return false;
    if (code == DGM_UNAVAILABLE) {
        share_lose(l,
                   dgm_store_is_lost(err)        ? LOSS_TAKEN
                   : dgm_store_is_duplicate(err) ? LOSS_DUPLICATE
                                                 : LOSS_UNKNOWN,
                   err);
        return true;
    }
    if (was_releasing)
        x->lease.holder = DGM_LEASE_OURS; /* perhaps: it is given back once more */
    return false;
}

/* ---- doubts ------------------------------------------------------------------------------------------------------- */

/* A server that was stopped for longer than its lease has lost its tasks, and has not noticed it yet. What it has in memory
 * is not what other servers show by then. */
bool dgm_share_is_doubtful(const struct live *l)
{
    dgm_store *store = l->shard->core->o.store;
    return l->state == LIVE_READY &&
           (l->rare->share->lease.replica != dgm_store_replica(store).id ||
            dgm_store_stats_of(store).lease_left_ms < 0);
}

struct verifying {
    struct live *live;
    struct call *call; /* NULL: of share_verify_some */
    uint32_t epoch;
};

static void share_verify_some(struct shard *s);

static void share_handle_verified(struct live *l, struct call *c, dgm_code code, const dgm_err *err)
{
    if (!c) {
        l->shard->share.n_verifying--;
        dgm_follow_read(l); /* what waited for the run, if it has ended now */
        share_verify_some(l->shard);
    } else if (l->shard->core->stopping) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
    } else if (code) {
        dgm_call_refuse(c, err);
    } else if (dgm_live_is_ours(l) || l->state != LIVE_READY) {
        dgm_live_handle(l, c);
    } else {
        dgm_follow_then_handle(l, c);
    }
}

static void on_verified(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct verifying *v = arg;
    struct live *l = v->live;
    struct live_share *x = l->rare->share;
    struct call *c = v->call;
    uint32_t epoch = v->epoch;
    dgm_err lost = {0};
    free(v);
    l->n_lookups--;
    l->held++;
    bool is_current = !code && !l->shard->core->stopping && epoch == x->epoch &&
                      l->state == LIVE_READY && dgm_live_is_ours(l);
    if (is_current &&
        (!row || row->lease.holder != DGM_LEASE_OURS || row->lease.fence != x->lease.fence)) {
        dgm_fail(&lost, DGM_UNAVAILABLE, NULL,
                 "another server owns the task now: send the message again");
        share_lose(l, LOSS_TAKEN, &lost);
    } else if (is_current) {
        x->lease.replica = row->lease.replica; /* it was made while the id of this server changed */
    }
    share_handle_verified(l, c, code, err);
    l->held--;
    dgm_live_free_if_idle(l);
}

void dgm_share_verify(struct live *l, struct call *c)
{
    struct verifying *v = dgm_xcalloc(1, sizeof *v);
    *v = (struct verifying){l, c, l->rare->share->epoch};
    l->n_lookups++;
    dgm_store_get_task(l->shard->core->o.store, dgm_live_owner(l), l->id, on_verified, v);
}

/* ---- after this server was declared dead ---------------------------------------------------------------------------- */

#define MOST_VERIFYING 64 /* reads of rows at a time, per loop */

static bool has_old_run(const struct live *l)
{
    return l->run && l->state == LIVE_READY && dgm_live_is_ours(l) &&
           l->rare->share->lease.replica != dgm_store_replica(l->shard->core->o.store).id;
}

/* Tasks whose run does not know yet that its server has lost them: slot by slot of the table. One that moves to another slot
 * while the table grows moves to a later one. */
static void share_verify_some(struct shard *s)
{
    struct share_loop *x = &s->share;
    while (x->verify_slot < s->lives.cap && x->n_verifying < MOST_VERIFYING && !s->core->stopping) {
        for (dgm_table_node *at = s->lives.slots[x->verify_slot]; at; at = at->next) {
            struct live *l = (struct live *)(void *)at;
            if (!has_old_run(l))
                continue;
            x->n_verifying++;
            dgm_share_verify(l, NULL);
        }
        x->verify_slot++;
    }
}

static void share_verify_all(void *arg)
{
    struct shard *s = arg;
    s->share.verify_slot = 0;
    share_verify_some(s);
}

/* Without this they would go on, and call tools, until they append. */
static void share_on_renewed(void *user)
{
    dgm_core *core = user;
    for (size_t i = 0; i < core->n_shards && !core->stopping; i++)
        dgm_loop_post(core->shards[i].loop, share_verify_all, &core->shards[i]);
}

/* ---- what the store calls ------------------------------------------------------------------------------------------ */

struct orphan {
    dgm_core *core;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str task_id;
    uint64_t fence;
    bool is_taken; /* by on_orphans; false: by on_owned */
};

/* The start of the server waits until the tasks of the first search are settled. */
static void share_check_recovery(dgm_core *core)
{
    if (core->is_searched && !core->n_settling && core->recovering)
        dgm_recovery_finish(dgm_take(core->recovering));
}

/* If it was not read, it is an orphan again; if its lease has changed since, the store refuses that. If that fails as well,
 * on_owned finds it later. */
static void on_orphan_settled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct orphan *o = arg;
    (void)snapshot, (void)err;
    if (code == DGM_UNAVAILABLE && !o->core->stopping)
        dgm_store_release_failed(o->core->o.store, o->owner, o->task_id, o->fence);
    if (o->is_taken) {
        o->core->n_settling--;
        share_check_recovery(o->core);
    }
    dgm_arena_free(o->arena);
}

static void share_settle_orphan(dgm_core *core, const dgm_task_row *row, bool is_taken)
{
    dgm_arena *a = dgm_arena_new_small(sizeof(struct orphan) + 128);
    struct orphan *o = dgm_new(a, struct orphan);
    *o = (struct orphan){
        core,
        a,
        {dgm_arena_dup(a, row->owner.tenant), dgm_arena_dup(a, row->owner.principal)},
        dgm_arena_dup(a, row->id),
        row->lease.fence,
        is_taken};
    if (is_taken)
        core->n_settling++;
    dgm_core_settle(core, o->owner, o->task_id, on_orphan_settled, o);
}

static void share_on_orphans(void *user, const dgm_task_row *rows, size_t n)
{
    dgm_core *core = user;
    if (core->stopping)
        return;
    atomic_fetch_add_explicit(&core->taken_over, n, memory_order_relaxed);
    for (size_t i = 0; i < n; i++) {
        if (core->draining)
            dgm_store_release(core->o.store, rows[i].owner, rows[i].id, rows[i].lease.fence, NULL,
                              NULL);
        else
            share_settle_orphan(core, &rows[i], true);
    }
}

/* Tasks of one loop, of one on_owned. */
struct owned {
    struct shard *shard;
    dgm_arena *arena;
    size_t n;
    dgm_task_row rows[];
};

/* Of most tasks there is nothing to do. One that is here, but was read before it became ours, is read again. */
static void share_check_owned(struct shard *s, const dgm_task_row *row)
{
    struct live *l = dgm_live_find(s, row->owner, row->id);
    if (!l) {
        share_settle_orphan(s->core, row, false);
    } else if (l->state == LIVE_READY && !dgm_live_is_ours(l)) {
        l->rare->share->wants_row = true;
        dgm_follow_read(l);
    }
}

static void share_handle_owned(void *arg)
{
    struct owned *o = arg;
    for (size_t i = 0; i < o->n && !o->shard->core->draining && !o->shard->core->stopping; i++)
        share_check_owned(o->shard, &o->rows[i]);
    dgm_arena_free(o->arena);
}

static struct owned *owned_new(struct shard *s, size_t most)
{
    dgm_arena *a = dgm_arena_new();
    struct owned *o = dgm_arena_alloc(a, sizeof *o + most * sizeof *o->rows);
    *o = (struct owned){.shard = s, .arena = a};
    return o;
}

/* Only the loop of a task knows whether the task is here. */
static void share_on_owned(void *user, const dgm_task_row *rows, size_t n)
{
    dgm_core *core = user;
    if (core->draining || core->stopping)
        return;
    struct owned **of = dgm_xcalloc(core->n_shards, sizeof(struct owned *));
    for (size_t i = 0; i < n; i++) {
        struct shard *s = dgm_core_shard_of(core, rows[i].owner, rows[i].id);
        struct owned **at = &of[s - core->shards];
        if (!*at)
            *at = owned_new(s, n);
        struct owned *o = *at;
        o->rows[o->n++] =
            (dgm_task_row){.owner = {dgm_arena_dup(o->arena, rows[i].owner.tenant),
                                     dgm_arena_dup(o->arena, rows[i].owner.principal)},
                           .id = dgm_arena_dup(o->arena, rows[i].id),
                           .lease = rows[i].lease};
    }
    for (size_t i = 0; i < core->n_shards; i++) {
        if (of[i])
            dgm_loop_post(core->shards[i].loop, share_handle_owned, of[i]);
    }
    free(of);
}

static void share_on_searched(void *user)
{
    dgm_core *core = user;
    core->is_searched = true;
    share_check_recovery(core);
}

struct grown {
    dgm_core *core;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str task_id;
};

static void share_handle_grown(void *arg)
{
    struct grown *g = arg;
    struct shard *s = dgm_core_shard_of(g->core, g->owner, g->task_id);
    struct live *l = dgm_live_find(s, g->owner, g->task_id);
    if (l && l->state == LIVE_READY && !dgm_live_is_ours(l)) {
        l->rare->share->was_woken = l->rare->share->wants_records = true;
        dgm_follow_read(l);
    }
    dgm_arena_free(g->arena);
}

static void share_on_grown(void *user, dgm_owner owner, dgm_str task_id)
{
    dgm_core *core = user;
    if (core->stopping)
        return;
    dgm_arena *a = dgm_arena_new_small(sizeof(struct grown) + 128);
    struct grown *g = dgm_new(a, struct grown);
    *g = (struct grown){core,
                        a,
                        {dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)},
                        dgm_arena_dup(a, task_id)};
    core->is_woken = true;
    dgm_loop_post(dgm_core_shard_of(core, g->owner, g->task_id)->loop, share_handle_grown, g);
}

static void share_on_command(void *user, const dgm_command *command)
{
    dgm_core *core = user;
    if (!core->stopping)
        dgm_forward_handle(core, command);
}

void dgm_share_set_agents(dgm_core *core)
{
    dgm_str *ids = dgm_xcalloc(DGM_MAX_AGENTS, sizeof *ids);
    size_t n = 0;
    for (; !core->draining && n < core->n_agents; n++)
        ids[n] = core->agents[n]->id;
    dgm_store_set_agents(core->o.store, ids, n);
    free(ids);
}

void dgm_share_start(dgm_core *core)
{
    dgm_share_set_agents(core);
    dgm_share_handlers handlers = {.on_orphans = share_on_orphans,
                                   .on_searched = share_on_searched,
                                   .on_owned = share_on_owned,
                                   .on_renewed = share_on_renewed,
                                   .on_grown = share_on_grown,
                                   .on_command = share_on_command,
                                   .user = core};
    dgm_store_share(core->o.store, core->shards[0].loop, &handlers);
}
