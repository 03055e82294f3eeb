/*
 * test_chat_codec.h - records to chunks, values to canonical events, as texts that can be compared.
 *
 * Of a chunk of run t1 only the variable members are shown: the delta and the members after it.
 */
#pragma once

#include "base/limits.h"
#include "canon/records_to_events.h"
#include "canon/test_dump.h"
#include "support/check.h"
#include "wire/chat/chat_codec.h"

#define CHAT (&dgm_codec_openai_chat)
#define HEAD                                                                                       \
    "{\"id\":\"chatcmpl-t1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"         \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":"
#define TAIL ",\"finish_reason\":null}]}"

/* A dgm_frame_sink's; arg is a dgm_buf. */
static inline dgm_code put_frame(void *arg, dgm_str name, dgm_str payload)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    yyjson_val *v;
    assert_int_equal(name.n, 0);
    check_ok(dgm_json_read(a, payload, DGM_MAX_OUTPUT_BYTES, "", &v, &err), err);
    if (dgm_str_starts(payload, DGM_STR(HEAD))) {
        payload = (dgm_str){payload.p + sizeof HEAD - 1, payload.n - (sizeof HEAD - 1)};
        size_t tail = sizeof TAIL - 1;
        if (payload.n > tail && memcmp(payload.p + payload.n - tail, TAIL, tail) == 0)
            payload.n -= tail;
    }
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

struct encoding {
    void *encoder;
    dgm_err err;
};

static inline dgm_code encode_one(void *arg, const dgm_canon_event *event)
{
    struct encoding *k = arg;
    return CHAT->encoder_feed(k->encoder, event, &k->err);
}

/* Records, one in a line. */
static inline void encode_records(dgm_stream_params params, const char *lines, dgm_buf *out)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from = dgm_records_to_events_new(
        &(dgm_records_params){.fragment = params.fragment, .many_turns = true});
    struct encoding k = {0};
    dgm_canon_sink sink = {encode_one, &k};
    dgm_mint mint = {0};
    if (!params.model.p)
        params.model = DGM_STR("m");
    if (!params.now)
        params.now = 1700000000999;
    k.encoder = CHAT->encoder_new(&params, (dgm_frame_sink){put_frame, out});
    while (*lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        size_t n = strcspn(lines, "\n");
        dgm_event event;
        read_record(a, &mint, (dgm_str){lines, n}, &event);
        check_ok(dgm_records_to_events_feed(from, &event, sink, &k.err), k.err);
        lines += n + (lines[n] == '\n');
    }
    check_ok(dgm_records_to_events_end(from, sink, &k.err), k.err);
    check_ok(CHAT->encoder_end(k.encoder, &k.err), k.err);
    CHAT->encoder_free(k.encoder);
}

static inline void check_encode(dgm_stream_params params, const char *lines, const char *want)
{
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(params, lines, &out);
    check_str(out, want);
    dgm_buf_done(&out);
}

/* Values, one in a line; the sink is any. */
static inline dgm_code decode_values(void *decoder, const char *lines, dgm_canon_sink sink,
                                     dgm_err *err, size_t *ret_unknown)
{
    dgm_code rc = DGM_OK;
    while (!rc && *lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .err = err};
        size_t n = strcspn(lines, "\n");
        yyjson_val *v;
        check_ok(dgm_json_read(a, (dgm_str){lines, n}, DGM_MAX_OBJECT_BYTES, "", &v, err), *err);
        rc = CHAT->decoder_feed(decoder, &r, v, sink);
        *ret_unknown += r.n_unknown;
        lines += n + (lines[n] == '\n');
    }
    return rc;
}

static inline void check_decode(dgm_stream_params params, const char *lines, const char *want)
{
    struct dump d;
    dgm_err err = {0};
    size_t unknown = 0;
    dgm_buf_init(&d.b, SIZE_MAX);
    void *decoder = CHAT->decoder_new(&params);
    dgm_canon_sink sink = {dump_event, &d};
    check_ok(decode_values(decoder, lines, sink, &err, &unknown), err);
    check_ok(CHAT->decoder_end(decoder, sink, &err), err);
    CHAT->decoder_free(decoder);
    check_str(d.b, want);
    dgm_buf_done(&d.b);
}
