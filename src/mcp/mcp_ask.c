/*
 * mcp/mcp_ask.c - questions of a server to the user (elicitation), one after the other.
 *
 * 2026-07-28: the result of the call contains them, and the call is sent again with the answers. 2025-11-25: the server
 * sends requests while the call runs, or an error that lists URLs to open first.
 */
#include "mcp/mcp_int.h"

#define RETRY_MS 250 /* a round without a question: the server wants to be asked again */

bool dgm_mcp_ask_is_open(const dgm_mcp_call *c)
{
    return c->questions && c->questions->is_shown && !c->questions->answer.n;
}

dgm_code dgm_mcp_read_ask(dgm_arena *a, const yyjson_val *params, dgm_mcp_ask *ret_ask,
                          dgm_err *err)
{
    dgm_str mode = dgm_json_str_member(params, "mode");
    yyjson_val *schema = dgm_json_get(params, DGM_STR("requestedSchema"));
    dgm_mcp_ask ask = {
        .message = dgm_arena_dup(a, dgm_json_str_member(params, "message")),
        .id = dgm_arena_dup(a, dgm_json_str_member(params, "elicitationId")),
    };
    if (dgm_str_is(mode, "url")) {
        ask.kind = DGM_MCP_ASK_URL;
        ask.url = dgm_arena_dup(a, dgm_json_str_member(params, "url"));
        if (!ask.url.n || strlen(ask.url.p) != ask.url.n ||
            !dgm_url_is_same_origin(ask.url.p, ask.url.p))
            return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a question without an http or https URL");
    } else if (mode.n && !dgm_str_is(mode, "form")) {
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a question of the unknown mode \"%.*s\"",
                        (int)(mode.n < 40 ? mode.n : 40), mode.p);
    } else if (!yyjson_is_obj(schema)) {
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a question without requestedSchema");
    } else {
        ask.schema = dgm_json_copy(a, schema);
    }
    *ret_ask = ask;
    return DGM_OK;
}

static struct mcp_question *ask_push(dgm_mcp_call *c, enum mcp_question_from from,
                                     const dgm_mcp_ask *ask)
{
    struct mcp_question *q = dgm_new(c->round, struct mcp_question);
    *q = (struct mcp_question){.from = from, .ask = *ask};
    *c->last_question = q;
    c->last_question = &q->next;
    c->n_questions++;
    return q;
}

static void ask_pop(dgm_mcp_call *c)
{
    c->questions = c->questions->next;
    c->n_questions--;
    if (!c->questions)
        c->last_question = &c->questions;
}

static void ask_show(dgm_mcp_call *c)
{
    struct mcp_question *q = c->questions;
    q->is_shown = true;
    dgm_timer_start(&c->timer, c->mcp->config.answer_ms);
    if (c->handler.on_ask)
        c->handler.on_ask(c->handler.user, &q->ask);
    else
        dgm_mcp_answer(c, DGM_MCP_DECLINE, NULL);
}

/* ---- rounds ------------------------------------------------------------------------------------------- */

static bool is_answered(const dgm_mcp_call *c, dgm_str key)
{
    for (size_t i = 0; i < c->answered.n; i++) {
        if (dgm_str_eq(c->answered.at[i], key))
            return true;
    }
    return false;
}

static dgm_code ask_read_round(dgm_mcp_call *c, dgm_err *err)
{
    yyjson_val *key, *item;
    size_t i, n;
    dgm_mcp_ask ask;
    dgm_code rc;
    if (c->requests && yyjson_obj_size(dgm_mcp_plain(c->requests)) > DGM_MAX_MCP_QUESTIONS)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "more questions at once than the limit %d",
                        DGM_MAX_MCP_QUESTIONS);
    yyjson_obj_foreach (dgm_mcp_plain(c->requests), i, n, key, item) {
        dgm_str method = dgm_json_str_member(item, "method");
        if (is_answered(c, dgm_json_str(key)))
            continue;
        if (!dgm_str_is(method, "elicitation/create"))
            return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL,
                            "it asks for \"%.*s\", which this client does not offer",
                            (int)(method.n < 60 ? method.n : 60), method.n ? method.p : "");
        if ((rc = dgm_mcp_read_ask(c->round, dgm_json_get(item, DGM_STR("params")), &ask, err)))
            return rc;
        ask_push(c, MCP_FROM_ROUND, &ask)->key = dgm_json_str(key);
    }
    return DGM_OK;
}

void dgm_mcp_ask_round(dgm_mcp_call *c)
{
    dgm_err err = {0};
    if (++c->n_rounds > DGM_MAX_MCP_ROUNDS) {
        dgm_mcp_call_fail(c, DGM_TOO_LARGE, true,
                          "the MCP server asked more often than the limit mcp_rounds");
    } else if (ask_read_round(c, &err)) {
        dgm_mcp_call_fail(c, err.code, c->task_id.n > 0, "MCP server %.*s: %s",
                          DGM_P(c->mcp->config.name), err.msg);
    } else if (!c->questions) {
        dgm_timer_start(&c->pause, c->task_id.n ? c->poll_ms : RETRY_MS);
    } else {
        dgm_mcp_emit_state(c);
        if (!c->is_freeing)
            ask_show(c);
    }
}

/* ---- 2025-11-25 --------------------------------------------------------------------------------------- */

/* A question that names no call goes to the oldest one, unless it may belong to another caller. */
static dgm_mcp_call *ask_find_call(struct mcp_session *s, struct mcp_request *of)
{
    dgm_mcp_call *oldest = NULL;
    if (of && of->call)
        return of->call;
    if (s->mcp->config.share == DGM_MCP_SHARE_SERVER && s->n_calls > 1)
        return NULL;
    for (struct mcp_request *r = s->requests; r; r = r->next) {
        if (r->call)
            oldest = r->call;
    }
    return oldest;
}

void dgm_mcp_ask_request(struct mcp_session *s, struct mcp_request *of, const yyjson_val *id,
                         const yyjson_val *params)
{
    dgm_mcp_call *c = ask_find_call(s, of);
    dgm_mcp_ask ask;
    dgm_err err = {0};
    if (!c || c->n_questions >= DGM_MAX_MCP_QUESTIONS || ++c->n_rounds > DGM_MAX_MCP_ROUNDS) {
        dgm_mcp_respond(s, id, 0, DGM_STR("{\"action\":\"cancel\"}"));
        return;
    }
    if (dgm_mcp_read_ask(c->round, params, &ask, &err)) {
        dgm_mcp_respond(s, id, -32602, dgm_str_from(err.msg));
        return;
    }
    struct mcp_question *q = ask_push(c, MCP_FROM_REQUEST, &ask);
    q->id = dgm_json_copy(c->round, id);
    if (c->questions == q)
        ask_show(c);
}

void dgm_mcp_ask_urls(dgm_mcp_call *c, const yyjson_val *data)
{
    yyjson_val *list = dgm_json_get(data, DGM_STR("elicitations")), *item;
    size_t i, n;
    dgm_mcp_ask ask;
    dgm_err err = {0};
    bool is_valid = yyjson_is_arr(list) && yyjson_arr_size(list) <= DGM_MAX_MCP_QUESTIONS &&
                    ++c->n_rounds <= DGM_MAX_MCP_ROUNDS;
    dgm_arena_reset(c->round);
    c->is_declined = false;
    yyjson_arr_foreach (list, i, n, item) {
        if (is_valid && !dgm_mcp_read_ask(c->round, item, &ask, &err) &&
            ask.kind == DGM_MCP_ASK_URL)
            ask_push(c, MCP_FROM_ERROR, &ask);
    }
    if (c->questions)
        ask_show(c);
    else
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, false,
                          "MCP server %.*s: the tool needs a URL to be opened, but names none",
                          DGM_P(c->mcp->config.name));
}

/* ---- answers ------------------------------------------------------------------------------------------ */

void dgm_mcp_answer(dgm_mcp_call *c, dgm_mcp_action action, const dgm_json *content)
{
    static const char *const words[] = {"accept", "decline", "cancel"};
    struct mcp_question *q = c->questions;
    dgm_buf b;
    if (!dgm_mcp_ask_is_open(c))
        return;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_printf(&b, "{\"action\":\"%s\"", words[action]);
    if (action == DGM_MCP_ACCEPT && q->ask.kind == DGM_MCP_ASK_FORM) {
        dgm_buf_add_lit(&b, ",\"content\":");
        if (content)
            dgm_json_put(&b, content);
        else
            dgm_buf_add_lit(&b, "{}");
    }
    dgm_buf_add_char(&b, '}');
    q->action = action;
    q->answer =
        b.over ? DGM_STR("{\"action\":\"cancel\"}") : dgm_arena_dup(c->round, dgm_buf_str(&b));
    dgm_buf_done(&b);
    dgm_loop_at_turn_end(c->loop, &c->turn);
}

static void ask_store_answer(dgm_mcp_call *c, const struct mcp_question *q)
{
    if (c->responses.n)
        dgm_buf_add_char(&c->responses, ',');
    dgm_json_put_str(&c->responses, q->key);
    dgm_buf_add_char(&c->responses, ':');
    dgm_buf_add_str(&c->responses, q->answer);
    if (!c->task_id.n)
        return;
    dgm_str *keys = dgm_new_n(c->arena, dgm_str, c->answered.n + 1);
    if (c->answered.n)
        memcpy(keys, c->answered.at, c->answered.n * sizeof *keys);
    keys[c->answered.n] = dgm_arena_dup(c->arena, q->key);
    c->answered = (dgm_strs){keys, c->answered.n + 1};
}

static void ask_go_on(dgm_mcp_call *c, enum mcp_question_from from)
{
    dgm_timer_start(&c->timer, c->timeout_ms);
    if (from == MCP_FROM_REQUEST)
        return; /* the call runs on */
    if (c->responses.over)
        dgm_mcp_call_fail(c, DGM_TOO_LARGE, c->task_id.n > 0,
                          "the answers are larger than the limit record_bytes");
    else if (from == MCP_FROM_ERROR && c->is_declined)
        dgm_mcp_call_fail(c, DGM_UNAVAILABLE, false,
                          "MCP server %.*s: the URL that the tool needs was not opened",
                          DGM_P(c->mcp->config.name));
    else
        dgm_mcp_call_again(c);
}

void dgm_mcp_ask_turn(dgm_mcp_call *c)
{
    struct mcp_question *q = c->questions;
    if (!q->answer.n)
        return;
    ask_pop(c);
    switch (q->from) {
    case MCP_FROM_ROUND: ask_store_answer(c, q); break;
    case MCP_FROM_ERROR: c->is_declined |= q->action != DGM_MCP_ACCEPT; break;
    case MCP_FROM_REQUEST:
        if (c->request) {
            dgm_mcp_respond(c->request->session, q->id, 0, q->answer);
            if (c->is_freeing)
                return; /* the session has failed */
        }
        break;
    }
    if (c->questions)
        ask_show(c);
    else
        ask_go_on(c, q->from);
}

void dgm_mcp_ask_cancel(dgm_mcp_call *c)
{
    for (struct mcp_question *q = c->questions; q; q = q->next) {
        if (q->from == MCP_FROM_REQUEST && c->request)
            dgm_mcp_respond(c->request->session, q->id, 0, DGM_STR("{\"action\":\"cancel\"}"));
    }
    c->questions = NULL;
    c->last_question = &c->questions;
    c->n_questions = 0;
}

/* ---- the state that survives a restart ---------------------------------------------------------------- */

void dgm_mcp_emit_state(dgm_mcp_call *c)
{
    dgm_buf b;
    if (!c->handler.on_state)
        return;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_add_lit(&b, "{\"v\":1");
    if (c->task_id.n) {
        dgm_buf_printf(&b, ",\"pollMs\":%llu,\"taskId\":", (unsigned long long)c->poll_ms);
        dgm_json_put_str(&b, c->task_id);
    } else {
        if (c->request_state.p) {
            dgm_buf_add_lit(&b, ",\"requestState\":");
            dgm_json_put_str(&b, c->request_state);
        }
        dgm_buf_add_lit(&b, ",\"inputRequests\":");
        dgm_json_put(&b, c->requests);
    }
    dgm_buf_add_char(&b, '}');
    if (!b.over)
        c->handler.on_state(c->handler.user, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

dgm_code dgm_mcp_load_state(dgm_mcp_call *c, dgm_str state, dgm_err *err)
{
    yyjson_val *root, *poll;
    int64_t ms;
    dgm_code rc = dgm_json_read(c->round, dgm_arena_dup(c->arena, state), DGM_MAX_RECORD_BYTES,
                                "record_bytes", &root, err);
    if (rc)
        return rc;
    dgm_str task = dgm_json_str_member(root, "taskId");
    dgm_str request_state = dgm_json_str_member(root, "requestState");
    yyjson_val *requests = dgm_json_get(root, DGM_STR("inputRequests"));
    poll = dgm_json_get(root, DGM_STR("pollMs"));
    c->poll_ms = poll && dgm_json_int(poll, &ms) && ms > 0 && ms <= 60000 ? (uint64_t)ms : 1000;
    c->was_sent = true;
    if (task.n)
        c->task_id = dgm_arena_dup(c->arena, task);
    else if (yyjson_is_obj(requests))
        c->requests = requests;
    if (request_state.p)
        c->request_state = request_state;
    return DGM_OK;
}
