/*
 * wire/a2a/a2a_encode.c - canonical events, messages and requests to A2A.
 *
 * Events become the updates of a task, or, as one response, the task that they add up to. A request of the other
 * formats brings the whole conversation; an A2A agent has it already. So only the messages after the agent's last one
 * are sent, as one message.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/events_to_records.h"
#include "canon/interrupts.h"
#include "model/fold.h"
#include "model/stamp.h"
#include "wire/a2a/a2a_int.h"
#include "json/build.h"

#include <stdlib.h>

struct a2a_encoder {
    const dgm_codec *codec;
    dgm_frame_sink sink;
    bool alone;
    dgm_mint mint;
    dgm_arena *arena;
    dgm_arena *scratch; /* of one event */
    dgm_str context_id; /* of the task; in arena */
    dgm_buf text;
    dgm_err *err; /* the caller's */
    dgm_events_to_records *to_records;
    dgm_fold *task; /* the response; NULL: events are written */
};

static dgm_code a2a_put_object(struct a2a_encoder *e, dgm_object_kind kind, const void *it)
{
    dgm_frame frame = {.object = {kind, (void *)(uintptr_t)it}};
    dgm_writer w = {.out = &e->text};
    dgm_buf_clear(&e->text);
    dgm_code rc = e->codec->encode(&w, &frame, e->err);
    if (!rc && e->text.over)
        rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                      "becomes more than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
    return rc ? rc : e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->text));
}

/* A message outside of a stream has its canonical type. */
static dgm_code a2a_put_message(struct a2a_encoder *e, const dgm_message *message)
{
    dgm_message m = *message;
    dgm_message_stamp(e->scratch, &m);
    dgm_code rc = a2a_put_object(e, DGM_OBJECT_MESSAGE, &m);
    dgm_arena_reset(e->scratch);
    return rc;
}

/* ---- events ------------------------------------------------------------------------------------------------ */

/* {"tool_calls":[...]} or {"tool_results":[...]}, as the simple dialect has them. */
static const dgm_json *a2a_tool_data(dgm_arena *a, const dgm_internal *it)
{
    bool call = it->kind == DGM_INTERNAL_TOOL_START;
    const dgm_json *value = call ? it->arguments : it->result;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, call ? "tool_calls" : "tool_results");
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "call_id", it->tool_call_id);
    if (it->tool_name.n)
        dgm_json_build_str(&b, "name", it->tool_name);
    const char *key = call ? "arguments" : "output";
    if (it->error.p)
        dgm_json_build_str(&b, key, it->error);
    else if (value)
        dgm_json_build_value(&b, key, value);
    else
        dgm_json_build_null(&b, key);
    for (int i = 0; i < 3; i++)
        dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* A2A clients do not get internal events, except calls and results: these are part of the conversation, and are sent
 * in a status. */
static dgm_code a2a_put_internal(struct a2a_encoder *e, const dgm_internal *it)
{
    if (it->kind != DGM_INTERNAL_TOOL_START && it->kind != DGM_INTERNAL_TOOL_COMPLETE)
        return DGM_OK;
    dgm_part part = {.kind = DGM_PART_DATA, .data = a2a_tool_data(e->scratch, it)};
    dgm_message message = {.message_id = dgm_mint_id(&e->mint, e->scratch),
                           .context_id = e->context_id,
                           .task_id = it->task_id,
                           .role = DGM_ROLE_AGENT,
                           .parts = {&part, 1}};
    dgm_message_stamp(e->scratch, &message);
    dgm_status_update update = {
        .task_id = it->task_id,
        .context_id = e->context_id,
        .status = {.state = DGM_STATE_WORKING, .message = &message, .timestamp = it->timestamp}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    dgm_code rc = e->task ? dgm_fold_add(e->task, &event, DGM_BY_SERVER, e->err)
                          : a2a_put_object(e, DGM_OBJECT_STREAM_RESPONSE, &event);
    dgm_arena_reset(e->scratch);
    return rc;
}

static dgm_code a2a_on_record(void *arg, const dgm_event *event)
{
    struct a2a_encoder *e = arg;
    if (event->kind == DGM_EVENT_INTERNAL)
        return a2a_put_internal(e, event->internal);
    if (event->kind == DGM_EVENT_TASK)
        e->context_id = dgm_arena_dup(e->arena, event->task->context_id);
    if (e->task && event->kind != DGM_EVENT_MESSAGE)
        return dgm_fold_add(e->task, event, DGM_BY_SERVER, e->err);
    if (event->kind == DGM_EVENT_MESSAGE && (e->alone || e->task))
        return a2a_put_message(e, event->message);
    return a2a_put_object(e, DGM_OBJECT_STREAM_RESPONSE, event);
}

static struct a2a_encoder *a2a_new(const dgm_codec *codec, const dgm_stream_params *params,
                                   dgm_frame_sink sink)
{
    struct a2a_encoder *e = dgm_xcalloc(1, sizeof *e);
    *e = (struct a2a_encoder){.codec = codec,
                              .sink = sink,
                              .alone = params->alone,
                              .mint = params->mint,
                              .arena = dgm_arena_new(),
                              .scratch = dgm_arena_new()};
    dgm_buf_init(&e->text, DGM_MAX_OUTPUT_BYTES);
    return e;
}

void *dgm_a2a_encoder_new(const dgm_codec *codec, const dgm_stream_params *params,
                          dgm_frame_sink sink)
{
    struct a2a_encoder *e = a2a_new(codec, params, sink);
    dgm_events_params records = {.mint = params->mint, .fragment = params->fragment};
    records.mint.seed[1]++; /* no id twice: messages for calls use `mint` */
    e->to_records = dgm_events_to_records_new(&records, a2a_on_record, e);
    if (params->whole)
        e->task = dgm_fold_new((dgm_fold_options){.foreign = true});
    return e;
}

dgm_code dgm_a2a_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct a2a_encoder *e = encoder;
    e->err = err;
    return dgm_events_to_records_feed(e->to_records, event, err);
}

dgm_code dgm_a2a_encoder_end(void *encoder, dgm_err *err)
{
    struct a2a_encoder *e = encoder;
    e->err = err;
    dgm_code rc = dgm_events_to_records_end(e->to_records, err);
    const dgm_task *task = !rc && e->task ? dgm_fold_task(e->task) : NULL;
    return task ? a2a_put_object(e, DGM_OBJECT_TASK, task) : rc;
}

void dgm_a2a_encoder_free(void *encoder)
{
    struct a2a_encoder *e = encoder;
    dgm_events_to_records_free(e->to_records);
    dgm_fold_free(e->task);
    dgm_buf_done(&e->text);
    dgm_arena_free(e->arena);
    dgm_arena_free(e->scratch);
    free(e);
}

/* ---- messages and requests --------------------------------------------------------------------------------- */

dgm_code dgm_a2a_write_messages(const dgm_codec *codec, const dgm_canon_messages *messages,
                                const dgm_stream_params *params, dgm_frame_sink sink, dgm_err *err)
{
    struct a2a_encoder *e = a2a_new(codec, params, sink);
    dgm_code rc = DGM_OK;
    e->err = err;
    for (size_t i = 0; !rc && i < messages->n; i++) {
        dgm_message m;
        if (dgm_to_message(e->arena, &messages->at[i], &e->mint, &m))
            rc = a2a_put_message(e, &m);
    }
    dgm_a2a_encoder_free(e);
    return rc;
}

/* Decisions about requests for approval are data of the message (model/approval.h). */
static void a2a_add_decisions(dgm_arena *a, const dgm_canon_resumes *resume, dgm_message *m)
{
    for (size_t i = 0; i < resume->n && i < DGM_MAX_RESUME_ENTRIES; i++) {
        dgm_approval approval = dgm_approval_of_resume(&resume->at[i]);
        if (approval.decision == DGM_UNDECIDED)
            continue;
        approval.id = resume->at[i].interrupt_id;
        m->parts.at = dgm_list_grow(a, m->parts.at, m->parts.n, sizeof *m->parts.at);
        m->parts.at[m->parts.n++] =
            (dgm_part){.kind = DGM_PART_DATA, .data = dgm_approval_data(a, &approval)};
    }
}

dgm_code dgm_a2a_write_request(const dgm_codec *codec, dgm_writer *w, const dgm_canon_input *input,
                               const dgm_stream_params *params, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = params->mint;
    dgm_message m = {.role = DGM_ROLE_USER};
    dgm_send_request request = {.message = &m};
    dgm_frame frame = {.object = {DGM_OBJECT_SEND_REQUEST, &request}};
    dgm_messages_to_send(a, &input->messages, &mint, &m);
    a2a_add_decisions(a, &input->resume, &m);
    m.context_id = input->thread_id;
    return codec->encode(w, &frame, err);
}
