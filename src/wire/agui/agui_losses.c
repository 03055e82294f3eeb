/* wire/agui/agui_losses.c - losses of the AG-UI formats. docs/internals/losses.md is generated from these rows; tests/roundtrip/losses checks them. */
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
    {"events", "STEP_*", "left out when it belongs to a subagent", DGM_LOSS_HAS, "subagentRunId"},
    {"events", "RUN_FINISHED", "the outcome cancelled becomes RUN_ERROR", DGM_LOSS_OUTCOME_IS,
     "cancelled"},
    {"events", "RUN_FINISHED/outcome/type", "success is left out", DGM_LOSS_IS, "success"},
    {"events", "RUN_FINISHED/outcome/pendingToolCallIds", "left out"},
    {"events", "RUN_FINISHED/outcome/interrupts/*/subagentRunId", "left out"},
    {"any", "/subagentRunId", "left out"},
    {"events", "TOOL_CALL_RESULT/content", "only the text is copied", DGM_LOSS_NOT_TEXT},
    {"messages", "tool/content", "only the text is copied", DGM_LOSS_NOT_TEXT},
    {"messages", "/content/*", "parts that name a file by a provider's handle are left out",
     DGM_LOSS_SOURCE_IS_NOT, "data url"},
    {"request", "/protocolVersion", "left out: older clients are recognized by its absence"},
};
const dgm_loss_rows dgm_agui_old_lost_writing = {agui_old_writing, sizeof agui_old_writing /
                                                                       sizeof *agui_old_writing};

static const dgm_loss agui_simple_reading[] = {
    {"events", "tool-call-args/toolCall/arguments", "come back merged into one string",
     DGM_LOSS_NOT_REPORTED},
    {"events", "tool-call-result/result", "a value that is not a string becomes JSON text",
     DGM_LOSS_NOT_TEXT},
};
const dgm_loss_rows dgm_agui_simple_lost_reading = {
    agui_simple_reading, sizeof agui_simple_reading / sizeof *agui_simple_reading};

static const dgm_loss agui_simple_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "STATE_*", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "left out, including progress"},
    {"events", "REASONING_*", "left out"},
    {"events", "CUSTOM", "left out, including artifacts that are not text"},
    {"events", "MESSAGES_SNAPSHOT",
     "messages that were not streamed are appended; a final text that differs from the streamed "
     "text is written again"},
    {"events", "TEXT_MESSAGE_CONTENT/delta",
     "a text that changed is written again, followed by the question of an interrupt",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/messageId", "left out for user messages and for results", DGM_LOSS_NOT_REPORTED},
    {"events", "/role", "system and developer become user; the role of a result is left out",
     DGM_LOSS_IS, "system developer tool"},
    {"events", "/parentMessageId", "left out for calls that are the only event of their message",
     DGM_LOSS_NOT_REPORTED},
    {"events", "TOOL_CALL_RESULT/content", "files are left out", DGM_LOSS_NOT_TEXT},
    {"events", "STEP_FINISHED",
     "left out for the step `working`: in this dialect it means that input is required",
     DGM_LOSS_STEP_IS, "working"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/usage", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "interrupts become step-finished without their questions; cancelled becomes run-error",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_ERROR/code", "values other than rejected and canceled become failed",
     DGM_LOSS_IS_NOT, "rejected canceled cancelled failed"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_agui_simple_lost_writing = {
    agui_simple_writing, sizeof agui_simple_writing / sizeof *agui_simple_writing};

static const dgm_loss agui_proto_writing[] = {
    {"events", "/*", "members that AG-UI 1.0 does not define are left out"},
    {"events", "/snapshot",
     "numbers in free-form JSON become doubles: beyond 2^53 they are rounded",
     DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_agui_proto_lost_writing = {
    agui_proto_writing, sizeof agui_proto_writing / sizeof *agui_proto_writing};
