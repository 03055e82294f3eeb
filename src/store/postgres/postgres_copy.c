/* store/postgres/postgres_copy.c - a database of PostgreSQL as source or target of `dragoman db copy` (store_copy.h). */
#include "postgres_int.h"
#include "store/store_copy.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const selects[DGM_N_COPY] = {
    [DGM_COPY_TASKS] = "SELECT tenant,principal,id,context,agent,state,created_ms,status_ms,"
                       "last_seq,folded_seq,folded FROM dragoman.tasks ORDER BY n",
    [DGM_COPY_LOG] = "SELECT tenant,principal,task,first_seq,n,bytes FROM dragoman.log",
    [DGM_COPY_TURNS] = "SELECT tenant,principal,task,turn,first_seq,last_seq,ended_ms,protocol,"
                       "caller,request,previous FROM dragoman.turns",
    [DGM_COPY_MESSAGES] =
        "SELECT m.tenant,m.principal,m.task,m.turn,m.message,m.scope,m.digest,m.expires_ms,"
        "t.agent,t.context FROM dragoman.messages m JOIN dragoman.tasks t ON t.tenant=m.tenant"
        " AND t.principal=m.principal AND t.id=m.task ORDER BY m.expires_ms",
    [DGM_COPY_CALLS] = "SELECT tenant,principal,call,agent,task FROM dragoman.calls ORDER BY n",
    [DGM_COPY_NOTES] = "SELECT tenant,principal,kind,name,expires_ms,text FROM dragoman.notes",
    [DGM_COPY_THREADS] = "SELECT agent,thread,touched_ms FROM dragoman.threads",
    [DGM_COPY_CHECKPOINTS] =
        "SELECT h.agent,h.thread,c.ns,c.id,c.is_stored,c.writes,c.writes_bytes,c.parent,c.run,"
        "c.type,c.size,c.number,c.body,c.meta_type,c.meta_size,c.meta_number,c.meta_body"
        " FROM dragoman.checkpoints c JOIN dragoman.threads h USING(thread_key)",
    [DGM_COPY_WRITES] =
        "SELECT h.agent,h.thread,c.ns,c.id,w.task,w.idx,w.channel,w.path,w.type,w.size,w.number,"
        "w.body FROM dragoman.checkpoint_writes w JOIN dragoman.checkpoints c"
        " USING(thread_key,checkpoint_key) JOIN dragoman.threads h USING(thread_key)",
    [DGM_COPY_VALUES] = "SELECT h.agent,h.thread,v.number,v.part,v.bytes"
                        " FROM dragoman.checkpoint_values v JOIN dragoman.threads h"
                        " USING(thread_key)",
};

/* A row is a line of COPY ... FROM STDIN (FORMAT binary). Columns: the row's own, after keys that are derived. */
static const char *const copies[DGM_N_COPY] = {
    [DGM_COPY_TASKS] = "dragoman.tasks(tenant,principal,id,context,agent,state,created_ms,"
                       "status_ms,last_seq,folded_seq,folded,record_ms,tail)",
    [DGM_COPY_LOG] = "dragoman.log(tenant,principal,task,first_seq,n,bytes)",
    [DGM_COPY_TURNS] = "dragoman.turns(tenant,principal,task,turn,first_seq,last_seq,ended_ms,"
                       "protocol,caller,request,previous)",
    [DGM_COPY_MESSAGES] = "copied_messages",
    [DGM_COPY_CALLS] = "dragoman.calls(tenant,principal,call,agent,task)",
    [DGM_COPY_NOTES] = "dragoman.notes(tenant,principal,kind,name,expires_ms,text)",
    [DGM_COPY_THREADS] = "dragoman.threads(thread_key,agent,thread,touched_ms)",
    [DGM_COPY_CHECKPOINTS] =
        "dragoman.checkpoints(thread_key,checkpoint_key,ns,id,is_stored,writes,writes_bytes,"
        "parent,run,type,size,number,body,meta_type,meta_size,meta_number,meta_body)",
    [DGM_COPY_WRITES] = "dragoman.checkpoint_writes(thread_key,checkpoint_key,task,idx,channel,"
                        "path,type,size,number,body)",
    [DGM_COPY_VALUES] = "dragoman.checkpoint_values(thread_key,number,part,bytes)",
};

/* Of two rows with a key that of the message's own scope counts. */
static const char put_copied_messages[] =
    "INSERT INTO dragoman.messages(tenant,principal,task,turn,message,scope,digest,expires_ms)"
    " SELECT DISTINCT ON (tenant,principal,message,scope) tenant,principal,task,turn,message,scope,"
    "digest,expires_ms FROM copied_messages ORDER BY tenant,principal,message,scope,is_derived,"
    "place DESC";

struct dgm_copy_end {
    PGconn *conn;
    pg_target target;
    dgm_buf row;
    int64_t place;
    bool is_target, copies; /* the latter: within COPY */
};

static dgm_code copy_sql(dgm_copy_end *e, const char *sql, ExecStatusType want, bool reading,
                         dgm_err *err)
{
    PGresult *r = PQexec(e->conn, sql);
    ExecStatusType got = PQresultStatus(r);
    dgm_code code = got == want ? DGM_OK : dgm_pg_fault(e->conn, r, reading, err);
    PQclear(r);
    return code;
}

static void pg_close_copy(dgm_copy_end *e)
{
    if (!e)
        return;
    PQfinish(e->conn); /* rolls back */
    dgm_pg_target_done(&e->target);
    dgm_buf_done(&e->row);
    free(e);
}

static dgm_code pg_open_target(dgm_copy_end *e, dgm_err *err)
{
    int64_t n = 0;
    dgm_code code = dgm_pg_migrate(e->conn, &e->target, err);
    if (!code)
        code = dgm_pg_lease_check_unused(e->conn, &e->target, err);
    if (!code)
        n = dgm_pg_query_int(e->conn,
                             "SELECT (SELECT count(*) FROM dragoman.tasks)+(SELECT count(*)"
                             " FROM dragoman.notes)+(SELECT count(*) FROM dragoman.threads)",
                             &code, err);
    if (!code && n)
        code = dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "the database %s is not empty: the target of a copy must be empty",
                        e->target.shown);
    if (!code)
        code = copy_sql(e, "BEGIN", PGRES_COMMAND_OK, false, err);
    if (!code)
        code = copy_sql(e,
                        "CREATE TEMP TABLE copied_messages(tenant bytea,principal bytea,task bytea,"
                        "turn bigint,message bytea,scope bigint,digest bytea,expires_ms bigint,"
                        "is_derived bigint,place bigint) ON COMMIT DROP",
                        PGRES_COMMAND_OK, false, err);
    return code;
}

static dgm_code pg_open_copy(const char *rest, bool as_target, dgm_copy_end **ret_end, dgm_err *err)
{
    dgm_copy_end *e = dgm_xcalloc(1, sizeof *e);
    *ret_end = e;
    e->is_target = as_target;
    dgm_buf_init(&e->row, (size_t)1 << 30);
    dgm_code code = dgm_pg_target_parse(rest, &e->target, err);
    if (!code)
        code = dgm_pg_connect(&e->target, PG_CONTROL, &e->conn, err);
    if (!code)
        code = copy_sql(e, "RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin",
                        PGRES_COMMAND_OK, false, err);
    if (!code && as_target)
        code = pg_open_target(e, err);
    else if (!code)
        code = copy_sql(e, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", PGRES_COMMAND_OK,
                        true, err);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static dgm_code pass_row(const PGresult *r, dgm_copy_table t, dgm_copy_row on_row, void *arg,
                         dgm_err *err)
{
    const char *columns = dgm_copy_columns[t];
    dgm_copy_value row[DGM_COPY_MAX_COLUMNS];
    for (int i = 0; columns[i]; i++) {
        row[i] = (dgm_copy_value){.is_number = columns[i] == 'i'};
        if (row[i].is_number)
            row[i].number = dgm_pg_int(r, 0, i);
        else
            row[i].text = dgm_pg_str(r, 0, i);
    }
    return on_row(row, arg, err);
}

static dgm_code pg_read_table(dgm_copy_end *e, dgm_copy_table t, dgm_copy_row on_row, void *arg,
                              dgm_err *err)
{
    dgm_code code = DGM_OK;
    if (!PQsendQueryParams(e->conn, selects[t], 0, NULL, NULL, NULL, NULL, 1) ||
        !PQsetSingleRowMode(e->conn))
        return dgm_pg_fault(e->conn, NULL, true, err);
    for (PGresult *r; (r = PQgetResult(e->conn)); PQclear(r)) {
        ExecStatusType status = PQresultStatus(r);
        if (status == PGRES_SINGLE_TUPLE && !code)
            code = pass_row(r, t, on_row, arg, err);
        else if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK && !code)
            code = dgm_pg_fault(e->conn, r, true, err);
    }
    return code;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void copy_number(dgm_buf *b, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        dgm_buf_add_char(b, (char)(v >> 8 * i));
}

static void copy_text(dgm_buf *b, dgm_str s)
{
    copy_number(b, s.p ? s.n : UINT32_MAX, 4);
    dgm_buf_add_str(b, s);
}

static void copy_int(dgm_buf *b, int64_t v, int bytes)
{
    copy_number(b, (uint64_t)bytes, 4);
    copy_number(b, (uint64_t)v, bytes);
}

static void copy_values(dgm_buf *b, const dgm_copy_value *row, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (row[i].is_number)
            copy_int(b, row[i].number, 8);
        else
            copy_text(b, row[i].text);
    }
}

static void copy_key(dgm_buf *b, void (*make)(dgm_str, dgm_str, unsigned char *),
                     const dgm_copy_value *of)
{
    unsigned char key[DGM_DIGEST_BYTES];
    make(of[0].text, of[1].text, key);
    copy_text(b, (dgm_str){(const char *)key, sizeof key});
}

static void put_copied_row(dgm_copy_end *e, dgm_copy_table t, const dgm_copy_value *row)
{
    dgm_buf *b = &e->row;
    int n = (int)strlen(dgm_copy_columns[t]);
    switch (t) {
    case DGM_COPY_TASKS: /* the state is small; record_ms, tail: not known */
        copy_number(b, 13, 2);
        copy_values(b, row, 0, 5);
        copy_int(b, row[5].number, 2);
        copy_values(b, row, 6, n);
        copy_int(b, row[7].number, 8);
        copy_int(b, 0, 8);
        break;
    case DGM_COPY_THREADS:
    case DGM_COPY_VALUES:
        copy_number(b, 4, 2);
        copy_key(b, dgm_pg_thread_key, row);
        copy_values(b, row, t == DGM_COPY_THREADS ? 0 : 2, n);
        break;
    case DGM_COPY_CHECKPOINTS:
    case DGM_COPY_WRITES:
        copy_number(b, t == DGM_COPY_CHECKPOINTS ? 17 : 10, 2);
        copy_key(b, dgm_pg_thread_key, row);
        copy_key(b, dgm_pg_checkpoint_key, row + 2);
        copy_values(b, row, t == DGM_COPY_CHECKPOINTS ? 2 : 4, n);
        break;
    default: copy_number(b, (uint64_t)n, 2); copy_values(b, row, 0, n);
    }
}

/* A message in the scope without a context is found in that of its task, too. */
static void put_copied_message(dgm_copy_end *e, const dgm_copy_value *row)
{
    enum { SCOPE = 5, EXPIRES = 7, AGENT, CONTEXT };
    dgm_owner owner = {row[0].text, row[1].text};
    dgm_copy_value one[CONTEXT + 1];
    memcpy(one, row, sizeof one);
    bool nameless = row[SCOPE].number == (int64_t)dgm_scope(owner, row[AGENT].text, (dgm_str){0});
    for (int derived = 0; derived <= nameless; derived++) {
        if (derived)
            one[SCOPE].number = (int64_t)dgm_scope(owner, row[AGENT].text, row[CONTEXT].text);
        one[EXPIRES].number = nameless && !derived ? row[EXPIRES].number : 0;
        copy_number(&e->row, 10, 2);
        copy_values(&e->row, one, 0, AGENT);
        copy_int(&e->row, derived, 8);
        copy_int(&e->row, ++e->place, 8);
    }
}

static dgm_code pg_begin_table(dgm_copy_end *e, dgm_copy_table t, dgm_err *err)
{
    static const char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* with its last NUL: 19 bytes */
    char sql[400];
    snprintf(sql, sizeof sql, "COPY %s FROM STDIN (FORMAT binary)", copies[t]);
    dgm_code code = copy_sql(e, sql, PGRES_COPY_IN, false, err);
    e->copies = !code;
    if (!code && PQputCopyData(e->conn, head, sizeof head) != 1)
        code = dgm_pg_fault(e->conn, NULL, false, err);
    return code;
}

static dgm_code pg_write_row(dgm_copy_end *e, dgm_copy_table t, const dgm_copy_value *row,
                             dgm_err *err)
{
    dgm_code code = e->copies ? DGM_OK : pg_begin_table(e, t, err);
    if (code)
        return code;
    dgm_buf_clear(&e->row);
    if (t == DGM_COPY_MESSAGES)
        put_copied_message(e, row);
    else
        put_copied_row(e, t, row);
    if (e->row.over || PQputCopyData(e->conn, e->row.p, (int)e->row.n) != 1)
        return dgm_pg_fault(e->conn, NULL, false, err);
    dgm_buf_shrink(&e->row, (size_t)1 << 20);
    return DGM_OK;
}

static dgm_code pg_end_table(dgm_copy_end *e, dgm_copy_table t, dgm_err *err)
{
    static const char end[] = {'\377', '\377'};
    dgm_code code = DGM_OK;
    if (!e->copies)
        return DGM_OK;
    e->copies = false;
    if (PQputCopyData(e->conn, end, sizeof end) != 1 || PQputCopyEnd(e->conn, NULL) != 1)
        return dgm_pg_fault(e->conn, NULL, false, err);
    for (PGresult *r; (r = PQgetResult(e->conn)); PQclear(r)) {
        if (PQresultStatus(r) != PGRES_COMMAND_OK && !code)
            code = dgm_pg_fault(e->conn, r, false, err);
    }
    if (!code && t == DGM_COPY_MESSAGES)
        code = copy_sql(e, put_copied_messages, PGRES_COMMAND_OK, false, err);
    return code;
}

static dgm_code pg_commit_copy(dgm_copy_end *e, dgm_err *err)
{
    dgm_code code = copy_sql(e, "COMMIT", PGRES_COMMAND_OK, false, err);
    if (!code)
        PQclear(PQexec(e->conn, "ANALYZE"));
    return code;
}

const dgm_copy_driver dgm_copy_postgres = {
    .scheme = "postgres",
    .open = pg_open_copy,
    .close = pg_close_copy,
    .read = pg_read_table,
    .write = pg_write_row,
    .end_table = pg_end_table,
    .commit = pg_commit_copy,
};
