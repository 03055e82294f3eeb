/*
 * app/mcp/mcp_conformance.c - `dragoman mcp-conformance URL`: the client under test of @modelcontextprotocol/conformance.
 *
 * It lists the tools of the server and calls those that the scenario names in MCP_CONFORMANCE_CONTEXT, or all of them. A
 * question is answered with {"confirmed": true} and the defaults of its schema.
 */
#include "app/mcp/mcp_command.h"
#include "app/mcp/mcp_work.h"
#include "json/build.h"

#include <stdlib.h>
#include <string.h>

struct conformance {
    dgm_mcp_work work;
    dgm_arena *arena;
    const char *scenario;
    yyjson_val *calls; /* of the context; NULL: none */
};

static void conformance_on_log(void *user, dgm_str line)
{
    (void)user;
    fprintf(stderr, "%.*s\n", DGM_P(line));
}

static const char *conformance_on_ask(void *user, const dgm_mcp_ask *ask)
{
    struct conformance *c = user;
    yyjson_val *properties = dgm_json_get(ask->schema, DGM_STR("properties")), *key, *schema;
    size_t i, n;
    dgm_json_build b = dgm_json_build_start(c->arena);
    dgm_json_build_object(&b, NULL);
    yyjson_obj_foreach (properties, i, n, key, schema) {
        yyjson_val *def = dgm_json_get(schema, DGM_STR("default"));
        if (def)
            dgm_json_build_member(&b, dgm_json_str(key), def);
    }
    if (!dgm_json_get(dgm_json_get(properties, DGM_STR("confirmed")), DGM_STR("default")))
        dgm_json_build_bool(&b, "confirmed", true);
    dgm_json_build_close(&b);
    return dgm_json_text_in(c->arena, dgm_json_build_end(&b)).p;
}

/* {a: 2, b: 3}, and the schema of another tool for the scenario that wants it back. */
static const dgm_json *conformance_arguments(struct conformance *c, const dgm_mcp_tool *tool)
{
    dgm_json_build b = dgm_json_build_start(c->arena);
    dgm_json_build_object(&b, NULL);
    if (dgm_str_is(tool->own_name, "json_schema_echo")) {
        for (size_t i = 0; i < c->work.tools.n; i++) {
            if (dgm_str_is(c->work.tools.at[i].own_name, "json_schema_2020_12_tool"))
                dgm_json_build_value(&b, "schema", c->work.tools.at[i].input_schema);
        }
    } else {
        dgm_json_build_int(&b, "a", 2);
        dgm_json_build_int(&b, "b", 3);
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static bool conformance_call(struct conformance *c, dgm_str tool, const dgm_json *arguments)
{
    bool ok = dgm_mcp_work_call(&c->work, tool, arguments);
    fprintf(stderr, "%.*s: %.*s\n", DGM_P(tool),
            DGM_P(ok ? DGM_STR("called") : c->work.error.message));
    return ok;
}

static bool conformance_call_all(struct conformance *c)
{
    bool ok = true;
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (c->calls, i, n, item) {
        dgm_str name = dgm_json_str_member(item, "name");
        ok &= conformance_call(c, name, dgm_json_get(item, DGM_STR("arguments")));
    }
    if (c->calls || strcmp(c->scenario, "json-schema-ref-no-deref") == 0)
        return ok;
    for (i = 0; i < c->work.tools.n; i++) {
        const dgm_mcp_tool *t = &c->work.tools.at[i];
        if (!dgm_str_is(t->own_name, "json_schema_2020_12_tool"))
            ok &= conformance_call(c, t->own_name, conformance_arguments(c, t));
    }
    return ok;
}

static void conformance_read_context(struct conformance *c)
{
    const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
    const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    yyjson_val *root;
    dgm_err err = {0};
    c->scenario = scenario ? scenario : "";
    if (!context || dgm_json_read(c->arena, dgm_str_from(context), DGM_MAX_RECORD_BYTES,
                                  "record_bytes", &root, &err))
        return;
    c->calls = dgm_json_non_null(root, "toolCalls");
}

int dgm_mcp_conformance(const dgm_cli_line *line)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct conformance c = {.arena = a};
    dgm_mcp *mcp = NULL;
    dgm_err err = {0};
    conformance_read_context(&c);
    if (dgm_mcp_open(&(dgm_mcp_config){.name = DGM_STR("conformance"),
                                       .url = line->args[0],
                                       .client_version = dgm_version(),
                                       .on_log = conformance_on_log},
                     &mcp, &err) ||
        dgm_mcp_work_start(&c.work, mcp, &err)) {
        dgm_cli_complain("%s", err.msg);
        return DGM_CLI_FAILED;
    }
    c.work.on_ask = conformance_on_ask;
    c.work.user = &c;
    bool ok = dgm_mcp_work_list(&c.work);
    if (!ok)
        dgm_cli_complain("%.*s", DGM_P(c.work.error.message));
    ok = ok && conformance_call_all(&c);
    dgm_mcp_work_stop(&c.work);
    return ok ? DGM_CLI_OK : DGM_CLI_FAILED;
}
