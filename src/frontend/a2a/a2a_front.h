/*
 * frontend/a2a/a2a_front.h - A2A over HTTP: JSON-RPC and REST, 1.0 and 0.3, on one address.
 *
 *   request ─► route, version, codec ─► core ─► records ─► the caller's dialect ─► response or SSE
 *
 * There is one dgm_a2a_front per agent: its settings. The router has checked Host, Origin and credentials.
 */
#pragma once

#include "frontend/a2a/a2a_front_card.h"
#include "frontend/turn/turn.h"

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
    bool json_stream_errors;    /* refusals of streaming calls of 1.0 are never events */
    bool no_canonical_type;     /* metadata.canonical_type is not written */
    dgm_a2a_media rest_media;   /* type of REST answers; AUTO: what the caller names */
    uint64_t blocking_ms;       /* how long a blocking send waits; 0: 5 minutes */
    bool
        cancel_on_disconnect; /* a run whose caller has disconnected, and that no other client reads */
    uint64_t grace_ms;        /* and none starts to read within this time */
    const dgm_a2a_extension *extensions;
    size_t n_extensions;
    dgm_strs input_modes;  /* media types that parts may have; none: all */
    dgm_strs output_modes; /* what comes out; some of it has to be accepted; none: anything may */
    dgm_strs tenants;      /* that there are; none: any */
    dgm_a2a_card *card;    /* the public one */
    dgm_a2a_card *extended_card; /* for authenticated callers; NULL if not offered */
} dgm_a2a_options;

/* What the options point to is borrowed. */
dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o);
void dgm_a2a_front_free(dgm_a2a_front *f); /* NULL is fine */

/* The form of the frames of a replay. */
typedef struct dgm_a2a_binding {
    bool is_03;
    const dgm_json *id; /* of the JSON-RPC request; NULL: REST */
} dgm_a2a_binding;

/* The stream of any turn. snapshot: the Task that a send to an existing task is answered with first, a reference of the
 * caller's; NULL: the stream starts with the first record of the turn, as for a subscriber that names the record before. */
void dgm_a2a_replay(const dgm_turn_replay *replay, const dgm_a2a_binding *binding,
                    dgm_record *snapshot);

/* JSON-RPC, REST and the card. The agent of a request has the frontend in `a2a`. */
extern const dgm_frontend dgm_front_a2a_rpc, dgm_front_a2a_rest, dgm_front_a2a_card;
