/*
 * frontend/list_limits.h - how many entries each list of a request may have.
 *
 * A codec reads every list that it knows, and a frontend then does work per entry: it looks something up, copies it, or
 * sends it to the agent. So the numbers are checked first, by a table per protocol, before any entry is read. Values
 * that pass through unread (state, forwardedProps, arguments, schemas) have no row: object_bytes limits them. The requests
 * of OpenAI have these numbers in the tables of wire/chat and wire/responses.
 */
#pragma once

#include "json/json.h"

struct dgm_list_limit {
    const char *
        path; /* names of members with '/' between them; a star is every entry of a list; NULL: the last row */
    size_t max;        /* entries of a list, members of an object */
    const char *limit; /* its name in base/limits.h */
};

/* DGM_TOO_LARGE: the first one that has more; the error names the member, the number and the limit. Rows are checked in
 * their order: a list comes before the lists in its entries. */
dgm_code dgm_check_lists(yyjson_val *body, const struct dgm_list_limit *limits, dgm_err *err);
/* The same for one list that was read. */
dgm_code dgm_check_list(size_t n, size_t max, const char *limit, const dgm_at *at, dgm_err *err);

extern const struct dgm_list_limit dgm_list_limits_agui[];
extern const struct dgm_list_limit dgm_list_limits_aisdk[];
extern const struct dgm_list_limit dgm_list_limits_responses[]; /* of the simple dialect */
