/*
 * wire/jsonrpc/jsonrpc.h - the JSON-RPC 2.0 envelope, around a value that is not read here.
 *
 * Ids stay the JSON values they came as: 1 is not "1", and 2^70 keeps its digits. This file knows no method by
 * name. The caller checks whether a method exists before it reads the params (dgm_rpc_params), so that an unknown
 * method is reported whatever its params are.
 */
#pragma once

#include "json/json.h"

typedef enum dgm_rpc_kind { DGM_RPC_REQUEST, DGM_RPC_RESPONSE } dgm_rpc_kind;

typedef struct dgm_rpc {
    dgm_rpc_kind kind;
    yyjson_val *id;     /* a string, an integer or null; NULL if absent */
    dgm_str method;     /* requests: never empty */
    yyjson_val *params; /* requests: any value, see dgm_rpc_params; NULL if absent */
    yyjson_val *result; /* responses: any value, null too, or NULL when there is an error */
    yyjson_val *error;  /* responses: an object, or NULL */
} dgm_rpc;

/*
 * Is v meant as an envelope? With a member jsonrpc: yes, be it right or wrong. Without: if it has
 * {method, params or id} or {id, result or error} and nothing else. Arrays: no.
 */
bool dgm_rpc_is(const yyjson_val *v);

/* The id that an answer to v, however broken v is, has to carry; NULL: answer with null. */
yyjson_val *dgm_rpc_id_of(const yyjson_val *v);

/*
 * Reads an envelope: DGM_BAD_REQUEST if it is invalid, with a pointer to the fault. Lenient, for
 * documents that we only convert: `jsonrpc` may be missing, a response may have no id, null beside
 * an error or a result counts as absent, and a response with neither has an empty result (Python's
 * 0.3 servers answer a deletion so).
 */
dgm_code dgm_rpc_read(yyjson_val *v, bool lenient, const dgm_at *at, dgm_rpc *ret_rpc,
                      dgm_err *err);

/* The request's params: an object without an empty key, else DGM_BAD_PARAMS. optional: absent (and
 * null) gives NULL. */
dgm_code dgm_rpc_params(const dgm_rpc *rpc, bool optional, const dgm_at *at,
                        yyjson_val **ret_params, dgm_err *err);

/* ---- writing: the head, then a value, then the tail ---------------------------------------------- */

void dgm_rpc_put_request(dgm_buf *b, const yyjson_val *id, dgm_str method); /* id NULL: left out */
void dgm_rpc_put_result(dgm_buf *b, const yyjson_val *id);                  /* id NULL: null */
void dgm_rpc_put_error(dgm_buf *b, const yyjson_val *id);                   /* id NULL: null */

static inline void dgm_rpc_put_tail(dgm_buf *b)
{
    dgm_buf_add_char(b, '}');
}

/* A request without params: head and tail in one. */
void dgm_rpc_put_bare_request(dgm_buf *b, const yyjson_val *id, dgm_str method);
