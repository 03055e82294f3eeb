/*
 * net/tls.c - OpenSSL between two queues.
 *
 * Its BIO reads from the bytes that were just received and writes to the queue of the connection, so a
 * connection that is idle has no buffers of ours, and with SSL_MODE_RELEASE_BUFFERS few of OpenSSL's.
 */
#include "net/tls.h"

#include "base/arena.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A TLS record's plaintext; small pieces are gathered so that they share one. */
#define RECORD_BYTES 16384

struct dgm_tls_ctx {
    atomic_size_t refs; /* the owner's, and one per connection: they use its BIO */
    SSL_CTX *ssl;
    BIO_METHOD *method;
};

struct dgm_tls {
    dgm_tls_ctx *ctx;
    SSL *ssl;
    const char *in;
    size_t n_in;
    dgm_out wire;
};

/* ---- the BIO ---------------------------------------------------------------------------------------------- */

static int bio_read(BIO *b, char *to, int room)
{
    dgm_tls *t = BIO_get_data(b);
    size_t n = t->n_in < (size_t)room ? t->n_in : (size_t)room;
    BIO_clear_retry_flags(b);
    if (n == 0) {
        BIO_set_retry_read(b);
        return -1;
    }
    memcpy(to, t->in, n);
    t->in += n;
    t->n_in -= n;
    return (int)n;
}

static int bio_write(BIO *b, const char *p, int n)
{
    dgm_tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    dgm_out_add(&t->wire, (dgm_str){p, (size_t)n});
    return n;
}

static long bio_ctrl(BIO *b, int what, long arg, void *p)
{
    (void)b, (void)arg, (void)p;
    return what == BIO_CTRL_FLUSH;
}

/* ---- the context ------------------------------------------------------------------------------------------- */

const char *dgm_tls_why(void)
{
    static _Thread_local char text[200];
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(text, sizeof text, "%s", reason ? reason : "unknown error");
    ERR_clear_error();
    return text;
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                       const unsigned char *in, unsigned n_in, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl, (void)arg;
    return SSL_select_next_proto((unsigned char **)out, n_out, ours, sizeof ours - 1, in, n_in) ==
                   OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

dgm_code dgm_tls_ctx_new(const char *cert, const char *key, dgm_tls_ctx **ret_ctx, dgm_err *err)
{
    dgm_tls_ctx *c = dgm_xcalloc(1, sizeof *c);
    const char *bad = NULL;
    atomic_init(&c->refs, 1);
    ERR_clear_error();
    c->ssl = SSL_CTX_new(TLS_server_method());
    c->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dragoman");
    if (!c->ssl || !c->method || !SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION))
        bad = "cannot set up TLS";
    else if (SSL_CTX_use_certificate_chain_file(c->ssl, cert) != 1)
        bad = "cannot read the certificate";
    else if (SSL_CTX_use_PrivateKey_file(c->ssl, key, SSL_FILETYPE_PEM) != 1)
        bad = "cannot read the key";
    else if (SSL_CTX_check_private_key(c->ssl) != 1)
        bad = "key and certificate do not belong together";
    if (bad) {
        dgm_fail(err, DGM_UNAVAILABLE, NULL, "%s (%s, %s): %s", bad, cert, key, dgm_tls_why());
        dgm_tls_ctx_unref(c);
        return DGM_UNAVAILABLE;
    }
    BIO_meth_set_read(c->method, bio_read);
    BIO_meth_set_write(c->method, bio_write);
    BIO_meth_set_ctrl(c->method, bio_ctrl);
    SSL_CTX_set_mode(c->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(c->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_alpn_select_cb(c->ssl, choose_alpn, NULL);
    *ret_ctx = c;
    return DGM_OK;
}

dgm_tls_ctx *dgm_tls_ctx_ref(dgm_tls_ctx *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void dgm_tls_ctx_unref(dgm_tls_ctx *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    SSL_CTX_free(c->ssl);
    BIO_meth_free(c->method);
    free(c);
}

/* ---- a connection ------------------------------------------------------------------------------------------- */

dgm_tls *dgm_tls_new(dgm_tls_ctx *ctx)
{
    dgm_tls *t = dgm_xcalloc(1, sizeof *t);
    BIO *b = BIO_new(ctx->method);
    t->ssl = SSL_new(ctx->ssl);
    if (!t->ssl || !b) {
        BIO_free(b);
        SSL_free(t->ssl);
        free(t);
        return NULL;
    }
    t->ctx = dgm_tls_ctx_ref(ctx);
    BIO_set_data(b, t);
    BIO_set_init(b, 1);
    SSL_set_bio(t->ssl, b, b);
    SSL_set_accept_state(t->ssl);
    return t;
}

void dgm_tls_free(dgm_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl); /* and the BIO */
    dgm_out_clear(&t->wire);
    dgm_tls_ctx_unref(t->ctx);
    free(t);
}

dgm_out *dgm_tls_wire(dgm_tls *t)
{
    return &t->wire;
}

bool dgm_tls_is_ready(const dgm_tls *t)
{
    return SSL_is_init_finished(t->ssl);
}

void dgm_tls_feed(dgm_tls *t, const char *p, size_t n)
{
    t->in = p;
    t->n_in = n;
}

dgm_tls_step dgm_tls_read(dgm_tls *t, char *to, size_t room, size_t *ret_n)
{
    ERR_clear_error();
    if (SSL_read_ex(t->ssl, to, room, ret_n) == 1)
        return DGM_TLS_BYTES;
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return DGM_TLS_MORE;
    case SSL_ERROR_ZERO_RETURN: return DGM_TLS_END;
    default: return DGM_TLS_FAILED;
    }
}

bool dgm_tls_write(dgm_tls *t, dgm_out *plain)
{
    static _Thread_local char gathered[RECORD_BYTES];
    struct iovec iov[16];
    while (plain->n) {
        size_t parts = dgm_out_front(plain, iov, 16), n = 0, wrote;
        const char *p = gathered;
        if (iov[0].iov_len >= RECORD_BYTES) {
            p = iov[0].iov_base;
            n = RECORD_BYTES;
        }
        for (size_t i = 0; p == gathered && i < parts && n < RECORD_BYTES; i++) {
            size_t k = iov[i].iov_len < RECORD_BYTES - n ? iov[i].iov_len : RECORD_BYTES - n;
            memcpy(gathered + n, iov[i].iov_base, k);
            n += k;
        }
        ERR_clear_error();
        if (SSL_write_ex(t->ssl, p, n, &wrote) != 1)
            return false;
        dgm_out_drop(plain, wrote);
    }
    return true;
}

void dgm_tls_end(dgm_tls *t)
{
    ERR_clear_error();
    if (SSL_is_init_finished(t->ssl))
        SSL_shutdown(t->ssl);
}
