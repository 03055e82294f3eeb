/* store/sqlite/sqlite_checkpoint_delete.c - checkpoints of graphs: what is deleted on request, and what is old. */
#include "sqlite_int.h"

#define STEP 64 /* numbers that are read before their rows are deleted */

static int delete_by_number(dgm_sql_writer *w, dgm_sql which, int64_t n)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, which, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, n);
    return dgm_sql_done(st);
}

int dgm_sql_delete_checkpoint(dgm_sql_writer *w, int64_t n)
{
    int rc = delete_by_number(w, DGM_SQL_VALUES_DELETE, n);
    if (!rc)
        rc = delete_by_number(w, DGM_SQL_WRITES_DELETE, n);
    return rc ? rc : delete_by_number(w, DGM_SQL_CHECKPOINT_DELETE, n);
}

/* Deletes at most STEP of the checkpoints that the statement finds; its parameter 2 is the limit. */
static int delete_some(dgm_sql_writer *w, sqlite3_stmt *st, size_t *ret_n)
{
    int64_t found[STEP];
    size_t n = 0;
    sqlite3_bind_int(st, 2, STEP);
    while (n < STEP && sqlite3_step(st) == SQLITE_ROW)
        found[n++] = sqlite3_column_int64(st, 0);
    int rc = sqlite3_reset(st);
    for (size_t i = 0; i < n && !rc; i++)
        rc = dgm_sql_delete_checkpoint(w, found[i]);
    *ret_n = n;
    return rc;
}

static int delete_all(dgm_sql_writer *w, sqlite3_stmt *st)
{
    int rc;
    size_t n;
    do
        rc = delete_some(w, st, &n);
    while (!rc && n == STEP);
    return rc;
}

static int delete_of_thread(dgm_sql_writer *w, dgm_sql which, int64_t thread)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, which, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, thread);
    return delete_all(w, st);
}

int dgm_sql_delete_threads(dgm_sql_writer *w, const dgm_job *job)
{
    dgm_strs names = job->change.change.names;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < names.n && !rc; i++) {
        int64_t thread = 0;
        rc = dgm_sql_find_thread(w, job->change.agent, names.at[i], &thread);
        if (!rc && thread)
            rc = delete_of_thread(w, DGM_SQL_CHECKPOINTS_OF, thread);
        if (!rc && thread)
            rc = delete_by_number(w, DGM_SQL_THREAD_DELETE, thread);
    }
    return rc;
}

int dgm_sql_keep_latest(dgm_sql_writer *w, const dgm_job *job)
{
    dgm_strs names = job->change.change.names;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < names.n && !rc; i++) {
        int64_t thread = 0;
        rc = dgm_sql_find_thread(w, job->change.agent, names.at[i], &thread);
        if (!rc && thread)
            rc = delete_of_thread(w, DGM_SQL_CHECKPOINTS_OLD, thread);
    }
    return rc;
}

int dgm_sql_delete_runs(dgm_sql_writer *w, const dgm_job *job)
{
    dgm_strs names = job->change.change.names;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINTS_OF_RUN, &rc);
    for (size_t i = 0; st && i < names.n && !rc; i++) {
        dgm_bind_str(st, 1, names.at[i]);
        dgm_bind_str(st, 3, job->change.agent);
        rc = delete_all(w, st);
    }
    return rc;
}

int dgm_sql_trim_threads(dgm_sql_writer *w, int64_t before_ms, bool *ret_more)
{
    int rc = SQLITE_OK;
    int64_t thread = 0;
    size_t n = 0;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_THREAD_OLD, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, before_ms);
    if (sqlite3_step(st) == SQLITE_ROW)
        thread = sqlite3_column_int64(st, 0);
    rc = sqlite3_reset(st);
    *ret_more = thread != 0;
    if (rc || !thread)
        return rc;
    if (!(st = dgm_conn_sql(&w->conn, DGM_SQL_CHECKPOINTS_OF, &rc)))
        return rc;
    sqlite3_bind_int64(st, 1, thread);
    rc = delete_some(w, st, &n);
    if (!rc && n < STEP)
        rc = delete_by_number(w, DGM_SQL_THREAD_DELETE, thread);
    return rc;
}
