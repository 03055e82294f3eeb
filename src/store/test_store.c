/* test_store.c - tasks and their records, on every driver. What only a disk can do is in sqlite/test_sqlite.c. */
#include "test_env.h"

static void a_task_is_what_was_appended(void **state)
{
    struct env e = setup(state);
    assert_null(get_task(&e, alice, "t1"));
    struct making m;
    make_deltas(&m, alice, "t1", 0, 3, 1);
    dgm_turn_row turn = {.turn = 1,
                         .first_seq = 1,
                         .protocol = DGM_STR("openai-responses"),
                         .caller_id = DGM_STR("resp_1"),
                         .request = DGM_STR("{\"a\":1}"),
                         .previous = DGM_STR("resp_0")};
    m.batch.turn = &turn;
    m.batch.sync = true;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);

    dgm_task_row *row = get_task(&e, alice, "t1");
    assert_non_null(row);
    check_str(row->owner.tenant, "acme");
    check_str(row->owner.principal, "alice");
    check_str(row->id, "t1");
    check_str(row->context_id, "ctx");
    check_str(row->agent, "demo");
    assert_int_equal(row->state, DGM_STATE_WORKING);
    assert_int_equal(row->created_ms, T0);
    assert_int_equal(row->status_ms, T0);
    assert_int_equal(row->last_seq, 3);
    assert_int_equal(row->folded_seq, 0);
    assert_null(row->folded.p);

    struct call c = get_records(&e, alice, "t1", 1, 100, 1 << 20);
    assert_int_equal(c.n, 3);
    for (size_t i = 0; i < 3; i++) {
        dgm_record *want = delta(i + 1, 1);
        check_same(dgm_record_bytes(c.records[i]), dgm_record_bytes(want));
        dgm_record_head got = c.records[i]->head;
        assert_int_equal(got.seq, i + 1);
        assert_int_equal(got.time, want->head.time);
        assert_int_equal(got.turn, 1);
        assert_int_equal(got.kind, DGM_EVENT_ARTIFACT);
        assert_int_equal(got.state, DGM_STATE_UNKNOWN);
        dgm_record_unref(want);
    }
    c = get_turns(&e, alice, "t1");
    assert_int_equal(c.n, 1);
    assert_int_equal(c.turns[0].turn, 1);
    assert_int_equal(c.turns[0].last_seq, 0);
    check_str(c.turns[0].caller_id, "resp_1");
    check_str(c.turns[0].request, "{\"a\":1}");
    check_str(c.turns[0].previous, "resp_0");

    /* the folded Task comes at the end of a turn and stays when the next begins */
    make_deltas(&m, alice, "t1", 3, 1, 1);
    m.batch.row.state = DGM_STATE_INPUT_REQUIRED;
    m.batch.row.status_ms = T0 + 4;
    m.batch.row.folded = DGM_STR("{\"id\":\"t1\"}");
    m.batch.row.folded_seq = 4;
    turn.last_seq = 4;
    m.batch.turn = &turn;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    assert_int_equal(append_deltas(&e, alice, "t1", 4, 2, 2), DGM_OK);
    row = get_task(&e, alice, "t1");
    check_str(row->folded, "{\"id\":\"t1\"}");
    assert_int_equal(row->folded_seq, 4);
    assert_int_equal(row->last_seq, 6);
    assert_int_equal(row->state, DGM_STATE_WORKING);
    assert_int_equal(row->created_ms, T0);
    assert_int_equal(get_turns(&e, alice, "t1").turns[0].last_seq, 4);

    /* nothing but the row and a turn */
    make_deltas(&m, alice, "t1", 6, 0, 0);
    m.batch.row.state = DGM_STATE_COMPLETED;
    turn = (dgm_turn_row){.turn = 2, .first_seq = 5, .last_seq = 6};
    m.batch.turn = &turn;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    assert_int_equal(get_task(&e, alice, "t1")->state, DGM_STATE_COMPLETED);
    assert_int_equal(get_turns(&e, alice, "t1").n, 2);
    dgm_store_stats stats = dgm_store_stats_of(e.store);
    assert_int_equal(stats.appends, 4);
    assert_int_equal(stats.records, 6);
    assert_true(stats.reads > 5);
    teardown(&e);
}

static void an_append_begins_where_the_log_ends(void **state)
{
    struct env e = setup(state);
    struct making m;
    dgm_err err = {0};
    make_deltas(&m, alice, "t1", 4, 1, 1);
    check_code(append(&e, &m.batch, &err), DGM_INTERNAL, &err, "unknown task");
    unmake(&m);
    assert_null(get_task(&e, alice, "t1"));
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 2, 1), DGM_OK);
    static const uint64_t ends[] = {0, 1, 3, 9};
    for (size_t i = 0; i < 4; i++) {
        dgm_taken taken = {.message_id = DGM_STR("m")};
        dgm_turn_row turn = {.turn = 1, .first_seq = 1};
        make_deltas(&m, alice, "t1", ends[i], 2, 1);
        m.batch.taken = &taken;
        m.batch.turn = &turn;
        check_code(append(&e, &m.batch, &err), DGM_INTERNAL, &err, "its log ends at 2");
        unmake(&m);
        assert_null(find_dedupe(&e, alice, "ctx", "m"));
    }
    make_deltas(&m, alice, "t1", 2, 2, 1);
    m.batch.row.last_seq = 9;
    check_code(append(&e, &m.batch, &err), DGM_INTERNAL, &err, "cannot end at 9");
    unmake(&m);
    make_deltas(&m, alice, "t1", 2, 2, 1);
    dgm_record_unref(m.records[1]);
    m.records[1] = delta(5, 1);
    check_code(append(&e, &m.batch, &err), DGM_INTERNAL, &err, "has seq 5, not 4");
    unmake(&m);
    assert_int_equal(get_task(&e, alice, "t1")->last_seq, 2);
    assert_int_equal(count_records(&e, alice, "t1"), 2);
    assert_int_equal(get_turns(&e, alice, "t1").n, 0);
    assert_true(dgm_store_is_healthy(e.store, NULL)); /* not the disk's fault */
    teardown(&e);
}

static void records_come_in_pages(void **state)
{
    struct env e = setup(state);
    for (uint64_t last = 0; last < 300; last += 30)
        assert_int_equal(append_deltas(&e, alice, "t1", last, 30, 1), DGM_OK);
    struct call c = get_records(&e, alice, "t1", 1, 7, 1 << 20);
    assert_int_equal(c.n, 7);
    for (uint64_t seq = 1; seq <= 300; seq += 37) {
        c = get_records(&e, alice, "t1", seq, 1000, 1 << 20);
        assert_int_equal(c.n, 301 - seq);
        assert_int_equal(c.records[0]->head.seq, seq);
    }
    c = get_records(&e, alice, "t1", 5, 1000, 1); /* one at least */
    assert_int_equal(c.n, 1);
    assert_int_equal(c.records[0]->head.seq, 5);
    size_t bytes = (size_t)c.records[0]->n * 10;
    c = get_records(&e, alice, "t1", 100, 1000, bytes);
    assert_in_range(c.n, 9, 11);
    assert_int_equal(get_records(&e, alice, "t1", 301, 10, 1000).n, 0);
    assert_int_equal(get_records(&e, alice, "t1", UINT64_MAX, 10, 1000).n, 0);
    assert_int_equal(get_records(&e, alice, "t1", 0, 10, 10000).n, 10);
    assert_int_equal(get_records(&e, alice, "none", 1, 10, 1000).n, 0);
    assert_int_equal(get_records(&e, alice, "t1", 1, 0, 1000).n, 0);
    teardown(&e);
}

static void large_records_come_back(void **state)
{
    struct env e = setup(state);
    size_t n = DGM_MAX_RECORD_BYTES;
    char *text = dgm_xmalloc(n);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(i * 7 + i / 251);
    struct making m;
    make_deltas(&m, alice, "t1", 0, 3, 1);
    dgm_record_unref(m.records[1]);
    m.records[1] = record_of(2, 1, DGM_EVENT_MESSAGE, DGM_STATE_UNKNOWN, (dgm_str){text, n});
    m.batch.row.folded = (dgm_str){text, n};
    m.batch.row.folded_seq = 3;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    struct call c = get_records(&e, alice, "t1", 1, 10, SIZE_MAX);
    assert_int_equal(c.n, 3);
    check_same(dgm_record_bytes(c.records[1]), ((dgm_str){text, n}));
    assert_int_equal(c.records[2]->head.seq, 3);
    check_same(get_task(&e, alice, "t1")->folded, ((dgm_str){text, n}));
    free(text);
    teardown(&e);
}

static void names_may_hold_anything(void **state)
{
    struct env e = setup(state);
    dgm_owner odd = {{"a\0b", 3}, DGM_STR("'; DROP TABLE tasks; --")};
    dgm_owner other = {{"a\0c", 3}, odd.principal};
    assert_int_equal(append_deltas(&e, odd, "t'\"%", 0, 1, 1), DGM_OK);
    assert_non_null(get_task(&e, odd, "t'\"%"));
    assert_null(get_task(&e, other, "t'\"%"));
    assert_int_equal(get_task(&e, odd, "t'\"%")->owner.tenant.n, 3);
    teardown(&e);
}

/* Two owners, the same ids everywhere: each sees its own, by every way in. */
static void owners_never_see_each_other(void **state)
{
    struct env e = setup(state);
    const dgm_owner owners[] = {alice, bob, {DGM_STR("umbrella"), DGM_STR("alice")}, nobody};
    for (size_t i = 0; i < 3; i++) {
        struct making m;
        dgm_turn_row turn = {
            .turn = 1, .first_seq = 1, .protocol = DGM_STR("ag-ui"), .caller_id = DGM_STR("run")};
        dgm_taken taken = {.message_id = DGM_STR("m"),
                           .content = {(const char[DGM_DIGEST_BYTES]){(char)i}, DGM_DIGEST_BYTES},
                           .nameless_until_ms = INT64_MAX};
        make_deltas(&m, owners[i], "t", 0, i + 1, 1);
        m.batch.turn = &turn;
        m.batch.taken = &taken;
        turn.first_seq = i + 1;
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
    }
    for (size_t i = 0; i < 4; i++) {
        dgm_task_row *row = get_task(&e, owners[i], "t");
        dgm_dedupe_row *d = find_dedupe(&e, owners[i], "", "m");
        struct call turn = find_turn(&e, owners[i], "ag-ui", "run");
        dgm_list_query q = {.owner = owners[i], .page_size = 10};
        struct call rows = list(&e, &q);
        assert_int_equal(count_records(&e, owners[i], "t"), i < 3 ? i + 1 : 0);
        assert_int_equal(get_turns(&e, owners[i], "t").n, i < 3);
        assert_int_equal(rows.n, i < 3);
        assert_int_equal(rows.total, i < 3);
        if (i == 3) {
            assert_null(row);
            assert_null(d);
            assert_null(turn.turns);
            continue;
        }
        assert_int_equal(row->last_seq, i + 1);
        assert_int_equal(d->digest[0], i);
        assert_int_equal(turn.turns->first_seq, i + 1);
        assert_int_equal(rows.rows[0].last_seq, i + 1);
    }
    teardown(&e);
}

static void urls_name_a_driver(void **state)
{
    (void)state;
    dgm_store *s = NULL;
    dgm_err err = {0};
    check_code(dgm_store_open("mysql:host=x", &s, &err), DGM_BAD_PARAMS, &err, "postgres:CONNINFO");
    check_code(dgm_store_open("memory", &s, &err), DGM_BAD_PARAMS, &err, "memory:");
    check_code(dgm_store_open("memory:x", &s, &err), DGM_BAD_PARAMS, &err, "has no path");
    assert_null(s);
    dgm_store_close(NULL);
}

DGM_TEST_MAIN(ON_EVERY(a_task_is_what_was_appended), ON_EVERY(an_append_begins_where_the_log_ends),
              ON_EVERY(records_come_in_pages), ON_EVERY(large_records_come_back),
              ON_EVERY(names_may_hold_anything), ON_EVERY(owners_never_see_each_other),
              dgm_test(urls_name_a_driver))
