/* core/test_core.c - tasks: sends, reads, cancels, cursors, what a crash leaves. */
#include "core/test_core.h"

static void a_message_answer_leaves_nothing_behind(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "message", NULL, NULL);
    assert_int_equal(s->code, DGM_OK);
    assert_true(s->is_message);
    assert_string_equal(s->task, "");
    assert_int_equal(strlen(s->context), 36);
    read_all(&e, s, 1);
    assert_int_equal(s->n, 1);
    assert_int_equal(s->records[0]->head.kind, DGM_EVENT_MESSAGE);
    assert_non_null(strstr(s->records[0]->bytes, s->context));
    assert_int_equal(dgm_core_stats_of(e.core).tasks, 0);
    clear(s);
    stop_env(&e);
}

static void a_task_is_streamed_from_its_first_record(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *s = send_text(&e, "chunks", NULL, "mine");
    assert_int_equal(s->code, DGM_OK);
    assert_string_equal(s->context, "mine");
    read_all(&e, s, 2);
    assert_int_equal(s->n, 203);
    dgm_task first = read_task(a, s->records[0]);
    check_str(first.id, s->task);
    assert_int_equal(first.status.state, DGM_STATE_SUBMITTED);
    assert_true(first.status.timestamp.n > 0);
    assert_int_equal(first.history.n, 1);
    check_str(first.history.at[0].task_id, s->task);
    check_str(first.history.at[0].context_id, "mine");
    assert_non_null(strstr(s->records[0]->bytes, "\"canonical_type\":\"TextMessageContentEvent\""));
    for (size_t i = 0; i < s->n; i++) {
        assert_int_equal(s->records[i]->head.seq, i + 1);
        assert_non_null(strstr(s->records[i]->bytes, s->task));
        assert_null(strstr(s->records[i]->bytes, "not mine to say"));
    }
    assert_int_equal(s->records[1]->head.state, DGM_STATE_WORKING);
    assert_int_equal(s->records[202]->head.state, DGM_STATE_COMPLETED);
    struct step *got = ask(&e, s->task, NULL, get_it, 0);
    dgm_task task = read_task(a, got->snapshot);
    assert_int_equal(task.status.state, DGM_STATE_COMPLETED);
    assert_int_equal(task.artifacts.at[0].parts.n, 1); /* 200 chunks of one text */
    assert_true(task.artifacts.at[0].parts.at[0].content.n >= 200);
    check_str(task.status.message->parts.at[0].content, "done");
    clear(got);
    clear(s);
    stop_env(&e);
}

static void a_question_is_answered_in_the_same_task(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = send_text(&e, "ask", NULL, NULL);
    first->until_question = true;
    read_all(&e, first, 0);
    /* somebody who watches from before sees the second turn, too */
    struct step *watch = ask(&e, first->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(watch->code, DGM_OK);
    assert_int_equal(read_task(a, watch->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    post_step(&e, watch, 1, open_it);
    struct step *second = send_text(&e, "answer", first->task, NULL);
    if (second->code)
        fail_msg("%s", second->err.msg);
    assert_string_equal(second->task, first->task);
    assert_string_equal(second->context, first->context);
    dgm_task seen =
        read_task(a, second->snapshot); /* with the answer in it, before anything else */
    assert_int_equal(seen.status.state, DGM_STATE_WORKING); /* it does not wait any more */
    assert_int_equal(seen.history.n, 3);
    check_str(seen.history.at[2].parts.at[0].content, "answer");
    assert_int_equal(second->after, second->snapshot->head.seq);
    read_all(&e, second, 2);
    assert_int_equal(second->records[0]->head.kind, DGM_EVENT_STATUS);
    assert_int_equal(second->records[second->n - 1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(second->records[0]->head.turn, 2);
    sem_wait(&watch->done);
    assert_int_equal(watch->records[watch->n - 1]->head.seq,
                     second->records[second->n - 1]->head.seq);
    struct step *got = ask(&e, first->task, NULL, get_it, 0);
    dgm_task task = read_task(a, got->snapshot);
    assert_int_equal(task.status.state, DGM_STATE_COMPLETED);
    assert_int_equal(task.history.n, 3); /* the ask, the question, the answer */
    clear(got);
    clear(watch);
    clear(second);
    clear(first);
    stop_env(&e);
}

static void ids_decide_who_may_send_where(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *asked = send_text(&e, "ask", NULL, NULL),
                *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    static const struct {
        const char *which, *context, *principal, *agent;
        dgm_code want;
    } rows[] = {
        {"nobody's", NULL, NULL, NULL, DGM_TASK_NOT_FOUND},
        {"asked", "other", NULL, NULL, DGM_BAD_PARAMS},
        {"asked", NULL, "mallory", NULL, DGM_TASK_NOT_FOUND},
        {"asked", NULL, NULL, "two", DGM_TASK_NOT_FOUND},
        {"asked", NULL, NULL, "three", DGM_BAD_PARAMS},
        {"done", NULL, NULL, NULL, DGM_UNSUPPORTED_OPERATION},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct step *s = new_step();
        s->text = DGM_STR("answer");
        s->message_id = DGM_STR("x");
        s->task_id = dgm_str_from(strcmp(rows[i].which, "asked") == 0  ? asked->task
                                  : strcmp(rows[i].which, "done") == 0 ? done->task
                                                                       : rows[i].which);
        s->context_id = dgm_str_from(rows[i].context);
        s->owner.principal = dgm_str_from(rows[i].principal);
        s->agent = dgm_str_from(rows[i].agent);
        do_step(&e, s, i, send_it);
        if (s->code != rows[i].want)
            fail_msg("row %zu: %s", i, dgm_code_name(s->code));
        clear(s);
    }
    struct step *other = ask(&e, asked->task, "mallory", get_it, 0);
    assert_int_equal(other->code, DGM_TASK_NOT_FOUND);
    clear(other);
    clear(asked);
    clear(done);
    stop_env(&e);
}

/* At another agent's address it does not exist. */
static void a_task_belongs_to_its_agent(void **state)
{
    static void (*const kinds[])(struct step *) = {get_it, subscribe_it, cancel_it, send_it};
    static const char *const agents[] = {"two", "nobody"};
    struct env e;
    start_env(&e, state, 0);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    for (size_t agent = 0; agent < 2; agent++) {
        for (size_t i = 0; i < 4; i++) {
            struct step *s = new_step();
            s->agent = dgm_str_from(agents[agent]);
            s->task_id = dgm_str_from(asked->task);
            s->text = DGM_STR("answer");
            s->message_id = DGM_STR("m");
            s->cursor = DGM_NO_CURSOR;
            do_step(&e, s, i, kinds[i]);
            assert_int_equal(s->code, agent == 1 && i == 3 ? DGM_BAD_PARAMS : DGM_TASK_NOT_FOUND);
            clear(s);
        }
    }
    struct step *got = ask(&e, asked->task, NULL, get_it, 0);
    assert_int_equal(got->code, DGM_OK);
    clear(got);
    clear(asked);
    stop_env(&e);
}

static void cancel_ends_what_runs_and_nothing_else(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *running = send_text(&e, "hold", NULL, NULL);
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_OK);
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled, 1);
    clear(c);
    c = ask(&e, running->task, NULL, cancel_it, 0); /* canceled again is canceled */
    assert_int_equal(c->code, DGM_OK);
    clear(c);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    c = ask(&e, asked->task, NULL, cancel_it, 0); /* nothing runs, but it is not over */
    assert_int_equal(c->code, DGM_OK);
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_CANCELED);
    clear(c);
    struct step *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    c = ask(&e, done->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_TASK_NOT_CANCELABLE);
    clear(c);
    c = ask(&e, "nobody's", NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_TASK_NOT_FOUND);
    clear(c);
    clear(running);
    clear(asked);
    clear(done);
    stop_env(&e);
}

static void however_a_run_ends_its_task_does(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *failed = send_text(&e, "fail", NULL, NULL),
                *silent = send_text(&e, "silent", NULL, NULL);
    read_all(&e, failed, 0);
    assert_int_equal(failed->records[failed->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(failed->records[failed->n - 1]->bytes, "\"error\":\"it broke\""));
    read_all(&e, silent, 1);
    assert_int_equal(silent->n, 2);
    assert_int_equal(silent->records[1]->head.state, DGM_STATE_COMPLETED);
    clear(failed);
    clear(silent);
    stop_env(&e);
}

static void every_failure_says_why(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "wordless", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[s->n - 1]->bytes, "\"error\":\"the agent failed"));
    clear(s);
    stop_env(&e);
}

static void an_agent_may_refuse(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "refuse", NULL, NULL);
    assert_int_equal(s->code, DGM_CONTENT_TYPE_NOT_SUPPORTED);
    assert_string_equal(s->err.msg, "I read no such thing");
    assert_int_equal(dgm_core_stats_of(e.core).tasks, 0);
    assert_int_equal(n_notes, 1);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    struct step *late = send_text(&e, "refuse", asked->task, NULL); /* there is a task already */
    assert_int_equal(late->code, DGM_OK);
    read_all(&e, late, 0);
    assert_int_equal(late->records[late->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(late->records[late->n - 1]->bytes, "I read no such thing"));
    clear(late);
    clear(asked);
    clear(s);
    stop_env(&e);
}

static void a_cursor_gives_what_is_missing_also_after_the_end(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, s, 0);
    for (uint64_t cursor = 1; cursor <= s->n; cursor += 17) {
        struct step *r = ask(&e, s->task, NULL, subscribe_it, cursor);
        if (r->code)
            fail_msg("%s", r->err.msg);
        assert_null(r->snapshot);
        read_all(&e, r, (size_t)cursor);
        assert_int_equal(r->n, s->n - cursor);
        for (size_t i = 0; i < r->n; i++)
            assert_string_equal(r->records[i]->bytes, s->records[cursor + i]->bytes);
        clear(r);
    }
    struct step *none = ask(&e, s->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(none->code, DGM_UNSUPPORTED_OPERATION);
    struct step *beyond = ask(&e, s->task, NULL, subscribe_it, 100000);
    assert_int_equal(beyond->code, DGM_OK);
    assert_non_null(beyond->snapshot);
    clear(beyond);
    clear(none);
    clear(s);
    stop_env(&e);
}

/* Somebody reads it on, so it is in memory, but not from its beginning. */
static void an_old_cursor_of_a_task_that_rests_is_good(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = send_text(&e, "ask", NULL, NULL);
    first->until_question = true;
    read_all(&e, first, 0);
    restart(&e);
    struct step *watch = ask(&e, first->task, NULL, subscribe_it, DGM_NO_CURSOR);
    post_step(&e, watch, 1, open_it);
    for (uint64_t cursor = 0; cursor <= first->n; cursor++) {
        struct step *r = ask(&e, first->task, NULL, subscribe_it, cursor);
        assert_int_equal(r->code, DGM_OK);
        assert_null(r->snapshot);
        assert_int_equal(r->after, cursor);
        clear(r);
    }
    struct step *answer = send_text(&e, "answer", first->task, NULL);
    assert_int_equal(answer->code, DGM_OK);
    sem_wait(&watch->done);
    struct step *all = ask(&e, first->task, NULL, subscribe_it, 0);
    read_all(&e, all, 2);
    assert_int_equal(all->n, first->n + watch->n);
    for (size_t i = 0; i < all->n; i++)
        assert_int_equal(all->records[i]->head.seq, i + 1);
    clear(all);
    clear(answer);
    clear(watch);
    clear(first);
    stop_env(&e);
}

/* The first of them may be the last to need the task, were it not for the others. */
static void many_calls_wait_for_one_load(void **state)
{
    enum { CALLS = 60 };
    struct env e;
    static struct step *calls[CALLS];
    static void (*const kinds[])(struct step *) = {get_it, subscribe_it, cancel_it, send_it};
    start_env(&e, state, 0);
    struct step *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < CALLS; i++) {
            calls[i] = new_step();
            calls[i]->task_id = dgm_str_from(done->task);
            calls[i]->text = DGM_STR("answer");
            calls[i]->message_id = DGM_STR("late");
            calls[i]->cursor = DGM_NO_CURSOR;
            post_step(&e, calls[i], 0, kinds[i % 4]);
        }
        static const dgm_code want[] = {DGM_OK, DGM_UNSUPPORTED_OPERATION, DGM_TASK_NOT_CANCELABLE,
                                        DGM_UNSUPPORTED_OPERATION};
        for (size_t i = 0; i < CALLS; i++) {
            sem_wait(&calls[i]->done);
            assert_int_equal(calls[i]->code, want[i % 4]);
            clear(calls[i]);
        }
    }
    clear(done);
    stop_env(&e);
}

static void what_a_crash_left_unfinished_is_settled(void **state)
{
    enum { RUNNING = 250 }; /* more than a page */
    struct env e;
    static struct step *s[RUNNING];
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (int i = 0; i < RUNNING; i++)
        s[i] = send_text(&e, "hold", NULL, NULL);
    struct step *asked = send_text(&e, "ask", NULL, NULL),
                *done = send_text(&e, "chunks", NULL, NULL);
    asked->until_question = true;
    read_all(&e, asked, 0);
    read_all(&e, done, 0);
    restart(&e);
    recover_tasks(&e);
    for (int i = 0; i < RUNNING; i++) {
        struct step *got = ask(&e, s[i]->task, NULL, get_it, 0);
        dgm_task task = read_task(a, got->snapshot);
        assert_int_equal(task.status.state, DGM_STATE_FAILED);
        assert_non_null(strstr(got->snapshot->bytes, "\"error\":\"the server was stopped"));
        clear(got);
        clear(s[i]);
    }
    struct step *got = ask(&e, asked->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    clear(got);
    struct step *answer = send_text(&e, "answer", asked->task, NULL); /* and it goes on */
    assert_int_equal(answer->code, DGM_OK);
    read_all(&e, answer, 1);
    assert_int_equal(answer->records[answer->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(answer);
    clear(asked);
    clear(done);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH_HOLDS(a_message_answer_leaves_nothing_behind, "R004-21"),
              ON_BOTH_HOLDS(a_task_is_streamed_from_its_first_record, "R002-04 R000-02"),
              ON_BOTH(a_question_is_answered_in_the_same_task),
              ON_BOTH(ids_decide_who_may_send_where), ON_BOTH(a_task_belongs_to_its_agent),
              ON_BOTH(cancel_ends_what_runs_and_nothing_else),
              ON_BOTH(however_a_run_ends_its_task_does),
              ON_BOTH_HOLDS(every_failure_says_why, "R002-10"), ON_BOTH(an_agent_may_refuse),
              ON_BOTH(a_cursor_gives_what_is_missing_also_after_the_end),
              ON_BOTH(an_old_cursor_of_a_task_that_rests_is_good),
              ON_BOTH(many_calls_wait_for_one_load),
              ON_BOTH_HOLDS(what_a_crash_left_unfinished_is_settled, "R002-10"))
