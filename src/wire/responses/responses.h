/*
 * wire/responses/responses.h - OpenAI Responses, `openai-responses`: requests, items, response objects and the
 * whole stream of events; and `responses-simple`, document 000's dialect of it.
 *
 * Items are what a response is made of. Texts become messages, calls that wait for the caller function_call,
 * calls that the agent has made and answered itself mcp_call (clients would try to run anything else),
 * thoughts and progress reasoning. Deltas cannot be taken back: where a text turned out to be another, the
 * `done` events behind it and response.completed have the right one.
 *
 * A2A's ids of the task are stored in the response's metadata: a2a_context_id, a2a_task_id,
 * a2a_task_state.
 */
#pragma once

#include "wire/codec.h"
#include "wire/output_form.h"
#include "json/build.h"
#include "json/check.h"

extern const dgm_codec dgm_codec_responses, dgm_codec_responses_simple;

/* What gets lost. */
extern const dgm_loss_rows dgm_responses_lost_reading, dgm_responses_lost_writing;

/* ---- for a server -------------------------------------------------------------------------------------------- */

/* Checks the body of a request: the types of all known members, the number of entries of their lists, OpenAI's limits for
 * metadata. */
dgm_code dgm_responses_check(yyjson_val *body, const dgm_json_rule *rules, dgm_err *err);
/* POST /v1/responses, /v1/conversations (and /{id}), /v1/conversations/{id}/items */
extern const dgm_json_rule dgm_responses_request_rules[], dgm_responses_conversation_rules[],
    dgm_responses_conversation_items_rules[];
/* Names of what has no effect, for a response header: members, and tools that are not functions. Empty if all have an effect. */
dgm_str dgm_responses_ignored(dgm_arena *a, yyjson_val *body);

/* text.format and tool_choice, of a request or of one that was stored. A choice is refused that is not possible: the error
 * points to it. The tools are in the arena. */
dgm_code dgm_responses_read_output_form(dgm_arena *a, const yyjson_val *request,
                                        dgm_output_form *ret, dgm_err *err);

/* An item of a request as lists and stored requests have it: with id and type, a message also with status and parts.
 * The id of an item without one is made of its type, the scope, the tag and n. Texts are shared with the item. */
void dgm_responses_build_item(dgm_json_build *b, const char *key, const yyjson_val *item,
                              dgm_str scope, const char *tag, size_t n);
/* A list of them; the tag is "i", n their index. */
yyjson_val *dgm_responses_build_items(dgm_arena *a, yyjson_val *const *items, size_t n,
                                      dgm_str scope);
/* The request as it is stored: these items as `input`, and the members that a response repeats. */
yyjson_val *dgm_responses_build_request(dgm_arena *a, const yyjson_val *body,
                                        yyjson_val *const *items, size_t n, dgm_str scope);
/* The members of a stored request that a response repeats, copied into the arena: the `extra` of RUN_STARTED. */
const dgm_extra *dgm_responses_repeated(dgm_arena *a, const yyjson_val *request);

/* Is it the id of a request for approval? It leads to its task, not to a response. */
bool dgm_responses_is_approval_id(dgm_str item_id);

/* ---- lists of items --------------------------------------------------------------------------------------------- */

/* Items as JSON texts, under their ids, the oldest first. */
typedef struct dgm_responses_list {
    dgm_str *items, *ids;
    size_t n;
} dgm_responses_list;
/* One item that has an id. */
void dgm_responses_list_add(dgm_arena *a, dgm_responses_list *list, const yyjson_val *item);
/* The items of a message; the ids of those without one are made of the message's id or the call's. Items that are larger than
 * output_bytes are left out. */
void dgm_responses_list_message(dgm_arena *a, dgm_responses_list *list,
                                const dgm_canon_message *message);

typedef struct dgm_responses_page {
    size_t limit;
    bool ascending;
    dgm_str after;
} dgm_responses_page;
/* The query's `limit`, `order`, `after`; absent: the defaults. */
dgm_code dgm_responses_read_page(dgm_str limit, dgm_str order, dgm_str after,
                                 dgm_responses_page *ret, dgm_err *err);
dgm_code dgm_responses_put_page(dgm_buf *b, const dgm_responses_list *list,
                                const dgm_responses_page *page, dgm_err *err);
