/* base/str.h - small functions on borrowed text. */
#pragma once

#include <dragoman/base.h>
#include <string.h>

static inline bool dgm_str_eq(dgm_str a, dgm_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Is s exactly this literal? */
#define dgm_str_is(s, lit) ((s).n == sizeof(lit) - 1 && memcmp((s).p, "" lit, sizeof(lit) - 1) == 0)

/* By bytes, as SQLite compares text: negative if a comes first. */
static inline int dgm_str_order(dgm_str a, dgm_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static inline bool dgm_str_starts(dgm_str s, dgm_str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline dgm_str dgm_str_from(const char *cstr)
{
    return cstr ? (dgm_str){cstr, strlen(cstr)} : (dgm_str){0};
}

/* ASCII only: the names this is used for (URI schemes, auth schemes, transports) are ASCII. */
bool dgm_str_eq_nocase(dgm_str a, dgm_str b);

/* 64-bit hash for tables and minted ids: well mixed, not for secrets. */
uint64_t dgm_hash(uint64_t seed, const void *p, size_t n);

/* Is it well-formed UTF-8? Returns the offset of the first bad byte, or s.n when all is well. */
size_t dgm_utf8_check(dgm_str s);
