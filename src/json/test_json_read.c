/* test_json_read.c - what is JSON, what is not, and where it is not. */
#include "base/limits.h"
#include "support/check.h"
#include "json/json.h"

static dgm_code read_text(dgm_arena *a, dgm_str text, yyjson_val **ret, dgm_err *err)
{
    return dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", ret, err);
}

/* Reads and writes; the text must come out as given (or as `want`). */
static void check_round(dgm_str text, dgm_str want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = NULL;
    dgm_err err = {0};
    check_ok(read_text(a, text, &v, &err), err);
    dgm_str got = dgm_json_text_in(a, v);
    check_same(got, want);
}

#define check_kept(lit) check_round(DGM_STR(lit), DGM_STR(lit))

/* ---- what is kept ----------------------------------------------------------------------------------- */

static void numbers_keep_their_text(void **state)
{
    (void)state;
    check_kept(
        "[1.0,-0,-0.0,0,1e400,-1E-400,1e+2,1180591620717411303424,0.10000000000000000000001]");
    check_kept("{\"n\":18446744073709551616}");
    check_kept("1e5");
}

static void text_keeps_its_characters(void **state)
{
    (void)state;
    check_kept("\"a\\u0000b\"");
    check_kept("{\"a\\u0000b\":1,\"a\\u0000c\":2}");
    check_kept("\"\xE2\x80\xA8\xE2\x80\xA9\""); /* U+2028, U+2029: literal */
    check_kept("\"\x7F\"");
    check_kept("[\"\xF0\x9F\x98\x8A\",\"72\xC2\xB0"
               "F\"]");
    check_round(DGM_STR("\"\\u2028\\ud83d\\ude0a\\/\\u0041\""),
                DGM_STR("\"\xE2\x80\xA8\xF0\x9F\x98\x8A/A\""));
    check_kept("\"\\b\\t\\n\\f\\r\\\"\\\\\\u001f\"");
}

static void duplicate_keys_pass_in_opaque_values(void **state)
{
    (void)state;
    check_kept("{\"a\":1,\"a\":2,\"b\":{\"c\":1,\"c\":1}}");
}

static void any_value_may_be_the_root(void **state)
{
    (void)state;
    check_kept("null");
    check_kept("true");
    check_kept("\"\"");
    check_kept("[]");
    check_round(DGM_STR(" \t\r\n{ } \n"), DGM_STR("{}"));
}

/* ---- what is refused, and where ------------------------------------------------------------------------ */

static const struct fault {
    const char *text;
    size_t line, column;
    const char *at;
} faults[] = {
    {" ", 1, 1, ""},
    {"{", 1, 2, ""},
    {"[", 1, 2, "/0"},
    {"[1,", 1, 4, "/1"},
    {"[1,]", 1, 3, "/0"},
    {"{\"a\":1,}", 1, 7, "/a"},
    {"{\"a\" 1}", 1, 6, "/a"},
    {"{\"a\":}", 1, 6, "/a"},
    {"{\"a\":{\"b\":[1,2,tru]}}", 1, 16, "/a/b/2"},
    {"{a:1}", 1, 2, ""},
    {"{\"a\":1 \"b\":2}", 1, 8, "/a"},
    {"{\"a\":[1,2],\"b\"x", 1, 15, "/b"},
    {"{\"a\":1}x", 1, 8, ""},
    {"{\"a\":1} {\"b\":2}", 1, 9, ""},
    {"'a'", 1, 1, ""},
    {"// no\n1", 1, 1, ""},
    {"\xEF\xBB\xBF{}", 1, 1, ""}, /* a byte order mark */
    /* lines count from 1, columns in bytes */
    {"{\"a\":1,\n  \"b\": [1,\n 2 3]}", 3, 4, "/b/1"},
    {"[1,\r\n2,\r\nx]", 3, 1, "/2"},
    {"[\"\xC3\xA4\", x]", 1, 8, "/1"},
    /* brackets, commas, colons and quotes in strings are no structure */
    {"{\"a\":{\"b/c\":\"q\\\"{[,:\", \"d~e\":[{}, {\"f\":nope}]}}", 1, 40, "/a/d~0e/1/f"},
    {"[\"]\",\"}\",\"\\\\\",\"\\\"\",x]", 1, 20, "/4"},
    /* keys are shown as they read */
    {"{\"a\\\"b\":[nope]}", 1, 10, "/a\"b/0"},
    {"{\"\\u0061\\/\\u00e4\\ud83d\\ude0a\":[x]}", 1, 32, "/a~1\xC3\xA4\xF0\x9F\x98\x8A/0"},
    {"{\"\\n\\u0000\":{\"\":[x]}}", 1, 18, "/?\?//0"},
    /* numbers */
    {"[01,2]", 1, 2, "/0"},
    {"[-,2]", 1, 3, "/0"},
    {"[+1]", 1, 2, "/0"},
    {"[.5]", 1, 2, "/0"},
    {"[1,1.,2]", 1, 6, "/1"},
    {"[1e,22]", 1, 4, "/0"},
    {"[1e-,22]", 1, 5, "/0"},
    {"[1,-,2]", 1, 5, "/1"},
    {"[NaN,1]", 1, 2, "/0"},
    {"[-Infinity]", 1, 3, "/0"},
    {"[0x10]", 1, 3, "/0"},
    /* strings */
    {"{\"a\":\"x\ny\"}", 1, 8, "/a"}, /* a control character as it is */
    {"{\"a\":\"\\x\"}", 1, 8, "/a"},
    {"[\"\\u12g4\"]", 1, 3, "/0"},
    {"{\"a\":\"no end", 1, 13, "/a"},
    {"{\"k\":[\"abc\\ud800x\"]}", 1, 17, "/k/0"},       /* a high surrogate alone */
    {"{\"k\":[\"abc\\ude00x\"]}", 1, 11, "/k/0"},       /* a low one */
    {"{\"k\":[\"abc\\ud800\\u0041\"]}", 1, 17, "/k/0"}, /* a high one before something else */
    {"{\"k\":[\"\xFF\"]}", 1, 8, "/k/0"},               /* not UTF-8 */
    {"{\"k\":[\"ab\xC3(\"]}", 1, 10, "/k/0"},
    {"{\"k\":[\"\xED\xA0\x80\"]}", 1, 8, "/k/0"}, /* a surrogate in UTF-8 */
    {"{\"k\":[\"\xC0\x80\"]}", 1, 8, "/k/0"},     /* an overlong NUL */
    {"{\"k\":{\"\xFF\":1}}", 1, 8, "/k"},
};

static void faults_say_where_they_are(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        yyjson_val *v = NULL;
        dgm_err err = {0};
        const struct fault *f = &faults[i];
        dgm_code rc = read_text(a, dgm_str_from(f->text), &v, &err);
        if (rc != DGM_PARSE || err.code != rc || err.line != f->line || err.column != f->column ||
            strcmp(err.at, f->at) != 0)
            bad += 1, print_error("%s: code %d, %zu:%zu at \"%s\" (%s); wanted %zu:%zu at \"%s\"\n",
                                  f->text, rc, err.line, err.column, err.at, err.msg, f->line,
                                  f->column, f->at);
        assert_null(v);
        assert_true(strncmp(err.msg, "not JSON: ", 10) == 0);
        assert_int_equal(dgm_utf8_check(dgm_str_from(err.at)), strlen(err.at));
    }
    assert_int_equal(bad, 0);
}

static void nothing_is_not_json(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = NULL;
    dgm_err err = {0};
    (void)state;
    check_fails(read_text(a, DGM_STR(""), &v, &err), DGM_PARSE, err, "");
    check_fails(read_text(a, DGM_STR("\0"), &v, &err), DGM_PARSE, err, "");
    check_fails(read_text(a, DGM_STR("[1]\0"), &v, &err), DGM_PARSE, err, "");
    assert_int_equal(dgm_json_read(a, DGM_STR("["), 10, "x", &v, NULL), DGM_PARSE);
}

static void every_cut_of_a_text_is_located_safely(void **state)
{
    /* The walk to the fault sees arbitrary bytes; ASan watches. Cuts of JSON are never JSON. */
    static const char text[] =
        "{\"a\\\"\\u00e4\":[{\"b\":[1,2,{\"c\":\"\\\\\"}]},\"\\ud83d\\ude0a\"],\"d\":null}";
    (void)state;
    for (size_t n = 1; n < sizeof text - 1; n++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        yyjson_val *v;
        dgm_err err = {0};
        char *cut = malloc(n);
        memcpy(cut, text, n);
        assert_int_equal(read_text(a, (dgm_str){cut, n}, &v, &err), DGM_PARSE);
        for (size_t pos = 0; pos <= n + 1; pos++)
            dgm_json_locate((dgm_str){cut, n}, pos, &err);
        for (size_t i = 0; i < n; i++) {
            char was = cut[i];
            cut[i] = "\"\\{}[]:,\x00\xFF"[(n + i) % 10];
            dgm_json_locate((dgm_str){cut, n}, n, &err);
            cut[i] = was;
        }
        free(cut);
    }
}

/* ---- limits --------------------------------------------------------------------------------------------- */

/* n brackets, the middle empty or holding `inner`. */
static dgm_str nested(dgm_arena *a, size_t n, const char *open, const char *close,
                      const char *inner)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        dgm_buf_add_str(&b, dgm_str_from(open));
    dgm_buf_add_str(&b, dgm_str_from(inner));
    for (size_t i = 0; i < n; i++)
        dgm_buf_add_str(&b, dgm_str_from(close));
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void json_depth_is_128(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    dgm_err err = {0};
    (void)state;
    check_ok(read_text(a, nested(a, 128, "[", "]", ""), &v, &err), err);
    check_ok(read_text(a, nested(a, 128, "[", "]", "1"), &v, &err), err);
    check_ok(read_text(a, nested(a, 128, "{\"a\":", "}", "1"), &v, &err), err);
    assert_int_equal(read_text(a, nested(a, 129, "[", "]", ""), &v, &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "json_depth"));
    assert_int_equal(err.column, 129);
    assert_int_equal(strncmp(err.at, "/0/0/0/", 7), 0);
    assert_int_equal(read_text(a, nested(a, 129, "{\"a\":", "}", "1"), &v, &err), DGM_TOO_LARGE);
    assert_int_equal(strncmp(err.at, "/a/a/a/", 7), 0);
    assert_int_equal(read_text(a, nested(a, 10000, "[", "]", ""), &v, &err), DGM_TOO_LARGE);
    assert_int_equal(read_text(a, nested(a, 100000, "[", "", ""), &v, &err), DGM_PARSE);
}

static void depth_is_found_in_the_last_of_many(void **state)
{
    /* Siblings close what they open: only the deep one counts, wherever it is. */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    dgm_err err = {0};
    (void)state;
    dgm_str fits = nested(a, 127, "[", "]", ""), deep = nested(a, 128, "[", "]", "");
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"x\":\"[[[\\\"\",\"n\":[");
    for (int i = 0; i < 50; i++)
        dgm_buf_printf(&b, "{\"k\":[%d]},", i);
    dgm_buf_add_lit(&b, "0],\"d\":");
    size_t before = b.n;
    dgm_buf_add_str(&b, fits);
    dgm_buf_add_lit(&b, "}");
    check_ok(read_text(a, dgm_buf_str(&b), &v, &err), err);
    b.n = before;
    dgm_buf_add_str(&b, deep);
    dgm_buf_add_lit(&b, "}");
    assert_int_equal(read_text(a, dgm_buf_str(&b), &v, &err), DGM_TOO_LARGE);
    assert_int_equal(strncmp(err.at, "/d/0/0/", 7), 0);
    dgm_buf_done(&b);
}

static void values_are_counted_without_reading_them(void **state)
{
    static const struct {
        const char *text;
        size_t n; /* exact unless a container is empty */
    } rows[] = {{"1", 1},
                {"[1,2]", 3},
                {"{\"a\":1,\"b\":[2,{\"c\":null}]}", 9},
                {"\"a,b:c[\\\"{,,\"", 1},
                {"[\"\\\\\",1]", 3},
                {"{\"arguments\":\"[1,2,3]\"}", 3 + 3}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(dgm_json_count_values(dgm_str_from(rows[i].text), 1000), rows[i].n);
    assert_int_equal(dgm_json_count_values(DGM_STR("[1,2,3,4,5,6"), 3), 4); /* and no further */
    assert_int_equal(dgm_json_count_values(DGM_STR("\"\\"), 3), 1);
    assert_int_equal(dgm_json_count_values(DGM_STR(""), 3), 1);
}

static void object_bytes_is_exact(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    dgm_err err = {0};
    (void)state;
    size_t n = DGM_MAX_OBJECT_BYTES;
    char *text = malloc(n + 1);
    memset(text, ' ', n + 1);
    text[0] = '[';
    text[1] = ']';
    check_ok(read_text(a, (dgm_str){text, n}, &v, &err), err);
    check_fails(read_text(a, (dgm_str){text, n + 1}, &v, &err), DGM_TOO_LARGE, err, "");
    assert_non_null(strstr(err.msg, "object_bytes"));
    assert_non_null(strstr(err.msg, "33554432"));
    free(text);
}

DGM_TEST_MAIN(dgm_test(numbers_keep_their_text), dgm_test(text_keeps_its_characters),
              dgm_test(duplicate_keys_pass_in_opaque_values), dgm_test(any_value_may_be_the_root),
              dgm_test(faults_say_where_they_are), dgm_test(nothing_is_not_json),
              dgm_test(every_cut_of_a_text_is_located_safely), dgm_test(json_depth_is_128),
              dgm_test(depth_is_found_in_the_last_of_many),
              dgm_test(values_are_counted_without_reading_them), dgm_test(object_bytes_is_exact))
