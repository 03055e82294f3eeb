/*
 * base/ids.c - UUIDv7: 48 bits of Unix milliseconds, 12 bits that count within one, 62 random ones; and ids that depend
 * only on their seed (mint.h).
 *
 * The clock and the counter are one number, updated with a compare-and-swap: two threads never get the same, and a clock
 * that was set back only makes the counter go on.
 */
#include "base/ids.h"
#include "base/mint.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#ifdef CLOCK_REALTIME_COARSE /* a few milliseconds late, and several times cheaper */
#define UUID_CLOCK CLOCK_REALTIME_COARSE
#else
#define UUID_CLOCK CLOCK_REALTIME
#endif

/* Eight hexadecimal digits at once: each nibble gets a byte of its own, and the letters what they are
 * further from '9' than the next digit would be. */
static void put_hex(char out[8], uint32_t bits)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t v = bits;
    v = (v | v << 16) & 0x0000FFFF0000FFFFu;
    v = (v | v << 8) & 0x00FF00FF00FF00FFu;
    v = (v | v << 4) & 0x0F0F0F0F0F0F0F0Fu;
    v += '0' * ones + ((v + 6 * ones) >> 4 & ones) * ('a' - '9' - 1);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v); /* the first digit is the highest nibble */
#endif
    memcpy(out, &v, 8);
}

void dgm_uuid7(char out[DGM_UUID_CHARS + 1])
{
    static _Atomic uint64_t last; /* milliseconds << 12 | count */
    struct timespec ts;
    clock_gettime(UUID_CLOCK, &ts);
    uint64_t now = ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000) << 12;
    uint64_t seen = atomic_load_explicit(&last, memory_order_relaxed), tick;
    do {
        tick = now > seen ? now : seen + 1;
    } while (!atomic_compare_exchange_weak_explicit(&last, &seen, tick, memory_order_relaxed,
                                                    memory_order_relaxed));

    /* A system call per id would cost more than the rest: the random bits of 64 ids at a time. */
    static _Thread_local uint64_t pool[64];
    static _Thread_local size_t left;
    if (!left) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            abort(); /* the kernel never fails for 256 bytes or less, and this is little more */
        left = sizeof pool / sizeof *pool;
    }

    uint64_t hi = (tick >> 12) << 16 | 0x7000 | (tick & 0xFFF);
    uint64_t lo = (pool[--left] & 0x3FFFFFFFFFFFFFFFu) | 0x8000000000000000u;
    char digits[32];
    put_hex(digits, (uint32_t)(hi >> 32));
    put_hex(digits + 8, (uint32_t)hi);
    put_hex(digits + 16, (uint32_t)(lo >> 32));
    put_hex(digits + 24, (uint32_t)lo);
    memcpy(out, digits, 8);
    memcpy(out + 9, digits + 8, 4);
    memcpy(out + 14, digits + 12, 4);
    memcpy(out + 19, digits + 16, 4);
    memcpy(out + 24, digits + 20, 12);
    out[8] = out[13] = out[18] = out[23] = '-';
    out[DGM_UUID_CHARS] = 0;
}

dgm_str dgm_uuid7_in(dgm_arena *a)
{
    char *text = dgm_arena_alloc_raw(a, DGM_UUID_CHARS + 1);
    dgm_uuid7(text);
    return (dgm_str){text, DGM_UUID_CHARS};
}

void dgm_mint_seed(dgm_mint *m, dgm_str bytes)
{
    m->seed[0] = dgm_hash(m->seed[0] + 1, bytes.p, bytes.n);
    m->seed[1] = dgm_hash(m->seed[1] ^ 0x6a09e667f3bcc908u, bytes.p, bytes.n);
}

dgm_mint dgm_mint_for(const dgm_mint *m, uint64_t n, dgm_str text)
{
    return (dgm_mint){.seed = {m->seed[0] + n, m->seed[1]}, .pending = text};
}

dgm_str dgm_mint_id(dgm_mint *m, dgm_arena *a)
{
    if (m->pending.p) {
        dgm_mint_seed(m, m->pending);
        m->pending = (dgm_str){0};
    }
    static const char hex[] = "0123456789abcdef";
    unsigned char raw[16];
    uint64_t in[3] = {m->seed[0], m->seed[1], m->count++};
    uint64_t hi = dgm_hash(1, in, sizeof in), lo = dgm_hash(2, in, sizeof in);
    for (int i = 0; i < 8; i++) {
        raw[i] = (unsigned char)(hi >> (56 - 8 * i));
        raw[8 + i] = (unsigned char)(lo >> (56 - 8 * i));
    }
    raw[6] = (unsigned char)((raw[6] & 0x0F) | 0x80); /* version 8 */
    raw[8] = (unsigned char)((raw[8] & 0x3F) | 0x80); /* the variant of RFC 9562 */
    char *text = dgm_arena_alloc_raw(a, 37), *p = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[raw[i] >> 4];
        *p++ = hex[raw[i] & 15];
    }
    *p = 0;
    return (dgm_str){text, 36};
}

int64_t dgm_random_id(void)
{
    uint64_t id = 0;
    while (!id) {
        if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
            abort(); /* the kernel never fails for so few bytes */
        id >>= 1;
    }
    return (int64_t)id;
}
