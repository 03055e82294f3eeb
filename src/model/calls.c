/* model/calls.c - calls and results in the data of a message. */
#include "model/calls.h"
#include "base/limits.h"
#include "json/json.h"

bool dgm_message_has(const dgm_message *m, dgm_call_list which)
{
    dgm_str name = which == DGM_CALLS ? DGM_STR(DGM_DATA_CALLS) : DGM_STR(DGM_DATA_RESULTS);
    if (which == DGM_CALLS && m->role != DGM_ROLE_AGENT)
        return false;
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA &&
            yyjson_arr_size(dgm_json_get(m->parts.at[i].data, name)))
            return true;
    }
    return false;
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
    if (!dgm_message_has(m, DGM_CALLS))
        return ids;
    ids.at = dgm_new_n(a, dgm_str, max);
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            take_ids(dgm_json_get(m->parts.at[i].data, DGM_STR(DGM_DATA_CALLS)), &ids, max);
    }
    return ids;
}

bool dgm_part_is_tools(const dgm_part *p)
{
    yyjson_val *data = (yyjson_val *)(uintptr_t)p->data, *tool;
    yyjson_val *list =
        p->kind == DGM_PART_DATA ? dgm_json_get(data, DGM_STR(DGM_DATA_TOOLS)) : NULL;
    size_t i, n;
    if (!yyjson_arr_size(list) || yyjson_obj_size(data) != 1)
        return false;
    yyjson_arr_foreach (list, i, n, tool) {
        if (!dgm_json_get(tool, DGM_STR("name")))
            return false;
    }
    return true;
}

const dgm_json *dgm_message_tools(const dgm_message *m, size_t *ret_part)
{
    for (size_t i = 0; m->role == DGM_ROLE_USER && i < m->parts.n; i++) {
        if (!dgm_part_is_tools(&m->parts.at[i]))
            continue;
        *ret_part = i;
        return dgm_json_get(m->parts.at[i].data, DGM_STR(DGM_DATA_TOOLS));
    }
    return NULL;
}
