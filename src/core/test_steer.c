/* core/test_steer.c - messages to a run that works. */
#include "core/test_core.h"

/* ---- an agent that accepts messages ----------------------------------------------------------------------------------- */

static char heard[256]; /* texts of messages that came while it worked */
static _Atomic int n_offered;
static char resumed_with[256]; /* the message of a resumed run, and those it had accepted */
static sem_t was_resumed;
static _Atomic bool stops_later; /* at a cancel */

static void add_text(char *to, size_t size, const dgm_message *m)
{
    size_t n = strlen(to);
    snprintf(to + n, size - n, "%.*s|", DGM_P(m->parts.at[0].content));
}

static void listener_start(void *agent, dgm_run *run)
{
    (void)agent;
    n_started++;
    if (run->input->is_resumed) {
        assert_non_null(run->input->task);
        add_text(resumed_with, sizeof resumed_with, run->input->message);
        for (size_t i = 0; i < run->input->accepted.n; i++)
            add_text(resumed_with, sizeof resumed_with, &run->input->accepted.at[i]);
        held = run;
        sem_post(&was_resumed);
    } else if (dgm_str_is(run->input->message->parts.at[0].content, "ask")) {
        status(run, DGM_STATE_INPUT_REQUIRED, "which one?");
        run->ops->end(run, NULL);
    } else {
        status(run, DGM_STATE_WORKING, NULL);
        held = run;
    }
}

static void listener_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    n_canceled++;
    if (!stops_later)
        run->ops->end(run, NULL);
}

static bool listener_message(void *agent, dgm_run *run, const dgm_message *m,
                             const dgm_json *metadata)
{
    (void)agent, (void)metadata;
    n_offered++;
    assert_false(run->canceled);
    assert_true(dgm_str_eq(m->task_id, run->input->task_id));
    assert_true(dgm_str_eq(m->context_id, run->input->context_id));
    if (dgm_str_is(m->parts.at[0].content, "not now"))
        return false;
    add_text(heard, sizeof heard, m);
    return true;
}

static const dgm_backend listening = {.type = "listening",
                                      .can_resume = true,
                                      .wants_history = true,
                                      .start = listener_start,
                                      .cancel = listener_cancel,
                                      .message = listener_message};

static void start_listening(struct env *e, void **state)
{
    backend_of_agents = &listening;
    heard[0] = resumed_with[0] = 0;
    n_offered = 0;
    stops_later = false;
    sem_init(&was_resumed, 0, 0);
    start_env(e, state, 0);
}

static void let_it_complete(void *arg)
{
    dgm_run *run = arg;
    held = NULL;
    chunk(run, "what I heard", false, true);
    status(run, DGM_STATE_COMPLETED, "done");
    run->ops->end(run, NULL);
}

static void complete(void)
{
    dgm_run *run = held;
    assert_non_null(run);
    dgm_loop_post(run->loop, let_it_complete, run);
}

static size_t count_user_messages(const dgm_task *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->history.n; i++)
        n += t->history.at[i].role == DGM_ROLE_USER;
    return n;
}

/* ---- turns by their callers' names ---------------------------------------------------------------------------------- */

static uint64_t last_seq;

static void on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code) {
        s->err = *err;
    } else {
        s->turn = turn->turn;
        s->first_seq = turn->first_seq;
        last_seq = turn->last_seq;
    }
    sem_post(&s->done);
}

static void find_it(struct step *s)
{
    dgm_core_find_turn(s->e->core, s->owner, (dgm_str){0}, DGM_STR("ag-ui"), s->caller_id, on_turn,
                       s);
}

static uint32_t find_turn(struct env *e, const char *name)
{
    struct step *s = new_step();
    s->caller_id = dgm_str_from(name);
    do_step(e, s, 1, find_it);
    check_ok(s->code, s->err);
    uint32_t turn = s->turn;
    clear(s);
    return turn;
}

static struct step *send_named(struct env *e, const char *text, const char *task, const char *name)
{
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(name);
    s->task_id = dgm_str_from(task);
    s->protocol = DGM_STR("ag-ui");
    s->caller_id = dgm_str_from(name);
    do_step(e, s, 2, send_it);
    check_ok(s->code, s->err);
    return s;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void check_order(const struct step *all)
{
    size_t message = 0, answer = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (all->records[i]->head.kind == DGM_EVENT_INTERNAL)
            message = i;
        if (all->records[i]->head.kind == DGM_EVENT_ARTIFACT)
            answer = i;
    }
    assert_true(message > 0 && answer > message);
    assert_int_equal(all->records[all->n - 1]->head.state, DGM_STATE_COMPLETED);
}

static void a_message_reaches_a_run_at_work(void **state)
{
    struct env e;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    start_listening(&e, state);
    struct step *first = send_named(&e, "work", NULL, "run-1");
    struct step *second = send_named(&e, "also this", first->task, "run-2");
    assert_string_equal(heard, "also this|");
    assert_int_equal(n_started, 1);
    assert_int_equal(second->turn, 2);
    dgm_task seen = read_task(a, second->snapshot);
    assert_int_equal(seen.status.state, DGM_STATE_WORKING);
    assert_int_equal(count_user_messages(&seen), 2);
    assert_int_equal(find_turn(&e, "run-1"), 1);
    assert_int_equal(last_seq, 0);
    assert_int_equal(find_turn(&e, "run-2"), 2);
    assert_int_equal(last_seq, 0);
    complete();
    read_all(&e, first, 0);
    check_order(first);
    read_all(&e, second, 1);
    assert_true(second->n > 0 && second->records[0]->head.seq > second->first_seq);
    assert_int_equal(second->records[second->n - 1]->head.seq,
                     first->records[first->n - 1]->head.seq);
    assert_int_equal(n_started, 1);
    find_turn(&e, "run-1");
    assert_int_equal(last_seq, second->first_seq - 1);
    find_turn(&e, "run-2");
    assert_int_equal(last_seq, first->records[first->n - 1]->head.seq);
    clear(first);
    clear(second);
    stop_env(&e);
}

static void the_same_message_again_is_the_same_turn(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *first = say(&e, "m-1", "work", NULL);
    struct step *second = say(&e, "m-2", "also this", first->task);
    struct step *again = say(&e, "m-2", "also this", first->task);
    assert_int_equal(again->code, DGM_OK);
    assert_true(again->is_resend);
    assert_int_equal(again->turn, second->turn);
    assert_string_equal(heard, "also this|");
    complete();
    read_all(&e, again, 0); /* follows the task, too */
    assert_int_equal(again->records[again->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(again);
    clear(second);
    clear(first);
    stop_env(&e);
}

static struct step *post_say(struct env *e, const char *id, const char *text, const char *task)
{
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(id);
    s->task_id = dgm_str_from(task);
    post_step(e, s, 0, send_it);
    return s;
}

static void a_message_that_is_not_accepted_waits(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *first = say(&e, "m-1", "work", NULL);
    struct step *waiting = post_say(&e, "m-2", "not now", first->task);
    struct step *behind = post_say(&e, "m-3", "ask", first->task); /* does not overtake it */
    while (n_offered < 1)
        sched_yield();
    release(); /* the run asks a question */
    sem_wait(&waiting->done);
    assert_int_equal(waiting->code, DGM_OK);
    assert_int_equal(waiting->turn, 2);
    assert_int_equal(n_started, 2);
    /* The run that it has started is offered the next one. */
    sem_wait(&behind->done);
    assert_int_equal(behind->code, DGM_OK);
    assert_int_equal(behind->turn, 3);
    assert_int_equal(n_started, 2);
    assert_string_equal(heard, "ask|");
    complete();
    read_all(&e, waiting, 0);
    clear(waiting);
    clear(behind);
    clear(first);
    stop_env(&e);
}

static void accepted_messages_survive_a_crash(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *old = say(&e, "m-0", "ask", NULL); /* an earlier turn with a run of its own */
    struct step *first = say(&e, "m-1", "work", old->task);
    clear(say(&e, "m-2", "also this", first->task));
    clear(say(&e, "m-3", "and that", first->task));
    assert_string_equal(heard, "also this|and that|");
    restart(&e);
    recover_tasks(&e);
    sem_wait(&was_resumed);
    assert_string_equal(resumed_with, "work|also this|and that|");
    clear(say(&e, "m-4", "more", first->task)); /* also the resumed run accepts messages */
    assert_string_equal(heard, "also this|and that|more|");
    complete();
    struct step *all = ask(&e, first->task, NULL, subscribe_it, 0);
    read_all(&e, all, 1);
    assert_int_equal(all->records[all->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(all);
    clear(first);
    clear(old);
    stop_env(&e);
}

static void a_run_that_is_canceled_gets_none(void **state)
{
    struct env e;
    start_listening(&e, state);
    stops_later = true;
    struct step *first = say(&e, "m-1", "work", NULL);
    struct step *cancel = new_step(), *late = new_step();
    cancel->task_id = late->task_id = dgm_str_from(first->task);
    late->text = DGM_STR("too late");
    late->message_id = DGM_STR("m-2");
    post_step(&e, cancel, 0, cancel_it);
    while (n_canceled < 1)
        sched_yield();
    post_step(&e, late, 0, send_it);
    uv_sleep(20); /* it may be there by then: in any case it is not offered */
    dgm_run *run = held;
    dgm_loop_post(run->loop, let_it_complete, run);
    sem_wait(&cancel->done);
    sem_wait(&late->done);
    assert_int_equal(late->code, DGM_UNSUPPORTED_OPERATION); /* the task has ended */
    assert_int_equal(n_offered, 0);
    clear(late);
    clear(cancel);
    clear(first);
    stop_env(&e);
}

static void a_task_that_waits_gets_an_ordinary_turn(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *first = say(&e, "m-1", "ask", NULL);
    struct step *second = say(&e, "m-2", "work", first->task);
    assert_int_equal(second->turn, 2);
    assert_int_equal(n_started, 2);
    assert_int_equal(n_offered, 0);
    complete();
    read_all(&e, second, 0);
    clear(second);
    clear(first);
    stop_env(&e);
}

/* Its run has ended: the next one starts when its caller answers. */
static void a_task_that_waits_is_not_resumed(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *waits = say(&e, "m-1", "ask", NULL), *works = say(&e, "m-2", "work", NULL);
    restart(&e);
    recover_tasks(&e);
    sem_wait(&was_resumed); /* the one that worked, without being asked */
    assert_string_equal(resumed_with, "work|");
    assert_int_equal(n_started, 3);
    assert_int_equal(dgm_core_stats_of(e.core).running, 1);
    complete();
    struct step *more = say(&e, "m-3", "work", waits->task);
    assert_int_equal(more->turn, 2);
    assert_int_equal(n_started, 4);
    assert_string_equal(resumed_with, "work|");
    clear(more);
    clear(works);
    clear(waits);
    stop_env(&e);
}

/* The run exists, and its agent is started when the history was read. */
static void a_message_before_the_start_is_offered_then(void **state)
{
    struct env e;
    history_of_agents = (dgm_history_limits){50, 262144, true};
    start_listening(&e, state);
    struct step *first = say(&e, "m-1", "ask", NULL);
    struct step *steps[2] = {new_step(), new_step()};
    for (size_t i = 0; i < 2; i++) {
        steps[i]->task_id = dgm_str_from(first->task);
        steps[i]->text = i ? DGM_STR("also this") : DGM_STR("work");
        steps[i]->message_id = i ? DGM_STR("m-3") : DGM_STR("m-2");
        post_step(&e, steps[i], 0, send_it);
    }
    for (size_t i = 0; i < 2; i++) {
        sem_wait(&steps[i]->done);
        assert_int_equal(steps[i]->code, DGM_OK);
        assert_int_equal(steps[i]->turn, i + 2);
    }
    assert_string_equal(heard, "also this|");
    assert_int_equal(n_started, 2);
    complete();
    read_all(&e, steps[1], 0);
    clear(steps[0]);
    clear(steps[1]);
    clear(first);
    stop_env(&e);
    history_of_agents = (dgm_history_limits){0};
}

static void join_it(struct step *s)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = s->text};
    dgm_message m = {.message_id = DGM_STR("j"),
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .task_id = s->task_id};
    dgm_send send = {.message = &m, .joins_run = true, .always_new = true};
    dgm_core_send(s->e->core, &send, on_sent, s);
}

static dgm_code join(struct env *e, const char *text, const char *task)
{
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->task_id = dgm_str_from(task);
    do_step(e, s, 1, join_it);
    dgm_code code = s->code;
    clear(s);
    return code;
}

static void a_message_may_be_for_a_run_only(void **state)
{
    struct env e;
    start_listening(&e, state);
    struct step *waits = say(&e, "m-1", "ask", NULL), *works = say(&e, "m-2", "work", NULL);
    assert_int_equal(join(&e, "hello", waits->task), DGM_UNSUPPORTED_OPERATION);
    assert_int_equal(join(&e, "not now", works->task), DGM_UNSUPPORTED_OPERATION);
    assert_int_equal(join(&e, "now", works->task), DGM_OK);
    assert_string_equal(heard, "now|");
    complete();
    read_all(&e, works, 0);
    assert_int_equal(join(&e, "now", works->task), DGM_UNSUPPORTED_OPERATION);
    clear(works);
    clear(waits);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(a_message_reaches_a_run_at_work),
              ON_BOTH(the_same_message_again_is_the_same_turn),
              ON_BOTH(a_message_that_is_not_accepted_waits),
              ON_BOTH(accepted_messages_survive_a_crash), ON_BOTH(a_run_that_is_canceled_gets_none),
              ON_BOTH(a_task_that_waits_gets_an_ordinary_turn),
              ON_BOTH_HOLDS(a_task_that_waits_is_not_resumed, "R002-37"),
              ON_BOTH(a_message_before_the_start_is_offered_then),
              ON_BOTH(a_message_may_be_for_a_run_only))
