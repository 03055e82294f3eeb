/* test_mcp_parts.c - names of tools, headers of parameters, configurations: what needs no server. */
#include "mcp/mcp_int.h"
#include "support/check.h"

static void check_names(const char *server, const char *const *own, const char *const *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mcp_tool tools[8] = {0};
    size_t n = 0;
    for (; own[n]; n++)
        tools[n].own_name = dgm_str_from(own[n]);
    dgm_mcp_name_tools(a, dgm_str_from(server), tools, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(tools[i].name.n <= 64);
        check_str(tools[i].name, want[i]);
    }
}

static void names_have_the_characters_of_openai(void **state)
{
    (void)state;
    check_names("s", (const char *[]){"a", "b.c", "d/e f", "\xc3\xa4", NULL},
                (const char *[]){"s__a", "s__b_c", "s__d_e_f", "s____"});
}

static void names_stay_unique(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mcp_tool tools[3] = {
        {.own_name = DGM_STR("a.b")}, {.own_name = DGM_STR("a_b")}, {.own_name = DGM_STR("a/b")}};
    (void)state;
    dgm_mcp_name_tools(a, DGM_STR("s"), tools, 3);
    check_str(tools[1].name, "s__a_b"); /* the one that needed no change keeps its name */
    assert_false(dgm_str_eq(tools[0].name, tools[2].name));
    assert_false(dgm_str_eq(tools[0].name, tools[1].name));
    assert_true(dgm_str_starts(tools[0].name, DGM_STR("s__a_b_")));
}

static void long_names_are_cut_and_stay_unique(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char x[101], y[101];
    memset(x, 'n', 100);
    memset(y, 'n', 100);
    y[99] = 'm';
    x[100] = y[100] = '\0';
    dgm_mcp_tool tools[2] = {{.own_name = dgm_str_from(x)}, {.own_name = dgm_str_from(y)}};
    (void)state;
    dgm_mcp_name_tools(a, DGM_STR("server"), tools, 2);
    assert_int_equal(tools[0].name.n, 64);
    assert_int_equal(tools[1].name.n, 64);
    assert_false(dgm_str_eq(tools[0].name, tools[1].name));
}

static void names_of_servers(void **state)
{
    (void)state;
    assert_true(dgm_mcp_is_name(DGM_STR("files")));
    assert_true(dgm_mcp_is_name(DGM_STR("my-files_2")));
    assert_false(dgm_mcp_is_name(DGM_STR("a__b")));
    assert_false(dgm_mcp_is_name(DGM_STR("a_")));
    assert_false(dgm_mcp_is_name(DGM_STR("_a")));
    assert_false(dgm_mcp_is_name(DGM_STR("a b")));
    assert_false(dgm_mcp_is_name(DGM_STR("")));
    assert_false(dgm_mcp_is_name(DGM_STR("a23456789012345678901234567890123")));
}

static void values_of_headers(void **state)
{
    static const char *const rows[][2] = {
        {"us-west1", "us-west1"},
        {"Hello, \xe4\xb8\x96\xe7\x95\x8c", "=?base64?SGVsbG8sIOS4lueVjA==?="},
        {" padded ", "=?base64?IHBhZGRlZCA=?="},
        {"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
        {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
        {"", ""},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_str(dgm_mcp_header_value(a, dgm_str_from(rows[i][0])), rows[i][1]);
}

static dgm_code read_params(dgm_arena *a, const char *schema, struct mcp_tool *t)
{
    dgm_err err = {0};
    *t = (struct mcp_tool){0};
    return dgm_mcp_read_params(a, dgm_json_parse_trusted(a, dgm_str_from(schema)), t, &err);
}

static void annotations_of_parameters(void **state)
{
    static const char *const wrong[] = {
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\\r\\nb\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":1}}}",
        "{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}",
        "{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{\"type\":"
        "\"string\",\"x-mcp-header\":\"a\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
        "\"x-mcp-header\":\"A\"}}}}",
        "{\"oneOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}]}",
        "{\"x-mcp-header\":\"A\",\"type\":\"string\"}",
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct mcp_tool t;
    dgm_fetch_header *headers;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(read_params(a, wrong[i], &t), DGM_BAD_PARAMS);
    assert_int_equal(read_params(a,
                                 "{\"properties\":{\"o\":{\"type\":\"object\",\"properties\":{"
                                 "\"in\":{\"type\":\"boolean\",\"x-mcp-header\":\"In\"}}},"
                                 "\"default\":{\"type\":\"string\",\"x-mcp-header\":\"D\"}}}",
                                 &t),
                     DGM_OK);
    assert_int_equal(t.n_params, 2);
    yyjson_val *arguments =
        dgm_json_parse_trusted(a, DGM_STR("{\"o\":{\"in\":false},\"default\":\"\"}"));
    assert_int_equal(dgm_mcp_param_headers(a, &t, arguments, &headers), 2);
    check_str(headers[0].name, "Mcp-Param-In");
    check_str(headers[0].value, "false");
    check_str(headers[1].value, "");
    arguments = dgm_json_parse_trusted(a, DGM_STR("{\"o\":{\"in\":{}},\"default\":null}"));
    assert_int_equal(dgm_mcp_param_headers(a, &t, arguments, &headers), 0);
}

static void configurations_are_checked(void **state)
{
    static const char *const argv[] = {"x", NULL};
    static const dgm_fetch_header bad = {{"a b", 3}, {"c", 1}}, worse = {{"a", 1}, {"c\r\nd", 4}};
    const struct {
        dgm_mcp_config config;
        const char *at;
    } rows[] = {
        {{.name = DGM_STR("a__b"), .argv = argv}, "/name"},
        {{.name = DGM_STR("a")}, "/command"},
        {{.name = DGM_STR("a"), .argv = argv, .url = "http://x/"}, "/url"},
        {{.name = DGM_STR("a"), .url = "ftp://x/"}, "/url"},
        {{.name = DGM_STR("a"), .url = "http://x/", .headers = &bad, .n_headers = 1}, "/headers"},
        {{.name = DGM_STR("a"), .url = "http://x/", .headers = &worse, .n_headers = 1}, "/headers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_err err = {0};
        dgm_mcp *m;
        check_fails(dgm_mcp_open(&rows[i].config, &m, &err), DGM_BAD_PARAMS, err, rows[i].at);
    }
}

static void results_become_parts(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mcp_result r;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_mcp_read_result(
                 a, dgm_json_parse_trusted(a, DGM_STR("{\"structuredContent\":[1]}")), &r, &err),
             err);
    assert_int_equal(r.parts.n, 1); /* no text has it */
    assert_int_equal(r.parts.at[0].kind, DGM_PART_DATA);
    check_ok(dgm_mcp_read_result(a,
                                 dgm_json_parse_trusted(
                                     a, DGM_STR("{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"}"
                                                ",{\"type\":\"hologram\"},{\"type\":\"image\","
                                                "\"data\":\"!\"}],\"structuredContent\":[1]}")),
                                 &r, &err),
             err);
    assert_int_equal(r.parts.n, 3);
    assert_int_equal(r.parts.at[1].kind, DGM_PART_DATA); /* unknown, and broken: as they are */
    assert_int_equal(r.parts.at[2].kind, DGM_PART_DATA);
    assert_non_null(r.structured);
    assert_int_equal(dgm_mcp_read_result(a, dgm_json_parse_trusted(a, DGM_STR("[]")), &r, &err),
                     DGM_UNAVAILABLE);
}

DGM_TEST_MAIN(dgm_test(names_have_the_characters_of_openai), dgm_test(names_stay_unique),
              dgm_test(long_names_are_cut_and_stay_unique), dgm_test(names_of_servers),
              dgm_test(values_of_headers), dgm_test(annotations_of_parameters),
              dgm_test(configurations_are_checked), dgm_test(results_become_parts))
