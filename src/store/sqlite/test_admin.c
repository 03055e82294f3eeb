/* test_admin.c - what `dragoman db` does. */
#include "admin.h"
#include "store/test_env.h"
#include "json/json.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

static struct env setup_disk(void)
{
    char driver[] = "sqlite";
    void *state = driver;
    return setup(&state);
}

static void close_store(struct env *e)
{
    dgm_store_close(e->store);
    e->store = NULL;
}

static void meddle(const char *path, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

/* Three turns, the first one trimmed; another task with one that runs. */
static void fill(struct env *e)
{
    for (uint32_t t = 1; t <= 3; t++) {
        struct making m;
        dgm_turn_row turn = {
            .turn = t, .first_seq = 5 * t - 4, .last_seq = 5 * t, .protocol = DGM_STR("a2a")};
        make_deltas(&m, alice, "t1", 5 * (t - 1), 5, t);
        m.batch.turn = &turn;
        m.batch.row.folded = DGM_STR("{\"id\":\"t1\"}");
        m.batch.row.folded_seq = 5 * t;
        check_ok(append(e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
    }
    trim(e, T0 + 6);
    struct making m;
    dgm_turn_row turn = {.turn = 1, .first_seq = 1, .protocol = DGM_STR("a2a")};
    dgm_taken taken = {.message_id = DGM_STR("m")};
    dgm_str call = DGM_STR("c");
    make_deltas(&m, bob, "t2", 0, 3, 1);
    m.batch.turn = &turn;
    m.batch.taken = &taken;
    m.batch.open_calls = (dgm_strs){&call, 1};
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

static void make_change(struct call *c)
{
    dgm_bytes *large = dgm_bytes_new(5000);
    memset(large->p, 'x', large->n);
    dgm_checkpoint_write w = {.task = DGM_STR("k"), .value = {DGM_STR("t"), large}};
    dgm_checkpoint row = {.thread = DGM_STR("th"),
                          .id = DGM_STR("1"),
                          .checkpoint = {DGM_STR("t"), large},
                          .metadata = {DGM_STR("t"), NULL}};
    dgm_checkpoint_change put = {.kind = DGM_CHECKPOINT_PUT, .row = row};
    dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), &put, NULL, NULL);
    put.kind = DGM_CHECKPOINT_WRITES;
    put.row.writes = &w;
    put.row.n_writes = 1;
    dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), &put, on_done, c);
    dgm_bytes_unref(large);
}

/* A checkpoint of a graph, with a write. */
static void fill_checkpoints(struct env *e)
{
    struct call c = {.make = make_change};
    run_call(e, &c);
    check_ok(c.code, c.err);
}

struct said {
    size_t n;
    char text[2000];
};

static void on_fault(const char *fault, void *arg)
{
    struct said *s = arg;
    s->n++;
    if (strlen(s->text) + strlen(fault) + 2 < sizeof s->text) {
        strcat(s->text, fault);
        strcat(s->text, "\n");
    }
}

static dgm_db_counts check(const char *path, struct said *ret_said)
{
    dgm_db_counts counts = {0};
    dgm_err err = {0};
    *ret_said = (struct said){0};
    check_ok(dgm_db_check(path, on_fault, ret_said, &counts, &err), err);
    assert_int_equal(counts.faults, ret_said->n);
    return counts;
}

static void a_sound_database_has_no_faults(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct said said;
    fill(&e);
    fill_checkpoints(&e);
    dgm_db_counts counts = check(db_path(&e), &said); /* beside the store */
    check_str(dgm_str_from(said.text), "");
    assert_int_equal(counts.tasks, 2);
    assert_int_equal(counts.records, 13);
    assert_int_equal(counts.turns, 3);
    assert_int_equal(counts.checkpoints, 1);
    assert_int_equal(counts.checkpoint_bytes, 10000);
    assert_int_equal(append_deltas(&e, bob, "t2", 3, 1, 1), DGM_OK);
    trim(&e, T0 + 1000); /* all of the first task's; the number of its last turn stays */
    close_store(&e);
    counts = check(db_path(&e), &said);
    check_str(dgm_str_from(said.text), "");
    assert_int_equal(counts.records, 4);
    assert_int_equal(counts.turns, 2);
    teardown(&e);
}

static const struct harm {
    const char *sql, *said;
} harms[] = {
    {"DELETE FROM log WHERE at=(1<<32)+6", "turn 2 is of records 6 to 10, the log of 11 to 15"},
    {"UPDATE log SET at=at+1 WHERE at>>32=2", "starts at 2"},
    {"DELETE FROM log WHERE at=(1<<32)+11", "ends at 10, its row says 15"},
    {"DELETE FROM log WHERE at>>32=2", "its log is empty, it should end at 3"},
    {"UPDATE log SET bytes=zeroblob(50) WHERE at>>32=2", "is damaged"},
    {"UPDATE log SET n=2 WHERE at>>32=2", "holds 3 records, not 2"},
    {"UPDATE log SET at=at+1 WHERE at=(1<<32)+11", "after record 10 comes 12"},
    {"UPDATE tasks SET last_seq=16 WHERE n=1", "its row says 16"},
    {"UPDATE tasks SET state=12 WHERE n=1", "unknown state 12"},
    {"UPDATE turns SET last_seq=4 WHERE at=(2<<32)+1", "turn 1 is of records 1 to 4"},
    {"UPDATE turns SET first_seq=2 WHERE at=(1<<32)+2", "turn 2 is of records 2 to 10"},
    {"UPDATE folds SET seq=99", "is of record 99"},
    {"UPDATE folds SET body=x'7b'", "cannot be read"},
    {"DELETE FROM tasks WHERE n=2", "1 log rows belong to no task"},
    {"DELETE FROM tasks WHERE n=2", "1 turns belong to no task"},
    {"DELETE FROM tasks WHERE n=2", "1 calls belong to no task"},
    {"UPDATE turns SET digest=x'01' WHERE message='m'", "the digest of its message has 1 bytes"},
    {"DELETE FROM threads", "1 checkpoints belong to no thread"},
    {"DELETE FROM checkpoints", "1 writes belong to no checkpoint"},
    {"DELETE FROM checkpoints", "1 parts of values belong to no checkpoint"},
    {"DELETE FROM checkpoint_writes", "1 checkpoints do not have all their writes"},
    {"UPDATE checkpoint_values SET bytes=zeroblob(4999) WHERE at=256",
     "1 values of checkpoints are"},
    {"UPDATE checkpoints SET meta_size=1", "1 values of checkpoints are not complete"},
};

static void every_kind_of_damage_is_reported(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct said said;
    char copy[200];
    fill(&e);
    fill_checkpoints(&e);
    close_store(&e);
    snprintf(copy, sizeof copy, "%s/copy.db", e.dir);
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        dgm_err err = {0};
        unlink(copy);
        check_ok(dgm_db_backup(db_path(&e), copy, &err), err);
        meddle(copy, harms[i].sql);
        assert_true(check(copy, &said).faults > 0);
        if (!strstr(said.text, harms[i].said)) {
            print_error("%s\nsaid: %swanted: %s\n", harms[i].sql, said.text, harms[i].said);
            fail();
        }
    }
    /* pages */
    unlink(copy);
    dgm_err err = {0};
    check_ok(dgm_db_backup(db_path(&e), copy, &err), err);
    char junk[4096];
    memset(junk, 0x5A, sizeof junk);
    int fd = open(copy, O_RDWR);
    for (off_t page = 3; page < 12; page++)
        assert_int_equal(pwrite(fd, junk, sizeof junk, page * 4096), sizeof junk);
    close(fd);
    assert_true(check(copy, &said).faults > 0);
    assert_non_null(strstr(said.text, "malformed"));
    teardown(&e);
}

static void a_backup_is_made_beside_a_running_store(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct said said;
    dgm_err err = {0};
    char to[200], none[200];
    struct stat st;
    fill(&e);
    snprintf(to, sizeof to, "%s/backup.db", e.dir);
    check_ok(dgm_db_backup(db_path(&e), to, &err), err);
    assert_int_equal(append_deltas(&e, bob, "t2", 3, 5, 1), DGM_OK); /* not in the backup */
    assert_int_equal(check(to, &said).records, 13);
    assert_int_equal(said.n, 0);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    check_code(dgm_db_backup(db_path(&e), to, &err), DGM_BAD_PARAMS, &err, "exists already");
    snprintf(none, sizeof none, "%s/none.db", e.dir);
    check_code(dgm_db_backup(none, to, &err), DGM_BAD_PARAMS, &err, "database not found");
    assert_int_not_equal(access(none, F_OK), 0);
    snprintf(none, sizeof none, "%s/no/backup.db", e.dir);
    check_code(dgm_db_backup(db_path(&e), none, &err), DGM_UNAVAILABLE, &err, "does not exist");

    /* back to it: not while somebody has it */
    check_code(dgm_db_restore(db_path(&e), to, &err), DGM_UNAVAILABLE, &err, "in use by process");
    close_store(&e);
    check_code(dgm_db_restore(db_path(&e), db_path(&e), &err), DGM_BAD_PARAMS, &err, "itself");
    check_ok(dgm_db_restore(db_path(&e), to, &err), err);
    env_open(&e);
    assert_int_equal(count_records(&e, bob, "t2"), 3);
    assert_int_equal(append_deltas(&e, bob, "t2", 3, 1, 1), DGM_OK);
    snprintf(none, sizeof none, "%s.before-restore", db_path(&e));
    assert_int_equal(check(none, &said).records, 18); /* what was there is not lost */
    teardown(&e);
}

static void a_damaged_backup_is_not_restored(void **state)
{
    (void)state;
    struct env e = setup_disk();
    dgm_err err = {0};
    char to[200], junk[4096];
    fill(&e);
    close_store(&e);
    snprintf(to, sizeof to, "%s/backup.db", e.dir);
    check_ok(dgm_db_backup(db_path(&e), to, &err), err);
    memset(junk, 0x5A, sizeof junk);
    int fd = open(to, O_RDWR);
    for (off_t page = 3; page < 12; page++)
        assert_int_equal(pwrite(fd, junk, sizeof junk, page * 4096), sizeof junk);
    close(fd);
    check_code(dgm_db_restore(db_path(&e), to, &err), DGM_UNAVAILABLE, &err, "damaged");
    unlink(to);
    meddle(to, "CREATE TABLE cookies(x)");
    check_code(dgm_db_restore(db_path(&e), to, &err), DGM_UNAVAILABLE, &err, "another program");
    env_open(&e); /* the old one is as it was */
    assert_int_equal(count_records(&e, bob, "t2"), 3);
    teardown(&e);
}

static void vacuum_gives_pages_back(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct said said;
    dgm_err err = {0};
    int64_t before = 0, after = 0;
    fill(&e);
    check_code(dgm_db_vacuum(db_path(&e), &before, &after, &err), DGM_UNAVAILABLE, &err,
               "in use by process");
    close_store(&e);
    meddle(db_path(&e), "CREATE TABLE x(y); INSERT INTO x VALUES(zeroblob(500000)); DROP TABLE x");
    check_ok(dgm_db_vacuum(db_path(&e), &before, &after, &err), err);
    assert_true(after < before - 400000);
    assert_int_equal(check(db_path(&e), &said).records, 13);
    assert_int_equal(said.n, 0);
    env_open(&e);
    assert_int_equal(append_deltas(&e, bob, "t2", 3, 1, 1), DGM_OK);
    teardown(&e);
}

struct lines {
    size_t n, stop_at;
    char first[1000], last[1000];
};

static dgm_code on_line(dgm_str line, void *arg, dgm_err *err)
{
    struct lines *l = arg;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *root;
    if (l->n == l->stop_at)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the pipe is gone");
    check_ok(dgm_json_read(a, line, SIZE_MAX, "output_bytes", &root, err), *err);
    snprintf(l->n++ ? l->last : l->first, sizeof l->last, "%.*s", DGM_P(line));
    return DGM_OK;
}

static void export_is_one_line_per_record(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct lines lines = {.stop_at = SIZE_MAX};
    dgm_err err = {0};
    fill(&e);
    check_ok(dgm_db_export(db_path(&e), on_line, &lines, &err), err); /* beside the store */
    assert_int_equal(lines.n, 13);
    check_str(dgm_str_from(lines.first),
              "{\"tenant\":\"acme\",\"principal\":\"alice\",\"task\":\"t1\",\"context\":\"ctx\","
              "\"agent\":\"demo\",\"seq\":6,\"turn\":2,\"time\":\"2026-01-02T03:04:05.006Z\","
              "\"event\":{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{"
              "\"artifactId\":\"a\",\"parts\":[{\"text\":\"6\"}]},\"append\":true}}}");
    assert_non_null(strstr(lines.last, "\"principal\":\"bob\",\"task\":\"t2\""));
    assert_non_null(strstr(lines.last, "\"seq\":3,\"turn\":1"));
    lines = (struct lines){.stop_at = 5};
    check_code(dgm_db_export(db_path(&e), on_line, &lines, &err), DGM_UNAVAILABLE, &err, "pipe");
    meddle(db_path(&e), "UPDATE log SET bytes=x'01' WHERE at>>32=2");
    lines = (struct lines){.stop_at = SIZE_MAX};
    check_code(dgm_db_export(db_path(&e), on_line, &lines, &err), DGM_INTERNAL, &err,
               "record 1 of task t2");
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(a_sound_database_has_no_faults), dgm_test(every_kind_of_damage_is_reported),
              dgm_test(a_backup_is_made_beside_a_running_store),
              dgm_test(a_damaged_backup_is_not_restored), dgm_test(vacuum_gives_pages_back),
              dgm_test(export_is_one_line_per_record))
