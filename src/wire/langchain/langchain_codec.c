/* wire/langchain/langchain_codec.c - the codec: detection of the format, losses. */
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

const dgm_codec dgm_codec_langchain = {
    .name = dgm_langchain_name,
    .format = DGM_FORMAT_LANGCHAIN,
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
    .lost_reading = &dgm_lc_lost_reading,
    .lost_writing = &dgm_lc_lost_writing,
};
