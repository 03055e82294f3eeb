/*
 * store/sqlite/sqlite.c - threads and queues: a writer, some readers, answers in order.
 *
 * The writer commits when it is free, and what arrived meanwhile is the next commit: no timer, and the
 * slower the disk, the larger the batch. Readers have connections of their own and see the last commit.
 *
 * Jobs about one task, or one thread of a graph, are in one lane, in the order they were called. A read starts when the
 * writes before it in its lane are done; an answer is posted when all before it in its lane are. Lanes are
 * shared by hash: two tasks in one lane wait for each other now and then, and nothing else happens.
 *
 *   call ─► lane ─┬─► writer's queue ──► commit ──┐
 *                 └─► readers' queue ─► select ───┴─► done ─► head of its lane? ─► post to its loop
 */
#include "sqlite_int.h"

#include "store/store_job.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define N_READERS 2
#define N_LANES 1024
/* One commit: large enough to make a sync cheap, small enough that no caller waits long for its end. */
#define BATCH_JOBS 4096
#define BATCH_BYTES ((size_t)32 << 20)
/* Pages of the WAL (4 KiB each): from here on it is written back when the writer has nothing else to
 * do, and from there on in any case. */
#define CHECKPOINT_PAGES 1000
#define CHECKPOINT_PAGES_BUSY 8000

struct queue {
    dgm_job *first, *last;
    size_t n, bytes;
};

struct lane {
    dgm_job *first, *last; /* by lane_next */
    size_t n_writes;       /* not done */
    size_t n_waiting;      /* reads, for writes before them */
};

struct sqlite_store;

struct reader {
    struct sqlite_store *store;
    dgm_conn conn;
    pthread_t thread;
    bool running;
};

struct sqlite_store {
    dgm_store base;
    pthread_mutex_t lock; /* of all below, but connections */
    pthread_cond_t to_write, to_read, idle;
    struct queue writes, reads, lists;
    struct lane lanes[N_LANES];
    size_t pending; /* jobs not yet posted */
    size_t waiting; /* of all lanes */
    bool stopping;
    dgm_err fault; /* its code is 0: none */
    dgm_store_stats stats;

    dgm_known *known;
    _Atomic bool closing; /* what can wait does not go on */
    dgm_sql_writer writer;
    pthread_t writer_thread;
    bool writer_running;
    struct reader readers[N_READERS];
    int lock_fd;
};

/* ---- queues and lanes (under the lock) ------------------------------------------------------------- */

static void push(struct queue *q, dgm_job *job)
{
    job->next = NULL;
    if (q->first)
        q->last->next = job;
    else
        q->first = job;
    q->last = job;
    q->n++;
    q->bytes += job->held;
}

static dgm_job *pop(struct queue *q)
{
    dgm_job *job = q->first;
    if (!job)
        return NULL;
    q->first = job->next;
    q->n--;
    q->bytes -= job->held;
    job->next = NULL;
    return job;
}

static bool is_list(const dgm_job *job)
{
    return job->kind == DGM_JOB_LIST || job->kind == DGM_JOB_UNFINISHED ||
           (job->kind == DGM_JOB_CHECKPOINTS && !job->checkpoints.query.thread.n);
}

/* Answers on their way: one chain per loop, posted together. */
struct answers {
    struct {
        dgm_job *first, *last;
    } loops[DGM_MAX_LOOPS];
    size_t n;
};

static void add_answer(struct sqlite_store *s, struct answers *a, dgm_job *job)
{
    size_t i = 0;
    job->next = NULL;
    s->pending--;
    while (i < a->n && a->loops[i].first->loop != job->loop)
        i++;
    if (i < a->n) {
        a->loops[i].last->next = job;
    } else {
        assert(a->n < DGM_MAX_LOOPS);
        a->n++;
        a->loops[i].first = job;
    }
    a->loops[i].last = job;
}

/* Under the lock, so that threads cannot overtake each other between a lane and the loop. */
static void post(struct sqlite_store *s, struct answers *a)
{
    for (size_t i = 0; i < a->n; i++)
        dgm_loop_post(a->loops[i].first->loop, dgm_job_on_answers, a->loops[i].first);
    if (s->pending == 0)
        pthread_cond_broadcast(&s->idle);
}

static void start_read(struct sqlite_store *s, dgm_job *job)
{
    push(is_list(job) ? &s->lists : &s->reads, job);
    if (is_list(job))
        pthread_cond_broadcast(&s->to_read); /* not every reader takes it */
    else
        pthread_cond_signal(&s->to_read);
}

/* The first jobs of its lane that are done are answered, up to one that is not; reads that waited for an append start. */
static void is_done(struct sqlite_store *s, dgm_job *job, struct answers *a)
{
    struct lane *lane = &s->lanes[job->hash % N_LANES];
    job->done = true;
    if (!dgm_job_has_lane(job)) {
        add_answer(s, a, job);
        return;
    }
    while ((job = lane->first) && job->done) {
        lane->first = job->lane_next;
        add_answer(s, a, job);
    }
    for (; job && lane->n_waiting; job = job->lane_next) {
        if (dgm_job_is_write(job) && !job->done)
            return;
        if (job->waiting) {
            job->waiting = false;
            lane->n_waiting--;
            s->waiting--;
            start_read(s, job);
        }
    }
}

/* ---- the writer ------------------------------------------------------------------------------------ */

static void fail_batch(dgm_job *chain, dgm_code code, const dgm_err *err)
{
    for (dgm_job *job = chain; job; job = job->next) {
        job->code = code;
        job->err = *err;
    }
}

/* Appends, notes and changes of checkpoints: the first ones of the queue, up to one commit's worth. */
static void write_batch(struct sqlite_store *s)
{
    size_t n = 0, bytes = 0;
    dgm_err err = {0};
    dgm_job *chain = s->writes.first, *last = NULL, *rest = chain;
    struct answers a;
    a.n = 0;
    for (; rest && rest->kind != DGM_JOB_TRIM &&
           ((n < BATCH_JOBS && bytes < BATCH_BYTES) || (last && last->pair == rest));
         n++) {
        bytes += rest->held;
        last = rest;
        rest = rest->next;
    }
    last->next = NULL;
    s->writes = (struct queue){rest, s->writes.last, s->writes.n - n, s->writes.bytes - bytes};
    pthread_mutex_unlock(&s->lock);
    uint64_t began = uv_hrtime();
    dgm_code code = dgm_conn_check_files(&s->writer.conn, &err);
    if (code)
        fail_batch(chain, code, &err);
    else
        code = dgm_sql_writer_write(&s->writer, chain, n, &err);
    uint64_t took = uv_hrtime() - began;
    size_t bound = 0;
    while (bound < DGM_N_COMMIT_BOUNDS && took > (uint64_t)dgm_store_commit_bounds[bound] * 1000)
        bound++;
    pthread_mutex_lock(&s->lock);
    s->fault = code ? err : (dgm_err){0};
    s->stats.commits++;
    s->stats.commit_took[bound]++;
    s->stats.commit_ns += took;
    for (dgm_job *job = chain, *next; job; job = next) {
        next = job->next;
        if (dgm_job_has_lane(job))
            s->lanes[job->hash % N_LANES].n_writes--;
        if (job->kind == DGM_JOB_APPEND && !job->code) {
            s->stats.appends++;
            s->stats.records += job->append.batch.n_records;
            s->stats.bytes += job->append.bytes;
        }
        is_done(s, job, &a);
    }
    post(s, &a);
}

static void write_trim(struct sqlite_store *s)
{
    dgm_job *job = pop(&s->writes);
    struct answers a;
    a.n = 0;
    pthread_mutex_unlock(&s->lock);
    bool more = dgm_sql_writer_trim(&s->writer, job);
    pthread_mutex_lock(&s->lock);
    if (more) { /* behind the appends that came meanwhile */
        push(&s->writes, job);
        return;
    }
    if (job->code == DGM_UNAVAILABLE)
        s->fault = job->err;
    is_done(s, job, &a);
    post(s, &a);
}

static void checkpoint(struct sqlite_store *s)
{
    dgm_err err = {0};
    pthread_mutex_unlock(&s->lock);
    dgm_code code = dgm_sql_writer_checkpoint(&s->writer, &err);
    pthread_mutex_lock(&s->lock);
    if (code)
        s->fault = err;
}

/* A store that failed tries a write of its own every second: those who see it failed send none. */
static void probe(struct sqlite_store *s)
{
    dgm_err err = {0};
    pthread_mutex_unlock(&s->lock);
    dgm_code code = dgm_conn_check_files(&s->writer.conn, &err);
    if (!code)
        code = dgm_sql_writer_probe(&s->writer, &err);
    pthread_mutex_lock(&s->lock);
    s->fault = code ? err : (dgm_err){0};
}

static void *writer_main(void *arg)
{
    struct sqlite_store *s = arg;
    struct timespec until;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (s->writes.first && s->writes.first->kind == DGM_JOB_TRIM)
            write_trim(s);
        else if (s->writes.first)
            write_batch(s);
        else if (s->stopping)
            break;
        else if (!s->fault.code)
            pthread_cond_wait(&s->to_write, &s->lock);
        else {
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_sec++;
            if (pthread_cond_timedwait(&s->to_write, &s->lock, &until) != 0 && !s->stopping)
                probe(s);
        }
        if (s->writer.wal_pages >= (s->writes.first ? CHECKPOINT_PAGES_BUSY : CHECKPOINT_PAGES))
            checkpoint(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- readers --------------------------------------------------------------------------------------- */

/* A list counts all that match and may take long: the first reader leaves lists to the others, so that
 * look-ups never wait for one. */
static dgm_job *take_read(struct sqlite_store *s, const struct reader *r)
{
    dgm_job *job = pop(&s->reads);
    return job || r == &s->readers[0] ? job : pop(&s->lists);
}

/* Message ids of the database. Those that come meanwhile the writer adds. */
static void learn_ids(struct reader *r)
{
    struct sqlite_store *s = r->store;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&r->conn, DGM_SQL_KNOWN, &rc);
    if (!st)
        return;
    while (!s->closing && (rc = sqlite3_step(st)) == SQLITE_ROW)
        dgm_known_add(s->known, dgm_column_str(st, 0), (uint64_t)sqlite3_column_int64(st, 1));
    sqlite3_reset(st);
    if (rc == SQLITE_DONE) /* else every message is looked for */
        dgm_known_is_complete(s->known);
}

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    struct sqlite_store *s = r->store;
    struct answers a;
    dgm_job *job;
    if (r == &s->readers[N_READERS - 1])
        learn_ids(r);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (!(job = take_read(s, r))) {
            if (s->stopping)
                break;
            pthread_cond_wait(&s->to_read, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        dgm_conn_read(&r->conn, job);
        pthread_mutex_lock(&s->lock);
        s->stats.reads++;
        a.n = 0;
        is_done(s, job, &a);
        post(s, &a);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static void sqlite_refuse(struct sqlite_store *s, dgm_job *job, const struct queue *q)
{
    struct answers a;
    a.n = 0;
    job->code = dgm_fail(&job->err, DGM_UNAVAILABLE, NULL,
                         "%zu %s of %zu bytes wait for the database, the limit store_queue is %d: "
                         "try again later",
                         q->n, q == &s->writes ? "writes" : "reads", q->bytes, DGM_MAX_STORE_QUEUE);
    is_done(s, job, &a);
    post(s, &a);
}

/* Under the lock. */
static void enqueue(struct sqlite_store *s, dgm_job *job)
{
    bool write = dgm_job_is_write(job);
    struct queue *q = write ? &s->writes : is_list(job) ? &s->lists : &s->reads;
    struct lane *lane = dgm_job_has_lane(job) ? &s->lanes[job->hash % N_LANES] : NULL;
    bool full = q->n + (q == &s->reads ? s->waiting : 0) >= DGM_MAX_STORE_QUEUE ||
                q->bytes >= DGM_MAX_STORE_QUEUE_BYTES;
    s->pending++;
    job->waiting = lane && !write && !full && lane->n_writes > 0;
    if (lane) {
        *(lane->first ? &lane->last->lane_next : &lane->first) = job;
        lane->last = job;
    }
    if (full) {
        sqlite_refuse(s, job, q);
    } else if (write) {
        if (lane)
            lane->n_writes++;
        push(q, job);
        pthread_cond_signal(&s->to_write);
    } else if (job->waiting) {
        lane->n_waiting++;
        s->waiting++;
    } else {
        start_read(s, job);
    }
}

static void submit(dgm_store *base, dgm_job *job)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    dgm_job *pair = job->pair;
    dgm_job_prepare(job); /* before the lock */
    if (pair)
        dgm_job_prepare(pair);
    pthread_mutex_lock(&s->lock);
    enqueue(s, job);
    if (pair)
        enqueue(s, pair);
    pthread_mutex_unlock(&s->lock);
}

static bool is_unknown(dgm_store *base, dgm_owner owner, dgm_str agent, dgm_str context_id,
                       dgm_str message_id)
{
    const dgm_known *known = ((struct sqlite_store *)base)->known;
    if (dgm_known_may_have(known, message_id, dgm_scope(owner, agent, (dgm_str){0})))
        return false;
    return !context_id.n ||
           !dgm_known_may_have(known, message_id, dgm_scope(owner, agent, context_id));
}

static bool is_healthy(dgm_store *base, dgm_err *ret_why)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    pthread_mutex_lock(&s->lock);
    bool healthy = !s->fault.code;
    if (!healthy && ret_why)
        *ret_why = s->fault;
    pthread_mutex_unlock(&s->lock);
    return healthy && !dgm_conn_check_files(&s->writer.conn, ret_why);
}

static dgm_store_stats stats(dgm_store *base)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    pthread_mutex_lock(&s->lock);
    dgm_store_stats copy = s->stats;
    copy.queued = s->writes.n;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static void close_sqlite(dgm_store *base)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    s->closing = true;
    pthread_mutex_lock(&s->lock);
    while (s->pending > 0)
        pthread_cond_wait(&s->idle, &s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->to_write);
    pthread_cond_broadcast(&s->to_read);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < N_READERS; i++) {
        if (s->readers[i].running)
            pthread_join(s->readers[i].thread, NULL);
        dgm_conn_close(&s->readers[i].conn);
    }
    if (s->writer_running)
        pthread_join(s->writer_thread, NULL);
    dgm_known_free(s->known);
    dgm_sql_writer_close(&s->writer); /* the last connection: the WAL is written back and goes */
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_cond_destroy(&s->to_write);
    pthread_cond_destroy(&s->to_read);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Our threads take no signals: those are for the program. */
static dgm_code sqlite_start(struct sqlite_store *s, dgm_err *err)
{
    sigset_t all, before;
    int error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&s->writer_thread, NULL, writer_main, s);
    s->writer_running = error == 0;
    for (size_t i = 0; i < N_READERS && !error; i++) {
        error = pthread_create(&s->readers[i].thread, NULL, reader_main, &s->readers[i]);
        s->readers[i].running = error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot start a thread for the database: %s: raise the limit (ulimit -u)",
                        strerror(error));
    return DGM_OK;
}

static dgm_code open_sqlite(const char *rest, const dgm_store_options *options,
                            dgm_store **ret_store, dgm_err *err)
{
    (void)options;
    const char *path = *rest ? rest : "dragoman.db";
    struct sqlite_store *s = dgm_xcalloc(1, sizeof *s);
    pthread_condattr_t monotonic;
    s->base.driver = &dgm_store_sqlite;
    s->lock_fd = -1;
    s->known = dgm_known_new();
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->to_write, &monotonic);
    pthread_cond_init(&s->to_read, NULL);
    pthread_cond_init(&s->idle, NULL);
    pthread_condattr_destroy(&monotonic);

    dgm_code code = dgm_sqlite_lock(path, &s->lock_fd, err);
    if (!code)
        code = dgm_sql_writer_open(path, s->known, &s->writer, err);
    for (size_t i = 0; i < N_READERS && !code; i++) {
        s->readers[i].store = s;
        code = dgm_conn_open(path, DGM_CONN_READ, &s->readers[i].conn, err);
    }
    if (!code) {
        dgm_conn_remember_files(&s->writer.conn);
        code = sqlite_start(s, err);
    }
    if (code) {
        close_sqlite(&s->base);
        return code;
    }
    *ret_store = &s->base;
    return DGM_OK;
}

const dgm_store_driver dgm_store_sqlite = {
    .scheme = "sqlite",
    .open = open_sqlite,
    .close = close_sqlite,
    .submit = submit,
    .is_unknown = is_unknown,
    .is_healthy = is_healthy,
    .stats = stats,
};
