/*
 * store/postgres/postgres_lease.c - the row and the lease of this server, and tasks of dead servers.
 *
 * The row of a server has the end of its lease, by the clock of the database. A server that finds an expired row declares its
 * server dead, but only if it has extended its own row without a gap for the time of one lease: after an outage of the database
 * all rows have expired, and the first server that connects again must not declare the others dead. Servers that have the
 * agent acquire the tasks of a dead server in pages, each task by one server. A server that was declared dead and continues
 * detects this when it extends its lease, and registers with a new id. The row of a dead server is stored for DEAD_ROW_TIME,
 * and its tasks are searched for during that time: an append that it sent before may still create a task.
 *
 * An id is random. One from a sequence could be repeated: a standby that was promoted may not have received the last numbers.
 */
#include "base/ids.h"
#include "postgres_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEAD_ROW_TIME "interval '60 seconds'" /* longer than a statement may take */
#define PAGE_TASKS 200
#define SKIPPED_MS 20 /* at first; then twice as long, up to */
#define MAX_SKIPPED_MS 1000
#define PAGE_OWNED 500
#define OWNED_MS                                                                                   \
    60000 /* how often tasks are searched for that this server has and does not know; */
#define OWNED_LEASES 6 /* but no later than after so many leases */
#define LIVES "NOT r.dead AND r.until>now()"

/* ---- time ---------------------------------------------------------------------------------------------- */

uint64_t dgm_pg_lease_now(void)
{
    struct timespec t;
    int error = -1;
#ifdef CLOCK_BOOTTIME
    error = clock_gettime(CLOCK_BOOTTIME, &t);
#endif
    if (error)
        clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- processes of this machine ----------------------------------------------------------------------- */

/* The process a row belongs to. boot and namespace empty: unknown. */
struct pg_process {
    char boot[64], namespace[200], started[32];
    int64_t pid;
};

static void read_first_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f || !fgets(out, (int)size, f))
        *out = 0;
    out[strcspn(out, "\n")] = 0;
    if (f)
        fclose(f);
}

/* When a process started, in ticks since boot; empty: that cannot be read. */
static void read_started(int64_t pid, char *out, size_t size)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_first_line(path, line, sizeof line);
    const char *at = strrchr(line, ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    size_t n = at ? strcspn(at + 1, " ") : 0;
    snprintf(out, size, "%.*s", (int)n, at ? at + 1 : "");
}

static struct pg_process own_process(void)
{
    struct pg_process p = {.pid = getpid()};
    char host[65] = "";
    read_first_line("/proc/sys/kernel/random/boot_id", p.boot, sizeof p.boot);
    ssize_t n = readlink("/proc/self/ns/pid", p.namespace, 100);
    gethostname(host, sizeof host - 1);
    if (n > 0) /* sandboxes may have equal numbers: the name of the host is different then */
        snprintf(p.namespace + n, sizeof p.namespace - (size_t)n, " %s", host);
    else
        *p.namespace = 0;
    read_started(p.pid, p.started, sizeof p.started);
    return p;
}

/* False if it is uncertain. */
static bool process_is_gone(int64_t pid, dgm_str started)
{
    char now[32];
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return true;
    read_started(pid, now, sizeof now);
    return *now && started.n && !dgm_str_eq(started, dgm_str_from(now));
}

/* ---- this server --------------------------------------------------------------------------------------- */

/* Its id from before is dead: what it left is searched for. */
static void lease_leave(const pg_store *s, PGconn *c, int64_t id)
{
    static const char sql[] =
        "INSERT INTO dragoman.replicas(id,name,until,dead,boot,namespace,pid,started)"
        " VALUES($1::bigint,'',now(),true,'','',0,'')"
        " ON CONFLICT (id) DO UPDATE SET dead=true,until=now()";
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, id);
    PQclear(dgm_pg_exec(c, sql, &a, dgm_pg_share_ms(s)));
    dgm_pg_args_done(&a);
}

/* A server extends its life every third of a lease. One of these may come late. */
static void lease_is_extended(pg_share *h, uint64_t now)
{
    if (now - h->extended_ms > (uint64_t)h->lease_ms * 2 / 3 || !h->steady_ms)
        h->steady_ms = now;
    h->extended_ms = now;
    h->until_ms = now + h->lease_ms;
}

dgm_code dgm_pg_lease_register(pg_store *s, PGconn *c, dgm_err *err)
{
    static const char sql[] =
        "INSERT INTO dragoman.replicas(id,name,until,boot,namespace,pid,started)"
        " VALUES($7::bigint,$1,clock_timestamp()+$2::bigint*interval '1 millisecond',$3,$4,"
        "$5::bigint,$6)";
    struct pg_process p = own_process();
    uint64_t now = dgm_pg_lease_now();
    int64_t id = dgm_random_id();
    dgm_code code = DGM_OK;
    pg_args a;
    if (s->base.replica)
        lease_leave(s, c, s->base.replica);
    dgm_pg_args_init(&a);
    dgm_pg_arg_str(&a, dgm_str_from(s->base.replica_name));
    dgm_pg_arg_int(&a, s->share.lease_ms);
    dgm_pg_arg_str(&a, dgm_str_from(p.boot));
    dgm_pg_arg_str(&a, dgm_str_from(p.namespace));
    dgm_pg_arg_int(&a, p.pid);
    dgm_pg_arg_str(&a, dgm_str_from(p.started));
    dgm_pg_arg_int(&a, id);
    PGresult *r = dgm_pg_exec(c, sql, &a, dgm_pg_share_ms(s));
    if (PQresultStatus(r) == PGRES_COMMAND_OK) {
        s->base.replica = id;
        s->share.steady_ms = 0;
        lease_is_extended(&s->share, now);
    } else {
        code = dgm_pg_fault(c, r, false, err);
    }
    PQclear(r);
    dgm_pg_args_done(&a);
    return code;
}

bool dgm_pg_lease_extend(pg_store *s)
{
    static const char sql[] = "UPDATE dragoman.replicas SET until=clock_timestamp()+$2::bigint"
                              "*interval '1 millisecond' WHERE id=$1::bigint AND NOT dead"
                              " RETURNING id";
    uint64_t now = dgm_pg_lease_now(); /* before: the database counts from later */
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, s->base.replica);
    dgm_pg_arg_int(&a, s->share.lease_ms);
    PGresult *r = dgm_pg_share_exec(s, sql, &a);
    bool ok = r && PQntuples(r) == 1;
    s->share.is_dead = r && !ok;
    if (ok)
        lease_is_extended(&s->share, now);
    PQclear(r);
    dgm_pg_args_done(&a);
    return ok;
}

void dgm_pg_lease_end(pg_store *s)
{
    static const char sql[] = "UPDATE dragoman.replicas SET dead=true,until=now()"
                              " WHERE id=$1::bigint";
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, s->base.replica);
    PQclear(dgm_pg_share_exec(s, sql, &a));
    dgm_pg_args_done(&a);
}

/* ---- the others ------------------------------------------------------------------------------------------ */

static void bury_one(pg_store *s, int64_t id)
{
    static const char sql[] = "UPDATE dragoman.replicas SET dead=true,until=now()"
                              " WHERE id=$1::bigint AND NOT dead";
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, id);
    PQclear(dgm_pg_share_exec(s, sql, &a));
    dgm_pg_args_done(&a);
}

/* Those whose process ran on this machine, and does not any more. */
static void bury_processes(pg_store *s)
{
    static const char sql[] = "SELECT id,pid,started FROM dragoman.replicas WHERE NOT dead"
                              " AND boot=$1 AND namespace=$2 AND id<>$3::bigint";
    struct pg_process own = own_process();
    pg_args a;
    if (!*own.boot || !*own.namespace)
        return;
    dgm_pg_args_init(&a);
    dgm_pg_arg_str(&a, dgm_str_from(own.boot));
    dgm_pg_arg_str(&a, dgm_str_from(own.namespace));
    dgm_pg_arg_int(&a, s->base.replica);
    PGresult *r = dgm_pg_share_exec(s, sql, &a);
    for (int i = 0; r && i < PQntuples(r); i++) {
        if (process_is_gone(dgm_pg_int(r, i, 1), dgm_pg_str(r, i, 2)))
            bury_one(s, dgm_pg_int(r, i, 0));
    }
    PQclear(r);
    dgm_pg_args_done(&a);
}

void dgm_pg_lease_declare_dead(pg_store *s)
{
    static const char sql[] = "UPDATE dragoman.replicas SET dead=true,until=now()"
                              " WHERE NOT dead AND until<now()";
    static const char forget[] =
        "DELETE FROM dragoman.replicas r WHERE r.dead AND r.until<now()-" DEAD_ROW_TIME
        " AND NOT EXISTS (SELECT 1 FROM dragoman.tasks t WHERE t.owner=r.id AND t.state<3)";
    static const pg_args none;
    const pg_share *h = &s->share;
    if (h->steady_ms && h->extended_ms - h->steady_ms >= h->lease_ms)
        PQclear(dgm_pg_share_exec(s, sql, &none));
    bury_processes(s);
    PQclear(dgm_pg_share_exec(s, forget, &none));
}

void dgm_pg_lease_add_unknown(pg_store *s)
{
    static const char sql[] =
        "INSERT INTO dragoman.replicas(id,name,until,dead,boot,namespace,pid,started)"
        " SELECT DISTINCT t.owner,''::bytea,now(),true,''::bytea,''::bytea,0,''::bytea"
        " FROM dragoman.tasks t WHERE t.state<3 AND t.owner<>0 AND NOT EXISTS"
        " (SELECT 1 FROM dragoman.replicas r WHERE r.id=t.owner) ON CONFLICT DO NOTHING";
    static const pg_args none;
    PQclear(dgm_pg_share_exec(s, sql, &none));
}

/* ---- takeover -------------------------------------------------------------------------------------------- */

/* Whose tasks have no owner that lives, as an array: 0, and the dead. */
static bool arg_dead(pg_store *s, pg_args *a)
{
    static const pg_args none;
    PGresult *r = dgm_pg_share_exec(s, "SELECT id FROM dragoman.replicas WHERE dead", &none);
    bool ok = r;
    dgm_pg_array_begin(a, true);
    dgm_pg_array_int(a, 0);
    for (int i = 0; r && i < PQntuples(r); i++)
        dgm_pg_array_int(a, dgm_pg_int(r, i, 0));
    dgm_pg_array_end(a);
    PQclear(r);
    return ok;
}

static dgm_task_row taken_row(const pg_store *s, const PGresult *r, int i)
{
    return (dgm_task_row){
        .owner = {dgm_pg_str(r, i, 0), dgm_pg_str(r, i, 1)},
        .id = dgm_pg_str(r, i, 2),
        .context_id = dgm_pg_str(r, i, 3),
        .agent = dgm_pg_str(r, i, 4),
        .state = (dgm_task_state)dgm_pg_int(r, i, 5),
        .created_ms = dgm_pg_int(r, i, 6),
        .status_ms = dgm_pg_int(r, i, 7),
        .last_seq = (uint64_t)dgm_pg_int(r, i, 8),
        .folded_seq = (uint64_t)dgm_pg_int(r, i, 9),
        .lease = {DGM_LEASE_OURS, s->base.replica, (uint64_t)dgm_pg_int(r, i, 10)},
    };
}

/* What this server takes. False: nothing. */
static bool arg_agents(pg_share *h, pg_args *a)
{
    pthread_mutex_lock(&h->lock);
    bool takes = h->n_agents && !h->aside.is_full;
    dgm_pg_array_begin(a, false);
    for (size_t i = 0; i < h->n_agents; i++)
        dgm_pg_array_str(a, h->agents[i]);
    dgm_pg_array_end(a);
    dgm_pg_array_begin(a, false);
    for (size_t i = 0; i < h->aside.n; i++)
        dgm_pg_array_str(a, h->aside.ids[i]);
    dgm_pg_array_end(a);
    pthread_mutex_unlock(&h->lock);
    return takes;
}

/* Statements that were on their way when a server died, and other servers that take tasks, lock some for a moment. */
static bool take_has_skipped(pg_store *s)
{
    static const char sql[] = "SELECT 1 FROM dragoman.tasks t WHERE t.state<3"
                              " AND t.owner=ANY($1::bigint[]) AND t.agent=ANY($2::bytea[])"
                              " AND t.id<>ALL($3::bytea[]) LIMIT 1";
    pg_args a;
    dgm_pg_args_init(&a);
    PGresult *r =
        arg_dead(s, &a) && arg_agents(&s->share, &a) ? dgm_pg_share_exec(s, sql, &a) : NULL;
    bool has = r && PQntuples(r);
    PQclear(r);
    dgm_pg_args_done(&a);
    return has;
}

/* A page; then s->share.take is true if there may be more, or take_ms says when the rest can be tried. */
void dgm_pg_lease_take_over(pg_store *s)
{
    static const char sql[] =
        "WITH c AS MATERIALIZED (SELECT t.tenant,t.principal,t.id FROM dragoman.tasks t"
        " WHERE t.state<3 AND t.owner=ANY($2::bigint[]) AND t.agent=ANY($4::bytea[])"
        " AND t.id<>ALL($5::bytea[]) LIMIT $3::bigint FOR UPDATE OF t SKIP LOCKED)"
        "UPDATE dragoman.tasks t SET owner=$1::bigint,fence=t.fence+1 FROM c"
        " WHERE t.tenant=c.tenant AND t.principal=c.principal AND t.id=c.id"
        " RETURNING t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,"
        "t.last_seq,t.folded_seq,t.fence";
    pg_share *h = &s->share;
    pg_args a;
    h->take = false;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, s->base.replica);
    bool ok = arg_dead(s, &a);
    dgm_pg_arg_int(&a, PAGE_TASKS);
    ok = arg_agents(h, &a) && ok;
    PGresult *r = ok ? dgm_pg_share_exec(s, sql, &a) : NULL;
    size_t n = r ? (size_t)PQntuples(r) : 0;
    dgm_task_row *rows = dgm_xmalloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = taken_row(s, r, (int)i);
    pthread_mutex_lock(&h->lock);
    if (n && h->port)
        dgm_share_port_orphans(h->port, rows, n);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&s->lock);
    s->stats.taken_over += n;
    pthread_mutex_unlock(&s->lock);
    h->take = n == PAGE_TASKS;
    if (n || !h->skipped_ms)
        h->skipped_ms = SKIPPED_MS;
    else if (h->skipped_ms < MAX_SKIPPED_MS)
        h->skipped_ms *= 2;
    h->take_ms = !h->take && take_has_skipped(s) ? dgm_pg_lease_now() + h->skipped_ms : 0;
    if (!h->take_ms)
        h->skipped_ms = 0;
    if (n)
        dgm_pg_share_notify_all(s, "t");
    free(rows);
    PQclear(r);
    dgm_pg_args_done(&a);
}

/* ---- tasks of this server ---------------------------------------------------------------------------------- */

/* No fault of the store is reported: it is done again later. */
static PGresult *owned_exec(pg_store *s, const char *sql, ExecStatusType want)
{
    pg_share *h = &s->share;
    static const pg_args none;
    PGresult *r = h->conn ? dgm_pg_exec(h->conn, sql, &none, dgm_pg_share_ms(s)) : NULL;
    if (r && PQresultStatus(r) == want)
        return r;
    PQclear(r);
    return NULL;
}

static bool owned_open(pg_store *s)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "DECLARE owned NO SCROLL CURSOR WITH HOLD FOR SELECT tenant,principal,id,fence"
             " FROM dragoman.tasks WHERE owner=%lld AND state<3",
             (long long)s->base.replica);
    PGresult *r = owned_exec(s, sql, PGRES_COMMAND_OK);
    PQclear(r);
    return r;
}

static void owned_post(pg_store *s, const PGresult *r)
{
    pg_share *h = &s->share;
    size_t n = (size_t)PQntuples(r);
    dgm_task_row *rows = dgm_xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        int at = (int)i;
        rows[i].owner = (dgm_owner){dgm_pg_str(r, at, 0), dgm_pg_str(r, at, 1)};
        rows[i].id = dgm_pg_str(r, at, 2);
        rows[i].lease =
            (dgm_lease){DGM_LEASE_OURS, s->base.replica, (uint64_t)dgm_pg_int(r, at, 3)};
    }
    pthread_mutex_lock(&h->lock);
    if (n && h->port && h->n_agents)
        dgm_share_port_owned(h->port, rows, n);
    pthread_mutex_unlock(&h->lock);
    free(rows);
}

/*
 * One scan of an index for all of them, whose result the database holds: pages by the key would each read many rows of other
 * servers, and one statement for all would delay the life of this server.
 */
void dgm_pg_lease_read_owned(pg_store *s)
{
    pg_share *h = &s->share;
    uint64_t period = (uint64_t)h->lease_ms * OWNED_LEASES;
    PGresult *r = NULL;
    if (h->owned_is_open || owned_open(s)) {
        char sql[60];
        snprintf(sql, sizeof sql, "FETCH %d FROM owned", PAGE_OWNED);
        h->owned_is_open = true;
        r = owned_exec(s, sql, PGRES_TUPLES_OK);
    }
    if (r)
        owned_post(s, r);
    if (r && PQntuples(r) == PAGE_OWNED) {
        PQclear(r);
        return;
    }
    if (h->owned_is_open)
        PQclear(owned_exec(s, "CLOSE owned", PGRES_COMMAND_OK));
    h->owned_is_open = false;
    h->owned_ms = dgm_pg_lease_now() + (period < OWNED_MS ? period : OWNED_MS);
    PQclear(r);
}

/* ---- jobs that one server does ------------------------------------------------------------------------- */

dgm_code dgm_pg_lease_job(pg_store *s, PGconn *c, dgm_str name, bool *ret_may, dgm_err *err)
{
    static const char sql[] =
        "INSERT INTO dragoman.jobs AS j(name,replica) VALUES($1,$2::bigint) ON CONFLICT (name)"
        " DO UPDATE SET replica=excluded.replica WHERE j.replica=excluded.replica OR NOT EXISTS"
        " (SELECT 1 FROM dragoman.replicas r WHERE r.id=j.replica AND " LIVES ") RETURNING 1";
    dgm_code code = DGM_OK;
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_str(&a, name);
    dgm_pg_arg_int(&a, s->base.replica);
    PGresult *r = dgm_pg_exec(c, sql, &a, PG_ANSWER_MS);
    *ret_may = PQntuples(r) > 0;
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        code = dgm_pg_fault(c, r, false, err);
    PQclear(r);
    dgm_pg_args_done(&a);
    return code;
}

dgm_code dgm_pg_lease_check_unused(PGconn *c, const pg_target *t, dgm_err *err)
{
    dgm_code code = DGM_OK;
    PGresult *r = PQexec(c, "SELECT r.name FROM dragoman.replicas r WHERE " LIVES " LIMIT 1");
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        code = dgm_pg_fault(c, r, true, err);
    else if (PQntuples(r))
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the database %s is in use by a server: stop it first, or name another "
                        "database",
                        t->shown);
    PQclear(r);
    return code;
}
