/*
 * backend/llm/llm_agents.c - other agents as tools: one of this server (dgm_run_ops.invoke), or an A2A agent of another one.
 *
 * The latter runs as an agent of the type a2a, with a run of our own: its events are folded here, and no client sees them.
 * The result is the text of the answer. A question of the agent becomes a question of the call; its state is the task that
 * waits.
 */
#include "backend/llm/llm_tools_int.h"
#include "base/limits.h"
#include "model/fold.h"
#include "json/build.h"

struct llm_sub {
    dgm_run run;                /* of a remote agent; first: its ops find the rest */
    struct llm_tool_call *call; /* NULL: it does not wait for the answer any more */
    struct llm_job *job;
    struct llm_sub *next; /* of those without a call */
    dgm_run_input input;
    dgm_message message;
    dgm_task before; /* the task that waits, for an answer to its question */
    dgm_part part;
    dgm_run_invoked *invoked; /* of a local agent; NULL: it has ended */
    dgm_fold *fold;
    dgm_str answer; /* of an agent that answers with a Message; absent: none */
    dgm_timer timer;
    dgm_str note; /* of the type a2a: where the task is on the other server */
    void (*found)(void *arg, dgm_str text);
    void *found_arg;
    dgm_str found_text;
    dgm_arena *arena;
    const char *error;
    bool is_remote;
    bool is_over; /* the remote agent has ended its run */
};

const char dgm_llm_agent_parameters[] =
    "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\",\"description\":"
    "\"the message to the agent: everything that it needs to know\"}},\"required\":[\"message\"],"
    "\"additionalProperties\":false}";

/* ---- the end --------------------------------------------------------------------------------------------------------- */

static void sub_on_closed(void *arg)
{
    struct llm_sub *s = arg;
    dgm_fold_free(s->fold);
    dgm_arena_free(s->arena); /* the sub is in it */
}

static void sub_free(struct llm_sub *s)
{
    if (s->call)
        s->call->sub = NULL;
    dgm_timer_close(&s->timer, sub_on_closed, s);
}

/* The texts of the answer: of the last message, or of the artifacts. */
static dgm_str sub_text(struct llm_sub *s, const dgm_task *task)
{
    dgm_buf b;
    const dgm_message *m = task->status.message;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(&b, m->parts.at[i].content);
        else if (m->parts.at[i].kind == DGM_PART_DATA)
            dgm_json_put(&b, m->parts.at[i].data);
    }
    for (size_t i = 0; !b.n && i < task->artifacts.n; i++) {
        if (i && b.n)
            dgm_buf_add_lit(&b, "\n\n");
        dgm_buf_add_str(&b, dgm_parts_text(task->artifacts.at[i].parts, s->arena));
    }
    dgm_str text = dgm_arena_dup(s->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* {"task": id} of a local agent, {"note": text} of a remote one. */
static const dgm_json *sub_state(struct llm_sub *s, const dgm_task *task)
{
    dgm_json_build b = dgm_json_build_start(s->arena);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "task", task->id);
    if (s->note.n)
        dgm_json_build_str(&b, "note", s->note);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static void sub_fail(struct llm_sub *s, dgm_str why)
{
    struct llm_tool_call *call = s->call;
    dgm_llm_event event = {.kind = DGM_LLM_TOOL_DONE,
                           .result = {.call_id = call->id, .is_error = true, .text = why}};
    sub_free(s);
    dgm_llm_tool_finish(call, &event);
}

/* The agent's turn is over. */
static void sub_finish(struct llm_sub *s)
{
    const dgm_task *task = s->fold ? dgm_fold_task(s->fold) : NULL;
    struct llm_tool_call *call = s->call;
    dgm_llm_event event = {.kind = DGM_LLM_TOOL_DONE};
    if (!task && !s->answer.p) {
        sub_fail(s, dgm_str_from(s->error ? s->error : "the agent did not answer"));
        return;
    }
    dgm_str text = s->answer.p ? s->answer : sub_text(s, task);
    dgm_task_state state = s->answer.p ? DGM_STATE_COMPLETED : task->status.state;
    if (state == DGM_STATE_INPUT_REQUIRED || state == DGM_STATE_AUTH_REQUIRED) {
        event.kind = DGM_LLM_TOOL_ASKS;
        event.question =
            (dgm_llm_question){.call_id = call->id, .text = text, .state = sub_state(s, task)};
    } else {
        bool is_error = state != DGM_STATE_COMPLETED;
        if (is_error)
            text = dgm_arena_printf(s->arena, "the agent %s%s%.*s",
                                    state == DGM_STATE_REJECTED   ? "rejected the message"
                                    : state == DGM_STATE_CANCELED ? "was canceled"
                                                                  : "failed",
                                    text.n ? ": " : "", DGM_P(text));
        event.result = (dgm_llm_result){.call_id = call->id,
                                        .is_error = is_error,
                                        .text = text,
                                        .agent_task_id = task ? task->id : (dgm_str){0}};
    }
    sub_free(s);
    dgm_llm_tool_finish(call, &event);
}

static void sub_add(struct llm_sub *s, const dgm_event *event)
{
    dgm_err err = {0};
    if (event->kind == DGM_EVENT_MESSAGE && !s->fold) {
        s->answer = dgm_arena_dup(s->arena, dgm_parts_text(event->message->parts, s->arena));
        return;
    }
    if (!s->fold)
        s->fold = dgm_fold_new((dgm_fold_options){.foreign = true});
    if (dgm_fold_cost_of(s->fold).copied <= 2 * DGM_MAX_RECORD_BYTES)
        dgm_fold_add(s->fold, event, DGM_BY_SERVER, &err); /* faults of an agent change nothing */
}

/* ---- an agent of this server -------------------------------------------------------------------------------------------- */

static void invoked_on_event(void *arg, const dgm_event *event)
{
    sub_add(arg, event);
}

static void invoked_on_end(void *arg, dgm_task_state state, const dgm_err *error)
{
    struct llm_sub *s = arg;
    (void)state; /* the fold has it */
    s->invoked = NULL;
    if (error)
        s->error = dgm_arena_dup(s->arena, dgm_str_from(error->msg)).p;
    if (s->call) {
        sub_finish(s);
        return;
    }
    struct llm_sub **at = &s->job->left_subs;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    sub_free(s);
}

static bool sub_invoke(struct llm_sub *s, dgm_err *err)
{
    dgm_run *run = s->call->job->run;
    dgm_run_invocation what = {.agent = s->call->setting->agent, .message = &s->message};
    dgm_run_invoked_handler handler = {
        .on_event = invoked_on_event, .on_end = invoked_on_end, .arg = s};
    if (!run->ops->invoke) {
        dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL, "there are no other agents");
        return false;
    }
    return !run->ops->invoke(run, &what, &handler, &s->invoked, err);
}

/* ---- an agent of another server ------------------------------------------------------------------------------------------- */

static dgm_code sub_on_emit(dgm_run *run, const dgm_event *event, dgm_err *err)
{
    struct llm_sub *s = (struct llm_sub *)run;
    (void)err;
    sub_add(s, event);
    return DGM_OK;
}

/* From inside a call of the agent's: the rest follows later. */
static void sub_on_end(dgm_run *run, const char *error)
{
    struct llm_sub *s = (struct llm_sub *)run;
    s->is_over = true;
    if (error)
        s->error = dgm_arena_dup(s->arena, dgm_str_from(error)).p;
    dgm_timer_start(&s->timer, 0);
}

static bool sub_is_full(const dgm_run *run)
{
    (void)run;
    return false;
}

static void sub_on_note(dgm_run *run, dgm_str line)
{
    struct llm_sub *s = (struct llm_sub *)run;
    if (s->call)
        dgm_run_note(s->call->job->run, "%.*s", DGM_P(line));
}

static void sub_remember(dgm_run *run, dgm_run_scope scope, dgm_str text,
                         void (*stored)(void *arg, dgm_code code), void *arg)
{
    struct llm_sub *s = (struct llm_sub *)run;
    (void)stored; /* the caller does not wait for a note that is in memory */
    (void)arg;
    if (scope == DGM_RUN_TASK)
        s->note = dgm_arena_dup(s->arena, text);
}

static void sub_recall(dgm_run *run, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                       void *arg)
{
    struct llm_sub *s = (struct llm_sub *)run;
    s->found = found;
    s->found_arg = arg;
    s->found_text = scope == DGM_RUN_TASK ? s->note : (dgm_str){0};
    dgm_timer_start(&s->timer, 0);
}

static const dgm_run_ops sub_ops = {.emit = sub_on_emit,
                                    .end = sub_on_end,
                                    .is_full = sub_is_full,
                                    .note = sub_on_note,
                                    .remember = sub_remember,
                                    .recall = sub_recall};

static void sub_on_timer(void *arg)
{
    struct llm_sub *s = arg;
    void (*found)(void *, dgm_str) = dgm_take(s->found);
    if (s->is_over && s->call)
        sub_finish(s);
    else if (s->is_over)
        sub_free(s);
    else if (found)
        found(s->found_arg, s->found_text);
}

/* Copied: the agent may need a moment to stop, when call and run have ended. */
static void sub_run_remote(struct llm_sub *s)
{
    const dgm_run_input *in = s->call->job->run->input;
    dgm_arena *a = s->arena;
    dgm_task start = {.id = dgm_arena_dup(a, s->call->id),
                      .context_id = dgm_arena_dup(a, in->context_id),
                      .status.state = DGM_STATE_SUBMITTED};
    s->input = (dgm_run_input){.message = &s->message,
                               .task_id = start.id,
                               .context_id = start.context_id,
                               .agent = dgm_arena_dup(a, in->agent),
                               .tenant = dgm_arena_dup(a, in->tenant),
                               .principal = dgm_arena_dup(a, in->principal)};
    if (s->note.n) {
        s->before = start;
        s->before.status.state = DGM_STATE_INPUT_REQUIRED;
        s->input.task = &s->before;
    }
    s->is_remote = true;
    s->run =
        (dgm_run){.ops = &sub_ops, .input = &s->input, .loop = s->call->job->run->loop, .arena = a};
    sub_add(s, &(dgm_event){.kind = DGM_EVENT_TASK, .task = &start});
    dgm_backend_a2a.start(s->call->setting->remote, &s->run);
}

/* ---- public -------------------------------------------------------------------------------------------------------------------- */

/* state: of a question that this message answers; NULL: a new task. */
static void sub_start(struct llm_tool_call *call, dgm_str text, dgm_str message_id,
                      const dgm_json *state)
{
    dgm_arena *a = dgm_arena_new();
    struct llm_sub *s = dgm_new(a, struct llm_sub);
    dgm_err err = {0};
    s->arena = a;
    s->call = call;
    s->job = call->job;
    call->sub = s;
    dgm_timer_init(call->job->run->loop, &s->timer, sub_on_timer, s);
    s->part = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_arena_dup(a, text)};
    s->message = (dgm_message){
        .message_id = dgm_arena_dup(a, message_id), .role = DGM_ROLE_USER, .parts = {&s->part, 1}};
    s->note = dgm_arena_dup(a, dgm_json_str_member(state, "note"));
    if (call->setting->type == LLM_TOOL_REMOTE_AGENT) {
        sub_run_remote(s);
        return;
    }
    s->message.task_id = dgm_arena_dup(a, dgm_json_str_member(state, "task"));
    if (!sub_invoke(s, &err)) {
        s->error = dgm_arena_dup(a, dgm_str_from(err.msg)).p;
        s->is_over = true;
        dgm_timer_start(&s->timer, 0);
    }
}

void dgm_llm_agent_start(struct llm_tool_call *call, const dgm_llm_tool_run *run)
{
    sub_start(call, dgm_json_str_member(run->arguments, "message"), run->key, NULL);
}

void dgm_llm_agent_answer(struct llm_tool_call *call, const dgm_llm_answer *answer)
{
    /* a further message of the same call: its id must be its own, and the same after a restart */
    dgm_str id = dgm_arena_printf(call->arena, "%.*s-%016llx", DGM_P(answer->key),
                                  (unsigned long long)dgm_hash(1, answer->text.p, answer->text.n));
    sub_start(call,
              answer->kind == DGM_LLM_DECLINED && !answer->text.n ? DGM_STR("no") : answer->text,
              id, answer->state);
}

void dgm_llm_agent_stop(struct llm_tool_call *call)
{
    struct llm_sub *s = call->sub;
    if (!s)
        return;
    call->sub = NULL;
    s->call = NULL;
    if (s->is_remote && !s->is_over) {
        s->run.canceled = true;
        s->run.suspended = call->job->run->suspended;
        dgm_backend_a2a.cancel(call->setting->remote, &s->run); /* ends the run, now or later */
    } else if (s->invoked) { /* its end follows, or the end of the run */
        dgm_run *run = s->job->run;
        s->next = s->job->left_subs;
        s->job->left_subs = s;
        if (!run->suspended)
            run->ops->cancel_invoked(s->invoked);
    } else {
        sub_free(s);
    }
}

void dgm_llm_agents_done(struct llm_job *j)
{
    while (j->left_subs) {
        struct llm_sub *s = j->left_subs;
        j->left_subs = s->next;
        sub_free(s);
    }
}
