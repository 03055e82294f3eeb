/* lint/lint_seen.c - which ids were there: a table of hashes, of bounded size. */
#include "lint/lint_int.h"

#include <stdlib.h>

static uint64_t hash_of(dgm_str id)
{
    uint64_t h = dgm_hash(1, id.p, id.n);
    return h ? h : 1;
}

/* The slot that holds it, or the free one where it belongs. */
static struct lint_seen_slot *slot_of(const struct lint_seen *s, uint64_t hash)
{
    size_t i = (size_t)hash & (s->cap - 1);
    while (s->slots[i].hash && s->slots[i].hash != hash)
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static void grow(struct lint_seen *s)
{
    struct lint_seen old = *s;
    s->cap = old.cap ? 2 * old.cap : 16;
    s->slots = dgm_xcalloc(s->cap, sizeof *s->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].hash)
            *slot_of(s, old.slots[i].hash) = old.slots[i];
    }
    free(old.slots);
}

uint64_t *dgm_lint_seen_find(const struct lint_seen *s, dgm_str id)
{
    if (!s->cap)
        return NULL;
    struct lint_seen_slot *slot = slot_of(s, hash_of(id));
    return slot->hash ? &slot->value : NULL;
}

uint64_t *dgm_lint_seen_add(struct lint_seen *s, dgm_str id)
{
    uint64_t hash = hash_of(id), *there = dgm_lint_seen_find(s, id);
    if (there)
        return there;
    if (s->n == DGM_MAX_LINT_ITEMS) {
        s->full = true;
        return NULL;
    }
    if (2 * s->n >= s->cap)
        grow(s);
    struct lint_seen_slot *slot = slot_of(s, hash);
    slot->hash = hash;
    s->n++;
    return &slot->value;
}

void dgm_lint_seen_clear(struct lint_seen *s)
{
    free(s->slots);
    *s = (struct lint_seen){0};
}
