/*
 * frontend/a2a/a2a_front_gone.c - runs belong to tasks, not connections; but a server may be told that they
 * end when whoever began them has left and nobody else reads (on_disconnect: cancel).
 */
#include "frontend/a2a/a2a_front_int.h"

/* Lives as long as the exchange: the request may be forgotten before. */
struct began {
    dgm_a2a_front *front;
    uint32_t turn;
    dgm_str tenant, principal, task_id;
    char room[];
};

static dgm_str keep(char **room, dgm_str s)
{
    dgm_str kept = {*room, s.n};
    if (s.n)
        memcpy(*room, s.p, s.n);
    *room += s.n;
    return kept;
}

struct began *began_by(struct op *op)
{
    dgm_owner owner = op->owner;
    if (!op->front->o.cancel_on_disconnect || !op->turn)
        return NULL;
    struct began *b =
        dgm_http_alloc(op->x, sizeof *b + owner.tenant.n + owner.principal.n + op->task_id.n);
    char *room = b->room;
    b->front = op->front;
    b->turn = op->turn;
    b->tenant = keep(&room, owner.tenant);
    b->principal = keep(&room, owner.principal);
    b->task_id = keep(&room, op->task_id);
    return b;
}

void began_gone(const struct began *b)
{
    if (b)
        dgm_core_disconnected(b->front->core, (dgm_owner){b->tenant, b->principal},
                              b->front->o.agent, b->task_id, b->turn, b->front->o.grace_ms);
}
