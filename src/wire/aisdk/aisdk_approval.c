/*
 * wire/aisdk/aisdk_approval.c - requests for approval: a tool part that waits for the user's decision.
 *
 * An interrupt with a request for approval (canon/interrupts.h) is a chunk tool-approval-request whose approvalId is the
 * interrupt's id. The call that it is about precedes it; if the run did not announce it, the chunk of the call is written here.
 * The user's decision is the part's `approval` in the last message of the next request.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/interrupts.h"
#include "canon/message_content.h"
#include "wire/aisdk/aisdk_int.h"
#include "json/build.h"

/* ---- the encoder ------------------------------------------------------------------------------------------------------ */

/* The id of the request is that of the call, unless the agent says otherwise: a later run announces it under this id. */
static dgm_str call_of_interrupt(const dgm_canon_interrupt *it, const dgm_approval_request *request)
{
    return it->tool_call_id.n ? it->tool_call_id : request->id.n ? request->id : it->id;
}

static void announce_call(struct aisdk_encoder *e, const dgm_approval_request *request, dgm_str id)
{
    dgm_canon_event start = {.kind = DGM_CANON_TOOL_CALL_START},
                    arguments = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    start.call.tool_call_id = arguments.call.tool_call_id = id;
    start.call.name = request->tool;
    arguments.call.delta =
        request->arguments ? dgm_content_value_text(e->scratch, request->arguments) : DGM_STR("{}");
    dgm_aisdk_start_call(e, &start); /* not again if the run has done it */
    if (!dgm_aisdk_has_arguments(e, id))
        dgm_aisdk_add_arguments(e, &arguments);
}

void dgm_aisdk_announce_approvals(struct aisdk_encoder *e, const dgm_canon_interrupts *list)
{
    dgm_approval_request request;
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_interrupt_approval(&list->at[i], &request))
            announce_call(e, &request, call_of_interrupt(&list->at[i], &request));
    }
}

void dgm_aisdk_ask_approvals(struct aisdk_encoder *e, const dgm_canon_interrupts *list)
{
    dgm_approval_request request;
    for (size_t i = 0; i < list->n; i++) {
        if (!dgm_interrupt_approval(&list->at[i], &request))
            continue;
        dgm_aisdk_begin(e, "tool-approval-request");
        dgm_aisdk_put_member(&e->out, "\"approvalId\"", list->at[i].id);
        dgm_aisdk_put_member(&e->out, "\"toolCallId\"", call_of_interrupt(&list->at[i], &request));
        dgm_aisdk_send(e);
    }
}

/* ---- the decoder ------------------------------------------------------------------------------------------------------ */

void dgm_aisdk_approval_chunk(struct aisdk_decoder *d, yyjson_val *v)
{
    dgm_arena *a = d->arena;
    dgm_str id = dgm_json_str_member(v, "approvalId"), call = dgm_json_str_member(v, "toolCallId");
    size_t *at = dgm_map_get(&d->by_id, call);
    if (!id.n || id.n > DGM_MAX_ID_BYTES || d->approvals.n == DGM_MAX_OPEN_CALLS)
        return;
    struct aisdk_read_call *c = at ? &d->calls[*at] : NULL;
    dgm_approval_request request = {
        .id = id,
        .tool = c ? c->name : DGM_STR("unknown"),
        .arguments = dgm_approval_arguments(d->r->arena, c ? c->arguments : (dgm_str){0}),
        .call_id = call};
    if (c)
        c->by_agent = true; /* the client does not run it */
    d->approvals.at = dgm_list_grow(a, d->approvals.at, d->approvals.n, sizeof *d->approvals.at);
    d->approvals.at[d->approvals.n++] = dgm_interrupt_of_approval(a, id, (dgm_str){0}, &request);
}

/* The texts of our own questions are in the metadata of the end. */
void dgm_aisdk_with_approvals(struct aisdk_decoder *d, dgm_canon_interrupts *list)
{
    if (!d->approvals.n)
        return;
    for (size_t i = 0; i < d->approvals.n; i++) {
        for (size_t k = 0; k < list->n; k++) {
            if (dgm_str_eq(list->at[k].id, d->approvals.at[i].id) && list->at[k].message.n)
                d->approvals.at[i].message = list->at[k].message;
        }
    }
    *list = d->approvals;
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

dgm_canon_resumes dgm_aisdk_read_approvals(dgm_arena *a, const yyjson_val *request)
{
    yyjson_val *last = yyjson_arr_get_last(dgm_json_get(request, DGM_STR("messages"))), *part;
    dgm_canon_resumes list = {0};
    size_t i, n;
    if (!dgm_str_is(dgm_json_str_member(last, "role"), "assistant"))
        return list;
    yyjson_arr_foreach (dgm_json_get(last, DGM_STR("parts")), i, n, part) {
        yyjson_val *approval = dgm_json_get(part, DGM_STR("approval"));
        yyjson_val *approved = dgm_json_get(approval, DGM_STR("approved"));
        dgm_str id = dgm_json_str_member(approval, "id");
        if (!dgm_str_is(dgm_json_str_member(part, "state"), "approval-responded") || !id.n ||
            !yyjson_is_bool(approved) || list.n == DGM_MAX_RESUME_ENTRIES)
            continue;
        dgm_approval answer = {.decision = yyjson_is_true(approved) ? DGM_APPROVED : DGM_REJECTED,
                               .reason = dgm_json_str_member(approval, "reason")};
        list.at = dgm_list_grow(a, list.at, list.n, sizeof *list.at);
        list.at[list.n++] = (dgm_canon_resume){.interrupt_id = id,
                                               .status = DGM_CANON_RESOLVED,
                                               .payload = dgm_approval_data(a, &answer)};
    }
    return list;
}
