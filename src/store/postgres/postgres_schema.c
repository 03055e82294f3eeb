/*
 * store/postgres/postgres_schema.c - the tables, and their migrations.
 *
 * Every primary key begins with the key of a partition: tenant (then principal and task) or, for checkpoints, the thread.
 * So the tables can be distributed by it, except the small tables of the servers themselves. There are no serial numbers as
 * keys; `n` is an order only. Texts are bytea: they compare by bytes, and may contain any byte.
 *
 * The old and the new program may serve together while it is replaced: a migration only adds tables, columns with
 * defaults, and indexes. The old program ignores them.
 */
#include "postgres_int.h"

#include <stdio.h>
#include <stdlib.h>

/* "drgm", "lock"; "drgm", "migr": keys of advisory locks */
#define MIGRATION_LOCK "7237128888997146738"

static const struct migration {
    const char *about;
    const char *sql;
} migrations[] = {
    {"tasks, logs, turns, message ids, calls, notes, checkpoints of graphs",
     "CREATE SEQUENCE dragoman.numbers;"
     /* record_ms: of the last record. tail: of the last record, see postgres_batch_rows.c. owner: the replica; 0: none. */
     "CREATE TABLE dragoman.tasks("
     " tenant bytea NOT NULL, principal bytea NOT NULL, id bytea NOT NULL,"
     " n bigint NOT NULL DEFAULT nextval('dragoman.numbers'),"
     " context bytea NOT NULL, agent bytea NOT NULL, state smallint NOT NULL,"
     " created_ms bigint NOT NULL, status_ms bigint NOT NULL, last_seq bigint NOT NULL,"
     " record_ms bigint NOT NULL, tail bigint NOT NULL, folded_seq bigint NOT NULL, folded bytea,"
     " owner bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0,"
     " PRIMARY KEY(tenant,principal,id)) WITH (fillfactor=85);"
     "CREATE INDEX tasks_by_status ON dragoman.tasks(tenant,principal,status_ms,id,state,agent);"
     "CREATE INDEX tasks_by_context ON dragoman.tasks(tenant,principal,context,agent,created_ms,n);"
     "CREATE INDEX tasks_unfinished ON dragoman.tasks(tenant,principal,id) WHERE state<3;"
     "CREATE INDEX tasks_owned ON dragoman.tasks(owner) WHERE state<3;"
     "CREATE INDEX tasks_ended ON dragoman.tasks(status_ms) WHERE state>=3;"
     "CREATE TABLE dragoman.log("
     " tenant bytea NOT NULL, principal bytea NOT NULL, task bytea NOT NULL,"
     " first_seq bigint NOT NULL, n bigint NOT NULL, bytes bytea NOT NULL,"
     " PRIMARY KEY(tenant,principal,task,first_seq)) PARTITION BY HASH(task);"
     "DO $$BEGIN FOR i IN 0..15 LOOP EXECUTE format('CREATE TABLE dragoman.log_%s PARTITION OF"
     " dragoman.log FOR VALUES WITH (MODULUS 16, REMAINDER %s)',i,i); END LOOP; END$$;"
     "CREATE TABLE dragoman.turns("
     " tenant bytea NOT NULL, principal bytea NOT NULL, task bytea NOT NULL, turn bigint NOT NULL,"
     " first_seq bigint NOT NULL, last_seq bigint NOT NULL, ended_ms bigint NOT NULL,"
     " protocol bytea NOT NULL, caller bytea NOT NULL, request bytea NOT NULL,"
     " previous bytea NOT NULL, PRIMARY KEY(tenant,principal,task,turn)) WITH (fillfactor=85);"
     "CREATE INDEX turns_by_caller ON dragoman.turns(tenant,principal,caller,protocol)"
     " WHERE caller<>'';"
     "CREATE INDEX turns_by_end ON dragoman.turns(ended_ms,tenant,principal,task,turn)"
     " WHERE ended_ms>0;"
     /* scope: dgm_scope(). A message that named no context has two rows. expires_ms: 0: with its task */
     "CREATE TABLE dragoman.messages("
     " tenant bytea NOT NULL, principal bytea NOT NULL, message bytea NOT NULL,"
     " scope bigint NOT NULL, task bytea NOT NULL, turn bigint NOT NULL, digest bytea NOT NULL,"
     " expires_ms bigint NOT NULL, PRIMARY KEY(tenant,principal,message,scope));"
     "CREATE INDEX messages_by_task ON dragoman.messages(task,tenant,principal);"
     "CREATE INDEX messages_by_expiry ON dragoman.messages(expires_ms) WHERE expires_ms>0;"
     "CREATE TABLE dragoman.calls("
     " tenant bytea NOT NULL, principal bytea NOT NULL, call bytea NOT NULL, agent bytea NOT NULL,"
     " task bytea NOT NULL, n bigint NOT NULL DEFAULT nextval('dragoman.numbers'),"
     " PRIMARY KEY(tenant,principal,call,agent));"
     "CREATE INDEX calls_by_task ON dragoman.calls(tenant,principal,task);"
     "CREATE TABLE dragoman.notes("
     " tenant bytea NOT NULL, principal bytea NOT NULL, kind bytea NOT NULL, name bytea NOT NULL,"
     " expires_ms bigint NOT NULL, text bytea NOT NULL,"
     " PRIMARY KEY(tenant,principal,kind,name));"
     "CREATE INDEX notes_by_expiry ON dragoman.notes(expires_ms) WHERE expires_ms>0;"
     /* Checkpoints. thread_key: SHA-256 of agent and thread; checkpoint_key: of ns and id. */
     "CREATE TABLE dragoman.threads("
     " thread_key bytea PRIMARY KEY, agent bytea NOT NULL, thread bytea NOT NULL,"
     " touched_ms bigint NOT NULL);"
     "CREATE INDEX threads_by_time ON dragoman.threads(touched_ms);"
     /* is_stored 0: only its writes are stored. number: of the value in checkpoint_values; 0: it is in the row. */
     "CREATE TABLE dragoman.checkpoints("
     " thread_key bytea NOT NULL, checkpoint_key bytea NOT NULL, ns bytea NOT NULL,"
     " id bytea NOT NULL, is_stored bigint NOT NULL, writes bigint NOT NULL,"
     " writes_bytes bigint NOT NULL, parent bytea NOT NULL, run bytea NOT NULL,"
     " type bytea NOT NULL, size bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL,"
     " meta_type bytea NOT NULL, meta_size bigint NOT NULL, meta_number bigint NOT NULL,"
     " meta_body bytea NOT NULL, PRIMARY KEY(thread_key,checkpoint_key));"
     "CREATE INDEX checkpoints_by_id ON dragoman.checkpoints(thread_key,ns,id);"
     "CREATE INDEX checkpoints_by_run ON dragoman.checkpoints(run) WHERE run<>'';"
     "CREATE TABLE dragoman.checkpoint_writes("
     " thread_key bytea NOT NULL, checkpoint_key bytea NOT NULL, task bytea NOT NULL,"
     " idx bigint NOT NULL, channel bytea NOT NULL, path bytea NOT NULL, type bytea NOT NULL,"
     " size bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL,"
     " PRIMARY KEY(thread_key,checkpoint_key,task,idx));"
     "CREATE TABLE dragoman.checkpoint_values("
     " thread_key bytea NOT NULL, number bigint NOT NULL, part bigint NOT NULL,"
     " bytes bytea NOT NULL, PRIMARY KEY(thread_key,number,part));"
     "ALTER TABLE dragoman.checkpoint_values ALTER COLUMN bytes SET STORAGE EXTERNAL;"
     /* The servers and what they send to each other. Small, and not of a partition: reference tables where tables are
      * distributed. dead: its tasks are taken; the row stays for a while, for appends that were still on their way. */
     "CREATE TABLE dragoman.replicas("
     " id bigint PRIMARY KEY, name bytea NOT NULL, until timestamptz NOT NULL,"
     " dead boolean NOT NULL DEFAULT false, probe bigint NOT NULL DEFAULT 0, boot bytea NOT NULL,"
     " namespace bytea NOT NULL, pid bigint NOT NULL, started bytea NOT NULL)"
     " WITH (fillfactor=50);"
     "CREATE TABLE dragoman.commands("
     " replica bigint NOT NULL, sender bigint NOT NULL, id bigint NOT NULL,"
     " tenant bytea NOT NULL, principal bytea NOT NULL, task bytea NOT NULL, kind bytea NOT NULL,"
     " body bytea NOT NULL, until timestamptz NOT NULL, PRIMARY KEY(replica,sender,id));"
     "CREATE TABLE dragoman.answers("
     " replica bigint NOT NULL, id bigint NOT NULL, code bigint NOT NULL, pointer bytea NOT NULL,"
     " message bytea NOT NULL, body bytea, until timestamptz NOT NULL, PRIMARY KEY(replica,id));"
     "CREATE TABLE dragoman.jobs(name bytea PRIMARY KEY, replica bigint NOT NULL);"},
};
_Static_assert(sizeof migrations / sizeof *migrations == DGM_PG_SCHEMA_VERSION, "one per version");

static dgm_code run_sql(PGconn *c, const char *sql, dgm_err *err)
{
    PGresult *r = PQexec(c, sql);
    ExecStatusType status = PQresultStatus(r);
    dgm_code code = DGM_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        code = dgm_pg_fault(c, r, false, err);
    PQclear(r);
    return code;
}

static dgm_code pg_version(PGconn *c, const pg_target *t, int *ret_version, dgm_err *err)
{
    PGresult *r = PQexec(c, "SELECT coalesce(max(version),0)::text FROM dragoman.migrations");
    dgm_code code = DGM_OK;
    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        *ret_version = atoi(PQgetvalue(r, 0, 0));
    else
        code = dgm_pg_fault(c, r, false, err);
    PQclear(r);
    if (!code && *ret_version > DGM_PG_SCHEMA_VERSION)
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the database %s was written by a newer dragoman (tables of version %d, "
                        "this one supports %d): use the newer one",
                        t->shown, *ret_version, DGM_PG_SCHEMA_VERSION);
    return code;
}

static dgm_code migrate_one(PGconn *c, int version, dgm_err *err)
{
    char note[300];
    dgm_code code = run_sql(c, "BEGIN", err);
    if (!code)
        code = run_sql(c, migrations[version].sql, err);
    snprintf(note, sizeof note,
             "INSERT INTO dragoman.migrations(version,about) VALUES(%d,'%s'); COMMIT", version + 1,
             migrations[version].about);
    if (!code)
        code = run_sql(c, note, err);
    if (code)
        PQclear(PQexec(c, "ROLLBACK"));
    return code;
}

/* Several programs may start at once: one migrates, the others wait and find it done. */
dgm_code dgm_pg_migrate(PGconn *c, const pg_target *t, dgm_err *err)
{
    int version = 0;
    dgm_code code = run_sql(c, "SELECT pg_advisory_lock(" MIGRATION_LOCK ")", err);
    if (code)
        return code;
    PGresult *r = PQexec(c, "SELECT 1 FROM pg_tables WHERE schemaname='dragoman'"
                            " AND tablename='migrations'");
    bool is_there = PQntuples(r) > 0;
    PQclear(r);
    if (!is_there)
        code = run_sql(c,
                       "CREATE SCHEMA IF NOT EXISTS dragoman; CREATE TABLE IF NOT EXISTS"
                       " dragoman.migrations(version integer PRIMARY KEY,"
                       " applied timestamptz NOT NULL DEFAULT now(), about text NOT NULL)",
                       err);
    if (!code)
        code = pg_version(c, t, &version, err);
    for (; !code && version < DGM_PG_SCHEMA_VERSION; version++)
        code = migrate_one(c, version, err);
    PQclear(PQexec(c, "SELECT pg_advisory_unlock(" MIGRATION_LOCK ")"));
    return code;
}
