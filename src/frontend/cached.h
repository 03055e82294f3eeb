/*
 * frontend/cached.h - what is the same for everybody and seldom changes: cards, the catalog, the page.
 *
 * An answer carries an ETag made from its bytes, so that whoever has them already gets 304.
 */
#pragma once

#include "net/http.h"

typedef struct dgm_cached {
    dgm_str type; /* Content-Type */
    int status;   /* 0: 200 */
    dgm_str body;
    dgm_str cache_control;
    dgm_str vary;       /* may be empty */
    int64_t modified_s; /* Unix time, for Last-Modified; 0: none */
    const dgm_http_header *more;
    size_t n_more; /* at most 8 */
} dgm_cached;

/* Answers GET and HEAD: 304 when the caller's copy is good (If-None-Match, else If-Modified-Since). */
void dgm_cached_send(dgm_http_exchange *x, const dgm_cached *it);

/* Where the caller reached us: "http://127.0.0.1:8484", without a slash at the end. configured: what to
 * say instead; empty: as the request's Host has it, if that looks like one. In the arena. */
dgm_str dgm_front_address(dgm_arena *a, const dgm_http_request *r, dgm_str configured);
