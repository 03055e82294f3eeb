/*
 * loop/llm_loop.h - the agent loop: a language model with tools, as a pure step function.
 *
 *   driver ── dgm_llm_loop_step(loop, event) ──► actions, in order, to the sink ──► driver
 *
 * The loop decides; the driver sends requests, runs tools, waits and stores. There is no clock, no socket and no random
 * number here: the same state and the same events give the same actions, also the same ids.
 *
 *   START ─► working ─► CALL_MODEL ─► MODEL_TEXT ... MODEL_END ─┬─ no calls ─► completed
 *                          ▲                                    └─ calls ─► RUN_TOOL ... TOOL_DONE ─┐
 *                          └──────────── checkpoint, SAVE ◄─────────────────────────────────────────┘
 *
 * A question (of the tool ask_user, an approval, a call of the caller's own tools, a question of a tool) ends the turn with
 * an interrupted status, SAVE and END. MESSAGE, with this loop or with one that was loaded from the saved text, continues it.
 *
 * Everything that an event points to may be freed when the step returns, and everything that an action points to is valid
 * until the sink returns. The sink must not step the loop: what it learns at once is fed when the step has returned. Events
 * that do not fit (a tool's result after STOP_TOOL, anything after the end) are ignored.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <dragoman/model.h>

typedef struct dgm_llm_loop dgm_llm_loop;

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef enum dgm_llm_tool_kind {
    DGM_LLM_TOOL_SERVER,      /* exec, http, MCP: the driver runs it */
    DGM_LLM_TOOL_AGENT,       /* the same, and its start and end are shown to the caller */
    DGM_LLM_TOOL_CALLER,      /* the caller runs it */
    DGM_LLM_TOOL_ASK_USER,    /* built in: input-required */
    DGM_LLM_TOOL_REQUEST_AUTH /* built in: auth-required */
} dgm_llm_tool_kind;

typedef struct dgm_llm_tool {
    dgm_str name;
    dgm_llm_tool_kind kind;
    bool needs_approval;
    bool is_idempotent;            /* a call whose outcome is unknown is repeated */
    bool is_forbidden;             /* a call of it ends the task as rejected */
    dgm_str agent_name, agent_url; /* DGM_LLM_TOOL_AGENT: for the status-update; may be empty */
} dgm_llm_tool;

typedef struct dgm_llm_tools {
    const dgm_llm_tool *at;
    size_t n; /* at most DGM_MAX_REQUEST_TOOLS */
} dgm_llm_tools;

/* The definition of a built-in tool for the model. */
typedef struct dgm_llm_builtin {
    const char *name, *description, *parameters; /* parameters: JSON Schema, as text */
    dgm_llm_tool_kind kind;
} dgm_llm_builtin;
extern const dgm_llm_builtin dgm_llm_ask_user, dgm_llm_request_auth;

/* 0 in a limit: the default behind it. */
typedef struct dgm_llm_limits {
    uint32_t iterations; /* model calls that may ask for tools: 25 */
    uint32_t
        calls_per_iteration; /* tool calls of one model turn: 64; the others are refused, and the model is informed */
    uint32_t parallel_tools; /* 4 */
    uint64_t tokens;         /* input and output of all model calls of the task: no limit */
    size_t input_bytes;      /* one message of the caller, as text and data: 1 MiB */
    size_t output_bytes;     /* text of the answer: 1 MiB */
    size_t result_bytes;     /* one tool result for the model; the rest is cut: 64 KiB */
    size_t state_bytes;      /* of the saved text: 8 MiB */
} dgm_llm_limits;

typedef struct dgm_llm_options {
    dgm_llm_limits limits;
    dgm_llm_tools tools; /* copied; see also dgm_llm_loop_set_tools() */
    /* Retries of one upstream: `retries` of them after the first attempt; the wait doubles from retry_base_ms (0: 500) up to
     * retry_cap_ms (0: 30000). A server's Retry-After counts up to the cap, too: with more than that the next upstream
     * is tried. */
    uint32_t retries, retry_base_ms, retry_cap_ms;
    uint32_t upstreams; /* 0: one */
    /* Compaction: when the messages have more bytes, or the last model call reported more input tokens. 0: never. */
    size_t compact_bytes;
    uint64_t compact_tokens;
    /* Checks the arguments of a call before it is approved or run; ret_why (in the arena) is for the model. NULL: all that
     * are a JSON object are good. */
    bool (*check)(void *arg, dgm_str tool, const dgm_json *arguments, dgm_arena *a,
                  dgm_str *ret_why);
    void *arg;
} dgm_llm_options;

/* ---- events ------------------------------------------------------------------------------------------------------ */

typedef enum dgm_llm_event_kind {
    /* A new task, or the first turn again if the process before this one has saved nothing. */
    DGM_LLM_START, /* start */
    /* The first event after dgm_llm_loop_load(): the next turn of a task, or a run that another process had started. A message
     * that the loop has not seen is then handled like MESSAGE. */
    DGM_LLM_RESUMED, /* start: history is not used */
    /* To a loop in this process: the answer to a question, results of the caller's tools, or, while the run works, a message
     * for the next model call. A message that comes twice (by its id) counts once. */
    DGM_LLM_MESSAGE,         /* message */
    DGM_LLM_MODEL_TEXT,      /* text */
    DGM_LLM_MODEL_REASONING, /* text */
    DGM_LLM_MODEL_CALL,      /* call: complete; before MODEL_END */
    DGM_LLM_MODEL_END,       /* end */
    DGM_LLM_MODEL_FAILED,    /* failure: instead of MODEL_END */
    DGM_LLM_TIMER,           /* the WAIT is over */
    DGM_LLM_COMMITTED,       /* everything before COMMIT is durable */
    DGM_LLM_TOOL_DONE,       /* result; also ends a question of that call */
    DGM_LLM_TOOL_ASKS,       /* question */
    DGM_LLM_TOOL_UNKNOWN,    /* call_id: it is not known whether the tool did its work */
    DGM_LLM_TIME_UP,         /* the time limit of the run */
    DGM_LLM_CANCEL
} dgm_llm_event_kind;

typedef struct dgm_llm_start {
    dgm_str task_id, context_id;
    const dgm_message *message;
    dgm_messages history; /* of the context, before the message */
    const dgm_task *
        task; /* what the log has already; NULL: nothing. RESUMED finds the results of tools there */
} dgm_llm_start;

typedef struct dgm_llm_call {
    dgm_str id; /* the model's; empty or used before: the loop makes one */
    dgm_str name, arguments;
    bool is_custom; /* the arguments are free text */
} dgm_llm_call;

typedef enum dgm_llm_finish {
    DGM_LLM_STOP, /* also: tool calls */
    DGM_LLM_LENGTH,
    DGM_LLM_CONTENT_FILTER
} dgm_llm_finish;

typedef struct dgm_llm_end {
    dgm_llm_finish finish;
    uint64_t input_tokens, output_tokens, total_tokens; /* 0: unknown */
    const dgm_json *usage; /* value of the internal event; NULL: none is emitted */
    dgm_str refusal;       /* the model's words; not in MODEL_TEXT */
    /* JSON object; sent back as metadata DGM_META_MODEL ("dragoman:model") of the turn's message. Absent: none. */
    dgm_str opaque;
} dgm_llm_end;

typedef struct dgm_llm_failure {
    dgm_str message; /* a sentence that is safe for callers */
    bool is_retryable;
    bool is_content_filter;
    bool is_too_long; /* the input exceeds the model's context: compacted and sent again, once */
    int64_t retry_after_ms; /* < 0: unknown */
} dgm_llm_failure;

typedef struct dgm_llm_result {
    dgm_str call_id;
    bool is_error;
    dgm_str text;          /* for the model; absent: `value` or `parts` */
    const dgm_json *value; /* likewise, and for the internal event */
    dgm_parts parts;       /* likewise: texts and files; files are also an artifact of the task */
    dgm_str agent_task_id; /* of a sub-agent; may be empty */
} dgm_llm_result;

/* A tool that needs something of the user. The answer is the action ANSWER_TOOL. */
typedef struct dgm_llm_question {
    dgm_str call_id;
    dgm_str text;
    const dgm_json *schema; /* of the answer; NULL: text */
    dgm_str url;            /* auth-required instead; empty: input-required */
    const dgm_json *state;  /* returned with the answer, also by another process; NULL: none */
} dgm_llm_question;

typedef struct dgm_llm_event {
    dgm_llm_event_kind kind;
    union {
        dgm_llm_start start;
        const dgm_message *message;
        dgm_str text, call_id;
        dgm_llm_call call;
        dgm_llm_end end;
        dgm_llm_failure failure;
        dgm_llm_result result;
        dgm_llm_question question;
    };
} dgm_llm_event;

/* ---- actions ----------------------------------------------------------------------------------------------------- */

typedef enum dgm_llm_action_kind {
    DGM_LLM_EMIT,        /* event */
    DGM_LLM_CALL_MODEL,  /* model; at most one at a time */
    DGM_LLM_STOP_MODEL,  /* no further MODEL_ event of this call */
    DGM_LLM_RUN_TOOL,    /* tool; its start is durable */
    DGM_LLM_ANSWER_TOOL, /* answer: to a question of TOOL_ASKS. A driver that has lost the call answers TOOL_UNKNOWN or TOOL_DONE */
    DGM_LLM_STOP_TOOL,   /* call_id: no further TOOL_ event of it */
    DGM_LLM_SAVE,        /* text: stored in place of the one before, after the events before it */
    DGM_LLM_COMMIT,      /* COMMITTED when the events and the text before it are durable */
    DGM_LLM_WAIT,        /* wait_ms, then TIMER; ends with the run */
    DGM_LLM_NOTE,        /* text: for the operator's log */
    DGM_LLM_END          /* state: terminal, or interrupted. The turn is over */
} dgm_llm_action_kind;

typedef struct dgm_llm_model {
    uint32_t upstream, attempt, iteration;
    dgm_str id;            /* unique in the task, the same when the call is repeated */
    dgm_messages messages; /* as wire/model_call.h has them */
    bool
        is_summary; /* for compaction: without tools, response_format and the agent's instructions */
    bool may_call;  /* false: tools are listed, but the model must answer (tool_choice none) */
} dgm_llm_model;

typedef struct dgm_llm_tool_run {
    dgm_str call_id, name;
    dgm_str
        key; /* the idempotency key: unique among all tasks, the same when the call is repeated */
    const dgm_json *arguments; /* an object; of a custom tool {"input": text} */
    dgm_llm_tool_kind kind;
    bool is_repeated; /* the process before this one had started it */
} dgm_llm_tool_run;

typedef enum dgm_llm_answer_kind {
    DGM_LLM_ACCEPTED,
    DGM_LLM_DECLINED /* the message was one of the words for no (model/approval.h), and the question has a schema or a URL */
} dgm_llm_answer_kind;

typedef struct dgm_llm_answer {
    dgm_str call_id, name;
    dgm_str key;
    const dgm_json *arguments; /* of the call: for protocols that repeat it with the answer */
    dgm_llm_answer_kind kind;
    dgm_str text;          /* of the message; empty for a question with a URL */
    const dgm_json *value; /* the first data part of the message; NULL: none */
    const dgm_json *state; /* of the question */
} dgm_llm_answer;

typedef struct dgm_llm_action {
    dgm_llm_action_kind kind;
    union {
        const dgm_event *event;
        dgm_llm_model model;
        dgm_llm_tool_run tool;
        dgm_llm_answer answer;
        dgm_str call_id, text;
        uint64_t wait_ms;
        dgm_task_state state;
    };
} dgm_llm_action;

typedef struct dgm_llm_sink {
    void (*on_action)(void *arg, const dgm_llm_action *action);
    void *arg;
} dgm_llm_sink;

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

dgm_llm_loop *dgm_llm_loop_new(const dgm_llm_options *options);
void dgm_llm_loop_free(dgm_llm_loop *l); /* NULL is allowed */

/* Between two steps: the tools of the next model call. Calls that run are not affected. */
void dgm_llm_loop_set_tools(dgm_llm_loop *l, dgm_llm_tools tools);

/* Only START and RESUMED can be wrong (DGM_BAD_PARAMS: no message, or the loop has started): nothing happened then. */
dgm_code dgm_llm_loop_step(dgm_llm_loop *l, const dgm_llm_event *event, dgm_llm_sink sink);

/* WORKING; an interrupted state: it waits for a message; a terminal state: it is over. SUBMITTED before START. */
dgm_task_state dgm_llm_loop_state(const dgm_llm_loop *l);

/* The state as JSON text. The text of SAVE is the same. out->over: more than limits.state_bytes. */
void dgm_llm_loop_save(const dgm_llm_loop *l, dgm_buf *out);
/* DGM_BAD_PARAMS: not a saved state of this version. */
dgm_code dgm_llm_loop_load(dgm_str text, const dgm_llm_options *options, dgm_llm_loop **ret_loop,
                           dgm_err *err);

DGM_DEFINE_AUTO(dgm_llm_loop, dgm_llm_loop_free)
