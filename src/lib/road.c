/* lib/road.c - see road.h. */
#include "lib/road.h"
#include "base/limits.h"
#include "base/list.h"
#include "canon/compact.h"
#include "canon/copy.h"
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "canon/messages_to_events.h"
#include "canon/records_to_events.h"
#include "canon/snapshots_to_events.h"

#include <stdlib.h>

struct dgm_road {
    dgm_road_params params;
    dgm_target *target;
    dgm_err *err; /* of whoever calls */
    /* what goes in, by whom it is: */
    dgm_records_to_events *from;
    dgm_buf task_id; /* of the last that had one */
    const dgm_canon_codec *codec;
    void *decoder;
    /* a reader who builds messages takes a snapshot for all there are: these */
    dgm_canon_fold *fold;
    /* who does not takes of one what it adds */
    dgm_snapshots *spell_out;
    /* compacting: all that came */
    dgm_arena *arena;
    dgm_canon_events kept;
};

dgm_road *dgm_road_new(const dgm_road_params *params)
{
    dgm_road *road = dgm_xcalloc(1, sizeof *road);
    road->params = *params;
    road->target = dgm_target_new(&params->target);
    dgm_buf_init(&road->task_id, DGM_MAX_RECORD_BYTES);
    if (params->compact)
        road->arena = dgm_arena_new();
    return road;
}

void dgm_road_free(dgm_road *road)
{
    if (!road)
        return;
    if (road->decoder)
        road->codec->decoder_free(road->decoder);
    dgm_records_to_events_free(road->from);
    dgm_target_free(road->target);
    dgm_canon_fold_free(road->fold);
    dgm_snapshots_free(road->spell_out);
    dgm_buf_done(&road->task_id);
    dgm_arena_free(road->arena);
    free(road);
}

static dgm_code keep(dgm_road *road, const dgm_canon_event *event)
{
    dgm_canon_events *kept = &road->kept;
    if (dgm_arena_used(road->arena) > DGM_MAX_OUTPUT_BYTES)
        return dgm_fail(road->err, DGM_TOO_LARGE, NULL,
                        "the input of compact is larger than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    kept->at = dgm_list_grow(road->arena, kept->at, kept->n, sizeof *kept->at);
    kept->at[kept->n++] = dgm_canon_copy_event(road->arena, event);
    return DGM_OK;
}

static dgm_code pass(dgm_road *road, const dgm_canon_event *event)
{
    return road->arena ? keep(road, event) : dgm_target_event(road->target, event, road->err);
}

static dgm_code on_passed(void *arg, const dgm_canon_event *event)
{
    return pass(arg, event);
}

/* A text that is another than was said. Past the limit it is a message of its own. */
static dgm_code complete_snapshot(dgm_road *road, const dgm_canon_event *event)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_canon_messages *changed = &event->snapshot.messages;
    dgm_canon_event all = *event;
    for (size_t i = 0; i < changed->n; i++)
        dgm_canon_fold_set_text(road->fold, changed->at[i].id, changed->at[i].content.text);
    if (dgm_canon_fold_is_over(road->fold)) {
        dgm_canon_messages changed_messages = {dgm_new_n(a, dgm_canon_message, changed->n),
                                               changed->n};
        for (size_t i = 0; i < changed_messages.n; i++) {
            changed_messages.at[i] = changed->at[i];
            changed_messages.at[i].id = dgm_arena_printf(a, "%.*s-final", DGM_P(changed->at[i].id));
        }
        return dgm_messages_to_events(a, &changed_messages, &road->params.target.mint, false,
                                      (dgm_canon_sink){on_passed, road});
    }
    all.snapshot.messages = dgm_canon_fold_messages(road->fold, a);
    return pass(road, &all);
}

static dgm_code on_event(void *arg, const dgm_canon_event *event)
{
    dgm_road *road = arg;
    if (road->spell_out)
        return dgm_snapshots_feed(road->spell_out, event, (dgm_canon_sink){on_passed, road});
    if (!road->fold)
        return pass(road, event);
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT && event->snapshot.changed.n)
        return complete_snapshot(road, event);
    dgm_canon_fold_add(road->fold, event);
    return pass(road, event);
}

static dgm_canon_sink sink_of(dgm_road *road, dgm_err *err)
{
    road->err = err;
    return (dgm_canon_sink){on_event, road};
}

/* ---- from A2A ---------------------------------------------------------------------------------------------- */

static dgm_records_to_events *records(dgm_road *road)
{
    if (road->from)
        return road->from;
    const dgm_canon_codec *to = road->params.target.to->canon;
    dgm_form form = road->params.target.form;
    dgm_records_params params = {
        .answer_source = road->params.status_is_answer ? DGM_ANSWER_STATUS : DGM_ANSWER_AUTO,
        .fragment = road->params.target.fragment,
        .say_history = road->params.say_history,
        .many_turns = road->params.many_turns,
        .open_end = road->params.open_end,
        .complete = true,
        .whole_snapshots =
            !to || to->builds_messages || form == DGM_FORM_MESSAGES || form == DGM_FORM_REQUEST,
        .trusted = true};
    return road->from = dgm_records_to_events_new(&params);
}

static dgm_str task_of(const dgm_event *event)
{
    switch (event->kind) {
    case DGM_EVENT_TASK: return event->task->id;
    case DGM_EVENT_MESSAGE: return event->message->task_id;
    case DGM_EVENT_STATUS: return event->status->task_id;
    case DGM_EVENT_ARTIFACT: return event->artifact->task_id;
    case DGM_EVENT_INTERNAL: return event->internal->task_id;
    case DGM_EVENT_NONE: break;
    }
    return (dgm_str){0};
}

/* A log may hold several tasks: when one is over the next has a story of its own. */
static dgm_code begin_task(dgm_road *road, dgm_str task, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (road->from && dgm_records_to_events_is_over(road->from)) {
        dgm_records_to_events_free(road->from);
        road->from = NULL;
        if (road->params.target.form == DGM_FORM_EVENTS && !road->arena) {
            rc = dgm_target_end(road->target, err);
            dgm_target_free(road->target);
            road->target = dgm_target_new(&road->params.target);
        }
    }
    dgm_buf_clear(&road->task_id);
    dgm_buf_add_str(&road->task_id, task);
    return rc;
}

dgm_code dgm_road_event(dgm_road *road, const dgm_event *event, dgm_err *err)
{
    dgm_str task = task_of(event);
    dgm_code rc;
    if (task.n && !dgm_str_eq(task, dgm_buf_str(&road->task_id)) &&
        (rc = begin_task(road, task, err)))
        return rc;
    return dgm_records_to_events_feed(records(road), event, sink_of(road, err), err);
}

dgm_code dgm_road_error(dgm_road *road, dgm_arena *a, const dgm_error *error, dgm_err *err)
{
    dgm_member message = {DGM_STR("error"), dgm_json_make_string(a, error->message)};
    dgm_status_update failed = {.status = {.state = DGM_STATE_FAILED},
                                .metadata = dgm_json_object(a, &message, 1)};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &failed};
    return dgm_road_event(road, &event, err);
}

struct folding {
    dgm_canon_fold *fold;
};

static dgm_code on_folded(void *arg, const dgm_canon_event *event)
{
    dgm_canon_fold_add(((struct folding *)arg)->fold, event);
    return DGM_OK;
}

dgm_code dgm_road_send_request(dgm_road *road, dgm_arena *a, const dgm_send_request *request,
                               dgm_err *err)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from = dgm_records_to_events_new(
        &(dgm_records_params){.fragment = true, .say_history = true, .trusted = true});
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(DGM_MAX_OBJECT_BYTES);
    struct folding folding = {fold};
    dgm_canon_sink sink = {on_folded, &folding};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = request->message};
    dgm_code rc;
    if ((rc = dgm_records_to_events_feed(from, &event, sink, err)) ||
        (rc = dgm_records_to_events_end(from, sink, err)))
        return rc;
    dgm_canon_input input = {.thread_id = request->message->context_id,
                             .messages = dgm_canon_fold_messages(fold, a)};
    return dgm_road_request(road, &input, err);
}

/* ---- from the others --------------------------------------------------------------------------------------- */

dgm_code dgm_road_value(dgm_road *road, const dgm_canon_codec *from, dgm_reader *r, yyjson_val *v)
{
    if (!road->decoder) {
        dgm_stream_params params = {.fragment = road->params.target.fragment,
                                    .compact = road->params.compact_simple,
                                    .mint = road->params.target.mint};
        const dgm_canon_codec *to = road->params.target.to->canon;
        road->codec = from;
        road->decoder = from->decoder_new(&params);
        if (to && to->builds_messages && !from->builds_messages &&
            road->params.target.form == DGM_FORM_EVENTS)
            road->fold = dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES);
        bool runs = road->params.target.form == DGM_FORM_EVENTS ||
                    road->params.target.form == DGM_FORM_RESPONSE;
        if (to && !to->builds_messages && runs)
            road->spell_out = dgm_snapshots_new(road->params.target.mint);
    }
    return road->codec->decoder_feed(road->decoder, r, v, sink_of(road, r->err));
}

void dgm_road_done(dgm_road *road)
{
    if (road->decoder && road->codec->decoder_done)
        road->codec->decoder_done(road->decoder);
}

dgm_code dgm_road_messages(dgm_road *road, const dgm_canon_messages *messages, dgm_err *err)
{
    return dgm_target_messages(road->target, messages, err);
}

dgm_code dgm_road_request(dgm_road *road, const dgm_canon_input *input, dgm_err *err)
{
    return dgm_target_request(road->target, input, err);
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

static dgm_code give_kept(dgm_road *road, dgm_err *err)
{
    dgm_canon_events compact;
    dgm_code rc = DGM_OK;
    dgm_compact_canon(road->arena, &road->kept, &compact);
    for (size_t i = 0; !rc && i < compact.n; i++)
        rc = dgm_target_event(road->target, &compact.at[i], err);
    return rc;
}

dgm_code dgm_road_end(dgm_road *road, dgm_err *err)
{
    dgm_canon_sink sink = sink_of(road, err);
    dgm_code rc = DGM_OK;
    if (road->from)
        rc = dgm_records_to_events_end(road->from, sink, err);
    if (!rc && road->decoder)
        rc = road->codec->decoder_end(road->decoder, sink, err);
    if (!rc && road->arena)
        rc = give_kept(road, err);
    return rc ? rc : dgm_target_end(road->target, err);
}
