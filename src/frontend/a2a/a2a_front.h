/*
 * frontend/a2a/a2a_front.h - A2A over HTTP: JSON-RPC and REST, 1.0 and 0.3, on one address.
 *
 *   request ─► route, version, codec ─► core ─► records ─► the caller's dialect ─► response or SSE
 *
 * There is one frontend per agent. The router has looked at Host, Origin and credentials; which paths
 * below the agent's address are A2A's, and which methods they take, is decided here.
 */
#pragma once

#include "core/core.h"
#include "frontend/a2a/a2a_front_card.h"
#include "net/http.h"

typedef struct dgm_a2a_front dgm_a2a_front;

typedef enum dgm_a2a_media {
    DGM_A2A_MEDIA_AUTO,
    DGM_A2A_MEDIA_JSON,
    DGM_A2A_MEDIA_A2A
} dgm_a2a_media;

typedef struct dgm_a2a_extension {
    dgm_str uri;
    bool required; /* who does not list it cannot send */
} dgm_a2a_extension;

/* Zero-initialised: everything on, strict, by the tables of 1.0.1. */
typedef struct dgm_a2a_options {
    dgm_str agent;              /* its id in the core */
    bool errors_1_0_0;          /* HTTP status and gRPC names by the tables of 1.0.0, not 1.0.1 */
    bool lenient_version;       /* a 1.0 method or route without A2A-Version is served as 1.0 */
    bool no_10, no_03;          /* not answered */
    bool keep_open_at_question; /* a stream does not end at input-required */
    bool no_streaming;          /* streaming operations are refused */
    bool no_canonical_type;     /* metadata.canonical_type is not written */
    dgm_a2a_media rest_media;   /* type of REST answers; AUTO: what the caller names */
    uint64_t blocking_ms;       /* how long a blocking send waits; 0: 5 minutes */
    bool cancel_on_disconnect;  /* a run whose caller is gone, and whom nobody else reads */
    uint64_t grace_ms;          /* and nobody within this */
    const dgm_a2a_extension *extensions;
    size_t n_extensions;
    dgm_strs input_modes;  /* media types that parts may have; none: all */
    dgm_strs output_modes; /* what comes out; some of it has to be accepted; none: anything may */
    dgm_strs tenants;      /* that there are; none: any */
    const dgm_a2a_card *card;          /* the public one */
    const dgm_a2a_card *extended_card; /* for callers who are known; NULL: there is none */
} dgm_a2a_options;

/* What the options point to is borrowed. */
dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o);
void dgm_a2a_front_free(dgm_a2a_front *f); /* NULL is fine */

/* Who calls. */
typedef struct dgm_a2a_caller {
    dgm_owner owner;
    dgm_strs
        may_set; /* metadata of the server's that its token may set, as prefixes; none: not any */
    bool any_tenant; /* may name any tenant (a server without tokens); else only its own */
} dgm_a2a_caller;

/* False: no path of A2A's. On true it is, or will be, answered: 405 for a method that the path does not
 * take, 204 with Allow for OPTIONS. path: the request's, below the agent's address ("/", "/tasks/x"). */
bool dgm_a2a_front_take(dgm_a2a_front *f, dgm_http_exchange *x, const dgm_a2a_caller *who,
                        dgm_str path);

/* What the router refuses at a path (not found, no credentials, too much), in the dialect a caller
 * there speaks. Extra headers as for dgm_http_respond. */
void dgm_a2a_front_refuse(dgm_a2a_front *f, dgm_http_exchange *x, dgm_str path, const dgm_err *err,
                          const dgm_http_header *headers, size_t n);

/* The methods that a path takes, as Allow has them ("GET, HEAD"); NULL: no path of A2A's. */
const char *dgm_a2a_front_allows(dgm_str path);
