/* wire/responses/responses_codec.c - openai-responses: its handles, how it is detected. */
#include "base/limits.h"
#include "wire/responses/responses_int.h"

const char dgm_responses_name[] = "openai-responses";

/* ---- recognising --------------------------------------------------------------------------------------------------- */

static bool has_our_parts(const yyjson_val *content)
{
    dgm_str type =
        dgm_json_str_member(yyjson_arr_get_first((yyjson_val *)(uintptr_t)content), "type");
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
    dgm_str type = dgm_json_str_member(v, "type");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (dgm_str_eq(dgm_str_from(marks[i].type), type))
            return dgm_json_get(v, dgm_str_from(marks[i].member)) != NULL;
    }
    return false;
}

static int recognise_item(const yyjson_val *v)
{
    yyjson_val *content = dgm_json_get(v, DGM_STR("content"));
    if (dgm_responses_is_item(v) || (dgm_json_get(v, DGM_STR("role")) && has_our_parts(content)))
        return 2;
    return dgm_json_get(v, DGM_STR("role")) && content && !dgm_json_get(v, DGM_STR("tool_calls")) &&
                   !dgm_json_get(v, DGM_STR("tool_call_id"))
               ? 1
               : 0;
}

static int responses_codec_recognise(const yyjson_val *value, dgm_form *ret_form)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)value;
    dgm_str type = dgm_json_str_member(v, "type");
    if (yyjson_is_arr(v))
        return responses_codec_recognise(yyjson_arr_get_first(v), ret_form);
    *ret_form = DGM_FORM_RESPONSE;
    if (dgm_str_is(dgm_json_str_member(v, "object"), "response"))
        return 2;
    *ret_form = DGM_FORM_EVENTS;
    if (dgm_str_starts(type, DGM_STR("response.")) ||
        (dgm_str_is(type, "error") && dgm_json_get(v, DGM_STR("sequence_number"))))
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
    k.w = (dgm_writer){.out = &k.text, .format = DGM_FORMAT_RESPONSES};
    dgm_code rc =
        dgm_responses_write_items(messages, &(dgm_responses_items){&k.w, give_item, &k, NULL, {0}});
    dgm_buf_done(&k.text);
    return rc;
}

/* ---- what has no place ------------------------------------------------------------------------------------------------ */

const dgm_codec dgm_codec_responses = {
    .name = dgm_responses_name,
    .format = DGM_FORMAT_RESPONSES,
    .stream_end = "[DONE]",
    .has_response = true,
    .recognise = responses_codec_recognise,
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
    .lost_reading = &dgm_responses_lost_reading,
    .lost_writing = &dgm_responses_lost_writing,
};
