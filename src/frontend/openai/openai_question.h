/*
 * frontend/openai/openai_question.h - the task whose question a request answers, where the request names no conversation.
 *
 * Clients of OpenAI send all messages every time and need no id. A question of an agent is an answer to them, and the next
 * request has it as its last assistant message. So when a turn ends with a question, the task is stored under a key:
 * a hash of the agent, `user`, `safety_identifier` and all messages of the turn's request. The next request starts with the
 * same messages; then comes the question, then what answers it.
 *
 *   a turn ends with a question ──► openai_question_keep: key of its request ─► task, turn      (a note, so it survives a restart)
 *   a request ──► openai_question_find: key of the messages before its last answer ─► tasks
 *                 exactly one of them waits, in that turn, with a question that is in that last answer ─► its context
 *
 * Only messages of the user and of the assistant count, without white space: clients join, split and trim texts. Instructions
 * do not count: they may hold the time of day.
 */
#pragma once

#include "frontend/turn/turn.h"

/* The bytes that the key of a request is the hash of: few, however many messages it has. Most turns do not end with a
 * question, so the key itself is made when it is needed. body: the request; n: the first messages that count. In the
 * exchange's arena; empty: openai.continue_questions is off. */
dgm_str dgm_openai_question_seed(const dgm_turn_request *q, const dgm_turn_agent *agent,
                                 const yyjson_val *body, const dgm_canon_messages *messages,
                                 size_t n);

struct openai_question_search {
    const dgm_turn_request *q; /* this, and all that it points to, lives until on_found */
    const dgm_turn_agent *agent;
    const yyjson_val *body;
    const dgm_canon_messages *messages;
    dgm_str protocol,
        caller_id; /* of a request that may have been sent before; empty: it was not */
    /* context_id: of the one task that waits for this request; empty if no task or more than one task waits. */
    void (*on_found)(void *arg, dgm_str context_id);
    void *arg;
};
/* False: the request cannot answer a question, and on_found is not called. */
bool dgm_openai_question_find(const struct openai_question_search *search);

/* A turn that may end with a question. Strings live as long as its exchange. */
struct openai_question {
    dgm_turns *turns;
    dgm_owner owner;
    dgm_str agent, seed,
        task_id; /* seed empty: its question is found by the id of the conversation */
    uint32_t turn;
};
/* The turn has ended with a question. Everything is copied. A request that answers it finds it from now on, even before it is
 * stored. on_kept(arg) when it is, also if it could not be; NULL: the answer is on its way and does not wait. */
void dgm_openai_question_keep(const struct openai_question *question, dgm_loop_fn on_kept,
                              void *arg);
