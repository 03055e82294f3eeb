/*
 * store/postgres/postgres_pipe.c - a connection of a loop: operations in a pipeline, their results.
 *
 * An operation is one statement or several, then a sync: one transaction, committed when the sync is answered. Nothing
 * here blocks: bytes that the socket does not accept wait for poll. A large operation is sent one statement at a time, after
 * the previous one was sent: libpq would otherwise copy all of it and not free the memory.
 */
#include "postgres_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void on_poll(uv_poll_t *poll, int status, int events)
{
    pg_pipe *p = poll->data;
    (void)events;
    dgm_pg_pipe_run(p, true);
    (void)status; /* a broken socket is readable, and libpq says what it is */
}

static void on_poll_closed(uv_handle_t *poll)
{
    free(poll);
}

static void update_poll(pg_pipe *p)
{
    if (!p->conn || !p->poll)
        return;
    bool write;
    dgm_pg_pipe_socket(p, &write);
    int events = UV_READABLE | (write ? UV_WRITABLE : 0);
    if (events != p->events)
        uv_poll_start(p->poll, events, on_poll);
    p->events = events;
}

int dgm_pg_pipe_socket(const pg_pipe *p, bool *ret_write)
{
    *ret_write = PQflush(p->conn) > 0 || p->sending;
    return PQsocket(p->conn);
}

void dgm_pg_pipe_attach(pg_pipe *p, PGconn *conn)
{
    p->conn = conn;
    p->sending = false;
    p->events = 0;
    p->progress_ms = uv_hrtime() / 1000000;
    if (p->loop->blocking) {
        p->waits_ms = 0;
        return;
    }
    p->poll = dgm_xcalloc(1, sizeof *p->poll);
    p->fd = fcntl(PQsocket(conn), F_DUPFD_CLOEXEC, 0);
    if (p->fd < 0 || uv_poll_init_socket(&p->loop->loop->uv, p->poll, p->fd) != 0) {
        if (p->fd >= 0)
            close(p->fd);
        free(p->poll);
        p->poll = NULL;
        PQfinish(conn);
        p->conn = NULL;
        return;
    }
    p->waits_ms =
        0; /* not before: without a file descriptor its jobs still wait, and that has an end */
    p->poll->data = p;
    update_poll(p);
}

void dgm_pg_pipe_leave_loop(pg_pipe *p)
{
    if (!p->poll)
        return;
    uv_poll_stop(p->poll);
    uv_close((uv_handle_t *)p->poll, on_poll_closed);
    close(p->fd);
    p->poll = NULL;
}

void dgm_pg_pipe_detach(pg_pipe *p)
{
    dgm_pg_pipe_leave_loop(p);
    PQfinish(p->conn);
    p->conn = NULL;
    p->sending = p->refused = false;
    p->first = p->last = NULL;
    p->n = p->n_out = 0;
}

/* The connection is well, but libpq did not take a statement of the last operation. */
static void check_refusal(pg_pipe *p)
{
    if (p->refused && p->last && !p->last->failed) {
        p->last->failed = p->last->odd = true;
        p->last->code = dgm_fail(&p->last->err, DGM_INTERNAL, NULL,
                                 "a statement for the database is too large");
    }
    p->refused = false;
}

void dgm_pg_pipe_add(pg_pipe *p, pg_op *op, bool sending)
{
    op->next = NULL;
    *(p->first ? &p->last->next : &p->first) = op;
    if (!p->n)
        p->progress_ms = uv_hrtime() / 1000000;
    p->last = op;
    p->n++;
    p->sending = sending;
    check_refusal(p);
}

/* False: the connection is lost. */
static bool pipe_send(pg_pipe *p)
{
    while (p->sending) {
        int left = PQflush(p->conn);
        if (left)
            return left > 0;
        p->sending = p->use->send_more(p->loop, p->last);
        check_refusal(p);
        if (PQstatus(p->conn) != CONNECTION_OK)
            return false;
    }
    return PQflush(p->conn) >= 0;
}

static void op_failed(pg_op *op, PGconn *conn, const PGresult *r)
{
    if (op->failed)
        return;
    op->failed = true;
    op->odd = dgm_pg_is_odd(r);
    op->conflict = dgm_pg_is_conflict(r);
    op->refused = dgm_pg_is_refused(r);
    op->code = dgm_pg_fault(conn, r, false, &op->err);
}

/* One result; false: none is here. */
static bool pipe_receive(pg_pipe *p, bool *ret_lost)
{
    pg_op *op = p->first;
    if (op->by_row && !op->is_by_row)
        op->is_by_row = PQsetSingleRowMode(p->conn);
    if (!p->n_out || PQisBusy(p->conn))
        return false;
    PGresult *r = PQgetResult(p->conn);
    if (!r) { /* the end of a statement */
        p->n_out--;
        return PQstatus(p->conn) == CONNECTION_OK;
    }
    switch (PQresultStatus(r)) {
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
        if (!op->failed)
            p->use->on_result(p->loop, op, r);
        break;
    case PGRES_COMMAND_OK:
    case PGRES_PIPELINE_ABORTED: break;
    case PGRES_PIPELINE_SYNC:
        p->first = op->next;
        p->n--;
        p->n_out--;
        PQclear(r);
        p->use->on_done(p->loop, op);
        return p->conn && p->n > 0;
    default:
        if (PQstatus(p->conn) != CONNECTION_OK || dgm_pg_is_ending(r))
            *ret_lost = true;
        else
            op_failed(op, p->conn, r);
    }
    PQclear(r);
    return !*ret_lost;
}

void dgm_pg_pipe_run(pg_pipe *p, bool can_read)
{
    if (!p->conn)
        return;
    bool lost = !pipe_send(p);
    if (!lost && can_read) {
        lost = !PQconsumeInput(p->conn);
        if (p->n)
            p->progress_ms = uv_hrtime() / 1000000;
    }
    while (!lost && p->conn && p->n && pipe_receive(p, &lost))
        continue;
    if (!p->conn)
        return;
    lost |= PQstatus(p->conn) != CONNECTION_OK;
    if (!lost)
        lost = !pipe_send(p);
    if (lost) {
        dgm_err why = {0};
        dgm_pg_fault(p->conn, NULL, false, &why);
        p->use->on_lost(p->loop, p, &why);
        return;
    }
    update_poll(p);
}
