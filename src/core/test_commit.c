/* core/test_commit.c - when is it on the disk: what agents emit, and what they remember. */
#include "core/test_core.h"

/* ---- an agent that waits for the store --------------------------------------------------------------------------------- */

static uint64_t emitted; /* the record that must be stored */
static _Atomic int n_late, reported;
static char order[128];

static const struct live *live_of(const dgm_run *run)
{
    return ((const struct run *)(const void *)run)->live;
}

static void complete_with(dgm_run *run, const char *text)
{
    status(run, DGM_STATE_COMPLETED, text);
    run->ops->end(run, NULL);
}

static void on_committed(void *arg, dgm_code code)
{
    dgm_run *run = arg;
    assert_ptr_equal(dgm_loop_current(), run->loop);
    reported = code;
    if (code) {
        run->ops->end(run, "not stored");
        return;
    }
    assert_true(!live_of(run) || live_of(run)->log->published >= emitted);
    complete_with(run, "committed");
}

static void on_late(void *arg, dgm_code code)
{
    (void)arg, (void)code;
    n_late++;
}

static void on_text_stored(void *arg, dgm_code code)
{
    const dgm_run *run = arg;
    assert_int_equal(code, DGM_OK);
    /* The events before it are stored: the store answers in order. */
    assert_true(live_of(run)->log->published >= emitted);
    assert_true(live_of(run)->log->published < live_of(run)->log->last);
    strcat(order, "note ");
}

static void on_ordered(void *arg, dgm_code code)
{
    assert_int_equal(code, DGM_OK);
    strcat(order, "commit ");
    complete_with(arg, order);
}

static void on_second_commit(void *arg, dgm_code code)
{
    (void)arg;
    assert_int_equal(code, DGM_OK);
    strcat(order, "first ");
}

static void commit_start(void *agent, dgm_run *run)
{
    dgm_str text = run->input->message->parts.at[0].content;
    (void)agent;
    emitted = 0;
    order[0] = 0;
    if (dgm_str_is(text, "nothing")) { /* was emitted, so there is nothing to wait for */
        run->ops->commit(run, on_committed, run);
        return;
    }
    if (dgm_str_is(text, "a note")) {
        run->ops->remember(run, DGM_RUN_TASK, text, NULL, NULL);
        run->ops->commit(run, on_committed, run);
        return;
    }
    status(run, DGM_STATE_WORKING, NULL);
    emitted = live_of(run)->log->last;
    if (dgm_str_is(text, "commit")) {
        chunk(run, "text alone is not synced", false, false);
        emitted = live_of(run)->log->last;
        run->ops->commit(run, on_committed, run);
        assert_true(live_of(run)->write.sync);
    } else if (dgm_str_is(text, "order")) {
        run->ops->remember(run, DGM_RUN_TASK, text, on_text_stored, run);
        chunk(run, "behind the text", false, false);
        run->ops->commit(run, on_second_commit, run);
        run->ops->commit(run, on_ordered, run);
    } else if (dgm_str_is(text, "late")) {
        run->ops->commit(run, on_late, run);
        run->ops->remember(run, DGM_RUN_TASK, text, on_late, run);
        run->ops->commit(run, on_late, run);
        complete_with(run, "done");
    } else {
        held = run;
    }
}

/* It waits for its commit. */
static void commit_cancel(void *agent, dgm_run *run)
{
    (void)agent, (void)run;
    n_canceled++;
}

static const dgm_backend committing = {
    .type = "committing", .start = commit_start, .cancel = commit_cancel};

static void start_committing(struct env *e, void **state)
{
    backend_of_agents = &committing;
    n_late = 0;
    start_env(e, state, 0);
}

/* The text of the final status. */
static void check_final(struct env *e, const char *text, const char *expected)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    struct step *s = send_text(e, text, NULL, NULL);
    check_ok(s->code, s->err);
    read_all(e, s, 0);
    assert_int_equal(dgm_record_event(s->records[s->n - 1], a, &event, NULL), DGM_OK);
    check_str(event.status->status.message->parts.at[0].content, expected);
    clear(s);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void a_commit_waits_for_the_store(void **state)
{
    struct env e;
    start_committing(&e, state);
    check_final(&e, "commit", "committed");
    check_final(&e, "nothing", "committed");
    check_final(&e, "a note", "committed");
    stop_env(&e);
}

static void texts_and_events_are_stored_in_order(void **state)
{
    struct env e;
    start_committing(&e, state);
    check_final(&e, "order", "note first commit ");
    stop_env(&e);
}

static void no_commit_is_reported_after_the_end(void **state)
{
    struct env e;
    start_committing(&e, state);
    check_final(&e, "late", "done");
    stop_env(&e);
    assert_int_equal(n_late, 0);
}

static void commit_later(void *arg)
{
    dgm_run *run = arg;
    run->ops->commit(run, on_committed, run);
}

static void a_store_that_fails_is_reported(void **state)
{
    struct env e;
    char from[80], to[96];
    start_committing(&e, state);
    struct step *s = send_text(&e, "hold", NULL, NULL);
    snprintf(from, sizeof from, "%s/db", dir);
    snprintf(to, sizeof to, "%s/db-moved", dir);
    assert_int_equal(rename(from, to), 0);
    dgm_run *run = held;
    dgm_loop_post(run->loop, commit_later, run);
    for (int i = 0; i < 5000 && e.core->running; i++)
        uv_sleep(1);
    assert_int_equal(e.core->running, 0);
    assert_int_equal(reported, DGM_UNAVAILABLE);
    assert_int_equal(n_canceled, 1);
    clear(s);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(a_commit_waits_for_the_store), ON_BOTH(texts_and_events_are_stored_in_order),
              ON_BOTH(no_commit_is_reported_after_the_end),
              dgm_test_with("sqlite: a_store_that_fails_is_reported",
                            a_store_that_fails_is_reported, "sqlite"))
