/*
 * fuzz_responses.c - lines of JSON as events, responses, items and requests of Responses, and as its dialect.
 *
 * Held: what is read gives events that our own encoders take, with one end; what they write can be read again;
 * items and requests that were read are written so that they are read the same.
 */
#include "base/limits.h"
#include "canon/verify.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_lines.h"
#include "wire/responses/responses.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what, dgm_str text, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_responses: %s: %s\n%.*s\n", what, why, DGM_P(text));
    abort();
}

/* ---- streams ------------------------------------------------------------------------------------------------------ */

/* A decoder that reads again what an encoder writes. */
struct again {
    const dgm_codec *codec;
    void *decoder;
    size_t ends;
};

static dgm_code count_ends(void *arg, const dgm_canon_event *e)
{
    ((struct again *)arg)->ends += dgm_canon_is_terminal(e->kind);
    return DGM_OK;
}

static dgm_code read_again(void *arg, dgm_str name, dgm_str payload)
{
    struct again *k = arg;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_form form;
    yyjson_val *v;
    (void)name;
    dgm_code rc = dgm_json_read(a, payload, SIZE_MAX, "none", &v, &err);
    if (rc == DGM_TOO_LARGE)
        return DGM_OK; /* nested deeper than what it was made of */
    must(!rc && k->codec->recognise(v, &form) == 2, "we do not know our own", payload, err.msg);
    rc = k->codec->decoder_feed(k->decoder, &r, v, (dgm_canon_sink){count_ends, k});
    must(!rc, "we do not read what we write", payload, err.msg);
    return DGM_OK;
}

#define N_ENCODERS 3

struct readers {
    bool whole_run;
    dgm_verify *verify;
    struct again again[N_ENCODERS];
    void *encoders[N_ENCODERS];
    size_t ends;
    dgm_str input;
};

static dgm_code read_event(void *arg, const dgm_canon_event *e)
{
    struct readers *r = arg;
    dgm_err err = {0};
    dgm_order_rule rule = dgm_verify_feed(r->verify, e, &err);
    must(!rule || !r->whole_run, "out of order", r->input, err.msg);
    r->ends += dgm_canon_is_terminal(e->kind);
    for (int i = 0; i < N_ENCODERS; i++) {
        dgm_code rc = r->again[i].codec->encoder_feed(r->encoders[i], e, &err);
        must(!rc || rc == DGM_TOO_LARGE, "an encoder fails", r->input, err.msg);
    }
    return DGM_OK;
}

static void open_readers(struct readers *r, bool fragment, dgm_str input)
{
    *r = (struct readers){.whole_run = !fragment, .verify = dgm_verify_new(), .input = input};
    for (int i = 0; i < N_ENCODERS; i++) {
        dgm_stream_params p = {.fragment = fragment, .whole = i == 1};
        r->again[i].codec = i == 2 ? &dgm_codec_responses_simple : &dgm_codec_responses;
        r->again[i].decoder = r->again[i].codec->decoder_new(&p);
        r->encoders[i] =
            r->again[i].codec->encoder_new(&p, (dgm_frame_sink){read_again, &r->again[i]});
    }
}

static void close_readers(struct readers *r, bool over)
{
    dgm_err err = {0};
    for (int i = 0; i < N_ENCODERS; i++) {
        const dgm_codec *codec = r->again[i].codec;
        dgm_code rc = codec->encoder_end(r->encoders[i], &err);
        if (over && !rc &&
            !codec->decoder_end(r->again[i].decoder, (dgm_canon_sink){count_ends, &r->again[i]},
                                &err))
            must(i == 2 || r->again[i].ends == r->ends, "other ends", r->input, codec->name);
        codec->encoder_free(r->encoders[i]);
        codec->decoder_free(r->again[i].decoder);
    }
    dgm_verify_free(r->verify);
}

static void as_stream(const dgm_codec *codec, bool fragment, dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_stream_params p = {.fragment = fragment};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    struct readers readers;
    dgm_str rest = input;
    open_readers(&readers, fragment, input);
    void *d = codec->decoder_new(&p);
    dgm_canon_sink sink = {read_event, &readers};
    dgm_code rc = DGM_OK;
    while (rest.n && !rc) {
        yyjson_val *v = next_line(a, &rest);
        if (v)
            rc = codec->decoder_feed(d, &r, v, sink);
    }
    must(!rc || err.msg[0], "an error without a message", input, "");
    if (!rc)
        rc = codec->decoder_end(d, sink, &err);
    must(rc || fragment || codec == &dgm_codec_responses_simple || readers.ends, "no end", input,
         "");
    codec->decoder_free(d);
    close_readers(&readers, !rc && !fragment);
}

/* ---- items and requests --------------------------------------------------------------------------------------------- */

static dgm_code add_item(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *b = arg;
    (void)name;
    dgm_buf_add_char(b, b->n ? ',' : '[');
    dgm_buf_add_str(b, payload);
    return DGM_OK;
}

static bool write_items(dgm_arena *a, yyjson_val *v, dgm_buf *out)
{
    const dgm_codec *codec = &dgm_codec_responses;
    dgm_stream_params p = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_canon_messages list;
    if (codec->read_messages(&r, v, NULL, &list)) {
        must(err.msg[0], "an error without a message", DGM_STR(""), "");
        return false;
    }
    dgm_buf_init(out, SIZE_MAX);
    must(!codec->write_messages(&list, &p, (dgm_frame_sink){add_item, out}, &err), "cannot write",
         DGM_STR(""), err.msg);
    dgm_buf_add_lit(out, "]");
    return out->n > 1;
}

static bool write_request(dgm_arena *a, yyjson_val *v, dgm_buf *out)
{
    dgm_stream_params p = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_canon_input in;
    if (dgm_codec_responses.read_request(&r, v, NULL, &in)) {
        must(err.msg[0], "an error without a message", DGM_STR(""), "");
        return false;
    }
    dgm_buf_init(out, SIZE_MAX);
    dgm_writer w = {.out = out, .format = DGM_FORMAT_RESPONSES};
    must(!dgm_codec_responses.write_request(&w, &in, &p, &err), "cannot write", DGM_STR(""),
         err.msg);
    return true;
}

/* What is written once is written the same the second time, in whatever order. */
static void there_and_back(bool (*write)(dgm_arena *, yyjson_val *, dgm_buf *), yyjson_val *v)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf once = {0}, twice = {0};
    dgm_err err = {0};
    yyjson_val *again, *third;
    if (write(a, v, &once)) {
        dgm_str text = dgm_buf_str(&once);
        dgm_code rc = dgm_json_read(a, text, SIZE_MAX, "none", &again, &err);
        must(!rc || rc == DGM_TOO_LARGE, "no JSON", text, err.msg);
        if (!rc) {
            must(write(a, again, &twice), "we do not read what we write", text, "");
            must(!dgm_json_read(a, dgm_buf_str(&twice), SIZE_MAX, "none", &third, &err) &&
                     dgm_json_equal(again, third),
                 "a second trip changes it", text, dgm_arena_dup(a, dgm_buf_str(&twice)).p);
        }
    }
    dgm_buf_done(&once);
    dgm_buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str input = {(const char *)data, size}, rest = input;
    as_stream(&dgm_codec_responses, false, input);
    as_stream(&dgm_codec_responses, true, input);
    as_stream(&dgm_codec_responses_simple, false, input);
    as_stream(&dgm_codec_responses_simple, true, input);
    while (rest.n) {
        yyjson_val *v = next_line(a, &rest);
        dgm_form form;
        if (!v)
            continue;
        dgm_codec_responses.recognise(v, &form);
        there_and_back(write_items, v);
        there_and_back(write_request, v);
    }
    return 0;
}
