/* test_remote.c - one call to a server: settings, headers and credentials, content types, retries, sentences, a full log. */
#include "backend/remote/remote.h"
#include "backend/test_fake.h"
#include "backend/test_service.h"
#include "base/limits.h"

#define HEAD(status, type) "HTTP/1.1 " status "\r\nContent-Type: " type "\r\nConnection: close\r\n"
#define OK_JSON HEAD("200 OK", "application/json") "\r\n"

/* ---- helpers --------------------------------------------------------------------------------------------------- */

/* What the settings of a type look like. */
struct remote_type {
    dgm_remote remote;
};
static const dgm_setting rows[] = {DGM_REMOTE_SETTINGS(struct remote_type, remote), {0}};

struct call {
    struct fake *fake;
    struct remote_type type;
    dgm_remote_request request;
    dgm_remote_call *call;
    dgm_buf items;
    dgm_remote_end end;
    char error[400], body[400];
    bool cancels; /* from inside the first item */
    uv_sem_t ended;
    uint64_t ms;
};

static void call_on_item(void *user, const dgm_frames_item *item)
{
    struct call *c = user;
    dgm_buf_printf(&c->items, "%s%.*s", c->items.n ? "|" : "", DGM_P(item->text));
    if (c->cancels) {
        dgm_remote_cancel(c->call);
        uv_sem_post(&c->ended);
    }
}

static void call_on_end(void *user, const dgm_remote_end *end)
{
    struct call *c = user;
    c->end = *end;
    snprintf(c->error, sizeof c->error, "%s", end->error ? end->error : "");
    snprintf(c->body, sizeof c->body, "%.*s", DGM_P(end->body));
    uv_sem_post(&c->ended);
}

static void call_start(void *arg)
{
    struct call *c = arg;
    c->call = dgm_remote_start(&c->type.remote, &c->fake->run, &c->request,
                               (dgm_remote_handler){call_on_item, call_on_end, c});
}

static dgm_code read_settings(dgm_arena *a, const char *config, struct remote_type *ret,
                              dgm_err *err)
{
    *ret = (struct remote_type){.remote = DGM_REMOTE_DEFAULTS};
    dgm_code rc = dgm_settings_read(fake_json(a, config), rows, ret, err);
    return rc ? rc : dgm_remote_open(&ret->remote, NULL, a, err);
}

/* more: settings besides the url. */
static void call_open(struct call *c, const char *more)
{
    char config[600];
    dgm_err err = {0};
    *c = (struct call){.fake = fake_open("hello", NULL, NULL), .request = {.method = "POST"}};
    snprintf(config, sizeof config, "{'url':'%s'%s%s}", service.url, *more ? "," : "", more);
    fake_prepare(c->fake, "msg-1", "Hi");
    check_ok(read_settings(c->fake->arena, config, &c->type, &err), err);
    dgm_buf_init(&c->items, SIZE_MAX);
    uv_sem_init(&c->ended, 0);
}

static void call_run(struct call *c)
{
    uint64_t from = uv_hrtime();
    dgm_buf_clear(&c->items);
    dgm_loop_post(c->fake->run.loop, call_start, c);
    uv_sem_wait(&c->ended);
    c->ms = (uv_hrtime() - from) / 1000000;
}

static void call_close(struct call *c)
{
    fake_close(c->fake);
    dgm_buf_done(&c->items);
    uv_sem_destroy(&c->ended);
}

/* One call with these answers. */
static void one_call(struct call *c, const char *more, const struct service_answer *answers,
                     size_t n)
{
    service_set(answers, n);
    call_open(c, more);
    call_run(c);
}
#define ONE_CALL(c, more, answers)                                                                 \
    one_call((c), (more), (answers), sizeof(answers) / sizeof *(answers))

/* ---- retries ------------------------------------------------------------------------------------------------------ */

static void retries_are_limited(void **state)
{
    static const struct service_answer later[] = {
        {.bytes = HEAD("429 Too Many Requests", "text/plain") "Retry-After: 0\r\n\r\nslow"},
        {.bytes = HEAD("503 Service Unavailable", "text/plain") "Retry-After: 0\r\n\r\nbusy"},
        {.bytes = OK_JSON "{\"a\":1}"}};
    struct call c;
    (void)state;
    service_open();
    ONE_CALL(&c, "", later);
    assert_null(c.end.error);
    assert_int_equal(c.end.status, 200);
    check_str(c.items, "{\"a\":1}");
    assert_int_equal(atomic_load(&service.n_requests), 3);
    call_close(&c);

    ONE_CALL(&c, "'retries':1", later); /* the second answer is final */
    assert_string_equal(
        c.error, service_placed("the agent's server at HOST answered with status 503: it failed"));
    assert_string_equal(c.body, "busy");
    assert_int_equal(atomic_load(&service.n_requests), 2);
    call_close(&c);

    ONE_CALL(&c, "'retries':0", later);
    assert_string_equal(
        c.error,
        service_placed(
            "the agent's server at HOST answered with status 429: it gets too many requests"));
    assert_int_equal(atomic_load(&service.n_requests), 1);
    call_close(&c);
    service_close();
}

static void only_a_short_retry_after_is_waited_for(void **state)
{
    static const struct {
        const char *bytes;
        size_t n_requests;
    } cases[] = {
        {HEAD("503 Service Unavailable", "text/plain") "\r\n", 1},
        {HEAD("503 Service Unavailable", "text/plain") "Retry-After: 61\r\n\r\n", 1},
        {HEAD("503 Service Unavailable", "text/plain") "Retry-After: soon\r\n\r\n", 1},
        {HEAD("500 Internal Server Error", "text/plain") "Retry-After: 0\r\n\r\n", 1},
        {HEAD("429 Too Many Requests", "text/plain") "Retry-After: 1\r\n\r\n", 2},
    };
    struct call c;
    (void)state;
    service_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service_answer answers[] = {{.bytes = cases[i].bytes}, {.bytes = OK_JSON "{}"}};
        ONE_CALL(&c, "", answers);
        assert_int_equal(atomic_load(&service.n_requests), cases[i].n_requests);
        assert_true(cases[i].n_requests == 1 ? c.end.error != NULL : c.ms >= 1000);
        call_close(&c);
    }
    service_close();
}

/* A body is sent again as it was. */
static void a_retry_sends_the_same_request(void **state)
{
    static const struct service_answer later[] = {
        {.bytes = HEAD("429 Too Many Requests", "text/plain") "Retry-After: 0\r\n\r\n"},
        {.bytes = OK_JSON "{}"}};
    struct call c;
    (void)state;
    service_open();
    SERVICE_SET(later);
    call_open(&c, "'headers':{'X-A':'1'}");
    c.request.body = DGM_STR("{\"q\":1}");
    c.request.headers[c.request.n_headers++] = (dgm_fetch_header){DGM_STR("X-B"), DGM_STR("2")};
    call_run(&c);
    assert_string_equal(service.requests[0], service.requests[1]);
    assert_string_equal(service_body(1), "{\"q\":1}");
    assert_non_null(strstr(service.requests[1], "\r\nX-A: 1\r\n"));
    assert_non_null(strstr(service.requests[1], "\r\nX-B: 2\r\n"));
    call_close(&c);
    service_close();
}

/* ---- content types --------------------------------------------------------------------------------------------------- */

static void content_types_decide_how_an_answer_is_read(void **state)
{
    static const struct {
        const char *bytes, *items, *error;
    } cases[] = {
        {HEAD("200 OK", "application/json; charset=utf-8") "\r\n{}", "{}", ""},
        {HEAD("200 OK", "Application/JSON") "\r\n{}", "{}", ""},
        {HEAD("200 OK", "application/a2a+json") "\r\n{}", "{}", ""},
        {HEAD("200 OK", "application/x-ndjson") "\r\n{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}|{\"b\":2}",
         ""},
        {HEAD("200 OK",
              "text/event-stream; charset=utf-8") "\r\n: hello\n\ndata: {\"a\":1}\n\nid: 7\ndata: "
                                                  "{\"b\":2}\n\ndata: [DONE]\n\n",
         "{\"a\":1}|{\"b\":2}|[DONE]", ""},
        {HEAD("200 OK", "text/html; charset=utf-8") "\r\n<html>", "",
         "the agent's server at HOST answered with text/html: expected JSON or an event stream "
         "(this is a "
         "web page: check the URL)"},
        {HEAD("200 OK", "image/png") "\r\n\x89PNG", "",
         "the agent's server at HOST answered with image/png: expected JSON or an event stream"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "",
         "the agent's server at HOST answered without a content type: expected JSON or an event "
         "stream"},
        {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "", ""},
    };
    struct call c;
    (void)state;
    service_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service_answer answers[] = {{.bytes = cases[i].bytes}};
        ONE_CALL(&c, "", answers);
        check_str(c.items, cases[i].items);
        assert_string_equal(c.error, service_placed(cases[i].error));
        assert_int_equal(c.end.is_stream, i == 4);
        call_close(&c);
    }
    service_close();
}

static void a_status_has_a_sentence_and_its_body(void **state)
{
    static const struct {
        const char *line, *meaning;
    } cases[] = {
        {"301 Moved Permanently", "301: it redirects, which is not followed"},
        {"400 Bad Request", "400: it rejects the request"},
        {"401 Unauthorized", "401: it wants other credentials"},
        {"403 Forbidden", "403: it forbids this"},
        {"404 Not Found", "404: there is nothing at this URL"},
        {"405 Method Not Allowed", "405: it does not take this method at this URL"},
        {"429 Too Many Requests", "429: it gets too many requests"},
        {"500 Internal Server Error", "500: it failed"},
        {"502 Bad Gateway", "502: it failed"},
    };
    char bytes[300], want[200];
    struct call c;
    (void)state;
    service_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service_answer answers[] = {{.bytes = bytes}};
        snprintf(bytes, sizeof bytes, HEAD("%s", "text/html") "\r\n<h1>no</h1>", cases[i].line);
        snprintf(want, sizeof want, "the agent's server at HOST answered with status %s",
                 cases[i].meaning);
        ONE_CALL(&c, "", answers);
        assert_string_equal(c.error, service_placed(want));
        assert_string_equal(c.body, "<h1>no</h1>");
        assert_int_equal(c.items.n, 0);
        assert_false(c.end.is_cut);
        call_close(&c);
    }
    service_close();
}

static void a_lost_connection_is_a_cut(void **state)
{
    static const struct service_answer cut[] = {
        {.bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "
                  "99\r\n\r\ndata: {\"a\":1}\n\ndata: {\"b"}};
    static const struct service_answer half[] = {
        {.bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                  "99\r\n\r\n{\"a\":"}};
    struct call c;
    (void)state;
    service_open();
    ONE_CALL(&c, "", cut);
    assert_true(c.end.is_cut && c.end.is_stream && c.end.may_be_received);
    assert_non_null(strstr(c.error, " closed the connection in the middle of its answer"));
    assert_int_equal(strncmp(c.items.p, "{\"a\":1}", 7), 0);
    call_close(&c);
    ONE_CALL(&c, "", half); /* half of one value is not passed on */
    assert_true(c.end.is_cut && !c.end.is_stream);
    assert_int_equal(c.items.n, 0);
    call_close(&c);
    service_close();
}

/* ---- headers and credentials ------------------------------------------------------------------------------------------- */

static void headers_may_hold_variables(void **state)
{
    static const struct service_answer answers[] = {{.bytes = OK_JSON "{}"}};
    struct call c;
    (void)state;
    setenv("DGM_TEST_KEY", "k-1", 1);
    service_open();
    ONE_CALL(&c,
             "'headers':{'X-Key':'id=${DGM_TEST_KEY};${DGM_TEST_KEY}','X-Plain':'$5 ${','X-N':7},"
             "'token_env':'DGM_TEST_KEY'",
             answers);
    assert_non_null(strstr(service.requests[0], "\r\nX-Key: id=k-1;k-1\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nX-Plain: $5 ${\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nX-N: 7\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nAuthorization: Bearer k-1\r\n"));
    call_close(&c);
    ONE_CALL(&c, "'token_env':'DGM_TEST_KEY','token_header':'x-api-key'", answers);
    assert_non_null(strstr(service.requests[0], "\r\nx-api-key: k-1\r\n"));
    assert_null(strstr(service.requests[0], "Authorization"));
    call_close(&c);
    setenv("DGM_TEST_KEY", "Basic abc", 1); /* has its own scheme */
    ONE_CALL(&c, "'token_env':'DGM_TEST_KEY'", answers);
    assert_non_null(strstr(service.requests[0], "\r\nAuthorization: Basic abc\r\n"));
    call_close(&c);
    service_close();
}

/* Another port is another origin. Its address is not the operator's either: loopback is refused. */
static void credentials_go_only_to_their_origin(void **state)
{
    static const struct service_answer answers[] = {{.bytes = OK_JSON "{}"}};
    char other[64], path[80];
    struct call c;
    (void)state;
    setenv("DGM_TEST_KEY", "k-1", 1);
    service_open();
    SERVICE_SET(answers);
    call_open(&c, "'token_env':'DGM_TEST_KEY','headers':{'X-Key':'${DGM_TEST_KEY}'}");
    /* the same origin, another path */
    snprintf(path, sizeof path, "http://127.0.0.1:%d/other", service.port);
    c.request.url = path;
    call_run(&c);
    assert_non_null(strstr(service.requests[0], "POST /other HTTP/1.1\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nX-Key: k-1\r\n"));
    /* another one: the settings name a port where no service is */
    dgm_err err = {0};
    snprintf(other, sizeof other, "{'url':'http://127.0.0.1:1/','token_env':'DGM_TEST_KEY'}");
    check_ok(read_settings(c.fake->arena, other, &c.type, &err), err);
    call_run(&c);
    assert_int_equal(c.end.end, DGM_FETCH_REFUSED);
    assert_int_equal(atomic_load(&service.n_requests), 1);
    call_close(&c);
    service_close();
}

static void mistakes_are_pointed_at(void **state)
{
    static const struct {
        const char *config, *at, *what;
    } cases[] = {
        {"{}", "/url", ""},
        {"{'url':'agent.example.com'}", "/url", "it is not an http or https URL"},
        {"{'url':'http://a','token_env':'DGM_TEST_NONE'}", "/token_env",
         "the environment variable DGM_TEST_NONE is not set"},
        {"{'url':'http://a','headers':{'A':'${DGM_TEST_NONE}'}}", "/headers",
         "the environment variable DGM_TEST_NONE is not set"},
        {"{'url':'http://a','headers':{'A b':'c'}}", "/headers/A b", ""},
        {"{'url':'http://a','ca_file':'/none/ca.pem'}", "/ca_file", "the file cannot be read"},
        {"{'url':'http://a','timeout':0}", "/timeout", ""},
        {"{'url':'http://a','retries':11}", "/retries", ""},
    };
    (void)state;
    unsetenv("DGM_TEST_NONE");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct remote_type type;
        dgm_err err = {0};
        assert_int_not_equal(read_settings(a, cases[i].config, &type, &err), DGM_OK);
        assert_string_equal(err.at, cases[i].at);
        assert_non_null(strstr(err.msg, cases[i].what));
    }
}

/* ---- the log, cancel ------------------------------------------------------------------------------------------------------ */

/* The stream is longer than one read. */
static void it_waits_while_the_log_is_full(void **state)
{
    dgm_buf b;
    struct call c;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, HEAD("200 OK", "text/event-stream") "\r\n");
    for (int i = 0; i < 5000; i++)
        dgm_buf_printf(&b, "data: {\"number\":%d,\"text\":\"xxxxxxxxxxxxxxxxxxxx\"}\n\n", 1000 + i);
    struct service_answer answers[] = {{.bytes = b.p, .n = b.n}};
    service_open();
    SERVICE_SET(answers);
    call_open(&c, "");
    c.fake->full_for = 20;
    call_run(&c);
    assert_null(c.end.error);
    assert_int_equal(c.items.n,
                     5000 * strlen("{\"number\":1000,\"text\":\"xxxxxxxxxxxxxxxxxxxx\"}|") - 1);
    assert_int_equal(c.fake->full_for, 0);
    assert_true(c.ms >= 50); /* it has looked again every few ms */
    call_close(&c);
    service_close();
    dgm_buf_done(&b);
}

static void it_can_be_canceled_from_inside_an_item(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = HEAD("200 OK", "text/event-stream") "\r\ndata: {\"a\":1}\n\ndata: {\"b\":2}\n\n",
         .how = SERVICE_HOLD}};
    struct call c;
    (void)state;
    service_open();
    SERVICE_SET(answers);
    call_open(&c, "");
    c.cancels = true;
    call_run(&c);
    check_str(c.items, "{\"a\":1}");
    call_close(&c);
    service_close();
}

DGM_TEST_MAIN(dgm_test(retries_are_limited), dgm_test(only_a_short_retry_after_is_waited_for),
              dgm_test(a_retry_sends_the_same_request),
              dgm_test(content_types_decide_how_an_answer_is_read),
              dgm_test(a_status_has_a_sentence_and_its_body), dgm_test(a_lost_connection_is_a_cut),
              dgm_test(headers_may_hold_variables), dgm_test(credentials_go_only_to_their_origin),
              dgm_test(mistakes_are_pointed_at), dgm_test(it_waits_while_the_log_is_full),
              dgm_test(it_can_be_canceled_from_inside_an_item))
