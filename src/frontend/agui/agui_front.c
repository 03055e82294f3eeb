/* frontend/agui/agui_front.c - paths, methods, refusals, and what the agent can do. */
#include "frontend/agui/agui_front_int.h"
#include "frontend/words.h"

/* ---- paths --------------------------------------------------------------------------------------------------------- */

enum agui_route agui_route_of(dgm_str path, dgm_str *ret_thread)
{
    dgm_str threads = DGM_STR("/ag-ui/threads/"), tail = DGM_STR("/messages");
    *ret_thread = (dgm_str){0};
    if (dgm_str_is(path, "/ag-ui") || dgm_str_is(path, "/ag-ui/"))
        return AGUI_RUN;
    if (dgm_str_is(path, "/ag-ui/connect"))
        return AGUI_CONNECT;
    if (dgm_str_is(path, "/ag-ui/capabilities"))
        return AGUI_CAPABILITIES;
    if (!dgm_str_starts(path, threads) || path.n <= threads.n + tail.n)
        return AGUI_NONE;
    dgm_str id = {path.p + threads.n, path.n - threads.n - tail.n};
    if (memchr(id.p, '/', id.n) || !dgm_str_eq((dgm_str){id.p + id.n, tail.n}, tail))
        return AGUI_NONE;
    *ret_thread = id;
    return AGUI_MESSAGES;
}

static bool takes_post(enum agui_route route)
{
    return route == AGUI_RUN || route == AGUI_CONNECT;
}

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

void agui_fail(struct agui_op *op, const dgm_err *err)
{
    if (op->log)
        dgm_log_unref(dgm_take(op->log));
    agui_begun(op);
    dgm_turn_release_hold(dgm_take(op->hold));
    refuse_as(op->x, err, dgm_code_http(err->code, true), NULL, 0);
}

void agui_fail_with(struct agui_op *op, dgm_code code, const dgm_at *at, const char *why)
{
    dgm_err err = {0};
    dgm_fail(&err, code, at, "%s", why);
    agui_fail(op, &err);
}

static bool refuse(dgm_http_exchange *x, dgm_str path, const dgm_err *err,
                   const dgm_http_header *headers, size_t n)
{
    dgm_str thread;
    if (!agui_route_of(path, &thread) && !dgm_str_starts(path, DGM_STR("/ag-ui/")))
        return false;
    refuse_as(x, err, dgm_code_http(err->code, true), headers, n);
    return true;
}

static void not_that_method(dgm_http_exchange *x, enum agui_route route, bool is_options)
{
    const char *allowed = takes_post(route) ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
    dgm_http_header allow = {DGM_STR("Allow"), dgm_str_from(allowed)};
    dgm_err err = {0};
    if (is_options) {
        dgm_http_respond(x, 204, (dgm_str){0}, &allow, 1, (dgm_str){0});
        return;
    }
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "method not allowed: this path supports %s", allowed);
    refuse_as(x, &err, 405, &allow, 1);
}

/* ---- what the agent can do -------------------------------------------------------------------------------------------- */

static void put_text(dgm_buf *b, const char *name, dgm_str value)
{
    if (!value.n)
        return;
    dgm_buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
    dgm_json_put_str(b, value);
}

/* What is left out is not known: most agents do not say what they do inside. */
static void give_capabilities(struct agui_op *op)
{
    const dgm_turn_agent *a = op->agent;
    dgm_str type = dgm_str_from(a->type);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"identity\":{");
    put_text(&b, "name", a->name);
    put_text(&b, "type", type);
    put_text(&b, "description", a->description);
    put_text(&b, "version", a->version);
    put_text(&b, "provider", a->organization);
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
    dgm_http_respond(op->x, 200, DGM_STR("application/json"), NULL, 0, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* ---- a request ----------------------------------------------------------------------------------------------------------- */

static struct agui_op *new_op(const dgm_turn_request *q)
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct agui_op *op = dgm_new(a, struct agui_op);
    op->q = *q;
    op->x = q->x;
    op->arena = a;
    op->core = dgm_turns_options_of(q->turns)->core;
    op->agent = q->agent ? q->agent : dgm_turns_options_of(q->turns)->first;
    return op;
}

static void give_messages(struct agui_op *op, dgm_str thread)
{
    dgm_str id;
    if (!dgm_percent_decode(op->arena, thread, false, &id))
        agui_fail_with(op, DGM_BAD_PARAMS, NULL,
                       "invalid thread id in the path: percent-encode its UTF-8");
    else
        agui_messages(op, id);
}

static bool take(const dgm_turn_request *q)
{
    static const char *const names[] = {[AGUI_RUN] = "run",
                                        [AGUI_CONNECT] = "connect",
                                        [AGUI_MESSAGES] = "messages",
                                        [AGUI_CAPABILITIES] = "capabilities"};
    dgm_str method = dgm_http_request_of(q->x)->method, thread;
    enum agui_route route = agui_route_of(q->path, &thread);
    if (!route)
        return false;
    dgm_front_note_kind(q->x, DGM_FRONT_AGUI, names[route]);
    bool get = dgm_str_is(method, "GET") || dgm_str_is(method, "HEAD");
    if (takes_post(route) ? !dgm_str_is(method, "POST") : !get) {
        not_that_method(q->x, route, dgm_str_is(method, "OPTIONS"));
        return true;
    }
    struct agui_op *op = new_op(q);
    if (route == AGUI_CAPABILITIES)
        give_capabilities(op);
    else if (route == AGUI_MESSAGES)
        give_messages(op, thread);
    else if (!agui_read(op))
        return true;
    else if (route == AGUI_CONNECT)
        agui_connect(op);
    else
        agui_run(op);
    return true;
}

const dgm_turn_front dgm_front_agui = {.name = AGUI_PROTOCOL, .take = take, .refuse = refuse};
