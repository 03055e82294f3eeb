/*
 * core/core_int.h - what the files of this folder share: calls, live tasks, runs.
 *
 *   core.c    calls: to the loop that owns the task, and back with the answer
 *   table.c   the live tasks of one loop
 *   live.c    a task in memory: loading it, appending to it, writing to the store, publishing
 *   run.c     an execution of an agent for a turn: what it emits becomes records
 *   send.c    a message comes in: whose is it, was it here before, may it be taken
 *   recover.c what a crash left unfinished
 */
#pragma once

#include "core/core.h"
#include "model/fold.h"
#include "model/stamp.h"

#include <stdatomic.h>

#define DGM_MAX_QUEUED_MESSAGES 16 /* "queued_messages": to a task that is working */

struct live;
struct run;
struct inflight;

/* What one loop owns. */
struct shard {
    dgm_core *core;
    dgm_loop *loop;
    struct live **buckets; /* n_buckets, a power of two */
    size_t n_buckets, n_live;
    dgm_buf scratch;           /* records are put together here */
    size_t sweep;              /* the bucket that was looked at last */
    struct inflight *inflight; /* sends whose message id is not in the store yet */
};

struct dgm_core {
    dgm_core_options o;
    dgm_core_agent *agents;
    size_t n_shards;
    struct shard *shards;
    _Atomic bool stopping; /* the store is not asked any more */
    _Atomic uint64_t sends, resends, runs, messages, tasks, records, warnings;
};

/* ---- calls ------------------------------------------------------------------------------------------------ */

enum call_kind { CALL_SEND, CALL_GET, CALL_SUBSCRIBE, CALL_CANCEL, CALL_SETTLE };

/* One thing that was asked for, with all it needs and the answer when there is one. */
struct call {
    enum call_kind kind;
    dgm_core *core;
    dgm_loop *home; /* where it came from and goes back to */
    dgm_arena *arena;
    struct call *next;   /* in a list of a live task */
    struct shard *shard; /* CALL_SEND: where it is dealt with */
    dgm_owner owner;
    dgm_str task_id;
    uint64_t cursor;
    const dgm_core_agent *agent; /* whose the task has to be; NULL: anybody's */
    /* CALL_SEND */
    dgm_record *message; /* as a record: immutable, counted, decoded where it is needed */
    dgm_str message_id, context_id, protocol, caller_id;
    dgm_str asked_context,
        asked_task; /* as the message named them; context_id is filled in later */
    const dgm_json *metadata;
    dgm_strs accepted_output_modes;
    unsigned char digest[32];
    /* the answer */
    dgm_code code;
    dgm_err err;
    dgm_record *snapshot;
    dgm_log *log;
    uint64_t after;
    uint64_t wait_seq; /* to be given when this is published */
    uint32_t turn;
    bool is_message, is_resend;
    union {
        dgm_on_sent sent;
        dgm_on_task task;
        dgm_on_subscribed subscribed;
    } on;
    void *arg;
};

struct shard *core_shard_of(dgm_core *core, dgm_owner owner, dgm_str key);
/* Ends a task that nobody works on as failed; leaves one alone that is over, waits, or runs. */
void core_settle(dgm_core *core, dgm_owner owner, dgm_str task_id, dgm_on_task on_task, void *arg);
void core_answer(struct call *c); /* goes home; the call is gone for the caller */
void core_refuse(struct call *c, const dgm_err *err);
void core_refuse_with(struct call *c, dgm_code code, const char *msg);

/* ---- live tasks ---------------------------------------------------------------------------------------------- */

enum live_state { LIVE_LOADING, LIVE_READY, LIVE_BROKEN };

struct live {
    struct live *next; /* in its bucket */
    uint64_t hash;
    struct shard *shard;
    enum live_state is;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str id, context_id;
    const dgm_core_agent *agent;
    dgm_log *log;
    dgm_fold *fold;
    dgm_task_state state;
    int64_t created_ms, status_ms;
    uint64_t folded_seq; /* stored as a whole Task up to here */
    dgm_turn_row turn;   /* the one that runs, or the last */
    struct run *run;
    struct call *loading;   /* waiting for the load, newest first */
    struct call *waiting;   /* answers that wait to be published */
    struct call *queued;    /* messages for after this run, in order */
    struct call *canceling; /* cancels that wait for the end */
    size_t n_queued;
    struct inflight *inflight; /* the message it began with, until that is stored */
    /* to be written at the end of this turn of the loop */
    dgm_loop_turn flush;
    dgm_record **pending;
    size_t n_pending, pending_cap;
    bool sync, write_turn, write_folded;
    dgm_dedupe_row dedupe[2];
    size_t n_dedupe;
    size_t n_writing; /* appends the store has not answered */
    bool held;        /* by a function that goes on with it */
    dgm_err store_fault;
};

struct live *table_find(struct shard *s, dgm_owner owner, dgm_str id);
void table_add(struct shard *s, struct live *l);
void table_remove(struct shard *s, struct live *l);

/* Makes one for a new task; it is in the table. */
struct live *live_new(struct shard *s, dgm_owner owner, const dgm_core_agent *agent, dgm_str id,
                      dgm_str context_id);
/* Finds it or starts loading it; the call comes back through live_take when it is there. */
void live_with(struct shard *s, struct call *c);
void live_take(struct live *l, struct call *c); /* is ready: do it */

/* One event at the end of its log. Faults leave it as it was. */
dgm_code live_append(struct live *l, const dgm_event *event, dgm_author author, dgm_err *err);
void live_answer_when_published(struct live *l, struct call *c, uint64_t seq);
dgm_record *live_snapshot(struct live *l); /* a reference of the caller's */
void live_run_ended(struct live *l);
void live_settle_down(struct live *l); /* goes if nobody needs it */
void live_drop(struct live *l);        /* the process ends */
void live_rest(
    struct live *l); /* nothing runs: write down where it stands, go when nobody needs it */

/* ---- runs and sending ---------------------------------------------------------------------------------------- */

void run_start(struct shard *s, struct call *send, struct live *live, const dgm_message *message);
void run_cancel(struct run *r);
void run_drop(struct run *r); /* the process ends: its agent will not hear of it */

void send_start(struct shard *s, struct call *c); /* on the loop that will own the task */
void send_to_task(struct live *l, struct call *c);
/* The copy that came first has its turn, or (live NULL) a Message or an error: tell those that wait. */
void send_decided(struct shard *s, struct call *first, struct live *live);
void send_is_stored(struct live *l); /* copies find it in the store from now on */
void send_forget_all(struct shard *s);
void send_remember(struct live *l,
                   const struct call *c); /* its id goes to the store with the turn */
void send_digest(const dgm_message *m, dgm_buf *scratch, unsigned char digest[32]);
