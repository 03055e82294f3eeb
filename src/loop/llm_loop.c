/*
 * loop/llm_loop.c - the agent loop: its start, its end, messages, and the table of events.
 *
 * Order of what is stored: events first, then the state that follows from them; events of the same step are in one commit
 * with it. A process that continues from the state may therefore find events of earlier steps in the log that the state does
 * not have: chunks of text, and results of tools. An artifact restarts with append:false; results are read from the log.
 */
#include "loop/llm_loop_int.h"

#include "model/approval.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- new and free ------------------------------------------------------------------------------------------------ */

static void llm_set_defaults(dgm_llm_options *o)
{
    dgm_llm_limits *x = &o->limits;
    x->iterations = x->iterations ? x->iterations : 25;
    x->calls_per_iteration = x->calls_per_iteration ? x->calls_per_iteration : 64;
    if (x->calls_per_iteration > LLM_MAX_CALLS)
        x->calls_per_iteration = LLM_MAX_CALLS;
    x->parallel_tools = x->parallel_tools ? x->parallel_tools : 4;
    x->input_bytes = x->input_bytes ? x->input_bytes : (size_t)1 << 20;
    x->output_bytes = x->output_bytes ? x->output_bytes : (size_t)1 << 20;
    x->result_bytes = x->result_bytes ? x->result_bytes : (size_t)64 << 10;
    x->state_bytes = x->state_bytes ? x->state_bytes : DGM_MAX_RECORD_BYTES;
    o->retry_base_ms = o->retry_base_ms ? o->retry_base_ms : 500;
    o->retry_cap_ms = o->retry_cap_ms ? o->retry_cap_ms : 30000;
    o->upstreams = o->upstreams ? o->upstreams : 1;
}

dgm_llm_loop *dgm_llm_loop_new(const dgm_llm_options *options)
{
    dgm_llm_loop *l = dgm_xcalloc(1, sizeof *l);
    l->options = *options;
    llm_set_defaults(&l->options);
    l->arena = dgm_arena_new();
    l->turn = dgm_arena_new();
    l->scratch = dgm_arena_new();
    l->state = DGM_STATE_SUBMITTED;
    dgm_buf_init(&l->answer, SIZE_MAX); /* the text is counted before it is added */
    dgm_buf_init(&l->text, SIZE_MAX);
    dgm_buf_init(&l->saved, l->options.limits.state_bytes);
    dgm_llm_loop_set_tools(l, options->tools);
    return l;
}

void dgm_llm_loop_free(dgm_llm_loop *l)
{
    if (!l)
        return;
    dgm_arena_free(l->arena);
    dgm_arena_free(l->turn);
    dgm_arena_free(l->scratch);
    dgm_arena_free(l->tools_arena);
    dgm_buf_done(&l->answer);
    dgm_buf_done(&l->text);
    dgm_buf_done(&l->saved);
    free(l);
}

void dgm_llm_loop_set_tools(dgm_llm_loop *l, dgm_llm_tools tools)
{
    size_t n = tools.n < DGM_MAX_REQUEST_TOOLS ? tools.n : DGM_MAX_REQUEST_TOOLS;
    dgm_arena *a = dgm_arena_new();
    dgm_llm_tool *copy = dgm_new_n(a, dgm_llm_tool, n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = tools.at[i];
        copy[i].name = dgm_arena_dup(a, copy[i].name);
        copy[i].agent_name = dgm_arena_dup(a, copy[i].agent_name);
        copy[i].agent_url = dgm_arena_dup(a, copy[i].agent_url);
    }
    dgm_arena_free(l->tools_arena);
    l->tools_arena = a;
    l->options.tools = (dgm_llm_tools){copy, n};
}

dgm_task_state dgm_llm_loop_state(const dgm_llm_loop *l)
{
    if (l->phase == LLM_NEW)
        return DGM_STATE_SUBMITTED;
    return l->phase == LLM_OVER || l->phase == LLM_WAITING ? l->state : DGM_STATE_WORKING;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

bool dgm_llm_save_now(dgm_llm_loop *l)
{
    dgm_buf_clear(&l->saved);
    l->saved.over = false;
    dgm_llm_loop_save(l, &l->saved);
    if (l->saved.over) {
        dgm_llm_fail(l,
                     "The conversation of this task is too long to be stored (limit: %zu bytes).",
                     l->options.limits.state_bytes);
        return false;
    }
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_SAVE, .text = dgm_buf_str(&l->saved)});
    dgm_buf_shrink(&l->saved, 4096);
    return true;
}

void dgm_llm_terminate(dgm_llm_loop *l, dgm_task_state state, dgm_str text)
{
    l->phase = LLM_OVER;
    if (l->is_calling)
        dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_STOP_MODEL});
    dgm_llm_close_text(l, false);
    dgm_llm_stop_calls(l);
    dgm_llm_emit_sentence(l, state, text, state == DGM_STATE_FAILED || state == DGM_STATE_REJECTED);
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_END, .state = state});
}

void dgm_llm_fail(dgm_llm_loop *l, const char *fmt, ...)
{
    char text[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    dgm_llm_terminate(l, DGM_STATE_FAILED, dgm_str_from(text));
}

/* ---- messages of the caller -------------------------------------------------------------------------------------- */

static bool llm_has_seen(const dgm_llm_loop *l, dgm_str id)
{
    size_t n = l->n_seen < LLM_MAX_SEEN ? l->n_seen : LLM_MAX_SEEN;
    for (size_t i = 0; id.n && i < n; i++) {
        if (dgm_str_eq(l->seen[i], id))
            return true;
    }
    return false;
}

static void llm_see(dgm_llm_loop *l, dgm_str id)
{
    if (id.n && id.n <= DGM_MAX_ID_BYTES)
        l->seen[l->n_seen++ % LLM_MAX_SEEN] = dgm_arena_dup(l->arena, id);
}

bool dgm_llm_input_fits(dgm_llm_loop *l, const dgm_message *m)
{
    size_t n = dgm_llm_message_bytes(l, m), max = l->options.limits.input_bytes;
    if (n <= max)
        return true;
    dgm_llm_terminate(l, DGM_STATE_REJECTED,
                      dgm_arena_printf(l->scratch,
                                       "The message is too large: it has %zu bytes, the limit is "
                                       "%zu bytes.",
                                       n, max));
    return false;
}

/* Decisions and results that answer no open question: they may come twice, and they are not for the model. */
static bool llm_is_late_answer(const dgm_part *p)
{
    dgm_approval approval;
    return p->kind == DGM_PART_DATA && (dgm_approval_read(p->data, &approval) ||
                                        dgm_json_get(p->data, DGM_STR(DGM_DATA_RESULTS)));
}

bool dgm_llm_queue(dgm_llm_loop *l, const dgm_message *m)
{
    dgm_message rest = *m;
    rest.parts = (dgm_parts){dgm_new_n(l->scratch, dgm_part, m->parts.n), 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (!llm_is_late_answer(&m->parts.at[i]))
            rest.parts.at[rest.parts.n++] = m->parts.at[i];
    }
    if (!rest.parts.n)
        return false;
    if (l->queued.n >= DGM_MAX_QUEUED_MESSAGES) {
        dgm_llm_note(l, "a message was dropped: %d messages wait for the next model call",
                     DGM_MAX_QUEUED_MESSAGES);
        return false;
    }
    l->queued.at = dgm_list_grow(l->arena, l->queued.at, l->queued.n, sizeof *l->queued.at);
    dgm_message *copy = &l->queued.at[l->queued.n];
    *copy = dgm_message_copy(l->arena, &rest);
    copy->role = DGM_ROLE_USER;
    if (!copy->message_id.n)
        copy->message_id =
            dgm_arena_dup(l->arena, dgm_llm_id(l, "u", l->iteration, (int)(l->n_seen & 0xffff)));
    l->queued.n++;
    return true;
}

static void llm_on_message(dgm_llm_loop *l, const dgm_message *m)
{
    bool is_new = !llm_has_seen(l, m->message_id);
    if (l->phase == LLM_WAITING &&
        !is_new) { /* the answer to the question before this one, again */
        dgm_llm_ask(l, LLM_ASK_REPEAT);
        return;
    }
    if (!is_new || !dgm_llm_input_fits(l, m))
        return;
    llm_see(l, m->message_id);
    if (l->phase == LLM_WAITING)
        dgm_llm_on_answer(l, m);
    else if (dgm_llm_queue(l, m))
        dgm_llm_save_now(l);
}

/* ---- start and resume -------------------------------------------------------------------------------------------- */

static void llm_find_stale_text(dgm_llm_loop *l, const dgm_task *task)
{
    dgm_llm_name_artifact(l);
    for (size_t i = 0; task && i < task->artifacts.n; i++) {
        const dgm_artifact *x = &task->artifacts.at[i];
        dgm_message text = {.parts = x->parts};
        if (!dgm_str_eq(x->artifact_id, dgm_str_from(l->artifact_id)))
            continue;
        l->is_stale = true;
        l->stale_text = dgm_arena_dup(l->turn, dgm_llm_text_of(l->scratch, &text));
        l->has_output |= l->stale_text.n > 0;
    }
}

static dgm_code llm_on_start(dgm_llm_loop *l, const dgm_llm_start *s)
{
    if (l->phase != LLM_NEW || !s->message)
        return DGM_BAD_PARAMS;
    l->task_id = dgm_arena_dup(l->arena, s->task_id);
    l->context_id = dgm_arena_dup(l->arena, s->context_id);
    llm_see(l, s->message->message_id);
    l->phase = LLM_TOOLS;
    l->turn_first = 1;
    for (size_t i = 0; i < s->history.n; i++)
        dgm_llm_add_message(l, &s->history.at[i]);
    if (!s->task || s->task->status.state != DGM_STATE_WORKING)
        dgm_llm_emit_status(l, DGM_STATE_WORKING, NULL, NULL);
    l->state = DGM_STATE_WORKING;
    if (!dgm_llm_input_fits(l, s->message))
        return DGM_OK;
    dgm_llm_add_message(l, s->message);
    l->iteration = 1;
    llm_find_stale_text(l, s->task);
    dgm_llm_call_model(l);
    return DGM_OK;
}

static dgm_code llm_on_resumed(dgm_llm_loop *l, const dgm_llm_start *s)
{
    const dgm_message *m = s->message;
    bool is_new = m && !llm_has_seen(l, m->message_id);
    if (l->phase == LLM_NEW)
        return DGM_BAD_PARAMS;
    switch (l->phase) {
    case LLM_MODEL:
    case LLM_RETRY:
        llm_find_stale_text(l, s->task);
        dgm_llm_call_model(l);
        break;
    case LLM_TOOLS: dgm_llm_resume_calls(l, s->task); break;
    case LLM_WAITING:
        if (is_new || dgm_llm_ask(l, LLM_ASK_REPEAT))
            break;
        l->phase = LLM_TOOLS; /* nothing is open: the text was changed */
        dgm_llm_pump(l);
        break;
    case LLM_NEW:
    case LLM_OVER: return DGM_OK;
    }
    if (is_new && l->phase != LLM_OVER)
        llm_on_message(l, m);
    return DGM_OK;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void llm_on_timer(dgm_llm_loop *l)
{
    if (l->phase != LLM_RETRY)
        return;
    l->phase = LLM_MODEL;
    dgm_llm_send_call(l);
}

static void llm_on_model_event(dgm_llm_loop *l, const dgm_llm_event *e)
{
    if (!l->is_calling)
        return;
    switch (e->kind) {
    case DGM_LLM_MODEL_TEXT: dgm_llm_on_text(l, e->text); break;
    case DGM_LLM_MODEL_REASONING: dgm_llm_on_reasoning(l, e->text); break;
    case DGM_LLM_MODEL_CALL: dgm_llm_on_call(l, &e->call); break;
    case DGM_LLM_MODEL_END: dgm_llm_on_end(l, &e->end); break;
    default: dgm_llm_on_failed(l, &e->failure); break;
    }
}

/* A driver that has loaded the loop for the next turn of a task may feed the message at once. */
static dgm_code llm_on_first_message(dgm_llm_loop *l, const dgm_message *m)
{
    return llm_on_resumed(l, &(dgm_llm_start){.message = m});
}

static dgm_code llm_handle(dgm_llm_loop *l, const dgm_llm_event *e)
{
    switch (e->kind) {
    case DGM_LLM_START: return llm_on_start(l, &e->start);
    case DGM_LLM_RESUMED: return llm_on_resumed(l, &e->start);
    case DGM_LLM_MESSAGE: llm_on_message(l, e->message); break;
    case DGM_LLM_MODEL_TEXT:
    case DGM_LLM_MODEL_REASONING:
    case DGM_LLM_MODEL_CALL:
    case DGM_LLM_MODEL_END:
    case DGM_LLM_MODEL_FAILED: llm_on_model_event(l, e); break;
    case DGM_LLM_TIMER: llm_on_timer(l); break;
    case DGM_LLM_COMMITTED: dgm_llm_on_committed(l); break;
    case DGM_LLM_TOOL_DONE: dgm_llm_on_result(l, &e->result); break;
    case DGM_LLM_TOOL_ASKS: dgm_llm_on_question(l, &e->question); break;
    case DGM_LLM_TOOL_UNKNOWN: dgm_llm_on_unknown(l, e->call_id); break;
    case DGM_LLM_TIME_UP:
        if (l->phase != LLM_WAITING) /* the caller has all the time */
            dgm_llm_fail(l, "The run exceeded its time limit.");
        break;
    case DGM_LLM_CANCEL: dgm_llm_terminate(l, DGM_STATE_CANCELED, (dgm_str){0}); break;
    }
    return DGM_OK;
}

dgm_code dgm_llm_loop_step(dgm_llm_loop *l, const dgm_llm_event *event, dgm_llm_sink sink)
{
    bool is_start = event->kind == DGM_LLM_START || event->kind == DGM_LLM_RESUMED;
    if (l->phase == LLM_OVER || (l->phase == LLM_NEW && !is_start))
        return is_start ? DGM_BAD_PARAMS : DGM_OK;
    l->sink = sink;
    bool is_next_turn = l->is_loaded && event->kind == DGM_LLM_MESSAGE;
    l->is_loaded = false;
    dgm_code rc = is_next_turn ? llm_on_first_message(l, event->message) : llm_handle(l, event);
    l->sink = (dgm_llm_sink){0};
    dgm_arena_reset(l->scratch);
    return rc;
}
