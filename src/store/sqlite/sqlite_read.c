/*
 * store/sqlite/sqlite_read.c - every read, on a reader's own connection.
 *
 * A reader sees the last commit. What it finds broken is DGM_INTERNAL: somebody has to look at the
 * database; what it cannot reach is DGM_UNAVAILABLE.
 */
#include "model/kinds.h"
#include "sqlite_int.h"
#include "store/store_job.h"

#include <assert.h>
#include <stdio.h>

static sqlite3_stmt *sql(dgm_conn *c, dgm_job *job, dgm_sql which)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(c, which, &rc);
    if (!st)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
    return st;
}

static void sqlite_read_finish(dgm_conn *c, dgm_job *job, sqlite3_stmt *st)
{
    int rc = sqlite3_reset(st);
    if (rc && !job->code)
        job->code = dgm_conn_fault(c, rc, true, &job->err);
}

static dgm_str text(dgm_job *job, sqlite3_stmt *st, int i)
{
    return dgm_arena_dup(job->arena, dgm_column_str(st, i));
}

/* ---- tasks ----------------------------------------------------------------------------------------- */

static dgm_task_row sqlite_read_row_of(dgm_job *job, sqlite3_stmt *st)
{
    dgm_task_row row = {
        .owner = {text(job, st, 0), text(job, st, 1)},
        .id = text(job, st, 2),
        .context_id = text(job, st, 3),
        .agent = text(job, st, 4),
        .state = (dgm_task_state)sqlite3_column_int(st, 5),
        .created_ms = sqlite3_column_int64(st, 6),
        .status_ms = sqlite3_column_int64(st, 7),
        .last_seq = (uint64_t)sqlite3_column_int64(st, 8),
        .folded_seq = (uint64_t)sqlite3_column_int64(st, 9),
    };
    if (sqlite3_column_type(st, 10) != SQLITE_NULL)
        row.folded = text(job, st, 10);
    if ((unsigned)row.state >= DGM_N_STATES)
        job->code =
            dgm_fail(&job->err, DGM_INTERNAL, NULL,
                     "the database is damaged: task %.*s is in state %d: run `dragoman db check`",
                     DGM_P(row.id), (int)row.state);
    return row;
}

static void take_task(dgm_conn *c, dgm_job *job, sqlite3_stmt *st)
{
    if (sqlite3_step(st) == SQLITE_ROW) {
        job->got.row = dgm_new(job->arena, dgm_task_row);
        *job->got.row = sqlite_read_row_of(job, st);
    }
    sqlite_read_finish(c, job, st);
}

static void get_task(dgm_conn *c, dgm_job *job)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_TASK_GET);
    if (!st)
        return;
    dgm_bind_str(st, 1, job->task.owner.tenant);
    dgm_bind_str(st, 2, job->task.owner.principal);
    dgm_bind_str(st, 3, job->task.task_id);
    take_task(c, job, st);
}

static void sqlite_read_find_call(dgm_conn *c, dgm_job *job)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_CALL_FIND);
    if (!st)
        return;
    dgm_bind_str(st, 1, job->find.owner.tenant);
    dgm_bind_str(st, 2, job->find.owner.principal);
    dgm_bind_str(st, 3, job->find.call_id);
    dgm_bind_str(st, 4, job->find.agent);
    take_task(c, job, st);
}

/* The number of the task a job is about, for its owner; false if not found. */
static bool task_number(dgm_conn *c, dgm_job *job, int64_t *ret_n)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_TASK_N);
    if (!st)
        return false;
    dgm_bind_str(st, 1, job->task.owner.tenant);
    dgm_bind_str(st, 2, job->task.owner.principal);
    dgm_bind_str(st, 3, job->task.task_id);
    bool found = sqlite3_step(st) == SQLITE_ROW;
    if (found)
        *ret_n = sqlite3_column_int64(st, 0);
    sqlite_read_finish(c, job, st);
    return found && !job->code;
}

/* ---- records --------------------------------------------------------------------------------------- */

static void get_records(dgm_conn *c, dgm_job *job)
{
    int64_t n;
    dgm_log_page page = {0};
    if (job->task.seq > UINT32_MAX || job->task.max == 0 || !task_number(c, job, &n))
        return;
    sqlite3_stmt *st = sql(c, job, DGM_SQL_LOG_FROM);
    if (!st)
        return;
    sqlite3_bind_int64(st, 1, dgm_key(n, 0));
    sqlite3_bind_int64(st, 2, dgm_key(n, job->task.seq));
    sqlite3_bind_int64(st, 3, dgm_key(n, UINT32_MAX));
    while (sqlite3_step(st) == SQLITE_ROW) {
        uint64_t first = (uint64_t)sqlite3_column_int64(st, 0) & UINT32_MAX;
        if (!dgm_job_add_log_row(job, &page, dgm_column_str(st, 2), first,
                                 "run `dragoman db check`"))
            break;
    }
    sqlite_read_finish(c, job, st);
}

/* ---- turns, message ids ---------------------------------------------------------------------------- */

static dgm_turn_row turn_of(dgm_job *job, sqlite3_stmt *st)
{
    return (dgm_turn_row){
        .turn = (uint32_t)sqlite3_column_int64(st, 0),
        .first_seq = (uint64_t)sqlite3_column_int64(st, 1),
        .last_seq = (uint64_t)sqlite3_column_int64(st, 2),
        .protocol = text(job, st, 3),
        .caller_id = text(job, st, 4),
        .request = text(job, st, 5),
        .previous = text(job, st, 6),
    };
}

static void get_turns(dgm_conn *c, dgm_job *job)
{
    int64_t n;
    size_t cap = 0, count = 0;
    dgm_turn_row *turns = NULL;
    if (!task_number(c, job, &n))
        return;
    sqlite3_stmt *st = sql(c, job, DGM_SQL_TURNS_GET);
    if (!st)
        return;
    sqlite3_bind_int64(st, 1, dgm_key(n, 0));
    sqlite3_bind_int64(st, 2, dgm_key(n, UINT32_MAX));
    while (sqlite3_step(st) == SQLITE_ROW) {
        if (count == cap) {
            turns = dgm_arena_realloc(job->arena, turns, cap * sizeof *turns,
                                      (cap ? cap * 2 : 8) * sizeof *turns);
            cap = cap ? cap * 2 : 8;
        }
        turns[count++] = turn_of(job, st);
    }
    job->got.turns.at = turns;
    job->got.turns.n = count;
    sqlite_read_finish(c, job, st);
}

static void find_turn(dgm_conn *c, dgm_job *job)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_TURN_FIND);
    if (!st)
        return;
    dgm_bind_str(st, 1, job->find.owner.tenant);
    dgm_bind_str(st, 2, job->find.owner.principal);
    dgm_bind_str(st, 3, job->find.protocol);
    dgm_bind_str(st, 4, job->find.caller_id);
    dgm_bind_str(st, 5, job->find.agent);
    if (sqlite3_step(st) == SQLITE_ROW) {
        job->got.turns.at = dgm_new(job->arena, dgm_turn_row);
        *job->got.turns.at = turn_of(job, st);
        job->got.turns.task_id = text(job, st, 7);
        job->got.turns.n = 1;
    }
    sqlite_read_finish(c, job, st);
}

/* A row of a turn that took the message id; in another task's context, or too long ago: none. */
static void take_dedupe(dgm_job *job, sqlite3_stmt *st)
{
    int64_t known_ms = sqlite3_column_int64(st, 3);
    bool nameless = job->find.context_id.n == 0;
    if (nameless ? known_ms <= dgm_loop_unix_ms()
                 : !dgm_str_eq(dgm_column_str(st, 4), job->find.context_id))
        return;
    dgm_dedupe_row *row = dgm_new(job->arena, dgm_dedupe_row);
    *row = (dgm_dedupe_row){.owner = job->find.owner, /* the job lives as long as its answer */
                            .agent = job->find.agent,
                            .context_id = job->find.context_id,
                            .message_id = job->find.message_id,
                            .task_id = text(job, st, 1),
                            .turn = (uint32_t)sqlite3_column_int64(st, 2),
                            .expires_ms = nameless ? known_ms : 0};
    dgm_str digest = dgm_column_str(st, 0);
    if (digest.n == sizeof row->digest)
        memcpy(row->digest, digest.p, sizeof row->digest);
    else
        job->code = dgm_fail(&job->err, DGM_INTERNAL, NULL,
                             "the database is damaged: a message id has a digest of %zu bytes: run "
                             "`dragoman db check`",
                             digest.n);
    job->got.dedupe = row;
}

static void find_in_scope(dgm_conn *c, dgm_job *job, dgm_str context_id)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_DEDUPE_GET);
    if (!st)
        return;
    dgm_bind_str(st, 1, job->find.message_id);
    sqlite3_bind_int64(st, 2, (int64_t)dgm_scope(job->find.owner, job->find.agent, context_id));
    dgm_bind_str(st, 3, job->find.owner.tenant);
    dgm_bind_str(st, 4, job->find.owner.principal);
    dgm_bind_str(st, 5, job->find.agent);
    while (!job->got.dedupe && sqlite3_step(st) == SQLITE_ROW)
        take_dedupe(job, st);
    sqlite_read_finish(c, job, st);
}

/* A message that was sent without a context is stored under an empty context until another replaces it there. */
static void find_dedupe(dgm_conn *c, dgm_job *job)
{
    find_in_scope(c, job, job->find.context_id);
    if (!job->got.dedupe && !job->code && job->find.context_id.n)
        find_in_scope(c, job, (dgm_str){0});
}

/* ---- lists ----------------------------------------------------------------------------------------- */

#define FOLDED_TASK 11 /* a column of lists: the task whose folded Task belongs to the row */

static unsigned filters_of(const dgm_list_query *q)
{
    return (q->agent.n ? LIST_AGENT : 0u) | (q->context_id.n ? LIST_CONTEXT : 0u) |
           (q->state.set ? LIST_STATE : 0u) | (q->status_from_ms ? LIST_FROM : 0u);
}

static int prepare_list(dgm_conn *c, bool counts, unsigned filters)
{
    char sql_text[1024];
    /* A context holds few tasks: find them all, sort them. Otherwise the order is the index's. The folded Tasks are
     * read for the rows of the page only: in this statement, SQLite would sort all of them in memory. */
    snprintf(sql_text, sizeof sql_text,
             "SELECT %s WHERE t.tenant=?1 AND t.principal=?2%s%s%s%s%s%s",
             counts ? (filters & LIST_CONTEXT ? "count(*) FROM tasks t INDEXED BY tasks_by_context"
                                              : "count(*) FROM tasks t INDEXED BY tasks_by_status")
             : filters & LIST_CONTEXT
                 ? "t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"
                   "t.last_seq,0,NULL,t.n FROM tasks t INDEXED BY tasks_by_context"
                 : "t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"
                   "t.last_seq,0,NULL,t.n FROM tasks t INDEXED BY tasks_by_status",
             filters & LIST_AGENT ? " AND t.agent=?3" : "",
             filters & LIST_CONTEXT ? " AND t.context=?4" : "",
             filters & LIST_STATE ? " AND t.state=?5" : "",
             filters & LIST_FROM ? " AND t.status_ms>=?6" : "",
             filters & LIST_AFTER ? " AND (t.status_ms,t.id)<(?7,?8)" : "",
             counts ? "" : " ORDER BY t.status_ms DESC,t.id DESC LIMIT ?9");
    return sqlite3_prepare_v3(c->db, sql_text, -1, SQLITE_PREPARE_PERSISTENT,
                              &c->lists[counts][filters], NULL);
}

static sqlite3_stmt *list_sql(dgm_conn *c, dgm_job *job, bool counts, unsigned filters)
{
    const dgm_list_query *q = &job->list;
    int rc = c->lists[counts][filters] ? SQLITE_OK : prepare_list(c, counts, filters);
    sqlite3_stmt *st = c->lists[counts][filters];
    if (rc) {
        job->code = dgm_conn_fault(c, rc, true, &job->err);
        return NULL;
    }
    dgm_bind_str(st, 1, q->owner.tenant);
    dgm_bind_str(st, 2, q->owner.principal);
    if (filters & LIST_AGENT)
        dgm_bind_str(st, 3, q->agent);
    if (filters & LIST_CONTEXT)
        dgm_bind_str(st, 4, q->context_id);
    if (filters & LIST_STATE)
        sqlite3_bind_int(st, 5, q->state.value);
    if (filters & LIST_FROM)
        sqlite3_bind_int64(st, 6, q->status_from_ms);
    if (filters & LIST_AFTER) {
        sqlite3_bind_int64(st, 7, q->after_status_ms);
        dgm_bind_str(st, 8, q->after_id);
    }
    if (!counts)
        sqlite3_bind_int64(st, 9, (int64_t)q->page_size + 1);
    return st;
}

static void read_folded(dgm_conn *c, dgm_job *job, int64_t task, dgm_task_row *row)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_FOLD_GET);
    if (!st)
        return;
    sqlite3_bind_int64(st, 1, task);
    if (sqlite3_step(st) == SQLITE_ROW) {
        row->folded_seq = (uint64_t)sqlite3_column_int64(st, 0);
        row->folded = text(job, st, 1);
    }
    sqlite_read_finish(c, job, st);
}

/* Rows until the page is full; one more is asked for to know whether there are more. */
static void take_page(dgm_conn *c, dgm_job *job, sqlite3_stmt *st, size_t page_size,
                      size_t max_bytes)
{
    size_t n = 0, cap = 0, bytes = 0;
    dgm_task_row *rows = NULL;
    while (!job->code && sqlite3_step(st) == SQLITE_ROW) {
        if (n == page_size || bytes >= max_bytes) {
            job->got.rows.more = true;
            break;
        }
        if (n == cap) {
            rows = dgm_arena_realloc(job->arena, rows, cap * sizeof *rows,
                                     (cap ? cap * 2 : 16) * sizeof *rows);
            cap = cap ? cap * 2 : 16;
        }
        rows[n] = sqlite_read_row_of(job, st);
        if (!job->code && sqlite3_column_count(st) > FOLDED_TASK)
            read_folded(c, job, sqlite3_column_int64(st, FOLDED_TASK), &rows[n]);
        bytes += rows[n++].folded.n;
    }
    job->got.rows.at = rows;
    job->got.rows.n = n;
    sqlite_read_finish(c, job, st);
}

static void list(dgm_conn *c, dgm_job *job)
{
    unsigned filters = filters_of(&job->list);
    int rc = sqlite3_exec(c->db, "BEGIN", NULL, NULL, NULL); /* page and total from one commit */
    if (rc) {
        job->code = dgm_conn_fault(c, rc, true, &job->err);
        return;
    }
    sqlite3_stmt *st = list_sql(c, job, false, filters | (job->list.after_id.n ? LIST_AFTER : 0u));
    if (st)
        take_page(c, job, st, job->list.page_size, DGM_MAX_STORE_PAGE_BYTES);
    if (!job->code && (st = list_sql(c, job, true, filters))) {
        if (sqlite3_step(st) == SQLITE_ROW)
            job->got.rows.total = (size_t)sqlite3_column_int64(st, 0);
        sqlite_read_finish(c, job, st);
    }
    sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL);
}

static void list_unfinished(dgm_conn *c, dgm_job *job)
{
    bool first = !job->unfinished.has_after;
    sqlite3_stmt *st = sql(c, job, first ? DGM_SQL_UNFINISHED_FIRST : DGM_SQL_UNFINISHED);
    if (!st)
        return;
    if (!first) {
        dgm_bind_str(st, 1, job->unfinished.after.owner.tenant);
        dgm_bind_str(st, 2, job->unfinished.after.owner.principal);
        dgm_bind_str(st, 3, job->unfinished.after.id);
    }
    sqlite3_bind_int64(st, 4, (int64_t)job->unfinished.page_size + 1);
    take_page(c, job, st, job->unfinished.page_size, DGM_MAX_STORE_PAGE_BYTES);
}

static void get_context(dgm_conn *c, dgm_job *job)
{
    sqlite3_stmt *st = sql(c, job, DGM_SQL_CONTEXT_GET);
    if (!st)
        return;
    dgm_bind_str(st, 1, job->context.owner.tenant);
    dgm_bind_str(st, 2, job->context.owner.principal);
    dgm_bind_str(st, 3, job->context.agent);
    dgm_bind_str(st, 4, job->context.context_id);
    sqlite3_bind_int64(st, 5, (int64_t)job->context.max + 1);
    take_page(c, job, st, job->context.max, job->context.max_bytes);
}

void dgm_conn_read(dgm_conn *c, dgm_job *job)
{
    dgm_job_arena(job);
    switch (job->kind) {
    case DGM_JOB_TASK: get_task(c, job); break;
    case DGM_JOB_RECORDS: get_records(c, job); break;
    case DGM_JOB_TURNS: get_turns(c, job); break;
    case DGM_JOB_FIND_TURN: find_turn(c, job); break;
    case DGM_JOB_FIND_DEDUPE: find_dedupe(c, job); break;
    case DGM_JOB_FIND_CALL: sqlite_read_find_call(c, job); break;
    case DGM_JOB_GET_NOTE: dgm_conn_read_note(c, job); break;
    case DGM_JOB_CHECKPOINTS: dgm_conn_read_checkpoints(c, job); break;
    case DGM_JOB_LIST: list(c, job); break;
    case DGM_JOB_CONTEXT: get_context(c, job); break;
    case DGM_JOB_UNFINISHED: list_unfinished(c, job); break;
    case DGM_JOB_APPEND:
    case DGM_JOB_CHANGE:
    case DGM_JOB_PUT_NOTE:
    case DGM_JOB_TRIM:
    case DGM_JOB_ACQUIRE:
    case DGM_JOB_RELEASE:
    case DGM_JOB_COMMAND:
    case DGM_JOB_ANSWER: assert(!"not a read of this driver"); break;
    }
}
