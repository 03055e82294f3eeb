/* wire/request_members.h - members of requests that Chat Completions and Responses encode differently. */
#pragma once

#include "wire/codec.h"

/* The id of the first message if it holds the instructions: openai-responses has a member for them. */
#define DGM_REQUEST_INSTRUCTIONS "instructions"

/* Adds a member; NULL adds nothing. */
void dgm_request_set(dgm_arena *a, dgm_extra *x, const char *key, const dgm_json *value);

/* {"type":"function","function":{"name"}} of Chat (nested) and {"type":"function","name"} of Responses. */
const dgm_json *dgm_request_tool_choice(dgm_arena *a, yyjson_val *choice, bool nested);

/* {"type":"json_schema","json_schema":{"name","schema"}} of Chat (nested) and {"type":"json_schema","name","schema"} of
 * Responses. */
const dgm_json *dgm_request_response_format(dgm_arena *a, yyjson_val *format, bool nested);
