/*
 * store/store_refused.h - tasks whose first append was not stored, for drivers of shared stores. The caller locks.
 *
 * The run of such a task may go on for a while, and nothing in the database says that it has lost: its checkpoints have a fence
 * with is_new. They are refused by this. The newest tasks are remembered.
 */
#pragma once

#include "model/owner.h"

typedef struct dgm_refused {
    uint64_t *hashes; /* a ring */
    size_t n, next;
} dgm_refused;

void dgm_refused_add(dgm_refused *r, dgm_owner owner, dgm_str task_id);
bool dgm_refused_has(const dgm_refused *r, dgm_owner owner, dgm_str task_id);
void dgm_refused_done(dgm_refused *r);
