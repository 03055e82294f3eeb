/*
 * model/conversation.h - the complete messages of a context, from its Tasks.
 *
 *   the newest Task ─► the next older one ─► ... until a limit is reached ─► oldest first
 *
 * Each Task adds its history and its answer. The answer is one message of the agent: the message of its status, then the
 * parts of its artifacts whose text that message does not have. A Task that works has no answer yet: the chunks of its
 * artifacts are left out. The reason of a failure is not an answer either.
 *
 * A message may have a transcript in front (DGM_META_PART): the conversation that the client of another protocol sent
 * with it. The transcript replaces everything before it, so no older Task is read.
 *
 * A call and its result are both in the list or neither is.
 */
#pragma once

#include "base/arena.h"

#include <dragoman/model.h>

typedef struct dgm_history_limits {
    size_t messages; /* 0: no history */
    size_t bytes;    /* of the messages as A2A 1.0 JSON */
    bool tools;      /* false: calls and results are left out */
} dgm_history_limits;

/* The transcript of a message as its first part has it: a data part {"messages": [...]}, marked. */
#define DGM_PART_TRANSCRIPT "transcript"
#define DGM_DATA_MESSAGES "messages"

/* A part that the agent is shown as history instead. */
dgm_part dgm_transcript_part(dgm_arena *a, dgm_messages messages);
/* Has the message a transcript that can be read as messages? */
bool dgm_message_has_transcript(const dgm_message *m);
/* The messages of its transcript, in order; those that cannot be read are left out. */
dgm_messages dgm_message_transcript(dgm_arena *a, const dgm_message *m);

typedef struct dgm_conversation {
    dgm_arena *arena; /* of everything that it returns: copies */
    dgm_history_limits limits;
    dgm_message *newest_first;
    size_t n, bytes;
    bool is_full; /* nothing older is added */
} dgm_conversation;

void dgm_conversation_init(dgm_conversation *c, dgm_arena *a, dgm_history_limits limits);

/* Adds a Task that is older than those before it. until: the message of this id and those behind it are left out, also
 * those of Tasks that were added before: it is sent again, to be answered again. Empty: none is. */
void dgm_conversation_add_task(dgm_conversation *c, const dgm_task *task, dgm_str until);
/* Adds the transcript in front of a message, if it has one. */
void dgm_conversation_add_transcript(dgm_conversation *c, const dgm_message *m);

/* The messages, oldest first. next: the message that follows them; calls that it has results of stay. */
dgm_messages dgm_conversation_end(dgm_conversation *c, const dgm_message *next);
