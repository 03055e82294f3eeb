/*
 * net/tls.h - TLS as a step between bytes and bytes: OpenSSL never sees a socket.
 */
#pragma once

#include "base/err.h"
#include "net/out.h"

typedef struct dgm_tls_ctx dgm_tls_ctx; /* certificate and settings; shared by threads */
typedef struct dgm_tls dgm_tls;         /* one connection */

/* PEM files: the certificate with its chain, and the key. TLS 1.2 or newer, ALPN http/1.1. */
dgm_code dgm_tls_ctx_new(const char *cert, const char *key, dgm_tls_ctx **ret_ctx, dgm_err *err);
dgm_tls_ctx *dgm_tls_ctx_ref(dgm_tls_ctx *ctx);
void dgm_tls_ctx_unref(dgm_tls_ctx *ctx); /* NULL is fine */

dgm_tls *dgm_tls_new(dgm_tls_ctx *ctx);
void dgm_tls_free(dgm_tls *t); /* NULL is fine */

/* What is to be sent to the peer gathers here. */
dgm_out *dgm_tls_wire(dgm_tls *t);
bool dgm_tls_is_ready(const dgm_tls *t); /* the handshake is over */

/* Bytes from the peer; read them all, by dgm_tls_read until it returns MORE, before the next ones. */
void dgm_tls_feed(dgm_tls *t, const char *p, size_t n);
typedef enum dgm_tls_step { DGM_TLS_BYTES, DGM_TLS_MORE, DGM_TLS_END, DGM_TLS_FAILED } dgm_tls_step;
dgm_tls_step dgm_tls_read(dgm_tls *t, char *to, size_t room, size_t *ret_n);
const char *dgm_tls_why(void); /* after FAILED, of this thread */

/* Takes what is in `plain` (no chunk open) and puts it on the wire. False: the connection is broken. */
bool dgm_tls_write(dgm_tls *t, dgm_out *plain);
void dgm_tls_end(dgm_tls *t); /* says goodbye on the wire */
