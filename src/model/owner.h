/*
 * model/owner.h - the owner of a task, and the questions about what an owner has: for frontends, core and store.
 */
#pragma once

#include "base/err.h"

#include <dragoman/model.h>

/* Whose it is. Both may be empty: a server without tokens has one owner. */
typedef struct dgm_owner {
    dgm_str tenant;
    dgm_str principal;
} dgm_owner;

/* The condition of a write in a store that several servers share: this server still owns the task (store/share.h).
 * task_id empty: nothing is checked. */
typedef struct dgm_fence {
    dgm_owner owner;
    dgm_str task_id;
    uint64_t fence;
    /* Of a change of checkpoints: the task may not be stored yet, since its first turn has just started. No other server can
     * own such a task. Once it is stored, the fence is checked; once its first append has failed, the change is refused. */
    bool is_new;
} dgm_fence;

/* A text that is stored for a caller without a task, by (owner, kind, name): conversations of OpenAI, responses that were
 * deleted; what agents store for later runs. Of limited size: more is DGM_TOO_LARGE. */
typedef struct dgm_note {
    dgm_owner owner;
    dgm_str kind, name;
    dgm_str text;       /* replaces the one before; absent: the note is removed */
    int64_t expires_ms; /* 0: never */
    size_t max_bytes;   /* of the text; 0: DGM_MAX_NOTE_BYTES */
    dgm_fence fence;    /* of a note that an agent stores while it works */
} dgm_note;

/* A page of tasks. */
typedef struct dgm_list_query {
    dgm_owner owner;
    dgm_str agent;          /* empty: any */
    dgm_str context_id;     /* empty: any */
    dgm_opt_int state;      /* a dgm_task_state */
    int64_t status_from_ms; /* status_ms >= this; 0: any */
    size_t page_size;
    /* Where the page before ended; id empty: the first page. Sorted by status_ms, then id, both down. */
    int64_t after_status_ms;
    dgm_str after_id;
} dgm_list_query;

/* A write was done, or err says why not. */
typedef void (*dgm_store_done)(dgm_code code, const dgm_err *err, void *arg);
