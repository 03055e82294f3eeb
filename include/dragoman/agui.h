/*
 * dragoman/agui.h - AG-UI 1.0's events as C structs.
 *
 * They are the canonical events: every conversion that is not between two dialects of A2A goes through them.
 * One struct serves all types. A member of the JSON object that has no field here, or that is not of the field's
 * type, is in `others`, so reading and writing an event loses nothing.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/json.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dgm_agui_type {
    DGM_AGUI_NONE = 0,
    DGM_AGUI_RUN_STARTED = 1,                /* thread_id, run_id, parent_run_id */
    DGM_AGUI_RUN_FINISHED = 2,               /* thread_id, run_id, result */
    DGM_AGUI_RUN_ERROR = 3,                  /* message, code */
    DGM_AGUI_STEP_STARTED = 4,               /* step_name */
    DGM_AGUI_STEP_FINISHED = 5,              /* step_name */
    DGM_AGUI_TEXT_MESSAGE_START = 6,         /* message_id, role */
    DGM_AGUI_TEXT_MESSAGE_CONTENT = 7,       /* message_id, delta */
    DGM_AGUI_TEXT_MESSAGE_END = 8,           /* message_id */
    DGM_AGUI_TEXT_MESSAGE_CHUNK = 9,         /* message_id, role, delta */
    DGM_AGUI_TOOL_CALL_START = 10,           /* tool_call_id, tool_call_name, parent_message_id */
    DGM_AGUI_TOOL_CALL_ARGS = 11,            /* tool_call_id, delta */
    DGM_AGUI_TOOL_CALL_END = 12,             /* tool_call_id */
    DGM_AGUI_TOOL_CALL_CHUNK = 13,           /* tool_call_id, tool_call_name, delta */
    DGM_AGUI_TOOL_CALL_RESULT = 14,          /* message_id, tool_call_id, content, role */
    DGM_AGUI_STATE_SNAPSHOT = 15,            /* snapshot */
    DGM_AGUI_STATE_DELTA = 16,               /* others: delta, an RFC 6902 patch */
    DGM_AGUI_MESSAGES_SNAPSHOT = 17,         /* messages */
    DGM_AGUI_ACTIVITY_SNAPSHOT = 18,         /* message_id; others: activityType, content */
    DGM_AGUI_ACTIVITY_DELTA = 19,            /* message_id; others: activityType, patch */
    DGM_AGUI_REASONING_START = 20,           /* message_id */
    DGM_AGUI_REASONING_MESSAGE_START = 21,   /* message_id, role */
    DGM_AGUI_REASONING_MESSAGE_CONTENT = 22, /* message_id, delta */
    DGM_AGUI_REASONING_MESSAGE_END = 23,     /* message_id */
    DGM_AGUI_REASONING_MESSAGE_CHUNK = 24,   /* message_id, delta */
    DGM_AGUI_REASONING_END = 25,             /* message_id */
    DGM_AGUI_REASONING_ENCRYPTED_VALUE = 26, /* others: subtype, entityId, encryptedValue */
    DGM_AGUI_SUBAGENT_STARTED = 27,          /* name; others: subagentRunId, ... */
    DGM_AGUI_SUBAGENT_FINISHED = 28,         /* result; others: subagentRunId, ... */
    DGM_AGUI_SUBAGENT_ERROR = 29,            /* message, code; others: subagentRunId */
    DGM_AGUI_RAW = 30,                       /* others: event, source */
    DGM_AGUI_CUSTOM = 31                     /* name, value */
} dgm_agui_type;

DGM_API const char *dgm_agui_type_name(dgm_agui_type type); /* "RUN_STARTED"; "" for NONE */

/* Borrows everything that it points to. Absent text is {NULL, 0}, absent values are NULL. */
typedef struct dgm_agui_event {
    dgm_agui_type type;
    dgm_str thread_id;
    dgm_str run_id;
    dgm_str parent_run_id;
    dgm_str message_id;
    dgm_str parent_message_id;
    dgm_str tool_call_id;
    dgm_str tool_call_name;
    dgm_str step_name;
    dgm_str role;
    dgm_str name;
    dgm_str delta;
    dgm_str content;
    dgm_str message;
    dgm_str code;
    const dgm_json *timestamp; /* a number: Unix milliseconds */
    const dgm_json *result;
    const dgm_json *snapshot;
    const dgm_json *messages;
    const dgm_json *value;
    const dgm_json *metadata;
    const dgm_json *others; /* an object with all other members; NULL: no others */
} dgm_agui_event;

#ifdef __cplusplus
}
#endif
