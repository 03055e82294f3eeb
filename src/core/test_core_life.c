/* core/test_core_life.c - limits, rules, and how a server ends. */
#include "core/test_core.h"

static void a_log_over_its_limit_fails_the_task(void **state)
{
    struct env e;
    start_env(&e, state, 100000);
    struct step *s = send_text(&e, "flood", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[s->n - 1]->bytes, "log_limit"));
    clear(s);
    stop_env(&e);
}

static void log_records_is_a_limit(void **state)
{
    struct env e;
    max_records = 100;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "flood", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->n, 100);
    assert_int_equal(s->records[99]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[99]->bytes, "log_limit"));
    clear(s);
    stop_env(&e);
    max_records = 0;
}

static void subscribers_is_a_limit(void **state)
{
    enum { MAX = 3 };
    struct env e;
    struct step *s[MAX];
    max_subscribers = MAX;
    start_env(&e, state, 0);
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t i = 0; i < MAX; i++) {
        s[i] = ask(&e, running->task, NULL, subscribe_it, DGM_NO_CURSOR);
        assert_int_equal(s[i]->code, DGM_OK);
        post_step(&e, s[i], i, open_it);
    }
    while (dgm_log_n_readers(s[0]->log) < MAX)
        sched_yield();
    struct step *more = ask(&e, running->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(more->code, DGM_RATE_LIMITED);
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    for (size_t i = 0; i < MAX; i++) {
        sem_wait(&s[i]->done);
        clear(s[i]);
    }
    clear(c);
    clear(more);
    clear(running);
    stop_env(&e);
    max_subscribers = 0;
}

static void what_its_agent_has_read_is_in_the_task(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "read", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->n, 3);
    assert_non_null(strstr(s->records[0]->bytes, "\"text\":\"read\""));
    assert_int_equal(s->records[2]->head.state, DGM_STATE_COMPLETED);
    clear(s);
    stop_env(&e);
}

static uint64_t broken(struct env *e, const char *name)
{
    const char *rule, *about;
    uint64_t n;
    for (size_t i = 0; dgm_core_rule(e->core, i, &rule, &about, &n); i++) {
        if (strcmp(rule, name) == 0)
            return n;
    }
    fail_msg("there is no rule %s", name);
    return 0;
}

static void rules_are_reported_once_per_run(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    for (uint64_t n = 1; n <= 2; n++) {
        struct step *s = send_text(&e, "badly", NULL, NULL);
        read_all(&e, s, 0);
        assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_COMPLETED);
        while (dgm_core_stats_of(e.core).running)
            sched_yield();
        assert_int_equal(broken(&e, "changing-ids"), n);
        assert_int_equal(broken(&e, "working-status-text"), n);
        assert_int_equal(broken(&e, "unknown-artifact-append"), n);
        assert_int_equal(broken(&e, "last-chunk-twice"), n);
        assert_int_equal(broken(&e, "event-after-terminal"), n);
        assert_int_equal(broken(&e, "illegal-transition"), 0);
        assert_int_equal(dgm_core_stats_of(e.core).warnings, n_warned);
        clear(s);
    }
    assert_string_equal(last_rule, "event-after-terminal");
    stop_env(&e);
}

static void on_drained(void *arg)
{
    struct step *s = arg;
    sem_post(&s->done);
}

static void the_end_of_the_server_leaves_nothing_in_the_middle(void **state)
{
    enum { RUNNING = 20 };
    struct env e;
    struct step *run[RUNNING], *wait[RUNNING];
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    struct step *watch = ask(&e, asked->task, NULL, subscribe_it, DGM_NO_CURSOR);
    post_step(&e, watch, 1, open_it);
    for (size_t i = 0; i < RUNNING; i++) {
        run[i] = send_text(&e, "hold", NULL, NULL);
        post_step(&e, run[i], i, open_it);
        wait[i] = new_step(); /* a message that waits for it */
        wait[i]->text = DGM_STR("ask");
        wait[i]->message_id = DGM_STR("waits");
        wait[i]->task_id = dgm_str_from(run[i]->task);
        post_step(&e, wait[i], i, send_it);
    }
    struct step *drain = new_step();
    sem_init(&drain->done, 0, 0);
    dgm_core_drain(e.core, 300, on_drained, drain);
    sem_wait(&watch->done); /* what rests is let go at once, and may go on later */
    struct step *refused = send_text(&e, "message", NULL, NULL);
    assert_int_equal(refused->code, DGM_UNAVAILABLE);
    struct step *got = ask(&e, asked->task, NULL, get_it, 0); /* what is there can still be read */
    assert_int_equal(got->code, DGM_OK);
    sem_wait(&drain->done);
    for (size_t i = 0; i < RUNNING; i++) { /* what runs has an end that its readers see */
        sem_wait(&run[i]->done);
        assert_int_equal(run[i]->records[run[i]->n - 1]->head.state, DGM_STATE_FAILED);
        assert_non_null(strstr(run[i]->records[run[i]->n - 1]->bytes, "the server was stopped"));
        sem_wait(&wait[i]->done);
        assert_int_equal(wait[i]->code, DGM_UNAVAILABLE);
        clear(wait[i]);
    }
    assert_int_equal(n_canceled, RUNNING);
    assert_int_equal(dgm_core_stats_of(e.core).running, 0);
    restart(&e);
    for (size_t i = 0; i < RUNNING; i++) { /* and it is in the store */
        struct step *again = ask(&e, run[i]->task, NULL, get_it, 0);
        assert_int_equal(read_task(a, again->snapshot).status.state, DGM_STATE_FAILED);
        clear(again);
        clear(run[i]);
    }
    struct step *answer = send_text(&e, "answer", asked->task, NULL);
    assert_int_equal(answer->code, DGM_OK);
    clear(answer);
    clear(got);
    clear(refused);
    clear(drain);
    clear(watch);
    clear(asked);
    stop_env(&e);
}

static void disconnect_it(struct step *s)
{
    dgm_core_disconnected(s->e->core, s->owner, s->agent, s->task_id, 1, s->cursor);
    sem_post(&s->done);
}

static void a_run_without_readers_can_be_given_up(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *read = send_text(&e, "hold", NULL, NULL);
    post_step(&e, read, 1, open_it);
    while (dgm_log_n_readers(read->log) < 1)
        sched_yield();
    clear(ask(&e, read->task, NULL, disconnect_it, 0));
    struct step *alone = send_text(&e, "hold", NULL, NULL);
    clear(ask(&e, alone->task, NULL, disconnect_it, 1));
    clear(ask(&e, "nobody's", NULL, disconnect_it, 0));
    while (n_canceled < 1)
        sched_yield();
    struct step *c = ask(&e, read->task, NULL, get_it, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_WORKING);
    clear(c);
    c = ask(&e, read->task, NULL, cancel_it, 0);
    sem_wait(&read->done);
    clear(c);
    clear(alone);
    clear(read);
    stop_env(&e);
}

/* Turns that are old go from the log; the task, its number of turns and its message ids stay. */
static void what_was_trimmed_is_sent_as_a_whole(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = say(&e, "the-first", "ask", NULL);
    first->until_question = true;
    read_all(&e, first, 0);
    retention_ms = 1;
    restart(&e);
    retention_ms = 0;
    struct step *late = NULL;
    do { /* the store is asked when it starts */
        if (late)
            clear(late);
        late = ask(&e, first->task, NULL, subscribe_it, 1);
        assert_int_equal(late->code, DGM_OK);
    } while (!late->snapshot);
    assert_int_equal(read_task(a, late->snapshot).history.n, 1);
    struct step *again = say(&e, "the-first", "ask", NULL);
    assert_true(again->is_resend);
    assert_int_equal(read_task(a, again->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    read_all(&e, again, 1); /* it is over */
    assert_int_equal(again->n, 0);
    struct step *answer = say(&e, "the-answer", "answer", first->task);
    assert_int_equal(answer->code, DGM_OK);
    read_all(&e, answer, 2);
    assert_int_equal(answer->records[0]->head.turn, 2);
    assert_int_equal(answer->records[answer->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(answer);
    clear(again);
    clear(late);
    clear(first);
    stop_env(&e);
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

static void illegal_transitions_of_tasks_and_runs_are_detected(void **state)
{
    (void)state;
    assert_null(dgm_machine_fault(&dgm_live_machine));
    assert_true(dgm_machine_allows(&dgm_live_machine, LIVE_LOADING, LIVE_READY));
    assert_false(dgm_machine_allows(&dgm_live_machine, LIVE_BROKEN, LIVE_READY));
    assert_null(dgm_machine_fault(&dgm_core_run_machine));
    assert_true(dgm_machine_allows(&dgm_core_run_machine, RUN_UNDECIDED, RUN_TASK));
    assert_false(dgm_machine_allows(&dgm_core_run_machine, RUN_ANSWERED, RUN_TASK));
    assert_false(dgm_machine_allows(&dgm_core_run_machine, RUN_ENDED, RUN_ENDED));
}

static void the_trace_has_the_transitions_of_a_task(void **state)
{
    static const char *const expected[] = {"loaded-task:loading>ready",
                                           "task-state:unknown>submitted", "run:undecided>task",
                                           "task-state:submitted>working"};
    struct env e;
    dgm_transition *all;
    char text[64];
    size_t found = 0;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, s, 0);
    size_t n = dgm_loops_read_trace(e.loops, &all);
    for (size_t i = 0; i < n && found < 4; i++) {
        if (all[i].object != dgm_trace_task_object(dgm_str_from(s->task)))
            continue;
        snprintf(text, sizeof text, "%s:%s>%s", all[i].machine->name,
                 all[i].machine->states[all[i].from], all[i].machine->states[all[i].to]);
        assert_string_equal(text, expected[found++]);
    }
    assert_int_equal(found, 4);
    free(all);
    clear(s);
    stop_env(&e);
}

DGM_TEST_MAIN(dgm_test(illegal_transitions_of_tasks_and_runs_are_detected),
              ON_BOTH(the_trace_has_the_transitions_of_a_task),
              ON_BOTH(what_was_trimmed_is_sent_as_a_whole),
              ON_BOTH(a_log_over_its_limit_fails_the_task), ON_BOTH(log_records_is_a_limit),
              ON_BOTH(what_its_agent_has_read_is_in_the_task), ON_BOTH(subscribers_is_a_limit),
              ON_BOTH(rules_are_reported_once_per_run),
              ON_BOTH(the_end_of_the_server_leaves_nothing_in_the_middle),
              ON_BOTH(a_run_without_readers_can_be_given_up))
