/* test_store_checkpoints.c - checkpoints of graphs, on every driver. */
#include "store/sqlite/admin.h"
#include "test_env.h"

/* ---- calls ---------------------------------------------------------------------------------------------- */

struct asking {
    struct call call; /* first */
    const char *agent;
    const dgm_checkpoint_change *change;
    dgm_checkpoint_query query;
    dgm_checkpoint rows[DGM_MAX_CHECKPOINT_PAGE];
};

static void make_change(struct call *c)
{
    const struct asking *a = (struct asking *)c;
    dgm_store_change_checkpoints(c->env->store, dgm_str_from(a->agent), a->change, on_done, c);
}

static dgm_code change_of(struct env *e, const char *agent, const dgm_checkpoint_change *change,
                          dgm_err *ret_err)
{
    struct asking a = {.call.make = make_change, .agent = agent, .change = change};
    run_call(e, &a.call);
    if (ret_err)
        *ret_err = a.call.err;
    return a.call.code;
}

static void change(struct env *e, const dgm_checkpoint_change *change)
{
    dgm_err err = {0};
    check_ok(change_of(e, "graph", change, &err), err);
}

static void unref_bytes(void *b)
{
    dgm_bytes_unref(b);
}

static dgm_checkpoint_value dup_value(struct call *c, const dgm_checkpoint_value *v)
{
    if (v->bytes)
        dgm_arena_defer(c->env->arena, unref_bytes, dgm_bytes_ref(v->bytes));
    return (dgm_checkpoint_value){dup_text(c, v->type), v->bytes};
}

static dgm_checkpoint dup_checkpoint(struct call *c, const dgm_checkpoint *row)
{
    dgm_checkpoint_write *writes =
        dgm_new_n(c->env->arena, dgm_checkpoint_write, row->n_writes + 1);
    for (size_t i = 0; i < row->n_writes; i++) {
        writes[i] = row->writes[i];
        writes[i].task = dup_text(c, writes[i].task);
        writes[i].path = dup_text(c, writes[i].path);
        writes[i].channel = dup_text(c, writes[i].channel);
        writes[i].value = dup_value(c, &row->writes[i].value);
    }
    return (dgm_checkpoint){.thread = dup_text(c, row->thread),
                            .ns = dup_text(c, row->ns),
                            .id = dup_text(c, row->id),
                            .parent = dup_text(c, row->parent),
                            .run = dup_text(c, row->run),
                            .checkpoint = dup_value(c, &row->checkpoint),
                            .metadata = dup_value(c, &row->metadata),
                            .writes = writes,
                            .n_writes = row->n_writes};
}

static void on_checkpoints(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                           const dgm_err *err, void *arg)
{
    struct asking *a = arg;
    note(&a->call, code, err);
    for (size_t i = 0; i < n; i++)
        a->rows[i] = dup_checkpoint(&a->call, &rows[i]);
    a->call.n = n;
    a->call.more = more;
    arrive(&a->call.wait);
}

static void make_read(struct call *c)
{
    struct asking *a = (struct asking *)c;
    dgm_store_read_checkpoints(c->env->store, dgm_str_from(a->agent), &a->query, on_checkpoints, c);
}

static struct asking read_of(struct env *e, const char *agent, dgm_checkpoint_query query)
{
    struct asking a = {.call.make = make_read, .agent = agent, .query = query};
    if (!query.limit)
        a.query.limit = DGM_MAX_CHECKPOINT_PAGE;
    run_call(e, &a.call);
    return a;
}

static struct asking read_all(struct env *e, dgm_checkpoint_query query)
{
    struct asking a = read_of(e, "graph", query);
    check_ok(a.call.code, a.call.err);
    return a;
}

/* The latest one, or the one of this id. */
static struct asking get(struct env *e, const char *thread, const char *ns, const char *id)
{
    struct asking a = read_all(e, (dgm_checkpoint_query){.thread = dgm_str_from(thread),
                                                         .ns = dgm_str_from(ns),
                                                         .id = dgm_str_from(id),
                                                         .limit = 1});
    assert_true(a.call.n <= 1);
    return a;
}

/* ---- rows ------------------------------------------------------------------------------------------------- */

static dgm_bytes *bytes_of(struct env *e, const char *text)
{
    dgm_bytes *b = dgm_bytes_copy(dgm_str_from(text));
    dgm_arena_defer(e->arena, unref_bytes, b);
    return b;
}

static void put_as(struct env *e, const char *thread, const char *ns, const char *id,
                   const char *text, const char *run)
{
    dgm_checkpoint row = {.thread = dgm_str_from(thread),
                          .ns = dgm_str_from(ns),
                          .id = dgm_str_from(id),
                          .parent = DGM_STR("before"),
                          .run = dgm_str_from(run),
                          .checkpoint = {DGM_STR("msgpack"), bytes_of(e, text)},
                          .metadata = {DGM_STR("json"), bytes_of(e, "{}")}};
    change(e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_PUT, .row = row});
}

static void put(struct env *e, const char *thread, const char *id)
{
    put_as(e, thread, "", id, id, "");
}

static void write_one(struct env *e, const char *thread, const char *id, const char *task,
                      int64_t idx, const char *text)
{
    dgm_checkpoint_write w = {.task = dgm_str_from(task),
                              .path = DGM_STR("~path"),
                              .idx = idx,
                              .channel = DGM_STR("ch"),
                              .value = {DGM_STR("t"), bytes_of(e, text)}};
    dgm_checkpoint row = {
        .thread = dgm_str_from(thread), .id = dgm_str_from(id), .writes = &w, .n_writes = 1};
    change(e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_WRITES, .row = row});
}

static void with_names(struct env *e, dgm_checkpoint_change_kind kind, const char *a, const char *b)
{
    dgm_str names[] = {dgm_str_from(a), dgm_str_from(b)};
    change(e, &(dgm_checkpoint_change){.kind = kind, .names = {names, b ? 2 : 1}});
}

static void copy(struct env *e, const char *from, const char *to)
{
    change(e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_COPY,
                                       .row.thread = dgm_str_from(from),
                                       .to = dgm_str_from(to)});
}

static void check_value(dgm_checkpoint_value v, const char *text)
{
    assert_non_null(v.bytes);
    check_str(((dgm_str){v.bytes->p, v.bytes->n}), text);
}

/* "thread/ns/id ..." of all that match. */
static void check_ids(struct env *e, dgm_checkpoint_query q, const char *expected)
{
    char text[2000] = "";
    struct asking a = read_all(e, q);
    for (size_t i = 0; i < a.call.n; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%.*s/%.*s/%.*s", i ? " " : "",
                 DGM_P(a.rows[i].thread), DGM_P(a.rows[i].ns), DGM_P(a.rows[i].id));
    }
    assert_string_equal(text, expected);
}

static void check_thread(struct env *e, const char *thread, const char *expected)
{
    check_ids(e, (dgm_checkpoint_query){.thread = dgm_str_from(thread), .any_ns = true}, expected);
}

static void on_fault(const char *fault, void *arg)
{
    (void)arg;
    fail_msg("db check: %s", fault);
}

/* Nothing is left over in the tables, and nothing is missing. */
static void end(struct env *e)
{
    dgm_err err = {0};
    dgm_db_counts counts;
    if (is_sqlite(e))
        check_ok(dgm_db_check(db_path(e), on_fault, NULL, &counts, &err), err);
    teardown(e);
}

/* ---- get, put ------------------------------------------------------------------------------------------------ */

static void the_latest_has_the_greatest_id(void **state)
{
    struct env e = setup(state);
    assert_int_equal(get(&e, "t", "", "").call.n, 0);
    put(&e, "t", "2");
    put(&e, "t", "10"); /* by bytes: before 2 */
    put_as(&e, "t", "child", "9", "of the child", "");
    struct asking a = get(&e, "t", "", "");
    check_str(a.rows[0].id, "2");
    check_str(a.rows[0].thread, "t");
    check_str(a.rows[0].parent, "before");
    check_str(a.rows[0].checkpoint.type, "msgpack");
    check_value(a.rows[0].checkpoint, "2");
    check_str(a.rows[0].metadata.type, "json");
    check_value(a.rows[0].metadata, "{}");
    assert_int_equal(a.rows[0].n_writes, 0);
    check_str(get(&e, "t", "", "10").rows[0].id, "10");
    assert_int_equal(get(&e, "t", "", "9").call.n, 0);
    assert_int_equal(get(&e, "t", "", "1").call.n, 0);
    check_value(get(&e, "t", "child", "").rows[0].checkpoint, "of the child");
    assert_int_equal(get(&e, "u", "", "").call.n, 0);
    assert_int_equal(read_of(&e, "other", (dgm_checkpoint_query){.thread = DGM_STR("t")}).call.n,
                     0);
    end(&e);
}

static void a_put_replaces_one_of_the_same_id(void **state)
{
    struct env e = setup(state);
    put(&e, "t", "1");
    write_one(&e, "t", "1", "task", 0, "stays");
    put_as(&e, "t", "", "1", "again", "r2");
    struct asking a = get(&e, "t", "", "");
    check_value(a.rows[0].checkpoint, "again");
    check_str(a.rows[0].run, "r2");
    assert_int_equal(a.rows[0].n_writes, 1);
    check_thread(&e, "t", "t//1");
    end(&e);
}

static void values_are_bytes_of_any_kind_and_size(void **state)
{
    static const size_t sizes[] = {0,      1, 1024, 1025, (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
                                   5 << 20};
    struct env e = setup(state);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dgm_bytes *large = dgm_bytes_new(sizes[i]), *small = dgm_bytes_new(3);
        for (size_t k = 0; k < sizes[i]; k++)
            large->p[k] = (char)(k * 31 + k / 4096 + i);
        memcpy(small->p, "\0\xff\n", 3);
        dgm_checkpoint_write w = {.task = DGM_STR("x"), .value = {DGM_STR("w"), large}};
        dgm_checkpoint row = {.thread = DGM_STR("t"),
                              .id = DGM_STR("1"), /* the same each time: larger and smaller ones */
                              .checkpoint = {DGM_STR("bytes"), large},
                              .metadata = {DGM_STR(""), small},
                              .writes = &w,
                              .n_writes = 1};
        char task[16];
        snprintf(task, sizeof task, "%zu", i);
        w.task = dgm_str_from(task);
        change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_PUT,
                                            .row = {.thread = row.thread,
                                                    .id = row.id,
                                                    .checkpoint = row.checkpoint,
                                                    .metadata = row.metadata}});
        change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_WRITES, .row = row});
        struct asking a = get(&e, "t", "", "");
        dgm_bytes *got = a.rows[0].checkpoint.bytes, *written = a.rows[0].writes[i].value.bytes;
        assert_int_equal(a.rows[0].n_writes, i + 1);
        assert_int_equal(got ? got->n : 0, sizes[i]);
        assert_int_equal(written ? written->n : 0, sizes[i]);
        if (sizes[i]) {
            assert_memory_equal(got->p, large->p, sizes[i]);
            assert_memory_equal(written->p, large->p, sizes[i]);
        }
        assert_memory_equal(a.rows[0].metadata.bytes->p, "\0\xff\n", 3);
        dgm_bytes_unref(large);
        dgm_bytes_unref(small);
    }
    end(&e);
}

/* ---- writes ---------------------------------------------------------------------------------------------------- */

static void a_write_is_stored_once_unless_its_idx_is_negative(void **state)
{
    struct env e = setup(state);
    put(&e, "t", "1");
    write_one(&e, "t", "1", "b", 0, "first");
    write_one(&e, "t", "1", "b", 0, "ignored");
    write_one(&e, "t", "1", "b", -3, "interrupt");
    write_one(&e, "t", "1", "b", -3, "newer interrupt");
    write_one(&e, "t", "1", "b", 1, "second");
    write_one(&e, "t", "1", "a", 0, "of another task");
    struct asking a = get(&e, "t", "", "");
    static const struct {
        const char *task, *text;
        int64_t idx;
    } expected[] = {{"a", "of another task", 0},
                    {"b", "newer interrupt", -3},
                    {"b", "first", 0},
                    {"b", "second", 1}};
    assert_int_equal(a.rows[0].n_writes, 4);
    for (size_t i = 0; i < 4; i++) {
        const dgm_checkpoint_write *w = &a.rows[0].writes[i];
        check_str(w->task, expected[i].task);
        assert_int_equal(w->idx, expected[i].idx);
        check_value(w->value, expected[i].text);
        check_str(w->value.type, "t");
        check_str(w->path, "~path");
        check_str(w->channel, "ch");
    }
    put(&e, "t", "2");
    assert_int_equal(get(&e, "t", "", "").rows[0].n_writes, 0);
    end(&e);
}

static void writes_are_sorted_by_the_path_of_their_task(void **state)
{
    struct env e = setup(state);
    dgm_checkpoint_write w[] = {
        {.task = DGM_STR("1"), .path = DGM_STR("b"), .idx = 0, .channel = DGM_STR("x")},
        {.task = DGM_STR("2"), .path = DGM_STR("a"), .idx = 1, .channel = DGM_STR("y")},
        {.task = DGM_STR("2"), .path = DGM_STR("a"), .idx = 0, .channel = DGM_STR("z")}};
    dgm_checkpoint row = {.thread = DGM_STR("t"), .id = DGM_STR("1"), .writes = w, .n_writes = 3};
    put(&e, "t", "1");
    change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_WRITES, .row = row});
    struct asking a = get(&e, "t", "", "");
    check_str(a.rows[0].writes[0].channel, "z");
    check_str(a.rows[0].writes[1].channel, "y");
    check_str(a.rows[0].writes[2].channel, "x");
    end(&e);
}

static void writes_may_come_before_their_checkpoint(void **state)
{
    struct env e = setup(state);
    write_one(&e, "t", "2", "task", 0, "early");
    assert_int_equal(get(&e, "t", "", "").call.n, 0);
    check_thread(&e, "t", "");
    put(&e, "t", "1");
    check_str(get(&e, "t", "", "").rows[0].id, "1");
    with_names(&e, DGM_CHECKPOINT_KEEP_LATEST, "t", NULL); /* it may still come */
    put(&e, "t", "2");
    struct asking a = get(&e, "t", "", "");
    check_str(a.rows[0].id, "2");
    assert_int_equal(a.rows[0].n_writes, 1);
    check_value(a.rows[0].writes[0].value, "early");
    end(&e);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void lists_are_sorted_and_filtered(void **state)
{
    struct env e = setup(state);
    put(&e, "t", "1");
    put(&e, "t", "3");
    put(&e, "t", "2");
    put_as(&e, "t", "child", "2", "", "");
    put_as(&e, "t", "child", "4", "", "");
    put(&e, "u", "2");
    check_thread(&e, "t", "t/child/4 t//3 t//2 t/child/2 t//1");
    check_ids(&e, (dgm_checkpoint_query){.thread = DGM_STR("t")}, "t//3 t//2 t//1");
    check_ids(&e, (dgm_checkpoint_query){.thread = DGM_STR("t"), .ns = DGM_STR("child")},
              "t/child/4 t/child/2");
    check_ids(&e, (dgm_checkpoint_query){.thread = DGM_STR("t"), .before = DGM_STR("3")},
              "t//2 t//1");
    check_ids(&e,
              (dgm_checkpoint_query){.thread = DGM_STR("t"), .id = DGM_STR("2"), .any_ns = true},
              "t//2 t/child/2");
    check_ids(
        &e,
        (dgm_checkpoint_query){.thread = DGM_STR("t"), .id = DGM_STR("2"), .before = DGM_STR("2")},
        "");
    check_ids(&e, (dgm_checkpoint_query){.any_ns = true},
              "t/child/4 t//3 t//2 u//2 t/child/2 t//1");
    check_ids(&e, (dgm_checkpoint_query){0}, "t//3 t//2 u//2 t//1");
    assert_int_equal(read_of(&e, "other", (dgm_checkpoint_query){.any_ns = true}).call.n, 0);
    end(&e);
}

/* Every page starts behind the one before, whatever their size. */
static void pages_lose_nothing(void **state)
{
    static const char *const threads[] = {"a", "b"}, *const spaces[] = {"", "x", "y"};
    struct env e = setup(state);
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "id%d", i);
        for (int t = 0; t < 2; t++) {
            for (int n = 0; n < 3; n++)
                put_as(&e, threads[t], spaces[n], id, id, "");
        }
    }
    const struct {
        dgm_checkpoint_query q;
        size_t n;
    } lists[] = {{{.any_ns = true}, 30},
                 {{.ns = DGM_STR("x")}, 10},
                 {{.thread = DGM_STR("b"), .any_ns = true}, 15},
                 {{.thread = DGM_STR("b"), .ns = DGM_STR("y")}, 5},
                 {{.thread = DGM_STR("a"), .any_ns = true, .before = DGM_STR("id3")}, 9}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        struct asking whole = read_all(&e, lists[k].q);
        assert_int_equal(whole.call.n, lists[k].n);
        assert_false(whole.call.more);
        for (size_t limit = 1; limit <= 4; limit++) {
            dgm_checkpoint_query q = lists[k].q;
            size_t n = 0;
            bool more = true;
            for (q.limit = limit; more; n += limit) {
                struct asking page = read_all(&e, q);
                more = page.call.more;
                assert_int_equal(page.call.n, n + limit < lists[k].n ? limit : lists[k].n - n);
                for (size_t i = 0; i < page.call.n; i++) {
                    assert_true(dgm_str_eq(page.rows[i].id, whole.rows[n + i].id));
                    assert_true(dgm_str_eq(page.rows[i].ns, whole.rows[n + i].ns));
                    assert_true(dgm_str_eq(page.rows[i].thread, whole.rows[n + i].thread));
                }
                const dgm_checkpoint *last = &page.rows[page.call.n - 1];
                q.after.id = last->id;
                q.after.ns = last->ns;
                q.after.thread = last->thread;
            }
        }
    }
    end(&e);
}

static void a_page_ends_when_its_values_are_large(void **state)
{
    struct env e = setup(state);
    dgm_bytes *large = dgm_bytes_new((size_t)10 << 20);
    memset(large->p, 'x', large->n);
    for (int i = 0; i < 4; i++) {
        char id[2] = {(char)('a' + i), 0};
        change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_PUT,
                                            .row = {.thread = DGM_STR("t"),
                                                    .id = dgm_str_from(id),
                                                    .checkpoint = {DGM_STR("b"), large}}});
    }
    struct asking a = read_all(&e, (dgm_checkpoint_query){.thread = DGM_STR("t")});
    assert_int_equal(a.call.n, 2);
    assert_true(a.call.more);
    assert_int_equal(a.rows[1].checkpoint.bytes->n, large->n);
    dgm_bytes_unref(large);
    end(&e);
}

/* ---- deleting, copying, pruning ------------------------------------------------------------------------------------ */

static void threads_are_deleted_with_everything(void **state)
{
    struct env e = setup(state);
    put(&e, "t", "1");
    put_as(&e, "t", "child", "2", "", "");
    write_one(&e, "t", "1", "task", 0, "w");
    write_one(&e, "t", "9", "task", 0, "without a checkpoint");
    put(&e, "u", "1");
    put(&e, "v", "1");
    with_names(&e, DGM_CHECKPOINT_DELETE_THREADS, "t", "unknown");
    check_thread(&e, "t", "");
    check_thread(&e, "u", "u//1");
    put(&e, "t", "1");
    assert_int_equal(get(&e, "t", "", "").rows[0].n_writes, 0);
    with_names(&e, DGM_CHECKPOINT_DELETE_THREADS, "t", "u");
    check_ids(&e, (dgm_checkpoint_query){.any_ns = true}, "v//1");
    /* those of another agent stay */
    dgm_str v = DGM_STR("v");
    dgm_checkpoint_change c = {.kind = DGM_CHECKPOINT_DELETE_THREADS, .names = {&v, 1}};
    assert_int_equal(change_of(&e, "other", &c, NULL), DGM_OK);
    check_thread(&e, "v", "v//1");
    change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_DELETE_THREADS});
    end(&e);
}

static void checkpoints_are_deleted_by_their_runs(void **state)
{
    struct env e = setup(state);
    for (int i = 0; i < 100; i++) { /* more than one step of the SQLite driver */
        char id[16];
        snprintf(id, sizeof id, "a%02d", i);
        put_as(&e, "t", "", id, id, "r1");
    }
    put_as(&e, "t", "", "b", "", "r2");
    put_as(&e, "t", "child", "c", "", "r1");
    put_as(&e, "u", "", "d", "", "r3");
    put_as(&e, "u", "", "e", "", "");
    write_one(&e, "t", "a00", "task", 0, "w");
    with_names(&e, DGM_CHECKPOINT_DELETE_RUNS, "r1", "r3");
    check_thread(&e, "t", "t//b");
    check_thread(&e, "u", "u//e");
    dgm_str r2 = DGM_STR("r2");
    dgm_checkpoint_change c = {.kind = DGM_CHECKPOINT_DELETE_RUNS, .names = {&r2, 1}};
    assert_int_equal(change_of(&e, "other", &c, NULL), DGM_OK);
    with_names(&e, DGM_CHECKPOINT_DELETE_RUNS, "", "unknown"); /* "": not those without a run */
    check_thread(&e, "t", "t//b");
    check_thread(&e, "u", "u//e");
    put_as(&e, "t", "", "a00", "", "");
    assert_int_equal(get(&e, "t", "", "a00").rows[0].n_writes, 0);
    end(&e);
}

static void a_copy_has_everything_and_is_its_own(void **state)
{
    struct env e = setup(state);
    dgm_bytes *large = dgm_bytes_new((size_t)3 << 20);
    memset(large->p, 'L', large->n);
    dgm_checkpoint_write w = {.task = DGM_STR("task"), .value = {DGM_STR("b"), large}};
    dgm_checkpoint row = {.thread = DGM_STR("t"),
                          .id = DGM_STR("1"),
                          .run = DGM_STR("r"),
                          .checkpoint = {DGM_STR("b"), large},
                          .metadata = {DGM_STR("m"), large},
                          .writes = &w,
                          .n_writes = 1};
    change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_PUT,
                                        .row = {.thread = row.thread,
                                                .id = row.id,
                                                .run = row.run,
                                                .checkpoint = row.checkpoint,
                                                .metadata = row.metadata}});
    change(&e, &(dgm_checkpoint_change){.kind = DGM_CHECKPOINT_WRITES, .row = row});
    put_as(&e, "t", "child", "2", "small", "");
    write_one(&e, "t", "3", "task", 0, "without a checkpoint");
    put(&e, "copy", "1"); /* is replaced */
    write_one(&e, "copy", "1", "other", 0, "is replaced, too");
    put(&e, "copy", "0");
    copy(&e, "t", "copy");
    check_thread(&e, "copy", "copy/child/2 copy//1 copy//0");
    copy(&e, "t", "t");
    copy(&e, "unknown", "new");
    check_thread(&e, "new", "");
    with_names(&e, DGM_CHECKPOINT_DELETE_THREADS, "t", NULL);
    struct asking a = get(&e, "copy", "", "1");
    assert_int_equal(a.rows[0].checkpoint.bytes->n, large->n);
    assert_memory_equal(a.rows[0].checkpoint.bytes->p, large->p, large->n);
    assert_memory_equal(a.rows[0].metadata.bytes->p, large->p, large->n);
    check_str(a.rows[0].run, "r");
    assert_int_equal(a.rows[0].n_writes, 1);
    check_str(a.rows[0].writes[0].task, "task");
    assert_memory_equal(a.rows[0].writes[0].value.bytes->p, large->p, large->n);
    put(&e, "copy", "3");
    assert_int_equal(get(&e, "copy", "", "").rows[0].n_writes, 1);
    dgm_bytes_unref(large);
    end(&e);
}

static void pruning_keeps_the_latest_of_each_namespace(void **state)
{
    struct env e = setup(state);
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "a%02d", i);
        put(&e, "t", id);
    }
    put_as(&e, "t", "child", "1", "", "");
    put_as(&e, "t", "child", "2", "", "");
    put(&e, "u", "1");
    put(&e, "u", "2");
    write_one(&e, "t", "a99", "task", 0, "w");
    with_names(&e, DGM_CHECKPOINT_KEEP_LATEST, "t", "unknown");
    check_thread(&e, "t", "t//a99 t/child/2");
    check_thread(&e, "u", "u//2 u//1");
    assert_int_equal(get(&e, "t", "", "").rows[0].n_writes, 1);
    end(&e);
}

static void make_trim_threads(struct call *c)
{
    dgm_store_trim(c->env->store, c->keep, on_done, c);
}

static void old_threads_go_with_the_tasks(void **state)
{
    struct env e = setup(state);
    int64_t now = dgm_loop_unix_ms();
    for (int i = 0; i < 70; i++) { /* more than one step of the SQLite driver */
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        put(&e, "t", id);
    }
    put(&e, "u", "1");
    struct call c = {.make = make_trim_threads,
                     .keep = {.turns_before_ms = now + 1000000, .tasks_before_ms = 0}};
    run_call(&e, &c);
    check_str(get(&e, "t", "", "").rows[0].id, "9");
    c.keep.tasks_before_ms = now - 1000;
    run_call(&e, &c);
    check_str(get(&e, "t", "", "").rows[0].id, "9");
    c.keep.tasks_before_ms = now + 1000000;
    run_call(&e, &c);
    check_ok(c.code, c.err);
    check_ids(&e, (dgm_checkpoint_query){.any_ns = true}, "");
    end(&e);
}

/* ---- limits ------------------------------------------------------------------------------------------------------- */

static void what_is_too_large_is_refused(void **state)
{
    struct env e = setup(state);
    char name[DGM_MAX_CHECKPOINT_NAME_BYTES + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    dgm_err err = {0};
    dgm_checkpoint_change c = {.kind = DGM_CHECKPOINT_PUT,
                               .row = {.thread = dgm_str_from(name), .id = DGM_STR("1")}};
    check_code(change_of(&e, "graph", &c, &err), DGM_TOO_LARGE, &err, "checkpoint_name_bytes");
    c.row.thread = DGM_STR("t");
    c.row.checkpoint.bytes = dgm_bytes_new(DGM_MAX_CHECKPOINT_BYTES + 1);
    check_code(change_of(&e, "graph", &c, &err), DGM_TOO_LARGE, &err, "checkpoint_bytes");
    dgm_bytes_unref(c.row.checkpoint.bytes);
    assert_int_equal(get(&e, "t", "", "").call.n, 0);

    dgm_strs many = {dgm_new_n(e.arena, dgm_str, DGM_MAX_CHECKPOINT_NAMES + 1),
                     DGM_MAX_CHECKPOINT_NAMES + 1};
    c = (dgm_checkpoint_change){.kind = DGM_CHECKPOINT_DELETE_THREADS, .names = many};
    check_code(change_of(&e, "graph", &c, &err), DGM_TOO_LARGE, &err, "checkpoint_names");

    dgm_checkpoint_write *writes =
        dgm_new_n(e.arena, dgm_checkpoint_write, DGM_MAX_CHECKPOINT_WRITES + 1);
    for (int i = 0; i <= DGM_MAX_CHECKPOINT_WRITES; i++)
        writes[i].idx = i;
    c = (dgm_checkpoint_change){.kind = DGM_CHECKPOINT_WRITES,
                                .row = {.thread = DGM_STR("t"),
                                        .id = DGM_STR("1"),
                                        .writes = writes,
                                        .n_writes = DGM_MAX_CHECKPOINT_WRITES + 1}};
    check_code(change_of(&e, "graph", &c, &err), DGM_TOO_LARGE, &err, "checkpoint_writes");
    c.row.n_writes = 300;
    change(&e, &c);
    c.row.n_writes = DGM_MAX_CHECKPOINT_WRITES - 299; /* together one too many */
    check_code(change_of(&e, "graph", &c, &err), DGM_TOO_LARGE, &err, "checkpoint_writes");
    put(&e, "t", "1");
    assert_int_equal(get(&e, "t", "", "").rows[0].n_writes, 300);
    end(&e);
}

/* ---- order -------------------------------------------------------------------------------------------------------- */

struct order {
    struct call call; /* first */
    size_t n;
    dgm_bytes *text;
};

static void on_put(dgm_code code, const dgm_err *err, void *arg)
{
    struct order *o = arg;
    note(&o->call, code, err);
    o->n++;
}

static void on_read(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                    const dgm_err *err, void *arg)
{
    struct order *o = arg;
    (void)more;
    note(&o->call, code, err);
    assert_int_equal(n, 1);
    o->n++;
    if (rows[0].id.p[0] == '9')
        arrive(&o->call.wait);
    else
        assert_int_equal(o->n % 2, 0); /* right behind the put that was called before it */
}

/* All at once: puts, each followed by a read, without waiting. */
static void make_puts_and_reads(struct call *c)
{
    struct order *o = (struct order *)c;
    for (int i = 0; i < 10; i++) {
        char id[2] = {(char)('0' + i), 0};
        dgm_checkpoint_change put_it = {
            .kind = DGM_CHECKPOINT_PUT,
            .row = {.thread = DGM_STR("t"), .id = {id, 1}, .checkpoint = {DGM_STR("t"), o->text}}};
        dgm_checkpoint_query q = {.thread = DGM_STR("t"), .id = {id, 1}, .limit = 1};
        dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), &put_it, on_put, c);
        dgm_store_read_checkpoints(c->env->store, DGM_STR("graph"), &q, on_read, c);
    }
}

static void a_read_sees_the_changes_before_it(void **state)
{
    struct env e = setup(state);
    struct order o = {.call.make = make_puts_and_reads, .text = bytes_of(&e, "text")};
    run_call(&e, &o.call);
    assert_int_equal(o.n, 20);
    end(&e);
}

static void checkpoints_survive_a_restart(void **state)
{
    if (strcmp(*state, "memory") == 0)
        return;
    struct env e = setup(state);
    put(&e, "t", "1");
    write_one(&e, "t", "1", "task", 0, "w");
    reopen(&e);
    write_one(&e, "t", "1", "task", 0, "ignored");
    struct asking a = get(&e, "t", "", "");
    check_value(a.rows[0].checkpoint, "1");
    assert_int_equal(a.rows[0].n_writes, 1);
    check_value(a.rows[0].writes[0].value, "w");
    end(&e);
}

DGM_TEST_MAIN(ON_EVERY(the_latest_has_the_greatest_id), ON_EVERY(a_put_replaces_one_of_the_same_id),
              ON_EVERY(values_are_bytes_of_any_kind_and_size),
              ON_EVERY(a_write_is_stored_once_unless_its_idx_is_negative),
              ON_EVERY(writes_are_sorted_by_the_path_of_their_task),
              ON_EVERY(writes_may_come_before_their_checkpoint),
              ON_EVERY(lists_are_sorted_and_filtered), ON_EVERY(pages_lose_nothing),
              ON_EVERY(a_page_ends_when_its_values_are_large),
              ON_EVERY(threads_are_deleted_with_everything),
              ON_EVERY(checkpoints_are_deleted_by_their_runs),
              ON_EVERY(a_copy_has_everything_and_is_its_own),
              ON_EVERY(pruning_keeps_the_latest_of_each_namespace),
              ON_EVERY(old_threads_go_with_the_tasks), ON_EVERY(what_is_too_large_is_refused),
              ON_EVERY(a_read_sees_the_changes_before_it), ON_EVERY(checkpoints_survive_a_restart))
