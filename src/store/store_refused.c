/* store/store_refused.c - see store_refused.h. A linear search is sufficient: only checkpoints of new tasks need it. */
#include "store/store_refused.h"

#include "base/arena.h"
#include "base/table.h"

#include <stdlib.h>

#define MAX_REFUSED 16384

static uint64_t hash_of_refused(dgm_owner owner, dgm_str task_id)
{
    dgm_str key[] = {owner.tenant, owner.principal, task_id};
    return dgm_hash_texts(13, key, 3);
}

void dgm_refused_add(dgm_refused *r, dgm_owner owner, dgm_str task_id)
{
    if (!r->hashes)
        r->hashes = dgm_xcalloc(MAX_REFUSED, sizeof *r->hashes);
    r->hashes[r->next] = hash_of_refused(owner, task_id);
    r->next = (r->next + 1) % MAX_REFUSED;
    r->n += r->n < MAX_REFUSED;
}

bool dgm_refused_has(const dgm_refused *r, dgm_owner owner, dgm_str task_id)
{
    uint64_t hash = r->n ? hash_of_refused(owner, task_id) : 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->hashes[i] == hash)
            return true;
    }
    return false;
}

void dgm_refused_done(dgm_refused *r)
{
    free(r->hashes);
    *r = (dgm_refused){0};
}
