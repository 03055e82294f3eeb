/* backend/langgraph/langgraph_config.c - the settings of a langgraph agent, and langgraph.json. */
#include "backend/langgraph/langgraph_int.h"
#include "backend/worker/worker_checkpoints.h"
#include "base/limits.h"
#include "json/build.h"

#include <stdlib.h>

struct langgraph_settings {
    dgm_program_settings program;
    dgm_str config, graph, path;
    int dialect, durability, checkpointer, expose_errors;
    int64_t recursion_limit, processes, max_runs;
    double timeout;
};

#define AT(member) offsetof(struct langgraph_settings, member)
static const char *const durabilities[] = {"sync", "async", "exit"};
static const char *const checkpointers[] = {"server", "worker", "memory"};

const dgm_setting dgm_langgraph_settings[] = {
    {"config", DGM_SETTING_STR, AT(config),
     .about = "the `langgraph.json` of a project; `path` may take its place"},
    {"graph", DGM_SETTING_STR, AT(graph), .def = "the first one",
     .about = "which graph of `langgraph.json`; with `path`: its name"},
    {"path", DGM_SETTING_STR, AT(path),
     .about = "a graph without `langgraph.json`: `./file.py:name` or `./file.js:name`"},
    {"command", DGM_SETTING_COMMAND, AT(program.command),
     .def = "the project's `.venv`, else `python3 -m dragoman.worker`; for JavaScript `node`",
     .about = "the program that runs the graph, as a list; text is a line for `/bin/sh`"},
    {"a2a_dialect", DGM_SETTING_CHOICE, AT(dialect), .choices = "0.3|1.0", .def = "0.3",
     .about = "the version of A2A that `a2a_inbox` has"},
    {"checkpointer", DGM_SETTING_CHOICE, AT(checkpointer), .choices = "server|worker|memory",
     .def = "server",
     .about =
         "where the state of threads is: in the server's store, where the graph's own checkpointer "
         "puts it, or only in the memory of the worker"},
    {"durability", DGM_SETTING_CHOICE, AT(durability), .choices = "sync|async|exit",
     .def = "`sync`; with `checkpointer: memory`, `exit`, because the state ends with its worker",
     .about = "when LangGraph saves a step: before the next one, while it runs, or at the end of "
              "the run"},
    {"recursion_limit", DGM_SETTING_INT, AT(recursion_limit), .min = 1, .max = 100000, .def = "100",
     .about = "how many steps a run may have"},
    {"timeout", DGM_SETTING_NUMBER, AT(timeout), .min = 0.01, .max = 86400, .def = "600",
     .about = "seconds that a run may take; then it is stopped and the task fails"},
    {"processes", DGM_SETTING_INT, AT(processes), .min = 1, .max = 64, .def = "1",
     .about = "how many processes run the graph; all runs of a conversation use the same one"},
    {"max_runs", DGM_SETTING_INT, AT(max_runs), .min = 1, .max = 10000, .def = "64",
     .about = "how many runs one process has at a time; more wait"},
    {"expose_errors", DGM_SETTING_CHOICE, AT(expose_errors), .choices = "false|true",
     .def = "false",
     .about = "`true`: callers see the text of exceptions, which may contain secrets"},
    DGM_PROGRAM_SETTINGS(struct langgraph_settings, program),
    {0},
};
#undef AT

/* ---- langgraph.json -------------------------------------------------------------------------------------------------------- */

/* One graph of a project. */
struct project {
    dgm_str folder;
    dgm_str name;
    const dgm_json *spec;         /* "path:name", or an object with it; NULL: not found */
    const dgm_json *dependencies; /* may be NULL */
    const dgm_json *variables;    /* env as an object; may be NULL */
    dgm_str env_file;
};

static dgm_code find_graph(const struct langgraph_settings *s, const dgm_json *graphs, dgm_str file,
                           struct project *ret, dgm_err *err)
{
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)graphs, i, n, key, value) {
        if (s->graph.n && !dgm_str_eq(dgm_json_str(key), s->graph))
            continue;
        ret->name = dgm_json_str(key);
        ret->spec = value;
        return DGM_OK;
    }
    if (s->graph.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "graph"),
                        "unknown graph \"%.*s\" in %.*s", DGM_P(s->graph), DGM_P(file));
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "config"), "%.*s has no graphs",
                    DGM_P(file));
}

static dgm_code read_project(dgm_arena *a, const struct langgraph_settings *s, dgm_str folder,
                             struct project *ret, dgm_err *err)
{
    dgm_str file = dgm_langgraph_path(a, folder, s->config), text;
    yyjson_val *root, *env;
    dgm_err why = {0};
    if (!dgm_langgraph_read_file(a, file, DGM_MAX_ENV_FILE_BYTES, &text))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "config"), "cannot read %.*s",
                        DGM_P(file));
    if (dgm_json_read(a, text, DGM_MAX_ENV_FILE_BYTES, "env_file_bytes", &root, &why))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "config"), "%.*s, line %zu: %s",
                        DGM_P(file), why.line, why.msg);
    ret->folder = dgm_langgraph_folder_of(a, file);
    ret->dependencies = dgm_json_non_null(root, "dependencies");
    env = dgm_json_non_null(root, "env");
    ret->variables = yyjson_is_obj(env) ? env : NULL;
    ret->env_file = dgm_langgraph_path(a, ret->folder,
                                       yyjson_is_str(env) ? dgm_json_str(env) : DGM_STR(".env"));
    return find_graph(s, dgm_json_get(root, DGM_STR("graphs")), file, ret, err);
}

static dgm_code open_project(dgm_arena *a, const struct langgraph_settings *s,
                             const dgm_agent_options *options, struct project *ret, dgm_err *err)
{
    dgm_str folder = options ? options->folder : (dgm_str){0};
    if (s->config.n)
        return read_project(a, s, folder, ret, err);
    if (!s->path.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "config"),
                        "missing: the langgraph.json of the project, or `path`, a graph");
    ret->folder = s->program.cwd.n ? dgm_langgraph_path(a, folder, s->program.cwd)
                  : folder.n       ? folder
                                   : DGM_STR(".");
    ret->name = s->graph.n ? s->graph : DGM_STR("agent");
    ret->spec = dgm_json_make_string(a, s->path);
    ret->env_file = dgm_langgraph_path(a, ret->folder, DGM_STR(".env"));
    return DGM_OK;
}

static dgm_str spec_path(const struct project *p)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)p->spec) ? dgm_json_str(p->spec)
                                                           : dgm_json_str_member(p->spec, "path");
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------ */

static dgm_str initialize_members(dgm_arena *a, const struct langgraph_settings *s,
                                  const struct project *p)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, ",\"checkpointer\":\"%s\",\"settings\":{", checkpointers[s->checkpointer]);
    if (p->dependencies) {
        dgm_buf_add_lit(&b, "\"dependencies\":");
        dgm_json_put(&b, p->dependencies);
    }
    dgm_buf_add_lit(&b, "},\"graphs\":{");
    dgm_json_put_str(&b, p->name);
    dgm_buf_add_char(&b, ':');
    dgm_json_put(&b, p->spec);
    dgm_buf_add_char(&b, '}');
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_code open_program(struct langgraph *g, struct langgraph_settings *s,
                             const struct project *p, const dgm_agent_options *options,
                             dgm_err *err)
{
    bool is_js = dgm_langgraph_is_js(spec_path(p));
    dgm_str package = dgm_langgraph_package(g->arena, is_js);
    if (!s->program.command && !package.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "command"),
                        "Dragoman's %s package for workers was not found next to the program: set "
                        "DRAGOMAN_%s_DIR to its folder",
                        is_js ? "JavaScript" : "Python", is_js ? "JS" : "PYTHON");
    s->program.env =
        dgm_langgraph_env(g->arena, p->env_file, p->variables, s->program.env, package, is_js);
    if (!s->program.command)
        s->program.command = dgm_langgraph_command(g->arena, p->folder, is_js);
    if (!s->program.cwd.n)
        s->program.cwd = p->folder;
    else if (options)
        s->program.cwd = dgm_langgraph_path(g->arena, options->folder, s->program.cwd);
    return dgm_program_open(&s->program, options, g->arena, &g->program, err);
}

static dgm_worker_pool *open_pool(const struct langgraph *g, const struct langgraph_settings *s,
                                  const struct project *p, const dgm_agent_options *options)
{
    dgm_worker_options o = {
        .argv = g->program.argv,
        .env = g->program.env,
        .n_env = g->program.n_env,
        .cwd = g->program.cwd,
        .agent = options,
        .initialize = initialize_members(g->arena, s, p),
        .processes = (size_t)s->processes,
        .max_runs = (size_t)s->max_runs,
        .one_run_per_thread = true,
        .watch = p->folder.p,
        .service = dgm_worker_checkpoints(options ? options->checkpoints : NULL),
    };
    return dgm_worker_pool_open(&o);
}

dgm_code dgm_langgraph_open(const dgm_json *config, const dgm_agent_options *options,
                            void **ret_agent, dgm_err *err)
{
    struct langgraph_settings s = {
        .durability = -1, .recursion_limit = 100, .processes = 1, .max_runs = 64, .timeout = 600};
    struct project p = {0};
    dgm_code rc = dgm_settings_read(config, dgm_langgraph_settings, &s, err);
    if (rc)
        return rc;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct langgraph *g = dgm_new(a, struct langgraph);
    g->arena = a;
    if ((rc = open_project(a, &s, options, &p, err)) ||
        (rc = open_program(g, &s, &p, options, err)))
        return rc;
    if (!spec_path(&p).n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "graph"),
                        "the graph \"%.*s\" has no path", DGM_P(p.name));
    g->graph = dgm_arena_dup(a, p.name);
    g->is_v10 = s.dialect == 1;
    g->exposes_errors = s.expose_errors == 1;
    g->is_durable = s.checkpointer != 2;
    g->recursion_limit = s.recursion_limit;
    g->durability = s.durability >= 0 ? durabilities[s.durability]
                    : g->is_durable   ? "sync"
                                      : "exit";
    g->timeout = s.timeout;
    g->pool = open_pool(g, &s, &p, options);
    (void)dgm_take(a); /* g lives in it */
    *ret_agent = g;
    return DGM_OK;
}

void dgm_langgraph_close(void *agent)
{
    struct langgraph *g = agent;
    dgm_worker_pool_close(g->pool);
    dgm_arena_free(g->arena);
}
