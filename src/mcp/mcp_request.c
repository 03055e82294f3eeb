/* mcp/mcp_request.c - JSON-RPC: our requests and their replies, and the messages that a server sends on its own. */
#include "mcp/mcp_int.h"
#include "wire/jsonrpc/jsonrpc.h"

#include <stdio.h>
#include <stdlib.h>

#define CAPABILITIES                                                                               \
    "{\"elicitation\":{\"form\":{},\"url\":{}},\"extensions\":{\"io.modelcontextprotocol/"         \
    "tasks\":{}}}"

/* ---- sending ------------------------------------------------------------------------------------------ */

static void put_member_str(dgm_buf *b, const char *key, dgm_str text)
{
    if (!text.n)
        return;
    if (b->p[b->n - 1] != '{')
        dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(key));
    dgm_buf_add_char(b, ':');
    dgm_json_put_str(b, text);
}

static void put_meta(dgm_buf *b, const struct mcp_session *s, const struct mcp_send *send,
                     int64_t id)
{
    dgm_buf_add_lit(b, "\"_meta\":{");
    if (s->is_modern) {
        put_member_str(b, "io.modelcontextprotocol/protocolVersion", dgm_str_from(s->version));
        dgm_buf_add_lit(b, ",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"dragoman\"");
        put_member_str(b, "version", dgm_str_from(s->mcp->config.client_version));
        dgm_buf_add_lit(b, "},\"io.modelcontextprotocol/clientCapabilities\":" CAPABILITIES);
    }
    if (send->call) {
        dgm_buf_printf(b, "%s\"progressToken\":%lld", s->is_modern ? "," : "", (long long)id);
        put_member_str(b, "traceparent", send->call->traceparent);
        put_member_str(b, "dragoman/callId", send->call->call_id);
        if (send->call->fence)
            dgm_buf_printf(b, ",\"dragoman/fence\":%llu", (unsigned long long)send->call->fence);
    }
    dgm_buf_add_char(b, '}');
}

static void put_request(dgm_buf *b, const struct mcp_session *s, const struct mcp_send *send,
                        int64_t id)
{
    bool has_meta = s->is_modern || send->call;
    dgm_buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":{",
                   (long long)id, send->method);
    dgm_buf_add_str(b, send->params);
    if (has_meta && send->params.n)
        dgm_buf_add_char(b, ',');
    if (has_meta)
        put_meta(b, s, send, id);
    dgm_buf_add_lit(b, "}}");
}

static void request_on_timer(void *arg)
{
    struct mcp_request *r = arg;
    struct mcp_session *s = r->session;
    char message[200];
    snprintf(message, sizeof message, "MCP server %.*s: %s was not answered in time",
             DGM_P(s->mcp->config.name), r->method);
    dgm_mcp_reply(r, &(struct mcp_reply){.error = {.code = DGM_UPSTREAM_TIMEOUT,
                                                   .message = dgm_str_from(message)}});
}

struct mcp_request *dgm_mcp_send(struct mcp_session *s, const struct mcp_send *send)
{
    struct mcp_request *r = dgm_xcalloc(1, sizeof *r);
    dgm_buf b;
    r->session = s;
    r->id = ++s->last_id;
    r->method = send->method;
    r->on_reply = send->on_reply;
    r->user = send->user;
    r->call = send->call;
    dgm_timer_init(s->loop, &r->timer, request_on_timer, r);
    if (send->timeout_ms)
        dgm_timer_start(&r->timer, send->timeout_ms);
    r->next = s->requests;
    s->requests = r;
    dgm_buf_init(&b, SIZE_MAX); /* params have met their limits */
    put_request(&b, s, send, r->id);
    if (dgm_mcp_is_stdio(s))
        dgm_mcp_stdio_write(s, dgm_buf_str(&b));
    else
        dgm_mcp_http_post(s, r, dgm_buf_str(&b), send);
    dgm_buf_done(&b);
    return s->state == MCP_DOWN || s->state == MCP_CLOSING ? NULL : r;
}

static void send_plain(struct mcp_session *s, const dgm_buf *b)
{
    if (s->state == MCP_DOWN || s->state == MCP_CLOSING)
        return;
    if (dgm_mcp_is_stdio(s))
        dgm_mcp_stdio_write(s, dgm_buf_str(b));
    else
        dgm_mcp_http_post(s, NULL, dgm_buf_str(b), NULL);
}

void dgm_mcp_notify(struct mcp_session *s, const char *method, dgm_str params)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"", method);
    if (params.n)
        dgm_buf_printf(&b, ",\"params\":{%.*s}", DGM_P(params));
    dgm_buf_add_char(&b, '}');
    send_plain(s, &b);
    dgm_buf_done(&b);
}

void dgm_mcp_respond(struct mcp_session *s, const yyjson_val *id, int error_code, dgm_str value)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    if (error_code) {
        dgm_rpc_put_error(&b, id);
        dgm_buf_printf(&b, "{\"code\":%d,\"message\":", error_code);
        dgm_json_put_str(&b, value);
        dgm_buf_add_char(&b, '}');
    } else {
        dgm_rpc_put_result(&b, id);
        dgm_buf_add_str(&b, value);
    }
    dgm_rpc_put_tail(&b);
    send_plain(s, &b);
    dgm_buf_done(&b);
}

/* ---- the end of a request ----------------------------------------------------------------------------- */

static void request_unlink(struct mcp_request *r, bool is_canceled)
{
    struct mcp_request **at = &r->session->requests;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    dgm_timer_stop(&r->timer);
    if (r->post)
        dgm_mcp_http_drop(r->post, is_canceled);
    r->post = NULL;
}

void dgm_mcp_reply(struct mcp_request *r, const struct mcp_reply *reply)
{
    struct mcp_session *s = r->session;
    request_unlink(r, false);
    if (r->on_reply)
        r->on_reply(r->user, reply);
    dgm_timer_close(&r->timer, free, r);
    dgm_mcp_session_soon(s);
}

void dgm_mcp_request_cancel(struct mcp_request *r, bool notify)
{
    struct mcp_session *s = r->session;
    char params[80];
    request_unlink(r, true); /* over HTTP: closes the stream, which is all that 2026-07-28 needs */
    if (notify && (dgm_mcp_is_stdio(s) || !s->is_modern)) {
        snprintf(params, sizeof params, "\"requestId\":%lld,\"reason\":\"canceled\"",
                 (long long)r->id);
        dgm_mcp_notify(s, "notifications/cancelled", dgm_str_from(params));
    }
    dgm_timer_close(&r->timer, free, r);
    dgm_mcp_session_soon(s);
}

void dgm_mcp_fail_requests(struct mcp_session *s, dgm_code code, dgm_str message)
{
    struct mcp_reply reply = {
        .error = {.code = code, .message = message, .is_outcome_unknown = true}};
    while (s->requests)
        dgm_mcp_reply(s->requests, &reply);
}

/* ---- receiving ---------------------------------------------------------------------------------------- */

static struct mcp_request *request_by_id(struct mcp_session *s, const yyjson_val *id)
{
    struct mcp_request *r = s->requests;
    int64_t n;
    if (!id || !dgm_json_int(id, &n))
        return NULL;
    while (r && r->id != n)
        r = r->next;
    return r;
}

static void receive_response(struct mcp_session *s, const dgm_rpc *rpc, struct mcp_request *of,
                             int status)
{
    struct mcp_request *r = request_by_id(s, rpc->id);
    struct mcp_reply reply = {.result = rpc->result, .status = status};
    if (of && rpc->error && (!rpc->id || yyjson_is_null(dgm_mcp_plain(rpc->id))))
        r = of; /* an error for a request that the server could not read */
    if (!r || (of && r != of))
        return; /* late: the request was canceled */
    if (rpc->error) {
        yyjson_val *code = dgm_json_get(rpc->error, DGM_STR("code"));
        reply.data = dgm_json_get(rpc->error, DGM_STR("data"));
        reply.error.code = DGM_INTERNAL;
        reply.error.message = dgm_json_str_member(rpc->error, "message");
        if (!code || !dgm_json_int(code, &reply.error.rpc_code) || !reply.error.rpc_code)
            reply.error.rpc_code = -32603;
        if (!reply.error.message.n)
            reply.error.message = DGM_STR("the MCP server reported an error without a message");
    }
    dgm_mcp_reply(r, &reply);
}

static void receive_progress(struct mcp_session *s, const yyjson_val *params)
{
    struct mcp_request *r = request_by_id(s, dgm_json_get(params, DGM_STR("progressToken")));
    if (r && r->call)
        dgm_mcp_call_progress(r->call, params);
}

static void receive_request(struct mcp_session *s, const dgm_rpc *rpc, struct mcp_request *of)
{
    if (s->is_modern) {
        dgm_mcp_log(s->mcp, "MCP server %.*s: a request of the server was ignored: %.*s",
                    DGM_P(s->mcp->config.name), (int)(rpc->method.n < 80 ? rpc->method.n : 80),
                    rpc->method.p);
    } else if (dgm_str_is(rpc->method, "ping")) {
        dgm_mcp_respond(s, rpc->id, 0, DGM_STR("{}"));
    } else if (dgm_str_is(rpc->method, "elicitation/create")) {
        dgm_mcp_ask_request(s, of, rpc->id, rpc->params);
    } else {
        dgm_mcp_respond(s, rpc->id, -32601, DGM_STR("this client does not offer that method"));
    }
}

static void receive_notification(struct mcp_session *s, const dgm_rpc *rpc)
{
    if (dgm_str_is(rpc->method, "notifications/progress"))
        receive_progress(s, rpc->params);
    else if (dgm_str_is(rpc->method, "notifications/tools/list_changed"))
        s->tools_changed = true;
}

static bool count_message(struct mcp_session *s)
{
    uint64_t second = uv_now(&s->loop->uv) / 1000;
    if (second != s->second) {
        s->second = second;
        s->n_messages = 0;
    }
    return ++s->n_messages <= DGM_MAX_MCP_MESSAGES_PER_SECOND;
}

bool dgm_mcp_receive(struct mcp_session *s, dgm_arena *a, dgm_str text, struct mcp_request *of,
                     int status)
{
    yyjson_val *root;
    dgm_rpc rpc;
    dgm_err err = {0};
    if (dgm_json_count_values(text, DGM_MAX_JSON_VALUES) > DGM_MAX_JSON_VALUES ||
        dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &root, &err) ||
        dgm_rpc_read(root, true, NULL, &rpc, &err))
        return false;
    if (rpc.kind == DGM_RPC_RESPONSE) {
        receive_response(s, &rpc, of, status);
    } else if (!count_message(s)) {
        dgm_mcp_session_fail(s, DGM_UNAVAILABLE,
                             "it sent more than %d messages in a second (limit mcp_messages)",
                             DGM_MAX_MCP_MESSAGES_PER_SECOND);
    } else if (rpc.id && !yyjson_is_null(rpc.id)) {
        receive_request(s, &rpc, of);
    } else {
        receive_notification(s, &rpc);
    }
    return true;
}
