/*
 * config/langgraph_file.h - a LangGraph project without a configuration of its own: `dragoman serve --langgraph FILE`.
 *
 * FILE is langgraph.json, or aion.yaml. Each of its graphs is an agent; the first is the default.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The member `agents` of a configuration: a JSON list. */
dgm_code dgm_langgraph_file_put_agents(dgm_buf *out, const char *file, dgm_err *err);
