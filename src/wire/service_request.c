/* wire/service_request.c - see service.h: the request of a turn. */
#include "base/limits.h"
#include "base/list.h"
#include "canon/events_to_messages.h"
#include "canon/interrupts.h"
#include "canon/message_content.h"
#include "canon/records_to_events.h"
#include "model/guard.h"
#include "wire/request_members.h"
#include "wire/service_int.h"
#include "json/build.h"

static bool is_agui(const dgm_codec *codec)
{
    return codec->format == DGM_FORMAT_AG_UI || codec->format == DGM_FORMAT_AG_UI_0;
}

static bool is_a2a(const dgm_codec *codec)
{
    return codec->encode != NULL;
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static dgm_code request_fold_event(void *arg, const dgm_canon_event *event)
{
    dgm_canon_fold_add(arg, event);
    return DGM_OK;
}

static void request_add_system(dgm_canon_fold *fold, const char *id, dgm_str text)
{
    dgm_canon_message m = {.role = DGM_CANON_SYSTEM,
                           .id = dgm_str_from(id),
                           .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = text}};
    if (text.n)
        dgm_canon_fold_add_message(fold, &m);
}

static bool is_transcript(const dgm_part *p)
{
    return p->kind == DGM_PART_TEXT &&
           dgm_str_is(dgm_json_str_member(p->metadata, DGM_META_PART), "transcript");
}

static dgm_code request_add_events(dgm_canon_fold *fold, const dgm_message *m, dgm_err *err)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&(dgm_records_params){.fragment = true, .say_history = true});
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = (dgm_message *)(uintptr_t)m};
    dgm_canon_sink sink = {request_fold_event, fold};
    dgm_code rc = dgm_records_to_events_feed(from, &event, sink, err);
    return rc ? rc : dgm_records_to_events_end(from, sink, err);
}

/* The transcript of an earlier conversation is not the user's text. It is sent if no messages are sent in its place. */
static dgm_code request_add_message(dgm_canon_fold *fold, const dgm_message *message,
                                    bool with_transcript, dgm_err *err)
{
    dgm_message m = *message;
    if (m.parts.n && is_transcript(&m.parts.at[0])) {
        if (with_transcript)
            request_add_system(fold, "transcript", m.parts.at[0].content);
        m.parts = (dgm_parts){m.parts.at + 1, m.parts.n - 1};
    }
    return m.parts.n ? request_add_events(fold, &m, err) : DGM_OK;
}

/* Does one of the data parts hold one of the calls, under `list`? */
static bool has_call(const dgm_message *m, const char *list, const dgm_str *ids, size_t n_ids)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        yyjson_val *calls = m->parts.at[i].kind == DGM_PART_DATA
                                ? dgm_json_get(m->parts.at[i].data, dgm_str_from(list))
                                : NULL,
                   *e;
        size_t k, n;
        yyjson_arr_foreach (calls, k, n, e) {
            for (size_t j = 0; j < n_ids; j++) {
                if (dgm_str_eq(dgm_json_str_member(e, "call_id"), ids[j]))
                    return true;
            }
        }
    }
    return false;
}

/* A result without its call is an error in most formats. Is it in no message of the history, but in the question? */
static bool lacks_call(const dgm_service_turn *turn)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(512);
    const dgm_message *question = turn->task ? turn->task->status.message : NULL;
    dgm_strs ids = question ? dgm_message_call_ids(a, question, DGM_MAX_OPEN_CALLS) : (dgm_strs){0};
    if (!ids.n || !has_call(turn->message, DGM_DATA_RESULTS, ids.at, ids.n))
        return false;
    for (size_t k = 0; k < turn->history.n; k++) {
        if (has_call(&turn->history.at[k], DGM_DATA_CALLS, ids.at, ids.n))
            return false;
    }
    return true;
}

/* The question whose answer is sent in the service's own form, so it is not part of the conversation. */
static bool is_approval_question(const dgm_service_turn *turn, const dgm_message *m)
{
    return dgm_service_open_approvals(turn) && m->message_id.n &&
           dgm_str_eq(m->message_id, turn->task->status.message->message_id);
}

/* The messages of the task that waits for this one: for callers without a history, and for calls that it lacks. */
static dgm_code request_add_task(const dgm_service_turn *turn, bool with_history,
                                 dgm_canon_fold *fold, dgm_err *err)
{
    const dgm_task *task = turn->task;
    const dgm_message *question = dgm_service_open_approvals(turn) ? NULL : task->status.message;
    dgm_code rc = DGM_OK;
    for (size_t i = 0; with_history && !rc && i < task->history.n; i++) {
        const dgm_message *m = &task->history.at[i];
        if (question && dgm_str_eq(m->message_id, question->message_id))
            question = NULL;
        if (is_approval_question(turn, m))
            continue;
        rc = request_add_message(fold, m, i == 0, err);
    }
    return !rc && question ? request_add_message(fold, question, false, err) : rc;
}

/* The conversation before the message. */
static dgm_code request_add_history(const dgm_service_turn *turn, dgm_canon_fold *fold,
                                    dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (turn->has_memory)
        return DGM_OK;
    for (size_t i = 0; !rc && i < turn->history.n; i++) {
        if (!is_approval_question(turn, &turn->history.at[i]))
            rc = request_add_message(fold, &turn->history.at[i], i == 0, err);
    }
    if (!rc && turn->task && (!turn->history.n || lacks_call(turn)))
        rc = request_add_task(turn, !turn->history.n, fold, err);
    return rc;
}

/* ---- answers to interrupts --------------------------------------------------------------------------------------- */

static yyjson_val *open_interrupts(const dgm_service_turn *turn)
{
    const dgm_message *question = turn->task ? turn->task->status.message : NULL;
    yyjson_val *list =
        question ? dgm_json_get(question->metadata, DGM_STR(DGM_SERVICE_INTERRUPTS)) : NULL;
    return is_agui(turn->codec) && yyjson_arr_size(list) ? list : NULL;
}

/* The part of the message that answers this interrupt: data that names it, else any data, else the text. */
static const dgm_json *answer_in_message(dgm_arena *a, const dgm_message *m, dgm_str id)
{
    const dgm_json *data = NULL;
    bool others;
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_DATA)
            continue;
        if (dgm_str_eq(dgm_json_str_member(m->parts.at[i].data, "id"), id))
            return m->parts.at[i].data;
        data = data ? data : m->parts.at[i].data;
    }
    return data ? data : dgm_json_make_string(a, dgm_content_text(a, &m->parts, &others));
}

/* LangGraph's AG-UI servers, which report an interrupt as CUSTOM "on_interrupt", expect the answer in the forwarded
 * properties. */
static void move_resume(dgm_arena *a, dgm_canon_input *input)
{
    const dgm_canon_resume *r = &input->resume.at[0];
    yyjson_val *props = (yyjson_val *)(uintptr_t)input->forwarded_props, *key, *value;
    size_t i, n;
    if (!dgm_str_is(r->interrupt_id, DGM_SERVICE_CUSTOM_INTERRUPT))
        return;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    yyjson_obj_foreach (props, i, n, key, value) {
        if (!dgm_str_is(dgm_json_str(key), "command"))
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    dgm_json_build_object(&b, "command");
    if (r->payload)
        dgm_json_build_value(&b, "resume", r->payload);
    else
        dgm_json_build_null(&b, "resume");
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    input->forwarded_props = dgm_json_build_end(&b);
    input->resume = (dgm_canon_resumes){0};
}

/* The decision about the request for approval that an interrupt of the service is; NULL: it does not ask for one, or the message has no decision. */
static const dgm_json *approval_payload(const dgm_service_turn *turn, dgm_arena *a, yyjson_val *it)
{
    dgm_approval_request request;
    yyjson_val *own = dgm_json_get(dgm_json_get(it, DGM_STR("metadata")), DGM_STR("approval"));
    if (own && dgm_approval_request_read(own, &request))
        return dgm_service_approval_payload(turn, a, request.id);
    return dgm_json_get(it, DGM_STR("toolCallId"))
               ? dgm_service_approval_payload(turn, a, dgm_json_str_member(it, "id"))
               : NULL;
}

/* What an AG-UI caller sends as `resume` names our interrupts. There is one of ours for all of the service's. */
static void request_add_resume(const dgm_service_turn *turn, dgm_arena *a, yyjson_val *open,
                               dgm_canon_input *input)
{
    yyjson_val *resume = dgm_json_get(turn->metadata, DGM_STR(DGM_META_RESUME)), *e;
    yyjson_val *first = yyjson_arr_get_first(resume);
    size_t i, n;
    input->resume.at = dgm_new_n(a, dgm_canon_resume, yyjson_arr_size(open));
    yyjson_arr_foreach (open, i, n, e) {
        dgm_canon_resume *r = &input->resume.at[input->resume.n++];
        r->interrupt_id = dgm_json_str_member(e, "id");
        r->status = dgm_str_is(dgm_json_str_member(first, "status"), "cancelled")
                        ? DGM_CANON_DISMISSED
                        : DGM_CANON_RESOLVED;
        if ((r->payload = approval_payload(turn, a, e)))
            r->status = DGM_CANON_RESOLVED;
        else if (r->status == DGM_CANON_RESOLVED && yyjson_is_obj(first))
            r->payload = dgm_json_get(first, DGM_STR("payload"));
        else if (r->status == DGM_CANON_RESOLVED)
            r->payload = answer_in_message(a, turn->message, r->interrupt_id);
    }
    move_resume(a, input);
}

/* ---- what comes beside the message ---------------------------------------------------------------------------------- */

static void request_read_tools(const dgm_service_turn *turn, dgm_arena *a, dgm_canon_input *input)
{
    yyjson_val *tools = dgm_json_get(turn->metadata, DGM_STR(DGM_META_TOOLS)), *e;
    size_t i, n = yyjson_arr_size(tools);
    input->tools.at = dgm_new_n(a, dgm_canon_tool, n + 1); /* not NULL: an empty list is written */
    yyjson_arr_foreach (tools, i, n, e)
        input->tools.at[input->tools.n++] =
            (dgm_canon_tool){.name = dgm_json_str_member(e, "name"),
                             .description = dgm_json_str_member(e, "description"),
                             .parameters = dgm_json_get(e, DGM_STR("parameters"))};
}

static void request_read_context(const dgm_service_turn *turn, dgm_arena *a, dgm_canon_input *input)
{
    yyjson_val *context = dgm_json_get(turn->metadata, DGM_STR(DGM_META_CONTEXT)), *e;
    size_t i, n = yyjson_arr_size(context);
    input->context.at = dgm_new_n(a, dgm_canon_context, n + 1);
    yyjson_arr_foreach (context, i, n, e)
        input->context.at[input->context.n++] =
            (dgm_canon_context){.description = dgm_json_str_member(e, "description"),
                                .value = dgm_json_str_member(e, "value")};
}

/* Servers older than AG-UI 1.0 require all of these members, and newer ones accept them. */
static void request_read_agui(const dgm_service_turn *turn, dgm_arena *a, dgm_canon_input *input)
{
    request_read_context(turn, a, input);
    input->protocol_version = DGM_STR(DGM_AGUI_VERSION);
    input->state = dgm_json_get(turn->metadata, DGM_STR(DGM_META_STATE));
    input->forwarded_props = dgm_json_get(turn->metadata, DGM_STR(DGM_META_FORWARDED_PROPS));
    if (!input->state)
        input->state = turn->state;
    if (!input->state)
        input->state = dgm_json_parse_trusted(a, DGM_STR("{}"));
    if (!input->forwarded_props)
        input->forwarded_props = dgm_json_parse_trusted(a, DGM_STR("{}"));
}

/* ---- members that one format has --------------------------------------------------------------------------------------- */

static void request_add_chat_members(const dgm_service_turn *turn, dgm_arena *a, dgm_extra *x)
{
    yyjson_val *choice = dgm_json_get(turn->metadata, DGM_STR(DGM_META_TOOL_CHOICE));
    yyjson_val *format = dgm_json_get(turn->metadata, DGM_STR(DGM_META_RESPONSE_FORMAT));
    dgm_request_set(a, x, "stream", dgm_json_parse_trusted(a, DGM_STR("true")));
    dgm_request_set(a, x, "stream_options",
                    dgm_json_parse_trusted(a, DGM_STR("{\"include_usage\":true}")));
    dgm_request_set(a, x, "tool_choice", dgm_request_tool_choice(a, choice, true));
    dgm_request_set(a, x, "response_format", dgm_request_response_format(a, format, true));
    dgm_member context = {DGM_STR("a2a_context_id"), dgm_json_make_string(a, turn->context_id)};
    if (turn->has_memory)
        dgm_request_set(a, x, "metadata", dgm_json_object(a, &context, 1));
}

static void request_add_responses_members(const dgm_service_turn *turn, dgm_arena *a, dgm_extra *x)
{
    yyjson_val *choice = dgm_json_get(turn->metadata, DGM_STR(DGM_META_TOOL_CHOICE));
    yyjson_val *format = dgm_json_get(turn->metadata, DGM_STR(DGM_META_RESPONSE_FORMAT));
    dgm_member text = {DGM_STR("format"), dgm_request_response_format(a, format, false)};
    dgm_request_set(a, x, "stream", dgm_json_parse_trusted(a, DGM_STR("true")));
    dgm_request_set(
        a, x, "store",
        dgm_json_parse_trusted(a, turn->has_memory ? DGM_STR("true") : DGM_STR("false")));
    dgm_request_set(a, x, "tool_choice", dgm_request_tool_choice(a, choice, false));
    if (text.value)
        dgm_request_set(a, x, "text", dgm_json_object(a, &text, 1));
}

/* ---- A2A ------------------------------------------------------------------------------------------------------------------ */

/* An A2A agent has the conversation: it gets the message, in the envelope of JSON-RPC. */
static dgm_code write_a2a_request(const dgm_service_turn *turn, dgm_buf *out, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_message m = *turn->message;
    dgm_guard guard = {0};
    dgm_send_request request = {.message = &m};
    dgm_frame frame = {.envelope = DGM_ENVELOPE_REQUEST,
                       .id = dgm_json_make_string(a, turn->run_id),
                       .method = DGM_METHOD_STREAM,
                       .object = {DGM_OBJECT_SEND_REQUEST, &request}};
    dgm_writer w = {.out = out, .format = turn->codec->format};
    if (m.parts.n > 1 && is_transcript(&m.parts.at[0]))
        m.parts = (dgm_parts){m.parts.at + 1, m.parts.n - 1};
    dgm_guard_content(&guard, a, &m.metadata, &m.parts);
    m.context_id = turn->context_id;
    m.task_id = turn->remote_task_id;
    m.reference_task_ids = (dgm_strs){0};
    return turn->codec->encode(&w, &frame, err);
}

/* ---- the body --------------------------------------------------------------------------------------------------------------- */

static dgm_code request_add_messages(const dgm_service_turn *turn, dgm_arena *a,
                                     dgm_canon_fold *fold, dgm_canon_input *input, dgm_err *err)
{
    yyjson_val *open = open_interrupts(turn), *approvals = dgm_service_open_approvals(turn);
    dgm_code rc;
    request_add_system(fold, DGM_REQUEST_INSTRUCTIONS,
                       dgm_json_str_member(turn->metadata, DGM_META_INSTRUCTIONS));
    if ((rc = request_add_history(turn, fold, err)))
        return rc;
    if (open)
        request_add_resume(turn, a, open, input);
    else if (!approvals &&
             (rc = request_add_message(fold, turn->message,
                                       !turn->has_memory && !turn->history.n && !turn->task, err)))
        return rc;
    if (dgm_canon_fold_is_over(fold))
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the conversation becomes more than the limit object_bytes of %zu",
                        DGM_MAX_OBJECT_BYTES);
    input->messages = dgm_canon_fold_messages(fold, a);
    if (approvals)
        dgm_service_add_decisions(turn, a, approvals, &input->messages);
    return DGM_OK;
}

dgm_code dgm_service_write_request(const dgm_service_turn *turn, dgm_buf *out, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(DGM_MAX_OBJECT_BYTES);
    dgm_extra extra = {.format = turn->codec->format};
    dgm_canon_input input = {
        .thread_id = turn->context_id, .run_id = turn->run_id, .extra = &extra};
    dgm_stream_params params = {.model = turn->model};
    dgm_writer w = {.out = out, .format = turn->codec->format};
    dgm_code rc;
    if (is_a2a(turn->codec))
        return write_a2a_request(turn, out, err);
    request_read_tools(turn, a, &input);
    if (is_agui(turn->codec))
        request_read_agui(turn, a, &input);
    else if (turn->codec->format == DGM_FORMAT_CHAT)
        request_add_chat_members(turn, a, &extra);
    else if (turn->codec->format == DGM_FORMAT_RESPONSES)
        request_add_responses_members(turn, a, &extra);
    if (turn->has_memory && turn->codec->format == DGM_FORMAT_RESPONSES)
        input.parent_run_id = turn->previous_id;
    if ((rc = request_add_messages(turn, a, fold, &input, err)))
        return rc;
    return turn->codec->write_request(&w, &input, &params, err);
}
