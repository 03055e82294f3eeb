/*
 * store/postgres/postgres_share.c - a thread that extends the lease of this server, and exchanges commands with other servers.
 *
 * It has a connection of its own, which waits for notifications: of a command or an answer ("c"), of tasks that have no owner
 * ("o") or a new one ("t"), and of tasks that have grown (postgres_follow.c). Without them (`wakeup: poll`) it reads
 * the tables every DGM_FOLLOW_POLL_MS.
 *
 * Its commits are not synced. A crash of PostgreSQL can lose a command, which then times out, or a change of an owner
 * on which no durable data depends: the append of a new owner comes after it in the WAL.
 */
#include "postgres_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MS 1000 /* how often tables are read, if notifications may be lost */
#define SWEEP_MS 60000
#define RETRY_MS 200
#define PAUSED_MS 10
#define SEARCH_MS 5000 /* for tasks of dead servers, at the start */
/* Of commands or answers in one statement: one may be larger. */
#define MOST_BYTES ((size_t)8 << 20)
#define MOST_ROWS 500

/* ---- the connection ------------------------------------------------------------------------------------- */

/* Longer than a lease is useless, and longer than a statement may take (share_connect). A server that does not answer must
 * not be waited for: commands have an end, and the life of this server goes on over another connection. */
#define ANSWER_MS_MIN 5000
#define ANSWER_MS_MAX 25000
uint64_t dgm_pg_share_ms(const pg_store *s)
{
    uint64_t ms = s->share.lease_ms;
    return ms < ANSWER_MS_MIN ? ANSWER_MS_MIN : ms > ANSWER_MS_MAX ? ANSWER_MS_MAX : ms;
}

PGresult *dgm_pg_share_exec(pg_store *s, const char *sql, const pg_args *a)
{
    pg_share *h = &s->share;
    PGresult *r = h->conn ? dgm_pg_exec(h->conn, sql, a, dgm_pg_share_ms(s)) : NULL;
    ExecStatusType status = PQresultStatus(r);
    if (r && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK))
        return r;
    dgm_err why = {0};
    if (r && !dgm_pg_is_conflict(r)) {
        dgm_pg_fault(h->conn, r, false, &why);
        dgm_pg_store_fault(s, &why);
    }
    PQclear(r);
    if (h->conn && PQstatus(h->conn) != CONNECTION_OK) {
        PQfinish(h->conn);
        h->conn = NULL;
    }
    return NULL;
}

void dgm_pg_share_notify_all(pg_store *s, const char *what)
{
    char sql[80];
    static const pg_args none;
    snprintf(sql, sizeof sql, "SELECT pg_notify('dragoman','%s')", what);
    if (!s->share.polls)
        PQclear(dgm_pg_share_exec(s, sql, &none));
}

static dgm_code share_listen(pg_store *s, PGconn *c, dgm_err *err)
{
    char sql[200];
    dgm_code code = DGM_OK;
    snprintf(sql, sizeof sql, "UNLISTEN *; LISTEN dragoman; LISTEN dragoman_%lld",
             (long long)s->base.replica);
    PGresult *r = s->share.polls ? NULL : dgm_pg_exec_text(c, sql, dgm_pg_share_ms(s));
    if (!s->share.polls && PQresultStatus(r) != PGRES_COMMAND_OK)
        code = dgm_pg_fault(c, r, false, err);
    PQclear(r);
    return code;
}

static dgm_code share_connect(pg_store *s, PGconn **ret_conn, dgm_err *err)
{
    dgm_code code = dgm_pg_connect(&s->target, PG_CONTROL, ret_conn, err);
    if (code)
        return code;
    PGresult *r = dgm_pg_exec_text(*ret_conn,
                                   "SET synchronous_commit=off; SET statement_timeout=20000;"
                                   "SET lock_timeout=5000",
                                   dgm_pg_share_ms(s));
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        code = dgm_pg_fault(*ret_conn, r, false, err);
    PQclear(r);
    return code;
}

/* Everything may have happened meanwhile. */
static void share_check_all(pg_share *h)
{
    h->beat_ms = h->poll_ms = h->owned_ms = h->steady_ms = 0;
    h->look = h->take = true;
    h->owned_is_open = false;
}

static bool share_reconnect(pg_store *s)
{
    dgm_err why = {0};
    PGconn *c = NULL;
    dgm_code code = share_connect(s, &c, &why);
    if (!code)
        code = share_listen(s, c, &why);
    if (code) {
        dgm_pg_fault(NULL, NULL, false, &why); /* in words that callers may read */
        dgm_pg_store_fault(s, &why);
        PQfinish(c);
        return false;
    }
    s->share.conn = c;
    share_check_all(&s->share);
    return true;
}

/* ---- commands and answers -------------------------------------------------------------------------------- */

static void share_push(pg_queue *q, dgm_job *job)
{
    job->next = NULL;
    *(q->first ? &q->last->next : &q->first) = job;
    q->last = job;
    q->n++;
}

static void share_post(dgm_job *job, dgm_code code, const dgm_err *err)
{
    job->next = NULL;
    job->code = code;
    if (code)
        job->err = *err;
    dgm_loop_post(job->loop, dgm_job_on_answers, job);
}

void dgm_pg_share_submit(pg_store *s, dgm_job *job)
{
    pg_share *h = &s->share;
    dgm_err why = {0};
    dgm_code code = DGM_OK;
    pthread_mutex_lock(&h->lock);
    if (h->stopping)
        code = dgm_fail(&why, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    else if (job->kind == DGM_JOB_COMMAND && h->n_waiting + h->sending.n >= DGM_MAX_COMMANDS)
        code = dgm_fail(&why, DGM_UNAVAILABLE, NULL,
                        "%zu requests wait for other servers, the limit commands is %d: try again "
                        "later",
                        h->n_waiting + h->sending.n, DGM_MAX_COMMANDS);
    else if (job->kind == DGM_JOB_COMMAND) {
        job->command.is.id = ++h->last_command;
        job->hash = dgm_pg_lease_now() + job->command.ms; /* when it ends */
        share_push(&h->sending, job);
    } else {
        share_push(&h->answers, job);
    }
    pthread_mutex_unlock(&h->lock);
    if (code)
        share_post(job, code, &why);
    else
        dgm_pg_share_wake(s);
}

static size_t bytes_to_send(const dgm_job *job)
{
    return job->kind == DGM_JOB_COMMAND ? job->command.is.body.n : job->answer.body.n;
}

/* Some of a queue, as a chain. */
static dgm_job *share_pop(pg_share *h, pg_queue *q)
{
    pthread_mutex_lock(&h->lock);
    dgm_job *chain = q->first, *last = chain;
    size_t n = chain ? 1 : 0, bytes = chain ? bytes_to_send(chain) : 0;
    while (last && last->next && n < MOST_ROWS &&
           (bytes += bytes_to_send(last->next)) <= MOST_BYTES) {
        last = last->next;
        n++;
    }
    if (last) {
        q->first = last->next;
        last->next = NULL;
        q->n -= n;
    }
    if (!q->first)
        q->last = NULL;
    pthread_mutex_unlock(&h->lock);
    return chain;
}

#define TEXTS(chain, expr)                                                                         \
    do {                                                                                           \
        dgm_pg_array_begin(a, false);                                                              \
        for (const dgm_job *job = (chain); job; job = job->next)                                   \
            dgm_pg_array_str(a, expr);                                                             \
        dgm_pg_array_end(a);                                                                       \
    } while (0)
#define INTS(chain, expr)                                                                          \
    do {                                                                                           \
        dgm_pg_array_begin(a, true);                                                               \
        for (const dgm_job *job = (chain); job; job = job->next)                                   \
            dgm_pg_array_int(a, (int64_t)(expr));                                                  \
        dgm_pg_array_end(a);                                                                       \
    } while (0)

static dgm_str text_or_empty(dgm_str s)
{
    return s.p ? s : (dgm_str){"", 0};
}

#define NOTIFIED(table) "SELECT i.id,pg_notify('dragoman_'||i.replica,'c') FROM " table " i"
#define NOT_NOTIFIED(table) "SELECT i.id FROM " table " i"

static PGresult *insert_commands(pg_store *s, const dgm_job *chain)
{
#define INSERT                                                                                     \
    "WITH ins AS (INSERT INTO dragoman.commands(replica,sender,id,tenant,principal,task,kind,"     \
    "body,until) SELECT x.replica,$9::bigint,x.id,x.tenant,x.principal,x.task,x.kind,x.body,"      \
    "clock_timestamp()+x.ms*interval '1 millisecond' FROM unnest($1::bigint[],$2::bigint[],"       \
    "$3::bytea[],$4::bytea[],$5::bytea[],$6::bytea[],$7::bytea[],$8::bigint[])"                    \
    " AS x(replica,id,tenant,principal,task,kind,body,ms) JOIN dragoman.replicas r"                \
    " ON r.id=x.replica WHERE NOT r.dead AND r.until>now() RETURNING replica,id)"
    pg_args args, *a = &args;
    uint64_t now = dgm_pg_lease_now();
    dgm_pg_args_init(a);
    INTS(chain, job->command.to);
    INTS(chain, job->command.is.id);
    TEXTS(chain, text_or_empty(job->command.is.owner.tenant));
    TEXTS(chain, text_or_empty(job->command.is.owner.principal));
    TEXTS(chain, text_or_empty(job->command.is.task_id));
    TEXTS(chain, text_or_empty(job->command.is.kind));
    TEXTS(chain, text_or_empty(job->command.is.body));
    INTS(chain, job->hash - now); /* what is left of its time: see end_sending */
    dgm_pg_arg_int(a, s->base.replica);
    PGresult *r = dgm_pg_share_exec(
        s, s->share.polls ? INSERT NOT_NOTIFIED("ins") : INSERT NOTIFIED("ins"), a);
    dgm_pg_args_done(a);
    return r;
#undef INSERT
}

static bool result_has(const PGresult *r, int64_t id)
{
    for (int i = 0; i < PQntuples(r); i++) {
        if (dgm_pg_int(r, i, 0) == id)
            return true;
    }
    return false;
}

static void share_beat(pg_store *s);

/* Between statements that may take long: extends the life of this server if that is due. False: there is no connection. */
static bool share_is_alive(pg_store *s)
{
    if (s->share.conn && dgm_pg_lease_now() >= s->share.beat_ms)
        share_beat(s);
    return s->share.conn;
}

static void share_send_commands(pg_store *s)
{
    pg_share *h = &s->share;
    dgm_err why = {0};
    for (dgm_job *chain; share_is_alive(s) && (chain = share_pop(h, &h->sending));) {
        PGresult *r = insert_commands(s, chain);
        for (dgm_job *job = chain, *next; job; job = next) {
            next = job->next;
            if (!r) {
                share_post(job, dgm_pg_fault(NULL, NULL, false, &why), &why);
            } else if (!result_has(r, job->command.is.id)) {
                share_post(job, dgm_command_unanswered(0, &why), &why);
            } else if (!job->call.answered) {
                share_post(job, DGM_OK, NULL);
            } else {
                pthread_mutex_lock(&h->lock);
                job->lane_next = h->waiting;
                h->waiting = job;
                h->n_waiting++;
                pthread_mutex_unlock(&h->lock);
            }
        }
        PQclear(r);
    }
}

static void share_send_answers(pg_store *s)
{
#define INSERT                                                                                     \
    "WITH ins AS (INSERT INTO dragoman.answers(replica,id,code,pointer,message,body,until)"        \
    " SELECT x.replica,x.id,x.code,x.pointer,x.message,x.body,now()+interval '60 seconds'"         \
    " FROM unnest($1::bigint[],$2::bigint[],$3::bigint[],$4::bytea[],$5::bytea[],$6::bytea[])"     \
    " AS x(replica,id,code,pointer,message,body) JOIN dragoman.replicas r ON r.id=x.replica"       \
    " AND NOT r.dead ON CONFLICT DO NOTHING RETURNING replica,id)"
    pg_share *h = &s->share;
    for (dgm_job *chain; share_is_alive(s) && (chain = share_pop(h, &h->answers));) {
        pg_args args, *a = &args;
        dgm_pg_args_init(a);
        INTS(chain, job->answer.to);
        INTS(chain, job->answer.command);
        INTS(chain, job->answer.code);
        TEXTS(chain, dgm_str_from(job->answer.err ? job->answer.err->at : ""));
        TEXTS(chain, dgm_str_from(job->answer.err ? job->answer.err->msg : ""));
        TEXTS(chain, job->answer.body);
        PQclear(dgm_pg_share_exec(s, h->polls ? INSERT NOT_NOTIFIED("ins") : INSERT NOTIFIED("ins"),
                                  a));
        dgm_pg_args_done(a);
        for (dgm_job *job = chain, *next; job; job = next) {
            next = job->next;
            share_post(job, DGM_OK,
                       NULL); /* if it is lost, the sender hears nothing, and sends again */
        }
    }
#undef INSERT
}

static bool is_follow_command(const PGresult *r, int row)
{
    return dgm_str_is(dgm_pg_str(r, row, 5), PG_FOLLOW_COMMAND);
}

/* The first rows of this server by `order`, with a limit of rows and bytes; one row at least. */
#define PAGE_OF(table, order, columns, where, returned)                                            \
    "WITH q AS MATERIALIZED (SELECT " columns ",row_number() OVER w AS k,"                         \
    "sum(coalesce(octet_length(body),0)) OVER w AS bytes FROM (SELECT " columns                    \
    ",body FROM dragoman." table " WHERE replica=$1::bigint ORDER BY " order                       \
    " LIMIT $2::bigint) p WINDOW w AS (ORDER BY " order ")),d AS (DELETE FROM dragoman." table     \
    " c USING q WHERE c.replica=$1::bigint AND " where                                             \
    " AND (q.k=1 OR q.bytes<=$3::bigint) RETURNING " returned ")"

/* In the last column. */
#define N_FOUND "(SELECT count(*) FROM q)"

/* Of a page: there are more rows. */
static bool is_full_page(const PGresult *r)
{
    int n = PQntuples(r);
    return n == MOST_ROWS || (n && dgm_pg_int(r, 0, PQnfields(r) - 1) > n);
}

static bool share_has_port(pg_share *h)
{
    pthread_mutex_lock(&h->lock);
    bool has_port = h->port;
    pthread_mutex_unlock(&h->lock);
    return has_port;
}

static PGresult *share_take_over_page(pg_store *s, const char *sql)
{
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, s->base.replica);
    dgm_pg_arg_int(&a, MOST_ROWS);
    dgm_pg_arg_int(&a, (int64_t)MOST_BYTES);
    PGresult *r = dgm_pg_share_exec(s, sql, &a);
    dgm_pg_args_done(&a);
    return r;
}

static void take_commands(pg_store *s)
{
    static const char sql[] = PAGE_OF(
        "commands", "sender,id", "sender,id", "c.sender=q.sender AND c.id=q.id",
        "c.sender,c.id,c.tenant,c.principal,c.task,c.kind,c.until>now() AS lives,"
        "CASE WHEN c.until>now() THEN c.body ELSE '' END AS body") "SELECT "
                                                                   "d.sender,d.id,d.tenant,d."
                                                                   "principal,d.task,d.kind,d.body,"
                                                                   "d.lives::int," N_FOUND
                                                                   " FROM d ORDER BY d.sender,d.id";
    pg_share *h = &s->share;
    if (!share_has_port(h))
        return;
    PGresult *r = share_take_over_page(s, sql);
    for (int i = 0; r && i < PQntuples(r); i++) {
        if (is_follow_command(r, i) && dgm_pg_int(r, i, 7))
            dgm_pg_follow_receive(s, PQgetvalue(r, i, 6)); /* libpq ends it with a zero */
    }
    pthread_mutex_lock(&h->lock);
    for (int i = 0; r && h->port && i < PQntuples(r); i++) {
        dgm_command c = {.from = dgm_pg_int(r, i, 0),
                         .id = dgm_pg_int(r, i, 1),
                         .owner = {dgm_pg_str(r, i, 2), dgm_pg_str(r, i, 3)},
                         .task_id = dgm_pg_str(r, i, 4),
                         .kind = dgm_pg_str(r, i, 5),
                         .body = dgm_pg_str(r, i, 6)};
        if (dgm_pg_int(r, i, 7) && !is_follow_command(r, i))
            dgm_share_port_command(h->port, &c);
    }
    pthread_mutex_unlock(&h->lock);
    h->look |= is_full_page(r);
    PQclear(r);
}

/* The job of a command that waits, taken from the list. */
static dgm_job *unlist_waiting(pg_share *h, int64_t id)
{
    pthread_mutex_lock(&h->lock);
    dgm_job **at = &h->waiting, *job;
    while ((job = *at) && job->command.is.id != id)
        at = &job->lane_next;
    if (job) {
        *at = job->lane_next;
        h->n_waiting--;
    }
    pthread_mutex_unlock(&h->lock);
    return job;
}

static bool has_waiting(pg_share *h)
{
    pthread_mutex_lock(&h->lock);
    bool has = h->waiting;
    pthread_mutex_unlock(&h->lock);
    return has;
}

static void answer_err(const PGresult *r, int row, dgm_err *ret_err)
{
    dgm_str at = dgm_pg_str(r, row, 2), msg = dgm_pg_str(r, row, 3);
    int64_t code = dgm_pg_int(r, row, 1);
    dgm_fail(ret_err, code > 0 && code <= DGM_UPSTREAM_TIMEOUT ? (dgm_code)code : DGM_INTERNAL,
             NULL, "%.*s", DGM_P(msg));
    snprintf(ret_err->at, sizeof ret_err->at, "%.*s", DGM_P(at));
}

static void take_answers(pg_store *s)
{
    static const char sql[] = PAGE_OF(
        "answers", "id", "id", "c.id=q.id",
        "c.id,c.code,c.pointer,c.message,c.body") "SELECT "
                                                  "d.id,d.code,d.pointer,d.message,d.body," N_FOUND
                                                  " FROM d";
    if (!has_waiting(&s->share))
        return;
    PGresult *r = share_take_over_page(s, sql);
    for (int i = 0; r && i < PQntuples(r); i++) {
        dgm_err err = {0};
        dgm_job *job = unlist_waiting(&s->share, dgm_pg_int(r, i, 0));
        if (!job)
            continue; /* it came too late */
        if (dgm_pg_int(r, i, 1)) {
            answer_err(r, i, &err);
            share_post(job, err.code, &err);
            continue;
        }
        dgm_str body = dgm_pg_str(r, i, 4);
        if (body.p)
            job->got.note = dgm_arena_dup(dgm_job_arena(job), body);
        share_post(job, DGM_OK, NULL);
    }
    s->share.look |= is_full_page(r);
    PQclear(r);
}

static void share_post_unanswered(dgm_job *chain)
{
    for (dgm_job *job = chain, *next; job; job = next) {
        dgm_err err = {0};
        next = job->next;
        share_post(job, dgm_command_unanswered(job->done ? 0 : job->command.ms, &err), &err);
    }
}

/* Commands that wait for a connection: their time is over as well. */
static void end_sending(pg_share *h)
{
    uint64_t now = dgm_pg_lease_now();
    dgm_job *ended = NULL;
    pg_queue left = {0};
    pthread_mutex_lock(&h->lock);
    for (dgm_job *job = h->sending.first, *next; job; job = next) {
        next = job->next;
        if (now < job->hash) {
            share_push(&left, job);
        } else {
            job->next = ended;
            ended = job;
        }
    }
    h->sending = left;
    pthread_mutex_unlock(&h->lock);
    share_post_unanswered(ended);
}

/* Those that wait: of servers that do not live (r: those that do; NULL: unknown), and whose time is over. all: every one. */
static void end_waiting(pg_store *s, const PGresult *r, bool all)
{
    pg_share *h = &s->share;
    uint64_t now = dgm_pg_lease_now();
    dgm_job *ended = NULL;
    pthread_mutex_lock(&h->lock);
    for (dgm_job **at = &h->waiting, *job; (job = *at);) {
        bool dead = all || (r && !result_has(r, job->command.to));
        if (!dead && now < job->hash) {
            at = &job->lane_next;
            continue;
        }
        *at = job->lane_next;
        h->n_waiting--;
        job->done = dead;
        job->next = ended;
        ended = job;
    }
    pthread_mutex_unlock(&h->lock);
    share_post_unanswered(ended);
}

static void share_check_waiting(pg_store *s)
{
    static const char sql[] = "SELECT id FROM dragoman.replicas WHERE NOT dead AND until>now()";
    static const pg_args none;
    if (!has_waiting(&s->share))
        return;
    PGresult *r = dgm_pg_share_exec(s, sql, &none);
    end_waiting(s, r, false);
    PQclear(r);
}

static void share_sweep(pg_store *s)
{
    static const pg_args none;
    PQclear(dgm_pg_share_exec(
        s, "DELETE FROM dragoman.commands WHERE until<now()-interval '60 seconds'", &none));
    dgm_pg_lease_add_unknown(s);
    PQclear(dgm_pg_share_exec(s, "DELETE FROM dragoman.answers WHERE until<now()", &none));
}

/* ---- the thread ------------------------------------------------------------------------------------------- */

static void share_receive(pg_store *s)
{
    pg_share *h = &s->share;
    for (PGnotify *n; h->conn && (n = PQnotifies(h->conn)); PQfreemem(n)) {
        switch (*n->extra) {
        case 'c': h->look = true; break;
        case 'o': h->take = true; break;
        case 't': h->poll_ms = 0; break;
        default: dgm_pg_follow_receive(s, n->extra);
        }
    }
}

static void share_is_renewed(pg_share *h)
{
    h->is_dead = false;
    pthread_mutex_lock(&h->lock);
    if (h->port)
        dgm_share_port_renewed(h->port);
    pthread_mutex_unlock(&h->lock);
}

/* It was declared dead: it is another server now, without tasks. */
static void share_renew(pg_store *s)
{
    dgm_err why = {0};
    dgm_code code = dgm_pg_lease_register(s, s->share.conn, &why);
    if (!code)
        code = share_listen(s, s->share.conn, &why);
    if (code)
        dgm_pg_store_fault(s, &why);
    else
        share_is_renewed(&s->share);
    end_waiting(s, NULL, true); /* their answers go to the one that it was */
}

/* Tasks that could not be loaded are tried again. */
static void share_forget_aside(pg_share *h)
{
    pthread_mutex_lock(&h->lock);
    dgm_arena_free(h->aside.arena);
    h->aside.arena = NULL;
    h->aside.n = 0;
    h->aside.is_full = false;
    pthread_mutex_unlock(&h->lock);
}

static void share_beat(pg_store *s)
{
    pg_share *h = &s->share;
    uint64_t now = dgm_pg_lease_now();
    h->beat_ms = now + h->lease_ms / 3;
    if (!h->is_dead && !dgm_pg_lease_extend(s) && !h->is_dead)
        return;
    if (h->is_dead && h->conn)
        share_renew(s);
    dgm_pg_lease_declare_dead(s);
    dgm_pg_follow_expire(s);
    share_forget_aside(h);
    h->take = true;
    if (now >= h->sweep_ms) {
        share_sweep(s);
        h->sweep_ms = now + SWEEP_MS;
    }
}

static void share_poll(pg_store *s)
{
    pg_share *h = &s->share;
    bool is_often = h->polls || has_waiting(h);
    h->poll_ms = dgm_pg_lease_now() + (is_often ? DGM_FOLLOW_POLL_MS : IDLE_MS);
    h->look = true;
    if (h->polls)
        h->take = true;
    if (dgm_pg_follow_is_busy(s))
        dgm_pg_follow_poll(s);
}

/* Tasks that were given up here are offered to all. */
static void share_offer_orphans(pg_store *s)
{
    pg_share *h = &s->share;
    pthread_mutex_lock(&h->lock);
    bool has = h->has_orphans, has_port = h->port;
    if (h->is_new) {
        h->take = h->look = true;
        h->search_ms = dgm_pg_lease_now() + SEARCH_MS;
    }
    h->take |= h->has_new_agents;
    h->has_orphans = h->is_new = h->has_new_agents = false;
    pthread_mutex_unlock(&h->lock);
    if (has)
        dgm_pg_share_notify_all(s, "o");
    if (!has_port) {
        h->take = false;
        h->take_ms = 0;
    }
}

/* The core waits for that when it starts: not for tasks that are locked for long, and not for a database that is away. */
static void share_end_search(pg_share *h)
{
    if (!h->search_ms || (h->conn && (h->take || h->take_ms) && dgm_pg_lease_now() < h->search_ms))
        return;
    h->search_ms = 0;
    pthread_mutex_lock(&h->lock);
    if (h->port)
        dgm_share_port_searched(h->port);
    pthread_mutex_unlock(&h->lock);
}

static void share_work(pg_store *s)
{
    pg_share *h = &s->share;
    share_is_alive(s);
    share_send_answers(s);
    share_send_commands(s);
    dgm_pg_follow_send(s);
    share_offer_orphans(s);
    if (h->take || (h->take_ms && dgm_pg_lease_now() >= h->take_ms))
        dgm_pg_lease_take_over(s);
    share_end_search(h);
    if (dgm_pg_lease_now() >= h->poll_ms)
        share_poll(s);
    if (h->look) {
        h->look = false;
        take_commands(s);
        take_answers(s);
        share_check_waiting(s);
    }
    if (share_has_port(h) && share_is_alive(s) && dgm_pg_lease_now() >= h->owned_ms)
        dgm_pg_lease_read_owned(s);
    share_receive(s);
}

static void share_sleep(pg_store *s)
{
    pg_share *h = &s->share;
    struct pollfd fds[2] = {{.fd = h->wake[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    uint64_t now = dgm_pg_lease_now(), next = h->beat_ms;
    char bytes[64];
    if (has_waiting(h) && h->poll_ms > now + DGM_FOLLOW_POLL_MS)
        h->poll_ms = now + DGM_FOLLOW_POLL_MS;
    if (h->poll_ms < next)
        next = h->poll_ms;
    if (h->take_ms && h->take_ms < next)
        next = h->take_ms;
    int ms = h->look || h->take || h->owned_is_open || next <= now ? 0 : (int)(next - now);
    if (!h->conn)
        ms = RETRY_MS;
    if (h->is_paused)
        ms = PAUSED_MS;
    if (h->conn)
        fds[1].fd = PQsocket(h->conn);
    poll(fds, h->is_paused ? 0 : 2, ms);
    while (read(h->wake[0], bytes, sizeof bytes) > 0)
        continue;
    if (h->conn && fds[1].revents && !PQconsumeInput(h->conn)) {
        PQfinish(h->conn);
        h->conn = NULL;
    }
}

static bool share_is_stopping(pg_share *h)
{
    pthread_mutex_lock(&h->lock);
    bool stopping = h->stopping;
    pthread_mutex_unlock(&h->lock);
    return stopping;
}

static void *share_main(void *arg)
{
    pg_store *s = arg;
    pg_share *h = &s->share;
    while (!share_is_stopping(h)) {
        if (!h->is_paused) {
            if (!h->conn)
                share_reconnect(s);
            share_receive(s);
            end_sending(h);
            if (h->conn)
                share_work(s);
            else
                end_waiting(s, NULL, false);
            if (!h->conn)
                share_end_search(h);
        }
        share_sleep(s);
    }
    share_send_answers(s);
    return NULL;
}

/* ---- for the others ------------------------------------------------------------------------------------ */

void dgm_pg_share_set_aside(pg_store *s, dgm_str task_id)
{
    pg_share *h = &s->share;
    pthread_mutex_lock(&h->lock);
    h->aside.is_full |= h->aside.n == PG_MOST_ASIDE;
    if (!h->aside.arena)
        h->aside.arena = dgm_arena_new();
    if (!h->aside.is_full)
        h->aside.ids[h->aside.n++] = dgm_arena_dup(h->aside.arena, task_id);
    pthread_mutex_unlock(&h->lock);
}

void dgm_pg_share_wake(pg_store *s)
{
    (void)!write(s->share.wake[1], "", 1);
}

static void pg_set_share(dgm_store *base, dgm_loop *loop, const dgm_share_handlers *handlers)
{
    pg_share *h = &((pg_store *)base)->share;
    pthread_mutex_lock(&h->lock);
    dgm_share_port_close(h->port);
    h->port = handlers ? dgm_share_port_new(loop, handlers) : NULL;
    h->is_new = handlers;
    pthread_mutex_unlock(&h->lock);
    dgm_pg_share_wake((pg_store *)base);
}

static void pg_set_agents(dgm_store *base, const dgm_str *agents, size_t n)
{
    pg_share *h = &((pg_store *)base)->share;
    dgm_arena *a = dgm_arena_new();
    dgm_str *copies = dgm_new_n(a, dgm_str, n + 1);
    for (size_t i = 0; i < n; i++)
        copies[i] = dgm_arena_dup(a, agents[i]);
    pthread_mutex_lock(&h->lock);
    dgm_arena_free(h->agents_arena);
    h->agents_arena = a;
    h->agents = copies;
    h->n_agents = n;
    h->has_new_agents = n;
    pthread_mutex_unlock(&h->lock);
    dgm_pg_share_wake((pg_store *)base);
}

const dgm_share_driver dgm_pg_share_driver = {.share = pg_set_share,
                                              .follow = dgm_pg_follow,
                                              .is_followed = dgm_pg_is_followed,
                                              .set_agents = pg_set_agents};

dgm_code dgm_pg_share_open(pg_store *s, const dgm_store_options *options, dgm_err *err)
{
    pg_share *h = &s->share;
    sigset_t all, before;
    uint32_t lease_ms = options->lease_ms ? options->lease_ms : DGM_LEASE_MS;
    h->lease_ms = lease_ms < DGM_MIN_LEASE_MS ? DGM_MIN_LEASE_MS : lease_ms;
    h->polls = options->polls;
    dgm_store_set_name(&s->base, options->replica_name);
    dgm_code code = share_connect(s, &h->conn, err);
    if (!code)
        code = dgm_pg_lease_register(s, h->conn, err);
    if (!code)
        code = share_listen(s, h->conn, err);
    if (!code && pipe(h->wake) != 0) {
        h->wake[0] = h->wake[1] = -1;
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot open a pipe: %s: raise the limit (ulimit -n)", strerror(errno));
    }
    if (code)
        return code;
    for (int i = 0; i < 2; i++) {
        fcntl(h->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(h->wake[i], F_SETFD, FD_CLOEXEC);
    }
    sigfillset(&all); /* signals are for the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&h->thread, NULL, share_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    h->has_thread = error == 0;
    if (error)
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot start a thread for the database: %s: raise the limit (ulimit -u)",
                        strerror(error));
    return code;
}

static void fail_queued(pg_queue *q)
{
    for (dgm_job *job = q->first, *next; job; job = next) {
        dgm_err why = {0};
        next = job->next;
        if (job->kind == DGM_JOB_ANSWER)
            share_post(job, DGM_OK, NULL);
        else
            share_post(job, dgm_command_unanswered(0, &why), &why);
    }
    *q = (pg_queue){0};
}

void dgm_pg_share_stop(pg_store *s)
{
    pg_share *h = &s->share;
    if (h->has_thread) {
        pthread_mutex_lock(&h->lock);
        h->stopping = true;
        pthread_mutex_unlock(&h->lock);
        dgm_pg_share_wake(s);
        pthread_join(h->thread, NULL);
        h->has_thread = false;
    }
    if (h->conn && !h->is_paused && !h->is_dead && s->base.replica) {
        dgm_pg_lease_end(s);
        dgm_pg_share_notify_all(s, "o");
    }
    end_waiting(s, NULL, true);
    fail_queued(&h->sending);
    fail_queued(&h->answers);
}

void dgm_pg_share_close(pg_store *s)
{
    pg_share *h = &s->share;
    dgm_share_port_close(h->port);
    h->port = NULL;
    dgm_pg_follow_done(h);
    dgm_arena_free(h->agents_arena);
    dgm_arena_free(h->aside.arena);
    PQfinish(h->conn);
    h->conn = NULL;
    for (int i = 0; i < 2; i++) {
        if (h->wake[i] >= 0)
            close(h->wake[i]);
    }
    pthread_mutex_destroy(&h->lock);
}
