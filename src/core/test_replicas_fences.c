/* core/test_replicas_fences.c - what a run stores beside its events, after its server has lost the task. */
#include "core/test_replicas.h"

struct storing {
    size_t i;
    const char *text;
    sem_t posted, stored;
    bool has_run;
    dgm_code code;
    bool is_lost;
};

static void on_storing_done(struct storing *x, dgm_code code)
{
    x->code = code;
    sem_post(&x->stored);
}

static void on_remembered(void *arg, dgm_code code)
{
    on_storing_done(arg, code);
}

static void on_checkpoint_stored(dgm_code code, const dgm_err *err, void *arg)
{
    struct storing *x = arg;
    x->is_lost = code && dgm_store_is_lost(err);
    on_storing_done(x, code);
}

static void remember_now(void *arg)
{
    struct storing *x = arg;
    dgm_run *run = held_at[x->i];
    x->has_run = run;
    if (run)
        run->ops->remember(run, DGM_RUN_TASK, dgm_str_from(x->text), on_remembered, x);
    sem_post(&x->posted);
}

/* As the graph of the run does it: with the fence that the run was started with. */
static void checkpoint_now(void *arg)
{
    struct storing *x = arg;
    dgm_run *run = held_at[x->i];
    x->has_run = run;
    if (run) {
        const dgm_run_input *in = run->input;
        dgm_checkpoint_change change = {
            .kind = DGM_CHECKPOINT_PUT,
            .row = {.thread = DGM_STR("thread"), .id = dgm_str_from(x->text)},
            .fence = {{in->tenant, in->principal}, in->task_id, in->fence, true}};
        dgm_store_change_checkpoints(replicas[x->i].store, DGM_STR("one"), &change,
                                     on_checkpoint_stored, x);
    }
    sem_post(&x->posted);
}

static struct storing store_at(size_t i, dgm_loop_fn how, const char *text)
{
    struct storing x = {.i = i, .text = text};
    sem_init(&x.posted, 0, 0);
    sem_init(&x.stored, 0, 0);
    dgm_loop_post(loop_at[i], how, &x);
    sem_wait(&x.posted);
    if (!x.has_run)
        fail_msg("server %zu has no run that stores %s", i, text);
    sem_wait(&x.stored);
    return x;
}

/* ---- what is stored ------------------------------------------------------------------------------------------------ */

struct found {
    sem_t done;
    char text[200];
};

static void on_recalled(void *arg, dgm_str text)
{
    struct found *f = arg;
    snprintf(f->text, sizeof f->text, "%.*s", DGM_P(text));
    sem_post(&f->done);
}

static void recall_now(void *arg)
{
    dgm_run *run = held_at[1];
    run->ops->recall(run, DGM_RUN_TASK, on_recalled, arg);
}

static void on_checkpoints_read(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                                const dgm_err *err, void *arg)
{
    struct found *f = arg;
    (void)more, (void)err;
    assert_int_equal(code, DGM_OK);
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(f->text);
        snprintf(f->text + at, sizeof f->text - at, "%.*s ", DGM_P(rows[i].id));
    }
    sem_post(&f->done);
}

static void read_checkpoints_now(void *arg)
{
    dgm_checkpoint_query q = {.thread = DGM_STR("thread"), .limit = 10};
    dgm_store_read_checkpoints(replicas[1].store, DGM_STR("one"), &q, on_checkpoints_read, arg);
}

static void check_found(dgm_loop_fn how, const char *want)
{
    struct found f = {0};
    sem_init(&f.done, 0, 0);
    dgm_loop_post(loop_at[1], how, &f);
    sem_wait(&f.done);
    assert_string_equal(f.text, want);
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void what_an_old_run_stores_is_refused(void **state)
{
    (void)state;
    start_replicas(2);
    agents_resume = true;
    struct step *s = send_text(&replicas[0], "hold", "", "");
    wait_until_held(0);
    assert_int_equal(store_at(0, remember_now, "first").code, DGM_OK);
    assert_int_equal(store_at(0, checkpoint_now, "1").code, DGM_OK);
    dgm_store_memory_kill(replicas[0].store);
    wait_until_held(1);
    check_found(recall_now, "first");
    struct storing late = store_at(0, checkpoint_now, "2");
    assert_int_equal(late.code, DGM_UNAVAILABLE);
    assert_true(late.is_lost);
    assert_int_equal(store_at(0, remember_now, "late").code, DGM_UNAVAILABLE);
    check_found(recall_now, "first");
    assert_int_equal(store_at(1, remember_now, "second").code, DGM_OK);
    assert_int_equal(store_at(1, checkpoint_now, "3").code, DGM_OK);
    assert_int_equal(store_at(0, remember_now, "late").code, DGM_UNAVAILABLE);
    check_found(recall_now, "second");
    check_found(read_checkpoints_now, "3 1 ");
    assert_true(emit_at(1, "end"));
    clear(s);
    stop_replicas();
}

/* The agent has emitted nothing: its task is not stored, and no other server can own it. */
static void a_new_task_stores_before_its_first_event(void **state)
{
    (void)state;
    start_replicas(2);
    struct step *s = new_step();
    s->text = DGM_STR("quiet");
    s->message_id = DGM_STR("quiet-1");
    post_step(&replicas[0], s, 0, send_it); /* it is answered when there is a task */
    wait_until_held(0);
    assert_int_equal(store_at(0, checkpoint_now, "1").code, DGM_OK);
    assert_int_equal(store_at(0, remember_now, "text").code, DGM_OK);
    assert_true(emit_at(0, "end"));
    sem_wait(&s->done);
    assert_int_equal(s->code, DGM_OK);
    clear(s);
    stop_replicas();
}

DGM_TEST_MAIN(dgm_test(what_an_old_run_stores_is_refused),
              dgm_test(a_new_task_stores_before_its_first_event))
