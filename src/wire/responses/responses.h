/*
 * wire/responses/responses.h - OpenAI Responses, `openai-responses`: requests, items, response objects and the
 * whole stream of events; and `responses-simple`, document 000's dialect of it.
 *
 * Items are what a response is made of. Texts become messages, calls that wait for the caller function_call,
 * calls that the agent has made and answered itself mcp_call (clients would try to run anything else),
 * thoughts and progress reasoning. Deltas cannot be taken back: where a text turned out to be another, the
 * `done` events behind it and response.completed have the right one.
 *
 * What A2A needs to find its task again rides in the response's metadata: a2a_context_id, a2a_task_id,
 * a2a_task_state.
 */
#pragma once

#include "wire/canon_codec.h"

extern const dgm_canon_codec dgm_codec_responses, dgm_codec_responses_simple;

/* What gets lost. */
extern const dgm_loss_rows dgm_responses_lost_reading, dgm_responses_lost_writing;
