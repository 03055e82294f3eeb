/* core/test_sends.c - what a send may request: a new turn in any case; where its turn starts. */
#include "core/test_core.h"

static struct step *new_send(const char *id, const char *text, const char *task)
{
    struct step *s = new_step();
    s->message_id = dgm_str_from(id);
    s->text = dgm_str_from(text);
    s->task_id = dgm_str_from(task);
    return s;
}

static struct step *sent(struct env *e, struct step *s)
{
    static size_t n;
    do_step(e, s, ++n, send_it);
    return s;
}

/* ---- a new turn in any case ---------------------------------------------------------------------------------- */

static struct step *send_anew(struct env *e, const char *text, const char *task)
{
    struct step *s = new_send("the-same", text, task);
    s->always_new = true;
    return sent(e, s);
}

static void the_same_message_can_be_wanted_again(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *known = sent(&e, new_send("the-same", "ask", NULL));
    struct step *first = send_anew(&e, "ask", NULL), *second = send_anew(&e, "ask", NULL);
    assert_string_not_equal(first->task, known->task);
    assert_string_not_equal(first->task, second->task);
    assert_false(first->is_resend || second->is_resend);
    assert_int_equal(n_started, 3);
    for (uint32_t turn = 2; turn < 5; turn++) { /* to a task likewise */
        struct step *more = send_anew(&e, "ask", first->task);
        assert_int_equal(more->code, DGM_OK);
        assert_false(more->is_resend);
        assert_int_equal(more->turn, turn);
        clear(more);
    }
    assert_int_equal(n_started, 6);
    struct step *again = sent(&e, new_send("the-same", "ask", NULL)); /* it is known as before */
    assert_true(again->is_resend);
    assert_string_equal(again->task, known->task);
    struct step *running = send_anew(&e, "hold", NULL); /* while it is on its way, or waits */
    struct step *waiting[3];
    for (size_t i = 0; i < 3; i++) {
        waiting[i] = new_send("the-same", "ask", running->task);
        waiting[i]->always_new = true;
        post_step(&e, waiting[i], i, send_it);
    }
    struct step *there = ask(&e, running->task, NULL, get_it, 0);
    release();
    for (size_t i = 0; i < 3; i++) {
        sem_wait(&waiting[i]->done);
        assert_int_equal(waiting[i]->code, DGM_OK);
        assert_false(waiting[i]->is_resend);
        clear(waiting[i]);
    }
    struct step *got = ask(&e, running->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(n_started, 10);
    clear(got);
    clear(there);
    clear(running);
    clear(again);
    clear(second);
    clear(first);
    clear(known);
    stop_env(&e);
}

/* ---- where a turn begins --------------------------------------------------------------------------------------- */

static void a_send_says_where_its_turn_begins(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = sent(&e, new_send("m-1", "ask", NULL));
    assert_int_equal(first->first_seq, 1);
    struct step *got = ask(&e, first->task, NULL, get_it, 0);
    uint64_t last = got->snapshot->head.seq;
    struct step *second = sent(&e, new_send("m-2", "hold", first->task));
    assert_int_equal(second->first_seq, last + 1);
    assert_int_equal(second->turn, 2);
    struct step *again = sent(&e, new_send("m-2", "hold", first->task)); /* it runs */
    assert_true(again->is_resend);
    assert_int_equal(again->first_seq, second->first_seq);
    clear(again);
    release();
    struct step *over = ask(&e, first->task, NULL, subscribe_it, second->first_seq);
    over->until_question = true;
    read_all(&e, over, 0);
    again =
        sent(&e, new_send("m-1", "ask", NULL)); /* a first turn is given from its first record */
    assert_true(again->is_resend);
    assert_int_equal(again->first_seq, 1);
    clear(again);
    again =
        sent(&e, new_send("m-2", "hold", first->task)); /* of a later one only what it came to */
    assert_true(again->is_resend);
    assert_int_equal(again->first_seq, 0);
    clear(again);
    clear(over);
    clear(second);
    clear(got);
    clear(first);
    stop_env(&e);
}

/* ---- notes -------------------------------------------------------------------------------------------------------- */

static void on_put(dgm_code code, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static void put_it(struct step *s)
{
    dgm_note note = {.owner = s->owner,
                     .kind = DGM_STR("conversation"),
                     .name = DGM_STR("conv_1"),
                     .text = s->text};
    dgm_core_put_note(s->e->core, &note, on_put, s);
}

static void on_found(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    s->is_message = text.p; /* is there one? */
    snprintf(s->task, sizeof s->task, "%.*s", DGM_P(text));
    sem_post(&s->done);
}

static void find_it(struct step *s)
{
    dgm_core_get_note(s->e->core, s->owner, DGM_STR("conversation"), DGM_STR("conv_1"), on_found,
                      s);
}

static struct step *note(struct env *e, const char *text, void (*fn)(struct step *))
{
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    do_step(e, s, 1, fn);
    return s;
}

static void notes_are_kept_until_the_server_ends(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *s = note(&e, NULL, find_it);
    assert_int_equal(s->code, DGM_OK);
    assert_false(s->is_message);
    clear(s);
    s = note(&e, "{\"a\":1}", put_it);
    assert_int_equal(s->code, DGM_OK);
    clear(s);
    restart(&e);
    s = note(&e, NULL, find_it);
    assert_string_equal(s->task, "{\"a\":1}");
    clear(s);
    dgm_core_stop(e.core);
    s = note(&e, NULL, find_it);
    assert_int_equal(s->code, DGM_UNAVAILABLE);
    clear(s);
    s = note(&e, "more", put_it);
    assert_int_equal(s->code, DGM_UNAVAILABLE);
    clear(s);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(the_same_message_can_be_wanted_again),
              ON_BOTH(a_send_says_where_its_turn_begins),
              ON_BOTH(notes_are_kept_until_the_server_ends))
