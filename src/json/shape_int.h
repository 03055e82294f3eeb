/* json/shape_int.h - what the two readers of shapes share. */
#pragma once

#include "json/shape.h"

#include <stdatomic.h>

struct any_list { /* the layout all lists of the model share */
    void *at;
    size_t n;
};

static inline uint64_t load8(const char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint32_t load4(const char *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

/* memcmp for names, without a call: short, and mostly equal when their lengths are. Loads overlap at
 * the end. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
    if (n >= 8) {
        for (size_t i = 8; i < n - 8; i += 8) {
            if (load8(a + i) != load8(b + i))
                return false;
        }
        return load8(a) == load8(b) && load8(a + n - 8) == load8(b + n - 8);
    }
    if (n >= 4)
        return load4(a) == load4(b) && load4(a + n - 4) == load4(b + n - 4);
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
