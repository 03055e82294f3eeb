/*
 * lib/convert_canon.c - values through canonical events: which form they have, and which stream converts them.
 *
 * The values of a stream, and the elements of an array, belong together: one dgm_stream converts all of them. A request,
 * a response and a message among lines have a dgm_stream of their own.
 */
#include "lib/convert_int.h"
#include "wire/a2a/a2a.h"
#include "wire/a2a/a2a_encode.h"

#include <stdio.h>

/* ---- frames ------------------------------------------------------------------------------------------------ */

static dgm_code on_frame(void *arg, dgm_str name, dgm_str payload)
{
    dgm_converter *c = arg;
    c->frame_at = c->out.n;
    if (c->to->canon && c->to->canon->binary) {
        dgm_buf_add_str(&c->out, payload);
        c->n_out++;
        return DGM_OK;
    }
    begin_value(c, (dgm_str){0}, name);
    dgm_buf_add_str(&c->out, payload);
    end_value(c);
    return DGM_OK;
}

/* A reader who comes back asks for what follows the last id: that is the last frame's of a value. */
static void put_id(dgm_converter *c, dgm_str id)
{
    size_t more = sizeof "id: \n" - 1 + id.n;
    if (c->framing != DGM_FRAMING_SSE || !dgm_buf_room(&c->out, more))
        return;
    char *at = c->out.p + c->frame_at;
    memmove(at + more, at, c->out.n - c->frame_at);
    memcpy(at, "id: ", 4);
    memcpy(at + 4, id.p, id.n);
    at[more - 1] = '\n';
    c->out.n += more;
}

/* ---- which form -------------------------------------------------------------------------------------------- */

static dgm_form form_of_object(const dgm_object *o, bool in_stream)
{
    if (o->kind == DGM_OBJECT_SEND_REQUEST)
        return DGM_FORM_REQUEST;
    if (in_stream)
        return DGM_FORM_EVENTS;
    if (o->kind == DGM_OBJECT_MESSAGE || o->kind == DGM_OBJECT_TASK)
        return DGM_FORM_MESSAGES;
    if (o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) {
        const dgm_event *event = o->it;
        if (event->kind == DGM_EVENT_MESSAGE || event->kind == DGM_EVENT_TASK)
            return DGM_FORM_MESSAGES;
    }
    return DGM_FORM_EVENTS;
}

/* What comes out, if nobody has said: the same, or the nearest that the target has. */
static dgm_form out_form(const dgm_converter *c, dgm_form in)
{
    static const dgm_form nearest[][3] = {
        [DGM_FORM_NONE] = {DGM_FORM_EVENTS, DGM_FORM_MESSAGES},
        [DGM_FORM_EVENTS] = {DGM_FORM_EVENTS, DGM_FORM_MESSAGES},
        [DGM_FORM_RESPONSE] = {DGM_FORM_RESPONSE, DGM_FORM_EVENTS, DGM_FORM_MESSAGES},
        [DGM_FORM_MESSAGES] = {DGM_FORM_MESSAGES, DGM_FORM_EVENTS},
        [DGM_FORM_REQUEST] = {DGM_FORM_REQUEST, DGM_FORM_MESSAGES, DGM_FORM_EVENTS},
    };
    if (c->as)
        return c->as;
    /* Who builds messages of events is told of them by events. */
    if (in == DGM_FORM_MESSAGES && c->from != c->to && c->to->canon &&
        c->to->canon->builds_messages)
        return DGM_FORM_EVENTS;
    for (size_t i = 0; i < 3; i++) {
        if (dgm_format_has(c->to, nearest[in][i]))
            return nearest[in][i];
    }
    return in;
}

/* ---- streams ----------------------------------------------------------------------------------------------- */

static void settle(dgm_converter *c, const struct input *in, dgm_form out, bool shared)
{
    if (in->item->alone) /* how many frames it gives, it will show: see dgm_convert_end_stream */
        settle_framing(c, true, true);
    else if (shared && out != DGM_FORM_EVENTS) /* of a whole stream */
        settle_framing(c, true, out == DGM_FORM_MESSAGES);
    else
        settle_framing(c, false, in->in_list);
}

/* How values share it. */
enum share {
    OWN,    /* one value, all there is */
    PIECE,  /* one message of A2A's: it may be a piece of what is streamed elsewhere */
    SHARED, /* those of a stream or an array */
};

static dgm_stream *open_stream(dgm_converter *c, const struct input *in, dgm_form form,
                               enum share share)
{
    dgm_form out = out_form(c, form);
    bool shared = share == SHARED, piece = share == PIECE && out == DGM_FORM_EVENTS;
    bool run = in->in_stream || form == DGM_FORM_RESPONSE || out == DGM_FORM_RESPONSE;
    dgm_mint mint = c->mint;
    if (c->losses && !c->loss_writing)
        c->loss_writing = dgm_loss_writing_new(c->losses, c->to);
    mint.seed[0] += c->n_in;
    dgm_mint_seed(&mint, in->item->text);
    bool compact = c->compact == DGM_COMPACT_ALWAYS ||
                   (c->compact == DGM_COMPACT_DOCUMENTS && in->item->alone && c->from != c->to);
    dgm_stream_options options = {
        .to = c->to->canon ? c->to->canon : dgm_a2a_canon_codec(c->to->a2a),
        .form = out,
        .params = {.fragment = !run,
                   .alone = in->item->alone && !in->in_list,
                   .usage = true,
                   .mint = mint},
        .records = {.answer_source = c->status_is_answer ? DGM_ANSWER_STATUS : DGM_ANSWER_AUTO,
                    .fragment = !run,
                    .say_history = !run || out == DGM_FORM_MESSAGES || out == DGM_FORM_REQUEST,
                    .many_turns = shared,
                    .open_end = piece,
                    .complete = true,
                    .trusted = true},
        .many_tasks = true,
        .compact = out == DGM_FORM_EVENTS && !piece && compact,
        .compact_simple = compact,
        .sink = {on_frame, c},
    };
    if (c->losses && c->from != c->to)
        dgm_loss_writing_observe(c->loss_writing, &options);
    settle(c, in, out, shared);
    c->over_events = true;
    c->stream_written = c->stream_written || out == DGM_FORM_EVENTS;
    return dgm_stream_new(&options);
}

dgm_code dgm_convert_end_stream(dgm_converter *c, dgm_err *err)
{
    if (!c->stream)
        return DGM_OK;
    dgm_code rc = dgm_stream_end(c->stream, err);
    dgm_stream_free(c->stream);
    c->stream = NULL;
    return rc;
}

/* ---- A2A --------------------------------------------------------------------------------------------------- */

void dgm_convert_respell(dgm_err *err, const dgm_frame *frame, const dgm_codec *codec)
{
    bool bare = codec == &dgm_codec_a2a_03 ? frame->object.kind != DGM_OBJECT_SEND_REQUEST
                                           : frame->object.kind == DGM_OBJECT_MESSAGE ||
                                                 frame->object.kind == DGM_OBJECT_TASK ||
                                                 frame->object.kind == DGM_OBJECT_STATUS_UPDATE;
    const char *top = frame->envelope == DGM_ENVELOPE_REQUEST    ? "/params"
                      : frame->envelope == DGM_ENVELOPE_RESPONSE ? "/result"
                                                                 : "";
    char old[sizeof err->at];
    size_t n = strlen(top);
    memcpy(old, err->at, sizeof old);
    const char *rest = bare && old[0] ? strchr(old + 1, '/') : old, *parts = NULL;
    memcpy(err->at, top, n + 1);
    if (codec == &dgm_codec_a2a_03_rest && rest && (parts = strstr(rest, "/parts/"))) {
        n += (size_t)snprintf(err->at + n, sizeof err->at - n, "%.*s/content/", (int)(parts - rest),
                              rest);
        rest = parts + sizeof "/parts/" - 1;
    }
    if (rest && n < sizeof err->at)
        snprintf(err->at + n, sizeof err->at - n, "%s", rest);
}

static dgm_code no_conversation(dgm_reader *r, const dgm_converter *c, const dgm_object *o)
{
    return dgm_fail(r->err, DGM_UNSUPPORTED_OPERATION, NULL,
                    "is not part of a conversation, and %s has nothing else: \"%s\" stays in A2A",
                    c->to->name, dgm_object_kind_name(o->kind));
}

static dgm_code feed_object(dgm_converter *c, dgm_stream *stream, const dgm_object *o,
                            dgm_reader *r)
{
    dgm_event event = {.any = o->it};
    switch (o->kind) {
    case DGM_OBJECT_SEND_REQUEST: return dgm_stream_send_request(stream, r->arena, o->it, r->err);
    case DGM_OBJECT_ERROR: return dgm_stream_error(stream, r->arena, o->it, r->err);
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE: event = *(const dgm_event *)o->it; break;
    case DGM_OBJECT_MESSAGE: event.kind = DGM_EVENT_MESSAGE; break;
    case DGM_OBJECT_TASK: event.kind = DGM_EVENT_TASK; break;
    case DGM_OBJECT_STATUS_UPDATE: event.kind = DGM_EVENT_STATUS; break;
    case DGM_OBJECT_ARTIFACT_UPDATE: event.kind = DGM_EVENT_ARTIFACT; break;
    case DGM_OBJECT_INTERNAL_EVENT: event.kind = DGM_EVENT_INTERNAL; break;
    case DGM_OBJECT_EMPTY: return DGM_OK;
    default: return no_conversation(r, c, o);
    }
    return dgm_stream_record(stream, &event, r->err);
}

static bool is_message(const dgm_object *o)
{
    return o->kind == DGM_OBJECT_MESSAGE ||
           ((o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
            ((const dgm_event *)o->it)->kind == DGM_EVENT_MESSAGE);
}

/* A task that does not work any more is all of its story, not the begin of one. */
static bool is_whole_task(const dgm_object *o)
{
    const dgm_task *task = o->kind == DGM_OBJECT_TASK ? o->it : NULL;
    if (o->kind == DGM_OBJECT_STREAM_RESPONSE && ((const dgm_event *)o->it)->kind == DGM_EVENT_TASK)
        task = ((const dgm_event *)o->it)->task;
    return task && (dgm_state_is_terminal(task->status.state) ||
                    dgm_state_is_interrupted(task->status.state));
}

/* Lines that begin with a message, or a whole task, are a log of such. As server-sent events it would be an
 * answer. */
static bool begins_log(const dgm_converter *c, const dgm_object *first)
{
    return (is_message(first) || is_whole_task(first)) &&
           dgm_frames_what(&c->frames) != DGM_FRAMES_SSE;
}

static dgm_stream *open_for_object(dgm_converter *c, const struct input *in, dgm_form form,
                                   const dgm_object *first)
{
    struct input as = *in;
    as.in_stream = in->in_stream && !begins_log(c, first);
    return open_stream(c, &as, form,
                       !in->item->alone || in->in_list ? SHARED
                       : is_message(first)             ? PIECE
                                                       : OWN);
}

static dgm_code convert_object(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    dgm_frame frame;
    dgm_code rc = dgm_convert_decode(c, in, r, &frame);
    if (rc)
        return rc;
    /* 1.0 spells a user's message as it spells a request that brings one. */
    if (in->in_stream && frame.object.kind == DGM_OBJECT_SEND_REQUEST && !frame.envelope) {
        const dgm_send_request *request = frame.object.it;
        if (!request->configuration && !request->metadata && !request->tenant.p)
            frame.object = (dgm_object){DGM_OBJECT_MESSAGE, request->message};
    }
    dgm_form form = form_of_object(&frame.object, in->in_stream);
    bool direct = !c->stream && c->to->direct && !c->as && begins_log(c, &frame.object);
    if (c->losses && in->value)
        dgm_loss_watch_a2a(c->losses, direct ? DGM_LOSS_DIRECT : DGM_LOSS_READING, c->from, c->to,
                           in->value, &frame);
    if (direct)
        return dgm_convert_to_chat(c, in, &frame, r);
    dgm_auto(dgm_stream_free) dgm_stream *own = NULL;
    if (form == DGM_FORM_REQUEST)
        own = open_stream(c, in, form, OWN);
    else if (!c->stream)
        c->stream = open_for_object(c, in, form, &frame.object);
    rc = feed_object(c, own ? own : c->stream, &frame.object, r);
    if (!rc && own)
        rc = dgm_stream_end(own, r->err);
    if (rc && r->err)
        dgm_convert_respell(r->err, &frame, c->from->a2a);
    return rc;
}

/* ---- the others -------------------------------------------------------------------------------------------- */

static dgm_code convert_messages(dgm_converter *c, dgm_stream *stream, const struct input *in,
                                 dgm_reader *r)
{
    dgm_canon_messages messages;
    dgm_code rc = c->from->canon->read_messages(r, in->value, in->at, &messages);
    return rc ? rc : dgm_stream_messages(stream, &messages, r->err);
}

static dgm_code convert_request(dgm_converter *c, dgm_stream *stream, const struct input *in,
                                dgm_reader *r)
{
    dgm_canon_input input = {0};
    dgm_code rc = c->from->canon->read_request(r, in->value, in->at, &input);
    return rc ? rc : dgm_stream_request(stream, &input, r->err);
}

static dgm_code convert_other(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    const dgm_canon_codec *codec = c->from->canon;
    dgm_form form = DGM_FORM_EVENTS;
    dgm_code rc;
    codec->recognise(in->value, &form);
    if (codec->streams_messages && form == DGM_FORM_MESSAGES &&
        (c->stream || (in->in_stream && dgm_frames_what(&c->frames) == DGM_FRAMES_SSE)))
        form = DGM_FORM_EVENTS;
    bool messages = form == DGM_FORM_MESSAGES && codec->read_messages;
    bool request = form == DGM_FORM_REQUEST && codec->read_request;
    if (c->losses)
        dgm_loss_watch_canon(c->losses, c->from, c->to, in->value, form);
    if (form == DGM_FORM_EVENTS) {
        if (!c->stream)
            c->stream = open_stream(c, in, form, !in->item->alone || in->in_list ? SHARED : OWN);
        return dgm_stream_value(c->stream, codec, r, in->value);
    }
    dgm_auto(dgm_stream_free) dgm_stream *own = open_stream(c, in, form, OWN);
    rc = messages  ? convert_messages(c, own, in, r)
         : request ? convert_request(c, own, in, r)
                   : dgm_stream_value(own, codec, r, in->value);
    return rc ? rc : dgm_stream_end(own, r->err);
}

/* ---- values ------------------------------------------------------------------------------------------------ */

dgm_code dgm_convert_canon(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    size_t n_out = c->n_out;
    dgm_code rc = c->from->a2a ? convert_object(c, in, r) : convert_other(c, in, r);
    if (!rc && in->item->sse_id.p && c->n_out > n_out)
        put_id(c, in->item->sse_id);
    return rc;
}

/* How many elements of an array are looked at: enough to tell, and bound. */
#define LOOK_AT 64

/* Whose array it is: its most telling element says so. */
static const dgm_format *format_of_array(yyjson_val *array, const dgm_format *guess)
{
    const dgm_format *best = NULL;
    int best_score = 0;
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        int score = 0;
        const dgm_format *f = dgm_format_score(e, guess, &score);
        if (score > best_score) {
            best = f;
            best_score = score;
        }
        if (i == LOOK_AT)
            break;
    }
    return best;
}

bool dgm_convert_canon_array(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc)
{
    const dgm_format *from = c->from_any ? format_of_array(in->value, c->from) : c->from;
    yyjson_val *e;
    size_t i, n;
    dgm_form form;
    if (!from || !from->canon)
        return false;
    c->from = from;
    if (!c->settled && (*ret_rc = dgm_convert_settle_target(c, r->err)))
        return true;
    if (dgm_convert_is_direct(c, in) || !from->canon->read_messages || !yyjson_arr_size(in->value))
        return false;
    yyjson_arr_foreach (in->value, i, n, e) {
        form = DGM_FORM_EVENTS;
        if (!from->canon->recognise(e, &form) || form != DGM_FORM_MESSAGES)
            return false;
    }
    dgm_auto(dgm_stream_free) dgm_stream *stream = open_stream(c, in, DGM_FORM_MESSAGES, SHARED);
    if (c->losses)
        dgm_loss_watch_canon(c->losses, c->from, c->to, in->value, DGM_FORM_MESSAGES);
    *ret_rc = convert_messages(c, stream, in, r);
    if (!*ret_rc)
        *ret_rc = dgm_stream_end(stream, r->err);
    return true;
}
