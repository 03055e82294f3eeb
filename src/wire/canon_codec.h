/*
 * wire/canon_codec.h - the whole surface of a format that goes through canonical events.
 *
 * What a format can say has up to four forms:
 *
 *   events    a stream: chunks, server-sent events. A decoder is fed its values and gives canonical events;
 *             an encoder is fed those and gives frames
 *   response  the same as one object (chat.completion, response): the same handles. A decoder tells it by its
 *             shape; an encoder that is asked for it (params.whole) gives one frame, at the end
 *   messages  a history, or one message of it
 *   request   what begins a run: messages, tools, settings
 *
 * Handles are new, feed, end, free. Everything is pure: what must be made up comes from the parameters.
 * Framing (SSE, lines, an array) is the caller's.
 */
#pragma once

#include "canon/canon.h"
#include "json/shape.h"

#include <dragoman/convert.h>

/* One payload, with the name that server-sent events give it; empty where the format names none. Both
 * live until this returns. */
typedef struct dgm_frame_sink {
    dgm_code (*on_frame)(void *arg, dgm_str name, dgm_str payload);
    void *arg;
} dgm_frame_sink;

typedef struct dgm_stream_params {
    bool old_peer; /* ag-ui: of before 1.0 */
    bool alone;    /* a2a: a message is written by itself, not as an event of a stream */
    bool fragment; /* no whole run: begin and end nothing that is not in it */
    bool whole;    /* encoders: the response, not its events */
    /* Decoders of ag-ui-simple and responses-simple: all events are compacted before they are decoded. */
    bool compact;
    bool usage;  /* openai-chat: the chunk that tells of usage was asked for */
    bool so_far; /* openai-responses, whole: a run that has not ended is in progress */
    /* openai-responses: ids of items are made of the response's and a number, so that they lead back to it */
    bool scoped_ids;
    /* openai-chat: the answer is to be JSON: data is said bare, not as a block of code */
    bool json;
    dgm_str model; /* what OpenAI's formats call the agent; absent: "dragoman" */
    /* openai, ai-sdk: of this task all answers tell; absent: as the format has it, in chat only of one that waits */
    dgm_str task_id;
    bool no_task; /* the answer is a Message: there is no task, and no state, to name */
    int64_t now;  /* Unix milliseconds, for what has a time and was given none */
    dgm_mint mint;
} dgm_stream_params;

/* Rows for docs/internals/losses.md. object is the form's name, or "any"; member a pointer, or of events the type and of
 * messages the role, with a pointer behind it or without; a name may end with "*". */
typedef struct dgm_loss_rows {
    const dgm_loss *at;
    size_t n;
} dgm_loss_rows;

/* What only AG-UI has a place for, of events: rows of all others. */
#define DGM_LOST_BY_ALL_OTHERS                                                                     \
    {"events", "/rawEvent", "left out"},                                                           \
        {"events", "/subagentRunId",                                                               \
         "left out: the text of a subagent is written as text of the agent"},                      \
        {"events", "SUBAGENT_*", "left out"}, {"events", "RAW", "left out"},                       \
        {"events", "ACTIVITY_DELTA", "left out"},                                                  \
        {"events", "TEXT_MESSAGE_START/name", "left out"},                                         \
    {                                                                                              \
        "events", "/*", "members that AG-UI 1.0 does not know are left out"                        \
    }

typedef struct dgm_canon_codec {
    const char *name;
    dgm_format_id format; /* tags unknown members */
    const char *about;
    /* What ends a stream behind its last frame, as a frame's payload ("[DONE]"); NULL: nothing does. */
    const char *stream_end;
    /* Its readers build messages of events: snapshots must have them all (dgm_records_params). */
    bool builds_messages;
    /* Its encoder handles snapshots itself (A2A). */
    bool own_snapshots;
    /* Its frames are bytes that follow one another as they are: no JSON, in no other framing. */
    bool binary;
    /* Its streams hold whole messages beside their pieces: there they are events. */
    bool streams_messages;
    /* Its encoder knows params.whole: there is a response. */
    bool has_response;
    /* How likely is it that a peer of this format wrote v? 0: it did not; 1: it could have; 2: shows its
     * marks. ret_form: what of the format v is. */
    int (*recognise)(const yyjson_val *v, dgm_form *ret_form);
    /* Is the array one value of the format, not a list of them? NULL: none is. */
    bool (*is_one)(const yyjson_val *array);

    /* Events and responses. NULL: the format has none. What is fed may go when feed returns; so may what the
     * sink was given. */
    void *(*decoder_new)(const dgm_stream_params *params);
    dgm_code (*decoder_feed)(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
    /* The peer has said that its stream ends here (stream_end). NULL: the decoder need not know. */
    void (*decoder_done)(void *decoder);
    dgm_code (*decoder_end)(void *decoder, dgm_canon_sink sink, dgm_err *err);
    void (*decoder_free)(void *decoder);

    void *(*encoder_new)(const dgm_stream_params *params, dgm_frame_sink sink);
    dgm_code (*encoder_feed)(void *encoder, const dgm_canon_event *event, dgm_err *err);
    dgm_code (*encoder_end)(void *encoder, dgm_err *err);
    void (*encoder_free)(void *encoder);

    /* Messages. v: one, or a list of them. Writing gives a frame for each element of the format's list, which
     * need not be as many as there are messages. NULL: the format has none. */
    dgm_code (*read_messages)(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                              dgm_canon_messages *ret_messages);
    dgm_code (*write_messages)(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err);

    /* Requests. What only this format knows rides in the input's `extra`. NULL: the format has none. */
    dgm_code (*read_request)(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_input *ret_input);
    dgm_code (*write_request)(dgm_writer *w, const dgm_canon_input *input,
                              const dgm_stream_params *params, dgm_err *err);

    /* What of the format has no place in canonical events, and what of those has none in the format. NULL:
     * nothing. */
    const dgm_loss_rows *lost_reading, *lost_writing;
} dgm_canon_codec;
