/*
 * backend/backend.h - who does the work: the contract between a run and an agent type.
 *
 * A run is one execution of an agent for one turn. It belongs to the loop that owns its task; the
 * agent is started there, emits there, and ends there. Agents emit A2A events; ids, times, sequence
 * numbers and what may be seen by whom are not their business.
 *
 *   core ── start(run) ──► agent ── run->ops->emit(run, event) ... ── run->ops->end(run) ──► core
 *   core ── cancel(run) ─► agent: stop soon, then end as always
 *
 * Every run is ended by its agent, exactly once, also after a Message and after a terminal status.
 * An agent may emit and end from inside start and cancel: quick ones do.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "model/checkpoint.h"
#include "model/names.h"
#include "model/owner.h"
#include "net/address.h"
#include "net/loop.h"
#include "json/json.h"

#include <dragoman/model.h>

typedef struct dgm_run dgm_run;

/* What the agent may know. Lives as long as the run, unless it says that it has read it (dgm_run_has_read). */
typedef struct dgm_run_input {
    const dgm_message *message; /* the caller's, ids filled in */
    const dgm_task *task;       /* before this turn; NULL in the first turn of a task */
    const dgm_json *metadata;   /* of the request; may be NULL */
    dgm_strs accepted_output_modes;
    dgm_str task_id, context_id; /* what the task is or would be called */
    /* Agent and caller: the id of the agent, and the caller as its token names it (both empty: the server has
     * no tokens). A contextId is chosen by callers: it is unique only together with these three. */
    dgm_str agent, tenant, principal;
    /* The conversation of the context before this message, oldest first: complete messages, never chunks, as many as the
     * agent's setting `history` allows. */
    dgm_messages history;
    /* The process before this one had started this run, with this message; how far the agent came is known only by what
     * it has stored with `remember`. `task` then contains what the run had emitted. Only agents with can_resume. */
    bool is_resumed;
    /* Of a resumed run: the messages that it had accepted while it worked (dgm_backend.message), oldest first. `task`
     * has them in its history, too. The agent compares messageIds with what it has stored: the others are new to it. */
    dgm_messages accepted;
    /* Only with a store that several servers share: a number that grows when another server continues the task. Tools and
     * programs get it with the ids of calls: a call with a smaller number comes from a server that has lost the task. 0: the
     * store is not shared. */
    uint64_t fence;
} dgm_run_input;

/* How a run went wrong, for the operator. */
typedef struct dgm_run_fault {
    dgm_str what;   /* one sentence; callers may have read it, too */
    dgm_str detail; /* not for callers; may be empty */
    dgm_str output; /* the end of what the agent wrote to stderr; may be empty */
} dgm_run_fault;

/* What a stored text belongs to: this task, or all tasks of this agent in this context (of this owner). */
typedef enum dgm_run_scope { DGM_RUN_TASK, DGM_RUN_CONTEXT } dgm_run_scope;

/* A message to another agent of this server. Copied. */
typedef struct dgm_run_invocation {
    dgm_str agent; /* its id */
    /* Role user. messageId: must be set, and identifies the invocation. The same message again, also after a restart,
     * follows the task that it created, from its first record. taskId: of a task that this agent was invoked with before
     * and that waits for input; absent: a new task. contextId: absent: that of the run, or, if the agent invokes
     * itself, the id of the run's task. */
    const dgm_message *message;
    const dgm_json *metadata; /* of the request; may be NULL */
} dgm_run_invocation;

typedef struct dgm_run_invoked dgm_run_invoked;

/* Both are called later, on the loop of the run, and not after the run has ended. */
typedef struct dgm_run_invoked_handler {
    /* Every record of the invoked task in order: first its `task`, or one `message` if the agent answers without a
     * task. The event is valid until the callback returns. */
    void (*on_event)(void *arg, const dgm_event *event);
    /* Once, last: its turn is over. state: terminal, or input-required or auth-required (answer with a message that has
     * the taskId); completed after a Message. error: NULL unless there is no task; then state is unknown. */
    void (*on_end)(void *arg, dgm_task_state state, const dgm_err *error);
    void *arg;
} dgm_run_invoked_handler;

/* What the core does for it. */
typedef struct dgm_run_ops {
    /*
     * Appends an event. taskId, contextId, messageIds that are missing, and timestamps are filled in;
     * what the agent set for taskId and contextId is overwritten. The event may live on the stack.
     * The first event decides: a message ends the run as a Message answer; anything else makes it a
     * Task (a `task` event is made by the core when the agent does not begin with one).
     * Faults of the agent's are returned (INVALID_AGENT_RESPONSE) and, after a terminal state,
     * ignored; a log over its limit ends the task as failed.
     */
    dgm_code (*emit)(dgm_run *run, const dgm_event *event, dgm_err *err);
    /* No more events. A task that is in no terminal or interrupted state then is settled: completed
     * if error is NULL, failed with metadata.error = error otherwise. The run is gone after this. */
    void (*end)(dgm_run *run, const char *error);
    /* How full the log's queue to the store is: agents that can, wait while it is true. */
    bool (*is_full)(const dgm_run *run);
    /* A line for the operator's log, never for callers: what a program wrote to stderr, what exactly
     * was wrong with its output. May be NULL: it is not reported. */
    void (*note)(dgm_run *run, dgm_str line);
    /* Instead of end, while nothing was emitted: the caller gets this error, and there is no task. For
     * agents that answer with Messages only. May be NULL: then end it is, and a failed task. */
    void (*refuse)(dgm_run *run, const dgm_err *error);
    /* See dgm_run_has_read. May be NULL. */
    void (*has_read)(dgm_run *run);
    /* The agent failed: a warning in the operator's log, with the task's id. Before end. May be NULL. */
    void (*fault)(dgm_run *run, const dgm_run_fault *fault);
    /* Stores a text for later runs, durably, in place of the one before; stored() comes later, on the loop, and may be NULL.
     * The text is stored after all events that were emitted before this call; events that the store did not have yet are
     * in one commit with it. No client sees an event that is
     * emitted after this call before the text is stored. At most DGM_MAX_RUN_NOTE_BYTES: a longer one is not stored, and
     * stored() reports DGM_TOO_LARGE. The member may be NULL: then nothing is stored. */
    void (*remember)(dgm_run *run, dgm_run_scope scope, dgm_str text,
                     void (*stored)(void *arg, dgm_code code), void *arg);
    /* Finds the stored text and passes it to found(), later, on the loop, once; the text is absent if nothing is stored.
     * Neither callback comes after the run has ended. The member may be NULL: then there is no stored text. */
    void (*recall)(dgm_run *run, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                   void *arg);
    /* For an agent whose program was lost in the middle of a run: returns the number of the last record of the task's log (0: it
     * has no log). ret_task: the task with everything that was emitted, or NULL; valid until the next event. on_event is called
     * from inside for each record behind `after`, in order, with the records of the server and of callers; it may be NULL. The log
     * starts, at the latest, with the run. The member may be NULL: then the agent type cannot read the log. */
    uint64_t (*review)(dgm_run *run, uint64_t after, const dgm_task **ret_task,
                       void (*on_event)(void *arg, const dgm_event *event), void *arg);
    /* Calls done() later, on the loop, when everything that was emitted and remembered before this call is on the disk:
     * survives the loss of power. code: not DGM_OK if the store has failed. Not after the run has ended. The member may
     * be NULL: then nothing is stored. */
    void (*commit)(dgm_run *run, void (*done)(void *arg, dgm_code code), void *arg);
    /* Sends a message to another agent of this server, as the same owner, as a task of its own. The message names this
     * run's task in its metadata (DGM_META_PARENT_TASK). If this run is canceled, the invoked task is canceled; if it
     * ends, the invoked task goes on. Refused: an unknown agent; a canceled run; more than DGM_MAX_INVOKE_DEPTH tasks, one invoked by the
     * other; more than DGM_MAX_INVOKED at a time. May be NULL: there are no other agents. */
    dgm_code (*invoke)(dgm_run *run, const dgm_run_invocation *what,
                       const dgm_run_invoked_handler *handler, dgm_run_invoked **ret_invoked,
                       dgm_err *err);
    /* Asks the invoked agent to stop; on_end comes as always. Not after on_end. */
    void (*cancel_invoked)(dgm_run_invoked *invoked);
} dgm_run_ops;

/* The head of every run; the core's has more behind it, a test's its own. */
struct dgm_run {
    const dgm_run_ops *ops;
    const dgm_run_input *input;
    dgm_loop *loop;
    dgm_arena *arena; /* for the agent's own use, freed with the run */
    void *agent_data; /* the agent's own */
    bool canceled;    /* set before cancel() is called */
    /* Set with canceled: the server ends, and the next process goes on with this run (only agents with can_resume). The
     * agent stops here and ends the run; it leaves the work itself alone. What it emits is ignored. */
    bool suspended;
};

/* How an agent answers, common to all types (config: reply, final_text, answer_source,
 * working_message). */
typedef enum dgm_reply { DGM_REPLY_AUTO, DGM_REPLY_MESSAGE, DGM_REPLY_TASK } dgm_reply;

/* An agent of this server, as others see it. */
typedef struct dgm_agent_peer {
    dgm_str id, name, description; /* name and description: of its card; may be empty */
} dgm_agent_peer;

/* An MCP server of the configuration. */
typedef struct dgm_agent_mcp {
    dgm_str name;
    struct dgm_mcp *server; /* mcp/mcp.h; NULL: the configuration is only checked */
} dgm_agent_mcp;

/*
 * The checkpoints of one agent, in the server's store. A call is made on a loop, copies what it is passed (bytes are
 * referenced) and answers once with a callback on that loop, later, also if the caller is no longer interested. A read
 * sees the changes of the same thread that were called before it. A change is on the disk when its callback comes with
 * DGM_OK. Values and names above their limits (base/limits.h) are refused with DGM_TOO_LARGE.
 */
typedef struct dgm_agent_checkpoints {
    void (*read)(const struct dgm_agent_checkpoints *c, const dgm_checkpoint_query *query,
                 dgm_checkpoints_got got, void *arg);
    void (*change)(const struct dgm_agent_checkpoints *c, const dgm_checkpoint_change *change,
                   dgm_store_done done, void *arg); /* done: may be NULL */
} dgm_agent_checkpoints;

typedef struct dgm_agent_options {
    dgm_str id; /* of the agent, as the configuration names it; lives as long as the agent */
    dgm_reply reply;
    bool omit_final_text;    /* final_text: omit */
    bool answer_in_status;   /* answer_source: status: text in a working status is the answer */
    dgm_str working_message; /* shown while it works, as a status indicator; empty: none */
    dgm_strs secret_env;     /* variables that hold callers' tokens: not for programs */
    /* Private addresses that requests may go to although callers, cards or agents named them. Lives as long as the agent. */
    dgm_address_ranges outbound_allow;
    dgm_str
        folder; /* relative paths of the settings count from here; empty: where the program runs */
    /* All agents of the server, for agents that invoke others. Lives as long as the agent. */
    const dgm_agent_peer *peers;
    size_t n_peers;
    /* The MCP servers of the configuration. Lives as long as the agent. */
    const dgm_agent_mcp *mcp;
    size_t n_mcp;
    /* Lives as long as the agent. NULL: the configuration is only checked, or there is no store. */
    const dgm_agent_checkpoints *checkpoints;
    /* Lines for the operator's log that belong to no run, from any thread: what a worker prints, why it was restarted. May be NULL. */
    void (*on_log)(void *user, dgm_str agent, bool is_fault, dgm_str line);
    void *log_user;
    bool watch; /* serve --watch: long-lived programs are started again when their files change */
} dgm_agent_options;

/* ---- settings of a type ---------------------------------------------------------------------------------- */

typedef enum dgm_setting_kind {
    DGM_SETTING_STR,     /* dgm_str */
    DGM_SETTING_NUMBER,  /* double, from min to max */
    DGM_SETTING_INT,     /* int64_t, likewise */
    DGM_SETTING_CHOICE,  /* int: which of `choices`, "a|b|c"; of "false|true" also JSON's */
    DGM_SETTING_COMMAND, /* const dgm_json *: a text, or a list of texts, not empty */
    DGM_SETTING_ENV,     /* const dgm_json *: an object of texts; 80 and true count as text */
    /* const dgm_json *: a list of names, or one of the texts `choices`, "a|b"; "": only a list */
    DGM_SETTING_NAMES,
    DGM_SETTING_OBJECT, /* an object with the settings `of`, whose offsets count in the same struct */
    DGM_SETTING_LIST, /* const dgm_json *: a list, at most `max`, of objects with the settings `of` */
    DGM_SETTING_VARIANTS, /* const dgm_json *: likewise; each entry is a text, or an object with one of `of` */
    DGM_SETTING_JSON /* const dgm_json *: any object */
} dgm_setting_kind;

/* A row of the table that reading, the JSON Schema and the documentation use. */
typedef struct dgm_setting {
    const char *name;
    dgm_setting_kind kind;
    unsigned at; /* offset in the type's struct */
    double min, max;
    const char *choices;
    const char *def;   /* as the documentation has it */
    const char *about; /* one sentence; `code` in backticks */
    bool required;
    const struct dgm_setting *of; /* ends with a row of zeros */
} dgm_setting;

/* One mistake in an agent's settings. */
typedef struct dgm_setting_fault {
    const dgm_at *at; /* in the settings; for one that is missing, its own place */
    bool is_unknown;  /* there is no setting of this name */
    const dgm_setting
        *rows; /* if it is unknown: the settings that are known at its place; NULL: none */
    bool is_missing;
    const char *what, *todo; /* todo: may be empty */
} dgm_setting_fault;
typedef void (*dgm_on_setting_fault)(void *user, const dgm_setting_fault *fault);

/* Reports every mistake; returns how many. rows end with one of zeros; NULL: the type has none. object: is
 * filled as dgm_settings_read does; NULL: only checks. config: an object or NULL. */
size_t dgm_settings_check(const dgm_json *config, const dgm_setting *rows, void *object,
                          dgm_on_setting_fault on_fault, void *user);

/* ---- types ------------------------------------------------------------------------------------------------ */

/* An agent type. */
typedef struct dgm_backend {
    const char *type;   /* "demo": in configs and --agent */
    const char *about;  /* one line for a person */
    bool can_resume;    /* a run may go on after a restart of the process */
    bool wants_history; /* it reads input.history */
    /* Its agents have one thread per context, which stores the conversation. Messages that the thread cannot have come as a
     * transcript (model/conversation.h) in the message. A message to a context without a taskId goes to the only task there
     * that waits for an answer: as a new task it would discard the question. A messageId that was used in the context
     * with another content is refused: the thread would replace the stored message. Keys of the request's metadata that
     * route it (`aion:`) are copied to the task and to messages of the agent. */
    bool has_threads;
    dgm_reply reply; /* how its agents answer, unless the configuration says otherwise */
    /* The agent needs to know only that a request to sign in (auth-required) was answered: the content of the answer is
     * neither stored nor passed to the agent (dgm_auth_answer_hidden). */
    bool hides_auth_answers;
    bool invokes_agents; /* its runs may invoke other agents of this server */
    /* A task that waits for an answer waits elsewhere, too: a cancel of it starts a run as after a restart (input.is_resumed) and
     * cancels that at once. Only agents with can_resume. */
    bool cancels_waiting;
    bool foreign; /* a third-party program makes the events: their faults become warnings */
    const dgm_setting *settings; /* ends with a row of zeros; NULL: none */
    /* config: the agent's own settings, an object or NULL; errors carry a pointer into it. */
    dgm_code (*open)(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                     dgm_err *err);
    void (*close)(void *agent); /* no run is left */
    /* The loops run, and no message has been sent yet: starts what takes long. From any thread; must not block. May be NULL. */
    void (*prepare)(void *agent, dgm_loops *loops);
    /* No run follows: the server ends, or a reload has replaced the agent. Runs may still be at work. wait: the loops stop after
     * this; blocks until long-lived programs have ended, with a time limit; no run is left. Not from a loop. May be NULL. */
    void (*retire)(void *agent, bool wait);
    /* Of types with can_resume whose settings decide: false for an agent that cannot. May be NULL. */
    bool (*resumes)(void *agent);
    /* The description that the agent's program sends: members of an A2A 1.0 card, JSON object text in the arena; absent: no
     * description. Members of the configuration have priority over them, and they have priority over `card`. They may change.
     * From any thread. May be NULL. */
    dgm_str (*describe)(void *agent, dgm_arena *a);
    void (*start)(void *agent, dgm_run *run); /* on run->loop; must not block */
    /* On run->loop; may be NULL: then it is ended for it. Not after the run has ended. */
    void (*cancel)(void *agent, dgm_run *run);
    /* A message to the task while it works (steering). True: the run accepts it: it becomes part of the task's history,
     * stored before any event that is emitted after this call, and its caller follows the task from there on. False: it
     * waits for the next turn. The agent copies what it needs, and neither emits nor ends in here: it goes on later, at
     * its next step. On run->loop; not before start() has returned, not after cancel() and not after the run has
     * emitted a terminal or interrupted state. May be NULL: messages wait. */
    bool (*message)(void *agent, dgm_run *run, const dgm_message *message,
                    const dgm_json *metadata);
    /* The card's skills and texts for this type, as members of an A2A 1.0 card (JSON object text). */
    const char *card;
} dgm_backend;

/* May a run of this agent go on after a restart of the server? */
static inline bool dgm_backend_resumes(const dgm_backend *b, void *agent)
{
    return b->can_resume && (!b->resumes || b->resumes(agent));
}

/* All of them, NULL-terminated. */
extern const dgm_backend *const dgm_backends[];
const dgm_backend *dgm_backend_by_type(dgm_str type); /* NULL if the type is unknown */

/* ---- what most agents need, on top of emit ------------------------------------------------------------ */

/* What a whole text is streamed as, when there is no better name. */
#define DGM_ANSWER_ID "answer"

/* A status-update; text may be absent: then there is no message. final texts are TextParts of role agent. */
dgm_code dgm_run_status(dgm_run *run, dgm_task_state state, dgm_str text, dgm_err *err);
/* A failed status with metadata.error: a string safe for callers. */
dgm_code dgm_run_fail(dgm_run *run, dgm_str error, dgm_err *err);
/* A working status with a DataPart {type: status-indicator, text, displayAs: loading}. */
dgm_code dgm_run_indicate(dgm_run *run, dgm_str text, dgm_err *err);
/* One chunk of text of an artifact. */
dgm_code dgm_run_chunk(dgm_run *run, dgm_str artifact_id, dgm_str name, dgm_str text, bool append,
                       bool last, dgm_err *err);
/* A Message answer of one text part. */
dgm_code dgm_run_reply(dgm_run *run, dgm_str text, dgm_err *err);
/* One artifact, whole, of these parts. */
dgm_code dgm_run_artifact(dgm_run *run, dgm_str artifact_id, dgm_str name, dgm_parts parts,
                          dgm_err *err);
/* The agent needs its message, metadata and output modes no more: they go. For agents that wait long. */
void dgm_run_has_read(dgm_run *run);
/* For the operator's log. */
void dgm_run_note(dgm_run *run, const char *fmt, ...) DGM_PRINTF(2, 3);
/* "00-...": a W3C traceparent that names the task as the trace and the call as the span. */
dgm_str dgm_run_traceparent(dgm_arena *a, dgm_str task_id, dgm_str call_id);
/* The metadata of the request, with a traceparent if it has none; in the arena. */
const dgm_json *dgm_run_metadata(dgm_arena *a, const dgm_run_input *in);
/* Reports how the run went wrong: see dgm_run_ops.fault. */
void dgm_run_report(dgm_run *run, const dgm_run_fault *fault);
/* The text parts of the caller's message, one after the other; not the transcript. */
dgm_str dgm_run_text(const dgm_run *run, dgm_arena *a);
