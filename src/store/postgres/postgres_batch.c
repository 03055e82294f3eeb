/*
 * store/postgres/postgres_batch.c - selects the jobs of a batch, and groups its appends by task.
 *
 * Appends to one task in a batch become one group: one change of its row. A statement must not write a row twice: a job that
 * would do so is part of the next batch.
 */
#include "postgres_batch_int.h"

#include "base/table.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

/* One commit: large enough to make a sync cheap, small enough that no caller waits long for its end. */
#define BATCH_JOBS 2048
#define BATCH_BYTES ((size_t)8 << 20)

void dgm_pg_batch_free(pg_batch *b)
{
    if (!b)
        return;
    dgm_pg_change_free(b->change);
    dgm_pg_args_done(&b->args);
    dgm_buf_done(&b->row);
    EVP_MD_CTX_free(b->sha256);
    free(b->groups);
    free(b->log);
    free(b->turns);
    free(b->messages);
    free(b->slots);
    free(b->keys);
    free(b);
}

pg_batch *dgm_pg_batch_of(pg_loop *l)
{
    if (!l->batch) {
        l->batch = dgm_xcalloc(1, sizeof *l->batch);
        dgm_pg_args_init(&l->batch->args);
        dgm_buf_init(&l->batch->row, (size_t)1 << 30);
    }
    return l->batch;
}

/* ---- what is in it --------------------------------------------------------------------------------- */

/* False: it is there already. */
static bool add_key(pg_batch *b, uint64_t hash)
{
    if ((b->n_keys + 1) * 2 > b->cap_keys) {
        uint64_t *old = b->keys;
        size_t n = b->cap_keys;
        b->cap_keys = n ? n * 2 : 64;
        b->keys = dgm_xcalloc(b->cap_keys, sizeof *b->keys);
        b->n_keys = 0;
        for (size_t i = 0; i < n; i++) {
            if (old[i])
                add_key(b, old[i]);
        }
        free(old);
    }
    hash |= 1;
    size_t i = (hash >> 1) & (b->cap_keys - 1);
    for (; b->keys[i]; i = (i + 1) & (b->cap_keys - 1)) {
        if (b->keys[i] == hash)
            return false;
    }
    b->keys[i] = hash;
    b->n_keys++;
    return true;
}

static bool add_keys_of_note(pg_batch *b, const dgm_note *n)
{
    dgm_str key[] = {n->owner.tenant, n->owner.principal, n->kind, n->name};
    return add_key(b, dgm_hash_texts(10, key, 4));
}

static bool add_keys_of_append(pg_batch *b, const dgm_append *a)
{
    const dgm_owner *o = &a->row.owner;
    bool ok = true;
    if (a->taken) {
        dgm_str key[] = {o->tenant, o->principal, a->row.agent, a->taken->message_id};
        ok = add_key(b, dgm_hash_texts(11, key, 4)); /* in whichever context */
    }
    for (size_t i = 0; i < a->open_calls.n && ok; i++) {
        dgm_str key[] = {o->tenant, o->principal, a->row.agent, a->open_calls.at[i]};
        ok = add_key(b, dgm_hash_texts(12, key, 4));
    }
    return ok;
}

/* What must be in one batch: a note, or an append with the note that belongs to it. */
static dgm_job *end_of_unit(dgm_job *job)
{
    return job->pair && job->next == job->pair ? job->pair : job;
}

/* A statement writes no row twice: what would be is the next batch's. An append with a call twice is alone in its. */
static bool fits(pg_batch *b, dgm_job *first, const dgm_job *last)
{
    bool ok = true;
    for (dgm_job *job = first; ok; job = job->next) {
        ok = job->kind == DGM_JOB_APPEND ? add_keys_of_append(b, &job->append.batch)
                                         : add_keys_of_note(b, &job->note);
        if (job == last)
            break;
    }
    return ok;
}

dgm_job *dgm_pg_batch_fill(pg_loop *l, pg_batch *b)
{
    pg_queue *q = &l->writes;
    dgm_job *chain = q->first, *last = NULL, *rest = chain;
    size_t bytes = 0;
    assert(chain); /* there is something to write, else this is not called */
    b->n_jobs = b->n_units = b->n_keys = 0;
    if (b->cap_keys)
        memset(b->keys, 0, b->cap_keys * sizeof *b->keys);
    while (rest && rest->kind != DGM_JOB_CHANGE && b->n_jobs < BATCH_JOBS && bytes < BATCH_BYTES &&
           (!l->alone || b->n_units == 0)) {
        dgm_job *end = end_of_unit(rest);
        if (!fits(b, rest, end) && last)
            break;
        for (;; rest = rest->next) {
            b->n_jobs++;
            bytes += rest->held;
            if (rest == end)
                break;
        }
        last = end;
        rest = end->next;
        b->n_units++;
    }
    if (!last) { /* a change of checkpoints */
        last = chain;
        rest = chain->next;
        bytes = chain->held;
        b->n_jobs = b->n_units = 1;
    }
    last->next = NULL;
    *q = (pg_queue){rest, rest ? q->last : NULL, q->n - b->n_jobs, q->bytes - bytes};
    if (l->alone)
        l->alone--;
    return chain;
}

/* ---- groups ---------------------------------------------------------------------------------------- */

/* The appends of a group have one fence, and nothing comes behind one that gives the lease back. One that may be a duplicate
 * is the first of its group: nothing before it is refused with it. */
static void pg_join(struct group *g, dgm_job *job)
{
    g->is_closed |=
        g->releases || job->append.batch.fence != g->fence || job->append.batch.taken != NULL;
    if (g->is_closed) {
        job->is_again = true;
        return;
    }
    uint64_t last = g->last->append.batch.row.last_seq;
    if (dgm_append_first(&job->append.batch) != last + 1) {
        job->code = dgm_append_misfit(&job->append.batch, &last, &job->err);
        return;
    }
    g->last->group_next = job;
    g->last = job;
    g->releases = job->append.batch.releases;
}

static void pg_make_groups(pg_batch *b, dgm_job *chain)
{
    size_t slots = 64;
    while (slots < b->n_jobs * 2)
        slots *= 2;
    if (b->n_slots < slots) {
        b->slots = dgm_xrealloc(b->slots, slots * sizeof *b->slots);
        b->n_slots = slots;
        b->groups = dgm_xrealloc(b->groups, slots * sizeof *b->groups);
        b->turns = dgm_xrealloc(b->turns, slots * sizeof *b->turns);
        b->messages = dgm_xrealloc(b->messages, 2 * slots * sizeof *b->messages);
    }
    memset(b->slots, 0, slots * sizeof *b->slots);
    b->n_groups = 0;
    b->sync = false;
    for (dgm_job *job = chain; job; job = job->next) {
        if (job->kind == DGM_JOB_PUT_NOTE)
            job->state = NULL;
    }
    for (dgm_job *job = chain; job; job = job->next) {
        job->group_next = NULL;
        job->code = DGM_OK;
        job->is_again = false;
        if (job->kind == DGM_JOB_APPEND && job->pair && job->next == job->pair)
            job->pair->state = job;
        b->sync |= job->kind != DGM_JOB_APPEND || job->append.batch.sync;
        if (job->kind != DGM_JOB_APPEND ||
            (job->code = dgm_append_check(&job->append.batch, &job->err)))
            continue;
        size_t i = job->hash & (slots - 1);
        const dgm_task_row *row = &job->append.batch.row;
        while (b->slots[i] && !pg_is_task(&b->groups[b->slots[i] - 1].first->append.batch.row, row))
            i = (i + 1) & (slots - 1);
        if (b->slots[i]) {
            pg_join(&b->groups[b->slots[i] - 1], job);
            continue;
        }
        b->groups[b->n_groups++] = (struct group){.first = job,
                                                  .last = job,
                                                  .fence = job->append.batch.fence,
                                                  .releases = job->append.batch.releases};
        b->slots[i] = (uint32_t)b->n_groups;
    }
}

/* A note with a fence has the fate of the appends to its task in the same batch: they prove it. Its own append is that of
 * dgm_pg_batch_group. */
static void pg_join_notes(pg_batch *b, dgm_job *chain)
{
    for (dgm_job *job = chain; job; job = job->next) {
        const dgm_fence *f = &job->note.fence;
        if (job->kind != DGM_JOB_PUT_NOTE || job->state || !f->task_id.n)
            continue;
        dgm_task_row row = {.owner = f->owner, .id = f->task_id};
        for (size_t g = 0; g < b->n_groups && !job->state; g++) {
            if (b->groups[g].fence == f->fence &&
                pg_is_task(&b->groups[g].first->append.batch.row, &row))
                job->state = b->groups[g].first;
        }
    }
}

void dgm_pg_batch_group(pg_batch *b, dgm_job *chain)
{
    pg_make_groups(b, chain);
    pg_join_notes(b, chain);
}
