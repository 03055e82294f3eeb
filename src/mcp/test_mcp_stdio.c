/* test_mcp_stdio.c - programs as MCP servers: both revisions, and programs that misbehave. */
#include "mcp/test_mcp.h"

#include <fcntl.h>

#define RESULT(members) "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"result\":{" members "}}"
#define TEXT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"
#define DISCOVER                                                                                   \
    {                                                                                              \
        "server/discover",                                                                         \
            RESULT("\"resultType\":\"complete\",\"supportedVersions\":["                           \
                   "\"2026-07-28\"],\"capabilities\":{\"tools\":{}}"),                             \
            0                                                                                      \
    }
#define NOT_MODERN                                                                                 \
    {                                                                                              \
        "server/discover",                                                                         \
            "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"error\":{\"code\":-32601,\"message\":\"no\"}}", 0   \
    }
#define INITIALIZE                                                                                 \
    {                                                                                              \
        "\"initialize\"",                                                                          \
            RESULT("\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":"               \
                   "{\"listChanged\":true}},\"serverInfo\":{\"name\":\"t\","                       \
                   "\"version\":\"1\"}"),                                                          \
            0                                                                                      \
    }
#define TOOL(name) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"
#define TOOLS                                                                                      \
    {                                                                                              \
        "tools/list", RESULT("\"resultType\":\"complete\",\"tools\":[" TOOL("run") "]"), 0         \
    }

static const struct rule modern[] = {
    DISCOVER,
    {"page-3", RESULT("\"tools\":[" TOOL("last.one") "]"), 0},
    {"page-2", RESULT("\"tools\":[" TOOL("b") "],\"nextCursor\":\"page-3\""), 0},
    {"tools/list", RESULT("\"tools\":[" TOOL("a") "," TOOL("a") "],\"nextCursor\":\"page-2\""), 0},
    {"tools/call",
     RESULT("\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{"
            "\"type\":\"image\",\"data\":\"AAEC\",\"mimeType\":\"image/png\"},{\"type\":\"audio\","
            "\"data\":\"AAEC\",\"mimeType\":\"audio/wav\"},{\"type\":\"resource\",\"resource\":{"
            "\"uri\":\"file:///x/y.txt\",\"mimeType\":\"text/plain\",\"text\":\"t\"}},{\"type\":"
            "\"resource_link\",\"uri\":\"https://example.com/z\",\"name\":\"z\"}],"
            "\"structuredContent\":{\"n\":1},\"isError\":true"),
     0},
};
static const struct rule legacy[] = {
    NOT_MODERN,
    INITIALIZE,
    {"notifications/initialized",
     "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,"
     "\"method\":\"ping\"}\nnot JSON at all",
     0},
    TOOLS,
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":@ID,"
     "\"progress\":1,\"total\":4,\"message\":\"a quarter\"}}\n" RESULT(TEXT("old")),
     0},
};
static const struct rule silent_probe[] = {{"server/discover", NULL, RULE_SILENT},
                                           INITIALIZE,
                                           TOOLS,
                                           {"tools/call", RESULT(TEXT("late")), 0}};
static const struct rule asks[] = {
    DISCOVER,
    TOOLS,
    {"\"requestState\":\"S2\"", RESULT(TEXT("done")), 0},
    {"\"requestState\":\"S1\"", RESULT("\"resultType\":\"input_required\",\"requestState\":\"S2\""),
     0},
    {"tools/call",
     RESULT("\"resultType\":\"input_required\",\"requestState\":\"S1\",\"inputRequests\":{\"q1\":{"
            "\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"name?\","
            "\"requestedSchema\":{\"type\":\"object\"}}},\"q2\":{\"method\":\"elicitation/"
            "create\",\"params\":{\"mode\":\"url\",\"message\":\"log in\",\"url\":\"https://"
            "example.com/a\"}}}"),
     0}};
static const struct rule asks_sampling[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":\"sampling/"
            "createMessage\",\"params\":{}}}"),
     0}};
static const struct rule asks_for_ever[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":\"elicitation/"
            "create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{}}}}"),
     0}};
static const struct rule legacy_asks[] = {
    NOT_MODERN,
    INITIALIZE,
    TOOLS,
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\",\"params\":{\"message\":"
     "\"sure?\",\"requestedSchema\":{\"type\":\"object\"}}}",
     0},
    {"\"id\":\"e1\"",
     "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{" TEXT(
         "wrong id") "}}\n{"
                     "\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{" TEXT("thanks") "}}",
     0}};
static const struct rule legacy_urls[] = {
    NOT_MODERN,
    INITIALIZE,
    TOOLS,
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"error\":{\"code\":-32042,\"message\":\"auth\",\"data\":{"
     "\"elicitations\":[{\"mode\":\"url\",\"elicitationId\":\"x\",\"message\":\"open\",\"url\":"
     "\"https://example.com/o\"}]}}}",
     RULE_ONCE},
    {"tools/call", RESULT(TEXT("in")), 0}};
static const struct rule tasks[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     RESULT(
         "\"resultType\":\"task\",\"taskId\":\"T1\",\"status\":\"working\",\"pollIntervalMs\":20"),
     0},
    {"tasks/get",
     RESULT("\"resultType\":\"complete\",\"taskId\":\"T1\",\"status\":\"working\","
            "\"statusMessage\":\"half\",\"pollIntervalMs\":20"),
     RULE_ONCE},
    {"tasks/get",
     RESULT("\"taskId\":\"T1\",\"status\":\"input_required\",\"inputRequests\":{\"k\":{\"method\":"
            "\"elicitation/create\",\"params\":{\"message\":\"which?\",\"requestedSchema\":{}}}}"),
     RULE_ONCE},
    {"tasks/update", RESULT("\"resultType\":\"complete\""), 0},
    {"tasks/get",
     RESULT("\"taskId\":\"T1\",\"status\":\"completed\",\"result\":{" TEXT("ready") "}"), 0},
};
static const struct rule failing_task[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     RESULT("\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"working\","
            "\"pollIntervalMs\":1"),
     0},
    {"tasks/get",
     RESULT("\"taskId\":\"T\",\"status\":\"failed\",\"error\":{\"code\":-32000,"
            "\"message\":\"broken\"}"),
     0}};
static const struct rule long_task[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     RESULT("\"resultType\":\"task\",\"taskId\":\"T9\",\"status\":\"working\","
            "\"statusMessage\":\"go\",\"pollIntervalMs\":50"),
     0},
    {"tasks/get", RESULT("\"taskId\":\"T9\",\"status\":\"working\",\"pollIntervalMs\":50"), 0}};
static const struct rule dies[] = {DISCOVER, TOOLS, {"tools/call", NULL, RULE_EXIT}};
static const struct rule dies_at_start[] = {{"server/discover", NULL, RULE_EXIT}};
static const struct rule hangs[] = {DISCOVER, TOOLS, {"tools/call", NULL, RULE_SILENT}};
static const struct rule progress_then_hangs[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":@ID,"
     "\"progress\":1}}",
     0}};
static const struct rule floods[] = {
    DISCOVER,
    TOOLS,
    {"tools/call", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}",
     RULE_FLOOD}};
static const struct rule garbage[] = {DISCOVER, TOOLS, {"tools/call", "garbage", RULE_FLOOD}};
static const struct rule long_line[] = {DISCOVER, TOOLS, {"tools/call", NULL, RULE_LONG}};
static const struct rule stays[] = {
    DISCOVER, TOOLS, {"tools/call", RESULT(TEXT("here to stay")), RULE_STAYS}};
static const struct rule endless_list[] = {
    DISCOVER, {"tools/list", RESULT("\"tools\":[],\"nextCursor\":\"c@ID\""), 0}};
static const struct rule same_cursor[] = {
    DISCOVER, {"tools/list", RESULT("\"tools\":[],\"nextCursor\":\"c\""), 0}};
static const struct rule only_new[] = {
    {"server/discover",
     "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":{"
     "\"supported\":[\"2099-01-01\"]}}}",
     0}};
static const struct rule errors[] = {
    DISCOVER,
    TOOLS,
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"error\":{\"code\":-32602,\"message\":\"bad arguments\"}}",
     0}};
static const struct rule changing[] = {
    NOT_MODERN,
    INITIALIZE,
    {"tools/list", RESULT("\"tools\":[" TOOL("one") "]"), RULE_ONCE},
    {"tools/list", RESULT("\"tools\":[" TOOL("one") "," TOOL("two") "]"), 0},
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n" RESULT(TEXT("ok")),
     0}};
static const struct rule subscribed[] = {
    {"server/discover",
     RESULT("\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{\"listChanged\":"
            "true}}"),
     0},
    {"subscriptions/listen",
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}",
     0},
    {"tools/list", RESULT("\"tools\":[" TOOL("one") "]"), RULE_ONCE},
    {"tools/list", RESULT("\"tools\":[" TOOL("two") "]"), 0},
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n" RESULT(TEXT("ok")),
     0}};

#define SCRIPT(name)                                                                               \
    {                                                                                              \
#name, name, sizeof(name) / sizeof *(name)                                                 \
    }
static const struct server_script scripts[] = {
    SCRIPT(modern),        SCRIPT(legacy),        SCRIPT(silent_probe),
    SCRIPT(asks),          SCRIPT(asks_sampling), SCRIPT(asks_for_ever),
    SCRIPT(legacy_asks),   SCRIPT(legacy_urls),   SCRIPT(tasks),
    SCRIPT(failing_task),  SCRIPT(long_task),     SCRIPT(dies),
    SCRIPT(dies_at_start), SCRIPT(hangs),         SCRIPT(progress_then_hangs),
    SCRIPT(floods),        SCRIPT(garbage),       SCRIPT(long_line),
    SCRIPT(stays),         SCRIPT(endless_list),  SCRIPT(same_cursor),
    SCRIPT(only_new),      SCRIPT(errors),        SCRIPT(changing),
    SCRIPT(subscribed),
};

/* What the server received: appended to a file, since it is another process. */
static char log_name[64];
static char received[65536];

static void log_open(void)
{
    snprintf(log_name, sizeof log_name, "/tmp/test_mcp_%d.log", (int)getpid());
    unlink(log_name);
    setenv("MCP_LOG", log_name, 1);
}

static const char *log_read(void)
{
    int fd = open(log_name, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, received, sizeof received - 1) : 0;
    received[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return received;
}

/* It may be written a moment later. */
static const char *log_wait(const char *what)
{
    for (int i = 0; i < 3000 && !strstr(log_read(), what); i++)
        usleep(10000);
    return received;
}

/* Is the first server still there? */
static bool first_server_lives(void)
{
    const char *pid = strstr(log_wait("pid "), "pid ");
    assert_non_null(pid);
    return kill(atoi(pid + 4), 0) == 0;
}

static void log_close(void)
{
    unlink(log_name);
    unsetenv("MCP_LOG");
}

/* ---- revisions ----------------------------------------------------------------------------------------- */

static void the_new_revision_needs_no_handshake(void **state)
{
    struct client c = {0};
    (void)state;
    log_open();
    client_start_script(&c, "modern");
    client_list(&c);
    check_seen(&c, "files__a\nfiles__b\nfiles__last_one\n");
    check_has(client_log(&c), "the tool a is left out: its name occurs twice");
    c.arguments = "{\"x\":1}";
    c.call.call_id = DGM_STR("call-1");
    client_call(&c, "files__last_one");
    check_seen(&c,
               "text hi\nraw AAEC (image/png)\nraw AAEC (audio/wav)\ntext t (text/plain) y.txt\n"
               "url https://example.com/z z\nis_error\n");
    client_stop(&c);
    check_has(log_read(), "\"name\":\"last.one\",\"arguments\":{\"x\":1},\"_meta\":{\"io."
                          "modelcontextprotocol/protocolVersion\":\"2026-07-28\"");
    check_has(received, "\"dragoman/callId\":\"call-1\"}");
    assert_null(strstr(received, "dragoman/fence")); /* the store is not shared */
    assert_null(strstr(received, "initialize"));
    log_close();
}

static void the_fence_of_a_shared_store_is_sent(void **state)
{
    struct client c = {0};
    (void)state;
    log_open();
    client_start_script(&c, "modern");
    client_list(&c);
    c.call.call_id = DGM_STR("call-1");
    c.call.fence = UINT64_C(5000000000);
    client_call(&c, "files__last_one");
    client_stop(&c);
    check_has(log_read(), "\"dragoman/callId\":\"call-1\",\"dragoman/fence\":5000000000}");
    log_close();
}

static void an_old_server_is_initialized(void **state)
{
    struct client c = {0};
    (void)state;
    log_open();
    client_start_script(&c, "legacy");
    client_call(&c, "run");
    check_seen(&c, "progress 1/4 a quarter\ntext old\n");
    check_has(client_log(&c), "not a JSON-RPC message: not JSON at all");
    client_stop(&c);
    check_has(log_read(),
              "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"");
    check_has(received, "\"id\":\"r\",\"error\":{\"code\":-32601");
    check_has(received, "\"id\":7,\"result\":{}");
    log_close();
}

static void a_server_that_ignores_the_probe_is_initialized(void **state)
{
    struct client c = {.config.start_ms = 1000};
    (void)state;
    client_start_script(&c, "silent_probe");
    client_call(&c, "run");
    check_seen(&c, "text late\n");
    client_stop(&c);
}

static void a_server_of_unknown_revisions_is_reported(void **state)
{
    struct client c = {0};
    (void)state;
    client_start_script(&c, "only_new");
    client_list(&c);
    check_has(client_seen(&c), "it supports the revisions 2099-01-01; this client supports");
    client_stop(&c);
}

/* ---- lists --------------------------------------------------------------------------------------------- */

static void a_list_without_end_is_an_error(void **state)
{
    struct client c = {0}, d = {0};
    (void)state;
    client_start_script(&c, "endless_list");
    client_list(&c);
    check_has(client_seen(&c), "limit mcp_pages");
    client_stop(&c);
    client_start_script(&d, "same_cursor");
    client_list(&d);
    check_has(client_seen(&d), "repeats a cursor");
    client_stop(&d);
}

static void a_changed_list_is_read_again(void **state)
{
    struct client c = {0}, d = {0};
    (void)state;
    client_start_script(&c, "changing");
    client_list(&c);
    check_seen(&c, "files__one\n");
    client_list(&c);
    check_seen(&c, "files__one\n");
    client_call(&c, "one");
    client_list(&c);
    check_seen(&c, "files__one\nfiles__two\n");
    client_stop(&c);
    client_start_script(&d, "subscribed");
    client_call(&d, "one");
    client_list(&d);
    check_seen(&d, "files__two\n");
    client_stop(&d);
}

static void an_unknown_tool_is_reported(void **state)
{
    struct client c = {0};
    (void)state;
    client_start_script(&c, "modern");
    client_call(&c, "nothing");
    check_seen(&c, "error 0: MCP server files has no tool \"nothing\"\n");
    client_stop(&c);
}

static void an_error_of_the_server_is_passed_on(void **state)
{
    struct client c = {0};
    (void)state;
    client_start_script(&c, "errors");
    client_call(&c, "run");
    check_seen(&c, "error -32602: bad arguments\n");
    client_stop(&c);
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static void questions_are_answered_by_the_next_round(void **state)
{
    struct client c = {.content = "{\"name\":\"x\"}"};
    (void)state;
    log_open();
    client_start_script(&c, "asks");
    client_call(&c, "run");
    check_seen(&c, "state\nask form name? {\"type\":\"object\"}\nask url log in "
                   "https://example.com/a\ntext done\n");
    check_has(c.state, "\"requestState\":\"S1\"");
    client_stop(&c);
    check_has(log_read(), "\"inputResponses\":{\"q1\":{\"action\":\"accept\",\"content\":{\"name\":"
                          "\"x\"}},\"q2\":{\"action\":\"accept\"}},\"requestState\":\"S1\"");
    check_has(received, "\"arguments\":{},\"requestState\":\"S2\"");
    log_close();
}

static void a_question_outlives_the_program(void **state)
{
    struct client c = {.cancels_on_ask = true}, d = {.content = "{}"};
    (void)state;
    client_start_script(&c, "asks");
    client_call(&c, "run");
    check_has(client_seen(&c), "state\nask form");
    client_stop(&c);
    d.call.state = dgm_str_from(c.state);
    client_start_script(&d, "asks");
    client_call(&d, "run");
    check_has(client_seen(&d), "ask form name? {\"type\":\"object\"}\nask url log in "
                               "https://example.com/a\ntext done\n");
    client_stop(&d);
}

static void a_request_that_we_do_not_offer_fails_the_call(void **state)
{
    struct client c = {0};
    (void)state;
    client_start_script(&c, "asks_sampling");
    client_call(&c, "run");
    check_has(client_seen(&c), "asks for \"sampling/createMessage\"");
    client_stop(&c);
}

static void questions_without_end_are_an_error(void **state)
{
    struct client c = {.has_no_ask = true};
    (void)state;
    client_start_script(&c, "asks_for_ever");
    client_call(&c, "run");
    check_has(client_seen(&c), "limit mcp_rounds");
    client_stop(&c);
}

static void an_old_server_asks_while_the_call_runs(void **state)
{
    struct client c = {.content = "{\"ok\":true}"}, d = {.action = DGM_MCP_DECLINE};
    (void)state;
    log_open();
    client_start_script(&c, "legacy_asks");
    client_call(&c, "run");
    check_seen(&c, "ask form sure? {\"type\":\"object\"}\ntext thanks\n");
    client_stop(&c);
    check_has(log_read(),
              "\"id\":\"e1\",\"result\":{\"action\":\"accept\",\"content\":{\"ok\":true}}");
    client_start_script(&d, "legacy_asks");
    client_call(&d, "run");
    client_stop(&d);
    check_has(log_read(), "\"id\":\"e1\",\"result\":{\"action\":\"decline\"}");
    log_close();
}

static void an_old_server_wants_a_url_opened_first(void **state)
{
    struct client c = {0}, d = {.action = DGM_MCP_CANCEL};
    (void)state;
    client_start_script(&c, "legacy_urls");
    client_call(&c, "run");
    check_seen(&c, "ask url open https://example.com/o\ntext in\n");
    client_stop(&c);
    client_start_script(&d, "legacy_urls");
    client_call(&d, "run");
    check_has(client_seen(&d),
              "error 0: MCP server files: the URL that the tool needs was not opened");
    client_stop(&d);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static void a_task_is_polled_and_answered(void **state)
{
    struct client c = {.content = "{\"a\":1}"};
    (void)state;
    log_open();
    client_start_script(&c, "tasks");
    client_call(&c, "run");
    check_seen(&c, "state\nprogress 0/0 half\nstate\nask form which? {}\ntext ready\n");
    client_stop(&c);
    check_has(log_read(), "\"taskId\":\"T1\",\"inputResponses\":{\"k\":{\"action\":\"accept\","
                          "\"content\":{\"a\":1}}}");
    log_close();
}

static void a_task_is_found_again_after_a_restart(void **state)
{
    struct client c = {.call.state = DGM_STR("{\"v\":1,\"pollMs\":20,\"taskId\":\"T1\"}")};
    (void)state;
    log_open();
    client_start_script(&c, "tasks");
    client_call(&c, "run");
    check_has(client_seen(&c), "text ready\n");
    client_stop(&c);
    assert_null(strstr(log_read(), "tools/call"));
    log_close();
}

static void a_task_that_fails_is_an_error(void **state)
{
    struct client c = {0};
    (void)state;
    client_start_script(&c, "failing_task");
    client_call(&c, "run");
    check_seen(&c, "state\nerror -32000: broken\n");
    client_stop(&c);
}

static void a_canceled_task_is_canceled_at_the_server(void **state)
{
    struct client c = {.cancels_on_progress = true};
    (void)state;
    log_open();
    client_start_script(&c, "long_task");
    client_call(&c, "run");
    check_seen(&c, "state\nprogress 0/0 go\ncanceled\n");
    check_has(log_wait("tasks/cancel"),
              "\"method\":\"tasks/cancel\",\"params\":{\"taskId\":\"T9\"");
    client_stop(&c);
    log_close();
}

/* ---- bad behaviour ------------------------------------------------------------------------------------- */

static void a_canceled_call_is_canceled_at_the_server(void **state)
{
    struct client c = {.cancels_on_progress = true};
    (void)state;
    log_open();
    client_start_script(&c, "progress_then_hangs");
    client_call(&c, "run");
    check_has(log_wait("cancelled"), "\"method\":\"notifications/cancelled\",\"params\":{"
                                     "\"requestId\":3");
    client_stop(&c);
    log_close();
}

static void a_call_in_a_server_that_dies_has_an_unknown_outcome(void **state)
{
    struct client c = {0};
    (void)state;
    log_open();
    client_start_script(&c, "dies");
    client_call(&c, "run");
    check_seen(&c, "error 0 unknown: MCP server files: the program ended with exit status 3\n");
    client_list(&c); /* it is started again */
    check_seen(&c, "files__run\n");
    client_stop(&c);
    const char *first = strstr(log_read(), "tools/call");
    assert_non_null(first);
    assert_null(strstr(first + 1, "tools/call")); /* not repeated */
    log_close();
}

static void a_server_that_never_starts_is_reported(void **state)
{
    struct client c = {0}, d = {0};
    (void)state;
    client_start_script(&c, "dies_at_start");
    client_call(&c, "run");
    check_seen(&c, "error 0: MCP server files: the program ended with exit status 3\n");
    client_list(&c); /* waits a little, then it is tried again */
    check_seen(&c, "error 0: MCP server files: the program ended with exit status 3\n");
    client_stop(&c);
    d.argv[0] = "/nowhere/at/all";
    d.config.argv = d.argv;
    client_start(&d);
    client_list(&d);
    check_has(client_seen(&d), "it could not be started");
    client_stop(&d);
}

static void a_call_that_hangs_ends_by_its_time(void **state)
{
    struct client c = {.call.timeout_ms = 300};
    (void)state;
    log_open();
    client_start_script(&c, "hangs");
    client_list(&c);
    client_call(&c, "run");
    check_seen(&c, "error 0 unknown: MCP server files: the tool run did not answer within 0.3 "
                   "seconds\n");
    check_has(log_wait("cancelled"), "notifications/cancelled");
    client_stop(&c);
    log_close();
}

static void a_flood_ends_the_server(void **state)
{
    static const char *const names[] = {"floods", "garbage", "long_line"};
    static const char *const wants[] = {"limit mcp_messages", "lines that are not JSON-RPC",
                                        "limit record_bytes"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct client c = {0};
        client_start_script(&c, names[i]);
        client_call(&c, "run");
        check_has(client_seen(&c), wants[i]);
        assert_true(c.is_unknown);
        client_list(&c);
        check_seen(&c, "files__run\n");
        client_stop(&c);
    }
}

static void a_server_that_does_not_exit_is_killed(void **state)
{
    struct client c = {.config.grace_ms = 50};
    (void)state;
    log_open();
    client_start_script(&c, "stays");
    client_call(&c, "run");
    check_seen(&c, "text here to stay\n");
    assert_true(first_server_lives());
    client_stop(&c);
    assert_false(first_server_lives());
    log_close();
}

static void an_idle_session_is_closed(void **state)
{
    struct client c = {.config = {.idle_ms = 50, .grace_ms = 50}};
    (void)state;
    log_open();
    client_start_script(&c, "stays");
    client_call(&c, "run");
    for (int i = 0; i < 3000 && first_server_lives(); i++)
        usleep(10000); /* the session ends its program: SIGKILL after the grace */
    client_call(&c, "run");
    check_seen(&c, "text here to stay\n");
    client_stop(&c);
    const char *first = strstr(log_read(), "server/discover");
    assert_non_null(strstr(first + 1, "server/discover"));
    log_close();
}

static void sessions_are_shared_by_key(void **state)
{
    struct client c = {0};
    size_t n = 0;
    (void)state;
    log_open();
    client_start_script(&c, "modern");
    c.call.share_key = DGM_STR("ann");
    client_list(&c);
    client_list(&c);
    c.call.share_key = DGM_STR("bob");
    client_list(&c);
    client_stop(&c);
    for (const char *p = log_read(); (p = strstr(p, "server/discover")); p++)
        n++;
    assert_int_equal(n, 2);
    log_close();
}

static void a_call_ends_when_its_server_is_closed(void **state)
{
    struct client c = {.config.grace_ms = 50};
    (void)state;
    client_start_script(&c, "hangs");
    client_list(&c);
    c.call.tool = DGM_STR("run");
    dgm_buf_clear(&c.seen);
    dgm_loop_post(c.loop, client_call_there, &c);
    usleep(100000);
    dgm_mcp_close(c.mcp);
    uv_sem_wait(&c.done);
    check_has(client_seen(&c), "the connection to the MCP server was closed");
    c.mcp = NULL;
    client_stop(&c);
}

static void a_call_ends_when_its_loop_stops(void **state)
{
    struct client c = {.config.grace_ms = 50};
    (void)state;
    client_start_script(&c, "hangs");
    client_list(&c);
    c.call.tool = DGM_STR("run");
    dgm_buf_clear(&c.seen);
    dgm_loop_post(c.loop, client_call_there, &c);
    usleep(100000);
    dgm_loops_stop(c.loops);
    uv_sem_wait(&c.done);
    check_has(client_seen(&c), "error 0 unknown: the connection to the MCP server was closed");
    client_stop(&c);
}

int main(int argc, char **argv)
{
    script_main_if_named(argc, argv, scripts, sizeof scripts / sizeof *scripts);
    const struct CMUnitTest tests[] = {
        dgm_test(the_new_revision_needs_no_handshake),
        dgm_test(the_fence_of_a_shared_store_is_sent),
        dgm_test(an_old_server_is_initialized),
        dgm_test(a_server_that_ignores_the_probe_is_initialized),
        dgm_test(a_server_of_unknown_revisions_is_reported),
        dgm_test(a_list_without_end_is_an_error),
        dgm_test(a_changed_list_is_read_again),
        dgm_test(an_unknown_tool_is_reported),
        dgm_test(an_error_of_the_server_is_passed_on),
        dgm_test(questions_are_answered_by_the_next_round),
        dgm_test(a_question_outlives_the_program),
        dgm_test(a_request_that_we_do_not_offer_fails_the_call),
        dgm_test(questions_without_end_are_an_error),
        dgm_test(an_old_server_asks_while_the_call_runs),
        dgm_test(an_old_server_wants_a_url_opened_first),
        dgm_test(a_task_is_polled_and_answered),
        dgm_test(a_task_is_found_again_after_a_restart),
        dgm_test(a_task_that_fails_is_an_error),
        dgm_test(a_canceled_task_is_canceled_at_the_server),
        dgm_test(a_canceled_call_is_canceled_at_the_server),
        dgm_test(a_call_in_a_server_that_dies_has_an_unknown_outcome),
        dgm_test(a_server_that_never_starts_is_reported),
        dgm_test(a_call_that_hangs_ends_by_its_time),
        dgm_test(a_flood_ends_the_server),
        dgm_test(a_server_that_does_not_exit_is_killed),
        dgm_test(an_idle_session_is_closed),
        dgm_test(sessions_are_shared_by_key),
        dgm_test(a_call_ends_when_its_server_is_closed),
        dgm_test(a_call_ends_when_its_loop_stops),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
