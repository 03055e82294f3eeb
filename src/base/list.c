/* base/list.c - see list.h. */
#include "base/list.h"

void *dgm_list_grow(dgm_arena *a, void *list, size_t n, size_t size)
{
    if ((n & (n - 1)) == 0) /* full at 0, 1, 2, 4, ... */
        list = dgm_arena_realloc(a, list, n * size, (n ? 2 * n : 1) * size);
    memset((char *)list + n * size, 0, size);
    return list;
}

void *dgm_list_reserve(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = *cap ? 2 * *cap : 4;
    return dgm_xrealloc(list, *cap * size);
}
