/* backend/exec/exec_config.c - the settings of an exec agent. */
#include "backend/exec/exec_int.h"
#include "base/limits.h"

#include <stdlib.h>

struct settings {
    dgm_program_settings program;
    int input, output;
    double timeout, grace;
    int64_t max_processes, max_processes_per_principal; /* 0: not set */
};

#define AT(member) offsetof(struct settings, member)

const dgm_setting dgm_exec_settings[] = {
    {"command", DGM_SETTING_COMMAND, AT(program.command), .required = true,
     .about = "the program and its arguments, as a list; text is a line for `/bin/sh`"},
    {"input", DGM_SETTING_CHOICE, AT(input), .choices = "json|text", .def = "json",
     .about = "`json`: one line as described below; `text`: the text of the message, and files are "
              "rejected"},
    {"output", DGM_SETTING_CHOICE, AT(output), .choices = "json|text", .def = "json",
     .about = "`json`: one event per line; `text`: the answer, each line is sent as it is written"},
    {"timeout", DGM_SETTING_NUMBER, AT(timeout), .min = 0.01, .max = 86400, .def = "300",
     .about = "seconds that it may run; then it is killed and the task fails"},
    {"grace", DGM_SETTING_NUMBER, AT(grace), .max = 60, .def = "2",
     .about = "seconds between SIGTERM and SIGKILL, and for it to exit after its last event"},
    DGM_PROGRAM_SETTINGS(struct settings, program),
    {"max_processes", DGM_SETTING_INT, AT(max_processes), .min = 1, .max = 10000, .def = "64",
     .about = "how many of its processes may run at the same time; more are rejected"},
    {"max_processes_per_principal", DGM_SETTING_INT, AT(max_processes_per_principal), .min = 1,
     .max = 10000, .def = "half of `max_processes`",
     .about = "how many of these one principal may use; callers without a token are not limited"},
    {0},
};
#undef AT

dgm_code dgm_exec_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                       dgm_err *err)
{
    struct settings s = {.timeout = 300, .grace = 2, .max_processes = DGM_MAX_PROCESSES};
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
    pthread_mutex_init(&x->lock, NULL);
    (void)dgm_take(a); /* x lives in it */
    *ret_agent = x;
    return DGM_OK;
}

void dgm_exec_close(void *agent)
{
    struct exec *x = agent;
    pthread_mutex_destroy(&x->lock);
    dgm_arena_free(x->arena);
}
