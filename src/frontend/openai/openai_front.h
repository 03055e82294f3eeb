/*
 * frontend/openai/openai_front.h - agents behind OpenAI's API, below /v1: chat completions, responses, models, files.
 *
 * Nothing is run or stored here: a completion and a response are turns, streamed from their task's log.
 */
#pragma once

#include "frontend/turn/turn.h"

extern const dgm_frontend dgm_front_openai;

/* POST /v1/chat/completions: chat_front.c */
void dgm_chat_create(const dgm_turn_request *q);
/* The stream of a completion. False: the turn was stored without what is needed for it. */
bool dgm_chat_replay(const dgm_turn_replay *replay);

/* The stream of a response. False: it was not stored (`store: false`). */
bool dgm_responses_replay(const dgm_turn_replay *replay);

/* Adds x-request-id to the response, unless the caller sent one: OpenAI's libraries show it with every error, and it is
 * in the log. */
void dgm_openai_name_request(dgm_http_exchange *x);
