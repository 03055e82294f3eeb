/* core/test_resend.c - messages that come again, and messages that wait. */
#include "core/test_core.h"

static void messages_to_a_working_task_wait_16_of_them(void **state)
{
    enum { SENT = DGM_MAX_QUEUED_MESSAGES + 1 };
    struct env e;
    struct step *s[SENT];
    static char ids[SENT][16];
    size_t refused = SENT;
    start_env(&e, state, 0);
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t i = 0; i < SENT; i++) {
        s[i] = new_step();
        s[i]->text = DGM_STR("hold");
        snprintf(ids[i], sizeof ids[i], "q-%zu", i); /* of one id they would be one message */
        s[i]->message_id = dgm_str_from(ids[i]);
        s[i]->task_id = dgm_str_from(running->task);
        post_step(&e, s[i], i, send_it);
    }
    for (size_t i = 0; refused == SENT; i = (i + 1) % SENT) { /* whichever comes last has no room */
        if (sem_trywait(&s[i]->done) == 0)
            refused = i;
    }
    assert_int_equal(s[refused]->code, DGM_UNSUPPORTED_OPERATION);
    assert_non_null(strstr(s[refused]->err.msg, "16 messages"));
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_OK);
    for (size_t i = 0; i < SENT; i++) {
        if (i != refused) {
            sem_wait(&s[i]->done);
            assert_int_equal(s[i]->code, DGM_UNSUPPORTED_OPERATION);
            assert_non_null(strstr(s[i]->err.msg, "has ended"));
        }
        clear(s[i]);
    }
    assert_int_equal(n_started, 1);
    clear(c);
    clear(running);
    stop_env(&e);
}

static void copies_of_a_message_start_the_agent_once(void **state)
{
    enum { COPIES = 300 };
    struct env e;
    static struct step *s[COPIES];
    start_env(&e, state, 0);
    for (int i = 0; i < COPIES; i++) {
        s[i] = new_step();
        s[i]->text = DGM_STR("chunks");
        s[i]->message_id = DGM_STR("the-same");
        post_step(&e, s[i], (size_t)i, send_it);
    }
    size_t n_first = 0;
    for (int i = 0; i < COPIES; i++) {
        sem_wait(&s[i]->done);
        if (s[i]->code)
            fail_msg("%s", s[i]->err.msg);
        assert_string_equal(s[i]->task, s[0]->task);
        n_first += !s[i]->is_resend;
    }
    assert_int_equal(n_first, 1);
    assert_int_equal(n_started, 1);
    /* and much later, from the store */
    struct step *late = new_step();
    late->text = DGM_STR("chunks");
    late->message_id = DGM_STR("the-same");
    do_step(&e, late, 1, send_it);
    assert_true(late->is_resend);
    assert_string_equal(late->task, s[0]->task);
    /* the same id with other words is another message */
    struct step *other = new_step();
    other->text = DGM_STR("ask");
    other->message_id = DGM_STR("the-same");
    do_step(&e, other, 2, send_it);
    assert_false(other->is_resend);
    assert_string_not_equal(other->task, s[0]->task);
    assert_int_equal(n_started, 2);
    for (int i = 0; i < COPIES; i++)
        clear(s[i]);
    clear(late);
    clear(other);
    stop_env(&e);
}

static void a_resend_to_a_finished_task_is_given_all_of_it(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = say(&e, "the-message", "chunks", NULL);
    read_all(&e, first, 0);
    for (int round = 0; round < 3; round++) {
        struct step *again = say(&e, "the-message", "chunks", NULL);
        if (again->code)
            fail_msg("%s", again->err.msg);
        assert_true(again->is_resend);
        assert_string_equal(again->task, first->task);
        assert_string_equal(again->context, first->context);
        assert_null(again->snapshot);
        assert_int_equal(again->after, 0);
        read_all(&e, again, (size_t)round);
        assert_int_equal(again->n, first->n);
        for (size_t i = 0; i < first->n; i++)
            assert_string_equal(again->records[i]->bytes, first->records[i]->bytes);
        clear(again);
        if (round == 1)
            restart(&e);
    }
    assert_int_equal(n_started, 1);
    clear(first);
    stop_env(&e);
}

static void a_resent_answer_is_not_a_second_answer(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = say(&e, "the-first", "ask", NULL);
    for (int round = 0; round < 4; round++) { /* the same question again and again */
        struct step *more = say(&e, "again", "ask", first->task);
        if (more->code)
            fail_msg("%s", more->err.msg);
        assert_int_equal(more->is_resend, round > 0);
        assert_string_equal(more->task, first->task);
        more->until_question = true;
        if (round) { /* that turn is over: nothing will follow */
            assert_int_equal(read_task(a, more->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
            read_all(&e, more, 0);
            assert_int_equal(more->n, 0);
        }
        clear(more);
        if (round == 2)
            restart(&e);
    }
    assert_int_equal(n_started, 2);
    struct step *other = say(&e, "again", "answer", first->task); /* other words: another message */
    assert_false(other->is_resend);
    read_all(&e, other, 1);
    struct step *late = say(&e, "again", "answer", first->task); /* known also after the end */
    assert_int_equal(late->code, DGM_OK);
    assert_true(late->is_resend);
    assert_int_equal(read_task(a, late->snapshot).status.state, DGM_STATE_COMPLETED);
    struct step *too_late = say(&e, "new", "answer", first->task);
    assert_int_equal(too_late->code, DGM_UNSUPPORTED_OPERATION);
    assert_int_equal(n_started, 3);
    clear(too_late);
    clear(late);
    clear(other);
    clear(first);
    stop_env(&e);
}

static void copies_of_a_message_that_waits_are_one_message(void **state)
{
    enum { COPIES = 40, WAITING = 10 };
    struct env e;
    static struct step *s[WAITING][COPIES];
    static char ids[WAITING][16];
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t i = 0; i < WAITING; i++)
        snprintf(ids[i], sizeof ids[i], "w-%zu", i);
    for (size_t k = 0; k < COPIES; k++) {
        for (size_t i = 0; i < WAITING; i++) {
            s[i][k] = new_step();
            s[i][k]->message_id = dgm_str_from(ids[i]);
            s[i][k]->text = DGM_STR("ask");
            s[i][k]->task_id = dgm_str_from(running->task);
            post_step(&e, s[i][k], k, send_it);
        }
    }
    struct step *settled = ask(&e, running->task, NULL, get_it, 0); /* some of them are there */
    release();
    for (size_t i = 0; i < WAITING; i++) {
        size_t n_first = 0;
        for (size_t k = 0; k < COPIES; k++) {
            sem_wait(&s[i][k]->done);
            if (s[i][k]->code)
                fail_msg("%s", s[i][k]->err.msg);
            n_first += !s[i][k]->is_resend;
            clear(s[i][k]);
        }
        assert_int_equal(n_first, 1);
    }
    assert_int_equal(n_started, 1 + WAITING);
    struct step *got = ask(&e, running->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).history.n, 1 + 2 * WAITING);
    clear(settled);
    clear(got);
    clear(running);
    stop_env(&e);
}

/* Content of more than DGM_CONTENT_BYTES is compared by its digest. */
static void a_long_message_is_compared_to_its_last_byte(void **state)
{
    enum { N = 4 * DGM_CONTENT_BYTES };
    static char texts[3][N + 1];
    struct step *s[3];
    struct env e;
    start_env(&e, state, 0);
    for (int i = 0; i < 3; i++) {
        memset(texts[i], 'x', N);
        memcpy(texts[i], "chunks ", 7);
        s[i] = new_step();
        s[i]->text = (dgm_str){texts[i], N};
        s[i]->message_id = DGM_STR("long");
    }
    texts[2][N - 1] = 'y';
    for (int i = 0; i < 3; i++)
        do_step(&e, s[i], (size_t)i, send_it);
    assert_true(s[1]->is_resend);
    assert_string_equal(s[1]->task, s[0]->task);
    assert_false(s[2]->is_resend);
    assert_string_not_equal(s[2]->task, s[0]->task);
    assert_int_equal(n_started, 2);
    for (int i = 0; i < 3; i++)
        clear(s[i]);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(messages_to_a_working_task_wait_16_of_them),
              ON_BOTH_HOLDS(copies_of_a_message_start_the_agent_once, "R003-08"),
              ON_BOTH_HOLDS(a_long_message_is_compared_to_its_last_byte, "R003-08"),
              ON_BOTH_HOLDS(a_resend_to_a_finished_task_is_given_all_of_it, "R003-08"),
              ON_BOTH_HOLDS(a_resent_answer_is_not_a_second_answer, "R003-08"),
              ON_BOTH_HOLDS(copies_of_a_message_that_waits_are_one_message, "R003-08"))
