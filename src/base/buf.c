/* base/buf.c - the slow paths of dgm_buf. */
#include "base/buf.h"
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void dgm_buf_init(dgm_buf *b, size_t max)
{
    *b = (dgm_buf){.max = max};
}

void dgm_buf_done(dgm_buf *b)
{
    free(b->p);
    *b = (dgm_buf){.max = b->max};
}

void dgm_buf_clear(dgm_buf *b)
{
    b->n = 0;
    b->over = false;
}

void dgm_buf_shrink(dgm_buf *b, size_t keep)
{
    if (b->cap > keep && b->n <= keep) {
        size_t n = b->n;
        b->p = dgm_xrealloc(b->p, keep);
        b->cap = keep;
        b->n = n;
    }
}

void dgm_buf_drop_front(dgm_buf *b, size_t n)
{
    if (n < b->n)
        memmove(b->p, b->p + n, b->n - n);
    b->n -= n < b->n ? n : b->n;
}

bool dgm_buf_grow(dgm_buf *b, size_t more)
{
    if (b->over || more > b->max || b->n > b->max - more) {
        b->over = true;
        return false;
    }
    size_t want = b->n + more, cap = b->cap ? b->cap * 2 : 256;
    if (cap < want)
        cap = want;
    if (cap > b->max)
        cap = b->max;
    b->p = dgm_xrealloc(b->p, cap);
    b->cap = cap;
    return true;
}

char *dgm_buf_steal(dgm_buf *b, size_t *ret_n)
{
    char *p = dgm_xrealloc(b->p, b->n + 1);
    p[b->n] = 0;
    if (ret_n)
        *ret_n = b->n;
    *b = (dgm_buf){.max = b->max};
    return p;
}

void dgm_buf_printf(dgm_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0 && dgm_buf_room(b, (size_t)n)) {
        /* vsnprintf writes a NUL of its own, for which there is no room at the limit. */
        bool brim = b->cap - b->n == (size_t)n;
        char *p = brim ? dgm_xmalloc((size_t)n + 1) : b->p + b->n;
        vsnprintf(p, (size_t)n + 1, fmt, again);
        if (brim) {
            memcpy(b->p + b->n, p, (size_t)n);
            free(p);
        }
        b->n += (size_t)n;
    }
    va_end(again);
}
