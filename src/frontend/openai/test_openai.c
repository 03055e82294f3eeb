/* test_openai.c - errors, how runs end, which conversation a request continues. */
#include "base/buf.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_session.h"
#include "support/check.h"

static void pointers_are_parameters(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    assert_true(dgm_str_is(dgm_openai_param(a, "/messages/0/content"), "messages[0].content"));
    assert_true(dgm_str_is(dgm_openai_param(a, "/model"), "model"));
    assert_true(dgm_str_is(dgm_openai_param(a, "/a/1/2"), "a[1][2]"));
    assert_null(dgm_openai_param(a, "").p);
}

static void bodies_have_all_four_members(void **state)
{
    dgm_buf b;
    struct openai_error e = {.type = "t", .message = DGM_STR("say \"no\"")};
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_openai_put_error(&b, &e);
    assert_true(dgm_str_is(dgm_buf_str(&b),
                           "{\"error\":{\"message\":\"say \\\"no\\\"\",\"type\":\"t\","
                           "\"param\":null,\"code\":null}}"));
    dgm_buf_clear(&b);
    e.param = DGM_STR("n");
    e.code = DGM_STR("c");
    dgm_openai_put_error(&b, &e);
    assert_true(dgm_str_is(dgm_buf_str(&b),
                           "{\"error\":{\"message\":\"say \\\"no\\\"\",\"type\":\"t\","
                           "\"param\":\"n\",\"code\":\"c\"}}"));
    dgm_buf_done(&b);
}

static struct openai_error of(dgm_arena *a, dgm_code code, const char *at, yyjson_val *body)
{
    dgm_err err = {.code = code, .msg = "because"};
    snprintf(err.at, sizeof err.at, "%s", at);
    return dgm_openai_error_of(a, &err, body);
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
    struct openai_error e = dgm_openai_error_of_end(DGM_STR("failed"), DGM_STR("no luck"));
    (void)state;
    assert_int_equal(e.http, 424);
    assert_int_equal(e.should_retry, OPENAI_RETRY_NEVER);
    assert_string_equal(e.type, "agent_error");
    assert_true(dgm_str_is(e.code, "task_failed"));
    assert_true(dgm_str_is(e.message, "no luck"));
    assert_true(dgm_str_is(dgm_openai_error_of_end(DGM_STR("canceled"), (dgm_str){0}).code,
                           "task_canceled"));
    assert_true(dgm_openai_error_of_end(DGM_STR("canceled"), (dgm_str){0}).message.n > 0);
    assert_true(dgm_str_is(dgm_openai_error_of_end(DGM_STR("server_shutdown"), (dgm_str){0}).code,
                           "server_shutdown"));
}

/* ---- how runs end ---- */

static void check_state(dgm_canon_event e, const char *want)
{
    assert_string_equal(dgm_openai_state_of(&e), want);
}

static dgm_canon_event finished(dgm_canon_outcome outcome)
{
    return (dgm_canon_event){.kind = DGM_CANON_RUN_FINISHED, .run_finished = {.outcome = outcome}};
}

static dgm_canon_event failed(const char *code)
{
    return (dgm_canon_event){.kind = DGM_CANON_RUN_ERROR,
                             .run_error = {.code = dgm_str_from(code)}};
}

static void states_of_tasks(void **state)
{
    dgm_canon_interrupt auth = {.reason = DGM_STR("a2a:auth_required")};
    dgm_canon_interrupt input = {.reason = DGM_STR("input_required")};
    dgm_str call = DGM_STR("call_1");
    (void)state;
    check_state(finished((dgm_canon_outcome){.kind = DGM_CANON_SUCCESS}), "completed");
    check_state(finished((dgm_canon_outcome){0}), "completed");
    check_state(finished((dgm_canon_outcome){.kind = DGM_CANON_SUCCESS,
                                             .pending_tool_call_ids = {&call, 1}}),
                "input-required");
    check_state(
        finished((dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {&input, 1}}),
        "input-required");
    check_state(
        finished((dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {&auth, 1}}),
        "auth-required");
    check_state(finished((dgm_canon_outcome){.kind = DGM_CANON_CANCELLED}), "canceled");
    check_state(failed("failed"), "failed");
    check_state(failed("server_shutdown"), "failed");
    check_state(failed("rejected"), "rejected");
    check_state(failed("canceled"), "canceled");
}

static dgm_code keep_text(void *arg, const dgm_canon_event *e)
{
    dgm_buf *b = arg;
    dgm_buf_printf(b, "%s %.*s\n", dgm_canon_kind_name(e->kind), DGM_P(e->text.delta));
    return DGM_OK;
}

static bool lacks_question(const dgm_canon_event *e)
{
    struct openai_end end = {0};
    dgm_openai_end_note(NULL, &end, e); /* the exchange has the texts of failures */
    return end.lacks_question;
}

static void who_waits_without_a_word_asks(void **state)
{
    dgm_canon_interrupt silent = {.reason = DGM_STR("a2a:auth_required")};
    dgm_canon_interrupt says = {.reason = DGM_STR("input_required"), .message = DGM_STR("Who?")};
    dgm_canon_event e =
        finished((dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {&says, 1}});
    dgm_output none = {0}; /* nothing is held back */
    dgm_buf b;
    (void)state;
    assert_false(lacks_question(&e));
    e.run_finished.outcome.interrupts.at = &silent;
    assert_true(lacks_question(&e));
    dgm_buf_init(&b, SIZE_MAX);
    assert_int_equal(dgm_openai_ask(&none, &e, (dgm_canon_sink){keep_text, &b}), DGM_OK);
    check_str(b,
              "TEXT_MESSAGE_START \nTEXT_MESSAGE_CONTENT The agent needs credentials before it can "
              "go on.\nTEXT_MESSAGE_END \n");
    dgm_buf_done(&b);
    assert_true(
        dgm_openai_is_our_question(DGM_STR("The agent needs credentials before it can go on.")));
    assert_false(dgm_openai_is_our_question(DGM_STR("Who?")));
    e = finished((dgm_canon_outcome){.kind = DGM_CANON_SUCCESS});
    assert_false(lacks_question(&e));
}

/* ---- sessions ---- */

static dgm_str key(dgm_arena *a, const dgm_http_header *headers, size_t n, const char *metadata)
{
    dgm_http_request r = {.headers = (dgm_http_header *)(uintptr_t)headers, .n_headers = n};
    yyjson_val *v = metadata ? dgm_json_parse_trusted(a, dgm_str_from(metadata)) : NULL;
    dgm_str found;
    dgm_err err = {0};
    check_ok(dgm_openai_session(&r, v, &found, &err), err);
    return found;
}

#define HEADER(name, value)                                                                        \
    {                                                                                              \
        DGM_STR(name), DGM_STR(value)                                                              \
    }
/* From the weakest to the strongest. */
static const dgm_http_header all[] = {HEADER("content-type", "application/json"),
                                      HEADER("session-id", "no"),
                                      HEADER("x-session-id-of", "no"),
                                      HEADER("x-librechat-session-id", "any"),
                                      HEADER("x-session-id", "session"),
                                      HEADER("x-openwebui-chat-id", "webui"),
                                      HEADER("x-conversation-id", "conversation"),
                                      HEADER("x-a2a-context-id", "context")};

static void headers_in_their_order(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    assert_int_equal(key(a, all, 3, NULL).n, 0);
    assert_true(dgm_str_is(key(a, all, 4, NULL), "any"));
    assert_true(dgm_str_is(key(a, all, 5, NULL), "session"));
    assert_true(dgm_str_is(key(a, all, 6, NULL), "webui"));
    assert_true(dgm_str_is(key(a, all, 7, NULL), "conversation"));
    assert_true(dgm_str_is(key(a, all, 8, NULL), "context"));
}

static void check_metadata(const char *body, bool marks, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_output_form form = {0};
    const dgm_json *m =
        dgm_openai_metadata(a, dgm_json_parse_trusted(a, dgm_str_from(body)), &form, marks);
    assert_string_equal(m ? dgm_json_text_in(a, m).p : "", want ? want : "");
}

static void metadata_comes_after_headers(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    assert_true(dgm_str_is(key(a, NULL, 0, "{\"conversation_id\":\"c\"}"), "c"));
    assert_true(
        dgm_str_is(key(a, NULL, 0, "{\"conversation_id\":\"c\",\"a2a_context_id\":\"x\"}"), "x"));
    assert_true(dgm_str_is(key(a, all, 4, "{\"a2a_context_id\":\"x\"}"), "any"));
    assert_int_equal(key(a, NULL, 0, "{\"user\":\"u\",\"a2a_context_id\":\"\"}").n, 0);
    assert_int_equal(key(a, NULL, 0, "{\"a2a_context_id\":null}").n, 0);
    check_metadata("{\"metadata\":{\"a2a_context_id\":\"x\"}}", true, NULL);
    check_metadata("{\"metadata\":{\"conversation_id\":\"x\",\"dragoman:tools\":\"x\"}}", false,
                   NULL);
    check_metadata("{\"metadata\":{\"topic\":\"x\",\"a2a_k\":\"y\"}}", false,
                   "{\"topic\":\"x\",\"a2a_k\":\"y\"}");
    check_metadata("{\"metadata\":{\"topic\":\"x\",\"a2a_k\":\"y\"}}", true, "{\"topic\":\"x\"}");
    check_metadata("{\"temperature\":0.5,\"user\":\"u\",\"n\":1}", false,
                   "{\"dragoman:parameters\":{\"temperature\":0.5}}");
}

static void keys_that_could_not_be_returned(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char text[600] = "{\"a2a_context_id\":\"";
    dgm_http_request r = {0};
    dgm_err err = {0};
    dgm_str found;
    (void)state;
    assert_int_equal(
        dgm_openai_session(&r, dgm_json_parse_trusted(a, DGM_STR("{\"a2a_context_id\":\"a\\n\"}")),
                           &found, &err),
        DGM_BAD_PARAMS);
    assert_string_equal(err.at, "/metadata/a2a_context_id");
    size_t n = strlen(text);
    memset(text + n, 'k', 513);
    memcpy(text + n + 513, "\"}", 3);
    assert_int_equal(
        dgm_openai_session(&r, dgm_json_parse_trusted(a, dgm_str_from(text)), &found, &err),
        DGM_BAD_PARAMS);
    dgm_http_header bad = HEADER("x-session-id", "\xff");
    r = (dgm_http_request){.headers = &bad, .n_headers = 1};
    assert_int_equal(dgm_openai_session(&r, NULL, &found, &err), DGM_BAD_PARAMS);
    assert_string_equal(err.at, "");
}

DGM_TEST_MAIN(dgm_test(pointers_are_parameters), dgm_test(bodies_have_all_four_members),
              dgm_test(what_is_missing_and_what_is_wrong),
              dgm_test(every_code_has_a_status_and_a_word),
              dgm_test(a_run_that_ended_badly_is_not_tried_again), dgm_test(states_of_tasks),
              dgm_test(who_waits_without_a_word_asks), dgm_test(headers_in_their_order),
              dgm_test(metadata_comes_after_headers), dgm_test(keys_that_could_not_be_returned))
