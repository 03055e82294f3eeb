/* store/postgres/postgres_conn.c - conninfo without secrets, connections, faults as sentences. */
#include "postgres_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- conninfo -------------------------------------------------------------------------------------- */

/* Options that are, or name in the open, a secret. */
static bool is_secret(const char *keyword)
{
    return strcmp(keyword, "password") == 0 || strcmp(keyword, "sslpassword") == 0;
}

static void show_options(pg_target *t, const PQconninfoOption *options)
{
    static const char *const shown[] = {"host", "hostaddr", "port", "dbname", "user", "service"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const PQconninfoOption *o = options;
        size_t n = strlen(t->shown);
        while (o->keyword && strcmp(o->keyword, shown[i]) != 0)
            o++;
        if (o->keyword && o->val && *o->val && n + 1 < sizeof t->shown)
            snprintf(t->shown + n, sizeof t->shown - n, "%s%s=%s", n ? " " : "", o->keyword,
                     o->val);
    }
}

/* Ours, before what is libpq's. */
#define RELAXED "relaxed_deltas=on "

dgm_code dgm_pg_target_parse(const char *conninfo, pg_target *ret_target, dgm_err *err)
{
    char *why = NULL;
    dgm_code code = DGM_OK;
    *ret_target = (pg_target){0};
    if (strncmp(conninfo, RELAXED, strlen(RELAXED)) == 0) {
        ret_target->relaxed = true;
        conninfo += strlen(RELAXED);
    }
    PQconninfoOption *options = PQconninfoParse(conninfo, &why);
    PQfreemem(why); /* it may quote a secret */
    if (!options)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "invalid connection string after postgres: write "
                        "postgres:host=... dbname=... user=... or postgres://user@host/dbname");
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (is_secret(o->keyword) && o->val && *o->val)
            code = dgm_fail(err, DGM_BAD_PARAMS, NULL,
                            "the connection string of PostgreSQL contains a %s: other users could "
                            "read it: set PGPASSWORD, or write it to a PGPASSFILE or a service "
                            "file",
                            o->keyword);
    }
    show_options(ret_target, options);
    PQconninfoFree(options);
    if (code)
        return code;
    if (!*ret_target->shown)
        snprintf(ret_target->shown, sizeof ret_target->shown, "of the environment (PGHOST, ...)");
    ret_target->conninfo = dgm_xmalloc(strlen(conninfo) + 1);
    memcpy(ret_target->conninfo, conninfo, strlen(conninfo) + 1);
    return DGM_OK;
}

void dgm_pg_target_done(pg_target *t)
{
    free(t->conninfo);
    t->conninfo = NULL;
}

/* ---- faults ---------------------------------------------------------------------------------------- */

static const char *pg_state(const PGresult *r)
{
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    return state ? state : "";
}

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, 2) == 0;
}

bool dgm_pg_is_conflict(const PGresult *r)
{
    return is_class(pg_state(r), "40");
}

bool dgm_pg_is_refused(const PGresult *r)
{
    return strcmp(pg_state(r), "22012") == 0;
}

bool dgm_pg_is_odd(const PGresult *r)
{
    const char *state = pg_state(r);
    /* data, constraints, syntax, a program limit (an index row); others are of the server */
    return is_class(state, "22") || is_class(state, "23") || is_class(state, "42") ||
           is_class(state, "54") || is_class(state, "0A") || is_class(state, "21");
}

bool dgm_pg_is_ending(const PGresult *r)
{
    return strncmp(pg_state(r), "57P", 3) == 0;
}

/* The first line of a message, without its severity. */
static int first_line(const char *text, const char **ret_text)
{
    size_t n = text ? strcspn(text, "\n") : 0;
    *ret_text = n ? text : "no answer";
    return n ? (int)(n < 200 ? n : 200) : 9;
}

dgm_code dgm_pg_fault(PGconn *c, const PGresult *r, bool reading, dgm_err *err)
{
    const char *state = pg_state(r), *doing = reading ? "read" : "write";
    if (is_class(state, "53") && strcmp(state, "53100") == 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot %s the database: its disk is full: free some space on the server "
                        "of PostgreSQL; writes then continue",
                        doing);
    if (strcmp(state, "53300") == 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "PostgreSQL has no free connection: increase its max_connections, or "
                        "reduce `loops`");
    if (strcmp(state, "25006") == 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot write the database: it is read-only (a standby?): add "
                        "target_session_attrs=read-write to the connection string");
    if (strcmp(state, "26000") == 0 || strcmp(state, "42P05") == 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "a connection to PostgreSQL has lost its prepared statements, for example "
                        "by PgBouncer with pool_mode=transaction: set pool_mode=session");
    if (is_class(state, "28"))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "PostgreSQL refuses this user: set PGPASSWORD, PGPASSFILE or a service "
                        "file, and allow the user in pg_hba.conf");
    if (strcmp(state, "42501") == 0)
        return dgm_fail(
            err, DGM_UNAVAILABLE, NULL,
            "the user of PostgreSQL is not allowed to %s the tables: make it the owner of the "
            "database",
            doing);
    if (strcmp(state, "57014") == 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "timeout: the database did not answer in time: try again later");
    if (is_class(state, "57") || is_class(state, "08"))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the database is shutting down or starting: try again later");
    if (is_class(state, "XX"))
        return dgm_fail(err, reading ? DGM_INTERNAL : DGM_UNAVAILABLE, NULL,
                        "the database is damaged (%.100s): restore a backup",
                        PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
    if (*state) {
        const char *primary = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        return dgm_fail(err, dgm_pg_is_odd(r) ? DGM_INTERNAL : DGM_UNAVAILABLE, NULL,
                        "the database: %.200s (SQLSTATE %s)", primary ? primary : "error", state);
    }
    (void)c; /* its message names the server: callers would read it */
    return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the database cannot be reached: try again later");
}

/* ---- connecting ------------------------------------------------------------------------------------ */

/* What the connection string does not set: so that a network that was cut is noticed. */
static const char *const defaults[][2] = {
    {"connect_timeout", "5"},         {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},     {"keepalives_count", "3"},
    {"tcp_user_timeout", "15000"},    {"application_name", "dragoman"},
    {"client_encoding", "SQL_ASCII"},
};
#define N_DEFAULTS (sizeof defaults / sizeof *defaults)

static PGconn *open_conn(const pg_target *t, const PGconn *like)
{
    const char *keys[N_DEFAULTS + 5], *vals[N_DEFAULTS + 5];
    size_t n = 0;
    for (; n < N_DEFAULTS; n++) {
        keys[n] = defaults[n][0];
        vals[n] = defaults[n][1];
    }
    keys[n] = "dbname"; /* expanded: what it contains replaces what is before it */
    vals[n++] = t->conninfo;
    if (like) {
        const char *const names[] = {"host", "hostaddr", "port"};
        const char *const own[] = {PQhost(like), PQhostaddr(like), PQport(like)};
        for (int i = 0; i < 3; i++, n++) {
            keys[n] = names[i];
            vals[n] = own[i];
        }
    }
    keys[n] = vals[n] = NULL;
    return PQconnectdbParams(keys, vals, 1);
}

/* A reader writes owners of tasks only: an append that needs one is behind it in the WAL.
 * Joins within a statement: few rows against an index, whatever the statistics say. */
#define SETTINGS                                                                                   \
    "SET enable_seqscan=off; SET enable_hashjoin=off; SET enable_mergejoin=off; SET jit=off;"      \
    "SET enable_material=off; SET statement_timeout=30000; SET lock_timeout=20000;"                \
    "SET idle_in_transaction_session_timeout=60000; SET tcp_keepalives_idle=10;"                   \
    "SET tcp_keepalives_interval=5; SET tcp_keepalives_count=3"

static bool is_of(pg_sql which, pg_role role)
{
    bool writes = which == PG_SQL_BATCH || which >= PG_SQL_PART;
    return writes == (role == PG_WRITER);
}

const char *dgm_pg_sql_text(pg_sql which)
{
    if (which == PG_SQL_BATCH)
        return dgm_pg_sql_batch;
    return which < PG_SQL_PART ? dgm_pg_sql_reads[which] : dgm_pg_sql_changes[which];
}

static dgm_code prepare_all(PGconn *c, pg_role role, dgm_err *err)
{
    dgm_code code = DGM_OK;
    for (pg_sql which = 0; which < PG_N_SQL && !code; which++) {
        if (!is_of(which, role))
            continue;
        PGresult *r = dgm_pg_await(
            c, PQsendPrepare(c, dgm_pg_sql_name(which), dgm_pg_sql_text(which), 0, NULL),
            PG_ANSWER_MS);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            code = dgm_pg_fault(c, r, role != PG_WRITER, err);
        PQclear(r);
    }
    return code;
}

static void ignore_notice(void *arg, const PGresult *r)
{
    (void)arg, (void)r;
}

dgm_code dgm_pg_connect(const pg_target *t, pg_role role, PGconn **ret_conn, dgm_err *err)
{
    return dgm_pg_connect_like(t, role, NULL, ret_conn, err);
}

dgm_code dgm_pg_connect_like(const pg_target *t, pg_role role, const PGconn *like,
                             PGconn **ret_conn, dgm_err *err)
{
    dgm_code code = DGM_OK;
    PGconn *c = open_conn(t, like);
    *ret_conn = NULL;
    if (!c || PQstatus(c) != CONNECTION_OK) {
        const char *text;
        int n = first_line(PQerrorMessage(c), &text);
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "no connection to the database %s: %.*s: is PostgreSQL running, and may "
                        "this user connect?",
                        t->shown, n, text);
    }
    if (!code && PQserverVersion(c) < 150000)
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the database %s is PostgreSQL %d: version 15 or newer is needed", t->shown,
                        PQserverVersion(c) / 10000);
    if (!code) {
        PQsetNoticeReceiver(c, ignore_notice, NULL);
        PGresult *r = dgm_pg_exec_text(c,
                                       role == PG_CONTROL ? SETTINGS
                                           "; SET statement_timeout=0; SET lock_timeout=0"
                                       : role == PG_READER ? SETTINGS "; SET synchronous_commit=off"
                                                           : SETTINGS,
                                       PG_ANSWER_MS);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            code = dgm_pg_fault(c, r, false, err);
        PQclear(r);
    }
    if (!code && role != PG_CONTROL)
        code = prepare_all(c, role, err);
    if (!code && role != PG_CONTROL && (PQsetnonblocking(c, 1) != 0 || !PQenterPipelineMode(c)))
        code = dgm_pg_fault(c, NULL, false, err);
    if (code) {
        PQfinish(c);
        return code;
    }
    *ret_conn = c;
    return DGM_OK;
}
