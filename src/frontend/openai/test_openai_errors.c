/* frontend/openai/test_openai_errors.c - what goes wrong, as OpenAI's clients know it. */
#include "frontend/openai/openai_errors.h"
#include "support/check.h"

static void pointers_are_parameters(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    assert_true(dgm_str_is(openai_param(a, "/messages/0/content"), "messages[0].content"));
    assert_true(dgm_str_is(openai_param(a, "/model"), "model"));
    assert_true(dgm_str_is(openai_param(a, "/a/1/2"), "a[1][2]"));
    assert_null(openai_param(a, "").p);
}

static void bodies_have_all_four_members(void **state)
{
    dgm_buf b;
    struct openai_error e = {.type = "t", .message = DGM_STR("say \"no\"")};
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    openai_put_error(&b, &e);
    assert_true(dgm_str_is(dgm_buf_str(&b),
                           "{\"error\":{\"message\":\"say \\\"no\\\"\",\"type\":\"t\","
                           "\"param\":null,\"code\":null}}"));
    dgm_buf_clear(&b);
    e.param = DGM_STR("n");
    e.code = DGM_STR("c");
    openai_put_error(&b, &e);
    assert_true(dgm_str_is(dgm_buf_str(&b),
                           "{\"error\":{\"message\":\"say \\\"no\\\"\",\"type\":\"t\","
                           "\"param\":\"n\",\"code\":\"c\"}}"));
    dgm_buf_done(&b);
}

static struct openai_error of(dgm_arena *a, dgm_code code, const char *at, yyjson_val *body)
{
    dgm_err err = {.code = code, .msg = "because"};
    snprintf(err.at, sizeof err.at, "%s", at);
    return openai_error_of(a, &err, body);
}

static void what_is_missing_and_what_is_wrong(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *body = dgm_json_parse_trusted(a, DGM_STR("{\"n\":\"x\",\"messages\":[{}]}"));
    struct openai_error e = of(a, DGM_BAD_PARAMS, "/n", body);
    (void)state;
    assert_int_equal(e.http, 400);
    assert_string_equal(e.type, "invalid_request_error");
    assert_true(dgm_str_is(e.code, "invalid_value"));
    assert_true(dgm_str_is(e.param, "n"));
    assert_true(dgm_str_is(e.message, "n: because"));
    e = of(a, DGM_BAD_PARAMS, "/messages/0/role", body);
    assert_true(dgm_str_is(e.code, "missing_required_parameter"));
    assert_true(dgm_str_is(e.param, "messages[0].role"));
    e = of(a, DGM_BAD_PARAMS, "", NULL);
    assert_true(dgm_str_is(e.code, "invalid_value"));
    assert_null(e.param.p);
    assert_true(dgm_str_is(e.message, "because"));
}

static void every_code_has_a_status_and_a_word(void **state)
{
    static const struct {
        dgm_code code;
        int http;
        const char *type, *word;
        enum openai_retry retry;
        int after;
    } rows[] = {
        {DGM_PARSE, 400, "invalid_request_error", "invalid_json", 0, 0},
        {DGM_NO_SUCH_METHOD, 404, "invalid_request_error", "unknown_url", 0, 0},
        {DGM_TASK_NOT_FOUND, 404, "invalid_request_error", NULL, 0, 0},
        {DGM_UNSUPPORTED_OPERATION, 400, "invalid_request_error", "unsupported_operation", 0, 0},
        {DGM_CONTENT_TYPE_NOT_SUPPORTED, 415, "invalid_request_error", "unsupported_content_type",
         0, 0},
        {DGM_UNAUTHENTICATED, 401, "authentication_error", "invalid_api_key", 0, 0},
        {DGM_FORBIDDEN, 403, "permission_error", NULL, 0, 0},
        {DGM_TOO_LARGE, 413, "invalid_request_error", "request_too_large", 0, 0},
        {DGM_RATE_LIMITED, 429, "rate_limit_error", "rate_limit_exceeded", 0, 1},
        {DGM_UNAVAILABLE, 503, "server_error", "unavailable", OPENAI_RETRY, 1},
        {DGM_UPSTREAM_TIMEOUT, 504, "server_error", "timeout", 0, 0},
        {DGM_INVALID_AGENT_RESPONSE, 424, "agent_error", "invalid_agent_response",
         OPENAI_RETRY_NEVER, 0},
        {DGM_INTERNAL, 500, "server_error", NULL, 0, 0},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct openai_error e = of(a, rows[i].code, "", NULL);
        assert_int_equal(e.http, rows[i].http);
        assert_string_equal(e.type, rows[i].type);
        assert_true(dgm_str_eq(e.code, dgm_str_from(rows[i].word)));
        assert_int_equal(e.should_retry, rows[i].retry);
        assert_int_equal(e.retry_after, rows[i].after);
    }
}

static void a_run_that_ended_badly_is_not_tried_again(void **state)
{
    struct openai_error e = openai_error_of_end(DGM_STR("failed"), DGM_STR("no luck"));
    (void)state;
    assert_int_equal(e.http, 424);
    assert_int_equal(e.should_retry, OPENAI_RETRY_NEVER);
    assert_string_equal(e.type, "agent_error");
    assert_true(dgm_str_is(e.code, "task_failed"));
    assert_true(dgm_str_is(e.message, "no luck"));
    assert_true(
        dgm_str_is(openai_error_of_end(DGM_STR("canceled"), (dgm_str){0}).code, "task_canceled"));
    assert_true(openai_error_of_end(DGM_STR("canceled"), (dgm_str){0}).message.n > 0);
    assert_true(dgm_str_is(openai_error_of_end(DGM_STR("server_shutdown"), (dgm_str){0}).code,
                           "server_shutdown"));
}

DGM_TEST_MAIN(dgm_test(pointers_are_parameters), dgm_test(bodies_have_all_four_members),
              dgm_test(what_is_missing_and_what_is_wrong),
              dgm_test(every_code_has_a_status_and_a_word),
              dgm_test(a_run_that_ended_badly_is_not_tried_again))
