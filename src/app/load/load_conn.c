/*
 * app/load/load_conn.c - one connection: a request out, an answer in, and is it right?
 *
 * Knows as much of HTTP as these servers use: a status, a length or chunks. Streams are not kept: each
 * line is looked at where it was read, only its beginning is carried over the end of a read.
 */
#define _GNU_SOURCE /* memmem: nothing portable is as fast */
#include "app/load/load_int.h"

#include "base/err.h"

#include <dragoman/dragoman.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 16384
#define BODY_BYTES ((size_t)64 << 20)
#define READ_BYTES ((size_t)64 << 10)

void dgm_load_fail(struct load *l, const char *fmt, ...)
{
    va_list args;
    l->errors++;
    if (l->first_error[0])
        return;
    va_start(args, fmt);
    vsnprintf(l->first_error, sizeof l->first_error, fmt, args);
    va_end(args);
}

/* ---- opening, closing, beginning ---------------------------------------------------------------------- */

bool dgm_load_conn_open(struct conn *c, struct load *load)
{
    int one = 1;
    *c = (struct conn){.load = load, .fd = -1};
    dgm_buf_init(&c->in, BODY_BYTES);
    dgm_buf_init(&c->proof, BODY_BYTES);
    c->fd = socket(load->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        dgm_load_fail(load, "cannot open a socket: %s", strerror(errno));
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->state = CONN_CONNECTING;
    if (connect(c->fd, (struct sockaddr *)&load->to, load->to_n) && errno != EINPROGRESS) {
        dgm_load_fail(load, "cannot connect to %s: %s", load->url, strerror(errno));
        dgm_load_conn_close(c);
        return false;
    }
    return true;
}

void dgm_load_conn_close(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    dgm_buf_done(&c->in);
    dgm_buf_done(&c->proof);
    c->fd = -1;
    c->state = CONN_CLOSED;
}

void dgm_load_conn_start(struct conn *c, uint64_t when)
{
    c->id = c->load->next_id++;
    c->began = when;
    c->sent = 0;
    c->line_n = 0;
    c->n_events = c->n_chunks = 0;
    c->saw_end = c->is_over = false;
    dgm_buf_clear(&c->in);
    c->state = CONN_SENDING;
}

/* ---- the request ------------------------------------------------------------------------------------------ */

static void put_digits(struct load *l, uint64_t id)
{
    for (size_t i = 16; i-- > 0; id >>= 4) {
        for (size_t k = 0; k < l->n_digits; k++)
            l->request.p[l->digits_at[k] + i] = "0123456789abcdef"[id & 15];
    }
}

enum conn_news dgm_load_conn_write(struct conn *c)
{
    struct load *l = c->load;
    put_digits(l, c->id);
    while (c->sent < l->request.n) {
        ssize_t n = send(c->fd, l->request.p + c->sent, l->request.n - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return CONN_GOES_ON;
        if (n < 0) {
            dgm_load_fail(l, "cannot write to %s: %s", l->url, strerror(errno));
            return CONN_BROKEN;
        }
        c->sent += (size_t)n;
    }
    c->state = CONN_HEAD;
    return CONN_GOES_ON;
}

/* ---- server-sent events ------------------------------------------------------------------------------------- */

static bool holds(const char *p, size_t n, const char *what)
{
    return memmem(p, n, what, strlen(what)) != NULL;
}

/* The beginning of a line of the stream is here. Members come in any order, texts last: the kind of an event
 * is in its first bytes. */
static void take_line(struct conn *c, const char *p, size_t n)
{
    if (n < 6 || memcmp(p, "data:", 5) != 0)
        return;
    c->n_events++;
    c->load->events += c->load->measuring; /* also of streams that began before or end after */
    if (n > LOAD_LINE_BYTES)
        n = LOAD_LINE_BYTES;
    if (holds(p, n, c->load->api->chunk))
        c->n_chunks++;
    else if (holds(p, n, c->load->api->end))
        c->saw_end = true;
}

static void take_stream(struct conn *c, const char *p, size_t n)
{
    while (n > 0) {
        const char *lf = memchr(p, '\n', n);
        size_t line = lf ? (size_t)(lf - p) : n;
        if (c->line_n || !lf) { /* begun in an earlier read, or ends in a later one */
            size_t room = sizeof c->line - c->line_n, take = line < room ? line : room;
            memcpy(c->line + c->line_n, p, take);
            c->line_n += take;
            if (!lf)
                return;
            take_line(c, c->line, c->line_n);
            c->line_n = 0;
        } else {
            take_line(c, p, line);
        }
        p += line + 1;
        n -= line + 1;
    }
}

static void take_body(struct conn *c, const char *p, size_t n)
{
    c->load->bytes += n;
    if (!c->is_stream) {
        dgm_buf_add(&c->in, p, n);
        return;
    }
    if (!c->is_proven)
        dgm_buf_add(&c->proof, p, n);
    take_stream(c, p, n);
}

/* ---- the answer ----------------------------------------------------------------------------------------------- */

static dgm_str header(dgm_str head, const char *name)
{
    size_t name_n = strlen(name);
    for (const char *p = head.p; (p = memchr(p, '\n', (size_t)(head.p + head.n - p)));) {
        size_t left;
        p++;
        left = (size_t)(head.p + head.n - p);
        if (left > name_n && strncasecmp(p, name, name_n) == 0 && p[name_n] == ':') {
            const char *v = p + name_n + 1, *end = memchr(v, '\r', left - name_n - 1);
            while (end && v < end && *v == ' ')
                v++;
            return end ? (dgm_str){v, (size_t)(end - v)} : (dgm_str){0};
        }
    }
    return (dgm_str){0};
}

static bool read_head(struct conn *c, dgm_str head)
{
    dgm_str length = header(head, "content-length"), coding = header(head, "transfer-encoding");
    dgm_str type = header(head, "content-type"), stays = header(head, "connection");
    if (head.n < 12 || memcmp(head.p, "HTTP/1.1 200", 12) != 0) {
        dgm_load_fail(c->load, "%s answers %.*s", c->load->url, (int)strcspn(head.p, "\r\n"),
                      head.p);
        return false;
    }
    c->is_chunked = coding.n >= 7 && holds(coding.p, coding.n, "chunked");
    c->is_stream = type.n && holds(type.p, type.n, "text/event-stream");
    c->has_length = length.n > 0;
    c->keeps_open = !(stays.n == 5 && strncasecmp(stays.p, "close", 5) == 0);
    c->left = c->has_length ? strtoull(length.p, NULL, 10) : 0;
    c->chunk = CHUNK_SIZE;
    c->chunk_line = 0;
    c->chunk_size = 0;
    c->state = CONN_BODY;
    if (!c->is_chunked && !c->has_length)
        c->left = UINT64_MAX; /* until it closes */
    return true;
}

static int hex(char ch)
{
    return ch >= '0' && ch <= '9'                 ? ch - '0'
           : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10
                                                  : -1;
}

/* Of a chunked body; returns how much was used. */
static size_t take_chunks(struct conn *c, const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && !c->is_over) {
        if (c->chunk == CHUNK_DATA) {
            size_t take = c->left < n - i ? (size_t)c->left : n - i;
            take_body(c, p + i, take);
            i += take;
            c->left -= take;
            if (!c->left)
                c->chunk = CHUNK_END;
        } else if (p[i++] == '\n') {
            if (c->chunk == CHUNK_SIZE) {
                c->left = c->chunk_size;
                c->chunk = c->left ? CHUNK_DATA : CHUNK_TRAILER;
            } else if (c->chunk == CHUNK_END) {
                c->chunk = CHUNK_SIZE;
            } else if (c->chunk_line == 0) { /* an empty line ends the trailer */
                c->is_over = true;
            }
            c->chunk_line = 0;
            c->chunk_size = 0;
        } else if (p[i - 1] != '\r') {
            if (c->chunk == CHUNK_SIZE && hex(p[i - 1]) >= 0)
                c->chunk_size = c->chunk_size << 4 | (uint64_t)hex(p[i - 1]);
            c->chunk_line++;
        }
    }
    return i;
}

static size_t load_conn_take(struct conn *c, const char *p, size_t n)
{
    if (c->state == CONN_HEAD) {
        const char *end;
        size_t had = c->in.n, used;
        dgm_buf_add(&c->in, p, n);
        end = memmem(c->in.p, c->in.n, "\r\n\r\n", 4);
        if (!end) {
            if (c->in.n > HEAD_BYTES) {
                dgm_load_fail(c->load, "%s does not respond with HTTP", c->load->url);
                return SIZE_MAX;
            }
            return n;
        }
        used = (size_t)(end - c->in.p) + 4 - had;
        if (!read_head(c, (dgm_str){c->in.p, had + used}))
            return SIZE_MAX;
        dgm_buf_clear(&c->in);
        c->is_over = c->has_length && c->left == 0;
        return used;
    }
    if (c->is_chunked)
        return take_chunks(c, p, n);
    size_t some = c->left < n ? (size_t)c->left : n;
    take_body(c, p, some);
    c->left -= some;
    c->is_over = c->left == 0;
    return some;
}

enum conn_news dgm_load_conn_read(struct conn *c)
{
    static char bytes[READ_BYTES];
    for (;;) {
        ssize_t got = recv(c->fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return CONN_GOES_ON;
        if (got == 0 && c->state == CONN_BODY && c->left == UINT64_MAX) {
            c->keeps_open = false;
            return CONN_ANSWERED;
        }
        if (got <= 0) {
            dgm_load_fail(c->load, "%s closed the connection in the middle of a response: %s",
                          c->load->url, got < 0 ? strerror(errno) : "end of file");
            return CONN_BROKEN;
        }
        for (size_t i = 0; i < (size_t)got && !c->is_over;) {
            size_t used = load_conn_take(c, bytes + i, (size_t)got - i);
            if (used == SIZE_MAX)
                return CONN_BROKEN;
            i += used;
        }
        if (c->is_over)
            return CONN_ANSWERED;
        if ((size_t)got < sizeof bytes)
            return CONN_GOES_ON;
    }
}

/* ---- is it right? ------------------------------------------------------------------------------------------------ */

/* The first answer on every connection is read by the codec of its format, member by member. */
static bool prove(struct conn *c)
{
    dgm_err err = {0};
    char *out = NULL;
    const dgm_format_id format = dgm_format_id_by_name(c->load->api->format);
    dgm_convert_options options = {.size = sizeof options, .from = format, .to = format};
    dgm_buf *b = c->is_stream ? &c->proof : &c->in;
    size_t n;
    if (dgm_convert(&options, b->p ? b->p : "", b->n, &out, &n, &err)) {
        dgm_load_fail(c->load, "the response is not %s: %s at \"%s\"", c->load->api->format,
                      err.msg, err.at);
        return false;
    }
    dgm_free(out);
    dgm_buf_done(&c->proof);
    dgm_buf_init(&c->proof, BODY_BYTES);
    c->is_proven = true;
    return true;
}

bool dgm_load_conn_check(struct conn *c)
{
    struct load *l = c->load;
    if (!c->is_proven && !prove(c))
        return false;
    if (c->is_stream) {
        if (c->saw_end && (l->want_chunks == UINT64_MAX || c->n_chunks == l->want_chunks))
            return true;
        dgm_load_fail(l, "a stream of %llu events with %llu text chunks %s",
                      (unsigned long long)c->n_events, (unsigned long long)c->n_chunks,
                      c->saw_end ? "does not have the requested number of chunks"
                                 : "has no successful end");
        return false;
    }
    for (size_t i = 0; i < 2 && l->want[i]; i++) {
        if (!holds(c->in.p ? c->in.p : "", c->in.n, l->want[i])) {
            dgm_load_fail(l, "the response does not contain %s: %.*s", l->want[i],
                          (int)(c->in.n < 300 ? c->in.n : 300), c->in.p ? c->in.p : "");
            return false;
        }
    }
    return true;
}
