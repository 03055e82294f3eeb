/*
 * base/arena.c - a chain of blocks, the newest first; allocation bumps a pointer.
 *
 * Under AddressSanitizer the unused rest of every block is poisoned, so that a read past an
 * allocation or after a reset is seen although the block itself stays mapped.
 */
#include "base/arena.h"
#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#define REDZONE 16
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define REDZONE 0
#endif

#define ALIGN 16
#define CLEARED_BYTES ((size_t)1 << 10)
/* With its header 1 KiB: what malloc keeps at hand for the next one, and what an idle task can afford. */
#define FIRST_BLOCK 1008

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
    char *free, *end; /* in the newest block */
    size_t used;
    size_t next_size; /* of the next block, unless something larger is wanted */
    struct deferred *deferred;
};

static void (*oom_hook)(size_t n);

void dgm_set_oom_hook(void (*hook)(size_t n))
{
    oom_hook = hook;
}

static void *or_die(void *p, size_t n)
{
    if (p)
        return p;
    if (oom_hook)
        oom_hook(n);
    fprintf(stderr, "dragoman: out of memory (%zu bytes)\n", n);
    abort();
}

void *dgm_xmalloc(size_t n)
{
    return or_die(malloc(n ? n : 1), n);
}

void *dgm_xcalloc(size_t count, size_t n)
{
    /* glibc's calloc does not look at what the thread has at hand, its malloc does. */
    if (count <= CLEARED_BYTES && n <= CLEARED_BYTES && count * n <= CLEARED_BYTES)
        return memset(dgm_xmalloc(count * n), 0, count * n);
    return or_die(calloc(count ? count : 1, n ? n : 1), count * n);
}

void *dgm_xrealloc(void *p, size_t n)
{
    return or_die(realloc(p, n ? n : 1), n);
}

dgm_arena *dgm_arena_new(void)
{
    return dgm_arena_new_small(FIRST_BLOCK);
}

dgm_arena *dgm_arena_new_small(size_t first_block)
{
    dgm_arena *a = dgm_xcalloc(1, sizeof *a);
    a->next_size = first_block;
    return a;
}

static void run_deferred(dgm_arena *a)
{
    while (a->deferred) {
        struct deferred *d = a->deferred;
        a->deferred = d->older;
        d->fn(d->arg);
    }
}

static void free_block(struct block *b)
{
    UNPOISON(b->data, b->size);
    free(b);
}

static void use_block(dgm_arena *a, struct block *b)
{
    a->newest = b;
    a->free = b->data;
    a->end = b->data + b->size;
    POISON(b->data, b->size);
}

void dgm_arena_reset(dgm_arena *a)
{
    if (a->deferred)
        run_deferred(a);
    struct block *keep = NULL, *only = a->newest;
    a->used = 0;
    if (only && !only->older && only->size <= DGM_ARENA_KEEP_BYTES) { /* from event to event */
        use_block(a, only);
        return;
    }
    for (struct block *b = a->newest, *older; b; b = older) {
        older = b->older;
        if (b->size <= DGM_ARENA_KEEP_BYTES && (!keep || b->size > keep->size)) {
            if (keep)
                free_block(keep);
            keep = b;
        } else {
            free_block(b);
        }
    }
    a->newest = NULL;
    a->free = a->end = NULL;
    if (keep) {
        keep->older = NULL;
        use_block(a, keep);
    }
}

void dgm_arena_free(dgm_arena *a)
{
    if (!a)
        return;
    run_deferred(a);
    for (struct block *b = a->newest, *older; b; b = older) {
        older = b->older;
        free_block(b);
    }
    free(a);
}

static void add_block(dgm_arena *a, size_t at_least)
{
    size_t size = a->next_size < at_least ? at_least : a->next_size;
    if (a->newest ||
        size == a->next_size) { /* one large thing at first is no sign of many to come */
        a->next_size *= 2;
        if (a->next_size > DGM_ARENA_KEEP_BYTES)
            a->next_size = DGM_ARENA_KEEP_BYTES;
    }
    struct block *b = dgm_xmalloc(sizeof *b + size);
    b->older = a->newest;
    b->size = size;
    use_block(a, b);
}

/* Nothing takes room too: it has an address of its own, also in an arena that has no block yet. */
static size_t room_for(size_t n)
{
    return ((n ? n : 1) + ALIGN - 1 + REDZONE) & ~(size_t)(ALIGN - 1);
}

static __attribute__((noinline, cold)) void *alloc_in_new_block(dgm_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        or_die(NULL, n);
    add_block(a, room_for(n));
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
    UNPOISON(p, n);
    return p;
}

void *dgm_arena_alloc(dgm_arena *a, size_t n)
{
    return memset(dgm_arena_alloc_raw(a, n), 0, n);
}

void *dgm_arena_realloc(dgm_arena *a, void *p, size_t old_n, size_t n)
{
    size_t old_room = room_for(old_n), room = room_for(n);
    if (p && (char *)p + old_room == a->free && n <= SIZE_MAX / 2 &&
        room <= (size_t)(a->end - (char *)p)) {
        a->free = (char *)p + room;
        a->used = a->used - old_room + room;
        POISON(p, old_room > room ? old_room : room);
        UNPOISON(p, n);
        return p;
    }
    if (p && (char *)p + old_room == a->free && a->newest->data == p && n <= SIZE_MAX / 2) {
        /* It has the block to itself: grow that, so that a long list does not leave a trail of
         * shorter ones behind (yyjson grows its list of values by halves). */
        struct block *older = a->newest->older;
        UNPOISON(a->newest->data, a->newest->size);
        struct block *b = dgm_xrealloc(a->newest, sizeof *b + room);
        b->older = older;
        b->size = room;
        a->newest = b;
        a->free = a->end = b->data + room;
        a->used = a->used - old_room + room;
        POISON(b->data, room);
        UNPOISON(b->data, n);
        return b->data;
    }
    void *q = dgm_arena_alloc_raw(a, n);
    if (p && old_n)
        memcpy(q, p, old_n < n ? old_n : n);
    return q;
}

dgm_str dgm_arena_dup(dgm_arena *a, dgm_str s)
{
    if (!s.p)
        return s;
    char *p = dgm_arena_alloc_raw(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return (dgm_str){p, s.n};
}

dgm_str dgm_arena_printf(dgm_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = dgm_arena_alloc_raw(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (dgm_str){p, (size_t)n};
}

size_t dgm_arena_used(const dgm_arena *a)
{
    return a->used;
}

void dgm_arena_defer(dgm_arena *a, void (*fn)(void *), void *arg)
{
    struct deferred *d = dgm_new(a, struct deferred);
    *d = (struct deferred){.older = a->deferred, .fn = fn, .arg = arg};
    a->deferred = d;
}
