#include "base/spare.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/sanitizer.h"

#include <stdlib.h>

/* The sizes of a class are rounded up to its bytes, which are those that malloc has in a chunk of 16 k bytes. */
#define STEP 16
#define CLASS_OF(n) (((n) + STEP / 2 - 1) / STEP)
#define CLASS_BYTES(k) ((k)*STEP + STEP / 2)
#define N_CLASSES (CLASS_OF(DGM_SPARE_BLOCK_BYTES) + 1)

/* So many allocations that find no block free the largest one. */
#define MISSES 2

struct spare_block {
    struct spare_block *next;
};

struct spare_list {
    struct spare_block *first;
    uint32_t n;
    uint32_t least; /* the lowest n since the last sweep: so many blocks were not needed */
};

struct spare_cache {
    size_t bytes, max_bytes;
    size_t misses;  /* allocations of a class that has no block */
    size_t largest; /* no larger class has a block */
    struct spare_list lists[N_CLASSES];
};

static _Thread_local struct spare_cache *cache;

static void *spare_take(struct spare_list *list, size_t bytes)
{
    struct spare_block *b = list->first;
    DGM_UNPOISON(b, bytes);
    list->first = b->next;
    if (--list->n < list->least)
        list->least = list->n;
    cache->bytes -= bytes;
    return b;
}

/* Much that is not here is allocated: tasks and streams that stay. They should get the memory that this cache retains. */
static void spare_miss(void)
{
    if (++cache->misses % MISSES || !cache->bytes)
        return;
    while (!cache->lists[cache->largest].first)
        cache->largest--;
    free(spare_take(&cache->lists[cache->largest], CLASS_BYTES(cache->largest)));
}

void *dgm_spare_alloc(size_t n)
{
    size_t k = CLASS_OF(n);
    if (n > DGM_SPARE_BLOCK_BYTES)
        return dgm_xmalloc(n);
    if (cache && cache->lists[k].first)
        return spare_take(&cache->lists[k], CLASS_BYTES(k));
    if (cache)
        spare_miss();
    return dgm_xmalloc(CLASS_BYTES(k));
}

void *dgm_spare_alloc_zeroed(size_t n)
{
    return memset(dgm_spare_alloc(n), 0, n);
}

void dgm_spare_free(void *p, size_t n)
{
    size_t k = CLASS_OF(n);
    if (!p || !cache || n > DGM_SPARE_BLOCK_BYTES ||
        cache->bytes + CLASS_BYTES(k) > cache->max_bytes) {
        free(p);
        return;
    }
    struct spare_list *list = &cache->lists[k];
    *(struct spare_block *)p = (struct spare_block){list->first};
    list->first = p;
    list->n++;
    cache->bytes += CLASS_BYTES(k);
    if (k > cache->largest)
        cache->largest = k;
    DGM_POISON(p, CLASS_BYTES(k));
}

void dgm_spare_open(size_t max_bytes)
{
    if (!cache)
        cache = dgm_xcalloc(1, sizeof *cache);
    cache->max_bytes = max_bytes;
}

void dgm_spare_close(void)
{
    if (!cache)
        return;
    dgm_spare_sweep();
    dgm_spare_sweep();
    free(cache);
    cache = NULL;
}

void dgm_spare_sweep(void)
{
    if (!cache || !cache->bytes)
        return;
    for (size_t k = 0; k <= cache->largest; k++) {
        struct spare_list *list = &cache->lists[k];
        for (uint32_t left = list->least; left; left--)
            free(spare_take(list, CLASS_BYTES(k)));
        list->least = list->n;
    }
}

size_t dgm_spare_bytes(void)
{
    return cache ? cache->bytes : 0;
}
