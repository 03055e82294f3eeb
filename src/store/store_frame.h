/*
 * store/store_frame.h - records as the bytes of a log row, for every driver with a database: rows can be copied from one
 * to the other as they are.
 */
#pragma once

#include "base/buf.h"
#include "model/record.h"

/* A row takes records until it has this size; one record may be larger. */
#define DGM_LOG_ROW_BYTES ((size_t)1 << 20)

void dgm_frame_add(dgm_buf *row, const dgm_record *r); /* to an empty one: begins it */
void dgm_frame_end(dgm_buf *row);                      /* not of an empty one */

typedef struct dgm_frame {
    const unsigned char *at, *end;
    dgm_record_head head; /* of the record that dgm_frame_next gave */
    dgm_str bytes;
} dgm_frame;
/* False: not written by dgm_frame_end, or damaged since. */
bool dgm_frame_open(dgm_str row, uint64_t first_seq, dgm_frame *ret_frame);
bool dgm_frame_next(dgm_frame *f); /* false: no more; at != end then: damaged */
