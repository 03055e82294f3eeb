/*
 * wire/a2a/a2a_error.c - errors in four forms.
 *
 *   1.0 JSON-RPC  {code, message, data: [typed objects]}
 *   1.0 REST      {"error": {code: HTTP status, status: gRPC name, message, details: [typed objects]}}
 *   0.3 JSON-RPC  {code, message, data: anything}
 *   0.3 REST      the same; peers agree on `message` alone
 *
 * 1.0's typed objects are protobuf Anys. Free data of 0.3 travels through 1.0 as a
 * google.protobuf.Value and comes back as it was.
 */
#include "base/err.h"
#include "wire/a2a/a2a_int.h"

#define TYPE_PREFIX "type.googleapis.com/google."
#define ERROR_INFO TYPE_PREFIX "rpc.ErrorInfo"
#define ANY_VALUE TYPE_PREFIX "protobuf.Value"

static const dgm_code all_codes[] = {
#define X(sym, rpc, http, grpc, http_100, grpc_100, reason, text) DGM_##sym,
    DGM_CODES(X)
#undef X
};
#define N_CODES (sizeof all_codes / sizeof *all_codes)

/* ---- which error of ours is it? ------------------------------------------------------------------------- */

static bool is_type(const yyjson_val *detail, dgm_str type)
{
    yyjson_val *t = dgm_json_get(detail, DGM_STR("@type"));
    return yyjson_is_str(t) && dgm_str_eq(dgm_json_str(t), type);
}

/* details is an array of objects that all carry @type */
static bool is_typed(const yyjson_val *details)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)details, *e;
    size_t i, n;
    if (!yyjson_is_arr(v))
        return false;
    yyjson_arr_foreach (v, i, n, e) {
        if (!yyjson_is_str(dgm_json_get(e, DGM_STR("@type"))))
            return false;
    }
    return true;
}

static const yyjson_val *find_detail(const yyjson_val *details, dgm_str type)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)details, *e;
    size_t i, n;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e) {
            if (is_type(e, type))
                return e;
        }
    }
    return NULL;
}

/* By reason first, then by JSON-RPC code, then by HTTP status where one code alone has it. */
static dgm_code code_of(const dgm_peer_error *e)
{
    const yyjson_val *info = find_detail(e->details, DGM_STR(ERROR_INFO));
    yyjson_val *reason = info ? dgm_json_get(info, DGM_STR("reason")) : NULL;
    for (size_t i = 1; i < N_CODES; i++) {
        if (yyjson_is_str(reason) && *dgm_code_reason(all_codes[i]) &&
            dgm_str_eq(dgm_json_str(reason), dgm_str_from(dgm_code_reason(all_codes[i]))))
            return all_codes[i];
    }
    for (size_t i = 1; i < N_CODES; i++) {
        /* -32000 is what transports' refusals share; the first row of any other code is it. */
        if (e->rpc_code && e->rpc_code != -32000 && dgm_code_rpc(all_codes[i]) == e->rpc_code)
            return all_codes[i];
    }
    switch (e->http_status) {
    case 400: return DGM_BAD_PARAMS;
    case 401: return DGM_UNAUTHENTICATED;
    case 403: return DGM_FORBIDDEN;
    case 404: /* a route that is not there shares it, by another gRPC name */
        return dgm_str_is(e->status, "UNIMPLEMENTED") ? DGM_NO_SUCH_METHOD : DGM_TASK_NOT_FOUND;
    case 409: return DGM_TASK_NOT_CANCELABLE;
    case 413: return DGM_TOO_LARGE;
    case 415: return DGM_CONTENT_TYPE_NOT_SUPPORTED;
    case 429: return DGM_RATE_LIMITED;
    case 500: return DGM_INTERNAL;
    case 502: return DGM_INVALID_AGENT_RESPONSE;
    case 503: return DGM_UNAVAILABLE;
    case 504: return DGM_UPSTREAM_TIMEOUT;
    default: return DGM_OK;
    }
}

/* ---- reading --------------------------------------------------------------------------------------------- */

static const dgm_field rpc_fields[] = {
    DGM_F(dgm_peer_error, rpc_code, "code", INT, DGM_REQUIRED),
    DGM_F(dgm_peer_error, message, "message", STR, DGM_REQUIRED),
    DGM_F(dgm_peer_error, details, "data", JSON, 0),
};
static const dgm_shape rpc_error = {
    .what = "JSON-RPC error",
    .size = sizeof(dgm_peer_error),
    DGM_FIELDS(rpc_fields),
    .extra_at = offsetof(dgm_peer_error, extra),
    .tag_at = DGM_NOWHERE,
};

static const dgm_field rest_inner_fields[] = {
    DGM_F(dgm_peer_error, http_status, "code", INT, 0),
    DGM_F(dgm_peer_error, status, "status", STR, 0),
    DGM_F(dgm_peer_error, message, "message", STR, 0),
    DGM_F(dgm_peer_error, details, "details", JSON, 0),
};
static const dgm_shape rest_error = {
    .what = "REST error",
    .size = sizeof(dgm_peer_error),
    DGM_FIELDS(rest_inner_fields),
    .extra_at = offsetof(dgm_peer_error, extra),
    .tag_at = DGM_NOWHERE,
};

/* 0.3's REST errors: {code, message, data}; Python's have the message alone. */
static const dgm_field loose_fields[] = {
    DGM_F(dgm_peer_error, rpc_code, "code", INT, 0),
    DGM_F(dgm_peer_error, message, "message", STR, DGM_REQUIRED),
    DGM_F(dgm_peer_error, details, "data", JSON, 0),
};
static const dgm_shape loose_error = {
    .what = "REST error",
    .size = sizeof(dgm_peer_error),
    DGM_FIELDS(loose_fields),
    .extra_at = offsetof(dgm_peer_error, extra),
    .tag_at = DGM_NOWHERE,
};

static dgm_code read_with(dgm_reader *r, const dgm_shape *shape, yyjson_val *v, const dgm_at *at,
                          dgm_peer_error *ret)
{
    dgm_code rc = dgm_shape_read(r, shape, v, at, ret);
    if (rc)
        return rc;
    if (yyjson_is_null((yyjson_val *)(uintptr_t)ret->details))
        ret->details = NULL;
    ret->code = code_of(ret);
    return DGM_OK;
}

dgm_code dgm_a2a_read_rpc_error(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_peer_error *ret)
{
    return read_with(r, &rpc_error, v, at, ret);
}

dgm_code dgm_a2a_read_rest_error(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                 dgm_peer_error *ret)
{
    yyjson_val *inner = dgm_json_get(v, DGM_STR("error"));
    if (inner)
        return read_with(r, &rest_error, inner, DGM_AT_LIT(at, "error"), ret);
    return read_with(r, &loose_error, v, at, ret);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static void a2a_error_put_message(dgm_writer *w, const dgm_peer_error *e)
{
    dgm_json_put_str(w->out, e->message.p ? e->message : dgm_str_from(dgm_code_message(e->code)));
}

/* Typed details, with an ErrorInfo in front for errors that A2A has a reason for. */
static void put_typed(dgm_writer *w, const dgm_peer_error *e, const char *key)
{
    const char *reason = dgm_code_reason(e->code);
    bool typed = is_typed(e->details);
    bool info = *reason && !(typed && find_detail(e->details, DGM_STR(ERROR_INFO)));
    if (!info &&
        !(e->details && !(typed && yyjson_arr_size((yyjson_val *)(uintptr_t)e->details) == 0)))
        return;
    dgm_buf_printf(w->out, ",\"%s\":[", key);
    if (info)
        dgm_buf_printf(w->out,
                       "{\"@type\":\"" ERROR_INFO "\",\"reason\":\"%s\","
                       "\"domain\":\"a2a-protocol.org\"}",
                       reason);
    if (typed) {
        yyjson_val *v = (yyjson_val *)(uintptr_t)e->details, *d;
        size_t i, n;
        yyjson_arr_foreach (v, i, n, d) {
            if (i || info)
                dgm_buf_add_char(w->out, ',');
            dgm_json_put(w->out, d);
        }
    } else if (e->details) {
        if (info)
            dgm_buf_add_char(w->out, ',');
        dgm_buf_add_lit(w->out, "{\"@type\":\"" ANY_VALUE "\",\"value\":");
        dgm_json_put(w->out, e->details);
        dgm_buf_add_char(w->out, '}');
    }
    dgm_buf_add_char(w->out, ']');
}

static void put_unknown(dgm_writer *w, const dgm_peer_error *e)
{
    for (size_t i = 0; e->extra && e->extra->format == w->format && i < e->extra->n; i++) {
        dgm_put_comma(w);
        dgm_json_put_str(w->out, e->extra->at[i].key);
        dgm_buf_add_char(w->out, ':');
        dgm_json_put(w->out, e->extra->at[i].value);
    }
}

static int rpc_code_of(const dgm_peer_error *e)
{
    if (e->rpc_code)
        return e->rpc_code;
    return e->code ? dgm_code_rpc(e->code) : dgm_code_rpc(DGM_INTERNAL);
}

void dgm_a2a_10_write_rpc_error(dgm_writer *w, const dgm_peer_error *e)
{
    dgm_buf_add_lit(w->out, "{\"code\":");
    dgm_json_put_int(w->out, rpc_code_of(e));
    dgm_buf_add_lit(w->out, ",\"message\":");
    a2a_error_put_message(w, e);
    put_typed(w, e, "data");
    put_unknown(w, e);
    dgm_buf_add_char(w->out, '}');
}

void dgm_a2a_10_write_rest_error(dgm_writer *w, const dgm_peer_error *e)
{
    dgm_code code = e->code ? e->code : DGM_INTERNAL;
    int http = e->http_status ? e->http_status : dgm_code_http(code, false);
    dgm_buf_add_lit(w->out, "{\"error\":{\"code\":");
    dgm_json_put_int(w->out, http);
    dgm_buf_add_lit(w->out, ",\"status\":");
    dgm_json_put_str(w->out, e->status.p
                                 ? e->status
                                 : dgm_str_from(dgm_grpc_status_name(dgm_code_grpc(code, false))));
    dgm_buf_add_lit(w->out, ",\"message\":");
    a2a_error_put_message(w, e);
    put_typed(w, e, "details");
    put_unknown(w, e);
    dgm_buf_add_lit(w->out, "}}");
}

/* A detail that 1.0 adds by rule has no meaning in 0.3: an ErrorInfo with no more than reason and domain. */
static bool is_bare_info(const yyjson_val *detail)
{
    return is_type(detail, DGM_STR(ERROR_INFO)) &&
           yyjson_obj_size((yyjson_val *)(uintptr_t)detail) <= 3 &&
           !dgm_json_get(detail, DGM_STR("metadata"));
}

void dgm_a2a_03_write_error(dgm_writer *w, const dgm_peer_error *e)
{
    const yyjson_val *data = e->details;
    dgm_buf_add_lit(w->out, "{\"code\":");
    dgm_json_put_int(w->out, rpc_code_of(e));
    dgm_buf_add_lit(w->out, ",\"message\":");
    a2a_error_put_message(w, e);
    if (data && is_typed(data)) {
        yyjson_val *v = (yyjson_val *)(uintptr_t)data;
        size_t n = yyjson_arr_size(v);
        const yyjson_val *free_data = find_detail(data, DGM_STR(ANY_VALUE));
        if (n == 0 || (n == 1 && is_bare_info(yyjson_arr_get_first(v))))
            data = NULL;
        else if (free_data && (n == 1 || (n == 2 && is_bare_info(yyjson_arr_get_first(v)))))
            data = dgm_json_get(free_data, DGM_STR("value"));
    }
    if (data) {
        dgm_buf_add_lit(w->out, ",\"data\":");
        dgm_json_put(w->out, data);
    }
    put_unknown(w, e);
    dgm_buf_add_char(w->out, '}');
}
