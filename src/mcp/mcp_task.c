/*
 * mcp/mcp_task.c - a call that became a task of the server (extension io.modelcontextprotocol/tasks, SEP-2663).
 *
 * The task is polled until it ends. A poll may be repeated, so a broken connection does not end the call: another session
 * is used.
 */
#include "mcp/mcp_int.h"

#define MIN_POLL_MS 20
#define MAX_POLL_MS 60000
#define USUAL_POLL_MS 1000
#define MAX_FAILED_POLLS 5

static void task_read_interval(dgm_mcp_call *c, const yyjson_val *task)
{
    yyjson_val *v = dgm_json_get(task, DGM_STR("pollIntervalMs"));
    int64_t ms;
    if (v && dgm_json_int(v, &ms))
        c->poll_ms = ms < MIN_POLL_MS ? MIN_POLL_MS : ms > MAX_POLL_MS ? MAX_POLL_MS : (uint64_t)ms;
}

static void task_ended(dgm_mcp_call *c)
{
    c->task_id = (dgm_str){0}; /* it need not be canceled */
}

static void task_failed(dgm_mcp_call *c, const yyjson_val *task)
{
    yyjson_val *error = dgm_json_get(task, DGM_STR("error"));
    yyjson_val *code = dgm_json_get(error, DGM_STR("code"));
    dgm_mcp_error e = {.code = DGM_INTERNAL, .message = dgm_json_str_member(error, "message")};
    if (!e.message.n)
        e.message = dgm_json_str_member(task, "statusMessage");
    if (!e.message.n)
        e.message = DGM_STR("the task of the MCP server failed");
    if (!code || !dgm_json_int(code, &e.rpc_code))
        e.rpc_code = -32603;
    task_ended(c);
    dgm_mcp_call_finish(c, NULL, &e);
}

static void task_report(dgm_mcp_call *c, const yyjson_val *task)
{
    dgm_str message = dgm_json_str_member(task, "statusMessage");
    if (message.n && c->handler.on_progress)
        c->handler.on_progress(c->handler.user, &(dgm_mcp_progress){.message = message});
}

static void task_ask(dgm_mcp_call *c, const yyjson_val *task)
{
    yyjson_val *requests = dgm_json_get(task, DGM_STR("inputRequests"));
    dgm_arena_reset(c->round);
    dgm_buf_clear(&c->responses);
    c->requests = yyjson_is_obj(requests) ? dgm_json_copy(c->round, requests) : NULL;
    dgm_mcp_ask_round(c);
}

/* Its state, from tools/call or tasks/get. */
static void task_on_state(dgm_mcp_call *c, const yyjson_val *task)
{
    dgm_str status = dgm_json_str_member(task, "status");
    task_read_interval(c, task);
    if (dgm_str_is(status, "working")) {
        dgm_timer_start(&c->pause, c->poll_ms);
        task_report(c, task);
    } else if (dgm_str_is(status, "input_required")) {
        if (dgm_json_get(task, DGM_STR("inputRequests")))
            task_ask(c, task);
        else
            dgm_timer_start(&c->pause, c->poll_ms); /* of tools/call: tasks/get has the questions */
    } else if (dgm_str_is(status, "completed")) {
        yyjson_val *result = dgm_json_get(task, DGM_STR("result"));
        if (result)
            dgm_mcp_call_result(c, result);
        else
            dgm_timer_start(&c->pause, c->poll_ms);
    } else if (dgm_str_is(status, "failed")) {
        task_failed(c, task);
    } else if (dgm_str_is(status, "cancelled")) {
        task_ended(c);
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, false, "the MCP server canceled its task");
    } else {
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, true,
                          "the MCP server's task has the unknown status \"%.*s\"",
                          (int)(status.n < 40 ? status.n : 40), status.n ? status.p : "");
    }
}

void dgm_mcp_task_created(dgm_mcp_call *c, const yyjson_val *result)
{
    dgm_str id = dgm_json_str_member(result, "taskId");
    if (!id.n || id.n > DGM_MAX_MCP_STATE_BYTES) {
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, true, "the MCP server's task has no valid id");
        return;
    }
    c->task_id = dgm_arena_dup(c->arena, id);
    c->poll_ms = USUAL_POLL_MS;
    dgm_buf_clear(&c->responses);
    task_read_interval(c, result);
    dgm_mcp_emit_state(c);
    if (!c->is_freeing)
        task_on_state(c, result);
}

/* ---- polling ------------------------------------------------------------------------------------------ */

static void task_on_failed_poll(dgm_mcp_call *c, const dgm_mcp_error *error)
{
    if (error->rpc_code || ++c->n_polls_failed > MAX_FAILED_POLLS) {
        dgm_mcp_error e = *error;
        e.is_outcome_unknown = true;
        if (error->rpc_code)
            task_ended(c); /* the server does not know it any more */
        dgm_mcp_call_finish(c, NULL, &e);
        return;
    }
    dgm_timer_start(&c->pause, c->poll_ms);
}

static void task_on_get(void *user, const struct mcp_reply *reply)
{
    dgm_mcp_call *c = user;
    if (!dgm_mcp_call_replied(c))
        return;
    if (!reply->result) {
        task_on_failed_poll(c, &reply->error);
        return;
    }
    c->n_polls_failed = 0;
    dgm_mcp_session_worked(c->session);
    dgm_mcp_call_alive(c);
    task_on_state(c, reply->result);
}

static void task_on_update(void *user, const struct mcp_reply *reply)
{
    dgm_mcp_call *c = user;
    if (!dgm_mcp_call_replied(c))
        return;
    if (reply->result)
        dgm_buf_clear(&c->responses);
    if (reply->result)
        dgm_timer_start(&c->pause, MIN_POLL_MS);
    else
        task_on_failed_poll(c, &reply->error);
}

static void task_put_id(dgm_buf *params, const dgm_mcp_call *c)
{
    dgm_buf_init(params, SIZE_MAX);
    dgm_buf_add_lit(params, "\"taskId\":");
    dgm_json_put_str(params, c->task_id);
}

void dgm_mcp_task_poll(dgm_mcp_call *c)
{
    dgm_buf params;
    bool has_answers = c->responses.n > 0;
    task_put_id(&params, c);
    if (has_answers)
        dgm_buf_printf(&params, ",\"inputResponses\":{%.*s}", DGM_P(dgm_buf_str(&c->responses)));
    dgm_mcp_call_request(
        c, &(struct mcp_send){.method = has_answers ? "tasks/update" : "tasks/get",
                              .params = dgm_buf_str(&params),
                              .name = c->task_id,
                              .timeout_ms = c->mcp->config.start_ms,
                              .on_reply = has_answers ? task_on_update : task_on_get});
    dgm_buf_done(&params);
}

void dgm_mcp_task_cancel(dgm_mcp_call *c)
{
    struct mcp_session *s = c->mcp->sessions[c->loop->index];
    dgm_buf params;
    while (s && (s->state != MCP_READY || s->is_ended || !dgm_str_eq(s->key, c->share_key)))
        s = s->next;
    if (!s)
        return; /* it can not be reached: it runs until its time to live ends */
    task_put_id(&params, c);
    dgm_mcp_send(s, &(struct mcp_send){.method = "tasks/cancel",
                                       .params = dgm_buf_str(&params),
                                       .name = c->task_id,
                                       .timeout_ms = s->mcp->config.start_ms});
    dgm_buf_done(&params);
}
