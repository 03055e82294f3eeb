/* wire/agui/agui_losses.c - what AG-UI's spellings lose: docs/internals/losses.md is made of this, tests/roundtrip/losses holds it true. */
#include "wire/agui/agui_codec.h"

static const dgm_loss agui_reading[] = {
    {"events", "*", "events of types that AG-UI 1.0 does not have are left out"},
    {"events", "THINKING_*", "become REASONING events, with ids; a title is left out"},
    {"events", "TEXT_MESSAGE_CHUNK", "becomes START, CONTENT, END"},
    {"events", "TOOL_CALL_CHUNK", "becomes START, ARGS, END"},
};
const dgm_loss_rows dgm_agui_lost_reading = {agui_reading,
                                             sizeof agui_reading / sizeof *agui_reading};

static const dgm_loss agui_old_writing[] = {
    {"events", "SUBAGENT_*", "left out"},
    {"events", "STEP_*", "left out when a subagent takes it", DGM_LOSS_HAS, "subagentRunId"},
    {"events", "RUN_FINISHED", "with the outcome cancelled becomes RUN_ERROR", DGM_LOSS_OUTCOME_IS,
     "cancelled"},
    {"events", "RUN_FINISHED/outcome/type", "success is not told", DGM_LOSS_IS, "success"},
    {"events", "RUN_FINISHED/outcome/pendingToolCallIds", "left out"},
    {"events", "RUN_FINISHED/outcome/interrupts/*/subagentRunId", "left out"},
    {"any", "/subagentRunId", "left out"},
    {"events", "TOOL_CALL_RESULT/content", "only the text is kept", DGM_LOSS_NOT_TEXT},
    {"messages", "tool/content", "only the text is kept", DGM_LOSS_NOT_TEXT},
    {"messages", "/content/*", "parts with a provider's handle are left out",
     DGM_LOSS_SOURCE_IS_NOT, "data url"},
    {"request", "/protocolVersion", "left out: that is how an old peer is known"},
};
const dgm_loss_rows dgm_agui_old_lost_writing = {agui_old_writing, sizeof agui_old_writing /
                                                                       sizeof *agui_old_writing};

static const dgm_loss agui_simple_reading[] = {
    {"events", "tool-call-args/toolCall/arguments", "come back as the text they merge to",
     DGM_LOSS_NOT_REPORTED},
    {"events", "tool-call-result/result", "what is no text becomes JSON text", DGM_LOSS_NOT_TEXT},
};
const dgm_loss_rows dgm_agui_simple_lost_reading = {
    agui_simple_reading, sizeof agui_simple_reading / sizeof *agui_simple_reading};

static const dgm_loss agui_simple_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "STATE_*", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "left out, and so is progress"},
    {"events", "REASONING_*", "left out"},
    {"events", "CUSTOM", "left out, and so are artifacts that are no text"},
    {"events", "MESSAGES_SNAPSHOT",
     "messages that were not streamed are told behind the others; a text that was streamed "
     "otherwise is said again"},
    {"events", "TEXT_MESSAGE_CONTENT/delta",
     "what changed is said once more, and so is the question of an interrupt",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/messageId", "of what users say, and of results: left out", DGM_LOSS_NOT_REPORTED},
    {"events", "/role", "system and developer become user; that of a result is left out",
     DGM_LOSS_IS, "system developer tool"},
    {"events", "/parentMessageId", "of calls that are their message's only event: left out",
     DGM_LOSS_NOT_REPORTED},
    {"events", "TOOL_CALL_RESULT/content", "files are left out", DGM_LOSS_NOT_TEXT},
    {"events", "STEP_FINISHED",
     "of the step `working`: left out, there it means that input is required", DGM_LOSS_STEP_IS,
     "working"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/usage", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "interrupts become step-finished without what they ask, cancelled run-error",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_ERROR/code", "others than rejected and canceled become failed", DGM_LOSS_IS_NOT,
     "rejected canceled cancelled failed"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_agui_simple_lost_writing = {
    agui_simple_writing, sizeof agui_simple_writing / sizeof *agui_simple_writing};

static const dgm_loss agui_proto_writing[] = {
    {"events", "/*", "members that AG-UI 1.0 does not know are left out"},
    {"events", "/snapshot", "numbers in open JSON become doubles: beyond 2^53 they are rounded",
     DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_agui_proto_lost_writing = {
    agui_proto_writing, sizeof agui_proto_writing / sizeof *agui_proto_writing};
