/* model/calls.c - calls and results in the data of a message. */
#include "model/calls.h"
#include "base/limits.h"
#include "json/json.h"

static yyjson_val *list_in(const dgm_part *part, dgm_str name)
{
    yyjson_val *list = part->kind == DGM_PART_DATA ? dgm_json_get(part->data, name) : NULL;
    return yyjson_arr_size(list) ? list : NULL;
}

static bool has_list(const dgm_message *m, dgm_str name)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (list_in(&m->parts.at[i], name))
            return true;
    }
    return false;
}

bool dgm_message_has_calls(const dgm_message *m)
{
    return m->role == DGM_ROLE_AGENT && has_list(m, DGM_STR(DGM_DATA_CALLS));
}

bool dgm_message_has_results(const dgm_message *m)
{
    return has_list(m, DGM_STR(DGM_DATA_RESULTS));
}

static void take_ids(yyjson_val *calls, dgm_strs *ids, size_t max)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(calls);
    yyjson_val *call;
    while (ids->n < max && (call = yyjson_arr_iter_next(&it))) {
        yyjson_val *v = dgm_json_get(call, DGM_STR("call_id"));
        dgm_str id = yyjson_is_str(v) ? dgm_json_str(v) : (dgm_str){0};
        if (id.n && id.n <= DGM_MAX_ID_BYTES)
            ids->at[ids->n++] = id;
    }
}

dgm_strs dgm_message_call_ids(dgm_arena *a, const dgm_message *m, size_t max)
{
    dgm_strs ids = {0};
    if (!dgm_message_has_calls(m))
        return ids;
    ids.at = dgm_new_n(a, dgm_str, max);
    for (size_t i = 0; i < m->parts.n; i++)
        take_ids(list_in(&m->parts.at[i], DGM_STR(DGM_DATA_CALLS)), &ids, max);
    return ids;
}
