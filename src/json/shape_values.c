/* json/shape_values.c - single values: text, numbers, names of enums; times and base64, which peers write in several ways. */
#include "json/shape.h"

#include <stdio.h>

dgm_code dgm_read_wrong(dgm_reader *r, yyjson_val *v, const dgm_at *at, const char *expected)
{
    return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected %s, got %s", expected, dgm_json_type(v));
}

dgm_code dgm_read_str(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "a string");
    *ret = dgm_json_str(v);
    return DGM_OK;
}

dgm_code dgm_read_time(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "a time like 2026-01-02T03:04:05.678Z");
    if (!dgm_time_normalise(r->arena, dgm_json_str(v), ret))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at,
                        "\"%.*s\" is not a time: write it like 2026-01-02T03:04:05.678Z",
                        (int)(dgm_json_str(v).n < 60 ? dgm_json_str(v).n : 60), dgm_json_str(v).p);
    return DGM_OK;
}

dgm_code dgm_read_base64(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "base64 text");
    if (!dgm_base64_normalise(r->arena, dgm_json_str(v), ret))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "not base64 (RFC 4648)");
    return DGM_OK;
}

dgm_code dgm_read_bool(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_opt_bool *ret)
{
    if (!yyjson_is_bool(v))
        return dgm_read_wrong(r, v, at, "true or false");
    *ret = yyjson_get_bool(v) ? DGM_TRUE : DGM_FALSE;
    return DGM_OK;
}

dgm_code dgm_read_int(dgm_reader *r, yyjson_val *v, const dgm_at *at, int32_t *ret)
{
    int64_t n;
    if (!dgm_json_int(v, &n)) {
        if (yyjson_is_raw(v) || yyjson_is_str(v))
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected a whole number, got %.*s",
                            (int)(dgm_json_str(v).n < 60 ? dgm_json_str(v).n : 60),
                            dgm_json_str(v).p);
        return dgm_read_wrong(r, v, at, "a whole number");
    }
    if (n < INT32_MIN || n > INT32_MAX)
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "%lld does not fit into 32 bits", (long long)n);
    *ret = (int32_t)n;
    return DGM_OK;
}

static __attribute__((noinline, cold)) dgm_code
no_such_name(dgm_reader *r, const dgm_enum_names *names, dgm_str s, const dgm_at *at)
{
    char all[240];
    size_t n = 0;
    for (int i = 0; i < names->n && n < sizeof all - 40; i++) {
        if (names->names[i])
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", names->names[i]);
    }
    return dgm_fail(r->err, DGM_BAD_PARAMS, at, "unknown %s \"%.*s\"; allowed values: %s",
                    names->what, (int)(s.n < 60 ? s.n : 60), s.p, all);
}

dgm_code dgm_read_enum(dgm_reader *r, const dgm_enum_names *names, yyjson_val *v, const dgm_at *at,
                       int *ret)
{
    if (yyjson_is_str(v)) {
        dgm_str s = dgm_json_str(v);
        for (int i = 0; i < names->n; i++) {
            const char *name = names->names[i];
            if (name && strlen(name) == s.n && memcmp(name, s.p, s.n) == 0) {
                *ret = i;
                return DGM_OK;
            }
        }
        for (const dgm_enum_alias *alias = names->aliases; alias && alias->name; alias++) {
            if (dgm_str_eq(dgm_str_from(alias->name), s)) {
                *ret = alias->value;
                return DGM_OK;
            }
        }
        return no_such_name(r, names, s, at);
    }
    int64_t n;
    if (names->numbers && yyjson_is_raw(v) && dgm_json_int(v, &n)) {
        if (n < 0 || n >= names->n)
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "unknown %s %lld", names->what,
                            (long long)n);
        *ret = (int)n;
        return DGM_OK;
    }
    char expected[80];
    snprintf(expected, sizeof expected, "a %s", names->what);
    return dgm_read_wrong(r, v, at, expected);
}

/* ---- times --------------------------------------------------------------------------------------- */

static bool digits(const char *p, int n, int *ret)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        value = value * 10 + (p[i] - '0');
    }
    *ret = value;
    return true;
}

static bool is_leap(int y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

static int days_in(int y, int m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return m == 2 && is_leap(y) ? 29 : days[m - 1];
}

/* Adds minutes, carrying into the date. |minutes| < one day. */
static bool shift(int *y, int *mo, int *d, int *h, int *mi, int minutes)
{
    int t = *h * 60 + *mi + minutes;
    if (t < 0) {
        t += 24 * 60;
        if (--*d == 0) {
            if (--*mo == 0) {
                *mo = 12;
                --*y;
            }
            *d = *y >= 1 ? days_in(*y, *mo) : 31;
        }
    } else if (t >= 24 * 60) {
        t -= 24 * 60;
        if (++*d > days_in(*y, *mo)) {
            *d = 1;
            if (++*mo == 13) {
                *mo = 1;
                ++*y;
            }
        }
    }
    *h = t / 60;
    *mi = t % 60;
    return *y >= 1 && *y <= 9999;
}

bool dgm_time_normalise(dgm_arena *a, dgm_str in, dgm_str *ret)
{
    int y, mo, d, h, mi, s;
    const char *p = in.p;
    if (in.n < 19 || in.n > 64 || !digits(p, 4, &y) || p[4] != '-' || !digits(p + 5, 2, &mo) ||
        p[7] != '-' || !digits(p + 8, 2, &d) || (p[10] != 'T' && p[10] != 't' && p[10] != ' ') ||
        !digits(p + 11, 2, &h) || p[13] != ':' || !digits(p + 14, 2, &mi) || p[16] != ':' ||
        !digits(p + 17, 2, &s))
        return false;
    /* Second 60 is a leap second: legal in RFC 3339, kept as it is. */
    if (y < 1 || mo < 1 || mo > 12 || d < 1 || d > days_in(y, mo) || h > 23 || mi > 59 || s > 60)
        return false;
    size_t i = 19, n_fraction = 0;
    const char *fraction = p + 20;
    if (i < in.n && (p[i] == '.' || p[i] == ',')) {
        for (i++; i < in.n && p[i] >= '0' && p[i] <= '9'; i++)
            n_fraction++;
        if (!n_fraction)
            return false;
    }
    int minutes = 0;
    dgm_str zone = {p + i, in.n - i};
    bool plain = p[10] == 'T' && (i == 19 || p[19] == '.');
    if (dgm_str_is(zone, "Z")) {
        /* as we write it */
    } else if (dgm_str_is(zone, "z") || zone.n == 0) {
        plain = false;
    } else {
        int zh, zm = 0;
        size_t skip = zone.n == 6 && zone.p[3] == ':' ? 4 : 3;
        if ((zone.p[0] != '+' && zone.p[0] != '-') || zone.n < 3 || !digits(zone.p + 1, 2, &zh) ||
            zh > 23 || !(zone.n == 3 || zone.n == skip + 2) ||
            (zone.n > 3 && !digits(zone.p + skip, 2, &zm)) || zm > 59)
            return false;
        minutes = zone.p[0] == '+' ? -(zh * 60 + zm) : zh * 60 + zm;
        plain = false;
    }
    /* ProtoJSON allows 0, 3, 6 or 9 digits; more than nanoseconds is not supported. */
    size_t want = n_fraction == 0 ? 0 : n_fraction <= 3 ? 3 : n_fraction <= 6 ? 6 : 9;
    if (plain && want == n_fraction) {
        *ret = in;
        return true;
    }
    if (!shift(&y, &mo, &d, &h, &mi, minutes))
        return false;
    char digits9[10] = "000000000";
    memcpy(digits9, fraction, n_fraction < 9 ? n_fraction : 9);
    digits9[want] = 0;
    *ret = dgm_arena_printf(a, "%04d-%02d-%02dT%02d:%02d:%02d%s%sZ", y, mo, d, h, mi, s,
                            want ? "." : "", digits9);
    return true;
}

/* ---- base64 --------------------------------------------------------------------------------------- */

/* 0: in no alphabet, 1: in both, 2: standard only, 3: URL-safe only. */
enum { B64_URL = 3 };
#define TEN(c)                                                                                     \
    [c] = 1, [(c) + 1] = 1, [(c) + 2] = 1, [(c) + 3] = 1, [(c) + 4] = 1, [(c) + 5] = 1,            \
    [(c) + 6] = 1, [(c) + 7] = 1, [(c) + 8] = 1, [(c) + 9] = 1
#define LETTERS(c)                                                                                 \
    TEN(c), TEN((c) + 10), [(c) + 20] = 1, [(c) + 21] = 1, [(c) + 22] = 1, [(c) + 23] = 1,         \
                                  [(c) + 24] = 1, [(c) + 25] = 1
static const unsigned char alphabet_of[256] = {
    LETTERS('A'), LETTERS('a'), TEN('0'), ['+'] = 2, ['/'] = 2, ['-'] = B64_URL, ['_'] = B64_URL};

bool dgm_base64_normalise(dgm_arena *a, dgm_str in, dgm_str *ret)
{
    size_t n = in.n, url = 0;
    unsigned bad = 0;
    while (n && in.n - n < 2 && in.p[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++) {
        unsigned char alphabet = alphabet_of[(unsigned char)in.p[i]];
        bad |= !alphabet;
        url += alphabet == B64_URL;
    }
    if (bad || n % 4 == 1 || (n < in.n && in.n % 4 != 0))
        return false;
    if (!url && in.n % 4 == 0) {
        *ret = in;
        return true;
    }
    size_t whole = (n + 3) / 4 * 4;
    char *out = dgm_arena_alloc_raw(a, whole + 1);
    for (size_t i = 0; i < whole; i++) {
        char c = i < n ? in.p[i] : '=';
        out[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    out[whole] = 0;
    *ret = (dgm_str){out, whole};
    return true;
}

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static unsigned base64_value(char c)
{
    const char *found = c ? strchr(base64_letters, c) : NULL;
    return found ? (unsigned)(found - base64_letters) : 0;
}

/* Bytes of a group of four; returns how many. */
static size_t base64_group(const char *p, unsigned char *out)
{
    unsigned v = base64_value(p[0]) << 18 | base64_value(p[1]) << 12 | base64_value(p[2]) << 6 |
                 base64_value(p[3]);
    out[0] = (unsigned char)(v >> 16);
    out[1] = (unsigned char)(v >> 8);
    out[2] = (unsigned char)v;
    return p[2] == '=' ? 1 : p[3] == '=' ? 2 : 3;
}

static dgm_str base64_encode(dgm_arena *a, const unsigned char *bytes, size_t n)
{
    char *out = dgm_arena_alloc_raw(a, (n + 2) / 3 * 4 + 1), *at = out;
    for (size_t i = 0; i < n; i += 3) {
        unsigned b1 = i + 1 < n ? bytes[i + 1] : 0, b2 = i + 2 < n ? bytes[i + 2] : 0;
        unsigned v = (unsigned)bytes[i] << 16 | b1 << 8 | b2;
        *at++ = base64_letters[v >> 18 & 63];
        *at++ = base64_letters[v >> 12 & 63];
        *at++ = i + 1 < n ? base64_letters[v >> 6 & 63] : '=';
        *at++ = i + 2 < n ? base64_letters[v & 63] : '=';
    }
    *at = 0;
    return (dgm_str){out, (size_t)(at - out)};
}

size_t dgm_base64_join(dgm_arena *a, dgm_str first, dgm_str more, dgm_str *ret_more)
{
    bool is_padded = first.n >= 4 && first.n % 4 == 0 && first.p[first.n - 1] == '=';
    *ret_more = more;
    if (!is_padded)
        return first.n;
    unsigned char *bytes = dgm_arena_alloc_raw(a, more.n / 4 * 3 + 8);
    size_t n = base64_group(first.p + first.n - 4, bytes);
    for (size_t i = 0; i + 4 <= more.n; i += 4)
        n += base64_group(more.p + i, bytes + n);
    *ret_more = base64_encode(a, bytes, n);
    return first.n - 4;
}
