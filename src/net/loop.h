/*
 * net/loop.h - N threads, each with a libuv loop of its own.
 *
 * Objects belong to the loop they were made on and are touched there alone; what another loop wants of
 * them is posted. A callback comes later, never from inside the call that asked for it.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/trace.h"

#include <pthread.h>
#include <uv.h>

typedef struct dgm_loop dgm_loop;
typedef struct dgm_loops dgm_loops;

typedef void (*dgm_loop_fn)(void *arg);

/* n threads, at most DGM_MAX_LOOPS; 0: one per core. They run after dgm_loops_start. */
dgm_code dgm_loops_new(size_t n, dgm_loops **ret_loops, dgm_err *err);
dgm_code dgm_loops_start(dgm_loops *l, dgm_err *err);
/* Asks every loop to run its `on_stop` handlers and end; joins the threads. What was posted before is
 * run first; handles still open are given 2 s to close. Not from a loop's own thread. */
void dgm_loops_stop(dgm_loops *l);
void dgm_loops_free(dgm_loops *l); /* NULL is fine; stops first */

dgm_loop *dgm_loops_at(dgm_loops *l, size_t i);

dgm_loop *dgm_loop_current(void); /* of this thread; NULL on any other */
int64_t dgm_loop_unix_ms(void);   /* wall clock; does not go back unless it is set back */

/* A state machine whose object belongs to l changes its state: checks the transition and adds it to the trace of l. Only
 * from l's thread. */
void dgm_loop_trace(dgm_loop *l, const dgm_machine *m, uint64_t object, unsigned from, unsigned to);
/* The transitions that all loops have traced, in the order of time; their ms are Unix milliseconds. From any thread. The
 * caller frees *ret_entries. */
size_t dgm_loops_read_trace(dgm_loops *l, dgm_transition **ret_entries);

/* Runs fn(arg) on l, soon. From any thread; what one thread posts to one loop runs in that order. After
 * the loop has stopped, posted work is run by dgm_loops_free on the calling thread: nothing is lost
 * without its fn having been called. */
void dgm_loop_post(dgm_loop *l, dgm_loop_fn fn, void *arg);

/* Runs fn(arg) once more at the end of this turn of the loop, however often it is asked for before
 * then: how a connection writes all it has once per turn. `node` is embedded by the caller. */
typedef struct dgm_loop_turn {
    struct dgm_loop_turn *next; /* NULL: it is not queued; readable from outside */
    dgm_loop_fn fn;
    void *arg;
} dgm_loop_turn;
void dgm_loop_at_turn_end(dgm_loop *l, dgm_loop_turn *node);
void dgm_loop_not_at_turn_end(dgm_loop *l,
                              dgm_loop_turn *node); /* takes it back; a no-op if it ran */

/* Runs fn(arg) on l when it is asked to stop, the last one registered first: where handles are closed.
 * Registered and taken back on l's thread, or before the loops start. `node` is embedded. */
typedef struct dgm_loop_stop {
    struct dgm_loop_stop *next;
    dgm_loop_fn fn;
    void *arg;
} dgm_loop_stop;
void dgm_loop_on_stop(dgm_loop *l, dgm_loop_stop *node);
void dgm_loop_off_stop(dgm_loop *l, dgm_loop_stop *node); /* fine when it is not registered */

struct dgm_loop_jobs {
    struct dgm_loop_job {
        dgm_loop_fn fn;
        void *arg;
    } * at;
    size_t n, cap;
};

/* A timer that is embedded, on the loop of the thread that starts it. Stopping it is immediate; the
 * memory may go after dgm_timer_close's callback. */
typedef struct dgm_timer {
    dgm_loop *loop;
    dgm_loop_fn fn;
    void *arg;
    uint32_t place; /* among those of the loop that run, from 1; 0: it does not run */
} dgm_timer;
void dgm_timer_init(dgm_loop *l, dgm_timer *t, dgm_loop_fn fn, void *arg);
void dgm_timer_start(dgm_timer *t, uint64_t ms); /* once; starts over when it runs */
void dgm_timer_stop(dgm_timer *t);
void dgm_timer_close(dgm_timer *t, dgm_loop_fn on_closed, void *arg); /* on_closed may be NULL */

/* For timer.c: those that run, as a heap. */
struct dgm_timers {
    uv_timer_t first; /* rings for the first of them */
    struct dgm_timer_entry {
        uint64_t key;
        dgm_timer *timer;
    } * items;
    size_t n, cap;
    uint64_t n_started;
    bool is_running;             /* one of them rings */
    bool is_due;                 /* the first one is, and `first` is not started for it */
    struct dgm_loop_jobs closed; /* callbacks of dgm_timer_close */
};

/* Others read index and uv; the rest is for loop.c. */
struct dgm_loop {
    uv_loop_t uv;
    size_t index; /* among the loops */
    uv_async_t async;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t guard; /* ends a stop that waits in vain */
    uv_thread_t thread;
    bool has_handles; /* ours are open */
    bool has_thread;
    bool stopping;    /* on the loop's thread */
    bool posted_here; /* by our own thread: prepare looks into the queue */
    struct dgm_loop_jobs running;
    dgm_loop_turn *turn_first, *turn_last;
    dgm_loop_turn *turn_running; /* of the turn end that is being run */
    dgm_loop_stop *stops;
    struct dgm_timers timers;
    dgm_timer sweep;           /* frees blocks that are not needed (base/spare.h) */
    struct dgm_client *client; /* net/client.h; made for the first request */
    dgm_trace trace;

    pthread_mutex_t lock; /* for the rest */
    struct dgm_loop_jobs queue;
    bool awake;
    bool stopped; /* uv_async_send must not be called any more */
};

struct dgm_loops {
    dgm_loop *at[DGM_MAX_LOOPS];
    size_t n;
    bool stopped;
};

/* ---- timer.c, for loop.c ---------------------------------------------------------------------------------- */

/* A queue that was once long does not keep its memory. */
#define DGM_LOOP_KEEP_JOBS 1024

void dgm_loop_open_timers(dgm_loop *l);
void dgm_loop_free_timers(dgm_loop *l);
void dgm_loop_run_timers(dgm_loop *l);        /* those that are due */
bool dgm_loop_run_closed_timers(dgm_loop *l); /* their callbacks; false: there were none */
