/*
 * store/sqlite/sqlite_checkpoint_read.c - checkpoints of graphs: reading.
 *
 * The statement of the rows stays open while their writes and values are read: all of it is one moment of the database.
 */
#include "sqlite_int.h"

/* Behind every id: ids are UTF-8. */
#define BEHIND_ALL "\xff"

/* Columns of the rows. */
enum {
    THREAD,
    NS,
    ID,
    PARENT,
    RUN,
    VALUE,
    META = VALUE + 4,
    NUMBER = META + 4,
    WRITES,
    WRITES_BYTES
};

static void cannot_read(dgm_job *job, dgm_str id)
{
    job->code =
        dgm_fail(&job->err, DGM_INTERNAL, NULL,
                 "the database is damaged: checkpoint %.*s cannot be read: run `dragoman db check`",
                 DGM_P(id));
}

/* ---- values ------------------------------------------------------------------------------------------ */

/* Fills it from the parts of this number; false: they do not have its size. */
static bool read_parts(dgm_conn *c, dgm_job *job, int64_t number, dgm_bytes *to)
{
    int rc = SQLITE_OK;
    size_t n = 0;
    bool fits = true;
    sqlite3_stmt *st = dgm_conn_sql(c, DGM_SQL_PARTS_GET, &rc);
    if (st) {
        sqlite3_bind_int64(st, 1, number);
        while (fits && sqlite3_step(st) == SQLITE_ROW) {
            dgm_str part = dgm_column_str(st, 0);
            fits = part.n <= to->n - n;
            if (fits)
                memcpy(to->p + n, part.p, part.n);
            n += part.n;
        }
        rc = sqlite3_reset(st);
    }
    if (rc)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
    return fits && n == to->n;
}

/* type, size, number, body from column i on. */
static dgm_checkpoint_value read_value(dgm_conn *c, dgm_job *job, sqlite3_stmt *st, int i,
                                       dgm_str id)
{
    int64_t size = sqlite3_column_int64(st, i + 1), number = sqlite3_column_int64(st, i + 2);
    dgm_str body = dgm_column_str(st, i + 3);
    dgm_checkpoint_value v = {.type = dgm_arena_dup(job->arena, dgm_column_str(st, i))};
    if (size < 0 || (size_t)size > DGM_MAX_CHECKPOINT_BYTES ||
        (!number && body.n != (size_t)size)) {
        cannot_read(job, id);
    } else if (!number) {
        v.bytes = dgm_bytes_copy(body);
    } else {
        v.bytes = dgm_bytes_new((size_t)size);
        if (!read_parts(c, job, number, v.bytes) && !job->code)
            cannot_read(job, id);
    }
    return v;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void read_writes(dgm_conn *c, dgm_job *job, int64_t number, size_t count,
                        dgm_checkpoint *row)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(c, DGM_SQL_WRITES_GET, &rc);
    dgm_checkpoint_write *writes = dgm_new_n(job->arena, dgm_checkpoint_write, count + 1);
    row->writes = writes;
    if (st) {
        sqlite3_bind_int64(st, 1, number);
        while (!job->code && row->n_writes < count && sqlite3_step(st) == SQLITE_ROW) {
            dgm_checkpoint_write *w = &writes[row->n_writes++];
            w->task = dgm_arena_dup(job->arena, dgm_column_str(st, 0));
            w->path = dgm_arena_dup(job->arena, dgm_column_str(st, 1));
            w->idx = sqlite3_column_int64(st, 2);
            w->channel = dgm_arena_dup(job->arena, dgm_column_str(st, 3));
            w->value = read_value(c, job, st, 4, row->id);
        }
        rc = sqlite3_reset(st);
    }
    if (rc && !job->code)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
    if (row->n_writes < count && !job->code)
        cannot_read(job, row->id);
}

/* The row is in the answer first, so that its bytes are released after a fault, too. */
static void read_row(dgm_conn *c, dgm_job *job, sqlite3_stmt *st)
{
    dgm_arena *a = job->arena;
    dgm_checkpoint *row = &job->got.checkpoints.at[job->got.checkpoints.n++];
    size_t count = (size_t)sqlite3_column_int64(st, WRITES);
    *row = (dgm_checkpoint){.thread = dgm_arena_dup(a, dgm_column_str(st, THREAD)),
                            .ns = dgm_arena_dup(a, dgm_column_str(st, NS)),
                            .id = dgm_arena_dup(a, dgm_column_str(st, ID)),
                            .parent = dgm_arena_dup(a, dgm_column_str(st, PARENT)),
                            .run = dgm_arena_dup(a, dgm_column_str(st, RUN))};
    row->checkpoint = read_value(c, job, st, VALUE, row->id);
    if (!job->code)
        row->metadata = read_value(c, job, st, META, row->id);
    if (!job->code && count > DGM_MAX_CHECKPOINT_WRITES)
        cannot_read(job, row->id);
    if (!job->code && count)
        read_writes(c, job, sqlite3_column_int64(st, NUMBER), count, row);
}

/* ---- pages ------------------------------------------------------------------------------------------- */

static dgm_str first_of(dgm_str a, dgm_str b)
{
    return dgm_str_order(a, b) < 0 ? a : b;
}

static sqlite3_stmt *page_statement(dgm_conn *c, dgm_job *job)
{
    const dgm_checkpoint_query *q = &job->checkpoints.query;
    dgm_str until = DGM_STR(BEHIND_ALL);
    bool in_ns = q->thread.n && !q->any_ns;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(c,
                                    in_ns         ? DGM_SQL_CHECKPOINTS_IN_NS
                                    : q->thread.n ? DGM_SQL_CHECKPOINTS_IN_THREAD
                                                  : DGM_SQL_CHECKPOINTS_ALL,
                                    &rc);
    if (!st) {
        job->code = dgm_conn_fault(c, rc, true, &job->err);
        return NULL;
    }
    if (q->id.n)
        until = dgm_str_just_behind(job->arena, q->id);
    if (q->before.n)
        until = first_of(until, q->before);
    if (q->after.id.n) /* in one namespace of a thread an id is there once */
        until = first_of(until, in_ns ? q->after.id : dgm_str_just_behind(job->arena, q->after.id));
    dgm_bind_str(st, 1, job->checkpoints.agent);
    dgm_bind_str(st, 2, q->thread);
    dgm_bind_str(st, 3, q->ns);
    dgm_bind_str(st, 4, q->id);
    dgm_bind_str(st, 5, until);
    dgm_bind_str(st, 6, q->after.id);
    dgm_bind_str(st, 7, q->after.ns);
    dgm_bind_str(st, 8, q->after.thread);
    sqlite3_bind_int64(st, 9, (int64_t)q->limit + 1);
    sqlite3_bind_int(st, 10, q->any_ns);
    return st;
}

void dgm_conn_read_checkpoints(dgm_conn *c, dgm_job *job)
{
    size_t limit = job->checkpoints.query.limit, bytes = 0;
    sqlite3_stmt *st = page_statement(c, job);
    if (!st)
        return;
    job->got.checkpoints.at = dgm_new_n(job->arena, dgm_checkpoint, limit);
    while (!job->code && sqlite3_step(st) == SQLITE_ROW) {
        size_t n = job->got.checkpoints.n;
        if (n == limit || (n && bytes >= DGM_MAX_STORE_PAGE_BYTES)) {
            job->got.checkpoints.more = true;
            break;
        }
        read_row(c, job, st);
        bytes += (size_t)(sqlite3_column_int64(st, VALUE + 1) + sqlite3_column_int64(st, META + 1) +
                          sqlite3_column_int64(st, WRITES_BYTES));
    }
    int rc = sqlite3_reset(st);
    if (rc && !job->code)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
}
