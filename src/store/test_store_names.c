/* test_store_names.c - tasks by the calls they ask for, turns of several agents, and notes, on every driver. */
#include "test_env.h"

#include <stdatomic.h>

/* ---- calls ---------------------------------------------------------------------------------------------- */

static void make_find_call(struct call *c)
{
    dgm_store_find_call(c->env->store, c->owner, c->a, c->b, on_task, c);
}

/* The id of the task, "" if not found. */
static const char *find_call(struct env *e, dgm_owner owner, const char *agent, const char *call)
{
    struct call c = {
        .make = make_find_call, .owner = owner, .a = dgm_str_from(agent), .b = dgm_str_from(call)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c.rows ? c.rows->id.p : "";
}

static void ask(struct env *e, dgm_owner owner, const char *task, const char *agent, uint64_t last,
                dgm_task_state state, dgm_strs calls)
{
    struct making m;
    make_deltas(&m, owner, task, last, 1, 1);
    m.batch.row.agent = dgm_str_from(agent);
    m.batch.row.state = state;
    m.batch.open_calls = calls;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

static void ask_one(struct env *e, dgm_owner owner, const char *task, const char *agent,
                    uint64_t last, const char *call)
{
    dgm_str id = dgm_str_from(call);
    ask(e, owner, task, agent, last, DGM_STATE_INPUT_REQUIRED, (dgm_strs){&id, 1});
}

static void tasks_are_found_by_their_calls(void **state)
{
    struct env e = setup(state);
    dgm_str two[] = {DGM_STR("c1"), DGM_STR("c\0\xff")};
    ask(&e, alice, "t1", "demo", 0, DGM_STATE_INPUT_REQUIRED, (dgm_strs){two, 2});
    assert_string_equal(find_call(&e, alice, "", "c1"), "t1");
    assert_string_equal(find_call(&e, alice, "demo", "c1"), "t1");
    struct call odd = {.make = make_find_call, .owner = alice, .b = two[1]};
    run_call(&e, &odd);
    check_str(odd.rows->id, "t1");
    assert_int_equal(odd.rows->state, DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(odd.rows->last_seq, 1);
    assert_string_equal(find_call(&e, alice, "other", "c1"), "");
    assert_string_equal(find_call(&e, alice, "", "c"), "");
    assert_string_equal(find_call(&e, bob, "", "c1"), "");
    /* the newest of an agent, and of all */
    ask_one(&e, alice, "t2", "demo", 0, "c1");
    assert_string_equal(find_call(&e, alice, "", "c1"), "t2");
    ask_one(&e, alice, "t3", "other", 0, "c1");
    assert_string_equal(find_call(&e, alice, "", "c1"), "t3");
    assert_string_equal(find_call(&e, alice, "demo", "c1"), "t2");
    ask_one(&e, alice, "t1", "demo", 1, "c1"); /* an older task, but it asked last */
    assert_string_equal(find_call(&e, alice, "", "c1"), "t1");
    assert_string_equal(find_call(&e, alice, "demo", "c1"), "t1");
    assert_string_equal(find_call(&e, alice, "other", "c1"), "t3");
    ask_one(&e, bob, "t9", "demo", 0, "c1");
    assert_string_equal(find_call(&e, alice, "", "c1"), "t1");
    assert_string_equal(find_call(&e, bob, "", "c1"), "t9");
    if (*e.dir)
        reopen(&e);
    if (*e.dir)
        assert_string_equal(find_call(&e, alice, "other", "c1"), "t3");
    teardown(&e);
}

static void calls_go_with_their_tasks(void **state)
{
    struct env e = setup(state);
    struct call c = {.make = make_trim, .keep = {.tasks_before_ms = T0 + 1}};
    ask_one(&e, alice, "t1", "demo", 0, "c1");
    ask_one(&e, alice, "t2", "demo", 0, "c2");
    ask_one(&e, alice, "t1", "demo", 1, "c3");
    ask(&e, alice, "t1", "demo", 2, DGM_STATE_COMPLETED, (dgm_strs){0}); /* at T0 */
    assert_string_equal(find_call(&e, alice, "", "c1"), "t1");           /* it went on */
    run_call(&e, &c);
    check_ok(c.code, c.err);
    assert_string_equal(find_call(&e, alice, "", "c1"), "");
    assert_string_equal(find_call(&e, alice, "", "c2"), "t2");
    assert_string_equal(find_call(&e, alice, "", "c3"), "");
    ask_one(&e, alice, "t4", "demo", 0, "c1"); /* its name is free again */
    assert_string_equal(find_call(&e, alice, "", "c1"), "t4");
    teardown(&e);
}

/* ---- turns ---------------------------------------------------------------------------------------------- */

static void begin_turn(struct env *e, const char *task, const char *agent, uint64_t last,
                       uint64_t ends)
{
    struct making m;
    dgm_turn_row turn = {.turn = 1,
                         .first_seq = 1,
                         .last_seq = ends,
                         .protocol = DGM_STR("ag-ui"),
                         .caller_id = DGM_STR("run")};
    make_deltas(&m, alice, task, last, 1, 1);
    m.batch.row.agent = dgm_str_from(agent);
    m.batch.turn = &turn;
    check_ok(append(e, &m.batch, NULL), (dgm_err){0});
    unmake(&m);
}

static dgm_str find_run(struct env *e, const char *agent)
{
    struct call c = {.make = make_find_turn,
                     .owner = alice,
                     .a = DGM_STR("ag-ui"),
                     .b = DGM_STR("run"),
                     .c = dgm_str_from(agent)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c.task_id;
}

static void turns_of_one_name_are_found_by_their_agents(void **state)
{
    struct env e = setup(state);
    begin_turn(&e, "t1", "demo", 0, 0);
    begin_turn(&e, "t2", "other", 0, 0);
    begin_turn(&e, "t3", "demo", 0, 0);
    begin_turn(&e, "t1", "demo", 1, 2); /* ends: that makes it no newer */
    check_str(find_run(&e, ""), "t3");
    check_str(find_run(&e, "demo"), "t3");
    check_str(find_run(&e, "other"), "t2");
    assert_null(find_run(&e, "nobody").p);
    teardown(&e);
}

/* ---- notes ---------------------------------------------------------------------------------------------- */

struct noting {
    struct call call; /* first */
    dgm_note note;
    dgm_str text;
};

static void make_put_note(struct call *c)
{
    dgm_store_put_note(c->env->store, &((struct noting *)c)->note, on_done, c);
}

static void on_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct noting *n = arg;
    note(&n->call, code, err);
    n->text = dup_text(&n->call, text);
    arrive(&n->call.wait);
}

static void make_get_note(struct call *c)
{
    const dgm_note *n = &((struct noting *)c)->note;
    dgm_store_get_note(c->env->store, n->owner, n->kind, n->name, on_note, c);
}

static dgm_note named(dgm_owner owner, const char *kind, const char *name, dgm_str text)
{
    return (dgm_note){
        .owner = owner, .kind = dgm_str_from(kind), .name = dgm_str_from(name), .text = text};
}

static void put_note(struct env *e, dgm_note what)
{
    struct noting n = {.call.make = make_put_note, .note = what};
    run_call(e, &n.call);
    check_ok(n.call.code, n.call.err);
}

static dgm_str get_note(struct env *e, dgm_owner owner, const char *kind, const char *name)
{
    struct noting n = {.call.make = make_get_note, .note = named(owner, kind, name, (dgm_str){0})};
    run_call(e, &n.call);
    check_ok(n.call.code, n.call.err);
    return n.text;
}

static void notes_are_texts_by_name(void **state)
{
    struct env e = setup(state);
    assert_null(get_note(&e, alice, "k", "n").p);
    put_note(&e, named(alice, "k", "n", DGM_STR("one")));
    put_note(&e, named(alice, "k", "m", DGM_STR("")));
    put_note(&e, named(alice, "l", "n", DGM_STR("\0\xff")));
    put_note(&e, named(bob, "k", "n", DGM_STR("bob's")));
    put_note(&e, named(nobody, "k", "n", DGM_STR("nobody's")));
    for (int round = 0; round < (*e.dir ? 2 : 1); round++) {
        check_str(get_note(&e, alice, "k", "n"), "one");
        dgm_str empty = get_note(&e, alice, "k", "m");
        assert_true(empty.p && empty.n == 0); /* it is there */
        dgm_str odd = get_note(&e, alice, "l", "n");
        assert_true(odd.n == 2 && memcmp(odd.p, "\0\xff", 2) == 0);
        check_str(get_note(&e, bob, "k", "n"), "bob's");
        check_str(get_note(&e, nobody, "k", "n"), "nobody's");
        assert_null(get_note(&e, bob, "k", "m").p);
        assert_null(get_note(&e, alice, "n", "k").p);
        if (*e.dir)
            reopen(&e);
    }
    put_note(&e, named(alice, "k", "n", DGM_STR("another")));
    check_str(get_note(&e, alice, "k", "n"), "another");
    check_str(get_note(&e, bob, "k", "n"), "bob's");
    put_note(&e, named(alice, "k", "n", (dgm_str){0}));
    assert_null(get_note(&e, alice, "k", "n").p);
    put_note(&e, named(alice, "k", "n", (dgm_str){0})); /* once more is no fault */
    check_str(get_note(&e, bob, "k", "n"), "bob's");
    teardown(&e);
}

static void on_note_of_append(dgm_code code, const dgm_err *err, void *arg)
{
    (void)err;
    atomic_store((_Atomic int *)arg, (int)code + 1);
}

static int append_with_note(struct env *e, const char *id, dgm_note what)
{
    _Atomic int code = 0; /* + 1 */
    struct making m;
    make_deltas(&m, alice, id, 0, 2, 1);
    m.batch.note = &(dgm_append_note){what, on_note_of_append, (void *)&code};
    dgm_err err = {0};
    check_ok(append(e, &m.batch, &err), err);
    unmake(&m);
    get_note(e, alice, "k", id); /* answered behind it */
    return atomic_load(&code) - 1;
}

/* Both are there after a crash or neither is: tests/wire, suite llm_kills. */
static void a_note_is_in_one_commit_with_an_append(void **state)
{
    struct env e = setup(state);
    uint64_t before = dgm_store_stats_of(e.store).commits;
    assert_int_equal(append_with_note(&e, "t1", named(alice, "k", "t1", DGM_STR("state"))), DGM_OK);
    if (*e.dir)
        assert_int_equal(dgm_store_stats_of(e.store).commits, before + 1);
    check_str(get_note(&e, alice, "k", "t1"), "state");
    dgm_note large = named(alice, "k", "t2", DGM_STR("four"));
    large.max_bytes = 3;
    assert_int_equal(append_with_note(&e, "t2", large), DGM_TOO_LARGE);
    assert_null(get_note(&e, alice, "k", "t2").p);
    assert_int_equal(get_task(&e, alice, "t2")->last_seq, 2);
    teardown(&e);
}

static void notes_expire(void **state)
{
    struct env e = setup(state);
    int64_t now = dgm_loop_unix_ms();
    char name[24];
    dgm_note stays = named(alice, "k", "stays", DGM_STR("text"));
    stays.expires_ms = now + 3600000;
    put_note(&e, stays);
    for (int i = 0; i < 150; i++) { /* several steps */
        snprintf(name, sizeof name, "gone-%d", i);
        dgm_note gone = named(alice, "k", name, DGM_STR("text"));
        gone.expires_ms = now - i;
        put_note(&e, gone);
        assert_null(get_note(&e, alice, "k", name).p);
    }
    put_note(&e, named(alice, "k", "always", DGM_STR("text")));
    trim(&e, 0); /* of tasks nothing is to go */
    check_str(get_note(&e, alice, "k", "stays"), "text");
    check_str(get_note(&e, alice, "k", "always"), "text");
    stays.expires_ms = 0; /* with another text it has another end */
    put_note(&e, stays);
    stays.expires_ms = now - 1;
    put_note(&e, stays);
    assert_null(get_note(&e, alice, "k", "stays").p);
    teardown(&e);
}

static void a_note_has_a_limit(void **state)
{
    struct env e = setup(state);
    char *text = malloc(DGM_MAX_NOTE_BYTES + 1);
    memset(text, 'x', DGM_MAX_NOTE_BYTES + 1);
    put_note(&e, named(alice, "k", "n", (dgm_str){text, DGM_MAX_NOTE_BYTES}));
    assert_int_equal(get_note(&e, alice, "k", "n").n, DGM_MAX_NOTE_BYTES);
    struct noting n = {.call.make = make_put_note,
                       .note = named(alice, "k", "n", (dgm_str){text, DGM_MAX_NOTE_BYTES + 1})};
    run_call(&e, &n.call);
    check_code(n.call.code, DGM_TOO_LARGE, &n.call.err, "note_bytes");
    assert_int_equal(get_note(&e, alice, "k", "n").n, DGM_MAX_NOTE_BYTES); /* as it was */
    free(text);
    teardown(&e);
}

DGM_TEST_MAIN(ON_EVERY(tasks_are_found_by_their_calls), ON_EVERY(calls_go_with_their_tasks),
              ON_EVERY(turns_of_one_name_are_found_by_their_agents),
              ON_EVERY(notes_are_texts_by_name), ON_EVERY(a_note_is_in_one_commit_with_an_append),
              ON_EVERY(notes_expire), ON_EVERY(a_note_has_a_limit))
