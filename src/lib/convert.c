/*
 * lib/convert.c - the converter: bytes in, frames, one format's decode, the other's encode, bytes out.
 *
 * One arena serves one input value at a time and is reset before the next, so memory follows the
 * largest value, not the stream. A value that fails leaves nothing of itself in the output.
 */
#include "base/limits.h"
#include "lib/direct.h"
#include "lib/formats.h"
#include "wire/a2a/a2a.h"
#include "wire/frames/frames.h"

#include <stdlib.h>

/* No target wraps what it is given in more levels than this (an envelope, a result, a wrapper, a list,
 * a part, its data twice). */
#define LEVELS_ADDED 16

struct dgm_converter {
    const dgm_format *from; /* as asked for, or as told by the input so far */
    const dgm_format *to;
    bool from_any;
    dgm_framing framing; /* as asked for; AUTO until the first value shows what the input is */
    dgm_object_kind object;
    dgm_mint mint; /* holds the seed */
    dgm_frames frames;
    dgm_arena *arena;
    dgm_buf out;
    size_t n_in, n_out;
    size_t value_at; /* where in out the value being written starts */
    bool look_deep;  /* the input nests so deep that the output might be too deep to be read */
    bool too_deep;   /* and it is */
    bool failed;
    dgm_err err; /* that made it fail */
};

DGM_DEFINE_AUTO(dgm_converter, dgm_converter_free)

/* ---- output ------------------------------------------------------------------------------------------- */

/* What the output is, once the first value has shown what the input is. */
static void settle_framing(dgm_converter *c, const dgm_frames_item *item, bool list)
{
    if (c->framing == DGM_FRAMING_AUTO)
        c->framing = !item->alone ? DGM_FRAMING_SSE : list ? DGM_FRAMING_ARRAY : DGM_FRAMING_JSON;
    else if (c->framing == DGM_FRAMING_JSON && (!item->alone || list))
        c->framing = DGM_FRAMING_ARRAY;
}

static void begin_event(dgm_converter *c, const dgm_frames_item *item)
{
    if (item->sse_id.p) {
        dgm_buf_add_lit(&c->out, "id: ");
        dgm_buf_add_str(&c->out, item->sse_id);
        dgm_buf_add_char(&c->out, '\n');
    }
    /* A2A names no events but the error that ends a stream. */
    if (dgm_str_is(item->sse_event, "error") && c->to->a2a)
        dgm_buf_add_lit(&c->out, "event: error\n");
    dgm_buf_add_lit(&c->out, "data: ");
}

static inline void begin_value(dgm_converter *c, const dgm_frames_item *item)
{
    if (c->framing == DGM_FRAMING_SSE)
        begin_event(c, item);
    else if (c->framing == DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, c->n_out ? ',' : '[');
    c->n_out++;
    c->value_at = c->out.n;
}

static void look_deep(dgm_converter *c)
{
    dgm_str value = {c->out.p + c->value_at, c->out.n - c->value_at};
    c->too_deep = c->too_deep || dgm_json_depth_fault(value) < value.n;
}

static inline void end_value(dgm_converter *c)
{
    if (c->look_deep)
        look_deep(c);
    if (c->framing == DGM_FRAMING_SSE) {
        dgm_sse_escape_line_ends(&c->out, c->value_at);
        dgm_buf_add_lit(&c->out, "\n\n");
    } else if (c->framing != DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, '\n');
}

static void end_output(dgm_converter *c)
{
    if (c->framing != DGM_FRAMING_ARRAY)
        return;
    if (!c->n_out)
        dgm_buf_add_char(&c->out, '[');
    dgm_buf_add_lit(&c->out, "]\n");
}

/* ---- one value -------------------------------------------------------------------------------------------- */

struct input {
    const dgm_frames_item *item;
    yyjson_val *value;
    const dgm_at *at; /* of value within the text */
    dgm_object_kind kind;
    bool in_stream;
    bool in_list; /* an element of an array: the output is an array whatever it becomes */
};

static inline dgm_code write_a2a(dgm_converter *c, const struct input *in, const dgm_frame *frame,
                                 dgm_err *err)
{
    /* The observability of agents is for nobody's eyes but ours. */
    if (frame->object.kind == DGM_OBJECT_INTERNAL_EVENT) {
        settle_framing(c, in->item, true);
        return DGM_OK;
    }
    settle_framing(c, in->item, in->in_list);
    begin_value(c, in->item);
    dgm_writer w = {.out = &c->out};
    dgm_code rc = c->to->a2a->encode(&w, frame, err);
    end_value(c);
    return rc;
}

static void write_chat(dgm_converter *c, const struct input *in, const dgm_chat_messages *messages,
                       bool list)
{
    settle_framing(c, in->item, list || in->in_list || messages->n != 1);
    for (size_t i = 0; i < messages->n; i++) {
        begin_value(c, in->item);
        dgm_writer w = {.out = &c->out, .format = dgm_chat_name};
        dgm_chat_write(&w, &messages->at[i]);
        end_value(c);
    }
}

static dgm_code convert_from_chat(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    dgm_chat_messages messages;
    dgm_code rc;
    if ((rc = dgm_chat_read(r, in->value, in->at, &messages)))
        return rc;
    bool list = !dgm_chat_is_message(in->value);
    if (!c->to->a2a) {
        write_chat(c, in, &messages, list);
        return DGM_OK;
    }
    struct input each = *in;
    each.in_list = in->in_list || list;
    if (!messages.n)
        settle_framing(c, in->item, true);
    for (size_t i = 0; i < messages.n; i++) {
        dgm_message m = {0};
        dgm_direct_from_chat(r->arena, &messages.at[i], r->mint, &m);
        dgm_frame frame = {.object = {DGM_OBJECT_MESSAGE, &m}};
        if ((rc = write_a2a(c, &each, &frame, r->err)))
            return rc;
    }
    return DGM_OK;
}

static dgm_code convert_from_a2a(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    dgm_frame frame;
    dgm_code rc = c->from->a2a->decode(r, in->value, in->kind, in->in_stream, &frame);
    if (rc)
        return rc;
    if (c->to->a2a)
        return write_a2a(c, in, &frame, r->err);
    dgm_chat_messages messages;
    bool list;
    dgm_direct_spelling spelling = c->from->a2a == &dgm_codec_a2a_10   ? DGM_DIRECT_WRAPPED
                                   : c->from->a2a == &dgm_codec_a2a_03 ? DGM_DIRECT_BARE
                                                                       : DGM_DIRECT_REST;
    const dgm_at *at = frame.envelope == DGM_ENVELOPE_NONE      ? NULL
                       : frame.envelope == DGM_ENVELOPE_REQUEST ? DGM_AT_LIT(NULL, "params")
                                                                : DGM_AT_LIT(NULL, "result");
    if ((rc = dgm_direct_object_to_chat(r->arena, &frame.object, at, spelling, true, &messages,
                                        &list, r->err)))
        return rc;
    write_chat(c, in, &messages, list);
    return DGM_OK;
}

/* Pointers in errors are relative to the element; the element's own step goes in front. */
static void prefix_pointer(const dgm_at *at, dgm_err *err)
{
    char step[sizeof err->at], rest[sizeof err->at];
    dgm_at_text(at, step, sizeof step);
    memcpy(rest, err->at, sizeof rest);
    size_t n = strlen(step), m = strlen(rest);
    if (n + m >= sizeof err->at)
        m = sizeof err->at - 1 - n;
    memcpy(err->at, step, n);
    memcpy(err->at + n, rest, m);
    err->at[n + m] = 0;
}

static dgm_code convert_value(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    if (c->from_any) {
        const dgm_format *found = dgm_format_recognise(in->value, c->from);
        if (!found)
            return dgm_fail(r->err, DGM_BAD_PARAMS, in->at,
                            "cannot tell which format this is: name it (--from)");
        c->from = found;
    }
    dgm_code rc;
    if (!c->from->a2a)
        return convert_from_chat(c, in, r);
    if ((rc = convert_from_a2a(c, in, r)) && in->at && r->err)
        prefix_pointer(in->at, r->err);
    return rc;
}

/* 0.3 answers tasks/pushNotificationConfig/list with a bare array: that is one object. */
static bool is_push_list(const dgm_converter *c, yyjson_val *v)
{
    yyjson_val *e;
    size_t i, n;
    if (c->object == DGM_OBJECT_PUSH_CONFIG_LIST)
        return true;
    if (c->object || !(c->from_any || c->from->a2a) || yyjson_arr_size(v) == 0)
        return false;
    yyjson_arr_foreach (v, i, n, e) {
        if (!yyjson_is_obj(dgm_json_get(e, DGM_STR("pushNotificationConfig"))) ||
            dgm_json_get(e, DGM_STR("name")))
            return false;
    }
    return true;
}

/* An array that holds an update is a stream written down: its tasks and messages are events too. */
static bool holds_updates(yyjson_val *v)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (v, i, n, e) {
        yyjson_val *kind = dgm_json_get(e, DGM_STR("kind"));
        if (yyjson_is_str(kind) && (dgm_str_is(dgm_json_str(kind), "status-update") ||
                                    dgm_str_is(dgm_json_str(kind), "artifact-update")))
            return true;
    }
    return false;
}

static dgm_code convert_array(dgm_converter *c, struct input in, dgm_reader *r)
{
    yyjson_val *array = in.value;
    size_t i, n;
    dgm_code rc;
    in.in_list = true;
    in.in_stream = in.in_stream || holds_updates(array);
    settle_framing(c, in.item, true);
    yyjson_arr_foreach (array, i, n, in.value) {
        in.at = DGM_AT_I(NULL, i);
        if ((rc = convert_value(c, &in, r)))
            return rc;
    }
    return DGM_OK;
}

static dgm_code convert_item(dgm_converter *c, const dgm_frames_item *item, dgm_err *err)
{
    dgm_code rc;
    yyjson_val *value;
    if (item->done)
        return DGM_OK; /* OpenAI's end of stream */
    dgm_arena_reset(c->arena);
    if ((rc = dgm_json_read(c->arena, item->text,
                            item->alone ? DGM_MAX_OBJECT_BYTES : DGM_MAX_RECORD_BYTES,
                            item->alone ? "object_bytes" : "record_bytes", &value, err)))
        return rc;
    dgm_mint mint = dgm_mint_for(&c->mint, c->n_in++, item->text);
    dgm_reader r = {.arena = c->arena, .mint = &mint, .err = err};
    struct input in = {.item = item, .value = value, .kind = c->object, .in_stream = !item->alone};
    c->out.max = c->out.n + DGM_MAX_OUTPUT_BYTES;
    c->look_deep = dgm_json_deeper_than(value, DGM_MAX_JSON_DEPTH - LEVELS_ADDED);
    size_t before = c->out.n, n_before = c->n_out;
    if (yyjson_is_arr(value) && !is_push_list(c, value))
        rc = convert_array(c, in, &r);
    else
        rc = convert_value(c, &in, &r);
    if (!rc && c->out.over)
        rc = dgm_fail(err, DGM_TOO_LARGE, NULL, "becomes more than the limit output_bytes of %zu",
                      DGM_MAX_OUTPUT_BYTES);
    if (!rc && c->too_deep)
        rc = dgm_fail(err, DGM_TOO_LARGE, NULL,
                      "becomes nested deeper than the limit json_depth of %d: flatten the document",
                      DGM_MAX_JSON_DEPTH);
    if (rc) {
        c->out.n = before;
        c->n_out = n_before;
    }
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

/* After a fault nothing more is converted: every later call repeats it. */
static dgm_code guarded(dgm_converter *c, dgm_code rc, dgm_err *err)
{
    c->failed = c->failed || rc;
    if (c->failed && err)
        *err = c->err;
    return c->failed ? c->err.code : DGM_OK;
}

/* ---- the handle ------------------------------------------------------------------------------------------------ */

dgm_code dgm_converter_new(const dgm_convert_options *options, dgm_converter **ret_converter,
                           dgm_err *err)
{
    dgm_auto(dgm_converter_free) dgm_converter *c = dgm_xcalloc(1, sizeof *c);
    dgm_frames_init(&c->frames,
                    options->framing == DGM_FRAMING_LINES || options->framing == DGM_FRAMING_SSE);
    dgm_buf_init(&c->out, SIZE_MAX);
    c->arena = dgm_arena_new();
    c->from_any = !options->from || strcmp(options->from, "auto") == 0;
    if ((!c->from_any && !(c->from = dgm_format_by_name(options->from, err))) ||
        !(c->to = dgm_format_by_name(options->to, err)))
        return DGM_BAD_REQUEST;
    c->framing = options->framing;
    c->object = options->object;
    dgm_mint_stir(&c->mint, dgm_str_from(options->seed ? options->seed : ""));
    *ret_converter = dgm_take(c);
    return DGM_OK;
}

void dgm_converter_free(dgm_converter *c)
{
    if (!c)
        return;
    dgm_frames_done(&c->frames);
    dgm_buf_done(&c->out);
    dgm_arena_free(c->arena);
    free(c);
}

dgm_code dgm_converter_feed(dgm_converter *c, const char *bytes, size_t n, dgm_err *err)
{
    if (c->failed || !n)
        return guarded(c, DGM_OK, err);
    dgm_frames_feed(&c->frames, bytes, n);
    return guarded(c, convert_items(c, &c->err), err);
}

dgm_code dgm_converter_end(dgm_converter *c, dgm_err *err)
{
    if (c->failed)
        return guarded(c, DGM_OK, err);
    dgm_frames_end(&c->frames);
    dgm_code rc = convert_items(c, &c->err);
    if (!rc && !c->n_in && dgm_frames_what(&c->frames) != DGM_FRAMES_SSE)
        rc = dgm_fail(&c->err, DGM_PARSE, NULL, "expected JSON or server-sent events, got nothing");
    if (!rc)
        end_output(c);
    return guarded(c, rc, err);
}

dgm_str dgm_converter_output(const dgm_converter *c)
{
    return dgm_buf_str(&c->out);
}

void dgm_converter_taken(dgm_converter *c, size_t n)
{
    dgm_buf_drop_front(&c->out, n);
    /* One large event must not stay in memory for the rest of the stream. */
    if (!c->out.n)
        dgm_buf_shrink(&c->out, DGM_ARENA_KEEP_BYTES);
}

dgm_code dgm_convert(const dgm_convert_options *options, const char *text, size_t n,
                     char **ret_text, size_t *ret_n, dgm_err *err)
{
    dgm_auto(dgm_converter_free) dgm_converter *c = NULL;
    dgm_code rc;
    if ((rc = dgm_converter_new(options, &c, err)) || (rc = dgm_converter_feed(c, text, n, err)) ||
        (rc = dgm_converter_end(c, err)))
        return rc;
    c->out.max = SIZE_MAX;
    *ret_text = dgm_buf_steal(&c->out, ret_n);
    return DGM_OK;
}
