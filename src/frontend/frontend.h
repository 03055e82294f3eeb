/*
 * frontend/frontend.h - what frontends tell of a request while they answer it: for logs and metrics.
 *
 * The router hangs a note on every exchange; who answers writes on it. Without a router there is none, and
 * nothing is written.
 */
#pragma once

#include "net/http.h"

#include <stdatomic.h>

typedef enum dgm_front_kind {
    DGM_FRONT_NONE, /* nobody answered to that path */
    DGM_FRONT_RPC,
    DGM_FRONT_REST,
    DGM_FRONT_CARD,
    DGM_FRONT_CATALOG,
    DGM_FRONT_PAGE,
    DGM_FRONT_OPS,
    DGM_FRONT_AGUI,
    DGM_FRONT_OPENAI,
    DGM_FRONT_AISDK,
    DGM_FRONT_SIMPLE,
    DGM_N_FRONT_KINDS
} dgm_front_kind;

typedef struct dgm_front_note {
    dgm_front_kind kind;
    uint32_t turn;         /* 0: none */
    const char *operation; /* "SendMessage", of a fixed set; NULL: not known */
    const char *task;      /* its id, cut; NULL: none */
    const char *request;   /* what its answer calls the request, of its own accord; NULL: nothing */
    bool is_stream;
    _Atomic int64_t *n_streams; /* that are open */
} dgm_front_note;

static inline dgm_front_note *dgm_front_note_of(const dgm_http_exchange *x)
{
    return dgm_http_tag(x);
}

static inline void dgm_front_note_kind(dgm_http_exchange *x, dgm_front_kind kind,
                                       const char *operation)
{
    dgm_front_note *n = dgm_front_note_of(x);
    if (!n)
        return;
    n->kind = kind;
    n->operation = operation ? operation : n->operation;
}

static inline void dgm_front_note_task(dgm_http_exchange *x, dgm_str id, uint32_t turn)
{
    dgm_front_note *n = dgm_front_note_of(x);
    size_t most = 63;
    if (!n || !id.n)
        return;
    n->task = dgm_http_keep_text(x, (dgm_str){id.p, id.n < most ? id.n : most});
    n->turn = turn;
}

/* The answer is a stream from here on. */
static inline void dgm_front_note_stream(dgm_http_exchange *x)
{
    dgm_front_note *n = dgm_front_note_of(x);
    if (!n || n->is_stream)
        return;
    n->is_stream = true;
    if (n->n_streams)
        atomic_fetch_add_explicit(n->n_streams, 1, memory_order_relaxed);
}
