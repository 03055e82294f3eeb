/* schema/schema_number.c - decimals as they are written: no rounding, whatever their size. */
#include "schema/schema_int.h"

#include <stdlib.h>

/* Exponents beyond it are this one: no text that we read has as many digits, so no comparison changes. */
#define MAX_EXPONENT ((int64_t)1000000000000000)

static int digit_of(const dgm_schema_number *a, size_t i)
{
    return i < a->n ? a->digits[i + (i >= a->point)] - '0' : 0;
}

static int64_t read_exponent(dgm_str text)
{
    bool is_negative = text.n && text.p[0] == '-';
    int64_t e = 0;
    for (size_t i = text.n && (text.p[0] == '-' || text.p[0] == '+'); i < text.n; i++) {
        if (e < MAX_EXPONENT)
            e = e * 10 + (text.p[i] - '0');
    }
    e = e < MAX_EXPONENT ? e : MAX_EXPONENT;
    return is_negative ? -e : e;
}

dgm_schema_number dgm_schema_number_read(dgm_str text)
{
    dgm_schema_number a = {.is_negative = text.n && text.p[0] == '-'};
    size_t start = a.is_negative, end = start, point, fraction = 0;
    while (end < text.n && text.p[end] != 'e' && text.p[end] != 'E')
        end++;
    if (end < text.n)
        a.exponent = read_exponent((dgm_str){text.p + end + 1, text.n - end - 1});
    const char *dot = memchr(text.p + start, '.', end - start);
    point = dot ? (size_t)(dot - text.p) : end;
    if (dot)
        fraction = end - point - 1;
    a.exponent -= (int64_t)fraction;
    while (end > start && (text.p[end - 1] == '0' || text.p[end - 1] == '.')) {
        a.exponent += text.p[end - 1] == '0';
        end--;
    }
    while (start < end && (text.p[start] == '0' || text.p[start] == '.'))
        start++;
    if (start == end)
        return (dgm_schema_number){.digits = "", .point = SIZE_MAX};
    bool has_point = point > start && point < end;
    a.digits = text.p + start;
    a.n = end - start - has_point;
    a.point = has_point ? point - start : SIZE_MAX;
    return a;
}

static int compare_sizes(const dgm_schema_number *a, const dgm_schema_number *b)
{
    int64_t top_a = (int64_t)a->n + a->exponent, top_b = (int64_t)b->n + b->exponent;
    if (!a->n || !b->n)
        return (a->n > 0) - (b->n > 0);
    if (top_a != top_b)
        return top_a > top_b ? 1 : -1;
    for (size_t i = 0; i < a->n || i < b->n; i++) {
        int d = digit_of(a, i) - digit_of(b, i);
        if (d)
            return d > 0 ? 1 : -1;
    }
    return 0;
}

int dgm_schema_number_compare(const dgm_schema_number *a, const dgm_schema_number *b)
{
    if (a->is_negative != b->is_negative)
        return a->is_negative ? -1 : 1;
    return a->is_negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

/* ---- multiples --------------------------------------------------------------------------------- */

/*
 * a is a multiple of b if A x 10^k is a multiple of B, where A and B are the digits as integers and k the difference of the
 * exponents. If k is negative, A would need a zero at its end, and it has none. 10^k removes only factors 2 and 5 from B, of which
 * there are less than 4 per digit: more zeros than that change nothing.
 */
static size_t zeros_to_add(const dgm_schema_number *a, const dgm_schema_number *by)
{
    int64_t k = a->exponent - by->exponent, most = 4 * (int64_t)by->n + 4;
    return (size_t)(k < most ? k : most);
}

#define SMALL_DIGITS 18 /* B x 10 fits into 64 bits */

static bool small_remainder_is_zero(const dgm_schema_number *a, const dgm_schema_number *by)
{
    uint64_t b = 0, r = 0;
    size_t n = a->n + zeros_to_add(a, by);
    for (size_t i = 0; i < by->n; i++)
        b = b * 10 + (uint64_t)digit_of(by, i);
    for (size_t i = 0; i < n; i++)
        r = (r * 10 + (uint64_t)digit_of(a, i)) % b;
    return r == 0;
}

/* r -= B if r is not below B. r has one digit more than B, the highest first. */
static bool subtract_once(char *r, const dgm_schema_number *by)
{
    size_t n = by->n + 1, i;
    for (i = 0; i < n; i++) {
        int d = r[i] - (i ? digit_of(by, i - 1) : 0);
        if (d < 0)
            return false;
        if (d > 0)
            break;
    }
    int borrow = 0;
    for (i = n; i-- > 0;) {
        int d = r[i] - (i ? digit_of(by, i - 1) : 0) - borrow;
        borrow = d < 0;
        r[i] = (char)(d + 10 * borrow);
    }
    return true;
}

static bool large_remainder_is_zero(const dgm_schema_number *a, const dgm_schema_number *by)
{
    char *r = dgm_xcalloc(by->n + 1, 1);
    size_t n = a->n + zeros_to_add(a, by), i;
    for (i = 0; i < n; i++) {
        memmove(r, r + 1, by->n);
        r[by->n] = (char)digit_of(a, i);
        while (subtract_once(r, by))
            ;
    }
    for (i = 0; i <= by->n && !r[i]; i++)
        ;
    bool is_zero = i > by->n;
    free(r);
    return is_zero;
}

bool dgm_schema_number_is_multiple(const dgm_schema_number *a, const dgm_schema_number *by)
{
    if (!a->n)
        return true;
    if (a->exponent < by->exponent)
        return false;
    return by->n <= SMALL_DIGITS ? small_remainder_is_zero(a, by) : large_remainder_is_zero(a, by);
}

size_t dgm_schema_number_multiple_cost(const dgm_schema_number *a, const dgm_schema_number *by)
{
    if (!a->n || a->exponent < by->exponent)
        return 1;
    size_t n = a->n + zeros_to_add(a, by);
    return by->n <= SMALL_DIGITS ? n / 8 + 1 : n * by->n;
}

/* ---- other ------------------------------------------------------------------------------------- */

uint64_t dgm_schema_number_hash(const dgm_schema_number *a, uint64_t seed)
{
    uint64_t h = dgm_hash(seed, &a->exponent, sizeof a->exponent) + a->is_negative;
    for (size_t i = 0; i < a->n; i++)
        h = (h ^ (uint64_t)digit_of(a, i)) * 0x9E3779B97F4A7C15u + (h >> 29);
    return h;
}

uint64_t dgm_schema_number_count(const dgm_schema_number *a)
{
    uint64_t n = 0;
    if (a->exponent > 20)
        return a->n ? UINT64_MAX : 0;
    for (size_t i = 0; i < a->n + (size_t)a->exponent; i++) {
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)digit_of(a, i), &n))
            return UINT64_MAX;
    }
    return n;
}
