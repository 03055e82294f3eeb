/*
 * fuzz_chat.c - Chat Completions: messages, the direct conversion from A2A, requests, streams.
 *
 * What is read must be written so that we read it the same; what an A2A message becomes must be a
 * chat message that we would take from anybody; and after one trip through the other side, further
 * trips change nothing. A stream (a value a line) gives canonical events in a legal order, and says as chunks
 * what it says as a whole.
 */
#include "base/limits.h"
#include "canon/verify.h"
#include "fuzz/fuzz.h"
#include "lib/direct.h"
#include "model/form.h"
#include "wire/chat/chat_codec.h"
#include "wire/chat/chat_messages.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what, dgm_str one, dgm_str two)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_chat: %s\n  %.*s\n  %.*s\n", what, DGM_P(one), DGM_P(two));
    abort();
}

static dgm_str written(dgm_arena *a, const dgm_chat_messages *list)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
    dgm_buf_add_char(&b, '[');
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_chat_write(&w, &list->at[i]);
    }
    dgm_buf_add_char(&b, ']');
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_chat_messages read_again(dgm_arena *a, dgm_str text)
{
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT, .mint = &mint, .err = &err};
    dgm_chat_messages list = {0};
    yyjson_val *v = NULL;
    dgm_code rc = dgm_json_read(a, text, SIZE_MAX, "none", &v, &err);
    if (rc == DGM_TOO_LARGE)
        return list; /* the list around it was one level too many */
    must(!rc && !dgm_chat_read(&r, v, NULL, &list), "we do not read what we write", text,
         dgm_str_from(err.msg));
    return list;
}

/* Over to A2A, as bytes, and back. */
static dgm_chat_messages trip(dgm_arena *a, const dgm_chat_messages *in)
{
    dgm_chat_messages out = {0};
    dgm_mint mint = {0};
    for (size_t i = 0; i < in->n; i++) {
        dgm_message m = {0}, again = {0};
        dgm_err err = {0};
        dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
        yyjson_val *v = NULL;
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
        dgm_direct_from_chat(a, &in->at[i], &mint, &m);
        dgm_shape_write(&w, &dgm_form_message, &m);
        must(!dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &v, &err) &&
                 !dgm_shape_read(&r, &dgm_form_message, v, NULL, &again),
             "no A2A message", dgm_buf_str(&b), dgm_str_from(err.msg));
        dgm_chat_messages back;
        must(!dgm_direct_message_to_chat(a, &again, NULL, true, &back, &err), "no way back",
             dgm_buf_str(&b), dgm_str_from(err.msg));
        out.at =
            dgm_arena_realloc(a, out.at, out.n * sizeof *out.at, (out.n + back.n) * sizeof *out.at);
        if (back.n)
            memcpy(out.at + out.n, back.at, back.n * sizeof *out.at);
        out.n += back.n;
        dgm_buf_done(&b);
    }
    return out;
}

static void check_list(dgm_arena *a, const dgm_chat_messages *list)
{
    dgm_str text = written(a, list);
    dgm_chat_messages again = read_again(a, text);
    if (again.n != list->n)
        return;
    dgm_str same = written(a, &again);
    must(dgm_str_eq(text, same), "written otherwise the second time", text, same);
    dgm_chat_messages once = trip(a, list), twice = trip(a, &once);
    dgm_str first = written(a, &once), second = written(a, &twice);
    must(dgm_str_eq(first, second), "a second trip changes it", first, second);
    read_again(a, first);
}

/* ---- through canonical messages --------------------------------------------------------------------------- */

static dgm_code put_frame(void *arg, dgm_str name, dgm_str payload)
{
    (void)name;
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

/* A request, or else messages, read and written again; false: refused. */
static bool rewrite(dgm_arena *a, dgm_str text, bool request, dgm_str *ret)
{
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = &err};
    dgm_stream_params params = {0};
    yyjson_val *v;
    dgm_buf b;
    bool ok = false;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
    dgm_canon_input input = {0};
    if (dgm_json_read(a, text, SIZE_MAX, "none", &v, &err))
        ok = false;
    else if (request)
        ok = !dgm_codec_openai_chat.read_request(&r, v, NULL, &input) &&
             !dgm_codec_openai_chat.write_request(&w, &input, &params, &err);
    else if (!dgm_codec_openai_chat.read_messages(&r, v, NULL, &input.messages)) {
        dgm_chat_messages list = dgm_chat_from_canon(a, &input.messages);
        dgm_buf_add_str(&b, written(a, &list));
        ok = true;
    }
    *ret = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return ok;
}

static void check_rewriting(dgm_arena *a, dgm_str text, bool request)
{
    dgm_str once, twice;
    if (!rewrite(a, text, request, &once) || dgm_json_depth_fault(once) < once.n)
        return;
    must(rewrite(a, once, request, &twice), "we do not read what we write", text, once);
    must(dgm_str_eq(once, twice), "written otherwise the second time", once, twice);
}

/* ---- streams ------------------------------------------------------------------------------------------------ */

struct ends {
    void *chunks, *whole;
    dgm_verify *verify;
    size_t runs;
    bool waits;
};

static dgm_code on_event(void *arg, const dgm_canon_event *e)
{
    struct ends *to = arg;
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    must(dgm_verify_feed(to->verify, e, &err) == DGM_ORDER_FINE, "out of order",
         dgm_str_from(dgm_canon_kind_name(e->kind)), dgm_str_from(err.msg));
    to->runs += e->kind == DGM_CANON_RUN_STARTED;
    to->waits |=
        e->kind == DGM_CANON_RUN_FINISHED && e->run_finished.outcome.kind == DGM_CANON_INTERRUPT;
    if (to->chunks)
        rc = dgm_codec_openai_chat.encoder_feed(to->chunks, e, &err);
    return rc ? rc : dgm_codec_openai_chat.encoder_feed(to->whole, e, &err);
}

/* Lines in; what they are as a whole out, and as chunks if asked for. False: refused. */
static bool stream(dgm_str lines, dgm_buf *chunks, dgm_buf *whole, struct ends *to)
{
    const dgm_codec *codec = &dgm_codec_openai_chat;
    dgm_stream_params params = {.usage = true};
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    void *decoder = codec->decoder_new(&params);
    *to = (struct ends){.verify = dgm_verify_new()};
    if (chunks)
        to->chunks = codec->encoder_new(&params, (dgm_frame_sink){put_frame, chunks});
    params.whole = true;
    to->whole = codec->encoder_new(&params, (dgm_frame_sink){put_frame, whole});
    while (!rc && lines.n) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .err = &err};
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t n = end ? (size_t)(end - lines.p) : lines.n;
        yyjson_val *v;
        rc =
            dgm_json_read(a, (dgm_str){lines.p, n}, DGM_MAX_RECORD_BYTES, "record_bytes", &v, &err);
        if (!rc)
            rc = codec->decoder_feed(decoder, &r, v, (dgm_canon_sink){on_event, to});
        lines = (dgm_str){lines.p + n + (end != NULL), lines.n - n - (end != NULL)};
    }
    if (!rc)
        rc = codec->decoder_end(decoder, (dgm_canon_sink){on_event, to}, &err);
    if (!rc)
        rc = codec->encoder_end(to->whole, &err);
    if (!rc && to->chunks)
        rc = codec->encoder_end(to->chunks, &err);
    codec->decoder_free(decoder);
    codec->encoder_free(to->whole);
    codec->encoder_free(to->chunks);
    dgm_verify_free(to->verify);
    return !rc;
}

static void check_stream(dgm_str lines)
{
    dgm_buf chunks, whole, again;
    struct ends to, ignored;
    dgm_buf_init(&chunks, SIZE_MAX);
    dgm_buf_init(&whole, SIZE_MAX);
    dgm_buf_init(&again, SIZE_MAX);
    if (stream(lines, &chunks, &whole, &to)) {
        must(stream(dgm_buf_str(&chunks), NULL, &again, &ignored), "we do not read our chunks",
             lines, dgm_buf_str(&chunks));
        /* several completions may come to have one id; one that waits tells ids that only A2A has */
        if (to.runs == 1 && !to.waits)
            must(dgm_str_eq(dgm_buf_str(&whole), dgm_buf_str(&again)), "chunks say something else",
                 dgm_buf_str(&whole), dgm_buf_str(&again));
    }
    dgm_buf_done(&chunks);
    dgm_buf_done(&whole);
    dgm_buf_done(&again);
}

/* ---- the target ------------------------------------------------------------------------------------------------ */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {0};
    dgm_chat_messages list;
    yyjson_val *v;
    dgm_str text = {(const char *)data, size};
    check_stream(text);
    if (dgm_json_read(a, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, &err))
        return 0;
    dgm_chat_recognise(v);
    check_rewriting(a, text, true);
    check_rewriting(a, text, false);
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT, .mint = &mint, .err = &err};
    if (!dgm_chat_read(&r, v, NULL, &list))
        check_list(a, &list);

    r.format = DGM_FORMAT_A2A_10;
    dgm_message m = {0};
    if (!dgm_shape_read(&r, &dgm_form_message, v, NULL, &m)) {
        for (int trusted = 0; trusted < 2; trusted++) {
            if (!dgm_direct_message_to_chat(a, &m, NULL, trusted, &list, &err))
                check_list(a, &list);
        }
        dgm_openai_messages public;
        if (!dgm_message_to_openai(&m, &public, &err))
            dgm_openai_messages_done(&public);
    }
    dgm_task t = {0};
    if (!dgm_shape_read(&r, &dgm_form_task, v, NULL, &t) &&
        !dgm_direct_task_to_chat(a, &t, NULL, true, &list, &err))
        check_list(a, &list);
    return 0;
}
