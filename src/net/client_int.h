/*
 * net/client_int.h - what the files of the client share.
 *
 *   client.c         clients and their fetches: open, close, and the work that is done on the next iteration of the loop
 *   client_pool.c    connections: libcurl's multi interface, driven by libuv; idle connections
 *   client_fetch.c   a request: its options, how it is prepared for libcurl, calls of its owner
 *   client_answer.c  its response: the callbacks of libcurl, limits in time, redirects, results and their sentences
 *
 * libcurl says which sockets to watch and when to call it again (client_pool.c); its callbacks for a request are in
 * client_answer.c. From inside them libcurl allows no start, resume or end of a request. So these are noted in the fetch, and
 * run_todo (client.c) does them on the next iteration of the loop.
 *
 * Requests to guarded addresses have a connection pool of their own: one that was opened for the operator's URL could lead
 * to an address that a guarded request must not reach.
 */
#pragma once

#include "base/arena.h"
#include "net/client.h"

#include <curl/curl.h>

/* A kept connection may be closed by its server at any time, and a POST is not repeated if that happens while it is sent: a
 * connection that was idle for longer than this is not used again. Servers keep theirs for 5 s and more. */
#define MAX_IDLE_S 4L
/* Handles of libcurl that wait for the next request, per pool: making one takes as long as reading a hundred events. */
#define MAX_SPARE 16

struct client_pool {
    dgm_client *client;
    CURLM *multi;
    uv_timer_t timer;
    uv_timer_t sweep_timer;
    CURL *sweep; /* NULL: no sweep is under way */
    size_t n_fetches, n_sockets;
    CURL *spare[MAX_SPARE]; /* of requests that have ended, for the next ones */
    size_t n_spare;
    char *last_url, *last_target; /* of the last request: the next one often has the same */
};

struct dgm_client {
    uv_loop_t *loop;
    struct client_pool open, guarded;
    uv_timer_t todo_timer;
    dgm_fetch *first, *todo;
    size_t n_fetches;
    size_t n_handles; /* of libuv, not closed yet */
    bool closing;
    dgm_loop_stop on_stop; /* of the loop that it is the client of */
    void (*on_closed)(void *arg);
    void *arg;
};

enum client_todo { TODO_START = 1, TODO_RESUME = 2, TODO_CANCEL = 4, TODO_FAIL = 8 };

struct dgm_fetch {
    dgm_client *client;
    struct client_pool *pool;
    dgm_fetch *next, **here; /* all of the client's */
    dgm_fetch *todo_next;
    unsigned todo; /* of enum client_todo; 0: it is not in the list */
    CURL *easy;
    dgm_arena *arena;
    dgm_fetch_handler handler;
    dgm_fetch_options o;
    struct curl_slist *lines;
    uv_timer_t timer;
    uint64_t started, active; /* by uv_now */
    uint64_t connecting;      /* likewise, since when; 0: it has no socket yet, or is connected */
    size_t body_read, body_n, head_n;
    const char *target; /* "host:port", for sentences */
    dgm_fetch_header *headers;
    size_t n_headers, headers_room;
    int status;
    unsigned redirects;
    bool has_head, is_redirect;
    bool is_untrusted; /* there is no secure connection because of the server's certificate */
    bool paused;
    bool canceled;
    dgm_fetch_end failed; /* found by us, not by libcurl; DGM_FETCH_OK: nothing was */
    const char *failed_what;
    char why[CURL_ERROR_SIZE];
};

/* ---- client.c ---------------------------------------------------------------------------------------------- */

/* A handle of libuv is closed; the client is freed with the last one. */
void dgm_client_handle_closed(dgm_client *c);
void dgm_client_on_timer_closed(uv_handle_t *h);
void dgm_fetch_add_todo(dgm_fetch *f, unsigned what); /* what: of enum client_todo */
void dgm_fetch_free(dgm_fetch *f);
/* Calls on_end and frees the fetch. */
void dgm_fetch_finish(dgm_fetch *f, dgm_fetch_end end, dgm_str what);

/* ---- client_pool.c ----------------------------------------------------------------------------------------- */

void dgm_client_pool_init(dgm_client *c, struct client_pool *pool, size_t max_connections);
void dgm_client_pool_close(struct client_pool *pool); /* no fetch may be left in it */
CURL *dgm_client_pool_acquire(struct client_pool *pool);
void dgm_client_pool_release(struct client_pool *pool, CURL *easy);
/* Ends the fetches that libcurl is done with. */
void dgm_client_pool_read_messages(struct client_pool *pool);
/* Closes idle connections in time, as long as there may be some. */
void dgm_client_pool_watch_idle(struct client_pool *pool);

/* ---- client_fetch.c ---------------------------------------------------------------------------------------- */

struct client_url {
    char *scheme, *host, *port;
};

/* False: it is not an http or https URL. dgm_client_url_done frees the parts in both cases. */
bool dgm_client_url_parse(const char *text, struct client_url *ret_url);
void dgm_client_url_done(struct client_url *u);
void dgm_fetch_prepare(dgm_fetch *f); /* sets the options of f->easy, all of them */

/* ---- client_answer.c --------------------------------------------------------------------------------------- */

void dgm_fetch_set_callbacks(dgm_fetch *f);
/* Ends the fetch if one of its limits has passed, else checks again when the next one would. */
void dgm_fetch_watch_time(dgm_fetch *f);
void dgm_fetch_watch_time_within(dgm_fetch *f, uint64_t ms); /* does that in `ms` at the latest */
/* libcurl has ended the fetch, or a limit in time has passed: follows a redirect or ends it. */
void dgm_fetch_done(dgm_fetch *f, CURLcode code);
/* A limit or a rule of ours: libcurl stops, for this reason. */
void dgm_fetch_fail(dgm_fetch *f, dgm_fetch_end end, dgm_str what);
