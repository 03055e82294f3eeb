/* test_message_ids.c - message ids: in one commit, and without a read. */
#include "sqlite_int.h"
#include "store/sqlite/test_disk.h"

/* ---- message ids ------------------------------------------------------------------------------------------------ */

/* What was added is always found; of the rest hardly any, however many there are. */
static void a_known_id_is_never_taken_for_a_new_one(void **state)
{
    (void)state;
    enum { N = 100000 }; /* three filters */
    dgm_known *k = dgm_known_new();
    size_t wrong = 0;
    char id[24];
    assert_true(dgm_known_may_have(k, DGM_STR("x"), 1)); /* until the database was read */
    dgm_known_is_complete(k);
    assert_false(dgm_known_may_have(k, DGM_STR("x"), 1));
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "m-%d", i);
        wrong += dgm_known_may_have(k, dgm_str_from(id), 7);
        dgm_known_add(k, dgm_str_from(id), 7);
        assert_true(dgm_known_may_have(k, dgm_str_from(id), 7));
    }
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "m-%d", i);
        assert_true(dgm_known_may_have(k, dgm_str_from(id), 7));
        wrong += dgm_known_may_have(k, dgm_str_from(id), 8);
    }
    assert_true(wrong < 2 * N / 50);
    dgm_known_free(k);
}

static void note_arrival(void *wait)
{
    arrive(wait);
}

/* One id taken again and again within one commit: the last one has it. */
static void one_id_may_be_taken_often_in_a_commit(void **state)
{
    (void)state;
    enum { N = 30 };
    struct env e = setup_disk();
    sqlite3 *db;
    struct making m[N];
    struct call calls[N];
    dgm_turn_row turn = {.turn = 1, .first_seq = 1, .last_seq = 1};
    dgm_taken taken[N];
    char ids[N][8];
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    assert_int_equal(sqlite3_open(db_path(&e), &db), SQLITE_OK);
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL); /* until all of them wait */
    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "t%d", i);
        taken[i] = (dgm_taken){DGM_STR("m"), DGM_STR("same"), dgm_loop_unix_ms() + 60000};
        make_deltas(&m[i], alice, ids[i], 0, 1, 1);
        m[i].batch.row.context_id = dgm_str_from(ids[i]);
        m[i].batch.turn = &turn;
        m[i].batch.taken = &taken[i];
        calls[i] = (struct call){
            .make = make_append, .batch = &m[i].batch, .env = &e, .wait = WAIT_FOR(1)};
        dgm_loop_post(dgm_loops_at(e.loops, 0), make_call, &calls[i]);
    }
    struct wait all_called = WAIT_FOR(1); /* posts are in order */
    dgm_loop_post(dgm_loops_at(e.loops, 0), note_arrival, &all_called);
    wait_all(&all_called);
    uint64_t commits = dgm_store_stats_of(e.store).commits;
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    for (int i = 0; i < N; i++) {
        wait_all(&calls[i].wait);
        check_ok(calls[i].code, calls[i].err);
        unmake(&m[i]);
    }
    assert_true(dgm_store_stats_of(e.store).commits <= commits + 2);
    check_str(find_dedupe(&e, alice, "", "m")->task_id, ids[N - 1]);
    for (int i = 0; i < N; i++)
        check_str(find_dedupe(&e, alice, ids[i], "m")->task_id, ids[i]);
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(a_known_id_is_never_taken_for_a_new_one),
              dgm_test(one_id_may_be_taken_often_in_a_commit))
