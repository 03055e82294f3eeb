/*
 * dragoman/agent.h - the agent loop: a language model with tools and MCP servers, called by your program without a server.
 *
 *     dgm_agent_loop_options o = {.size = sizeof o, .settings = DGM_STR("{\"model\":\"mock:\"}")};
 *     if (!dgm_agent_loop_new(&o, &loop, err))
 *         dgm_agent_loop_execute(loop, DGM_STR("Hello"), NULL, on_event, NULL, err);
 *     dgm_agent_loop_free(loop);
 *
 * These functions are in libdragoman-agent, which also has every function of libdragoman: link one of the two
 * (pkg-config dragoman-agent). A loop has threads of its own. Every function may be called from any thread, several at a time, unless
 * its comment says otherwise; events are delivered on the thread that called. No signal handler is installed.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_agent_loop dgm_agent_loop;

/* ---- opening ------------------------------------------------------------------------------------- */

typedef struct dgm_agent_loop_options {
    size_t size; /* sizeof(dgm_agent_loop_options) */
    /* The agent, one of the three: the settings of an agent of `type: llm` as a JSON object; a whole configuration as
     * `dragoman serve` reads it, as YAML or JSON text; or the path of a file with one. */
    dgm_str settings;
    dgm_str config;
    const char *config_file;
    dgm_str mcp;       /* with settings: the `mcp` member of a configuration, a JSON object; may be absent */
    const char *agent; /* with config: the id of the agent; NULL: the default agent */
    /* Where tasks are stored: "memory:" or "sqlite:PATH"; NULL: "memory:". `store` of a configuration is not used. */
    const char *store;
    /* Gets lines for the operator's log, from any thread of the loop; must not call this library. NULL: no log. */
    void (*on_log)(void *user, dgm_str line);
    void *log_user;
} dgm_agent_loop_options;

/*
 * Opens a loop. Tasks that the process before this one left unfinished in the store are resumed in the background, each
 * from its last checkpoint; dgm_agent_loop_resume() reads them. DGM_BAD_PARAMS: invalid options or settings; the error has
 * their pointer and line. DGM_UNAVAILABLE: the store cannot be opened.
 */
DGM_API dgm_code dgm_agent_loop_new(const dgm_agent_loop_options *options,
                                    dgm_agent_loop **ret_loop, dgm_err *err);
/*
 * Stops everything, and waits for it. A task that still runs stays in its store as it is: the next loop with that store
 * resumes it. Calls of other threads that read events return DGM_UNAVAILABLE; no other call may be in progress. NULL is
 * allowed.
 */
DGM_API void dgm_agent_loop_free(dgm_agent_loop *loop);

/* ---- events -------------------------------------------------------------------------------------- */

/* Valid until the callback returns, or until the next call for the same stream. */
typedef struct dgm_agent_event {
    const dgm_event *event; /* as a struct: the kind decides which member of the union is set */
    /* The same as JSON in the form of A2A 0.3, NUL-terminated: {"kind":"status-update",...,"status":{"state":"working",...},
     * "final":false}. The kinds of internal events start with "internal:"; do not send those to an A2A client. */
    dgm_str json;
    bool is_internal;
    bool is_last; /* no event follows */
} dgm_agent_event;

/* Returns true to get the next event. false: the call returns DGM_OK now, and the task goes on in the background. */
typedef bool (*dgm_agent_on_event)(void *arg, const dgm_agent_event *event);

/* ---- running ------------------------------------------------------------------------------------- */

typedef struct dgm_agent_execute_options {
    size_t size;        /* sizeof(dgm_agent_execute_options) */
    dgm_str context_id; /* of the conversation; absent: a new one */
    dgm_str task_id;    /* of a task that waits for input: the message is the answer; absent: a new task */
    /* An A2A message as JSON, 0.3 or 1.0, instead of the prompt: files, data, the answer to an approval. */
    dgm_str message;
} dgm_agent_execute_options;

/*
 * Runs the agent, and returns when it has ended. The events of a task are: first a `task` (state submitted), then
 * status-updates, artifact-updates and internal events, last a status-update that ends the turn: completed, failed, canceled or
 * rejected, or input-required or auth-required if the agent waits for an answer. With a task_id the first event is the
 * `task` as it is.
 * A failed task is an event, not an error. An error is returned if there is no task: DGM_BAD_PARAMS (invalid
 * arguments), DGM_TASK_NOT_FOUND, DGM_UNSUPPORTED_OPERATION (the task has ended), DGM_UNAVAILABLE (the store has failed,
 * or the loop is freed). options may be NULL.
 */
DGM_API dgm_code dgm_agent_loop_execute(dgm_agent_loop *loop, dgm_str prompt,
                                        const dgm_agent_execute_options *options,
                                        dgm_agent_on_event on_event, void *arg, dgm_err *err);

/*
 * Reads a task until its turn ends, without a `task` event. Of a task that the process before this one left unfinished: all
 * events since the loop was opened, the first time. Of another task that works: the events from now on. Of a task that has ended or
 * waits for an answer: one status-update with its status; nothing runs.
 */
DGM_API dgm_code dgm_agent_loop_resume(dgm_agent_loop *loop, dgm_str task_id,
                                       dgm_agent_on_event on_event, void *arg, dgm_err *err);

/*
 * Cancels a task; returns when it has stopped, or after a few seconds. May be called by on_event. DGM_TASK_NOT_CANCELABLE: the task has
 * ended. A task that is canceled already is no error.
 */
DGM_API dgm_code dgm_agent_loop_cancel(dgm_agent_loop *loop, dgm_str task_id, dgm_err *err);

/* ---- event by event ------------------------------------------------------------------------------- */

/* The same for callers that want to fetch events one by one. A stream belongs to one thread at a time. */
typedef struct dgm_agent_stream dgm_agent_stream;

typedef enum dgm_agent_next {
    DGM_AGENT_EVENT = 0,   /* here is an event */
    DGM_AGENT_END = 1,     /* there are no more events */
    DGM_AGENT_TIMEOUT = 2, /* no event within the time: call again */
    DGM_AGENT_FAILED = 3   /* see the error; there are no more events */
} dgm_agent_next;

/* Both return at once; errors of the task are returned by dgm_agent_stream_next(). */
DGM_API dgm_code dgm_agent_stream_execute(dgm_agent_loop *loop, dgm_str prompt,
                                          const dgm_agent_execute_options *options,
                                          dgm_agent_stream **ret_stream, dgm_err *err);
DGM_API dgm_code dgm_agent_stream_resume(dgm_agent_loop *loop, dgm_str task_id,
                                         dgm_agent_stream **ret_stream, dgm_err *err);
/* Waits for the next event, at most timeout_ms milliseconds; negative: without a limit. */
DGM_API dgm_agent_next dgm_agent_stream_next(dgm_agent_stream *stream, int64_t timeout_ms,
                                             const dgm_agent_event **ret_event, dgm_err *err);
/* A task that has not ended goes on in the background. Also allowed after dgm_agent_loop_free(). NULL is allowed. */
DGM_API void dgm_agent_stream_free(dgm_agent_stream *stream);

#ifdef __cplusplus
}
#endif
