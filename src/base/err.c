/* base/err.c - error rows, JSON pointers from frames. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

struct row {
    const char *name;
    int rpc, http, grpc, http_100, grpc_100;
    const char *reason, *message;
};

static const struct row rows[] = {
#define X(sym, rpc, http, grpc, http_100, grpc_100, reason, text)                                  \
    [DGM_##sym] = {#sym, rpc, http, grpc, http_100, grpc_100, reason, text},
    DGM_CODES(X)
#undef X
};

static const struct row *err_row_of(dgm_code code)
{
    return (size_t)code < sizeof rows / sizeof *rows ? &rows[code] : &rows[DGM_INTERNAL];
}

const char *dgm_code_name(dgm_code code)
{
    return err_row_of(code)->name;
}

int dgm_code_rpc(dgm_code code)
{
    return err_row_of(code)->rpc;
}

int dgm_code_http(dgm_code code, bool v1_0_0)
{
    return v1_0_0 ? err_row_of(code)->http_100 : err_row_of(code)->http;
}

int dgm_code_grpc(dgm_code code, bool v1_0_0)
{
    return v1_0_0 ? err_row_of(code)->grpc_100 : err_row_of(code)->grpc;
}

const char *dgm_code_reason(dgm_code code)
{
    return err_row_of(code)->reason;
}

const char *dgm_code_message(dgm_code code)
{
    return err_row_of(code)->message;
}

const char *dgm_grpc_status_name(int grpc)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return grpc >= 0 && (size_t)grpc < sizeof names / sizeof *names ? names[grpc] : "UNKNOWN";
}

/* Longest step that is shown whole; keys are the peer's and may be of any length. */
#define MAX_STEP 80

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

static size_t step_text(const dgm_at *at, char out[MAX_STEP * 2 + 8])
{
    if (!at->key.p)
        return (size_t)snprintf(out, MAX_STEP, "/%zu", at->i);
    size_t n = 0, i = 0;
    out[n++] = '/';
    for (; i < at->key.n && n < MAX_STEP; i++) {
        unsigned char c = (unsigned char)at->key.p[i];
        if (c == '~' || c == '/') {
            out[n++] = '~';
            out[n++] = c == '~' ? '0' : '1';
        } else {
            out[n++] = is_control(c) ? '?' : (char)c; /* a pointer goes to logs and terminals */
        }
    }
    /* Never end inside a UTF-8 sequence. */
    if (i < at->key.n) {
        while (n > 1 && ((unsigned char)out[n - 1] & 0xC0) == 0x80)
            n--;
        if (n > 1 && (unsigned char)out[n - 1] >= 0xC0)
            n--;
        n += (size_t)snprintf(out + n, 4, "...");
    }
    return n;
}

static bool append_steps(const dgm_at *at, char *out, size_t size, size_t *n)
{
    char step[MAX_STEP * 2 + 8];
    if (!at)
        return true;
    if (!append_steps(at->up, out, size, n))
        return false;
    if (!at->key.p && at->i == (size_t)-1)
        return true; /* a frame without a step of its own */
    size_t len = step_text(at, step);
    if (*n + len + sizeof "/..." > size) {
        memcpy(out + *n, "/...", sizeof "/...");
        *n += 4;
        return false;
    }
    memcpy(out + *n, step, len);
    *n += len;
    return true;
}

void dgm_at_text(const dgm_at *at, char *out, size_t size)
{
    size_t n = 0;
    append_steps(at, out, size, &n);
    out[n] = 0;
}

/*
 * Messages quote what a peer sent, cut at some byte, and are cut themselves: what is no UTF-8, and
 * what would move a cursor, becomes a question mark. They go into JSON, logs and terminals.
 */
static void make_text(char *msg)
{
    size_t n = strlen(msg);
    for (size_t i = 0; i < n; i++) {
        if (is_control((unsigned char)msg[i]))
            msg[i] = '?';
    }
    for (size_t i = 0; (i += dgm_utf8_check((dgm_str){msg + i, n - i})) < n;)
        msg[i++] = '?';
}

dgm_code dgm_fail(dgm_err *err, dgm_code code, const dgm_at *at, const char *fmt, ...)
{
    if (!err)
        return code;
    *err = (dgm_err){.code = code};
    dgm_at_text(at, err->at, sizeof err->at);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    make_text(err->msg);
    return code;
}

void dgm_err_below(const dgm_at *at, dgm_err *err)
{
    char step[sizeof err->at], rest[sizeof err->at];
    dgm_at_text(at, step, sizeof step);
    memcpy(rest, err->at, sizeof rest);
    size_t n = strlen(step), m = strlen(rest);
    if (n + m >= sizeof err->at)
        m = sizeof err->at - 1 - n;
    memcpy(err->at, step, n);
    memcpy(err->at + n, rest, m);
    err->at[n + m] = 0;
}

dgm_code dgm_options_copy(void *own, size_t own_size, const void *options, dgm_err *err)
{
    size_t size = 0;
    if (options)
        memcpy(&size, options, sizeof size);
    if (size < sizeof size || size > (size_t)1 << 16)
        return dgm_fail(
            err, DGM_BAD_REQUEST, NULL,
            "options are missing, or their member size is not set: write .size = sizeof");
    for (size_t i = own_size; i < size; i++) {
        if (((const char *)options)[i])
            return dgm_fail(err, DGM_BAD_REQUEST, NULL,
                            "an option is set that this version of the library does not have");
    }
    memset(own, 0, own_size);
    memcpy(own, options, size < own_size ? size : own_size);
    return DGM_OK;
}
