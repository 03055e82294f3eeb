/*
 * app/client/client_call.c - one operation: encodes the request in the peer's dialect, decodes the response.
 *
 * The response is decoded by the codec of the chosen version and binding; the caller gets model structs, which do not
 * depend on the version.
 */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "wire/sse/sse.h"

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
        t->code = t->p->at.codec->decode(&r, v, dgm_a2a_methods[t->call->method].result,
                                         t->in_stream, &frame);
    if (t->code && t->call->raw) {
        t->code = DGM_OK;
        return true;
    }
    if (t->code) {
        dgm_err why = *t->err;
        dgm_fail(t->err, DGM_INVALID_AGENT_RESPONSE, NULL, "invalid response: not A2A %s: %s%s%s",
                 t->p->at.is_v1 ? "1.0" : "0.3", why.msg, why.at[0] ? " at " : "", why.at);
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

/* An HTTP status other than 2xx: what the body reports, if it can be read. */
static dgm_code http_refusal(struct reading *t, const struct http_answer *answer)
{
    long status = answer->status;
    dgm_peer_error *e = dgm_a2a_error_of(t->arena, t->p->at.codec, dgm_buf_str(&answer->body));
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
    return dgm_fail(t->err, code, NULL, "%.*s responded with HTTP status %ld", DGM_P(t->p->at.url),
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
    to[n++] = p->at.is_v1 ? "A2A-Version: 1.0" : "A2A-Version: 0.3";
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
    const char *headers[DGM_CLI_MAX_VALUES + 8], *method;
    struct reading t = {.p = p, .call = call, .arena = objects, .err = err};
    struct http_answer answer = {0};
    dgm_buf url, body;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&url, 64 << 10);
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    dgm_sse_init(&t.sse);
    method = dgm_a2a_put_route(&p->at, call->method, call->params, &url);
    dgm_buf_add_char(&url, '\0');
    if (strcmp(method, "POST") == 0)
        rc = dgm_a2a_put_body(&p->at, call->method, call->params, a, &body, err);
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
