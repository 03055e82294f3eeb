/* test_json_value.c - looking at values, comparing, copying, merging them. */
#include "support/check.h"
#include "json/json.h"

static yyjson_val *made(dgm_arena *a, const char *text)
{
    return dgm_json_parse_trusted(a, dgm_str_from(text));
}

static void types_have_names_for_people(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const rows[][2] = {{"null", "null"},   {"true", "a boolean"},
                                          {"1", "a number"},  {"\"\"", "a string"},
                                          {"[]", "an array"}, {"{}", "an object"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(dgm_json_type(made(a, rows[i][0])), rows[i][1]);
    assert_string_equal(dgm_json_type(NULL), "nothing");
}

static void members_are_found_by_name(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = made(a, "{\"a\":1,\"b\\u0000\":2,\"\":3,\"a\":4}");
    (void)state;
    check_str(dgm_json_str(dgm_json_get(v, DGM_STR("a"))), "1");
    check_str(dgm_json_str(dgm_json_get(v, DGM_STR("b\0"))), "2");
    check_str(dgm_json_str(dgm_json_get(v, DGM_STR(""))), "3");
    assert_null(dgm_json_get(v, DGM_STR("b")));
    assert_null(dgm_json_get(v, DGM_STR("c")));
    assert_null(dgm_json_get(NULL, DGM_STR("a")));
    assert_null(dgm_json_get(made(a, "[1]"), DGM_STR("0")));
}

static void null_counts_as_absent(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = made(a, "{\"a\":null,\"b\":false,\"c\":\"\"}");
    (void)state;
    assert_null(dgm_json_non_null(v, "a"));
    assert_null(dgm_json_non_null(v, "d"));
    assert_null(dgm_json_non_null(NULL, "a"));
    assert_true(yyjson_is_false(dgm_json_non_null(v, "b")));
    check_str(dgm_json_str(dgm_json_non_null(v, "c")), "");
}

static void whole_numbers_are_detected(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t n;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"-42", true, -42},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"1180591620717411303424", false, 0},
        {"1.0", false, 0},
        {"1e2", false, 0},
        {"\"42\"", true, 42}, /* as ProtoJSON allows */
        {"\"-7\"", true, -7},
        {"\"\"", false, 0},
        {"\"-\"", false, 0},
        {"\"+1\"", false, 0},
        {"\" 1\"", false, 0},
        {"\"1x\"", false, 0},
        {"null", false, 0},
        {"true", false, 0},
        {"[1]", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        int64_t n = 0;
        if (dgm_json_int(made(a, rows[i].text), &n) != rows[i].whole || n != rows[i].n)
            fail_msg("%s gave %lld", rows[i].text, (long long)n);
    }
    int64_t n;
    assert_false(dgm_json_int(NULL, &n));
}

static void equality_is_by_value(void **state)
{
    static const struct {
        const char *x, *y;
        bool same;
    } rows[] = {
        {"{\"a\":1,\"b\":[true,null,\"x\"]}", "{ \"b\" : [true, null, \"\\u0078\"], \"a\":1}",
         true},
        {"{}", "{}", true},
        {"[]", "{}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"1.0", "1", false}, /* numbers by their text */
        {"-0", "0", false},
        {"1e400", "1e400", true},
        {"\"1\"", "1", false},
        {"true", "false", false},
        {"null", "false", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":2}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":{\"b\":{\"c\":[{\"d\":1}]}}}", "{\"a\":{\"b\":{\"c\":[{\"d\":1}]}}}", true},
        {"{\"a\":{\"b\":{\"c\":[{\"d\":1}]}}}", "{\"a\":{\"b\":{\"c\":[{\"d\":2}]}}}", false},
        /* opaque values may have a key twice */
        {"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}", true},
        {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"a\":1}", false},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (dgm_json_equal(made(a, rows[i].x), made(a, rows[i].y)) != rows[i].same)
            fail_msg("%s and %s", rows[i].x, rows[i].y);
    }
    assert_true(dgm_json_equal(NULL, NULL));
    assert_false(dgm_json_equal(NULL, made(a, "null")));
}

static void a_copy_outlives_the_original(void **state)
{
    static const char *const texts[] = {"null", "1e400", "\"a\\u0000b\"", "[]",
                                        "{\"a\":[1,{\"b\":\"c\"},[]],\"d\":true}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *to = dgm_arena_new();
        dgm_arena *from = dgm_arena_new();
        char *text = strdup(texts[i]);
        yyjson_val *copy = dgm_json_copy(to, made(from, text));
        memset(text, 'x', strlen(text));
        dgm_arena_free(from);
        check_str(dgm_json_text_in(to, copy), texts[i]);
        free(text);
    }
    assert_null(dgm_json_copy(NULL, NULL));
}

static void a_part_of_a_document_copies_alone(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = made(a, "{\"x\":[1,2],\"a\":{\"b\":[3,{\"c\":4}]},\"z\":\"end\"}");
    (void)state;
    check_str(dgm_json_text_in(a, dgm_json_copy(a, dgm_json_get(v, DGM_STR("a")))),
              "{\"b\":[3,{\"c\":4}]}");
    check_str(dgm_json_text_in(a, dgm_json_copy(a, dgm_json_get(v, DGM_STR("z")))), "\"end\"");
}

static void sameness_is_by_text(void **state)
{
    static const struct {
        const char *x, *y;
        bool same;
    } rows[] = {
        {"{\"a\":[1,{\"b\":\"c\"},null,true]}", " { \"a\" : [1,{\"b\":\"\\u0063\"},null,true]}",
         true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", false}, /* the order counts here */
        {"{\"a\":1,\"a\":1}", "{\"a\":1,\"a\":1}", true},
        {"[[1],2]", "[[1,2]]", false}, /* as many values, elsewhere */
        {"[[],[1]]", "[[1],[]]", false},
        {"1.0", "1", false},
        {"\"1\"", "1", false},
        {"true", "false", false},
        {"null", "false", false},
        {"[]", "{}", false},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (dgm_json_same(made(a, rows[i].x), made(a, rows[i].y)) != rows[i].same)
            fail_msg("%s and %s", rows[i].x, rows[i].y);
    }
    assert_true(dgm_json_same(NULL, NULL));
    assert_false(dgm_json_same(made(a, "null"), NULL));
}

static void an_object_is_made_of_members(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_member members[] = {
        {DGM_STR("b\n"), made(a, "[1,{\"x\":[]}]")},
        {DGM_STR(""), made(a, "null")},
        {DGM_STR("a"),
         dgm_json_get(made(a, "{\"q\":1,\"v\":{\"y\":\"z\"},\"w\":2}"), DGM_STR("v"))}};
    (void)state;
    yyjson_val *v = dgm_json_object(a, members, 3);
    check_str(dgm_json_text_in(a, v), "{\"b\\n\":[1,{\"x\":[]}],\"\":null,\"a\":{\"y\":\"z\"}}");
    check_str(dgm_json_str(dgm_json_get(dgm_json_get(v, DGM_STR("a")), DGM_STR("y"))), "z");
    assert_true(dgm_json_same(v, dgm_json_copy(a, v)));
    check_str(dgm_json_text_in(a, dgm_json_object(a, NULL, 0)), "{}");
    dgm_member around = {DGM_STR("o"), v}; /* of objects that were made so, too */
    check_str(dgm_json_text_in(a, dgm_json_object(a, &around, 1)),
              "{\"o\":{\"b\\n\":[1,{\"x\":[]}],\"\":null,\"a\":{\"y\":\"z\"}}}");
}

DGM_TEST_MAIN(dgm_test(types_have_names_for_people), dgm_test(members_are_found_by_name),
              dgm_test(null_counts_as_absent), dgm_test(whole_numbers_are_detected),
              dgm_test(equality_is_by_value), dgm_test(a_copy_outlives_the_original),
              dgm_test(a_part_of_a_document_copies_alone), dgm_test(sameness_is_by_text),
              dgm_test(an_object_is_made_of_members), )
