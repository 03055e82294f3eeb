/*
 * backend/llm/llm.c - a language model with tools as an agent: one run.
 *
 *   start ── recall the state ── find the tools ── START | RESUMED | MESSAGE ── steps ... ── END
 *
 * The loop decides (loop/llm_loop.h). This file feeds it and carries out its actions, or passes them on to llm_model.c and
 * llm_tools.c. A run that the server suspends leaves its stored state alone: the next process goes on with it.
 */
#include "backend/llm/llm_int.h"
#include "base/limits.h"
#include "model/calls.h"
#include "model/fold.h"
#include "json/build.h"

#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Assistant\",\"description\":\"A language model with tools.\",\"skills\":[{\"id\":"
    "\"answer\",\"name\":\"Answer\",\"description\":\"Answers questions, with its tools.\","
    "\"tags\":[\"llm\"]}]}";

/* An event that came from inside a step. */
struct llm_later {
    struct llm_later *next;
    dgm_llm_event event;
    dgm_arena *arena; /* of its texts and of itself */
};

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void job_on_closed(void *arg)
{
    struct llm_job *j = arg;
    dgm_llm_loop_free(j->loop);
    dgm_arena_free(j->arena); /* the job is in it */
}

/* Stops everything that runs for it. Nothing is called back behind this. */
static void job_stop(struct llm_job *j)
{
    dgm_llm_model_stop(j);
    dgm_llm_tools_stop(j);
    dgm_timer_stop(&j->wait);
    dgm_timer_stop(&j->limit);
    dgm_timer_stop(&j->soon);
    while (j->later) {
        struct llm_later *first = j->later;
        j->later = first->next;
        dgm_arena_free(first->arena);
    }
}

static void job_end(struct llm_job *j)
{
    dgm_run *run = j->run;
    j->is_ended = true;
    job_stop(j);
    run->agent_data = NULL;
    dgm_timer_close(&j->wait, NULL, NULL);
    dgm_timer_close(&j->limit, NULL, NULL);
    dgm_timer_close(&j->soon, job_on_closed, j);
    run->ops->end(run, NULL); /* the result was emitted before */
}

void dgm_llm_job_release(struct llm_job *j)
{
    if (--j->n_held == 0 && j->is_over && !j->is_ended)
        job_end(j);
}

/* Before the loop has started, or when it cannot be: there is no state to go on from. */
static void job_finish_early(struct llm_job *j, const char *error)
{
    dgm_err err = {0};
    dgm_code rc = error ? dgm_run_fail(j->run, dgm_str_from(error), &err)
                        : dgm_run_status(j->run, DGM_STATE_CANCELED, (dgm_str){0}, &err);
    if (rc)
        dgm_run_note(j->run, "the last status was rejected: %s", err.msg);
    j->n_held++;
    j->is_over = true;
    dgm_llm_job_release(j);
}

/* ---- actions ---------------------------------------------------------------------------------------------------------- */

static struct llm_later *job_add_later(struct llm_job *j, dgm_llm_event_kind kind)
{
    dgm_arena *a = dgm_arena_new_small(512);
    struct llm_later *l = dgm_new(a, struct llm_later), **last = &j->later;
    l->arena = a;
    l->event.kind = kind;
    while (*last)
        last = &(*last)->next;
    *last = l;
    return l;
}

void dgm_llm_job_tool_failed(struct llm_job *j, dgm_str call_id, dgm_str why)
{
    struct llm_later *l = job_add_later(j, DGM_LLM_TOOL_DONE);
    l->event.result = (dgm_llm_result){.call_id = dgm_arena_dup(l->arena, call_id),
                                       .is_error = true,
                                       .text = dgm_arena_dup(l->arena, why)};
}

void dgm_llm_job_tool_unknown(struct llm_job *j, dgm_str call_id)
{
    struct llm_later *l = job_add_later(j, DGM_LLM_TOOL_UNKNOWN);
    l->event.call_id = dgm_arena_dup(l->arena, call_id);
}

static void job_on_committed(void *arg, dgm_code code)
{
    struct llm_job *j = arg;
    if (code) /* the core fails the task; nothing may be started that is not stored */
        dgm_llm_job_step(j, &(dgm_llm_event){.kind = DGM_LLM_CANCEL});
    else
        dgm_llm_job_step(j, &(dgm_llm_event){.kind = DGM_LLM_COMMITTED});
}

static void job_commit(struct llm_job *j)
{
    if (j->run->ops->commit)
        j->run->ops->commit(j->run, job_on_committed, j);
    else
        job_add_later(j, DGM_LLM_COMMITTED);
}

/* The first line is the JSON of j->caller, since the core does not store the metadata of a request; the rest is the loop's. */
static void job_save(struct llm_job *j, dgm_str state)
{
    dgm_run *run = j->run;
    dgm_buf b;
    if (!run->ops->remember || run->suspended)
        return;
    dgm_buf_init(&b, DGM_MAX_RUN_NOTE_BYTES);
    if (j->caller)
        dgm_json_put(&b, j->caller);
    dgm_buf_add_char(&b, '\n');
    dgm_buf_add_str(&b, state);
    if (b.over)
        dgm_run_note(run, "the state of the task is too large to be stored: it will not go on "
                          "after a restart");
    else
        run->ops->remember(run, DGM_RUN_TASK, dgm_buf_str(&b), NULL, NULL);
    dgm_buf_done(&b);
}

/* The operator's log has the reason of a failure. */
static void job_report_failure(struct llm_job *j, const dgm_event *event)
{
    if (event->kind == DGM_EVENT_STATUS && event->status->status.state == DGM_STATE_FAILED)
        dgm_run_report(j->run, &(dgm_run_fault){
                                   .what = dgm_json_str_member(event->status->metadata, "error")});
}

static void job_emit(struct llm_job *j, const dgm_event *event)
{
    job_report_failure(j, event);
    if (!j->run->ops->emit(j->run, event, &j->err))
        return;
    if (!j->has_failed)
        dgm_run_note(j->run, "an event was rejected: %s", j->err.msg);
    j->has_failed = true; /* the log is full: the core has ended the task */
}

static void job_on_action(void *arg, const dgm_llm_action *action)
{
    struct llm_job *j = arg;
    switch (action->kind) {
    case DGM_LLM_EMIT: job_emit(j, action->event); break;
    case DGM_LLM_CALL_MODEL: dgm_llm_model_start(j, &action->model); break;
    case DGM_LLM_STOP_MODEL: dgm_llm_model_stop(j); break;
    case DGM_LLM_RUN_TOOL: dgm_llm_tool_start(j, &action->tool); break;
    case DGM_LLM_ANSWER_TOOL: dgm_llm_tool_answer(j, &action->answer); break;
    case DGM_LLM_STOP_TOOL: dgm_llm_tool_stop(j, action->call_id); break;
    case DGM_LLM_SAVE: job_save(j, action->text); break;
    case DGM_LLM_COMMIT: job_commit(j); break;
    case DGM_LLM_WAIT: dgm_timer_start(&j->wait, action->wait_ms); break;
    case DGM_LLM_NOTE: dgm_run_note(j->run, "%.*s", DGM_P(action->text)); break;
    case DGM_LLM_END: j->is_over = true; break;
    }
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

static void job_step_once(struct llm_job *j, const dgm_llm_event *event)
{
    if (j->is_over || !j->loop)
        return;
    dgm_llm_loop_step(j->loop, event, (dgm_llm_sink){job_on_action, j});
    if (j->has_failed && !j->is_over)
        dgm_llm_loop_step(j->loop, &(dgm_llm_event){.kind = DGM_LLM_CANCEL},
                          (dgm_llm_sink){job_on_action, j});
}

static void job_run_later(struct llm_job *j)
{
    while (j->later && !j->is_over) {
        struct llm_later *first = j->later;
        j->later = first->next;
        job_step_once(j, &first->event);
        dgm_arena_free(first->arena);
    }
}

void dgm_llm_job_step(struct llm_job *j, const dgm_llm_event *event)
{
    j->n_held++;
    job_step_once(j, event);
    job_run_later(j);
    dgm_llm_job_release(j);
}

static void job_on_wait(void *arg)
{
    dgm_llm_job_step(arg, &(dgm_llm_event){.kind = DGM_LLM_TIMER});
}

static void job_on_limit(void *arg)
{
    dgm_llm_job_step(arg, &(dgm_llm_event){.kind = DGM_LLM_TIME_UP});
}

static void job_on_soon(void *arg)
{
    struct llm_job *j = arg;
    j->n_held++;
    job_run_later(j);
    dgm_llm_job_release(j);
}

/* ---- what the caller sent besides its message ------------------------------------------------------------------------------- */

static const char *const caller_members[] = {DGM_META_TOOLS,           DGM_META_TOOL_CHOICE,
                                             DGM_META_RESPONSE_FORMAT, DGM_META_PARAMETERS,
                                             DGM_META_INSTRUCTIONS,    DGM_META_CONTEXT};

/* The message without the part that lists tools (model/calls.h): the frontend has read it, and it is not for the model. */
static const dgm_message *without_tools(struct llm_job *j, const dgm_message *m)
{
    size_t part;
    if (!dgm_message_tools(m, &part) || m->parts.n == 1)
        return m;
    dgm_message *copy = dgm_new(j->arena, dgm_message);
    *copy = *m;
    copy->parts = (dgm_parts){dgm_new_n(j->arena, dgm_part, m->parts.n), 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (i != part)
            copy->parts.at[copy->parts.n++] = m->parts.at[i];
    }
    return copy;
}

/* Members of this request; those of the turn before (stored) if it has no such member. */
static void job_read_caller(struct llm_job *j, dgm_str stored)
{
    const dgm_json *metadata = j->run->input->metadata;
    yyjson_val *old = NULL;
    bool has_any = false;
    dgm_json_build b = dgm_json_build_start(j->arena);
    j->message = without_tools(j, j->run->input->message);
    dgm_json_build_object(&b, NULL);
    for (size_t i = 0; i < sizeof caller_members / sizeof *caller_members; i++) {
        const dgm_json *v = dgm_json_get(metadata, dgm_str_from(caller_members[i]));
        if (v)
            dgm_json_build_value(&b, caller_members[i], v);
        has_any |= v != NULL;
    }
    dgm_json_build_close(&b);
    yyjson_val *caller = dgm_json_build_end(&b);
    if (has_any)
        j->caller = caller;
    else if (stored.n &&
             !dgm_json_read(j->arena, stored, DGM_MAX_RUN_NOTE_BYTES, "run_note_bytes", &old, NULL))
        j->caller = old;
}

/* ---- start ------------------------------------------------------------------------------------------------------------------ */

static bool is_waiting(dgm_task_state state)
{
    return state == DGM_STATE_INPUT_REQUIRED || state == DGM_STATE_AUTH_REQUIRED;
}

static void job_feed_first(struct llm_job *j)
{
    const dgm_run_input *in = j->run->input;
    dgm_llm_event event = {.kind = j->is_loaded ? DGM_LLM_RESUMED : DGM_LLM_START,
                           .start = {.task_id = in->task_id,
                                     .context_id = in->context_id,
                                     .message = j->message,
                                     .history = in->history,
                                     .task = in->task}};
    if (!in->is_resumed && j->is_loaded && is_waiting(dgm_llm_loop_state(j->loop)))
        event = (dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = j->message};
    j->n_held++;
    dgm_llm_job_step(j, &event);
    for (size_t i = 0; i < in->accepted.n && !j->is_over; i++)
        dgm_llm_job_step(j,
                         &(dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = &in->accepted.at[i]});
    if (dgm_llm_loop_state(j->loop) != DGM_STATE_WORKING)
        j->is_over = true; /* also if the stored state was that of a task that has ended */
    dgm_llm_job_release(j);
}

/* The tools are known. */
static void job_begin(struct llm_job *j)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_llm_options options = j->agent->loop;
    dgm_err err = {0};
    options.tools = dgm_llm_tools_rules(j, a);
    options.check = dgm_llm_tools_check;
    options.arg = j;
    if (!j->state.n) {
        j->loop = dgm_llm_loop_new(&options);
    } else if (dgm_llm_loop_load(j->state, &options, &j->loop, &err)) {
        dgm_run_note(j->run, "the stored state of the task cannot be used: %s", err.msg);
        job_finish_early(j, "the stored state of the task cannot be used by this version");
        return;
    }
    j->is_loaded = j->state.n > 0;
    j->state = (dgm_str){0};
    if (j->agent->max_time > 0)
        dgm_timer_start(&j->limit, (uint64_t)(j->agent->max_time * 1000));
    job_feed_first(j);
}

static void job_on_recalled(void *arg, dgm_str text)
{
    struct llm_job *j = arg;
    const char *line_end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    size_t n = line_end ? (size_t)(line_end - text.p) : 0;
    if (line_end)
        j->state = dgm_arena_dup(j->arena, (dgm_str){line_end + 1, text.n - n - 1});
    job_read_caller(j, (dgm_str){text.p, n});
    dgm_llm_tools_find(j, job_begin);
}

static void llm_start(void *agent, dgm_run *run)
{
    dgm_arena *a = dgm_arena_new();
    struct llm_job *j = dgm_new(a, struct llm_job);
    j->arena = a;
    j->run = run;
    j->agent = agent;
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->wait, job_on_wait, j);
    dgm_timer_init(run->loop, &j->limit, job_on_limit, j);
    dgm_timer_init(run->loop, &j->soon, job_on_soon, j);
    if (run->input->task && run->ops->recall) {
        run->ops->recall(run, DGM_RUN_TASK, job_on_recalled, j);
        return;
    }
    job_on_recalled(j, (dgm_str){0});
}

static void llm_cancel(void *agent, dgm_run *run)
{
    struct llm_job *j = run->agent_data;
    (void)agent;
    if (!j)
        return;
    if (run->suspended) {
        j->n_held++;
        j->is_over = true;
        dgm_llm_job_release(j);
    } else if (!j->loop) {
        job_finish_early(j, NULL);
    } else {
        dgm_llm_job_step(j, &(dgm_llm_event){.kind = DGM_LLM_CANCEL});
    }
}

static bool llm_message(void *agent, dgm_run *run, const dgm_message *message,
                        const dgm_json *metadata)
{
    struct llm_job *j = run->agent_data;
    (void)agent;
    (void)metadata;
    if (!j || j->is_over || !j->loop)
        return false;
    struct llm_later *l = job_add_later(j, DGM_LLM_MESSAGE);
    dgm_message *copy = dgm_new(l->arena, dgm_message);
    *copy = dgm_message_copy(l->arena, message);
    l->event.message = copy;
    dgm_timer_start(&j->soon, 0);
    return true;
}

static const dgm_inner llm_inner = {
    .open = dgm_llm_open,
    .close = dgm_llm_close,
    .start = llm_start,
    .cancel = llm_cancel,
    .message = llm_message,
    .has_only_tasks = true,
};
DGM_SHAPED_OPEN(llm_open_shaped, llm_inner)

const dgm_backend dgm_backend_llm = {
    .type = "llm",
    .settings = dgm_llm_settings,
    .about = "a language model with tools: any server that is compatible with OpenAI's APIs",
    .can_resume = true,
    .wants_history = true,
    .hides_auth_answers = true,
    .invokes_agents = true,
    .reply = DGM_REPLY_TASK,
    .card = card,
    DGM_SHAPED(llm_open_shaped),
};
