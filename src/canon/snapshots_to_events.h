/*
 * canon/snapshots_to_events.h - what AG-UI tells without streaming it, for readers who build no messages.
 *
 * AG-UI may tell all messages at once instead of streaming them, or after it did. Here a snapshot becomes
 * what it adds to what was said in this run: messages behind the user's last one that nobody has told are
 * told, and a text that was told otherwise is a snapshot of that message alone, with its id in `changed`.
 * The question of an interrupt is said as a text, unless it was. All other events pass. Of texts only
 * length and hash are kept.
 */
#pragma once

#include "base/mint.h"
#include "canon/canon.h"

typedef struct dgm_snapshots dgm_snapshots;

dgm_snapshots *dgm_snapshots_new(dgm_mint mint);
void dgm_snapshots_free(dgm_snapshots *s); /* NULL is fine */

dgm_code dgm_snapshots_feed(dgm_snapshots *s, const dgm_canon_event *event, dgm_canon_sink sink);

DGM_DEFINE_AUTO(dgm_snapshots, dgm_snapshots_free)
