/* frontend/openai/test_openai_session.c - which conversation a request goes on with (openai.md 5.3). */
#include "frontend/openai/openai_session.h"
#include "support/check.h"

static dgm_str key(dgm_arena *a, const dgm_http_header *headers, size_t n, const char *metadata)
{
    dgm_http_request r = {.headers = (dgm_http_header *)(uintptr_t)headers, .n_headers = n};
    yyjson_val *v = metadata ? dgm_json_parse_trusted(a, dgm_str_from(metadata)) : NULL;
    dgm_str found;
    dgm_err err = {0};
    check_ok(openai_session(&r, v, &found, &err), err);
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
        openai_metadata(a, dgm_json_parse_trusted(a, dgm_str_from(body)), &form, marks);
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
}

static void keys_that_could_not_be_told_again(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char text[600] = "{\"a2a_context_id\":\"";
    dgm_http_request r = {0};
    dgm_err err = {0};
    dgm_str found;
    (void)state;
    assert_int_equal(
        openai_session(&r, dgm_json_parse_trusted(a, DGM_STR("{\"a2a_context_id\":\"a\\n\"}")),
                       &found, &err),
        DGM_BAD_PARAMS);
    assert_string_equal(err.at, "/metadata/a2a_context_id");
    size_t n = strlen(text);
    memset(text + n, 'k', 513);
    memcpy(text + n + 513, "\"}", 3);
    assert_int_equal(
        openai_session(&r, dgm_json_parse_trusted(a, dgm_str_from(text)), &found, &err),
        DGM_BAD_PARAMS);
    dgm_http_header bad = HEADER("x-session-id", "\xff");
    r = (dgm_http_request){.headers = &bad, .n_headers = 1};
    assert_int_equal(openai_session(&r, NULL, &found, &err), DGM_BAD_PARAMS);
    assert_string_equal(err.at, "");
}

DGM_TEST_MAIN(dgm_test(headers_in_their_order), dgm_test(metadata_comes_after_headers),
              dgm_test(keys_that_could_not_be_told_again))
