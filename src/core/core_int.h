/*
 * core/core_int.h - what the files of this folder share: calls, live tasks, runs.
 *
 *   core.c        calls: to the loop that owns the task, and back with the answer
 *   live.c        a task in memory: its states, appending to it, writing to the store, publishing
 *   load.c        from the store: a task, and older records of a task in memory
 *   ask.c         calls that a task handles: get, subscribe, cancel, settle, disconnected
 *   find.c        other names of a task: turns, calls; finding it by them
 *   read_task.c   a task with its log and its turns, for the inspector
 *   notes.c       notes without a task, and Message answers that are stored as turns
 *   send.c        a message comes in: may it be accepted, where does it go, when is its caller answered
 *   adopt.c       a message without a taskId that answers the only open question of its context
 *   resend.c      the same message again: messages that are not stored yet, and the answer to a copy
 *   run.c         an execution of an agent for a turn: its states; its events become records
 *   run_fill.c    the rules for its events; their ids, times and marks
 *   history.c     the conversation that its agent gets
 *   run_notes.c   texts that its agent stores for later runs; when everything is on the disk
 *   invoke.c      other agents of this server that its agent invokes
 *   list.c        pages of tasks
 *   server_life.c recovery, retention, drain
 *
 * and of a store that several servers share (store/share.h):
 *
 *   share.c       leases of tasks: acquire, release, loss; callbacks of the store
 *   follow.c      a task of another server in memory: its log grows by reading the store
 *   forward.c     calls to a task of another server as commands, and their answers
 */
#pragma once

#include "backend/backend.h"
#include "base/limits.h"
#include "base/table.h"
#include "core/core.h"
#include "model/fold.h"
#include "model/guard.h"
#include "model/stamp.h"
#include "store/share.h"

#include <stdatomic.h>

struct live;
struct run;
struct inflight;
struct call;
struct live_share;

/* Copies s to *at, which moves behind it. */
dgm_str dgm_core_copy_text(char **at, dgm_str s);

/* ---- the core ----------------------------------------------------------------------------------------------- */

#define N_RULES 12 /* of model/rules.h */

/* Tasks of other servers that are read here: follow.c. */
struct share_loop {
    struct live_share *followed;
    size_t n_followed;
    dgm_timer timer;
    uint64_t due_at; /* when it fires, in the time of the loop; 0: it does not run */
    dgm_loop_stop stop;
    bool is_open;                    /* the timer */
    size_t verify_slot, n_verifying; /* share_verify_some */
};

/* What one loop owns. */
struct shard {
    dgm_core *core;
    dgm_loop *loop;
    dgm_table lives;
    dgm_table inflights; /* messages that are not in the store yet */
    struct run *runs;
    dgm_run_invoked *invoked;     /* by its runs: invoke.c */
    size_t n_runs, n_writing;     /* executions; appends the store has not answered */
    dgm_buf scratch;              /* records are put together here */
    struct evp_md_ctx_st *sha256; /* for dgm_content_digest; NULL before the first one */
    dgm_buf batch;                /* records to be written, when they are in several segments */
    dgm_arena *spare;             /* for one event of a run; NULL while it is lent out */
    struct resumption *resuming;  /* runs of the process before; NULL: all have started */
    const dgm_append_note *note;  /* is stored with the next append; NULL: none */
    dgm_guard guard;              /* of that event: removes the server's metadata */
    int64_t now;                  /* its time */
    size_t sweep;                 /* the slot of lives that was looked at last */
    dgm_core_limits limits;
    bool is_draining, drained; /* it knows; it has reported that it is done: server_life.c */
    struct share_loop share;
};

struct retention;  /* server_life.c */
struct resumption; /* likewise */

struct dgm_core {
    dgm_core_options o;
    dgm_core_agent *first_agents; /* of dgm_core_new */
    /* Slots are only added. A slot's agent may be replaced by another one of the same id. */
    _Atomic(const dgm_core_agent *) *agents;
    _Atomic size_t n_agents;
    size_t n_shards;
    struct shard *shards;
    _Atomic bool draining; /* nothing new is taken */
    _Atomic bool stopping; /* the store is not asked any more */
    bool is_shared;        /* other servers use the store, too */
    _Atomic bool is_woken; /* the store reports that logs of other servers have grown */
    _Atomic uint64_t taken_over, forwarded, lost;
    _Atomic uint64_t followed,
        lag; /* of the tasks in the lists of follow.c; lag: see dgm_core_stats */
    _Atomic uint64_t sends, resends, runs, messages, tasks, records, warnings, live, running;
    _Atomic uint64_t broken[N_RULES];
    _Atomic int64_t retention_ms, keep_tasks_ms;
    struct retention *retention;
    /* share.c, on the loop of the recovery */
    struct recovery *recovering; /* it waits for the first search for tasks of dead servers */
    size_t n_settling;           /* of those that were found */
    bool is_searched;
    /* drain.c */
    dgm_loop_fn on_drained;
    void *drained_arg;
    uint64_t drain_ms;
    _Atomic size_t undrained;
    dgm_timer drain_timer;
    dgm_loop_stop drain_stop;
    bool drain_timer_open;
};

/* metadata.error of what the server's end left unfinished. */
#define DGM_SERVER_STOPPED "the server was stopped while the agent was working"

/* ---- calls ------------------------------------------------------------------------------------------------ */

enum call_kind {
    CALL_SEND,
    CALL_GET,
    CALL_SUBSCRIBE,
    CALL_TURN,
    CALL_CANCEL,
    CALL_SETTLE,
    CALL_GONE
};

/* The turn that a send starts, that CALL_TURN finds, or whose caller has disconnected. */
struct call_turn {
    dgm_str protocol, caller_id; /* the name of the turn at its caller */
    dgm_str context_id, request, previous;
    uint64_t first_seq, last_seq;
    uint32_t number;
};

/* Of CALL_SEND alone. */
struct call_send {
    dgm_arena *given;     /* holds the message and its metadata; NULL: a run owns it now */
    dgm_message *message; /* there; NULL: the run's alone */
    dgm_str message_id;
    dgm_str asked_context, asked_task; /* as the message named them; the others are filled in */
    const dgm_json *metadata;
    dgm_strs accepted_output_modes;
    uint64_t number;    /* for dgm_core_caller_left */
    uint64_t answer_ms; /* see dgm_send */
    struct deadline *deadline;
    struct run *run;            /* that decides how it is answered */
    struct inflight *inflight;  /* of which it is the first copy */
    struct inflight *waits_for; /* it is a copy of that message, which is not decided yet */
    struct live *queue;  /* it waits for this task's run to end, or is a copy of one that does */
    struct live *live;   /* while the store is asked about it */
    uint32_t epoch;      /* of live->rare->share, when the append was made */
    struct call *copies; /* of one that waits for a run to end */
    dgm_str content;     /* once it was needed: dgm_call_content */
    bool dedupes;        /* a message like it is searched for, and it is found by its id later */
    bool has_forward_id; /* message_id is not the message's: see forward.c */
    bool keep_turn;      /* see dgm_send */
    bool joins_run;      /* likewise */
    bool is_late;        /* answer_ms are over */
    bool has_left;       /* the caller */
    bool is_message, is_resend; /* see dgm_sent */
};

/* One request of a frontend, with its arguments and the answer when there is one. */
struct call {
    enum call_kind kind;
    bool is_looked_up; /* the store was asked: SEND: was it here before; GET: does the task rest */
    dgm_core *core;
    dgm_loop *home; /* where it came from and goes back to */
    dgm_arena *arena;
    struct call *next; /* in a list of a live task */
    dgm_owner owner;
    dgm_str task_id;
    const dgm_core_agent *agent; /* whose the task has to be; NULL: any agent's */
    struct shard *shard;         /* where it is handled, while it waits for the store */
    uint64_t cursor;             /* SUBSCRIBE: the caller's; all: records behind it are loaded */
    uint64_t wait_seq;           /* it is answered when this is published */
    /* the answer */
    dgm_code code;
    dgm_err *err; /* in its arena, if there is one */
    dgm_record *snapshot;
    dgm_log *log;
    uint64_t after;
    struct call_turn turn;
    struct forward *forward; /* it was sent to another server: forward.c */
    bool is_forwarded;       /* another server has sent it */
    union {
        dgm_on_sent sent;
        dgm_on_task task;
        dgm_on_subscribed subscribed;
        dgm_on_turn turn;
    } on;
    void *arg;
    union { /* last: a call has only the room that its kind needs */
        struct call_send send;
        uint64_t grace_ms; /* CALL_GONE */
    };
};

struct shard *dgm_core_shard_of(dgm_core *core, dgm_owner owner, dgm_str key);
const dgm_core_agent *dgm_core_find_agent(dgm_core *core, dgm_str id); /* NULL: unknown */
const dgm_core_agent *dgm_core_find_agent_or_default(dgm_core *core,
                                                     dgm_str id); /* empty: the default */
struct call *dgm_call_new(dgm_core *core, enum call_kind kind, dgm_owner owner); /* of this loop */
/* dgm_core_send of a message that another server sends. forward_id: see forward.c; may be empty. */
void dgm_core_send_forwarded(dgm_core *core, const dgm_send *send, dgm_str forward_id,
                             dgm_on_sent on_sent, void *arg);
void dgm_call_post_to_task(struct call *c); /* to the loop that owns it, by its task_id */
/* Ends a task without a run as failed, unless it has ended or waits for input. */
void dgm_core_settle(dgm_core *core, dgm_owner owner, dgm_str task_id, dgm_on_task on_task,
                     void *arg);
void dgm_call_answer(struct call *c); /* goes home; the call is gone for the caller */
void dgm_call_refuse(struct call *c, const dgm_err *err); /* its copies as well */
void dgm_call_refuse_with(struct call *c, dgm_code code, const char *msg);
void dgm_call_refuse_all(struct call **list, const dgm_err *err);

/* ---- live tasks ---------------------------------------------------------------------------------------------- */

#define LIVE_STATES(X) /* state, name, legal next states */                                        \
    X(LIVE_LOADING, "loading", 1u << LIVE_READY | 1u << LIVE_FREED)                                \
    X(LIVE_READY, "ready", 1u << LIVE_BROKEN | 1u << LIVE_FREED)                                   \
    X(LIVE_BROKEN, "broken", 1u << LIVE_FREED)                                                     \
    X(LIVE_FREED, "freed", 0)
#define X(state, name, may_become) state,
enum live_state { LIVE_STATES(X) N_LIVE_STATES };
#undef X

struct turn_at { /* where a turn begins */
    uint64_t first_seq;
    uint32_t turn;
    bool is_joined; /* its message was accepted by the run of the turn before, which goes on */
};

struct
    open_calls { /* that a task asks its caller to make, and ids of its messages, until they are written */
    dgm_arena *arena;
    dgm_strs ids;
};

struct live_turns {
    struct {
        uint32_t turn, caller_id_n, request_n, previous_n;
        uint64_t first_seq, last_seq;
        dgm_str protocol;         /* static, or behind the others in texts */
    } last;                       /* the one that runs, or the last */
    char *texts;                  /* caller_id, request, previous; NULL: all are empty */
    struct turn_at first, *items; /* items: &first, or allocated */
    uint32_t n, cap;
};

/* What few tasks need; made with the first of them. */
struct live_rare {
    struct call *loading;   /* waiting for records from the store, newest first */
    struct call *queued;    /* messages for after this run, in order */
    struct call *canceling; /* cancels that wait for the end */
    struct older_load *older_load;
    dgm_err *store_fault;     /* when it is broken */
    struct live_share *share; /* NULL: the store is not shared */
    uint32_t n_queued;
};

/* What the store has not got yet. It is written at the end of this turn of the loop. */
struct live_write {
    dgm_loop_turn flush;
    dgm_taken *message;            /* the message that started the turn, its id behind it */
    struct open_calls *open_calls; /* NULL: none */
    size_t bytes;                  /* of records that are not published */
    uint32_t n_records;            /* at the end of the log that are to be written */
    uint32_t n_appends;            /* the store has not answered */
    bool sync, turn, folded;       /* to the disk at once; with the turn; with the folded Task */
};

struct live {
    dgm_table_node node; /* first */
    struct shard *shard;
    uint32_t tenant_n, principal_n; /* see dgm_live_owner */
    dgm_str id, context_id;
    const dgm_core_agent *agent;
    dgm_log *log;
    dgm_fold *fold;
    int64_t created_ms, status_ms;
    uint64_t kept_first; /* the store's records start here, or later */
    struct live_turns turns;
    struct run *run;
    struct call *waiting; /* calls for a record to be published, in order */
    struct call **waiting_end;
    struct inflight *inflights; /* its messages that are not stored yet */
    struct live_write write;
    const struct live_rare *rare; /* to read; never NULL. dgm_live_rare() to write */
    enum live_state state : 8;
    dgm_task_state task_state : 8;
    uint32_t held;         /* by functions that go on with it */
    uint32_t n_lookups;    /* of messages, in the store */
    uint32_t context_room; /* of texts; a longer one has a block of its own */
    char texts[];          /* its owner, its id, its context */
};

static inline dgm_owner dgm_live_owner(const struct live *l)
{
    return (dgm_owner){{l->texts, l->tenant_n}, {l->texts + l->tenant_n, l->principal_n}};
}

static inline bool dgm_live_is_at_rest(const struct live *l)
{
    return dgm_state_is_terminal(l->task_state) || dgm_state_is_interrupted(l->task_state);
}

extern const dgm_machine dgm_live_machine, dgm_live_task_machine;
struct live_rare *dgm_live_rare(struct live *l);
void dgm_live_set_state(struct live *l, enum live_state to); /* the only writer of l->state */
/* The only writer of l->task_state. The fold applies only transitions of dgm_state_transitions (model/state.c). */
void dgm_live_set_task_state(struct live *l, dgm_task_state to);
struct live *dgm_live_find(struct shard *s, dgm_owner owner, dgm_str id);
/* Empty, in the table; with room for a context id. */
struct live *dgm_live_alloc(struct shard *s, dgm_owner owner, dgm_str id, size_t context_room);
/* Once: sets its context and makes its log and fold. Its agent is set. */
void dgm_live_open(struct live *l, dgm_str context_id, uint64_t first_seq);
void dgm_live_reset_fold(struct live *l); /* a new one, empty */
void dgm_live_free(struct live *l);
/* The store has failed, or no longer has the task: every call is refused, and nothing is written. */
void dgm_live_break(struct live *l, const dgm_err *err);
/* Finds it or starts loading it; the call comes back through dgm_live_handle when it is there. */
void dgm_live_load_and_handle(struct shard *s, struct call *c);
void dgm_live_handle(struct live *l, struct call *c); /* is ready: do it */
/* Of lists that were put together newest first: all of them, the oldest first. */
void dgm_live_handle_all(struct live *l, struct call **list);
/* From the store into the fold. */
dgm_code dgm_live_fold_record(struct live *l, const dgm_record *record, dgm_err *err);
dgm_code dgm_live_fold_row(struct live *l, const dgm_task_row *row, dgm_err *err);
/* The stored turns. */
void dgm_live_set_turns(struct live *l, const dgm_turn_row *turns, size_t n);
/* For a task without a run: if it is unfinished, resumes it or ends it as failed. */
dgm_code dgm_live_settle(struct live *l, dgm_err *err);

/* Has the log what a reader from seq on needs? true: the store is asked for it, and the call comes back
 * through dgm_live_handle. false: it is here, or nowhere. */
bool dgm_live_load_older(struct live *l, struct call *c, uint64_t seq);

/* One event at the end of its log. Faults leave it as it was. */
dgm_code dgm_live_append(struct live *l, const dgm_event *event, dgm_author author, dgm_err *err);
/* The same for an agent's chunk that continues a streamed text. False: use dgm_live_append(). True: it was appended, and
 * it breaks no rule. */
bool dgm_live_append_next_chunk(struct live *l, const dgm_event *event, int64_t now);
/* Ends the task with a status that the server sets, when no run is active or its events are ignored. */
dgm_code dgm_live_end_task(struct live *l, dgm_task_state state, const char *error, dgm_err *err);
/* Starts the next turn with this event. The records of the turn before are written first. */
dgm_code dgm_live_start_turn(struct live *l, struct call *c, const dgm_event *event, dgm_err *err);
/* Its last record begins a turn. */
void dgm_live_add_turn(struct live *l, const struct call *c);
/* Where the last turn begins: one more that is kept. */
void dgm_live_push_turn(struct live *l);
/* Copies the texts of its last turn. */
void dgm_live_set_turn_texts(struct live *l, const dgm_turn_row *turn);
const struct turn_at *dgm_live_find_turn(const struct live *l,
                                         uint32_t turn); /* NULL: it is not kept */
/* The turn is one of the run: its first one, or one whose message it has accepted. */
bool dgm_live_turn_runs(const struct live *l, uint32_t turn);
uint32_t
dgm_live_n_joined(const struct live *l); /* turns at the end that the last run has accepted */
/* The calls that a message asks for are written with it. NULL is fine. */
void dgm_live_add_open_calls(struct live *l, const dgm_message *m);
/* Of agents that have threads: as what dgm_store_find_call finds the task of an agent's message. */
void dgm_live_add_agent_message(struct live *l, const dgm_event *event);
dgm_str dgm_core_agent_message_key(dgm_arena *a, dgm_str context_id, dgm_str message_id);
void dgm_live_clear_names(struct live *l); /* the message id and the calls that are to be written */
/* Writes the records of a struct live to the store. Frees it if the store has failed and nothing needs it. */
void dgm_live_flush(void *arg);
void dgm_live_answer_when_published(struct live *l, struct call *c, uint64_t seq);
/* A cancel of a task that has ended, when its end is stored: the store may refuse it. */
void dgm_live_refuse_ended(struct live *l, struct call *c, const char *msg);
dgm_record *dgm_live_snapshot(struct live *l); /* a reference of the caller's */
void dgm_live_run_ended(struct live *l);
void dgm_live_free_if_idle(struct live *l); /* if nothing runs, waits or reads */
void dgm_live_drop(struct live *l);         /* the process ends */
void dgm_live_end_turn(struct live *l);     /* nothing runs: write the folded task */

/* ---- several servers ------------------------------------------------------------------------------------------ */

/* The current read of a task that this server does not own. */
enum live_reading { READ_NOTHING, READ_ROW, READ_RECORDS, READ_TURNS };

/* For a task in a shared store. Either this server owns the task (lease.holder), or it reads new records from the store. */
struct live_share {
    struct live *live;
    struct live_share *next,
        **prev;      /* in the list `followed` of its loop; prev NULL: not in the list */
    dgm_lease lease; /* as last read */
    dgm_lease
        row_lease; /* of the row; becomes `lease` when the records and turns of the row were read */
    uint64_t folded_to; /* ours: not used, the fold has all records */
    uint64_t row_last;  /* last_seq of the row that was read last */
    dgm_task_state row_state;
    struct call
        *waiting; /* wait for the next read of the row; these three lists have the newest first */
    struct call *served;        /* wait for the current read of the row */
    struct call *delayed;       /* are tried again when the timer fires */
    uint64_t poll_at, poll_ms;  /* time of the next read of the store, and the interval after it */
    uint64_t lag;               /* number of new records in the last read; 0 if it is in no list */
    uint64_t release_at;        /* a release has failed: time of the next attempt */
    uint64_t follow_at, row_at; /* next request for wake-ups; next read of the row */
    uint32_t epoch; /* appends of an older epoch were refused together with an earlier one */
    enum live_reading reading : 8;
    bool wants_row, wants_lease, wants_records; /* to be read next */
    bool is_row_read;                           /* the current read started with the row */
    bool was_woken;                             /* the store reported that the log has grown */
    bool is_releasing,
        is_continuing; /* the store has not answered the release; another turn follows the turn that is being written */
    bool fold_is_stale, turns_are_stale;
    bool releases_first; /* a failed append may still be stored: the fence must change first */
    bool
        is_unsure; /* the lease was lost or acquired, which is not certain: read the row. task_state may be wrong */
};

void dgm_share_open(struct live *l);
void dgm_share_done(struct live *l);
void dgm_share_own_new(struct live *l);
/* This server owns the task, but may have been declared dead since: the call is handled after a read of the store. */
bool dgm_share_is_doubtful(const struct live *l);
void dgm_share_verify(struct live *l, struct call *c);
static inline bool dgm_live_is_ours(const struct live *l)
{
    return !l->rare->share || l->rare->share->lease.holder == DGM_LEASE_OURS;
}
/* True: continue. False: the call is handled again when this server has the lease, or another server answers it. */
bool dgm_share_may_write(struct live *l, struct call *c);
/* True: the next append releases the lease. From then on this server does not own the task. */
bool dgm_share_releases(struct live *l);
void dgm_share_release(struct live *l); /* releases the lease without an append */
/* Called when the task is idle. True: it must stay in memory, or the lease is being released. */
bool dgm_share_is_busy(struct live *l);
/* An append was refused, or answered. True: the answer was handled completely. */
bool dgm_share_is_refused(struct live *l, uint32_t epoch, dgm_code code, const dgm_err *err);
/* The task was loaded, or its lease was acquired: continues where the previous owner stopped. */
void dgm_share_settle(struct live *l);
dgm_fence
dgm_share_fence(const struct live *l); /* for the writes of its run; all zero: not checked */
void dgm_share_start(dgm_core *core);
void dgm_share_set_agents(dgm_core *core); /* the agents have changed, or the server drains */
void dgm_recovery_finish(struct recovery *r);

/* The call is handled after the next read of the store. */
void dgm_follow_then_handle(struct live *l, struct call *c);
void dgm_follow_read(struct live *l); /* starts the next requested read, unless a read is active */
/* From now on its readers get the records that other servers store. */
void dgm_follow_start(struct live *l);
void dgm_follow_delay(struct live *l, struct call *c); /* it is tried again soon */
void dgm_follow_release(struct live_share *x);         /* removes it from the list */
/* Folds the records of the log, up to seq at most. */
dgm_code dgm_follow_fold(struct live *l, uint64_t seq, dgm_err *err);
void dgm_follow_refuse_all(struct live *l, const dgm_err *err);

/* Sends the call to the server that owns the task. */
void dgm_forward(struct live *l, struct call *c);
/* The other server may have handled the call. True: it was answered by this function. */
bool dgm_forward_finish(struct live *l, struct call *c);
void dgm_forward_disconnected(struct shard *s, struct call *c); /* the task is not in memory */
void dgm_forward_handle(dgm_core *core, const dgm_command *command);

/* ---- runs and sending ---------------------------------------------------------------------------------------- */

#define RUN_STATES(X) /* state, name, legal next states */                                         \
    X(RUN_UNDECIDED, "undecided",                                                                  \
      1u << RUN_ABANDONED | 1u << RUN_EARLY_TASK | 1u << RUN_TASK | RUN_OVER)                      \
    X(RUN_ABANDONED, "abandoned", 1u << RUN_EARLY_TASK | 1u << RUN_ANSWERED)                       \
    X(RUN_EARLY_TASK, "early-task", 1u << RUN_TASK | 1u << RUN_ENDED)                              \
    X(RUN_TASK, "task", 1u << RUN_ENDED)                                                           \
    X(RUN_ANSWERED, "answered", 1u << RUN_ENDED)                                                   \
    X(RUN_ENDED, "ended", 0)
#define X(state, name, may_become) state,
enum run_state { RUN_STATES(X) N_RUN_STATES };
#undef X
#define RUN_OVER (1u << RUN_ANSWERED | 1u << RUN_ENDED)
extern const dgm_machine dgm_core_run_machine;

struct run {
    dgm_run base; /* first: agents hold a pointer to it */
    struct run *next, **prev;
    struct shard *shard;
    const dgm_core_agent *agent;
    struct live *live;   /* NULL while undecided, and for a Message answer */
    struct call *caller; /* the send: answered when the turn has its first record; then NULL */
    dgm_run_input input;
    dgm_message *
        message; /* of the input; NULL: not needed any more. The input may have a copy, without a transcript */
    dgm_record *task_before;     /* what input.task was decoded from */
    dgm_arena *given;            /* of the message and what came with it */
    dgm_arena *past;             /* of input.history; NULL: it is empty */
    struct run_history *reading; /* the agent is started when it was read: history.c */
    dgm_arena *scratch;          /* of the event it emits; NULL in between */
    unsigned warned;             /* rules it broke that were reported, a bit each */
    enum run_state state : 8;
    bool is_queued;      /* it was resumed, and waits until it may start: dgm_resume_run */
    bool is_started;     /* start() was called */
    bool is_starting;    /* start() has not returned: if the run ends, it is finished then */
    bool is_late;        /* its caller waits no longer for its first event */
    bool has_read;       /* the agent has read its input */
    bool is_detached;    /* dgm_core_run_detach: its events are ignored */
    bool has_no_note[2]; /* by scope: its task or context is new, and nothing was stored for it */
    const char *error;
    const dgm_json
        *routing; /* keys of the request that messages of the agent get, too; may be NULL */
    struct run_note *notes; /* requests that the store has not answered: run_notes.c */
};

/* A message without a task: to the task of its context that waits for it, if the agent has threads; else to a new task. */
void dgm_core_adopt_or_start(struct shard *s, struct call *c);
/* live NULL: for a task that is not there yet. before: the Task before this turn, a reference that is
 * taken over; may be NULL. */
void dgm_core_run_start(struct shard *s, struct call *c, struct live *live, dgm_record *before);
/* The process before this one ended in the middle of the task's last turn: its run starts again. False: the message of
 * the turn is unknown. */
bool dgm_core_run_resume(struct live *l);
/* Starts a resumed run soon: DGM_RESUME_RUNS of a loop at once, the others later. */
void dgm_resume_run(struct run *r);
void dgm_resume_now(struct run *r); /* one that is queued */
/* Starts its agent, now that its input is complete. */
void dgm_core_run_begin(struct run *r);
/* True: its input has the history, if it gets one. False: dgm_core_run_begin is called when it was read. */
bool dgm_core_history_is_ready(struct run *r, bool is_new_context);
void dgm_core_history_forget(struct run *r); /* it has ended */
void dgm_core_run_cancel(struct run *r);
/* The caller waits no longer: the answer is a task, whatever the agent will emit. Fine when it is decided. */
void dgm_core_run_make_task(struct run *r);
/* All callers that waited for its first event have left. Fine when it is decided. */
void dgm_core_run_abandon(struct run *r);
/* This server no longer owns the task of the run: it writes nothing from here on. suspends: another server continues the run. */
void dgm_core_run_detach(struct run *r, bool suspends);
void dgm_core_run_drop(struct run *r); /* the process ends: its agent will not hear of it */
void dgm_core_run_abort(
    struct run *r); /* the server ends: its task fails, its agent is asked to stop */

/* Metadata that routes a request, of agents that have threads (dgm_backend.has_threads). */
bool dgm_core_run_is_routing(dgm_str key);
/* The members of both that do; NULL: no such member. In the arena. */
const dgm_json *dgm_core_run_find_routing(dgm_arena *a, const dgm_json *first,
                                          const dgm_json *second);
/* The metadata with these members. */
const dgm_json *dgm_core_run_routed(dgm_arena *a, const dgm_json *routing,
                                    const dgm_json *metadata);

/* Members of dgm_run_ops. */
void dgm_core_run_remember(dgm_run *base, dgm_run_scope scope, dgm_str text,
                           void (*stored)(void *arg, dgm_code code), void *arg);
void dgm_core_run_recall(dgm_run *base, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                         void *arg);
void dgm_core_run_commit(dgm_run *base, void (*done)(void *arg, dgm_code code), void *arg);
uint64_t dgm_core_run_review(dgm_run *base, uint64_t after, const dgm_task **ret_task,
                             void (*on_event)(void *arg, const dgm_event *event), void *arg);
/* An append of its task was answered, or (code) will not be. */
void dgm_core_run_written(struct run *r, dgm_code code);
void dgm_core_run_forget_notes(struct run *r); /* it has ended: no callback comes any more */

dgm_code dgm_core_run_invoke(dgm_run *base, const dgm_run_invocation *what,
                             const dgm_run_invoked_handler *handler, dgm_run_invoked **ret_invoked,
                             dgm_err *err);
void dgm_core_run_cancel_invoked(dgm_run_invoked *invoked);
/* The agents that it has invoked: */
void dgm_core_invoked_cancel_all(struct run *r);
void dgm_core_cancel_waiting_children(const struct live *l);
void dgm_core_invoked_forget(struct run *r); /* it has ended: no callback comes any more */
void dgm_core_invoked_free_all(struct shard *s);

dgm_event dgm_core_run_fill(struct run *r, const dgm_event *e); /* in r->scratch */
void dgm_core_run_lint(struct run *r, const dgm_event *e);      /* as the agent made it */
void dgm_core_run_warn(struct run *r, const char *rule, const dgm_err *what);

/* What the server writes on a message that comes in: who sent it, where that is known, and its canonical type. */
void dgm_send_mark_message(dgm_arena *a, dgm_owner owner, dgm_message *m);

/* True: it has as many readers as it may have, and the call was refused. */
bool dgm_live_has_max_readers(struct live *l, struct call *c);
void dgm_live_handle_turn(struct live *l, struct call *c);
void dgm_send_to_task(struct live *l, struct call *c);
/* Its run has started: messages that came before are offered to it. */
void dgm_send_offer_queued(struct live *l);
dgm_str dgm_call_content(struct call *c); /* see dgm_content_digest */

/* Answers one that waits for a task at work: the message stays in the queue. */
void dgm_send_answer_early(struct live *l, struct call *c);

void dgm_deadline_start(struct shard *s,
                        struct call *c); /* if it has one; on the loop that owns it */
void dgm_deadline_stop(struct call *c);  /* no effect without one */

/* Stores a Message answer, then answers the call. */
void dgm_message_turn_store(struct shard *s, struct call *c, const dgm_record *message);
/* A turn of that protocol and caller_id that has no task; answers the call. */
void dgm_message_turn_find(struct call *c);

/* A message without a task: started, unless it was here before. */
void dgm_resend_or_start(struct shard *s, struct call *c);
/* One to a task: true when it was here before, or may have been: then it is taken care of. */
bool dgm_resend_attach(struct live *l, struct call *c);
void dgm_resend_answer(struct live *l, struct call *c); /* the turn it began */
/* The first copy has its turn, or (live NULL) a Message or an error: tell those that wait. */
void dgm_resend_decided(struct shard *s, struct call *first, struct live *live);
/* Copies of this one that wait until it is decided; NULL: none. By next. */
/* It is the answer to the question of this task: goes there, with its copies. */
void dgm_resend_to_waiting_task(struct shard *s, struct call *first, dgm_str task_id);
/* Its id is that of another message, in this task. */
void dgm_resend_refuse(struct shard *s, struct call *first, dgm_str task_id);
struct call *dgm_resend_copies_of(const struct call *first);
/* The send of that number, and the call that decides about it (itself, or the one it is a copy of); NULL: no message
 * on its way has it. */
struct call *dgm_resend_find(struct shard *s, uint64_t number, struct call **ret_first);
struct call *dgm_resend_first_of(const struct inflight *f); /* NULL: it is decided */
/* Another server has stored the same message first: the call gets that turn. context: that it was looked for in. */
void dgm_resend_find_first(struct call *c, dgm_str context_id);
/* Clears the answer that was prepared. */
void dgm_call_reset(struct call *c);
/* Of the messages whose turns begin up to there: copies of what is published find it in the store. */
void dgm_resend_drop(struct live *l, uint64_t up_to);
void dgm_resend_drop_all(struct shard *s);

/* ---- life of the server -------------------------------------------------------------------------------------- */

void dgm_drain_check(struct shard *s); /* has all ended? Only of a shard that is draining */
void dgm_retention_start(dgm_core *core);
void dgm_retention_free(dgm_core *core);
