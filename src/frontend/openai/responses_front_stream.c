/*
 * frontend/openai/responses_front_stream.c - a turn as a response.
 *
 * The response repeats members of its request. They are stored with the turn, and the encoder gets them with
 * RUN_STARTED. Everything else is in the turn's records, so a response is the same whenever it is read.
 */
#include "frontend/openai/openai_question.h"
#include "frontend/openai/responses_front_int.h"

#define MAX_HEADERS 4

/* Lives as long as the exchange. */
struct responses_output {
    dgm_http_exchange *x;
    const dgm_extra *repeated; /* members of the request; NULL: it is not stored */
    struct openai_end end;
    bool shown; /* a part of the output was sent */
    struct openai_links links;
    dgm_output output;
    struct openai_question question;
    bool stream, asks; /* asks: it ended with a question */
    dgm_str payload;   /* that is sent when the question is stored */
    dgm_http_header headers[MAX_HEADERS];
    size_t n_headers;
};

struct responses_turn dgm_responses_turn_of(dgm_arena *a, dgm_str id, const dgm_found_turn *found)
{
    struct responses_turn turn = {.id = id,
                                  .agent = found->agent,
                                  .task_id = found->task_id,
                                  .context_id = found->context_id,
                                  .log = found->log,
                                  .first_seq = found->first_seq};
    if (found->request.n) {
        turn.request = dgm_json_parse_trusted(a, dgm_arena_dup(a, found->request));
        dgm_responses_read_output_form(a, turn.request, &turn.form, NULL); /* it was checked */
    }
    return turn;
}

/* ---- events of the turn --------------------------------------------------------------------------------------------- */

/* Clients take a failure before any output for one of the server's, and ask again: the agent would run three
 * times. So why it failed is shown first. */
static dgm_code show_failure(const dgm_canon_event *failed, dgm_canon_sink next)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str why = failed->run_error.message;
    dgm_member text = {DGM_STR("text"), dgm_json_make_string(a, why.n ? why : DGM_STR("failed"))};
    dgm_canon_event note = {.kind = DGM_CANON_ACTIVITY_SNAPSHOT,
                            .activity = {.message_id = DGM_STR("failed"),
                                         .activity_type = DGM_STR("a2a-status"),
                                         .content = dgm_json_object(a, &text, 1)}};
    return dgm_canon_emit(next, &note);
}

static dgm_code responses_output_on_event(void *arg, const dgm_canon_event *event,
                                          dgm_canon_sink next)
{
    struct responses_output *t = arg;
    dgm_code rc = DGM_OK;
    if (event->kind == DGM_CANON_RUN_STARTED && t->repeated) {
        /* The tools are repeated as they came, and no more: a tool of the agent's may be called as one of the caller's, and
         * the records say whose a call is. */
        dgm_canon_event started = *event;
        started.extra = t->repeated;
        return dgm_canon_emit(next, &started);
    }
    if (event->kind == DGM_CANON_ARTIFACT) { /* files are links; pictures have items of their own */
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_event linked = dgm_openai_links_put(&t->links, a, event, false);
        t->shown = true;
        return dgm_output_event(&t->output, &linked, next);
    }
    if (dgm_canon_is_terminal(event->kind)) {
        dgm_openai_end_note(t->x, &t->end, event);
        t->asks = t->question.seed.n && t->end.is_question;
        if (t->asks && t->stream)
            dgm_openai_question_keep(&t->question, NULL, NULL);
        if (event->kind == DGM_CANON_RUN_ERROR && t->end.failed && !t->shown &&
            !dgm_str_is(event->run_error.code, "canceled"))
            rc = show_failure(event, next);
        else if (t->end.lacks_question)
            rc = dgm_openai_ask(&t->output, event, next);
    }
    t->shown |= event->kind == DGM_CANON_TEXT_MESSAGE_CONTENT ||
                event->kind == DGM_CANON_TOOL_CALL_RESULT ||
                event->kind == DGM_CANON_REASONING_MESSAGE_CONTENT ||
                (event->kind == DGM_CANON_ACTIVITY_SNAPSHOT &&
                 dgm_json_str_member(event->activity.content, "text").n);
    return rc ? rc : dgm_output_event(&t->output, event, next);
}

static void on_close(void *arg)
{
    struct responses_output *t = arg;
    dgm_output_done(&t->output);
}

/* ---- streams --------------------------------------------------------------------------------------------------------- */

static void add_header(struct responses_output *t, dgm_str name, dgm_str value)
{
    if (value.n && t->n_headers < MAX_HEADERS)
        t->headers[t->n_headers++] = (dgm_http_header){name, dgm_turn_copy(t->x, value)};
}

/* ret: how the turn is streamed. */
static struct responses_output *responses_output_new(struct responses_op *op,
                                                     const struct responses_turn *turn,
                                                     dgm_str ignored, dgm_turn_output *ret)
{
    const dgm_turns_options *o = &op->q.turns->o;
    struct responses_output *t = dgm_http_alloc(op->x, sizeof *t);
    size_t i = 0; /* the agent */
    while (i < o->n_agents && !dgm_str_eq(o->agents[i].id, turn->agent))
        i++;
    t->x = op->x;
    dgm_openai_links_init(&t->links, &op->q, turn->agent, turn->task_id);
    dgm_output_init(&t->output, &turn->form);
    if (turn->request)
        t->repeated = dgm_responses_repeated(t->output.arena, turn->request);
    if (turn->question_seed.n)
        t->question =
            (struct openai_question){.turns = op->q.turns,
                                     .owner = {dgm_turn_copy(t->x, op->q.owner.tenant),
                                               dgm_turn_copy(t->x, op->q.owner.principal)},
                                     .agent = t->links.agent,
                                     .seed = dgm_turn_copy(t->x, turn->question_seed),
                                     .task_id = t->links.task_id,
                                     .turn = turn->turn};
    add_header(t, DGM_STR("X-A2A-Context-Id"), turn->context_id);
    add_header(t, DGM_STR("X-A2A-Task-Id"), turn->task_id);
    add_header(t, DGM_STR("x-dragoman-ignored"), ignored);
    *ret = (dgm_turn_output){.codec = &dgm_codec_responses,
                             .params = {.scoped_ids = true},
                             .thread_id = turn->context_id,
                             .run_id = turn->id,
                             .headers = t->headers,
                             .n_headers = t->n_headers,
                             .on_event = responses_output_on_event,
                             .on_release = on_close,
                             .arg = t,
                             .turns = op->q.turns,
                             .owner = op->q.owner,
                             .agent = turn->agent,
                             .task_id = turn->task_id,
                             .leave = o->leave[DGM_LEAVE_RESPONSES],
                             .answer_in_status = i < o->n_agents && o->agents[i].answer_in_status};
    return t;
}

static void respond(struct responses_output *t, dgm_str payload)
{
    if (t->links.task_id.n) /* a Message answer has no task */
        add_header(t, DGM_STR("X-A2A-Task-State"), dgm_str_from(t->end.state));
    dgm_http_respond(t->x, 200, DGM_STR("application/json"), t->headers, t->n_headers, payload);
}

/* Clients take a 200 for an answer, and one of them sends the request again when the answer is empty: then the agent would run
 * twice. So a run that failed is an error here, as it is in Chat; GET of the response returns it with its status. */
static void responses_respond_whole(void *arg)
{
    struct responses_output *t = arg;
    if (!t->end.failed) {
        respond(t, t->payload);
        return;
    }
    struct openai_error e =
        dgm_openai_error_of_end(dgm_str_from(t->end.code), dgm_str_from(t->end.message));
    add_header(t, DGM_STR("X-A2A-Task-State"), dgm_str_from(t->end.state));
    dgm_openai_fail_with(t->x, &e, t->headers, t->n_headers);
}

static void on_whole(void *arg, dgm_str payload)
{
    struct responses_output *t = arg;
    t->payload = payload;
    if (!t->asks) {
        responses_respond_whole(t);
        return;
    }
    t->payload = dgm_turn_copy(t->x, payload);
    dgm_openai_question_keep(&t->question, responses_respond_whole, t);
}

/* The agent has run: whatever it is, it must not be run again. */
static void on_fault(void *arg, const dgm_err *err)
{
    struct responses_output *t = arg;
    struct openai_error e = dgm_openai_error_of(dgm_http_arena(t->x), err, NULL);
    e.http = 424;
    e.should_retry = OPENAI_RETRY_NEVER;
    e.retry_after = 0;
    dgm_openai_fail_with(t->x, &e, t->headers, t->n_headers);
}

void dgm_responses_stream(struct responses_op *op, const struct responses_turn *turn,
                          uint64_t after, uint32_t began, dgm_str ignored)
{
    dgm_turn_output output;
    responses_output_new(op, turn, ignored, &output)->stream = true;
    output.as = DGM_OUTPUT_SSE;
    output.after_frames = after;
    output.turn = began;
    output.tap = turn->tap;
    dgm_turn_stream(op->x, &output, turn->log, turn->first_seq);
}

bool dgm_responses_replay(const dgm_turn_replay *replay)
{
    struct responses_op *op = dgm_responses_new_op(replay->q);
    dgm_found_turn found = {.log = replay->log,
                            .first_seq = replay->turn.first_seq,
                            .agent = replay->agent->id,
                            .task_id = replay->task_id,
                            .context_id = replay->context_id,
                            .request = replay->turn.request};
    struct responses_turn turn = dgm_responses_turn_of(op->arena, replay->turn.caller_id, &found);
    if (!turn.request)
        return false;
    turn.tap = replay->tap;
    dgm_responses_stream(op, &turn, 0, 0, (dgm_str){0});
    return true;
}

void dgm_responses_wait(struct responses_op *op, const struct responses_turn *turn, uint32_t began,
                        dgm_str ignored)
{
    dgm_turn_output output;
    responses_output_new(op, turn, ignored, &output);
    output.as = DGM_OUTPUT_WHOLE;
    output.on_whole = on_whole;
    output.on_fault = on_fault;
    output.turn = began;
    dgm_turn_stream(op->x, &output, turn->log, turn->first_seq);
}

dgm_str dgm_responses_so_far(struct responses_op *op, const struct responses_turn *turn,
                             dgm_arena *a)
{
    dgm_turn_output output;
    responses_output_new(op, turn, (dgm_str){0}, &output);
    output.params.so_far = true;
    output.max_bytes = DGM_MAX_OBJECT_BYTES;
    return dgm_turn_so_far(&output, turn->log, turn->first_seq, a);
}

yyjson_val *dgm_responses_read_text(dgm_arena *a, dgm_str text)
{
    yyjson_val *v = NULL;
    return text.n && !dgm_json_read(a, text, DGM_MAX_OUTPUT_BYTES, "output_bytes", &v, NULL) ? v
                                                                                             : NULL;
}

void dgm_responses_send_state(struct responses_op *op, const struct responses_turn *turn,
                              dgm_str ignored)
{
    dgm_turn_output output;
    struct responses_output *t = responses_output_new(op, turn, ignored, &output);
    dgm_err err = {0};
    output.params.so_far = true;
    dgm_str payload = dgm_turn_so_far(&output, turn->log, turn->first_seq, op->arena);
    if (t->asks)
        dgm_openai_question_keep(&t->question, NULL, NULL);
    if (payload.n) {
        respond(t, payload);
        return;
    }
    dgm_fail(&err, DGM_INTERNAL, NULL, "the response cannot be encoded");
    dgm_responses_fail(op, &err);
}
