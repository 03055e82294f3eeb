/*
 * app/serve/router.h - from a request to the handler of its route.
 *
 *   route (frontend/route.h) ─► gate (Host, Origin, CORS) ─► access of the route ─► limit of the body ─► handler
 *
 * It owns the note of every request, and logs and counts the request when it has its answer.
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

/* ---- for the server's own pages ----------------------------------------------------------------------------------- */

dgm_router *dgm_router_of(dgm_http_exchange *x);
const dgm_site *dgm_router_site_of(dgm_http_exchange *x);
dgm_loops *dgm_router_loops(const dgm_router *r);
/* *ret_why: what is missing. */
bool dgm_router_is_ready(dgm_router *r, dgm_arena *a, dgm_str *ret_why);
void dgm_router_put_metrics(dgm_router *r, dgm_arena *a, dgm_buf *out);
/* Refuses like a path that does not exist. From a handler. */
void dgm_router_refuse_path(const dgm_front_request *q);
/* Responds with an error, in the format of the path. */
void dgm_router_refuse_with(dgm_http_exchange *x, dgm_code code, const char *why);
