/*
 * wire/responses/responses_approval.c - requests for approval: items mcp_approval_request, and mcp_approval_response in requests.
 *
 * An interrupt with a request for approval (canon/interrupts.h) is an item; the item's id is the interrupt's, with the prefix
 * mcpr_. So an answer names its interrupt, whichever conversation it is sent to.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/interrupts.h"
#include "wire/responses/responses_in.h"
#include "wire/responses/responses_out.h"
#include "json/build.h"

#define PREFIX "mcpr_"

static bool has_item_type(const dgm_json *item, const char *type)
{
    return dgm_str_eq(dgm_json_str_member(item, "type"), dgm_str_from(type));
}

/* The interrupt's id of an item's. */
static dgm_str interrupt_id(dgm_str id)
{
    size_t n = sizeof PREFIX - 1;
    return dgm_str_starts(id, DGM_STR(PREFIX)) && id.n > n ? (dgm_str){id.p + n, id.n - n} : id;
}

/* ---- the encoder ------------------------------------------------------------------------------------------------------ */

static void put_approval_item(struct responses_encoder *e, dgm_buf *out, dgm_str id,
                              const dgm_approval_request *request)
{
    const dgm_json *arguments = request->arguments;
    dgm_str text = arguments ? dgm_content_value_text(e->scratch, arguments) : DGM_STR("{}");
    dgm_buf_add_lit(out, "{\"id\":");
    dgm_json_put_str(out, id);
    dgm_buf_add_lit(out, ",\"type\":\"mcp_approval_request\",\"arguments\":");
    dgm_json_put_str(out, text);
    dgm_buf_add_lit(out, ",\"name\":");
    dgm_json_put_str(out, request->tool);
    dgm_buf_add_lit(out, ",\"server_label\":");
    dgm_json_put_str(out, e->model);
    dgm_buf_add_char(out, '}');
}

void dgm_responses_ask_approvals(struct responses_encoder *e, const dgm_canon_outcome *o)
{
    for (size_t i = 0; i < o->interrupts.n; i++) {
        dgm_approval_request request;
        if (!dgm_interrupt_approval(&o->interrupts.at[i], &request))
            continue;
        dgm_str id =
            dgm_arena_join(e->arena, DGM_STR(PREFIX), interrupt_id(o->interrupts.at[i].id));
        if (dgm_map_get(&e->ids, id)) /* it was written as it came */
            continue;
        struct responses_item *it = dgm_responses_new_item(e, RESPONSES_OTHER);
        put_approval_item(e, &it->text, id, &request);
        dgm_responses_keep(e, it->text.n);
        dgm_responses_add(e, it, "", id);
        dgm_responses_close(e, it, "completed");
    }
}

/* ---- the decoder ------------------------------------------------------------------------------------------------------ */

void dgm_responses_in_approval(struct responses_decoder *d, const yyjson_val *item)
{
    dgm_arena *a = d->arena;
    dgm_str id = dgm_json_str_member(item, "id"),
            arguments = dgm_json_str_member(item, "arguments");
    if (!has_item_type(item, "mcp_approval_request") || !id.n || id.n > DGM_MAX_ID_BYTES ||
        d->approvals.n == DGM_MAX_OPEN_CALLS)
        return;
    dgm_approval_request request = {
        .id = id,
        .tool = dgm_json_str_member(item, "name"),
        .arguments = dgm_approval_arguments(d->r->arena, arguments),
    };
    d->approvals.at = dgm_list_grow(a, d->approvals.at, d->approvals.n, sizeof *d->approvals.at);
    d->approvals.at[d->approvals.n++] =
        dgm_interrupt_of_approval(a, interrupt_id(id), (dgm_str){0}, &request);
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

/* Does the agent speak in this item? Answers before it are old. */
static bool is_spoken(const yyjson_val *item)
{
    static const char *const types[] = {"reasoning", "function_call", "custom_tool_call",
                                        "mcp_call"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (has_item_type(item, types[i]))
            return true;
    }
    return dgm_str_is(dgm_json_str_member(item, "role"), "assistant");
}

dgm_canon_resumes dgm_responses_read_approvals(dgm_arena *a, yyjson_val *items)
{
    dgm_canon_resumes list = {0};
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (items, i, n, item) {
        yyjson_val *approve = dgm_json_get(item, DGM_STR("approve"));
        if (is_spoken(item))
            list.n = 0;
        if (!has_item_type(item, "mcp_approval_response") || !yyjson_is_bool(approve) ||
            list.n == DGM_MAX_RESUME_ENTRIES)
            continue;
        dgm_approval approval = {.decision = yyjson_is_true(approve) ? DGM_APPROVED : DGM_REJECTED,
                                 .reason = dgm_json_str_member(item, "reason")};
        list.at = dgm_list_grow(a, list.at, list.n, sizeof *list.at);
        list.at[list.n++] = (dgm_canon_resume){
            .interrupt_id = interrupt_id(dgm_json_str_member(item, "approval_request_id")),
            .status = DGM_CANON_RESOLVED,
            .payload = dgm_approval_data(a, &approval)};
    }
    return list;
}

static bool has_approval_item(const dgm_canon_messages *messages)
{
    for (size_t i = 0; i < messages->n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        if (m->role == DGM_CANON_ACTIVITY && dgm_str_is(m->activity_type, DGM_RESPONSES_ITEM) &&
            has_item_type(m->content.object, "mcp_approval_response"))
            return true;
    }
    return false;
}

dgm_canon_messages dgm_responses_with_approvals(dgm_arena *a, const dgm_canon_input *in,
                                                dgm_canon_messages messages)
{
    dgm_canon_messages all = {0};
    if (!in->resume.n || has_approval_item(&messages))
        return messages;
    all.at = dgm_new_n(a, dgm_canon_message, messages.n + in->resume.n);
    if (messages.n)
        memcpy(all.at, messages.at, messages.n * sizeof *all.at);
    all.n = messages.n;
    for (size_t i = 0; i < in->resume.n; i++) {
        dgm_approval approval = dgm_approval_of_resume(&in->resume.at[i]);
        if (!approval.decision)
            continue;
        dgm_json_build b = dgm_json_build_start(a);
        dgm_json_build_object(&b, NULL);
        dgm_json_build_lit(&b, "type", "mcp_approval_response");
        dgm_json_build_str(
            &b, "approval_request_id",
            dgm_arena_join(a, DGM_STR(PREFIX), interrupt_id(in->resume.at[i].interrupt_id)));
        dgm_json_build_bool(&b, "approve", approval.decision == DGM_APPROVED);
        if (approval.reason.n)
            dgm_json_build_str(&b, "reason", approval.reason);
        dgm_json_build_close(&b);
        all.at[all.n++] = (dgm_canon_message){
            .role = DGM_CANON_ACTIVITY,
            .activity_type = DGM_STR(DGM_RESPONSES_ITEM),
            .content = {.kind = DGM_CANON_CONTENT_OBJECT, .object = dgm_json_build_end(&b)}};
    }
    return all;
}

bool dgm_responses_is_approval_id(dgm_str item_id)
{
    return dgm_str_starts(item_id, DGM_STR(PREFIX));
}
