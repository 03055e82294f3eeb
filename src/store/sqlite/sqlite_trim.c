/*
 * store/sqlite/sqlite_trim.c - what goes when it is old: the first finished turns of a log, whole tasks, notes,
 * threads of graphs.
 *
 * Tasks are walked by their number, up to the first that is too young: for turns those that have a log,
 * for tasks all. What was taken away is not met again, so each walk meets little but what it came for.
 */
#include "sqlite_int.h"

/* What one step looks at: short enough that appends do not wait for it. */
#define STEP_TASKS 200
#define STEP_NOTES 50

enum stage { TURNS, TASKS, NOTES, THREADS };

/* ---- turns ----------------------------------------------------------------------------------------- */

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

/* Runs a statement whose parameters are keys or numbers of tasks; what it does not have is no error. */
static int sqlite_trim_run(dgm_sql_writer *w, dgm_sql which, int64_t a, int64_t b, int64_t c)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, which, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, a);
    sqlite3_bind_int64(st, 2, b);
    sqlite3_bind_int64(st, 3, c);
    return dgm_sql_done(st);
}

static int trim_task(dgm_sql_writer *w, const struct task *t, int64_t older_than_ms)
{
    struct turn last;
    int64_t from = dgm_key(t->n, 0), to = dgm_key(t->n, UINT32_MAX);
    int rc = find_turn(w, t, older_than_ms, &last);
    if (rc || !last.at)
        return rc;
    rc = sqlite_trim_run(w, DGM_SQL_TRIM_LOG, from, dgm_key(t->n, (uint64_t)last.last_seq), 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_TRIM_EMPTY, from, last.at, 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_TRIM_GONE, from, last.at, to);
    return rc;
}

static int trim_turns(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    int64_t older_than_ms = job->trim.keep.turns_before_ms;
    struct task t = {0};
    bool found;
    for (int i = 0; i < STEP_TASKS; i++) {
        int rc = next_task(w, dgm_key(job->trim.from, 0), &found, &t);
        if (rc || !found || t.created_ms >= older_than_ms)
            return rc;
        if ((rc = trim_task(w, &t, older_than_ms)))
            return rc;
        job->trim.from = t.n + 1;
    }
    *ret_more = true;
    return SQLITE_OK;
}

/* ---- tasks ----------------------------------------------------------------------------------------- */

static int delete_task(dgm_sql_writer *w, int64_t n)
{
    int64_t from = dgm_key(n, 0), to = dgm_key(n, UINT32_MAX);
    int rc = sqlite_trim_run(w, DGM_SQL_DELETE_LOG, from, to, 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_DELETE_TURNS, from, to, 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_DELETE_FOLD, n, 0, 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_DELETE_CALLS, n, 0, 0);
    if (!rc)
        rc = sqlite_trim_run(w, DGM_SQL_DELETE_TASK, n, 0, 0);
    return rc;
}

static int trim_tasks(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    int64_t older_than_ms = job->trim.keep.tasks_before_ms, found[STEP_TASKS];
    size_t n = 0;
    int rc = SQLITE_OK, seen = 0;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_OLD_TASKS, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, job->trim.from);
    for (; seen < STEP_TASKS && sqlite3_step(st) == SQLITE_ROW; seen++) {
        if (sqlite3_column_int64(st, 3) >= older_than_ms)
            break;
        job->trim.from = sqlite3_column_int64(st, 0) + 1;
        if (dgm_state_is_terminal((dgm_task_state)sqlite3_column_int(st, 1)) &&
            sqlite3_column_int64(st, 2) < older_than_ms)
            found[n++] = sqlite3_column_int64(st, 0);
    }
    rc = sqlite3_reset(st);
    for (size_t i = 0; i < n && !rc; i++)
        rc = delete_task(w, found[i]);
    *ret_more = seen == STEP_TASKS;
    return rc;
}

/* ---- notes ----------------------------------------------------------------------------------------- */

static int trim_notes(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    (void)job;
    int rc = sqlite_trim_run(w, DGM_SQL_NOTES_EXPIRE, dgm_loop_unix_ms(), STEP_NOTES, 0);
    *ret_more = !rc && sqlite3_changes(w->conn.db) == STEP_NOTES;
    return rc;
}

/* ---- threads of graphs ----------------------------------------------------------------------------- */

static int trim_threads(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    return dgm_sql_trim_threads(w, job->trim.keep.tasks_before_ms, ret_more);
}

/* First the turns of all tasks, then the tasks, then notes, then threads of graphs; a step at a time. */
static int trim_some(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    static int (*const stages[])(dgm_sql_writer *, dgm_job *, bool *) = {
        [TURNS] = trim_turns, [TASKS] = trim_tasks, [NOTES] = trim_notes, [THREADS] = trim_threads};
    bool more = false;
    int rc = stages[job->trim.stage](w, job, &more);
    *ret_more = more || job->trim.stage < THREADS;
    if (!more) {
        job->trim.stage++;
        job->trim.from = 0;
    }
    return rc;
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
