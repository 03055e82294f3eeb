/*
 * base/err.h - saying what went wrong and where.
 *
 * Where we are in a document is a chain of stack frames; it becomes a JSON pointer only when
 * something fails, so that a document without faults pays next to nothing for it.
 */
#pragma once

#include "base/str.h"

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
