/* app/serve/debug.h - the traces of state machines (base/trace.h), for operators. */
#pragma once

#include "app/serve/logger.h"
#include "frontend/frontend.h"

extern const dgm_frontend dgm_front_debug; /* GET /debug/tasks/{id}/trace */

/* Writes the last transitions of all machines to the log, oldest first. */
void dgm_debug_log_trace(dgm_loops *loops, dgm_logger *logger);
