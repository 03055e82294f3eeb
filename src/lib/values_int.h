/* lib/values_int.h - shared by values.c and values_text.c. */
#pragma once

#include "base/arena.h"

#include <dragoman/convert.h>

/* Reads a text that we wrote, and changes it: texts in the list are borrowed from it. false: it is not such a text. */
bool dgm_values_parse(dgm_arena *a, char *text, size_t n, const dgm_value **ret_values,
                      size_t *ret_n);
