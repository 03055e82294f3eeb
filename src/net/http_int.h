/*
 * net/http_int.h - what the files of the server share.
 *
 *   http_server.c    the server, its shards and their listeners: start, accept, drain, stop
 *   http_conn.c      connections: states, bytes in and out, timeouts
 *   http_exchange.c  a request and its response
 *   http_budget.c    how many bytes requests may hold
 *   http_head.c      heads of responses
 *
 * A server has a shard per loop: its listener, its connections, its timers. A connection is a socket under
 * uv_poll and two queues; its parser exists only while a request is being read, so an idle one is small.
 *
 *      IDLE ──first byte──► HEAD ──► BODY ──complete──► BUSY ──end of the response──► IDLE
 *                                      └─large─► QUEUED ─┘
 *        └── at most one exchange: the next request is parsed when the last response has ended ──┘
 *      any ──refused, or the last response──► CLOSING ──all sent──► LINGER ──FIN or timeout──► DEAD ──► CLOSED
 *
 * An exchange:
 *
 *      READING ──head──► OFFERED (on_head) ──body──► OPEN (on_request) ──► RESPONDING ──► ENDED
 *
 * What must stay true:
 * - Calls of the handler on an exchange only add to the queue and ask for the end of the turn; reading,
 *   writing and closing happen in callbacks of the loop. So no call can make its own exchange vanish.
 * - An exchange and its connection let go of each other when either ends; the one that is left does not
 *   know the other any more.
 * - While reading is off, UV_PRIORITIZED is watched: libuv then still tells of a reset.
 */
#pragma once

#include "net/http.h"
#include "net/http1.h"
#include "net/listen.h"
#include "net/out.h"
#include "net/tls.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#define READ_BYTES ((size_t)64 << 10) /* one buffer per loop */
#define PLAIN_BYTES ((size_t)16 << 10)
#define KEEP_BYTES 280 /* a handler's notes on a request, and the rest of a forgotten one */
#define KEEP_ALIGN 8
/* Bodies from this size on are delivered for at most LARGE_NS per turn of the loop. Decoding one takes up to 20 ms, and
 * hundreds may become complete in the same turn: other requests wait for one of them at most. */
#define LARGE_BODY ((size_t)64 << 10)
#define LARGE_NS ((uint64_t)5 * 1000 * 1000)

#define HTTP_CONN_STATES(X) /* state, name, legal next states */                                   \
    X(CONN_IDLE, "idle", 1u << CONN_HEAD | 1u << CONN_CLOSING | 1u << CONN_DEAD)                   \
    X(CONN_HEAD, "head", CONN_AFTER_READING | 1u << CONN_BODY | 1u << CONN_QUEUED)                 \
    X(CONN_BODY, "body", CONN_AFTER_READING | 1u << CONN_QUEUED)                                   \
    X(CONN_QUEUED, "queued", 1u << CONN_BUSY | 1u << CONN_DEAD)                                    \
    X(CONN_BUSY, "busy", 1u << CONN_IDLE | 1u << CONN_CLOSING | 1u << CONN_DEAD)                   \
    X(CONN_CLOSING, "closing", 1u << CONN_TLS_END | 1u << CONN_LINGER | 1u << CONN_DEAD)           \
    X(CONN_TLS_END, "tls-end", 1u << CONN_LINGER | 1u << CONN_DEAD)                                \
    X(CONN_LINGER, "linger", 1u << CONN_DEAD)                                                      \
    X(CONN_DEAD, "dead", 1u << CONN_CLOSED)                                                        \
    X(CONN_CLOSED, "closed", 0)
#define X(state, name, may_become) state,
enum http_conn_state { HTTP_CONN_STATES(X) HTTP_N_CONN_STATES };
#undef X
/* CLOSING: it was answered before it was complete. */
#define CONN_AFTER_READING (1u << CONN_BUSY | 1u << CONN_CLOSING | 1u << CONN_DEAD)

#define HTTP_EXCHANGE_STATES(X)                                                                    \
    X(EXCHANGE_READING, "reading", 1u << EXCHANGE_OFFERED | EXCHANGE_AFTER_READING)                \
    X(EXCHANGE_OFFERED, "offered", EXCHANGE_AFTER_READING | 1u << EXCHANGE_RESPONDING)             \
    X(EXCHANGE_OPEN, "open", 1u << EXCHANGE_RESPONDING | 1u << EXCHANGE_ENDED)                     \
    X(EXCHANGE_RESPONDING, "responding", 1u << EXCHANGE_ENDED)                                     \
    X(EXCHANGE_ENDED, "ended", 0)
#define X(state, name, may_become) state,
enum http_exchange_state { HTTP_EXCHANGE_STATES(X) HTTP_N_EXCHANGE_STATES };
#undef X
#define EXCHANGE_AFTER_READING (1u << EXCHANGE_OPEN | 1u << EXCHANGE_ENDED)

enum http_timer { T_NONE, T_HEADERS, T_BODY, T_IDLE, T_WRITE, T_LINGER, T_PING, N_TIMERS };

typedef struct http_shard http_shard;

typedef struct http_conn {
    uv_poll_t poll;
    http_shard *shard;
    struct http_conn *prev, *next;     /* of the shard */
    struct http_conn *t_prev, *t_next; /* with the same timer, the earliest first */
    uint64_t deadline;
    dgm_loop_turn turn;
    dgm_http_exchange *x; /* being read (HEAD, BODY) or answered (BUSY) */
    dgm_tls *tls;
    dgm_out out; /* plaintext, if there is TLS */
    struct http_ahead {
        uint32_t n, at; /* bytes; those before `at` were parsed */
        char bytes[];
    } * ahead; /* what came behind the request that is being answered; NULL: nothing */
    int fd;
    uint32_t number;        /* of the shard's connections, for the trace */
    uint16_t peer;          /* see dgm_http_peer */
    uint8_t events;         /* that libuv watches */
    uint8_t state, timer;   /* enum http_conn_state; enum http_timer */
    bool restart;           /* the timer, although its kind stays */
    bool eof;               /* the peer's FIN */
    bool has_tls_bytes : 1; /* the peer has sent something */
    bool was_probed : 1;    /* by dgm_http_exchange_probe */
    bool is_loopback : 1;
} http_conn;

/* What is left of a request that was forgotten. */
struct http_left {
    dgm_http_request *request; /* once somebody asked for it */
    const char *method;
    uint16_t target_n, path_at, path_n, query_at, query_n; /* within target */
    bool has_path, has_query;
    bool is_loopback, is_tls;
    char target[];
};

struct dgm_http_exchange {
    union {
        dgm_http1 *in; /* in the arena */
        struct http_left *left;
    };
    http_shard *shard;
    http_conn *c;     /* NULL: the peer has disconnected, or the exchange has ended */
    dgm_arena *arena; /* what is decoded and built; NULL: forgotten, and nothing was built since */
    dgm_arena *retired; /* of a forgotten request; freed when no borrowed bytes can be in it */
    dgm_arena *more;    /* allocations that `room` is too small for; NULL: none yet */
    dgm_loop_turn turn;
    const dgm_http_watcher *watcher; /* never NULL */
    void *arg;                       /* of the watcher */
    void *tag;
    const dgm_http_header *also;
    dgm_http_budget *budget; /* besides the server's; NULL: none */
    size_t charged;          /* to the budgets, for the arena and the body */
    union {
        size_t body_at; /* while it is read: bytes of its body when the timer was started */
        dgm_http_exchange *queued; /* while it waits: the next one of the shard's queue */
        uint64_t sent;             /* bytes of the answer's body */
    };
    uint32_t borrowed; /* pieces on their way; they may lie in the arena */
    uint16_t n_also;
    uint16_t status;    /* 0: there is no response yet */
    uint8_t state;      /* enum http_exchange_state */
    bool forgotten : 1; /* the request; bits, because there are many open streams */
    bool is_head : 1, is_http10 : 1, chunked : 1, no_body : 1, keep_alive : 1;
    bool above : 1; /* the mark: on_room will be called */
    bool reported_gone : 1, reported_fin : 1, reported_drain : 1; /* to the watcher */
    uint16_t kept, kept_texts;                  /* of room: from the front, from the back */
    uint32_t number;                            /* of its connection, for the trace */
    _Alignas(KEEP_ALIGN) char room[KEEP_BYTES]; /* what dgm_http_alloc gives out first */
};

struct http_timers {
    http_conn *first, *last;
};

struct http_shard {
    dgm_http_server *server;
    dgm_loop *loop;
    uv_poll_t listener;
    int listen_fd; /* -1: none */
    int reserve_fd;
    dgm_timer tick, backoff;
    dgm_timer next_large;                  /* one large request per turn of the loop */
    dgm_http_exchange *large, **large_end; /* that are whole and wait for it */
    uint64_t armed;                        /* when tick rings; UINT64_MAX: not at all */
    dgm_loop_stop stop;
    http_conn *conns;
    size_t n_conns;
    uint32_t n_accepted;
    atomic_size_t n_seen; /* n_conns, for others */
    struct http_timers timers[N_TIMERS];
    size_t next_shard; /* of a unix socket: who gets the next connection */
    int open_handles;
    bool opened, closing, draining, drained;
    dgm_tls_ctx *tls; /* of new connections; NULL: plain */
    atomic_bool closed;
    char date[32];
    time_t date_at;
    char read[READ_BYTES];
    char plain[PLAIN_BYTES];
};

struct dgm_http_server {
    dgm_loops *loops;
    dgm_http_handler handler;
    uint64_t waits_ms[N_TIMERS], backoff_ms; /* see dgm_http_times */
    atomic_size_t max_body, max_connections;
    dgm_http_budget in_flight;
    char *listen;
    dgm_tls_ctx *tls; /* as it began; the shards have their own reference */
    dgm_listeners listeners;
    bool started;
    dev_t socket_dev; /* of our socket file */
    ino_t socket_ino;
    http_shard **shards;
    size_t n_shards;
    atomic_size_t refs; /* the owner and every shard that is open */
    /* draining; on the first loop */
    dgm_timer drain_timer;
    bool drain_timer_open, drain_reported;
    uint64_t drain_ms;
    dgm_loop_fn on_drained;
    void *drained_arg;
    atomic_size_t undrained;
};

void dgm_http_conn_set_timer(http_conn *c, enum http_timer kind);
void dgm_http_on_tick(void *shard);

/* ---- http_head.c ------------------------------------------------------------------------------------------- */

enum http_framing { BY_LENGTH, BY_CHUNKS, BY_CLOSE, NO_BODY };

struct http_head {
    int status;
    dgm_str type;
    enum http_framing framing;
    size_t length;          /* BY_LENGTH */
    const char *connection; /* NULL: no such header */
    struct http_header_list {
        const dgm_http_header *items;
        size_t n;
    } headers[2];
};

void dgm_http_put_head(http_conn *c, const struct http_head *h);

/* ---- http_exchange.c --------------------------------------------------------------------------------------- */

extern const dgm_machine dgm_http_exchange_machine;
void dgm_http_exchange_new(http_conn *c); /* becomes c->x */
void dgm_http_exchange_free(dgm_http_exchange *x);
/* The end of a turn: reports that the peer has disconnected; frees the exchange when it has ended. */
void dgm_http_exchange_turn_end(void *exchange);
/* After the peer's FIN: writes the comment of a stream. A peer that has closed its socket resets the connection then; one
 * that still reads ignores the comment. */
void dgm_http_exchange_probe(dgm_http_exchange *x);
void dgm_http_exchange_deliver(http_conn *c); /* c->x is complete */
void dgm_http_exchange_queue(
    http_conn *c); /* likewise, with a large body: delivered in a later turn */
void dgm_http_on_next_large(void *shard);
void dgm_http_exchange_unqueue(dgm_http_exchange *x);
/* Its head is complete: asks the handler and the budgets. False: it was answered. */
bool dgm_http_exchange_admit(http_conn *c);
/* Its body is too large, or there is no room for it: whoever answers requests does, if it wants to. */
void dgm_http_refuse_body(http_conn *c, dgm_http_refusal refusal, const char *why);
/* Frees an exchange that ends without a response of its handler; on_answered is called if it was offered. */
void dgm_http_exchange_drop(dgm_http_exchange *x, int status);
/* Answers a connection that goes no further; there may be no request. */
void dgm_http_conn_refuse(http_conn *c, int status, const char *why);
void dgm_http_report_refusal(http_shard *s, int status, const char *why); /* to the handler */

/* ---- http_budget.c ----------------------------------------------------------------------------------------- */

/* Its head is complete or more of its body came. False: there is no room for it, and it was answered. */
bool dgm_http_charge_body(http_conn *c);
void dgm_http_charge_actual(dgm_http_exchange *x); /* what it really takes */
void dgm_http_uncharge(dgm_http_exchange *x);      /* all of it */

/* ---- http_conn.c ------------------------------------------------------------------------------------------- */

extern const dgm_machine dgm_http_conn_machine;
void dgm_http_conn_set_state(http_conn *c,
                             enum http_conn_state to); /* the only writer of c->state */
void dgm_http_conn_new(http_shard *s, int fd, size_t peer);
void dgm_http_conn_close(http_conn *c);
void dgm_http_conn_lost(http_conn *c);   /* the peer is not there any more */
void dgm_http_conn_update(http_conn *c); /* ends, what to watch, which timer; may close it */
size_t dgm_http_conn_backlog(const http_conn *c);

/* ---- http_server.c ----------------------------------------------------------------------------------------- */

void dgm_http_shard_check(http_shard *s); /* something of it went: was it the last? s may be gone */

/* ---- what tests may look at -------------------------------------------------------------------------------- */

/* Connections that are open, all loops; for a test that has stopped or waits. */
size_t dgm_http_server_connections(const dgm_http_server *s);
