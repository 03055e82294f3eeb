/*
 * app/inspect/inspect.h - tasks and recorded streams, shown record by record: the paths below /debug/ for the page's inspector.
 *
 * The inspector only reads. Operators can name the owner of a task (?tenant=, ?principal=); other callers read their own tasks
 * if the setting `inspect` allows it. docs/operations.md describes the paths.
 */
#pragma once

#include "frontend/frontend.h"

extern const dgm_frontend dgm_front_inspect;
