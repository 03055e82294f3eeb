/*
 * frontend/a2a/a2a_front.h - A2A over HTTP: JSON-RPC and REST, 1.0 and 0.3, on one address.
 *
 *   request ─► route, version, codec ─► core ─► records ─► the caller's dialect ─► response or SSE
 */
#pragma once

#include "core/core.h"
#include "net/http.h"

typedef struct dgm_a2a_front dgm_a2a_front;

typedef struct dgm_a2a_options {
    bool errors_1_0_0;          /* HTTP status and gRPC names by the tables of 1.0.0, not 1.0.1 */
    bool lenient_version;       /* a 1.0 method or route without A2A-Version is served as 1.0 */
    bool only_10;               /* no 0.3 */
    bool keep_open_at_question; /* a stream does not end at input-required */
    uint64_t blocking_ms;       /* how long a blocking send waits; 0: 5 minutes */
    dgm_str card_10;            /* the public card, as 1.0 JSON */
    dgm_str card_03; /* as 0.3 JSON, for callers without A2A-Version; empty: the former */
} dgm_a2a_options;

/* The options' texts are borrowed. */
dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o);
void dgm_a2a_front_free(dgm_a2a_front *f); /* NULL is fine */

/* False: no route of A2A's. On true it is, or will be, answered. path: the request's, below the agent's
 * address ("/", "/tasks/x", ...). */
bool dgm_a2a_front_take(dgm_a2a_front *f, dgm_http_exchange *x, dgm_owner owner, dgm_str agent,
                        dgm_str path);
