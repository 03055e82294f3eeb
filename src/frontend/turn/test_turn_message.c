/* test_turn_message.c - what of a request's messages an agent is sent. */
#include "frontend/turn/turn_int.h"
#include "model/calls.h"
#include "model/conversation.h"
#include "model/form.h"
#include "support/check.h"
#include "wire/agui/agui.h"

struct env {
    dgm_arena *a;
    dgm_canon_input input;
    dgm_ask ask;
    struct cut cut;
};

static struct env read_input(const char *text)
{
    struct env e = {.a = dgm_arena_new()};
    dgm_err err = {0};
    dgm_reader r = {.arena = e.a, .err = &err};
    yyjson_val *v = dgm_json_parse_trusted(e.a, dgm_str_from(text));
    if (dgm_agui_read_input(&r, v, NULL, &e.input))
        fail_msg("%s at %s", err.msg, err.at);
    e.cut = dgm_cut_messages(e.a, &e.input.messages);
    return e;
}

#define INPUT(messages, more)                                                                      \
    "{\"threadId\":\"t\",\"runId\":\"r\",\"messages\":[" messages "]" more "}"
#define SAYS(role, id, text) "{\"role\":\"" role "\",\"id\":\"" id "\",\"content\":\"" text "\"}"

/* The parts as JSON. */
static void check_parts(const char *text, bool with_history, const char *parts)
{
    struct env e = read_input(text);
    dgm_message m;
    dgm_err err = {0};
    dgm_buf b;
    e.ask.input = &e.input;
    if (dgm_make_message(e.a, &e.ask, &e.cut, with_history, &m, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(m.role, DGM_ROLE_USER);
    m.message_id = DGM_STR("-");
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_shape_write(&w, &dgm_form_message, &m);
    dgm_str wanted =
        dgm_arena_printf(e.a, "{\"messageId\":\"-\",\"role\":\"ROLE_USER\",\"parts\":[%s]}", parts);
    assert_string_equal(dgm_arena_dup(e.a, dgm_buf_str(&b)).p, wanted.p);
    dgm_buf_done(&b);
    dgm_arena_free(e.a);
}

static void messages_after_the_last_answer_are_sent(void **state)
{
    (void)state;
    check_parts(INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS(
                          "user", "3", "c") "," SAYS("user", "4", "d"),
                      ""),
                false, "{\"text\":\"c\"},{\"text\":\"d\"}");
}

static void what_came_before_can_go_in_front(void **state)
{
    (void)state;
    check_parts(INPUT(SAYS("system", "0", "s") "," SAYS("user", "1", "a") "," SAYS(
                          "assistant", "2", "b") "," SAYS("user", "3", "c"),
                      ""),
                true,
                "{\"text\":\"user: a\\nassistant: b\\n\",\"metadata\":{\"dragoman:part\":"
                "\"transcript\"}},{\"text\":\"c\"}");
    check_parts(INPUT(SAYS("user", "3", "c"), ""), true, "{\"text\":\"c\"}"); /* nothing did */
}

static void what_came_before_is_messages_for_agents_that_get_a_history(void **state)
{
    struct env e = read_input(INPUT(
        SAYS("system", "0", "s") "," SAYS(
            "user", "1",
            "a") ","
                 "{\"role\":\"assistant\",\"id\":\"2\",\"toolCalls\":[{\"id\":\"c1\",\"type\":"
                 "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
                 "{\"role\":\"tool\",\"id\":\"3\",\"toolCallId\":\"c1\",\"content\":\"42\"}," SAYS(
                     "assistant", "4", "b") "," SAYS("user", "5", "c"),
        ""));
    static const dgm_turn_agent agent = {.gets_history = true};
    dgm_message m;
    (void)state;
    e.ask.input = &e.input;
    e.ask.agent = &agent;
    assert_int_equal(dgm_make_message(e.a, &e.ask, &e.cut, true, &m, NULL), DGM_OK);
    assert_int_equal(m.parts.n, 2);
    check_str(m.parts.at[1].content, "c");
    assert_true(dgm_message_has_transcript(&m));
    dgm_messages before = dgm_message_transcript(e.a, &m);
    static const char *const ids[] = {"1", "2", "3", "4"};
    assert_int_equal(before.n, 4); /* instructions are metadata */
    for (size_t i = 0; i < 4; i++) {
        check_bytes_(before.at[i].message_id.p, before.at[i].message_id.n, ids[i], 1, __FILE__,
                     __LINE__);
        assert_int_equal(before.at[i].role, i % 2 ? DGM_ROLE_AGENT : DGM_ROLE_USER);
    }
    assert_true(dgm_message_has(&before.at[1], DGM_CALLS));
    assert_true(dgm_message_has(&before.at[2], DGM_RESULTS));
    dgm_arena_free(e.a);
}

static void results_come_first_with_the_names_of_their_calls(void **state)
{
    (void)state;
    check_parts(
        INPUT("{\"role\":\"assistant\",\"id\":\"1\",\"toolCalls\":[{\"id\":\"c1\",\"type\":"
              "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
              "{\"role\":\"user\",\"id\":\"2\",\"content\":\"and?\"},"
              "{\"role\":\"tool\",\"id\":\"3\",\"toolCallId\":\"c1\",\"content\":\"42\"},"
              "{\"role\":\"tool\",\"id\":\"4\",\"toolCallId\":\"c2\",\"content\":\"\",\"error\":"
              "\"no\"}",
              ""),
        false,
        "{\"data\":{\"tool_results\":[{\"call_id\":\"c1\",\"name\":\"f\",\"output\":\"42\"},"
        "{\"call_id\":\"c2\",\"output\":{\"error\":\"no\"}}]}},{\"text\":\"and?\"}");
}

static void answers_to_interrupts_are_words_or_data(void **state)
{
    (void)state;
    check_parts(INPUT("",
                      ",\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\",\"payload\":"
                      "\"yes\"},{\"interruptId\":\"k\",\"status\":\"resolved\",\"payload\":"
                      "{\"approved\":false}},{\"interruptId\":\"l\",\"status\":\"cancelled\"}]"),
                false,
                "{\"text\":\"yes\"},{\"data\":{\"approved\":false}},"
                "{\"data\":{\"interrupt_id\":\"l\",\"status\":\"cancelled\"}}");
}

static void nothing_to_answer_is_refused(void **state)
{
    static const char *const texts[] = {
        INPUT("", ""),
        INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b"), ""),
        INPUT(SAYS("system", "1", "a"), ""),
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct env e = read_input(texts[i]);
        dgm_message m;
        dgm_err err = {0};
        e.ask.input = &e.input;
        assert_int_equal(dgm_make_message(e.a, &e.ask, &e.cut, true, &m, &err), DGM_BAD_PARAMS);
        assert_string_equal(err.at, "/messages");
        dgm_arena_free(e.a);
    }
}

static void what_only_some_protocols_have_is_metadata(void **state)
{
    struct env e = read_input(
        INPUT(SAYS("system", "0", "be kind") "," SAYS("developer", "1",
                                                      "be brief") "," SAYS("user", "2", "hi"),
              ",\"state\":{\"n\":1},\"tools\":[{\"name\":\"f\",\"description\":\"does\","
              "\"parameters\":{\"type\":\"object\"}},{\"name\":\"g\",\"description\":\"\"}],"
              "\"context\":[{\"description\":\"d\",\"value\":\"v\"}]"));
    dgm_buf b;
    (void)state;
    e.ask.input = &e.input;
    e.ask.metadata = dgm_json_parse_trusted(e.a, DGM_STR("{\"mine\":true}"));
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, dgm_make_metadata(e.a, &e.ask));
    assert_string_equal(
        dgm_arena_dup(e.a, dgm_buf_str(&b)).p,
        "{\"mine\":true,\"dragoman:tools\":[{\"name\":\"f\",\"description\":\"does\","
        "\"parameters\":"
        "{\"type\":\"object\"}},{\"name\":\"g\"}],\"dragoman:context\":[{\"description\":\"d\","
        "\"value\":\"v\"}],\"dragoman:state\":{\"n\":1},\"dragoman:instructions\":\"be "
        "kind\\n\\nbe "
        "brief\"}");
    dgm_buf_done(&b);
    dgm_arena_free(e.a);
}

static void a_history_is_extended_or_not(void **state)
{
    static const struct {
        const char *sent, *stored;
        bool extends;
    } rows[] = {
        {INPUT(SAYS("user", "1", "new"), ""), INPUT(SAYS("user", "1", "old"), ""), true},
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b"), ""), true},
        {INPUT(SAYS("user", "1", "A") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b"), ""), false},
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "x", "a"), ""), false},
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b") "," SAYS("user", "z", "c"),
               ""),
         true}, /* it failed, and is tried again */
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "w", "a") "," SAYS("user", "x", "a") "," SAYS("assistant", "y", "b"),
               ""),
         true}, /* so did this */
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b") "," SAYS(
                   "user", "z", "c") "," SAYS("assistant", "z", "d"),
               ""),
         false},
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2",
                                               "x b [f](u) c y") "," SAYS("user", "3", "c"),
               ""),
         INPUT(
             SAYS("user", "x", "a") "," SAYS("assistant", "y", "b") "," SAYS("assistant", "z", "c"),
             ""),
         true}, /* links, and several texts as one */
        {INPUT(SAYS("user", "1", "a") "," SAYS("assistant", "2", "c b") "," SAYS("user", "3", "c"),
               ""),
         INPUT(
             SAYS("user", "x", "a") "," SAYS("assistant", "y", "b") "," SAYS("assistant", "z", "c"),
             ""),
         false},
        {INPUT(SAYS("user", "1", "a") "," SAYS("user", "1", "n") "," SAYS("assistant", "2", "b"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b"), ""), false},
        {INPUT(SAYS("system", "0", "s") "," SAYS("user", "1", "a") "," SAYS("assistant", "2", "b"),
               ""),
         INPUT(SAYS("user", "x", "a") "," SAYS("assistant", "y", "b"), ""), true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct env sent = read_input(rows[i].sent), stored = read_input(rows[i].stored);
        if (dgm_extends_history(sent.a, &sent.input.messages, &sent.cut, &stored.input.messages) !=
            rows[i].extends)
            fail_msg("row %zu", i);
        dgm_arena_free(sent.a);
        dgm_arena_free(stored.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(messages_after_the_last_answer_are_sent),
        dgm_test(what_came_before_can_go_in_front),
        dgm_test(what_came_before_is_messages_for_agents_that_get_a_history),
        dgm_test(results_come_first_with_the_names_of_their_calls),
        dgm_test(answers_to_interrupts_are_words_or_data),
        dgm_test(nothing_to_answer_is_refused),
        dgm_test(what_only_some_protocols_have_is_metadata),
        dgm_test(a_history_is_extended_or_not),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
