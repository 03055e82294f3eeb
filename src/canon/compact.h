/*
 * canon/compact.h - what was streamed, as if it had been said at once.
 *
 * Both work on lists, because what comes late decides about what came early. Lists and texts they make
 * live in the arena; everything else is borrowed from what was given.
 */
#pragma once

#include "base/err.h"
#include "canon/simple.h"

/*
 * compact_events() of document 000: chunks of text that an End follows vanish, those that none follows
 * become one End; arguments are merged into the call's Start (objects by key, in order, the Start's keys
 * winning; texts one behind the other), and become a Start of their own if none follows. Everything
 * stands where its first piece stood.
 *
 * A chunk belongs to an End with its message id. Where one of them has none, or ids that differ, it
 * belongs to the next End that says what the chunks said; not across the user's turn or a run's end.
 *
 * DGM_BAD_PARAMS names a call whose pieces, without a Start, are no JSON object.
 */
dgm_code dgm_compact_simple(dgm_arena *a, const dgm_simple_events *events,
                            dgm_simple_events *ret_events, dgm_err *err);

typedef struct dgm_canon_events {
    dgm_canon_event *at;
    size_t n;
} dgm_canon_events;

/*
 * The same for AG-UI's own streams: START, CONTENT, CONTENT, END become START, one CONTENT, END, where START
 * stood; likewise arguments and reasoning. What came in between stands behind, in its order. Nothing is
 * joined across a snapshot of messages or the end of a run, and no END is made up.
 */
void dgm_compact_canon(dgm_arena *a, const dgm_canon_events *events, dgm_canon_events *ret_events);
