/*
 * frontend/openai/openai_front.h - agents behind OpenAI's API, below /v1: chat completions, responses, models, files.
 *
 * Nothing is run and nothing is kept here: a completion and a response are turns, told from their task's log.
 */
#pragma once

#include "frontend/turn/turn.h"

extern const dgm_turn_front dgm_front_openai;

/* responses_front.c: /v1/responses... and /v1/conversations..., path "/responses..." (below /v1). False: no path
 * of its. */
bool dgm_responses_take(const dgm_turn_request *q, dgm_str path_below_v1);
