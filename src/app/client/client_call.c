/*
 * app/client/client_call.c - one operation: encodes the request in the peer's dialect, decodes the response.
 *
 * The response is decoded by the codec of the chosen version and binding; the caller gets model structs, which do not
 * depend on the version.
 */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "wire/a2a/a2a.h"
#include "wire/sse/sse.h"

#include <ctype.h>

/* ---- the request ------------------------------------------------------------------------------------------- */

static void put_escaped(dgm_buf *b, dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (isalnum(c) || strchr("-._~", c))
            dgm_buf_add_char(b, (char)c);
        else
            dgm_buf_printf(b, "%%%02X", c);
    }
}

static void put_query(dgm_buf *b, char *mark, const char *name, dgm_str value)
{
    if (!value.n)
        return;
    dgm_buf_add_char(b, *mark);
    dgm_buf_add_str(b, dgm_str_from(name));
    dgm_buf_add_char(b, '=');
    put_escaped(b, value);
    *mark = '&';
}

static void put_query_int(dgm_buf *b, char *mark, const char *name, dgm_opt_int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n.value);
    put_query(b, mark, name, n.set ? dgm_str_from(text) : (dgm_str){0});
}

static void put_list_query(dgm_buf *b, const dgm_list_tasks_request *l)
{
    static const char *const states[] = {
        "TASK_STATE_UNSPECIFIED",    "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",      "TASK_STATE_FAILED",    "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_REJECTED",  "TASK_STATE_AUTH_REQUIRED"};
    char mark = '?';
    put_query(b, &mark, "contextId", l->context_id);
    if (l->status.set)
        put_query(b, &mark, "status", dgm_str_from(states[l->status.value]));
    put_query_int(b, &mark, "pageSize", l->page_size);
    put_query(b, &mark, "pageToken", l->page_token);
    put_query_int(b, &mark, "historyLength", l->history_length);
}

/* The address of an operation in the HTTP+JSON binding, and its verb. */
static const char *put_route(const peer *p, const struct peer_call *call, dgm_buf *url)
{
    const dgm_task_request *task = call->params;
    char mark = '?';
    dgm_str base = p->url;
    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    dgm_buf_add_str(url, base);
    if (!p->is_v1 && !(base.n > 3 && memcmp(base.p + base.n - 3, "/v1", 3) == 0))
        dgm_buf_add_lit(url, "/v1");
    if (p->tenant.n) {
        dgm_buf_add_char(url, '/');
        put_escaped(url, p->tenant);
    }
    switch (call->method) {
    case DGM_METHOD_SEND: dgm_buf_add_lit(url, "/message:send"); return "POST";
    case DGM_METHOD_STREAM: dgm_buf_add_lit(url, "/message:stream"); return "POST";
    case DGM_METHOD_LIST:
        dgm_buf_add_lit(url, "/tasks");
        put_list_query(url, call->params);
        return "GET";
    default: break;
    }
    dgm_buf_add_lit(url, "/tasks/");
    put_escaped(url, task->task_id);
    if (call->method == DGM_METHOD_CANCEL) {
        dgm_buf_add_lit(url, ":cancel");
        return "POST";
    }
    if (call->method == DGM_METHOD_SUBSCRIBE)
        dgm_buf_add_lit(url, ":subscribe");
    else
        put_query_int(url, &mark, "historyLength", task->history_length);
    return "GET";
}

static dgm_code put_body(const peer *p, const struct peer_call *call, dgm_arena *a, dgm_buf *body,
                         dgm_err *err)
{
    dgm_frame frame = {.envelope = p->is_rest ? DGM_ENVELOPE_NONE : DGM_ENVELOPE_REQUEST,
                       .id = dgm_json_parse_trusted(a, DGM_STR("1")),
                       .method = call->method,
                       .object = {dgm_a2a_methods[call->method].params, call->params}};
    dgm_writer w = {.out = body};
    if (p->is_rest && call->method == DGM_METHOD_CANCEL) {
        dgm_buf_add_lit(body, "{}");
        return DGM_OK;
    }
    dgm_code rc = p->codec->encode(&w, &frame, err);
    if (!rc && body->over)
        rc = dgm_fail(err, DGM_TOO_LARGE, NULL, "the message is larger than %zu bytes", body->max);
    return rc;
}

/* ---- the answer ------------------------------------------------------------------------------------------------ */

struct reading {
    peer *p;
    const struct peer_call *call;
    dgm_arena *arena; /* of one object */
    dgm_sse sse;
    bool in_stream;
    bool enough; /* whoever takes it wants no more; then the bytes are gone too */
    dgm_code code;
    dgm_err *err;
};

/* The server's own sentence. The number of a JSON-RPC error is printed only if there is no sentence. */
static dgm_code refused(dgm_err *err, const dgm_peer_error *e)
{
    dgm_code code = e->code ? e->code : DGM_INTERNAL;
    char number[48] = "";
    if (e->http_status)
        snprintf(number, sizeof number, "HTTP status %d", e->http_status);
    else if (e->rpc_code && !e->message.n)
        snprintf(number, sizeof number, "error %d without a message", e->rpc_code);
    return dgm_fail(err, code, NULL, "the server rejected the request: %s%s%.*s", number,
                    number[0] && e->message.n ? ": " : "", DGM_P(e->message));
}

/* False: enough, or it failed and code is set. */
static bool call_read_text(struct reading *t, dgm_str text, dgm_str event_id)
{
    yyjson_val *v;
    dgm_frame frame;
    dgm_mint mint = {{0}, 0, {0}};
    dgm_reader r = {.arena = t->arena, .mint = &mint, .err = t->err};
    dgm_arena_reset(t->arena);
    t->code = dgm_json_read(t->arena, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, t->err);
    if (!t->code)
        t->code = t->p->codec->decode(&r, v, dgm_a2a_methods[t->call->method].result, t->in_stream,
                                      &frame);
    if (t->code && t->call->raw) {
        t->code = DGM_OK;
        return true;
    }
    if (t->code) {
        dgm_err why = *t->err;
        dgm_fail(t->err, DGM_INVALID_AGENT_RESPONSE, NULL, "invalid response: not A2A %s: %s%s%s",
                 t->p->is_v1 ? "1.0" : "0.3", why.msg, why.at[0] ? " at " : "", why.at);
        return false;
    }
    if (frame.object.kind == DGM_OBJECT_ERROR) {
        if (t->call->raw && t->in_stream)
            return true;
        t->code = refused(t->err, frame.object.it);
        return false;
    }
    t->enough = !t->call->on_object(&frame.object, event_id, t->call->arg);
    return !t->enough;
}

static bool call_read_events(struct reading *t)
{
    dgm_sse_event e;
    while (!(t->code = dgm_sse_next(&t->sse, &e, t->err)) && e.data.p) {
        if (!call_read_text(t, e.data, e.id))
            return false;
    }
    return !t->code;
}

static bool on_stream(const char *bytes, size_t n, void *arg)
{
    struct reading *t = arg;
    t->in_stream = true;
    if (t->call->raw)
        t->call->raw(t->call->arg, bytes, n);
    dgm_sse_feed(&t->sse, bytes, n);
    return call_read_events(t);
}

static void on_tick(void *arg)
{
    struct reading *t = arg;
    if (t->call->on_tick)
        t->call->on_tick(t->call->arg);
}

dgm_peer_error *dgm_peer_error_of(dgm_arena *a, const dgm_codec *codec, dgm_str body)
{
    yyjson_val *v;
    dgm_frame frame;
    dgm_err unread = {0};
    dgm_reader r = {.arena = a, .err = &unread};
    if (dgm_json_read(a, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &unread) ||
        !yyjson_is_obj(v))
        return NULL;
    dgm_object_kind kind = dgm_json_get(v, DGM_STR("jsonrpc")) ? DGM_OBJECT_NONE : DGM_OBJECT_ERROR;
    if (codec->decode(&r, v, kind, false, &frame) || frame.object.kind != DGM_OBJECT_ERROR)
        return NULL;
    return frame.object.it;
}

/* An HTTP status other than 2xx: what the body reports, if it can be read. */
static dgm_code http_refusal(struct reading *t, const struct http_answer *answer)
{
    long status = answer->status;
    dgm_peer_error *e = dgm_peer_error_of(t->arena, t->p->codec, dgm_buf_str(&answer->body));
    if (e) {
        if (!e->http_status)
            e->http_status = (int32_t)status;
        if (!e->code || status == 401 || status == 403)
            e->code = status == 401 ? DGM_UNAUTHENTICATED : status == 403 ? DGM_FORBIDDEN : e->code;
        return refused(t->err, e);
    }
    dgm_code code = status == 401   ? DGM_UNAUTHENTICATED
                    : status == 403 ? DGM_FORBIDDEN
                                    : DGM_INVALID_AGENT_RESPONSE;
    return dgm_fail(t->err, code, NULL, "%.*s responded with HTTP status %ld", DGM_P(t->p->url),
                    status);
}

static dgm_code call_read_answer(struct reading *t, const struct http_answer *answer)
{
    if (t->code || t->enough)
        return t->code;
    if (answer->status / 100 != 2)
        return http_refusal(t, answer);
    if (!answer->is_stream) {
        if (t->call->raw)
            t->call->raw(t->call->arg, answer->body.p, answer->body.n);
        call_read_text(t, dgm_buf_str(&answer->body), (dgm_str){0});
        return t->code;
    }
    dgm_sse_end(&t->sse);
    call_read_events(t);
    return t->code;
}

/* ---- the call --------------------------------------------------------------------------------------------------------- */

static size_t headers_of(const peer *p, const struct peer_call *call, dgm_arena *a, const char **to)
{
    size_t n = 0;
    to[n++] = "Content-Type: application/json";
    to[n++] = dgm_a2a_methods[call->method].result == DGM_OBJECT_STREAM_RESPONSE
                  ? "Accept: text/event-stream, application/json"
                  : "Accept: application/json";
    to[n++] = p->is_v1 ? "A2A-Version: 1.0" : "A2A-Version: 0.3";
    if (call->last_event)
        to[n++] = dgm_arena_printf(a, "Last-Event-ID: %s", call->last_event).p;
    for (size_t i = 0; p->headers[i]; i++)
        to[n++] = p->headers[i];
    to[n] = NULL;
    return n;
}

dgm_code dgm_peer_call(peer *p, const struct peer_call *call, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new(), *objects = dgm_arena_new();
    const char *headers[DGM_CLI_MAX_VALUES + 8], *method = "POST";
    struct reading t = {.p = p, .call = call, .arena = objects, .err = err};
    struct http_answer answer = {0};
    dgm_buf url, body;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&url, 64 << 10);
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    dgm_sse_init(&t.sse);
    if (p->is_rest)
        method = put_route(p, call, &url);
    else
        dgm_buf_add_str(&url, p->url);
    dgm_buf_add_char(&url, '\0');
    if (strcmp(method, "POST") == 0)
        rc = put_body(p, call, a, &body, err);
    headers_of(p, call, a, headers);
    if (!rc) {
        struct http_request q = {.method = method,
                                 .url = url.p,
                                 .headers = headers,
                                 .body = body.n ? dgm_buf_str(&body) : (dgm_str){0},
                                 .on_stream = on_stream,
                                 .on_tick = on_tick,
                                 .arg = &t};
        rc = dgm_client_http_call(p->http, &q, &answer, err);
        if (!rc || t.code)
            rc = call_read_answer(&t, &answer);
        dgm_client_http_response_done(&answer);
    }
    dgm_sse_done(&t.sse);
    dgm_buf_done(&url);
    dgm_buf_done(&body);
    return rc;
}
