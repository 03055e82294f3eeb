/*
 * frontend/openai/chat_answer.c - a turn, told as chunks or as one completion.
 *
 * A stream tells all there is to tell by itself. A completion has a status of its own: 200 for an answer, a question
 * and a refusal, 424 for a run that failed, so that no client begins another.
 */
#include "canon/message_content.h"
#include "frontend/openai/chat_front_int.h"
#include "frontend/openai/openai_ends.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"
#include "frontend/openai/openai_question.h"
#include "wire/chat/chat_codec.h"

/* Lives as long as the exchange. */
struct answer {
    dgm_http_exchange *x;
    struct openai_links links;
    dgm_output output;
    dgm_str context_id, task_id, ignored;
    struct openai_end end;
    struct openai_question question;
    bool stream, asks; /* asks: it ended with a question */
    dgm_str payload;   /* that is sent when the question is stored */
};

/* ---- what is told of it ---------------------------------------------------------------------------------------------- */

static dgm_code on_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    struct answer *w = arg;
    dgm_code rc = DGM_OK;
    if (event->kind == DGM_CANON_ARTIFACT) { /* files are links */
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_event linked = openai_links_put(&w->links, a, event, true);
        return dgm_output_event(&w->output, &linked, next);
    }
    if (dgm_canon_is_terminal(event->kind)) {
        openai_end_note(w->x, &w->end, event);
        w->asks = w->question.seed.n && w->end.is_question;
        if (w->asks && w->stream)
            openai_question_keep(&w->question, NULL, NULL);
        if (w->end.lacks_question)
            rc = openai_ask(&w->output, event, next);
    }
    return rc ? rc : dgm_output_event(&w->output, event, next);
}

static void on_close(void *arg)
{
    struct answer *w = arg;
    dgm_output_done(&w->output);
}

/* ---- answering -------------------------------------------------------------------------------------------------------- */

#define MAX_HEADERS 4

static size_t headers_of(const struct answer *w, dgm_http_header headers[MAX_HEADERS])
{
    size_t n = 0;
    headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Context-Id"), w->context_id};
    if (w->task_id.n) /* a Message answer has no task */
        headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Task-Id"), w->task_id};
    if (w->ignored.n)
        headers[n++] = (dgm_http_header){DGM_STR("x-dragoman-ignored"), w->ignored};
    if (w->end.state && w->task_id.n)
        headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Task-State"), dgm_str_from(w->end.state)};
    return n;
}

static void chat_respond(void *arg);

static void on_whole(void *arg, dgm_str payload)
{
    struct answer *w = arg;
    w->payload = payload;
    if (!w->asks) {
        chat_respond(w);
        return;
    }
    w->payload = dgm_turn_copy(w->x, payload);
    openai_question_keep(&w->question, chat_respond, w);
}

static void chat_respond(void *arg)
{
    struct answer *w = arg;
    dgm_http_header headers[MAX_HEADERS];
    size_t n = headers_of(w, headers);
    if (!w->end.failed) {
        dgm_http_respond(w->x, 200, DGM_STR("application/json"), headers, n, w->payload);
        return;
    }
    struct openai_error e =
        openai_error_of_end(dgm_str_from(w->end.code), dgm_str_from(w->end.message));
    openai_fail_with(w->x, &e, headers, n);
}

/* The agent is at work, or was: not to be asked again. */
static void on_fault(void *arg, const dgm_err *err)
{
    struct answer *w = arg;
    dgm_http_header headers[MAX_HEADERS];
    size_t n = headers_of(w, headers);
    struct openai_error e = openai_error_of_end(
        err->code == DGM_UPSTREAM_TIMEOUT ? DGM_STR("timeout") : DGM_STR("answer_not_told"),
        dgm_str_from(err->msg));
    openai_fail_with(w->x, &e, headers, n);
}

void chat_answer(struct chat *c, const dgm_sent *sent)
{
    dgm_http_exchange *x = c->q.x;
    const dgm_turns_options *o = &c->q.turns->o;
    struct answer *w = dgm_http_alloc(x, sizeof *w);
    dgm_http_header headers[MAX_HEADERS];
    *w = (struct answer){.x = x,
                         .context_id = dgm_turn_copy(x, sent->context_id),
                         .task_id = dgm_turn_copy(x, sent->task_id),
                         .ignored = dgm_turn_copy(x, c->ignored),
                         .stream = c->stream};
    w->question = (struct openai_question){
        .turns = c->q.turns,
        .owner = {dgm_turn_copy(x, c->q.owner.tenant), dgm_turn_copy(x, c->q.owner.principal)},
        .agent = c->agent->id,
        .seed = dgm_turn_copy(x, c->question_seed),
        .task_id = w->task_id,
        .turn = sent->turn};
    openai_links_init(&w->links, &c->q, c->agent->id, sent->task_id);
    dgm_output_init(&w->output, &c->form);
    dgm_front_note_task(x, sent->task_id, sent->turn);
    dgm_tell tell = {.codec = &dgm_codec_openai_chat,
                     .params = {.usage = c->usage,
                                .json = c->form.json,
                                .model = c->model,
                                .task_id = w->task_id},
                     .thread_id = w->context_id,
                     .run_id = c->caller_id,
                     .as = c->stream ? DGM_TELL_SSE : DGM_TELL_WHOLE,
                     .headers = headers,
                     .n_headers = headers_of(w, headers),
                     .on_event = on_event,
                     .on_whole = on_whole,
                     .on_fault = on_fault,
                     .on_release = on_close,
                     .arg = w,
                     .turns = c->q.turns,
                     .owner = c->q.owner,
                     .agent = c->agent->id,
                     .task_id = sent->task_id,
                     .leave = o->leave[DGM_LEAVE_CHAT],
                     .answer_in_status = c->agent->answer_in_status,
                     .turn = sent->is_resend ? 0 : sent->turn};
    dgm_turn_tell(x, &tell, sent->log, sent->first_seq);
}
