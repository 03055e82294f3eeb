/*
 * backend/worker/worker.h - long-lived child processes that serve many runs at once: docs/worker-protocol.md.
 *
 *   agent type ── dgm_worker_run_start() ──► pool ── `run` ──► process
 *   agent type ◄── on_event ... on_result or on_error ── pool ◄── `event` ..., the response ── process
 *
 * A pool belongs to one agent and has `processes` processes. A process lives on one loop, its home; runs live on the loop
 * of their task. The pool carries everything between the two: all functions below are called on the loop that they name,
 * and callbacks come on that loop, never from inside a call (exception: write_params). The thread of a run decides which process it uses, so
 * that all runs of one thread use the same one.
 *
 * A process is not trusted to behave: each fault (a line that is not JSON or too long, a wrong seq, silence) ends the
 * process, is explained in the operator's log, and its runs end with DGM_WORKER_LOST. The pool starts it again.
 */
#pragma once

#include "backend/backend.h"
#include "base/buf.h"

typedef struct dgm_worker_pool dgm_worker_pool;

/* Copies a fence with its texts into one block. NULL: the fence checks nothing. */
dgm_fence *dgm_worker_fence_copy(const dgm_fence *fence);

/* That of a run: no task_id if the store is not shared. */
static inline dgm_fence dgm_worker_fence_of(const dgm_run *run)
{
    const dgm_run_input *in = run->input;
    bool is_stored = in->task || in->is_resumed;
    return in->fence ? (dgm_fence){{in->tenant, in->principal}, in->task_id, in->fence, !is_stored}
                     : (dgm_fence){0};
}
typedef struct dgm_worker_run dgm_worker_run;
typedef struct dgm_worker_call dgm_worker_call;
typedef struct dgm_worker_request dgm_worker_request;

/* Codes of errors in responses of a worker (PROTOCOL: error.code). */
#define DGM_WORKER_RAISED (-32000)
#define DGM_WORKER_RECURSION (-32001)
#define DGM_WORKER_THREAD_BUSY (-32002)
#define DGM_WORKER_AT_MAX_RUNS (-32003)
#define DGM_WORKER_NOT_LOADED (-32004)
#define DGM_WORKER_REJECTED (-32005)
#define DGM_WORKER_BAD_LINE (-32010)
#define DGM_WORKER_BAD_PARAMS (-32602)
#define DGM_WORKER_NO_METHOD (-32601)
#define DGM_WORKER_INTERNAL (-32603)

/* ---- requests of the worker: checkpoint/..., blob/..., journal/put --------------------------------------------------- */

/* One request of the worker. Valid until it is answered, which must happen exactly once, on the loop where it was received, at once or
 * later. If the process has ended meanwhile, the answer is dropped. */
struct dgm_worker_request {
    dgm_str method;         /* "checkpoint/put" */
    const dgm_json *params; /* NULL: the request has none */
    dgm_str run;            /* params.run, if it is a text; else absent */
    dgm_arena *arena; /* everything above; freed with the request. For the handler's use, too */
    dgm_loop *loop;   /* where the request is handled and answered */
};
/* result: JSON text. A longer one than DGM_WORKER_LINE_BYTES becomes the error -32010. */
void dgm_worker_respond(dgm_worker_request *r, dgm_str result);
void dgm_worker_respond_error(dgm_worker_request *r, int code, const char *fmt, ...)
    DGM_PRINTF(3, 4);

/* Handles requests that belong to no run's handler: checkpoint/... and blob/... One session per process. Each member is called on the
 * home loop of the process, which is the same for the whole session. worker_checkpoints.c has the one that stores
 * checkpoints. */
typedef struct dgm_worker_service {
    void *(*open)(void *user, dgm_loop *home); /* the process was started; returns the session */
    /* False: unknown method, which the pool answers with -32601. */
    bool (*request)(void *session, dgm_worker_request *r);
    void (*close)(
        void *
            session); /* the process has ended. Requests that are open are still answered by their handler */
    void *user;
    /* A request that names a thread (run, state, state/update) is sent to the process: dgm_worker_thread_hash() of it. fence: of
     * the run, for what it stores in the thread; NULL: nothing is checked. May be NULL. */
    void (*on_thread)(void *session, uint64_t thread, const dgm_fence *fence);
} dgm_worker_service;

/* ---- a pool ----------------------------------------------------------------------------------------------------------- */

/* "worker_line_bytes": maxLineBytes of the handshake. */
#define DGM_WORKER_LINE_BYTES DGM_MAX_WORKER_LINE_BYTES

typedef struct dgm_worker_options {
    /* The program, as dgm_program has it (backend/program.h); borrowed, lives as long as the pool. DRAGOMAN_FD is added. */
    const char *const *argv;
    const char *const *env;
    size_t n_env;
    const char *cwd; /* NULL: ours */
    /* Of the configuration: agent.id, agent.on_log, agent.watch and agent.folder are used. NULL is allowed. */
    const dgm_agent_options *agent;
    /* Further members of `initialize`, JSON text that starts with a comma or is empty:  ,"checkpointer":"server","settings":{},"graphs":{...}
     * Copied. */
    dgm_str initialize;
    size_t processes; /* 0: 1 */
    size_t
        max_runs; /* of one process at a time; the worker may allow fewer. 0: what the worker allows. More runs wait */
    double start_timeout, hang_timeout, grace; /* seconds; 0: 120, 120, 5 */
    bool one_run_per_thread;                   /* a second run of a thread waits for the first */
    const char *
        watch; /* with agent.watch: the folder whose files are watched; NULL: cwd, else agent.folder. Copied */
    dgm_worker_service service; /* all NULL: none */
} dgm_worker_options;

dgm_worker_pool *dgm_worker_pool_open(const dgm_worker_options *o);
/* Starts the processes now, so that slow imports are over when the first message comes, and errors are in the operator's log at
 * once. Without it the first run starts them. From any thread; the loops run. For dgm_inner.prepare. */
void dgm_worker_pool_prepare(dgm_worker_pool *p, dgm_loops *loops);
/* No run follows: processes end when their runs have ended. wait: blocks until they have ended or their grace is over; not on a loop.
 * For dgm_inner.retire. */
void dgm_worker_pool_retire(dgm_worker_pool *p, bool wait);
/* The loops have stopped, or no process was ever started. */
void dgm_worker_pool_close(dgm_worker_pool *p);
/* Every process is replaced by a new one as soon as it has no run; runs that start meanwhile wait. From any thread. */
void dgm_worker_pool_reload(dgm_worker_pool *p);

/* Members of a card that the last handshake has for this agent (else for the first one): JSON text in the arena; absent before the
 * first handshake. From any thread. For dgm_inner.describe. */
dgm_str dgm_worker_pool_describe(dgm_worker_pool *p, dgm_str agent, dgm_arena *a);
/* The agent with this id in the result of a handshake, else the first one. NULL: the result has no agent. */
const dgm_json *dgm_worker_find_agent(const dgm_json *info, dgm_str id);

/* ---- a run -------------------------------------------------------------------------------------------------------------- */

typedef struct dgm_worker_event {
    uint64_t seq;
    dgm_str type;         /* "a2a", "messages", "custom", "updates", ... */
    const dgm_json *ns;   /* may be NULL */
    const dgm_json *data; /* may be NULL */
    dgm_arena *arena;     /* of the event; for decoding it, too. Freed when the callback returns */
} dgm_worker_event;

typedef enum dgm_worker_fault_kind {
    DGM_WORKER_ERROR, /* the worker answered with an error: code, message and data are set */
    /* The process ended, was killed for a fault, or hung. The run may have done a part of its work: the agent type decides
     * whether it is started again. */
    DGM_WORKER_LOST,
    /* The run was not started: the process cannot be started (is restarted too often, cannot load its code), or does not become ready in time. */
    DGM_WORKER_UNAVAILABLE,
    DGM_WORKER_BUSY, /* too many runs wait: the run was not started */
    DGM_WORKER_IGNORED, /* after dgm_worker_run_cancel: the worker has not answered in time. Its later events are dropped */
    /* Events came faster than they could be stored, for too long (limit worker_held_bytes); the worker was asked to cancel. */
    DGM_WORKER_TOO_FAST
} dgm_worker_fault_kind;

typedef struct dgm_worker_fault {
    dgm_worker_fault_kind kind;
    int code; /* of ERROR; else 0 */
    dgm_str
        message; /* of ERROR: what the worker wrote, not for callers (exception: DGM_WORKER_REJECTED) */
    const dgm_json *data; /* of ERROR; may be NULL */
    dgm_str safe;         /* a sentence for callers, always set */
    dgm_str detail;       /* for the operator; may be empty */
    dgm_str output;       /* the last lines of the process's log; may be empty */
} dgm_worker_fault;

/* All of them on the loop of the run. A fault, result and event are valid until the callback returns. */
typedef struct dgm_worker_run_handler {
    /*
     * The process is ready: writes the members of the params of `run`, each with a comma in front ("run" is there already):
     * dgm_worker_put_common() and those of the kind. Called once, possibly from inside dgm_worker_run_start, not after
     * dgm_worker_run_drop. info: the result of the handshake (`agents`, `capabilities`, ...), valid until it returns.
     * False: the run cannot be sent; *ret_safe (in the run's arena or a literal) is the sentence of on_error (UNAVAILABLE),
     * which comes later. The run's `input` may be dropped (dgm_run_has_read) only after this, and not if it may have to be started again.
     */
    bool (*write_params)(void *user, const dgm_json *info, dgm_buf *out, const char **ret_safe);
    void (*on_event)(void *user, const dgm_worker_event *event); /* in the order of seq */
    /* The last callback: exactly one of these two, unless the run is dropped. The run is freed when it returns. */
    void (*on_result)(void *user, const dgm_json *result);
    void (*on_error)(void *user, const dgm_worker_fault *fault);
    /* A request of the worker with this run (journal/put), in order with the events. False: unknown method. NULL: none. */
    bool (*on_request)(void *user, dgm_worker_request *r);
    /* A `log` notification with this run. NULL: it goes to the agent's log. */
    void (*on_log)(void *user, dgm_str level, dgm_str text);
    /* True: events wait (run->ops->is_full). NULL: never. */
    bool (*is_full)(void *user);
    void *user;
    /* Writes of its graph are stored only while this server owns the task. Copied; task_id empty: always stored. */
    dgm_fence fence;
} dgm_worker_run_handler;

/* thread: copied. Always succeeds: faults come by on_error. */
dgm_worker_run *dgm_worker_run_start(dgm_worker_pool *p, dgm_loop *loop, dgm_str thread,
                                     const dgm_worker_run_handler *handler);
/* "r12": the id of the run, set for write_params and after. */
dgm_str dgm_worker_run_id(const dgm_worker_run *r);
/* Asks the worker to stop. on_result or on_error follows, at the latest after DGM_WORKER_CANCEL_MS. */
void dgm_worker_run_cancel(dgm_worker_run *r);
/* Steering: params.message, JSON text. False: the worker has not declared capabilities.input, or the run was not sent yet. */
bool dgm_worker_run_input(dgm_worker_run *r, dgm_str message);
/* The run is over for the caller: the worker is asked to stop, no callback follows, r is invalid. Not from inside its last callback. */
void dgm_worker_run_drop(dgm_worker_run *r);

#define DGM_WORKER_CANCEL_MS 4000 /* below DGM_CANCEL_WAIT_MS */

/* ---- other requests to the worker: state, state/update -------------------------------------------------------------------- */

/* Exactly one of result and fault is set. On the loop that the call was made on. The call is freed when it returns. */
typedef void (*dgm_worker_on_answer)(void *user, const dgm_json *result,
                                     const dgm_worker_fault *fault);
/* params: JSON text, an object. Waits for the process if it is not ready. timeout_ms: from now; then the fault is UNAVAILABLE. */
dgm_worker_call *dgm_worker_call_start(dgm_worker_pool *p, dgm_loop *loop, dgm_str thread,
                                       const char *method, dgm_str params, uint64_t timeout_ms,
                                       dgm_worker_on_answer on_answer, void *user);
void dgm_worker_call_drop(dgm_worker_call *c); /* no callback follows */

/* ---- what agent types share ------------------------------------------------------------------------------------------------- */

static inline uint64_t dgm_worker_thread_hash(dgm_str thread)
{
    return dgm_hash(1, thread.p, thread.n);
}

/* The thread of a run: unique per tenant, principal, agent and context; in the arena. */
dgm_str dgm_worker_thread(dgm_arena *a, const dgm_run_input *in);
/* Members that every `run` has, each with a comma in front: agent, thread, task, context, principal, tenant, isResumed, metadata
 * (with traceparent), acceptedOutputModes, tools, attempt. agent: the id in the worker; attempt: from 1. */
void dgm_worker_put_common(dgm_buf *out, const dgm_run *run, dgm_str agent, dgm_str thread,
                           bool is_resumed, unsigned attempt);
