/* core/test_replicas_order.c - what happens between a request of a server to the store and its answer. */
#include "core/test_replicas_gate.h"

/* ---- calls that are tried again ------------------------------------------------------------------------------------ */

/* It was sent to a server that died, and this server has the task when it is tried again. The run emits nothing. */
static void a_delayed_call_finds_the_task_here(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    gate_close(1, DGM_JOB_COMMAND);
    struct step *canceled = post_ask(1, s->task, cancel_it);
    wait_until(gates[1].n_held == 1);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    assert_int_equal(state_at(1, s->task), DGM_STATE_WORKING); /* all of it is stored */
    gate_open(1, DGM_JOB_COMMAND);
    wait_for_answer(canceled, "the cancel");
    check_ok(canceled->code, canceled->err);
    assert_int_equal(canceled->snapshot->head.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled_at[1], 1);
    clear(canceled);
    clear(s);
    stop_replicas();
}

static void a_delayed_call_is_refused_by_a_drain(void **state)
{
    (void)state;
    sem_t drained;
    start_gated_replicas(3);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *own = send_text(&replicas[1], "hold", "", ""); /* the drain waits for it */
    gate_close(1, DGM_JOB_COMMAND);
    struct step *canceled = post_ask(1, s->task, cancel_it);
    wait_until(gates[1].n_held == 1);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(2);
    sem_init(&drained, 0, 0);
    dgm_core_drain(replicas[1].core, (uint64_t)1000 * GATE_WAIT_S * 2, on_replica_drained,
                   &drained);
    pass_loops(1);
    gate_open(1, DGM_JOB_COMMAND);
    wait_for_answer(canceled, "the cancel");
    assert_int_equal(canceled->code, DGM_UNAVAILABLE);
    assert_non_null(strstr(canceled->err.msg, "shutting down"));
    assert_true(emit_at(1, "end"));
    sem_wait(&drained);
    assert_true(emit_at(2, "end"));
    clear(canceled);
    clear(own);
    clear(s);
    stop_replicas();
}

struct attending {
    const char *task;
    uint64_t due[2];
    sem_t done;
};

static uint64_t due_of(const dgm_timer *t)
{
    return t->place ? t->loop->timers.items[t->place - 1].key : UINT64_MAX;
}

/* As if it was followed twice, a few milliseconds apart. */
static void attend_twice(void *arg)
{
    struct attending *x = arg;
    struct shard *s =
        dgm_core_shard_of(replicas[1].core, (dgm_owner){{0}, {0}}, dgm_str_from(x->task));
    struct live *l = dgm_live_find(s, (dgm_owner){{0}, {0}}, dgm_str_from(x->task));
    for (size_t i = 0; i < 2; i++) {
        usleep(3000);
        uv_update_time(&s->loop->uv);
        dgm_follow_release(l->rare->share);
        dgm_follow_start(l);
        x->due[i] = due_of(&s->share.timer);
    }
    sem_post(&x->done);
}

/* The timer of a loop reads all tasks that it follows: one more does not make the others wait. */
static void a_task_that_is_followed_delays_no_other(void **state)
{
    (void)state;
    start_gated_replicas(2);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *reader = follow_at(1, s->task, 0);
    struct attending x = {.task = s->task};
    sem_init(&x.done, 0, 0);
    dgm_loop_post(dgm_core_shard_of(replicas[1].core, s->owner, dgm_str_from(s->task))->loop,
                  attend_twice, &x);
    sem_wait(&x.done);
    assert_true(x.due[0] != UINT64_MAX);
    assert_true(x.due[1] <= x.due[0]);
    assert_true(emit_at(0, "end"));
    wait_for_end(reader);
    clear(reader);
    clear(s);
    stop_replicas();
}

/* ---- messages that wait for a run of another server ---------------------------------------------------------------- */

static const bool with_dedupe, without_dedupe = true;

/* At the first server, whose run holds; the name of its task is the only thing that is left of the call. */
static void start_task_that_holds(char *task)
{
    struct step *s = send_text(&replicas[0], "hold", "", "");
    check_ok(s->code, s->err);
    snprintf(task, 64, "%s", s->task);
    clear(s);
}

/* It was executed once: the task waits for the next message. */
static void check_executed(struct step *next, const char *task)
{
    check_ok(next->code, next->err);
    assert_int_equal(next->turn, 2);
    wait_until(state_at(1, task) == DGM_STATE_INPUT_REQUIRED);
    pass_loops(0);
    assert_int_equal(state_at(1, task), DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(n_started_at[0] + n_started_at[1], 2);
    clear(next);
}

/* The server that sent it does not get an answer in time, and sends it again. */
static void a_message_that_waits_long_is_executed_once(void **state)
{
    char task[64];
    start_gated_replicas(2);
    start_task_that_holds(task);
    gate_set_command_ms(1, 20);
    struct step *next = post_message(1, "waits", "ask", task, *(const bool *)*state);
    wait_until(gates[1].n_seen[DGM_JOB_COMMAND] == 2);
    pass_loops(0); /* it waits for the run there */
    assert_true(emit_at(0, "ask"));
    wait_for_answer(next, "the message");
    check_executed(next, task);
    stop_replicas();
}

/* It is sent again, and comes when its turn is over and its owner has given the task back. */
static void a_message_that_comes_again_late_is_executed_once(void **state)
{
    char task[64];
    start_gated_replicas(2);
    start_task_that_holds(task);
    gate_set_command_ms(1, 20);
    struct step *next = post_message(1, "waits", "ask", task, *(const bool *)*state);
    wait_until(gates[1].n_seen[DGM_JOB_COMMAND] == 1);
    gate_close(1, DGM_JOB_COMMAND);
    wait_until(gates[1].n_held == 1);
    assert_true(emit_at(0, "ask"));
    wait_until(n_started_at[0] == 2);
    wait_until(replicas[0].core->live == 0);
    gate_open(1, DGM_JOB_COMMAND);
    wait_for_answer(next, "the message");
    check_executed(next, task);
    stop_replicas();
}

/* Its owner executes it and dies before the answer. */
static void a_message_whose_server_dies_is_executed_once(void **state)
{
    char task[64];
    start_gated_replicas(2);
    start_task_that_holds(task);
    gate_close(0, DGM_JOB_ANSWER);
    struct step *next = post_message(1, "waits", "ask", task, *(const bool *)*state);
    wait_until(gates[1].n_seen[DGM_JOB_COMMAND] == 1);
    pass_loops(0); /* it waits for the run there */
    assert_true(emit_at(0, "ask"));
    wait_until(gates[0].n_held == 1);
    wait_until(replicas[0].core->live == 0);
    dgm_store_memory_kill(replicas[0].store);
    wait_for_answer(next, "the message");
    gate_open(0, DGM_JOB_ANSWER);
    check_executed(next, task);
    stop_replicas();
}

/* The same message twice, on purpose: both are executed, also when both were sent to another server. */
static void messages_that_are_always_new_are_executed_twice(void **state)
{
    char task[64];
    (void)state;
    start_gated_replicas(2);
    start_task_that_holds(task);
    struct step *first = post_message(1, "same", "ask", task, true);
    wait_until(gates[1].n_seen[DGM_JOB_COMMAND] == 1);
    struct step *second = post_message(1, "same", "ask", task, true);
    wait_until(gates[1].n_seen[DGM_JOB_COMMAND] == 2);
    pass_loops(0);
    assert_true(emit_at(0, "ask"));
    wait_for_answer(first, "the first message");
    wait_for_answer(second, "the second message");
    check_ok(first->code, first->err);
    check_ok(second->code, second->err);
    assert_int_equal(first->turn + second->turn, 2 + 3);
    assert_int_equal(n_started_at[0], 3);
    clear(first);
    clear(second);
    stop_replicas();
}

/* ---- lookups that come back after the lease was lost ----------------------------------------------------------------- */

/* The first server loses the task while it waits for the store; what it emits is refused, and it has not read the task since. */
static void lose_at_0(const char *emitted)
{
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    assert_true(emit_at(0, emitted));
    wait_until(replicas[0].core->lost == 1);
    pass_loops(0);
}

static void a_copy_gets_no_record_that_was_refused(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = agents_accept = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    assert_true(emit_at(0, "a"));
    struct step *more = say(&replicas[0], "more", "more", s->task);
    check_ok(more->code, more->err);
    gate_close(0, DGM_JOB_FIND_DEDUPE);
    gate_close(0, DGM_JOB_TASK);
    struct step *copy = post_message(0, "more", "more", s->task, false);
    wait_until(gates[0].n_held == 1);
    lose_at_0("zombie");
    assert_int_equal(gates[0].n_held, 2);
    gate_open(0, DGM_JOB_FIND_DEDUPE);
    pass_loops(0);
    gate_open(0, DGM_JOB_TASK);
    wait_for_answer(copy, "the copy");
    check_ok(copy->code, copy->err);
    assert_true(copy->is_resend);
    assert_int_equal(copy->turn, 2);
    assert_non_null(copy->snapshot);
    if (strstr(copy->snapshot->bytes, "zombie"))
        fail_msg("the Task has a record that was refused");
    assert_int_equal(copy->snapshot->head.seq, copy->after);
    assert_true(emit_at(1, "end"));
    clear(copy);
    clear(more);
    clear(s);
    stop_replicas();
}

/* The log has grown while the store was asked: the Task has all that is not streamed behind it. */
static void a_copy_gets_the_task_up_to_its_cursor(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_accept = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *more = say(&replicas[0], "more", "more", s->task);
    check_ok(more->code, more->err);
    struct step *reader = follow_at(1, s->task, 0);
    assert_int_equal(state_at(1, s->task), DGM_STATE_WORKING);
    gate_close(1, DGM_JOB_FIND_DEDUPE);
    struct step *copy = post_message(1, "more", "more", s->task, false);
    wait_until(gates[1].n_held == 1);
    int n_reads = gates[1].n_seen[DGM_JOB_RECORDS];
    assert_true(emit_at(0, "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    wait_until(gates[1].n_seen[DGM_JOB_RECORDS] > n_reads);
    pass_loops(1);
    gate_open(1, DGM_JOB_FIND_DEDUPE);
    wait_for_answer(copy, "the copy");
    check_ok(copy->code, copy->err);
    assert_non_null(copy->snapshot);
    assert_int_equal(copy->snapshot->head.seq, copy->after);
    assert_true(emit_at(0, "end"));
    wait_for_end(reader);
    clear(reader);
    clear(copy);
    clear(more);
    clear(s);
    stop_replicas();
}

/* They are not there, so the Task is all that is left. */
static void older_records_do_not_come_after_a_loss(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[1], "ask", "", "");
    wait_until(state_at(1, s->task) == DGM_STATE_INPUT_REQUIRED);
    struct step *next = say(&replicas[0], "next", "hold", s->task); /* its log begins here */
    check_ok(next->code, next->err);
    wait_until_held(0);
    assert_true(emit_at(0, "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    gate_close(0, DGM_JOB_RECORDS);
    gate_close(0, DGM_JOB_TASK);
    struct step *reader = post_ask(0, s->task, subscribe_it);
    wait_until(gates[0].n_held == 1);
    lose_at_0("end");
    gate_refuse(0, DGM_JOB_RECORDS);
    pass_loops(0);
    gate_open(0, DGM_JOB_TASK);
    wait_for_answer(reader, "the reader");
    check_ok(reader->code, reader->err);
    assert_non_null(reader->snapshot);
    assert_int_equal(reader->snapshot->head.seq, reader->after);
    dgm_arena *a = dgm_arena_new();
    assert_int_equal(read_task(a, reader->snapshot).status.state, DGM_STATE_WORKING);
    dgm_arena_free(a);
    assert_true(emit_at(1, "end"));
    clear(reader);
    clear(next);
    clear(s);
    stop_replicas();
}

/* ---- leases that are lost while a task is loaded ----------------------------------------------------------------------- */

/* Its row is that of a task at work, which is ours; its records are read when another server has ended it. */
static void a_task_ends_elsewhere_while_it_is_loaded(void **state)
{
    (void)state;
    start_gated_replicas(3);
    struct step *s = send_text(&replicas[0], "hold", "", "");
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    for (size_t i = 1; i < 3; i++)
        gate_close(i, DGM_JOB_RECORDS);
    dgm_store_memory_kill(replicas[0].store);
    wait_until(gates[1].n_held + gates[2].n_held == 1);
    size_t heir = gates[1].n_held ? 1 : 2, other = 3 - heir;
    struct step *get = post_ask(heir, s->task, get_it);
    pass_loops(heir);
    gate_open(other, DGM_JOB_RECORDS);
    dgm_store_memory_kill(replicas[heir].store);
    wait_until(state_at(other, s->task) == DGM_STATE_FAILED);
    gate_open(heir, DGM_JOB_RECORDS);
    wait_for_answer(get, "the call");
    check_ok(get->code, get->err);
    assert_int_equal(get->snapshot->head.state, DGM_STATE_FAILED);
    clear(get);
    clear(s);
    stop_replicas();
}

/* ---- leases that cannot be given back -------------------------------------------------------------------------------- */

/* It acquires the lease for a message that it then refuses. */
static void acquire_in_vain(size_t i, const char *task)
{
    struct step *s = send_text(&replicas[i], "answer", task, "another context");
    assert_int_equal(s->code, DGM_BAD_PARAMS);
    clear(s);
}

static void a_lease_is_released_when_the_store_works_again(void **state)
{
    (void)state;
    start_gated_replicas(2);
    struct step *s = send_text(&replicas[0], "ask", "", "");
    wait_until(state_at(0, s->task) == DGM_STATE_INPUT_REQUIRED);
    gate_fail(1, DGM_JOB_RELEASE, 2);
    acquire_in_vain(1, s->task);
    wait_until(replicas[1].core->live == 0);
    assert_int_equal(gates[1].n_seen[DGM_JOB_RELEASE], 3);
    struct step *answer = send_text(&replicas[0], "answer", s->task, "");
    check_ok(answer->code, answer->err);
    assert_int_equal(n_started_at[0], 2);
    assert_int_equal(n_started_at[1], 0);
    clear(answer);
    clear(s);
    stop_replicas();
}

static void a_lost_lease_is_not_released(void **state)
{
    (void)state;
    start_gated_replicas(2);
    struct step *s = send_text(&replicas[0], "ask", "", "");
    wait_until(state_at(0, s->task) == DGM_STATE_INPUT_REQUIRED);
    gate_fail(1, DGM_JOB_RELEASE, 1);
    acquire_in_vain(1, s->task);
    wait_until(gates[1].n_seen[DGM_JOB_RELEASE] == 1);
    dgm_store_memory_kill(replicas[1].store);
    wait_until(replicas[1].core->live == 0);
    assert_int_equal(gates[1].n_seen[DGM_JOB_RELEASE], 2);
    clear(s);
    stop_replicas();
}

/* The outcome of an append is unknown, and there is no store for a while: then the run goes on. */
static void a_run_goes_on_when_the_store_is_back(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    struct step *reader = follow_at(1, s->task, 0);
    assert_true(emit_at(0, "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    gate_fail(0, DGM_JOB_RELEASE, 2);
    dgm_store_memory_fail(replicas[0].store, 1, false);
    assert_true(emit_at(0, "b"));
    wait_until(n_resumed == 1 && (held_at[0] || held_at[1]));
    assert_int_equal(gates[0].n_seen[DGM_JOB_RELEASE], 3);
    assert_true(emit_at(held_at[1] ? 1 : 0, "end"));
    wait_for_end(reader);
    clear(reader);
    clear(s);
    stop_replicas();
}

/* ---- ends that are not stored ---------------------------------------------------------------------------------------- */

/* Another server goes on with the task: what this one answers about its end would not be true. */
static void a_cancel_after_an_end_that_is_refused(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    assert_true(emit_at(0, "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    gate_close(0, DGM_JOB_APPEND);
    assert_true(emit_at(0, "end"));
    wait_until(gates[0].n_held == 1);
    struct step *canceled = post_ask(0, s->task, cancel_it);
    pass_loops(0);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    gate_open(0, DGM_JOB_APPEND);
    wait_for_answer(canceled, "the cancel");
    check_ok(canceled->code, canceled->err);
    assert_int_equal(canceled->snapshot->head.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled_at[1], 1);
    clear(canceled);
    clear(s);
    stop_replicas();
}

static void a_cancel_before_an_end_that_is_refused(void **state)
{
    (void)state;
    start_gated_replicas(2);
    agents_resume = agents_complete = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    assert_true(emit_at(0, "a"));
    assert_int_equal(state_at(0, s->task), DGM_STATE_WORKING); /* that is stored */
    gate_close(0, DGM_JOB_APPEND);
    struct step *canceled = post_ask(0, s->task, cancel_it);
    wait_until(gates[0].n_held == 1);
    agents_complete = false;
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    gate_open(0, DGM_JOB_APPEND);
    wait_for_answer(canceled, "the cancel");
    check_ok(canceled->code, canceled->err);
    assert_int_equal(canceled->snapshot->head.state, DGM_STATE_CANCELED);
    clear(canceled);
    clear(s);
    stop_replicas();
}

#define WITH_BOTH(fn)                                                                              \
    dgm_test_with(#fn ", with dedupe", fn, &with_dedupe),                                          \
        dgm_test_with(#fn ", without dedupe", fn, &without_dedupe)

DGM_TEST_MAIN(dgm_test(a_delayed_call_finds_the_task_here),
              dgm_test(a_delayed_call_is_refused_by_a_drain),
              dgm_test(a_task_that_is_followed_delays_no_other),
              WITH_BOTH(a_message_that_waits_long_is_executed_once),
              WITH_BOTH(a_message_that_comes_again_late_is_executed_once),
              WITH_BOTH(a_message_whose_server_dies_is_executed_once),
              dgm_test(messages_that_are_always_new_are_executed_twice),
              dgm_test(a_copy_gets_no_record_that_was_refused),
              dgm_test(a_copy_gets_the_task_up_to_its_cursor),
              dgm_test(older_records_do_not_come_after_a_loss),
              dgm_test(a_task_ends_elsewhere_while_it_is_loaded),
              dgm_test(a_lease_is_released_when_the_store_works_again),
              dgm_test(a_lost_lease_is_not_released),
              dgm_test(a_run_goes_on_when_the_store_is_back),
              dgm_test(a_cancel_after_an_end_that_is_refused),
              dgm_test(a_cancel_before_an_end_that_is_refused))
