/* test_store_copy.c - `dragoman db copy`: from SQLite to PostgreSQL and back, nothing is lost. */
#include "store/sqlite/admin.h"
#include "store/store_copy.h"
#include "test_env.h"

#define N_TASKS 40
#define LARGE ((size_t)3 << 20)

/* ---- what is copied ------------------------------------------------------------------------------------ */

static void make_change(struct call *c)
{
    const dgm_checkpoint_change *change = (const void *)(uintptr_t)c->seq;
    dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), change, on_done, c);
}

static void make_put_note(struct call *c)
{
    dgm_store_put_note(c->env->store, (const void *)(uintptr_t)c->seq, on_done, c);
}

static void run_ok(struct env *e, void (*make)(struct call *c), const void *arg)
{
    struct call c = {.make = make, .seq = (uintptr_t)arg};
    run_call(e, &c);
    check_ok(c.code, c.err);
}

static void fill_tasks(struct env *e)
{
    int64_t later = dgm_loop_unix_ms() + 3600000;
    for (int i = 0; i < N_TASKS; i++) {
        char id[24], message[24];
        struct making m;
        snprintf(id, sizeof id, "t%d", i);
        snprintf(message, sizeof message, "m%d", i);
        dgm_str call = dgm_str_from(message);
        dgm_taken taken = {.message_id = dgm_str_from(message),
                           .content = DIGEST("\7"),
                           .nameless_until_ms = i % 2 ? later : 0};
        dgm_turn_row turn = {.turn = 1,
                             .first_seq = 1,
                             .last_seq = 3,
                             .protocol = DGM_STR("ag-ui"),
                             .caller_id = dgm_str_from(id),
                             .request = DGM_STR("{\"\0\xff\":1}")};
        make_deltas(&m, i % 3 ? alice : bob, id, 0, 3, 1);
        m.batch.turn = &turn;
        m.batch.taken = &taken;
        m.batch.row.state = i % 4 ? DGM_STATE_COMPLETED : DGM_STATE_INPUT_REQUIRED;
        m.batch.row.folded = i % 5 ? DGM_STR("{\"task\":{}}") : (dgm_str){0};
        m.batch.row.folded_seq = i % 5 ? 3 : 0;
        m.batch.open_calls = (dgm_strs){&call, i % 4 == 0};
        check_ok(append(e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
    }
}

static void fill(struct env *e)
{
    dgm_bytes *large = dgm_bytes_new(LARGE), *small = dgm_bytes_copy(DGM_STR("small\0\xff"));
    for (size_t i = 0; i < LARGE; i++)
        large->p[i] = (char)(i * 31 + i / 977);
    fill_tasks(e);
    dgm_note note = {.owner = alice,
                     .kind = DGM_STR("k"),
                     .name = DGM_STR("n\0\xff"),
                     .text = DGM_STR("\0text\xff")};
    run_ok(e, make_put_note, &note);
    dgm_checkpoint_write writes[] = {
        {.task = DGM_STR("a"),
         .idx = 0,
         .channel = DGM_STR("c"),
         .value = {DGM_STR("json"), small}},
        {.task = DGM_STR("a"), .idx = -1, .path = DGM_STR("p"), .value = {DGM_STR("x"), large}}};
    for (int i = 0; i < 3; i++) {
        const char *const ids[] = {"1", "2", "3"};
        dgm_checkpoint_change put = {.kind = DGM_CHECKPOINT_PUT,
                                     .row = {.thread = DGM_STR("thread"),
                                             .id = dgm_str_from(ids[i]),
                                             .run = DGM_STR("run"),
                                             .checkpoint = {DGM_STR("msgpack"), large},
                                             .metadata = {DGM_STR("json"), small}}};
        run_ok(e, make_change, &put);
        put.kind = DGM_CHECKPOINT_WRITES;
        put.row.writes = writes;
        put.row.n_writes = 2;
        run_ok(e, make_change, &put);
    }
    dgm_bytes_unref(large);
    dgm_bytes_unref(small);
}

/* ---- what is found after it ------------------------------------------------------------------------------ */

static void on_checkpoints(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                           const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    assert_false(more);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        const dgm_bytes *b = rows[i].checkpoint.bytes;
        assert_int_equal(b->n, LARGE);
        for (size_t k = 0; k < LARGE; k += 1009)
            assert_int_equal(b->p[k], (char)(k * 31 + k / 977));
        assert_int_equal(rows[i].n_writes, 2);
        assert_int_equal(rows[i].writes[0].value.bytes->n, 7);
        assert_int_equal(rows[i].writes[1].value.bytes->n, LARGE);
        check_str(rows[i].run, "run");
    }
    arrive(&c->wait);
}

static void make_read_checkpoints(struct call *c)
{
    dgm_checkpoint_query q = {.thread = DGM_STR("thread"), .limit = 10};
    dgm_store_read_checkpoints(c->env->store, DGM_STR("graph"), &q, on_checkpoints, c);
}

static void on_note_text(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    check_same(text, DGM_STR("\0text\xff"));
    arrive(&c->wait);
}

static void make_get_note(struct call *c)
{
    dgm_store_get_note(c->env->store, alice, DGM_STR("k"), DGM_STR("n\0\xff"), on_note_text, c);
}

static void make_find_call(struct call *c)
{
    dgm_store_find_call(c->env->store, c->owner, DGM_STR("demo"), c->a, on_task, c);
}

static void check_task(struct env *e, int i)
{
    char id[24], message[24];
    dgm_owner owner = i % 3 ? alice : bob;
    snprintf(id, sizeof id, "t%d", i);
    snprintf(message, sizeof message, "m%d", i);
    dgm_task_row *row = get_task(e, owner, id);
    assert_non_null(row);
    assert_int_equal(row->last_seq, 3);
    assert_int_equal(row->state, i % 4 ? DGM_STATE_COMPLETED : DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(row->folded.p != NULL, i % 5 != 0);
    assert_int_equal(row->folded_seq, i % 5 ? 3 : 0);
    assert_int_equal(count_records(e, owner, id), 3);
    struct call turn = find_turn(e, owner, "ag-ui", id);
    check_same(turn.turns->request, DGM_STR("{\"\0\xff\":1}"));
    dgm_dedupe_row *d = find_dedupe(e, owner, "ctx", message);
    assert_non_null(d);
    check_str(d->task_id, id);
    assert_int_equal(d->digest[0], 7);
    assert_int_equal(find_dedupe(e, owner, "", message) != NULL, i % 2);
    struct call c = {.make = make_find_call, .owner = owner, .a = dgm_str_from(message)};
    run_call(e, &c);
    assert_int_equal(c.rows != NULL, i % 4 == 0);
}

static void check_all(struct env *e)
{
    for (int i = 0; i < N_TASKS; i++)
        check_task(e, i);
    dgm_list_query q = {.owner = alice, .page_size = 100};
    assert_int_equal(list(e, &q).total, N_TASKS - (N_TASKS + 2) / 3);
    run_ok(e, make_get_note, NULL);
    struct call c = {.make = make_read_checkpoints};
    run_call(e, &c);
    check_ok(c.code, c.err);
    assert_int_equal(c.n, 3);
    assert_int_equal(append_deltas(e, alice, "t1", 3, 2, 2), DGM_OK); /* the log goes on */
}

/* ---- there and back -------------------------------------------------------------------------------------- */

static void copies_to_postgres_and_back_lose_nothing(void **state)
{
    static char driver[] = "sqlite";
    void *which = driver;
    char back[160], file[200];
    dgm_copy_counts there = {0}, home = {0};
    dgm_db_counts db = {0};
    dgm_err err = {0};
    (void)state;
    struct env e = setup(&which), p = {0}, b = {0};
    fill(&e);
    env_loops(&p, 1);
    postgres_url(p.url, sizeof p.url);
    check_ok(dgm_db_copy(e.url, p.url, &there, &err), err); /* beside a server that uses it */
    assert_int_equal(there.rows[DGM_COPY_TASKS], N_TASKS);
    assert_int_equal(there.rows[DGM_COPY_MESSAGES], N_TASKS);
    assert_int_equal(there.rows[DGM_COPY_VALUES], 3 * 2 * 3);
    check_code(dgm_db_copy(e.url, p.url, &home, &err), DGM_BAD_PARAMS, &err, "is not empty");
    snprintf(back, sizeof back, "sqlite:%s/back.db", e.dir);
    check_ok(dgm_db_copy(p.url, back, &home, &err), err);
    for (dgm_copy_table t = 0; t < DGM_N_COPY; t++) {
        if (t != DGM_COPY_MESSAGES) /* two rows for one, there */
            assert_int_equal(home.rows[t], there.rows[t]);
    }
    env_open(&p);
    own_all_tasks(&p);
    check_all(&p);
    check_code(dgm_db_copy(e.url, p.url, &home, &err), DGM_UNAVAILABLE, &err, "is in use by");
    snprintf(file, sizeof file, "%s", back + strlen("sqlite:"));
    check_ok(dgm_db_check(file, NULL, NULL, &db, &err), err);
    assert_int_equal(db.faults, 0);
    assert_int_equal(db.tasks, N_TASKS);
    env_loops(&b, 1);
    snprintf(b.url, sizeof b.url, "%s", back);
    env_open(&b);
    check_all(&b);
    teardown(&b);
    teardown(&p);
    teardown(&e);
}

static void a_copy_that_fails_leaves_nothing(void **state)
{
    static char driver[] = "sqlite";
    void *which = driver;
    char url[400], command[300];
    dgm_copy_counts counts = {0};
    dgm_err err = {0};
    (void)state;
    struct env e = setup(&which);
    fill(&e);
    postgres_url(url, sizeof url);
    /* a row that PostgreSQL's keys do not take, late in the copy */
    char *name = dgm_xcalloc(1, 20001);
    for (uint64_t i = 0; i < 20000; i++)
        name[i] = (char)(1 + dgm_hash(1, &i, sizeof i) % 255);
    dgm_note odd = {.owner = alice, .name = dgm_str_from(name), .text = DGM_STR("x")};
    run_ok(&e, make_put_note, &odd);
    free(name);
    assert_int_not_equal(dgm_db_copy(e.url, url, &counts, &err), DGM_OK);
    PGconn *c = PQconnectdb(url + strlen("postgres:"));
    assert_int_equal(postgres_ask(c, "SELECT count(*) FROM dragoman.tasks"), 0);
    assert_int_equal(postgres_ask(c, "SELECT count(*) FROM dragoman.log"), 0);
    PQfinish(c);
    check_code(dgm_db_copy("memory:", url, &counts, &err), DGM_BAD_PARAMS, &err, "sqlite:PATH");
    snprintf(command, sizeof command, "sqlite:%s/none.db", e.dir);
    check_code(dgm_db_copy(command, url, &counts, &err), DGM_BAD_PARAMS, &err, "does not exist");
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(copies_to_postgres_and_back_lose_nothing),
              dgm_test(a_copy_that_fails_leaves_nothing))
