/*
 * base/ids.c - UUIDv7: 48 bits of Unix milliseconds, 12 bits that count within one, 62 random ones.
 *
 * The clock and the counter are one number, taken with a compare-and-swap: two threads never get the
 * same, and a clock that was set back only makes the counter go on.
 */
#include "base/ids.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static uint64_t next_tick(void)
{
    static _Atomic uint64_t last; /* milliseconds << 12 | count */
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    uint64_t now = ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000) << 12;
    uint64_t seen = atomic_load_explicit(&last, memory_order_relaxed), mine;
    do {
        mine = now > seen ? now : seen + 1;
    } while (!atomic_compare_exchange_weak_explicit(&last, &seen, mine, memory_order_relaxed,
                                                    memory_order_relaxed));
    return mine;
}

static uint64_t random_bits(void)
{
    /* A system call per id would cost more than the rest: a page of them at a time. */
    static _Thread_local uint64_t pool[64];
    static _Thread_local size_t left;
    if (!left) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            abort(); /* the kernel never fails for 256 bytes or less, and is asked for little more */
        left = sizeof pool / sizeof *pool;
    }
    return pool[--left];
}

/* The hexadecimal digits of the lowest 8 * n bits. */
static char *put_hex(char *p, uint64_t bits, int n)
{
    static const char hex[] = "0123456789abcdef";
    for (int shift = 8 * n - 4; shift >= 0; shift -= 4)
        *p++ = hex[bits >> shift & 15];
    return p;
}

void dgm_uuid7(char out[DGM_UUID_CHARS + 1])
{
    uint64_t tick = next_tick();
    uint64_t hi = (tick >> 12) << 16 | 0x7000 | (tick & 0xFFF);
    uint64_t lo = (random_bits() & 0x3FFFFFFFFFFFFFFFu) | 0x8000000000000000u;
    char *p = put_hex(out, hi >> 32, 4);
    *p++ = '-';
    p = put_hex(p, hi >> 16, 2);
    *p++ = '-';
    p = put_hex(p, hi, 2);
    *p++ = '-';
    p = put_hex(p, lo >> 48, 2);
    *p++ = '-';
    *put_hex(p, lo, 6) = 0;
}

dgm_str dgm_uuid7_in(dgm_arena *a)
{
    char *text = dgm_arena_alloc_raw(a, DGM_UUID_CHARS + 1);
    dgm_uuid7(text);
    return (dgm_str){text, DGM_UUID_CHARS};
}
