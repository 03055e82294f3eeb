/* backend/langgraph/langgraph_project.c - the project of a graph: its interpreter, its variables, our package for workers. */
#include "backend/langgraph/langgraph_int.h"
#include "base/limits.h"
#include "json/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- files -------------------------------------------------------------------------------------------------------------- */

dgm_str dgm_langgraph_path(dgm_arena *a, dgm_str folder, dgm_str path)
{
    if (!folder.n || (path.n && path.p[0] == '/'))
        return dgm_arena_dup(a, path);
    return dgm_arena_printf(a, "%.*s/%.*s", DGM_P(folder), DGM_P(path));
}

dgm_str dgm_langgraph_folder_of(dgm_arena *a, dgm_str path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return n > 1 ? dgm_arena_dup(a, (dgm_str){path.p, n - 1}) : DGM_STR(".");
}

bool dgm_langgraph_read_file(dgm_arena *a, dgm_str path, size_t max, dgm_str *ret)
{
    FILE *f = fopen(path.p, "rb");
    dgm_buf b;
    char block[4096];
    size_t n;
    if (!f)
        return false;
    dgm_buf_init(&b, max);
    while ((n = fread(block, 1, sizeof block, f)) > 0 && !b.over)
        dgm_buf_add(&b, block, n);
    bool is_read = !ferror(f) && !b.over;
    fclose(f);
    if (is_read)
        *ret = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return is_read;
}

static bool is_file(dgm_str path)
{
    return access(path.p, R_OK) == 0;
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

bool dgm_langgraph_is_js(dgm_str spec)
{
    static const char *const ends[] = {".js",  ".mjs", ".cjs", ".ts",
                                       ".mts", ".cts", ".tsx", ".jsx"};
    const char *colon = spec.n ? memchr(spec.p, ':', spec.n) : NULL;
    size_t n = colon ? (size_t)(colon - spec.p) : spec.n;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && memcmp(spec.p + n - k, ends[i], k) == 0)
            return true;
    }
    return false;
}

/* Next to the program as it is built, then as it is installed. */
dgm_str dgm_langgraph_package(dgm_arena *a, bool is_js)
{
    static const char *const places[] = {"../", "../lib/dragoman/", "../share/dragoman/", "../../"};
    const char *name = is_js ? "js" : "python", *entry = is_js ? "worker.js" : "dragoman/worker.py";
    const char *own = getenv(is_js ? "DRAGOMAN_JS_DIR" : "DRAGOMAN_PYTHON_DIR");
    char exe[PATH_MAX];
    if (own && *own)
        return dgm_arena_dup(a, dgm_str_from(own));
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return (dgm_str){0};
    dgm_str folder = dgm_langgraph_folder_of(a, (dgm_str){exe, (size_t)n});
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        dgm_str package = dgm_arena_printf(a, "%.*s/%s%s", DGM_P(folder), places[i], name);
        if (is_file(dgm_arena_printf(a, "%.*s/%s", DGM_P(package), entry)))
            return package;
    }
    return (dgm_str){0};
}

const dgm_json *dgm_langgraph_command(dgm_arena *a, dgm_str project, bool is_js)
{
    static const char *const venvs[] = {".venv/bin/python", "venv/bin/python"};
    dgm_str python = DGM_STR("python3");
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    if (is_js) {
        dgm_json_build_lit(&b, NULL, "node");
        dgm_json_build_str(
            &b, NULL, dgm_arena_printf(a, "%.*s/worker.js", DGM_P(dgm_langgraph_package(a, true))));
    } else {
        for (size_t i = 0; i < sizeof venvs / sizeof *venvs; i++) {
            dgm_str own = dgm_langgraph_path(a, project, dgm_str_from(venvs[i]));
            if (python.p[0] == 'p' && is_file(own))
                python = own;
        }
        /* a path with a slash in it would count from the folder that the worker runs in */
        char whole[PATH_MAX];
        if (memchr(python.p, '/', python.n) && python.p[0] != '/') {
            dgm_str folder = dgm_langgraph_folder_of(a, python);
            if (realpath(folder.p, whole))
                python = dgm_arena_printf(a, "%s/python", whole);
        }
        dgm_json_build_str(&b, NULL, python);
        dgm_json_build_lit(&b, NULL, "-m");
        dgm_json_build_lit(&b, NULL, "dragoman.worker");
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* ---- variables --------------------------------------------------------------------------------------------------------------- */

static bool is_set(const dgm_json *object, dgm_str name)
{
    return dgm_json_get(object, name) != NULL;
}

static dgm_str trim_line(dgm_str s)
{
    return dgm_text_trim(s);
}

/* A value in quotes, with \n, \" and \\ in double ones; or up to a comment. */
static dgm_str read_env_value(dgm_arena *a, dgm_str s)
{
    dgm_buf b;
    char quote = s.n && (s.p[0] == '"' || s.p[0] == '\'') ? s.p[0] : 0;
    if (!quote) {
        for (size_t i = 1; i < s.n; i++) {
            if (s.p[i] == '#' && (s.p[i - 1] == ' ' || s.p[i - 1] == '\t'))
                s.n = i;
        }
        return trim_line(s);
    }
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 1; i < s.n && s.p[i] != quote; i++) {
        char c = s.p[i];
        if (c == '\\' && quote == '"' && i + 1 < s.n) {
            c = s.p[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        dgm_buf_add_char(&b, c);
    }
    dgm_str value = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return value;
}

static bool is_name(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s.n > 0;
}

/* NAME=value, one per line. */
static void add_env_line(dgm_arena *a, dgm_json_build *b, const dgm_json *own, dgm_str line)
{
    line = trim_line(line);
    if (dgm_str_starts(line, DGM_STR("export ")))
        line = trim_line((dgm_str){line.p + 7, line.n - 7});
    const char *equals = line.n ? memchr(line.p, '=', line.n) : NULL;
    if (!equals || line.p[0] == '#')
        return;
    dgm_str name = trim_line((dgm_str){line.p, (size_t)(equals - line.p)});
    dgm_str value = trim_line((dgm_str){equals + 1, line.n - (size_t)(equals - line.p) - 1});
    if (!is_name(name) || is_set(own, name) || memchr(value.p ? value.p : "", 0, value.n))
        return;
    dgm_json_build_str(b, dgm_arena_dup(a, name).p, read_env_value(a, value));
}

static void add_env_file(dgm_arena *a, dgm_json_build *b, const dgm_json *own, dgm_str path)
{
    dgm_str text, line;
    if (!path.n || !dgm_langgraph_read_file(a, path, DGM_MAX_ENV_FILE_BYTES, &text))
        return;
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        line = (dgm_str){text.p, end ? (size_t)(end - text.p) : text.n};
        add_env_line(a, b, own, line);
        size_t used = line.n + (end != NULL);
        text = (dgm_str){text.p + used, text.n - used};
    }
}

/* Our package in front: the worker and the server are of one version. */
static void add_python_path(dgm_arena *a, dgm_json_build *b, const dgm_json *own, dgm_str package)
{
    dgm_str theirs = dgm_json_str_member(own, "PYTHONPATH");
    const char *inherited = getenv("PYTHONPATH");
    if (!theirs.n && inherited)
        theirs = dgm_str_from(inherited);
    dgm_json_build_str(b, "PYTHONPATH",
                       theirs.n ? dgm_arena_printf(a, "%.*s:%.*s", DGM_P(package), DGM_P(theirs))
                                : package);
}

const dgm_json *dgm_langgraph_env(dgm_arena *a, dgm_str file, const dgm_json *listed,
                                  const dgm_json *own, dgm_str package, bool is_js)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    add_env_file(a, &b, own, file);
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)listed, i, n, key, value) {
        if (!is_set(own, dgm_json_str(key)))
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)own, i, n, key, value) {
        if (is_js || !dgm_str_is(dgm_json_str(key), "PYTHONPATH"))
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    if (!is_js) {
        add_python_path(a, &b, own, package);
        dgm_json_build_lit(&b, "PYTHONUNBUFFERED", "1");
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}
