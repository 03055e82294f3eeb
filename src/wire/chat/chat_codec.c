/* wire/chat/chat_codec.c - Chat Completions as a codec: its handles, and what it loses. */
#include "wire/chat/chat_codec.h"
#include "base/limits.h"
#include "wire/chat/chat_decode.h"
#include "wire/chat/chat_encode.h"
#include "wire/chat/chat_messages.h"

static dgm_code write_messages(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_chat_messages list = dgm_chat_from_canon(a, messages);
    dgm_code rc = DGM_OK;
    dgm_buf b;
    (void)params;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
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

const dgm_codec dgm_codec_openai_chat = {
    .name = dgm_chat_name,
    .format = DGM_FORMAT_CHAT,
    .direct = true,
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
    .lost_reading = &dgm_chat_lost_reading,
    .lost_writing = &dgm_chat_lost_writing,
};
