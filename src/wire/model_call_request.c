/* wire/model_call_request.c - see model_call.h: the request. */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/chat/chat_codec.h"
#include "wire/model_call_int.h"
#include "wire/request_members.h"
#include "wire/responses/responses.h"
#include "json/build.h"

const char *const dgm_model_api_names[] = {"chat", "responses", NULL};

const char *dgm_model_api_path(dgm_model_api api)
{
    return api == DGM_MODEL_CHAT ? "/chat/completions" : "/responses";
}

const dgm_codec *dgm_model_codec(dgm_model_api api)
{
    return api == DGM_MODEL_CHAT ? &dgm_codec_openai_chat : &dgm_codec_responses;
}

struct model_writing {
    const dgm_model_request *request;
    dgm_arena *arena;
    dgm_content *contents; /* of the messages */
    bool **is_used;        /* of each message's results */
    dgm_canon_messages out;
    size_t n_made; /* ids */
};

/* ---- messages ------------------------------------------------------------------------------------------------ */

static dgm_canon_message *writing_add(struct model_writing *w, dgm_canon_role role)
{
    w->out.at = dgm_list_grow(w->arena, w->out.at, w->out.n, sizeof *w->out.at);
    dgm_canon_message *m = &w->out.at[w->out.n++];
    m->role = role;
    m->id = dgm_arena_printf(w->arena, "m%zu", ++w->n_made);
    return m;
}

static const dgm_extra *make_extra(struct model_writing *w, const char *key, const dgm_json *value)
{
    dgm_extra *x = dgm_new(w->arena, dgm_extra);
    x->format = dgm_model_codec(w->request->api)->format;
    dgm_request_set(w->arena, x, key, value);
    return x;
}

static const dgm_json *make_text(struct model_writing *w, const char *text)
{
    return dgm_json_make_string(w->arena, dgm_str_from(text));
}

static bool has_index(yyjson_val *entry, size_t index)
{
    yyjson_val *v = dgm_json_get(entry, DGM_STR("index"));
    int64_t n;
    return v && dgm_json_int(v, &n) && n >= 0 && (size_t)n == index;
}

/* The entry of a call in `opaque`, by its id, or, if it was given another one, by its place. NULL: it has none. */
static yyjson_val *find_opaque_call(yyjson_val *opaque, dgm_str id, size_t index)
{
    yyjson_val *calls = dgm_json_get(opaque, DGM_STR("calls")), *e, *at_index = NULL;
    size_t i, n;
    yyjson_arr_foreach (calls, i, n, e) {
        if (dgm_str_eq(dgm_json_str_member(e, "id"), id))
            return e;
        if (has_index(e, index))
            at_index = e;
    }
    return at_index;
}

static bool is_custom_call(yyjson_val *opaque, dgm_str id, size_t index)
{
    return yyjson_is_true(dgm_json_get(find_opaque_call(opaque, id, index), DGM_STR("custom")));
}

static dgm_canon_call make_call(struct model_writing *w, yyjson_val *opaque,
                                const dgm_content_call *from, size_t index)
{
    yyjson_val *entry = find_opaque_call(opaque, from->call_id, index);
    yyjson_val *extra = dgm_json_get(entry, DGM_STR("extra")), *key, *value;
    bool is_chat = w->request->api == DGM_MODEL_CHAT;
    dgm_canon_call call = {.id = from->call_id,
                           .name = from->name,
                           .arguments = dgm_content_arguments(w->arena, from->arguments)};
    dgm_extra *x = dgm_new(w->arena, dgm_extra);
    size_t i, n;
    x->format = dgm_model_codec(w->request->api)->format;
    bool is_custom = is_custom_call(opaque, from->call_id, index);
    dgm_str input = dgm_json_str_member(from->arguments, "input");
    if (is_custom && input.p) /* tools that want an object got it as {"input":...} */
        call.arguments = input;
    if (is_custom)
        dgm_request_set(w->arena, x, "type", make_text(w, is_chat ? "custom" : "custom_tool_call"));
    yyjson_obj_foreach (extra, i, n, key, value)
        dgm_request_set(w->arena, x, dgm_arena_dup(w->arena, dgm_json_str(key)).p, value);
    call.extra = x->n ? x : NULL;
    return call;
}

/* ---- results ------------------------------------------------------------------------------------------------------ */

/* The result of a call of message i: in the messages up to the next one with calls. */
static const dgm_content_result *find_result(struct model_writing *w, size_t i, dgm_str id)
{
    for (size_t k = i; k < w->request->messages.n; k++) {
        const dgm_content *c = &w->contents[k];
        if (k > i && c->calls.n && !c->results.n)
            return NULL;
        for (size_t j = 0; j < c->results.n; j++) {
            if (!w->is_used[k][j] && dgm_str_eq(c->results.at[j].call_id, id)) {
                w->is_used[k][j] = true;
                return &c->results.at[j];
            }
        }
        if (k > i && c->calls.n)
            return NULL;
    }
    return NULL;
}

/* k: of the call in its message i. */
static void add_result(struct model_writing *w, size_t i, yyjson_val *opaque, size_t k)
{
    dgm_str id = w->contents[i].calls.at[k].call_id;
    const dgm_content_result *result = find_result(w, i, id);
    dgm_canon_message *m = writing_add(w, DGM_CANON_TOOL);
    dgm_str text = result ? dgm_content_value_text(w->arena, result->output)
                          : DGM_STR("There is no result: the call was not completed.");
    m->tool_call_id = id;
    m->content =
        (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text.p ? text : DGM_STR("")};
    if (w->request->api == DGM_MODEL_RESPONSES && is_custom_call(opaque, id, k))
        m->extra = make_extra(w, "type", make_text(w, "custom_tool_call_output"));
}

/* ---- turns of the model ------------------------------------------------------------------------------------------- */

/* n calls from `first` on. */
static void writing_add_calls(struct model_writing *w, yyjson_val *opaque, const dgm_content *c,
                              size_t first, size_t n, dgm_canon_message *m)
{
    m->tool_calls.at = dgm_new_n(w->arena, dgm_canon_call, n);
    for (size_t i = first; i < first + n; i++)
        m->tool_calls.at[m->tool_calls.n++] = make_call(w, opaque, &c->calls.at[i], i);
}

static bool has_text(const dgm_content *c)
{
    return c->content.kind == DGM_CANON_CONTENT_PARTS ||
           (c->content.kind == DGM_CANON_CONTENT_TEXT && c->content.text.n);
}

/* chat: one message. */
static void add_chat_turn(struct model_writing *w, yyjson_val *opaque, const dgm_content *c)
{
    yyjson_val *details = dgm_json_get(opaque, DGM_STR("details"));
    dgm_str reasoning = dgm_json_str_member(opaque, "reasoning");
    if (w->request->sends_reasoning && reasoning.n)
        writing_add(w, DGM_CANON_REASONING)->content =
            (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = reasoning};
    dgm_canon_message *m = writing_add(w, DGM_CANON_ASSISTANT);
    m->content = c->content;
    if (c->calls.n)
        writing_add_calls(w, opaque, c, 0, c->calls.n, m);
    if (details)
        m->extra = make_extra(w, "reasoning_details", details);
}

/* The call that an item is the place of; c->calls.n: the item is not a call, or the call is not there. */
static size_t find_call_of_item(const dgm_content *c, yyjson_val *item, const bool *is_written)
{
    dgm_str id = dgm_json_str_member(item, "call");
    size_t at_index = c->calls.n;
    for (size_t k = 0; id.n && k < c->calls.n; k++) {
        if (!is_written[k] && dgm_str_eq(c->calls.at[k].call_id, id))
            return k;
        if (!is_written[k] && has_index(item, k))
            at_index = k;
    }
    return at_index;
}

static void add_item(struct model_writing *w, yyjson_val *opaque, const dgm_content *c,
                     yyjson_val *item, bool *is_written)
{
    bool *has_written_text = &is_written[c->calls.n];
    bool is_text = yyjson_is_true(dgm_json_get(item, DGM_STR("message")));
    size_t k = find_call_of_item(c, item, is_written);
    if (k < c->calls.n) {
        writing_add_calls(w, opaque, c, k, 1, writing_add(w, DGM_CANON_ASSISTANT));
        is_written[k] = true;
    } else if (is_text && !*has_written_text) {
        yyjson_val *phase = dgm_json_get(item, DGM_STR("phase"));
        dgm_canon_message *m = writing_add(w, DGM_CANON_ASSISTANT);
        m->content = c->content;
        m->extra = phase ? make_extra(w, "phase", phase) : NULL;
        *has_written_text = true;
    } else if (!is_text && !dgm_json_get(item, DGM_STR("call"))) {
        dgm_canon_message *m = writing_add(w, DGM_CANON_ACTIVITY);
        m->activity_type = DGM_STR(DGM_RESPONSES_ITEM);
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_OBJECT, .object = item};
    }
}

/* responses: the items in the order in which they came, then whatever has no place among them. */
static void add_items(struct model_writing *w, yyjson_val *opaque, const dgm_content *c)
{
    yyjson_val *items = dgm_json_get(opaque, DGM_STR("items")), *e;
    size_t i, n;
    bool *is_written = dgm_new_n(w->arena, bool, c->calls.n + 1); /* the last one: the text */
    is_written[c->calls.n] = !has_text(c);
    yyjson_arr_foreach (items, i, n, e)
        add_item(w, opaque, c, e, is_written);
    if (!is_written[c->calls.n])
        writing_add(w, DGM_CANON_ASSISTANT)->content = c->content;
    for (size_t k = 0; k < c->calls.n; k++) {
        if (!is_written[k])
            writing_add_calls(w, opaque, c, k, 1, writing_add(w, DGM_CANON_ASSISTANT));
    }
}

/* NULL: there are no values, or they are for another server. */
static yyjson_val *find_opaque(const dgm_model_request *r, const dgm_message *m)
{
    yyjson_val *opaque = dgm_json_get(m->metadata, DGM_STR(DGM_META_MODEL));
    dgm_str api = dgm_json_str_member(opaque, "api"),
            source = dgm_json_str_member(opaque, "source");
    bool is_same = dgm_str_eq(api, dgm_str_from(dgm_model_api_names[r->api])) &&
                   (!source.n || !r->source.n || dgm_str_eq(source, r->source));
    return is_same ? opaque : NULL;
}

static void add_turn(struct model_writing *w, size_t i)
{
    const dgm_message *m = &w->request->messages.at[i];
    const dgm_content *c = &w->contents[i];
    yyjson_val *opaque = find_opaque(w->request, m);
    if (!has_text(c) && !c->calls.n)
        return;
    if (w->request->api == DGM_MODEL_CHAT)
        add_chat_turn(w, opaque, c);
    else
        add_items(w, opaque, c);
    for (size_t k = 0; k < c->calls.n; k++)
        add_result(w, i, opaque, k);
}

static dgm_code write_messages(struct model_writing *w, dgm_err *err)
{
    const dgm_messages *list = &w->request->messages;
    dgm_code rc;
    w->contents = dgm_new_n(w->arena, dgm_content, list->n + 1);
    w->is_used = dgm_new_n(w->arena, bool *, list->n + 1);
    for (size_t i = 0; i < list->n; i++) {
        if ((rc = dgm_content_read(w->arena, &list->at[i], true, DGM_AT_I(NULL, i), &w->contents[i],
                                   err)))
            return rc;
        w->is_used[i] = dgm_new_n(w->arena, bool, w->contents[i].results.n + 1);
    }
    for (size_t i = 0; i < list->n; i++) {
        const dgm_content *c = &w->contents[i];
        if (c->role == DGM_CANON_ASSISTANT)
            add_turn(w, i);
        else if (c->content.kind != DGM_CANON_CONTENT_ABSENT)
            writing_add(w, c->role)->content = c->content;
    }
    return DGM_OK;
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* Names of parameters in both APIs; "a.b" is the member b of a. NULL: the API does not have it. */
static const struct parameter {
    const char *name, *chat, *responses;
} parameters[] = {
    {"temperature", "temperature", "temperature"},
    {"top_p", "top_p", "top_p"},
    {"max_completion_tokens", "max_completion_tokens", "max_output_tokens"},
    {"max_tokens", "max_tokens", "max_output_tokens"},
    {"max_output_tokens", "max_completion_tokens", "max_output_tokens"},
    {"reasoning_effort", "reasoning_effort", "reasoning.effort"},
    {"verbosity", "verbosity", "text.verbosity"},
    {"parallel_tool_calls", "parallel_tool_calls", "parallel_tool_calls"},
    {"seed", "seed", NULL},
    {"stop", "stop", NULL},
    {"frequency_penalty", "frequency_penalty", NULL},
    {"presence_penalty", "presence_penalty", NULL},
    {"logit_bias", "logit_bias", NULL},
};
#define N_PARAMETERS (sizeof parameters / sizeof *parameters)

static const struct parameter *find_parameter(dgm_str name)
{
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        if (dgm_str_eq(name, dgm_str_from(parameters[i].name)))
            return &parameters[i];
    }
    return NULL;
}

const dgm_json *dgm_model_parameters(dgm_arena *a, const yyjson_val *body)
{
    dgm_extra x = {0};
    for (size_t i = 0; i < N_PARAMETERS; i++)
        dgm_request_set(a, &x, parameters[i].name, dgm_json_non_null(body, parameters[i].name));
    /* Responses has these in objects */
    if (!dgm_json_non_null(body, "reasoning_effort"))
        dgm_request_set(a, &x, "reasoning_effort",
                        dgm_json_non_null(dgm_json_get(body, DGM_STR("reasoning")), "effort"));
    if (!dgm_json_non_null(body, "verbosity"))
        dgm_request_set(a, &x, "verbosity",
                        dgm_json_non_null(dgm_json_get(body, DGM_STR("text")), "verbosity"));
    return x.n ? dgm_json_copy(a, dgm_json_object(a, x.at, x.n)) : NULL;
}

/* Sets or replaces a member. */
static void put_member(dgm_arena *a, dgm_extra *x, const char *key, const dgm_json *value)
{
    for (size_t i = 0; i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, dgm_str_from(key))) {
            x->at[i].value = value;
            return;
        }
    }
    dgm_request_set(a, x, key, value);
}

/* "reasoning.effort": the object `reasoning` that it has already, with that member. */
static void put_path(dgm_arena *a, dgm_extra *x, const char *path, const dgm_json *value)
{
    const char *dot = strchr(path, '.');
    dgm_extra inner = {0};
    yyjson_val *old = NULL, *key, *v;
    size_t i, n;
    if (!dot) {
        put_member(a, x, path, value);
        return;
    }
    const char *outer = dgm_arena_dup(a, (dgm_str){path, (size_t)(dot - path)}).p;
    for (i = 0; i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, dgm_str_from(outer)))
            old = (yyjson_val *)(uintptr_t)x->at[i].value;
    }
    yyjson_obj_foreach (old, i, n, key, v)
        dgm_request_set(a, &inner, dgm_arena_dup(a, dgm_json_str(key)).p, v);
    put_member(a, &inner, dot + 1, value);
    put_member(a, x, outer, dgm_json_object(a, inner.at, inner.n));
}

/* The name in Chat of the limit on tokens depends on the server. */
static const char *name_in_api(const dgm_model_request *r, const struct parameter *p)
{
    const char *name = r->api == DGM_MODEL_CHAT ? p->chat : p->responses;
    if (name && strcmp(name, "max_completion_tokens") == 0 &&
        (r->without & DGM_MODEL_MAX_COMPLETION_TOKENS))
        return "max_tokens";
    if (name && strcmp(name, "max_tokens") == 0 && (r->without & DGM_MODEL_MAX_TOKENS))
        return "max_completion_tokens";
    return name;
}

/* Members that this file writes itself. */
static bool is_own_member(dgm_str name)
{
    static const char *const own[] = {"model",        "messages",  "input", "instructions",
                                      "tools",        "stream",    "n",     "previous_response_id",
                                      "conversation", "background"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (dgm_str_eq(name, dgm_str_from(own[i])))
            return true;
    }
    return false;
}

static void add_parameters(const dgm_model_request *r, dgm_arena *a, const dgm_json *from,
                           bool is_callers, dgm_extra *x)
{
    yyjson_val *object = (yyjson_val *)(uintptr_t)from, *key, *value;
    size_t i, n;
    yyjson_obj_foreach (object, i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        const struct parameter *p = find_parameter(name);
        const char *own = p ? name_in_api(r, p) : NULL;
        if (p && own)
            put_path(a, x, own, value);
        else if (!p && !is_callers && !is_own_member(name))
            put_member(a, x, dgm_arena_dup(a, name).p, value);
    }
}

/* A caller's limit on tokens replaces the configured one, by whatever name that has. */
static void drop_token_limits(const dgm_model_request *r, dgm_extra *x)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens", "max_output_tokens"};
    bool has_one = false;
    size_t kept = 0;
    for (size_t i = 0; i < 3; i++)
        has_one |= dgm_json_non_null(r->caller_parameters, names[i]) != NULL;
    for (size_t i = 0; i < x->n; i++) {
        bool is_limit = false;
        for (size_t k = 0; has_one && k < 3; k++)
            is_limit |= dgm_str_eq(x->at[i].key, dgm_str_from(names[k]));
        if (!is_limit)
            x->at[kept++] = x->at[i];
    }
    x->n = kept;
}

/* ---- other members ----------------------------------------------------------------------------------------------------- */

static void add_stream_members(const dgm_model_request *r, dgm_arena *a, dgm_extra *x)
{
    bool is_chat = r->api == DGM_MODEL_CHAT;
    put_member(a, x, "stream",
               dgm_json_parse_trusted(a, r->is_whole ? DGM_STR("false") : DGM_STR("true")));
    if (is_chat && !r->is_whole && !(r->without & DGM_MODEL_STREAM_OPTIONS))
        put_member(a, x, "stream_options",
                   dgm_json_parse_trusted(a, DGM_STR("{\"include_usage\":true}")));
    /* Nothing is stored at the server: then reasoning has to be sent back, encrypted. */
    if (!is_chat && !(r->without & DGM_MODEL_STORE))
        put_member(a, x, "store", dgm_json_parse_trusted(a, DGM_STR("false")));
    if (!is_chat && !(r->without & (DGM_MODEL_INCLUDE | DGM_MODEL_STORE)))
        put_member(a, x, "include",
                   dgm_json_parse_trusted(a, DGM_STR("[\"reasoning.encrypted_content\"]")));
}

static void add_members(const dgm_model_request *r, dgm_arena *a, dgm_extra *x)
{
    yyjson_val *choice = (yyjson_val *)(uintptr_t)r->tool_choice;
    yyjson_val *format = (yyjson_val *)(uintptr_t)r->response_format;
    bool is_chat = r->api == DGM_MODEL_CHAT;
    add_stream_members(r, a, x);
    add_parameters(r, a, r->parameters, false, x);
    drop_token_limits(r, x);
    add_parameters(r, a, r->caller_parameters, true, x);
    if (choice && r->tools.n)
        put_member(a, x, "tool_choice", dgm_request_tool_choice(a, choice, is_chat));
    if (format)
        put_path(a, x, is_chat ? "response_format" : "text.format",
                 dgm_request_response_format(a, format, is_chat));
}

/* ---- the body -------------------------------------------------------------------------------------------------------------- */

dgm_code dgm_model_write_request(const dgm_model_request *r, dgm_buf *out, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_codec *codec = dgm_model_codec(r->api);
    dgm_extra extra = {.format = codec->format};
    dgm_canon_input input = {.tools = r->tools, .extra = &extra};
    dgm_stream_params params = {.model = r->model};
    dgm_writer w = {.out = out, .format = codec->format};
    struct model_writing writing = {.request = r, .arena = a};
    dgm_code rc;
    if (r->instructions.n) {
        dgm_canon_message *m = writing_add(&writing, DGM_CANON_SYSTEM);
        m->id = DGM_STR(DGM_REQUEST_INSTRUCTIONS);
        m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = r->instructions};
    }
    if ((rc = write_messages(&writing, err)))
        return rc;
    input.messages = writing.out;
    add_members(r, a, &extra);
    if ((rc = codec->write_request(&w, &input, &params, err)))
        return rc;
    return out->over ? dgm_fail(err, DGM_TOO_LARGE, NULL, "the request becomes more than %zu bytes",
                                out->max)
                     : DGM_OK;
}
