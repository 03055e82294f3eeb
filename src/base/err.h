/*
 * base/err.h - reports what is wrong, and where.
 *
 * The position in a document is a chain of stack frames; it becomes a JSON pointer only when
 * something fails, so that a valid document costs almost nothing.
 */
#pragma once

#include "base/str.h"

/*
 * One row per error: what it is in every binding. Symbol, JSON-RPC code, HTTP status and gRPC status by the tables
 * of A2A 1.0.1 and of 1.0.0, ErrorInfo reason ("" for errors that A2A does not name), default message.
 */
#define DGM_CODES(X)                                                                               \
    X(OK, 0, 200, 0, 200, 0, "", "ok")                                                             \
    X(PARSE, -32700, 400, 3, 400, 3, "", "Invalid JSON payload")                                   \
    X(BAD_REQUEST, -32600, 400, 3, 400, 3, "", "Request payload validation error")                 \
    X(NO_SUCH_METHOD, -32601, 404, 12, 404, 12, "", "Method not found")                            \
    X(BAD_PARAMS, -32602, 400, 3, 400, 3, "", "Invalid parameters")                                \
    X(INTERNAL, -32603, 500, 13, 500, 13, "", "Internal error")                                    \
    X(TASK_NOT_FOUND, -32001, 404, 5, 404, 5, "TASK_NOT_FOUND", "Task not found")                  \
    X(TASK_NOT_CANCELABLE, -32002, 400, 9, 409, 9, "TASK_NOT_CANCELABLE",                          \
      "Task cannot be canceled")                                                                   \
    X(PUSH_NOT_SUPPORTED, -32003, 400, 9, 400, 12, "PUSH_NOTIFICATION_NOT_SUPPORTED",              \
      "Push Notification is not supported")                                                        \
    X(UNSUPPORTED_OPERATION, -32004, 400, 9, 400, 12, "UNSUPPORTED_OPERATION",                     \
      "This operation is not supported")                                                           \
    X(CONTENT_TYPE_NOT_SUPPORTED, -32005, 400, 3, 415, 3, "CONTENT_TYPE_NOT_SUPPORTED",            \
      "Incompatible content types")                                                                \
    X(INVALID_AGENT_RESPONSE, -32006, 500, 13, 502, 13, "INVALID_AGENT_RESPONSE",                  \
      "Invalid agent response type")                                                               \
    X(EXTENDED_CARD_NOT_CONFIGURED, -32007, 400, 9, 400, 9, "EXTENDED_AGENT_CARD_NOT_CONFIGURED",  \
      "Extended Agent Card not configured")                                                        \
    X(EXTENSION_REQUIRED, -32008, 400, 9, 400, 9, "EXTENSION_SUPPORT_REQUIRED",                    \
      "Extension support required")                                                                \
    X(VERSION_NOT_SUPPORTED, -32009, 400, 9, 400, 12, "VERSION_NOT_SUPPORTED",                     \
      "Version not supported")                                                                     \
    X(UNAUTHENTICATED, -32000, 401, 16, 401, 16, "", "Unauthenticated")                            \
    X(FORBIDDEN, -32000, 403, 7, 403, 7, "", "Forbidden")                                          \
    X(TOO_LARGE, -32600, 413, 8, 413, 8, "", "Limit exceeded")                                     \
    X(RATE_LIMITED, -32000, 429, 8, 429, 8, "", "Rate limited")                                    \
    X(UNAVAILABLE, -32000, 503, 14, 503, 14, "", "Service unavailable")                            \
    X(UPSTREAM_TIMEOUT, -32000, 504, 4, 504, 4, "", "Upstream timeout")

/* The public, opaque dgm_err. Zero-initialise it; it is written only when a function does not return DGM_OK. */
struct dgm_err {
    dgm_code code;
    char at[256];  /* JSON pointer into the input; "" is all of it */
    char msg[400]; /* for people; programs must not parse it */
    size_t line;   /* in the input, 1-based; 0: unknown */
    size_t column; /* in bytes, 1-based */
    int detail;    /* of the code, for callers in this process; 0: none. store/share.h has some */
};

typedef struct dgm_at {
    const struct dgm_at *up;
    dgm_str key; /* p == NULL: an array index */
    size_t i;
} dgm_at;

#define DGM_AT(up_, key_) (&(const dgm_at){(up_), (key_), 0})
#define DGM_AT_LIT(up_, lit) (&(const dgm_at){(up_), DGM_STR(lit), 0})
#define DGM_AT_I(up_, i_) (&(const dgm_at){(up_), {NULL, 0}, (i_)})

/* Fills err (which may be NULL) and returns code, so that `return dgm_fail(...)` reads well. */
dgm_code dgm_fail(dgm_err *err, dgm_code code, const dgm_at *at, const char *fmt, ...)
    DGM_PRINTF(4, 5) __attribute__((cold));

/*
 * Copies a public struct of options, whose first member is its size, into our version of it. Members that an older
 * caller does not have are zero; members of a newer caller that we do not have must be zero.
 */
dgm_code dgm_options_copy(void *own, size_t own_size, const void *options, dgm_err *err);

/* Writes the pointer, cut at a whole step (with a trailing "/...") when it does not fit. */
void dgm_at_text(const dgm_at *at, char *out, size_t size);
/* err's pointer is relative to at: makes it absolute. What does not fit is cut off. */
void dgm_err_below(const dgm_at *at, dgm_err *err);

/* The rows of DGM_CODES. */
int dgm_code_rpc(dgm_code code);
int dgm_code_http(dgm_code code, bool v1_0_0);
int dgm_code_grpc(dgm_code code, bool v1_0_0);
const char *dgm_code_reason(dgm_code code);
const char *dgm_code_message(dgm_code code);
const char *dgm_grpc_status_name(int grpc); /* "NOT_FOUND" */
