/*
 * store/store.h - where tasks outlive the process.
 *
 * Asynchronous and small. A call is made on a loop, takes what it needs by copy or by reference count,
 * and answers with a callback on that loop, later; answers to one loop's calls on one task (append,
 * get_task, get_records, get_turns) come in order, and a read sees the appends called before it. Lists
 * and the find functions see what was answered before they were called, perhaps more.
 * Everything is scoped: (tenant, principal) is part of every key, and what is not yours is not there.
 *
 * Writes (append, put_note) of one loop are made in the order of the calls: an append has answered only when the notes that
 * were put before it are stored, or have failed.
 *
 * Durable, then visible: a log grows for readers when append has answered. `sync` says whether that
 * answer may come before the bytes are on the disk: text deltas survive kill -9, acknowledgements
 * survive the power.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "model/checkpoint.h"
#include "model/owner.h"
#include "model/record.h"
#include "net/loop.h"

typedef struct dgm_store dgm_store;

/* The server that may append to the log of a task: see store/share.h. In a store that is not shared: all zero. */
typedef enum dgm_lease_holder { DGM_LEASE_OURS, DGM_LEASE_NONE, DGM_LEASE_OTHER } dgm_lease_holder;
typedef struct dgm_lease {
    dgm_lease_holder holder;
    int64_t replica; /* that is the owner; 0: no replica */
    uint64_t fence;
} dgm_lease;

/* The row of a task: what lists and look-ups need without its log. */
typedef struct dgm_task_row {
    dgm_owner owner;
    dgm_str id;
    dgm_str context_id;
    dgm_str agent;
    dgm_task_state state;
    int64_t created_ms;
    int64_t status_ms; /* time of the last status change: what lists are sorted by */
    uint64_t last_seq;
    uint64_t folded_seq; /* `folded` is the Task up to here; 0 if nothing was folded yet */
    dgm_str folded; /* the Task as a record's bytes, {"task":{...}}, written at the end of a turn */
    dgm_lease lease; /* of a row that was read; lists come without it */
} dgm_task_row;

/* One exchange within a task. */
typedef struct dgm_turn_row {
    uint32_t turn;                /* from 1 */
    uint64_t first_seq, last_seq; /* last 0: it runs */
    dgm_str protocol;             /* "a2a", "ag-ui", "openai-chat", "openai-responses", "ai-sdk" */
    dgm_str caller_id; /* resp_..., a runId, ...: one per owner, agent, protocol; may be empty */
    dgm_str request;   /* JSON of what has to be echoed; may be empty */
    dgm_str previous;  /* caller_id of the turn before, for chains; may be empty */
} dgm_turn_row;

/* The message that began a turn. Its id is taken from then on, so that a resend finds the turn: by (owner,
 * agent, context of the task, message id), and for a while by (owner, agent, no context, message id). */
typedef struct dgm_taken {
    dgm_str message_id;
    dgm_str content;           /* see dgm_content_digest */
    int64_t nameless_until_ms; /* of one that named no context; 0: it did */
} dgm_taken;

/* What a message says: role and parts in the record form, or, of more than DGM_CONTENT_BYTES, their SHA-256. The first
 * kind is always longer than a digest. Messages are compared often and found by a digest rarely: most are never hashed,
 * or not on a loop. The context is made on the first use and used again: that costs more than a digest. */
#define DGM_CONTENT_BYTES 192
#define DGM_DIGEST_BYTES 32
struct evp_md_ctx_st;
void dgm_content_digest(struct evp_md_ctx_st **context, dgm_str content, unsigned char *ret_digest);

/* What a message id finds. */
typedef struct dgm_dedupe_row {
    dgm_owner owner;
    dgm_str agent;
    dgm_str context_id; /* as it was asked for */
    dgm_str message_id;
    unsigned char digest[DGM_DIGEST_BYTES]; /* of its content */
    dgm_str task_id;
    uint32_t turn;
    int64_t expires_ms; /* of one found without its context; 0: with its task */
} dgm_dedupe_row;

/* ---- writing ---------------------------------------------------------------------------------------- */

/* See dgm_append.note. */
typedef struct dgm_append_note {
    dgm_note note; /* as for dgm_store_put_note */
    dgm_store_done done;
    void *arg;
} dgm_append_note;

/*
 * All or nothing, in one commit with whatever else arrived meanwhile.
 *
 * The row is as it is after this: owner, id, state, status_ms and last_seq always; it is made by the
 * append whose first record is seq 1 (or that has none and last_seq 0), and context_id, agent and
 * created_ms are taken then. A folded.p of NULL leaves the folded Task as it was.
 * An append that does not begin where the log ends is refused (DGM_INTERNAL) and changes nothing.
 */
typedef struct dgm_append {
    dgm_task_row row;
    dgm_record **records; /* referenced by the store until they are written; seqs without a gap */
    size_t n_records;
    const dgm_turn_row *turn; /* made or changed; NULL: none */
    /* The message that started this turn; it replaces rows with the same key (context_id and agent of the row are the
     * task's then); NULL: none. */
    const dgm_taken *taken;
    /* Calls that the caller is asked to make, by id: dgm_store_find_call finds the task by them (agent of the
     * row is the task's then). */
    dgm_strs open_calls;
    /* A note that is stored with it: after kill -9 both are there or neither is. NULL: none. */
    const dgm_append_note *note;
    uint64_t
        fence; /* of the lease (store/share.h); of the append that makes the task: 1; not shared: 0 */
    bool releases; /* this append releases the lease */
    bool sync;
} dgm_append;

/* What a batch points to is copied before this returns, records are referenced. DGM_UNAVAILABLE: it is
 * not stored, now; the message says why and what to do. The same append may be tried again, unless dgm_store_is_lost().
 * In a shared store, also dgm_store_is_duplicate(): meanwhile another replica stored the message `taken` with the same
 * content for another task. Nothing of the append is stored; dgm_store_find_dedupe finds that turn. */
void dgm_store_append(dgm_store *s, const dgm_append *batch, dgm_store_done done, void *arg);

/* ---- reading ----------------------------------------------------------------------------------------- */

/* Answers live until the callback returns. row NULL: there is no such task for this owner. */
typedef void (*dgm_store_got_task)(dgm_code code, const dgm_task_row *row, const dgm_err *err,
                                   void *arg);
void dgm_store_get_task(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_task got,
                        void *arg);

/* Records from seq on, at most max of them and about max_bytes; the callback may take references. */
typedef void (*dgm_store_got_records)(dgm_code code, dgm_record **records, size_t n,
                                      const dgm_err *err, void *arg);
void dgm_store_get_records(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t seq, size_t max,
                           size_t max_bytes, dgm_store_got_records got, void *arg);

typedef void (*dgm_store_got_turns)(dgm_code code, const dgm_turn_row *turns, size_t n,
                                    const dgm_err *err, void *arg);
/* Those of a task, in order. */
void dgm_store_get_turns(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_turns got,
                         void *arg);

/* By the caller's id, at an agent (empty: any), the newest if it was used twice: turn is NULL if it
 * is not found; task_id is the task it belongs to. */
typedef void (*dgm_store_got_turn)(dgm_code code, const dgm_turn_row *turn, dgm_str task_id,
                                   const dgm_err *err, void *arg);
void dgm_store_find_turn(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str protocol,
                         dgm_str caller_id, dgm_store_got_turn got, void *arg);

/* The task that asked for the call of this id, at an agent (empty: any): the one that did last, if there are
 * several; row NULL: none did. */
void dgm_store_find_call(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str call_id,
                         dgm_store_got_task got, void *arg);

/* row NULL: it was not taken, or that has expired. */
typedef void (*dgm_store_got_dedupe)(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err,
                                     void *arg);
void dgm_store_find_dedupe(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                           dgm_str message_id, dgm_store_got_dedupe got, void *arg);

/* True: it is not taken, for certain. False: perhaps, find it. At once, on any thread. */
bool dgm_store_is_unknown(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                          dgm_str message_id);

/* ---- notes --------------------------------------------------------------------------------------------- */

void dgm_store_put_note(dgm_store *s, const dgm_note *note, dgm_store_done done, void *arg);

/* The text is absent if the note does not exist or has expired. */
typedef void (*dgm_store_got_note)(dgm_code code, dgm_str text, const dgm_err *err, void *arg);
void dgm_store_get_note(dgm_store *s, dgm_owner owner, dgm_str kind, dgm_str name,
                        dgm_store_got_note got, void *arg);

/* ---- checkpoints of graphs ------------------------------------------------------------------------------- */

/*
 * Of one agent; model/checkpoint.h has the types. A change is durable (as an append with sync) when it has answered. Names and
 * values above their limits are DGM_TOO_LARGE and change nothing. A read sees the changes of its thread that were called
 * before it; those that name several threads are seen when they have answered. done may be NULL.
 */
void dgm_store_read_checkpoints(dgm_store *s, dgm_str agent, const dgm_checkpoint_query *query,
                                dgm_checkpoints_got got, void *arg);
void dgm_store_change_checkpoints(dgm_store *s, dgm_str agent, const dgm_checkpoint_change *change,
                                  dgm_store_done done, void *arg);

/* A page may hold fewer rows than asked for (DGM_MAX_STORE_PAGE_BYTES): `more` tells. total: all that
 * match, on whichever page; 0 for dgm_store_list_unfinished. */
typedef void (*dgm_store_got_list)(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                                   size_t total, const dgm_err *err, void *arg);
void dgm_store_list(dgm_store *s, const dgm_list_query *q, dgm_store_got_list got, void *arg);

/* Every task whose state is neither terminal nor interrupted, of all owners: for recovery at start. In
 * pages, by (tenant, principal, id); after: the last row of the page before, NULL for the first. The
 * rows come without their folded Task. */
void dgm_store_list_unfinished(dgm_store *s, size_t page_size, const dgm_task_row *after,
                               dgm_store_got_list got, void *arg);

/* The tasks of a context at an agent, the one that was created last first: at most max, and none behind the one with which
 * their folded Tasks exceed max_bytes. One indexed read. `more`: there are older ones; total: 0. */
void dgm_store_get_context(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                           size_t max, size_t max_bytes, dgm_store_got_list got, void *arg);

/* ---- life ---------------------------------------------------------------------------------------------- */

/* "memory:", "sqlite:PATH" or "postgres:CONNINFO", without a password. The first forgets the tasks that ended first when it has more than
 * DGM_MAX_MEMORY_TASKS or DGM_MAX_MEMORY_BYTES, and the oldest notes and threads of graphs likewise. A second process on the same database is refused, naming the holder. */
/* For people: as above, of PostgreSQL only what is not secret. */
void dgm_store_show(const char *url, char *out, size_t size);
/* Of a store that several servers share; the others ignore it. All zero: the defaults. */
typedef struct dgm_store_options {
    dgm_str replica_name; /* of this server, for people; absent: the name of the host */
    uint32_t
        lease_ms; /* a server that does not extend its lease for this time is dead; 0: DGM_LEASE_MS */
    bool polls;   /* do not use LISTEN and NOTIFY: for poolers and databases without them */
} dgm_store_options;
#define DGM_LEASE_MS 10000
#define DGM_MIN_LEASE_MS 1000
dgm_code dgm_store_open_with(const char *url, const dgm_store_options *options,
                             dgm_store **ret_store, dgm_err *err);
dgm_code dgm_store_open(const char *url, dgm_store **ret_store, dgm_err *err);
/* Finishes what was asked for, then closes. Callbacks are posted to their loops: close before
 * dgm_loops_free. */
void dgm_store_close(dgm_store *s); /* NULL is fine; blocks */

/* Can it take work? The last fault (disk full, read-only, ...), until a write succeeds again; the store
 * tries one by itself every second. From any thread. */
bool dgm_store_is_healthy(dgm_store *s, dgm_err *ret_why);

/* How long commits take, by upper bound in microseconds. */
#define DGM_N_COMMIT_BOUNDS 12
extern const uint32_t dgm_store_commit_bounds[DGM_N_COMMIT_BOUNDS];

typedef struct dgm_store_stats {
    uint64_t commits, appends, records, bytes, reads;
    uint64_t queued; /* appends waiting for the writer */
    /* Of a store that writes to a disk: how many took at most so long; the last, longer than all bounds. */
    uint64_t commit_took[DGM_N_COMMIT_BOUNDS + 1];
    uint64_t commit_ns; /* all together */
    /* Of a shared store. */
    int64_t
        lease_left_ms;   /* of this server's life, as the database sees it; negative: it is over */
    uint64_t taken_over; /* tasks of dead servers, by this one */
    uint64_t wakeup_took[DGM_N_COMMIT_BOUNDS +
                         1]; /* from the commit of an event to its wake-up in another server */
    uint64_t wakeup_ns;
} dgm_store_stats;
dgm_store_stats dgm_store_stats_of(dgm_store *s);

/*
 * Takes away what is old.
 *
 * turns_before_ms: whole finished turns whose last record is older than this, from the front of a log and
 * only what the folded Task covers. The task, its folded Task and the message ids it took stay, and of
 * the last turn a row for its number: its first_seq is behind its last_seq then, and its texts are gone.
 * tasks_before_ms: tasks in a terminal state since before this, with all that belongs to them; threads of graphs that were
 * not changed since then.
 * Notes that have expired go in any case.
 */
typedef struct dgm_retention {
    int64_t turns_before_ms, tasks_before_ms; /* 0: all stay */
} dgm_retention;
void dgm_store_trim(dgm_store *s, dgm_retention keep, dgm_store_done done, void *arg);
