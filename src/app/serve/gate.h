/*
 * app/serve/gate.h - who may come in, from where, and as whom: before anybody looks at the path.
 *
 * On loopback a foreign Host or Origin is refused: a page in the user's browser must not be able to
 * speak to the user's agents (DNS rebinding, plain cross-site posts). Pure: a request and a config in.
 */
#pragma once

#include "config/config.h"
#include "net/http.h"
#include "store/store.h"

/* Is this a name of the machine itself, with or without a port? */
bool dgm_gate_is_loopback(dgm_str host);

/* NULL: it may come from there; else a sentence. */
const char *dgm_gate_refuses(const dgm_config *c, const dgm_http_request *r);

/* What every answer to a caller of this origin needs (CORS). At most 3; 0: it names no origin. */
size_t dgm_gate_cors(const dgm_http_request *r, dgm_http_header *ret_headers);

/* The answer to a browser that asks before it asks: what we read, and whatever else it wants to send. At most 3 more. */
bool dgm_gate_is_preflight(const dgm_http_request *r);
size_t dgm_gate_preflight(dgm_arena *a, const dgm_config *c, const dgm_http_request *r,
                          dgm_http_header *ret_headers);

typedef enum dgm_gate_word {
    DGM_GATE_OPEN,    /* the server has no tokens */
    DGM_GATE_KNOWN,   /* ret_owner is the caller */
    DGM_GATE_MISSING, /* no credentials */
    DGM_GATE_WRONG    /* unknown credentials */
} dgm_gate_word;

/* Every token is compared, and each in a time that does not depend on the bytes that were sent. Credentials of two
 * different callers are wrong. ret_may_set: may_set_metadata of the token that was sent. */
dgm_gate_word dgm_gate_owner(const dgm_config *c, const dgm_http_request *r, dgm_owner *ret_owner,
                             dgm_strs *ret_may_set);

/* Has the token that was sent the role of an operator? On a server without tokens a caller of this machine is the operator. */
bool dgm_gate_is_operator(const dgm_config *c, const dgm_http_request *r);

/* The value of WWW-Authenticate. In the arena. */
dgm_str dgm_gate_challenge(dgm_arena *a, const dgm_config *c, dgm_gate_word why);
