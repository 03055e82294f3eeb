/* app/serve/debug.h - the traces of state machines (base/trace.h), for operators. */
#pragma once

#include "app/serve/logger.h"
#include "net/http.h"

bool dgm_debug_is_path(dgm_str path); /* "/debug/..." */

/* Responds to GET /debug/tasks/{id}/trace. False: unknown path; there is no response. The caller has checked the role. */
bool dgm_debug_handle(dgm_loops *loops, dgm_http_exchange *x, const dgm_http_request *q);

/* Writes the last transitions of all machines to the log, oldest first. */
void dgm_debug_log_trace(dgm_loops *loops, dgm_logger *logger);
