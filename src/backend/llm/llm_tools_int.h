/* backend/llm/llm_tools_int.h - between llm_tools.c and the kinds of tools. */
#pragma once

#include "backend/llm/llm_int.h"

/* One call of a tool. */
struct llm_tool_call {
    struct llm_tool_call *next;
    struct llm_job *job; /* NULL: the call waits for an answer, without a run */
    struct llm_agent *agent;
    const struct llm_tool_setting *setting;
    dgm_arena *arena; /* the call */
    dgm_str id, key, name;
    dgm_tool_call *own;  /* exec or http */
    struct llm_sub *sub; /* another agent */
    /* of an MCP server */
    dgm_mcp_call *mcp;
    dgm_str mcp_state;    /* of dgm_mcp_call_handler.on_state; absent: none */
    const dgm_json *form; /* schema of the open question; NULL: none */
    bool is_asking;
    bool has_answer; /* for the next question */
    dgm_llm_answer_kind answer_kind;
    dgm_str answer_text;
    const dgm_json *answer_value;
};

/* The event ends the call, or its question: the call is freed, then the loop gets the event. */
void dgm_llm_tool_finish(struct llm_tool_call *c, const dgm_llm_event *event);

/* The parts of a tool's answer as the result of the call. */
void dgm_llm_set_result_parts(struct llm_tool_call *c, dgm_parts parts, dgm_llm_result *ret);

/* ---- other agents (llm_agents.c) ------------------------------------------------------------------------------ */

extern const char dgm_llm_agent_parameters[]; /* JSON Schema */
void dgm_llm_agent_start(struct llm_tool_call *call, const dgm_llm_tool_run *run);
void dgm_llm_agent_answer(struct llm_tool_call *call, const dgm_llm_answer *answer);
void dgm_llm_agent_stop(struct llm_tool_call *call);
void dgm_llm_agents_done(struct llm_job *j); /* the run ends */

/* ---- tools of MCP servers (llm_mcp.c) --------------------------------------------------------------------------- */

void dgm_llm_mcp_start(struct llm_tool_call *call, const dgm_llm_tool_run *run);
void dgm_llm_mcp_answer(struct llm_tool_call *call, const dgm_llm_answer *answer);
/* false: the call goes on waiting for its answer, and is not the job's any more. */
bool dgm_llm_mcp_stop(struct llm_tool_call *call);
/* The waiting call with this key; it is not in the list any more, and has no job yet. NULL: none. */
struct llm_tool_call *dgm_llm_mcp_find_parked(struct llm_job *j, dgm_str key);
/* Who shares the session of a server with this run. */
dgm_str dgm_llm_mcp_share_key(struct llm_job *j, const dgm_mcp *server, dgm_arena *a);
