/* test_schema.c - what a schema accepts, and how mistakes read. */
#include "support/check.h"
#include "schema/schema_int.h"

static dgm_schema *compiled(dgm_arena *a, const char *text)
{
    dgm_schema *s = NULL;
    dgm_err err = {0};
    if (dgm_schema_compile(dgm_json_parse_trusted(a, dgm_str_from(text)), &s, &err))
        fail_msg("%s: %s", err.at, err.msg);
    return s;
}

static void nothing(void **state) { (void)state; (void)compiled;}
DGM_TEST_MAIN(dgm_test(nothing))
