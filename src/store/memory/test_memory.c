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

DGM_TEST_MAIN(dgm_test(memory_forgets_what_ended_first))
