/*
 * canon/events_to_records.h - canonical events as A2A's: the way back of from_records.
 *
 *   RUN_STARTED             a Task, submitted, with the caller's messages as its history
 *   anything that is work   status `working`, once, before it
 *   text of the assistant   artifact-updates, one artifact per message: append:false, then true, one lastChunk
 *   calls, results          internal tool-start, tool-complete
 *   reasoning, state, steps, usage, custom  internal events
 *   activities, subagents   status `working` with a status indicator
 *   snapshots of messages   texts that were not streamed, or that differ from the streamed ones
 *   RUN_FINISHED            completed with the last text; input-required or auth-required with the question,
 *                           or with the calls that wait; canceled
 *   RUN_ERROR               failed, rejected or canceled by its code, the message in metadata.error
 *
 * Without a RUN_STARTED there is no task: then texts, calls and results become messages.
 */
#pragma once

#include "base/err.h"
#include "base/mint.h"
#include "canon/canon.h"

/* Where events go; they live until this returns. */
typedef dgm_code (*dgm_on_record_event)(void *arg, const dgm_event *event);

typedef struct dgm_events_params {
    int64_t now; /* Unix milliseconds: the time of events that have none; 0: they stay without */
    dgm_mint mint;
    bool fragment; /* no whole run: one that has not ended goes on elsewhere */
} dgm_events_params;

typedef struct dgm_events_to_records dgm_events_to_records;

dgm_events_to_records *dgm_events_to_records_new(const dgm_events_params *params,
                                                 dgm_on_record_event on_event, void *arg);
void dgm_events_to_records_free(dgm_events_to_records *m); /* NULL is fine */

/* Chunks are to be expanded before. Returns what the sink returns. */
dgm_code dgm_events_to_records_feed(dgm_events_to_records *m, const dgm_canon_event *event,
                                    dgm_err *err);
/* There are no more: a run that has not ended fails, unless this is a fragment; messages that wait are given. */
dgm_code dgm_events_to_records_end(dgm_events_to_records *m, dgm_err *err);

/* A message of a request or a snapshot as one of A2A's; false for those that A2A has no place for
 * (activities, reasoning). */
bool dgm_to_message(dgm_arena *a, const dgm_canon_message *from, dgm_mint *mint,
                    dgm_message *ret_message);

/* The messages of a request as the one message that A2A sends: those after the assistant's last one, joined, with the
 * id and the role of the last. At least the last message is sent. */
void dgm_messages_to_send(dgm_arena *a, const dgm_canon_messages *messages, dgm_mint *mint,
                          dgm_message *ret_message);
/* The index after the assistant's last message; 0: there is no such message. */
size_t dgm_messages_tail(const dgm_canon_messages *messages);

DGM_DEFINE_AUTO(dgm_events_to_records, dgm_events_to_records_free)

/* The value of an internal event `usage`: the members that are set, with AG-UI's names. */
const dgm_json *dgm_canon_usage_value(dgm_arena *a, const dgm_canon_usage *u);
