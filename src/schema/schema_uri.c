/* schema/schema_uri.c - resolves references against the URI of their schema (RFC 3986, section 5). */
#include "schema/schema_int.h"

struct uri {
    dgm_str scheme, authority, path,
        query; /* absent parts have p == NULL; the path is never absent */
};

static bool is_scheme_char(char c, bool is_first)
{
    bool is_letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    return is_letter || (!is_first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'));
}

static dgm_str uri_cut(dgm_str s, size_t from, size_t to)
{
    return (dgm_str){s.p + from, to - from};
}

static size_t find_any(dgm_str s, size_t from, const char *chars)
{
    while (from < s.n && !(s.p[from] && strchr(chars, s.p[from])))
        from++;
    return from;
}

static struct uri uri_split(dgm_str s)
{
    struct uri u = {0};
    size_t i = 0, end;
    s.n = find_any(s, 0, "#");
    while (i < s.n && is_scheme_char(s.p[i], i == 0))
        i++;
    if (i && i < s.n && s.p[i] == ':')
        u.scheme = uri_cut(s, 0, i++);
    else
        i = 0;
    if (s.n - i >= 2 && s.p[i] == '/' && s.p[i + 1] == '/') {
        end = find_any(s, i + 2, "/?");
        u.authority = uri_cut(s, i + 2, end);
        i = end;
    }
    end = find_any(s, i, "?");
    u.path = s.p ? uri_cut(s, i, end) : DGM_STR("");
    if (end < s.n)
        u.query = uri_cut(s, end + 1, s.n);
    return u;
}

/* Removes "." and ".." steps; `out` has room for the path. */
static dgm_str without_dots(dgm_str path, char *out)
{
    size_t n = 0, i = 0;
    while (i < path.n) {
        size_t end = find_any(path, i + (path.p[i] == '/'), "/");
        dgm_str step = uri_cut(path, i, end);
        bool is_rest = end == path.n;
        i = end;
        if (dgm_str_is(step, "/.") || dgm_str_is(step, "/..")) {
            while (step.n == 3 && n && out[--n] != '/')
                ;
            if (is_rest)
                out[n++] = '/';
            continue;
        }
        memcpy(out + n, step.p, step.n);
        n += step.n;
    }
    return (dgm_str){out, n};
}

static dgm_str uri_merge(dgm_arena *a, const struct uri *base, dgm_str path)
{
    size_t end = base->path.n;
    if (base->authority.p && !base->path.n)
        return dgm_arena_join(a, DGM_STR("/"), path);
    while (end && base->path.p[end - 1] != '/')
        end--;
    return dgm_arena_join(a, uri_cut(base->path, 0, end), path);
}

static dgm_str join_uri(dgm_arena *a, const struct uri *u)
{
    return dgm_arena_printf(a, "%.*s%s%s%.*s%.*s%s%.*s", DGM_P(u->scheme), u->scheme.p ? ":" : "",
                            u->authority.p ? "//" : "", DGM_P(u->authority), DGM_P(u->path),
                            u->query.p ? "?" : "", DGM_P(u->query));
}

dgm_str dgm_schema_uri_resolve(dgm_arena *a, dgm_str base, dgm_str ref)
{
    struct uri b = uri_split(base), r = uri_split(ref);
    bool is_relative_path = false;
    if (!r.scheme.p) {
        r.scheme = b.scheme;
        if (!r.authority.p) {
            r.authority = b.authority;
            if (!r.path.n) {
                r.path = b.path;
                r.query = r.query.p ? r.query : b.query;
            } else {
                is_relative_path = r.path.p[0] != '/';
            }
        }
    }
    if (is_relative_path)
        r.path = uri_merge(a, &b, r.path);
    r.path = without_dots(r.path, dgm_arena_alloc_raw(a, r.path.n + 1));
    return join_uri(a, &r);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

dgm_str dgm_schema_uri_fragment(dgm_arena *a, dgm_str ref)
{
    size_t start = find_any(ref, 0, "#"), n = 0;
    if (start == ref.n)
        return (dgm_str){0};
    char *out = dgm_arena_alloc_raw(a, ref.n - start);
    for (size_t i = start + 1; i < ref.n; i++) {
        int high = ref.p[i] == '%' && ref.n - i > 2 ? hex_digit(ref.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(ref.p[i + 2]) : -1;
        out[n++] = low >= 0 ? (char)(high * 16 + low) : ref.p[i];
        i += low >= 0 ? 2 : 0;
    }
    return (dgm_str){out, n};
}
