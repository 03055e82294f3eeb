/* backend/exec/exec_config.c - the settings of an exec agent. */
#include "backend/exec/exec_int.h"
#include "backend/worker/worker_checkpoints.h"
#include "base/limits.h"

#include <stdlib.h>

struct settings {
    dgm_program_settings program;
    int mode, input, output;
    double timeout, grace, start_timeout, hang_timeout;
    int64_t max_processes, max_processes_per_principal; /* 0: not set */
    int64_t processes, max_runs, max_attempts;
    const dgm_json *worker_settings;
};

#define AT(member) offsetof(struct settings, member)

const dgm_setting dgm_exec_settings[] = {
    {"command", DGM_SETTING_COMMAND, AT(program.command), .required = true,
     .about = "the program and its arguments, as a list; text is a line for `/bin/sh`"},
    {"mode", DGM_SETTING_CHOICE, AT(mode), .choices = "process|worker", .def = "process",
     .about =
         "`process`: the program is started for every message; `worker`: it is started once and "
         "serves many messages ([worker protocol](worker-protocol.md))"},
    {"input", DGM_SETTING_CHOICE, AT(input), .choices = "json|text", .def = "json",
     .about = "`json`: one line as described below; `text`: the text of the message, and files are "
              "rejected"},
    {"output", DGM_SETTING_CHOICE, AT(output), .choices = "json|text", .def = "json",
     .about = "`json`: one event per line; `text`: the answer, each line is sent as it is written"},
    {"timeout", DGM_SETTING_NUMBER, AT(timeout), .min = 0.01, .max = 86400, .def = "300",
     .about =
         "seconds that it may work on a message; then it is killed (a worker: asked to cancel) and "
         "the task fails"},
    {"grace", DGM_SETTING_NUMBER, AT(grace), .max = 60, .def = "2",
     .about =
         "seconds between SIGTERM and SIGKILL, and for it to exit after its last event; a worker "
         "has them to finish its runs before SIGTERM"},
    DGM_PROGRAM_SETTINGS(struct settings, program),
    {"max_processes", DGM_SETTING_INT, AT(max_processes), .min = 1, .max = 10000, .def = "64",
     .about = "how many of its processes may run at the same time; more are rejected"},
    {"max_processes_per_principal", DGM_SETTING_INT, AT(max_processes_per_principal), .min = 1,
     .max = 10000, .def = "half of `max_processes`",
     .about = "how many of these one principal may use; callers without a token are not limited"},
    {"processes", DGM_SETTING_INT, AT(processes), .min = 1, .max = 64, .def = "1",
     .about =
         "`mode: worker`: how many processes are started; a conversation stays with one of them"},
    {"max_runs", DGM_SETTING_INT, AT(max_runs), .min = 1, .max = DGM_MAX_WORKER_RUNS,
     .def = "what the worker allows",
     .about = "`mode: worker`: messages that one process works on at the same time; more wait"},
    {"max_attempts", DGM_SETTING_INT, AT(max_attempts), .min = 1, .max = 10, .def = "3",
     .about =
         "`mode: worker`: how often a message is given to the worker if the process or the server "
         "ends while it works; with 1 such a task fails"},
    {"start_timeout", DGM_SETTING_NUMBER, AT(start_timeout), .min = 0.1, .max = 3600, .def = "120",
     .about = "`mode: worker`: seconds that the process may take to load its code"},
    {"hang_timeout", DGM_SETTING_NUMBER, AT(hang_timeout), .min = 0.1, .max = 86400, .def = "120",
     .about = "`mode: worker`: seconds without any line from the process; then it is killed"},
    {"worker_settings", DGM_SETTING_JSON, AT(worker_settings), .def = "{}",
     .about = "`mode: worker`: an object that the worker gets as `settings` of `initialize`"},
    {0},
};
#undef AT

enum exec_mode { EXEC_PROCESS, EXEC_WORKER };

static dgm_code open_worker(struct exec *x, const struct settings *s,
                            const dgm_agent_options *options, dgm_err *err)
{
    dgm_buf b;
    if (x->input == EXEC_TEXT || x->output == EXEC_TEXT)
        return dgm_fail(err, DGM_BAD_PARAMS,
                        x->input == EXEC_TEXT ? DGM_AT_LIT(NULL, "input")
                                              : DGM_AT_LIT(NULL, "output"),
                        "a worker reads and writes JSON: remove this setting, or mode: worker");
    dgm_buf_init(&b, SIZE_MAX); /* bounded by the size of the configuration */
    dgm_buf_add_lit(&b, ",\"checkpointer\":\"worker\",\"settings\":");
    if (s->worker_settings)
        dgm_json_put(&b, s->worker_settings);
    else
        dgm_buf_add_lit(&b, "{}");
    x->max_attempts = (unsigned)s->max_attempts;
    x->pool = dgm_worker_pool_open(
        &(dgm_worker_options){.argv = x->program.argv,
                              .env = x->program.env,
                              .n_env = x->program.n_env,
                              .cwd = x->program.cwd,
                              .agent = options,
                              .initialize = dgm_buf_str(&b),
                              .processes = (size_t)s->processes,
                              .max_runs = (size_t)s->max_runs,
                              .start_timeout = s->start_timeout,
                              .hang_timeout = s->hang_timeout,
                              .grace = x->grace,
                              .service = dgm_worker_checkpoints(options->checkpoints)});
    dgm_buf_done(&b);
    return DGM_OK;
}

dgm_code dgm_exec_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                       dgm_err *err)
{
    struct settings s = {.timeout = 300,
                         .grace = 2,
                         .max_processes = DGM_MAX_PROCESSES,
                         .processes = 1,
                         .max_attempts = 3};
    dgm_code rc = dgm_settings_read(config, dgm_exec_settings, &s, err);
    if (rc)
        return rc;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct exec *x = dgm_new(a, struct exec);
    x->arena = a;
    x->input = s.input;
    x->output = s.output;
    x->timeout = s.timeout;
    x->grace = s.grace;
    x->max_processes = (size_t)s.max_processes;
    x->max_processes_per_principal = s.max_processes_per_principal
                                         ? (size_t)s.max_processes_per_principal
                                         : (x->max_processes + 1) / 2;
    if ((rc = dgm_program_open(&s.program, options, a, &x->program, err)))
        return rc;
    x->id = dgm_arena_dup(a, options && options->id.p ? options->id : DGM_STR(""));
    if (options)
        x->working_message = dgm_arena_dup(a, options->working_message);
    if (s.mode == EXEC_WORKER && (rc = open_worker(x, &s, options, err)))
        return rc;
    pthread_mutex_init(&x->lock, NULL);
    (void)dgm_take(a); /* x lives in it */
    *ret_agent = x;
    return DGM_OK;
}

void dgm_exec_close(void *agent)
{
    struct exec *x = agent;
    dgm_worker_pool_close(x->pool);
    pthread_mutex_destroy(&x->lock);
    dgm_arena_free(x->arena);
}
