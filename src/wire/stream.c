/* wire/stream.c - see stream.h. */
#include "wire/stream.h"
#include "base/limits.h"
#include "base/list.h"
#include "canon/compact.h"
#include "canon/copy.h"
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "canon/messages_to_events.h"
#include "canon/snapshots_to_events.h"

#include <stdlib.h>

struct dgm_stream {
    dgm_stream_options o;
    dgm_err *err; /* the caller's */
    /* input: one of these */
    dgm_records_to_events *from;
    const dgm_codec *codec;
    void *decoder;
    dgm_canon_sink
        input;       /* the first step of an event that was read: most streams only encode it */
    dgm_buf task_id; /* many_tasks: the last one */
    /* in between: complete snapshots for readers that build messages, no snapshots for others */
    dgm_canon_fold *fold;
    dgm_snapshots *snapshots;
    /* compact: all events */
    dgm_arena *arena;
    dgm_canon_events events;
    /* output: an encoder, or the messages that the events add up to */
    void *encoder;
    dgm_canon_fold *messages;
    bool has_messages;
};

/* ---- output ------------------------------------------------------------------------------------------------ */

static void stream_open_output(dgm_stream *s)
{
    dgm_form form = s->o.form;
    if (form == DGM_FORM_EVENTS || form == DGM_FORM_RESPONSE)
        s->encoder = s->o.to->encoder_new(&s->o.params, s->o.sink);
    else
        s->messages = dgm_canon_fold_new(DGM_MAX_OBJECT_BYTES);
}

static void stream_close_output(dgm_stream *s)
{
    if (s->encoder)
        s->o.to->encoder_free(s->encoder);
    if (s->messages)
        dgm_canon_fold_free(s->messages);
    s->encoder = NULL;
    s->messages = NULL;
    s->has_messages = false;
}

static dgm_code stream_encode(void *arg, const dgm_canon_event *event)
{
    dgm_stream *s = arg;
    if (s->encoder)
        return s->o.to->encoder_feed(s->encoder, event, s->err);
    s->has_messages = true;
    /* a snapshot with a changed message holds that message only */
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT && event->snapshot.changed.n &&
        event->snapshot.messages.n == 1)
        dgm_canon_fold_set_text(s->messages, event->snapshot.changed,
                                event->snapshot.messages.at[0].content.text);
    else
        dgm_canon_fold_add(s->messages, event);
    return DGM_OK;
}

dgm_canon_sink dgm_stream_encoder(dgm_stream *s)
{
    s->err = NULL;
    return (dgm_canon_sink){stream_encode, s};
}

static dgm_code stream_write_event(void *arg, const dgm_canon_event *event)
{
    dgm_stream *s = arg;
    return s->o.on_event ? s->o.on_event(s->o.arg, event, (dgm_canon_sink){stream_encode, s})
                         : stream_encode(s, event);
}

static dgm_code stream_write_messages(dgm_stream *s, const dgm_canon_messages *messages)
{
    if (s->o.on_messages)
        s->o.on_messages(s->o.arg, messages);
    return s->o.to->write_messages(messages, &s->o.params, s->o.sink, s->err);
}

static dgm_code stream_write_request(dgm_stream *s, const dgm_canon_input *input)
{
    dgm_buf text;
    dgm_buf_init(&text, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &text, .format = s->o.to->format};
    if (s->o.on_request)
        s->o.on_request(s->o.arg, input);
    dgm_code rc = s->o.to->write_request(&w, input, &s->o.params, s->err);
    if (!rc && text.over)
        rc = dgm_fail(s->err, DGM_TOO_LARGE, NULL,
                      "becomes more than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
    if (!rc)
        rc = s->o.sink.on_frame(s->o.sink.arg, (dgm_str){0}, dgm_buf_str(&text));
    dgm_buf_done(&text);
    return rc;
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static dgm_code stream_store(void *arg, const dgm_canon_event *event)
{
    dgm_stream *s = arg;
    dgm_canon_events *list = &s->events;
    if (dgm_arena_used(s->arena) > DGM_MAX_OUTPUT_BYTES)
        return dgm_fail(s->err, DGM_TOO_LARGE, NULL,
                        "the input of compact is larger than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    list->at = dgm_list_grow(s->arena, list->at, list->n, sizeof *list->at);
    list->at[list->n++] = dgm_canon_copy_event(s->arena, event);
    return DGM_OK;
}

static dgm_code stream_pass(void *arg, const dgm_canon_event *event)
{
    dgm_stream *s = arg;
    return s->arena ? stream_store(s, event) : stream_write_event(s, event);
}

/* A changed text, for a reader that builds messages. Past the limit of the fold it is a message of its own. */
static dgm_code stream_complete_snapshot(dgm_stream *s, const dgm_canon_event *event)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_canon_messages *changed = &event->snapshot.messages;
    dgm_canon_event all = *event;
    for (size_t i = 0; i < changed->n; i++)
        dgm_canon_fold_set_text(s->fold, changed->at[i].id, changed->at[i].content.text);
    if (dgm_canon_fold_is_over(s->fold)) {
        dgm_canon_messages final = {dgm_new_n(a, dgm_canon_message, changed->n), changed->n};
        for (size_t i = 0; i < final.n; i++) {
            final.at[i] = changed->at[i];
            final.at[i].id = dgm_arena_printf(a, "%.*s-final", DGM_P(changed->at[i].id));
        }
        return dgm_messages_to_events(a, &final, &s->o.params.mint, false,
                                      (dgm_canon_sink){stream_pass, s});
    }
    all.snapshot.messages = dgm_canon_fold_messages(s->fold, a);
    return stream_pass(s, &all);
}

/* Only if there is a fold or a list of snapshots. */
static dgm_code stream_on_event(void *arg, const dgm_canon_event *event)
{
    dgm_stream *s = arg;
    if (s->snapshots)
        return dgm_snapshots_feed(s->snapshots, event, (dgm_canon_sink){stream_pass, s});
    if (s->fold && event->kind == DGM_CANON_MESSAGES_SNAPSHOT && event->snapshot.changed.n)
        return stream_complete_snapshot(s, event);
    if (s->fold)
        dgm_canon_fold_add(s->fold, event);
    return stream_pass(s, event);
}

/* ---- the handle -------------------------------------------------------------------------------------------- */

dgm_stream *dgm_stream_new(const dgm_stream_options *options)
{
    dgm_stream *s = dgm_xcalloc(1, sizeof *s);
    dgm_form form = options->form;
    s->o = *options;
    s->o.params.whole = form == DGM_FORM_RESPONSE;
    s->o.records.whole_snapshots = options->to->builds_messages || options->to->own_snapshots ||
                                   form == DGM_FORM_MESSAGES || form == DGM_FORM_REQUEST;
    dgm_buf_init(&s->task_id, DGM_MAX_RECORD_BYTES);
    if (options->compact)
        s->arena = dgm_arena_new();
    s->input = (dgm_canon_sink){s->arena        ? stream_store
                                : s->o.on_event ? stream_write_event
                                                : stream_encode,
                                s};
    stream_open_output(s);
    if (!options->many_tasks)
        s->from = dgm_records_to_events_new(&s->o.records);
    return s;
}

void dgm_stream_free(dgm_stream *s)
{
    if (!s)
        return;
    if (s->decoder)
        s->codec->decoder_free(s->decoder);
    dgm_records_to_events_free(s->from);
    stream_close_output(s);
    if (s->fold)
        dgm_canon_fold_free(s->fold);
    if (s->snapshots)
        dgm_snapshots_free(s->snapshots);
    dgm_buf_done(&s->task_id);
    dgm_arena_free(s->arena);
    free(s);
}

/* ---- records ----------------------------------------------------------------------------------------------- */

/* When one task is over, the next one is a run of its own. */
static dgm_code stream_set_task(dgm_stream *s, const dgm_event *event)
{
    dgm_code rc = DGM_OK;
    dgm_str task_id = {0};
    switch (event->kind) {
    case DGM_EVENT_TASK: task_id = event->task->id; break;
    case DGM_EVENT_MESSAGE: task_id = event->message->task_id; break;
    case DGM_EVENT_STATUS: task_id = event->status->task_id; break;
    case DGM_EVENT_ARTIFACT: task_id = event->artifact->task_id; break;
    case DGM_EVENT_INTERNAL: task_id = event->internal->task_id; break;
    case DGM_EVENT_NONE: break;
    }
    if (!task_id.n || dgm_str_eq(task_id, dgm_buf_str(&s->task_id)))
        return DGM_OK;
    if (s->from && dgm_records_to_events_is_over(s->from)) {
        dgm_records_to_events_free(s->from);
        s->from = NULL;
        if (s->o.form == DGM_FORM_EVENTS && !s->arena) {
            rc = dgm_stream_end_output(s, s->err);
            stream_close_output(s);
            stream_open_output(s);
        }
    }
    dgm_buf_clear(&s->task_id);
    dgm_buf_add_str(&s->task_id, task_id);
    return rc;
}

dgm_code dgm_stream_record(dgm_stream *s, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    s->err = err;
    if (s->o.many_tasks && (rc = stream_set_task(s, event)))
        return rc;
    if (!s->from)
        s->from = dgm_records_to_events_new(&s->o.records);
    return dgm_records_to_events_feed(s->from, event, s->input, err);
}

bool dgm_stream_is_over(const dgm_stream *s)
{
    return s->from && dgm_records_to_events_is_over(s->from);
}

/* ---- values of other formats ------------------------------------------------------------------------------- */

static void stream_open_decoder(dgm_stream *s, const dgm_codec *from)
{
    const dgm_codec *to = s->o.to;
    dgm_stream_params params = {
        .fragment = s->o.params.fragment, .compact = s->o.compact_simple, .mint = s->o.params.mint};
    s->codec = from;
    s->decoder = from->decoder_new(&params);
    if (to->builds_messages && !from->builds_messages && s->o.form == DGM_FORM_EVENTS)
        s->fold = dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES);
    if (!to->builds_messages && !to->own_snapshots && s->encoder)
        s->snapshots = dgm_snapshots_new(s->o.params.mint, to->format == DGM_FORMAT_RESPONSES ||
                                                               to->format == DGM_FORMAT_AI_SDK);
    if (s->fold || s->snapshots)
        s->input.on_event = stream_on_event;
}

dgm_code dgm_stream_value(dgm_stream *s, const dgm_codec *from, dgm_reader *r, yyjson_val *v)
{
    s->err = r->err;
    if (!s->decoder)
        stream_open_decoder(s, from);
    return s->codec->decoder_feed(s->decoder, r, v, s->input);
}

void dgm_stream_done(dgm_stream *s)
{
    if (s->decoder && s->codec->decoder_done)
        s->codec->decoder_done(s->decoder);
}

/* ---- messages and requests --------------------------------------------------------------------------------- */

/* A response belongs to a run: one is made up for messages that have none. */
static dgm_code stream_write_run(dgm_stream *s, dgm_arena *a, bool start)
{
    dgm_canon_event e = {.kind = start ? DGM_CANON_RUN_STARTED : DGM_CANON_RUN_FINISHED};
    dgm_mint mint = s->o.params.mint; /* a copy: the same ids both times */
    dgm_str thread_id = dgm_mint_id(&mint, a), run_id = dgm_mint_id(&mint, a);
    if (start) {
        e.run_started.thread_id = thread_id;
        e.run_started.run_id = run_id;
    } else {
        e.run_finished.thread_id = thread_id;
        e.run_finished.run_id = run_id;
    }
    return stream_write_event(s, &e);
}

dgm_code dgm_stream_messages(dgm_stream *s, const dgm_canon_messages *messages, dgm_err *err)
{
    bool response = s->o.form == DGM_FORM_RESPONSE;
    dgm_code rc = DGM_OK;
    s->err = err;
    if (s->o.form == DGM_FORM_MESSAGES)
        return stream_write_messages(s, messages);
    if (s->o.form == DGM_FORM_REQUEST)
        return stream_write_request(s, &(dgm_canon_input){.messages = *messages});
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (response)
        rc = stream_write_run(s, a, true);
    if (!rc)
        rc = dgm_messages_to_events(a, messages, &s->o.params.mint, s->o.to->builds_messages,
                                    (dgm_canon_sink){stream_write_event, s});
    return !rc && response ? stream_write_run(s, a, false) : rc;
}

dgm_code dgm_stream_request(dgm_stream *s, const dgm_canon_input *input, dgm_err *err)
{
    s->err = err;
    if (s->o.form == DGM_FORM_REQUEST)
        return stream_write_request(s, input);
    return dgm_stream_messages(s, &input->messages, err);
}

/* ---- objects ----------------------------------------------------------------------------------------------- */

static dgm_code stream_fold(void *arg, const dgm_canon_event *event)
{
    dgm_canon_fold_add(arg, event);
    return DGM_OK;
}

static dgm_code stream_send_request(dgm_stream *s, dgm_arena *a, const dgm_send_request *request,
                                    dgm_err *err)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from = dgm_records_to_events_new(
        &(dgm_records_params){.fragment = true, .say_history = true, .trusted = true});
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(DGM_MAX_OBJECT_BYTES);
    dgm_canon_sink sink = {stream_fold, fold};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = request->message};
    dgm_code rc;
    if ((rc = dgm_records_to_events_feed(from, &event, sink, err)) ||
        (rc = dgm_records_to_events_end(from, sink, err)))
        return rc;
    dgm_canon_input input = {.thread_id = request->message->context_id,
                             .messages = dgm_canon_fold_messages(fold, a)};
    return dgm_stream_request(s, &input, err);
}

static dgm_code stream_error(dgm_stream *s, dgm_arena *a, const dgm_peer_error *error, dgm_err *err)
{
    dgm_member message = {DGM_STR("error"), dgm_json_make_string(a, error->message)};
    dgm_status_update failed = {.status = {.state = DGM_STATE_FAILED},
                                .metadata = dgm_json_object(a, &message, 1)};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &failed};
    return dgm_stream_record(s, &event, err);
}

dgm_code dgm_stream_object(dgm_stream *s, const dgm_object *o, dgm_arena *a, dgm_err *err)
{
    dgm_event event = {.any = o->it};
    switch (o->kind) {
    case DGM_OBJECT_SEND_REQUEST: return stream_send_request(s, a, o->it, err);
    case DGM_OBJECT_ERROR: return stream_error(s, a, o->it, err);
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE: return dgm_stream_record(s, o->it, err);
    case DGM_OBJECT_MESSAGE: event.kind = DGM_EVENT_MESSAGE; break;
    case DGM_OBJECT_TASK: event.kind = DGM_EVENT_TASK; break;
    case DGM_OBJECT_STATUS_UPDATE: event.kind = DGM_EVENT_STATUS; break;
    case DGM_OBJECT_ARTIFACT_UPDATE: event.kind = DGM_EVENT_ARTIFACT; break;
    case DGM_OBJECT_INTERNAL_EVENT: event.kind = DGM_EVENT_INTERNAL; break;
    case DGM_OBJECT_EMPTY: return DGM_OK;
    default:
        return dgm_fail(
            err, DGM_UNSUPPORTED_OPERATION, NULL,
            "is not part of a conversation, and %s has nothing else: \"%s\" stays in A2A",
            s->o.to->name, dgm_object_kind_name(o->kind));
    }
    return dgm_stream_record(s, &event, err);
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static dgm_code stream_write_compacted(dgm_stream *s)
{
    dgm_canon_events compact;
    dgm_code rc = DGM_OK;
    dgm_compact_canon(s->arena, &s->events, &compact);
    for (size_t i = 0; !rc && i < compact.n; i++)
        rc = stream_write_event(s, &compact.at[i]);
    return rc;
}

void dgm_stream_set_turn(dgm_stream *s, uint32_t turn)
{
    if (s->from)
        dgm_records_to_events_set_turn(s->from, turn);
    else
        s->o.records.turn = turn;
}

dgm_code dgm_stream_end_input(dgm_stream *s, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    s->err = err;
    if (s->from)
        rc = dgm_records_to_events_end(s->from, s->input, err);
    if (!rc && s->decoder)
        rc = s->codec->decoder_end(s->decoder, s->input, err);
    return !rc && s->arena ? stream_write_compacted(s) : rc;
}

dgm_code dgm_stream_end_output(dgm_stream *s, dgm_err *err)
{
    s->err = err;
    if (s->encoder)
        return s->o.to->encoder_end(s->encoder, err);
    if (!s->has_messages)
        return DGM_OK;
    if (dgm_canon_fold_is_over(s->messages))
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the messages become more than the limit object_bytes of %zu",
                        DGM_MAX_OBJECT_BYTES);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_input input = {.messages = dgm_canon_fold_messages(s->messages, a)};
    return s->o.form == DGM_FORM_REQUEST ? stream_write_request(s, &input)
                                         : stream_write_messages(s, &input.messages);
}

dgm_code dgm_stream_end(dgm_stream *s, dgm_err *err)
{
    dgm_code rc = dgm_stream_end_input(s, err);
    return rc ? rc : dgm_stream_end_output(s, err);
}
