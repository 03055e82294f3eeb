/*
 * app/mcp/mcp_work.h - one MCP server, used from the main thread: each function waits until the server has answered.
 */
#pragma once

#include "mcp/mcp.h"

#include <stdbool.h>

typedef struct dgm_mcp_work {
    dgm_loops *loops;
    dgm_mcp *mcp;
    uv_sem_t done;
    /* The answer to a question of the server: JSON of an object; NULL: the user declines. May be NULL. */
    const char *(*on_ask)(void *user, const dgm_mcp_ask *ask);
    void *user;
    /* of the last list or call, in the arena */
    dgm_arena *arena;
    dgm_mcp_tools tools;
    dgm_mcp_result result;
    dgm_mcp_error error; /* code DGM_OK: it went well */
    /* of the call that runs */
    dgm_mcp_call_options options;
    dgm_mcp_call *call;
    bool shows_progress; /* on standard error */
} dgm_mcp_work;

/* Takes the server over. */
dgm_code dgm_mcp_work_start(dgm_mcp_work *w, dgm_mcp *mcp, dgm_err *err);
void dgm_mcp_work_stop(dgm_mcp_work *w);

/* false: w->error. */
bool dgm_mcp_work_list(dgm_mcp_work *w);
bool dgm_mcp_work_call(dgm_mcp_work *w, dgm_str tool, const dgm_json *arguments);
