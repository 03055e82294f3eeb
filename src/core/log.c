/*
 * core/log.c - segments, the published length, wake-ups.
 *
 * What must stay true:
 * - A record is in its slot before the published length covers it (release), and a reader looks at the
 *   length before the slot (acquire).
 * - A reader is counted on its loop before it first looks at the length, and stays so while it is open;
 *   the owner looks at the counts after it has moved the length. So either the reader sees the new
 *   length or the owner sees the reader: no wake-up is lost. Both orders need seq_cst.
 * - A loop's list of readers is touched on that loop alone.
 */
#include "core/log.h"

#include <assert.h>
#include <stdlib.h>

#define SEGMENT 64

struct segment {
    _Atomic(struct segment *) next;
    uint64_t base; /* the seq of its first slot: 1, 65, 129, ... */
    dgm_record *records[SEGMENT];
};

struct on_loop {
    dgm_log *log;
    dgm_loop *loop;
    dgm_reader *readers;
    _Atomic size_t n;
    _Atomic bool waking; /* a wake-up is on its way */
};

struct dgm_log {
    _Atomic size_t refs;
    _Atomic uint64_t first_seq; /* goes down when older records are put in front */
    _Atomic uint64_t published;
    _Atomic bool closed;
    _Atomic(struct segment *) head; /* of first_seq */
    /* the owner's */
    struct segment *tail;
    uint64_t last;
    size_t bytes;
    size_t n_loops;
    struct on_loop loops[];
};

struct dgm_reader {
    dgm_log *log;
    struct on_loop *at;
    dgm_reader *next, **prev; /* in at->readers */
    struct segment *segment;  /* of seq; NULL before the first record */
    uint64_t seq;
    dgm_loop_fn on_ready;
    void *arg;
    dgm_loop_turn turn; /* the first on_ready comes later too */
};

/* ---- life ----------------------------------------------------------------------------------------------- */

static struct segment *new_segment(uint64_t seq)
{
    struct segment *s = dgm_xcalloc(1, sizeof *s);
    s->base = (seq - 1) / SEGMENT * SEGMENT + 1;
    return s;
}

dgm_log *dgm_log_new(dgm_loops *loops, uint64_t first_seq)
{
    size_t n = dgm_loops_count(loops);
    dgm_log *log = dgm_xcalloc(1, sizeof *log + n * sizeof *log->loops);
    assert(first_seq > 0);
    log->refs = 1;
    log->first_seq = first_seq;
    log->last = first_seq - 1;
    log->published = first_seq - 1;
    log->head = log->tail = new_segment(first_seq);
    log->n_loops = n;
    for (size_t i = 0; i < n; i++) {
        log->loops[i].log = log;
        log->loops[i].loop = dgm_loops_at(loops, i);
    }
    return log;
}

dgm_log *dgm_log_ref(dgm_log *log)
{
    atomic_fetch_add_explicit(&log->refs, 1, memory_order_relaxed);
    return log;
}

void dgm_log_unref(dgm_log *log)
{
    if (!log || atomic_fetch_sub_explicit(&log->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (struct segment *s = log->head, *next; s; s = next) {
        next = atomic_load_explicit(&s->next, memory_order_relaxed);
        for (size_t i = 0; i < SEGMENT && s->base + i <= log->last; i++)
            dgm_record_unref(s->records[i]);
        free(s);
    }
    free(log);
}

/* ---- the owner's side ------------------------------------------------------------------------------------- */

void dgm_log_append(dgm_log *log, dgm_record *record)
{
    uint64_t seq = record->head.seq;
    assert(seq == log->last + 1);
    if (seq >= log->tail->base + SEGMENT) {
        struct segment *s = new_segment(seq);
        atomic_store_explicit(&log->tail->next, s, memory_order_release);
        log->tail = s;
    }
    log->tail->records[seq - log->tail->base] = record;
    log->last++;
    log->bytes += record->n;
}

/* Readers that are there look at later slots alone; new ones find these behind first_seq (release). */
void dgm_log_prepend(dgm_log *log, dgm_record **records, size_t n)
{
    struct segment *head = atomic_load_explicit(&log->head, memory_order_relaxed);
    for (size_t i = n; i-- > 0;) {
        uint64_t seq = records[i]->head.seq;
        assert(seq + (n - i) == log->first_seq);
        if (seq < head->base) {
            struct segment *s = new_segment(seq);
            atomic_store_explicit(&s->next, head, memory_order_release);
            head = s;
        }
        head->records[seq - head->base] = records[i];
        log->bytes += records[i]->n;
    }
    atomic_store_explicit(&log->head, head, memory_order_release);
    atomic_fetch_sub(&log->first_seq, n);
}

uint64_t dgm_log_last(const dgm_log *log)
{
    return log->last;
}

size_t dgm_log_bytes(const dgm_log *log)
{
    return log->bytes;
}

static void wake_readers(void *arg)
{
    struct on_loop *at = arg;
    dgm_log *log = at->log;
    atomic_store(&at->waking, false); /* what is published from here on needs a new wake-up */
    for (dgm_reader *r = at->readers, *next; r; r = next) {
        next = r->next; /* on_ready may close r; the others it may not */
        r->on_ready(r->arg);
    }
    dgm_log_unref(log);
}

static void wake_loops(dgm_log *log)
{
    for (size_t i = 0; i < log->n_loops; i++) {
        struct on_loop *at = &log->loops[i];
        if (atomic_load(&at->n) && !atomic_exchange(&at->waking, true)) {
            dgm_log_ref(log);
            dgm_loop_post(at->loop, wake_readers, at);
        }
    }
}

void dgm_log_publish(dgm_log *log, uint64_t seq)
{
    assert(seq <= log->last);
    if (seq <= atomic_load_explicit(&log->published, memory_order_relaxed))
        return;
    atomic_store(&log->published, seq);
    wake_loops(log);
}

void dgm_log_dismiss(dgm_log *log)
{
    if (!atomic_exchange(&log->closed, true))
        wake_loops(log);
}

void dgm_log_close(dgm_log *log)
{
    dgm_log_publish(log, log->last);
    dgm_log_dismiss(log);
}

/* ---- readers ------------------------------------------------------------------------------------------------ */

uint64_t dgm_log_first(const dgm_log *log)
{
    return atomic_load(&log->first_seq);
}

uint64_t dgm_log_published(const dgm_log *log)
{
    return atomic_load(&log->published);
}

size_t dgm_log_n_readers(const dgm_log *log)
{
    size_t n = 0;
    for (size_t i = 0; i < log->n_loops; i++)
        n += atomic_load(&log->loops[i].n);
    return n;
}

bool dgm_log_is_shared(const dgm_log *log)
{
    return atomic_load(&log->refs) > 1;
}

static void first_ready(void *arg)
{
    dgm_reader *r = arg;
    r->on_ready(r->arg);
}

dgm_reader *dgm_reader_open(dgm_log *log, uint64_t after, dgm_loop_fn on_ready, void *arg)
{
    dgm_loop *loop = dgm_loop_current();
    assert(loop && after + 1 >= dgm_log_first(log));
    dgm_reader *r = dgm_xcalloc(1, sizeof *r);
    struct on_loop *at = &log->loops[dgm_loop_index(loop)];
    *r = (dgm_reader){.log = dgm_log_ref(log),
                      .at = at,
                      .seq = after,
                      .on_ready = on_ready,
                      .arg = arg,
                      .turn = {.fn = first_ready, .arg = r}};
    r->next = at->readers;
    r->prev = &at->readers;
    if (r->next)
        r->next->prev = &r->next;
    at->readers = r;
    atomic_fetch_add(&at->n, 1);
    dgm_loop_at_turn_end(loop, &r->turn);
    return r;
}

void dgm_reader_close(dgm_reader *r)
{
    if (!r)
        return;
    assert(dgm_loop_current() == r->at->loop);
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    atomic_fetch_sub(&r->at->n, 1);
    if (r->turn.queued)
        dgm_loop_not_at_turn_end(r->at->loop, &r->turn);
    dgm_log_unref(r->log);
    free(r);
}

dgm_record *dgm_reader_next(dgm_reader *r)
{
    uint64_t seq = r->seq + 1;
    if (seq > atomic_load(&r->log->published))
        return NULL;
    if (!r->segment)
        r->segment = atomic_load_explicit(&r->log->head, memory_order_acquire);
    while (seq >= r->segment->base + SEGMENT)
        r->segment = atomic_load_explicit(&r->segment->next, memory_order_acquire);
    r->seq = seq;
    return r->segment->records[seq - r->segment->base];
}

uint64_t dgm_reader_seq(const dgm_reader *r)
{
    return r->seq;
}

bool dgm_reader_is_over(const dgm_reader *r)
{
    /* closed is set after the last publish: seen closed, the length is final */
    return atomic_load(&r->log->closed) && r->seq >= atomic_load(&r->log->published);
}

dgm_log *dgm_reader_log(const dgm_reader *r)
{
    return r->log;
}
