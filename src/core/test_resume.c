/* core/test_resume.c - many runs that a restart interrupted: they start again in groups. */
#include "core/test_core.h"

#define N_TASKS 150 /* of N_LOOPS loops: about three groups for each */

/* ---- an agent that waits --------------------------------------------------------------------------------------------- */

static _Atomic size_t n_started_again, n_resumed, n_suspended; /* resumed: and in `starts` */
static struct start {
    uint16_t loop;
    uint64_t ms;
} starts[N_TASKS];

static void waiting_start(void *agent, dgm_run *run)
{
    (void)agent;
    if (!run->input->is_resumed) {
        status(run, DGM_STATE_WORKING, NULL);
        return;
    }
    size_t i = n_started_again++;
    assert_true(i < N_TASKS);
    starts[i] = (struct start){(uint16_t)run->loop->index, uv_hrtime() / 1000000};
    n_resumed++;
}

static void waiting_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    n_canceled++;
    n_suspended += run->suspended;
    if (!run->suspended)
        status(run, DGM_STATE_CANCELED, NULL);
    run->ops->end(run, NULL);
}

static const dgm_backend waiting = {
    .type = "waiting", .can_resume = true, .start = waiting_start, .cancel = waiting_cancel};

static void start_waiting(struct env *e, void **state, char (*tasks)[64])
{
    backend_of_agents = &waiting;
    history_of_agents = (dgm_history_limits){0};
    start_env(e, state, 0);
    for (size_t i = 0; i < N_TASKS; i++) {
        struct step *s = send_text(e, "work", NULL, NULL);
        assert_int_equal(s->code, DGM_OK);
        snprintf(tasks[i], sizeof tasks[i], "%s", s->task);
        clear(s);
    }
}

static void crash_and_recover(struct env *e)
{
    restart(e);
    n_started_again = n_resumed = n_suspended = 0;
    n_canceled = 0;
    recover_tasks(e);
}

static void wait_for_all(void)
{
    for (int i = 0; n_resumed < N_TASKS && i < 20000; i++)
        uv_sleep(1);
    assert_int_equal(n_resumed, N_TASKS);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

/* Two groups may be next to each other, not three. */
static void they_start_in_groups(void **state)
{
    static char tasks[N_TASKS][64];
    struct env e;
    start_waiting(&e, state, tasks);
    crash_and_recover(&e);
    wait_for_all();
    /* ids of tasks are random, and so are their loops: some loop has more than two groups */
    _Static_assert(N_TASKS > N_LOOPS * 2 * DGM_RESUME_RUNS, "each loop may have two groups");
    for (size_t loop = 0; loop < N_LOOPS; loop++) {
        uint64_t ms[N_TASKS];
        size_t n = 0;
        for (size_t i = 0; i < N_TASKS; i++) {
            if (starts[i].loop == loop)
                ms[n++] = starts[i].ms;
        }
        for (size_t i = 0; i + 2 * DGM_RESUME_RUNS < n; i++)
            assert_true(ms[i + 2 * DGM_RESUME_RUNS] + 20 >= ms[i] + DGM_RESUME_MS);
    }
    stop_env(&e);
}

/* The agent of each hears of it, also of one that waits for its start. */
static void one_that_waits_can_be_canceled(void **state)
{
    static char tasks[N_TASKS][64];
    struct env e;
    start_waiting(&e, state, tasks);
    crash_and_recover(&e);
    for (size_t i = 0; i < N_TASKS; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct step *s = ask(&e, tasks[i], NULL, cancel_it, 0);
        assert_int_equal(s->code, DGM_OK);
        assert_int_equal(read_task(a, s->snapshot).status.state, DGM_STATE_CANCELED);
        clear(s);
    }
    assert_int_equal(n_resumed, N_TASKS);
    assert_int_equal(n_canceled, N_TASKS);
    stop_env(&e);
}

static void on_all_drained(void *arg)
{
    struct step *s = arg;
    sem_post(&s->done);
}

/* Those that wait for their start are left to the next process, as those that run. */
static void those_that_wait_survive_a_drain(void **state)
{
    static char tasks[N_TASKS][64];
    struct env e;
    struct step *drain = new_step();
    start_waiting(&e, state, tasks);
    crash_and_recover(&e);
    sem_init(&drain->done, 0, 0);
    dgm_core_drain(e.core, 100, on_all_drained, drain);
    sem_wait(&drain->done);
    assert_int_equal(n_suspended, n_canceled);
    assert_int_equal(n_suspended, n_resumed); /* others never started */
    crash_and_recover(&e);
    wait_for_all();
    clear(drain);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(they_start_in_groups), ON_BOTH(one_that_waits_can_be_canceled),
              ON_BOTH(those_that_wait_survive_a_drain))
