/* core/test_late.c - sends that are answered in time, callers that leave, Message answers that are stored. */
#include "core/test_core.h"

static struct step *new_send(const char *id, const char *text, const char *task)
{
    struct step *s = new_step();
    s->message_id = dgm_str_from(id);
    s->text = dgm_str_from(text);
    s->task_id = dgm_str_from(task);
    return s;
}

static struct step *send_now(struct env *e, struct step *s)
{
    static size_t n;
    do_step(e, s, ++n, send_it);
    return s;
}

static void wait_for_held(void)
{
    while (!held)
        sched_yield();
}

static void say_hello(void *arg)
{
    dgm_run *run = arg;
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("hello")};
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_event e = {.kind = DGM_EVENT_MESSAGE, .message = &m};
    held = NULL;
    assert_int_equal(run->ops->emit(run, &e, NULL), DGM_OK);
    run->ops->end(run, NULL);
}

/* ---- in time ---------------------------------------------------------------------------------------------------- */

/* The agent is silent until the answer is there: nothing here depends on how long that takes. */
static void a_silent_agent_does_not_keep_the_caller(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *s = new_send("m-1", "quiet", NULL);
    s->answer_ms = 1;
    send_now(&e, s);
    assert_int_equal(s->code, DGM_OK);
    assert_false(s->is_message);
    assert_int_equal(strlen(s->task), 36);
    wait_for_held(); /* it is still silent */
    struct step *got = ask(&e, s->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).status.state, DGM_STATE_SUBMITTED);
    assert_int_equal(read_task(a, got->snapshot).history.n, 1);
    dgm_loop_post(held->loop, say_hello, held); /* a Message now completes the task */
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(got);
    clear(s);
    stop_env(&e);
}

static void a_copy_that_is_late_makes_the_task_for_all(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = new_send("m-1", "quiet", NULL), *copy = new_send("m-1", "quiet", NULL);
    post_step(&e, first, 0, send_it);
    wait_for_held();
    copy->answer_ms = 1;
    send_now(&e, copy);
    sem_wait(&first->done);
    assert_int_equal(first->code, DGM_OK);
    assert_int_equal(copy->code, DGM_OK);
    assert_string_equal(first->task, copy->task);
    assert_true(copy->is_resend);
    assert_int_equal(n_started, 1);
    dgm_loop_post(held->loop, say_hello, held);
    read_all(&e, first, 0);
    clear(copy);
    clear(first);
    stop_env(&e);
}

static void a_message_to_a_task_at_work_is_answered_too(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = send_now(&e, new_send("m-1", "hold", NULL));
    wait_for_held();
    struct step *second = new_send("m-2", "ask", first->task);
    second->answer_ms = 1;
    send_now(&e, second);
    assert_int_equal(second->code, DGM_OK);
    assert_string_equal(second->task, first->task);
    assert_int_equal(read_task(a, second->snapshot).status.state, DGM_STATE_WORKING);
    release(); /* the queue goes on: the message has its turn */
    struct step *got = NULL;
    do {
        if (got)
            clear(got);
        sched_yield();
        got = ask(&e, first->task, NULL, get_it, 0);
    } while (n_started < 2 || read_task(a, got->snapshot).status.state != DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(n_started, 2);
    clear(got);
    clear(second);
    clear(first);
    stop_env(&e);
}

/* ---- callers that leave -------------------------------------------------------------------------------------------- */

static void leave_it(struct step *s)
{
    dgm_core_caller_left(s->e->core, s->number);
    sem_post(&s->done);
}

static void leave(struct env *e, struct step *s)
{
    struct step *l = new_step();
    while (!s->number) /* the agent may start before dgm_core_send has returned on its loop */
        sched_yield();
    l->number = s->number;
    do_step(e, l, 0, leave_it);
    clear(l);
}

static void check_left(const struct env *e, const struct step *s)
{
    assert_int_equal(s->code, DGM_UNAVAILABLE);
    assert_int_equal(dgm_core_stats_of(e->core).tasks, 0);
    assert_int_equal(n_canceled, 1);
}

static void a_run_without_a_task_ends_with_its_caller(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = new_send("m-1", "quiet", NULL);
    post_step(&e, s, 0, send_it);
    wait_for_held();
    leave(&e, s);
    sem_wait(&s->done);
    check_left(&e, s);
    clear(s);
    s = new_send("m-2", "quiet", NULL); /* one that is not remembered by its id */
    s->always_new = true;
    n_canceled = 0;
    post_step(&e, s, 0, send_it);
    wait_for_held();
    leave(&e, s);
    sem_wait(&s->done);
    check_left(&e, s);
    clear(s);
    stop_env(&e);
}

static void a_run_goes_on_while_a_copy_waits(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = new_send("m-1", "quiet", NULL), *copy = new_send("m-1", "quiet", NULL);
    post_step(&e, first, 0, send_it);
    wait_for_held();
    post_step(&e, copy, 0, send_it); /* from the same loop: what follows comes behind it */
    leave(&e, first);
    assert_int_equal(n_canceled, 0);
    leave(&e, copy);
    sem_wait(&first->done);
    sem_wait(&copy->done);
    check_left(&e, first);
    assert_int_equal(copy->code, DGM_UNAVAILABLE);
    assert_int_equal(n_started, 1);
    clear(copy);
    clear(first);
    stop_env(&e);
}

static void a_run_with_a_task_goes_on(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_now(&e, new_send("m-1", "hold", NULL));
    leave(&e, s);
    struct step *got = ask(&e, s->task, NULL, get_it, 0);
    assert_int_equal(n_canceled, 0);
    clear(got);
    release();
    s->until_question = true;
    read_all(&e, s, 0);
    clear(s);
    stop_env(&e);
}

/* ---- Message answers that are stored --------------------------------------------------------------------------------- */

static void on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code) {
        s->err = *err;
    } else {
        s->log = dgm_log_ref(turn->log);
        s->after = turn->first_seq - 1;
        s->first_seq = turn->last_seq;
        s->turn = turn->turn;
        assert_int_equal(turn->task_id.n, 0);
        assert_true(dgm_str_is(turn->agent, "one"));
        snprintf(s->context, sizeof s->context, "%.*s", DGM_P(turn->context_id));
        s->cursor = turn->request.n;
        assert_true(dgm_str_is(turn->previous, "r-0"));
    }
    sem_post(&s->done);
}

static void find_it(struct step *s)
{
    dgm_core_find_turn(s->e->core, s->owner, s->agent, s->protocol, s->caller_id, on_turn, s);
}

static struct step *found(struct env *e, const char *protocol, const char *caller_id,
                          const char *agent, const char *principal)
{
    struct step *s = new_step();
    s->protocol = dgm_str_from(protocol);
    s->caller_id = dgm_str_from(caller_id);
    s->agent = dgm_str_from(agent);
    s->owner.principal = dgm_str_from(principal);
    do_step(e, s, 1, find_it);
    return s;
}

static void check_not_found(struct env *e, const char *protocol, const char *caller_id,
                            const char *agent, const char *principal)
{
    struct step *s = found(e, protocol, caller_id, agent, principal);
    assert_int_equal(s->code, DGM_TASK_NOT_FOUND);
    clear(s);
}

static void a_message_answer_is_stored_without_a_task(void **state)
{
    enum { LONG = 3 << 20 }; /* several notes */
    struct env e;
    start_env(&e, state, 0);
    char *request = malloc(LONG);
    memset(request, 'x', LONG);
    for (size_t n = 2; n <= LONG; n += LONG - 2) {
        struct step *s = new_send("m-1", "message", NULL);
        s->protocol = DGM_STR("openai-responses");
        s->caller_id = DGM_STR("r-1");
        s->previous = DGM_STR("r-0");
        s->request = (dgm_str){request, n};
        s->keep_turn = true;
        send_now(&e, s);
        assert_int_equal(s->code, DGM_OK);
        assert_true(s->is_message);
        assert_int_equal(dgm_core_stats_of(e.core).tasks, 0);
        restart(&e);
        struct step *f = found(&e, "openai-responses", "r-1", "one", NULL);
        if (f->code)
            fail_msg("%s", f->err.msg);
        assert_string_equal(f->context, s->context);
        assert_int_equal(f->cursor, n);
        assert_int_equal(f->first_seq, 1); /* it is over */
        read_all(&e, f, 0);
        assert_int_equal(f->n, 1);
        assert_int_equal(f->records[0]->head.kind, DGM_EVENT_MESSAGE);
        check_not_found(&e, "openai-responses", "r-1", "two", NULL);
        check_not_found(&e, "openai-responses", "r-1", "one", "bob");
        check_not_found(&e, "openai-responses", "r-2", "one", NULL);
        check_not_found(&e, "ag-ui", "r-1", "one", NULL);
        clear(f);
        clear(s);
    }
    free(request);
    stop_env(&e);
}

static void other_message_answers_are_not_stored(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = new_send("m-1", "message", NULL);
    s->protocol = DGM_STR("openai-responses");
    s->caller_id = DGM_STR("r-1");
    send_now(&e, s);
    assert_true(s->is_message);
    check_not_found(&e, "openai-responses", "r-1", "one", NULL);
    clear(s);
    stop_env(&e);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

/* What the store answers when the loops have stopped must not make anybody ask it again: it is closed by then. */
static void nothing_asks_the_store_when_it_is_closed(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *running = send_now(&e, new_send("m-1", "hold", NULL));
    struct step *asked = send_now(&e, new_send("m-2", "ask", NULL));
    asked->until_question = true;
    read_all(&e, asked, 0);
    wait_for_held();
    restart(&e); /* one of them ran, the other waits: neither is in memory */
    struct step *steps[40];
    for (size_t i = 0; i < 40; i++) {
        struct step *s = steps[i] = new_send("m-9", "chunks", NULL);
        s->task_id = dgm_str_from(i % 5 == 4 ? "" : i % 2 ? running->task : asked->task);
        s->cursor = 0;
        post_step(&e, s, i,
                  i % 5 == 0   ? get_it
                  : i % 5 == 1 ? subscribe_it
                  : i % 5 == 2 ? cancel_it
                               : send_it);
    }
    stop_env(&e); /* ASan reports a call of a store that is gone */
    for (size_t i = 0; i < 40; i++) {
        sem_wait(&steps[i]->done);
        clear(steps[i]);
    }
    clear(asked);
    clear(running);
}

DGM_TEST_MAIN(ON_BOTH_HOLDS(a_silent_agent_does_not_keep_the_caller, "R003-03"),
              ON_BOTH(a_copy_that_is_late_makes_the_task_for_all),
              ON_BOTH(a_message_to_a_task_at_work_is_answered_too),
              ON_BOTH(a_run_without_a_task_ends_with_its_caller),
              ON_BOTH(a_run_goes_on_while_a_copy_waits), ON_BOTH(a_run_with_a_task_goes_on),
              ON_BOTH_HOLDS(a_message_answer_is_stored_without_a_task, "R004-26"),
              ON_BOTH(other_message_answers_are_not_stored),
              ON_BOTH(nothing_asks_the_store_when_it_is_closed))
