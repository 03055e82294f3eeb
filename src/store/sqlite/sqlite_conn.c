/*
 * store/sqlite/sqlite_conn.c - connections: opening, the lock, migrations, statements, faults.
 */
#include "sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- faults as sentences --------------------------------------------------------------------------- */

/* Where a file is, for messages about its directory. */
static void folder_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(out, size, ".");
    else
        snprintf(out, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* Of a database that was opened the path is not named: these sentences reach callers, and an operator knows
 * it from the configuration and the log. */
#define RUNNING "the database"

/* What to do about a fault of a file, as an operator who starts the program needs it; NULL: nothing is known. */
static dgm_code fault_at_start(const char *path, const char *doing, int error, dgm_err *err)
{
    char folder[200];
    folder_of(path, folder, sizeof folder);
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: the directory %.160s does not exist: create it", doing,
                        path, folder);
    case EACCES:
    case EPERM:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: permission denied: let user %u write in %.120s", doing,
                        path, (unsigned)geteuid(), folder);
    case EISDIR:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: it is a directory: name a file", doing, path);
    case ELOOP:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: it is a symbolic link: remove it, or name another path",
                        doing, path);
    default: return DGM_OK;
    }
}

dgm_code dgm_file_fault(const char *path, const char *doing, int error, dgm_err *err)
{
    dgm_code code = strcmp(path, RUNNING) != 0 ? fault_at_start(path, doing, error, err) : DGM_OK;
    if (code)
        return code;
    switch (error) {
    case EROFS:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: its file system is read-only: remount it, or name "
                        "another path",
                        doing, path);
    case EMFILE:
    case ENFILE:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: too many open files: raise the limit (ulimit -n)", doing,
                        path);
    case ENOSPC:
    case EDQUOT:
        return dgm_fail(
            err, DGM_UNAVAILABLE, NULL,
            "cannot %s %.160s: the disk is full: free some space, writing then continues", doing,
            path);
    case EFBIG:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s %.160s: the limit on file sizes is reached: raise it (ulimit "
                        "-f)",
                        doing, path);
    default:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot %s %.160s: %s", doing, path,
                        error ? strerror(error) : "input/output error");
    }
}

dgm_code dgm_conn_fault(dgm_conn *c, int rc, bool reading, dgm_err *err)
{
    const char *doing = reading ? "read" : "write";
    const char *path = c->is_open ? RUNNING : c->path;
    char name[180] = RUNNING;
    int error = errno; /* a failed COMMIT does not tell SQLite's own; see dgm_conn_run */
    if (!c->is_open)
        snprintf(name, sizeof name, "database %.160s", c->path);
    if (c->db && sqlite3_system_errno(c->db))
        error = sqlite3_system_errno(c->db);
    switch (rc & 0xff) {
    case SQLITE_FULL: return dgm_file_fault(path, doing, ENOSPC, err);
    case SQLITE_CANTOPEN: {
        struct stat st;
        if (error == 0 || error == ENOENT)
            error = stat(c->path, &st) == 0 && S_ISDIR(st.st_mode) ? EISDIR : error;
        return dgm_file_fault(path, "open", error, err);
    }
    case SQLITE_PERM:
    case SQLITE_AUTH: return dgm_file_fault(path, doing, EACCES, err);
    case SQLITE_READONLY:
        if (c->is_open)
            return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                            "cannot write the database: it is read-only: make the file and its "
                            "directory writable for the server");
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot write %.160s: it is read-only: make the file and its directory "
                        "writable for user %u",
                        c->path, (unsigned)geteuid());
    case SQLITE_IOERR: return dgm_file_fault(path, doing, error, err);
    case SQLITE_CORRUPT:
        return dgm_fail(
            err, reading ? DGM_INTERNAL : DGM_UNAVAILABLE, NULL,
            "%s is damaged (%s): run `dragoman db check`, then `dragoman db restore` a backup",
            name, c->db ? sqlite3_errmsg(c->db) : "corrupt");
    case SQLITE_NOTADB:
        return dgm_fail(
            err, reading ? DGM_INTERNAL : DGM_UNAVAILABLE, NULL,
            "%.160s is not an SQLite database, or it is damaged: choose another path, or "
            "`dragoman db restore` a backup",
            path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%s is locked by another program: let it finish or stop it", name);
    case SQLITE_NOMEM: return dgm_fail(err, DGM_UNAVAILABLE, NULL, "out of memory in SQLite");
    default:
        return dgm_fail(err, DGM_INTERNAL, NULL, "%s: %s (SQLite code %d)", name,
                        c->db ? sqlite3_errmsg(c->db) : "no connection", rc);
    }
}

/* ---- is it still the file that was opened? ------------------------------------------------------------ */

static void file_identity(const char *path, dgm_file_id *ret_id)
{
    struct stat st;
    *ret_id = (dgm_file_id){0};
    if (stat(path, &st) == 0)
        *ret_id = (dgm_file_id){.dev = st.st_dev, .ino = st.st_ino, .is_there = true};
}

static bool is_same_file(const char *path, const dgm_file_id *id)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == id->dev && st.st_ino == id->ino;
}

void dgm_conn_remember_files(dgm_conn *c)
{
    char wal[4096];
    file_identity(c->path, &c->file);
    c->wal = (dgm_file_id){0};
    if ((size_t)snprintf(wal, sizeof wal, "%s-wal", c->path) < sizeof wal)
        file_identity(wal, &c->wal);
}

dgm_code dgm_conn_check_files(const dgm_conn *c, dgm_err *err)
{
    char wal[4096];
    snprintf(wal, sizeof wal, "%s-wal", c->path);
    if (is_same_file(c->path, &c->file) && (!c->wal.is_there || is_same_file(wal, &c->wal)))
        return DGM_OK;
    return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                    "the file of the database was deleted, moved or replaced while it is in use: "
                    "put it back, or restart the server");
}

/* ---- one server per database ----------------------------------------------------------------------- */

dgm_code dgm_sqlite_lock(const char *path, int *ret_fd, dgm_err *err)
{
    char lock_path[4096], pid[24] = "";
    if ((size_t)snprintf(lock_path, sizeof lock_path, "%s.lock", path) >= sizeof lock_path)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the path of the database is too long");
    /* in a directory where others may write, a link could lead to any file of ours, and it is truncated */
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return dgm_file_fault(lock_path, "open", errno, err);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        ssize_t n = error == EWOULDBLOCK ? pread(fd, pid, sizeof pid - 1, 0) : 0;
        close(fd);
        if (error != EWOULDBLOCK)
            return dgm_file_fault(lock_path, "lock", error, err);
        pid[n > 0 ? strspn(pid, "0123456789") : 0] = 0;
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "database %.160s is in use by process %s: stop it first, or name another "
                        "database",
                        path, *pid ? pid : "(unknown)");
    }
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n) {
        int error = errno; /* without our pid a second process could not say who we are: no harm */
        if (error != ENOSPC && error != EDQUOT && error != EFBIG) {
            close(fd);
            return dgm_file_fault(lock_path, "write", error, err);
        }
    }
    *ret_fd = fd;
    return DGM_OK;
}

/* ---- opening --------------------------------------------------------------------------------------- */

/* SQLite counts every allocation under a lock that all connections share; we do not use these counts. */
static void configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* refused when it was used before us: no harm */
}

static void close_to_others(const char *path, const char *end)
{
    char file[4096];
    struct stat st;
    if ((size_t)snprintf(file, sizeof file, "%s%s", path, end) < sizeof file &&
        lstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IRWXO)
        (void)!chmod(file, st.st_mode & (S_IRWXU | S_IRWXG)); /* serve warns if it could not be */
}

/* Other users of the machine must not read conversations: what they may do with an existing file is taken away.
 * What its group may do stays: somebody decided that (a backup). */
static dgm_code make_private(const char *path, dgm_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd); /* before SQLite has it open: closing would drop its locks */
        return DGM_OK;
    }
    if (errno != EEXIST)
        return dgm_file_fault(path, "create", errno, err);
    close_to_others(path, "");
    close_to_others(path, "-wal");
    close_to_others(path, "-shm");
    return DGM_OK;
}

static int exec(dgm_conn *c, const char *sql)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL);
}

static dgm_code prepare_writer(dgm_conn *c, dgm_err *err)
{
    int version = 0, rc;
    dgm_code code = dgm_conn_identify(c, &version, err);
    if (code)
        return code;
    /* No checkpoints by SQLite itself: the writer answers first. Its own cache is small, the kernel's
     * holds the rest. */
    rc = exec(c, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
                 "PRAGMA journal_size_limit=67108864; PRAGMA cache_size=-2000");
    if (!rc)
        rc = dgm_schema_migrate(c, version);
    return rc ? dgm_conn_fault(c, rc, false, err) : DGM_OK;
}

dgm_code dgm_conn_open(const char *path, dgm_conn_mode mode, dgm_conn *ret_conn, dgm_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    dgm_code code;
    pthread_once(&once, configure);
    dgm_conn c = {.path = dgm_xmalloc(strlen(path) + 1)};
    memcpy(c.path, path, strlen(path) + 1);
    if (mode == DGM_CONN_WRITE && (code = make_private(path, err))) {
        dgm_conn_close(&c);
        return code;
    }
    int rc = sqlite3_open_v2(path, &c.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!rc) {
        sqlite3_extended_result_codes(c.db, 1);
        sqlite3_busy_timeout(c.db, 2000);
        /* Else a statement that a partial index might serve is planned again for every value bound to it. */
        sqlite3_db_config(c.db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
        rc = exec(&c,
                  "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF");
    }
    if (!rc && mode == DGM_CONN_READ)
        rc = exec(&c, "PRAGMA query_only=ON; PRAGMA cache_size=-500");
    if (!rc && sqlite3_db_readonly(c.db, "main") == 1)
        rc = SQLITE_READONLY; /* what it falls back to without a word */
    code = rc ? dgm_conn_fault(&c, rc, false, err) : DGM_OK;
    if (!code && mode == DGM_CONN_WRITE)
        code = prepare_writer(&c, err);
    if (code) {
        dgm_conn_close(&c);
        return code;
    }
    c.is_open = true;
    *ret_conn = c;
    return DGM_OK;
}

void dgm_conn_close(dgm_conn *c)
{
    for (size_t i = 0; i < DGM_N_SQL; i++)
        sqlite3_finalize(c->statements[i]);
    for (size_t i = 0; i < N_LISTS; i++) {
        sqlite3_finalize(c->lists[0][i]);
        sqlite3_finalize(c->lists[1][i]);
    }
    sqlite3_close(c->db);
    free(c->path);
    *c = (dgm_conn){0};
}

/* ---- statements ------------------------------------------------------------------------------------ */

sqlite3_stmt *dgm_conn_sql(dgm_conn *c, dgm_sql which, int *ret_rc)
{
    static const char *const texts[] = {
#define X(name, text) text,
        DGM_SQL_STATEMENTS(X)
#undef X
    };
    if (!c->statements[which])
        *ret_rc = sqlite3_prepare_v3(c->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                     &c->statements[which], NULL);
    return c->statements[which];
}

int dgm_conn_run(dgm_conn *c, dgm_sql which)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *st = dgm_conn_sql(c, which, &rc);
    if (!st)
        return rc;
    errno = 0;
    sqlite3_step(st);
    return sqlite3_reset(st); /* returns the result of step, but OK for rows and the end */
}
