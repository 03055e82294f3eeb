/* base/http_date.h - dates as HTTP writes them (RFC 9110, section 5.6.7). */
#pragma once

#include "base/arena.h"

/* "Sun, 06 Nov 1994 08:49:37 GMT", in the arena. s: Unix seconds. */
dgm_str dgm_http_date_text(dgm_arena *a, int64_t s);
/* Reads this form; the two older ones are not read. */
bool dgm_http_date_read(dgm_str text, int64_t *ret_s);
