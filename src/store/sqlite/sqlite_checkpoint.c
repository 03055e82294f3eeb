/*
 * store/sqlite/sqlite_checkpoint.c - checkpoints of graphs: writing.
 *
 * The row of a checkpoint is small; a large value is a number of rows of their own, so that SQLite never has more of it in
 * memory than one part. Writes may come before their checkpoint: then its row is created without a value (is_stored=0).
 */
#include "sqlite_int.h"

_Static_assert(DGM_MAX_CHECKPOINT_BYTES / DGM_VALUE_PART_BYTES < 256, "eight bits for the part");

/* A thread's time is written again only after so long: every change would change an index otherwise. */
#define TOUCH_MS 60000

static int run_with(dgm_sql_writer *w, dgm_sql which, int64_t a, int64_t b, int64_t c)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, which, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, a);
    sqlite3_bind_int64(st, 2, b); /* one that the statement does not have is ignored */
    sqlite3_bind_int64(st, 3, c);
    return dgm_sql_done(st);
}

/* ---- values ------------------------------------------------------------------------------------------ */

static int new_value_number(dgm_sql_writer *w, int64_t *ret_number)
{
    int rc = SQLITE_OK;
    if (w->last_value < 0) {
        sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_VALUE_LAST, &rc);
        if (!st)
            return rc;
        if (sqlite3_step(st) == SQLITE_ROW)
            w->last_value = sqlite3_column_int64(st, 0);
        rc = sqlite3_reset(st);
    }
    *ret_number = ++w->last_value;
    return rc;
}

/* Writes the parts of a value that does not fit its row. *ret_number 0: it fits. */
static int put_parts(dgm_sql_writer *w, const dgm_bytes *b, int64_t *ret_number)
{
    *ret_number = 0;
    if (!b || b->n <= DGM_VALUE_INLINE_BYTES)
        return SQLITE_OK;
    int rc = new_value_number(w, ret_number);
    sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_PART_INSERT, &rc);
    int64_t key = *ret_number << 8;
    for (size_t from = 0; st && !rc && from < b->n; from += DGM_VALUE_PART_BYTES, key++) {
        size_t n = b->n - from;
        sqlite3_bind_int64(st, 1, key);
        sqlite3_bind_blob64(st, 2, b->p + from, n < DGM_VALUE_PART_BYTES ? n : DGM_VALUE_PART_BYTES,
                            SQLITE_STATIC);
        rc = dgm_sql_done(st);
    }
    return rc;
}

static int delete_parts(dgm_sql_writer *w, int64_t number)
{
    return number ? run_with(w, DGM_SQL_PARTS_DELETE, number, 0, 0) : SQLITE_OK;
}

static int copy_parts(dgm_sql_writer *w, int64_t number, int64_t *ret_copy)
{
    *ret_copy = 0;
    if (!number)
        return SQLITE_OK;
    int rc = new_value_number(w, ret_copy);
    return rc ? rc : run_with(w, DGM_SQL_PARTS_COPY, number, *ret_copy, 0);
}

/* type, size, number, body */
static void bind_value(sqlite3_stmt *st, int i, const dgm_checkpoint_value *v, int64_t number)
{
    size_t n = dgm_value_size(v);
    dgm_bind_str(st, i, v->type);
    sqlite3_bind_int64(st, i + 1, (int64_t)n);
    sqlite3_bind_int64(st, i + 2, number);
    sqlite3_bind_blob64(st, i + 3, n && !number ? v->bytes->p : "", number ? 0 : n, SQLITE_STATIC);
}

/* ---- threads ----------------------------------------------------------------------------------------- */

struct thread {
    int64_t n, touched_ms; /* n 0: it does not exist */
};

static int find_thread(dgm_sql_writer *w, dgm_str agent, dgm_str thread, struct thread *ret_thread)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_THREAD_FIND, &rc);
    *ret_thread = (struct thread){0};
    if (!st)
        return rc;
    dgm_bind_str(st, 1, thread);
    dgm_bind_str(st, 2, agent);
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret_thread = (struct thread){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1)};
    return sqlite3_reset(st);
}

int dgm_sql_find_thread(dgm_sql_writer *w, dgm_str agent, dgm_str thread, int64_t *ret_n)
{
    struct thread t;
    int rc = find_thread(w, agent, thread, &t);
    *ret_n = t.n;
    return rc;
}

/* Finds or creates it, and notes that it is in use. */
static int touch_thread(dgm_sql_writer *w, dgm_str agent, dgm_str thread, int64_t *ret_n)
{
    struct thread t;
    int64_t now = dgm_loop_unix_ms();
    int rc = find_thread(w, agent, thread, &t);
    *ret_n = t.n;
    if (rc || (t.n && now - t.touched_ms < TOUCH_MS && now >= t.touched_ms))
        return rc;
    if (t.n)
        return run_with(w, DGM_SQL_THREAD_TOUCH, t.n, now, 0);
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_THREAD_INSERT, &rc);
    if (!st)
        return rc;
    dgm_bind_str(st, 1, thread);
    dgm_bind_str(st, 2, agent);
    sqlite3_bind_int64(st, 3, now);
    rc = dgm_sql_done(st);
    *ret_n = sqlite3_last_insert_rowid(w->conn.db);
    return rc;
}

/* ---- checkpoints ------------------------------------------------------------------------------------- */

struct checkpoint {
    int64_t n; /* 0: it does not exist */
    size_t bytes, writes, writes_bytes;
    int64_t number, meta_number;
};

static int find_checkpoint(dgm_sql_writer *w, int64_t thread, dgm_str ns, dgm_str id,
                           struct checkpoint *ret_found)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINT_FIND, &rc);
    *ret_found = (struct checkpoint){0};
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, thread);
    dgm_bind_str(st, 2, ns);
    dgm_bind_str(st, 3, id);
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret_found = (struct checkpoint){.n = sqlite3_column_int64(st, 0),
                                         .bytes = (size_t)sqlite3_column_int64(st, 1),
                                         .writes = (size_t)sqlite3_column_int64(st, 2),
                                         .writes_bytes = (size_t)sqlite3_column_int64(st, 3),
                                         .number = sqlite3_column_int64(st, 4),
                                         .meta_number = sqlite3_column_int64(st, 5)};
    return sqlite3_reset(st);
}

static int put_row(dgm_sql_writer *w, int64_t thread, const dgm_checkpoint *c, int64_t number,
                   int64_t meta_number, bool is_stored)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINT_PUT, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, thread);
    dgm_bind_str(st, 2, c->ns);
    dgm_bind_str(st, 3, c->id);
    dgm_bind_str(st, 4, c->parent);
    dgm_bind_str(st, 5, c->run);
    bind_value(st, 6, &c->checkpoint, number);
    bind_value(st, 10, &c->metadata, meta_number);
    sqlite3_bind_int(st, 14, is_stored);
    return dgm_sql_done(st);
}

static int change_put(dgm_sql_writer *w, dgm_job *job)
{
    const dgm_checkpoint *c = &job->change.change.row;
    struct checkpoint was = {0};
    int64_t thread, number = 0, meta_number = 0;
    int rc = touch_thread(w, job->change.agent, c->thread, &thread);
    if (!rc)
        rc = find_checkpoint(w, thread, c->ns, c->id, &was);
    if (rc || (job->code = dgm_checkpoint_check_room(
                   c, was.writes, job->change.bytes + was.writes_bytes, &job->err)))
        return rc;
    rc = delete_parts(w, was.number);
    if (!rc)
        rc = delete_parts(w, was.meta_number);
    if (!rc)
        rc = put_parts(w, c->checkpoint.bytes, &number);
    if (!rc)
        rc = put_parts(w, c->metadata.bytes, &meta_number);
    return rc ? rc : put_row(w, thread, c, number, meta_number, true);
}

/* ---- writes ------------------------------------------------------------------------------------------ */

struct write {
    bool is_there;
    size_t size;
    int64_t number;
};

static int find_write(dgm_sql_writer *w, int64_t checkpoint, const dgm_checkpoint_write *write,
                      struct write *ret_found)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_WRITE_FIND, &rc);
    *ret_found = (struct write){0};
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, checkpoint);
    dgm_bind_str(st, 2, write->task);
    sqlite3_bind_int64(st, 3, write->idx);
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret_found =
            (struct write){true, (size_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1)};
    return sqlite3_reset(st);
}

/* count, bytes: what the checkpoint has more after it. */
static int put_write(dgm_sql_writer *w, int64_t checkpoint, const dgm_checkpoint_write *write,
                     int64_t *count, int64_t *bytes)
{
    struct write was;
    int64_t number = 0;
    int rc = find_write(w, checkpoint, write, &was);
    if (rc || (was.is_there && write->idx >= 0))
        return rc;
    rc = delete_parts(w, was.number);
    if (!rc)
        rc = put_parts(w, write->value.bytes, &number);
    sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_WRITE_PUT, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, checkpoint);
    dgm_bind_str(st, 2, write->task);
    sqlite3_bind_int64(st, 3, write->idx);
    dgm_bind_str(st, 4, write->channel);
    dgm_bind_str(st, 5, write->path);
    bind_value(st, 6, &write->value, number);
    *count += !was.is_there;
    *bytes += (int64_t)dgm_value_size(&write->value) - (int64_t)was.size;
    return dgm_sql_done(st);
}

static int change_writes(dgm_sql_writer *w, dgm_job *job)
{
    const dgm_checkpoint *c = &job->change.change.row;
    struct checkpoint was = {0};
    int64_t thread, count = 0, bytes = 0;
    int rc = touch_thread(w, job->change.agent, c->thread, &thread);
    if (!rc)
        rc = find_checkpoint(w, thread, c->ns, c->id, &was);
    if (rc || (job->code = dgm_checkpoint_check_room(
                   c, was.writes + c->n_writes, was.bytes + was.writes_bytes + job->change.bytes,
                   &job->err)))
        return rc;
    if (!was.n) {
        dgm_checkpoint key = {.ns = c->ns, .id = c->id};
        rc = put_row(w, thread, &key, 0, 0, false);
        was.n = sqlite3_last_insert_rowid(w->conn.db);
    }
    for (size_t i = 0; i < c->n_writes && !rc; i++)
        rc = put_write(w, was.n, &c->writes[i], &count, &bytes);
    if (!rc && (count || bytes))
        rc = run_with(w, DGM_SQL_CHECKPOINT_COUNT, was.n, count, bytes);
    return rc;
}

/* ---- copies ------------------------------------------------------------------------------------------ */

static int copy_writes(dgm_sql_writer *w, int64_t from, int64_t to)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_WRITES_TO_COPY, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, from);
    while (!rc && sqlite3_step(st) == SQLITE_ROW) {
        int64_t number = 0;
        rc = copy_parts(w, sqlite3_column_int64(st, 1), &number);
        if (!rc)
            rc = run_with(w, DGM_SQL_WRITE_COPY, sqlite3_column_int64(st, 0), to, number);
    }
    int ended = sqlite3_reset(st);
    return rc ? rc : ended;
}

/* row: n, ns, id, number, meta_number */
static int copy_checkpoint(dgm_sql_writer *w, sqlite3_stmt *row, int64_t to)
{
    struct checkpoint old;
    int64_t n = sqlite3_column_int64(row, 0), number = 0, meta_number = 0;
    int rc = find_checkpoint(w, to, dgm_column_str(row, 1), dgm_column_str(row, 2), &old);
    if (!rc && old.n)
        rc = dgm_sql_delete_checkpoint(w, old.n);
    if (!rc)
        rc = copy_parts(w, sqlite3_column_int64(row, 3), &number);
    if (!rc)
        rc = copy_parts(w, sqlite3_column_int64(row, 4), &meta_number);
    sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINT_COPY, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, n);
    sqlite3_bind_int64(st, 2, to);
    sqlite3_bind_int64(st, 3, number);
    sqlite3_bind_int64(st, 4, meta_number);
    rc = dgm_sql_done(st);
    return rc ? rc : copy_writes(w, n, sqlite3_last_insert_rowid(w->conn.db));
}

static int change_copy(dgm_sql_writer *w, dgm_job *job)
{
    const dgm_checkpoint_change *c = &job->change.change;
    int64_t from = 0, to = 0;
    int rc = dgm_str_eq(c->row.thread, c->to)
                 ? SQLITE_OK
                 : dgm_sql_find_thread(w, job->change.agent, c->row.thread, &from);
    if (rc || !from)
        return rc;
    rc = touch_thread(w, job->change.agent, c->to, &to);
    sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINTS_TO_COPY, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, from);
    while (!rc && sqlite3_step(st) == SQLITE_ROW)
        rc = copy_checkpoint(w, st, to);
    int ended = sqlite3_reset(st);
    return rc ? rc : ended;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

int dgm_sql_change_checkpoints(dgm_sql_writer *w, dgm_job *job)
{
    job->code = DGM_OK;
    switch (job->change.change.kind) {
    case DGM_CHECKPOINT_PUT: return change_put(w, job);
    case DGM_CHECKPOINT_WRITES: return change_writes(w, job);
    case DGM_CHECKPOINT_COPY: return change_copy(w, job);
    case DGM_CHECKPOINT_DELETE_THREADS: return dgm_sql_delete_threads(w, job);
    case DGM_CHECKPOINT_DELETE_RUNS: return dgm_sql_delete_runs(w, job);
    case DGM_CHECKPOINT_KEEP_LATEST: return dgm_sql_keep_latest(w, job);
    }
    return SQLITE_OK;
}
