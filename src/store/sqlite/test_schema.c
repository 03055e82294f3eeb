/* test_schema.c - tables of earlier versions, and what leaves those of this one. */
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

/* That database, not open in any process. */
static struct env setup_with(const char *sql)
{
    struct env e = setup_disk();
    dgm_store_close(e.store);
    e.store = NULL;
    unlink(db_path(&e));
    meddle(db_path(&e), sql);
    return e;
}

static void tables_of_the_first_version_are_brought_up_to_date(void **state)
{
    (void)state;
    struct env e = setup_with(version_1);
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

/* As the second version left it: a task that waits, with what began its turn. */
static const char version_2[] =
    "PRAGMA journal_mode=WAL; PRAGMA application_id=1685219181;"
    "CREATE TABLE migrations(version INTEGER PRIMARY KEY, applied TEXT NOT NULL,"
    " about TEXT NOT NULL) STRICT; INSERT INTO migrations VALUES(1,'2026','a'),(2,'2026','b');"
    "CREATE TABLE tasks(n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL,"
    " id TEXT NOT NULL, context TEXT NOT NULL, agent TEXT NOT NULL, state INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, status_ms INTEGER NOT NULL, last_seq INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX tasks_by_id ON tasks(id,tenant,principal);"
    "CREATE INDEX tasks_by_status ON tasks(tenant,principal,status_ms,id,state,agent);"
    "CREATE INDEX tasks_by_context ON tasks(context,tenant,principal);"
    "CREATE INDEX tasks_unfinished ON tasks(tenant,principal,id) WHERE state<3;"
    "CREATE TABLE folds(task INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
    "CREATE TABLE log(at INTEGER PRIMARY KEY, n INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE turns(at INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT"
    " NULL, ended_ms INTEGER NOT NULL, protocol TEXT NOT NULL, caller TEXT NOT NULL,"
    " request TEXT NOT NULL, previous TEXT NOT NULL, message TEXT NOT NULL,"
    " scope INTEGER NOT NULL, known_ms INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;"
    "CREATE INDEX turns_by_caller ON turns(caller,protocol) WHERE caller<>'';"
    "CREATE INDEX turns_by_message ON turns(message,scope) WHERE message<>'';"
    "CREATE TABLE probe(n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;"
    "INSERT INTO tasks VALUES(1,'acme','alice','t1','ctx','demo',4,1000,2000,2);"
    "INSERT INTO folds VALUES(1,2,x'7b7d');"
    "INSERT INTO turns "
    "VALUES((1<<32)+1,1,2,1500,'ag-ui','run','{}','before','m',7,0,zeroblob(32));";

static void make_find_call(struct call *c)
{
    dgm_store_find_call(c->env->store, c->owner, c->a, c->b, on_task, c);
}

static void tables_of_the_second_version_are_brought_up_to_date(void **state)
{
    (void)state;
    struct env e = setup_with(version_2);
    for (int round = 0; round < 2; round++) { /* as it is brought up to date, and after that */
        env_open(&e);
        assert_int_equal(get_task(&e, alice, "t1")->last_seq, 2 + round);
        struct call found = find_turn(&e, alice, "ag-ui", "run");
        check_str(found.task_id, "t1");
        check_str(found.turns->previous, "before");
        struct call c = {
            .make = make_find_call, .owner = alice, .a = DGM_STR("demo"), .b = DGM_STR("c1")};
        run_call(&e, &c);
        check_ok(c.code, c.err);
        assert_int_equal(c.rows != NULL, round > 0);
        dgm_str call = DGM_STR("c1");
        struct making m;
        make_deltas(&m, alice, "t1", round ? 3 : 2, 1, 2);
        m.batch.open_calls = (dgm_strs){&call, 1};
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
        dgm_store_close(e.store);
        e.store = NULL;
    }
    teardown(&e);
}

/* What the third version added, and tasks as it folded them; their logs were trimmed. */
#define FOLD(n, id, rest)                                                                          \
    "INSERT INTO tasks VALUES(" #n ",'acme','alice','" id "','ctx','demo',3,1000,2000,9);"         \
    "INSERT INTO folds VALUES(" #n ",9,CAST('{\"task\":{\"id\":\"" id                              \
    "\",\"contextId\":\"ctx\"," rest "}}' AS BLOB));"
#define AGENT(id, parts, more)                                                                     \
    "{\"messageId\":\"" id "\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]" more "}"
#define TYPED(type) ",\"metadata\":{\"canonical_type\":\"" type "\"}"
#define USER                                                                                       \
    "{\"messageId\":\"u\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]" TYPED(             \
        "TextMessageContentEvent") "}"
#define CALL "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\"}]}}"
#define COMPLETED "\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}"

static const char version_3[] =
    "INSERT INTO migrations VALUES(3,'2026','c');"
    "CREATE TABLE calls(n INTEGER PRIMARY KEY, call TEXT NOT NULL, tenant TEXT NOT NULL,"
    " principal TEXT NOT NULL, agent TEXT NOT NULL, task INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX calls_by_id ON calls(call,tenant,principal,agent);"
    "CREATE INDEX calls_by_task ON calls(task);"
    "CREATE TABLE notes(n INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, tenant TEXT"
    " NOT NULL, principal TEXT NOT NULL, expires_ms INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX notes_by_name ON notes(name,kind,tenant,principal);"
    "CREATE INDEX notes_by_expiry ON notes(expires_ms) WHERE expires_ms>0;" FOLD(
        2, "progress",
        COMPLETED
        ",\"history\":[" USER "," AGENT("p", "{\"text\":\"Processing...\"}", "") "," AGENT(
            "e", "{\"text\":\"Hello\"}", TYPED("TextMessageEndEvent")) "," AGENT("c",
                                                                                 "{\"text\":\"Let "
                                                                                 "me see\"}," CALL,
                                                                                 "") "]")
        FOLD(3, "parts",
             COMPLETED ",\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"It \"},{"
                       "\"text\":\"is.\"},{\"text\":\"\"}]},{\"artifactId\":"
                       "\"aion:stream-delta\",\"parts\":[{\"text\":\"x\"}]}]")
            FOLD(4, "failed",
                 "\"status\":{\"state\":\"TASK_STATE_FAILED\"},\"metadata\":{\"error\":\"why\"}")
                FOLD(5, "fine", COMPLETED ",\"history\":[" USER "]");

static void folded_tasks_of_the_third_version_are_brought_up_to_date(void **state)
{
    (void)state;
    struct env e = setup_with(version_2);
    meddle(db_path(&e), version_3);
    for (int round = 0; round < 2; round++) { /* as it is brought up to date, and after that */
        env_open(&e);
        check_str(get_task(&e, alice, "t1")->folded, "{}"); /* cannot be read: stays as it is */
        check_str(get_task(&e, alice, "progress")->folded,
                  "{\"task\":{\"id\":\"progress\",\"contextId\":\"ctx\"," COMPLETED
                  ",\"history\":[" USER
                  "," AGENT("e", "{\"text\":\"Hello\"}", TYPED("TextMessageEndEvent")) "," AGENT(
                      "c", CALL, TYPED("ToolCallStartEvent")) "]}}");
        check_str(get_task(&e, alice, "parts")->folded,
                  "{\"task\":{\"id\":\"parts\",\"contextId\":\"ctx\"," COMPLETED
                  ",\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"It is.\"}]},{"
                  "\"artifactId\":\"aion:stream-delta\",\"parts\":[{\"text\":\"x\"}]}]}}");
        dgm_str failed = get_task(&e, alice, "failed")->folded;
        assert_non_null(strstr(failed.p, "\"parts\":[{\"text\":\"why\"}]"));
        assert_non_null(strstr(failed.p, "\"error\":\"why\""));
        check_str(get_task(&e, alice, "fine")->folded,
                  "{\"task\":{\"id\":\"fine\",\"contextId\":\"ctx\"," COMPLETED
                  ",\"history\":[" USER "]}}");
        dgm_store_close(e.store);
        e.store = NULL;
    }
    assert_int_equal(ask_number(db_path(&e), "SELECT max(version) FROM migrations"),
                     DGM_SCHEMA_VERSION);
    teardown(&e);
}

/* ---- plans ---------------------------------------------------------------------------------------------------- */

#define X(name, text) [DGM_SQL_##name] = text,
static const char *const statements[] = {DGM_SQL_STATEMENTS(X)};
#undef X

static void explain(const struct env *e, dgm_sql which, char *plan, size_t size)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    char sql[1024];
    assert_true((size_t)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", statements[which]) <
                sizeof sql);
    assert_int_equal(sqlite3_open(db_path(e), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    *plan = 0;
    while (sqlite3_step(st) == SQLITE_ROW) {
        size_t n = strlen(plan);
        snprintf(plan + n, size - n, "%s\n", (const char *)sqlite3_column_text(st, 3));
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
}

/* The history of a context costs as much as the rows that are used: no table is scanned, nothing is sorted. */
static void the_tasks_of_a_context_are_read_by_an_index(void **state)
{
    (void)state;
    struct env e = setup_disk();
    char plan[1024];
    explain(&e, DGM_SQL_CONTEXT_GET, plan, sizeof plan);
    if (!strstr(plan, "SEARCH t USING INDEX tasks_by_context (context=? AND tenant=? AND "
                      "principal=? AND agent=?)") ||
        !strstr(plan, "SEARCH f USING INTEGER PRIMARY KEY") || strstr(plan, "SCAN") ||
        strstr(plan, "B-TREE"))
        fail_msg("%s", plan);
    teardown(&e);
}

/* Whatever is done with one checkpoint, thread or run costs as much as the rows that are used. */
static void checkpoints_are_found_by_indexes(void **state)
{
    (void)state;
    static const dgm_sql all[] = {
        DGM_SQL_THREAD_FIND,         DGM_SQL_THREAD_OLD,        DGM_SQL_CHECKPOINT_FIND,
        DGM_SQL_CHECKPOINTS_TO_COPY, DGM_SQL_CHECKPOINTS_OF,    DGM_SQL_CHECKPOINTS_OLD,
        DGM_SQL_CHECKPOINTS_OF_RUN,  DGM_SQL_WRITE_FIND,        DGM_SQL_WRITES_DELETE,
        DGM_SQL_WRITES_TO_COPY,      DGM_SQL_PARTS_DELETE,      DGM_SQL_PARTS_COPY,
        DGM_SQL_VALUES_DELETE,       DGM_SQL_CHECKPOINTS_IN_NS, DGM_SQL_CHECKPOINTS_IN_THREAD,
        DGM_SQL_WRITES_GET,          DGM_SQL_PARTS_GET};
    struct env e = setup_disk();
    char plan[2000];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        explain(&e, all[i], plan, sizeof plan);
        for (char *scan = plan; (scan = strstr(scan, "SCAN")); scan++) {
            if (strncmp(scan, "SCAN o\n", 7) != 0) /* the numbers of one checkpoint's values */
                fail_msg("%s\n%s", statements[all[i]], plan);
        }
        if (all[i] == DGM_SQL_CHECKPOINTS_IN_NS && strstr(plan, "B-TREE"))
            fail_msg("%s\n%s", statements[all[i]], plan);
    }
    teardown(&e);
}

/* ---- notes ---------------------------------------------------------------------------------------------------- */

/* Puts many notes at once; the last answer ends the wait. */
static void make_notes(struct call *c)
{
    for (size_t i = 0; i < c->max; i++) {
        char name[24];
        snprintf(name, sizeof name, "n%zu", i);
        dgm_note n = {.owner = alice,
                      .kind = DGM_STR("k"),
                      .name = dgm_str_from(name),
                      .text = DGM_STR("text"),
                      .expires_ms = i % 10 ? 1 : 0};
        dgm_store_put_note(c->env->store, &n, i + 1 == c->max ? on_done : NULL, c);
    }
}

static void notes_that_expired_leave_the_database(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct call c = {.make = make_notes, .max = 1000};
    run_call(&e, &c);
    check_ok(c.code, c.err);
    assert_int_equal(ask_number(db_path(&e), "SELECT count(*) FROM notes"), 1000);
    assert_true(dgm_store_stats_of(e.store).commits < 1000); /* they share them */
    trim(&e, 0);
    assert_int_equal(ask_number(db_path(&e), "SELECT count(*) FROM notes"), 100);
    assert_int_equal(ask_number(db_path(&e), "SELECT count(*) FROM notes WHERE expires_ms>0"), 0);
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(tables_of_the_first_version_are_brought_up_to_date),
              dgm_test(tables_of_the_second_version_are_brought_up_to_date),
              dgm_test_holds(folded_tasks_of_the_third_version_are_brought_up_to_date, "R004-25"),
              dgm_test(the_tasks_of_a_context_are_read_by_an_index),
              dgm_test(checkpoints_are_found_by_indexes),
              dgm_test(notes_that_expired_leave_the_database))
