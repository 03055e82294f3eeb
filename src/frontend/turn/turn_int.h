/* frontend/turn/turn_int.h - what the files of this folder share. */
#pragma once

#include "base/limits.h"
#include "frontend/turn/turn.h"

#include <pthread.h>

/* What the frames of one loop are put together in. */
struct scratch {
    dgm_buf out;
    dgm_arena *arena; /* of one record */
};

#define BEGINNING_SLOTS 256

struct turns_state {
    pthread_mutex_t lock;
    dgm_turn_once *beginning[BEGINNING_SLOTS]; /* by name: see turn.c */
    struct unsent *unsent;                     /* a reference */
    struct scratch scratch[DGM_MAX_LOOPS];
};

struct scratch *dgm_turns_scratch(dgm_turns *t); /* this loop's, emptied */

/* ---- turn_stream.c ------------------------------------------------------------------------------------------- */

/*
 *   waiting ──► replaying ──► live ──► ended ──► closed
 *
 * waiting: no record was read yet. replaying: it reads the records that existed when the stream was opened. live: these
 * were sent, further ones follow as the agent emits them. cut: the log has ended and the turn has not, because the server
 * shuts down. ended: the last event was encoded. closed: everything that the stream owned is released; a client that
 * disconnects and a response that takes too long lead here from any state before `cut`.
 */
#define TURN_STREAM_STATES(X) /* state, name, legal next states */                                 \
    X(TURN_WAITING, "waiting", 1u << TURN_REPLAYING | 1u << TURN_CUT | 1u << TURN_CLOSED)          \
    X(TURN_REPLAYING, "replaying",                                                                 \
      1u << TURN_LIVE | 1u << TURN_CUT | 1u << TURN_ENDED | 1u << TURN_CLOSED)                     \
    X(TURN_LIVE, "live", 1u << TURN_CUT | 1u << TURN_ENDED | 1u << TURN_CLOSED)                    \
    X(TURN_CUT, "cut", 1u << TURN_ENDED)                                                           \
    X(TURN_ENDED, "ended", 1u << TURN_CLOSED)                                                      \
    X(TURN_CLOSED, "closed", 0)
#define X(state, name, may_become) state,
enum turn_stream_state { TURN_STREAM_STATES(X) N_TURN_STREAM_STATES };
#undef X
extern const dgm_machine dgm_turn_stream_machine;

/* ---- turn_unsent.c ------------------------------------------------------------------------------------------- */

struct unsent *dgm_unsent_new(void);
void dgm_unsent_unref(struct unsent *u);

/* *ret_hold NULL: it is small, and not counted. DGM_RATE_LIMITED: there is no room. */
dgm_code dgm_turns_hold(dgm_turns *t, dgm_owner owner, size_t bytes, dgm_turn_hold **ret_hold,
                        dgm_err *err);
/* Writes the bytes of a stream, which are emptied, and releases the hold when the kernel has them. */
void dgm_turns_write_held(dgm_http_exchange *x, dgm_buf *bytes, dgm_turn_hold *hold);

/* ---- turn_history.c ------------------------------------------------------------------------------------------ */

/* Removes the transcripts from the messages of a task: no client is shown them as texts of the caller. */
void dgm_turn_drop_transcripts(const dgm_task *task);

/* ---- turn_message.c ------------------------------------------------------------------------------------------ */

/* The messages of a request, cut where the agent spoke last. */
struct cut {
    size_t tail;        /* the first of those to be answered */
    dgm_strs results;   /* call ids of the results among them */
    bool has_assistant; /* somebody has answered before */
};
struct cut dgm_cut_messages(dgm_arena *a, const dgm_canon_messages *messages);

/* What is sent to the agent. with_history: what came before the cut goes along. */
dgm_code dgm_make_message(dgm_arena *a, const dgm_ask *ask, const struct cut *cut,
                          bool with_history, dgm_message *ret, dgm_err *err);
/* Of the request: its own, and what only some protocols have. NULL: nothing. */
const dgm_json *dgm_make_metadata(dgm_arena *a, const dgm_ask *ask);

/* Messages of the caller that a context has, in order. */
struct known {
    struct {
        dgm_str id, text;
    } * at;
    size_t n;
};
struct known dgm_known_of_task(dgm_arena *a, const dgm_task *task);
struct known dgm_known_of_messages(dgm_arena *a, const dgm_canon_messages *messages);
/* The first message from tail on that follows all known ones; the number of messages: none does. Messages are compared by
 * their ids, and by_text for protocols that have no ids. */
size_t dgm_find_news(dgm_arena *a, const dgm_canon_messages *messages, size_t tail,
                     const struct known *known, bool by_text);

/* Do the messages before the cut say what the context holds? Those that only give the new one do, too; and those
 * whose answers of the agent have more than the text: links to files, several texts as one. */
bool dgm_extends_history(dgm_arena *a, const dgm_canon_messages *messages, const struct cut *cut,
                         const dgm_canon_messages *stored);
