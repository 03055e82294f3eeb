/* wire/responses/responses_items_write.c - messages as items; items of requests with all their members. */
#include "wire/responses/responses_int.h"

static const char *role_name(dgm_canon_role role)
{
    if (role == DGM_CANON_SYSTEM)
        return "system";
    return role == DGM_CANON_DEVELOPER ? "developer" : "user";
}

#define LIT(lit) dgm_buf_add_lit(w->out, lit)

/* A text member, unless the item has its own. */
static void put_status(dgm_writer *w, const dgm_extra *extra)
{
    if (!dgm_responses_extra(extra, DGM_STR("status")))
        LIT(",\"status\":\"completed\"");
}

static void put_assistant(dgm_writer *w, const dgm_canon_message *m)
{
    static const char *const but[] = {"content", NULL};
    const dgm_json *content = dgm_responses_extra(m->extra, DGM_STR("content"));
    LIT("{\"type\":\"message\",\"id\":");
    dgm_responses_put_id(w->out, "msg_", m->id);
    LIT(",\"role\":\"assistant\",\"content\":");
    if (content) {
        dgm_json_put(w->out, content);
    } else {
        LIT("[{\"type\":\"output_text\",\"text\":\"");
        dgm_json_put_chars(w->out, m->content.text);
        for (size_t i = 0; m->content.kind == DGM_CANON_CONTENT_PARTS && i < m->content.parts.n;
             i++)
            dgm_json_put_chars(w->out, m->content.parts.at[i].text);
        LIT("\",\"annotations\":[],\"logprobs\":[]}]");
    }
    put_status(w, m->extra);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_input(dgm_writer *w, const dgm_canon_message *m)
{
    LIT("{\"type\":\"message\",\"role\":\"");
    dgm_buf_add_str(w->out, dgm_str_from(role_name(m->role)));
    LIT("\",");
    if (dgm_str_starts(m->id, DGM_STR("msg_"))) { /* OpenAI takes back only its own */
        LIT("\"id\":");
        dgm_json_put_str(w->out, m->id);
        dgm_buf_add_char(w->out, ',');
    }
    LIT("\"content\":");
    const dgm_json *content = dgm_responses_extra(m->extra, DGM_STR("content"));
    static const char *const but[] = {"content", NULL};
    if (content)
        dgm_json_put(w->out, content);
    else
        dgm_responses_put_content(w, &m->content);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_call(dgm_writer *w, const dgm_canon_call *c)
{
    const dgm_json *type = dgm_responses_extra(c->extra, DGM_STR("type"));
    bool custom = type && dgm_str_is(dgm_json_str(type), "custom_tool_call");
    static const char *const but[] = {"type", NULL};
    if (custom)
        LIT("{\"type\":\"custom_tool_call\"");
    else
        LIT("{\"type\":\"function_call\"");
    if (!dgm_responses_extra(c->extra, DGM_STR("id"))) {
        LIT(",\"id\":");
        dgm_responses_put_id(w->out, custom ? "ctc_" : "fc_", c->id);
    }
    LIT(",\"call_id\":");
    dgm_json_put_str(w->out, c->id);
    LIT(",\"name\":");
    dgm_json_put_str(w->out, c->name);
    if (custom)
        LIT(",\"input\":");
    else
        LIT(",\"arguments\":");
    dgm_json_put_str(w->out, c->arguments.n ? c->arguments : DGM_STR("{}"));
    put_status(w, c->extra);
    dgm_responses_put_rest(w, c->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_output(dgm_writer *w, const dgm_canon_message *m)
{
    const dgm_json *type = dgm_responses_extra(m->extra, DGM_STR("type"));
    static const char *const but[] = {"type", NULL};
    LIT("{\"type\":");
    if (type)
        dgm_json_put(w->out, type);
    else
        LIT("\"function_call_output\"");
    if (dgm_str_starts(m->id, DGM_STR("fc"))) {
        LIT(",\"id\":");
        dgm_json_put_str(w->out, m->id);
    }
    LIT(",\"call_id\":");
    dgm_json_put_str(w->out, m->tool_call_id);
    LIT(",\"output\":");
    if (m->content.kind == DGM_CANON_CONTENT_PARTS)
        dgm_responses_put_content(w, &m->content);
    else
        dgm_json_put_str(w->out, m->content.text.n ? m->content.text : m->error);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_reasoning(dgm_writer *w, const dgm_canon_message *m)
{
    LIT("{\"type\":\"reasoning\",\"id\":");
    dgm_responses_put_id(w->out, "rs_", m->id);
    if (!dgm_responses_extra(m->extra, DGM_STR("summary"))) {
        LIT(",\"summary\":[");
        if (m->content.text.n) {
            LIT("{\"type\":\"summary_text\",\"text\":");
            dgm_json_put_str(w->out, m->content.text);
            dgm_buf_add_char(w->out, '}');
        }
        dgm_buf_add_char(w->out, ']');
    }
    if (m->encrypted_value.n) {
        LIT(",\"encrypted_content\":");
        dgm_json_put_str(w->out, m->encrypted_value);
    }
    dgm_responses_put_rest(w, m->extra, NULL);
    dgm_buf_add_char(w->out, '}');
}

static dgm_code write_assistant(const dgm_canon_message *m, dgm_responses_items to)
{
    dgm_code rc = DGM_OK;
    bool says = m->content.text.n || m->content.kind == DGM_CANON_CONTENT_PARTS ||
                dgm_responses_extra(m->extra, DGM_STR("content")) || !m->tool_calls.n;
    if (says) {
        put_assistant(to.w, m);
        rc = to.give(to.arg);
    }
    for (size_t i = 0; !rc && i < m->tool_calls.n; i++) {
        put_call(to.w, &m->tool_calls.at[i]);
        rc = to.give(to.arg);
    }
    return rc;
}

dgm_code dgm_responses_write_items(const dgm_canon_messages *messages, dgm_responses_items to)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < messages->n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        switch (m->role) {
        case DGM_CANON_ROLE_NONE:
        case DGM_CANON_ASSISTANT: rc = write_assistant(m, to); continue;
        case DGM_CANON_DEVELOPER:
        case DGM_CANON_SYSTEM:
        case DGM_CANON_USER: put_input(to.w, m); break;
        case DGM_CANON_TOOL: put_output(to.w, m); break;
        case DGM_CANON_REASONING: put_reasoning(to.w, m); break;
        case DGM_CANON_ACTIVITY:
            if (!dgm_str_is(m->activity_type, DGM_RESPONSES_ITEM))
                continue; /* how it was going */
            dgm_json_put(to.w->out, m->content.object);
            break;
        }
        rc = to.give(to.arg);
    }
    return rc;
}

/* ---- items of requests ------------------------------------------------------------------------------------------- */

static const char *item_id_prefix(dgm_str type)
{
    static const char *const prefixes[][2] = {
        {"message", "msg_"},
        {"function_call", "fc_"},
        {"reasoning", "rs_"},
        {"mcp_call", "mcp_"},
        {"function_call_output", "fco_"},
        {"custom_tool_call", "ctc_"},
        {"custom_tool_call_output", "ctco_"},
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (dgm_str_eq(type, dgm_str_from(prefixes[i][0])))
            return prefixes[i][1];
    }
    return "item_";
}

/* A text as the list of parts that it abbreviates. */
static void build_text_part(dgm_json_build *b, const yyjson_val *text, bool assistant)
{
    dgm_json_build_array(b, "content");
    dgm_json_build_object(b, NULL);
    dgm_json_build_lit(b, "type", assistant ? "output_text" : "input_text");
    if (assistant) {
        dgm_json_build_array(b, "annotations");
        dgm_json_build_close(b);
        dgm_json_build_array(b, "logprobs");
        dgm_json_build_close(b);
    }
    dgm_json_build_value(b, "text", text);
    dgm_json_build_close(b);
    dgm_json_build_close(b);
}

void dgm_responses_build_item(dgm_json_build *b, const char *key, const yyjson_val *item,
                              dgm_str scope, const char *tag, size_t n)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)item);
    dgm_str type = dgm_json_str_member(item, "type");
    bool is_message = !type.n || dgm_str_is(type, "message");
    yyjson_val *text = is_message ? dgm_responses_get(item, "content") : NULL, *name;
    if (!type.n)
        type = DGM_STR("message");
    if (!yyjson_is_str(text))
        text = NULL;
    dgm_json_build_object(b, key);
    if (dgm_json_str_member(item, "id").n)
        dgm_json_build_value(b, "id", dgm_responses_get(item, "id"));
    else
        dgm_json_build_lit(
            b, "id", dgm_responses_scoped_id(b->arena, item_id_prefix(type), scope, tag, n).p);
    dgm_json_build_str(b, "type", type);
    if (is_message && !dgm_responses_get(item, "status"))
        dgm_json_build_lit(b, "status", "completed");
    if (text)
        build_text_part(b, text, dgm_str_is(dgm_json_str_member(item, "role"), "assistant"));
    while ((name = yyjson_obj_iter_next(&it))) {
        dgm_str member = dgm_json_str(name);
        if (!dgm_str_is(member, "id") && !dgm_str_is(member, "type") &&
            !(text && dgm_str_is(member, "content")))
            dgm_json_build_member(b, member, yyjson_obj_iter_get_val(name));
    }
    dgm_json_build_close(b);
}

yyjson_val *dgm_responses_build_items(dgm_arena *a, yyjson_val *const *items, size_t n,
                                      dgm_str scope)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    for (size_t i = 0; i < n; i++)
        dgm_responses_build_item(&b, NULL, items[i], scope, "i", i);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}
