/*
 * canon/chunks_to_events.h - chunks become START, CONTENT, END.
 *
 * AG-UI lets a maker say a text, a call or its reasoning in chunks that open and close themselves. One
 * such stream can be open per speaker (a subagent, or the agent itself). Whoever reads events behind
 * this never meets a chunk.
 */
#pragma once

#include "base/err.h"
#include "canon/canon.h"

typedef struct dgm_chunks dgm_chunks;

dgm_chunks *dgm_chunks_new(void);
void dgm_chunks_free(dgm_chunks *x); /* NULL is fine */

/* Everything else passes, after what it closes. DGM_BAD_PARAMS for a first chunk that does not say what
 * it opens, and for one that contradicts it. */
dgm_code dgm_chunks_feed(dgm_chunks *x, const dgm_canon_event *event, dgm_canon_sink sink,
                         dgm_err *err);
/* Closes what is open. */
dgm_code dgm_chunks_end(dgm_chunks *x, dgm_canon_sink sink);

DGM_DEFINE_AUTO(dgm_chunks, dgm_chunks_free)
