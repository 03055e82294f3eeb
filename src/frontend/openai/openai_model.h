/*
 * frontend/openai/openai_model.h - agents as models, by the names of dgm_turns_find_agent.
 *
 * At /agents/ID/v1/... it is that agent whatever the model is called, for clients that cannot choose one. Responses
 * repeat the name of the request.
 */
#pragma once

#include "frontend/turn/turn.h"

/* The agent that a request is for. */
static inline const dgm_turn_agent *openai_model_find(const dgm_turn_request *q, dgm_str model)
{
    return q->agent ? q->agent : dgm_turns_find_agent(&q->turns->o, q->owner.tenant, model);
}
/* May it call a tool of its caller, or produce data that can be the arguments of one (wire/output_form.h)? */
bool dgm_openai_looks_at_tools(const dgm_turn_agent *agent);
/* The names of ignored members ("temperature, user") without those that this agent passes on to its model. */
dgm_str dgm_openai_ignored(dgm_arena *a, const dgm_turn_agent *agent, const yyjson_val *body,
                           dgm_str names);
/* 400: it does not, and one is to be called. param: "tool_choice". */
void dgm_openai_fail_tools(dgm_http_exchange *x, const char *param);
/* 404. The message lists the agents. */
void dgm_openai_fail_model(const dgm_turn_request *q, dgm_str model);

/* GET /v1/models, /v1/models/ID (not decoded yet). */
void dgm_openai_model_list(const dgm_turn_request *q);
void dgm_openai_model_send(const dgm_turn_request *q, dgm_str raw_id);
