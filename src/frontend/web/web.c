/* frontend/web/web.c - the page's files and the catalog. */
#include "frontend/web/web.h"
#include "frontend/cached.h"
#include "frontend/web/web_files.h"
#include "json/json.h"

/* ---- the page ------------------------------------------------------------------------------------------------- */

/* The page takes nothing from elsewhere and runs nothing but its own files; files of agents are shown from
 * memory. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static void responses_emit_file(dgm_http_exchange *x, const dgm_web_file *f)
{
    static const dgm_http_header more[] = {{{"Content-Security-Policy", 23}, DGM_STR(POLICY)},
                                           {{"X-Content-Type-Options", 22}, {"nosniff", 7}},
                                           {{"Referrer-Policy", 15}, {"no-referrer", 11}}};
    dgm_cached it = {.type = dgm_str_from(f->type),
                     .body = {(const char *)f->bytes, f->n},
                     .cache_control = DGM_STR("no-cache"), /* ask, and get 304 */
                     .vary = DGM_STR("Accept, Origin"),
                     .more = more,
                     .n_more = sizeof more / sizeof *more};
    dgm_cached_send(x, &it);
}

static const dgm_web_file *find_file(dgm_str name)
{
    for (const dgm_web_file *f = dgm_web_files; f->name; f++) {
        if (dgm_str_eq(name, dgm_str_from(f->name)))
            return f;
    }
    return NULL;
}

bool dgm_web_wants_page(const dgm_http_request *r)
{
    dgm_str accept = dgm_http_header_of(r, DGM_STR("accept"));
    dgm_str html = DGM_STR("text/html");
    for (size_t i = 0; i + html.n <= accept.n; i++) {
        if (dgm_str_eq_nocase((dgm_str){accept.p + i, html.n}, html))
            return true;
    }
    return false;
}

void dgm_web_give_page(dgm_http_exchange *x)
{
    responses_emit_file(x, find_file(DGM_STR("index.html")));
}

bool dgm_web_give_file(dgm_http_exchange *x, dgm_str name)
{
    const dgm_web_file *f = find_file(name);
    if (f)
        responses_emit_file(x, f);
    return f;
}

/* ---- the catalog ------------------------------------------------------------------------------------------------- */

static dgm_str host_of(dgm_str address)
{
    const char *p = memchr(address.p, '/', address.n);
    dgm_str host = {p + 2, address.n - (size_t)(p + 2 - address.p)};
    for (size_t i = 0; i < host.n; i++) {
        if (host.p[i] == ':' || host.p[i] == '/')
            host.n = i;
    }
    return host;
}

static void put_entry(dgm_buf *b, const dgm_web_agent *a, dgm_str address)
{
    dgm_str host = host_of(address);
    dgm_buf_printf(b,
                   "{\"identifier\":\"urn:air:%.*s:a2a:%.*s\",\"type\":"
                   "\"application/a2a-agent-card+json\",\"url\":",
                   DGM_P(host), DGM_P(a->id));
    dgm_buf_add_char(b, '"');
    dgm_json_put_chars(b, address);
    dgm_json_put_chars(b, a->path);
    dgm_buf_add_lit(b, "/.well-known/agent-card.json\",\"displayName\":");
    dgm_json_put_str(b, a->name);
    dgm_buf_add_lit(b, ",\"description\":");
    dgm_json_put_str(b, a->description);
    dgm_buf_add_char(b, '}');
}

void dgm_web_give_catalog(dgm_http_exchange *x, const dgm_web_agent *agents, size_t n,
                          dgm_str public_url, int64_t made_s)
{
    dgm_arena *a = dgm_http_arena(x);
    dgm_str address = dgm_front_address(a, dgm_http_request_of(x), public_url);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"specVersion\":\"1.0\",\"host\":{\"displayName\":");
    dgm_json_put_str(&b, host_of(address));
    dgm_buf_add_lit(&b, "},\"entries\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        put_entry(&b, &agents[i], address);
    }
    dgm_buf_add_lit(&b, "]}");
    dgm_cached it = {.type = DGM_STR("application/json"),
                     .body = dgm_arena_dup(a, dgm_buf_str(&b)),
                     .cache_control = DGM_STR("public, max-age=300"),
                     .vary = DGM_STR("Origin"),
                     .modified_s = made_s};
    dgm_buf_done(&b);
    dgm_cached_send(x, &it);
}
