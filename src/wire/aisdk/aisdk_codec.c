/* wire/aisdk/aisdk_codec.c - the codec: detection of the format, losses, requests. */
#include "wire/aisdk/aisdk_int.h"

/* ---- losses: docs/internals/losses.md is generated from these rows; tests/roundtrip/losses checks them ------- */

static const dgm_loss aisdk_reading[] = {
    {"events", "/providerMetadata", "left out: the provider's own metadata of a part"},
    {"events", "/messageMetadata",
     "only contextId and taskId at the start, and the final state, are read", DGM_LOSS_HAS_OTHERS,
     "contextId taskId state"},
    {"events", "message-metadata", "left out"},
    {"events", "source-*", "left out"},
    {"events", "data-*", "data parts of third-party agents are left out", DGM_LOSS_TYPE_IS_NOT,
     "data-a2a-* data-dragoman-*"},
    {"events", "file", "left out"},
    {"events", "/finishReason", "comes back as a value derived from the end of the run",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/title", "left out"},
    {"events", "/preliminary", "outputs that are not final are left out"},
    {"events", "/providerExecuted", "written when the input is complete", DGM_LOSS_NOT_REPORTED},
    {"events", "/toolCallId", "inputs that arrive complete are streamed, too",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/toolName", "like toolCallId", DGM_LOSS_NOT_REPORTED},
    {"events", "/inputTextDelta", "like toolCallId", DGM_LOSS_NOT_REPORTED},
    {"events", "tool-output-available/output", "a value that is not a string becomes JSON text",
     DGM_LOSS_NOT_TEXT},
    {"messages", "/parts/*/providerMetadata", "left out: the provider's own metadata of a part"},
    {"messages", "/parts/*/callProviderMetadata", "left out"},
    {"messages", "/parts/*/type",
     "sources, steps, requests for approval and third-party data parts are left out; tools become "
     "dynamic "
     "tools; files of the assistant become links in its text",
     DGM_LOSS_IS, "source-* step-start data-* tool-* file"},
    {"messages", "assistant/parts/*/text", "files of the assistant become links in its text",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "assistant/parts/*/url", "left out for sources and files"},
    {"messages", "assistant/parts/*/mediaType", "like url"},
    {"messages", "assistant/parts/*/filename", "like url"},
    {"messages", "/parts/*/sourceId", "left out"},
    {"messages", "/parts/*/title", "left out"},
    {"messages", "/parts/*/data", "left out"},
    {"messages", "/parts/*/id", "left out"},
    {"messages", "/parts/*/approval",
     "left out; decisions in the last message of a request answer interrupts"},
    {"messages", "/parts/*/preliminary", "left out"},
    {"messages", "/parts/*/providerExecuted", "left out"},
    {"messages", "/parts/*/state",
     "the state of a text is left out; calls without a result are input-available",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "/parts/*/toolName", "written instead of the part's type", DGM_LOSS_NOT_REPORTED},
    {"messages", "/parts/*/output", "a value that is not a string becomes JSON text",
     DGM_LOSS_NOT_TEXT},
    {"request", "/messageId", "left out"},
    {"request", "/*", "other members that applications send are retained for ai-sdk only"},
};
const dgm_loss_rows dgm_aisdk_lost_reading = {aisdk_reading,
                                              sizeof aisdk_reading / sizeof *aisdk_reading};

static const dgm_loss aisdk_writing[] = {
    DGM_LOST_BY_ALL_OTHERS,
    {"events", "/role",
     "messages of other roles than assistant are left out, because a stream is one message; so is "
     "the role of a result",
     DGM_LOSS_IS_NOT, "assistant"},
    {"events", "TEXT_MESSAGE_CONTENT/delta",
     "left out for other roles than assistant; a text that changed is written again, followed by "
     "the question of an interrupt",
     DGM_LOSS_NOT_REPORTED},
    {"events", "STEP_*", "named steps are left out: a step of the AI SDK is one model call"},
    {"events", "ACTIVITY_SNAPSHOT",
     "all progress has one id; `replace` of other activities is left out"},
    {"events", "REASONING_ENCRYPTED_VALUE", "left out"},
    {"events", "CUSTOM", "left out, except files and data of artifacts"},
    {"events", "MESSAGES_SNAPSHOT",
     "messages that were not streamed are appended; a final text that differs from the streamed "
     "text follows as another text part"},
    {"events", "TOOL_CALL_RESULT",
     "left out when its call is not in the stream; has no id of its own", DGM_LOSS_NOT_REPORTED},
    {"events", "TOOL_CALL_RESULT/content", "parts become JSON text", DGM_LOSS_NOT_TEXT},
    {"events", "/messageId", "left out for results and for messages of other roles than assistant",
     DGM_LOSS_NOT_REPORTED},
    {"events", "/parentMessageId", "left out: the calls of one step belong to one message"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_STARTED/input", "left out"},
    {"events", "/usage", "summed over all models, without provider and model"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/outcome",
     "of interrupts id, reason, message, call and a request for approval are written; the outcome "
     "success is left out",
     DGM_LOSS_MORE_THAN, "success"},
    {"events", "/timestamp", "left out"},
    {"events", "/metadata", "written for texts only, if its members are objects",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "activity", "progress (a2a-status) is left out"},
    {"messages", "/name", "left out"},
    {"messages", "/encryptedValue", "left out"},
    {"messages", "/subagentRunId", "left out"},
    {"messages", "/toolCalls/*/encryptedValue", "left out"},
    {"messages", "/toolCalls/*/metadata", "left out"},
    {"messages", "developer", "becomes system"},
    {"messages", "system", "messages with the role developer become system messages",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "/id",
     "the messages between two user messages become one: only the first one's id and metadata are "
     "copied",
     DGM_LOSS_NOT_REPORTED},
    {"messages", "/metadata", "like id", DGM_LOSS_NOT_REPORTED},
    {"messages", "tool/content", "parts become JSON text", DGM_LOSS_NOT_TEXT},
    {"messages", "/content/*/source", "a provider's handle of a file is left out",
     DGM_LOSS_TYPE_IS_NOT, "data url"},
    {"messages", "user/content/*/type", "files have one type; their media type says what they are",
     DGM_LOSS_IS, "image audio video document"},
    {"messages", "/content/*/id", "left out"},
    {"messages", "/content/*/metadata", "the file name is copied, everything else is left out"},
    {"request", "/tools", "left out: the server has its own tools"},
    {"request", "/context", "left out"},
    {"request", "/state", "left out"},
    {"request", "/resume", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/runId", "left out"},
    {"request", "/parentRunId", "left out"},
    {"request", "/protocolVersion", "left out"},
};
const dgm_loss_rows dgm_aisdk_lost_writing = {aisdk_writing,
                                              sizeof aisdk_writing / sizeof *aisdk_writing};

/* ---- requests of useChat: {id, messages, trigger, messageId, ...} ---------------------------------------------- */

static dgm_code read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of UI messages");
    return dgm_aisdk_read_messages(r, v, at, &((dgm_canon_input *)object)->messages);
}

struct list {
    dgm_buf *out;
};
static dgm_code aisdk_codec_add_message(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *out = ((struct list *)arg)->out;
    (void)name;
    if (out->n && out->p[out->n - 1] != '[')
        dgm_buf_add_char(out, ',');
    dgm_buf_add_str(out, payload);
    return DGM_OK;
}
static void write_nothing(dgm_writer *w, const dgm_field *f, const void *object)
{
    (void)w, (void)f, (void)object; /* see aisdk_write_request: it can fail */
}
static const dgm_custom messages = {read_messages, write_nothing};

/* The chat is the conversation. trigger, messageId and what the application adds are for the same format. */
static const dgm_field request_fields[] = {
    DGM_F(dgm_canon_input, thread_id, "id", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F_CUSTOM("messages", DGM_REQUIRED, &messages),
};
static const dgm_shape request_shape = {
    .what = "UI request",
    .size = sizeof(dgm_canon_input),
    DGM_FIELDS(request_fields),
    .extra_at = offsetof(dgm_canon_input, extra),
    .tag_at = DGM_NOWHERE,
};

static dgm_code dgm_aisdk_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                       dgm_canon_input *ret)
{
    dgm_canon_input input = {0};
    dgm_code rc;
    r->format = DGM_FORMAT_AI_SDK;
    if ((rc = dgm_shape_read(r, &request_shape, v, at, &input)))
        return rc;
    input.resume = dgm_aisdk_read_approvals(r->arena, v);
    if (r->mint)
        input.run_id = dgm_mint_id(r->mint, r->arena);
    *ret = input;
    return DGM_OK;
}

static bool has_trigger(const dgm_canon_input *input)
{
    const dgm_extra *x = input->extra;
    for (size_t i = 0; x && x->format == DGM_FORMAT_AI_SDK && i < x->n; i++) {
        if (dgm_str_is(x->at[i].key, "trigger"))
            return true;
    }
    return false;
}

static dgm_code aisdk_write_request(dgm_writer *w, const dgm_canon_input *input,
                                    const dgm_stream_params *params, dgm_err *err)
{
    struct list list = {w->out};
    dgm_shape_write(&(dgm_writer){.out = w->out, .format = DGM_FORMAT_AI_SDK}, &request_shape,
                    input);
    w->out->n--; /* the brace */
    if (!has_trigger(input))
        dgm_aisdk_put_member(w->out, "\"trigger\"", DGM_STR("submit-message"));
    dgm_buf_add_lit(w->out, ",\"messages\":[");
    dgm_code rc = dgm_aisdk_write_messages(&input->messages, params,
                                           (dgm_frame_sink){aisdk_codec_add_message, &list}, err);
    dgm_buf_add_lit(w->out, "]}");
    return rc;
}

/* ---- the codec ------------------------------------------------------------------------------------------------- */

static bool is_request(const yyjson_val *v)
{
    yyjson_val *list = dgm_json_get(v, DGM_STR("messages"));
    if (!yyjson_is_arr(list))
        return false;
    return yyjson_arr_size(list) ? dgm_aisdk_is_message(yyjson_arr_get_first(list))
                                 : dgm_json_str_member(v, "trigger").p != NULL;
}

static int aisdk_codec_recognise(const yyjson_val *v, dgm_form *ret_form)
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

const dgm_codec dgm_codec_aisdk = {
    .name = dgm_aisdk_name,
    .format = DGM_FORMAT_AI_SDK,
    .stream_end = "[DONE]",
    .recognise = aisdk_codec_recognise,
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
    .write_request = aisdk_write_request,
    .lost_reading = &dgm_aisdk_lost_reading,
    .lost_writing = &dgm_aisdk_lost_writing,
};
