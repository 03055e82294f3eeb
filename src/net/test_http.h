/*
 * net/test_http.h - what the tests of the server share: a server, whose handler answers by path (see answer),
 * and a client of raw sockets.
 *
 * One server per test on a port the kernel chooses. Waits end after 30 s: a machine may be slow.
 */
#pragma once

#include "net/http_int.h"
#include "support/check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* ---- the server --------------------------------------------------------------------------------------------- */

static struct world {
    dgm_loops *loops;
    dgm_http_server *server;
    atomic_long last_answer; /* status and bytes */
    atomic_int requests, refused, last_refused, gone, released, rooms, drained;
    atomic_size_t highest; /* backlog seen by a writer */
    _Atomic(dgm_http_exchange *) waiting;
    dgm_loop *waiting_on; /* at /wait, for let_go() */
} w;

struct stream {
    dgm_http_exchange *x;
    size_t left;
    char *block;
    bool over;
};

static inline void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.released, 1);
}

#define BLOCK 10000
/* As a reader of a log does: writes up to the mark, waits for room. */
static inline void pump(void *arg)
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

static inline void on_room(void *arg)
{
    atomic_fetch_add(&w.rooms, 1);
    pump(arg);
}

static inline void on_gone(void *arg)
{
    atomic_fetch_add(&w.gone, 1);
    dgm_http_end(((struct stream *)arg)->x);
}

/* What is left of the request, and the end. */
static inline void on_drain(void *arg)
{
    struct stream *s = arg;
    const dgm_http_request *r = dgm_http_request_of(s->x);
    char text[200];
    assert_int_equal(r->n_headers, 0);
    snprintf(text, sizeof text, "end of %.*s %.*s?%.*s %s", DGM_P(r->method), DGM_P(r->path),
             DGM_P(r->query), s->block);
    dgm_http_write(s->x, dgm_str_from(text));
    dgm_http_end(s->x);
}

static inline void answer_later(void *arg)
{
    dgm_http_exchange *x = arg;
    dgm_http_respond(x, 200, DGM_STR("text/plain"), NULL, 0, dgm_http_request_of(x)->path);
}

static inline void let_go(void)
{
    dgm_http_exchange *x = atomic_load(&w.waiting);
    dgm_loop_post(w.waiting_on, answer_later, x);
}

struct ticks {
    dgm_http_exchange *x;
    dgm_loop_turn turn;
    int left;
};

static inline void on_tick(void *arg)
{
    struct ticks *t = arg;
    char text[40];
    snprintf(text, sizeof text, "tick %d\n", t->left);
    dgm_http_write(t->x, dgm_str_from(text));
    dgm_http_write(t->x, DGM_STR("tock\n")); /* the same chunk */
    if (--t->left)
        dgm_loop_at_turn_end(dgm_loop_current(), &t->turn);
    else
        dgm_http_end(t->x);
}

static inline void answer(dgm_http_exchange *x, const dgm_http_request *r)
{
    dgm_arena *a = dgm_http_arena(x);
    assert_non_null(dgm_loop_current());
    if (dgm_str_is(r->path, "/later")) {
        dgm_loop_post(dgm_loop_current(), answer_later, x);
    } else if (dgm_str_is(r->path, "/wait")) {
        w.waiting_on = dgm_loop_current();
        atomic_store(&w.waiting, x);
    } else if (dgm_str_is(r->path, "/ticks")) {
        struct ticks *t = dgm_new(a, struct ticks);
        *t = (struct ticks){x, {.fn = on_tick, .arg = t}, 3};
        dgm_http_begin(x, 200, DGM_STR("text/event-stream"), NULL, 0);
        dgm_loop_at_turn_end(dgm_loop_current(), &t->turn);
    } else if (dgm_str_is(r->path, "/hold") || dgm_str_is(r->path, "/silence")) {
        struct stream *s = dgm_new(a, struct stream);
        s->x = x;
        static const dgm_http_watcher holds = {.on_gone = on_gone};
        dgm_http_watch(x, &holds, s);
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
        static const dgm_http_watcher sends = {.on_room = on_room, .on_gone = on_gone};
        dgm_http_watch(x, &sends, s);
        dgm_http_begin(x, 200, DGM_STR("text/plain"), NULL, 0);
        pump(s);
    } else if (dgm_str_is(r->path, "/burst")) { /* 10 MB and no patience */
        char *block = dgm_arena_alloc_raw(a, BLOCK);
        memset(block, 'b', BLOCK);
        dgm_http_begin(x, 200, DGM_STR("text/plain"), NULL, 0);
        for (int i = 0; i < 1000; i++)
            dgm_http_write_shared(x, (dgm_str){block, BLOCK}, i % 2 ? on_release : NULL, NULL);
        dgm_http_end(x);
    } else if (dgm_str_is(r->path,
                          "/also")) { /* what a gate adds to an answer that it does not know */
        static const dgm_http_header also[] = {{{"X-Also", 6}, {"this", 4}}};
        dgm_http_header own[] = {{DGM_STR("X-Own"), DGM_STR("that")}};
        dgm_http_add_headers(x, also, 1);
        *dgm_http_tag(x) = &w;
        dgm_http_begin(x, 201, DGM_STR("text/plain"), own, 1);
        dgm_http_write(x, DGM_STR("one "));
        dgm_http_write(x, DGM_STR("two"));
        dgm_http_end(x);
    } else if (dgm_str_is(r->path, "/idle")) { /* as a stream of events that waits for one */
        struct stream *s = dgm_http_alloc(x, sizeof *s);
        s->x = x;
        dgm_http_begin(x, 200, DGM_STR("text/event-stream"), NULL, 0);
        dgm_http_write(x, DGM_STR(": hello\n\n"));
        static const dgm_http_watcher idles = {
            .on_gone = on_gone, .on_drain = on_drain, .ping = {": ping\n\n", 8}};
        dgm_http_watch(x, &idles, s);
        dgm_http_forget_request(x);
        s->block =
            dgm_http_arena(x) == a ? NULL : (char *)dgm_arena_dup(dgm_http_arena(x), r->path).p;
    } else if (dgm_str_is(r->path, "/none")) {
        dgm_http_respond(x, 204, (dgm_str){0}, NULL, 0, (dgm_str){0});
    } else if (dgm_str_is(r->path, "/forgot")) {
        dgm_http_end(x);
    } else if (dgm_str_is(r->path, "/who")) {
        dgm_http_header extra[] = {{DGM_STR("X-Evil"), DGM_STR("a\r\nX-Injected: b")}};
        dgm_str t = dgm_arena_printf(a, "%s %s %zu %.*s", r->is_loopback ? "loopback" : "far",
                                     r->is_tls ? "tls" : "plain", dgm_loop_current()->index,
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

static inline void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *r)
{
    (void)user;
    answer(x, r);
    atomic_fetch_add(&w.requests, 1);
}

/* For servers that answer requests with too large a body themselves. */
static void (*answer_refused_body)(void *user, dgm_http_exchange *x, const dgm_http_request *r,
                                   dgm_http_refusal refusal);
/* For servers that look at heads. */
static void (*look_at_head)(void *user, dgm_http_exchange *x, const dgm_http_request *r);

static inline void on_refused(void *user, int status, const char *why)
{
    (void)user;
    assert_non_null(why);
    atomic_fetch_add(&w.refused, 1);
    atomic_store(&w.last_refused, status);
}

static inline void on_answered(void *user, dgm_http_exchange *x, int status, uint64_t bytes)
{
    (void)user;
    if (*dgm_http_tag(x) == &w)
        atomic_store(&w.last_answer, status * 1000 + (long)bytes);
}

static const dgm_http_times patient = {10000, 30000, 60000, 60000, 2000, 20};

static inline void serve(size_t loops, dgm_http_options o, const dgm_http_times *times)
{
    dgm_err err = {0};
    dgm_http_handler h = {.on_request = on_request,
                          .on_head = look_at_head,
                          .on_body_refused = answer_refused_body,
                          .on_refused = on_refused,
                          .on_answered = on_answered};
    memset(&w, 0, sizeof w);
    if (!o.listen)
        o.listen = "127.0.0.1:0";
    o.times = times ? *times : patient;
    check_ok(dgm_loops_new(loops, &w.loops, &err), err);
    check_ok(dgm_http_server_new(w.loops, &o, h, &w.server, &err), err);
    check_ok(dgm_http_server_start(w.server, &err), err);
    check_ok(dgm_loops_start(w.loops, &err), err);
}

static inline void stop(void)
{
    dgm_loops_free(w.loops);
    assert_int_equal(dgm_http_server_connections(w.server), 0);
    dgm_http_server_free(w.server);
}

/* ---- the client ---------------------------------------------------------------------------------------------- */

static inline int client_to(const struct sockaddr *a, socklen_t n, int rcvbuf)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct timeval t = {.tv_sec = 30};
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

static inline int client_with(int rcvbuf)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)dgm_http_server_port(w.server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = client_to((struct sockaddr *)&a, sizeof a, rcvbuf);
    assert_true(fd >= 0);
    return fd;
}

static inline int client(void)
{
    return client_with(0);
}

static inline void say_n(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        assert_true(k > 0);
        p += k;
        n -= (size_t)k;
    }
}

static inline void say(int fd, const char *text)
{
    say_n(fd, text, strlen(text));
}

/* A socket with a time limit is interrupted also by what is no signal of ours (a stop and a continue, say), and
 * the kernel never begins such a call again by itself. */
static inline ssize_t hear_some(int fd, void *to, size_t n)
{
    ssize_t k;
    do
        k = recv(fd, to, n, 0);
    while (k < 0 && errno == EINTR);
    return k;
}

/* Everything until the peer's FIN; NUL-terminated, freed by the caller. A reset or 30 s of silence ends it
 * too, and *end says which: 0 FIN, else errno. */
static inline char *hear_all(int fd, size_t *ret_n, int *end)
{
    size_t n = 0, cap = 1 << 16;
    char *p = malloc(cap + 1);
    for (;;) {
        ssize_t k = hear_some(fd, p + n, cap - n);
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
static inline void hear(int fd, char *got, const char *text)
{
    size_t n = 0;
    got[0] = 0;
    while (!strstr(got, text)) {
        ssize_t k = hear_some(fd, got + n, 65535 - n);
        if (k <= 0)
            print_error("waited for \"%s\", heard %zu: %s\n", text, n, got);
        assert_true(k > 0);
        n += (size_t)k;
        got[n] = 0;
    }
}

static inline void expect_end(int fd)
{
    char c;
    assert_int_equal(hear_some(fd, &c, 1), 0);
    close(fd);
}

static inline void wait_for(atomic_int *n, int want)
{
    for (int i = 0; i < 15000 && atomic_load(n) < want; i++)
        usleep(2000);
    assert_int_equal(atomic_load(n), want);
}

static inline void wait_for_connections(size_t want)
{
    for (int i = 0; i < 15000 && dgm_http_server_connections(w.server) != want; i++)
        usleep(2000);
    assert_int_equal(dgm_http_server_connections(w.server), want);
}

static __attribute__((unused)) char got[65536];
