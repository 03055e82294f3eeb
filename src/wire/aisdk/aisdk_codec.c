/* wire/aisdk/aisdk_codec.c - the codec: detection of the format, losses. */
#include "wire/aisdk/aisdk_int.h"

static bool is_request(const yyjson_val *v)
{
    yyjson_val *messages = dgm_json_get(v, DGM_STR("messages"));
    if (!yyjson_is_arr(messages))
        return false;
    return yyjson_arr_size(messages) ? dgm_aisdk_is_message(yyjson_arr_get_first(messages))
                                     : dgm_json_str_member(v, "trigger").p != NULL;
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

const dgm_codec dgm_codec_aisdk = {
    .name = dgm_aisdk_name,
    .format = DGM_FORMAT_AI_SDK,
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
    .lost_reading = &dgm_aisdk_lost_reading,
    .lost_writing = &dgm_aisdk_lost_writing,
};
