/*
 * frontend/openai/openai_errors.h - refusals as OpenAI's clients know them: {"error":{message,type,param,code}}.
 *
 * Clients try again by status: 408, 409, 429 and 5xx up to three times in all. An agent that ran is never
 * answered with one of those, or it would run again: see openai_error_of_end.
 */
#pragma once

#include "frontend/turn/turn.h"
#include "wire/output_form.h"

enum openai_retry {
    OPENAI_RETRY_BY_STATUS, /* without a header */
    OPENAI_RETRY,
    OPENAI_RETRY_NEVER
};

struct openai_error {
    int http;
    const char *type;
    dgm_str code, param; /* absent: null */
    dgm_str message;
    enum openai_retry should_retry;
    int retry_after; /* seconds; 0: without the header */
};

/* The body. */
void dgm_openai_put_error(dgm_buf *out, const struct openai_error *e);

/* Answers the exchange. */
void dgm_openai_fail(dgm_http_exchange *x, const struct openai_error *e);
void dgm_openai_fail_with(dgm_http_exchange *x, const struct openai_error *e,
                          const dgm_http_header *headers, size_t n);

/* 400 about a parameter: "n", "tools[0].type". */
void dgm_openai_fail_param(dgm_http_exchange *x, const char *code, const char *param,
                           const char *fmt, ...) DGM_PRINTF(4, 5);
/* 405. allow: "GET, HEAD". */
void dgm_openai_fail_method(dgm_http_exchange *x, const char *allow);

/* What went wrong on our side of the agent. body: what was read, so that a missing member differs from one that is
 * wrong; NULL: not known. Texts live in the arena. */
struct openai_error dgm_openai_error_of(dgm_arena *a, const dgm_err *err, yyjson_val *body);
void dgm_openai_fail_err(dgm_http_exchange *x, const dgm_err *err, yyjson_val *body);

/* A pointer as OpenAI names parameters: /messages/0/content is messages[0].content. */
dgm_str dgm_openai_param(dgm_arena *a, const char *pointer);

/* How a run that had begun ended without an answer: code and message of RUN_ERROR; `canceled` for an outcome of
 * that kind. Never to be tried again. Borrows both. */
struct openai_error dgm_openai_error_of_end(dgm_str code, dgm_str message);

/* ---- how runs end ---------------------------------------------------------------------------------------------- */

/* How a turn ended: the status and the headers of an answer that is one body. */
struct openai_end {
    const char *state;          /* of the task; NULL: it has not ended */
    bool failed;                /* or was canceled: the answer is an error */
    const char *code, *message; /* why */
    bool is_question;
    /* An agent that waits and does not say for what: clients show an answer, and this would be an empty one. */
    bool lacks_question;
};
/* Of the event that ends the run. Texts live as long as the exchange. */
void dgm_openai_end_note(dgm_http_exchange *x, struct openai_end *end,
                         const dgm_canon_event *event);

/* The state that the task has then: "completed", "input-required", ... Of RUN_FINISHED and RUN_ERROR. */
const char *dgm_openai_state_of(const dgm_canon_event *end);

/* Emits a question in its place, before that event. */
dgm_code dgm_openai_ask(dgm_output *output, const dgm_canon_event *end, dgm_canon_sink next);
/* Is this such a question? */
bool dgm_openai_is_our_question(dgm_str text);
dgm_str dgm_openai_our_question(bool auth);
