/* core/table.c - the live tasks of one loop, by owner and id. */
#include "core/core_int.h"

#include <stdlib.h>

static uint64_t hash_of(dgm_owner owner, dgm_str id)
{
    uint64_t h = dgm_hash(0, owner.tenant.p, owner.tenant.n);
    h = dgm_hash(h + 1, owner.principal.p, owner.principal.n);
    return dgm_hash(h + 1, id.p, id.n);
}

/* The same hash decides which loop owns what. */
struct shard *core_shard_of(dgm_core *core, dgm_owner owner, dgm_str key)
{
    return &core->shards[(hash_of(owner, key) >> 20) % core->n_shards];
}

static bool is_same(const struct live *l, uint64_t hash, dgm_owner owner, dgm_str id)
{
    return l->hash == hash && dgm_str_eq(l->id, id) && dgm_str_eq(l->owner.tenant, owner.tenant) &&
           dgm_str_eq(l->owner.principal, owner.principal);
}

struct live *table_find(struct shard *s, dgm_owner owner, dgm_str id)
{
    uint64_t hash = hash_of(owner, id);
    struct live *l = s->n_buckets ? s->buckets[hash & (s->n_buckets - 1)] : NULL;
    while (l && !is_same(l, hash, owner, id))
        l = l->next;
    return l;
}

static void grow(struct shard *s)
{
    size_t n = s->n_buckets ? s->n_buckets * 2 : 16;
    struct live **buckets = dgm_xcalloc(n, sizeof *buckets);
    for (size_t i = 0; i < s->n_buckets; i++) {
        for (struct live *l = s->buckets[i], *next; l; l = next) {
            next = l->next;
            l->next = buckets[l->hash & (n - 1)];
            buckets[l->hash & (n - 1)] = l;
        }
    }
    free(s->buckets);
    s->buckets = buckets;
    s->n_buckets = n;
}

void table_add(struct shard *s, struct live *l)
{
    if (s->n_live >= s->n_buckets)
        grow(s);
    l->hash = hash_of(l->owner, l->id);
    l->next = s->buckets[l->hash & (s->n_buckets - 1)];
    s->buckets[l->hash & (s->n_buckets - 1)] = l;
    s->n_live++;
}

void table_remove(struct shard *s, struct live *l)
{
    struct live **at = &s->buckets[l->hash & (s->n_buckets - 1)];
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    s->n_live--;
}
