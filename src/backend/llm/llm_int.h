/*
 * backend/llm/llm_int.h - what the files of the type llm share.
 *
 *   llm_config.c  the settings, opened once            llm.c        a run: events to the loop, its actions to the others
 *   llm_model.c   one call of a model                  llm_tools.c  the tools of a run, and their calls
 *   llm_agents.c  other agents as tools
 *
 * A run has a job. Its loop (loop/llm_loop.h) decides; these files only carry out. A callback of a model, a tool or a timer
 * becomes one event: dgm_llm_job_step(). The job may be over when that returns.
 */
#pragma once

#include "backend/llm/tool.h"
#include "backend/remote/remote.h"
#include "loop/llm_loop.h"
#include "mcp/mcp.h"
#include "wire/model_call.h"

#include <stdatomic.h>

/* ---- the agent -------------------------------------------------------------------------------------------------- */

/* A server that has the model. */
struct llm_upstream {
    dgm_remote remote; /* its url: base_url */
    dgm_str model;
    int api;     /* dgm_model_api */
    dgm_str url; /* of the calls */
    dgm_str
        source; /* this and the model: signatures of another server's answers are not sent to it */
    int send_reasoning;
    bool is_mock;
    atomic_uint without; /* members that it rejected: bits of dgm_model_without */
};

enum llm_tool_type { LLM_TOOL_OWN, LLM_TOOL_MCP, LLM_TOOL_LOCAL_AGENT, LLM_TOOL_REMOTE_AGENT };

/* An entry of the setting `tools`. */
struct llm_tool_setting {
    enum llm_tool_type type;
    dgm_str name, description;
    dgm_tool *tool;       /* exec or http */
    dgm_mcp *mcp;         /* a server: its tools are listed by each run */
    const dgm_json *only; /* of a server: names of its tools; NULL: all */
    dgm_str agent;        /* its id or URL */
    void *remote;         /* opened agent of the type a2a */
};

/* A setting that is a word or a list of names. */
struct llm_names {
    bool all;
    dgm_strs names;
};

struct llm_agent {
    struct llm_upstream *upstreams;
    size_t n_upstreams;
    dgm_str instructions;
    const dgm_json *parameters;
    struct llm_tool_setting *tools;
    size_t n_tools;
    struct llm_names approve, forbid;
    dgm_llm_options loop; /* without tools and check */
    double max_time;
    bool ask_user, request_auth;
    struct llm_tool_call
        *parked[DGM_MAX_LOOPS]; /* calls that wait for an answer; each list is of its loop alone */
    dgm_arena *arena;
};

extern const dgm_setting dgm_llm_settings[];

dgm_code dgm_llm_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                      dgm_err *err);
void dgm_llm_close(void *agent);

/* ---- a run -------------------------------------------------------------------------------------------------------- */

struct llm_model_call;
struct llm_tool_call;

/* A tool of one run. */
struct llm_tool {
    dgm_canon_tool definition;
    dgm_llm_tool rule;
    const struct llm_tool_setting *setting; /* NULL: the caller's, or built in */
};

struct llm_job {
    dgm_run *run;
    struct llm_agent *agent;
    dgm_llm_loop *loop; /* NULL: not started */
    dgm_arena *arena;   /* the job and its tools */
    const dgm_message *message;
    /* The members of the request's metadata that the model gets; stored with the state of the loop. NULL: none */
    const dgm_json *caller;
    dgm_str state; /* of the loop, stored by an earlier run; absent: none */
    struct llm_tool *tools;
    size_t n_tools;
    struct llm_listing *listings; /* of MCP servers that have not answered */
    void (*on_tools)(struct llm_job *j);
    struct llm_model_call *model;
    struct llm_tool_call *calls;
    struct llm_sub *left_subs; /* invoked agents that were asked to stop */
    dgm_timer wait, limit, soon;
    struct llm_later *later; /* events that wait for the end of a step, in order */
    unsigned n_held;         /* callbacks and steps that run: the job ends behind the last one */
    bool is_loaded, is_over, is_ended;
    bool has_failed; /* an event was rejected */
    dgm_err err; /* of that event; in the job, since each token would have to clear another one */
};

/* A callback that may end the job holds it (n_held++), and releases it when it returns. */
void dgm_llm_job_release(struct llm_job *j);
/* Feeds one event, then those that it has caused. The job may be over behind it: a caller that goes on holds the job. */
void dgm_llm_job_step(struct llm_job *j, const dgm_llm_event *event);
/* From inside a step: the call has failed already. Texts are copied. */
void dgm_llm_job_tool_failed(struct llm_job *j, dgm_str call_id, dgm_str why);
/* The same: it is not known whether the tool did its work. */
void dgm_llm_job_tool_unknown(struct llm_job *j, dgm_str call_id);

/* ---- the model ------------------------------------------------------------------------------------------------------ */

/* Its events follow later. One at a time. */
void dgm_llm_model_start(struct llm_job *j, const dgm_llm_model *model);
void dgm_llm_model_stop(
    struct llm_job *j); /* no event follows; also from inside one. Without a call: a no-op */

/* ---- tools ---------------------------------------------------------------------------------------------------------- */

/* Collects the tools of the run; on_tools later, or at once if no server has to be asked. */
void dgm_llm_tools_find(struct llm_job *j, void (*on_tools)(struct llm_job *j));
dgm_llm_tools dgm_llm_tools_rules(struct llm_job *j, dgm_arena *a);
dgm_canon_tools dgm_llm_tools_definitions(struct llm_job *j, dgm_arena *a);
/* dgm_llm_options.check */
bool dgm_llm_tools_check(void *job, dgm_str tool, const dgm_json *arguments, dgm_arena *a,
                         dgm_str *ret_why);
void dgm_llm_tool_start(struct llm_job *j, const dgm_llm_tool_run *run);
void dgm_llm_tool_answer(struct llm_job *j, const dgm_llm_answer *answer);
void dgm_llm_tool_stop(struct llm_job *j, dgm_str call_id);
void dgm_llm_tools_stop(struct llm_job *j); /* all of them, and listings */
