/* wire/responses/responses_simple_losses.c - losses of the simple dialect of Responses. docs/internals/losses.md is generated from these rows; tests/roundtrip/losses checks them. */
#include "wire/responses/responses_simple.h"

static const dgm_loss responses_simple_reading[] = {
    {"events", "*", "events of other names are left out and counted"},
    {"events", "run.step.started/data/name", "steps other than `working` are left out",
     DGM_LOSS_IS_NOT, "working"},
    {"events", "message.delta/data/content",
     "written in the chunks that were received; the end adds the missing text",
     DGM_LOSS_NOT_REPORTED},
    {"events", "message.delta/data/message_id",
     "left out for calls that are the only event of their message", DGM_LOSS_NOT_REPORTED},
    {"events", "message.delta/data/tool_calls/*/index",
     "added when a complete call is written in chunks", DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_responses_simple_lost_reading = {
    responses_simple_reading, sizeof responses_simple_reading / sizeof *responses_simple_reading};

static const dgm_loss responses_simple_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "TOOL_CALL_RESULT/content", "parts, and values that are not strings, become text",
     DGM_LOSS_NOT_TEXT},
    {"events", "RUN_FINISHED/outcome",
     "interrupts and pending calls become run.step.done with the state input-required; canceled "
     "becomes run.error",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_ERROR/code", "values other than rejected and canceled become failed",
     DGM_LOSS_IS_NOT, "rejected canceled cancelled failed"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "/usage", "left out"},
    {"events", "REASONING_*", "left out"},
    {"events", "STATE_*", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "left out"},
    {"events", "CUSTOM", "left out"},
    {"events", "/stepName", "all steps are called `working`", DGM_LOSS_IS_NOT, "working"},
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
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_responses_simple_lost_writing = {
    responses_simple_writing, sizeof responses_simple_writing / sizeof *responses_simple_writing};
