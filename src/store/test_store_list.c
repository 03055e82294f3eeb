/* test_store_list.c - pages of tasks, on every driver. */
#include "test_env.h"

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

static void make_context(struct call *c)
{
    dgm_store_get_context(c->env->store, c->owner, c->a, c->b, c->max, c->max_bytes, on_list, c);
}

static struct call get_context(struct env *e, dgm_owner owner, const char *agent,
                               const char *context, size_t max, size_t max_bytes)
{
    struct call c = {.make = make_context,
                     .owner = owner,
                     .a = dgm_str_from(agent),
                     .b = dgm_str_from(context),
                     .max = max,
                     .max_bytes = max_bytes};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c;
}

/* Its times of creation are those of the ids; its status changed in another order. */
static void add_to_context(struct env *e, dgm_owner owner, const char *agent, const char *id,
                           int64_t created_ms)
{
    struct making m;
    make_deltas(&m, owner, id, 0, 1, 1);
    m.batch.row.agent = dgm_str_from(agent);
    m.batch.row.created_ms = T0 + created_ms;
    m.batch.row.status_ms = T0 + 100 - created_ms;
    m.batch.row.folded = DGM_STR("{\"task\":{}}");
    m.batch.row.folded_seq = 1;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

static void a_context_is_read_from_its_newest_task_on(void **state)
{
    struct env e = setup(state);
    add_to_context(&e, alice, "demo", "t1", 1);
    add_to_context(&e, alice, "demo", "t3", 3);
    add_to_context(&e, alice, "demo", "t2", 2);
    add_to_context(&e, alice, "other", "t4", 4);
    add_to_context(&e, bob, "demo", "t5", 5);
    struct call c = get_context(&e, alice, "demo", "ctx", 10, 1000);
    assert_int_equal(c.n, 3);
    assert_false(c.more);
    check_str(c.rows[0].id, "t3");
    check_str(c.rows[1].id, "t2");
    check_str(c.rows[2].id, "t1");
    check_str(c.rows[2].folded, "{\"task\":{}}");
    assert_int_equal(c.rows[2].folded_seq, 1);
    c = get_context(&e, alice, "demo", "ctx", 2, 1000);
    assert_int_equal(c.n, 2);
    assert_true(c.more);
    check_str(c.rows[1].id, "t2");
    c = get_context(&e, alice, "demo", "ctx", 10, 12); /* the second one exceeds it */
    assert_int_equal(c.n, 2);
    assert_true(c.more);
    assert_int_equal(get_context(&e, alice, "other", "ctx", 10, 1000).n, 1);
    assert_int_equal(get_context(&e, bob, "demo", "ctx", 10, 1000).n, 1);
    assert_int_equal(get_context(&e, nobody, "demo", "ctx", 10, 1000).n, 0);
    assert_int_equal(get_context(&e, alice, "demo", "ctx2", 10, 1000).n, 0);
    teardown(&e);
}

DGM_TEST_MAIN(ON_EVERY(a_context_is_read_from_its_newest_task_on),
              ON_EVERY(lists_filter_sort_and_count), ON_EVERY(pages_hold_under_concurrent_appends),
              ON_EVERY(a_page_ends_when_it_is_heavy),
              ON_EVERY(unfinished_tasks_are_listed_for_recovery))
