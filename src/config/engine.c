/* config/engine.c - see engine.h. */
#include "config/engine.h"

#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SUSPEND_S 10 /* agents that do not stop in time are stopped with their loop */

dgm_core_limits dgm_engine_limits(const dgm_config *c)
{
    return (dgm_core_limits){.log_bytes = (size_t)c->limits.log_bytes,
                             .log_records = (size_t)c->limits.log_records,
                             .queued_messages = (size_t)c->limits.queued_messages,
                             .subscribers = (size_t)c->limits.subscribers};
}

static dgm_code engine_make_core(dgm_engine *e, const dgm_config *c, const dgm_engine_observer *on,
                                 dgm_err *err)
{
    dgm_core_limits limits = dgm_engine_limits(c);
    size_t n_agents;
    dgm_core_agent *agents = dgm_agents_list(e->agents, c, &n_agents);
    dgm_core_options o = {.loops = e->loops,
                          .store = e->store,
                          .agents = agents,
                          .n_agents = n_agents,
                          .limits = &limits,
                          .retention_ms = c->retention_hours * 3600 * 1000,
                          .keep_tasks_ms = c->keep_tasks_days * 24 * 3600 * 1000,
                          .on_warning = on->on_warning,
                          .on_note = on->on_note,
                          .on_fault = on->on_fault,
                          .on_trim_failed = on->on_trim_failed,
                          .user = on->user};
    dgm_code rc = dgm_core_new(&o, &e->core, err);
    free(agents);
    return rc;
}

/* Of several servers: host and port, if it has no other name. */
static dgm_code engine_open_store(dgm_engine *e, const dgm_config *c, dgm_err *err)
{
    char name[DGM_MAX_REPLICA_NAME_BYTES + 1];
    char host[40] = "";
    const char *port = c->listen.p ? strrchr(c->listen.p, ':') : NULL;
    gethostname(host, sizeof host - 1);
    bool has_port = port && port[strspn(port + 1, "0123456789") + 1] == 0;
    snprintf(name, sizeof name, "%s%.8s", host, has_port ? port : "");
    dgm_store_options options = {
        .replica_name = c->replica_name.n ? c->replica_name : dgm_str_from(name),
        .lease_ms = (uint32_t)(c->replica_lease_s * 1000),
        .polls = c->replica_wakeup == DGM_WAKEUP_POLL,
    };
    return dgm_store_open_with(c->store.p, &options, &e->store, err);
}

dgm_code dgm_engine_open(dgm_engine *e, const dgm_config *c, const dgm_engine_observer *observer,
                         dgm_err *err)
{
    dgm_code rc;
    e->agents = dgm_agents_new(observer->on_mcp_log, observer->user);
    dgm_agents_set_log(e->agents, observer->on_agent_log, observer->user);
    if ((rc = dgm_config_make_state_folder(c, err)) || (rc = engine_open_store(e, c, err)))
        return rc;
    dgm_agents_set_store(e->agents, e->store);
    if ((rc = dgm_loops_new((size_t)c->loops, &e->loops, err)) ||
        (rc = dgm_agents_open(e->agents, c, NULL, err)))
        return rc;
    return engine_make_core(e, c, observer, err);
}

struct engine_recovery {
    dgm_core *core;
    sem_t done;
    dgm_code code;
    dgm_err err;
};

static void engine_on_recovered(dgm_code code, const dgm_err *err, void *arg)
{
    struct engine_recovery *r = arg;
    r->code = code;
    if (code)
        r->err = *err;
    sem_post(&r->done);
}

static void engine_recover_on_loop(void *arg)
{
    struct engine_recovery *r = arg;
    dgm_core_recover(r->core, engine_on_recovered, r);
}

dgm_code dgm_engine_recover(dgm_engine *e, dgm_err *err)
{
    struct engine_recovery r = {.core = e->core};
    sem_init(&r.done, 0, 0);
    e->is_running = true;
    dgm_agents_prepare(e->agents, NULL, e->loops);
    dgm_loop_post(dgm_loops_at(e->loops, 0), engine_recover_on_loop, &r);
    while (sem_wait(&r.done) != 0) /* a signal */
        continue;
    sem_destroy(&r.done);
    if (r.code && err)
        *err = r.err;
    return r.code;
}

void dgm_engine_drain(dgm_engine *e, uint64_t ms, dgm_loop_fn on_drained, void *arg)
{
    e->is_drained = true;
    dgm_core_drain(e->core, ms, on_drained, arg);
}

static void engine_on_drained(void *arg)
{
    sem_post(arg);
}

void dgm_engine_suspend(dgm_engine *e)
{
    struct timespec until;
    sem_init(&e->suspended, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SUSPEND_S;
    dgm_engine_drain(e, 0, engine_on_drained, &e->suspended);
    while (sem_timedwait(&e->suspended, &until) != 0 && errno == EINTR)
        continue;
}

void dgm_engine_stop(dgm_engine *e)
{
    if (e->is_running && !e->is_drained)
        dgm_engine_suspend(e);
    if (e->loops) {
        dgm_agents_retire(e->agents);
        dgm_agents_close_mcp(e->agents);
        dgm_loops_stop(e->loops);
    }
    if (e->core)
        dgm_core_stop(e->core);
    dgm_store_close(dgm_take(e->store));
    dgm_loops_free(dgm_take(e->loops)); /* what was on its way is answered here */
}

void dgm_engine_free(dgm_engine *e)
{
    dgm_core_free(dgm_take(e->core));
    dgm_agents_free(dgm_take(e->agents));
}
