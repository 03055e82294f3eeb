/* app/load/load_hist.c - many durations in little memory. */
#include "app/load/load_int.h"

/* Below LOAD_STEPS every value has a place of its own; above, the top 7 bits name one. */
static size_t place_of(uint64_t ns)
{
    if (ns < LOAD_STEPS)
        return (size_t)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns), shift = top - 6;
    size_t i = (size_t)(shift + 1) * LOAD_STEPS + (size_t)((ns >> shift) - LOAD_STEPS);
    size_t last = sizeof((struct hist *)0)->at / sizeof *((struct hist *)0)->at - 1;
    return i < last ? i : last;
}

static uint64_t value_of(size_t i) /* the middle of its place */
{
    if (i < LOAD_STEPS)
        return i;
    unsigned shift = (unsigned)(i / LOAD_STEPS) - 1;
    uint64_t low = (LOAD_STEPS + i % LOAD_STEPS) << shift;
    return low + ((1ull << shift) >> 1);
}

void dgm_load_hist_add(struct hist *h, uint64_t ns)
{
    h->at[place_of(ns)]++;
    h->n++;
    h->sum += (double)ns;
    if (h->n == 1 || ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
}

uint64_t dgm_load_hist_at(const struct hist *h, double fraction)
{
    uint64_t want = (uint64_t)((double)h->n * fraction), seen = 0;
    for (size_t i = 0; i < sizeof h->at / sizeof *h->at; i++) {
        seen += h->at[i];
        if (seen > want) {
            uint64_t v = value_of(i);
            return v < h->min ? h->min : v > h->max ? h->max : v;
        }
    }
    return h->max;
}
