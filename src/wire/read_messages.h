/* wire/read_messages.h - a message or a list of them: what formats of messages read alike. */
#pragma once

#include "base/limits.h"
#include "canon/canon.h"
#include "json/shape.h"

/* Appends what v stands for: one message, or several where the format folds them into one. */
typedef dgm_code (*dgm_read_message)(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                     dgm_canon_messages *list);

static inline dgm_code dgm_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                         dgm_read_message read_one, dgm_canon_messages *ret)
{
    dgm_canon_messages list = {0};
    yyjson_val *one;
    size_t i, n;
    dgm_code rc = DGM_OK;
    if (!yyjson_is_arr(v)) {
        rc = read_one(r, v, at, &list);
    } else if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS) {
        rc = dgm_fail(r->err, DGM_TOO_LARGE, at,
                      "%zu entries, more than the limit list_items of %d: send fewer at once",
                      yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    } else {
        yyjson_arr_foreach (v, i, n, one) {
            if ((rc = read_one(r, one, DGM_AT_I(at, i), &list)))
                break;
        }
    }
    if (!rc)
        *ret = list;
    return rc;
}
