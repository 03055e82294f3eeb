/* test_store_servers.c - what the servers of one store do with each other: takeover, wake-ups, commands. */
#include "test_store_share.h"

#include <sys/wait.h>

/* ---- takeover -------------------------------------------------------------------------------------------- */

static void test_a_dead_servers_tasks_are_taken(void **state)
{
    struct server s[3];
    dgm_err err = {0};
    char id[20];
    enum { N = 60 };
    servers_open(s, 3, state);
    server_handle(&s[0]);
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "t%d", i);
        append_ok(&s[0], id, 0, 1);
    }
    append_ok(&s[0], "rests", 0, 1);
    check_ok(append_fenced(&s[0], "rests", 2, 1, DGM_STATE_INPUT_REQUIRED, false, &err), err);
    int64_t was = id_of(&s[0]);
    server_handle(&s[1]);
    server_handle(&s[2]);
    declare_dead(&s[0].env);
    wait_taken(s, 3, N);
    uint64_t taken = 0;
    for (int k = 1; k < 3; k++) {
        for (size_t i = 0; i < s[k].n_orphans; i++) {
            check_lease(&s[k].orphans[i], DGM_LEASE_OURS, id_of(&s[k]), 2);
            assert_int_equal(s[k].orphans[i].last_seq, 2);
            snprintf(id, sizeof id, "%.*s", DGM_P(s[k].orphans[i].id));
            append_lost(&s[0], id, 2, 1);
            append_ok(&s[k], id, 2, 2);
        }
        taken += s[k].n_orphans;
    }
    assert_int_equal(taken, N);
    check_lease(acquire(&s[2], "rests"), DGM_LEASE_OURS, id_of(&s[2]), 2);
    revive(&s[0].env);
    wait_seen(&s[0], &s[0].n_renewed, 1);
    append_lost(&s[0], "t1", 4, 1);
    append_ok(&s[0], "new", 0, 1);
    assert_int_not_equal(id_of(&s[0]), was);
    check_lease(get_task(&s[1].env, alice, "new"), DGM_LEASE_OTHER, id_of(&s[0]), 1);
    servers_close(s, 3);
}

static void test_a_released_task_that_works_is_taken(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    server_handle(&s[1]);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    check_lost(release(&s[0], "t1", 2, &err), &err);
    check_lost(release(&s[1], "t1", 1, &err), &err);
    check_ok(release(&s[0], "t1", 1, &err), err);
    wait_seen(&s[1], &s[1].n_orphans, 1);
    check_lease(&s[1].orphans[0], DGM_LEASE_OURS, id_of(&s[1]), 2);
    assert_true(dgm_str_eq(s[1].orphans[0].id, DGM_STR("t1")));
    append_lost(&s[0], "t1", 2, 1);
    append_ok(&s[1], "t1", 2, 2);
    append_ok(&s[0], "t2", 2, 1);
    servers_close(s, 2);
}

static void test_a_closed_servers_tasks_are_taken(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    server_handle(&s[1]);
    append_ok(&s[0], "t1", 0, 1);
    dgm_store_close(s[0].env.store);
    s[0].env.store = NULL;
    wait_seen(&s[1], &s[1].n_orphans, 1);
    append_ok(&s[1], "t1", 2, 2);
    servers_close(s, 2);
}

/* Its lease goes on for an hour, but its process is gone: that is seen at once on the same machine. */
static void test_a_server_without_a_process_is_dead(void **state)
{
    struct server s[2];
    char sql[400];
    servers_open(s, 2, state);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    PGconn *c = PQconnectdb(strstr(s[0].env.url, "host="));
    snprintf(sql, sizeof sql,
             "WITH r AS (INSERT INTO dragoman.replicas(id,name,until,boot,namespace,pid,started)"
             " SELECT 1000000,'',now()+interval '1 hour',boot,namespace,%ld,started"
             " FROM dragoman.replicas WHERE id=%lld) UPDATE dragoman.tasks SET owner=1000000"
             " WHERE id='t1'",
             (long)gone, (long long)id_of(&s[0]));
    postgres_ask(c, sql);
    server_handle(&s[1]);
    wait_seen(&s[1], &s[1].n_orphans, 1);
    assert_true(dgm_str_eq(s[1].orphans[0].id, DGM_STR("t1")));
    check_lease(&s[1].orphans[0], DGM_LEASE_OURS, id_of(&s[1]), 2);
    append_ok(&s[0], "t2", 2, 1); /* this process is there */
    PQfinish(c);
    servers_close(s, 2);
}

/* A server that starts finds what others left. */
static void test_orphans_of_before_are_found(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    check_ok(release(&s[0], "t1", 1, &err), err);
    server_handle(&s[1]);
    wait_seen(&s[1], &s[1].n_searched, 1);
    assert_int_equal(s[1].n_orphans, 1);
    assert_true(dgm_str_eq(s[1].orphans[0].id, DGM_STR("t1")));
    servers_close(s, 2);
}

/* A server that was cut off for long and then killed: its append was stored when no row of it was left. */
static void test_orphans_of_a_forgotten_server_are_found(void **state)
{
    struct server s[2];
    servers_open(s, 1, state);
    append_ok(&s[0], "t1", 0, 1);
    PGconn *c = PQconnectdb(strstr(s[0].env.url, "host="));
    postgres_ask(c, "UPDATE dragoman.tasks SET owner=12345");
    s[1] = (struct server){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    env_loops(&s[1].env, 2);
    memcpy(s[1].env.url, s[0].env.url, sizeof s[1].env.url);
    env_open_shared(&s[1].env, *state);
    server_handle(&s[1]);
    wait_seen(&s[1], &s[1].n_orphans, 1);
    check_lease(&s[1].orphans[0], DGM_LEASE_OURS, id_of(&s[1]), 2);
    PQfinish(c);
    servers_close(s, 2);
}

/* A statement of a dead server that is still on its way may lock one. It is not left until the next beat: that is 20 minutes later, here. */
static void test_a_locked_orphan_is_taken_soon(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    check_ok(release(&s[0], "t1", 1, &err), err);
    check_ok(release(&s[0], "t2", 1, &err), err);
    PGconn *c = PQconnectdb(strstr(s[0].env.url, "host="));
    postgres_ask(c, "BEGIN");
    postgres_ask(c, "SELECT 1 FROM dragoman.tasks WHERE id='t1' FOR UPDATE");
    server_handle(&s[1]);
    wait_seen(&s[1], &s[1].n_orphans, 1);
    assert_true(dgm_str_eq(s[1].orphans[0].id, DGM_STR("t2")));
    postgres_ask(c, "ROLLBACK");
    wait_seen(&s[1], &s[1].n_orphans, 2);
    assert_true(dgm_str_eq(s[1].orphans[1].id, DGM_STR("t1")));
    PQfinish(c);
    servers_close(s, 2);
}

/* ---- what a server takes ----------------------------------------------------------------------------------- */

static void release_ok(struct server *s, const char *id, uint64_t fence)
{
    dgm_err err = {0};
    check_ok(release(s, id, fence, &err), err);
}

/* One without the agent could only give it back. One that drains has no agents. */
static void test_a_server_takes_tasks_of_its_agents(void **state)
{
    struct server s[3];
    char id[20];
    enum { N = 20 };
    servers_open(s, 3, state);
    server_handle(&s[1]);
    server_set_agents(&s[1], "other");
    server_handle(&s[2]);
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "t%d", i);
        append_ok(&s[0], id, 0, 1);
        release_ok(&s[0], id, 1);
    }
    wait_seen(&s[2], &s[2].n_orphans, N);
    assert_int_equal(s[1].n_orphans, 0);
    server_set_agents(&s[2], "");
    release_ok(&s[2], "t0", 2);
    release_ok(&s[2], "t1", 2);
    server_set_agents(&s[1], "demo");
    wait_seen(&s[1], &s[1].n_orphans, 2);
    assert_int_equal(s[2].n_orphans, N);
    servers_close(s, 3);
}

/* It is taken and given back once, not all the time. The next beat is 20 minutes later, here. */
static void test_a_task_that_cannot_be_loaded_is_not_taken_again_at_once(void **state)
{
    struct server s[3];
    char id[20];
    enum { N = 10 };
    servers_open(s, 3, state);
    server_handle(&s[1]);
    s[1].fails = "bad";
    append_ok(&s[0], "bad", 0, 1);
    release_ok(&s[0], "bad", 1);
    wait_seen(&s[1], &s[1].n_failed, 1);
    for (int i = 0; i < N; i++) { /* each of these makes it search for tasks */
        snprintf(id, sizeof id, "t%d", i);
        append_ok(&s[0], id, 0, 1);
        release_ok(&s[0], id, 1);
        wait_seen(&s[1], &s[1].n_orphans, (size_t)i + 2);
    }
    assert_int_equal(s[1].n_orphans, N + 1);
    assert_int_equal(s[1].n_failed, 1);
    server_handle(&s[2]); /* it has no owner: another server may be able to */
    wait_seen(&s[2], &s[2].n_orphans, 1);
    assert_true(dgm_str_eq(s[2].orphans[0].id, DGM_STR("bad")));
    servers_close(s, 3);
}

static void cut_connections(PGconn *c)
{
    postgres_ask(c, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname=current_database() AND pid<>pg_backend_pid()");
}

#define N_COPIES 1200 /* some pages */

/* The answer of a takeover, or of an acquire, may have been lost with the connection. */
static void test_owned_tasks_are_reported_after_a_lost_connection(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    append_ok(&s[0], "t", 0, 1);
    append_ok(&s[1], "of another server", 0, 1);
    append_ok(&s[0], "rests", 0, 1);
    check_ok(append_fenced(&s[0], "rests", 2, 1, DGM_STATE_INPUT_REQUIRED, false, &err), err);
    server_handle(&s[0]);
    PGconn *c = PQconnectdb(strstr(s[0].env.url, "host="));
    postgres_ask(c, "INSERT INTO dragoman.tasks(tenant,principal,id,context,agent,state,created_ms,"
                    "status_ms,last_seq,record_ms,tail,folded_seq,owner,fence) SELECT t.tenant,"
                    "t.principal,convert_to('t'||i,'UTF8'),t.context,t.agent,t.state,t.created_ms,"
                    "t.status_ms,t.last_seq,t.record_ms,t.tail,t.folded_seq,t.owner,1 FROM"
                    " dragoman.tasks t, generate_series(1,1200) i"
                    " WHERE t.id='t'");
    size_t before = s[0].n_owned;
    cut_connections(c);
    wait_seen(&s[0], &s[0].n_owned, before + N_COPIES + 1);
    assert_int_equal(s[0].n_odd, 0); /* all of them are t..., with the fence 1 */
    assert_int_equal(s[0].n_orphans, 0);
    postgres_ask(c, "DELETE FROM dragoman.tasks WHERE id NOT IN ('t','rests','of another server')");
    PQfinish(c);
    servers_close(s, 2);
}

static void test_owned_tasks_are_reported_now_and_then(void **state)
{
    struct server s[1];
    servers_open(s, 1, state);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    server_handle(&s[0]);
    wait_seen(&s[0], &s[0].n_owned, 4);
    servers_close(s, 1);
}

/* ---- a time without the database --------------------------------------------------------------------------- */

static long until_of(PGconn *c, int64_t id)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT (extract(epoch FROM until-now())*1000)::bigint FROM dragoman.replicas"
             " WHERE id=%lld AND NOT dead",
             (long long)id);
    return postgres_ask(c, sql);
}

/* All rows are old then. The first server that comes back does not declare the others dead. */
static void test_the_first_server_after_an_outage_buries_no_other(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    server_handle(&s[0]);
    server_handle(&s[1]);
    append_ok(&s[1], "t1", 0, 1);
    int64_t first = id_of(&s[0]), second = id_of(&s[1]);
    PGconn *c = PQconnectdb(strstr(s[0].env.url, "host="));
    for (int i = 0; i < 2; i++)
        ((pg_store *)s[i].env.store)->share.is_paused = true;
    while (until_of(c, first) >= 0 || until_of(c, second) >= 0)
        usleep(10000);
    ((pg_store *)s[0].env.store)->share.is_paused = false;
    dgm_pg_share_wake((pg_store *)s[0].env.store);
    while (until_of(c, first) <= 0)
        usleep(1000);
    for (long last = until_of(c, first), now; (now = until_of(c, first)) <= last; last = now)
        usleep(1000); /* the next beat: the one before is over, with all that it does */
    ((pg_store *)s[1].env.store)->share.is_paused = false;
    dgm_pg_share_wake((pg_store *)s[1].env.store);
    while (until_of(c, second) <= 0) /* of a dead one this is 0 */
        assert_int_equal(id_of(&s[1]), second);
    append_ok(&s[1], "t1", 2, 1);
    assert_int_equal(s[0].n_orphans, 0);
    PQfinish(c);
    servers_close(s, 2);
}

static void test_ids_of_servers_are_random(void **state)
{
    struct server s[3];
    servers_open(s, 3, state);
    for (int i = 0; i < 3; i++)
        assert_true(id_of(&s[i]) > (int64_t)1 << 32); /* not so once in 700 million times */
    servers_close(s, 3);
}

/* ---- following ------------------------------------------------------------------------------------------- */

static size_t count_grown(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->n_grown;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void test_who_follows_is_woken(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    bool polls = strcmp(*state, "postgres-poll") == 0;
    server_handle(&s[0]);
    server_handle(&s[1]);
    append_ok(&s[0], "t1", 0, 1);
    append_ok(&s[0], "t2", 0, 1);
    assert_false(dgm_store_is_followed(s[0].env.store, alice, DGM_STR("t1")));
    follow(&s[1], "t1", id_of(&s[0]));
    for (uint64_t last = 2; last < 42; last += 2) {
        while (!polls && !dgm_store_is_followed(s[0].env.store, alice, DGM_STR("t1")))
            usleep(1000);
        size_t before = count_grown(&s[1]);
        append_ok(&s[0], "t2", last, 1);
        append_ok(&s[0], "t1", last, 1);
        wait_seen(&s[1], &s[1].n_grown, before + 1);
        assert_string_equal(s[1].grown[before], "t1");
    }
    assert_false(dgm_store_is_followed(s[0].env.store, bob, DGM_STR("t1")));
    assert_int_equal(count_grown(&s[0]), 0);
    /* the owner changes: that is seen as well */
    size_t before = count_grown(&s[1]);
    check_ok(append_fenced(&s[0], "t1", 42, 1, DGM_STATE_INPUT_REQUIRED, true, &err), err);
    wait_seen(&s[1], &s[1].n_grown, before + 1);
    servers_close(s, 2);
}

/* ---- commands -------------------------------------------------------------------------------------------- */

static void test_commands_are_answered(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    server_handle(&s[0]);
    server_handle(&s[1]);
    for (size_t i = 1; i <= 10; i++) {
        struct command_call c = command(&s[1], id_of(&s[0]), "CANCEL", 20000);
        check_ok(c.call.code, c.call.err);
        assert_string_equal(c.body, "CANCEL of t1: {\"x\":1}");
        wait_seen(&s[0], &s[0].n_commands, i);
    }
    assert_int_equal(s[0].command.from, id_of(&s[1]));
    struct command_call failed = command(&s[1], id_of(&s[0]), "FAIL", 20000);
    check_code(failed.call.code, DGM_TASK_NOT_CANCELABLE, &failed.call.err, "task t1 has ended");
    struct command_call none = {
        .call = {.make = make_command}, .kind = "GONE", .to = id_of(&s[0]), .no_answer = true};
    run_call(&s[1].env, &none.call);
    wait_seen(&s[0], &s[0].n_commands, 12);
    struct command_call own = command(&s[0], id_of(&s[0]), "SEND", 20000);
    check_ok(own.call.code, own.call.err);
    servers_close(s, 2);
}

static void test_commands_without_an_answer_end(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    server_handle(&s[0]);
    server_handle(&s[1]);
    struct command_call unknown = command(&s[1], id_of(&s[0]) + 1000, "CANCEL", 60000);
    check_code(unknown.call.code, DGM_UNAVAILABLE, &unknown.call.err, "owns this task has ended");
    s[0].is_silent = true;
    struct command_call late = command(&s[1], id_of(&s[0]), "CANCEL", 300);
    check_code(late.call.code, DGM_UNAVAILABLE, &late.call.err, "did not answer within 300 ms");
    wait_seen(&s[0], &s[0].n_commands, 1);
    servers_close(s, 2);
}

struct waiting_command {
    struct server *from;
    int64_t to;
    struct command_call result;
};

static void *wait_for_answer(void *arg)
{
    struct waiting_command *w = arg;
    w->result = command(w->from, w->to, "CANCEL", 60000);
    return NULL;
}

static void test_commands_of_a_dead_server_end(void **state)
{
    struct server s[2];
    pthread_t thread;
    servers_open(s, 2, state);
    server_handle(&s[0]);
    server_handle(&s[1]);
    s[0].is_silent = true;
    struct waiting_command w = {.from = &s[1], .to = id_of(&s[0])};
    assert_int_equal(pthread_create(&thread, NULL, wait_for_answer, &w), 0);
    wait_seen(&s[0], &s[0].n_commands, 1);
    declare_dead(&s[0].env);
    pthread_join(thread, NULL);
    check_code(w.result.call.code, DGM_UNAVAILABLE, &w.result.call.err, "owns this task has ended");
    revive(&s[0].env);
    servers_close(s, 2);
}

/* ---- many commands ----------------------------------------------------------------------------------------- */

/* What statements do, in their order. */
static PGconn *watch(struct server *s, const char *sql)
{
    PGconn *c = PQconnectdb(strstr(s->env.url, "host="));
    postgres_ask(c, "SET client_min_messages=warning");
    postgres_ask(c, "CREATE TABLE seen(at bigserial, kind text, n bigint, bytes bigint)");
    postgres_ask(c, sql);
    return c;
}

static void watch_end(PGconn *c)
{
    postgres_ask(c, "DROP FUNCTION see() CASCADE; DROP TABLE seen");
    PQfinish(c);
}

static void test_commands_are_taken_in_pages(void **state)
{
    struct server s[1];
    char sql[400];
    servers_open(s, 1, state);
    s[0].is_silent = true;
    PGconn *c = watch(
        &s[0], "CREATE FUNCTION see() RETURNS trigger AS $$BEGIN INSERT INTO"
               " seen(kind,n,bytes) SELECT 'd',count(*),sum(octet_length(body)) FROM old_rows;"
               "RETURN NULL; END$$ LANGUAGE plpgsql; CREATE TRIGGER seen AFTER DELETE ON"
               " dragoman.commands REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"
               " EXECUTE FUNCTION see()");
    snprintf(
        sql, sizeof sql,
        "INSERT INTO dragoman.commands SELECT %lld,7,i,'','','t1','CANCEL',convert_to("
        "repeat('x',CASE WHEN i%%300=0 THEN 3000000 ELSE 1 END),'UTF8'),now()+interval '1 hour'"
        " FROM generate_series(1,1500) i",
        (long long)id_of(&s[0]));
    postgres_ask(c, sql);
    server_handle(&s[0]);
    wait_seen(&s[0], &s[0].n_commands, 1500);
    assert_int_equal(postgres_ask(c, "SELECT sum(n) FROM seen"), 1500);
    assert_true(postgres_ask(c, "SELECT max(n) FROM seen") <= 500);
    assert_true(postgres_ask(c, "SELECT max(bytes) FROM seen") <= 8 << 20);
    watch_end(c);
    servers_close(s, 1);
}

/* Their sizes are counted as 0, and not as unknown: then each would be taken by a statement of its own. */
static void test_answers_without_a_body_are_taken_in_pages(void **state)
{
    struct server s[2];
    char sql[400];
    pthread_t thread;
    servers_open(s, 2, state);
    server_handle(&s[1]);
    s[1].is_silent = true;
    PGconn *c =
        watch(&s[0], "CREATE FUNCTION see() RETURNS trigger AS $$BEGIN INSERT INTO"
                     " seen(kind,n) SELECT 'd',count(*) FROM old_rows;"
                     "RETURN NULL; END$$ LANGUAGE plpgsql; CREATE TRIGGER seen AFTER DELETE ON"
                     " dragoman.answers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"
                     " EXECUTE FUNCTION see()");
    struct waiting_command w = {.from = &s[0], .to = id_of(&s[1])};
    assert_int_equal(pthread_create(&thread, NULL, wait_for_answer, &w), 0);
    wait_seen(&s[1], &s[1].n_commands, 1);
    snprintf(sql, sizeof sql,
             "INSERT INTO dragoman.answers(replica,id,code,pointer,message,body,until) SELECT"
             " %lld,%lld+i,0,'','',NULL,now()+interval '1 hour' FROM generate_series(0,100) i",
             (long long)id_of(&s[0]), (long long)s[1].command.id);
    postgres_ask(c, sql);
    pthread_join(thread, NULL);
    check_ok(w.result.call.code, w.result.call.err);
    assert_int_equal(postgres_ask(c, "SELECT max(n) FROM seen"), 101);
    watch_end(c);
    servers_close(s, 2);
}

static void make_many_commands(struct call *call)
{
    struct command_call *c = (struct command_call *)call;
    for (int i = 0; i < 1600; i++)
        dgm_store_command(call->env->store, c->to, alice, DGM_STR("t1"), DGM_STR("GONE"),
                          DGM_STR("{}"), 0, NULL, NULL);
    arrive(&call->wait);
}

/* The first server sends in some statements, each of which takes longer than the time between two beats. On a busy machine the
 * second one may extend its life too late, so that it would be dead: here it lives for an hour. */
static void test_sending_does_not_delay_the_life_of_a_server(void **state)
{
    struct server s[2];
    char sql[1000];
    servers_open(s, 2, state);
    snprintf(
        sql, sizeof sql,
        "CREATE FUNCTION see() RETURNS trigger AS $$BEGIN INSERT INTO seen(kind) SELECT tg_argv[0];"
        "IF tg_argv[0]='c' THEN PERFORM pg_sleep(1.1); END IF; RETURN NULL; END$$"
        " LANGUAGE plpgsql; CREATE TRIGGER seen AFTER INSERT ON dragoman.commands FOR EACH"
        " STATEMENT EXECUTE FUNCTION see('c'); CREATE TRIGGER seen AFTER UPDATE OF until ON"
        " dragoman.replicas FOR EACH ROW WHEN (NEW.id=%lld) EXECUTE FUNCTION see('b');"
        "CREATE FUNCTION live() RETURNS trigger AS $$BEGIN NEW.until=now()+interval '1 hour';"
        "RETURN NEW; END$$ LANGUAGE plpgsql; CREATE TRIGGER live BEFORE UPDATE OF until ON"
        " dragoman.replicas FOR EACH ROW WHEN (NOT NEW.dead) EXECUTE FUNCTION live();"
        "UPDATE dragoman.replicas SET until=now()",
        (long long)id_of(&s[0]));
    PGconn *c = watch(&s[0], sql);
    struct command_call many = {.call = {.make = make_many_commands}, .to = id_of(&s[1])};
    run_call(&s[0].env, &many.call);
    while (postgres_ask(c, "SELECT count(*) FROM dragoman.commands") < 1600)
        usleep(10000);
    assert_true(postgres_ask(c, "SELECT count(*) FROM seen WHERE kind='c'") >= 4);
    assert_int_equal(postgres_ask(c,
                                  "SELECT count(*) FROM (SELECT kind,lag(kind) OVER (ORDER BY at)"
                                  " AS before FROM seen) x WHERE kind='c' AND before='c'"),
                     0);
    postgres_ask(c, "DROP FUNCTION live() CASCADE");
    watch_end(c);
    servers_close(s, 2);
}

/* The database accepts no connections. */
static void test_commands_without_a_connection_end(void **state)
{
    struct server s[1];
    char sql[200], name[80];
    servers_open(s, 1, state);
    server_handle(&s[0]);
    const char *at = strstr(s[0].env.url, "dbname=") + strlen("dbname=");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
    PGconn *c = postgres_connect("postgres");
    snprintf(sql, sizeof sql, "ALTER DATABASE %s ALLOW_CONNECTIONS false", name);
    postgres_ask(c, sql);
    snprintf(sql, sizeof sql,
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname='%s'",
             name);
    postgres_ask(c, sql);
    struct command_call late;
    do { /* it may not have noticed it yet */
        late = command(&s[0], 5, "CANCEL", 300);
    } while (strstr(late.call.err.msg, "cannot be reached"));
    check_code(late.call.code, DGM_UNAVAILABLE, &late.call.err, "did not answer within 300 ms");
    snprintf(sql, sizeof sql, "ALTER DATABASE %s ALLOW_CONNECTIONS true", name);
    postgres_ask(c, sql);
    PQfinish(c);
    servers_close(s, 1);
}

#define ON_POSTGRES(fn, driver) dgm_test_with("postgres: " #fn, fn, driver)

DGM_TEST_MAIN(
    ON_SHARED(test_a_server_takes_tasks_of_its_agents),
    ON_POSTGRES(test_a_task_that_cannot_be_loaded_is_not_taken_again_at_once, "postgres-hour"),
    ON_POSTGRES(test_owned_tasks_are_reported_after_a_lost_connection, "postgres-hour"),
    ON_POSTGRES(test_owned_tasks_are_reported_now_and_then, "postgres"),
    ON_POSTGRES(test_the_first_server_after_an_outage_buries_no_other, "postgres-seconds"),
    ON_POSTGRES(test_ids_of_servers_are_random, "postgres"),
    ON_POSTGRES(test_commands_are_taken_in_pages, "postgres"),
    ON_POSTGRES(test_answers_without_a_body_are_taken_in_pages, "postgres"),
    ON_POSTGRES(test_sending_does_not_delay_the_life_of_a_server, "postgres"),
    ON_POSTGRES(test_commands_without_a_connection_end, "postgres"),
    ON_SHARED(test_a_dead_servers_tasks_are_taken),
    ON_SHARED(test_a_released_task_that_works_is_taken),
    ON_SHARED(test_a_closed_servers_tasks_are_taken), ON_SHARED(test_orphans_of_before_are_found),
    ON_POSTGRES(test_orphans_of_a_forgotten_server_are_found, "postgres"),
    dgm_test_with("postgres: test_a_locked_orphan_is_taken_soon",
                  test_a_locked_orphan_is_taken_soon, "postgres-hour"),
    dgm_test_with("postgres: test_a_server_without_a_process_is_dead",
                  test_a_server_without_a_process_is_dead, "postgres"),
    ON_SHARED(test_who_follows_is_woken), ON_SHARED(test_commands_are_answered),
    ON_SHARED(test_commands_without_an_answer_end), ON_SHARED(test_commands_of_a_dead_server_end))
