/*
 * lib/convert_value.c - one value of the input: which path it takes, and its conversion.
 *
 * The values of a stream, and the elements of an array, belong together: one dgm_stream converts all of them. A request,
 * a response and a message among lines have a dgm_stream of their own.
 */
#include "canon/compact.h"
#include "lib/convert_int.h"
#include "lib/direct.h"

/* ---- paths ------------------------------------------------------------------------------------------------- */

/* Lines that start with a message, or with a task that has ended, are a log of such objects. In server-sent events the
 * same object is a response. */
static bool convert_starts_log(const dgm_converter *c, const dgm_object *first)
{
    const dgm_task *task = dgm_a2a_task_in(first);
    bool ended = task && (dgm_state_is_terminal(task->status.state) ||
                          dgm_state_is_interrupted(task->status.state));
    return (ended || dgm_a2a_message_in(first)) && dgm_frames_what(&c->frames) != DGM_FRAMES_SSE;
}

enum dgm_path dgm_convert_path(const dgm_converter *c, const struct input *in,
                               const dgm_object *object, dgm_form form)
{
    const dgm_codec *from = c->from, *to = c->to;
    if (object && to->encode) {
        if (c->between_objects || in->compacted)
            return DGM_PATH_OBJECTS;
        return !c->as && !in->in_stream && (dgm_a2a_message_in(object) || dgm_a2a_task_in(object))
                   ? DGM_PATH_COMPACTED
                   : DGM_PATH_EVENTS;
    }
    if (!(from->direct && (to->encode || to->direct)) && !(object && to->direct))
        return DGM_PATH_EVENTS;
    bool direct = c->as    ? c->as == DGM_FORM_MESSAGES && !in->in_stream
                  : object ? !in->in_stream || (!c->stream && convert_starts_log(c, object))
                           : form != DGM_FORM_EVENTS;
    return direct ? DGM_PATH_DIRECT : DGM_PATH_EVENTS;
}

/* ---- without events ---------------------------------------------------------------------------------------- */

static dgm_code convert_write_object(dgm_converter *c, const struct input *in,
                                     const dgm_frame *frame, dgm_err *err)
{
    /* Internal events are for the observability of agents: clients do not get them. */
    bool internal = frame->object.kind == DGM_OBJECT_INTERNAL_EVENT;
    dgm_convert_settle_framing(c, in->item->alone, in->in_list || internal);
    if (internal)
        return DGM_OK;
    /* A2A names only one kind of event: the error that ends a stream. */
    dgm_convert_start_value(c, in->item->sse_id,
                            dgm_str_is(in->item->sse_event, "error") ? in->item->sse_event
                                                                     : (dgm_str){0});
    dgm_writer w = {.out = &c->out};
    dgm_code rc = c->to->encode(&w, frame, err);
    dgm_convert_end_value(c);
    return rc;
}

static void convert_write_chat(dgm_converter *c, const struct input *in,
                               const dgm_chat_messages *messages, bool list)
{
    dgm_convert_settle_framing(c, in->item->alone, list || in->in_list || messages->n != 1);
    for (size_t i = 0; i < messages->n; i++) {
        dgm_convert_start_value(c, in->item->sse_id, (dgm_str){0});
        dgm_writer w = {.out = &c->out, .format = DGM_FORMAT_CHAT};
        dgm_chat_write(&w, &messages->at[i]);
        dgm_convert_end_value(c);
    }
}

static dgm_code convert_object_to_chat(dgm_converter *c, const struct input *in,
                                       const dgm_frame *frame, dgm_reader *r)
{
    dgm_chat_messages messages;
    bool list;
    dgm_code rc =
        dgm_direct_object_to_chat(r->arena, frame, c->from, true, &messages, &list, r->err);
    if (!rc)
        convert_write_chat(c, in, &messages, list);
    return rc;
}

static dgm_code convert_chat(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    dgm_chat_messages messages;
    dgm_code rc;
    if (c->losses)
        dgm_loss_watch_chat(c->losses, c->from, c->to, in->value);
    if ((rc = dgm_chat_read(r, in->value, NULL, &messages)))
        return rc;
    bool list = !dgm_chat_is_message(in->value);
    if (!c->to->encode) {
        convert_write_chat(c, in, &messages, list);
        return DGM_OK;
    }
    struct input each = *in;
    each.in_list = in->in_list || list;
    if (!messages.n)
        dgm_convert_settle_framing(c, in->item->alone, true);
    for (size_t i = 0; !rc && i < messages.n; i++) {
        dgm_message m = {0};
        dgm_direct_from_chat(r->arena, &messages.at[i], r->mint, &m);
        dgm_frame frame = {.object = {DGM_OBJECT_MESSAGE, &m}};
        rc = convert_write_object(c, &each, &frame, r->err);
    }
    return rc;
}

/* ---- streams ----------------------------------------------------------------------------------------------- */

static dgm_code convert_on_frame(void *arg, dgm_str name, dgm_str payload)
{
    dgm_converter *c = arg;
    c->frame_at = c->out.n;
    if (c->to->binary) {
        dgm_buf_add_str(&c->out, payload);
        c->n_out++;
        return DGM_OK;
    }
    dgm_convert_start_value(c, (dgm_str){0}, name);
    dgm_buf_add_str(&c->out, payload);
    dgm_convert_end_value(c);
    return DGM_OK;
}

/* A reader that reconnects sends the id of the last frame: so the last frame of a value gets the id. */
static void convert_put_id(dgm_converter *c, dgm_str id)
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

/* The form of the output, if no form was requested: the same, or the nearest that the target has. */
static dgm_form convert_out_form(const dgm_converter *c, dgm_form in)
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
    /* Readers that build messages from events get events. */
    if (in == DGM_FORM_MESSAGES && c->from != c->to && c->to->builds_messages)
        return DGM_FORM_EVENTS;
    for (size_t i = 0; i < 3; i++) {
        if (dgm_codec_has(c->to, nearest[in][i]))
            return nearest[in][i];
    }
    return in;
}

/* Which values a stream converts. */
enum share {
    OWN,    /* one value, which is complete */
    PIECE,  /* one message of A2A: it may be a chunk of a message that was streamed */
    SHARED, /* those of a stream or an array */
};

static dgm_stream *convert_open_stream(dgm_converter *c, const struct input *in, dgm_form form,
                                       enum share share)
{
    dgm_form out = convert_out_form(c, form);
    bool piece = share == PIECE && out == DGM_FORM_EVENTS, alone = in->item->alone;
    bool run = in->in_stream || form == DGM_FORM_RESPONSE || out == DGM_FORM_RESPONSE;
    bool compact = c->compact == DGM_COMPACT_ALWAYS ||
                   (c->compact == DGM_COMPACT_DOCUMENTS && alone && c->from != c->to);
    dgm_mint mint = c->mint;
    mint.seed[0] += c->n_in;
    dgm_mint_seed(&mint, in->item->text);
    dgm_stream_options options = {
        .to = c->to,
        .form = out,
        .params = {.fragment = !run, .alone = alone && !in->in_list, .usage = true, .mint = mint},
        .records = {.answer_source = c->status_is_answer ? DGM_ANSWER_STATUS : DGM_ANSWER_AUTO,
                    .fragment = !run,
                    .say_history = !run || out == DGM_FORM_MESSAGES || out == DGM_FORM_REQUEST,
                    .many_turns = share == SHARED,
                    .open_end = piece,
                    .complete = true,
                    .trusted = true},
        .many_tasks = true,
        .compact = out == DGM_FORM_EVENTS && !piece && compact,
        .compact_simple = compact,
        .sink = {convert_on_frame, c},
    };
    if (c->losses && !c->loss_writing)
        c->loss_writing = dgm_loss_writing_new(c->losses, c->to);
    if (c->losses && c->from != c->to)
        dgm_loss_writing_observe(c->loss_writing, &options);
    /* How many frames one value becomes is not known yet: see dgm_convert_end_stream(). The output of a whole stream that
     * is not events is one document. */
    if (alone)
        dgm_convert_settle_framing(c, true, true);
    else if (share == SHARED && out != DGM_FORM_EVENTS)
        dgm_convert_settle_framing(c, true, out == DGM_FORM_MESSAGES);
    else
        dgm_convert_settle_framing(c, false, in->in_list);
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

/* ---- objects of A2A ---------------------------------------------------------------------------------------- */

static dgm_code convert_stream_object(dgm_converter *c, const struct input *in,
                                      const dgm_frame *frame, dgm_reader *r)
{
    const dgm_object *o = &frame->object;
    bool whole = !in->in_stream && (dgm_a2a_message_in(o) || dgm_a2a_task_in(o));
    dgm_form form = o->kind == DGM_OBJECT_SEND_REQUEST ? DGM_FORM_REQUEST
                    : whole                            ? DGM_FORM_MESSAGES
                                                       : DGM_FORM_EVENTS;
    dgm_stream *own = NULL;
    if (form == DGM_FORM_REQUEST) {
        own = convert_open_stream(c, in, form, OWN);
    } else if (!c->stream) {
        struct input first = *in;
        first.in_stream = in->in_stream && !convert_starts_log(c, o);
        c->stream = convert_open_stream(c, &first, form,
                                        !in->item->alone || in->in_list ? SHARED
                                        : dgm_a2a_message_in(o)         ? PIECE
                                                                        : OWN);
    }
    dgm_code rc = dgm_stream_object(own ? own : c->stream, o, r->arena, r->err);
    if (own) {
        rc = rc ? rc : dgm_stream_end(own, r->err);
        dgm_stream_free(own);
    }
    if (rc && r->err)
        dgm_a2a_name_pointer(c->from, frame, r->err);
    return rc;
}

static dgm_code convert_object(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    static const dgm_loss_path loss_paths[] = {[DGM_PATH_OBJECTS] = DGM_LOSS_A2A,
                                               [DGM_PATH_COMPACTED] = DGM_LOSS_A2A,
                                               [DGM_PATH_DIRECT] = DGM_LOSS_DIRECT,
                                               [DGM_PATH_EVENTS] = DGM_LOSS_READING};
    dgm_frame frame;
    dgm_task compacted;
    dgm_code rc;
    if (in->frame)
        frame = *in->frame;
    else if ((rc = c->from->decode(r, in->value, in->kind, in->in_stream, &frame)))
        return rc;
    /* In 1.0 a message of the user and a request with only this message look the same. */
    if (!c->between_objects && in->in_stream && frame.object.kind == DGM_OBJECT_SEND_REQUEST &&
        !frame.envelope) {
        const dgm_send_request *request = frame.object.it;
        if (!request->configuration && !request->metadata && !request->tenant.p)
            frame.object = (dgm_object){DGM_OBJECT_MESSAGE, request->message};
    }
    enum dgm_path path = dgm_convert_path(c, in, &frame.object, DGM_FORM_NONE);
    const dgm_task *task = path == DGM_PATH_COMPACTED ? dgm_a2a_task_in(&frame.object) : NULL;
    if (task) {
        const dgm_at *at = DGM_AT_LIT(NULL, "task");
        if ((rc = dgm_compact_task(r->arena, task, true, at, &compacted, r->err))) {
            dgm_a2a_name_pointer(c->from, &frame, r->err);
            return rc;
        }
        frame.object = (dgm_object){DGM_OBJECT_TASK, &compacted};
    }
    if (c->losses && in->value)
        dgm_loss_watch_a2a(c->losses, loss_paths[path], c->from, c->to, in->value, &frame);
    return path == DGM_PATH_EVENTS   ? convert_stream_object(c, in, &frame, r)
           : path == DGM_PATH_DIRECT ? convert_object_to_chat(c, in, &frame, r)
                                     : convert_write_object(c, in, &frame, r->err);
}

/* ---- values of other formats ------------------------------------------------------------------------------- */

static dgm_code convert_messages(dgm_converter *c, dgm_stream *stream, const struct input *in,
                                 dgm_reader *r)
{
    dgm_canon_messages messages;
    dgm_code rc = c->from->read_messages(r, in->value, NULL, &messages);
    return rc ? rc : dgm_stream_messages(stream, &messages, r->err);
}

static dgm_code convert_stream_value(dgm_converter *c, const struct input *in, dgm_form form,
                                     dgm_reader *r)
{
    const dgm_codec *from = c->from;
    dgm_canon_input input = {0};
    dgm_code rc;
    if (from->streams_messages && form == DGM_FORM_MESSAGES &&
        (c->stream || (in->in_stream && dgm_frames_what(&c->frames) == DGM_FRAMES_SSE)))
        form = DGM_FORM_EVENTS;
    if (c->losses)
        dgm_loss_watch_canon(c->losses, from, c->to, in->value, form);
    if (form == DGM_FORM_EVENTS) {
        if (!c->stream)
            c->stream =
                convert_open_stream(c, in, form, !in->item->alone || in->in_list ? SHARED : OWN);
        return dgm_stream_value(c->stream, from, r, in->value);
    }
    dgm_auto(dgm_stream_free) dgm_stream *own = convert_open_stream(c, in, form, OWN);
    if (form == DGM_FORM_MESSAGES && from->read_messages)
        rc = convert_messages(c, own, in, r);
    else if (form != DGM_FORM_REQUEST || !from->read_request)
        rc = dgm_stream_value(own, from, r, in->value);
    else if (!(rc = from->read_request(r, in->value, NULL, &input)))
        rc = dgm_stream_request(own, &input, r->err);
    return rc ? rc : dgm_stream_end(own, r->err);
}

/* ---- values ------------------------------------------------------------------------------------------------ */

static dgm_code convert_detect(dgm_converter *c, const struct input *in, dgm_err *err)
{
    const dgm_codec *found = dgm_codec_detect(in->value, c->from, NULL);
    dgm_code rc;
    if (!found)
        return dgm_fail(err, DGM_BAD_PARAMS, in->at,
                        "cannot detect the format: set it with --from");
    if (c->stream && !found->decode && (rc = dgm_convert_end_stream(c, err)))
        return rc;
    c->from = found;
    return DGM_OK;
}

dgm_code dgm_convert_value(dgm_converter *c, const struct input *in, dgm_reader *r)
{
    dgm_form form = DGM_FORM_EVENTS;
    dgm_arena *arena = r->arena;
    dgm_code rc;
    /* A stream of events stays in its format; its dialect of A2A may change. */
    if (c->from_any && !in->frame && !(c->stream && !c->from->decode) &&
        (rc = convert_detect(c, in, r->err)))
        return rc;
    if (!c->settled && (rc = dgm_convert_settle_target(c, r->err)))
        return rc;
    bool found = !c->from->decode && c->from->recognise(in->value, &form);
    bool chat = !c->from->decode &&
                dgm_convert_path(c, in, NULL, found ? form : DGM_FORM_NONE) == DGM_PATH_DIRECT;
    /* An element of an array is written before the next one is read, so both may use the same memory: in an array of a
     * megabyte that saves a third of the time. */
    if (in->in_list && !in->frame && (chat || c->from->decode)) {
        dgm_arena_reset(c->scratch);
        r->arena = c->scratch;
    }
    c->frame_at = SIZE_MAX;
    rc = c->from->decode ? convert_object(c, in, r)
         : chat          ? convert_chat(c, in, r)
                         : convert_stream_value(c, in, form, r);
    r->arena = arena;
    if (!rc && in->item->sse_id.p && c->frame_at != SIZE_MAX)
        convert_put_id(c, in->item->sse_id);
    if (rc && in->at &&
        r->err) /* the pointers start at the element: its index is added only here */
        dgm_err_below(in->at, r->err);
    return rc;
}

/* How many elements of an array are read to detect its format. */
#define DETECT_ELEMENTS 64

/* The format of an array is that of the element with the highest score. */
static const dgm_codec *convert_detect_array(yyjson_val *array, const dgm_codec *guess)
{
    const dgm_codec *best = NULL;
    int best_score = 0;
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        int score = 0;
        const dgm_codec *f = dgm_codec_detect(e, guess, &score);
        if (score > best_score) {
            best = f;
            best_score = score;
        }
        if (i == DETECT_ELEMENTS)
            break;
    }
    return best;
}

bool dgm_convert_message_array(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc)
{
    const dgm_codec *from = c->from_any ? convert_detect_array(in->value, c->from) : c->from;
    yyjson_val *e;
    size_t i, n;
    dgm_form form = DGM_FORM_NONE;
    if (!from || from->decode)
        return false;
    c->from = from;
    if (!c->settled && (*ret_rc = dgm_convert_settle_target(c, r->err)))
        return true;
    if (!from->recognise(in->value, &form))
        form = DGM_FORM_NONE;
    if (dgm_convert_path(c, in, NULL, form) == DGM_PATH_DIRECT || !from->read_messages ||
        !yyjson_arr_size(in->value))
        return false;
    yyjson_arr_foreach (in->value, i, n, e) {
        form = DGM_FORM_EVENTS;
        if (!from->recognise(e, &form) || form != DGM_FORM_MESSAGES)
            return false;
    }
    dgm_auto(dgm_stream_free) dgm_stream *stream =
        convert_open_stream(c, in, DGM_FORM_MESSAGES, SHARED);
    if (c->losses)
        dgm_loss_watch_canon(c->losses, c->from, c->to, in->value, DGM_FORM_MESSAGES);
    *ret_rc = convert_messages(c, stream, in, r);
    if (!*ret_rc)
        *ret_rc = dgm_stream_end(stream, r->err);
    return true;
}
