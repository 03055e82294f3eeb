/*
 * wire/aisdk/aisdk_read.c - UI messages to canonical ones, and requests.
 *
 * One message of the assistant is a complete turn: steps, each with reasoning, text, calls and their results.
 * It becomes as many messages as other formats need. The first message of the assistant gets its id; the
 * others get the id with a number.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/aisdk/aisdk_int.h"
#include "wire/read_messages.h"

#include <stdio.h>

/* ---- the outside of a message ---------------------------------------------------------------------------- */

struct ui_message {
    dgm_str id;
    dgm_canon_role role;
    const dgm_json *metadata;
    const dgm_json *parts;
    dgm_str content; /* what messages had before they had parts */
    const dgm_extra *extra;
};

static const char *const role_names[DGM_N_CANON_ROLES] = {
    [DGM_CANON_SYSTEM] = "system", [DGM_CANON_ASSISTANT] = "assistant", [DGM_CANON_USER] = "user"};
static const dgm_enum_names roles = {
    .what = "role of a UI message", .names = role_names, .n = DGM_N_CANON_ROLES};

static const dgm_field message_fields[] = {
    DGM_F(struct ui_message, id, "id", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F_OF(struct ui_message, role, "role", ENUM, DGM_REQUIRED, &roles),
    DGM_F(struct ui_message, metadata, "metadata", JSON, 0),
    DGM_F(struct ui_message, parts, "parts", JSON, 0),
    DGM_F(struct ui_message, content, "content", STR, 0),
};
static const dgm_shape message_shape = {
    .what = "UI message",
    .size = sizeof(struct ui_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(struct ui_message, extra),
    .tag_at = DGM_NOWHERE,
};

/* ---- a turn --------------------------------------------------------------------------------------------------- */

struct reading {
    dgm_reader *r;
    dgm_canon_messages *out;
    const struct ui_message *ui;
    size_t first;   /* of this UI message in out */
    size_t n_named; /* messages that got the id */
    /* the step that is being read */
    dgm_buf text;
    bool has_text;
    dgm_canon_calls calls;
    dgm_canon_messages results;
    size_t
        last_text; /* where the last text part went: a message of out, or SIZE_MAX: this step's text */
    size_t last_text_at;
    dgm_canon_parts parts; /* of a user */
    bool has_files;
};

static dgm_canon_message *aisdk_read_add_message(struct reading *k, dgm_canon_role role)
{
    dgm_canon_messages *out = k->out;
    out->at = dgm_list_grow(k->r->arena, out->at, out->n, sizeof *out->at);
    dgm_canon_message *m = &out->at[out->n++];
    m->role = role;
    return m;
}

static dgm_str next_id(struct reading *k)
{
    return dgm_arena_printf(k->r->arena, "%.*s-%zu", DGM_P(k->ui->id), ++k->n_named + 1);
}

static void flush_step(struct reading *k)
{
    if (k->has_text || k->calls.n) {
        dgm_canon_message *m = aisdk_read_add_message(k, DGM_CANON_ASSISTANT);
        if (k->has_text)
            m->content =
                (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                    .text = dgm_arena_dup(k->r->arena, dgm_buf_str(&k->text))};
        m->tool_calls = k->calls;
        if (k->last_text == SIZE_MAX)
            k->last_text = k->out->n - 1;
    }
    for (size_t i = 0; i < k->results.n; i++)
        *aisdk_read_add_message(k, DGM_CANON_TOOL) = k->results.at[i];
    dgm_buf_clear(&k->text);
    k->has_text = false;
    k->calls = (dgm_canon_calls){0};
    k->results = (dgm_canon_messages){0};
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void aisdk_read_put_text(struct reading *k, dgm_str text)
{
    k->last_text = SIZE_MAX;
    k->last_text_at = k->text.n;
    dgm_buf_add_str(&k->text, text);
    k->has_text = true;
}

static dgm_code read_text(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *t = dgm_json_get(v, DGM_STR("text"));
    dgm_str text;
    dgm_code rc;
    if (!t)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "text"),
                        "missing: a %.*s part needs it", DGM_P(dgm_json_str_member(v, "type")));
    if ((rc = dgm_read_str(k->r, t, DGM_AT_LIT(at, "text"), &text)))
        return rc;
    if (dgm_str_is(dgm_json_str_member(v, "type"), "reasoning")) {
        if (k->has_text || k->calls.n)
            flush_step(k);
        dgm_canon_message *m = aisdk_read_add_message(k, DGM_CANON_REASONING);
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text};
        return DGM_OK;
    }
    if (k->ui->role != DGM_CANON_ASSISTANT) {
        k->parts.at = dgm_list_grow(k->r->arena, k->parts.at, k->parts.n, sizeof *k->parts.at);
        k->parts.at[k->parts.n++] = (dgm_canon_part){.kind = DGM_CANON_PART_TEXT, .text = text};
        return DGM_OK;
    }
    if (dgm_aisdk_is_instead(v) && k->last_text != SIZE_MAX && k->last_text >= k->first &&
        k->last_text < k->out->n) {
        k->out->at[k->last_text].content.text = text; /* in an earlier step */
        return DGM_OK;
    }
    if (dgm_aisdk_is_instead(v) && k->has_text)
        k->text.n = k->last_text_at;
    if (k->results.n) /* behind a result the model was asked again */
        flush_step(k);
    aisdk_read_put_text(k, text);
    return DGM_OK;
}

static dgm_code aisdk_read_file(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    dgm_canon_part part;
    dgm_code rc;
    if ((rc = dgm_aisdk_read_file(k->r, v, at, &part)))
        return rc;
    if (k->ui->role == DGM_CANON_USER) {
        k->parts.at = dgm_list_grow(k->r->arena, k->parts.at, k->parts.n, sizeof *k->parts.at);
        k->parts.at[k->parts.n++] = part;
        k->has_files = true;
        return DGM_OK;
    }
    if (k->has_text) /* on a line of its own */
        dgm_buf_add_char(&k->text, '\n');
    aisdk_read_put_text(k, dgm_aisdk_file_text(k->r->arena, &part));
    return DGM_OK;
}

static void aisdk_read_add_result(struct reading *k, yyjson_val *v, dgm_str state, dgm_str id)
{
    bool failed = !dgm_str_is(state, "output-available");
    dgm_str why = dgm_json_str_member(v, "errorText");
    if (failed && !why.n)
        why = dgm_str_is(state, "output-denied") ? DGM_STR("The call was denied")
                                                 : DGM_STR("The tool failed");
    k->results.at = dgm_list_grow(k->r->arena, k->results.at, k->results.n, sizeof *k->results.at);
    dgm_canon_message *m = &k->results.at[k->results.n++];
    m->role = DGM_CANON_TOOL;
    m->tool_call_id = id;
    m->content.kind = DGM_CANON_CONTENT_TEXT;
    m->content.text =
        failed ? why : dgm_content_value_text(k->r->arena, dgm_json_get(v, DGM_STR("output")));
    if (failed)
        m->error = why;
}

/* The user's decision about a call is its result, which the agent that asked for it receives. */
static void add_decision(struct reading *k, yyjson_val *v, dgm_str id)
{
    static const char *const names[] = {"approved", "reason"};
    yyjson_val *approval = dgm_json_get(v, DGM_STR("approval"));
    dgm_member members[2];
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        yyjson_val *value = dgm_json_get(approval, dgm_str_from(names[i]));
        if (value)
            members[n++] = (dgm_member){dgm_str_from(names[i]), value};
    }
    k->results.at = dgm_list_grow(k->r->arena, k->results.at, k->results.n, sizeof *k->results.at);
    k->results.at[k->results.n++] = (dgm_canon_message){
        .role = DGM_CANON_TOOL,
        .tool_call_id = id,
        .content = {
            .kind = DGM_CANON_CONTENT_TEXT,
            .text = dgm_content_value_text(k->r->arena, dgm_json_object(k->r->arena, members, n))}};
}

static dgm_code read_tool(struct reading *k, yyjson_val *v, dgm_str name, const dgm_at *at)
{
    dgm_str id = dgm_json_str_member(v, "toolCallId"), state = dgm_json_str_member(v, "state");
    yyjson_val *input = dgm_json_get(v, DGM_STR("input"));
    if (!id.p)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "toolCallId"),
                        "missing: the id of the call");
    if (!name.p)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "toolName"),
                        "missing: the name of the tool");
    if (!input || yyjson_is_null(input))
        input = dgm_json_get(v, DGM_STR("rawInput"));
    k->calls.at = dgm_list_grow(k->r->arena, k->calls.at, k->calls.n, sizeof *k->calls.at);
    k->calls.at[k->calls.n++] = (dgm_canon_call){
        .id = id,
        .name = name,
        .arguments = dgm_content_arguments(k->r->arena, yyjson_is_null(input) ? NULL : input)};
    if (dgm_str_starts(state, DGM_STR("output-")))
        aisdk_read_add_result(k, v, state, id);
    else if (dgm_str_is(state, "approval-responded"))
        add_decision(k, v, id);
    return DGM_OK;
}

static void read_activity(struct reading *k, yyjson_val *v, bool status)
{
    yyjson_val *data = dgm_json_get(v, DGM_STR("data"));
    const dgm_json *content = status ? dgm_aisdk_status_content(k->r->arena, data)
                                     : dgm_json_get(data, DGM_STR("content"));
    dgm_str type = status ? DGM_STR(AISDK_A2A_STATUS) : dgm_json_str_member(data, "activityType");
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)content) || !type.p)
        return;
    if (status && !yyjson_obj_size((yyjson_val *)(uintptr_t)content))
        return; /* how it ended: no progress */
    dgm_canon_message *m = aisdk_read_add_message(k, DGM_CANON_ACTIVITY);
    m->activity_type = type;
    m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_OBJECT, .object = content};
}

static dgm_code read_part(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(k->r, v, at, "an object (part)");
    if (!type.p)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "missing: the type of the part");
    if (dgm_str_is(type, "text") || dgm_str_is(type, "reasoning"))
        return read_text(k, v, at);
    if (dgm_str_is(type, "file"))
        return aisdk_read_file(k, v, at);
    if (dgm_str_is(type, "dynamic-tool"))
        return read_tool(k, v, dgm_json_str_member(v, "toolName"), at);
    if (dgm_aisdk_tool_of(type).p)
        return read_tool(k, v, dgm_aisdk_tool_of(type), at);
    if (dgm_str_is(type, "step-start"))
        flush_step(k);
    else if (dgm_str_is(type, AISDK_STATUS) || dgm_str_is(type, AISDK_ACTIVITY))
        read_activity(k, v, dgm_str_is(type, AISDK_STATUS));
    else
        k->r->n_unknown++;
    return DGM_OK;
}

/* ---- messages ------------------------------------------------------------------------------------------------------- */

static void finish_user(struct reading *k)
{
    dgm_canon_message *m = aisdk_read_add_message(k, k->ui->role);
    dgm_canon_content parts = {.kind = DGM_CANON_CONTENT_PARTS, .parts = k->parts};
    m->content = parts;
    if (!k->has_files)
        m->content = (dgm_canon_content){
            .kind = DGM_CANON_CONTENT_TEXT,
            .text = k->parts.n ? dgm_aisdk_content_text(k->r->arena, &parts) : DGM_STR("")};
}

/* The first message of the assistant gets the id and the other members of the UI message. */
static void name_messages(struct reading *k)
{
    size_t main = k->first;
    while (main < k->out->n && k->out->at[main].role != DGM_CANON_ASSISTANT &&
           k->ui->role == DGM_CANON_ASSISTANT)
        main++;
    for (size_t i = k->first; i < k->out->n; i++) {
        dgm_canon_message *m = &k->out->at[i];
        m->id = i == main ? k->ui->id : next_id(k);
        if (i == (main < k->out->n ? main : k->first)) {
            m->metadata =
                yyjson_is_obj((yyjson_val *)(uintptr_t)k->ui->metadata) ? k->ui->metadata : NULL;
            m->extra = k->ui->extra;
        }
    }
}

static dgm_code read_parts(struct reading *k, const dgm_at *at)
{
    yyjson_val *list = (yyjson_val *)(uintptr_t)k->ui->parts, *v;
    size_t i, n;
    dgm_code rc;
    if (!list && k->ui->content.p)
        list = dgm_json_parse_trusted(k->r->arena, DGM_STR("[]"));
    if (!yyjson_is_arr(list))
        return list ? dgm_read_wrong(k->r, list, DGM_AT_LIT(at, "parts"), "an array")
                    : dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "parts"),
                               "missing: a UI message has parts");
    if (yyjson_arr_size(list) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(k->r->err, DGM_TOO_LARGE, DGM_AT_LIT(at, "parts"),
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(list), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (list, i, n, v) {
        if ((rc = read_part(k, v, DGM_AT_I(DGM_AT_LIT(at, "parts"), i))))
            return rc;
    }
    if (!k->ui->parts && k->ui->content.p) {
        if (k->ui->role == DGM_CANON_ASSISTANT) {
            aisdk_read_put_text(k, k->ui->content);
        } else {
            k->parts = (dgm_canon_parts){dgm_new(k->r->arena, dgm_canon_part), 1};
            k->parts.at[0] = (dgm_canon_part){.kind = DGM_CANON_PART_TEXT, .text = k->ui->content};
        }
    }
    return DGM_OK;
}

static dgm_code read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_messages *out)
{
    struct ui_message ui = {0};
    dgm_code rc;
    if ((rc = dgm_shape_read(r, &message_shape, v, at, &ui)))
        return rc;
    struct reading k = {.r = r, .out = out, .ui = &ui, .first = out->n, .last_text = out->n};
    dgm_buf_init(&k.text, SIZE_MAX);
    rc = read_parts(&k, at);
    if (!rc && ui.role != DGM_CANON_ASSISTANT)
        finish_user(&k);
    if (!rc)
        flush_step(&k);
    if (!rc && k.first == out->n) { /* empty, but there */
        aisdk_read_add_message(&k, DGM_CANON_ASSISTANT)->content =
            (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("")};
    }
    if (!rc)
        name_messages(&k);
    dgm_buf_done(&k.text);
    return rc;
}

dgm_code dgm_aisdk_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                 dgm_canon_messages *ret)
{
    r->format = DGM_FORMAT_AI_SDK;
    return dgm_read_messages(r, v, at, read_message, ret);
}

bool dgm_aisdk_is_message(const yyjson_val *v)
{
    dgm_str role = dgm_json_str_member(v, "role");
    yyjson_val *parts = dgm_json_get(v, DGM_STR("parts"));
    if (!dgm_str_is(role, "user") && !dgm_str_is(role, "assistant") && !dgm_str_is(role, "system"))
        return false;
    if (!yyjson_is_arr(parts) || dgm_json_get(v, DGM_STR("messageId")))
        return false; /* A2A's messages have parts too */
    return !yyjson_arr_size(parts)
               ? dgm_json_str_member(v, "id").p != NULL
               : dgm_json_str_member(yyjson_arr_get_first(parts), "type").p != NULL;
}
