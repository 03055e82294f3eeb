/*
 * wire/langchain/langchain_graph.c - the elements of LangGraph's streams.
 *
 * By the modes that were asked for, an element is the payload, [mode, payload], [namespace, payload] or
 * [namespace, mode, payload]; of Python's second version {"type": mode, "ns": namespace, "data": payload}. The
 * payload of the mode `messages` is a pair: the message, and metadata of the node that sent it.
 */
#include "wire/langchain/langchain_int.h"

static bool is_mode(const yyjson_val *v)
{
    static const char *const modes[] = {"messages", "values",      "updates", "custom",
                                        "tasks",    "checkpoints", "debug",   "tools"};
    for (size_t i = 0;
         yyjson_is_str((yyjson_val *)(uintptr_t)v) && i < sizeof modes / sizeof *modes; i++) {
        if (dgm_str_eq(dgm_json_str(v), dgm_str_from(modes[i])))
            return true;
    }
    return false;
}

/* A path of nodes: texts, or none at the root. */
static bool is_namespace(yyjson_val *v)
{
    yyjson_val *e;
    size_t i, n;
    if (!yyjson_is_arr(v))
        return false;
    yyjson_arr_foreach (v, i, n, e) {
        if (!yyjson_is_str(e))
            return false;
    }
    return true;
}

/* Is it LangGraph's metadata of a node? Any other member means that the object is something else. */
static bool is_metadata(yyjson_val *v)
{
    yyjson_val *key, *value;
    size_t i, n;
    if (!yyjson_is_obj(v))
        return false;
    yyjson_obj_foreach (v, i, n, key, value) {
        if (dgm_str_starts(dgm_json_str(key), DGM_STR("langgraph_")) ||
            dgm_str_starts(dgm_json_str(key), DGM_STR("ls_")))
            return true;
    }
    return yyjson_obj_size(v) == 0;
}

static bool open_pair(yyjson_val *v, lc_element *ret)
{
    yyjson_val *message = yyjson_arr_get(v, 0), *metadata = yyjson_arr_get(v, 1);
    lc_opened o;
    if (yyjson_arr_size(v) != 2 || !dgm_lc_open(message, &o) || !is_metadata(metadata))
        return false;
    ret->message = message;
    ret->metadata = metadata;
    return true;
}

/* Of other modes only that the graph waits for an answer is read. */
static bool open_payload(const yyjson_val *mode, yyjson_val *payload, lc_element *ret)
{
    if (dgm_str_is(dgm_json_str(mode), "messages"))
        return open_pair(payload, ret);
    ret->interrupts = dgm_json_get(payload, DGM_STR("__interrupt__"));
    return true;
}

bool dgm_lc_open_element(const yyjson_val *value, lc_element *ret)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)value;
    lc_element e = {0};
    bool is = false;
    if (yyjson_is_obj(v)) {
        yyjson_val *mode = dgm_json_get(v, DGM_STR("type"));
        is = is_mode(mode) && is_namespace(dgm_json_get(v, DGM_STR("ns"))) &&
             open_payload(mode, dgm_json_get(v, DGM_STR("data")), &e);
        e.in_data = true;
        if (is && !e.interrupts)
            e.interrupts = dgm_json_get(v, DGM_STR("interrupts"));
    } else if (yyjson_is_arr(v)) {
        size_t n = yyjson_arr_size(v);
        e.in_array = n - (n > 0);
        yyjson_val *first = yyjson_arr_get(v, 0), *last = yyjson_arr_get(v, n - (n > 0));
        if (n == 3)
            is = is_namespace(first) && is_mode(yyjson_arr_get(v, 1)) &&
                 open_payload(yyjson_arr_get(v, 1), last, &e);
        else if (n == 2)
            is = is_mode(first)        ? open_payload(first, last, &e)
                 : is_namespace(first) ? open_pair(last, &e)
                                       : open_pair(v, &e);
        if (e.message == first)
            e.in_array = 0;
    }
    if (is)
        *ret = e;
    return is;
}
