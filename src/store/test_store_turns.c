/* test_store_turns.c - turns, message ids, and what is trimmed of them, on every driver. */
#include "test_env.h"

/* One record and the message that began the turn. */
static void take_message(struct env *e, const char *task, const char *context, uint32_t turn,
                         dgm_taken taken)
{
    struct making m;
    dgm_turn_row row = {.turn = turn, .first_seq = turn, .last_seq = turn};
    make_deltas(&m, alice, task, turn - 1, 1, turn);
    m.batch.row.context_id = dgm_str_from(context);
    m.batch.turn = &row;
    m.batch.taken = &taken;
    m.batch.row.folded = DGM_STR("{}");
    m.batch.row.folded_seq = turn;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    assert_false(dgm_store_is_unknown(e->store, alice, DGM_STR("demo"), dgm_str_from(context),
                                      taken.message_id));
}

static void message_ids_are_taken_until_they_expire(void **state)
{
    struct env e = setup(state);
    int64_t now = dgm_loop_unix_ms(), later = now + 60000;
    take_message(&e, "t1", "ctx", 1, (dgm_taken){DGM_STR("m1"), DIGEST("\1\2\3"), later});
    take_message(&e, "t1", "ctx", 2, (dgm_taken){DGM_STR("m2"), DIGEST("\4"), 0});
    take_message(&e, "t2", "other", 1, (dgm_taken){DGM_STR("old"), DIGEST("\5"), now - 1});
    dgm_dedupe_row *row = find_dedupe(&e, alice, "", "m1");
    assert_non_null(row);
    assert_memory_equal(row->digest, ((unsigned char[32]){1, 2, 3}), 32);
    check_str(row->task_id, "t1");
    assert_int_equal(row->turn, 1);
    assert_int_equal(row->expires_ms, later);
    row = find_dedupe(&e, alice, "ctx", "m1");
    assert_int_equal(row->expires_ms, 0);
    assert_int_equal(row->turn, 1);
    assert_int_equal(row->digest[2], 3);
    assert_int_equal(find_dedupe(&e, alice, "ctx", "m2")->turn, 2);
    assert_null(find_dedupe(&e, alice, "", "m2")); /* it named its context */
    assert_null(find_dedupe(&e, alice, "", "old"));
    assert_int_equal(find_dedupe(&e, alice, "other", "old")->digest[0], 5);
    assert_null(find_dedupe(&e, alice, "ctx", "old"));
    assert_null(find_dedupe(&e, alice, "other", "m1"));
    assert_null(find_dedupe(&e, alice, "", "m3"));
    assert_null(find_dedupe(&e, bob, "", "m1"));
    trim(&e, T0 + 1000); /* the turns go, what began them is known on */
    assert_int_equal(count_records(&e, alice, "t1"), 0);
    assert_int_equal(get_turns(&e, alice, "t1").n, 1);
    assert_int_equal(find_dedupe(&e, alice, "", "m1")->turn, 1);
    assert_int_equal(find_dedupe(&e, alice, "ctx", "m1")->turn, 1);
    assert_int_equal(find_dedupe(&e, alice, "ctx", "m2")->turn, 2);
    assert_null(
        find_dedupe(&e, alice, "", "old")); /* one of its names has expired, not the other */
    assert_int_equal(find_dedupe(&e, alice, "other", "old")->digest[0], 5);
    teardown(&e);
}

/* The same key again: the newer one counts. */
static void a_message_id_belongs_to_whoever_took_it_last(void **state)
{
    struct env e = setup(state);
    int64_t later = dgm_loop_unix_ms() + 60000;
    take_message(&e, "t1", "c1", 1, (dgm_taken){DGM_STR("m"), DIGEST("\1"), later});
    take_message(&e, "t2", "c2", 1, (dgm_taken){DGM_STR("m"), DIGEST("\2"), later});
    assert_int_equal(find_dedupe(&e, alice, "", "m")->digest[0], 2);
    check_str(find_dedupe(&e, alice, "c1", "m")->task_id, "t1"); /* in its own context as before */
    check_str(find_dedupe(&e, alice, "c2", "m")->task_id, "t2");
    take_message(&e, "t3", "c1", 1, (dgm_taken){DGM_STR("m"), DIGEST("\3"), 0});
    check_str(find_dedupe(&e, alice, "c1", "m")->task_id, "t3");
    check_str(find_dedupe(&e, alice, "", "m")->task_id, "t2");
    take_message(&e, "t2", "c2", 2, (dgm_taken){DGM_STR("m"), DIGEST("\4"), 0});
    assert_int_equal(find_dedupe(&e, alice, "c2", "m")->turn, 2);
    assert_int_equal(find_dedupe(&e, alice, "", "m")->digest[0], 2);
    take_message(&e, "t4", "c1", 1,
                 (dgm_taken){DGM_STR("n"), DIGEST("\5"), 0}); /* an older task, later */
    take_message(&e, "t3", "c1", 2, (dgm_taken){DGM_STR("n"), DIGEST("\6"), 0});
    check_str(find_dedupe(&e, alice, "c1", "n")->task_id, "t3");
    assert_int_equal(find_dedupe(&e, alice, "c1", "n")->digest[0], 6);
    teardown(&e);
}

/* What was never taken is known to be so, soon after the store is open. */
static void new_message_ids_are_distinguished_from_old_ones(void **state)
{
    struct env e = setup(state);
    int64_t later = dgm_loop_unix_ms() + 60000;
    dgm_str demo = DGM_STR("demo"), none = {0}, ctx = DGM_STR("ctx");
    if (dgm_store_is_shared(e.store)) { /* others store messages, too */
        assert_false(dgm_store_is_unknown(e.store, alice, demo, none, DGM_STR("m")));
        teardown(&e);
        return;
    }
    for (int i = 0; !dgm_store_is_unknown(e.store, alice, demo, none, DGM_STR("m")); i++) {
        assert_true(i < 30000);
        usleep(1000);
    }
    take_message(&e, "t1", "ctx", 1, (dgm_taken){DGM_STR("m"), DIGEST("\1"), later});
    assert_false(dgm_store_is_unknown(e.store, alice, demo, none, DGM_STR("m")));
    assert_false(dgm_store_is_unknown(e.store, alice, demo, ctx, DGM_STR("m")));
    size_t unknown = 0;
    for (int i = 0; i < 100; i++) {
        char id[24];
        snprintf(id, sizeof id, "new-%d", i);
        unknown += dgm_store_is_unknown(e.store, alice, demo, i % 2 ? ctx : none, dgm_str_from(id));
    }
    assert_true(unknown > 90);
    teardown(&e);
}

static void turns_are_found_by_their_callers_id(void **state)
{
    struct env e = setup(state);
    static const char *const ids[] = {"t1", "t2"};
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t t = 1; t <= 3; t++) {
            struct making m;
            char caller[32];
            snprintf(caller, sizeof caller, "resp_%zu_%u", i, t);
            dgm_turn_row turn = {.turn = t,
                                 .first_seq = t,
                                 .last_seq = t < 3 ? t : 0,
                                 .protocol = DGM_STR("openai-responses"),
                                 .caller_id = t == 2 ? DGM_STR("") : dgm_str_from(caller)};
            make_deltas(&m, alice, ids[i], t - 1, 1, t);
            m.batch.turn = &turn;
            check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
            unmake(&m);
        }
    }
    struct call c = find_turn(&e, alice, "openai-responses", "resp_1_3");
    assert_int_equal(c.turns->turn, 3);
    assert_int_equal(c.turns->first_seq, 3);
    assert_int_equal(c.turns->last_seq, 0);
    check_str(c.task_id, "t2");
    check_str(find_turn(&e, alice, "openai-responses", "resp_0_1").task_id, "t1");
    assert_null(find_turn(&e, alice, "openai-responses", "resp_0_2").turns);
    assert_null(find_turn(&e, alice, "openai-responses", "").turns);
    assert_null(find_turn(&e, alice, "ag-ui", "resp_0_1").turns);
    assert_null(find_turn(&e, bob, "openai-responses", "resp_0_1").turns);
    assert_int_equal(get_turns(&e, alice, "t1").n, 3);
    teardown(&e);
}

/* Appends a turn of two records; ends it and folds it when asked. */
static void add_turn(struct env *e, const char *id, uint32_t t, bool ends, bool folds)
{
    struct making m;
    char caller[32];
    snprintf(caller, sizeof caller, "%s-%u", id, t);
    dgm_turn_row turn = {.turn = t,
                         .first_seq = 2 * t - 1,
                         .last_seq = ends ? 2 * t : 0,
                         .protocol = DGM_STR("ag-ui"),
                         .caller_id = dgm_str_from(caller)};
    make_deltas(&m, alice, id, 2 * (t - 1), 2, t);
    m.batch.turn = &turn;
    if (folds) {
        m.batch.row.folded = DGM_STR("{}");
        m.batch.row.folded_seq = 2 * t;
    }
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

/* record 2 of a turn has time T0 + seq */
static void only_whole_finished_turns_are_trimmed(void **state)
{
    struct env e = setup(state);
    for (uint32_t t = 1; t <= 3; t++)
        add_turn(&e, "done", t, true, true);
    add_turn(&e, "runs", 1, true, true);
    add_turn(&e, "runs", 2, false, false);
    add_turn(&e, "unfolded", 1, true, false);
    add_turn(&e, "ran", 1, false, true); /* its first turn never ended */
    add_turn(&e, "ran", 2, true, true);

    trim(&e, T0 + 2); /* the last record of the first turn is not older than itself */
    assert_int_equal(count_records(&e, alice, "done"), 6);
    trim(&e, T0 + 4);
    struct call c = get_records(&e, alice, "done", 1, 100, 1 << 20);
    assert_int_equal(c.n, 4);
    assert_int_equal(c.records[0]->head.seq, 3);
    c = get_turns(&e, alice, "done");
    assert_int_equal(c.n, 2);
    assert_int_equal(c.turns[0].turn, 2);
    assert_null(find_turn(&e, alice, "ag-ui", "done-1").turns);
    assert_non_null(find_turn(&e, alice, "ag-ui", "done-2").turns);

    trim(&e, T0 + 1000);
    assert_int_equal(count_records(&e, alice, "done"), 0);
    c = get_turns(&e, alice, "done"); /* the last one, for its number */
    assert_int_equal(c.n, 1);
    assert_int_equal(c.turns[0].turn, 3);
    assert_int_equal(c.turns[0].first_seq, 7);
    assert_int_equal(c.turns[0].last_seq, 6);
    assert_null(find_turn(&e, alice, "ag-ui", "done-3").turns);
    assert_int_equal(count_records(&e, alice, "runs"), 2);
    assert_int_equal(get_turns(&e, alice, "runs").n, 1);
    assert_int_equal(count_records(&e, alice, "unfolded"), 2);
    assert_int_equal(count_records(&e, alice, "ran"), 4);
    dgm_task_row *row = get_task(&e, alice, "done");
    assert_int_equal(row->last_seq, 6);
    assert_int_equal(row->folded_seq, 6);
    check_str(row->folded, "{}");

    add_turn(&e, "done", 4, true, true); /* the log goes on where it was */
    c = get_records(&e, alice, "done", 1, 100, 1 << 20);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.records[0]->head.seq, 7);
    assert_int_equal(get_records(&e, alice, "done", 3, 100, 1 << 20).n, 2);
    assert_int_equal(get_turns(&e, alice, "done").n, 2);
    trim(&e, T0 + 1000);
    c = get_turns(&e, alice, "done");
    assert_int_equal(c.n, 1);
    assert_int_equal(c.turns[0].turn, 4);
    assert_int_equal(count_records(&e, alice, "done"), 0);
    teardown(&e);
}

/* More than one step takes; the turn is ended by an append without its last record. */
static void many_turns_are_trimmed_in_steps(void **state)
{
    struct env e = setup(state);
    for (int i = 0; i < 450; i++) {
        char id[24];
        struct making m;
        dgm_turn_row turn = {.turn = 1, .first_seq = 1};
        snprintf(id, sizeof id, "t%d", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.turn = &turn;
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
        make_deltas(&m, alice, id, 1, 0, 1);
        turn.last_seq = 1;
        m.batch.turn = &turn;
        m.batch.row.folded = DGM_STR("{}");
        m.batch.row.folded_seq = 1;
        m.batch.row.status_ms = T0 + 5000;
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    }
    trim(&e, T0 + 1); /* record 1 has that time */
    assert_int_equal(count_records(&e, alice, "t0"), 1);
    trim(&e, T0 + 2);
    for (int i = 0; i < 450; i += 7) {
        char id[24];
        snprintf(id, sizeof id, "t%d", i);
        assert_int_equal(count_records(&e, alice, id), 0);
        struct call c = get_turns(&e, alice, id);
        assert_int_equal(c.n, 1);
        assert_int_equal(c.turns[0].first_seq, 2);
    }
    teardown(&e);
}

/* One that ended in this state at this time, with a turn, a message id and a folded Task. */
static void end_task(struct env *e, const char *id, dgm_task_state state, int64_t ms)
{
    struct making m;
    dgm_turn_row turn = {.turn = 1,
                         .first_seq = 1,
                         .last_seq = 2,
                         .protocol = DGM_STR("ag-ui"),
                         .caller_id = dgm_str_from(id)};
    dgm_taken taken = {.message_id = dgm_str_from(id), .nameless_until_ms = INT64_MAX};
    make_deltas(&m, alice, id, 0, 2, 1);
    m.batch.turn = &turn;
    m.batch.taken = &taken;
    m.batch.row.state = state;
    m.batch.row.status_ms = ms;
    m.batch.row.folded = DGM_STR("{}");
    m.batch.row.folded_seq = 2;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

static bool is_there(struct env *e, const char *id)
{
    bool there = get_task(e, alice, id);
    assert_int_equal(count_records(e, alice, id), there ? 2 : 0);
    assert_int_equal(get_turns(e, alice, id).n, there);
    assert_int_equal(find_turn(e, alice, "ag-ui", id).turns != NULL, there);
    assert_int_equal(find_dedupe(e, alice, "", id) != NULL, there);
    assert_int_equal(find_dedupe(e, alice, "ctx", id) != NULL, there);
    return there;
}

static void tasks_that_ended_long_ago_go_with_all_they_have(void **state)
{
    struct env e = setup(state);
    static const struct {
        const char *id;
        dgm_task_state state;
        int64_t ms;
        bool stays;
    } tasks[] = {{"done", DGM_STATE_COMPLETED, T0 + 10, false},
                 {"failed", DGM_STATE_FAILED, T0 + 19, false},
                 {"later", DGM_STATE_COMPLETED, T0 + 20, true},
                 {"runs", DGM_STATE_WORKING, T0 + 10, true},
                 {"asks", DGM_STATE_INPUT_REQUIRED, T0 + 10, true}};
    for (size_t i = 0; i < 5; i++)
        end_task(&e, tasks[i].id, tasks[i].state, tasks[i].ms);
    for (int i = 0; i < 450; i++) { /* several steps */
        char id[24];
        snprintf(id, sizeof id, "t%d", i);
        end_task(&e, id, DGM_STATE_CANCELED, T0 + (i % 2 ? 10 : 30));
    }
    struct call c = {.make = make_trim, .keep = {.tasks_before_ms = T0 + 20}};
    run_call(&e, &c);
    check_ok(c.code, c.err);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(is_there(&e, tasks[i].id), tasks[i].stays);
    assert_true(is_there(&e, "t448"));
    assert_false(is_there(&e, "t449"));
    dgm_list_query q = {.owner = alice, .page_size = 1};
    assert_int_equal(list(&e, &q).total, 3 + 225);
    end_task(&e, "done", DGM_STATE_COMPLETED, T0 + 50); /* its name is free again */
    assert_true(is_there(&e, "done"));
    teardown(&e);
}

DGM_TEST_MAIN(ON_EVERY(tasks_that_ended_long_ago_go_with_all_they_have),
              ON_EVERY(message_ids_are_taken_until_they_expire),
              ON_EVERY(a_message_id_belongs_to_whoever_took_it_last),
              ON_EVERY(new_message_ids_are_distinguished_from_old_ones),
              ON_EVERY(turns_are_found_by_their_callers_id),
              ON_EVERY(only_whole_finished_turns_are_trimmed),
              ON_EVERY(many_turns_are_trimmed_in_steps))
