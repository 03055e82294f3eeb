/*
 * store/sqlite/sqlite_rows.c - the rows of a batch, as tables that a statement can read.
 *
 * A batch is written by one statement per table, INSERT ... SELECT ... FROM batch_tasks and so on: SQLite
 * opens its cursors once per batch then, not once per row, which is half of what a row costs. The tables
 * are virtual ones of the writer's connection. They show w->part, and compute a row when it is asked for:
 * texts are the jobs' own, a log row is put together in w->row.
 */
#include "sqlite_int.h"

#include <stdlib.h>

struct table {
    sqlite3_vtab base; /* first */
    size_t kind;
    dgm_sql_writer *w;
};

/* The position of a reader: a job of a group; for log rows the record after the row in w->row. */
struct cursor {
    sqlite3_vtab_cursor base; /* first */
    dgm_sql_writer *w;
    size_t kind; /* of kinds */
    size_t group;
    const dgm_job *job;
    size_t call; /* of the job's */
    bool end;
    sqlite3_int64 rowid;
    struct {
        uint64_t first;
        size_t count;
        const dgm_job *job; /* of the next record */
        size_t record;
    } log;
};

enum { TASKS, LOG, TURNS, FOLDS, CALLS, N_KINDS };

static void give_text(sqlite3_context *to, dgm_str s)
{
    sqlite3_result_text(to, s.p ? s.p : "", (int)s.n, SQLITE_STATIC);
}

/* ---- tasks: one of each new group ------------------------------------------------------------------ */

/* As the first append made it and the last one left it. */
static int task_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
    const struct cursor *c = (const struct cursor *)(const void *)cursor;
    const dgm_group *g = &c->w->part[c->group];
    const dgm_task_row *made = &g->first->append.batch.row, *row = &g->last->append.batch.row;
    switch (i) {
    case 0: sqlite3_result_int64(to, g->n); break;
    case 1: give_text(to, made->owner.tenant); break;
    case 2: give_text(to, made->owner.principal); break;
    case 3: give_text(to, made->id); break;
    case 4: give_text(to, made->context_id); break;
    case 5: give_text(to, made->agent); break;
    case 6: sqlite3_result_int(to, (int)row->state); break;
    case 7: sqlite3_result_int64(to, made->created_ms); break;
    case 8: sqlite3_result_int64(to, row->status_ms); break;
    case 9: sqlite3_result_int64(to, (int64_t)row->last_seq); break;
    }
    return SQLITE_OK;
}

/* ---- log: what a group appends, a row for every turn and megabyte ---------------------------------- */

static bool next_log_row(struct cursor *c)
{
    dgm_buf *row = &c->w->row;
    uint32_t turn = 0;
    c->log.count = 0;
    dgm_buf_clear(row);
    while (c->log.job) {
        const dgm_append *batch = &c->log.job->append.batch;
        if (c->log.record == batch->n_records) {
            c->log.job = c->log.job->group_next;
            c->log.record = 0;
            continue;
        }
        const dgm_record *r = batch->records[c->log.record];
        if (c->log.count && (r->head.turn != turn || row->n + r->n > DGM_LOG_ROW_BYTES))
            break;
        if (c->log.count++ == 0) {
            c->log.first = r->head.seq;
            turn = r->head.turn;
        }
        dgm_frame_add(row, r);
        c->log.record++;
    }
    if (c->log.count)
        dgm_frame_end(row);
    return c->log.count > 0;
}

static int log_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
    const struct cursor *c = (const struct cursor *)(const void *)cursor;
    switch (i) {
    case 0: sqlite3_result_int64(to, dgm_key(c->w->part[c->group].n, c->log.first)); break;
    case 1: sqlite3_result_int64(to, (int64_t)c->log.count); break;
    case 2: sqlite3_result_blob64(to, c->w->row.p, c->w->row.n, SQLITE_STATIC); break;
    }
    return SQLITE_OK;
}

/* ---- turns: one for each append that has one ------------------------------------------------------- */

static int turn_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
    const struct cursor *c = (const struct cursor *)(const void *)cursor;
    const dgm_turn_row *t = c->job->append.batch.turn;
    const dgm_taken *taken = c->job->append.batch.taken;
    const dgm_task_row *made = &c->w->part[c->group].first->append.batch.row;
    switch (i) {
    case 0: sqlite3_result_int64(to, dgm_key(c->w->part[c->group].n, t->turn)); break;
    case 1: sqlite3_result_int64(to, (int64_t)t->first_seq); break;
    case 2: sqlite3_result_int64(to, (int64_t)t->last_seq); break;
    case 3: sqlite3_result_int64(to, c->job->append.ended_ms); break;
    case 4: give_text(to, t->protocol); break;
    case 5: give_text(to, t->caller_id); break;
    case 6: give_text(to, t->request); break;
    case 7: give_text(to, t->previous); break;
    case 8: give_text(to, taken ? taken->message_id : (dgm_str){0}); break;
    case 9: {
        bool is_named = taken && !taken->nameless_until_ms;
        dgm_str context = is_named ? made->context_id : (dgm_str){0};
        sqlite3_result_int64(to, taken ? (int64_t)dgm_scope(made->owner, made->agent, context) : 0);
        break;
    }
    case 10: sqlite3_result_int64(to, taken ? taken->nameless_until_ms : 0); break;
    case 11:
        if (taken) {
            unsigned char digest[DGM_DIGEST_BYTES];
            dgm_content_digest(&c->w->sha256, taken->content, digest);
            sqlite3_result_blob(to, digest, sizeof digest, SQLITE_TRANSIENT);
        } else {
            sqlite3_result_zeroblob(to, 0);
        }
        break;
    }
    return SQLITE_OK;
}

/* ---- folded Tasks: the last one of a group --------------------------------------------------------- */

static int fold_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
    const struct cursor *c = (const struct cursor *)(const void *)cursor;
    const dgm_task_row *row = &c->job->append.batch.row;
    switch (i) {
    case 0: sqlite3_result_int64(to, c->w->part[c->group].n); break;
    case 1: sqlite3_result_int64(to, (int64_t)row->folded_seq); break;
    case 2: sqlite3_result_blob64(to, row->folded.p, row->folded.n, SQLITE_STATIC); break;
    }
    return SQLITE_OK;
}

/* ---- calls: those that a group asks for ------------------------------------------------------------ */

static int call_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
    const struct cursor *c = (const struct cursor *)(const void *)cursor;
    const dgm_append *b = &c->job->append.batch;
    switch (i) {
    case 0: give_text(to, b->open_calls.at[c->call]); break;
    case 1: give_text(to, b->row.owner.tenant); break;
    case 2: give_text(to, b->row.owner.principal); break;
    case 3: give_text(to, b->row.agent); break;
    case 4: sqlite3_result_int64(to, c->w->part[c->group].n); break;
    }
    return SQLITE_OK;
}

/* ---- what SQLite calls ----------------------------------------------------------------------------- */

static const struct kind {
    const char *name, *declaration;
    sqlite3_module module;
} kinds[N_KINDS];

static int on_connect(sqlite3 *db, void *arg, int argc, const char *const *argv,
                      sqlite3_vtab **ret_table, char **ret_why)
{
    (void)argc, (void)ret_why;
    size_t i = 0;
    int rc;
    while (strcmp(kinds[i].name, argv[0]) != 0)
        i++;
    if ((rc = sqlite3_declare_vtab(db, kinds[i].declaration)))
        return rc;
    struct table *t = dgm_xcalloc(1, sizeof *t);
    t->w = arg;
    t->kind = i;
    *ret_table = &t->base;
    return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int on_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 100; /* all rows, whatever is asked */
    info->estimatedRows = 100;
    return SQLITE_OK;
}

static int on_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    const struct table *t = (const struct table *)(const void *)table;
    struct cursor *c = dgm_xcalloc(1, sizeof *c);
    c->w = t->w;
    c->kind = t->kind;
    *ret_cursor = &c->base;
    return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

/* To the next row within this group, from the current job. */
static bool next_in_group(struct cursor *c)
{
    const dgm_group *g = &c->w->part[c->group];
    bool first = !c->job;
    switch (c->kind) {
    case TASKS: c->job = g->first; return first && g->is_new;
    case LOG:
        if (first) {
            c->job = c->log.job = g->first;
            c->log.record = 0;
        }
        return next_log_row(c);
    case TURNS:
        c->job = first ? g->first : c->job->group_next;
        while (c->job && !c->job->append.batch.turn)
            c->job = c->job->group_next;
        return c->job;
    case FOLDS:
        for (const dgm_job *job = first ? g->first : NULL; job; job = job->group_next) {
            if (job->append.batch.row.folded.p)
                c->job = job;
        }
        return first && c->job;
    default: /* CALLS */
        c->call = first ? 0 : c->call + 1;
        c->job = first ? g->first : c->job;
        for (; c->job && c->call >= c->job->append.batch.open_calls.n; c->call = 0)
            c->job = c->job->group_next;
        return c->job;
    }
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
    struct cursor *c = (struct cursor *)(void *)cursor;
    c->rowid++;
    for (; c->group < c->w->n_part; c->group++, c->job = NULL) {
        if (c->w->part[c->group].n && next_in_group(c))
            return SQLITE_OK;
    }
    c->end = true;
    return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc,
                     sqlite3_value **argv)
{
    (void)plan, (void)text, (void)argc, (void)argv;
    struct cursor *c = (struct cursor *)(void *)cursor;
    c->group = 0;
    c->job = NULL;
    c->end = false;
    return on_next(cursor);
}

static int on_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct cursor *)(void *)cursor)->end;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = ((struct cursor *)(void *)cursor)->rowid;
    return SQLITE_OK;
}

/* Without xCreate: there from the start, under its name. */
#define MODULE(column)                                                                             \
    {                                                                                              \
        .xConnect = on_connect, .xBestIndex = on_plan, .xDisconnect = on_disconnect,               \
        .xOpen = on_open, .xClose = on_close, .xFilter = on_filter, .xNext = on_next,              \
        .xEof = on_eof, .xColumn = (column), .xRowid = on_rowid                                    \
    }
static const struct kind kinds[N_KINDS] = {
    [TASKS] =
        {"batch_tasks",
         "CREATE TABLE x(n,tenant,principal,id,context,agent,state,created_ms,status_ms,last_seq)",
         MODULE(task_column)},
    [LOG] = {"batch_log", "CREATE TABLE x(at,n,bytes)", MODULE(log_column)},
    [TURNS] =
        {"batch_turns",
         "CREATE TABLE x(at,first_seq,last_seq,ended_ms,protocol,caller,request,previous,message,"
         "scope,known_ms,digest)",
         MODULE(turn_column)},
    [FOLDS] = {"batch_folds", "CREATE TABLE x(task,seq,body)", MODULE(fold_column)},
    [CALLS] = {"batch_calls", "CREATE TABLE x(call,tenant,principal,agent,task)",
               MODULE(call_column)},
};

int dgm_sql_rows(dgm_sql_writer *w)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < N_KINDS && !rc; i++)
        rc = sqlite3_create_module(w->conn.db, kinds[i].name, &kinds[i].module, w);
    return rc;
}
