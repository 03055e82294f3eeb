/*
 * model/approval.h - what an agent asks its caller: data parts of a message with the state input-required or auth-required.
 *
 *   {"type":"approval-request","id","tool","arguments","call_id"?}        may this tool be called? One part for each call
 *   {"type":"question","id"?,"text","choices"?,"schema"?}                 a question with choices, or for data of a JSON Schema
 *   {"type":"auth-request","id"?,"url"?,"scheme"?,"reason"?}                      sign in at the URL, or with the scheme (auth-required)
 *
 * and what the caller answers to the first one:
 *
 *   {"type":"approval","id"?,"approved","arguments"?,"reason"?}           without id: all requests that are open
 *
 * or a text that is one of the words of dgm_approval_words. A question is answered by text or by any data.
 * Agents, frontends and codecs use only these functions, so that the words and the members have one place.
 */
#pragma once

#include "base/arena.h"

#include <dragoman/model.h>

#define DGM_TYPE_APPROVAL_REQUEST "approval-request"
#define DGM_TYPE_APPROVAL "approval"
#define DGM_TYPE_QUESTION "question"
#define DGM_TYPE_AUTH_REQUEST "auth-request"
#define DGM_TYPE_AUTH_RESPONSE "auth-response"

/* ---- requests for approval ------------------------------------------------------------------------------------- */

typedef struct dgm_approval_request {
    dgm_str id; /* mostly that of the call */
    dgm_str tool;
    const dgm_json *
        arguments; /* of the call: an object; a string if the model's text is not JSON; NULL: absent */
    dgm_str call_id;      /* of the call if `id` is not; may be empty */
    const dgm_json *data; /* that it was read from; NULL: made of the other members */
} dgm_approval_request;

typedef struct dgm_approval_requests {
    dgm_approval_request *at;
    size_t n;
} dgm_approval_requests;

/* The data of a request's part. */
const dgm_json *dgm_approval_request_data(dgm_arena *a, const dgm_approval_request *request);
/* The arguments of a call as a model writes them: an object; or, if the text is not the JSON of one, a string. */
const dgm_json *dgm_approval_arguments(dgm_arena *a, dgm_str text);
/* Is it one? Its texts and values are borrowed from the data. An id of more than DGM_MAX_ID_BYTES makes it none. */
bool dgm_approval_request_read(const dgm_json *data, dgm_approval_request *ret);
bool dgm_part_is_approval_request(const dgm_part *p);
/* Those of a message, DGM_MAX_OPEN_CALLS at most; the list is in the arena, the rest is the message's. */
dgm_approval_requests dgm_message_approval_requests(dgm_arena *a, const dgm_message *m);
/* "May the tool x be called with {...}? Answer yes or no." Long arguments are cut. */
dgm_str dgm_approval_question(dgm_arena *a, const dgm_approval_requests *requests);

/* ---- decisions ---------------------------------------------------------------------------------------------------- */

typedef enum dgm_decision { DGM_UNDECIDED, DGM_APPROVED, DGM_REJECTED } dgm_decision;

typedef struct dgm_approval {
    dgm_str id; /* empty: of all requests */
    dgm_decision decision;
    const dgm_json *arguments; /* that replace those of the call; NULL: they stay */
    dgm_str reason;            /* may be empty */
} dgm_approval;

/* The data of an answer's part. The decision must not be DGM_UNDECIDED. */
const dgm_json *dgm_approval_data(dgm_arena *a, const dgm_approval *approval);
/* Is it one? `approved` must be true or false; `type` may be missing. */
bool dgm_approval_read(const dgm_json *data, dgm_approval *ret);

/* The words that count, in small letters; a text may write them in any case, with spaces around and . or ! behind. */
typedef struct dgm_approval_word {
    const char *word;
    dgm_decision decision;
} dgm_approval_word;
extern const dgm_approval_word dgm_approval_words[]; /* ends with a row of zeros */
dgm_decision dgm_approval_of_text(dgm_str text);

/* The decision of a message about the request of this id: data that names it; else data that names no request; else, if the
 * message has no such data, its text. DGM_UNDECIDED: it has to be asked again. */
dgm_approval dgm_message_approval(dgm_arena *a, const dgm_message *m, dgm_str id);

/* ---- questions, requests to sign in ------------------------------------------------------------------------------- */

typedef struct dgm_question {
    dgm_str text;
    const dgm_json *choices; /* a list of strings, not empty; NULL: any text */
    const dgm_json *schema;  /* an object; NULL: text */
} dgm_question;

const dgm_json *dgm_question_data(dgm_arena *a, const dgm_question *question);
bool dgm_question_read(const dgm_json *data, dgm_question *ret);
/* The first question of a message: the data of its part; NULL: it has none. */
const dgm_json *dgm_message_question(const dgm_message *m, dgm_question *ret);

typedef struct dgm_auth_request {
    dgm_str url;    /* http or https; empty: a scheme */
    dgm_str scheme; /* as the agent's card names it; may be empty */
    dgm_str reason; /* may be empty */
} dgm_auth_request;

const dgm_json *dgm_auth_request_data(dgm_arena *a, const dgm_auth_request *request);
/* A URL of another scheme than http and https is not read: a page makes a link of it. */
bool dgm_auth_request_read(const dgm_json *data, dgm_auth_request *ret);
const dgm_json *dgm_message_auth_request(const dgm_message *m, dgm_auth_request *ret);
/* Does the answer to a question or a request to sign in decline it: one of the words for no, a data part with the member
 * `action` "decline" or "cancel", or a rejection? */
bool dgm_message_declines(dgm_arena *a, const dgm_message *m);
/* The answer to a request to sign in without its content, which may be a credential: one part
 * {"type":"auth-response","action":"accept"|"decline"}, without metadata. */
dgm_message dgm_auth_answer_hidden(dgm_arena *a, const dgm_message *m);
/* The stored request of such an answer (JSON text) without its messages: the member `input` of Responses is empty. */
dgm_str dgm_auth_request_hidden(dgm_arena *a, dgm_str request);

/* ---- as text ---------------------------------------------------------------------------------------------------------- */

/* The interrupts of a graph that a task waits with, as data next to the question: {"interrupts":[{"id","value"}]}. NULL: it is something
 * else. */
#define DGM_DATA_INTERRUPTS "interrupts"
const dgm_json *dgm_part_interrupts(const dgm_part *p);
/* Is the part one of the three that agents ask with? */
bool dgm_part_is_asked(const dgm_part *p);
/* An agent's message for a reader of text: without these parts and without interrupts, and if it has no other text then with the question that they
 * are. m itself if it has no such part. */
const dgm_message *dgm_message_as_shown(dgm_arena *a, const dgm_message *m);
