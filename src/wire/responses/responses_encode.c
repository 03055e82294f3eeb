/* wire/responses/responses_encode.c - a run as a response: how it begins and ends; see responses_out.h. */
#include "base/limits.h"
#include "wire/responses/responses_out.h"

#include <stdlib.h>

#define NONE DGM_RESPONSES_NONE

void *dgm_responses_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    dgm_str model = params->model, task_id = params->task_id;
    struct responses_encoder *e = dgm_xcalloc(1, sizeof *e + model.n + task_id.n);
    char *texts = (char *)(e + 1); /* both are behind the struct */
    e->sink = sink;
    e->params = *params;
    e->params.model.p = model.n ? memcpy(texts, model.p, model.n) : NULL;
    e->params.task_id.p = task_id.n ? memcpy(texts + model.n, task_id.p, task_id.n) : NULL;
    e->arena = dgm_arena_new();
    e->scratch = dgm_arena_new();
    dgm_buf_init(&e->out, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_room(&e->out, DGM_RESPONSES_ROOM);
    dgm_map_init(&e->texts);
    dgm_map_init(&e->thoughts);
    dgm_map_init(&e->calls);
    dgm_map_init(&e->spans);
    dgm_map_init(&e->ids);
    dgm_map_init(&e->client_tools);
    e->current = e->message = e->said = NONE;
    e->model = e->params.model.n ? e->params.model : DGM_STR("dragoman");
    return e;
}

void dgm_responses_encoder_free(void *encoder)
{
    struct responses_encoder *e = encoder;
    if (!e)
        return;
    dgm_responses_forget(e);
    dgm_arena_free(e->arena);
    dgm_arena_free(e->scratch);
    dgm_buf_done(&e->out);
    free(e->items);
    free(e->pieces);
    free(e->order);
    free(e);
}

/* ---- the run ----------------------------------------------------------------------------------------------- */

/* As an event, or alone where the response is wanted whole. */
static void emit_response(struct responses_encoder *e, const struct responses_end *what)
{
    bool whole = e->params.whole;
    if (whole ? e->rc != DGM_OK : !dgm_responses_frame(e, what->event))
        return;
    if (whole)
        dgm_buf_clear(&e->out);
    else
        dgm_buf_add_lit(&e->out, ",\"response\":");
    dgm_responses_put_response(e, what);
    if (whole)
        e->out.n -= !e->out.over; /* dgm_responses_emit() closes what a frame opened */
    dgm_responses_emit(e, whole ? DGM_STR("") : what->event);
}

/* Closes what is open, and calls that still wait. o: NULL if the run failed. */
static void close_items(struct responses_encoder *e, const char *status, const dgm_canon_outcome *o)
{
    bool done = o && (o->kind == DGM_CANON_OUTCOME_NONE || o->kind == DGM_CANON_SUCCESS);
    bool all = done && !o->pending_tool_call_ids.n && (e->implicit || !e->begun);
    for (unsigned i = 0; i < e->n_given; i++) {
        struct responses_item *it = &e->items[e->order[i]];
        if (it->state != RESPONSES_OPEN)
            continue;
        if (it->kind == RESPONSES_MESSAGE)
            dgm_responses_close_message(e, it, status);
        else if (it->kind == RESPONSES_REASONING)
            dgm_responses_close_reasoning(e, it);
        else
            dgm_responses_close_call(e, it, status);
    }
    e->message = NONE;
    for (size_t i = 0; i < e->n_items; i++) {
        struct responses_item *it = &e->items[i];
        if (it->kind != RESPONSES_FUNCTION || it->state != RESPONSES_HELD)
            continue;
        bool pending = all;
        for (size_t k = 0; done && !pending && k < o->pending_tool_call_ids.n; k++)
            pending = dgm_str_eq(o->pending_tool_call_ids.at[k], it->call_id);
        it->kind = pending ? RESPONSES_FUNCTION : RESPONSES_MCP;
        dgm_responses_open_call(e, it);
        dgm_responses_close_call(e, it, pending ? "completed" : "incomplete");
    }
}

static void responses_encode_finish(struct responses_encoder *e, const dgm_canon_event *event)
{
    const dgm_canon_outcome *o = &event->run_finished.outcome;
    struct responses_end end = {.event = DGM_STR("response.completed"),
                                .status = "completed",
                                .state = "completed",
                                .usage = &event->run_finished.usage};
    bool cancelled = o->kind == DGM_CANON_CANCELLED;
    if ((end.reason = e->early)) {
        end.event = DGM_STR("response.incomplete");
        end.status = "incomplete";
    } else if (cancelled) {
        end.event = DGM_STR("response.incomplete");
        end.status = "cancelled";
        end.state = "canceled";
    } else if (o->kind == DGM_CANON_INTERRUPT) {
        bool auth = o->interrupts.n && dgm_str_is(o->interrupts.at[0].reason, "a2a:auth_required");
        end.state = auth ? "auth-required" : "input-required";
    } else if (o->pending_tool_call_ids.n && !o->awaits_no_results) {
        end.state = "input-required";
    }
    close_items(e, end.reason || cancelled ? "incomplete" : "completed", o);
    dgm_responses_ask_approvals(e, o);
    e->finished = true;
    emit_response(e, &end);
}

static void fail_run(struct responses_encoder *e, const dgm_canon_event *event, dgm_str message,
                     dgm_str code)
{
    struct responses_end end = {.event = DGM_STR("response.failed"),
                                .status = "failed",
                                .state = "failed",
                                .code = code,
                                .message = message.p ? message : DGM_STR(""),
                                .usage = event ? &event->run_error.usage : NULL};
    close_items(e, "incomplete", NULL);
    if (dgm_str_is(code, "rejected")) {
        dgm_responses_refuse(e, message);
        end = (struct responses_end){.event = DGM_STR("response.completed"),
                                     .status = "completed",
                                     .state = "rejected",
                                     .usage = end.usage};
    } else if (dgm_str_is(code, "canceled") || dgm_str_is(code, "cancelled") ||
               dgm_str_is(code, "abort")) {
        end = (struct responses_end){.event = DGM_STR("response.incomplete"),
                                     .status = "cancelled",
                                     .state = "canceled",
                                     .usage = end.usage};
    } else if (dgm_str_is(code, "failed") || !code.n) {
        end.code = DGM_STR("task_failed");
    }
    e->finished = true;
    if (end.message.p && dgm_responses_frame(e, DGM_STR("error"))) {
        dgm_responses_put_error(e, &end);
        dgm_responses_emit(e, DGM_STR("error"));
    }
    emit_response(e, &end);
}

/* ---- the handle ----------------------------------------------------------------------------------------------- */

dgm_code dgm_responses_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct responses_encoder *e = encoder;
    struct responses_end now = {.event = DGM_STR("response.created"), .status = "in_progress"};
    const dgm_canon_event *started = event->kind == DGM_CANON_RUN_STARTED ? event : NULL;
    const dgm_canon_input *input = started ? started->run_started.input : NULL;
    e->err = err;
    if (started || (!e->begun && !e->params.fragment)) { /* a new response */
        dgm_responses_forget(e);
        e->begun = true;
        e->finished = false;
        e->early = NULL;
        e->implicit = started && !started->run_started.protocol_version.n;
        for (size_t i = 0; input && i < input->tools.n; i++)
            dgm_map_put(&e->client_tools, dgm_arena_dup(e->arena, input->tools.at[i].name), 0);
        dgm_responses_describe(e, started);
        if (!e->params.whole) {
            emit_response(e, &now);
            now.event = DGM_STR("response.in_progress");
            emit_response(e, &now);
        }
    }
    if (dgm_canon_is_terminal(event->kind))
        e->completed = (event->timestamp.set ? event->timestamp.value : e->params.now) / 1000;
    if (!e->finished && event->kind == DGM_CANON_RUN_FINISHED)
        responses_encode_finish(e, event);
    else if (!e->finished && event->kind == DGM_CANON_RUN_ERROR)
        fail_run(e, event, event->run_error.message, event->run_error.code);
    else if (!e->finished)
        dgm_responses_within_run(e, event);
    dgm_arena_reset(e->scratch);
    return e->rc;
}

dgm_code dgm_responses_encoder_end(void *encoder, dgm_err *err)
{
    struct responses_encoder *e = encoder;
    static const dgm_canon_event finished = {.kind = DGM_CANON_RUN_FINISHED};
    e->err = err;
    if (e->finished || e->rc)
        return e->rc;
    e->completed = e->params.now / 1000;
    if (e->params.whole && e->params.so_far) {
        emit_response(e, &(struct responses_end){.status = "in_progress", .state = "working"});
    } else if (e->begun && !e->params.fragment) {
        fail_run(e, NULL, DGM_STR("The stream ended before its run did"), DGM_STR("incomplete"));
    } else if (e->params.whole) {
        dgm_responses_describe(e, NULL);
        responses_encode_finish(e, &finished);
    } else {
        close_items(e, "completed", &finished.run_finished.outcome);
    }
    return e->rc;
}
