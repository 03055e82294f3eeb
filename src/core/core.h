/*
 * core/core.h - tasks, turns and runs: what frontends ask for, whoever the agent and the store are.
 *
 * A task is owned by one loop, found by hashing its id; every call is carried there and answered, by a
 * callback, on the loop it came from. Records and logs have reference counts: a caller that retains one
 * takes a reference of its own. Everything else is valid until the callback returns.
 *
 * What is not yours does not exist: an unknown task, somebody else's and another agent's give the same
 * error, DGM_TASK_NOT_FOUND. Where an agent is asked for, "" is the default one.
 */
#pragma once

#include "core/log.h"
#include "model/conversation.h"
#include "model/owner.h"

typedef struct dgm_core dgm_core;
typedef struct dgm_store dgm_store;         /* store/store.h */
typedef struct dgm_backend dgm_backend;     /* backend/backend.h */
typedef struct dgm_run_fault dgm_run_fault; /* backend/backend.h */

typedef struct dgm_core_agent {
    dgm_str id;
    const dgm_backend *backend;
    void *agent;
    bool foreign; /* third-party: faults are warnings */
    bool dedupe;  /* a resent message finds its first turn */
    bool keep_transitory;
    dgm_history_limits history; /* of the conversation that it gets; 0 messages: none is read */
} dgm_core_agent;

/* Of one task. */
typedef struct dgm_core_limits {
    size_t log_bytes,
        log_records;        /* over them it fails, with a reason that starts with `log_limit` */
    size_t queued_messages; /* while it works; one more is DGM_UNSUPPORTED_OPERATION */
    size_t subscribers;     /* one more is DGM_RATE_LIMITED */
} dgm_core_limits;

typedef struct dgm_core_options {
    dgm_loops *loops;
    dgm_store *store;
    const dgm_core_agent *agents; /* the first is the default; copied, their strings borrowed */
    size_t n_agents;
    const dgm_core_limits *limits; /* copied; NULL: the DGM_MAX_ of base/limits.h */
    /* Finished turns go from the store when they are this old; 0: never. See dgm_core_keep_for. */
    int64_t retention_ms;
    int64_t keep_tasks_ms; /* so do whole tasks that ended so long ago */
    /* All may be NULL, and are called from any loop. */
    /* What an agent should not have done, once per rule and run: rules have names, see dgm_core_rule. */
    void (*on_warning)(void *user, dgm_str task_id, const char *rule, const dgm_err *what);
    /* A line for the operator's log from an agent; task_id is what its task is or would be called. */
    void (*on_note)(void *user, dgm_str agent, dgm_str task_id, dgm_str line);
    /* An agent failed. */
    void (*on_fault)(void *user, dgm_str agent, dgm_str task_id, const dgm_run_fault *fault);
    /* The store could not trim; it is tried again. */
    void (*on_trim_failed)(void *user, const dgm_err *why);
    void *user;
} dgm_core_options;

/* Adds an agent, or replaces the one of the same id for runs that start from now on. A run keeps the agent that it
 * started with. The agent is borrowed until dgm_core_free. From any thread, one call at a time. */
dgm_code dgm_core_set_agent(dgm_core *core, const dgm_core_agent *agent, dgm_err *err);

dgm_code dgm_core_new(const dgm_core_options *o, dgm_core **ret_core, dgm_err *err);
/*
 * The server ends, first step; from any thread, once. New messages and subscriptions are refused
 * (DGM_UNAVAILABLE); everything else is answered as always. Readers of tasks that rest are over at once,
 * and their cursors are good at the next start. What runs may go on for ms and ends as it ends; what is
 * left then becomes failed, with metadata.error, and its agent is asked to stop: so every stream has an
 * end and no task is left in the middle. on_drained: on the first loop, when all of that is stored.
 */
void dgm_core_drain(dgm_core *core, uint64_t ms, dgm_loop_fn on_drained, void *arg);
/* From now on calls are refused and the store is left alone: before the store is closed. */
void dgm_core_stop(dgm_core *core);
/* After the loops have stopped. Tasks that ran are settled at the next start (dgm_core_recover). */
void dgm_core_free(dgm_core *core); /* NULL is fine */

/* Another retention, other limits: for what comes after. From any thread. */
void dgm_core_keep_for(dgm_core *core, int64_t retention_ms, int64_t keep_tasks_ms);
void dgm_core_set_limits(dgm_core *core, const dgm_core_limits *limits);

/* Settles what a crash left unfinished: failed, with metadata.error. Before the first call; on a loop. */
void dgm_core_recover(dgm_core *core, dgm_store_done done, void *arg);

/* ---- sending ----------------------------------------------------------------------------------------------- */

typedef struct dgm_send {
    dgm_owner owner;
    dgm_str agent;              /* id; empty: the default */
    const dgm_message *message; /* taskId and contextId decide where it goes */
    const dgm_json *metadata;   /* of the request */
    dgm_strs
        may_set; /* prefixes of the server's metadata that this caller may set (model/guard.h) */
    /* A frontend has made message and metadata, and removed what its client must not set: they stay as they are.
     * Else the server's metadata is removed here. */
    bool is_ours;
    dgm_strs accepted_output_modes;
    dgm_str protocol;  /* "a2a", ... */
    dgm_str caller_id; /* the caller's name for the turn; may be empty: see dgm_core_find_turn */
    dgm_str request;   /* JSON that whoever finds the turn gets back; may be empty */
    dgm_str previous;  /* caller_id of the turn before, for chains; may be empty */
    size_t bytes;      /* of the request it came in, which bounds the message; 0: not known */
    /* Answered at the latest after this time, even if the agent is silent: what has no task by then becomes one.
     * A message that waits for a task at work is answered with the task as it is. 0: whenever there is an answer. */
    uint64_t answer_ms;
    /* A Message answer is stored under caller_id, without a task, for dgm_core_find_turn. */
    bool keep_turn;
    /* Only for the run that works on the task now: if it does not accept the message (dgm_backend.message), the message
     * is refused, with DGM_UNSUPPORTED_OPERATION, and does not wait. */
    bool joins_run;
    bool
        dedupes; /* a message id that was seen is that turn again, whatever the setting of the agent */
    bool
        always_new; /* the same message id may come twice, and be two turns; it is not remembered */
} dgm_send;

typedef struct dgm_sent {
    dgm_log *log;
    uint64_t after;       /* read on behind this: with a snapshot, behind what is in it */
    dgm_record *snapshot; /* a `task` record that comes first; NULL: the log begins with one */
    dgm_str task_id, context_id;
    uint64_t first_seq; /* of the turn; 0: of a resend that has not the turn itself */
    uint32_t turn;
    bool
        is_message; /* the answer is a Message: the log holds that one record, there is no task_id */
    bool is_resend; /* this message was taken before: here is its turn */
} dgm_sent;

/*
 * A new task's log is given from its first record. A message to a task gives the task, with that message
 * in its history, and what follows. If the task works, its run may accept the message: then the turn has no run of its
 * own, and ends with that run. Else the message waits until the run has ended.
 * A resend gives the turn it began: of a task's first turn everything from its first record, while the
 * store keeps it; of a later one, or if it is gone, the task as it is, and what follows if that turn still
 * runs. A turn that is over has a log that is over, too: whoever waits for the end has it.
 */
/* Answered when the turn's first record can be read: by then it is stored. */
typedef void (*dgm_on_sent)(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg);
uint64_t dgm_core_send(dgm_core *core, const dgm_send *send, dgm_on_sent on_sent, void *arg);
/*
 * The caller of the send that returned this number has disconnected. A run that has no task yet is canceled and
 * leaves nothing behind, since no client could find it, read it or stop it; on_sent reports DGM_UNAVAILABLE then. A
 * run that has a task goes on. on_sent is called in any case.
 */
void dgm_core_caller_left(dgm_core *core, uint64_t sent);

/* ---- looking ----------------------------------------------------------------------------------------------- */

/* dgm_backend.describe of this agent; absent: it has none. From any thread. */
dgm_str dgm_core_describe_agent(dgm_core *core, dgm_str id, dgm_arena *a);

/* The task as it is: a `task` record whose seq is that of the last record folded in. */
typedef void (*dgm_on_task)(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg);
void dgm_core_get(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                  dgm_on_task on_task, void *arg);

/* A page of an owner's tasks at one agent, as dgm_store_list finds them, each as dgm_core_get has it. A
 * task that went between the two is left out; `total` is then one too many. */
typedef struct dgm_listed {
    dgm_record **tasks; /* `task` records */
    const dgm_str *ids; /* of the tasks */
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

/* The same for whoever reads the log itself: at whichever agent, behind `cursor` (0: all that is kept), also of a task that
 * has ended. */
void dgm_core_read_log(dgm_core *core, dgm_owner owner, dgm_str task_id, uint64_t cursor,
                       dgm_on_subscribed on_subscribed, void *arg);

/* A turn of a task. Texts are valid until the callback returns. */
typedef struct dgm_task_turn {
    uint32_t turn;
    uint64_t first_seq, last_seq; /* last 0: it runs. last < first: its records were trimmed */
    dgm_str protocol, caller_id, request; /* see dgm_send */
} dgm_task_turn;

/* A task with its log and its turns, for readers that show them: as dgm_core_read_log has it, for the cursor 0. */
typedef struct dgm_task_log {
    dgm_log *log;
    uint64_t after;
    dgm_record *snapshot; /* NULL: the log is there from its first record on */
    dgm_str agent, context_id;
    dgm_task_state state;
    const dgm_task_turn *turns; /* in order */
    size_t n_turns;
} dgm_task_log;
typedef void (*dgm_on_task_log)(dgm_code code, const dgm_task_log *task, const dgm_err *err,
                                void *arg);
void dgm_core_read_task(dgm_core *core, dgm_owner owner, dgm_str task_id,
                        dgm_on_task_log on_task_log, void *arg);

/* Tasks in memory, of all owners, for operators: at most `max`. Texts are valid until the callback returns. */
typedef struct dgm_live_task {
    dgm_owner owner;
    dgm_str id, context_id, agent;
    dgm_task_state state;
    bool runs; /* its agent works */
    int64_t created_ms, status_ms;
} dgm_live_task;
typedef void (*dgm_on_live_tasks)(const dgm_live_task *tasks, size_t n, bool more, void *arg);
void dgm_core_list_live(dgm_core *core, size_t max, dgm_on_live_tasks on_tasks, void *arg);

/* ---- turns, by their callers' names ---------------------------------------------------------------------- */

typedef struct dgm_found_turn {
    dgm_log *log;                 /* holds the turn, from first_seq on */
    uint64_t first_seq, last_seq; /* last 0: it runs */
    uint32_t turn;
    dgm_str agent, task_id, context_id, request, previous; /* of a Message answer: no task_id */
} dgm_found_turn;

/*
 * The turn that a send of this protocol and caller_id began: the newest, if there were several. agent.p NULL:
 * at whichever agent. DGM_TASK_NOT_FOUND: it is unknown, or its records were trimmed.
 * Read it with a reader behind first_seq - 1.
 */
typedef void (*dgm_on_turn)(dgm_code code, const dgm_found_turn *turn, const dgm_err *err,
                            void *arg);
void dgm_core_find_turn(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str protocol,
                        dgm_str caller_id, dgm_on_turn on_turn, void *arg);

/* The task that asked its caller for the call of this id (data.tool_calls of a message of input-required),
 * the newest if there are several, as dgm_core_get has it; it may have gone on since. agent.p NULL: any's. */
void dgm_core_find_call(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str call_id,
                        dgm_on_task on_task, void *arg);

/* ---- notes: texts that callers store without a task -------------------------------------------------------- */

/* See dgm_store_put_note. text absent: it is unknown. */
typedef void (*dgm_on_note_found)(dgm_code code, dgm_str text, const dgm_err *err, void *arg);
void dgm_core_put_note(dgm_core *core, const dgm_note *note, dgm_store_done done, void *arg);
void dgm_core_get_note(dgm_core *core, dgm_owner owner, dgm_str kind, dgm_str name,
                       dgm_on_note_found found, void *arg);

/* Asks the agent to stop and answers when it has, or after DGM_CANCEL_WAIT_MS with what there is. A task
 * that has ended: DGM_TASK_NOT_CANCELABLE, but canceled again is canceled. */
void dgm_core_cancel(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                     dgm_on_task on_task, void *arg);

/*
 * The connection that began this turn is gone, and it is not to go on without readers (on_disconnect:
 * cancel): if it has no reader then or within grace_ms, its run is canceled. For frontends; there
 * is no answer.
 */
void dgm_core_disconnected(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                           uint32_t turn, uint64_t grace_ms);

/* ---- watching ---------------------------------------------------------------------------------------------- */

typedef struct dgm_core_stats {
    uint64_t sends, resends, runs, messages, tasks, records, warnings;
    uint64_t live;    /* tasks in memory */
    uint64_t running; /* executions of agents */
    /* Only with a store that several servers share: */
    uint64_t taken_over; /* tasks of servers that are dead or have released them */
    uint64_t lost;       /* tasks of this server that another server has acquired */
    uint64_t forwarded;  /* calls that were sent to the owner of a task */
    uint64_t followed;   /* tasks whose logs are read from the store for readers here */
    uint64_t lag;        /* records that the last read of each of these logs has found */
} dgm_core_stats;
dgm_core_stats dgm_core_stats_of(dgm_core *core);

/* What agents are watched for: the name of a rule, a sentence, how often it was broken (once per run).
 * False: there is no rule of that number. */
bool dgm_core_rule(dgm_core *core, size_t i, const char **ret_name, const char **ret_about,
                   uint64_t *ret_broken);
