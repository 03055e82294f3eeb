/* lib/formats.h - every format the library knows, in one table. */
#pragma once

#include "wire/codec.h"

typedef struct dgm_format {
    const char *name;
    const dgm_codec *a2a; /* NULL: no spelling of A2A (openai-chat) */
    int (*recognise)(const yyjson_val *v);
} dgm_format;

const dgm_format *dgm_format_by_name(const char *name, dgm_err *err); /* NULL: err is set */

/* Who wrote v? `guess` wins a tie: what the stream was so far. NULL: nobody we know. */
const dgm_format *dgm_format_recognise(const yyjson_val *v, const dgm_format *guess);
