/*
 * store/store.c - calls become jobs, jobs become callbacks; the driver is chosen by the URL.
 *
 * A job is one block of memory: the struct, then the texts that were passed in. What a driver answers
 * lives in an arena that is made when there is something to answer.
 */
#include "store/store_job.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

/* dgm_err.detail */
enum { STORE_LOST = 1, STORE_DUPLICATE };

static const dgm_store_driver *const drivers[] = {&dgm_store_memory, &dgm_store_memory_shared,
                                                  &dgm_store_sqlite, &dgm_store_postgres};

/* ---- jobs ------------------------------------------------------------------------------------------ */

dgm_job *dgm_job_new(dgm_job_kind kind, size_t more, struct dgm_block *ret_block, void *arg)
{
    dgm_job *job = dgm_xmalloc(sizeof *job + more);
    memset(job, 0, offsetof(dgm_job, err));
    job->loop = dgm_loop_current();
    assert(job->loop); /* the answer is posted to this loop */
    job->kind = kind;
    job->arg = arg;
    ret_block->at = (char *)(job + 1);
    return job;
}

dgm_arena *dgm_job_arena(dgm_job *job)
{
    if (!job->arena)
        job->arena = dgm_arena_new();
    return job->arena;
}

void dgm_job_on_answers(void *chain)
{
    for (dgm_job *job = chain, *next; job; job = next) {
        dgm_code code = job->code;
        const dgm_err *err = code ? &job->err : NULL;
        void *arg = job->arg;
        next = job->next;
        switch (job->kind) {
        case DGM_JOB_APPEND:
        case DGM_JOB_CHANGE:
        case DGM_JOB_PUT_NOTE:
        case DGM_JOB_TRIM:
        case DGM_JOB_RELEASE:
        case DGM_JOB_ANSWER:
            if (job->call.done)
                job->call.done(code, err, arg);
            break;
        case DGM_JOB_TASK:
        case DGM_JOB_ACQUIRE:
        case DGM_JOB_FIND_CALL: job->call.task(code, code ? NULL : job->got.row, err, arg); break;
        case DGM_JOB_RECORDS:
            job->call.records(code, job->got.records.at, code ? 0 : job->got.records.n, err, arg);
            for (size_t i = 0; i < job->got.records.n; i++)
                dgm_record_unref(job->got.records.at[i]);
            break;
        case DGM_JOB_TURNS:
            job->call.turns(code, job->got.turns.at, code ? 0 : job->got.turns.n, err, arg);
            break;
        case DGM_JOB_FIND_TURN:
            job->call.turn(code, !code && job->got.turns.n ? job->got.turns.at : NULL,
                           job->got.turns.task_id, err, arg);
            break;
        case DGM_JOB_FIND_DEDUPE:
            job->call.dedupe(code, code ? NULL : job->got.dedupe, err, arg);
            break;
        case DGM_JOB_GET_NOTE:
            job->call.note(code, code ? (dgm_str){0} : job->got.note, err, arg);
            break;
        case DGM_JOB_CHECKPOINTS:
            job->call.checkpoints(code, job->got.checkpoints.at, code ? 0 : job->got.checkpoints.n,
                                  job->got.checkpoints.more, err, arg);
            break;
        case DGM_JOB_COMMAND:
            if (job->call.answered)
                job->call.answered(code, job->got.note, err, arg);
            break;
        case DGM_JOB_LIST:
        case DGM_JOB_CONTEXT:
        case DGM_JOB_UNFINISHED:
            job->call.list(code, job->got.rows.at, code ? 0 : job->got.rows.n, job->got.rows.more,
                           job->got.rows.total, err, arg);
            break;
        }
        for (size_t i = 0; job->kind == DGM_JOB_APPEND && i < job->append.batch.n_records; i++)
            dgm_record_unref(job->append.batch.records[i]);
        dgm_job_unref_values(job);
        dgm_arena_free(job->arena);
        free(job);
    }
}

/* ---- for drivers ----------------------------------------------------------------------------------- */

static void store_keep(dgm_arena *a, dgm_str *s)
{
    if (s->p)
        *s = dgm_arena_dup(a, *s);
}

void dgm_task_row_keep(dgm_arena *a, dgm_task_row *row)
{
    store_keep(a, &row->owner.tenant);
    store_keep(a, &row->owner.principal);
    store_keep(a, &row->id);
    store_keep(a, &row->context_id);
    store_keep(a, &row->agent);
    store_keep(a, &row->folded);
}

void dgm_turn_row_keep(dgm_arena *a, dgm_turn_row *row)
{
    store_keep(a, &row->protocol);
    store_keep(a, &row->caller_id);
    store_keep(a, &row->request);
    store_keep(a, &row->previous);
}

void dgm_dedupe_row_keep(dgm_arena *a, dgm_dedupe_row *row)
{
    store_keep(a, &row->owner.tenant);
    store_keep(a, &row->owner.principal);
    store_keep(a, &row->agent);
    store_keep(a, &row->context_id);
    store_keep(a, &row->message_id);
    store_keep(a, &row->task_id);
}

void dgm_content_digest(EVP_MD_CTX **context, dgm_str content, unsigned char *ret_digest)
{
    if (content.n == DGM_DIGEST_BYTES) {
        memcpy(ret_digest, content.p, DGM_DIGEST_BYTES);
        return;
    }
    bool ok = *context ? EVP_DigestInit_ex(*context, NULL, NULL)
                       : EVP_DigestInit_ex(*context = EVP_MD_CTX_new(), EVP_sha256(), NULL);
    if (!ok || !EVP_DigestUpdate(*context, content.p, content.n) ||
        !EVP_DigestFinal_ex(*context, ret_digest, NULL))
        abort(); /* there is no server without it */
}

dgm_code dgm_append_check(const dgm_append *b, dgm_err *err)
{
    uint64_t seq = dgm_append_first(b);
    for (size_t i = 0; i < b->n_records; i++) {
        if (b->records[i]->head.seq != seq + i)
            return dgm_fail(err, DGM_INTERNAL, NULL,
                            "append to task %.*s: record %zu of it has seq %llu, not %llu",
                            DGM_P(b->row.id), i, (unsigned long long)b->records[i]->head.seq,
                            (unsigned long long)seq + i);
    }
    if (b->row.last_seq + 1 != seq + b->n_records || seq == 0 || b->row.last_seq > UINT32_MAX)
        return dgm_fail(err, DGM_INTERNAL, NULL,
                        "append to task %.*s: %zu records from seq %llu cannot end at %llu",
                        DGM_P(b->row.id), b->n_records, (unsigned long long)seq,
                        (unsigned long long)b->row.last_seq);
    return DGM_OK;
}

dgm_code dgm_append_misfit(const dgm_append *b, const uint64_t *last, dgm_err *err)
{
    unsigned long long first = dgm_append_first(b);
    if (!last)
        return dgm_fail(err, DGM_INTERNAL, NULL, "append to task %.*s from seq %llu: unknown task",
                        DGM_P(b->row.id), first);
    return dgm_fail(err, DGM_INTERNAL, NULL,
                    "append to task %.*s from seq %llu: its log ends at %llu", DGM_P(b->row.id),
                    first, (unsigned long long)*last);
}

dgm_code dgm_append_lost(dgm_str task_id, dgm_err *err)
{
    dgm_fail(err, DGM_UNAVAILABLE, NULL,
             "another server owns task %.*s now: connect again with the last event id",
             DGM_P(task_id));
    if (err)
        err->detail = STORE_LOST;
    return DGM_UNAVAILABLE;
}

dgm_code dgm_append_duplicate(const dgm_append *b, dgm_err *err)
{
    dgm_fail(err, DGM_UNAVAILABLE, NULL,
             "another server received message %.*s at the same time: send it again",
             DGM_P(b->taken->message_id));
    if (err)
        err->detail = STORE_DUPLICATE;
    return DGM_UNAVAILABLE;
}

bool dgm_store_is_lost(const dgm_err *err)
{
    return err && err->code == DGM_UNAVAILABLE && err->detail == STORE_LOST;
}

bool dgm_store_is_duplicate(const dgm_err *err)
{
    return err && err->code == DGM_UNAVAILABLE && err->detail == STORE_DUPLICATE;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static void *put_array(struct dgm_block *b, const void *from, size_t bytes)
{
    void *to = b->at;
    memcpy(to, from, bytes);
    b->at += bytes;
    return to;
}

void dgm_store_append(dgm_store *s, const dgm_append *batch, dgm_store_done done, void *arg)
{
    struct dgm_block b;
    assert(!batch->taken || batch->turn);
    const dgm_turn_row *turn = batch->turn;
    const dgm_taken *taken = batch->taken;
    size_t n = dgm_room_of_row(&batch->row) + batch->n_records * sizeof *batch->records;
    if (turn)
        n += sizeof *turn + dgm_room(turn->protocol) + dgm_room(turn->caller_id) +
             dgm_room(turn->request) + dgm_room(turn->previous);
    if (taken)
        n += sizeof *taken + dgm_room(taken->message_id) + dgm_room(taken->content);
    for (size_t i = 0; i < batch->open_calls.n; i++)
        n += sizeof(dgm_str) + dgm_room(batch->open_calls.at[i]);

    dgm_job *job = dgm_job_new(DGM_JOB_APPEND, n, &b, arg);
    dgm_append *to = &job->append.batch;
    *to = *batch;
    /* arrays first: the struct before them keeps them aligned */
    if (batch->n_records)
        to->records = put_array(&b, batch->records, batch->n_records * sizeof *batch->records);
    dgm_turn_row *turn_copy = turn ? put_array(&b, turn, sizeof *turn) : NULL;
    dgm_taken *taken_copy = taken ? put_array(&b, taken, sizeof *taken) : NULL;
    to->turn = turn_copy;
    to->taken = taken_copy;
    if (batch->open_calls.n)
        to->open_calls.at =
            put_array(&b, batch->open_calls.at, batch->open_calls.n * sizeof(dgm_str));
    for (size_t i = 0; i < batch->open_calls.n; i++)
        dgm_put(&b, &to->open_calls.at[i]);
    if (turn) {
        dgm_put(&b, &turn_copy->protocol);
        dgm_put(&b, &turn_copy->caller_id);
        dgm_put(&b, &turn_copy->request);
        dgm_put(&b, &turn_copy->previous);
    }
    if (taken) {
        dgm_put(&b, &taken_copy->message_id);
        dgm_put(&b, &taken_copy->content);
    }
    dgm_put_row(&b, &to->row);
    for (size_t i = 0; i < batch->n_records; i++)
        job->append.bytes += dgm_record_ref(batch->records[i])->n;
    job->call.done = done;
    to->note = NULL; /* it is a job of its own */
    dgm_job *note = batch->note
                        ? dgm_job_new_note(&batch->note->note, batch->note->done, batch->note->arg)
                        : NULL;
    bool is_refused = note && note->code;
    job->pair = is_refused ? NULL : note;
    if (note && dgm_str_eq(note->note.fence.task_id, batch->row.id))
        note->note.fence.task_id =
            (dgm_str){0};      /* that of the append: both are stored, or neither */
    s->driver->submit(s, job); /* takes both over */
    if (is_refused)
        dgm_loop_post(note->loop, dgm_job_on_answers, note);
}

void dgm_store_trim(dgm_store *s, dgm_retention keep_from, dgm_store_done done, void *arg)
{
    struct dgm_block b;
    dgm_job *job = dgm_job_new(DGM_JOB_TRIM, 0, &b, arg);
    job->trim.keep = keep_from;
    job->call.done = done;
    s->driver->submit(s, job);
}

/* ---- life ------------------------------------------------------------------------------------------ */

/* *ret_rest: behind the scheme. */
static const dgm_store_driver *driver_of(const char *url, const char **ret_rest)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        size_t n = strlen(drivers[i]->scheme);
        if (strncmp(url, drivers[i]->scheme, n) == 0 && url[n] == ':') {
            *ret_rest = url + n + 1;
            return drivers[i];
        }
    }
    return NULL;
}

void dgm_store_show(const char *url, char *out, size_t size)
{
    const char *rest = "";
    const dgm_store_driver *driver = driver_of(url, &rest);
    if (driver && driver->show)
        driver->show(rest, out, size);
    else
        snprintf(out, size, "%s", driver ? url : "");
}

dgm_code dgm_store_open(const char *url, dgm_store **ret_store, dgm_err *err)
{
    return dgm_store_open_with(url, &(dgm_store_options){0}, ret_store, err);
}

dgm_code dgm_store_open_with(const char *url, const dgm_store_options *options,
                             dgm_store **ret_store, dgm_err *err)
{
    const char *rest;
    const dgm_store_driver *driver = driver_of(url, &rest);
    if (driver)
        return driver->open(rest, options, ret_store, err);
    int n = (int)strcspn(url, ":/@"); /* what is behind may be secret */
    return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                    "unknown store \"%.*s\": write memory:, sqlite:PATH or postgres:CONNINFO",
                    n < 40 ? n : 40, url);
}

void dgm_store_close(dgm_store *s)
{
    if (s)
        s->driver->close(s);
}

bool dgm_store_is_healthy(dgm_store *s, dgm_err *ret_why)
{
    return s->driver->is_healthy(s, ret_why);
}

const uint32_t dgm_store_commit_bounds[DGM_N_COMMIT_BOUNDS] = {
    100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 500000, 2500000};

dgm_store_stats dgm_store_stats_of(dgm_store *s)
{
    return s->driver->stats(s);
}
