/* frontend/a2a/test_a2a_headers.c - versions and media types; percent codes and queries. */
#include "frontend/a2a/a2a_front_int.h"
#include "support/check.h"

static void percent_codes(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str s;
    (void)state;
    assert_true(dgm_percent_decode(a, DGM_STR("a%2Fb+c%c3%A4"), false, &s));
    assert_true(dgm_str_is(s, "a/b+c\xc3\xa4"));
    assert_true(dgm_percent_decode(a, DGM_STR("a+b"), true, &s));
    assert_true(dgm_str_is(s, "a b"));
    assert_false(dgm_percent_decode(a, DGM_STR("%"), false, &s));
    assert_false(dgm_percent_decode(a, DGM_STR("a%2"), false, &s));
    assert_false(dgm_percent_decode(a, DGM_STR("%zz"), false, &s));
    assert_false(dgm_percent_decode(a, DGM_STR("%f0%28"), false, &s));
}

static void query_values(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str q = DGM_STR("pageSize=3&xstatus=no&status=&contextId=a%26b&contextId=late");
    (void)state;
    assert_true(dgm_str_is(dgm_query_value(a, q, "pageSize"), "3"));
    assert_true(dgm_str_is(dgm_query_value(a, q, "contextId"), "a&b"));
    assert_int_equal(dgm_query_value(a, q, "status").n, 0);
    assert_int_equal(dgm_query_value(a, q, "page").n, 0);
    assert_int_equal(dgm_query_value(a, (dgm_str){0}, "x").n, 0);
}

static enum version version(const char *header, const char *query)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_http_header h = {DGM_STR("a2a-version"), dgm_str_from(header)};
    dgm_http_request r = {.headers = &h, .n_headers = header ? 1 : 0, .query = dgm_str_from(query)};
    bool said;
    return dgm_version_of(&r, a, &said);
}

static void versions(void **state)
{
    static const char *const others[] = {"99.0", "1",    "1.", "1.0x", "1.0.",
                                         "1.00", "-1.0", ".3", "0.30", "0.3.x"};
    (void)state;
    assert_int_equal(version("1.0", NULL), VERSION_10);
    assert_int_equal(version("\t1.0.7 ", NULL), VERSION_10);
    assert_int_equal(version(NULL, NULL), VERSION_03);
    assert_int_equal(version("", "A2A-Version=1.0"), VERSION_03);
    assert_int_equal(version(NULL, "x=1&A2A-Version=1.0"), VERSION_10);
    assert_int_equal(version("0.3.14", NULL), VERSION_03);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(version(others[i], NULL), VERSION_OTHER);
}

static void media_types(void **state)
{
    dgm_str list[] = {DGM_STR("text/plain"), DGM_STR("image/*")};
    dgm_strs modes = {list, 2};
    (void)state;
    assert_true(dgm_takes_media_type(modes, DGM_STR("Text/Plain; charset=utf-8")));
    assert_true(dgm_takes_media_type(modes, DGM_STR("image/png")));
    assert_false(dgm_takes_media_type(modes, DGM_STR("imagery/png")));
    assert_false(dgm_takes_media_type(modes, DGM_STR("text/html")));
    assert_true(dgm_takes_media_type(modes, (dgm_str){0}));
    assert_true(dgm_takes_media_type((dgm_strs){0}, DGM_STR("x/y")));
    assert_true(dgm_is_json_type(DGM_STR("application/json;charset=utf-8")));
    assert_true(dgm_is_json_type((dgm_str){0}));
    assert_false(dgm_is_json_type(DGM_STR("application/jsonp")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(percent_codes),
        dgm_test(query_values),
        dgm_test(versions),
        dgm_test(media_types),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
