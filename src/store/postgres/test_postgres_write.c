/*
 * test_postgres_write.c - writes of several servers on one PostgreSQL: appends whose outcome is unknown, fences of tasks that
 * were never stored, who follows whom without notifications.
 */
#include "postgres_int.h"
#include "store/test_env.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

static PGconn *beside(const struct env *e)
{
    PGconn *c = PQconnectdb(e->url + strlen("postgres:"));
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    return c;
}

static void wait_until(PGconn *c, const char *sql, long want)
{
    for (int i = 0; postgres_ask(c, sql) != want; i++) {
        if (i >= 120000)
            fail_msg("%s is not %ld", sql, want);
        usleep(1000);
    }
}

static struct env open_empty(void)
{
    static char driver[] = "postgres";
    void *which = driver;
    return setup(&which);
}

/* ---- the answer of a commit is lost ------------------------------------------------------------------------ */

/* An append is stored, its answer does not arrive, and a note of its task comes before it is sent again. */
struct doubt {
    struct env *env;
    PGconn *beside; /* it holds a lock that the append waits for */
    struct wait wait;
    struct making making;
    dgm_code append_code, note_code;
    dgm_err err;
};

static pg_loop *first_loop(const struct doubt *d)
{
    return ((pg_store *)d->env->store)->loops[0];
}

static void on_doubtful_append(dgm_code code, const dgm_err *err, void *arg)
{
    struct doubt *d = arg;
    d->append_code = code;
    if (code)
        d->err = *err;
    arrive(&d->wait);
}

static void on_doubtful_note(dgm_code code, const dgm_err *err, void *arg)
{
    struct doubt *d = arg;
    d->note_code = code;
    if (code)
        d->err = *err;
    arrive(&d->wait);
}

/* All of this is one turn of the loop: it does not read the answer of the append. */
static void lose_answer(void *arg)
{
    struct doubt *d = arg;
    pg_pipe *writer = &first_loop(d)->writer;
    dgm_err why = {0};
    if (!writer->n || writer->sending || PQflush(writer->conn)) {
        dgm_loop_post(dgm_loop_current(), lose_answer, d);
        return;
    }
    postgres_ask(d->beside, "COMMIT");
    wait_until(d->beside, "SELECT count(*) FROM dragoman.tasks WHERE id='t1'", 1);
    dgm_note note = {.owner = alice,
                     .kind = DGM_STR("run"),
                     .name = DGM_STR("n"),
                     .text = DGM_STR("text"),
                     .fence = {alice, DGM_STR("t1"), 1}};
    dgm_store_put_note(d->env->store, &note, on_doubtful_note, d);
    dgm_fail(&why, DGM_UNAVAILABLE, NULL, "the connection to the database is lost");
    writer->use->on_lost(first_loop(d), writer, &why);
}

static void append_then_lose(void *arg)
{
    struct doubt *d = arg;
    dgm_store_append(d->env->store, &d->making.batch, on_doubtful_append, d);
    dgm_loop_post(dgm_loop_current(), lose_answer, d);
}

static struct doubt run_doubt(struct env *e, bool releases)
{
    struct doubt d = {.env = e, .beside = beside(e), .wait = WAIT_FOR(2)};
    assert_int_equal(append_deltas(e, alice, "t0", 0, 1, 1), DGM_OK); /* it is connected */
    make_deltas(&d.making, alice, "t1", 0, 1, 1);
    d.making.batch.releases = releases;
    if (releases)
        d.making.batch.row.state = DGM_STATE_INPUT_REQUIRED;
    postgres_ask(d.beside, "BEGIN");
    postgres_ask(d.beside, "LOCK TABLE dragoman.log IN EXCLUSIVE MODE");
    dgm_loop_post(dgm_loops_at(e->loops, 0), append_then_lose, &d);
    wait_all(&d.wait);
    unmake(&d.making);
    check_ok(d.append_code, d.err);
    assert_int_equal(count_records(e, alice, "t1"), 1);
    return d;
}

static void a_note_beside_an_append_in_doubt_is_stored(void **state)
{
    struct env e = open_empty();
    (void)state;
    struct doubt d = run_doubt(&e, false);
    check_ok(d.note_code, d.err);
    assert_int_equal(postgres_ask(d.beside, "SELECT count(*) FROM dragoman.notes"), 1);
    PQfinish(d.beside);
    teardown(&e);
}

/* The append gave the lease back: a note that comes after it is not stored, and its writer gets to know it. */
static void a_note_behind_a_release_in_doubt_is_refused(void **state)
{
    struct env e = open_empty();
    (void)state;
    struct doubt d = run_doubt(&e, true);
    assert_int_equal(d.note_code, DGM_UNAVAILABLE);
    assert_true(dgm_store_is_lost(&d.err));
    assert_int_equal(postgres_ask(d.beside, "SELECT count(*) FROM dragoman.notes"), 0);
    PQfinish(d.beside);
    teardown(&e);
}

/* ---- statements that overlap --------------------------------------------------------------------------------- */

static const char waiting_for_locks[] = "SELECT count(*) FROM pg_stat_activity WHERE datname="
                                        "current_database() AND wait_event_type='Lock'";

/* What a statement that had to wait for a lock returns of a row is how the row was when the statement began. */
struct overlap {
    struct doubt doubt; /* first */
    const char *lock, *end;
    const dgm_append *batch;
    bool is_lost;
};

static void send_overlap(void *arg)
{
    struct overlap *o = arg;
    dgm_store_append(o->doubt.env->store, o->batch, on_doubtful_append, &o->doubt);
}

static void lose_overlap(void *arg)
{
    struct overlap *o = arg;
    pg_pipe *writer = &first_loop(&o->doubt)->writer;
    dgm_err why = {0};
    dgm_fail(&why, DGM_UNAVAILABLE, NULL, "the connection to the database is lost");
    writer->use->on_lost(first_loop(&o->doubt), writer, &why);
}

static void run_overlap(struct overlap *o)
{
    struct doubt *d = &o->doubt;
    PGconn *reads = beside(d->env);
    dgm_loop *loop = dgm_loops_at(d->env->loops, 0);
    d->beside = beside(d->env);
    postgres_ask(d->beside, "BEGIN");
    postgres_ask(d->beside, o->lock);
    dgm_loop_post(loop, send_overlap, o);
    wait_until(reads, waiting_for_locks, 1);
    if (o->is_lost) { /* the server does not notice: the same append waits twice */
        dgm_loop_post(loop, lose_overlap, o);
        wait_until(reads, waiting_for_locks, 2);
    }
    postgres_ask(d->beside, o->end);
    wait_all(&d->wait);
    PQfinish(d->beside);
    PQfinish(reads);
}

static void an_append_that_is_sent_again_too_early_was_stored(void **state)
{
    struct env e = open_empty();
    struct overlap o = {.doubt = {.env = &e, .wait = WAIT_FOR(1)},
                        .lock = "SELECT 1 FROM dragoman.tasks WHERE id='t1' FOR UPDATE",
                        .end = "COMMIT",
                        .is_lost = true};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    make_deltas(&o.doubt.making, alice, "t1", 1, 1, 1);
    o.batch = &o.doubt.making.batch;
    run_overlap(&o);
    check_ok(o.doubt.append_code, o.doubt.err);
    assert_int_equal(count_records(&e, alice, "t1"), 2);
    assert_int_equal(append_deltas(&e, alice, "t1", 2, 1, 1), DGM_OK);
    unmake(&o.doubt.making);
    teardown(&e);
}

static void so_was_the_first_one_of_a_task(void **state)
{
    struct env e = open_empty();
    dgm_turn_row turn = {.turn = 1, .first_seq = 1, .protocol = DGM_STR("a2a")};
    dgm_taken taken = {.message_id = DGM_STR("m1"), .content = DGM_STR("hello")};
    char lock[300];
    struct overlap o = {
        .doubt = {.env = &e, .wait = WAIT_FOR(1)}, .end = "ROLLBACK", .is_lost = true};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t0", 0, 1, 1), DGM_OK); /* it is connected */
    make_deltas(&o.doubt.making, alice, "t1", 0, 1, 1);
    dgm_append *batch = &o.doubt.making.batch;
    batch->turn = &turn;
    batch->taken = &taken;
    o.batch = batch;
    snprintf(lock, sizeof lock,
             "INSERT INTO dragoman.messages SELECT tenant,principal,'m1',%lld,'t2',1,'',0"
             " FROM dragoman.tasks WHERE id='t0'",
             (long long)dgm_scope(batch->row.owner, batch->row.agent, batch->row.context_id));
    o.lock = lock;
    run_overlap(&o);
    check_ok(o.doubt.append_code, o.doubt.err);
    assert_int_equal(count_records(&e, alice, "t1"), 1);
    unmake(&o.doubt.making);
    teardown(&e);
}

/* Its writer must get to know that: of other faults it would mean that the task is damaged. */
static void an_append_that_waits_while_its_task_is_taken_is_lost(void **state)
{
    struct env e = open_empty();
    struct overlap o = {.doubt = {.env = &e, .wait = WAIT_FOR(1)},
                        .lock = "UPDATE dragoman.tasks SET owner=owner+1,fence=fence+1",
                        .end = "COMMIT"};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    make_deltas(&o.doubt.making, alice, "t1", 1, 1, 1);
    o.batch = &o.doubt.making.batch;
    run_overlap(&o);
    assert_int_equal(o.doubt.append_code, DGM_UNAVAILABLE);
    assert_true(dgm_store_is_lost(&o.doubt.err));
    assert_int_equal(count_records(&e, alice, "t1"), 1);
    unmake(&o.doubt.making);
    teardown(&e);
}

/* ---- the socket of a connection ------------------------------------------------------------------------------ */

/* libpq closes its socket when it finds the connection lost: the loop has one of its own until it has stopped to poll it. */
static void look_at_socket(void *arg)
{
    struct doubt *d = arg;
    const pg_pipe *writer = &first_loop(d)->writer;
    uv_os_fd_t polled = -1;
    assert_int_equal(uv_fileno((const uv_handle_t *)writer->poll, &polled), 0);
    assert_int_not_equal(polled, PQsocket(writer->conn));
    arrive(&d->wait);
}

static void a_loop_polls_a_socket_of_its_own(void **state)
{
    struct env e = open_empty();
    struct doubt d = {.env = &e, .wait = WAIT_FOR(1)};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t0", 0, 1, 1), DGM_OK); /* it is connected */
    dgm_loop_post(dgm_loops_at(e.loops, 0), look_at_socket, &d);
    wait_all(&d.wait);
    teardown(&e);
}

/* ---- checkpoints of tasks that are not stored --------------------------------------------------------------- */

struct putting {
    struct call call; /* first */
    dgm_checkpoint_change change;
};

static void make_put(struct call *c)
{
    dgm_store_change_checkpoints(c->env->store, DGM_STR("demo"), &((struct putting *)c)->change,
                                 on_done, c);
}

/* As the first run of a task does it. */
static dgm_code put_of_new(struct env *e, const char *task, dgm_err *ret_err)
{
    struct putting p = {.call = {.make = make_put},
                        .change = {.kind = DGM_CHECKPOINT_PUT,
                                   .row = {.thread = DGM_STR("thread"), .id = DGM_STR("1")},
                                   .fence = {alice, dgm_str_from(task), 1, true}}};
    run_call(e, &p.call);
    *ret_err = p.call.err;
    return p.call.code;
}

static void put_is_lost(struct env *e, const char *task)
{
    dgm_err err = {0};
    assert_int_equal(put_of_new(e, task, &err), DGM_UNAVAILABLE);
    assert_true(dgm_store_is_lost(&err));
}

/* The first append of a task, with the message that it is about. */
static dgm_code append_message(struct env *e, const char *task, dgm_err *ret_err)
{
    struct making m;
    dgm_turn_row turn = {.turn = 1, .first_seq = 1, .protocol = DGM_STR("a2a")};
    dgm_taken taken = {.message_id = DGM_STR("m1"), .content = DGM_STR("hello")};
    make_deltas(&m, alice, task, 0, 1, 1);
    m.batch.turn = &turn;
    m.batch.taken = &taken;
    dgm_code code = append(e, &m.batch, ret_err);
    unmake(&m);
    return code;
}

static void check_refused_task(struct env *e)
{
    dgm_err err = {0};
    check_ok(put_of_new(&e[0], "t1", &err), err); /* it may become a task */
    check_ok(append_message(&e[1], "t2", &err), err);
    assert_int_equal(append_message(&e[0], "t1", &err), DGM_UNAVAILABLE);
    assert_true(dgm_store_is_duplicate(&err));
    put_is_lost(&e[0], "t1");
    check_ok(put_of_new(&e[0], "t3", &err), err);
}

/* Another server has stored the same message: the run of the second task still works for a while, on the same thread. */
static void a_task_that_was_refused_stores_no_checkpoint(void **state)
{
    struct env e[2];
    (void)state;
    e[0] = open_empty();
    e[1] = (struct env){0};
    env_loops(&e[1], 1);
    memcpy(e[1].url, e[0].url, sizeof e[1].url);
    env_open(&e[1]);
    check_refused_task(e);
    teardown(&e[1]);
    teardown(&e[0]);
}

static void nor_in_memory(void **state)
{
    struct env e[2] = {0};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        env_loops(&e[i], 1);
        snprintf(e[i].url, sizeof e[i].url, "memory-shared:refused");
        env_open(&e[i]);
    }
    check_refused_task(e);
    teardown(&e[1]);
    teardown(&e[0]);
}

/* It was stopped for longer than its lease, and has not noticed it yet. */
static void a_dead_server_stores_no_checkpoint_of_a_new_task(void **state)
{
    struct env e = open_empty();
    PGconn *c = beside(&e);
    dgm_err err = {0};
    (void)state;
    check_ok(put_of_new(&e, "t1", &err), err);
    ((pg_store *)e.store)->share.is_paused = true;
    postgres_ask(c, "UPDATE dragoman.replicas SET dead=true");
    put_is_lost(&e, "t1");
    postgres_ask(c, "UPDATE dragoman.replicas SET dead=false");
    check_ok(put_of_new(&e, "t1", &err), err);
    PQfinish(c);
    teardown(&e);
}

/* ---- a checkpoint that is being sent ------------------------------------------------------------------------- */

/* A change with a large value, of which the first part waits for a lock. */
struct sending {
    struct doubt doubt; /* first */
    dgm_checkpoint_change change;
};

static void send_change(void *arg)
{
    struct sending *x = arg;
    dgm_store_change_checkpoints(x->doubt.env->store, DGM_STR("demo"), &x->change,
                                 on_doubtful_append, &x->doubt);
}

static dgm_code change_while(struct env *e, const char *sql, long want, dgm_err *ret_err)
{
    static char large[3 << 20];
    struct sending x = {.doubt = {.env = e, .beside = beside(e), .wait = WAIT_FOR(1)},
                        .change = {.kind = DGM_CHECKPOINT_PUT,
                                   .row = {.thread = DGM_STR("thread"), .id = DGM_STR("1")},
                                   .fence = {alice, DGM_STR("t1"), 1}}};
    PGconn *other = beside(e);
    x.change.row.checkpoint.bytes = dgm_bytes_copy((dgm_str){large, sizeof large});
    postgres_ask(x.doubt.beside, "BEGIN");
    postgres_ask(x.doubt.beside, "LOCK TABLE dragoman.checkpoint_values IN EXCLUSIVE MODE");
    dgm_loop_post(dgm_loops_at(e->loops, 0), send_change, &x);
    wait_until(other, waiting_for_locks, 1);
    assert_int_equal(postgres_ask(other, sql), want);
    postgres_ask(x.doubt.beside, "COMMIT");
    wait_all(&x.doubt.wait);
    dgm_bytes_unref(x.change.row.checkpoint.bytes);
    PQfinish(x.doubt.beside);
    PQfinish(other);
    *ret_err = x.doubt.err;
    return x.doubt.append_code;
}

/* A process that is stopped while it sends one must not keep others from taking its tasks. */
static void a_checkpoint_that_is_being_sent_locks_no_task(void **state)
{
    static const char take[] = "SELECT count(*) FROM (SELECT 1 FROM dragoman.tasks WHERE id='t1'"
                               " FOR UPDATE SKIP LOCKED) t";
    struct env e = open_empty();
    dgm_err err = {0};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    check_ok(change_while(&e, take, 1, &err), err);
    teardown(&e);
}

static void a_checkpoint_whose_task_is_taken_while_it_is_sent_is_lost(void **state)
{
    static const char take[] = "UPDATE dragoman.tasks SET owner=owner+1,fence=fence+1";
    struct env e = open_empty();
    dgm_err err = {0};
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    assert_int_equal(change_while(&e, take, 0, &err), DGM_UNAVAILABLE);
    assert_true(dgm_store_is_lost(&err));
    PGconn *c = beside(&e);
    assert_int_equal(postgres_ask(c, "SELECT count(*) FROM dragoman.checkpoint_values"), 0);
    PQfinish(c);
    teardown(&e);
}

/* ---- a change of checkpoints that is sent again too early ------------------------------------------------------ */

static void lose_change(void *arg)
{
    struct sending *x = arg;
    pg_pipe *writer = &first_loop(&x->doubt)->writer;
    dgm_err why = {0};
    dgm_fail(&why, DGM_UNAVAILABLE, NULL, "the connection to the database is lost");
    writer->use->on_lost(first_loop(&x->doubt), writer, &why);
}

/* The fence of the first one waits, the second one waits for the first: both are stored. */
static void change_twice(struct env *e, dgm_checkpoint_change *change)
{
    struct sending x = {.doubt = {.env = e, .beside = beside(e), .wait = WAIT_FOR(1)},
                        .change = *change};
    PGconn *other = beside(e);
    dgm_loop *loop = dgm_loops_at(e->loops, 0);
    postgres_ask(x.doubt.beside, "BEGIN");
    postgres_ask(x.doubt.beside, "SELECT 1 FROM dragoman.tasks WHERE id='t1' FOR UPDATE");
    dgm_loop_post(loop, send_change, &x);
    wait_until(other, waiting_for_locks, 1);
    dgm_loop_post(loop, lose_change, &x);
    wait_until(other, waiting_for_locks, 2);
    postgres_ask(x.doubt.beside, "COMMIT");
    wait_all(&x.doubt.wait);
    check_ok(x.doubt.append_code, x.doubt.err);
    PQfinish(x.doubt.beside);
    PQfinish(other);
}

/* That the counts of writes are right, and no value is left over, teardown() checks. */
static void a_change_of_checkpoints_that_is_sent_again_too_early(void **state)
{
    static char large[3000];
    struct env e = open_empty();
    dgm_checkpoint_write writes[] = {{.task = DGM_STR("w"), .idx = 0, .channel = DGM_STR("c")},
                                     {.task = DGM_STR("w"), .idx = -1, .channel = DGM_STR("c")}};
    dgm_checkpoint_change change = {.row = {.thread = DGM_STR("thread"), .id = DGM_STR("1")},
                                    .fence = {alice, DGM_STR("t1"), 1}};
    (void)state;
    dgm_bytes *value = dgm_bytes_copy((dgm_str){large, sizeof large});
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    change.kind = DGM_CHECKPOINT_PUT;
    change.row.checkpoint.bytes = value;
    change_twice(&e, &change);
    change.kind = DGM_CHECKPOINT_WRITES;
    change.row.checkpoint.bytes = NULL;
    change.row.writes = writes;
    change.row.n_writes = 2;
    writes[0].value.bytes = writes[1].value.bytes = value;
    change_twice(&e, &change);
    dgm_bytes_unref(value);
    teardown(&e);
}

/* ---- who follows, without notifications -------------------------------------------------------------------- */

struct heard {
    _Atomic size_t commands, grown;
};

static void heard_rows(void *user, const dgm_task_row *rows, size_t n)
{
    (void)user, (void)rows, (void)n;
}

static void heard_it(void *user)
{
    (void)user;
}

static void receive_grown(void *user, dgm_owner owner, dgm_str task_id)
{
    (void)owner, (void)task_id;
    ((struct heard *)user)->grown++;
}

static void heard_command(void *user, const dgm_command *command)
{
    (void)command;
    ((struct heard *)user)->commands++;
}

static struct env open_polling(const struct env *first, struct heard *heard, uint32_t lease_ms)
{
    struct env e = {0};
    dgm_err err = {0};
    dgm_store_options options = {.polls = true, .lease_ms = lease_ms};
    dgm_share_handlers handlers = {.on_orphans = heard_rows,
                                   .on_owned = heard_rows,
                                   .on_searched = heard_it,
                                   .on_renewed = heard_it,
                                   .on_grown = receive_grown,
                                   .on_command = heard_command,
                                   .user = heard};
    env_loops(&e, 1);
    if (first)
        memcpy(e.url, first->url, sizeof e.url);
    else
        postgres_url(e.url, sizeof e.url);
    check_ok(dgm_store_open_with(e.url, &options, &e.store, &err), err);
    dgm_store_share(e.store, dgm_loops_at(e.loops, 0), &handlers);
    return e;
}

static void close_polling(struct env *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dgm_store_share(e[i].store, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        teardown(&e[i]);
}

static void wait_followed(const struct env *e, const char *id)
{
    for (int i = 0; !dgm_store_is_followed(e->store, alice, dgm_str_from(id)); i++) {
        if (i >= 120000)
            fail_msg("%s is not followed", id);
        usleep(1000);
    }
}

/* Its owner must not cancel a run that clients of another server read. */
static void an_owner_that_polls_knows_who_follows(void **state)
{
    struct heard heard[2] = {0};
    struct env e[2];
    PGconn *c;
    (void)state;
    e[0] = open_polling(NULL, &heard[0], 0);
    e[1] = open_polling(&e[0], &heard[1], 0);
    c = beside(&e[0]);
    int64_t owner = dgm_store_replica(e[0].store).id;
    assert_int_equal(append_deltas(&e[0], alice, "t1", 0, 1, 1), DGM_OK);
    assert_int_equal(append_deltas(&e[0], alice, "t2", 0, 1, 1), DGM_OK);
    dgm_store_follow(e[1].store, alice, DGM_STR("t1"), owner);
    wait_followed(&e[0], "t1");
    assert_false(dgm_store_is_followed(e[0].store, alice, DGM_STR("t2")));
    assert_false(dgm_store_is_followed(e[0].store, bob, DGM_STR("t1")));
    for (int i = 0; i < 1000; i++) { /* more than one text can hold */
        char id[24];
        snprintf(id, sizeof id, "m%d", i);
        dgm_store_follow(e[1].store, alice, dgm_str_from(id), owner);
    }
    for (int i = 0; i < 1000; i++) {
        char id[24];
        snprintf(id, sizeof id, "m%d", i);
        wait_followed(&e[0], id);
    }
    size_t before = heard[1].grown;
    assert_int_equal(append_deltas(&e[0], alice, "t1", 1, 1, 1), DGM_OK);
    for (int i = 0; heard[1].grown == before; i++) { /* it reads that */
        assert_true(i < 120000);
        usleep(1000);
    }
    wait_until(c, "SELECT count(*) FROM dragoman.commands", 0);
    assert_int_equal(heard[0].commands, 0); /* the core is not asked */
    pg_share *share = &((pg_store *)e[0].store)->share;
    pthread_mutex_lock(&share->lock);
    assert_null(share->wakeups); /* nor is anyone woken */
    pthread_mutex_unlock(&share->lock);
    PQfinish(c);
    close_polling(e, 2);
}

/* ---- a database that does not answer ------------------------------------------------------------------------- */

struct unanswered {
    struct env *e;
    struct wait wait;
    dgm_code code;
    int64_t to;
};

static void on_unanswered(dgm_code code, dgm_str body, const dgm_err *err, void *arg)
{
    struct unanswered *u = arg;
    (void)body, (void)err;
    u->code = code;
    arrive(&u->wait);
}

static void send_unanswered(void *arg)
{
    struct unanswered *u = arg;
    dgm_store_command(u->e->store, u->to, alice, DGM_STR("t1"), DGM_STR("cancel"), DGM_STR("{}"),
                      1000, on_unanswered, u);
}

/* The process of PostgreSQL that has a connection. Its server is stopped only if it goes on, or is killed. */
static pid_t freeze(PGconn *c)
{
    pid_t pid = PQbackendPID(c);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    return pid;
}

static void close_writer(void *arg)
{
    struct unanswered *u = arg;
    pg_loop *l = ((pg_store *)u->e->store)->loops[0];
    dgm_err why = {0};
    dgm_fail(&why, DGM_UNAVAILABLE, NULL, "the connection to the database is lost");
    l->writer.use->on_lost(l, &l->writer, &why);
    arrive(&u->wait);
}

/* As behind a proxy that has forgotten a connection: nothing comes, and it does not end. */
static void a_connection_that_is_silent_is_given_up(void **state)
{
    struct heard heard[2] = {0};
    struct env e[2];
    (void)state;
    e[0] = open_polling(NULL, &heard[0], 2000);
    e[1] = open_polling(&e[0], &heard[1], 2000);
    pg_store *s = (pg_store *)e[0].store;
    struct unanswered u = {.e = &e[0], .wait = WAIT_FOR(1), .to = dgm_store_replica(e[1].store).id};
    struct unanswered w = {.e = &e[0], .wait = WAIT_FOR(1)};
    assert_int_equal(append_deltas(&e[0], alice, "t1", 0, 1, 1), DGM_OK); /* it is connected */
    pid_t pids[] = {freeze(s->share.conn), freeze(s->control)};
    dgm_loop_post(dgm_loops_at(e[0].loops, 0), send_unanswered, &u);
    wait_all(&u.wait);
    assert_int_equal(u.code, DGM_UNAVAILABLE);
    dgm_loop_post(dgm_loops_at(e[0].loops, 0), close_writer, &w);
    wait_all(&w.wait);
    for (int i = 0; append_deltas(&e[0], alice, "t2", 0, 1, 1); i++)
        assert_true(i < 5);
    for (int i = 0; !dgm_store_is_healthy(e[0].store, NULL); i++) {
        assert_true(i < 120000);
        usleep(1000);
    }
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++)
        kill(pids[i], SIGCONT);
    close_polling(e, 2);
}

/* ---- no file descriptors ------------------------------------------------------------------------------------- */

/* One more file can be open: the socket of a connection, but not the loop's own number of it. */
static void an_append_without_a_file_descriptor_fails(void **state)
{
    struct env e = open_empty();
    struct unanswered w = {.e = &e, .wait = WAIT_FOR(1)};
    struct rlimit was, one;
    (void)state;
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    dgm_loop_post(dgm_loops_at(e.loops, 0), close_writer, &w);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    wait_all(&w.wait);
    int next = dup(0);
    close(next);
    one = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    dgm_code code = append_deltas(&e, alice, "t1", 1, 1, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(code, DGM_UNAVAILABLE);
    for (int i = 0; append_deltas(&e, alice, "t1", 1, 1, 1); i++)
        assert_true(i < 5);
    teardown(&e);
}

/* ---- several servers ----------------------------------------------------------------------------------------- */

/* Accepts connections, and never answers. */
static int open_silent_port(int *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 100), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

/* The first server of the connection string is away: only connections that are made first wait for that. */
static void the_server_that_answered_is_used_next(void **state)
{
    struct env plain = open_empty(), e = {0};
    char folder[200] = "", dbname[40] = "", user[40] = "";
    int port;
    (void)state;
    int fd = open_silent_port(&port);
    assert_int_equal(
        sscanf(plain.url, "postgres:host=%199s user=%39s dbname=%39s", folder, user, dbname), 3);
    env_loops(&e, 3);
    snprintf(e.url, sizeof e.url,
             "postgres:host=127.0.0.1,%s port=%d,5432 user=%s dbname=%s connect_timeout=2", folder,
             port, user, dbname);
    env_open(&e);
    uint64_t before = uv_hrtime();
    assert_int_equal(append_deltas(&e, alice, "t1", 0, 1, 1), DGM_OK);
    assert_int_equal(count_records(&e, alice, "t1"), 1);
    assert_true(uv_hrtime() - before < 3900000000U);
    close(fd);
    e.url[0] = 0; /* the other one checks the database */
    teardown(&e);
    teardown(&plain);
}

DGM_TEST_MAIN(dgm_test(a_note_beside_an_append_in_doubt_is_stored),
              dgm_test(a_note_behind_a_release_in_doubt_is_refused),
              dgm_test(an_append_that_is_sent_again_too_early_was_stored),
              dgm_test(so_was_the_first_one_of_a_task),
              dgm_test(an_append_that_waits_while_its_task_is_taken_is_lost),
              dgm_test(a_loop_polls_a_socket_of_its_own),
              dgm_test(a_task_that_was_refused_stores_no_checkpoint), dgm_test(nor_in_memory),
              dgm_test(a_dead_server_stores_no_checkpoint_of_a_new_task),
              dgm_test(a_checkpoint_that_is_being_sent_locks_no_task),
              dgm_test(a_checkpoint_whose_task_is_taken_while_it_is_sent_is_lost),
              dgm_test(a_change_of_checkpoints_that_is_sent_again_too_early),
              dgm_test(an_owner_that_polls_knows_who_follows),
              dgm_test(an_append_without_a_file_descriptor_fails),
              dgm_test(the_server_that_answered_is_used_next),
              dgm_test(a_connection_that_is_silent_is_given_up))
