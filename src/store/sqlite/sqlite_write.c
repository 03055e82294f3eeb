/*
 * store/sqlite/sqlite_write.c - one batch of appends, one commit; trimming.
 *
 * Appends to one task in a batch become one group: one change of its row, one log row (more when it
 * grows large; a new one for every turn, so that turns can be trimmed by whole rows).
 *
 * How durable a commit is, is said before it begins. In WAL mode synchronous=FULL syncs the WAL at the
 * end of the commit, and with it everything that earlier commits left in the kernel's hands;
 * synchronous=NORMAL writes and does not sync, which survives the death of this process and not that
 * of the machine. A checkpoint syncs the WAL before it touches the database, in both. The setting
 * belongs to the connection and takes effect at the next transaction: so one PRAGMA when it changes,
 * and a batch with one append that wants a sync is a FULL commit.
 */
#include "sqlite_int.h"

#include <assert.h>
#include <stdlib.h>

/* What one step of a trim removes: short enough that appends do not wait for it. */
#define TRIM_TURNS 200
#define TRIM_DEDUPE 2000

#define REFUSED (-1) /* of a group: no fault of the database's */

struct dgm_group {
    dgm_job *first, *last; /* by group_next */
    uint64_t hash;
};

/* ---- groups ---------------------------------------------------------------------------------------- */

static bool same_task(const dgm_task_row *a, const dgm_task_row *b)
{
    return dgm_str_eq(a->id, b->id) && dgm_str_eq(a->owner.principal, b->owner.principal) &&
           dgm_str_eq(a->owner.tenant, b->owner.tenant);
}

static void make_room(dgm_sql_writer *w, size_t n)
{
    if (w->cap_groups < n) {
        w->cap_groups = n * 2;
        w->groups = dgm_xrealloc(w->groups, w->cap_groups * sizeof *w->groups);
    }
    size_t slots = 64;
    while (slots < n * 2)
        slots *= 2;
    if (w->cap_slots < slots)
        w->slots = dgm_xrealloc(w->slots, slots * sizeof *w->slots);
    w->cap_slots = slots;
    memset(w->slots, 0, slots * sizeof *w->slots);
}

/* A job that does not fit behind the one before it is refused here, and in no group. */
static void join(struct dgm_group *g, dgm_job *job)
{
    uint64_t last = g->last->append.batch.row.last_seq;
    if (dgm_append_first(&job->append.batch) != last + 1) {
        job->code = dgm_append_misfit(&job->append.batch, &last, &job->err);
        return;
    }
    g->last->group_next = job;
    g->last = job;
}

static size_t make_groups(dgm_sql_writer *w, dgm_job *chain, size_t n)
{
    size_t n_groups = 0, mask;
    make_room(w, n);
    mask = w->cap_slots - 1;
    for (dgm_job *job = chain; job; job = job->next) {
        job->group_next = NULL;
        if ((job->code = dgm_append_check(&job->append.batch, &job->err)))
            continue;
        size_t i = job->hash & mask;
        struct dgm_group *g = NULL;
        for (; w->slots[i]; i = (i + 1) & mask) {
            g = &w->groups[w->slots[i] - 1];
            if (g->hash == job->hash &&
                same_task(&g->first->append.batch.row, &job->append.batch.row))
                break;
        }
        if (w->slots[i]) {
            join(g, job);
            continue;
        }
        w->groups[n_groups++] = (struct dgm_group){.first = job, .last = job, .hash = job->hash};
        w->slots[i] = (uint32_t)n_groups;
    }
    return n_groups;
}

/* ---- the rows of a group --------------------------------------------------------------------------- */

static int done(sqlite3_stmt *st) /* of a statement without rows */
{
    sqlite3_step(st);
    return sqlite3_reset(st);
}

/* Runs a statement that returns one number, or no row. */
static int number(sqlite3_stmt *st, bool *ret_found, int64_t *ret)
{
    *ret_found = sqlite3_step(st) == SQLITE_ROW;
    if (*ret_found)
        *ret = sqlite3_column_int64(st, 0);
    return sqlite3_reset(st);
}

static void bind_key(sqlite3_stmt *st, const dgm_task_row *row)
{
    dgm_bind_str(st, 1, row->owner.tenant);
    dgm_bind_str(st, 2, row->owner.principal);
    dgm_bind_str(st, 3, row->id);
}

/* Makes the row of a group that begins a log; false: there is one. (No RETURNING: SQLite opens a
 * temporary table for it, which costs more than all the rest.) */
static int insert_task(dgm_sql_writer *w, const struct dgm_group *g, bool *ret_made, int64_t *ret_n)
{
    int rc = SQLITE_OK;
    const dgm_task_row *made = &g->first->append.batch.row, *row = &g->last->append.batch.row;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TASK_INSERT, &rc);
    if (!st)
        return rc;
    bind_key(st, made);
    dgm_bind_str(st, 4, made->context_id);
    dgm_bind_str(st, 5, made->agent);
    sqlite3_bind_int(st, 6, (int)row->state);
    sqlite3_bind_int64(st, 7, made->created_ms);
    sqlite3_bind_int64(st, 8, row->status_ms);
    sqlite3_bind_int64(st, 9, (int64_t)row->last_seq);
    rc = done(st);
    *ret_made = !rc && sqlite3_changes(w->conn.db) == 1;
    *ret_n = sqlite3_last_insert_rowid(w->conn.db);
    return rc;
}

struct found {
    bool is_there;
    int64_t n, status_ms;
    uint64_t last_seq;
    int state;
};

static int find_task(dgm_sql_writer *w, const dgm_task_row *row, struct found *ret_found)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TASK_FIND, &rc);
    if (!st)
        return rc;
    bind_key(st, row);
    *ret_found = (struct found){.is_there = sqlite3_step(st) == SQLITE_ROW};
    if (ret_found->is_there) {
        ret_found->n = sqlite3_column_int64(st, 0);
        ret_found->last_seq = (uint64_t)sqlite3_column_int64(st, 1);
        ret_found->state = sqlite3_column_int(st, 2);
        ret_found->status_ms = sqlite3_column_int64(st, 3);
    }
    return sqlite3_reset(st);
}

static int update_task(dgm_sql_writer *w, const struct dgm_group *g, const struct found *was)
{
    int rc = SQLITE_OK;
    const dgm_task_row *row = &g->last->append.batch.row;
    bool same = was->state == (int)row->state && was->status_ms == row->status_ms;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, same ? DGM_SQL_TASK_GROW : DGM_SQL_TASK_UPDATE, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, was->n);
    sqlite3_bind_int64(st, 2, (int64_t)row->last_seq);
    if (!same) {
        sqlite3_bind_int(st, 3, (int)row->state);
        sqlite3_bind_int64(st, 4, row->status_ms);
    }
    return done(st);
}

/* The task's number; REFUSED when no job of the group is left: those that do not begin where the log
 * ends have their answer. */
static int put_task(dgm_sql_writer *w, struct dgm_group *g, int64_t *ret_n)
{
    int rc;
    bool made = false;
    struct found was;
    if (dgm_append_first(&g->first->append.batch) == 1 &&
        ((rc = insert_task(w, g, &made, ret_n)) || made))
        return rc;
    if ((rc = find_task(w, &g->first->append.batch.row, &was)))
        return rc;
    *ret_n = was.n;
    for (; g->first; g->first = g->first->group_next) {
        dgm_job *job = g->first;
        if (was.is_there && dgm_append_first(&job->append.batch) == was.last_seq + 1)
            return update_task(w, g, &was);
        job->code =
            dgm_append_misfit(&job->append.batch, was.is_there ? &was.last_seq : NULL, &job->err);
    }
    return REFUSED;
}

static int put_log_row(dgm_sql_writer *w, int64_t n, uint64_t first_seq, size_t count)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_LOG_INSERT, &rc);
    if (!st)
        return rc;
    dgm_frame_end(&w->row);
    sqlite3_bind_int64(st, 1, dgm_key(n, first_seq));
    sqlite3_bind_int64(st, 2, (int64_t)count);
    sqlite3_bind_blob64(st, 3, w->row.p, w->row.n, SQLITE_STATIC);
    return done(st);
}

static int put_log(dgm_sql_writer *w, const struct dgm_group *g, int64_t n)
{
    uint64_t first = 0;
    uint32_t turn = 0;
    size_t count = 0;
    int rc = SQLITE_OK;
    for (const dgm_job *job = g->first; job && !rc; job = job->group_next) {
        const dgm_append *b = &job->append.batch;
        for (size_t i = 0; i < b->n_records && !rc; i++) {
            const dgm_record *r = b->records[i];
            if (count && (r->head.turn != turn || w->row.n + r->n > DGM_LOG_ROW_BYTES)) {
                rc = put_log_row(w, n, first, count);
                count = 0;
            }
            if (count++ == 0) {
                dgm_frame_begin(&w->row);
                first = r->head.seq;
                turn = r->head.turn;
            }
            dgm_frame_add(&w->row, r);
        }
    }
    if (!rc && count)
        rc = put_log_row(w, n, first, count);
    dgm_buf_shrink(&w->row, DGM_LOG_ROW_BYTES);
    return rc;
}

/* When a turn ended: the time of its last record. */
static int time_of(dgm_sql_writer *w, const dgm_append *b, int64_t n, uint64_t seq, int64_t *ret_ms)
{
    uint64_t first = dgm_append_first(b);
    if (seq >= first && seq - first < b->n_records) {
        *ret_ms = b->records[seq - first]->head.time;
        return SQLITE_OK;
    }
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_LOG_FROM, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(n, 0));
    sqlite3_bind_int64(st, 2, dgm_key(n, seq));
    sqlite3_bind_int64(st, 3, dgm_key(n, UINT32_MAX));
    *ret_ms = b->row.status_ms;
    dgm_frame f;
    if (sqlite3_step(st) == SQLITE_ROW &&
        dgm_frame_open(dgm_column_str(st, 2), (uint64_t)sqlite3_column_int64(st, 0) & UINT32_MAX,
                       &f)) {
        while (dgm_frame_next(&f)) {
            if (f.head.seq == seq)
                *ret_ms = f.head.time;
        }
    }
    return sqlite3_reset(st);
}

static int put_turn(dgm_sql_writer *w, const dgm_append *b, int64_t n)
{
    int rc = SQLITE_OK;
    int64_t ended_ms = 0;
    const dgm_turn_row *t = b->turn;
    if (t->last_seq && (rc = time_of(w, b, n, t->last_seq, &ended_ms)))
        return rc;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TURN_PUT, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(n, t->turn));
    sqlite3_bind_int64(st, 2, (int64_t)t->first_seq);
    sqlite3_bind_int64(st, 3, (int64_t)t->last_seq);
    sqlite3_bind_int64(st, 4, ended_ms);
    dgm_bind_str(st, 5, t->protocol);
    dgm_bind_str(st, 6, t->caller_id);
    dgm_bind_str(st, 7, t->request);
    dgm_bind_str(st, 8, t->previous);
    return done(st);
}

static int put_dedupe(dgm_sql_writer *w, const dgm_dedupe_row *d)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_DEDUPE_PUT, &rc);
    if (!st)
        return rc;
    dgm_bind_str(st, 1, d->owner.tenant);
    dgm_bind_str(st, 2, d->owner.principal);
    dgm_bind_str(st, 3, d->agent);
    dgm_bind_str(st, 4, d->context_id);
    dgm_bind_str(st, 5, d->message_id);
    sqlite3_bind_blob(st, 6, d->digest, sizeof d->digest, SQLITE_STATIC);
    dgm_bind_str(st, 7, d->task_id);
    sqlite3_bind_int64(st, 8, d->turn);
    sqlite3_bind_int64(st, 9, d->expires_ms);
    return done(st);
}

static int put_fold(dgm_sql_writer *w, const dgm_task_row *row, int64_t n)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_FOLD_PUT, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, n);
    sqlite3_bind_int64(st, 2, (int64_t)row->folded_seq);
    sqlite3_bind_blob64(st, 3, row->folded.p, row->folded.n, SQLITE_STATIC);
    return done(st);
}

static int put_group(dgm_sql_writer *w, struct dgm_group *g)
{
    int64_t n = 0;
    const dgm_task_row *folded = NULL;
    int rc = put_task(w, g, &n);
    if (rc)
        return rc == REFUSED ? SQLITE_OK : rc;
    rc = put_log(w, g, n);
    for (const dgm_job *job = g->first; job && !rc; job = job->group_next) {
        const dgm_append *b = &job->append.batch;
        if (b->turn)
            rc = put_turn(w, b, n);
        for (size_t i = 0; i < b->n_dedupe && !rc; i++)
            rc = put_dedupe(w, &b->dedupe[i]);
        if (b->row.folded.p)
            folded = &b->row;
    }
    if (!rc && folded)
        rc = put_fold(w, folded, n);
    return rc;
}

/* ---- commits --------------------------------------------------------------------------------------- */

static int set_sync(dgm_sql_writer *w, bool full)
{
    if (w->full == full)
        return SQLITE_OK;
    int rc =
        sqlite3_exec(w->conn.db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                     NULL, NULL, NULL);
    if (!rc)
        w->full = full;
    return rc;
}

static int begin(dgm_sql_writer *w, bool sync)
{
    int rc = set_sync(w, sync);
    return rc ? rc : dgm_conn_run(&w->conn, DGM_SQL_BEGIN);
}

/* Commits what went well, takes back what did not. The fault is told before a rollback forgets it. */
static dgm_code end(dgm_sql_writer *w, int rc, dgm_err *err)
{
    dgm_code code = DGM_OK;
    if (!rc)
        rc = dgm_conn_run(&w->conn, DGM_SQL_COMMIT);
    if (rc)
        code = dgm_conn_fault(&w->conn, rc, false, err);
    if (!sqlite3_get_autocommit(w->conn.db))
        dgm_conn_run(&w->conn, DGM_SQL_ROLLBACK);
    return code;
}

static bool wants_sync(const struct dgm_group *g)
{
    for (const dgm_job *job = g->first; job; job = job->group_next) {
        if (job->append.batch.sync)
            return true;
    }
    return false;
}

static dgm_code commit(dgm_sql_writer *w, struct dgm_group *groups, size_t n, dgm_err *err)
{
    bool sync = false;
    for (size_t i = 0; i < n; i++)
        sync |= wants_sync(&groups[i]);
    int rc = begin(w, sync);
    for (size_t i = 0; i < n && !rc; i++)
        rc = put_group(w, &groups[i]);
    return end(w, rc, err);
}

static void fail_group(struct dgm_group *g, dgm_code code, const dgm_err *err)
{
    for (dgm_job *job = g->first; job; job = job->group_next) {
        job->code = code;
        job->err = *err;
    }
}

dgm_code dgm_sql_writer_append(dgm_sql_writer *w, dgm_job *chain, size_t n, dgm_err *err)
{
    size_t n_groups = make_groups(w, chain, n);
    dgm_code code = n_groups ? commit(w, w->groups, n_groups, err) : DGM_OK;
    if (!code)
        return DGM_OK;
    /* The disk fails all alike. Something odd in one append must not fail the others: each for itself. */
    for (size_t i = 0; i < n_groups; i++) {
        dgm_err why = *err;
        dgm_code one = code;
        if (code == DGM_INTERNAL && n_groups > 1)
            one = commit(w, &w->groups[i], 1, &why);
        if (one)
            fail_group(&w->groups[i], one, &why);
    }
    return code == DGM_INTERNAL ? DGM_OK : code;
}

dgm_code dgm_sql_writer_probe(dgm_sql_writer *w, dgm_err *err)
{
    /* of a size that a disk with a few blocks left does not take; emptied again at once */
    static const int sizes[] = {64 << 10, 0};
    dgm_code code = DGM_OK;
    for (int i = 0; i < 2 && !code; i++) {
        int rc = begin(w, true);
        sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_PROBE, &rc);
        if (st) {
            sqlite3_bind_int(st, 1, sizes[i]);
            rc = done(st);
        }
        code = end(w, rc, err);
    }
    return code;
}

dgm_code dgm_sql_writer_checkpoint(dgm_sql_writer *w, dgm_err *err)
{
    w->wal_pages = 0; /* the next commit says how much is left */
    int rc = sqlite3_wal_checkpoint_v2(w->conn.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc && rc != SQLITE_BUSY ? dgm_conn_fault(&w->conn, rc, false, err) : DGM_OK;
}

/* ---- trimming -------------------------------------------------------------------------------------- */

static int trim_turn(dgm_sql_writer *w, int64_t at, int64_t last_seq)
{
    int rc = SQLITE_OK;
    bool found;
    int64_t may = 0, task = at >> 32;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_MAY, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(task, 0));
    sqlite3_bind_int64(st, 2, at);
    sqlite3_bind_int64(st, 3, task);
    sqlite3_bind_int64(st, 4, last_seq);
    if ((rc = number(st, &found, &may)) || !may)
        return rc;
    if (!(st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_LOG, &rc)))
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(task, 0));
    sqlite3_bind_int64(st, 2, dgm_key(task, (uint64_t)last_seq));
    if ((rc = done(st)) || !(st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_TURN, &rc)))
        return rc;
    sqlite3_bind_int64(st, 1, dgm_key(task, 0));
    sqlite3_bind_int64(st, 2, at);
    sqlite3_bind_int64(st, 3, dgm_key(task, UINT32_MAX));
    if ((rc = done(st)) || !(st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_LAST, &rc)))
        return rc;
    sqlite3_bind_int64(st, 1, at);
    return done(st);
}

static int trim_turns(dgm_sql_writer *w, dgm_job *job, bool *ret_more)
{
    struct {
        int64_t ended_ms, at, last_seq;
    } found[TRIM_TURNS];
    size_t n = 0;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TRIM_FIND, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, job->trim.older_than_ms);
    sqlite3_bind_int64(st, 2, job->trim.from_ms);
    sqlite3_bind_int64(st, 3, job->trim.from_at);
    sqlite3_bind_int(st, 4, TRIM_TURNS);
    while (n < TRIM_TURNS && sqlite3_step(st) == SQLITE_ROW) {
        found[n].ended_ms = sqlite3_column_int64(st, 0);
        found[n].at = sqlite3_column_int64(st, 1);
        found[n++].last_seq = sqlite3_column_int64(st, 2);
    }
    rc = sqlite3_reset(st);
    for (size_t i = 0; i < n && !rc; i++)
        rc = trim_turn(w, found[i].at, found[i].last_seq);
    if (n) {
        job->trim.from_ms = found[n - 1].ended_ms;
        job->trim.from_at = found[n - 1].at;
    }
    *ret_more = n == TRIM_TURNS;
    return rc;
}

static int expire_dedupe(dgm_sql_writer *w, bool *ret_more)
{
    int rc = SQLITE_OK;
    int64_t upto = dgm_loop_unix_ms();
    sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_EXPIRE_FIND, &rc);
    if (!st)
        return rc;
    sqlite3_bind_int64(st, 1, upto);
    sqlite3_bind_int(st, 2, TRIM_DEDUPE);
    if ((rc = number(st, ret_more, &upto)) || !(st = dgm_conn_sql(&w->conn, DGM_SQL_EXPIRE, &rc)))
        return rc;
    sqlite3_bind_int64(st, 1, upto);
    return done(st);
}

bool dgm_sql_writer_trim(dgm_sql_writer *w, dgm_job *job)
{
    bool more_turns = false, more_dedupe = false;
    int rc = begin(w, false);
    if (!rc)
        rc = trim_turns(w, job, &more_turns);
    if (!rc)
        rc = expire_dedupe(w, &more_dedupe);
    job->code = end(w, rc, &job->err);
    return !job->code && (more_turns || more_dedupe);
}

/* ---- life ------------------------------------------------------------------------------------------ */

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((dgm_sql_writer *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

dgm_code dgm_sql_writer_open(const char *path, dgm_sql_writer *ret_writer, dgm_err *err)
{
    dgm_sql_writer *w = ret_writer;
    *w = (dgm_sql_writer){.full = true}; /* as SQLite has it */
    dgm_code code = dgm_conn_open(path, DGM_CONN_WRITE, &w->conn, err);
    if (code)
        return code;
    dgm_buf_init(&w->row, (size_t)1 << 30);
    sqlite3_wal_hook(w->conn.db, on_wal, w);
    return DGM_OK;
}

void dgm_sql_writer_close(dgm_sql_writer *w)
{
    dgm_conn_close(&w->conn);
    dgm_buf_done(&w->row);
    free(w->groups);
    free(w->slots);
    *w = (dgm_sql_writer){0};
}
