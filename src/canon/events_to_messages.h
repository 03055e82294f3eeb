/*
 * canon/events_to_messages.h - the messages that canonical events add up to, by the rules of the official client.
 *
 * Text is appended to its message, calls to their parent message, results follow directly behind it; activities
 * and reasoning are messages too. Everything kept is a copy. Past its limit a fold forgets all and stays
 * empty: a list with holes would be worse than none.
 */
#pragma once

#include "canon/canon.h"

typedef struct dgm_canon_fold dgm_canon_fold;

dgm_canon_fold *dgm_canon_fold_new(size_t max_bytes);
void dgm_canon_fold_free(dgm_canon_fold *f); /* NULL is fine */

void dgm_canon_fold_add(dgm_canon_fold *f, const dgm_canon_event *event);
/* A message as it is, behind the others. */
void dgm_canon_fold_add_message(dgm_canon_fold *f, const dgm_canon_message *m);
/* Replaces the text of a message; false when no message has that id. */
bool dgm_canon_fold_set_text(dgm_canon_fold *f, dgm_str id, dgm_str text);

/* The limit was passed. */
bool dgm_canon_fold_is_over(const dgm_canon_fold *f);
/* What it has taken in, about. */
size_t dgm_canon_fold_bytes(const dgm_canon_fold *f);

/* The list is made in the arena, its texts live until the next call that changes the fold. */
dgm_canon_messages dgm_canon_fold_messages(const dgm_canon_fold *f, dgm_arena *a);

DGM_DEFINE_AUTO(dgm_canon_fold, dgm_canon_fold_free)
