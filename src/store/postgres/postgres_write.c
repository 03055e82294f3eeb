/*
 * store/postgres/postgres_write.c - sends a batch of appends and notes as one statement and one commit, and answers its jobs.
 *
 * If the connection is lost, appends may be stored or not. They are sent again. If an append then does not fit, and the log has
 * the same end and the same last record (`tail`) as the append, it was stored.
 */
#include "postgres_batch_int.h"

#include <assert.h>

#define MAX_TRIES 30 /* of a batch that conflicts with others */

/* ---- sending ------------------------------------------------------------------------------------------- */

void dgm_pg_write_requeue(pg_loop *l, dgm_job *chain)
{
    assert(chain);
    dgm_job *last = chain;
    size_t n = 1, bytes = chain->held;
    for (; last->next; n++) {
        last = last->next;
        bytes += last->held;
    }
    last->next = l->writes.first;
    if (!l->writes.first)
        l->writes.last = last;
    l->writes.first = chain;
    l->writes.n += n;
    l->writes.bytes += bytes;
}

/* Was the first append of the task of a change refused? Then it will never be stored. */
static bool may_be_new(pg_store *s, const dgm_job *change)
{
    const dgm_fence *f = &change->change.change.fence;
    pthread_mutex_lock(&s->lock);
    bool is_refused = f->is_new && dgm_refused_has(&s->refused, f->owner, f->task_id);
    pthread_mutex_unlock(&s->lock);
    return !is_refused;
}

void dgm_pg_write_next(pg_loop *l)
{
    pg_batch *b = dgm_pg_batch_of(l);
    dgm_job *chain = dgm_pg_batch_fill(l, b);
    assert(chain);
    b->op = (pg_op){.job = chain};
    b->began_ns = uv_hrtime();
    b->replica = l->store->base.replica;
    for (dgm_job *job = chain; job; job = job->next)
        job->code = DGM_OK;
    if (chain->kind == DGM_JOB_CHANGE) {
        b->change = dgm_pg_change_new(chain, b->replica, may_be_new(l->store, chain));
    } else {
        dgm_pg_batch_group(b, chain);
        dgm_pg_batch_put(b);
    }
    dgm_pg_pipe_add(&l->writer, &b->op, true);
    dgm_pg_pipe_run(&l->writer, false);
}

/* Sends the next statement of the batch, at last the sync; false: that was all. */
bool dgm_pg_write_more(pg_loop *l, pg_op *op)
{
    static const char relax[] = "SELECT set_config('synchronous_commit','off',true)";
    static const pg_args none;
    pg_batch *b = l->batch;
    (void)op;
    if (b->change && dgm_pg_change_send(b->change, &l->writer))
        return true;
    if (!b->change && l->store->target.relaxed && !b->sync)
        dgm_pg_send_text(&l->writer, relax, &none);
    if (!b->change)
        dgm_pg_send(&l->writer, PG_SQL_BATCH, &b->args);
    dgm_pg_send_sync(&l->writer);
    return false;
}

/* ---- results ------------------------------------------------------------------------------------------- */

/* The nth note of the batch: another server has its task. */
static void note_is_lost(pg_batch *b, int64_t nth)
{
    for (dgm_job *job = b->op.job; job; job = job->next) {
        if (pg_is_in_batch(job) && nth-- == 0)
            job->code = dgm_append_lost(job->note.fence.task_id, &job->err);
    }
}

void dgm_pg_write_result(pg_loop *l, pg_op *op, const PGresult *r)
{
    pg_batch *b = l->batch;
    (void)op;
    if (b->change) {
        dgm_pg_change_result(b->change, r);
        return;
    }
    if (PQnfields(r) != 7) /* of set_config */
        return;
    for (int i = 0; i < PQntuples(r); i++) {
        if (dgm_pg_int(r, i, 6)) {
            note_is_lost(b, dgm_pg_int(r, i, 0));
            continue;
        }
        struct group *g = &b->groups[dgm_pg_int(r, i, 0)];
        g->is_bad = true;
        g->exists = dgm_pg_str(r, i, 1).p;
        g->last_seq = (uint64_t)dgm_pg_int(r, i, 1);
        g->tail = dgm_pg_int(r, i, 2);
        g->owner = dgm_pg_int(r, i, 3);
        g->has_fence = (uint64_t)dgm_pg_int(r, i, 4);
        g->is_duplicate = dgm_pg_int(r, i, 5);
    }
}

/* Was it stored by a statement whose answer was lost? */
static bool was_stored(const pg_loop *l, const struct group *g, const dgm_job *job)
{
    const dgm_append *a = &job->append.batch;
    return (job->in_doubt || l->had_doubt) && g->exists && a->n_records &&
           g->last_seq == a->row.last_seq && g->tail == dgm_pg_tail_of(a);
}

static void refuse_append(const pg_batch *b, const struct group *g, dgm_job *job)
{
    const dgm_append *a = &job->append.batch;
    if (g->exists ? g->owner != b->replica || g->has_fence != g->fence : g->fence != 1)
        job->code = dgm_append_lost(a->row.id, &job->err);
    else if (g->is_duplicate && a->taken)
        job->code = dgm_append_duplicate(a, &job->err);
    else
        job->code = dgm_append_misfit(a, g->exists ? &g->last_seq : NULL, &job->err);
}

/*
 * The row is as the group needs it, but the statement did not change it: it had to wait for another statement, and what it
 * returns of the row is older. The next one sees what that one did: stored the same append (its connection was lost), or took
 * the task.
 */
static bool is_outdated(const pg_batch *b, const struct group *g)
{
    uint64_t first = dgm_append_first(&g->first->append.batch);
    if (g->is_duplicate)
        return false;
    if (!g->exists)
        return first == 1 && g->fence == 1;
    return g->owner == b->replica && g->has_fence == g->fence && g->last_seq + 1 == first;
}

static bool is_settled_later(pg_batch *b, const struct group *g)
{
    if (!is_outdated(b, g) || b->tries >= MAX_TRIES)
        return false;
    b->is_outdated = true;
    for (dgm_job *job = g->first; job; job = job->group_next)
        job->is_again = true;
    return true;
}

/* Nothing of it was written. What was stored before is answered, else the first is refused; those behind are tried again. */
static void settle_bad_group(const pg_loop *l, struct group *g)
{
    pg_batch *b = l->batch;
    dgm_job *behind = NULL;
    assert(g->first);
    if (is_settled_later(b, g))
        return;
    for (dgm_job *job = g->first; job && !behind; job = job->group_next) {
        if (was_stored(l, g, job))
            behind = job;
    }
    if (!behind) {
        behind = g->first;
        refuse_append(b, g, behind);
    }
    for (dgm_job *job = behind->group_next; job; job = job->group_next)
        job->is_again = true;
}

static void count_commit(pg_loop *l, const pg_batch *b)
{
    pg_store *s = l->store;
    uint64_t took = uv_hrtime() - b->began_ns;
    size_t bound = 0;
    while (bound < DGM_N_COMMIT_BOUNDS && took > (uint64_t)dgm_store_commit_bounds[bound] * 1000)
        bound++;
    pthread_mutex_lock(&s->lock);
    s->stats.commits++;
    s->stats.commit_took[bound]++;
    s->stats.commit_ns += took;
    for (const dgm_job *job = b->op.job; job; job = job->next) {
        if (job->kind != DGM_JOB_APPEND || job->code || job->is_again)
            continue;
        s->stats.appends++;
        s->stats.records += job->append.batch.n_records;
        s->stats.bytes += job->append.bytes;
    }
    pthread_mutex_unlock(&s->lock);
}

static void answer_all(pg_loop *l, dgm_job *chain)
{
    dgm_job *again = NULL, **end = &again;
    for (dgm_job *job = chain, *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        if (job->is_again) {
            job->is_again = false;
            *end = job;
            end = &job->next;
        } else {
            dgm_pg_loop_done(l, job);
        }
    }
    if (again)
        dgm_pg_write_requeue(l, again);
}

/* Of appends of which the statement wrote nothing. */
static bool is_first_of_bad_group(const pg_batch *b, const dgm_job *append)
{
    for (size_t g = 0; g < b->n_groups && !b->op.failed; g++) {
        if (b->groups[g].first == append)
            return b->groups[g].is_bad;
    }
    return false;
}

/*
 * Notes of appends that were refused, or are written with the next batch. Of appends that had been stored before: the note of
 * an append was stored with it (pair), but others may have come since then. This batch has not written them: the next one does,
 * with a fence of their own.
 */
static void settle_notes(const pg_batch *b)
{
    for (dgm_job *job = b->op.job; job; job = job->next) {
        const dgm_job *append = job->kind == DGM_JOB_PUT_NOTE ? job->state : NULL;
        if (!append)
            continue;
        bool is_its_own = append->pair == job;
        job->is_again =
            append->is_again || (!is_its_own && !append->code && is_first_of_bad_group(b, append));
        if (append->code && !job->code) {
            job->code = append->code;
            job->err = append->err;
        }
    }
}

static void wake_followers(const pg_loop *l, const pg_batch *b)
{
    for (size_t i = 0; i < b->n_groups; i++) {
        const dgm_task_row *row = pg_row_of(b, i);
        if (!b->groups[i].is_bad)
            dgm_pg_share_grown(l->store, row->owner, row->id,
                               b->groups[i].releases && dgm_state_is_unfinished(row->state));
    }
}

/* False: it is tried again. */
static bool settle_failure(pg_loop *l, pg_batch *b)
{
    pg_op *op = &b->op;
    bool again = false;
    if (b->change && op->refused) {
        op->code = dgm_append_lost(op->job->change.change.fence.task_id, &op->err);
        op->job->code = DGM_OK; /* whether there was room does not matter */
    } else if ((op->conflict || op->refused) && b->tries < MAX_TRIES) {
        b->tries++;
        again = true;
    } else if (op->odd && b->n_units > 1) { /* something odd in one must not fail the others */
        l->alone += b->n_units;
        again = true;
    }
    if (again) {
        dgm_pg_write_requeue(l, op->job);
        return false;
    }
    if (!op->odd && !op->conflict && !op->refused)
        dgm_pg_store_fault(l->store, &op->err);
    for (dgm_job *job = op->job; job; job = job->next) {
        if (job->code)
            continue;
        job->code = op->code;
        job->err = op->err;
    }
    return true;
}

void dgm_pg_write_done(pg_loop *l, pg_op *op)
{
    pg_batch *b = l->batch;
    bool settled = true;
    b->is_outdated = false;
    if (!b->change) {
        for (size_t i = 0; i < b->n_groups && !op->failed; i++) {
            if (b->groups[i].is_bad)
                settle_bad_group(l, &b->groups[i]);
        }
        dgm_pg_args_clear(&b->args);
        settle_notes(b);
    }
    if (op->failed) {
        settled = settle_failure(l, b);
    } else {
        b->tries = b->is_outdated ? b->tries + 1 : 0;
        count_commit(l, b);
        dgm_pg_store_fault(l->store, NULL);
        if (!b->change)
            wake_followers(l, b);
    }
    dgm_pg_change_free(b->change);
    b->change = NULL;
    if (settled)
        answer_all(l, op->job);
}

void dgm_pg_write_lost(pg_loop *l)
{
    pg_batch *b = l->batch;
    dgm_pg_change_free(b->change);
    b->change = NULL;
    for (dgm_job *job = b->op.job; job; job = job->next)
        job->in_doubt = true;
    dgm_pg_write_requeue(l, b->op.job);
}
