/* wire/sse/sse_write.c - events to bytes. LF only, as A2A's and OpenAI's servers write. */
#include "wire/sse/sse.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool has_end(dgm_str s)
{
    return memchr(s.p, '\n', s.n) || memchr(s.p, '\r', s.n);
}

/* Up to the next line end, which is skipped; false when this is the last line. */
static bool next_line(dgm_str *rest, dgm_str *ret_line)
{
    size_t n = 0, next;
    while (n < rest->n && !is_end(rest->p[n]))
        n++;
    *ret_line = (dgm_str){rest->p, n};
    if (n == rest->n)
        return false;
    next = n + 1;
    next += rest->p[n] == '\r' && next < rest->n && rest->p[next] == '\n';
    *rest = (dgm_str){rest->p + next, rest->n - next};
    return true;
}

static void put_field(dgm_buf *b, dgm_str name, dgm_str value)
{
    dgm_buf_add_str(b, name);
    dgm_buf_add_str(b, value);
    dgm_buf_add_char(b, '\n');
}

void dgm_sse_put(dgm_buf *b, dgm_str id, dgm_str event, dgm_str data)
{
    dgm_str line;
    bool more = true;
    if (id.p && !has_end(id) && !memchr(id.p, 0, id.n)) /* readers ignore an id with NUL */
        put_field(b, DGM_STR("id: "), id);
    if (event.p && !has_end(event))
        put_field(b, DGM_STR("event: "), event);
    if (!data.n || !has_end(data)) { /* compact JSON, that is, nearly always */
        put_field(b, DGM_STR("data: "), data);
        more = false;
    }
    while (more) {
        more = next_line(&data, &line);
        put_field(b, DGM_STR("data: "), line);
    }
    dgm_buf_add_char(b, '\n');
}

/* The escape of the line end at p, or NULL; n bytes are left. */
static const char *escape_at(const unsigned char *p, size_t n, size_t *ret_len)
{
    if (n >= 2 && p[0] == 0xC2 && p[1] == 0x85) {
        *ret_len = 2;
        return "\\u0085";
    }
    if (n >= 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9)) {
        *ret_len = 3;
        return p[2] == 0xA8 ? "\\u2028" : "\\u2029";
    }
    return NULL;
}

/* The next one from i on, or n. */
static size_t next_line_end(const char *p, size_t i, size_t n)
{
    size_t len;
    uint64_t words[4];
    for (; i < n; i++) {
        /* nearly all is ASCII: 64 or 32 bytes at a time, then eight, then the last eight */
#ifdef __SSE2__
        while (n - i >= 64) {
            const __m128i *v = (const __m128i *)(const void *)(p + i);
            __m128i a = _mm_or_si128(_mm_loadu_si128(v), _mm_loadu_si128(v + 1));
            __m128i b = _mm_or_si128(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3));
            if (_mm_movemask_epi8(_mm_or_si128(a, b)))
                break;
            i += 64;
        }
#endif
        while (n - i >= 32 &&
               (memcpy(words, p + i, 32),
                !((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u)))
            i += 32;
        while (n - i >= 8 && (memcpy(words, p + i, 8), !(words[0] & 0x8080808080808080u)))
            i += 8;
        if (n - i < 8 && n >= 8 && (memcpy(words, p + n - 8, 8), !(words[0] & 0x8080808080808080u)))
            return n;
        unsigned char c = (unsigned char)p[i];
        if ((c == 0xE2 || c == 0xC2) && escape_at((const unsigned char *)p + i, n - i, &len))
            return i;
    }
    return n;
}

void dgm_sse_escape_line_ends(dgm_buf *b, size_t from)
{
    size_t i = next_line_end(b->p, from, b->n), len;
    if (i == b->n)
        return; /* nearly always */
    dgm_buf rest;
    dgm_buf_init(&rest, b->max);
    dgm_buf_add(&rest, b->p + i, b->n - i);
    b->n = i;
    for (i = 0; i < rest.n;) {
        size_t next = next_line_end(rest.p, i, rest.n);
        dgm_buf_add(b, rest.p + i, next - i);
        i = next;
        if (i < rest.n) {
            dgm_buf_add(b, escape_at((const unsigned char *)rest.p + i, rest.n - i, &len), 6);
            i += len;
        }
    }
    dgm_buf_done(&rest);
}

size_t dgm_sse_start(dgm_buf *b, dgm_str id, dgm_str event)
{
    if (id.p)
        put_field(b, DGM_STR("id: "), id);
    if (event.n)
        put_field(b, DGM_STR("event: "), event);
    dgm_buf_add_lit(b, "data: ");
    return b->n;
}

void dgm_sse_end_data(dgm_buf *b, size_t data, bool close)
{
    dgm_sse_escape_line_ends(b, data);
    dgm_buf_add(b, "\n\n", close ? 2 : 1);
}

void dgm_sse_put_json(dgm_buf *b, dgm_str event, dgm_str json)
{
    size_t most = sizeof "event: \ndata: \n" + event.n + json.n;
    if (!dgm_buf_room(b, most))
        return;
    char *to = b->p + b->n;
    if (event.n) {
        memcpy(to, "event: ", 7);
        memcpy(to + 7, event.p, event.n);
        to[7 + event.n] = '\n';
        to += 8 + event.n;
    }
    memcpy(to, "data: ", 6);
    to += 6;
    if (json.n)
        memcpy(to, json.p, json.n);
    b->n = (size_t)(to - b->p) + json.n;
    if (next_line_end(json.p, 0, json.n) < json.n)
        dgm_sse_escape_line_ends(b, (size_t)(to - b->p));
    dgm_buf_add_char(b, '\n');
}

void dgm_sse_put_comment(dgm_buf *b, dgm_str text)
{
    dgm_str line;
    bool more = text.n > 0;
    dgm_buf_add_char(b, ':');
    while (more) {
        more = next_line(&text, &line);
        dgm_buf_add_char(b, ' ');
        dgm_buf_add_str(b, line);
    }
    dgm_buf_add_lit(b, "\n\n");
}
