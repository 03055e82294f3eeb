/* base/table.c - see table.h. */
#include "base/table.h"
#include "base/arena.h"
#include "base/map.h"

#include <stdlib.h>

#define FIRST_SLOTS 16

static void table_grow(dgm_table *t)
{
    size_t cap = t->cap ? t->cap * 2 : FIRST_SLOTS;
    dgm_table_node **slots = dgm_xcalloc(cap, sizeof *slots);
    for (size_t i = 0; i < t->cap; i++) {
        for (dgm_table_node *node = t->slots[i], *next; node; node = next) {
            next = node->next;
            node->next = slots[node->hash & (cap - 1)];
            slots[node->hash & (cap - 1)] = node;
        }
    }
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
}

void dgm_table_add(dgm_table *t, dgm_table_node *node, uint64_t hash)
{
    if (t->n >= t->cap)
        table_grow(t);
    node->hash = hash;
    node->next = t->slots[hash & (t->cap - 1)];
    t->slots[hash & (t->cap - 1)] = node;
    t->n++;
}

void dgm_table_remove(dgm_table *t, dgm_table_node *node)
{
    dgm_table_node **link = &t->slots[node->hash & (t->cap - 1)];
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    t->n--;
}

dgm_table_node *dgm_table_first(const dgm_table *t, uint64_t hash)
{
    return t->cap ? t->slots[hash & (t->cap - 1)] : NULL;
}

void dgm_table_done(dgm_table *t)
{
    free(t->slots);
    *t = (dgm_table){0};
}

uint64_t dgm_hash_texts(uint64_t kind, const dgm_str *texts, size_t n)
{
    uint64_t hash = dgm_hash_seed() + kind;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].n)
            hash = dgm_hash(hash + i, texts[i].p, texts[i].n);
    }
    return hash;
}
