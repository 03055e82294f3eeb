/* frontend/words.c - see words.h. */
#include "frontend/words.h"

dgm_str dgm_trim(dgm_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (dgm_str){s.p + 1, s.n - 1};
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool dgm_next_word(dgm_str *list, char end, dgm_str *ret)
{
    if (!list->n)
        return false;
    const char *at = memchr(list->p, end, list->n);
    size_t n = at ? (size_t)(at - list->p) : list->n;
    *ret = dgm_trim((dgm_str){list->p, n});
    n += at ? 1 : 0;
    *list = (dgm_str){list->p + n, list->n - n};
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool dgm_percent_decode(dgm_arena *a, dgm_str in, bool plus_is_space, dgm_str *ret)
{
    char *out = dgm_arena_alloc_raw(a, in.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] != '%') {
            out[n++] = plus_is_space && in.p[i] == '+' ? ' ' : in.p[i];
            continue;
        }
        int high = i + 2 < in.n ? hex_digit(in.p[i + 1]) : -1;
        int low = i + 2 < in.n ? hex_digit(in.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return false;
        out[n++] = (char)(high << 4 | low);
        i += 2;
    }
    out[n] = 0;
    *ret = (dgm_str){out, n};
    return dgm_utf8_check(*ret) == n;
}

dgm_str dgm_query_value(dgm_arena *a, dgm_str query, const char *name)
{
    dgm_str pair, value, wanted = dgm_str_from(name);
    while (dgm_next_word(&query, '&', &pair)) {
        if (pair.n > wanted.n + 1 && pair.p[wanted.n] == '=' && dgm_str_starts(pair, wanted)) {
            dgm_str raw = {pair.p + wanted.n + 1, pair.n - wanted.n - 1};
            return dgm_percent_decode(a, raw, true, &value) ? value : raw;
        }
    }
    return (dgm_str){0};
}

dgm_str dgm_bare_type(dgm_str type)
{
    const char *end = type.n ? memchr(type.p, ';', type.n) : NULL;
    return dgm_trim((dgm_str){type.p, end ? (size_t)(end - type.p) : type.n});
}

bool dgm_accepts(const dgm_http_request *r, dgm_str type)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        dgm_str list = r->headers[i].value, entry;
        if (!dgm_str_is(r->headers[i].name, "accept"))
            continue;
        while (dgm_next_word(&list, ',', &entry)) {
            if (dgm_str_eq_nocase(dgm_bare_type(entry), type))
                return true;
        }
    }
    return false;
}
