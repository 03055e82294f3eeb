/*
 * model/calls.h - calls that an agent asks its caller to make, and their results: data of messages.
 */
#pragma once

#include "base/arena.h"

#include <dragoman/model.h>

/* Members of a part's data: [{call_id, name, arguments}] of agents, [{call_id, output}] of callers. */
#define DGM_DATA_CALLS "tool_calls"
#define DGM_DATA_RESULTS "tool_results"

/* The caller's own tools, as A2A's callers send them: data with this member only, [{name, description, parameters}]. */
#define DGM_DATA_TOOLS "tools"
/* Is it such a list? Every entry is an object with a name; anything else is ordinary data. */
bool dgm_part_is_tools(const dgm_part *p);
/* The list of the first such part of a user's message; NULL: it has no such part. ret_part: its index. */
const dgm_json *dgm_message_tools(const dgm_message *m, size_t *ret_part);

/* Does a part of the message have such a list that is not empty? Users make no calls: a list of calls in a user's
 * message is ordinary data. */
typedef enum dgm_call_list { DGM_CALLS, DGM_RESULTS } dgm_call_list;
bool dgm_message_has(const dgm_message *m, dgm_call_list which);

/* The ids of its calls, max at most; the list is in the arena, the texts are the message's. Those that are no
 * text, or empty, or longer than DGM_MAX_ID_BYTES are left out. */
dgm_strs dgm_message_call_ids(dgm_arena *a, const dgm_message *m, size_t max);
