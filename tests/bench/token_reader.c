/*
 * token_reader.c - many clients of an agent whose model is model_server.c: how late does each token come?
 *
 *   token_reader PORT STREAMS TOKENS EVERY_MS
 *
 * Opens STREAMS connections to 127.0.0.1, evenly over one second. Each sends `tokens TOKENS every EVERY_MS` over A2A (JSON-RPC)
 * and reads the stream. The text of a token is the time at which the model sent it. Prints
 * {"streams": ..., "failed": ..., "tokens": ..., "seconds": ..., "latency_us": {"p50": ..., "p99": ..., "max": ...}}.
 * A stream has failed if it is closed or silent before its task is completed, or if a token is missing.
 */
#define _GNU_SOURCE /* memmem */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048 /* of a line that a read has cut */
#define SILENCE_US 20000000
#define MAX_STREAMS 10000u

struct stream {
    int fd;
    unsigned tokens;
    bool is_over, is_good;
    size_t n_line;
    char line[LINE_BYTES];
};

struct readers {
    struct stream *streams;
    unsigned n_streams, n_started, n_over, tokens, every_ms;
    int epoll, port;
    uint32_t *late; /* microseconds */
    size_t n_late, cap_late;
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void close_stream(struct readers *r, struct stream *s)
{
    if (s->is_over)
        return;
    s->is_over = true;
    s->is_good &= s->tokens == r->tokens;
    close(s->fd);
    r->n_over++;
}

/* ---- one stream ---------------------------------------------------------------------------------------------- */

static void start_stream(struct readers *r, struct stream *s, unsigned number)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)r->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char body[500], request[1000];
    int one = 1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("token_reader: cannot connect");
        exit(1);
    }
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int n = snprintf(body, sizeof body,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":"
                     "{\"message\":{\"messageId\":\"t-%d-%u\",\"role\":\"ROLE_USER\",\"parts\":[{"
                     "\"text\":\"tokens %u every %u\"}]}}}",
                     (int)getpid(), number, r->tokens, r->every_ms);
    n = snprintf(request, sizeof request,
                 "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                 "Accept: text/event-stream\r\nA2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s",
                 n, body);
    if (send(s->fd, request, (size_t)n, MSG_NOSIGNAL) != n) {
        perror("token_reader: cannot send");
        exit(1);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    epoll_ctl(r->epoll, EPOLL_CTL_ADD, s->fd, &e);
}

static void add_late(struct readers *r, int64_t us)
{
    if (r->n_late < r->cap_late)
        r->late[r->n_late++] = us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static void read_line(struct readers *r, struct stream *s, const char *p, size_t n, int64_t now)
{
    static const char mark[] = "\"text\":\"";
    const char *text;
    if (memmem(p, n, "\"artifactUpdate\"", 16)) {
        text = memmem(p, n, mark, sizeof mark - 1);
        if (text && text[sizeof mark - 1] != '"') { /* the last one is empty */
            s->tokens++;
            add_late(r, now - strtoll(text + sizeof mark - 1, NULL, 10));
        }
    } else if (memmem(p, n, "_COMPLETED\"", 11)) {
        s->is_good = true;
        close_stream(r, s);
    }
}

static void read_lines(struct readers *r, struct stream *s, const char *p, size_t n, int64_t now)
{
    while (n && !s->is_over) {
        const char *lf = memchr(p, '\n', n);
        size_t some = lf ? (size_t)(lf - p) : n, room = sizeof s->line - s->n_line;
        if (s->n_line || !lf) {
            size_t take = some < room ? some : room;
            memcpy(s->line + s->n_line, p, take);
            s->n_line += take;
        }
        if (!lf)
            return;
        if (s->n_line)
            read_line(r, s, s->line, s->n_line, now);
        else
            read_line(r, s, p, some, now);
        s->n_line = 0;
        p += some + 1;
        n -= some + 1;
    }
}

static void read_stream(struct readers *r, struct stream *s)
{
    static char bytes[65536];
    ssize_t n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0)
        read_lines(r, s, bytes, (size_t)n, now_us());
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_stream(r, s);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static void read_all(struct readers *r)
{
    int64_t began = now_us(), last = began;
    struct epoll_event events[256];
    while (r->n_over < r->n_streams && now_us() - last < SILENCE_US) {
        int64_t due = (now_us() - began) * r->n_streams / 1000000;
        for (; r->n_started < r->n_streams && r->n_started < due; r->n_started++)
            start_stream(r, &r->streams[r->n_started], r->n_started);
        int n = epoll_wait(r->epoll, events, 256, r->n_started < r->n_streams ? 1 : 1000);
        for (int i = 0; i < n; i++) {
            struct stream *s = events[i].data.ptr;
            if (!s->is_over)
                read_stream(r, s);
        }
        if (n > 0)
            last = now_us();
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static unsigned late_at(const struct readers *r, double fraction)
{
    return r->n_late ? r->late[(size_t)((double)(r->n_late - 1) * fraction)] : 0;
}

int main(int argc, char **argv)
{
    struct readers r = {0};
    unsigned n_good = 0;
    if (argc < 5) {
        fprintf(stderr, "usage: token_reader PORT STREAMS TOKENS EVERY_MS\n");
        return 2;
    }
    r.port = atoi(argv[1]);
    r.n_streams = (unsigned)atoi(argv[2]);
    r.tokens = (unsigned)atoi(argv[3]);
    r.every_ms = (unsigned)atoi(argv[4]);
    if (r.n_streams == 0 || r.n_streams > MAX_STREAMS || r.tokens == 0)
        return 2;
    r.cap_late = (size_t)r.n_streams * r.tokens;
    r.streams = calloc(r.n_streams, sizeof *r.streams);
    r.late = calloc(r.cap_late, sizeof *r.late);
    r.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!r.streams || !r.late || r.epoll < 0)
        return 1;
    int64_t began = now_us();
    read_all(&r);
    double seconds = (double)(now_us() - began) / 1e6;
    qsort(r.late, r.n_late, sizeof *r.late, compare);
    for (unsigned i = 0; i < r.n_streams; i++)
        n_good += r.streams[i].is_over && r.streams[i].is_good;
    printf("{\"streams\": %u, \"failed\": %u, \"tokens\": %zu, \"seconds\": %.2f, "
           "\"latency_us\": {\"p50\": %u, \"p99\": %u, \"max\": %u}}\n",
           r.n_streams, r.n_streams - n_good, r.n_late, seconds, late_at(&r, 0.5),
           late_at(&r, 0.99), late_at(&r, 1));
    free(r.streams);
    free(r.late);
    return 0;
}
