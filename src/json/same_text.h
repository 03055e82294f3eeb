/*
 * json/same_text.h - recognises a JSON text that differs from the one before it only in the text of one string.
 *
 * Streams repeat all members of an event with each token. The caller that has read one event uses its result again, with the
 * other text.
 */
#pragma once

#include "base/str.h"

/* Longer ones are parsed each time: their text is most of the work. */
#define DGM_MAX_SAME_BYTES ((size_t)4 << 10)

typedef struct dgm_same_text {
    dgm_str json; /* borrowed; n == 0: nothing is recognised */
    size_t at, n; /* where the string is in it, without its quotes */
} dgm_same_text;

/* json: valid JSON, and stays valid. value: of one of its strings. It is forgotten if the string cannot be found for certain:
 * there are escapes, or two strings with this value. */
void dgm_same_text_set(dgm_same_text *s, dgm_str json, dgm_str value);
/* True: json is what was set, with another value. It is borrowed, without escapes and valid UTF-8. */
bool dgm_same_text_read(const dgm_same_text *s, dgm_str json, dgm_str *ret_value);
