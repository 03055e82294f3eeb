/* store/sqlite/sqlite_copy.c - a database of SQLite as source or target of `dragoman db copy` (store_copy.h). */
#include "sqlite_int.h"
#include "store/store_copy.h"

#include <stdlib.h>
#include <unistd.h>

/* The number of the task ?1 ?2 ?3. Numbers of values differ between databases: those of a target are counted. */
#define TASK "(SELECT n FROM tasks WHERE tenant=?1 AND principal=?2 AND id=?3)"
#define THREAD "(SELECT n FROM threads WHERE agent=?1 AND thread=?2)"
#define NUMBER(p) "coalesce((SELECT new FROM temp.numbers WHERE thread=" THREAD " AND old=" p "),0)"
#define NOTE_NUMBER(p)                                                                             \
    "INSERT OR IGNORE INTO temp.numbers(thread,old) SELECT " THREAD "," p " WHERE " p "<>0"
#define MAX_STATEMENTS 3

static const char *const selects[DGM_N_COPY] = {
    [DGM_COPY_TASKS] = "SELECT t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,"
                       "t.status_ms,t.last_seq,coalesce(f.seq,0),f.body FROM tasks t"
                       " LEFT JOIN folds f ON f.task=t.n ORDER BY t.n",
    [DGM_COPY_LOG] = "SELECT t.tenant,t.principal,t.id,l.at&4294967295,l.n,l.bytes FROM log l"
                     " JOIN tasks t ON t.n=l.at>>32 ORDER BY l.at",
    [DGM_COPY_TURNS] =
        "SELECT t.tenant,t.principal,t.id,r.at&4294967295,r.first_seq,r.last_seq,r.ended_ms,"
        "r.protocol,r.caller,r.request,r.previous FROM turns r JOIN tasks t ON t.n=r.at>>32"
        " ORDER BY r.at",
    [DGM_COPY_MESSAGES] =
        "SELECT t.tenant,t.principal,t.id,r.at&4294967295,r.message,r.scope,r.digest,r.known_ms,"
        "t.agent,t.context FROM turns r JOIN tasks t ON t.n=r.at>>32 WHERE r.message<>''"
        " ORDER BY r.at",
    [DGM_COPY_CALLS] = "SELECT c.tenant,c.principal,c.call,c.agent,t.id FROM calls c"
                       " JOIN tasks t ON t.n=c.task ORDER BY c.n",
    [DGM_COPY_NOTES] = "SELECT tenant,principal,kind,name,expires_ms,text FROM notes ORDER BY n",
    [DGM_COPY_THREADS] = "SELECT agent,thread,touched_ms FROM threads ORDER BY n",
    [DGM_COPY_CHECKPOINTS] =
        "SELECT h.agent,h.thread,c.ns,c.id,c.is_stored,c.writes,c.writes_bytes,c.parent,c.run,"
        "c.type,c.size,c.number,c.body,c.meta_type,c.meta_size,c.meta_number,c.meta_body"
        " FROM checkpoints c JOIN threads h ON h.n=c.thread ORDER BY c.n",
    [DGM_COPY_WRITES] =
        "SELECT h.agent,h.thread,c.ns,c.id,w.task,w.idx,w.channel,w.path,w.type,w.size,w.number,"
        "w.body FROM checkpoint_writes w JOIN checkpoints c ON c.n=w.checkpoint"
        " JOIN threads h ON h.n=c.thread ORDER BY w.n",
    [DGM_COPY_VALUES] =
        "SELECT h.agent,h.thread,o.number,v.at&255,v.bytes FROM (SELECT thread,number"
        " FROM checkpoints UNION ALL SELECT thread,meta_number FROM checkpoints UNION ALL"
        " SELECT c.thread,w.number FROM checkpoint_writes w JOIN checkpoints c"
        " ON c.n=w.checkpoint) o JOIN threads h ON h.n=o.thread CROSS JOIN checkpoint_values v"
        " ON v.at BETWEEN o.number<<8 AND (o.number<<8)|255 WHERE o.number>0",
};

static const char *const inserts[DGM_N_COPY][MAX_STATEMENTS] = {
    [DGM_COPY_TASKS] = {"INSERT INTO tasks(tenant,principal,id,context,agent,state,created_ms,"
                        "status_ms,last_seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
                        "INSERT INTO folds(task,seq,body) SELECT last_insert_rowid(),?10,?11"
                        " WHERE ?11 IS NOT NULL"},
    [DGM_COPY_LOG] = {"INSERT INTO log(at,n,bytes) VALUES(" TASK "<<32|?4,?5,?6)"},
    [DGM_COPY_TURNS] = {"INSERT INTO turns(at,first_seq,last_seq,ended_ms,protocol,caller,request,"
                        "previous,message,scope,known_ms,digest) VALUES(" TASK
                        "<<32|?4,?5,?6,?7,?8,?9,?10,?11,'',0,0,x'')"},
    /* of a turn that was trimmed only this is left */
    [DGM_COPY_MESSAGES] =
        {"INSERT INTO turns(at,first_seq,last_seq,ended_ms,protocol,caller,request,previous,"
         "message,scope,known_ms,digest) VALUES(" TASK "<<32|?4,2,1,0,'','','','',?5,?6,?8,?7)"
         " ON CONFLICT(at) DO UPDATE SET message=excluded.message,scope=excluded.scope,"
         "known_ms=excluded.known_ms,digest=excluded.digest"
         " WHERE message='' OR excluded.known_ms>0"},
    [DGM_COPY_CALLS] = {"INSERT INTO calls(tenant,principal,call,agent,task) VALUES(?1,?2,?3,?4,"
                        "(SELECT n FROM tasks WHERE tenant=?1 AND principal=?2 AND id=?5))"},
    [DGM_COPY_NOTES] = {"INSERT INTO notes(tenant,principal,kind,name,expires_ms,text)"
                        " VALUES(?1,?2,?3,?4,?5,?6)"},
    [DGM_COPY_THREADS] = {"INSERT INTO threads(agent,thread,touched_ms) VALUES(?1,?2,?3)"},
    [DGM_COPY_CHECKPOINTS] =
        {NOTE_NUMBER("?12"), NOTE_NUMBER("?16"),
         "INSERT INTO checkpoints(thread,ns,id,is_stored,writes,writes_bytes,parent,run,type,size,"
         "number,body,meta_type,meta_size,meta_number,meta_body) VALUES(" THREAD
         ",?3,?4,?5,?6,?7,?8,?9,?10,?11," NUMBER("?12") ",?13,?14,?15," NUMBER("?16") ",?17)"},
    [DGM_COPY_WRITES] =
        {NOTE_NUMBER("?11"),
         "INSERT INTO checkpoint_writes(checkpoint,task,idx,channel,path,type,size,number,body)"
         " VALUES((SELECT n FROM checkpoints WHERE thread=" THREAD " AND ns=?3 AND id=?4),"
         "?5,?6,?7,?8,?9,?10," NUMBER("?11") ",?12)"},
    [DGM_COPY_VALUES] = {"INSERT INTO checkpoint_values(at,bytes) VALUES(" NUMBER(
        "?3") "<<8|?4,?5)"},
};

/* Which columns are BLOB: all others are TEXT or numbers, and the tables are STRICT. */
static bool is_blob(dgm_copy_table t, int i)
{
    switch (t) {
    case DGM_COPY_TASKS: return i == 10;
    case DGM_COPY_LOG: return i == 5;
    case DGM_COPY_MESSAGES: return i == 6;
    case DGM_COPY_CHECKPOINTS: return i == 12 || i == 16;
    case DGM_COPY_WRITES: return i == 11;
    case DGM_COPY_VALUES: return i == 4;
    default: return false;
    }
}

struct dgm_copy_end {
    dgm_conn conn;
    int lock;
    sqlite3_stmt *statements[MAX_STATEMENTS]; /* of the table that is written */
    dgm_copy_table table;
};

static dgm_code copy_exec(dgm_copy_end *e, const char *sql, bool reading, dgm_err *err)
{
    int rc = sqlite3_exec(e->conn.db, sql, NULL, NULL, NULL);
    return rc ? dgm_conn_fault(&e->conn, rc, reading, err) : DGM_OK;
}

static void finalize_all(dgm_copy_end *e)
{
    for (size_t i = 0; i < MAX_STATEMENTS; i++) {
        sqlite3_finalize(e->statements[i]);
        e->statements[i] = NULL;
    }
}

static void close_copy(dgm_copy_end *e)
{
    if (!e)
        return;
    finalize_all(e);
    if (e->conn.db)
        dgm_conn_close(&e->conn); /* rolls back */
    if (e->lock >= 0)
        close(e->lock);
    free(e);
}

static dgm_code check_empty(dgm_copy_end *e, const char *path, dgm_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(e->conn.db,
                                "SELECT (SELECT count(*) FROM tasks)+(SELECT count(*) FROM notes)+"
                                "(SELECT count(*) FROM threads)",
                                -1, &st, NULL);
    bool is_empty = !rc && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) == 0;
    sqlite3_finalize(st);
    if (rc)
        return dgm_conn_fault(&e->conn, rc, true, err);
    return is_empty
               ? DGM_OK
               : dgm_fail(err, DGM_BAD_PARAMS, NULL,
                          "%.160s is not empty: the target of a copy must be a new file", path);
}

static dgm_code open_source(dgm_copy_end *e, const char *path, dgm_err *err)
{
    int version = 0;
    if (access(path, F_OK) != 0)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the database %.160s does not exist", path);
    dgm_code code = dgm_conn_open(path, DGM_CONN_READ, &e->conn, err);
    if (!code)
        code = dgm_conn_identify(&e->conn, &version, err);
    if (!code && version < DGM_SCHEMA_VERSION)
        code = dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "%.160s has tables of an earlier version: start the server with it once",
                        path);
    return code ? code : copy_exec(e, "BEGIN", true, err);
}

static dgm_code open_target(dgm_copy_end *e, const char *path, dgm_err *err)
{
    dgm_code code = dgm_sqlite_lock(path, &e->lock, err);
    if (!code)
        code = dgm_conn_open(path, DGM_CONN_WRITE, &e->conn, err);
    if (!code)
        code = check_empty(e, path, err);
    if (!code)
        code = copy_exec(e,
                         "PRAGMA synchronous=FULL; CREATE TEMP TABLE numbers(new INTEGER PRIMARY "
                         "KEY, thread INTEGER NOT NULL, old INTEGER NOT NULL, UNIQUE(thread,old));"
                         "BEGIN IMMEDIATE",
                         false, err);
    return code;
}

static dgm_code open_copy(const char *path, bool as_target, dgm_copy_end **ret_end, dgm_err *err)
{
    dgm_copy_end *e = dgm_xcalloc(1, sizeof *e);
    e->lock = -1;
    *ret_end = e;
    return as_target ? open_target(e, path, err) : open_source(e, path, err);
}

static dgm_code read_table(dgm_copy_end *e, dgm_copy_table t, dgm_copy_row on_row, void *arg,
                           dgm_err *err)
{
    sqlite3_stmt *st = NULL;
    dgm_copy_value row[DGM_COPY_MAX_COLUMNS];
    dgm_code code = DGM_OK;
    const char *columns = dgm_copy_columns[t];
    int rc = sqlite3_prepare_v2(e->conn.db, selects[t], -1, &st, NULL);
    while (!rc && !code && sqlite3_step(st) == SQLITE_ROW) {
        for (int i = 0; columns[i]; i++) {
            row[i] = (dgm_copy_value){.is_number = columns[i] == 'i'};
            if (row[i].is_number)
                row[i].number = sqlite3_column_int64(st, i);
            else if (sqlite3_column_type(st, i) != SQLITE_NULL)
                row[i].text = dgm_column_str(st, i);
        }
        code = on_row(row, arg, err);
    }
    int ended = sqlite3_finalize(st);
    rc = rc ? rc : ended;
    return rc && !code ? dgm_conn_fault(&e->conn, rc, true, err) : code;
}

static dgm_code prepare_table(dgm_copy_end *e, dgm_copy_table t, dgm_err *err)
{
    int rc = SQLITE_OK;
    finalize_all(e);
    e->table = t;
    for (size_t i = 0; i < MAX_STATEMENTS && inserts[t][i] && !rc; i++)
        rc = sqlite3_prepare_v2(e->conn.db, inserts[t][i], -1, &e->statements[i], NULL);
    return rc ? dgm_conn_fault(&e->conn, rc, false, err) : DGM_OK;
}

static void bind_row(sqlite3_stmt *st, dgm_copy_table t, const dgm_copy_value *row)
{
    int n = sqlite3_bind_parameter_count(st); /* the greatest number */
    for (int i = 0; i < n; i++) {
        const dgm_copy_value *v = &row[i];
        if (v->is_number)
            sqlite3_bind_int64(st, i + 1, v->number);
        else if (!v->text.p)
            sqlite3_bind_null(st, i + 1);
        else if (is_blob(t, i))
            sqlite3_bind_blob64(st, i + 1, v->text.p, v->text.n, SQLITE_STATIC);
        else
            dgm_bind_str(st, i + 1, v->text);
    }
}

static dgm_code write_row(dgm_copy_end *e, dgm_copy_table t, const dgm_copy_value *row,
                          dgm_err *err)
{
    int rc = SQLITE_OK;
    dgm_code code = DGM_OK;
    if (!e->statements[0] || e->table != t)
        code = prepare_table(e, t, err);
    for (size_t i = 0; i < MAX_STATEMENTS && e->statements[i] && !rc && !code; i++) {
        bind_row(e->statements[i], t, row);
        sqlite3_step(e->statements[i]);
        rc = sqlite3_reset(e->statements[i]);
    }
    return rc ? dgm_conn_fault(&e->conn, rc, false, err) : code;
}

static dgm_code end_table(dgm_copy_end *e, dgm_copy_table t, dgm_err *err)
{
    (void)t, (void)err;
    finalize_all(e);
    return DGM_OK;
}

static dgm_code commit_copy(dgm_copy_end *e, dgm_err *err)
{
    return copy_exec(e, "COMMIT", false, err);
}

const dgm_copy_driver dgm_copy_sqlite = {
    .scheme = "sqlite",
    .open = open_copy,
    .close = close_copy,
    .read = read_table,
    .write = write_row,
    .end_table = end_table,
    .commit = commit_copy,
};
