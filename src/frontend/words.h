/* frontend/words.h - what paths, queries and headers are made of. */
#pragma once

#include "net/http.h"

/* Without blanks around it. */
dgm_str dgm_trim(dgm_str s);
/* The next of several, up to `end`, trimmed; *list moves on. False: that was all. */
bool dgm_next_word(dgm_str *list, char end, dgm_str *ret);

/* False: an invalid percent code, or invalid UTF-8. */
bool dgm_percent_decode(dgm_arena *a, dgm_str in, bool plus_is_space, dgm_str *ret);
/* A query parameter's value, decoded; absent if it was not sent. Empty ones count as absent. */
dgm_str dgm_query_value(dgm_arena *a, dgm_str query, const char *name);

/* Without its parameters. */
dgm_str dgm_bare_type(dgm_str type);
/* A header Accept names this very type. There may be several: a2a-sdk 0.3 sends a second one for its streams. */
bool dgm_accepts(const dgm_http_request *r, dgm_str type);
