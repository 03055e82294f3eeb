#include "net/loop.h"

#include "base/arena.h"
#include "support/check.h"

#include <stdatomic.h>
#include <time.h>

static dgm_loops *loops_of(size_t n)
{
    dgm_loops *l;
    dgm_err err = {0};
    check_ok(dgm_loops_new(n, &l, &err), err);
    return l;
}

static void start(dgm_loops *l)
{
    dgm_err err = {0};
    check_ok(dgm_loops_start(l, &err), err);
}

/* ---- posting --------------------------------------------------------------------------------------------- */

struct count {
    size_t n;
    bool in_order, right_loop;
    dgm_loop *loop;
};
struct step {
    struct count *c;
    size_t i;
};

static void count_step(void *arg)
{
    struct step *s = arg;
    if (s->c->n++ != s->i)
        s->c->in_order = false;
    if (dgm_loop_current() != s->c->loop)
        s->c->right_loop = false;
}

static void what_one_thread_posts_runs_in_order(void **state)
{
    enum { N = 10000 };
    struct step *steps = calloc(N, sizeof *steps);
    dgm_loops *l = loops_of(1);
    struct count c = {0, true, true, dgm_loops_at(l, 0)};
    (void)state;
    for (size_t i = 0; i < N; i++) {
        steps[i] = (struct step){&c, i};
        if (i == 100)
            start(l);
        dgm_loop_post(c.loop, count_step, &steps[i]);
    }
    dgm_loops_stop(l);
    assert_int_equal(c.n, N);
    assert_true(c.in_order);
    assert_true(c.right_loop);
    dgm_loops_free(l);
    free(steps);
}

struct ring {
    dgm_loops *loops;
    atomic_size_t hops;
    size_t want;
    uv_sem_t done;
};

static void hop(void *arg)
{
    struct ring *r = arg;
    size_t me = dgm_loop_current()->index;
    size_t n = atomic_fetch_add(&r->hops, 1) + 1;
    if (n == r->want)
        uv_sem_post(&r->done);
    else if (n < r->want)
        dgm_loop_post(dgm_loops_at(r->loops, (me + 1) % r->loops->n), hop, r);
}

static void loops_post_to_each_other(void **state)
{
    struct ring r = {.loops = loops_of(3), .want = 3000};
    (void)state;
    uv_sem_init(&r.done, 0);
    start(r.loops);
    for (int i = 0; i < 4; i++)
        dgm_loop_post(dgm_loops_at(r.loops, 0), hop, &r);
    uv_sem_wait(&r.done);
    dgm_loops_free(r.loops);
    uv_sem_destroy(&r.done);
}

static void a_loop_that_posts_to_itself_goes_on(void **state)
{
    struct ring r = {.loops = loops_of(1), .want = 1000};
    (void)state;
    uv_sem_init(&r.done, 0);
    start(r.loops);
    dgm_loop_post(dgm_loops_at(r.loops, 0), hop, &r);
    uv_sem_wait(&r.done);
    dgm_loops_free(r.loops);
    uv_sem_destroy(&r.done);
}

struct crowd {
    dgm_loop *loop;
    size_t ran; /* on the loop alone */
};
static void ran(void *arg)
{
    ((struct crowd *)arg)->ran++;
}
static void post_many(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < 5000; i++)
        dgm_loop_post(c->loop, ran, c);
}

static void many_threads_post_and_stop_runs_what_was_posted(void **state)
{
    dgm_loops *l = loops_of(2);
    struct crowd c = {dgm_loops_at(l, 1), 0};
    uv_thread_t t[4];
    (void)state;
    start(l);
    for (int i = 0; i < 4; i++)
        uv_thread_create(&t[i], post_many, &c);
    for (int i = 0; i < 4; i++)
        uv_thread_join(&t[i]);
    dgm_loops_stop(l);
    assert_int_equal(c.ran, 20000);
    dgm_loop_post(c.loop, ran, &c); /* too late for the thread */
    assert_int_equal(c.ran, 20000);
    dgm_loops_free(l);
    assert_int_equal(c.ran, 20001);
}

static void loops_that_never_started_run_what_was_posted_too(void **state)
{
    dgm_loops *l = loops_of(2);
    struct crowd c = {dgm_loops_at(l, 1), 0};
    (void)state;
    dgm_loop_post(c.loop, ran, &c);
    dgm_loops_free(l);
    assert_int_equal(c.ran, 1);
}

static void more_loops_than_the_limit_are_refused(void **state)
{
    dgm_loops *l;
    dgm_err err = {0};
    (void)state;
    assert_int_equal(dgm_loops_new(65, &l, &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "loops"));
}

/* ---- turns ----------------------------------------------------------------------------------------------- */

struct turns {
    dgm_loop *loop;
    dgm_loop_turn node, second;
    int ran, ran_second, left;
    bool ran_inside;
    uv_sem_t done;
};

static void on_turn_end(void *arg)
{
    struct turns *t = arg;
    t->ran++;
    if (t->left-- > 0)
        dgm_loop_at_turn_end(t->loop, &t->node); /* from inside: the next turn */
    else
        uv_sem_post(&t->done);
}

static void on_second(void *arg)
{
    ((struct turns *)arg)->ran_second++;
}

static void ask_thrice(void *arg)
{
    struct turns *t = arg;
    dgm_loop_at_turn_end(t->loop, &t->node);
    dgm_loop_at_turn_end(t->loop, &t->second);
    dgm_loop_at_turn_end(t->loop, &t->node);
    dgm_loop_at_turn_end(t->loop, &t->node);
    t->ran_inside = t->ran != 0;
}

static void a_turn_end_runs_once_however_often_it_is_asked_for(void **state)
{
    dgm_loops *l = loops_of(1);
    struct turns t = {.loop = dgm_loops_at(l, 0), .left = 50};
    (void)state;
    t.node = (dgm_loop_turn){.fn = on_turn_end, .arg = &t};
    t.second = (dgm_loop_turn){.fn = on_second, .arg = &t};
    uv_sem_init(&t.done, 0);
    start(l);
    dgm_loop_post(t.loop, ask_thrice, &t);
    uv_sem_wait(&t.done);
    dgm_loops_free(l);
    assert_int_equal(t.ran, 51);
    assert_int_equal(t.ran_second, 1);
    assert_false(t.ran_inside);
    uv_sem_destroy(&t.done);
}

struct taken {
    dgm_loop *loop;
    dgm_loop_turn node[4];
    char ran[16]; /* which, in order */
    size_t n;
    uv_sem_t done;
};
static struct taken taken;

static void on_node(void *arg)
{
    int i = *(int *)arg;
    taken.ran[taken.n++] = (char)('0' + i);
    if (i ==
        1) { /* one that runs later in this turn end, one of the next, and one that is not queued */
        dgm_loop_not_at_turn_end(taken.loop, &taken.node[2]);
        dgm_loop_at_turn_end(taken.loop, &taken.node[1]);
        dgm_loop_at_turn_end(taken.loop, &taken.node[2]);
        dgm_loop_not_at_turn_end(taken.loop, &taken.node[1]);
        dgm_loop_not_at_turn_end(taken.loop, &taken.node[0]);
    }
    if (i == 2)
        uv_sem_post(&taken.done);
}

static void ask_four(void *arg)
{
    static int index[4] = {0, 1, 2, 3};
    (void)arg;
    for (int i = 0; i < 4; i++) {
        taken.node[i] = (dgm_loop_turn){.fn = on_node, .arg = &index[i]};
        dgm_loop_at_turn_end(taken.loop, &taken.node[i]);
    }
    dgm_loop_not_at_turn_end(taken.loop, &taken.node[3]); /* the last: the tail must follow */
    dgm_loop_at_turn_end(taken.loop, &taken.node[3]);
}

static void a_turn_end_can_be_taken_back(void **state)
{
    dgm_loops *l = loops_of(1);
    (void)state;
    taken = (struct taken){.loop = dgm_loops_at(l, 0)};
    uv_sem_init(&taken.done, 0);
    start(l);
    dgm_loop_post(taken.loop, ask_four, NULL);
    uv_sem_wait(&taken.done);
    dgm_loops_free(l);
    assert_string_equal(taken.ran, "0132");
    uv_sem_destroy(&taken.done);
}

/* ---- timers and stopping ------------------------------------------------------------------------------------ */

struct alarm {
    dgm_timer timer, never;
    dgm_loop_stop stop, earlier;
    dgm_loop *loop;
    int rang, closed, stops, order;
    uint64_t started, at;
    uv_sem_t done;
};

static void ring(void *arg)
{
    struct alarm *a = arg;
    if (++a->rang == 1)
        a->at = uv_hrtime();
    if (a->rang < 3)
        dgm_timer_start(&a->timer, 1);
    else
        uv_sem_post(&a->done);
}

static void wrong(void *arg)
{
    ((struct alarm *)arg)->rang += 1000;
}

static void on_closed(void *arg)
{
    ((struct alarm *)arg)->closed++;
}

static void on_stop(void *arg)
{
    struct alarm *a = arg;
    a->order = a->order * 10 + 1;
    a->stops++;
    dgm_timer_close(&a->timer, on_closed, a);
    dgm_timer_close(&a->never, on_closed, a);
}

static void on_stop_earlier(void *arg)
{
    struct alarm *a = arg;
    a->order = a->order * 10 + 2;
}

static void begin(void *arg)
{
    struct alarm *a = arg;
    dgm_timer_init(a->loop, &a->timer, ring, a);
    dgm_timer_init(a->loop, &a->never, wrong, a);
    dgm_loop_on_stop(a->loop, &a->earlier);
    dgm_loop_on_stop(a->loop, &a->stop);
    a->started = uv_hrtime();
    dgm_timer_start(&a->never, 5);
    dgm_timer_stop(&a->never);
    dgm_timer_start(&a->timer, 1000);
    dgm_timer_start(&a->timer, 20); /* starts over */
}

static void timers_ring_and_stop_closes_them(void **state)
{
    dgm_loops *l = loops_of(1);
    struct alarm a = {.loop = dgm_loops_at(l, 0)};
    (void)state;
    a.stop = (dgm_loop_stop){.fn = on_stop, .arg = &a};
    a.earlier = (dgm_loop_stop){.fn = on_stop_earlier, .arg = &a};
    uv_sem_init(&a.done, 0);
    start(l);
    dgm_loop_post(a.loop, begin, &a);
    uv_sem_wait(&a.done);
    dgm_loops_stop(l);
    assert_int_equal(a.rang, 3);
    assert_true(a.at - a.started >= 15 * 1000000ull);
    assert_int_equal(a.stops, 1);
    assert_int_equal(a.closed, 2);
    assert_int_equal(a.order, 12); /* the last one registered first */
    dgm_loops_free(l);
    uv_sem_destroy(&a.done);
}

/* ---- many timers ------------------------------------------------------------------------------------------------ */

enum { N_BELLS = 500 };

struct bell {
    dgm_timer timer;
    struct bells *all;
    uint64_t due;
    size_t started; /* the number of its last start */
    int rang;
    bool is_stopped;
};

struct bells {
    dgm_loop *loop;
    struct bell at[N_BELLS];
    dgm_timer end, again;
    uint64_t random, last_due;
    size_t n_started, last_started, n_again;
    int n_wrong, n_closed;
    uv_sem_t done;
};

static uint64_t draw(struct bells *b, uint64_t below)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (b->random >> 33) % below;
}

static void bell_start(struct bell *x, uint64_t ms)
{
    x->due = uv_now(&x->all->loop->uv) + ms;
    x->started = ++x->all->n_started;
    x->is_stopped = false;
    dgm_timer_start(&x->timer, ms);
}

/* Earlier ones first; of the same time those that were started first. */
static void on_bell(void *arg)
{
    struct bell *x = arg;
    struct bells *b = x->all;
    x->rang++;
    b->n_wrong += x->is_stopped || x->due > uv_now(&b->loop->uv) || x->due < b->last_due ||
                  (x->due == b->last_due && x->started < b->last_started);
    b->last_due = x->due;
    b->last_started = x->started;
    x->is_stopped = true; /* until it is started again */
    struct bell *other = &b->at[draw(b, N_BELLS)];
    if (x->rang == 1 && draw(b, 3) == 0)
        bell_start(x, 1 + draw(b, 10));
    if (!other->is_stopped && draw(b, 4) == 0) {
        dgm_timer_stop(&other->timer);
        other->is_stopped = true;
    }
}

/* It waits for no time at all, again and again, and the others ring nevertheless. */
static void on_again(void *arg)
{
    struct bells *b = arg;
    b->n_again++;
    dgm_timer_start(&b->again, 0);
}

static void on_bell_closed(void *arg)
{
    struct bells *b = arg;
    if (++b->n_closed == N_BELLS + 2)
        uv_sem_post(&b->done);
}

/* On a slow machine some were started again only just now. */
static void on_bells_end(void *arg)
{
    struct bells *b = arg;
    for (size_t i = 0; i < N_BELLS; i++) {
        if (!b->at[i].is_stopped) {
            dgm_timer_start(&b->end, 20);
            return;
        }
    }
    for (size_t i = 0; i < N_BELLS; i++)
        dgm_timer_close(&b->at[i].timer, on_bell_closed, b);
    dgm_timer_close(&b->again, on_bell_closed, b);
    dgm_timer_close(&b->end, on_bell_closed, b);
    b->n_wrong += b->n_closed != 0; /* later */
}

static void start_bells(void *arg)
{
    struct bells *b = arg;
    uv_update_time(&b->loop->uv);
    for (size_t i = 0; i < N_BELLS; i++) {
        b->at[i].all = b;
        dgm_timer_init(b->loop, &b->at[i].timer, on_bell, &b->at[i]);
        bell_start(&b->at[i], draw(b, 40));
        if (draw(b, 3) == 0)
            bell_start(&b->at[i], draw(b, 40)); /* starts over */
    }
    dgm_timer_init(b->loop, &b->end, on_bells_end, b);
    dgm_timer_start(&b->end, 100);
    dgm_timer_init(b->loop, &b->again, on_again, b);
    dgm_timer_start(&b->again, 0);
}

static void many_timers_ring_in_order(void **state)
{
    dgm_loops *l = loops_of(1);
    struct bells *b = calloc(1, sizeof *b);
    (void)state;
    b->loop = dgm_loops_at(l, 0);
    b->random = 7;
    uv_sem_init(&b->done, 0);
    start(l);
    dgm_loop_post(b->loop, start_bells, b);
    uv_sem_wait(&b->done);
    dgm_loops_free(l);
    size_t rang = 0;
    for (size_t i = 0; i < N_BELLS; i++)
        rang += b->at[i].rang > 0;
    assert_int_equal(b->n_wrong, 0);
    assert_true(rang > N_BELLS / 2);
    assert_true(b->n_again > 10);
    uv_sem_destroy(&b->done);
    free(b);
}

static void off_stop(void *arg)
{
    struct alarm *a = arg;
    dgm_loop_on_stop(a->loop, &a->stop);
    dgm_loop_on_stop(a->loop, &a->earlier);
    dgm_loop_off_stop(a->loop, &a->stop);
    dgm_loop_off_stop(a->loop, &a->stop);
}

static void a_stop_handler_can_be_taken_back(void **state)
{
    dgm_loops *l = loops_of(1);
    struct alarm a = {.loop = dgm_loops_at(l, 0)};
    (void)state;
    a.stop = (dgm_loop_stop){.fn = on_stop, .arg = &a};
    a.earlier = (dgm_loop_stop){.fn = on_stop_earlier, .arg = &a};
    start(l);
    dgm_loop_post(a.loop, off_stop, &a);
    dgm_loops_free(l);
    assert_int_equal(a.stops, 0);
    assert_int_equal(a.order, 2);
}

static void current_is_the_loop_of_this_thread(void **state)
{
    struct timespec t;
    (void)state;
    assert_null(dgm_loop_current());
    clock_gettime(CLOCK_REALTIME, &t);
    assert_true(llabs((long long)dgm_loop_unix_ms() - (long long)t.tv_sec * 1000) < 60000);
}

static void *look_at_the_clock(void *arg)
{
    int64_t before = 0;
    for (int i = 0; i < 200000; i++) {
        int64_t now = dgm_loop_unix_ms();
        if (now < before)
            *(int *)arg += 1;
        before = now;
    }
    return NULL;
}

static void the_clock_does_not_go_back(void **state)
{
    pthread_t threads[4];
    int back[4] = {0};
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_at_the_clock, &back[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(back[i], 0);
    }
}

struct ball {
    dgm_loops *loops;
    size_t left, thrown;
};

static void throw_back(void *arg)
{
    struct ball *b = arg;
    b->thrown++;
    if (b->left-- > 0)
        dgm_loop_post(dgm_loops_at(b->loops, b->left % 3), throw_back, b);
}

static void what_is_left_at_the_end_may_go_to_any_loop(void **state)
{
    struct ball b = {.loops = loops_of(3), .left = 30};
    (void)state;
    start(b.loops);
    dgm_loops_stop(b.loops);
    dgm_loop_post(dgm_loops_at(b.loops, 2), throw_back, &b);
    dgm_loops_free(b.loops);
    assert_int_equal(b.thrown, 31);
}

DGM_TEST_MAIN(dgm_test(what_one_thread_posts_runs_in_order), dgm_test(loops_post_to_each_other),
              dgm_test(a_loop_that_posts_to_itself_goes_on),
              dgm_test(many_threads_post_and_stop_runs_what_was_posted),
              dgm_test(loops_that_never_started_run_what_was_posted_too),
              dgm_test(what_is_left_at_the_end_may_go_to_any_loop),
              dgm_test(more_loops_than_the_limit_are_refused),
              dgm_test(a_turn_end_runs_once_however_often_it_is_asked_for),
              dgm_test(a_turn_end_can_be_taken_back), dgm_test(timers_ring_and_stop_closes_them),
              dgm_test(many_timers_ring_in_order), dgm_test(a_stop_handler_can_be_taken_back),
              dgm_test(current_is_the_loop_of_this_thread), dgm_test(the_clock_does_not_go_back))
