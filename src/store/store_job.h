/*
 * store/store_job.h - how a call becomes a job: one block of memory, the struct, then the texts that were passed
 * in. First every text is counted (dgm_room), then copied (dgm_put).
 */
#pragma once

#include "store/store_int.h"

/* Where the next text goes. Absent text stays absent. */
struct dgm_block {
    char *at;
};

static inline size_t dgm_room(dgm_str s)
{
    return s.p ? s.n + 1 : 0;
}

static inline void dgm_put(struct dgm_block *b, dgm_str *s)
{
    if (!s->p)
        return;
    memcpy(b->at, s->p, s->n);
    b->at[s->n] = 0;
    s->p = b->at;
    b->at += s->n + 1;
}

static inline size_t dgm_room_of_row(const dgm_task_row *r)
{
    return dgm_room(r->owner.tenant) + dgm_room(r->owner.principal) + dgm_room(r->id) +
           dgm_room(r->context_id) + dgm_room(r->agent) + dgm_room(r->folded);
}

static inline void dgm_put_row(struct dgm_block *b, dgm_task_row *r)
{
    dgm_put(b, &r->owner.tenant);
    dgm_put(b, &r->owner.principal);
    dgm_put(b, &r->id);
    dgm_put(b, &r->context_id);
    dgm_put(b, &r->agent);
    dgm_put(b, &r->folded);
}

static inline size_t dgm_room_of_fence(const dgm_fence *f)
{
    return dgm_room(f->owner.tenant) + dgm_room(f->owner.principal) + dgm_room(f->task_id);
}

static inline void dgm_put_fence(struct dgm_block *b, dgm_fence *f)
{
    dgm_put(b, &f->owner.tenant);
    dgm_put(b, &f->owner.principal);
    dgm_put(b, &f->task_id);
}

dgm_job *dgm_job_new_task(dgm_job_kind kind, dgm_owner owner, dgm_str task_id, void *arg);
/* See dgm_store_put_note. Its code is not DGM_OK if it is too large: then it is answered without the driver. */
dgm_job *dgm_job_new_note(const dgm_note *note, dgm_store_done done, void *arg);
/* With so much room behind it; on a loop, which is answered. */
dgm_job *dgm_job_new(dgm_job_kind kind, size_t more, struct dgm_block *ret_block, void *arg);

/* The hash that selects the lane of a task. */
uint64_t dgm_job_hash_task(const dgm_owner *owner, dgm_str task_id);
/* Sets `held`, the bytes that the job adds to a queue, and `hash`, its lane if it has one. */
void dgm_job_prepare(dgm_job *job);

/* The records that a DGM_JOB_RECORDS has read so far. */
typedef struct dgm_log_page {
    size_t cap, bytes;
    uint64_t next; /* the first seq of the next row; 0: any */
} dgm_log_page;
/* Adds the records of a log row to the result, up to the limits of the job. False: the result is complete, or job->code is set.
 * remedy: the end of the error message if the row is damaged. */
bool dgm_job_add_log_row(dgm_job *job, dgm_log_page *page, dgm_str row, uint64_t first_seq,
                         const char *remedy);

/* Of a change or of checkpoints that were read: its references to bytes. */
void dgm_job_unref_values(dgm_job *job);
