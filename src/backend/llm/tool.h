/*
 * backend/llm/tool.h - tools of a language model that the operator has configured: a program (`exec`) or a request (`http`).
 *
 * A tool is opened once, from an entry of the setting `tools`, and called any number of times, on any loop. A call checks the
 * arguments first. Mistakes are a result like any other one: the model reads them and corrects its call. A call ends with
 * exactly one on_done, or it is canceled.
 */
#pragma once

#include "backend/backend.h"

typedef struct dgm_tool dgm_tool;
typedef struct dgm_tool_call dgm_tool_call;

/* ---- tools ----------------------------------------------------------------------------------------------- */

/* The settings of `exec:` and of `http:`. End with a row of zeros. */
extern const dgm_setting dgm_tool_exec_settings[], dgm_tool_http_settings[];

typedef struct dgm_tool_info {
    dgm_str name; /* see dgm_tool_is_name */
    dgm_str description;
    const dgm_json *parameters; /* JSON Schema of the arguments; never NULL */
    bool needs_approval;        /* a person must approve every call */
    bool is_idempotent;         /* a call whose outcome is unknown may be repeated */
} dgm_tool_info;

/* Letters, digits, _ and -; 1 to 64 of them: the names that OpenAI's APIs accept. */
bool dgm_tool_is_name(dgm_str name);

/* entry: {"exec": {...}} or {"http": {...}}; err->at points into it. options: NULL is allowed. */
dgm_code dgm_tool_open(const dgm_json *entry, const dgm_agent_options *options, dgm_tool **ret_tool,
                       dgm_err *err);
void dgm_tool_close(
    dgm_tool *t); /* NULL is allowed. Calls that were canceled may still be ending */
const dgm_tool_info *dgm_tool_info_of(const dgm_tool *t);

/* Are these arguments valid? false: ret_why, in the arena, says what is wrong, for the model. */
bool dgm_tool_check(const dgm_tool *t, const dgm_json *arguments, dgm_arena *a, dgm_str *ret_why);

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* Copied. */
typedef struct dgm_tool_input {
    dgm_str call_id; /* of the model */
    dgm_str key;     /* the idempotency key: the same when the call is repeated; absent: call_id */
    const dgm_json *arguments; /* an object; NULL: {} */
    const dgm_run_input *run;  /* task, context, agent, tenant and principal that it is made for */
    dgm_str traceparent;       /* may be absent */
} dgm_tool_input;

typedef struct dgm_tool_result {
    dgm_parts
        parts; /* a text, JSON as data, or bytes with a media type. One part, or none if there was no output */
    bool is_error;           /* the call failed; parts have one text that says why, for the model */
    bool is_outcome_unknown; /* the tool may have done its work nevertheless */
    dgm_str detail;          /* of an error, for the operator's log; may be empty */
} dgm_tool_result;

typedef struct dgm_tool_handler {
    /* The last callback; not from inside dgm_tool_start. The result lives until it returns; the call is freed then. */
    void (*on_done)(void *user, const dgm_tool_result *result);
    void *user;
} dgm_tool_handler;

/* On the thread of the loop. */
dgm_tool_call *dgm_tool_start(dgm_tool *t, const dgm_tool_input *input, dgm_loop *loop,
                              dgm_tool_handler handler);
/* No callback follows. A program gets SIGTERM, and SIGKILL half a second later. */
void dgm_tool_cancel(dgm_tool_call *c);
