/* json/shape_int.h - what the two readers of shapes share. */
#pragma once

#include "json/shape.h"

#include <stdatomic.h>

struct any_list { /* the layout all lists of the model share */
    void *at;
    size_t n;
};

/* memcmp for names, without a call: short, and mostly equal when their lengths are. Comparisons overlap at the end. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
    if (n >= 8) {
        for (size_t i = 8; i < n - 8; i += 8) {
            if (memcmp(a + i, b + i, 8) != 0)
                return false;
        }
        return memcmp(a, b, 8) == 0 && memcmp(a + n - 8, b + n - 8, 8) == 0;
    }
    if (n >= 4)
        return memcmp(a, b, 4) == 0 && memcmp(a + n - 4, b + n - 4, 4) == 0;
    return !n || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* ---- required members --------------------------------------------------------------------------- */

#define FOUND ((uint64_t)1 << 63)

/* Threads that come here at the same time find the same. */
static inline uint64_t required_rows(const dgm_shape *s)
{
    uint64_t rows =
        s->required ? atomic_load_explicit(&s->required->bits, memory_order_relaxed) : 0;
    if (rows)
        return rows & ~FOUND;
    for (size_t i = 0; i < s->n_fields; i++) {
        if (s->fields[i].flags & DGM_REQUIRED)
            rows |= (uint64_t)1 << i;
    }
    if (s->required)
        atomic_store_explicit(&s->required->bits, rows | FOUND, memory_order_relaxed);
    return rows;
}
