/*
 * wire/aisdk/aisdk_encode.c - canonical events as a UI message stream: runs, texts, reasoning.
 *
 * The SDK is strict: a delta or an end without its start, or a result without its call, ends the message with an
 * error. The encoder never writes these, whatever events it gets.
 */
#include "base/limits.h"
#include "base/list.h"
#include "wire/aisdk/aisdk_int.h"

#include <stdlib.h>

typedef struct aisdk_encoder E;

/* ---- chunks ------------------------------------------------------------------------------------------------ */

void dgm_aisdk_begin(E *e, const char *type)
{
    dgm_buf_clear(&e->out);
    dgm_buf_add_lit(&e->out, "{\"type\":\"");
    dgm_buf_add_str(&e->out, dgm_str_from(type));
    dgm_buf_add_char(&e->out, '"');
}

void dgm_aisdk_send(E *e)
{
    dgm_buf_add_char(&e->out, '}');
    if (e->rc)
        return;
    e->rc = e->out.over ? dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                                   "the chunk becomes longer than the limit output_bytes of %zu",
                                   DGM_MAX_OUTPUT_BYTES)
                        : e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->out));
}

void dgm_aisdk_next_step(E *e)
{
    if (!e->after_result || e->n_open || e->n_calls_unsent || !e->started)
        return; /* what is open would be forgotten at the end of a step */
    e->after_result = false;
    dgm_aisdk_begin(e, "finish-step");
    dgm_aisdk_send(e);
    dgm_aisdk_begin(e, "start-step");
    dgm_aisdk_send(e);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

static struct aisdk_open *aisdk_encode_find_open(const E *e, dgm_str id, bool reasoning)
{
    for (size_t i = 0; i < e->n_open; i++) {
        struct aisdk_open *o = &e->open[i];
        if (o->reasoning == reasoning && dgm_str_eq((dgm_str){o->wire_id.p, o->id_n}, id))
            return o;
    }
    return NULL;
}

static void text_chunk(E *e, const struct aisdk_open *o, const char *what)
{
    dgm_aisdk_begin(e, o->reasoning ? "reasoning" : "text");
    e->out.n--; /* the quote */
    dgm_buf_add_str(&e->out, dgm_str_from(what));
    dgm_aisdk_put_member(&e->out, "\"id\"", dgm_buf_str(&o->wire_id));
}

/* What the SDK takes as provider metadata: objects by name. */
static void put_metadata(E *e, const dgm_json *metadata)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_obj_size((yyjson_val *)(uintptr_t)metadata))
        return;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)metadata, i, n, key, value) {
        if (!yyjson_is_obj(value))
            return;
    }
    dgm_buf_add_lit(&e->out, ",\"providerMetadata\":");
    dgm_json_put(&e->out, metadata);
}

static void aisdk_encode_start_text(E *e, const dgm_canon_event *event, bool reasoning)
{
    dgm_str id = event->text.message_id;
    if (aisdk_encode_find_open(e, id, reasoning) || e->n_open == DGM_MAX_OPEN_ITEMS)
        return;
    dgm_aisdk_next_step(e);
    e->open = dgm_list_reserve(e->open, e->n_open, &e->cap_open, sizeof *e->open);
    struct aisdk_open *o = &e->open[e->n_open++];
    *o = (struct aisdk_open){.id_n = id.n, .reasoning = reasoning};
    dgm_buf_init(&o->wire_id, SIZE_MAX);
    dgm_buf_add_str(&o->wire_id, id);
    text_chunk(e, o, "-start\"");
    put_metadata(e, event->metadata);
    dgm_aisdk_send(e);
}

static void aisdk_encode_add_text(E *e, const dgm_canon_event *event, bool reasoning)
{
    const struct aisdk_open *o = aisdk_encode_find_open(e, event->text.message_id, reasoning);
    if (!o || !event->text.delta.n)
        return;
    text_chunk(e, o, "-delta\"");
    dgm_aisdk_put_member(&e->out, "\"delta\"", event->text.delta);
    dgm_aisdk_send(e);
}

static void aisdk_encode_end_text(E *e, struct aisdk_open *o)
{
    if (!o)
        return;
    text_chunk(e, o, "-end\"");
    dgm_aisdk_send(e);
    dgm_buf_done(&o->wire_id);
    *o = e->open[--e->n_open];
}

/* The text differs from the streamed one: it follows as a separate part, at once if the streamed one has ended. */
static void instead(E *e, const dgm_canon_event *event)
{
    dgm_str id = event->snapshot.changed;
    const dgm_canon_message *m = NULL;
    for (size_t i = 0; id.n && i < event->snapshot.messages.n && !m; i++) {
        if (dgm_str_eq(event->snapshot.messages.at[i].id, id))
            m = &event->snapshot.messages.at[i];
    }
    if (!m)
        return;
    struct aisdk_open closed = {.id_n = 0}, *o = aisdk_encode_find_open(e, id, false);
    if (o) {
        text_chunk(e, o, "-end\"");
        dgm_aisdk_send(e);
        o->wire_id.n = o->id_n;
    } else {
        o = &closed;
        dgm_buf_init(&o->wire_id, SIZE_MAX);
        dgm_buf_add_str(&o->wire_id, id);
    }
    dgm_buf_printf(&o->wire_id, ".%u", ++e->instead + 1);
    text_chunk(e, o, "-start\"");
    dgm_buf_add_lit(&e->out, ",\"providerMetadata\":" AISDK_INSTEAD);
    dgm_aisdk_send(e);
    if (m->content.text.n) {
        text_chunk(e, o, "-delta\"");
        dgm_aisdk_put_member(&e->out, "\"delta\"", m->content.text);
        dgm_aisdk_send(e);
    }
    if (o == &closed) {
        text_chunk(e, o, "-end\"");
        dgm_aisdk_send(e);
        dgm_buf_done(&o->wire_id);
    }
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

static void forget_calls(E *e)
{
    for (size_t i = 0; i < e->n_calls; i++)
        dgm_buf_done(&e->calls[i].arguments);
    e->n_calls = e->n_calls_unsent = 0;
    dgm_map_done(&e->by_id);
    dgm_map_done(&e->clients);
    dgm_map_init(&e->by_id);
    dgm_map_init(&e->clients);
    dgm_arena_reset(e->arena);
}

static void start_run(E *e, const dgm_canon_event *event)
{
    const dgm_canon_input *input = event->run_started.input;
    while (e->n_open)
        aisdk_encode_end_text(e, &e->open[e->n_open - 1]);
    forget_calls(e);
    e->over = e->after_result = e->has_status = false;
    e->started = true;
    e->finish_reason = NULL;
    for (size_t i = 0; input && i < input->tools.n; i++)
        dgm_map_put(&e->clients, dgm_arena_dup(e->arena, input->tools.at[i].name), i);
    dgm_aisdk_begin(e, "start");
    dgm_aisdk_put_member(&e->out, "\"messageId\"", event->run_started.run_id);
    dgm_buf_add_lit(&e->out, ",\"messageMetadata\":{\"contextId\":");
    dgm_json_put_str(&e->out, event->run_started.thread_id);
    if (!e->no_task)
        dgm_aisdk_put_member(&e->out, "\"taskId\"",
                             e->task_id.n ? e->task_id : event->run_started.run_id);
    dgm_buf_add_char(&e->out, '}');
    dgm_aisdk_send(e);
    dgm_aisdk_begin(e, "start-step");
    dgm_aisdk_send(e);
}

static void aisdk_encode_end_run(E *e, const dgm_canon_event *event)
{
    while (e->n_open)
        aisdk_encode_end_text(e, &e->open[e->n_open - 1]);
    if (event && event->kind == DGM_CANON_RUN_FINISHED)
        dgm_aisdk_finished(e, event);
    else if (event)
        dgm_aisdk_failed(e, event->run_error.message, event->run_error.code,
                         &event->run_error.usage);
    else
        dgm_aisdk_failed(e, DGM_STR("The stream ended before the run did"), DGM_STR("incomplete"),
                         &(dgm_canon_usages){0});
    e->over = true;
}

static bool aisdk_encode_is_answer(const dgm_canon_event *event)
{
    return event->text.role == DGM_CANON_ROLE_NONE || event->text.role == DGM_CANON_ASSISTANT;
}

static void aisdk_encode_feed(E *e, const dgm_canon_event *event)
{
    switch ((int)event->kind) {
    case DGM_CANON_TEXT_MESSAGE_START:
        if (aisdk_encode_is_answer(event)) /* texts of other roles are not part of this message */
            aisdk_encode_start_text(e, event, false);
        break;
    case DGM_CANON_REASONING_MESSAGE_START: aisdk_encode_start_text(e, event, true); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT: aisdk_encode_add_text(e, event, false); break;
    case DGM_CANON_REASONING_MESSAGE_CONTENT: aisdk_encode_add_text(e, event, true); break;
    case DGM_CANON_TEXT_MESSAGE_END:
        aisdk_encode_end_text(e, aisdk_encode_find_open(e, event->text.message_id, false));
        break;
    case DGM_CANON_REASONING_MESSAGE_END:
        aisdk_encode_end_text(e, aisdk_encode_find_open(e, event->text.message_id, true));
        break;
    case DGM_CANON_MESSAGES_SNAPSHOT: instead(e, event); break;
    case DGM_CANON_TOOL_CALL_START: dgm_aisdk_start_call(e, event); break;
    case DGM_CANON_TOOL_CALL_ARGS: dgm_aisdk_add_arguments(e, event); break;
    case DGM_CANON_TOOL_CALL_END: dgm_aisdk_end_call(e, event); break;
    case DGM_CANON_TOOL_CALL_RESULT: dgm_aisdk_result(e, event); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: dgm_aisdk_activity(e, event); break;
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA: dgm_aisdk_state(e, event); break;
    case DGM_CANON_CUSTOM: dgm_aisdk_custom(e, event); break;
    case DGM_CANON_ARTIFACT: dgm_aisdk_artifact(e, event); break;
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR: aisdk_encode_end_run(e, event); break;
    default: break; /* see the losses */
    }
}

/* ---- the handle -------------------------------------------------------------------------------------------------- */

void *dgm_aisdk_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    E *e = dgm_xcalloc(1, sizeof *e);
    e->sink = sink;
    e->fragment = params->fragment;
    e->arena = dgm_arena_new();
    e->scratch = dgm_arena_new();
    e->names = dgm_arena_new_small(64);
    e->no_task = params->no_task;
    e->task_id = params->task_id.n ? dgm_arena_dup(e->names, params->task_id) : (dgm_str){0};
    dgm_buf_init(&e->out, DGM_MAX_OUTPUT_BYTES);
    dgm_map_init(&e->by_id);
    dgm_map_init(&e->clients);
    return e;
}

dgm_code dgm_aisdk_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    E *e = encoder;
    e->err = err;
    if (event->kind == DGM_CANON_RUN_STARTED)
        start_run(e, event);
    else if (!e->over)
        aisdk_encode_feed(e, event);
    dgm_arena_reset(e->scratch);
    return e->rc;
}

dgm_code dgm_aisdk_encoder_end(void *encoder, dgm_err *err)
{
    E *e = encoder;
    e->err = err;
    if (e->started && !e->over && !e->fragment)
        aisdk_encode_end_run(e, NULL);
    else if (!e->over)
        dgm_aisdk_close_calls(e, NULL);
    return e->rc;
}

void dgm_aisdk_encoder_free(void *encoder)
{
    E *e = encoder;
    if (!e)
        return;
    forget_calls(e);
    while (e->n_open)
        dgm_buf_done(&e->open[--e->n_open].wire_id);
    free(e->open);
    free(e->calls);
    dgm_map_done(&e->by_id);
    dgm_map_done(&e->clients);
    dgm_arena_free(e->arena);
    dgm_arena_free(e->scratch);
    dgm_arena_free(e->names);
    dgm_buf_done(&e->out);
    free(e);
}
