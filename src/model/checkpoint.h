/*
 * model/checkpoint.h - checkpoints of graphs: for the store, and for the agent types whose graphs need them.
 *
 * A graph stores its state after every step, as a checkpoint of a thread. The values are bytes of the graph's own
 * serializer; this program never decodes them. A checkpoint is identified by (agent, thread, ns, id). Ids increase with
 * time: the latest checkpoint of (thread, ns) is the one with the greatest id, by bytes. ns is empty for the graph itself
 * and names a subgraph otherwise. Writes are what the tasks of the next step have finished; they belong to a checkpoint
 * and may be stored before it.
 */
#pragma once

#include "model/owner.h"

#include <dragoman/model.h>
#include <stdatomic.h>

/* Bytes that never change, shared by reference count, from any thread. */
typedef struct dgm_bytes {
    _Atomic uint32_t refs;
    size_t n;
    char p[]; /* n of them, then a NUL */
} dgm_bytes;

dgm_bytes *dgm_bytes_new(size_t n);   /* not filled; the caller has checked n against a limit */
dgm_bytes *dgm_bytes_copy(dgm_str s); /* one reference, as above */
dgm_bytes *dgm_bytes_ref(dgm_bytes *b);
void dgm_bytes_unref(dgm_bytes *b); /* NULL is fine */

typedef struct dgm_checkpoint_value {
    dgm_str type;     /* of the serializer: "msgpack", "json", ... */
    dgm_bytes *bytes; /* NULL: empty */
} dgm_checkpoint_value;

/* One write of a task. Of one (task, idx) there is one: a negative idx replaces it, another one is ignored if it exists. */
typedef struct dgm_checkpoint_write {
    dgm_str task, path; /* path: of the task in the graph; may be empty */
    int64_t idx;
    dgm_str channel;
    dgm_checkpoint_value value;
} dgm_checkpoint_write;

typedef struct dgm_checkpoint {
    dgm_str thread, ns, id;
    dgm_str parent; /* id of the checkpoint before it; empty: none */
    dgm_str run;    /* the run that made it, for DGM_CHECKPOINT_DELETE_RUNS; may be empty */
    dgm_checkpoint_value checkpoint, metadata;
    const dgm_checkpoint_write *writes; /* by (path, task, idx) in answers */
    size_t n_writes;
} dgm_checkpoint;

/* Which checkpoints to read: sorted by id, the greatest first, then by ns, then by thread. */
typedef struct dgm_checkpoint_query {
    dgm_str thread; /* empty: all threads of the agent */
    dgm_str ns;
    bool any_ns;    /* ns is not compared */
    dgm_str id;     /* only this one; empty: any */
    dgm_str before; /* ids smaller than this; empty: any */
    /* The last row of the page before; id empty: the first page. */
    struct {
        dgm_str id, ns, thread;
    } after;
    size_t limit; /* rows; at least 1, at most DGM_MAX_CHECKPOINT_PAGE */
} dgm_checkpoint_query;

/* A page ends after `limit` rows, and when its values exceed DGM_MAX_STORE_PAGE_BYTES, after one row at least. more: there
 * are others. Rows live until the callback returns; it may take references to their bytes. n is 0 on an error. */
typedef void (*dgm_checkpoints_got)(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                                    const dgm_err *err, void *arg);

typedef enum dgm_checkpoint_change_kind {
    DGM_CHECKPOINT_PUT,            /* row, without its writes; replaces the one with the same key */
    DGM_CHECKPOINT_WRITES,         /* row: thread, ns, id and writes; the others are not read */
    DGM_CHECKPOINT_DELETE_THREADS, /* names: threads, with everything that belongs to them */
    DGM_CHECKPOINT_DELETE_RUNS, /* names: runs; their checkpoints with their writes, of all threads of the agent */
    DGM_CHECKPOINT_COPY, /* everything of row.thread to the thread `to`, in place of equal keys there */
    DGM_CHECKPOINT_KEEP_LATEST, /* names: threads; the latest checkpoint of each ns stays */
} dgm_checkpoint_change_kind;

/* A change, all or nothing. */
typedef struct dgm_checkpoint_change {
    dgm_checkpoint_change_kind kind;
    dgm_checkpoint row;
    dgm_str to;
    dgm_strs names;
    dgm_fence fence; /* of the task whose graph makes the change */
} dgm_checkpoint_change;
