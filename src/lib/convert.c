/*
 * lib/convert.c - the converter: bytes in, frames, one format's decode, the other's encode, bytes out.
 *
 * One arena serves one input value at a time and is reset before the next, so memory follows the
 * largest value, not the stream. A value that fails leaves nothing of itself in the output.
 */
#include "base/limits.h"
#include "lib/convert_int.h"

#include <stdlib.h>

/* No target wraps what it is given in more levels than this (an envelope, a result, a wrapper, a list,
 * a part, its data twice). */
#define LEVELS_ADDED 16

DGM_DEFINE_AUTO(dgm_converter, dgm_converter_free)

/* ---- output ------------------------------------------------------------------------------------------- */

void dgm_convert_settle_framing(dgm_converter *c, bool alone, bool list)
{
    if (c->framing == DGM_FRAMING_AUTO)
        c->framing = !alone ? DGM_FRAMING_SSE : list ? DGM_FRAMING_ARRAY : DGM_FRAMING_JSON;
    else if (c->framing == DGM_FRAMING_JSON && (!alone || list))
        c->framing = DGM_FRAMING_ARRAY;
}

dgm_code dgm_convert_settle_target(dgm_converter *c, dgm_err *err)
{
    c->to = c->to ? c->to : c->from;
    c->settled = true;
    if (c->to->binary)
        c->framing = DGM_FRAMING_LINES; /* and no line ends: see convert_on_frame() */
    c->between_objects = c->to->encode && !c->as && c->compact != DGM_COMPACT_ALWAYS;
    return !c->as || dgm_codec_has(c->to, c->as)
               ? DGM_OK
               : dgm_fail(err, DGM_BAD_REQUEST, NULL, "%s has no %s: --as another form, or none",
                          c->to->name, dgm_form_word(c->as));
}

void dgm_convert_start_value(dgm_converter *c, dgm_str id, dgm_str event)
{
    if (c->framing == DGM_FRAMING_SSE)
        dgm_sse_start(&c->out, id, event);
    else if (c->framing == DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, c->n_out ? ',' : '[');
    c->n_out++;
    c->value_at = c->out.n;
}

void dgm_convert_end_value(dgm_converter *c)
{
    if (c->look_deep) {
        dgm_str value = {c->out.p + c->value_at, c->out.n - c->value_at};
        c->too_deep = c->too_deep || dgm_json_depth_fault(value) < value.n;
    }
    if (c->framing == DGM_FRAMING_SSE)
        dgm_sse_end_data(&c->out, c->value_at, true);
    else if (c->framing != DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, '\n');
}

/* ---- one value -------------------------------------------------------------------------------------------- */

static dgm_code convert_array(dgm_converter *c, const struct input *whole, dgm_reader *r)
{
    struct input in = *whole;
    yyjson_val *array = in.value;
    bool any = c->from_any;
    size_t i, n;
    dgm_code rc = DGM_OK;
    in.in_list = true;
    if (dgm_convert_message_array(c, &in, r, &rc))
        return rc;
    in.in_stream = in.in_stream || dgm_a2a_is_stream(array);
    dgm_convert_settle_framing(c, in.item->alone, true);
    if (c->compact != DGM_COMPACT_NEVER && !in.in_stream && dgm_a2a_has_chunks(array) &&
        dgm_convert_pieces(c, &in, r, &rc))
        return rc;
    c->from_any = any && (!c->from || c->from->decode);
    yyjson_arr_foreach (array, i, n, in.value) {
        in.at = DGM_AT_I(NULL, i);
        if (c->losses)
            dgm_loss_watch_below(c->losses, in.at);
        if ((rc = dgm_convert_value(c, &in, r)))
            break;
    }
    if (c->losses)
        dgm_loss_watch_below(c->losses, NULL);
    c->from_any = any;
    return rc;
}

/* One value that became one value is not a list: it is written on its own line. */
static void unlist(dgm_converter *c, size_t from)
{
    if (c->n_out != 1 || c->out.p[from] != '[')
        return;
    c->out.n--;
    memmove(c->out.p + from, c->out.p + from + 1, c->out.n - from);
    dgm_buf_add_char(&c->out, '\n');
    c->framing = DGM_FRAMING_JSON;
}

/* The output has passed a limit. */
static dgm_code fail_output(const dgm_converter *c, dgm_err *err)
{
    if (c->out.over)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "becomes more than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return dgm_fail(err, DGM_TOO_LARGE, NULL,
                    "becomes nested deeper than the limit json_depth of %d: flatten the document",
                    DGM_MAX_JSON_DEPTH);
}

static dgm_code convert_item(dgm_converter *c, const dgm_frames_item *item, dgm_err *err)
{
    dgm_code rc;
    if (item->done) { /* OpenAI's end of stream */
        if (c->stream)
            dgm_stream_done(c->stream);
        return DGM_OK;
    }
    dgm_arena_reset(c->arena);
    dgm_mint mint = dgm_mint_for(&c->mint, c->n_in, item->text);
    dgm_reader r = {.arena = c->arena, .mint = &mint, .err = err};
    struct input in = {.item = item, .kind = c->object, .in_stream = !item->alone};
    dgm_frame frame;
    /* the fast path of dgm_codec; not if the format is still to be detected, or an object was named */
    if (!c->losses && !c->from_any && !item->alone && !c->object && c->from->decode_usual &&
        c->from->decode_usual(&r, item->text, &frame))
        in.frame = &frame;
    else if ((rc = dgm_json_read(c->arena, item->text,
                                 item->alone ? DGM_MAX_OBJECT_BYTES : DGM_MAX_RECORD_BYTES,
                                 item->alone ? "object_bytes" : "record_bytes", &in.value, err)))
        return rc;
    c->n_in++;
    c->out.max = c->out.n + DGM_MAX_OUTPUT_BYTES;
    c->look_deep = c->keeps_deep ||
                   (in.value && dgm_json_deeper_than(in.value, DGM_MAX_JSON_DEPTH - LEVELS_ADDED));
    size_t before = c->out.n, n_before = c->n_out;
    if (c->losses)
        dgm_loss_watch_start(c->losses, item, in.value, &r);
    bool open = c->framing == DGM_FRAMING_AUTO || c->framing == DGM_FRAMING_JSON;
    bool array = yyjson_is_arr(in.value) && c->object != DGM_OBJECT_PUSH_CONFIG_LIST &&
                 (c->object || !dgm_codec_has_array(c->from_any ? NULL : c->from, in.value));
    rc = array ? convert_array(c, &in, &r) : dgm_convert_value(c, &in, &r);
    if (!rc && item->alone && !(rc = dgm_convert_end_stream(c, err)) && open && !array &&
        c->framing == DGM_FRAMING_ARRAY && c->over_events)
        unlist(c, before);
    if (!rc && (c->out.over || c->too_deep))
        rc = fail_output(c, err);
    if (rc) {
        c->out.n = before;
        c->n_out = n_before;
    }
    if (c->losses)
        dgm_loss_watch_end(c->losses, &r);
    c->keeps_deep = c->look_deep && c->stream;
    return rc;
}

static dgm_code convert_items(dgm_converter *c, dgm_err *err)
{
    dgm_frames_item item;
    dgm_code rc;
    while (!(rc = dgm_frames_next(&c->frames, &item, err)) && item.text.p) {
        if ((rc = convert_item(c, &item, err))) {
            if (item.guess && rc == DGM_PARSE) {
                dgm_frames_retry(&c->frames);
                continue;
            }
            if (!err->line) /* no fault of the JSON: what the pointer names has a place too */
                dgm_json_place(item.text, dgm_json_find(item.text, err->at), err);
            dgm_frames_place(&item, err);
            return rc;
        }
    }
    return rc;
}

/* Binary events become lines of JSON, and these go the way of all others. */
static dgm_code convert_binary(dgm_converter *c, dgm_str bytes, dgm_err *err)
{
    dgm_err fault = {0};
    dgm_buf_clear(&c->lines);
    dgm_code rc = dgm_agui_proto_feed(&c->proto, bytes, &c->lines, &fault), before = DGM_OK;
    if (c->lines.n) {
        dgm_frames_feed(&c->frames, c->lines.p, c->lines.n);
        before = convert_items(c, err);
    }
    dgm_buf_shrink(&c->lines, DGM_ARENA_KEEP_BYTES);
    if (rc && !before)
        *err = fault;
    return before ? before : rc;
}

/* After an error nothing more is converted: every later call returns it again. */
static dgm_code convert_failed(dgm_converter *c, dgm_err *err)
{
    c->failed = true;
    if (err)
        *err = c->err;
    return c->err.code;
}

/* ---- the handle ------------------------------------------------------------------------------------------------ */

dgm_code dgm_converter_new(const dgm_convert_options *options, dgm_converter **ret_converter,
                           dgm_err *err)
{
    dgm_convert_options o;
    dgm_code rc = ret_converter
                      ? dgm_options_copy(&o, sizeof o, options, err)
                      : dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument: ret_converter");
    if (!rc && ((unsigned)o.framing > DGM_FRAMING_SSE || (unsigned)o.as > DGM_FORM_REQUEST ||
                (unsigned)o.compact > DGM_COMPACT_ALWAYS ||
                (o.object && !*dgm_object_kind_name(o.object))))
        rc =
            dgm_fail(err, DGM_BAD_REQUEST, NULL, "unknown value of framing, as, compact or object");
    if (rc)
        return rc;
    const dgm_codec *from = o.from ? dgm_codec_by_id(o.from, err) : NULL;
    const dgm_codec *to = o.to && (from || !o.from) ? dgm_codec_by_id(o.to, err) : NULL;
    if ((o.from && !from) || (o.to && !to))
        return DGM_BAD_REQUEST;
    dgm_converter *c = dgm_xcalloc(1, sizeof *c);
    dgm_frames_init(&c->frames, o.framing == DGM_FRAMING_LINES || o.framing == DGM_FRAMING_SSE);
    dgm_buf_init(&c->out, SIZE_MAX);
    dgm_buf_init(&c->lines, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_init(&c->proto, SIZE_MAX);
    c->arena = dgm_arena_new();
    c->scratch = dgm_arena_new();
    c->from_any = !o.from;
    c->from = from;
    c->to = to;
    c->framing = o.framing;
    c->object = o.object;
    c->as = o.as;
    c->compact = o.compact;
    c->status_is_answer = o.status_is_answer;
    c->losses = o.losses ? dgm_loss_watch_new() : NULL;
    dgm_mint_seed(&c->mint, dgm_str_from(o.seed ? o.seed : ""));
    if ((c->from || c->to) && (rc = dgm_convert_settle_target(c, err)))
        dgm_converter_free(c);
    else
        *ret_converter = c;
    return rc;
}

void dgm_converter_free(dgm_converter *c)
{
    if (!c)
        return;
    dgm_stream_free(c->stream);
    if (c->losses) {
        dgm_loss_writing_free(c->loss_writing);
        dgm_loss_watch_free(c->losses);
    }
    dgm_frames_done(&c->frames);
    dgm_buf_done(&c->proto);
    dgm_buf_done(&c->lines);
    dgm_buf_done(&c->out);
    dgm_arena_free(c->arena);
    dgm_arena_free(c->scratch);
    free(c);
}

dgm_code dgm_converter_feed(dgm_converter *c, const char *bytes, size_t n, dgm_err *err)
{
    if (!c || (!bytes && n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    dgm_code rc = DGM_OK;
    if (c->failed || !n)
        return c->failed ? convert_failed(c, err) : DGM_OK;
    if (!c->fed) {
        c->binary = !*bytes && (c->from_any || c->from->binary);
        c->frames.stream_at_once |= c->binary;
        c->fed = true;
    }
    if (c->binary) {
        rc = convert_binary(c, (dgm_str){bytes, n}, &c->err);
    } else {
        dgm_frames_feed(&c->frames, bytes, n);
        rc = convert_items(c, &c->err);
    }
    return rc ? convert_failed(c, err) : DGM_OK;
}

dgm_code dgm_converter_end(dgm_converter *c, dgm_err *err)
{
    if (!c)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if (c->failed)
        return convert_failed(c, err);
    dgm_frames_end(&c->frames);
    dgm_code rc = convert_items(c, &c->err);
    if (!rc && c->proto.n)
        rc = dgm_fail(&c->err, DGM_PARSE, NULL,
                      "the last binary event is cut short: %zu bytes of it are there", c->proto.n);
    c->out.max = c->out.n + DGM_MAX_OUTPUT_BYTES;
    if (!rc && !(rc = dgm_convert_end_stream(c, &c->err)) && (c->out.over || c->too_deep))
        rc = fail_output(c, &c->err);
    if (!rc && !c->n_in && dgm_frames_what(&c->frames) != DGM_FRAMES_SSE)
        rc = dgm_fail(&c->err, DGM_PARSE, NULL, "expected JSON or server-sent events, got nothing");
    if (rc)
        return convert_failed(c, err);
    const char *mark = c->to && c->stream_written ? c->to->stream_end : NULL;
    if (c->framing == DGM_FRAMING_SSE && mark)
        dgm_sse_put(&c->out, (dgm_str){0}, (dgm_str){0}, dgm_str_from(mark));
    if (c->framing == DGM_FRAMING_ARRAY) {
        if (!c->n_out)
            dgm_buf_add_char(&c->out, '[');
        dgm_buf_add_lit(&c->out, "]\n");
    }
    return DGM_OK;
}

dgm_code dgm_converter_feed_all(dgm_converter *c, const char *bytes, size_t n, dgm_err *err)
{
    if (c)
        c->frames.is_all = !c->fed;
    dgm_code rc = dgm_converter_feed(c, bytes, n, err);
    return rc ? rc : dgm_converter_end(c, err);
}

dgm_str dgm_converter_output(const dgm_converter *c)
{
    return c ? dgm_buf_str(&c->out) : (dgm_str){0};
}

size_t dgm_converter_loss_count(const dgm_converter *c)
{
    const dgm_loss_seen *rows;
    return c && c->losses ? dgm_loss_watch_seen(c->losses, &rows) : 0;
}

const dgm_loss_seen *dgm_converter_loss_at(const dgm_converter *c, size_t index)
{
    const dgm_loss_seen *rows;
    return c && c->losses && index < dgm_loss_watch_seen(c->losses, &rows) ? &rows[index] : NULL;
}

void dgm_converter_consume(dgm_converter *c, size_t n)
{
    if (!c)
        return;
    dgm_buf_drop_front(&c->out, n < c->out.n ? n : c->out.n);
    /* One large event must not stay in memory for the rest of the stream. */
    if (!c->out.n)
        dgm_buf_shrink(&c->out, DGM_ARENA_KEEP_BYTES);
}

dgm_code dgm_convert(const dgm_convert_options *options, const char *text, size_t n,
                     char **ret_text, size_t *ret_n, dgm_err *err)
{
    dgm_auto(dgm_converter_free) dgm_converter *c = NULL;
    dgm_code rc;
    if (!ret_text)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument: ret_text");
    if ((rc = dgm_converter_new(options, &c, err)) ||
        (rc = dgm_converter_feed_all(c, text, n, err)))
        return rc;
    c->out.max = SIZE_MAX;
    *ret_text = dgm_buf_steal(&c->out, ret_n);
    return DGM_OK;
}
