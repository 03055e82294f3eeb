/*
 * store/store_known.h - which message ids may have been taken, without a read. For drivers with a database that no other
 * server writes.
 */
#pragma once

#include "model/owner.h"

/* Message ids are taken within a scope: the task's own, with its context, or for those that name no
 * context the one with an empty one. A number instead of four texts, kept in the database: never change
 * how it is made. Whoever finds a row by it compares the texts. */
uint64_t dgm_scope(dgm_owner owner, dgm_str agent, dgm_str context_id);

/*
 * Keys that were taken, as bits: what is not in it was never taken. From any thread. Ids that were
 * forgotten stay in it, which costs a read when one of them comes again.
 */
typedef struct dgm_known dgm_known;

dgm_known *dgm_known_new(void);
void dgm_known_free(dgm_known *k); /* NULL is fine */
void dgm_known_add(dgm_known *k, dgm_str message_id, uint64_t scope);
/* All of the database was added: from here on it can say no. */
void dgm_known_is_complete(dgm_known *k);
bool dgm_known_may_have(const dgm_known *k, dgm_str message_id, uint64_t scope);
