/*
 * backend/langgraph/langgraph_int.h - shared by the files of the type langgraph.
 *
 *   langgraph_config.c   the settings; langgraph.json
 *   langgraph_project.c  the project: interpreter, .env, where our packages for workers are
 *   langgraph.c          a run: the mapping (graph_map.h) around a run of a worker (worker/worker.h)
 *   langgraph_recover.c  a run whose worker or server was lost
 */
#pragma once

#include "backend/backend_int.h"
#include "backend/langgraph/graph_map.h"
#include "backend/program.h"
#include "backend/worker/worker.h"

struct langgraph {
    dgm_arena *arena;
    dgm_program program;
    dgm_worker_pool *pool;
    dgm_str graph; /* its name in the worker */
    bool is_v10, exposes_errors, is_durable;
    int64_t recursion_limit;
    const char *durability;
    double timeout;
};

/* langgraph_config.c */
extern const dgm_setting dgm_langgraph_settings[];
dgm_code dgm_langgraph_open(const dgm_json *config, const dgm_agent_options *options,
                            void **ret_agent, dgm_err *err);
void dgm_langgraph_close(void *agent);

/* langgraph_project.c */

/* A path of the settings: relative ones count from the folder. In the arena. */
dgm_str dgm_langgraph_path(dgm_arena *a, dgm_str folder, dgm_str path);
dgm_str dgm_langgraph_folder_of(dgm_arena *a, dgm_str path);
/* Is the file of this graph JavaScript or TypeScript? */
bool dgm_langgraph_is_js(dgm_str spec);
/* The command of the worker: the project's own interpreter, or the one on the PATH. A JSON list. */
const dgm_json *dgm_langgraph_command(dgm_arena *a, dgm_str project, bool is_js);
/* The folder that has our package for workers, python/ or js/; absent: not found. */
dgm_str dgm_langgraph_package(dgm_arena *a, bool is_js);
/* The variables of a .env file and of `own`, which wins, and those that the worker needs: an object of texts. file: may not exist.
 * inherited: PYTHONPATH of the server's environment is added. */
const dgm_json *dgm_langgraph_env(dgm_arena *a, dgm_str file, const dgm_json *listed,
                                  const dgm_json *own, dgm_str package, bool is_js);
/* A whole file, at most max bytes. False: it cannot be read. */
bool dgm_langgraph_read_file(dgm_arena *a, dgm_str path, size_t max, dgm_str *ret);

/* langgraph.c: a run */

struct langgraph_job {
    dgm_run *run;
    struct langgraph *agent;
    dgm_arena *arena;
    dgm_graph_out *out;
    dgm_str thread;
    dgm_graph_plan
        plan; /* kind, resume and human_id, in the arena; input is made when it is sent */
    const dgm_json *metadata; /* of the request, with traceparent */
    const dgm_json *tools;
    dgm_worker_run *worker_run;
    dgm_worker_call *call;
    dgm_timer timeout;
    unsigned attempt;
    bool is_resumed;      /* the server was restarted */
    unsigned n_continued; /* `run` with input null after a loss, by all processes */
    bool has_lost_worker; /* and has continued since: once per process */
    bool continues;       /* the next `run` has input null */
    bool is_timed_out, is_over;
    bool has_failed; /* an event was rejected */
    const char *refusal;
};

/* Sends `run`. */
void dgm_langgraph_send(struct langgraph_job *j);
/* The end: emits the last status. text: safe for callers. */
void dgm_langgraph_fail(struct langgraph_job *j, dgm_task_state state, dgm_str text);
/* The result of `run`, or the one that the state of the thread implies. */
void dgm_langgraph_finish(struct langgraph_job *j, const dgm_json *result);
/* Stores how the run is to be continued. */
void dgm_langgraph_remember(struct langgraph_job *j);

/* langgraph_recover.c: asks the worker for the state of the thread, and goes on from there. */
void dgm_langgraph_recover(struct langgraph_job *j);
