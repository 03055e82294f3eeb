/*
 * store/postgres/postgres_batch_int.h - one batch of appends and notes, as the files that write it share it.
 *
 *   postgres_batch.c        selects its jobs from the queue, and groups appends by task
 *   postgres_batch_rows.c   its statement, and its rows as parameters
 *   postgres_write.c        sends it, and answers its jobs
 */
#pragma once

#include "postgres_int.h"

struct group {
    dgm_job *first, *last; /* by group_next */
    dgm_str folded;
    uint64_t folded_seq;
    uint64_t fence;
    bool releases;  /* with its last append */
    bool is_closed; /* what comes for this task is for the next batch */
    bool is_bad, exists;
    bool is_duplicate;
    /* in the database, of a bad one that exists */
    uint64_t last_seq, has_fence;
    int64_t tail, owner;
};

struct log_row {
    size_t group;
    uint64_t first_seq;
    size_t n;
};

struct turn_put {
    size_t group;
    const dgm_turn_row *row;
    int64_t ended_ms;
};

struct message_put {
    size_t group;
    const dgm_taken *taken;
    uint64_t scope;
    uint32_t turn;
    int64_t expires_ms;
    unsigned char digest[DGM_DIGEST_BYTES];
};

struct pg_batch {
    pg_op op;
    pg_args args;
    dgm_buf row;
    uint64_t began_ns;
    size_t n_jobs, n_units;
    bool sync;
    int64_t replica; /* as which it is written */
    int tries;
    bool is_outdated; /* a group is tried again: see postgres_write.c */
    struct group *groups;
    size_t n_groups;
    struct log_row *log;
    size_t n_log, cap_log;
    struct turn_put *turns;
    size_t n_turns;
    struct message_put *messages;
    size_t n_messages;
    uint32_t *slots; /* of groups, by hash; 0: free */
    size_t n_slots;
    uint64_t *keys; /* hashes of what may be in a batch once; 0: free */
    size_t cap_keys, n_keys;
    pg_change *change;
    struct evp_md_ctx_st *sha256;
};

pg_batch *dgm_pg_batch_of(pg_loop *l);
/* The first jobs of the queue that can be one commit, as a chain by next. */
dgm_job *dgm_pg_batch_fill(pg_loop *l, pg_batch *b);
/* The groups of a chain, and which notes share the fate of which append (job->state). */
void dgm_pg_batch_group(pg_batch *b, dgm_job *chain);
/* The parameters of the statement. */
void dgm_pg_batch_put(pg_batch *b);
/* Of the last record of an append. */
int64_t dgm_pg_tail_of(const dgm_append *a);

static inline bool pg_is_task(const dgm_task_row *a, const dgm_task_row *b)
{
    return dgm_str_eq(a->id, b->id) && dgm_str_eq(a->owner.principal, b->owner.principal) &&
           dgm_str_eq(a->owner.tenant, b->owner.tenant);
}

static inline const dgm_task_row *pg_row_of(const pg_batch *b, size_t g)
{
    return &b->groups[g].last->append.batch.row;
}

/* Is it written with this batch? Not if its append is not. */
static inline bool pg_is_in_batch(const dgm_job *note)
{
    const dgm_job *append = note->state;
    return note->kind == DGM_JOB_PUT_NOTE && (!append || (!append->is_again && !append->code));
}
