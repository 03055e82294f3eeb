/*
 * wire/agui/agui_nouns.c - messages, calls, outcomes, requests: the tables.
 *
 * Messages with an unknown role are left out of a list, as the official client does.
 */
#include "wire/agui/agui_int.h"

const char dgm_agui_name[] = "ag-ui";

/* ---- messages -------------------------------------------------------------------------------------- */

static const char *const role_names[DGM_N_CANON_ROLES] = {
    NULL, "developer", "system", "assistant", "user", "tool", "reasoning", "activity"};
const dgm_enum_names dgm_agui_roles = {.what = "role", .names = role_names, .n = DGM_N_CANON_ROLES};

static const dgm_field function_fields[] = {
    DGM_F(dgm_canon_call, name, "name", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_call, arguments, "arguments", STR, DGM_REQUIRED),
};
static const dgm_shape function_shape = {
    .what = "function of a tool call",
    .size = sizeof(dgm_canon_call),
    DGM_FIELDS(function_fields),
    .extra_at = offsetof(dgm_canon_call, function_extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};
static const dgm_field call_fields[] = {
    DGM_F(dgm_canon_call, id, "id", STR, DGM_REQUIRED),
    DGM_F_CONST("type", "function"),
    DGM_F_NEST("function", DGM_REQUIRED, &function_shape),
    DGM_F(dgm_canon_call, encrypted_value, "encryptedValue", STR, OPT),
    DGM_F(dgm_canon_call, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape call_shape = DGM_AGUI_SHAPE(dgm_canon_call, "tool call", call_fields);

static dgm_code read_message_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_agui_read_content(r, v, at, &((dgm_canon_message *)object)->content);
}
static void write_message_content(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_canon_message *m = object;
    if (m->content.kind == DGM_CANON_CONTENT_ABSENT)
        return;
    dgm_put_key(w, f);
    dgm_agui_put_content(w, &m->content);
}
static const dgm_custom message_content = {read_message_content, write_message_content};

/* Which contents a role may have, and must. */
#define C(kind) (1u << DGM_CANON_CONTENT_##kind)
static const unsigned contents_of[DGM_N_CANON_ROLES] = {
    [DGM_CANON_DEVELOPER] = C(TEXT),
    [DGM_CANON_SYSTEM] = C(TEXT),
    [DGM_CANON_ASSISTANT] = C(TEXT) | C(ABSENT),
    [DGM_CANON_USER] = C(TEXT) | C(PARTS),
    [DGM_CANON_TOOL] = C(TEXT) | C(PARTS),
    [DGM_CANON_REASONING] = C(TEXT),
    [DGM_CANON_ACTIVITY] = C(OBJECT),
};
#undef C

static dgm_code check_message(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    const dgm_canon_message *m = object;
    (void)v;
    const char *role = role_names[m->role];
    if (!(contents_of[m->role] >> m->content.kind & 1))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "content"),
                        m->content.kind ? "of another type than a message of role %s has"
                                        : "missing: a message of role %s needs it",
                        role);
    if (m->role == DGM_CANON_TOOL && !m->tool_call_id.p)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "toolCallId"),
                        "missing: a tool message needs the id of its call");
    if (m->role == DGM_CANON_ACTIVITY && !m->activity_type.p)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "activityType"),
                        "missing: an activity needs it");
    return DGM_OK;
}

static const dgm_field message_fields[] = {
    DGM_F(dgm_canon_message, id, "id", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F_OF(dgm_canon_message, role, "role", ENUM, DGM_REQUIRED, &dgm_agui_roles),
    DGM_F(dgm_canon_message, name, "name", STR, OPT),
    DGM_F(dgm_canon_message, activity_type, "activityType", STR, OPT),
    DGM_F_CUSTOM("content", 0, &message_content),
    DGM_F_OF(dgm_canon_message, tool_calls, "toolCalls", LIST, OPT, &call_shape),
    DGM_F(dgm_canon_message, tool_call_id, "toolCallId", STR, OPT),
    DGM_F(dgm_canon_message, error, "error", STR, OPT),
    DGM_F(dgm_canon_message, encrypted_value, "encryptedValue", STR, OPT),
    DGM_F(dgm_canon_message, subagent_run_id, "subagentRunId", STR, OPT),
    DGM_F(dgm_canon_message, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_agui_message = {
    .what = "message",
    .size = sizeof(dgm_canon_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(dgm_canon_message, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = check_message,
};

dgm_code dgm_agui_read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_message *ret_message)
{
    *ret_message = (dgm_canon_message){0};
    return dgm_shape_read(r, &dgm_agui_message, v, at, ret_message);
}

void dgm_agui_write_message(dgm_writer *w, const dgm_canon_message *message)
{
    dgm_shape_write(w, &dgm_agui_message, message);
}

dgm_code dgm_agui_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_canon_messages *ret)
{
    dgm_code rc;
    if ((rc = dgm_agui_list_room(r, v, at)))
        return rc;
    dgm_canon_messages list = {dgm_new_n(r->arena, dgm_canon_message, yyjson_arr_size(v)), 0};
    size_t i, n;
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        dgm_str role = dgm_json_str_member(e, "role");
        if (role.p && !dgm_agui_is_name(&dgm_agui_roles, role))
            r->n_unknown++;
        else if ((rc = dgm_agui_read_message(r, e, DGM_AT_I(at, i), &list.at[list.n++])))
            return rc;
    }
    *ret = list;
    return DGM_OK;
}

void dgm_agui_put_messages(dgm_writer *w, const dgm_canon_messages *m)
{
    dgm_buf_add_char(w->out, '[');
    for (size_t i = 0; i < m->n; i++) {
        if (i)
            dgm_buf_add_char(w->out, ',');
        dgm_shape_write(w, &dgm_agui_message, &m->at[i]);
    }
    dgm_buf_add_char(w->out, ']');
}

/* ---- how a run ends ---------------------------------------------------------------------------------- */

static const dgm_field interrupt_fields[] = {
    DGM_F(dgm_canon_interrupt, id, "id", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_interrupt, reason, "reason", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_interrupt, message, "message", STR, OPT),
    DGM_F(dgm_canon_interrupt, tool_call_id, "toolCallId", STR, OPT),
    DGM_F(dgm_canon_interrupt, response_schema, "responseSchema", MAP_JSON, 0),
    DGM_F(dgm_canon_interrupt, expires_at, "expiresAt", STR, OPT),
    DGM_F(dgm_canon_interrupt, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_canon_interrupt, subagent_run_id, "subagentRunId", STR, OPT),
};
static const dgm_shape interrupt_shape =
    DGM_AGUI_SHAPE(dgm_canon_interrupt, "interrupt", interrupt_fields);

static const char *const outcome_names[] = {NULL, "success", "interrupt", "cancelled", "suspended"};
static const dgm_enum_names outcomes = {.what = "outcome", .names = outcome_names, .n = 5};

static const dgm_field outcome_fields[] = {
    DGM_F_OF(dgm_canon_outcome, kind, "type", ENUM, DGM_REQUIRED, &outcomes),
    DGM_F(dgm_canon_outcome, pending_tool_call_ids, "pendingToolCallIds", STRS, 0),
    DGM_F_OF(dgm_canon_outcome, interrupts, "interrupts", LIST, 0, &interrupt_shape),
    DGM_F(dgm_canon_outcome, interrupt_ids, "interruptIds", STRS, 0),
};
static const dgm_shape outcome_shape = DGM_AGUI_SHAPE(dgm_canon_outcome, "outcome", outcome_fields);

dgm_code dgm_agui_read_outcome(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_outcome *ret)
{
    dgm_str type = dgm_json_str_member(v, "type");
    dgm_code rc;
    if (type.p &&
        !dgm_agui_is_name(&outcomes, type)) { /* reads as success, as the official client does */
        r->n_unknown++;
        return DGM_OK;
    }
    if ((rc = dgm_shape_read(r, &outcome_shape, v, at, ret)))
        return rc;
    if (ret->kind == DGM_CANON_INTERRUPT && !ret->interrupts.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "interrupts"),
                        "missing: an interrupt outcome has at least one");
    if (ret->kind != DGM_CANON_INTERRUPT)
        ret->interrupts = (dgm_canon_interrupts){0};
    return DGM_OK;
}

void dgm_agui_put_outcome(dgm_writer *w, const dgm_canon_outcome *o)
{
    dgm_shape_write(w, &outcome_shape, o);
}

/* Rows of token counts differ only in their place. */
#define TOKENS(member, json)                                                                       \
    {                                                                                              \
        DGM_KEY(json, CUSTOM, 0), .at = offsetof(dgm_canon_usage, member), .of = {                 \
            .custom = &custom_##member                                                             \
        }                                                                                          \
    }
#define READ_TOKENS(member)                                                                        \
    static dgm_code read_##member(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)    \
    {                                                                                              \
        dgm_canon_usage *u = object;                                                               \
        dgm_code rc = dgm_agui_read_long(r, v, at, &u->member);                                    \
        if (!rc && u->member.value < 0)                                                            \
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "a count of tokens is not negative");      \
        return rc;                                                                                 \
    }                                                                                              \
    static const dgm_custom custom_##member = {read_##member, dgm_agui_write_long};
READ_TOKENS(input_tokens)
READ_TOKENS(output_tokens)
READ_TOKENS(total_tokens)
READ_TOKENS(reasoning_tokens)
READ_TOKENS(cached_input_tokens)
READ_TOKENS(cache_write_input_tokens)
#undef READ_TOKENS

static const dgm_field usage_fields[] = {
    DGM_F(dgm_canon_usage, provider, "provider", STR, OPT),
    DGM_F(dgm_canon_usage, model, "model", STR, OPT),
    TOKENS(input_tokens, "inputTokens"),
    TOKENS(output_tokens, "outputTokens"),
    TOKENS(total_tokens, "totalTokens"),
    TOKENS(reasoning_tokens, "reasoningTokens"),
    TOKENS(cached_input_tokens, "cachedInputTokens"),
    TOKENS(cache_write_input_tokens, "cacheWriteInputTokens"),
};
#undef TOKENS
const dgm_shape dgm_agui_usage = DGM_AGUI_SHAPE(dgm_canon_usage, "usage", usage_fields);

/* ---- a request ---------------------------------------------------------------------------------------- */

static dgm_code finish_tool(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    (void)r, (void)v, (void)at;
    dgm_agui_drop_null(&((dgm_canon_tool *)object)->parameters);
    return DGM_OK;
}
static const dgm_field tool_fields[] = {
    DGM_F(dgm_canon_tool, name, "name", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_tool, description, "description", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_tool, parameters, "parameters", JSON, 0),
    DGM_F(dgm_canon_tool, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape tool_shape = {
    .what = "tool",
    .size = sizeof(dgm_canon_tool),
    DGM_FIELDS(tool_fields),
    .extra_at = offsetof(dgm_canon_tool, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = finish_tool,
};

static const dgm_field context_fields[] = {
    DGM_F(dgm_canon_context, description, "description", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_context, value, "value", STR, DGM_REQUIRED),
};
static const dgm_shape context_shape = DGM_AGUI_SHAPE(dgm_canon_context, "context", context_fields);

static const char *const answer_names[] = {NULL, "resolved", "cancelled"};
static const dgm_enum_names answers = {.what = "answer", .names = answer_names, .n = 3};
static dgm_code finish_resume(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    (void)r, (void)v, (void)at;
    dgm_agui_drop_null(&((dgm_canon_resume *)object)->payload);
    return DGM_OK;
}
static const dgm_field resume_fields[] = {
    DGM_F(dgm_canon_resume, interrupt_id, "interruptId", STR, DGM_REQUIRED),
    DGM_F_OF(dgm_canon_resume, status, "status", ENUM, DGM_REQUIRED, &answers),
    DGM_F(dgm_canon_resume, payload, "payload", JSON, 0),
    DGM_F(dgm_canon_resume, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape resume_shape = {
    .what = "resume entry",
    .size = sizeof(dgm_canon_resume),
    DGM_FIELDS(resume_fields),
    .extra_at = offsetof(dgm_canon_resume, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = finish_resume,
};

static dgm_code read_input_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_agui_read_messages(r, v, at, &((dgm_canon_input *)object)->messages);
}
static void write_input_messages(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_agui_put_messages(w, &((const dgm_canon_input *)object)->messages);
}
static const dgm_custom input_messages = {read_input_messages, write_input_messages};

static dgm_code finish_input(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_canon_input *input = object;
    (void)r, (void)v, (void)at;
    dgm_agui_drop_null(&input->state);
    dgm_agui_drop_null(&input->forwarded_props);
    return DGM_OK;
}

static const dgm_field input_fields[] = {
    DGM_F(dgm_canon_input, thread_id, "threadId", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F(dgm_canon_input, run_id, "runId", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F(dgm_canon_input, protocol_version, "protocolVersion", STR, OPT),
    DGM_F(dgm_canon_input, parent_run_id, "parentRunId", STR, OPT),
    DGM_F(dgm_canon_input, state, "state", JSON, 0),
    DGM_F_CUSTOM("messages", DGM_REQUIRED, &input_messages),
    DGM_F_OF(dgm_canon_input, tools, "tools", LIST, OPT, &tool_shape),
    DGM_F_OF(dgm_canon_input, context, "context", LIST, OPT, &context_shape),
    DGM_F(dgm_canon_input, forwarded_props, "forwardedProps", JSON, 0),
    DGM_F_OF(dgm_canon_input, resume, "resume", LIST, OPT, &resume_shape),
};
const dgm_shape dgm_agui_input = {
    .what = "run input",
    .size = sizeof(dgm_canon_input),
    DGM_FIELDS(input_fields),
    .extra_at = offsetof(dgm_canon_input, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = finish_input,
};

dgm_code dgm_agui_read_input(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_input *ret_input)
{
    r->format = DGM_FORMAT_AG_UI;
    *ret_input = (dgm_canon_input){0};
    return dgm_shape_read(r, &dgm_agui_input, v, at, ret_input);
}

void dgm_agui_write_input(dgm_writer *w, const dgm_canon_input *input)
{
    dgm_shape_write(w, &dgm_agui_input, input);
}
