/*
 * net/http1.c - llhttp's callbacks, and what we refuse beyond it.
 *
 * The first bytes of a request are copied in one piece, and what is found in them is not copied again: most
 * requests are whole there. What is cut by the end of a piece is put together again. The limit on the
 * head is kept by handing llhttp no more bytes than may belong to it.
 */
#include "net/http1.h"

#include "base/limits.h"

#include <stdlib.h>

/* What is copied of a request at once: few are longer, and of those behind it little is copied twice. */
#define FIRST_BYTES ((size_t)1536)
/* Bodies of known length up to this go into the arena. */
#define SMALL_BODY ((size_t)16 << 10)

static int http1_refuse(dgm_http1 *h, int status, const char *why)
{
    if (!h->status) {
        h->status = status;
        h->why = why;
    }
    return HPE_USER;
}

/* A text that goes on grows in place: it is the arena's last allocation. */
static __attribute__((noinline)) void http1_append_copy(dgm_http1 *h, dgm_str *s, const char *p,
                                                        size_t n)
{
    char *to;
    if (s->n && (uintptr_t)s->p - (uintptr_t)h->first >= h->n_first) {
        to = dgm_arena_realloc(h->arena, (char *)s->p, s->n, s->n + n);
    } else {
        to = dgm_arena_alloc_raw(h->arena, s->n + n);
        if (s->n)
            memcpy(to, s->p, s->n);
    }
    memcpy(to + s->n, p, n);
    s->p = to;
    s->n += n;
}

/* Bytes within the first ones of the request are not copied. */
static inline void http1_append(dgm_http1 *h, dgm_str *s, const char *p, size_t n)
{
    if (!s->n && (uintptr_t)p - (uintptr_t)h->first < h->n_first)
        *s = (dgm_str){p, n};
    else
        http1_append_copy(h, s, p, n);
}

/* ---- the head ------------------------------------------------------------------------------------------- */

static int on_url(llhttp_t *l, const char *p, size_t n)
{
    dgm_http1 *h = l->data;
    http1_append(h, &h->request.target, p, n);
    return 0;
}

/* Trailers are read over: nothing may depend on them. */
static int count_extra(dgm_http1 *h, size_t n)
{
    h->extra_bytes += n;
    if (h->extra_bytes > DGM_MAX_HTTP_HEADER_BYTES)
        return http1_refuse(h, 431,
                            "chunk extensions and trailers are too large (http_header_bytes)");
    return 0;
}

static int on_extension(llhttp_t *l, const char *p, size_t n)
{
    (void)p;
    return count_extra(l->data, n + 1);
}

/* Names are compared in lower case. Eight bytes at once: of those from 'A' to 'Z' the bit 0x20 is set. The last eight may
 * overlap the ones before them. */
static void lower_case(char *p, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t eight;
    for (size_t i = 0; n >= 8 && i < n; i += 8) {
        char *at = p + (i + 8 <= n ? i : n - 8);
        memcpy(&eight, at, 8);
        uint64_t low = eight & ~high;
        uint64_t upper = (low + ones * (0x80 - 'A')) & ~(low + ones * (0x7f - 'Z')) & ~eight & high;
        eight |= upper >> 2;
        memcpy(at, &eight, 8);
    }
    for (size_t i = 0; n < 8 && i < n; i++)
        p[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 32) : p[i];
}

static int on_header_field(llhttp_t *l, const char *p, size_t n)
{
    dgm_http1 *h = l->data;
    dgm_http_request *r = &h->request;
    if (h->head_done)
        return count_extra(h, n + 4);
    if (!h->in_name) {
        if (r->n_headers == DGM_MAX_HTTP_HEADERS)
            return http1_refuse(h, 431, "too many header lines (http_headers)");
        if (r->n_headers == h->cap_headers) {
            size_t cap = h->cap_headers ? h->cap_headers * 2 : 12;
            r->headers =
                dgm_arena_realloc(h->arena, r->headers, h->cap_headers * sizeof *r->headers,
                                  cap * sizeof *r->headers);
            h->cap_headers = cap;
        }
        r->headers[r->n_headers++] = (dgm_http_header){{NULL, 0}, DGM_STR("")};
        h->in_name = true;
    }
    dgm_str *name = &r->headers[r->n_headers - 1].name;
    http1_append(h, name, p, n);
    lower_case((char *)(uintptr_t)name->p + name->n - n, n);
    return 0;
}

static int on_header_value(llhttp_t *l, const char *p, size_t n)
{
    dgm_http1 *h = l->data;
    if (h->head_done)
        return count_extra(h, n);
    h->in_name = false;
    if (n)
        http1_append(h, &h->request.headers[h->request.n_headers - 1].value, p, n);
    return 0;
}

static int on_header_value_complete(llhttp_t *l)
{
    dgm_http1 *h = l->data;
    h->in_name = false;
    if (h->head_done)
        return 0;
    dgm_str *v = &h->request.headers[h->request.n_headers - 1].value;
    while (v->n && (v->p[v->n - 1] == ' ' || v->p[v->n - 1] == '\t'))
        v->n--;
    return 0;
}

/* host [":" port], RFC 3986 3.2: a name, an IPv4 address or "[...]" */
static bool is_host(dgm_str s)
{
    static const bool in_name[256] = {
        ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['.'] = true,
        ['-'] = true,         ['_'] = true,         ['~'] = true,         ['%'] = true,
        ['!'] = true,         ['$'] = true,         ['&'] = true,         ['\''] = true,
        ['('] = true,         [')'] = true,         ['*'] = true,         ['+'] = true,
        [','] = true,         [';'] = true,         ['='] = true};
    size_t i = 0, digits = 0;
    if (s.n && s.p[0] == '[') {
        for (i = 1; i < s.n && s.p[i] != ']'; i++)
            if (!strchr("0123456789abcdefABCDEF:.%", s.p[i]) || !s.p[i])
                return false;
        if (i < 3 || i++ == s.n)
            return false;
    } else {
        while (i < s.n && in_name[(unsigned char)s.p[i]])
            i++;
        if (i == 0)
            return false;
    }
    if (i == s.n)
        return true;
    if (s.p[i++] != ':')
        return false;
    for (; i < s.n; i++, digits++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return digits <= 5;
}

/* RFC 9112 3.2: origin-form, absolute-form (whose authority then replaces Host), asterisk-form */
static int read_target(dgm_http1 *h, dgm_str *ret_authority)
{
    dgm_http_request *r = &h->request;
    dgm_str t = r->target;
    if (memchr(t.p, '#', t.n))
        return http1_refuse(h, 400, "the request target holds a fragment");
    if (dgm_str_is(t, "*")) {
        r->path = t;
        return h->parser.method == HTTP_OPTIONS ? 0
                                                : http1_refuse(h, 400, "target * is for OPTIONS");
    }
    if (t.p[0] != '/') {
        size_t scheme = t.n >= 7 && dgm_str_eq_nocase((dgm_str){t.p, 7}, DGM_STR("http://"))    ? 7
                        : t.n >= 8 && dgm_str_eq_nocase((dgm_str){t.p, 8}, DGM_STR("https://")) ? 8
                                                                                                : 0;
        size_t i = scheme;
        if (!scheme)
            return http1_refuse(h, 400, "the request target is neither a path nor an http URL");
        while (i < t.n && t.p[i] != '/' && t.p[i] != '?')
            i++;
        *ret_authority = (dgm_str){t.p + scheme, i - scheme};
        if (!is_host(*ret_authority))
            return http1_refuse(h, 400, "the request target names no valid host");
        t = (dgm_str){t.p + i, t.n - i};
    }
    const char *q = t.n ? memchr(t.p, '?', t.n) : NULL;
    r->path = q ? (dgm_str){t.p, (size_t)(q - t.p)} : t;
    if (q)
        r->query = (dgm_str){q + 1, (size_t)(t.p + t.n - q - 1)};
    if (r->path.n == 0)
        r->path = DGM_STR("/");
    return 0;
}

static void http1_free_body(void *arg)
{
    dgm_buf_done(arg);
}

/* Host, and the headers about the body: RFC 9112 3.2, 6.1, 6.3; RFC 9110 10.1.1. */
static int read_headers(dgm_http1 *h, dgm_str authority)
{
    const llhttp_t *l = &h->parser;
    dgm_http_header *host = NULL, *encoding = NULL, *expect = NULL;
    for (size_t i = 0; i < h->request.n_headers; i++) { /* headers is NULL without headers */
        dgm_http_header *e = &h->request.headers[i];
        if (dgm_str_is(e->name, "host")) {
            if (host)
                return http1_refuse(h, 400, "there is more than one Host header");
            if (!is_host(e->value))
                return http1_refuse(h, 400, "the Host header is not a valid host");
            host = e;
        } else if (dgm_str_is(
                       e->name,
                       "transfer-encoding")) { /* also without a value, which llhttp ignores */
            if (encoding)
                return http1_refuse(h, 400, "there is more than one Transfer-Encoding header");
            encoding = e;
        } else if (!expect && dgm_str_is(e->name, "expect")) {
            expect = e;
        }
    }
    if (!host && !h->is_http10)
        return http1_refuse(h, 400, "the Host header is missing");
    if (host && authority.p)
        host->value = authority;
    if (encoding && l->flags & F_CONTENT_LENGTH)
        return http1_refuse(h, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (encoding && h->is_http10)
        return http1_refuse(h, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (encoding && !dgm_str_eq_nocase(encoding->value, DGM_STR("chunked")))
        return http1_refuse(h, 501, "unsupported Transfer-Encoding: only chunked");
    if (l->content_length > h->max_body)
        return http1_refuse(h, 413, "the body is too large (http_body_bytes)");
    if (expect && !h->is_http10) {
        if (!dgm_str_eq_nocase(expect->value, DGM_STR("100-continue")))
            return http1_refuse(h, 417, "unsupported Expect header: only 100-continue");
        h->wants_continue = l->flags & F_CHUNKED || l->content_length > 0;
    }
    h->is_small = !(l->flags & F_CHUNKED) && l->content_length <= SMALL_BODY;
    h->length = l->content_length;
    if (!h->is_small) {
        dgm_buf_init(&h->body, h->max_body);
        dgm_arena_defer(h->arena, http1_free_body, &h->body);
    }
    return 0;
}

static int on_headers_complete(llhttp_t *l)
{
    dgm_http1 *h = l->data;
    dgm_str authority = {0};
    h->head_done = true;
    if (l->http_major != 1 || l->http_minor > 1)
        return http1_refuse(h, 505, "unsupported HTTP version: use HTTP/1.1"), -1;
    if (l->method == HTTP_CONNECT)
        return http1_refuse(h, 501, "CONNECT is not supported: this server is not a proxy"), -1;
    h->is_http10 = l->http_minor == 0;
    l->upgrade = 0; /* h2c, websocket: an offer that we do not take up */
    h->request.method = dgm_str_from(llhttp_method_name((llhttp_method_t)l->method));
    return read_target(h, &authority) || read_headers(h, authority) ? -1 : 0;
}

/* ---- the body ------------------------------------------------------------------------------------------- */

/* A chunk is refused by its announced size: no byte of one that cannot fit is waited for. */
static int on_chunk_header(llhttp_t *l)
{
    dgm_http1 *h = l->data;
    if (h->head_done && l->content_length > h->max_body - h->body.n)
        return http1_refuse(h, 413, "the body is too large (http_body_bytes)");
    return 0;
}

static int on_body(llhttp_t *l, const char *p, size_t n)
{
    dgm_http1 *h = l->data;
    h->wants_continue = false; /* it did not wait */
    if (h->is_small) {
        if (n == h->length && (uintptr_t)p - (uintptr_t)h->first < h->n_first) {
            h->request.body = (dgm_str){p, n};
            return 0;
        }
        if (!h->small_body)
            h->small_body = dgm_arena_alloc_raw(h->arena, h->length);
        memcpy(h->small_body + h->request.body.n, p, n);
        h->request.body = (dgm_str){h->small_body, h->request.body.n + n};
        return 0;
    }
    dgm_buf_add(&h->body, p, n);
    return h->body.over ? http1_refuse(h, 413, "the body is too large (http_body_bytes)") : 0;
}

static int on_message_complete(llhttp_t *l)
{
    dgm_http1 *h = l->data;
    h->whole = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- public ---------------------------------------------------------------------------------------------- */

void dgm_http1_init(dgm_http1 *h, dgm_arena *a, size_t max_body)
{
    *h = (dgm_http1){.arena = a, .max_body = max_body, .request.body = DGM_STR("")};
    llhttp_init(&h->parser, HTTP_REQUEST, &settings);
    h->parser.data = h;
}

static void refuse_llhttp(dgm_http1 *h, llhttp_errno_t e)
{
    bool known =
        h->parser.http_major == 1 && h->parser.http_minor <= 1; /* then the line end is bad */
    if (e == HPE_PAUSED_H2_UPGRADE || (e == HPE_INVALID_VERSION && !known))
        http1_refuse(h, 505, "unsupported HTTP version: use HTTP/1.1");
    else if (e == HPE_INVALID_METHOD)
        http1_refuse(h, 400, "invalid HTTP method");
    else
        http1_refuse(h, 400, llhttp_get_error_reason(&h->parser));
}

/* The request line, as far as llhttp is more lenient than RFC 9112 section 3. */
enum http1_line { LINE_START, LINE_METHOD, LINE_BLANK, LINE_TARGET, LINE_VERSION, LINE_CHECKED };

static bool check_request_line(dgm_http1 *h, const char *p, size_t n)
{
    /* mostly the line is complete and correct */
    const char *end = p + n, *one = memchr(p, ' ', n), *two;
    if (h->line == LINE_START && *p >= 'A' && one && end - one > 2 && one[1] != ' ' &&
        (two = memchr(one + 1, ' ', (size_t)(end - one - 1))) && end - two > 1 && two[1] == 'H') {
        h->line = LINE_CHECKED;
        return true;
    }
    for (size_t i = 0; i < n && h->line != LINE_CHECKED; i++) {
        const char *blank;
        switch ((enum http1_line)h->line) {
        case LINE_START: h->line = p[i] == '\r' || p[i] == '\n' ? LINE_START : LINE_METHOD; break;
        case LINE_METHOD:
            if (!(blank = memchr(p + i, ' ', n - i)))
                return true;
            i = (size_t)(blank - p);
            h->line = LINE_BLANK;
            break;
        case LINE_BLANK:
            if (p[i] == ' ') {
                http1_refuse(h, 400, "there is more than one blank before the request target");
                return false;
            }
            h->line = LINE_TARGET;
            break;
        case LINE_TARGET:
            if (!(blank = memchr(p + i, ' ', n - i)))
                return true;
            i = (size_t)(blank - p);
            h->line = LINE_VERSION;
            break;
        case LINE_VERSION: /* llhttp also reads RTSP/1.0 and ICE/1.0 */
            if (p[i] != 'H') {
                http1_refuse(h, p[i] == 'R' || p[i] == 'I' ? 505 : 400,
                             "this server speaks HTTP/1.1");
                return false;
            }
            h->line = LINE_CHECKED;
            break;
        case LINE_CHECKED: break;
        }
    }
    return true;
}

static dgm_http1_step http1_step_done(dgm_http1 *h)
{
    if (h->stops_at_head && h->head_done) {
        h->stops_at_head = false;
        return DGM_HTTP1_HEAD;
    }
    if (h->wants_continue) {
        h->wants_continue = false;
        return DGM_HTTP1_CONTINUE;
    }
    return DGM_HTTP1_MORE;
}

dgm_http1_step dgm_http1_feed(dgm_http1 *h, const char *p, size_t n, size_t *ret_used)
{
    size_t used = 0;
    *ret_used = n;
    if (h->status)
        return DGM_HTTP1_REFUSED;
    if (n && h->head_bytes == 0 && !h->head_done && *p == 0x16) {
        http1_refuse(h, 400, "this looks like TLS: this port uses plain HTTP");
        return DGM_HTTP1_REFUSED;
    }
    while (used < n) {
        size_t k = n - used;
        if (!h->head_done) {
            size_t room = DGM_MAX_HTTP_HEADER_BYTES - h->head_bytes;
            if (room == 0) {
                http1_refuse(h, 431, "the request's head is too large (http_header_bytes)");
                return DGM_HTTP1_REFUSED;
            }
            k = k < room ? k : room;
        }
        const char *from = p + used;
        if (h->head_bytes == 0 && !h->head_done) {
            k = k < FIRST_BYTES ? k : FIRST_BYTES;
            h->first = from = memcpy(dgm_arena_alloc_raw(h->arena, k), from, k);
            h->n_first = k;
        }
        if (h->line != LINE_CHECKED && !h->head_done && !check_request_line(h, from, k))
            return DGM_HTTP1_REFUSED;
        llhttp_errno_t e = llhttp_execute(&h->parser, from, k);
        if (h->whole) {
            *ret_used = used + (size_t)(llhttp_get_error_pos(&h->parser) - from);
            h->keep_alive = llhttp_should_keep_alive(&h->parser);
            if (!h->is_small)
                h->request.body = dgm_buf_str(&h->body);
            return DGM_HTTP1_REQUEST;
        }
        if (e != HPE_OK) {
            refuse_llhttp(h, e);
            return DGM_HTTP1_REFUSED;
        }
        used += k;
        if (!h->head_done)
            h->head_bytes += k;
    }
    return http1_step_done(h);
}

bool dgm_http1_set_max_body(dgm_http1 *h, size_t max_body)
{
    h->max_body = h->max_body < max_body ? h->max_body : max_body;
    h->body.max = h->max_body;
    return h->whole || (h->parser.flags & F_CHUNKED ? h->body.n : h->length) <= h->max_body;
}

size_t dgm_http1_body_bytes(const dgm_http1 *h)
{
    return h->request.body.n + h->body.n;
}

dgm_str dgm_http_header_of(const dgm_http_request *r, dgm_str name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (dgm_str_eq(r->headers[i].name, name))
            return r->headers[i].value;
    return (dgm_str){0};
}
