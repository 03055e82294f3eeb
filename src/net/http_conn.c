/*
 * net/http_conn.c - connections: bytes in, bytes out, timeouts, and the decision what to do next.
 *
 * Timeouts: one list per kind, since all connections of a kind wait equally long, and one timer of libuv per loop.
 */
#include "base/limits.h"
#include "net/http_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- timeouts ---------------------------------------------------------------------------------------------------- */

static void shard_set_tick(http_shard *s, uint64_t when)
{
    uint64_t now = uv_now(&s->loop->uv);
    if (when >= s->armed || s->closing)
        return;
    s->armed = when;
    dgm_timer_start(&s->tick, when > now ? when - now : 1);
}

void dgm_http_conn_set_timer(http_conn *c, enum http_timer kind)
{
    http_shard *s = c->shard;
    if (c->timer == kind && !c->restart)
        return;
    c->restart = false;
    if (c->timer) {
        struct http_timers *t = &s->timers[c->timer];
        *(c->t_prev ? &c->t_prev->t_next : &t->first) = c->t_next;
        *(c->t_next ? &c->t_next->t_prev : &t->last) = c->t_prev;
    }
    c->timer = kind;
    if (kind) {
        struct http_timers *t = &s->timers[kind];
        c->deadline = uv_now(&s->loop->uv) + s->server->waits_ms[kind];
        c->t_prev = t->last;
        c->t_next = NULL;
        *(t->last ? &t->last->t_next : &t->first) = c;
        t->last = c;
        shard_set_tick(s, c->deadline);
    }
}

void dgm_http_on_tick(void *arg)
{
    http_shard *s = arg;
    uint64_t now = uv_now(&s->loop->uv), next = UINT64_MAX;
    s->armed = UINT64_MAX;
    for (enum http_timer kind = T_HEADERS; kind < N_TIMERS; kind++) {
        http_conn *c;
        while ((c = s->timers[kind].first) && c->deadline <= now) {
            if ((kind == T_HEADERS || kind == T_BODY) && c->x) {
                dgm_http_conn_refuse(c, 408,
                                     kind == T_BODY
                                         ? "timeout: the body of the request is incomplete"
                                         : "timeout: the head of the request is incomplete");
                dgm_http_conn_set_timer(c, T_WRITE);
            } else if (kind == T_PING) {
                dgm_http_conn_set_timer(c, T_NONE); /* the end of the turn starts it again */
                if (c->x) /* else it ended a moment ago, and that turn end comes */
                    dgm_http_write(c->x, c->x->watcher->ping);
            } else {
                dgm_http_conn_lost(c);
            }
        }
        if (c && c->deadline < next)
            next = c->deadline;
    }
    shard_set_tick(s, next);
}

/* Of requests behind the one being answered; then no reading. */
#define AHEAD_BYTES ((size_t)16 << 10)
#define WRITE_PARTS 32
#define BODY_STEP ((size_t)16 << 10) /* in body_ms: 546 bytes per second */
#define REFUSED_CONNECTIONS 64       /* beyond the limit, being refused */

/* ---- states ------------------------------------------------------------------------------------------------ */

#define X(state, name, may_become) name,
static const char *const conn_state_names[] = {HTTP_CONN_STATES(X)};
#undef X
#define X(state, name, may_become) [state] = (may_become),
static const uint16_t conn_may_become[] = {HTTP_CONN_STATES(X)};
#undef X
const dgm_machine dgm_http_conn_machine = {.name = "connection",
                                           .states = conn_state_names,
                                           .may_become = conn_may_become,
                                           .n = HTTP_N_CONN_STATES};

void dgm_http_conn_set_state(http_conn *c, enum http_conn_state to)
{
    dgm_loop_trace(c->shard->loop, &dgm_http_conn_machine, c->number, c->state, to);
    c->state = (uint8_t)to;
}

/* ---- small things ------------------------------------------------------------------------------------------ */

/* The bytes for the socket. */
static inline dgm_out *conn_wire(http_conn *c)
{
    return c->tls ? dgm_tls_wire(c->tls) : &c->out;
}

size_t dgm_http_conn_backlog(const http_conn *c)
{
    return c->out.n + (c->tls ? dgm_tls_wire(c->tls)->n : 0);
}

/* ---- reading requests ---------------------------------------------------------------------------------------- */

/* Drops would keep a body alive for ever: the timer starts over when enough of it has come. */
static void conn_body_grew(http_conn *c)
{
    size_t n = dgm_http1_body_bytes(c->x->in);
    if (c->state == CONN_BODY && n - c->x->body_at < BODY_STEP)
        return;
    if (c->state != CONN_BODY)
        dgm_http_conn_set_state(c, CONN_BODY);
    c->x->body_at = n;
    c->restart = true;
}

/* Returns how many bytes were used: all, unless a request waits for its answer. */
static size_t conn_parse(http_conn *c, const char *p, size_t n)
{
    size_t used = 0, took;
    while (used < n && c->state <= CONN_BODY &&
           (c->state != CONN_IDLE || dgm_http_conn_backlog(c) <= DGM_HTTP_BACKLOG_MARK)) {
        if (!c->x) {
            dgm_http_exchange_new(c);
            dgm_http_conn_set_state(c, CONN_HEAD);
            c->restart = true;
        }
        dgm_http1_step s = dgm_http1_feed(c->x->in, p + used, n - used, &took);
        used += took;
        if (s == DGM_HTTP1_HEAD) {
            if (!dgm_http_exchange_admit(c))
                return n;
            s = dgm_http1_feed(c->x->in, p + used, 0, &took);
        }
        switch (s) {
        case DGM_HTTP1_CONTINUE:
            dgm_out_add(&c->out, DGM_STR("HTTP/1.1 100 Continue\r\n\r\n"));
            dgm_loop_at_turn_end(c->shard->loop, &c->turn);
            /* fallthrough */
        case DGM_HTTP1_HEAD:
        case DGM_HTTP1_MORE:
            if (!dgm_http_charge_body(c))
                return n;
            if (c->x->in->head_done)
                conn_body_grew(c);
            break;
        case DGM_HTTP1_REQUEST:
            if (c->x->in->request.body.n < LARGE_BODY)
                dgm_http_exchange_deliver(c);
            else
                dgm_http_exchange_queue(c);
            break;
        case DGM_HTTP1_REFUSED:
            if (c->x->in->status == 413)
                dgm_http_refuse_body(c, DGM_HTTP_TOO_LARGE, c->x->in->why);
            else
                dgm_http_conn_refuse(c, c->x->in->status, c->x->in->why);
            return n;
        }
    }
    return c->state >= CONN_CLOSING ? n : used;
}

/* Bytes of the peer, decrypted: parsed now or kept for later. */
static void conn_read_bytes(http_conn *c, const char *p, size_t n)
{
    size_t used = c->ahead ? 0 : conn_parse(c, p, n), left = n - used;
    if (!left || c->state >= CONN_CLOSING)
        return;
    struct http_ahead *a = c->ahead;
    if (a && a->at) { /* else a peer that is always ahead would make it grow for ever */
        a->n -= a->at;
        memmove(a->bytes, a->bytes + a->at, a->n);
        a->at = 0;
    }
    size_t n_before = a ? a->n : 0;
    a = c->ahead = dgm_xrealloc(a, sizeof *a + n_before + left);
    memcpy(a->bytes + n_before, p + used, left);
    *a = (struct http_ahead){.n = (uint32_t)(n_before + left)};
}

/* The bytes that came behind the last request. */
static void conn_parse_ahead(http_conn *c)
{
    struct http_ahead *a = c->ahead;
    a->at += (uint32_t)conn_parse(c, a->bytes + a->at, a->n - a->at);
    if (a->at == a->n || c->state >= CONN_CLOSING) {
        free(a);
        c->ahead = NULL;
    }
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void conn_free(http_conn *c)
{
    http_shard *s = c->shard;
    *(c->prev ? &c->prev->next : &s->conns) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    free(c);
    atomic_store_explicit(&s->n_seen, --s->n_conns, memory_order_relaxed);
    dgm_http_shard_check(s);
}

static void on_conn_closed(uv_handle_t *h)
{
    http_conn *c = h->data;
    dgm_http_conn_set_state(c, CONN_CLOSED);
    if (!c->turn.next) /* else the end of the turn does it */
        conn_free(c);
}

void dgm_http_conn_close(http_conn *c)
{
    dgm_http_exchange *x = c->x;
    if (x && c->state == CONN_BUSY) {
        x->c = NULL;
    } else if (x) {
        if (c->state == CONN_QUEUED)
            dgm_http_exchange_unqueue(x);
        dgm_http_exchange_drop(x, 0);
    }
    c->x = NULL;
    dgm_http_conn_set_state(c, CONN_DEAD);
    dgm_http_conn_set_timer(c, T_NONE);
    dgm_out_clear(&c->out);
    if (c->tls)
        dgm_tls_free(c->tls);
    c->tls = NULL;
    free(c->ahead);
    c->ahead = NULL;
    uv_close((uv_handle_t *)&c->poll, on_conn_closed);
    close(c->fd);
}

/* The peer is not there any more. */
void dgm_http_conn_lost(http_conn *c)
{
    dgm_http_exchange *x = c->state == CONN_BUSY ? c->x : NULL;
    dgm_http_conn_close(c);
    if (x)
        dgm_http_exchange_turn_end(x);
}

/* 1 all sent, 0 the kernel takes no more now, -1 the peer is gone */
static int conn_write(http_conn *c)
{
    dgm_out *wire = conn_wire(c);
    struct iovec iov[WRITE_PARTS];
    while (wire->n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = dgm_out_front(wire, iov, WRITE_PARTS)};
        size_t n = 0;
        for (size_t i = 0; i < m.msg_iovlen; i++)
            n += iov[i].iov_len;
        /* one part, which most answers are, costs the kernel less without a list of parts */
        ssize_t wrote = m.msg_iovlen == 1 ? send(c->fd, iov->iov_base, n, MSG_NOSIGNAL)
                                          : sendmsg(c->fd, &m, MSG_NOSIGNAL);
        if (wrote < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
        }
        c->restart = true;
        dgm_out_drop(wire, (size_t)wrote);
        if ((size_t)wrote < n)
            return 0; /* the socket is full: another call would only return EAGAIN */
    }
    return 1;
}

/* The end of a turn: everything that was written in it is sent at once. */
static void conn_flush(void *arg)
{
    http_conn *c = arg;
    if (c->state >= CONN_DEAD) {
        if (c->state == CONN_CLOSED)
            conn_free(c);
        return;
    }
    dgm_out_close_chunk(&c->out);
    if ((c->tls && c->out.n && !dgm_tls_write(c->tls, &c->out)) || conn_write(c) < 0) {
        dgm_http_conn_lost(c);
        return;
    }
    dgm_http_exchange *x = c->x;
    if (x && x->above && dgm_http_conn_backlog(c) <= DGM_HTTP_BACKLOG_MARK) {
        x->above = false;
        if (x->watcher->on_room)
            x->watcher->on_room(x->arg);
    }
    if (!c->x && c->ahead && dgm_http_conn_backlog(c) == 0)
        conn_parse_ahead(c);
    dgm_http_conn_update(c);
}

/* The last response has been sent: the peer gets a moment to read it before the socket is closed, since closing a
 * socket with unread bytes resets it, and the peer would lose the response. */
static void conn_start_linger(http_conn *c)
{
    if (c->tls && c->state == CONN_CLOSING) {
        dgm_http_conn_set_state(c, CONN_TLS_END);
        dgm_tls_end(c->tls);
        if (conn_wire(c)->n && conn_write(c) == 0)
            return; /* flush comes again when there is room */
    }
    if (c->eof) {
        dgm_http_conn_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    dgm_http_conn_set_state(c, CONN_LINGER);
}

static void on_conn_event(uv_poll_t *h, int status, int events);

/* Decides what to do next: end, which events to watch, which timer. May close the connection. */
void dgm_http_conn_update(http_conn *c)
{
    bool sent = dgm_http_conn_backlog(c) == 0, is_idle = c->state == CONN_IDLE && !c->ahead;
    if (sent && !c->turn.next) {
        if (c->state == CONN_CLOSING || c->state == CONN_TLS_END) {
            conn_start_linger(c);
        } else if (c->state <= CONN_BODY && c->eof && !c->ahead) {
            dgm_http_conn_close(c); /* half a request is not a request */
        } else if (c->shard->draining && is_idle) {
            dgm_http_conn_set_state(c, CONN_CLOSING);
            conn_start_linger(c);
        }
    }
    if (c->state >= CONN_DEAD)
        return;
    sent = conn_wire(c)->n == 0;

    bool reads = !c->eof && (!c->ahead || c->ahead->n - c->ahead->at < AHEAD_BYTES);
    uint8_t events = (reads ? UV_READABLE : UV_PRIORITIZED) | (sent ? 0 : UV_WRITABLE);
    if (events != c->events) {
        c->events = events;
        uv_poll_start(&c->poll, events, on_conn_event);
    }
    dgm_http_conn_set_timer(c, c->state == CONN_LINGER   ? T_LINGER
                               : !sent                   ? T_WRITE
                               : c->state == CONN_BUSY   ? (c->x->watcher->ping.n ? T_PING : T_NONE)
                               : c->state == CONN_QUEUED ? T_NONE
                               : c->tls && !dgm_tls_is_ready(c->tls) ? T_HEADERS
                               : c->state == CONN_HEAD               ? T_HEADERS
                               : c->state == CONN_BODY               ? T_BODY
                                                                     : T_IDLE);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static void conn_read_tls(http_conn *c, const char *p, size_t n)
{
    size_t got;
    if (!c->has_tls_bytes && *p >= 'A' && *p <= 'Z') {
        dgm_tls_free(c->tls); /* a plain request gets a plain response */
        c->tls = NULL;
        dgm_http_conn_refuse(c, 400, "this port uses HTTPS");
        return;
    }
    c->has_tls_bytes = true;
    dgm_tls_feed(c->tls, p, n);
    for (;;) {
        switch (dgm_tls_read(c->tls, c->shard->plain, PLAIN_BYTES, &got)) {
        case DGM_TLS_BYTES: conn_read_bytes(c, c->shard->plain, got); continue;
        case DGM_TLS_MORE: break;
        case DGM_TLS_END: c->eof = true; break;
        case DGM_TLS_FAILED:
            dgm_http_report_refusal(c->shard, 400, dgm_tls_why());
            conn_write(c); /* the alert */
            dgm_http_conn_lost(c);
            return;
        }
        break;
    }
    if (conn_wire(c)->n)
        dgm_loop_at_turn_end(c->shard->loop, &c->turn);
}

static void on_conn_event(uv_poll_t *h, int status, int events)
{
    http_conn *c = h->data;
    http_shard *s = c->shard;
    /* Urgent data we never asked for, or a hang-up while we do not read: either way that was all. */
    if (status < 0 || events & UV_PRIORITIZED) {
        dgm_http_conn_lost(c);
        return;
    }
    if (events & UV_WRITABLE)
        dgm_loop_at_turn_end(s->loop, &c->turn);
    if (!(events & UV_READABLE))
        return;
    size_t room = c->state >= CONN_QUEUED || c->ahead ? AHEAD_BYTES : READ_BYTES;
    ssize_t n = recv(c->fd, s->read, room, 0);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            dgm_http_conn_lost(c);
        return;
    }
    if (n == 0 && c->state == CONN_LINGER) {
        dgm_http_conn_close(c);
        return;
    }
    if (n == 0)
        c->eof = true;
    else if (c->state < CONN_CLOSING && c->tls)
        conn_read_tls(c, s->read, (size_t)n);
    else if (c->state < CONN_CLOSING)
        conn_read_bytes(c, s->read, (size_t)n);
    if (c->eof && c->state == CONN_BUSY && c->x->watcher->on_fin)
        dgm_loop_at_turn_end(s->loop, &c->x->turn);
    if (c->eof && c->state == CONN_BUSY)
        dgm_http_exchange_probe(c->x);
    if (c->state < CONN_DEAD && !c->turn.next)
        dgm_http_conn_update(c);
}

void dgm_http_conn_new(http_shard *s, int fd, size_t peer)
{
    http_conn *c;
    if (s->closing || s->draining ||
        s->n_conns >= s->server->max_connections + REFUSED_CONNECTIONS) {
        close(fd);
        return;
    }
    c = dgm_xcalloc(1, sizeof *c);
    if (uv_poll_init(&s->loop->uv, &c->poll, fd) != 0) {
        close(fd);
        free(c);
        return;
    }
    c->poll.data = c;
    c->shard = s;
    c->fd = fd;
    c->number = ++s->n_accepted;
    c->is_loopback = peer == DGM_HTTP_PEERS;
    c->peer = (uint16_t)peer;
    c->turn = (dgm_loop_turn){.fn = conn_flush, .arg = c};
    c->next = s->conns;
    if (s->conns)
        s->conns->prev = c;
    s->conns = c;
    atomic_store_explicit(&s->n_seen, ++s->n_conns, memory_order_relaxed);
    if (s->n_conns > s->server->max_connections) {
        if (s->tls) {
            dgm_http_report_refusal(s, 503, "too many connections (connections)");
            dgm_http_conn_lost(c);
            return;
        }
        dgm_http_conn_refuse(c, 503, "too many connections (connections)");
    } else if (s->tls && !(c->tls = dgm_tls_new(s->tls))) {
        dgm_http_conn_lost(c);
        return;
    }
    dgm_http_conn_update(c);
}
