/*
 * net/http1.h - one HTTP/1.1 request out of bytes: a pure step, no socket, no clock.
 *
 * llhttp reads strictly; what it lets pass and we do not is refused here. The parser, the request and
 * a small body live in the caller's arena, so a connection between two requests holds nothing.
 */
#pragma once

#include "net/http.h"

#include <llhttp.h>

typedef enum dgm_http1_step {
    DGM_HTTP1_MORE,     /* all was used; the request is not whole yet */
    DGM_HTTP1_CONTINUE, /* the same, and the peer waits for "100 Continue"; returned once */
    /* Only if stops_at_head is set, once: the head is complete and the body is not. Feed on (0 bytes are fine)
     * to go on with the body. */
    DGM_HTTP1_HEAD,
    DGM_HTTP1_REQUEST, /* h->request is whole; what follows belongs to the next one */
    DGM_HTTP1_REFUSED, /* h->status and h->why; the connection cannot go on */
} dgm_http1_step;

typedef struct dgm_http1 {
    llhttp_t parser;
    dgm_arena *arena;
    dgm_http_request request;
    const char *why;
    size_t max_body;
    size_t head_bytes;
    size_t extra_bytes; /* of chunk extensions and trailers */
    dgm_buf body;       /* of a large or chunked body */
    const char *first;  /* the first bytes, in the arena; texts lie in them */
    size_t n_first;
    size_t length;    /* of a body of known length */
    char *small_body; /* in the arena, for a small one that came in pieces */
    size_t cap_headers;
    int status;
    uint8_t line;       /* enum http1_line: how far the request line was checked */
    bool stops_at_head; /* set by the caller after init */
    bool head_done, whole, in_name, is_small, wants_continue;
    bool is_http10;  /* no chunks to this one */
    bool keep_alive; /* once whole: as far as the peer is concerned */
} dgm_http1;

/* h is embedded in something in the arena, or in the arena itself: it goes with it. */
void dgm_http1_init(dgm_http1 *h, dgm_arena *a, size_t max_body);
size_t dgm_http1_body_bytes(const dgm_http1 *h); /* so far */
/* Lowers the limit of this request. False: its Content-Length is above the new limit. */
bool dgm_http1_set_max_body(dgm_http1 *h, size_t max_body);
dgm_http1_step dgm_http1_feed(dgm_http1 *h, const char *p, size_t n, size_t *ret_used);
