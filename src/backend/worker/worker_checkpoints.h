/*
 * backend/worker/worker_checkpoints.h - the requests checkpoint/... and blob/... of a worker: docs/worker-protocol.md.
 *
 * Decodes a request, asks the agent's checkpoints (backend.h) and encodes the answer. A session belongs to one process and
 * remembers the threads that the server has named to it, and the blobs that are on their way.
 */
#pragma once

#include "backend/worker/worker.h"

/* For dgm_worker_options.service. store: dgm_agent_options.checkpoints, lives as long as the pool; NULL: every request is
 * refused with an error. */
dgm_worker_service dgm_worker_checkpoints(const dgm_agent_checkpoints *store);
