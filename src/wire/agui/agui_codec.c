/* wire/agui/agui_codec.c - the codecs of all AG-UI dialects. */
#include "wire/agui/agui_codec.h"
#include "base/limits.h"
#include "base/list.h"
#include "canon/compact.h"
#include "canon/simple_to_events.h"
#include "wire/agui/agui_int.h"
#include "wire/agui/agui_simple.h"
#include "wire/read_messages.h"

#include <stdlib.h>

/* ---- writing, both ---------------------------------------------------------------------------------------- */

struct encoder {
    dgm_frame_sink sink;
    dgm_agui_peer peer;
    dgm_simple_encoder *simple; /* ag-ui-simple only */
    dgm_arena *scratch;
    dgm_buf text;
    dgm_err *err;
};

static dgm_code agui_emit_frame(struct encoder *e)
{
    if (e->text.over)
        return dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                        "the event becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return e->text.n ? e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->text)) : DGM_OK;
}

static struct encoder *new_encoder(const dgm_stream_params *params, dgm_frame_sink sink)
{
    struct encoder *e = dgm_xcalloc(1, sizeof *e);
    e->sink = sink;
    e->peer.old = params->old_peer;
    e->scratch = dgm_arena_new();
    dgm_buf_init(&e->text, DGM_MAX_OUTPUT_BYTES);
    return e;
}

static void free_encoder(void *encoder)
{
    struct encoder *e = encoder;
    if (!e)
        return;
    dgm_simple_encoder_free(e->simple);
    dgm_arena_free(e->scratch);
    dgm_buf_done(&e->text);
    free(e);
}

/* ---- ag-ui ------------------------------------------------------------------------------------------------ */

static bool has_any(const yyjson_val *v, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dgm_json_get(v, dgm_str_from(names[i])))
            return true;
    }
    return false;
}
#define HAS_ANY(v, names) has_any((v), (names), sizeof(names) / sizeof *(names))

/* Most members of a message exist in other formats too; only some identify the format. Few other formats have
 * an id in their messages, and each of those has a member that AG-UI does not have. */
static int recognise_message(const yyjson_val *v)
{
    static const char *const ours[] = {"toolCalls", "toolCallId", "activityType"};
    static const char *const others[] = {"type",
                                         "parts",
                                         "status",
                                         "tool_calls",
                                         "tool_call_id",
                                         "additional_kwargs",
                                         "response_metadata"};
    yyjson_val *content = dgm_json_get(v, DGM_STR("content"));
    yyjson_val *part = yyjson_arr_get_first(content);
    if (!dgm_json_str_member(v, "id").p || !dgm_json_str_member(v, "role").p)
        return 0;
    if (HAS_ANY(v, ours))
        return 2;
    if (yyjson_is_str(content) || dgm_str_is(dgm_json_str_member(part, "type"), "text") ||
        yyjson_is_obj(dgm_json_get(part, DGM_STR("source"))))
        return HAS_ANY(v, others) ? 1 : 2;
    return content != NULL;
}

static int agui_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    *ret_form = dgm_agui_is_input(v) ? DGM_FORM_REQUEST : DGM_FORM_EVENTS;
    int score = dgm_agui_recognise(v);
    if (!score && (score = recognise_message(v)))
        *ret_form = DGM_FORM_MESSAGES;
    return score;
}

static dgm_code read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_messages *list)
{
    list->at = dgm_list_grow(r->arena, list->at, list->n, sizeof *list->at);
    return dgm_agui_read_message(r, v, at, &list->at[list->n++]);
}

static dgm_code agui_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                   dgm_canon_messages *ret)
{
    r->format = DGM_FORMAT_AG_UI;
    return dgm_read_messages(r, v, at, read_message, ret);
}

static dgm_code agui_write_messages(const dgm_canon_messages *messages,
                                    const dgm_stream_params *params, dgm_frame_sink sink,
                                    dgm_err *err)
{
    struct encoder *e = new_encoder(params, sink);
    dgm_code rc = DGM_OK;
    e->err = err;
    for (size_t i = 0; !rc && i < messages->n; i++) {
        dgm_writer w = {.out = &e->text, .format = DGM_FORMAT_AG_UI};
        dgm_buf_clear(&e->text);
        dgm_agui_write_message(&w, &messages->at[i]);
        rc = agui_emit_frame(e);
    }
    free_encoder(e);
    return rc;
}

static dgm_code agui_write_request(dgm_writer *w, const dgm_canon_input *input,
                                   const dgm_stream_params *params, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(256);
    dgm_canon_input named = *input;
    dgm_mint mint = params->mint;
    (void)err;
    if (!named.thread_id.n)
        named.thread_id = dgm_mint_id(&mint, a);
    if (!named.run_id.n)
        named.run_id = dgm_mint_id(&mint, a);
    dgm_agui_write_input(w, &named);
    return DGM_OK;
}

static void *agui_decoder_new(const dgm_stream_params *params)
{
    (void)params;
    return dgm_agui_decoder_new();
}
static dgm_code agui_decoder_feed(void *d, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    return dgm_agui_decoder_feed(d, r, v, sink);
}
static dgm_code agui_decoder_end(void *d, dgm_canon_sink sink, dgm_err *err)
{
    (void)err;
    return dgm_agui_decoder_end(d, sink);
}
static void agui_decoder_free(void *d)
{
    dgm_agui_decoder_free(d);
}

static void *agui_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    return new_encoder(params, sink);
}
/* Nearly all of a stream is pieces of text that have nothing else to say: written without the tables. */
static bool put_plain_text(dgm_buf *b, const dgm_canon_event *e)
{
    if (e->kind != DGM_CANON_TEXT_MESSAGE_CONTENT || !e->text.delta.n || e->timestamp.set ||
        e->raw_event || e->metadata || e->subagent_run_id.p || e->extra)
        return false;
    dgm_buf_add_lit(b, "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":");
    dgm_json_put_str(b, e->text.message_id);
    dgm_buf_add_lit(b, ",\"delta\":");
    dgm_json_put_str(b, e->text.delta);
    dgm_buf_add_char(b, '}');
    return true;
}

static dgm_code agui_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct encoder *e = encoder;
    dgm_writer w = {.out = &e->text, .format = DGM_FORMAT_AG_UI};
    e->err = err;
    dgm_buf_clear(&e->text);
    if (put_plain_text(&e->text, event))
        return agui_emit_frame(e);
    dgm_agui_write_event(&w, event, e->peer, e->scratch);
    dgm_code rc = agui_emit_frame(e);
    dgm_arena_reset(e->scratch);
    return rc;
}
static dgm_code agui_encoder_end(void *encoder, dgm_err *err)
{
    (void)encoder, (void)err;
    return DGM_OK;
}

const dgm_codec dgm_codec_agui = {
    .name = dgm_agui_name,
    .format = DGM_FORMAT_AG_UI,
    .builds_messages = true,
    .recognise = agui_recognise,
    .decoder_new = agui_decoder_new,
    .decoder_feed = agui_decoder_feed,
    .decoder_end = agui_decoder_end,
    .decoder_free = agui_decoder_free,
    .encoder_new = agui_encoder_new,
    .encoder_feed = agui_encoder_feed,
    .encoder_end = agui_encoder_end,
    .encoder_free = free_encoder,
    .read_messages = agui_read_messages,
    .write_messages = agui_write_messages,
    .read_request = dgm_agui_read_input,
    .write_request = agui_write_request,
    .lost_reading = &dgm_agui_lost_reading,
};

/* ---- ag-ui-0 ---------------------------------------------------------------------------------------------- */

static void *old_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    dgm_stream_params old = *params;
    old.old_peer = true;
    return new_encoder(&old, sink);
}

static dgm_code old_write_messages(const dgm_canon_messages *messages,
                                   const dgm_stream_params *params, dgm_frame_sink sink,
                                   dgm_err *err)
{
    dgm_arena *a = dgm_arena_new();
    dgm_canon_messages aged = *messages;
    dgm_agui_age_messages(a, &aged);
    dgm_code rc = agui_write_messages(&aged, params, sink, err);
    dgm_arena_free(a);
    return rc;
}

/* Before 1.0 all of these members were required, and there was no protocol version. */
static dgm_code old_write_request(dgm_writer *w, const dgm_canon_input *input,
                                  const dgm_stream_params *params, dgm_err *err)
{
    dgm_arena *a = dgm_arena_new();
    dgm_canon_input aged = *input;
    dgm_agui_age_messages(a, &aged.messages);
    aged.protocol_version = (dgm_str){0};
    if (!aged.tools.at)
        aged.tools.at = dgm_new(a, dgm_canon_tool);
    if (!aged.context.at)
        aged.context.at = dgm_new(a, dgm_canon_context);
    if (!aged.state)
        aged.state = dgm_json_parse_trusted(a, DGM_STR("{}"));
    if (!aged.forwarded_props)
        aged.forwarded_props = dgm_json_parse_trusted(a, DGM_STR("{}"));
    dgm_code rc = agui_write_request(w, &aged, params, err);
    dgm_arena_free(a);
    return rc;
}

static int old_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    agui_recognise(v, ret_form);
    return 0; /* what comes in is ag-ui's */
}

const dgm_codec dgm_codec_agui_old = {
    .name = "ag-ui-0",
    .format = DGM_FORMAT_AG_UI_0,
    .builds_messages = true,
    .recognise = old_recognise,
    .decoder_new = agui_decoder_new,
    .decoder_feed = agui_decoder_feed,
    .decoder_end = agui_decoder_end,
    .decoder_free = agui_decoder_free,
    .encoder_new = old_encoder_new,
    .encoder_feed = agui_encoder_feed,
    .encoder_end = agui_encoder_end,
    .encoder_free = free_encoder,
    .read_messages = agui_read_messages,
    .write_messages = old_write_messages,
    .read_request = dgm_agui_read_input,
    .write_request = old_write_request,
    .lost_reading = &dgm_agui_lost_reading,
    .lost_writing = &dgm_agui_old_lost_writing,
};

/* ---- ag-ui-simple ------------------------------------------------------------------------------------------- */

static void *simple_decoder_new(const dgm_stream_params *params)
{
    return dgm_simple_to_events_new(params->fragment, params->compact, params->mint);
}

static dgm_code simple_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v,
                                    dgm_canon_sink sink)
{
    dgm_simple_event e;
    dgm_code rc = dgm_agui_simple_read(r, v, NULL, &e);
    return rc ? rc : dgm_simple_to_events_feed(decoder, r->arena, &e, sink, r->err);
}

static dgm_code simple_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    return dgm_simple_to_events_end(decoder, sink, err);
}

static void simple_decoder_free(void *decoder)
{
    dgm_simple_to_events_free(decoder);
}

static dgm_code write_simple(void *arg, const dgm_simple_event *event)
{
    struct encoder *e = arg;
    dgm_writer w = {.out = &e->text, .format = DGM_FORMAT_AG_UI_SIMPLE};
    dgm_buf_clear(&e->text);
    dgm_agui_simple_write(&w, event);
    return agui_emit_frame(e);
}

static void *simple_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    struct encoder *e = new_encoder(params, sink);
    e->simple = dgm_simple_encoder_new(write_simple, e);
    return e;
}
static dgm_code simple_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_simple_encoder_feed(e->simple, event, err);
}
static dgm_code simple_encoder_end(void *encoder, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_simple_encoder_end(e->simple, err);
}

static int simple_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    *ret_form = DGM_FORM_EVENTS;
    return dgm_agui_simple_recognise(v);
}

const dgm_codec dgm_codec_agui_simple = {
    .name = dgm_agui_simple_name,
    .format = DGM_FORMAT_AG_UI_SIMPLE,
    .recognise = simple_recognise,
    .decoder_new = simple_decoder_new,
    .decoder_feed = simple_decoder_feed,
    .decoder_end = simple_decoder_end,
    .decoder_free = simple_decoder_free,
    .encoder_new = simple_encoder_new,
    .encoder_feed = simple_encoder_feed,
    .encoder_end = simple_encoder_end,
    .encoder_free = free_encoder,
    .lost_reading = &dgm_agui_simple_lost_reading,
    .lost_writing = &dgm_agui_simple_lost_writing,
};

/* ---- losses: docs/internals/losses.md is generated from these rows; tests/roundtrip/losses checks them ------- */

static const dgm_loss agui_reading[] = {
    {"events", "*", "events of types that AG-UI 1.0 does not have are left out"},
    {"events", "THINKING_*", "become REASONING events, with ids; a title is left out"},
    {"events", "TEXT_MESSAGE_CHUNK", "becomes START, CONTENT, END"},
    {"events", "TOOL_CALL_CHUNK", "becomes START, ARGS, END"},
};
const dgm_loss_rows dgm_agui_lost_reading = {agui_reading,
                                             sizeof agui_reading / sizeof *agui_reading};

static const dgm_loss agui_old_writing[] = {
    {"events", "SUBAGENT_*", "left out"},
    {"events", "STEP_*", "left out when it belongs to a subagent", DGM_LOSS_HAS, "subagentRunId"},
    {"events", "RUN_FINISHED", "the outcome cancelled becomes RUN_ERROR", DGM_LOSS_OUTCOME_IS,
     "cancelled"},
    {"events", "RUN_FINISHED/outcome/type", "success is left out", DGM_LOSS_IS, "success"},
    {"events", "RUN_FINISHED/outcome/pendingToolCallIds", "left out"},
    {"events", "RUN_FINISHED/outcome/interrupts/*/subagentRunId", "left out"},
    {"any", "/subagentRunId", "left out"},
    {"events", "TOOL_CALL_RESULT/content", "only the text is copied", DGM_LOSS_NOT_TEXT},
    {"messages", "tool/content", "only the text is copied", DGM_LOSS_NOT_TEXT},
    {"messages", "/content/*", "parts that name a file by a provider's handle are left out",
     DGM_LOSS_SOURCE_IS_NOT, "data url"},
    {"request", "/protocolVersion", "left out: older clients are recognized by its absence"},
};
const dgm_loss_rows dgm_agui_old_lost_writing = {agui_old_writing, sizeof agui_old_writing /
                                                                       sizeof *agui_old_writing};

static const dgm_loss agui_simple_reading[] = {
    {"events", "tool-call-args/toolCall/arguments", "come back merged into one string",
     DGM_LOSS_NOT_REPORTED},
    {"events", "tool-call-result/result", "a value that is not a string becomes JSON text",
     DGM_LOSS_NOT_TEXT},
};
const dgm_loss_rows dgm_agui_simple_lost_reading = {
    agui_simple_reading, sizeof agui_simple_reading / sizeof *agui_simple_reading};

static const dgm_loss agui_simple_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "STATE_*", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "left out, including progress"},
    {"events", "REASONING_*", "left out"},
    {"events", "CUSTOM", "left out, including artifacts that are not text"},
    DGM_LOST_BY_SIMPLE_DIALECTS,
    {"events", "TOOL_CALL_RESULT/content", "files are left out", DGM_LOSS_NOT_TEXT},
    {"events", "STEP_FINISHED",
     "left out for the step `working`: in this dialect it means that input is required",
     DGM_LOSS_STEP_IS, "working"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/usage", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "interrupts become step-finished without their questions; cancelled becomes run-error",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_ERROR/code", "values other than rejected and canceled become failed",
     DGM_LOSS_IS_NOT, "rejected canceled cancelled failed"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_agui_simple_lost_writing = {
    agui_simple_writing, sizeof agui_simple_writing / sizeof *agui_simple_writing};

static const dgm_loss agui_proto_writing[] = {
    {"events", "/*", "members that AG-UI 1.0 does not define are left out"},
    {"events", "/snapshot",
     "numbers in free-form JSON become doubles: beyond 2^53 they are rounded",
     DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_agui_proto_lost_writing = {
    agui_proto_writing, sizeof agui_proto_writing / sizeof *agui_proto_writing};
