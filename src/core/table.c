/* core/table.c - hash tables of one loop; the live tasks, by owner and id. */
#include "core/core_int.h"

#include <stdlib.h>

static void table_grow(struct table *t)
{
    size_t cap = t->cap ? t->cap * 2 : 16;
    struct node **slots = dgm_xcalloc(cap, sizeof(struct node *));
    for (size_t i = 0; i < t->cap; i++) {
        for (struct node *at = t->slots[i], *next; at; at = next) {
            next = at->next;
            at->next = slots[at->hash & (cap - 1)];
            slots[at->hash & (cap - 1)] = at;
        }
    }
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
}

void dgm_core_table_put(struct table *t, struct node *node, uint64_t hash)
{
    if (t->n >= t->cap)
        table_grow(t);
    node->hash = hash;
    node->next = t->slots[hash & (t->cap - 1)];
    t->slots[hash & (t->cap - 1)] = node;
    t->n++;
}

void dgm_core_table_remove(struct table *t, struct node *node)
{
    struct node **at = &t->slots[node->hash & (t->cap - 1)];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    t->n--;
}

struct node *dgm_core_table_at(const struct table *t, uint64_t hash)
{
    return t->cap ? t->slots[hash & (t->cap - 1)] : NULL;
}

void dgm_core_table_done(struct table *t)
{
    free(t->slots);
    *t = (struct table){0};
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

static uint64_t task_hash(dgm_owner owner, dgm_str id)
{
    uint64_t h = dgm_hash_seed();
    if (owner.tenant.n)
        h = dgm_hash(h, owner.tenant.p, owner.tenant.n);
    if (owner.principal.n)
        h = dgm_hash(h + 1, owner.principal.p, owner.principal.n);
    return dgm_hash(h + 2, id.p, id.n);
}

/* The same hash decides which loop owns what. */
struct shard *dgm_core_shard_of(dgm_core *core, dgm_owner owner, dgm_str key)
{
    if (core->n_shards == 1)
        return core->shards;
    return &core->shards[(task_hash(owner, key) >> 20) % core->n_shards];
}

static bool is_same(const struct live *l, uint64_t hash, dgm_owner owner, dgm_str id)
{
    return l->node.hash == hash && dgm_str_eq(l->id, id) &&
           dgm_str_eq(l->owner.tenant, owner.tenant) &&
           dgm_str_eq(l->owner.principal, owner.principal);
}

struct live *dgm_live_find(struct shard *s, dgm_owner owner, dgm_str id)
{
    uint64_t hash = task_hash(owner, id);
    struct node *at = dgm_core_table_at(&s->lives, hash);
    while (at && !is_same((struct live *)(void *)at, hash, owner, id))
        at = at->next;
    return (struct live *)(void *)at;
}

dgm_str dgm_core_copy_text(char **at, dgm_str s)
{
    char *to = *at;
    if (s.n)
        memcpy(to, s.p, s.n);
    *at += s.n;
    return (dgm_str){to, s.n};
}

struct live *dgm_live_alloc(struct shard *s, dgm_owner owner, dgm_str id, size_t context_room)
{
    size_t names = owner.tenant.n + owner.principal.n + id.n;
    struct live *l = dgm_xmalloc(sizeof *l + names + context_room);
    char *at = l->texts;
    *l = (struct live){.shard = s, .context_room = (uint32_t)context_room};
    l->turns.items = &l->turns.first;
    l->turns.cap = 1;
    l->write.flush = (dgm_loop_turn){.fn = dgm_live_flush, .arg = l};
    l->owner.tenant = dgm_core_copy_text(&at, owner.tenant);
    l->owner.principal = dgm_core_copy_text(&at, owner.principal);
    l->id = dgm_core_copy_text(&at, id);
    l->calls.waiting_end = &l->calls.waiting;
    dgm_core_table_put(&s->lives, &l->node, task_hash(owner, id));
    atomic_fetch_add_explicit(&s->core->live, 1, memory_order_relaxed);
    return l;
}

void dgm_live_set_context(struct live *l, dgm_str context_id)
{
    bool fits = context_id.n <= l->context_room;
    char *at = fits ? (char *)(uintptr_t)(l->id.p + l->id.n) : dgm_xmalloc(context_id.n);
    l->context_id = dgm_core_copy_text(&at, context_id);
}
