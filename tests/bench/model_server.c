/*
 * model_server.c - a scripted language model: the upstream of the benchmarks of the agent type llm.
 *
 *   model_server [PORT]      prints the port it listens on, ends with SIGTERM
 *
 * POST any path with a Chat Completions request. The last command in its body decides the answer:
 *
 *   tokens N               N tokens as fast as the connection takes them (`chunks N` means the same)
 *   tokens N yield         one token in each turn of the event loop
 *   tokens N every MS      one token every MS milliseconds; each text is the time at which it was sent, in
 *                          microseconds of CLOCK_MONOTONIC, and a space
 *   wait MS                nothing for MS milliseconds, then one token
 *
 * It answers every request with a stream, whose chunks have the members that OpenAI's have.
 */
#define _GNU_SOURCE /* memmem */
#include <llhttp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#define BODY_BYTES 65536
#define OUT_BYTES 65536
#define ROOM_BYTES 1024 /* for one token and the end */

#define CHUNK                                                                                      \
    "data: {\"id\":\"chatcmpl-0123456789abcdef0123456789abc\",\"object\":\"chat.completion."       \
    "chunk\",\"created\":1760000000,\"model\":\"bench-1\",\"service_tier\":\"default\","           \
    "\"system_fingerprint\":\"fp_0123456789\",\"choices\":["
#define TOKEN_BEGIN CHUNK "{\"index\":0,\"delta\":{\"content\":\""
#define TOKEN_END "\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"
static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n";
static const char first[] =
    CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},"
          "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n";
static const char last[] =
    CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":"
          "null}\n\n" CHUNK "],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":100,"
          "\"total_tokens\":109}}\n\ndata: [DONE]\n\n";

enum pace { AT_ONCE, YIELD, EVERY, WAIT };

struct client {
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_idle_t idle;
    llhttp_t parser;
    enum pace pace;
    unsigned long every_ms, n_tokens, sent;
    uint64_t started; /* of EVERY: the token n is due n * every_ms later */
    unsigned n_open;  /* handles */
    bool is_writing, is_closing;
    size_t n_body, n_out;
    char body[BODY_BYTES];
    char out[OUT_BYTES];
    uv_write_t write;
};

static char shared[65536];
static llhttp_settings_t settings;

static void on_closed(uv_handle_t *h)
{
    struct client *c = h->data;
    if (--c->n_open == 0)
        free(c);
}

static void close_client(struct client *c)
{
    if (c->is_closing)
        return;
    c->is_closing = true;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
    uv_close((uv_handle_t *)&c->timer, on_closed);
    uv_close((uv_handle_t *)&c->idle, on_closed);
}

/* ---- the stream ---------------------------------------------------------------------------------------------- */

static void put(struct client *c, const char *p, size_t n)
{
    memcpy(c->out + c->n_out, p, n);
    c->n_out += n;
}

/* A chunk of the body: its size takes six digits, so that it can be filled in later. */
static size_t begin_chunk(struct client *c)
{
    put(c, "000000\r\n", 8);
    return c->n_out;
}

static void end_chunk(struct client *c, size_t begin)
{
    char size[9];
    snprintf(size, sizeof size, "%06zx\r\n", c->n_out - begin);
    memcpy(c->out + begin - 8, size, 8);
    put(c, "\r\n", 2);
}

static void put_token(struct client *c)
{
    char text[32];
    struct timespec t;
    int n;
    c->sent++;
    if (c->pace == EVERY) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        n = snprintf(text, sizeof text, "%lld ", (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    } else {
        n = snprintf(text, sizeof text, "%lu ", c->sent);
    }
    put(c, TOKEN_BEGIN, sizeof TOKEN_BEGIN - 1);
    put(c, text, (size_t)n);
    put(c, TOKEN_END, sizeof TOKEN_END - 1);
}

static void put_end(struct client *c)
{
    size_t at = begin_chunk(c);
    put(c, last, sizeof last - 1);
    end_chunk(c, at);
    put(c, "0\r\n\r\n", 5);
    uv_idle_stop(&c->idle);
}

static void stream_on(struct client *c);

static void on_written(uv_write_t *req, int status)
{
    struct client *c = req->data;
    c->is_writing = false;
    c->n_out = 0;
    if (status < 0)
        close_client(c);
    else if (c->pace == AT_ONCE)
        stream_on(c);
}

static void flush(struct client *c)
{
    uv_buf_t b = uv_buf_init(c->out, (unsigned)c->n_out);
    int wrote = uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    size_t at = wrote > 0 ? (size_t)wrote : 0;
    if (at == c->n_out) {
        c->n_out = 0;
        return;
    }
    b = uv_buf_init(c->out + at, (unsigned)(c->n_out - at));
    c->is_writing = true;
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &b, 1, on_written) != 0)
        close_client(c);
}

/* Sends what its pace allows now. */
static void stream_on(struct client *c)
{
    while (!c->is_writing && !c->is_closing && c->sent < c->n_tokens) {
        size_t at = begin_chunk(c);
        do
            put_token(c);
        while (c->pace == AT_ONCE && c->sent < c->n_tokens &&
               c->n_out + 2 * ROOM_BYTES + sizeof last < OUT_BYTES);
        end_chunk(c, at);
        if (c->sent == c->n_tokens)
            put_end(c);
        flush(c);
        if (c->pace != AT_ONCE)
            return;
    }
}

static void on_timer(uv_timer_t *h);

static void wait_for_next(struct client *c)
{
    uint64_t now = uv_now(c->timer.loop), due = c->started + (c->sent + 1) * c->every_ms;
    uv_timer_start(&c->timer, on_timer, due > now ? due - now : 0, 0);
}

/* A model that is late sends the tokens that are due: its pace does not depend on how busy this program is. */
static void on_timer(uv_timer_t *h)
{
    struct client *c = h->data;
    uint64_t now = uv_now(h->loop);
    do
        stream_on(c);
    while (c->pace == EVERY && !c->is_writing && !c->is_closing && c->sent < c->n_tokens &&
           c->started + (c->sent + 1) * c->every_ms <= now);
    if (!c->is_closing && c->sent < c->n_tokens)
        wait_for_next(c);
}

static void on_turn(uv_idle_t *h)
{
    stream_on(h->data);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* The number behind the last `word` in the body; what follows it. False: the word is not in the body. */
static bool find_command(struct client *c, const char *word, unsigned long *ret_n, char **ret_rest)
{
    char *at = c->body, *found = NULL;
    while ((at = memmem(at, c->n_body - (size_t)(at - c->body), word, strlen(word)))) {
        at += strlen(word);
        if (*at >= '0' && *at <= '9')
            found = at;
    }
    if (found)
        *ret_n = strtoul(found, ret_rest, 10);
    return found != NULL;
}

static void read_command(struct client *c)
{
    char none[] = "", *rest = none;
    c->pace = AT_ONCE;
    c->n_tokens = 1;
    c->sent = 0;
    c->body[c->n_body] = '\0';
    if (find_command(c, "wait ", &c->every_ms, &rest)) {
        c->pace = WAIT;
    } else if (find_command(c, "tokens ", &c->n_tokens, &rest) ||
               find_command(c, "chunks ", &c->n_tokens, &rest)) {
        if (strncmp(rest, " yield", 6) == 0)
            c->pace = YIELD;
        else if (strncmp(rest, " every ", 7) == 0 && (c->every_ms = strtoul(rest + 7, NULL, 10)))
            c->pace = EVERY;
    }
    if (c->n_tokens == 0)
        c->n_tokens = 1;
}

static int on_message_complete(llhttp_t *l)
{
    struct client *c = l->data;
    if (c->is_writing || c->n_out)
        return HPE_USER; /* requests are not pipelined */
    read_command(c);
    c->n_body = 0;
    put(c, head, sizeof head - 1);
    size_t at = begin_chunk(c);
    put(c, first, sizeof first - 1);
    end_chunk(c, at);
    if (c->pace == AT_ONCE) {
        stream_on(c);
        return 0;
    }
    flush(c);
    c->started = uv_now(c->timer.loop);
    if (c->pace == YIELD)
        uv_idle_start(&c->idle, on_turn);
    else
        wait_for_next(c);
    return 0;
}

static int on_body(llhttp_t *l, const char *p, size_t n)
{
    struct client *c = l->data;
    if (n > sizeof c->body - 1 - c->n_body)
        return HPE_USER;
    memcpy(c->body + c->n_body, p, n);
    c->n_body += n;
    return 0;
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    (void)h, (void)hint;
    *b = uv_buf_init(shared, sizeof shared);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct client *c = s->data;
    if (n < 0 || (n > 0 && llhttp_execute(&c->parser, b->base, (size_t)n) != HPE_OK))
        close_client(c);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct client *c = malloc(sizeof *c);
    if (!c || status < 0)
        abort();
    memset(c, 0, offsetof(struct client, body)); /* pages of the buffers stay untouched */
    uv_tcp_init(server->loop, &c->tcp);
    uv_timer_init(server->loop, &c->timer);
    uv_idle_init(server->loop, &c->idle);
    c->n_open = 3;
    c->tcp.data = c->timer.data = c->idle.data = c;
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    if (uv_accept(server, (uv_stream_t *)&c->tcp) != 0) {
        close_client(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void on_signal(uv_signal_t *h, int number)
{
    (void)number;
    uv_stop(h->loop);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t server;
    uv_signal_t term;
    struct sockaddr_in a;
    int n = sizeof a;
    signal(SIGPIPE, SIG_IGN);
    llhttp_settings_init(&settings);
    settings.on_body = on_body;
    settings.on_message_complete = on_message_complete;
    uv_tcp_init(loop, &server);
    uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 0, &a);
    uv_signal_init(loop, &term);
    uv_signal_start(&term, on_signal, SIGTERM);
    if (uv_tcp_bind(&server, (const struct sockaddr *)&a, 0) != 0 ||
        uv_listen((uv_stream_t *)&server, 4096, on_connection) != 0 ||
        uv_tcp_getsockname(&server, (struct sockaddr *)&a, &n) != 0) {
        fprintf(stderr, "model_server: cannot listen\n");
        return 1;
    }
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}
