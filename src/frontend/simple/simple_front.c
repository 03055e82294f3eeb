/* frontend/simple/simple_front.c - a request in either simple dialect, and the answer in it (docs/mapping.md). */
#include "frontend/simple/simple_front.h"
#include "base/limits.h"
#include "canon/message_content.h"
#include "frontend/list_limits.h"
#include "frontend/words.h"
#include "wire/agui/agui_codec.h"
#include "wire/responses/responses.h"

#define PROTOCOL "simple"

/* ---- refusals ---------------------------------------------------------------------------------------------- */

/* As run.error has it. */
static void refuse_with(dgm_http_exchange *x, const dgm_err *err, int http,
                        const dgm_http_header *headers, size_t n)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"error\":{\"code\":\"rejected\",\"message\":");
    dgm_json_put_str(&b, dgm_str_from(err->msg[0] ? err->msg : dgm_code_message(err->code)));
    if (err->at[0]) {
        dgm_buf_add_lit(&b, ",\"at\":");
        dgm_json_put_str(&b, dgm_str_from(err->at));
    }
    dgm_buf_add_lit(&b, "}}");
    dgm_http_respond(x, http, DGM_STR("application/json"), headers, n, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void refuse_for(dgm_http_exchange *x, const dgm_err *err, const dgm_http_header *headers,
                       size_t n)
{
    static const dgm_http_header later = {{"Retry-After", 11}, {"1", 1}};
    bool busy = err->code == DGM_UNAVAILABLE || err->code == DGM_RATE_LIMITED;
    refuse_with(x, err,
                err->code == DGM_CONTENT_TYPE_NOT_SUPPORTED ? 415 : dgm_code_http(err->code, false),
                !n && busy ? &later : headers, !n && busy ? 1 : n);
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static const struct dialect {
    const dgm_codec *requests, *events;
    const struct dgm_list_limit *lists;
    int leave; /* DGM_LEAVE_ */
} dialects[] = {
    {&dgm_codec_agui, &dgm_codec_agui_simple, dgm_list_limits_agui, DGM_LEAVE_AGUI},
    {&dgm_codec_responses, &dgm_codec_responses_simple, dgm_list_limits_responses,
     DGM_LEAVE_RESPONSES},
};

/* Lives in the exchange's arena. */
struct run {
    dgm_front_request q;
    const struct dialect *dialect;
    dgm_canon_input input;
    dgm_str context; /* empty: a new one */
};

static dgm_code need_text(dgm_reader *r, yyjson_val *body, const char *name, dgm_str *ret)
{
    yyjson_val *v = dgm_json_get(body, dgm_str_from(name));
    *ret = (dgm_str){0};
    if (!v || yyjson_is_null(v))
        return DGM_OK;
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, DGM_AT(NULL, dgm_str_from(name)), "a string");
    *ret = dgm_json_str(v);
    return DGM_OK;
}

/* "conv", or {"id":"conv"}. */
static dgm_code read_conversation(dgm_reader *r, yyjson_val *body, dgm_str *ret)
{
    yyjson_val *v = dgm_json_get(body, DGM_STR("conversation"));
    *ret = yyjson_is_obj(v) ? dgm_json_str_member(v, "id") : (dgm_str){0};
    return ret->n ? DGM_OK : need_text(r, body, "conversation", ret);
}

/* What Responses says of where it goes, and to whom. */
static dgm_code read_address(dgm_reader *r, yyjson_val *body, struct run *run)
{
    dgm_str model, other;
    dgm_code rc;
    if ((rc = need_text(r, body, "model", &model)) ||
        (rc = need_text(r, body, "instructions", &other)) ||
        (rc = read_conversation(r, body, &run->context)) ||
        (rc = need_text(r, body, "previous_response_id", &other)))
        return rc;
    if (other.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "previous_response_id"),
                        "events of this dialect name no responses: go on with `conversation`");
    if (model.n && !run->q.agent &&
        !(run->q.agent = dgm_turns_find_agent(&run->q.turns->o, run->q.owner.tenant, model)))
        return dgm_fail(r->err, DGM_NO_SUCH_METHOD, DGM_AT_LIT(NULL, "model"), "unknown agent");
    return DGM_OK;
}

static dgm_code read_run(struct run *run, dgm_err *err)
{
    yyjson_val *body;
    dgm_mint mint = dgm_turn_mint();
    dgm_reader r = dgm_turn_reader(run->q.x, &mint, err);
    dgm_code rc;
    if ((rc = dgm_turn_body(run->q.x, &body, err)) ||
        (rc = dgm_check_lists(body, run->dialect->lists, err)) ||
        (rc = run->dialect->requests->read_request(&r, body, NULL, &run->input)))
        return rc;
    if (run->dialect->requests == &dgm_codec_responses)
        rc = read_address(&r, body, run);
    else
        run->context = run->input.thread_id;
    if (!rc && run->context.n > DGM_MAX_ID_BYTES)
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "the id is longer than the limit id_bytes");
    if (!run->q.agent)
        run->q.agent = run->q.turns->o.first;
    return rc;
}

/* ---- turns ------------------------------------------------------------------------------------------------- */

static bool wants_lines(const dgm_http_request *r)
{
    return dgm_accepts(r, DGM_STR("application/x-ndjson")) ||
           dgm_accepts(r, DGM_STR("application/jsonl"));
}

static void simple_front_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct run *run = arg;
    dgm_http_exchange *x = run->q.x;
    dgm_err gone = {0};
    if (!code && !sent->first_seq)
        code = dgm_fail(&gone, DGM_TASK_NOT_FOUND, NULL,
                        "this message was answered, but the answer is no longer stored");
    if (code) {
        refuse_for(x, gone.code ? &gone : err, NULL, 0);
        return;
    }
    dgm_front_note_task(x, sent->task_id, sent->turn);
    dgm_turn_stream(x,
                    &(dgm_turn_output){.codec = run->dialect->events,
                                       .thread_id = sent->context_id,
                                       .run_id = sent->task_id,
                                       .as = wants_lines(dgm_http_request_of(x)) ? DGM_OUTPUT_LINES
                                                                                 : DGM_OUTPUT_SSE,
                                       .seq_ids = true,
                                       .say_caller = true,
                                       .turns = run->q.turns,
                                       .owner = run->q.owner,
                                       .agent = run->q.agent->id,
                                       .task_id = sent->task_id,
                                       .leave = run->q.turns->o.leave[run->dialect->leave],
                                       .answer_in_status = run->q.agent->answer_in_status,
                                       .turn = sent->is_resend ? 0 : sent->turn},
                    sent->log, sent->first_seq);
}

static void ask(struct run *run)
{
    dgm_arena *a = dgm_http_arena(run->q.x);
    dgm_ask *ask = dgm_new(a, dgm_ask);
    *ask = (dgm_ask){.x = run->q.x,
                     .turns = run->q.turns,
                     .owner = run->q.owner,
                     .agent = run->q.agent,
                     .input = &run->input,
                     .context_id = run->context,
                     .context_has_history = run->context.n > 0,
                     .protocol = DGM_STR(PROTOCOL),
                     .caller_id = dgm_arena_printf(a, "%.*s/%.*s", DGM_P(run->input.thread_id),
                                                   DGM_P(run->input.run_id)),
                     .dedupe = true};
    dgm_turn_ask(ask, simple_front_on_sent, run);
}

static void simple_handle(const dgm_front_request *q)
{
    struct run *run = dgm_new(dgm_http_arena(q->x), struct run);
    dgm_err err = {0};
    run->q = *q;
    run->dialect = &dialects[q->route->op];
    if (read_run(run, &err))
        refuse_for(q->x, &err, NULL, 0);
    else
        ask(run);
}

static void simple_refuse(const dgm_front_request *q, const dgm_err *err,
                          const dgm_http_header *headers, size_t n)
{
    refuse_for(q->x, err, headers, n);
}

static void simple_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_err err = {0};
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "method not allowed: use POST");
    refuse_with(q->x, &err, 405, &header, 1);
}

/* clang-format off */
static const dgm_route simple_routes[] = {
    {DGM_ROUTE_POST, "/simple/ag-ui",     "SimpleRun",      DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, simple_handle, 0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_POST, "/simple/responses", "SimpleResponse", DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, simple_handle, 1, DGM_SCOPE_AGENT},
};
/* clang-format on */

const dgm_frontend dgm_front_simple = {.name = "simple",
                                       DGM_ROUTES(simple_routes),
                                       .lists_options = true,
                                       .refuse = simple_refuse,
                                       .refuse_method = simple_refuse_method};
