/* wire/langchain/langchain_read.c - messages to canonical ones. */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/langchain/langchain_int.h"
#include "wire/read_messages.h"

/* The members that we read; all others (usage_metadata, response_metadata, artifact, ...) are stored for LangChain. */
struct lc_data {
    dgm_str id, name, tool_call_id, status;
    const dgm_json *content, *tool_calls, *invalid_tool_calls;
    const dgm_extra *extra;
};

static const dgm_custom ignored = {NULL, NULL};
static const dgm_field data_fields[] = {
    DGM_F(struct lc_data, id, "id", STR, 0),
    DGM_F(struct lc_data, name, "name", STR, 0),
    DGM_F(struct lc_data, tool_call_id, "tool_call_id", STR, 0),
    DGM_F(struct lc_data, status, "status", STR, 0),
    DGM_F(struct lc_data, content, "content", JSON, 0),
    DGM_F(struct lc_data, tool_calls, "tool_calls", JSON, 0),
    DGM_F(struct lc_data, invalid_tool_calls, "invalid_tool_calls", JSON, 0),
    DGM_F_CUSTOM("type", 0, &ignored),
    DGM_F_CUSTOM("role", 0, &ignored),
    DGM_F_CUSTOM("chunk", 0, &ignored),
    DGM_F_CUSTOM("tool_call_chunks", 0, &ignored),
    DGM_F_CUSTOM("chunk_position", 0, &ignored),
};
static const dgm_shape data_shape = {
    .what = "message",
    .size = sizeof(struct lc_data),
    DGM_FIELDS(data_fields),
    .extra_at = offsetof(struct lc_data, extra),
    .tag_at = DGM_NOWHERE,
};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* {"name","args","id"}, or as OpenAI has them: {"id","function":{"name","arguments"}}. */
static dgm_code langchain_read_call(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                    dgm_canon_calls *calls)
{
    yyjson_val *function = dgm_json_get(v, DGM_STR("function"));
    yyjson_val *args =
        function ? dgm_json_get(function, DGM_STR("arguments")) : dgm_json_get(v, DGM_STR("args"));
    dgm_str id = dgm_json_str_member(v, "id"),
            name = dgm_json_str_member(function ? function : v, "name");
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (tool call)");
    if (!name.p && !function && yyjson_is_null(dgm_json_get(v, DGM_STR("name"))))
        name = DGM_STR(""); /* of an invalid call it may be unknown */
    if (!name.p)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                        "missing: the name of the tool");
    if (!id.n && !r->mint)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "id"),
                        "missing: the result of this call could not be assigned to it");
    calls->at = dgm_list_grow(r->arena, calls->at, calls->n, sizeof *calls->at);
    calls->at[calls->n++] = (dgm_canon_call){
        .id = id.n ? id : dgm_mint_id(r->mint, r->arena),
        .name = name,
        .arguments = dgm_content_arguments(r->arena, yyjson_is_null(args) ? NULL : args)};
    return DGM_OK;
}

static dgm_code read_calls(dgm_reader *r, const dgm_json *list, const dgm_at *at,
                           dgm_canon_calls *calls)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)list, *one;
    size_t i, n;
    dgm_code rc;
    if (!v || yyjson_is_null(v))
        return DGM_OK;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of tool calls");
    if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (v, i, n, one) {
        if ((rc = langchain_read_call(r, one, DGM_AT_I(at, i), calls)))
            return rc;
    }
    return DGM_OK;
}

static dgm_code all_calls(dgm_reader *r, const struct lc_data *d, const yyjson_val *data,
                          const lc_content *content, const dgm_at *at, dgm_canon_calls *ret)
{
    dgm_code rc;
    if ((rc = read_calls(r, d->tool_calls, DGM_AT_LIT(at, "tool_calls"), ret)) ||
        (rc = read_calls(r, d->invalid_tool_calls, DGM_AT_LIT(at, "invalid_tool_calls"), ret)))
        return rc;
    if (!ret->n)
        *ret = content->calls;
    const dgm_at *more_at = DGM_AT_LIT(at, "additional_kwargs");
    const yyjson_val *more = dgm_json_get(data, DGM_STR("additional_kwargs"));
    return ret->n ? DGM_OK /* where they were before messages had tool_calls */
                  : read_calls(r, dgm_json_get(more, DGM_STR("tool_calls")),
                               DGM_AT_LIT(more_at, "tool_calls"), ret);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static dgm_canon_message *langchain_read_add(dgm_reader *r, dgm_canon_messages *list,
                                             dgm_canon_role role)
{
    list->at = dgm_list_grow(r->arena, list->at, list->n, sizeof *list->at);
    dgm_canon_message *m = &list->at[list->n++];
    m->role = role;
    return m;
}

/* Reasoning comes before the text. */
static void langchain_read_add_reasoning(dgm_reader *r, dgm_canon_messages *list,
                                         const lc_content *content, const yyjson_val *data,
                                         dgm_str id)
{
    const yyjson_val *more = dgm_json_get(data, DGM_STR("additional_kwargs"));
    dgm_str elsewhere = dgm_json_str_member(more, "reasoning_content");
    dgm_strs all =
        content->reasoning.n ? content->reasoning : (dgm_strs){&elsewhere, elsewhere.n ? 1 : 0};
    for (size_t i = 0; i < all.n; i++) {
        dgm_canon_message *m = langchain_read_add(r, list, DGM_CANON_REASONING);
        m->id = dgm_arena_printf(r->arena, "%.*s-t%zu", DGM_P(id), i + 1);
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = all.at[i]};
    }
}

static dgm_code read_ai(dgm_reader *r, const struct lc_data *d, const yyjson_val *data,
                        const dgm_at *at, dgm_canon_messages *list)
{
    dgm_canon_calls calls = {0};
    lc_content content;
    dgm_code rc;
    if ((rc = dgm_lc_read_content(r, (yyjson_val *)(uintptr_t)d->content, DGM_AT_LIT(at, "content"),
                                  &content)) ||
        (rc = all_calls(r, d, data, &content, at, &calls)))
        return rc;
    langchain_read_add_reasoning(r, list, &content, data, d->id);
    dgm_canon_message *m = langchain_read_add(r, list, DGM_CANON_ASSISTANT);
    dgm_str text = dgm_lc_answer_of(r->arena, &content);
    if (text.n || !calls.n)
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text};
    m->tool_calls = calls;
    return DGM_OK;
}

static dgm_code read_other(dgm_reader *r, lc_kind kind, const struct lc_data *d, const dgm_at *at,
                           dgm_canon_messages *list)
{
    static const dgm_canon_role roles[] = {[LC_HUMAN] = DGM_CANON_USER,
                                           [LC_SYSTEM] = DGM_CANON_SYSTEM,
                                           [LC_DEVELOPER] = DGM_CANON_DEVELOPER,
                                           [LC_TOOL] = DGM_CANON_TOOL,
                                           [LC_FUNCTION] = DGM_CANON_TOOL};
    lc_content content;
    dgm_code rc;
    if (!d->content)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "content"),
                        "missing: a message has it");
    if ((rc = dgm_lc_read_content(r, (yyjson_val *)(uintptr_t)d->content, DGM_AT_LIT(at, "content"),
                                  &content)))
        return rc;
    if (kind == LC_TOOL && !d->tool_call_id.p)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "tool_call_id"),
                        "missing: a tool message needs the id of its call");
    dgm_canon_message *m = langchain_read_add(r, list, roles[kind]);
    m->content = dgm_lc_content_of(r->arena, &content);
    if (roles[kind] == DGM_CANON_SYSTEM || roles[kind] == DGM_CANON_DEVELOPER)
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                         .text = dgm_lc_answer_of(r->arena, &content)};
    m->tool_call_id = kind == LC_TOOL       ? d->tool_call_id
                      : kind == LC_FUNCTION ? d->name
                                            : (dgm_str){0};
    if (dgm_str_is(d->status, "error"))
        m->error = dgm_lc_answer_of(r->arena, &content);
    return DGM_OK;
}

dgm_code dgm_lc_read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_messages *list)
{
    lc_opened o;
    struct lc_data d = {0};
    dgm_code rc;
    r->format = DGM_FORMAT_LANGCHAIN;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (message)");
    if (!dgm_lc_open(v, &o))
        return dgm_fail(
            r->err, DGM_BAD_PARAMS, at,
            "no message of LangChain's: it has a type (human, ai, system, tool) with data or "
            "content, a role with content, or lc and kwargs");
    if (o.kind == LC_REMOVE || o.kind == LC_CHAT) {
        r->n_unknown++;
        return DGM_OK;
    }
    const dgm_at *inside = o.key ? DGM_AT(at, dgm_str_from(o.key)) : at;
    if ((rc = dgm_shape_read(r, &data_shape, o.data, inside, &d)))
        return rc;
    if (!d.id.n && r->mint)
        d.id = dgm_mint_id(r->mint, r->arena);
    rc = o.kind == LC_AI ? read_ai(r, &d, o.data, inside, list)
                         : read_other(r, o.kind, &d, inside, list);
    if (rc)
        return rc;
    dgm_canon_message *m = &list->at[list->n - 1];
    m->id = d.id;
    m->name = d.name;
    m->extra = d.extra;
    return DGM_OK;
}

dgm_code dgm_lc_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                              dgm_canon_messages *ret)
{
    return dgm_read_messages(r, v, at, dgm_lc_read_message, ret);
}
