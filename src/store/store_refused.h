/*
 * store/store_refused.h - tasks whose first append was not stored, for drivers of shared stores. The caller locks.
 *
 * The run of such a task may continue for a while, and the database has no row that shows the refusal: checkpoints of the run
 * have a fence with is_new. They are refused by this list. It contains the newest tasks only.
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
