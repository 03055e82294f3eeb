/* lib/target.c - see target.h. */
#include "lib/target.h"
#include "base/limits.h"
#include "canon/events_to_messages.h"
#include "canon/events_to_records.h"
#include "canon/messages_to_events.h"
#include "model/fold.h"
#include "model/stamp.h"

#include <stdlib.h>

struct dgm_target {
    dgm_target_params params;
    dgm_stream_params stream;
    dgm_arena *arena;   /* of what is being written */
    dgm_arena *scratch; /* of one event of A2A's */
    dgm_str context_id; /* of the task that is being told of; in arena */
    dgm_buf text;       /* of it, where no encoder has its own */
    dgm_err *err;       /* of whoever calls */
    /* one of these, by what comes out */
    void *encoder;
    dgm_events_to_records *to_model;
    dgm_fold *task;           /* behind to_model: a response of A2A's */
    dgm_canon_fold *messages; /* messages, a request */
    bool folded;              /* and it has some */
    dgm_loss_writing *losses; /* NULL: not requested */
};

/* ---- frames ------------------------------------------------------------------------------------------------ */

static dgm_code give_text(dgm_target *t)
{
    if (t->text.over)
        return dgm_fail(t->err, DGM_TOO_LARGE, NULL,
                        "becomes more than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
    return t->params.sink.on_frame(t->params.sink.arg, (dgm_str){0}, dgm_buf_str(&t->text));
}

static dgm_code give_a2a(dgm_target *t, dgm_object_kind kind, const void *it)
{
    dgm_frame frame = {.object = {kind, (void *)(uintptr_t)it}};
    dgm_writer w = {.out = &t->text};
    dgm_code rc;
    dgm_buf_clear(&t->text);
    if ((rc = t->params.to->a2a->encode(&w, &frame, t->err)))
        return rc;
    return give_text(t);
}

/* What stands by itself says what it is. */
static dgm_code give_message(dgm_target *t, const dgm_message *message)
{
    dgm_message m = *message;
    dgm_message_stamp(t->scratch, &m);
    dgm_code rc = give_a2a(t, DGM_OBJECT_MESSAGE, &m);
    dgm_arena_reset(t->scratch);
    return rc;
}

/* ---- events of A2A's --------------------------------------------------------------------------------------- */

/* {"tool_calls":[...]} or {"tool_results":[...]}, as document 000 has them. */
static const dgm_json *tool_data(dgm_target *t, const dgm_internal *e)
{
    bool call = e->kind == DGM_INTERNAL_TOOL_START;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_str(&b, call ? DGM_STR("{\"tool_calls\":[{\"call_id\":")
                             : DGM_STR("{\"tool_results\":[{\"call_id\":"));
    dgm_json_put_str(&b, e->tool_call_id);
    if (e->tool_name.n) {
        dgm_buf_add_lit(&b, ",\"name\":");
        dgm_json_put_str(&b, e->tool_name);
    }
    dgm_buf_add_str(&b, call ? DGM_STR(",\"arguments\":") : DGM_STR(",\"output\":"));
    if (e->error.p)
        dgm_json_put_str(&b, e->error);
    else
        dgm_json_put(&b, call ? e->arguments : e->result);
    dgm_buf_add_lit(&b, "}]}");
    const dgm_json *data = dgm_json_parse_trusted(t->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return data;
}

/* What agents tell of themselves is for nobody's eyes but ours. Calls and results are part of the
 * conversation, though: the status of one who works has room for them. */
static dgm_code give_internal(dgm_target *t, const dgm_internal *e)
{
    if (e->kind != DGM_INTERNAL_TOOL_START && e->kind != DGM_INTERNAL_TOOL_COMPLETE)
        return DGM_OK;
    dgm_part part = {.kind = DGM_PART_DATA, .data = tool_data(t, e)};
    dgm_message message = {.message_id = dgm_mint_id(&t->params.mint, t->scratch),
                           .context_id = t->context_id,
                           .task_id = e->task_id,
                           .role = DGM_ROLE_AGENT,
                           .parts = {&part, 1}};
    dgm_message_stamp(t->scratch, &message);
    dgm_status_update update = {
        .task_id = e->task_id,
        .context_id = t->context_id,
        .status = {.state = DGM_STATE_WORKING, .message = &message, .timestamp = e->timestamp}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    dgm_code rc = t->task ? dgm_fold_add(t->task, &event, DGM_BY_SERVER, t->err)
                          : give_a2a(t, DGM_OBJECT_STREAM_RESPONSE, &event);
    dgm_arena_reset(t->scratch);
    return rc;
}

static dgm_code on_model(void *arg, const dgm_event *event)
{
    dgm_target *t = arg;
    if (event->kind == DGM_EVENT_INTERNAL)
        return give_internal(t, event->internal);
    if (event->kind == DGM_EVENT_TASK)
        t->context_id = dgm_arena_dup(t->arena, event->task->context_id);
    if (t->task && event->kind != DGM_EVENT_MESSAGE)
        return dgm_fold_add(t->task, event, DGM_BY_SERVER, t->err);
    if (event->kind == DGM_EVENT_MESSAGE && (t->params.alone || t->task))
        return give_message(t, event->message);
    return give_a2a(t, DGM_OBJECT_STREAM_RESPONSE, event);
}

static dgm_code end_a2a(dgm_target *t)
{
    dgm_code rc = dgm_events_to_records_end(t->to_model, t->err);
    const dgm_task *task = !rc && t->task ? dgm_fold_task(t->task) : NULL;
    return task ? give_a2a(t, DGM_OBJECT_TASK, task) : rc;
}

/* ---- messages, requests ------------------------------------------------------------------------------------ */

static dgm_code write_messages(dgm_target *t, const dgm_canon_messages *messages)
{
    const dgm_canon_codec *codec = t->params.to->canon;
    dgm_code rc = DGM_OK;
    if (t->losses)
        dgm_loss_writing_messages(t->losses, messages);
    if (codec)
        return codec->write_messages(messages, &t->stream, t->params.sink, t->err);
    for (size_t i = 0; !rc && i < messages->n; i++) {
        dgm_message m;
        if (dgm_to_message(t->arena, &messages->at[i], &t->params.mint, &m))
            rc = give_message(t, &m);
    }
    return rc;
}

static dgm_code write_request(dgm_target *t, const dgm_canon_input *input)
{
    const dgm_canon_codec *codec = t->params.to->canon;
    if (t->losses)
        dgm_loss_writing_request(t->losses, input);
    if (!codec) {
        dgm_send_made made;
        dgm_target_send_request(t->arena, input, &t->params.mint, &made);
        return give_a2a(t, DGM_OBJECT_SEND_REQUEST, &made.request);
    }
    dgm_writer w = {.out = &t->text, .format = codec->format};
    dgm_buf_clear(&t->text);
    dgm_code rc = codec->write_request(&w, input, &t->stream, t->err);
    return rc ? rc : give_text(t);
}

static dgm_code end_messages(dgm_target *t)
{
    dgm_canon_input input = {0};
    if (dgm_canon_fold_is_over(t->messages))
        return dgm_fail(t->err, DGM_TOO_LARGE, NULL,
                        "the messages become more than the limit object_bytes of %zu",
                        DGM_MAX_OBJECT_BYTES);
    input.messages = dgm_canon_fold_messages(t->messages, t->arena);
    return t->params.form == DGM_FORM_REQUEST ? write_request(t, &input)
                                              : write_messages(t, &input.messages);
}

/* ---- the handle ---------------------------------------------------------------------------------------------- */

dgm_target *dgm_target_new(const dgm_target_params *params)
{
    dgm_target *t = dgm_xcalloc(1, sizeof *t);
    const dgm_canon_codec *codec = params->to->canon;
    bool events = params->form == DGM_FORM_EVENTS || params->form == DGM_FORM_RESPONSE;
    t->params = *params;
    t->stream = (dgm_stream_params){.fragment = params->fragment,
                                    .whole = params->form == DGM_FORM_RESPONSE,
                                    .usage = true,
                                    .mint = params->mint};
    t->arena = dgm_arena_new();
    t->scratch = dgm_arena_new();
    t->losses = params->losses ? dgm_loss_writing_new(params->losses, params->to) : NULL;
    dgm_buf_init(&t->text, DGM_MAX_OUTPUT_BYTES);
    if (!events) {
        t->messages = dgm_canon_fold_new(DGM_MAX_OBJECT_BYTES);
    } else if (codec) {
        t->encoder = codec->encoder_new(&t->stream, params->sink);
    } else {
        dgm_mint other = params->mint; /* no id is made twice: what calls become has ours */
        other.seed[1]++;
        t->to_model = dgm_events_to_records_new(
            &(dgm_events_params){.mint = other, .fragment = params->fragment}, on_model, t);
        if (params->form == DGM_FORM_RESPONSE)
            t->task = dgm_fold_new((dgm_fold_options){.foreign = true});
    }
    return t;
}

void dgm_target_free(dgm_target *t)
{
    if (!t)
        return;
    if (t->encoder)
        t->params.to->canon->encoder_free(t->encoder);
    dgm_events_to_records_free(t->to_model);
    dgm_fold_free(t->task);
    dgm_canon_fold_free(t->messages);
    dgm_loss_writing_free(t->losses);
    dgm_buf_done(&t->text);
    dgm_arena_free(t->arena);
    dgm_arena_free(t->scratch);
    free(t);
}

dgm_code dgm_target_event(dgm_target *t, const dgm_canon_event *event, dgm_err *err)
{
    if (t->params.losses)
        dgm_loss_watch_passed(t->params.losses);
    if (t->losses && (t->encoder || t->to_model))
        dgm_loss_writing_event(t->losses, event);
    if (t->encoder)
        return t->params.to->canon->encoder_feed(t->encoder, event, err);
    t->err = err;
    if (t->to_model)
        return dgm_events_to_records_feed(t->to_model, event, err);
    t->folded = true;
    /* a snapshot of one message stands for that one alone */
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT && event->snapshot.changed.n &&
        event->snapshot.messages.n == 1)
        dgm_canon_fold_set_text(t->messages, event->snapshot.changed,
                                event->snapshot.messages.at[0].content.text);
    else
        dgm_canon_fold_add(t->messages, event);
    return DGM_OK;
}

static dgm_code on_said(void *arg, const dgm_canon_event *event)
{
    dgm_target *t = arg;
    return dgm_target_event(t, event, t->err);
}

/* A response is that of a run: one is made of them. */
static dgm_code say_run(dgm_target *t, bool begins)
{
    dgm_canon_event e = {.kind = begins ? DGM_CANON_RUN_STARTED : DGM_CANON_RUN_FINISHED};
    dgm_mint mint = t->params.mint; /* the same ids both times */
    dgm_str thread_id = dgm_mint_id(&mint, t->arena), run_id = dgm_mint_id(&mint, t->arena);
    if (begins) {
        e.run_started.thread_id = thread_id;
        e.run_started.run_id = run_id;
    } else {
        e.run_finished.thread_id = thread_id;
        e.run_finished.run_id = run_id;
    }
    return dgm_target_event(t, &e, t->err);
}

dgm_code dgm_target_messages(dgm_target *t, const dgm_canon_messages *messages, dgm_err *err)
{
    bool response = t->params.form == DGM_FORM_RESPONSE;
    dgm_canon_codec const *codec = t->params.to->canon;
    dgm_code rc = DGM_OK;
    t->err = err;
    if (t->params.form == DGM_FORM_MESSAGES)
        return write_messages(t, messages);
    if (t->params.form == DGM_FORM_REQUEST)
        return write_request(t, &(dgm_canon_input){.messages = *messages});
    if (response)
        rc = say_run(t, true);
    if (!rc)
        rc = dgm_messages_to_events(t->arena, messages, &t->params.mint,
                                    codec && codec->builds_messages, (dgm_canon_sink){on_said, t});
    return !rc && response ? say_run(t, false) : rc;
}

dgm_code dgm_target_request(dgm_target *t, const dgm_canon_input *input, dgm_err *err)
{
    t->err = err;
    if (t->params.form == DGM_FORM_REQUEST)
        return write_request(t, input);
    return dgm_target_messages(t, &input->messages, err);
}

dgm_code dgm_target_end(dgm_target *t, dgm_err *err)
{
    t->err = err;
    if (t->encoder)
        return t->params.to->canon->encoder_end(t->encoder, err);
    if (t->to_model)
        return end_a2a(t);
    return t->folded ? end_messages(t) : DGM_OK;
}
