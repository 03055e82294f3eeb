/*
 * wire/service_answer.c - see service.h: the answer of a turn.
 *
 * Services leave out what their clients do not need. Between the decoder and canon/events_to_records.h this file completes
 * the canonical events: which calls wait for the caller, what an interrupt asks, which messages of a snapshot are new.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/events_to_records.h"
#include "canon/interrupts.h"
#include "canon/message_content.h"
#include "canon/messages_to_events.h"
#include "canon/records_to_events.h"
#include "wire/service_int.h"
#include "json/build.h"

#include <stdlib.h>

#define CUT_SHORT "the answer of the agent's server ended in the middle"
#define DEFAULT_QUESTION "The agent needs an answer."

struct answer_call {
    dgm_str id, name;
    dgm_buf arguments;
    bool has_result;
    bool has_text_behind; /* the agent went on without the result */
};

struct answer_text {
    dgm_str id;
    dgm_sum sum;
};

struct dgm_service_answer {
    dgm_service_answer_params params;
    dgm_mint mint;
    dgm_arena *arena, *scratch;
    dgm_err *err; /* the caller's */
    /* input: one of these */
    void *decoder;
    dgm_records_to_events *from;
    dgm_events_to_records *to;
    bool has_begun, is_over, is_ending, is_working;
    dgm_code rc;
    dgm_str id, error;
    struct answer_call *calls;
    size_t n_calls, cap_calls;
    struct answer_text *texts;
    size_t n_texts, cap_texts;
    dgm_buf last_text;
    dgm_buf state; /* ag-ui: as JSON; `over`: it is not known any more */
    bool has_new_state;
    const dgm_json *custom_interrupt; /* of LangGraph's AG-UI servers; in `arena` */
    dgm_service_approvals approvals;  /* likewise */
};

static bool answer_is_agui(const dgm_service_answer *s)
{
    dgm_format_id format = s->params.codec->format;
    return format == DGM_FORMAT_AG_UI || format == DGM_FORMAT_AG_UI_0;
}

/* ---- events of A2A --------------------------------------------------------------------------------------------- */

/* Ids of artifacts are unique in a run of the service. The task may have more than one run. */
static dgm_str own_artifact_id(dgm_service_answer *s, dgm_str id)
{
    const dgm_task *task = s->params.turn->task;
    for (size_t i = 0; task && i < task->artifacts.n; i++) {
        if (dgm_str_eq(task->artifacts.at[i].artifact_id, id))
            return dgm_arena_printf(s->scratch, "%.*s-%zu", DGM_P(id), task->artifacts.n + 1);
    }
    return id;
}

static dgm_code answer_emit_status(dgm_service_answer *s, const dgm_status_update *from)
{
    dgm_status_update u = *from;
    dgm_message message;
    dgm_task_state state = u.status.state;
    if (state == DGM_STATE_WORKING && !u.status.message && s->is_working)
        return DGM_OK;
    s->is_working = state == DGM_STATE_WORKING;
    s->is_over |= dgm_state_is_terminal(state) || dgm_state_is_interrupted(state);
    u.task_id = u.context_id = (dgm_str){0};
    if (state != DGM_STATE_FAILED)
        s->error = (dgm_str){0};
    if (u.status.message) { /* the service may use its ids in another turn again */
        message = *u.status.message;
        message.message_id = message.task_id = message.context_id = (dgm_str){0};
        u.status.message = &message;
    }
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &u};
    return s->params.on_event(s->params.arg, &event);
}

static dgm_code answer_on_record(void *arg, const dgm_event *event)
{
    dgm_service_answer *s = arg;
    if (event->kind == DGM_EVENT_STATUS)
        return answer_emit_status(s, event->status);
    if (event->kind == DGM_EVENT_ARTIFACT) {
        dgm_artifact_update u = *event->artifact;
        u.task_id = u.context_id = (dgm_str){0};
        u.artifact.artifact_id = own_artifact_id(s, u.artifact.artifact_id);
        dgm_event renamed = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
        return s->params.on_event(s->params.arg, &renamed);
    }
    /* messages of other roles are the caller's own, again */
    if (event->kind != DGM_EVENT_INTERNAL || event->internal->kind == DGM_INTERNAL_MESSAGE)
        return DGM_OK;
    dgm_internal internal = *event->internal;
    internal.task_id = (dgm_str){0};
    dgm_event own = {.kind = DGM_EVENT_INTERNAL, .internal = &internal};
    return s->params.on_event(s->params.arg, &own);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static dgm_code answer_pass(dgm_service_answer *s, const dgm_canon_event *event)
{
    dgm_canon_event e = *event;
    e.timestamp = (dgm_opt_long){0}; /* of the clock of another machine */
    return dgm_events_to_records_feed(s->to, &e, s->err);
}

static dgm_code answer_begin(dgm_service_answer *s)
{
    dgm_canon_event started = {.kind = DGM_CANON_RUN_STARTED};
    dgm_canon_event working = {.kind = DGM_CANON_STEP_STARTED};
    if (s->has_begun)
        return DGM_OK;
    s->has_begun = true;
    started.run_started.thread_id = s->params.turn->context_id;
    started.run_started.run_id = s->params.turn->run_id;
    working.step.name = DGM_STR("working");
    dgm_code rc = answer_pass(s, &started);
    return rc ? rc : answer_pass(s, &working);
}

static dgm_code answer_fail(dgm_service_answer *s, const dgm_canon_event *event)
{
    dgm_canon_event e = *event;
    dgm_str message = e.run_error.message;
    bool is_cut = s->is_ending && dgm_str_is(e.run_error.code, "incomplete");
    if (is_cut)
        message = DGM_STR(CUT_SHORT);
    else if (s->params.clean_error)
        message = s->params.clean_error(s->params.arg, s->arena, message);
    s->error = dgm_arena_dup(s->arena, message);
    e.run_error.message = s->error;
    return answer_pass(s, &e);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static struct answer_text *answer_find_text(dgm_service_answer *s, dgm_str id)
{
    for (size_t i = s->n_texts; i; i--) {
        if (dgm_str_eq(s->texts[i - 1].id, id))
            return &s->texts[i - 1];
    }
    return NULL;
}

static dgm_code answer_open_text(dgm_service_answer *s, const dgm_canon_event *e)
{
    dgm_buf_clear(&s->last_text);
    s->last_text.over = false;
    for (size_t i = 0; i < s->n_calls; i++)
        s->calls[i].has_text_behind = true;
    if (!answer_find_text(s, e->text.message_id)) {
        if (s->n_texts == DGM_MAX_LIST_ITEMS)
            return dgm_fail(s->err, DGM_TOO_LARGE, NULL,
                            "more texts than the limit list_items of %d", DGM_MAX_LIST_ITEMS);
        s->texts = dgm_list_reserve(s->texts, s->n_texts, &s->cap_texts, sizeof *s->texts);
        s->texts[s->n_texts++] =
            (struct answer_text){.id = dgm_arena_dup(s->arena, e->text.message_id)};
    }
    return answer_pass(s, e);
}

static dgm_code answer_add_text(dgm_service_answer *s, const dgm_canon_event *e)
{
    struct answer_text *t = answer_find_text(s, e->text.message_id);
    if (t)
        dgm_sum_add(&t->sum, e->text.delta);
    dgm_buf_add_str(&s->last_text, e->text.delta);
    return answer_pass(s, e);
}

/* ---- snapshots ---------------------------------------------------------------------------------------------------- */

/* Was this text streamed under another id, or, if the turn brings results of calls, sent together with the calls? */
static bool is_seen(dgm_service_answer *s, dgm_str text)
{
    const dgm_messages *history = &s->params.turn->history;
    bool others;
    for (size_t i = 0; i < s->n_texts; i++) {
        if (s->texts[i].sum.n == text.n && dgm_sum_is_prefix(&s->texts[i].sum, text))
            return true;
    }
    bool has_results = dgm_message_has(s->params.turn->message, DGM_RESULTS);
    for (size_t i = 0; has_results && i < history->n; i++) {
        if (history->at[i].role == DGM_ROLE_AGENT &&
            dgm_str_eq(dgm_content_text(s->scratch, &history->at[i].parts, &others), text))
            return true;
    }
    return false;
}

/* A snapshot holds the whole conversation, sometimes with other ids than before. Only what follows the user's last message
 * can be new. */
static dgm_code answer_snapshot(dgm_service_answer *s, const dgm_canon_event *event)
{
    const dgm_canon_messages *all = &event->snapshot.messages;
    dgm_canon_event e = *event;
    size_t tail = all->n;
    while (tail && all->at[tail - 1].role != DGM_CANON_USER)
        tail--;
    e.snapshot.messages = (dgm_canon_messages){dgm_new_n(s->scratch, dgm_canon_message, all->n), 0};
    for (size_t i = 0; i < all->n; i++) {
        const dgm_canon_message *m = &all->at[i];
        dgm_str text = dgm_canon_content_text(s->scratch, &m->content);
        bool is_streamed = answer_find_text(s, m->id) != NULL;
        if (m->role != DGM_CANON_ASSISTANT || (!is_streamed && (i < tail || is_seen(s, text))))
            continue;
        e.snapshot.messages.at[e.snapshot.messages.n++] = *m;
        if (!is_streamed) { /* a later snapshot has it again */
            s->texts = dgm_list_reserve(s->texts, s->n_texts, &s->cap_texts, sizeof *s->texts);
            struct answer_text *t = &s->texts[s->n_texts++];
            *t = (struct answer_text){.id = dgm_arena_dup(s->arena, m->id)};
            dgm_sum_add(&t->sum, text);
        }
    }
    return e.snapshot.messages.n ? answer_pass(s, &e) : DGM_OK;
}

/* ---- state ------------------------------------------------------------------------------------------------------------ */

static void answer_set_state(dgm_service_answer *s, const yyjson_val *state)
{
    dgm_buf_clear(&s->state);
    s->state.over = false;
    if (state)
        dgm_json_put(&s->state, state);
    else
        dgm_buf_add_lit(&s->state, "null");
    s->has_new_state = true;
}

/* The state that the service was sent. */
static void answer_start_state(dgm_service_answer *s)
{
    const dgm_service_turn *turn = s->params.turn;
    const yyjson_val *own = dgm_json_get(turn->metadata, DGM_STR(DGM_META_STATE));
    own = own ? own : turn->state;
    answer_set_state(s, own ? own : dgm_json_parse_trusted(s->scratch, DGM_STR("{}")));
}

/* If the patch does not fit, the service has another state than we know. */
static void answer_patch_state(dgm_service_answer *s, const dgm_json *patch)
{
    yyjson_val *before;
    char *text = NULL;
    size_t n = 0;
    if (!s->has_new_state)
        answer_start_state(s);
    if (s->state.over || dgm_json_read(s->scratch, dgm_buf_str(&s->state), DGM_MAX_OBJECT_BYTES,
                                       "object_bytes", &before, NULL))
        return;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *after = yyjson_patch(doc, before, (yyjson_val *)(uintptr_t)patch, NULL);
    if (after)
        text = yyjson_mut_val_write(after, 0, &n);
    dgm_buf_clear(&s->state);
    dgm_buf_add_str(&s->state, (dgm_str){text, n});
    s->state.over |= !text;
    free(text);
    yyjson_mut_doc_free(doc);
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

static struct answer_call *answer_find_call(dgm_service_answer *s, dgm_str id)
{
    for (size_t i = s->n_calls; i; i--) {
        if (dgm_str_eq(s->calls[i - 1].id, id))
            return &s->calls[i - 1];
    }
    return NULL;
}

static dgm_code answer_open_call(dgm_service_answer *s, const dgm_canon_event *e)
{
    if (s->n_calls == DGM_MAX_OPEN_ITEMS)
        return dgm_fail(s->err, DGM_TOO_LARGE, NULL, "more calls than the limit open_items of %d",
                        DGM_MAX_OPEN_ITEMS);
    s->calls = dgm_list_reserve(s->calls, s->n_calls, &s->cap_calls, sizeof *s->calls);
    struct answer_call *call = &s->calls[s->n_calls++];
    *call = (struct answer_call){.id = dgm_arena_dup(s->arena, e->call.tool_call_id),
                                 .name = dgm_arena_dup(s->arena, e->call.name)};
    dgm_buf_init(&call->arguments, DGM_MAX_FINAL_TEXT_BYTES);
    return answer_pass(s, e);
}

static bool is_callers_tool(const dgm_service_answer *s, dgm_str name)
{
    yyjson_val *tools = dgm_json_get(s->params.turn->metadata, DGM_STR(DGM_META_TOOLS)), *e;
    size_t i, n;
    yyjson_arr_foreach (tools, i, n, e) {
        if (dgm_str_eq(dgm_json_str_member(e, "name"), name))
            return true;
    }
    return false;
}

/* AG-UI's servers end a run that waits for the caller's tools like any other, and its clients take every call without a
 * result for theirs. But not all servers report the results of their own tools. */
static dgm_strs calls_of_caller(dgm_service_answer *s)
{
    dgm_strs ids = {dgm_new_n(s->scratch, dgm_str, s->n_calls + 1), 0};
    for (size_t i = 0; i < s->n_calls; i++) {
        const struct answer_call *call = &s->calls[i];
        if (!call->has_result && (!call->has_text_behind || is_callers_tool(s, call->name)))
            ids.at[ids.n++] = call->id;
    }
    return ids;
}

/* ---- interrupts -------------------------------------------------------------------------------------------------------- */

static void build_interrupt(dgm_json_build *b, const dgm_canon_interrupt *it)
{
    dgm_json_build_object(b, NULL);
    dgm_json_build_str(b, "id", it->id);
    dgm_json_build_str(b, "reason", it->reason);
    dgm_json_build_str_if(b, "message", it->message);
    dgm_json_build_str_if(b, "toolCallId", it->tool_call_id);
    dgm_json_build_str_if(b, "expiresAt", it->expires_at);
    dgm_json_build_value(b, "responseSchema", it->response_schema);
    dgm_json_build_value(b, "metadata", it->metadata);
    dgm_json_build_close(b);
}

/* The request for approval of an interrupt: its own, or that of the call that it names. NULL: it has none. */
static const dgm_json *answer_approval(dgm_service_answer *s, const dgm_canon_interrupt *it)
{
    dgm_approval_request request;
    const struct answer_call *call =
        it->tool_call_id.n ? answer_find_call(s, it->tool_call_id) : NULL;
    if (dgm_interrupt_approval(it, &request))
        return request.data;
    if (!call)
        return NULL;
    dgm_str arguments = call->arguments.n ? dgm_buf_str(&call->arguments) : DGM_STR("{}");
    request =
        (dgm_approval_request){.id = it->id,
                               .tool = call->name,
                               .arguments = dgm_content_arguments_value(s->scratch, arguments)};
    return dgm_approval_request_data(s->scratch, &request);
}

/* Requests for approval of all interrupts, as a member of the metadata. */
static void build_approvals(dgm_service_answer *s, dgm_json_build *b,
                            const dgm_canon_interrupts *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const dgm_json *request = answer_approval(s, &all->at[i]);
        if (request && !n++)
            dgm_json_build_array(b, DGM_INTERRUPT_APPROVAL);
        dgm_json_build_value(b, NULL, request);
    }
    if (n)
        dgm_json_build_close(b);
}

/* Metadata without requests for approval, which follow. */
static void build_other_metadata(dgm_json_build *b, const dgm_canon_interrupt *it)
{
    yyjson_val *key, *value;
    dgm_approval_request request;
    bool has_approval = dgm_interrupt_approval(it, &request);
    size_t i, n;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)it->metadata, i, n, key, value) {
        if (!has_approval || !dgm_str_is(dgm_json_str(key), DGM_INTERRUPT_APPROVAL))
            dgm_json_build_member(b, dgm_json_str(key), value);
    }
}

static dgm_str question_of(dgm_service_answer *s, const dgm_canon_interrupts *all,
                           const struct answer_call *call)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    for (size_t i = 0; i < all->n; i++) {
        if (b.n && all->at[i].message.n)
            dgm_buf_add_char(&b, '\n');
        dgm_buf_add_str(&b, all->at[i].message);
    }
    dgm_str text = dgm_arena_dup(s->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    if (text.n)
        return text;
    if (call)
        return dgm_arena_printf(s->scratch, "May the tool %.*s be called?", DGM_P(call->name));
    return s->last_text.n && !s->last_text.over ? dgm_buf_str(&s->last_text)
                                                : DGM_STR(DEFAULT_QUESTION);
}

/* One question for all interrupts. Its metadata holds them: the request that answers them needs their ids. */
static void answer_ask(dgm_service_answer *s, dgm_canon_outcome *o)
{
    dgm_canon_interrupt *first = dgm_new(s->scratch, dgm_canon_interrupt);
    dgm_json_build b = dgm_json_build_start(s->scratch);
    *first = o->interrupts.at[0];
    struct answer_call *call =
        first->tool_call_id.n ? answer_find_call(s, first->tool_call_id) : NULL;
    dgm_json_build_object(&b, NULL);
    build_other_metadata(&b, first);
    build_approvals(s, &b, &o->interrupts);
    if (answer_is_agui(s)) {
        dgm_json_build_array(&b, DGM_SERVICE_INTERRUPTS);
        for (size_t i = 0; i < o->interrupts.n; i++)
            build_interrupt(&b, &o->interrupts.at[i]);
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    first->metadata = dgm_json_build_end(&b);
    first->message = question_of(s, &o->interrupts, call);
    o->interrupts = (dgm_canon_interrupts){first, 1};
}

/* LangGraph's AG-UI servers report an interrupt as CUSTOM "on_interrupt", whose value is JSON text, and then finish. */
static void answer_ask_custom(dgm_service_answer *s, dgm_canon_outcome *o)
{
    dgm_canon_interrupt *it = dgm_new(s->scratch, dgm_canon_interrupt);
    dgm_str text = dgm_content_value_text(s->scratch, s->custom_interrupt);
    yyjson_val *v = NULL;
    if (!dgm_json_read(s->scratch, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) &&
        yyjson_is_str(v))
        text = dgm_json_str(v);
    *it = (dgm_canon_interrupt){.id = DGM_STR(DGM_SERVICE_CUSTOM_INTERRUPT),
                                .reason = DGM_STR("langgraph:interrupt"),
                                .message = text};
    *o = (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {it, 1}};
}

/* Calls that wait for an approval are not calls of the caller's tools. */
static dgm_strs without_approvals(dgm_service_answer *s, dgm_strs pending)
{
    dgm_strs others = {dgm_new_n(s->scratch, dgm_str, pending.n + 1), 0};
    for (size_t i = 0; i < pending.n; i++) {
        bool waits = false;
        for (size_t k = 0; k < s->approvals.n; k++)
            waits |= dgm_str_eq(pending.at[i], s->approvals.at[k].call_id);
        if (!waits)
            others.at[others.n++] = pending.at[i];
    }
    return others;
}

static void answer_ask_approvals(dgm_service_answer *s, dgm_canon_outcome *o)
{
    dgm_str text = o->kind == DGM_CANON_INTERRUPT && s->approvals.n == 1
                       ? dgm_interrupts_text(s->scratch, &o->interrupts)
                       : (dgm_str){0};
    for (size_t i = 0; i < s->approvals.n; i++) {
        dgm_service_approval *x = &s->approvals.at[i];
        const struct answer_call *call = x->call_id.n ? answer_find_call(s, x->call_id) : NULL;
        if (!x->item)
            dgm_service_set_approval_call(x, s->arena, call ? call->name : (dgm_str){0},
                                          call ? dgm_buf_str(&call->arguments) : (dgm_str){0});
    }
    *o = (dgm_canon_outcome){
        .kind = DGM_CANON_INTERRUPT,
        .interrupts = {dgm_service_ask_approvals(&s->approvals, text, s->scratch), 1}};
}

static dgm_code answer_finish(dgm_service_answer *s, const dgm_canon_event *event)
{
    dgm_canon_event e = *event;
    dgm_canon_outcome *o = &e.run_finished.outcome;
    bool is_success = o->kind == DGM_CANON_SUCCESS || o->kind == DGM_CANON_OUTCOME_NONE;
    if (is_success && answer_is_agui(s) && !o->pending_tool_call_ids.n)
        o->pending_tool_call_ids = calls_of_caller(s);
    if ((is_success || o->kind == DGM_CANON_INTERRUPT) && s->approvals.n) {
        o->pending_tool_call_ids = without_approvals(s, o->pending_tool_call_ids);
        if (!o->pending_tool_call_ids.n)
            answer_ask_approvals(s, o);
    }
    if (is_success && s->custom_interrupt && !o->pending_tool_call_ids.n)
        answer_ask_custom(s, o);
    if (o->kind == DGM_CANON_INTERRUPT && o->interrupts.n)
        answer_ask(s, o);
    return answer_pass(s, &e);
}

/* ---- canonical events ----------------------------------------------------------------------------------------------- */

static dgm_code answer_within_run(dgm_service_answer *s, const dgm_canon_event *e)
{
    struct answer_call *call;
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_START: return answer_open_text(s, e);
    case DGM_CANON_TEXT_MESSAGE_CONTENT: return answer_add_text(s, e);
    case DGM_CANON_TOOL_CALL_START: return answer_open_call(s, e);
    case DGM_CANON_TOOL_CALL_ARGS:
        if ((call = answer_find_call(s, e->call.tool_call_id)))
            dgm_buf_add_str(&call->arguments, e->call.delta);
        return answer_pass(s, e);
    case DGM_CANON_TOOL_CALL_RESULT:
        if ((call = answer_find_call(s, e->result.tool_call_id)))
            call->has_result = true;
        return answer_pass(s, e);
    case DGM_CANON_STATE_SNAPSHOT: answer_set_state(s, e->state.snapshot); return answer_pass(s, e);
    case DGM_CANON_STATE_DELTA:
        answer_patch_state(s, e->state_delta.patch);
        return answer_pass(s, e);
    case DGM_CANON_MESSAGES_SNAPSHOT: return answer_snapshot(s, e);
    case DGM_CANON_CUSTOM:
        if (answer_is_agui(s) && dgm_str_is(e->custom.name, DGM_SERVICE_CUSTOM_INTERRUPT) &&
            e->custom.value) {
            s->custom_interrupt = dgm_json_copy(s->arena, e->custom.value);
            return DGM_OK;
        }
        if (dgm_str_is(e->custom.name, DGM_RESPONSES_ITEM) &&
            dgm_service_add_approval_item(&s->approvals, s->arena, e->custom.value))
            return DGM_OK;
        return answer_pass(s, e);
    case DGM_CANON_RUN_FINISHED: return answer_finish(s, e);
    default: return answer_pass(s, e);
    }
}

static dgm_code answer_on_event(void *arg, const dgm_canon_event *e)
{
    dgm_service_answer *s = arg;
    dgm_code rc;
    if (s->is_over)
        return DGM_OK;
    if (e->kind == DGM_CANON_RUN_ERROR)
        return answer_fail(s, e);
    if ((rc = answer_begin(s)) || e->kind == DGM_CANON_RUN_STARTED)
        return rc;
    return answer_within_run(s, e);
}

static dgm_canon_sink answer_sink(dgm_service_answer *s)
{
    return (dgm_canon_sink){answer_on_event, s};
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

static dgm_code answer_feed_object(dgm_service_answer *s, const dgm_object *o, dgm_err *err)
{
    dgm_event event = {.any = o->it};
    switch (o->kind) {
    case DGM_OBJECT_ERROR: {
        dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
        e.run_error.message = ((const dgm_peer_error *)o->it)->message;
        return answer_on_event(s, &e);
    }
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE: event = *(const dgm_event *)o->it; break;
    case DGM_OBJECT_MESSAGE: event.kind = DGM_EVENT_MESSAGE; break;
    case DGM_OBJECT_TASK: event.kind = DGM_EVENT_TASK; break;
    case DGM_OBJECT_STATUS_UPDATE: event.kind = DGM_EVENT_STATUS; break;
    case DGM_OBJECT_ARTIFACT_UPDATE: event.kind = DGM_EVENT_ARTIFACT; break;
    default:
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "\"%s\" is not an answer to a message",
                        dgm_object_kind_name(o->kind));
    }
    dgm_str id = event.kind == DGM_EVENT_TASK     ? event.task->id
                 : event.kind == DGM_EVENT_STATUS ? event.status->task_id
                                                  : (dgm_str){0};
    if (id.n && !s->id.n)
        s->id = dgm_arena_dup(s->arena, id);
    return dgm_records_to_events_feed(s->from, &event, answer_sink(s), err);
}

/* A message instead of a stream of events. */
static dgm_code answer_feed_messages(dgm_service_answer *s, dgm_reader *r, yyjson_val *v)
{
    dgm_canon_messages messages;
    dgm_canon_event finished = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_code rc;
    if ((rc = s->params.codec->read_messages(r, v, NULL, &messages)) || (rc = answer_begin(s)) ||
        (rc = dgm_messages_to_events(s->scratch, &messages, &s->mint, false, answer_sink(s))))
        return rc;
    return answer_on_event(s, &finished);
}

static dgm_code answer_feed_value(dgm_service_answer *s, dgm_reader *r, yyjson_val *v)
{
    const dgm_codec *codec = s->params.codec;
    dgm_form form = DGM_FORM_NONE;
    dgm_frame frame;
    dgm_code rc;
    if (s->from) {
        rc = codec->decode(r, v, DGM_OBJECT_NONE, true, &frame);
        return rc ? rc : answer_feed_object(s, &frame.object, r->err);
    }
    if (codec->format == DGM_FORMAT_RESPONSES && !s->id.n) {
        yyjson_val *response = dgm_json_get(v, DGM_STR("response"));
        bool is_whole = dgm_str_is(dgm_json_str_member(v, "object"), "response");
        s->id = dgm_arena_dup(s->arena, dgm_json_str_member(is_whole ? v : response, "id"));
    }
    if (codec->format == DGM_FORMAT_AI_SDK)
        dgm_service_add_approval_parts(&s->approvals, s->arena, v);
    if (!s->has_begun && codec->read_messages && codec->recognise(v, &form) &&
        form == DGM_FORM_MESSAGES)
        return answer_feed_messages(s, r, v);
    return codec->decoder_feed(s->decoder, r, v, answer_sink(s));
}

dgm_code dgm_service_answer_feed(dgm_service_answer *s, dgm_str text, dgm_err *err)
{
    yyjson_val *v, *e;
    size_t i, n;
    dgm_reader r = {.arena = s->scratch, .mint = &s->mint, .drop_unknown = true, .err = err};
    s->err = err;
    if (s->rc || s->is_over)
        return s->rc;
    r.format = s->params.codec->format;
    s->rc = dgm_json_read(s->scratch, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err);
    if (!s->rc && yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e) {
            if (!s->rc)
                s->rc = answer_feed_value(s, &r, e);
        }
    } else if (!s->rc) {
        s->rc = answer_feed_value(s, &r, v);
    }
    dgm_arena_reset(s->scratch);
    return s->rc;
}

/* ---- the end ------------------------------------------------------------------------------------------------------------- */

dgm_code dgm_service_answer_done(dgm_service_answer *s, dgm_err *err)
{
    const dgm_codec *codec = s->params.codec;
    if (s->decoder && codec->decoder_done)
        codec->decoder_done(s->decoder);
    return s->has_begun ? dgm_service_answer_end(s, err) : DGM_OK;
}

dgm_code dgm_service_answer_end(dgm_service_answer *s, dgm_err *err)
{
    s->err = err;
    if (s->rc || s->is_over)
        return s->rc;
    s->is_ending = true;
    if (!s->has_begun)
        return dgm_service_answer_stop(
            s, DGM_STATE_FAILED,
            dgm_arena_printf(s->arena,
                             "the answer of the agent's server has nothing of the format %s",
                             s->params.codec->name),
            err);
    s->rc = s->from ? dgm_records_to_events_end(s->from, answer_sink(s), err)
                    : s->params.codec->decoder_end(s->decoder, answer_sink(s), err);
    dgm_arena_reset(s->scratch);
    return s->rc ? s->rc : dgm_service_answer_stop(s, DGM_STATE_FAILED, DGM_STR(CUT_SHORT), err);
}

dgm_code dgm_service_answer_stop(dgm_service_answer *s, dgm_task_state state, dgm_str error,
                                 dgm_err *err)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    if (s->is_over)
        return DGM_OK;
    s->err = err;
    if (state == DGM_STATE_CANCELED)
        e.run_error.code = DGM_STR("canceled");
    else
        s->error = dgm_arena_dup(s->arena, error);
    e.run_error.message = s->error;
    return answer_pass(s, &e);
}

/* ---- the handle ------------------------------------------------------------------------------------------------------------ */

dgm_service_answer *dgm_service_answer_new(const dgm_service_answer_params *params)
{
    dgm_service_answer *s = dgm_xcalloc(1, sizeof *s);
    s->params = *params;
    s->mint.seed[0] = params->seed;
    s->arena = dgm_arena_new_small(1024);
    s->scratch = dgm_arena_new_small(2048);
    dgm_buf_init(&s->last_text, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_init(&s->state, DGM_MAX_SERVICE_STATE_BYTES);
    dgm_stream_params stream = {.mint = s->mint};
    if (params->codec->decode)
        s->from = dgm_records_to_events_new(&(dgm_records_params){.whole_snapshots = false});
    else
        s->decoder = params->codec->decoder_new(&stream);
    dgm_events_params records = {.mint = s->mint};
    records.mint.seed[1]++; /* no id twice */
    s->to = dgm_events_to_records_new(&records, answer_on_record, s);
    return s;
}

void dgm_service_answer_free(dgm_service_answer *s)
{
    if (!s)
        return;
    if (s->decoder)
        s->params.codec->decoder_free(s->decoder);
    dgm_records_to_events_free(s->from);
    dgm_events_to_records_free(s->to);
    for (size_t i = 0; i < s->n_calls; i++)
        dgm_buf_done(&s->calls[i].arguments);
    free(s->calls);
    free(s->texts);
    dgm_buf_done(&s->last_text);
    dgm_buf_done(&s->state);
    dgm_arena_free(s->arena);
    dgm_arena_free(s->scratch);
    free(s);
}

bool dgm_service_answer_is_over(const dgm_service_answer *s)
{
    return s->is_over;
}

bool dgm_service_answer_has_begun(const dgm_service_answer *s)
{
    return s->has_begun;
}

dgm_str dgm_service_answer_error(const dgm_service_answer *s)
{
    return s->error;
}

dgm_str dgm_service_answer_id(const dgm_service_answer *s)
{
    return s->id;
}

dgm_str dgm_service_answer_state(const dgm_service_answer *s)
{
    bool is_known = answer_is_agui(s) && s->has_new_state && !s->state.over;
    return is_known ? dgm_buf_str(&s->state) : (dgm_str){0};
}
