/*
 * test_postgres.c - what only PostgreSQL can do to a store: its end by kill -9 and its return, lost connections, a second
 * server, passwords, conflicts.
 */
#define _GNU_SOURCE /* unshare */
#include "postgres_int.h"
#include "store/test_env.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

static struct env open_empty(void)
{
    static char driver[] = "postgres";
    void *which = driver;
    return setup(&which);
}

static PGconn *beside(const struct env *e)
{
    PGconn *c = PQconnectdb(e->url + strlen("postgres:"));
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    return c;
}

/* ---- a server of its own: it is killed ------------------------------------------------------------------ */

struct own {
    char host[160], folder[120];
};

static void own_server(struct own *o, const char *options)
{
    char command[600];
    snprintf(command, sizeof command, "%s/tests/postgres/server start %s --until %ld", DGM_ROOT,
             options, (long)getpid());
    first_line_of(command, o->host, sizeof o->host);
    snprintf(o->folder, sizeof o->folder, "%.*s", (int)strcspn(o->host + 5, " "), o->host + 5);
}

static void server_does(const struct own *o, const char *action)
{
    char command[600];
    snprintf(command, sizeof command, "%s/tests/postgres/server %s %s", DGM_ROOT, action,
             o->folder);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static struct env open_own(const struct own *o)
{
    struct env e = {0};
    env_loops(&e, 2);
    snprintf(e.url, sizeof e.url, "postgres:%s dbname=postgres", o->host);
    env_open(&e);
    return e;
}

/* ---- kill -9 in the middle of writes -------------------------------------------------------------------- */

#define CHAINS 16

/* One task: an append follows the answer of the one before. What fails is tried again, as it was. */
struct chain {
    struct writer *w;
    char id[24];
    uint64_t acknowledged, sending;
};

struct writer {
    struct env *env;
    struct wait wait;
    _Atomic bool stop;
    _Atomic size_t acknowledged, failures, lies;
    struct chain chains[CHAINS];
};

static void send_next(void *arg);

static void on_sent(dgm_code code, const dgm_err *err, void *arg)
{
    struct chain *c = arg;
    if (!code) {
        c->acknowledged = c->sending;
        c->w->acknowledged++;
    } else {
        c->w->failures++;
        if (code != DGM_UNAVAILABLE) { /* lost, or twice */
            print_error("%s: code %d: %s\n", c->id, (int)code, err->msg);
            c->w->lies++;
            arrive(&c->w->wait);
            return;
        }
    }
    if (c->w->stop)
        arrive(&c->w->wait);
    else
        dgm_loop_post(dgm_loop_current(), send_next, c);
}

static void send_next(void *arg)
{
    struct chain *c = arg;
    struct making m;
    make_deltas(&m, alice, c->id, c->acknowledged, 3, 1);
    c->sending = c->acknowledged + 3;
    m.batch.sync = c->acknowledged % 2;
    dgm_store_append(c->w->env->store, &m.batch, on_sent, c);
    unmake(&m);
}

static void start_writer(struct writer *w, struct env *e)
{
    *w = (struct writer){.env = e, .wait = WAIT_FOR(CHAINS)};
    for (size_t i = 0; i < CHAINS; i++) {
        w->chains[i] = (struct chain){.w = w};
        snprintf(w->chains[i].id, sizeof w->chains[i].id, "t%zu", i);
        dgm_loop_post(dgm_loops_at(e->loops, i % 2), send_next, &w->chains[i]);
    }
}

static void wait_for_progress(struct writer *w, size_t more)
{
    size_t want = w->acknowledged + more;
    for (int i = 0; w->acknowledged < want && !w->lies; i++) {
        assert_true(i < 120000);
        usleep(1000);
    }
}

static void wait_until_healthy(struct env *e, bool healthy)
{
    for (int i = 0; dgm_store_is_healthy(e->store, NULL) != healthy; i++) {
        assert_true(i < 120000);
        usleep(1000);
    }
}

static void nothing_acknowledged_is_lost_by_kill_9_of_the_server(void **state)
{
    struct own o;
    struct writer *w = dgm_xcalloc(1, sizeof *w);
    dgm_err why = {0};
    (void)state;
    own_server(&o, "--fsync");
    struct env e = open_own(&o);
    start_writer(w, &e);
    for (int round = 0; round < 4; round++) {
        wait_for_progress(w, 200);
        server_does(&o, "kill");
        wait_until_healthy(&e, false);
        assert_false(dgm_store_is_healthy(e.store, &why));
        assert_non_null(strstr(why.msg, "database"));
        assert_null(strstr(why.msg, o.folder)); /* callers read it */
        server_does(&o, "restart");
    }
    wait_for_progress(w, 200);
    w->stop = true;
    wait_all(&w->wait);
    assert_int_equal(w->lies, 0);
    wait_until_healthy(&e, true);
    reopen(&e);
    for (size_t i = 0; i < CHAINS; i++) {
        const struct chain *c = &w->chains[i];
        dgm_task_row *row = get_task(&e, alice, c->id);
        assert_int_equal(row->last_seq, c->acknowledged);
        assert_int_equal(count_records(&e, alice, c->id), c->acknowledged);
    }
    teardown(&e);
    free(w);
}

/* Without the server a call waits, but not for ever, and says why it failed. */
static void waiting_for_the_server_has_an_end(void **state)
{
    struct own o;
    (void)state;
    own_server(&o, "");
    struct env e = open_own(&o);
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK);
    server_does(&o, "kill");
    struct making m;
    dgm_err err = {0};
    make_deltas(&m, alice, "t", 1, 1, 1);
    check_code(append(&e, &m.batch, &err), DGM_UNAVAILABLE, &err, "cannot be reached");
    unmake(&m);
    struct call c = {.make = make_get_task, .owner = alice, .a = DGM_STR("t")};
    run_call(&e, &c);
    check_code(c.code, DGM_UNAVAILABLE, &c.err, "cannot be reached");
    assert_false(dgm_store_is_healthy(e.store, NULL));
    server_does(&o, "restart");
    wait_until_healthy(&e, true);
    assert_int_equal(append_deltas(&e, alice, "t", 1, 1, 1), DGM_OK);
    assert_int_equal(count_records(&e, alice, "t"), 2);
    server_does(&o, "kill");
    dgm_store_close(e.store); /* has an end, too */
    e.store = NULL;
    server_does(&o, "stop");
    e.url[0] = 0;
    teardown(&e);
}

/* ---- connections are cut -------------------------------------------------------------------------------- */

static void connections_that_are_cut_are_made_again(void **state)
{
    struct env e = open_empty();
    struct writer *w = dgm_xcalloc(1, sizeof *w);
    PGconn *c = beside(&e);
    (void)state;
    start_writer(w, &e);
    for (int round = 0; round < 20; round++) {
        wait_for_progress(w, 50);
        postgres_ask(c, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE datname=current_database() AND pid<>pg_backend_pid()");
        assert_int_equal(count_records(&e, bob, "none"), 0); /* reads come through as well */
    }
    w->stop = true;
    wait_all(&w->wait);
    assert_int_equal(w->lies, 0);
    assert_int_equal(w->failures, 0); /* each was sent again in time */
    for (size_t i = 0; i < CHAINS; i++)
        assert_int_equal(count_records(&e, alice, w->chains[i].id), w->chains[i].acknowledged);
    PQfinish(c);
    teardown(&e);
    free(w);
}

/* ---- secrets ----------------------------------------------------------------------------------------------- */

static void passwords_are_refused_and_never_shown(void **state)
{
    static const char *const urls[] = {
        "postgres:host=/nowhere password=hunter2",
        "postgres:postgres://me:hunter2@nowhere.invalid/db",
        "postgres://me:hunter2@nowhere.invalid/db",
        "postgres:host=/nowhere sslpassword=hunter2 sslkey=x",
        "postgres:host=/nowhere passwrod=hunter2",
        "postgres:hunter2",
        "postgresql://me:hunter2@nowhere.invalid/db",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        dgm_store *s = NULL;
        dgm_err err = {0};
        char shown[300];
        assert_int_equal(dgm_store_open(urls[i], &s, &err), DGM_BAD_PARAMS);
        assert_null(strstr(err.msg, "hunter2"));
        dgm_store_show(urls[i], shown, sizeof shown);
        assert_null(strstr(shown, "hunter2"));
    }
    char shown[300];
    dgm_store_show("postgres:host=db.example port=5433 dbname=d user=u options=-cx=y", shown,
                   sizeof shown);
    assert_string_equal(shown, "PostgreSQL host=db.example port=5433 dbname=d user=u");
    dgm_store *s = NULL;
    dgm_err err = {0};
    check_code(dgm_store_open("postgres:host=/nowhere dbname=d", &s, &err), DGM_UNAVAILABLE, &err,
               "is PostgreSQL running");
}

/* ---- tables --------------------------------------------------------------------------------------------------- */

static void a_newer_database_is_refused(void **state)
{
    struct env e = open_empty();
    PGconn *c = beside(&e);
    dgm_err err = {0};
    (void)state;
    dgm_store_close(e.store);
    e.store = NULL;
    postgres_ask(c, "INSERT INTO dragoman.migrations(version,about) VALUES(99,'later')");
    check_code(dgm_store_open(e.url, &e.store, &err), DGM_UNAVAILABLE, &err, "newer dragoman");
    postgres_ask(c, "DELETE FROM dragoman.migrations WHERE version=99");
    env_open(&e);
    assert_int_equal(postgres_ask(c, "SELECT count(*) FROM pg_inherits"
                                     " WHERE inhparent='dragoman.log'::regclass"),
                     16);
    PQfinish(c);
    teardown(&e);
}

/* Every primary key begins with the key of a partition. */
static void keys_begin_with_the_partition(void **state)
{
    struct env e = open_empty();
    PGconn *c = beside(&e);
    (void)state;
    assert_int_equal(
        postgres_ask(c, "SELECT count(*) FROM pg_index i JOIN pg_class r ON r.oid=i.indrelid"
                        " JOIN pg_attribute a ON a.attrelid=r.oid AND a.attnum=i.indkey[0]"
                        " WHERE i.indisprimary AND r.relnamespace='dragoman'::regnamespace"
                        " AND a.attname NOT IN ('tenant','thread_key')"
                        " AND r.relname NOT IN ('replicas','commands','answers','jobs',"
                        "'migrations')"),
        0);
    PQfinish(c);
    teardown(&e);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* Something odd in one append does not fail the others of its batch. */
struct mixed {
    struct wait *wait;
    dgm_code codes[3];
    size_t n;
};

static void on_mixed(dgm_code code, const dgm_err *err, void *arg)
{
    struct mixed *x = arg;
    (void)err;
    x->codes[x->n++] = code;
    if (x->n == 3)
        arrive(x->wait);
}

static void make_mixed(struct call *c)
{
    struct mixed *x = (struct mixed *)(uintptr_t)c->seq;
    char *long_id = dgm_xcalloc(1, 20001); /* no index takes it */
    for (uint64_t i = 0; i < 20000; i++)
        long_id[i] = (char)(1 + dgm_hash(1, &i, sizeof i) % 255);
    const char *const ids[] = {"first", long_id, "last"};
    for (size_t i = 0; i < 3; i++) {
        struct making m;
        make_deltas(&m, alice, ids[i], 0, 1, 1);
        dgm_store_append(c->env->store, &m.batch, on_mixed, x);
        unmake(&m);
    }
    free(long_id);
}

static void an_odd_append_fails_alone(void **state)
{
    struct env e = open_empty();
    struct wait wait = WAIT_FOR(1);
    struct mixed x = {.wait = &wait};
    struct call c = {.make = make_mixed, .env = &e, .seq = (uintptr_t)&x};
    (void)state;
    dgm_loop_post(dgm_loops_at(e.loops, 0), make_call, &c);
    wait_all(&wait);
    assert_int_equal(x.codes[0], DGM_OK);
    assert_int_equal(x.codes[1], DGM_INTERNAL);
    assert_int_equal(x.codes[2], DGM_OK);
    assert_int_equal(count_records(&e, alice, "first"), 1);
    assert_int_equal(count_records(&e, alice, "last"), 1);
    assert_true(dgm_store_is_healthy(e.store, NULL));
    teardown(&e);
}

/* What arrives in one turn of a loop is one commit. */
static void make_many_appends(struct call *c)
{
    struct mixed *x = (struct mixed *)(uintptr_t)c->seq;
    (void)x;
    for (size_t i = 0; i < 200; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "m%zu", i);
        make_deltas(&m, alice, id, 0, 2, 1);
        dgm_store_append(c->env->store, &m.batch, i == 199 ? on_done : NULL, c);
        unmake(&m);
    }
}

static void a_turn_of_a_loop_is_one_commit(void **state)
{
    struct env e = open_empty();
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t", 0, 1, 1), DGM_OK); /* it is connected */
    uint64_t before = dgm_store_stats_of(e.store).commits;
    struct call c = {.make = make_many_appends};
    run_call(&e, &c);
    check_ok(c.code, c.err);
    assert_int_equal(dgm_store_stats_of(e.store).commits, before + 1);
    PGconn *conn = beside(&e);
    assert_int_equal(postgres_ask(conn, "SELECT count(DISTINCT xmin::text) FROM dragoman.tasks"
                                        " WHERE id<>'t'"),
                     1);
    PQfinish(conn);
    teardown(&e);
}

/* ---- durability -------------------------------------------------------------------------------------------------- */

static void append_is_synced(struct env *e, PGconn *c, bool sync)
{
    struct making m;
    dgm_task_row *row = get_task(e, alice, "t");
    make_deltas(&m, alice, "t", row ? row->last_seq : 0, 1, 1);
    m.batch.sync = sync;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
    assert_int_equal(postgres_ask(c, "SELECT count(*) FROM seen WHERE setting='off'"), 0);
    postgres_ask(c, "DELETE FROM seen");
}

static void only_deltas_are_relaxed_and_only_if_that_is_set(void **state)
{
    struct env e = open_empty();
    char url[400];
    PGconn *c = beside(&e);
    (void)state;
    postgres_ask(
        c, "CREATE TABLE seen(setting text); CREATE FUNCTION see() RETURNS trigger AS $$"
           "BEGIN INSERT INTO seen VALUES(current_setting('synchronous_commit'));"
           "RETURN NULL; END$$ LANGUAGE plpgsql; CREATE TRIGGER seen AFTER INSERT"
           " OR DELETE OR UPDATE ON dragoman.tasks FOR EACH STATEMENT EXECUTE FUNCTION see()");
    postgres_ask(c, "DELETE FROM seen");
    append_is_synced(&e, c, true);
    append_is_synced(&e, c, false);
    dgm_store_close(e.store);
    snprintf(url, sizeof url, "%s", e.url);
    snprintf(e.url, sizeof e.url, "postgres:relaxed_deltas=on %.300s", url + strlen("postgres:"));
    env_open(&e);
    own_all_tasks(&e);
    postgres_ask(c, "DELETE FROM seen");
    for (int i = 0; i < 2; i++) {
        struct making m;
        make_deltas(&m, alice, "t", 2 + (uint64_t)i, 1, 1);
        m.batch.sync = i;
        check_ok(append(&e, &m.batch, NULL), (dgm_err){0});
        unmake(&m);
        /* both statements of the table: what inserts, what updates */
        assert_int_equal(postgres_ask(c, "SELECT count(*) FROM seen WHERE setting='off'"),
                         i ? 0 : 2);
        postgres_ask(c, "DELETE FROM seen");
    }
    postgres_ask(c, "DROP FUNCTION see() CASCADE; DROP TABLE seen");
    PQfinish(c);
    snprintf(e.url, sizeof e.url, "%s", url);
    teardown(&e);
}

/* ---- the clock of a lease --------------------------------------------------------------------------------------- */

#ifdef CLONE_NEWTIME

#define SUSPENDED_S 100000

static int run_suspended(void)
{
    static const char offset[] = "boottime 100000 0\n";
    int fd;
    if (unshare(CLONE_NEWTIME) != 0 || (fd = open("/proc/self/timens_offsets", O_WRONLY)) < 0 ||
        write(fd, offset, sizeof offset - 1) < 0)
        return 77;
    uint64_t before = dgm_pg_lease_now() - uv_hrtime() / 1000000;
    pid_t child = fork(); /* it is the first one with that clock */
    if (child == 0) {
        uint64_t now = dgm_pg_lease_now() - uv_hrtime() / 1000000;
        _exit(now - before < (uint64_t)SUSPENDED_S * 1000 - 1000);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/* A machine that was suspended: its monotonic clock has stopped meanwhile, that of the database has not. */
static void the_clock_of_a_lease_goes_on_in_a_suspended_machine(void **state)
{
    int status = 0;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(run_suspended());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("# no time namespace can be made here\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

#else

static void the_clock_of_a_lease_goes_on_in_a_suspended_machine(void **state)
{
    (void)state;
}

#endif

DGM_TEST_MAIN(dgm_test(the_clock_of_a_lease_goes_on_in_a_suspended_machine),
              dgm_test(only_deltas_are_relaxed_and_only_if_that_is_set),
              dgm_test(nothing_acknowledged_is_lost_by_kill_9_of_the_server),
              dgm_test(waiting_for_the_server_has_an_end),
              dgm_test(connections_that_are_cut_are_made_again),
              dgm_test(passwords_are_refused_and_never_shown),
              dgm_test(a_newer_database_is_refused), dgm_test(keys_begin_with_the_partition),
              dgm_test(an_odd_append_fails_alone), dgm_test(a_turn_of_a_loop_is_one_commit))
