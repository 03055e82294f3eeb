/* lib/convert_int.h - the inside of the converter: what its files share. */
#pragma once

#include "lib/loss_watch.h"
#include "wire/agui/agui_proto.h"
#include "wire/frames/frames.h"
#include "wire/stream.h"

struct dgm_converter {
    const dgm_format *from; /* as asked for, or as told by the input so far */
    const dgm_format *to;   /* NULL: as `from`, once that is known */
    bool from_any, settled;
    bool between_a2a;    /* and nothing else was asked for: the shortest path */
    dgm_framing framing; /* as asked for; AUTO until the first value shows what the input is */
    dgm_object_kind object;
    dgm_form as;
    dgm_compaction compact;
    bool status_is_answer;
    dgm_mint mint; /* holds the seed */
    dgm_frames frames;
    bool fed, binary; /* a first byte came; it was that of binary events */
    dgm_agui_proto_frames proto;
    dgm_buf lines; /* what they became */
    dgm_arena *arena;
    dgm_arena *scratch; /* of one element of an array */
    dgm_buf out;
    size_t n_in, n_out;
    size_t value_at; /* where in out the value being written starts */
    size_t frame_at; /* and what goes before it in its server-sent event */
    bool look_deep;  /* the input nests so deep that the output might be too deep to be read */
    bool too_deep;   /* and it is */
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
    const dgm_frame *frame; /* what it is, if that is known already; there is no value then */
    const dgm_at *at;       /* of value within the text */
    dgm_object_kind kind;
    bool in_stream;
    bool in_list; /* an element of an array: the output is an array whatever it becomes */
};

/* ---- output ------------------------------------------------------------------------------------ */

/* What the output is, once the first value has shown what the input is. */
static inline void settle_framing(dgm_converter *c, bool alone, bool list)
{
    if (c->framing == DGM_FRAMING_AUTO)
        c->framing = !alone ? DGM_FRAMING_SSE : list ? DGM_FRAMING_ARRAY : DGM_FRAMING_JSON;
    else if (c->framing == DGM_FRAMING_JSON && (!alone || list))
        c->framing = DGM_FRAMING_ARRAY;
}

/* id, event: what its server-sent event has; absent: nothing. */
void dgm_convert_begin_event(dgm_converter *c, dgm_str id, dgm_str event);
void dgm_convert_look_deep(dgm_converter *c);
/* Once the source is known: is the target, and has it the form that was asked for? */
dgm_code dgm_convert_settle_target(dgm_converter *c, dgm_err *err);

static inline void begin_value(dgm_converter *c, dgm_str id, dgm_str event)
{
    if (c->framing == DGM_FRAMING_SSE)
        dgm_convert_begin_event(c, id, event);
    else if (c->framing == DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, c->n_out ? ',' : '[');
    c->n_out++;
    c->value_at = c->out.n;
}

static inline void end_value(dgm_converter *c)
{
    if (c->look_deep)
        dgm_convert_look_deep(c);
    if (c->framing == DGM_FRAMING_SSE) {
        dgm_sse_escape_line_ends(&c->out, c->value_at);
        dgm_buf_add_lit(&c->out, "\n\n");
    } else if (c->framing != DGM_FRAMING_ARRAY)
        dgm_buf_add_char(&c->out, '\n');
}

/* ---- values ------------------------------------------------------------------------------------ */

/* convert_a2a.c: between spellings of A2A, and the direct path. */
dgm_code dgm_convert_decode(dgm_converter *c, const struct input *in, dgm_reader *r,
                            dgm_frame *ret_frame);
dgm_code dgm_convert_a2a(dgm_converter *c, const struct input *in, dgm_reader *r);
dgm_code dgm_convert_to_chat(dgm_converter *c, const struct input *in, const dgm_frame *frame,
                             dgm_reader *r);
dgm_code dgm_convert_chat(dgm_converter *c, const struct input *in, dgm_reader *r);
/* Does the value go that way? */
bool dgm_convert_is_direct(const dgm_converter *c, const struct input *in);

/* convert.c: a frame of A2A, on the path that its target asks for. */
dgm_code dgm_convert_frame(dgm_converter *c, const struct input *in, dgm_reader *r);
/* convert_pieces.c: an array of A2A messages of which some are pieces, compacted and converted. false: it holds
 * something else, and its elements are converted one by one. */
bool dgm_convert_pieces(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc);
/* A value of A2A that `compact` writes as A2A again: messages and tasks. false: it is something else. */
bool dgm_convert_compact_a2a(dgm_converter *c, const struct input *in, dgm_reader *r,
                             dgm_code *ret_rc);
/* Pointers of records are wrapped and have the names of 1.0: here they become those of the input. */
void dgm_convert_respell(dgm_err *err, const dgm_frame *frame, const dgm_codec *codec);
dgm_code dgm_convert_write_a2a(dgm_converter *c, const struct input *in, const dgm_frame *frame,
                               dgm_err *err);

/* convert_canon.c: through canonical events. */
dgm_code dgm_convert_canon(dgm_converter *c, const struct input *in, dgm_reader *r);
/* A whole array, if its elements belong together; false: they go one by one. */
bool dgm_convert_canon_array(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc);
/* Ends the stream of the values so far. */
dgm_code dgm_convert_end_stream(dgm_converter *c, dgm_err *err);
