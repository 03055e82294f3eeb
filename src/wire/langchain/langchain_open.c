/* wire/langchain/langchain_open.c - which form a message has, and what it is. */
#include "wire/langchain/langchain_int.h"

const char dgm_langchain_name[] = "langchain";

static const struct {
    lc_kind kind;
    const char *type, *role, *class_name;
} kinds[] = {
    {LC_HUMAN, "human", "user", "HumanMessage"},
    {LC_AI, "ai", "assistant", "AIMessage"},
    {LC_SYSTEM, "system", "system", "SystemMessage"},
    {LC_DEVELOPER, "developer", "developer", ""},
    {LC_TOOL, "tool", "tool", "ToolMessage"},
    {LC_FUNCTION, "function", "function", "FunctionMessage"},
    {LC_CHAT, "chat", "", "ChatMessage"},
    {LC_REMOVE, "remove", "", "RemoveMessage"},
};

/* By any of its names; chunks have that of their class. */
static lc_kind kind_of(dgm_str name, bool *ret_chunk)
{
    static const char chunk[] = "Chunk";
    size_t n = sizeof chunk - 1;
    *ret_chunk = name.n > n && memcmp(name.p + name.n - n, chunk, n) == 0;
    if (*ret_chunk)
        name.n -= n;
    for (size_t i = 0; name.n && i < sizeof kinds / sizeof *kinds; i++) {
        if (dgm_str_eq(name, dgm_str_from(kinds[i].type)) ||
            dgm_str_eq(name, dgm_str_from(kinds[i].role)) ||
            dgm_str_eq(name, dgm_str_from(kinds[i].class_name)))
            return kinds[i].kind;
    }
    return LC_NONE;
}

/* A chat message says its role; developers are a kind of system. */
static void look_closer(lc_opened *o)
{
    bool chunk;
    if (o->kind == LC_CHAT)
        o->kind = kind_of(dgm_json_str_member(o->data, "role"), &chunk);
    yyjson_val *more = dgm_json_get(o->data, DGM_STR("additional_kwargs"));
    if (o->kind == LC_SYSTEM &&
        dgm_str_is(dgm_json_str_member(more, "__openai_role__"), "developer"))
        o->kind = LC_DEVELOPER;
}

static bool open_constructor(const yyjson_val *v, lc_opened *o)
{
    yyjson_val *id = dgm_json_get(v, DGM_STR("id")), *last = NULL;
    if (!dgm_json_get(v, DGM_STR("lc")) || !yyjson_is_arr(id))
        return false;
    if (!(last = yyjson_arr_get_last(id)) || !yyjson_is_str(last))
        return false;
    o->data = dgm_json_get(v, DGM_STR("kwargs"));
    o->key = "kwargs";
    o->marks = 2;
    o->kind = kind_of(dgm_json_str(last), &o->chunk);
    return o->kind && yyjson_is_obj(o->data);
}

/* Members that no other format has. */
static bool shows_marks(const yyjson_val *v)
{
    return dgm_json_get(v, DGM_STR("additional_kwargs")) ||
           dgm_json_get(v, DGM_STR("response_metadata")) ||
           dgm_json_get(v, DGM_STR("tool_call_chunks")) ||
           dgm_json_get(v, DGM_STR("invalid_tool_calls"));
}

bool dgm_lc_open(const yyjson_val *v, lc_opened *ret)
{
    lc_opened o = {0};
    dgm_str type = dgm_json_str_member(v, "type"), role = dgm_json_str_member(v, "role");
    yyjson_val *data = dgm_json_get(v, DGM_STR("data"));
    bool content = dgm_json_get(v, DGM_STR("content")) != NULL;
    if (!open_constructor(v, &o)) {
        o.data = (yyjson_val *)(uintptr_t)v;
        o.key = NULL;
        if (type.n && yyjson_is_obj(data)) {
            o.kind = kind_of(type, &o.chunk);
            o.data = data;
            o.key = "data";
            o.marks = 2;
        } else if (type.n && content && (o.kind = kind_of(type, &o.chunk))) {
            o.marks = dgm_str_is(type, "human") || dgm_str_is(type, "ai") || shows_marks(v) ? 2 : 1;
            o.chunk |= yyjson_is_true(dgm_json_get(v, DGM_STR("chunk")));
        } else if (role.n && (content || dgm_json_get(v, DGM_STR("tool_calls")))) {
            o.kind = kind_of(role, &o.chunk);
            o.marks = shows_marks(v) ? 2 : 1;
        }
    }
    if (o.kind)
        look_closer(&o);
    *ret = o;
    return o.kind != LC_NONE;
}

bool dgm_lc_is_placeholder(dgm_str id)
{
    return dgm_str_starts(id, DGM_STR("lc_run--")) || dgm_str_starts(id, DGM_STR("run-"));
}
