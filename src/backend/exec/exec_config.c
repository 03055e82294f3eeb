/* backend/exec/exec_config.c - the settings of an exec agent. */
#include "backend/exec/exec_int.h"
#include "base/limits.h"

#include <stdlib.h>

struct settings {
    const dgm_json *command, *env;
    dgm_str cwd;
    int input, output;
    double timeout, grace, max_processes;
};

static yyjson_val *plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

/* NUL-terminated, in the arena; a NUL inside would end it early. */
static dgm_code text_of(dgm_arena *a, const dgm_json *v, const dgm_at *at, const char **ret,
                        dgm_err *err)
{
    if (!yyjson_is_str(plain(v)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected a string, got %s", dgm_json_type(v));
    dgm_str s = dgm_json_str(v);
    if (memchr(s.p, '\0', s.n))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "has a NUL in it");
    *ret = dgm_arena_dup(a, s).p;
    return DGM_OK;
}

static dgm_code read_command(struct exec *x, const dgm_json *v, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "command");
    dgm_code rc;
    if (!v)
        return dgm_fail(
            err, DGM_BAD_PARAMS, at,
            "missing: the program and its arguments, as a list, or a line for the shell");
    if (yyjson_is_str(plain(v))) {
        x->argv = dgm_new_n(x->arena, const char *, 4);
        x->argv[0] = "/bin/sh";
        x->argv[1] = "-c";
        rc = text_of(x->arena, v, at, &x->argv[2], err);
        return rc ? rc
               : x->argv[2][0]
                   ? DGM_OK
                   : dgm_fail(err, DGM_BAD_PARAMS, at, "is empty: name the program to run");
    }
    if (!yyjson_is_arr(plain(v)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected a list or a string, got %s",
                        dgm_json_type(v));
    size_t n = yyjson_arr_size(plain(v)), i, max;
    yyjson_val *item;
    if (n == 0)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "is empty: name the program to run");
    x->argv = dgm_new_n(x->arena, const char *, n + 1);
    yyjson_arr_foreach (plain(v), i, max, item) {
        if ((rc = text_of(x->arena, item, DGM_AT_I(at, i), &x->argv[i], err)))
            return rc;
    }
    return x->argv[0][0]
               ? DGM_OK
               : dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_I(at, 0), "is empty: name the program");
}

static dgm_code read_env(struct exec *x, const dgm_json *v, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "env");
    size_t i, max;
    yyjson_val *key, *value;
    dgm_code rc;
    if (v && !yyjson_is_obj(plain(v)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected an object, got %s", dgm_json_type(v));
    x->env = dgm_new_n(x->arena, const char *, (v ? yyjson_obj_size(plain(v)) : 0) + 1);
    yyjson_obj_foreach (plain(v), i, max, key, value) {
        const char *name, *text;
        const dgm_at *here = DGM_AT(at, dgm_json_str(key));
        if ((rc = text_of(x->arena, key, here, &name, err)) ||
            (rc = text_of(x->arena, value, here, &text, err)))
            return rc;
        if (!*name || strchr(name, '='))
            return dgm_fail(err, DGM_BAD_PARAMS, here, "is no name of a variable");
        x->env[x->n_env++] = dgm_arena_printf(x->arena, "%s=%s", name, text).p;
    }
    return DGM_OK;
}

dgm_code exec_open(const dgm_json *config, void **ret_agent, dgm_err *err)
{
#define AT(member) offsetof(struct settings, member)
    static const dgm_setting rows[] = {
        {"command", DGM_SETTING_JSON, AT(command), 0, 0, NULL},
        {"env", DGM_SETTING_JSON, AT(env), 0, 0, NULL},
        {"cwd", DGM_SETTING_STR, AT(cwd), 0, 0, NULL},
        {"input", DGM_SETTING_CHOICE, AT(input), 0, 0, "json|text"},
        {"output", DGM_SETTING_CHOICE, AT(output), 0, 0, "json|text"},
        {"timeout", DGM_SETTING_NUMBER, AT(timeout), 0.01, 86400, NULL},
        {"grace", DGM_SETTING_NUMBER, AT(grace), 0, 60, NULL},
        {"max_processes", DGM_SETTING_NUMBER, AT(max_processes), 1, 10000, NULL},
    };
#undef AT
    struct settings s = {.timeout = 300, .grace = 2, .max_processes = DGM_MAX_PROCESSES};
    dgm_code rc = dgm_settings_read(config, rows, sizeof rows / sizeof *rows, &s, err);
    if (rc)
        return rc;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct exec *x = dgm_new(a, struct exec);
    x->arena = a;
    x->input = s.input;
    x->output = s.output;
    x->timeout = s.timeout;
    x->grace = s.grace;
    x->max_processes = s.max_processes;
    if (s.cwd.n > 0)
        x->cwd = dgm_arena_dup(a, s.cwd).p;
    if ((rc = read_command(x, s.command, err)) || (rc = read_env(x, s.env, err)))
        return rc;
    (void)dgm_take(a); /* x lives in it */
    *ret_agent = x;
    return DGM_OK;
}

void exec_close(void *agent)
{
    struct exec *x = agent;
    dgm_arena_free(x->arena);
}
