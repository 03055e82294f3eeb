/* wire/langchain/langchain_codec.c - the codec: detection of the format, losses. */
#include "wire/langchain/langchain_int.h"

static int langchain_codec_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    lc_opened o;
    lc_element e;
    if (dgm_lc_open_element(v, &e)) {
        *ret_form = DGM_FORM_EVENTS;
        return 2;
    }
    *ret_form = DGM_FORM_MESSAGES;
    if (!dgm_lc_open(v, &o))
        return 0;
    if (o.chunk)
        *ret_form = DGM_FORM_EVENTS;
    return o.marks;
}

/* [message, metadata] and its like: an element of a stream, no list. */
static bool is_one(const yyjson_val *array)
{
    lc_element e;
    return dgm_lc_open_element(array, &e);
}

const dgm_codec dgm_codec_langchain = {
    .name = dgm_langchain_name,
    .format = DGM_FORMAT_LANGCHAIN,
    .streams_messages = true,
    .recognise = langchain_codec_recognise,
    .is_one = is_one,
    .decoder_new = dgm_lc_decoder_new,
    .decoder_feed = dgm_lc_decoder_feed,
    .decoder_end = dgm_lc_decoder_end,
    .decoder_free = dgm_lc_decoder_free,
    .encoder_new = dgm_lc_encoder_new,
    .encoder_feed = dgm_lc_encoder_feed,
    .encoder_end = dgm_lc_encoder_end,
    .encoder_free = dgm_lc_encoder_free,
    .read_messages = dgm_lc_read_messages,
    .write_messages = dgm_lc_write_messages,
    .lost_reading = &dgm_lc_lost_reading,
    .lost_writing = &dgm_lc_lost_writing,
};

/* ---- losses: docs/internals/losses.md is generated from these rows; tests/roundtrip/losses checks them ------- */

static const dgm_loss lc_reading[] = {
    {"messages", "/data/content/*",
     "blocks of provider-specific types are left out; files of an AI message become links in its "
     "text",
     DGM_LOSS_TYPE_IS_NOT, "text reasoning image audio file video tool_call"},
    {"messages", "/data/content",
     "reasoning comes first; content that is only text becomes a string", DGM_LOSS_NOT_REPORTED},
    {"messages", "/data/usage_metadata",
     "retained for LangChain; in streams it becomes the run's usage", DGM_LOSS_NOT_REPORTED},
    {"messages", "/data/response_metadata", "retained for LangChain only"},
    {"messages", "/data/additional_kwargs",
     "retained for LangChain only, except reasoning_content"},
    {"messages", "/data/artifact", "retained for LangChain only"},
    {"messages", "/data/example", "retained for LangChain only"},
    {"messages", "/data/invalid_tool_calls/*/error",
     "left out; these calls are appended to the others"},
    {"messages", "function", "becomes a tool message whose call has the function's name"},
    {"messages", "tool", "function messages become tool messages", DGM_LOSS_NOT_REPORTED},
    {"messages", "chat", "becomes a message of the type that its role names"},
    {"messages", "human", "chat messages with the role user become human messages",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "remove", "left out: it is a command, not a message"},
    {"events", "/data/tool_calls", "left out of chunks: tool_call_chunks has the same content",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/data/invalid_tool_calls", "like tool_calls", DGM_LOSS_NOT_REPORTED},
    {"events", "/data/tool_call_chunks", "an empty list is left out", DGM_LOSS_EMPTY},
    {"events", "/data/name", "left out of chunks, and of results"},
    {"events", "/data/additional_kwargs", "left out"},
    {"events", "/data/response_metadata", "only the finish reason, the model and errors are read"},
    {"events", "/data/example", "left out"},
    {"events", "/data/artifact", "left out"},
    {"events", "/data/usage_metadata",
     "details other than of cached and reasoning tokens are left out", DGM_LOSS_HAS_OTHERS,
     "input_tokens output_tokens total_tokens"},
    {"events", "/data/content",
     "written in the chunks that were received; complete messages add the missing text",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/data/id",
     "a complete message that differs from its chunks becomes another message",
     DGM_LOSS_NOT_REPORTED},
    {"events", "ai", "complete messages come back as chunks", DGM_LOSS_NOT_REPORTED},
};
const dgm_loss_rows dgm_lc_lost_reading = {lc_reading, sizeof lc_reading / sizeof *lc_reading};

static const dgm_loss lc_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "ACTIVITY_SNAPSHOT", "left out, including progress"},
    {"messages", "activity", "left out"},
    {"any", "/metadata", "left out"},
    {"any", "/encryptedValue", "left out"},
    {"messages", "/subagentRunId", "left out"},
    {"messages", "/toolCalls/*/encryptedValue", "left out"},
    {"messages", "/toolCalls/*/metadata", "left out"},
    {"messages", "reasoning/id", "becomes a block of the message that follows it, without its id"},
    {"messages", "tool/error", "becomes the status error"},
    {"messages", "/content/*/id", "left out"},
    {"messages", "/content/*/metadata", "the file name is copied, everything else is left out"},
    {"messages", "/content/*/source/provider", "left out"},
    {"events", "STEP_*", "left out"},
    {"events", "STATE_*", "left out"},
    {"events", "REASONING_ENCRYPTED_VALUE", "left out"},
    {"events", "CUSTOM", "left out, including artifacts that are not text"},
    {"events", "MESSAGES_SNAPSHOT",
     "messages that were not streamed are appended; a final text that differs from the streamed "
     "text is written as a complete message"},
    {"events", "TEXT_MESSAGE_CONTENT/delta",
     "a text that changed is written again, followed by the question of an interrupt",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/messageId",
     "ids with the prefix of LangChain's placeholders (run-) get another prefix", DGM_LOSS_IS,
     "run-*"},
    {"events", "REASONING_*/messageId", "left out"},
    {"events", "TEXT_MESSAGE_START/role", "developer becomes system", DGM_LOSS_IS, "developer"},
    {"events", "TOOL_CALL_RESULT/content/*/metadata", "left out"},
    {"events", "/threadId", "left out"},
    {"events", "/runId", "left out"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "of interrupts only their existence and their questions are written; the outcome success is "
     "left out",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "/usage", "summed over all models, without provider and model"},
    {"events", "/timestamp", "left out"},
};
const dgm_loss_rows dgm_lc_lost_writing = {lc_writing, sizeof lc_writing / sizeof *lc_writing};
