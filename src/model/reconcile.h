/*
 * model/reconcile.h - text without duplicates.
 *
 * Agents send a text in deltas, or in full again and again, or both and then a last time when they are
 * done. Here it is decided which part of each is new. Only the length and a running hash of the sent text
 * are stored, never the text, so the cost of a stream does not depend on its length.
 *
 *   delta     always more of the stream
 *   replace   (an artifact sent again): unchanged, the rest, or a replacement
 *   status    a delta, unless the agent is set cumulative or its texts show it: the second strictly
 *             extends the first. The third settles it; until then the second is kept, because
 *             "ha", "haha" may mean either
 *   final     the authoritative text, compared with the last stream: an equal text adds nothing, an extension
 *             adds the rest, any other text replaces the stream. A text that consists of all streams in order
 *             (with or without blank space between them) extends them; a text that is equal to an earlier
 *             stream adds nothing. A reader that joined later does not have the start of the text: see
 *             dgm_reconcile_join
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "model/text_pieces.h"

/* Length and hash of a text that comes in pieces, wherever it is cut. */
#define DGM_SUM_LANES 4
#define DGM_SUM_BLOCK (8 * DGM_SUM_LANES)
typedef struct dgm_sum {
    uint64_t lanes[DGM_SUM_LANES]; /* hashes of every fourth word */
    char tail[DGM_SUM_BLOCK];      /* the last n % DGM_SUM_BLOCK bytes */
    size_t n;
} dgm_sum;

void dgm_sum_add(dgm_sum *s, dgm_str text);
bool dgm_sum_eq(const dgm_sum *a, const dgm_sum *b);
/* Does the text begin with what was summed? */
bool dgm_sum_is_prefix(const dgm_sum *s, dgm_str text);
/* The end of the summed text in `text` if it starts at `at`, or behind a few blanks there. Else SIZE_MAX. It is searched
 * nowhere else, so that the time is linear in the text. */
size_t dgm_sum_end_in(const dgm_sum *s, dgm_str text, size_t at, bool skip_blanks);

typedef enum dgm_text_change_kind {
    DGM_TEXT_UNCHANGED,
    DGM_TEXT_APPEND, /* text is appended to the stream */
    DGM_TEXT_REPLACE /* text replaces it */
} dgm_text_change_kind;

typedef struct dgm_text_change {
    dgm_text_change_kind kind;
    size_t stream; /* DGM_NO_STREAM if it is not open yet: open one */
    dgm_str text; /* borrowed from what was given; INSTEAD of a status: lives until the next call */
} dgm_text_change;
#define DGM_NO_STREAM SIZE_MAX

/*
 * The same decisions for a caller that has the text so far: `change.text` is the part of `all` to append, or `all`.
 */
dgm_text_change dgm_text_compare(dgm_str before, dgm_str all);

/* A status text whose whole text is stored. */
typedef struct dgm_status_text {
    dgm_buf text; /* initialized by the caller, which sets the limit */
    dgm_text_mode mode;
    size_t first_n; /* length of the first piece */
} dgm_status_text;
void dgm_status_text_add(dgm_status_text *t, dgm_str piece); /* a delta, or a cumulative text */
void dgm_status_text_set(dgm_status_text *t,
                         dgm_str whole); /* `whole` may not be part of the text */
/* If `whole` starts with the text: its length. Else SIZE_MAX. */
size_t dgm_status_text_begins(const dgm_status_text *t, dgm_str whole);

typedef enum dgm_status_texts {
    DGM_STATUS_DETECT,
    DGM_STATUS_DELTAS,
    DGM_STATUS_CUMULATIVE
} dgm_status_texts;

typedef struct dgm_reconcile dgm_reconcile;

dgm_reconcile *dgm_reconcile_new(dgm_status_texts status_texts);
void dgm_reconcile_free(dgm_reconcile *r); /* NULL is fine */

/* A new stream, the last one from now on. Returns its index, counted from 0. */
size_t dgm_reconcile_open(dgm_reconcile *r);

dgm_text_change dgm_reconcile_delta(dgm_reconcile *r, size_t stream, dgm_str text);
dgm_text_change dgm_reconcile_replace(dgm_reconcile *r, size_t stream, dgm_str text);
dgm_text_change dgm_reconcile_status(dgm_reconcile *r, size_t stream, dgm_str text);
dgm_text_change dgm_reconcile_final(dgm_reconcile *r, dgm_str text);

/* The streams may start in the middle of the text: final texts may have more in front of them, up to a blank line, or up to
 * anywhere if `is_tail`: the first stream has the rest of a text. */
void dgm_reconcile_join(dgm_reconcile *r, bool is_tail);

/* If the text begins with what the stream has: its length. Else SIZE_MAX. */
size_t dgm_reconcile_begins(const dgm_reconcile *r, size_t stream, dgm_str text);

/* The texts so far are history: final texts are not compared with them. */
void dgm_reconcile_forget(dgm_reconcile *r);

DGM_DEFINE_AUTO(dgm_reconcile, dgm_reconcile_free)
