/*
 * app/serve/pages.h - the server's own pages: health, readiness, metrics; the index, the page and the catalog of agents.
 */
#pragma once

#include "app/serve/logger.h"
#include "app/serve/site.h"

extern const dgm_frontend dgm_front_operations, dgm_front_page, dgm_front_catalog;
extern const dgm_frontend dgm_front_debug; /* GET /debug/tasks/{id}/trace */

/* Writes the last transitions of all state machines (base/trace.h) to the log, oldest first. */
void dgm_debug_log_trace(dgm_loops *loops, dgm_logger *logger);

/* The error for a path below "/agents/" whose agent does not exist. It lists the agents. In the arena. */
const char *dgm_pages_unknown_agent(const dgm_site *s, dgm_arena *a, dgm_str id);

void dgm_pages_refuse_method(const dgm_front_request *q, const char *allow); /* 405 without text */

/* {"status":"ok"} and the like: JSON that is not to be cached. */
void dgm_pages_respond(dgm_http_exchange *x, int status, dgm_str json);
