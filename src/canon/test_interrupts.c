/* test_interrupts.c - questions as interrupts, and back. */
#include "canon/interrupts.h"
#include "support/check.h"
#include "json/json.h"

#define REQUEST(id, rest) "{\"type\":\"approval-request\",\"id\":\"" id "\"," rest "}"

static dgm_part data(dgm_arena *a, const char *text)
{
    return (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_str_from(text))};
}

static void check_place(const char *id, const char *name, size_t number, const char *task,
                        uint32_t turn)
{
    dgm_interrupt_place place = dgm_interrupt_place_of(dgm_str_from(id));
    check_str(place.id, name);
    assert_int_equal(place.number, number);
    assert_true(dgm_str_eq(place.task_id, dgm_str_from(task)));
    if (*task)
        assert_int_equal(place.turn, turn);
}

static void interrupts_have_the_name_of_their_turn(void **state)
{
    (void)state;
    check_place("0190-ab-2", "0190-ab-2", 0, "0190-ab", 2);
    check_place("0190-ab-2.13", "0190-ab-2", 13, "0190-ab", 2);
    check_place("0190-ab.1", "0190-ab", 1, "", 0);
    check_place("0190-ab", "0190-ab", 0, "", 0);
    check_place("t-1", "t-1", 0, "", 0); /* the first has no number */
    check_place("t-02", "t-02", 0, "", 0);
    check_place("t.0", "t.0", 0, "", 0);
    check_place("t-1234567890", "t-1234567890", 0, "", 0);
    check_place("-2", "-2", 0, "", 0);
    check_place("12", "12", 0, "", 0);
    check_place("", "", 0, "", 0);
}

static void each_request_is_an_interrupt(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part parts[] = {{.kind = DGM_PART_TEXT, .content = DGM_STR("May I?")},
                        data(a, REQUEST("a1", "\"tool\":\"x\",\"arguments\":{\"n\":1}")),
                        data(a, REQUEST("a2", "\"tool\":\"y\",\"call_id\":\"c2\""))};
    dgm_message m = {.role = DGM_ROLE_AGENT,
                     .parts = {parts, 3},
                     .metadata = data(a, "{\"canonical_type\":\"t\",\"own\":1}").data};
    dgm_asking asking = {.message = &m,
                         .state = DGM_STATE_INPUT_REQUIRED,
                         .id = DGM_STR("task"),
                         .turn = 3,
                         .text = DGM_STR("May I?")};
    dgm_canon_interrupts list = dgm_interrupts_of_question(a, &asking);
    assert_int_equal(list.n, 2);
    check_str(list.at[0].id, "task-3.1");
    check_str(list.at[0].reason, "confirmation");
    check_str(list.at[0].message, "May the tool x with {\"n\":1} be called? Answer yes or no.");
    check_str(
        dgm_json_text_in(a, list.at[0].metadata),
        "{\"own\":1,\"approval\":" REQUEST("a1", "\"tool\":\"x\",\"arguments\":{\"n\":1}") "}");
    assert_non_null(dgm_json_get(list.at[0].response_schema, DGM_STR("properties")));
    check_str(list.at[1].id, "task-3.2");
    check_str(list.at[1].reason, "tool_call");
    check_str(list.at[1].tool_call_id, "c2");
    /* back */
    dgm_parts back = dgm_interrupts_parts(a, &list);
    assert_int_equal(back.n, 2);
    check_str(dgm_json_text_in(a, back.at[1].data),
              REQUEST("a2", "\"tool\":\"y\",\"call_id\":\"c2\""));
    check_str(dgm_json_text_in(a, dgm_interrupts_metadata(a, &list)), "{\"own\":1}");
    /* alone: its text is the question */
    m.parts.n = 2;
    asking.turn = 1;
    list = dgm_interrupts_of_question(a, &asking);
    assert_int_equal(list.n, 1);
    check_str(list.at[0].id, "task");
    check_str(list.at[0].message, "May I?");
}

static void questions_have_a_schema(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part part =
        data(a, "{\"type\":\"question\",\"text\":\"Which?\",\"choices\":[\"a\",\"b\"]}");
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_asking asking = {.message = &m,
                         .state = DGM_STATE_INPUT_REQUIRED,
                         .id = DGM_STR("t"),
                         .text = DGM_STR("Which?")};
    dgm_canon_interrupts list = dgm_interrupts_of_question(a, &asking);
    check_str(dgm_json_text_in(a, list.at[0].response_schema),
              "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"enum\":[\"a\","
              "\"b\"]}},\"required\":[\"text\"]}");
    check_str(list.at[0].reason, "input_required");
    check_str(dgm_json_text_in(a, dgm_interrupts_parts(a, &list).at[0].data),
              "{\"type\":\"question\",\"text\":\"Which?\",\"choices\":[\"a\",\"b\"]}");
    part = data(a, "{\"type\":\"auth-request\",\"url\":\"https://sign.in/\"}");
    asking.state = DGM_STATE_AUTH_REQUIRED;
    list = dgm_interrupts_of_question(a, &asking);
    check_str(list.at[0].reason, DGM_REASON_AUTH);
    check_str(dgm_json_text_in(a, list.at[0].metadata),
              "{\"auth\":{\"type\":\"auth-request\",\"url\":\"https://sign.in/\"}}");
}

static void other_metadata_of_that_name_stays(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_interrupt it = {.metadata = data(a, "{\"approval\":true,\"auth\":{\"x\":1}}").data};
    dgm_canon_interrupts list = {&it, 1};
    assert_int_equal(dgm_interrupts_parts(a, &list).n, 0);
    check_str(dgm_json_text_in(a, dgm_interrupts_metadata(a, &list)),
              "{\"approval\":true,\"auth\":{\"x\":1}}");
}

static void answers_decide(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const struct {
        const char *payload;
        dgm_decision decision;
    } cases[] = {{"true", DGM_APPROVED},
                 {"false", DGM_REJECTED},
                 {"\"yes\"", DGM_APPROVED},
                 {"\"perhaps\"", DGM_UNDECIDED},
                 {"{\"approved\":true}", DGM_APPROVED},
                 {"{\"approved\":false,\"reason\":\"x\"}", DGM_REJECTED},
                 {"{\"approved\":\"true\"}", DGM_UNDECIDED},
                 {"{}", DGM_UNDECIDED},
                 {"1", DGM_UNDECIDED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_canon_resume r = {.status = DGM_CANON_RESOLVED,
                              .payload = data(a, cases[i].payload).data};
        if (dgm_approval_of_resume(&r).decision != cases[i].decision)
            fail_msg("%s is decided otherwise", cases[i].payload);
        r.status = DGM_CANON_DISMISSED;
        assert_int_equal(dgm_approval_of_resume(&r).decision, DGM_REJECTED);
    }
    dgm_canon_resume edited = {.status = DGM_CANON_RESOLVED,
                               .payload =
                                   data(a, "{\"approved\":true,\"editedArgs\":{\"n\":2}}").data};
    check_str(dgm_json_text_in(a, dgm_approval_of_resume(&edited).arguments), "{\"n\":2}");
    assert_int_equal(dgm_approval_of_resume(&(dgm_canon_resume){0}).decision, DGM_UNDECIDED);
}

DGM_TEST_MAIN(dgm_test(interrupts_have_the_name_of_their_turn),
              dgm_test(each_request_is_an_interrupt), dgm_test(questions_have_a_schema),
              dgm_test(other_metadata_of_that_name_stays), dgm_test(answers_decide))
