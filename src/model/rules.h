/*
 * model/rules.h - what an event of a task should not be, as far as it and the task so far show.
 *
 * One function per rule, for the server and for lint: the server logs and counts the faults of its agents,
 * lint reports them with a position in the text. Lint has more rules than these; its table begins with these rows.
 */
#pragma once

#include "model/fold.h"

/* symbol, id, severity, protocol, what is wrong, what to do */
#define DGM_EVENT_RULES(X)                                                                         \
    X(REQUIRED_MEMBER, "required-member", ERROR, "any",                                            \
      "a member that the protocol requires is missing or empty",                                   \
      "Add the member; the creator of an object sets its id.")                                     \
    X(CHANGING_IDS, "changing-ids", ERROR, "any",                                                  \
      "an id that names the whole stream changes within it",                                       \
      "Use the taskId and contextId (AG-UI: threadId and runId) of the first event in every "      \
      "event; send another task in its own stream.")                                               \
    X(AFTER_TERMINAL, "event-after-terminal", ERROR, "a2a",                                        \
      "an event follows the end of its task, or of the stream",                                    \
      "Send everything before the terminal status, then close the stream; later work is a new "    \
      "task in the same context.")                                                                 \
    X(TRANSITION, "illegal-transition", ERROR, "a2a",                                              \
      "a task reports a state that may not follow the one before",                                 \
      "Never go back to submitted, and never leave a terminal state.")                             \
    X(SECOND_TASK, "second-task", WARNING, "a2a", "a task event in the middle of a task's stream", \
      "Send status and artifact updates after the first event; only the last one may be a task "   \
      "again.")                                                                                    \
    X(MESSAGE_IN_TASK, "message-in-task", ERROR, "a2a", "a message event in the stream of a task", \
      "Put the message into a status update, or answer with one message and no task.")             \
    X(UNKNOWN_APPEND, "unknown-artifact-append", ERROR, "a2a",                                     \
      "a chunk with append:true belongs to an artifact that was never started",                    \
      "Send the first chunk of an artifact with append:false, and the same artifactId.")           \
    X(LAST_CHUNK_TWICE, "last-chunk-twice", ERROR, "a2a",                                          \
      "lastChunk:true comes a second time for the same artifact",                                  \
      "Set lastChunk on the last chunk only.")                                                     \
    X(AFTER_LAST_CHUNK, "artifact-after-last-chunk", ERROR, "a2a",                                 \
      "an artifact is updated after its lastChunk",                                                \
      "Set lastChunk later, or start another artifact.")                                           \
    X(WORKING_TEXT, "working-status-text", WARNING, "a2a",                                         \
      "a working status has a text part: clients show progress as part of the answer",             \
      "Send no message, or a data part {\"type\":\"status-indicator\",\"text\":...}; text of the " \
      "answer goes into artifacts or has metadata.canonical_type.")                                \
    X(CANONICAL_TYPE, "canonical-type-mismatch", WARNING, "a2a",                                   \
      "metadata.canonical_type contradicts the role and parts of its message",                     \
      "Set the type that role and parts imply, or leave it out: then it is derived.")              \
    X(FAILED_WITHOUT_ERROR, "failed-without-error", NOTE, "a2a",                                   \
      "a failed status has no metadata.error with the reason",                                     \
      "Add metadata.error: a sentence that is safe to show to the caller.")

typedef enum dgm_event_rule {
#define X(sym, id, severity, of, about, fix) DGM_RULE_##sym,
    DGM_EVENT_RULES(X)
#undef X
        DGM_N_EVENT_RULES
} dgm_event_rule;

/* An event, and what was there before it. */
typedef struct dgm_event_view {
    const dgm_event *event;
    dgm_str task_id, context_id; /* of the task; empty: not known, then any will do */
    bool has_task;
    dgm_task_state state;       /* of the task, if there is one */
    dgm_fold_artifact artifact; /* that an artifact-update is about */
} dgm_event_view;

const char *dgm_event_rule_id(dgm_event_rule rule);
const char *dgm_event_rule_about(dgm_event_rule rule);

/* Does the event break the rule? Then ret_what (NULL is fine) says how, with a pointer below the task, message, status- or
 * artifact-update, in the names of A2A 1.0. */
bool dgm_event_breaks(dgm_event_rule rule, const dgm_event_view *v, dgm_err *ret_what);
/* A bit for each rule that is broken, without those in `ignored`. */
unsigned dgm_event_broken_rules(const dgm_event_view *v, unsigned ignored);
