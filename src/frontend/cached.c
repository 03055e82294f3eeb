/* frontend/cached.c - conditional requests (RFC 9110, section 13) for bodies made in memory. */
#include "frontend/cached.h"
#include "base/http_date.h"
#include "frontend/words.h"

/* ---- does the caller have it? ------------------------------------------------------------------------------- */

/* A list of tags, strong or weak: for GET they compare alike. Ours hold no comma. */
static bool has_tag(dgm_str list, dgm_str tag)
{
    if (dgm_str_is(dgm_trim(list), "*"))
        return true;
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        dgm_str one = dgm_trim((dgm_str){list.p, comma ? (size_t)(comma - list.p) : list.n});
        if (dgm_str_starts(one, DGM_STR("W/")))
            one = (dgm_str){one.p + 2, one.n - 2};
        if (dgm_str_eq(one, tag))
            return true;
        list = comma ? (dgm_str){comma + 1, list.n - (size_t)(comma + 1 - list.p)} : (dgm_str){0};
    }
    return false;
}

static bool has_it(const dgm_http_request *r, dgm_str tag, int64_t modified_s)
{
    dgm_str since = dgm_http_header_of(r, DGM_STR("if-modified-since"));
    int64_t since_s;
    bool asks = false;
    for (size_t i = 0; i < r->n_headers; i++) { /* a list may come on several lines */
        if (!dgm_str_is(r->headers[i].name, "if-none-match"))
            continue;
        asks = true;
        if (has_tag(r->headers[i].value, tag))
            return true;
    }
    return !asks && modified_s && since.n && dgm_http_date_read(since, &since_s) &&
           since_s >= modified_s;
}

void dgm_cached_send(dgm_http_exchange *x, const dgm_cached *it)
{
    dgm_arena *a = dgm_http_arena(x);
    dgm_http_header headers[12];
    size_t n = 0;
    dgm_str tag = dgm_arena_printf(
        a, "\"%016llx\"", (unsigned long long)dgm_hash(it->body.n, it->body.p, it->body.n));
    headers[n++] = (dgm_http_header){DGM_STR("ETag"), tag};
    headers[n++] = (dgm_http_header){DGM_STR("Cache-Control"), it->cache_control};
    if (it->vary.n)
        headers[n++] = (dgm_http_header){DGM_STR("Vary"), it->vary};
    if (it->modified_s)
        headers[n++] =
            (dgm_http_header){DGM_STR("Last-Modified"), dgm_http_date_text(a, it->modified_s)};
    for (size_t i = 0; i < it->n_more && i < 8; i++)
        headers[n++] = it->more[i];
    if (!it->status && has_it(dgm_http_request_of(x), tag, it->modified_s))
        dgm_http_respond(x, 304, (dgm_str){0}, headers, n, (dgm_str){0});
    else
        dgm_http_respond(x, it->status ? it->status : 200, it->type, headers, n, it->body);
}

/* ---- where are we? ------------------------------------------------------------------------------------------- */

dgm_str dgm_front_address(dgm_arena *a, const dgm_http_request *r, dgm_str configured)
{
    dgm_str host = dgm_http_header_of(r, DGM_STR("host"));
    while (configured.n && configured.p[configured.n - 1] == '/')
        configured.n--;
    if (configured.n)
        return configured;
    bool is_valid = host.n && host.n <= 255;
    for (size_t i = 0; is_valid && i < host.n; i++) { /* it is repeated in JSON and in URLs */
        char c = host.p[i];
        is_valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   (c && strchr(".-_:[]", c));
    }
    if (!is_valid)
        host = DGM_STR("localhost");
    return dgm_arena_join(a, r->is_tls ? DGM_STR("https://") : DGM_STR("http://"), host);
}
