/* wire/responses/responses_simple_losses.c - what document 000's dialect of Responses loses: docs/internals/losses.md is made of this, tests/roundtrip/losses holds it true. */
#include "wire/responses/responses_simple.h"

static const dgm_loss responses_simple_reading[] = {
    {"events", "*", "events of other names are left out and counted"},
    {"events", "run.step.started/data/name", "steps other than `working` are left out",
     DGM_LOSS_IS_NOT, "working"},
    {"events", "message.delta/data/content", "cut as it came, or as its end adds to it",
     DGM_LOSS_NOT_REPORTED},
    {"events", "message.delta/data/message_id",
     "of calls that are their message's only event: left out", DGM_LOSS_NOT_REPORTED},
    {"events", "message.delta/data/tool_calls/*/index",
     "of a call that came whole: added where it is told in pieces", DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_responses_simple_lost_reading = {
    responses_simple_reading, sizeof responses_simple_reading / sizeof *responses_simple_reading};

static const dgm_loss responses_simple_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "TOOL_CALL_RESULT/content", "parts and values that are no text become text",
     DGM_LOSS_NOT_TEXT},
    {"events", "RUN_FINISHED/outcome",
     "an interrupt, and calls that wait, are run.step.done with the state input-required; canceled "
     "is run.error",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_ERROR/code", "others than rejected and canceled become failed", DGM_LOSS_IS_NOT,
     "rejected canceled cancelled failed"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "/usage", "left out"},
    {"events", "REASONING_*", "left out"},
    {"events", "STATE_*", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "left out"},
    {"events", "CUSTOM", "left out"},
    {"events", "/stepName", "all steps are called `working`", DGM_LOSS_IS_NOT, "working"},
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
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_responses_simple_lost_writing = {
    responses_simple_writing, sizeof responses_simple_writing / sizeof *responses_simple_writing};
