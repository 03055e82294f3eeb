/*
 * base/map.h - text to index, for ids that repeat (artifacts of a task, calls of a turn).
 *
 * Keys are borrowed and must live as long as the map. There is no removal. All zero is an empty map.
 */
#pragma once

#include "base/str.h"

typedef struct dgm_map_slot {
    dgm_str key; /* p == NULL: free */
    size_t value;
    uint64_t hash; /* once there are too many to look at them one by one */
} dgm_map_slot;

typedef struct dgm_map {
    dgm_map_slot *slots;
    uint32_t n, cap; /* cap is a power of two, or 0 */
} dgm_map;

/* A secret of this process, never 0, for dgm_hash: without it peers could choose keys that all collide. */
uint64_t dgm_hash_seed(void);

void dgm_map_init(dgm_map *m);
void dgm_map_done(dgm_map *m);
size_t *dgm_map_get(const dgm_map *m, dgm_str key); /* NULL when it is not there */
void dgm_map_put(dgm_map *m, dgm_str key, size_t value);
