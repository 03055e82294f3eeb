/* app/load/load_int.h - what the files of this folder share. */
#pragma once

#include "app/load/load.h"
#include "base/arena.h"
#include "base/buf.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/types.h>

/* ---- latencies (load_report.c) ------------------------------------------------------------------------ */

/* Like HDR histograms: 64 steps to every doubling, so that no figure is off by more than 1.6 %. */
#define LOAD_STEPS 64
#define LOAD_DOUBLINGS 34 /* up to 2^40 ns, 18 minutes */

struct hist {
    uint64_t at[LOAD_DOUBLINGS * LOAD_STEPS];
    uint64_t n, min, max;
    double sum;
};

void dgm_load_hist_add(struct hist *h, uint64_t ns);
uint64_t dgm_load_hist_at(const struct hist *h,
                          double fraction); /* 0.99: as long as 99 of 100, in ns */

/* ---- another process (load_startup.c) ------------------------------------------------------------------- */

uint64_t dgm_load_now_ns(void);
uint64_t dgm_load_own_cpu_ns(void);
uint64_t dgm_load_cpu_ns(pid_t pid);        /* all its threads, since it started; 0: unknown */
int64_t dgm_load_rss_anon_bytes(pid_t pid); /* -1: unknown */

/* ---- what is asked for --------------------------------------------------------------------------------- */

enum mode { MODE_SEND, MODE_GET, MODE_STREAM, MODE_HOLD, MODE_STARTUP };

/* The requests of one protocol, and how its answers are distinguished (load_request.c). */
struct api {
    const char *name;
    const char *format;        /* of its answers, as the codecs call it */
    const char *send, *stream; /* bodies of requests; NULL: it has no such */
    const char *answer,
        *completed; /* in whole answers: in all, in those of tasks that ended well */
    const char *chunk,
        *end; /* at the beginning of a stream's event: a piece of text, all is well */
};

#define LOAD_MOST_IDS 3 /* in one request */

struct load {
    enum mode mode;
    const struct api *api;
    const char *url, *text, *token, *model;
    const char *expected; /* what every whole answer says; NULL: as the agent `bench` promises */
    char host[256], port[8], path[1024];
    struct sockaddr_storage to;
    socklen_t to_n;
    int family;
    size_t n_connections;
    double seconds, warmup, rate;
    uint64_t max_requests; /* 0: as many as there is time for */
    pid_t pid;             /* of the server; 0: not given */
    char **command;        /* startup */
    bool json;

    /* the request, all of it; only the digits of its ids change */
    dgm_buf request;
    size_t digits_at[LOAD_MOST_IDS], n_digits;
    uint64_t next_id;
    uint64_t want_chunks; /* pieces of text in every stream; UINT64_MAX: any number */
    const char *want[2];  /* what every answer holds; NULL: nothing more */
    char want_text[512], task_id[128];

    /* what came */
    struct hist latencies;
    uint64_t requests, events, bytes, errors, reconnects, began_ns, ended_ns;
    uint64_t own_cpu, server_cpu;
    int64_t rss_before, rss_after;
    char first_error[512];
    bool measuring;
};

/* ---- one connection (load_conn.c) ------------------------------------------------------------------------ */

enum conn_state { CONN_CLOSED, CONN_CONNECTING, CONN_IDLE, CONN_SENDING, CONN_HEAD, CONN_BODY };
enum chunk_state { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER };

#define LOAD_LINE_BYTES                                                                            \
    256 /* the beginning of a line of an SSE stream: enough to detect its kind */

struct conn {
    struct load *load;
    int fd;
    enum conn_state state;
    dgm_buf in;     /* the head, then the body of an answer that is no stream */
    size_t sent;    /* of the request */
    uint64_t id;    /* of the message */
    uint64_t began; /* when it should have begun */
    bool is_chunked, is_stream, has_length, keeps_open, is_proven, is_over;
    uint64_t left; /* of the body or the chunk */
    enum chunk_state chunk;
    size_t chunk_line; /* characters of the size line or trailer line so far */
    uint64_t chunk_size;
    char line[LOAD_LINE_BYTES];
    size_t line_n;
    uint64_t n_events, n_chunks;
    bool saw_end;
    dgm_buf proof; /* one whole event, for the first stream of a connection */
};

enum conn_news { CONN_GOES_ON, CONN_ANSWERED, CONN_BROKEN };

/* Connects, without waiting. False: load->first_error says why. */
bool dgm_load_conn_open(struct conn *c, struct load *load);
void dgm_load_conn_close(struct conn *c);
void dgm_load_conn_start(struct conn *c, uint64_t when); /* the next request */
enum conn_news dgm_load_conn_write(struct conn *c);
enum conn_news dgm_load_conn_read(struct conn *c);
/* The answer is complete: is it right? */
bool dgm_load_conn_check(struct conn *c);

void dgm_load_fail(struct load *l, const char *fmt, ...) DGM_PRINTF(2, 3);

/* ---- requests (load_request.c) ------------------------------------------------------------------------------ */

const struct api *dgm_load_api(const char *name);
/* Makes the request; first the task that it needs. False: first_error says why. */
bool dgm_load_prepare(struct load *l);

/* ---- runs (load_run.c, load_startup.c) ---------------------------------------------------------------------- */

/* False: could not run; the error was reported. */
bool dgm_load_run(struct load *l);
bool dgm_load_startup(struct load *l);

/* One request and its answer on a connection of its own; false with first_error set. ret_body may be
 * NULL. Waits up to wait_ms for it. */
bool dgm_load_request_once(struct load *l, int wait_ms, dgm_buf *ret_body);

void dgm_load_report(const struct load *l, FILE *out); /* load_report.c */
