/*
 * store/sqlite/sqlite_int.h - what the files of this driver share.
 *
 *   sqlite.c         threads and queues: a writer, some readers, answers in order
 *   sqlite_conn.c    connections: opening, the lock, statements, faults as sentences
 *   sqlite_schema.c  the tables, and how those of earlier versions become them
 *   sqlite_write.c   one batch of appends, one commit
 *   sqlite_rows.c    the rows of a batch, as tables that a statement can read
 *   sqlite_trim.c    what goes when it is old
 *   sqlite_read.c    every read, but of notes
 *   sqlite_note.c    notes: writing, reading
 *   sqlite_checkpoint.c, sqlite_checkpoint_delete.c, sqlite_checkpoint_read.c   checkpoints of graphs
 *   sqlite_copy.c    as source and target of `dragoman db copy`
 *   admin.c          what `dragoman db` does, without a store
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "store/store_frame.h"
#include "store/store_int.h"
#include "store/store_known.h"

#include <sqlite3.h>
#include <sys/types.h>

/* ---- connections ----------------------------------------------------------------------------------- */

#define DGM_SQL_STATEMENTS(X)                                                                                        \
    /* the writer's */                                                                                               \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                      \
    X(COMMIT, "COMMIT")                                                                                              \
    X(ROLLBACK, "ROLLBACK")                                                                                          \
    X(TASK_LAST, "SELECT coalesce(max(n),0) FROM tasks")                                                             \
    /* All rows of a batch at once, from the tables of sqlite_rows.c. OR FAIL: what fails is rolled  \
     * back as a whole anyway, and SQLite need not be able to undo the statement alone. */               \
    X(TASKS_INSERT,                                                                                                  \
      "INSERT OR FAIL INTO tasks(n,tenant,principal,id,context,agent,state,created_ms,status_ms,"                    \
      "last_seq) SELECT n,tenant,principal,id,context,agent,state,created_ms,status_ms,last_seq"                     \
      " FROM batch_tasks")                                                                                           \
    X(LOG_INSERT, "INSERT OR FAIL INTO log(at,n,bytes) SELECT at,n,bytes FROM batch_log")                            \
    X(TURNS_PUT,                                                                                                     \
      "INSERT OR FAIL INTO turns(at,first_seq,last_seq,ended_ms,protocol,caller,request,previous,"                   \
      "message,scope,known_ms,digest) SELECT at,first_seq,last_seq,ended_ms,protocol,caller,"                        \
      "request,previous,message,scope,known_ms,digest FROM batch_turns WHERE true"                                   \
      " ON CONFLICT(at) DO UPDATE SET first_seq=excluded.first_seq,last_seq=excluded.last_seq,"                      \
      "ended_ms=excluded.ended_ms,protocol=excluded.protocol,caller=excluded.caller,"                                \
      "request=excluded.request,previous=excluded.previous,"                                                         \
      "message=iif(excluded.message<>'',excluded.message,message),"                                                  \
      "scope=iif(excluded.message<>'',excluded.scope,scope),"                                                        \
      "known_ms=iif(excluded.message<>'',excluded.known_ms,known_ms),"                                               \
      "digest=iif(excluded.message<>'',excluded.digest,digest)")                                                     \
    X(FOLDS_PUT,                                                                                                     \
      "INSERT OR FAIL INTO folds(task,seq,body) SELECT task,seq,body FROM batch_folds"                               \
      " WHERE true ON CONFLICT(task) DO UPDATE SET seq=excluded.seq,body=excluded.body")                             \
    /* the one before goes, so that the newest has the highest number */                                             \
    X(CALLS_PUT, "INSERT OR REPLACE INTO calls(call,tenant,principal,agent,task)"                                    \
                 " SELECT call,tenant,principal,agent,task FROM batch_calls")                                        \
    X(TASK_FIND,                                                                                                     \
      "SELECT n,last_seq,state,status_ms FROM tasks WHERE tenant=?1 AND principal=?2 AND id=?3")                     \
    X(TASK_UPDATE, "UPDATE tasks SET last_seq=?2,state=?3,status_ms=?4 WHERE n=?1")                                  \
    /* a delta leaves state and time alone, and so every index */                                                    \
    X(TASK_GROW, "UPDATE tasks SET last_seq=?2 WHERE n=?1")                                                          \
    /* a message id again: the turn it belonged to until now */                                                      \
    X(TAKEN_FIND, "SELECT r.at,t.context FROM turns r JOIN tasks t ON t.n=r.at>>32"                                  \
                  " WHERE r.message=?1 AND r.scope=?2 AND r.message<>'' AND t.tenant=?3"                             \
                  " AND t.principal=?4 AND t.agent=?5 ORDER BY r.at DESC LIMIT 1")                                   \
    X(TAKEN_CHANGE, "UPDATE turns SET message=?2,scope=?3 WHERE at=?1")                                              \
    X(PROBE, "INSERT OR REPLACE INTO probe(n,bytes) VALUES(1,zeroblob(?1))")                                         \
    /* those that have a log: others are trimmed */                                                                  \
    X(TRIM_NEXT, "SELECT l.n,t.created_ms,f.seq FROM (SELECT at>>32 AS n FROM log WHERE at>=?1"                      \
                 " ORDER BY at LIMIT 1) l LEFT JOIN tasks t ON t.n=l.n LEFT JOIN folds f"                            \
                 " ON f.task=l.n")                                                                                   \
    X(TRIM_TURNS, "SELECT at,last_seq,ended_ms FROM turns WHERE at BETWEEN ?1 AND ?2"                                \
                  " AND (last_seq=0 OR first_seq<=last_seq) ORDER BY at")                                            \
    X(TRIM_LOG, "DELETE FROM log WHERE at>=?1 AND at<=?2 AND at+n-1<=?2")                                            \
    /* without what they say; gone unless their message id or their number is needed */                              \
    X(TRIM_EMPTY, "UPDATE turns SET first_seq=last_seq+1,ended_ms=0,protocol='',caller='',"                          \
                  "request='',previous='' WHERE at BETWEEN ?1 AND ?2 AND first_seq<=last_seq")                       \
    X(TRIM_GONE, "DELETE FROM turns WHERE at BETWEEN ?1 AND ?2 AND message=''"                                       \
                 " AND at<(SELECT max(at) FROM turns WHERE at<=?3)")                                                 \
    X(OLD_TASKS, "SELECT n,state,status_ms,created_ms FROM tasks WHERE n>=?1 ORDER BY n")                            \
    X(DELETE_LOG, "DELETE FROM log WHERE at BETWEEN ?1 AND ?2")                                                      \
    X(DELETE_TURNS, "DELETE FROM turns WHERE at BETWEEN ?1 AND ?2")                                                  \
    X(DELETE_FOLD, "DELETE FROM folds WHERE task=?1")                                                                \
    X(DELETE_CALLS, "DELETE FROM calls WHERE task=?1")                                                               \
    X(DELETE_TASK, "DELETE FROM tasks WHERE n=?1")                                                                   \
    X(NOTE_PUT,                                                                                                      \
      "INSERT INTO notes(name,kind,tenant,principal,text,expires_ms) VALUES(?4,?3,?1,?2,?5,?6)"                      \
      " ON CONFLICT(name,kind,tenant,principal) DO UPDATE SET text=excluded.text,"                                   \
      "expires_ms=excluded.expires_ms")                                                                              \
    X(NOTE_DELETE, "DELETE FROM notes WHERE tenant=?1 AND principal=?2 AND kind=?3 AND name=?4")                     \
    X(NOTES_EXPIRE, "DELETE FROM notes WHERE n IN (SELECT n FROM notes WHERE expires_ms>0"                           \
                    " AND expires_ms<=?1 ORDER BY expires_ms LIMIT ?2)")                                             \
    /* checkpoints of graphs: threads, checkpoints, writes, and the values that are too large for their rows */      \
    X(THREAD_FIND, "SELECT n,touched_ms FROM threads WHERE thread=?1 AND agent=?2")                                  \
    X(THREAD_INSERT, "INSERT INTO threads(thread,agent,touched_ms) VALUES(?1,?2,?3)")                                \
    X(THREAD_TOUCH, "UPDATE threads SET touched_ms=?2 WHERE n=?1")                                                   \
    X(THREAD_OLD, "SELECT n FROM threads WHERE touched_ms<?1 ORDER BY touched_ms LIMIT 1")                           \
    X(THREAD_DELETE, "DELETE FROM threads WHERE n=?1")                                                               \
    X(CHECKPOINT_FIND, "SELECT n,size+meta_size,writes,writes_bytes,number,meta_number"                              \
                       " FROM checkpoints WHERE thread=?1 AND ns=?2 AND id=?3")                                      \
    X(CHECKPOINT_PUT,                                                                                                \
      "INSERT INTO checkpoints(thread,ns,id,parent,run,type,size,number,body,meta_type,meta_size,"                   \
      "meta_number,meta_body,is_stored,writes,writes_bytes)"                                                         \
      " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,0,0)"                                                  \
      " ON CONFLICT(thread,ns,id) DO UPDATE SET parent=excluded.parent,run=excluded.run,"                            \
      "type=excluded.type,size=excluded.size,number=excluded.number,body=excluded.body,"                             \
      "meta_type=excluded.meta_type,meta_size=excluded.meta_size,"                                                   \
      "meta_number=excluded.meta_number,meta_body=excluded.meta_body,is_stored=excluded.is_"                         \
      "stored")                                                                                                      \
    X(CHECKPOINT_COUNT, "UPDATE checkpoints SET writes=writes+?2,writes_bytes=writes_bytes+?3"                       \
                        " WHERE n=?1")                                                                               \
    X(CHECKPOINT_DELETE, "DELETE FROM checkpoints WHERE n=?1")                                                       \
    X(CHECKPOINT_COPY,                                                                                               \
      "INSERT INTO checkpoints(thread,ns,id,parent,run,type,size,number,body,meta_type,meta_size,"                   \
      "meta_number,meta_body,is_stored,writes,writes_bytes)"                                                         \
      " SELECT ?2,ns,id,parent,run,type,size,?3,body,meta_type,meta_size,?4,meta_body,is_stored,"                    \
      "writes,writes_bytes FROM checkpoints WHERE n=?1")                                                             \
    X(CHECKPOINTS_TO_COPY, "SELECT n,ns,id,number,meta_number FROM checkpoints WHERE thread=?1")                     \
    X(CHECKPOINTS_OF, "SELECT n FROM checkpoints WHERE thread=?1 LIMIT ?2")                                          \
    /* those that are not the latest of their namespace */                                                           \
    X(CHECKPOINTS_OLD, "SELECT n FROM checkpoints c WHERE thread=?1 AND id<(SELECT max(id)"                          \
                       " FROM checkpoints WHERE thread=?1 AND ns=c.ns AND is_stored=1) LIMIT ?2")                    \
    X(CHECKPOINTS_OF_RUN, "SELECT c.n FROM checkpoints c JOIN threads t ON t.n=c.thread"                             \
                          " WHERE c.run=?1 AND c.run<>'' AND t.agent=?3 LIMIT ?2")                                   \
    X(WRITE_FIND, "SELECT size,number FROM checkpoint_writes WHERE checkpoint=?1 AND task=?2"                        \
                  " AND idx=?3")                                                                                     \
    X(WRITE_PUT,                                                                                                     \
      "INSERT INTO checkpoint_writes(checkpoint,task,idx,channel,path,type,size,number,body)"                        \
      " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9) ON CONFLICT(checkpoint,task,idx) DO UPDATE SET"                           \
      " channel=excluded.channel,path=excluded.path,type=excluded.type,size=excluded.size,"                          \
      "number=excluded.number,body=excluded.body")                                                                   \
    X(WRITES_DELETE, "DELETE FROM checkpoint_writes WHERE checkpoint=?1")                                            \
    X(WRITES_TO_COPY, "SELECT n,number FROM checkpoint_writes WHERE checkpoint=?1")                                  \
    X(WRITE_COPY,                                                                                                    \
      "INSERT INTO checkpoint_writes(checkpoint,task,idx,channel,path,type,size,number,body)"                        \
      " SELECT ?2,task,idx,channel,path,type,size,?3,body FROM checkpoint_writes WHERE n=?1")                        \
    X(VALUE_LAST, "SELECT coalesce(max(at),0)>>8 FROM checkpoint_values")                                            \
    X(PART_INSERT, "INSERT INTO checkpoint_values(at,bytes) VALUES(?1,?2)")                                          \
    X(PARTS_DELETE, "DELETE FROM checkpoint_values WHERE at BETWEEN ?1<<8 AND (?1<<8)|255")                          \
    X(PARTS_COPY, "INSERT INTO checkpoint_values(at,bytes) SELECT (?2<<8)|(at&255),bytes"                            \
                  " FROM checkpoint_values WHERE at BETWEEN ?1<<8 AND (?1<<8)|255")                                  \
    /* all values of a checkpoint and its writes */                                                                  \
    X(VALUES_DELETE,                                                                                                 \
      "DELETE FROM checkpoint_values WHERE at IN (SELECT v.at FROM"                                                  \
      " (SELECT number FROM checkpoints WHERE n=?1 UNION ALL SELECT meta_number FROM checkpoints"                    \
      " WHERE n=?1 UNION ALL SELECT number FROM checkpoint_writes WHERE checkpoint=?1) o"                            \
      " CROSS JOIN checkpoint_values v ON v.at BETWEEN o.number<<8 AND (o.number<<8)|255"                            \
      " WHERE o.number>0)")                                                                                          \
    /* the readers' */                                                                                               \
    X(TASK_GET,                                                                                                      \
      "SELECT t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"                         \
      "t.last_seq,f.seq,f.body FROM tasks t LEFT JOIN folds f ON f.task=t.n"                                         \
      " WHERE t.tenant=?1 AND t.principal=?2 AND t.id=?3")                                                           \
    /* The index has the order, and the folded Tasks are read one by one: only as many rows are read as are used. */ \
    X(CONTEXT_GET,                                                                                                   \
      "SELECT t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"                         \
      "t.last_seq,f.seq,f.body FROM tasks t INDEXED BY tasks_by_context"                                             \
      " LEFT JOIN folds f ON f.task=t.n WHERE t.context=?4 AND t.tenant=?1 AND t.principal=?2"                       \
      " AND t.agent=?3 ORDER BY t.created_ms DESC,t.n DESC LIMIT ?5")                                                \
    X(FOLD_GET, "SELECT seq,body FROM folds WHERE task=?1")                                                          \
    X(TASK_N, "SELECT n FROM tasks WHERE tenant=?1 AND principal=?2 AND id=?3")                                      \
    X(LOG_FROM, "SELECT at,n,bytes FROM log WHERE at>=coalesce((SELECT max(at) FROM log"                             \
                " WHERE at BETWEEN ?1 AND ?2),?1) AND at<=?3 ORDER BY at")                                           \
    /* of those without records the last, for its number */                                                          \
    X(TURNS_GET, "SELECT at,first_seq,last_seq,protocol,caller,request,previous FROM turns"                          \
                 " WHERE at BETWEEN ?1 AND ?2 AND (last_seq=0 OR first_seq<=last_seq OR at=("                        \
                 "SELECT max(at) FROM turns WHERE at BETWEEN ?1 AND ?2 AND last_seq>0"                               \
                 " AND first_seq>last_seq)) ORDER BY at")                                                            \
    X(TURN_FIND,                                                                                                     \
      "SELECT r.at,r.first_seq,r.last_seq,r.protocol,r.caller,r.request,r.previous,t.id"                             \
      " FROM turns r JOIN tasks t ON t.n=r.at>>32 WHERE r.caller=?4 AND r.protocol=?3"                               \
      " AND r.caller<>'' AND t.tenant=?1 AND t.principal=?2 AND (?5='' OR t.agent=?5)"                               \
      " ORDER BY r.at DESC LIMIT 1")                                                                                 \
    X(CALL_FIND,                                                                                                     \
      "SELECT t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"                         \
      "t.last_seq,f.seq,f.body FROM calls c JOIN tasks t ON t.n=c.task"                                              \
      " LEFT JOIN folds f ON f.task=t.n WHERE c.call=?3 AND c.tenant=?1 AND c.principal=?2"                          \
      " AND (?4='' OR c.agent=?4) ORDER BY c.n DESC LIMIT 1")                                                        \
    X(NOTE_GET, "SELECT text,expires_ms FROM notes WHERE tenant=?1 AND principal=?2 AND kind=?3 "                    \
                "AND name=?4")                                                                                       \
    /* Checkpoints: ids from ?4 to before ?5; ?6, ?7, ?8: the last row of the page before. */                        \
    X(CHECKPOINTS_IN_NS,                                                                                             \
      "SELECT "                                                                                                      \
      "t.thread,c.ns,c.id,c.parent,c.run,c.type,c.size,c.number,c.body,c.meta_type,c.meta_size,"                     \
      "c.meta_number,c.meta_body,c.n,c.writes,c.writes_bytes"                                                        \
      " FROM threads t JOIN checkpoints c ON c.thread=t.n WHERE t.thread=?2 AND t.agent=?1"                          \
      " AND c.ns=?3 AND c.id>=?4 AND c.id<?5 AND c.is_stored=1 ORDER BY c.id DESC LIMIT ?9")                         \
    X(CHECKPOINTS_IN_THREAD,                                                                                         \
      "SELECT "                                                                                                      \
      "t.thread,c.ns,c.id,c.parent,c.run,c.type,c.size,c.number,c.body,c.meta_type,c.meta_size,"                     \
      "c.meta_number,c.meta_body,c.n,c.writes,c.writes_bytes"                                                        \
      " FROM threads t JOIN checkpoints c ON c.thread=t.n WHERE t.thread=?2 AND t.agent=?1"                          \
      " AND c.id>=?4 AND c.id<?5 AND (c.id<>?6 OR c.ns>?7) AND c.is_stored=1"                                        \
      " ORDER BY c.id DESC,c.ns LIMIT ?9")                                                                           \
    /* ?10: any namespace */                                                                                         \
    X(CHECKPOINTS_ALL,                                                                                               \
      "SELECT "                                                                                                      \
      "t.thread,c.ns,c.id,c.parent,c.run,c.type,c.size,c.number,c.body,c.meta_type,c.meta_size,"                     \
      "c.meta_number,c.meta_body,c.n,c.writes,c.writes_bytes"                                                        \
      " FROM checkpoints c JOIN threads t ON t.n=c.thread WHERE t.agent=?1"                                          \
      " AND (?10 OR c.ns=?3) AND c.id>=?4 AND c.id<?5 AND (c.id<>?6 OR (c.ns,t.thread)>(?7,?8))"                     \
      " AND c.is_stored=1 ORDER BY c.id DESC,c.ns,t.thread LIMIT ?9")                                                \
    X(WRITES_GET, "SELECT task,path,idx,channel,type,size,number,body FROM checkpoint_writes"                        \
                  " WHERE checkpoint=?1 ORDER BY path,task,idx")                                                     \
    X(PARTS_GET, "SELECT bytes FROM checkpoint_values WHERE at BETWEEN ?1<<8 AND (?1<<8)|255"                        \
                 " ORDER BY at")                                                                                     \
    X(DEDUPE_GET,                                                                                                    \
      "SELECT r.digest,t.id,r.at,r.known_ms,t.context FROM turns r JOIN tasks t ON t.n=r.at>>32"                     \
      " WHERE r.message=?1 AND r.scope=?2 AND r.message<>'' AND t.tenant=?3 AND t.principal=?4"                      \
      " AND t.agent=?5 ORDER BY r.at DESC")                                                                          \
    X(KNOWN, "SELECT message,scope FROM turns INDEXED BY turns_by_message WHERE message<>''")                        \
    X(UNFINISHED,                                                                                                    \
      "SELECT tenant,principal,id,context,agent,state,created_ms,status_ms,last_seq,0,NULL"                          \
      " FROM tasks INDEXED BY tasks_unfinished WHERE state<3"                                                        \
      " AND (tenant,principal,id)>(?1,?2,?3) ORDER BY tenant,principal,id LIMIT ?4")                                 \
    X(UNFINISHED_FIRST,                                                                                              \
      "SELECT tenant,principal,id,context,agent,state,created_ms,status_ms,last_seq,0,NULL"                          \
      " FROM tasks INDEXED BY tasks_unfinished WHERE state<3"                                                        \
      " ORDER BY tenant,principal,id LIMIT ?4")

typedef enum dgm_sql {
#define X(name, text) DGM_SQL_##name,
    DGM_SQL_STATEMENTS(X)
#undef X
        DGM_N_SQL
} dgm_sql;

/* Lists have a statement per set of filters: the bits, and whether it counts or reads. */
enum {
    LIST_AGENT = 1,
    LIST_CONTEXT = 2,
    LIST_STATE = 4,
    LIST_FROM = 8,
    LIST_AFTER = 16,
    N_LISTS = 32
};

typedef struct dgm_file_id {
    dev_t dev;
    ino_t ino;
    bool is_there;
} dgm_file_id;

typedef struct dgm_conn { /* belongs to one thread at a time */
    sqlite3 *db;
    char *path;
    bool is_open;          /* from here on errors reach callers: they do not name the path */
    dgm_file_id file, wal; /* see dgm_conn_remember_files */
    sqlite3_stmt *statements[DGM_N_SQL]; /* prepared on first use */
    sqlite3_stmt *lists[2][N_LISTS];
} dgm_conn;

typedef enum dgm_conn_mode {
    DGM_CONN_WRITE, /* makes the file and brings its tables up to date */
    DGM_CONN_READ,
} dgm_conn_mode;

dgm_code dgm_conn_open(const char *path, dgm_conn_mode mode, dgm_conn *ret_conn, dgm_err *err);
void dgm_conn_close(dgm_conn *c); /* zeroed is fine */

/* SQLite goes on with a file that was deleted or moved: what it acknowledges then is lost at its end. Remember when the
 * WAL exists; check before a commit, and when somebody asks for the health of the store. From any thread. */
void dgm_conn_remember_files(dgm_conn *c);
dgm_code dgm_conn_check_files(const dgm_conn *c, dgm_err *err);

/* NULL when it cannot be prepared: then *ret_rc says why. */
sqlite3_stmt *dgm_conn_sql(dgm_conn *c, dgm_sql which, int *ret_rc);
int dgm_conn_run(dgm_conn *c, dgm_sql which); /* without parameters and rows */

/* What went wrong with a database, as a sentence that says what to do. */
dgm_code dgm_conn_fault(dgm_conn *c, int rc, bool reading, dgm_err *err);
/* The same for a file: an errno. doing: "open", "lock", ... */
dgm_code dgm_file_fault(const char *path, const char *doing, int error, dgm_err *err);

/* flock on PATH.lock, which holds our pid; the descriptor keeps it. A holder is named in the error. */
dgm_code dgm_sqlite_lock(const char *path, int *ret_fd, dgm_err *err);

/* The version of the tables: how many migrations there are. */
#define DGM_SCHEMA_VERSION 6

/* Makes or brings up to date what the file holds; it is of this version, and not newer. */
int dgm_schema_migrate(dgm_conn *c, int version);
/* Version 4: rewrites the folded Tasks, within the transaction of its migration. */
int dgm_schema_migrate_folds(dgm_conn *c);
/* Tables of a version this program knows, and ours at all? 0: an empty file. */
dgm_code dgm_conn_identify(dgm_conn *c, int *ret_version, dgm_err *err);

static inline void dgm_bind_str(sqlite3_stmt *st, int i, dgm_str s)
{
    sqlite3_bind_text(st, i, s.p ? s.p : "", (int)s.n, SQLITE_STATIC);
}

static inline dgm_str dgm_column_str(sqlite3_stmt *st, int i)
{
    const void *p = sqlite3_column_blob(st, i); /* the bytes as they are; NULL when empty */
    return p ? (dgm_str){p, (size_t)sqlite3_column_bytes(st, i)} : (dgm_str){"", 0};
}

/* ---- keys ------------------------------------------------------------------------------------------ */

/* Rows that belong to a task are clustered by it: its number, then the seq or the turn. */
static inline int64_t dgm_key(int64_t task, uint64_t low)
{
    return (int64_t)((uint64_t)task << 32 | low);
}

/* ---- work ------------------------------------------------------------------------------------------ */

/* Appends to one task in one commit. */
typedef struct dgm_group {
    dgm_job *first, *last; /* by group_next */
    uint64_t hash;
    int64_t n; /* the task's number; 0: not known, or nothing of this group is to be written */
    bool is_new;
} dgm_group;

typedef struct dgm_sql_writer {
    dgm_conn conn;
    bool full; /* synchronous is FULL */
    dgm_buf row;
    int wal_pages;      /* as the last commit left it */
    int64_t last_n;     /* the last task's number; -1: ask */
    int64_t last_value; /* the last number of a value of checkpoints; -1: ask */
    dgm_known *known;   /* the store's */
    dgm_group *groups;
    uint32_t *slots; /* of groups, by hash; 0: free */
    size_t cap_groups, cap_slots;
    const dgm_group *part; /* the groups whose rows sqlite_rows.c shows, n_part of them */
    size_t n_part;
    struct evp_md_ctx_st *sha256; /* for dgm_content_digest */
} dgm_sql_writer;

dgm_code dgm_sql_writer_open(const char *path, dgm_known *known, dgm_sql_writer *ret_writer,
                             dgm_err *err);
void dgm_sql_writer_close(dgm_sql_writer *w);
/* A chain of appends and notes in one commit (more if something odd is in it). Every job gets its code. Returns the
 * fault that kept it from writing, DGM_OK after a success. */
dgm_code dgm_sql_writer_write(dgm_sql_writer *w, dgm_job *chain, size_t n, dgm_err *err);
/* One step; true: there is more to do. */
bool dgm_sql_writer_trim(dgm_sql_writer *w, dgm_job *job);
/* The notes of a chain: within a commit; or in a commit of their own, then they have its code. */
int dgm_sql_put_notes(dgm_sql_writer *w, const dgm_job *chain);
dgm_code dgm_sql_writer_notes(dgm_sql_writer *w, dgm_job *chain, dgm_err *err);
/* One change: within a commit. What it refuses is in the job. */
int dgm_sql_change_checkpoints(dgm_sql_writer *w, dgm_job *job);
/* Deletes some checkpoints of the threads that were changed last before this; *ret_more: call it again. */
int dgm_sql_trim_threads(dgm_sql_writer *w, int64_t before_ms, bool *ret_more);
dgm_code dgm_sql_writer_probe(dgm_sql_writer *w, dgm_err *err); /* can it write? */
dgm_code dgm_sql_writer_checkpoint(dgm_sql_writer *w, dgm_err *err);

/* For the files that write. */
int dgm_sql_begin(dgm_sql_writer *w, bool sync);
dgm_code dgm_sql_end(dgm_sql_writer *w, int rc,
                     dgm_err *err);  /* commits, or takes back what failed */
int dgm_sql_rows(dgm_sql_writer *w); /* makes the tables batch_... of w->part */

static inline int dgm_sql_done(sqlite3_stmt *st) /* a statement without rows */
{
    sqlite3_step(st);
    return sqlite3_reset(st);
}

void dgm_conn_read(dgm_conn *c, dgm_job *job);
void dgm_conn_read_note(dgm_conn *c, dgm_job *job);
void dgm_conn_read_checkpoints(dgm_conn *c, dgm_job *job);

/* ---- sqlite_checkpoint.c, sqlite_checkpoint_delete.c ------------------------------------------------------------ */

/* A value of a checkpoint is in its row if it is small, else in rows of checkpoint_values: number << 8 | part. */
#define DGM_VALUE_INLINE_BYTES 1024
#define DGM_VALUE_PART_BYTES ((size_t)1 << 20)

/* *ret_n 0: it does not exist. */
int dgm_sql_find_thread(dgm_sql_writer *w, dgm_str agent, dgm_str thread, int64_t *ret_n);
int dgm_sql_delete_checkpoint(dgm_sql_writer *w, int64_t n);
int dgm_sql_delete_threads(dgm_sql_writer *w, const dgm_job *job);
int dgm_sql_delete_runs(dgm_sql_writer *w, const dgm_job *job);
int dgm_sql_keep_latest(dgm_sql_writer *w, const dgm_job *job);
