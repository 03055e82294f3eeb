/* core/test_run_memory.c - what agents know of earlier runs: texts that they stored, the conversation, a run that a restart
 * interrupted. */
#include "core/test_core.h"

/* ---- an agent that remembers -------------------------------------------------------------------------------------- */

static _Atomic int n_late, n_resumed; /* callbacks after the end of a run; runs that were resumed */
static _Atomic bool was_undecided;

static void complete(dgm_run *run, const char *text)
{
    status(run, DGM_STATE_COMPLETED, text);
    run->ops->end(run, NULL);
}

static void on_stored(void *arg, dgm_code code)
{
    complete(arg, code == DGM_OK ? "stored" : code == DGM_TOO_LARGE ? "too large" : "not stored");
}

static void on_found(void *arg, dgm_str text)
{
    dgm_run *run = arg;
    char found[64];
    snprintf(found, sizeof found, "%.*s", text.p ? (int)text.n : 4, text.p ? text.p : "none");
    complete(run, found);
}

static void on_late(void *arg, dgm_str text)
{
    (void)arg, (void)text;
    n_late++;
}

static void on_late_stored(void *arg, dgm_code code)
{
    (void)arg, (void)code;
    n_late++;
}

/* The history as text: u:hi|a:hello| */
static void put_history(dgm_buf *b, const dgm_run_input *in)
{
    for (size_t i = 0; i < in->history.n; i++) {
        const dgm_message *m = &in->history.at[i];
        dgm_buf_add_str(b, m->role == DGM_ROLE_USER ? DGM_STR("u:") : DGM_STR("a:"));
        for (size_t k = 0; k < m->parts.n; k++)
            dgm_buf_add_str(b, m->parts.at[k].kind == DGM_PART_TEXT ? m->parts.at[k].content
                                                                    : DGM_STR("+"));
        dgm_buf_add_char(b, '|');
    }
}

static void answer_with_history(dgm_run *run)
{
    dgm_buf b;
    dgm_buf_init(&b, (size_t)1 << 20);
    put_history(&b, run->input);
    dgm_buf_add_char(&b, 0);
    complete(run, b.p);
    dgm_buf_done(&b);
}

static void start_again(dgm_run *run)
{
    n_resumed++;
    assert_non_null(run->input->task);
    check_str(run->input->message->parts.at[0].content, "work");
    if (n_resumed > 1) { /* the second restart finds it working */
        answer_with_history(run);
        return;
    }
    dgm_task task = {.status.state = DGM_STATE_WORKING}; /* as an agent does that starts its task */
    dgm_event e = {.kind = DGM_EVENT_TASK, .task = &task};
    assert_int_equal(run->ops->emit(run, &e, NULL), DGM_OK);
    held = run;
}

static void memory_start(void *agent, dgm_run *run)
{
    dgm_str text = run->input->message->parts.at[0].content;
    bool of_context = text.n && text.p[text.n - 1] == '!';
    dgm_run_scope scope = of_context ? DGM_RUN_CONTEXT : DGM_RUN_TASK;
    (void)agent;
    n_started++;
    if (run->input->is_resumed) {
        start_again(run);
    } else if (dgm_str_starts(text, DGM_STR("remember"))) {
        was_undecided = ((struct run *)(void *)run)->live == NULL;
        run->ops->remember(run, scope, text, on_stored, run);
    } else if (dgm_str_is(text, "too much")) {
        char *large = calloc(1, DGM_MAX_RUN_NOTE_BYTES + 1);
        run->ops->remember(run, scope, (dgm_str){large, DGM_MAX_RUN_NOTE_BYTES + 1}, on_stored,
                           run);
        free(large);
    } else if (dgm_str_is(text, "as much as possible")) {
        char *large = calloc(1, DGM_MAX_RUN_NOTE_BYTES);
        run->ops->remember(run, scope, (dgm_str){large, DGM_MAX_RUN_NOTE_BYTES}, on_stored, run);
        free(large);
    } else if (dgm_str_starts(text, DGM_STR("recall"))) {
        run->ops->recall(run, scope, on_found, run);
    } else if (dgm_str_is(text, "too late")) {
        run->ops->remember(run, scope, text, on_late_stored, run);
        run->ops->recall(run, scope, on_late, run);
        complete(run, "done");
    } else if (dgm_str_is(text, "keep for me")) { /* and asks: its task goes on */
        run->ops->remember(run, DGM_RUN_TASK, text, NULL, NULL);
        status(run, DGM_STATE_INPUT_REQUIRED, "which one?");
        run->ops->end(run, NULL);
    } else if (dgm_str_is(text, "ask")) {
        status(run, DGM_STATE_INPUT_REQUIRED, "which one?");
        run->ops->end(run, NULL);
    } else if (dgm_str_is(text, "what was said")) {
        answer_with_history(run);
    } else if (dgm_str_is(text, "stream")) {
        for (int i = 0; i < 3; i++)
            chunk(run, i == 0 ? "it" : i == 1 ? " was" : " streamed", i > 0, i == 2);
        complete(run, NULL);
    } else if (dgm_str_is(text, "work")) {
        status(run, DGM_STATE_WORKING, NULL);
        held = run;
    } else {
        char echo[100];
        snprintf(echo, sizeof echo, "yes: %.*s", DGM_P(text));
        complete(run, echo);
    }
}

static const dgm_backend remembering = {
    .type = "remembering", .wants_history = true, .start = memory_start, .cancel = agent_cancel};
static const dgm_backend resuming = {.type = "resuming",
                                     .can_resume = true,
                                     .wants_history = true,
                                     .start = memory_start,
                                     .cancel = agent_cancel};

static void start_memory(struct env *e, void **state, dgm_history_limits limits_of_history)
{
    backend_of_agents = &remembering;
    history_of_agents = limits_of_history;
    n_late = n_resumed = 0;
    start_env(e, state, 0);
}

#define MANY ((dgm_history_limits){50, 262144, true})

/* ---- sending ------------------------------------------------------------------------------------------------------- */

struct to {
    const char *context, *task, *principal, *agent, *message_id;
};

/* Sends a text, waits for the end of its turn and checks the last text. Returns the step: its task and context. */
static struct step *tell(struct env *e, const char *text, struct to to, const char *want)
{
    static _Atomic int n;
    struct step *s = new_step();
    char id[32];
    snprintf(id, sizeof id, "mem-%d", ++n);
    s->text = dgm_str_from(text);
    s->task_id = dgm_str_from(to.task);
    s->context_id = dgm_str_from(to.context);
    s->owner.principal = dgm_str_from(to.principal);
    s->agent = dgm_str_from(to.agent);
    s->message_id = dgm_str_from(to.message_id ? to.message_id : id);
    s->until_question = true;
    do_step(e, s, (size_t)n, send_it);
    if (s->code)
        fail_msg("%s: %s", text, s->err.msg);
    read_all(e, s, (size_t)n + 1);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    assert_true(s->n > 0);
    assert_int_equal(dgm_record_event(s->records[s->n - 1], a, &event, NULL), DGM_OK);
    assert_int_equal(event.kind, DGM_EVENT_STATUS);
    const dgm_message *m = event.status->status.message;
    if (want && (!m || !dgm_str_eq(m->parts.at[0].content, dgm_str_from(want))))
        fail_msg("%s: \"%.*s\", not \"%s\"", text, m ? (int)m->parts.at[0].content.n : 0,
                 m ? m->parts.at[0].content.p : "", want);
    return s;
}

static void tell_only(struct env *e, const char *text, struct to to, const char *want)
{
    clear(tell(e, text, to, want));
}

/* ---- texts of agents ------------------------------------------------------------------------------------------------ */

static void an_agent_finds_what_it_stored(void **state)
{
    struct env e;
    start_memory(&e, state, (dgm_history_limits){0});
    tell_only(&e, "recall!", (struct to){.context = "c"}, "none");
    tell_only(&e, "remember one!", (struct to){.context = "c"}, "stored");
    assert_true(was_undecided); /* the ids of its task are drawn before */
    tell_only(&e, "recall!", (struct to){.context = "c"}, "remember one!");
    tell_only(&e, "remember two!", (struct to){.context = "c"}, "stored");
    tell_only(&e, "recall!", (struct to){.context = "c"}, "remember two!");
    tell_only(&e, "recall!", (struct to){.context = "d"}, "none");
    tell_only(&e, "recall!", (struct to){.context = "c", .principal = "bob"}, "none");
    tell_only(&e, "recall!", (struct to){.context = "c", .agent = "two"}, "none");
    tell_only(&e, "recall", (struct to){.context = "c"}, "none"); /* of another task */
    tell_only(&e, "too much", (struct to){.context = "c"}, "too large");
    tell_only(&e, "as much as possible", (struct to){.context = "c"}, "stored");
    restart(&e);
    tell_only(&e, "recall!", (struct to){.context = "c"}, "remember two!");
    stop_env(&e);
}

static void a_task_finds_what_it_stored(void **state)
{
    struct env e;
    start_memory(&e, state, (dgm_history_limits){0});
    struct step *s = tell(&e, "keep for me", (struct to){.context = "c"}, "which one?");
    restart(&e);
    tell_only(&e, "recall", (struct to){.task = s->task}, "keep for me");
    clear(s);
    stop_env(&e);
}

static void no_callback_comes_after_the_end(void **state)
{
    struct env e;
    start_memory(&e, state, (dgm_history_limits){0});
    for (int i = 0; i < 20; i++)
        tell_only(&e, "too late", (struct to){0}, "done");
    tell_only(&e, "recall!", (struct to){.context = "c"}, "none"); /* behind them in every queue */
    stop_env(&e);
    assert_int_equal(n_late, 0);
}

/* ---- the conversation ------------------------------------------------------------------------------------------------ */

static void an_agent_gets_the_conversation_of_its_context(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    struct to c = {.context = "c"};
    struct step *first = tell(&e, "what was said", (struct to){0}, "");
    tell_only(&e, "what was said", (struct to){.context = first->context}, "u:what was said|");
    clear(first);
    tell_only(&e, "I am Ann", c, "yes: I am Ann");
    tell_only(&e, "stream", c, NULL);
    tell_only(&e, "what was said", c, "u:I am Ann|a:yes: I am Ann|u:stream|a:it was streamed|");
    tell_only(&e, "what was said", (struct to){.context = "d"}, "");
    tell_only(&e, "what was said", (struct to){.context = "c", .principal = "bob"}, "");
    tell_only(&e, "what was said", (struct to){.context = "c", .agent = "two"}, "");
    restart(&e);
    tell_only(&e, "what was said", c,
              "u:I am Ann|a:yes: I am Ann|u:stream|a:it was streamed|u:what was said|a:u:I am "
              "Ann|a:yes: I am Ann|u:stream|a:it was streamed||");
    stop_env(&e);
}

static void the_turns_of_a_task_are_in_it_once(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    tell_only(&e, "before", (struct to){.context = "c"}, "yes: before");
    struct step *s = tell(&e, "ask", (struct to){.context = "c"}, "which one?");
    struct step *again = tell(&e, "ask", (struct to){.task = s->task}, "which one?");
    clear(again);
    tell_only(&e, "what was said", (struct to){.task = s->task},
              "u:before|a:yes: before|u:ask|a:which one?|u:ask|a:which one?|");
    clear(s);
    stop_env(&e);
}

static void a_task_that_works_is_read_from_its_log(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    struct step *works = send_text(&e, "work", NULL, "c");
    while (!held)
        sched_yield();
    tell_only(&e, "what was said", (struct to){.context = "c"}, "u:work|");
    struct step *c = ask(&e, works->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_OK);
    clear(c);
    clear(works);
    stop_env(&e);
}

static void on_done(dgm_code code, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static void trim_it(struct step *s)
{
    dgm_store_trim(s->e->store, (dgm_retention){.turns_before_ms = dgm_loop_unix_ms() + 60000},
                   on_done, s);
}

static void trimmed_logs_change_nothing(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    struct step *said = tell(&e, "stream", (struct to){.context = "c"}, NULL);
    struct step *s = new_step();
    do_step(&e, s, 0, trim_it);
    assert_int_equal(s->code, DGM_OK);
    clear(s);
    s = ask(&e, said->task, NULL, subscribe_it, 0);
    assert_non_null(s->snapshot); /* its records are not stored any more */
    clear(s);
    tell_only(&e, "what was said", (struct to){.context = "c"}, "u:stream|a:it was streamed|");
    clear(said);
    stop_env(&e);
}

static void a_history_has_limits(void **state)
{
    struct env e;
    start_memory(&e, state, (dgm_history_limits){3, 262144, true});
    tell_only(&e, "one", (struct to){.context = "c"}, "yes: one");
    tell_only(&e, "two", (struct to){.context = "c"}, "yes: two");
    tell_only(&e, "what was said", (struct to){.context = "c"}, "a:yes: one|u:two|a:yes: two|");
    history_of_agents = (dgm_history_limits){50, 700, true};
    restart(&e);
    struct step *s = tell(&e, "what was said", (struct to){.context = "c"}, NULL);
    assert_null(strstr(s->records[s->n - 1]->bytes, "u:one"));
    clear(s);
    history_of_agents = (dgm_history_limits){0};
    restart(&e);
    uint64_t reads = dgm_store_stats_of(e.store).reads;
    tell_only(&e, "what was said", (struct to){.context = "c", .agent = "two"}, "");
    tell_only(&e, "what was said", (struct to){.agent = "two"}, "");
    assert_int_equal(dgm_store_stats_of(e.store).reads, reads);
    stop_env(&e);
}

/* A context that this send creates is not read, one that it names is read once. The agent does not look for copies of
 * messages, which may be a read. */
static void a_history_is_one_read(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    for (int i = 0; i < 5; i++)
        tell_only(&e, "one", (struct to){.context = "c", .agent = "two"}, "yes: one");
    uint64_t reads = dgm_store_stats_of(e.store).reads;
    tell_only(&e, "one", (struct to){.agent = "two"}, "yes: one");
    assert_int_equal(dgm_store_stats_of(e.store).reads, reads);
    tell_only(&e, "one", (struct to){.context = "c", .agent = "two"}, "yes: one");
    assert_int_equal(dgm_store_stats_of(e.store).reads, reads + 1);
    stop_env(&e);
}

/* While the history is read the run exists: it is canceled, and its agent is not started. */
static void on_canceled_soon(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    (void)sent;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static void send_and_leave(struct step *s)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("work")};
    dgm_message m = {.message_id = DGM_STR("leaves"),
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .context_id = DGM_STR("c")};
    dgm_send send = {.message = &m, .protocol = DGM_STR("a2a")};
    uint64_t number = dgm_core_send(s->e->core, &send, on_canceled_soon, s);
    dgm_core_caller_left(s->e->core, number);
}

static void a_caller_may_leave_while_the_history_is_read(void **state)
{
    struct env e;
    start_memory(&e, state, MANY);
    struct step *s = new_step();
    do_step(&e, s, 0, send_and_leave);
    if (s->code) /* the store may be faster */
        assert_int_equal(s->code, DGM_UNAVAILABLE);
    clear(s);
    tell_only(&e, "what was said", (struct to){.context = "d"}, "");
    stop_env(&e);
}

/* ---- after a restart ------------------------------------------------------------------------------------------------- */

static void restart_and_recover(struct env *e)
{
    held = NULL;
    restart(e);
    recover_tasks(e);
}

static size_t count_events(struct env *e, const char *task, const char *of, char *last, size_t size)
{
    struct step *s = ask(e, task, NULL, subscribe_it, 0);
    size_t n = 0;
    assert_int_equal(s->code, DGM_OK);
    s->after = 0;
    read_all(e, s, 0);
    for (size_t i = 0; i < s->n; i++)
        n += strstr(s->records[i]->bytes, of) != NULL;
    snprintf(last, size, "%s", s->records[s->n - 1]->bytes);
    clear(s);
    return n;
}

static void a_run_goes_on_after_a_restart(void **state)
{
    struct env e;
    char last[1000];
    start_memory(&e, state, MANY);
    backend_of_agents = &resuming;
    restart(&e);
    tell_only(&e, "before", (struct to){.context = "c"}, "yes: before");
    struct step *s = send_text(&e, "work", NULL, "c");
    while (!held)
        sched_yield();
    restart_and_recover(&e);
    while (!held)
        sched_yield();
    assert_int_equal(n_resumed, 1);
    restart_and_recover(&e);
    assert_int_equal(count_events(&e, s->task, "{\"task\":", last, sizeof last), 1);
    assert_int_equal(n_resumed, 2);
    assert_non_null(strstr(last, "TASK_STATE_COMPLETED"));
    assert_non_null(strstr(last, "\"u:before|a:yes: before|\"")); /* its own message is not in it */
    assert_int_equal(count_events(&e, s->task, "TASK_STATE_COMPLETED", last, sizeof last), 1);
    restart_and_recover(&e);
    assert_int_equal(n_resumed, 2); /* it has ended */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *got = ask(&e, s->task, NULL, get_it, 0);
    dgm_task task = read_task(a, got->snapshot);
    assert_int_equal(task.history.n, 1);
    clear(got);
    clear(s);
    stop_env(&e);
}

static void a_later_turn_goes_on_after_a_restart(void **state)
{
    struct env e;
    char last[1000];
    start_memory(&e, state, MANY);
    backend_of_agents = &resuming;
    restart(&e);
    n_resumed = 1;
    struct step *s = tell(&e, "ask", (struct to){.context = "c"}, "which one?");
    restart_and_recover(&e);
    assert_int_equal(n_resumed, 1); /* it waits for its caller */
    clear(send_text(&e, "work", s->task, NULL));
    while (!held)
        sched_yield();
    restart_and_recover(&e);
    assert_int_equal(count_events(&e, s->task, "internal:message", last, sizeof last), 1);
    assert_non_null(strstr(last, "\"u:ask|a:which one?|\""));
    clear(s);
    stop_env(&e);
}

static _Atomic int n_suspended;

static void suspend(void *agent, dgm_run *run)
{
    (void)agent;
    n_suspended += run->suspended;
    status(run, DGM_STATE_CANCELED, "stopped"); /* is ignored: the run goes on */
    held = NULL;
    run->ops->end(run, "stopped");
}

static void on_all_drained(void *arg)
{
    struct step *s = arg;
    sem_post(&s->done);
}

static void a_run_goes_on_after_a_drain(void **state)
{
    static const dgm_backend suspending = {.type = "suspending",
                                           .can_resume = true,
                                           .wants_history = true,
                                           .start = memory_start,
                                           .cancel = suspend};
    struct env e;
    char last[1000];
    start_memory(&e, state, MANY);
    backend_of_agents = &suspending;
    n_suspended = 0;
    restart(&e);
    n_resumed = 1;
    struct step *s = send_text(&e, "work", NULL, "c"), *drain = new_step();
    while (!held)
        sched_yield();
    post_step(&e, s, 0, open_it);
    sem_init(&drain->done, 0, 0);
    dgm_core_drain(e.core, 100, on_all_drained, drain);
    sem_wait(&drain->done);
    sem_wait(&s->done); /* its stream ends, without an end of the task */
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_WORKING);
    assert_int_equal(n_suspended, 1);
    restart_and_recover(&e);
    assert_int_equal(count_events(&e, s->task, "TASK_STATE_COMPLETED", last, sizeof last), 1);
    assert_int_equal(count_events(&e, s->task, "TASK_STATE_CANCELED", last, sizeof last), 0);
    assert_int_equal(n_resumed, 2);
    clear(drain);
    clear(s);
    stop_env(&e);
}

static void other_agents_fail_as_before(void **state)
{
    struct env e;
    char last[1000];
    start_memory(&e, state, MANY);
    struct step *s = send_text(&e, "work", NULL, "c");
    while (!held)
        sched_yield();
    restart_and_recover(&e);
    assert_int_equal(count_events(&e, s->task, "TASK_STATE_FAILED", last, sizeof last), 1);
    assert_non_null(strstr(last, DGM_SERVER_STOPPED));
    assert_int_equal(n_resumed, 0);
    clear(s);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(an_agent_finds_what_it_stored), ON_BOTH(a_task_finds_what_it_stored),
              ON_BOTH(no_callback_comes_after_the_end),
              ON_BOTH(an_agent_gets_the_conversation_of_its_context),
              ON_BOTH(the_turns_of_a_task_are_in_it_once),
              ON_BOTH(a_task_that_works_is_read_from_its_log), ON_BOTH(trimmed_logs_change_nothing),
              ON_BOTH(a_history_has_limits), ON_BOTH(a_history_is_one_read),
              ON_BOTH(a_caller_may_leave_while_the_history_is_read),
              ON_BOTH(a_run_goes_on_after_a_restart), ON_BOTH(a_later_turn_goes_on_after_a_restart),
              ON_BOTH(a_run_goes_on_after_a_drain), ON_BOTH(other_agents_fail_as_before))
