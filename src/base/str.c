/* base/str.c - text without copies: comparison, hashing, UTF-8. */
#include "base/str.h"

bool dgm_str_eq_nocase(dgm_str a, dgm_str b)
{
    if (a.n != b.n)
        return false;
    if (a.n && memcmp(a.p, b.p, a.n) == 0) /* most names are written as expected */
        return true;
    for (size_t i = 0; i < a.n; i++) {
        unsigned char differ = (unsigned char)(a.p[i] ^ b.p[i]), low = (unsigned char)(a.p[i] | 32);
        if (differ && (differ != 32 || low < 'a' || low > 'z'))
            return false;
    }
    return true;
}

uint64_t dgm_hash(uint64_t seed, const void *p, size_t n)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u, word;
    for (bool is_long = n >= 8, is_last = false;; s += 8, n -= 8, h += 0x9e3779b97f4a7c15u) {
        if (n >= 8) {
            memcpy(&word, s, 8);
        } else {
            /* The rest as a copy into a word of zeros has it. With 8 bytes before its end no copy of unknown length is
             * needed. */
            is_last = true;
            word = 0;
            if (n && is_long && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
                memcpy(&word, s + n - 8, 8);
                word >>= 8 * (8 - n);
            } else if (n) {
                memcpy(&word, s, n);
            }
            word ^= (uint64_t)n << 56;
        }
        h ^= word;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        if (is_last)
            return h;
    }
}

/* Behind the next bytes, by eights, as long as all of them are ASCII. */
static size_t past_ascii(const unsigned char *p, size_t i, size_t n)
{
    uint64_t eight;
    for (; n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, p + i, sizeof eight);
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    return i;
}

size_t dgm_utf8_check(dgm_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t i = 0;
    while (i < s.n) {
        unsigned char c = p[i];
        size_t more;
        if (c < 0x80) {
            i = past_ascii(p, i + 1, s.n);
            continue;
        }
        if (c >= 0xC2 && c <= 0xDF)
            more = 1;
        else if (c >= 0xE0 && c <= 0xEF)
            more = 2;
        else if (c >= 0xF0 && c <= 0xF4)
            more = 3;
        else
            return i;
        if (s.n - i <= more)
            return i;
        unsigned char second = p[i + 1];
        /* Overlong forms, surrogates and code points past U+10FFFF show in the second byte. */
        if ((second & 0xC0) != 0x80 || (c == 0xE0 && second < 0xA0) ||
            (c == 0xED && second > 0x9F) || (c == 0xF0 && second < 0x90) ||
            (c == 0xF4 && second > 0x8F))
            return i;
        for (size_t k = 2; k <= more; k++) {
            if ((p[i + k] & 0xC0) != 0x80)
                return i;
        }
        i += more + 1;
    }
    return s.n;
}
