/* wire/server_error.c - see server_error.h. */
#include "wire/server_error.h"
#include "base/limits.h"

dgm_str dgm_server_error_in(const yyjson_val *v)
{
    static const char *const names[] = {"message", "detail", "error", "errorText", "title"};
    yyjson_val *error = dgm_json_get(v, DGM_STR("error"));
    const yyjson_val *from = yyjson_is_obj(error) ? error : v;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dgm_str text = dgm_json_str_member(from, names[i]);
        if (text.n)
            return text;
    }
    return dgm_json_str_member(yyjson_arr_get_first(dgm_json_get(v, DGM_STR("detail"))), "msg");
}

dgm_str dgm_server_error_text(dgm_arena *a, dgm_str body)
{
    yyjson_val *v = NULL;
    if (!body.n || dgm_json_read(a, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL))
        return (dgm_str){0};
    return dgm_server_error_in(v);
}
