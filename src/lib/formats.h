/* lib/formats.h - every format the library knows, in one table. */
#pragma once

#include "wire/canon_codec.h"
#include "wire/codec.h"

/* A spelling of A2A, or a format that goes through canonical events. */
typedef struct dgm_format {
    const char *name;
    const dgm_codec *a2a;
    const dgm_canon_codec *canon;
    /* Chat Completions: complete messages have a road of their own from and to A2A (direct.h). */
    bool direct;
} dgm_format;

const dgm_format *dgm_format_by_name(const char *name, dgm_err *err); /* NULL: err is set */

/* Who wrote v? `guess` wins a tie: what the stream was so far. NULL: nobody we know. */
const dgm_format *dgm_format_recognise(const yyjson_val *v, const dgm_format *guess);
/* How sure that is: 0 is not at all, 2 and more shows the format's marks. */
const dgm_format *dgm_format_score(const yyjson_val *v, const dgm_format *guess, int *ret_score);

/* Is the array one value of a format, not a list of them? f: the only one to ask; NULL: all. */
bool dgm_format_has_array(const dgm_format *f, const yyjson_val *array);

/* Can it say that? */
bool dgm_format_has(const dgm_format *f, dgm_form form);
/* "events", "messages", ...; "" for NONE. */
const char *dgm_form_word(dgm_form form);

/* a2a_losses.c: on the way to canonical events, and from there. */
extern const dgm_loss_rows dgm_a2a_lost_reading, dgm_a2a_lost_writing;

/* The rows for the two halves of the path through canonical events. */
dgm_loss_rows dgm_format_lost_reading(const dgm_format *f);
dgm_loss_rows dgm_format_lost_writing(const dgm_format *f);
