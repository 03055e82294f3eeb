/* core/test_invoke.c - agents of one server that invoke each other. */
#include "core/test_core.h"

/* ---- agent one invokes agent two, which does what the message asks for (test_core.h) ------------------------------------- */

static char seen[512]; /* kinds of events, then the end */
static char child_task[64], child_context[64], parent_of_child[64];
static int n_events;
static _Atomic int n_ends, deepest, n_canceled_children;
static dgm_run_invoked *invocation;
static sem_t was_seen; /* an event of the invoked task */

static dgm_code invoke_text(dgm_run *run, const char *agent, const char *id, dgm_str text,
                            const char *task, dgm_err *err);

static void finish_with(dgm_run *run, const char *text)
{
    status(run, DGM_STATE_COMPLETED, text);
    run->ops->end(run, NULL);
}

static void copy_text(char *to, size_t size, dgm_str s)
{
    snprintf(to, size, "%.*s", DGM_P(s));
}

static void invoker_on_event(void *arg, const dgm_event *e)
{
    const dgm_run *run = arg;
    static const char kinds[] = {[DGM_EVENT_TASK] = 't',
                                 [DGM_EVENT_MESSAGE] = 'm',
                                 [DGM_EVENT_STATUS] = 's',
                                 [DGM_EVENT_ARTIFACT] = 'a',
                                 [DGM_EVENT_INTERNAL] = 'i'};
    assert_ptr_equal(dgm_loop_current(), run->loop);
    size_t n = strlen(seen);
    if (n < 40 && !(n && seen[n - 1] == 'a' && e->kind == DGM_EVENT_ARTIFACT)) {
        seen[n] = kinds[e->kind];
        seen[n + 1] = 0;
    }
    n_events++;
    if (e->kind == DGM_EVENT_TASK) {
        const dgm_json *parent =
            dgm_json_get(e->task->history.at[0].metadata, DGM_STR(DGM_META_PARENT_TASK));
        assert_non_null(parent);
        copy_text(parent_of_child, sizeof parent_of_child, dgm_json_str(parent));
        copy_text(child_task, sizeof child_task, e->task->id);
        copy_text(child_context, sizeof child_context, e->task->context_id);
    }
    sem_post(&was_seen);
}

static void invoker_on_end(void *arg, dgm_task_state state, const dgm_err *error)
{
    dgm_run *run = arg;
    char text[600];
    dgm_err err = {0};
    invocation = NULL;
    n_ends++;
    if (state == DGM_STATE_INPUT_REQUIRED &&
        !invoke_text(run, "two", "i-2", DGM_STR("answer"), child_task, &err))
        return;
    snprintf(text, sizeof text, "%s %s", seen,
             error                          ? error->msg
             : state == DGM_STATE_COMPLETED ? "completed"
             : state == DGM_STATE_FAILED    ? "failed"
                                            : "another state");
    n_canceled_children += state == DGM_STATE_CANCELED;
    if (run->canceled) {
        assert_int_equal(invoke_text(run, "two", "i-3", DGM_STR("hold"), NULL, &err),
                         DGM_UNAVAILABLE);
        run->ops->end(run, NULL);
    } else
        finish_with(run, text);
}

static dgm_code invoke_text(dgm_run *run, const char *agent, const char *id, dgm_str text,
                            const char *task, dgm_err *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_message m = {.message_id = dgm_str_from(id),
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .task_id = dgm_str_from(task)};
    dgm_run_invocation what = {.agent = dgm_str_from(agent), .message = &m};
    dgm_run_invoked_handler handler = {invoker_on_event, invoker_on_end, run};
    return run->ops->invoke(run, &what, &handler, &invocation, err);
}

/* Invokes itself as long as it may. */
static void nest(dgm_run *run, int depth)
{
    char text[32];
    dgm_err err = {0};
    snprintf(text, sizeof text, "nest %d", depth + 1);
    deepest = depth;
    if (!invoke_text(run, "one", "i-1", dgm_str_from(text), NULL, &err))
        return;
    assert_int_equal(err.code, DGM_UNSUPPORTED_OPERATION);
    finish_with(run, "deep enough");
}

static void invoker_start(void *agent, dgm_run *run)
{
    dgm_str text = run->input->message->parts.at[0].content;
    dgm_err err = {0};
    if (dgm_str_is(run->input->agent, "two") && dgm_str_is(text, "decline")) {
        dgm_fail(&err, DGM_CONTENT_TYPE_NOT_SUPPORTED, NULL, "no");
        run->ops->refuse(run, &err);
        return;
    }
    if (dgm_str_is(run->input->agent, "two")) {
        agent_start(agent, run);
        return;
    }
    if (!run->input->is_resumed)
        status(run, DGM_STATE_WORKING, NULL);
    if (dgm_str_starts(text, DGM_STR("nest"))) {
        nest(run, atoi(text.p + 5));
        return;
    }
    if (dgm_str_is(text, "unknown")) {
        assert_int_equal(invoke_text(run, "three", "i-1", text, NULL, &err), DGM_BAD_PARAMS);
        finish_with(run, err.msg);
        return;
    }
    seen[0] = 0;
    assert_int_equal(invoke_text(run, "two", "i-1", text, NULL, &err), DGM_OK);
    assert_int_equal(invoke_text(run, "two", "i-1", text, NULL, &err), DGM_BAD_PARAMS);
    if (dgm_str_is(text, "silent")) /* ends before the answer comes */
        finish_with(run, "did not wait");
}

static void invoker_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    if (!run->suspended && dgm_str_is(run->input->agent, "one") && !n_ends)
        return; /* waits for the end of the invoked task, as a test of it */
    n_canceled++;
    run->ops->end(run, NULL);
}

static const dgm_backend invoking = {
    .type = "invoking", .can_resume = true, .start = invoker_start, .cancel = invoker_cancel};

static void start_invoking(struct env *e, void **state)
{
    backend_of_agents = &invoking;
    seen[0] = child_task[0] = child_context[0] = parent_of_child[0] = 0;
    n_events = 0;
    n_ends = deepest = n_canceled_children = 0;
    sem_init(&was_seen, 0, 0);
    start_env(e, state, 0);
}

/* The text of the final status. */
static void check_final(struct env *e, const char *text, const char *expected)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    struct step *s = send_text(e, text, NULL, NULL);
    check_ok(s->code, s->err);
    read_all(e, s, 0);
    assert_int_equal(dgm_record_event(s->records[s->n - 1], a, &event, NULL), DGM_OK);
    check_str(event.status->status.message->parts.at[0].content, expected);
    if (child_task[0]) {
        assert_string_equal(parent_of_child, s->task);
        assert_string_equal(child_context, s->context);
    }
    clear(s);
}

static dgm_task_state state_of(struct env *e, const char *agent, const char *task)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *s = new_step();
    s->task_id = dgm_str_from(task);
    s->agent = dgm_str_from(agent);
    do_step(e, s, 1, get_it);
    check_ok(s->code, s->err);
    dgm_task_state state = read_task(a, s->snapshot).status.state;
    clear(s);
    return state;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void an_agent_follows_the_one_it_invokes(void **state)
{
    struct env e;
    start_invoking(&e, state);
    check_final(&e, "chunks", "tsas completed");
    assert_int_equal(n_events, 203);
    child_task[0] = 0; /* an answer without a task */
    check_final(&e, "message", "m completed");
    check_final(&e, "fail", "tss failed");
    check_final(&e, "ask", "tsts completed"); /* the question, then the task with the answer */
    assert_int_equal(state_of(&e, "two", child_task), DGM_STATE_COMPLETED);
    child_task[0] = 0;
    check_final(&e, "decline", " no");
    check_final(&e, "unknown", "unknown agent \"three\"");
    stop_env(&e);
}

static void no_event_comes_after_the_end(void **state)
{
    struct env e;
    start_invoking(&e, state);
    check_final(&e, "silent", "did not wait");
    stop_env(&e);
    assert_int_equal(n_events, 0);
    assert_int_equal(n_ends, 0);
}

static void a_canceled_run_cancels_those_it_invoked(void **state)
{
    struct env e;
    start_invoking(&e, state);
    struct step *s = send_text(&e, "hold", NULL, NULL);
    sem_wait(&was_seen); /* the task */
    sem_wait(&was_seen); /* works */
    struct step *canceled = new_step();
    canceled->task_id = dgm_str_from(s->task);
    post_step(&e, canceled, 0, cancel_it);
    sem_wait(&canceled->done);
    assert_int_equal(canceled->code, DGM_OK);
    assert_int_equal(n_canceled_children, 1);
    assert_int_equal(state_of(&e, "two", child_task), DGM_STATE_CANCELED);
    clear(canceled);
    clear(s);
    stop_env(&e);
}

static void there_is_a_limit_of_depth(void **state)
{
    struct env e;
    start_invoking(&e, state);
    struct step *s = send_text(&e, "nest 0", NULL, NULL);
    check_ok(s->code, s->err);
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(deepest, DGM_MAX_INVOKE_DEPTH);
    assert_string_not_equal(child_context,
                            s->context); /* it has not the conversation of its parent */
    clear(s);
    stop_env(&e);
}

static size_t count_tasks(struct env *e)
{
    return (size_t)dgm_core_stats_of(e->core).tasks;
}

static void a_resumed_run_finds_what_it_invoked(void **state)
{
    struct env e;
    char child[64];
    start_invoking(&e, state);
    struct step *s = send_text(&e, "hold", NULL, NULL);
    sem_wait(&was_seen);
    sem_wait(&was_seen);
    snprintf(child, sizeof child, "%s", child_task);
    restart(&e);
    sem_init(&was_seen, 0, 0);
    child_task[0] = 0;
    recover_tasks(&e);
    sem_wait(&was_seen); /* its log from the first record on */
    assert_string_equal(child_task, child);
    for (int i = 0; i < 5000 && !held; i++)
        uv_sleep(1);
    dgm_run *run = held; /* the invoked one was resumed, too */
    assert_non_null(run);
    struct step *all = ask(&e, s->task, NULL, subscribe_it, 0);
    dgm_loop_post(run->loop, let_it_ask, run); /* and is answered by the one that has invoked it */
    read_all(&e, all, 0);
    assert_int_equal(all->records[all->n - 1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(count_tasks(&e), 0); /* since the restart */
    clear(all);
    clear(s);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(an_agent_follows_the_one_it_invokes), ON_BOTH(no_event_comes_after_the_end),
              ON_BOTH(a_canceled_run_cancels_those_it_invoked), ON_BOTH(there_is_a_limit_of_depth),
              ON_BOTH(a_resumed_run_finds_what_it_invoked))
