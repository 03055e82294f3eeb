/* lib/a2a_losses.c - what A2A loses on its way to canonical events, and they on theirs to A2A. */
#include "lib/formats.h"

static const dgm_loss reading[] = {
    {"message", "/metadata",
     "left out, but for `canonical_type` and `dragoman:role`, which tell what it is; of a question "
     "it is the interrupt's"},
    {"message", "/extensions", "left out"},
    {"message", "/referenceTaskIds", "left out"},
    {"message", "/contextId", "left out of single messages; of a request it is the thread"},
    {"message", "/parts", "texts are joined without a separator"},
    {"message", "/parts/*/metadata", "left out"},
    {"message", "/parts/*/data",
     "becomes JSON text on a line of its own, unless it holds tool calls, results or a status "
     "indicator"},
    {"message", "/parts/*/data/tool_results/*/name", "left out"},
    {"message", "/parts/*/file", "of an agent: becomes a link or a name in the text"},
    {"task", "/history", "of a stream: left out, the reader has it; of a single task it is said"},
    {"task", "/status/timestamp", "left out"},
    {"status-update", "/status/timestamp", "left out"},
    {"status-update", "/status/state", "submitted, working, unknown: told once, or not at all"},
    {"status-update", "/status/message",
     "of working: becomes progress, not answer, unless it says otherwise"},
    {"artifact-update", "/artifact",
     "its text becomes a message; everything else a CUSTOM event `dragoman:artifact`"},
    {"send-request", "/configuration", "left out"},
    {"send-request", "/metadata", "left out"},
    {"send-request", "/tenant", "left out"},
    {"error", "", "becomes the end of the run, with its message alone"},
    {"card", "", "is refused, and so is everything that is no part of a conversation"},
    {"any", "/jsonrpc", "envelopes are taken off"},
    {"any", "/*", "unknown members are left out"},
};

static const dgm_loss writing[] = {
    {"events", "REASONING_*", "left out"},
    {"events", "STATE_SNAPSHOT", "left out; so are its deltas"},
    {"events", "STEP_STARTED", "the state `working`, once; names of steps are left out"},
    {"events", "CUSTOM",
     "left out, but for `dragoman:metadata` and `dragoman:artifact`, which become what they were"},
    {"events", "RAW", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "becomes a status indicator; its deltas are left out"},
    {"events", "SUBAGENT_STARTED",
     "becomes a status indicator; what a subagent says is told as if the agent had said it"},
    {"events", "TOOL_CALL_START",
     "calls and results become data of statuses `working`, each whole; a call's message is left "
     "out"},
    {"events", "RUN_STARTED/input", "only its messages, as the task's history"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/usage", "left out"},
    {"events", "RUN_ERROR/code", "becomes failed, rejected or canceled"},
    {"messages", "/name", "left out"},
    {"messages", "/role",
     "system, developer: a user's message marked `dragoman:role`; reasoning and activities are "
     "left out"},
    {"messages", "/error", "of a result: its text alone"},
    {"messages", "/encryptedValue", "left out"},
    {"request", "/messages",
     "what stands behind the agent's last message becomes one message; A2A's agent has the rest"},
    {"request", "/tools", "left out"},
    {"request", "/context", "left out"},
    {"request", "/state", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/resume", "left out"},
};

const dgm_loss_rows dgm_a2a_lost_reading = {reading, sizeof reading / sizeof *reading};
const dgm_loss_rows dgm_a2a_lost_writing = {writing, sizeof writing / sizeof *writing};
