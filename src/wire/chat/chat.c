/*
 * wire/chat/chat.c - the tables of Chat Completions messages.
 *
 * What servers and clients of many makers send is read; what is written is what OpenAI's own API
 * takes. Everything that was read and not understood is written back.
 */
#include "wire/chat/chat.h"
#include "base/limits.h"

const char dgm_chat_name[] = "openai-chat";

/* ---- names --------------------------------------------------------------------------------------- */

static const char *const role_names[DGM_N_CHAT_ROLES] = {
    [DGM_CHAT_SYSTEM] = "system", [DGM_CHAT_DEVELOPER] = "developer",
    [DGM_CHAT_USER] = "user",     [DGM_CHAT_ASSISTANT] = "assistant",
    [DGM_CHAT_TOOL] = "tool",     [DGM_CHAT_FUNCTION] = "function",
};
static const dgm_enum_names roles = {
    .what = "role of a chat message", .names = role_names, .n = DGM_N_CHAT_ROLES};

static const char *const call_names[] = {
    [DGM_CHAT_CALL_NONE] = NULL,
    [DGM_CHAT_CALL_FUNCTION] = "function",
    [DGM_CHAT_CALL_CUSTOM] = "custom",
};
static const dgm_enum_names call_types = {
    .what = "type of a tool call", .names = call_names, .n = 3};

const char *dgm_chat_role_name(dgm_chat_role role)
{
    return role_names[role];
}

/* ---- content ----------------------------------------------------------------------------------------- */

static dgm_code chat_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_chat_content *c = &((dgm_chat_message *)object)->content;
    dgm_code rc;
    c->value = v;
    if (yyjson_is_null(v)) {
        c->kind = DGM_CHAT_CONTENT_NULL;
        return DGM_OK;
    }
    if (yyjson_is_str(v)) {
        c->kind = DGM_CHAT_CONTENT_TEXT;
        c->text = dgm_json_str(v);
        return DGM_OK;
    }
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "text or a list of content parts");
    size_t i, n = yyjson_arr_size(v);
    if (n > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once", n,
                        DGM_MAX_LIST_ITEMS);
    c->kind = DGM_CHAT_CONTENT_PARTS;
    c->parts = (dgm_chat_parts){dgm_new_n(r->arena, dgm_chat_part, n), n};
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        if ((rc = dgm_shape_read(r, &dgm_chat_part_shape, e, DGM_AT_I(at, i), &c->parts.at[i])))
            return rc;
    }
    return DGM_OK;
}

static void write_content(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_chat_content *c = &((const dgm_chat_message *)object)->content;
    switch (c->kind) {
    case DGM_CHAT_CONTENT_ABSENT: return;
    case DGM_CHAT_CONTENT_NULL:
        dgm_put_key(w, f);
        dgm_buf_add_lit(w->out, "null");
        return;
    case DGM_CHAT_CONTENT_TEXT:
        dgm_put_key(w, f);
        dgm_json_put_str(w->out, c->text);
        return;
    case DGM_CHAT_CONTENT_PARTS:
        dgm_put_key(w, f);
        dgm_buf_add_char(w->out, '[');
        for (size_t i = 0; i < c->parts.n; i++) {
            if (i)
                dgm_buf_add_char(w->out, ',');
            dgm_shape_write(w, &dgm_chat_part_shape, &c->parts.at[i]);
        }
        dgm_buf_add_char(w->out, ']');
        return;
    }
}

static bool chat_flatten_content(dgm_flat *flat, const void *object)
{
    const dgm_chat_content *c = &((const dgm_chat_message *)object)->content;
    if (c->kind == DGM_CHAT_CONTENT_TEXT)
        dgm_flat_add_str(flat, c->text);
    else if (c->kind == DGM_CHAT_CONTENT_NULL)
        dgm_flat_add(flat, DGM_JSON_KIND_NULL, 0, NULL);
    return c->kind == DGM_CHAT_CONTENT_TEXT || c->kind == DGM_CHAT_CONTENT_NULL;
}

static const dgm_custom content = {chat_read_content, write_content, chat_flatten_content};

/* ---- tool calls ---------------------------------------------------------------------------------------- */

/* Ollama and others send the object itself instead of its text. */
static dgm_code read_arguments(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_chat_call *call = object;
    (void)at;
    if (yyjson_is_str(v)) {
        call->arguments = dgm_json_str(v);
        return DGM_OK;
    }
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put_spaced(&b, v);
    call->arguments = dgm_arena_dup(r->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return DGM_OK;
}

static void write_arguments(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_json_put_str(w->out, ((const dgm_chat_call *)object)->arguments);
}

static bool chat_flatten_arguments(dgm_flat *flat, const void *object)
{
    dgm_flat_add_str(flat, ((const dgm_chat_call *)object)->arguments);
    return true;
}

static const dgm_custom arguments = {read_arguments, write_arguments, chat_flatten_arguments};

static const dgm_field function_fields[] = {
    DGM_F(dgm_chat_call, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F_CUSTOM("arguments", 0, &arguments),
};
static const dgm_shape function = {
    .what = "function of a tool call",
    .size = sizeof(dgm_chat_call),
    DGM_FIELDS(function_fields),
    .extra_at = offsetof(dgm_chat_call, inner_extra),
    .tag_at = DGM_NOWHERE,
};
static const dgm_shape legacy_call = {
    .what = "function_call",
    .size = sizeof(dgm_chat_call),
    DGM_FIELDS(function_fields),
    .extra_at = offsetof(dgm_chat_call, inner_extra),
    .tag_at = DGM_NOWHERE,
};

static const dgm_field custom_fields[] = {
    DGM_F(dgm_chat_call, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(dgm_chat_call, arguments, "input", STR, DGM_REQUIRED),
};
static const dgm_shape custom = {
    .what = "custom tool call",
    .size = sizeof(dgm_chat_call),
    DGM_FIELDS(custom_fields),
    .extra_at = offsetof(dgm_chat_call, inner_extra),
    .tag_at = DGM_NOWHERE,
};

#define ID_OF_CALL DGM_F(dgm_chat_call, id, "id", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED)
#define TYPE_OF_CALL DGM_F_OF(dgm_chat_call, kind, "type", ENUM, 0, &call_types)
static const dgm_field function_call_fields[] = {ID_OF_CALL, TYPE_OF_CALL,
                                                 DGM_F_NEST("function", DGM_REQUIRED, &function)};
static const dgm_field custom_call_fields[] = {ID_OF_CALL, TYPE_OF_CALL,
                                               DGM_F_NEST("custom", DGM_REQUIRED, &custom)};

static dgm_chat_call_kind kind_of_call(const yyjson_val *v)
{
    bool is_custom = dgm_json_get(v, DGM_STR("custom")) && !dgm_json_get(v, DGM_STR("function"));
    return is_custom ? DGM_CHAT_CALL_CUSTOM : DGM_CHAT_CALL_FUNCTION;
}

static dgm_code set_kind_of_call(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    ((dgm_chat_call *)object)->kind = kind_of_call(v);
    return DGM_OK;
}

static const dgm_shape function_call = {
    .what = "tool call",
    .size = sizeof(dgm_chat_call),
    DGM_FIELDS(function_call_fields),
    .extra_at = offsetof(dgm_chat_call, extra),
    .tag_at = DGM_NOWHERE,
    .after_read = set_kind_of_call,
};
static const dgm_shape custom_call = {
    .what = "tool call",
    .size = sizeof(dgm_chat_call),
    DGM_FIELDS(custom_call_fields),
    .extra_at = offsetof(dgm_chat_call, extra),
    .tag_at = DGM_NOWHERE,
    .after_read = set_kind_of_call,
};

static const dgm_shape *pick_call(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    return kind_of_call(v) == DGM_CHAT_CALL_CUSTOM ? &custom_call : &function_call;
}

static dgm_picked pick_call_to_write(const void *object)
{
    const dgm_chat_call *call = object;
    return (dgm_picked){call->kind == DGM_CHAT_CALL_CUSTOM ? &custom_call : &function_call, object};
}

static const dgm_shape any_call = {
    .what = "tool call",
    .size = sizeof(dgm_chat_call),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_call,
    .pick_write = pick_call_to_write,
};

/* ---- messages --------------------------------------------------------------------------------------------- */

static const dgm_field message_fields[] = {
    DGM_F_OF(dgm_chat_message, role, "role", ENUM, DGM_REQUIRED | DGM_NONEMPTY, &roles),
    DGM_F(dgm_chat_message, tool_call_id, "tool_call_id", STR, 0),
    DGM_F(dgm_chat_message, name, "name", STR, 0),
    DGM_F_CUSTOM("content", DGM_ANY_TYPE, &content),
    DGM_F(dgm_chat_message, refusal, "refusal", STR, 0),
    DGM_F(dgm_chat_message, reasoning_content, "reasoning_content", STR, 0),
    DGM_F_OF(dgm_chat_message, tool_calls, "tool_calls", LIST, 0, &any_call),
    DGM_F_OF(dgm_chat_message, function_call, "function_call", OBJECT, 0, &legacy_call),
};

static dgm_code check_message(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_chat_message *m = object;
    const char *role = dgm_chat_role_name(m->role);
    bool says =
        m->content.kind == DGM_CHAT_CONTENT_TEXT || m->content.kind == DGM_CHAT_CONTENT_PARTS;
    (void)v;
    if (!m->tool_calls.n)
        m->tool_calls.at = NULL; /* OpenAI refuses an empty list, so it is never written */
    if (m->role == DGM_CHAT_TOOL && !m->tool_call_id.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "tool_call_id"),
                        "missing: a tool message needs it");
    if (m->role == DGM_CHAT_FUNCTION && !m->name.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                        "missing: a function message needs it");
    if (m->role != DGM_CHAT_ASSISTANT && m->tool_calls.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "tool_calls"),
                        "only an assistant makes calls, not a message of role %s", role);
    if (m->role != DGM_CHAT_ASSISTANT && m->function_call)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "function_call"),
                        "only an assistant makes calls, not a message of role %s", role);
    /* Assistants may have nothing to say; tools that give nothing back are met in the wild. */
    if (!says && m->role != DGM_CHAT_ASSISTANT && m->role != DGM_CHAT_TOOL &&
        m->role != DGM_CHAT_FUNCTION)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "content"),
                        "missing: a %s message needs it", role);
    return DGM_OK;
}

const dgm_shape dgm_chat_message_shape = {
    .what = "chat message",
    .size = sizeof(dgm_chat_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(dgm_chat_message, extra),
    .tag_at = DGM_NOWHERE,
    .after_read = check_message,
};

void dgm_chat_write(dgm_writer *w, const dgm_chat_message *m)
{
    dgm_shape_write(w, &dgm_chat_message_shape, m);
}
