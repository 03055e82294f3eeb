/*
 * config/engine.h - the parts that run agents, opened as a configuration describes them: store, loops, agents, core.
 *
 *   open: store, loops, agents, core ─► start: threads, recovery ─► ... ─► stop: threads, store ─► free: core, agents
 *
 * The server (app/serve) and the library (lib/agent) both use it, each with its own callers of the core.
 */
#pragma once

#include "config/agents.h"

#include <semaphore.h>

typedef struct dgm_engine {
    dgm_store *store;
    dgm_loops *loops;
    dgm_agents *agents;
    dgm_core *core;
    bool is_running; /* tasks may run */
    bool is_drained; /* dgm_engine_drain() or dgm_engine_suspend() was called */
    sem_t suspended;
} dgm_engine;

/* What the owner of an engine wants to be called for: the same members of dgm_core_options, and lines of MCP servers. Each may
 * be NULL, and is called from any thread. */
typedef struct dgm_engine_observer {
    void (*on_warning)(void *user, dgm_str task_id, const char *rule, const dgm_err *what);
    void (*on_note)(void *user, dgm_str agent, dgm_str task_id, dgm_str line);
    void (*on_fault)(void *user, dgm_str agent, dgm_str task_id, const dgm_run_fault *fault);
    void (*on_trim_failed)(void *user, const dgm_err *why);
    void (*on_mcp_log)(void *user, dgm_str line);
    void (*on_agent_log)(void *user, dgm_str agent, bool is_fault, dgm_str line);
    void *user;
} dgm_engine_observer;

dgm_core_limits dgm_engine_limits(const dgm_config *c);

/* *e is zeros. On an error too it is stopped and freed as always. No thread of the loops runs yet. */
dgm_code dgm_engine_open(dgm_engine *e, const dgm_config *c, const dgm_engine_observer *observer,
                         dgm_err *err);
/* Starts the long-lived programs of agents, then settles what a crash left unfinished; blocks until that is done. The loops have
 * been started. */
dgm_code dgm_engine_recover(dgm_engine *e, dgm_err *err);
/* dgm_core_drain(). Once. */
void dgm_engine_drain(dgm_engine *e, uint64_t ms, dgm_loop_fn on_drained, void *arg);
/* Drains without a delay and blocks until that is done, at most 10 s. */
void dgm_engine_suspend(dgm_engine *e);
/* Stops the threads and closes the store; suspends tasks that still run. Callbacks that were on their way have been called when it returns. */
void dgm_engine_stop(dgm_engine *e);
/* After dgm_engine_stop(), when no caller of the core is left. */
void dgm_engine_free(dgm_engine *e);
