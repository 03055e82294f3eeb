/* core/test_replicas_owned.c - which tasks a server takes, and those that it owns without a run, or runs without owning. */
#include "core/test_replicas.h"

static uint64_t taken_at(size_t i)
{
    return replicas[i].core->taken_over;
}

/* ---- what a server takes ------------------------------------------------------------------------------------------- */

static void a_server_without_the_agent_takes_nothing(void **state)
{
    (void)state;
    agent_at[1] = "two";
    start_replicas(3);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    check_ok(s->code, s->err);
    wait_until_held(0);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(2);
    assert_int_equal(taken_at(1), 0);
    assert_int_equal(taken_at(2), 1);
    assert_true(emit_at(2, "end"));
    agent_at[1] = "one";
    clear(s);
    stop_replicas();
}

/* It takes the tasks of an agent that a reload adds. */
static void an_agent_is_added(void **state)
{
    (void)state;
    agent_at[1] = "two";
    start_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    check_ok(s->code, s->err);
    wait_until_held(0);
    const dgm_core_agent added = {
        .id = DGM_STR("one"), .backend = &replica_agent, .agent = (void *)(uintptr_t)1};
    dgm_err err = {0};
    check_ok(dgm_core_set_agent(replicas[1].core, &added, &err), err);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    assert_int_equal(taken_at(1), 1);
    assert_true(emit_at(1, "end"));
    agent_at[1] = "one";
    clear(s);
    stop_replicas();
}

/* Its last run goes on; what it would take it could only give back. */
static void a_server_that_drains_takes_nothing(void **state)
{
    (void)state;
    sem_t drained;
    start_replicas(2);
    agents_resume = true;
    struct step *last = send_text(&replicas[1], "hold", "", "");
    struct step *s = send_text(&replicas[0], "hold", "", "");
    wait_until_held(0);
    wait_until_held(1);
    sem_init(&drained, 0, 0);
    dgm_core_drain(replicas[1].core, 600000, on_replica_drained, &drained);
    dgm_store_memory_kill(replicas[0].store); /* it is the only one that takes tasks */
    while (!n_resumed)
        usleep(1000);
    assert_int_equal(taken_at(1), 0);
    assert_int_equal(taken_at(0), 1);
    assert_true(emit_at(1, "end"));
    sem_wait(&drained);
    clear(last);
    clear(s);
    stop_replicas();
}

/* ---- owned, and not here -------------------------------------------------------------------------------------------- */

/* The task is not read after the takeover, and the release after that fails as well. */
static void a_takeover_that_was_lost_is_found(void **state)
{
    (void)state;
    start_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    check_ok(s->code, s->err);
    wait_until_held(0);
    dgm_store_memory_fail_reads(replicas[1].store, 2);
    dgm_store_memory_kill(replicas[0].store);
    while (taken_at(1) == 0 || dgm_store_memory_fails_left(replicas[1].store))
        usleep(1000);
    assert_int_equal(n_resumed, 0);
    dgm_store_memory_report_owned(replicas[1].store);
    wait_until_held(1);
    assert_int_equal(n_resumed, 1);
    assert_int_equal(fence_at[1], 2);
    assert_int_equal(taken_at(1), 1);
    /* those that are here are left alone */
    for (int i = 0; i < 20; i++)
        dgm_store_memory_report_owned(replicas[1].store);
    assert_true(emit_at(1, "b"));
    assert_true(emit_at(1, "end"));
    while (state_at(1, s->task) != DGM_STATE_COMPLETED)
        usleep(1000);
    assert_int_equal(n_resumed, 1);
    clear(s);
    stop_replicas();
}

/* ---- here, and not owned -------------------------------------------------------------------------------------------- */

/* The agent emits nothing: no append is refused. */
static void runs_of_a_server_that_was_declared_dead_end(void **state)
{
    enum { N = 300 };
    static struct step *tasks[N];
    (void)state;
    start_replicas(2);
    for (int i = 0; i < N; i++) {
        tasks[i] = send_text(&replicas[0], "hold", "", "");
        check_ok(tasks[i]->code, tasks[i]->err);
    }
    assert_int_equal(replicas[0].core->running, N);
    dgm_store_memory_kill(replicas[0].store);
    struct step *own = send_text(&replicas[0], "hold", "", ""); /* of the new id: it goes on */
    check_ok(own->code, own->err);
    dgm_store_memory_notice(replicas[0].store);
    while (replicas[0].core->running > 1)
        usleep(1000);
    assert_int_equal(replicas[0].core->lost, N);
    assert_true(emit_at(0, "end"));
    while (state_at(0, own->task) != DGM_STATE_COMPLETED)
        usleep(1000);
    for (int i = 0; i < N; i++)
        clear(tasks[i]);
    clear(own);
    stop_replicas();
}

DGM_TEST_MAIN(dgm_test(a_server_without_the_agent_takes_nothing), dgm_test(an_agent_is_added),
              dgm_test(a_server_that_drains_takes_nothing),
              dgm_test(a_takeover_that_was_lost_is_found),
              dgm_test(runs_of_a_server_that_was_declared_dead_end))
