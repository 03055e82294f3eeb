/*
 * net/loop.c - loop threads, the queue into them, and the end of a turn.
 *
 * A turn ends twice per iteration of libuv: in `check`, right after the callbacks of poll, and in `prepare`,
 * after timers and closings and before the loop may sleep. What is asked for while a turn end runs waits
 * for the next one; an idle handle keeps the loop from sleeping on it.
 *
 * What must stay true: `awake` is set exactly while somebody has promised to look into the queue, either
 * uv_async_send or the loop itself before its next sleep; so a batch costs one wake-up.
 */
#include "net/loop.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/sanitizer.h"
#include "base/spare.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* How long a stopping loop waits for handles that somebody is closing. */
#define STOP_GRACE_MS 2000
/* The wall clock is seen to step back by a little: the cores of a virtual machine differ, somebody sets it
 * right. What happened later gets no earlier time then; a clock that is set back by more is believed. */
#define CLOCK_JITTER_MS 1000
/* The time between two sweeps of spare blocks: a second after a burst its memory is free. */
#define SWEEP_MS 400

static _Thread_local dgm_loop *current;

/* ---- the queue -------------------------------------------------------------------------------------------- */

/* Jobs that are posted meanwhile wait for the next call, so that a job that posts itself starves no other. */
static bool run_posted(dgm_loop *l)
{
    struct dgm_loop_jobs spare = l->running;
    size_t n;
    assert(spare.n == 0);
    l->running = (struct dgm_loop_jobs){0};
    pthread_mutex_lock(&l->lock);
    struct dgm_loop_jobs batch = l->queue;
    l->queue = spare;
    l->awake = false;
    pthread_mutex_unlock(&l->lock);
    n = batch.n;
    for (size_t i = 0; i < n; i++)
        batch.at[i].fn(batch.at[i].arg);
    if (batch.cap > DGM_LOOP_KEEP_JOBS) {
        free(batch.at);
        batch = (struct dgm_loop_jobs){0};
    }
    batch.n = 0;
    l->running = batch;
    return n > 0;
}

void dgm_loop_post(dgm_loop *l, dgm_loop_fn fn, void *arg)
{
    struct dgm_loop_jobs *q = &l->queue;
    pthread_mutex_lock(&l->lock);
    if (q->n == q->cap) {
        q->cap = q->cap ? q->cap * 2 : 64;
        q->at = dgm_xrealloc(q->at, q->cap * sizeof *q->at);
    }
    q->at[q->n++] = (struct dgm_loop_job){fn, arg};
    if (!l->awake) {
        l->awake = true;
        if (current == l)
            l->posted_here = true;
        else if (!l->stopped)
            uv_async_send(&l->async); /* under the lock: the handle is closed after `stopped` */
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- turns ------------------------------------------------------------------------------------------------- */

static dgm_loop_turn no_more; /* behind the last of a list: who is queued has a next one */

void dgm_loop_at_turn_end(dgm_loop *l, dgm_loop_turn *node)
{
    assert(current == l);
    if (node->next)
        return;
    node->next = &no_more;
    if (l->turn_last)
        l->turn_last->next = node;
    else
        l->turn_first = node;
    l->turn_last = node;
}

static bool remove_turn(dgm_loop_turn **list, dgm_loop_turn *node)
{
    while (*list && *list != &no_more && *list != node)
        list = &(*list)->next;
    if (*list != node)
        return false;
    *list = node->next;
    return true;
}

void dgm_loop_not_at_turn_end(dgm_loop *l, dgm_loop_turn *node)
{
    assert(current == l);
    if (!node->next)
        return;
    if (!remove_turn(&l->turn_running, node) && remove_turn(&l->turn_first, node)) {
        if (l->turn_first == &no_more)
            l->turn_first = NULL;
        l->turn_last = l->turn_first;
        while (l->turn_last && l->turn_last->next != &no_more)
            l->turn_last = l->turn_last->next;
    }
    node->next = NULL;
}

static bool end_turn(dgm_loop *l)
{
    dgm_loop_turn *node;
    bool any = l->turn_first;
    l->turn_running = l->turn_first;
    l->turn_first = l->turn_last = NULL;
    while ((node = l->turn_running) && node != &no_more) {
        l->turn_running = node->next; /* what runs may take back what has not run yet */
        node->next = NULL;
        node->fn(node->arg); /* node may be gone */
    }
    l->turn_running = NULL;
    return dgm_loop_run_closed_timers(l) || any;
}

static void on_idle(uv_idle_t *h)
{
    (void)h; /* its being active is all it is for: poll does not sleep */
}

static void on_prepare(uv_prepare_t *h)
{
    dgm_loop *l = h->data;
    if (l->posted_here) {
        l->posted_here = false;
        run_posted(l);
    }
    end_turn(l);
    if (!l->sweep.place && !l->stopping && dgm_spare_bytes())
        dgm_timer_start(&l->sweep, SWEEP_MS);
    if (l->posted_here || l->turn_first || l->timers.closed.n || l->timers.is_due)
        uv_idle_start(&l->idle, on_idle);
    else
        uv_idle_stop(&l->idle);
}

static void on_check(uv_check_t *h)
{
    dgm_loop *l = h->data;
    if (l->timers.is_due)
        dgm_loop_run_timers(l);
    end_turn(l);
}

static void on_async(uv_async_t *h)
{
    run_posted(h->data);
}

/* Runs again while blocks remain (on_prepare). */
static void on_sweep(void *arg)
{
    (void)arg;
    dgm_spare_sweep();
}

/* ---- a thread ------------------------------------------------------------------------------------------------ */

static void on_guard(uv_timer_t *h)
{
    uv_stop(h->loop);
}

static void loop_start_stop(void *arg)
{
    dgm_loop *l = arg;
    l->stopping = true;
    dgm_timer_stop(&l->sweep); /* a running timer would delay the end */
    while (l->stops) {
        dgm_loop_stop *s = l->stops;
        l->stops = s->next;
        s->fn(s->arg);
    }
    uv_stop(&l->uv);
}

static void close_own_handles(dgm_loop *l)
{
    if (!l->has_handles)
        return;
    l->has_handles = false;
    uv_close((uv_handle_t *)&l->async, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->guard, NULL);
    uv_close((uv_handle_t *)&l->timers.first, NULL);
    uv_run(&l->uv, UV_RUN_NOWAIT);
}

/* All that was posted, all that it asked for, and so on. False: there was nothing. */
static bool run_rest(dgm_loop *l)
{
    bool ran = false;
    for (bool any = true; any; ran = ran || any) {
        any = run_posted(l);
        any = end_turn(l) || any;
        uv_run(&l->uv, UV_RUN_NOWAIT);
        if (!l->has_handles)
            dgm_loop_run_timers(l);
    }
    return ran;
}

static void run_loop(void *arg)
{
    dgm_loop *l = arg;
    current = l;
    if (!DGM_HAVE_ASAN) /* it would not see that a block is used after it was freed */
        dgm_spare_open(DGM_SPARE_BYTES);
    while (!l->stopping)
        uv_run(&l->uv, UV_RUN_DEFAULT);

    /* Only what others have open keeps it running now. */
    uv_unref((uv_handle_t *)&l->async);
    uv_update_time(&l->uv);
    uv_timer_start(&l->guard, on_guard, STOP_GRACE_MS, 0);
    uv_unref((uv_handle_t *)&l->guard);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    run_rest(l);

    pthread_mutex_lock(&l->lock);
    l->stopped = true;
    pthread_mutex_unlock(&l->lock);
    close_own_handles(l);
    dgm_spare_close();
    current = NULL;
}

/* A loop and what libuv makes with the first one, for which it aborts the program if there are not enough. */
#define LOOP_DESCRIPTORS 8

static bool has_descriptors(void)
{
    int fds[LOOP_DESCRIPTORS], n = 0;
    while (n < LOOP_DESCRIPTORS && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(fds[i]);
    return n == LOOP_DESCRIPTORS;
}

static dgm_code loop_new(size_t index, dgm_loop **ret_loop, dgm_err *err)
{
    int rc;
    if (!has_descriptors())
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot make an event loop: too many open files: raise the limit (ulimit "
                        "-n)");
    dgm_loop *l = dgm_xcalloc(1, sizeof *l);
    l->index = index;
    pthread_mutex_init(&l->lock, NULL);
    if ((rc = uv_loop_init(&l->uv)) == 0 && (rc = uv_async_init(&l->uv, &l->async, on_async)) != 0)
        uv_loop_close(&l->uv);
    if (rc) {
        pthread_mutex_destroy(&l->lock);
        free(l);
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot create an event loop: %s",
                        uv_strerror(rc));
    }
    uv_prepare_init(&l->uv, &l->prepare);
    uv_check_init(&l->uv, &l->check);
    uv_idle_init(&l->uv, &l->idle);
    uv_timer_init(&l->uv, &l->guard);
    dgm_loop_open_timers(l);
    dgm_timer_init(l, &l->sweep, on_sweep, NULL);
    l->uv.data = l;
    l->async.data = l->prepare.data = l->check.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    uv_check_start(&l->check, on_check);
    uv_unref((uv_handle_t *)&l->prepare);
    uv_unref((uv_handle_t *)&l->check);
    l->has_handles = true;
    *ret_loop = l;
    return DGM_OK;
}

/* What is left on one loop may post to any other: all of them are there until nothing is left. */
static void run_all_rest(dgm_loops *l)
{
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < l->n; i++) {
            current = l->at[i]; /* its objects are ours now: the thread is gone */
            any = run_rest(l->at[i]) || any;
        }
    }
    current = NULL;
}

static void loop_free(dgm_loop *l)
{
    /* Busy if somebody left a handle open: his to mend, not ours to wait for. */
    uv_loop_close(&l->uv);
    free(l->running.at);
    free(l->queue.at);
    dgm_loop_free_timers(l);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- public -------------------------------------------------------------------------------------------------- */

dgm_code dgm_loops_new(size_t n, dgm_loops **ret_loops, dgm_err *err)
{
    if (n > DGM_MAX_LOOPS)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "%zu loops are more than the limit of %d (loops)",
                        n, DGM_MAX_LOOPS);
    if (n == 0) {
        n = uv_available_parallelism();
        n = n < 1 ? 1 : n > DGM_MAX_LOOPS ? DGM_MAX_LOOPS : n;
    }
    dgm_loops *l = dgm_xcalloc(1, sizeof *l);
    while (l->n < n) {
        dgm_code rc = loop_new(l->n, &l->at[l->n], err);
        if (rc) {
            dgm_loops_free(l);
            return rc;
        }
        l->n++;
    }
    *ret_loops = l;
    return DGM_OK;
}

dgm_code dgm_loops_start(dgm_loops *l, dgm_err *err)
{
    sigset_t all, old;
    int rc = 0;
    /* signals are for the main thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        if (l->at[i]->has_thread)
            continue;
        rc = uv_thread_create(&l->at[i]->thread, run_loop, l->at[i]);
        l->at[i]->has_thread = rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot start a thread: %s", uv_strerror(rc));
    return DGM_OK;
}

void dgm_loops_stop(dgm_loops *l)
{
    assert(!current);
    if (l->stopped)
        return;
    l->stopped = true;
    for (size_t i = 0; i < l->n; i++)
        dgm_loop_post(l->at[i], loop_start_stop, l->at[i]);
    for (size_t i = 0; i < l->n; i++) {
        if (l->at[i]->has_thread)
            uv_thread_join(&l->at[i]->thread);
        else
            run_loop(l->at[i]); /* never started: ends here */
    }
}

void dgm_loops_free(dgm_loops *l)
{
    if (!l)
        return;
    dgm_loops_stop(l);
    run_all_rest(l);
    for (size_t i = 0; i < l->n; i++)
        loop_free(l->at[i]);
    free(l);
}

dgm_loop *dgm_loops_at(dgm_loops *l, size_t i)
{
    assert(i < l->n);
    return l->at[i];
}

dgm_loop *dgm_loop_current(void)
{
    return current;
}

int64_t dgm_loop_unix_ms(void)
{
    static _Atomic int64_t latest;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    int64_t before = atomic_load(&latest);
    do {
        if (now < before && before - now < CLOCK_JITTER_MS)
            return before;
    } while (!atomic_compare_exchange_weak(&latest, &before, now));
    return now;
}

void dgm_loop_trace(dgm_loop *l, const dgm_machine *m, uint64_t object, unsigned from, unsigned to)
{
    assert(dgm_machine_allows(m, from, to));
    dgm_trace_add(&l->trace, m, object, uv_now(&l->uv), from, to);
}

size_t dgm_loops_read_trace(dgm_loops *l, dgm_transition **ret_entries)
{
    dgm_transition *merged = dgm_xcalloc(2 * l->n * DGM_TRACE_ENTRIES, sizeof *merged);
    dgm_transition *first[DGM_MAX_LOOPS], *end[DGM_MAX_LOOPS];
    uint64_t unix_less_loop_ms = (uint64_t)dgm_loop_unix_ms() - uv_hrtime() / 1000000;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        first[i] = merged + (l->n + i) * DGM_TRACE_ENTRIES;
        end[i] = first[i] + dgm_trace_read(&l->at[i]->trace, first[i]);
    }
    for (;; n++) {
        size_t next = l->n; /* the loop whose next entry is the oldest */
        for (size_t i = 0; i < l->n; i++)
            if (first[i] < end[i] && (next == l->n || first[i]->ms < first[next]->ms))
                next = i;
        if (next == l->n)
            break;
        merged[n] = *first[next]++;
        merged[n].ms += unix_less_loop_ms;
    }
    *ret_entries = merged;
    return n;
}

void dgm_loop_on_stop(dgm_loop *l, dgm_loop_stop *node)
{
    node->next = l->stops;
    l->stops = node;
}

void dgm_loop_off_stop(dgm_loop *l, dgm_loop_stop *node)
{
    for (dgm_loop_stop **p = &l->stops; *p; p = &(*p)->next) {
        if (*p == node) {
            *p = node->next;
            return;
        }
    }
}
