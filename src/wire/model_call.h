/*
 * wire/model_call.h - one call of a language model over Chat Completions or Responses: the request, its answer, its errors.
 *
 *   instructions, messages, tools ── canonical input ── the format's write_request ──► body of the request
 *   values of the answer ── the format's decoder ── canonical events ──► on_text, on_reasoning, on_call, one result
 *
 * Pure, as codecs are. The caller sends and reads the bytes, repeats a request that may be repeated, and runs the tools.
 */
#pragma once

#include "wire/codec.h"
#include "wire/frames/frames.h"

typedef enum dgm_model_api { DGM_MODEL_CHAT, DGM_MODEL_RESPONSES } dgm_model_api;

/* "chat" or "responses", the words of the setting `api`; NULL-terminated, in the order of the enum. */
extern const char *const dgm_model_api_names[];
/* What follows the base URL: "/chat/completions", "/responses". */
const char *dgm_model_api_path(dgm_model_api api);

/* ---- the request --------------------------------------------------------------------------------------------- */

/* Members that some servers reject. dgm_model_rejected() finds them in the error; then the request is sent again with these
 * bits in `without`. */
typedef enum dgm_model_without {
    DGM_MODEL_STREAM_OPTIONS = 1, /* chat: no stream_options; the usage may be missing then */
    DGM_MODEL_MAX_COMPLETION_TOKENS = 2, /* chat: max_tokens instead */
    DGM_MODEL_MAX_TOKENS = 4, /* chat: max_completion_tokens, even if max_tokens is configured */
    DGM_MODEL_INCLUDE = 8,    /* responses: no include, so no encrypted reasoning */
    DGM_MODEL_STORE = 16,     /* responses: no store */
} dgm_model_without;

/*
 * The messages are A2A's, oldest first. An agent's message holds the text of one turn of the model and, in data parts,
 * `tool_calls`; `tool_results` may be in messages of either role (model/calls.h). Every call gets a result: one that has
 * none is sent with a sentence about that, and a result without its call is left out.
 *
 * The metadata DGM_META_MODEL of an agent's message is the `opaque` of the answer that it was made of: signatures of calls,
 * reasoning, encrypted items. It is sent back to the API that it came from.
 */
typedef struct dgm_model_request {
    dgm_model_api api;
    dgm_str model;
    dgm_str instructions; /* absent: none */
    dgm_messages messages;
    dgm_canon_tools tools;
    const dgm_json *tool_choice;     /* as Chat or Responses has it; NULL: none */
    const dgm_json *response_format; /* likewise */
    /* Objects, NULL is allowed: see dgm_model_parameters(). The caller's win. */
    const dgm_json *parameters; /* of the configuration: unknown members are sent as they are */
    const dgm_json *caller_parameters; /* unknown members are left out */
    bool is_whole;                     /* no stream */
    unsigned without;                  /* bits of dgm_model_without */
    /* chat: reasoning is sent back as reasoning_content (DeepSeek's and others' servers want that). */
    bool sends_reasoning;
    /* Names the server and the model, in any form. Values for another source are not sent back. Absent: not checked. */
    dgm_str source;
} dgm_model_request;

/* Appends the body. */
dgm_code dgm_model_write_request(const dgm_model_request *request, dgm_buf *out, dgm_err *err);

/* The parameters in the body of a Chat or Responses request of a caller that a model can be sent: temperature, top_p,
 * max_tokens and its other names, reasoning_effort, verbosity, seed, stop, frequency_penalty, presence_penalty, logit_bias,
 * parallel_tool_calls. An object in the arena; NULL: the body has no parameters. For DGM_META_PARAMETERS. */
const dgm_json *dgm_model_parameters(dgm_arena *a, const yyjson_val *body);

/* ---- the answer ----------------------------------------------------------------------------------------------- */

typedef struct dgm_model_call {
    dgm_str
        id; /* unique in the answer; generated where the server has none. Some servers use the same ids in every answer */
    dgm_str name;
    dgm_str arguments; /* text: mostly, not always, a JSON object; never empty */
    bool is_custom;    /* responses: a custom tool, whose input is free text */
} dgm_model_call;

typedef enum dgm_model_finish {
    DGM_MODEL_UNFINISHED,
    DGM_MODEL_STOP,
    DGM_MODEL_LENGTH, /* the limit on tokens: the text is cut. Calls are complete, or it is an error */
    DGM_MODEL_TOOL_CALLS,     /* there was at least one call, whatever the server writes */
    DGM_MODEL_CONTENT_FILTER, /* cut by a filter; without text: withheld by it */
    DGM_MODEL_REFUSAL, /* the model refused; result.refusal has its text, which on_text did not get */
    DGM_MODEL_ERROR
} dgm_model_finish;

/* An error of a server, in the stream or as an HTTP status. */
typedef struct dgm_model_error {
    dgm_str message; /* one sentence, safe for callers: clean_error has seen the server's words */
    dgm_str
        code; /* the server's code or type; empty: none. "incomplete": the stream ended in the middle */
    int status; /* HTTP status; 0: none */
    bool
        is_retryable; /* 408, 409, 429, 5xx, overload, a broken stream; the same request may succeed later */
    bool is_content_filter; /* the input was rejected by a filter */
    bool is_too_long;       /* the input exceeds the model's context */
    int64_t retry_after_ms; /* < 0: unknown */
} dgm_model_error;

typedef struct dgm_model_result {
    dgm_model_finish finish;
    dgm_canon_usage usage; /* members that are not set are unknown */
    dgm_str model;         /* as the server names it; empty: unknown */
    dgm_str id;            /* of the completion or the response */
    dgm_str refusal;
    dgm_model_error error; /* DGM_MODEL_ERROR */
    dgm_str opaque;        /* JSON object for DGM_META_MODEL; absent: nothing has to be sent back */
} dgm_model_result;

typedef struct dgm_model_handler {
    /* All may be NULL; texts are valid until they return. A code other than DGM_OK ends the answer and is returned by feed. */
    dgm_code (*on_text)(void *arg, dgm_str delta);
    dgm_code (*on_reasoning)(void *arg, dgm_str delta);
    /* A call begins: its name, before its arguments. For progress only. */
    dgm_code (*on_call_start)(void *arg, dgm_str id, dgm_str name);
    /* A complete call. All of them come when the answer has ended, in order; none comes when it ends with an error. */
    dgm_code (*on_call)(void *arg, const dgm_model_call *call);
    /* Makes the server's own words about an error safe for callers. The result is in the arena or borrowed. */
    dgm_str (*clean_error)(void *arg, dgm_arena *a, dgm_str text);
    void *arg;
    dgm_str source;       /* as dgm_model_request.source; valid until the answer is freed */
    bool keeps_reasoning; /* `opaque` has the reasoning, for dgm_model_request.sends_reasoning */
} dgm_model_handler;

typedef struct dgm_model_answer dgm_model_answer;

/* seed: of ids that the server leaves out; different for each answer of a conversation. */
dgm_model_answer *dgm_model_answer_new(dgm_model_api api, const dgm_model_handler *handler,
                                       uint64_t seed);
void dgm_model_answer_free(dgm_model_answer *m); /* NULL is allowed */

/* One value of the answer as wire/frames found it: an event, the mark [DONE], or the whole answer. Values after the end are
 * ignored. Fails on values that are not of the API (the result is an error then, too), and with what a callback returns. */
dgm_code dgm_model_answer_feed(dgm_model_answer *m, const dgm_frames_item *item, dgm_err *err);
/* There are no more values. An answer without its end becomes the error "incomplete". After this there is a result. */
dgm_code dgm_model_answer_end(dgm_model_answer *m, dgm_err *err);

/* [DONE] or the last event was read: what follows is ignored. */
bool dgm_model_answer_is_over(const dgm_model_answer *m);
/* Text or reasoning was passed on: the request must not be repeated silently. */
bool dgm_model_answer_has_output(const dgm_model_answer *m);
/* Valid until the answer is freed. Before the end: `finish` is DGM_MODEL_UNFINISHED. */
const dgm_model_result *dgm_model_answer_result(const dgm_model_answer *m);

DGM_DEFINE_AUTO(dgm_model_answer, dgm_model_answer_free)

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* An answer with an error status. body: at most 64 KiB of it. Texts are in the arena. retry_after_ms is not set. */
void dgm_model_read_error(dgm_arena *a, int status, dgm_str body, const dgm_model_handler *handler,
                          dgm_model_error *ret);
/* The members of the request that a 400 or 422 with this body rejects: bits of dgm_model_without; 0: others. */
unsigned dgm_model_rejected(int status, dgm_str body);
/* Milliseconds until a request may be repeated: `retry_after` (seconds or an HTTP date) or `retry_after_ms`, the headers'
 * values; absent ones are empty. now: Unix milliseconds. -1: unknown. */
int64_t dgm_model_retry_after(dgm_str retry_after, dgm_str retry_after_ms, int64_t now);
