/*
 * dragoman/base.h - the words every other header uses: strings, errors, visibility.
 *
 * Nothing here allocates. A dgm_str borrows: it lives as long as the object it came from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DGM_API __attribute__((visibility("default")))
#define DGM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Borrowed text: may hold NULs, is not terminated. {NULL, 0} is "absent", {"", 0} is empty. */
typedef struct dgm_str {
    const char *p;
    size_t n;
} dgm_str;

#define DGM_STR(lit) ((dgm_str){"" lit, sizeof(lit) - 1})
#define DGM_P(s) (int)(s).n, (s).p /* printf("%.*s", DGM_P(s)) */

/* A list of borrowed texts. */
typedef struct dgm_strs {
    dgm_str *at;
    size_t n;
} dgm_strs;

/*
 * One row per thing that can go wrong, and what it is called in every binding:
 * symbol, JSON-RPC code, HTTP status and gRPC status by the tables of A2A 1.0.1 and of 1.0.0,
 * ErrorInfo reason ("" for errors that A2A does not name), default message.
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

typedef enum dgm_code {
#define X(sym, rpc, http, grpc, http_100, grpc_100, reason, text) DGM_##sym,
    DGM_CODES(X)
#undef X
} dgm_code;

/*
 * An error: a code for programs, a JSON pointer for whoever sent the document, a sentence for a
 * person. Zero-initialise it; it is written only when a function returns something but DGM_OK.
 */
typedef struct dgm_err {
    dgm_code code;
    char at[256];  /* JSON pointer into what was being read; "" is the whole of it */
    char msg[400]; /* for a person: nothing ever parses it */
    size_t line;   /* 1-based position in the input for syntax errors, 0 when not known */
    size_t column; /* in bytes, 1-based */
} dgm_err;

/* "OK", "BAD_PARAMS", ...: the symbol without its prefix. */
DGM_API const char *dgm_code_name(dgm_code code);

/* The library's version, "0.2.0". */
DGM_API const char *dgm_version(void);

#ifdef __cplusplus
}
#endif
