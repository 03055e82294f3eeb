/* core/test_log.c - a log with readers on several loops: everything once, in order. */
#include "core/log.h"
#include "support/check.h"

#include <semaphore.h>

#define N_LOOPS 3
#define N_READERS 9

static dgm_record *record(uint64_t seq)
{
    char text[32];
    int n = snprintf(text, sizeof text, "record %llu", (unsigned long long)seq);
    dgm_record *r = NULL;
    assert_int_equal(dgm_record_from_bytes((dgm_record_head){.seq = seq, .kind = DGM_EVENT_MESSAGE},
                                           (dgm_str){text, (size_t)n}, &r, NULL),
                     DGM_OK);
    return r;
}

struct test {
    dgm_loops *loops;
    dgm_log *log;
    sem_t done;
    uint64_t total, appended;
    dgm_loop_turn more;
};

struct one {
    struct test *t;
    dgm_log_reader *reader;
    uint64_t after, next, n_calls;
    uint64_t stop_at; /* closes there and opens again: a client that was cut */
    bool failed;
};

static void on_ready(void *arg);

static void open_reader(void *arg)
{
    struct one *o = arg;
    o->reader = dgm_log_reader_open(o->t->log, o->after, on_ready, o);
    o->next = o->after + 1;
}

static void on_ready(void *arg)
{
    struct one *o = arg;
    dgm_record *r;
    o->n_calls++;
    while ((r = dgm_log_reader_next(o->reader))) {
        char want[32];
        snprintf(want, sizeof want, "record %llu", (unsigned long long)o->next);
        o->failed = o->failed || r->head.seq != o->next || strcmp(r->bytes, want) != 0 ||
                    dgm_log_reader_seq(o->reader) != o->next;
        if (o->next == o->stop_at) {
            o->after = o->next;
            o->stop_at = 0;
            dgm_log_reader_close(o->reader);
            dgm_loop_post(dgm_loop_current(), open_reader, o);
            return;
        }
        o->next++;
    }
    if (dgm_log_reader_is_over(o->reader)) {
        o->failed = o->failed || o->next != o->t->total + 1;
        dgm_log_reader_close(o->reader);
        sem_post(&o->t->done);
    }
}

/* The owner: some records a turn, published a turn later, as a store would. */
static void append_some(void *arg)
{
    struct test *t = arg;
    uint64_t was = t->log->last;
    if (was)
        dgm_log_publish(t->log, was);
    for (int i = 0; i < 7 && t->appended < t->total; i++)
        dgm_log_append(t->log, record(++t->appended));
    if (was == t->total)
        dgm_log_close(t->log, t->log->last);
    else
        dgm_loop_post(dgm_loop_current(), append_some, t);
}

static void start(struct test *t, uint64_t total)
{
    dgm_err err = {0};
    *t = (struct test){.total = total};
    sem_init(&t->done, 0, 0);
    assert_int_equal(dgm_loops_new(N_LOOPS, &t->loops, &err), DGM_OK);
    t->log = dgm_log_new(t->loops, 1);
    assert_int_equal(dgm_loops_start(t->loops, &err), DGM_OK);
}

static void stop(struct test *t)
{
    dgm_loops_stop(t->loops);
    assert_int_equal(dgm_log_n_readers(t->log), 0);
    dgm_log_unref(t->log);
    dgm_loops_free(t->loops);
    sem_destroy(&t->done);
}

static void read_all(uint64_t total, bool cut)
{
    struct test t;
    struct one readers[N_READERS];
    start(&t, total);
    for (size_t i = 0; i < N_READERS; i++) {
        readers[i] = (struct one){.t = &t, .stop_at = cut ? 1 + i * total / N_READERS : 0};
        dgm_loop_post(dgm_loops_at(t.loops, i % N_LOOPS), open_reader, &readers[i]);
    }
    dgm_loop_post(dgm_loops_at(t.loops, 0), append_some, &t);
    for (size_t i = 0; i < N_READERS; i++)
        sem_wait(&t.done);
    stop(&t);
    for (size_t i = 0; i < N_READERS; i++)
        assert_false(readers[i].failed);
}

static void readers_on_all_loops_see_everything_once(void **state)
{
    /* around the ends of segments */
    static const uint64_t totals[] = {1, 3, 4, 5, 19, 20, 21, 83, 84, 85, 148, 149, 5000};
    (void)state;
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        read_all(totals[i], false);
}

static void a_reader_that_was_cut_goes_on_where_it_was(void **state)
{
    (void)state;
    for (uint64_t total = 9; total < 2000; total = total * 3 + 1)
        read_all(total, true);
}

static void nothing_is_readable_before_it_is_published(void **state)
{
    struct test t;
    (void)state;
    start(&t, 0);
    dgm_log_append(t.log, record(1));
    dgm_log_append(t.log, record(2));
    assert_int_equal(t.log->last, 2);
    assert_int_equal(t.log->published, 0);
    dgm_log_publish(t.log, 1);
    dgm_log_publish(t.log, 1); /* again is nothing */
    assert_int_equal(t.log->published, 1);
    assert_int_equal(t.log->bytes, strlen("record 1record 2"));
    stop(&t);
}

static void a_trimmed_log_begins_later(void **state)
{
    struct test t;
    dgm_err err = {0};
    (void)state;
    t = (struct test){.total = 0};
    sem_init(&t.done, 0, 0);
    assert_int_equal(dgm_loops_new(1, &t.loops, &err), DGM_OK);
    t.log = dgm_log_new(t.loops, 100);
    t.total = 300;
    t.appended = 99;
    assert_int_equal(dgm_loops_start(t.loops, &err), DGM_OK);
    struct one reader = {.t = &t, .after = 99};
    dgm_loop_post(dgm_loops_at(t.loops, 0), open_reader, &reader);
    dgm_loop_post(dgm_loops_at(t.loops, 0), append_some, &t);
    sem_wait(&t.done);
    stop(&t);
    assert_false(reader.failed);
}

struct front {
    struct test *t;
    struct one readers[3];
    uint64_t first; /* what is in front so far */
};

/* Older records, some at a time, while readers of the later ones are open. */
static void put_in_front(void *arg)
{
    struct front *f = arg;
    dgm_record *some[90];
    size_t n = 0;
    while (n < 90 && f->first > 1)
        some[n++] = record(--f->first);
    for (size_t i = 0; i < n / 2; i++) {
        dgm_record *other = some[i];
        some[i] = some[n - 1 - i];
        some[n - 1 - i] = other;
    }
    dgm_log_prepend(f->t->log, some, n);
    assert_int_equal(f->t->log->first_seq, f->first);
    size_t which = f->first == 1 ? 2 : 1;
    if (f->first == 1 || f->first == 210) {
        f->readers[which] = (struct one){.t = f->t, .after = f->first - 1};
        dgm_loop_post(dgm_loops_at(f->t->loops, which), open_reader, &f->readers[which]);
    }
    if (f->first > 1)
        dgm_loop_post(dgm_loop_current(), put_in_front, f);
}

static void older_records_can_be_put_in_front(void **state)
{
    struct test t = {.total = 1000, .appended = 299};
    struct front f = {.t = &t, .first = 300};
    dgm_err err = {0};
    (void)state;
    sem_init(&t.done, 0, 0);
    assert_int_equal(dgm_loops_new(N_LOOPS, &t.loops, &err), DGM_OK);
    t.log = dgm_log_new(t.loops, 300);
    assert_int_equal(dgm_loops_start(t.loops, &err), DGM_OK);
    f.readers[0] = (struct one){.t = &t, .after = 299};
    dgm_loop_post(dgm_loops_at(t.loops, 0), open_reader, &f.readers[0]);
    dgm_loop_post(dgm_loops_at(t.loops, 0), append_some, &t);
    dgm_loop_post(dgm_loops_at(t.loops, 0), put_in_front, &f);
    for (size_t i = 0; i < 3; i++)
        sem_wait(&t.done);
    stop(&t);
    for (size_t i = 0; i < 3; i++)
        assert_false(f.readers[i].failed);
}

static void readers_can_be_dismissed(void **state)
{
    struct test t;
    (void)state;
    start(&t, 2);
    dgm_log_append(t.log, record(1));
    dgm_log_append(t.log, record(2));
    dgm_log_append(t.log, record(3));
    dgm_log_publish(t.log, 2);
    struct one reader = {.t = &t};
    dgm_loop_post(dgm_loops_at(t.loops, 1), open_reader, &reader);
    dgm_log_close(t.log, t.log->published);
    sem_wait(&t.done); /* with two, the third is not published */
    stop(&t);
    assert_false(reader.failed);
}

static void ignore_records(void *arg)
{
    (void)arg;
}

static void open_at_0(void *arg)
{
    struct one *o = arg;
    o->reader = dgm_log_reader_open(o->t->log, 0, ignore_records, o);
    sem_post(&o->t->done);
}

static void read_to_the_cut(void *arg)
{
    struct one *o = arg;
    o->failed = dgm_log_reader_is_cut(o->reader) || !dgm_log_reader_next(o->reader) ||
                !dgm_log_reader_is_cut(o->reader) || dgm_log_reader_next(o->reader);
    dgm_log_reader_close(o->reader);
    sem_post(&o->t->done);
}

/* Without an end, after what is published. */
static void readers_can_be_cut(void **state)
{
    struct test t;
    (void)state;
    start(&t, 1);
    dgm_log_append(t.log, record(1));
    dgm_log_append(t.log, record(2));
    dgm_log_publish(t.log, 1);
    struct one reader = {.t = &t};
    dgm_loop_post(dgm_loops_at(t.loops, 1), open_at_0, &reader);
    sem_wait(&t.done);
    dgm_log_cut(t.log);
    dgm_loop_post(dgm_loops_at(t.loops, 1), read_to_the_cut, &reader);
    sem_wait(&t.done);
    stop(&t);
    assert_false(reader.failed);
}

/* Whether they are in one segment or in several. */
static void the_last_records_are_given_in_order(void **state)
{
    struct test t;
    dgm_buf scratch;
    (void)state;
    dgm_buf_init(&scratch, SIZE_MAX);
    start(&t, 0);
    for (uint64_t last = 1; last <= 300; last++) {
        dgm_log_append(t.log, record(last));
        for (uint64_t n = 1; n <= last; n += last % 50 == 0 ? 1 : 37) {
            dgm_record **tail = dgm_log_tail(t.log, n, &scratch);
            for (uint64_t i = 0; i < n; i++)
                assert_int_equal(tail[i]->head.seq, last - n + 1 + i);
        }
    }
    dgm_buf_done(&scratch);
    stop(&t);
}

DGM_TEST_MAIN(dgm_test(the_last_records_are_given_in_order), dgm_test(readers_can_be_cut),
              dgm_test(older_records_can_be_put_in_front), dgm_test(readers_can_be_dismissed),
              dgm_test(nothing_is_readable_before_it_is_published),
              dgm_test(readers_on_all_loops_see_everything_once),
              dgm_test(a_reader_that_was_cut_goes_on_where_it_was),
              dgm_test(a_trimmed_log_begins_later))
