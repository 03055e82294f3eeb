/*
 * backend/worker/worker_blobs.h - values of checkpoints in lines, and in parts where a line is too short.
 *
 * VALUE is ["type", "base64"], or ["type", {"blob": NAME}]: a blob that the worker has written with blob/write, or, in
 * answers, one that it reads with blob/read. Bytes are decoded into the place where they stay, and answers share the store's.
 */
#pragma once

#include "base/buf.h"
#include "base/table.h"
#include "model/checkpoint.h"
#include "json/json.h"

/* Bytes of values in one answer, before base64: the line has room for them and for the names. */
#define DGM_WORKER_INLINE_BYTES ((size_t)4 << 20)

struct worker_upload {
    char name[64];
    dgm_bytes *bytes; /* NULL: this one is free. n is what it has */
    size_t cap;
};

typedef struct dgm_worker_blobs {
    struct worker_upload uploads[8]; /* DGM_MAX_WORKER_BLOBS */
    dgm_table downloads;
    uint64_t n_named; /* "s<n>" of the last download */
    size_t held;      /* bytes of downloads */
} dgm_worker_blobs;   /* zeros: empty */

void dgm_worker_blobs_done(dgm_worker_blobs *b);

/* blob/write, blob/read, blob/close. A result is written to `out`. */
dgm_code dgm_worker_blobs_write(dgm_worker_blobs *b, const dgm_json *params, dgm_err *err);
dgm_code dgm_worker_blobs_read(dgm_worker_blobs *b, const dgm_json *params, dgm_buf *out,
                               dgm_err *err);
void dgm_worker_blobs_close(dgm_worker_blobs *b, const dgm_json *params);

/* The bytes come with a reference; a blob is consumed. what: for the error. */
dgm_code dgm_worker_value_read(dgm_worker_blobs *b, const dgm_json *v, const char *what,
                               dgm_checkpoint_value *ret_value, dgm_err *err);
/* *left: of DGM_WORKER_INLINE_BYTES; a value that does not fit is a blob. */
dgm_code dgm_worker_value_put(dgm_worker_blobs *b, dgm_buf *out, const dgm_checkpoint_value *v,
                              size_t *left, dgm_err *err);
