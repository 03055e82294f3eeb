/*
 * core/core.h - tasks, turns and runs: what frontends ask for, whoever the agent and the store are.
 *
 * A task is owned by one loop, found by hashing its id; every call is carried there and answered, by a
 * callback, on the loop it came from. What is handed out (records, logs) is counted and may be kept
 * with a reference of one's own; everything else lives until the callback returns.
 *
 * What is not yours does not exist: an unknown task, somebody else's and another agent's give the same
 * error, DGM_TASK_NOT_FOUND. Where an agent is asked for, "" is the default one.
 */
#pragma once

#include "backend/backend.h"
#include "core/log.h"
#include "store/store.h"

typedef struct dgm_core dgm_core;

typedef struct dgm_core_agent {
    dgm_str id;
    const dgm_backend *backend;
    void *agent;
    bool foreign; /* of another maker: faults are warnings */
    bool dedupe;  /* a resent message finds its first turn */
    bool keep_transitory;
} dgm_core_agent;

typedef struct dgm_core_options {
    dgm_loops *loops;
    dgm_store *store;
    const dgm_core_agent *agents; /* the first is the default; copied, their strings borrowed */
    size_t n_agents;
    /* Limits of one task; 0: the DGM_MAX_ of base/limits.h. */
    size_t max_log_bytes;       /* limits.log_bytes */
    size_t max_log_records;     /* limits.log_records */
    size_t max_queued_messages; /* limits.queued_messages */
    size_t max_subscribers;     /* limits.subscribers */
    /* Finished turns are trimmed from logs when they are this old; 0: never. */
    int64_t retention_ms; /* retention_hours */
    /* What an agent of another maker did wrong, once per warning; may be NULL. From any loop. */
    void (*on_warning)(void *user, dgm_str task_id, const dgm_err *what);
    void *user;
} dgm_core_options;

dgm_code dgm_core_new(const dgm_core_options *o, dgm_core **ret_core, dgm_err *err);
/* From now on calls are refused and the store is left alone: before the store is closed. */
void dgm_core_stop(dgm_core *core);
/* After the loops have stopped. Tasks that ran are settled at the next start (dgm_core_recover). */
void dgm_core_free(dgm_core *core); /* NULL is fine */

/* Settles what a crash left unfinished: failed, with metadata.error. Before the first call; on a loop. */
void dgm_core_recover(dgm_core *core, dgm_store_done done, void *arg);

/* ---- sending ----------------------------------------------------------------------------------------------- */

typedef struct dgm_send {
    dgm_owner owner;
    dgm_str agent;              /* id; empty: the default */
    const dgm_message *message; /* taskId and contextId decide where it goes */
    const dgm_json *metadata;   /* of the request */
    dgm_strs accepted_output_modes;
    dgm_str protocol;  /* "a2a", ... */
    dgm_str caller_id; /* the caller's name for the turn; may be empty */
} dgm_send;

typedef struct dgm_sent {
    dgm_log *log;
    uint64_t after;       /* the turn's first record is the next one */
    dgm_record *snapshot; /* the task before this turn, as a `task` record; NULL for a new one */
    dgm_str task_id, context_id;
    uint32_t turn;
    bool
        is_message; /* the answer is a Message: the log holds that one record, and there is no task */
    bool is_resend; /* this message was taken before: here is its turn */
} dgm_sent;

/* Answered when the turn's first record can be read: by then it is stored. */
typedef void (*dgm_on_sent)(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg);
void dgm_core_send(dgm_core *core, const dgm_send *send, dgm_on_sent on_sent, void *arg);

/* ---- looking ----------------------------------------------------------------------------------------------- */

/* The task as it is: a `task` record whose seq is that of the last record folded in. */
typedef void (*dgm_on_task)(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg);
void dgm_core_get(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                  dgm_on_task on_task, void *arg);

/* A page of an owner's tasks at one agent, as dgm_store_list finds them, each as dgm_core_get has it. A
 * task that went between the two is left out; `total` is then one too many. */
typedef struct dgm_listed {
    dgm_record **tasks; /* `task` records */
    size_t n;
    bool more;
    size_t total;
    int64_t
        last_status_ms; /* where the next page begins: after_status_ms and after_id of its query */
    dgm_str last_id;
} dgm_listed;
typedef void (*dgm_on_listed)(dgm_code code, const dgm_listed *listed, const dgm_err *err,
                              void *arg);
void dgm_core_list(dgm_core *core, const dgm_list_query *q, dgm_on_listed on_listed, void *arg);

#define DGM_NO_CURSOR UINT64_MAX

/*
 * The log of a task, and where to read on: behind `cursor` if it lies in what is kept, with no snapshot
 * then; else behind the snapshot. A task that has ended is only given for a cursor: without one it is
 * DGM_UNSUPPORTED_OPERATION, as A2A has it.
 */
typedef void (*dgm_on_subscribed)(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                                  const dgm_err *err, void *arg);
void dgm_core_subscribe(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                        uint64_t cursor, dgm_on_subscribed on_subscribed, void *arg);

/* Asks the agent to stop and answers when it has, or after DGM_CANCEL_WAIT_MS with what there is. A task
 * that has ended: DGM_TASK_NOT_CANCELABLE, but canceled again is canceled. */
void dgm_core_cancel(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                     dgm_on_task on_task, void *arg);

typedef struct dgm_core_stats {
    uint64_t sends, resends, runs, messages, tasks, records, warnings;
    uint64_t live; /* tasks in memory */
} dgm_core_stats;
dgm_core_stats dgm_core_stats_of(dgm_core *core);
