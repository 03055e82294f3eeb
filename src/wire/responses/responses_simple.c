/*
 * wire/responses/responses_simple.c - `responses-simple`: document 000's last column, {"event": ..., "data": {...}}.
 *
 * The three bodies it shows are written exactly so. Of its own it has: message_id, where messages could be
 * mixed up; `index` in a call that is a fragment of one, as in the chunks of Chat Completions (a whole call
 * has none); data of runs and steps {task_id, context_id, state}. As server-sent events they are named by
 * their event, and the data is all of it: so both framings read the same.
 */
#include "wire/responses/responses_simple.h"
#include "base/limits.h"
#include "base/map.h"

#include <stdlib.h>

const char dgm_responses_simple_name[] = "responses-simple";

const char *const dgm_responses_simple_events[DGM_N_SIMPLE_KINDS] = {
    [DGM_SIMPLE_NONE] = "",
    [DGM_SIMPLE_RUN_STARTED] = "run.started",
    [DGM_SIMPLE_STEP_STARTED] = "run.step.started",
    [DGM_SIMPLE_TEXT_CONTENT] = "message.delta",
    [DGM_SIMPLE_TEXT_CHUNK] = "message.delta",
    [DGM_SIMPLE_TEXT_END] = "message.done",
    [DGM_SIMPLE_CALL_ARGS] = "message.delta",
    [DGM_SIMPLE_CALL_START] = "message.delta",
    [DGM_SIMPLE_CALL_RESULT] = "message.delta",
    [DGM_SIMPLE_STEP_FINISHED] = "run.step.done",
    [DGM_SIMPLE_RUN_FINISHED] = "run.done",
    [DGM_SIMPLE_RUN_ERROR] = "run.error",
};

/* ---- writing ------------------------------------------------------------------------------------------------------- */

struct encoder {
    dgm_frame_sink sink;
    dgm_simple_encoder *simple;
    dgm_arena *arena, *scratch;
    dgm_simple_run run;
    dgm_map calls; /* id -> index in its run */
    dgm_buf text;
    dgm_err *err;
};

#define LIT(lit) dgm_buf_add_lit(&e->text, lit)

static void responses_simple_put_text(struct encoder *e, const char *name, dgm_str value)
{
    if (e->text.p[e->text.n - 1] != '{')
        LIT(",");
    dgm_buf_printf(&e->text, "\"%s\":", name);
    dgm_json_put_str(&e->text, value);
}

static void put_state(struct encoder *e, dgm_str state)
{
    if (e->run.run_id.n)
        responses_simple_put_text(e, "task_id", e->run.run_id);
    if (e->run.thread_id.n)
        responses_simple_put_text(e, "context_id", e->run.thread_id);
    responses_simple_put_text(e, "state", state);
}

static void put_run(struct encoder *e, const char *state, dgm_str step)
{
    put_state(e, dgm_str_from(state));
    if (step.n && !dgm_str_is(step, "working"))
        responses_simple_put_text(e, "name", step);
}

static void responses_simple_put_message(struct encoder *e, const dgm_simple_message *m)
{
    static const char *const roles[DGM_N_CANON_ROLES] = {
        [DGM_CANON_ROLE_NONE] = "assistant", [DGM_CANON_DEVELOPER] = "developer",
        [DGM_CANON_SYSTEM] = "system",       [DGM_CANON_ASSISTANT] = "assistant",
        [DGM_CANON_USER] = "user",           [DGM_CANON_TOOL] = "tool",
        [DGM_CANON_REASONING] = "assistant", [DGM_CANON_ACTIVITY] = "assistant"};
    responses_simple_put_text(e, "role", dgm_str_from(roles[m->role]));
    if (m->content.kind == DGM_CANON_CONTENT_PARTS) {
        dgm_writer w = {.out = &e->text, .format = DGM_FORMAT_RESPONSES};
        LIT(",\"content\":");
        dgm_responses_put_content(&w, &m->content);
    } else {
        responses_simple_put_text(e, "content", m->content.text);
    }
}

static void responses_simple_put_call(struct encoder *e, const dgm_simple_event *event,
                                      bool fragment)
{
    const dgm_simple_call *c = &event->call;
    size_t *known = dgm_map_get(&e->calls, c->id);
    size_t index = known ? *known : e->calls.n;
    if (!known)
        dgm_map_put(&e->calls, dgm_arena_dup(e->arena, c->id), index);
    LIT("\"role\":\"assistant\",\"tool_calls\":[{");
    if (fragment)
        dgm_buf_printf(&e->text, "\"index\":%zu,", index);
    LIT("\"id\":");
    dgm_json_put_str(&e->text, c->id);
    LIT(",\"type\":");
    if (c->type)
        dgm_json_put(&e->text, c->type);
    else
        LIT("\"function\"");
    LIT(",\"function\":{\"name\":");
    dgm_json_put_str(&e->text, c->name);
    LIT(",\"arguments\":");
    if (fragment && c->arguments) /* an object stays one: it is merged by key, not by order */
        dgm_json_put(&e->text, c->arguments);
    else
        dgm_json_put_str(&e->text, dgm_content_arguments(e->scratch, c->arguments));
    LIT("}}]");
    if (event->parent_message_id.n)
        responses_simple_put_text(e, "message_id", event->parent_message_id);
}

/* There are three codes: whatever else went wrong, the task has failed. */
static void put_error(struct encoder *e, const dgm_simple_event *event)
{
    bool other = dgm_str_is(event->code, "canceled") || dgm_str_is(event->code, "rejected");
    dgm_str code = other ? event->code : DGM_STR("failed");
    put_state(e, code);
    LIT(",\"error\":{");
    responses_simple_put_text(e, "code", code);
    responses_simple_put_text(e, "message", event->error_message);
    LIT("}");
}

static void put_data(struct encoder *e, const dgm_simple_event *event)
{
    bool working = !dgm_str_is(event->step_name, "working");
    switch (event->kind) {
    case DGM_SIMPLE_NONE: break;
    case DGM_SIMPLE_RUN_STARTED: put_run(e, "submitted", (dgm_str){0}); break;
    case DGM_SIMPLE_STEP_STARTED: put_run(e, "working", event->step_name); break;
    case DGM_SIMPLE_STEP_FINISHED: /* of a step that has a name: the task goes on */
        put_run(e, working ? "working" : "input-required", event->step_name);
        break;
    case DGM_SIMPLE_RUN_FINISHED: put_run(e, "completed", (dgm_str){0}); break;
    case DGM_SIMPLE_RUN_ERROR: put_error(e, event); break;
    case DGM_SIMPLE_TEXT_CHUNK:
        responses_simple_put_text(e, "role", DGM_STR("assistant"));
        responses_simple_put_text(e, "content", event->delta);
        break;
    case DGM_SIMPLE_TEXT_CONTENT:
    case DGM_SIMPLE_TEXT_END: responses_simple_put_message(e, &event->message); break;
    case DGM_SIMPLE_CALL_ARGS: responses_simple_put_call(e, event, true); break;
    case DGM_SIMPLE_CALL_START: responses_simple_put_call(e, event, false); break;
    case DGM_SIMPLE_CALL_RESULT:
        responses_simple_put_text(e, "role", DGM_STR("tool"));
        responses_simple_put_text(e, "tool_call_id", event->tool_call_id);
        responses_simple_put_text(e, "content", dgm_content_value_text(e->scratch, event->result));
        break;
    }
    if (event->message_id.n)
        responses_simple_put_text(e, "message_id", event->message_id);
}

static dgm_code write_event(void *arg, const dgm_simple_event *event)
{
    struct encoder *e = arg;
    dgm_str name = dgm_str_from(dgm_responses_simple_events[event->kind]);
    if (event->kind == DGM_SIMPLE_RUN_STARTED) {
        dgm_map_done(&e->calls);
        dgm_arena_reset(e->arena);
        e->run = (dgm_simple_run){dgm_arena_dup(e->arena, event->thread_id),
                                  dgm_arena_dup(e->arena, event->run_id)};
    }
    if (event->run_id.n && !e->run.run_id.n) /* a state by itself, of a run that began elsewhere */
        e->run = (dgm_simple_run){dgm_arena_dup(e->arena, event->thread_id),
                                  dgm_arena_dup(e->arena, event->run_id)};
    dgm_buf_clear(&e->text);
    LIT("{\"event\":\"");
    dgm_buf_add_str(&e->text, name);
    LIT("\",\"data\":{");
    put_data(e, event);
    LIT("}}");
    dgm_arena_reset(e->scratch);
    if (e->text.over)
        return dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                        "the event becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return e->sink.on_frame(e->sink.arg, name, dgm_buf_str(&e->text));
}

static void *encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    struct encoder *e = dgm_xcalloc(1, sizeof *e);
    (void)params;
    e->sink = sink;
    e->simple = dgm_simple_encoder_new(write_event, e);
    e->arena = dgm_arena_new();
    e->scratch = dgm_arena_new();
    dgm_map_init(&e->calls);
    dgm_buf_init(&e->text, DGM_MAX_OUTPUT_BYTES);
    return e;
}

static void encoder_free(void *encoder)
{
    struct encoder *e = encoder;
    if (!e)
        return;
    dgm_simple_encoder_free(e->simple);
    dgm_arena_free(e->arena);
    dgm_arena_free(e->scratch);
    dgm_map_done(&e->calls);
    dgm_buf_done(&e->text);
    free(e);
}

static dgm_code encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_simple_encoder_feed(e->simple, event, err);
}

static dgm_code encoder_end(void *encoder, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_simple_encoder_end(e->simple, err);
}

/* ---- the codec --------------------------------------------------------------------------------------------------------- */

static int responses_simple_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    *ret_form = DGM_FORM_EVENTS;
    return dgm_responses_simple_kind(dgm_json_str_member(v, "event")) ? 2 : 0;
}

const dgm_codec dgm_codec_responses_simple = {
    .name = dgm_responses_simple_name,
    .format = DGM_FORMAT_RESPONSES_SIMPLE,
    .recognise = responses_simple_recognise,
    .decoder_new = dgm_responses_simple_decoder_new,
    .decoder_feed = dgm_responses_simple_decoder_feed,
    .decoder_end = dgm_responses_simple_decoder_end,
    .decoder_free = dgm_responses_simple_decoder_free,
    .encoder_new = encoder_new,
    .encoder_feed = encoder_feed,
    .encoder_end = encoder_end,
    .encoder_free = encoder_free,
    .lost_reading = &dgm_responses_simple_lost_reading,
    .lost_writing = &dgm_responses_simple_lost_writing,
};
