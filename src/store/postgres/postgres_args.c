/* store/postgres/postgres_args.c - parameters of statements and columns of results, in the binary form of the protocol. */
#include "postgres_int.h"

#include <poll.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <assert.h>

enum { OID_BYTES = 17, OID_INT8 = 20, OID_BYTES_ARRAY = 1001, OID_INT8_ARRAY = 1016 };

#define ARRAY_HEAD 20 /* dimensions, has nulls, type, length, lower bound */

static void put_be32(char *to, uint32_t v)
{
    v = htonl(v);
    memcpy(to, &v, sizeof v);
}

static void add_be32(dgm_buf *b, uint32_t v)
{
    char bytes[4];
    put_be32(bytes, v);
    dgm_buf_add(b, bytes, sizeof bytes);
}

static void add_be64(dgm_buf *b, uint64_t v)
{
    add_be32(b, (uint32_t)(v >> 32));
    add_be32(b, (uint32_t)v);
}

void dgm_pg_args_init(pg_args *a)
{
    memset(a, 0, sizeof *a);
    dgm_buf_init(&a->bytes, (size_t)1 << 30);
}

void dgm_pg_args_clear(pg_args *a)
{
    a->n = 0;
    dgm_buf_clear(&a->bytes);
    dgm_buf_shrink(&a->bytes, (size_t)1 << 20);
}

void dgm_pg_args_done(pg_args *a)
{
    dgm_buf_done(&a->bytes);
}

void dgm_pg_arg_str(pg_args *a, dgm_str s)
{
    assert(a->n < PG_MAX_ARGS);
    a->types[a->n] = OID_BYTES;
    a->args[a->n].p = s.p ? s.p : "";
    a->args[a->n].n = s.n;
    a->n++;
}

static void begin_own(pg_args *a, Oid type)
{
    assert(a->n < PG_MAX_ARGS);
    a->types[a->n] = type;
    a->args[a->n].p = NULL;
    a->args[a->n].at = a->bytes.n;
}

static void end_own(pg_args *a)
{
    a->args[a->n].n = a->bytes.n - a->args[a->n].at;
    a->n++;
}

void dgm_pg_arg_int(pg_args *a, int64_t v)
{
    begin_own(a, OID_INT8);
    add_be64(&a->bytes, (uint64_t)v);
    end_own(a);
}

void dgm_pg_array_begin(pg_args *a, bool of_numbers)
{
    begin_own(a, of_numbers ? OID_INT8_ARRAY : OID_BYTES_ARRAY);
    a->array = a->bytes.n;
    a->n_elements = 0;
    add_be32(&a->bytes, 1);
    add_be32(&a->bytes, 1); /* nulls may be in it */
    add_be32(&a->bytes, of_numbers ? OID_INT8 : OID_BYTES);
    add_be32(&a->bytes, 0);
    add_be32(&a->bytes, 1);
}

void dgm_pg_array_str(pg_args *a, dgm_str s)
{
    a->n_elements++;
    add_be32(&a->bytes, s.p ? (uint32_t)s.n : UINT32_MAX);
    if (s.p)
        dgm_buf_add(&a->bytes, s.p, s.n);
}

void dgm_pg_array_int(pg_args *a, int64_t v)
{
    a->n_elements++;
    add_be32(&a->bytes, 8);
    add_be64(&a->bytes, (uint64_t)v);
}

void dgm_pg_array_end(pg_args *a)
{
    if (!a->bytes.over)
        put_be32(a->bytes.p + a->array + 12, a->n_elements);
    end_own(a);
}

const char *dgm_pg_sql_name(pg_sql which)
{
    static const char *const names[] = {
#define X(name) #name,
        DGM_PG_STATEMENTS(X)
#undef X
    };
    return names[which];
}

void dgm_pg_args_move_first(pg_args *a)
{
    Oid type = a->types[0];
    __typeof__(a->args[0]) arg = a->args[0];
    int last = a->n - 1;
    memmove(a->types, a->types + 1, (size_t)last * sizeof *a->types);
    memmove(a->args, a->args + 1, (size_t)last * sizeof *a->args);
    a->types[last] = type;
    a->args[last] = arg;
}

struct sent {
    const char *values[PG_MAX_ARGS];
    int lengths[PG_MAX_ARGS], formats[PG_MAX_ARGS];
};

static void fill_sent(const pg_args *a, struct sent *s)
{
    for (int i = 0; i < a->n; i++) {
        s->values[i] = a->args[i].p ? a->args[i].p : a->bytes.p + a->args[i].at;
        s->lengths[i] = (int)a->args[i].n;
        s->formats[i] = 1;
    }
}

static void was_sent(pg_pipe *p, int ok)
{
    p->n_out += ok != 0;
    p->refused |= !ok;
}

void dgm_pg_send(pg_pipe *p, pg_sql which, const pg_args *a)
{
    struct sent s;
    fill_sent(a, &s);
    was_sent(p, !a->bytes.over && PQsendQueryPrepared(p->conn, dgm_pg_sql_name(which), a->n,
                                                      s.values, s.lengths, s.formats, 1));
}

void dgm_pg_send_text(pg_pipe *p, const char *sql, const pg_args *a)
{
    struct sent s;
    fill_sent(a, &s);
    was_sent(p, PQsendQueryParams(p->conn, sql, a->n, a->types, s.values, s.lengths, s.formats, 1));
}

void dgm_pg_send_sync(pg_pipe *p)
{
    was_sent(p, PQpipelineSync(p->conn));
}

/* False: the connection is lost. */
static bool wait_for_answer(PGconn *c, uint64_t end_ms)
{
    uint64_t now = uv_hrtime() / 1000000;
    struct pollfd fd = {.fd = PQsocket(c), .events = POLLIN};
    int unsent = PQflush(c);
    if (unsent < 0)
        return false;
    if (unsent)
        fd.events |= POLLOUT;
    if (now >= end_ms)
        shutdown(fd.fd, SHUT_RDWR); /* libpq finds that it is lost */
    poll(&fd, 1, now < end_ms ? (int)(end_ms - now) : 0);
    return PQconsumeInput(c);
}

PGresult *dgm_pg_await(PGconn *c, int was_sent, uint64_t ms)
{
    PGresult *last = NULL, *r;
    uint64_t end_ms = uv_hrtime() / 1000000 + ms;
    if (!was_sent)
        return NULL;
    for (;;) {
        while (PQisBusy(c) && wait_for_answer(c, end_ms))
            continue;
        if (!(r = PQgetResult(c)))
            return last;
        PQclear(last);
        last = r;
    }
}

/* Without it libpq waits until the server has read a large statement. */
static void set_blocking(PGconn *c, bool blocks)
{
    PQsetnonblocking(c, !blocks);
}

PGresult *dgm_pg_exec(PGconn *c, const char *sql, const pg_args *a, uint64_t ms)
{
    struct sent s;
    fill_sent(a, &s);
    set_blocking(c, false);
    PGresult *r = dgm_pg_await(
        c, PQsendQueryParams(c, sql, a->n, a->types, s.values, s.lengths, s.formats, 1), ms);
    set_blocking(c, true);
    return r;
}

PGresult *dgm_pg_exec_text(PGconn *c, const char *sql, uint64_t ms)
{
    return dgm_pg_await(c, PQsendQuery(c, sql), ms);
}

dgm_str dgm_pg_str(const PGresult *r, int row, int column)
{
    if (PQgetisnull(r, row, column))
        return (dgm_str){0};
    return (dgm_str){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

int64_t dgm_pg_int(const PGresult *r, int row, int column)
{
    const unsigned char *p = (const unsigned char *)PQgetvalue(r, row, column);
    int n = PQgetisnull(r, row, column) ? 0 : PQgetlength(r, row, column);
    uint64_t v = n && p[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}
