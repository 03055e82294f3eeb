/*
 * base/table.h - a hash table of objects that contain their node: chained, doubled when it is full.
 *
 * The table allocates only its slots. The caller compares keys: dgm_table_first() and `next` lead to every object whose hash
 * may be the one that is searched for.
 */
#pragma once

#include "base/str.h"

typedef struct dgm_table_node {
    struct dgm_table_node *next; /* in the same slot */
    uint64_t hash;
} dgm_table_node;

typedef struct dgm_table {
    dgm_table_node **slots; /* cap of them: a power of two, or 0 */
    size_t n, cap;
} dgm_table;

void dgm_table_add(dgm_table *t, dgm_table_node *node, uint64_t hash);
void dgm_table_remove(dgm_table *t, dgm_table_node *node); /* it is in the table */
dgm_table_node *dgm_table_first(const dgm_table *t, uint64_t hash);
void dgm_table_done(dgm_table *t); /* frees the slots, not the objects */

/* A hash of several texts, with the secret of this process (dgm_hash_seed). Equal texts at other places have another hash. */
uint64_t dgm_hash_texts(uint64_t kind, const dgm_str *texts, size_t n);
