/*
 * wire/responses/responses_items.c - items as messages, and messages as items.
 *
 * Calls are items of their own: they join the assistant's message before them, and follow it again when
 * they are written. Items that no message can be (references, searches, ...) are kept as they are.
 */
#include "base/limits.h"
#include "wire/responses/responses_int.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reading {
    dgm_reader *r;
    dgm_canon_messages list;
    size_t i; /* the item's */
};

/* v: the item that has the id of the message, or no id; NULL: the caller sets the id. */
static dgm_canon_message *responses_items_add(struct reading *k, dgm_canon_role role, yyjson_val *v)
{
    k->list.at = dgm_list_grow(k->r->arena, k->list.at, k->list.n, sizeof *k->list.at);
    dgm_canon_message *m = &k->list.at[k->list.n++];
    m->role = role;
    m->id = dgm_json_str_member(v, "id");
    if (v && !m->id.n)
        m->id = k->r->mint ? dgm_mint_id(k->r->mint, k->r->arena)
                           : dgm_arena_printf(k->r->arena, "item-%zu", k->i);
    return m;
}

static void join_parts(struct reading *k, dgm_canon_message *m)
{
    dgm_buf b;
    if (m->content.kind != DGM_CANON_CONTENT_PARTS)
        return;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < m->content.parts.n; i++)
        dgm_buf_add_str(&b, m->content.parts.at[i].text);
    m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                     .text = dgm_arena_dup(k->r->arena, dgm_buf_str(&b))};
    dgm_buf_done(&b);
}

/* Is it what we would write for its text? */
static bool is_plain(yyjson_val *content)
{
    yyjson_val *only = yyjson_arr_get_first(content);
    dgm_str type = dgm_json_str_member(only, "type");
    if (!yyjson_is_arr(content))
        return true;
    return yyjson_arr_size(content) == 1 &&
           (dgm_str_is(type, "output_text") || dgm_str_is(type, "input_text")) &&
           !yyjson_arr_size(dgm_json_get(only, DGM_STR("annotations")));
}

/* Those who are no users say text: what else their parts have is kept for our own writer. */
static void keep_content(struct reading *k, dgm_canon_message *m, yyjson_val *content)
{
    size_t n = m->extra ? m->extra->n : 0;
    if (is_plain(content))
        return;
    dgm_extra *extra = dgm_new(k->r->arena, dgm_extra);
    *extra = (dgm_extra){DGM_FORMAT_RESPONSES, dgm_new_n(k->r->arena, dgm_member, n + 1), n + 1};
    for (size_t i = 0; i < n; i++)
        extra->at[i] = m->extra->at[i];
    extra->at[n] = (dgm_member){DGM_STR("content"), content};
    m->extra = extra;
}

static dgm_code read_message(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    static const char *const known[] = {"type", "id", "role", "content", NULL};
    dgm_str name = dgm_json_str_member(v, "role");
    dgm_canon_role role = dgm_str_is(name, "user")        ? DGM_CANON_USER
                          : dgm_str_is(name, "assistant") ? DGM_CANON_ASSISTANT
                          : dgm_str_is(name, "system")    ? DGM_CANON_SYSTEM
                          : dgm_str_is(name, "developer") ? DGM_CANON_DEVELOPER
                                                          : DGM_CANON_ROLE_NONE;
    yyjson_val *content = dgm_json_get(v, DGM_STR("content"));
    dgm_code rc;
    if (!role)
        return dgm_fail(
            k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "role"),
            name.p ? "\"%.*s\" is not a role; allowed values: user, assistant, system or developer"
                   : "missing%.*s: user, assistant, system or developer",
            (int)(name.n < 60 ? name.n : 60), name.p ? name.p : "");
    dgm_canon_message *m = responses_items_add(k, role, v);
    m->extra = dgm_responses_rest(k->r->arena, v, known);
    if ((!content || yyjson_is_null(content)) && role == DGM_CANON_ASSISTANT)
        return DGM_OK;
    if (!content)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "content"),
                        "missing: a message has text, or a list of parts");
    if ((rc = dgm_responses_read_content(k->r, content, DGM_AT_LIT(at, "content"), &m->content)))
        return rc;
    if (role != DGM_CANON_USER) {
        join_parts(k, m);
        keep_content(k, m, content);
    }
    return DGM_OK;
}

/* The message that calls are part of: the assistant's, directly before them. */
static dgm_canon_message *caller(struct reading *k, yyjson_val *v)
{
    dgm_canon_message *last = k->list.n ? &k->list.at[k->list.n - 1] : NULL;
    if (last && last->role == DGM_CANON_ASSISTANT)
        return last;
    return responses_items_add(k, DGM_CANON_ASSISTANT, v);
}

static dgm_canon_message *responses_items_add_result(struct reading *k, yyjson_val *v,
                                                     dgm_str call_id)
{
    dgm_canon_message *m = responses_items_add(k, DGM_CANON_TOOL, v);
    m->tool_call_id = call_id;
    m->content.kind = DGM_CANON_CONTENT_TEXT;
    return m;
}

static dgm_code missing(struct reading *k, const dgm_at *at, const char *name, const char *what)
{
    return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT(at, dgm_str_from(name)),
                    "missing: %s needs it", what);
}

static dgm_code responses_items_read_call(struct reading *k, yyjson_val *v, const dgm_at *at,
                                          bool mcp)
{
    static const char *const known[] = {"call_id", "name", "arguments", "input", NULL};
    yyjson_val *arguments = dgm_json_get(v, DGM_STR("arguments"));
    yyjson_val *output = dgm_json_non_null(v, "output"), *error = dgm_json_non_null(v, "error");
    dgm_str call_id = dgm_json_str_member(v, mcp ? "id" : "call_id"),
            name = dgm_json_str_member(v, "name");
    if (!call_id.n)
        call_id = dgm_json_str_member(v, "id"); /* some servers have but one */
    if (!call_id.n)
        return missing(k, at, "call_id", "a call");
    if (!name.n)
        return missing(k, at, "name", "a call");
    dgm_canon_message *m = caller(k, v);
    m->tool_calls.at =
        dgm_list_grow(k->r->arena, m->tool_calls.at, m->tool_calls.n, sizeof *m->tool_calls.at);
    dgm_canon_call *c = &m->tool_calls.at[m->tool_calls.n++];
    c->id = call_id;
    c->name = name;
    if (!arguments)
        arguments = dgm_json_get(v, DGM_STR("input"));
    c->arguments = !arguments || yyjson_is_null(arguments)
                       ? DGM_STR("{}")
                       : dgm_content_value_text(k->r->arena, arguments);
    if (!mcp)
        c->extra = dgm_responses_rest(k->r->arena, v, known);
    bool failed = error;
    if (mcp && (failed || output)) {
        dgm_canon_message *result = responses_items_add_result(k, NULL, call_id);
        result->id = dgm_arena_printf(k->r->arena, "%.*s-result", DGM_P(call_id));
        result->content.text = dgm_content_value_text(k->r->arena, failed ? error : output);
        if (failed)
            result->error = result->content.text;
    }
    return DGM_OK;
}

static dgm_code read_output(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    static const char *const known[] = {"id", "call_id", "output", NULL};
    yyjson_val *output = dgm_json_non_null(v, "output");
    dgm_str call_id = dgm_json_str_member(v, "call_id");
    if (!call_id.n)
        return missing(k, at, "call_id", "the output of a call");
    dgm_canon_message *m = responses_items_add_result(k, v, call_id);
    m->extra = dgm_responses_rest(k->r->arena, v, known);
    if (yyjson_is_arr(output))
        return dgm_responses_read_content(k->r, output, DGM_AT_LIT(at, "output"), &m->content);
    m->content.text = output ? dgm_content_value_text(k->r->arena, output) : DGM_STR("");
    return DGM_OK;
}

static void add_thoughts(dgm_buf *b, yyjson_val *list)
{
    yyjson_val *part;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, part) {
        if (b->n)
            dgm_buf_add_lit(b, "\n\n");
        dgm_buf_add_str(b, dgm_json_str_member(part, "text"));
    }
}

static void read_reasoning(struct reading *k, yyjson_val *v)
{
    static const char *const known[] = {"type", "id", "encrypted_content", NULL};
    dgm_canon_message *m = responses_items_add(k, DGM_CANON_REASONING, v);
    dgm_str encrypted = dgm_json_str_member(v, "encrypted_content");
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    add_thoughts(&b, dgm_json_get(v, DGM_STR("summary")));
    add_thoughts(&b, dgm_json_get(v, DGM_STR("content")));
    m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                     .text = dgm_arena_dup(k->r->arena, dgm_buf_str(&b))};
    dgm_buf_done(&b);
    m->encrypted_value = encrypted;
    m->extra = dgm_responses_rest(k->r->arena, v, known); /* its parts, as they were */
}

static dgm_code read_item(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(k->r, v, at, "an object (item)");
    if (dgm_str_is(type, "message") || (!type.n && dgm_json_get(v, DGM_STR("role"))))
        return read_message(k, v, at);
    if (dgm_str_is(type, "function_call") || dgm_str_is(type, "custom_tool_call"))
        return responses_items_read_call(k, v, at, false);
    if (dgm_str_is(type, "mcp_call"))
        return responses_items_read_call(k, v, at, true);
    if (dgm_str_is(type, "function_call_output") || dgm_str_is(type, "custom_tool_call_output"))
        return read_output(k, v, at);
    if (dgm_str_is(type, "reasoning")) {
        read_reasoning(k, v);
        return DGM_OK;
    }
    if (!type.n && !dgm_json_str_member(v, "id").n)
        return dgm_fail(k->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "missing: the type of the item");
    dgm_canon_message *m =
        responses_items_add(k, DGM_CANON_ACTIVITY, v); /* references, searches, ... */
    m->activity_type = DGM_STR(DGM_RESPONSES_ITEM);
    m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_OBJECT, .object = v};
    return DGM_OK;
}

dgm_code dgm_responses_read_items(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                  dgm_canon_messages *ret)
{
    struct reading k = {.r = r};
    yyjson_val *e;
    size_t n;
    dgm_code rc = DGM_OK;
    r->format = DGM_FORMAT_RESPONSES;
    if (!yyjson_is_arr(v)) {
        rc = read_item(&k, v, at);
    } else {
        if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
            return dgm_fail(r->err, DGM_TOO_LARGE, at,
                            "%zu items, more than the limit list_items of %d: send fewer at once",
                            yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
        yyjson_arr_foreach (v, k.i, n, e) {
            if ((rc = read_item(&k, e, DGM_AT_I(at, k.i))))
                break;
        }
    }
    if (!rc)
        *ret = k.list;
    return rc;
}
