/* test_schema_check.c - how mistakes read, what older drafts mean, numbers, URIs and patterns. The official suite is in tests/schema. */
#include "schema/schema_int.h"
#include "support/check.h"

static yyjson_val *parsed(dgm_arena *a, const char *text)
{
    return dgm_json_parse_trusted(a, dgm_str_from(text));
}

static dgm_schema *compiled(dgm_arena *a, const char *text)
{
    dgm_schema *s = NULL;
    dgm_err err = {0};
    if (dgm_schema_compile(parsed(a, text), &s, &err))
        fail_msg("%s: %s", err.at, err.msg);
    return s;
}

/* The mistakes of a value as text; empty if it is valid. */
static void check_mistakes(const char *schema, const char *value, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_schema_free) dgm_schema *s = compiled(a, schema);
    dgm_schema_mistakes mistakes;
    dgm_err err = {0};
    dgm_buf out;
    dgm_buf_init(&out, 64 << 10);
    dgm_code rc = dgm_schema_check(s, parsed(a, value), &mistakes, &err);
    dgm_schema_explain(&mistakes, &out);
    check_str(dgm_buf_str(&out), want);
    assert_int_equal(rc, want[0] ? DGM_BAD_PARAMS : DGM_OK);
    if (rc)
        assert_string_equal(err.msg, mistakes.items[0].msg);
    dgm_buf_done(&out);
}

#define WEATHER                                                                                    \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"minLength\":1},"         \
    "\"unit\":{\"enum\":[\"C\",\"F\"]},\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"  \
    "7}},"                                                                                         \
    "\"required\":[\"city\"],\"additionalProperties\":false}"

static void mistakes_read_like_sentences(void **state)
{
    (void)state;
    check_mistakes(WEATHER, "{\"city\":\"Rome\",\"unit\":\"C\",\"days\":7.0}", "");
    check_mistakes(WEATHER, "[]", "expected an object, got an array");
    check_mistakes(WEATHER, "{}", "missing member \"city\"");
    check_mistakes(WEATHER, "{\"city\":1,\"unit\":\"K\",\"days\":\"two\"}",
                   "/city: expected a string, got a number\n"
                   "/unit: expected \"C\" or \"F\", got \"K\"\n"
                   "/days: expected an integer, got a string");
    check_mistakes(WEATHER, "{\"city\":\"\",\"days\":1.5}",
                   "/city: expected at least 1 characters, got 0\n"
                   "/days: expected an integer, got the number 1.5");
    check_mistakes(WEATHER, "{\"city\":\"Rome\",\"days\":8}",
                   "/days: expected a number of at most 7, got 8");
    check_mistakes(WEATHER, "{\"citty\":\"Rome\"}",
                   "missing member \"city\"\n"
                   "unknown member \"citty\". Allowed members: city, unit or days");
}

static void alternatives_report_why_each_fails(void **state)
{
    (void)state;
    check_mistakes(
        "{\"anyOf\":[{\"type\":\"string\"},{\"required\":[\"id\"],\"type\":\"object\"}]}", "{}",
        "the value does not fit any of 2 alternatives: (1) expected a string, got an object or (2) "
        "missing "
        "member \"id\"");
    check_mistakes("{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "3",
                   "the value fits alternatives 1 and 2, but it must fit exactly one");
    check_mistakes(
        "{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"null\"}}]}}}",
        "{\"a\":[1]}", "/a/0: expected null, got a number");
    check_mistakes("{\"not\":{\"const\":1}}", "1.0",
                   "the value 1.0 is excluded by the schema (not)");
}

static void lists_and_members_report_their_place(void **state)
{
    (void)state;
    check_mistakes("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":{\"type\":\"boolean\"}}",
                   "[1,true,\"x\"]",
                   "/0: expected a string, got a number\n/2: expected a boolean, got a string");
    check_mistakes("{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},3,{\"b\":2.0,\"a\":1}]",
                   "the items 0 and 2 are equal; every item must be different");
    check_mistakes("{\"contains\":{\"const\":1},\"minContains\":2}", "[1,2]",
                   "expected at least 2 items that fit the schema of `contains`, got 1");
    check_mistakes("{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
                   "missing member \"b\", which \"a\" needs");
    check_mistakes("{\"propertyNames\":{\"pattern\":\"^x\"}}", "{\"xa\":1,\"y\":2}",
                   "/y: expected text that matches the pattern \"^x\", got \"y\"");
    check_mistakes("{\"allOf\":[{\"properties\":{\"a\":true}}],\"unevaluatedProperties\":false}",
                   "{\"a\":1,\"b\":2}", "unknown member \"b\"");
}

static void long_texts_are_cut(void **state)
{
    char x[200], value[210], want[400];
    (void)state;
    memset(x, 'x', sizeof x);
    snprintf(value, sizeof value, "\"%.199s\"", x);
    snprintf(want, sizeof want, "expected null or 1, got \"%.120s\"...", x);
    check_mistakes("{\"enum\":[null,1]}", value, want);
}

static void at_most_eight_mistakes_are_reported(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_schema_free) dgm_schema *s = compiled(a, "{\"items\":{\"type\":\"string\"}}");
    dgm_schema_mistakes mistakes;
    (void)state;
    assert_int_equal(dgm_schema_check(s, parsed(a, "[1,2,3,4,5,6,7,8,9,10]"), &mistakes, NULL),
                     DGM_BAD_PARAMS);
    assert_int_equal(mistakes.n, DGM_SCHEMA_MISTAKES);
    assert_string_equal(mistakes.items[7].at, "/7");
}

static void older_drafts_have_their_meaning(void **state)
{
    (void)state;
    check_mistakes(
        "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$ref\":\"#/definitions/a\","
        "\"definitions\":{\"a\":{\"items\":[{\"type\":\"string\"}],\"additionalItems\":false}}}",
        "[1,2]", "/0: expected a string, got a number\n/1: no value is allowed here");
    check_mistakes("{\"$schema\":\"http://json-schema.org/draft-07/"
                   "schema#\",\"dependencies\":{\"a\":[\"b\"]}}",
                   "{\"a\":1}", "missing member \"b\", which \"a\" needs");
}

static void invalid_schemas_are_refused_with_their_place(void **state)
{
    static const char *const rows[][3] = {
        {"1", "", "expected a schema (an object or a boolean), got a number"},
        {"{\"properties\":{\"a\":[]}}", "/properties/a",
         "expected a schema (an object or a boolean), got an array"},
        {"{\"type\":\"text\"}", "/type",
         "unknown type. Allowed values: null, boolean, integer, number, string, array, object"},
        {"{\"type\":[\"null\",1]}", "/type/1",
         "unknown type. Allowed values: null, boolean, integer, number, string, array, object"},
        {"{\"minLength\":-1}", "/minLength", "expected an integer of at least 0, got -1"},
        {"{\"minLength\":1.5}", "/minLength", "expected an integer of at least 0, got 1.5"},
        {"{\"contains\":true,\"maxContains\":\"1\"}", "/maxContains",
         "expected a number, got a string"},
        {"{\"multipleOf\":0}", "/multipleOf", "expected a number above 0, got 0"},
        {"{\"required\":[\"a\",1]}", "/required/1", "expected the name of a member, got a number"},
        {"{\"allOf\":{}}", "/allOf", "expected an array of schemas, got an object"},
        {"{\"items\":[{}]}", "/items", "expected a schema (an object or a boolean), got an array"},
        {"{\"pattern\":\"(\"}", "/pattern",
         "invalid regular expression \"(\": missing closing parenthesis"},
        {"{\"pattern\":\"\\\\C\"}", "/pattern",
         "invalid regular expression \"\\C\": using \\C is disabled by the application"},
        {"{\"$ref\":\"#/$defs/a\"}", "/$ref", "the reference \"#/$defs/a\" leads to no schema"},
        {"{\"$ref\":\"https://example.com/a\"}", "/$ref",
         "the reference \"https://example.com/a\" leads out of the schema: remote schemas are not "
         "loaded. Copy it "
         "into $defs"},
        {"{\"$defs\":{\"a\":{\"$id\":\"x\"},\"b\":{\"$id\":\"x\"}}}", "/$defs/b/$id",
         "the $id \"x\" is used twice"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", "/$defs/b/$anchor",
         "the anchor \"x\" is used twice"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_schema *s = NULL;
        dgm_err err = {0};
        assert_int_equal(dgm_schema_compile(parsed(a, rows[i][0]), &s, &err), DGM_BAD_PARAMS);
        assert_null(s);
        assert_string_equal(err.at, rows[i][1]);
        assert_string_equal(err.msg, rows[i][2]);
    }
}

static void the_schema_is_copied(void **state)
{
    dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_schema_free) dgm_schema *s = compiled(a, WEATHER);
    (void)state;
    dgm_arena_free(a);
    dgm_auto(dgm_arena_free) dgm_arena *later = dgm_arena_new();
    assert_int_equal(dgm_schema_check(s, parsed(later, "{\"city\":\"Rome\"}"), NULL, NULL), DGM_OK);
}

static void the_meta_schema_is_there(void **state)
{
    (void)state;
#define META "{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}"
    check_mistakes(META, WEATHER, "");
    check_mistakes(META, "{\"properties\":{\"a\":{\"minLength\":-1}}}",
                   "/properties/a/minLength: expected a number of at least 0, got -1");
    check_mistakes(META, "{\"$anchor\":\"1x\"}",
                   "/$anchor: expected text that matches the pattern "
                   "\"^[A-Za-z_][-A-Za-z0-9._]*$\", got \"1x\"");
}

static void numbers_are_exact(void **state)
{
    static const struct {
        const char *a, *b;
        int order;
        bool is_multiple;
    } rows[] = {
        {"1", "1.0", 0, true},
        {"100", "1e2", 0, true},
        {"0.1e1", "1", 0, true},
        {"-0", "0.0e5", 0, true},
        {"-2", "1", -1, true},
        {"12345678901234567890123", "12345678901234567890122", 1, false},
        {"0.3", "0.1", 1, true},
        {"0.35", "0.1", 1, false},
        {"1e400", "7", 1, false},
        {"7e400", "7", 1, true},
        {"1e400", "0.0000000000000000000000000000000016", 1, true},
        {"1e-7", "1e-6", -1, false},
        {"30000000000000000000000000000000000000000", "10000000000000000000000000000000000000001",
         1, false},
        {"30000000000000000000000000000000000000003", "10000000000000000000000000000000000000001",
         1, true},
        {"1e999999999999999999999", "1e999999999999999999998", 0, true}, /* as large as we count */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_schema_number x = dgm_schema_number_read(dgm_str_from(rows[i].a));
        dgm_schema_number y = dgm_schema_number_read(dgm_str_from(rows[i].b));
        assert_int_equal(dgm_schema_number_compare(&x, &y), rows[i].order);
        assert_int_equal(dgm_schema_number_compare(&y, &x), -rows[i].order);
        if (y.n)
            assert_int_equal(dgm_schema_number_is_multiple(&x, &y), rows[i].is_multiple);
        if (!rows[i].order)
            assert_true(dgm_schema_number_hash(&x, 1) == dgm_schema_number_hash(&y, 1));
    }
}

static void references_resolve_as_the_rfc_says(void **state)
{
#define BASE "http://a/b/c/d;p?q" /* examples of RFC 3986, section 5.4 */
    static const char *const rows[][3] = {
        {BASE, "g:h", "g:h"},
        {BASE, "g", "http://a/b/c/g"},
        {BASE, "./g", "http://a/b/c/g"},
        {BASE, "g/", "http://a/b/c/g/"},
        {BASE, "/g", "http://a/g"},
        {BASE, "//g", "http://g"},
        {BASE, "?y", "http://a/b/c/d;p?y"},
        {BASE, "g?y", "http://a/b/c/g?y"},
        {BASE, "#s", "http://a/b/c/d;p?q"},
        {BASE, "", "http://a/b/c/d;p?q"},
        {BASE, ".", "http://a/b/c/"},
        {BASE, "..", "http://a/b/"},
        {BASE, "../g", "http://a/b/g"},
        {BASE, "../../../g", "http://a/g"},
        {BASE, "g/../h", "http://a/b/c/h"},
        {"http://a", "g", "http://a/g"},
        {"urn:x:y", "#f", "urn:x:y"},
        {"", "g", "g"},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_str(dgm_schema_uri_resolve(a, dgm_str_from(rows[i][0]), dgm_str_from(rows[i][1])),
                  rows[i][2]);
    check_str(dgm_schema_uri_fragment(a, DGM_STR("a#/b%25%7Ec%")), "/b%~c%");
    assert_null(dgm_schema_uri_fragment(a, DGM_STR("a")).p);
}

static void patterns_mean_what_ecma_says(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"^a$", "a\n", false},
        {"^.$", "\xE2\x80\xA8", false},
        {"^.$", "\xF0\x9F\x98\x80", true},
        {"^\\s$", "\xEF\xBB\xBF", true},
        {"^[\\S]$", "\xC2\xA0", false},
        {"^[^\\s]$", "x", true},
        {"^\\S$", "\xC2\xA0", false},
        {"^\\d$", "\xD9\xA1", false},
        {"^\\w$", "\xC3\xA9", false},
        {"^[[:alpha:]]$", "b]", false},
        {"^[[:alpha:]]$", "a]", true},
        {"^\\u00e9$", "\xC3\xA9", true},
        {"^\\u{1F600}$", "\xF0\x9F\x98\x80", true},
        {"^\\uD83D\\uDE00$", "\xF0\x9F\x98\x80", true},
        {"^\\p{Script=Greek}$", "\xCE\xB1", true},
        {"^\\p{gc=Letter}$", "\xCE\xB1", true},
        {"^[\\p{Lu}.]+$", "A.B", true},
        {"[]", "x", false},
        {"^[^]$", "x", true},
        {"(?=a)(?<n>a)\\k<n>", "aa", true},
        {"b", "abc", true},
        {"", "x", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_schema_run run = {.arena = a, .steps = 10000};
        dgm_schema_pattern *p;
        dgm_err err = {0};
        if (dgm_schema_pattern_compile(a, dgm_str_from(rows[i].pattern), NULL, &p, &err))
            fail_msg("%s", err.msg);
        if (dgm_schema_pattern_matches(&run, p, dgm_str_from(rows[i].text)) != rows[i].matches)
            fail_msg("row %zu: %s", i, rows[i].pattern);
        assert_int_equal(run.stop, DGM_OK);
    }
}

DGM_TEST_MAIN(dgm_test(mistakes_read_like_sentences), dgm_test(alternatives_report_why_each_fails),
              dgm_test(lists_and_members_report_their_place), dgm_test(long_texts_are_cut),
              dgm_test(at_most_eight_mistakes_are_reported),
              dgm_test(older_drafts_have_their_meaning),
              dgm_test(invalid_schemas_are_refused_with_their_place),
              dgm_test(the_schema_is_copied), dgm_test(the_meta_schema_is_there),
              dgm_test(numbers_are_exact), dgm_test(references_resolve_as_the_rfc_says),
              dgm_test(patterns_mean_what_ecma_says))
