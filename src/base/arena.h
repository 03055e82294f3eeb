/*
 * base/arena.h - memory that goes in one stroke.
 *
 * One arena per request or per event holds all that was decoded from it and all that is built to
 * answer it. Allocation never fails: when memory is gone the program ends (dgm_oom_set_hook).
 * An arena belongs to one thread at a time.
 */
#pragma once

#include "base/str.h"

typedef struct dgm_arena dgm_arena;

dgm_arena *dgm_arena_new(void);
/* For little that stays long: its first block has this many bytes. */
dgm_arena *dgm_arena_new_small(size_t first_block);
void dgm_arena_free(dgm_arena *a);  /* NULL is fine */
void dgm_arena_reset(dgm_arena *a); /* as new, but keeps a block up to DGM_ARENA_KEEP_BYTES */

void *dgm_arena_alloc(dgm_arena *a, size_t n);     /* zeroed, aligned, never NULL */
void *dgm_arena_alloc_raw(dgm_arena *a, size_t n); /* not zeroed */
/* Grows in place when p was the last thing allocated, copies otherwise. Not zeroed. */
void *dgm_arena_realloc(dgm_arena *a, void *p, size_t old_n, size_t n);
dgm_str dgm_arena_dup(dgm_arena *a, dgm_str s); /* NUL-terminated copy */
dgm_str dgm_arena_printf(dgm_arena *a, const char *fmt, ...) DGM_PRINTF(2, 3); /* likewise */
dgm_str dgm_arena_join(dgm_arena *a, dgm_str x, dgm_str y);                    /* likewise */
size_t dgm_arena_used(const dgm_arena *a); /* bytes allocated from it */
/* n bytes of a large allocation were never written, so they take no memory: dgm_arena_used leaves them out. The
 * allocation must not grow any more. */
void dgm_arena_untouched(dgm_arena *a, size_t n);
void dgm_arena_defer(dgm_arena *a, void (*fn)(void *), void *arg); /* runs at reset, free */

#define dgm_new(a, T) ((T *)dgm_arena_alloc((a), sizeof(T)))
#define dgm_new_n(a, T, n) ((T *)dgm_arena_alloc((a), (n) * sizeof(T)))

/* The heap, with the same promise: never NULL. */
void *dgm_xmalloc(size_t n);
void *dgm_xcalloc(size_t count, size_t n);
void *dgm_xrealloc(void *p, size_t n);

/* Free-at-end-of-scope for handles: dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new(); */
#define DGM_DEFINE_AUTO(T, fn)                                                                     \
    static inline void fn##p(T **p)                                                                \
    {                                                                                              \
        if (*p)                                                                                    \
            fn(*p);                                                                                \
    }
#define dgm_auto(fn) __attribute__((cleanup(fn##p)))
#define dgm_take(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

DGM_DEFINE_AUTO(dgm_arena, dgm_arena_free)
