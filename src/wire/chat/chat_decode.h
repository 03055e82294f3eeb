/* wire/chat/chat_decode.h - the inside of the decoder: what its files share. */
#pragma once

#include "base/buf.h"
#include "wire/codec.h"

/* A call as far as it was read. */
struct chat_read_call {
    bool has_index;
    int64_t index;
    dgm_str sent_id, name; /* its id as the server sends it; empty: not sent yet */
    dgm_str id;            /* as we emit it: no two calls have the same */
    dgm_buf text;          /* of its arguments, so far */
    bool started;          /* TOOL_CALL_START was given */
    const dgm_extra
        *extra;   /* for the event that ends it: its type, members to send back; NULL: none */
    bool holding; /* `{}` was read and not passed on: the next arguments may replace it */
};

typedef struct dgm_chat_decoder {
    dgm_stream_params params;
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_err *err;
    dgm_reader *r;    /* while one is being fed */
    dgm_arena *arena; /* of this run */

    dgm_str run_id, message_id, model;
    bool begun, failed;
    bool text_open, spoke; /* of message_id */
    dgm_str reasoning;     /* id of what is open */
    size_t n_ids;
    dgm_buf refusal;
    struct chat_read_call *calls;
    size_t n_calls, cap_calls, last_call; /* the one that was spoken of last */
    dgm_str finish;                       /* its reason */
    bool done;                            /* the server sent its end */
    dgm_canon_usage usage;
    bool has_usage;
    dgm_str state; /* `a2a`: of a run that waits */
} dgm_chat_decoder;

/* chat_decode.c */
void dgm_chat_out(dgm_chat_decoder *d, const dgm_canon_event *e);
void dgm_chat_bad(dgm_chat_decoder *d, const dgm_at *at, yyjson_val *v, const char *expected);
void dgm_chat_end_reasoning(dgm_chat_decoder *d);

/* chat_decode_calls.c */
/* `tool_calls` of a delta or a message, or the legacy `function_call`. */
void dgm_chat_read_calls(dgm_chat_decoder *d, yyjson_val *list, const dgm_at *at);
void dgm_chat_read_legacy_call(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at);
/* Says what was held back, and END; false: one was never named. */
bool dgm_chat_end_calls(dgm_chat_decoder *d);
/* The arguments of the last one stop before they are JSON. */
bool dgm_chat_is_cut(dgm_chat_decoder *d);

/* chat_finish.c */
void dgm_chat_read_usage(dgm_chat_decoder *d, yyjson_val *v);
void dgm_chat_fail_run(dgm_chat_decoder *d, dgm_str message, dgm_str code);
/* Closes what is open and gives the terminal event. */
void dgm_chat_finish_run(dgm_chat_decoder *d);

/* The codec's handles. */
void *dgm_chat_decoder_new(const dgm_stream_params *params);
dgm_code dgm_chat_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
void dgm_chat_decoder_done(void *decoder);
dgm_code dgm_chat_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err);
void dgm_chat_decoder_free(void *decoder);
