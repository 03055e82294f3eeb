/*
 * test_store_share.h - for the tests of shared stores: servers on one store, what they were called with, and calls of
 * store/share.h.
 */
#pragma once

#include "store/memory/memory_share.h"
#include "store/postgres/postgres_int.h"
#include "store/test_env.h"

/* ---- stores that are shared ------------------------------------------------------------------------------- */

#define LEASE_MS 3000

static inline void shared_url(const char *driver, char *url, size_t size)
{
    static int n;
    if (strcmp(driver, "memory-shared") == 0)
        snprintf(url, size, "memory-shared:%d", ++n);
    else
        postgres_url(url, size);
}

static inline uint32_t lease_of(const char *driver)
{
    return strcmp(driver, "postgres-hour") == 0      ? 3600000
           : strcmp(driver, "postgres-seconds") == 0 ? 6000
                                                     : LEASE_MS;
}

static inline void env_open_shared(struct env *e, const char *driver)
{
    dgm_err err = {0};
    dgm_store_options options = {.replica_name = DGM_STR("a server"),
                                 .lease_ms = lease_of(driver),
                                 .polls = strcmp(driver, "postgres-poll") == 0};
    check_ok(dgm_store_open_with(e->url, &options, &e->store, &err), err);
}

/* As if its process had been stopped for longer than its lease; revive: it goes on. */
static inline bool is_in_memory(const struct env *e)
{
    return strncmp(e->url, "memory-shared:", 14) == 0;
}

static inline void declare_dead(struct env *e)
{
    if (is_in_memory(e))
        dgm_store_memory_kill(e->store);
    else
        ((pg_store *)e->store)->share.is_paused = true;
}

static inline void revive(struct env *e)
{
    int64_t was = dgm_store_replica(e->store).id;
    if (is_in_memory(e)) {
        dgm_store_memory_notice(e->store);
        return;
    }
    ((pg_store *)e->store)->share.is_paused = false;
    dgm_pg_share_wake((pg_store *)e->store);
    while (dgm_store_replica(e->store).id == was)
        usleep(1000);
}

/* ---- servers --------------------------------------------------------------------------------------------- */

#define MAX_SEEN 256

/* A server, and what it was called with. */
struct server {
    struct env env; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic size_t n_orphans, n_failed, n_searched, n_owned, n_odd, n_renewed, n_grown, n_commands;
    dgm_task_row orphans[MAX_SEEN];
    const char *fails; /* NULL, or a task that it cannot load */
    char grown[MAX_SEEN][40];
    dgm_command command; /* the last one */
    bool is_silent;      /* it does not answer */
};

static inline void seen(struct server *s, _Atomic size_t *n)
{
    pthread_mutex_lock(&s->lock);
    ++*n;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline void on_orphans(void *user, const dgm_task_row *rows, size_t n)
{
    struct server *s = user;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && s->fails; i++) {
        if (!dgm_str_eq(rows[i].id, dgm_str_from(s->fails)))
            continue;
        dgm_store_release_failed(s->env.store, rows[i].owner, rows[i].id, rows[i].lease.fence);
        s->n_failed++;
    }
    for (size_t i = 0; i < n && s->n_orphans + i < MAX_SEEN; i++) {
        s->orphans[s->n_orphans + i] = rows[i];
        s->orphans[s->n_orphans + i].id = dgm_arena_dup(s->env.arena, rows[i].id);
    }
    s->n_orphans += n;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline void on_searched(void *user)
{
    struct server *s = user;
    seen(s, &s->n_searched);
}

static inline void on_owned(void *user, const dgm_task_row *rows, size_t n)
{
    struct server *s = user;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].lease.holder, DGM_LEASE_OURS);
        s->n_odd += rows[i].lease.fence != 1 || !rows[i].id.n || *rows[i].id.p != 't';
        seen(s, &s->n_owned);
    }
}

static inline void on_renewed(void *user)
{
    struct server *s = user;
    seen(s, &s->n_renewed);
}

static inline void on_grown(void *user, dgm_owner owner, dgm_str task_id)
{
    struct server *s = user;
    assert_true(dgm_str_eq(owner.principal, alice.principal));
    pthread_mutex_lock(&s->lock);
    if (s->n_grown < MAX_SEEN)
        snprintf(s->grown[s->n_grown], sizeof s->grown[0], "%.*s", DGM_P(task_id));
    pthread_mutex_unlock(&s->lock);
    seen(s, &s->n_grown);
}

static inline void on_command(void *user, const dgm_command *command)
{
    struct server *s = user;
    char body[100];
    dgm_err err = {0};
    dgm_code code = DGM_OK;
    snprintf(body, sizeof body, "%.*s of %.*s: %.*s", DGM_P(command->kind), DGM_P(command->task_id),
             DGM_P(command->body));
    if (dgm_str_eq(command->kind, DGM_STR("FAIL")))
        code = dgm_fail(&err, DGM_TASK_NOT_CANCELABLE, NULL, "task %.*s has ended",
                        DGM_P(command->task_id));
    s->command = *command;
    if (!s->is_silent)
        dgm_store_answer(s->env.store, command, code, &err, dgm_str_from(body));
    seen(s, &s->n_commands);
}

static inline void wait_seen(struct server *s, const _Atomic size_t *n, size_t want)
{
    pthread_mutex_lock(&s->lock);
    while (*n < want)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Until the servers together have got n tasks. */
static inline void wait_taken(struct server *s, size_t n_servers, size_t n)
{
    for (size_t taken = 0; taken < n;) {
        taken = 0;
        for (size_t i = 0; i < n_servers; i++) {
            pthread_mutex_lock(&s[i].lock);
            taken += s[i].n_orphans;
            pthread_mutex_unlock(&s[i].lock);
        }
        usleep(1000);
    }
}

static inline void server_set_agents(struct server *s, const char *agent)
{
    const dgm_str agents[] = {DGM_STR("another"), dgm_str_from(agent)};
    dgm_store_set_agents(s->env.store, agents, *agent ? 2 : 0);
}

static inline void server_handle(struct server *s)
{
    dgm_share_handlers h = {.on_orphans = on_orphans,
                            .on_searched = on_searched,
                            .on_owned = on_owned,
                            .on_renewed = on_renewed,
                            .on_grown = on_grown,
                            .on_command = on_command,
                            .user = s};
    server_set_agents(s, "demo"); /* of all tasks in these tests */
    dgm_store_share(s->env.store, dgm_loops_at(s->env.loops, 0), &h);
}

/* Of one database, by the url of the first one. */
static inline void servers_open(struct server *servers, size_t n, void **state)
{
    for (size_t i = 0; i < n; i++) {
        struct server *s = &servers[i];
        *s =
            (struct server){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        env_loops(&s->env, 2);
        if (i == 0)
            shared_url(*state, s->env.url, sizeof s->env.url);
        else
            memcpy(s->env.url, servers[0].env.url, sizeof s->env.url);
        env_open_shared(&s->env, *state);
        assert_true(dgm_store_is_shared(s->env.store));
    }
}

static inline void servers_close(struct server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (servers[i].env.store)
            dgm_store_share(servers[i].env.store, NULL, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        dgm_store_close(servers[i].env.store);
        dgm_loops_free(servers[i].env.loops);
        dgm_arena_free(servers[i].env.arena);
    }
    if (strncmp(servers[0].env.url, "postgres:", 9) == 0)
        check_postgres(servers[0].env.url);
}

static inline int64_t id_of(const struct server *s)
{
    return dgm_store_replica(s->env.store).id;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static inline void make_acquire(struct call *c)
{
    dgm_store_acquire(c->env->store, c->owner, c->a, on_task, c);
}

static inline dgm_task_row *acquire(struct server *s, const char *id)
{
    struct call c = {.make = make_acquire, .owner = alice, .a = dgm_str_from(id)};
    run_call(&s->env, &c);
    check_ok(c.code, c.err);
    return c.rows;
}

static inline void make_release(struct call *c)
{
    dgm_store_release(c->env->store, c->owner, c->a, c->seq, on_done, c);
}

static inline dgm_code release(struct server *s, const char *id, uint64_t fence, dgm_err *ret_err)
{
    struct call c = {.make = make_release, .owner = alice, .a = dgm_str_from(id), .seq = fence};
    run_call(&s->env, &c);
    *ret_err = c.err;
    return c.code;
}

static inline dgm_code append_fenced(struct server *s, const char *id, uint64_t last,
                                     uint64_t fence, dgm_task_state state, bool releases,
                                     dgm_err *ret_err)
{
    struct making m;
    make_deltas(&m, alice, id, last, 2, 1);
    m.batch.fence = fence;
    m.batch.row.state = state;
    m.batch.releases = releases;
    dgm_code code = append(&s->env, &m.batch, ret_err);
    unmake(&m);
    return code;
}

static inline void append_ok(struct server *s, const char *id, uint64_t last, uint64_t fence)
{
    dgm_err err = {0};
    check_ok(append_fenced(s, id, last, fence, DGM_STATE_WORKING, false, &err), err);
}

static inline void check_lost(dgm_code code, const dgm_err *err)
{
    assert_int_equal(code, DGM_UNAVAILABLE);
    assert_true(dgm_store_is_lost(err));
    assert_false(dgm_store_is_duplicate(err));
}

static inline void append_lost(struct server *s, const char *id, uint64_t last, uint64_t fence)
{
    dgm_err err = {0};
    check_lost(append_fenced(s, id, last, fence, DGM_STATE_WORKING, false, &err), &err);
}

static inline void check_lease(const dgm_task_row *row, dgm_lease_holder holder, int64_t replica,
                               uint64_t fence)
{
    assert_non_null(row);
    assert_int_equal(row->lease.holder, holder);
    assert_int_equal(row->lease.replica, replica);
    assert_int_equal(row->lease.fence, fence);
}

/* ---- following and commands ------------------------------------------------------------------------------ */

static inline void make_follow(struct call *c)
{
    dgm_store_follow(c->env->store, c->owner, c->a, (int64_t)c->seq);
    arrive(&c->wait);
}

static inline void follow(struct server *s, const char *id, int64_t owner)
{
    struct call c = {
        .make = make_follow, .owner = alice, .a = dgm_str_from(id), .seq = (uint64_t)owner};
    run_call(&s->env, &c);
}

struct command_call {
    struct call call; /* first */
    const char *kind;
    int64_t to;
    uint64_t ms;
    bool no_answer;
    char body[200];
};

static inline void on_answered(dgm_code code, dgm_str body, const dgm_err *err, void *arg)
{
    struct command_call *c = arg;
    note(&c->call, code, err);
    snprintf(c->body, sizeof c->body, "%.*s", DGM_P(body));
    arrive(&c->call.wait);
}

static inline void make_command(struct call *call)
{
    struct command_call *c = (struct command_call *)call;
    dgm_store_command(call->env->store, c->to, alice, DGM_STR("t1"), dgm_str_from(c->kind),
                      DGM_STR("{\"x\":1}"), c->ms, c->no_answer ? NULL : on_answered, c);
    if (c->no_answer)
        arrive(&call->wait);
}

static inline struct command_call command(struct server *from, int64_t to, const char *kind,
                                          uint64_t ms)
{
    struct command_call c = {.call = {.make = make_command}, .kind = kind, .to = to, .ms = ms};
    run_call(&from->env, &c.call);
    return c;
}
#define ON_SHARED(fn)                                                                              \
    dgm_test_with("memory-shared: " #fn, fn, "memory-shared"),                                     \
        dgm_test_with("postgres: " #fn, fn, "postgres"),                                           \
        dgm_test_with("postgres-poll: " #fn, fn, "postgres-poll")
