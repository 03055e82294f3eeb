/*
 * test_http.c - the server as raw sockets meet it.
 *
 * One server per test on a port the kernel chooses; the handler answers by path (see on_request).
 */
#define _GNU_SOURCE
#include "net/http.h"

#include "base/limits.h"
#include "net/http_int.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* ---- the server --------------------------------------------------------------------------------------------- */

static struct world {
    dgm_loops *loops;
    dgm_http_server *server;
    atomic_int requests, refused, last_refused, gone, released, rooms, drained;
    atomic_size_t highest;                /* backlog seen by a writer */
    _Atomic(dgm_http_exchange *) waiting; /* at /wait, for let_go() */
} w;

struct stream {
    dgm_http_exchange *x;
    size_t left;
    char *block;
    bool over;
};

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.released, 1);
}

#define BLOCK 10000
/* As a reader of a log does: writes up to the mark, waits for room. */
static void pump(void *arg)
{
    struct stream *s = arg;
    while (s->left && dgm_http_backlog(s->x) <= DGM_HTTP_BACKLOG_MARK) {
        dgm_http_write_shared(s->x, (dgm_str){s->block, BLOCK}, on_release, NULL);
        s->left--;
        if (dgm_http_backlog(s->x) > atomic_load(&w.highest))
            atomic_store(&w.highest, dgm_http_backlog(s->x));
    }
    if (!s->left && !s->over) {
        s->over = true;
        dgm_http_end(s->x);
    }
}

static void on_room(void *arg)
{
    atomic_fetch_add(&w.rooms, 1);
    pump(arg);
}

static void on_gone(void *arg)
{
    atomic_fetch_add(&w.gone, 1);
    dgm_http_end(((struct stream *)arg)->x);
}

static void answer_later(void *arg)
{
    dgm_http_exchange *x = arg;
    dgm_http_respond(x, 200, DGM_STR("text/plain"), NULL, 0, dgm_http_request_of(x)->path);
}

static void let_go(void)
{
    dgm_http_exchange *x = atomic_load(&w.waiting);
    dgm_loop_post(dgm_http_loop(x), answer_later, x);
}

struct ticks {
    dgm_http_exchange *x;
    dgm_loop_turn turn;
    int left;
};

static void on_tick(void *arg)
{
    struct ticks *t = arg;
    char text[40];
    snprintf(text, sizeof text, "tick %d\n", t->left);
    dgm_http_write(t->x, dgm_str_from(text));
    dgm_http_write(t->x, DGM_STR("tock\n")); /* the same chunk */
    if (--t->left)
        dgm_loop_at_turn_end(dgm_http_loop(t->x), &t->turn);
    else
        dgm_http_end(t->x);
}

static void answer(dgm_http_exchange *x, const dgm_http_request *r)
{
    dgm_arena *a = dgm_http_arena(x);
    assert_ptr_equal(dgm_loop_current(), dgm_http_loop(x));
    if (dgm_str_is(r->path, "/later")) {
        dgm_loop_post(dgm_http_loop(x), answer_later, x);
    } else if (dgm_str_is(r->path, "/wait")) {
        atomic_store(&w.waiting, x);
    } else if (dgm_str_is(r->path, "/ticks")) {
        struct ticks *t = dgm_new(a, struct ticks);
        *t = (struct ticks){x, {.fn = on_tick, .arg = t}, 3};
        dgm_http_begin(x, 200, DGM_STR("text/event-stream"), NULL, 0);
        dgm_loop_at_turn_end(dgm_http_loop(x), &t->turn);
    } else if (dgm_str_is(r->path, "/hold") || dgm_str_is(r->path, "/silence")) {
        struct stream *s = dgm_new(a, struct stream);
        s->x = x;
        dgm_http_watch(x, NULL, on_gone, s);
        if (dgm_str_is(r->path, "/hold")) {
            dgm_http_begin(x, 200, DGM_STR("text/event-stream"), NULL, 0);
            dgm_http_write(x, DGM_STR(": hello\n\n"));
        }
    } else if (dgm_str_is(r->path, "/blocks")) { /* ?n */
        struct stream *s = dgm_new(a, struct stream);
        char n[20] = {0};
        memcpy(n, r->query.p, r->query.n < 19 ? r->query.n : 19);
        *s = (struct stream){x, strtoul(n, NULL, 10), dgm_arena_alloc_raw(a, BLOCK), false};
        memset(s->block, 'b', BLOCK);
        dgm_http_watch(x, on_room, on_gone, s);
        dgm_http_begin(x, 200, DGM_STR("text/plain"), NULL, 0);
        pump(s);
    } else if (dgm_str_is(r->path, "/burst")) { /* 10 MB and no patience */
        char *block = dgm_arena_alloc_raw(a, BLOCK);
        memset(block, 'b', BLOCK);
        dgm_http_begin(x, 200, DGM_STR("text/plain"), NULL, 0);
        for (int i = 0; i < 1000; i++)
            dgm_http_write_shared(x, (dgm_str){block, BLOCK}, i % 2 ? on_release : NULL, NULL);
        dgm_http_end(x);
    } else if (dgm_str_is(r->path, "/none")) {
        dgm_http_respond(x, 204, (dgm_str){0}, NULL, 0, (dgm_str){0});
    } else if (dgm_str_is(r->path, "/forgot")) {
        dgm_http_end(x);
    } else if (dgm_str_is(r->path, "/who")) {
        dgm_http_header extra[] = {{DGM_STR("X-Evil"), DGM_STR("a\r\nX-Injected: b")}};
        dgm_str t = dgm_arena_printf(a, "%s %s %zu %.*s", r->is_loopback ? "loopback" : "far",
                                     r->is_tls ? "tls" : "plain", dgm_loop_index(dgm_http_loop(x)),
                                     DGM_P(dgm_http_header_of(r, DGM_STR("host"))));
        dgm_http_respond(x, 200, DGM_STR("text/plain"), extra, 1, t);
    } else { /* echo */
        dgm_str t = dgm_arena_printf(a, "%.*s %.*s ", DGM_P(r->method), DGM_P(r->path));
        char *all = dgm_arena_alloc_raw(a, t.n + r->body.n);
        memcpy(all, t.p, t.n);
        if (r->body.n)
            memcpy(all + t.n, r->body.p, r->body.n);
        dgm_http_respond(x, 200, DGM_STR("text/plain"), NULL, 0, (dgm_str){all, t.n + r->body.n});
    }
}

static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *r)
{
    (void)user;
    answer(x, r);
    atomic_fetch_add(&w.requests, 1);
}

static void on_refused(void *user, int status, const char *why)
{
    (void)user;
    assert_non_null(why);
    atomic_fetch_add(&w.refused, 1);
    atomic_store(&w.last_refused, status);
}

static const dgm_http_times patient = {10000, 30000, 60000, 60000, 2000, 20};

static void serve(size_t loops, dgm_http_options o, const dgm_http_times *times)
{
    dgm_err err = {0};
    dgm_http_handler h = {on_request, on_refused, NULL};
    memset(&w, 0, sizeof w);
    if (!o.listen)
        o.listen = "127.0.0.1:0";
    o.times = times ? *times : patient;
    check_ok(dgm_loops_new(loops, &w.loops, &err), err);
    check_ok(dgm_http_server_new(w.loops, &o, h, &w.server, &err), err);
    check_ok(dgm_http_server_start(w.server, &err), err);
    check_ok(dgm_loops_start(w.loops, &err), err);
}

static void stop(void)
{
    dgm_loops_free(w.loops);
    assert_int_equal(dgm_http_server_connections(w.server), 0);
    dgm_http_server_free(w.server);
}

/* ---- the client ---------------------------------------------------------------------------------------------- */

static int client_to(const struct sockaddr *a, socklen_t n, int rcvbuf)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct timeval t = {.tv_sec = 5};
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    if (rcvbuf)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    if (connect(fd, a, n) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int client_with(int rcvbuf)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)dgm_http_server_port(w.server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = client_to((struct sockaddr *)&a, sizeof a, rcvbuf);
    assert_true(fd >= 0);
    return fd;
}

static int client(void)
{
    return client_with(0);
}

static void say_n(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        assert_true(k > 0);
        p += k;
        n -= (size_t)k;
    }
}

static void say(int fd, const char *text)
{
    say_n(fd, text, strlen(text));
}

/* Everything until the peer's FIN; NUL-terminated, freed by the caller. A reset or 5 s of silence ends it
 * too, and *end says which: 0 FIN, else errno. */
static char *hear_all(int fd, size_t *ret_n, int *end)
{
    size_t n = 0, cap = 1 << 16;
    char *p = malloc(cap + 1);
    for (;;) {
        ssize_t k = recv(fd, p + n, cap - n, 0);
        if (k <= 0) {
            if (end)
                *end = k < 0 ? errno : 0;
            p[n] = 0;
            if (ret_n)
                *ret_n = n;
            return p;
        }
        n += (size_t)k;
        if (n == cap)
            p = realloc(p, (cap *= 2) + 1);
    }
}

/* At least until `text` was heard; what was heard is in `got`, which holds 64 KiB. */
static void hear(int fd, char *got, const char *text)
{
    size_t n = 0;
    got[0] = 0;
    while (!strstr(got, text)) {
        ssize_t k = recv(fd, got + n, 65535 - n, 0);
        if (k <= 0)
            print_error("waited for \"%s\", heard %zu: %s\n", text, n, got);
        assert_true(k > 0);
        n += (size_t)k;
        got[n] = 0;
    }
}

static void expect_end(int fd)
{
    char c;
    assert_int_equal(recv(fd, &c, 1, 0), 0);
    close(fd);
}

static void wait_for(atomic_int *n, int want)
{
    for (int i = 0; i < 2500 && atomic_load(n) < want; i++)
        usleep(2000);
    assert_int_equal(atomic_load(n), want);
}

static void wait_for_connections(size_t want)
{
    for (int i = 0; i < 2500 && dgm_http_server_connections(w.server) != want; i++)
        usleep(2000);
    assert_int_equal(dgm_http_server_connections(w.server), want);
}

static char got[65536];

/* ---- requests and answers -------------------------------------------------------------------------------------- */

static void a_request_is_answered_and_the_connection_stays(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    for (int i = 0; i < 3; i++) {
        say(fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
        hear(fd, got, "POST /x hello");
        assert_non_null(strstr(got, "HTTP/1.1 200 OK\r\nDate: "));
        assert_non_null(
            strstr(got, " GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\n"));
        assert_null(strstr(got, "Connection:"));
    }
    close(fd);
    wait_for_connections(0);
    stop();
}

static void pipelined_requests_are_answered_in_order_wherever_they_are_cut(void **state)
{
    static const char pair[] =
        "POST /later HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        "POST /two HTTP/1.1\r\n" HOST "Content-Length: 3\r\nConnection: close\r\n\r\nxyz";
    size_t n = sizeof pair - 1;
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    for (size_t cut = 1; cut < n; cut++) {
        int fd = client(), end;
        say_n(fd, pair, cut);
        if (cut % 8 == 0)
            usleep(300); /* else the two parts often come together, which is fine as well */
        say_n(fd, pair + cut, n - cut);
        char *all = hear_all(fd, NULL, &end);
        char *one = strstr(all, "\r\n\r\n/later"), *two = strstr(all, "\r\n\r\nPOST /two xyz");
        if (end || !one || !two || one > two)
            print_error("cut at %zu, %d: %s\n", cut, end, all);
        assert_true(!end && one && two && one < two);
        free(all);
        close(fd);
    }
    stop();
}

static void byte_by_byte_is_as_good(void **state)
{
    static const char text[] = "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n0\r\n\r\n" GET("/y");
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    for (size_t i = 0; i < sizeof text - 1; i++)
        say_n(fd, text + i, 1);
    hear(fd, got, "GET /y ");
    assert_non_null(strstr(got, "POST /x hello"));
    close(fd);
    stop();
}

static void a_thousand_pipelined_requests_come_back_in_order(void **state)
{
    enum { N = 1000 };
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    dgm_buf text;
    dgm_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < N; i++) /* some at once, some later: both must keep the order */
        dgm_buf_printf(&text, "GET /%s%s HTTP/1.1\r\n" HOST "%s\r\n", i % 3 ? "n" : "later",
                       i % 3 ? (char[]){(char)('0' + i % 10), 0} : "",
                       i == N - 1 ? "Connection: close\r\n" : "");
    say_n(fd, text.p, text.n);
    dgm_buf_done(&text);
    char *all = hear_all(fd, NULL, NULL), *p = all;
    for (int i = 0; i < N; i++) {
        char want[20];
        if (i % 3)
            snprintf(want, sizeof want, "\r\n\r\nGET /n%d ", i % 10);
        else
            snprintf(want, sizeof want, "\r\n\r\n/later");
        p = strstr(p, "HTTP/1.1 200");
        assert_non_null(p);
        p = strstr(p, "\r\n\r\n");
        assert_memory_equal(p, want, strlen(want));
    }
    free(all);
    close(fd);
    assert_int_equal(w.requests, N);
    stop();
}

static void a_stream_has_one_chunk_per_turn(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/ticks"));
    hear(fd, got, "\r\n0\r\n\r\n");
    assert_non_null(
        strstr(got, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"));
    assert_null(strstr(got, "Content-Length"));
    assert_non_null(strstr(got, "\r\n\r\nc\r\ntick 3\ntock\n\r\nc\r\ntick 2\ntock\n\r\n"
                                "c\r\ntick 1\ntock\n\r\n0\r\n\r\n"));
    say(fd, GET("/again"));
    hear(fd, got, "GET /again ");
    close(fd);
    stop();
}

static void http_1_0_gets_no_chunks_and_the_end_of_the_connection(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, "GET /ticks HTTP/1.0\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_null(strstr(all, "chunked"));
    assert_non_null(
        strstr(all, "Connection: close\r\n\r\ntick 3\ntock\ntick 2\ntock\ntick 1\ntock\n"));
    free(all);
    close(fd);
    fd = client();
    say(fd, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(fd, got, "GET /x ");
    assert_non_null(strstr(got, "Connection: keep-alive\r\n"));
    say(fd, "GET /y HTTP/1.0\r\n\r\n");
    hear(fd, got, "GET /y ");
    assert_non_null(strstr(got, "Connection: close\r\n"));
    expect_end(fd);
    stop();
}

static void head_gets_the_headers_alone(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, "HEAD /x HTTP/1.1\r\n" HOST "\r\nHEAD /ticks HTTP/1.1\r\n" HOST
            "\r\n" GET("/none") "GET /end HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_non_null(strstr(all, "Content-Length: 8\r\n\r\nHTTP/1.1 200 OK"));
    assert_non_null(strstr(all, "Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No Content"));
    assert_null(strstr(all, "tick"));
    assert_non_null(strstr(all, "GMT\r\n\r\nHTTP/1.1 200 OK")); /* 204 has no length either */
    free(all);
    close(fd);
    stop();
}

static void who_waits_for_100_gets_it(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){.max_body = 1000}, NULL);
    int fd = client();
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    hear(fd, got, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "hi");
    hear(fd, got, "POST /x hi");
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 413 ", 13);
    free(all);
    close(fd);
    stop();
}

static void a_header_value_cannot_end_its_line(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/who"));
    hear(fd, got, "loopback plain 0 a");
    assert_non_null(strstr(got, "X-Evil: a  X-Injected: b\r\n"));
    say(fd, GET("/forgot"));
    hear(fd, got, "no answer\n");
    assert_memory_equal(got, "HTTP/1.1 500 ", 13);
    close(fd);
    stop();
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

static void what_is_no_request_is_refused_and_the_connection_ends(void **state)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "nonsense\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n"},
        {501, "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"},
    };
    (void)state;
    serve(1, (dgm_http_options){.max_body = 1000}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = client(), end;
        char status[20];
        snprintf(status, sizeof status, "HTTP/1.1 %d ", rows[i].status);
        say(fd, GET("/first")); /* still gets its answer, first */
        say(fd, rows[i].text);
        char *all = hear_all(fd, NULL, &end);
        char *first = strstr(all, "GET /first "), *second = strstr(all, status);
        if (end || !first || !second)
            print_error("row %zu, %d: %s\n", i, end, all);
        assert_true(!end && first && second > first);
        assert_non_null(strstr(second, "Connection: close\r\n\r\n"));
        free(all);
        close(fd);
        wait_for(&w.refused, (int)i + 1);
        assert_int_equal(w.last_refused, rows[i].status);
    }
    stop();
}

static void a_refused_upload_still_sees_why(void **state)
{
    static char junk[300000];
    (void)state;
    serve(1, (dgm_http_options){.max_body = 100000}, NULL);
    int fd = client(), end;
    say(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    memset(junk, 'x', sizeof junk);
    say_n(fd, junk, sizeof junk); /* closing at once would reset and take the answer along */
    char *all = hear_all(fd, NULL, &end);
    assert_int_equal(end, 0);
    assert_non_null(strstr(all, "HTTP/1.1 413 Content Too Large\r\n"));
    assert_non_null(strstr(all, "http_body_bytes"));
    free(all);
    close(fd);

    fd = client();
    say(fd, "GET / HTTP/1.1\r\n" HOST "X: ");
    say_n(fd, junk, 40000);
    all = hear_all(fd, NULL, &end);
    assert_int_equal(end, 0);
    assert_non_null(strstr(all, "HTTP/1.1 431 "));
    free(all);
    close(fd);
    stop();
}

static void a_body_at_its_limit_is_taken(void **state)
{
    static char body[100000];
    (void)state;
    serve(1, (dgm_http_options){.max_body = sizeof body}, NULL);
    int fd = client();
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 100000\r\nConnection: close\r\n\r\n");
    memset(body, 'x', sizeof body);
    say_n(fd, body, sizeof body);
    size_t n;
    char *all = hear_all(fd, &n, NULL);
    assert_non_null(strstr(all, "Content-Length: 100008\r\n"));
    assert_true(n > 100008);
    free(all);
    close(fd);
    stop();
}

static void connections_over_the_limit_are_told_so(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){.max_connections = 3}, NULL);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = client();
        say(fds[i], GET("/x"));
        hear(fds[i], got, "GET /x ");
    }
    int over = client(), end;
    say(over, GET("/x"));
    char *all = hear_all(over, NULL, &end);
    assert_int_equal(end, 0);
    assert_memory_equal(all, "HTTP/1.1 503 ", 13);
    free(all);
    close(over);
    say(fds[0], GET("/y")); /* the others are unaffected */
    hear(fds[0], got, "GET /y ");
    close(fds[0]);
    wait_for_connections(2);
    over = client();
    say(over, GET("/z"));
    hear(over, got, "GET /z ");
    close(over);
    close(fds[1]);
    close(fds[2]);
    stop();
}

/* ---- timers --------------------------------------------------------------------------------------------------- */

static void slow_heads_bodies_and_idle_connections_are_cut(void **state)
{
    dgm_http_times quick = patient;
    (void)state;
    quick.headers_ms = 200;
    quick.body_ms = 500; /* far above the pauses below: a busy machine makes them longer */
    quick.idle_ms = 300;
    serve(1, (dgm_http_options){0}, &quick);
    int head = client(), body = client(), idle = client(), drip = client(), steady = client();
    uint64_t from = uv_hrtime();
    say(head, "GET / HT");
    say(body, "POST / HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nab");
    say(drip, "GET / HTTP/1.1\r\nX: ");
    say(steady, "POST /steady HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n");
    for (int i = 0; i < 10; i++) { /* progress keeps a body alive, and does not help a head */
        usleep(60000);
        send(drip, "x", 1, MSG_NOSIGNAL);
        say(steady, "s");
    }
    hear(steady, got, "POST /steady ssssssssss");
    close(steady);
    char *all = hear_all(head, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 408 ", 13);
    free(all);
    all = hear_all(drip, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 408 ", 13);
    free(all);
    all = hear_all(body, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 408 ", 13);
    free(all);
    expect_end(idle);
    assert_true(uv_hrtime() - from < 4500000000ull);
    close(head);
    close(body);
    close(drip);
    wait_for_connections(0);
    assert_int_equal(w.requests, 1);
    stop();
}

static void an_answer_in_the_making_has_no_timer(void **state)
{
    dgm_http_times quick = {50, 50, 50, 50, 50, 20};
    (void)state;
    serve(2, (dgm_http_options){0}, &quick);
    int fd = client();
    say(fd, GET("/hold"));
    hear(fd, got, ": hello\n\n");
    usleep(250000);
    assert_int_equal(w.gone, 0);
    assert_int_equal(dgm_http_server_connections(w.server), 1);
    close(fd);
    stop();
}

/* ---- slow readers, backlog, gone ------------------------------------------------------------------------------- */

static void a_slow_reader_gets_all_and_the_backlog_stays_small(void **state)
{
    size_t n = 0, k = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client_with(8192);
    say(fd, "GET /blocks?1000 HTTP/1.0\r\n\r\n"); /* 10 MB */
    static char buf[100000];
    for (ssize_t r; (r = recv(fd, buf, sizeof buf, 0)) > 0; k++) {
        n += (size_t)r;
        if (k < 20)
            usleep(3000);
    }
    assert_true(n > 1000 * BLOCK && n < 1000 * BLOCK + 500);
    wait_for(&w.released, 1000);
    assert_true(w.rooms > 1);
    assert_true(w.highest <= DGM_HTTP_BACKLOG_MARK + BLOCK + 100);
    assert_int_equal(w.gone, 0);
    close(fd);
    stop();
}

static void what_was_borrowed_from_the_arena_outlives_the_end(void **state)
{
    static char buf[100000];
    size_t n = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client_with(8192), reset = client_with(8192);
    say(fd, "GET /burst HTTP/1.0\r\n\r\n");
    say(reset, GET("/burst"));
    wait_for(&w.requests, 2);
    usleep(20000); /* ended long ago, and most of it still here */
    assert_true(w.released < 1000);
    for (ssize_t r; (r = recv(fd, buf, sizeof buf, 0)) > 0;)
        n += (size_t)r;
    assert_true(n > 1000 * BLOCK && n < 1000 * BLOCK + 500);
    close(fd);
    close(reset);
    wait_for(&w.released, 1000);
    wait_for_connections(0);
    stop();
}

static void who_takes_no_byte_is_gone(void **state)
{
    dgm_http_times quick = patient;
    (void)state;
    quick.write_ms = 150;
    serve(1, (dgm_http_options){0}, &quick);
    int fd = client_with(8192);
    say(fd, GET("/blocks?2000")); /* more than the kernel's buffers */
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    close(fd);
    stop();
    assert_true(w.released > 0); /* and nothing leaked, says ASan */
}

static void a_reset_in_the_middle_of_an_answer_is_gone(void **state)
{
    struct linger hard = {1, 0};
    static const char *const paths[] = {GET("/hold"), GET("/silence"), GET("/blocks?2000")};
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    for (int i = 0; i < 3; i++) {
        int fd = client_with(8192);
        say(fd, paths[i]);
        wait_for(&w.requests, i + 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        wait_for(&w.gone, i + 1);
    }
    wait_for_connections(0);
    stop();
}

static void a_fin_is_a_half_close(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    /* one answer that is being made, one request behind it, then nothing more */
    int fd = client();
    say(fd, GET("/wait") GET("/behind"));
    shutdown(fd, SHUT_WR);
    wait_for(&w.requests, 1);
    usleep(30000);
    assert_int_equal(w.gone, 0);
    let_go();
    char *all = hear_all(fd, NULL, NULL);
    assert_non_null(strstr(all, "\r\n\r\n/wait"));
    assert_non_null(strstr(all, "GET /behind "));
    free(all);
    close(fd);
    /* a stream goes on */
    fd = client();
    say(fd, GET("/hold"));
    shutdown(fd, SHUT_WR);
    hear(fd, got, ": hello\n\n");
    usleep(50000);
    assert_int_equal(w.gone, 0);
    /* and a reset behind the FIN is noticed without a write */
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    wait_for(&w.gone, 1);
    /* half a request is none */
    fd = client();
    say(fd, "GET / HTT");
    shutdown(fd, SHUT_WR);
    expect_end(fd);
    wait_for_connections(0);
    assert_int_equal(w.requests, 3);
    stop();
}

static void stopping_the_loops_ends_what_is_open(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    int fds[10];
    for (int i = 0; i < 10; i++) {
        fds[i] = client();
        say(fds[i], i % 2 ? GET("/hold") : "GET / HT");
    }
    wait_for(&w.requests, 5);
    stop();
    assert_int_equal(w.gone, 5);
    for (int i = 0; i < 10; i++)
        close(fds[i]);
}

static void a_peer_that_is_always_ahead_is_read_only_so_far(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    static char many[64 * 1024];
    size_t n = 0, sent = 0;
    say(fd, GET("/wait"));
    while (n + 100 < sizeof many)
        n += (size_t)snprintf(many + n, sizeof many - n, GET("/many"));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (ssize_t k; sent < (64u << 20);
         sent += (size_t)k) { /* until the kernel's buffers are full */
        k = send(fd, many, n, MSG_NOSIGNAL);
        if (k < 0) {
            struct pollfd p = {fd, POLLOUT, 0};
            if (poll(&p, 1, 100) == 0)
                break;
            k = 0;
        }
    }
    assert_true(sent < (64u << 20));
    assert_int_equal(w.requests, 1);
    close(fd); /* a reset, with all that is unread */
    let_go();
    wait_for_connections(0);
    stop();
}

/* ---- many ----------------------------------------------------------------------------------------------------- */

static void a_thousand_connections_are_served(void **state)
{
    enum { N = 1000 };
    static int fds[N];
    struct rlimit lim;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_cur < 2 * N + 100) {
        lim.rlim_cur = lim.rlim_max < 2 * N + 100 ? lim.rlim_max : 2 * N + 100;
        setrlimit(RLIMIT_NOFILE, &lim);
        if (lim.rlim_cur < 2 * N + 100)
            skip();
    }
    serve(2, (dgm_http_options){0}, NULL);
    for (int i = 0; i < N; i++)
        fds[i] = client();
    for (int i = 0; i < N; i++)
        say(fds[i], GET("/hold"));
    wait_for(&w.requests, N);
    assert_int_equal(dgm_http_server_connections(w.server), N);
    for (int i = 0; i < N; i++)
        hear(fds[i], got, ": hello\n\n");
    struct linger hard = {1, 0}; /* a close alone is a FIN, and a FIN is no farewell */
    for (int i = 0; i < N; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fds[i]);
    }
    wait_for(&w.gone, N);
    wait_for_connections(0);
    stop();
}

static void without_descriptors_it_waits_and_goes_on(void **state)
{
    struct rlimit old, low;
    int fds[64], n = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int first = client();
    say(first, GET("/x"));
    hear(first, got, "GET /x ");
    /* one descriptor for our client, none for the server */
    getrlimit(RLIMIT_NOFILE, &old);
    int probe = dup(first);
    low = old;
    low.rlim_cur = (rlim_t)probe + 1;
    setrlimit(RLIMIT_NOFILE, &low);
    while (n < 64 && (fds[n] = dup(first)) >= 0)
        n++;
    close(probe);
    int late = client();
    wait_for(&w.refused, 1);
    assert_int_equal(w.last_refused, 503);
    char *all = hear_all(late, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 503 ", 13);
    free(all);
    close(late);
    int before = w.refused;
    usleep(100000); /* nobody knocks: no busy loop */
    assert_true(w.refused <= before + 1);
    setrlimit(RLIMIT_NOFILE, &old);
    while (n > 0)
        close(fds[--n]);
    say(first, GET("/y"));
    hear(first, got, "GET /y ");
    late = client();
    say(late, GET("/z"));
    hear(late, got, "GET /z ");
    close(late);
    close(first);
    stop();
}

/* ---- draining ----------------------------------------------------------------------------------------------- */

static void on_drained(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.drained, 1);
}

static void draining_lets_answers_end_and_closes_the_rest(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    a.sin_port = htons((uint16_t)dgm_http_server_port(w.server));
    int idle = client(), busy = client();
    say(idle, GET("/x"));
    hear(idle, got, "GET /x ");
    say(busy, GET("/wait"));
    wait_for(&w.requests, 2);
    dgm_http_server_drain(w.server, 5000, on_drained, NULL);
    expect_end(idle);
    usleep(20000);
    assert_int_equal(w.drained, 0);
    assert_int_equal(client_to((struct sockaddr *)&a, sizeof a, 0), -1);
    let_go();
    char *all = hear_all(busy, NULL, NULL);
    assert_non_null(strstr(all, "\r\n\r\n/wait"));
    assert_non_null(strstr(all, "Connection: close\r\n"));
    free(all);
    close(busy);
    wait_for(&w.drained, 1);
    dgm_http_server_free(w.server); /* the loops run on */
    dgm_loops_free(w.loops);
}

static void draining_ends_in_time_whatever_is_open(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/hold"));
    wait_for(&w.requests, 1);
    uint64_t from = uv_hrtime();
    dgm_http_server_drain(w.server, 100, on_drained, NULL);
    wait_for(&w.drained, 1);
    assert_true(uv_hrtime() - from >= 90000000ull);
    stop();
    assert_int_equal(w.gone, 1);
    assert_int_equal(w.drained, 1);
    close(fd);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void a_port_in_use_is_one_sentence(void **state)
{
    dgm_http_server *second;
    dgm_err err = {0};
    char address[40];
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%d", dgm_http_server_port(w.server));
    dgm_http_options o = {.listen = address};
    dgm_http_handler h = {on_request, NULL, NULL};
    check_ok(dgm_http_server_new(w.loops, &o, h, &second, &err), err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    char want[200];
    snprintf(want, sizeof want,
             "%s is already in use: stop the program that listens there, or choose another address",
             address);
    assert_string_equal(err.msg, want);
    dgm_http_server_free(second);
    int fd = client(); /* the first one goes on */
    say(fd, GET("/x"));
    hear(fd, got, "GET /x ");
    close(fd);
    stop();
}

static void an_address_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"8484",        "127.0.0.1",       ":8484",
                                      "127.0.0.1:x", "127.0.0.1:99999", "::1:8484",
                                      "unix:",       "192.0.2.1:8484",  "127.0.0.1:"};
    dgm_loops *loops;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_loops_new(1, &loops, &err), err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_http_server *s;
        dgm_http_options o = {.listen = bad[i]};
        check_ok(
            dgm_http_server_new(loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &s, &err),
            err);
        assert_int_not_equal(dgm_http_server_start(s, &err), DGM_OK);
        assert_true(strlen(err.msg) > 10);
        dgm_http_server_free(s);
    }
    dgm_loops_free(loops);
}

static void ipv6_works_as_well(void **state)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = probe >= 0 && bind(probe, (struct sockaddr *)&a, sizeof a) == 0;
    (void)state;
    if (probe >= 0)
        close(probe);
    if (!has)
        skip();
    serve(2, (dgm_http_options){.listen = "[::1]:0"}, NULL);
    a.sin6_port = htons((uint16_t)dgm_http_server_port(w.server));
    int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
    assert_true(fd >= 0);
    say(fd, "GET /who HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    hear(fd, got, "loopback plain ");
    close(fd);
    stop();
}

static void a_unix_socket_serves_all_loops_and_replaces_a_stale_file(void **state)
{
    char dir[] = "/tmp/dgm-net-XXXXXX", path[100], listen[120];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    bool seen[2] = {false, false};
    dgm_err err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(listen, sizeof listen, "unix:%s", path);
    strcpy(a.sun_path, path);
    /* left behind by one that died */
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&a, sizeof a), 0);
    close(dead);
    serve(2, (dgm_http_options){.listen = listen}, NULL);
    assert_int_equal(dgm_http_server_port(w.server), 0);
    for (int i = 0; i < 4; i++) {
        int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
        assert_true(fd >= 0);
        say(fd, GET("/who"));
        hear(fd, got, "loopback plain ");
        seen[strstr(got, "loopback plain ")[15] - '0'] = true;
        close(fd);
    }
    assert_true(seen[0] && seen[1]);
    /* a second one is told, and the first is unharmed */
    dgm_http_server *second;
    dgm_http_options o = {.listen = listen};
    check_ok(
        dgm_http_server_new(w.loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &second, &err),
        err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, path));
    assert_non_null(strstr(err.msg, "already in use"));
    dgm_http_server_free(second);
    /* a peer that closes while an answer is awaited is gone: there is no half-close left */
    int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
    say(fd, GET("/silence"));
    wait_for(&w.requests, 5);
    close(fd);
    wait_for(&w.gone, 1);
    stop();
    struct stat st;
    assert_int_not_equal(stat(path, &st), 0); /* it cleans up behind itself */
    FILE *f = fopen(path, "w");
    fclose(f);
    dgm_loops *loops;
    check_ok(dgm_loops_new(1, &loops, &err), err);
    check_ok(
        dgm_http_server_new(loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &second, &err),
        err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "no socket"));
    dgm_http_server_free(second);
    dgm_loops_free(loops);
    assert_int_equal(stat(path, &st), 0);
    unlink(path);
    rmdir(dir);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

static void make_certificate(const char *cert, const char *key)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, k);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(x, name);
    assert_true(X509_sign(x, k, EVP_sha256()) > 0);
    FILE *f = fopen(cert, "w");
    PEM_write_X509(f, x);
    fclose(f);
    f = fopen(key, "w");
    PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(k);
}

static SSL *tls_client(SSL_CTX *ctx, int fd, const unsigned char *alpn, unsigned n)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd);
    SSL_set_alpn_protos(ssl, alpn, n);
    return ssl;
}

static void tls_say(SSL *ssl, const char *text)
{
    assert_int_equal(SSL_write(ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void tls_hear(SSL *ssl, const char *text)
{
    int n = 0, k;
    got[0] = 0;
    while (!strstr(got, text) && (k = SSL_read(ssl, got + n, (int)sizeof got - 1 - n)) > 0)
        got[n += k] = 0;
    if (!strstr(got, text))
        print_error("waited for \"%s\", heard %d: %s\n", text, n, got);
    assert_non_null(strstr(got, text));
}

static void tls_is_the_same_with_a_lock(void **state)
{
    char dir[] = "/tmp/dgm-net-XXXXXX", cert[100], key[100];
    static const unsigned char http11[] = "\x02h2\x08http/1.1", h2[] = "\x02h2";
    static char buf[20000];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/cert.pem", dir);
    snprintf(key, sizeof key, "%s/key.pem", dir);
    make_certificate(cert, key);
    serve(2, (dgm_http_options){.tls_cert = cert, .tls_key = key}, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    int fd = client();
    SSL *ssl = tls_client(ctx, fd, http11, sizeof http11 - 1);
    assert_int_equal(SSL_connect(ssl), 1);
    const unsigned char *proto;
    unsigned n_proto;
    SSL_get0_alpn_selected(ssl, &proto, &n_proto);
    assert_int_equal(n_proto, 8);
    tls_say(ssl, GET("/who"));
    tls_hear(ssl, "loopback tls ");
    tls_say(ssl,
            GET("/later") GET("/ticks") "POST /x HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi");
    tls_hear(ssl, "POST /x hi");
    assert_non_null(strstr(got, "\r\n\r\n/later"));
    assert_non_null(strstr(got, "c\r\ntick 1\ntock\n\r\n0\r\n\r\n"));
    tls_say(ssl, "GET /blocks?300 HTTP/1.0\r\n\r\n"); /* 3 MB, then goodbye in two layers */
    size_t n = 0;
    int k;
    while ((k = SSL_read(ssl, buf, sizeof buf)) > 0)
        n += (size_t)k;
    assert_true(n > 300 * BLOCK && n < 300 * BLOCK + 500);
    assert_int_equal(SSL_get_error(ssl, k), SSL_ERROR_ZERO_RETURN);
    SSL_free(ssl);
    close(fd);

    /* TLS 1.1 and a client that only speaks HTTP/2 get no connection */
    for (int i = 0; i < 2; i++) {
        fd = client();
        ssl = i ? tls_client(ctx, fd, h2, sizeof h2 - 1)
                : tls_client(ctx, fd, http11, sizeof http11 - 1);
        if (!i)
            SSL_set_max_proto_version(ssl, TLS1_1_VERSION);
        assert_int_not_equal(SSL_connect(ssl), 1);
        SSL_free(ssl);
        close(fd);
        ERR_clear_error();
    }
    /* a ClientHello in many segments, some of which begin like a method */
    fd = client();
    ssl = SSL_new(ctx);
    BIO *to_server = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), to_server);
    SSL_set_tlsext_host_name(ssl, "LOCALHOST.LOCALDOMAIN");
    assert_int_not_equal(SSL_connect(ssl), 1);
    char *hello, answer_type;
    long n_hello = BIO_get_mem_data(to_server, &hello);
    for (long i = 0; i < n_hello; i++) {
        say_n(fd, hello + i, 1);
        if (hello[i] >= 'A' && hello[i] <= 'Z')
            usleep(300);
    }
    assert_int_equal(recv(fd, &answer_type, 1, 0), 1);
    assert_int_equal(answer_type, 22); /* ServerHello */
    SSL_free(ssl);
    close(fd);
    ERR_clear_error();
    /* plain HTTP is told so in plain, garbage is not */
    fd = client();
    say(fd, GET("/x"));
    char *all = hear_all(fd, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 400 ", 13);
    assert_non_null(strstr(all, "HTTPS"));
    free(all);
    close(fd);
    fd = client();
    say(fd, "\x16garbage that is no handshake");
    free(hear_all(fd, NULL, NULL));
    close(fd);
    /* gone is noticed here too */
    fd = client();
    ssl = tls_client(ctx, fd, http11, sizeof http11 - 1);
    assert_int_equal(SSL_connect(ssl), 1);
    tls_say(ssl, GET("/hold"));
    tls_hear(ssl, ": hello\n\n");
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    SSL_free(ssl);
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    stop();
    SSL_CTX_free(ctx);

    dgm_loops *loops;
    dgm_http_server *s;
    dgm_err err = {0};
    dgm_http_handler h = {on_request, NULL, NULL};
    check_ok(dgm_loops_new(1, &loops, &err), err);
    dgm_http_options o = {.listen = "127.0.0.1:0", .tls_cert = "/no/such.pem", .tls_key = key};
    assert_int_equal(dgm_http_server_new(loops, &o, h, &s, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/no/such.pem"));
    o.tls_key = NULL;
    assert_int_equal(dgm_http_server_new(loops, &o, h, &s, &err), DGM_BAD_PARAMS);
    dgm_loops_free(loops);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

DGM_TEST_MAIN(
    dgm_test(a_request_is_answered_and_the_connection_stays),
    dgm_test(pipelined_requests_are_answered_in_order_wherever_they_are_cut),
    dgm_test(byte_by_byte_is_as_good), dgm_test(a_thousand_pipelined_requests_come_back_in_order),
    dgm_test(a_stream_has_one_chunk_per_turn),
    dgm_test(http_1_0_gets_no_chunks_and_the_end_of_the_connection),
    dgm_test(head_gets_the_headers_alone), dgm_test(who_waits_for_100_gets_it),
    dgm_test(a_header_value_cannot_end_its_line),
    dgm_test(what_is_no_request_is_refused_and_the_connection_ends),
    dgm_test(a_refused_upload_still_sees_why), dgm_test(a_body_at_its_limit_is_taken),
    dgm_test(connections_over_the_limit_are_told_so),
    dgm_test(slow_heads_bodies_and_idle_connections_are_cut),
    dgm_test(an_answer_in_the_making_has_no_timer),
    dgm_test(a_slow_reader_gets_all_and_the_backlog_stays_small),
    dgm_test(what_was_borrowed_from_the_arena_outlives_the_end),
    dgm_test(who_takes_no_byte_is_gone), dgm_test(a_reset_in_the_middle_of_an_answer_is_gone),
    dgm_test(a_fin_is_a_half_close), dgm_test(stopping_the_loops_ends_what_is_open),
    dgm_test(a_peer_that_is_always_ahead_is_read_only_so_far),
    dgm_test(a_thousand_connections_are_served), dgm_test(without_descriptors_it_waits_and_goes_on),
    dgm_test(draining_lets_answers_end_and_closes_the_rest),
    dgm_test(draining_ends_in_time_whatever_is_open), dgm_test(a_port_in_use_is_one_sentence),
    dgm_test(an_address_that_is_none_is_refused), dgm_test(ipv6_works_as_well),
    dgm_test(a_unix_socket_serves_all_loops_and_replaces_a_stale_file),
    dgm_test(tls_is_the_same_with_a_lock))
