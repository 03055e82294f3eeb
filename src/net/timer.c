/*
 * net/timer.c - the timers of a loop: a heap of those that run, and one timer of libuv for the first of them.
 *
 * A timer of libuv takes 152 bytes, and most tasks have one or more that wait for as long as the task does. One of ours takes
 * 32, and 16 in the heap while it runs.
 */
#include "base/list.h"
#include "net/loop.h"

#include <assert.h>
#include <stdlib.h>

/* A key is the time at which the timer rings, in milliseconds, above the number of its start: timers for the same time ring in the
 * order of their starts. 40 bits of milliseconds are 34 years. */
#define START_BITS 24
#define MAX_DUE (((uint64_t)1 << (64 - START_BITS)) - 1)

static uint64_t timer_key(dgm_loop *l, uint64_t due)
{
    return (due < MAX_DUE ? due : MAX_DUE) << START_BITS |
           (l->timers.n_started & (((uint64_t)1 << START_BITS) - 1));
}

/* ---- the heap ----------------------------------------------------------------------------------------------- */

static void heap_put(struct dgm_timers *h, size_t i, struct dgm_timer_entry e)
{
    h->items[i] = e;
    e.timer->place = (uint32_t)i + 1;
}

/* Moves e, which belongs to i or above it, to its place. */
static void heap_up(struct dgm_timers *h, size_t i, struct dgm_timer_entry e)
{
    for (; i > 0 && h->items[(i - 1) / 2].key > e.key; i = (i - 1) / 2)
        heap_put(h, i, h->items[(i - 1) / 2]);
    heap_put(h, i, e);
}

/* The same for one that belongs to i or below it. */
static void heap_down(struct dgm_timers *h, size_t i, struct dgm_timer_entry e)
{
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->items[child + 1].key < h->items[child].key)
            child++;
        if (h->items[child].key > e.key)
            break;
        heap_put(h, i, h->items[child]);
    }
    heap_put(h, i, e);
}

static void heap_remove(struct dgm_timers *h, dgm_timer *t)
{
    size_t i = t->place - 1;
    struct dgm_timer_entry last = h->items[--h->n];
    t->place = 0;
    if (i == h->n)
        return;
    if (i > 0 && h->items[(i - 1) / 2].key > last.key)
        heap_up(h, i, last);
    else
        heap_down(h, i, last);
}

/* ---- ringing ------------------------------------------------------------------------------------------------ */

static void on_first_timer(uv_timer_t *h);

/* Before the loop has its handles, and after it has closed them, dgm_loop_run_timers is called instead. */
static void set_first_timer(dgm_loop *l)
{
    if (!l->has_handles || l->timers.is_running)
        return;
    uint64_t now = uv_now(&l->uv), due = l->timers.n ? l->timers.items[0].key >> START_BITS : 0;
    if (l->timers.n)
        uv_timer_start(&l->timers.first, on_first_timer, due > now ? due - now : 0, 0);
    else
        uv_timer_stop(&l->timers.first);
}

/* Those that are started meanwhile are not run, also if they wait for no time at all. libuv would run its timer for them in the
 * same iteration, again and again: the end of the iteration does it. */
void dgm_loop_run_timers(dgm_loop *l)
{
    struct dgm_timers *h = &l->timers;
    uint64_t now = uv_now(&l->uv), end = timer_key(l, now);
    h->is_running = true;
    while (h->n && h->items[0].key < end) {
        dgm_timer *t = h->items[0].timer;
        heap_remove(h, t);
        t->fn(t->arg); /* t may be gone */
    }
    h->is_running = false;
    h->is_due = h->n && h->items[0].key >> START_BITS <= now;
    if (!h->is_due)
        set_first_timer(l);
}

static void on_first_timer(uv_timer_t *h)
{
    dgm_loop_run_timers(h->data);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

void dgm_loop_open_timers(dgm_loop *l)
{
    uv_timer_init(&l->uv, &l->timers.first);
    l->timers.first.data = l;
}

void dgm_loop_free_timers(dgm_loop *l)
{
    free(l->timers.items);
    free(l->timers.closed.at);
}

bool dgm_loop_run_closed_timers(dgm_loop *l)
{
    struct dgm_loop_jobs batch = l->timers.closed;
    if (!batch.n)
        return false;
    l->timers.closed = (struct dgm_loop_jobs){0};
    for (size_t i = 0; i < batch.n; i++)
        batch.at[i].fn(batch.at[i].arg);
    if (l->timers.closed.at || batch.cap > DGM_LOOP_KEEP_JOBS) {
        free(batch.at);
    } else {
        batch.n = 0;
        l->timers.closed = batch;
    }
    return true;
}

void dgm_timer_init(dgm_loop *l, dgm_timer *t, dgm_loop_fn fn, void *arg)
{
    assert(dgm_loop_current() == l || !l->has_thread);
    *t = (dgm_timer){.loop = l, .fn = fn, .arg = arg};
}

void dgm_timer_start(dgm_timer *t, uint64_t ms)
{
    dgm_loop *l = t->loop;
    struct dgm_timers *h = &l->timers;
    uint64_t now = uv_now(&l->uv);
    if (t->place)
        heap_remove(h, t);
    h->items = dgm_list_reserve(h->items, h->n, &h->cap, sizeof *h->items);
    uint64_t key = timer_key(l, ms < MAX_DUE - now ? now + ms : MAX_DUE);
    h->n_started++;
    h->n++;
    heap_up(h, h->n - 1, (struct dgm_timer_entry){key, t});
    if (t->place == 1)
        set_first_timer(l);
}

/* The timer of libuv may ring too early then: it finds nothing to do, and is started for the next one. */
void dgm_timer_stop(dgm_timer *t)
{
    if (!t->place)
        return;
    heap_remove(&t->loop->timers, t);
    if (!t->loop->timers.n)
        set_first_timer(t->loop);
}

void dgm_timer_close(dgm_timer *t, dgm_loop_fn on_closed, void *arg)
{
    struct dgm_loop_jobs *closed = &t->loop->timers.closed;
    dgm_timer_stop(t);
    if (!on_closed)
        return;
    closed->at = dgm_list_reserve(closed->at, closed->n, &closed->cap, sizeof *closed->at);
    closed->at[closed->n++] = (struct dgm_loop_job){on_closed, arg};
}
