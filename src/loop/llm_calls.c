/*
 * loop/llm_calls.c - the tool calls of a model turn: checked, started, finished.
 *
 *   checked ─┬─ wrong ───────────────────────────────► DONE: the model reads why
 *            ├─ READY ─► STARTED ─ COMMITTED ─► RUNNING ─► DONE
 *            └─ APPROVAL, QUESTION, AUTH, CALLER: asked when nothing runs (llm_ask.c)
 *
 * A tool starts only after its start is durable, so that a process that continues this one never starts it a second time. If
 * a result is missing then, it is unknown whether the tool did its work: only idempotent tools are repeated.
 */
#include "loop/llm_loop_int.h"

#define UNKNOWN_OUTCOME                                                                            \
    "The outcome of this call is unknown: the run was interrupted while the tool worked. The "     \
    "call "                                                                                        \
    "was not repeated. Check its effects before you call the tool again."

#define RESULT_KEY "key" /* in the metadata of a part with a result */

/* ---- results ----------------------------------------------------------------------------------------------------- */

void dgm_llm_set_output(dgm_llm_loop *l, struct llm_call *c, bool is_error, dgm_str text)
{
    c->state = LLM_CALL_DONE;
    c->is_error = is_error;
    c->output = dgm_json_make_string(l->turn,
                                     dgm_llm_cut(l->scratch, text, l->options.limits.result_bytes));
}

static void llm_set_value(dgm_llm_loop *l, struct llm_call *c, const dgm_json *value)
{
    dgm_str text = dgm_llm_value_text(l->scratch, value);
    if (text.n > l->options.limits.result_bytes || dgm_json_deeper_than(value, 64))
        dgm_llm_set_output(l, c, c->is_error, text);
    else
        c->output = dgm_json_copy(l->turn, value);
}

/* Texts are joined, files stay parts. */
static void llm_set_parts(dgm_llm_loop *l, struct llm_call *c, dgm_parts parts)
{
    dgm_message all = {.parts = parts}, files = {0};
    files.parts.at = dgm_new_n(l->scratch, dgm_part, parts.n);
    size_t bytes = 0;
    for (size_t i = 0; i < parts.n; i++) {
        bool is_file = parts.at[i].kind == DGM_PART_RAW || parts.at[i].kind == DGM_PART_URL;
        if (is_file && (bytes += parts.at[i].content.n) <= l->options.limits.output_bytes)
            files.parts.at[files.parts.n++] = parts.at[i];
    }
    c->files = dgm_message_copy(l->turn, &files).parts;
    dgm_str text = dgm_llm_text_of(l->scratch, &all);
    if (!text.n)
        text = dgm_arena_printf(l->scratch, "The tool returned %zu file(s).", c->files.n);
    dgm_llm_set_output(l, c, c->is_error, text);
}

static void llm_set_result(dgm_llm_loop *l, struct llm_call *c, const dgm_llm_result *r)
{
    c->state = LLM_CALL_DONE;
    c->is_error = r->is_error;
    if (r->parts.n)
        llm_set_parts(l, c, r->parts);
    if (r->text.p)
        dgm_llm_set_output(l, c, r->is_error, r->text);
    else if (r->value)
        llm_set_value(l, c, r->value);
    else if (!r->parts.n)
        dgm_llm_set_output(l, c, r->is_error, DGM_STR(""));
}

/* {"tool_results":[{call_id, name, output}]} */
static dgm_part llm_result_part(dgm_llm_loop *l, const struct llm_call *c)
{
    dgm_json_build b = dgm_json_build_start(l->scratch);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_RESULTS);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "call_id", c->id);
    dgm_json_build_str(&b, "name", c->name);
    dgm_json_build_value(&b, "output", c->output);
    if (c->is_error)
        dgm_json_build_bool(&b, "is_error", true);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_build_end(&b)};
}

static int llm_index_of(const dgm_llm_loop *l, const struct llm_call *c)
{
    return (int)(c - l->calls);
}

dgm_str dgm_llm_call_key(dgm_llm_loop *l, const struct llm_call *c)
{
    return dgm_llm_id(l, "t", l->iteration, llm_index_of(l, c));
}

/* A result of a tool that ran has the key of the call. A process that continues this one finds the result by it, and does not
 * mistake the error of a call for it that was in a model turn which was never saved. */
static void llm_show_result(dgm_llm_loop *l, const struct llm_call *c)
{
    dgm_part part = llm_result_part(l, c);
    dgm_json *key = dgm_json_make_string(l->scratch, dgm_llm_call_key(l, c));
    if (c->has_start)
        part.metadata = dgm_json_object(l->scratch, &(dgm_member){DGM_STR(RESULT_KEY), key}, 1);
    dgm_message m = {.message_id = dgm_llm_id(l, "r", l->iteration, llm_index_of(l, c)),
                     .role = DGM_ROLE_AGENT,
                     .parts = {&part, 1}};
    if (c->is_shown)
        dgm_llm_emit_history(l, &m);
}

/* The status-update of a call of another agent, at its start and at its end. */
static void llm_show_agent(dgm_llm_loop *l, const struct llm_call *c, dgm_str text, dgm_str task)
{
    dgm_str name = c->agent_name.n ? c->agent_name : c->name;
    dgm_json_build b = dgm_json_build_start(l->scratch);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "status-indicator");
    dgm_json_build_str(&b, "text", dgm_arena_join(l->scratch, text, name));
    dgm_json_build_lit(&b, "displayAs", "loading");
    dgm_json_build_object(&b, "agent");
    dgm_json_build_str(&b, "name", name);
    dgm_json_build_str_if(&b, "url", c->agent_url.n ? c->agent_url : (dgm_str){0});
    dgm_json_build_str_if(&b, "taskId", task.n ? task : (dgm_str){0});
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    dgm_part part = {.kind = DGM_PART_DATA, .data = dgm_json_build_end(&b)};
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_llm_emit_status(l, DGM_STATE_WORKING, &m, NULL);
}

static void llm_emit_complete(dgm_llm_loop *l, const struct llm_call *c)
{
    dgm_internal it = {.kind = DGM_INTERNAL_TOOL_COMPLETE,
                       .tool_call_id = c->id,
                       .success = c->is_error ? DGM_FALSE : DGM_TRUE};
    if (c->is_error)
        it.error = dgm_llm_value_text(l->scratch, c->output);
    else
        it.result = c->output;
    if (c->has_start)
        dgm_llm_emit_internal(l, &it);
}

void dgm_llm_finish_call(dgm_llm_loop *l, struct llm_call *c, const dgm_llm_result *r)
{
    llm_set_result(l, c, r);
    llm_emit_complete(l, c);
    if (c->kind == DGM_LLM_TOOL_AGENT && c->has_start)
        llm_show_agent(l, c, DGM_STR("Called agent "), r->agent_task_id);
    if (c->files.n && c->has_start)
        dgm_llm_emit_files(l, dgm_llm_id(l, "files", l->iteration, llm_index_of(l, c)), c->name,
                           c->files);
    llm_show_result(l, c);
}

static void llm_finish_with_error(dgm_llm_loop *l, struct llm_call *c, dgm_str text)
{
    dgm_llm_finish_call(l, c, &(dgm_llm_result){.is_error = true, .text = text});
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static const dgm_llm_tool *llm_find_tool(const dgm_llm_loop *l, dgm_str name)
{
    for (size_t i = 0; i < l->options.tools.n; i++) {
        if (dgm_str_eq(l->options.tools.at[i].name, name))
            return &l->options.tools.at[i];
    }
    return NULL;
}

static bool llm_has_call(const dgm_message *m, dgm_str id)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        yyjson_val *call;
        size_t k, n;
        if (m->parts.at[i].kind != DGM_PART_DATA)
            continue;
        yyjson_arr_foreach (dgm_json_get(m->parts.at[i].data, DGM_STR(DGM_DATA_CALLS)), k, n,
                            call) {
            if (dgm_str_eq(dgm_json_str_member(call, "call_id"), id))
                return true;
        }
    }
    return false;
}

static bool llm_id_is_used(dgm_llm_loop *l, dgm_str id, size_t n_calls)
{
    for (size_t i = 0; i < n_calls; i++) {
        if (dgm_str_eq(l->calls[i].id, id))
            return true;
    }
    for (size_t i = 0; i < l->messages.n; i++) {
        if (llm_has_call(&l->messages.at[i], id))
            return true;
    }
    return false;
}

bool dgm_llm_arguments_fit(dgm_llm_loop *l, dgm_str tool, const dgm_json *arguments,
                           dgm_str *ret_why)
{
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)arguments)) {
        *ret_why = DGM_STR("The arguments must be a JSON object.");
        return false;
    }
    return !l->options.check ||
           l->options.check(l->options.arg, tool, arguments, l->scratch, ret_why);
}

static bool llm_read_arguments(dgm_llm_loop *l, struct llm_call *c, const dgm_llm_call *raw,
                               bool is_cut, dgm_str *ret_why)
{
    dgm_str text = raw->arguments.n ? raw->arguments : DGM_STR("{}");
    yyjson_val *v = NULL;
    dgm_err err = {0};
    if (raw->is_custom) {
        dgm_json_build b = dgm_json_build_start(l->turn);
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "input", raw->arguments);
        dgm_json_build_close(&b);
        c->arguments = dgm_json_build_end(&b);
        return true;
    }
    c->arguments = dgm_json_make_string(l->turn, text);
    *ret_why = DGM_STR("The arguments are too long.");
    if (!raw->arguments.p)
        return false;
    if (dgm_json_read(l->turn, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, &err)) {
        *ret_why = is_cut ? DGM_STR("The arguments were cut off at the limit of output tokens. The "
                                    "tool was not called. Try again with shorter arguments.")
                          : dgm_arena_printf(l->scratch,
                                             "The arguments are not valid JSON: %s. The tool was "
                                             "not called.",
                                             err.msg);
        return false;
    }
    if (yyjson_is_obj(v))
        c->arguments = v;
    return dgm_llm_arguments_fit(l, c->name, v, ret_why);
}

static dgm_str llm_unknown_tool(dgm_llm_loop *l, dgm_str name)
{
    dgm_str text = dgm_arena_join(l->scratch, DGM_STR("There is no tool with the name "),
                                  dgm_llm_cut(l->scratch, name, DGM_MAX_QUOTED_BYTES));
    for (size_t i = 0; i < l->options.tools.n && i < 20; i++) {
        text = dgm_arena_join(l->scratch, text, i ? DGM_STR(", ") : DGM_STR(". Tools: "));
        text = dgm_arena_join(l->scratch, text, l->options.tools.at[i].name);
    }
    return text;
}

static enum llm_call_state llm_first_state(const dgm_llm_tool *tool)
{
    switch (tool->kind) {
    case DGM_LLM_TOOL_ASK_USER: return LLM_CALL_QUESTION;
    case DGM_LLM_TOOL_REQUEST_AUTH: return LLM_CALL_AUTH;
    case DGM_LLM_TOOL_CALLER: return LLM_CALL_CALLER;
    case DGM_LLM_TOOL_SERVER:
    case DGM_LLM_TOOL_AGENT: break;
    }
    return tool->needs_approval ? LLM_CALL_APPROVAL : LLM_CALL_READY;
}

static void llm_check_call(dgm_llm_loop *l, size_t i, bool is_cut)
{
    const dgm_llm_call *raw = &l->raw[i];
    struct llm_call *c = &l->calls[i];
    const dgm_llm_tool *tool = llm_find_tool(l, raw->name);
    bool is_used = !raw->id.n || llm_id_is_used(l, raw->id, i);
    dgm_str why = {0};
    *c = (struct llm_call){.name = raw->name, .is_shown = true};
    c->id = is_used ? dgm_arena_printf(l->turn, "call_%u_%zu", l->iteration, i) : raw->id;
    if (tool) {
        c->kind = tool->kind;
        c->is_idempotent = tool->is_idempotent;
        c->agent_name = dgm_arena_dup(l->turn, tool->agent_name);
        c->agent_url = dgm_arena_dup(l->turn, tool->agent_url);
    }
    bool fits = llm_read_arguments(l, c, raw, is_cut, &why);
    if (!tool) {
        dgm_llm_set_output(l, c, true, llm_unknown_tool(l, raw->name));
    } else if (i >= l->options.limits.calls_per_iteration) {
        dgm_llm_set_output(l, c, true, DGM_STR("Too many calls at once: this one was not made."));
    } else if (!fits) {
        dgm_llm_set_output(l, c, true, why);
    } else {
        c->state = llm_first_state(tool);
        c->is_shown = c->state == LLM_CALL_READY || c->state == LLM_CALL_APPROVAL;
        if (c->state == LLM_CALL_QUESTION || c->state == LLM_CALL_AUTH)
            dgm_llm_read_question(l, c);
    }
}

static bool llm_reject_forbidden(dgm_llm_loop *l)
{
    for (size_t i = 0; i < l->n_raw; i++) {
        const dgm_llm_tool *tool = llm_find_tool(l, l->raw[i].name);
        if (!tool || !tool->is_forbidden)
            continue;
        dgm_llm_terminate(l, DGM_STATE_REJECTED,
                          dgm_arena_printf(l->scratch,
                                           "The model called the %s \"%.*s\", which is forbidden.",
                                           tool->kind == DGM_LLM_TOOL_AGENT ? "agent" : "tool",
                                           DGM_P(tool->name)));
        return true;
    }
    return false;
}

/* ---- the model's turn as a message ------------------------------------------------------------------------------- */

void dgm_llm_build_call(dgm_json_build *b, const struct llm_call *c)
{
    dgm_json_build_object(b, NULL);
    dgm_json_build_str(b, "call_id", c->id);
    dgm_json_build_str(b, "name", c->name);
    dgm_json_build_value(b, "arguments", c->arguments);
    dgm_json_build_close(b);
}

static dgm_part llm_calls_part(dgm_llm_loop *l, bool only_shown, bool *ret_any)
{
    dgm_json_build b = dgm_json_build_start(l->scratch);
    *ret_any = false;
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_CALLS);
    for (size_t i = 0; i < l->n_calls; i++) {
        const struct llm_call *c = &l->calls[i];
        if (only_shown && !c->is_shown)
            continue;
        dgm_llm_build_call(&b, c);
        *ret_any = true;
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_build_end(&b)};
}

static dgm_message llm_turn_message(dgm_llm_loop *l, bool only_shown)
{
    dgm_part *parts = dgm_new_n(l->scratch, dgm_part, 2);
    dgm_message m = {.message_id = dgm_llm_id(l, "m", l->iteration, -1),
                     .role = DGM_ROLE_AGENT,
                     .parts = {parts, 0}};
    bool any;
    if (l->text.n)
        parts[m.parts.n++] = dgm_llm_text_part(dgm_buf_str(&l->text));
    parts[m.parts.n] = llm_calls_part(l, only_shown, &any);
    m.parts.n += any;
    return m;
}

/* The metadata DGM_META_MODEL: only for the model, never in an event. */
static const dgm_json *llm_opaque(dgm_llm_loop *l, dgm_str opaque)
{
    yyjson_val *v = NULL;
    if (!opaque.n || dgm_json_read(l->scratch, dgm_arena_dup(l->scratch, opaque),
                                   DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL))
        return NULL;
    return dgm_json_object(l->scratch, &(dgm_member){DGM_STR(DGM_META_MODEL), v}, 1);
}

void dgm_llm_check_calls(dgm_llm_loop *l, const dgm_llm_end *end)
{
    if (llm_reject_forbidden(l))
        return;
    l->calls = dgm_new_n(l->turn, struct llm_call, l->n_raw);
    l->n_calls = l->n_raw;
    for (size_t i = 0; i < l->n_raw; i++)
        llm_check_call(l, i, end->finish == DGM_LLM_LENGTH);
    dgm_message turn = llm_turn_message(l, true);
    if (turn.parts.n)
        dgm_llm_emit_history(l, &turn);
    for (size_t i = 0; i < l->n_calls; i++) {
        if (l->calls[i].state == LLM_CALL_DONE)
            llm_show_result(l, &l->calls[i]);
    }
    turn = llm_turn_message(l, false);
    turn.metadata = llm_opaque(l, end->opaque);
    if (turn.parts.n)
        dgm_llm_add_message(l, &turn);
    dgm_llm_pump(l);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static void llm_start_call(dgm_llm_loop *l, struct llm_call *c)
{
    dgm_internal it = {.kind = DGM_INTERNAL_TOOL_START,
                       .tool_name = c->name,
                       .tool_call_id = c->id,
                       .arguments = c->arguments};
    c->state = LLM_CALL_STARTED;
    if (c->has_start)
        return;
    c->has_start = true;
    if (c->kind == DGM_LLM_TOOL_AGENT)
        llm_show_agent(l, c, DGM_STR("Calling agent "), (dgm_str){0});
    dgm_llm_emit_internal(l, &it);
}

static void llm_run_call(dgm_llm_loop *l, struct llm_call *c)
{
    dgm_llm_action action = {.kind = c->has_answer ? DGM_LLM_ANSWER_TOOL : DGM_LLM_RUN_TOOL};
    dgm_str key = dgm_llm_call_key(l, c);
    if (c->has_answer)
        action.answer = (dgm_llm_answer){.call_id = c->id,
                                         .name = c->name,
                                         .key = key,
                                         .arguments = c->arguments,
                                         .kind = c->answer,
                                         .text = c->answer_text,
                                         .value = c->answer_value,
                                         .state = c->asked_state};
    else
        action.tool = (dgm_llm_tool_run){.call_id = c->id,
                                         .name = c->name,
                                         .key = key,
                                         .arguments = c->arguments,
                                         .kind = c->kind,
                                         .is_repeated = c->repeats > 0};
    c->state = LLM_CALL_RUNNING;
    c->has_answer = false;
    dgm_llm_act(l, action);
}

void dgm_llm_on_committed(dgm_llm_loop *l)
{
    if (!l->is_committing)
        return;
    l->is_committing = false;
    for (size_t i = 0; i < l->n_calls; i++) {
        if (l->calls[i].state == LLM_CALL_STARTED)
            llm_run_call(l, &l->calls[i]);
    }
    dgm_llm_pump(l);
}

/* ---- the turn ---------------------------------------------------------------------------------------------------- */

/* The model's own turn has the arguments that the model wrote. */
static dgm_part llm_change_part(dgm_llm_loop *l, const struct llm_call *c)
{
    dgm_arena *a = l->scratch;
    dgm_str text = dgm_arena_join(a, DGM_STR("The user changed the arguments of the call "), c->id);
    text = dgm_arena_join(a, text, DGM_STR(" to "));
    return dgm_llm_text_part(dgm_arena_join(a, text, dgm_json_text_in(a, c->arguments)));
}

static void llm_finish_turn(dgm_llm_loop *l)
{
    size_t n = l->n_calls;
    for (size_t i = 0; i < l->n_calls; i++)
        n += l->calls[i].files.n + l->calls[i].is_changed;
    dgm_message m = {.message_id = dgm_llm_id(l, "results", l->iteration, -1),
                     .role = DGM_ROLE_USER,
                     .parts = {dgm_new_n(l->scratch, dgm_part, n), 0}};
    for (size_t i = 0; i < l->n_calls; i++)
        m.parts.at[m.parts.n++] = llm_result_part(l, &l->calls[i]);
    for (size_t i = 0; i < l->n_calls; i++) {
        if (l->calls[i].is_changed)
            m.parts.at[m.parts.n++] = llm_change_part(l, &l->calls[i]);
        for (size_t k = 0; k < l->calls[i].files.n; k++)
            m.parts.at[m.parts.n++] = l->calls[i].files.at[k];
    }
    if (m.parts.n)
        dgm_llm_add_message(l, &m);
    dgm_llm_next_iteration(l);
}

void dgm_llm_pump(dgm_llm_loop *l)
{
    size_t running = 0, started = 0;
    if (l->phase != LLM_TOOLS)
        return;
    for (size_t i = 0; i < l->n_calls; i++)
        running += l->calls[i].state == LLM_CALL_STARTED || l->calls[i].state == LLM_CALL_RUNNING;
    for (size_t i = 0; i < l->n_calls && !l->is_committing; i++) {
        if (l->calls[i].state != LLM_CALL_READY || running >= l->options.limits.parallel_tools)
            continue;
        llm_start_call(l, &l->calls[i]);
        running++;
        started++;
    }
    if (started) {
        if (!dgm_llm_save_now(l))
            return;
        l->is_committing = true;
        dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_COMMIT});
    } else if (!running && !dgm_llm_ask(l, LLM_ASK)) {
        llm_finish_turn(l);
    }
}

struct llm_call *dgm_llm_find_call(dgm_llm_loop *l, dgm_str id)
{
    for (size_t i = 0; i < l->n_calls; i++) {
        if (dgm_str_eq(l->calls[i].id, id))
            return &l->calls[i];
    }
    return NULL;
}

/* Does the driver have this call: runs it, or waits with it for an answer? */
static bool llm_is_with_driver(const struct llm_call *c)
{
    bool is_asked = c->state == LLM_CALL_QUESTION || c->state == LLM_CALL_AUTH;
    return c->state == LLM_CALL_RUNNING || (is_asked && c->from_tool) ||
           (c->state == LLM_CALL_STARTED && c->has_answer);
}

/* The question of a call is over without a message. */
static void llm_stop_waiting(dgm_llm_loop *l)
{
    if (l->phase != LLM_WAITING)
        return;
    l->phase = LLM_TOOLS;
    dgm_llm_emit_status(l, DGM_STATE_WORKING, NULL, NULL);
}

void dgm_llm_on_result(dgm_llm_loop *l, const dgm_llm_result *r)
{
    struct llm_call *c = dgm_llm_find_call(l, r->call_id);
    bool is_auth = c && c->state == LLM_CALL_AUTH;
    if (!c || (!llm_is_with_driver(c) && !is_auth) || c->state == LLM_CALL_STARTED)
        return;
    llm_stop_waiting(l);
    dgm_llm_finish_call(l, c, r);
    dgm_llm_pump(l);
}

static void llm_lose_call(dgm_llm_loop *l, struct llm_call *c)
{
    if (c->is_idempotent && c->repeats < LLM_MAX_REPEATS) {
        c->state = LLM_CALL_READY;
        c->has_answer = false;
        c->repeats++;
    } else {
        llm_finish_with_error(l, c, DGM_STR(UNKNOWN_OUTCOME));
    }
}

void dgm_llm_on_unknown(dgm_llm_loop *l, dgm_str call_id)
{
    struct llm_call *c = dgm_llm_find_call(l, call_id);
    if (!c || !llm_is_with_driver(c) || c->state == LLM_CALL_STARTED)
        return;
    llm_stop_waiting(l);
    llm_lose_call(l, c);
    dgm_llm_pump(l);
}

void dgm_llm_stop_calls(dgm_llm_loop *l)
{
    for (size_t i = 0; i < l->n_calls; i++) {
        struct llm_call *c = &l->calls[i];
        bool is_started = c->state == LLM_CALL_STARTED;
        if (llm_is_with_driver(c))
            dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_STOP_TOOL, .call_id = c->id});
        else if (!is_started)
            continue;
        dgm_llm_set_output(l, c, true, DGM_STR("The call was stopped."));
        llm_emit_complete(l, c);
    }
}

/* ---- after a load ------------------------------------------------------------------------------------------------ */

/* The result that the process before has written to the log after it saved its state. */
static const dgm_json *llm_logged_result(const dgm_task *task, dgm_str message_id, dgm_str key)
{
    for (size_t i = task ? task->history.n : 0; i-- > 0;) {
        const dgm_message *m = &task->history.at[i];
        if (!dgm_str_eq(m->message_id, message_id) || !m->parts.n ||
            !dgm_str_eq(dgm_json_str_member(m->parts.at[0].metadata, RESULT_KEY), key))
            continue;
        return yyjson_arr_get_first(dgm_json_get(m->parts.at[0].data, DGM_STR(DGM_DATA_RESULTS)));
    }
    return NULL;
}

static void llm_resume_call(dgm_llm_loop *l, struct llm_call *c, const dgm_task *task)
{
    dgm_str id = dgm_llm_id(l, "r", l->iteration, llm_index_of(l, c));
    const dgm_json *result = llm_logged_result(task, id, dgm_llm_call_key(l, c));
    const dgm_json *output = dgm_json_get(result, DGM_STR("output"));
    if (output) {
        c->state = LLM_CALL_DONE;
        c->is_error = yyjson_is_true(dgm_json_get(result, DGM_STR("is_error")));
        llm_set_value(l, c, output);
    } else {
        llm_lose_call(l, c);
    }
}

void dgm_llm_resume_calls(dgm_llm_loop *l, const dgm_task *task)
{
    l->is_committing = false;
    for (size_t i = 0; i < l->n_calls; i++) {
        if (l->calls[i].state == LLM_CALL_RUNNING)
            llm_resume_call(l, &l->calls[i], task);
    }
    dgm_llm_pump(l);
}
