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

#define DGM_EACH_BYTE(x) (~(uint64_t)0 / 255 * (x))

/* Does any of the eight bytes need an escape? */
static inline bool dgm_needs_escape(uint64_t w)
{
    uint64_t quote = w ^ DGM_EACH_BYTE('"'), slash = w ^ DGM_EACH_BYTE('\\');
    return ((((w - DGM_EACH_BYTE(0x20)) & ~w) | ((quote - DGM_EACH_BYTE(1)) & ~quote) |
             ((slash - DGM_EACH_BYTE(1)) & ~slash)) &
            DGM_EACH_BYTE(0x80)) != 0;
}

static inline size_t dgm_copy_bytes(char *out, const char *p, size_t i, size_t n)
{
    for (; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c < 0x20 || c == '"' || c == '\\')
            break;
        out[i] = p[i];
    }
    return i;
}

#ifdef __SSE2__
static inline unsigned dgm_escapes_in(__m128i v)
{
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, slash)));
}
#endif

static inline uint64_t dgm_load8(const char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint64_t dgm_load4(const char *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

/* Less than 16 bytes: two loads that overlap see all of them, if there are 4. */
static inline size_t dgm_copy_short(char *out, const char *p, size_t n)
{
    if (n >= 8) {
        uint64_t first = dgm_load8(p), last = dgm_load8(p + n - 8);
        if (!dgm_needs_escape(first) && !dgm_needs_escape(last)) {
            memcpy(out, &first, 8);
            memcpy(out + n - 8, &last, 8);
            return n;
        }
    } else if (n >= 4) {
        uint64_t first = dgm_load4(p), last = dgm_load4(p + n - 4);
        if (!dgm_needs_escape(first | last << 32)) {
            memcpy(out, &first, 4);
            memcpy(out + n - 4, &last, 4);
            return n;
        }
    }
    return dgm_copy_bytes(out, p, 0, n);
}

/* Copies up to the first byte that needs an escape; returns how many bytes that is. */
static inline size_t dgm_copy_clean(char *out, const char *p, size_t n)
{
    size_t i = 0;
    if (n < 16)
        return dgm_copy_short(out, p, n);
#ifdef __SSE2__
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        unsigned escapes = dgm_escapes_in(v);
        _mm_storeu_si128((__m128i *)(void *)(out + i), v);
        if (escapes)
            return i + (unsigned)__builtin_ctz(escapes);
    }
    if (i < n) { /* the rest with some bytes that were seen already */
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + n - 16));
        unsigned escapes = dgm_escapes_in(v) >> (16 - (n - i));
        _mm_storeu_si128((__m128i *)(void *)(out + n - 16), v);
        return escapes ? i + (unsigned)__builtin_ctz(escapes) : n;
    }
    return n;
#else
    for (; n - i >= 8; i += 8) {
        uint64_t w = dgm_load8(p + i);
        if (dgm_needs_escape(w))
            break;
        memcpy(out + i, &w, 8);
    }
    return dgm_copy_bytes(out, p, i, n);
#endif
}
