/* wire/openai/responses_codec.c - openai-responses: its handles, how it is told from others. */
#include "base/limits.h"
#include "wire/openai/responses_int.h"

const char dgm_responses_name[] = "openai-responses";

/* ---- recognising --------------------------------------------------------------------------------------------------- */

static bool has_our_parts(const yyjson_val *content)
{
    dgm_str type = dgm_said_mark(yyjson_arr_get_first((yyjson_val *)(uintptr_t)content), "type");
    return dgm_str_starts(type, DGM_STR("input_")) || dgm_str_is(type, "output_text");
}

bool dgm_responses_is_item(const yyjson_val *v)
{
    static const struct {
        const char *type, *member;
    } marks[] = {
        {"function_call", "call_id"},
        {"function_call_output", "call_id"},
        {"custom_tool_call", "call_id"},
        {"custom_tool_call_output", "call_id"},
        {"mcp_call", "server_label"},
        {"reasoning", "summary"},
        {"item_reference", "id"},
        {"image_generation_call", "id"},
        {"message", "role"},
    };
    dgm_str type = dgm_said_mark(v, "type");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (dgm_str_eq(dgm_str_from(marks[i].type), type))
            return dgm_responses_get(v, marks[i].member) != NULL;
    }
    return false;
}

static int recognise_item(const yyjson_val *v)
{
    yyjson_val *content = dgm_responses_get(v, "content");
    if (dgm_responses_is_item(v) || (dgm_responses_get(v, "role") && has_our_parts(content)))
        return 2;
    return dgm_responses_get(v, "role") && content && !dgm_responses_get(v, "tool_calls") &&
                   !dgm_responses_get(v, "tool_call_id")
               ? 1
               : 0;
}

static int recognise(const yyjson_val *value, dgm_form *ret_form)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)value;
    dgm_str type = dgm_said_mark(v, "type");
    if (yyjson_is_arr(v))
        return recognise(yyjson_arr_get_first(v), ret_form);
    *ret_form = DGM_FORM_RESPONSE;
    if (dgm_str_is(dgm_said_mark(v, "object"), "response"))
        return 2;
    *ret_form = DGM_FORM_EVENTS;
    if (dgm_str_starts(type, DGM_STR("response.")) ||
        (dgm_str_is(type, "error") && dgm_responses_get(v, "sequence_number")))
        return 2;
    *ret_form = DGM_FORM_REQUEST;
    if (dgm_responses_is_request(v))
        return 2;
    *ret_form = DGM_FORM_MESSAGES;
    return recognise_item(v);
}

/* ---- messages ------------------------------------------------------------------------------------------------------- */

struct items {
    dgm_writer w;
    dgm_buf text;
    dgm_frame_sink sink;
    dgm_err *err;
};

static dgm_code give_item(void *arg)
{
    struct items *k = arg;
    if (k->text.over)
        return dgm_fail(k->err, DGM_TOO_LARGE, NULL,
                        "the item becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    dgm_code rc = k->sink.on_frame(k->sink.arg, (dgm_str){0}, dgm_buf_str(&k->text));
    dgm_buf_clear(&k->text);
    return rc;
}

static dgm_code write_messages(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err)
{
    struct items k = {.sink = sink, .err = err};
    (void)params;
    dgm_buf_init(&k.text, DGM_MAX_OUTPUT_BYTES);
    k.w = (dgm_writer){.out = &k.text, .format = dgm_responses_name};
    dgm_code rc = dgm_responses_write_items(messages, (dgm_responses_items){&k.w, give_item, &k});
    dgm_buf_done(&k.text);
    return rc;
}

/* ---- what has no place ------------------------------------------------------------------------------------------------ */

static const dgm_loss lost_reading[] = {
    {"events", "/logprobs", "left out, as `obfuscation` is"},
    {"events", "/annotation", "left out: of citations only what the text says is kept"},
    {"events", "/type",
     "events of searches, code, audio and images are left out and counted; their items are kept "
     "when they are done"},
    {"events", "/item/id", "of a function call left out: its call_id is kept"},
    {"events", "/item/status", "left out: the end of the run tells it"},
    {"events", "/item/summary",
     "thoughts, as `content` of reasoning is: which they were is left out"},
    {"events", "/item/server_label",
     "an mcp_call becomes a call with its result; what else it has is left out"},
    {"events", "/refusal", "without any answer the run is rejected; beside one it is said as text"},
    {"events", "/param", "left out, as the type of an error is"},
    {"response", "/usage", "details other than cached and reasoning tokens are left out"},
    {"response", "/*", "what it repeats of its request is kept for openai-responses only"},
    {"messages", "/*/content/*",
     "parts of unknown type are left out and counted; of assistants, annotations and refusals are "
     "kept for openai-responses only"},
    {"messages", "/*/content/*/image_url",
     "a data: URL becomes bytes: it comes back padded, in the standard alphabet"},
    {"messages", "/*/content/*/detail", "kept for openai-responses only"},
    {"messages", "/*/summary", "parts are joined to one text; kept for openai-responses only"},
    {"messages", "/*/server_label", "an mcp_call becomes a function_call and its output"},
    {"messages", "/*/type",
     "item_reference and items that are no message, call, result or reasoning are activities: kept "
     "for openai-responses"},
    {"request", "/tools/*", "those that are no functions are kept for openai-responses only"},
    {"request", "/*",
     "settings (model, temperature, stream, ...) are kept for openai-responses only"},
};

/* AG-UI's names; what a response has no place for. */
static const dgm_loss lost_writing[] = {
    {"events", "/timestamp",
     "those of RUN_STARTED and the end become `created_at` and `completed_at`, in seconds"},
    {"events", "/messageId",
     "gets OpenAI's prefix; texts that follow one another are one message, with a blank line "
     "between, and messages behind other items begin with one"},
    {"events", "/role", "what users and systems say is no part of a response"},
    {"events", "/metadata", "left out"},
    {"events", "/subagentRunId", "left out, as the SUBAGENT events are"},
    {"events", "/toolCallId",
     "a call that the agent answers becomes an mcp_call when its result comes; one that neither is "
     "answered nor waits becomes an mcp_call that is incomplete"},
    {"events", "/parentMessageId", "left out"},
    {"events", "/content",
     "of a result: parts are joined to text; results of calls of another run are left out"},
    {"events", "/messages",
     "MESSAGES_SNAPSHOT: the text that changed is right in what is yet to come of its message, and "
     "in the response"},
    {"events", "/activityType",
     "progress of an A2A task becomes reasoning, once in a row; other activities are left out"},
    {"events", "/outcome",
     "an interrupt is told by its question and by metadata.a2a_task_state; what else it says is "
     "left out"},
    {"events", "/result", "left out"},
    {"events", "/code", "rejected becomes a refusal, failed task_failed"},
    {"events", "/usage",
     "entries of several models are added up; provider, model and cache writes are left out"},
    {"events", "/stepName", "left out, as state and RAW events are"},
    {"events", "/value",
     "CUSTOM: files and data of artifacts become images, links and JSON text; others are left out"},
    {"messages", "/*/id",
     "gets OpenAI's prefix; those of users' messages and of results are left out"},
    {"messages", "/*/name", "left out"},
    {"messages", "/*/metadata", "left out"},
    {"messages", "/*/subagentRunId", "left out"},
    {"messages", "/*/error", "becomes the output where there is none, else left out"},
    {"messages", "/*/activityType", "activities are left out"},
    {"messages", "/*/content/*/metadata", "the file name of documents is kept, all else left out"},
    {"request", "/threadId", "becomes metadata.a2a_context_id"},
    {"request", "/runId", "left out"},
    {"request", "/state", "left out"},
    {"request", "/context", "left out"},
    {"request", "/resume", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/tools/*/metadata", "left out"},
};

const dgm_canon_codec dgm_codec_responses = {
    .name = dgm_responses_name,
    .about = "OpenAI Responses: requests, items, response objects, events",
    .stream_end = "[DONE]",
    .has_response = true,
    .recognise = recognise,
    .decoder_new = dgm_responses_decoder_new,
    .decoder_feed = dgm_responses_decoder_feed,
    .decoder_end = dgm_responses_decoder_end,
    .decoder_free = dgm_responses_decoder_free,
    .encoder_new = dgm_responses_encoder_new,
    .encoder_feed = dgm_responses_encoder_feed,
    .encoder_end = dgm_responses_encoder_end,
    .encoder_free = dgm_responses_encoder_free,
    .read_messages = dgm_responses_read_items,
    .write_messages = write_messages,
    .read_request = dgm_responses_read_request,
    .write_request = dgm_responses_write_request,
    .lost_reading = {lost_reading, sizeof lost_reading / sizeof *lost_reading},
    .lost_writing = {lost_writing, sizeof lost_writing / sizeof *lost_writing},
};
