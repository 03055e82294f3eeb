/*
 * store/memory/memory.c - a store that forgets: for tests, benchmarks, and servers that need no more.
 *
 * The work is done at once, under one lock, on the calling thread; only the answer comes later. So
 * answers are in order by themselves, and `sync` has no meaning.
 */
#include "store/memory/memory_int.h"

#include <openssl/evp.h>
#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------------- */

void dgm_memory_return_task(dgm_job *job, const struct task *t)
{
    if (!t)
        return;
    job->got.row = dgm_new(dgm_job_arena(job), dgm_task_row);
    *job->got.row = task_row(t);
    dgm_task_row_keep(job->arena, job->got.row);
}

struct task *dgm_memory_task_of(const struct memory_store *s, const dgm_job *job)
{
    dgm_owner owner = job->task.owner;
    dgm_str id = job->task.task_id;
    return dgm_memory_find_task(s, dgm_memory_task_hash(owner, id), owner, id);
}

static void get_task(struct memory_store *s, dgm_job *job)
{
    dgm_memory_return_task(job, dgm_memory_task_of(s, job));
}

static void memory_find_call(struct memory_store *s, dgm_job *job)
{
    const struct asked *a =
        dgm_memory_find_call(s, job->find.owner, job->find.agent, job->find.call_id);
    dgm_memory_return_task(job, a ? a->task : NULL);
}

static void get_records(struct memory_store *s, dgm_job *job)
{
    const struct task *t = dgm_memory_task_of(s, job);
    uint64_t from = !t || job->task.seq > t->first ? job->task.seq : t->first;
    if (!t || from - t->first >= t->n_records)
        return;
    size_t at = (size_t)(from - t->first), n = 0, bytes = 0;
    while (at + n < t->n_records && n < job->task.max && (n == 0 || bytes < job->task.max_bytes))
        bytes += t->records[at + n++]->n;
    job->got.records.at = dgm_new_n(dgm_job_arena(job), dgm_record *, n);
    for (; job->got.records.n < n; job->got.records.n++)
        job->got.records.at[job->got.records.n] =
            dgm_record_ref(t->records[at + job->got.records.n]);
}

static void get_turns(struct memory_store *s, dgm_job *job)
{
    const struct task *t = dgm_memory_task_of(s, job);
    size_t n = 0;
    for (const struct turn *turn = t ? t->turns : NULL; turn; turn = turn->next)
        n++;
    if (!n)
        return;
    job->got.turns.at = dgm_new_n(dgm_job_arena(job), dgm_turn_row, n);
    for (const struct turn *turn = t->turns; turn; turn = turn->next) {
        dgm_turn_row *row = &job->got.turns.at[job->got.turns.n++];
        *row = turn_row(turn);
        dgm_turn_row_keep(job->arena, row);
    }
}

static void find_turn(struct memory_store *s, dgm_job *job)
{
    const struct caller *c = dgm_memory_find_caller(s, job->find.owner, job->find.agent,
                                                    job->find.protocol, job->find.caller_id);
    for (const struct turn *turn = c ? c->task->turns : NULL; turn; turn = turn->next) {
        if (turn->turn != c->turn)
            continue;
        job->got.turns.at = dgm_new(dgm_job_arena(job), dgm_turn_row);
        job->got.turns.n = 1;
        *job->got.turns.at = turn_row(turn);
        dgm_turn_row_keep(job->arena, job->got.turns.at);
        job->got.turns.task_id = dgm_arena_dup(job->arena, task_id(c->task));
    }
}

static void find_dedupe(struct memory_store *s, dgm_job *job)
{
    dgm_owner owner = job->find.owner;
    dgm_str context_id = job->find.context_id, agent = job->find.agent, id = job->find.message_id;
    uint64_t hash = dgm_memory_message_hash(owner, agent, context_id, id);
    const struct taken *d = dgm_memory_find_message(s, hash, owner, agent, context_id, id);
    int64_t expires_ms = d ? d->keys[taken_by(context_id)].expires_ms : 0;
    if (!d || (expires_ms && expires_ms <= dgm_loop_unix_ms()))
        return;
    dgm_dedupe_row *row = job->got.dedupe = dgm_new(dgm_job_arena(job), dgm_dedupe_row);
    *row = (dgm_dedupe_row){.owner = task_owner(d->task),
                            .agent = task_agent(d->task),
                            .context_id = context_id,
                            .message_id = taken_message(d),
                            .task_id = task_id(d->task),
                            .turn = d->turn,
                            .expires_ms = expires_ms};
    dgm_content_digest(&s->sha256, (dgm_str){d->texts + d->message_id_n, d->content_n},
                       row->digest);
    dgm_dedupe_row_keep(job->arena, row);
}

static bool is_unknown(dgm_store *base, dgm_owner owner, dgm_str agent, dgm_str context_id,
                       dgm_str message_id)
{
    struct memory_store *s = (struct memory_store *)base;
    uint64_t hash = dgm_memory_message_hash(owner, agent, context_id, message_id);
    pthread_mutex_lock(&s->lock);
    bool unknown = !dgm_memory_find_message(s, hash, owner, agent, context_id, message_id);
    pthread_mutex_unlock(&s->lock);
    return unknown;
}

/* ---- the driver ------------------------------------------------------------------------------------ */

void dgm_memory_work(struct memory_store *s, dgm_job *job)
{
    static void (*const work[])(struct memory_store *, dgm_job *) = {
        [DGM_JOB_APPEND] = dgm_memory_append,
        [DGM_JOB_TASK] = get_task,
        [DGM_JOB_RECORDS] = get_records,
        [DGM_JOB_TURNS] = get_turns,
        [DGM_JOB_FIND_TURN] = find_turn,
        [DGM_JOB_FIND_DEDUPE] = find_dedupe,
        [DGM_JOB_LIST] = dgm_memory_list,
        [DGM_JOB_CONTEXT] = dgm_memory_get_context,
        [DGM_JOB_UNFINISHED] = dgm_memory_list_unfinished,
        [DGM_JOB_FIND_CALL] = memory_find_call,
        [DGM_JOB_GET_NOTE] = dgm_memory_get_note,
        [DGM_JOB_TRIM] = dgm_memory_trim,
        [DGM_JOB_CHECKPOINTS] = dgm_memory_read_checkpoints,
        [DGM_JOB_CHANGE] = dgm_memory_change_checkpoints,
        [DGM_JOB_PUT_NOTE] = dgm_memory_put_note,
    };
    work[job->kind](s, job);
    if (!dgm_job_is_write(job))
        s->stats.reads++;
}

static void submit(dgm_store *base, dgm_job *job)
{
    struct memory_store *s = (struct memory_store *)base;
    dgm_job *pair = job->pair;
    pthread_mutex_lock(&s->lock);
    dgm_memory_work(s, job);
    pthread_mutex_unlock(&s->lock);
    dgm_loop_post(job->loop, dgm_job_on_answers, job);
    if (pair)
        submit(base, pair);
}

void dgm_memory_init(struct memory_store *s)
{
    s->last_ended = &s->first_ended;
    s->last_note = &s->first_note;
    s->last_thread = &s->first_thread;
    pthread_mutex_init(&s->lock, NULL);
}

void dgm_memory_done(struct memory_store *s)
{
    dgm_memory_delete_all(s);
    pthread_mutex_destroy(&s->lock);
    EVP_MD_CTX_free(s->sha256);
    dgm_refused_done(&s->refused);
}

static dgm_code open_memory(const char *rest, const dgm_store_options *options,
                            dgm_store **ret_store, dgm_err *err)
{
    (void)options;
    if (*rest)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the store memory: has no path, got \"%.200s\"",
                        rest);
    struct memory_store *s = dgm_xcalloc(1, sizeof *s);
    s->base.driver = &dgm_store_memory;
    dgm_memory_init(s);
    *ret_store = &s->base;
    return DGM_OK;
}

static void close_memory(dgm_store *base)
{
    struct memory_store *s = (struct memory_store *)base;
    dgm_memory_done(s);
    free(s);
}

static bool is_healthy(dgm_store *base, dgm_err *ret_why)
{
    (void)base, (void)ret_why;
    return true;
}

static dgm_store_stats stats(dgm_store *base)
{
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    dgm_store_stats copy = s->stats;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

const dgm_store_driver dgm_store_memory = {
    .scheme = "memory",
    .open = open_memory,
    .close = close_memory,
    .submit = submit,
    .is_unknown = is_unknown,
    .is_healthy = is_healthy,
    .stats = stats,
};
