/*
 * lib/api_document.c - implements dragoman/document.h: objects as structs, from and to text in any format.
 *
 * Text that is not one A2A object is decoded and encoded by a converter: structs are its input or its output as
 * A2A or AG-UI JSON, one line each. So both ways give exactly what dgm_convert() gives, and structs that a
 * caller has filled in are checked by the decoder of their format.
 */
#include "base/limits.h"
#include "base/list.h"
#include "lib/api_int.h"
#include "lib/convert_int.h"
#include "model/kinds.h"
#include "wire/formats.h"

#include <stdlib.h>

static dgm_code document_missing_argument(dgm_err *err)
{
    return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
}

/* ---- memory and objects ------------------------------------------------------------------------ */

dgm_document *dgm_document_new(void)
{
    dgm_document *d = dgm_xcalloc(1, sizeof *d);
    d->arena = dgm_arena_new();
    return d;
}

void dgm_document_free(dgm_document *d)
{
    if (!d)
        return;
    dgm_arena_free(d->arena);
    free(d);
}

void *dgm_document_alloc(dgm_document *d, size_t n)
{
    return d ? dgm_arena_alloc(d->arena, n) : NULL;
}

dgm_str dgm_document_copy(dgm_document *d, dgm_str text)
{
    return d && text.p ? dgm_arena_dup(d->arena, text) : (dgm_str){0};
}

static void document_append(dgm_document *d, dgm_frame frame)
{
    d->frames = dgm_list_grow(d->arena, d->frames, d->n, sizeof *d->frames);
    d->frames[d->n++] = frame;
}

void *dgm_document_add(dgm_document *d, dgm_object_kind kind)
{
#define X(sym, name, type) [DGM_OBJECT_##sym] = sizeof(type),
    static const size_t sizes[] = {DGM_OBJECT_KINDS(X)};
#undef X
    if (!d || (d->n && d->is_agui) || (size_t)kind >= sizeof sizes / sizeof *sizes ||
        kind <= DGM_OBJECT_NONE || kind == DGM_OBJECT_EMPTY)
        return NULL;
    void *it = dgm_arena_alloc(d->arena, sizes[kind]);
    document_append(d, (dgm_frame){.object = {kind, it}});
    d->is_built = true;
    return it;
}

dgm_agui_event *dgm_document_add_agui(dgm_document *d)
{
    if (!d || (d->n && !d->is_agui))
        return NULL;
    d->is_agui = true;
    d->agui = dgm_list_grow(d->arena, d->agui, d->n, sizeof *d->agui);
    return d->agui[d->n++] = dgm_new(d->arena, dgm_agui_event);
}

size_t dgm_document_count(const dgm_document *d)
{
    return d ? d->n : 0;
}

dgm_object_kind dgm_document_kind(const dgm_document *d, size_t index)
{
    return d && !d->is_agui && index < d->n ? d->frames[index].object.kind : DGM_OBJECT_NONE;
}

void *dgm_document_object(const dgm_document *d, size_t index)
{
    return dgm_document_kind(d, index) ? d->frames[index].object.it : NULL;
}

dgm_agui_event *dgm_document_agui(const dgm_document *d, size_t index)
{
    return d && d->is_agui && index < d->n ? d->agui[index] : NULL;
}

/* ---- decoding ---------------------------------------------------------------------------------- */

static dgm_code document_decode_value(dgm_document *d, const dgm_codec *codec, yyjson_val *v,
                                      dgm_object_kind kind, bool in_stream, dgm_str text,
                                      dgm_err *err)
{
    dgm_mint none = {0}, mint = dgm_mint_for(&none, 0, text);
    dgm_reader r = {.arena = d->arena, .mint = &mint, .err = err};
    dgm_frame frame = {0};
    dgm_code rc = codec->decode(&r, v, kind, in_stream, &frame);
    if (!rc)
        document_append(d, frame);
    return rc;
}

/* The lines that a converter has written. codec == NULL: of AG-UI. */
static dgm_code document_decode_lines(dgm_document *d, const dgm_codec *codec, dgm_object_kind kind,
                                      dgm_str lines, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    for (size_t at = 0, n; !rc && at < lines.n; at += n + 1) {
        const char *end = memchr(lines.p + at, '\n', lines.n - at);
        yyjson_val *v;
        n = end ? (size_t)(end - lines.p) - at : lines.n - at;
        const dgm_str line = {lines.p + at, n};
        if (!n ||
            (rc = dgm_json_read(d->arena, line, DGM_MAX_OUTPUT_BYTES, "output_bytes", &v, err)))
            continue;
        if (codec)
            rc = document_decode_value(d, codec, v, kind, true, line, err);
        else
            rc = dgm_agui_event_read(d->arena, v, dgm_document_add_agui(d), err);
    }
    return rc;
}

static dgm_code document_decode_stream(dgm_document *d, dgm_convert_options o, dgm_str text,
                                       dgm_err *err)
{
    const bool agui = o.to == DGM_FORMAT_AG_UI;
    dgm_auto(dgm_converter_free) dgm_converter *c = NULL;
    dgm_code rc;
    o.framing = DGM_FRAMING_LINES;
    o.as = agui ? DGM_FORM_EVENTS : DGM_FORM_NONE;
    o.losses = false;
    if (!agui)
        o.to = o.from && dgm_codec_by_id(o.from, NULL)->decode ? o.from : DGM_FORMAT_A2A_10;
    if ((rc = dgm_converter_new(&o, &c, err)) ||
        (rc = dgm_converter_feed_all(c, text.p, text.n, err)))
        return rc;
    if (agui)
        return document_decode_lines(d, NULL, DGM_OBJECT_NONE, dgm_converter_output(c), err);
    /* Another dialect of A2A was detected: it is decoded by its own codec, with its unknown members. */
    if (!o.from && c->from && c->from->decode && c->from->format != o.to) {
        o.from = o.to = c->from->format;
        return document_decode_stream(d, o, text, err);
    }
    const bool is_a2a = c->from && c->from->decode;
    return document_decode_lines(d, c->to, is_a2a ? o.object : DGM_OBJECT_NONE,
                                 dgm_converter_output(c), err);
}

dgm_code dgm_document_decode(const dgm_convert_options *options, const char *text, size_t n,
                             dgm_document **ret_document, dgm_err *err)
{
    dgm_convert_options o;
    yyjson_val *v;
    const dgm_codec *f = NULL;
    dgm_err fault = {0};
    if (!ret_document || (!text && n))
        return document_missing_argument(err);
    dgm_code rc = dgm_options_copy(&o, sizeof o, options, err);
    if (!rc && o.to && o.to != DGM_FORMAT_AG_UI)
        rc = dgm_fail(err, DGM_BAD_REQUEST, NULL,
                      "unknown value of to; allowed values: 0, DGM_FORMAT_AG_UI");
    if (!rc && o.from && !dgm_codec_by_id(o.from, err))
        rc = DGM_BAD_REQUEST;
    if (rc)
        return rc;
    dgm_auto(dgm_document_free) dgm_document *d = dgm_document_new();
    const dgm_str in = {text, n};
    /* One object of A2A is decoded as it is. */
    if (!o.to && !dgm_json_read(d->arena, in, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL) &&
        yyjson_is_obj(v))
        f = o.from ? dgm_codec_by_id(o.from, NULL) : dgm_codec_detect(v, NULL, NULL);
    rc = f && f->decode ? document_decode_value(d, f, v, o.object, false, in, &fault)
                        : document_decode_stream(d, o, in, &fault);
    if (rc) {
        if (err)
            *err = fault;
        return rc;
    }
    *ret_document = dgm_take(d);
    return DGM_OK;
}

/* ---- encoding ---------------------------------------------------------------------------------- */

static dgm_code document_check_text(const dgm_buf *out, dgm_err *err)
{
    if (out->over)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "becomes more than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    if (dgm_utf8_check(dgm_buf_str(out)) < out->n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a text is not valid UTF-8");
    return DGM_OK;
}

/* ---- structs of the caller --------------------------------------------------------------------- */

/* Only what an encoder could not survive, or would write as another value; the decoder checks the rest. */
static dgm_code check_parts(const dgm_parts *parts, const dgm_at *at, dgm_err *err)
{
    for (size_t i = 0; i < parts->n; i++) {
        const dgm_part *p = &parts->at[i];
        if (p->kind <= DGM_PART_NONE || p->kind > DGM_PART_DATA)
            return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_I(DGM_AT_LIT(at, "parts"), i),
                            "unknown kind of a part: %d", (int)p->kind);
    }
    return DGM_OK;
}

static dgm_code check_message(const dgm_message *m, const dgm_at *at, dgm_err *err)
{
    if (m && (m->role < DGM_ROLE_UNSPECIFIED || m->role > DGM_ROLE_AGENT))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "role"), "unknown role: %d",
                        (int)m->role);
    return m ? check_parts(&m->parts, at, err) : DGM_OK;
}

static dgm_code check_status(const dgm_status *s, const dgm_at *at, dgm_err *err)
{
    if (s->state < DGM_STATE_UNKNOWN || s->state >= DGM_N_STATES)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "state"), "unknown state: %d",
                        (int)s->state);
    return check_message(s->message, DGM_AT_LIT(at, "message"), err);
}

static dgm_code check_task(const dgm_task *t, const dgm_at *at, dgm_err *err)
{
    dgm_code rc = check_status(&t->status, DGM_AT_LIT(at, "status"), err);
    for (size_t i = 0; !rc && i < t->history.n; i++)
        rc = check_message(&t->history.at[i], DGM_AT_I(DGM_AT_LIT(at, "history"), i), err);
    for (size_t i = 0; !rc && i < t->artifacts.n; i++)
        rc = check_parts(&t->artifacts.at[i].parts, DGM_AT_I(DGM_AT_LIT(at, "artifacts"), i), err);
    return rc;
}

static dgm_code check_object(dgm_object_kind kind, const void *it, dgm_err *err)
{
    static const dgm_object_kind kinds[] = {
        [DGM_EVENT_TASK] = DGM_OBJECT_TASK,
        [DGM_EVENT_MESSAGE] = DGM_OBJECT_MESSAGE,
        [DGM_EVENT_STATUS] = DGM_OBJECT_STATUS_UPDATE,
        [DGM_EVENT_ARTIFACT] = DGM_OBJECT_ARTIFACT_UPDATE,
        [DGM_EVENT_INTERNAL] = DGM_OBJECT_INTERNAL_EVENT,
    };
    const dgm_event *e = it;
    if (!*dgm_object_kind_name(kind) || !it)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown kind of an object, or no object");
    switch (kind) {
    case DGM_OBJECT_MESSAGE: return check_message(it, NULL, err);
    case DGM_OBJECT_TASK: return check_task(it, NULL, err);
    case DGM_OBJECT_STATUS: return check_status(it, NULL, err);
    case DGM_OBJECT_PART: return check_parts(&(dgm_parts){(dgm_part *)(uintptr_t)it, 1}, NULL, err);
    case DGM_OBJECT_ARTIFACT: return check_parts(&((const dgm_artifact *)it)->parts, NULL, err);
    case DGM_OBJECT_STATUS_UPDATE:
        return check_status(&((const dgm_status_update *)it)->status, DGM_AT_LIT(NULL, "status"),
                            err);
    case DGM_OBJECT_ARTIFACT_UPDATE:
        return check_parts(&((const dgm_artifact_update *)it)->artifact.parts,
                           DGM_AT_LIT(NULL, "artifact"), err);
    case DGM_OBJECT_SEND_REQUEST:
        return check_message(((const dgm_send_request *)it)->message, DGM_AT_LIT(NULL, "message"),
                             err);
    case DGM_OBJECT_INTERNAL_EVENT:
        return (unsigned)((const dgm_internal *)it)->kind < DGM_N_INTERNAL_KINDS
                   ? check_message(((const dgm_internal *)it)->message, DGM_AT_LIT(NULL, "message"),
                                   err)
                   : dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown kind of an internal event");
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE:
        return e->kind > DGM_EVENT_NONE && e->kind <= DGM_EVENT_INTERNAL && e->any
                   ? check_object(kinds[e->kind], e->any, err)
                   : dgm_fail(err, DGM_BAD_PARAMS, NULL,
                              "unknown kind of an event, or no object in it");
    default: return DGM_OK;
    }
}

/* One object as a line of an A2A dialect. in_stream: as an event of a stream. */
static dgm_code document_put_line(dgm_buf *out, const dgm_codec *codec, const dgm_frame *frame,
                                  bool in_stream, dgm_err *err)
{
    static const struct {
        dgm_object_kind object;
        dgm_event_kind event;
    } kinds[] = {{DGM_OBJECT_TASK, DGM_EVENT_TASK},
                 {DGM_OBJECT_MESSAGE, DGM_EVENT_MESSAGE},
                 {DGM_OBJECT_STATUS_UPDATE, DGM_EVENT_STATUS},
                 {DGM_OBJECT_ARTIFACT_UPDATE, DGM_EVENT_ARTIFACT}};
    dgm_frame f = *frame;
    dgm_event event = {0};
    dgm_code rc = check_object(f.object.kind, f.object.it, err);
    if (rc)
        return rc;
    for (size_t i = 0; in_stream && i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].object != f.object.kind)
            continue;
        event = (dgm_event){.kind = kinds[i].event, .any = f.object.it};
        f.object = (dgm_object){DGM_OBJECT_STREAM_RESPONSE, &event};
        break;
    }
    dgm_writer w = {.out = out};
    rc = codec->encode(&w, &f, err);
    dgm_buf_add_char(out, '\n');
    return rc ? rc : document_check_text(out, err);
}

/* All objects as lines: the input of a converter. */
static dgm_code document_put_lines(const dgm_document *d, const dgm_codec *codec, dgm_buf *out,
                                   dgm_err *err)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < d->n; i++) {
        if (!d->is_agui) {
            rc = document_put_line(out, codec, &d->frames[i], d->n > 1, err);
        } else if (!(rc = dgm_agui_event_write(out, d->agui[i], err))) {
            dgm_buf_add_char(out, '\n');
            rc = document_check_text(out, err);
        }
    }
    return rc;
}

static dgm_code document_encode_stream(const dgm_document *d, dgm_convert_options o,
                                       const dgm_codec *to, dgm_buf *out, char **ret_text,
                                       size_t *ret_n, dgm_err *err)
{
    o.from = d->is_agui ? DGM_FORMAT_AG_UI : to->encode ? o.to : DGM_FORMAT_A2A_10;
    o.object = d->n == 1 ? dgm_document_kind(d, 0) : DGM_OBJECT_NONE;
    const dgm_codec *from = dgm_codec_by_id(o.from, err);
    dgm_code rc = document_put_lines(d, from, out, err);
    return rc ? rc : dgm_convert(&o, out->p, out->n, ret_text, ret_n, err);
}

dgm_code dgm_document_encode(const dgm_document *d, const dgm_convert_options *options,
                             char **ret_text, size_t *ret_n, dgm_err *err)
{
    dgm_convert_options o;
    dgm_buf out;
    dgm_err fault = {0};
    if (!d || !ret_text)
        return document_missing_argument(err);
    dgm_code rc = dgm_options_copy(&o, sizeof o, options, err);
    const dgm_codec *to = rc ? NULL : dgm_codec_by_id(o.to, err);
    if (!to)
        return DGM_BAD_REQUEST;
    if (!d->n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the document is empty");
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    /* One object of A2A that was decoded is encoded as it is: with its envelope and its unknown members. */
    if (to->encode && d->n == 1 && !d->is_agui && !d->is_built && !o.as &&
        o.framing <= DGM_FRAMING_JSON) {
        dgm_writer w = {.out = &out};
        if (!(rc = to->encode(&w, d->frames, &fault)) &&
            !(rc = document_check_text(&out, &fault))) {
            out.max = SIZE_MAX;
            *ret_text = dgm_buf_steal(&out, ret_n);
        }
    } else {
        rc = document_encode_stream(d, o, to, &out, ret_text, ret_n, &fault);
    }
    dgm_buf_done(&out);
    if (rc && err)
        *err = fault;
    return rc;
}

/* ---- live streams ------------------------------------------------------------------------------ */

static dgm_code feed_line(dgm_converter *c, dgm_code rc, dgm_buf *line, dgm_err *fault,
                          dgm_err *err)
{
    if (!rc && !(rc = document_check_text(line, fault)))
        rc = dgm_converter_feed(c, line->p, line->n, fault);
    dgm_buf_done(line);
    if (rc && err)
        *err = *fault;
    return rc;
}

dgm_code dgm_converter_feed_object(dgm_converter *c, dgm_object_kind kind, const void *object,
                                   dgm_err *err)
{
    dgm_err fault = {0};
    dgm_buf line;
    if (!c || !object)
        return document_missing_argument(err);
    if (!c->from || !c->from->encode)
        return dgm_fail(err, DGM_BAD_REQUEST, NULL,
                        "the converter's option from is not an A2A format");
    const dgm_frame frame = {.object = {kind, (void *)(uintptr_t)object}};
    dgm_buf_init(&line, DGM_MAX_OUTPUT_BYTES);
    dgm_code rc = document_put_line(&line, c->from, &frame, true, &fault);
    return feed_line(c, rc, &line, &fault, err);
}

dgm_code dgm_converter_feed_agui(dgm_converter *c, const dgm_agui_event *event, dgm_err *err)
{
    dgm_err fault = {0};
    dgm_buf line;
    if (!c || !event)
        return document_missing_argument(err);
    if (c->from_any || c->from != dgm_codec_by_id(DGM_FORMAT_AG_UI, NULL))
        return dgm_fail(err, DGM_BAD_REQUEST, NULL, "the converter's option from is not AG-UI");
    dgm_buf_init(&line, DGM_MAX_OUTPUT_BYTES);
    dgm_code rc = dgm_agui_event_write(&line, event, &fault);
    dgm_buf_add_char(&line, '\n');
    return feed_line(c, rc, &line, &fault, err);
}
