/*
 * canon/compact.h - merges the deltas of a stream into complete texts and calls.
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
 * is at the position of its first piece.
 *
 * A chunk belongs to an End with its message id. Where one of them has none, or ids that differ, it
 * belongs to the next End that has the text of the chunks; not across the user's turn or a run's end.
 *
 * An id of a call may be used again: behind the call's result, or behind its Start if another Start follows,
 * pieces are of the next call. Pieces behind a Start that no other Start follows, in the same turn, are of that
 * call: keys that the Start does not have are added to it, and a text that is not complete is continued.
 *
 * DGM_BAD_PARAMS names a call whose pieces, without a Start, are no JSON object.
 */
dgm_code dgm_compact_simple(dgm_arena *a, const dgm_simple_events *events,
                            dgm_simple_events *ret_events, dgm_err *err);

/* Appends a copy that shares nothing with e but unknown members, which it has not: for events that come one
 * after the other and are compacted when all are there. DGM_TOO_LARGE: the copies exceed output_bytes. */
dgm_code dgm_simple_append_copy(dgm_arena *a, dgm_simple_events *list, const dgm_simple_event *e,
                                dgm_err *err);

/*
 * The same for a list of A2A messages (an array, a Task's history): messages in, complete messages out. Both
 * run dgm_compact_simple(). A complete message that no piece belongs to comes out as it is; a message that
 * pieces were merged into keeps everything but the arguments of its calls. Messages and texts that are added
 * borrow from the arena.
 */
typedef struct dgm_compactor dgm_compactor;

typedef struct dgm_compacted {
    dgm_message message;
    size_t source; /* index of the message that it was made of, counted in the order of adding */
} dgm_compacted;

typedef struct dgm_compacted_list {
    dgm_compacted *at;
    size_t n;
} dgm_compacted_list;

/* Is it one that only counts together with others: a chunk of text, or of arguments? */
bool dgm_message_is_piece(const dgm_message *m);
bool dgm_messages_have_pieces(const dgm_messages *list);

/* Lives in the arena. trusted: as for dgm_content_read(). */
dgm_compactor *dgm_compactor_new(dgm_arena *a, bool trusted);
/* Fails with a pointer below `at` on malformed calls and results. */
dgm_code dgm_compactor_add(dgm_compactor *c, const dgm_message *m, const dgm_at *at, dgm_err *err);
dgm_code dgm_compactor_end(dgm_compactor *c, dgm_compacted_list *ret_list, dgm_err *err);

/*
 * A Task whose history holds pieces: the history, what the artifacts say and the final status message are one
 * list for the compactor, because a final text may cover chunks of the history. Artifacts come out as they are;
 * so do tasks without pieces.
 */
dgm_code dgm_compact_task(dgm_arena *a, const dgm_task *t, bool trusted, const dgm_at *at,
                          dgm_task *ret_task, dgm_err *err);

typedef struct dgm_canon_events {
    dgm_canon_event *at;
    size_t n;
} dgm_canon_events;

/*
 * The same for AG-UI's own streams: START, CONTENT, CONTENT, END become START, one CONTENT, END, where START
 * was; likewise arguments and reasoning. Events that came in between follow, in their order. Nothing is
 * joined across a snapshot of messages or the end of a run, and no END is made up.
 */
void dgm_compact_canon(dgm_arena *a, const dgm_canon_events *events, dgm_canon_events *ret_events);
