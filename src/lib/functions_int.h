/*
 * lib/functions_int.h - what the documents' functions share: reading objects and events, writing lists.
 */
#pragma once

#include "base/list.h"
#include "canon/compact.h"
#include "canon/simple.h"
#include "wire/codec.h"
#include "json/shape.h"

/* ---- reading --------------------------------------------------------------------------------------------- */

/* A2A, in any of its dialects, and the names of its members there. */
typedef struct dgm_functions_object {
    dgm_frame frame;
    const dgm_codec *codec;
    bool made_id; /* the id of its message, or of its task, is made up */
} dgm_functions_object;

/* The input of a function. */
typedef struct dgm_functions_in {
    dgm_arena *a;
    yyjson_val *root;
    dgm_str
        text; /* of root: generated ids depend on it. p == NULL: it is written when an id is needed. */
} dgm_functions_in;

/* v: root, or its element n. Pointers of errors begin at v. */
dgm_code dgm_functions_read_object(dgm_functions_in *in, yyjson_val *v, size_t n,
                                   dgm_functions_object *ret_object, dgm_err *err);

/* A list of events. Elements that are null are left out; those that are lists stand for their own
 * elements. So results of the first function can be given to the others as they are. */
typedef struct dgm_functions_events {
    bool is_list;             /* not one event by itself */
    bool official;            /* which of the two lists below it is */
    bool chunk;               /* the only event is one of AG-UI's chunks */
    dgm_simple_events simple; /* document 000's */
    dgm_canon_events canon;   /* AG-UI's own, chunks made START, CONTENT, END */
} dgm_functions_events;

dgm_code dgm_functions_read_events(const dgm_functions_in *in, dgm_functions_events *ret_events,
                                   dgm_err *err);

/* ---- writing --------------------------------------------------------------------------------------------- */

/*
 * Values one behind the other: no value gives no text, one is itself, several are an array. With `flat`, values that can be
 * are written there instead.
 */
typedef struct dgm_functions_out {
    dgm_buf text;
    size_t n;
    bool is_list;   /* one or none, too, are an array */
    dgm_flat *flat; /* NULL: all are text. Its first value is room for the array. */
    size_t n_flat;
} dgm_functions_out;

void dgm_functions_out_init(dgm_functions_out *o);
void dgm_functions_out_clear(dgm_functions_out *o); /* for another result; memory stays */
dgm_writer dgm_functions_next(dgm_functions_out *o, dgm_format_id format); /* for the next value */
/* Completes the text. It is absent if there is no value. */
dgm_code dgm_functions_out_end(dgm_functions_out *o, dgm_str *ret_text, dgm_err *err);
/* Returns the text for dgm_free(), or frees it when rc is not DGM_OK; err is where that goes. */
dgm_code dgm_functions_out_done(dgm_functions_out *o, dgm_code rc, char **ret_text, size_t *ret_n,
                                dgm_err *err);

/* Was it written to the flat list? */
bool dgm_functions_flatten(dgm_functions_out *o, const dgm_shape *s, const void *object);

void dgm_functions_put_simple(dgm_functions_out *o, const dgm_simple_events *events);

/* The same in AG-UI's own events. events: what e says, as document 000's. */
dgm_code dgm_functions_put_official(dgm_functions_out *out, dgm_arena *a,
                                    const dgm_simple_events *events, const dgm_event *e,
                                    dgm_err *err);

/* ---- the functions --------------------------------------------------------------------------------------- */

/* From a value to values: what the functions of dragoman/convert.h on text and on flat lists have in common. */
typedef dgm_code dgm_functions_convert(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err);

dgm_functions_convert dgm_functions_a2a_to_simple, dgm_functions_a2a_to_official,
    dgm_functions_compact, dgm_functions_event_to_chat, dgm_functions_message_to_chat;

dgm_code dgm_functions_on_text(dgm_functions_convert *convert, dgm_str text, char **ret_text,
                               size_t *ret_n, dgm_err *err);
