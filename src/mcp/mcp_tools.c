/* mcp/mcp_tools.c - the list of tools: read page by page, and named for models. */
#include "mcp/mcp_int.h"

#include "base/list.h"
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TOOL_NAME 64 /* of OpenAI */

/* ---- names -------------------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
}

/* "server__tool" with `_` for other characters. *ret_is_exact: nothing was changed. */
static dgm_str make_name(dgm_arena *a, dgm_str server, dgm_str own, bool *ret_is_exact)
{
    dgm_str name = dgm_arena_printf(a, "%.*s__%.*s", DGM_P(server), DGM_P(own));
    char *p = (char *)(uintptr_t)name.p;
    *ret_is_exact = name.n <= MAX_TOOL_NAME;
    for (size_t i = server.n + 2; i < name.n; i++) {
        if (is_name_char(p[i]))
            continue;
        p[i] = '_';
        *ret_is_exact = false;
    }
    return name;
}

/* The same with a sum of the own name at its end: another one for every tool, and the same in every list. */
static dgm_str make_distinct_name(dgm_arena *a, dgm_str name, dgm_str own)
{
    size_t n = name.n < MAX_TOOL_NAME - 9 ? name.n : MAX_TOOL_NAME - 9;
    return dgm_arena_printf(a, "%.*s_%08x", (int)n, name.p,
                            (unsigned)(dgm_hash(7, own.p, own.n) & 0xffffffff));
}

void dgm_mcp_name_tools(dgm_arena *a, dgm_str server, dgm_mcp_tool *tools, size_t n)
{
    dgm_map seen; /* how many tools have the name */
    bool *is_exact = dgm_new_n(a, bool, n);
    dgm_map_init(&seen);
    for (size_t i = 0; i < n; i++) {
        tools[i].name = make_name(a, server, tools[i].own_name, &is_exact[i]);
        size_t *count = dgm_map_get(&seen, tools[i].name);
        if (count)
            ++*count;
        else
            dgm_map_put(&seen, tools[i].name, 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (tools[i].name.n > MAX_TOOL_NAME ||
            (!is_exact[i] && *dgm_map_get(&seen, tools[i].name) > 1))
            tools[i].name = make_distinct_name(a, tools[i].name, tools[i].own_name);
    }
    dgm_map_done(&seen);
}

const dgm_mcp_tool *dgm_mcp_find_tool(const struct mcp_tool_list *l, dgm_str name,
                                      const struct mcp_tool **ret_more)
{
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; l && i < l->tools.n; i++) {
            if (!dgm_str_eq(pass ? l->at[i].own_name : l->at[i].name, name))
                continue;
            if (ret_more)
                *ret_more = &l->more[i];
            return &l->at[i];
        }
    }
    return NULL;
}

/* ---- one page ----------------------------------------------------------------------------------------- */

static void tools_skip(struct mcp_session *s, dgm_str name, const char *why)
{
    dgm_mcp_log(s->mcp, "MCP server %.*s: the tool %.*s is left out: %s",
                DGM_P(s->mcp->config.name), (int)(name.n < 80 ? name.n : 80), name.n ? name.p : "",
                why);
}

static bool has_own_name(const struct mcp_tool_list *l, dgm_str name)
{
    for (size_t i = 0; i < l->tools.n; i++) {
        if (dgm_str_eq(l->at[i].own_name, name))
            return true;
    }
    return false;
}

static void add_tool(struct mcp_session *s, struct mcp_tool_list *l, const yyjson_val *v)
{
    dgm_arena *a = l->arena;
    dgm_str name = dgm_json_str_member(v, "name");
    yyjson_val *schema = dgm_json_get(v, DGM_STR("inputSchema"));
    yyjson_val *hints = dgm_json_get(v, DGM_STR("annotations"));
    struct mcp_tool more = {0};
    dgm_err err = {0};
    if (!name.n || name.n > DGM_MAX_ID_BYTES) {
        tools_skip(s, name, "it has no name, or one that is too long");
    } else if (has_own_name(l, name)) {
        tools_skip(s, name, "its name occurs twice");
    } else if (schema && !yyjson_is_obj(schema)) {
        tools_skip(s, name, "its inputSchema is not an object");
    } else if (!dgm_mcp_is_stdio(s) && dgm_mcp_read_params(a, schema, &more, &err)) {
        tools_skip(s, name, err.msg);
    } else {
        yyjson_val *output = dgm_json_get(v, DGM_STR("outputSchema"));
        l->at = dgm_list_grow(a, l->at, l->tools.n, sizeof *l->at);
        l->more = dgm_list_grow(a, l->more, l->tools.n, sizeof *l->more);
        l->more[l->tools.n] = more;
        l->at[l->tools.n++] = (dgm_mcp_tool){
            .own_name = dgm_arena_dup(a, name),
            .title = dgm_arena_dup(a, dgm_json_str_member(v, "title")),
            .description = dgm_arena_dup(a, dgm_json_str_member(v, "description")),
            .input_schema = schema ? dgm_json_copy(a, schema)
                                   : dgm_json_parse_trusted(a, DGM_STR("{\"type\":\"object\"}")),
            .output_schema = yyjson_is_obj(output) ? dgm_json_copy(a, output) : NULL,
            .is_read_only = yyjson_is_true(dgm_json_get(hints, DGM_STR("readOnlyHint"))),
            .is_idempotent = yyjson_is_true(dgm_json_get(hints, DGM_STR("idempotentHint"))),
        };
    }
}

static void read_ttl(struct mcp_tool_list *l, const yyjson_val *result)
{
    yyjson_val *v = dgm_json_get(result, DGM_STR("ttlMs"));
    int64_t ms;
    if (v && dgm_json_int(v, &ms) && ms >= 0 && (l->ttl_ms < 0 || ms < l->ttl_ms))
        l->ttl_ms = ms;
}

/* NULL: it was added. Otherwise a sentence. */
static const char *read_page(struct mcp_session *s, struct mcp_tool_list *l,
                             const yyjson_val *result)
{
    yyjson_val *list = dgm_json_get(result, DGM_STR("tools")), *item;
    size_t i, n;
    if (!yyjson_is_arr(list))
        return "the result of tools/list has no list of tools";
    if (l->tools.n + yyjson_arr_size(list) > DGM_MAX_REQUEST_TOOLS)
        return "it has more tools than the limit request_tools";
    yyjson_arr_foreach (list, i, n, item) {
        add_tool(s, l, item);
        if (dgm_arena_used(l->arena) > DGM_MAX_MCP_LIST_BYTES)
            return "its list of tools is larger than the limit mcp_list_bytes";
    }
    read_ttl(l, result);
    return NULL;
}

/* ---- the list ----------------------------------------------------------------------------------------- */

static void list_free(struct mcp_tool_list *l)
{
    if (l)
        dgm_arena_free(l->arena); /* l is in it */
}

void dgm_mcp_drop_tools(struct mcp_session *s)
{
    list_free(s->tools);
    list_free(s->loading);
    s->tools = s->loading = NULL;
    s->tools_state = MCP_TOOLS_NONE;
    s->has_new_tools = false;
}

bool dgm_mcp_tools_are_fresh(struct mcp_session *s)
{
    return s->tools_state == MCP_TOOLS_LOADED && !s->tools_changed &&
           (!s->tools_until || uv_now(&s->loop->uv) < s->tools_until);
}

static void tools_complete(struct mcp_session *s)
{
    struct mcp_tool_list *l = s->loading;
    dgm_mcp_name_tools(l->arena, s->mcp->config.name, l->at, l->tools.n);
    l->tools.at = l->at;
    l->tools.version = ++s->tools_version;
    list_free(s->tools);
    s->tools = l;
    s->loading = NULL;
    s->tools_state = MCP_TOOLS_LOADED;
    s->tools_until = l->ttl_ms < 0 ? 0 : uv_now(&s->loop->uv) + (uint64_t)l->ttl_ms + 1;
    s->has_new_tools = true;
    dgm_mcp_session_soon(s);
}

static void tools_fail(struct mcp_session *s, dgm_code code, dgm_str what)
{
    char message[400];
    snprintf(message, sizeof message, "MCP server %.*s: %.*s", DGM_P(s->mcp->config.name),
             (int)(what.n < 300 ? what.n : 300), what.p);
    list_free(s->loading);
    s->loading = NULL;
    s->tools_state = s->tools ? MCP_TOOLS_LOADED : MCP_TOOLS_NONE;
    dgm_mcp_fail_waiters(s, &(dgm_mcp_error){.code = code, .message = dgm_str_from(message)});
    dgm_mcp_session_soon(s);
}

static void tools_send(struct mcp_session *s);

static void tools_on_page(void *user, const struct mcp_reply *reply)
{
    struct mcp_session *s = user;
    struct mcp_tool_list *l = s->loading;
    const char *wrong;
    if (!l)
        return; /* the session has failed */
    if (reply->is_session_forgotten) {
        dgm_mcp_drop_tools(s); /* the session starts again */
        return;
    }
    if (!reply->result) {
        tools_fail(s, reply->error.code, reply->error.message);
        return;
    }
    if ((wrong = read_page(s, l, reply->result))) {
        tools_fail(s, DGM_UNAVAILABLE, dgm_str_from(wrong));
        return;
    }
    dgm_str cursor = dgm_json_str_member(reply->result, "nextCursor");
    if (!cursor.n) {
        tools_complete(s);
    } else if (++l->n_pages >= DGM_MAX_MCP_PAGES || cursor.n > DGM_MAX_MCP_STATE_BYTES ||
               dgm_str_eq(cursor, l->cursor)) {
        tools_fail(s, DGM_UNAVAILABLE,
                   DGM_STR("its list of tools has no end (limit mcp_pages), or repeats a cursor"));
    } else {
        l->cursor = dgm_arena_dup(l->arena, cursor);
        tools_send(s);
    }
}

static void tools_send(struct mcp_session *s)
{
    dgm_buf params;
    dgm_buf_init(&params, SIZE_MAX);
    if (s->loading->cursor.n) {
        dgm_buf_add_lit(&params, "\"cursor\":");
        dgm_json_put_str(&params, s->loading->cursor);
    }
    dgm_mcp_send(s, &(struct mcp_send){.method = "tools/list",
                                       .params = dgm_buf_str(&params),
                                       .timeout_ms = s->mcp->config.start_ms,
                                       .on_reply = tools_on_page,
                                       .user = s});
    dgm_buf_done(&params);
}

void dgm_mcp_load_tools(struct mcp_session *s)
{
    dgm_arena *a = dgm_arena_new_small(4096);
    struct mcp_tool_list *l = dgm_new(a, struct mcp_tool_list);
    *l = (struct mcp_tool_list){.arena = a, .ttl_ms = -1};
    s->loading = l;
    s->tools_state = MCP_TOOLS_LOADING;
    s->tools_changed = false;
    if (s->has_tools)
        tools_send(s);
    else
        tools_complete(s); /* it offers other things than tools */
}
