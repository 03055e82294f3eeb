/*
 * backend/exec/exec_share.c - how many programs an agent runs, and for whom.
 *
 * No principal may occupy all of them: others would be refused until its programs end. Callers of a server
 * without tokens are one principal without a name; there are no others then, and no share.
 */
#include "backend/exec/exec_int.h"

#include <stdlib.h>

struct exec_share {
    struct exec_share *next;
    size_t n_running;
    size_t n_tenant, n;
    char owner[]; /* tenant, then principal */
};

static bool is_share_of(const struct exec_share *s, const dgm_run_input *in)
{
    return s->n_tenant == in->tenant.n && s->n == in->tenant.n + in->principal.n &&
           (!in->tenant.n || memcmp(s->owner, in->tenant.p, in->tenant.n) == 0) &&
           (!in->principal.n ||
            memcmp(s->owner + s->n_tenant, in->principal.p, in->principal.n) == 0);
}

/* A list: it is as long as there are principals with a program running, and a start costs far more. */
static struct exec_share *share_of(struct exec *x, const dgm_run_input *in)
{
    struct exec_share *s = x->shares;
    while (s && !is_share_of(s, in))
        s = s->next;
    if (s)
        return s;
    s = dgm_xcalloc(1, sizeof *s + in->tenant.n + in->principal.n);
    s->n_tenant = in->tenant.n;
    s->n = in->tenant.n + in->principal.n;
    if (in->tenant.n)
        memcpy(s->owner, in->tenant.p, in->tenant.n);
    if (in->principal.n)
        memcpy(s->owner + s->n_tenant, in->principal.p, in->principal.n);
    s->next = x->shares;
    x->shares = s;
    return s;
}

static void drop_if_unused(struct exec *x, struct exec_share *s)
{
    struct exec_share **at = &x->shares;
    if (s->n_running)
        return;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
}

enum exec_room dgm_exec_share_enter(struct exec *x, const dgm_run_input *in,
                                    struct exec_share **ret_share)
{
    enum exec_room room = EXEC_ROOM;
    pthread_mutex_lock(&x->lock);
    struct exec_share *s = share_of(x, in);
    if (in->principal.n && s->n_running >= x->max_processes_per_principal)
        room = EXEC_CALLER_BUSY;
    else if (x->n_running >= x->max_processes)
        room = EXEC_AGENT_BUSY;
    if (room == EXEC_ROOM) {
        x->n_running++;
        s->n_running++;
        *ret_share = s;
    } else {
        drop_if_unused(x, s);
    }
    pthread_mutex_unlock(&x->lock);
    return room;
}

void dgm_exec_share_leave(struct exec *x, struct exec_share *s)
{
    pthread_mutex_lock(&x->lock);
    x->n_running--;
    s->n_running--;
    drop_if_unused(x, s);
    pthread_mutex_unlock(&x->lock);
}
