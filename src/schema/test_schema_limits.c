/* test_schema_limits.c - no schema and no value makes a check endless, deep or large. */
#include "base/limits.h"
#include "schema/schema.h"
#include "support/check.h"

static dgm_code check_text(dgm_str schema, dgm_str value, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_schema_free) dgm_schema *s = NULL;
    dgm_code rc = dgm_schema_compile(dgm_json_parse_trusted(a, schema), &s, err);
    return rc ? rc : dgm_schema_check(s, dgm_json_parse_trusted(a, value), NULL, err);
}

static dgm_code check_lit(const char *schema, const char *value, dgm_err *err)
{
    return check_text(dgm_str_from(schema), dgm_str_from(value), err);
}

static void repeat(dgm_buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dgm_buf_add(b, text, strlen(text));
}

/* "prefix" + text * n + "suffix" */
static dgm_str repeated(dgm_arena *a, const char *prefix, const char *text, size_t n,
                        const char *suffix)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    repeat(&b, prefix, 1);
    repeat(&b, text, n);
    repeat(&b, suffix, 1);
    dgm_str copy = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return copy;
}

static void references_to_themselves_end(void **state)
{
    static const char *const schemas[] = {
        "{\"$ref\":\"#\"}",
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"not\":{\"$ref\":\"#\"}}",
        "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
        "{\"$dynamicAnchor\":\"a\",\"oneOf\":[{\"$dynamicRef\":\"#a\"},{\"$dynamicRef\":\"#a\"}]}",
        "{\"if\":{\"$ref\":\"#\"},\"unevaluatedProperties\":{\"$ref\":\"#\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        dgm_err err = {0};
        assert_int_equal(check_lit(schemas[i], "{\"a\":1}", &err), DGM_TOO_LARGE);
        assert_non_null(strstr(err.msg, "limit schema_"));
    }
}

static void patterns_that_explode_end(void **state)
{
    static const char *const patterns[] = {"^(a+)+$",
                                           "^(a|aa)+$",
                                           "^(a|a?)+$",
                                           "(a*)*\\\\1b",
                                           "(?:a{0,60000}){0,3}b",
                                           "(a*+)\\\\1\\\\1b",
                                           "((a*)*)*b",
                                           "(?=(a+))(?=(a+))\\\\1\\\\2b"};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str value = repeated(a, "\"", "a", 20000, "!\"");
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        dgm_err err = {0};
        dgm_str schema = dgm_arena_printf(a, "{\"pattern\":\"%s\"}", patterns[i]);
        dgm_code rc = check_text(schema, value, &err);
        if (rc != DGM_TOO_LARGE && rc != DGM_BAD_PARAMS) /* PCRE2 detects some without trying */
            fail_msg("%s: %d %s", patterns[i], rc, err.msg);
    }
    dgm_err err = {0};
    assert_int_equal(check_text(DGM_STR("{\"pattern\":\"^(a+)+$\"}"), value, &err), DGM_TOO_LARGE);
    assert_true(err.msg[0]);
}

static void all_patterns_of_a_check_share_its_steps(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_str value = repeated(a, "[\"aaaaaaaaaaaaaa!\"", ",\"aaaaaaaaaaaaaa!\"", 2000, "]");
    (void)state;
    assert_int_equal(
        check_text(DGM_STR("{\"items\":{\"not\":{\"pattern\":\"^(a+)+$\"}}}"), value, &err),
        DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "limit schema_steps"));
}

static void large_values_of_simple_schemas_pass(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    (void)state;
    assert_int_equal(
        check_text(DGM_STR("{\"items\":{\"type\":\"integer\"},\"contains\":{\"minimum\":5}}"),
                   repeated(a, "[1", ",5", 100000, "]"), &err),
        DGM_OK);
    assert_int_equal(check_text(DGM_STR("{\"pattern\":\"^[a-z]+$\",\"maxLength\":2000000}"),
                                repeated(a, "\"", "a", 1000000, "\""), &err),
                     DGM_OK);
    assert_int_equal(
        check_text(DGM_STR("{\"uniqueItems\":true}"), repeated(a, "[1", ",1", 100000, "]"), &err),
        DGM_BAD_PARAMS);
}

static void large_numbers_end(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str number = repeated(a, "1", "7", 1000000, "");
    dgm_err err = {0};
    (void)state;
    assert_int_equal(
        check_text(dgm_arena_printf(a, "{\"multipleOf\":%.*s}", 100000, number.p), number, &err),
        DGM_TOO_LARGE);
    assert_int_equal(check_text(DGM_STR("{\"multipleOf\":7}"), number, &err), DGM_BAD_PARAMS);
    assert_int_equal(check_text(DGM_STR("{\"minimum\":1e1000001}"), number, &err), DGM_BAD_PARAMS);
}

static void objects_in_another_order_are_paid_for(void **state)
{
    dgm_buf up, down;
    dgm_err err = {0};
    const int n = 20000;
    (void)state;
    dgm_buf_init(&up, SIZE_MAX);
    dgm_buf_init(&down, SIZE_MAX);
    dgm_buf_add_lit(&up, "{\"const\":{");
    for (int i = 0; i < n; i++) {
        dgm_buf_printf(&up, "%s\"%d\":0", i ? "," : "", i);
        dgm_buf_printf(&down, "%s\"%d\":0", i ? "," : "{", n - 1 - i);
    }
    dgm_buf_add_lit(&up, "}}");
    dgm_buf_add_lit(&down, "}");
    assert_int_equal(check_text(dgm_buf_str(&up), dgm_buf_str(&down), &err), DGM_TOO_LARGE);
    dgm_buf_done(&up);
    dgm_buf_done(&down);
}

/* Mistakes quote the value; alternatives in alternatives do so many times. */
static void long_values_are_not_copied_into_mistakes(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str value = repeated(a, "[\"", "a", (size_t)4 << 20, "\"]");
    dgm_str schema = DGM_STR("{\"const\":1}");
    dgm_err err = {0};
    (void)state;
    for (int i = 0; i < 5; i++) /* 4^5 leaves, each with a mistake */
        schema = dgm_arena_printf(a, "{\"anyOf\":[%.*s,%.*s,%.*s,%.*s]}", DGM_P(schema),
                                  DGM_P(schema), DGM_P(schema), DGM_P(schema));
    schema =
        dgm_arena_printf(a, "{\"allOf\":[%.*s,{\"items\":%.*s}]}", DGM_P(schema), DGM_P(schema));
    assert_int_equal(check_text(schema, value, &err), DGM_BAD_PARAMS);
    assert_non_null(strstr(err.msg, "does not fit any of 4 alternatives"));
    assert_int_equal(check_text(DGM_STR("{\"const\":1}"), value, &err), DGM_BAD_PARAMS);
    assert_string_equal(err.msg, "expected 1, got an array");
}

static void schemas_have_limits(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_str many = repeated(a, "{\"allOf\":[true", ",true", DGM_MAX_SCHEMA_NODES, "]}");
    dgm_str large = repeated(a, "{\"enum\":[0", ",0", DGM_MAX_SCHEMA_VALUES, "]}");
    dgm_str pattern = repeated(a, "{\"pattern\":\"", "a", DGM_MAX_PATTERN_BYTES + 1, "\"}");
    dgm_str deep = repeated(a, "{\"pattern\":\"", "(", DGM_MAX_PATTERN_DEPTH + 2, "\"}");
    (void)state;
    assert_int_equal(check_text(many, DGM_STR("1"), &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "schema_nodes"));
    assert_int_equal(check_text(large, DGM_STR("1"), &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "schema_values"));
    assert_int_equal(check_text(pattern, DGM_STR("1"), &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "pattern_bytes"));
    assert_int_equal(check_text(deep, DGM_STR("1"), &err), DGM_BAD_PARAMS);
    assert_non_null(strstr(err.msg, "parentheses are too deeply nested"));
}

static void the_deepest_values_can_be_checked(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_str value = dgm_arena_printf(a, "%.*s%.*s", DGM_P(repeated(a, "", "[", 120, "")),
                                     DGM_P(repeated(a, "", "]", 120, "")));
    (void)state;
    assert_int_equal(
        check_text(DGM_STR("{\"$defs\":{\"n\":{\"allOf\":[{\"items\":{\"$ref\":\"#/$defs/n\"}}]}},"
                           "\"$ref\":\"#/$defs/n\",\"type\":\"array\"}"),
                   value, &err),
        DGM_OK);
}

DGM_TEST_MAIN(dgm_test(references_to_themselves_end), dgm_test(patterns_that_explode_end),
              dgm_test(all_patterns_of_a_check_share_its_steps),
              dgm_test(large_values_of_simple_schemas_pass), dgm_test(large_numbers_end),
              dgm_test(objects_in_another_order_are_paid_for),
              dgm_test(long_values_are_not_copied_into_mistakes), dgm_test(schemas_have_limits),
              dgm_test(the_deepest_values_can_be_checked))
