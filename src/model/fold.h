/*
 * model/fold.h - from a log of events to the Task they add up to.
 *
 * A fold takes events in order and owns copies of all it keeps, so events may live in a scratch arena.
 * Cost per event is that of the event itself, never that of the Task so far: a growing artifact is
 * not copied, lists double, metadata becomes an object when somebody looks. What was replaced is
 * given back: memory follows the Task, not the log. A fold belongs to one thread at a time.
 *
 * The rules, in short:
 *   task            begins the Task; later ones say all they say, and what they leave out stays
 *   status-update   sets the status; its metadata merges into the Task's, member by member; null removes one that is there
 *   artifact-update append:false creates or replaces; append:true adds parts, merges metadata, joins
 *                   extensions, and overwrites name and description if they are not empty
 *   message         goes to the history; an internal `message` likewise
 *   other internals change nothing
 *
 * A status message moves to the history when something follows it: the next status, or a message.
 * So the fold never has a message in two places, and history followed by status.message is the
 * conversation in order, at any moment. (Appending it at once would have it in the Task twice;
 * waiting for the next status alone would put a user's answer before the question.) Only complete
 * messages of the conversation move: dgm_status_content_of() in stamp.h decides. Progress and chunks are
 * shown while their status is current and then dropped. A message that is in the history already is not
 * moved again, and of several versions under one id the last one counts.
 *
 * Chunks of one file, marked with their numbers (DGM_PART_CHUNK), are one part.
 * Neighbouring text parts of an artifact with equal metadata are one part, so a streamed text is one part
 * however many chunks it came in. An empty text part that is appended adds nothing: it only closes.
 *
 * A task that ended is frozen: nothing follows but a last snapshot of itself.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <dragoman/model.h>

typedef struct dgm_fold dgm_fold;

typedef struct dgm_fold_options {
    bool foreign;         /* a third-party agent: its faults become warnings */
    bool keep_transitory; /* `persist_stream_delta`: keep the artifact aion:stream-delta too */
    dgm_str task_id,
        context_id; /* texts that outlive the fold: if the task has these ids, they are not copied */
} dgm_fold_options;

typedef enum dgm_author {
    DGM_BY_AGENT, /* may not touch metadata whose key begins with `aion:` or `dragoman:` */
    DGM_BY_SERVER /* may; its own faults are errors, whosever agent it is */
} dgm_author;

dgm_fold *dgm_fold_new(dgm_fold_options options);
void dgm_fold_free(dgm_fold *f); /* NULL is fine */

/*
 * Takes one event. A fault leaves the fold as it was: DGM_INVALID_AGENT_RESPONSE for what our agents
 * must not send, with the pointer into the event; DGM_TOO_LARGE at a limit. From a foreign agent the
 * former is a warning: what cannot be applied is ignored, the rest applied.
 */
dgm_code dgm_fold_add(dgm_fold *f, const dgm_event *event, dgm_author author, dgm_err *err);

/*
 * The same for a chunk that continues the last artifact: append of plain text, as dgm_record_next_chunk() accepts it.
 * False: use dgm_fold_add(). True: it was added, and it breaks no rule of rules.h (ids not considered).
 */
bool dgm_fold_add_next_chunk(dgm_fold *f, const dgm_artifact_update *u);

/* The Task so far, until the next add; NULL before there is one. */
const dgm_task *dgm_fold_task(dgm_fold *f);

/* Single facts of it, without putting the rest in order. */
dgm_task_state dgm_fold_state(const dgm_fold *f);
/* The last message of that id in the history; NULL: none. */
const dgm_message *dgm_fold_message(const dgm_fold *f, dgm_str message_id);
/* What is known of an artifact: nothing, that it is open, or that its last chunk was there. */
typedef enum dgm_fold_artifact {
    DGM_ARTIFACT_NEW,
    DGM_ARTIFACT_OPEN,
    DGM_ARTIFACT_SEALED
} dgm_fold_artifact;
dgm_fold_artifact dgm_fold_artifact_of(const dgm_fold *f, dgm_str artifact_id);

/* How many warnings there were, and the last one (its code is DGM_OK before the first). */
size_t dgm_fold_n_warnings(const dgm_fold *f);
const dgm_err *dgm_fold_warning(const dgm_fold *f);

/* What it cost: bytes of events copied in, and bytes moved afterwards (lists that grew, metadata put
 * together, memory put in order). */
typedef struct dgm_fold_cost {
    size_t copied, moved;
} dgm_fold_cost;

dgm_fold_cost dgm_fold_cost_of(const dgm_fold *f);

/* A copy with all it points to. */
dgm_message dgm_message_copy(dgm_arena *a, const dgm_message *from);

/* In the metadata of a file by its bytes: its number among the chunks of one file, from 0. */
#define DGM_PART_CHUNK "chunk"

/* The artifact that is streamed but not kept. */
#define DGM_STREAM_DELTA_ID "aion:stream-delta"

DGM_DEFINE_AUTO(dgm_fold, dgm_fold_free)
