/*
 * backend/http/http.c - a service that speaks AG-UI, OpenAI's formats, the AI SDK's or A2A as an agent: one POST per turn,
 * an event stream or one JSON object back.
 *
 *   start ── recall the id of the response before (memory: service) ── POST ── events ── end
 *
 * The service is not trusted to behave: whatever it sends ends as a task in a final or waiting state, with one sentence if
 * it failed. The formats are in wire/service.h, the transport in backend/remote.
 */
#include "backend/http/http_int.h"
#include "base/limits.h"
#include "wire/server_error.h"

#include <stdio.h>
#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Service\",\"description\":\"An agent behind HTTP.\",\"skills\":[{\"id\":"
    "\"answer\",\"name\":\"Answer\",\"description\":\"Answers what is written to it.\",\"tags\":["
    "\"http\"]}]}";

#define LINGER_MS 1000 /* how long a connection may stay open behind a complete answer */

struct http_job {
    dgm_run *run;
    const struct http_agent *agent;
    dgm_remote_call *call;
    dgm_timer timer;
    dgm_service_turn turn;
    dgm_service_answer *answer;
    const char *wrong; /* the answer cannot be used: why; in the run's arena */
    dgm_str detail;    /* for the operator; in the run's arena */
};

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void http_on_timer_closed(void *arg)
{
    free(arg);
}

/* What the next turn needs: the state of an AG-UI service, the id of a response or of a task. */
static void http_remember(struct http_job *j)
{
    dgm_run *run = j->run;
    dgm_str id = dgm_service_answer_id(j->answer), state = dgm_service_answer_state(j->answer);
    if (!run->ops->remember || run->canceled)
        return;
    if (state.n)
        run->ops->remember(run, DGM_RUN_CONTEXT, state, NULL, NULL);
    else if (j->turn.has_memory && id.n && id.n <= DGM_MAX_ID_BYTES)
        run->ops->remember(run, j->agent->codec->encode ? DGM_RUN_TASK : DGM_RUN_CONTEXT, id, NULL,
                           NULL);
}

static void http_finish(struct http_job *j)
{
    dgm_run *run = j->run;
    dgm_str error = dgm_service_answer_error(j->answer);
    if (error.n && !run->canceled)
        dgm_run_report(run, &(dgm_run_fault){.what = error, .detail = j->detail});
    else
        http_remember(j);
    if (j->call)
        dgm_remote_cancel(j->call);
    j->call = NULL;
    dgm_service_answer_free(j->answer);
    j->answer = NULL;
    run->agent_data = NULL;
    dgm_timer_close(&j->timer, http_on_timer_closed, j);
    run->ops->end(run, NULL); /* the result was emitted before */
}

static void http_fail(struct http_job *j, const char *error)
{
    dgm_err err = {0};
    if (dgm_service_answer_stop(j->answer, DGM_STATE_FAILED, dgm_str_from(error), &err))
        dgm_run_note(j->run, "the last status was rejected: %s", err.msg);
    http_finish(j);
}

/* ---- the answer ----------------------------------------------------------------------------------------------------- */

static dgm_code http_on_event(void *arg, const dgm_event *event)
{
    struct http_job *j = arg;
    dgm_err err = {0};
    dgm_code rc = j->run->ops->emit(j->run, event, &err);
    if (rc)
        j->detail = dgm_arena_dup(j->run->arena, dgm_str_from(err.msg));
    return rc;
}

static dgm_str http_clean_error(void *arg, dgm_arena *a, dgm_str text)
{
    return dgm_remote_clean_error(&((struct http_job *)arg)->agent->remote, a, text);
}

/* The answer is complete, or it cannot be used; the connection is still open. */
static void http_on_timer(void *arg)
{
    struct http_job *j = arg;
    if (j->wrong)
        http_fail(j, j->wrong);
    else
        http_finish(j);
}

static void http_note_wrong(struct http_job *j, const dgm_frames_item *item, const dgm_err *err)
{
    bool is_json = err->code != DGM_PARSE;
    dgm_str text = item->text;
    j->wrong =
        dgm_arena_printf(j->run->arena, "the answer of the agent's server is not %s%s%s%s",
                         is_json ? "of the format " : "JSON", is_json ? j->agent->codec->name : "",
                         is_json && err->at[0] ? ", at " : "", is_json ? err->at : "")
            .p;
    if (!j->detail.n) {
        dgm_str start = dgm_remote_clean_error(&j->agent->remote, j->run->arena,
                                               (dgm_str){text.p, text.n < 200 ? text.n : 200});
        j->detail = dgm_arena_printf(j->run->arena, "%s, in: %.*s", err->msg, DGM_P(start));
    }
    dgm_timer_start(&j->timer, 0); /* unless this was the last value: see http_on_end */
}

static void http_on_item(void *user, const dgm_frames_item *item)
{
    struct http_job *j = user;
    dgm_err err = {0};
    dgm_code rc;
    if (j->wrong || dgm_service_answer_is_over(j->answer))
        return;
    if (item->done)
        rc = dgm_service_answer_done(j->answer, &err);
    else
        rc = dgm_service_answer_feed(j->answer, item->text, &err);
    if (rc)
        http_note_wrong(j, item, &err);
    else if (dgm_service_answer_is_over(j->answer))
        dgm_timer_start(&j->timer, LINGER_MS);
}

/* "status 400: it rejects the request: max_tokens is too large" */
static const char *with_own_words(struct http_job *j, const dgm_remote_end *end)
{
    dgm_arena *a = j->run->arena;
    if (end->end == DGM_FETCH_STOPPED)
        return DGM_SHUTTING_DOWN;
    dgm_str words = end->status >= 300 ? dgm_server_error_text(a, end->body) : (dgm_str){0};
    if (!words.n)
        return end->error;
    words = dgm_remote_clean_error(&j->agent->remote, a, words);
    return dgm_arena_printf(a, "%s: %.*s", end->error, DGM_P(words)).p;
}

static void http_on_end(void *user, const dgm_remote_end *end)
{
    struct http_job *j = user;
    dgm_err err = {0};
    j->call = NULL;
    if (dgm_service_answer_is_over(j->answer)) {
        http_finish(j);
    } else if (end->error) {
        http_fail(j, with_own_words(j, end));
    } else if (j->wrong) { /* its last value: in a stream the half of one */
        http_fail(j, end->is_stream && dgm_service_answer_has_begun(j->answer)
                         ? "the answer of the agent's server ended in the middle"
                         : j->wrong);
    } else if (dgm_service_answer_end(j->answer, &err)) {
        http_fail(j, "the answer of the agent's server cannot be used");
    } else {
        http_finish(j);
    }
}

/* ---- the request ------------------------------------------------------------------------------------------------------ */

static void http_send(struct http_job *j)
{
    const struct http_agent *x = j->agent;
    dgm_buf body;
    dgm_err err = {0};
    dgm_remote_request request = {
        .method = "POST",
        .headers = {{DGM_STR("Content-Type"), DGM_STR("application/json")},
                    {DGM_STR("Accept"), DGM_STR("text/event-stream, application/json")},
                    {DGM_STR("A2A-Version"), DGM_STR("1.0")}},
        .n_headers = x->codec->format == DGM_FORMAT_A2A_10 ? 3 : 2,
    };
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    dgm_code rc = dgm_service_write_request(&j->turn, &body, &err);
    if (!rc && body.over)
        rc = dgm_fail(&err, DGM_TOO_LARGE, NULL,
                      "it becomes more than the limit object_bytes of %zu", DGM_MAX_OBJECT_BYTES);
    if (rc) {
        dgm_buf_done(&body);
        http_fail(j,
                  dgm_arena_printf(j->run->arena,
                                   "the message cannot be sent to the agent's server: %s", err.msg)
                      .p);
        return;
    }
    request.body = dgm_buf_str(&body);
    j->call = dgm_remote_start(&x->remote, j->run, &request,
                               (dgm_remote_handler){http_on_item, http_on_end, j});
    dgm_buf_done(&body);
}

static void http_on_recalled(void *arg, dgm_str text)
{
    struct http_job *j = arg;
    dgm_str copy = dgm_arena_dup(j->run->arena, text);
    yyjson_val *state = NULL;
    if (j->agent->codec->encode)
        j->turn.remote_task_id = copy;
    else if (j->agent->codec->format == DGM_FORMAT_RESPONSES)
        j->turn.previous_id = copy;
    else if (copy.n &&
             !dgm_json_read(j->run->arena, copy, DGM_MAX_NOTE_BYTES, "note_bytes", &state, NULL))
        j->turn.state = state;
    http_send(j);
}

/* A turn of its own for each message, the same for the same message. */
static dgm_str run_id_of(const dgm_run *run)
{
    const dgm_run_input *in = run->input;
    return in->task ? dgm_arena_printf(run->arena, "%.*s-%.*s", DGM_P(in->task_id),
                                       DGM_P(in->message->message_id))
                    : in->task_id;
}

/* Does the request name the task or the response before, or a state that the caller does not have? */
static bool needs_recall(const struct http_job *j)
{
    dgm_format_id format = j->agent->codec->format;
    if (!j->run->ops->recall)
        return false;
    if (format == DGM_FORMAT_AG_UI || format == DGM_FORMAT_AG_UI_0)
        return !dgm_json_get(j->turn.metadata, DGM_STR(DGM_META_STATE));
    return j->turn.has_memory &&
           (format == DGM_FORMAT_RESPONSES || (j->agent->codec->encode && j->turn.task));
}

static void http_start(void *agent, dgm_run *run)
{
    struct http_agent *x = agent;
    const dgm_run_input *in = run->input;
    struct http_job *j = dgm_xcalloc(1, sizeof *j);
    j->run = run;
    j->agent = x;
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timer, http_on_timer, j);
    j->turn = (dgm_service_turn){
        .codec = x->codec,
        .message = in->message,
        .history = in->history,
        .task = in->task,
        .metadata = in->metadata,
        .context_id = in->context_id,
        .run_id = run_id_of(run),
        .model = x->model,
        .has_memory = x->memory == HTTP_MEMORY_SERVICE || x->codec->encode, /* A2A agents have */
    };
    j->answer = dgm_service_answer_new(&(dgm_service_answer_params){
        .codec = x->codec,
        .turn = &j->turn,
        .on_event = http_on_event,
        .clean_error = http_clean_error,
        .arg = j,
        .seed = dgm_hash(1, j->turn.run_id.p, j->turn.run_id.n),
    });
    if (needs_recall(j))
        run->ops->recall(run, x->codec->encode ? DGM_RUN_TASK : DGM_RUN_CONTEXT, http_on_recalled,
                         j);
    else
        http_send(j);
}

static void http_cancel(void *agent, dgm_run *run)
{
    struct http_job *j = run->agent_data;
    dgm_err err = {0};
    (void)agent;
    if (!j)
        return;
    if (dgm_service_answer_stop(j->answer, DGM_STATE_CANCELED, (dgm_str){0}, &err))
        dgm_run_note(run, "the last status was rejected: %s", err.msg);
    http_finish(j);
}

static const dgm_inner http_inner = {
    .open = dgm_http_open,
    .close = dgm_http_close,
    .start = http_start,
    .cancel = http_cancel,
    .lacks_final_text = true,
};
DGM_SHAPED_OPEN(http_open_shaped, http_inner)

const dgm_backend dgm_backend_http = {
    .type = "http",
    .settings = dgm_http_settings,
    .about = "a service behind HTTP that speaks AG-UI, OpenAI's APIs, the AI SDK's protocol or A2A",
    .foreign = true,
    .wants_history = true,
    .reply = DGM_REPLY_TASK,
    .card = card,
    DGM_SHAPED(http_open_shaped),
};
