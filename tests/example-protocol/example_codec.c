/*
 * example_codec.c - a format whose stream is {"type":"start"}, texts {"type":"text","text":...} and {"type":"end"}.
 *
 * It shows the least that a codec has: recognise, a decoder and an encoder. An end with a "problem" is a run that failed.
 * The format has no ids: the decoder generates them. It has no messages and requests, so these members stay NULL.
 */
#include "example_codec.h"
#include "base/limits.h"

#include <stdlib.h>

static const char example_name[] = "example";

static int example_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    dgm_str type = dgm_json_str_member(v, "type");
    *ret_form = DGM_FORM_EVENTS;
    return dgm_str_is(type, "start") || dgm_str_is(type, "text") || dgm_str_is(type, "end");
}

/* ---- decoder ----------------------------------------------------------------------------------------------- */

struct example_decoder {
    dgm_arena *arena; /* of the ids */
    dgm_str run_id, message_id;
    bool started, ended;
};

static void *example_decoder_new(const dgm_stream_params *params)
{
    struct example_decoder *d = dgm_xcalloc(1, sizeof *d);
    dgm_mint mint = params->mint;
    d->arena = dgm_arena_new();
    d->run_id = dgm_mint_id(&mint, d->arena);
    d->message_id = dgm_mint_id(&mint, d->arena);
    return d;
}

static dgm_code example_emit(struct example_decoder *d, dgm_canon_kind kind, dgm_str text,
                             dgm_canon_sink sink)
{
    dgm_canon_event e = {.kind = kind};
    if (kind == DGM_CANON_RUN_STARTED) {
        e.run_started.thread_id = e.run_started.run_id = d->run_id;
    } else if (kind == DGM_CANON_RUN_FINISHED) {
        e.run_finished.thread_id = e.run_finished.run_id = d->run_id;
    } else if (kind == DGM_CANON_RUN_ERROR) {
        e.run_error.message = text;
    } else {
        e.text.message_id = d->message_id;
        e.text.role = DGM_CANON_ASSISTANT;
        e.text.delta = text;
    }
    return dgm_canon_emit(sink, &e);
}

static dgm_code example_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v,
                                     dgm_canon_sink sink)
{
    struct example_decoder *d = decoder;
    dgm_str type = dgm_json_str_member(v, "type"), problem = dgm_json_str_member(v, "problem");
    dgm_code rc = DGM_OK;
    if (dgm_str_is(type, "start"))
        return example_emit(d, DGM_CANON_RUN_STARTED, (dgm_str){0}, sink);
    if (dgm_str_is(type, "text")) {
        if (!d->started)
            rc = example_emit(d, DGM_CANON_TEXT_MESSAGE_START, (dgm_str){0}, sink);
        d->started = true;
        return rc ? rc
                  : example_emit(d, DGM_CANON_TEXT_MESSAGE_CONTENT, dgm_json_str_member(v, "text"),
                                 sink);
    }
    if (!dgm_str_is(type, "end"))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "type"),
                        "unknown type; allowed values: start, text, end");
    d->ended = true;
    if (d->started)
        rc = example_emit(d, DGM_CANON_TEXT_MESSAGE_END, (dgm_str){0}, sink);
    return rc ? rc
              : example_emit(d, problem.p ? DGM_CANON_RUN_ERROR : DGM_CANON_RUN_FINISHED, problem,
                             sink);
}

/* A stream without its end: the run has failed. */
static dgm_code example_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    struct example_decoder *d = decoder;
    (void)err;
    return d->ended ? DGM_OK
                    : example_emit(d, DGM_CANON_RUN_ERROR, DGM_STR("the stream was cut"), sink);
}

static void example_decoder_free(void *decoder)
{
    dgm_arena_free(((struct example_decoder *)decoder)->arena);
    free(decoder);
}

/* ---- encoder ----------------------------------------------------------------------------------------------- */

struct example_encoder {
    dgm_frame_sink sink;
    dgm_buf text;
};

static void *example_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    struct example_encoder *e = dgm_xcalloc(1, sizeof *e);
    (void)params;
    e->sink = sink;
    dgm_buf_init(&e->text, DGM_MAX_OUTPUT_BYTES);
    return e;
}

static dgm_code example_put(struct example_encoder *e, const char *type, const char *key,
                            dgm_str value)
{
    dgm_buf_clear(&e->text);
    dgm_buf_printf(&e->text, "{\"type\":\"%s\"", type);
    if (key) {
        dgm_buf_printf(&e->text, ",\"%s\":", key);
        dgm_json_put_str(&e->text, value);
    }
    dgm_buf_add_char(&e->text, '}');
    return e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->text));
}

static dgm_code example_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    (void)err;
    switch ((int)event->kind) {
    case DGM_CANON_RUN_STARTED: return example_put(encoder, "start", NULL, (dgm_str){0});
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
        return example_put(encoder, "text", "text", event->text.delta);
    case DGM_CANON_RUN_FINISHED: return example_put(encoder, "end", NULL, (dgm_str){0});
    case DGM_CANON_RUN_ERROR:
        return example_put(encoder, "end", "problem", event->run_error.message);
    default: return DGM_OK; /* the format has no place for it: a row in lost_writing lists it */
    }
}

static dgm_code example_encoder_end(void *encoder, dgm_err *err)
{
    (void)encoder;
    (void)err;
    return DGM_OK;
}

static void example_encoder_free(void *encoder)
{
    dgm_buf_done(&((struct example_encoder *)encoder)->text);
    free(encoder);
}

/* ---- the codec --------------------------------------------------------------------------------------------- */

static const dgm_loss example_losses[] = {{"events", "TOOL_CALL_*", "left out"}};
static const dgm_loss_rows example_lost_writing = {example_losses, 1};

const dgm_codec dgm_codec_example = {
    .name = example_name,
    .recognise = example_recognise,
    .decoder_new = example_decoder_new,
    .decoder_feed = example_decoder_feed,
    .decoder_end = example_decoder_end,
    .decoder_free = example_decoder_free,
    .encoder_new = example_encoder_new,
    .encoder_feed = example_encoder_feed,
    .encoder_end = example_encoder_end,
    .encoder_free = example_encoder_free,
    .lost_writing = &example_lost_writing,
};
