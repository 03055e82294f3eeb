/*
 * core/server_life.c - what the server does on its own: recovery at the start, retention, the drain at the end.
 *
 * Recovery: tasks that a crash left in the middle are found page by page, each on the loop that owns it, and become
 * failed. Runs of agents that can resume start again (dgm_core_run_resume), a group of them at a time.
 *
 * Drain: every loop ends the readers of tasks that rest ─► runs end by themselves, or time is up: their tasks fail, or
 * wait for the next process if it can resume them, their agents are asked to stop ─► all of it is stored ─► on_drained
 */
#include "core/core_int.h"

#include <stdlib.h>

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

#define PAGE 100

struct recovery {
    dgm_core *core;
    dgm_store_done done;
    void *arg;
    dgm_arena *last; /* holds the row the next page begins behind */
    dgm_task_row after;
    size_t open; /* calls of this page that are not answered yet */
    bool more;
    dgm_code code;
    dgm_err err;
};

static void recovery_next_page(struct recovery *r);

void dgm_recovery_finish(struct recovery *r)
{
    r->done(r->code, r->code ? &r->err : NULL, r->arg);
    dgm_arena_free(r->last);
    free(r);
}

static void on_settled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct recovery *r = arg;
    (void)snapshot;
    /* Tasks of an agent that is not configured any more stay as they are. */
    if (code && code != DGM_TASK_NOT_FOUND && !r->code) {
        r->code = code;
        r->err = *err;
    }
    if (--r->open == 0) {
        if (r->more && !r->code)
            recovery_next_page(r);
        else
            dgm_recovery_finish(r);
    }
}

static void got_page(dgm_code code, const dgm_task_row *rows, size_t n, bool more, size_t total,
                     const dgm_err *err, void *arg)
{
    struct recovery *r = arg;
    (void)total;
    r->more = more;
    if (code || !n) {
        r->code = code;
        if (code)
            r->err = *err;
        dgm_recovery_finish(r);
        return;
    }
    dgm_arena *a = dgm_arena_new();
    const dgm_task_row *last = &rows[n - 1];
    r->after = (dgm_task_row){
        .owner = {dgm_arena_dup(a, last->owner.tenant), dgm_arena_dup(a, last->owner.principal)},
        .id = dgm_arena_dup(a, last->id)};
    dgm_arena_free(r->last);
    r->last = a;
    r->open = n;
    for (size_t i = 0; i < n; i++)
        dgm_core_settle(r->core, rows[i].owner, rows[i].id, on_settled, r);
}

static void recovery_next_page(struct recovery *r)
{
    dgm_store_list_unfinished(r->core->o.store, PAGE, r->last ? &r->after : NULL, got_page, r);
}

void dgm_core_recover(dgm_core *core, dgm_store_done done, void *arg)
{
    struct recovery *r = dgm_xcalloc(1, sizeof *r);
    *r = (struct recovery){.core = core, .done = done, .arg = arg};
    if (core->is_shared) { /* other servers work on unfinished tasks: those of dead ones come (share.c) */
        core->recovering = r;
        dgm_share_start(core);
    } else {
        recovery_next_page(r);
    }
}

/* ---- runs of the process before --------------------------------------------------------------------------------- */

struct resumption {
    struct shard *shard;
    dgm_timer timer;
    dgm_loop_stop stop;
    size_t n_started; /* since the timer fired last */
};

static void resume_free(void *arg)
{
    free(arg);
}

static void resume_close(void *arg)
{
    struct resumption *k = arg;
    dgm_loop_off_stop(k->shard->loop, &k->stop);
    k->shard->resuming = NULL;
    dgm_timer_close(&k->timer, resume_free, k);
}

void dgm_resume_now(struct run *r)
{
    r->is_queued = false;
    if (dgm_core_history_is_ready(r, false))
        dgm_core_run_begin(r);
}

static struct run *resume_next(const struct shard *s)
{
    struct run *r = s->runs;
    while (r && !r->is_queued)
        r = r->next;
    return r;
}

static void resume_group(void *arg)
{
    struct resumption *k = arg;
    struct run *r;
    for (k->n_started = 0; k->n_started < DGM_RESUME_RUNS && (r = resume_next(k->shard));) {
        k->n_started++;
        dgm_resume_now(r); /* it may end in here */
    }
    if (k->n_started)
        dgm_timer_start(&k->timer, DGM_RESUME_MS);
    else
        resume_close(k);
}

void dgm_resume_run(struct run *r)
{
    struct shard *s = r->shard;
    struct resumption *k = s->resuming;
    if (!k) {
        k = s->resuming = dgm_xcalloc(1, sizeof *k);
        k->shard = s;
        k->stop = (dgm_loop_stop){.fn = resume_close, .arg = k};
        dgm_timer_init(s->loop, &k->timer, resume_group, k);
        dgm_timer_start(&k->timer, DGM_RESUME_MS);
        dgm_loop_on_stop(s->loop, &k->stop);
    }
    r->is_queued = true;
    if (k->n_started < DGM_RESUME_RUNS) {
        k->n_started++;
        dgm_resume_now(r);
    }
}

/* ---- retention --------------------------------------------------------------------------------------------------- */

/* A look every 24th of the time, so that nothing is kept much longer than it should; not all the time. */
#define LOOKS 24
#define SHORTEST_MS ((int64_t)10 * 1000)
#define LONGEST_MS ((int64_t)3600 * 1000)

struct retention {
    dgm_core *core;
    dgm_timer timer;
    dgm_loop_stop stop;
    bool trimming;
};

static void wait_for_next(struct retention *k)
{
    int64_t turns = atomic_load(&k->core->retention_ms),
            tasks = atomic_load(&k->core->keep_tasks_ms);
    int64_t ms = (turns && (!tasks || turns < tasks) ? turns : tasks) / LOOKS;
    if (!turns && !tasks)
        ms = LONGEST_MS; /* for what has an end of its own */
    ms = ms < SHORTEST_MS ? SHORTEST_MS : ms > LONGEST_MS ? LONGEST_MS : ms;
    dgm_timer_start(&k->timer, (uint64_t)ms);
}

static void on_trimmed(dgm_code code, const dgm_err *err, void *arg)
{
    struct retention *k = arg;
    const dgm_core_options *o = &k->core->o;
    k->trimming = false;
    if (code && o->on_trim_failed)
        o->on_trim_failed(o->user, err);
}

static void retention_trim(void *arg)
{
    struct retention *k = arg;
    int64_t turns = atomic_load(&k->core->retention_ms),
            tasks = atomic_load(&k->core->keep_tasks_ms);
    int64_t now = dgm_loop_unix_ms();
    wait_for_next(k);
    if (k->trimming || k->core->stopping)
        return;
    k->trimming = true;
    dgm_store_trim(k->core->o.store,
                   (dgm_retention){turns ? now - turns : 0, tasks ? now - tasks : 0}, on_trimmed,
                   k);
}

static void retention_close_timer(void *arg)
{
    struct retention *k = arg;
    dgm_timer_close(&k->timer, NULL, NULL);
}

static void retention_open(void *arg)
{
    struct retention *k = arg;
    dgm_timer_init(k->core->shards[0].loop, &k->timer, retention_trim, k);
    k->stop = (dgm_loop_stop){.fn = retention_close_timer, .arg = k};
    dgm_loop_on_stop(k->core->shards[0].loop, &k->stop);
    retention_trim(k); /* what became old while the server was down */
}

void dgm_retention_start(dgm_core *core)
{
    struct retention *k = core->retention = dgm_xcalloc(1, sizeof *k);
    k->core = core;
    dgm_loop_post(core->shards[0].loop, retention_open, k);
}

void dgm_retention_free(dgm_core *core)
{
    free(core->retention);
}

void dgm_core_keep_for(dgm_core *core, int64_t retention_ms, int64_t keep_tasks_ms)
{
    atomic_store(&core->retention_ms, retention_ms); /* from the next look on */
    atomic_store(&core->keep_tasks_ms, keep_tasks_ms);
}

/* ---- drain ------------------------------------------------------------------------------------------------------- */

static void drain_report(void *arg)
{
    dgm_core *core = arg;
    if (core->drain_timer_open) {
        core->drain_timer_open = false;
        dgm_loop_off_stop(core->shards[0].loop, &core->drain_stop);
        dgm_timer_close(&core->drain_timer, NULL, NULL);
    }
    core->on_drained(core->drained_arg);
}

void dgm_drain_check(struct shard *s)
{
    if (!s->is_draining || s->drained || s->n_runs || s->n_writing)
        return;
    for (size_t i = 0; i < s->lives.cap; i++) {
        for (dgm_table_node *at = s->lives.slots[i]; at; at = at->next) {
            if (((struct live *)(void *)at)->write.flush.next)
                return; /* it looks again when that is written */
        }
    }
    s->drained = true;
    if (atomic_fetch_sub(&s->core->undrained, 1) == 1)
        dgm_loop_post(s->core->shards[0].loop, drain_report, s->core);
}

static void drain_release_idle(struct shard *s)
{
    dgm_err err = {0};
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    for (size_t i = 0; i < s->lives.cap; i++) {
        for (dgm_table_node *at = s->lives.slots[i], *next; at; at = next) {
            struct live *l = (struct live *)(void *)at;
            next = at->next;
            if (l->rare->queued) {
                dgm_call_refuse_all(&dgm_live_rare(l)->queued, &err);
                dgm_live_rare(l)->n_queued = 0;
            }
            dgm_live_free_if_idle(l);
        }
    }
}

static void drain_start(void *arg)
{
    struct shard *s = arg;
    s->is_draining = true;
    for (struct run *r; (r = resume_next(s));) { /* the next process starts them */
        r->is_queued = false;
        dgm_core_run_abort(r);
    }
    drain_release_idle(s);
    dgm_drain_check(s);
}

static void abort_runs(void *arg)
{
    struct shard *s = arg;
    for (struct run *r = s->runs, *next; r; r = next) {
        next = r->next; /* its agent may end it in here */
        dgm_core_run_abort(r);
    }
    dgm_drain_check(s);
}

static void on_drain_timeout(void *arg)
{
    dgm_core *core = arg;
    for (size_t i = 0; i < core->n_shards; i++)
        dgm_loop_post(core->shards[i].loop, abort_runs, &core->shards[i]);
}

static void drain_close_timer(void *arg)
{
    dgm_core *core = arg;
    core->drain_timer_open = false;
    dgm_timer_close(&core->drain_timer, NULL, NULL);
}

static void drain_start_timer(void *arg)
{
    dgm_core *core = arg;
    dgm_loop *loop = core->shards[0].loop;
    dgm_timer_init(loop, &core->drain_timer, on_drain_timeout, core);
    dgm_timer_start(&core->drain_timer, core->drain_ms);
    core->drain_stop = (dgm_loop_stop){.fn = drain_close_timer, .arg = core};
    dgm_loop_on_stop(loop, &core->drain_stop);
    core->drain_timer_open = true;
}

void dgm_core_drain(dgm_core *core, uint64_t ms, dgm_loop_fn on_drained, void *arg)
{
    core->on_drained = on_drained;
    core->drained_arg = arg;
    core->drain_ms = ms;
    atomic_store(&core->undrained, core->n_shards);
    atomic_store(&core->draining, true);
    if (core->is_shared)
        dgm_share_set_agents(core);
    dgm_loop_post(core->shards[0].loop, drain_start_timer, core); /* before anybody can be done */
    for (size_t i = 0; i < core->n_shards; i++)
        dgm_loop_post(core->shards[i].loop, drain_start, &core->shards[i]);
}
