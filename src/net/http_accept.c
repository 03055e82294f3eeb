/* net/http_accept.c - listeners: who comes in, and what happens when no descriptor is left. */
#define _GNU_SOURCE /* accept4: a child process started at the wrong moment must not get our sockets */
#include "net/http_int.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
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

void dgm_http_on_backoff(void *arg)
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

void dgm_http_listener_open(http_shard *s)
{
    if (s->listen_fd < 0)
        return;
    s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (uv_poll_init(s->tick.uv.loop, &s->listener, s->listen_fd) != 0) {
        dgm_http_report_refusal(s, 503, "cannot watch the listening socket");
        close(s->listen_fd);
        s->listen_fd = -1;
        return;
    }
    s->open_handles++;
    s->listener.data = s;
    uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

void dgm_http_listener_close(http_shard *s)
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
