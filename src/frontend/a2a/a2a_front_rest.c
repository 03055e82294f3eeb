/* frontend/a2a/a2a_front_rest.c - REST: path, query and body become an operation and its request. */
#include "frontend/a2a/a2a_front_int.h"

#include <errno.h>
#include <stdlib.h>

/* /v1 is 0.3's and nothing else is; a 1.0 route without a version is refused, or served if the server
 * is lenient. */
static bool settle_version(struct op *op)
{
    const dgm_a2a_options *o = &op->front->o;
    enum version asked = op->version;
    if (op->below_v1 && asked == VERSION_10) {
        dgm_op_fail_with(op, DGM_NO_SUCH_METHOD, "unknown path in A2A 1.0");
        return false;
    }
    if (op->below_v1
            ? asked == VERSION_03 && !o->no_03
            : !o->no_10 && (asked == VERSION_10 || (!op->has_version && o->lenient_version)))
        return true;
    dgm_fail_version(op);
    return false;
}

/* ---- the query ------------------------------------------------------------------------------------------------------ */

static dgm_code query_int(struct op *op, const char *name, const char *other, dgm_opt_int *ret,
                          dgm_err *err)
{
    dgm_str query = dgm_http_request_of(op->x)->query;
    dgm_str text = dgm_query_value(op->arena, query, name);
    if (!text.n && other)
        text = dgm_query_value(op->arena, query, other);
    if (!text.n)
        return DGM_OK;
    char *end;
    errno = 0;
    long n = strtol(text.p, &end, 10);
    if (errno || end != text.p + text.n || n > INT32_MAX || n < INT32_MIN || text.p[0] == ' ' ||
        text.p[0] == '+')
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(name)), "expected a number");
    *ret = (dgm_opt_int){true, (int32_t)n};
    return DGM_OK;
}

/* As the JSON object it stands for: what it says is then read, and refused, as on JSON-RPC. 0.3 lists the method for
 * REST and gRPC without saying what its parameters are: they are those of 1.0. */
static dgm_code query_list(struct op *op, void **ret_request, dgm_err *err)
{
    static const struct {
        const char *name;
        bool is_bool;
    } names[] = {{"contextId", false},      {"status", false},
                 {"pageSize", false},       {"pageToken", false},
                 {"historyLength", false},  {"statusTimestampAfter", false},
                 {"includeArtifacts", true}};
    struct scratch *s = dgm_front_scratch(op->front);
    yyjson_val *v;
    dgm_buf_add_char(&s->out, '{');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dgm_str value =
            dgm_query_value(op->arena, dgm_http_request_of(op->x)->query, names[i].name);
        if (!value.n)
            continue;
        dgm_buf_printf(&s->out, "%s\"%s\":", s->out.n > 1 ? "," : "", names[i].name);
        if (names[i].is_bool && (dgm_str_is(value, "true") || dgm_str_is(value, "false")))
            dgm_buf_add_str(&s->out, value);
        else
            dgm_json_put_str(&s->out, value);
    }
    dgm_buf_add_char(&s->out, '}');
    dgm_code rc = dgm_json_read(op->arena, dgm_arena_dup(op->arena, dgm_buf_str(&s->out)),
                                DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err);
    return rc ? rc
              : dgm_a2a_decode_request(op, &dgm_codec_a2a_10, v, DGM_OBJECT_LIST_TASKS_REQUEST,
                                       ret_request, err);
}

/* ---- the body --------------------------------------------------------------------------------------------------------- */

static dgm_code read_body(struct op *op, dgm_object_kind kind, void **ret_request, dgm_err *err)
{
    dgm_str body = dgm_http_request_of(op->x)->body;
    yyjson_val *v;
    dgm_code rc = dgm_json_read(op->arena, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err);
    if (!rc && !yyjson_is_obj(v))
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected an object, got %s", dgm_json_type(v));
    return rc ? rc : dgm_a2a_decode_request(op, op->codec, v, kind, ret_request, err);
}

/* Of a request whose path says all: the body may be missing, null, or an object that adds a tenant. */
static dgm_code read_optional_body(struct op *op, dgm_task_request *q, dgm_err *err)
{
    dgm_str body = dgm_http_request_of(op->x)->body;
    yyjson_val *v, *tenant;
    if (!body.n)
        return DGM_OK;
    dgm_code rc = dgm_json_read(op->arena, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err);
    if (rc || yyjson_is_null(v))
        return rc;
    if (!yyjson_is_obj(v))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected an object, got %s", dgm_json_type(v));
    tenant = dgm_json_get(v, DGM_STR("tenant"));
    if (tenant && yyjson_is_str(tenant))
        q->tenant = dgm_json_str(tenant);
    else if (tenant && !yyjson_is_null(tenant))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "tenant"), "expected a string");
    return DGM_OK;
}

/* ---- the request ---------------------------------------------------------------------------------------------------------- */

static dgm_code read_task_request(struct op *op, dgm_str tenant, void **ret_request, dgm_err *err)
{
    dgm_task_request *q = dgm_new(op->arena, dgm_task_request);
    dgm_code rc = query_int(op, "historyLength", "history_length", &q->history_length, err);
    /* the proto of 0.3 has no presence: 0 means no limit */
    if (!rc && !op_is_10(op) && !q->history_length.value)
        q->history_length.set = false;
    if (!rc && dgm_str_is(dgm_http_request_of(op->x)->method, "POST"))
        rc = read_optional_body(op, q, err);
    if (tenant.n)
        q->tenant = tenant; /* the path wins */
    q->task_id = op->task_id;
    *ret_request = q;
    return rc;
}

static dgm_code read_request(struct op *op, dgm_str tenant, void **ret_request, dgm_err *err)
{
    dgm_code rc;
    if (op->method == DGM_METHOD_SEND || op->method == DGM_METHOD_STREAM) {
        dgm_send_request *q;
        rc = read_body(op, DGM_OBJECT_SEND_REQUEST, ret_request, err);
        q = *ret_request;
        if (!rc && tenant.n)
            q->tenant = tenant;
        return rc;
    }
    if (op->method == DGM_METHOD_LIST) {
        dgm_list_tasks_request *q;
        rc = query_list(op, ret_request, err);
        q = *ret_request;
        if (!rc && tenant.n)
            q->tenant = tenant;
        return rc;
    }
    return read_task_request(op, tenant, ret_request, err);
}

static bool decode_path(struct op *op, const dgm_front_request *q, dgm_str *ret_tenant)
{
    *ret_tenant = dgm_query_value(op->arena, dgm_http_request_of(op->x)->query, "tenant");
    if (!op_is_10(op))
        *ret_tenant = (dgm_str){0};
    return (!q->tenant.n || dgm_percent_decode(op->arena, q->tenant, false, ret_tenant)) &&
           (!q->params[0].n || dgm_percent_decode(op->arena, q->params[0], false, &op->task_id));
}

void dgm_rest_take(struct op *op, const dgm_front_request *q)
{
    const dgm_http_request *r = dgm_http_request_of(op->x);
    void *request = NULL;
    dgm_str tenant;
    dgm_err err = {0};
    dgm_find_extensions(op);
    if (!settle_version(op) || !dgm_op_is_offered(op))
        return;
    if (r->body.n && !dgm_is_json_type(dgm_http_header_of(r, DGM_STR("content-type")))) {
        dgm_op_fail_with(op, DGM_CONTENT_TYPE_NOT_SUPPORTED, "send application/json");
        return;
    }
    if (!decode_path(op, q, &tenant))
        dgm_op_fail_with(op, DGM_BAD_PARAMS, "invalid percent-encoding in the path");
    else if (read_request(op, tenant, &request, &err))
        dgm_op_fail(op, &err);
    else
        dgm_op_run(op, request);
}
