/*
 * wire/service_approval.c - see service_int.h.
 *
 * A call is made only if the caller approved it, clearly: with data {"type":"approval","id","approved":true} (frontends make it of
 * the forms of their protocols), or with one of the words for yes (model/approval.h). Anything else is a refusal, and its text the
 * reason.
 */
#include "wire/service_int.h"

#include "base/limits.h"
#include "base/list.h"
#include "canon/interrupts.h"
#include "canon/message_content.h"
#include "json/build.h"

#define NOT_DECIDED "the user did not decide about this call"

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static dgm_service_approval *approvals_add(dgm_service_approvals *list, dgm_arena *a, dgm_str id)
{
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_str_eq(list->at[i].id, id))
            return NULL; /* again, in the complete answer */
    }
    if (!id.n || id.n > DGM_MAX_ID_BYTES || list->n == DGM_MAX_OPEN_CALLS)
        return NULL;
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    list->at[list->n] = (dgm_service_approval){.id = dgm_arena_dup(a, id)};
    return &list->at[list->n++];
}

void dgm_service_set_approval_call(dgm_service_approval *x, dgm_arena *a, dgm_str tool,
                                   dgm_str arguments)
{
    x->tool = tool.n ? dgm_arena_dup(a, tool) : DGM_STR("unknown");
    x->arguments = dgm_approval_arguments(a, arguments);
}

bool dgm_service_add_approval_item(dgm_service_approvals *list, dgm_arena *a, const dgm_json *item)
{
    if (!dgm_str_is(dgm_json_str_member(item, "type"), "mcp_approval_request"))
        return false;
    dgm_service_approval *x = approvals_add(list, a, dgm_json_str_member(item, "id"));
    if (!x)
        return true;
    x->item = dgm_json_copy(a, item);
    dgm_service_set_approval_call(x, a, dgm_json_str_member(x->item, "name"),
                                  dgm_json_str_member(x->item, "arguments"));
    return true;
}

void dgm_service_add_approval_parts(dgm_service_approvals *list, dgm_arena *a, yyjson_val *v)
{
    yyjson_val *part;
    size_t i, n;
    dgm_service_approval *x;
    if (dgm_str_is(dgm_json_str_member(v, "type"), "tool-approval-request") &&
        (x = approvals_add(list, a, dgm_json_str_member(v, "approvalId"))))
        x->call_id = dgm_arena_dup(a, dgm_json_str_member(v, "toolCallId"));
    yyjson_arr_foreach (dgm_json_get(v, DGM_STR("parts")), i, n, part) {
        yyjson_val *approval = dgm_json_get(part, DGM_STR("approval"));
        if (dgm_str_is(dgm_json_str_member(part, "state"), "approval-requested") &&
            (x = approvals_add(list, a, dgm_json_str_member(approval, "id"))))
            x->call_id = dgm_arena_dup(a, dgm_json_str_member(part, "toolCallId"));
    }
}

static const dgm_json *service_request_data(dgm_arena *a, const dgm_service_approval *x)
{
    dgm_approval_request request = {.id = x->id, .tool = x->tool, .arguments = x->arguments};
    return dgm_approval_request_data(a, &request);
}

static void build_own(dgm_json_build *b, const dgm_service_approval *x)
{
    dgm_json_build_object(b, NULL);
    dgm_json_build_str(b, "id", x->id);
    dgm_json_build_str(b, "tool", x->tool);
    dgm_json_build_value(b, "arguments", x->arguments);
    if (x->call_id.n)
        dgm_json_build_str(b, "call_id", x->call_id);
    dgm_json_build_value(b, "item", x->item);
    dgm_json_build_close(b);
}

static dgm_str approvals_question(const dgm_service_approvals *list, dgm_arena *a)
{
    dgm_approval_requests requests = {dgm_new_n(a, dgm_approval_request, list->n), list->n};
    for (size_t i = 0; i < list->n; i++)
        requests.at[i] =
            (dgm_approval_request){.tool = list->at[i].tool, .arguments = list->at[i].arguments};
    return dgm_approval_question(a, &requests);
}

dgm_canon_interrupt *dgm_service_ask_approvals(const dgm_service_approvals *list, dgm_str text,
                                               dgm_arena *a)
{
    dgm_canon_interrupt *it = dgm_new(a, dgm_canon_interrupt);
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_INTERRUPT_APPROVAL);
    for (size_t i = 0; i < list->n; i++)
        dgm_json_build_value(&b, NULL, service_request_data(a, &list->at[i]));
    dgm_json_build_close(&b);
    dgm_json_build_array(&b, DGM_SERVICE_APPROVALS);
    for (size_t i = 0; i < list->n; i++)
        build_own(&b, &list->at[i]);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    *it = (dgm_canon_interrupt){.id = list->at[0].id,
                                .reason = DGM_STR("tool_call"),
                                .message = text.n ? text : approvals_question(list, a),
                                .metadata = dgm_json_build_end(&b)};
    return it;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

struct decision {
    bool is_approved;
    dgm_str reason; /* of a refusal; may be empty */
};

yyjson_val *dgm_service_open_approvals(const dgm_service_turn *turn)
{
    dgm_format_id format = turn->codec->format;
    const dgm_message *question = turn->task ? turn->task->status.message : NULL;
    if (!question || (format != DGM_FORMAT_RESPONSES && format != DGM_FORMAT_AI_SDK))
        return NULL;
    yyjson_val *list = dgm_json_get(question->metadata, DGM_STR(DGM_SERVICE_APPROVALS));
    return yyjson_arr_size(list) ? list : NULL;
}

/* Only the words for yes approve; any other text is the reason of a refusal. */
static struct decision decision_of_text(dgm_str text)
{
    bool is_approved = dgm_approval_of_text(text) == DGM_APPROVED;
    return (struct decision){.is_approved = is_approved,
                             .reason = is_approved ? (dgm_str){0} : text};
}

/* Other arguments than those of the call: neither format has a place for them, so the service is asked for another call. */
static struct decision decision_of_data(dgm_arena *a, const dgm_approval *x, yyjson_val *request)
{
    struct decision d = {.is_approved = x->decision == DGM_APPROVED, .reason = x->reason};
    if (d.is_approved && x->arguments &&
        !dgm_json_equal(x->arguments, dgm_json_get(request, DGM_STR("arguments")))) {
        dgm_str text = dgm_content_value_text(a, x->arguments);
        d.is_approved = false;
        d.reason = dgm_arena_printf(a, "the user wants other arguments: %.*s", DGM_P(text));
    }
    return d;
}

static bool has_decisions(const dgm_message *m)
{
    dgm_approval x;
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA && dgm_approval_read(m->parts.at[i].data, &x))
            return true;
    }
    return false;
}

static struct decision decide(const dgm_service_turn *turn, dgm_arena *a, yyjson_val *request)
{
    bool others;
    dgm_approval x = dgm_message_approval(a, turn->message, dgm_json_str_member(request, "id"));
    if (!has_decisions(turn->message))
        return decision_of_text(dgm_content_text(a, &turn->message->parts, &others));
    if (!x.decision)
        return (struct decision){.reason = DGM_STR(NOT_DECIDED)};
    return decision_of_data(a, &x, request);
}

const dgm_json *dgm_service_approval_payload(const dgm_service_turn *turn, dgm_arena *a, dgm_str id)
{
    dgm_approval x = dgm_message_approval(a, turn->message, id);
    if (!x.decision && has_decisions(turn->message))
        x = (dgm_approval){.decision = DGM_REJECTED, .reason = DGM_STR(NOT_DECIDED)};
    x.id = id;
    return x.decision ? dgm_approval_data(a, &x) : NULL;
}

/* {"type":"mcp_approval_response","approval_request_id","approve","reason"?} */
static const dgm_json *decision_item(dgm_arena *a, yyjson_val *request, const struct decision *d)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "mcp_approval_response");
    dgm_json_build_str(&b, "approval_request_id", dgm_json_str_member(request, "id"));
    dgm_json_build_bool(&b, "approve", d->is_approved);
    if (d->reason.n)
        dgm_json_build_str(&b, "reason", d->reason);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* The part of the call, as a client has it after the user's decision. */
static const dgm_json *decision_part(dgm_arena *a, yyjson_val *request, const struct decision *d)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "dynamic-tool");
    dgm_json_build_str(&b, "toolName", dgm_json_str_member(request, "tool"));
    dgm_json_build_str(&b, "toolCallId", dgm_json_str_member(request, "call_id"));
    dgm_json_build_lit(&b, "state", "approval-responded");
    dgm_json_build_value(&b, "input", dgm_json_get(request, DGM_STR("arguments")));
    dgm_json_build_object(&b, "approval");
    dgm_json_build_str(&b, "id", dgm_json_str_member(request, "id"));
    dgm_json_build_bool(&b, "approved", d->is_approved);
    if (d->reason.n)
        dgm_json_build_str(&b, "reason", d->reason);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static void add_value(dgm_canon_messages *to, const char *type, const dgm_json *value)
{
    to->at[to->n++] = (dgm_canon_message){
        .role = DGM_CANON_ACTIVITY,
        .id = DGM_STR("approval"),
        .activity_type = dgm_str_from(type),
        .content = {.kind = DGM_CANON_CONTENT_OBJECT, .object = value},
    };
}

void dgm_service_add_decisions(const dgm_service_turn *turn, dgm_arena *a, yyjson_val *open,
                               dgm_canon_messages *messages)
{
    bool is_responses = turn->codec->format == DGM_FORMAT_RESPONSES;
    dgm_canon_messages all = {
        dgm_new_n(a, dgm_canon_message, messages->n + 2 * yyjson_arr_size(open)), messages->n};
    yyjson_val *request;
    size_t i, n;
    if (messages->n)
        memcpy(all.at, messages->at, messages->n * sizeof *all.at);
    if (is_responses && !turn->has_memory) { /* it does not know its own requests */
        yyjson_arr_foreach (open, i, n, request)
            add_value(&all, DGM_RESPONSES_ITEM, dgm_json_get(request, DGM_STR("item")));
    }
    yyjson_arr_foreach (open, i, n, request) {
        struct decision d = decide(turn, a, request);
        if (is_responses)
            add_value(&all, DGM_RESPONSES_ITEM, decision_item(a, request, &d));
        else
            add_value(&all, DGM_AISDK_PART, decision_part(a, request, &d));
    }
    *messages = all;
}
