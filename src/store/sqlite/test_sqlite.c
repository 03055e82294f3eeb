/*
 * test_sqlite.c - what only a disk can do: be slow, crash, fill up, break, belong to somebody else.
 *
 * `test_sqlite child URL FD SEED` is the process that the crash test kills, `test_sqlite second URL` one
 * that comes second.
 */
#define _GNU_SOURCE /* unshare */
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/test_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* SQLite's own calls land here: what it syncs is counted. */
static _Atomic int n_syncs;
int fdatasync(int fd);
__attribute__((visibility("default"))) int fdatasync(int fd)
{
    n_syncs++;
    return fsync(fd);
}

static dgm_code try_open(const char *url, dgm_err *err)
{
    dgm_store *s = NULL;
    *err = (dgm_err){0};
    dgm_code code = dgm_store_open(url, &s, err);
    dgm_store_close(s);
    return code;
}

/* ---- commits --------------------------------------------------------------------------------------- */

struct flood {
    struct env *env;
    struct wait *answered;
    const char *prefix;
    size_t n, failed, crowded_out;
    struct wait *made; /* all were called; NULL: no caller waits for it */
    dgm_err err;
};

static void on_flooded(dgm_code code, const dgm_err *err, void *arg)
{
    struct flood *f = arg;
    if (code) {
        f->failed++;
        f->crowded_out += code == DGM_UNAVAILABLE && strstr(err->msg, "store_queue");
        f->err = *err;
    }
    arrive(f->answered);
}

static void make_flood(void *arg)
{
    struct flood *f = arg;
    for (size_t i = 0; i < f->n; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "%s%05zu", f->prefix, i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.sync = true;
        dgm_store_append(f->env->store, &m.batch, on_flooded, f);
        unmake(&m);
    }
}

static size_t flood(struct env *e, const char *prefix, size_t n, dgm_err *ret_err)
{
    struct wait answered = WAIT_FOR(n);
    struct flood f = {.env = e, .answered = &answered, .prefix = prefix, .n = n};
    dgm_loop_post(dgm_loops_at(e->loops, 0), make_flood, &f);
    wait_all(&answered);
    if (ret_err)
        *ret_err = f.err;
    return f.failed;
}

static size_t total(struct env *e)
{
    dgm_list_query q = {.owner = alice, .page_size = 1};
    return list(e, &q).total;
}

static void appends_share_a_commit(void **state)
{
    (void)state;
    struct env e = setup_disk();
    assert_int_equal(flood(&e, "t", 2000, NULL), 0);
    dgm_store_stats stats = dgm_store_stats_of(e.store);
    assert_int_equal(stats.appends, 2000);
    assert_true(stats.commits < 500);
    assert_int_equal(total(&e), 2000);
    teardown(&e);
}

/* Appends of one task that wait together are one row; a new turn begins a new one. */
static void many_in_one(void *arg)
{
    struct flood *f = arg;
    for (size_t i = 0; i < f->n; i++) {
        struct making m;
        make_deltas(&m, alice, "t", i, 1, i < f->n / 2 ? 1 : 2);
        dgm_store_append(f->env->store, &m.batch, on_flooded, f);
        unmake(&m);
    }
}

static void a_commit_is_one_log_row_per_task_and_turn(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct wait answered = WAIT_FOR(400);
    struct flood f = {.env = &e, .answered = &answered, .n = 400};
    dgm_loop_post(dgm_loops_at(e.loops, 0), many_in_one, &f);
    wait_all(&answered);
    assert_int_equal(f.failed, 0);
    dgm_store_stats stats = dgm_store_stats_of(e.store);
    assert_int_equal(count_records(&e, alice, "t"), 400);
    dgm_store_close(e.store);
    e.store = NULL;
    int64_t rows = ask_number(db_path(&e), "SELECT count(*) FROM log");
    assert_in_range(rows, 2, stats.commits + 1);
    teardown(&e);
}

static void a_sync_append_is_synced_before_its_answer(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct making m;
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK); /* first: the WAL's header */
    int before = n_syncs;
    for (uint64_t i = 1; i <= 20; i++)
        assert_int_equal(append_deltas(&e, alice, "t", i, 1, 1), DGM_OK);
    assert_int_equal(n_syncs, before);
    for (uint64_t i = 21; i <= 40; i++) {
        before = n_syncs;
        make_deltas(&m, alice, "t", i, 1, 1);
        m.batch.sync = i % 2;
        assert_int_equal(append(&e, &m.batch, NULL), DGM_OK);
        unmake(&m);
        assert_int_equal(n_syncs, before + (int)(i % 2));
    }
    teardown(&e);
}

static void make_put_checkpoint(struct call *c)
{
    dgm_bytes *bytes = dgm_bytes_copy(DGM_STR("state"));
    char id[24];
    snprintf(id, sizeof id, "%zu", c->max);
    dgm_checkpoint_change put = {.kind = DGM_CHECKPOINT_PUT,
                                 .row = {.thread = DGM_STR("t"),
                                         .id = dgm_str_from(id),
                                         .checkpoint = {DGM_STR("x"), bytes}}};
    dgm_store_change_checkpoints(c->env->store, DGM_STR("graph"), &put, on_done, c);
    dgm_bytes_unref(bytes);
}

static void a_change_of_checkpoints_is_on_the_disk_before_its_answer(void **state)
{
    (void)state;
    struct env e = setup_disk();
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    for (size_t i = 0; i < 5; i++) {
        int before = n_syncs;
        struct call c = {.make = make_put_checkpoint, .max = i};
        run_call(&e, &c);
        check_ok(c.code, c.err);
        assert_int_equal(n_syncs, before + 1);
    }
    teardown(&e);
}

/* An append that trips over the database itself fails alone. */
static void an_odd_append_does_not_fail_its_neighbours(void **state)
{
    (void)state;
    struct env e = setup_disk();
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    meddle(db_path(&e), "INSERT INTO log SELECT (n<<32)|2,1,x'00' FROM tasks");
    sqlite3 *db;
    struct wait answered = WAIT_FOR(51);
    struct flood odd = {.env = &e, .answered = &answered},
                 good = {.env = &e, .answered = &answered, .prefix = "g", .n = 50};
    struct making m;
    make_deltas(&m, alice, "t", 1, 1, 1);
    assert_int_equal(sqlite3_open(db_path(&e), &db), SQLITE_OK);
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL); /* until all of them wait */
    struct call c = {.make = make_append, .batch = &m.batch, .env = &e, .wait = WAIT_FOR(1)};
    dgm_loop_post(dgm_loops_at(e.loops, 0), make_flood, &good);
    dgm_loop_post(dgm_loops_at(e.loops, 0), make_call, &c);
    usleep(50000);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    wait_all(&c.wait);
    arrive(&answered);
    wait_all(&answered);
    check_code(c.code, DGM_INTERNAL, &c.err, "UNIQUE");
    assert_int_equal(good.failed + odd.failed, 0);
    assert_int_equal(get_task(&e, alice, "t")->last_seq, 1);
    assert_int_equal(total(&e), 51);
    unmake(&m);
    teardown(&e);
}

/* Appends that fit nowhere: they wait as others do, and cost the writer little. */
static void make_misfits(void *arg)
{
    struct flood *f = arg;
    struct making m;
    make_deltas(&m, alice, "none", 7, 1, 1);
    for (size_t i = 0; i < f->n; i++)
        dgm_store_append(f->env->store, &m.batch, on_flooded, f);
    unmake(&m);
    arrive(f->made);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct env e = setup_disk();
    sqlite3 *db;
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    assert_int_equal(sqlite3_open(db_path(&e), &db), SQLITE_OK);
    /* The writer waits for a lock so long and no longer: a machine that is too slow to fill the queue
     * meanwhile tries again. */
    struct flood f = {.env = &e, .n = DGM_MAX_STORE_QUEUE + 10000};
    for (int round = 0; round < 20 && !f.crowded_out; round++) {
        struct wait answered = WAIT_FOR(f.n), made = WAIT_FOR(1);
        f.answered = &answered;
        f.made = &made;
        f.failed = 0;
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        dgm_loop_post(dgm_loops_at(e.loops, 0), make_misfits, &f);
        wait_all(&made);
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        wait_all(&answered);
        assert_int_equal(f.failed, f.n);
    }
    assert_true(f.crowded_out > 0);
    sqlite3_close(db);
    assert_int_equal(total(&e), 1);
    assert_int_equal(append_deltas(&e, alice, "new", 0, 1, 1), DGM_OK);
    assert_true(dgm_store_is_healthy(e.store, NULL));
    teardown(&e);
}

static void everything_is_there_after_reopening(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct making m;
    dgm_turn_row turn = {.turn = 1,
                         .first_seq = 1,
                         .last_seq = 3,
                         .protocol = DGM_STR("ag-ui"),
                         .caller_id = DGM_STR("run")};
    dgm_taken taken = {.message_id = DGM_STR("m")};
    make_deltas(&m, alice, "t", 0, 3, 1);
    m.batch.turn = &turn;
    m.batch.taken = &taken;
    m.batch.row.folded = DGM_STR("{}");
    m.batch.row.folded_seq = 3;
    check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    reopen(&e);
    assert_int_equal(count_records(&e, alice, "t"), 3);
    assert_int_equal(get_task(&e, alice, "t")->folded_seq, 3);
    assert_int_equal(find_turn(&e, alice, "ag-ui", "run").turns->last_seq, 3);
    assert_non_null(find_dedupe(&e, alice, "ctx", "m"));
    assert_false(
        dgm_store_is_unknown(e.store, alice, DGM_STR("demo"), DGM_STR("ctx"), DGM_STR("m")));
    assert_int_equal(append_deltas(&e, alice, "t", 3, 1, 2), DGM_OK);
    struct stat st;
    assert_int_equal(stat(db_path(&e), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* only the owner may read it */
    teardown(&e);
}

/* ---- kill -9 --------------------------------------------------------------------------------------- */

/* A child keeps a few tasks growing and says over a pipe what was acknowledged. */
#define CRASH_TASKS 6

struct ack {
    uint32_t round, task;
    uint64_t last;
};

struct grower {
    struct env *env;
    struct making m;
    char id[32];
    struct ack ack;
    int fd;
    uint64_t random;
};

static void grow(void *arg);

static void on_grown(dgm_code code, const dgm_err *err, void *arg)
{
    struct grower *g = arg;
    unmake(&g->m);
    if (code) {
        fprintf(stderr, "child: %s\n", err->msg);
        _exit(1);
    }
    g->ack.last = g->m.batch.row.last_seq;
    if (write(g->fd, &g->ack, sizeof g->ack) != sizeof g->ack)
        _exit(0);
    grow(g);
}

static void grow(void *arg)
{
    struct grower *g = arg;
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    make_deltas(&g->m, alice, g->id, g->ack.last, 1 + (g->random >> 40) % 5, 1);
    g->m.batch.sync = (g->random >> 50) % 4 == 0;
    dgm_store_append(g->env->store, &g->m.batch, on_grown, g);
}

static _Noreturn void crash_child(const char *url, int fd, unsigned round)
{
    static struct grower growers[CRASH_TASKS];
    struct env e = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(e.url, sizeof e.url, "%s", url);
    env_loops(&e, 2);
    env_open(&e);
    for (uint32_t i = 0; i < CRASH_TASKS; i++) {
        growers[i] = (struct grower){
            .env = &e, .fd = fd, .ack = {.round = round, .task = i}, .random = round * 100 + i};
        snprintf(growers[i].id, sizeof growers[i].id, "t-%u-%u", round, i);
        dgm_loop_post(dgm_loops_at(e.loops, i % 2), grow, &growers[i]);
    }
    for (;;)
        pause();
}

static pid_t start_child(const char *url, int fd, unsigned round)
{
    char fd_text[16], round_text[16];
    snprintf(fd_text, sizeof fd_text, "%d", fd);
    snprintf(round_text, sizeof round_text, "%u", round);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_sqlite", "child", url, fd_text, round_text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    struct env e = {0};
    uint64_t last[ROUNDS][CRASH_TASKS] = {{0}};
    env_dir(&e);
    srand((unsigned)getpid());
    for (unsigned round = 0; round < ROUNDS; round++) {
        int fds[2], n_acks = 0, wanted = 1 + rand() % 120;
        struct ack ack;
        assert_int_equal(pipe(fds), 0);
        fcntl(fds[0], F_SETFD, FD_CLOEXEC);
        pid_t pid = start_child(e.url, fds[1], round);
        close(fds[1]);
        while (read(fds[0], &ack, sizeof ack) == sizeof ack) {
            assert_int_equal(ack.round, round);
            last[round][ack.task] = ack.last;
            if (++n_acks == wanted) {
                usleep((useconds_t)(rand() % 3000)); /* anywhere in a commit */
                kill(pid, SIGKILL);
            }
        }
        close(fds[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    env_loops(&e, 1);
    env_open(&e);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < CRASH_TASKS; i++) {
            char id[32];
            snprintf(id, sizeof id, "t-%u-%u", round, i);
            dgm_task_row *row = get_task(&e, alice, id);
            uint64_t stored = row ? row->last_seq : 0;
            assert_true(stored >= last[round][i]);
            struct call c = get_records(&e, alice, id, 1, 100000, SIZE_MAX);
            check_ok(c.code, c.err);
            assert_int_equal(c.n, stored);
            for (size_t k = 0; k < c.n; k++) {
                dgm_record *want = delta(k + 1, 1);
                check_same(dgm_record_bytes(c.records[k]), dgm_record_bytes(want));
                assert_int_equal(c.records[k]->head.seq, k + 1);
                dgm_record_unref(want);
            }
        }
    }
    teardown(&e);
}

/* ---- disks that fail ------------------------------------------------------------------------------- */

static bool is_healthy_within(struct env *e, int ms)
{
    for (int i = 0; i < ms; i += 20) {
        if (dgm_store_is_healthy(e->store, NULL))
            return true;
        usleep(20000);
    }
    return false;
}

/* Appends until it fails; returns how far it came. */
static uint64_t append_until_fault(struct env *e, const char *id, uint64_t last, dgm_err *ret_err)
{
    static char text[100000];
    memset(text, 'x', sizeof text);
    for (;; last++) {
        struct making m;
        make_deltas(&m, alice, id, last, 1, 1);
        dgm_record_unref(m.records[0]);
        m.records[0] = record_of(last + 1, 1, DGM_EVENT_MESSAGE, DGM_STATE_UNKNOWN,
                                 (dgm_str){text, sizeof text});
        m.batch.sync = last % 2;
        dgm_code code = append(e, &m.batch, ret_err);
        unmake(&m);
        if (code) {
            assert_int_equal(code, DGM_UNAVAILABLE);
            return last;
        }
        assert_true(last < 10000);
    }
}

static void check_fault(struct env *e, const char *part)
{
    dgm_err err = {0};
    uint64_t last = append_until_fault(e, "t", count_records(e, alice, "t"), &err);
    check_code(err.code, DGM_UNAVAILABLE, &err, part);
    assert_null(strstr(err.msg, e->dir)); /* callers see it */
    dgm_err why = {0};
    assert_false(dgm_store_is_healthy(e->store, &why));
    check_code(why.code, DGM_UNAVAILABLE, &why, part);
    /* what was acknowledged can be read meanwhile; what was not is not there */
    assert_int_equal(count_records(e, alice, "t"), last);
    assert_int_equal(get_task(e, alice, "t")->last_seq, last);
}

static void a_file_size_limit_is_named_and_survived(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct rlimit was, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    check_fault(&e, "ulimit -f");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    size_t n = count_records(&e, alice, "t");
    assert_int_equal(append_deltas(&e, alice, "t", n, 2, 1), DGM_OK);
    assert_true(dgm_store_is_healthy(e.store, NULL));
    reopen(&e);
    assert_int_equal(count_records(&e, alice, "t"), n + 2);
    teardown(&e);
}

/* A small disk that goes with this process; needs root. */
static bool mount_small(const char *dir)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", dir, "tmpfs", 0, "size=4m") == 0;
}

static void a_full_disk_is_named_and_survived(void **state)
{
    (void)state;
    struct env e = {0};
    char filler[128];
    env_dir(&e);
    if (!mount_small(e.dir)) {
        remove_dir(e.dir);
        skip();
    }
    snprintf(filler, sizeof filler, "%s/filler", e.dir);
    int fd = open(filler, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, 0), 0);
    char block[4096] = {0};
    for (int i = 0; i < 512; i++)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
    env_loops(&e, 1);
    env_open(&e);
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    check_fault(&e, "the disk is full");
    size_t n = count_records(&e, alice, "t");
    unlink(filler);
    assert_true(is_healthy_within(&e, 3000)); /* by itself */
    assert_int_equal(append_deltas(&e, alice, "t", n, 2, 1), DGM_OK);
    reopen(&e);
    assert_int_equal(count_records(&e, alice, "t"), n + 2);
    dgm_store_close(e.store);
    e.store = NULL;
    assert_int_equal(umount(e.dir), 0);
    teardown(&e);
}

static void a_disk_that_turns_read_only_is_named(void **state)
{
    (void)state;
    struct env e = {0};
    env_dir(&e);
    if (!mount_small(e.dir)) {
        remove_dir(e.dir);
        skip();
    }
    env_loops(&e, 1);
    env_open(&e);
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    dgm_store_close(e.store);
    e.store = NULL;
    dgm_err err;
    assert_int_equal(mount("tmpfs", e.dir, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
    check_code(try_open(e.url, &err), DGM_UNAVAILABLE, &err, "read-only");
    assert_int_equal(umount(e.dir), 0);
    teardown(&e);
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    struct env e = setup_disk();
    char url[256];
    dgm_err err;
    dgm_store_close(e.store);
    e.store = NULL;
    snprintf(url, sizeof url, "sqlite:%s/no/such/t.db", e.dir);
    check_code(try_open(url, &err), DGM_UNAVAILABLE, &err, "does not exist");
    snprintf(url, sizeof url, "sqlite:%s/t.db/t.db", e.dir);
    check_code(try_open(url, &err), DGM_UNAVAILABLE, &err, "does not exist");
    snprintf(url, sizeof url, "%s.dir", e.url);
    assert_int_equal(mkdir(url + strlen("sqlite:"), 0700), 0);
    check_code(try_open(url, &err), DGM_UNAVAILABLE, &err, "it is a directory");

    /* root may write anywhere: become somebody */
    bool root = geteuid() == 0;
    chmod(e.dir, 0755);
    chmod(db_path(&e), 0644);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    else
        chmod(e.dir, 0555);
    dgm_code code = try_open(e.url, &err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    check_code(code, DGM_UNAVAILABLE, &err, "permission denied");
    chmod(e.dir, 0755);
    /* the directory may be written, the file not */
    if (root)
        chmod(e.dir, 0777);
    chmod(db_path(&e), 0444);
    snprintf(url, sizeof url, "%s.lock", db_path(&e));
    unlink(url);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    code = try_open(e.url, &err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    check_code(code, DGM_UNAVAILABLE, &err, "read-only");
    teardown(&e);
}

static void too_many_open_files_are_named(void **state)
{
    (void)state;
    struct env e = setup_disk();
    struct rlimit was, small;
    dgm_err err;
    bool named = false;
    dgm_store_close(e.store);
    e.store = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    /* whichever file it is that cannot be opened any more */
    int free_fd = dup(0);
    close(free_fd);
    for (int room = 0; room < 9; room++) {
        small = was;
        small.rlim_cur = (rlim_t)free_fd + (rlim_t)room;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
        dgm_code code = try_open(e.url, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        if (code == DGM_OK)
            break;
        check_code(code, DGM_UNAVAILABLE, &err, "too many open files");
        named = true;
    }
    assert_true(named);
    check_code(try_open(e.url, &err), DGM_OK, &err, "");
    teardown(&e);
}

/* ---- databases that are broken --------------------------------------------------------------------- */

static void overwrite(const char *path, off_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    (void)state;
    struct env e = {0};
    dgm_err err;
    char bytes[8192];
    env_dir(&e);
    memset(bytes, 'z', sizeof bytes);
    overwrite(db_path(&e), 0, bytes, sizeof bytes);
    check_code(try_open(e.url, &err), DGM_UNAVAILABLE, &err, "is not an SQLite database");
    unlink(db_path(&e));
    meddle(db_path(&e), "CREATE TABLE cookies(x)");
    check_code(try_open(e.url, &err), DGM_UNAVAILABLE, &err, "of another program");
    unlink(db_path(&e));
    check_code(try_open(e.url, &err), DGM_OK, &err, "");
    meddle(db_path(&e), "INSERT INTO migrations VALUES(99,'2030','later')");
    check_code(try_open(e.url, &err), DGM_UNAVAILABLE, &err, "a newer dragoman");
    remove_dir(e.dir);
}

static void damage_is_seen_when_it_is_read(void **state)
{
    (void)state;
    struct env e = setup_disk();
    assert_int_equal(append_deltas(&e, alice, "flip", 0, 5, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "gap", 0, 5, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "gap", 5, 5, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "gap", 10, 5, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "state", 0, 5, 1), DGM_OK);
    assert_int_equal(append_deltas(&e, alice, "fine", 0, 5, 1), DGM_OK);
    meddle(db_path(&e),
           "UPDATE log SET bytes=CAST(substr(bytes,1,30)||'X'||substr(bytes,32) AS BLOB)"
           " WHERE at>>32=(SELECT n FROM tasks WHERE id='flip');"
           "DELETE FROM log WHERE at=((SELECT n FROM tasks WHERE id='gap')<<32)+6;"
           "UPDATE tasks SET state=77 WHERE id='state'");
    struct call c = get_records(&e, alice, "flip", 1, 10, 100000);
    check_code(c.code, DGM_INTERNAL, &c.err, "record 1 of task flip");
    c = get_records(&e, alice, "gap", 1, 100, 100000);
    check_code(c.code, DGM_INTERNAL, &c.err, "record 6 of task gap");
    c = (struct call){.make = make_get_task, .owner = alice, .a = DGM_STR("state")};
    run_call(&e, &c);
    check_code(c.code, DGM_INTERNAL, &c.err, "state 77");
    assert_int_equal(count_records(&e, alice, "fine"), 5);
    assert_true(dgm_store_is_healthy(e.store, NULL));
    teardown(&e);
}

static void a_damaged_page_is_an_error_and_no_crash(void **state)
{
    (void)state;
    struct env e = setup_disk();
    char junk[4096];
    for (int i = 0; i < 40; i++) {
        char id[24];
        snprintf(id, sizeof id, "t%d", i);
        assert_int_equal(append_deltas(&e, alice, id, 0, 40, 1), DGM_OK);
    }
    dgm_store_close(e.store);
    e.store = NULL;
    int64_t pages = ask_number(db_path(&e), "PRAGMA page_count");
    memset(junk, 0xA5, sizeof junk);
    for (int64_t page = 4; page < pages; page++) /* all but the schema */
        overwrite(db_path(&e), page * 4096, junk, sizeof junk);
    dgm_err err = {0};
    dgm_code code = dgm_store_open(e.url, &e.store, &err);
    if (code) {
        check_code(code, DGM_UNAVAILABLE, &err, "damaged");
    } else {
        struct call c = {.make = make_get_task, .owner = alice, .a = DGM_STR("t7")};
        run_call(&e, &c);
        check_code(c.code, DGM_INTERNAL, &c.err, "is damaged");
        struct making m;
        make_deltas(&m, alice, "t7", 40, 1, 1);
        check_code(append(&e, &m.batch, &err), DGM_UNAVAILABLE, &err, "is damaged");
        unmake(&m);
        assert_false(dgm_store_is_healthy(e.store, &err));
        check_code(err.code, DGM_UNAVAILABLE, &err, "dragoman db restore");
    }
    teardown(&e);
}

static void a_file_that_is_gone_or_replaced_is_not_written(void **state)
{
    (void)state;
    static const char *const ends[] = {"", "-wal"};
    for (size_t i = 0; i < 2; i++) {
        struct env e = setup_disk();
        char path[300], aside[300];
        dgm_err err = {0};
        struct making m;
        snprintf(path, sizeof path, "%s%s", db_path(&e), ends[i]);
        snprintf(aside, sizeof aside, "%s/aside", e.dir);
        assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
        assert_int_equal(rename(path, aside), 0);
        assert_false(dgm_store_is_healthy(e.store, &err)); /* without a write */
        check_code(err.code, DGM_UNAVAILABLE, &err, "deleted, moved or replaced");
        assert_null(strstr(err.msg, e.dir));
        make_deltas(&m, alice, "t", 1, 1, 1);
        check_code(append(&e, &m.batch, &err), DGM_UNAVAILABLE, &err, "deleted, moved");
        unmake(&m);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); /* another one in its place */
        assert_false(dgm_store_is_healthy(e.store, &err));
        assert_int_equal(rename(aside, path), 0);
        assert_true(is_healthy_within(&e, 3000)); /* by itself */
        assert_int_equal(append_deltas(&e, alice, "t", 1, 1, 1), DGM_OK);
        reopen(&e);
        assert_int_equal(count_records(&e, alice, "t"), 2);
        teardown(&e);
    }
}

static void a_lock_file_that_is_a_link_is_refused(void **state)
{
    (void)state;
    struct env e = {0};
    char victim[300], lock[300], text[8] = "";
    dgm_err err = {0};
    env_dir(&e);
    snprintf(victim, sizeof victim, "%s/victim", e.dir);
    snprintf(lock, sizeof lock, "%s.lock", db_path(&e));
    int fd = open(victim, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "victim", 6), 6);
    assert_int_equal(symlink(victim, lock), 0);
    check_code(dgm_store_open(e.url, &e.store, &err), DGM_UNAVAILABLE, &err, "symbolic link");
    assert_int_equal(pread(fd, text, sizeof text, 0), 6);
    assert_string_equal(text, "victim");
    close(fd);
    remove_dir(e.dir);
}

static void other_users_lose_an_existing_file(void **state)
{
    (void)state;
    static const mode_t modes[][2] = {{0666, 0660}, {0604, 0600}, {0640, 0640}, {0600, 0600}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct env e = setup_disk();
        struct stat st;
        char wal[300];
        assert_int_equal(chmod(db_path(&e), modes[i][0]), 0);
        reopen(&e);
        assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
        assert_int_equal(stat(db_path(&e), &st), 0);
        assert_int_equal(st.st_mode & 0777, modes[i][1]);
        snprintf(wal, sizeof wal, "%s-wal", db_path(&e));
        assert_int_equal(stat(wal, &st), 0);
        assert_int_equal(st.st_mode & 0777 & ~modes[i][1], 0);
        teardown(&e);
    }
}

/* ---- one server per database ----------------------------------------------------------------------- */

static int second_process(const char *url)
{
    dgm_err err;
    dgm_code code = try_open(url, &err);
    printf("%d %s", (int)code, err.msg);
    return 0;
}

static void a_second_process_gets_the_pid_of_the_holder(void **state)
{
    (void)state;
    struct env e = setup_disk();
    dgm_err err;
    char command[512], said[512] = "", want[64];
    snprintf(want, sizeof want, "in use by process %d", (int)getpid());
    check_code(try_open(e.url, &err), DGM_UNAVAILABLE, &err, want); /* the same process, too */
    /* the link itself: what it says is another path where the root is another */
    snprintf(command, sizeof command, "/proc/%d/exe second '%s'", (int)getpid(), e.url);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_true(fread(said, 1, sizeof said - 1, out) > 0);
    assert_int_equal(pclose(out), 0);
    assert_non_null(strstr(said, want));
    assert_int_equal(atoi(said), DGM_UNAVAILABLE);
    reopen(&e); /* the lock goes with its holder */
    teardown(&e);
}

/* ---- statements ---------------------------------------------------------------------------------------------- */

static void statements_are_planned_once(void **state)
{
    (void)state;
    struct env e = setup_disk();
    dgm_sql_writer w; /* knows all of them */
    dgm_err err = {0};
    int rc;
    check_ok(dgm_sql_writer_open(db_path(&e), NULL, &w, &err), err);
    for (dgm_sql which = 0; which < DGM_N_SQL; which++) {
        sqlite3_stmt *st = dgm_conn_sql(&w.conn, which, &rc);
        assert_non_null(st);
        for (int round = 0; sqlite3_stmt_readonly(st) && round < 3; round++) {
            for (int i = 1; i <= sqlite3_bind_parameter_count(st); i++)
                sqlite3_bind_int(st, i, round + i);
            (void)sqlite3_step(st);
            sqlite3_reset(st);
        }
        assert_int_equal(sqlite3_stmt_status(st, SQLITE_STMTSTATUS_REPREPARE, 0), 0);
    }
    dgm_sql_writer_close(&w);
    teardown(&e);
}

#define TESTS(X)                                                                                   \
    X(appends_share_a_commit)                                                                      \
    X(a_commit_is_one_log_row_per_task_and_turn)                                                   \
    X(a_sync_append_is_synced_before_its_answer)                                                   \
    X(a_change_of_checkpoints_is_on_the_disk_before_its_answer)                                    \
    X(an_odd_append_does_not_fail_its_neighbours)                                                  \
    X(a_full_queue_refuses)                                                                        \
    X(everything_is_there_after_reopening)                                                         \
    X(what_was_acknowledged_survives_kill_9)                                                       \
    X(a_file_size_limit_is_named_and_survived)                                                     \
    X(a_full_disk_is_named_and_survived)                                                           \
    X(a_disk_that_turns_read_only_is_named)                                                        \
    X(a_place_that_cannot_be_written_is_named)                                                     \
    X(too_many_open_files_are_named)                                                               \
    X(a_file_that_is_no_database_is_refused)                                                       \
    X(damage_is_seen_when_it_is_read)                                                              \
    X(a_damaged_page_is_an_error_and_no_crash)                                                     \
    X(a_file_that_is_gone_or_replaced_is_not_written)                                              \
    X(a_lock_file_that_is_a_link_is_refused)                                                       \
    X(other_users_lose_an_existing_file)                                                           \
    X(a_second_process_gets_the_pid_of_the_holder)                                                 \
    X(statements_are_planned_once)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define X(fn) dgm_test(fn),
        TESTS(X)
#undef X
    };
    if (argc == 5 && strcmp(argv[1], "child") == 0)
        crash_child(argv[2], atoi(argv[3]), (unsigned)atoi(argv[4]));
    if (argc == 3 && strcmp(argv[1], "second") == 0)
        return second_process(argv[2]);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
