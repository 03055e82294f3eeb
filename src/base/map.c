/* base/map.c - open addressing, linear probing, at most two thirds full. */
#include "base/map.h"
#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t process_seed(void)
{
    /* Peers choose the keys: without a secret seed they could choose ones that all collide. */
    static _Atomic uint64_t seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed);
    if (!s) {
        if (getrandom(&s, sizeof s, 0) != sizeof s)
            s = (uint64_t)(uintptr_t)&seed;
        s |= 1;
        atomic_store_explicit(&seed, s, memory_order_relaxed);
    }
    return s;
}

void dgm_map_init(dgm_map *m)
{
    *m = (dgm_map){.seed = process_seed()};
}

void dgm_map_done(dgm_map *m)
{
    free(m->slots);
    *m = (dgm_map){.seed = m->seed};
}

static dgm_map_slot *slot_for(const dgm_map *m, dgm_str key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key.p && !(m->slots[i].hash == hash && dgm_str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

size_t *dgm_map_get(const dgm_map *m, dgm_str key)
{
    if (!m->n)
        return NULL;
    dgm_map_slot *s = slot_for(m, key, dgm_hash(m->seed, key.p, key.n));
    return s->key.p ? &s->value : NULL;
}

void dgm_map_put(dgm_map *m, dgm_str key, size_t value)
{
    if (!key.p)
        key.p = "";
    if ((m->n + 1) * 3 > m->cap * 2) {
        dgm_map old = *m;
        m->cap = old.cap ? old.cap * 2 : 8;
        m->slots = dgm_xcalloc(m->cap, sizeof *m->slots);
        for (size_t i = 0; i < old.cap; i++) {
            if (old.slots[i].key.p)
                *slot_for(m, old.slots[i].key, old.slots[i].hash) = old.slots[i];
        }
        free(old.slots);
    }
    uint64_t hash = dgm_hash(m->seed, key.p, key.n);
    dgm_map_slot *s = slot_for(m, key, hash);
    if (!s->key.p)
        m->n++;
    *s = (dgm_map_slot){key, value, hash};
}
