/* test_openai_ends.c - how runs end, as both of OpenAI's APIs tell it. */
#include "base/buf.h"
#include "frontend/openai/openai_ends.h"
#include "support/check.h"

static void check_state(dgm_canon_event e, const char *want)
{
    assert_string_equal(openai_state_of(&e), want);
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
    openai_end_note(NULL, &end, e); /* the exchange has the texts of failures */
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
    assert_int_equal(openai_ask(&none, &e, (dgm_canon_sink){keep_text, &b}), DGM_OK);
    check_str(b,
              "TEXT_MESSAGE_START \nTEXT_MESSAGE_CONTENT The agent needs credentials before it can "
              "go on.\nTEXT_MESSAGE_END \n");
    dgm_buf_done(&b);
    assert_true(
        openai_is_our_question(DGM_STR("The agent needs credentials before it can go on.")));
    assert_false(openai_is_our_question(DGM_STR("Who?")));
    e = finished((dgm_canon_outcome){.kind = DGM_CANON_SUCCESS});
    assert_false(lacks_question(&e));
}

DGM_TEST_MAIN(dgm_test(states_of_tasks), dgm_test(who_waits_without_a_word_asks))
