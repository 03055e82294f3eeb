/*
 * net/out.h - bytes on their way to a socket: copied pieces and borrowed ones, in order.
 *
 * A queue that holds nothing has no memory. A chunk (of chunked coding) is opened with room for its size
 * in front and closed when the size is known, so that a turn's writes are one chunk.
 */
#pragma once

#include "base/str.h"
#include "net/loop.h"

#include <sys/uio.h>

typedef struct dgm_out_piece dgm_out_piece;

typedef struct dgm_out {
    dgm_out_piece *first, *last;
    size_t n;                   /* bytes in all */
    dgm_out_piece *chunk;       /* where the open chunk begins; NULL: none is open */
    uint32_t chunk_at, chunk_n; /* offset of its size in that piece; its bytes so far */
} dgm_out;

void dgm_out_clear(dgm_out *o); /* releases what is borrowed */

void dgm_out_add(dgm_out *o, dgm_str bytes);
/* Room for n bytes in one place; then say how many were written. */
char *dgm_out_room(dgm_out *o, size_t n);
void dgm_out_wrote(dgm_out *o, size_t n);
/* Borrows: release(arg) and then on_dropped(owner) when they have been dropped; either may be NULL. */
void dgm_out_share(dgm_out *o, dgm_str bytes, dgm_loop_fn release, void *arg,
                   dgm_loop_fn on_dropped, void *owner);

/* What is added from here on is inside the chunk; fine when one is open. */
void dgm_out_open_chunk(dgm_out *o);
void dgm_out_close_chunk(dgm_out *o); /* fine when none is open */

/* The bytes in front, in at most n parts; returns how many. No chunk may be open. */
size_t dgm_out_front(const dgm_out *o, struct iovec *iov, size_t n);
void dgm_out_drop(dgm_out *o, size_t n);
