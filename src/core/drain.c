/*
 * core/drain.c - the end of the server: nothing new, what rests is let go, what runs has some time.
 *
 *   drain ─► every loop: readers of tasks that rest are over ─► runs end by themselves ... or time is up:
 *   their tasks fail, their agents are told to stop ─► all of it is stored ─► on_drained
 */
#include "core/core_int.h"

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
    if (!s->core->draining || !s->is_draining || s->drained || s->n_runs || s->n_writing)
        return;
    for (size_t i = 0; i < s->lives.cap; i++) {
        for (struct node *at = s->lives.slots[i]; at; at = at->next) {
            if (dgm_loop_is_queued(&((struct live *)(void *)at)->write.flush))
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
        for (struct node *at = s->lives.slots[i], *next; at; at = next) {
            struct live *l = (struct live *)(void *)at;
            next = at->next;
            dgm_call_refuse_all(&l->calls.queued, &err);
            l->calls.n_queued = 0;
            dgm_live_free_if_idle(l);
        }
    }
}

static void drain_start(void *arg)
{
    struct shard *s = arg;
    s->is_draining = true;
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
    dgm_loop_post(core->shards[0].loop, drain_start_timer, core); /* before anybody can be done */
    for (size_t i = 0; i < core->n_shards; i++)
        dgm_loop_post(core->shards[i].loop, drain_start, &core->shards[i]);
}
