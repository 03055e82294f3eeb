/*
 * frontend/a2a/a2a_front_errors.c - refusals in the caller's dialect.
 *
 *   1.0 JSON-RPC  error.data       [ErrorInfo | BadRequest]
 *   1.0 REST      error.details    the same, with the HTTP status and the gRPC name of the table in use
 *   0.3           code and message; the message names the place
 *   0.3 REST      also `type`, the one member by which a2a-sdk 1.x knows the errors of 0.3 servers
 */
#include "frontend/a2a/a2a_front_int.h"

#define TYPE "{\"@type\":\"type.googleapis.com/google.rpc."

/* /message/parts/1/text as protobuf people write it: message.parts[1].text */
static void put_field(dgm_buf *b, const char *pointer)
{
    dgm_str step, rest = dgm_str_from(pointer);
    bool first = true;
    while (rest.n) {
        rest = (dgm_str){rest.p + 1, rest.n - 1}; /* the slash */
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        step = (dgm_str){rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        rest = (dgm_str){rest.p + step.n, rest.n - step.n};
        bool index = step.n && step.p[0] >= '0' && step.p[0] <= '9' && !first;
        dgm_buf_add_str(b, index ? DGM_STR("[") : first ? DGM_STR("") : DGM_STR("."));
        dgm_json_put_chars(b, step);
        dgm_buf_add_str(b, index ? DGM_STR("]") : DGM_STR(""));
        first = false;
    }
}

static const dgm_json *details_of(struct op *op, const dgm_err *err)
{
    const char *reason = dgm_code_reason(err->code);
    dgm_buf b;
    if (!op_is_10(op) || (!*reason && err->code != DGM_BAD_PARAMS))
        return NULL;
    dgm_buf_init(&b, SIZE_MAX);
    if (*reason) {
        dgm_buf_printf(&b, "[" TYPE "ErrorInfo\",\"reason\":\"%s\",\"domain\":\"a2a-protocol.org\"",
                       reason);
        if (op->task_id.n) {
            dgm_buf_add_lit(&b, ",\"metadata\":{\"taskId\":");
            dgm_json_put_str(&b, op->task_id);
            dgm_buf_add_char(&b, '}');
        }
        dgm_buf_add_lit(&b, "}]");
    } else {
        dgm_buf_add_lit(&b, "[" TYPE "BadRequest\",\"fieldViolations\":[{\"field\":\"");
        put_field(&b, err->at);
        dgm_buf_add_lit(&b, "\",\"description\":");
        dgm_json_put_str(&b, dgm_str_from(err->msg));
        dgm_buf_add_lit(&b, "}]}]");
    }
    const dgm_json *details =
        dgm_json_parse_trusted(op->arena, dgm_arena_dup(op->arena, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return details;
}

static const char *type_of(dgm_code code)
{
    switch (code) {
    case DGM_PARSE: return "JSONParseError";
    case DGM_BAD_REQUEST: return "InvalidRequestError";
    case DGM_NO_SUCH_METHOD: return "MethodNotFoundError";
    case DGM_BAD_PARAMS: return "InvalidParamsError";
    case DGM_INTERNAL: return "InternalError";
    case DGM_TASK_NOT_FOUND: return "TaskNotFoundError";
    case DGM_TASK_NOT_CANCELABLE: return "TaskNotCancelableError";
    case DGM_PUSH_NOT_SUPPORTED: return "PushNotificationNotSupportedError";
    case DGM_UNSUPPORTED_OPERATION: return "UnsupportedOperationError";
    case DGM_CONTENT_TYPE_NOT_SUPPORTED: return "ContentTypeNotSupportedError";
    case DGM_INVALID_AGENT_RESPONSE: return "InvalidAgentResponseError";
    case DGM_EXTENDED_CARD_NOT_CONFIGURED: return "ExtendedAgentCardNotConfiguredError";
    case DGM_EXTENSION_REQUIRED: return "ExtensionSupportRequiredError";
    case DGM_VERSION_NOT_SUPPORTED: return "VersionNotSupportedError";
    default: return NULL; /* the HTTP status is enough */
    }
}

static const dgm_extra *type_member(struct op *op, dgm_code code)
{
    const char *type = op->codec == &dgm_codec_a2a_03_rest ? type_of(code) : NULL;
    if (!type)
        return NULL;
    dgm_member *member = dgm_arena_alloc(op->arena, sizeof *member);
    dgm_extra *extra = dgm_arena_alloc(op->arena, sizeof *extra);
    member->key = DGM_STR("type");
    member->value = dgm_json_parse_trusted(op->arena, dgm_arena_printf(op->arena, "\"%s\"", type));
    *extra = (dgm_extra){.format = op->codec->format, .at = member, .n = 1};
    return extra;
}

void dgm_op_put_error(struct op *op, const dgm_err *err, int http, dgm_buf *out)
{
    bool old = op->front->o.errors_1_0_0;
    dgm_peer_error e = {.code = err->code,
                        .rpc_code = dgm_code_rpc(err->code),
                        .http_status = http,
                        .status = dgm_str_from(dgm_grpc_status_name(dgm_code_grpc(err->code, old))),
                        .message = dgm_str_from(err->msg),
                        .details = details_of(op, err),
                        .extra = type_member(op, err->code)};
    if (err->at[0])
        e.message = dgm_arena_printf(op->arena, "%s (at %s)", err->msg, err->at);
    dgm_frame frame = {.envelope = op->rest ? DGM_ENVELOPE_NONE : DGM_ENVELOPE_RESPONSE,
                       .id = op->id,
                       .object = {DGM_OBJECT_ERROR, &e}};
    dgm_writer w = {.out = out};
    op->codec->encode(&w, &frame, NULL);
}

void dgm_op_fail_as(struct op *op, const dgm_err *err, int http, const dgm_http_header *more,
                    size_t n)
{
    static const dgm_http_header later = {{"Retry-After", 11}, {"1", 1}};
    struct scratch *s = dgm_front_scratch(op->front);
    dgm_op_put_error(op, err, http, &s->out);
    if (!n && (err->code == DGM_UNAVAILABLE || err->code == DGM_RATE_LIMITED)) {
        more = &later;
        n = 1;
    }
    dgm_op_respond(op, http, DGM_STR("application/json"), dgm_buf_str(&s->out), more, n);
}

void dgm_op_fail(struct op *op, const dgm_err *err)
{
    int http = dgm_code_http(err->code, op->front->o.errors_1_0_0);
    /* JSON-RPC reports it in the body; errors of the transport have their status there too. */
    bool in_body = !op->rest && err->code < DGM_UNAUTHENTICATED;
    if (op->wants_sse_errors && in_body)
        dgm_op_stream_error(op, err);
    else
        dgm_op_fail_as(op, err, in_body ? 200 : http, NULL, 0);
}

void dgm_op_fail_with(struct op *op, dgm_code code, const char *msg)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", msg);
    dgm_op_fail(op, &err);
}
