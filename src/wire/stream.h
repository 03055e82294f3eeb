/*
 * wire/stream.h - from records or values of any format, through canonical events, to frames of another format.
 *
 *   A2A's records ── dgm_records_to_events ──┐
 *                                            ├─► canonical events ─► hook ─► the target's encoder ─► frames ─► sink
 *   values of a format ── its decoder ───────┘
 *
 * One stream is one run, one list of messages, or one request. The converter (lib) and the server (frontend/turn) both use
 * it. Memory is that of the decoder and the encoder, except with `compact`: then all events are stored until the end.
 */
#pragma once

#include "canon/records_to_events.h"
#include "wire/codec.h"

typedef struct dgm_stream_options {
    const dgm_codec *to;
    dgm_form form;            /* of the output; `to` has it */
    dgm_stream_params params; /* of decoder and encoder; `whole` is set by `form` */
    /* Of dgm_stream_record(); whole_snapshots is set by `to` and `form`. */
    dgm_records_params records;
    /* Records: after the end of one task another may follow, with a run of its own. Otherwise everything in `records` is
     * copied by dgm_stream_new(). Set it for values, messages and requests, too. */
    bool many_tasks;
    bool compact;
    bool compact_simple; /* the simple dialects' events: before they are decoded */
    dgm_frame_sink sink;
    /* Gets every event before the encoder; it passes the event, changed or not, to `next`, or others, or none. NULL:
     * all events are passed. */
    dgm_code (*on_event)(void *arg, const dgm_canon_event *event, dgm_canon_sink next);
    /* Observe what is written instead of events. NULL: not needed. */
    void (*on_messages)(void *arg, const dgm_canon_messages *messages);
    void (*on_request)(void *arg, const dgm_canon_input *input);
    void *arg; /* of the three */
} dgm_stream_options;

typedef struct dgm_stream dgm_stream;

dgm_stream *dgm_stream_new(const dgm_stream_options *options);
void dgm_stream_free(dgm_stream *s); /* NULL is allowed */

/* Events of A2A. */
dgm_code dgm_stream_record(dgm_stream *s, const dgm_event *event, dgm_err *err);
/* See dgm_records_to_events_set_turn. */
void dgm_stream_set_turn(dgm_stream *s, uint32_t turn);
/* The same as decoded objects; and requests, and the error that ends a stream. `a` is for temporary values. */
dgm_code dgm_stream_object(dgm_stream *s, const dgm_object *o, dgm_arena *a, dgm_err *err);
/* An event or a response of another format. */
dgm_code dgm_stream_value(dgm_stream *s, const dgm_codec *from, dgm_reader *r, yyjson_val *v);
/* The mark that ends the other format's stream. */
void dgm_stream_done(dgm_stream *s);
/* Or, instead of events: */
dgm_code dgm_stream_messages(dgm_stream *s, const dgm_canon_messages *messages, dgm_err *err);
dgm_code dgm_stream_request(dgm_stream *s, const dgm_canon_input *input, dgm_err *err);

/* The encoder, behind the hook. Its errors have a code and no text. */
dgm_canon_sink dgm_stream_encoder(dgm_stream *s);
/* Records: the run has had its last event. */
bool dgm_stream_is_over(const dgm_stream *s);

/* The input has ended: a run that has not ended fails. */
dgm_code dgm_stream_end_input(dgm_stream *s, dgm_err *err);
/* The output ends: the encoder writes what it has held back. */
dgm_code dgm_stream_end_output(dgm_stream *s, dgm_err *err);
/* Both. */
dgm_code dgm_stream_end(dgm_stream *s, dgm_err *err);

DGM_DEFINE_AUTO(dgm_stream, dgm_stream_free)
