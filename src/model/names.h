/*
 * model/names.h - the names that Dragoman adds to other formats: all of them start with "dragoman:".
 *
 * Keys of metadata with this prefix are the server's own (model/guard.h): clients and agents cannot set them.
 */
#pragma once

#define DGM_NAME_PREFIX "dragoman:"

/* In the metadata of a request: what callers of some protocols send besides their message. */
#define DGM_META_TOOLS "dragoman:tools" /* the caller's: [{name, description, parameters}] */
#define DGM_META_TOOL_CHOICE "dragoman:tool_choice"         /* as received */
#define DGM_META_RESPONSE_FORMAT "dragoman:response_format" /* as received: JSON, and its schema */
#define DGM_META_INSTRUCTIONS "dragoman:instructions"
/* An object: temperature and other parameters for a model (wire/model_call.h). */
#define DGM_META_PARAMETERS "dragoman:parameters"
#define DGM_META_STATE "dragoman:state"     /* AG-UI's shared state */
#define DGM_META_CONTEXT "dragoman:context" /* AG-UI's: [{description, value}] */
#define DGM_META_RESUME "dragoman:resume"   /* AG-UI's: [{interruptId, status, payload}] */
#define DGM_META_FORWARDED_PROPS "dragoman:forwarded_props" /* AG-UI's, as received */

/* In the metadata of a message: who sent it, if that is known. The core sets them. */
#define DGM_META_PRINCIPAL "dragoman:principal"
#define DGM_META_TENANT "dragoman:tenant"
/* In the metadata of a message that an agent of this server has sent: the id of its task, and how many tasks there are
 * above the one that gets it. The core sets them. */
#define DGM_META_PARENT_TASK "dragoman:parent_task"
#define DGM_META_DEPTH "dragoman:invoke_depth"
/* In the metadata of a message: members of chat messages that A2A has no place for. */
#define DGM_META_ROLE "dragoman:role" /* system, developer, function */
#define DGM_META_NAME "dragoman:name"
#define DGM_META_REASONING "dragoman:reasoning_content"
/* In the metadata of an agent's message: the values that the model's server wants back (wire/model_call.h). */
#define DGM_META_MODEL "dragoman:model"

/* In the metadata of a part: "transcript" is the earlier conversation, before the message itself; or the chat part
 * that it was made of. */
#define DGM_META_PART "dragoman:part"
#define DGM_META_DETAIL "dragoman:detail"
#define DGM_META_FILE_ID "dragoman:file_id"

/* In the metadata of a tool result: true if the call failed. */
#define DGM_META_ERROR "dragoman:error"

/* AG-UI's CUSTOM event for an artifact (canon's ARTIFACT event). In a list of messages: the type of an activity that
 * represents an artifact. In the metadata of a text message: the artifact whose text it is. */
#define DGM_NAME_ARTIFACT "dragoman:artifact"
/* AG-UI's CUSTOM event for the metadata of a status update. */
#define DGM_NAME_METADATA "dragoman:metadata"
/* A custom record with the JSON Patch of AG-UI's STATE_DELTA, if the patch is more than one member of the state. */
#define DGM_NAME_STATE_DELTA "ag-ui:state-delta"

/* Ids of messages that a frontend adds; an agent's message does not have them. */
#define DGM_NAME_QUESTION "dragoman:question"
#define DGM_NAME_JSON "dragoman:json" /* the message that holds the data */
