/* wire/aisdk/aisdk_codec.c - the codec: how the format is told, what gets lost. */
#include "wire/aisdk/aisdk_int.h"

static bool is_request(const yyjson_val *v)
{
    yyjson_val *messages = dgm_json_get(v, DGM_STR("messages"));
    if (!yyjson_is_arr(messages))
        return false;
    return yyjson_arr_size(messages) ? dgm_aisdk_is_message(yyjson_arr_get_first(messages))
                                     : dgm_aisdk_text(v, "trigger").p != NULL;
}

static int recognise(const yyjson_val *v, dgm_form *ret_form)
{
    *ret_form = DGM_FORM_EVENTS;
    if (is_request(v))
        *ret_form = DGM_FORM_REQUEST;
    else if (dgm_aisdk_is_message(v))
        *ret_form = DGM_FORM_MESSAGES;
    else if (!dgm_aisdk_is_chunk(v))
        return 0;
    return 2;
}

static const dgm_loss reading[] = {
    {"events", "/providerMetadata", "what providers say of a part is left out"},
    {"events", "/messageMetadata", "only contextId and taskId of the beginning are read"},
    {"events", "/type", "sources, approvals, custom chunks and data parts of others are left out"},
    {"messages", "/parts/*/providerMetadata", "what providers say of a part is left out"},
    {"messages", "/parts/*/type",
     "sources, approvals that wait and data parts of others are left out, given ones are results; "
     "files of the assistant become links in its text"},
    {"messages", "/metadata", "kept when it is an object"},
    {"messages", "/id",
     "one message of the assistant becomes several when it has calls or reasoning: they get the id "
     "with a "
     "number"},
};

static const dgm_loss writing[] = {
    {"events", "/role", "what others than the assistant say is left out: a stream is one message"},
    {"events", "STEP_STARTED", "named steps are left out; a step there is one model call"},
    {"events", "STEP_FINISHED", "as STEP_STARTED"},
    {"events", "SUBAGENT_STARTED", "left out; their progress is shown"},
    {"events", "SUBAGENT_FINISHED", "left out"},
    {"events", "SUBAGENT_ERROR", "left out"},
    {"events", "ACTIVITY_DELTA", "left out; snapshots of activities are data parts"},
    {"events", "REASONING_ENCRYPTED_VALUE", "left out"},
    {"events", "RAW", "left out"},
    {"events", "MESSAGES_SNAPSHOT",
     "a text that was streamed otherwise follows as another text part, the rest is left out"},
    {"events", "TOOL_CALL_RESULT",
     "left out when its call is not in the stream; has no id of its own"},
    {"events", "TEXT_MESSAGE_START", "a text that goes on after its end does so as another part"},
    {"events", "/parentMessageId", "left out: calls of one step are one message's"},
    {"events", "/timestamp", "left out"},
    {"events", "/rawEvent", "left out"},
    {"events", "/metadata", "only of texts, when its members are objects"},
    {"messages", "/activityType", "progress (a2a-status) is left out"},
    {"messages", "/name", "left out"},
    {"messages", "/encryptedValue", "left out"},
    {"messages", "/subagentRunId", "left out"},
    {"messages", "/role", "developer becomes system"},
    {"messages", "/id",
     "messages between two of the user's are one: only the first one's id and metadata are kept"},
    {"messages", "/content/*/source", "a provider's handle of a file is left out"},
    {"request", "/tools", "left out: the server knows its tools"},
    {"request", "/context", "left out"},
    {"request", "/state", "left out"},
    {"request", "/resume", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/runId", "left out"},
};
#define ROWS(list)                                                                                 \
    {                                                                                              \
        list, sizeof(list) / sizeof *(list)                                                        \
    }

const dgm_canon_codec dgm_codec_aisdk = {
    .name = dgm_aisdk_name,
    .about = "the AI SDK's UI message stream, UI messages and requests",
    .stream_end = "[DONE]",
    .recognise = recognise,
    .decoder_new = dgm_aisdk_decoder_new,
    .decoder_feed = dgm_aisdk_decoder_feed,
    .decoder_end = dgm_aisdk_decoder_end,
    .decoder_free = dgm_aisdk_decoder_free,
    .encoder_new = dgm_aisdk_encoder_new,
    .encoder_feed = dgm_aisdk_encoder_feed,
    .encoder_end = dgm_aisdk_encoder_end,
    .encoder_free = dgm_aisdk_encoder_free,
    .read_messages = dgm_aisdk_read_messages,
    .write_messages = dgm_aisdk_write_messages,
    .read_request = dgm_aisdk_read_request,
    .write_request = dgm_aisdk_write_request,
    .lost_reading = ROWS(reading),
    .lost_writing = ROWS(writing),
};
