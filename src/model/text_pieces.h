/*
 * model/text_pieces.h - which text of a run a piece belongs to, and whether a piece is new text.
 *
 * Agents stream a text in messages: chunks (TextMessageChunkEvent), then its End (TextMessageEndEvent), which has
 * the whole text and replaces the chunks. The texts of a run are kept apart by messageId, also when they take
 * turns. Some agents give every chunk an id of its own: then ids have no meaning, and the chunks are one text.
 *
 * Which of the two it is shows when an id comes again. The second chunk of a text is therefore held back if its
 * id is new, until the next piece shows where it belongs: text that a reader has cannot be taken back.
 *
 *   chunk   of a known id: more of that text. Of a new id: another text, once ids are known to repeat; else more
 *           of the same text
 *   End     of a known id: replaces that text. Of another id: covers the chunks so far if it begins with them;
 *           else it is a text of its own, and the chunks stay
 *
 * The rules are those of canon/compact.h, for pieces that come one by one. tests/vectors/text-streams holds the
 * cases that every reader of streams is tested with.
 */
#pragma once

#include "base/buf.h"

/* What is done with the texts. Indexes are those that `open` returns. */
typedef struct dgm_text_sink {
    size_t (*open)(void *arg, dgm_str message_id);
    void (*add)(void *arg, size_t text, dgm_str piece);
    void (*replace)(void *arg, size_t text, dgm_str whole);
    void (*close)(void *arg, size_t text); /* no piece follows */
    /* An End whose text was not streamed. */
    void (*add_whole)(void *arg, dgm_str message_id, dgm_str whole);
    /* If `whole` begins with what the text has so far: its length. Else SIZE_MAX. */
    size_t (*begins)(void *arg, size_t text, dgm_str whole);
    void *arg;
} dgm_text_sink;

struct dgm_open_text {
    dgm_buf id;
    size_t text;
    size_t pieces;
};

typedef struct dgm_text_pieces {
    struct dgm_open_text *open;
    size_t n_open, cap;
    size_t current; /* index of the one that got a piece last */
    bool ids_repeat;
    bool ids_differ; /* every chunk has its own */
    bool has_held;
    dgm_buf held_id, held;
} dgm_text_pieces;

void dgm_text_pieces_init(dgm_text_pieces *p);
void dgm_text_pieces_done(dgm_text_pieces *p);

void dgm_text_pieces_chunk(dgm_text_pieces *p, dgm_text_sink sink, dgm_str message_id,
                           dgm_str piece);
/* An End without text only closes. */
void dgm_text_pieces_end(dgm_text_pieces *p, dgm_text_sink sink, dgm_str message_id, dgm_str whole);
/* Something else comes: a chunk that is held back is added. */
void dgm_text_pieces_flush(dgm_text_pieces *p, dgm_text_sink sink);
/* No more pieces of the open texts come: closes them. */
void dgm_text_pieces_close(dgm_text_pieces *p, dgm_text_sink sink);

/*
 * Pieces of one text may also be cumulative: each repeats the text so far. That is detected: if the second strictly
 * extends the first, and the third the second, they are. "ha", "haha" may mean either; the third piece decides.
 */
typedef enum dgm_text_mode {
    DGM_TEXT_FIRST,     /* no piece yet */
    DGM_TEXT_SECOND,    /* one */
    DGM_TEXT_GUESSED,   /* two, and the second extends the first */
    DGM_TEXT_DELTAS,    /* decided */
    DGM_TEXT_CUMULATIVE /* decided, or set */
} dgm_text_mode;

typedef enum dgm_text_step {
    DGM_STEP_ADD,       /* the piece is new */
    DGM_STEP_ADD_REST,  /* the part behind the text so far is new */
    DGM_STEP_TAKE_BACK, /* they were deltas: the text is the first, the second and this */
    DGM_STEP_REPLACE    /* the piece is the text */
} dgm_text_step;

/* before: length of the text so far; extends: the piece strictly extends it. */
dgm_text_step dgm_text_next_step(dgm_text_mode *mode, size_t before, bool extends);
