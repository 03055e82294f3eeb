/*
 * backend/llm/llm_model.c - one call of a model: the request to its server (or to the scripted model), and the answer as
 * events of the loop.
 *
 *   start ── write the request ── remote or mock ── values ── dgm_model_answer ──► MODEL_TEXT ... MODEL_END | MODEL_FAILED
 *
 * Retries and failover are decisions of the loop. Only a request that the server rejects because of a member that it does
 * not know is sent again from here, without the member.
 */
#include "backend/llm/llm_int.h"
#include "backend/llm/mock.h"
#include "base/limits.h"
#include "canon/events_to_records.h"
#include "model/fold.h"

#include <stdio.h>

#define MOCK_FULL_MS 5 /* how soon the scripted model checks again whether the log has room */
#define MAX_MOCK_ERROR_BYTES ((size_t)64 << 10)

struct llm_model_call {
    struct llm_job *job;
    struct llm_upstream *upstream;
    dgm_arena *arena;
    dgm_arena *request_arena; /* of the request, until the answer begins: it may be sent again */
    dgm_model_answer *answer;
    dgm_model_handler handler;
    dgm_remote_call *remote;
    dgm_mock *mock;
    dgm_frames frames; /* of the scripted model */
    dgm_buf error_body;
    dgm_timer timer;
    dgm_mock_step step; /* the next one */
    dgm_str traceparent;
    dgm_str wrong; /* the request cannot be written: why */
    unsigned attempt, without;
    int64_t retry_after_ms; /* < 0: unknown */
    bool is_stopped;
    dgm_model_request request;
};

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void model_on_timer_closed(void *arg)
{
    struct llm_model_call *c = arg;
    dgm_model_answer_free(c->answer);
    dgm_mock_free(c->mock);
    dgm_frames_done(&c->frames);
    dgm_buf_done(&c->error_body);
    dgm_arena_free(c->request_arena);
    dgm_arena_free(c->arena); /* the call is in it */
}

/* Nothing comes from it behind this. Its memory is valid until the loop's next turn. */
static void model_leave(struct llm_model_call *c)
{
    if (c->is_stopped)
        return;
    c->is_stopped = true;
    if (c->remote && dgm_model_answer_is_over(c->answer))
        dgm_remote_release(c->remote);
    else if (c->remote)
        dgm_remote_cancel(c->remote);
    c->remote = NULL;
    dgm_timer_stop(&c->timer);
    if (c->job->model == c)
        c->job->model = NULL;
    dgm_timer_close(&c->timer, model_on_timer_closed, c);
}

void dgm_llm_model_stop(struct llm_job *j)
{
    if (j->model)
        model_leave(j->model);
}

static void model_fail(struct llm_model_call *c, const dgm_model_error *e)
{
    struct llm_job *j = c->job;
    dgm_llm_event event = {.kind = DGM_LLM_MODEL_FAILED,
                           .failure = {.message = e->message,
                                       .is_retryable = e->is_retryable,
                                       .is_content_filter = e->is_content_filter,
                                       .is_too_long = e->is_too_long,
                                       .retry_after_ms = e->retry_after_ms}};
    model_leave(c);
    dgm_llm_job_step(j, &event);
}

/* ---- the answer ----------------------------------------------------------------------------------------------------- */

static dgm_code model_step(struct llm_model_call *c, const dgm_llm_event *event)
{
    if (!c->is_stopped)
        dgm_llm_job_step(c->job, event);
    return c->is_stopped ? DGM_UNAVAILABLE : DGM_OK; /* ends the reading of the answer */
}

static dgm_code model_on_text(void *arg, dgm_str delta)
{
    return model_step(arg, &(dgm_llm_event){.kind = DGM_LLM_MODEL_TEXT, .text = delta});
}

static dgm_code model_on_reasoning(void *arg, dgm_str delta)
{
    return model_step(arg, &(dgm_llm_event){.kind = DGM_LLM_MODEL_REASONING, .text = delta});
}

static dgm_code model_on_call(void *arg, const dgm_model_call *call)
{
    return model_step(arg, &(dgm_llm_event){.kind = DGM_LLM_MODEL_CALL,
                                            .call = {.id = call->id,
                                                     .name = call->name,
                                                     .arguments = call->arguments,
                                                     .is_custom = call->is_custom}});
}

static dgm_str model_clean_error(void *arg, dgm_arena *a, dgm_str text)
{
    struct llm_model_call *c = arg;
    return dgm_remote_clean_error(&c->upstream->remote, a, text);
}

/* The value of the internal event; NULL: the server reported nothing. */
static const dgm_json *model_usage(struct llm_model_call *c, const dgm_model_result *r)
{
    dgm_canon_usage u = r->usage;
    if (!u.input_tokens.set && !u.output_tokens.set && !u.total_tokens.set)
        return NULL;
    u.model = r->model.n ? r->model : c->upstream->model;
    return dgm_canon_usage_value(c->arena, &u);
}

static uint64_t known_tokens(dgm_opt_long n)
{
    return n.set && n.value > 0 ? (uint64_t)n.value : 0;
}

static void model_finish(struct llm_model_call *c)
{
    struct llm_job *j = c->job;
    const dgm_model_result *r = dgm_model_answer_result(c->answer);
    if (r->finish == DGM_MODEL_ERROR || r->finish == DGM_MODEL_UNFINISHED) {
        model_fail(c, &r->error);
        return;
    }
    dgm_llm_event event = {.kind = DGM_LLM_MODEL_END,
                           .end = {.finish = r->finish == DGM_MODEL_LENGTH ? DGM_LLM_LENGTH
                                             : r->finish == DGM_MODEL_CONTENT_FILTER
                                                 ? DGM_LLM_CONTENT_FILTER
                                                 : DGM_LLM_STOP,
                                   .input_tokens = known_tokens(r->usage.input_tokens),
                                   .output_tokens = known_tokens(r->usage.output_tokens),
                                   .total_tokens = known_tokens(r->usage.total_tokens),
                                   .usage = model_usage(c, r),
                                   .refusal = r->refusal,
                                   .opaque = r->opaque}};
    model_leave(c);
    dgm_llm_job_step(j, &event);
}

/* The last value was read. */
static void model_end_answer(struct llm_model_call *c)
{
    dgm_err err = {0};
    dgm_model_answer_end(c->answer, &err); /* its error is in the result */
    if (!c->is_stopped)
        model_finish(c);
}

static void model_on_item(void *user, const dgm_frames_item *item)
{
    struct llm_model_call *c = user;
    struct llm_job *j = c->job;
    if (c->is_stopped)
        return;
    j->n_held++;
    if (c->request_arena)
        dgm_arena_free(dgm_take(c->request_arena));
    dgm_code rc = dgm_model_answer_feed(c->answer, item, NULL); /* an error is in the result */
    if (!c->is_stopped && (rc || dgm_model_answer_is_over(c->answer)))
        model_end_answer(c);
    dgm_llm_job_release(j);
}

/* ---- errors ----------------------------------------------------------------------------------------------------------- */

static void model_send(struct llm_model_call *c);

/* An answer with an error status. */
static void model_on_status(struct llm_model_call *c, int status, dgm_str body)
{
    dgm_model_error e = {0};
    unsigned rejected = dgm_model_rejected(status, body) & ~c->without;
    if (rejected) {
        c->without |= rejected;
        atomic_fetch_or(&c->upstream->without, rejected);
        model_send(c);
        return;
    }
    dgm_model_read_error(c->arena, status, body, &c->handler, &e);
    e.retry_after_ms = c->retry_after_ms;
    model_fail(c, &e);
}

static bool is_transient(dgm_fetch_end end)
{
    return end == DGM_FETCH_NO_ADDRESS || end == DGM_FETCH_UNREACHABLE || end == DGM_FETCH_CUT ||
           end == DGM_FETCH_TIMEOUT || end == DGM_FETCH_TLS;
}

static void model_on_end(void *user, const dgm_remote_end *end)
{
    struct llm_model_call *c = user;
    struct llm_job *j = c->job;
    c->remote = NULL;
    if (c->is_stopped)
        return;
    j->n_held++;
    if (end->status >= 300) {
        model_on_status(c, end->status, end->body);
    } else if (end->error && !end->is_cut) {
        model_fail(c, &(dgm_model_error){.message = dgm_str_from(end->error),
                                         .is_retryable = is_transient(end->end),
                                         .retry_after_ms = -1});
    } else {
        model_end_answer(c); /* one that was cut becomes an error, unless it was complete */
    }
    dgm_llm_job_release(j);
}

static void model_on_head(void *user, const dgm_fetch_head *head)
{
    struct llm_model_call *c = user;
    c->retry_after_ms =
        dgm_model_retry_after(dgm_fetch_header_of(head, "retry-after"),
                              dgm_fetch_header_of(head, "retry-after-ms"), dgm_loop_unix_ms());
}

/* ---- the scripted model --------------------------------------------------------------------------------------------- */

static void mock_read(struct llm_model_call *c, dgm_str bytes)
{
    dgm_frames_item item;
    dgm_err err = {0};
    if (dgm_mock_status(c->mock) >= 300) {
        dgm_buf_add_str(&c->error_body, bytes);
        return;
    }
    if (bytes.n)
        dgm_frames_feed(&c->frames, bytes.p, bytes.n);
    while (!c->is_stopped && !dgm_frames_next(&c->frames, &item, &err) && item.text.p)
        model_on_item(c, &item);
}

static void mock_end(struct llm_model_call *c, bool is_cut)
{
    if (dgm_mock_status(c->mock) >= 300 && !is_cut) {
        model_on_status(c, dgm_mock_status(c->mock), dgm_buf_str(&c->error_body));
        return;
    }
    dgm_frames_end(&c->frames);
    mock_read(c, (dgm_str){0});
    if (!c->is_stopped)
        model_end_answer(c);
}

/* The step is valid until the next one is read: it was read when its time began. */
static void mock_on_timer(void *arg)
{
    struct llm_model_call *c = arg;
    struct llm_job *j = c->job;
    dgm_run *run = j->run;
    if (run->ops->is_full(run)) {
        dgm_timer_start(&c->timer, MOCK_FULL_MS);
        return;
    }
    j->n_held++;
    do {
        mock_read(c, c->step.bytes);
        if (c->is_stopped)
            break;
        if (c->step.is_end || c->step.is_cut) {
            mock_end(c, c->step.is_cut);
            break;
        }
        dgm_mock_next(c->mock, &c->step);
        if (c->step.wait_ms || run->ops->is_full(run)) {
            dgm_timer_start(&c->timer, c->step.wait_ms);
            break;
        }
    } while (!c->is_stopped);
    dgm_llm_job_release(j);
}

static void mock_start(struct llm_model_call *c, dgm_str body)
{
    dgm_mock_free(c->mock);
    c->mock = dgm_mock_new(body, c->attempt);
    c->retry_after_ms = dgm_model_retry_after(dgm_mock_retry_after(c->mock), (dgm_str){0}, 0);
    dgm_mock_next(c->mock, &c->step);
    dgm_timer_start(&c->timer, c->step.wait_ms);
}

/* ---- the request ------------------------------------------------------------------------------------------------------ */

static void remote_start(struct llm_model_call *c, dgm_str body)
{
    dgm_remote_request request = {
        .method = "POST",
        .url = c->upstream->url.p,
        .body = body,
        .headers = {{DGM_STR("Content-Type"), DGM_STR("application/json")},
                    {DGM_STR("Accept"), DGM_STR("text/event-stream, application/json")},
                    {DGM_STR("traceparent"), c->traceparent},
                    {DGM_STR("X-Dragoman-Task"), c->job->run->input->task_id}},
        .n_headers = 4,
    };
    c->remote = dgm_remote_start(
        &c->upstream->remote, c->job->run, &request,
        (dgm_remote_handler){
            .on_item = model_on_item, .on_end = model_on_end, .user = c, .on_head = model_on_head});
}

/* Also again, with other bits in `without`. */
static void model_send(struct llm_model_call *c)
{
    dgm_buf body;
    dgm_err err = {0};
    c->request.without = c->without;
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    dgm_code rc = dgm_model_write_request(&c->request, &body, &err);
    if (!rc && body.over)
        rc = dgm_fail(&err, DGM_TOO_LARGE, NULL,
                      "it becomes more than the limit object_bytes of %zu", DGM_MAX_OBJECT_BYTES);
    if (rc) {
        c->wrong =
            dgm_arena_printf(c->arena, "the conversation cannot be sent to the model: %s", err.msg);
        dgm_timer_start(&c->timer, 0);
    } else {
        if (c->upstream->is_mock)
            mock_start(c, dgm_buf_str(&body));
        else
            remote_start(c, dgm_buf_str(&body));
    }
    dgm_buf_done(&body);
}

static void model_on_timer(void *arg)
{
    struct llm_model_call *c = arg;
    if (c->wrong.n)
        model_fail(c, &(dgm_model_error){.message = c->wrong, .retry_after_ms = -1});
    else
        mock_on_timer(c);
}

/* The agent's instructions, those of the caller, and what an AG-UI client adds as context. */
static dgm_str model_instructions(struct llm_model_call *c)
{
    struct llm_job *j = c->job;
    dgm_str own = dgm_json_str_member(j->caller, DGM_META_INSTRUCTIONS);
    yyjson_val *context = dgm_json_get(j->caller, DGM_STR(DGM_META_CONTEXT)), *e;
    size_t i, n;
    dgm_buf b;
    if (!own.n && !yyjson_arr_size(context))
        return j->agent->instructions;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_str(&b, j->agent->instructions);
    dgm_buf_printf(&b, "%s%.*s", b.n && own.n ? "\n\n" : "", DGM_P(own));
    yyjson_arr_foreach (context, i, n, e)
        dgm_buf_printf(&b, "%s%.*s: %.*s", b.n ? "\n\n" : "",
                       DGM_P(dgm_json_str_member(e, "description")),
                       DGM_P(dgm_json_str_member(e, "value")));
    dgm_str text = dgm_arena_dup(c->request_arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void model_make_request(struct llm_model_call *c, const dgm_llm_model *m)
{
    struct llm_job *j = c->job;
    dgm_message *messages = dgm_new_n(c->request_arena, dgm_message, m->messages.n + 1);
    for (size_t i = 0; i < m->messages.n; i++)
        messages[i] = dgm_message_copy(c->request_arena, &m->messages.at[i]);
    c->request = (dgm_model_request){
        .api = (dgm_model_api)c->upstream->api,
        .model = c->upstream->model,
        .messages = {messages, m->messages.n},
        .parameters = j->agent->parameters,
        .without = c->without,
        .sends_reasoning = c->upstream->send_reasoning,
        .source = c->upstream->source,
    };
    if (m->is_summary)
        return;
    c->request.instructions = model_instructions(c);
    c->request.tools = dgm_llm_tools_definitions(j, c->request_arena);
    c->request.response_format = dgm_json_get(j->caller, DGM_STR(DGM_META_RESPONSE_FORMAT));
    c->request.caller_parameters = dgm_json_get(j->caller, DGM_STR(DGM_META_PARAMETERS));
    c->request.tool_choice = dgm_json_get(j->caller, DGM_STR(DGM_META_TOOL_CHOICE));
    if (m->iteration > 1) /* a choice that is required again would never end */
        c->request.tool_choice = NULL;
    if (!m->may_call && c->request.tools.n)
        c->request.tool_choice = dgm_json_make_string(c->request_arena, DGM_STR("none"));
}

void dgm_llm_model_start(struct llm_job *j, const dgm_llm_model *m)
{
    struct llm_agent *x = j->agent;
    dgm_arena *a = dgm_arena_new();
    struct llm_model_call *c = dgm_new(a, struct llm_model_call);
    c->arena = a;
    c->request_arena = dgm_arena_new();
    c->job = j;
    c->upstream = &x->upstreams[m->upstream < x->n_upstreams ? m->upstream : 0];
    c->attempt = m->attempt;
    c->without = atomic_load(&c->upstream->without);
    c->retry_after_ms = -1;
    c->traceparent = dgm_run_traceparent(a, j->run->input->task_id, m->id);
    c->handler = (dgm_model_handler){.on_text = model_on_text,
                                     .on_reasoning = model_on_reasoning,
                                     .on_call = model_on_call,
                                     .clean_error = model_clean_error,
                                     .arg = c,
                                     .source = c->upstream->source,
                                     .keeps_reasoning = c->upstream->send_reasoning};
    c->answer = dgm_model_answer_new((dgm_model_api)c->upstream->api, &c->handler,
                                     dgm_hash(m->attempt + 1, m->id.p, m->id.n));
    dgm_timer_init(j->run->loop, &c->timer, model_on_timer, c);
    dgm_frames_init(&c->frames, false);
    dgm_buf_init(&c->error_body, MAX_MOCK_ERROR_BYTES);
    j->model = c;
    model_make_request(c, m);
    model_send(c);
}
