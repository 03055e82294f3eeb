/*
 * frontend/openai/responses_front_int.h - one request for responses or conversations on its way.
 *
 *   responses_front.c          one request: its settings, its ids, its errors
 *   responses_front_refs.c     references to items of earlier responses
 *   responses_front_chain.c    where it goes on: previous_response_id, conversation
 *   responses_front_create.c   POST /v1/responses: asks the agent
 *   responses_front_stream.c     a turn as a response: streamed, whole, as far as it is
 *   responses_front_stored.c   GET, cancel, DELETE, input_items: responses by their ids
 *   conversations_front.c      /v1/conversations                      (conversations_front_items.c: their items)
 *
 * A response is a turn by its caller's id, resp_SCOPE; ids of items are made of the scope and a number, so that they
 * lead back to it. What has to be known of it later is the turn's `request`: the request as it was understood, with
 * its items under ids. A conversation is a context; what was put into it by hand is a note.
 */
#pragma once

#include "base/limits.h"
#include "canon/message_content.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"
#include "frontend/openai/openai_front.h"
#include "frontend/openai/openai_model.h"
#include "frontend/openai/openai_session.h"
#include "wire/responses/responses.h"

#define RESPONSES_PROTOCOL "openai-responses" /* of turns */

/* Notes. */
#define RESPONSES_DELETED "response-deleted"
#define RESPONSES_CONVERSATION "conversation"

/* Lives in the exchange's arena, until it is answered or a stream has taken over. */
struct responses_op {
    dgm_turn_request q;
    dgm_http_exchange *x;
    dgm_arena *arena;
    dgm_core *core;
    yyjson_val *body;
    dgm_str id;   /* that the path names, of a response or a conversation */
    dgm_str item; /* likewise, of an item */
};

/* ---- responses_front.c -------------------------------------------------------------------------------------------- */

struct responses_op *dgm_responses_new_op(const dgm_front_request *q);
void dgm_responses_fail(struct responses_op *op,
                        const dgm_err *err); /* the pointer is one into the body */
/* 404: "Response with id 'resp_x' not found." */
void dgm_responses_fail_missing(struct responses_op *op, const char *what, dgm_str id);
void dgm_responses_respond(struct responses_op *op, dgm_str json);
/* The body as JSON, an object. False: it was answered. */
bool dgm_responses_read_body(struct responses_op *op, const dgm_json_rule *rules);

/* What a request says. */
struct responses_asked {
    dgm_str model;
    dgm_str previous, conversation; /* absent: none */
    bool stream, background, store;
    dgm_str scope, id;  /* of the response that it will be */
    yyjson_val **items; /* of the input; references are replaced by what they refer to */
    size_t n_items;
    dgm_output_form form;
};

/* Of a body that was checked. */
dgm_code dgm_responses_read_asked(dgm_arena *a, yyjson_val *body, struct responses_asked *ret,
                                  dgm_err *err);
/* The response that an item's id leads to, resp_SCOPE; absent: it leads nowhere. */
dgm_str dgm_responses_of_item(dgm_arena *a, dgm_str item_id);
/* A new one: 32 hexadecimal digits that ascend. */
dgm_str dgm_responses_new_scope(dgm_arena *a);

/* ---- responses_front_stream.c --------------------------------------------------------------------------------------------- */

/* A turn that is a response. Strings are copied when it is streamed. */
struct responses_turn {
    dgm_str id, agent, task_id, context_id;
    const yyjson_val *request; /* as it is stored; NULL: it is not stored */
    dgm_output_form form;
    dgm_log *log;
    uint64_t first_seq;
    /* Of a turn whose stream goes to the caller who started it. question_seed: see openai_question.h; empty: it is not needed. */
    dgm_str question_seed;
    uint32_t turn;
    const dgm_turn_tap *tap; /* of a replay; NULL: a client */
};
/* request: in the arena. */
struct responses_turn dgm_responses_turn_of(dgm_arena *a, dgm_str id, const dgm_found_turn *found);

/* Answers with events; after: how many of them are known. began: the turn, if this caller began it. */
void dgm_responses_stream(struct responses_op *op, const struct responses_turn *t, uint64_t after,
                          uint32_t began, dgm_str ignored);
/* Answers with the response when it is over. */
void dgm_responses_wait(struct responses_op *op, const struct responses_turn *t, uint32_t began,
                        dgm_str ignored);
/* Answers with the response as far as it is. */
void dgm_responses_send_state(struct responses_op *op, const struct responses_turn *t,
                              dgm_str ignored);
/* The response as far as it is, in the arena, to be read again; absent: it cannot be read, or it is larger than
 * DGM_MAX_OBJECT_BYTES. */
dgm_str dgm_responses_so_far(struct responses_op *op, const struct responses_turn *t, dgm_arena *a);
yyjson_val *dgm_responses_read_text(dgm_arena *a,
                                    dgm_str text); /* NULL: it is absent, or too deep */

/* ---- responses_front_stored.c ----------------------------------------------------------------------------------------------- */

/* found is NULL if it does not exist (any more). Other faults are answered and this is not called. */
typedef void (*responses_on_found)(void *arg, const dgm_found_turn *found);
void dgm_responses_find(struct responses_op *op, dgm_str id, responses_on_found on_found,
                        void *arg);

void dgm_responses_retrieve(const dgm_front_request *q);
void dgm_responses_delete(const dgm_front_request *q);
void dgm_responses_cancel(const dgm_front_request *q);
void dgm_responses_input_items(const dgm_front_request *q);

/* ---- responses_front_refs.c, responses_front_chain.c, responses_front_create.c ------------------------------------------------- */

/* How much the place takes where the items go, and the name of that limit. */
struct responses_room {
    size_t bytes;
    const char *limit;
};

/* Replaces references in items. done is not called when the request was answered: there is no such item, or the items
 * do not fit into room. */
typedef void (*responses_on_done)(void *arg);
void dgm_responses_resolve(struct responses_op *op, yyjson_val **items, size_t n, const char *param,
                           struct responses_room room, responses_on_done done, void *arg);

/* Where a request goes on. */
struct responses_place {
    dgm_str task_id;    /* that waits for it; empty: found by itself */
    dgm_str context_id; /* empty: nowhere */
    bool has_history;   /* what came before is known there */
    bool may_fork;      /* unless the messages before say otherwise: then it is left alone */
    yyjson_val **items; /* what came before and is not known there, in order */
    size_t n_items;
};
typedef void (*responses_on_place)(void *arg, const struct responses_place *place);
/* Not called when it was answered: there is no such response or conversation. */
void dgm_responses_find_place(struct responses_op *op, const struct responses_asked *asked,
                              const dgm_turn_agent *agent, responses_on_place on_place, void *arg);

void dgm_responses_create(const dgm_front_request *q);

/* Answers with the page that the query asks for. The hold, which may be NULL, is released when it was sent. */
void dgm_responses_send_page(struct responses_op *op, const dgm_responses_list *list,
                             dgm_turn_hold *hold);

/* ---- conversations_front.c, conversations_front_items.c ------------------------------------------------------------------------ */

/* What is kept of a conversation beside its tasks. */
struct conversation {
    dgm_str id;
    int64_t created_s;
    yyjson_val *metadata; /* an object; NULL: empty */
    yyjson_val *added;    /* [{after: id of the message before, item}]; NULL: none */
    yyjson_val *gone;     /* ids of items that were deleted; NULL: none */
};
/* Not called when it was answered. */
typedef void (*conversation_on_found)(void *arg, const struct conversation *c);
/* param: of the request that names it; NULL: the path does. */
void dgm_conversation_find(struct responses_op *op, dgm_str id, const char *param,
                           conversation_on_found on_found, void *arg);
/* What was added behind the message of this id, or behind all of them; to be sent to the agent. */
void dgm_conversation_added_since(dgm_arena *a, const struct conversation *c, dgm_str last_message,
                                  yyjson_val ***ret_items, size_t *ret_n);
/* Stores it. done is not called when the request was answered: it is too large, or the store failed. */
void dgm_conversation_keep(struct responses_op *op, const struct conversation *c,
                           responses_on_done done, void *arg);

void dgm_conversation_respond(struct responses_op *op, const struct conversation *c);

/* `items` of a body, as a list that references can be replaced in. */
void dgm_conversation_items_of(dgm_arena *a, yyjson_val *body, yyjson_val ***ret_items,
                               size_t *ret_n);
/* False: they cannot be read as messages, and the exchange has its response. */
bool dgm_conversation_can_take(struct responses_op *op, yyjson_val *const *items, size_t n);
/* What was put in, and these behind the message of that id. */
yyjson_val *dgm_conversation_with(dgm_arena *a, yyjson_val *added, yyjson_val **items,
                                  size_t n_items, dgm_str last_message);
/* All items: those of the messages, and added ones. */
dgm_responses_list dgm_conversation_items(dgm_arena *a, const struct conversation *c,
                                          const dgm_canon_messages *said);

void dgm_conversation_create(const dgm_front_request *q);
void dgm_conversation_get(const dgm_front_request *q);
void dgm_conversation_update(const dgm_front_request *q);
void dgm_conversation_delete(const dgm_front_request *q);
void dgm_conversation_list_items(const dgm_front_request *q);
void dgm_conversation_add_items(const dgm_front_request *q);
void dgm_conversation_get_item(const dgm_front_request *q);
void dgm_conversation_delete_item(const dgm_front_request *q);
