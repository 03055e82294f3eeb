/* The JSON-RPC envelope: what is one, what is wrong with it, and how it is written. */
#include "base/limits.h"
#include "support/check.h"
#include "wire/jsonrpc/jsonrpc.h"

static dgm_arena *arena;

static yyjson_val *json(const char *text)
{
    yyjson_val *v = NULL;
    dgm_err err = {0};
    check_ok(
        dgm_json_read(arena, dgm_str_from(text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &err),
        err);
    return v;
}

static dgm_rpc read_ok(const char *text, bool lenient)
{
    dgm_rpc rpc = {0};
    dgm_err err = {0};
    check_ok(dgm_rpc_read(json(text), lenient, NULL, &rpc, &err), err);
    return rpc;
}

static void check_json(const yyjson_val *v, const char *want)
{
    dgm_buf b;
    dgm_buf_init(&b, 10000);
    if (v)
        dgm_json_put(&b, v);
    check_str(b, want);
    dgm_buf_done(&b);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void a_request_has_id_method_params(void **state)
{
    (void)state;
    dgm_rpc rpc = read_ok(
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"SendMessage\",\"params\":{\"a\":[1.0]}}",
        false);
    assert_int_equal(rpc.kind, DGM_RPC_REQUEST);
    check_str(rpc.method, "SendMessage");
    check_json(rpc.id, "7");
    check_json(rpc.params, "{\"a\":[1.0]}");
    assert_null(rpc.result);
    assert_null(rpc.error);
}

static void a_request_may_have_no_id_and_no_params(void **state)
{
    (void)state;
    dgm_rpc rpc = read_ok("{\"method\":\"m\",\"jsonrpc\":\"2.0\"}", false);
    assert_null(rpc.id);
    assert_null(rpc.params);
}

static void a_response_has_result_or_error(void **state)
{
    (void)state;
    dgm_rpc rpc = read_ok("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"task\":{}}}", false);
    assert_int_equal(rpc.kind, DGM_RPC_RESPONSE);
    check_json(rpc.id, "\"x\"");
    check_json(rpc.result, "{\"task\":{}}");
    assert_null(rpc.error);
    rpc = read_ok("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700}}", false);
    check_json(rpc.id, "null");
    check_json(rpc.error, "{\"code\":-32700}");
    assert_null(rpc.result);
    rpc = read_ok("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", false); /* of a push delete */
    check_json(rpc.result, "null");
}

static void ids_keep_type_and_digits(void **state)
{
    static const char *const ids[] = {"1",    "\"1\"", "1180591620717411303424",
                                      "-0",   "0",     "\"\\u0000\"",
                                      "null", "\"\"",  "-9223372036854775809"};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        dgm_str text =
            dgm_arena_printf(arena, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"m\"}", ids[i]);
        dgm_rpc rpc = read_ok(text.p, false);
        check_json(rpc.id, ids[i]);
        assert_ptr_equal(dgm_rpc_id_of(json(text.p)) != NULL, true);
    }
}

/* text, where the error is, a word of its message */
#define R "{\"jsonrpc\":\"2.0\","
static const struct fault {
    const char *name, *text, *at, *says;
} faults[] = {
    {"an array is a batch", "[]", "", "batches are not supported"},
    {"a filled array is a batch", "[" R "\"id\":1,\"method\":\"m\"}]", "", "batches"},
    {"a string is no envelope", "\"x\"", "", "a string"},
    {"a number is no envelope", "1", "", "a number"},
    {"jsonrpc is missing", "{\"id\":1,\"method\":\"m\"}", "/jsonrpc", "missing"},
    {"jsonrpc is 1.0", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", "/jsonrpc", "2.0"},
    {"jsonrpc is a number", "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", "/jsonrpc", "2.0"},
    {"jsonrpc is null", "{\"jsonrpc\":null,\"id\":1,\"method\":\"m\"}", "/jsonrpc", "2.0"},
    {"id is an object", R "\"id\":{},\"method\":\"m\"}", "/id", "an object"},
    {"id is an array", R "\"id\":[1],\"method\":\"m\"}", "/id", "an array"},
    {"id is a boolean", R "\"id\":true,\"method\":\"m\"}", "/id", "a boolean"},
    {"id is a fraction", R "\"id\":1.5,\"method\":\"m\"}", "/id", "a fraction"},
    {"id is 1.0", R "\"id\":1.0,\"method\":\"m\"}", "/id", "a fraction"},
    {"id is 1e3", R "\"id\":1e3,\"method\":\"m\"}", "/id", "a fraction"},
    {"id is 1E3", R "\"id\":1E3,\"method\":\"m\"}", "/id", "a fraction"},
    {"id of a response is a boolean", R "\"id\":false,\"result\":{}}", "/id", "a boolean"},
    {"method is missing", R "\"id\":1,\"params\":{}}", "/method", "missing"},
    {"method is empty", R "\"id\":1,\"method\":\"\"}", "/method", "empty"},
    {"method is a number", R "\"id\":1,\"method\":7}", "/method", "a number"},
    {"method is null", R "\"id\":1,\"method\":null}", "/method", "null"},
    {"method and result", R "\"id\":1,\"method\":\"m\",\"result\":1}", "/method", "neither"},
    {"method and error", R "\"id\":1,\"method\":\"m\",\"error\":{}}", "/method", "neither"},
    {"result and error", R "\"id\":1,\"result\":{},\"error\":{}}", "/error", "not both"},
    {"result and null error", R "\"id\":1,\"result\":{},\"error\":null}", "/error", "not both"},
    {"error is a string", R "\"id\":1,\"error\":\"x\"}", "/error", "a string"},
    {"error is null", R "\"id\":1,\"error\":null}", "/error", "null"},
    {"response without id", R "\"result\":{}}", "/id", "needs the id"},
    {"two ids", R "\"id\":1,\"method\":\"m\",\"id\":2}", "/id", "twice"},
    {"two methods", R "\"id\":1,\"method\":\"m\",\"method\":\"m\"}", "/method", "twice"},
    {"nothing at all", "{}", "/jsonrpc", "missing"},
};

static void a_fault_is_pointed_at(void **state)
{
    const struct fault *f = *state;
    dgm_rpc rpc = {.kind = DGM_RPC_RESPONSE, .method = DGM_STR("untouched")};
    dgm_err err = {0};
    check_fails(dgm_rpc_read(json(f->text), false, NULL, &rpc, &err), DGM_BAD_REQUEST, err, f->at);
    assert_non_null(strstr(err.msg, f->says));
    check_str(rpc.method, "untouched");
    char at[100];
    snprintf(at, sizeof at, "/3%s", f->at); /* and relative to the position of the envelope */
    check_fails(dgm_rpc_read(json(f->text), false, DGM_AT_I(NULL, 3), &rpc, &err), DGM_BAD_REQUEST,
                err, at);
    assert_int_equal(dgm_rpc_read(json(f->text), false, NULL, &rpc, NULL), DGM_BAD_REQUEST);
}

static void what_we_only_convert_may_be_sloppy(void **state)
{
    dgm_rpc rpc;
    dgm_err err = {0};
    (void)state;
    rpc = read_ok("{\"id\":1,\"method\":\"m\"}", true);
    check_str(rpc.method, "m");
    rpc = read_ok("{\"jsonrpc\":\"2.0\",\"result\":1}", true);
    assert_null(rpc.id);
    rpc = read_ok("{\"id\":1,\"result\":{},\"error\":null}", true);
    check_json(rpc.result, "{}");
    assert_null(rpc.error);
    rpc = read_ok("{\"id\":1,\"result\":null,\"error\":{}}", true);
    check_json(rpc.error, "{}");
    assert_null(rpc.result);
    check_fails(dgm_rpc_read(json("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}"), true, NULL,
                             &rpc, &err),
                DGM_BAD_REQUEST, err, "/jsonrpc");
    check_fails(dgm_rpc_read(json("{\"id\":1,\"result\":1,\"error\":{}}"), true, NULL, &rpc, &err),
                DGM_BAD_REQUEST, err, "/error");
}

static void members_it_does_not_know_are_passed_over(void **state)
{
    (void)state;
    dgm_rpc rpc = read_ok("{\"x\":1,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"x\":2,\"\":3}", false);
    check_str(rpc.method, "m");
}

/* ---- params ---------------------------------------------------------------------------------- */

static void params_are_an_object(void **state)
{
    static const struct {
        const char *params, *at, *says;
    } rows[] = {
        {"", "/params", "missing"},
        {",\"params\":null", "/params", "null"},
        {",\"params\":[]", "/params", "an array"},
        {",\"params\":\"x\"", "/params", "a string"},
        {",\"params\":1", "/params", "a number"},
        {",\"params\":{\"a\":1,\"\":2}", "/params/", "name"},
    };
    dgm_err err = {0};
    yyjson_val *params;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_str text = dgm_arena_printf(arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"%s}",
                                        rows[i].params);
        dgm_rpc rpc = read_ok(text.p, false);
        check_fails(dgm_rpc_params(&rpc, false, NULL, &params, &err), DGM_BAD_PARAMS, err,
                    rows[i].at);
        assert_non_null(strstr(err.msg, rows[i].says));
        if (i >= 2)
            check_fails(dgm_rpc_params(&rpc, true, NULL, &params, &err), DGM_BAD_PARAMS, err,
                        rows[i].at);
    }
    dgm_rpc rpc = read_ok(R "\"id\":1,\"method\":\"m\",\"params\":{}}", false);
    check_ok(dgm_rpc_params(&rpc, false, NULL, &params, &err), err);
    check_json(params, "{}");
}

static void params_may_be_optional(void **state)
{
    yyjson_val *params = (yyjson_val *)&params;
    dgm_err err = {0};
    dgm_rpc rpc = read_ok(R "\"method\":\"m\"}", false);
    (void)state;
    check_ok(dgm_rpc_params(&rpc, true, NULL, &params, &err), err);
    assert_null(params);
    rpc = read_ok(R "\"method\":\"m\",\"params\":null}", false);
    params = (yyjson_val *)&params;
    check_ok(dgm_rpc_params(&rpc, true, NULL, &params, &err), err);
    assert_null(params);
}

/* ---- recognising ----------------------------------------------------------------------------- */

static void an_envelope_is_detected(void **state)
{
    static const char *const yes[] = {
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":1,\"x\":2}",
        "{\"method\":\"m\",\"params\":{}}",
        "{\"method\":\"m\",\"id\":1}",
        "{\"id\":1,\"result\":null}",
        "{\"id\":null,\"error\":{}}",
    };
    static const char *const no[] = {
        "{}",
        "[]",
        "[{\"jsonrpc\":\"2.0\"}]",
        "1",
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{}}",
        "{\"error\":{\"code\":404}}",
        "{\"method\":\"m\"}",
        "{\"id\":1,\"result\":{},\"name\":\"search\"}",
        "{\"id\":1,\"params\":{}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!dgm_rpc_is(json(yes[i])))
            fail_msg("not recognised: %s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (dgm_rpc_is(json(no[i])))
            fail_msg("taken for an envelope: %s", no[i]);
    assert_false(dgm_rpc_is(NULL));
}

static void a_broken_request_still_has_its_id(void **state)
{
    (void)state;
    check_json(dgm_rpc_id_of(json("{\"jsonrpc\":\"1.0\",\"id\":\"a\"}")), "\"a\"");
    assert_null(dgm_rpc_id_of(json("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}")));
    assert_null(dgm_rpc_id_of(json("{\"jsonrpc\":\"2.0\",\"id\":{}}")));
    assert_null(dgm_rpc_id_of(json("[{\"id\":1}]")));
    assert_null(dgm_rpc_id_of(json("\"id\"")));
    assert_null(dgm_rpc_id_of(NULL));
}

/* ---- writing --------------------------------------------------------------------------------- */

static void envelopes_are_written_around_a_value(void **state)
{
    yyjson_val *id = json("\"a\\\"\\n\"");
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1000);
    dgm_rpc_put_request(&b, json("1180591620717411303424"), DGM_STR("message/send"));
    dgm_buf_add_lit(&b, "{}");
    dgm_rpc_put_tail(&b);
    check_str(b, "{\"jsonrpc\":\"2.0\",\"id\":1180591620717411303424,\"method\":\"message/send\","
                 "\"params\":{}}");
    dgm_buf_clear(&b);
    dgm_rpc_put_result(&b, id);
    dgm_buf_add_lit(&b, "[]");
    dgm_rpc_put_tail(&b);
    check_str(b, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\\n\",\"result\":[]}");
    dgm_buf_clear(&b);
    dgm_rpc_put_error(&b, NULL);
    dgm_buf_add_lit(&b, "{}");
    dgm_rpc_put_tail(&b);
    check_str(b, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}");
    dgm_buf_clear(&b);
    dgm_rpc_put_bare_request(&b, json("null"), DGM_STR("m"));
    check_str(b, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}");
    dgm_buf_clear(&b);
    dgm_rpc_put_bare_request(&b, NULL, DGM_STR("m\""));
    check_str(b, "{\"jsonrpc\":\"2.0\",\"method\":\"m\\\"\"}");
    dgm_buf_done(&b);
}

int main(void)
{
    enum { N_FAULTS = sizeof faults / sizeof *faults };
    const struct CMUnitTest plain[] = {
        dgm_test(a_request_has_id_method_params),
        dgm_test(a_request_may_have_no_id_and_no_params),
        dgm_test(a_response_has_result_or_error),
        dgm_test(ids_keep_type_and_digits),
        dgm_test(what_we_only_convert_may_be_sloppy),
        dgm_test(members_it_does_not_know_are_passed_over),
        dgm_test(params_are_an_object),
        dgm_test(params_may_be_optional),
        dgm_test(an_envelope_is_detected),
        dgm_test(a_broken_request_still_has_its_id),
        dgm_test(envelopes_are_written_around_a_value),
    };
    enum { N_PLAIN = sizeof plain / sizeof *plain };
    struct CMUnitTest tests[N_PLAIN + N_FAULTS];
    memcpy(tests, plain, sizeof plain);
    for (size_t i = 0; i < N_FAULTS; i++)
        tests[N_PLAIN + i] =
            (struct CMUnitTest)dgm_test_with(faults[i].name, a_fault_is_pointed_at, &faults[i]);
    arena = dgm_arena_new();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dgm_arena_free(arena);
    return failed;
}
