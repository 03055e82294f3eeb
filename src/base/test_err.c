/* test_err.c - error rows, JSON pointers, messages. */
#include "base/err.h"
#include "support/check.h"

/* ---- the table of codes, as the A2A specification has it ----------------------------------------- */

enum { /* gRPC */
       INVALID_ARGUMENT = 3,
       DEADLINE_EXCEEDED = 4,
       NOT_FOUND = 5,
       PERMISSION_DENIED = 7,
       RESOURCE_EXHAUSTED = 8,
       FAILED_PRECONDITION = 9,
       UNIMPLEMENTED = 12,
       INTERNAL = 13,
       UNAVAILABLE = 14,
       UNAUTHENTICATED = 16
};

static const struct {
    const char *name;
    dgm_code code;
    int rpc, http, grpc, http_100, grpc_100;
    const char *reason, *message;
} rows[] = {
    {"OK", DGM_OK, 0, 200, 0, 200, 0, "", "ok"},
    {"TASK_NOT_FOUND", DGM_TASK_NOT_FOUND, -32001, 404, NOT_FOUND, 404, NOT_FOUND, "TASK_NOT_FOUND",
     "Task not found"},
    {"TASK_NOT_CANCELABLE", DGM_TASK_NOT_CANCELABLE, -32002, 400, FAILED_PRECONDITION, 409,
     FAILED_PRECONDITION, "TASK_NOT_CANCELABLE", "Task cannot be canceled"},
    {"PUSH_NOT_SUPPORTED", DGM_PUSH_NOT_SUPPORTED, -32003, 400, FAILED_PRECONDITION, 400,
     UNIMPLEMENTED, "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push Notification is not supported"},
    {"UNSUPPORTED_OPERATION", DGM_UNSUPPORTED_OPERATION, -32004, 400, FAILED_PRECONDITION, 400,
     UNIMPLEMENTED, "UNSUPPORTED_OPERATION", "This operation is not supported"},
    {"CONTENT_TYPE_NOT_SUPPORTED", DGM_CONTENT_TYPE_NOT_SUPPORTED, -32005, 400, INVALID_ARGUMENT,
     415, INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", "Incompatible content types"},
    {"INVALID_AGENT_RESPONSE", DGM_INVALID_AGENT_RESPONSE, -32006, 500, INTERNAL, 502, INTERNAL,
     "INVALID_AGENT_RESPONSE", "Invalid agent response type"},
    {"EXTENDED_CARD_NOT_CONFIGURED", DGM_EXTENDED_CARD_NOT_CONFIGURED, -32007, 400,
     FAILED_PRECONDITION, 400, FAILED_PRECONDITION, "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
     "Extended Agent Card not configured"},
    {"EXTENSION_REQUIRED", DGM_EXTENSION_REQUIRED, -32008, 400, FAILED_PRECONDITION, 400,
     FAILED_PRECONDITION, "EXTENSION_SUPPORT_REQUIRED", "Extension support required"},
    {"VERSION_NOT_SUPPORTED", DGM_VERSION_NOT_SUPPORTED, -32009, 400, FAILED_PRECONDITION, 400,
     UNIMPLEMENTED, "VERSION_NOT_SUPPORTED", "Version not supported"},
    {"PARSE", DGM_PARSE, -32700, 400, INVALID_ARGUMENT, 400, INVALID_ARGUMENT, "",
     "Invalid JSON payload"},
    {"BAD_REQUEST", DGM_BAD_REQUEST, -32600, 400, INVALID_ARGUMENT, 400, INVALID_ARGUMENT, "",
     "Request payload validation error"},
    {"NO_SUCH_METHOD", DGM_NO_SUCH_METHOD, -32601, 404, UNIMPLEMENTED, 404, UNIMPLEMENTED, "",
     "Method not found"},
    {"BAD_PARAMS", DGM_BAD_PARAMS, -32602, 400, INVALID_ARGUMENT, 400, INVALID_ARGUMENT, "",
     "Invalid parameters"},
    {"INTERNAL", DGM_INTERNAL, -32603, 500, INTERNAL, 500, INTERNAL, "", "Internal error"},
    {"UNAUTHENTICATED", DGM_UNAUTHENTICATED, -32000, 401, UNAUTHENTICATED, 401, UNAUTHENTICATED, "",
     "Unauthenticated"},
    {"FORBIDDEN", DGM_FORBIDDEN, -32000, 403, PERMISSION_DENIED, 403, PERMISSION_DENIED, "",
     "Forbidden"},
    {"TOO_LARGE", DGM_TOO_LARGE, -32600, 413, RESOURCE_EXHAUSTED, 413, RESOURCE_EXHAUSTED, "",
     "Limit exceeded"},
    {"RATE_LIMITED", DGM_RATE_LIMITED, -32000, 429, RESOURCE_EXHAUSTED, 429, RESOURCE_EXHAUSTED, "",
     "Rate limited"},
    {"UNAVAILABLE", DGM_UNAVAILABLE, -32000, 503, UNAVAILABLE, 503, UNAVAILABLE, "",
     "Service unavailable"},
    {"UPSTREAM_TIMEOUT", DGM_UPSTREAM_TIMEOUT, -32000, 504, DEADLINE_EXCEEDED, 504,
     DEADLINE_EXCEEDED, "", "Upstream timeout"},
};

static void every_code_has_its_row(void **state)
{
    (void)state;
    int n = 0;
#define X(sym, rpc, http, grpc, http_100, grpc_100, reason, text) n++;
    DGM_CODES(X)
#undef X
    assert_int_equal(sizeof rows / sizeof *rows, n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_code c = rows[i].code;
        assert_string_equal(dgm_code_name(c), rows[i].name);
        assert_int_equal(dgm_code_rpc(c), rows[i].rpc);
        assert_int_equal(dgm_code_http(c, false), rows[i].http);
        assert_int_equal(dgm_code_grpc(c, false), rows[i].grpc);
        assert_int_equal(dgm_code_http(c, true), rows[i].http_100);
        assert_int_equal(dgm_code_grpc(c, true), rows[i].grpc_100);
        assert_string_equal(dgm_code_reason(c), rows[i].reason);
        assert_string_equal(dgm_code_message(c), rows[i].message);
    }
    assert_string_equal(dgm_code_name((dgm_code)4711), "INTERNAL");
}

static void grpc_statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(dgm_grpc_status_name(0), "OK");
    assert_string_equal(dgm_grpc_status_name(NOT_FOUND), "NOT_FOUND");
    assert_string_equal(dgm_grpc_status_name(FAILED_PRECONDITION), "FAILED_PRECONDITION");
    assert_string_equal(dgm_grpc_status_name(UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(dgm_grpc_status_name(17), "UNKNOWN");
    assert_string_equal(dgm_grpc_status_name(-1), "UNKNOWN");
}

/* ---- pointers -------------------------------------------------------------------------------------- */

static void check_at(const dgm_at *at, const char *want)
{
    char got[256];
    dgm_at_text(at, got, sizeof got);
    assert_string_equal(got, want);
}

static void frames_become_a_pointer(void **state)
{
    (void)state;
    check_at(NULL, "");
    check_at(DGM_AT_LIT(NULL, "a"), "/a");
    check_at(DGM_AT_I(NULL, 0), "/0");
    const dgm_at *parts = DGM_AT_LIT(DGM_AT_LIT(NULL, "message"), "parts");
    check_at(DGM_AT_LIT(DGM_AT_I(parts, 12), "text"), "/message/parts/12/text");
    check_at(DGM_AT(NULL, DGM_STR("")), "/");
}

static void tilde_and_slash_are_escaped(void **state)
{
    (void)state;
    check_at(DGM_AT_LIT(NULL, "a/b"), "/a~1b");
    check_at(DGM_AT_LIT(NULL, "m~n"), "/m~0n");
    check_at(DGM_AT_LIT(NULL, "~1"), "/~01");
    check_at(DGM_AT_LIT(NULL, "https://x/~y"), "/https:~1~1x~1~0y");
}

static void control_characters_do_not_reach_a_terminal(void **state)
{
    (void)state;
    check_at(DGM_AT_LIT(NULL, "a\x1B[2J\n\0b\x7F"), "/a?[2J??b?");
}

static void a_long_key_is_cut_between_characters(void **state)
{
    static const char smile[4] = {'\xF0', '\x9F', '\x98', '\x8A'};
    char key[400], got[256];
    (void)state;
    memset(key, 'k', sizeof key);
    dgm_at_text(DGM_AT(NULL, ((dgm_str){key, 79})), got, sizeof got);
    assert_int_equal(strlen(got), 80);
    dgm_at_text(DGM_AT(NULL, ((dgm_str){key, 80})), got, sizeof got);
    assert_int_equal(strlen(got), 83);
    assert_string_equal(got + 80, "...");
    for (size_t shift = 0; shift < 4; shift++) { /* four bytes a character, at every phase */
        for (size_t i = shift; i + 4 <= sizeof key; i += 4)
            memcpy(key + i, smile, sizeof smile);
        dgm_at_text(DGM_AT(NULL, ((dgm_str){key, 300 + shift})), got, sizeof got);
        assert_int_equal(dgm_utf8_check(dgm_str_from(got)), strlen(got));
        assert_string_equal(got + strlen(got) - 3, "...");
        memset(key, 'k', sizeof key);
    }
}

static void a_long_pointer_is_cut_at_a_whole_step(void **state)
{
    dgm_at frames[200];
    char got[256];
    (void)state;
    for (size_t i = 0; i < 200; i++)
        frames[i] = (dgm_at){.up = i ? &frames[i - 1] : NULL, .key = DGM_STR("abcdefghi")};
    dgm_at_text(&frames[199], got, sizeof got);
    assert_int_equal(strlen(got), 254);
    for (size_t i = 0; i < 250; i += 10)
        assert_memory_equal(got + i, "/abcdefghi", 10);
    assert_string_equal(got + 250, "/...");
    dgm_at_text(&frames[24], got, sizeof got); /* 250 bytes: fits whole */
    assert_int_equal(strlen(got), 250);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

static void fail_fills_the_error_and_returns_its_code(void **state)
{
    dgm_err err = {.line = 7};
    (void)state;
    assert_int_equal(dgm_fail(&err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "x"), "no %s", "good"),
                     DGM_BAD_PARAMS);
    assert_int_equal(err.code, DGM_BAD_PARAMS);
    assert_string_equal(err.at, "/x");
    assert_string_equal(err.msg, "no good");
    assert_int_equal(err.line, 0);
    assert_int_equal(dgm_fail(NULL, DGM_PARSE, NULL, "x"), DGM_PARSE);
}

static void a_long_message_is_cut(void **state)
{
    dgm_err err = {0};
    char text[1000];
    (void)state;
    memset(text, 'x', sizeof text);
    dgm_fail(&err, DGM_PARSE, NULL, "%.*s", (int)sizeof text, text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void a_message_is_text_whatever_a_peer_put_into_it(void **state)
{
    /* Messages quote the first bytes of what a peer sent: the cut may fall inside a character, and
     * what is quoted goes into JSON, logs and terminals. */
    dgm_err err = {0};
    (void)state;
    dgm_fail(&err, DGM_PARSE, NULL, "\"%.*s\" is no role", 5, "a\xC3\xA4\xE2\x82\xAC");
    assert_int_equal(dgm_utf8_check(dgm_str_from(err.msg)), strlen(err.msg));
    assert_string_equal(err.msg, "\"a\xC3\xA4??\" is no role");
    dgm_fail(&err, DGM_PARSE, NULL, "%s", "red \x1B[31m\r\n\x7F alert");
    assert_string_equal(err.msg, "red ?[31m??? alert");
    static const char euro[3] = {'\xE2', '\x82', '\xAC'};
    char text[500]; /* the end of the message itself */
    for (size_t i = 0; i + 3 <= sizeof text; i += 3)
        memcpy(text + i, euro, sizeof euro);
    dgm_fail(&err, DGM_PARSE, NULL, "%.498s", text);
    assert_int_equal(dgm_utf8_check(dgm_str_from(err.msg)), strlen(err.msg));
}

DGM_TEST_MAIN(dgm_test(every_code_has_its_row), dgm_test(grpc_statuses_have_names),
              dgm_test(frames_become_a_pointer), dgm_test(tilde_and_slash_are_escaped),
              dgm_test(control_characters_do_not_reach_a_terminal),
              dgm_test(a_long_key_is_cut_between_characters),
              dgm_test(a_long_pointer_is_cut_at_a_whole_step),
              dgm_test(fail_fills_the_error_and_returns_its_code), dgm_test(a_long_message_is_cut),
              dgm_test(a_message_is_text_whatever_a_peer_put_into_it))
