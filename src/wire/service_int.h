/*
 * wire/service_int.h - requests for approval of the formats that have their own: openai-responses (items
 * mcp_approval_request and mcp_approval_response) and ai-sdk (tool parts with an approval). AG-UI has interrupts.
 */
#pragma once

#include "wire/service.h"

/* The metadata of a question that holds the service's requests, for the request that answers them. */
#define DGM_SERVICE_APPROVALS "service:approvals"

typedef struct dgm_service_approval {
    dgm_str id;
    dgm_str tool;
    const dgm_json *arguments;
    dgm_str call_id;      /* ai-sdk: the call, by which tool and arguments are found; else empty */
    const dgm_json *item; /* openai-responses: as it came; else NULL */
} dgm_service_approval;

typedef struct dgm_service_approvals {
    dgm_service_approval *at;
    size_t n;
} dgm_service_approvals;

/* ---- the answer: requests for approval ----------------------------------------------------------------------- */

/* openai-responses: is it a request? Then it is added. It is in the arena. */
bool dgm_service_add_approval_item(dgm_service_approvals *list, dgm_arena *a, const dgm_json *item);
/* ai-sdk: the requests in a chunk or in a message. */
void dgm_service_add_approval_parts(dgm_service_approvals *list, dgm_arena *a, yyjson_val *v);
/* The call that it is about. arguments: text. */
void dgm_service_set_approval_call(dgm_service_approval *x, dgm_arena *a, dgm_str tool,
                                   dgm_str arguments);
/* One question for all of them. text: the service's; empty: ours. */
dgm_canon_interrupt *dgm_service_ask_approvals(const dgm_service_approvals *list, dgm_str text,
                                               dgm_arena *a);

/* ---- the request: decisions -------------------------------------------------------------------------------------- */

/* The requests that the message decides about; NULL if it decides about no request. */
yyjson_val *dgm_service_open_approvals(const dgm_service_turn *turn);
/* AG-UI: the payload of `resume` that decides about the request of this id; NULL: the message decides about none. */
const dgm_json *dgm_service_approval_payload(const dgm_service_turn *turn, dgm_arena *a,
                                             dgm_str id);
/* Appends what the format has for the decisions. */
void dgm_service_add_decisions(const dgm_service_turn *turn, dgm_arena *a, yyjson_val *open,
                               dgm_canon_messages *messages);
