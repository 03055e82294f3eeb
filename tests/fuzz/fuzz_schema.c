/* fuzz_schema.c - a schema and a value, one behind the other: any schema compiles or is refused with its place, any check ends, and a
 * report of all mistakes has the same outcome as a check that ends at the first one. */
#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "schema/schema.h"

#include <stdlib.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_value(const dgm_schema *s, const yyjson_val *value)
{
    dgm_schema_mistakes mistakes;
    dgm_err first = {0}, all = {0};
    dgm_code rc = dgm_schema_check(s, value, NULL, &first);
    dgm_code again = dgm_schema_check(s, value, &mistakes, &all);
    must(rc == DGM_OK || rc == DGM_BAD_PARAMS || rc == DGM_TOO_LARGE);
    if (rc == DGM_TOO_LARGE || again == DGM_TOO_LARGE)
        return; /* a complete report needs more steps */
    must(rc == again);
    must((rc == DGM_BAD_PARAMS) == (mistakes.n > 0));
    must(rc == DGM_OK || (first.msg[0] && strcmp(first.msg, mistakes.items[0].msg) == 0));
}

/* [schema, value...]; any other JSON is a schema for itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_arena *a = dgm_arena_new();
    yyjson_val *root, *value;
    dgm_schema *s = NULL;
    dgm_err err = {0};
    size_t i, n;
    if (size < 64 << 10 &&
        dgm_json_read(a, (dgm_str){(const char *)data, size}, DGM_MAX_OBJECT_BYTES, "object_bytes",
                      &root, NULL) == DGM_OK) {
        yyjson_val *schema = yyjson_is_arr(root) ? yyjson_arr_get_first(root) : root;
        if (schema && dgm_schema_compile(schema, &s, &err) == DGM_OK) {
            check_value(s, root);
            yyjson_arr_foreach (root, i, n, value)
                check_value(s, value);
        } else {
            must(!schema || (!s && err.msg[0]));
        }
        dgm_schema_free(s);
    }
    dgm_arena_free(a);
    return 0;
}
