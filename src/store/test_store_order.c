/* test_store_order.c - answers come in order, on every driver. */
#include "test_env.h"

/* One loop makes many calls at once, about a few tasks; another does the same with tasks of its own. */
#define ORDER_TASKS 5
#define ORDER_ROUNDS 60

struct ordered {
    struct env *env;
    struct wait *wait;
    const char *prefix;
    dgm_loop *loop;
    uint64_t appended[ORDER_TASKS];
    size_t asked[ORDER_TASKS], answered[ORDER_TASKS]; /* calls about a task */
    struct order_call {
        struct ordered *o;
        size_t task, place;
        uint64_t last; /* what a read has to see at least */
    } calls[ORDER_ROUNDS * ORDER_TASKS * 4];
    size_t n_calls, n_answers;
};

static void ordered_answer(struct order_call *c)
{
    struct ordered *o = c->o;
    assert_ptr_equal(dgm_loop_current(), o->loop);
    assert_int_equal(o->answered[c->task], c->place);
    o->answered[c->task]++;
    if (++o->n_answers == o->n_calls)
        arrive(o->wait);
}

static void ordered_append(dgm_code code, const dgm_err *err, void *arg)
{
    (void)err;
    assert_int_equal(code, DGM_OK);
    ordered_answer(arg);
}

static void ordered_task(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct order_call *c = arg;
    (void)err;
    assert_int_equal(code, DGM_OK);
    assert_true(c->last == 0 || row->last_seq >= c->last);
    ordered_answer(c);
}

static void ordered_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                            void *arg)
{
    struct order_call *c = arg;
    (void)err;
    assert_int_equal(code, DGM_OK);
    assert_true(n >= c->last);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(records[i]->head.seq, i + 1);
    ordered_answer(c);
}

static void ordered_turns(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                          void *arg)
{
    (void)turns, (void)n, (void)err;
    assert_int_equal(code, DGM_OK);
    ordered_answer(arg);
}

static void make_ordered(void *arg)
{
    struct ordered *o = arg;
    dgm_store *s = o->env->store;
    o->loop = dgm_loop_current();
    for (size_t i = 0; i < ORDER_ROUNDS * ORDER_TASKS; i++) {
        char id[24];
        struct making m;
        size_t t = i % ORDER_TASKS;
        snprintf(id, sizeof id, "%s%zu", o->prefix, t);
        for (size_t k = 0; k < 4; k++) {
            struct order_call *c = &o->calls[o->n_calls++];
            bool writes = k == (i / ORDER_TASKS) % 4;
            *c = (struct order_call){o, t, o->asked[t]++, o->appended[t]};
            if (writes) {
                make_deltas(&m, alice, id, o->appended[t], 2, 1);
                o->appended[t] += 2;
                m.batch.sync = i % 7 == 0;
                dgm_store_append(s, &m.batch, ordered_append, c);
                unmake(&m);
            } else if (k == 0) {
                dgm_store_get_turns(s, alice, dgm_str_from(id), ordered_turns, c);
            } else if (k == 1) {
                dgm_store_get_records(s, alice, dgm_str_from(id), 1, 10000, SIZE_MAX,
                                      ordered_records, c);
            } else {
                dgm_store_get_task(s, alice, dgm_str_from(id), ordered_task, c);
            }
        }
    }
}

static void answers_come_in_order_and_reads_see_appends(void **state)
{
    struct env e = setup(state);
    struct wait wait = WAIT_FOR(2);
    struct ordered *o = dgm_xcalloc(2, sizeof *o);
    for (size_t i = 0; i < 2; i++) {
        o[i].env = &e;
        o[i].wait = &wait;
        o[i].prefix = i ? "x" : "y";
        dgm_loop_post(dgm_loops_at(e.loops, i), make_ordered, &o[i]);
    }
    wait_all(&wait);
    for (size_t t = 0; t < ORDER_TASKS; t++)
        assert_int_equal(o[0].appended[t], 2 * ORDER_ROUNDS);
    free(o);
    teardown(&e);
}

/* Closing waits for all that was asked for, and every callback comes. */
struct flood {
    struct env *env;
    struct wait *made;
    size_t n, answered, failed;
};

static void on_flooded(dgm_code code, const dgm_err *err, void *arg)
{
    struct flood *f = arg;
    (void)err;
    f->answered++;
    f->failed += code != DGM_OK;
}

static void make_flood(void *arg)
{
    struct flood *f = arg;
    for (size_t i = 0; i < f->n; i++) {
        char id[24];
        struct making m;
        snprintf(id, sizeof id, "t%04zu", i);
        make_deltas(&m, alice, id, 0, 1, 1);
        m.batch.sync = i % 100 == 0;
        dgm_store_append(f->env->store, &m.batch, on_flooded, f);
        unmake(&m);
    }
    arrive(f->made);
}

static void closing_finishes_what_was_asked_for(void **state)
{
    struct env e = setup(state);
    struct wait made = WAIT_FOR(1);
    struct flood f = {.env = &e, .made = &made, .n = 500};
    dgm_loop_post(dgm_loops_at(e.loops, 0), make_flood, &f);
    wait_all(&made);
    dgm_store_close(e.store);
    e.store = NULL;
    dgm_loops_free(e.loops); /* runs what was posted */
    e.loops = NULL;
    assert_int_equal(f.answered, 500);
    assert_int_equal(f.failed, 0);
    if (*e.dir) {
        dgm_arena_free(e.arena);
        env_loops(&e, 1);
        env_open(&e);
        dgm_list_query q = {.owner = alice, .page_size = 1};
        assert_int_equal(list(&e, &q).total, 500);
    }
    teardown(&e);
}

DGM_TEST_MAIN(ON_EVERY(answers_come_in_order_and_reads_see_appends),
              ON_EVERY(closing_finishes_what_was_asked_for))
