/*
 * mcp/mcp_call.c - one call of a tool.
 *
 * A call waits for its session, sends tools/call and gets a result, a question (another round follows) or a task, which is
 * polled. Between rounds and polls it holds no session: the session may end, and another one is used then. A request is
 * repeated only after the server reported that it did not handle it.
 */
#include "mcp/mcp_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the end ------------------------------------------------------------------------------------------ */

static void call_free(void *arg)
{
    dgm_mcp_call *c = arg;
    dgm_buf_done(&c->responses);
    dgm_arena_free(c->round);
    dgm_arena_free(c->arena); /* c is in it */
}

static void call_release(dgm_mcp_call *c)
{
    c->is_freeing = true;
    dgm_mcp_leave(&c->waiter);
    dgm_loop_not_at_turn_end(c->loop, &c->turn);
    dgm_timer_close(&c->pause, NULL, NULL);
    dgm_timer_close(&c->timer, call_free, c);
}

static void call_uncount(dgm_mcp_call *c)
{
    if (c->counts)
        c->session->n_calls--;
    c->counts = false;
}

/* The server is asked to stop. */
static void call_abort(dgm_mcp_call *c)
{
    dgm_mcp_ask_cancel(c);
    call_uncount(c);
    if (c->request)
        dgm_mcp_request_cancel(c->request, true);
    c->request = NULL;
    if (c->task_id.n)
        dgm_mcp_task_cancel(c);
}

void dgm_mcp_call_finish(dgm_mcp_call *c, const dgm_mcp_result *result, const dgm_mcp_error *error)
{
    if (c->is_freeing)
        return;
    call_abort(c);
    call_release(c);
    c->handler.on_result(c->handler.user, result, error);
}

void dgm_mcp_call_fail(dgm_mcp_call *c, dgm_code code, bool is_unknown, const char *fmt, ...)
{
    char message[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    dgm_mcp_call_finish(c, NULL,
                        &(dgm_mcp_error){.code = code,
                                         .message = dgm_str_from(message),
                                         .is_outcome_unknown = is_unknown});
}

void dgm_mcp_call_cancel(dgm_mcp_call *c)
{
    call_abort(c);
    call_release(c);
}

/* ---- time --------------------------------------------------------------------------------------------- */

void dgm_mcp_call_alive(dgm_mcp_call *c)
{
    if (!dgm_mcp_ask_is_open(c))
        dgm_timer_start(&c->timer, c->timeout_ms);
}

static void call_on_timer(void *arg)
{
    dgm_mcp_call *c = arg;
    if (dgm_mcp_ask_is_open(c))
        dgm_mcp_answer(c, DGM_MCP_CANCEL, NULL); /* no one answered */
    else
        dgm_mcp_call_fail(c, DGM_UPSTREAM_TIMEOUT, c->was_sent,
                          "MCP server %.*s: the tool %.*s did not answer within %g seconds",
                          DGM_P(c->mcp->config.name), DGM_P(c->tool), (double)c->timeout_ms / 1000);
}

void dgm_mcp_call_progress(dgm_mcp_call *c, const yyjson_val *params)
{
    yyjson_val *done = dgm_json_get(params, DGM_STR("progress"));
    yyjson_val *total = dgm_json_get(params, DGM_STR("total"));
    dgm_mcp_progress p = {.message = dgm_json_str_member(params, "message")};
    /* numbers are stored as their text, which is followed by a character that is not part of a number */
    if (done && yyjson_is_raw(done))
        p.done = strtod(dgm_json_str(done).p, NULL);
    if (total && yyjson_is_raw(total))
        p.total = strtod(dgm_json_str(total).p, NULL);
    dgm_mcp_call_alive(c);
    if (c->handler.on_progress)
        c->handler.on_progress(c->handler.user, &p);
}

/* ---- replies ------------------------------------------------------------------------------------------ */

bool dgm_mcp_call_replied(dgm_mcp_call *c)
{
    c->request = NULL;
    call_uncount(c);
    return !c->is_freeing;
}

static void call_on_input_required(dgm_mcp_call *c, const yyjson_val *result)
{
    dgm_str state = dgm_json_str_member(result, "requestState");
    yyjson_val *requests = dgm_json_non_null(result, "inputRequests");
    dgm_arena_reset(c->round);
    dgm_buf_clear(&c->responses);
    c->request_state = (dgm_str){0};
    c->requests = NULL;
    if (state.n > DGM_MAX_MCP_STATE_BYTES) {
        dgm_mcp_call_fail(
            c, DGM_TOO_LARGE, true,
            "requestState of the MCP server is larger than the limit mcp_state_bytes");
        return;
    }
    if (state.p)
        c->request_state = dgm_arena_dup(c->round, state);
    if (yyjson_is_obj(requests))
        c->requests = dgm_json_copy(c->round, requests);
    dgm_mcp_ask_round(c);
}

void dgm_mcp_call_result(dgm_mcp_call *c, yyjson_val *result)
{
    dgm_str type = dgm_json_str_member(result, "resultType");
    dgm_mcp_result r;
    dgm_err err = {0};
    if (dgm_str_is(type, "input_required") && !c->task_id.n) {
        call_on_input_required(c, result);
    } else if (dgm_str_is(type, "task") && !c->task_id.n) {
        dgm_mcp_task_created(c, result);
    } else if (type.n && !dgm_str_is(type, "complete")) {
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, true,
                          "the MCP server sent a result of the unknown type \"%.*s\"",
                          (int)(type.n < 40 ? type.n : 40), type.p);
    } else if (dgm_mcp_read_result(c->round, result, &r, &err)) {
        c->task_id = (dgm_str){0}; /* it has ended */
        dgm_mcp_call_fail(c, err.code, true, "%s", err.msg);
    } else {
        c->task_id = (dgm_str){0};
        dgm_mcp_call_finish(c, &r, NULL);
    }
}

static void call_on_reply(void *user, const struct mcp_reply *reply)
{
    dgm_mcp_call *c = user;
    struct mcp_session *s = c->session;
    bool is_mismatch = reply->error.rpc_code == DGM_MCP_HEADER_MISMATCH;
    if (!dgm_mcp_call_replied(c))
        return;
    if (reply->result) {
        dgm_mcp_session_worked(s);
        dgm_mcp_call_result(c, reply->result);
    } else if ((reply->is_session_forgotten || is_mismatch) && !c->was_repeated) {
        c->was_repeated = true; /* the server reported that it did not handle it */
        c->was_sent = false;
        s->tools_changed |= is_mismatch;
        dgm_mcp_call_again(c);
    } else if (reply->error.rpc_code == DGM_MCP_URL_ELICITATION && !s->is_modern) {
        dgm_mcp_ask_urls(c, reply->data);
    } else {
        dgm_mcp_call_finish(c, NULL, &reply->error);
    }
}

/* ---- requests ----------------------------------------------------------------------------------------- */

void dgm_mcp_call_request(dgm_mcp_call *c, struct mcp_send *send)
{
    send->call = c;
    send->user = c;
    c->counts = true;
    c->session->n_calls++;
    dgm_mcp_call_alive(c);
    struct mcp_request *r = dgm_mcp_send(c->session, send);
    if (r)
        c->request = r;
}

static void call_send(dgm_mcp_call *c)
{
    const struct mcp_tool *more = NULL;
    const dgm_mcp_tool *tool = dgm_mcp_find_tool(c->session->tools, c->tool, &more);
    dgm_fetch_header *headers = NULL;
    size_t n_headers = 0;
    dgm_buf params;
    if (!tool) {
        dgm_mcp_call_fail(c, DGM_BAD_PARAMS, false, "MCP server %.*s has no tool \"%.*s\"",
                          DGM_P(c->mcp->config.name), (int)(c->tool.n < 100 ? c->tool.n : 100),
                          c->tool.p);
        return;
    }
    dgm_buf_init(&params, SIZE_MAX);
    dgm_buf_add_lit(&params, "\"name\":");
    dgm_json_put_str(&params, tool->own_name);
    dgm_buf_add_lit(&params, ",\"arguments\":");
    dgm_json_put(&params, c->arguments);
    if (c->responses.n)
        dgm_buf_printf(&params, ",\"inputResponses\":{%.*s}", DGM_P(dgm_buf_str(&c->responses)));
    if (c->request_state.p) {
        dgm_buf_add_lit(&params, ",\"requestState\":");
        dgm_json_put_str(&params, c->request_state);
    }
    n_headers = dgm_mcp_param_headers(c->round, more, c->arguments, &headers);
    c->was_sent = true;
    dgm_mcp_call_request(c, &(struct mcp_send){.method = "tools/call",
                                               .params = dgm_buf_str(&params),
                                               .name = tool->own_name,
                                               .headers = headers,
                                               .n_headers = n_headers,
                                               .on_reply = call_on_reply});
    dgm_buf_done(&params);
}

static void call_on_ready(struct mcp_waiter *w, const dgm_mcp_error *error)
{
    dgm_mcp_call *c = (dgm_mcp_call *)w;
    c->session = w->session;
    w->session = NULL;
    if (error) {
        dgm_mcp_error e = *error;
        e.is_outcome_unknown = c->task_id.n > 0; /* the task runs on */
        dgm_mcp_call_finish(c, NULL, &e);
    } else if (c->task_id.n) {
        dgm_mcp_task_poll(c);
    } else {
        call_send(c);
    }
}

void dgm_mcp_call_again(dgm_mcp_call *c)
{
    dgm_mcp_call_alive(c);
    dgm_mcp_wait(dgm_mcp_session_find(c->mcp, c->loop, c->share_key), &c->waiter);
}

static void call_on_pause(void *arg)
{
    dgm_mcp_call_again(arg);
}

static void call_on_turn(void *arg)
{
    dgm_mcp_call *c = arg;
    if (c->questions)
        dgm_mcp_ask_turn(c);
    else
        dgm_mcp_ask_round(c); /* of a state that was loaded */
}

/* ---- starting ----------------------------------------------------------------------------------------- */

static dgm_mcp_call *call_new(dgm_mcp *m, dgm_loop *loop, const dgm_mcp_call_options *o)
{
    dgm_arena *a = dgm_arena_new_small(2048);
    dgm_mcp_call *c = dgm_new(a, dgm_mcp_call);
    c->arena = a;
    c->round = dgm_arena_new_small(1024);
    c->mcp = m;
    c->loop = loop;
    c->waiter.on_ready = call_on_ready;
    c->waiter.is_call = true;
    c->share_key = dgm_arena_dup(a, o->share_key);
    c->tool = dgm_arena_dup(a, o->tool);
    c->call_id = dgm_arena_dup(a, o->call_id);
    c->fence = o->fence;
    c->traceparent = dgm_arena_dup(a, o->traceparent);
    c->arguments = yyjson_is_obj(dgm_mcp_plain(o->arguments))
                       ? dgm_json_copy(a, o->arguments)
                       : dgm_json_parse_trusted(a, DGM_STR("{}"));
    c->timeout_ms = o->timeout_ms ? o->timeout_ms : m->config.timeout_ms;
    c->last_question = &c->questions;
    c->turn = (dgm_loop_turn){.fn = call_on_turn, .arg = c};
    dgm_timer_init(loop, &c->timer, call_on_timer, c);
    dgm_timer_init(loop, &c->pause, call_on_pause, c);
    dgm_buf_init(&c->responses, DGM_MAX_RECORD_BYTES);
    return c;
}

dgm_mcp_call *dgm_mcp_call_start(dgm_mcp *m, dgm_loop *loop, const dgm_mcp_call_options *options,
                                 dgm_mcp_call_handler handler)
{
    dgm_mcp_call *c = call_new(m, loop, options);
    dgm_err err = {0};
    c->handler = handler;
    if (options->state.n && dgm_mcp_load_state(c, options->state, &err))
        dgm_mcp_log(m, "MCP server %.*s: a call starts again, its state is invalid: %s",
                    DGM_P(m->config.name), err.msg);
    if (c->requests && !c->task_id.n)
        dgm_loop_at_turn_end(loop, &c->turn);
    else
        dgm_mcp_call_again(c);
    return c;
}
