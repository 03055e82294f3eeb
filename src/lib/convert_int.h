/* lib/convert_int.h - the converter: what its files share. */
#pragma once

#include "lib/loss_watch.h"
#include "wire/a2a/a2a.h"
#include "wire/agui/agui_proto.h"
#include "wire/frames/frames.h"
#include "wire/stream.h"

struct dgm_converter {
    const dgm_codec *from; /* as requested, or as detected so far */
    const dgm_codec *to;   /* NULL: as `from`, once that is detected */
    bool from_any, settled;
    bool
        between_objects; /* decode() and encode() do everything: A2A to A2A, without other options */
    dgm_framing framing; /* as requested; AUTO until the first value shows what the input is */
    dgm_object_kind object;
    dgm_form as;
    dgm_compaction compact;
    bool status_is_answer;
    dgm_mint mint; /* holds the seed */
    dgm_frames frames;
    bool fed, binary; /* a first byte came; it was that of binary events */
    dgm_buf proto;    /* of a binary event that is not complete yet */
    dgm_buf lines;    /* what they became */
    dgm_arena *arena;
    dgm_arena *scratch; /* of one element of an array */
    dgm_buf out;
    size_t n_in, n_out;
    size_t value_at; /* where in out the value being written starts */
    size_t
        frame_at; /* where in out the last frame of a stream starts; SIZE_MAX: the value has emitted none */
    bool look_deep; /* the input nests so deep that the output might be too deep to be read */
    bool too_deep;  /* and it is */
    bool failed;
    bool over_events;               /* something went through canonical events */
    bool stream_written;            /* events of the target: its mark of the end follows them */
    dgm_stream *stream;             /* of the values of a stream, or of an array */
    bool keeps_deep;                /* it may hold values that nest deep */
    dgm_err err;                    /* that made it fail */
    dgm_loss_watch *losses;         /* NULL: not requested */
    dgm_loss_writing *loss_writing; /* NULL: not yet needed */
};

/* One value of the input. */
struct input {
    const dgm_frames_item *item;
    yyjson_val *value;
    const dgm_frame
        *frame;       /* the decoded object, if it is decoded already; then `value` may be NULL */
    const dgm_at *at; /* of value within the text */
    dgm_object_kind kind;
    bool in_stream;
    bool in_list;   /* an element of an array: the output is an array, too */
    bool compacted; /* `frame` comes from an array of chunks, compacted */
};

/* ---- output ------------------------------------------------------------------------------------ */

/* The framing of the output, once the first value has shown what the input is. */
void dgm_convert_settle_framing(dgm_converter *c, bool alone, bool list);
/* Once the source is detected: sets the target and checks that it has the requested form. */
dgm_code dgm_convert_settle_target(dgm_converter *c, dgm_err *err);
/* Around the text of a value. id, event: of its server-sent event; absent: none. */
void dgm_convert_start_value(dgm_converter *c, dgm_str id, dgm_str event);
void dgm_convert_end_value(dgm_converter *c);

/* ---- values (convert_value.c) ------------------------------------------------------------------ */

enum dgm_path {
    DGM_PATH_OBJECTS,   /* A2A to A2A: decode() and encode() */
    DGM_PATH_COMPACTED, /* the same, and chunks in the history of a task become complete messages */
    DGM_PATH_DIRECT,    /* complete chat messages, from and to A2A: lib/direct.h */
    DGM_PATH_EVENTS,    /* canonical events: wire/stream.h */
};

/* The only place that decides which path a value takes. object: of A2A, decoded; NULL: another format, and `form` is
 * that of the value. */
enum dgm_path dgm_convert_path(const dgm_converter *c, const struct input *in,
                               const dgm_object *object, dgm_form form);
dgm_code dgm_convert_value(dgm_converter *c, const struct input *in, dgm_reader *r);
/* Converts an array if all its elements are messages of a format other than A2A; false: they are not. */
bool dgm_convert_message_array(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc);
/* Ends the stream of the values so far. */
dgm_code dgm_convert_end_stream(dgm_converter *c, dgm_err *err);
/* convert_pieces.c: an array of A2A messages of which some are chunks, compacted and converted. false: it holds
 * something else, and its elements are converted one by one. */
bool dgm_convert_pieces(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc);
