/* frontend/openai/openai_output.c - see openai_output.h. */
#include "frontend/openai/openai_output.h"
#include "base/limits.h"
#include "base/list.h"
#include "canon/copy.h"
#include "canon/message_content.h"
#include "json/json.h"

/* An event that is held back. Neighbouring deltas of a text are one, in `text`. */
struct openai_held {
    dgm_canon_event event;
    dgm_buf text;
    bool is_dropped; /* an artifact that was replaced later */
};

/* ---- what the request wants ----------------------------------------------------------------------------------------- */

static yyjson_val *output_member(const yyjson_val *v, const char *name)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(name));
    return m && !yyjson_is_null(m) ? m : NULL;
}

/* `required` of a JSON schema. */
static dgm_strs output_required(dgm_arena *a, const yyjson_val *schema)
{
    yyjson_val *list = output_member(schema, "required"), *e;
    dgm_strs names = {dgm_new_n(a, dgm_str, yyjson_arr_size(list) + 1), 0};
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        if (yyjson_is_str(e))
            names.at[names.n++] = dgm_arena_dup(a, dgm_json_str(e));
    }
    return names;
}

static void output_read_format(struct openai_output *o, const yyjson_val *request)
{
    yyjson_val *format = output_member(request, "response_format");
    if (!format)
        format = output_member(output_member(request, "text"), "format");
    dgm_str type = dgm_json_str_member(format, "type");
    yyjson_val *nested = output_member(format, "json_schema");
    o->json = dgm_str_is(type, "json_object") || dgm_str_is(type, "json_schema");
    o->required = output_required(o->arena, output_member(nested ? nested : format, "schema"));
}

/* Chat nests a function below its type; Responses, and `functions` of old, do not. */
static const yyjson_val *output_function(const yyjson_val *tool)
{
    yyjson_val *nested = output_member(tool, "function");
    return nested ? nested : tool;
}

static bool output_is_listed(const yyjson_val *tools, dgm_str name)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)tools, i, n, e) {
        if (dgm_str_eq(dgm_json_str_member(output_function(e), "name"), name))
            return true;
    }
    return false;
}

static void output_add_tools(struct openai_output *o, yyjson_val *tools, const yyjson_val *allowed)
{
    yyjson_val *e;
    size_t i, n;
    o->tools = dgm_new_n(o->arena, struct openai_output_tool, yyjson_arr_size(tools) + 1);
    yyjson_arr_foreach (tools, i, n, e) {
        const yyjson_val *function = output_function(e);
        dgm_str name = dgm_json_str_member(function, "name");
        if (name.n && (!allowed || output_is_listed(allowed, name)))
            o->tools[o->n_tools++] = (struct openai_output_tool){
                dgm_arena_dup(o->arena, name),
                output_required(o->arena, output_member(function, "parameters"))};
    }
}

static void output_name_tool(struct openai_output *o, yyjson_val *tools, dgm_str name)
{
    output_add_tools(o, tools, NULL);
    for (size_t i = 0; i < o->n_tools; i++) {
        if (dgm_str_eq(o->tools[i].name, name)) {
            o->tools[0] = o->tools[i];
            o->n_tools = 1;
            o->is_named = true;
            return;
        }
    }
    o->n_tools = 0;
}

/* "required"; {"type":"function","function":{"name"}}; {"type":"function","name"}; {"name"}; and lists of allowed tools, which
 * Chat nests below `allowed_tools`. */
static void output_read_choice(struct openai_output *o, const yyjson_val *request)
{
    yyjson_val *choice = output_member(request, "tool_choice"),
               *tools = output_member(request, "tools");
    if (!choice)
        choice = output_member(request, "function_call");
    if (!tools)
        tools = output_member(request, "functions");
    if (yyjson_is_str(choice)) {
        if (dgm_str_is(dgm_json_str(choice), "required"))
            output_add_tools(o, tools, NULL);
        return;
    }
    if (dgm_str_is(dgm_json_str_member(choice, "type"), "allowed_tools")) {
        yyjson_val *nested = output_member(choice, "allowed_tools");
        const yyjson_val *list = nested ? nested : choice;
        if (dgm_str_is(dgm_json_str_member(list, "mode"), "required"))
            output_add_tools(o, tools, output_member(list, "tools"));
        return;
    }
    dgm_str name = choice ? dgm_json_str_member(output_function(choice), "name") : (dgm_str){0};
    if (name.n)
        output_name_tool(o, tools, name);
}

void openai_output_init(struct openai_output *o, const yyjson_val *request)
{
    *o = (struct openai_output){.arena = dgm_arena_new()};
    output_read_format(o, request);
    output_read_choice(o, request);
}

void openai_output_done(struct openai_output *o)
{
    for (size_t i = 0; i < o->n_held; i++)
        dgm_buf_done(&o->held[i].text);
    if (o->arena)
        dgm_arena_free(o->arena);
    *o = (struct openai_output){0};
}

/* ---- holding back ---------------------------------------------------------------------------------------------------- */

static bool output_is_text(const dgm_canon_event *e)
{
    return e->kind == DGM_CANON_TEXT_MESSAGE_START || e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT ||
           e->kind == DGM_CANON_TEXT_MESSAGE_END || e->kind == DGM_CANON_MESSAGES_SNAPSHOT;
}

/* An artifact that starts again replaces what was held back of it. */
static void output_drop_replaced(struct openai_output *o, const dgm_canon_event *e)
{
    if (e->artifact.append)
        return;
    for (size_t i = 0; i < o->n_held; i++) {
        const dgm_canon_event *held = &o->held[i].event;
        if (held->kind == DGM_CANON_ARTIFACT &&
            dgm_str_eq(held->artifact.artifact->artifact_id, e->artifact.artifact->artifact_id))
            o->held[i].is_dropped = true;
    }
}

static dgm_code output_hold_delta(struct openai_output *o, struct openai_held *h, dgm_str delta)
{
    o->bytes += delta.n;
    dgm_buf_add_str(&h->text, delta);
    return o->bytes > DGM_MAX_OUTPUT_BYTES ? DGM_TOO_LARGE : DGM_OK;
}

static dgm_code output_hold(struct openai_output *o, const dgm_canon_event *e)
{
    struct openai_held *last = o->n_held ? &o->held[o->n_held - 1] : NULL;
    bool is_delta = e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT;
    if (is_delta && last && last->event.kind == e->kind &&
        dgm_str_eq(last->event.text.message_id, e->text.message_id))
        return output_hold_delta(o, last, e->text.delta);
    if (e->kind == DGM_CANON_ARTIFACT)
        output_drop_replaced(o, e);
    size_t used = dgm_arena_used(o->arena);
    o->held = dgm_list_grow(o->arena, o->held, o->n_held, sizeof *o->held);
    struct openai_held *h = &o->held[o->n_held++];
    *h = (struct openai_held){.event = dgm_canon_copy_event(o->arena, e)};
    if (e->kind == DGM_CANON_ARTIFACT)
        o->bytes += dgm_arena_used(o->arena) - used;
    dgm_buf_init(&h->text, SIZE_MAX);
    o->bytes += sizeof *h;
    if (is_delta)
        return output_hold_delta(o, h, e->text.delta);
    return o->bytes > DGM_MAX_OUTPUT_BYTES ? DGM_TOO_LARGE : DGM_OK;
}

/* Everything that is held back, but for the artifact of that index; SIZE_MAX: all. */
static dgm_code output_release(struct openai_output *o, size_t except, dgm_canon_sink next)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; i < o->n_held && !rc; i++) {
        struct openai_held *h = &o->held[i];
        if (h->event.kind == DGM_CANON_TEXT_MESSAGE_CONTENT)
            h->event.text.delta = dgm_buf_str(&h->text);
        if (!h->is_dropped && i != except)
            rc = dgm_canon_emit(next, &h->event);
    }
    return rc;
}

/* ---- the data that counts ---------------------------------------------------------------------------------------------- */

static bool output_has_all(const yyjson_val *data, const dgm_strs *required)
{
    for (size_t i = 0; i < required->n; i++) {
        if (!dgm_json_get(data, required->at[i]))
            return false;
    }
    return true;
}

/* The last data part that has what is required, or the last of all. ret_at: the index of its artifact. */
static yyjson_val *output_find_data(const struct openai_output *o, const dgm_strs *required,
                                    size_t *ret_at, bool *ret_fits)
{
    yyjson_val *found = NULL;
    *ret_fits = false;
    for (size_t i = 0; i < o->n_held; i++) {
        const struct openai_held *h = &o->held[i];
        if (h->is_dropped || h->event.kind != DGM_CANON_ARTIFACT)
            continue;
        const dgm_parts *parts = &h->event.artifact.artifact->parts;
        for (size_t k = 0; k < parts->n; k++) {
            yyjson_val *data = (yyjson_val *)(uintptr_t)parts->at[k].data;
            bool fits = data && output_has_all(data, required);
            if (!data || (*ret_fits && !fits))
                continue;
            found = data;
            *ret_at = i;
            *ret_fits = fits;
        }
    }
    return found;
}

/* The tool that data can be the arguments of; NULL: there is none. One that is named, or the only one, is called whatever the
 * data is: its caller checks the arguments. */
static const struct openai_output_tool *output_find_call(const struct openai_output *o,
                                                         yyjson_val **ret_data, size_t *ret_at)
{
    bool fits;
    for (size_t i = 0; i < o->n_tools; i++) {
        *ret_data = output_find_data(o, &o->tools[i].required, ret_at, &fits);
        if (yyjson_is_obj(*ret_data) && (fits || o->n_tools == 1))
            return &o->tools[i];
    }
    return NULL;
}

/* ---- ends --------------------------------------------------------------------------------------------------------------- */

static dgm_code output_emit_json(struct openai_output *o, const yyjson_val *data,
                                 dgm_canon_sink next)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    dgm_code rc;
    e.text.message_id = DGM_STR(DGM_NAME_JSON);
    e.text.role = DGM_CANON_ASSISTANT;
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.delta = dgm_content_spaced_json(o->arena, data);
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TEXT_MESSAGE_END;
    e.text.delta = (dgm_str){0};
    return dgm_canon_emit(next, &e);
}

/* "chatcmpl-x", "resp_x" -> "call_x": the same every time that the turn is read. */
static dgm_str output_call_id(struct openai_output *o, dgm_str run_id)
{
    size_t at = run_id.n;
    while (at && run_id.p[at - 1] != '-' && run_id.p[at - 1] != '_')
        at--;
    return dgm_arena_printf(o->arena, "call_%.*s", (int)(run_id.n - at), run_id.p + at);
}

static dgm_code output_emit_call(struct openai_output *o, dgm_str id, dgm_str name,
                                 const yyjson_val *data, dgm_canon_sink next)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    dgm_code rc;
    e.call.tool_call_id = id;
    e.call.name = name;
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TOOL_CALL_ARGS;
    e.call.delta = dgm_content_spaced_json(o->arena, data);
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TOOL_CALL_END;
    e.call.delta = (dgm_str){0};
    return dgm_canon_emit(next, &e);
}

/* An answer: no question, no calls of the caller's tools, no error. */
static bool output_is_answer(const dgm_canon_event *e)
{
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    return e->kind == DGM_CANON_RUN_FINISHED && o->kind != DGM_CANON_INTERRUPT &&
           o->kind != DGM_CANON_CANCELLED && !o->pending_tool_call_ids.n;
}

/* ret_call: the id of the call that the data became. */
static dgm_code output_end(struct openai_output *o, const dgm_canon_event *end, dgm_str *ret_call,
                           dgm_canon_sink next)
{
    const struct openai_output_tool *tool;
    yyjson_val *data = NULL;
    size_t at = SIZE_MAX;
    bool fits;
    if (!output_is_answer(end))
        return output_release(o, SIZE_MAX, next);
    if ((tool = output_find_call(o, &data, &at))) {
        dgm_code rc = output_release(o, at, next);
        *ret_call = output_call_id(o, end->run_finished.run_id);
        return rc ? rc : output_emit_call(o, *ret_call, tool->name, data, next);
    }
    if (o->json && (data = output_find_data(o, &o->required, &at, &fits)))
        return output_emit_json(o, data, next);
    return output_release(o, SIZE_MAX, next);
}

static bool output_has_usage(const dgm_canon_usages *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].input_tokens.set || list->at[i].output_tokens.set ||
            list->at[i].total_tokens.set)
            return true;
    }
    return false;
}

/* Clients of OpenAI read the counts without a check. call_id: of a call that the data became; empty: there is none. */
static dgm_code output_emit_end(const dgm_canon_event *end, dgm_str call_id, dgm_canon_sink next)
{
    dgm_canon_usage zeros = {
        .input_tokens = {true, 0}, .output_tokens = {true, 0}, .total_tokens = {true, 0}};
    dgm_canon_event e = *end;
    dgm_canon_usages *usage =
        e.kind == DGM_CANON_RUN_ERROR ? &e.run_error.usage : &e.run_finished.usage;
    if (!output_has_usage(usage))
        *usage = (dgm_canon_usages){&zeros, 1};
    if (call_id.n)
        e.run_finished.outcome = (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS,
                                                     .pending_tool_call_ids = {&call_id, 1},
                                                     .awaits_no_results = true};
    return dgm_canon_emit(next, &e);
}

dgm_code openai_output_event(struct openai_output *o, const dgm_canon_event *event,
                             dgm_canon_sink next)
{
    bool is_held = event->kind == DGM_CANON_ARTIFACT ? o->json || o->n_tools
                                                     : output_is_text(event) && o->json;
    if (is_held)
        return output_hold(o, event);
    if (!dgm_canon_is_terminal(event->kind))
        return dgm_canon_emit(next, event);
    dgm_str call_id = {0};
    dgm_code rc = output_end(o, event, &call_id, next);
    return rc ? rc : output_emit_end(event, call_id, next);
}

static dgm_code output_pass(void *arg, const dgm_canon_event *event)
{
    const struct openai_output_chain *chain = arg;
    return openai_output_event(chain->output, event, chain->next);
}

dgm_canon_sink openai_output_into(struct openai_output_chain *chain)
{
    return (dgm_canon_sink){output_pass, chain};
}
