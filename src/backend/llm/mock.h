/*
 * backend/llm/mock.h - the scripted model: answers requests of Chat Completions without a network.
 *
 * It gets the body of a request and returns the bytes that a server would send: a status, then server-sent events with the
 * time to wait before each. So everything except the socket is the same as with a server. It is pure: the same request has
 * the same answer. `model: mock:` or `base_url: "mock:"` selects it; `api` must be chat.
 *
 * The first word of the last user message selects the script; upper and lower case are the same:
 *
 *   call NAME {JSON}         one call of the tool NAME; the arguments may be left out. Several lines, or `call A {..} call B {..}`:
 *                            parallel calls in one answer
 *   ask TEXT                 calls the tool ask_user with {"question": TEXT}
 *   think TEXT               reasoning, then TEXT as the answer
 *   slow N TEXT              one word at a time, N milliseconds between them (N: 50 if left out)
 *   echo TEXT                TEXT
 *   long N                   N words
 *   refuse [TEXT]            a refusal
 *   filter                   ends with content_filter
 *   length TEXT              TEXT, then finish_reason length
 *   json TEXT                an object, {"answer": TEXT}, or one that fits the schema in response_format
 *   error STATUS [TEXT]      an HTTP error; 429 and 503 have a Retry-After of 0 s
 *   fail TEXT                an error in the middle of the stream
 *   cut TEXT                 TEXT, then the connection is lost
 *   silent                   an empty answer
 *   hang                     nothing for an hour
 *   anything else            JSON, if response_format asks for it; else, if a word of it is in the name or the description of a
 *                            tool, that tool is called with arguments that fit its schema; else a greeting that repeats the text
 *
 * `first` in front of a script (`first error 500`, `first cut Hello`): only for the first attempt; later ones get a text.
 * If results of tools follow the last user message, the answer is a sentence that contains them. One message can ask for
 * several rounds: `call a {} then call b {} then echo done`.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Does it name the scripted model: "mock:" or "mock:..."? */
bool dgm_mock_is(dgm_str model_or_url);

typedef struct dgm_mock dgm_mock;

typedef struct dgm_mock_step {
    uint32_t wait_ms; /* before this step */
    dgm_str bytes;    /* of the body; valid until the next call */
    bool is_end;      /* nothing follows: the connection is closed in order */
    bool is_cut;      /* nothing follows: the connection is lost */
} dgm_mock_step;

/* body: of a Chat Completions request. attempt: 0 for the first, 1 when it is repeated, ... It never fails: an invalid
 * request gets an answer with status 400. */
dgm_mock *dgm_mock_new(dgm_str body, unsigned attempt);
void dgm_mock_free(dgm_mock *m); /* NULL is allowed */

int dgm_mock_status(const dgm_mock *m);          /* 200, or an error's */
bool dgm_mock_is_stream(const dgm_mock *m);      /* text/event-stream; otherwise application/json */
dgm_str dgm_mock_retry_after(const dgm_mock *m); /* the header's value; empty: it has none */

/* The next step; after one with is_end or is_cut it must not be called. */
void dgm_mock_next(dgm_mock *m, dgm_mock_step *ret);

DGM_DEFINE_AUTO(dgm_mock, dgm_mock_free)
