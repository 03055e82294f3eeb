/*
 * core/deadline.c - a send that must be answered in time, whatever the agent does (dgm_send.answer_ms).
 *
 *   its run has emitted nothing ──────────────► the run gets its task now
 *   it is a copy of a message like that ──────► likewise
 *   it waits for the task's run to end ───────► it is answered with the task as it is, and stays in the queue
 *
 * In every other case the answer is on its way: it waits for the store, not for an agent.
 */
#include "core/core_int.h"

#include <stdlib.h>

struct deadline {
    dgm_timer timer;
    dgm_loop_stop stop;
    struct shard *shard;
    struct call *call;
};

void dgm_deadline_stop(struct call *c)
{
    struct deadline *d = dgm_take(c->send.deadline);
    if (!d)
        return;
    dgm_loop_off_stop(d->shard->loop, &d->stop);
    dgm_timer_close(&d->timer, free, d);
}

static void end_at_stop(void *arg)
{
    struct deadline *d = arg;
    dgm_deadline_stop(d->call);
}

static void deadline_passed(void *arg)
{
    struct deadline *d = arg;
    struct call *c = d->call,
                *first = c->send.waits_for ? dgm_resend_first_of(c->send.waits_for) : c;
    struct live *l = c->send.queue;
    dgm_deadline_stop(c);
    if (l) {
        l->held++;
        dgm_send_answer_early(l, c);
        l->held--;
        return;
    }
    if (!first)
        return;
    first->send.is_late = true; /* if the store has not answered yet whether the message is new */
    if (first->send.run)
        dgm_core_run_make_task(first->send.run);
}

void dgm_deadline_start(struct shard *s, struct call *c)
{
    if (!c->send.answer_ms || c->send.deadline)
        return;
    struct deadline *d = c->send.deadline = dgm_xcalloc(1, sizeof *d);
    d->shard = s;
    d->call = c;
    dgm_timer_init(s->loop, &d->timer, deadline_passed, d);
    dgm_timer_start(&d->timer, c->send.answer_ms);
    d->stop = (dgm_loop_stop){.fn = end_at_stop, .arg = d};
    dgm_loop_on_stop(s->loop, &d->stop);
}
