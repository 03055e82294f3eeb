/*
 * canon/simple_to_events.h - events of the simple dialect to canonical events.
 *
 * Each simple event is a message or a state of A2A, which records_to_events.h converts. With `compact` all events are
 * collected and compacted (compact.h) before they are converted at the end.
 */
#pragma once

#include "base/mint.h"
#include "canon/canon.h"
#include "canon/simple.h"

typedef struct dgm_simple_to_events dgm_simple_to_events;

dgm_simple_to_events *dgm_simple_to_events_new(bool fragment, bool compact, dgm_mint mint);
void dgm_simple_to_events_free(dgm_simple_to_events *d); /* NULL is fine */

/* The run of the following events; an empty id changes nothing. */
void dgm_simple_to_events_set_run(dgm_simple_to_events *d, dgm_str run_id, dgm_str thread_id);
/* a: for values of this call. */
dgm_code dgm_simple_to_events_feed(dgm_simple_to_events *d, dgm_arena *a, const dgm_simple_event *e,
                                   dgm_canon_sink sink, dgm_err *err);
dgm_code dgm_simple_to_events_end(dgm_simple_to_events *d, dgm_canon_sink sink, dgm_err *err);
