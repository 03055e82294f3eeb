/* test_approval.c - requests for approval, decisions, questions, requests to sign in: data of messages. */
#include "base/limits.h"
#include "model/approval.h"
#include "support/check.h"
#include "json/json.h"

static dgm_part data(dgm_arena *a, const char *text)
{
    return (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_str_from(text))};
}

static dgm_part text(const char *words)
{
    return (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_str_from(words)};
}

static void requests_are_written_and_read(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_approval_request want = {.id = DGM_STR("a1"),
                                 .tool = DGM_STR("delete"),
                                 .arguments = data(a, "{\"path\":\"x\"}").data,
                                 .call_id = DGM_STR("c1")};
    const dgm_json *v = dgm_approval_request_data(a, &want);
    check_str(dgm_json_text_in(a, v),
              "{\"type\":\"approval-request\",\"id\":\"a1\",\"tool\":\"delete\","
              "\"arguments\":{\"path\":\"x\"},\"call_id\":\"c1\"}");
    dgm_part parts[] = {text("May I?"),
                        {.kind = DGM_PART_DATA, .data = v},
                        data(a, "{\"type\":\"other\"}"),
                        data(a, "{\"type\":\"approval-request\",\"id\":\"a2\",\"tool\":\"t\"}")};
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {parts, 4}};
    dgm_approval_requests list = dgm_message_approval_requests(a, &m);
    assert_int_equal(list.n, 2);
    check_str(list.at[0].tool, "delete");
    check_str(list.at[0].call_id, "c1");
    check_str(list.at[1].id, "a2");
    assert_null(list.at[1].arguments);
    check_str(dgm_approval_question(a, &list),
              "May the tools delete with {\"path\":\"x\"} and t be called? Answer yes or no.");
    list.n = 1;
    check_str(dgm_approval_question(a, &list),
              "May the tool delete with {\"path\":\"x\"} be called? Answer yes or no.");
    assert_int_equal(dgm_message_approval_requests(a, NULL).n, 0);
}

static void requests_have_a_limit(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part *parts = dgm_new_n(a, dgm_part, DGM_MAX_OPEN_CALLS + 1);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"type\":\"approval-request\",\"id\":\"");
    for (size_t i = 0; i <= DGM_MAX_ID_BYTES; i++)
        dgm_buf_add_lit(&b, "x");
    dgm_buf_add_lit(&b, "\"}");
    dgm_part too_long = data(a, dgm_arena_dup(a, dgm_buf_str(&b)).p);
    assert_false(dgm_part_is_approval_request(&too_long));
    dgm_buf_done(&b);
    for (size_t i = 0; i <= DGM_MAX_OPEN_CALLS; i++)
        parts[i] = data(a, "{\"type\":\"approval-request\",\"id\":\"x\",\"tool\":\"t\"}");
    dgm_message m = {.parts = {parts, DGM_MAX_OPEN_CALLS + 1}};
    assert_int_equal(dgm_message_approval_requests(a, &m).n, DGM_MAX_OPEN_CALLS);
}

static void a_long_argument_is_cut_between_characters(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (int shift = 0; shift < 2; shift++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_buf_add_lit(
            &b,
            "{\"type\":\"approval-request\",\"id\":\"1\",\"tool\":\"t\",\"arguments\":{\"a\":\"");
        if (shift)
            dgm_buf_add_lit(&b, "x");
        for (int i = 0; i < 1000; i++)
            dgm_buf_add_lit(&b, "\xc3\xa9");
        dgm_buf_add_lit(&b, "\"}}");
        dgm_part part = data(a, dgm_arena_dup(a, dgm_buf_str(&b)).p);
        dgm_buf_done(&b);
        dgm_message m = {.parts = {&part, 1}};
        dgm_approval_requests list = dgm_message_approval_requests(a, &m);
        dgm_str question = dgm_approval_question(a, &list);
        assert_true(question.n < 500);
        assert_int_equal(dgm_utf8_check(question), question.n);
    }
}

static void only_the_listed_words_decide(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dgm_decision decision;
    } cases[] = {
        {"yes", DGM_APPROVED},      {" Yes! ", DGM_APPROVED},      {"Y", DGM_APPROVED},
        {"APPROVE.", DGM_APPROVED}, {"\tallow\n", DGM_APPROVED},   {"no", DGM_REJECTED},
        {"No.", DGM_REJECTED},      {"deny", DGM_REJECTED},        {"", DGM_UNDECIDED},
        {"!", DGM_UNDECIDED},       {"yes please", DGM_UNDECIDED}, {"ok", DGM_UNDECIDED},
        {"not yes", DGM_UNDECIDED}, {"yesno", DGM_UNDECIDED},      {"maybe", DGM_UNDECIDED},
        {"ye", DGM_UNDECIDED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (dgm_approval_of_text(dgm_str_from(cases[i].text)) != cases[i].decision)
            fail_msg("\"%s\" is decided otherwise", cases[i].text);
    }
    for (const dgm_approval_word *w = dgm_approval_words; w->word; w++)
        assert_int_equal(dgm_approval_of_text(dgm_str_from(w->word)), w->decision);
}

static void data_decides_before_text(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part parts[] = {text("yes"),
                        data(a, "{\"type\":\"approval\",\"approved\":false,\"reason\":\"all\"}"),
                        data(a, "{\"type\":\"approval\",\"id\":\"2\",\"approved\":true,"
                                "\"arguments\":{\"n\":1}}"),
                        data(a, "{\"type\":\"approval\",\"id\":\"3\",\"approved\":\"true\"}"),
                        data(a, "{\"type\":\"other\",\"id\":\"4\",\"approved\":true}")};
    dgm_message m = {.role = DGM_ROLE_USER, .parts = {parts, 5}};
    dgm_approval x = dgm_message_approval(a, &m, DGM_STR("2"));
    assert_int_equal(x.decision, DGM_APPROVED);
    assert_non_null(x.arguments);
    static const char *const others[] = {"1", "3", "4"};
    for (size_t i = 0; i < 3; i++) {
        x = dgm_message_approval(a, &m, dgm_str_from(others[i]));
        assert_int_equal(x.decision, DGM_REJECTED);
        check_str(x.reason, "all");
        assert_true(dgm_str_eq(x.id, dgm_str_from(others[i])));
    }
    m.parts = (dgm_parts){&parts[2], 1}; /* names another request: this one is still open */
    assert_int_equal(dgm_message_approval(a, &m, DGM_STR("1")).decision, DGM_UNDECIDED);
    m.parts = (dgm_parts){parts, 1};
    assert_int_equal(dgm_message_approval(a, &m, DGM_STR("1")).decision, DGM_APPROVED);
    parts[0] = text("I do not know whether this is a good idea at all, please explain it first.");
    assert_int_equal(dgm_message_approval(a, &m, DGM_STR("1")).decision, DGM_UNDECIDED);
}

static void decisions_are_written(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_approval x = {.id = DGM_STR("a"), .decision = DGM_REJECTED, .reason = DGM_STR("why")}, back;
    const dgm_json *v = dgm_approval_data(a, &x);
    check_str(dgm_json_text_in(a, v),
              "{\"type\":\"approval\",\"id\":\"a\",\"approved\":false,\"reason\":\"why\"}");
    assert_true(dgm_approval_read(v, &back));
    assert_int_equal(back.decision, DGM_REJECTED);
    x = (dgm_approval){.decision = DGM_APPROVED, .arguments = data(a, "{\"b\":2}").data};
    check_str(dgm_json_text_in(a, dgm_approval_data(a, &x)),
              "{\"type\":\"approval\",\"approved\":true,\"arguments\":{\"b\":2}}");
}

static void questions_are_written_and_read(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_question q = {.text = DGM_STR("Which?"), .choices = data(a, "[\"a\",\"b\"]").data}, back;
    dgm_part part = {.kind = DGM_PART_DATA, .data = dgm_question_data(a, &q)};
    dgm_message m = {.parts = {&part, 1}};
    check_str(dgm_json_text_in(a, part.data),
              "{\"type\":\"question\",\"text\":\"Which?\",\"choices\":[\"a\",\"b\"]}");
    assert_true(dgm_message_question(&m, &back) != NULL);
    check_str(back.text, "Which?");
    assert_non_null(back.choices);
    part = data(a, "{\"type\":\"question\",\"text\":\"x\",\"choices\":[1],\"schema\":[]}");
    assert_true(dgm_message_question(&m, &back) != NULL);
    assert_null(back.choices);
    assert_null(back.schema);
    part = data(a, "{\"type\":\"else\"}");
    assert_false(dgm_message_question(&m, &back) != NULL);
}

static void only_web_addresses_are_links(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auth_request want = {.url = DGM_STR("HTTPS://login.example/x"),
                             .reason = DGM_STR("Sign in")},
                     got;
    dgm_part part = {.kind = DGM_PART_DATA, .data = dgm_auth_request_data(a, &want)};
    dgm_message m = {.parts = {&part, 1}};
    assert_true(dgm_message_auth_request(&m, &got) != NULL);
    check_str(got.url, "HTTPS://login.example/x");
    part = data(a, "{\"type\":\"auth-request\",\"url\":\"javascript:x\",\"scheme\":\"oauth\"}");
    assert_true(dgm_message_auth_request(&m, &got) != NULL);
    assert_int_equal(got.url.n, 0);
    check_str(got.scheme, "oauth");
}

DGM_TEST_MAIN(dgm_test(requests_are_written_and_read), dgm_test(requests_have_a_limit),
              dgm_test(a_long_argument_is_cut_between_characters),
              dgm_test(only_the_listed_words_decide), dgm_test(data_decides_before_text),
              dgm_test(decisions_are_written), dgm_test(questions_are_written_and_read),
              dgm_test(only_web_addresses_are_links))
