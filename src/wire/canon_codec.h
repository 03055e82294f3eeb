/*
 * wire/canon_codec.h - the whole surface of a format that goes through canonical events.
 *
 * A decoder is fed the values of one stream and gives canonical events; an encoder is fed those and gives
 * frames: payloads, each with the name that server-sent events give it, if any. Framing (SSE, lines, an
 * array) is the caller's. Both are handles: new, feed, end, free. They are pure: what they must make up comes
 * from the parameters.
 */
#pragma once

#include "canon/canon.h"
#include "json/shape.h"

/* name is empty where the format does not name its events. Both live until this returns. */
typedef struct dgm_frame_sink {
    dgm_code (*on_frame)(void *arg, dgm_str name, dgm_str payload);
    void *arg;
} dgm_frame_sink;

typedef struct dgm_stream_params {
    bool old_peer; /* ag-ui: of before 1.0 */
    bool fragment; /* no whole run: begin and end nothing that is not in it */
    dgm_mint mint;
} dgm_stream_params;

typedef struct dgm_canon_codec {
    const char *name;
    const char *about;
    /* Its readers build messages of events: snapshots must have them all (dgm_from_params). */
    bool builds_messages;
    /* How likely is it that a peer of this format wrote v? 0: it did not; more: it could have. */
    int (*recognise)(const yyjson_val *v);

    void *(*decoder_new)(const dgm_stream_params *params);
    dgm_code (*decoder_feed)(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
    dgm_code (*decoder_end)(void *decoder, dgm_canon_sink sink, dgm_err *err);
    void (*decoder_free)(void *decoder);

    void *(*encoder_new)(const dgm_stream_params *params, dgm_frame_sink sink);
    dgm_code (*encoder_feed)(void *encoder, const dgm_canon_event *event, dgm_err *err);
    dgm_code (*encoder_end)(void *encoder, dgm_err *err);
    void (*encoder_free)(void *encoder);
} dgm_canon_codec;
