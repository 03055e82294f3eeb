/*
 * model/stamp.h - what the server writes on messages and events it keeps.
 */
#pragma once

#include "base/arena.h"

#include <dragoman/model.h>

/* The AG-UI event that a complete message represents, detected from role and parts (R000-03). */
const char *dgm_message_canonical_type(const dgm_message *m);

/* Sets metadata.canonical_type over whatever is there; the other members stay. */
void dgm_message_stamp(dgm_arena *a, dgm_message *m);
/* The JSON text of metadata that has nothing but the type that dgm_message_stamp() set. Both stay until the process ends.
 * Absent: of other metadata. */
dgm_str dgm_stamp_text(const dgm_json *metadata);

/* Its member canonical_type, if that is a string; else absent. */
dgm_str dgm_metadata_type(const dgm_json *metadata);
static inline bool dgm_metadata_has_type(const dgm_json *metadata)
{
    return dgm_metadata_type(metadata).p != NULL;
}

/* How much of the message of a status belongs to the conversation. */
typedef enum dgm_status_content {
    DGM_STATUS_PASSING, /* nothing: progress or a chunk, which is shown while the status is current */
    DGM_STATUS_CALLS,   /* its calls and results; the text next to them is progress */
    DGM_STATUS_COMPLETE /* all of it */
} dgm_status_content;

/*
 * The one place that decides what may enter a history (R001-08, R004-03, R004-25). A message marked as a
 * chunk never does. What an agent sends while its task is submitted, working or unknown is progress,
 * unless it is marked TextMessageEndEvent or has calls or results. In every other state it is a message
 * of the conversation.
 */
dgm_status_content dgm_status_content_of(dgm_task_state state, const dgm_message *m);
/* Removes text parts and status indicators from the message of a status that is DGM_STATUS_CALLS. */
void dgm_message_drop_progress(dgm_message *m);

/* The object with this member set to a text; the others stay. metadata may be NULL. */
const dgm_json *dgm_metadata_with_text(dgm_arena *a, const dgm_json *metadata, dgm_str key,
                                       dgm_str text);
/* {"error": text} */
const dgm_json *dgm_error_metadata(dgm_arena *a, dgm_str text);
/* Its member `error`, if that is a string; else empty. */
dgm_str dgm_metadata_error(const dgm_json *metadata);
/* A message of the agent with one text part: the reason of a failure, as clients show it that do not read
 * metadata.error. It has no ids. */
dgm_message *dgm_error_message(dgm_arena *a, dgm_str text);
/* With that member set; the others stay. metadata may be NULL. */
const dgm_json *dgm_metadata_with_error(dgm_arena *a, const dgm_json *metadata, dgm_str text);

/* Unix milliseconds as 2026-01-02T03:04:05.678Z; a time that has four digits for the year. */
dgm_str dgm_time_text(dgm_arena *a, int64_t unix_ms);
