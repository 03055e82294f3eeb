/* test_tool_http.c - tools that are requests: URLs, bodies, headers, results, failures, time limits, cancel. */
#include "backend/test_service.h"
#include "backend/test_tool.h"
#include "base/limits.h"

#define HEAD(status, type) "HTTP/1.1 " status "\r\nContent-Type: " type "\r\nConnection: close\r\n"
#define OK_JSON HEAD("200 OK", "application/json") "\r\n"

/* An entry with the address of the service; `rest`: further settings. */
static const char *entry_of(const char *path, const char *rest)
{
    static char entry[2000];
    snprintf(entry, sizeof entry, "{'http':{'name':'t','url':'http://127.0.0.1:%d%s'%s}}",
             service.port, path, rest);
    return entry;
}

static void run_against(struct tool_test *t, const char *answer, const char *path, const char *rest,
                        const char *arguments)
{
    const struct service_answer answers[] = {{answer, 0, 0}};
    service_open();
    SERVICE_SET(answers);
    tool_test_init(t);
    tool_test_open(t, entry_of(path, rest), NULL);
    tool_run(t, arguments);
    tool_test_done(t);
}

static void check_request_line(const char *want)
{
    const char *end = service.requests[0] ? strstr(service.requests[0], " HTTP/1.1") : NULL;
    if (!end)
        fail_msg("no request");
    check_str(((dgm_str){service.requests[0], (size_t)(end - service.requests[0])}), want);
}

static void arguments_are_the_body(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, OK_JSON "{\"temperature\": 21.50}", "/weather", "", "{'city':'Rome','days':2}");
    assert_false(t.is_error);
    assert_int_equal(t.kind, DGM_PART_DATA);
    assert_string_equal(t.text, "{\"temperature\":21.50}");
    check_request_line("POST /weather");
    assert_string_equal(service_body(0), "{\"city\":\"Rome\",\"days\":2}");
    assert_non_null(strstr(service.requests[0], "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nIdempotency-Key: task-1.call-7\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\ntraceparent: 00-11-22-01\r\n"));
    service_close();
}

static void the_fence_of_a_shared_store_is_a_header(void **state)
{
    const struct service_answer answers[] = {{OK_JSON "1", 0, 0}, {OK_JSON "1", 0, 0}};
    struct tool_test t;
    (void)state;
    service_open();
    SERVICE_SET(answers);
    tool_test_init(&t);
    tool_test_open(&t, entry_of("/x", ""), NULL);
    tool_run(&t, NULL);
    t.run.fence = UINT64_C(5000000000);
    tool_run(&t, NULL);
    tool_test_done(&t);
    assert_null(strstr(service.requests[0], "Dragoman-Fence"));
    assert_non_null(strstr(service.requests[1], "\r\nIdempotency-Key: task-1.call-7\r\n"));
    assert_non_null(strstr(service.requests[1], "\r\nDragoman-Fence: 5000000000\r\n"));
    service_close();
}

static void placeholders_are_encoded_and_not_sent_twice(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, OK_JSON "1", "/users/{id}/notes?lang={lang}", ",'method':'PUT'",
                "{'id':'a/../b?x=1#y','lang':'de&x=2','text':'\\u00e4','n':1}");
    assert_false(t.is_error);
    check_request_line("PUT /users/a%2F..%2Fb%3Fx%3D1%23y/notes?lang=de%26x%3D2");
    assert_string_equal(service_body(0), "{\"text\":\"\xC3\xA4\",\"n\":1}");
    service_close();
}

static void get_and_delete_have_a_query(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, OK_JSON "[]", "/find", ",'method':'GET'",
                "{'q':'a b','tag':['x',2],'none':null,'deep':{'a':true}}");
    check_request_line("GET /find?q=a%20b&tag=x&tag=2&deep=%7B%22a%22%3Atrue%7D");
    assert_string_equal(service_body(0), "");
    assert_null(strstr(service.requests[0], "Content-Type"));
    assert_string_equal(t.text, "[]");
    service_close();
    run_against(&t, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "/notes/{id}?soft=1",
                ",'method':'DELETE'", "{'id':7,'why':'old'}");
    check_request_line("DELETE /notes/7?soft=1&why=old");
    assert_false(t.is_error);
    assert_int_equal(t.n_parts, 0);
    service_close();
}

static void credentials_are_sent_and_hidden(void **state)
{
    struct tool_test t;
    (void)state;
    setenv("TOOL_HTTP_TOKEN", "s3cret-token", 1);
    run_against(&t,
                HEAD("403 Forbidden", "text/plain") "\r\nthe token s3cret-token\r\nmay not do this",
                "/x", ",'token_env':'TOOL_HTTP_TOKEN','headers':{'X-Team':'blue'}", NULL);
    assert_non_null(strstr(service.requests[0], "\r\nAuthorization: Bearer s3cret-token\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nX-Team: blue\r\n"));
    assert_true(t.is_error);
    assert_false(t.is_outcome_unknown);
    assert_string_equal(
        t.text,
        "The tool's server answered with status 403: the token ************  may not do this");
    service_close();
}

static void other_results_are_text_or_bytes(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, HEAD("200 OK", "text/plain; charset=utf-8") "\r\n{\"a\":1}", "/", "", NULL);
    assert_int_equal(t.kind, DGM_PART_TEXT);
    assert_string_equal(t.text, "{\"a\":1}");
    service_close();
    run_against(&t, HEAD("200 OK", "image/png") "\r\n\x89PNG", "/", "", NULL);
    assert_int_equal(t.kind, DGM_PART_RAW);
    assert_string_equal(t.text, "iVBORw==");
    assert_string_equal(t.media_type, "image/png");
    service_close();
    run_against(&t, HEAD("200 OK", "application/vnd.x+json") "\r\n{", "/", "", NULL);
    assert_int_equal(t.kind, DGM_PART_TEXT);
    assert_string_equal(t.text, "{");
    service_close();
}

static void failures_are_sentences(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, HEAD("302 Found", "text/plain") "Location: http://127.0.0.2/\r\n\r\n", "/", "",
                NULL);
    assert_true(t.is_error);
    assert_non_null(strstr(t.text, "status 302 (a redirect, which is not followed)"));
    service_close();
    run_against(&t, HEAD("200 OK", "application/json") "Content-Length: 100\r\n\r\n{", "/", "",
                NULL);
    assert_true(t.is_error);
    assert_true(t.is_outcome_unknown);
    assert_non_null(strstr(t.text, "The tool's request failed: "));
    service_close();
    tool_run_once(&t, "{'http':{'name':'t','url':'http://127.0.0.1:1/'}}", NULL);
    assert_true(t.is_error);
    assert_false(t.is_outcome_unknown);
    assert_non_null(strstr(t.text, "127.0.0.1:1"));
}

static void large_answers_are_errors(void **state)
{
    struct tool_test t;
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, HEAD("200 OK", "text/plain") "\r\n");
    for (size_t i = 0; i <= DGM_MAX_TOOL_OUTPUT_BYTES; i += 1024)
        dgm_buf_printf(&b, "%1024d", 1);
    dgm_buf_add_char(&b, '\0');
    run_against(&t, b.p, "/", "", NULL);
    assert_true(t.is_error);
    service_close();
    dgm_buf_done(&b);
}

static void arguments_cannot_leave_the_path(void **state)
{
    static const char *const rows[][2] = {
        {"{'id':'..'}", "\".\" or \"..\""},
        {"{'id':'.'}", "\".\" or \"..\""},
        {"{'id':''}", "The argument \"id\" is needed"},
        {"{}", "The argument \"id\" is needed"},
        {"{'id':[1]}", "The argument \"id\" is needed"},
        {"{'id':null}", "The argument \"id\" is needed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tool_test t;
        tool_run_once(&t, "{'http':{'name':'t','url':'http://127.0.0.1:1/a/{id}/b'}}", rows[i][0]);
        assert_true(t.is_error);
        assert_false(t.is_outcome_unknown);
        assert_non_null(strstr(t.text, rows[i][1]));
    }
}

static void long_urls_are_refused(void **state)
{
    struct tool_test t;
    char arguments[DGM_MAX_TOOL_URL_BYTES + 100];
    (void)state;
    snprintf(arguments, sizeof arguments, "{'q':'%*s'}", (int)DGM_MAX_TOOL_URL_BYTES / 2, "x");
    tool_run_once(&t, "{'http':{'name':'t','method':'GET','url':'http://127.0.0.1:1/'}}",
                  arguments);
    assert_true(t.is_error);
    assert_non_null(strstr(t.text, "tool_url_bytes"));
}

static void invalid_arguments_are_not_sent(void **state)
{
    struct tool_test t;
    (void)state;
    run_against(&t, OK_JSON "1", "/", ",'parameters':{'properties':{'n':{'type':'integer'}}}",
                "{'n':'one'}");
    assert_true(t.is_error);
    assert_non_null(strstr(t.text, "/n: expected an integer, got a string"));
    assert_int_equal(atomic_load(&service.n_requests), 0);
    service_close();
}

static void start_held(struct tool_test *t, const char *rest)
{
    static const struct service_answer held[] = {{NULL, 0, SERVICE_HOLD}};
    service_open();
    SERVICE_SET(held);
    tool_test_init(t);
    tool_test_open(t, entry_of("/", rest), NULL);
    tool_post_start(t, NULL);
    while (!atomic_load(&service.n_requests))
        usleep(1000);
}

static void a_slow_server_is_given_up(void **state)
{
    struct tool_test t;
    (void)state;
    start_held(&t, ",'timeout':0.3");
    uv_sem_wait(&t.done);
    assert_true(t.is_error);
    assert_true(t.is_outcome_unknown);
    assert_non_null(strstr(t.text, "longer than 0.3 seconds"));
    tool_test_done(&t);
    service_close();
}

static void cancel_ends_without_a_callback(void **state)
{
    struct tool_test t;
    (void)state;
    start_held(&t, "");
    dgm_loop_post(dgm_loops_at(t.loops, 0), tool_do_cancel, &t);
    uv_sem_wait(&t.done);
    tool_test_done(&t);
    assert_int_equal(t.n_done, 0);
    service_close();
}

static void a_stopping_server_ends_the_call(void **state)
{
    struct tool_test t;
    (void)state;
    start_held(&t, "");
    dgm_loops_stop(t.loops);
    uv_sem_wait(&t.done);
    assert_true(t.is_error);
    tool_test_done(&t);
    service_close();
}

static void http_settings_are_checked(void **state)
{
    (void)state;
    check_refused("{'http':{'name':'t'}}", "/http/url", "is missing");
    check_refused("{'http':{'name':'t','url':'ftp://x/'}}", "/http/url", "http or https URL");
    check_refused("{'http':{'name':'t','url':'http://{host}/'}}", "/http/url", "not in the host");
    check_refused("{'http':{'name':'t','url':'http://a.{host}:80/x'}}", "/http/url",
                  "not in the host");
    check_refused("{'http':{'name':'t','url':'{url}'}}", "/http/url", "http or https URL");
    check_refused("{'http':{'name':'t','url':'http://a/{}'}}", "/http/url", "{name}");
    check_refused("{'http':{'name':'t','url':'http://a/#x'}}", "/http/url", "fragment");
    check_refused("{'http':{'name':'t','url':'http://a/','method':'TRACE'}}", "/http/method",
                  "allowed values: GET, POST, PUT, PATCH, DELETE");
    check_refused("{'http':{'name':'t','url':'http://a/','token_env':'NOT_SET_ANYWHERE'}}",
                  "/http/token_env", "NOT_SET_ANYWHERE");
}

DGM_TEST_MAIN(dgm_test(arguments_are_the_body), dgm_test(the_fence_of_a_shared_store_is_a_header),
              dgm_test(placeholders_are_encoded_and_not_sent_twice),
              dgm_test(get_and_delete_have_a_query), dgm_test(credentials_are_sent_and_hidden),
              dgm_test(other_results_are_text_or_bytes), dgm_test(failures_are_sentences),
              dgm_test(large_answers_are_errors), dgm_test(arguments_cannot_leave_the_path),
              dgm_test(long_urls_are_refused), dgm_test(invalid_arguments_are_not_sent),
              dgm_test(a_slow_server_is_given_up), dgm_test(cancel_ends_without_a_callback),
              dgm_test(a_stopping_server_ends_the_call), dgm_test(http_settings_are_checked))
