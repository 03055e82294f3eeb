/* net/http_server.c - the server, its shards and their listeners: start, accept, drain, stop. */
#define _GNU_SOURCE /* accept4: a child process started at the wrong moment must not get our sockets */
#include "base/limits.h"
#include "net/http_int.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who comes in a crowd is let in by and by: what one needs to be answered serves the next. */
#define ACCEPTS_PER_TURN 16

struct handoff {
    http_shard *to;
    int fd;
};

static void on_handoff(void *arg)
{
    struct handoff *h = arg;
    dgm_http_conn_new(h->to, h->fd, DGM_HTTP_PEERS);
    free(h);
}

/* Peers must not be able to choose which addresses share a number: the pointer differs with every start. */
static size_t peer_of(const http_shard *s, const struct sockaddr_storage *a)
{
    const unsigned char *p = (const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr;
    size_t n = 4;
    uint64_t h = (uintptr_t)s->server;
    if (a->ss_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(six);
        if (IN6_IS_ADDR_LOOPBACK(six))
            return DGM_HTTP_PEERS;
        p = six->s6_addr + (is_mapped ? 12 : 0);
        n = is_mapped ? 4 : 8;
    }
    if (n == 4 && p[0] == 127 && (a->ss_family == AF_INET || a->ss_family == AF_INET6))
        return DGM_HTTP_PEERS;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 40) % DGM_HTTP_PEERS;
}

static void listener_add_conn(http_shard *s, int fd, const struct sockaddr_storage *peer)
{
    int on = 1;
    if (!s->server->listeners.path) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        dgm_http_conn_new(s, fd, peer_of(s, peer));
        return;
    }
    /* a unix socket has one listener: its connections go round */
    http_shard *to = s->server->shards[s->next_shard++ % s->server->n_shards];
    if (to == s) {
        dgm_http_conn_new(s, fd, DGM_HTTP_PEERS);
    } else {
        struct handoff *h = dgm_xmalloc(sizeof *h);
        *h = (struct handoff){to, fd};
        dgm_loop_post(to->loop, on_handoff, h);
    }
}

static void on_listener(uv_poll_t *h, int status, int events);

static void on_backoff(void *arg)
{
    http_shard *s = arg;
    if (s->listen_fd >= 0)
        uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

/* No descriptor is left: the reserve is used to refuse one peer, then accepting pauses for a moment. */
static void accept_without_descriptors(http_shard *s)
{
    static const char sorry[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    if (s->reserve_fd >= 0) {
        close(s->reserve_fd);
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            if (!s->tls && send(fd, sorry, sizeof sorry - 1, MSG_NOSIGNAL) > 0)
                shutdown(fd, SHUT_WR);
            close(fd);
        }
        s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    dgm_http_report_refusal(s, 503, "too many open files: raise the limit (ulimit -n)");
    uv_poll_stop(&s->listener);
    dgm_timer_start(&s->backoff, s->server->backoff_ms);
}

static void on_listener(uv_poll_t *h, int status, int events)
{
    http_shard *s = h->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t n = sizeof peer;
        int fd = accept4(s->listen_fd, (struct sockaddr *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener_add_conn(s, fd, &peer);
            continue;
        }
        switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case ENOBUFS: accept_without_descriptors(s); return;
        case EAGAIN:
#if EWOULDBLOCK != EAGAIN
        case EWOULDBLOCK:
#endif
            return;
        default: continue; /* this peer went away again */
        }
    }
}

static void on_listener_closed(uv_handle_t *h)
{
    http_shard *s = h->data;
    s->open_handles--;
    dgm_http_shard_check(s);
}

static void listener_open(http_shard *s)
{
    if (s->listen_fd < 0)
        return;
    s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (uv_poll_init(&s->loop->uv, &s->listener, s->listen_fd) != 0) {
        dgm_http_report_refusal(s, 503, "cannot watch the listening socket");
        close(s->listen_fd);
        s->listen_fd = -1;
        return;
    }
    s->open_handles++;
    s->listener.data = s;
    uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

static void listener_close(http_shard *s)
{
    if (s->reserve_fd >= 0)
        close(s->reserve_fd);
    s->reserve_fd = -1;
    if (s->listen_fd < 0)
        return;
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
    close(s->listen_fd);
    s->listen_fd = -1;
    dgm_timer_stop(&s->backoff);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static void server_unref(dgm_http_server *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    for (size_t i = 0; i < s->n_shards; i++) {
        http_shard *h = s->shards[i];
        dgm_tls_ctx_unref(h->tls);
        free(h);
    }
    for (size_t i = 0; !s->started && i < s->listeners.n; i++)
        close(s->listeners.fds[i]);
    dgm_tls_ctx_unref(s->tls);
    free(s->shards);
    free(s->listeners.path);
    free(s->listen);
    free(s);
}

static void server_report_drained(void *arg)
{
    dgm_http_server *s = arg;
    if (s->drain_reported || !s->on_drained)
        return;
    s->drain_reported = true;
    if (s->drain_timer_open)
        dgm_timer_stop(&s->drain_timer);
    s->on_drained(s->drained_arg);
}

static void on_drain_timer(void *arg)
{
    server_report_drained(arg);
}

/* Called whenever something of the shard went: is it the last? */
void dgm_http_shard_check(http_shard *s)
{
    if (s->draining && !s->drained && !s->closing && s->n_conns == 0) {
        s->drained = true;
        if (atomic_fetch_sub(&s->server->undrained, 1) == 1)
            dgm_loop_post(s->server->shards[0]->loop, server_report_drained, s->server);
    }
    if (s->closing && s->n_conns == 0 && s->open_handles == 0 && !atomic_load(&s->closed)) {
        atomic_store(&s->closed, true);
        server_unref(s->server); /* s may be gone */
    }
}

static void on_timer_closed(void *arg)
{
    http_shard *s = arg;
    s->open_handles--;
    dgm_http_shard_check(s);
}

static void shard_close(void *arg)
{
    http_shard *s = arg;
    if (s->closing)
        return;
    s->closing = true;
    dgm_loop_off_stop(s->loop, &s->stop);
    listener_close(s);
    for (http_conn *c = s->conns, *next; c; c = next) {
        next = c->next; /* c itself stays until libuv is done with it */
        if (c->state < CONN_DEAD)
            dgm_http_conn_lost(c);
    }
    dgm_timer_close(&s->tick, on_timer_closed, s);
    dgm_timer_close(&s->backoff, on_timer_closed, s);
    dgm_timer_close(&s->next_large, on_timer_closed, s);
    if (s == s->server->shards[0] && s->server->drain_timer_open) {
        s->server->drain_timer_open = false;
        dgm_timer_close(&s->server->drain_timer, on_timer_closed, s);
    }
}

static void shard_open(void *arg)
{
    http_shard *s = arg;
    s->opened = true;
    s->open_handles = 3;
    dgm_timer_init(s->loop, &s->tick, dgm_http_on_tick, s);
    dgm_timer_init(s->loop, &s->backoff, on_backoff, s);
    dgm_timer_init(s->loop, &s->next_large, dgm_http_on_next_large, s);
    s->stop = (dgm_loop_stop){.fn = shard_close, .arg = s};
    dgm_loop_on_stop(s->loop, &s->stop);
    listener_open(s);
}

static void shard_drain(void *arg)
{
    http_shard *s = arg;
    if (s->closing)
        return;
    s->draining = true;
    listener_close(s);
    for (http_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (c->state == CONN_IDLE)
            dgm_loop_at_turn_end(s->loop,
                                 &c->turn); /* settle closes it, if nothing is left to be done */
        else if (c->state == CONN_BUSY && c->x->watcher->on_drain)
            dgm_loop_at_turn_end(s->loop, &c->x->turn);
    }
    dgm_http_shard_check(s);
}

/* ---- public: the server ------------------------------------------------------------------------------------------- */

void dgm_http_server_set_limits(dgm_http_server *s, size_t max_body, size_t max_connections,
                                size_t max_in_flight)
{
    s->in_flight.limit = max_in_flight ? max_in_flight : DGM_MAX_IN_FLIGHT_BYTES;
    s->max_body = max_body ? max_body : DGM_MAX_HTTP_BODY_BYTES;
    s->max_connections = max_connections ? max_connections : DGM_MAX_CONNECTIONS;
}

dgm_code dgm_http_server_new(dgm_loops *loops, const dgm_http_options *o, dgm_http_handler handler,
                             dgm_http_server **ret_server, dgm_err *err)
{
    dgm_http_server *s = dgm_xcalloc(1, sizeof *s);
    dgm_code rc;
    atomic_init(&s->refs, 1);
    s->loops = loops;
    s->handler = handler;
    s->listen = memcpy(dgm_xmalloc(strlen(o->listen) + 1), o->listen, strlen(o->listen) + 1);
    dgm_http_server_set_limits(s, o->max_body, o->max_connections, o->max_in_flight);
    const dgm_http_times *t = &o->times;
    s->backoff_ms = t->backoff_ms ? t->backoff_ms : 100;
    s->waits_ms[T_HEADERS] = t->headers_ms ? t->headers_ms : 10000;
    s->waits_ms[T_BODY] = t->body_ms ? t->body_ms : 30000;
    s->waits_ms[T_IDLE] = t->idle_ms ? t->idle_ms : 60000;
    s->waits_ms[T_WRITE] = t->write_ms ? t->write_ms : 60000;
    s->waits_ms[T_LINGER] = t->linger_ms ? t->linger_ms : 2000;
    s->waits_ms[T_PING] = t->ping_ms ? t->ping_ms : 15000;
    if (!o->tls_cert != !o->tls_key)
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "TLS needs both a certificate and a key");
    else
        rc = o->tls_cert ? dgm_tls_ctx_new(o->tls_cert, o->tls_key, &s->tls, err) : DGM_OK;
    if (rc) {
        dgm_http_server_free(s);
        return rc;
    }
    *ret_server = s;
    return DGM_OK;
}

dgm_code dgm_http_server_listen(dgm_http_server *s, dgm_err *err)
{
    struct stat st;
    dgm_code rc = dgm_listen(s->listen, s->loops->n, &s->listeners, err);
    if (rc)
        return rc;
    if (s->listeners.path && stat(s->listeners.path, &st) == 0) {
        s->socket_dev = st.st_dev;
        s->socket_ino = st.st_ino;
    }
    return DGM_OK;
}

dgm_code dgm_http_server_start(dgm_http_server *s, dgm_err *err)
{
    size_t n = s->loops->n;
    dgm_code rc = s->listeners.n ? DGM_OK : dgm_http_server_listen(s, err);
    if (rc)
        return rc;
    s->shards = dgm_xcalloc(n, sizeof(http_shard *));
    s->n_shards = n;
    atomic_store(&s->refs, 1 + n);
    for (size_t i = 0; i < n; i++) {
        http_shard *h = s->shards[i] = dgm_xcalloc(1, sizeof *h);
        h->server = s;
        h->loop = dgm_loops_at(s->loops, i);
        h->listen_fd = i < s->listeners.n ? s->listeners.fds[i] : -1;
        h->reserve_fd = -1;
        h->tls = s->tls ? dgm_tls_ctx_ref(s->tls) : NULL;
        h->armed = UINT64_MAX;
        h->large_end = &h->large;
    }
    s->started = true;
    for (size_t i = 0; i < n; i++)
        dgm_loop_post(s->shards[i]->loop, shard_open, s->shards[i]);
    return DGM_OK;
}

struct new_tls {
    http_shard *shard;
    dgm_tls_ctx *ctx;
};

static void shard_set_tls(void *arg)
{
    struct new_tls *n = arg;
    dgm_tls_ctx_unref(n->shard->tls);
    n->shard->tls = n->ctx;
    free(n);
}

dgm_code dgm_http_server_set_tls(dgm_http_server *s, const char *cert, const char *key,
                                 dgm_err *err)
{
    dgm_tls_ctx *ctx;
    dgm_code rc;
    assert(s->started);
    if (!s->tls)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "this server was started without TLS");
    if ((rc = dgm_tls_ctx_new(cert, key, &ctx, err)))
        return rc;
    for (size_t i = 0; i < s->n_shards; i++) {
        struct new_tls *n = dgm_xmalloc(sizeof *n);
        *n = (struct new_tls){s->shards[i], dgm_tls_ctx_ref(ctx)};
        dgm_loop_post(s->shards[i]->loop, shard_set_tls, n);
    }
    dgm_tls_ctx_unref(ctx);
    return DGM_OK;
}

int dgm_http_server_port(const dgm_http_server *s)
{
    return s->listeners.port;
}

size_t dgm_http_server_in_flight(const dgm_http_server *s)
{
    return s->in_flight.used;
}

size_t dgm_http_server_connections(const dgm_http_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_shards; i++)
        n += atomic_load_explicit(&s->shards[i]->n_seen, memory_order_relaxed);
    return n;
}

static void server_start_drain(void *arg)
{
    dgm_http_server *s = arg;
    http_shard *first = s->shards[0];
    if (first->closing) {
        server_report_drained(s);
        return;
    }
    dgm_timer_init(first->loop, &s->drain_timer, on_drain_timer, s);
    s->drain_timer_open = true;
    first->open_handles++;
    dgm_timer_start(&s->drain_timer, s->drain_ms);
    for (size_t i = 0; i < s->n_shards; i++)
        dgm_loop_post(s->shards[i]->loop, shard_drain, s->shards[i]);
}

void dgm_http_server_drain(dgm_http_server *s, uint64_t ms, dgm_loop_fn on_drained, void *arg)
{
    assert(s->started && !s->on_drained);
    s->drain_ms = ms;
    s->on_drained = on_drained;
    s->drained_arg = arg;
    atomic_store(&s->undrained, s->n_shards);
    dgm_loop_post(s->shards[0]->loop, server_start_drain, s);
}

void dgm_http_server_free(dgm_http_server *s)
{
    struct stat st;
    if (!s)
        return;
    if (s->listeners.path && stat(s->listeners.path, &st) == 0 && st.st_dev == s->socket_dev &&
        st.st_ino == s->socket_ino)
        unlink(s->listeners.path);
    for (size_t i = 0; i < s->n_shards; i++)
        if (!atomic_load(&s->shards[i]->closed))
            dgm_loop_post(s->shards[i]->loop, shard_close, s->shards[i]);
    server_unref(s);
}
