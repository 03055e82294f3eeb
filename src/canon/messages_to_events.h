/* canon/messages_to_events.h - whole messages as the events that add up to them. */
#pragma once

#include "base/mint.h"
#include "canon/canon.h"

/*
 * START, all of it, END for each text, call and piece of reasoning; results, activities. Messages without an
 * id get one from the mint. with_files: the reader builds messages of events, which have no room for what
 * parts hold: a snapshot of all messages follows when there are any. What is made lives in the arena.
 */
dgm_code dgm_messages_to_events(dgm_arena *a, const dgm_canon_messages *messages, dgm_mint *mint,
                                bool with_files, dgm_canon_sink sink);
