/*
 * net/http_budget.c - how many bytes requests may hold, all together and per caller.
 *
 * A body is charged when its head announces it (a chunked one as it grows, by doubling), twice: it will be decoded, and
 * texts are copied then. So a body that was admitted can always be read to its end and decoded, and one that is
 * refused is refused before it is sent. A request that stays is charged with the memory that it really takes:
 * this cannot be refused any more, but the next request is.
 */
#include "net/http_int.h"

#include <assert.h>

/* Requests below this are not counted: every connection may have one, and most have. */
#define COUNTED_BYTES ((size_t)16 << 10)
/* Requests above this get at most three quarters of a budget. */
#define LARGE_CHARGE ((size_t)64 << 10)

/* own: bytes of this budget that the request has already. If there are no others, it gets any number. */
static bool budget_add(dgm_http_budget *b, size_t n, size_t own)
{
    size_t limit = b->limit, most = own + n > LARGE_CHARGE ? limit / 4 * 3 : limit;
    size_t used = atomic_fetch_add_explicit(&b->used, n, memory_order_relaxed);
    if (!limit || used <= own || (n <= most && used <= most - n))
        return true;
    atomic_fetch_sub_explicit(&b->used, n, memory_order_relaxed);
    return false;
}

static void charge_anyhow(dgm_http_exchange *x, size_t n)
{
    x->charged += n;
    atomic_fetch_add_explicit(&x->shard->server->in_flight.used, n, memory_order_relaxed);
    if (x->budget)
        atomic_fetch_add_explicit(&x->budget->used, n, memory_order_relaxed);
}

void dgm_http_uncharge(dgm_http_exchange *x)
{
    atomic_fetch_sub_explicit(&x->shard->server->in_flight.used, x->charged, memory_order_relaxed);
    if (x->budget)
        atomic_fetch_sub_explicit(&x->budget->used, x->charged, memory_order_relaxed);
    x->charged = 0;
}

void dgm_http_charge_actual(dgm_http_exchange *x)
{
    size_t n = dgm_arena_used(x->arena) + (x->in->is_small ? 0 : x->in->body.n);
    if (n > COUNTED_BYTES && n > x->charged)
        charge_anyhow(x, n - x->charged);
}

static dgm_http_refusal http_charge(dgm_http_exchange *x, size_t n)
{
    dgm_http_budget *all = &x->shard->server->in_flight;
    if (!budget_add(all, n, x->charged))
        return DGM_HTTP_SERVER_FULL;
    if (x->budget && !budget_add(x->budget, n, x->charged)) {
        atomic_fetch_sub_explicit(&all->used, n, memory_order_relaxed);
        return DGM_HTTP_CALLER_FULL;
    }
    x->charged += n;
    return DGM_HTTP_ADMITTED;
}

void dgm_http_set_budget(dgm_http_exchange *x, dgm_http_budget *b)
{
    if (x->budget == b)
        return;
    assert(!x->budget);
    x->budget = b;
    atomic_fetch_add_explicit(&b->used, x->charged, memory_order_relaxed);
}

size_t dgm_http_peer(const dgm_http_exchange *x)
{
    return x->c ? x->c->peer : DGM_HTTP_PEERS;
}

bool dgm_http_charge_body(http_conn *c)
{
    dgm_http_exchange *x = c->x;
    size_t n = dgm_http1_body_bytes(x->in);
    if (n < x->in->length)
        n = x->in->length;
    n *= 2;
    if (n <= x->charged || n < COUNTED_BYTES)
        return true;
    if (n < 2 * x->charged) /* of chunks, whose end is not known */
        n = x->charged < x->in->max_body ? 2 * x->charged : 2 * x->in->max_body;
    dgm_http_refusal no = http_charge(x, n - x->charged);
    if (!no)
        return true;
    dgm_http_refuse_body(c, no, "the server holds too many bytes of requests (in_flight_bytes)");
    return false;
}

void dgm_http_set_max_body(dgm_http_exchange *x, size_t max_body)
{
    if (max_body < x->in->max_body)
        x->in->max_body = max_body;
}
