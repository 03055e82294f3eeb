/* wire/formats.h - the list of formats. A new format is one codec (wire/codec.h) and one row in formats.c. */
#pragma once

#include "wire/codec.h"

const dgm_codec *dgm_codec_by_name(const char *name, dgm_err *err); /* NULL: err is set */
const dgm_codec *dgm_codec_by_id(dgm_format_id id, dgm_err *err);   /* likewise */

/* The format of v; `guess` (the format of the values before, or NULL) wins a tie. NULL: unknown. ret_score: as recognise()
 * returns it; NULL: not needed. */
const dgm_codec *dgm_codec_detect(const yyjson_val *v, const dgm_codec *guess, int *ret_score);

/* Is the array one value of a format, not a list of them? codec: the only one to check; NULL: all. */
bool dgm_codec_has_array(const dgm_codec *codec, const yyjson_val *array);

/* Can it be written in this form? */
bool dgm_codec_has(const dgm_codec *codec, dgm_form form);
/* "events", "messages", ...; "" for NONE. */
const char *dgm_form_word(dgm_form form);
