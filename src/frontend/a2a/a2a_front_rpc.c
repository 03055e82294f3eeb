/* frontend/a2a/a2a_front_rpc.c - JSON-RPC: a body becomes an operation and its request. */
#include "frontend/a2a/a2a_front_int.h"
#include "wire/jsonrpc/jsonrpc.h"

void dgm_fail_version(struct op *op)
{
    const dgm_a2a_options *o = &op->front->o;
    dgm_op_fail_with(op, DGM_VERSION_NOT_SUPPORTED,
                     o->no_03 ? "supported version: A2A 1.0: send the header A2A-Version: 1.0"
                     : o->no_10
                         ? "supported version: A2A 0.3: leave the header A2A-Version out"
                         : "supported versions: A2A 1.0 and 0.3: send the header A2A-Version: 1.0, "
                           "or none for 0.3");
}

/* The names of the two versions are disjoint, and the header has to agree with the name: a 1.0 method
 * without any header is refused, or served if the server is lenient. */
static bool settle_method(struct op *op, dgm_str name, enum version asked, bool said)
{
    const dgm_a2a_options *o = &op->front->o;
    dgm_err err = {0};
    bool served = asked == VERSION_10 ? !o->no_10 : asked == VERSION_03 && !o->no_03;
    dgm_method v1 = dgm_a2a_find_method(name, true);
    if (served)
        op->method = asked == VERSION_10 ? v1 : dgm_a2a_find_method(name, false);
    if (served && op->method)
        return true;
    if (v1 && !said && !o->no_10) {
        op->codec = &dgm_codec_a2a_10;
        op->method = v1;
        if (o->lenient_version)
            return true;
        dgm_fail_version(op);
    } else if (!served && (said || v1 || dgm_a2a_find_method(name, false))) {
        dgm_fail_version(op);
    } else {
        dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "\"%.*s\" is not a method of A2A %s",
                 (int)(name.n < 80 ? name.n : 80), name.p, op_is_10(op) ? "1.0" : "0.3");
        dgm_op_fail(op, &err);
    }
    return false;
}

dgm_code dgm_a2a_decode_request(struct op *op, const dgm_codec *codec, yyjson_val *v,
                                dgm_object_kind kind, void **ret_request, dgm_err *err)
{
    dgm_reader reader = {.arena = op->arena, .strict = true, .drop_unknown = true, .err = err};
    dgm_frame frame;
    dgm_code rc = codec->decode(&reader, v, kind, false, &frame);
    /* a value that looks like a JSON-RPC envelope is decoded as the object that it carries */
    if (!rc && frame.object.kind != kind) {
        const char *other = dgm_a2a_method_with(frame.object.kind);
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected the params of %s, got %s%s",
                      dgm_a2a_method_with(kind), other ? "those of " : "an object of the kind ",
                      other ? other : dgm_object_kind_name(frame.object.kind));
    }
    if (!rc)
        *ret_request = frame.object.it;
    return rc;
}

void dgm_a2a_handle_rpc(const dgm_front_request *q)
{
    static const dgm_task_request nothing;
    struct op *op = dgm_a2a_new_op(q, true);
    const dgm_http_request *r = dgm_http_request_of(q->x);
    yyjson_val *v, *params;
    dgm_rpc rpc;
    void *request = (void *)(uintptr_t)&nothing;
    dgm_err err = {0};
    if (op->front->o.n_extensions)
        dgm_find_extensions(op);
    if (!dgm_is_json_type(dgm_http_header_of(r, DGM_STR("content-type")))) {
        dgm_op_fail_with(op, DGM_CONTENT_TYPE_NOT_SUPPORTED, "send application/json");
        return;
    }
    if (dgm_json_read(op->arena, r->body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &err)) {
        dgm_op_fail(op, &err);
        return;
    }
    op->id = dgm_rpc_id_of(v);
    if (op->version == VERSION_OTHER) {
        dgm_fail_version(op);
        return;
    }
    dgm_code rc = dgm_rpc_read(v, false, NULL, &rpc, &err);
    if (!rc && rpc.kind != DGM_RPC_REQUEST)
        rc = dgm_fail(&err, DGM_BAD_REQUEST, NULL, "expected a request, got a response");
    if (rc) {
        dgm_op_fail(op, &err);
        return;
    }
    if (!settle_method(op, rpc.method, op->version, op->has_version))
        return;
    op->wants_sse_errors =
        (op->method == DGM_METHOD_STREAM || op->method == DGM_METHOD_SUBSCRIBE) &&
        dgm_accepts(r, DGM_STR("text/event-stream")) &&
        !dgm_accepts(r, DGM_STR("application/json")) &&
        !(op_is_10(op) && op->front->o.json_stream_errors);
    if (!dgm_op_is_offered(op))
        return;
    rc = dgm_rpc_params(&rpc, op->method == DGM_METHOD_EXTENDED_CARD, NULL, &params, &err);
    if (!rc && params)
        rc = dgm_a2a_decode_request(op, op->codec, params, dgm_a2a_methods[op->method].params,
                                    &request, &err);
    if (rc)
        dgm_op_fail(op, &err);
    else
        dgm_op_run(op, request);
}
