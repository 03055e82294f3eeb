/*
 * store/sqlite/sqlite_write.c - one batch of appends, notes and changes of checkpoints, one commit.
 *
 * Appends to one task in a batch become one group: one change of its row, one log row (more when it
 * grows large; a new one for every turn, so that turns can be trimmed by whole rows). The rows of all
 * groups go to SQLite together, table by table, see sqlite_rows.c; only changes to tasks that are there
 * already are made one by one. A group that takes a message id which may have been taken before waits
 * until the groups before it are written: the older taker, perhaps one of them, has to give it up first.
 *
 * The durability of a commit is set before it starts. In WAL mode synchronous=FULL syncs the WAL at the
 * end of the commit, and with it everything that earlier commits left in the kernel's hands;
 * synchronous=NORMAL writes and does not sync, which survives the death of this process and not that
 * of the machine. A checkpoint syncs the WAL before it touches the database, in both. The setting
 * belongs to the connection and takes effect at the next transaction: so one PRAGMA when it changes,
 * and a batch with a note, a change of checkpoints, or one append that wants a sync, is a FULL commit.
 */
#include "sqlite_int.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

/* ---- groups ---------------------------------------------------------------------------------------- */

static bool same_task(const dgm_task_row *a, const dgm_task_row *b)
{
    return dgm_str_eq(a->id, b->id) && dgm_str_eq(a->owner.principal, b->owner.principal) &&
           dgm_str_eq(a->owner.tenant, b->owner.tenant);
}

/* A job that does not fit behind the one before it is refused here, and in no group. */
static void join(dgm_group *g, dgm_job *job)
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
    size_t n_groups = 0, slots = 64;
    if (w->cap_groups < n) {
        w->cap_groups = n * 2;
        w->groups = dgm_xrealloc(w->groups, w->cap_groups * sizeof *w->groups);
    }
    while (slots < n * 2)
        slots *= 2;
    if (w->cap_slots < slots)
        w->slots = dgm_xrealloc(w->slots, slots * sizeof *w->slots);
    w->cap_slots = slots;
    memset(w->slots, 0, slots * sizeof *w->slots);
    for (dgm_job *job = chain; job; job = job->next) {
        job->group_next = NULL;
        if (job->kind != DGM_JOB_APPEND)
            continue;
        if ((job->code = dgm_append_check(&job->append.batch, &job->err)))
            continue;
        size_t i = job->hash & (slots - 1);
        dgm_group *g = NULL;
        for (; w->slots[i]; i = (i + 1) & (slots - 1)) {
            g = &w->groups[w->slots[i] - 1];
            if (g->hash == job->hash &&
                same_task(&g->first->append.batch.row, &job->append.batch.row))
                break;
        }
        if (w->slots[i]) {
            join(g, job);
            continue;
        }
        w->groups[n_groups++] = (dgm_group){.first = job, .last = job, .hash = job->hash};
        w->slots[i] = (uint32_t)n_groups;
    }
    return n_groups;
}

/* ---- tasks ----------------------------------------------------------------------------------------- */

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
    dgm_bind_str(st, 1, row->owner.tenant);
    dgm_bind_str(st, 2, row->owner.principal);
    dgm_bind_str(st, 3, row->id);
    *ret_found = (struct found){.is_there = sqlite3_step(st) == SQLITE_ROW};
    if (ret_found->is_there) {
        ret_found->n = sqlite3_column_int64(st, 0);
        ret_found->last_seq = (uint64_t)sqlite3_column_int64(st, 1);
        ret_found->state = sqlite3_column_int(st, 2);
        ret_found->status_ms = sqlite3_column_int64(st, 3);
    }
    return sqlite3_reset(st);
}

static int update_task(dgm_sql_writer *w, const dgm_group *g, const struct found *was)
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
    return dgm_sql_done(st);
}

/* Gives a group the number of its task. Jobs that do not begin where the log ends have their answer
 * then; when none is left there is nothing to write, and no number. A group that begins a log is taken
 * for new unless `look`: if it is not, the batch fails, and each of its groups is written for itself. */
static int sqlite_write_place(dgm_sql_writer *w, dgm_group *g, bool look)
{
    struct found was = {0};
    bool begins = dgm_append_first(&g->first->append.batch) == 1;
    int rc = begins && !look ? SQLITE_OK : find_task(w, &g->first->append.batch.row, &was);
    g->n = 0;
    g->is_new = begins && !was.is_there;
    if (!rc && g->is_new && w->last_n < 0) {
        sqlite3_stmt *st = dgm_conn_sql(&w->conn, DGM_SQL_TASK_LAST, &rc);
        if (st && sqlite3_step(st) == SQLITE_ROW)
            w->last_n = sqlite3_column_int64(st, 0);
        rc = st ? sqlite3_reset(st) : rc;
    }
    if (rc)
        return rc;
    if (g->is_new) { /* this is the only writer: one more (SQLite would look for it again per row) */
        g->n = ++w->last_n;
        return SQLITE_OK;
    }
    for (; g->first; g->first = g->first->group_next) {
        dgm_job *job = g->first;
        if (was.is_there && dgm_append_first(&job->append.batch) == was.last_seq + 1) {
            g->n = was.n;
            return update_task(w, g, &was);
        }
        job->code =
            dgm_append_misfit(&job->append.batch, was.is_there ? &was.last_seq : NULL, &job->err);
    }
    return SQLITE_OK;
}

/* ---- message ids ----------------------------------------------------------------------------------- */

/* The turn that had it keeps it within its own context, if it was known without. */
static int release(dgm_sql_writer *w, const dgm_append *b)
{
    int rc = SQLITE_OK;
    const dgm_task_row *row = &b->row;
    bool named = !b->taken->nameless_until_ms, found;
    uint64_t scope = dgm_scope(row->owner, row->agent, named ? row->context_id : (dgm_str){0});
    int64_t at = 0;
    sqlite3_stmt *find = dgm_conn_sql(&w->conn, DGM_SQL_TAKEN_FIND, &rc);
    sqlite3_stmt *change = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_TAKEN_CHANGE, &rc);
    if (!change)
        return rc;
    dgm_bind_str(find, 1, b->taken->message_id);
    sqlite3_bind_int64(find, 2, (int64_t)scope);
    dgm_bind_str(find, 3, row->owner.tenant);
    dgm_bind_str(find, 4, row->owner.principal);
    dgm_bind_str(find, 5, row->agent);
    if ((found = sqlite3_step(find) == SQLITE_ROW)) {
        at = sqlite3_column_int64(find, 0);
        scope = dgm_scope(row->owner, row->agent, dgm_column_str(find, 1));
    }
    if ((rc = sqlite3_reset(find)) || !found)
        return rc;
    sqlite3_bind_int64(change, 1, at);
    dgm_bind_str(change, 2, named ? (dgm_str){0} : b->taken->message_id);
    sqlite3_bind_int64(change, 3, named ? 0 : (int64_t)scope);
    return dgm_sql_done(change);
}

static int release_all(dgm_sql_writer *w, const dgm_group *g)
{
    int rc = SQLITE_OK;
    for (const dgm_job *job = g->first; job && !rc; job = job->group_next) {
        if (job->append.batch.taken)
            rc = release(w, &job->append.batch);
    }
    return rc;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

/* The time of a record that an earlier batch has written. */
static int find_stored_time(dgm_sql_writer *w, const dgm_append *b, int64_t n, uint64_t seq,
                            int64_t *ret_ms)
{
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

/* When turns ended: the times of their last records. After the log is written, since such a record may be in it. */
static int find_ends(dgm_sql_writer *w)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < w->n_part; i++) {
        const dgm_group *g = &w->part[i];
        for (dgm_job *job = g->n ? g->first : NULL; job && !rc; job = job->group_next) {
            const dgm_append *b = &job->append.batch;
            uint64_t seq = b->turn ? b->turn->last_seq : 0, first = dgm_append_first(b);
            if (seq >= first && seq - first < b->n_records)
                job->append.ended_ms = b->records[seq - first]->head.time;
            else if (seq)
                rc = find_stored_time(w, b, g->n, seq, &job->append.ended_ms);
        }
    }
    return rc;
}

static int put_part(dgm_sql_writer *w, const dgm_group *groups, size_t n)
{
    int rc = SQLITE_OK;
    w->part = groups;
    w->n_part = n;
    struct {
        bool tasks, log, turns, folds, calls;
    } wanted = {0}; /* the tables that it has rows for */
    for (size_t i = 0; i < n; i++) {
        const dgm_group *g = &groups[i];
        wanted.tasks |= g->is_new;
        for (const dgm_job *job = g->n ? g->first : NULL; job; job = job->group_next) {
            wanted.log |= job->append.batch.n_records > 0;
            wanted.turns |= job->append.batch.turn != NULL;
            wanted.folds |= job->append.batch.row.folded.p != NULL;
            wanted.calls |= job->append.batch.open_calls.n > 0;
        }
    }
    if (wanted.tasks)
        rc = dgm_conn_run(&w->conn, DGM_SQL_TASKS_INSERT);
    if (!rc && wanted.log)
        rc = dgm_conn_run(&w->conn, DGM_SQL_LOG_INSERT);
    dgm_buf_shrink(&w->row, DGM_LOG_ROW_BYTES);
    if (!rc && wanted.turns)
        rc = find_ends(w);
    if (!rc && wanted.turns)
        rc = dgm_conn_run(&w->conn, DGM_SQL_TURNS_PUT);
    if (!rc && wanted.folds)
        rc = dgm_conn_run(&w->conn, DGM_SQL_FOLDS_PUT);
    if (!rc && wanted.calls)
        rc = dgm_conn_run(&w->conn, DGM_SQL_CALLS_PUT);
    return rc;
}

/* ---- commits --------------------------------------------------------------------------------------- */

int dgm_sql_begin(dgm_sql_writer *w, bool sync)
{
    const char *pragma = sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
    int rc = w->full == sync ? SQLITE_OK : sqlite3_exec(w->conn.db, pragma, NULL, NULL, NULL);
    if (rc)
        return rc;
    w->full = sync;
    return dgm_conn_run(&w->conn, DGM_SQL_BEGIN);
}

/* Commits, or rolls back after a fault. The fault is reported before a rollback clears it. */
dgm_code dgm_sql_end(dgm_sql_writer *w, int rc, dgm_err *err)
{
    dgm_code code = DGM_OK;
    if (!rc)
        rc = dgm_conn_run(&w->conn, DGM_SQL_COMMIT);
    if (rc) {
        code = dgm_conn_fault(&w->conn, rc, false, err);
        w->last_n = w->last_value = -1; /* numbers were given that are free again */
    }
    if (!sqlite3_get_autocommit(w->conn.db))
        dgm_conn_run(&w->conn, DGM_SQL_ROLLBACK);
    return code;
}

/* Changes of checkpoints, in the order of the calls. */
static int change_all(dgm_sql_writer *w, dgm_job *chain)
{
    int rc = SQLITE_OK;
    for (dgm_job *job = chain; job && !rc; job = job->next) {
        if (job->kind == DGM_JOB_CHANGE)
            rc = dgm_sql_change_checkpoints(w, job);
    }
    return rc;
}

/* others: a chain whose notes and changes of checkpoints are in the commit; NULL: none. */
static dgm_code commit(dgm_sql_writer *w, dgm_group *groups, size_t n, dgm_job *others, bool look,
                       dgm_err *err)
{
    bool sync = others != NULL;
    size_t from = 0;
    for (size_t i = 0; i < n && !sync; i++) {
        for (const dgm_job *job = groups[i].first; job; job = job->group_next)
            sync |= job->append.batch.sync;
    }
    int rc = dgm_sql_begin(w, sync);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = sqlite_write_place(w, &groups[i], look);
        /* May somebody have taken a message id of this group's? From now on somebody has. */
        bool known = false;
        const dgm_job *job = !rc && groups[i].n ? groups[i].first : NULL;
        for (; job; job = job->group_next) {
            const dgm_append *b = &job->append.batch;
            if (!b->taken)
                continue;
            dgm_str context = b->taken->nameless_until_ms ? (dgm_str){0} : b->row.context_id;
            uint64_t scope = dgm_scope(b->row.owner, b->row.agent, context);
            known |= dgm_known_may_have(w->known, b->taken->message_id, scope);
            dgm_known_add(w->known, b->taken->message_id, scope);
        }
        if (!known)
            continue;
        rc = put_part(w, groups + from, i - from);
        from = i;
        if (!rc)
            rc = release_all(w, &groups[i]);
    }
    if (!rc)
        rc = put_part(w, groups + from, n - from);
    if (!rc && others)
        rc = dgm_sql_put_notes(w, others);
    if (!rc && others)
        rc = change_all(w, others);
    return dgm_sql_end(w, rc, err);
}

static void fail_group(dgm_group *g, dgm_code code, const dgm_err *err)
{
    for (dgm_job *job = g->first; job; job = job->group_next) {
        job->code = code;
        job->err = *err;
    }
}

static bool has_kind(const dgm_job *chain, dgm_job_kind kind)
{
    while (chain && chain->kind != kind)
        chain = chain->next;
    return chain;
}

static void change_one_by_one(dgm_sql_writer *w, dgm_job *chain)
{
    for (dgm_job *job = chain; job; job = job->next) {
        if (job->kind != DGM_JOB_CHANGE)
            continue;
        int rc = dgm_sql_begin(w, true);
        if (!rc)
            rc = dgm_sql_change_checkpoints(w, job);
        dgm_err err = {0};
        dgm_code code = dgm_sql_end(w, rc, &err);
        if (code) {
            job->code = code;
            job->err = err;
        }
    }
}

/* The disk fails all alike. Something odd in one append must not fail the others: each for itself. */
static void write_one_by_one(dgm_sql_writer *w, dgm_job *chain, size_t n_groups, dgm_code code,
                             const dgm_err *err)
{
    for (size_t i = 0; i < n_groups; i++) {
        dgm_err why = *err;
        dgm_code one = code;
        if (code == DGM_INTERNAL && w->groups[i].first)
            one = commit(w, &w->groups[i], 1, NULL, true, &why);
        if (one)
            fail_group(&w->groups[i], one, &why);
    }
    dgm_err why = *err;
    if (code == DGM_INTERNAL && has_kind(chain, DGM_JOB_PUT_NOTE))
        dgm_sql_writer_notes(w, chain, &why);
    if (code == DGM_INTERNAL)
        change_one_by_one(w, chain);
    for (dgm_job *job = chain; job && code != DGM_INTERNAL; job = job->next) {
        if (job->kind == DGM_JOB_APPEND)
            continue;
        job->code = code;
        job->err = *err;
    }
}

dgm_code dgm_sql_writer_write(dgm_sql_writer *w, dgm_job *chain, size_t n, dgm_err *err)
{
    size_t n_groups = make_groups(w, chain, n);
    bool has_others = has_kind(chain, DGM_JOB_PUT_NOTE) || has_kind(chain, DGM_JOB_CHANGE);
    dgm_job *others = has_others ? chain : NULL;
    dgm_code code =
        n_groups || others ? commit(w, w->groups, n_groups, others, false, err) : DGM_OK;
    if (code)
        write_one_by_one(w, chain, n_groups, code, err);
    return code == DGM_INTERNAL ? DGM_OK : code;
}

dgm_code dgm_sql_writer_probe(dgm_sql_writer *w, dgm_err *err)
{
    /* of a size that a disk with a few blocks left does not take; emptied again at once */
    static const int sizes[] = {64 << 10, 0};
    dgm_code code = DGM_OK;
    for (int i = 0; i < 2 && !code; i++) {
        int rc = dgm_sql_begin(w, true);
        sqlite3_stmt *st = rc ? NULL : dgm_conn_sql(&w->conn, DGM_SQL_PROBE, &rc);
        if (st) {
            sqlite3_bind_int(st, 1, sizes[i]);
            rc = dgm_sql_done(st);
        }
        code = dgm_sql_end(w, rc, err);
    }
    return code;
}

dgm_code dgm_sql_writer_checkpoint(dgm_sql_writer *w, dgm_err *err)
{
    w->wal_pages = 0; /* the next commit says how much is left */
    int rc = sqlite3_wal_checkpoint_v2(w->conn.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc && rc != SQLITE_BUSY ? dgm_conn_fault(&w->conn, rc, false, err) : DGM_OK;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((dgm_sql_writer *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

dgm_code dgm_sql_writer_open(const char *path, dgm_known *known, dgm_sql_writer *ret_writer,
                             dgm_err *err)
{
    dgm_sql_writer *w = ret_writer;
    *w = (dgm_sql_writer){
        .full = true, /* as SQLite has it */ .last_n = -1, .last_value = -1, .known = known};
    dgm_code code = dgm_conn_open(path, DGM_CONN_WRITE, &w->conn, err);
    if (code)
        return code;
    dgm_buf_init(&w->row, (size_t)1 << 30);
    sqlite3_wal_hook(w->conn.db, on_wal, w);
    int rc = dgm_sql_rows(w);
    return rc ? dgm_conn_fault(&w->conn, rc, false, err) : DGM_OK;
}

void dgm_sql_writer_close(dgm_sql_writer *w)
{
    dgm_conn_close(&w->conn);
    dgm_buf_done(&w->row);
    EVP_MD_CTX_free(w->sha256);
    free(w->groups);
    free(w->slots);
    *w = (dgm_sql_writer){0};
}
