/*
 * store/sqlite/sqlite_trim.c - what goes when it is old: the first finished turns of a log.
 *
 * Tasks are walked by their number, those that have a log, up to the first that is too young to have an
 * old record: what was trimmed has no log any more, so each walk meets little but what it came for.
 */
#include "sqlite_int.h"

/* What one step looks at: short enough that appends do not wait for it. */
#define STEP_TASKS 200

struct task {
    int64_t n, created_ms, folded_seq;
};

/* The first task from a key on that has a log; one that has no row has no time either. */
static int next_task(dgm_sql_writer *w, int64_t from, bool *ret_found, struct task *ret_task)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_NEXT, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, from);
    if ((*ret_found = sqlite3_step(st) == SQLITE_ROW))
        *ret_task = (struct task){.n = sqlite3_column_int64(st, 0),
                                  .created_ms = sqlite3_column_int64(st, 1),
                                  .folded_seq = sqlite3_column_int64(st, 2)};
    return sqlite3_reset(st);
}

struct turn {
    int64_t at, last_seq;
};

/* The last turn of those that may go; at 0: none. */
static int find_turn(dgm_sql_writer *w, const struct task *t, int64_t older_than_ms,
                     struct turn *ret_turn)
{
    int rc = SQLITE_OK;
    *ret_turn = (struct turn){0};
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_TURNS, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(t->n, 0));
    sqlite3_bind_int64(st, 2, dgm_key(t->n, UINT32_MAX));
    while (sqlite3_step(st) == SQLITE_ROW) {
        struct turn turn = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1)};
        if (!turn.last_seq || turn.last_seq > t->folded_seq ||
            sqlite3_column_int64(st, 2) >= older_than_ms)
            break;
        *ret_turn = turn;
    }
    return sqlite3_reset(st);
}

/* Runs a statement whose parameters are keys. */
static int run(dgm_sql_writer *w, dgm_sql which, int64_t a, int64_t b, int64_t c)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, which, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, a);
    sqlite3_bind_int64(st, 2, b);
    sqlite3_bind_int64(st, 3, c); /* where there is a third */
    return dgm_sql_done(st);
}

static int trim_task(dgm_sql_writer *w, const struct task *t, int64_t older_than_ms)
{
    struct turn last;
    int64_t from = dgm_key(t->n, 0), to = dgm_key(t->n, UINT32_MAX);
    int rc = find_turn(w, t, older_than_ms, &last);
    if (rc || !last.at)
        return rc;
    rc = run(w, DGM_SQL_TRIM_LOG, from, dgm_key(t->n, (uint64_t)last.last_seq), 0);
    if (!rc)
        rc = run(w, DGM_SQL_TRIM_EMPTY, from, last.at, 0);
    if (!rc)
        rc = run(w, DGM_SQL_TRIM_GONE, from, last.at, to);
    return rc;
}

static int trim_some(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    int64_t older_than_ms = job->trim.older_than_ms;
    struct task t = {0};
    bool found;
    for (int i = 0; i < STEP_TASKS; i++) {
        int rc = next_task(w, job->trim.from, &found, &t);
        if (rc || !found || t.created_ms >= older_than_ms)
            return rc;
        if ((rc = trim_task(w, &t, older_than_ms)))
            return rc;
        job->trim.from = dgm_key(t.n + 1, 0);
    }
    *ret_more = true;
    return SQLITE_OK;
}

bool dgm_sql_writer_trim(dgm_sql_writer *w, dgm_job *job)
{
    bool more = false;
    int rc = dgm_sql_begin(w, false);
    if (!rc)
        rc = trim_some(w, job, &more);
    job->code = dgm_sql_end(w, rc, &job->err);
    return !job->code && more;
}
