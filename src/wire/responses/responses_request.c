/*
 * wire/responses/responses_request.c - what begins a response.
 *
 * `input` and `instructions` are messages, functions are tools; what only Responses knows (temperature, store,
 * tools that OpenAI runs itself, ...) is stored in the input's extra.
 */
#include "base/limits.h"
#include "wire/responses/responses_int.h"

/* The id of the message that instructions become: so they are instructions again when they are written. */
#define INSTRUCTIONS "instructions"

/* ---- tools --------------------------------------------------------------------------------------------------------- */

static dgm_code read_tool(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_tool *ret)
{
    static const char *const known[] = {"type", "name", "description", "parameters", NULL};
    yyjson_val *nested = dgm_json_get(v, DGM_STR("function")); /* as Chat Completions has it */
    if (yyjson_is_obj(nested))
        v = nested;
    *ret = (dgm_canon_tool){.name = dgm_json_str_member(v, "name"),
                            .description = dgm_json_str_member(v, "description"),
                            .parameters = dgm_json_non_null(v, "parameters"),
                            .extra = dgm_responses_rest(r->arena, v, known)};
    if (!ret->name.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                        "missing: a function needs it");
    return DGM_OK;
}

dgm_code dgm_responses_read_tools(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                  dgm_canon_tools *ret, const dgm_json **ret_others)
{
    dgm_canon_tools tools = {0};
    yyjson_val *e;
    size_t i, n = yyjson_arr_size(v);
    dgm_code rc;
    dgm_buf others;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of tools");
    if (n > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu tools, more than the limit list_items of %d: send fewer at once", n,
                        DGM_MAX_LIST_ITEMS);
    tools.at = dgm_new_n(r->arena, dgm_canon_tool, n);
    dgm_buf_init(&others, SIZE_MAX);
    rc = DGM_OK;
    yyjson_arr_foreach (v, i, n, e) {
        if (!dgm_str_is(dgm_json_str_member(e, "type"), "function")) {
            dgm_buf_add_char(&others, others.n ? ',' : '[');
            dgm_json_put(&others, e);
        } else if ((rc = read_tool(r, e, DGM_AT_I(at, i), &tools.at[tools.n++]))) {
            break;
        }
    }
    *ret_others = NULL;
    if (!rc && others.n) {
        dgm_buf_add_char(&others, ']');
        *ret_others = dgm_json_parse_trusted(r->arena, dgm_buf_str(&others));
    }
    dgm_buf_done(&others);
    if (!rc)
        *ret = tools;
    return rc;
}

static void put_tool(dgm_writer *w, const dgm_canon_tool *t)
{
    dgm_buf_add_lit(w->out, "{\"type\":\"function\",\"name\":");
    dgm_json_put_str(w->out, t->name);
    if (t->description.p) {
        dgm_buf_add_lit(w->out, ",\"description\":");
        dgm_json_put_str(w->out, t->description);
    }
    dgm_buf_add_lit(w->out, ",\"parameters\":");
    if (t->parameters)
        dgm_json_put(w->out, t->parameters);
    else
        dgm_buf_add_lit(w->out, "{\"type\":\"object\",\"properties\":{}}");
    if (!dgm_responses_extra(t->extra, DGM_STR("strict"))) /* absent would be true */
        dgm_buf_add_lit(w->out, ",\"strict\":false");
    dgm_responses_put_rest(w, t->extra, NULL);
    dgm_buf_add_char(w->out, '}');
}

void dgm_responses_put_tools(dgm_writer *w, const dgm_canon_tools *tools, const dgm_json *others)
{
    yyjson_val *e;
    size_t i, n;
    dgm_buf_add_char(w->out, '[');
    for (size_t k = 0; k < tools->n; k++) {
        dgm_put_comma(w);
        put_tool(w, &tools->at[k]);
    }
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)others, i, n, e) {
        if (dgm_str_is(dgm_json_str_member(e, "type"), "function"))
            continue; /* among the tools */
        dgm_put_comma(w);
        dgm_json_put(w->out, e);
    }
    dgm_buf_add_char(w->out, ']');
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

bool dgm_responses_is_request(const yyjson_val *v)
{
    yyjson_val *input = dgm_json_get(v, DGM_STR("input"));
    return (yyjson_is_str(input) || yyjson_is_arr(input) ||
            dgm_json_get(v, DGM_STR("previous_response_id"))) &&
           !dgm_json_get(v, DGM_STR("messages")) && !dgm_json_get(v, DGM_STR("type")) &&
           !dgm_json_get(v, DGM_STR("object"));
}

/* A message with this text, in front of the others. */
static void prepend_text(dgm_reader *r, dgm_canon_role role, dgm_str id, yyjson_val *text,
                         dgm_canon_messages *list)
{
    dgm_canon_messages all = {dgm_new_n(r->arena, dgm_canon_message, list->n + 1), list->n + 1};
    all.at[0] = (dgm_canon_message){
        .role = role,
        .id = id,
        .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_json_str(text)}};
    if (list->n)
        memcpy(all.at + 1, list->at, list->n * sizeof *all.at);
    *list = all;
}

/* Tools that are no functions stay among the members that only we know. */
static void keep_tools(dgm_reader *r, dgm_canon_input *in, const dgm_json *others)
{
    dgm_extra *extra = dgm_new(r->arena, dgm_extra);
    size_t n = in->extra ? in->extra->n : 0;
    *extra = (dgm_extra){DGM_FORMAT_RESPONSES, dgm_new_n(r->arena, dgm_member, n + 1), n + 1};
    if (n)
        memcpy(extra->at, in->extra->at, n * sizeof *extra->at);
    extra->at[n] = (dgm_member){DGM_STR("tools"), others};
    in->extra = extra;
}

dgm_code dgm_responses_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                    dgm_canon_input *ret_input)
{
    static const char *const known[] = {"input", "instructions", "tools", "previous_response_id",
                                        NULL};
    yyjson_val *input = dgm_json_non_null(v, "input"), *tools = dgm_json_non_null(v, "tools");
    yyjson_val *instructions = dgm_json_get(v, DGM_STR("instructions"));
    yyjson_val *conversation = dgm_json_get(v, DGM_STR("conversation"));
    const dgm_json *others = NULL;
    dgm_canon_input in = {.protocol_version = DGM_STR(DGM_AGUI_VERSION)};
    dgm_code rc;
    r->format = DGM_FORMAT_RESPONSES;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (request)");
    if (yyjson_is_str(input))
        prepend_text(r, DGM_CANON_USER, r->mint ? dgm_mint_id(r->mint, r->arena) : DGM_STR("input"),
                     input, &in.messages);
    else if (input &&
             (rc = dgm_responses_read_items(r, input, DGM_AT_LIT(at, "input"), &in.messages)))
        return rc;
    in.resume = dgm_responses_read_approvals(r->arena, input);
    if (yyjson_is_str(instructions))
        prepend_text(r, DGM_CANON_SYSTEM, DGM_STR(INSTRUCTIONS), instructions, &in.messages);
    if (tools &&
        (rc = dgm_responses_read_tools(r, tools, DGM_AT_LIT(at, "tools"), &in.tools, &others)))
        return rc;
    in.extra = dgm_responses_rest(r->arena, v, known);
    if (others)
        keep_tools(r, &in, others);
    in.parent_run_id = dgm_json_str_member(v, "previous_response_id");
    in.thread_id = yyjson_is_str(conversation) ? dgm_json_str(conversation)
                                               : dgm_json_str_member(conversation, "id");
    if (!in.thread_id.n)
        in.thread_id =
            dgm_json_str_member(dgm_json_get(v, DGM_STR("metadata")), DGM_RESPONSES_CONTEXT);
    if (r->mint && !in.thread_id.n)
        in.thread_id = dgm_mint_id(r->mint, r->arena);
    if (r->mint)
        in.run_id = dgm_mint_id(r->mint, r->arena);
    *ret_input = in;
    return DGM_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------- */

static dgm_code next_item(void *arg)
{
    dgm_buf_add_char(((dgm_writer *)arg)->out, ',');
    return DGM_OK;
}

static void put_items(dgm_writer *w, dgm_canon_messages messages)
{
    dgm_responses_items to = {.w = w, .on_item = next_item, .arg = w};
    size_t before = w->out->n;
    dgm_buf_add_lit(w->out, ",\"input\":[");
    dgm_responses_write_items(&messages, &to);
    if (w->out->n > before && w->out->p[w->out->n - 1] == ',')
        w->out->n--;
    dgm_buf_add_char(w->out, ']');
}

/* Where the conversation is known by an id of ours, it is sent to a server that may know it too. */
static void put_context(dgm_writer *w, const dgm_canon_input *in)
{
    bool ours = in->extra && in->extra->format == DGM_FORMAT_RESPONSES;
    if (ours || !in->thread_id.n)
        return;
    dgm_buf_add_lit(w->out, ",\"metadata\":{\"" DGM_RESPONSES_CONTEXT "\":");
    dgm_json_put_str(w->out, in->thread_id);
    dgm_buf_add_char(w->out, '}');
}

dgm_code dgm_responses_write_request(dgm_writer *w, const dgm_canon_input *in,
                                     const dgm_stream_params *params, dgm_err *err)
{
    static const char *const but[] = {"model", "tools", NULL};
    dgm_canon_messages messages = in->messages;
    const dgm_json *model = dgm_responses_extra(in->extra, DGM_STR("model"));
    const dgm_json *others = dgm_responses_extra(in->extra, DGM_STR("tools"));
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new_small(64);
    (void)err;
    dgm_buf_add_lit(w->out, "{\"model\":");
    if (params->model.n || !model)
        dgm_json_put_str(w->out, params->model.n ? params->model : DGM_STR("dragoman"));
    else
        dgm_json_put(w->out, model);
    if (messages.n && dgm_str_is(messages.at[0].id, INSTRUCTIONS) &&
        messages.at[0].role == DGM_CANON_SYSTEM) {
        dgm_buf_add_lit(w->out, ",\"instructions\":");
        dgm_json_put_str(w->out, messages.at[0].content.text);
        messages = (dgm_canon_messages){messages.at + 1, messages.n - 1};
    }
    put_items(w, dgm_responses_with_approvals(scratch, in, messages));
    if (in->tools.n || others) {
        dgm_buf_add_lit(w->out, ",\"tools\":");
        dgm_responses_put_tools(w, &in->tools, others);
    }
    if (in->parent_run_id.n) {
        dgm_buf_add_lit(w->out, ",\"previous_response_id\":");
        dgm_responses_put_id(w->out, "resp_", in->parent_run_id);
    }
    put_context(w, in);
    dgm_responses_put_rest(w, in->extra, but);
    dgm_buf_add_char(w->out, '}');
    return DGM_OK;
}

/* ---- what a server stores of a request ----------------------------------------------------------------------------- */

/* `text` with the defaults of what it leaves out. */
static void build_text_setting(dgm_json_build *b, const yyjson_val *text)
{
    dgm_json_build_object(b, "text");
    if (dgm_json_non_null(text, "format")) {
        dgm_json_build_value(b, "format", dgm_json_non_null(text, "format"));
    } else {
        dgm_json_build_object(b, "format");
        dgm_json_build_lit(b, "type", "text");
        dgm_json_build_close(b);
    }
    if (dgm_json_non_null(text, "verbosity"))
        dgm_json_build_value(b, "verbosity", dgm_json_non_null(text, "verbosity"));
    else
        dgm_json_build_lit(b, "verbosity", "medium");
    dgm_json_build_close(b);
}

static void build_conversation(dgm_json_build *b, yyjson_val *conversation)
{
    yyjson_val *id =
        yyjson_is_str(conversation) ? conversation : dgm_json_get(conversation, DGM_STR("id"));
    if (!yyjson_is_str(id) || !yyjson_get_len(id))
        return;
    dgm_json_build_object(b, "conversation");
    dgm_json_build_value(b, "id", id);
    dgm_json_build_close(b);
}

yyjson_val *dgm_responses_build_request(dgm_arena *a, const yyjson_val *body,
                                        yyjson_val *const *items, size_t n, dgm_str scope)
{
    dgm_json_build b = dgm_json_build_start(a);
    yyjson_val *key, *value;
    size_t i, max;
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, "input");
    for (i = 0; i < n; i++)
        dgm_responses_build_item(&b, NULL, items[i], scope, "i", i);
    dgm_json_build_close(&b);
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)body, i, max, key, value) {
        dgm_str name = dgm_json_str(key);
        if (yyjson_is_null(value))
            continue;
        if (dgm_str_is(name, "text"))
            build_text_setting(&b, value);
        else if (dgm_str_is(name, "conversation"))
            build_conversation(&b, value);
        else if (dgm_str_is(name, "model") || dgm_str_is(name, "metadata") ||
                 dgm_responses_repeated_row(name) < DGM_RESPONSES_N_REPEATED)
            dgm_json_build_member(&b, name, value);
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

const dgm_extra *dgm_responses_repeated(dgm_arena *a, const yyjson_val *request)
{
    dgm_extra *extra = dgm_new(a, dgm_extra);
    yyjson_val *key, *value, *object = (yyjson_val *)(uintptr_t)request;
    size_t i, n;
    extra->format = DGM_FORMAT_RESPONSES;
    extra->at = dgm_new_n(a, dgm_member, yyjson_obj_size(object) + 1);
    yyjson_obj_foreach (object, i, n, key, value) {
        if (!dgm_str_is(dgm_json_str(key), "input"))
            extra->at[extra->n++] =
                (dgm_member){dgm_arena_dup(a, dgm_json_str(key)), dgm_json_copy(a, value)};
    }
    return extra;
}

/* ---- the form of the answer ------------------------------------------------------------------------------------------ */

/* Flat, or nested as Chat has it. */
static const yyjson_val *function_of(const yyjson_val *tool)
{
    yyjson_val *nested = dgm_json_non_null(tool, "function");
    return nested ? nested : tool;
}

static bool is_among(yyjson_val *list, dgm_str name)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        if (dgm_str_eq(dgm_json_str_member(function_of(e), "name"), name))
            return true;
    }
    return false;
}

/* "required"; {"type":"function","name"}; {"type":"allowed_tools","mode","tools"}. */
static dgm_code responses_request_read_choice(dgm_arena *a, yyjson_val *choice, yyjson_val *tools,
                                              dgm_output_form *form, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "tool_choice");
    yyjson_val *among = NULL, *e;
    size_t i, n;
    bool is_word = yyjson_is_str(choice), has_function = false;
    dgm_str word = is_word ? dgm_json_str(choice) : dgm_json_str_member(choice, "type"), name = {0};
    form->must_call = !is_word || dgm_str_is(word, "required");
    if (is_word && !form->must_call && !dgm_str_is(word, "none") && !dgm_str_is(word, "auto"))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected \"none\", \"auto\" or \"required\"");
    bool is_named = !is_word && !dgm_str_is(word, "allowed_tools");
    if (is_named) {
        name = dgm_json_str_member(choice, "name");
    } else if (!is_word) {
        form->must_call = dgm_str_is(dgm_json_str_member(choice, "mode"), "required");
        among = dgm_json_non_null(choice, "tools");
    }
    if (!form->must_call)
        return DGM_OK;
    form->tools = dgm_new_n(a, dgm_output_tool, yyjson_arr_size(tools) + 1);
    yyjson_arr_foreach (tools, i, n, e) {
        const yyjson_val *function = function_of(e);
        dgm_output_tool tool = {dgm_json_str_member(function, "name"),
                                dgm_json_non_null(function, "parameters")};
        bool is_function = dgm_str_is(dgm_json_str_member(e, "type"), "function");
        has_function |= is_function && (!is_named || dgm_str_eq(tool.name, name));
        if (is_named ? dgm_str_eq(tool.name, name) && !form->n_tools
                     : tool.name.n && (!among || is_among(among, tool.name)))
            form->tools[form->n_tools++] = tool;
    }
    if (!has_function || (is_named && (!name.n || !dgm_str_is(word, "function"))))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "unknown function: `tools` does not have it");
    return DGM_OK;
}

dgm_code dgm_responses_read_output_form(dgm_arena *a, const yyjson_val *request,
                                        dgm_output_form *ret, dgm_err *err)
{
    yyjson_val *choice = dgm_json_non_null(request, "tool_choice");
    yyjson_val *format = dgm_json_non_null(dgm_json_non_null(request, "text"), "format");
    dgm_str type = dgm_json_str_member(format, "type");
    *ret = (dgm_output_form){.choice = "tool_choice"};
    if (dgm_str_is(type, "json_object") || dgm_str_is(type, "json_schema")) {
        yyjson_val *nested = dgm_json_non_null(format, "json_schema"); /* as Chat has it */
        ret->json = true;
        ret->format = format;
        ret->schema = dgm_json_non_null(nested ? nested : format, "schema");
    }
    return choice ? responses_request_read_choice(a, choice, dgm_json_non_null(request, "tools"),
                                                  ret, err)
                  : DGM_OK;
}
