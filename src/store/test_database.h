/*
 * test_database.h - for the tests of stores: a PostgreSQL, and a database of the test program's own in it.
 *
 * tests/run starts one server for all programs (DRAGOMAN_TEST_POSTGRES); a program that runs alone starts its own, which
 * ends with it.
 */
#pragma once

#include "support/check.h"

#include <libpq-fe.h>
#include <unistd.h>

/* The first line that a command prints. */
static inline void first_line_of(const char *command, char *line, size_t size)
{
    FILE *p = popen(command, "r");
    assert_non_null(p);
    if (!fgets(line, (int)size, p))
        fail_msg("%s: no answer", command);
    pclose(p);
    line[strcspn(line, "\n")] = 0;
}

/* "host=... user=..." */
static inline const char *postgres_server(void)
{
    static char server[200];
    const char *given = getenv("DRAGOMAN_TEST_POSTGRES");
    char command[4200];
    if (*server)
        return server;
    if (given && *given) {
        snprintf(server, sizeof server, "%s", given);
        return server;
    }
    snprintf(command, sizeof command, "%s/tests/postgres/server start --until %ld", DGM_ROOT,
             (long)getpid());
    first_line_of(command, server, sizeof server);
    return server;
}

static inline PGconn *postgres_connect(const char *dbname)
{
    char conninfo[300];
    snprintf(conninfo, sizeof conninfo, "%s dbname=%s", postgres_server(), dbname);
    PGconn *c = PQconnectdb(conninfo);
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    return c;
}

/* The first column of the first row, as a number. */
static inline long postgres_ask(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(c));
    long n = PQntuples(r) ? atol(PQgetvalue(r, 0, 0)) : 0;
    PQclear(r);
    return n;
}

static inline void ignore_notices(void *arg, const PGresult *r)
{
    (void)arg, (void)r;
}

/* This program's database, empty. */
static inline void postgres_url(char *url, size_t size)
{
    static char dbname[40];
    if (!*dbname) {
        char sql[100];
        snprintf(dbname, sizeof dbname, "t%ld", (long)getpid());
        snprintf(sql, sizeof sql, "CREATE DATABASE %s", dbname);
        PGconn *c = postgres_connect("postgres");
        postgres_ask(c, sql);
        PQfinish(c);
    }
    PGconn *c = postgres_connect(dbname);
    PQsetNoticeReceiver(c, ignore_notices, NULL);
    postgres_ask(c, "DROP SCHEMA IF EXISTS dragoman CASCADE");
    PQfinish(c);
    snprintf(url, size, "postgres:%s dbname=%s", postgres_server(), dbname);
}

/* Nothing is left over in the tables, and nothing is missing. */
static inline void check_postgres(const char *url)
{
    static const char *const nothing[] = {
        "SELECT count(*) FROM dragoman.log l WHERE NOT EXISTS (SELECT 1 FROM dragoman.tasks t"
        " WHERE t.tenant=l.tenant AND t.principal=l.principal AND t.id=l.task)",
        "SELECT count(*) FROM dragoman.turns l WHERE NOT EXISTS (SELECT 1 FROM dragoman.tasks t"
        " WHERE t.tenant=l.tenant AND t.principal=l.principal AND t.id=l.task)",
        "SELECT count(*) FROM dragoman.messages l WHERE NOT EXISTS (SELECT 1 FROM dragoman.tasks t"
        " WHERE t.tenant=l.tenant AND t.principal=l.principal AND t.id=l.task)",
        "SELECT count(*) FROM dragoman.calls l WHERE NOT EXISTS (SELECT 1 FROM dragoman.tasks t"
        " WHERE t.tenant=l.tenant AND t.principal=l.principal AND t.id=l.task)",
        "SELECT count(*) FROM dragoman.checkpoints c WHERE NOT EXISTS (SELECT 1"
        " FROM dragoman.threads h WHERE h.thread_key=c.thread_key)",
        "SELECT count(*) FROM dragoman.checkpoints c WHERE (writes,writes_bytes)<>(SELECT count(*),"
        "coalesce(sum(size),0) FROM dragoman.checkpoint_writes w WHERE w.thread_key=c.thread_key"
        " AND w.checkpoint_key=c.checkpoint_key)",
        "SELECT count(*) FROM dragoman.checkpoint_writes w WHERE NOT EXISTS (SELECT 1"
        " FROM dragoman.checkpoints c WHERE w.thread_key=c.thread_key"
        " AND w.checkpoint_key=c.checkpoint_key)",
        "SELECT count(*) FROM dragoman.checkpoint_values v WHERE NOT EXISTS (SELECT 1"
        " FROM dragoman.checkpoints c WHERE c.thread_key=v.thread_key"
        " AND v.number IN (c.number,c.meta_number)) AND NOT EXISTS (SELECT 1"
        " FROM dragoman.checkpoint_writes w WHERE w.thread_key=v.thread_key"
        " AND w.number=v.number)",
        "SELECT count(*) FROM (SELECT number,meta_number,size,meta_size,thread_key"
        " FROM dragoman.checkpoints UNION ALL SELECT number,0,size,0,thread_key"
        " FROM dragoman.checkpoint_writes) o WHERE (number<>0 AND size<>(SELECT"
        " sum(length(bytes)) FROM dragoman.checkpoint_values v WHERE v.thread_key=o.thread_key"
        " AND v.number=o.number)) OR (meta_number<>0 AND meta_size<>(SELECT sum(length(bytes))"
        " FROM dragoman.checkpoint_values v WHERE v.thread_key=o.thread_key"
        " AND v.number=o.meta_number))",
    };
    PGconn *c = PQconnectdb(url + strlen("postgres:"));
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        if (postgres_ask(c, nothing[i]) != 0)
            fail_msg("left over: %s", nothing[i]);
    }
    PQfinish(c);
}
