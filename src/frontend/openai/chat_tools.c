/* frontend/openai/chat_tools.c - the caller's tools, and what else an agent is to know of a request. */
#include "base/list.h"
#include "canon/message_content.h"
#include "frontend/openai/chat_front_int.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_model.h"
#include "frontend/openai/openai_session.h"

/* ---- which tool is to be called --------------------------------------------------------------------------------- */

static bool has_tool(const struct chat *c, dgm_str name)
{
    for (size_t i = 0; i < c->input.tools.n; i++) {
        if (dgm_str_eq(c->input.tools.at[i].name, name))
            return true;
    }
    return false;
}

/* The name of a function that must be called; empty: any. false: none must. */
static bool must_call(yyjson_val *choice, dgm_str *ret_name)
{
    yyjson_val *type = dgm_json_get(choice, DGM_STR("type"));
    *ret_name = (dgm_str){0};
    if (yyjson_is_str(choice))
        return dgm_str_is(dgm_json_str(choice), "required");
    if (yyjson_is_str(type) && dgm_str_is(dgm_json_str(type), "allowed_tools"))
        return dgm_str_is(
            dgm_json_str_member(dgm_json_get(choice, DGM_STR("allowed_tools")), "mode"),
            "required");
    yyjson_val *named = dgm_json_get(choice, DGM_STR("function"));
    *ret_name =
        dgm_json_str_member(named ? named : dgm_json_get(choice, DGM_STR("custom")), "name");
    if (!ret_name->n)
        *ret_name = dgm_json_str_member(choice, "name"); /* legacy: function_call */
    return true;
}

static bool is_known_word(yyjson_val *choice)
{
    dgm_str word = dgm_json_str(choice);
    return dgm_str_is(word, "none") || dgm_str_is(word, "auto") || dgm_str_is(word, "required");
}

bool chat_tools_can_be_used(struct chat *c)
{
    dgm_http_exchange *x = c->q.x;
    yyjson_val *choice = dgm_json_get(c->body, DGM_STR("tool_choice"));
    const char *param = "tool_choice";
    dgm_str name;
    if (!choice || yyjson_is_null(choice)) {
        choice = dgm_json_get(c->body, DGM_STR("function_call"));
        param = "function_call";
    }
    if (!choice || yyjson_is_null(choice))
        return true;
    if (yyjson_is_str(choice) && !is_known_word(choice))
        openai_fail_param(x, "invalid_value", param, "%s: expected none, auto or required", param);
    else if (!must_call(choice, &name))
        return true;
    else if (!c->input.tools.n)
        openai_fail_param(x, "invalid_value", param, "%s: there are no tools to be called", param);
    else if (name.n && !has_tool(c, name))
        openai_fail_param(x, "invalid_value", param, "%s: unknown tool: `tools` does not have it",
                          param);
    else if (!openai_looks_at_tools(c->agent))
        openai_fail_tools(x, param);
    else
        return true;
    return false;
}

/* ---- metadata ----------------------------------------------------------------------------------------------------- */

struct members {
    dgm_arena *a;
    dgm_member *at;
    size_t n;
};

static void add(struct members *m, dgm_str key, yyjson_val *value)
{
    if (!value || yyjson_is_null(value))
        return;
    m->at = dgm_list_grow(m->a, m->at, m->n, sizeof *m->at);
    m->at[m->n++] = (dgm_member){key, value};
}

const dgm_json *chat_metadata(struct chat *c)
{
    struct members m = {.a = dgm_http_arena(c->q.x)};
    yyjson_obj_iter it = yyjson_obj_iter_with(dgm_json_get(c->body, DGM_STR("metadata")));
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        dgm_str name = dgm_json_str(key);
        if (openai_is_for_agent(name))
            add(&m, name, yyjson_obj_iter_get_val(key));
    }
    add(&m, DGM_STR(DGM_META_TOOL_CHOICE), dgm_json_get(c->body, DGM_STR("tool_choice")));
    if (c->json)
        add(&m, DGM_STR(DGM_META_RESPONSE_FORMAT),
            dgm_json_get(c->body, DGM_STR("response_format")));
    return m.n ? dgm_json_object(m.a, m.at, m.n) : NULL;
}
