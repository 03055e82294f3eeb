/* test_client.c - requests to a scripted server: a thread that answers connections with prepared bytes. */
#include "net/client.h"

#include "base/buf.h"
#include "base/limits.h"
#include "net/test_peer.h"
#include "support/check.h"
#include "support/quiet_port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- the client ----------------------------------------------------------------------------------------------------- */

struct got {
    dgm_fetch *fetch;
    dgm_buf body;
    int status;
    char type[64], retry[16];
    dgm_fetch_end end;
    bool may_be_received;
    char what[300];
    int n_heads, n_ends;
    size_t cancel_at, pause_at, release_at; /* when the body has this many bytes; 0: never */
    size_t canceled_at;
    bool paused;
};

static uv_loop_t loop;
static dgm_client *client;

static void on_head(void *user, const dgm_fetch_head *head)
{
    struct got *g = user;
    dgm_str retry = dgm_fetch_header_of(head, "retry-after");
    g->n_heads++;
    g->status = head->status;
    snprintf(g->type, sizeof g->type, "%.*s", DGM_P(head->content_type));
    snprintf(g->retry, sizeof g->retry, "%.*s", (int)retry.n, retry.p ? retry.p : "");
}

static void on_body(void *user, dgm_str bytes)
{
    struct got *g = user;
    assert_false(g->paused);
    dgm_buf_add_str(&g->body, bytes);
    if (g->cancel_at && g->body.n >= g->cancel_at)
        dgm_fetch_cancel(g->fetch);
    if (g->release_at && g->body.n >= g->release_at)
        dgm_fetch_release(g->fetch);
    if (g->pause_at && g->body.n >= g->pause_at) {
        g->pause_at = 0;
        g->paused = true;
        dgm_fetch_pause(g->fetch);
    }
}

static void on_end(void *user, const dgm_fetch_result *result)
{
    struct got *g = user;
    g->n_ends++;
    g->end = result->end;
    g->may_be_received = result->may_be_received;
    snprintf(g->what, sizeof g->what, "%.*s", DGM_P(result->what));
}

static struct got *start(dgm_fetch_options o, const char *path)
{
    struct got *g = calloc(1, sizeof *g);
    char url[200];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, path);
    if (!o.url)
        o.url = url;
    if (!o.method)
        o.method = o.body.p ? "POST" : "GET";
    dgm_buf_init(&g->body, 1 << 20);
    g->fetch = dgm_fetch_start(client, &o, (dgm_fetch_handler){on_head, on_body, on_end, g});
    assert_int_equal(g->n_ends, 0);
    return g;
}

static void client_start(void)
{
    uv_loop_init(&loop);
    client = dgm_client_new(&loop, 0);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void client_stop(void)
{
    bool closed = false;
    dgm_client_close(client, on_closed, &closed);
    while (!closed)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void run_until(struct got *g)
{
    while (!g->n_ends)
        uv_run(&loop, UV_RUN_ONCE);
}

static void on_wait(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

static void run_for(uint64_t ms)
{
    uv_timer_t t;
    bool over = false;
    uv_timer_init(&loop, &t);
    t.data = &over;
    uv_timer_start(&t, on_wait, ms, 0);
    while (!over)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&t, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void done(struct got *g)
{
    dgm_buf_done(&g->body);
    free(g);
}

static size_t n_descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

static void a_request_is_answered_and_its_connection_is_used_again(void **state)
{
    static const struct script scripts[] = {
        {OK_HEAD "Retry-After: 7\r\nContent-Length: 2\r\n\r\n{}", KEEP},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", KEEP}};
    dgm_fetch_header headers[] = {{DGM_STR("Authorization"), DGM_STR("Bearer s3")},
                                  {DGM_STR("Content-Type"), DGM_STR("application/json")}};
    (void)state;
    server_start(scripts, 2);
    client_start();
    struct got *g =
        start((dgm_fetch_options){.headers = headers, .n_headers = 2, .body = DGM_STR("{\"a\":1}")},
              "/x?q");
    assert_int_equal(dgm_client_in_flight(client), 1);
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_OK);
    assert_int_equal(g->status, 200);
    assert_string_equal(g->type, "application/json");
    assert_string_equal(g->retry, "7");
    check_str(dgm_buf_str(&g->body), "{}");
    assert_true(g->may_be_received);
    assert_non_null(strstr(server.last, "POST /x?q HTTP/1.1\r\n"));
    assert_non_null(strstr(server.last, "\r\nAuthorization: Bearer s3\r\n"));
    assert_non_null(strstr(server.last, "\r\n\r\n{\"a\":1}"));
    assert_null(strstr(server.last, "Expect"));
    done(g);
    run_until(g = start((dgm_fetch_options){0}, "/y"));
    assert_int_equal(g->end, DGM_FETCH_OK);
    assert_int_equal(g->status, 404);
    assert_string_equal(g->type, "");
    done(g);
    assert_int_equal(atomic_load(&server.connections), 1);
    assert_int_equal(dgm_client_in_flight(client), 0);
    client_stop();
    server_stop();
}

static void no_proxy_of_the_environment_is_used(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", 0}};
    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    setenv("no_proxy", "name.invalid", 1);
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){0}, "/");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_OK);
    done(g);
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server.port);
    run_until(g = start((dgm_fetch_options){.proxy = proxy, .url = "http://name.invalid/z"}, ""));
    assert_int_equal(g->end, DGM_FETCH_OK);
    assert_non_null(strstr(server.last, "GET http://name.invalid/z HTTP/1.1\r\n"));
    done(g);
    run_until(g = start((dgm_fetch_options){.proxy = proxy,
                                            .no_proxy = "other.invalid,.name.invalid",
                                            .url = "http://a.name.invalid/z"},
                        ""));
    assert_int_equal(g->end, DGM_FETCH_NO_ADDRESS);
    done(g);
    client_stop();
    server_stop();
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    unsetenv("no_proxy");
}

struct bad {
    const char *name;
    struct script script;
    dgm_fetch_options o;
    dgm_fetch_end end;
    bool received;
    const char *what; /* with %d for the port */
};

static void bad_servers(void **state)
{
    static const struct bad rows[] = {
        {"closed without an answer",
         {NULL, 0},
         {0},
         DGM_FETCH_CUT,
         true,
         "127.0.0.1:%d closed the connection without an answer"},
        {"reset",
         {NULL, RESET},
         {.body = DGM_STR("{}")},
         DGM_FETCH_CUT,
         true,
         "127.0.0.1:%d closed the connection without an answer"},
        {"half a head", {"HTTP/1.1 200 OK\r\nContent-Ty", 0}, {0}, DGM_FETCH_CUT, true, NULL},
        {"half a body",
         {OK_HEAD "Content-Length: 10\r\n\r\n{", 0},
         {.body = DGM_STR("{}")},
         DGM_FETCH_CUT,
         true,
         "127.0.0.1:%d closed the connection in the middle of its answer"},
        {"half a chunk",
         {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", 0},
         {0},
         DGM_FETCH_CUT,
         true,
         NULL},
        {"no HTTP",
         {"SSH-2.0-OpenSSH_9.2\r\n", NO_READ | HOLD},
         {0},
         DGM_FETCH_INVALID,
         true,
         "the answer of 127.0.0.1:%d is not HTTP"},
        {"another protocol, which no request asks for",
         {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes", 0},
         {.body = DGM_STR("{}")},
         DGM_FETCH_INVALID,
         true,
         "the answer of 127.0.0.1:%d has status 101: expected 200 to 599"},
        {"no answer in time",
         {NULL, HOLD},
         {.limits = {.first_byte_ms = 100}},
         DGM_FETCH_TIMEOUT,
         true,
         "no answer from 127.0.0.1:%d within 0.1 s"},
        {"silence",
         {OK_HEAD "\r\nabc", HOLD},
         {.limits = {.silence_ms = 100}},
         DGM_FETCH_TIMEOUT,
         true,
         "127.0.0.1:%d sent nothing for 0.1 s"},
        {"too long in all",
         {OK_HEAD "\r\nabc", HOLD},
         {.limits = {.total_ms = 150, .silence_ms = 5000}},
         DGM_FETCH_TIMEOUT,
         true,
         "127.0.0.1:%d did not finish its answer within 0.15 s"},
        {"a body over its limit",
         {OK_HEAD "\r\n", ENDLESS},
         {.limits = {.body_bytes = 100000}},
         DGM_FETCH_TOO_LARGE,
         true,
         "the answer of 127.0.0.1:%d is larger than 100000 bytes"},
        {"a head over its limit",
         {OK_HEAD "X: ", ENDLESS},
         {.limits = {.head_bytes = 20000}},
         DGM_FETCH_TOO_LARGE,
         true,
         "the headers of the answer of 127.0.0.1:%d are larger than 20000 bytes or more than 100"},
        {"a redirect to another origin",
         {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2/\r\nContent-Length: 0\r\n\r\n", 0},
         {.follows = true},
         DGM_FETCH_REDIRECT,
         true,
         "127.0.0.1:%d redirects to another origin, which is not followed: http://127.0.0.2:80"},
        {"redirects without end",
         {"HTTP/1.1 302 Found\r\nLocation: /again\r\nConnection: close\r\nContent-Length: "
          "0\r\n\r\n",
          0},
         {.follows = true},
         DGM_FETCH_REDIRECT,
         true,
         "127.0.0.1:%d redirects too often"},
        {"a guarded address",
         {OK_HEAD "\r\n", 0},
         {.is_guarded = true},
         DGM_FETCH_REFUSED,
         false,
         "127.0.0.1:%d is not connected to: 127.0.0.1 is a loopback address"},
        {"no TLS",
         {"HTTP/1.1 400 Bad\r\n\r\n", NO_READ},
         {.url = "https://127.0.0.1:%d/"},
         DGM_FETCH_TLS,
         false,
         "the server at 127.0.0.1:%d does not use TLS"},
        {"no such name",
         {0},
         {.url = "http://name.invalid/"},
         DGM_FETCH_NO_ADDRESS,
         false,
         "no address is known for name.invalid:80: the name cannot be resolved"},
        {"another scheme",
         {0},
         {.url = "file:///etc/passwd"},
         DGM_FETCH_BAD_URL,
         false,
         "it is not an http or https URL"},
        {"no URL", {0}, {.url = "http://"}, DGM_FETCH_BAD_URL, false, NULL},
        {"a CA file that is not there",
         {NULL, HOLD},
         {.url = "https://127.0.0.1:%d/", .tls.ca_file = "/nowhere"},
         DGM_FETCH_TLS,
         false,
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct bad *row = &rows[i];
        char url[100], what[300];
        size_t before = n_descriptors();
        server_start(&row->script, 1);
        client_start();
        dgm_fetch_options o = row->o;
        if (o.url)
            o.url = (snprintf(url, sizeof url, o.url, server.port), url);
        struct got *g = start(o, "/secret-path");
        run_until(g);
        if (g->end != row->end)
            print_error("%s: %d, %s\n", row->name, g->end, g->what);
        assert_int_equal(g->end, row->end);
        assert_int_equal(g->n_ends, 1);
        assert_true(g->n_heads || !g->body.n);
        assert_int_equal(g->may_be_received, row->received);
        if (row->what) {
            snprintf(what, sizeof what, row->what, server.port);
            assert_string_equal(g->what, what);
        }
        assert_null(strstr(g->what, "secret-path"));
        assert_true(strlen(g->what) > 10);
        done(g);
        client_stop();
        server_stop();
        assert_int_equal(n_descriptors(), before);
    }
}

/* Both the answer and the reset may be there when the loop looks. */
static void an_answer_before_a_reset_is_complete(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", RESET}};
    (void)state;
    for (int i = 0; i < 10; i++) {
        server_start(scripts, 1);
        client_start();
        struct got *g = start((dgm_fetch_options){0}, "/");
        while (!atomic_load(&server.requests)) /* the request is sent, nothing is read yet */
            uv_run(&loop, UV_RUN_NOWAIT);
        usleep(30000);
        run_until(g);
        check_str(dgm_buf_str(&g->body), "{}");
        assert_int_equal(g->end, DGM_FETCH_OK);
        done(g);
        client_stop();
        server_stop();
    }
}

static void a_server_that_is_not_there_is_unreachable(void **state)
{
    static const struct script scripts[] = {{0}};
    char what[100];
    (void)state;
    server_start(scripts, 1);
    server_stop();
    client_start();
    struct got *g = start((dgm_fetch_options){.body = DGM_STR("{}")}, "/");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_UNREACHABLE);
    assert_false(g->may_be_received);
    snprintf(what, sizeof what, "cannot connect to 127.0.0.1:%d: Connection refused", server.port);
    assert_string_equal(g->what, what);
    done(g);
    client_stop();
}

static void redirects_are_followed_within_the_origin_with_the_credentials(void **state)
{
    static const struct script scripts[] = {
        {"HTTP/1.1 301 Moved\r\nLocation: /card\r\nContent-Length: 3\r\n\r\nold", KEEP},
        {OK_HEAD "Content-Length: 3\r\n\r\nnew", KEEP}};
    dgm_fetch_header headers[] = {{DGM_STR("Authorization"), DGM_STR("Bearer s3")}};
    (void)state;
    server_start(scripts, 2);
    client_start();
    struct got *g =
        start((dgm_fetch_options){.follows = true, .headers = headers, .n_headers = 1}, "/");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_OK);
    assert_int_equal(g->n_heads, 1);
    check_str(dgm_buf_str(&g->body), "new");
    assert_non_null(strstr(server.last, "GET /card HTTP/1.1\r\n"));
    assert_non_null(strstr(server.last, "Bearer s3"));
    done(g);
    client_stop();
    server_stop();
}

static void a_redirect_that_is_not_to_be_followed_is_an_answer(void **state)
{
    static const struct script scripts[] = {
        {"HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", KEEP}};
    (void)state;
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){.follows = true, .body = DGM_STR("{}")}, "/");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_OK);
    assert_int_equal(g->status, 307);
    assert_int_equal(atomic_load(&server.requests), 1);
    done(g);
    client_stop();
    server_stop();
}

/* A server that closes a kept connection just when the next request is sent on it. */
static void a_post_is_never_sent_twice(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP},
                                            {NULL, RESET},
                                            {OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP}};
    (void)state;
    server_start(scripts, 3);
    client_start();
    struct got *g = start((dgm_fetch_options){.body = DGM_STR("{}")}, "/1");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_OK);
    done(g);
    run_until(g = start((dgm_fetch_options){.body = DGM_STR("{}")}, "/2"));
    assert_int_equal(g->end, DGM_FETCH_CUT);
    assert_true(g->may_be_received);
    assert_int_equal(atomic_load(&server.requests), 2);
    done(g);
    client_stop();
    server_stop();
}

static void cancel_before_poll(uv_prepare_t *h)
{
    struct got *g = h->data;
    if (!g->body.n || g->canceled_at)
        return;
    usleep(100000); /* until the socket has more */
    g->canceled_at = g->body.n;
    dgm_fetch_cancel(g->fetch);
}

/* The bytes of a socket are read before the client has removed the request. */
static void a_canceled_fetch_gets_no_bytes(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "\r\n", ENDLESS}};
    uv_prepare_t prepare;
    (void)state;
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){0}, "/");
    uv_prepare_init(&loop, &prepare);
    prepare.data = g;
    uv_prepare_start(&prepare, cancel_before_poll);
    for (int i = 0; i < 500 && !g->canceled_at; i++)
        run_for(20);
    assert_true(g->canceled_at > 0);
    assert_int_equal(g->body.n, g->canceled_at);
    assert_int_equal(g->n_ends, 0);
    uv_close((uv_handle_t *)&prepare, NULL);
    client_stop();
    done(g);
    server_stop();
}

static void a_fetch_can_be_canceled_at_any_point(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "\r\n", ENDLESS}};
    (void)state;
    size_t before = n_descriptors();
    server_start(scripts, 1);
    client_start();
    struct got *g[6];
    for (int i = 0; i < 6; i++)
        g[i] = start((dgm_fetch_options){0}, "/");
    dgm_fetch_cancel(g[0]->fetch); /* before it began */
    g[1]->cancel_at = 1;           /* from inside on_body */
    g[2]->cancel_at = 100000;
    g[3]->pause_at = 1;
    for (int i = 0; i < 500 && !(g[3]->paused && dgm_client_in_flight(client) == 3); i++)
        run_for(20); /* g[1] and g[2] cancel themselves */
    assert_true(g[3]->paused);
    dgm_fetch_cancel(g[3]->fetch); /* while it is paused */
    dgm_fetch_cancel(g[4]->fetch); /* from outside */
    dgm_fetch_resume(g[3]->fetch);
    run_for(50);
    assert_int_equal(dgm_client_in_flight(client), 1);
    client_stop(); /* the last one */
    assert_int_equal(g[5]->end, DGM_FETCH_STOPPED);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(g[i]->n_ends, i == 5);
        done(g[i]);
    }
    server_stop();
    assert_int_equal(n_descriptors(), before);
}

static void a_released_connection_is_used_again(void **state)
{
    static const struct script scripts[] = {
        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n3\r\n   \r\n0\r\n\r\n", KEEP}};
    (void)state;
    server_start(scripts, 1);
    client_start();
    for (int i = 0; i < 3; i++) {
        struct got *g = start((dgm_fetch_options){0}, "/");
        if (i == 1)
            g->pause_at = 1;
        else
            g->release_at = 1;
        run_for(30);
        if (i == 1)
            dgm_fetch_release(g->fetch);
        run_for(30);
        assert_int_equal(dgm_client_in_flight(client), 0);
        assert_int_equal(g->n_ends, 0);
        done(g);
    }
    assert_int_equal(atomic_load(&server.connections), 1);
    client_stop();
    server_stop();
}

static void a_released_answer_without_an_end_is_left(void **state)
{
    static const struct script endless[] = {{OK_HEAD "\r\n", ENDLESS}},
                               silent[] = {{OK_HEAD "Content-Length: 9\r\n\r\n{}", KEEP}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t before = n_descriptors();
        server_start(i ? silent : endless, 1);
        client_start();
        struct got *g = start((dgm_fetch_options){0}, "/");
        g->release_at = 1;
        run_for(100);
        assert_int_equal(dgm_client_in_flight(client), i);
        run_for(400);
        assert_int_equal(dgm_client_in_flight(client), 0);
        assert_int_equal(g->n_ends, 0);
        done(g);
        client_stop();
        server_stop();
        assert_int_equal(n_descriptors(), before);
    }
}

static void a_reader_that_pauses_stops_the_server(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "\r\n", ENDLESS}};
    (void)state;
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){.limits = {.silence_ms = 100}}, "/");
    g->pause_at = 1;
    run_for(300); /* a pause is no silence */
    assert_int_equal(g->n_ends, 0);
    size_t n = g->body.n;
    assert_true(n > 0 && n < 100000);
    g->paused = false;
    dgm_fetch_resume(g->fetch);
    while (g->body.n < 500000)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(g->n_ends, 0);
    client_stop();
    server_stop();
    done(g);
}

/* TLS to a port where nothing answers. */
static void the_limit_for_a_connection_is_ours(void **state)
{
    char url[100];
    int port, fd = open_quiet_port(&port);
    (void)state;
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
    client_start();
    struct got *g = start(
        (dgm_fetch_options){.url = url, .limits = {.connect_ms = 100, .first_byte_ms = 60000}}, "");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_TIMEOUT);
    assert_non_null(strstr(g->what, "no connection to"));
    assert_non_null(strstr(g->what, " within 0.1 s")); /* libcurl's limit has another sentence */
    done(g);
    close(fd);
    client_stop();
}

static void on_end_close(void *user, const dgm_fetch_result *result)
{
    on_end(user, result);
    dgm_client_close(client, on_closed, &((struct got *)user)->paused);
}

static void a_handler_may_close_the_client(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP}};
    char url[100];
    struct got g = {0};
    (void)state;
    server_start(scripts, 1);
    client_start();
    dgm_buf_init(&g.body, 100);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    struct got *other = start((dgm_fetch_options){0}, "/");
    dgm_fetch_options o = {.method = "GET", .url = url};
    g.fetch = dgm_fetch_start(client, &o, (dgm_fetch_handler){on_head, on_body, on_end_close, &g});
    while (!g.paused)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(g.n_ends, 1);
    assert_true(other->n_ends <= 1);
    dgm_buf_done(&g.body);
    done(other);
    server_stop();
}

static void headers_cannot_add_lines(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP}};
    dgm_fetch_header bad[] = {{DGM_STR("A"), DGM_STR("b\r\nC: d")}};
    (void)state;
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){.headers = bad, .n_headers = 1}, "/");
    run_until(g);
    assert_int_equal(g->end, DGM_FETCH_BAD_URL);
    assert_int_equal(atomic_load(&server.connections), 0);
    done(g);
    client_stop();
    server_stop();
}

static void a_guarded_request_opens_its_own_connection(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP}};
    dgm_address_range range;
    (void)state;
    server_start(scripts, 1);
    client_start();
    struct got *g = start((dgm_fetch_options){0}, "/");
    run_until(g);
    done(g);
    run_until(g = start((dgm_fetch_options){.is_guarded = true}, "/"));
    assert_int_equal(g->end, DGM_FETCH_REFUSED);
    done(g);
    assert_int_equal(dgm_address_parse_range(DGM_STR("127.0.0.0/8"), &range, NULL), DGM_OK);
    run_until(g = start((dgm_fetch_options){.is_guarded = true, .allowed = {&range, 1}}, "/"));
    assert_int_equal(g->end, DGM_FETCH_OK);
    done(g);
    client_stop();
    server_stop();
}

/* Idle connections are closed, also while another request of the same pool is under way. */
static void idle_connections_are_closed(void **state)
{
    static const struct script scripts[] = {{OK_HEAD "Content-Length: 2\r\n\r\n{}", KEEP, "/short"},
                                            {OK_HEAD "\r\nsome", HOLD, "/long"}};
    (void)state;
    server_start(scripts, 2);
    client_start();
    struct got *stream = start((dgm_fetch_options){0}, "/long"), *all[5];
    for (size_t i = 0; i < 5; i++)
        all[i] = start((dgm_fetch_options){0}, "/short");
    for (size_t i = 0; i < 5; i++) {
        run_until(all[i]);
        done(all[i]);
    }
    assert_true(dgm_client_connections(client) > 1);
    uint64_t started = uv_now(&loop);
    while (dgm_client_connections(client) > 1 && uv_now(&loop) < started + 15000)
        run_for(50);
    assert_int_equal(dgm_client_connections(client), 1); /* the stream */
    assert_int_equal(stream->n_ends, 0);
    assert_true(uv_now(&loop) >= started + 3000); /* they were there for the next request */
    dgm_fetch_cancel(stream->fetch);
    while (dgm_client_connections(client) && uv_now(&loop) < started + 20000)
        run_for(50);
    assert_int_equal(dgm_client_connections(client), 0);
    done(stream);
    client_stop();
    server_stop();
}

static void origins_are_compared(void **state)
{
    (void)state;
    assert_true(dgm_url_is_same_origin("http://a/x", "http://A:80/y?z"));
    assert_true(dgm_url_is_same_origin("https://a:443", "https://a/"));
    assert_false(dgm_url_is_same_origin("http://a/", "https://a/"));
    assert_false(dgm_url_is_same_origin("http://a/", "http://a:8080/"));
    assert_false(dgm_url_is_same_origin("http://a/", "http://b/"));
    assert_false(dgm_url_is_same_origin("http://a/", "http://a@b/"));
    assert_false(dgm_url_is_same_origin("http://a/", "nonsense://a/"));
}

DGM_TEST_MAIN(dgm_test(a_request_is_answered_and_its_connection_is_used_again),
              dgm_test(no_proxy_of_the_environment_is_used), dgm_test(bad_servers),
              dgm_test(an_answer_before_a_reset_is_complete),
              dgm_test(a_server_that_is_not_there_is_unreachable),
              dgm_test(redirects_are_followed_within_the_origin_with_the_credentials),
              dgm_test(a_redirect_that_is_not_to_be_followed_is_an_answer),
              dgm_test(a_post_is_never_sent_twice), dgm_test(a_fetch_can_be_canceled_at_any_point),
              dgm_test(a_canceled_fetch_gets_no_bytes),
              dgm_test(a_released_connection_is_used_again),
              dgm_test(a_released_answer_without_an_end_is_left),
              dgm_test(a_reader_that_pauses_stops_the_server),
              dgm_test(the_limit_for_a_connection_is_ours),
              dgm_test(a_handler_may_close_the_client), dgm_test(headers_cannot_add_lines),
              dgm_test(a_guarded_request_opens_its_own_connection),
              dgm_test(idle_connections_are_closed), dgm_test(origins_are_compared))
