/*
 * app/mcp/mcp_demo.c - `dragoman mcp-demo`: a small MCP server over stdio, for the first steps and for tests.
 *
 * Two tools that need nothing: roll_dice and convert_units. It speaks revision 2026-07-28, and 2025-11-25 after initialize.
 */
#include "app/mcp/mcp_command.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DICE 100
#define MAX_SIDES 1000

static const char tools[] =
    "{\"name\":\"roll_dice\",\"title\":\"Roll dice\",\"description\":\"Rolls dice and returns each "
    "number and the sum.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"count\":{"
    "\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":1,\"description\":\"how many "
    "dice\"},\"sides\":{\"type\":\"integer\",\"minimum\":2,\"maximum\":1000,\"default\":6,"
    "\"description\":\"sides of each die\"}},\"additionalProperties\":false}},"
    "{\"name\":\"convert_units\",\"title\":\"Convert units\",\"description\":\"Converts lengths "
    "(m, km, mile, ft, inch), weights (kg, g, lb, oz) and temperatures (C, F, K).\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"value\":{\"type\":\"number\"},"
    "\"from\":{\"type\":\"string\"},\"to\":{\"type\":\"string\"}},\"required\":[\"value\","
    "\"from\",\"to\"],\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true,"
    "\"idempotentHint\":true}}";

/* ---- the tools ---------------------------------------------------------------------------------------- */

/* One unit of each kind is the base; value * factor + offset is in the base. */
static const struct unit {
    const char *name, *kind;
    double factor, offset;
} units[] = {
    {"m", "length", 1, 0},
    {"km", "length", 1000, 0},
    {"mile", "length", 1609.344, 0},
    {"ft", "length", 0.3048, 0},
    {"inch", "length", 0.0254, 0},
    {"kg", "weight", 1, 0},
    {"g", "weight", 0.001, 0},
    {"lb", "weight", 0.45359237, 0},
    {"oz", "weight", 0.028349523125, 0},
    {"K", "temperature", 1, 0},
    {"C", "temperature", 1, 273.15},
    {"F", "temperature", 5.0 / 9, 459.67 * 5 / 9},
};

static const struct unit *find_unit(dgm_str name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (dgm_str_eq(name, dgm_str_from(units[i].name)))
            return &units[i];
    }
    return NULL;
}

static void put_text_result(dgm_buf *b, dgm_str text, bool is_error)
{
    dgm_buf_add_lit(b, "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":");
    dgm_json_put_str(b, text);
    dgm_buf_printf(b, "}],\"isError\":%s}", is_error ? "true" : "false");
}

static void convert_units(dgm_buf *b, dgm_arena *a, const yyjson_val *arguments)
{
    const struct unit *from = find_unit(dgm_json_str_member(arguments, "from"));
    const struct unit *to = find_unit(dgm_json_str_member(arguments, "to"));
    yyjson_val *v = dgm_json_get(arguments, DGM_STR("value"));
    if (!v || !yyjson_is_raw(v) || !from || !to || strcmp(from->kind, to->kind) != 0) {
        put_text_result(b,
                        DGM_STR("expected value (a number), and from and to: two units of the same "
                                "kind (m, km, mile, ft, inch; kg, g, lb, oz; C, F, K)"),
                        true);
        return;
    }
    double base = strtod(dgm_arena_dup(a, dgm_json_str(v)).p, NULL) * from->factor + from->offset;
    double result = (base - to->offset) / to->factor;
    put_text_result(b, dgm_arena_printf(a, "%.6g %s", result, to->name), false);
}

static bool read_count(const yyjson_val *arguments, const char *key, int64_t def, int64_t max,
                       int64_t *ret)
{
    yyjson_val *v = dgm_json_get(arguments, dgm_str_from(key));
    *ret = def;
    return !v || (dgm_json_int(v, ret) && *ret >= 1 && *ret <= max);
}

static void roll_dice(dgm_buf *b, dgm_arena *a, const yyjson_val *arguments)
{
    int64_t count, sides, sum = 0;
    dgm_buf text;
    (void)a;
    if (!read_count(arguments, "count", 1, MAX_DICE, &count) ||
        !read_count(arguments, "sides", 6, MAX_SIDES, &sides)) {
        put_text_result(b, DGM_STR("expected count from 1 to 100 and sides from 1 to 1000"), true);
        return;
    }
    dgm_buf_init(&text, 8192);
    for (int64_t i = 0; i < count; i++) {
        int64_t rolled = 1 + random() % sides;
        sum += rolled;
        dgm_buf_printf(&text, "%s%lld", i ? " + " : "", (long long)rolled);
    }
    if (count > 1)
        dgm_buf_printf(&text, " = %lld", (long long)sum);
    put_text_result(b, dgm_buf_str(&text), false);
    dgm_buf_done(&text);
}

/* ---- the protocol ------------------------------------------------------------------------------------- */

static void demo_put_error(dgm_buf *b, const dgm_rpc *rpc, int code, const char *message)
{
    dgm_rpc_put_error(b, rpc->id);
    dgm_buf_printf(b, "{\"code\":%d,\"message\":\"%s\"}", code, message);
}

static void demo_call(dgm_buf *b, dgm_arena *a, const dgm_rpc *rpc)
{
    dgm_str name = dgm_json_str_member(rpc->params, "name");
    yyjson_val *arguments = dgm_json_get(rpc->params, DGM_STR("arguments"));
    bool rolls = dgm_str_is(name, "roll_dice");
    if (!rolls && !dgm_str_is(name, "convert_units")) {
        demo_put_error(b, rpc, -32602, "unknown tool");
        return;
    }
    dgm_rpc_put_result(b, rpc->id);
    if (rolls)
        roll_dice(b, a, arguments);
    else
        convert_units(b, a, arguments);
}

static void demo_answer(dgm_buf *b, dgm_arena *a, const dgm_rpc *rpc)
{
    if (dgm_str_is(rpc->method, "tools/call")) {
        demo_call(b, a, rpc);
    } else if (dgm_str_is(rpc->method, "tools/list")) {
        dgm_rpc_put_result(b, rpc->id);
        dgm_buf_printf(b,
                       "{\"resultType\":\"complete\",\"ttlMs\":3600000,\"cacheScope\":"
                       "\"public\",\"tools\":[%s]}",
                       tools);
    } else if (dgm_str_is(rpc->method, "server/discover")) {
        dgm_rpc_put_result(b, rpc->id);
        dgm_buf_printf(b,
                       "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                       "\"capabilities\":{\"tools\":{}},\"ttlMs\":3600000,\"cacheScope\":"
                       "\"public\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":"
                       "\"dragoman-demo\",\"version\":\"%s\"}}}",
                       dgm_version());
    } else if (dgm_str_is(rpc->method, "initialize")) {
        dgm_rpc_put_result(b, rpc->id);
        dgm_buf_printf(b,
                       "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
                       "\"serverInfo\":{\"name\":\"dragoman-demo\",\"version\":\"%s\"}}",
                       dgm_version());
    } else if (dgm_str_is(rpc->method, "ping")) {
        dgm_rpc_put_result(b, rpc->id);
        dgm_buf_add_lit(b, "{}");
    } else {
        demo_put_error(b, rpc, -32601, "method not found");
    }
    dgm_rpc_put_tail(b);
}

static void demo_handle(dgm_arena *a, dgm_str line)
{
    yyjson_val *root;
    dgm_rpc rpc = {0};
    dgm_err err = {0};
    dgm_buf b;
    if (dgm_json_read(a, line, DGM_MAX_RECORD_BYTES, "record_bytes", &root, &err) ||
        dgm_rpc_read(root, true, NULL, &rpc, &err) || rpc.kind != DGM_RPC_REQUEST || !rpc.id)
        return; /* a notification, or not a request */
    dgm_buf_init(&b, SIZE_MAX);
    demo_answer(&b, a, &rpc);
    dgm_buf_add_char(&b, '\n');
    fwrite(b.p, 1, b.n, stdout);
    fflush(stdout);
    dgm_buf_done(&b);
}

int dgm_mcp_demo(const dgm_cli_line *line)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n;
    (void)line;
    srandom((unsigned)time(NULL));
    while ((n = getline(&text, &size, stdin)) > 0) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        if ((size_t)n <= DGM_MAX_RECORD_BYTES)
            demo_handle(a, (dgm_str){text, (size_t)n});
    }
    free(text);
    return DGM_CLI_OK;
}
