/*
 * frontend/openai/chat_front_int.h - a chat completion on its way.
 *
 *   chat_front.c    a request: its agent, its conversation, its message         ─► a turn is asked for
 *   chat_answer.c   the turn, told as chunks or as one completion
 */
#pragma once

#include "frontend/turn/turn.h"
#include "wire/output_form.h"

/* One request, in its exchange's arena until the turn has begun. */
struct chat {
    dgm_turn_request q;
    yyjson_val *body;
    dgm_str model; /* as the caller spells it */
    const dgm_turn_agent *agent;
    dgm_canon_input input;
    bool stream, usage;
    dgm_output_form form;
    dgm_str context_id; /* empty: a new conversation */
    bool
        is_found; /* by the question that the request answers: its messages are the conversation's */
    dgm_str question_seed; /* of a request that names no conversation; empty: it names one */
    dgm_str caller_id;     /* "chatcmpl-..." */
    dgm_str message_id;    /* the caller's Idempotency-Key; empty: none */
    dgm_str ignored;       /* names of what is ignored; empty: nothing */
};

/* POST /v1/chat/completions */
void chat_take(const dgm_turn_request *q);

/* Tells the turn that was sent. */
void chat_answer(struct chat *c, const dgm_sent *sent);
