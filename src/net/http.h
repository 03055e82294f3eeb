/*
 * net/http.h - an HTTP/1.1 server that knows nothing of agents.
 *
 * One listener per loop on the same port (SO_REUSEPORT, after a probe without it so that a port in use
 * is seen). A request is handed over whole, body included, up to its limit; the answer is one body or
 * a stream that is written as it comes. All calls on an exchange are made on its loop.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/loop.h"

#include <stdatomic.h>

typedef struct dgm_http_server dgm_http_server;
typedef struct dgm_http_exchange dgm_http_exchange; /* one request and its answer */

typedef struct dgm_http_header {
    dgm_str name; /* lower case */
    dgm_str value;
} dgm_http_header;

/* Lives until the exchange is over, or its request is forgotten; in its arena. */
typedef struct dgm_http_request {
    dgm_str method;
    dgm_str target; /* as it came */
    dgm_str path;   /* before '?', not decoded */
    dgm_str query;  /* behind '?', not decoded; absent: none */
    dgm_http_header *headers;
    size_t n_headers;
    dgm_str body;
    bool is_loopback; /* the peer's address */
    bool is_tls;
} dgm_http_request;

/* The first header of that (lower case) name; absent if it was not sent. */
dgm_str dgm_http_header_of(const dgm_http_request *r, dgm_str name);

/* Bytes that requests hold from their head on until they are answered or forgotten: bodies, and what was
 * decoded from them. Shared by all loops. Zero-initialise, then set the limit. */
typedef struct dgm_http_budget {
    atomic_size_t used;
    atomic_size_t limit; /* 0: none */
} dgm_http_budget;

typedef enum dgm_http_refusal {
    DGM_HTTP_ADMITTED,
    DGM_HTTP_TOO_LARGE,   /* the body is above the limit of its request */
    DGM_HTTP_SERVER_FULL, /* the server's budget */
    DGM_HTTP_CALLER_FULL  /* the budget of dgm_http_set_budget */
} dgm_http_refusal;

typedef struct dgm_http_handler {
    /* A whole request. Must be answered, now or later, by begin or respond. */
    void (*on_request)(void *user, dgm_http_exchange *x, const dgm_http_request *r);
    /* The head of a request whose body has not arrived yet: for everything that the head decides, so that no
     * byte of a refused body is waited for. May answer, from inside this call (the connection ends behind the
     * answer), or call dgm_http_set_max_body and dgm_http_set_budget. A request that arrives in one piece
     * comes to on_request alone. NULL: every head is fine. */
    void (*on_head)(void *user, dgm_http_exchange *x, const dgm_http_request *r);
    /* A request whose body is not read, or not to its end: its head, and no body. on_head may have been called
     * before. Must be answered from inside this call; the connection ends behind the answer. NULL: it is refused
     * in plain text. */
    void (*on_body_refused)(void *user, dgm_http_exchange *x, const dgm_http_request *r,
                            dgm_http_refusal refusal);
    /* What was refused before it became a request (too large, malformed): for logs and metrics. */
    void (*on_refused)(void *user, int status, const char *why);
    /* A request that was handed over (on_head counts) has had its answer, or as much of it as its peer stayed
     * for; bytes are those of the body. status 0: the peer left before there was one. From inside the call that
     * ends the exchange. May be NULL. */
    void (*on_answered)(void *user, dgm_http_exchange *x, int status, uint64_t bytes);
    void *user;
} dgm_http_handler;

typedef struct dgm_http_times {
    uint64_t headers_ms; /* from a request's first byte to the end of its head; a TLS handshake */
    uint64_t body_ms;    /* for a body, or for each 16 KiB of it */
    uint64_t idle_ms;    /* between two requests */
    uint64_t write_ms;   /* between two times that the kernel took a byte */
    uint64_t linger_ms;  /* for the peer to see the end of our last answer */
    uint64_t backoff_ms; /* after accept() failed */
    uint64_t ping_ms;    /* of silence in a stream that is kept alive */
} dgm_http_times;

typedef struct dgm_http_options {
    const char *listen;   /* "127.0.0.1:8484", "[::1]:0", "unix:/run/x.sock": see net/listen.h */
    const char *tls_cert; /* PEM files; NULL: no TLS */
    const char *tls_key;
    size_t max_body;        /* 0: DGM_MAX_HTTP_BODY_BYTES */
    size_t max_connections; /* per loop; 0: DGM_MAX_CONNECTIONS */
    size_t max_in_flight;   /* of all requests; 0: DGM_MAX_IN_FLIGHT_BYTES */
    dgm_http_times times;   /* each 0: 10 s, 30 s, 60 s, 60 s, 2 s, 0.1 s, 15 s */
} dgm_http_options;

dgm_code dgm_http_server_new(dgm_loops *loops, const dgm_http_options *o, dgm_http_handler handler,
                             dgm_http_server **ret_server, dgm_err *err);
/* Binds the address: connections wait until the server is started. Port 0 becomes the one that was chosen. */
dgm_code dgm_http_server_listen(dgm_http_server *s, dgm_err *err);
/* Accepts connections on every loop. Listens first, unless that was done. */
dgm_code dgm_http_server_start(dgm_http_server *s, dgm_err *err);
int dgm_http_server_port(const dgm_http_server *s); /* 0 for a unix socket */
/* New connections get this certificate; those that are open keep theirs. From any thread; a fault leaves all
 * as it was. Only for a server that has one already. */
dgm_code dgm_http_server_set_tls(dgm_http_server *s, const char *cert, const char *key,
                                 dgm_err *err);
/* As in the options, for requests and connections that come after. From any thread. */
void dgm_http_server_set_limits(dgm_http_server *s, size_t max_body, size_t max_connections,
                                size_t max_in_flight);
/* Bytes of the server's budget that are in use. From any thread. */
size_t dgm_http_server_in_flight(const dgm_http_server *s);
/* No new connections; idle ones close; exchanges go on, and those with dgm_http_on_drain are notified.
 * on_drained when all are over or after ms. */
void dgm_http_server_drain(dgm_http_server *s, uint64_t ms, dgm_loop_fn on_drained, void *arg);
/* NULL is fine. After dgm_loops_free: what was posted to the loops may still end exchanges, and that is
 * where it is run. Or the loops still run: then it has been drained, they close what is left, and the server
 * is gone when they have. */
void dgm_http_server_free(dgm_http_server *s);

/* ---- answering ------------------------------------------------------------------------------------------ */

dgm_arena *dgm_http_arena(dgm_http_exchange *x);
const dgm_http_request *dgm_http_request_of(dgm_http_exchange *x);
/* Lowers the limit on the body of this request; from on_head. */
void dgm_http_set_max_body(dgm_http_exchange *x, size_t max_body);
/* The request counts against this budget, too; from on_head. It outlives the server. Charges are returned when the
 * request is forgotten or over. Requests of more than 64 KiB get at most three quarters of a budget, so that they
 * cannot keep small ones out. A budget that is not in use admits one request of any size. */
void dgm_http_set_budget(dgm_http_exchange *x, dgm_http_budget *b);
/* A number for the peer's address (of IPv6 its first 64 bits), below DGM_HTTP_PEERS; others may share it.
 * DGM_HTTP_PEERS: loopback and unix sockets, behind which there may be anybody. */
#define DGM_HTTP_PEERS 1024
size_t dgm_http_peer(const dgm_http_exchange *x);
void *dgm_http_user(const dgm_http_exchange *x); /* of the server's handler */
/* Memory that lives as long as the exchange, whatever is forgotten. */
void *dgm_http_alloc(dgm_http_exchange *x, size_t n);               /* zeroed */
const char *dgm_http_keep_text(dgm_http_exchange *x, dgm_str text); /* a copy, terminated */
/* For a response that takes long: the request and everything in the arena are freed at the end of this turn (or when
 * the kernel has the bytes that were borrowed), and dgm_http_arena returns a new small one from here on. Of the request,
 * the method, target, path and query remain. Before or after begin; a second call frees the small arena, too. */
void dgm_http_forget_request(dgm_http_exchange *x);

/* Extra headers are written as given, names in their usual case; a line break in a value becomes a space.
 * Content-Length, Date, Connection and Transfer-Encoding are the server's. The body is copied. This is
 * begin, write and end in one: the exchange and its arena go at the end of the turn. */
void dgm_http_respond(dgm_http_exchange *x, int status, dgm_str content_type,
                      const dgm_http_header *headers, size_t n, dgm_str body);

/* The same for a body somebody else owns: release(arg) comes when the kernel has it or the peer is gone, from inside
 * this call if it is small. */
void dgm_http_respond_shared(dgm_http_exchange *x, int status, dgm_str content_type,
                             const dgm_http_header *headers, size_t n, dgm_str body,
                             dgm_loop_fn release, void *arg);

/* Headers that the answer gets whoever gives it, before its own: what a gate in front of the handlers has
 * decided. Before the answer; a second call adds to the first. They live as long as the exchange's arena. */
void dgm_http_add_headers(dgm_http_exchange *x, const dgm_http_header *headers, size_t n);
/* A pointer of the handler's own, for on_answered; NULL at first. */
void **dgm_http_tag(dgm_http_exchange *x);

/* A stream: headers now, then chunks. HEAD gets the headers alone; HTTP/1.0 a body that ends with the
 * connection. */
void dgm_http_begin(dgm_http_exchange *x, int status, dgm_str content_type,
                    const dgm_http_header *headers, size_t n);
/* Copies; all that is written in a turn of the loop leaves in one piece at its end. */
void dgm_http_write(dgm_http_exchange *x, dgm_str bytes);
/* The same for bytes somebody else owns. Up to 4 KiB are copied and released at once, from inside this
 * call; more are borrowed, and release(arg) comes when the kernel has them or the peer is gone. They may lie
 * in the exchange's arena, which stays until then. release may be NULL. */
void dgm_http_write_shared(dgm_http_exchange *x, dgm_str bytes, dgm_loop_fn release, void *arg);
/* The exchange and its arena go at the end of the turn, or when the kernel has what was borrowed. */
void dgm_http_end(dgm_http_exchange *x);
/* Ends a stream: sends the written bytes, and closes the connection without the end of the body, so that the client detects that
 * the stream is incomplete. */
void dgm_http_cut(dgm_http_exchange *x);

/* Bytes that the kernel has not taken yet. A writer that has more to say than fits below the mark waits for
 * on_room; nothing is refused, the writer's patience is the limit. */
#define DGM_HTTP_BACKLOG_MARK ((size_t)64 << 10)
size_t dgm_http_backlog(const dgm_http_exchange *x);
/* The events that a handler wants while it responds, with the arg of dgm_http_watch. Members that are not set are not of
 * interest. The callbacks come from the loop, never from inside a call. */
typedef struct dgm_http_watcher {
    dgm_loop_fn on_room; /* the backlog was above the mark and is below it again */
    /* The peer has disconnected (a write failed or the connection was reset; a FIN alone is a half-close), or it read no
     * byte for 60 s. Once for every watch, also if it had happened before. The exchange must still be ended, by
     * dgm_http_end or dgm_http_respond, whose bytes are dropped. */
    dgm_loop_fn on_gone;
    /* The peer has sent its FIN: it sends nothing more, but it may still read. Once, also if it had happened before. */
    dgm_loop_fn on_fin;
    /* The server starts to drain: a stream without an end of its own ends here. Once, also if it had happened before. */
    dgm_loop_fn on_drain;
    /* Of a stream, after dgm_http_begin: sent whenever nothing was written for 15 s, and once when the peer has sent its FIN.
     * A comment shows us whether the peer is there, and it keeps proxies from closing the connection. */
    dgm_str ping;
} dgm_http_watcher;
/* The watcher is not copied. It replaces the one before; NULL: none. */
void dgm_http_watch(dgm_http_exchange *x, const dgm_http_watcher *w, void *arg);
