/*
 * net/http.c - listeners, connections, exchanges.
 *
 * A server has a shard per loop: its listener, its connections, its timers. A connection is a socket under
 * uv_poll and two queues; its parser exists only while a request is being read, so an idle one is small.
 *
 *      IDLE ──first byte──► HEAD ──► BODY ──whole──► BUSY ──end──► IDLE
 *        └── at most one exchange: the next request is parsed when the last answer has ended ──┘
 *      any ──refused, or the last answer──► (closing) ──all sent──► LINGER ──FIN or time──► DEAD
 *
 * What must stay true:
 * - Calls of the handler on an exchange only add to the queue and ask for the end of the turn; reading,
 *   writing and closing happen in callbacks of the loop. So no call can make its own exchange vanish.
 * - An exchange and its connection let go of each other when either ends; the one that is left does not
 *   know the other any more.
 * - While reading is off, UV_PRIORITIZED is watched: libuv then still tells of a reset.
 */
#define _GNU_SOURCE /* accept4: a child process started at the wrong moment must not get our sockets */
#include "net/http.h"

#include "base/limits.h"
#include "net/http1.h"
#include "net/http_int.h"
#include "net/listen.h"
#include "net/out.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10) /* one buffer per loop */
#define PLAIN_BYTES ((size_t)16 << 10)
#define AHEAD_BYTES                                                                                \
    ((size_t)16 << 10) /* of requests behind the one being answered; then no reading */
#define COPY_BYTES ((size_t)4 << 10) /* up to here a copy is cheaper than a part of its own */
#define WRITE_PARTS 32
#define ACCEPTS_PER_TURN 64
#define SPARE_ARENAS 64 /* of requests that are answered in the same turn */
#define SPARE_ARENA_BYTES ((size_t)8 << 10)
#define REFUSED_CONNECTIONS 64 /* beyond the limit, being told so */

enum phase { IDLE, HEAD, BODY, BUSY, LINGER, DEAD };
enum timer { T_NONE, T_HEADERS, T_BODY, T_IDLE, T_WRITE, T_LINGER, N_TIMERS };

typedef struct shard shard;

typedef struct conn {
    uv_poll_t poll;
    shard *shard;
    struct conn *prev, *next;     /* of the shard */
    struct conn *t_prev, *t_next; /* with the same timer, the earliest first */
    uint64_t deadline;
    dgm_loop_turn turn;
    dgm_http_exchange *x; /* being read (HEAD, BODY) or answered (BUSY) */
    dgm_tls *tls;
    dgm_out out; /* plaintext, if there is TLS */
    char *ahead; /* what came behind the request that is being answered */
    uint32_t ahead_at, ahead_n;
    int fd;
    int events; /* that libuv watches */
    uint8_t phase, timer;
    bool restart;   /* the timer, although its kind stays */
    bool eof;       /* the peer's FIN */
    bool closing;   /* no more requests; close when all is sent */
    bool heard;     /* a byte, at least */
    bool said_end;  /* TLS close_notify */
    bool is_closed; /* libuv is done with it */
    bool is_loopback;
} conn;

struct dgm_http_exchange {
    dgm_http1 in;
    shard *shard;
    conn *c; /* NULL: the peer is gone, or the exchange over */
    dgm_arena *arena;
    dgm_loop_turn turn;
    dgm_loop_fn on_room, on_gone;
    void *arg;
    size_t borrowed; /* pieces on their way; they may lie in the arena */
    bool begun, ended, gone, told_gone;
    bool is_head, chunked, no_body, keep_alive;
    bool above; /* the mark: on_room is owed */
};

struct timers {
    conn *first, *last;
};

struct shard {
    dgm_http_server *server;
    dgm_loop *loop;
    uv_poll_t listener;
    int listen_fd; /* -1: none */
    int reserve_fd;
    dgm_timer tick, backoff;
    uint64_t armed; /* when tick rings; UINT64_MAX: not at all */
    dgm_loop_stop stop;
    conn *conns;
    size_t n_conns;
    atomic_size_t n_seen; /* n_conns, for others */
    struct timers timers[N_TIMERS];
    size_t next_shard; /* of a unix socket: who gets the next connection */
    int open_handles;
    bool opened, closing, draining, drained;
    atomic_bool closed;
    char date[32];
    time_t date_at;
    dgm_out_pool pool;
    dgm_arena *arenas[SPARE_ARENAS];
    size_t n_arenas;
    char read[READ_BYTES];
    char plain[PLAIN_BYTES];
};

struct dgm_http_server {
    dgm_loops *loops;
    dgm_http_handler handler;
    dgm_http_times times;
    size_t max_body, max_connections;
    char *listen;
    dgm_tls_ctx *tls;
    dgm_listeners listeners;
    bool started;
    dev_t socket_dev; /* of our socket file */
    ino_t socket_ino;
    shard **shards;
    size_t n_shards;
    atomic_size_t refs; /* the owner and every shard that is open */
    /* draining; on the first loop */
    dgm_timer drain_timer;
    bool drain_timer_open, drain_told;
    uint64_t drain_ms;
    dgm_loop_fn on_drained;
    void *drained_arg;
    atomic_size_t undrained;
};

static void flush(void *arg);
static void settle(conn *c);
static void lost(conn *c);

/* ---- small things ------------------------------------------------------------------------------------------ */

static dgm_out *wire_of(conn *c)
{
    return c->tls ? dgm_tls_wire(c->tls) : &c->out;
}

static size_t backlog(const conn *c)
{
    return c->out.n + (c->tls ? dgm_tls_wire(c->tls)->n : 0);
}

static void touch(conn *c)
{
    dgm_loop_at_turn_end(c->shard->loop, &c->turn);
}

static void refused(shard *s, int status, const char *why)
{
    if (s->server->handler.on_refused)
        s->server->handler.on_refused(s->server->handler.user, status, why);
}

static dgm_arena *take_arena(shard *s)
{
    return s->n_arenas ? s->arenas[--s->n_arenas] : dgm_arena_new();
}

static void give_arena(shard *s, dgm_arena *a)
{
    if (s->n_arenas < SPARE_ARENAS && dgm_arena_used(a) <= SPARE_ARENA_BYTES) {
        dgm_arena_reset(a);
        s->arenas[s->n_arenas++] = a;
    } else {
        dgm_arena_free(a);
    }
}

/* ---- timers: one list per kind, since all of a kind wait equally long ------------------------------------------ */

static uint64_t wait_of(const shard *s, enum timer kind)
{
    const dgm_http_times *t = &s->server->times;
    switch (kind) {
    case T_HEADERS: return t->headers_ms;
    case T_BODY: return t->body_ms;
    case T_IDLE: return t->idle_ms;
    case T_WRITE: return t->write_ms;
    case T_LINGER: return t->linger_ms;
    case T_NONE:
    case N_TIMERS: break;
    }
    return 0;
}

static void arm(shard *s, uint64_t when)
{
    uint64_t now = uv_now(dgm_loop_uv(s->loop));
    if (when >= s->armed || s->closing)
        return;
    s->armed = when;
    dgm_timer_start(&s->tick, when > now ? when - now : 1);
}

static void set_timer(conn *c, enum timer kind)
{
    shard *s = c->shard;
    if (c->timer == kind && !c->restart)
        return;
    c->restart = false;
    if (c->timer) {
        struct timers *t = &s->timers[c->timer];
        *(c->t_prev ? &c->t_prev->t_next : &t->first) = c->t_next;
        *(c->t_next ? &c->t_next->t_prev : &t->last) = c->t_prev;
    }
    c->timer = kind;
    if (kind) {
        struct timers *t = &s->timers[kind];
        c->deadline = uv_now(dgm_loop_uv(s->loop)) + wait_of(s, kind);
        c->t_prev = t->last;
        c->t_next = NULL;
        *(t->last ? &t->last->t_next : &t->first) = c;
        t->last = c;
        arm(s, c->deadline);
    }
}

/* ---- heads of answers --------------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    switch (status) {
#define X(code, text)                                                                              \
    case code: return text;
        X(200, "OK")
        X(201, "Created")
        X(202, "Accepted")
        X(204, "No Content")
        X(301, "Moved Permanently")
        X(302, "Found")
        X(303, "See Other")
        X(304, "Not Modified")
        X(307, "Temporary Redirect")
        X(308, "Permanent Redirect")
        X(400, "Bad Request")
        X(401, "Unauthorized")
        X(403, "Forbidden")
        X(404, "Not Found")
        X(405, "Method Not Allowed")
        X(406, "Not Acceptable")
        X(408, "Request Timeout")
        X(409, "Conflict")
        X(410, "Gone")
        X(412, "Precondition Failed")
        X(413, "Content Too Large")
        X(415, "Unsupported Media Type")
        X(417, "Expectation Failed")
        X(422, "Unprocessable Content")
        X(429, "Too Many Requests")
        X(431, "Request Header Fields Too Large")
        X(500, "Internal Server Error")
        X(501, "Not Implemented")
        X(502, "Bad Gateway")
        X(503, "Service Unavailable")
        X(504, "Gateway Timeout")
        X(505, "HTTP Version Not Supported")
#undef X
    }
    return "Status"; /* may be anything, RFC 9112 4 */
}

static dgm_str date_of(shard *s)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm t;
    if (now != s->date_at) {
        gmtime_r(&now, &t);
        snprintf(s->date, sizeof s->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                 days + 3 * t.tm_wday, (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon,
                 (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
                 (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
        s->date_at = now;
    }
    return (dgm_str){s->date, 29};
}

static char *put(char *p, dgm_str s)
{
    if (s.n)
        memcpy(p, s.p, s.n);
    return p + s.n;
}
#define PUT(p, lit) put((p), DGM_STR(lit))

static char *put_number(char *p, uint64_t n)
{
    char digits[20];
    size_t i = sizeof digits;
    do {
        digits[--i] = (char)('0' + n % 10);
    } while (n /= 10);
    return put(p, (dgm_str){digits + i, sizeof digits - i});
}

/* What may hold bytes a peer chose must not end the line. */
static char *put_value(char *p, dgm_str s)
{
    for (size_t i = 0; i < s.n; i++)
        *p++ = (unsigned char)s.p[i] < 0x20 && s.p[i] != '\t' ? ' ' : s.p[i];
    return p;
}

enum framing { BY_LENGTH, BY_CHUNKS, BY_CLOSE, NO_BODY };

static void put_head(conn *c, int status, dgm_str type, const dgm_http_header *headers, size_t n,
                     enum framing framing, size_t length, const char *connection)
{
    size_t room = 256 + type.n;
    for (size_t i = 0; i < n; i++)
        room += headers[i].name.n + headers[i].value.n + 4;
    char *from = dgm_out_room(&c->out, &c->shard->pool, room), *p = from;
    if (status == 200) {
        p = PUT(p, "HTTP/1.1 200 OK\r\nDate: ");
    } else {
        p = PUT(p, "HTTP/1.1 ");
        p = put_number(p, (unsigned)status);
        p = PUT(p, " ");
        p = put(p, dgm_str_from(reason_of(status)));
        p = PUT(p, "\r\nDate: ");
    }
    p = put(p, date_of(c->shard));
    if (type.n) {
        p = PUT(p, "\r\nContent-Type: ");
        p = put_value(p, type);
    }
    if (framing == BY_LENGTH) {
        p = PUT(p, "\r\nContent-Length: ");
        p = put_number(p, length);
    } else if (framing == BY_CHUNKS) {
        p = PUT(p, "\r\nTransfer-Encoding: chunked");
    }
    if (connection) {
        p = PUT(p, "\r\nConnection: ");
        p = put(p, dgm_str_from(connection));
    }
    for (size_t i = 0; i < n; i++) {
        p = PUT(p, "\r\n");
        p = put_value(p, headers[i].name);
        p = PUT(p, ": ");
        p = put_value(p, headers[i].value);
    }
    p = PUT(p, "\r\n\r\n");
    assert((size_t)(p - from) <= room);
    dgm_out_wrote(&c->out, (size_t)(p - from));
}

/* ---- exchanges: being read ------------------------------------------------------------------------------------ */

static void exchange_turn(void *arg);

static void exchange_new(conn *c)
{
    dgm_arena *a = take_arena(c->shard);
    dgm_http_exchange *x = dgm_new(a, dgm_http_exchange);
    x->arena = a;
    x->shard = c->shard;
    x->c = c;
    x->turn = (dgm_loop_turn){.fn = exchange_turn, .arg = x};
    dgm_http1_init(&x->in, a, c->shard->server->max_body);
    c->x = x;
}

static void exchange_free(dgm_http_exchange *x)
{
    give_arena(x->shard, x->arena); /* x lived there */
}

/* An exchange that has ended goes at the end of the turn, so that whoever ended it may still look at it,
 * and not before the kernel has the bytes it borrowed. */
static void exchange_turn(void *arg)
{
    dgm_http_exchange *x = arg;
    if (x->ended) {
        if (!x->borrowed)
            exchange_free(x);
    } else if (x->gone && x->on_gone && !x->told_gone) {
        x->told_gone = true;
        x->on_gone(x->arg);
    }
}

static void on_piece_dropped(void *arg)
{
    dgm_http_exchange *x = arg;
    if (--x->borrowed == 0 && x->ended)
        dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}

static void exchange_over(dgm_http_exchange *x)
{
    conn *c = x->c;
    x->ended = true;
    x->on_room = x->on_gone = NULL;
    if (c) {
        x->c = NULL;
        c->x = NULL;
        c->phase = IDLE;
        c->restart = true;
        c->closing |= !x->keep_alive || c->shard->draining;
        touch(c);
    }
    dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}

/* Answers a connection that goes no further; there may be no request. */
static void refuse(conn *c, int status, const char *why)
{
    dgm_str text = dgm_str_from(why);
    refused(c->shard, status, why);
    put_head(c, status, DGM_STR("text/plain; charset=utf-8"), NULL, 0, BY_LENGTH, text.n + 1,
             "close");
    dgm_out_add(&c->out, &c->shard->pool, text);
    dgm_out_add(&c->out, &c->shard->pool, DGM_STR("\n"));
    if (c->x)
        exchange_free(c->x);
    c->x = NULL;
    c->phase = IDLE;
    c->closing = true;
    touch(c);
}

static void hand_over(conn *c)
{
    const dgm_http_handler *h = &c->shard->server->handler;
    dgm_http_exchange *x = c->x;
    x->in.request.is_loopback = c->is_loopback;
    x->in.request.is_tls = c->tls;
    x->is_head = x->in.parser.method == HTTP_HEAD;
    c->phase = BUSY;
    h->on_request(h->user, x, &x->in.request);
}

static bool takes_bytes(const conn *c)
{
    return !c->closing && c->phase <= BODY &&
           (c->phase != IDLE || backlog(c) <= DGM_HTTP_BACKLOG_MARK);
}

/* Returns how many bytes were used: all, unless a request waits for its answer. */
static size_t parse(conn *c, const char *p, size_t n)
{
    size_t used = 0, took;
    while (used < n && takes_bytes(c)) {
        if (!c->x) {
            exchange_new(c);
            c->phase = HEAD;
            c->restart = true;
        }
        dgm_http1_step s = dgm_http1_feed(&c->x->in, p + used, n - used, &took);
        used += took;
        switch (s) {
        case DGM_HTTP1_CONTINUE:
            dgm_out_add(&c->out, &c->shard->pool, DGM_STR("HTTP/1.1 100 Continue\r\n\r\n"));
            touch(c);
            /* fallthrough */
        case DGM_HTTP1_MORE:
            if (c->x->in.head_done) {
                c->phase = BODY;
                c->restart = true;
            }
            break;
        case DGM_HTTP1_REQUEST: hand_over(c); break;
        case DGM_HTTP1_REFUSED: refuse(c, c->x->in.status, c->x->in.why); return n;
        }
    }
    return c->closing ? n : used;
}

/* Bytes of the peer, decrypted: parsed now or kept for later. */
static void take(conn *c, const char *p, size_t n)
{
    size_t used = c->ahead ? 0 : parse(c, p, n), left = n - used;
    if (!left || c->closing)
        return;
    if (c->ahead_at) { /* else a peer that is always ahead would make it grow for ever */
        memmove(c->ahead, c->ahead + c->ahead_at, c->ahead_n - c->ahead_at);
        c->ahead_n -= c->ahead_at;
        c->ahead_at = 0;
    }
    c->ahead = dgm_xrealloc(c->ahead, c->ahead_n + left);
    memcpy(c->ahead + c->ahead_n, p + used, left);
    c->ahead_n += (uint32_t)left;
}

static void drop_ahead(conn *c)
{
    free(c->ahead);
    c->ahead = NULL;
    c->ahead_at = c->ahead_n = 0;
}

static void take_ahead(conn *c)
{
    if (!c->ahead)
        return;
    c->ahead_at += (uint32_t)parse(c, c->ahead + c->ahead_at, c->ahead_n - c->ahead_at);
    if (c->ahead_at == c->ahead_n || c->closing)
        drop_ahead(c);
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void shard_check(shard *s);

static void conn_free(conn *c)
{
    shard *s = c->shard;
    *(c->prev ? &c->prev->next : &s->conns) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    free(c);
    atomic_store_explicit(&s->n_seen, --s->n_conns, memory_order_relaxed);
    shard_check(s);
}

static void on_conn_closed(uv_handle_t *h)
{
    conn *c = h->data;
    c->is_closed = true;
    if (!c->turn.queued) /* else the end of the turn does it */
        conn_free(c);
}

static void conn_close(conn *c)
{
    dgm_http_exchange *x = c->x;
    if (x && c->phase == BUSY) {
        x->c = NULL;
        x->gone = true;
    } else if (x) {
        exchange_free(x);
    }
    c->x = NULL;
    c->phase = DEAD;
    set_timer(c, T_NONE);
    dgm_out_clear(&c->out, &c->shard->pool);
    dgm_tls_free(c->tls);
    c->tls = NULL;
    drop_ahead(c);
    uv_close((uv_handle_t *)&c->poll, on_conn_closed);
    close(c->fd);
}

/* The peer is not there any more. */
static void lost(conn *c)
{
    dgm_http_exchange *x = c->phase == BUSY ? c->x : NULL;
    conn_close(c);
    if (x)
        exchange_turn(x);
}

/* 1 all sent, 0 the kernel takes no more now, -1 the peer is gone */
static int write_out(conn *c)
{
    dgm_out *wire = wire_of(c);
    struct iovec iov[WRITE_PARTS];
    while (wire->n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = dgm_out_front(wire, iov, WRITE_PARTS)};
        size_t n = 0;
        for (size_t i = 0; i < m.msg_iovlen; i++)
            n += iov[i].iov_len;
        ssize_t wrote = sendmsg(c->fd, &m, MSG_NOSIGNAL);
        if (wrote < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
        }
        c->restart = true;
        dgm_out_drop(wire, &c->shard->pool, (size_t)wrote);
        if ((size_t)wrote < n)
            return 0; /* the socket is full: asking again would only say so */
    }
    return 1;
}

/* The end of a turn: everything that was said in it leaves in one piece. */
static void flush(void *arg)
{
    conn *c = arg;
    if (c->phase == DEAD) {
        if (c->is_closed)
            conn_free(c);
        return;
    }
    dgm_out_close_chunk(&c->out, &c->shard->pool);
    if ((c->tls && c->out.n && !dgm_tls_write(c->tls, &c->out, &c->shard->pool)) ||
        write_out(c) < 0) {
        lost(c);
        return;
    }
    dgm_http_exchange *x = c->x;
    if (x && x->above && backlog(c) <= DGM_HTTP_BACKLOG_MARK) {
        x->above = false;
        if (x->on_room)
            x->on_room(x->arg);
    }
    if (!c->x && backlog(c) == 0)
        take_ahead(c);
    settle(c);
}

/* Our last word is on its way: the peer gets a moment to read it before the socket goes, since closing a
 * socket with unread bytes resets it and takes the answer along. */
static void begin_linger(conn *c)
{
    if (c->tls && !c->said_end) {
        c->said_end = true;
        dgm_tls_end(c->tls);
        if (dgm_tls_wire(c->tls)->n && write_out(c) == 0)
            return; /* flush comes again when there is room */
    }
    if (c->eof) {
        conn_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->phase = LINGER;
}

static void on_event(uv_poll_t *h, int status, int events);

/* What follows from where the connection stands: ends, what to watch, which timer. May close it. */
static void settle(conn *c)
{
    bool sent = backlog(c) == 0;
    if (c->phase <= BODY && sent && !c->turn.queued) {
        if (c->closing)
            begin_linger(c);
        else if (c->eof && !c->ahead)
            conn_close(c); /* nothing more will come: half a request is none */
        else if (c->shard->draining && c->phase == IDLE && !c->ahead) {
            c->closing = true;
            begin_linger(c);
        }
    }
    if (c->phase == DEAD)
        return;
    sent = wire_of(c)->n == 0;

    bool reads = !c->eof && c->ahead_n - c->ahead_at < AHEAD_BYTES;
    int events = (reads ? UV_READABLE : UV_PRIORITIZED) | (sent ? 0 : UV_WRITABLE);
    if (events != c->events) {
        c->events = events;
        uv_poll_start(&c->poll, events, on_event);
    }
    set_timer(c, c->phase == LINGER                    ? T_LINGER
                 : !sent                               ? T_WRITE
                 : c->phase == BUSY                    ? T_NONE
                 : c->tls && !dgm_tls_is_ready(c->tls) ? T_HEADERS
                 : c->phase == HEAD                    ? T_HEADERS
                 : c->phase == BODY                    ? T_BODY
                                                       : T_IDLE);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static void take_tls(conn *c, const char *p, size_t n)
{
    size_t got;
    if (!c->heard && *p >= 'A' && *p <= 'Z') {
        dgm_tls_free(c->tls); /* a plain request: it can be told so in plain */
        c->tls = NULL;
        refuse(c, 400, "this port speaks HTTPS");
        return;
    }
    c->heard = true;
    dgm_tls_feed(c->tls, p, n);
    for (;;) {
        switch (dgm_tls_read(c->tls, c->shard->plain, PLAIN_BYTES, &got)) {
        case DGM_TLS_BYTES: take(c, c->shard->plain, got); continue;
        case DGM_TLS_MORE: break;
        case DGM_TLS_END: c->eof = true; break;
        case DGM_TLS_FAILED:
            refused(c->shard, 400, dgm_tls_why());
            write_out(c); /* the alert */
            lost(c);
            return;
        }
        break;
    }
    if (wire_of(c)->n)
        touch(c);
}

static void on_readable(conn *c)
{
    shard *s = c->shard;
    size_t room = c->phase == BUSY || c->ahead ? AHEAD_BYTES : READ_BYTES;
    ssize_t n = recv(c->fd, s->read, room, 0);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            lost(c);
        return;
    }
    if (c->phase == LINGER || c->closing) {
        if (n == 0) {
            c->eof = true;
            if (c->phase == LINGER) {
                conn_close(c);
                return;
            }
        }
    } else if (n == 0) {
        c->eof = true;
    } else if (c->tls) {
        take_tls(c, s->read, (size_t)n);
    } else {
        take(c, s->read, (size_t)n);
    }
    if (c->phase != DEAD && !c->turn.queued)
        settle(c);
}

static void on_event(uv_poll_t *h, int status, int events)
{
    conn *c = h->data;
    /* Urgent data we never asked for, or a hang-up while we do not read: either way that was all. */
    if (status < 0 || events & UV_PRIORITIZED) {
        lost(c);
        return;
    }
    if (events & UV_WRITABLE)
        touch(c);
    if (events & UV_READABLE)
        on_readable(c);
}

static void on_tick(void *arg)
{
    shard *s = arg;
    uint64_t now = uv_now(dgm_loop_uv(s->loop)), next = UINT64_MAX;
    s->armed = UINT64_MAX;
    for (enum timer kind = T_HEADERS; kind < N_TIMERS; kind++) {
        conn *c;
        while ((c = s->timers[kind].first) && c->deadline <= now) {
            if ((kind == T_HEADERS || kind == T_BODY) && c->x) {
                refuse(c, 408,
                       kind == T_BODY ? "the body does not come" : "the head does not come");
                set_timer(c, T_WRITE);
            } else {
                lost(c);
            }
        }
        if (c && c->deadline < next)
            next = c->deadline;
    }
    arm(s, next);
}

/* ---- accepting --------------------------------------------------------------------------------------------------- */

static void adopt(shard *s, int fd, bool is_loopback)
{
    conn *c;
    if (s->closing || s->draining ||
        s->n_conns >= s->server->max_connections + REFUSED_CONNECTIONS) {
        close(fd);
        return;
    }
    c = dgm_xcalloc(1, sizeof *c);
    if (uv_poll_init(dgm_loop_uv(s->loop), &c->poll, fd) != 0) {
        close(fd);
        free(c);
        return;
    }
    c->poll.data = c;
    c->shard = s;
    c->fd = fd;
    c->is_loopback = is_loopback;
    c->turn = (dgm_loop_turn){.fn = flush, .arg = c};
    c->next = s->conns;
    if (s->conns)
        s->conns->prev = c;
    s->conns = c;
    atomic_store_explicit(&s->n_seen, ++s->n_conns, memory_order_relaxed);
    if (s->n_conns > s->server->max_connections) {
        if (s->server->tls) {
            refused(s, 503, "too many connections (connections)");
            lost(c);
            return;
        }
        refuse(c, 503, "too many connections (connections)");
    } else if (s->server->tls && !(c->tls = dgm_tls_new(s->server->tls, &s->pool))) {
        lost(c);
        return;
    }
    settle(c);
}

struct handoff {
    shard *to;
    int fd;
};

static void on_handoff(void *arg)
{
    struct handoff *h = arg;
    adopt(h->to, h->fd, true);
    free(h);
}

static bool is_loopback_of(const struct sockaddr_storage *a)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    if (a->ss_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (memcmp(six, mapped, sizeof mapped) == 0 && six->s6_addr[12] == 127);
}

static void accepted(shard *s, int fd, const struct sockaddr_storage *peer)
{
    int on = 1;
    if (!s->server->listeners.path) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        adopt(s, fd, is_loopback_of(peer));
        return;
    }
    /* a unix socket has one listener: its connections go round */
    shard *to = s->server->shards[s->next_shard++ % s->server->n_shards];
    if (to == s) {
        adopt(s, fd, true);
    } else {
        struct handoff *h = dgm_xmalloc(sizeof *h);
        *h = (struct handoff){to, fd};
        dgm_loop_post(to->loop, on_handoff, h);
    }
}

static void on_listener(uv_poll_t *h, int status, int events);

static void on_backoff(void *arg)
{
    shard *s = arg;
    if (s->listen_fd >= 0)
        uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

/* No descriptor is left: the reserve lets us tell one peer so, then nobody is asked in for a moment. */
static void accept_without_descriptors(shard *s)
{
    static const char sorry[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    if (s->reserve_fd >= 0) {
        close(s->reserve_fd);
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            if (!s->server->tls && send(fd, sorry, sizeof sorry - 1, MSG_NOSIGNAL) > 0)
                shutdown(fd, SHUT_WR);
            close(fd);
        }
        s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    refused(s, 503, "too many open files: raise the limit (ulimit -n)");
    uv_poll_stop(&s->listener);
    dgm_timer_start(&s->backoff, s->server->times.backoff_ms);
}

static void on_listener(uv_poll_t *h, int status, int events)
{
    shard *s = h->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t n = sizeof peer;
        int fd = accept4(s->listen_fd, (struct sockaddr *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            accepted(s, fd, &peer);
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

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static void server_unref(dgm_http_server *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    for (size_t i = 0; i < s->n_shards; i++) {
        shard *h = s->shards[i];
        dgm_out_pool_done(&h->pool);
        while (h->n_arenas)
            dgm_arena_free(h->arenas[--h->n_arenas]);
        free(h);
    }
    dgm_tls_ctx_free(s->tls);
    free(s->shards);
    free(s->listeners.path);
    free(s->listen);
    free(s);
}

static void tell_drained(void *arg)
{
    dgm_http_server *s = arg;
    if (s->drain_told || !s->on_drained)
        return;
    s->drain_told = true;
    if (s->drain_timer_open)
        dgm_timer_stop(&s->drain_timer);
    s->on_drained(s->drained_arg);
}

static void on_drain_timer(void *arg)
{
    tell_drained(arg);
}

/* Called whenever something of the shard went: is it the last? */
static void shard_check(shard *s)
{
    if (s->draining && !s->drained && !s->closing && s->n_conns == 0) {
        s->drained = true;
        if (atomic_fetch_sub(&s->server->undrained, 1) == 1)
            dgm_loop_post(s->server->shards[0]->loop, tell_drained, s->server);
    }
    if (s->closing && s->n_conns == 0 && s->open_handles == 0 && !atomic_load(&s->closed)) {
        atomic_store(&s->closed, true);
        server_unref(s->server); /* s may be gone */
    }
}

static void on_listener_closed(uv_handle_t *h)
{
    shard *s = h->data;
    s->open_handles--;
    shard_check(s);
}

static void on_timer_closed(void *arg)
{
    shard *s = arg;
    s->open_handles--;
    shard_check(s);
}

static void close_listener(shard *s)
{
    if (s->listen_fd < 0)
        return;
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
    close(s->listen_fd);
    s->listen_fd = -1;
    dgm_timer_stop(&s->backoff);
}

static void shard_close(void *arg)
{
    shard *s = arg;
    if (s->closing)
        return;
    s->closing = true;
    dgm_loop_off_stop(s->loop, &s->stop);
    close_listener(s);
    if (s->reserve_fd >= 0)
        close(s->reserve_fd);
    s->reserve_fd = -1;
    for (conn *c = s->conns, *next; c; c = next) {
        next = c->next; /* c itself stays until libuv is done with it */
        if (c->phase != DEAD)
            lost(c);
    }
    dgm_timer_close(&s->tick, on_timer_closed, s);
    dgm_timer_close(&s->backoff, on_timer_closed, s);
    if (s == s->server->shards[0] && s->server->drain_timer_open) {
        s->server->drain_timer_open = false;
        dgm_timer_close(&s->server->drain_timer, on_timer_closed, s);
    }
}

static void shard_open(void *arg)
{
    shard *s = arg;
    s->opened = true;
    s->open_handles = 2;
    dgm_timer_init(s->loop, &s->tick, on_tick, s);
    dgm_timer_init(s->loop, &s->backoff, on_backoff, s);
    s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->stop = (dgm_loop_stop){.fn = shard_close, .arg = s};
    dgm_loop_on_stop(s->loop, &s->stop);
    if (s->listen_fd < 0)
        return;
    if (uv_poll_init(dgm_loop_uv(s->loop), &s->listener, s->listen_fd) != 0) {
        refused(s, 503, "cannot watch the listening socket");
        close(s->listen_fd);
        s->listen_fd = -1;
        return;
    }
    s->open_handles++;
    s->listener.data = s;
    uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

static void shard_drain(void *arg)
{
    shard *s = arg;
    if (s->closing)
        return;
    s->draining = true;
    close_listener(s);
    for (conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (c->phase == IDLE)
            touch(c); /* settle closes it, if nothing is left to be done */
    }
    shard_check(s);
}

/* ---- public: the server ------------------------------------------------------------------------------------------- */

dgm_code dgm_http_server_new(dgm_loops *loops, const dgm_http_options *o, dgm_http_handler handler,
                             dgm_http_server **ret_server, dgm_err *err)
{
    dgm_http_server *s = dgm_xcalloc(1, sizeof *s);
    dgm_code rc;
    atomic_init(&s->refs, 1);
    s->loops = loops;
    s->handler = handler;
    s->listen = memcpy(dgm_xmalloc(strlen(o->listen) + 1), o->listen, strlen(o->listen) + 1);
    s->max_body = o->max_body ? o->max_body : DGM_MAX_HTTP_BODY_BYTES;
    s->max_connections = o->max_connections ? o->max_connections : DGM_MAX_CONNECTIONS;
    s->times = (dgm_http_times){.headers_ms = 10000,
                                .body_ms = 30000,
                                .idle_ms = 60000,
                                .write_ms = 60000,
                                .linger_ms = 2000,
                                .backoff_ms = 100};
    if (!o->tls_cert != !o->tls_key)
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "TLS needs a certificate and a key");
    else
        rc = o->tls_cert ? dgm_tls_ctx_new(o->tls_cert, o->tls_key, &s->tls, err) : DGM_OK;
    if (rc) {
        dgm_http_server_free(s);
        return rc;
    }
    *ret_server = s;
    return DGM_OK;
}

void dgm_http_server_set_times(dgm_http_server *s, dgm_http_times times)
{
    s->times = times;
}

dgm_code dgm_http_server_start(dgm_http_server *s, dgm_err *err)
{
    size_t n = dgm_loops_count(s->loops);
    struct stat st;
    dgm_code rc = dgm_listen(s->listen, n, &s->listeners, err);
    if (rc)
        return rc;
    if (s->listeners.path && stat(s->listeners.path, &st) == 0) {
        s->socket_dev = st.st_dev;
        s->socket_ino = st.st_ino;
    }
    s->shards = dgm_xcalloc(n, sizeof(shard *));
    s->n_shards = n;
    atomic_store(&s->refs, 1 + n);
    for (size_t i = 0; i < n; i++) {
        shard *h = s->shards[i] = dgm_xcalloc(1, sizeof *h);
        h->server = s;
        h->loop = dgm_loops_at(s->loops, i);
        h->listen_fd = i < s->listeners.n ? s->listeners.fds[i] : -1;
        h->reserve_fd = -1;
        h->armed = UINT64_MAX;
    }
    s->started = true;
    for (size_t i = 0; i < n; i++)
        dgm_loop_post(s->shards[i]->loop, shard_open, s->shards[i]);
    return DGM_OK;
}

int dgm_http_server_port(const dgm_http_server *s)
{
    return s->listeners.port;
}

size_t dgm_http_server_connections(const dgm_http_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_shards; i++)
        n += atomic_load_explicit(&s->shards[i]->n_seen, memory_order_relaxed);
    return n;
}

static void begin_drain(void *arg)
{
    dgm_http_server *s = arg;
    shard *first = s->shards[0];
    if (first->closing) {
        tell_drained(s);
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
    dgm_loop_post(s->shards[0]->loop, begin_drain, s);
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

/* ---- public: answering ---------------------------------------------------------------------------------------------- */

dgm_arena *dgm_http_arena(dgm_http_exchange *x)
{
    return x->arena;
}

dgm_loop *dgm_http_loop(dgm_http_exchange *x)
{
    return x->shard->loop;
}

const dgm_http_request *dgm_http_request_of(dgm_http_exchange *x)
{
    return &x->in.request;
}

static void begin(dgm_http_exchange *x, int status, dgm_str type, const dgm_http_header *headers,
                  size_t n, enum framing framing, size_t length)
{
    assert(!x->begun && !x->ended && status >= 200 && status <= 999);
    x->begun = true;
    x->no_body = x->is_head || status == 204 || status == 304;
    x->keep_alive = x->in.keep_alive && framing != BY_CLOSE && !x->shard->draining;
    x->chunked = framing == BY_CHUNKS && !x->no_body;
    if (x->c)
        put_head(x->c, status, type, headers, n, x->no_body && !x->is_head ? NO_BODY : framing,
                 length,
                 !x->keep_alive    ? "close"
                 : x->in.is_http10 ? "keep-alive"
                                   : NULL);
}

void dgm_http_respond(dgm_http_exchange *x, int status, dgm_str content_type,
                      const dgm_http_header *headers, size_t n, dgm_str body)
{
    begin(x, status, content_type, headers, n, BY_LENGTH, body.n);
    if (x->c && !x->no_body)
        dgm_out_add(&x->c->out, &x->shard->pool, body);
    exchange_over(x);
}

void dgm_http_begin(dgm_http_exchange *x, int status, dgm_str content_type,
                    const dgm_http_header *headers, size_t n)
{
    begin(x, status, content_type, headers, n, x->in.is_http10 ? BY_CLOSE : BY_CHUNKS, 0);
    if (x->c)
        touch(x->c);
}

/* Is there anybody to write to? Then the chunk is open. */
static bool writes(dgm_http_exchange *x, dgm_str bytes)
{
    assert(x->begun && !x->ended);
    if (!x->c || x->no_body || !bytes.n)
        return false;
    if (x->chunked)
        dgm_out_open_chunk(&x->c->out, &x->shard->pool);
    touch(x->c);
    return true;
}

static void wrote(dgm_http_exchange *x)
{
    if (backlog(x->c) > DGM_HTTP_BACKLOG_MARK)
        x->above = true;
}

void dgm_http_write(dgm_http_exchange *x, dgm_str bytes)
{
    if (!writes(x, bytes))
        return;
    dgm_out_add(&x->c->out, &x->shard->pool, bytes);
    wrote(x);
}

void dgm_http_write_shared(dgm_http_exchange *x, dgm_str bytes, dgm_loop_fn release, void *arg)
{
    if (writes(x, bytes)) {
        if (bytes.n > COPY_BYTES) {
            x->borrowed++;
            dgm_out_share(&x->c->out, bytes, release, arg, on_piece_dropped, x);
            wrote(x);
            return;
        }
        dgm_out_add(&x->c->out, &x->shard->pool, bytes);
        wrote(x);
    }
    if (release)
        release(arg);
}

void dgm_http_end(dgm_http_exchange *x)
{
    assert(!x->ended);
    if (!x->begun && x->c) {
        dgm_http_respond(x, 500, DGM_STR("text/plain; charset=utf-8"), NULL, 0,
                         DGM_STR("no answer\n"));
        return;
    }
    if (x->c && x->chunked) {
        dgm_out_close_chunk(&x->c->out, &x->shard->pool);
        dgm_out_add(&x->c->out, &x->shard->pool, DGM_STR("0\r\n\r\n"));
    }
    exchange_over(x);
}

size_t dgm_http_backlog(const dgm_http_exchange *x)
{
    return x->c ? backlog(x->c) : 0;
}

void dgm_http_watch(dgm_http_exchange *x, dgm_loop_fn on_room, dgm_loop_fn on_gone, void *arg)
{
    x->on_room = on_room;
    x->on_gone = on_gone;
    x->arg = arg;
    if (x->gone)
        dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}
