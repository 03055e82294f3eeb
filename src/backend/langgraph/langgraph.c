/*
 * backend/langgraph/langgraph.c - a LangGraph graph as an agent: one run.
 *
 *   start ── which thread? ── working ── `run` ── events ... ── result ── `state/update` ── the last status
 *
 * The mapping is in graph_map.h, the processes are in worker/worker.h. The thread is named after tenant, principal, agent and
 * context; a conversation that the thread cannot have (a transcript) starts a new one. The note of the context counts
 * them. The note of the task has what the next process needs to go on: see langgraph_recover.c.
 */
#include "backend/langgraph/langgraph_int.h"
#include "base/limits.h"
#include "base/mint.h"

#include <stdio.h>
#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Graph\",\"description\":\"A LangGraph "
    "graph.\",\"skills\":[{\"id\":\"answer\",\"name\":"
    "\"Answer\",\"description\":\"Answers what is written to it.\",\"tags\":[\"langgraph\"]}]}";

#define SYNC_MS 10000 /* for state/update */

/* ---- the end -------------------------------------------------------------------------------------------------------------- */

static void job_on_timer_closed(void *arg)
{
    struct langgraph_job *j = arg;
    dgm_graph_out_free(j->out);
    dgm_arena_free(j->arena); /* the job is in it */
}

static void job_end(struct langgraph_job *j)
{
    dgm_run *run = j->run;
    if (j->is_over)
        return;
    j->is_over = true;
    run->agent_data = NULL;
    if (j->worker_run)
        dgm_worker_run_drop(dgm_take(j->worker_run));
    if (j->call)
        dgm_worker_call_drop(dgm_take(j->call));
    dgm_timer_stop(&j->timeout);
    dgm_timer_close(&j->timeout, job_on_timer_closed, j);
    run->ops->end(run, NULL); /* the result was emitted before */
}

void dgm_langgraph_fail(struct langgraph_job *j, dgm_task_state state, dgm_str text)
{
    dgm_graph_out_fail(j->out, state, text);
    job_end(j);
}

/* ---- output ----------------------------------------------------------------------------------------------------------------- */

static void job_on_emit(void *arg, const dgm_event *event)
{
    struct langgraph_job *j = arg;
    dgm_err err = {0};
    if (!j->run->ops->emit(j->run, event, &err))
        return;
    if (!j->has_failed)
        dgm_run_note(j->run, "an event was rejected: %s", err.msg);
    j->has_failed = true; /* the log is full: the core has ended the task */
    if (j->worker_run)
        dgm_worker_run_cancel(j->worker_run);
}

static void job_on_note(void *arg, dgm_str line)
{
    struct langgraph_job *j = arg;
    dgm_run_note(j->run, "%.*s", DGM_P(line));
}

static void job_on_event(void *user, const dgm_worker_event *event)
{
    struct langgraph_job *j = user;
    if (!j->has_failed)
        dgm_graph_out_event(j->out, event->type, event->ns, event->data);
}

/* What a node prints. */
static void job_on_log(void *user, dgm_str level, dgm_str text)
{
    struct langgraph_job *j = user;
    (void)level;
    dgm_run_note(j->run, "%.*s", DGM_P(text));
}

static bool job_is_full(void *user)
{
    const struct langgraph_job *j = user;
    return j->run->ops->is_full(j->run);
}

/* ---- `run` -------------------------------------------------------------------------------------------------------------------- */

static dgm_graph_turn job_turn(const struct langgraph_job *j, const dgm_json *keys)
{
    const dgm_run_input *in = j->run->input;
    return (dgm_graph_turn){.message = in->message,
                            .task = in->task,
                            .metadata = j->metadata,
                            .task_id = in->task_id,
                            .context_id = in->context_id,
                            .keys = keys,
                            .is_v10 = j->agent->is_v10};
}

/* The graph as the worker has it in its handshake; NULL: unknown. */
static const dgm_json *find_graph_info(const struct langgraph_job *j, const dgm_json *info)
{
    yyjson_val *agents = dgm_json_get(info, DGM_STR("agents")), *it;
    size_t i, n;
    yyjson_arr_foreach (agents, i, n, it) {
        if (dgm_str_eq(dgm_json_str_member(it, "id"), j->agent->graph))
            return it;
    }
    return NULL;
}

static bool keys_have(const dgm_json *keys, const char *name)
{
    yyjson_val *key;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)keys, i, n, key) {
        if (yyjson_is_str(key) && dgm_str_eq(dgm_json_str(key), dgm_str_from(name)))
            return true;
    }
    return !keys;
}

/* A continued run has no input; a resumed one has it as an update of the state. */
static void put_params(const struct langgraph_job *j, const dgm_graph_plan *plan, dgm_buf *out)
{
    dgm_run_input in = *j->run->input; /* of a resumed run, the metadata is that of the note */
    dgm_run run = *j->run;
    in.metadata = j->metadata;
    run.input = &in;
    dgm_worker_put_common(out, &run, j->agent->graph, j->thread, j->is_resumed, j->attempt);
    dgm_buf_add_lit(out, ",\"input\":");
    dgm_json_put(out, j->continues ? NULL : plan->input);
    if (!j->continues && plan->resume) {
        dgm_buf_add_lit(out, ",\"resume\":");
        dgm_json_put(out, plan->resume);
    }
    dgm_buf_printf(out, ",\"recursionLimit\":%lld,\"durability\":\"%s\",\"forward\":[]",
                   (long long)j->agent->recursion_limit, j->agent->durability);
}

static bool job_write_params(void *user, const dgm_json *info, dgm_buf *out, const char **ret_safe)
{
    struct langgraph_job *j = user;
    const dgm_json *graph = find_graph_info(j, info);
    const dgm_json *keys = dgm_json_non_null(graph, "keys");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t before = out->n;
    if (!graph) {
        *ret_safe = "the worker does not have this graph";
        return false;
    }
    dgm_graph_out_set_messages(j->out, keys_have(keys, "messages"));
    dgm_graph_turn turn = job_turn(j, keys);
    dgm_graph_plan plan = dgm_graph_plan_turn(a, &turn);
    if (plan.kind == DGM_GRAPH_NOTHING && !j->continues) {
        j->refusal = dgm_arena_dup(j->arena, plan.why).p;
        *ret_safe = j->refusal;
        return false;
    }
    j->plan.human_id = dgm_arena_dup(j->arena, plan.human_id);
    plan.resume =
        j->plan.resume; /* of a run that goes on, the question is not the task's status any more */
    put_params(j, &plan, out);
    if (out->n - before > DGM_WORKER_LINE_BYTES - 4096) {
        out->n = before;
        turn.is_small = true;
        plan = dgm_graph_plan_turn(a, &turn);
        plan.resume = j->plan.resume;
        put_params(j, &plan, out);
    }
    return true;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------------ */

static void job_on_synced(void *user, const dgm_json *result, const dgm_worker_fault *fault)
{
    struct langgraph_job *j = user;
    (void)result;
    j->call = NULL;
    if (fault) /* the client has its answer; the next run of the thread does not know it */
        dgm_run_note(j->run, "state.messages was not updated: %.*s %.*s", DGM_P(fault->safe),
                     DGM_P(fault->message));
    dgm_graph_out_finish(j->out);
    job_end(j);
}

/* The messages that the graph has sent by a2a_outbox enter its state, before the client sees the end. */
static void job_sync(struct langgraph_job *j, const dgm_json *messages)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"agent\":");
    dgm_json_put_str(&b, j->agent->graph);
    dgm_buf_add_lit(&b, ",\"thread\":");
    dgm_json_put_str(&b, j->thread);
    dgm_buf_add_lit(&b, ",\"messages\":");
    dgm_json_put(&b, messages);
    dgm_buf_add_lit(&b, ",\"checkSkipText\":true}");
    j->call = dgm_worker_call_start(j->agent->pool, j->run->loop, j->thread, "state/update",
                                    dgm_buf_str(&b), SYNC_MS, job_on_synced, j);
    dgm_buf_done(&b);
}

void dgm_langgraph_finish(struct langgraph_job *j, const dgm_json *result)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json *sync = dgm_graph_out_result(j->out, a, result);
    if (sync) {
        job_sync(j, sync);
        return;
    }
    dgm_graph_out_finish(j->out);
    job_end(j);
}

static void fail_timed_out(struct langgraph_job *j)
{
    char text[80];
    snprintf(text, sizeof text, "the agent took longer than %g seconds", j->agent->timeout);
    dgm_run_report(j->run, &(dgm_run_fault){.what = dgm_str_from(text)});
    dgm_langgraph_fail(j, DGM_STATE_FAILED, dgm_str_from(text));
}

static void job_on_result(void *user, const dgm_json *result)
{
    struct langgraph_job *j = user;
    dgm_str status = dgm_json_str_member(result, "status");
    j->worker_run = NULL;
    if (j->has_failed) {
        job_end(j);
    } else if (dgm_str_is(status, "completed") || dgm_str_is(status, "interrupted")) {
        dgm_langgraph_finish(j, result);
    } else if (j->is_timed_out) {
        fail_timed_out(j);
    } else if (dgm_str_is(status, "drained") && !j->run->canceled) { /* the worker is replaced */
        j->continues = true;
        dgm_graph_out_restart(j->out);
        dgm_langgraph_send(j);
    } else {
        dgm_langgraph_fail(j, DGM_STATE_CANCELED, (dgm_str){0});
    }
}

/* ---- faults ------------------------------------------------------------------------------------------------------------------------ */

/* The class and the traceback are for the operator. */
static void report_error(struct langgraph_job *j, const dgm_worker_fault *fault, dgm_str what)
{
    dgm_str type = dgm_json_str_member(fault->data, "type"),
            trace = dgm_json_str_member(fault->data, "traceback");
    dgm_str detail = fault->detail;
    if (fault->kind == DGM_WORKER_ERROR)
        detail = dgm_arena_printf(j->arena, "%.*s%s%.*s%s%.*s", DGM_P(type), type.n ? ": " : "",
                                  DGM_P(fault->message), trace.n ? "\n" : "", DGM_P(trace));
    dgm_run_report(j->run, &(dgm_run_fault){what, detail, fault->output});
}

static dgm_str error_text(const struct langgraph_job *j, const dgm_worker_fault *fault)
{
    dgm_str own = {fault->message.p, fault->message.n < 1000 ? fault->message.n : 1000};
    switch (fault->code) {
    case DGM_WORKER_RECURSION:
        return dgm_arena_printf(j->arena,
                                "the graph did not end within %lld steps (recursion_limit)",
                                (long long)j->agent->recursion_limit);
    case DGM_WORKER_BAD_LINE:
        return DGM_STR("the graph has a value that cannot be sent: it is too large, or not JSON");
    case DGM_WORKER_THREAD_BUSY: return DGM_STR("the conversation is busy, try again later");
    default: break;
    }
    if (j->agent->exposes_errors && fault->code == DGM_WORKER_RAISED && own.n)
        return own;
    return DGM_STR("the agent failed");
}

static void job_on_error(void *user, const dgm_worker_fault *fault)
{
    struct langgraph_job *j = user;
    j->worker_run = NULL;
    if (j->has_failed) {
        job_end(j);
    } else if (j->is_timed_out) {
        fail_timed_out(j);
    } else if (j->run->canceled) {
        dgm_langgraph_fail(j, DGM_STATE_CANCELED, (dgm_str){0});
    } else if (fault->kind == DGM_WORKER_ERROR && fault->code == DGM_WORKER_REJECTED) {
        dgm_langgraph_fail(j, DGM_STATE_REJECTED, fault->message);
    } else if (fault->kind == DGM_WORKER_ERROR) {
        dgm_str text = error_text(j, fault);
        report_error(j, fault, text);
        dgm_langgraph_fail(j, DGM_STATE_FAILED, text);
    } else if (fault->kind == DGM_WORKER_LOST) {
        dgm_run_note(j->run, "its worker was lost: %.*s %.*s", DGM_P(fault->safe),
                     DGM_P(fault->detail));
        dgm_graph_out_restart(j->out);
        dgm_langgraph_recover(j);
    } else if (j->refusal) {
        dgm_langgraph_fail(j, DGM_STATE_REJECTED, dgm_str_from(j->refusal));
    } else {
        report_error(j, fault, fault->safe);
        dgm_langgraph_fail(j, DGM_STATE_FAILED, fault->safe);
    }
}

void dgm_langgraph_send(struct langgraph_job *j)
{
    static const dgm_worker_run_handler handler = {.write_params = job_write_params,
                                                   .on_event = job_on_event,
                                                   .on_log = job_on_log,
                                                   .on_result = job_on_result,
                                                   .on_error = job_on_error,
                                                   .is_full = job_is_full};
    dgm_worker_run_handler own = handler;
    own.user = j;
    own.fence = dgm_worker_fence_of(j->run);
    j->attempt++;
    j->worker_run = dgm_worker_run_start(j->agent->pool, j->run->loop, j->thread, &own);
}

static void job_on_timeout(void *arg)
{
    struct langgraph_job *j = arg;
    j->is_timed_out = true;
    if (j->worker_run)
        dgm_worker_run_cancel(j->worker_run);
    else
        fail_timed_out(j);
}

/* ---- notes --------------------------------------------------------------------------------------------------------------------------- */

/* The request's metadata is not stored by the core, and the interrupts that are answered are not the task's status any more. */
void dgm_langgraph_remember(struct langgraph_job *j)
{
    static const char *const kinds[] = {"input", "resume", "continue", "", ""};
    dgm_run *run = j->run;
    dgm_buf b;
    if (!run->ops->remember || !j->agent->is_durable)
        return;
    dgm_buf_init(&b, DGM_MAX_RUN_NOTE_BYTES);
    dgm_buf_printf(&b, "{\"kind\":\"%s\",\"message\":", kinds[j->plan.kind]);
    dgm_json_put_str(&b, run->input->message->message_id);
    dgm_buf_add_lit(&b, ",\"thread\":");
    dgm_json_put_str(&b, j->thread);
    dgm_buf_printf(&b, ",\"continued\":%u,\"resume\":", j->n_continued);
    dgm_json_put(&b, j->plan.resume);
    dgm_buf_add_lit(&b, ",\"metadata\":");
    dgm_json_put(&b, j->metadata);
    dgm_buf_add_char(&b, '}');
    if (!b.over)
        run->ops->remember(run, DGM_RUN_TASK, dgm_buf_str(&b), NULL, NULL);
    dgm_buf_done(&b);
}

/* ---- start ----------------------------------------------------------------------------------------------------------------------------- */

static void job_open_output(struct langgraph_job *j)
{
    const dgm_run_input *in = j->run->input;
    dgm_graph_options o = {.task_id = in->task_id,
                           .context_id = in->context_id,
                           .message = in->message,
                           .task = in->task,
                           .tools = j->tools,
                           .has_messages = true,
                           .is_rerun = in->is_resumed};
    o.mint.seed[0] = dgm_hash(1, in->task_id.p, in->task_id.n);
    o.mint.seed[1] =
        dgm_hash(2, in->message->message_id.p, in->message->message_id.n) ^ uv_hrtime();
    j->out = dgm_graph_out_new(&o, (dgm_graph_sink){job_on_emit, job_on_note, j});
}

/* The thread is known. */
static void graph_job_begin(struct langgraph_job *j)
{
    dgm_err err = {0};
    dgm_graph_turn turn = job_turn(j, NULL);
    dgm_graph_plan plan = dgm_graph_plan_turn(j->arena, &turn);
    j->plan.kind = plan.kind;
    j->plan.resume = plan.resume;
    j->continues = plan.kind == DGM_GRAPH_CONTINUE;
    if (plan.kind == DGM_GRAPH_ASK_AGAIN) {
        dgm_graph_out_ask(j->out, &turn, plan.why);
        job_end(j);
        return;
    }
    if (dgm_run_status(j->run, DGM_STATE_WORKING, (dgm_str){0}, &err))
        dgm_run_note(j->run, "an event was rejected: %s", err.msg);
    dgm_langgraph_remember(j);
    dgm_langgraph_send(j);
}

static void job_set_thread(struct langgraph_job *j, uint32_t number)
{
    dgm_str base = dgm_worker_thread(j->arena, j->run->input);
    j->thread = number ? dgm_arena_printf(j->arena, "%.*s-%u", DGM_P(base), number) : base;
}

/* The note of the context: {"thread": number}. A transcript starts the next one. */
static void job_on_context(void *arg, dgm_str text)
{
    struct langgraph_job *j = arg;
    dgm_run *run = j->run;
    yyjson_val *note = NULL;
    int64_t number = 0;
    char stored[60];
    if (text.n &&
        !dgm_json_read(j->arena, text, DGM_MAX_RUN_NOTE_BYTES, "run_note_bytes", &note, NULL))
        (void)dgm_json_int(dgm_json_get(note, DGM_STR("thread")), &number);
    if (dgm_graph_has_transcript(run->input->message)) {
        number++;
        snprintf(stored, sizeof stored, "{\"thread\":%lld}", (long long)number);
        if (run->ops->remember)
            run->ops->remember(run, DGM_RUN_CONTEXT, dgm_str_from(stored), NULL, NULL);
    }
    job_set_thread(j, (uint32_t)number);
    graph_job_begin(j);
}

/* The note of the task: what the lost process was doing. */
static void job_on_task_note(void *arg, dgm_str text)
{
    struct langgraph_job *j = arg;
    yyjson_val *note = NULL;
    int64_t continued = 0;
    if (!text.n ||
        dgm_json_read(j->arena, dgm_arena_dup(j->arena, text), DGM_MAX_RUN_NOTE_BYTES,
                      "run_note_bytes", &note, NULL) ||
        !dgm_str_eq(dgm_json_str_member(note, "message"), j->run->input->message->message_id)) {
        if (j->run->ops->recall) /* it had not come far enough to store one */
            j->run->ops->recall(j->run, DGM_RUN_CONTEXT, job_on_context, j);
        else
            job_on_context(j, (dgm_str){0});
        return;
    }
    dgm_str kind = dgm_json_str_member(note, "kind");
    j->thread = dgm_json_str_member(note, "thread");
    j->plan.kind = dgm_str_is(kind, "resume")     ? DGM_GRAPH_RESUME
                   : dgm_str_is(kind, "continue") ? DGM_GRAPH_CONTINUE
                                                  : DGM_GRAPH_INPUT;
    j->plan.resume = dgm_json_non_null(note, "resume");
    (void)dgm_json_int(dgm_json_get(note, DGM_STR("continued")), &continued);
    j->n_continued = (unsigned)continued;
    if (dgm_json_non_null(note, "metadata"))
        j->metadata = dgm_json_get(note, DGM_STR("metadata"));
    j->tools = dgm_graph_tools(j->run->input->message, j->metadata);
    dgm_graph_out_set_tools(j->out, j->tools);
    dgm_langgraph_recover(j);
}

static void langgraph_start(void *agent, dgm_run *run)
{
    dgm_arena *a = dgm_arena_new();
    struct langgraph_job *j = dgm_new(a, struct langgraph_job);
    const dgm_run_input *in = run->input;
    j->arena = a;
    j->run = run;
    j->agent = agent;
    j->is_resumed = in->is_resumed;
    j->metadata = dgm_run_metadata(a, in);
    j->tools = dgm_graph_tools(in->message, in->metadata);
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timeout, job_on_timeout, j);
    dgm_timer_start(&j->timeout, (uint64_t)(j->agent->timeout * 1000));
    job_open_output(j);
    if (!run->ops->recall)
        job_on_context(j, (dgm_str){0});
    else if (in->is_resumed)
        run->ops->recall(run, DGM_RUN_TASK, job_on_task_note, j);
    else
        run->ops->recall(run, DGM_RUN_CONTEXT, job_on_context, j);
}

static void langgraph_cancel(void *agent, dgm_run *run)
{
    struct langgraph_job *j = run->agent_data;
    (void)agent;
    if (!j)
        return;
    if (run->suspended)
        job_end(j); /* the next process asks the graph's thread how far it came */
    else if (j->worker_run)
        dgm_worker_run_cancel(j->worker_run);
    else
        dgm_langgraph_fail(j, DGM_STATE_CANCELED, (dgm_str){0});
}

static void langgraph_prepare(void *agent, dgm_loops *loops)
{
    dgm_worker_pool_prepare(((struct langgraph *)agent)->pool, loops);
}

static void langgraph_retire(void *agent, bool wait)
{
    dgm_worker_pool_retire(((struct langgraph *)agent)->pool, wait);
}

static bool langgraph_resumes(void *agent)
{
    return ((const struct langgraph *)agent)->is_durable;
}

static dgm_str langgraph_describe(void *agent, dgm_arena *a)
{
    const struct langgraph *x = agent;
    return dgm_worker_pool_describe(x->pool, x->graph, a);
}

static const dgm_inner inner = {
    .open = dgm_langgraph_open,
    .close = dgm_langgraph_close,
    .start = langgraph_start,
    .cancel = langgraph_cancel,
    .prepare = langgraph_prepare,
    .retire = langgraph_retire,
    .resumes = langgraph_resumes,
    .describe = langgraph_describe,
    .has_only_tasks = true,
};
DGM_SHAPED_OPEN(langgraph_open_shaped, inner)

const dgm_backend dgm_backend_langgraph = {
    .type = "langgraph",
    .settings = dgm_langgraph_settings,
    .about = "a graph of LangGraph, in Python or JavaScript",
    .can_resume = true,
    .has_threads = true,
    .foreign = true,
    .reply = DGM_REPLY_TASK,
    .card = card,
    DGM_SHAPED(langgraph_open_shaped),
};
