/*
 * core/left.c - callers that disconnect before there is a task.
 *
 * No client can find, read or stop a run without a task, so it ends when everybody who waits for its first event has
 * left. A message that was sent several times has several callers.
 */
#include "core/core_int.h"

#include <stdlib.h>

struct leaving {
    dgm_core *core;
    uint64_t number;
};

static bool all_callers_left(const struct call *first)
{
    for (const struct call *c = dgm_resend_copies_of(first); c; c = c->next) {
        if (!c->send.has_left)
            return false;
    }
    return first->send.has_left;
}

/* Messages without an id that is remembered are only known by their runs. */
static struct call *find_send(struct shard *s, uint64_t number, struct call **ret_first)
{
    struct call *c = dgm_resend_find(s, number, ret_first);
    for (struct run *r = s->runs; !c && r; r = r->next) {
        if (r->caller && r->caller->send.number == number)
            c = *ret_first = r->caller;
    }
    return c;
}

static void handle_caller_left(void *arg)
{
    struct leaving *l = arg;
    struct shard *s = &l->core->shards[l->number % DGM_MAX_LOOPS];
    struct call *first = NULL, *c = find_send(s, l->number, &first);
    free(l);
    if (!c)
        return; /* it was decided before */
    c->send.has_left = true;
    if (first && first->send.run && all_callers_left(first))
        dgm_core_run_abandon(first->send.run);
}

void dgm_core_caller_left(dgm_core *core, uint64_t sent)
{
    if (!sent)
        return;
    struct leaving *l = dgm_xmalloc(sizeof *l);
    *l = (struct leaving){core, sent};
    dgm_loop_post(core->shards[sent % DGM_MAX_LOOPS].loop, handle_caller_left, l);
}
