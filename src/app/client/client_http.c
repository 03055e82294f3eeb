/*
 * app/client/client_http.c - one request at a time; streams are passed on as they arrive.
 *
 * A command has a loop of its own, which runs only while a call or a pause lasts. It also handles Ctrl-C and the ticks of
 * the spinner.
 */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "net/client.h"

#include <signal.h>
#include <stdlib.h>
#include <strings.h>

#define TICK_MS 100
#define CONNECT_MS 15000

enum { ON_INT, ON_TERM, N_SIGNALS };

struct http {
    uv_loop_t loop;
    dgm_client *client;
    uv_timer_t tick, pause;
    uv_signal_t signals[N_SIGNALS];
    bool catches; /* the signals */
    bool interrupted;
    bool ready;        /* the call or the pause is over */
    struct call *call; /* NULL: none runs */
    long timeout_s;
    const char *ca_file, *proxy;
};

struct call {
    struct http *h;
    const struct http_request *q;
    struct http_answer *a;
    dgm_fetch *fetch; /* NULL: it has ended */
    bool enough;      /* the reader wants no more */
    dgm_code code;
    dgm_err *err;
};

/* ---- Ctrl-C --------------------------------------------------------------------------------------------- */

static void client_http_stop(struct http *h)
{
    if (h->call && h->call->fetch)
        dgm_fetch_cancel(h->call->fetch);
    if (h->call)
        h->call->fetch = NULL;
    h->ready = true;
}

static void client_http_on_signal(uv_signal_t *s, int number)
{
    struct http *h = s->data;
    (void)number;
    h->interrupted = true;
    client_http_stop(h);
}

void dgm_client_http_catch_interrupt(struct http *h)
{
    static const int numbers[N_SIGNALS] = {SIGINT, SIGTERM};
    for (int i = 0; i < N_SIGNALS && !h->catches; i++) {
        uv_signal_init(&h->loop, &h->signals[i]);
        h->signals[i].data = h;
        /* once: the next one has its usual effect */
        uv_signal_start_oneshot(&h->signals[i], client_http_on_signal, numbers[i]);
    }
    h->catches = true;
}

bool dgm_client_http_was_interrupted(const struct http *h)
{
    return h && h->interrupted;
}

void dgm_client_http_release_interrupt(struct http *h)
{
    h->interrupted = false;
}

/* ---- the loop -------------------------------------------------------------------------------------------- */

struct http *dgm_client_http_new(const struct http_settings *settings)
{
    struct http *h = dgm_xcalloc(1, sizeof *h);
    signal(SIGPIPE, SIG_IGN); /* standard output is written by functions that look themselves */
    uv_loop_init(&h->loop);
    uv_timer_init(&h->loop, &h->tick);
    uv_timer_init(&h->loop, &h->pause);
    h->tick.data = h->pause.data = h;
    h->client = dgm_client_new(&h->loop, 0);
    h->timeout_s = settings->timeout_s;
    h->ca_file = settings->ca_file;
    h->proxy = settings->proxy;
    return h;
}

void dgm_client_http_free(struct http *h)
{
    if (!h)
        return;
    dgm_client_close(h->client, NULL, NULL);
    uv_close((uv_handle_t *)&h->tick, NULL);
    uv_close((uv_handle_t *)&h->pause, NULL);
    for (int i = 0; i < N_SIGNALS && h->catches; i++)
        uv_close((uv_handle_t *)&h->signals[i], NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    uv_loop_close(&h->loop);
    free(h);
}

static void client_http_run(struct http *h)
{
    h->ready = h->interrupted;
    while (!h->ready)
        uv_run(&h->loop, UV_RUN_ONCE);
}

static void client_http_on_pause_end(uv_timer_t *t)
{
    client_http_stop(t->data);
}

void dgm_client_http_pause(struct http *h, unsigned ms)
{
    uv_update_time(&h->loop);
    uv_timer_start(&h->pause, client_http_on_pause_end, ms, 0);
    client_http_run(h);
    uv_timer_stop(&h->pause);
}

/* ---- proxies ---------------------------------------------------------------------------------------------- */

static bool is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

/* The first of these variables that is set to a text; NULL: none is. */
static const char *first_variable(const char *const *names)
{
    const char *value = NULL;
    for (; *names && !(value && *value); names++)
        value = getenv(*names);
    return value && *value ? value : NULL;
}

/* As curl and other programs on a command line do. HTTP_PROXY is not read: a CGI server sets it from a header. */
static void choose_proxy(const struct http *h, dgm_fetch_options *o)
{
    static const char *const of_http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL},
                             *const of_https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                                  "ALL_PROXY", NULL},
                             *const none[] = {"no_proxy", "NO_PROXY", NULL};
    if (h->proxy) {
        o->proxy = *h->proxy ? h->proxy : NULL;
    } else if (!is_loopback(o->url)) { /* no proxy can reach this machine's own servers */
        o->proxy = first_variable(strncmp(o->url, "https:", 6) == 0 ? of_https : of_http);
        o->no_proxy = first_variable(none);
    }
}

/* ---- a call ------------------------------------------------------------------------------------------------ */

static void client_http_on_head(void *user, const dgm_fetch_head *head)
{
    struct call *c = user;
    c->a->status = head->status;
    c->a->is_stream = head->content_type.n == 17 &&
                      strncasecmp(head->content_type.p, "text/event-stream", 17) == 0;
    if (c->q->on_head)
        c->q->on_head(head, c->q->arg);
}

static void client_http_on_body(void *user, dgm_str bytes)
{
    struct call *c = user;
    uv_timer_again(&c->h->tick);
    if (c->a->is_stream && c->q->on_stream)
        c->enough = !c->q->on_stream(bytes.p, bytes.n, c->q->arg);
    else
        dgm_buf_add_str(&c->a->body, bytes);
    if (c->enough || c->a->body.over)
        client_http_stop(c->h);
}

static dgm_code client_http_failure(struct call *c, const dgm_fetch_result *r)
{
    const char *url = c->q->url;
    if (r->end == DGM_FETCH_TIMEOUT && c->a->status)
        return dgm_fail(c->err, DGM_UPSTREAM_TIMEOUT, NULL, "timeout: no data from %s for %ld s",
                        url, c->h->timeout_s);
    if (r->end == DGM_FETCH_TLS && dgm_str_starts(r->what, DGM_STR("the server at")))
        return dgm_fail(c->err, DGM_UNAVAILABLE, NULL, "the server at %s does not use TLS", url);
    if (r->end == DGM_FETCH_TLS && dgm_str_starts(r->what, DGM_STR("the certificate of")))
        return dgm_fail(c->err, DGM_UNAVAILABLE, NULL, "cannot trust %s: %.*s", url,
                        DGM_P(r->what));
    if (c->a->status || r->end == DGM_FETCH_REDIRECT || r->end == DGM_FETCH_TOO_LARGE)
        return dgm_fail(c->err, DGM_UNAVAILABLE, NULL, "cannot read %s: %.*s", url, DGM_P(r->what));
    return dgm_fail(c->err, DGM_UNAVAILABLE, NULL, "cannot reach %s: %.*s", url, DGM_P(r->what));
}

static void client_http_on_end(void *user, const dgm_fetch_result *result)
{
    struct call *c = user;
    c->fetch = NULL;
    if (result->end != DGM_FETCH_OK)
        c->code = client_http_failure(c, result);
    c->h->ready = true;
}

static void client_http_on_tick(uv_timer_t *t)
{
    struct http *h = t->data;
    if (h->call->q->on_tick)
        h->call->q->on_tick(h->call->q->arg);
}

static size_t client_http_headers(const struct http_request *q, dgm_fetch_header *to)
{
    size_t n = 0;
    for (const char *const *line = q->headers; *line; line++) {
        const char *colon = strchr(*line, ':'), *value = colon + 1;
        while (*value == ' ')
            value++;
        to[n++] = (dgm_fetch_header){{*line, (size_t)(colon - *line)}, dgm_str_from(value)};
    }
    return n;
}

static void client_http_start(struct call *c)
{
    dgm_fetch_header headers[DGM_CLI_MAX_VALUES + 8];
    uint64_t silence = (uint64_t)c->h->timeout_s * 1000;
    dgm_fetch_options o = {
        .method = c->q->method,
        .url = c->q->url,
        .headers = headers,
        .n_headers = client_http_headers(c->q, headers),
        .body = c->q->body,
        .tls.ca_file = c->h->ca_file,
        .follows = c->q->follows,
        .limits = {.connect_ms = CONNECT_MS, .first_byte_ms = silence, .silence_ms = silence}};
    choose_proxy(c->h, &o);
    uv_update_time(&c->h->loop);
    c->h->call = c;
    c->fetch = dgm_fetch_start(
        c->h->client, &o,
        (dgm_fetch_handler){client_http_on_head, client_http_on_body, client_http_on_end, c});
    uv_timer_start(&c->h->tick, client_http_on_tick, TICK_MS, TICK_MS);
}

dgm_code dgm_client_http_call(struct http *h, const struct http_request *q,
                              struct http_answer *ret_answer, dgm_err *err)
{
    struct call c = {.h = h, .q = q, .a = ret_answer, .err = err};
    *ret_answer = (struct http_answer){0};
    dgm_buf_init(&ret_answer->body, DGM_MAX_OBJECT_BYTES);
    client_http_start(&c);
    client_http_run(h);
    client_http_stop(h); /* if it was interrupted before */
    uv_timer_stop(&h->tick);
    h->call = NULL;
    if (h->interrupted)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "interrupted");
    if (ret_answer->body.over)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "the response from %s is larger than %zu bytes",
                        q->url, DGM_MAX_OBJECT_BYTES);
    return c.enough ? DGM_OK : c.code;
}

void dgm_client_http_response_done(struct http_answer *a)
{
    dgm_buf_done(&a->body);
}
