/* frontend/agui/agui_front.c - paths, methods, refusals, and what the agent can do. */
#include "frontend/agui/agui_front_int.h"
#include "frontend/words.h"

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

/* {"error":{"code":400,"status":"INVALID_ARGUMENT","message":"...","pointer":"/messages/0/id"}} */
static void refuse_as(dgm_http_exchange *x, const dgm_err *err, int http,
                      const dgm_http_header *headers, size_t n)
{
    static const dgm_http_header later = {{"Retry-After", 11}, {"1", 1}};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"error\":{\"code\":%d,\"status\":\"%s\",\"message\":", http,
                   dgm_grpc_status_name(dgm_code_grpc(err->code, true)));
    dgm_json_put_str(&b, dgm_str_from(err->msg[0] ? err->msg : dgm_code_message(err->code)));
    if (err->at[0]) {
        dgm_buf_add_lit(&b, ",\"pointer\":");
        dgm_json_put_str(&b, dgm_str_from(err->at));
    }
    if (err->line)
        dgm_buf_printf(&b, ",\"line\":%zu,\"column\":%zu", err->line, err->column);
    dgm_buf_add_lit(&b, "}}");
    if (!n && (err->code == DGM_UNAVAILABLE || err->code == DGM_RATE_LIMITED)) {
        headers = &later;
        n = 1;
    }
    dgm_http_respond(x, http, DGM_STR("application/json"), headers, n, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

void dgm_agui_fail(struct agui_op *op, const dgm_err *err)
{
    if (op->log)
        dgm_log_unref(dgm_take(op->log));
    dgm_agui_begun(op);
    dgm_turn_release_hold(dgm_take(op->hold));
    refuse_as(op->x, err, dgm_code_http(err->code, true), NULL, 0);
}

void dgm_agui_fail_with(struct agui_op *op, dgm_code code, const dgm_at *at, const char *why)
{
    dgm_err err = {0};
    dgm_fail(&err, code, at, "%s", why);
    dgm_agui_fail(op, &err);
}

static void agui_refuse(const dgm_front_request *q, const dgm_err *err,
                        const dgm_http_header *headers, size_t n)
{
    refuse_as(q->x, err, dgm_code_http(err->code, true), headers, n);
}

static void agui_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_err err = {0};
    if (dgm_str_is(dgm_http_request_of(q->x)->method, "OPTIONS")) {
        dgm_http_respond(q->x, 204, (dgm_str){0}, &header, 1, (dgm_str){0});
        return;
    }
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "method not allowed: this path supports %s", allow);
    refuse_as(q->x, &err, 405, &header, 1);
}

/* ---- what the agent can do -------------------------------------------------------------------------------------------- */

static void agui_front_put_text(dgm_buf *b, const char *name, dgm_str value)
{
    if (!value.n)
        return;
    dgm_buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
    dgm_json_put_str(b, value);
}

/* What is left out is not known: most agents do not say what they do inside. */
static void agui_handle_capabilities(const dgm_front_request *q)
{
    const dgm_turn_agent *a = q->agent ? q->agent : q->turns->o.first;
    dgm_str type = dgm_str_from(a->type);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"identity\":{");
    agui_front_put_text(&b, "name", a->name);
    agui_front_put_text(&b, "type", type);
    agui_front_put_text(&b, "description", a->description);
    agui_front_put_text(&b, "version", a->version);
    agui_front_put_text(&b, "provider", a->organization);
    dgm_buf_add_lit(&b,
                    "},\"transport\":{\"streaming\":true,\"websocket\":false,\"httpBinary\":true,"
                    "\"resumable\":true},\"state\":{\"snapshots\":true,\"deltas\":true}");
    if (dgm_str_is(type, "demo"))
        dgm_buf_add_lit(&b, ",\"tools\":{\"supported\":true,\"parallelCalls\":true,"
                            "\"clientProvided\":true},\"reasoning\":{\"supported\":true,"
                            "\"streaming\":true,\"encrypted\":false},\"multiAgent\":{\"supported\":"
                            "true,\"delegation\":true}");
    if (dgm_str_is(type, "hello") || dgm_str_is(type, "bench"))
        dgm_buf_add_lit(&b, ",\"tools\":{\"supported\":false,\"clientProvided\":false},"
                            "\"reasoning\":{\"supported\":false}");
    else
        dgm_buf_add_lit(&b, ",\"humanInTheLoop\":{\"supported\":true,\"interrupts\":true}");
    dgm_buf_add_char(&b, '}');
    dgm_http_respond(q->x, 200, DGM_STR("application/json"), NULL, 0, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* ---- a request ----------------------------------------------------------------------------------------------------------- */

static struct agui_op *new_op(const dgm_front_request *q)
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct agui_op *op = dgm_new(a, struct agui_op);
    op->q = *q;
    op->x = q->x;
    op->arena = a;
    op->core = q->turns->o.core;
    op->agent = q->agent ? q->agent : q->turns->o.first;
    return op;
}

static void agui_handle_run(const dgm_front_request *q)
{
    struct agui_op *op = new_op(q);
    if (dgm_agui_read(op))
        dgm_agui_run(op);
}

static void agui_handle_connect(const dgm_front_request *q)
{
    struct agui_op *op = new_op(q);
    if (dgm_agui_read(op))
        dgm_agui_connect(op);
}

static void agui_handle_messages(const dgm_front_request *q)
{
    struct agui_op *op = new_op(q);
    dgm_str id;
    if (!dgm_percent_decode(op->arena, q->params[0], false, &id))
        dgm_agui_fail_with(op, DGM_BAD_PARAMS, NULL,
                           "invalid thread id in the path: percent-encode its UTF-8");
    else
        dgm_agui_messages(op, id);
}

/* clang-format off */
static const dgm_route agui_routes[] = {
    {DGM_ROUTE_POST, "/ag-ui[/]",                        "run",          DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, agui_handle_run,          0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_POST, "/ag-ui/connect",                   "connect",      DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, agui_handle_connect,      0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_GET,  "/ag-ui/threads/{thread}/messages", "messages",     DGM_ACCESS_CALLER, DGM_BODY_SMALL,    agui_handle_messages,     0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_GET,  "/ag-ui/capabilities",              "capabilities", DGM_ACCESS_CALLER, DGM_BODY_SMALL,    agui_handle_capabilities, 0, DGM_SCOPE_AGENT},
};
/* clang-format on */
static const char *const agui_prefixes[] = {"/ag-ui", NULL};

const dgm_frontend dgm_front_agui = {.name = AGUI_PROTOCOL,
                                     .title = "AG-UI",
                                     .base = "/ag-ui",
                                     DGM_ROUTES(agui_routes),
                                     .prefixes = agui_prefixes,
                                     .lists_options = true,
                                     .refuse = agui_refuse,
                                     .refuse_method = agui_refuse_method};
