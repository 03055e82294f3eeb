/*
 * bare_server.c - the least a server can do for a SendMessage: libuv, llhttp, yyjson and nothing of ours.
 *
 * It reads a JSON-RPC request, parses it, builds the Message with the same text and writes it back, on
 * connections that stay open. No limits, no timers, no tasks, no checks: the yardstick for the CPU that a
 * request costs `dragoman serve`.
 *
 *   bare_server [PORT]      prints the port it listens on, ends with SIGTERM
 */
#include <llhttp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>
#include <yyjson.h>

#define BODY_BYTES 65536
#define OUT_BYTES 65536

struct client {
    uv_tcp_t tcp;
    llhttp_t parser;
    size_t n_body, n_out;
    bool is_last; /* no keep-alive */
    char body[BODY_BYTES];
    char out[OUT_BYTES]; /* the answers to all requests of one read */
};

struct write {
    uv_write_t req;
    char bytes[];
};

static char shared[65536];
static llhttp_settings_t settings;

/* As unique as a yardstick needs: it must not pay for randomness that a server would draw in advance. */
static uint64_t next_random(void)
{
    static uint64_t state;
    if (!state)
        uv_random(NULL, NULL, &state, sizeof state, 0, NULL);
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void new_id(char text[37])
{
    static const char hex[] = "0123456789abcdef";
    uint64_t r[2] = {next_random(), next_random()};
    r[0] = (r[0] & 0xffffffffffff0fffu) | 0x7000;
    r[1] = (r[1] & 0x3fffffffffffffffu) | 0x8000000000000000u;
    for (int i = 0, k = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            text[k++] = '-';
        text[k++] = hex[r[i / 16] >> (60 - i % 16 * 4) & 15];
    }
    text[36] = 0;
}

static const char *date_now(void)
{
    static char text[40];
    static time_t at;
    time_t now = time(NULL);
    struct tm t;
    if (now != at)
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &t));
    at = now;
    return text;
}

/* ---- the answer ------------------------------------------------------------------------------------------ */

static char *answer_to(const char *body, size_t n_body, size_t *ret_n)
{
    yyjson_doc *in = yyjson_read(body, n_body, 0);
    yyjson_val *root = yyjson_doc_get_root(in);
    yyjson_val *part = yyjson_arr_get_first(yyjson_ptr_get(root, "/params/message/parts"));
    const char *text = yyjson_get_str(yyjson_obj_get(part, "text"));
    yyjson_val *context = yyjson_ptr_get(root, "/params/message/contextId");
    char message_id[37], context_id[37];
    yyjson_mut_doc *out = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *reply = yyjson_mut_obj(out), *result = yyjson_mut_obj(out);
    yyjson_mut_val *message = yyjson_mut_obj(out), *parts = yyjson_mut_arr(out);
    new_id(message_id);
    new_id(context_id);
    yyjson_mut_doc_set_root(out, reply);
    yyjson_mut_obj_add_str(out, reply, "jsonrpc", "2.0");
    yyjson_mut_obj_add_val(out, reply, "id", yyjson_val_mut_copy(out, yyjson_obj_get(root, "id")));
    yyjson_mut_obj_add_val(out, reply, "result", result);
    yyjson_mut_obj_add_val(out, result, "message", message);
    yyjson_mut_obj_add_str(out, message, "messageId", message_id);
    yyjson_mut_obj_add_str(out, message, "contextId",
                           context ? yyjson_get_str(context) : context_id);
    yyjson_mut_obj_add_str(out, message, "role", "ROLE_AGENT");
    yyjson_mut_obj_add_val(out, message, "parts", parts);
    yyjson_mut_obj_add_str(out, yyjson_mut_arr_add_obj(out, parts), "text", text ? text : "");
    yyjson_mut_obj_add_str(out, yyjson_mut_obj_add_obj(out, message, "metadata"), "canonical_type",
                           "TextMessageEndEvent");
    char *json = yyjson_mut_write(out, 0, ret_n);
    yyjson_mut_doc_free(out);
    yyjson_doc_free(in);
    return json;
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static int on_body(llhttp_t *l, const char *p, size_t n)
{
    struct client *c = l->data;
    if (n > sizeof c->body - c->n_body)
        return HPE_USER;
    memcpy(c->body + c->n_body, p, n);
    c->n_body += n;
    return 0;
}

static int on_message_complete(llhttp_t *l)
{
    struct client *c = l->data;
    size_t n;
    char *json = answer_to(c->body, c->n_body, &n);
    c->n_body = 0;
    c->is_last = !llhttp_should_keep_alive(l);
    if (!json || n + 200 > sizeof c->out - c->n_out) {
        free(json);
        return HPE_USER;
    }
    c->n_out += (size_t)snprintf(c->out + c->n_out, sizeof c->out - c->n_out,
                                 "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: application/json\r\n"
                                 "Content-Length: %zu\r\n\r\n%s",
                                 date_now(), n, json);
    free(json);
    return 0;
}

/* ---- bytes ------------------------------------------------------------------------------------------------- */

static void close_client(struct client *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->tcp))
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_written(uv_write_t *req, int status)
{
    struct client *c = req->handle->data;
    free(req);
    if (status < 0 || c->is_last)
        close_client(c);
}

static void send_out(struct client *c)
{
    uv_buf_t b = uv_buf_init(c->out, (unsigned)c->n_out);
    int wrote = uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    size_t at = wrote > 0 ? (size_t)wrote : 0, left = c->n_out - at;
    c->n_out = 0;
    if (left) {
        struct write *w = malloc(sizeof *w + left);
        if (!w)
            abort();
        memcpy(w->bytes, c->out + at, left);
        b = uv_buf_init(w->bytes, (unsigned)left);
        uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, on_written);
    } else if (c->is_last) {
        close_client(c);
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    (void)h, (void)hint;
    *b = uv_buf_init(shared, sizeof shared);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct client *c = s->data;
    if (n < 0 || (n > 0 && llhttp_execute(&c->parser, b->base, (size_t)n) != HPE_OK)) {
        close_client(c);
        return;
    }
    if (c->n_out)
        send_out(c);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c || status < 0)
        abort();
    uv_tcp_init(server->loop, &c->tcp);
    c->tcp.data = c;
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
        uv_listen((uv_stream_t *)&server, 1024, on_connection) != 0 ||
        uv_tcp_getsockname(&server, (struct sockaddr *)&a, &n) != 0) {
        fprintf(stderr, "bare_server: cannot listen\n");
        return 1;
    }
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}
