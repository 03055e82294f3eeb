/*
 * base/buf.h - growing bytes with a limit.
 *
 * Going past the limit sets `over` and drops what does not fit; whoever finishes the job looks at
 * the flag once, instead of every writer after every byte.
 */
#pragma once

#include "base/str.h"

typedef struct dgm_buf {
    char *p;
    size_t n, cap, max;
    bool over;
} dgm_buf;

void dgm_buf_init(dgm_buf *b, size_t max);
void dgm_buf_done(dgm_buf *b);
void dgm_buf_clear(dgm_buf *b);               /* n = 0, memory stays */
void dgm_buf_shrink(dgm_buf *b, size_t keep); /* frees the memory if it is more than keep */
void dgm_buf_drop_front(dgm_buf *b, size_t n);
bool dgm_buf_grow(dgm_buf *b, size_t more);     /* slow path of dgm_buf_room */
char *dgm_buf_steal(dgm_buf *b, size_t *ret_n); /* NUL-terminated, malloc'ed; b is as after init */

static inline dgm_str dgm_buf_str(const dgm_buf *b)
{
    return (dgm_str){b->p ? b->p : "", b->n};
}

/* Room for `more` bytes behind b->p + b->n? */
static inline bool dgm_buf_room(dgm_buf *b, size_t more)
{
    return __builtin_expect(b->cap - b->n >= more, 1) || dgm_buf_grow(b, more);
}

static inline void dgm_buf_add(dgm_buf *b, const void *p, size_t n)
{
    if (n && dgm_buf_room(b, n)) {
        memcpy(b->p + b->n, p, n);
        b->n += n;
    }
}

static inline void dgm_buf_add_str(dgm_buf *b, dgm_str s)
{
    dgm_buf_add(b, s.p, s.n);
}

static inline void dgm_buf_add_char(dgm_buf *b, char c)
{
    if (dgm_buf_room(b, 1))
        b->p[b->n++] = c;
}

#define dgm_buf_add_lit(b, lit) dgm_buf_add((b), "" lit, sizeof(lit) - 1)

void dgm_buf_printf(dgm_buf *b, const char *fmt, ...) DGM_PRINTF(2, 3);
