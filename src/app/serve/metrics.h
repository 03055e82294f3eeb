/*
 * app/serve/metrics.h - what is counted, in Prometheus' text format.
 *
 * Every loop counts in a row of its own; reading adds them up.
 */
#pragma once

#include "core/core.h"
#include "frontend/frontend.h"

typedef struct dgm_metrics dgm_metrics;

dgm_metrics *dgm_metrics_new(size_t n_loops);
void dgm_metrics_free(dgm_metrics *m); /* NULL is fine */

_Atomic int64_t *dgm_metrics_streams(dgm_metrics *m); /* that are open */

/* An answer that has ended on that loop. */
void dgm_metrics_count(dgm_metrics *m, size_t loop, const dgm_front_note *note, int status,
                       uint64_t ns, uint64_t bytes_in, uint64_t bytes_out);
/* What was no request, or none we could read. */
void dgm_metrics_refused(dgm_metrics *m, int status);

void dgm_metrics_put(dgm_metrics *m, dgm_buf *b, dgm_core *core, dgm_store *store, bool is_ready);

size_t dgm_metrics_resident_bytes(void); /* of this process; 0: unknown */
