/* store/sqlite/sqlite_schema.c - the tables, and how those of earlier versions become them. */
#include "sqlite_int.h"

#include <assert.h>
#include <stdio.h>

/* "drgm": tells our databases from others' (PRAGMA application_id). */
#define APPLICATION_ID 0x6472676d

/*
 * Each brings the tables from the version before it to its own, in one transaction. Never change one
 * that was released; add another.
 *
 * A task's number n clusters what belongs to it: log and turns have one key, n << 32 | seq or turn, so
 * each is one b-tree and a task's rows lie together. Folded Tasks have a table of their own, so that a task's row
 * stays small while its log grows. state<3: unknown, submitted, working (an IN would cost a temporary
 * table per change).
 */
static const struct migration {
    const char *about;
    const char *sql;
    int (*fn)(dgm_conn *c); /* after the statements; NULL: they are enough */
} migrations[] = {
    {"tasks, logs, turns, taken message ids",
     "CREATE TABLE tasks("
     " n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL, id TEXT NOT NULL,"
     " context TEXT NOT NULL, agent TEXT NOT NULL, state INTEGER NOT NULL,"
     " created_ms INTEGER NOT NULL, status_ms INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
     " UNIQUE(tenant,principal,id)) STRICT;"
     "CREATE INDEX tasks_by_status ON tasks(tenant,principal,status_ms,id,state,agent);"
     "CREATE INDEX tasks_by_context ON tasks(tenant,principal,context);"
     "CREATE INDEX tasks_unfinished ON tasks(tenant,principal,id) WHERE state<3;"
     "CREATE TABLE folds(task INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL)"
     " STRICT;"
     "CREATE TABLE log(at INTEGER PRIMARY KEY, n INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"
     "CREATE TABLE turns("
     " at INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
     " ended_ms INTEGER NOT NULL, protocol TEXT NOT NULL, caller TEXT NOT NULL,"
     " request TEXT NOT NULL, previous TEXT NOT NULL) STRICT;"
     "CREATE INDEX turns_by_caller ON turns(caller,protocol) WHERE caller<>'';"
     "CREATE INDEX turns_by_end ON turns(ended_ms) WHERE ended_ms>0;"
     "CREATE TABLE dedupe("
     " tenant TEXT NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL, context TEXT NOT NULL,"
     " message TEXT NOT NULL, digest BLOB NOT NULL, task TEXT NOT NULL, turn INTEGER NOT NULL,"
     " expires_ms INTEGER NOT NULL, PRIMARY KEY(tenant,principal,agent,context,message))"
     " STRICT, WITHOUT ROWID;"
     "CREATE INDEX dedupe_by_expiry ON dedupe(expires_ms) WHERE expires_ms>0;"
     "CREATE TABLE probe(n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;"},
    /* What a statement compares first differs in every row now; a turn holds the message id that began
     * it, of a turn that was trimmed nothing else. */
    {"message ids with their turns, fewer indexes",
     "CREATE TABLE new_tasks("
     " n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL, id TEXT NOT NULL,"
     " context TEXT NOT NULL, agent TEXT NOT NULL, state INTEGER NOT NULL,"
     " created_ms INTEGER NOT NULL, status_ms INTEGER NOT NULL, last_seq INTEGER NOT NULL) STRICT;"
     "INSERT INTO new_tasks SELECT n,tenant,principal,id,context,agent,state,created_ms,status_ms,"
     "last_seq FROM tasks;"
     "CREATE TABLE new_turns("
     " at INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
     " ended_ms INTEGER NOT NULL, protocol TEXT NOT NULL, caller TEXT NOT NULL,"
     " request TEXT NOT NULL, previous TEXT NOT NULL, message TEXT NOT NULL,"
     " scope INTEGER NOT NULL, known_ms INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;"
     "INSERT INTO new_turns SELECT at,first_seq,last_seq,ended_ms,protocol,caller,request,previous,"
     "'',0,0,x'' FROM turns;"
     /* those within a context first; the others take their place */
     "INSERT INTO new_turns SELECT t.n<<32|d.turn,kept.first_seq,kept.first_seq-1,0,'','','','',"
     "d.message,dgm_scope(d.tenant,d.principal,d.agent,d.context),d.expires_ms,d.digest"
     " FROM dedupe d JOIN tasks t ON t.tenant=d.tenant AND t.principal=d.principal AND t.id=d.task"
     " JOIN (SELECT at>>32 AS task,max(min(first_seq),2) AS first_seq FROM turns GROUP BY 1) kept"
     " ON kept.task=t.n"
     " WHERE d.expires_ms=0 OR d.expires_ms>1000*unixepoch() ORDER BY d.context DESC"
     " ON CONFLICT(at) DO UPDATE SET message=excluded.message,scope=excluded.scope,"
     "known_ms=excluded.known_ms,digest=excluded.digest;"
     "DROP TABLE dedupe; DROP TABLE turns; DROP TABLE tasks;"
     "ALTER TABLE new_tasks RENAME TO tasks; ALTER TABLE new_turns RENAME TO turns;"
     "CREATE UNIQUE INDEX tasks_by_id ON tasks(id,tenant,principal);"
     "CREATE INDEX tasks_by_status ON tasks(tenant,principal,status_ms,id,state,agent);"
     "CREATE INDEX tasks_by_context ON tasks(context,tenant,principal);"
     "CREATE INDEX tasks_unfinished ON tasks(tenant,principal,id) WHERE state<3;"
     "CREATE INDEX turns_by_caller ON turns(caller,protocol) WHERE caller<>'';"
     "CREATE INDEX turns_by_message ON turns(message,scope) WHERE message<>'';"},
    {"calls that wait for their callers, notes",
     "CREATE TABLE calls("
     " n INTEGER PRIMARY KEY, call TEXT NOT NULL, tenant TEXT NOT NULL, principal TEXT NOT NULL,"
     " agent TEXT NOT NULL, task INTEGER NOT NULL) STRICT;"
     "CREATE UNIQUE INDEX calls_by_id ON calls(call,tenant,principal,agent);"
     "CREATE INDEX calls_by_task ON calls(task);"
     "CREATE TABLE notes("
     " n INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, tenant TEXT NOT NULL,"
     " principal TEXT NOT NULL, expires_ms INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
     "CREATE UNIQUE INDEX notes_by_name ON notes(name,kind,tenant,principal);"
     "CREATE INDEX notes_by_expiry ON notes(expires_ms) WHERE expires_ms>0;"},
    {"folded Tasks without progress texts", "", dgm_schema_migrate_folds},
    {"the tasks of a context in the order of their creation",
     "DROP INDEX tasks_by_context;"
     "CREATE INDEX tasks_by_context ON tasks(context,tenant,principal,agent,created_ms);",
     NULL},
    /* is_stored=0: only its writes are stored. number: of the value in checkpoint_values; 0: it is in the row. */
    {"checkpoints of graphs",
     "CREATE TABLE threads("
     " n INTEGER PRIMARY KEY, thread TEXT NOT NULL, agent TEXT NOT NULL,"
     " touched_ms INTEGER NOT NULL) STRICT;"
     "CREATE UNIQUE INDEX threads_by_name ON threads(thread,agent);"
     "CREATE INDEX threads_by_time ON threads(touched_ms);"
     "CREATE TABLE checkpoints("
     " n INTEGER PRIMARY KEY, thread INTEGER NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL,"
     " is_stored INTEGER NOT NULL, writes INTEGER NOT NULL, writes_bytes INTEGER NOT NULL,"
     " parent TEXT NOT NULL, run TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL,"
     " number INTEGER NOT NULL, meta_type TEXT NOT NULL, meta_size INTEGER NOT NULL,"
     " meta_number INTEGER NOT NULL, meta_body BLOB NOT NULL, body BLOB NOT NULL) STRICT;"
     "CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints(thread,ns,id);"
     "CREATE INDEX checkpoints_by_run ON checkpoints(run) WHERE run<>'';"
     "CREATE TABLE checkpoint_writes("
     " n INTEGER PRIMARY KEY, checkpoint INTEGER NOT NULL, task TEXT NOT NULL,"
     " idx INTEGER NOT NULL, channel TEXT NOT NULL, path TEXT NOT NULL, type TEXT NOT NULL,"
     " size INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
     "CREATE UNIQUE INDEX checkpoint_writes_by_key ON checkpoint_writes(checkpoint,task,idx);"
     "CREATE TABLE checkpoint_values(at INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;",
     NULL},
};
#define N_MIGRATIONS DGM_SCHEMA_VERSION
_Static_assert(sizeof migrations / sizeof *migrations == N_MIGRATIONS, "one per version");

static int exec(dgm_conn *c, const char *sql)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL);
}

static int ask(dgm_conn *c, const char *sql, int64_t *ret)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);
    if (rc)
        return rc;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

dgm_code dgm_conn_identify(dgm_conn *c, int *ret_version, dgm_err *err)
{
    int64_t application = 0, tables = 0, version = 0;
    int rc = ask(c, "PRAGMA application_id", &application);
    if (!rc)
        rc = ask(c, "SELECT count(*) FROM sqlite_schema", &tables);
    if (!rc && application == APPLICATION_ID)
        rc = ask(c, "SELECT max(version) FROM migrations", &version);
    if (rc)
        return dgm_conn_fault(c, rc, false, err);
    if (application != APPLICATION_ID && tables > 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%.160s is a database of another program: choose another path", c->path);
    if (version > N_MIGRATIONS)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%.160s was written by a newer dragoman (tables of version %d, this one "
                        "supports %d): use the newer one, or restore an older backup",
                        c->path, (int)version, N_MIGRATIONS);
    *ret_version = (int)version;
    return DGM_OK;
}

/* dgm_scope(tenant, principal, agent, context) */
static void sql_scope(sqlite3_context *to, int argc, sqlite3_value **argv)
{
    dgm_str texts[4];
    assert(argc == 4);
    for (int i = 0; i < argc; i++) {
        const void *p = sqlite3_value_blob(argv[i]);
        texts[i] = (dgm_str){p, (size_t)sqlite3_value_bytes(argv[i])};
    }
    sqlite3_result_int64(to,
                         (int64_t)dgm_scope((dgm_owner){texts[0], texts[1]}, texts[2], texts[3]));
}

static int migrate_one(dgm_conn *c, int version)
{
    char note[256];
    int rc = exec(c, "BEGIN EXCLUSIVE");
    if (!rc && version == 0) {
        snprintf(note, sizeof note, "PRAGMA application_id=%d", APPLICATION_ID);
        rc = exec(c, note);
        if (!rc)
            rc = exec(c, "CREATE TABLE migrations(version INTEGER PRIMARY KEY,"
                         " applied TEXT NOT NULL, about TEXT NOT NULL) STRICT");
    }
    if (!rc)
        rc = exec(c, migrations[version].sql);
    if (!rc && migrations[version].fn)
        rc = migrations[version].fn(c);
    snprintf(note, sizeof note,
             "INSERT INTO migrations VALUES(%d,strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ'),'%s')",
             version + 1, migrations[version].about);
    if (!rc)
        rc = exec(c, note);
    if (!rc)
        rc = exec(c, "COMMIT");
    if (rc && !sqlite3_get_autocommit(c->db))
        exec(c, "ROLLBACK");
    return rc;
}

int dgm_schema_migrate(dgm_conn *c, int version)
{
    int rc = sqlite3_create_function(c->db, "dgm_scope", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                     NULL, sql_scope, NULL, NULL);
    for (; !rc && version < N_MIGRATIONS; version++)
        rc = migrate_one(c, version);
    return rc;
}
