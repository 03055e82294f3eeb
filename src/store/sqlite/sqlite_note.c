/* store/sqlite/sqlite_note.c - notes: texts by (owner, kind, name). */
#include "sqlite_int.h"

static void bind_name(sqlite3_stmt *st, const dgm_note *n)
{
    dgm_bind_str(st, 1, n->owner.tenant);
    dgm_bind_str(st, 2, n->owner.principal);
    dgm_bind_str(st, 3, n->kind);
    dgm_bind_str(st, 4, n->name);
}

static int put(dgm_sql_writer *w, const dgm_note *n)
{
    int rc = SQLITE_OK;
    bool goes = !n->text.p;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, goes ? DGM_SQL_NOTE_DELETE : DGM_SQL_NOTE_PUT, &rc);
    if (!st)
        return rc;
    bind_name(st, n);
    if (!goes) {
        dgm_bind_str(st, 5, n->text);
        sqlite3_bind_int64(st, 6, n->expires_ms);
    }
    return dgm_sql_done(st);
}

int dgm_sql_put_notes(dgm_sql_writer *w, const dgm_job *chain)
{
    int rc = SQLITE_OK;
    for (const dgm_job *job = chain; job && !rc; job = job->next) {
        if (job->kind == DGM_JOB_PUT_NOTE)
            rc = put(w, &job->note);
    }
    return rc;
}

dgm_code dgm_sql_writer_notes(dgm_sql_writer *w, dgm_job *chain, dgm_err *err)
{
    int rc = dgm_sql_begin(w, true);
    if (!rc)
        rc = dgm_sql_put_notes(w, chain);
    dgm_code code = dgm_sql_end(w, rc, err);
    for (dgm_job *job = chain; job && code; job = job->next) {
        if (job->kind != DGM_JOB_PUT_NOTE)
            continue;
        job->code = code;
        job->err = *err;
    }
    return code;
}

void dgm_conn_read_note(dgm_conn *c, dgm_job *job)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(c, DGM_SQL_NOTE_GET, &rc);
    if (st) {
        bind_name(st, &job->note);
        if (sqlite3_step(st) == SQLITE_ROW && !dgm_note_has_expired(sqlite3_column_int64(st, 1)))
            job->got.note = dgm_arena_dup(job->arena, dgm_column_str(st, 0));
        rc = sqlite3_reset(st);
    }
    if (rc)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
}
