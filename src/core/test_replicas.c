/* core/test_replicas.c - any call on any server of a shared store. */
#include "core/test_replicas.h"

static void a_stream_is_read_on_another_server(void **state)
{
    (void)state;
    start_replicas(3);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    check_ok(s->code, s->err);
    struct step *own = follow_at(0, s->task, 0), *other = follow_at(1, s->task, 0);
    for (int i = 0; i < 100; i++)
        assert_true(emit_at(0, i ? "b" : "a"));
    struct step *late = follow_at(2, s->task, 20);
    for (int i = 0; i < 100; i++)
        assert_true(emit_at(0, "c"));
    assert_int_equal(state_at(1, s->task), DGM_STATE_WORKING);
    assert_true(emit_at(0, "end"));
    wait_for_end(own);
    wait_for_end(other);
    wait_for_end(late);
    check_same_records(own, other);
    assert_int_equal(own->n, 203);
    assert_int_equal(late->n, 203 - 20);
    assert_int_equal(late->records[0]->head.seq, 21);
    assert_int_equal(state_at(1, s->task), DGM_STATE_COMPLETED);
    assert_int_equal(state_at(2, s->task), DGM_STATE_COMPLETED);
    clear(own);
    clear(other);
    clear(late);
    clear(s);
    stop_replicas();
}

static void a_task_is_canceled_on_another_server(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *reader = follow_at(1, s->task, 0);
    struct step *canceled = ask(&replicas[1], s->task, "", cancel_it, 0);
    check_ok(canceled->code, canceled->err);
    assert_int_equal(canceled->snapshot->head.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled_at[0], 1);
    wait_for_end(reader);
    assert_int_equal(reader->records[reader->n - 1]->head.state, DGM_STATE_CANCELED);
    struct step *again = ask(&replicas[1], s->task, "", cancel_it, 0);
    check_ok(again->code, again->err);
    struct step *unknown = ask(&replicas[1], "0123", "", cancel_it, 0);
    assert_int_equal(unknown->code, DGM_TASK_NOT_FOUND);
    clear(unknown);
    clear(again);
    clear(canceled);
    clear(reader);
    clear(s);
    stop_replicas();
}

static void a_question_is_answered_on_another_server(void **state)
{
    (void)state;
    start_replicas(3);
    struct step *s = send_text(&replicas[0], "ask", "", "");
    while (state_at(0, s->task) != DGM_STATE_INPUT_REQUIRED)
        usleep(1000);
    struct step *first = follow_at(0, s->task, 0), *other = follow_at(2, s->task, 0);
    struct step *answer = send_text(&replicas[1], "answer", s->task, "");
    check_ok(answer->code, answer->err);
    assert_int_equal(answer->turn, 2);
    assert_int_equal(n_started_at[1], 1);
    wait_for_end(first); /* they see what another server writes */
    wait_for_end(other);
    check_same_records(first, other);
    assert_int_equal(first->records[first->n - 1]->head.state, DGM_STATE_COMPLETED);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(state_at(i, s->task), DGM_STATE_COMPLETED);
    clear(answer);
    clear(first);
    clear(other);
    clear(s);
    stop_replicas();
}

static void a_message_is_accepted_by_the_run_of_another_server(void **state)
{
    (void)state;
    start_replicas(2);
    agents_accept = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    assert_true(emit_at(0, "a"));
    struct step *more = say(&replicas[1], "steer-1", "more", s->task);
    check_ok(more->code, more->err);
    assert_int_equal(more->turn, 2);
    assert_false(more->is_resend);
    assert_non_null(more->snapshot);
    assert_int_equal(more->snapshot->head.seq, more->after);
    struct step *copy = say(&replicas[1], "steer-1", "more", s->task);
    check_ok(copy->code, copy->err);
    assert_true(copy->is_resend);
    assert_int_equal(copy->turn, 2);
    assert_true(emit_at(0, "b"));
    assert_true(emit_at(0, "end"));
    read_all(&replicas[1], more, 1);
    assert_int_equal(more->n, 2); /* what follows: b, and the end */
    assert_int_equal(more->records[1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(n_started_at[0], 1);
    assert_int_equal(n_started_at[1], 0);
    clear(copy);
    clear(more);
    clear(s);
    stop_replicas();
}

static void a_message_waits_for_the_run_of_another_server(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *next = new_step();
    next->text = DGM_STR("answer");
    next->message_id = DGM_STR("waits-1");
    next->task_id = dgm_str_from(s->task);
    post_step(&replicas[1], next, 1, send_it);
    while (!replicas[1].core->forwarded)
        usleep(1000);
    usleep(20000);
    assert_true(emit_at(0, "ask"));
    sem_wait(&next->done);
    check_ok(next->code, next->err);
    assert_int_equal(next->turn, 2);
    assert_int_equal(n_started_at[0] + n_started_at[1], 2);
    read_all(&replicas[1], next, 1);
    assert_int_equal(state_at(1, s->task), DGM_STATE_COMPLETED);
    clear(next);
    clear(s);
    stop_replicas();
}

static void a_resend_finds_the_turn_on_another_server(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = say(&replicas[0], "same-1", "hold", "");
    check_ok(s->code, s->err);
    assert_true(emit_at(0, "a"));
    struct step *copy = say(&replicas[1], "same-1", "hold", "");
    check_ok(copy->code, copy->err);
    assert_true(copy->is_resend);
    assert_string_equal(copy->task, s->task);
    assert_int_equal(copy->after, 0);
    post_step(&replicas[1], copy, 1, open_reader);
    assert_true(emit_at(0, "b"));
    assert_true(emit_at(0, "end"));
    wait_for_end(copy);
    read_all(&replicas[0], s, 0);
    check_same_records(s, copy);
    assert_int_equal(n_started_at[0] + n_started_at[1], 1);
    clear(copy);
    clear(s);
    stop_replicas();
}

/* ---- servers that die ------------------------------------------------------------------------------------------------ */

static void a_run_goes_on_when_its_server_dies(void **state)
{
    (void)state;
    start_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *own = follow_at(0, s->task, 0), *other = follow_at(1, s->task, 0);
    for (int i = 0; i < 20; i++)
        assert_true(emit_at(0, i ? "b" : "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* all of it is stored */
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    assert_int_equal(n_resumed, 1);
    assert_int_equal(fence_at[1], 2);
    emit_at(0, "zombie"); /* the store refuses it; then there is no run any more */
    while (emit_at(0, "zombie"))
        usleep(1000);
    assert_true(emit_at(1, "c"));
    assert_true(emit_at(1, "end"));
    wait_for_end(own);
    wait_for_end(other);
    check_same_records(own, other);
    for (size_t i = 0; i < own->n; i++) {
        if (strstr(own->records[i]->bytes, "zombie"))
            fail_msg("record %zu is of a server that had lost the task", i);
    }
    assert_int_equal(own->n, 2 + 20 + 3);  /* task, working, b..., resumed, c, end */
    assert_int_equal(n_canceled_at[0], 0); /* it is suspended */
    struct step *late = follow_at(0, s->task, 0);
    wait_for_end(late);
    check_same_records(own, late);
    assert_int_equal(replicas[1].core->taken_over, 1);
    assert_int_equal(replicas[0].core->lost, 1);
    clear(late);
    clear(own);
    clear(other);
    clear(s);
    stop_replicas();
}

static void a_run_that_cannot_go_on_fails(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *other = follow_at(1, s->task, 0);
    assert_true(emit_at(0, "a"));
    dgm_store_memory_kill(replicas[0].store);
    wait_for_end(other);
    assert_int_equal(other->records[other->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(other->records[other->n - 1]->bytes, DGM_SERVER_STOPPED));
    emit_at(0, "zombie"); /* if it has not noticed yet */
    while (emit_at(0, "zombie"))
        usleep(1000);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(state_at(i, s->task), DGM_STATE_FAILED);
    clear(other);
    clear(s);
    stop_replicas();
}

static void calls_find_the_new_owner(void **state)
{
    (void)state;
    start_replicas(3);
    agents_resume = agents_accept = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    dgm_store_memory_kill(replicas[0].store);
    while (!held_at[1] && !held_at[2])
        usleep(1000);
    size_t owner = held_at[1] ? 1 : 2, other = 3 - owner;
    struct step *more = say(&replicas[other], "more-1", "more", s->task);
    check_ok(more->code, more->err);
    assert_int_equal(more->turn, 2);
    struct step *zombie = say(&replicas[0], "more-2", "more", s->task);
    if (zombie->code ==
        DGM_UNAVAILABLE) { /* it did not know that it had lost the task; now it does */
        clear(zombie);
        zombie = say(&replicas[0], "more-2", "more", s->task);
    }
    check_ok(zombie->code, zombie->err);
    assert_int_equal(zombie->turn, 3);
    struct step *canceled = ask(&replicas[other], s->task, "", cancel_it, 0);
    check_ok(canceled->code, canceled->err);
    assert_int_equal(canceled->snapshot->head.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled_at[owner], 1);
    clear(canceled);
    clear(zombie);
    clear(more);
    clear(s);
    stop_replicas();
}

static void a_drain_hands_over(void **state)
{
    (void)state;
    start_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *other = follow_at(1, s->task, 0);
    struct step *own = follow_at(0, s->task, 0);
    assert_true(emit_at(0, "a"));
    drain_replica(0, 10);
    wait_for_end(own); /* it comes back with its cursor */
    wait_until_held(1);
    assert_true(emit_at(1, "end"));
    wait_for_end(other);
    assert_int_equal(other->records[other->n - 1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(n_resumed, 1);
    assert_true(own->n < other->n);
    clear(own);
    clear(other);
    clear(s);
    stop_replicas();
}

/* ---- leases that are lost in the middle ------------------------------------------------------------------------------ */

static void *write_at_1(void *arg)
{
    for (int i = 0; i < 500; i++)
        emit_at(1, i ? "b" : "a");
    emit_at(1, "end");
    return arg;
}

/* The run of the first server ends, but its end is refused. Its readers see what the other server writes, and no end before. */
static void an_end_that_is_refused_is_not_seen(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        start_replicas(2);
        agents_resume = true;
        struct step *s = send_text(&replicas[0], "hold", "", "");
        struct step *own = follow_at(0, s->task, 0), *other = follow_at(1, s->task, 0);
        assert_true(emit_at(0, "a"));
        dgm_store_memory_kill(replicas[0].store);
        wait_until_held(1);
        pthread_t writer;
        pthread_create(&writer, NULL, write_at_1, NULL);
        usleep((useconds_t)(1000 + 200 * round));
        emit_at(0, "end");
        pthread_join(writer, NULL);
        wait_for_end(own);
        wait_for_end(other);
        check_same_records(own, other);
        assert_int_equal(own->records[own->n - 1]->head.state, DGM_STATE_COMPLETED);
        clear(own);
        clear(other);
        clear(s);
        stop_replicas();
    }
}

/* Calls that come while a task is taken over find it with all its records, or not at all. */
static void cancels_meet_a_takeover(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct step *canceled[6];
        start_replicas(2);
        agents_accept = true;
        struct step *s = send_text(&replicas[0], "hold", "", "");
        struct step *other = follow_at(1, s->task, 0);
        assert_true(emit_at(0, "a"));
        struct step *more = say(&replicas[0], "more", "more", s->task);
        check_ok(more->code, more->err);
        assert_int_equal(state_at(1, s->task), DGM_STATE_WORKING);
        for (size_t i = 0; i < 6; i++) {
            canceled[i] = new_step();
            canceled[i]->task_id = dgm_str_from(s->task);
        }
        post_step(&replicas[1], canceled[0], 0, cancel_it);
        dgm_store_memory_kill(replicas[0].store);
        for (size_t i = 1; i < 6; i++)
            post_step(&replicas[1], canceled[i], i % N_LOOPS, cancel_it);
        for (size_t i = 0; i < 6; i++) {
            sem_wait(&canceled[i]->done);
            if (canceled[i]->code && canceled[i]->code != DGM_TASK_NOT_CANCELABLE)
                fail_msg("round %d, cancel %zu: %s", round, i, canceled[i]->err.msg);
            clear(canceled[i]);
        }
        wait_for_end(other);
        assert_true(dgm_state_is_terminal(other->records[other->n - 1]->head.state));
        clear(other);
        clear(more);
        clear(s);
        stop_replicas();
    }
}

/* The database was not reached: what it has is read, and the run goes on. Readers see the log, and no end. */
static void an_append_without_an_answer(void **state)
{
    (void)state;
    for (int is_stored = 0; is_stored < 2; is_stored++) {
        start_replicas(2);
        agents_resume = true;
        struct step *s = send_text(&replicas[0], "hold", "", "");
        struct step *own = follow_at(0, s->task, 0), *other = follow_at(1, s->task, 0);
        assert_true(emit_at(0, "a"));
        assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
        dgm_store_memory_fail(replicas[0].store, 1, is_stored);
        assert_true(emit_at(0, "b"));
        while (n_resumed == 0 || (!held_at[0] && !held_at[1]))
            usleep(1000);
        size_t i = held_at[1] ? 1 : 0;
        assert_true(fence_at[i] > 1); /* what is stored late does not fit */
        assert_true(emit_at(i, "end"));
        wait_for_end(own);
        wait_for_end(other);
        check_same_records(own, other);
        assert_int_equal(own->n, 5 + is_stored); /* task, working, a, (b), resumed, completed */
        assert_int_equal(own->records[own->n - 1]->head.state, DGM_STATE_COMPLETED);
        clear(own);
        clear(other);
        clear(s);
        stop_replicas();
    }
}

static void a_first_append_without_an_answer(void **state)
{
    (void)state;
    for (int is_stored = 0; is_stored < 2; is_stored++) {
        start_replicas(2);
        agents_resume = true;
        dgm_store_memory_fail(replicas[0].store, 1, is_stored);
        struct step *s = say(&replicas[0], "first", "hold", "");
        assert_int_equal(s->code, DGM_UNAVAILABLE);
        while (is_stored && n_resumed == 0)
            usleep(1000);
        struct step *again = say(&replicas[1], "first", "hold", "");
        check_ok(again->code, again->err);
        assert_int_equal(again->is_resend, is_stored);
        while (!held_at[0] && !held_at[1])
            usleep(1000);
        struct step *reader = follow_at(1, again->task, 0);
        while (!emit_at(0, "end") && !emit_at(1, "end"))
            usleep(1000);
        wait_for_end(reader);
        assert_int_equal(reader->records[reader->n - 1]->head.state, DGM_STATE_COMPLETED);
        clear(reader);
        clear(again);
        clear(s);
        stop_replicas();
    }
}

/* ---- the same message ------------------------------------------------------------------------------------------------- */

static void one_message_sent_to_two_servers_is_one_turn(void **state)
{
    (void)state;
    start_replicas(2);
    for (int i = 0; i < 100; i++) {
        char id[32];
        struct step *a = new_step(), *b = new_step();
        snprintf(id, sizeof id, "both-%d", i);
        a->text = b->text = DGM_STR("chunks");
        a->message_id = b->message_id = dgm_str_from(id);
        post_step(&replicas[0], a, (size_t)i, send_it);
        post_step(&replicas[1], b, (size_t)i, send_it);
        sem_wait(&a->done);
        sem_wait(&b->done);
        check_ok(a->code, a->err);
        check_ok(b->code, b->err);
        assert_string_equal(a->task, b->task);
        assert_true(a->is_resend != b->is_resend);
        read_all(&replicas[0], a, 0);
        read_all(&replicas[1], b, 0);
        check_same_records(a, b);
        clear(a);
        clear(b);
    }
    stop_replicas();
}

/* ---- callers that leave --------------------------------------------------------------------------------------------------- */

static void leave_it(struct step *s)
{
    dgm_core_disconnected(s->e->core, s->owner, s->agent, s->task_id, 1, 10);
    sem_post(&s->done);
}

static void a_run_without_readers_anywhere_is_canceled(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    clear(ask(&replicas[1], s->task, "", leave_it, 0));
    while (n_canceled_at[0] == 0)
        usleep(1000);
    clear(s);
    s = send_text(&replicas[0], "hold", "", "");
    struct step *reader = follow_at(1, s->task, 0);
    clear(ask(&replicas[0], s->task, "", leave_it, 0));
    usleep(200000);
    assert_int_equal(n_canceled_at[0], 1); /* it has a reader on the other server */
    assert_true(emit_at(0, "end"));
    wait_for_end(reader);
    clear(reader);
    clear(s);
    stop_replicas();
}

DGM_TEST_MAIN(dgm_test(a_stream_is_read_on_another_server),
              dgm_test(a_task_is_canceled_on_another_server),
              dgm_test(a_question_is_answered_on_another_server),
              dgm_test(a_message_is_accepted_by_the_run_of_another_server),
              dgm_test(a_message_waits_for_the_run_of_another_server),
              dgm_test(a_resend_finds_the_turn_on_another_server),
              dgm_test(a_run_goes_on_when_its_server_dies), dgm_test(a_run_that_cannot_go_on_fails),
              dgm_test(calls_find_the_new_owner), dgm_test(a_drain_hands_over),
              dgm_test(an_end_that_is_refused_is_not_seen), dgm_test(cancels_meet_a_takeover),
              dgm_test(an_append_without_an_answer), dgm_test(a_first_append_without_an_answer),
              dgm_test(one_message_sent_to_two_servers_is_one_turn),
              dgm_test(a_run_without_readers_anywhere_is_canceled))
