/* net/http_head.c - heads of answers. */
#include "net/http_int.h"

#include <assert.h>
#include <stdio.h>

static const char *reason_of(int status)
{
    switch (status) {
#define X(code, text)                                                                              \
    case code: return text;
        X(200, "OK")
        X(201, "Created")
        X(202, "Accepted")
        X(204, "No Content")
        X(301, "Moved Permanently")
        X(302, "Found")
        X(303, "See Other")
        X(304, "Not Modified")
        X(307, "Temporary Redirect")
        X(308, "Permanent Redirect")
        X(400, "Bad Request")
        X(401, "Unauthorized")
        X(403, "Forbidden")
        X(404, "Not Found")
        X(405, "Method Not Allowed")
        X(406, "Not Acceptable")
        X(408, "Request Timeout")
        X(409, "Conflict")
        X(410, "Gone")
        X(412, "Precondition Failed")
        X(413, "Content Too Large")
        X(415, "Unsupported Media Type")
        X(417, "Expectation Failed")
        X(422, "Unprocessable Content")
        X(424, "Failed Dependency")
        X(429, "Too Many Requests")
        X(431, "Request Header Fields Too Large")
        X(500, "Internal Server Error")
        X(501, "Not Implemented")
        X(502, "Bad Gateway")
        X(503, "Service Unavailable")
        X(504, "Gateway Timeout")
        X(505, "HTTP Version Not Supported")
#undef X
    }
    return "Status"; /* may be anything, RFC 9112 4 */
}

static char *head_put(char *p, dgm_str s)
{
    if (s.n)
        memcpy(p, s.p, s.n);
    return p + s.n;
}
#define PUT(p, lit) head_put((p), DGM_STR(lit))

static char *head_put_number(char *p, uint64_t n)
{
    char digits[20];
    size_t i = sizeof digits;
    do {
        digits[--i] = (char)('0' + n % 10);
    } while (n /= 10);
    return head_put(p, (dgm_str){digits + i, sizeof digits - i});
}

/* Bytes that a peer may have chosen must not end the line. Eight at a time: a byte below 0x20 is rare. */
static char *head_put_value(char *p, dgm_str s)
{
    const uint64_t each = ~(uint64_t)0 / 255;
    size_t i = 0;
    for (uint64_t w; s.n - i >= 8; i += 8) {
        memcpy(&w, s.p + i, 8);
        if ((w - each * 0x20) & ~w & each * 0x80)
            break;
        memcpy(p + i, &w, 8);
    }
    for (; i < s.n; i++)
        p[i] = (unsigned char)s.p[i] < 0x20 && s.p[i] != '\t' ? ' ' : s.p[i];
    return p + s.n;
}

void dgm_http_put_head(http_conn *c, const struct http_head *h)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    http_shard *s = c->shard;
    time_t now = time(NULL);
    struct tm t;
    if (now != s->date_at) { /* once per second */
        gmtime_r(&now, &t);
        snprintf(s->date, sizeof s->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                 days + 3 * t.tm_wday, (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon,
                 (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
                 (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
        s->date_at = now;
    }
    size_t room = 256 + h->type.n;
    for (const struct http_header_list *l = h->headers; l < h->headers + 2; l++)
        for (size_t i = 0; i < l->n; i++)
            room += l->items[i].name.n + l->items[i].value.n + 4;
    char *from = dgm_out_room(&c->out, room), *p = from;
    if (h->status == 200) {
        p = PUT(p, "HTTP/1.1 200 OK\r\nDate: ");
    } else {
        p = PUT(p, "HTTP/1.1 ");
        p = head_put_number(p, (unsigned)h->status);
        p = PUT(p, " ");
        p = head_put(p, dgm_str_from(reason_of(h->status)));
        p = PUT(p, "\r\nDate: ");
    }
    p = head_put(p, (dgm_str){s->date, sizeof "Sun, 01 Jan 2026 00:00:00 GMT" - 1});
    if (h->type.n) {
        p = PUT(p, "\r\nContent-Type: ");
        p = head_put_value(p, h->type);
    }
    if (h->framing == BY_LENGTH) {
        p = PUT(p, "\r\nContent-Length: ");
        p = head_put_number(p, h->length);
    } else if (h->framing == BY_CHUNKS) {
        p = PUT(p, "\r\nTransfer-Encoding: chunked");
    }
    if (h->connection) {
        p = PUT(p, "\r\nConnection: ");
        p = head_put(p, dgm_str_from(h->connection));
    }
    for (const struct http_header_list *l = h->headers; l < h->headers + 2; l++) {
        for (size_t i = 0; i < l->n; i++) {
            p = PUT(p, "\r\n");
            p = head_put_value(p, l->items[i].name);
            p = PUT(p, ": ");
            p = head_put_value(p, l->items[i].value);
        }
    }
    p = PUT(p, "\r\n\r\n");
    assert((size_t)(p - from) <= room);
    dgm_out_wrote(&c->out, (size_t)(p - from));
}
