/*
 * config/agent_file.h - an agent that is one file of code (agent.py, agent.mjs): its configuration, and how it is run.
 *
 * The file is run by `dragoman worker FILE`, which finds the interpreter and the package `dragoman`, and replaces itself by
 * `python -m dragoman.worker FILE` or `node .../worker.js FILE`.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef enum dgm_agent_language { DGM_AGENT_PYTHON, DGM_AGENT_NODE } dgm_agent_language;

/* spec: FILE or FILE:NAME. DGM_BAD_PARAMS: the file has another ending. ret_file_n: the length of FILE. */
dgm_code dgm_agent_file_language(const char *spec, dgm_agent_language *ret_language,
                                 size_t *ret_file_n, dgm_err *err);

/* True: the text is the name of an agent file, not that of something else. */
bool dgm_agent_file_is(const char *spec);

/* The member `agents` of a configuration: a JSON list with this agent. Its id is the name of the file without its ending. spec:
 * FILE or FILE:NAME; the file must exist. */
dgm_code dgm_agent_file_put_agents(dgm_buf *out, const char *spec, dgm_err *err);

/*
 * Replaces this process by the worker of the file; returns only if that fails. interpreter: NULL: that of the file's .venv, else
 * $VIRTUAL_ENV, else python3; or node.
 */
dgm_code dgm_agent_file_exec(const char *spec, const char *interpreter, dgm_err *err);
