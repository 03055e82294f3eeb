/* wire/langchain/langchain_open.c - detects the form and the kind of a message; elements of LangGraph; usage. */
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
static lc_kind langchain_open_kind_of(dgm_str name, bool *ret_chunk)
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

/* A chat message has a member with its role; developer is a kind of system. */
static void lc_set_role_kind(lc_opened *o)
{
    bool chunk;
    if (o->kind == LC_CHAT)
        o->kind = langchain_open_kind_of(dgm_json_str_member(o->data, "role"), &chunk);
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
    o->kind = langchain_open_kind_of(dgm_json_str(last), &o->chunk);
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
            o.kind = langchain_open_kind_of(type, &o.chunk);
            o.data = data;
            o.key = "data";
            o.marks = 2;
        } else if (type.n && content && (o.kind = langchain_open_kind_of(type, &o.chunk))) {
            o.marks = dgm_str_is(type, "human") || dgm_str_is(type, "ai") || shows_marks(v) ? 2 : 1;
            o.chunk |= yyjson_is_true(dgm_json_get(v, DGM_STR("chunk")));
        } else if (role.n && (content || dgm_json_get(v, DGM_STR("tool_calls")))) {
            o.kind = langchain_open_kind_of(role, &o.chunk);
            o.marks = shows_marks(v) ? 2 : 1;
        }
    }
    if (o.kind)
        lc_set_role_kind(&o);
    *ret = o;
    return o.kind != LC_NONE;
}

bool dgm_lc_is_placeholder(dgm_str id)
{
    return dgm_str_starts(id, DGM_STR("lc_run--")) || dgm_str_starts(id, DGM_STR("run-"));
}

/* ---- the elements of LangGraph's streams ----------------------------------------------------------------------- */

/*
 * Depending on the requested modes, an element is the payload, [mode, payload], [namespace, payload] or
 * [namespace, mode, payload]; of Python's second version {"type": mode, "ns": namespace, "data": payload}. The
 * payload of the mode `messages` is a pair: the message, and metadata of the node that sent it.
 */

static bool is_mode(const yyjson_val *v)
{
    static const char *const modes[] = {"messages", "values",      "updates", "custom",
                                        "tasks",    "checkpoints", "debug",   "tools"};
    for (size_t i = 0;
         yyjson_is_str((yyjson_val *)(uintptr_t)v) && i < sizeof modes / sizeof *modes; i++) {
        if (dgm_str_eq(dgm_json_str(v), dgm_str_from(modes[i])))
            return true;
    }
    return false;
}

/* A path of nodes: texts, or none at the root. */
static bool is_namespace(yyjson_val *v)
{
    yyjson_val *e;
    size_t i, n;
    if (!yyjson_is_arr(v))
        return false;
    yyjson_arr_foreach (v, i, n, e) {
        if (!yyjson_is_str(e))
            return false;
    }
    return true;
}

/* Is it LangGraph's metadata of a node? Any other member means that the object is something else. */
static bool is_metadata(yyjson_val *v)
{
    yyjson_val *key, *value;
    size_t i, n;
    if (!yyjson_is_obj(v))
        return false;
    yyjson_obj_foreach (v, i, n, key, value) {
        if (dgm_str_starts(dgm_json_str(key), DGM_STR("langgraph_")) ||
            dgm_str_starts(dgm_json_str(key), DGM_STR("ls_")))
            return true;
    }
    return yyjson_obj_size(v) == 0;
}

static bool open_pair(yyjson_val *v, lc_element *ret)
{
    yyjson_val *message = yyjson_arr_get(v, 0), *metadata = yyjson_arr_get(v, 1);
    lc_opened o;
    if (yyjson_arr_size(v) != 2 || !dgm_lc_open(message, &o) || !is_metadata(metadata))
        return false;
    ret->message = message;
    ret->metadata = metadata;
    return true;
}

/* Of other modes only interrupts are read. */
static bool open_payload(const yyjson_val *mode, yyjson_val *payload, lc_element *ret)
{
    if (dgm_str_is(dgm_json_str(mode), "messages"))
        return open_pair(payload, ret);
    ret->interrupts = dgm_json_get(payload, DGM_STR("__interrupt__"));
    return true;
}

bool dgm_lc_open_element(const yyjson_val *value, lc_element *ret)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)value;
    lc_element e = {0};
    bool is = false;
    if (yyjson_is_obj(v)) {
        yyjson_val *mode = dgm_json_get(v, DGM_STR("type"));
        is = is_mode(mode) && is_namespace(dgm_json_get(v, DGM_STR("ns"))) &&
             open_payload(mode, dgm_json_get(v, DGM_STR("data")), &e);
        e.in_data = true;
        if (is && !e.interrupts)
            e.interrupts = dgm_json_get(v, DGM_STR("interrupts"));
    } else if (yyjson_is_arr(v)) {
        size_t n = yyjson_arr_size(v);
        e.in_array = n - (n > 0);
        yyjson_val *first = yyjson_arr_get(v, 0), *last = yyjson_arr_get(v, n - (n > 0));
        if (n == 3)
            is = is_namespace(first) && is_mode(yyjson_arr_get(v, 1)) &&
                 open_payload(yyjson_arr_get(v, 1), last, &e);
        else if (n == 2)
            is = is_mode(first)        ? open_payload(first, last, &e)
                 : is_namespace(first) ? open_pair(last, &e)
                                       : open_pair(v, &e);
        if (e.message == first)
            e.in_array = 0;
    }
    if (is)
        *ret = e;
    return is;
}

/* ---- usage_metadata -------------------------------------------------------------------------------------------- */

static void add_count(dgm_opt_long *to, const yyjson_val *v, const char *name)
{
    int64_t n;
    yyjson_val *m = dgm_json_get(v, dgm_str_from(name));
    if (!m || !yyjson_is_raw(m) || !dgm_json_int(m, &n) || n < 0 || n > (int64_t)1 << 50)
        return;
    if (to->value > (int64_t)1 << 52)
        return;
    *to = (dgm_opt_long){true, to->value + n};
}

void dgm_lc_add_usage(dgm_canon_usage *to, const yyjson_val *data)
{
    const yyjson_val *usage = dgm_json_get(data, DGM_STR("usage_metadata"));
    const yyjson_val *in = dgm_json_get(usage, DGM_STR("input_token_details"));
    add_count(&to->input_tokens, usage, "input_tokens");
    add_count(&to->output_tokens, usage, "output_tokens");
    add_count(&to->total_tokens, usage, "total_tokens");
    add_count(&to->cached_input_tokens, in, "cache_read");
    add_count(&to->cache_write_input_tokens, in, "cache_creation");
    add_count(&to->reasoning_tokens, dgm_json_get(usage, DGM_STR("output_token_details")),
              "reasoning");
}

static void put_count(dgm_buf *b, const char *name, dgm_opt_long n)
{
    if (!n.set)
        return;
    dgm_buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
    dgm_json_put_int(b, n.value);
}

static int64_t sum(dgm_opt_long a, dgm_opt_long b)
{
    return (a.set ? a.value : 0) + (b.set ? b.value : 0);
}

/* LangChain wants all three counts, of all models together. */
void dgm_lc_put_usage(dgm_buf *b, const dgm_canon_usages *usage)
{
    dgm_canon_usage all = {.input_tokens = {true, 0}, .output_tokens = {true, 0}};
    bool counted = false;
    for (size_t i = 0; i < usage->n; i++) {
        const dgm_canon_usage *u = &usage->at[i];
        counted |= u->input_tokens.set || u->output_tokens.set;
        all.input_tokens.value += sum(u->input_tokens, (dgm_opt_long){0});
        all.output_tokens.value += sum(u->output_tokens, (dgm_opt_long){0});
#define ADD(member)                                                                                \
    if (u->member.set)                                                                             \
    all.member = (dgm_opt_long){true, sum(all.member, u->member)}
        ADD(reasoning_tokens);
        ADD(cached_input_tokens);
        ADD(cache_write_input_tokens);
#undef ADD
    }
    if (!counted)
        return;
    all.total_tokens = (dgm_opt_long){true, sum(all.input_tokens, all.output_tokens)};
    dgm_buf_add_lit(b, ",\"usage_metadata\":{");
    put_count(b, "input_tokens", all.input_tokens);
    put_count(b, "output_tokens", all.output_tokens);
    put_count(b, "total_tokens", all.total_tokens);
    if (all.cached_input_tokens.set || all.cache_write_input_tokens.set) {
        dgm_buf_add_lit(b, ",\"input_token_details\":{");
        put_count(b, "cache_read", all.cached_input_tokens);
        put_count(b, "cache_creation", all.cache_write_input_tokens);
        dgm_buf_add_char(b, '}');
    }
    if (all.reasoning_tokens.set) {
        dgm_buf_add_lit(b, ",\"output_token_details\":{");
        put_count(b, "reasoning", all.reasoning_tokens);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, '}');
}
