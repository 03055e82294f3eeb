/*
 * net/client.h - HTTP requests to other servers, on a loop.
 *
 * A client belongs to one uv loop and keeps its connections, per origin, for the next request. A request is started, then its
 * handler is called on that loop: the head once, the body as it arrives, the end. Callbacks never come from inside a call.
 * Only http and https; no proxy unless one is configured; no redirect to another origin. A request whose body may have
 * reached the server is never repeated by the client.
 *
 * The program must ignore SIGPIPE.
 */
#pragma once

#include "base/err.h"
#include "net/address.h"
#include "net/loop.h"

typedef struct dgm_client dgm_client;
typedef struct dgm_fetch dgm_fetch; /* one request */

/* How a request ended. */
typedef enum dgm_fetch_end {
    DGM_FETCH_OK, /* with a complete response, whatever its status is */
    DGM_FETCH_BAD_URL,
    DGM_FETCH_NO_ADDRESS,  /* the name has no address */
    DGM_FETCH_REFUSED,     /* its address may not be connected to (net/address.h) */
    DGM_FETCH_UNREACHABLE, /* no connection */
    DGM_FETCH_TLS,         /* no secure connection, or its certificate is not trusted */
    DGM_FETCH_CUT,         /* the connection ended in the middle of the response or before it */
    DGM_FETCH_TIMEOUT,
    DGM_FETCH_TOO_LARGE,
    DGM_FETCH_REDIRECT, /* to another origin, or too many */
    DGM_FETCH_INVALID,  /* what came is no HTTP */
    DGM_FETCH_STOPPED   /* the client was closed */
} dgm_fetch_end;

typedef struct dgm_fetch_result {
    dgm_fetch_end end;
    bool
        may_be_received; /* the server may have received the request, whole: repeating it could do its work twice */
    dgm_str
        what; /* a sentence for people, with host and port; never a credential, a path or a query */
} dgm_fetch_result;

typedef struct dgm_fetch_header {
    dgm_str name, value;
} dgm_fetch_header;

typedef struct dgm_fetch_head {
    int status;
    dgm_str content_type;            /* without parameters, as sent; may be empty */
    const dgm_fetch_header *headers; /* of this response, in order */
    size_t n_headers;
} dgm_fetch_head;

/* The value of a header; its name in lower case or any other. Absent: p == NULL. */
dgm_str dgm_fetch_header_of(const dgm_fetch_head *head, const char *name);

typedef struct dgm_fetch_handler {
    /* Before the first on_body; not for redirects that are followed. May be NULL. */
    void (*on_head)(void *user, const dgm_fetch_head *head);
    /* May be NULL: then the body is dropped. */
    void (*on_body)(void *user, dgm_str bytes);
    /* The last callback; the fetch is gone when it returns. Not after dgm_fetch_cancel. */
    void (*on_end)(void *user, const dgm_fetch_result *result);
    void *user;
} dgm_fetch_handler;

/* 0 in a member: no such limit, except for head_bytes. */
typedef struct dgm_fetch_limits {
    size_t head_bytes; /* status line and headers; 0: DGM_MAX_HTTP_HEADER_BYTES */
    size_t body_bytes;
    uint64_t connect_ms;    /* until there is a connection, TLS included */
    uint64_t first_byte_ms; /* from the start of the request to the head of the response */
    uint64_t
        silence_ms; /* between bytes of the body; time in which the reader pauses does not count */
    uint64_t total_ms;
} dgm_fetch_limits;

/* Absent members (NULL): the machine's certificates, no client certificate. */
typedef struct dgm_fetch_tls {
    const char *ca_file, *cert_file, *key_file;
} dgm_fetch_tls;

typedef struct dgm_fetch_options {
    const char *method; /* "GET", "POST", ... */
    const char *url;
    const dgm_fetch_header *headers;
    size_t n_headers;
    dgm_str body; /* p == NULL: none */
    dgm_fetch_tls tls;
    const char *proxy; /* its URL; NULL: none, whatever the environment says */
    /* Hosts that are reached without the proxy, as in the variable no_proxy; NULL: none, whatever the environment says */
    const char *no_proxy;
    /* The URL was not written by the operator: its address is checked, except for those in `allowed`. */
    bool is_guarded;
    dgm_address_ranges allowed;
    /* A GET that is redirected within its origin is followed. */
    bool follows;
    dgm_fetch_limits limits;
} dgm_fetch_options;

/* max_connections: to one origin; requests beyond wait for one. 0: no limit. */
dgm_client *dgm_client_new(uv_loop_t *loop, size_t max_connections);
/* What is left ends with DGM_FETCH_STOPPED. Its handles are closed by the loop's next iterations; on_closed may be NULL. No
 * fetch may be started after this. */
void dgm_client_close(dgm_client *c, void (*on_closed)(void *arg), void *arg);
/* The client of a loop, closed when the loop stops. NULL: it is stopping. On the thread of the loop. */
dgm_client *dgm_client_of_loop(dgm_loop *l);
size_t dgm_client_in_flight(const dgm_client *c);
/* That are open: those of fetches, and at most 64 idle ones per kind (guarded or not), each for some 5 seconds. */
size_t dgm_client_connections(const dgm_client *c);

/* The options are copied. Headers with line ends in them, and a URL that is neither http nor https, end it with
 * DGM_FETCH_BAD_URL. */
dgm_fetch *dgm_fetch_start(dgm_client *c, const dgm_fetch_options *options,
                           dgm_fetch_handler handler);
void dgm_fetch_cancel(dgm_fetch *f); /* no callback follows; also from inside its own */

/* As dgm_fetch_cancel, but what is left of an answer that has begun is read for a moment and dropped: then its connection
 * can be used again. */
void dgm_fetch_release(dgm_fetch *f);
/* No on_body until resumed: what the server sends waits in its socket. One resume undoes any number of pauses. */
void dgm_fetch_pause(dgm_fetch *f);
void dgm_fetch_resume(dgm_fetch *f);

/* Is b's scheme, host and port that of a? Both must be URLs. */
bool dgm_url_is_same_origin(const char *a, const char *b);
