/* lib/a2a_losses.c - what A2A loses on its way to canonical events, and they on theirs to A2A. */
#include "lib/formats.h"

static const dgm_loss reading[] = {
    {"message", "/metadata",
     "left out, except `canonical_type` and `dragoman:role`, which are read; the metadata of a "
     "question becomes the metadata of the interrupt",
     DGM_LOSS_HAS_OTHERS, "canonical_type dragoman:role"},
    {"message", "/extensions", "left out"},
    {"message", "/referenceTaskIds", "left out"},
    {"message", "/contextId", "left out of single messages; in a request it becomes the thread id",
     DGM_LOSS_ALONE},
    {"message", "/parts", "texts are joined without a separator", DGM_LOSS_SEVERAL_TEXTS},
    {"message", "/parts/*/metadata", "left out"},
    {"message", "/parts/*/data",
     "becomes JSON text on a line of its own, unless it contains tool calls, results or a status "
     "indicator",
     DGM_LOSS_HAS_NONE, "tool_calls tool_results displayAs"},
    {"message", "/parts/*/data/tool_results/*/name", "left out"},
    {"message", "/parts/*/file", "agent message: becomes a link or a file name in the text",
     DGM_LOSS_ROLE_IS, "agent ROLE_AGENT"},
    {"task", "/history",
     "left out in a stream, because the reader already has it; the history of a single task is "
     "converted",
     DGM_LOSS_STREAMED},
    {"task", "/status/timestamp", "left out"},
    {"status-update", "/status/timestamp", "left out"},
    {"status-update", "/status/state", "submitted, working, unknown: written once, or left out",
     DGM_LOSS_IS,
     "submitted working unknown TASK_STATE_SUBMITTED TASK_STATE_WORKING TASK_STATE_UNSPECIFIED"},
    {"status-update", "/status/message",
     "state working: becomes progress, not part of the answer, unless its metadata says otherwise",
     DGM_LOSS_STATE_IS, "working TASK_STATE_WORKING"},
    {"artifact-update", "/artifact",
     "its text becomes a message; everything else becomes a CUSTOM event `dragoman:artifact`"},
    {"send-request", "/configuration", "left out"},
    {"send-request", "/metadata", "left out"},
    {"send-request", "/tenant", "left out"},
    {"error", "", "becomes the end of the run, with the error message only"},
    {"card", "", "rejected, like every object that does not belong to a conversation"},
    {"any", "/jsonrpc", "envelopes are removed"},
    {"any", "/*", "unknown members are left out"},
};

static const dgm_loss writing[] = {
    {"events", "REASONING_*", "left out"},
    {"events", "STATE_SNAPSHOT", "left out, with its deltas"},
    {"events", "STEP_STARTED", "becomes the state `working`, once; names of steps are left out"},
    {"events", "CUSTOM",
     "left out, except `dragoman:metadata` and `dragoman:artifact`, which become metadata and "
     "artifacts again",
     DGM_LOSS_EVENT_IS_NOT, "dragoman:metadata dragoman:artifact"},
    {"events", "RAW", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "becomes a status indicator; its deltas are left out"},
    {"events", "SUBAGENT_STARTED",
     "becomes a status indicator; the text of a subagent is written as text of the agent"},
    {"events", "TOOL_CALL_START",
     "calls and results become data parts of `working` statuses, each one complete; the message of "
     "a call is left out"},
    {"events", "RUN_STARTED/input", "only its messages are written, as the task's history"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/usage", "left out"},
    {"events", "RUN_ERROR/code", "becomes failed, rejected or canceled"},
    {"messages", "/name", "left out"},
    {"messages", "/role",
     "system, developer: become a user message with `dragoman:role`; reasoning and activity "
     "messages are left out",
     DGM_LOSS_IS, "system developer reasoning activity"},
    {"messages", "/error", "tool result: only its text is written"},
    {"messages", "/encryptedValue", "left out"},
    {"request", "/messages",
     "the messages after the agent's last one become one message; the A2A agent already has the "
     "others",
     DGM_LOSS_SEVERAL},
    {"request", "/tools", "left out"},
    {"request", "/context", "left out"},
    {"request", "/state", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/resume", "left out"},
};

const dgm_loss_rows dgm_a2a_lost_reading = {reading, sizeof reading / sizeof *reading};
const dgm_loss_rows dgm_a2a_lost_writing = {writing, sizeof writing / sizeof *writing};
