/*
 * app/serve/router.h - where a request goes: past the gate, then by its path to whoever answers.
 *
 *   gate (Host, Origin, CORS) ─► /healthz /readyz /metrics ─► /debug (operators) ─► page, catalog ─► tokens ─► an agent's frontend
 *
 * It keeps the note of every request and logs and counts it when it has its answer.
 */
#pragma once

#include "app/serve/logger.h"
#include "app/serve/site.h"

typedef struct dgm_router dgm_router;

typedef struct dgm_router_options {
    dgm_loops *loops;
    dgm_core *core;
    dgm_store *store;
    dgm_logger *logger;
    const dgm_agents *agents;
} dgm_router_options;

dgm_router *dgm_router_new(const dgm_router_options *o);
void dgm_router_free(dgm_router *r); /* NULL is fine; the loops have been stopped */
dgm_http_handler dgm_router_handler(dgm_router *r);

/* What is served from now on, on every loop: requests that are here keep what they came to. From any thread,
 * one at a time. Takes the config over if all is well; else nothing changes. */
dgm_code dgm_router_use(dgm_router *r, dgm_config *config, dgm_err *err);
/* The one in use; of the thread that calls dgm_router_use. */
const dgm_config *dgm_router_config(const dgm_router *r);

/* Why /readyz is red; NULL: it is not, as far as we know (the store has its own word). A literal. */
void dgm_router_set_reason(dgm_router *r, const char *why_not_ready);
