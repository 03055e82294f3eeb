/*
 * core/log.h - a task's log in memory: one writer, readers on any loop.
 *
 * Records are appended on the loop that owns the task, in order. They can be read up to the published
 * length, which moves when the store has answered. Segments of up to 64 records never move; a reader
 * keeps its place in one and takes no lock. What the store has of older records can be put in front
 * later, when somebody asks for it.
 *
 *   owner:   append ... append ── store ──► publish ──► one wake-up per loop that has readers
 *   reader:  next, next, NULL ... on_ready ... next, ... until is_over (is_cut: without an end)
 */
#pragma once

#include "base/err.h"
#include "model/record.h"
#include "net/loop.h"

typedef struct dgm_log dgm_log;
typedef struct dgm_log_reader dgm_log_reader;

struct dgm_log_loop { /* the log is found by `index`, which is the loop's too */
    dgm_log_reader *readers;
    _Atomic uint32_t n;
    uint16_t index;
    _Atomic bool waking; /* a wake-up is on its way */
};

/* Others read published and first_seq, from any thread, and the owner last and bytes; the rest is for log.c. */
struct dgm_log {
    _Atomic uint32_t refs;
    uint16_t n_loops;
    _Atomic bool closed, is_cut;
    _Atomic uint32_t n_observers; /* readers that are no clients; in `loops`, too */
    _Atomic uint64_t first_seq;   /* goes down when older records are put in front */
    _Atomic uint64_t published;
    _Atomic(struct dgm_log_segment *) head; /* of first_seq */
    /* The whole Task at the end of the log, for those who wait for nothing else: the owner sets it, once. It is there for
     * readers when its seq is published. */
    _Atomic(dgm_record *) task;
    /* the owner's */
    struct dgm_log_segment *tail;
    uint64_t last; /* appended, published or not; first_seq - 1: none */
    size_t bytes;  /* of all records */
    dgm_loops *all_loops;
    struct dgm_log_loop loops[]; /* the first segment is behind them */
};

/* first_seq: of the first record it will hold (a log that was trimmed does not begin at 1). */
dgm_log *dgm_log_new(dgm_loops *loops, uint64_t first_seq);
dgm_log *dgm_log_ref(dgm_log *log);
void dgm_log_unref(dgm_log *log); /* NULL is fine */

/* ---- the owner's side ----------------------------------------------------------------------------------- */

/* Takes over a reference. Its seq is the next one. */
void dgm_log_append(dgm_log *log, dgm_record *record);
/* The last n of them (n > 0), in order and borrowed; in scratch (that has no limit), if they are not
 * in one place, until it is used again. */
dgm_record **dgm_log_tail(const dgm_log *log, size_t n, dgm_buf *scratch);
dgm_record *dgm_log_newest(const dgm_log *log);   /* the last one, borrowed; NULL: none */
void dgm_log_publish(dgm_log *log, uint64_t seq); /* everything up to seq may be read */
/* Those that came before the first one, published already; takes over a reference to each. The last of
 * them is first_seq - 1. */
void dgm_log_prepend(dgm_log *log, dgm_record **records, size_t n);
/* Removes the records that are not published. */
void dgm_log_truncate(dgm_log *log);
/* Publishes up to seq; readers are over when they have read that. `last`: nothing will follow what was appended.
 * `published`: the server ends, the task may go on at the next start. */
void dgm_log_close(dgm_log *log, uint64_t seq);
/* Ends the log for its readers after the published records, although the task has not ended: it continues on another server, or
 * its state is unknown here. Readers must not report an end of the task. */
void dgm_log_cut(dgm_log *log);

/* ---- readers --------------------------------------------------------------------------------------------- */

/* on_ready(arg): there is more to read, or it is over. On the loop the reader was opened on, later,
 * once per turn. The first record it gives is after + 1; after may be anything from first - 1 on. */
dgm_log_reader *dgm_log_reader_open(dgm_log *log, uint64_t after, dgm_loop_fn on_ready, void *arg);
/* The same for a reader that is no client of the task, the inspector: a run that only observers read is a run that no client
 * reads. */
dgm_log_reader *dgm_log_observer_open(dgm_log *log, uint64_t after, dgm_loop_fn on_ready,
                                      void *arg);
void dgm_log_reader_close(dgm_log_reader *r); /* NULL is fine; on_ready is not called any more */

/* The next record, borrowed as long as the reader is open; NULL: no more for now. */
dgm_record *dgm_log_reader_next(dgm_log_reader *r);
uint64_t dgm_log_reader_seq(
    const dgm_log_reader *r); /* of the last one given; what was `after` before that */
bool dgm_log_reader_is_over(const dgm_log_reader *r); /* closed, and all of it was given */
bool dgm_log_reader_is_cut(const dgm_log_reader *r);  /* over, by dgm_log_cut */
dgm_log *dgm_log_reader_log(const dgm_log_reader *r);
/* The Task that the log ended with, borrowed like the records; NULL: it has not, or it was not kept. */
dgm_record *dgm_log_reader_task(const dgm_log_reader *r);
size_t dgm_log_n_readers(const dgm_log *log); /* on all loops; changes under one's feet */
size_t dgm_log_n_clients(const dgm_log *log); /* without observers */
bool dgm_log_is_shared(const dgm_log *log); /* somebody else has a reference: a reader, an answer */
