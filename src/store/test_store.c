/* test_store.c - one suite for every driver. What only a disk can do is in sqlite/test_sqlite.c. */
#include "test_env.h"

/* ---- every driver ---------------------------------------------------------------------------------- */

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
    check_code(append(&e, &m.batch, &err), DGM_INTERNAL, &err, "there is no such task");
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
        dgm_taken taken = {.message_id = DGM_STR("m"), .nameless_until_ms = INT64_MAX};
        taken.digest[0] = (unsigned char)i;
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

/* t00..: contexts by twos, agents by threes, states by four, times with ties. */
static void make_tasks(struct env *e, size_t n)
{
    static const dgm_task_state states[] = {DGM_STATE_WORKING, DGM_STATE_COMPLETED,
                                            DGM_STATE_SUBMITTED, DGM_STATE_AUTH_REQUIRED};
    static const char *const contexts[] = {"even", "odd"}, *const agents[] = {"a", "b", "c"};
    for (size_t i = 0; i < n; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "t%03zu", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.row.context_id = dgm_str_from(contexts[i % 2]);
        m.batch.row.agent = dgm_str_from(agents[i % 3]);
        m.batch.row.state = states[i % 4];
        m.batch.row.status_ms = T0 + (int64_t)(i / 5); /* five of each */
        check_ok(append(e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
    }
}

static size_t walk_list(struct env *e, dgm_list_query q, size_t want_total)
{
    size_t n = 0;
    dgm_task_row last = {0};
    for (;;) {
        struct call c = list(e, &q);
        assert_int_equal(c.total, want_total);
        assert_true(c.n <= q.page_size);
        for (size_t i = 0; i < c.n; i++) {
            dgm_task_row *r = &c.rows[i];
            if (last.id.p) {
                assert_true(r->status_ms <= last.status_ms);
                if (r->status_ms == last.status_ms)
                    assert_true(memcmp(r->id.p, last.id.p, 4) < 0);
            }
            last = *r;
        }
        n += c.n;
        if (!c.more)
            return n;
        assert_int_equal(c.n, q.page_size);
        q.after_id = last.id;
        q.after_status_ms = last.status_ms;
    }
}

static void lists_filter_sort_and_count(void **state)
{
    struct env e = setup(state);
    make_tasks(&e, 60);
    static const size_t sizes[] = {1, 3, 7, 20, 60, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dgm_list_query q = {.owner = alice, .page_size = sizes[i]};
        assert_int_equal(walk_list(&e, q, 60), 60);
        q.context_id = DGM_STR("odd");
        assert_int_equal(walk_list(&e, q, 30), 30);
        q.agent = DGM_STR("b");
        assert_int_equal(walk_list(&e, q, 10), 10);
        q.context_id = (dgm_str){0};
        assert_int_equal(walk_list(&e, q, 20), 20);
        q.state = (dgm_opt_int){true, DGM_STATE_COMPLETED};
        assert_int_equal(walk_list(&e, q, 5), 5);
        q.agent = (dgm_str){0};
        assert_int_equal(walk_list(&e, q, 15), 15);
        q.context_id = DGM_STR("odd");
        assert_int_equal(walk_list(&e, q, 15), 15);
        q.context_id = DGM_STR("even");
        assert_int_equal(walk_list(&e, q, 0), 0);
        q = (dgm_list_query){.owner = alice, .page_size = sizes[i], .status_from_ms = T0 + 10};
        assert_int_equal(walk_list(&e, q, 10), 10); /* the very millisecond counts */
        q.context_id = DGM_STR("odd");
        assert_int_equal(walk_list(&e, q, 5), 5);
        q.state = (dgm_opt_int){true, DGM_STATE_UNKNOWN};
        assert_int_equal(walk_list(&e, q, 0), 0);
    }
    teardown(&e);
}

/* Others append and change while somebody turns pages: who stays where he is, is seen once. */
struct churn {
    struct env *env;
    struct wait wait;
    size_t n;
    char id[24];
    bool stop;
};

static void churn_next(void *arg);

static void on_churned(dgm_code code, const dgm_err *err, void *arg)
{
    (void)err;
    assert_int_equal(code, DGM_OK);
    churn_next(arg);
}

static void churn_next(void *arg)
{
    struct churn *c = arg;
    struct making m;
    if (c->n == 300) {
        arrive(&c->wait);
        return;
    }
    snprintf(c->id, sizeof c->id, "u%03zu", c->n / 2);
    make_deltas(&m, alice, c->id, c->n % 2, 1, 1);
    m.batch.row.status_ms = T0 + 1000 + (int64_t)c->n++;
    dgm_store_append(c->env->store, &m.batch, on_churned, c);
    unmake(&m);
}

static void pages_hold_under_concurrent_appends(void **state)
{
    struct env e = setup(state);
    make_tasks(&e, 60);
    struct churn churn = {.env = &e, .wait = WAIT_FOR(1)};
    dgm_loop_post(dgm_loops_at(e.loops, 1), churn_next, &churn);
    size_t seen = 0;
    dgm_list_query q = {.owner = alice, .page_size = 4};
    for (bool more = true; more;) {
        struct call c = list(&e, &q);
        for (size_t i = 0; i < c.n; i++)
            seen += c.rows[i].id.p[0] == 't';
        more = c.more;
        if (c.n) {
            q.after_id = c.rows[c.n - 1].id;
            q.after_status_ms = c.rows[c.n - 1].status_ms;
        }
    }
    wait_all(&churn.wait);
    assert_int_equal(seen, 60);
    q = (dgm_list_query){.owner = alice, .page_size = 1000};
    assert_int_equal(list(&e, &q).total, 210);
    teardown(&e);
}

static void a_page_ends_when_it_is_heavy(void **state)
{
    struct env e = setup(state);
    size_t n = DGM_MAX_STORE_PAGE_BYTES / 2 + 1;
    char *text = dgm_xcalloc(1, n);
    for (int i = 0; i < 3; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "t%d", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.row.folded = (dgm_str){text, n};
        m.batch.row.folded_seq = 1;
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
    }
    free(text);
    dgm_list_query q = {.owner = alice, .page_size = 10};
    struct call c = list(&e, &q);
    assert_int_equal(c.n, 2);
    assert_true(c.more);
    assert_int_equal(c.total, 3);
    q.after_id = c.rows[1].id;
    q.after_status_ms = c.rows[1].status_ms;
    c = list(&e, &q);
    assert_int_equal(c.n, 1);
    assert_false(c.more);
    teardown(&e);
}

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
    take_message(&e, "t1", "ctx", 1, (dgm_taken){DGM_STR("m1"), {1, 2, 3}, later});
    take_message(&e, "t1", "ctx", 2, (dgm_taken){DGM_STR("m2"), {4}, 0});
    take_message(&e, "t2", "other", 1, (dgm_taken){DGM_STR("old"), {5}, now - 1});
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
    teardown(&e);
}

/* The same key again: the newer one counts. */
static void a_message_id_belongs_to_whoever_took_it_last(void **state)
{
    struct env e = setup(state);
    int64_t later = dgm_loop_unix_ms() + 60000;
    take_message(&e, "t1", "c1", 1, (dgm_taken){DGM_STR("m"), {1}, later});
    take_message(&e, "t2", "c2", 1, (dgm_taken){DGM_STR("m"), {2}, later});
    assert_int_equal(find_dedupe(&e, alice, "", "m")->digest[0], 2);
    check_str(find_dedupe(&e, alice, "c1", "m")->task_id, "t1"); /* in its own context as before */
    check_str(find_dedupe(&e, alice, "c2", "m")->task_id, "t2");
    take_message(&e, "t3", "c1", 1, (dgm_taken){DGM_STR("m"), {3}, 0});
    check_str(find_dedupe(&e, alice, "c1", "m")->task_id, "t3");
    check_str(find_dedupe(&e, alice, "", "m")->task_id, "t2");
    take_message(&e, "t2", "c2", 2, (dgm_taken){DGM_STR("m"), {4}, 0});
    assert_int_equal(find_dedupe(&e, alice, "c2", "m")->turn, 2);
    assert_int_equal(find_dedupe(&e, alice, "", "m")->digest[0], 2);
    take_message(&e, "t4", "c1", 1, (dgm_taken){DGM_STR("n"), {5}, 0}); /* an older task, later */
    take_message(&e, "t3", "c1", 2, (dgm_taken){DGM_STR("n"), {6}, 0});
    check_str(find_dedupe(&e, alice, "c1", "n")->task_id, "t3");
    assert_int_equal(find_dedupe(&e, alice, "c1", "n")->digest[0], 6);
    teardown(&e);
}

/* What was never taken is known to be so, soon after the store is open. */
static void new_message_ids_are_told_from_old_ones(void **state)
{
    struct env e = setup(state);
    int64_t later = dgm_loop_unix_ms() + 60000;
    dgm_str demo = DGM_STR("demo"), none = {0}, ctx = DGM_STR("ctx");
    for (int i = 0; !dgm_store_is_unknown(e.store, alice, demo, none, DGM_STR("m")); i++) {
        assert_true(i < 30000);
        usleep(1000);
    }
    take_message(&e, "t1", "ctx", 1, (dgm_taken){DGM_STR("m"), {1}, later});
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

static void unfinished_tasks_are_listed_for_recovery(void **state)
{
    struct env e = setup(state);
    make_tasks(&e, 40); /* working and submitted: every other one */
    assert_int_equal(append_deltas(&e, bob, "b1", 0, 1, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, nobody, "n1", 0, 1, 1), DGM_OK);
    struct making m;
    make_deltas(&m, bob, "b2", 0, 1, 1);
    m.batch.row.state = DGM_STATE_FAILED;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    size_t n = 0;
    dgm_task_row after = {0};
    for (bool more = true; more;) {
        struct call c = {.make = make_unfinished, .max = 6, .after = n ? &after : NULL};
        run_call(&e, &c);
        check_ok(c.code, c.err);
        for (size_t i = 0; i < c.n; i++, n++) {
            dgm_task_row *r = &c.rows[i];
            assert_true(r->state == DGM_STATE_WORKING || r->state == DGM_STATE_SUBMITTED);
            assert_int_equal(r->last_seq, 1);
            if (n == 0)
                check_str(r->id, "n1");
            after = *r;
        }
        more = c.more;
    }
    assert_int_equal(n, 22);
    check_str(after.id, "b1");
    teardown(&e);
}

/* ---- order ----------------------------------------------------------------------------------------- */

/* One loop makes many calls at once, about a few tasks; another does the same with tasks of its own. */
#define ORDER_TASKS 5
#define ORDER_ROUNDS 60

struct ordered {
    struct env *env;
    struct wait *wait;
    const char *prefix;
    dgm_loop *loop;
    uint64_t appended[ORDER_TASKS];
    size_t asked[ORDER_TASKS], answered[ORDER_TASKS]; /* calls about a task */
    struct order_call {
        struct ordered *o;
        size_t task, place;
        uint64_t last; /* what a read has to see at least */
    } calls[ORDER_ROUNDS * ORDER_TASKS * 4];
    size_t n_calls, n_answers;
};

static void ordered_answer(struct order_call *c)
{
    struct ordered *o = c->o;
    assert_ptr_equal(dgm_loop_current(), o->loop);
    assert_int_equal(o->answered[c->task], c->place);
    o->answered[c->task]++;
    if (++o->n_answers == o->n_calls)
        arrive(o->wait);
}

static void ordered_append(dgm_code code, const dgm_err *err, void *arg)
{
    (void)err;
    assert_int_equal(code, DGM_OK);
    ordered_answer(arg);
}

static void ordered_task(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct order_call *c = arg;
    (void)err;
    assert_int_equal(code, DGM_OK);
    assert_true(c->last == 0 || row->last_seq >= c->last);
    ordered_answer(c);
}

static void ordered_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                            void *arg)
{
    struct order_call *c = arg;
    (void)err;
    assert_int_equal(code, DGM_OK);
    assert_true(n >= c->last);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(records[i]->head.seq, i + 1);
    ordered_answer(c);
}

static void ordered_turns(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                          void *arg)
{
    (void)turns, (void)n, (void)err;
    assert_int_equal(code, DGM_OK);
    ordered_answer(arg);
}

static void make_ordered(void *arg)
{
    struct ordered *o = arg;
    dgm_store *s = o->env->store;
    o->loop = dgm_loop_current();
    for (size_t i = 0; i < ORDER_ROUNDS * ORDER_TASKS; i++) {
        char id[24];
        struct making m;
        size_t t = i % ORDER_TASKS;
        snprintf(id, sizeof id, "%s%zu", o->prefix, t);
        for (size_t k = 0; k < 4; k++) {
            struct order_call *c = &o->calls[o->n_calls++];
            bool writes = k == (i / ORDER_TASKS) % 4;
            *c = (struct order_call){o, t, o->asked[t]++, o->appended[t]};
            if (writes) {
                make_deltas(&m, alice, id, o->appended[t], 2, 1);
                o->appended[t] += 2;
                m.batch.sync = i % 7 == 0;
                dgm_store_append(s, &m.batch, ordered_append, c);
                unmake(&m);
            } else if (k == 0) {
                dgm_store_get_turns(s, alice, dgm_str_from(id), ordered_turns, c);
            } else if (k == 1) {
                dgm_store_get_records(s, alice, dgm_str_from(id), 1, 10000, SIZE_MAX,
                                      ordered_records, c);
            } else {
                dgm_store_get_task(s, alice, dgm_str_from(id), ordered_task, c);
            }
        }
    }
}

static void answers_come_in_order_and_reads_see_appends(void **state)
{
    struct env e = setup(state);
    struct wait wait = WAIT_FOR(2);
    struct ordered *o = dgm_xcalloc(2, sizeof *o);
    for (size_t i = 0; i < 2; i++) {
        o[i].env = &e;
        o[i].wait = &wait;
        o[i].prefix = i ? "x" : "y";
        dgm_loop_post(dgm_loops_at(e.loops, i), make_ordered, &o[i]);
    }
    wait_all(&wait);
    for (size_t t = 0; t < ORDER_TASKS; t++)
        assert_int_equal(o[0].appended[t], 2 * ORDER_ROUNDS);
    free(o);
    teardown(&e);
}

/* Closing waits for all that was asked for, and every callback comes. */
struct flood {
    struct env *env;
    struct wait *made;
    size_t n, answered, failed;
};

static void on_flooded(dgm_code code, const dgm_err *err, void *arg)
{
    struct flood *f = arg;
    (void)err;
    f->answered++;
    f->failed += code != DGM_OK;
}

static void make_flood(void *arg)
{
    struct flood *f = arg;
    for (size_t i = 0; i < f->n; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "t%04zu", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.sync = i % 100 == 0;
        dgm_store_append(f->env->store, &m.batch, on_flooded, f);
        unmake(&m);
    }
    arrive(f->made);
}

static void closing_finishes_what_was_asked_for(void **state)
{
    struct env e = setup(state);
    struct wait made = WAIT_FOR(1);
    struct flood f = {.env = &e, .made = &made, .n = 500};
    dgm_loop_post(dgm_loops_at(e.loops, 0), make_flood, &f);
    wait_all(&made);
    dgm_store_close(e.store);
    e.store = NULL;
    dgm_loops_free(e.loops); /* runs what was posted */
    e.loops = NULL;
    assert_int_equal(f.answered, 500);
    assert_int_equal(f.failed, 0);
    if (*e.dir) {
        dgm_arena_free(e.arena);
        env_loops(&e, 1);
        env_open(&e);
        dgm_list_query q = {.owner = alice, .page_size = 1};
        assert_int_equal(list(&e, &q).total, 500);
    }
    teardown(&e);
}

/* ---- the memory store ------------------------------------------------------------------------------ */

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

static void urls_name_a_driver(void **state)
{
    (void)state;
    dgm_store *s = NULL;
    dgm_err err = {0};
    check_code(dgm_store_open("postgres:host=x", &s, &err), DGM_BAD_PARAMS, &err, "sqlite:PATH");
    check_code(dgm_store_open("memory", &s, &err), DGM_BAD_PARAMS, &err, "memory:");
    check_code(dgm_store_open("memory:x", &s, &err), DGM_BAD_PARAMS, &err, "has no path");
    assert_null(s);
    dgm_store_close(NULL);
}

#define EVERY_DRIVER(X)                                                                            \
    X(a_task_is_what_was_appended)                                                                 \
    X(an_append_begins_where_the_log_ends)                                                         \
    X(records_come_in_pages)                                                                       \
    X(large_records_come_back)                                                                     \
    X(names_may_hold_anything)                                                                     \
    X(owners_never_see_each_other)                                                                 \
    X(lists_filter_sort_and_count)                                                                 \
    X(pages_hold_under_concurrent_appends)                                                         \
    X(a_page_ends_when_it_is_heavy)                                                                \
    X(message_ids_are_taken_until_they_expire)                                                     \
    X(a_message_id_belongs_to_whoever_took_it_last)                                                \
    X(new_message_ids_are_told_from_old_ones)                                                      \
    X(turns_are_found_by_their_callers_id)                                                         \
    X(only_whole_finished_turns_are_trimmed)                                                       \
    X(many_turns_are_trimmed_in_steps)                                                             \
    X(unfinished_tasks_are_listed_for_recovery)                                                    \
    X(answers_come_in_order_and_reads_see_appends)                                                 \
    X(closing_finishes_what_was_asked_for)

int main(void)
{
    static char memory[] = "memory", sqlite[] = "sqlite";
    const struct CMUnitTest tests[] = {dgm_test(urls_name_a_driver),
                                       dgm_test(memory_forgets_what_ended_first),
#define X(fn) dgm_test_with("memory: " #fn, fn, memory), dgm_test_with("sqlite: " #fn, fn, sqlite),
                                       EVERY_DRIVER(X)
#undef X
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
