/*
 * fuzz_ui.c - lines of JSON as streams, messages and requests of the AI SDK and of LangChain, and the bytes as
 * an event of AG-UI in protobuf.
 *
 * Held: what is written as either format is read again, without a fault and with one end; an event that was read
 * from protobuf is JSON, and the same after it was written and read once more.
 */
#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_lines.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "wire/aisdk/aisdk.h"
#include "wire/langchain/langchain.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what, dgm_str text, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_ui: %s: %s\n%.*s\n", what, why, DGM_P(text));
    abort();
}

/* ---- what is written is read again ------------------------------------------------------------------------ */

struct again {
    const dgm_codec *codec;
    void *decoder; /* NULL: messages */
    size_t ends;
};

static dgm_code count_end(void *arg, const dgm_canon_event *e)
{
    ((struct again *)arg)->ends += dgm_canon_is_terminal(e->kind);
    return DGM_OK;
}

static dgm_code read_again(void *arg, dgm_str name, dgm_str payload)
{
    struct again *again = arg;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = &err};
    dgm_canon_messages messages;
    yyjson_val *v;
    (void)name;
    dgm_code rc = dgm_json_read(a, payload, SIZE_MAX, "none", &v, &err);
    if (rc == DGM_TOO_LARGE)
        return DGM_OK; /* nested some levels deeper than what it was made of */
    must(!rc, "no JSON", payload, err.msg);
    rc = again->decoder
             ? again->codec->decoder_feed(again->decoder, &r, v, (dgm_canon_sink){count_end, again})
             : again->codec->read_messages(&r, v, NULL, &messages);
    must(!rc, "we do not read what we write", payload, err.msg);
    return DGM_OK;
}

/* ---- streams ------------------------------------------------------------------------------------------------ */

#define N_TARGETS 2
struct targets {
    struct again again[N_TARGETS];
    void *encoders[N_TARGETS];
    dgm_str input;
};

static dgm_code on_event(void *arg, const dgm_canon_event *e)
{
    struct targets *t = arg;
    dgm_err err = {0};
    for (size_t i = 0; i < N_TARGETS; i++) {
        dgm_code rc = t->again[i].codec->encoder_feed(t->encoders[i], e, &err);
        must(!rc || rc == DGM_TOO_LARGE, "encoding", t->input, err.msg);
    }
    return DGM_OK;
}

static void as_stream(const dgm_codec *codec, bool fragment, dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_stream_params p = {.fragment = fragment};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    struct targets t = {.again = {{.codec = &dgm_codec_aisdk}, {.codec = &dgm_codec_langchain}},
                        .input = input};
    dgm_str rest = input;
    for (size_t i = 0; i < N_TARGETS; i++) {
        t.again[i].decoder = t.again[i].codec->decoder_new(&p);
        t.encoders[i] =
            t.again[i].codec->encoder_new(&p, (dgm_frame_sink){read_again, &t.again[i]});
    }
    void *d = codec->decoder_new(&p);
    dgm_code rc = DGM_OK;
    while (rest.n && !rc) {
        yyjson_val *v = next_line(a, &rest);
        dgm_form form;
        if (v)
            codec->recognise(v, &form);
        if (v)
            rc = codec->decoder_feed(d, &r, v, (dgm_canon_sink){on_event, &t});
    }
    must(!rc || err.msg[0], "an error without a message", input, "");
    if (!rc)
        codec->decoder_end(d, (dgm_canon_sink){on_event, &t}, &err);
    codec->decoder_free(d);
    for (size_t i = 0; i < N_TARGETS; i++) {
        t.again[i].codec->encoder_end(t.encoders[i], &err);
        t.again[i].codec->decoder_end(t.again[i].decoder, (dgm_canon_sink){count_end, &t.again[i]},
                                      &err);
        must(t.again[i].ends <= 1 || codec == &dgm_codec_agui, "several ends", input, "");
        t.again[i].codec->encoder_free(t.encoders[i]);
        t.again[i].codec->decoder_free(t.again[i].decoder);
    }
}

/* ---- messages and requests ------------------------------------------------------------------------------------ */

static void as_messages(const dgm_codec *codec, dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = &err};
    dgm_stream_params p = {0};
    dgm_str rest = input;
    while (rest.n) {
        yyjson_val *v = next_line(a, &rest);
        dgm_canon_messages messages;
        dgm_canon_input request;
        struct again sdk = {.codec = &dgm_codec_aisdk}, chain = {.codec = &dgm_codec_langchain};
        if (v && !codec->read_messages(&r, v, NULL, &messages)) {
            dgm_codec_aisdk.write_messages(&messages, &p, (dgm_frame_sink){read_again, &sdk}, &err);
            dgm_codec_langchain.write_messages(&messages, &p, (dgm_frame_sink){read_again, &chain},
                                               &err);
        }
        if (v && codec->read_request && !codec->read_request(&r, v, NULL, &request)) {
            dgm_buf b;
            dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
            dgm_writer w = {.out = &b, .format = codec->format};
            dgm_codec_aisdk.write_request(&w, &request, &p, &err);
            yyjson_val *again;
            dgm_code rc = dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &again, &err);
            if (!rc)
                rc = dgm_codec_aisdk.read_request(&r, again, NULL, &request);
            must(!rc || rc == DGM_TOO_LARGE, "a request", dgm_buf_str(&b), err.msg);
            dgm_buf_done(&b);
        }
    }
}

/* ---- protobuf -------------------------------------------------------------------------------------------------- */

/* Written and read again; false: it nests too deep for that. */
static bool go_round(dgm_arena *a, const dgm_buf *json, dgm_buf *again)
{
    dgm_err err = {0};
    dgm_buf frame;
    yyjson_val *v;
    bool known = false;
    dgm_code rc = dgm_json_read(a, dgm_buf_str(json), SIZE_MAX, "none", &v, &err);
    must(!rc || rc == DGM_TOO_LARGE, "no JSON", dgm_buf_str(json), err.msg);
    if (rc)
        return false;
    dgm_buf_init(&frame, DGM_MAX_OUTPUT_BYTES);
    must(dgm_agui_proto_write(&frame, v), "no event", dgm_buf_str(json), "");
    rc = dgm_agui_proto_read((dgm_str){frame.p + 4, frame.n - 4}, again, &known, &err);
    must(!rc && known, "we do not read what we write", dgm_buf_str(json), err.msg);
    dgm_buf_done(&frame);
    return true;
}

static void as_proto(dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_buf first, second, third;
    bool known;
    dgm_buf_init(&first, DGM_MAX_OUTPUT_BYTES), dgm_buf_init(&second, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_init(&third, DGM_MAX_OUTPUT_BYTES);
    dgm_code rc = dgm_agui_proto_read(input, &first, &known, &err);
    must(!rc || err.msg[0], "an error without a message", input, "");
    /* the first time what we do not know gets lost */
    if (!rc && known && go_round(a, &first, &second) && go_round(a, &second, &third))
        must(dgm_str_eq(dgm_buf_str(&second), dgm_buf_str(&third)), "not the same",
             dgm_buf_str(&second), "after one more round");
    dgm_buf_done(&first), dgm_buf_done(&second), dgm_buf_done(&third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str input = {(const char *)data, size};
    as_proto(input);
    as_stream(&dgm_codec_aisdk, false, input);
    as_stream(&dgm_codec_aisdk, true, input);
    as_stream(&dgm_codec_langchain, false, input);
    as_stream(&dgm_codec_langchain, true, input);
    as_stream(&dgm_codec_agui, false, input);
    as_messages(&dgm_codec_aisdk, input);
    as_messages(&dgm_codec_langchain, input);
    as_messages(&dgm_codec_agui, input);
    return 0;
}
