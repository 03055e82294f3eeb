/* wire/output_form.c - see output_form.h. */
#include "wire/output_form.h"
#include "base/limits.h"
#include "base/list.h"
#include "canon/copy.h"
#include "canon/message_content.h"
#include "json/json.h"

/* An event that is held back. Neighbouring deltas of a text are one, in `text`. */
struct dgm_output_held {
    dgm_canon_event event;
    dgm_buf text;
    bool is_dropped; /* an artifact that was replaced later */
};

struct dgm_output_callable {
    dgm_str name;
    dgm_strs required; /* members that its parameters require */
};

/* `required` of a JSON schema. */
static dgm_strs output_required(dgm_arena *a, const yyjson_val *schema)
{
    yyjson_val *list = dgm_json_get(schema, DGM_STR("required")), *e;
    dgm_strs names = {dgm_new_n(a, dgm_str, yyjson_arr_size(list) + 1), 0};
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        if (yyjson_is_str(e))
            names.at[names.n++] = dgm_arena_dup(a, dgm_json_str(e));
    }
    return names;
}

void dgm_output_init(dgm_output *o, const dgm_output_form *form)
{
    dgm_arena *a = dgm_arena_new();
    *o = (dgm_output){.arena = a, .json = form->json};
    if (form->schema)
        o->required = output_required(a, form->schema);
    if (form->n_tools)
        o->tools = dgm_new_n(a, struct dgm_output_callable, form->n_tools);
    for (; o->n_tools < form->n_tools; o->n_tools++) {
        const dgm_output_tool *t = &form->tools[o->n_tools];
        o->tools[o->n_tools] = (struct dgm_output_callable){dgm_arena_dup(a, t->name),
                                                            output_required(a, t->parameters)};
    }
}

void dgm_output_done(dgm_output *o)
{
    for (size_t i = 0; i < o->n_held; i++)
        dgm_buf_done(&o->held[i].text);
    if (o->arena)
        dgm_arena_free(o->arena);
    *o = (dgm_output){0};
}

/* ---- holding back ---------------------------------------------------------------------------------------------------- */

/* An artifact that starts again replaces what was held back of it. */
static void output_drop_replaced(dgm_output *o, const dgm_canon_event *e)
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

static dgm_code output_hold_delta(dgm_output *o, struct dgm_output_held *h, dgm_str delta)
{
    o->bytes += delta.n;
    dgm_buf_add_str(&h->text, delta);
    return o->bytes > DGM_MAX_OUTPUT_BYTES ? DGM_TOO_LARGE : DGM_OK;
}

static dgm_code output_hold(dgm_output *o, const dgm_canon_event *e)
{
    struct dgm_output_held *last = o->n_held ? &o->held[o->n_held - 1] : NULL;
    bool is_delta = e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT;
    if (is_delta && last && last->event.kind == e->kind &&
        dgm_str_eq(last->event.text.message_id, e->text.message_id))
        return output_hold_delta(o, last, e->text.delta);
    if (e->kind == DGM_CANON_ARTIFACT)
        output_drop_replaced(o, e);
    size_t used = dgm_arena_used(o->arena);
    o->held = dgm_list_grow(o->arena, o->held, o->n_held, sizeof *o->held);
    struct dgm_output_held *h = &o->held[o->n_held++];
    *h = (struct dgm_output_held){.event = dgm_canon_copy_event(o->arena, e)};
    if (e->kind == DGM_CANON_ARTIFACT)
        o->bytes += dgm_arena_used(o->arena) - used;
    dgm_buf_init(&h->text, SIZE_MAX);
    o->bytes += sizeof *h;
    if (is_delta)
        return output_hold_delta(o, h, e->text.delta);
    return o->bytes > DGM_MAX_OUTPUT_BYTES ? DGM_TOO_LARGE : DGM_OK;
}

/* Everything that is held back, but for the artifact of that index; SIZE_MAX: all. */
static dgm_code output_release(dgm_output *o, size_t except, dgm_canon_sink next)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; i < o->n_held && !rc; i++) {
        struct dgm_output_held *h = &o->held[i];
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
static yyjson_val *output_find_data(const dgm_output *o, const dgm_strs *required, size_t *ret_at,
                                    bool *ret_fits)
{
    yyjson_val *found = NULL;
    *ret_fits = false;
    for (size_t i = 0; i < o->n_held; i++) {
        const struct dgm_output_held *h = &o->held[i];
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

/* Finds the tool whose arguments the agent's data can be; NULL: no tool fits. A tool that tool_choice names, and the only tool of
 * a request, are called with any data: the client checks the arguments. */
static const struct dgm_output_callable *output_find_call(const dgm_output *o,
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

/* Not held back: the answer itself. */
static dgm_code output_emit_text(dgm_str message_id, dgm_str text, dgm_canon_sink next)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    dgm_code rc;
    e.text.message_id = message_id;
    e.text.role = DGM_CANON_ASSISTANT;
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.delta = text;
    if ((rc = dgm_canon_emit(next, &e)))
        return rc;
    e.kind = DGM_CANON_TEXT_MESSAGE_END;
    e.text.delta = (dgm_str){0};
    return dgm_canon_emit(next, &e);
}

/* "chatcmpl-x", "resp_x" -> "call_x": the same every time that the turn is read. */
static dgm_str output_call_id(dgm_output *o, dgm_str run_id)
{
    size_t at = run_id.n;
    while (at && run_id.p[at - 1] != '-' && run_id.p[at - 1] != '_')
        at--;
    return dgm_arena_printf(o->arena, "call_%.*s", (int)(run_id.n - at), run_id.p + at);
}

static dgm_code output_emit_call(dgm_output *o, dgm_str id, dgm_str name, const yyjson_val *data,
                                 dgm_canon_sink next)
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

/* ret_call: the id of the call that the data became. */
static dgm_code output_end(dgm_output *o, const dgm_canon_event *end, dgm_str *ret_call,
                           dgm_canon_sink next)
{
    const struct dgm_output_callable *tool;
    yyjson_val *data = NULL;
    size_t at = SIZE_MAX;
    bool fits;
    const dgm_canon_outcome *outcome = &end->run_finished.outcome;
    bool is_answer = end->kind == DGM_CANON_RUN_FINISHED && outcome->kind != DGM_CANON_INTERRUPT &&
                     outcome->kind != DGM_CANON_CANCELLED && !outcome->pending_tool_call_ids.n;
    if (!is_answer) /* but a question, a call of the caller's tools or an error */
        return output_release(o, SIZE_MAX, next);
    if ((tool = output_find_call(o, &data, &at))) {
        dgm_code rc = output_release(o, at, next);
        *ret_call = output_call_id(o, end->run_finished.run_id);
        return rc ? rc : output_emit_call(o, *ret_call, tool->name, data, next);
    }
    if (o->json && (data = output_find_data(o, &o->required, &at, &fits)))
        return output_emit_text(DGM_STR(DGM_NAME_JSON), dgm_content_spaced_json(o->arena, data),
                                next);
    return output_release(o, SIZE_MAX, next);
}

dgm_code dgm_output_event(dgm_output *o, const dgm_canon_event *event, dgm_canon_sink next)
{
    bool is_text = event->kind == DGM_CANON_TEXT_MESSAGE_START ||
                   event->kind == DGM_CANON_TEXT_MESSAGE_CONTENT ||
                   event->kind == DGM_CANON_TEXT_MESSAGE_END ||
                   event->kind == DGM_CANON_MESSAGES_SNAPSHOT;
    bool is_held =
        (o->json && is_text) || ((o->json || o->n_tools) && event->kind == DGM_CANON_ARTIFACT);
    dgm_str call_id = {0}; /* of the call that was made from the data; empty: no call was made */
    dgm_code rc;
    if (is_held)
        return output_hold(o, event);
    if (!dgm_canon_is_terminal(event->kind))
        return dgm_canon_emit(next, event);
    if ((o->json || o->n_tools) && (rc = output_end(o, event, &call_id, next)))
        return rc;
    /* clients of OpenAI read the counts without a check */
    dgm_canon_usage zeros = {
        .input_tokens = {true, 0}, .output_tokens = {true, 0}, .total_tokens = {true, 0}};
    dgm_canon_event end = *event;
    dgm_canon_usages *usage =
        end.kind == DGM_CANON_RUN_ERROR ? &end.run_error.usage : &end.run_finished.usage;
    bool has_usage = false;
    for (size_t i = 0; i < usage->n; i++)
        has_usage |= usage->at[i].input_tokens.set || usage->at[i].output_tokens.set ||
                     usage->at[i].total_tokens.set;
    if (!has_usage)
        *usage = (dgm_canon_usages){&zeros, 1};
    if (call_id.n)
        end.run_finished.outcome = (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS,
                                                       .pending_tool_call_ids = {&call_id, 1},
                                                       .awaits_no_results = true};
    return dgm_canon_emit(next, &end);
}

struct output_chain {
    dgm_output *output;
    dgm_canon_sink next;
};

static dgm_code output_pass(void *arg, const dgm_canon_event *event)
{
    const struct output_chain *chain = arg;
    return dgm_output_event(chain->output, event, chain->next);
}

dgm_code dgm_output_text(dgm_output *o, dgm_str message_id, dgm_str text, dgm_canon_sink next)
{
    struct output_chain chain = {o, next};
    return output_emit_text(message_id, text, (dgm_canon_sink){output_pass, &chain});
}
