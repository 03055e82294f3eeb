/* wire/responses/responses_losses.c - losses of Responses and of its simple dialect. docs/internals/losses.md is generated from
 * these rows; tests/roundtrip/losses checks them. */
#include "wire/responses/responses.h"
#include "wire/responses/responses_simple.h"

/* The names of Responses; what canonical events have no place for. */
static const dgm_loss responses_reading[] = {
    {"events", "/sequence_number", "counted again from 0", DGM_LOSS_NOT_REPORTED},
    {"events", "/logprobs", "left out"},
    {"events", "/part/logprobs", "left out"},
    {"events", "/item/content/*/logprobs", "left out"},
    {"any", "/response/output/*/content/*/logprobs", "left out"},
    {"events", "/obfuscation", "left out"},
    {"events", "/part/annotations", "left out: of citations only the text remains"},
    {"events", "/item/content/*/annotations", "like the annotations of parts"},
    {"events", "/response/output", "rebuilt from the items that were completed before it",
     DGM_LOSS_NOT_REPORTED},
    {"events", "response.output_text.annotation.added", "left out"},
    {"events", "response.web_search_call.*",
     "events of searches, code, audio and images are left out and counted; their items are "
     "retained when they are complete"},
    {"events", "/item/id", "left out for a function call: its call_id is copied"},
    {"events", "/item_id", "like the item's id", DGM_LOSS_NOT_REPORTED},
    {"events", "/item/status", "left out: derived from the end of the run"},
    {"events", "/item/encrypted_content", "written when the item is complete",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/item/server_label",
     "an mcp_call becomes a call with its result; its other members are left out"},
    {"events", "response.mcp_call_arguments.done/name", "added", DGM_LOSS_NOT_REPORTED},
    {"events", "response.refusal.*",
     "a refusal without an answer rejects the run; with an answer it becomes text"},
    {"events", "error", "the run fails: it comes back followed by response.failed"},
    {"events", "response.failed", "the run fails: it comes back after an error event"},
    {"events", "/param", "left out, like the type of an error"},
    {"events", "/response/*",
     "members repeated from the request are retained for openai-responses only; `metadata` gets "
     "the ids of the run",
     DGM_LOSS_NAME_IS_NOT,
     "id object created_at completed_at status output usage error incomplete_details"},
    {"response", "/usage", "details other than cached and reasoning tokens are left out",
     DGM_LOSS_HAS_OTHERS, "input_tokens output_tokens total_tokens"},
    {"response", "/output/*/content/*/annotations", "left out"},
    {"response", "/output/*/content/*/logprobs", "left out"},
    {"response", "/output/*/id", "left out for a function call: its call_id is copied"},
    {"response", "/output/*/server_label", "an mcp_call gets the label of this program",
     DGM_LOSS_NOT_REPORTED},
    {"response", "/output/*/status", "left out for reasoning", DGM_LOSS_NOT_REPORTED},
    {"response", "/tools/*/strict", "left out"},
    {"response", "/*", "members repeated from the request are retained for openai-responses only"},
    {"messages", "/status", "retained for openai-responses only"},
    {"messages", "/content", "a text becomes a part", DGM_LOSS_NOT_REPORTED},
    {"messages", "user/content/*", "parts of unknown type are left out and counted",
     DGM_LOSS_TYPE_IS_NOT, "input_text text output_text input_image input_file input_audio"},
    {"messages", "assistant/content/*",
     "becomes one text; annotations and refusals are retained for openai-responses only",
     DGM_LOSS_TYPE_IS_NOT, "output_text"},
    {"messages", "/content/*/image_url",
     "a data: URL becomes bytes: it comes back padded, in the standard alphabet",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "/content/*/detail", "retained for openai-responses only"},
    {"messages", "reasoning/summary",
     "parts are joined to one text; retained for openai-responses only"},
    {"messages", "reasoning/content", "like `summary`"},
    {"messages", "custom_tool_call*",
     "become function_calls and their outputs; openai-responses gets them back unchanged"},
    {"messages", "mcp_call", "becomes a function_call and its output"},
    {"messages", "function_call*",
     "their ids are derived from the call's id; items that were custom_tool_calls and mcp_calls "
     "are among them",
     DGM_LOSS_NOT_REPORTED},
    {"request", "/tools/*", "tools that are not functions are retained for openai-responses only",
     DGM_LOSS_TYPE_IS_NOT, "function"},
    {"request", "/*",
     "settings (model, temperature, stream, ...) are retained for openai-responses only"},
};
const dgm_loss_rows dgm_responses_lost_reading = {responses_reading, sizeof responses_reading /
                                                                         sizeof *responses_reading};

/* AG-UI's names; what a response has no place for. */
static const dgm_loss responses_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "RUN_STARTED/parentRunId", "gets the prefix that OpenAI uses"},
    {"events", "RUN_STARTED/input", "only its tools are written, without their metadata"},
    {"events", "/timestamp",
     "the timestamps of RUN_STARTED and of the end become `created_at` and `completed_at`, in "
     "seconds; others are left out"},
    {"events", "/messageId",
     "gets the prefix that OpenAI uses; consecutive texts become one message"},
    {"events", "TEXT_MESSAGE_CONTENT/delta",
     "texts are separated by a blank line, also from messages that follow other items; the "
     "question of an interrupt becomes another text",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/role", "user and system messages are left out: they are not part of a response",
     DGM_LOSS_IS_NOT, "assistant tool reasoning"},
    {"events", "/metadata", "left out"},
    {"events", "TOOL_CALL_RESULT", "results for calls of another run are left out",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/parentMessageId", "left out"},
    {"events", "TOOL_CALL_RESULT/content", "parts are joined to text", DGM_LOSS_NOT_TEXT},
    {"events", "MESSAGES_SNAPSHOT",
     "messages that were not streamed are appended; a text that changed is correct in the "
     "remaining events of its message and in the response"},
    {"events", "ACTIVITY_SNAPSHOT",
     "progress of an A2A task becomes reasoning, repetitions are left out; other activities are "
     "left out"},
    {"events", "REASONING_ENCRYPTED_VALUE", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "of an interrupt the question, metadata.a2a_task_state and a request for approval (the item "
     "mcp_approval_request) are written, nothing else; the outcome success is left out",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "/usage",
     "entries of several models are summed, absent counts are 0; provider, model and cache writes "
     "are left out"},
    {"events", "STEP_*", "left out"},
    {"events", "STATE_*", "left out"},
    {"events", "CUSTOM",
     "files and data of artifacts become images, links and JSON text; others are left out"},
    {"messages", "/id",
     "gets the prefix that OpenAI uses; ids of user messages and of results are left out"},
    {"messages", "/name", "left out"},
    {"messages", "/metadata", "left out"},
    {"messages", "/encryptedValue", "left out, except for reasoning"},
    {"messages", "/subagentRunId", "left out"},
    {"messages", "/toolCalls/*/encryptedValue", "left out"},
    {"messages", "/toolCalls/*/metadata", "left out"},
    {"messages", "tool/error", "becomes the output if there is no output, otherwise left out"},
    {"messages", "tool/content", "the error if it is absent", DGM_LOSS_NOT_REPORTED},
    {"messages", "activity", "left out"},
    {"messages", "/content/*/metadata",
     "the file name of documents is copied, or generated if absent; everything else is left out"},
    {"messages", "/content/*/id", "left out"},
    {"messages", "/content/*/source/mimeType", "left out for files given by URL"},
    {"messages", "user/content/*", "audio and video become files", DGM_LOSS_TYPE_IS, "audio video"},
    {"request", "/parentRunId", "becomes previous_response_id, with the prefix that OpenAI uses"},
    {"request", "/runId", "left out"},
    {"request", "/state", "left out"},
    {"request", "/context", "left out"},
    {"request", "/resume",
     "left out, except decisions about requests for approval (mcp_approval_response)"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/tools/*/metadata", "left out"},
};
const dgm_loss_rows dgm_responses_lost_writing = {responses_writing, sizeof responses_writing /
                                                                         sizeof *responses_writing};

/* ---- the simple dialect -------------------------------------------------------------------------------------------- */

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
    DGM_LOST_BY_SIMPLE_DIALECTS,
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/metadata", "left out"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_responses_simple_lost_writing = {
    responses_simple_writing, sizeof responses_simple_writing / sizeof *responses_simple_writing};
