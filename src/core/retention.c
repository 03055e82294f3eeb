/* core/retention.c - how long things are kept: finished turns, ended tasks and notes go from the store when they are old
 * enough. */
#include "core/core_int.h"

#include <stdlib.h>

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
