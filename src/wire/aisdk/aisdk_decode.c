/*
 * wire/aisdk/aisdk_decode.c - a UI message stream as canonical events.
 *
 * Ids are unique only among open texts: an id that is used again is another text. In this format an error does not end
 * the stream; the run fails at `finish` or at the end of the stream.
 */
#include "base/list.h"
#include "wire/aisdk/aisdk_int.h"

#include <stdlib.h>

typedef struct aisdk_decoder D;

/* ---- events -------------------------------------------------------------------------------------------------- */

void dgm_aisdk_emit(D *d, const dgm_canon_event *e)
{
    if (!d->rc)
        d->rc = dgm_canon_emit(d->sink, e);
}

dgm_str dgm_aisdk_made_id(D *d, char what)
{
    dgm_str id;
    do /* whoever wrote the stream may make ids just so */
        id = dgm_arena_printf(d->arena, "%.*s-%c%u", DGM_P(d->run_id), what, ++d->n_made);
    while (dgm_map_get(&d->used, id));
    dgm_map_put(&d->used, id, 0);
    return id;
}

static void begin_run(D *d, yyjson_val *v)
{
    const yyjson_val *metadata = dgm_json_get(v, DGM_STR("messageMetadata"));
    dgm_str thread = dgm_json_str_member(metadata, "contextId"),
            run = dgm_json_str_member(metadata, "taskId");
    if (d->begun)
        return;
    d->begun = true;
    if (!run.n)
        run = dgm_json_str_member(v, "messageId");
    d->thread_id = thread.n ? dgm_arena_dup(d->arena, thread) : dgm_mint_id(&d->mint, d->arena);
    d->run_id = run.n ? dgm_arena_dup(d->arena, run) : dgm_mint_id(&d->mint, d->arena);
    if (d->fragment && !v)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.thread_id = d->thread_id;
    e.run_started.run_id = d->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    dgm_aisdk_emit(d, &e);
    d->fragment = false;
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

static void text_event(D *d, dgm_canon_kind kind, const struct aisdk_reading *o, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = o->id;
    e.text.delta = delta;
    if (kind == DGM_CANON_TEXT_MESSAGE_START)
        e.text.role = DGM_CANON_ASSISTANT;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    dgm_aisdk_emit(d, &e);
}

static struct aisdk_reading *aisdk_decode_find_open(const D *d, dgm_str id, bool reasoning)
{
    for (size_t i = 0; i < d->n_open; i++) {
        if (d->open[i].reasoning == reasoning && dgm_str_eq(d->open[i].wire_id, id))
            return &d->open[i];
    }
    return NULL;
}

static void aisdk_decode_start_text(D *d, dgm_str wire_id, bool reasoning)
{
    if (aisdk_decode_find_open(d, wire_id, reasoning))
        return;
    d->open = dgm_list_reserve(d->open, d->n_open, &d->cap_open, sizeof *d->open);
    struct aisdk_reading *o = &d->open[d->n_open++];
    *o =
        (struct aisdk_reading){.wire_id = dgm_arena_dup(d->arena, wire_id), .reasoning = reasoning};
    o->id = wire_id.n && !dgm_map_get(&d->used, wire_id)
                ? o->wire_id
                : dgm_aisdk_made_id(d, reasoning ? 't' : 'm');
    dgm_map_put(&d->used, o->id, 0);
    if (reasoning) {
        text_event(d, DGM_CANON_REASONING_START, o, (dgm_str){0});
        text_event(d, DGM_CANON_REASONING_MESSAGE_START, o, (dgm_str){0});
    } else {
        text_event(d, DGM_CANON_TEXT_MESSAGE_START, o, (dgm_str){0});
        d->parent = o->id;
    }
}

static void aisdk_decode_end_text(D *d, struct aisdk_reading *o)
{
    if (o->reasoning) {
        text_event(d, DGM_CANON_REASONING_MESSAGE_END, o, (dgm_str){0});
        text_event(d, DGM_CANON_REASONING_END, o, (dgm_str){0});
    } else {
        text_event(d, DGM_CANON_TEXT_MESSAGE_END, o, (dgm_str){0});
    }
    *o = d->open[--d->n_open];
}

dgm_code dgm_aisdk_bad(D *d, const char *key, const char *why)
{
    return d->rc = dgm_fail(d->r->err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(key)), "%s", why);
}

static dgm_code text_chunk(D *d, yyjson_val *v, dgm_str what, bool reasoning)
{
    dgm_str id = dgm_json_str_member(v, "id"), delta = dgm_json_str_member(v, "delta");
    if (!id.p)
        return dgm_aisdk_bad(d, "id", "missing: the chunk says of which text it is");
    if (dgm_str_is(what, "start")) {
        aisdk_decode_start_text(d, id, reasoning);
        return d->rc;
    }
    struct aisdk_reading *o = aisdk_decode_find_open(d, id, reasoning);
    if (!o)
        return dgm_aisdk_bad(d, "id",
                             "no text of this id is open: its start is missing, or it has ended");
    if (dgm_str_is(what, "end"))
        aisdk_decode_end_text(d, o);
    else if (!delta.p)
        return dgm_aisdk_bad(d, "delta", "missing: a delta is a text");
    else if (delta.n)
        text_event(d,
                   reasoning ? DGM_CANON_REASONING_MESSAGE_CONTENT : DGM_CANON_TEXT_MESSAGE_CONTENT,
                   o, delta);
    return d->rc;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

static dgm_canon_interrupts interrupts_of(dgm_arena *a, const yyjson_val *metadata)
{
    yyjson_val *list = dgm_json_get(metadata, DGM_STR("interrupts")), *v;
    dgm_canon_interrupts out = {dgm_new_n(a, dgm_canon_interrupt, yyjson_arr_size(list) + 1), 0};
    size_t i, n;
    if (!yyjson_is_arr(list))
        return out;
    yyjson_arr_foreach (list, i, n, v) {
        dgm_str id = dgm_json_str_member(v, "id"), reason = dgm_json_str_member(v, "reason");
        if (id.p && reason.p)
            out.at[out.n++] =
                (dgm_canon_interrupt){.id = id,
                                      .reason = reason,
                                      .message = dgm_json_str_member(v, "message"),
                                      .tool_call_id = dgm_json_str_member(v, "toolCallId")};
    }
    return out;
}

static void close_all(D *d)
{
    while (d->n_open)
        aisdk_decode_end_text(d, &d->open[d->n_open - 1]);
    dgm_aisdk_end_calls(d);
}

static void fail_run(D *d, dgm_str message, dgm_str code)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    e.run_error.message = message;
    e.run_error.code = code;
    close_all(d);
    dgm_aisdk_emit(d, &e);
    d->over = true;
}

static void finish_run(D *d, yyjson_val *v, bool aborted)
{
    dgm_arena *a = d->r->arena;
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_canon_outcome *o = &e.run_finished.outcome;
    dgm_strs pending = {dgm_new_n(a, dgm_str, d->n_calls + 1), 0};
    close_all(d);
    for (size_t i = 0; i < d->n_calls; i++) {
        if (!d->calls[i].answered && !d->calls[i].by_agent)
            pending.at[pending.n++] = d->calls[i].id;
    }
    e.run_finished.thread_id = d->thread_id;
    e.run_finished.run_id = d->run_id;
    o->interrupts = interrupts_of(a, dgm_json_get(v, DGM_STR("messageMetadata")));
    dgm_aisdk_with_approvals(d, &o->interrupts);
    if (aborted)
        *o = (dgm_canon_outcome){.kind = DGM_CANON_CANCELLED};
    else if (o->interrupts.n)
        o->kind = DGM_CANON_INTERRUPT;
    else if (pending.n)
        *o = (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = pending};
    dgm_aisdk_emit(d, &e);
    d->over = true;
}

static void aisdk_decode_finish(D *d, yyjson_val *v)
{
    const yyjson_val *metadata = dgm_json_get(v, DGM_STR("messageMetadata"));
    bool failed = dgm_str_is(dgm_json_str_member(v, "finishReason"), "error");
    if (d->error.p || failed)
        fail_run(d, d->error.p ? d->error : DGM_STR("The run failed"),
                 dgm_json_str_member(metadata, "code"));
    else
        finish_run(d, v, false);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------------ */

static const char *const types[] = {
    "start",
    "start-step",
    "finish-step",
    "reset-step",
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
    "tool-approval-request",
    "tool-approval-response",
    "source-url",
    "source-document",
    "file",
    "reasoning-file",
    "message-metadata",
    "steering-message",
    "abort",
    "finish",
};

bool dgm_aisdk_is_chunk(const yyjson_val *v)
{
    dgm_str type = dgm_json_str_member(v, "type");
    for (size_t i = 0; type.n && i < sizeof types / sizeof *types; i++) {
        if (dgm_str_eq(dgm_str_from(types[i]), type))
            return !dgm_str_is(type, "file") || dgm_json_str_member(v, "mediaType").p;
    }
    if (dgm_str_is(type, "error"))
        return dgm_json_str_member(v, "errorText").p != NULL;
    return dgm_str_starts(type, DGM_STR("data-")) && dgm_json_get(v, DGM_STR("data"));
}

static dgm_str behind(dgm_str s, size_t n)
{
    return (dgm_str){s.p + n, s.n - n};
}

static dgm_code aisdk_decode_feed(D *d, yyjson_val *v, dgm_str type)
{
    if (dgm_str_is(type, "start-step") || dgm_str_is(type, "finish-step"))
        d->parent = (dgm_str){0};
    else if (dgm_str_starts(type, DGM_STR("text-")))
        return text_chunk(d, v, behind(type, 5), false);
    else if (dgm_str_is(type, "reasoning-file"))
        d->r->n_unknown++;
    else if (dgm_str_starts(type, DGM_STR("reasoning-")))
        return text_chunk(d, v, behind(type, 10), true);
    else if (dgm_str_is(type, "tool-approval-request"))
        dgm_aisdk_approval_chunk(d, v);
    else if (dgm_str_starts(type, DGM_STR("tool-approval-")))
        d->r->n_unknown++;
    else if (dgm_str_starts(type, DGM_STR("tool-")))
        return dgm_aisdk_call_chunk(d, v, behind(type, 5));
    else if (dgm_str_is(type, "file"))
        return dgm_aisdk_file_chunk(d, v);
    else if (dgm_str_starts(type, DGM_STR("data-")))
        dgm_aisdk_data_chunk(d, v, type);
    else if (dgm_str_is(type, "error"))
        d->error = dgm_arena_dup(d->arena, dgm_json_str_member(v, "errorText"));
    else if (dgm_str_is(type, "finish"))
        aisdk_decode_finish(d, v);
    else if (dgm_str_is(type, "abort"))
        finish_run(d, v, true);
    else
        d->r->n_unknown += !dgm_str_is(type, "message-metadata");
    return d->rc;
}

dgm_code dgm_aisdk_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    D *d = decoder;
    dgm_str type = dgm_json_str_member(v, "type");
    d->r = r;
    d->sink = sink;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, NULL, "an object (chunk)");
    if (!type.p)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "type"),
                        "missing: the type of the chunk");
    if (d->over)
        return d->rc;
    begin_run(d, dgm_str_is(type, "start") ? v : NULL);
    return dgm_str_is(type, "start") ? d->rc : aisdk_decode_feed(d, v, type);
}

dgm_code dgm_aisdk_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    D *d = decoder;
    d->sink = sink;
    (void)err;
    if (!d->begun || d->over)
        return d->rc;
    if (d->error.p)
        fail_run(d, d->error, (dgm_str){0});
    else if (d->fragment)
        close_all(d);
    else
        fail_run(d, DGM_STR("The stream ended before the run did"), DGM_STR("incomplete"));
    return d->rc;
}

/* ---- the handle ---------------------------------------------------------------------------------------------------------- */

void *dgm_aisdk_decoder_new(const dgm_stream_params *params)
{
    D *d = dgm_xcalloc(1, sizeof *d);
    d->arena = dgm_arena_new();
    d->mint = params->mint;
    d->fragment = params->fragment;
    dgm_map_init(&d->by_id);
    dgm_map_init(&d->used);
    return d;
}

void dgm_aisdk_decoder_free(void *decoder)
{
    D *d = decoder;
    if (!d)
        return;
    free(d->open);
    free(d->calls);
    dgm_map_done(&d->by_id);
    dgm_map_done(&d->used);
    dgm_arena_free(d->arena);
    free(d);
}
