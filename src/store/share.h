/*
 * store/share.h - several servers (replicas) on one store.
 *
 * A store is shared or it is not. In one that is not (sqlite, memory:), this process owns every task, every fence is 0 and
 * nothing of this header is called back. In a shared store (postgres) each process that opens it is a replica.
 *
 * Lease. A task that works has one owner: the replica that may append to its log. The row of the task holds the owner and a
 * fence, a number that grows with every change of the owner. An append names the fence that it has; if another replica
 * became the owner, the fences differ and the store refuses the append (DGM_UNAVAILABLE, and dgm_store_is_lost() is true
 * for its error). So a replica that was stopped for long cannot write when it goes on, whatever it believes.
 *
 *   first append of a task ─► ours, fence 1 ── append with `releases` ─► no owner ── dgm_store_acquire ─► ours, fence + 1
 *                                  └─ the replica is dead ─► another replica takes it (on_orphans), fence + 1
 *
 * Life. Each replica has one row with an end of life in the time of the database, and extends it three times per lease with
 * one statement. When that time has passed, another replica declares it dead; no clock but the database's decides it. Only a
 * replica that has extended its own life without a gap for as long as one lease does so: otherwise the database may have been
 * away for all of them, and the others are about to come back. A replica whose process is known to be gone (same machine, same
 * process namespace, no such process) is dead at once. The replicas that live take the tasks of a dead one in groups, each task
 * by one of them, if they have its agent (dgm_store_set_agents).
 *
 * Reading is free: any replica reads any task from the store. One that wants to be woken when a log grows calls
 * dgm_store_follow; without a wake-up it reads every DGM_FOLLOW_POLL_MS.
 *
 * Commands go from a replica to the owner of a task, and an answer comes back. Both are rows of the database; a wake-up only
 * makes them faster. A command whose owner died, or that was not answered in time, is answered with DGM_UNAVAILABLE. It may
 * have been executed then: whoever sends it must be able to send it again.
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
 * Takes the lease of a task that has no owner, or whose owner is dead. The row is as dgm_store_get_task has it, after that:
 * row->lease says who the owner is. row NULL: there is no such task.
 */
void dgm_store_acquire(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_task got,
                       void *arg);

/* Gives the lease back without an append; done may be NULL. A task that works and has no owner is an orphan: another
 * replica, or this one, takes it (on_orphans). So a server that ends hands over what it cannot finish. */
void dgm_store_release(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence,
                       dgm_store_done done, void *arg);
/* Likewise, of a task that this replica could not load: no replica is woken for it, and this one takes it again with a later
 * heartbeat at the earliest. Otherwise a task that no replica can load would be taken and released all the time. */
void dgm_store_release_failed(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence);

/* Orphans of these agents are taken by this replica: none before the first call, and none after one with n 0 (it drains).
 * On any thread; the texts are copied. */
void dgm_store_set_agents(dgm_store *s, const dgm_str *agents, size_t n);

/* ---- following ------------------------------------------------------------------------------------------------- */

/* From now on (for DGM_FOLLOW_MS, then again) the owner wakes this replica when the log has grown: on_grown. */
#define DGM_FOLLOW_MS 10000
void dgm_store_follow(dgm_store *s, dgm_owner owner, dgm_str task_id, int64_t owner_replica);
/* Of a task that this replica owns: does another replica follow it? At once, on any thread. */
bool dgm_store_is_followed(dgm_store *s, dgm_owner owner, dgm_str task_id);

/* ---- commands ---------------------------------------------------------------------------------------------------- */

typedef struct dgm_command {
    int64_t id; /* of the store; to answer it */
    int64_t from;
    dgm_owner owner;
    dgm_str task_id;
    dgm_str kind; /* of the core */
    dgm_str body; /* JSON */
} dgm_command;

/* code, and the body of the answer; err if code is not DGM_OK. */
typedef void (*dgm_command_answered)(dgm_code code, dgm_str body, const dgm_err *err, void *arg);
/* Waits ms at most. answered NULL: no answer is expected. */
void dgm_store_command(dgm_store *s, int64_t to_replica, dgm_owner owner, dgm_str task_id,
                       dgm_str kind, dgm_str body, uint64_t ms, dgm_command_answered answered,
                       void *arg);
/* err: as which the sender gets it, if code is not DGM_OK. */
void dgm_store_answer(dgm_store *s, const dgm_command *command, dgm_code code, const dgm_err *err,
                      dgm_str body);

/* ---- what the core is called with --------------------------------------------------------------------------------- */

/* All on the first loop of the process, later. What they get lives until they return. */
typedef struct dgm_share_handlers {
    /* Tasks that were taken from dead replicas: ours now, row.lease has the fence. They come without their folded Task. */
    void (*on_orphans)(void *user, const dgm_task_row *rows, size_t n);
    /* Once: the first search for such tasks is over, and on_orphans has had what it found. If the database is not reached or
     * other statements lock tasks for long, the search goes on after it. */
    void (*on_searched)(void *user);
    /* Tasks that work and are ours, as the database has them, in pages: only their owner, id and lease. Called after the
     * connection was lost, and once in a while: the answer of a takeover or of an acquire may have been lost, and then
     * this replica owns tasks that it does not have. The core has most of them; it continues or settles the others. */
    void (*on_owned)(void *user, const dgm_task_row *rows, size_t n);
    /* This replica was declared dead, and has another id now: tasks that it had before are not its own any more. */
    void (*on_renewed)(void *user);
    /* The log of a task that this replica follows has grown, or its owner has changed. */
    void (*on_grown)(void *user, dgm_owner owner, dgm_str task_id);
    void (*on_command)(void *user, const dgm_command *command);
    void *user;
} dgm_share_handlers;

/* Once, before the first other call of this header but dgm_store_set_agents; NULL: no more calls. Tasks of dead replicas are
 * taken from then on. */
void dgm_store_share(dgm_store *s, dgm_loop *loop, const dgm_share_handlers *handlers);
