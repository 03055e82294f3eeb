/*
 * wire/chat/chat_request.c - the body of a chat request as the input of a run, and back.
 *
 * Messages and function tools have their place there. All other members of a body are stored in `extra`; tools
 * that are not functions too, under `tools`.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/chat/chat_codec.h"
#include "wire/chat/chat_messages.h"

/* Names the session: clients can set it in any library. */
#define CONTEXT_KEY "a2a_context_id"

/* ---- tools --------------------------------------------------------------------------------------------------- */

static const dgm_field function_fields[] = {
    DGM_F(dgm_canon_tool, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(dgm_canon_tool, description, "description", STR, 0),
    DGM_F(dgm_canon_tool, parameters, "parameters", JSON, 0),
};
static const dgm_shape function_shape = {
    .what = "function",
    .size = sizeof(dgm_canon_tool),
    DGM_FIELDS(function_fields),
    .extra_at = offsetof(dgm_canon_tool, extra),
    .tag_at = DGM_NOWHERE,
};
static const dgm_field tool_fields[] = {
    DGM_F_CONST("type", "function"),
    DGM_F_NEST("function", DGM_REQUIRED, &function_shape),
};
static const dgm_shape tool_shape = {
    .what = "tool",
    .size = sizeof(dgm_canon_tool),
    DGM_FIELDS(tool_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static bool is_function(yyjson_val *tool)
{
    yyjson_val *type = dgm_json_get(tool, DGM_STR("type"));
    return !yyjson_is_obj(tool) || !yyjson_is_str(type) ||
           dgm_str_is(dgm_json_str(type), "function");
}

/* Tools that are not functions; NULL: all are. */
static const dgm_json *others_of(dgm_arena *a, yyjson_val *list)
{
    dgm_buf b;
    yyjson_val *e;
    size_t i, n;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '[');
    yyjson_arr_foreach (list, i, n, e) {
        if (is_function(e))
            continue;
        if (b.n > 1)
            dgm_buf_add_char(&b, ',');
        dgm_json_put(&b, e);
    }
    dgm_buf_add_char(&b, ']');
    const dgm_json *v = b.n > 2 ? dgm_json_parse_trusted(a, dgm_buf_str(&b)) : NULL;
    dgm_buf_done(&b);
    return v;
}

/* legacy: `functions`, which are what a tool holds. */
static dgm_code read_tools(dgm_reader *r, yyjson_val *v, const dgm_at *at, bool legacy,
                           dgm_canon_input *input)
{
    yyjson_val *e;
    size_t i, n;
    dgm_code rc;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "a list of tools");
    if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu tools, more than the limit list_items of %d: send fewer",
                        yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (v, i, n, e) {
        if (!legacy && !is_function(e))
            continue;
        input->tools.at =
            dgm_list_grow(r->arena, input->tools.at, input->tools.n, sizeof *input->tools.at);
        dgm_canon_tool *tool = &input->tools.at[input->tools.n++];
        if ((rc = dgm_shape_read(r, legacy ? &function_shape : &tool_shape, e, DGM_AT_I(at, i),
                                 tool)))
            return rc;
        if (tool->parameters && yyjson_is_null((yyjson_val *)(uintptr_t)tool->parameters))
            tool->parameters = NULL;
    }
    return DGM_OK;
}

/* "auto", "none" or {"name":...}, as today's `tool_choice`. */
static const dgm_json *choice_of(dgm_arena *a, yyjson_val *v)
{
    yyjson_val *name = dgm_json_get(v, DGM_STR("name"));
    if (!yyjson_is_str(name))
        return v;
    dgm_member inner = {DGM_STR("name"), name};
    dgm_member outer[] = {{DGM_STR("type"), dgm_json_make_string(a, DGM_STR("function"))},
                          {DGM_STR("function"), dgm_json_object(a, &inner, 1)}};
    return dgm_json_object(a, outer, 2);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* What OpenAI's own document lists; anything else is counted as unknown, and kept as well. */
static bool is_known(dgm_str key)
{
    static const char *const names[] = {"model",
                                        "stream",
                                        "stream_options",
                                        "n",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "response_format",
                                        "max_completion_tokens",
                                        "max_tokens",
                                        "temperature",
                                        "top_p",
                                        "seed",
                                        "stop",
                                        "frequency_penalty",
                                        "presence_penalty",
                                        "logit_bias",
                                        "logprobs",
                                        "top_logprobs",
                                        "verbosity",
                                        "service_tier",
                                        "prediction",
                                        "modalities",
                                        "audio",
                                        "web_search_options",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "moderation",
                                        "reasoning_effort",
                                        "metadata",
                                        "user",
                                        "safety_identifier",
                                        "store"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (dgm_str_eq(key, dgm_str_from(names[i])))
            return true;
    }
    return false;
}

static dgm_code chat_request_keep(dgm_reader *r, dgm_str key, const dgm_json *value,
                                  const dgm_at *at, dgm_canon_input *input)
{
    dgm_extra *x = (dgm_extra *)(uintptr_t)input->extra; /* made here */
    if (!value)
        return DGM_OK;
    if (!x) {
        input->extra = x = dgm_new(r->arena, dgm_extra);
        x->format = DGM_FORMAT_CHAT;
    }
    if (x->n == DGM_MAX_UNKNOWN_MEMBERS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "more unknown members than the limit unknown_members of %d",
                        DGM_MAX_UNKNOWN_MEMBERS);
    for (size_t i = 0; i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, key))
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, key), "this member occurs twice");
    }
    x->at = dgm_list_grow(r->arena, x->at, x->n, sizeof *x->at);
    x->at[x->n++] = (dgm_member){key, value};
    return DGM_OK;
}

static dgm_code read_member(dgm_reader *r, dgm_str key, yyjson_val *v, const dgm_at *at,
                            dgm_canon_input *input)
{
    dgm_code rc;
    if (dgm_str_is(key, "messages"))
        return dgm_chat_read_messages(r, v, DGM_AT_LIT(at, "messages"), &input->messages);
    if (yyjson_is_null(v))
        return DGM_OK;
    if (dgm_str_is(key, "functions"))
        return read_tools(r, v, DGM_AT_LIT(at, "functions"), true, input);
    if (dgm_str_is(key, "tools")) {
        rc = read_tools(r, v, DGM_AT_LIT(at, "tools"), false, input);
        return rc ? rc : chat_request_keep(r, key, others_of(r->arena, v), at, input);
    }
    if (dgm_str_is(key, "function_call"))
        return chat_request_keep(r, DGM_STR("tool_choice"), choice_of(r->arena, v), at, input);
    if (!is_known(key)) {
        r->n_unknown++;
        if (r->drop_unknown)
            return DGM_OK;
    }
    return chat_request_keep(r, key, v, at, input);
}

dgm_code dgm_chat_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_input *ret_input)
{
    dgm_canon_input input = {0};
    yyjson_obj_iter it;
    yyjson_val *key;
    dgm_code rc;
    r->format = DGM_FORMAT_CHAT;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (the body of a chat request)");
    if (!yyjson_is_arr(dgm_json_get(v, DGM_STR("messages"))))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "messages"),
                        "missing: a chat request is a list of messages");
    it = yyjson_obj_iter_with(v);
    while ((key = yyjson_obj_iter_next(&it))) {
        if ((rc = read_member(r, dgm_json_str(key), yyjson_obj_iter_get_val(key), at, &input)))
            return rc;
    }
    input.thread_id = dgm_json_str_member(dgm_chat_extra(input.extra, "metadata"), CONTEXT_KEY);
    if (r->mint) {
        if (!input.thread_id.n)
            input.thread_id = dgm_mint_id(r->mint, r->arena);
        input.run_id = dgm_mint_id(r->mint, r->arena);
    }
    input.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    *ret_input = input;
    return DGM_OK;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void put_messages(dgm_writer *w, dgm_arena *a, const dgm_canon_messages *messages)
{
    dgm_chat_messages list = dgm_chat_from_canon(a, messages);
    dgm_buf_add_lit(w->out, ",\"messages\":[");
    for (size_t i = 0; i < list.n; i++) {
        dgm_put_comma(w);
        dgm_chat_write(w, &list.at[i]);
    }
    dgm_buf_add_char(w->out, ']');
}

static void put_tools(dgm_writer *w, const dgm_canon_input *input)
{
    yyjson_val *others = (yyjson_val *)(uintptr_t)dgm_chat_extra(input->extra, "tools"), *e;
    size_t i, n;
    if (!input->tools.n && !others)
        return;
    dgm_buf_add_lit(w->out, ",\"tools\":[");
    for (i = 0; i < input->tools.n; i++) {
        dgm_put_comma(w);
        dgm_shape_write(w, &tool_shape, &input->tools.at[i]);
    }
    if (yyjson_is_arr(others)) {
        yyjson_arr_foreach (others, i, n, e) {
            dgm_put_comma(w);
            dgm_json_put(w->out, e);
        }
    }
    dgm_buf_add_char(w->out, ']');
}

static dgm_str model_of(const dgm_canon_input *input, const dgm_stream_params *params)
{
    dgm_str model = params->model.n ? params->model : dgm_chat_extra_text(input->extra, "model");
    return model.n ? model : DGM_STR("dragoman");
}

/* The conversation that another format names. A chat request has its own metadata. */
static void put_context(dgm_writer *w, const dgm_canon_input *input)
{
    if (!input->thread_id.n)
        return;
    dgm_buf_add_lit(w->out, ",\"metadata\":{\"" CONTEXT_KEY "\":");
    dgm_json_put_str(w->out, input->thread_id);
    dgm_buf_add_char(w->out, '}');
}

dgm_code dgm_chat_write_request(dgm_writer *w, const dgm_canon_input *input,
                                const dgm_stream_params *params, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_extra *x = input->extra;
    bool ours = x && x->format == DGM_FORMAT_CHAT;
    (void)err;
    dgm_buf_add_lit(w->out, "{\"model\":");
    dgm_json_put_str(w->out, model_of(input, params));
    put_messages(w, a, &input->messages);
    put_tools(w, input);
    for (size_t i = 0; ours && i < x->n; i++) {
        if (dgm_str_is(x->at[i].key, "model") || dgm_str_is(x->at[i].key, "tools"))
            continue;
        dgm_buf_add_char(w->out, ',');
        dgm_json_put_str(w->out, x->at[i].key);
        dgm_buf_add_char(w->out, ':');
        dgm_json_put(w->out, x->at[i].value);
    }
    if (!ours)
        put_context(w, input);
    dgm_buf_add_char(w->out, '}');
    return DGM_OK;
}

/* ---- the form of the answer ------------------------------------------------------------------------------------------ */

/* A member that is not null. */
static yyjson_val *chat_member(const yyjson_val *v, const char *name)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(name));
    return yyjson_is_null(m) ? NULL : m;
}

static dgm_code chat_read_response_format(yyjson_val *body, dgm_output_form *form, dgm_err *err)
{
    yyjson_val *format = chat_member(body, "response_format");
    yyjson_val *schema = chat_member(format, "json_schema");
    dgm_str type = dgm_json_str_member(format, "type");
    form->json = dgm_str_is(type, "json_object") || dgm_str_is(type, "json_schema");
    if (format && !form->json && !dgm_str_is(type, "text"))
        return dgm_fail(err, DGM_BAD_PARAMS,
                        DGM_AT_LIT(DGM_AT_LIT(NULL, "response_format"), "type"),
                        "expected text, json_object or json_schema");
    if (form->json) {
        form->format = format;
        form->schema = chat_member(schema ? schema : format, "schema");
    }
    return DGM_OK;
}

/* Is a function of this name in a list of allowed tools? */
static bool chat_is_allowed(yyjson_val *list, dgm_str name)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        yyjson_val *nested = chat_member(e, "function");
        if (dgm_str_eq(dgm_json_str_member(nested ? nested : e, "name"), name))
            return true;
    }
    return false;
}

/* "required"; {"type":"function","function":{"name"}}; {"name"}, of function_call; {"type":"allowed_tools","allowed_tools":
 * {"mode","tools"}}. */
static dgm_code chat_read_choice(dgm_arena *a, yyjson_val *choice, const dgm_canon_tools *tools,
                                 dgm_output_form *form, dgm_err *err)
{
    const dgm_at *at = DGM_AT(NULL, dgm_str_from(form->choice));
    yyjson_val *among = NULL;
    dgm_str name = {0};
    if (yyjson_is_str(choice)) {
        dgm_str word = dgm_json_str(choice);
        form->must_call = dgm_str_is(word, "required");
        if (!form->must_call && !dgm_str_is(word, "none") && !dgm_str_is(word, "auto"))
            return dgm_fail(err, DGM_BAD_PARAMS, at, "expected none, auto or required");
    } else if (dgm_str_is(dgm_json_str_member(choice, "type"), "allowed_tools")) {
        yyjson_val *nested = chat_member(choice, "allowed_tools");
        among = chat_member(nested ? nested : choice, "tools");
        form->must_call =
            dgm_str_is(dgm_json_str_member(nested ? nested : choice, "mode"), "required");
    } else {
        yyjson_val *nested = chat_member(choice, "function");
        name = dgm_json_str_member(nested ? nested : chat_member(choice, "custom"), "name");
        if (!name.n)
            name = dgm_json_str_member(choice, "name");
        form->must_call = true;
    }
    if (!form->must_call)
        return DGM_OK;
    if (!tools->n)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "there are no tools to be called");
    form->tools = dgm_new_n(a, dgm_output_tool, tools->n);
    for (size_t i = 0; i < tools->n && !(name.n && form->n_tools); i++) {
        const dgm_canon_tool *t = &tools->at[i];
        if (name.n ? dgm_str_eq(t->name, name)
                   : yyjson_is_str(choice) || !among || chat_is_allowed(among, t->name))
            form->tools[form->n_tools++] = (dgm_output_tool){t->name, t->parameters};
    }
    if (name.n && !form->n_tools)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "unknown tool: `tools` does not have it");
    return DGM_OK;
}

dgm_code dgm_chat_read_output_form(dgm_arena *a, yyjson_val *body, const dgm_canon_tools *tools,
                                   dgm_output_form *ret, dgm_err *err)
{
    yyjson_val *choice = chat_member(body, "tool_choice");
    *ret = (dgm_output_form){.choice = choice ? "tool_choice" : "function_call"};
    if (!choice)
        choice = chat_member(body, "function_call");
    dgm_code rc = chat_read_response_format(body, ret, err);
    return rc || !choice ? rc : chat_read_choice(a, choice, tools, ret, err);
}
