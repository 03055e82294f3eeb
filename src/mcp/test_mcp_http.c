/* test_mcp_http.c - MCP servers at a URL: both revisions, JSON and event streams, headers, broken answers. */
#include "mcp/test_mcp.h"
#include "net/test_peer.h"

#define HEAD(type, more) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\n" more
#define CLOSE "Connection: close\r\n\r\n"
#define JSON_ANSWER(body) HEAD("application/json", CLOSE) body
#define SSE_ANSWER(body) HEAD("text/event-stream", CLOSE) body
#define STATUS(line, body) "HTTP/1.1 " line "\r\nContent-Type: application/json\r\n" CLOSE body
#define RESULT(id, members) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{" members "}}"
#define ERROR(id, code)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"no\"}}"
#define TEXT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"
#define DISCOVERED                                                                                 \
    {                                                                                              \
        JSON_ANSWER(RESULT("1", "\"resultType\":\"complete\",\"supportedVersions\":["              \
                                "\"2026-07-28\"],\"capabilities\":{\"tools\":{}}")),               \
            0, "server/discover", 0                                                                \
    }
#define TOOL(name, schema) "{\"name\":\"" name "\",\"inputSchema\":" schema "}"
#define TOOLS(id)                                                                                  \
    {                                                                                              \
        JSON_ANSWER(RESULT(id, "\"tools\":[" TOOL("run", "{\"type\":\"object\"}") "]")), 0,        \
            "tools/list", 0                                                                        \
    }
#define COUNT(list) (sizeof(list) / sizeof *(list))

static char url[64];

static void http_start(struct client *c, const struct script *scripts, size_t n)
{
    server_start(scripts, n);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", server.port);
    c->config.url = url;
    client_start(c);
}

static void http_stop(struct client *c)
{
    client_stop(c);
    server_stop();
}

/* ---- 2026-07-28 ---------------------------------------------------------------------------------------- */

static void a_call_by_json_and_its_headers(void **state)
{
    static const struct script scripts[] = {
        DISCOVERED,
        {JSON_ANSWER(RESULT(
             "2", "\"tools\":[" TOOL(
                      "d\xc3\xa4s",
                      "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":"
                      "\"string\",\"x-mcp-header\":\"Region\"},\"n\":{\"type\":"
                      "\"integer\",\"x-mcp-header\":\"N\"},\"skip\":{\"type\":"
                      "\"boolean\",\"x-mcp-header\":\"Skip\"}}}") "," TOOL("bad",
                                                                           "{\"type\":\"object\","
                                                                           "\"properties\":{\"x\":{"
                                                                           "\"type\":\"number\","
                                                                           "\"x-mcp-header\":\"X\"}"
                                                                           "}}") "]")),
         0, "tools/list", 0},
        {JSON_ANSWER(RESULT("3", TEXT("yes"))), 0, "tools/call", 0},
    };
    static const dgm_fetch_header own = {{"X-Own", 5}, {"1", 1}};
    struct client c = {.config = {.token = DGM_STR("s3cret"), .headers = &own, .n_headers = 1},
                       .arguments = "{\"region\":\"\\u00fc\",\"n\":42,\"skip\":null}"};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "d\xc3\xa4s");
    check_seen(&c, "text yes\n");
    check_has(client_log(&c), "the tool bad is left out: x-mcp-header is allowed for string");
    assert_null(strstr(client_log(&c), "s3cret"));
    assert_int_equal(server_count("Authorization: Bearer s3cret"), 3);
    assert_int_equal(server_count("X-Own: 1"), 3);
    assert_int_equal(server_count("MCP-Protocol-Version: 2026-07-28"), 3);
    assert_int_equal(server_count("Accept: application/json, text/event-stream"), 3);
    assert_int_equal(server_count("Mcp-Method: tools/call"), 1);
    assert_int_equal(server_count("Mcp-Name: =?base64?ZMOkcw==?="), 1);
    assert_int_equal(server_count("Mcp-Param-Region: =?base64?w7w=?="), 1);
    assert_int_equal(server_count("Mcp-Param-N: 42"), 1);
    assert_int_equal(server_count("Mcp-Param-Skip"), 0);
    http_stop(&c);
}

static void a_call_by_an_event_stream(void **state)
{
    static const struct script scripts[] = {
        DISCOVERED,
        TOOLS("2"),
        {SSE_ANSWER(
             ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
             "\"params\":{\"progressToken\":3,\"progress\":0.5}}\n\nevent: message\ndata: " RESULT(
                 "3", TEXT("streamed")) "\n\n"),
         HOLD, "tools/call", 0},
    };
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "progress 0.5/0 \ntext streamed\n");
    http_stop(&c);
}

static void a_mismatch_of_headers_reads_the_list_again(void **state)
{
    static const struct script scripts[] = {
        DISCOVERED,
        TOOLS("2"),
        {STATUS("400 Bad Request", ERROR("3", "-32020")), 0, "tools/call", 0},
        {JSON_ANSWER(
             RESULT("4", "\"tools\":[" TOOL("run", "{\"type\":\"object\",\"properties\":{\"a\":{"
                                                   "\"type\":\"string\",\"x-mcp-header\":\"A\"}}"
                                                   "}") "]")),
         0, "tools/list", 0},
        {JSON_ANSWER(RESULT("5", TEXT("now"))), 0, "tools/call", 0},
    };
    struct client c = {.arguments = "{\"a\":\"b\"}"};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "text now\n");
    assert_int_equal(server_count("Mcp-Param-A: b"), 1);
    http_stop(&c);
}

static void a_canceled_call_closes_its_stream(void **state)
{
    static const struct script scripts[] = {
        DISCOVERED,
        TOOLS("2"),
        {SSE_ANSWER("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                    "\"progressToken\":3,\"progress\":1}}\n\n"),
         HOLD, "tools/call", 0},
    };
    struct client c = {.cancels_on_progress = true};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "progress 1/0 \ncanceled\n");
    for (int i = 0; i < 3000 && atomic_load(&server.serving); i++)
        usleep(10000); /* the server sees the end of the connection */
    assert_int_equal(atomic_load(&server.serving), 0);
    assert_int_equal(server_count("notifications/cancelled"), 0);
    http_stop(&c);
}

static void a_redirect_within_the_origin_is_followed(void **state)
{
    static const struct script scripts[] = {
        {"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp\r\nContent-Length: 0\r\n" CLOSE, 0,
         "POST /old", 0},
        DISCOVERED,
        TOOLS("2"),
    };
    struct client c = {0};
    (void)state;
    server_start(scripts, COUNT(scripts));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/old", server.port);
    c.config.url = url;
    client_start(&c);
    client_list(&c);
    check_seen(&c, "files__run\n");
    assert_int_equal(server_count("POST /old"), 1);
    http_stop(&c);
}

static void a_redirect_elsewhere_is_not_followed(void **state)
{
    static const struct script scripts[] = {
        {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/mcp\r\nContent-Length: "
         "0\r\n" CLOSE,
         0, NULL, 0},
    };
    struct client c = {.config.token = DGM_STR("s3cret")};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_list(&c);
    check_has(client_seen(&c), "it redirects, which is not followed");
    http_stop(&c);
}

/* ---- broken answers ------------------------------------------------------------------------------------ */

static const struct broken {
    const char *name, *answer;
    unsigned how;
    const char *want;
} broken[] = {
    {"a_stream_that_ends_has_an_unknown_outcome",
     SSE_ANSWER("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"), 0,
     "error 0 unknown: the MCP server ended its answer without a response\n"},
    {"an_answer_that_is_not_json_has_an_unknown_outcome", JSON_ANSWER("<html>"), 0,
     "error 0 unknown: the MCP server's answer is not a JSON-RPC response\n"},
    {"an_answer_to_another_request_has_an_unknown_outcome",
     JSON_ANSWER(RESULT("99", TEXT("other"))), 0,
     "error 0 unknown: the MCP server's answer is not a JSON-RPC response\n"},
    {"a_failed_server_has_an_unknown_outcome", STATUS("502 Bad Gateway", "oops"), 0,
     "error 0 unknown: the MCP server answered with status 502: it failed\n"},
    {"a_rejected_call_was_not_run", STATUS("429 Too Many Requests", ""), 0,
     "error 0: the MCP server answered with status 429: it gets too many requests\n"},
    {"an_error_without_an_id_belongs_to_its_request",
     STATUS("400 Bad Request", ERROR("null", "-32600")), 0, "error -32600: no\n"},
};

static void broken_answer(void **state)
{
    const struct broken *b = *state;
    const struct script scripts[] = {DISCOVERED, TOOLS("2"), {b->answer, b->how, "tools/call", 0}};
    struct client c = {0};
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, b->want);
    assert_int_equal(server_count("tools/call\",\"params"), 1); /* never repeated */
    http_stop(&c);
}

static void a_connection_that_breaks_has_an_unknown_outcome(void **state)
{
    static const struct script scripts[] = {DISCOVERED, TOOLS("2"), {NULL, RESET, "tools/call", 0}};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_has(client_seen(&c), "error 0 unknown: ");
    assert_int_equal(server_count("tools/call\",\"params"), 1);
    http_stop(&c);
}

static void a_server_that_hangs_ends_by_the_time_of_the_call(void **state)
{
    static const struct script scripts[] = {DISCOVERED, TOOLS("2"), {NULL, HOLD, "tools/call", 0}};
    struct client c = {.call.timeout_ms = 300};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_list(&c);
    client_call(&c, "run");
    check_has(client_seen(&c), "error 0 unknown: MCP server files: the tool run did not answer");
    http_stop(&c);
}

static void a_server_that_cannot_be_reached(void **state)
{
    struct client c = {.config.url = "http://127.0.0.1:1/mcp"};
    (void)state;
    client_start(&c);
    client_call(&c, "run");
    check_has(client_seen(&c), "error 0: MCP server files: ");
    client_stop(&c);
}

static void a_server_that_wants_a_token(void **state)
{
    static const struct script scripts[] = {{STATUS("401 Unauthorized", "{}"), 0, NULL, 0}};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_list(&c);
    check_has(client_seen(&c), "status 401: it wants other credentials: see token_env");
    http_stop(&c);
}

static void a_flood_over_a_stream_ends(void **state)
{
    static char answer[200000];
    struct script scripts[] = {DISCOVERED, TOOLS("2"), {answer, HOLD, "tools/call", 0}};
    struct client c = {0};
    size_t n = (size_t)snprintf(answer, sizeof answer, "%s", HEAD("text/event-stream", CLOSE));
    (void)state;
    while (n < sizeof answer - 100)
        n += (size_t)snprintf(answer + n, sizeof answer - n,
                              "data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_has(client_seen(&c), "limit mcp_messages");
    http_stop(&c);
}

/* ---- 2025-11-25 ---------------------------------------------------------------------------------------- */

#define NOT_MODERN                                                                                 \
    {                                                                                              \
        STATUS("400 Bad Request", "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"   \
                                  "\"message\":\"no session\"}}"),                                 \
            0, "server/discover", 0                                                                \
    }
#define INITIALIZED(id, session)                                                                   \
    {                                                                                              \
        HEAD("text/event-stream", "Mcp-Session-Id: " session "\r\n" CLOSE)                         \
        "data: " RESULT(                                                                           \
            id, "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}") "\n\n",      \
            0, "\"initialize\"", 0                                                                 \
    }
#define ACCEPTED(on)                                                                               \
    {                                                                                              \
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n" CLOSE, 0, on, 0                           \
    }
#define NO_STREAM                                                                                  \
    {                                                                                              \
        "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n" CLOSE, 0, "GET /mcp", 0         \
    }

static void an_old_server_has_a_session(void **state)
{
    static const struct script scripts[] = {
        NOT_MODERN,
        INITIALIZED("2", "abc"),
        ACCEPTED("notifications/initialized"),
        NO_STREAM,
        TOOLS("3"),
        {JSON_ANSWER(RESULT("4", TEXT("old"))), 0, "tools/call", 0},
        ACCEPTED("DELETE /mcp")};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "text old\n");
    dgm_mcp_close(c.mcp);
    c.mcp = NULL;
    for (int i = 0; i < 3000 && !server_count("DELETE /mcp"); i++)
        usleep(10000);
    client_stop(&c);
    assert_int_equal(server_count("MCP-Protocol-Version: 2025-06-18"), 5);
    assert_int_equal(server_count("Mcp-Session-Id: abc"), 5);
    assert_int_equal(server_count("DELETE /mcp"), 1);
    assert_int_equal(server_count("Mcp-Method: tools"), 0);
    server_stop();
}

static void a_forgotten_session_is_opened_again(void **state)
{
    static const struct script scripts[] = {
        NOT_MODERN,
        INITIALIZED("2", "abc"),
        ACCEPTED("notifications/initialized"),
        NO_STREAM,
        TOOLS("3"),
        {STATUS("404 Not Found", ""), 0, "tools/call", 0},
        INITIALIZED("2", "def"),
        TOOLS("3"),
        {JSON_ANSWER(RESULT("4", TEXT("again"))), 0, "tools/call", 0},
        ACCEPTED("DELETE /mcp")};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "text again\n");
    assert_true(server_count("Mcp-Session-Id: def") > 0);
    http_stop(&c);
}

static void an_old_server_asks_on_the_stream_of_the_call(void **state)
{
    static const struct script scripts[] = {
        NOT_MODERN,
        INITIALIZED("2", "abc"),
        ACCEPTED("notifications/initialized"),
        NO_STREAM,
        TOOLS("3"),
        {HEAD("text/event-stream", CLOSE) "data: "
                                          "{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":"
                                          "\"elicitation/create\",\"params\":{"
                                          "\"message\":\"sure?\",\"requestedSchema\":{}}}\n\n",
         HOLD, "tools/call", 0},
        ACCEPTED("\"id\":\"e\""),
        ACCEPTED("notifications/cancelled"),
        ACCEPTED("DELETE /mcp")};
    struct client c = {.content = "{\"x\":1}", .call.timeout_ms = 500};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run"); /* this server never ends its stream */
    check_has(client_seen(&c), "ask form sure? {}\nerror 0 unknown: ");
    for (int i = 0; i < 3000 && !server_count("notifications/cancelled"); i++)
        usleep(10000);
    client_stop(&c);
    assert_int_equal(server_count("\"id\":\"e\",\"result\":{\"action\":\"accept\",\"content\":{"
                                  "\"x\":1}}"),
                     1);
    assert_int_equal(server_count("notifications/cancelled"), 1);
    server_stop();
}

static void an_old_server_reports_changes_on_its_own_stream(void **state)
{
    static const struct script scripts[] = {
        NOT_MODERN,
        INITIALIZED("2", "abc"),
        ACCEPTED("notifications/initialized"),
        {SSE_ANSWER("data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n"), HOLD,
         "GET /mcp", 0},
        TOOLS("3"),
        ACCEPTED("\"id\":5,\"result\":{}"),
        ACCEPTED("DELETE /mcp")};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_list(&c);
    for (int i = 0; i < 3000 && !server_count("\"id\":5,\"result\":{}"); i++)
        usleep(10000);
    assert_int_equal(server_count("\"id\":5,\"result\":{}"), 1);
    http_stop(&c);
}

static void an_old_server_ends_a_stream_and_continues_it(void **state)
{
    static const struct script scripts[] = {
        NOT_MODERN,
        INITIALIZED("2", "abc"),
        ACCEPTED("notifications/initialized"),
        {SSE_ANSWER("data: " RESULT("4", TEXT("continued")) "\n\n"), 0, "Last-Event-ID: e7", 0},
        NO_STREAM,
        TOOLS("3"),
        {SSE_ANSWER("id: e7\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"), 0,
         "tools/call", 0},
        ACCEPTED("DELETE /mcp")};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_call(&c, "run");
    check_seen(&c, "text continued\n");
    assert_int_equal(server_count("tools/call\",\"params"), 1);
    http_stop(&c);
}

static void a_loop_that_stops_ends_a_stream(void **state)
{
    static const struct script scripts[] = {DISCOVERED, TOOLS("2"), {NULL, HOLD, "tools/call", 0}};
    struct client c = {0};
    (void)state;
    http_start(&c, scripts, COUNT(scripts));
    client_list(&c);
    dgm_buf_clear(&c.seen);
    c.call.tool = DGM_STR("run");
    dgm_loop_post(c.loop, client_call_there, &c);
    for (int i = 0; i < 3000 && !server_count("tools/call"); i++)
        usleep(10000);
    dgm_loops_stop(c.loops);
    uv_sem_wait(&c.done);
    check_has(client_seen(&c), "error 0 unknown: ");
    http_stop(&c);
}

#define BROKEN(i) dgm_test_with(broken[i].name, broken_answer, &broken[i])

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(a_call_by_json_and_its_headers),
        dgm_test(a_call_by_an_event_stream),
        dgm_test(a_mismatch_of_headers_reads_the_list_again),
        dgm_test(a_canceled_call_closes_its_stream),
        dgm_test(a_redirect_within_the_origin_is_followed),
        dgm_test(a_redirect_elsewhere_is_not_followed),
        BROKEN(0),
        BROKEN(1),
        BROKEN(2),
        BROKEN(3),
        BROKEN(4),
        BROKEN(5),
        dgm_test(a_connection_that_breaks_has_an_unknown_outcome),
        dgm_test(a_server_that_hangs_ends_by_the_time_of_the_call),
        dgm_test(a_server_that_cannot_be_reached),
        dgm_test(a_server_that_wants_a_token),
        dgm_test(a_flood_over_a_stream_ends),
        dgm_test(an_old_server_has_a_session),
        dgm_test(a_forgotten_session_is_opened_again),
        dgm_test(an_old_server_asks_on_the_stream_of_the_call),
        dgm_test(an_old_server_reports_changes_on_its_own_stream),
        dgm_test(an_old_server_ends_a_stream_and_continues_it),
        dgm_test(a_loop_that_stops_ends_a_stream),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
