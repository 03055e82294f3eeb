/*
 * test_env.h - for the tests of stores: a store with its loops, calls that are waited for, appends of
 * small records.
 */
#pragma once

#include "base/limits.h"
#include "store/share.h"
#include "store/test_database.h"
#include "support/check.h"

#include <pthread.h>
#include <unistd.h>

/* ---- a store, its loops, calls that wait ----------------------------------------------------------- */

struct env {
    char dir[64], url[400];
    dgm_loops *loops;
    dgm_store *store;
    dgm_arena *arena; /* of what calls return */
};

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t left;
};
#define WAIT_FOR(n)                                                                                \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, (n)                                   \
    }

static inline void arrive(struct wait *w)
{
    pthread_mutex_lock(&w->lock);
    if (--w->left == 0)
        pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static inline void wait_all(struct wait *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->left)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static inline void env_loops(struct env *e, size_t n)
{
    dgm_err err = {0};
    e->arena = dgm_arena_new();
    check_ok(dgm_loops_new(n, &e->loops, &err), err);
    check_ok(dgm_loops_start(e->loops, &err), err);
}

static inline void env_dir(struct env *e)
{
    snprintf(e->dir, sizeof e->dir, "/tmp/dgm-store-XXXXXX");
    assert_non_null(mkdtemp(e->dir));
    snprintf(e->url, sizeof e->url, "sqlite:%s/t.db", e->dir);
}

static inline void env_open(struct env *e)
{
    dgm_err err = {0};
    check_ok(dgm_store_open(e->url, &e->store, &err), err);
}

static inline struct env setup(void **state)
{
    struct env e = {0};
    const char *driver = *state;
    env_loops(&e, 2);
    if (strcmp(driver, "memory") == 0)
        snprintf(e.url, sizeof e.url, "memory:");
    else
        env_dir(&e);
    if (strcmp(driver, "postgres") == 0)
        postgres_url(e.url, sizeof e.url);
    env_open(&e);
    return e;
}

static inline bool is_sqlite(const struct env *e)
{
    return strncmp(e->url, "sqlite:", 7) == 0;
}

static inline const char *db_path(const struct env *e)
{
    return e->url + strlen("sqlite:");
}

static inline void remove_dir(const char *dir)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (*dir && system(command) != 0)
        fail();
}

static inline void teardown(struct env *e)
{
    dgm_store_close(e->store);
    dgm_loops_free(e->loops);
    dgm_arena_free(e->arena);
    remove_dir(e->dir);
    if (strncmp(e->url, "postgres:", 9) == 0)
        check_postgres(e->url);
}

/* A store that was opened again is another server: the tasks are its own, without the change of a fence that a takeover is. */
static inline void own_all_tasks(struct env *e)
{
    char sql[100];
    if (!dgm_store_is_shared(e->store))
        return;
    const char *conninfo = strstr(e->url, "host=");
    assert_non_null(conninfo);
    PGconn *c = PQconnectdb(conninfo);
    snprintf(sql, sizeof sql, "UPDATE dragoman.tasks SET owner=%lld,fence=1",
             (long long)dgm_store_replica(e->store).id);
    postgres_ask(c, sql);
    PQfinish(c);
}

static inline void reopen(struct env *e)
{
    dgm_store_close(e->store);
    e->store = NULL;
    env_open(e);
    own_all_tasks(e);
}

/* One call and its answer. */
struct call {
    struct env *env;
    struct wait wait;
    void (*make)(struct call *c);
    const dgm_append *batch;
    dgm_owner owner;
    dgm_str a, b, c;
    uint64_t seq;
    size_t max, max_bytes;
    const dgm_list_query *query;
    const dgm_task_row *after;
    dgm_retention keep;

    dgm_code code;
    dgm_err err;
    dgm_task_row *rows;
    dgm_record **records;
    dgm_turn_row *turns;
    dgm_dedupe_row *dedupe;
    dgm_str task_id;
    size_t n, total;
    bool more;
};

static inline void make_call(void *arg)
{
    struct call *c = arg;
    c->make(c);
}

static inline void unref_record(void *r)
{
    dgm_record_unref(r);
}

static inline void run_call_on(struct env *e, size_t loop, struct call *c)
{
    c->env = e;
    c->wait = (struct wait)WAIT_FOR(1);
    dgm_loop_post(dgm_loops_at(e->loops, loop), make_call, c);
    wait_all(&c->wait);
}

static inline void run_call(struct env *e, struct call *c)
{
    run_call_on(e, 0, c);
}

static inline void note(struct call *c, dgm_code code, const dgm_err *err)
{
    c->code = code;
    assert_int_equal(code != DGM_OK, err != NULL);
    if (err) {
        c->err = *err;
        assert_int_equal(err->code, code);
        assert_true(err->msg[0] != 0);
    }
}

static inline void on_done(dgm_code code, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    arrive(&c->wait);
}

static inline dgm_str dup_text(struct call *c, dgm_str s)
{
    return s.p ? dgm_arena_dup(c->env->arena, s) : s;
}

static inline dgm_task_row dup_row(struct call *c, const dgm_task_row *row)
{
    dgm_task_row r = *row;
    r.owner.tenant = dup_text(c, r.owner.tenant);
    r.owner.principal = dup_text(c, r.owner.principal);
    r.id = dup_text(c, r.id);
    r.context_id = dup_text(c, r.context_id);
    r.agent = dup_text(c, r.agent);
    r.folded = dup_text(c, r.folded);
    return r;
}

static inline dgm_turn_row dup_turn(struct call *c, const dgm_turn_row *turn)
{
    dgm_turn_row t = *turn;
    t.protocol = dup_text(c, t.protocol);
    t.caller_id = dup_text(c, t.caller_id);
    t.request = dup_text(c, t.request);
    t.previous = dup_text(c, t.previous);
    return t;
}

static inline void on_task(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    if (row) {
        c->rows = dgm_new(c->env->arena, dgm_task_row);
        c->rows[0] = dup_row(c, row);
    }
    arrive(&c->wait);
}

static inline void on_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                              void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    c->n = n;
    c->records = dgm_new_n(c->env->arena, dgm_record *, n + 1);
    for (size_t i = 0; i < n; i++) {
        c->records[i] = dgm_record_ref(records[i]);
        dgm_arena_defer(c->env->arena, unref_record, records[i]);
    }
    arrive(&c->wait);
}

static inline void on_turns(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                            void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    c->n = n;
    c->turns = dgm_new_n(c->env->arena, dgm_turn_row, n + 1);
    for (size_t i = 0; i < n; i++)
        c->turns[i] = dup_turn(c, &turns[i]);
    arrive(&c->wait);
}

static inline void on_turn(dgm_code code, const dgm_turn_row *turn, dgm_str task_id,
                           const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    if (turn) {
        c->turns = dgm_new(c->env->arena, dgm_turn_row);
        c->turns[0] = dup_turn(c, turn);
        c->task_id = dup_text(c, task_id);
    }
    arrive(&c->wait);
}

static inline void on_dedupe(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err,
                             void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    if (row) {
        c->dedupe = dgm_new(c->env->arena, dgm_dedupe_row);
        *c->dedupe = *row;
        c->dedupe->task_id = dup_text(c, row->task_id);
    }
    arrive(&c->wait);
}

static inline void on_list(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                           size_t total, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    note(c, code, err);
    c->n = n;
    c->more = more;
    c->total = total;
    c->rows = dgm_new_n(c->env->arena, dgm_task_row, n + 1);
    for (size_t i = 0; i < n; i++)
        c->rows[i] = dup_row(c, &rows[i]);
    arrive(&c->wait);
}

static inline void make_append(struct call *c)
{
    dgm_store_append(c->env->store, c->batch, on_done, c);
}
static inline void make_get_task(struct call *c)
{
    dgm_store_get_task(c->env->store, c->owner, c->a, on_task, c);
}
static inline void make_get_records(struct call *c)
{
    dgm_store_get_records(c->env->store, c->owner, c->a, c->seq, c->max, c->max_bytes, on_records,
                          c);
}
static inline void make_get_turns(struct call *c)
{
    dgm_store_get_turns(c->env->store, c->owner, c->a, on_turns, c);
}
static inline void make_find_turn(struct call *c)
{
    dgm_store_find_turn(c->env->store, c->owner, c->c, c->a, c->b, on_turn, c);
}
static inline void make_find_dedupe(struct call *c)
{
    dgm_store_find_dedupe(c->env->store, c->owner, c->a, c->b, c->c, on_dedupe, c);
}
static inline void make_list(struct call *c)
{
    dgm_store_list(c->env->store, c->query, on_list, c);
}
static inline void make_unfinished(struct call *c)
{
    dgm_store_list_unfinished(c->env->store, c->max, c->after, on_list, c);
}
static inline void make_trim(struct call *c)
{
    dgm_store_trim(c->env->store, c->keep, on_done, c);
}

static const dgm_owner nobody = {{"", 0}, {"", 0}};
static const dgm_owner alice = {DGM_STR("acme"), DGM_STR("alice")};
static const dgm_owner bob = {DGM_STR("acme"), DGM_STR("bob")};

/* The content of a message that is its digest. */
#define DIGEST(text) ((dgm_str){(const char[DGM_DIGEST_BYTES]){text}, DGM_DIGEST_BYTES})

/* ---- what is stored -------------------------------------------------------------------------------- */

#define T0 1767323045000 /* 2026-01-02T03:04:05Z */

static inline dgm_record *record_of(uint64_t seq, uint32_t turn, dgm_event_kind kind,
                                    dgm_task_state state, dgm_str bytes)
{
    dgm_record *r = NULL;
    dgm_err err = {0};
    dgm_record_head head = {
        .seq = seq, .time = T0 + (int64_t)seq, .turn = turn, .kind = kind, .state = state};
    check_ok(dgm_record_from_bytes(head, bytes, &r, &err), err);
    return r;
}

static inline dgm_record *delta(uint64_t seq, uint32_t turn)
{
    char text[200];
    int n = snprintf(text, sizeof text,
                     "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{"
                     "\"artifactId\":\"a\",\"parts\":[{\"text\":\"%llu\"}]},\"append\":true}}",
                     (unsigned long long)seq);
    return record_of(seq, turn, DGM_EVENT_ARTIFACT, DGM_STATE_UNKNOWN, (dgm_str){text, (size_t)n});
}

/* An append of n deltas behind `last`; the first of a task makes it. */
struct making {
    dgm_append batch;
    dgm_record *records[64];
};

static inline void make_deltas(struct making *m, dgm_owner owner, const char *id, uint64_t last,
                               size_t n, uint32_t turn)
{
    *m = (struct making){.batch = {.row = {.owner = owner,
                                           .id = dgm_str_from(id),
                                           .context_id = DGM_STR("ctx"),
                                           .agent = DGM_STR("demo"),
                                           .state = DGM_STATE_WORKING,
                                           .created_ms = T0,
                                           .status_ms = T0,
                                           .last_seq = last + n},
                                   .n_records = n,
                                   .fence = 1}};
    m->batch.records = m->records;
    for (size_t i = 0; i < n; i++)
        m->records[i] = delta(last + 1 + i, turn);
}

static inline void unmake(struct making *m)
{
    for (size_t i = 0; i < m->batch.n_records; i++)
        dgm_record_unref(m->records[i]);
}

static inline dgm_code append(struct env *e, const dgm_append *batch, dgm_err *ret_err)
{
    struct call c = {.make = make_append, .batch = batch};
    run_call(e, &c);
    if (ret_err)
        *ret_err = c.err;
    return c.code;
}

static inline dgm_code append_deltas(struct env *e, dgm_owner owner, const char *id, uint64_t last,
                                     size_t n, uint32_t turn)
{
    struct making m;
    make_deltas(&m, owner, id, last, n, turn);
    dgm_err err = {0};
    dgm_code code = append(e, &m.batch, &err);
    unmake(&m);
    return code;
}

static inline dgm_task_row *get_task(struct env *e, dgm_owner owner, const char *id)
{
    struct call c = {.make = make_get_task, .owner = owner, .a = dgm_str_from(id)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c.rows;
}

static inline struct call get_records(struct env *e, dgm_owner owner, const char *id, uint64_t seq,
                                      size_t max, size_t max_bytes)
{
    struct call c = {.make = make_get_records,
                     .owner = owner,
                     .a = dgm_str_from(id),
                     .seq = seq,
                     .max = max,
                     .max_bytes = max_bytes};
    run_call(e, &c);
    return c;
}

static inline size_t count_records(struct env *e, dgm_owner owner, const char *id)
{
    struct call c = get_records(e, owner, id, 1, 100000, (size_t)1 << 30);
    check_ok(c.code, c.err);
    for (size_t i = 1; i < c.n; i++)
        assert_int_equal(c.records[i]->head.seq, c.records[i - 1]->head.seq + 1);
    return c.n;
}

static inline struct call get_turns(struct env *e, dgm_owner owner, const char *id)
{
    struct call c = {.make = make_get_turns, .owner = owner, .a = dgm_str_from(id)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c;
}

static inline struct call find_turn(struct env *e, dgm_owner owner, const char *protocol,
                                    const char *id)
{
    struct call c = {
        .make = make_find_turn, .owner = owner, .a = dgm_str_from(protocol), .b = dgm_str_from(id)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c;
}

static inline dgm_dedupe_row *find_dedupe(struct env *e, dgm_owner owner, const char *context,
                                          const char *message)
{
    struct call c = {.make = make_find_dedupe,
                     .owner = owner,
                     .a = DGM_STR("demo"),
                     .b = dgm_str_from(context),
                     .c = dgm_str_from(message)};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c.dedupe;
}

static inline struct call list(struct env *e, const dgm_list_query *q)
{
    struct call c = {.make = make_list, .query = q};
    run_call(e, &c);
    check_ok(c.code, c.err);
    return c;
}

static inline void trim(struct env *e, int64_t older_than_ms)
{
    struct call c = {.make = make_trim, .keep = {.turns_before_ms = older_than_ms}};
    run_call(e, &c);
    check_ok(c.code, c.err);
}

static inline void check_code(dgm_code got, dgm_code want, const dgm_err *err, const char *part)
{
    if (got != want || !strstr(err->msg, part)) {
        print_error("code %d, wanted %d; message \"%s\", wanted \"%s\"\n", (int)got, (int)want,
                    err->msg, part);
        fail();
    }
}

/* A test for each driver; *state says which. */
#define ON_EVERY(fn)                                                                               \
    dgm_test_with("memory: " #fn, fn, "memory"), dgm_test_with("sqlite: " #fn, fn, "sqlite"),      \
        dgm_test_with("postgres: " #fn, fn, "postgres")
