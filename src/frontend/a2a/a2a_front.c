/*
 * frontend/a2a/a2a_front.c - routes of A2A, and where a request starts.
 *
 * Three frontends share an operation's code: JSON-RPC, REST (1.0 at the address, 0.3 below /v1) and the card.
 */
#include "frontend/a2a/a2a_front_int.h"

#include <stdlib.h>

#define KEEP_BYTES ((size_t)256 << 10) /* of a loop's buffer, between answers */

dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o)
{
    dgm_a2a_front *f = dgm_xcalloc(1, sizeof *f);
    f->core = core;
    f->o = *o;
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++)
        dgm_buf_init(&f->scratch[i].out, DGM_MAX_OUTPUT_BYTES);
    return f;
}

void dgm_a2a_front_free(dgm_a2a_front *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++) {
        dgm_buf_done(&f->scratch[i].out);
        dgm_arena_free(f->scratch[i].arena);
    }
    free(f);
}

struct scratch *dgm_front_scratch(dgm_a2a_front *f)
{
    dgm_loop *loop = dgm_loop_current();
    struct scratch *s = &f->scratch[loop ? loop->index : 0];
    dgm_buf_shrink(&s->out, KEEP_BYTES);
    dgm_buf_clear(&s->out);
    s->out.over = false;
    if (!s->arena)
        s->arena = dgm_arena_new();
    else
        dgm_arena_reset(s->arena);
    return s;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

struct op *dgm_a2a_new_op(const dgm_front_request *q, bool is_rpc)
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct op *op = dgm_new(a, struct op);
    op->front = (q->agent ? q->agent : q->turns->o.first)->a2a;
    op->x = q->x;
    op->arena = a;
    op->owner = q->owner;
    op->may_set = q->may_set;
    op->any_tenant = q->any_tenant;
    op->extensions = DGM_STR("");
    op->rest = !is_rpc;
    op->below_v1 = !is_rpc && dgm_str_starts(q->path, DGM_STR("/v1/"));
    op->method = q->route ? (dgm_method)q->route->op : DGM_METHOD_NONE;
    op->version = dgm_version_of(dgm_http_request_of(q->x), a, &op->has_version);
    /* before anything else of the request is checked: errors are in the caller's dialect */
    op->codec = &dgm_codec_a2a_10;
    if (is_rpc && op->version == VERSION_03 && !op->front->o.no_03)
        op->codec = &dgm_codec_a2a_03;
    else if (op->below_v1 && op->version != VERSION_10)
        op->codec = &dgm_codec_a2a_03_rest;
    return op;
}

static void a2a_handle_rest(const dgm_front_request *q)
{
    dgm_rest_take(dgm_a2a_new_op(q, false), q);
}

static void a2a_handle_card(const dgm_front_request *q)
{
    dgm_card_send(dgm_a2a_new_op(q, false), dgm_http_request_of(q->x));
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void a2a_refuse_as(struct op *op, const dgm_err *err, const dgm_http_header *headers,
                          size_t n)
{
    dgm_op_fail_as(op, err, dgm_code_http(err->code, op->front->o.errors_1_0_0), headers, n);
}

static void a2a_refuse_rpc(const dgm_front_request *q, const dgm_err *err,
                           const dgm_http_header *headers, size_t n)
{
    struct op *op = dgm_a2a_new_op(q, true);
    op->rest = !dgm_str_is(dgm_http_request_of(q->x)->method, "POST"); /* no envelope */
    a2a_refuse_as(op, err, headers, n);
}

static void a2a_refuse_rest(const dgm_front_request *q, const dgm_err *err,
                            const dgm_http_header *headers, size_t n)
{
    a2a_refuse_as(dgm_a2a_new_op(q, false), err, headers, n);
}

static void a2a_refuse_method(struct op *op, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_err err = {0};
    if (dgm_str_is(dgm_http_request_of(op->x)->method, "OPTIONS")) {
        dgm_http_respond(op->x, 204, (dgm_str){0}, &header, 1, (dgm_str){0});
        return;
    }
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "method not allowed: this path supports %s", allow);
    dgm_op_fail_as(op, &err, 405, &header, 1);
}

static void a2a_refuse_rpc_method(const dgm_front_request *q, const char *allow)
{
    a2a_refuse_method(dgm_a2a_new_op(q, true), allow);
}

static void a2a_refuse_rest_method(const dgm_front_request *q, const char *allow)
{
    a2a_refuse_method(dgm_a2a_new_op(q, false), allow);
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

#define RPC(pattern)                                                                               \
    {                                                                                              \
        DGM_ROUTE_POST, pattern, NULL, DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, dgm_a2a_handle_rpc,   \
            0, DGM_SCOPE_AGENT                                                                     \
    }
#define REST(method, pattern, operation, body, op)                                                 \
    {                                                                                              \
        DGM_ROUTE_##method, pattern, operation, DGM_ACCESS_CALLER, DGM_BODY_##body,                \
            a2a_handle_rest, DGM_METHOD_##op, DGM_SCOPE_AGENT                                      \
    }

/* tasks/ID/subscribe is the path that Rust's clients use. */
#define REST_ROUTES(base, card)                                                                    \
    REST(POST, base "/message:send", "SendMessage", MESSAGES, SEND),                               \
        REST(POST, base "/message:stream", "SendStreamingMessage", MESSAGES, STREAM),              \
        REST(GET, base "/tasks", "ListTasks", SMALL, LIST),                                        \
        REST(GET, base "/tasks/{task}", "GetTask", SMALL, GET),                                    \
        REST(POST, base "/tasks/{task}:cancel", "CancelTask", SMALL, CANCEL),                      \
        REST(STREAM, base "/tasks/{task}:subscribe", "SubscribeToTask", SMALL, SUBSCRIBE),         \
        REST(POST, base "/tasks/{task}:subscribe", "SubscribeToTask", SMALL, SUBSCRIBE),           \
        REST(STREAM, base "/tasks/{task}/subscribe", "SubscribeToTask", SMALL, SUBSCRIBE),         \
        REST(POST, base "/tasks/{task}/subscribe", "SubscribeToTask", SMALL, SUBSCRIBE),           \
        REST(GET, base "/tasks/{task}/pushNotificationConfigs", "ListTaskPushNotificationConfigs", \
             SMALL, PUSH_LIST),                                                                    \
        REST(POST, base "/tasks/{task}/pushNotificationConfigs",                                   \
             "CreateTaskPushNotificationConfig", SMALL, PUSH_CREATE),                              \
        REST(GET, base "/tasks/{task}/pushNotificationConfigs/{config}",                           \
             "GetTaskPushNotificationConfig", SMALL, PUSH_GET),                                    \
        REST(DELETE, base "/tasks/{task}/pushNotificationConfigs/{config}",                        \
             "DeleteTaskPushNotificationConfig", SMALL, PUSH_DELETE),                              \
        REST(GET, base card, "GetExtendedAgentCard", SMALL, EXTENDED_CARD)

/* clang-format off */
static const dgm_route rpc_routes[] = {RPC("/"), RPC("/a2a[/]"), RPC("/api/a2a[/]")};
static const dgm_route rest_routes[] = {
    REST_ROUTES("", "/extendedAgentCard"),
    REST_ROUTES("/v1", "/card"),
    REST_ROUTES("/{tenant}", "/extendedAgentCard"),
};
static const dgm_route card_routes[] = {
    {DGM_ROUTE_GET, "/.well-known/agent-card.json", "GetAgentCard", DGM_ACCESS_PUBLIC, DGM_BODY_SMALL, a2a_handle_card, 0, DGM_SCOPE_AGENT},
};
/* clang-format on */

/* Of the paths below /v1, OpenAI has the others. */
static const char *const rest_prefixes[] = {
    "/", "/v1/tasks", "/v1/tasks{rest}", "/v1/card", "/v1/card{rest}", "/v1/message:{verb}", NULL};

const dgm_frontend dgm_front_a2a_rpc = {.name = "jsonrpc",
                                        .title = "A2A",
                                        .base = "/",
                                        DGM_ROUTES(rpc_routes),
                                        .lists_options = true,
                                        .refuse = a2a_refuse_rpc,
                                        .refuse_method = a2a_refuse_rpc_method};
const dgm_frontend dgm_front_a2a_rest = {.name = "rest",
                                         DGM_ROUTES(rest_routes),
                                         .prefixes = rest_prefixes,
                                         .lists_options = true,
                                         .refuse = a2a_refuse_rest,
                                         .refuse_method = a2a_refuse_rest_method};
const dgm_frontend dgm_front_a2a_card = {.name = "card",
                                         .title = "card",
                                         .base = "/.well-known/agent-card.json",
                                         DGM_ROUTES(card_routes),
                                         .lists_options = true,
                                         .refuse = a2a_refuse_rest,
                                         .refuse_method = a2a_refuse_rest_method};
