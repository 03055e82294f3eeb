/* frontend/web/web.c - the page's files and the catalog. */
#include "frontend/web/web.h"
#include "frontend/cached.h"
#include "frontend/web/web_files.h"
#include "frontend/words.h"
#include "json/json.h"

/* ---- the page ------------------------------------------------------------------------------------------------- */

/* The page loads nothing from elsewhere and runs nothing but its own files. Files of agents are shown from memory (blob:), and texts
 * never become HTML: with trusted types a browser refuses innerHTML and its relatives. */
#define WEB_POLICY                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' blob:; media-src 'self' blob:; frame-src blob:; object-src blob:; "            \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* Is gzip in Accept-Encoding, and not with q=0? Another server in front of us removes the compression if its caller cannot read it. */
static bool web_accepts_gzip(const dgm_http_request *r)
{
    dgm_str list = dgm_http_header_of(r, DGM_STR("accept-encoding"));
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        dgm_str one = {list.p, comma ? (size_t)(comma - list.p) : list.n};
        const char *semicolon = memchr(one.p, ';', one.n);
        dgm_str name = dgm_trim((dgm_str){one.p, semicolon ? (size_t)(semicolon - one.p) : one.n});
        if (dgm_str_eq_nocase(name, DGM_STR("gzip"))) {
            size_t n_digits = 0;
            for (size_t i = name.n; i < one.n; i++)
                n_digits += one.p[i] >= '1' && one.p[i] <= '9';
            return !semicolon || n_digits > 0; /* "gzip;q=0", "gzip; q=0.000" */
        }
        list = comma ? (dgm_str){comma + 1, list.n - (size_t)(comma + 1 - list.p)} : (dgm_str){0};
    }
    return false;
}

/* page: at an address that other clients get something else from. */
static void web_send_file(dgm_http_exchange *x, const dgm_web_file *f, int status, bool is_page)
{
    dgm_http_header more[] = {{DGM_STR("Content-Security-Policy"), DGM_STR(WEB_POLICY)},
                              {DGM_STR("X-Content-Type-Options"), DGM_STR("nosniff")},
                              {DGM_STR("Referrer-Policy"), DGM_STR("no-referrer")},
                              {DGM_STR("Cross-Origin-Opener-Policy"), DGM_STR("same-origin")},
                              {DGM_STR("Cross-Origin-Resource-Policy"), DGM_STR("same-origin")},
                              {DGM_STR("Content-Encoding"), DGM_STR("gzip")}};
    bool is_gzip = web_accepts_gzip(dgm_http_request_of(x));
    const dgm_web_bytes *bytes = is_gzip ? &f->gzip : &f->plain;
    dgm_cached it = {.type = dgm_str_from(f->type),
                     .status = status,
                     .body = {(const char *)bytes->bytes, bytes->n},
                     .cache_control = f->has_hash ? DGM_STR("public, max-age=31536000, immutable")
                                                  : DGM_STR("no-cache"), /* ask, and get 304 */
                     .vary = is_page ? DGM_STR("Accept, Accept-Encoding, Origin")
                                     : DGM_STR("Accept-Encoding, Origin"),
                     .more = more,
                     .n_more = sizeof more / sizeof *more - !is_gzip};
    dgm_cached_send(x, &it);
}

static const dgm_web_file *web_find_file(dgm_str name)
{
    for (const dgm_web_file *f = dgm_web_files; f->name; f++) {
        if (dgm_str_eq(name, dgm_str_from(f->name)))
            return f;
    }
    return NULL;
}

static bool web_is_browser(const dgm_http_request *r)
{
    dgm_str accept = dgm_http_header_of(r, DGM_STR("accept"));
    dgm_str html = DGM_STR("text/html");
    for (size_t i = 0; i + html.n <= accept.n; i++) {
        if (dgm_str_eq_nocase((dgm_str){accept.p + i, html.n}, html))
            return true;
    }
    return false;
}

bool dgm_web_send_page(dgm_http_exchange *x, int status)
{
    const dgm_web_file *page = web_find_file(DGM_STR("index.html"));
    if (page && web_is_browser(dgm_http_request_of(x))) {
        web_send_file(x, page, status, true);
        return true;
    }
    return false;
}

bool dgm_web_send_file(dgm_http_exchange *x, dgm_str name)
{
    const dgm_web_file *f = web_find_file(name);
    if (f)
        web_send_file(x, f, 0, false);
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

void dgm_web_send_catalog(dgm_http_exchange *x, const dgm_web_agent *agents, size_t n,
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
