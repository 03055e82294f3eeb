/* canon/interrupts.c - see interrupts.h. */
#include "canon/interrupts.h"
#include "base/limits.h"
#include "base/str.h"
#include "json/build.h"

#include <ctype.h>

/* ---- questions to interrupts ------------------------------------------------------------------------------------------ */

/* {"type":"object","properties":{"approved":...},"required":["approved"]} */
static const dgm_json *approval_schema(dgm_arena *a)
{
    return dgm_json_parse_trusted(
        a, DGM_STR("{\"type\":\"object\",\"properties\":{\"approved\":{\"type\":\"boolean\"},"
                   "\"arguments\":{\"type\":\"object\"},\"reason\":{\"type\":\"string\"}},"
                   "\"required\":[\"approved\"]}"));
}

/* Choices are answered as {"text": one of them}, as any text is. */
static const dgm_json *question_schema(dgm_arena *a, const dgm_question *q)
{
    if (q->schema || !q->choices)
        return q->schema;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "object");
    dgm_json_build_object(&b, "properties");
    dgm_json_build_object(&b, "text");
    dgm_json_build_lit(&b, "type", "string");
    dgm_json_build_value(&b, "enum", q->choices);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    dgm_json_build_array(&b, "required");
    dgm_json_build_lit(&b, NULL, "text");
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* Metadata of the agent's question, without what we write about all messages, and one member more. data: NULL: none. */
static const dgm_json *metadata_with(dgm_arena *a, const dgm_message *m, const char *key,
                                     const dgm_json *data)
{
    yyjson_val *own = m ? (yyjson_val *)(uintptr_t)m->metadata : NULL, *name, *value;
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(own) + 1);
    size_t i, max, n = 0;
    yyjson_obj_foreach (own, i, max, name, value) {
        if (!dgm_str_is(dgm_json_str(name), "canonical_type"))
            members[n++] = (dgm_member){dgm_json_str(name), value};
    }
    if (data)
        members[n++] = (dgm_member){dgm_str_from(key), data};
    return n ? dgm_json_object(a, members, n) : NULL;
}

static dgm_str interrupt_name(dgm_arena *a, const dgm_asking *asking)
{
    return asking->turn > 1
               ? dgm_arena_printf(a, "%.*s-%u", DGM_P(asking->id), (unsigned)asking->turn)
               : asking->id;
}

dgm_canon_interrupt dgm_interrupt_of_approval(dgm_arena *a, dgm_str id, dgm_str text,
                                              const dgm_approval_request *request)
{
    dgm_approval_request copy = *request;
    dgm_approval_requests one = {&copy, 1};
    dgm_member metadata = {DGM_STR(DGM_INTERRUPT_APPROVAL), dgm_approval_request_data(a, request)};
    return (dgm_canon_interrupt){
        .id = dgm_arena_dup(a, id),
        .reason = request->call_id.n ? DGM_STR("tool_call") : DGM_STR("confirmation"),
        .message = text.n ? dgm_arena_dup(a, text) : dgm_approval_question(a, &one),
        .tool_call_id = request->call_id.n ? dgm_arena_dup(a, request->call_id) : (dgm_str){0},
        .response_schema = approval_schema(a),
        .metadata = dgm_json_copy(a, dgm_json_object(a, &metadata, 1)),
    };
}

/* The agent's own metadata is that of the first. */
static dgm_canon_interrupts approval_interrupts(dgm_arena *a, const dgm_asking *asking,
                                                const dgm_approval_requests *requests)
{
    dgm_canon_interrupts list = {dgm_new_n(a, dgm_canon_interrupt, requests->n), requests->n};
    dgm_str name = interrupt_name(a, asking);
    bool alone = requests->n == 1;
    for (size_t i = 0; i < requests->n; i++) {
        dgm_str id = alone ? name : dgm_arena_printf(a, "%.*s.%zu", DGM_P(name), i + 1);
        list.at[i] =
            dgm_interrupt_of_approval(a, id, alone ? asking->text : (dgm_str){0}, &requests->at[i]);
    }
    list.at[0].metadata =
        metadata_with(a, asking->message, DGM_INTERRUPT_APPROVAL,
                      dgm_json_get(list.at[0].metadata, DGM_STR(DGM_INTERRUPT_APPROVAL)));
    return list;
}

dgm_canon_interrupts dgm_interrupts_of_question(dgm_arena *a, const dgm_asking *asking)
{
    const dgm_message *m = asking->message;
    dgm_approval_requests requests = dgm_message_approval_requests(a, m);
    dgm_question question;
    dgm_auth_request auth;
    if (requests.n)
        return approval_interrupts(a, asking, &requests);
    dgm_canon_interrupt *it = dgm_new(a, dgm_canon_interrupt);
    bool is_auth = asking->state == DGM_STATE_AUTH_REQUIRED;
    *it = (dgm_canon_interrupt){.id = interrupt_name(a, asking),
                                .reason =
                                    is_auth ? DGM_STR(DGM_REASON_AUTH) : DGM_STR("input_required"),
                                .message = asking->text.n ? asking->text : (dgm_str){0}};
    const dgm_json *data;
    if ((data = dgm_message_question(m, &question))) {
        it->response_schema = question_schema(a, &question);
        it->metadata = metadata_with(a, m, DGM_INTERRUPT_QUESTION, data);
    } else if ((data = dgm_message_auth_request(m, &auth))) {
        it->metadata = metadata_with(a, m, DGM_INTERRUPT_AUTH, data);
    } else {
        for (size_t i = 0; m && i < m->parts.n && !data; i++)
            data = dgm_part_interrupts(&m->parts.at[i]);
        it->metadata = metadata_with(a, m, DGM_DATA_INTERRUPTS, data);
    }
    return (dgm_canon_interrupts){it, 1};
}

/* ---- interrupts to questions ------------------------------------------------------------------------------------------ */

static const char *const interrupt_members[] = {DGM_INTERRUPT_APPROVAL, DGM_INTERRUPT_QUESTION,
                                                DGM_INTERRUPT_AUTH};
#define N_MEMBERS (sizeof interrupt_members / sizeof *interrupt_members)

static void add_part(dgm_arena *a, dgm_parts *parts, size_t *cap, yyjson_val *data)
{
    dgm_part part = {.kind = DGM_PART_DATA, .data = data};
    if (!dgm_part_is_asked(&part) || parts->n == DGM_MAX_OPEN_CALLS)
        return;
    if (parts->n == *cap) {
        dgm_part *more = dgm_new_n(a, dgm_part, *cap * 2 + 4);
        if (parts->n)
            memcpy(more, parts->at, parts->n * sizeof *more);
        parts->at = more;
        *cap = *cap * 2 + 4;
    }
    parts->at[parts->n++] = part;
}

dgm_parts dgm_interrupts_parts(dgm_arena *a, const dgm_canon_interrupts *interrupts)
{
    dgm_parts parts = {0};
    yyjson_val *one;
    size_t cap = 0, n, i;
    for (size_t k = 0; k < interrupts->n; k++) {
        for (size_t m = 0; m < N_MEMBERS; m++) {
            yyjson_val *data =
                dgm_json_get(interrupts->at[k].metadata, dgm_str_from(interrupt_members[m]));
            if (!yyjson_is_arr(data))
                add_part(a, &parts, &cap, data);
            yyjson_arr_foreach (data, i, n, one) /* one interrupt for several requests */
                add_part(a, &parts, &cap, one);
        }
    }
    return parts;
}

dgm_str dgm_interrupts_text(dgm_arena *a, const dgm_canon_interrupts *interrupts)
{
    dgm_buf b;
    if (interrupts->n == 1)
        return interrupts->at[0].message;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    for (size_t i = 0; i < interrupts->n; i++) {
        if (b.n && interrupts->at[i].message.n)
            dgm_buf_add_char(&b, '\n');
        dgm_buf_add_str(&b, interrupts->at[i].message);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static bool is_interrupt_member(dgm_str key, yyjson_val *value)
{
    dgm_part part = {.kind = DGM_PART_DATA,
                     .data = yyjson_is_arr(value) ? yyjson_arr_get_first(value) : value};
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (dgm_str_eq(key, dgm_str_from(interrupt_members[i])))
            return part.data && dgm_part_is_asked(&part);
    }
    return false;
}

const dgm_json *dgm_interrupts_metadata(dgm_arena *a, const dgm_canon_interrupts *interrupts)
{
    yyjson_val *all = interrupts->n ? (yyjson_val *)(uintptr_t)interrupts->at[0].metadata : NULL;
    yyjson_val *key, *value;
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(all) + 1);
    size_t i, max, n = 0;
    yyjson_obj_foreach (all, i, max, key, value) {
        if (!is_interrupt_member(dgm_json_str(key), value))
            members[n++] = (dgm_member){dgm_json_str(key), value};
    }
    return n ? dgm_json_object(a, members, n) : NULL;
}

bool dgm_interrupt_approval(const dgm_canon_interrupt *it, dgm_approval_request *ret)
{
    yyjson_val *data = dgm_json_get(it->metadata, DGM_STR(DGM_INTERRUPT_APPROVAL));
    return data && dgm_approval_request_read(data, ret);
}

bool dgm_interrupt_is_only_approval(dgm_arena *a, const dgm_canon_interrupt *it)
{
    dgm_approval_request request;
    dgm_approval_requests one = {&request, 1};
    return dgm_interrupt_approval(it, &request) &&
           dgm_str_eq(it->message, dgm_approval_question(a, &one));
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* The number behind the last `mark`, from 1 to 999999999 and without a zero in front; 0: no such number. */
static uint32_t number_behind(dgm_str id, char mark, size_t *ret_at)
{
    size_t at = id.n;
    uint32_t number = 0;
    while (at && isdigit((unsigned char)id.p[at - 1]))
        at--;
    size_t digits = id.n - at;
    if (digits == 0 || digits > 9 || at < 2 || id.p[at - 1] != mark || id.p[at] == '0')
        return 0;
    for (size_t i = at; i < id.n; i++)
        number = number * 10 + (uint32_t)(id.p[i] - '0');
    *ret_at = at - 1;
    return number;
}

dgm_interrupt_place dgm_interrupt_place_of(dgm_str id)
{
    dgm_interrupt_place place = {.id = id};
    size_t at = 0;
    if ((place.number = number_behind(id, '.', &at)))
        place.id.n = at;
    if ((place.turn = number_behind(place.id, '-', &at)) > 1)
        place.task_id = (dgm_str){id.p, at};
    return place;
}

dgm_approval dgm_approval_of_resume(const dgm_canon_resume *r)
{
    yyjson_val *payload = (yyjson_val *)(uintptr_t)r->payload;
    dgm_approval found = {0};
    if (r->status == DGM_CANON_DISMISSED)
        return (dgm_approval){.decision = DGM_REJECTED, .reason = DGM_STR("dismissed")};
    if (yyjson_is_bool(payload))
        found.decision = yyjson_is_true(payload) ? DGM_APPROVED : DGM_REJECTED;
    else if (yyjson_is_str(payload))
        found.decision = dgm_approval_of_text(dgm_json_str(payload));
    else if (dgm_approval_read(payload, &found) && !found.arguments)
        found.arguments = dgm_json_non_null(payload, "editedArgs");
    return found;
}
