/*
 * store/share.h - several servers (replicas) on one store.
 *
 * A store is shared or it is not. In one that is not (sqlite, memory:), this process owns every task, every fence is 0 and
 * nothing of this header is called back. In a shared store (postgres) each process that opens it is a replica.
 *
 * Lease. A task that works has one owner: the replica that may append to its log. The row of the task holds the owner and a
 * fence, a number that grows with every change of the owner. An append names the fence that it has; if another replica
 * became the owner, the fences differ and the store refuses the append (DGM_UNAVAILABLE, and dgm_store_is_lost() is true
 * for its error). So a replica that was stopped for a long time cannot write when it continues.
 *
 *   first append of a task ─► ours, fence 1 ── append with `releases` ─► no owner ── dgm_store_acquire ─► ours, fence + 1
 *                                  └─ the replica is dead ─► another replica acquires it (on_orphans), fence + 1
 *
 * Lease of a replica. Each replica has one row with an end time, and extends it three times per lease with one statement. When
 * that time has passed, another replica declares it dead. Only the clock of the database is used. A replica declares others
 * dead only if it has extended its own row without a gap for the time of one lease: otherwise the database may have been
 * unreachable for all replicas, and the others are about to extend their rows. A replica is dead at once if its process does not
 * exist any more (same machine, same process namespace). The other replicas acquire the tasks of a dead one in groups, each
 * task by one replica that has its agent (dgm_store_set_agents).
 *
 * Reads need no lease: any replica reads any task from the store. A replica calls dgm_store_follow to be woken when a log
 * grows; without wake-ups it reads every DGM_FOLLOW_POLL_MS.
 *
 * Commands go from a replica to the owner of a task, and an answer comes back. Both are rows of the database; a wake-up only
 * makes them faster. A command whose owner died, or that was not answered in time, is answered with DGM_UNAVAILABLE. It may
 * have been executed then: the sender must be able to send it again.
 */
#pragma once

#include "store/store.h"

#define DGM_FOLLOW_POLL_MS 250

typedef struct dgm_replica {
    int64_t id; /* of this process at this store; 0: the store is not shared */
    dgm_str name;
} dgm_replica;

bool dgm_store_is_shared(const dgm_store *s);
dgm_replica dgm_store_replica(const dgm_store *s);

/* The error of an append or a change: another replica owns the task now. */
bool dgm_store_is_lost(const dgm_err *err);
/* The error of an append: another replica stored a message with this id and content first. */
bool dgm_store_is_duplicate(const dgm_err *err);

/* ---- leases -------------------------------------------------------------------------------------------------- */

/*
 * Acquires the lease of a task that has no owner, or whose owner is dead. Then reads the row like dgm_store_get_task:
 * row->lease has the owner. row NULL: the task does not exist.
 */
void dgm_store_acquire(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_task got,
                       void *arg);

/* Releases the lease without an append; done may be NULL. A working task without an owner is an orphan: another
 * replica, or this one, acquires it (on_orphans). So other servers continue the tasks that a server cannot finish before it
 * ends. */
void dgm_store_release(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence,
                       dgm_store_done done, void *arg);
/* The same for a task that this replica could not load: no replica is woken for it, and this one acquires it again at a later
 * heartbeat at the earliest. Otherwise a task that no replica can load would be acquired and released all the time. */
void dgm_store_release_failed(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence);

/* This replica acquires orphans of these agents. Before the first call, and after a call with n 0 (it drains), it acquires no
 * orphan. On any thread; the texts are copied. */
void dgm_store_set_agents(dgm_store *s, const dgm_str *agents, size_t n);

/* ---- following ------------------------------------------------------------------------------------------------- */

/* For the next DGM_FOLLOW_MS the owner wakes this replica when the log has grown: on_grown. Call it again before that time ends. */
#define DGM_FOLLOW_MS 10000
void dgm_store_follow(dgm_store *s, dgm_owner owner, dgm_str task_id, int64_t owner_replica);
/* Does another replica follow this task, which this replica owns? Returns at once; on any thread. */
bool dgm_store_is_followed(dgm_store *s, dgm_owner owner, dgm_str task_id);

/* ---- commands ---------------------------------------------------------------------------------------------------- */

typedef struct dgm_command {
    int64_t id; /* set by the store; for dgm_store_answer */
    int64_t from;
    dgm_owner owner;
    dgm_str task_id;
    dgm_str kind; /* defined by the core */
    dgm_str body; /* JSON */
} dgm_command;

/* code, and the body of the answer; err if code is not DGM_OK. */
typedef void (*dgm_command_answered)(dgm_code code, dgm_str body, const dgm_err *err, void *arg);
/* Waits ms at most. answered NULL: no answer is expected. */
void dgm_store_command(dgm_store *s, int64_t to_replica, dgm_owner owner, dgm_str task_id,
                       dgm_str kind, dgm_str body, uint64_t ms, dgm_command_answered answered,
                       void *arg);
/* err: the error that the sender gets, if code is not DGM_OK. */
void dgm_store_answer(dgm_store *s, const dgm_command *command, dgm_code code, const dgm_err *err,
                      dgm_str body);

/* ---- callbacks of the core --------------------------------------------------------------------------------- */

/* All are called later, on the first loop of the process. Arguments are valid until the callback returns. */
typedef struct dgm_share_handlers {
    /* Tasks of dead replicas that this replica has acquired; row.lease has the fence. The rows have no folded Task. */
    void (*on_orphans)(void *user, const dgm_task_row *rows, size_t n);
    /* Called once: the first search for such tasks has ended, and on_orphans was called for all of them. If the database
     * cannot be reached, or other statements lock tasks for a long time, the search continues after this call. */
    void (*on_searched)(void *user);
    /* The working tasks that this replica owns in the database, in pages: only their owner, id and lease. Called after the
     * connection was lost, and regularly: if the answer of a takeover or of an acquire was lost, this replica owns tasks that
     * are not in its memory. The core continues these tasks or ends them as failed. */
    void (*on_owned)(void *user, const dgm_task_row *rows, size_t n);
    /* This replica was declared dead, and has another id now. It no longer owns the tasks that it had before. */
    void (*on_renewed)(void *user);
    /* The log of a task that this replica follows has grown, or its owner has changed. */
    void (*on_grown)(void *user, dgm_owner owner, dgm_str task_id);
    void (*on_command)(void *user, const dgm_command *command);
    void *user;
} dgm_share_handlers;

/* Called once, before all other functions of this header except dgm_store_set_agents. From then on this replica acquires tasks
 * of dead replicas. handlers NULL: no callback is called any more. */
void dgm_store_share(dgm_store *s, dgm_loop *loop, const dgm_share_handlers *handlers);
