/* wire/request_members.c - see request_members.h. */
#include "wire/request_members.h"
#include "base/list.h"
#include "json/build.h"

void dgm_request_set(dgm_arena *a, dgm_extra *x, const char *key, const dgm_json *value)
{
    if (!value)
        return;
    x->at = dgm_list_grow(a, x->at, x->n, sizeof *x->at);
    x->at[x->n++] = (dgm_member){dgm_str_from(key), value};
}

const dgm_json *dgm_request_tool_choice(dgm_arena *a, yyjson_val *choice, bool nested)
{
    yyjson_val *function = dgm_json_get(choice, DGM_STR("function"));
    dgm_str name = dgm_json_str_member(function ? function : choice, "name");
    if (!yyjson_is_obj(choice) || !name.n || (function != NULL) == nested)
        return choice;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "function");
    if (nested)
        dgm_json_build_object(&b, "function");
    dgm_json_build_str(&b, "name", name);
    if (nested)
        dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

const dgm_json *dgm_request_response_format(dgm_arena *a, yyjson_val *format, bool nested)
{
    yyjson_val *inner = dgm_json_get(format, DGM_STR("json_schema")), *key, *value;
    size_t i, n;
    if (!dgm_str_is(dgm_json_str_member(format, "type"), "json_schema") ||
        (inner != NULL) == nested)
        return format;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", "json_schema");
    if (nested)
        dgm_json_build_object(&b, "json_schema");
    yyjson_obj_foreach (inner ? inner : format, i, n, key, value) {
        if (!dgm_str_is(dgm_json_str(key), "type"))
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    if (nested)
        dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}
