/* wire/langchain/langchain_codec.c - the codec: how the format is told, what gets lost. */
#include "wire/langchain/langchain_int.h"

static int recognise(const yyjson_val *v, dgm_form *ret_form)
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

static const dgm_loss reading[] = {
    {"messages", "/data/content/*",
     "blocks of providers' own types are left out; files of an AI message "
     "become links in its text"},
    {"messages", "/data/usage_metadata", "kept for LangChain; in streams it is the run's"},
    {"messages", "/data/response_metadata", "kept for LangChain only"},
    {"messages", "/data/additional_kwargs", "kept for LangChain only, but for reasoning_content"},
    {"messages", "/data/artifact", "kept for LangChain only"},
    {"messages", "/data/invalid_tool_calls/*/error",
     "left out; they become calls behind the others"},
    {"events", "/data/tool_calls", "of chunks: left out, tool_call_chunks say it"},
    {"events", "/data", "a whole message that differs from its chunks becomes another message"},
};

static const dgm_loss writing[] = {
    {"any", "ACTIVITY_SNAPSHOT", "left out, and so is progress"},
    {"any", "/metadata", "left out"},
    {"any", "/encryptedValue", "left out"},
    {"any", "/subagentRunId", "left out"},
    {"messages", "REASONING", "becomes a block of the message that follows it, without its id"},
    {"messages", "/error", "becomes the status error"},
    {"events", "STEP_STARTED", "left out"},
    {"events", "STEP_FINISHED", "left out"},
    {"events", "STATE_SNAPSHOT", "left out"},
    {"events", "STATE_DELTA", "left out"},
    {"events", "ACTIVITY_DELTA", "left out"},
    {"events", "REASONING_ENCRYPTED_VALUE", "left out"},
    {"events", "SUBAGENT_STARTED", "left out"},
    {"events", "SUBAGENT_FINISHED", "left out"},
    {"events", "SUBAGENT_ERROR", "left out"},
    {"events", "RAW", "left out"},
    {"events", "CUSTOM", "left out, and so are artifacts that are no text"},
    {"events", "MESSAGES_SNAPSHOT",
     "only a text that was streamed otherwise is told, as a whole message"},
    {"events", "/messageId",
     "ids that begin as LangChain's placeholders do (run-) get another beginning"},
    {"events", "/threadId", "left out"},
    {"events", "/outcome/interrupts", "only that there is one is told"},
    {"events", "/usage", "of all models together"},
    {"events", "/timestamp", "left out"},
};
#define ROWS(list)                                                                                 \
    {                                                                                              \
        list, sizeof(list) / sizeof *(list)                                                        \
    }

const dgm_canon_codec dgm_codec_langchain = {
    .name = dgm_langchain_name,
    .about = "LangChain's messages and chunks as JSON",
    .streams_messages = true,
    .recognise = recognise,
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
    .lost_reading = ROWS(reading),
    .lost_writing = ROWS(writing),
};
