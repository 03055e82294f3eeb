/* model/checkpoint.c - see checkpoint.h. */
#include "model/checkpoint.h"

#include "base/arena.h"

#include <stdlib.h>

dgm_bytes *dgm_bytes_new(size_t n)
{
    dgm_bytes *b = dgm_xmalloc(sizeof *b + n + 1);
    atomic_init(&b->refs, 1);
    b->n = n;
    b->p[n] = 0;
    return b;
}

dgm_bytes *dgm_bytes_copy(dgm_str s)
{
    dgm_bytes *b = dgm_bytes_new(s.n);
    if (s.n)
        memcpy(b->p, s.p, s.n);
    return b;
}

dgm_bytes *dgm_bytes_ref(dgm_bytes *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void dgm_bytes_unref(dgm_bytes *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        free(b);
}
