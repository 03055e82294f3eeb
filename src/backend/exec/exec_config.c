/* backend/exec/exec_config.c - the settings of an exec agent. */
#include "backend/exec/exec_int.h"
#include "base/limits.h"
#include "net/process.h"

#include <stdlib.h>

struct settings {
    const dgm_json *command, *env, *inherit_env;
    dgm_str cwd;
    int input, output;
    double timeout, grace;
    int64_t max_processes, max_processes_per_principal; /* 0: not set */
};

#define AT(member) offsetof(struct settings, member)

const dgm_setting dgm_exec_settings[] = {
    {"command", DGM_SETTING_COMMAND, AT(command), .required = true,
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
    {"env", DGM_SETTING_ENV, AT(env), .def = "{}",
     .about = "environment variables for it: `NAME: value`"},
    {"inherit_env", DGM_SETTING_NAMES, AT(inherit_env), .choices = "all", .def = "[]",
     .about = "further variables of the server's environment that are passed to it, or `all`"},
    {"cwd", DGM_SETTING_STR, AT(cwd), .def = "the folder of the configuration",
     .about = "the folder that it runs in"},
    {"max_processes", DGM_SETTING_INT, AT(max_processes), .min = 1, .max = 10000, .def = "64",
     .about = "how many of its processes may run at the same time; more are rejected"},
    {"max_processes_per_principal", DGM_SETTING_INT, AT(max_processes_per_principal), .min = 1,
     .max = 10000, .def = "half of `max_processes`",
     .about = "how many of these one principal may use; callers without a token are not limited"},
    {0},
};
#undef AT

static yyjson_val *exec_config_plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

static const char *copy_text(struct exec *x, const dgm_json *v)
{
    dgm_str s =
        yyjson_is_str(exec_config_plain(v)) ? dgm_json_str(v) : dgm_json_text_in(x->arena, v);
    return dgm_arena_dup(x->arena, s).p;
}

static void read_command(struct exec *x, const dgm_json *v)
{
    size_t i, n;
    yyjson_val *item;
    if (yyjson_is_str(exec_config_plain(v))) {
        x->argv = dgm_new_n(x->arena, const char *, 4);
        x->argv[0] = "/bin/sh";
        x->argv[1] = "-c";
        x->argv[2] = copy_text(x, v);
        return;
    }
    x->argv = dgm_new_n(x->arena, const char *, yyjson_arr_size(exec_config_plain(v)) + 1);
    yyjson_arr_foreach (exec_config_plain(v), i, n, item) {
        x->argv[i] = copy_text(x, item);
    }
}

static void read_env(struct exec *x, const dgm_json *env, const dgm_json *inherit)
{
    size_t i, n;
    yyjson_val *key, *item;
    x->own_env =
        dgm_new_n(x->arena, const char *, (env ? yyjson_obj_size(exec_config_plain(env)) : 0) + 1);
    yyjson_obj_foreach (exec_config_plain(env), i, n, key, item) {
        x->own_env[x->n_own_env++] =
            dgm_arena_printf(x->arena, "%.*s=%s", DGM_P(dgm_json_str(key)), copy_text(x, item)).p;
    }
    x->inherit_all_env = yyjson_is_str(exec_config_plain(inherit));
    if (!yyjson_is_arr(exec_config_plain(inherit)))
        return;
    x->inherit_env.at = dgm_new_n(x->arena, dgm_str, yyjson_arr_size(exec_config_plain(inherit)));
    yyjson_arr_foreach (exec_config_plain(inherit), i, n, item) {
        x->inherit_env.at[x->inherit_env.n++] = dgm_arena_dup(x->arena, dgm_json_str(item));
    }
}

/* A program that is missing is found now, not by the first caller. */
static dgm_code check_program(const struct exec *x, dgm_err *err)
{
    char path[PATH_MAX];
    dgm_err why = {0};
    if (!dgm_process_find(x->argv[0], x->env, x->cwd, path, &why))
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "command"), "%s", why.msg);
}

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
    if (s.cwd.n > 0)
        x->cwd = dgm_arena_dup(a, s.cwd).p;
    read_command(x, s.command);
    read_env(x, s.env, s.inherit_env);
    dgm_exec_env_open(x, options);
    if ((rc = check_program(x, err)))
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
