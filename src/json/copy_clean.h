/*
 * json/copy_clean.h - text into JSON, as long as it needs no escapes: the inner loop of all writing.
 *
 * 16 bytes at a time where the machine can, 8 elsewhere.
 */
#pragma once

#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* dgm_copy_clean() may write this many bytes more than it copies. */
#define DGM_COPY_SLACK 16

static inline bool dgm_is_clean(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* A bit per byte that needs an escape. The quote is 0x22: with that bit turned it follows the control
 * characters, among which the turn only swaps, so that one comparison finds them all. */
static inline unsigned dgm_escapes_in(__m128i v)
{
    __m128i turned = _mm_xor_si128(v, _mm_set1_epi8(0x02));
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(turned, _mm_set1_epi8(0x20)), turned);
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, slash));
}

/* Copies up to the first byte that needs an escape; returns how many bytes that is. */
static inline __attribute__((always_inline)) size_t dgm_copy_clean(char *out, const char *p,
                                                                   size_t n)
{
    if (n >= 16) {
        for (size_t i = 0;;
             i = n - i - 16 < 16 ? n - 16 : i + 16) { /* the last bytes may overlap */
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
            unsigned escapes = dgm_escapes_in(v);
            _mm_storeu_si128((__m128i *)(void *)(out + i), v);
            if (escapes)
                return i + (unsigned)__builtin_ctz(escapes);
            if (i == n - 16)
                return n;
        }
    }
    /* 4 to 15 bytes: two loads that overlap see all of them. */
    if (n >= 8) {
        __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)p);
        __m128i last = _mm_loadl_epi64((const __m128i *)(const void *)(p + n - 8));
        _mm_storel_epi64((__m128i *)(void *)out, first);
        _mm_storel_epi64((__m128i *)(void *)(out + n - 8), last);
        if (!dgm_escapes_in(_mm_unpacklo_epi64(first, last)))
            return n;
    } else if (n >= 4) {
        int first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        memcpy(out, &first, 4);
        memcpy(out + n - 4, &last, 4);
        if (!(dgm_escapes_in(_mm_set_epi32(0, 0, last, first)) & 0xff))
            return n;
    }
    size_t i = 0;
    for (; i < n && dgm_is_clean((unsigned char)p[i]); i++)
        out[i] = p[i];
    return i;
}

/* How many bytes need no escape. Sets *high if some of them, or soon behind them, may be no ASCII. */
static inline size_t dgm_span_clean(const char *p, size_t n, unsigned *high)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        unsigned escapes = dgm_escapes_in(v);
        *high |= (unsigned)_mm_movemask_epi8(v);
        if (escapes)
            return i + (unsigned)__builtin_ctz(escapes);
    }
    for (; i < n && dgm_is_clean((unsigned char)p[i]); i++)
        *high |= p[i] & 0x80;
    return i;
}

#else /* eight bytes at a time */

#define DGM_EACH_BYTE(x) (~(uint64_t)0 / 255 * (x))

/* Does any of the eight bytes need an escape? */
static inline bool dgm_needs_escape(uint64_t w)
{
    uint64_t quote = w ^ DGM_EACH_BYTE('"'), slash = w ^ DGM_EACH_BYTE('\\');
    return ((((w - DGM_EACH_BYTE(0x20)) & ~w) | ((quote - DGM_EACH_BYTE(1)) & ~quote) |
             ((slash - DGM_EACH_BYTE(1)) & ~slash)) &
            DGM_EACH_BYTE(0x80)) != 0;
}

static inline __attribute__((always_inline)) size_t dgm_copy_clean(char *out, const char *p,
                                                                   size_t n)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        if (dgm_needs_escape(w))
            break;
        memcpy(out + i, &w, 8);
    }
    for (; i < n && dgm_is_clean((unsigned char)p[i]); i++)
        out[i] = p[i];
    return i;
}

static inline size_t dgm_span_clean(const char *p, size_t n, unsigned *high)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        if (dgm_needs_escape(w))
            break;
        *high |= (w & DGM_EACH_BYTE(0x80)) != 0;
    }
    for (; i < n && dgm_is_clean((unsigned char)p[i]); i++)
        *high |= p[i] & 0x80;
    return i;
}
#endif
