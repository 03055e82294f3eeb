/*
 * mcp/mcp_http.c - the transport to a URL: every message is a POST, answered by JSON or by an event stream that ends with
 * the response.
 *
 * 2025-11-25 has a session id, which initialize returns, and a stream of its own for the server's messages (GET). With
 * 2026-07-28 closing a stream cancels its request.
 */
#include "mcp/mcp_int.h"
#include "wire/sse/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define MAX_REDIRECTS 3
#define CONNECT_MS 10000
#define MAX_STREAM_PAUSE_MS 60000
#define STREAM_OPEN_MS 1000 /* some servers send the head of a stream with its first event */

struct mcp_post {
    struct mcp_post *next;
    struct mcp_session *session;
    struct mcp_request *request; /* NULL: none, or it has its reply */
    dgm_fetch *fetch;            /* NULL: it has ended */
    dgm_arena *arena;            /* what is sent: for redirects */
    dgm_arena *scratch;          /* of one message */
    dgm_fetch_options options;
    dgm_buf body;
    dgm_sse sse;
    int status;
    unsigned n_redirects, n_resumed;
    char *location;
    dgm_str last_id; /* 2025-11-25: of the stream that this one continues; absent: none */
    dgm_timer timer; /* before a stream is resumed */
    bool is_sse;
    bool is_get;         /* the stream of 2025-11-25 */
    bool is_initialized; /* notifications/initialized: the session is ready when it was received */
    bool in_callback;    /* freed when it returns */
    bool is_dropped;
    bool is_canceled; /* the server has to see that the stream was closed */
};

/* ---- the end ------------------------------------------------------------------------------------------ */

static void post_free(struct mcp_post *p)
{
    struct mcp_session *s = p->session;
    struct mcp_post **at = &s->posts;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (s->stream == p)
        s->stream = NULL;
    dgm_buf_done(&p->body);
    dgm_sse_done(&p->sse);
    free(p->location);
    dgm_timer_stop(&p->timer);
    dgm_arena_free(p->scratch);
    dgm_arena_free(p->arena); /* p is in it */
    dgm_mcp_session_soon(s);
}

void dgm_mcp_http_drop(struct mcp_post *p, bool is_canceled)
{
    p->request = NULL;
    p->is_dropped = true;
    p->is_canceled = is_canceled;
    if (p->in_callback)
        return;
    if (p->fetch)
        dgm_fetch_cancel(p->fetch);
    post_free(p);
}

static void post_fail(struct mcp_post *p, dgm_code code, bool is_unknown, dgm_str message)
{
    struct mcp_request *r = p->request;
    p->request = NULL;
    if (!r)
        return;
    r->post = NULL;
    dgm_mcp_reply(r,
                  &(struct mcp_reply){
                      .error = {.code = code, .message = message, .is_outcome_unknown = is_unknown},
                      .status = p->status,
                  });
}

/* ---- what comes --------------------------------------------------------------------------------------- */

/* False: no more of this answer is needed. */
static bool post_receive(struct mcp_post *p, dgm_str text)
{
    bool ok;
    dgm_arena_reset(p->scratch);
    ok = dgm_mcp_receive(p->session, p->scratch, text, p->request, p->status);
    if (!ok && p->request)
        post_fail(p, DGM_UNAVAILABLE, true,
                  DGM_STR("the MCP server's answer is not a JSON-RPC message"));
    return !p->is_dropped && (p->request || p->is_get);
}

static bool post_read_events(struct mcp_post *p)
{
    dgm_sse_event event;
    dgm_err err = {0};
    dgm_code rc;
    while (!(rc = dgm_sse_next(&p->sse, &event, &err)) && event.data.p) {
        if (!post_receive(p, event.data))
            return false;
    }
    if (rc)
        post_fail(p, DGM_TOO_LARGE, true,
                  DGM_STR("an event of the MCP server is larger than the limit record_bytes"));
    return !rc;
}

/* A session of 2025-11-25 is ready when its stream is open, or is not offered: no message of a call is missed. */
static void stream_is_decided(struct mcp_session *s)
{
    if (s->state != MCP_INITIALIZING)
        return;
    dgm_timer_stop(&s->stream_timer);
    dgm_mcp_session_ready(s);
}

static void post_on_head(void *user, const dgm_fetch_head *head)
{
    struct mcp_post *p = user;
    dgm_str id = dgm_fetch_header_of(head, "mcp-session-id");
    dgm_str location = dgm_fetch_header_of(head, "location");
    p->status = head->status;
    p->is_sse =
        head->status == 200 && dgm_str_eq_nocase(head->content_type, DGM_STR("text/event-stream"));
    if (location.n && location.n < 4096)
        p->location = strndup(location.p, location.n);
    if (id.n && id.n <= DGM_MAX_ID_BYTES && head->status == 200 && p->request &&
        strcmp(p->request->method, "initialize") == 0) {
        free(p->session->session_id);
        p->session->session_id = strndup(id.p, id.n);
    }
    if (p->is_get && p->is_sse)
        p->session->n_streams = 0;
    if (p->is_get)
        stream_is_decided(p->session);
}

static void post_on_body(void *user, dgm_str bytes)
{
    struct mcp_post *p = user;
    bool goes_on = true;
    p->in_callback = true;
    if (p->is_sse) {
        dgm_sse_feed(&p->sse, bytes.p, bytes.n);
        goes_on = post_read_events(p);
    } else {
        dgm_buf_add_str(&p->body, bytes);
        if (p->body.over)
            post_fail(
                p, DGM_TOO_LARGE, true,
                DGM_STR("the answer of the MCP server is larger than the limit object_bytes"));
        goes_on = !p->body.over;
    }
    p->in_callback = false;
    if (goes_on && !p->is_dropped)
        return;
    if (p->is_canceled || p->body.over)
        dgm_fetch_cancel(p->fetch);
    else
        dgm_fetch_release(p->fetch); /* what follows the response is not needed */
    post_free(p);
}

/* ---- the end of an answer ----------------------------------------------------------------------------- */

static dgm_code code_of_status(int status)
{
    return status == 401   ? DGM_UNAUTHENTICATED
           : status == 403 ? DGM_FORBIDDEN
           : status == 429 ? DGM_RATE_LIMITED
           : status == 504 ? DGM_UPSTREAM_TIMEOUT
                           : DGM_UNAVAILABLE;
}

static void post_fail_status(struct mcp_post *p)
{
    char message[200];
    const char *meaning = p->status == 401   ? "it wants other credentials: see token_env"
                          : p->status == 403 ? "it forbids this"
                          : p->status == 404 ? "there is no MCP server at this URL"
                          : p->status == 405 ? "it does not accept POST at this URL"
                          : p->status == 429 ? "it gets too many requests"
                          : p->status >= 500 ? "it failed"
                          : p->status >= 400 ? "it rejects the request"
                          : p->status >= 300 ? "it redirects, which is not followed"
                                             : "it did not answer the request";
    snprintf(message, sizeof message, "the MCP server answered with status %d: %s", p->status,
             meaning);
    post_fail(p, code_of_status(p->status), p->status >= 500 || p->status < 300 || p->n_resumed > 0,
              dgm_str_from(message));
}

static void post_start(struct mcp_post *p);

/* A redirect within the origin of the configuration: the server did not handle the request. */
static bool post_follow(struct mcp_post *p)
{
    struct mcp_session *s = p->session;
    const char *origin_end;
    char *url = NULL;
    if ((p->status != 307 && p->status != 308) || !p->location ||
        ++p->n_redirects > MAX_REDIRECTS || p->is_dropped)
        return false;
    if (p->location[0] == '/' && p->location[1] != '/') {
        origin_end = strstr(s->url, "://") + 3;
        origin_end += strcspn(origin_end, "/?#");
        size_t n = (size_t)(origin_end - s->url);
        url = dgm_xmalloc(n + strlen(p->location) + 1);
        memcpy(url, s->url, n);
        memcpy(url + n, p->location, strlen(p->location) + 1);
    } else if (dgm_url_is_same_origin(s->mcp->config.url, p->location)) {
        url = strdup(p->location);
    }
    if (!url)
        return false;
    free(s->url);
    s->url = url;
    free(p->location);
    p->location = NULL;
    dgm_buf_clear(&p->body);
    post_start(p);
    return true;
}

/* 2025-11-25: the server does not know our session any more, so it did not handle the request. */
static bool post_is_forgotten(const struct mcp_post *p)
{
    return p->status == 404 && p->session->session_id && p->request &&
           p->session->state == MCP_READY && !p->session->is_modern;
}

static void post_forget(struct mcp_post *p)
{
    struct mcp_session *s = p->session;
    struct mcp_request *r = p->request;
    p->request = NULL;
    r->post = NULL;
    dgm_mcp_reply(
        r, &(struct mcp_reply){.error = {.code = DGM_UNAVAILABLE,
                                         .message = DGM_STR("the MCP server ended its session")},
                               .status = 404,
                               .is_session_forgotten = true});
    dgm_mcp_session_restart(s);
}

static void post_resume(struct mcp_post *p);

/* 2025-11-25: a server may end a stream on purpose and continue it when it is asked for (SEP-1699). */
static bool post_can_resume(const struct mcp_post *p)
{
    return p->request && p->is_sse && dgm_sse_last_id(&p->sse).n && !p->session->is_modern &&
           p->n_resumed < DGM_MAX_MCP_ROUNDS && !p->is_dropped;
}

static void post_finish(struct mcp_post *p)
{
    if (p->is_sse) {
        dgm_sse_end(&p->sse);
        if (post_read_events(p) && post_can_resume(p))
            post_resume(p);
        else
            post_fail(p, DGM_UNAVAILABLE, true,
                      DGM_STR("the MCP server ended its answer without a response"));
        return;
    }
    if (!p->request)
        return;
    if (post_is_forgotten(p)) {
        post_forget(p);
        return;
    }
    dgm_str text = dgm_buf_str(&p->body);
    dgm_arena_reset(p->scratch);
    if (text.n && text.n <= DGM_MAX_OBJECT_BYTES && p->status != 401 &&
        dgm_mcp_receive(p->session, p->scratch, text, p->request, p->status) && !p->request)
        return;
    if (!p->request || p->is_dropped)
        return;
    if (p->status == 200)
        post_fail(p, DGM_UNAVAILABLE, true,
                  DGM_STR("the MCP server's answer is not a JSON-RPC response"));
    else
        post_fail_status(p);
}

static dgm_code code_of_end(dgm_fetch_end end)
{
    return end == DGM_FETCH_TIMEOUT     ? DGM_UPSTREAM_TIMEOUT
           : end == DGM_FETCH_TOO_LARGE ? DGM_TOO_LARGE
           : end == DGM_FETCH_REFUSED   ? DGM_FORBIDDEN
                                        : DGM_UNAVAILABLE;
}

/* The stream for the server's messages is opened again, later and later if it does not stay. */
static void post_open_stream_later(struct mcp_session *s)
{
    uint64_t pause = (uint64_t)1000 << (s->n_streams < 6 ? s->n_streams : 6);
    s->n_streams++;
    if (s->state == MCP_READY && !s->is_ended)
        dgm_timer_start(&s->stream_timer,
                        pause < MAX_STREAM_PAUSE_MS ? pause : MAX_STREAM_PAUSE_MS);
}

static void post_on_end(void *user, const dgm_fetch_result *result)
{
    struct mcp_post *p = user;
    struct mcp_session *s = p->session;
    p->fetch = NULL;
    p->in_callback = true;
    if (result->end != DGM_FETCH_OK && result->end != DGM_FETCH_STOPPED && post_can_resume(p))
        post_resume(p);
    else if (result->end != DGM_FETCH_OK)
        post_fail(p, code_of_end(result->end), result->may_be_received || p->status, result->what);
    else if (post_follow(p))
        return;
    else
        post_finish(p);
    bool opens_again = p->is_get && p->is_sse && !p->is_dropped;
    bool is_initialized = p->is_initialized && !p->is_dropped;
    bool is_get = p->is_get && !p->is_dropped;
    post_free(p);
    if (is_get)
        stream_is_decided(s);
    if (is_initialized)
        dgm_mcp_start_initialized(s);
    if (opens_again)
        post_open_stream_later(s);
}

/* ---- starting ----------------------------------------------------------------------------------------- */

static void post_start(struct mcp_post *p)
{
    struct mcp_session *s = p->session;
    dgm_client *client = dgm_client_of_loop(s->loop);
    p->in_callback = false;
    p->options.url = s->url;
    p->status = 0;
    if (!client) { /* the loop stops: the session ends with it */
        return;
    }
    p->fetch = dgm_fetch_start(client, &p->options,
                               (dgm_fetch_handler){post_on_head, post_on_body, post_on_end, p});
}

static void add_header(struct mcp_post *p, const char *name, dgm_str value)
{
    dgm_fetch_header *h = (dgm_fetch_header *)(uintptr_t)p->options.headers;
    h[p->options.n_headers++] =
        (dgm_fetch_header){dgm_str_from(name), dgm_arena_dup(p->arena, value)};
}

static void add_headers(struct mcp_post *p, const struct mcp_send *send)
{
    const struct mcp_session *s = p->session;
    const dgm_mcp_config *c = &s->mcp->config;
    size_t n_send = send ? send->n_headers : 0;
    p->options.headers = dgm_new_n(p->arena, dgm_fetch_header, c->n_headers + n_send + 9);
    add_header(p, "Accept",
               p->options.body.p ? DGM_STR("application/json, text/event-stream")
                                 : DGM_STR("text/event-stream"));
    if (p->options.body.p)
        add_header(p, "Content-Type", DGM_STR("application/json"));
    if (s->version[0])
        add_header(p, "MCP-Protocol-Version", dgm_str_from(s->version));
    if (s->session_id && !s->is_modern)
        add_header(p, "Mcp-Session-Id", dgm_str_from(s->session_id));
    if (p->last_id.n)
        add_header(p, "Last-Event-ID", p->last_id);
    if (s->is_modern && send)
        add_header(p, "Mcp-Method", dgm_str_from(send->method));
    if (s->is_modern && send && send->name.n)
        add_header(p, "Mcp-Name", dgm_mcp_header_value(p->arena, send->name));
    for (size_t i = 0; s->is_modern && i < n_send; i++)
        add_header(p, dgm_arena_dup(p->arena, send->headers[i].name).p, send->headers[i].value);
    for (size_t i = 0; i < c->n_headers; i++)
        add_header(p, c->headers[i].name.p, c->headers[i].value);
}

static void post_on_timer(void *arg)
{
    post_start(arg);
}

static struct mcp_post *post_new(struct mcp_session *s, const char *method, dgm_str body)
{
    const dgm_mcp_config *c = &s->mcp->config;
    dgm_arena *a = dgm_arena_new_small(1024 + body.n);
    struct mcp_post *p = dgm_new(a, struct mcp_post);
    p->arena = a;
    p->scratch = dgm_arena_new_small(1024);
    p->session = s;
    p->options = (dgm_fetch_options){
        .method = method,
        .body = body.p ? dgm_arena_dup(a, body) : (dgm_str){0},
        .tls = c->tls,
        .is_guarded = c->is_guarded,
        .allowed = c->allowed,
        .limits = {.connect_ms = CONNECT_MS},
    };
    dgm_buf_init(&p->body, DGM_MAX_OBJECT_BYTES);
    dgm_sse_init(&p->sse);
    dgm_timer_init(s->loop, &p->timer, post_on_timer, p);
    p->next = s->posts;
    s->posts = p;
    return p;
}

/* The rest of the answer is asked for with a GET; the request itself is not repeated. */
static void post_resume(struct mcp_post *p)
{
    struct mcp_post *q = post_new(p->session, "GET", (dgm_str){0});
    int64_t ms = p->sse.retry_ms;
    q->request = p->request;
    q->request->post = q;
    p->request = NULL;
    q->last_id = dgm_arena_dup(q->arena, dgm_sse_last_id(&p->sse));
    q->n_resumed = p->n_resumed + 1;
    add_headers(q, NULL);
    dgm_timer_start(&q->timer, ms < 0                     ? 1000
                               : ms > MAX_STREAM_PAUSE_MS ? MAX_STREAM_PAUSE_MS
                                                          : (uint64_t)ms);
}

void dgm_mcp_http_post(struct mcp_session *s, struct mcp_request *r, dgm_str message,
                       const struct mcp_send *send)
{
    struct mcp_post *p = post_new(s, "POST", message);
    p->request = r;
    if (r)
        r->post = p;
    if (!r || (send && send->timeout_ms))
        p->options.limits.total_ms = r ? 0 : s->mcp->config.start_ms;
    add_headers(p, send);
    post_start(p);
}

void dgm_mcp_http_initialized(struct mcp_session *s)
{
    dgm_mcp_notify(s, "notifications/initialized", (dgm_str){0});
    if (s->posts)
        s->posts->is_initialized = true; /* the one that was just made */
}

void dgm_mcp_http_listen(struct mcp_session *s)
{
    struct mcp_post *p = post_new(s, "GET", (dgm_str){0});
    p->is_get = true;
    add_headers(p, NULL);
    s->stream = p;
    post_start(p);
    if (s->state == MCP_INITIALIZING)
        dgm_timer_start(&s->stream_timer, STREAM_OPEN_MS);
}

void dgm_mcp_http_on_stream_timer(void *arg)
{
    struct mcp_session *s = arg;
    stream_is_decided(s);
    if (s->state == MCP_READY && !s->stream && !s->is_ended)
        dgm_mcp_http_listen(s);
}

/* Ends the session of 2025-11-25; its answer is not waited for longer than a moment. */
static void http_delete_session(struct mcp_session *s)
{
    struct mcp_post *p = post_new(s, "DELETE", (dgm_str){0});
    p->options.limits.total_ms = s->mcp->config.grace_ms;
    add_headers(p, NULL);
    post_start(p);
}

void dgm_mcp_http_stop(struct mcp_session *s, bool at_once)
{
    struct mcp_post *next;
    for (struct mcp_post *p = s->posts; p; p = next) {
        next = p->next;
        if (!p->request) /* those of requests are closed with them */
            dgm_mcp_http_drop(p, true);
    }
    s->n_streams = 0;
    if (!at_once && s->session_id && !s->is_modern)
        http_delete_session(s);
    free(s->session_id);
    s->session_id = NULL;
}
