/* app/serve/test_routes.c - the route table: paths, methods, placeholders, errors. */
#include "app/serve/routes.h"
#include "support/check.h"

static dgm_route_tree *tree;

static dgm_front_request match(const char *method, const char *path)
{
    dgm_front_request q = {0};
    dgm_route_match(tree, dgm_str_from(method), dgm_str_from(path), &q);
    return q;
}

static void paths_find_their_routes(void **state)
{
    static const struct {
        const char *method, *path, *pattern, *tenant, *first, *second;
    } rows[] = {
        {"POST", "/", "/", "", "", ""},
        {"GET", "/", "/", "", "", ""},
        {"POST", "/api/a2a/", "/api/a2a[/]", "", "", ""},
        {"POST", "/agents/x", "/", "", "", ""},
        {"POST", "/agents/x/a2a", "/a2a[/]", "", "", ""},
        {"GET", "/agents/", "/agents[/]", "", "", ""},
        {"POST", "/message:send", "/message:send", "", "", ""},
        {"GET", "/tasks", "/tasks", "", "", ""},
        {"GET", "/tasks/t", "/tasks/{task}", "", "t", ""},
        {"GET", "/tasks/tasks", "/tasks/{task}", "", "tasks", ""},
        {"POST", "/tasks/t:cancel", "/tasks/{task}:cancel", "", "t", ""},
        {"POST", "/tasks/a:b:cancel", "/tasks/{task}:cancel", "", "a:b", ""},
        {"GET", "/tasks/a:cancelled", "/tasks/{task}", "", "a:cancelled", ""},
        {"GET", "/tasks/:cancel", "/tasks/{task}", "", ":cancel", ""}, /* an id must not be empty */
        {"POST", "/tasks/t/subscribe", "/tasks/{task}/subscribe", "", "t", ""},
        {"DELETE", "/acme/tasks/t/pushNotificationConfigs/c",
         "/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", "acme", "t", "c"},
        {"GET", "/acme/extendedAgentCard", "/{tenant}/extendedAgentCard", "acme", "", ""},
        {"GET", "/v1/card", "/v1/card", "", "", ""},
        {"POST", "/v1/tasks/t:cancel", "/v1/tasks/{task}:cancel", "", "t", ""},
        {"GET", "/v1/models/a2a/x", "/v1/models/{model...}", "", "a2a/x", ""},
        {"GET", "/v1/models/", "/v1/models[/]", "", "", ""},
        {"GET", "/v1/models//x", "/v1/models/{model...}", "", "/x", ""},
        {"HEAD", "/v1/files/a/b/content", "/v1/files/{file...}/content", "", "a/b", ""},
        {"GET", "/v1/conversations/c/items/i/", "/v1/conversations/{conversation}/items/{item}[/]",
         "", "c", "i"},
        {"GET", "/ag-ui/threads/a%2Fb/messages", "/ag-ui/threads/{thread}/messages", "", "a%2Fb",
         ""},
        {"DELETE", "/ai-sdk/c/stream", "/ai-sdk/{chat}/stream", "", "c", ""},
        {"GET", "/ai-sdk/stream/messages", "/ai-sdk/{chat}/messages", "", "stream", ""},
        {"GET", "/metrics", "/metrics", "", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_front_request q = match(rows[i].method, rows[i].path);
        assert_non_null(q.route);
        assert_string_equal(q.route->pattern, rows[i].pattern);
        check_str(q.tenant, rows[i].tenant);
        check_str(q.params[0], rows[i].first);
        check_str(q.params[1], rows[i].second);
    }
}

static void unknown_paths_have_a_frontend_for_their_errors(void **state)
{
    static const struct {
        const char *path, *reporter;
    } rows[] = {
        {"", "rest"},
        {"x", "rest"},
        {"*", "rest"},
        {"//", "rest"},
        {"/nonsense", "rest"},
        {"/tasks/", "rest"},
        {"/tasks//x", "rest"},
        {"/tasks/a/b/c", "rest"},
        {"/message:send/", "rest"},
        {"/acme", "rest"},
        {"/acme/", "rest"},
        {"/a/b/c/d/e/f", "rest"},
        {"/a2a/tasks/t", "rest"}, /* a tenant has no name that another path starts with */
        {"/metrics/message:send", "rest"},
        {"/agents/x/metrics", "rest"},
        {"/agents/x/agents", "rest"},
        {"/v1", "openai"},
        {"/v1/", "openai"},
        {"/v1/chat", "openai"},
        {"/v1/acme/tasks/t", "openai"},
        {"/v1/extendedAgentCard", "openai"},
        {"/v1/files/content", "openai"},
        {"/v1/conversations/c/items/i/j", "openai"},
        {"/v1/tasks/a/b", "rest"},
        {"/v1/tasksx", "rest"},
        {"/v1/message:x", "rest"},
        {"/ag-ui/nope", "ag-ui"},
        {"/ag-ui/threads//messages", "ag-ui"},
        {"/ag-ui/threads/a/b/messages", "ag-ui"},
        {"/ag-uix", "rest"},
        {"/ai-sdk/", "rest"},
        {"/ai-sdk//stream", "rest"},
        {"/ai-sdk/c/stream/", "rest"},
        {"/ai-sdk/c/d/stream", "rest"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_front_request q = match("GET", rows[i].path);
        assert_null(q.route);
        assert_null(q.allow);
        assert_string_equal(q.reporter->name, rows[i].reporter);
        assert_non_null(q.reporter->refuse);
        assert_int_equal(q.access, DGM_ACCESS_CALLER);
    }
}

static void allow_lists_the_methods_of_a_path(void **state)
{
    static const struct {
        const char *path, *allow, *front;
    } rows[] = {
        {"/", "GET, HEAD, POST, OPTIONS", "jsonrpc"},
        {"/a2a", "POST, OPTIONS", "jsonrpc"},
        {"/tasks/t", "GET, HEAD, OPTIONS", "rest"},
        {"/tasks/t:subscribe", "GET, POST, OPTIONS", "rest"},
        {"/tasks/t/pushNotificationConfigs/c", "GET, HEAD, DELETE, OPTIONS", "rest"},
        {"/.well-known/agent-card.json", "GET, HEAD, OPTIONS", "card"},
        {"/v1/conversations/c", "GET, HEAD, POST, DELETE", "openai"},
        {"/ag-ui", "POST, OPTIONS", "ag-ui"},
        {"/ai-sdk/c/stream", "GET, DELETE, OPTIONS", "ai-sdk"},
        {"/simple/ag-ui", "POST, OPTIONS", "simple"},
        {"/healthz", "GET, HEAD", "ops"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_front_request q = match("PUT", rows[i].path);
        assert_null(q.route);
        assert_string_equal(q.allow, rows[i].allow);
        assert_string_equal(q.front->name, rows[i].front);
        assert_non_null(q.front->refuse_method);
    }
    assert_null(match("HEAD", "/tasks/t:subscribe").route);
    assert_null(match("POST", "/web/page.js").allow); /* only GET is known there */
}

static int open_tree(void **state)
{
    (void)state;
    tree = dgm_route_tree_new(dgm_frontends);
    return 0;
}

static int close_tree(void **state)
{
    (void)state;
    dgm_route_tree_free(tree);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(paths_find_their_routes),
        dgm_test(unknown_paths_have_a_frontend_for_their_errors),
        dgm_test(allow_lists_the_methods_of_a_path),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_tree, close_tree);
}
