/*
 * wire/test_codec.h - for tests of codecs: records of A2A in, frames out, and back to the content.
 */
#pragma once

#include "base/map.h"
#include "canon/events_to_messages.h"
#include "canon/records_to_events.h"
#include "canon/test_dump.h"
#include "wire/codec.h"

/* ---- frames as lines ------------------------------------------------------------------------------------- */

static inline dgm_code put_line(void *arg, dgm_str name, dgm_str payload)
{
    (void)name;
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

struct codec_path {
    const dgm_codec *to;
    void *encoder;
    dgm_canon_fold *fold;                /* the messages of the events */
    dgm_arena *arena;                    /* may be NULL: n_again is not counted */
    size_t n_snapshots, n_ends, n_again; /* again: texts that go on after their end */
    size_t n_early;                      /* results before their calls */
    dgm_map texts, calls;
    dgm_err err;
};

static inline dgm_code codec_path_write(void *arg, const dgm_canon_event *e)
{
    struct codec_path *path = arg;
    if (path->fold)
        dgm_canon_fold_add(path->fold, e);
    if (e->kind == DGM_CANON_TEXT_MESSAGE_START && path->arena) {
        path->n_again += dgm_map_get(&path->texts, e->text.message_id) != NULL;
        dgm_map_put(&path->texts, dgm_arena_dup(path->arena, e->text.message_id), 0);
    }
    if (e->kind == DGM_CANON_TOOL_CALL_START && path->arena)
        dgm_map_put(&path->calls, dgm_arena_dup(path->arena, e->call.tool_call_id), 0);
    if (e->kind == DGM_CANON_TOOL_CALL_RESULT)
        path->n_early += !dgm_map_get(&path->calls, e->result.tool_call_id);
    path->n_snapshots += e->kind == DGM_CANON_MESSAGES_SNAPSHOT;
    path->n_ends += dgm_canon_is_terminal(e->kind);
    return path->encoder ? path->to->encoder_feed(path->encoder, e, &path->err) : DGM_OK;
}

/* Records, a line each, as lines of the format. */
static inline void encode_records(const dgm_codec *to, const dgm_stream_params *params,
                                  const dgm_records_params *from, const char *records, dgm_buf *out)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(from);
    struct codec_path path = {.to = to,
                              .encoder = to->encoder_new(params, (dgm_frame_sink){put_line, out})};
    dgm_canon_sink sink = {codec_path_write, &path};
    dgm_mint mint = {.count = 0};
    while (*records) {
        size_t n = strcspn(records, "\n");
        dgm_event event;
        read_record(a, &mint, (dgm_str){records, n}, &event);
        check_ok(dgm_records_to_events_feed(f, &event, sink, &path.err), path.err);
        records += n + (records[n] == '\n');
    }
    check_ok(dgm_records_to_events_end(f, sink, &path.err), path.err);
    check_ok(to->encoder_end(path.encoder, &path.err), path.err);
    to->encoder_free(path.encoder);
}

/* Lines of the format to a sink. */
static inline dgm_code decode_lines(const dgm_codec *from, const dgm_stream_params *params,
                                    dgm_str lines, dgm_canon_sink sink, dgm_err *err)
{
    void *decoder = from->decoder_new(params);
    dgm_code rc = DGM_OK;
    while (!rc && lines.n) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .format = from->format, .err = err};
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t n = end ? (size_t)(end - lines.p) : lines.n;
        yyjson_val *v;
        check_ok(dgm_json_read(a, (dgm_str){lines.p, n}, SIZE_MAX, "", &v, err), *err);
        rc = from->decoder_feed(decoder, &r, v, sink);
        n += end != NULL;
        lines = (dgm_str){lines.p + n, lines.n - n};
    }
    if (!rc)
        rc = from->decoder_end(decoder, sink, err);
    from->decoder_free(decoder);
    return rc;
}

/* ---- messages and requests ------------------------------------------------------------------------------- */

/* One message or a list through canonical messages; lines come out. */
static inline dgm_code convert_messages(const dgm_codec *from, const dgm_codec *to,
                                        const char *text, dgm_buf *out, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .format = from->format, .mint = &mint, .err = err};
    dgm_stream_params params = {0};
    dgm_canon_messages messages;
    yyjson_val *v;
    dgm_code rc;
    check_ok(dgm_json_read(a, dgm_str_from(text), SIZE_MAX, "", &v, err), *err);
    if ((rc = from->read_messages(&r, v, NULL, &messages)))
        return rc;
    return to->write_messages(&messages, &params, (dgm_frame_sink){put_line, out}, err);
}

static inline dgm_code dump_messages_of(const dgm_codec *from, const char *text, dgm_buf *out,
                                        dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .format = from->format, .mint = &mint, .err = err};
    dgm_canon_messages messages;
    yyjson_val *v;
    dgm_code rc;
    check_ok(dgm_json_read(a, dgm_str_from(text), SIZE_MAX, "", &v, err), *err);
    if (!(rc = from->read_messages(&r, v, NULL, &messages)))
        dump_messages(out, &messages);
    return rc;
}
