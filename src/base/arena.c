/*
 * base/arena.c - a chain of blocks, the newest first; allocation moves a pointer. Things are taken from a
 * block's front, texts, which need no alignment, from its back. The first block lies behind the arena
 * itself: most have no other.
 *
 * Under AddressSanitizer the unused rest of every block is poisoned, so that a read past an
 * allocation or after a reset is seen although the block itself stays mapped.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/sanitizer.h"
#include "base/spare.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGN 16
#define REDZONE (DGM_HAVE_ASAN ? 16 : 0)
#define CLEARED_BYTES ((size_t)1 << 10)
/* All together 1 KiB: what malloc keeps at hand for the next one. */
#define FIRST_BLOCK (1024 - sizeof(dgm_arena))

struct block {
    struct block *older;
    size_t size; /* of data */
    _Alignas(ALIGN) char data[];
};

struct deferred {
    struct deferred *older;
    void (*fn)(void *);
    void *arg;
};

struct dgm_arena {
    struct block *newest;
    char *free, *end; /* what is left of the newest block */
    size_t used;
    size_t next_size; /* of the next block, unless something larger is wanted */
    struct deferred *deferred;
    struct block first; /* its data are behind the arena */
};

static void (*_Atomic oom_hook)(size_t n); /* set and called by any thread */

void dgm_oom_set_hook(void (*hook)(size_t n))
{
    oom_hook = hook;
}

static _Noreturn void die_without_memory(size_t n)
{
    void (*hook)(size_t) = oom_hook;
    if (hook)
        hook(n);
    fprintf(stderr, "dragoman: out of memory (%zu bytes)\n", n);
    abort();
}

void *dgm_xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        die_without_memory(n);
    return p;
}

void *dgm_xcalloc(size_t count, size_t n)
{
    /* glibc's calloc does not look at what the thread has at hand, its malloc does. */
    if (count <= CLEARED_BYTES && n <= CLEARED_BYTES && count * n <= CLEARED_BYTES)
        return memset(dgm_xmalloc(count * n), 0, count * n);
    void *p = calloc(count ? count : 1, n ? n : 1);
    if (!p)
        die_without_memory(count * n);
    return p;
}

void *dgm_xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (!q)
        die_without_memory(n);
    return q;
}

static void run_deferred(dgm_arena *a)
{
    while (a->deferred) {
        struct deferred *d = a->deferred;
        a->deferred = d->older;
        d->fn(d->arg);
    }
}

static void use_block(dgm_arena *a, struct block *b)
{
    a->newest = b;
    a->free = b->data;
    a->end = b->data + b->size;
    DGM_POISON(b->data, b->size);
}

dgm_arena *dgm_arena_new_small(size_t first_block)
{
    size_t size = (first_block + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    dgm_arena *a = dgm_spare_alloc(sizeof *a + size);
    *a = (dgm_arena){.next_size = 2 * size, .first = {.size = size}};
    use_block(a, &a->first);
    return a;
}

dgm_arena *dgm_arena_new(void)
{
    return dgm_arena_new_small(FIRST_BLOCK);
}

static void free_block(struct block *b)
{
    DGM_UNPOISON(b->data, b->size);
    free(b);
}

/* Frees all blocks but the first and the largest of those that may stay. */
static __attribute__((noinline)) struct block *keep_one(dgm_arena *a)
{
    struct block *first = &a->first, *keep = first, *older;
    for (struct block *b = a->newest; b; b = b->older) {
        if (b->size > keep->size && b->size <= DGM_ARENA_KEEP_BYTES)
            keep = b;
    }
    for (struct block *b = a->newest; b; b = older) {
        older = b->older;
        if (b != first && b != keep) {
            free_block(b);
        }
    }
    first->older = NULL;
    if (keep != first)
        keep->older = first;
    return keep;
}

/* Between two events: many arenas had nothing to do, most of the others have all in one block. */
void dgm_arena_reset(dgm_arena *a)
{
    struct block *keep = a->newest, *first = &a->first;
    if (!a->used)
        return;
    if (a->deferred)
        run_deferred(a);
    a->used = 0;
    if ((keep != first && keep->older != first) || first->older ||
        keep->size > DGM_ARENA_KEEP_BYTES)
        keep = keep_one(a);
    use_block(a, keep);
}

void dgm_arena_free(dgm_arena *a)
{
    struct block *older;
    if (!a)
        return;
    if (a->deferred)
        run_deferred(a);
    for (struct block *b = a->newest; b; b = older) {
        older = b->older;
        if (b != &a->first)
            free_block(b);
    }
    DGM_UNPOISON(a->first.data, a->first.size);
    dgm_spare_free(a, sizeof *a + a->first.size);
}

/* Nothing takes room too: it has an address of its own, also in an arena that has no block yet. */
static size_t room_for(size_t n)
{
    return ((n ? n : 1) + ALIGN - 1 + REDZONE) & ~(size_t)(ALIGN - 1);
}

/* What is larger than the next block would be gets one to itself, behind the newest: that goes on. */
static void *alloc_alone(dgm_arena *a, size_t n, size_t room)
{
    struct block *b = dgm_xmalloc(sizeof *b + room);
    *b = (struct block){.older = a->newest->older, .size = room};
    a->newest->older = b;
    a->used += room;
    DGM_POISON(b->data, room);
    DGM_UNPOISON(b->data, n);
    return b->data;
}

static __attribute__((noinline, cold)) void *alloc_in_new_block(dgm_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        die_without_memory(n);
    if (room_for(n) > a->next_size)
        return alloc_alone(a, n, room_for(n));
    struct block *b = dgm_xmalloc(sizeof *b + a->next_size);
    *b = (struct block){.older = a->newest, .size = a->next_size};
    a->next_size *= 2;
    if (a->next_size > DGM_ARENA_KEEP_BYTES)
        a->next_size = DGM_ARENA_KEEP_BYTES;
    use_block(a, b);
    return dgm_arena_alloc_raw(a, n);
}

void *dgm_arena_alloc_raw(dgm_arena *a, size_t n)
{
    size_t room = room_for(n), left = (size_t)(a->end - a->free);
    if (n > left || room > left) /* room alone would not do: it is small for an n near SIZE_MAX */
        return alloc_in_new_block(a, n);
    void *p = a->free;
    a->free += room;
    a->used += room;
    DGM_UNPOISON(p, n);
    return p;
}

void *dgm_arena_alloc(dgm_arena *a, size_t n)
{
    return memset(dgm_arena_alloc_raw(a, n), 0, n);
}

/* So that a long list does not leave a trail of shorter ones behind (yyjson grows its list of values by
 * halves). */
static void *grow_block(dgm_arena *a, struct block **at, size_t old_room, size_t n, size_t room)
{
    bool is_newest = at == &a->newest;
    DGM_UNPOISON((*at)->data, (*at)->size);
    struct block *b = *at = dgm_xrealloc(*at, sizeof *b + room);
    b->size = room;
    if (is_newest)
        a->free = a->end = b->data + room;
    a->used = a->used - old_room + room;
    DGM_POISON(b->data, room);
    DGM_UNPOISON(b->data, n);
    return b->data;
}

void *dgm_arena_realloc(dgm_arena *a, void *p, size_t old_n, size_t n)
{
    size_t old_room = room_for(old_n), room = room_for(n);
    if (p && (char *)p + old_room == a->free && n <= SIZE_MAX / 2 &&
        room <= (size_t)(a->end - (char *)p)) {
        a->free = (char *)p + room;
        a->used = a->used - old_room + room;
        DGM_POISON(p, old_room > room ? old_room : room);
        DGM_UNPOISON(p, n);
        return p;
    }
    /* Has p a block to itself, the newest one or the one behind it? */
    struct block *newest = a->newest, *alone = newest->older, **own = NULL;
    if (newest != &a->first && newest->data == p && a->free == (char *)p + old_room &&
        a->end == newest->data + newest->size)
        own = &a->newest;
    else if (alone && alone != &a->first && alone->data == p && alone->size == old_room)
        own = &newest->older;
    if (own && n <= SIZE_MAX / 2)
        return grow_block(a, own, old_room, n, room);
    void *q = dgm_arena_alloc_raw(a, n);
    if (p && old_n)
        memcpy(q, p, old_n < n ? old_n : n);
    return q;
}

/* From the back of the block. */
static char *alloc_text(dgm_arena *a, size_t n)
{
    size_t room = REDZONE ? room_for(n) : n;
    if (room > (size_t)(a->end - a->free))
        return alloc_in_new_block(a, n);
    a->end -= room;
    a->used += room;
    DGM_UNPOISON(a->end, n);
    return a->end;
}

dgm_str dgm_arena_dup(dgm_arena *a, dgm_str s)
{
    if (!s.p)
        return s;
    char *p = alloc_text(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return (dgm_str){p, s.n};
}

dgm_str dgm_arena_join(dgm_arena *a, dgm_str x, dgm_str y)
{
    char *p = alloc_text(a, x.n + y.n + 1);
    if (x.n)
        memcpy(p, x.p, x.n);
    if (y.n)
        memcpy(p + x.n, y.p, y.n);
    p[x.n + y.n] = 0;
    return (dgm_str){p, x.n + y.n};
}

dgm_str dgm_arena_printf(dgm_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = alloc_text(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (dgm_str){p, (size_t)n};
}

size_t dgm_arena_used(const dgm_arena *a)
{
    return a->used;
}

void dgm_arena_untouched(dgm_arena *a, size_t n)
{
    a->used -= n < a->used ? n : 0;
}

void dgm_arena_defer(dgm_arena *a, void (*fn)(void *), void *arg)
{
    struct deferred *d = dgm_new(a, struct deferred);
    *d = (struct deferred){.older = a->deferred, .fn = fn, .arg = arg};
    a->deferred = d;
}

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
