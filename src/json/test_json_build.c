/* test_json_build.c - values built without text are the same as parsed ones. */
#include "support/check.h"
#include "json/build.h"

static void built_values_equal_parsed_ones(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "text", DGM_STR("a \"quoted\" \xC3\xA9"));
    dgm_json_build_str_if(&b, "absent", (dgm_str){0});
    dgm_json_build_str(&b, "empty", (dgm_str){0});
    dgm_json_build_array(&b, "list");
    dgm_json_build_lit(&b, NULL, "x");
    dgm_json_build_int(&b, NULL, INT64_MIN);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_close(&b);
    dgm_json_build_array(&b, NULL);
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    dgm_json_build_bool(&b, "yes", true);
    dgm_json_build_bool(&b, "no", false);
    dgm_json_build_null(&b, "null");
    dgm_json_build_value(&b, "nested", dgm_json_parse_trusted(a, DGM_STR("{\"k\":[1.50,{}]}")));
    dgm_json_build_value(&b, "nothing", NULL);
    dgm_json_build_members_of(&b, dgm_json_parse_trusted(a, DGM_STR("{\"p\":1,\"q\":[2]}")));
    dgm_json_build_close(&b);
    yyjson_val *v = dgm_json_build_end(&b);
    static const char text[] =
        "{\"text\":\"a \\\"quoted\\\" \xC3\xA9\",\"empty\":\"\",\"list\":[\"x\","
        "-9223372036854775808,{},[]],\"yes\":true,\"no\":false,\"null\":null,"
        "\"nested\":{\"k\":[1.50,{}]},\"p\":1,\"q\":[2]}";
    check_str(dgm_json_text_in(a, v), text);
    assert_true(dgm_json_same(v, dgm_json_parse_trusted(a, dgm_str_from(text))));
    assert_true(dgm_json_same(dgm_json_copy(a, v), v));
}

/* Containers grow while they are open, also across many reallocations. */
static void large_values_are_built(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_arena_free) dgm_arena *other = dgm_arena_new();
    (void)state;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    for (int i = 0; i < 5000; i++) {
        dgm_json_build_object(&b, NULL);
        dgm_json_build_int(&b, "i", i);
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    yyjson_val *v = dgm_json_build_end(&b);
    assert_int_equal(yyjson_arr_size(v), 5000);
    assert_true(dgm_json_same(v, dgm_json_parse_trusted(other, dgm_json_text_in(a, v))));
}

static void a_deep_value_is_built_without_recursion(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_json_build b = dgm_json_build_start(a);
    for (int i = 0; i < 60; i++)
        dgm_json_build_array(&b, NULL);
    for (int i = 0; i < 60; i++)
        dgm_json_build_close(&b);
    yyjson_val *v = dgm_json_build_end(&b);
    assert_true(dgm_json_same(v, dgm_json_parse_trusted(a, dgm_json_text_in(a, v))));
}

static void a_string_is_copied(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char text[] = "hello";
    (void)state;
    yyjson_val *v = dgm_json_make_string(a, dgm_str_from(text));
    text[0] = 'j';
    check_str(dgm_json_str(v), "hello");
    check_str(dgm_json_text_in(a, dgm_json_make_string(a, (dgm_str){0})), "\"\"");
}

DGM_TEST_MAIN(dgm_test(built_values_equal_parsed_ones), dgm_test(large_values_are_built),
              dgm_test(a_deep_value_is_built_without_recursion), dgm_test(a_string_is_copied))
