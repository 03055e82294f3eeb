/* config/agent_checkpoints.c - see agent_checkpoints.h. */
#include "config/agent_checkpoints.h"

struct stored_checkpoints {
    dgm_agent_checkpoints base; /* first */
    dgm_store *store;
    dgm_str agent;
};

static void read_stored(const dgm_agent_checkpoints *c, const dgm_checkpoint_query *query,
                        dgm_checkpoints_got got, void *arg)
{
    const struct stored_checkpoints *s = (const struct stored_checkpoints *)c;
    dgm_store_read_checkpoints(s->store, s->agent, query, got, arg);
}

static void change_stored(const dgm_agent_checkpoints *c, const dgm_checkpoint_change *change,
                          dgm_store_done done, void *arg)
{
    const struct stored_checkpoints *s = (const struct stored_checkpoints *)c;
    dgm_store_change_checkpoints(s->store, s->agent, change, done, arg);
}

const dgm_agent_checkpoints *dgm_agent_checkpoints_new(dgm_arena *a, dgm_store *store,
                                                       dgm_str agent)
{
    struct stored_checkpoints *s = dgm_new(a, struct stored_checkpoints);
    *s = (struct stored_checkpoints){{read_stored, change_stored}, store, agent};
    return &s->base;
}
