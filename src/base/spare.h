/*
 * base/spare.h - freed blocks that a thread retains for its next allocations of the same size.
 *
 * One turn of an event loop frees the blocks of many requests, and the next turn allocates the same sizes again. glibc retains
 * seven blocks of a size per thread and merges and splits the others, at 150 instructions and more for each. A thread that has
 * opened a cache retains more. A block may be freed on another thread than the one that allocated it. On a thread without
 * a cache this is malloc and free.
 */
#pragma once

#include <stddef.h>

void *dgm_spare_alloc(size_t n);        /* not zeroed, never NULL */
void *dgm_spare_alloc_zeroed(size_t n); /* likewise */
void dgm_spare_free(void *p, size_t n); /* n as in the allocation; NULL is fine */

/* For this thread: retains at most max_bytes, in blocks of at most DGM_SPARE_BLOCK_BYTES each. */
void dgm_spare_open(size_t max_bytes);
void dgm_spare_close(void); /* frees all of them; fine when none is open */
/* Frees the blocks that were not needed since the call before. Two calls without an allocation between them free all. */
void dgm_spare_sweep(void);
size_t dgm_spare_bytes(void); /* that this thread retains */
