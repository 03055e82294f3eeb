/* store/store_job.c - parts of a job that the drivers with a database share: its lane, and the records of log rows. */
#include "store/store_job.h"

#include "base/table.h"
#include "store/store_frame.h"

/* ---- lanes ----------------------------------------------------------------------------------------------- */

uint64_t dgm_job_hash_task(const dgm_owner *owner, dgm_str task_id)
{
    dgm_str key[] = {owner->tenant, owner->principal, task_id};
    return dgm_hash_texts(1, key, 3);
}

/* A change of several threads is in the lane of one of them. */
static uint64_t thread_lane(const dgm_job *job)
{
    if (job->kind == DGM_JOB_CHECKPOINTS) {
        dgm_str key[] = {job->checkpoints.agent, job->checkpoints.query.thread};
        return dgm_hash_texts(2, key, 2);
    }
    const dgm_checkpoint_change *c = &job->change.change;
    dgm_str thread = c->kind == DGM_CHECKPOINT_COPY ? c->to : c->row.thread;
    dgm_str key[] = {job->change.agent, c->names.n ? c->names.at[0] : thread};
    return dgm_hash_texts(2, key, 2);
}

void dgm_job_prepare(dgm_job *job)
{
    job->held = job->kind == DGM_JOB_APPEND     ? job->append.bytes
                : job->kind == DGM_JOB_CHANGE   ? job->change.bytes
                : job->kind == DGM_JOB_PUT_NOTE ? job->note.text.n
                                                : 0;
    if (job->kind == DGM_JOB_CHECKPOINTS || job->kind == DGM_JOB_CHANGE) {
        job->hash = thread_lane(job);
    } else if (dgm_job_has_lane(job)) {
        const dgm_task_row *row = dgm_job_is_write(job) ? &job->append.batch.row : NULL;
        const dgm_owner *owner = row ? &row->owner : &job->task.owner;
        job->hash = dgm_job_hash_task(owner, row ? row->id : job->task.task_id);
    }
}

/* ---- records --------------------------------------------------------------------------------------------- */

static void report_damaged_record(dgm_job *job, uint64_t seq, const char *remedy)
{
    job->code = dgm_fail(&job->err, DGM_INTERNAL, NULL,
                         "the database is damaged: record %llu of task %.*s cannot be read: %s",
                         (unsigned long long)seq, DGM_P(job->task.task_id), remedy);
}

static void add_log_record(dgm_job *job, dgm_log_page *page, const dgm_frame *f)
{
    size_t n = job->got.records.n;
    if (n == page->cap) {
        page->cap = n ? n * 2 : 64;
        job->got.records.at =
            dgm_arena_realloc(job->arena, job->got.records.at, n * sizeof(dgm_record *),
                              page->cap * sizeof(dgm_record *));
    }
    job->code = dgm_record_from_bytes(f->head, f->bytes, &job->got.records.at[n], &job->err);
    if (job->code)
        return;
    job->got.records.n++;
    page->bytes += f->bytes.n;
}

bool dgm_job_add_log_row(dgm_job *job, dgm_log_page *page, dgm_str row, uint64_t first_seq,
                         const char *remedy)
{
    dgm_frame f;
    if ((page->next && first_seq != page->next) || !dgm_frame_open(row, first_seq, &f)) {
        report_damaged_record(job, page->next ? page->next : first_seq, remedy);
        return false;
    }
    while (dgm_frame_next(&f)) {
        if (f.head.seq < job->task.seq)
            continue;
        size_t n = job->got.records.n;
        if (n >= job->task.max || (n > 0 && page->bytes >= job->task.max_bytes))
            return false;
        add_log_record(job, page, &f);
        if (job->code)
            return false;
    }
    page->next = f.head.seq + 1;
    if (f.at != f.end)
        report_damaged_record(job, page->next, remedy);
    return f.at == f.end;
}
