/*
 * store/postgres/postgres_keeper.c - the keeper: a thread that may block.
 *
 * It has a connection of its own, the control connection. It opens the connections of the loops (resolving names and
 * negotiating TLS blocks), executes retention, and tries a write after a fault.
 */
#include "postgres_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY_MS_MIN 100
#define RETRY_MS_MAX 2000
#define CHECK_MS 5000 /* an idle control connection */

int64_t dgm_pg_query_int(PGconn *c, const char *sql, dgm_code *ret_code, dgm_err *err)
{
    pg_args none = {0};
    int64_t n = 0;
    PGresult *r = dgm_pg_exec(c, sql, &none, PG_ANSWER_MS);
    ExecStatusType status = PQresultStatus(r);
    *ret_code = DGM_OK;
    if (status == PGRES_TUPLES_OK && PQntuples(r))
        n = dgm_pg_int(r, 0, 0);
    else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        *ret_code = dgm_pg_fault(c, r, false, err);
    PQclear(r);
    return n;
}

/* ---- work ---------------------------------------------------------------------------------------------- */

static bool is_stopping(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping;
    pthread_mutex_unlock(&s->lock);
    return stopping;
}

static bool has_trims(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool trims = s->trims.first;
    pthread_mutex_unlock(&s->lock);
    return trims;
}

static pg_request *first_request(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    pg_request *r = s->requests;
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void lose_control(pg_store *s)
{
    dgm_err why = {0};
    dgm_pg_fault(NULL, NULL, false, &why);
    dgm_pg_store_fault(s, &why);
    PQfinish(s->control);
    s->control = NULL;
}

/* A failed connection in words that callers may read: without names of servers and users. */
static void hide_names(dgm_err *why)
{
    if (strstr(why->msg, "too many clients") || strstr(why->msg, "connection slots"))
        dgm_fail(
            why, DGM_UNAVAILABLE, NULL,
            "PostgreSQL has no free connection: increase its max_connections, or reduce `loops`");
    else if (strstr(why->msg, "authentication failed") || strstr(why->msg, "no password supplied"))
        dgm_fail(why, DGM_UNAVAILABLE, NULL,
                 "PostgreSQL refuses this user: set PGPASSWORD, PGPASSFILE or a service file");
    else
        dgm_pg_fault(NULL, NULL, false, why);
}

static bool regain_control(pg_store *s)
{
    dgm_err why = {0};
    PGconn *c = NULL;
    if (dgm_pg_connect(&s->target, PG_CONTROL, &c, &why)) {
        hide_names(&why);
        dgm_pg_store_fault(s, &why);
        return false;
    }
    s->control = c;
    dgm_pg_store_fault(s, NULL);
    return true;
}

/* Where the control connection is. If that server is away, or is not the one to write to any more: wherever one is found, and
 * the control connection is made again. Of several servers the first ones may be away for long: each attempt takes seconds. */
static dgm_code connect_for_loop(pg_store *s, pg_role role, PGconn **ret_conn, dgm_err *err)
{
    if (s->control && !dgm_pg_connect_like(&s->target, role, s->control, ret_conn, err))
        return DGM_OK;
    dgm_code code = dgm_pg_connect(&s->target, role, ret_conn, err);
    if (!code && s->control &&
        (strcmp(PQhost(s->control), PQhost(*ret_conn)) != 0 ||
         strcmp(PQhostaddr(s->control), PQhostaddr(*ret_conn)) != 0 ||
         strcmp(PQport(s->control), PQport(*ret_conn)) != 0))
        lose_control(s);
    return code;
}

/* Connects for one loop; false: not now. */
static bool serve_request(pg_store *s)
{
    pg_request *r = first_request(s);
    dgm_err why = {0};
    if (!r)
        return true;
    if (!r->is_canceled && connect_for_loop(s, r->role, &r->conn, &why)) {
        hide_names(&why);
        dgm_pg_store_fault(s, &why);
        return false;
    }
    pthread_mutex_lock(&s->lock);
    pg_request **at = &s->requests;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    pthread_mutex_unlock(&s->lock);
    dgm_loop_post(r->loop, dgm_pg_loop_connected, r);
    return true;
}

static void answer_trim(pg_store *s, dgm_job *job, dgm_code code, const dgm_err *err)
{
    job->code = code;
    if (code)
        job->err = *err;
    job->next = NULL;
    dgm_loop_post(job->loop, dgm_job_on_answers, job);
    pthread_mutex_lock(&s->lock);
    s->n_trims--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* One step of the first trim. */
static void serve_trim(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    dgm_job *job = s->trims.first;
    pthread_mutex_unlock(&s->lock);
    if (!job)
        return;
    dgm_err err = {0};
    bool more = false, may = false;
    dgm_code code = s->control ? dgm_pg_lease_job(s, s->control, DGM_STR("retention"), &may, &err)
                               : dgm_pg_fault(NULL, NULL, false, &err);
    if (!code && may)
        code = dgm_pg_trim_step(s->control, job, &more, &err);
    if (more)
        return;
    pthread_mutex_lock(&s->lock);
    s->trims.first = job->next;
    pthread_mutex_unlock(&s->lock);
    answer_trim(s, job, code, &err);
}

static bool has_fault(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool fault = s->fault.code;
    pthread_mutex_unlock(&s->lock);
    return fault;
}

/* Those who see the store failed send no writes: one of its own. */
static void probe_database(pg_store *s)
{
    dgm_err why = {0};
    dgm_code code;
    char sql[100];
    snprintf(sql, sizeof sql, "UPDATE dragoman.replicas SET probe=probe+1 WHERE id=%lld",
             (long long)s->base.replica);
    if (has_fault(s)) {
        dgm_pg_query_int(s->control, sql, &code, &why);
        dgm_pg_store_fault(s, code ? &why : NULL);
    } else {
        dgm_pg_query_int(s->control, "SELECT 1", &code, &why);
    }
}

static void pg_keeper_sleep(pg_store *s, int ms)
{
    struct pollfd fds[2] = {{.fd = s->wake[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    char bytes[64];
    if (s->control)
        fds[1].fd = PQsocket(s->control);
    poll(fds, 2, ms);
    while (read(s->wake[0], bytes, sizeof bytes) > 0)
        continue;
    if (s->control && fds[1].revents && !PQconsumeInput(s->control))
        lose_control(s);
}

static bool has_work(pg_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool work = s->requests || s->trims.first || s->stopping;
    pthread_mutex_unlock(&s->lock);
    return work;
}

static void *keeper_main(void *arg)
{
    pg_store *s = arg;
    int backoff = RETRY_MS_MIN;
    while (!is_stopping(s) || has_trims(s)) {
        bool ok = true;
        if (s->control && PQstatus(s->control) != CONNECTION_OK)
            lose_control(s);
        if (!s->control)
            ok = regain_control(s);
        if (ok)
            ok = serve_request(s);
        serve_trim(s);
        if (!ok) {
            pg_keeper_sleep(s, backoff);
            backoff = backoff * 2 < RETRY_MS_MAX ? backoff * 2 : RETRY_MS_MAX;
            continue;
        }
        backoff = RETRY_MS_MIN;
        if (has_work(s))
            continue;
        pg_keeper_sleep(s, has_fault(s) ? 1000 : CHECK_MS);
        if (s->control && PQstatus(s->control) == CONNECTION_OK && !has_work(s))
            probe_database(s);
    }
    return NULL;
}

/* ---- for the others ------------------------------------------------------------------------------------ */

void dgm_pg_keeper_wake(pg_store *s)
{
    (void)!write(s->wake[1], "", 1);
}

void dgm_pg_keeper_connect(pg_store *s, pg_pipe *p, pg_role role)
{
    pg_request *r = dgm_xcalloc(1, sizeof *r);
    r->loop = p->loop->loop;
    r->pipe = p;
    r->role = role;
    p->request = r;
    pthread_mutex_lock(&s->lock);
    pg_request **end = &s->requests;
    while (*end)
        end = &(*end)->next;
    *end = r;
    pthread_mutex_unlock(&s->lock);
    dgm_pg_keeper_wake(s);
}

void dgm_pg_keeper_trim(pg_store *s, dgm_job *job)
{
    pthread_mutex_lock(&s->lock);
    *(s->trims.first ? &s->trims.last->next : &s->trims.first) = job;
    s->trims.last = job;
    s->n_trims++;
    pthread_mutex_unlock(&s->lock);
    dgm_pg_keeper_wake(s);
}

dgm_code dgm_pg_keeper_open(pg_store *s, dgm_err *err)
{
    sigset_t all, before;
    dgm_code code = dgm_pg_connect(&s->target, PG_CONTROL, &s->control, err);
    if (!code)
        code = dgm_pg_migrate(s->control, &s->target, err);
    if (!code && pipe(s->wake) != 0) {
        s->wake[0] = s->wake[1] = -1;
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot open a pipe: %s: raise the limit "
                        "(ulimit -n)",
                        strerror(errno));
    }
    if (code)
        return code;
    for (int i = 0; i < 2; i++) {
        fcntl(s->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(s->wake[i], F_SETFD, FD_CLOEXEC);
    }
    /* our threads take no signals: those are for the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&s->keeper, NULL, keeper_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->has_keeper = error == 0;
    if (error)
        code = dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot start a thread for the database: %s: raise the limit (ulimit -u)",
                        strerror(error));
    return code;
}

void dgm_pg_keeper_stop(pg_store *s)
{
    if (!s->has_keeper)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    dgm_pg_keeper_wake(s);
    pthread_join(s->keeper, NULL);
    s->has_keeper = false;
}

void dgm_pg_keeper_close(pg_store *s)
{
    for (pg_request *r = s->requests, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    s->requests = NULL;
    PQfinish(s->control);
    s->control = NULL;
    for (int i = 0; i < 2; i++) {
        if (s->wake[i] >= 0)
            close(s->wake[i]);
    }
}
