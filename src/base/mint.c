/* base/mint.c - deterministic ids. */
#include "base/mint.h"

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
