/* store/sqlite/admin.c - `dragoman db check|backup|restore|vacuum|export`. */
#include "admin.h"
#include "model/kinds.h"
#include "model/stamp.h"
#include "sqlite_int.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening --------------------------------------------------------------------------------------- */

/* One that is there, ours, and of this version. */
static dgm_code open_existing(const char *path, dgm_conn *ret_conn, dgm_err *err)
{
    int version = 0;
    dgm_conn c;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "database not found: %.200s", path);
    dgm_code code = dgm_conn_open(path, DGM_CONN_READ, &c, err);
    if (code)
        return code;
    code = dgm_conn_identify(&c, &version, err);
    if (!code && version < DGM_SCHEMA_VERSION)
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%.160s has tables of version %d, this dragoman needs %d: start `dragoman "
                        "serve` with it once",
                        path, version, DGM_SCHEMA_VERSION);
    if (code)
        dgm_conn_close(&c);
    else
        *ret_conn = c;
    return code;
}

/* A statement of ours that stops at the first error. */
static sqlite3_stmt *query(dgm_conn *c, const char *sql, dgm_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);
    if (rc)
        dgm_conn_fault(c, rc, true, err);
    return st;
}

static dgm_code admin_finish(dgm_conn *c, sqlite3_stmt *st, dgm_err *err)
{
    int rc = sqlite3_finalize(st);
    return rc ? dgm_conn_fault(c, rc, true, err) : DGM_OK;
}

static dgm_code admin_run(dgm_conn *c, const char *sql, dgm_err *err)
{
    errno = 0;
    int rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);
    return rc ? dgm_conn_fault(c, rc, false, err) : DGM_OK;
}

/* ---- check ----------------------------------------------------------------------------------------- */

struct check {
    dgm_conn conn;
    dgm_db_say say;
    void *arg;
    dgm_db_counts counts;
    dgm_arena *arena;
};

static void DGM_PRINTF(2, 3) say(struct check *k, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    k->counts.faults++;
    k->say(text, k->arg);
}

static dgm_code check_pages(struct check *k, dgm_err *err)
{
    sqlite3_stmt *st = query(&k->conn, "PRAGMA integrity_check(100)", err);
    if (!st)
        return err->code;
    while (sqlite3_step(st) == SQLITE_ROW) {
        dgm_str text = dgm_column_str(st, 0);
        if (!dgm_str_is(text, "ok"))
            say(k, "SQLite: %.*s", (int)(text.n < 300 ? text.n : 300), text.p);
    }
    return admin_finish(&k->conn, st, err);
}

struct task {
    int64_t n, last_seq, folded_seq;
    dgm_str id; /* of the statement's row */
    bool has_folded;
};

static void check_record(struct check *k, const struct task *t, const dgm_frame *f)
{
    dgm_err why = {0};
    dgm_record *r = NULL;
    dgm_event event;
    if (dgm_record_from_bytes(f->head, f->bytes, &r, &why) ||
        dgm_record_event(r, k->arena, &event, &why))
        say(k, "task %.*s: record %llu: %s", DGM_P(t->id), (unsigned long long)f->head.seq,
            why.msg);
    dgm_record_unref(r);
    dgm_arena_reset(k->arena);
    k->counts.records++;
}

/* Rows in order, each beginning where the one before ended, the last at last_seq. */
static dgm_code check_log(struct check *k, const struct task *t, sqlite3_stmt *rows,
                          int64_t *ret_first, dgm_err *err)
{
    int64_t next = 0;
    *ret_first = 0;
    sqlite3_bind_int64(rows, 1, dgm_key(t->n, 0));
    sqlite3_bind_int64(rows, 2, dgm_key(t->n, UINT32_MAX));
    while (sqlite3_step(rows) == SQLITE_ROW) {
        dgm_frame f;
        int64_t first = sqlite3_column_int64(rows, 0) & UINT32_MAX,
                n = sqlite3_column_int64(rows, 1), count = 0;
        if (next == 0)
            *ret_first = first;
        else if (first != next)
            say(k, "task %.*s: after record %lld comes %lld", DGM_P(t->id), (long long)next - 1,
                (long long)first);
        next = first + n;
        if (!dgm_frame_open(dgm_column_str(rows, 2), (uint64_t)first, &f)) {
            say(k, "task %.*s: the row of records %lld to %lld is damaged", DGM_P(t->id),
                (long long)first, (long long)next - 1);
            continue;
        }
        for (; dgm_frame_next(&f); count++)
            check_record(k, t, &f);
        if (count != n || f.at != f.end)
            say(k, "task %.*s: the row of record %lld holds %lld records, not %lld", DGM_P(t->id),
                (long long)first, (long long)count, (long long)n);
    }
    int rc = sqlite3_reset(rows);
    if (rc)
        return dgm_conn_fault(&k->conn, rc, true, err);
    if (next == 0 && t->last_seq > t->folded_seq)
        say(k, "task %.*s: its log is empty, it should end at %lld", DGM_P(t->id),
            (long long)t->last_seq);
    else if (next && next - 1 != t->last_seq)
        say(k, "task %.*s: its log ends at %lld, its row says %lld", DGM_P(t->id),
            (long long)next - 1, (long long)t->last_seq);
    if (*ret_first > t->folded_seq + 1)
        say(k, "task %.*s: its log starts at %lld, its folded Task ends at %lld", DGM_P(t->id),
            (long long)*ret_first, (long long)t->folded_seq);
    return DGM_OK;
}

static dgm_code check_turns(struct check *k, const struct task *t, sqlite3_stmt *rows,
                            int64_t first_kept, dgm_err *err)
{
    int64_t before = 0;
    sqlite3_bind_int64(rows, 1, dgm_key(t->n, 0));
    sqlite3_bind_int64(rows, 2, dgm_key(t->n, UINT32_MAX));
    while (sqlite3_step(rows) == SQLITE_ROW) {
        int64_t turn = sqlite3_column_int64(rows, 0) & UINT32_MAX,
                first = sqlite3_column_int64(rows, 1), last = sqlite3_column_int64(rows, 2);
        bool trimmed = last && first > last; /* all that counts is its number and its message id */
        if (sqlite3_column_bytes(rows, 3) && sqlite3_column_bytes(rows, 4) != 32)
            say(k, "task %.*s: turn %lld: the digest of its message has %d bytes", DGM_P(t->id),
                (long long)turn, sqlite3_column_bytes(rows, 4));
        k->counts.turns++;
        if (trimmed && !before)
            continue;
        if (first <= before || first > t->last_seq + 1 || last > t->last_seq ||
            (last && last + 1 < first) || (first_kept && first < first_kept))
            say(k, "task %.*s: turn %lld is of records %lld to %lld, the log of %lld to %lld",
                DGM_P(t->id), (long long)turn, (long long)first, (long long)last,
                (long long)first_kept, (long long)t->last_seq);
        before = last ? last : first;
    }
    int rc = sqlite3_reset(rows);
    return rc ? dgm_conn_fault(&k->conn, rc, true, err) : DGM_OK;
}

static void check_folded(struct check *k, const struct task *t, dgm_str body)
{
    yyjson_val *root;
    dgm_err why = {0};
    if (t->folded_seq > t->last_seq)
        say(k, "task %.*s: its folded Task is of record %lld, its log ends at %lld", DGM_P(t->id),
            (long long)t->folded_seq, (long long)t->last_seq);
    if (dgm_json_read(k->arena, body, SIZE_MAX, "output_bytes", &root, &why))
        say(k, "task %.*s: its folded Task cannot be read: %s", DGM_P(t->id), why.msg);
    dgm_arena_reset(k->arena);
}

static dgm_code check_tasks(struct check *k, dgm_err *err)
{
    dgm_code code = DGM_OK;
    sqlite3_stmt *tasks = query(&k->conn,
                                "SELECT t.n,t.id,t.state,t.last_seq,f.seq,f.body FROM tasks t"
                                " LEFT JOIN folds f ON f.task=t.n ORDER BY t.n",
                                err);
    sqlite3_stmt *log = !tasks ? NULL
                               : query(&k->conn,
                                       "SELECT at,n,bytes FROM log WHERE at BETWEEN ?1 AND ?2"
                                       " ORDER BY at",
                                       err);
    sqlite3_stmt *turns = !log ? NULL
                               : query(&k->conn,
                                       "SELECT at,first_seq,last_seq,message,digest FROM turns"
                                       " WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
                                       err);
    if (!turns)
        code = err->code;
    while (!code && sqlite3_step(tasks) == SQLITE_ROW) {
        int64_t first;
        struct task t = {.n = sqlite3_column_int64(tasks, 0),
                         .id = dgm_column_str(tasks, 1),
                         .last_seq = sqlite3_column_int64(tasks, 3),
                         .folded_seq = sqlite3_column_int64(tasks, 4)};
        k->counts.tasks++;
        if ((unsigned)sqlite3_column_int(tasks, 2) >= DGM_N_STATES)
            say(k, "task %.*s: unknown state %d", DGM_P(t.id), sqlite3_column_int(tasks, 2));
        code = check_log(k, &t, log, &first, err);
        if (!code)
            code = check_turns(k, &t, turns, first, err);
        if (!code && sqlite3_column_type(tasks, 5) != SQLITE_NULL)
            check_folded(k, &t, dgm_column_str(tasks, 5));
    }
    sqlite3_finalize(log);
    sqlite3_finalize(turns);
    dgm_code ended = admin_finish(&k->conn, tasks, code ? NULL : err);
    return code ? code : ended;
}

/* Rows of tasks that are not there, values that are not what their rows say. */
static dgm_code check_orphans(struct check *k, dgm_err *err)
{
    static const struct {
        const char *what, *sql;
    } kinds[] = {
        {"log rows belong to no task",
         "SELECT count(*) FROM log WHERE at>>32 NOT IN(SELECT n FROM tasks)"},
        {"turns belong to no task",
         "SELECT count(*) FROM turns WHERE at>>32 NOT IN(SELECT n FROM tasks)"},
        {"calls belong to no task",
         "SELECT count(*) FROM calls WHERE task NOT IN(SELECT n FROM tasks)"},
        {"folded Tasks belong to no task",
         "SELECT count(*) FROM folds WHERE task NOT IN(SELECT n FROM tasks)"},
        {"checkpoints belong to no thread",
         "SELECT count(*) FROM checkpoints WHERE thread NOT IN(SELECT n FROM threads)"},
        {"writes belong to no checkpoint",
         "SELECT count(*) FROM checkpoint_writes WHERE checkpoint NOT IN"
         "(SELECT n FROM checkpoints)"},
        {"parts of values belong to no checkpoint",
         "SELECT count(*) FROM checkpoint_values WHERE at>>8 NOT IN(SELECT number FROM checkpoints"
         " UNION ALL SELECT meta_number FROM checkpoints UNION ALL SELECT number FROM"
         " checkpoint_writes)"},
        {"values of checkpoints are not complete",
         "SELECT count(*) FROM (SELECT number,size,length(body) AS here FROM checkpoints UNION ALL"
         " SELECT meta_number,meta_size,length(meta_body) FROM checkpoints UNION ALL"
         " SELECT number,size,length(body) FROM checkpoint_writes) v WHERE v.size<>"
         "iif(v.number=0,v.here,(SELECT coalesce(sum(length(bytes)),0) FROM checkpoint_values"
         " WHERE at BETWEEN v.number<<8 AND (v.number<<8)|255))"},
        {"checkpoints do not have all their writes",
         "SELECT count(*) FROM checkpoints c WHERE (writes,writes_bytes)<>(SELECT count(*),"
         "coalesce(sum(size),0) FROM checkpoint_writes WHERE checkpoint=c.n)"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        sqlite3_stmt *st = query(&k->conn, kinds[i].sql, err);
        if (!st)
            return err->code;
        if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) > 0)
            say(k, "%lld %s", (long long)sqlite3_column_int64(st, 0), kinds[i].what);
        dgm_code code = admin_finish(&k->conn, st, err);
        if (code)
            return code;
    }
    return DGM_OK;
}

static dgm_code count_checkpoints(struct check *k, dgm_err *err)
{
    sqlite3_stmt *st = query(&k->conn,
                             "SELECT count(*),coalesce(sum(size+meta_size+writes_bytes),0)"
                             " FROM checkpoints WHERE is_stored=1",
                             err);
    if (!st)
        return err->code;
    if (sqlite3_step(st) == SQLITE_ROW) {
        k->counts.checkpoints = (uint64_t)sqlite3_column_int64(st, 0);
        k->counts.checkpoint_bytes = (uint64_t)sqlite3_column_int64(st, 1);
    }
    return admin_finish(&k->conn, st, err);
}

dgm_code dgm_db_check(const char *path, dgm_db_say say_fault, void *arg, dgm_db_counts *ret_counts,
                      dgm_err *err)
{
    struct check k = {.say = say_fault, .arg = arg};
    dgm_err local = {0};
    err = err ? err : &local;
    dgm_code code = open_existing(path, &k.conn, err);
    if (code)
        return code;
    k.arena = dgm_arena_new();
    code = admin_run(&k.conn, "BEGIN", err);
    /* A page that cannot be read ends a walk: that is a fault found, not a check that failed. */
    dgm_err why = {0};
    if (!code && (check_pages(&k, &why) || check_tasks(&k, &why) || check_orphans(&k, &why) ||
                  count_checkpoints(&k, &why)))
        say(&k, "%s", why.msg);
    dgm_arena_free(k.arena);
    dgm_conn_close(&k.conn);
    if (!code)
        *ret_counts = k.counts;
    return code;
}

/* ---- copies ---------------------------------------------------------------------------------------- */

static char *joined(const char *path, const char *more)
{
    char *text = dgm_xmalloc(strlen(path) + strlen(more) + 1);
    strcpy(text, path);
    strcat(text, more);
    return text;
}

static dgm_code copy_pages(dgm_conn *from, dgm_conn *to, dgm_err *err)
{
    errno = 0;
    sqlite3_backup *b = sqlite3_backup_init(to->db, "main", from->db, "main");
    if (!b)
        return dgm_conn_fault(to, sqlite3_errcode(to->db), false, err);
    sqlite3_backup_step(b, -1); /* all of it, in one read transaction */
    int rc = sqlite3_backup_finish(b);
    return rc ? dgm_conn_fault(to, rc, false, err) : DGM_OK;
}

/* The directory entry is part of it: synced, so that a finished copy is there after a power loss. */
static void sync_folder(const char *path)
{
    char *folder = joined(path, "");
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

/* Copies the database `from` to a new file. */
static dgm_code copy_to(dgm_conn *from, const char *to, dgm_err *err)
{
    dgm_conn c = {.path = joined(to, "")};
    dgm_code code = DGM_OK;
    unlink(to);
    int fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        code = dgm_file_fault(to, "create", errno, err);
    else
        close(fd);
    if (!code) {
        int rc = sqlite3_open_v2(to, &c.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        code = rc ? dgm_conn_fault(&c, rc, false, err) : copy_pages(from, &c, err);
    }
    dgm_conn_close(&c);
    if (code)
        unlink(to);
    return code;
}

dgm_code dgm_db_backup(const char *path, const char *to, dgm_err *err)
{
    dgm_conn from;
    dgm_code code = open_existing(path, &from, err);
    if (code)
        return code;
    char *part = joined(to, ".part");
    if (access(to, F_OK) == 0)
        code =
            dgm_fail(err, DGM_BAD_PARAMS, NULL, "%.200s exists already: choose another file", to);
    if (!code)
        code = copy_to(&from, part, err);
    if (!code && rename(part, to) != 0)
        code = dgm_file_fault(to, "create", errno, err);
    if (!code)
        sync_folder(to);
    free(part);
    dgm_conn_close(&from);
    return code;
}

static dgm_code sound(dgm_conn *c, dgm_err *err)
{
    sqlite3_stmt *st = query(c, "PRAGMA quick_check(1)", err);
    if (!st)
        return err->code;
    dgm_code code = DGM_OK;
    if (sqlite3_step(st) == SQLITE_ROW && !dgm_str_is(dgm_column_str(st, 0), "ok"))
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%.160s is damaged (%.100s): restore another backup", c->path,
                        (const char *)sqlite3_column_text(st, 0));
    dgm_code ended = admin_finish(c, st, code ? NULL : err);
    return code ? code : ended;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The new one takes the place of the old one, which steps aside with its WAL. */
static dgm_code swap(const char *path, const char *fresh, dgm_err *err)
{
    static const char *const tails[] = {"", "-wal", "-shm"};
    dgm_code code = DGM_OK;
    for (size_t i = 0; i < 3 && !code; i++) {
        char *was = joined(path, tails[i]), *aside = joined(path, ".before-restore"),
             *to = joined(aside, tails[i]);
        unlink(to);
        if (rename(was, to) != 0 && errno != ENOENT)
            code = dgm_file_fault(was, "move", errno, err);
        free(was);
        free(aside);
        free(to);
    }
    if (!code && rename(fresh, path) != 0)
        code = dgm_file_fault(path, "replace", errno, err);
    if (!code)
        sync_folder(path);
    return code;
}

dgm_code dgm_db_restore(const char *path, const char *from_path, dgm_err *err)
{
    int lock = -1;
    dgm_conn from = {0};
    dgm_err local = {0};
    err = err ? err : &local;
    char *fresh = joined(path, ".restoring");
    dgm_code code = dgm_sqlite_lock(path, &lock, err);
    if (!code && same_file(path, from_path))
        code = dgm_fail(err, DGM_BAD_PARAMS, NULL, "%.200s is the database itself", from_path);
    if (!code)
        code = open_existing(from_path, &from, err);
    if (!code)
        code = sound(&from, err);
    if (!code)
        code = copy_to(&from, fresh, err);
    if (!code)
        code = swap(path, fresh, err);
    dgm_conn_close(&from);
    free(fresh);
    if (lock >= 0)
        close(lock);
    return code;
}

/* ---- vacuum ---------------------------------------------------------------------------------------- */

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

dgm_code dgm_db_vacuum(const char *path, int64_t *ret_before, int64_t *ret_after, dgm_err *err)
{
    int lock = -1;
    dgm_conn c = {0};
    int64_t before = 0;
    dgm_code code = access(path, F_OK) == 0 ? dgm_sqlite_lock(path, &lock, err) : DGM_OK;
    if (!code)
        code = open_existing(path, &c, err);
    if (!code)
        code = admin_run(&c, "PRAGMA query_only=OFF; PRAGMA wal_checkpoint(TRUNCATE)", err);
    before = size_of(path);
    if (!code)
        code = admin_run(&c, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", err);
    dgm_conn_close(&c);
    if (lock >= 0)
        close(lock);
    if (code)
        return code;
    *ret_before = before;
    *ret_after = size_of(path);
    return DGM_OK;
}

/* ---- export ---------------------------------------------------------------------------------------- */

static void put_line(dgm_buf *b, dgm_arena *a, sqlite3_stmt *row, const dgm_frame *f)
{
    static const char *const names[] = {
        "{\"tenant\":", ",\"principal\":", ",\"task\":", ",\"context\":", ",\"agent\":"};
    dgm_buf_clear(b);
    for (int i = 0; i < 5; i++) {
        dgm_buf_add_str(b, dgm_str_from(names[i]));
        dgm_json_put_str(b, dgm_column_str(row, i));
    }
    dgm_buf_printf(b, ",\"seq\":%llu,\"turn\":%u,\"time\":", (unsigned long long)f->head.seq,
                   f->head.turn);
    dgm_json_put_str(b, dgm_time_text(a, f->head.time));
    dgm_buf_add_lit(b, ",\"event\":");
    dgm_buf_add_str(b, f->bytes);
    dgm_buf_add_char(b, '}');
    dgm_arena_reset(a);
}

static dgm_code export_row(sqlite3_stmt *row, dgm_buf *b, dgm_arena *a, dgm_db_write write,
                           void *arg, dgm_err *err)
{
    dgm_frame f;
    uint64_t first = (uint64_t)sqlite3_column_int64(row, 5) & UINT32_MAX;
    if (!dgm_frame_open(dgm_column_str(row, 6), first, &f))
        return dgm_fail(err, DGM_INTERNAL, NULL,
                        "the database is damaged: record %llu of task %.*s cannot be read: run "
                        "`dragoman db check`",
                        (unsigned long long)first, DGM_P(dgm_column_str(row, 2)));
    while (dgm_frame_next(&f)) {
        put_line(b, a, row, &f);
        dgm_code code = write(dgm_buf_str(b), arg, err);
        if (code)
            return code;
    }
    return DGM_OK;
}

dgm_code dgm_db_export(const char *path, dgm_db_write write, void *arg, dgm_err *err)
{
    dgm_conn c;
    dgm_buf line;
    dgm_err local = {0};
    err = err ? err : &local;
    dgm_code code = open_existing(path, &c, err);
    if (code)
        return code;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf_init(&line, DGM_MAX_OUTPUT_BYTES);
    sqlite3_stmt *st = query(&c,
                             "SELECT t.tenant,t.principal,t.id,t.context,t.agent,l.at,l.bytes"
                             " FROM log l JOIN tasks t ON t.n=l.at>>32 ORDER BY l.at",
                             err);
    code = st ? DGM_OK : err->code;
    while (!code && sqlite3_step(st) == SQLITE_ROW)
        code = export_row(st, &line, a, write, arg, err);
    dgm_code ended = admin_finish(&c, st, code ? NULL : err);
    dgm_buf_done(&line);
    dgm_conn_close(&c);
    return code ? code : ended;
}
