/*
 * frontend/turn/turn_unsent.c - responses with a context's history that their clients have not read yet.
 *
 * Such a response is a copy of everything in the context, and stays in memory until the kernel has taken it: a client
 * that reads slowly, or not at all, decides how long. So their bytes are counted, per server and per principal, and a
 * request that would exceed either limit is refused.
 */
#include "frontend/turn/turn_int.h"

#include <stdlib.h>

#define SMALL_BYTES ((size_t)64 << 10) /* no more than any other response: not counted */

#define SLOTS 64 /* two principals may share one */

/* Has references: a response may be on its way when the site that it came from is gone. */
struct unsent {
    pthread_mutex_t lock;
    size_t refs, bytes, of_principal[SLOTS];
};

struct dgm_turn_hold {
    struct unsent *unsent;
    size_t bytes, slot;
};

struct unsent *dgm_unsent_new(void)
{
    struct unsent *u = dgm_xcalloc(1, sizeof *u);
    pthread_mutex_init(&u->lock, NULL);
    u->refs = 1;
    return u;
}

void dgm_unsent_unref(struct unsent *u)
{
    pthread_mutex_lock(&u->lock);
    bool is_last = --u->refs == 0;
    pthread_mutex_unlock(&u->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&u->lock);
    free(u);
}

static size_t slot_of(dgm_owner owner)
{
    uint64_t tenant = dgm_hash(0, owner.tenant.p, owner.tenant.n);
    return dgm_hash(tenant, owner.principal.p, owner.principal.n) % SLOTS;
}

dgm_code dgm_turns_hold(dgm_turns *t, dgm_owner owner, size_t bytes, dgm_turn_hold **ret_hold,
                        dgm_err *err)
{
    struct unsent *u = t->state->unsent;
    size_t slot = slot_of(owner);
    *ret_hold = NULL;
    if (bytes <= SMALL_BYTES)
        return DGM_OK;
    pthread_mutex_lock(&u->lock);
    bool has_room = u->bytes + bytes <= DGM_MAX_UNSENT_BYTES &&
                    u->of_principal[slot] + bytes <= DGM_MAX_UNSENT_BYTES_OF_ONE;
    if (has_room) {
        u->refs++;
        u->bytes += bytes;
        u->of_principal[slot] += bytes;
    }
    pthread_mutex_unlock(&u->lock);
    if (!has_room)
        return dgm_fail(err, DGM_RATE_LIMITED, NULL,
                        "too many histories are on their way to clients: the limit unsent_bytes is "
                        "%zu per caller and %zu in all. Read the responses, then try again",
                        DGM_MAX_UNSENT_BYTES_OF_ONE, DGM_MAX_UNSENT_BYTES);
    *ret_hold = dgm_xcalloc(1, sizeof **ret_hold);
    **ret_hold = (dgm_turn_hold){u, bytes, slot};
    return DGM_OK;
}

void dgm_turn_release_hold(dgm_turn_hold *h)
{
    if (!h)
        return;
    struct unsent *u = h->unsent;
    pthread_mutex_lock(&u->lock);
    u->bytes -= h->bytes;
    u->of_principal[h->slot] -= h->bytes;
    pthread_mutex_unlock(&u->lock);
    dgm_unsent_unref(u);
    free(h);
}

dgm_turn_hold *dgm_turn_take_hold(const dgm_turn_history *history)
{
    dgm_turn_hold *h = *history->hold;
    *history->hold = NULL;
    return h;
}

/* ---- on the way ---------------------------------------------------------------------------------------------- */

struct sending {
    char *bytes;
    dgm_turn_hold *hold;
};

static void on_bytes_sent(void *arg)
{
    struct sending *s = arg;
    dgm_turn_release_hold(s->hold);
    free(s->bytes);
    free(s);
}

static struct sending *new_sending(dgm_buf *body, dgm_turn_hold *hold, dgm_str *ret_bytes)
{
    struct sending *s = dgm_xcalloc(1, sizeof *s);
    s->hold = hold;
    s->bytes = dgm_buf_steal(body, &ret_bytes->n);
    ret_bytes->p = s->bytes;
    return s;
}

void dgm_turn_respond_held(dgm_http_exchange *x, dgm_str type, const dgm_http_header *headers,
                           size_t n, dgm_buf *body, dgm_turn_hold *hold)
{
    dgm_str bytes;
    struct sending *s = new_sending(body, hold, &bytes);
    dgm_http_respond_shared(x, 200, type, headers, n, bytes, on_bytes_sent, s);
}

void dgm_turns_write_held(dgm_http_exchange *x, dgm_buf *bytes, dgm_turn_hold *hold)
{
    dgm_str text;
    struct sending *s = new_sending(bytes, hold, &text);
    dgm_http_write_shared(x, text, on_bytes_sent, s);
}
