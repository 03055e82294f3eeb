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

#include "base/spare.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

/* Many tasks say little: the first segment lies behind the log, and the next ones are larger. */
#define FIRST_SLOTS 4
#define MORE_SLOTS 4 /* times those of the one before */
#define MAX_SLOTS 64

struct dgm_log_segment {
    _Atomic(struct dgm_log_segment *) next;
    struct dgm_log_segment *prev; /* the owner's */
    uint64_t base;                /* the seq of its first slot */
    uint32_t cap;
    dgm_record *slots[]; /* cap of them; all are filled, but of the last segment */
};

struct dgm_log_reader {
    dgm_log *log;
    dgm_log_reader *next, **prev;    /* in the list of its loop */
    struct dgm_log_segment *segment; /* of seq; NULL before the first record */
    uint64_t seq;
    bool is_observer;
    dgm_loop_turn turn; /* its fn is on_ready; the first call comes at the end of the turn */
};

/* ---- life ----------------------------------------------------------------------------------------------- */

/* In these bytes; NULL: allocated. */
static struct dgm_log_segment *new_segment(struct dgm_log_segment *s, uint64_t base, uint32_t cap)
{
    if (!s)
        s = dgm_xmalloc(sizeof *s + cap * sizeof(dgm_record *));
    atomic_init(&s->next, NULL);
    s->prev = NULL;
    s->base = base;
    s->cap = cap;
    return s;
}

static struct dgm_log_segment *own_segment(dgm_log *log)
{
    return (struct dgm_log_segment *)(void *)(log->loops + log->n_loops);
}

static size_t log_bytes(size_t n_loops)
{
    return sizeof(dgm_log) + n_loops * sizeof(struct dgm_log_loop) +
           sizeof(struct dgm_log_segment) + FIRST_SLOTS * sizeof(dgm_record *);
}

dgm_log *dgm_log_new(dgm_loops *loops, uint64_t first_seq)
{
    size_t n = loops->n;
    dgm_log *log = dgm_spare_alloc_zeroed(log_bytes(n));
    assert(first_seq > 0);
    log->refs = 1;
    log->first_seq = first_seq;
    log->last = first_seq - 1;
    log->published = first_seq - 1;
    log->n_loops = (uint16_t)n;
    log->all_loops = loops;
    log->head = log->tail = new_segment(own_segment(log), first_seq, FIRST_SLOTS);
    for (size_t i = 0; i < n; i++)
        log->loops[i].index = (uint16_t)i;
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
    dgm_record_unref(log->task);
    for (struct dgm_log_segment *s = log->head, *next; s; s = next) {
        next = atomic_load_explicit(&s->next, memory_order_relaxed);
        for (size_t i = 0; i < s->cap && s->base + i <= log->last; i++)
            dgm_record_unref(s->slots[i]);
        if (s != own_segment(log))
            free(s);
    }
    dgm_spare_free(log, log_bytes(log->n_loops));
}

/* ---- the owner's side ------------------------------------------------------------------------------------- */

void dgm_log_append(dgm_log *log, dgm_record *record)
{
    uint64_t seq = record->head.seq;
    assert(seq == log->last + 1);
    if (seq >= log->tail->base + log->tail->cap) {
        uint32_t cap = log->tail->cap * MORE_SLOTS;
        struct dgm_log_segment *s = new_segment(NULL, seq, cap < MAX_SLOTS ? cap : MAX_SLOTS);
        s->prev = log->tail;
        atomic_store_explicit(&log->tail->next, s, memory_order_release);
        log->tail = s;
    }
    log->tail->slots[seq - log->tail->base] = record;
    log->last++;
    log->bytes += record->n;
}

/* Readers that are there look at later slots alone; new ones find these behind first_seq (release). */
void dgm_log_prepend(dgm_log *log, dgm_record **records, size_t n)
{
    struct dgm_log_segment *head = atomic_load_explicit(&log->head, memory_order_relaxed);
    for (size_t i = n; i-- > 0;) {
        uint64_t seq = records[i]->head.seq;
        assert(seq + (n - i) == log->first_seq);
        if (seq < head->base) {
            uint32_t cap = i + 1 < MAX_SLOTS ? (uint32_t)i + 1 : MAX_SLOTS;
            struct dgm_log_segment *s = new_segment(NULL, head->base - cap, cap);
            atomic_store_explicit(&s->next, head, memory_order_release);
            head->prev = s;
            head = s;
        }
        head->slots[seq - head->base] = records[i];
        log->bytes += records[i]->n;
    }
    atomic_store_explicit(&log->head, head, memory_order_release);
    atomic_fetch_sub(&log->first_seq, n);
}

dgm_record **dgm_log_tail(const dgm_log *log, size_t n, dgm_buf *scratch)
{
    struct dgm_log_segment *s = log->tail;
    uint64_t first = log->last - n + 1;
    assert(n > 0 && first >= log->first_seq);
    if (first >= s->base)
        return &s->slots[first - s->base];
    dgm_buf_clear(scratch);
    dgm_buf_room(scratch, n * sizeof(dgm_record *));
    dgm_record **at = (dgm_record **)(void *)scratch->p;
    for (size_t left = n; left > 0; s = s->prev) {
        uint64_t from = s->base > first ? s->base : first;
        size_t k = (size_t)(first + left - from);
        memcpy(at + left - k, &s->slots[from - s->base], k * sizeof *at);
        left -= k;
    }
    return at;
}

dgm_record *dgm_log_newest(const dgm_log *log)
{
    return log->last < log->tail->base ? NULL : log->tail->slots[log->last - log->tail->base];
}

static void wake_readers(void *arg)
{
    struct dgm_log_loop *at = arg;
    dgm_log *log = (dgm_log *)(void *)((char *)(at - at->index) - offsetof(dgm_log, loops));
    atomic_store(&at->waking, false); /* what is published from here on needs a new wake-up */
    for (dgm_log_reader *r = at->readers, *next; r; r = next) {
        next = r->next; /* on_ready may close r; the others it may not */
        r->turn.fn(r->turn.arg);
    }
    dgm_log_unref(log);
}

static void wake_loops(dgm_log *log)
{
    for (size_t i = 0; i < log->n_loops; i++) {
        struct dgm_log_loop *at = &log->loops[i];
        if (atomic_load(&at->n) && !atomic_exchange(&at->waking, true)) {
            dgm_log_ref(log);
            dgm_loop_post(dgm_loops_at(log->all_loops, i), wake_readers, at);
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

/* No reader is in a segment behind the published length. */
void dgm_log_truncate(dgm_log *log)
{
    uint64_t published = atomic_load_explicit(&log->published, memory_order_relaxed);
    while (log->last > published) {
        struct dgm_log_segment *s = log->tail;
        if (log->last < s->base) {
            log->tail = s->prev;
            atomic_store_explicit(&log->tail->next, NULL, memory_order_release);
            free(s);
            continue;
        }
        dgm_record *record = s->slots[log->last - s->base];
        log->bytes -= record->n;
        log->last--;
        dgm_record_unref(record);
    }
}

void dgm_log_close(dgm_log *log, uint64_t seq)
{
    dgm_log_publish(log, seq);
    if (!atomic_exchange(&log->closed, true))
        wake_loops(log);
}

void dgm_log_cut(dgm_log *log)
{
    if (!atomic_load(&log->closed))
        atomic_store(&log->is_cut, true); /* before `closed`: readers see both */
    dgm_log_close(log, log->published);
}

/* ---- readers ------------------------------------------------------------------------------------------------ */

size_t dgm_log_n_readers(const dgm_log *log)
{
    size_t n = 0;
    for (size_t i = 0; i < log->n_loops; i++)
        n += atomic_load(&log->loops[i].n);
    return n;
}

/* An observer is counted in n_observers while it is counted as a reader, and for a shorter time: so a client is never left out. */
size_t dgm_log_n_clients(const dgm_log *log)
{
    uint32_t observers;
    size_t readers;
    do {
        observers = atomic_load(&log->n_observers);
        readers = dgm_log_n_readers(log);
    } while (observers != atomic_load(&log->n_observers));
    return readers > observers ? readers - observers : 0;
}

bool dgm_log_is_shared(const dgm_log *log)
{
    return atomic_load(&log->refs) > 1;
}

dgm_log_reader *dgm_log_reader_open(dgm_log *log, uint64_t after, dgm_loop_fn on_ready, void *arg)
{
    dgm_loop *loop = dgm_loop_current();
    assert(loop && after + 1 >= log->first_seq);
    dgm_log_reader *r = dgm_spare_alloc(sizeof *r);
    struct dgm_log_loop *at = &log->loops[loop->index];
    dgm_log_ref(log);
    *r = (dgm_log_reader){
        .log = log, .seq = after, .turn = {.fn = on_ready, .arg = arg}, .next = at->readers};
    r->prev = &at->readers;
    if (r->next)
        r->next->prev = &r->next;
    at->readers = r;
    atomic_fetch_add(&at->n, 1);
    dgm_loop_at_turn_end(loop, &r->turn);
    return r;
}

dgm_log_reader *dgm_log_observer_open(dgm_log *log, uint64_t after, dgm_loop_fn on_ready, void *arg)
{
    dgm_log_reader *r = dgm_log_reader_open(log, after, on_ready, arg);
    r->is_observer = true;
    atomic_fetch_add(&log->n_observers, 1);
    return r;
}

static void free_reader(void *reader)
{
    dgm_spare_free(reader, sizeof(dgm_log_reader));
}

void dgm_log_reader_close(dgm_log_reader *r)
{
    if (!r)
        return;
    dgm_loop *loop = dgm_loop_current(); /* that it was opened on */
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    if (r->is_observer)
        atomic_fetch_sub(&r->log->n_observers, 1);
    atomic_fetch_sub(&r->log->loops[loop->index].n, 1);
    dgm_log_unref(r->log);
    if (r->turn
            .next) /* most are closed in the turn that opened them: its end frees them without a search */
        r->turn = (dgm_loop_turn){.next = r->turn.next, .fn = free_reader, .arg = r};
    else
        free_reader(r);
}

dgm_record *dgm_log_reader_next(dgm_log_reader *r)
{
    uint64_t seq = r->seq + 1;
    if (seq > atomic_load(&r->log->published))
        return NULL;
    if (!r->segment)
        r->segment = atomic_load_explicit(&r->log->head, memory_order_acquire);
    while (seq >= r->segment->base + r->segment->cap)
        r->segment = atomic_load_explicit(&r->segment->next, memory_order_acquire);
    r->seq = seq;
    return r->segment->slots[seq - r->segment->base];
}

uint64_t dgm_log_reader_seq(const dgm_log_reader *r)
{
    return r->seq;
}

bool dgm_log_reader_is_over(const dgm_log_reader *r)
{
    /* closed is set after the last publish: seen closed, the length is final */
    return atomic_load(&r->log->closed) && r->seq >= atomic_load(&r->log->published);
}

bool dgm_log_reader_is_cut(const dgm_log_reader *r)
{
    return dgm_log_reader_is_over(r) && atomic_load(&r->log->is_cut);
}

dgm_log *dgm_log_reader_log(const dgm_log_reader *r)
{
    return r->log;
}

dgm_record *dgm_log_reader_task(const dgm_log_reader *r)
{
    dgm_record *task = atomic_load_explicit(&r->log->task, memory_order_acquire);
    return task && task->head.seq <= r->log->published ? task : NULL;
}
