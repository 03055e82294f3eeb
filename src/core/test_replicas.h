/*
 * core/test_replicas.h - several servers on one shared memory, in one process: for the tests of replicas.
 *
 * The agent holds its run; the test makes it emit with emit_at(). A resumed run emits "resumed" and holds again.
 */
#pragma once

#include "core/test_core.h"
#include "store/memory/memory_share.h"

#include <unistd.h>

#define MOST_REPLICAS 3

static struct env replicas[MOST_REPLICAS];
static size_t n_replicas;
static const char *agent_at[MOST_REPLICAS] = {"one", "one", "one"}; /* its only agent */
static _Atomic bool agents_resume, agents_accept;
static _Atomic bool agents_complete; /* those that are canceled say that they have completed */
static void (*on_replica_store)(size_t i, dgm_store *s); /* of each store, before a core has it */
static _Atomic int n_resumed, n_canceled_at[MOST_REPLICAS], n_started_at[MOST_REPLICAS];

/* The newest run of each server, and where it runs. */
static dgm_run *_Atomic held_at[MOST_REPLICAS];
static dgm_loop *_Atomic loop_at[MOST_REPLICAS];
static _Atomic uint64_t fence_at[MOST_REPLICAS];

static inline void hold_at(size_t i, dgm_run *run)
{
    fence_at[i] = run->input->fence;
    loop_at[i] = run->loop;
    held_at[i] = run;
}

static inline void replica_start(void *agent, dgm_run *run)
{
    size_t i = (size_t)(uintptr_t)agent;
    dgm_str said = run->input->message->parts.at[0].content;
    n_started_at[i]++;
    if (run->input->is_resumed) {
        n_resumed++;
        chunk(run, "resumed", false, false);
        hold_at(i, run);
    } else if (dgm_str_is(said, "hold")) {
        status(run, DGM_STATE_WORKING, NULL);
        hold_at(i, run);
    } else if (dgm_str_is(said, "quiet")) {
        hold_at(i, run);
    } else {
        agent_start(agent, run);
    }
}

static inline void replica_cancel(void *agent, dgm_run *run)
{
    size_t i = (size_t)(uintptr_t)agent;
    if (!run->suspended)
        n_canceled_at[i]++;
    if (held_at[i] == run)
        held_at[i] = NULL;
    if (agents_complete && !run->suspended)
        status(run, DGM_STATE_COMPLETED, "done");
    run->ops->end(run, NULL);
}

static inline bool replica_message(void *agent, dgm_run *run, const dgm_message *message,
                                   const dgm_json *metadata)
{
    (void)agent, (void)run, (void)message, (void)metadata;
    return agents_accept;
}

static inline bool replica_resumes(void *agent)
{
    (void)agent;
    return agents_resume;
}

static const dgm_backend replica_agent = {.type = "replica",
                                          .can_resume = true,
                                          .start = replica_start,
                                          .cancel = replica_cancel,
                                          .message = replica_message,
                                          .resumes = replica_resumes};

static inline void start_replica(size_t i, const char *url)
{
    struct env *e = &replicas[i];
    const dgm_core_agent agents[] = {{.id = dgm_str_from(agent_at[i]),
                                      .backend = &replica_agent,
                                      .agent = (void *)(uintptr_t)i,
                                      .dedupe = true}};
    dgm_err err = {0};
    dgm_core_options o = {.agents = agents, .n_agents = 1, .limits = &limits};
    *e = (struct env){0};
    assert_int_equal(dgm_loops_new(N_LOOPS, &e->loops, &err), DGM_OK);
    if (dgm_store_open(url, &e->store, &err))
        fail_msg("%s", err.msg);
    if (on_replica_store)
        on_replica_store(i, e->store);
    o.loops = e->loops;
    o.store = e->store;
    assert_int_equal(dgm_core_new(&o, &e->core, &err), DGM_OK);
    assert_int_equal(dgm_loops_start(e->loops, &err), DGM_OK);
    held_at[i] = NULL;
    loop_at[i] = NULL;
    n_canceled_at[i] = n_started_at[i] = 0;
    recover_tasks(e);
}

static inline void start_replicas(size_t n)
{
    static int n_memories;
    char url[64];
    snprintf(url, sizeof url, "memory-shared:core%d", ++n_memories);
    limits =
        (dgm_core_limits){DGM_MAX_LOG_BYTES, DGM_MAX_LOG_RECORDS, DGM_MAX_QUEUED_MESSAGES, 1000};
    *dir = 0;
    n_resumed = 0;
    agents_resume = agents_accept = agents_complete = false;
    n_replicas = n;
    for (size_t i = 0; i < n; i++)
        start_replica(i, url);
}

static inline void on_replica_drained(void *arg)
{
    sem_post(arg);
}

static inline void drain_replica(size_t i, uint64_t ms)
{
    sem_t done;
    sem_init(&done, 0, 0);
    dgm_core_drain(replicas[i].core, ms, on_replica_drained, &done);
    sem_wait(&done);
}

/* Those that were not drained are: no run is left in the middle of its agent. */
static inline void stop_replicas(void)
{
    for (size_t i = 0; i < n_replicas; i++) {
        if (!replicas[i].core->draining)
            drain_replica(i, 0);
    }
    for (size_t i = 0; i < n_replicas; i++)
        stop_env(&replicas[i]);
}

/* ---- what runs emit ------------------------------------------------------------------------------------------------ */

struct emitting {
    size_t i;
    const char *what;
    sem_t done;
    bool emitted;
};

static inline void emit_now(void *arg)
{
    struct emitting *x = arg;
    dgm_run *run = held_at[x->i];
    if (loop_at[x->i] != dgm_loop_current())
        run = NULL; /* a newer one has come meanwhile, on another loop */
    x->emitted = run;
    if (run && strcmp(x->what, "end") == 0) {
        held_at[x->i] = NULL;
        status(run, DGM_STATE_COMPLETED, "done");
        run->ops->end(run, NULL);
    } else if (run && strcmp(x->what, "ask") == 0) {
        held_at[x->i] = NULL;
        status(run, DGM_STATE_INPUT_REQUIRED, "which one?");
        run->ops->end(run, NULL);
    } else if (run) {
        chunk(run, x->what, strcmp(x->what, "a") != 0, false);
    }
    sem_post(&x->done);
}

/* False: there is no run any more. */
static inline bool emit_at(size_t i, const char *what)
{
    struct emitting x = {.i = i, .what = what};
    if (!loop_at[i])
        return false;
    sem_init(&x.done, 0, 0);
    dgm_loop_post(loop_at[i], emit_now, &x);
    sem_wait(&x.done);
    return x.emitted;
}

static inline void wait_until_held(size_t i)
{
    while (!held_at[i])
        usleep(1000);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

/* Opens a reader that goes on by itself: wait for its end with sem_wait(&s->done). */
static inline void open_reader(struct step *s)
{
    open_it(s);
}

static inline struct step *follow_at(size_t i, const char *task, uint64_t cursor)
{
    struct step *s = ask(&replicas[i], task, "", subscribe_it, cursor);
    check_ok(s->code, s->err);
    assert_non_null(s->log);
    post_step(&replicas[i], s, i, open_reader);
    return s;
}

static inline void wait_for_end(struct step *s)
{
    sem_wait(&s->done);
}

static inline struct step *get_at(size_t i, const char *task)
{
    return ask(&replicas[i], task, "", get_it, 0);
}

static inline dgm_task_state state_at(size_t i, const char *task)
{
    struct step *s = get_at(i, task);
    check_ok(s->code, s->err);
    dgm_task_state state = s->snapshot->head.state;
    clear(s);
    return state;
}

/* Both have every record once, in order, and they are the same. */
static inline void check_same_records(const struct step *a, const struct step *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->records[i]->head.seq, b->records[i]->head.seq);
        assert_int_equal(a->records[i]->head.seq, a->records[0]->head.seq + i);
        if (!dgm_str_eq(dgm_record_bytes(a->records[i]), dgm_record_bytes(b->records[i])))
            fail_msg("record %zu differs", i);
    }
}
