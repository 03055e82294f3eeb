/*
 * core/adopt.c - a message without a taskId, to an agent that has one thread per context: is a question open there?
 *
 * A message with the id of a message of the agent is refused first, because the thread would replace the agent's message.
 *
 * A new task would start the thread again and discard the question. If exactly one task of the context waits for an answer, the
 * message is the answer. Otherwise it starts a new task, as for every agent.
 */
#include "core/core_int.h"
#include "model/conversation.h"

struct adopting {
    struct shard *shard;
    struct call *call;
    dgm_arena *arena;
    dgm_str found; /* the task that waits */
    size_t n;      /* how many do */
    bool asked_auth;
};

static void adopt_finish(struct adopting *x)
{
    struct shard *s = x->shard;
    struct call *c = x->call;
    dgm_str found = x->n == 1 ? dgm_arena_dup(c->arena, x->found) : (dgm_str){0};
    dgm_arena_free(x->arena); /* x lives in it */
    if (found.n)
        dgm_resend_to_waiting_task(s, c, found);
    else
        dgm_core_run_start(s, c, NULL, NULL);
}

static void adopt_ask(struct adopting *x, dgm_task_state state);

static void adopt_on_agent_message(dgm_code code, const dgm_task_row *row, const dgm_err *err,
                                   void *arg)
{
    struct adopting *x = arg;
    struct shard *s = x->shard;
    struct call *c = x->call;
    (void)err;
    if (!code && row) {
        dgm_arena_free(x->arena); /* x lives in it */
        dgm_resend_refuse(s, c, row->id);
    } else if (s->core->stopping || dgm_message_has_transcript(c->send.message)) {
        adopt_finish(x);
    } else {
        adopt_ask(x, DGM_STATE_INPUT_REQUIRED);
    }
}

static void adopt_on_rows(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                          size_t total, const dgm_err *err, void *arg)
{
    struct adopting *x = arg;
    (void)more, (void)total, (void)err;
    for (size_t i = 0; !code && i < n; i++) {
        x->found = dgm_arena_dup(x->arena, rows[i].id);
        x->n++;
    }
    if (!code && !x->asked_auth && x->n < 2 && !x->shard->core->stopping)
        adopt_ask(x, DGM_STATE_AUTH_REQUIRED);
    else
        adopt_finish(x);
}

static void adopt_ask(struct adopting *x, dgm_task_state state)
{
    const struct call *c = x->call;
    dgm_list_query q = {.owner = c->owner,
                        .agent = c->agent->id,
                        .context_id = c->send.asked_context,
                        .state = {true, state},
                        .page_size = 2};
    x->asked_auth = state == DGM_STATE_AUTH_REQUIRED;
    dgm_store_list(x->shard->core->o.store, &q, adopt_on_rows, x);
}

void dgm_core_adopt_or_start(struct shard *s, struct call *c)
{
    if (!c->agent->backend->has_threads || !c->send.asked_context.n || s->core->stopping) {
        dgm_core_run_start(s, c, NULL, NULL);
        return;
    }
    dgm_arena *a = dgm_arena_new();
    struct adopting *x = dgm_new(a, struct adopting);
    *x = (struct adopting){.shard = s, .call = c, .arena = a};
    dgm_store_find_call(s->core->o.store, c->owner, c->agent->id,
                        dgm_core_agent_message_key(a, c->send.asked_context, c->send.message_id),
                        adopt_on_agent_message, x);
}
