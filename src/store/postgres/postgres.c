/*
 * store/postgres/postgres.c - a store in PostgreSQL, and its part on every loop: queues, answers in order, life.
 *
 * Each loop has connections of its own, and all its work on them is done on its thread, without locks: a writer, one for
 * look-ups, one for lists and checkpoints, made when they are needed. What arrives in one turn of a loop while the writer is
 * idle, or while it waits for a commit, is the next commit.
 *
 * Jobs about one task, or one thread of a graph, are in one lane, in the order they were called. A read starts when the
 * writes before it in its lane are done; an answer is posted when all before it in its lane are. Lanes are shared by hash.
 * Notes and checkpoints with the fence of a task are not in its lane, but its release waits for them: they are of the run that
 * ends, and would be refused behind it.
 *
 * When a connection is lost, what was sent on it is sent again on the next one. Jobs wait at most WAIT_MS for a connection;
 * then they fail.
 */
#include "postgres_int.h"

#include "store/store_job.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 10000   /* for a connection */
#define SILENT_MS 40000 /* of the server, while it has work: longer than a statement may take */
#define TICK_MS 500
#define MAX_IN_FLIGHT 64 /* reads on a connection */

/* ---- queues, lanes ----------------------------------------------------------------------------------- */

static void pg_push(pg_queue *q, dgm_job *job)
{
    job->next = NULL;
    *(q->first ? &q->last->next : &q->first) = job;
    q->last = job;
    q->n++;
    q->bytes += job->held;
}

static dgm_job *pg_pop(pg_queue *q)
{
    dgm_job *job = q->first;
    if (!job)
        return NULL;
    q->first = job->next;
    if (!q->first)
        q->last = NULL;
    q->n--;
    q->bytes -= job->held;
    job->next = NULL;
    return job;
}

static bool is_slow(const dgm_job *job)
{
    return job->kind == DGM_JOB_LIST || job->kind == DGM_JOB_UNFINISHED ||
           job->kind == DGM_JOB_CHECKPOINTS;
}

static pg_lane *lane_of(pg_loop *l, const dgm_job *job)
{
    return dgm_job_has_lane(job) ? &l->lanes[job->hash % PG_LANES] : NULL;
}

/* The lane of the task whose fence a note or a checkpoint has; NULL: none. */
static pg_lane *fence_lane_of(pg_loop *l, const dgm_job *job)
{
    const dgm_fence *f = job->kind == DGM_JOB_PUT_NOTE ? &job->note.fence
                         : job->kind == DGM_JOB_CHANGE ? &job->change.change.fence
                                                       : NULL;
    return f && f->task_id.n ? &l->lanes[dgm_job_hash_task(&f->owner, f->task_id) % PG_LANES]
                             : NULL;
}

static bool waits_for_fenced(const pg_lane *lane, const dgm_job *job)
{
    return job->kind == DGM_JOB_RELEASE && lane->n_fenced > 0;
}

static void pg_answer(pg_loop *l, dgm_job *job)
{
    job->next = NULL;
    *(l->answers ? &l->last_answer->next : &l->answers) = job;
    l->last_answer = job;
    l->pending--;
    l->store->n_queued -= job->kind == DGM_JOB_APPEND;
}

static void start_reading(pg_loop *l, dgm_job *job)
{
    pg_push(is_slow(job) ? &l->lists : &l->reads, job);
}

static void note_refused_task(pg_store *s, const dgm_append *b)
{
    if (dgm_append_first(b) != 1)
        return;
    pthread_mutex_lock(&s->lock);
    dgm_refused_add(&s->refused, b->row.owner, b->row.id);
    pthread_mutex_unlock(&s->lock);
}

/* Reads that wait for no write any more. */
static void start_waiting(pg_loop *l, pg_lane *lane)
{
    for (dgm_job *job = lane->first; job && lane->n_waiting; job = job->lane_next) {
        if ((dgm_job_is_write(job) && !job->done) || (job->waiting && waits_for_fenced(lane, job)))
            return;
        if (job->waiting) {
            job->waiting = false;
            lane->n_waiting--;
            l->waiting--;
            start_reading(l, job);
        }
    }
}

void dgm_pg_loop_done(pg_loop *l, dgm_job *job)
{
    pg_lane *lane = lane_of(l, job), *fenced = fence_lane_of(l, job);
    job->done = true;
    if (job->kind == DGM_JOB_APPEND && job->code)
        note_refused_task(l->store, &job->append.batch);
    if (!lane)
        pg_answer(l, job);
    else if (dgm_job_is_write(job))
        lane->n_writes--;
    while (lane && (job = lane->first) && job->done) {
        lane->first = job->lane_next;
        pg_answer(l, job);
    }
    if (lane)
        start_waiting(l, lane);
    if (fenced) {
        fenced->n_fenced--;
        start_waiting(l, fenced);
    }
}

void dgm_pg_loop_fail(pg_loop *l, dgm_job *job, const dgm_err *err)
{
    dgm_pg_read_reset(job);
    job->code = err->code;
    job->err = *err;
    l->had_doubt |= job->in_doubt;
    dgm_pg_loop_done(l, job);
}

static void post_answers(pg_loop *l)
{
    if (l->answers)
        dgm_loop_post(l->loop, dgm_job_on_answers, l->answers);
    l->answers = l->last_answer = NULL;
}

/* ---- progress ---------------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void request_connection(pg_pipe *p, pg_role role)
{
    if (!p->waits_ms)
        p->waits_ms = now_ms();
    if (!p->conn && !p->request && !p->loop->blocking)
        dgm_pg_keeper_connect(p->loop->store, p, role);
}

static void send_reads(pg_pipe *p, pg_queue *q)
{
    while (q->first && p->conn && p->n < MAX_IN_FLIGHT) {
        dgm_job *job = pg_pop(q);
        pg_op *op = dgm_xcalloc(1, sizeof *op);
        op->job = job;
        op->by_row = job->kind == DGM_JOB_CHECKPOINTS;
        dgm_pg_read_send(p, job);
        dgm_pg_send_sync(p);
        dgm_pg_pipe_add(p, op, false);
    }
    if (p->conn && p->n)
        dgm_pg_pipe_run(p, false);
    if (q->first && !p->conn)
        request_connection(p, PG_READER);
}

/* Sends what can be sent. */
static void progress(pg_loop *l)
{
    if (l->running)
        return;
    l->running = true;
    while (l->writes.first && l->writer.conn && !l->writer.n)
        dgm_pg_write_next(l);
    if (l->writes.first && !l->writer.conn)
        request_connection(&l->writer, PG_WRITER);
    else
        l->writer.waits_ms = 0;
    send_reads(&l->reader, &l->reads);
    send_reads(&l->lister, &l->lists);
    l->running = false;
}

static void at_turn_end(void *arg)
{
    pg_loop *l = arg;
    progress(l);
    dgm_job *answers = l->answers;
    l->answers = l->last_answer = NULL;
    dgm_job_on_answers(answers); /* they may call again: then there is another turn */
}

static void progress_soon(pg_loop *l)
{
    if (!l->blocking)
        dgm_loop_at_turn_end(l->loop, &l->turn);
}

/* ---- what connections say ------------------------------------------------------------------------------ */

static void writer_done(pg_loop *l, pg_op *op)
{
    dgm_pg_write_done(l, op);
    progress_soon(l);
}

static void writer_lost(pg_loop *l, pg_pipe *p, const dgm_err *why)
{
    bool was_busy = p->n > 0;
    dgm_pg_store_fault(l->store, why);
    dgm_pg_keeper_wake(l->store); /* it looks whether it has lost its connection, too */
    dgm_pg_pipe_detach(p);
    if (was_busy)
        dgm_pg_write_lost(l);
    progress_soon(l);
}

static const pg_pipe_use writer_use = {.on_result = dgm_pg_write_result,
                                       .on_done = writer_done,
                                       .send_more = dgm_pg_write_more,
                                       .on_lost = writer_lost};

static void reader_result(pg_loop *l, pg_op *op, const PGresult *r)
{
    if (!op->job->code)
        dgm_pg_read_result(l->store, op->job, r);
}

static void reader_done(pg_loop *l, pg_op *op)
{
    pg_store *s = l->store;
    if (op->failed) {
        dgm_pg_loop_fail(l, op->job, &op->err);
    } else if (dgm_pg_read_is_stale(op->job)) {
        dgm_pg_read_reset(op->job);
        pg_push(&l->reads, op->job);
    } else {
        dgm_pg_loop_done(l, op->job);
    }
    free(op);
    pthread_mutex_lock(&s->lock);
    s->stats.reads++;
    pthread_mutex_unlock(&s->lock);
    progress_soon(l);
}

static bool reader_more(pg_loop *l, pg_op *op)
{
    (void)l, (void)op;
    return false;
}

/* Its reads start over, before those that wait. */
static void reader_lost(pg_loop *l, pg_pipe *p, const dgm_err *why)
{
    pg_queue *q = p == &l->reader ? &l->reads : &l->lists, old = *q;
    pg_op *first = p->first;
    dgm_pg_store_fault(l->store, why);
    dgm_pg_pipe_detach(p);
    *q = (pg_queue){0};
    for (pg_op *op = first, *next; op; op = next) {
        next = op->next;
        dgm_pg_read_reset(op->job);
        pg_push(q, op->job);
        free(op);
    }
    for (dgm_job *job; (job = pg_pop(&old));)
        pg_push(q, job);
    progress_soon(l);
}

static const pg_pipe_use reader_use = {.on_result = reader_result,
                                       .on_done = reader_done,
                                       .send_more = reader_more,
                                       .on_lost = reader_lost};

/* On its loop: the keeper has connected. */
void dgm_pg_loop_connected(void *arg)
{
    pg_request *r = arg;
    if (r->is_canceled) {
        PQfinish(r->conn);
    } else {
        r->pipe->request = NULL;
        dgm_pg_pipe_attach(r->pipe, r->conn);
        progress_soon(r->pipe->loop);
    }
    free(r);
}

static void cancel_request(pg_pipe *p)
{
    if (p->request)
        p->request->is_canceled = true;
    p->request = NULL;
}

/* ---- waiting has an end -------------------------------------------------------------------------------- */

static void fail_queue(pg_loop *l, pg_queue *q, const dgm_err *err)
{
    for (dgm_job *job; (job = pg_pop(q));)
        dgm_pg_loop_fail(l, job, err);
}

static void fail_waiting(pg_loop *l, pg_pipe *p, pg_queue *q)
{
    dgm_err why = {0};
    if (!p->waits_ms || now_ms() - p->waits_ms < WAIT_MS)
        return;
    if (dgm_store_is_healthy(&l->store->base, &why))
        dgm_pg_fault(NULL, NULL, false, &why);
    fail_queue(l, q, &why);
    p->waits_ms = 0;
}

static void fail_all_waiting(pg_loop *l)
{
    fail_waiting(l, &l->writer, &l->writes); /* lets reads start */
    fail_waiting(l, &l->reader, &l->reads);
    fail_waiting(l, &l->lister, &l->lists);
}

static void check_silence(pg_loop *l, pg_pipe *p)
{
    dgm_err why = {0};
    if (!p->conn || !p->n || now_ms() - p->progress_ms < SILENT_MS)
        return;
    dgm_pg_fault(p->conn, NULL, false, &why);
    p->use->on_lost(l, p, &why);
}

static void on_tick(void *arg)
{
    pg_loop *l = arg;
    check_silence(l, &l->writer);
    check_silence(l, &l->reader);
    check_silence(l, &l->lister);
    fail_all_waiting(l);
    progress_soon(l);
    dgm_timer_start(&l->tick, TICK_MS);
}

/* ---- without the loop ---------------------------------------------------------------------------------- */

static void connect_now(pg_loop *l, pg_pipe *p, pg_role role)
{
    dgm_err why = {0};
    PGconn *c = NULL;
    if (!dgm_pg_connect(&l->store->target, role, &c, &why))
        dgm_pg_pipe_attach(p, c);
}

static void connect_missing(pg_loop *l)
{
    if (l->writes.first && !l->writer.conn)
        connect_now(l, &l->writer, PG_WRITER);
    if (l->reads.first && !l->reader.conn)
        connect_now(l, &l->reader, PG_READER);
    if (l->lists.first && !l->lister.conn)
        connect_now(l, &l->lister, PG_READER);
}

static void wait_for_pipes(pg_loop *l)
{
    pg_pipe *const pipes[] = {&l->writer, &l->reader, &l->lister};
    struct pollfd fds[3];
    for (int i = 0; i < 3; i++) {
        bool write = false;
        fds[i] = (struct pollfd){.fd = -1};
        if (pipes[i]->conn && pipes[i]->n)
            fds[i].fd = dgm_pg_pipe_socket(pipes[i], &write);
        fds[i].events = (short)(POLLIN | (write ? POLLOUT : 0));
    }
    poll(fds, 3, 100);
    for (int i = 0; i < 3; i++) {
        if (fds[i].fd >= 0)
            dgm_pg_pipe_run(pipes[i], true);
    }
}

/* Does all there is, and waits for it. */
static void finish_all(pg_loop *l)
{
    while (l->pending) {
        connect_missing(l);
        progress(l);
        if (l->pending)
            wait_for_pipes(l);
        check_silence(l, &l->writer);
        check_silence(l, &l->reader);
        check_silence(l, &l->lister);
        fail_all_waiting(l);
    }
    post_answers(l);
}

/* The polls of a loop end with it; what waits is done first. From here on jobs are done at once. */
static void leave_loop(pg_loop *l)
{
    pg_pipe *const pipes[] = {&l->writer, &l->reader, &l->lister};
    l->blocking = true;
    for (int i = 0; i < 3; i++) {
        cancel_request(pipes[i]);
        dgm_pg_pipe_leave_loop(pipes[i]);
    }
    dgm_timer_stop(&l->tick);
    dgm_loop_not_at_turn_end(l->loop, &l->turn);
    finish_all(l);
}

static void on_stopped_loop(void *arg)
{
    pg_loop *l = arg;
    leave_loop(l);
    dgm_timer_close(&l->tick, NULL, NULL);
    l->is_stopped = true;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static pg_loop *loop_of(pg_store *s, dgm_loop *loop)
{
    pg_loop *l = s->loops[loop->index]; /* set by its own thread */
    if (l)
        return l;
    l = dgm_xcalloc(1, sizeof *l);
    l->store = s;
    l->loop = loop;
    l->writer = (pg_pipe){.loop = l, .use = &writer_use};
    l->reader = (pg_pipe){.loop = l, .use = &reader_use};
    l->lister = (pg_pipe){.loop = l, .use = &reader_use};
    l->turn = (dgm_loop_turn){.fn = at_turn_end, .arg = l};
    l->stop = (dgm_loop_stop){.fn = on_stopped_loop, .arg = l};
    dgm_loop_on_stop(loop, &l->stop);
    dgm_timer_init(loop, &l->tick, on_tick, l);
    dgm_timer_start(&l->tick, TICK_MS);
    pthread_mutex_lock(&s->lock);
    s->loops[loop->index] = l;
    pthread_mutex_unlock(&s->lock);
    return l;
}

static void refuse_job(pg_loop *l, dgm_job *job, const pg_queue *q)
{
    dgm_err why = {0};
    dgm_fail(&why, DGM_UNAVAILABLE, NULL,
             "%zu %s of %zu bytes wait for the database, the limit store_queue is %d: "
             "try again later",
             q->n, q == &l->writes ? "writes" : "reads", q->bytes, DGM_MAX_STORE_QUEUE);
    dgm_pg_loop_fail(l, job, &why);
}

static void add_job(pg_loop *l, dgm_job *job)
{
    bool write = dgm_job_is_write(job);
    pg_queue *q = write ? &l->writes : is_slow(job) ? &l->lists : &l->reads;
    pg_lane *lane = lane_of(l, job), *fenced = fence_lane_of(l, job);
    bool full = q->n + (q == &l->reads ? l->waiting : 0) >= DGM_MAX_STORE_QUEUE ||
                q->bytes >= DGM_MAX_STORE_QUEUE_BYTES;
    l->pending++;
    l->store->n_queued += job->kind == DGM_JOB_APPEND;
    job->waiting = lane && !write && !full &&
                   (lane->n_writes > 0 || lane->n_waiting > 0 || waits_for_fenced(lane, job));
    if (fenced)
        fenced->n_fenced++;
    if (lane) {
        *(lane->first ? &lane->last->lane_next : &lane->first) = job;
        lane->last = job;
        lane->n_writes += write;
    }
    if (full) {
        refuse_job(l, job, q);
    } else if (write) {
        pg_push(q, job);
    } else if (job->waiting) {
        lane->n_waiting++;
        l->waiting++;
    } else {
        start_reading(l, job);
    }
}

static void pg_submit(dgm_store *base, dgm_job *job)
{
    pg_store *s = (pg_store *)base;
    pg_loop *l = loop_of(s, job->loop);
    dgm_job *pair = job->pair;
    if (job->kind == DGM_JOB_TRIM) {
        dgm_pg_keeper_trim(s, job);
        return;
    }
    if (job->kind == DGM_JOB_COMMAND || job->kind == DGM_JOB_ANSWER) {
        dgm_pg_share_submit(s, job);
        return;
    }
    if (job->kind == DGM_JOB_RELEASE && job->task.has_failed)
        dgm_pg_share_set_aside(s, job->task.task_id);
    dgm_job_prepare(job);
    add_job(l, job);
    if (pair) {
        dgm_job_prepare(pair);
        add_job(l, pair);
    }
    if (l->blocking)
        finish_all(l);
    else
        progress_soon(l);
}

static bool pg_is_unknown(dgm_store *base, dgm_owner owner, dgm_str agent, dgm_str context_id,
                          dgm_str message_id)
{
    (void)base, (void)owner, (void)agent, (void)context_id, (void)message_id;
    return false; /* other servers store messages as well */
}

void dgm_pg_store_fault(pg_store *s, const dgm_err *err)
{
    pthread_mutex_lock(&s->lock);
    s->fault = err ? *err : (dgm_err){0};
    pthread_mutex_unlock(&s->lock);
}

static int64_t lease_left_ms(const pg_store *s)
{
    return (int64_t)(s->share.until_ms - dgm_pg_lease_now());
}

static bool pg_is_healthy(dgm_store *base, dgm_err *ret_why)
{
    pg_store *s = (pg_store *)base;
    pthread_mutex_lock(&s->lock);
    bool healthy = !s->fault.code;
    if (!healthy && ret_why)
        *ret_why = s->fault;
    pthread_mutex_unlock(&s->lock);
    int64_t left_ms = lease_left_ms(s);
    if (left_ms >= 0)
        return healthy;
    dgm_err fault = healthy || !ret_why ? (dgm_err){0} : *ret_why;
    dgm_fail(ret_why, DGM_UNAVAILABLE, NULL,
             "the lease of this server ended %lld ms ago, because the database did not extend it: "
             "other servers may take over its tasks%s%s",
             (long long)-left_ms, fault.code ? ": " : "", fault.msg);
    return false;
}

static dgm_store_stats pg_stats(dgm_store *base)
{
    pg_store *s = (pg_store *)base;
    pthread_mutex_lock(&s->lock);
    dgm_store_stats copy = s->stats;
    copy.queued = s->n_queued;
    pthread_mutex_unlock(&s->lock);
    copy.lease_left_ms = lease_left_ms(s);
    return copy;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

struct leaving {
    pg_loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool left;
};

static void on_tick_closed(void *arg)
{
    struct leaving *w = arg;
    pthread_mutex_lock(&w->lock);
    w->left = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void leave_running_loop(void *arg)
{
    struct leaving *w = arg;
    leave_loop(w->loop);
    dgm_loop_off_stop(w->loop->loop, &w->loop->stop);
    dgm_timer_close(&w->loop->tick, on_tick_closed, w);
}

static void free_loop(pg_loop *l)
{
    struct leaving w = {l, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    if (!l)
        return;
    if (!l->is_stopped) {
        dgm_loop_post(l->loop, leave_running_loop, &w);
        pthread_mutex_lock(&w.lock);
        while (!w.left)
            pthread_cond_wait(&w.cond, &w.lock);
        pthread_mutex_unlock(&w.lock);
    }
    finish_all(l);
    dgm_pg_pipe_detach(&l->writer);
    dgm_pg_pipe_detach(&l->reader);
    dgm_pg_pipe_detach(&l->lister);
    dgm_pg_batch_free(l->batch);
    free(l);
}

static void close_postgres(dgm_store *base)
{
    pg_store *s = (pg_store *)base;
    pthread_mutex_lock(&s->lock);
    while (s->n_trims)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    dgm_pg_keeper_stop(s); /* from here on nothing is posted to a loop but answers */
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++)
        free_loop(s->loops[i]);
    dgm_pg_share_stop(s); /* when all is written: then others take what is left */
    dgm_pg_share_close(s);
    dgm_pg_keeper_close(s);
    dgm_pg_target_done(&s->target);
    dgm_refused_done(&s->refused);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static dgm_code open_postgres(const char *rest, const dgm_store_options *options,
                              dgm_store **ret_store, dgm_err *err)
{
    pg_store *s = dgm_xcalloc(1, sizeof *s);
    s->base.driver = &dgm_store_postgres;
    s->base.share = &dgm_pg_share_driver;
    s->wake[0] = s->wake[1] = -1;
    s->share.wake[0] = s->share.wake[1] = -1;
    pthread_mutex_init(&s->share.lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    dgm_code code = dgm_pg_target_parse(rest, &s->target, err);
    if (!code)
        code = dgm_pg_keeper_open(s, err);
    if (!code)
        code = dgm_pg_share_open(s, options, err);
    if (code) {
        close_postgres(&s->base);
        return code;
    }
    *ret_store = &s->base;
    return DGM_OK;
}

static void show_postgres(const char *rest, char *out, size_t size)
{
    pg_target t;
    dgm_code code = dgm_pg_target_parse(rest, &t, NULL);
    snprintf(out, size, "PostgreSQL%s%s", code ? "" : " ", code ? "" : t.shown);
    dgm_pg_target_done(&t);
}

const dgm_store_driver dgm_store_postgres = {
    .scheme = "postgres",
    .open = open_postgres,
    .show = show_postgres,
    .close = close_postgres,
    .submit = pg_submit,
    .is_unknown = pg_is_unknown,
    .is_healthy = pg_is_healthy,
    .stats = pg_stats,
};
