/* test_message_ids.c - message ids: in tables of every version, in one commit, and without a read. */
#include "sqlite_int.h"
#include "store/sqlite/test_disk.h"

/* ---- earlier versions ---------------------------------------------------------------------------------------- */

/* A database as the first version left it: a task of three turns, the first one trimmed, the last sent
 * without a context; another whose message id has expired. */
static const char version_1[] =
    "PRAGMA journal_mode=WAL; PRAGMA application_id=1685219181;"
    "CREATE TABLE migrations(version INTEGER PRIMARY KEY, applied TEXT NOT NULL,"
    " about TEXT NOT NULL) STRICT; INSERT INTO migrations VALUES(1,'2026','first');"
    "CREATE TABLE tasks(n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL,"
    " id TEXT NOT NULL, context TEXT NOT NULL, agent TEXT NOT NULL, state INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, status_ms INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
    " UNIQUE(tenant,principal,id)) STRICT;"
    "CREATE INDEX tasks_by_status ON tasks(tenant,principal,status_ms,id,state,agent);"
    "CREATE INDEX tasks_by_context ON tasks(tenant,principal,context);"
    "CREATE INDEX tasks_unfinished ON tasks(tenant,principal,id) WHERE state<3;"
    "CREATE TABLE folds(task INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
    "CREATE TABLE log(at INTEGER PRIMARY KEY, n INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE turns(at INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT"
    " NULL, ended_ms INTEGER NOT NULL, protocol TEXT NOT NULL, caller TEXT NOT NULL,"
    " request TEXT NOT NULL, previous TEXT NOT NULL) STRICT;"
    "CREATE INDEX turns_by_caller ON turns(caller,protocol) WHERE caller<>'';"
    "CREATE INDEX turns_by_end ON turns(ended_ms) WHERE ended_ms>0;"
    "CREATE TABLE dedupe(tenant TEXT NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL,"
    " context TEXT NOT NULL, message TEXT NOT NULL, digest BLOB NOT NULL, task TEXT NOT NULL,"
    " turn INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " PRIMARY KEY(tenant,principal,agent,context,message)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX dedupe_by_expiry ON dedupe(expires_ms) WHERE expires_ms>0;"
    "CREATE TABLE probe(n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;"
    "INSERT INTO tasks VALUES(1,'acme','alice','t1','ctx','demo',3,1000,2000,6);"
    "INSERT INTO tasks VALUES(2,'acme','alice','t2','c2','demo',3,1000,3000,1);"
    "INSERT INTO folds VALUES(1,6,x'7b7d'),(2,1,x'7b7d');"
    "INSERT INTO turns VALUES((1<<32)+2,3,4,1500,'ag-ui','run','',''),"
    "((1<<32)+3,5,6,2000,'a2a','','',''),((2<<32)+1,1,1,3000,'a2a','','','');"
    "INSERT INTO dedupe VALUES('acme','alice','demo','ctx','m1',zeroblob(32),'t1',1,0),"
    "('acme','alice','demo','ctx','m2',zeroblob(32),'t1',2,0),"
    "('acme','alice','demo','ctx','m3',zeroblob(32),'t1',3,0),"
    "('acme','alice','demo','','m3',zeroblob(32),'t1',3,9000000000000),"
    "('acme','alice','demo','c2','old',zeroblob(32),'t2',1,0),"
    "('acme','alice','demo','','old',zeroblob(32),'t2',1,5);";

static void tables_of_the_first_version_are_brought_up_to_date(void **state)
{
    (void)state;
    struct env e = setup_disk();
    dgm_store_close(e.store);
    e.store = NULL;
    unlink(db_path(&e));
    meddle(db_path(&e), version_1);
    for (int round = 0; round < 2; round++) { /* as it is brought up to date, and after that */
        env_open(&e);
        dgm_task_row *row = get_task(&e, alice, "t1");
        assert_int_equal(row->last_seq, 6);
        check_str(row->folded, "{}");
        assert_int_equal(find_dedupe(&e, alice, "ctx", "m1")->turn, 1);
        assert_int_equal(find_dedupe(&e, alice, "ctx", "m2")->turn, 2);
        assert_int_equal(find_dedupe(&e, alice, "ctx", "m3")->turn, 3);
        dgm_dedupe_row *nameless = find_dedupe(&e, alice, "", "m3");
        assert_int_equal(nameless->turn, 3);
        assert_true(nameless->expires_ms == 9000000000000);
        check_str(find_dedupe(&e, alice, "c2", "old")->task_id, "t2");
        assert_null(find_dedupe(&e, alice, "", "old"));
        assert_null(find_dedupe(&e, alice, "", "m1"));
        struct call c = get_turns(&e, alice, "t1");
        assert_int_equal(c.turns[c.n - 2].turn, 2);
        assert_int_equal(c.turns[c.n - 2].first_seq, 3);
        assert_int_equal(c.turns[0].first_seq, 3); /* what is left begins there */
        check_str(find_turn(&e, alice, "ag-ui", "run").task_id, "t1");
        dgm_list_query q = {.owner = alice, .context_id = DGM_STR("ctx"), .page_size = 10};
        assert_int_equal(list(&e, &q).total, 1);
        dgm_store_close(e.store);
        e.store = NULL;
    }
    env_open(&e);
    assert_int_equal(append_deltas(&e, alice, "t2", 1, 2, 2), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "t3", 0, 2, 1), DGM_OK);
    assert_int_equal(count_records(&e, alice, "t3"), 2);
    teardown(&e);
}

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
        taken[i] = (dgm_taken){DGM_STR("m"), {(unsigned char)i}, dgm_loop_unix_ms() + 60000};
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

DGM_TEST_MAIN(dgm_test(tables_of_the_first_version_are_brought_up_to_date),
              dgm_test(a_known_id_is_never_taken_for_a_new_one),
              dgm_test(one_id_may_be_taken_often_in_a_commit))
