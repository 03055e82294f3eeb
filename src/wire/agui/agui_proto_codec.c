/* wire/agui/agui_proto_codec.c - the codec of the binary events: the JSON codec and one more conversion. */
#include "base/limits.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "wire/agui/agui_proto_int.h"

#include <stdlib.h>

static const char name[] = "ag-ui-proto";

struct encoder {
    dgm_frame_sink sink;
    void *json;
    dgm_arena *arena;
    dgm_buf out;
    bool old_peer;
    dgm_err *err;
};

/* Is it an event that exists in the schema of older peers (before 1.0)? */
static bool is_old(const yyjson_val *event)
{
    dgm_str type = dgm_json_str(dgm_json_get(event, DGM_STR("type")));
    for (size_t i = 0; i < PB_OLD_ARMS; i++) {
        if (dgm_str_eq(dgm_str_from(dgm_pb_event.fields[i].name), type))
            return true;
    }
    return false;
}

static dgm_code on_json(void *arg, dgm_str unnamed, dgm_str payload)
{
    struct encoder *e = arg;
    (void)unnamed;
    yyjson_val *event;
    dgm_code rc =
        dgm_json_read(e->arena, payload, DGM_MAX_OUTPUT_BYTES, "output_bytes", &event, e->err);
    if (rc)
        return rc; /* it nests too deep to be read again */
    dgm_buf_clear(&e->out);
    if ((!e->old_peer || is_old(event)) && dgm_agui_proto_write(&e->out, event)) {
        rc = e->out.over ? dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                                    "the event becomes longer than the limit output_bytes of %zu",
                                    DGM_MAX_OUTPUT_BYTES)
                         : e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->out));
    }
    dgm_arena_reset(e->arena);
    return rc;
}

static void *encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    struct encoder *e = dgm_xcalloc(1, sizeof *e);
    e->sink = sink;
    e->old_peer = params->old_peer;
    e->arena = dgm_arena_new();
    dgm_buf_init(&e->out, DGM_MAX_OUTPUT_BYTES);
    e->json = dgm_codec_agui.encoder_new(params, (dgm_frame_sink){on_json, e});
    return e;
}

static dgm_code encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_codec_agui.encoder_feed(e->json, event, err);
}

static dgm_code encoder_end(void *encoder, dgm_err *err)
{
    struct encoder *e = encoder;
    e->err = err;
    return dgm_codec_agui.encoder_end(e->json, err);
}

static void encoder_free(void *encoder)
{
    struct encoder *e = encoder;
    if (!e)
        return;
    dgm_codec_agui.encoder_free(e->json);
    dgm_arena_free(e->arena);
    dgm_buf_done(&e->out);
    free(e);
}

/* The format is detected from the bytes; the values are those of ag-ui. */
static int agui_proto_codec_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    (void)v;
    *ret_form = DGM_FORM_EVENTS;
    return 0;
}

static void *decoder_new(const dgm_stream_params *params)
{
    return dgm_codec_agui.decoder_new(params);
}
static dgm_code decoder_feed(void *d, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    return dgm_codec_agui.decoder_feed(d, r, v, sink);
}
static dgm_code decoder_end(void *d, dgm_canon_sink sink, dgm_err *err)
{
    return dgm_codec_agui.decoder_end(d, sink, err);
}
static void decoder_free(void *d)
{
    dgm_codec_agui.decoder_free(d);
}

const dgm_codec dgm_codec_agui_proto = {
    .name = name,
    .format = DGM_FORMAT_AG_UI_PROTO,
    .builds_messages = true,
    .binary = true,
    .recognise = agui_proto_codec_recognise,
    .decoder_new = decoder_new,
    .decoder_feed = decoder_feed,
    .decoder_end = decoder_end,
    .decoder_free = decoder_free,
    .encoder_new = encoder_new,
    .encoder_feed = encoder_feed,
    .encoder_end = encoder_end,
    .encoder_free = encoder_free,
    .lost_writing = &dgm_agui_proto_lost_writing,
};

/* ---- frames: binary events in chunks of any size, converted to lines of JSON ----------------------------------- */

static dgm_code read_frame(dgm_str frame, dgm_buf *lines, dgm_err *err)
{
    bool known;
    dgm_code rc = dgm_agui_proto_read(frame, lines, &known, err);
    if (known)
        dgm_buf_add_char(lines, '\n');
    return rc;
}

dgm_code dgm_agui_proto_feed(dgm_buf *hold, dgm_str bytes, dgm_buf *lines, dgm_err *err)
{
    size_t at = 0;
    dgm_code rc = DGM_OK;
    dgm_buf_add_str(hold, bytes);
    while (!rc && hold->n - at >= DGM_AGUI_PROTO_HEAD) {
        size_t n = dgm_agui_proto_length(hold->p + at);
        if (n > DGM_MAX_RECORD_BYTES)
            rc =
                dgm_fail(err, DGM_TOO_LARGE, NULL,
                         "a binary event of %zu bytes is longer than the limit record_bytes of %zu",
                         n, DGM_MAX_RECORD_BYTES);
        else if (hold->n - at - DGM_AGUI_PROTO_HEAD < n)
            break;
        else
            rc = read_frame((dgm_str){hold->p + at + DGM_AGUI_PROTO_HEAD, n}, lines, err);
        at += DGM_AGUI_PROTO_HEAD + n;
    }
    dgm_buf_drop_front(hold, at < hold->n ? at : hold->n);
    if (!hold->n)
        dgm_buf_shrink(hold, DGM_ARENA_KEEP_BYTES);
    return rc;
}
