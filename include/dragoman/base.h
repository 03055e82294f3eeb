/*
 * dragoman/base.h - the types of all other headers: strings, errors, memory.
 *
 * A dgm_str borrows: it is valid as long as the object that it came from.
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
 * Codes of errors; their numbers never change. The functions of this library return PARSE, BAD_REQUEST, BAD_PARAMS,
 * INTERNAL and TOO_LARGE. The others are errors of A2A and of servers: dgm_peer_error has them when a peer sent one.
 */
typedef enum dgm_code {
    DGM_OK = 0,
    DGM_PARSE = 1,       /* the text is not valid JSON, or a text is not valid UTF-8 */
    DGM_BAD_REQUEST = 2, /* invalid options, or an unknown format */
    DGM_NO_SUCH_METHOD = 3,
    DGM_BAD_PARAMS = 4, /* a value in the input is invalid; an argument is invalid */
    DGM_INTERNAL = 5,   /* a fault of the library */
    DGM_TASK_NOT_FOUND = 6,
    DGM_TASK_NOT_CANCELABLE = 7,
    DGM_PUSH_NOT_SUPPORTED = 8,
    DGM_UNSUPPORTED_OPERATION = 9,
    DGM_CONTENT_TYPE_NOT_SUPPORTED = 10,
    DGM_INVALID_AGENT_RESPONSE = 11,
    DGM_EXTENDED_CARD_NOT_CONFIGURED = 12,
    DGM_EXTENSION_REQUIRED = 13,
    DGM_VERSION_NOT_SUPPORTED = 14,
    DGM_UNAUTHENTICATED = 15,
    DGM_FORBIDDEN = 16,
    DGM_TOO_LARGE = 17, /* a limit of the library was exceeded */
    DGM_RATE_LIMITED = 18,
    DGM_UNAVAILABLE = 19,
    DGM_UPSTREAM_TIMEOUT = 20,
} dgm_code;

/* "OK", "BAD_PARAMS", ...: the symbol without its prefix. */
DGM_API const char *dgm_code_name(dgm_code code);

/*
 * An error: a code for programs, a JSON pointer for the sender of the document, a sentence for people.
 *
 *     dgm_err *err = dgm_err_new();
 *     if (dgm_convert(&options, text, n, &out, &out_n, err))
 *         fprintf(stderr, "%s (at %s)\n", dgm_err_message(err), dgm_err_pointer(err));
 *     dgm_err_free(err);
 *
 * Functions write it only when they return a code other than DGM_OK; one object may be used for many calls, by one
 * thread at a time. Every function accepts NULL where it expects a dgm_err. The strings are valid until the next
 * call that gets the same object.
 */
typedef struct dgm_err dgm_err;

DGM_API dgm_err *dgm_err_new(void);
DGM_API void dgm_err_free(dgm_err *err);           /* NULL is allowed */
DGM_API dgm_code dgm_err_code(const dgm_err *err); /* DGM_OK: no error so far */
DGM_API const char *
dgm_err_message(const dgm_err *err); /* a sentence; programs must not parse it */
DGM_API const char *
dgm_err_pointer(const dgm_err *err);             /* JSON pointer into the input; "" is all of it */
DGM_API size_t dgm_err_line(const dgm_err *err); /* in the input, 1-based; 0: unknown */
DGM_API size_t dgm_err_column(const dgm_err *err); /* in bytes, 1-based; 0: unknown */

/* ---- memory ------------------------------------------------------------------------------------ */

/* Frees text that a function of this library returned. NULL is allowed. */
DGM_API void dgm_free(void *p);

/*
 * Sets the function that is called when memory cannot be allocated, with the size that was requested; NULL removes
 * it. It is one per process, may be called by any thread, and must not call this library. If it returns, or if
 * no hook is set, the process is aborted: a function of this library never returns for lack of memory. To survive,
 * it must leave by longjmp(); the handles of the interrupted call then leak and must not be used any more.
 * Sizes that the input determines are limited before memory is allocated: those give DGM_TOO_LARGE.
 */
DGM_API void dgm_oom_set_hook(void (*hook)(size_t n));

/* The library's version, "0.2.0". */
DGM_API const char *dgm_version(void);

#ifdef __cplusplus
}
#endif
