/* test_memory.c - what the memory store forgets. */
#include "store/test_env.h"

enum { RUNNING = 10, MORE = 100 };

/* Tasks with a turn and a message id each; the first ones run, all others have ended. */
static void make_many(struct call *c)
{
    for (size_t i = 0; i < DGM_MAX_MEMORY_TASKS + MORE; i++) {
        struct making m;
        char id[24];
        snprintf(id, sizeof id, "t%zu", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        dgm_turn_row turn = {.turn = 1,
                             .first_seq = 1,
                             .last_seq = i < RUNNING ? 0 : 1,
                             .protocol = DGM_STR("ag-ui"),
                             .caller_id = dgm_str_from(id)};
        dgm_taken taken = {.message_id = dgm_str_from(id)};
        m.batch.turn = &turn;
        m.batch.taken = &taken;
        if (i >= RUNNING)
            m.batch.row.state = DGM_STATE_COMPLETED;
        bool last = i + 1 == DGM_MAX_MEMORY_TASKS + MORE;
        dgm_store_append(c->env->store, &m.batch, last ? on_done : NULL, c);
        unmake(&m);
    }
}

static void memory_forgets_what_ended_first(void **state)
{
    static char memory[] = "memory";
    void *which = memory;
    (void)state;
    struct env e = setup(&which);
    struct call c = {.make = make_many};
    run_call(&e, &c);
    check_ok(c.code, c.err);
    dgm_list_query q = {.owner = alice, .page_size = 1};
    assert_int_equal(list(&e, &q).total, DGM_MAX_MEMORY_TASKS);
    assert_non_null(get_task(&e, alice, "t0")); /* it runs */
    assert_non_null(get_task(&e, alice, "t9"));
    assert_null(get_task(&e, alice, "t10"));
    assert_null(get_task(&e, alice, "t109"));
    assert_non_null(get_task(&e, alice, "t110"));
    assert_null(find_dedupe(&e, alice, "ctx", "t109"));
    assert_non_null(find_dedupe(&e, alice, "ctx", "t110"));
    assert_null(find_turn(&e, alice, "ag-ui", "t109").turns);
    assert_non_null(find_turn(&e, alice, "ag-ui", "t110").turns);
    teardown(&e);
}

/* ---- notes ---------------------------------------------------------------------------------------------- */

static void make_many_notes(struct call *c)
{
    for (size_t i = 0; i < c->max; i++) {
        char name[24];
        snprintf(name, sizeof name, "n%zu", i);
        dgm_note n = {.owner = alice, .name = dgm_str_from(name), .text = c->a};
        dgm_store_put_note(c->env->store, &n, i + 1 == c->max ? on_done : NULL, c);
    }
}

static void on_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    c->n = text.p ? 1 : 0;
    arrive(&c->wait);
}

static void make_get_note(struct call *c)
{
    dgm_store_get_note(c->env->store, alice, (dgm_str){0}, c->a, on_note, c);
}

static bool has_note(struct env *e, size_t i)
{
    char name[24];
    snprintf(name, sizeof name, "n%zu", i);
    struct call c = {.make = make_get_note, .a = dgm_str_from(name)};
    run_call(e, &c);
    return c.n;
}

static void memory_forgets_the_oldest_notes(void **state)
{
    static char memory[] = "memory";
    void *which = memory;
    (void)state;
    struct env e = setup(&which);
    struct call many = {
        .make = make_many_notes, .max = DGM_MAX_MEMORY_NOTES + 1, .a = DGM_STR("text")};
    run_call(&e, &many);
    check_ok(many.code, many.err);
    assert_false(has_note(&e, 0));
    assert_true(has_note(&e, 1));
    size_t fit = DGM_MAX_MEMORY_NOTE_BYTES / DGM_MAX_NOTE_BYTES; /* but for their names */
    char *text = calloc(1, DGM_MAX_NOTE_BYTES);
    struct call large = {.make = make_many_notes, .max = fit, .a = {text, DGM_MAX_NOTE_BYTES}};
    run_call(&e, &large);
    check_ok(large.code, large.err);
    assert_false(has_note(&e, DGM_MAX_MEMORY_NOTES)); /* those were older */
    assert_false(has_note(&e, 0));
    assert_true(has_note(&e, 1));
    assert_true(has_note(&e, fit - 1));
    free(text);
    teardown(&e);
}

/* ---- checkpoints -------------------------------------------------------------------------------------------- */

/* Puts a checkpoint of c->max bytes in thread c->a, with id c->b. */
static void make_put_checkpoint(struct call *c)
{
    dgm_bytes *bytes = dgm_bytes_new(c->max);
    dgm_checkpoint_change put = {
        .kind = DGM_CHECKPOINT_PUT,
        .row = {.thread = c->a, .id = c->b, .checkpoint = {DGM_STR("x"), bytes}}};
    dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), &put, on_done, c);
    dgm_bytes_unref(bytes);
}

static dgm_code put_checkpoint(struct env *e, const char *thread, const char *id, size_t bytes,
                               dgm_err *ret_err)
{
    struct call c = {.make = make_put_checkpoint,
                     .a = dgm_str_from(thread),
                     .b = dgm_str_from(id),
                     .max = bytes};
    run_call(e, &c);
    *ret_err = c.err;
    return c.code;
}

static void on_checkpoints(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                           const dgm_err *err, void *arg)
{
    struct call *c = arg;
    (void)rows, (void)more;
    note(c, code, err);
    c->n = n;
    arrive(&c->wait);
}

static void make_read_checkpoints(struct call *c)
{
    dgm_checkpoint_query q = {.thread = c->a, .id = c->b, .limit = 1};
    dgm_store_read_checkpoints(c->env->store, DGM_STR("graph"), &q, on_checkpoints, c);
}

static bool has_checkpoint(struct env *e, const char *thread, const char *id)
{
    struct call c = {
        .make = make_read_checkpoints, .a = dgm_str_from(thread), .b = dgm_str_from(id)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c.n;
}

static void memory_forgets_the_threads_that_were_changed_first(void **state)
{
    static char memory[] = "memory";
    void *which = memory;
    (void)state;
    struct env e = setup(&which);
    dgm_err err;
    size_t part =
        DGM_MAX_MEMORY_CHECKPOINT_BYTES / 4 - 10000; /* three and the names fit, and a little */
    check_ok(put_checkpoint(&e, "a", "1", part, &err), err);
    check_ok(put_checkpoint(&e, "b", "1", part, &err), err);
    check_ok(put_checkpoint(&e, "c", "1", part, &err), err);
    check_ok(put_checkpoint(&e, "a", "2", 10, &err), err);
    check_ok(put_checkpoint(&e, "d", "1", part, &err), err);
    check_ok(put_checkpoint(&e, "e", "1", part, &err), err);
    assert_false(has_checkpoint(&e, "b", "1")); /* a was changed after it */
    assert_true(has_checkpoint(&e, "a", "1") && has_checkpoint(&e, "a", "2"));
    assert_true(has_checkpoint(&e, "c", "1"));
    for (int i = 2; i <= 4; i++) {
        char id[2] = {(char)('0' + i), 0};
        check_ok(put_checkpoint(&e, "e", id, part, &err), err);
    }
    assert_true(has_checkpoint(&e, "e", "1") && has_checkpoint(&e, "e", "4"));
    assert_false(has_checkpoint(&e, "d", "1"));
    check_code(put_checkpoint(&e, "e", "5", part, &err), DGM_TOO_LARGE, &err, "sqlite:");
    assert_true(has_checkpoint(&e, "e", "1"));
    assert_false(has_checkpoint(&e, "e", "5"));
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(memory_forgets_the_threads_that_were_changed_first),
              dgm_test(memory_forgets_what_ended_first), dgm_test(memory_forgets_the_oldest_notes))
