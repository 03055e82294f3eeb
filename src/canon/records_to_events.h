/*
 * canon/records_to_events.h - the events of a turn as canonical events.
 *
 * A state machine that is fed the model's events, internal ones included, in order. Out of it come
 * RUN_STARTED, then explicit START, CONTENT, END for texts, calls and reasoning, and one terminal event
 * with nothing behind it and nothing open. It is deterministic: ids that A2A does not give are made of
 * the run's id and a number.
 *
 *   task, submitted          RUN_STARTED; its artifacts and status as if they came one by one
 *   working                  STEP_STARTED "working", once; its text is progress (ACTIVITY_SNAPSHOT),
 *                            unless canonical_type or answer_source says that it is the answer
 *   artifact-update          text: a message of its own; anything else: ARTIFACT
 *   message of the agent     the answer; without a task also the end
 *   input-, auth-required    the question as text, then RUN_FINISHED with an interrupt; with calls that
 *                            wait for the caller RUN_FINISHED with pending calls
 *   completed                the rest of the final text that was not emitted yet, RUN_FINISHED
 *   failed, rejected         RUN_ERROR with that code
 *   canceled                 RUN_FINISHED, outcome cancelled
 *   unknown                  nothing: it is read and ends nothing
 *   agent-invoke             SUBAGENT_STARTED, at its second time SUBAGENT_FINISHED
 *   internal events          tools, reasoning, state, steps, usage, custom; `message`: calls and results
 */
#pragma once

#include "base/err.h"
#include "canon/canon.h"
#include "model/reconcile.h"

typedef enum dgm_answer_source {
    DGM_ANSWER_AUTO,  /* texts of `working` are progress, unless they say otherwise */
    DGM_ANSWER_STATUS /* they are the answer */
} dgm_answer_source;

typedef struct dgm_records_params {
    dgm_str thread_id, run_id; /* absent: the first event's contextId and taskId */
    dgm_answer_source answer_source;
    dgm_status_texts status_texts;
    /* These are no whole run: begin and end none that they do not begin and end themselves. */
    bool fragment;
    /* And one that others follow: what is open at its end stays so. */
    bool open_end;
    /* All of them are there: a call whose arguments are no JSON, and that nothing completes, is a fault. */
    bool complete;
    /* A task's history and messages of the user are emitted too: the reader does not have them. */
    bool say_history;
    /* The reader builds messages of what we say (AG-UI): when a text turns out to be another, it needs
     * them all. Others get a snapshot of the one that changed. */
    bool whole_snapshots;
    /* For whole snapshots: what the reader has already. */
    dgm_canon_messages messages;
    /* Which turn of its task it is, 0 for the first: what is asked in two turns has two ids. */
    uint32_t turn;
    bool trusted;    /* believe `dragoman:` keys in metadata */
    bool many_turns; /* a task that goes on after an interrupt is another run, not the end */
    /* An answer without a task may be several messages: it ends with the stream. */
    bool many_messages;
} dgm_records_params;

typedef struct dgm_records_to_events dgm_records_to_events;

/* Everything in params is copied. */
dgm_records_to_events *dgm_records_to_events_new(const dgm_records_params *params);
void dgm_records_to_events_free(dgm_records_to_events *f); /* NULL is fine */

/*
 * One event. It may go when this returns, and so may what the sink was given. Fails on malformed calls
 * and results (with a pointer into the event), and with whatever the sink returns; after a failure the
 * machine gives nothing any more.
 */
dgm_code dgm_records_to_events_feed(dgm_records_to_events *f, const dgm_event *event,
                                    dgm_canon_sink sink, dgm_err *err);

/* The records that follow belong to this turn: a run that works has accepted a message. Interrupts are named after it. */
void dgm_records_to_events_set_turn(dgm_records_to_events *f, uint32_t turn);

/* There are no more. A run that has not ended by itself ends with RUN_ERROR `incomplete`. */
dgm_code dgm_records_to_events_end(dgm_records_to_events *f, dgm_canon_sink sink, dgm_err *err);

/* The run has had its terminal event. */
bool dgm_records_to_events_is_over(const dgm_records_to_events *f);

DGM_DEFINE_AUTO(dgm_records_to_events, dgm_records_to_events_free)
