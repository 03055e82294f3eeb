/* wire/openai/chat_codec.c - Chat Completions as a codec: its handles, and what it loses. */
#include "wire/openai/chat_codec.h"
#include "base/limits.h"
#include "wire/openai/chat_decode.h"
#include "wire/openai/chat_encode.h"
#include "wire/openai/chat_messages.h"

static dgm_code write_messages(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_chat_messages list = dgm_chat_from_canon(a, messages);
    dgm_code rc = DGM_OK;
    dgm_buf b;
    (void)params;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &b, .format = dgm_chat_name};
    for (size_t i = 0; !rc && i < list.n; i++) {
        dgm_buf_clear(&b);
        dgm_chat_write(&w, &list.at[i]);
        rc = b.over ? dgm_fail(err, DGM_TOO_LARGE, NULL,
                               "the message becomes longer than the limit output_bytes of %zu",
                               DGM_MAX_OUTPUT_BYTES)
                    : sink.on_frame(sink.arg, (dgm_str){0}, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
    return rc;
}

/* ---- losses ------------------------------------------------------------------------------------------------- */

/* Chat's own names; what canonical events have no place for. */
static const dgm_loss lost_reading[] = {
    {"any", "/choices/*", "only the first choice is read"},
    {"any", "/choices/*/logprobs", "left out"},
    {"any", "/service_tier", "kept for openai-chat only, as `system_fingerprint` and `model` are"},
    {"any", "/*", "unknown members are left out"},
    {"events", "/choices/*/delta/reasoning",
     "comes back as `reasoning_content`, as `reasoning_text` and `thinking` do"},
    {"events", "/choices/*/delta/tool_calls/*/id", "made up where there is none"},
    {"events", "/choices/*/delta/tool_calls/*/function/arguments",
     "nothing at all becomes `{}`; an empty object before the real one is left out, and what is "
     "said "
     "twice is said once"},
    {"events", "/choices/*/delta/tool_calls/*/custom",
     "becomes a function whose arguments are the input"},
    {"events", "/choices/*/delta/function_call",
     "becomes a tool call whose id is the function's name"},
    {"events", "/choices/*/delta/refusal",
     "without any answer the run is rejected; beside one it is said as text"},
    {"events", "/choices/*/finish_reason",
     "length and content_filter ride in metadata; others than those, stop and tool_calls are "
     "forgotten"},
    {"events", "/error", "type and param are left out"},
    {"events", "/usage", "details other than cached and reasoning tokens are left out"},
    {"response", "/choices/*/message/annotations", "left out, as `audio` is"},
    {"messages", "/*/content",
     "null and absent become an empty text; a list of text parts becomes one text; parts of an "
     "assistant or system message that are no text become JSON text"},
    {"messages", "/*/content/*/image_url/url",
     "a data: URL becomes bytes: it comes back padded, in the standard alphabet"},
    {"messages", "/*/content/*/image_url/detail", "kept for openai-chat only"},
    {"messages", "/*/content/*/input_audio",
     "a data: URL comes back as plain base64, an absent format as wav"},
    {"messages", "/*/content/*/file/file_data",
     "becomes bytes: plain base64 comes back as a data: URL"},
    {"messages", "/*/content/*/file/file_id", "beside bytes it is kept for openai-chat only"},
    {"messages", "/*/content/*",
     "a part of unknown type becomes a line of JSON; openai-chat gets it back as it was"},
    {"messages", "/*/refusal",
     "is the content where there is no other; that it is one is kept for openai-chat only"},
    {"messages", "/*/reasoning_content", "becomes a message of its own before the assistant's"},
    {"messages", "/*/function_call",
     "becomes a tool call whose id is the function's name; openai-chat gets it back as it was"},
    {"messages", "/*/tool_calls/*/custom",
     "becomes a function; openai-chat gets it back as it was"},
    {"messages", "/*/tool_call_id", "left out in messages of other roles than tool"},
    {"request", "/functions", "become tools, and `function_call` becomes `tool_choice`"},
    {"request", "/tools/*", "those that are no functions are kept for openai-chat only"},
    {"request", "/tools/*/function/strict", "kept for openai-chat only"},
    {"request", "/*", "settings (model, temperature, stream, ...) are kept for openai-chat only"},
};

/* AG-UI's names; what a completion has no place for. */
static const dgm_loss lost_writing[] = {
    {"events", "/threadId", "left out, unless the run waits for an answer: then in `a2a`"},
    {"events", "/timestamp", "that of RUN_STARTED becomes `created`, in seconds"},
    {"events", "/messageId",
     "left out: texts of several messages are one, with a blank line between"},
    {"events", "/role", "what users and systems say is no part of an answer"},
    {"events", "/metadata", "left out"},
    {"events", "/subagentRunId", "left out, as the SUBAGENT events are"},
    {"events", "/toolCallId",
     "a call that was answered within the run is left out, with its result: clients would make it "
     "again"},
    {"events", "/parentMessageId", "left out: all calls are of one message"},
    {"events", "/messages",
     "MESSAGES_SNAPSHOT: a text that is not what was streamed is said once more at the end, behind "
     "a "
     "blank line; a response has it in its place"},
    {"events", "/activityType",
     "progress of an A2A task becomes `reasoning_content`; other activities are left out"},
    {"events", "/outcome",
     "an interrupt is told by its question and by `a2a.state`; what else it says is left out"},
    {"events", "/result", "left out"},
    {"events", "/code",
     "rejected becomes a refusal; failed and canceled are task_failed and task_canceled"},
    {"events", "/usage", "entries of several models are added up; provider and model are left out"},
    {"events", "/stepName", "left out, as state and RAW events are"},
    {"events", "/name",
     "CUSTOM: files and data of artifacts become links and blocks of JSON; others are left out"},
    {"messages", "/*/id", "left out: chat messages have no id"},
    {"messages", "/*/metadata", "left out"},
    {"messages", "/*/encryptedValue", "left out"},
    {"messages", "/*/subagentRunId", "left out"},
    {"messages", "/*/error", "becomes the content where there is none, else left out"},
    {"messages", "/*/activityType", "activities are left out"},
    {"messages", "/*/content/*",
     "a file at an address that is no image becomes a link; audio that is no wav or mp3, and "
     "video, "
     "a file"},
    {"messages", "/*/content/*/metadata", "the file name of documents is kept, all else left out"},
    {"request", "/threadId", "becomes metadata.a2a_context_id"},
    {"request", "/runId", "left out"},
    {"request", "/parentRunId", "left out"},
    {"request", "/state", "left out"},
    {"request", "/context", "left out"},
    {"request", "/resume", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/tools/*/metadata", "left out"},
};

#define ROWS(list)                                                                                 \
    {                                                                                              \
        (list), sizeof(list) / sizeof *(list)                                                      \
    }

const dgm_canon_codec dgm_codec_openai_chat = {
    .name = dgm_chat_name,
    .about = "OpenAI Chat Completions: requests, messages, completions and their chunks",
    .stream_end = "[DONE]",
    .has_response = true,
    .recognise = dgm_chat_recognise_form,
    .decoder_new = dgm_chat_decoder_new,
    .decoder_feed = dgm_chat_decoder_feed,
    .decoder_done = dgm_chat_decoder_done,
    .decoder_end = dgm_chat_decoder_end,
    .decoder_free = dgm_chat_decoder_free,
    .encoder_new = dgm_chat_encoder_new,
    .encoder_feed = dgm_chat_encoder_feed,
    .encoder_end = dgm_chat_encoder_end,
    .encoder_free = dgm_chat_encoder_free,
    .read_messages = dgm_chat_read_messages,
    .write_messages = write_messages,
    .read_request = dgm_chat_read_request,
    .write_request = dgm_chat_write_request,
    .lost_reading = ROWS(lost_reading),
    .lost_writing = ROWS(lost_writing),
};
