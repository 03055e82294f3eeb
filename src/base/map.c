/*
 * base/map.c - a few keys are a plain array; more are hashed: open addressing, linear probing, at most two
 * thirds full. Most maps have one key (the artifact of a task, its one message).
 */
#include "base/map.h"
#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_CAP 1
#define ROW_CAP 4
#define HASHED_CAP 16

uint64_t dgm_hash_seed(void)
{
    static _Atomic uint64_t seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed), seen = 0;
    if (s)
        return s;
    if (getrandom(&s, sizeof s, 0) != sizeof s)
        s = (uint64_t)(uintptr_t)&seed;
    s |= 1;
    /* two threads may come here at once: the first one's counts for both */
    return atomic_compare_exchange_strong(&seed, &seen, s) ? s : seen;
}

void dgm_map_init(dgm_map *m)
{
    *m = (dgm_map){0};
}

void dgm_map_done(dgm_map *m)
{
    free(m->slots);
    *m = (dgm_map){0};
}

/* ---- hashed --------------------------------------------------------------------------------------------- */

static dgm_map_slot *slot_for(const dgm_map *m, dgm_str key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key.p && !(m->slots[i].hash == hash && dgm_str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void widen(dgm_map *m)
{
    dgm_map old = *m;
    m->cap = old.cap > ROW_CAP ? old.cap * 2 : HASHED_CAP;
    m->slots = dgm_xcalloc(m->cap, sizeof *m->slots);
    for (uint32_t i = 0; i < old.cap; i++) {
        dgm_map_slot s = old.slots[i];
        if (!s.key.p)
            continue;
        if (old.cap <= ROW_CAP)
            s.hash = dgm_hash(dgm_hash_seed(), s.key.p, s.key.n);
        *slot_for(m, s.key, s.hash) = s;
    }
    free(old.slots);
}

/* ---- from outside --------------------------------------------------------------------------------------- */

size_t *dgm_map_get(const dgm_map *m, dgm_str key)
{
    if (m->cap <= ROW_CAP) {
        for (size_t i = 0; i < m->n; i++) { /* there are no slots yet in a map of none */
            if (dgm_str_eq(m->slots[i].key, key))
                return &m->slots[i].value;
        }
        return NULL;
    }
    dgm_map_slot *s = slot_for(m, key, dgm_hash(dgm_hash_seed(), key.p, key.n));
    return s->key.p ? &s->value : NULL;
}

void dgm_map_put(dgm_map *m, dgm_str key, size_t value)
{
    if (!key.p)
        key.p = "";
    if (m->cap <= ROW_CAP) {
        uint32_t i = 0;
        while (i < m->n && !dgm_str_eq(m->slots[i].key, key))
            i++;
        if (i == m->cap && i < ROW_CAP) {
            m->cap = m->cap ? ROW_CAP : FIRST_CAP;
            m->slots = dgm_xrealloc(m->slots, m->cap * sizeof *m->slots);
        }
        if (i < ROW_CAP) {
            m->n += i == m->n;
            m->slots[i] = (dgm_map_slot){key, value, 0};
            return;
        }
        widen(m);
    } else if (((size_t)m->n + 1) * 3 > (size_t)m->cap * 2) {
        widen(m);
    }
    uint64_t hash = dgm_hash(dgm_hash_seed(), key.p, key.n);
    dgm_map_slot *s = slot_for(m, key, hash);
    if (!s->key.p)
        m->n++;
    *s = (dgm_map_slot){key, value, hash};
}
