/*
 * canon/snapshots_to_events.h - expands AG-UI's snapshots, for readers who build no messages.
 *
 * AG-UI may send all messages in a snapshot instead of streaming them, or after streaming them. Here a
 * snapshot is reduced to its news: messages after the user's last one that were not emitted in this run are
 * emitted, and a text that differs from the emitted one is a snapshot of that message alone, with its id in
 * `changed`. The question of an interrupt is emitted as a text, unless it was before. All other events pass.
 * Only length and hash of a text are stored.
 */
#pragma once

#include "base/mint.h"
#include "canon/canon.h"

typedef struct dgm_snapshots dgm_snapshots;

/* asks_approvals: the reader's format has requests for approval; a question that is only such a request is not emitted as text. */
dgm_snapshots *dgm_snapshots_new(dgm_mint mint, bool asks_approvals);
void dgm_snapshots_free(dgm_snapshots *s); /* NULL is fine */

dgm_code dgm_snapshots_feed(dgm_snapshots *s, const dgm_canon_event *event, dgm_canon_sink sink);

DGM_DEFINE_AUTO(dgm_snapshots, dgm_snapshots_free)
