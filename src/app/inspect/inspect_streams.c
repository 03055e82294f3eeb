/*
 * app/inspect/inspect_streams.c - POST /debug/streams: a recorded stream, shown as the log of a task is.
 *
 *   body ─► wire/frames ─► values ─┬─► as they are, with numbers        /debug/streams
 *                                  ├─► the converter, value by value    /debug/streams/columns/{format}
 *                                  ├─► lint                             /debug/streams/findings
 *                                  └─► A2A 1.0 ─► the fold              /debug/streams/fold
 *
 * Nothing is stored. From lines of GET /debug/tasks/{id}/records the records are read. Work is done in steps, so that it
 * does not block the loop.
 */
#include "app/inspect/inspect_int.h"
#include "base/limits.h"
#include "model/fold.h"
#include "model/form.h"
#include "wire/formats.h"
#include "wire/frames/frames.h"
#include "json/json.h"

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */
#define STEP_VALUES 512
#define STEP_BYTES ((size_t)512 << 10)

/* One value of the stream. Valid until the next one. */
struct recorded {
    uint64_t seq;
    dgm_str text;      /* its JSON, or "[DONE]" */
    dgm_str id, event; /* of its server-sent event; absent: none */
    dgm_str
        raw; /* of a server-sent event: its bytes and those before it; absent: another framing */
    dgm_str time;            /* of an exported record; absent: not known */
    const yyjson_val *value; /* NULL: it is not JSON */
    const char *error;       /* why not */
};

/* Lives as long as the exchange. */
struct playing {
    dgm_front_request q;
    dgm_http_exchange *x;
    enum inspect_mode mode;
    dgm_str body;
    bool is_ended; /* frames knows that the body has ended */
    dgm_frames frames;
    size_t raw_at;    /* in the body: behind the last server-sent event */
    dgm_arena *arena; /* of one value */
    dgm_arena *whole; /* of an array that is the body; NULL: it is not one */
    yyjson_arr_iter elements;
    dgm_buf text; /* of a value that was taken out of another */
    dgm_err err;
    uint64_t seq;
    dgm_format_id from; /* NONE: not detected yet */
    bool is_any;        /* it is to be detected */
    dgm_format_id to;
    dgm_converter *converter;
    struct inspect_losses losses;
    struct inspect_lint lint;
    dgm_fold *fold;
    uint64_t last; /* of the fold */
    bool is_posted, has_begun, has_left, is_over;
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A line of our own export, with the record in it. */
static void playing_open_export(struct playing *p, struct recorded *v)
{
    yyjson_val *record = dgm_json_get(v->value, DGM_STR("record"));
    if (!record || !dgm_json_get(v->value, DGM_STR("seq")))
        return;
    v->time = dgm_json_str_member(v->value, "time");
    v->value = record;
    dgm_buf_clear(&p->text);
    dgm_json_put(&p->text, record);
    v->text = dgm_buf_str(&p->text);
}

static bool playing_next_element(struct playing *p, struct recorded *v)
{
    yyjson_val *e = yyjson_arr_iter_next(&p->elements);
    if (!e)
        return false;
    dgm_buf_clear(&p->text);
    dgm_json_put(&p->text, e);
    *v = (struct recorded){.seq = ++p->seq, .text = dgm_buf_str(&p->text), .value = e};
    playing_open_export(p, v);
    return true;
}

/* The bytes of the body up to the end of this event. */
static dgm_str playing_raw(struct playing *p)
{
    size_t from = p->raw_at;
    if (dgm_frames_what(&p->frames) != DGM_FRAMES_SSE || p->frames.sse.in < p->body.p ||
        p->frames.sse.in > p->body.p + p->body.n)
        return (dgm_str){0};
    p->raw_at = (size_t)(p->frames.sse.in - p->body.p) + p->frames.sse.pos;
    return (dgm_str){p->body.p + from, p->raw_at - from};
}

/* False: a line was taken for one value, and is not. */
static bool playing_read(struct playing *p, const dgm_frames_item *item, struct recorded *v)
{
    size_t most = item->alone ? DGM_MAX_OBJECT_BYTES : DGM_MAX_RECORD_BYTES;
    dgm_arena *a = p->arena;
    yyjson_val *value = NULL;
    *v = (struct recorded){
        .text = item->text, .id = item->sse_id, .event = item->sse_event, .raw = playing_raw(p)};
    if (item->done)
        return true;
    p->err = (dgm_err){0};
    if (item->alone &&
        dgm_json_count_values(item->text, DGM_MAX_JSON_VALUES) > DGM_MAX_JSON_VALUES) {
        v->error =
            "the array has more values than the limit json_values: send its elements as lines";
        return true;
    }
    if (item->alone)
        a = p->whole = dgm_arena_new();
    dgm_code rc = dgm_json_read(a, item->text, most, item->alone ? "object_bytes" : "record_bytes",
                                &value, &p->err);
    if (rc == DGM_PARSE && item->guess)
        return false;
    v->value = value;
    v->error = rc ? p->err.msg : NULL;
    return true;
}

/* False: there are no more. */
static bool playing_next(struct playing *p, struct recorded *v)
{
    dgm_frames_item item;
    if (p->elements.max)
        return playing_next_element(p, v);
    dgm_arena_reset(p->arena);
    for (;;) {
        p->err = (dgm_err){0};
        if (dgm_frames_next(&p->frames, &item, &p->err)) {
            if (p->is_over)
                return false;
            p->is_over = true; /* a value is too large: nothing behind it can be found */
            *v = (struct recorded){.seq = ++p->seq, .error = p->err.msg};
            return true;
        }
        if (item.text.p) {
            if (playing_read(p, &item, v))
                break;
            dgm_frames_retry(&p->frames);
        } else if (!p->is_ended) {
            p->is_ended = true;
            dgm_frames_end(&p->frames);
        } else {
            return false;
        }
    }
    if (p->whole && yyjson_is_arr((yyjson_val *)(uintptr_t)v->value)) {
        yyjson_arr_iter_init((yyjson_val *)(uintptr_t)v->value, &p->elements);
        return p->elements.max && playing_next_element(p, v);
    }
    v->seq = ++p->seq;
    playing_open_export(p, v);
    return true;
}

static const char *playing_framing(const struct playing *p)
{
    dgm_frames_kind kind = dgm_frames_what(&p->frames);
    return kind == DGM_FRAMES_SSE ? "sse" : p->elements.max ? "array" : p->whole ? "json" : "lines";
}

/* As it was framed. Arrays become lines. */
static void playing_put_framed(const struct playing *p, const struct recorded *v, dgm_buf *out)
{
    if (dgm_frames_what(&p->frames) == DGM_FRAMES_SSE) {
        dgm_sse_put(out, v->id, v->event, v->text);
    } else {
        dgm_buf_add_str(out, v->text);
        dgm_buf_add_char(out, '\n');
    }
}

static void playing_detect(struct playing *p, const struct recorded *v)
{
    const dgm_codec *codec;
    if (p->is_any && v->value && !p->from && (codec = dgm_codec_detect(v->value, NULL, NULL)))
        p->from = dgm_format_id_by_name(codec->name);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void playing_put_record(struct playing *p, const struct recorded *v, dgm_buf *out)
{
    if (v->seq == 1) {
        dgm_buf_add_lit(out, "{\"format\":");
        if (p->from)
            dgm_json_put_str(out, dgm_str_from(dgm_format_id_name(p->from)));
        else
            dgm_buf_add_lit(out, "null");
        dgm_buf_printf(out, ",\"framing\":\"%s\",\"records\":[", playing_framing(p));
    } else {
        dgm_buf_add_char(out, ',');
    }
    dgm_buf_printf(out, "{\"seq\":%llu", (unsigned long long)v->seq);
    if (v->time.n) {
        dgm_buf_add_lit(out, ",\"time\":");
        dgm_json_put_str(out, v->time);
    }
    if (v->value) {
        dgm_buf_add_lit(out, ",\"record\":");
        dgm_buf_add_str(out, v->text);
    } else if (v->error) {
        dgm_str start = {v->text.p,
                         v->text.n < DGM_MAX_QUOTED_BYTES ? v->text.n : DGM_MAX_QUOTED_BYTES};
        dgm_buf_add_lit(out, ",\"record\":null,\"error\":");
        dgm_json_put_str(out, dgm_str_from(v->error));
        dgm_buf_add_lit(out, ",\"text\":");
        dgm_json_put_str(out, (dgm_str){start.p, dgm_utf8_check(start)});
    } else { /* the mark that ends OpenAI's streams */
        dgm_buf_add_lit(out, ",\"record\":");
        dgm_json_put_str(out, v->text);
    }
    dgm_buf_add_char(out, '}');
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* False: the conversion has failed. */
static bool playing_convert(struct playing *p, const struct recorded *v, dgm_framing framing)
{
    dgm_convert_options o = {.size = sizeof o,
                             .from = p->from,
                             .to = p->to,
                             .framing = framing,
                             .losses = p->mode == INSPECT_COLUMN};
    dgm_buf bytes;
    if (v->seq == 1 && dgm_converter_new(&o, &p->converter, &p->err))
        return false;
    if (!p->converter)
        return true; /* it has failed before */
    if (v->error) {
        if (v->error != p->err.msg) /* p->err has it already */
            dgm_fail(&p->err, DGM_PARSE, NULL, "%s", v->error);
        return false;
    }
    dgm_buf_init(&bytes, SIZE_MAX); /* a value has a limit */
    playing_put_framed(p, v, &bytes);
    dgm_code rc = dgm_converter_feed(p->converter, bytes.p, bytes.n, &p->err);
    dgm_buf_done(&bytes);
    return !rc;
}

static void playing_drop_converter(struct playing *p)
{
    dgm_converter_free(dgm_take(p->converter));
}

static void playing_put_frames(struct playing *p, const struct recorded *v, dgm_buf *out)
{
    if (p->from == p->to) { /* the stream itself */
        dgm_buf framed;
        dgm_buf_init(&framed, SIZE_MAX);
        if (v->text.p && !v->raw.p)
            playing_put_framed(p, v, &framed);
        dgm_str text = v->raw.p ? v->raw : dgm_buf_str(&framed);
        text.n = dgm_utf8_check(text);
        dgm_inspect_put_line(v->seq, text, &p->losses, NULL, v->error, out);
        dgm_buf_done(&framed);
        return;
    }
    bool is_good = playing_convert(p, v, DGM_FRAMING_SSE);
    dgm_inspect_put_line(v->seq, dgm_converter_output(p->converter), &p->losses, p->converter,
                         is_good ? NULL : p->err.msg, out);
    dgm_converter_consume(p->converter, dgm_converter_output(p->converter).n);
    if (!is_good)
        playing_drop_converter(p);
}

static void playing_put_frames_end(struct playing *p, dgm_buf *out)
{
    dgm_err err = {0};
    bool is_good = !p->converter || !dgm_converter_end(p->converter, &err);
    dgm_str frames = is_good ? dgm_converter_output(p->converter) : (dgm_str){0};
    if (p->from == p->to && dgm_frames_what(&p->frames) == DGM_FRAMES_SSE)
        frames = (dgm_str){p->body.p + p->raw_at, p->body.n - p->raw_at};
    frames.n = dgm_utf8_check(frames);
    dgm_inspect_put_line(0, frames, &p->losses, NULL, is_good ? NULL : err.msg, out);
}

/* ---- the fold ---------------------------------------------------------------------------------------------------- */

static void playing_fold_text(struct playing *p, dgm_str line)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_reader reader = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &p->err};
    yyjson_val *value = NULL, *result;
    dgm_event event;
    if (!line.n || dgm_json_read(a, line, DGM_MAX_OUTPUT_BYTES, "output_bytes", &value, NULL))
        return;
    if ((result = dgm_json_get(value, DGM_STR("result")))) /* of a JSON-RPC response */
        value = result;
    if (!dgm_form_read_event(&reader, value, NULL, &event))
        dgm_fold_add(p->fold, &event, DGM_BY_SERVER, NULL); /* what breaks the rules is left out */
}

static void playing_fold_output(struct playing *p)
{
    dgm_str out = dgm_converter_output(p->converter);
    for (size_t from = 0; from < out.n;) {
        const char *end = memchr(out.p + from, '\n', out.n - from);
        size_t n = end ? (size_t)(end - out.p) - from : out.n - from;
        playing_fold_text(p, (dgm_str){out.p + from, n});
        from += n + 1;
    }
    dgm_converter_consume(p->converter, out.n);
}

static void playing_fold(struct playing *p, const struct recorded *v)
{
    if (!p->fold)
        p->fold = dgm_fold_new((dgm_fold_options){.foreign = true});
    if (!playing_convert(p, v, DGM_FRAMING_LINES))
        playing_drop_converter(p);
    playing_fold_output(p);
    p->is_over = p->is_over || v->seq == p->last;
}

static void playing_respond_fold(struct playing *p)
{
    dgm_event event = {.kind = DGM_EVENT_TASK};
    dgm_record *task = NULL;
    dgm_buf room;
    bool is_there = p->fold && (p->last == UINT64_MAX || p->seq >= p->last);
    if (is_there && p->converter && p->last > p->seq && !dgm_converter_end(p->converter, NULL))
        playing_fold_output(p);
    if (is_there)
        event.task = (dgm_task *)(uintptr_t)dgm_fold_task(p->fold);
    dgm_buf_init(&room, SIZE_MAX); /* a record has a limit */
    if (event.task)
        dgm_record_new(&event, (dgm_record_head){.seq = 1}, &room, &task, NULL);
    if (task)
        dgm_inspect_respond_task(p->x, task);
    else
        dgm_inspect_refuse(
            &p->q, DGM_BAD_PARAMS,
            is_there ? "the stream has no task up to this record, or the task is too large"
                     : "seq: unknown record of the stream");
    dgm_buf_done(&room);
    dgm_record_unref(task);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void playing_done(struct playing *p)
{
    dgm_frames_done(&p->frames);
    dgm_arena_free(p->arena);
    dgm_arena_free(p->whole);
    dgm_buf_done(&p->text);
    playing_drop_converter(p);
    dgm_inspect_losses_done(&p->losses);
    if (p->mode == INSPECT_FINDINGS)
        dgm_inspect_lint_done(&p->lint);
    dgm_fold_free(p->fold);
}

static void playing_put(struct playing *p, const struct recorded *v, dgm_buf *out)
{
    playing_detect(p, v);
    if (p->mode == INSPECT_RECORDS)
        playing_put_record(p, v, out);
    else if (p->mode == INSPECT_COLUMN)
        playing_put_frames(p, v, out);
    else if (p->mode == INSPECT_FOLD)
        playing_fold(p, v);
    else {
        if (v->seq == 1)
            dgm_inspect_lint_start(&p->lint, p->from);
        dgm_buf_clear(out);
        playing_put_framed(p, v, out);
        dgm_inspect_lint_feed(&p->lint, v->seq, dgm_buf_str(out));
        dgm_buf_clear(out);
    }
}

/* Responds with what is collected, or with the end of the stream. */
static void playing_end(struct playing *p, dgm_buf *out)
{
    if (p->mode == INSPECT_RECORDS)
        dgm_buf_add_str(out, p->seq ? DGM_STR("]}")
                                    : DGM_STR("{\"format\":null,\"framing\":null,\"records\":[]}"));
    else if (p->mode == INSPECT_COLUMN)
        playing_put_frames_end(p, out);
    if (p->has_begun) {
        dgm_http_write(p->x, dgm_buf_str(out));
        return;
    }
    dgm_http_watch(p->x, NULL, NULL);
    if (p->mode == INSPECT_FOLD) {
        playing_respond_fold(p);
        return;
    }
    if (!p->seq)
        dgm_inspect_lint_start(&p->lint, DGM_FORMAT_NONE);
    dgm_inspect_respond(p->x, dgm_inspect_lint_end(&p->lint));
}

static void playing_step(void *arg)
{
    struct playing *p = arg;
    struct recorded v;
    size_t n = 0, bytes = 0;
    bool goes_on = !p->has_left, has_room = true;
    dgm_buf out;
    p->is_posted = false;
    dgm_buf_init(&out, SIZE_MAX); /* bounded by the backlog and one value's output */
    while (goes_on && n < STEP_VALUES && bytes < STEP_BYTES &&
           (has_room = dgm_http_backlog(p->x) + out.n < BACKLOG_BYTES)) {
        goes_on = !(p->is_over && p->mode == INSPECT_FOLD) && playing_next(p, &v);
        if (!goes_on)
            break;
        playing_put(p, &v, &out);
        bytes += v.text.n;
        n++;
    }
    if (goes_on) {
        if (p->has_begun)
            dgm_http_write(p->x, dgm_buf_str(&out));
        if (has_room) {
            p->is_posted = true;
            dgm_loop_post(dgm_loop_current(), playing_step, p);
        }
    } else {
        if (!p->has_left)
            playing_end(p, &out);
        playing_done(p);
        if (p->has_left || p->has_begun)
            dgm_http_end(p->x);
    }
    dgm_buf_done(&out);
}

static void playing_on_room(void *arg)
{
    struct playing *p = arg;
    if (!p->is_posted)
        playing_step(p);
}

static void playing_on_gone(void *arg)
{
    struct playing *p = arg;
    p->has_left = true;
    if (!p->is_posted)
        playing_step(p);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* ?format=auto, or a name. False: the request was refused. */
static bool playing_read_format(struct playing *p)
{
    dgm_str name = dgm_turn_query(p->x, "format");
    dgm_err err = {0};
    p->is_any = !name.n || dgm_str_is(name, "auto");
    if (p->is_any)
        return true;
    dgm_str text = dgm_arena_printf(dgm_http_arena(p->x), "%.*s", DGM_P(name));
    if (dgm_codec_by_name(text.p, &err))
        p->from = dgm_format_id_by_name(text.p);
    else
        dgm_inspect_refuse(&p->q, DGM_BAD_PARAMS, err.msg);
    return p->from;
}

void dgm_inspect_stream(const dgm_front_request *q)
{
    static const dgm_http_watcher watcher = {.on_room = playing_on_room,
                                             .on_gone = playing_on_gone};
    dgm_http_exchange *x = q->x;
    struct playing *p = dgm_http_alloc(x, sizeof *p);
    const struct inspect_format *format = NULL;
    *p = (struct playing){.q = *q,
                          .x = x,
                          .mode = (enum inspect_mode)q->route->op,
                          .body = dgm_http_request_of(x)->body,
                          .to = DGM_FORMAT_A2A_10,
                          .last = dgm_inspect_number(dgm_turn_query(x, "seq"), UINT64_MAX)};
    if (p->mode == INSPECT_COLUMN && !(format = dgm_inspect_format_of(q, q->params[0])))
        return;
    if (!playing_read_format(p))
        return;
    if (format)
        p->to = format->id;
    p->arena = dgm_arena_new();
    dgm_buf_init(&p->text, SIZE_MAX); /* of the body */
    dgm_frames_init(&p->frames, false);
    p->frames.is_all = true;
    dgm_frames_feed(&p->frames, p->body.p, p->body.n);
    p->has_begun = p->mode == INSPECT_RECORDS || p->mode == INSPECT_COLUMN;
    if (p->has_begun)
        dgm_inspect_start_lines(x, p->mode == INSPECT_RECORDS ? DGM_STR("application/json")
                                                              : DGM_STR(DGM_INSPECT_LINES));
    dgm_http_watch(x, &watcher, p);
    playing_step(p);
}
