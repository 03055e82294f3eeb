/* config/agent_file.c - an agent that is one file of code. */
#define _GNU_SOURCE /* memrchr */
#include "config/agent_file.h"
#include "json/build.h"
#include "json/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names of files ------------------------------------------------------------------------------------ */

static const struct {
    const char *ending;
    dgm_agent_language language;
} endings[] = {{".py", DGM_AGENT_PYTHON},
               {".mjs", DGM_AGENT_NODE},
               {".js", DGM_AGENT_NODE},
               {".cjs", DGM_AGENT_NODE}};

static bool ends_with(const char *text, size_t n, const char *ending)
{
    size_t m = strlen(ending);
    return n > m && memcmp(text + n - m, ending, m) == 0;
}

/* The length of FILE in FILE:NAME. */
static size_t file_length(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    bool has_name = colon && colon[1] && !strpbrk(colon + 1, "/.");
    return has_name ? (size_t)(colon - spec) : strlen(spec);
}

static bool find_language(const char *spec, dgm_agent_language *ret_language)
{
    size_t n = file_length(spec);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!ends_with(spec, n, endings[i].ending))
            continue;
        *ret_language = endings[i].language;
        return true;
    }
    return false;
}

dgm_code dgm_agent_file_language(const char *spec, dgm_agent_language *ret_language,
                                 size_t *ret_file_n, dgm_err *err)
{
    if (!find_language(spec, ret_language))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "unknown kind of agent file \"%.200s\": expected .py, .js, .mjs or .cjs", spec);
    *ret_file_n = file_length(spec);
    return DGM_OK;
}

bool dgm_agent_file_is(const char *spec)
{
    dgm_agent_language language;
    return find_language(spec, &language);
}

/* ---- its settings ------------------------------------------------------------------------------------------- */

/* The name of the file without folder and ending; "agent" if that is not an id. */
static dgm_str id_of(const char *path, size_t n)
{
    const char *slash = memrchr(path, '/', n);
    dgm_str name = slash ? (dgm_str){slash + 1, n - (size_t)(slash + 1 - path)} : (dgm_str){path, n};
    const char *dot = memrchr(name.p, '.', name.n);
    if (dot)
        name.n = (size_t)(dot - name.p);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return DGM_STR("agent");
    }
    return name.n && name.n <= 64 ? name : DGM_STR("agent");
}

/* This program, for the command of the agent. */
static dgm_str own_path(char *room, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", room, size - 1);
    return n > 0 ? (dgm_str){room, (size_t)n} : DGM_STR("dragoman");
}

static void put_worker_agent(dgm_buf *out, dgm_arena *a, dgm_str id, dgm_str spec, dgm_str folder)
{
    char self[PATH_MAX];
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "id", id);
    dgm_json_build_lit(&b, "type", "exec");
    dgm_json_build_object(&b, "settings");
    dgm_json_build_lit(&b, "mode", "worker");
    dgm_json_build_array(&b, "command");
    dgm_json_build_str(&b, NULL, own_path(self, sizeof self));
    dgm_json_build_lit(&b, NULL, "worker");
    dgm_json_build_str(&b, NULL, spec);
    dgm_json_build_close(&b);
    dgm_json_build_str(&b, "cwd", folder);
    /* there is no file that could name the variables that the agent needs, and the person who starts it wrote it */
    dgm_json_build_lit(&b, "inherit_env", "all");
    for (int i = 0; i < 3; i++)
        dgm_json_build_close(&b);
    dgm_json_put(out, dgm_json_build_end(&b));
}

dgm_code dgm_agent_file_put_agents(dgm_buf *out, const char *spec, dgm_err *err)
{
    dgm_agent_language language;
    size_t n;
    char path[PATH_MAX], full[PATH_MAX];
    dgm_code rc = dgm_agent_file_language(spec, &language, &n, err);
    if (rc)
        return rc;
    if (n >= sizeof path)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the name of the agent file is too long");
    snprintf(path, sizeof path, "%.*s", (int)n, spec);
    if (!realpath(path, full))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "cannot read %.300s: %s", path, strerror(errno));
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str whole = dgm_arena_printf(a, "%s%s", full, spec + n);
    dgm_str folder = dgm_arena_dup(a, (dgm_str){full, (size_t)(strrchr(full, '/') - full) + 1});
    put_worker_agent(out, a, id_of(full, strlen(full)), whole, folder);
    return DGM_OK;
}

/* ---- its process ------------------------------------------------------------------------------------------ */

static bool is_there(const char *path, int mode)
{
    return access(path, mode) == 0;
}

/* A folder of ours: next to the build folder of the tree, or where `make install` put it. True: it has the file. */
static bool find_package(char path[PATH_MAX], const char *folder, const char *file)
{
    static const char *const places[] = {"..", "../share/dragoman"};
    char self[PATH_MAX];
    dgm_str own = own_path(self, sizeof self);
    const char *slash = memrchr(own.p, '/', own.n);
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, PATH_MAX, "%.*s/%s/%s/%s", (int)(slash - own.p), own.p, places[i],
                         folder, file);
        if (n <= 0 || n >= PATH_MAX || !is_there(path, R_OK))
            continue;
        path[(size_t)n - strlen(file) - 1] = 0;
        return true;
    }
    return false;
}

/* The packages of the project come first: the file's .venv, then the one that is active. */
static const char *python_of(char path[PATH_MAX], const char *spec, size_t n)
{
    const char *slash = memrchr(spec, '/', n), *active = getenv("VIRTUAL_ENV");
    int folder_n = slash ? (int)(slash - spec) : 1;
    int m = snprintf(path, PATH_MAX, "%.*s/.venv/bin/python", folder_n, slash ? spec : ".");
    if (m > 0 && m < PATH_MAX && is_there(path, X_OK))
        return path;
    m = active ? snprintf(path, PATH_MAX, "%s/bin/python", active) : 0;
    return m > 0 && m < PATH_MAX && is_there(path, X_OK) ? path : "python3";
}

static void exec_python(const char *spec, size_t n, const char *interpreter)
{
    char found[PATH_MAX], package[PATH_MAX], paths[2 * PATH_MAX];
    const char *python = interpreter ? interpreter : python_of(found, spec, n);
    const char *before = getenv("PYTHONPATH");
    const char *argv[] = {python, "-m", "dragoman.worker", spec, NULL};
    if (find_package(package, "python", "dragoman/worker.py")) {
        snprintf(paths, sizeof paths, "%s%s%s", package, before && *before ? ":" : "",
                 before ? before : "");
        setenv("PYTHONPATH", paths, 1);
    }
    execvp(python, (char **)(uintptr_t)argv);
}

/* The package of the project, which is the one that the file imports; else ours. */
static bool find_node_worker(char path[PATH_MAX], const char *spec, size_t n)
{
    char file[PATH_MAX], full[PATH_MAX];
    snprintf(file, sizeof file, "%.*s", (int)n, spec);
    if (realpath(file, full)) {
        for (char *slash; (slash = strrchr(full, '/'));) {
            *slash = 0;
            int m = snprintf(path, PATH_MAX, "%s/node_modules/dragoman/worker.js", full);
            if (m > 0 && m < PATH_MAX && is_there(path, R_OK))
                return true;
        }
    }
    if (!find_package(path, "js", "worker.js"))
        return false;
    strcat(path, "/worker.js"); /* find_package has cut it off */
    return true;
}

static dgm_code exec_node(const char *spec, size_t n, const char *interpreter, dgm_err *err)
{
    char worker[PATH_MAX];
    const char *node = interpreter ? interpreter : "node";
    const char *argv[] = {node, worker, spec, NULL};
    if (!find_node_worker(worker, spec, n))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the npm package dragoman was not found: install it in the folder of %.200s",
                        spec);
    execvp(node, (char **)(uintptr_t)argv);
    return DGM_OK;
}

dgm_code dgm_agent_file_exec(const char *spec, const char *interpreter, dgm_err *err)
{
    dgm_agent_language language;
    size_t n;
    dgm_code rc = dgm_agent_file_language(spec, &language, &n, err);
    if (!rc && language == DGM_AGENT_NODE)
        rc = exec_node(spec, n, interpreter, err);
    else if (!rc)
        exec_python(spec, n, interpreter);
    if (rc)
        return rc;
    const char *name = language == DGM_AGENT_NODE ? "node" : "python3";
    return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot start %s: %s",
                    interpreter ? interpreter : name, strerror(errno));
}
