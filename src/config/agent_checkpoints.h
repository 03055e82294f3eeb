/* config/agent_checkpoints.h - the checkpoints of an agent's graphs (backend.h), in the server's store. */
#pragma once

#include "backend/backend.h"
#include "store/store.h"

/* In the arena. store and agent: borrowed; the store is closed when no agent calls it any more. */
const dgm_agent_checkpoints *dgm_agent_checkpoints_new(dgm_arena *a, dgm_store *store,
                                                       dgm_str agent);
