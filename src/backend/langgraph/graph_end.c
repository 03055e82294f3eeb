/*
 * backend/langgraph/graph_end.c - the result of a run: the answer, interrupts, failures.
 *
 * The answer is the first of these: a2a_outbox; the last new AIMessage with text; the text of the last model call; the
 * last message of emit_message. It is the message of the last status, and the last one of the history.
 */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "model/approval.h"
#include "model/calls.h"
#include "model/fold.h"
#include "model/stamp.h"
#include "json/build.h"

/* ---- the answer ---------------------------------------------------------------------------------------------------------------- */

/* The last AIMessage with text; those that only call tools have none. */
static const dgm_json *last_answer(dgm_graph_out *o, const dgm_json *messages)
{
    yyjson_val *m;
    const dgm_json *found = NULL;
    size_t i, n;
    yyjson_arr_foreach (graph_val(messages), i, n, m) {
        if (dgm_graph_role_of(m) == DGM_GRAPH_AI && dgm_graph_text(o->scratch, m).n)
            found = m;
    }
    return found;
}

static void set_answer(dgm_graph_out *o, dgm_str id, dgm_str text)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    bool is_emitted = o->has_emitted && o->emitted.parts.at[0].kind == DGM_PART_TEXT &&
                      dgm_str_eq(o->emitted.parts.at[0].content, text);
    if (is_emitted) /* the same message once more: it is in the history under this id */
        m.message_id = o->emitted.message_id;
    else if (id.n && id.n <= DGM_MAX_ID_BYTES && !dgm_graph_knows(o, id))
        m.message_id = id;
    else
        m.message_id = dgm_mint_id(&o->mint, o->scratch);
    o->final = dgm_message_copy(o->arena, &m);
    o->has_final = true;
}

static void find_fallback(dgm_graph_out *o, const dgm_json *messages)
{
    const dgm_json *said = last_answer(o, messages);
    if (said) {
        set_answer(o, dgm_json_str_member(said, "id"), dgm_graph_text(o->scratch, said));
    } else if (o->answer && o->answer->text.n && !o->answer->text.over) {
        set_answer(o, (dgm_str){0}, dgm_buf_str(&o->answer->text));
    } else if (o->has_emitted) {
        o->final = o->emitted;
        o->has_final = true;
    }
}

/* ---- the caller's tools ------------------------------------------------------------------------------------------------------------- */

static bool is_callers_tool(const dgm_graph_out *o, dgm_str name)
{
    for (size_t i = 0; i < o->tools.n; i++) {
        if (dgm_str_eq(o->tools.at[i], name))
            return true;
    }
    return false;
}

/* Calls of the caller's tools without a result: the caller makes them. NULL: no such call. */
static const dgm_json *open_calls(dgm_graph_out *o, const dgm_json *messages)
{
    yyjson_val *m, *call, *last = yyjson_arr_get_last(graph_val(messages));
    size_t i, n, count = 0;
    dgm_json_build b = dgm_json_build_start(o->scratch);
    m = dgm_graph_role_of(last) == DGM_GRAPH_AI ? last : NULL;
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_CALLS);
    yyjson_arr_foreach (dgm_json_get(m, DGM_STR("tool_calls")), i, n, call) {
        if (!is_callers_tool(o, dgm_json_str_member(call, "name")))
            continue;
        count++;
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "call_id", dgm_json_str_member(call, "id"));
        dgm_json_build_str(&b, "name", dgm_json_str_member(call, "name"));
        dgm_json_build_value(&b, "arguments", dgm_json_get(call, DGM_STR("args")));
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    yyjson_val *data = dgm_json_build_end(&b);
    return count ? data : NULL;
}

static void ask_for_calls(dgm_graph_out *o, const dgm_json *calls)
{
    dgm_part parts[2];
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {parts, 0}};
    m.message_id = o->has_final ? o->final.message_id : dgm_mint_id(&o->mint, o->scratch);
    if (o->has_final && o->final.parts.n)
        parts[m.parts.n++] = o->final.parts.at[0];
    parts[m.parts.n++] = (dgm_part){.kind = DGM_PART_DATA, .data = calls};
    o->final = dgm_message_copy(o->arena, &m);
    o->has_final = true;
    o->state = DGM_STATE_INPUT_REQUIRED;
}

/* ---- interrupts ---------------------------------------------------------------------------------------------------------------------- */

/* The question in the value of an interrupt. */
static dgm_str interrupt_text(dgm_arena *a, const dgm_json *value)
{
    static const char *const members[] = {"prompt", "message", "question", "text"};
    dgm_part part = {.kind = DGM_PART_DATA, .data = value};
    dgm_message asked = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    if (value && dgm_part_is_asked(&part))
        return dgm_message_as_shown(a, &asked)->parts.at[0].content;
    if (yyjson_is_str(graph_val(value)))
        return dgm_json_str(value);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        dgm_str text = dgm_json_str_member(value, members[i]);
        if (text.n)
            return text;
    }
    return dgm_json_text_in(a, value);
}

static bool wants_auth(const dgm_json *value)
{
    dgm_str state = dgm_json_str_member(value, "a2a_state");
    return dgm_str_is(state, "auth-required") || dgm_str_is(state, "TASK_STATE_AUTH_REQUIRED");
}

static const dgm_json *pending_data(dgm_graph_out *o, const dgm_json *interrupts,
                                    const dgm_json *next)
{
    yyjson_val *it;
    size_t i, n;
    dgm_json_build b = dgm_json_build_start(o->scratch);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_INTERRUPTS);
    yyjson_arr_foreach (graph_val(interrupts), i, n, it) {
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "id", dgm_json_str_member(it, "id"));
        const dgm_json *value = dgm_json_get(it, DGM_STR("value"));
        if (value)
            dgm_json_build_value(&b, "value", value);
        else
            dgm_json_build_null(&b, "value");
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    if (!yyjson_arr_size(graph_val(interrupts)))
        dgm_json_build_value(&b, GRAPH_DATA_NEXT, next);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static dgm_str breakpoint_text(dgm_graph_out *o, const dgm_json *next)
{
    yyjson_val *first = yyjson_arr_get_first(graph_val(next));
    if (!yyjson_is_str(first))
        return DGM_STR("The graph is paused. Send any message to continue.");
    return dgm_arena_printf(o->scratch,
                            "The graph is paused before %.*s. Send any message to continue.",
                            DGM_P(dgm_json_str(first)));
}

static dgm_str questions(dgm_graph_out *o, const dgm_json *interrupts, bool *ret_auth)
{
    yyjson_val *it;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    yyjson_arr_foreach (graph_val(interrupts), i, n, it) {
        const dgm_json *value = dgm_json_get(it, DGM_STR("value"));
        if (i)
            dgm_buf_add_char(&b, '\n');
        dgm_buf_add_str(&b, interrupt_text(o->scratch, value));
        *ret_auth |= wants_auth(value);
    }
    dgm_str text = dgm_arena_dup(o->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* The question: its text; all pending interrupts as data; and a value that is a question of ours (model/approval.h) as a
 * part of its own, which clients show as one. */
static void set_question(dgm_graph_out *o, const dgm_json *interrupts, const dgm_json *next)
{
    size_t count = yyjson_arr_size(graph_val(interrupts)), i, n;
    dgm_part *parts = dgm_new_n(o->scratch, dgm_part, count + 2);
    dgm_message m = {.message_id = dgm_mint_id(&o->mint, o->scratch),
                     .role = DGM_ROLE_AGENT,
                     .parts = {parts, 0}};
    yyjson_val *it;
    bool is_auth = false;
    dgm_str text = count ? questions(o, interrupts, &is_auth) : breakpoint_text(o, next);
    if (text.n)
        parts[m.parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = text};
    yyjson_arr_foreach (graph_val(interrupts), i, n, it) {
        dgm_part own = {.kind = DGM_PART_DATA, .data = dgm_json_get(it, DGM_STR("value"))};
        if (own.data && dgm_part_is_asked(&own))
            parts[m.parts.n++] = own;
    }
    parts[m.parts.n++] =
        (dgm_part){.kind = DGM_PART_DATA, .data = pending_data(o, interrupts, next)};
    if (count == 1)
        m.metadata = dgm_metadata_with_text(
            o->scratch, NULL, DGM_STR("interruptId"),
            dgm_json_str_member(yyjson_arr_get_first(graph_val(interrupts)), "id"));
    o->final = dgm_message_copy(o->arena, &m);
    o->has_final = true;
    o->state = is_auth ? DGM_STATE_AUTH_REQUIRED : DGM_STATE_INPUT_REQUIRED;
}

/* What the graph wrote before it asked is content of its own. */
static void emit_before_question(dgm_graph_out *o)
{
    if (!o->has_final)
        return;
    dgm_message m = o->final;
    if (!dgm_graph_knows(o, m.message_id))
        dgm_graph_emit_message(o, &m);
    o->has_final = false;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------------------ */

static void show_all_tools(dgm_graph_out *o, const dgm_json *messages)
{
    yyjson_val *m;
    size_t i, n;
    yyjson_arr_foreach (graph_val(messages), i, n, m)
        dgm_graph_show_tools(o, m);
}

static const dgm_json *sync_list(dgm_arena *a, dgm_buf *sync)
{
    yyjson_val *list = NULL;
    if (sync->n && !sync->over) {
        dgm_str text = dgm_arena_printf(a, "[%.*s]", DGM_P(dgm_buf_str(sync)));
        (void)dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &list, NULL);
    }
    dgm_buf_done(sync);
    return list;
}

const dgm_json *dgm_graph_out_result(dgm_graph_out *o, dgm_arena *a, const dgm_json *result)
{
    const dgm_json *messages = dgm_json_get(result, DGM_STR("messages"));
    const dgm_json *outbox = dgm_json_non_null(result, "outbox"), *calls;
    bool is_interrupted = dgm_str_is(dgm_json_str_member(result, "status"), "interrupted");
    dgm_buf sync;
    if (o->is_ended)
        return NULL;
    dgm_buf_init(&sync, DGM_MAX_RECORD_BYTES);
    if (yyjson_is_false(dgm_json_get(result, DGM_STR("hasOutbox"))))
        outbox = NULL; /* of an earlier run */
    dgm_graph_flush(o);
    show_all_tools(o, messages);
    dgm_graph_close_delta(o);
    if (!outbox || !dgm_graph_apply_outbox(o, a, outbox, !is_interrupted, &sync)) {
        find_fallback(o, messages);
        if (!is_interrupted && (calls = open_calls(o, messages)))
            ask_for_calls(o, calls);
    }
    if (is_interrupted) {
        emit_before_question(o);
        set_question(o, dgm_json_get(result, DGM_STR("interrupts")),
                     dgm_json_get(result, DGM_STR("next")));
    }
    const dgm_json *list = sync_list(a, &sync);
    dgm_arena_reset(o->scratch);
    return list;
}

void dgm_graph_out_finish(dgm_graph_out *o)
{
    dgm_message m = o->final;
    const dgm_json *metadata = o->final_metadata;
    if (o->is_ended)
        return;
    o->is_ended = true;
    bool failed = o->state == DGM_STATE_FAILED || o->state == DGM_STATE_REJECTED;
    bool is_emitted = o->has_emitted && dgm_str_eq(o->emitted.message_id, m.message_id);
    if (is_emitted && !o->emitted_is_past) { /* moves it to the history */
        dgm_graph_emit_status(o, DGM_STATE_WORKING, NULL, NULL);
    } else if (o->has_final && o->state == DGM_STATE_COMPLETED &&
               !dgm_graph_knows(o, m.message_id)) {
        dgm_message copy = m;
        dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_MESSAGE, .message = &copy});
    }
    if (failed && o->state == DGM_STATE_FAILED && !dgm_metadata_error(metadata).n && !o->has_final)
        metadata = dgm_metadata_with_error(o->scratch, metadata, DGM_STR("The agent failed."));
    dgm_graph_emit_status(o, o->state, o->has_final ? &m : NULL, metadata);
    dgm_arena_reset(o->scratch);
}

/* ---- the state of a thread whose run had ended ---------------------------------------------------------------------------------------- */

const dgm_json *dgm_graph_result_of_state(dgm_arena *a, const dgm_json *state, dgm_str since)
{
    const dgm_json *values = dgm_json_get(state, DGM_STR("values"));
    yyjson_val *all = dgm_json_get(values, DGM_STR("messages")), *m;
    yyjson_val *interrupts = dgm_json_get(state, DGM_STR("interrupts"));
    size_t i, n, first = yyjson_arr_size(all);
    if (!since.n && first && dgm_graph_role_of(yyjson_arr_get_last(all)) == DGM_GRAPH_AI)
        first--; /* a run without a message of its own: its answer is the last one */
    yyjson_arr_foreach (all, i, n, m) {
        if (since.n && dgm_str_eq(dgm_json_str_member(m, "id"), since))
            first = i + 1;
    }
    bool waits =
        yyjson_arr_size(interrupts) || yyjson_arr_size(dgm_json_get(state, DGM_STR("next")));
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "status", waits ? "interrupted" : "completed");
    dgm_json_build_value(&b, "interrupts", interrupts);
    dgm_json_build_value(&b, "next", dgm_json_get(state, DGM_STR("next")));
    dgm_json_build_value(&b, "outbox", dgm_json_get(values, DGM_STR("a2a_outbox")));
    dgm_json_build_array(&b, "messages");
    yyjson_arr_foreach (all, i, n, m) {
        if (i >= first)
            dgm_json_build_value(&b, NULL, m);
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* ---- other ends ------------------------------------------------------------------------------------------------------------------------ */

void dgm_graph_out_fail(dgm_graph_out *o, dgm_task_state state, dgm_str text)
{
    dgm_message *m = NULL;
    if (o->is_ended)
        return;
    o->is_ended = true;
    dgm_graph_flush(o);
    dgm_graph_close_delta(o);
    if (state == DGM_STATE_REJECTED && text.n)
        m = dgm_error_message(o->scratch, text);
    dgm_graph_emit_status(o, state, m,
                          state == DGM_STATE_FAILED ? dgm_error_metadata(o->scratch, text) : NULL);
    dgm_arena_reset(o->scratch);
}

void dgm_graph_out_ask(dgm_graph_out *o, const dgm_graph_turn *turn, dgm_str why)
{
    dgm_part parts[2] = {{.kind = DGM_PART_TEXT, .content = why}};
    dgm_message m = {.message_id = dgm_mint_id(&o->mint, o->scratch),
                     .role = DGM_ROLE_AGENT,
                     .parts = {parts, 1}};
    const dgm_json *pending = dgm_graph_pending(turn->task);
    if (pending)
        parts[m.parts.n++] = (dgm_part){.kind = DGM_PART_DATA, .data = pending};
    o->is_ended = true;
    bool is_auth = turn->task && turn->task->status.state == DGM_STATE_AUTH_REQUIRED;
    dgm_graph_emit_status(o, is_auth ? DGM_STATE_AUTH_REQUIRED : DGM_STATE_INPUT_REQUIRED, &m,
                          NULL);
    dgm_arena_reset(o->scratch);
}

void dgm_graph_out_restart(dgm_graph_out *o)
{
    o->is_rerun = true;
    dgm_graph_drop_text(o);
    dgm_arena_reset(o->scratch);
}
