/* wire/sse/sse_write.c - events to bytes. LF only, as A2A's and OpenAI's servers write. */
#include "wire/sse/sse.h"

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool has_end(dgm_str s)
{
    return memchr(s.p, '\n', s.n) || memchr(s.p, '\r', s.n);
}

/* Up to the next line end, which is skipped; false when this is the last line. */
static bool take_line(dgm_str *rest, dgm_str *ret_line)
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

static bool fits_a_line(dgm_str s)
{
    return s.p && !has_end(s);
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
    if (fits_a_line(id) && !memchr(id.p, 0, id.n)) /* readers ignore an id with NUL */
        put_field(b, DGM_STR("id: "), id);
    if (fits_a_line(event))
        put_field(b, DGM_STR("event: "), event);
    if (!data.n || !has_end(data)) { /* compact JSON, that is, nearly always */
        put_field(b, DGM_STR("data: "), data);
        more = false;
    }
    while (more) {
        more = take_line(&data, &line);
        put_field(b, DGM_STR("data: "), line);
    }
    dgm_buf_add_char(b, '\n');
}

void dgm_sse_put_comment(dgm_buf *b, dgm_str text)
{
    dgm_str line;
    bool more = text.n > 0;
    dgm_buf_add_char(b, ':');
    while (more) {
        more = take_line(&text, &line);
        dgm_buf_add_char(b, ' ');
        dgm_buf_add_str(b, line);
    }
    dgm_buf_add_lit(b, "\n\n");
}
