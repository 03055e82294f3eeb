/*
 * fuzz_canon.c - lines of JSON as AG-UI events, as events of the dialect, as records.
 *
 * Checked: records never produce events out of order, and exactly one end; AG-UI output, in either
 * dialect, is read again; A2A output is read again.
 */
#include "base/limits.h"
#include "canon/compact.h"
#include "canon/events_to_messages.h"
#include "canon/events_to_records.h"
#include "canon/records_to_events.h"
#include "canon/verify.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_lines.h"
#include "model/form.h"
#include "wire/agui/agui.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_simple.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what, dgm_str text, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_canon: %s: %s\n%.*s\n", what, why, DGM_P(text));
    abort();
}

/* ---- what is written is read again ---------------------------------------------------------------------- */

static dgm_code read_again(void *arg, dgm_str name, dgm_str payload)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    yyjson_val *v;
    bool simple = arg != NULL;
    dgm_canon_event e;
    dgm_simple_event s;
    dgm_agui_found found = DGM_AGUI_UNKNOWN;
    (void)name;
    dgm_code rc = dgm_json_read(a, payload, SIZE_MAX, "none", &v, &err);
    if (rc == DGM_TOO_LARGE)
        return DGM_OK; /* nested one level deeper than what it was made of */
    if (!rc)
        rc = simple ? dgm_agui_simple_read(&r, v, NULL, &s)
                    : dgm_agui_read_event(&r, v, NULL, &e, &found);
    must(!rc && (simple || found == DGM_AGUI_EVENT), "we do not read what we write", payload,
         err.msg);
    return DGM_OK;
}

static dgm_code read_model_again(void *arg, const dgm_event *event)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    dgm_event again;
    dgm_buf b;
    yyjson_val *v;
    (void)arg;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_form_write_event(&w, event);
    dgm_code rc = dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &v, &err);
    if (!rc)
        rc = dgm_form_read_event(&r, v, NULL, &again);
    /* ids may be empty on the other side, and A2A asks for them */
    must(!rc || rc == DGM_TOO_LARGE || strstr(err.msg, "must not be empty"), "no A2A event",
         dgm_buf_str(&b), err.msg);
    dgm_buf_done(&b);
    return DGM_OK;
}

/* ---- everybody who reads canonical events --------------------------------------------------------------------- */

struct readers {
    bool ordered; /* they come from records: the order must hold */
    dgm_verify *verify;
    dgm_canon_fold *fold;
    dgm_events_to_records *to;
    void *wire, *old, *simple;
    size_t ends;
    dgm_str input;
};

static dgm_code read_event(void *arg, const dgm_canon_event *e)
{
    struct readers *r = arg;
    dgm_err err = {0};
    dgm_order_rule rule = dgm_verify_feed(r->verify, e, &err);
    must(!rule || !r->ordered, "out of order", r->input, err.msg);
    r->ends += dgm_canon_is_terminal(e->kind);
    dgm_canon_fold_add(r->fold, e);
    dgm_code rc = dgm_events_to_records_feed(r->to, e, &err);
    must(!rc || rc == DGM_TOO_LARGE, "to_model", r->input, err.msg);
    rc = dgm_codec_agui.encoder_feed(r->wire, e, &err);
    must(!rc, "ag-ui", r->input, err.msg);
    rc = dgm_codec_agui.encoder_feed(r->old, e, &err);
    must(!rc, "ag-ui of old", r->input, err.msg);
    rc = dgm_codec_agui_simple.encoder_feed(r->simple, e, &err);
    must(!rc || rc == DGM_TOO_LARGE, "ag-ui-simple", r->input, err.msg);
    return DGM_OK;
}

static void open_readers(struct readers *r, bool ordered, dgm_str input)
{
    dgm_events_params to = {
        .now = 1}; /* records have a time; only texts that are converted may be without */
    dgm_stream_params now = {.old_peer = false}, old = {.old_peer = true};
    *r = (struct readers){
        .ordered = ordered,
        .verify = dgm_verify_new(),
        .fold = dgm_canon_fold_new(1 << 16),
        .to = dgm_events_to_records_new(&to, read_model_again, NULL),
        .wire = dgm_codec_agui.encoder_new(&now, (dgm_frame_sink){read_again, NULL}),
        .old = dgm_codec_agui.encoder_new(&old, (dgm_frame_sink){read_again, NULL}),
        .simple = dgm_codec_agui_simple.encoder_new(&now, (dgm_frame_sink){read_again, r}),
        .input = input,
    };
}

static void close_readers(struct readers *r)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_canon_fold_messages(r->fold, a);
    dgm_events_to_records_end(r->to, &err);
    dgm_codec_agui_simple.encoder_end(r->simple, &err);
    dgm_verify_free(r->verify);
    dgm_canon_fold_free(r->fold);
    dgm_events_to_records_free(r->to);
    dgm_codec_agui.encoder_free(r->wire);
    dgm_codec_agui.encoder_free(r->old);
    dgm_codec_agui_simple.encoder_free(r->simple);
}

/* ---- the three readings of the input ------------------------------------------------------------------------------ */

static void as_stream(const dgm_codec *codec, bool fragment, dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_stream_params p = {.fragment = fragment};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    struct readers readers;
    dgm_str rest = input;
    open_readers(&readers, false, input);
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
        codec->decoder_end(d, sink, &err);
    codec->decoder_free(d);
    close_readers(&readers);
}

static void as_records(dgm_records_params p, dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(&p);
    dgm_err err = {0};
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = &mint, .err = &err};
    struct readers readers;
    dgm_str rest = input;
    open_readers(&readers, !p.fragment, input);
    dgm_canon_sink sink = {read_event, &readers};
    dgm_code rc = DGM_OK;
    while (rest.n && !rc) {
        yyjson_val *v = next_line(a, &rest);
        dgm_event e;
        if (v && !dgm_form_read_event(&r, v, NULL, &e))
            rc = dgm_records_to_events_feed(f, &e, sink, &err);
    }
    if (!rc)
        rc = dgm_records_to_events_end(f, sink, &err);
    if (!rc && !p.fragment && !p.many_turns)
        must(readers.ends == 1, "not one end", input, "");
    close_readers(&readers);
}

/* Messages, a line each: map and reduce. */
static void as_history(dgm_str input)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_AG_UI_SIMPLE, .mint = &mint, .err = &err};
    dgm_simple_events all = {dgm_new_n(a, dgm_simple_event, 1000), 0}, out;
    dgm_str rest = input;
    while (rest.n && all.n < 900) {
        yyjson_val *v = next_line(a, &rest);
        dgm_simple_events some;
        dgm_message m = {0};
        if (v && !dgm_agui_simple_read(&r, v, NULL, &all.at[all.n]))
            all.n++;
        else if (v && !dgm_shape_read(&r, &dgm_form_message, v, NULL, &m) &&
                 !dgm_simple_from_message(a, &m, true, NULL, &some, &err))
            for (size_t i = 0; i < some.n && all.n < 1000; i++)
                all.at[all.n++] = some.at[i];
    }
    dgm_simple_events again;
    if (dgm_compact_simple(a, &all, &out, &err))
        return;
    must(!dgm_compact_simple(a, &out, &again, &err), "compacting twice", input, err.msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str input = {(const char *)data, size};
    as_stream(&dgm_codec_agui, false, input);
    as_stream(&dgm_codec_agui_simple, false, input);
    as_stream(&dgm_codec_agui_simple, true, input);
    as_records((dgm_records_params){.whole_snapshots = true}, input);
    as_records((dgm_records_params){.fragment = true, .trusted = true}, input);
    as_records((dgm_records_params){.answer_source = DGM_ANSWER_STATUS,
                                    .say_history = true,
                                    .many_turns = true,
                                    .whole_snapshots = true},
               input);
    as_history(input);
    return 0;
}
