/* fuzz_lines.h - an input read as lines of JSON. */
#pragma once
#include "base/limits.h"
#include "json/json.h"

/* The value in the next line, NULL when it is not JSON; rest: the lines after it. */
static inline yyjson_val *next_line(dgm_arena *a, dgm_str *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    dgm_str line = {rest->p, n};
    yyjson_val *v = NULL;
    rest->p += n + (end != NULL);
    rest->n -= n + (end != NULL);
    return dgm_json_read(a, line, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) ? NULL : v;
}
