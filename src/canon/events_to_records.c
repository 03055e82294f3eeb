/* canon/events_to_records.c - see events_to_records.h: the run, its states, what is beside the answer. */
#include "canon/events_to_records.h"
#include "canon/events_to_records_int.h"
#include "canon/interrupts.h"
#include "model/form.h"
#include "model/stamp.h"

#include <stdlib.h>

static void init_items(dgm_events_to_records *m)
{
    dgm_map_init(&m->texts);
    dgm_map_init(&m->calls);
    dgm_map_init(&m->subagents);
    dgm_map_init(&m->artifacts);
    dgm_map_init(&m->known);
    m->last_text = SIZE_MAX;
}

dgm_events_to_records *dgm_events_to_records_new(const dgm_events_params *params,
                                                 dgm_on_record_event on_event, void *arg)
{
    dgm_events_to_records *m = dgm_xcalloc(1, sizeof *m);
    m->params = *params;
    m->on_event = on_event;
    m->arg = arg;
    m->arena = dgm_arena_new();
    m->scratch = dgm_arena_new();
    init_items(m);
    dgm_buf_init(&m->waiting_text, SIZE_MAX);
    dgm_buf_init(&m->waiting_results, SIZE_MAX);
    return m;
}

static void forget_items(dgm_events_to_records *m)
{
    for (size_t i = 0; i < m->n_items; i++)
        dgm_buf_done(&m->items[i].text);
    m->n_items = 0;
    dgm_map_done(&m->texts);
    dgm_map_done(&m->calls);
    dgm_map_done(&m->subagents);
    dgm_map_done(&m->artifacts);
    dgm_map_done(&m->known);
}

void dgm_events_to_records_free(dgm_events_to_records *m)
{
    if (!m)
        return;
    forget_items(m);
    free(m->items);
    dgm_buf_done(&m->waiting_text);
    dgm_buf_done(&m->waiting_results);
    dgm_arena_free(m->arena);
    dgm_arena_free(m->scratch);
    free(m);
}

/* ---- giving ------------------------------------------------------------------------------------------------- */

void dgm_to_out(dgm_events_to_records *m, const dgm_event *event)
{
    if (!m->rc)
        m->rc = m->on_event(m->arg, event);
}

static dgm_str time_of(dgm_events_to_records *m)
{
    bool told = m->now && m->now->timestamp.set && m->now->timestamp.value >= 0;
    if (!told && !m->params.now)
        return (dgm_str){0};
    return dgm_time_text(m->scratch, told ? m->now->timestamp.value : m->params.now);
}

void dgm_to_internal(dgm_events_to_records *m, dgm_internal *e)
{
    e->task_id = m->task_id;
    e->timestamp = time_of(m);
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = e});
}

void dgm_to_status(dgm_events_to_records *m, dgm_task_state state, dgm_message *message)
{
    dgm_status_update u = {.task_id = m->task_id,
                           .context_id = m->context_id,
                           .status = {.state = state, .message = message, .timestamp = time_of(m)},
                           .metadata = m->metadata};
    m->metadata = NULL;
    m->working |= state == DGM_STATE_WORKING;
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_STATUS, .status = &u});
}

void dgm_to_work(dgm_events_to_records *m)
{
    if (!m->working && m->in_run)
        dgm_to_status(m, DGM_STATE_WORKING, NULL);
}

dgm_message *dgm_to_agent_message(dgm_events_to_records *m, dgm_str id, dgm_part part)
{
    dgm_message *message = dgm_new(m->scratch, dgm_message);
    dgm_part *parts = dgm_new(m->scratch, dgm_part);
    *parts = part;
    *message = (dgm_message){.message_id = id.n ? id : dgm_mint_id(&m->params.mint, m->scratch),
                             .context_id = m->context_id,
                             .task_id = m->task_id,
                             .role = DGM_ROLE_AGENT,
                             .parts = {parts, 1}};
    return message;
}

static dgm_message *text_message(dgm_events_to_records *m, dgm_str text, dgm_str id)
{
    return dgm_to_agent_message(m, id, (dgm_part){.kind = DGM_PART_TEXT, .content = text});
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

static void to_records_start(dgm_events_to_records *m, const dgm_canon_event *e)
{
    const dgm_canon_input *input = e->run_started.input;
    dgm_to_flush(m);
    forget_items(m);
    init_items(m);
    m->task_id = dgm_arena_dup(m->arena, e->run_started.run_id);
    m->context_id = dgm_arena_dup(m->arena, e->run_started.thread_id);
    m->in_run = true;
    m->working = m->finished = false;
    dgm_task t = {.id = m->task_id,
                  .context_id = m->context_id,
                  .status = {.state = DGM_STATE_SUBMITTED, .timestamp = time_of(m)}};
    if (input) {
        t.history.at = dgm_new_n(m->scratch, dgm_message, input->messages.n);
        for (size_t i = 0; i < input->messages.n; i++) {
            const dgm_canon_message *from = &input->messages.at[i];
            dgm_map_put(&m->known, dgm_arena_dup(m->arena, from->id), 0);
            if (dgm_to_message(m->scratch, from, &m->params.mint, &t.history.at[t.history.n]))
                t.history.n++;
        }
    }
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_TASK, .task = &t});
}

static void finish_waiting(dgm_events_to_records *m, const dgm_canon_outcome *o)
{
    const dgm_json *calls = dgm_to_call_data(m, &o->pending_tool_call_ids);
    dgm_part part = {.kind = DGM_PART_DATA, .data = calls};
    dgm_to_status(m, DGM_STATE_INPUT_REQUIRED,
                  calls ? dgm_to_agent_message(m, (dgm_str){0}, part) : NULL);
}

/* The inverse of on_interrupted() in records_to_events_status.c. */
static dgm_message *question_message(dgm_events_to_records *m, const dgm_canon_interrupts *asked)
{
    dgm_parts requests = dgm_interrupts_parts(m->scratch, asked);
    dgm_str text = dgm_interrupts_text(m->scratch, asked);
    if (!text.n && !requests.n)
        return NULL;
    dgm_message *message = text.n ? text_message(m, text, (dgm_str){0})
                                  : dgm_to_agent_message(m, (dgm_str){0}, requests.at[0]);
    message->metadata = dgm_interrupts_metadata(m->scratch, asked);
    if (requests.n && text.n) {
        dgm_part *parts = dgm_new_n(m->scratch, dgm_part, requests.n + 1);
        parts[0] = message->parts.at[0];
        memcpy(parts + 1, requests.at, requests.n * sizeof *parts);
        message->parts = (dgm_parts){parts, requests.n + 1};
    } else if (requests.n) {
        message->parts = requests;
    }
    return message;
}

static void finish_asking(dgm_events_to_records *m, const dgm_canon_outcome *o)
{
    const dgm_canon_interrupt *asked = o->interrupts.n ? &o->interrupts.at[0] : NULL;
    bool auth = asked && dgm_str_is(asked->reason, DGM_REASON_AUTH);
    dgm_to_status(m, auth ? DGM_STATE_AUTH_REQUIRED : DGM_STATE_INPUT_REQUIRED,
                  asked ? question_message(m, &o->interrupts) : NULL);
}

static void to_records_finish(dgm_events_to_records *m, const dgm_canon_event *e)
{
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    const struct to_item *last = m->last_text < m->n_items ? &m->items[m->last_text] : NULL;
    dgm_to_close_items(m);
    dgm_to_usage(m, &e->run_finished.usage);
    if (o->pending_tool_call_ids.n)
        finish_waiting(m, o);
    else if (o->kind == DGM_CANON_INTERRUPT)
        finish_asking(m, o);
    else if (o->kind == DGM_CANON_CANCELLED)
        dgm_to_status(m, DGM_STATE_CANCELED, NULL);
    else if (last && last->text.n && !last->text.over)
        dgm_to_status(m, DGM_STATE_COMPLETED, text_message(m, dgm_buf_str(&last->text), last->id));
    else
        dgm_to_status(m, DGM_STATE_COMPLETED, NULL);
    m->finished = true;
    m->in_run = false;
}

static void fail_run(dgm_events_to_records *m, dgm_str message, dgm_str code,
                     const dgm_canon_usages *usage)
{
    bool canceled =
        dgm_str_is(code, "cancelled") || dgm_str_is(code, "canceled") || dgm_str_is(code, "abort");
    bool rejected = dgm_str_is(code, "rejected");
    dgm_to_close_items(m);
    if (usage)
        dgm_to_usage(m, usage);
    if (rejected) {
        dgm_to_status(m, DGM_STATE_REJECTED, text_message(m, message, (dgm_str){0}));
    } else if (canceled) {
        dgm_to_status(m, DGM_STATE_CANCELED, NULL);
    } else {
        m->metadata = m->metadata ? dgm_metadata_with_error(m->scratch, m->metadata, message)
                                  : dgm_error_metadata(m->scratch, message);
        dgm_to_status(m, DGM_STATE_FAILED, NULL);
    }
    m->finished = true;
    m->in_run = false;
}

/* ---- beside the answer ------------------------------------------------------------------------------------------ */

static void indicate(dgm_events_to_records *m, const dgm_json *content)
{
    dgm_to_status(
        m, DGM_STATE_WORKING,
        dgm_to_agent_message(m, (dgm_str){0}, (dgm_part){.kind = DGM_PART_DATA, .data = content}));
}

static void to_records_custom(dgm_events_to_records *m, dgm_str name, const dgm_json *value)
{
    dgm_internal internal = {.kind = DGM_INTERNAL_CUSTOM, .name = name, .value = value};
    dgm_to_internal(m, &internal);
}

static void on_activity(dgm_events_to_records *m, const dgm_canon_event *e)
{
    if (!dgm_str_is(dgm_json_str_member(e->activity.content, "type"), "status-indicator"))
        to_records_custom(m, DGM_STR("ag-ui:activity"), e->activity.content);
    else if (!dgm_json_get(e->activity.content, DGM_STR("agent"))) /* else SUBAGENT_* reported it */
        indicate(m, e->activity.content);
}

static void on_subagent(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_find(m, &m->subagents, e->subagent_run_id);
    if (!it && e->kind != DGM_CANON_SUBAGENT_STARTED)
        return;
    if (!it) { /* its name is needed again when it is done */
        it = dgm_to_open(m, &m->subagents, e->subagent_run_id);
        it->name = dgm_arena_dup(m->arena, e->subagent.name);
        it->parent = dgm_arena_dup(m->arena, e->subagent.description);
    }
    dgm_str url = it->parent;
    dgm_member agent[] = {{DGM_STR("name"), dgm_json_make_string(m->scratch, it->name)},
                          {DGM_STR("url"), dgm_json_make_string(m->scratch, url)}};
    dgm_member members[] = {
        {DGM_STR("type"), dgm_json_make_string(m->scratch, DGM_STR("status-indicator"))},
        {DGM_STR("text"), dgm_json_make_string(m->scratch, it->name)},
        {DGM_STR("displayAs"), dgm_json_make_string(m->scratch, DGM_STR("loading"))},
        {DGM_STR("agent"), dgm_json_object(m->scratch, agent, url.n ? 2 : 1)},
    };
    indicate(m, dgm_json_object(m->scratch, members, 4));
}

/* [{"op":"add","path":"/name","value":...}] is a member of the state; other patches are custom records. */
static void on_state_delta(dgm_events_to_records *m, const dgm_json *patch)
{
    yyjson_val *op = yyjson_arr_get_first((yyjson_val *)(uintptr_t)patch);
    dgm_str path = dgm_json_str_member(op, "path");
    bool simple = yyjson_arr_size((yyjson_val *)(uintptr_t)patch) == 1 && path.n > 1 &&
                  dgm_json_get(op, DGM_STR("value")) &&
                  dgm_str_is(dgm_json_str_member(op, "op"), "add") && path.p[0] == '/' &&
                  !memchr(path.p + 1, '/', path.n - 1) && !memchr(path.p, '~', path.n);
    if (!simple) {
        to_records_custom(m, DGM_STR(DGM_NAME_STATE_DELTA), patch);
        return;
    }
    dgm_internal internal = {.kind = DGM_INTERNAL_STATE,
                             .name = {path.p + 1, path.n - 1},
                             .value = dgm_json_get(op, DGM_STR("value"))};
    dgm_to_internal(m, &internal);
}

static void on_step(dgm_events_to_records *m, const dgm_canon_event *e)
{
    bool starts = e->kind == DGM_CANON_STEP_STARTED;
    dgm_internal internal = {
        .kind = DGM_INTERNAL_STEP, .name = e->step.name, .success = starts ? DGM_UNSET : DGM_TRUE};
    dgm_to_work(m);
    if (!dgm_str_is(e->step.name, "working"))
        dgm_to_internal(m, &internal);
}

static void on_artifact(dgm_events_to_records *m, const dgm_canon_event *e)
{
    dgm_artifact_update u = {
        .task_id = m->task_id, .context_id = m->context_id, .artifact = *e->artifact.artifact};
    dgm_str id = u.artifact.artifact_id;
    /* The other parts are sent besides the text and must not replace it. */
    bool append =
        e->artifact.has_text ? dgm_map_get(&m->artifacts, id) != NULL : e->artifact.append;
    u.append = append ? DGM_TRUE : DGM_FALSE;
    u.last_chunk = e->artifact.last_chunk ? DGM_TRUE : DGM_FALSE;
    dgm_map_put(&m->artifacts, dgm_arena_dup(m->arena, id), 0);
    dgm_to_work(m);
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &u});
}

static void on_custom(dgm_events_to_records *m, const dgm_canon_event *e)
{
    const dgm_json *value = e->custom.value;
    if (dgm_str_is(e->custom.name, DGM_NAME_METADATA) &&
        yyjson_is_obj((yyjson_val *)(uintptr_t)value)) {
        m->metadata = dgm_json_copy(m->arena, value);
        return;
    }
    dgm_to_work(m);
    to_records_custom(m, e->custom.name, value);
}

static void within_run(dgm_events_to_records *m, const dgm_canon_event *e)
{
    dgm_internal internal = {.kind = DGM_INTERNAL_REASONING};
    switch ((int)e->kind) {
    case DGM_CANON_RUN_FINISHED: to_records_finish(m, e); break;
    case DGM_CANON_RUN_ERROR:
        fail_run(m, e->run_error.message, e->run_error.code, &e->run_error.usage);
        break;
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED: on_step(m, e); break;
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
        dgm_to_work(m);
        internal.text = e->text.delta;
        dgm_to_internal(m, &internal);
        break;
    case DGM_CANON_STATE_SNAPSHOT:
        internal.kind = DGM_INTERNAL_STATE;
        internal.value = e->state.snapshot ? e->state.snapshot
                                           : dgm_json_parse_trusted(m->scratch, DGM_STR("null"));
        dgm_to_internal(m, &internal);
        break;
    case DGM_CANON_STATE_DELTA: on_state_delta(m, e->state_delta.patch); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: on_activity(m, e); break;
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: on_subagent(m, e); break;
    case DGM_CANON_CUSTOM: on_custom(m, e); break;
    case DGM_CANON_ARTIFACT: on_artifact(m, e); break;
    default: break; /* has no place in A2A */
    }
}

/* RUN_ERROR may be the only event. After the end it is ignored: tasks that ended do not change. */
static bool begin_late(dgm_events_to_records *m)
{
    if (m->finished)
        return false;
    m->task_id = dgm_mint_id(&m->params.mint, m->arena);
    m->context_id = dgm_mint_id(&m->params.mint, m->arena);
    dgm_to_flush(m);
    return m->in_run = true;
}

dgm_code dgm_events_to_records_feed(dgm_events_to_records *m, const dgm_canon_event *e,
                                    dgm_err *err)
{
    m->err = err;
    m->now = e;
    switch ((int)e->kind) {
    case DGM_CANON_RUN_STARTED: to_records_start(m, e); break;
    case DGM_CANON_TEXT_MESSAGE_START: dgm_to_start_text(m, e); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT: dgm_to_add_text(m, e); break;
    case DGM_CANON_TEXT_MESSAGE_END: dgm_to_end_text(m, e); break;
    case DGM_CANON_TOOL_CALL_START: dgm_to_start_call(m, e); break;
    case DGM_CANON_TOOL_CALL_ARGS: dgm_to_add_arguments(m, e); break;
    case DGM_CANON_TOOL_CALL_END: dgm_to_end_call(m, e); break;
    case DGM_CANON_TOOL_CALL_RESULT: dgm_to_result(m, e); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: dgm_to_snapshot(m, &e->snapshot.messages); break;
    default:
        if (m->in_run || (e->kind == DGM_CANON_RUN_ERROR && begin_late(m)))
            within_run(m, e);
        break;
    }
    m->now = NULL;
    dgm_arena_reset(m->scratch);
    return m->rc;
}

dgm_code dgm_events_to_records_end(dgm_events_to_records *m, dgm_err *err)
{
    m->err = err;
    dgm_to_flush(m);
    if (m->in_run && !m->params.fragment)
        fail_run(m, DGM_STR("The stream ended before its run did"), DGM_STR("incomplete"), NULL);
    return m->rc;
}
