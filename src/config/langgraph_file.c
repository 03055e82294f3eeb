/* config/langgraph_file.c - the graphs of langgraph.json or aion.yaml as agents. */
#include "config/langgraph_file.h"
#include "base/limits.h"
#include "config/config_int.h"
#include "json/build.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_GRAPHS 1000

static bool name_ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static dgm_code read_text(dgm_arena *a, const char *path, dgm_str *ret, dgm_err *err)
{
    FILE *f = fopen(path, "rb");
    char block[4096];
    dgm_buf b;
    size_t n;
    if (!f)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "cannot read %.200s: %s", path, strerror(errno));
    dgm_buf_init(&b, DGM_MAX_CONFIG_BYTES);
    while ((n = fread(block, 1, sizeof block, f)) > 0 && !b.over)
        dgm_buf_add(&b, block, n);
    bool failed = ferror(f);
    fclose(f);
    *ret = dgm_arena_dup(a, dgm_buf_str(&b));
    bool is_large = b.over;
    dgm_buf_done(&b);
    if (failed || is_large)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "cannot read %.200s: %s", path,
                        is_large ? "it is too large" : "reading failed");
    return DGM_OK;
}

static dgm_code read_document(dgm_arena *a, const char *path, const dgm_json **ret_root,
                              dgm_err *err)
{
    dgm_config_findings findings = {.arena = a};
    dgm_config_doc doc = {.file = dgm_str_from(path)};
    dgm_str text;
    dgm_code rc = read_text(a, path, &text, err);
    if (rc)
        return rc;
    dgm_config_doc_read(&doc, a, text, name_ends(path, ".json"),
                        (const char *(*)(const char *))getenv, &findings);
    if (!yyjson_is_obj(doc.root)) {
        dgm_buf b;
        dgm_buf_init(&b, 300);
        if (findings.n)
            dgm_config_finding_put(&b, &findings.at[0]);
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "%.*s",
                      DGM_P(b.n ? dgm_buf_str(&b) : DGM_STR("the file is not an object")));
        dgm_buf_done(&b);
        return rc;
    }
    *ret_root = doc.root;
    return DGM_OK;
}

static void put_card(dgm_json_build *b, const dgm_json *about)
{
    static const char *const members[] = {"name", "description", "version"};
    bool has_any = false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        has_any |= dgm_json_str_member(about, members[i]).n > 0;
    if (!has_any)
        return;
    dgm_json_build_object(b, "card");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        dgm_str text = dgm_json_str_member(about, members[i]);
        if (text.n)
            dgm_json_build_str(b, members[i], text);
    }
    dgm_json_build_close(b);
}

/* There is no file that could name the variables that a graph needs: it gets all. */
static void put_agent(dgm_json_build *b, dgm_str id, const dgm_json *about, dgm_str config,
                      dgm_str folder)
{
    dgm_json_build_object(b, NULL);
    dgm_json_build_str(b, "id", id);
    dgm_json_build_lit(b, "type", "langgraph");
    put_card(b, about);
    dgm_json_build_object(b, "settings");
    if (config.n) {
        dgm_json_build_str(b, "config", config);
    } else {
        dgm_json_build_str(b, "path", dgm_json_str_member(about, "path"));
        dgm_json_build_str(b, "cwd", folder);
    }
    dgm_json_build_str(b, "graph", id);
    dgm_json_build_lit(b, "inherit_env", "all");
    dgm_json_build_close(b);
    dgm_json_build_close(b);
}

static bool is_langgraph(const dgm_json *about)
{
    dgm_str framework = dgm_json_str_member(about, "framework");
    return dgm_json_str_member(about, "path").n &&
           (!framework.n || dgm_str_is(framework, "langgraph"));
}

dgm_code dgm_langgraph_file_put_agents(dgm_buf *out, const char *file, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json *root, *aion;
    char full[PATH_MAX];
    yyjson_val *graphs, *key, *value;
    size_t i, n, count = 0;
    dgm_code rc;
    if (!realpath(file, full))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "cannot read %.300s: %s", file, strerror(errno));
    if ((rc = read_document(a, full, &root, err)))
        return rc;
    dgm_str folder = {full, (size_t)(strrchr(full, '/') - full) + 1};
    aion = dgm_json_get(root, DGM_STR("aion"));
    graphs = dgm_json_get(aion ? aion : root, aion ? DGM_STR("agents") : DGM_STR("graphs"));
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    yyjson_obj_foreach (graphs, i, n, key, value) {
        if ((aion && !is_langgraph(value)) || count == MAX_GRAPHS)
            continue;
        put_agent(&b, dgm_json_str(key), value, aion ? (dgm_str){0} : dgm_str_from(full), folder);
        count++;
    }
    dgm_json_build_close(&b);
    if (!count)
        return dgm_fail(
            err, DGM_BAD_PARAMS, NULL,
            "%.300s has no graphs: expected `graphs` (langgraph.json) or `aion.agents` (aion.yaml)",
            file);
    dgm_json_put(out, dgm_json_build_end(&b));
    return DGM_OK;
}
