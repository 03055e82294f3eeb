/*
 * core/test_replicas_gate.h - requests to the store that wait, fail or time out: for tests of several servers.
 *
 * A gate is between the core of a server and its store. It holds requests of some kinds back until the test opens it, so a test
 * decides what happens between a request and its answer.
 */
#pragma once

#include "core/test_replicas.h"
#include "store/store_int.h"

#include <time.h>

/* Only ends a test that hangs. */
#define GATE_WAIT_S 60

struct gate {
    const dgm_store *store;
    pthread_mutex_t lock;
    unsigned closed; /* kinds that are held back, a bit each */
    dgm_job *held, **held_end;
    int n_failing; /* of the kind `failing`: these are answered as if there were no database */
    dgm_job_kind failing;
    uint64_t command_ms; /* the next command waits so long; 0: as long as the core says */
    _Atomic int n_held, n_seen[DGM_JOB_ANSWER + 1];
};

static struct gate gates[MOST_REPLICAS];
static dgm_store_driver gate_driver;

static inline struct gate *gate_of(const dgm_store *s)
{
    struct gate *g = gates;
    while (g->store != s)
        g++;
    return g;
}

static inline bool gate_holds(struct gate *g, dgm_job *job)
{
    if (!(g->closed >> job->kind & 1))
        return false;
    job->next = NULL;
    *g->held_end = job;
    g->held_end = &job->next;
    g->n_held++;
    return true;
}

static inline void gate_answer_unavailable(dgm_job *job)
{
    job->code = dgm_fail(&job->err, DGM_UNAVAILABLE, NULL, "the memory cannot be reached");
    dgm_loop_post(job->loop, dgm_job_on_answers, job);
}

static inline bool gate_fails(struct gate *g, dgm_job *job)
{
    if (!g->n_failing || job->kind != g->failing)
        return false;
    g->n_failing--;
    gate_answer_unavailable(job);
    return true;
}

static inline void gate_submit(dgm_store *s, dgm_job *job)
{
    struct gate *g = gate_of(s);
    pthread_mutex_lock(&g->lock);
    g->n_seen[job->kind]++;
    bool is_done = gate_holds(g, job) || gate_fails(g, job);
    if (!is_done && job->kind == DGM_JOB_COMMAND && g->command_ms) {
        job->command.ms = g->command_ms;
        g->command_ms = 0;
    }
    pthread_mutex_unlock(&g->lock);
    if (!is_done)
        dgm_store_memory_shared.submit(s, job);
}

static inline void gate_install(size_t i, dgm_store *s)
{
    struct gate *g = &gates[i];
    *g = (struct gate){.store = s};
    pthread_mutex_init(&g->lock, NULL);
    g->held_end = &g->held;
    gate_driver = dgm_store_memory_shared;
    gate_driver.submit = gate_submit;
    s->driver = &gate_driver;
}

static inline void start_gated_replicas(size_t n)
{
    on_replica_store = gate_install;
    start_replicas(n);
}

/* ---- what a test does with it -------------------------------------------------------------------------------------- */

static inline void gate_close(size_t i, dgm_job_kind kind)
{
    pthread_mutex_lock(&gates[i].lock);
    gates[i].closed |= 1u << kind;
    pthread_mutex_unlock(&gates[i].lock);
}

/* Requests of one kind, in their order, by next. */
static inline dgm_job *gate_take(struct gate *g, dgm_job_kind kind)
{
    dgm_job *taken = NULL, **end = &taken;
    pthread_mutex_lock(&g->lock);
    g->closed &= ~(1u << kind);
    g->held_end = &g->held;
    while (*g->held_end) {
        dgm_job *job = *g->held_end;
        if (job->kind != kind) {
            g->held_end = &job->next;
            continue;
        }
        *g->held_end = job->next;
        job->next = NULL;
        *end = job;
        end = &job->next;
        g->n_held--;
    }
    pthread_mutex_unlock(&g->lock);
    return taken;
}

/* For requests of one kind: those that were held back go on. */
static inline void gate_open(size_t i, dgm_job_kind kind)
{
    for (dgm_job *job = gate_take(&gates[i], kind), *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        dgm_store_memory_shared.submit(replicas[i].store, job);
    }
}

/* The same, but those that were held back are answered as if there were no database. */
static inline void gate_refuse(size_t i, dgm_job_kind kind)
{
    for (dgm_job *job = gate_take(&gates[i], kind), *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        gate_answer_unavailable(job);
    }
}

static inline void gate_fail(size_t i, dgm_job_kind kind, int n)
{
    pthread_mutex_lock(&gates[i].lock);
    gates[i].failing = kind;
    gates[i].n_failing = n;
    pthread_mutex_unlock(&gates[i].lock);
}

static inline void gate_set_command_ms(size_t i, uint64_t ms)
{
    pthread_mutex_lock(&gates[i].lock);
    gates[i].command_ms = ms;
    pthread_mutex_unlock(&gates[i].lock);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

#define wait_until(condition)                                                                      \
    do {                                                                                           \
        time_t until_ = time(NULL) + GATE_WAIT_S;                                                  \
        while (!(condition)) {                                                                     \
            if (time(NULL) > until_)                                                               \
                fail_msg("this does not become true: %s", #condition);                             \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static inline void wait_for_answer(struct step *s, const char *what)
{
    struct timespec until = {.tv_sec = time(NULL) + GATE_WAIT_S};
    if (sem_timedwait(&s->done, &until))
        fail_msg("%s is not answered", what);
}

static inline void pass_loop(void *arg)
{
    sem_post(arg);
}

/* What was posted to its loops has run, and what that has posted, a few times over. */
static inline void pass_loops(size_t i)
{
    sem_t passed;
    sem_init(&passed, 0, 0);
    for (size_t k = 0; k < 8 * N_LOOPS; k++) {
        dgm_loop_post(dgm_loops_at(replicas[i].loops, k % N_LOOPS), pass_loop, &passed);
        sem_wait(&passed);
    }
}

/* ---- calls that do not wait for their answers ------------------------------------------------------------------------ */

static inline struct step *post_message(size_t i, const char *id, const char *text,
                                        const char *task, bool always_new)
{
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(id);
    s->task_id = dgm_str_from(task);
    s->always_new = always_new;
    post_step(&replicas[i], s, i, send_it);
    return s;
}

static inline struct step *post_ask(size_t i, const char *task, void (*fn)(struct step *))
{
    struct step *s = new_step();
    s->task_id = dgm_str_from(task);
    post_step(&replicas[i], s, i, fn);
    return s;
}
