/* test_store_share.c - several servers on one store: leases and fences, message ids, jobs. */
#include "test_store_share.h"

/* ---- leases ---------------------------------------------------------------------------------------------- */

static void test_a_task_belongs_to_who_made_it(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    assert_int_not_equal(id_of(&s[0]), id_of(&s[1]));
    append_ok(&s[0], "t1", 0, 1);
    check_lease(get_task(&s[0].env, alice, "t1"), DGM_LEASE_OURS, id_of(&s[0]), 1);
    check_lease(get_task(&s[1].env, alice, "t1"), DGM_LEASE_OTHER, id_of(&s[0]), 1);
    append_lost(&s[1], "t1", 2, 1);
    append_lost(&s[0], "t1", 2, 2);
    append_ok(&s[0], "t1", 2, 1);
    check_lease(acquire(&s[1], "t1"), DGM_LEASE_OTHER, id_of(&s[0]), 1);
    check_lease(acquire(&s[0], "t1"), DGM_LEASE_OURS, id_of(&s[0]), 1);
    check_ok(append_fenced(&s[0], "t1", 4, 1, DGM_STATE_INPUT_REQUIRED, true, &err), err);
    check_lease(get_task(&s[1].env, alice, "t1"), DGM_LEASE_NONE, 0, 1);
    append_lost(&s[0], "t1", 6, 1);
    dgm_task_row *row = acquire(&s[1], "t1");
    check_lease(row, DGM_LEASE_OURS, id_of(&s[1]), 2);
    assert_int_equal(row->last_seq, 6);
    append_lost(&s[0], "t1", 6, 1);
    append_ok(&s[1], "t1", 6, 2);
    assert_int_equal(count_records(&s[0].env, alice, "t1"), 8);
    assert_null(acquire(&s[0], "no such task"));
    servers_close(s, 2);
}

struct racing {
    struct server *server;
    dgm_task_row *row;
};

static void *race_to_acquire(void *arg)
{
    struct racing *r = arg;
    r->row = acquire(r->server, "t1");
    return NULL;
}

static void test_one_of_two_acquires(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    append_ok(&s[0], "t1", 0, 1);
    uint64_t fence = 1, last = 2;
    struct server *owner = &s[0];
    for (int round = 0; round < 20; round++) {
        check_ok(append_fenced(owner, "t1", last, fence, DGM_STATE_INPUT_REQUIRED, true, &err),
                 err);
        last += 2;
        struct racing racing[2] = {{&s[0], NULL}, {&s[1], NULL}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, race_to_acquire, &racing[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        int winner = racing[0].row->lease.holder == DGM_LEASE_OURS ? 0 : 1;
        fence++;
        owner = &s[winner];
        check_lease(racing[winner].row, DGM_LEASE_OURS, id_of(owner), fence);
        check_lease(racing[1 - winner].row, DGM_LEASE_OTHER, id_of(owner), fence);
        append_lost(&s[1 - winner], "t1", last, fence);
        append_lost(&s[1 - winner], "t1", last, fence - 1);
    }
    servers_close(s, 2);
}

/* ---- fences of other writes ------------------------------------------------------------------------------ */

struct fenced {
    struct call call; /* first */
    dgm_note note;
    dgm_checkpoint_change change;
};

static void make_put_note(struct call *c)
{
    dgm_store_put_note(c->env->store, &((struct fenced *)c)->note, on_done, c);
}

static void make_change(struct call *c)
{
    dgm_store_change_checkpoints(c->env->store, DGM_STR("demo"), &((struct fenced *)c)->change,
                                 on_done, c);
}

static dgm_code put_note(struct server *s, const char *text, uint64_t fence, dgm_err *ret_err)
{
    struct fenced f = {.call = {.make = make_put_note},
                       .note = {.owner = alice,
                                .kind = DGM_STR("run"),
                                .name = DGM_STR("n"),
                                .text = dgm_str_from(text),
                                .fence = {alice, DGM_STR("t1"), fence}}};
    run_call(&s->env, &f.call);
    *ret_err = f.call.err;
    return f.call.code;
}

static dgm_code put_first_checkpoint(struct server *s, const char *id, const char *task,
                                     dgm_err *ret_err)
{
    struct fenced f = {.call = {.make = make_change},
                       .change = {.kind = DGM_CHECKPOINT_PUT,
                                  .row = {.thread = DGM_STR("thread"), .id = dgm_str_from(id)},
                                  .fence = {alice, dgm_str_from(task), 1, true}}};
    run_call(&s->env, &f.call);
    *ret_err = f.call.err;
    return f.call.code;
}

static dgm_code put_checkpoint(struct server *s, const char *id, uint64_t fence, dgm_err *ret_err)
{
    struct fenced f = {.call = {.make = make_change},
                       .change = {.kind = DGM_CHECKPOINT_PUT,
                                  .row = {.thread = DGM_STR("thread"), .id = dgm_str_from(id)},
                                  .fence = {alice, DGM_STR("t1"), fence}}};
    run_call(&s->env, &f.call);
    *ret_err = f.call.err;
    return f.call.code;
}

struct reading {
    struct call call; /* first */
    char text[40];
    size_t n;
};

static void on_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct reading *r = arg;
    note(&r->call, code, err);
    snprintf(r->text, sizeof r->text, "%.*s", DGM_P(text));
    arrive(&r->call.wait);
}

static void make_get_note(struct call *c)
{
    dgm_store_get_note(c->env->store, alice, DGM_STR("run"), DGM_STR("n"), on_note, c);
}

static void check_note(struct server *s, const char *want)
{
    struct reading r = {.call = {.make = make_get_note}};
    run_call(&s->env, &r.call);
    check_ok(r.call.code, r.call.err);
    assert_string_equal(r.text, want);
}

static void on_checkpoints(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                           const dgm_err *err, void *arg)
{
    struct reading *r = arg;
    (void)rows, (void)more;
    note(&r->call, code, err);
    r->n = n;
    arrive(&r->call.wait);
}

static void make_read_checkpoints(struct call *c)
{
    dgm_checkpoint_query q = {.thread = DGM_STR("thread"), .limit = 10};
    dgm_store_read_checkpoints(c->env->store, DGM_STR("demo"), &q, on_checkpoints, c);
}

static void check_checkpoints(struct server *s, size_t want)
{
    struct reading r = {.call = {.make = make_read_checkpoints}};
    run_call(&s->env, &r.call);
    check_ok(r.call.code, r.call.err);
    assert_int_equal(r.n, want);
}

/* An append with a note: both or neither. */
static dgm_code append_with_note(struct server *s, uint64_t last, uint64_t fence, const char *text,
                                 bool releases, dgm_err *ret_err)
{
    struct making m;
    struct call noted = {.env = &s->env, .wait = WAIT_FOR(1)};
    dgm_append_note pair = {{.owner = alice,
                             .kind = DGM_STR("run"),
                             .name = DGM_STR("n"),
                             .text = dgm_str_from(text),
                             .fence = {alice, DGM_STR("t1"), fence}},
                            on_done,
                            &noted};
    make_deltas(&m, alice, "t1", last, 1, 1);
    m.batch.row.state = releases ? DGM_STATE_INPUT_REQUIRED : DGM_STATE_WORKING;
    m.batch.fence = fence;
    m.batch.releases = releases;
    m.batch.note = &pair;
    dgm_code code = append(&s->env, &m.batch, ret_err);
    wait_all(&noted.wait);
    assert_int_equal(noted.code, code);
    unmake(&m);
    return code;
}

static void test_fences_guard_notes_and_checkpoints(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    append_ok(&s[0], "t1", 0, 1);
    check_ok(put_note(&s[0], "one", 1, &err), err);
    check_ok(put_checkpoint(&s[0], "1", 1, &err), err);
    check_lost(put_note(&s[1], "other", 1, &err), &err);
    check_lost(put_checkpoint(&s[1], "2", 1, &err), &err);
    check_ok(append_with_note(&s[0], 2, 1, "two", true, &err), err);
    check_note(&s[1], "two");
    check_lost(append_with_note(&s[0], 3, 1, "late", false, &err), &err);
    check_note(&s[1], "two");
    check_lease(acquire(&s[1], "t1"), DGM_LEASE_OURS, id_of(&s[1]), 2);
    check_lost(put_note(&s[0], "late", 1, &err), &err);
    check_lost(put_checkpoint(&s[0], "3", 1, &err), &err);
    check_note(&s[0], "two");
    check_checkpoints(&s[0], 1);
    check_ok(put_note(&s[1], "three", 2, &err), err);
    check_ok(put_checkpoint(&s[1], "4", 2, &err), err);
    check_note(&s[0], "three");
    check_checkpoints(&s[0], 2);
    servers_close(s, 2);
}

static void test_a_new_task_may_have_checkpoints_before_it_is_stored(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    check_lost(put_checkpoint(&s[0], "0", 1, &err), &err);
    check_ok(put_first_checkpoint(&s[0], "1", "t1", &err), err);
    append_ok(&s[0], "t1", 0, 1);
    check_ok(put_first_checkpoint(&s[0], "2", "t1", &err), err);
    check_lost(put_first_checkpoint(&s[1], "3", "t1", &err), &err);
    check_ok(append_fenced(&s[0], "t1", 2, 1, DGM_STATE_INPUT_REQUIRED, true, &err), err);
    check_lost(put_first_checkpoint(&s[0], "4", "t1", &err), &err);
    check_lease(acquire(&s[1], "t1"), DGM_LEASE_OURS, id_of(&s[1]), 2);
    check_lost(put_first_checkpoint(&s[0], "5", "t1", &err), &err);
    check_lost(put_first_checkpoint(&s[1], "6", "t1", &err), &err); /* its fence is 2 */
    check_ok(put_checkpoint(&s[1], "7", 2, &err), err);
    check_checkpoints(&s[0], 3);
    servers_close(s, 2);
}

/* What a run stores at its end, and then its lease is given back, in one turn of the loop. */
struct ending {
    struct call call; /* first: of the release */
    struct fenced note, change;
};

static void make_ending(struct call *c)
{
    struct ending *x = (struct ending *)c;
    make_put_note(&x->note.call);
    make_change(&x->change.call);
    make_release(c);
}

static void test_a_release_comes_behind_notes_and_checkpoints(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    servers_open(s, 2, state);
    check_ok(append_fenced(&s[0], "t1", 0, 1, DGM_STATE_INPUT_REQUIRED, false, &err), err);
    for (uint64_t fence = 1; fence <= 10; fence++) {
        dgm_fence f = {alice, DGM_STR("t1"), fence};
        struct call one = {.env = &s[0].env, .wait = WAIT_FOR(1)};
        struct ending x = {
            .call = {.make = make_ending, .owner = alice, .a = DGM_STR("t1"), .seq = fence},
            .note = {.call = one,
                     .note = {alice, DGM_STR("run"), DGM_STR("n"), DGM_STR("end"), .fence = f}},
            .change = {.call = one,
                       .change = {.kind = DGM_CHECKPOINT_PUT,
                                  .row = {.thread = DGM_STR("thread"), .id = DGM_STR("1")},
                                  .fence = f}}};
        run_call(&s[0].env, &x.call);
        wait_all(&x.note.call.wait);
        wait_all(&x.change.call.wait);
        check_ok(x.note.call.code, x.note.call.err);
        check_ok(x.change.call.code, x.change.call.err);
        check_ok(x.call.code, x.call.err);
        check_lease(acquire(&s[0], "t1"), DGM_LEASE_OURS, id_of(&s[0]), fence + 1);
    }
    check_note(&s[1], "end");
    servers_close(s, 2);
}

/* ---- message ids ----------------------------------------------------------------------------------------- */

static dgm_code append_taken(struct server *s, const char *id, const char *context,
                             const char *message, const char *content, int64_t nameless_until_ms,
                             dgm_err *ret_err)
{
    struct making m;
    dgm_turn_row turn = {.turn = 1, .first_seq = 1, .protocol = DGM_STR("a2a")};
    dgm_taken taken = {.message_id = dgm_str_from(message),
                       .content = dgm_str_from(content),
                       .nameless_until_ms = nameless_until_ms};
    make_deltas(&m, alice, id, 0, 1, 1);
    m.batch.row.context_id = dgm_str_from(context);
    m.batch.fence = 1;
    m.batch.turn = &turn;
    m.batch.taken = &taken;
    dgm_code code = append(&s->env, &m.batch, ret_err);
    unmake(&m);
    return code;
}

struct racing_message {
    struct server *server;
    char id[20], context[20], message[20];
    dgm_code code;
    dgm_err err;
};

static void *race_with_a_message(void *arg)
{
    struct racing_message *r = arg;
    r->code = append_taken(r->server, r->id, r->context, r->message, "hello",
                           dgm_loop_unix_ms() + 3600000, &r->err);
    return NULL;
}

/* A resend that reaches another server: each has made a context of its own for it. */
static void test_one_of_two_equal_messages_is_stored(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    for (int round = 0; round < 40; round++) {
        struct racing_message r[2];
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            r[i] = (struct racing_message){.server = &s[i]};
            snprintf(r[i].id, sizeof r[i].id, "t%d-%d", round, i);
            snprintf(r[i].context, sizeof r[i].context, "c%d-%d", round, i);
            snprintf(r[i].message, sizeof r[i].message, "m%d", round);
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, race_with_a_message, &r[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        int winner = r[0].code == DGM_OK ? 0 : 1;
        check_ok(r[winner].code, r[winner].err);
        assert_int_equal(r[1 - winner].code, DGM_UNAVAILABLE);
        assert_true(dgm_store_is_duplicate(&r[1 - winner].err));
        assert_false(dgm_store_is_lost(&r[1 - winner].err));
        assert_null(get_task(&s[winner].env, alice, r[1 - winner].id));
        dgm_dedupe_row *row = find_dedupe(&s[1 - winner].env, alice, "", r[0].message);
        assert_non_null(row);
        assert_true(dgm_str_eq(row->task_id, dgm_str_from(r[winner].id)));
    }
    servers_close(s, 2);
}

static void test_what_is_not_a_duplicate(void **state)
{
    struct server s[2];
    dgm_err err = {0};
    int64_t later = dgm_loop_unix_ms() + 3600000;
    servers_open(s, 2, state);
    check_ok(append_taken(&s[0], "t1", "c1", "m1", "hello", later, &err), err);
    /* other content replaces it, as in any store */
    check_ok(append_taken(&s[1], "t2", "c2", "m1", "other", later, &err), err);
    assert_int_equal(append_taken(&s[0], "t3", "c3", "m1", "other", later, &err), DGM_UNAVAILABLE);
    assert_true(dgm_store_is_duplicate(&err));
    /* one that named its context is found in it only */
    check_ok(append_taken(&s[0], "t4", "c4", "m1", "other", 0, &err), err);
    assert_int_equal(append_taken(&s[1], "t5", "c4", "m1", "other", 0, &err), DGM_UNAVAILABLE);
    assert_true(dgm_store_is_duplicate(&err));
    /* one that has expired is not found */
    check_ok(append_taken(&s[0], "t6", "c6", "m2", "hello", 1, &err), err);
    check_ok(append_taken(&s[1], "t7", "c7", "m2", "hello", later, &err), err);
    servers_close(s, 2);
}

/* ---- jobs ------------------------------------------------------------------------------------------------ */

static void append_ended(struct server *s, const char *id)
{
    struct making m;
    dgm_err err = {0};
    make_deltas(&m, alice, id, 0, 2, 1);
    m.batch.fence = 1;
    m.batch.row.state = DGM_STATE_COMPLETED;
    m.batch.releases = true;
    check_ok(append(&s->env, &m.batch, &err), err);
    unmake(&m);
}

static void trim_tasks(struct server *s)
{
    struct call c = {.make = make_trim, .keep = {.tasks_before_ms = T0 + 1000}};
    run_call(&s->env, &c);
    check_ok(c.code, c.err);
}

static void test_one_server_takes_away_what_is_old(void **state)
{
    struct server s[2];
    servers_open(s, 2, state);
    append_ended(&s[0], "old");
    append_ended(&s[0], "last"); /* memory: holds the one that ended last */
    trim_tasks(&s[0]);
    assert_null(get_task(&s[1].env, alice, "old"));
    append_ended(&s[0], "old2");
    trim_tasks(&s[1]); /* that is the other one's */
    assert_non_null(get_task(&s[1].env, alice, "old2"));
    dgm_store_close(s[0].env.store);
    s[0].env.store = NULL;
    trim_tasks(&s[1]);
    assert_null(get_task(&s[1].env, alice, "old2"));
    servers_close(s, 2);
}

/* ---- stores that are not shared --------------------------------------------------------------------------- */

static void test_a_store_that_is_not_shared(void **state)
{
    struct server s = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    dgm_err err = {0};
    s.env = setup(state);
    assert_false(dgm_store_is_shared(s.env.store));
    assert_int_equal(id_of(&s), 0);
    server_handle(&s);
    check_ok(append_fenced(&s, "t1", 0, 0, DGM_STATE_WORKING, false, &err), err);
    check_ok(append_fenced(&s, "t1", 2, 0, DGM_STATE_WORKING, true, &err), err);
    check_ok(append_fenced(&s, "t1", 4, 0, DGM_STATE_WORKING, false, &err), err);
    check_lease(get_task(&s.env, alice, "t1"), DGM_LEASE_OURS, 0, 0);
    check_lease(acquire(&s, "t1"), DGM_LEASE_OURS, 0, 0);
    assert_null(acquire(&s, "no such task"));
    check_ok(release(&s, "t1", 0, &err), err);
    check_ok(put_note(&s, "one", 0, &err), err);
    check_ok(put_checkpoint(&s, "1", 0, &err), err);
    follow(&s, "t1", 5);
    assert_false(dgm_store_is_followed(s.env.store, alice, DGM_STR("t1")));
    struct command_call c = command(&s, 5, "CANCEL", 60000);
    check_code(c.call.code, DGM_UNAVAILABLE, &c.call.err, "owns this task has ended");
    assert_int_equal(s.n_orphans + s.n_grown + s.n_commands, 0);
    dgm_store_share(s.env.store, NULL, NULL);
    teardown(&s.env);
}

DGM_TEST_MAIN(ON_SHARED(test_a_task_belongs_to_who_made_it), ON_SHARED(test_one_of_two_acquires),
              ON_SHARED(test_fences_guard_notes_and_checkpoints),
              ON_SHARED(test_a_new_task_may_have_checkpoints_before_it_is_stored),
              ON_SHARED(test_a_release_comes_behind_notes_and_checkpoints),
              ON_SHARED(test_one_of_two_equal_messages_is_stored),
              ON_SHARED(test_what_is_not_a_duplicate),
              ON_SHARED(test_one_server_takes_away_what_is_old),
              dgm_test_with("memory: test_a_store_that_is_not_shared",
                            test_a_store_that_is_not_shared, "memory"),
              dgm_test_with("sqlite: test_a_store_that_is_not_shared",
                            test_a_store_that_is_not_shared, "sqlite"))
