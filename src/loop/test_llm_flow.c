/* test_llm_flow.c - the agent loop: the flow of document 002, text, ends, limits, retries, compaction. */
#include "loop/test_llm.h"

static const dgm_llm_tool tools[] = {{.name = {"now", 3}},
                                     {.name = {"rm", 2}, .is_forbidden = true}};
#define TOOLS .tools = {tools, 2}

/* ---- the flow ---------------------------------------------------------------------------------------------------- */

static void a_text_is_one_artifact_and_the_final_message(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    check_lines(&b, "working", "llm-call 1", "MODEL 0/0: user hi");
    feed_text(&b, "Hel");
    feed_text(&b, "");
    feed_text(&b, "lo");
    feed_end(&b, (dgm_llm_end){.input_tokens = 3,
                               .output_tokens = 2,
                               .usage = dgm_json_parse_trusted(b.arena, DGM_STR("{\"n\":5}"))});
    check_lines(&b, "answer-1 = Hel", "answer-1 + lo", "usage {'n':5}", "answer-1 +  last",
                "checkpoint 1", "completed Hello", "END completed");
    assert_int_equal(dgm_llm_loop_state(b.loop), DGM_STATE_COMPLETED);
    feed_text(&b, "more");
    feed_message(&b, "more", NULL);
    feed(&b, DGM_LLM_CANCEL);
    check_nothing(&b);
    bench_done(&b);
}

static void a_turn_with_a_tool_follows_the_documents_flow(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS});
    (void)state;
    feed_start(&b, "what time is it?");
    skip_lines(&b);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_MODEL_REASONING, .text = DGM_STR("hm")});
    feed_text(&b, "Let me see.");
    feed_call(&b, "x1", "now", "{'zone':'UTC'}");
    feed_end(&b, (dgm_llm_end){.opaque = DGM_STR("{\"sig\":1}")});
    check_lines(&b, "reasoning hm", "answer-1 = Let me see.", "answer-1 +  last",
                "message agent Let me see. "
                "{'tool_calls':[{'call_id':'x1','name':'now','arguments':{'zone':'UTC'}}]}",
                "tool-start now x1 {'zone':'UTC'}", "SAVE", "COMMIT");
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "RUN now t-t1-0 {'zone':'UTC'}");
    feed_done(&b, "x1", "12:00");
    check_lines(
        &b, "tool-complete x1 ok '12:00'",
        "message agent {'tool_results':[{'call_id':'x1','name':'now','output':'12:00'}]}",
        "checkpoint 1", "SAVE", "llm-call 2",
        "MODEL 0/0: user what time is it? | agent Let me see. "
        "{'tool_calls':[{'call_id':'x1','name':'now','arguments':{'zone':'UTC'}}]} +metadata"
        " | user {'tool_results':[{'call_id':'x1','name':'now','output':'12:00'}]}");
    feed_text(&b, "Noon.");
    feed_stop(&b);
    check_lines(&b, "answer-2 = Noon.", "answer-2 +  last", "message agent Noon.", "checkpoint 2",
                "completed Let me see.\n\nNoon.", "END completed");
    bench_done(&b);
}

static void a_value_and_files_reach_the_model_and_an_artifact(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS});
    dgm_part parts[] = {{.kind = DGM_PART_TEXT, .content = DGM_STR("a cat")},
                        {.kind = DGM_PART_URL, .content = DGM_STR("https://x/cat.png")}};
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    step(&b, (dgm_llm_event){
                 .kind = DGM_LLM_TOOL_DONE,
                 .result = {.call_id = DGM_STR("a"),
                            .value = dgm_json_parse_trusted(b.arena, DGM_STR("{\"n\":1}"))}});
    check_lines(&b, "tool-complete a ok {'n':1}",
                "message agent {'tool_results':[{'call_id':'a','name':'now','output':{'n':1}}]}");
    step(&b, (dgm_llm_event){.kind = DGM_LLM_TOOL_DONE,
                             .result = {.call_id = DGM_STR("b"), .parts = {parts, 2}}});
    assert_true(has_line(&b, "t-files1-1 = <https://x/cat.png> last\n"));
    assert_true(has_line(&b, "'output':'a cat'}]} <https://x/cat.png>\n"));
    bench_done(&b);
}

static void a_refusal_is_the_answer(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    skip_lines(&b);
    feed_end(&b, (dgm_llm_end){.refusal = DGM_STR("I cannot.")});
    check_lines(&b, "answer-1 = I cannot.", "answer-1 +  last", "checkpoint 1",
                "completed I cannot.", "END completed");
    bench_done(&b);
}

static void a_text_that_was_cut_completes_with_its_reason(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    feed_text(&b, "One, two");
    skip_lines(&b);
    feed_end(&b, (dgm_llm_end){.finish = DGM_LLM_LENGTH});
    check_lines(&b, "answer-1 +  last", "checkpoint 1",
                "completed One, two metadata {'finish_reason':'length'}", "END completed");
    bench_done(&b);
}

static void the_history_comes_before_the_message(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    dgm_llm_start s = start_of(&b, user_message(&b, "and now?", NULL));
    (void)state;
    s.history = (dgm_messages){user_message(&b, "before", NULL), 1};
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    check_lines(&b, "working", "llm-call 1", "MODEL 0/0: user before | user and now?");
    bench_done(&b);
}

static void a_start_is_accepted_once(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    dgm_llm_event start = {.kind = DGM_LLM_START, .start = {.task_id = DGM_STR("t")}};
    dgm_llm_event resumed = {.kind = DGM_LLM_RESUMED};
    dgm_llm_sink sink = {on_bench_action, &b};
    (void)state;
    assert_int_equal(dgm_llm_loop_step(b.loop, &start, sink), DGM_BAD_PARAMS); /* no message */
    assert_int_equal(dgm_llm_loop_step(b.loop, &resumed, sink), DGM_BAD_PARAMS);
    assert_int_equal(dgm_llm_loop_state(b.loop), DGM_STATE_SUBMITTED);
    feed(&b, DGM_LLM_CANCEL);
    check_nothing(&b);
    feed_start(&b, "hi");
    start.start.message = user_message(&b, "again", NULL);
    assert_int_equal(dgm_llm_loop_step(b.loop, &start, sink), DGM_BAD_PARAMS);
    bench_done(&b);
}

/* ---- the other ends ---------------------------------------------------------------------------------------------- */

static void a_failure_after_text_closes_the_artifact_and_fails(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.retries = 3, .upstreams = 2});
    (void)state;
    feed_start(&b, "hi");
    feed_text(&b, "Hel");
    skip_lines(&b);
    feed_failed(&b, "Connection timeout", true, -1);
    check_lines(&b, "answer-1 +  last",
                "failed Connection timeout metadata {'error':'Connection timeout'}", "END failed");
    bench_done(&b);
}

static void a_cancel_stops_the_model_and_closes_the_artifact(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    feed_text(&b, "Hel");
    skip_lines(&b);
    feed(&b, DGM_LLM_CANCEL);
    check_lines(&b, "STOP MODEL", "answer-1 +  last", "canceled", "END canceled");
    bench_done(&b);
}

static void a_cancel_stops_the_tools(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .limits = {.parallel_tools = 1}});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed(&b, DGM_LLM_CANCEL);
    check_lines(&b, "STOP a", "tool-complete a failed The call was stopped.", "canceled",
                "END canceled");
    bench_done(&b);
}

static void a_cancel_before_the_commit_starts_no_tool(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_stop(&b);
    skip_lines(&b);
    feed(&b, DGM_LLM_CANCEL);
    check_lines(&b, "tool-complete a failed The call was stopped.", "canceled", "END canceled");
    feed(&b, DGM_LLM_COMMITTED);
    check_nothing(&b);
    bench_done(&b);
}

static void the_time_limit_fails_the_run(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    skip_lines(&b);
    feed(&b, DGM_LLM_TIME_UP);
    check_lines(&b, "STOP MODEL",
                "failed The run exceeded its time limit. metadata {'error':'The run exceeded its "
                "time limit.'}",
                "END failed");
    bench_done(&b);
}

static void the_content_filter_rejects_before_output_and_fails_after_it(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.retries = 3});
    (void)state;
    feed_start(&b, "hi");
    skip_lines(&b);
    feed_end(&b, (dgm_llm_end){.finish = DGM_LLM_CONTENT_FILTER});
    check_lines(&b,
                "rejected The content filter of the model rejected the request. metadata "
                "{'error':'The content filter of the model rejected the request.'}",
                "END rejected");
    bench_done(&b);

    b = bench_new((dgm_llm_options){.retries = 3});
    feed_start(&b, "hi");
    feed_text(&b, "Hm");
    skip_lines(&b);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_MODEL_FAILED,
                             .failure = {.is_retryable = true, .is_content_filter = true}});
    assert_true(has_line(&b, "failed The content filter of the model stopped the answer."));
    bench_done(&b);
}

static void a_forbidden_tool_rejects_the_task(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "rm", "{}");
    skip_lines(&b);
    feed_stop(&b);
    check_lines(&b,
                "rejected The model called the tool 'rm', which is forbidden. metadata "
                "{'error':'The model called the tool \\'rm\\', which is forbidden.'}",
                "END rejected");
    bench_done(&b);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void a_message_over_the_limit_is_rejected(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.limits = {.input_bytes = 100}});
    char text[101];
    (void)state;
    memset(text, 'x', 100);
    text[100] = 0;
    feed_start(&b, text);
    assert_true(has_line(&b, "rejected The message is too large: it has"));
    assert_true(has_line(&b, "END rejected"));
    assert_false(has_line(&b, "MODEL"));
    bench_done(&b);
}

static void a_long_answer_is_stopped(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.limits = {.output_bytes = 4}});
    (void)state;
    feed_start(&b, "hi");
    feed_text(&b, "1234");
    skip_lines(&b);
    feed_text(&b, "5");
    check_lines(&b, "STOP MODEL", "answer-1 +  last",
                "failed The answer exceeds the limit of 4 bytes. metadata {'error':'The answer "
                "exceeds the limit of 4 bytes.'}",
                "END failed");
    bench_done(&b);
}

static void call_now(struct bench *b)
{
    feed_call(b, NULL, "now", "{}");
    feed_stop(b);
    feed(b, DGM_LLM_COMMITTED);
}

static void the_iterations_have_a_limit(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .limits = {.iterations = 2}});
    (void)state;
    feed_start(&b, "hi");
    call_now(&b);
    feed_done(&b, "call_1_0", "x");
    call_now(&b);
    skip_lines(&b);
    feed_done(&b, "call_2_0", "x");
    assert_true(has_line(
        &b, "failed The limit of 2 model calls was reached before the answer was complete."));
    bench_done(&b);
}

static void the_tokens_have_a_limit(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .limits = {.tokens = 100}});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_end(&b, (dgm_llm_end){.input_tokens = 90, .output_tokens = 5, .total_tokens = 100});
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "a", "x");
    assert_true(
        has_line(&b, "failed The limit of 100 tokens was reached before the answer was complete."));
    bench_done(&b);
}

static void a_long_result_is_cut_between_characters(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .limits = {.result_bytes = 4}});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "a", "abc\xc3\xa9xyz");
    assert_true(has_line(&b, "'output':'abc\\n[cut: 3 of 8 bytes are shown]'"));
    bench_done(&b);
}

static void a_state_that_is_too_large_fails_the_task(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .limits = {.state_bytes = 300}});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "now", "{}");
    skip_lines(&b);
    feed_stop(&b);
    assert_true(has_line(&b, "failed The conversation of this task is too long to be stored"));
    assert_false(has_line(&b, "COMMIT"));
    assert_false(has_line(&b, "SAVE"));
    bench_done(&b);
}

/* ---- retries ----------------------------------------------------------------------------------------------------- */

static uint64_t waited(struct bench *b)
{
    uint64_t ms = 0;
    assert_true(has_line(b, "WAIT ")); /* the lines are terminated now */
    const char *wait = strstr(b->lines.p, "WAIT ");
    ms = strtoull(wait + 5, NULL, 10);
    skip_lines(b);
    return ms;
}

static void a_retry_waits_longer_each_time(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.retries = 3, .retry_base_ms = 100});
    static const uint64_t most[] = {100, 200, 400};
    (void)state;
    feed_start(&b, "hi");
    for (size_t i = 0; i < 3; i++) {
        skip_lines(&b);
        feed_failed(&b, "busy", true, -1);
        uint64_t ms = waited(&b);
        assert_in_range(ms, most[i] / 2, most[i]);
        feed_text(&b, "late"); /* of the call that failed */
        check_nothing(&b);
        feed(&b, DGM_LLM_TIMER);
    }
    check_lines(&b, "MODEL 0/3: user hi");
    feed_failed(&b, "busy", true, -1);
    check_lines(&b, "failed busy metadata {'error':'busy'}", "END failed");
    bench_done(&b);
}

static void retry_after_is_respected_up_to_the_cap(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.retries = 3, .upstreams = 2});
    (void)state;
    feed_start(&b, "hi");
    skip_lines(&b);
    feed_failed(&b, "slow down", true, 7000);
    assert_int_equal(waited(&b), 7000);
    feed(&b, DGM_LLM_TIMER);
    skip_lines(&b);
    feed_failed(&b, "come back tomorrow", true, 86400000);
    check_lines(&b, "NOTE upstream 0 failed, the next one is tried: come back tomorrow",
                "MODEL 1/0: user hi");
    bench_done(&b);
}

static void the_next_upstream_is_tried_and_stays(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .upstreams = 2});
    (void)state;
    feed_start(&b, "hi");
    skip_lines(&b);
    feed_failed(&b, "down", true, -1);
    check_lines(&b, "NOTE upstream 0 failed, the next one is tried: down", "MODEL 1/0: user hi");
    call_now(&b);
    skip_lines(&b);
    feed_done(&b, "call_1_0", "x");
    assert_true(has_line(&b, "\nMODEL 1/0: "));
    skip_lines(&b);
    feed_failed(&b, "down, too", false, -1);
    assert_true(has_line(&b, "\nMODEL 0/0: ")); /* each is tried once per call */
    feed_failed(&b, "still down", false, -1);
    assert_true(has_line(&b, "failed still down"));
    bench_done(&b);
}

static void a_cancel_during_the_wait_ends_it(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.retries = 1});
    (void)state;
    feed_start(&b, "hi");
    feed_failed(&b, "busy", true, -1);
    skip_lines(&b);
    feed(&b, DGM_LLM_CANCEL);
    check_lines(&b, "canceled", "END canceled");
    feed(&b, DGM_LLM_TIMER);
    check_nothing(&b);
    bench_done(&b);
}

/* ---- compaction -------------------------------------------------------------------------------------------------- */

static void older_messages_become_a_summary(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS, .compact_tokens = 50});
    dgm_llm_start s = start_of(&b, NULL);
    dgm_message history[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        history[i] = *user_message(&b, i == 0 ? "one" : i == 1 ? "two" : "three", NULL);
    s.history = (dgm_messages){history, 3};
    s.message = user_message(&b, "go", NULL);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    feed_call(&b, "a", "now", "{}");
    feed_end(&b, (dgm_llm_end){.input_tokens = 51});
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "a", "x");
    assert_true(
        has_line(&b, "SUMMARY 0/0: user one | user two | user three | user go | user Summarize"));
    feed_text(&b, "They counted.");
    feed_call(&b, "z", "now", "{}"); /* a summary calls no tools */
    skip_lines(&b);
    feed_end(&b, (dgm_llm_end){.input_tokens = 60});
    check_lines(&b, "checkpoint 2", "SAVE", "llm-call 2",
                "MODEL 0/0: user Summary of the conversation so far:\n\nThey counted. | agent "
                "{'tool_calls':[{'call_id':'a','name':'now','arguments':{}}]} | user "
                "{'tool_results':[{'call_id':'a','name':'now','output':'x'}]}");
    feed_text(&b, "Done.");
    feed_stop(&b);
    assert_true(has_line(&b, "completed Done.\n"));
    bench_done(&b);
}

#define LONG                                                                                       \
    "and all the things that were written before, and before that, and at the very start of it"

/* The newest messages have the result of a call; its call is older than the limit allows, and stays with it. */
static void a_call_and_its_result_stay_together(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.compact_bytes = 400});
    dgm_llm_start s = start_of(&b, NULL);
    dgm_message history[5] = {
        *user_message(&b, "one " LONG, NULL), *user_message(&b, "two", NULL),
        *user_message(&b, NULL, "{'tool_calls':[{'call_id':'k','name':'now','arguments':{}}]}"),
        *user_message(&b, "meanwhile", NULL),
        *user_message(&b, NULL, "{'tool_results':[{'call_id':'k','output':'x'}]}")};
    (void)state;
    history[2].role = DGM_ROLE_AGENT;
    s.history = (dgm_messages){history, 5};
    s.message = user_message(&b, "go", NULL);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    assert_true(has_line(&b, "SUMMARY 0/0: user one " LONG " | user two | user Summarize"));
    bench_done(&b);
}

static void without_a_summary_the_messages_stay(void **state)
{
    struct bench b = bench_new((dgm_llm_options){.compact_bytes = 10});
    dgm_llm_start s = start_of(&b, NULL);
    dgm_message history[2] = {*user_message(&b, "one", NULL), *user_message(&b, "two", NULL)};
    (void)state;
    s.history = (dgm_messages){history, 2};
    s.message = user_message(&b, "go", NULL);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    assert_true(has_line(&b, "SUMMARY 0/0: user one | user two | user Summarize"));
    skip_lines(&b);
    feed_failed(&b, "no", false, -1);
    check_lines(&b, "NOTE the conversation could not be summarized: no", "llm-call 1",
                "MODEL 0/0: user one | user two | user go");
    bench_done(&b);
}

static void a_context_that_is_too_long_is_compacted_once(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    dgm_llm_start s = start_of(&b, NULL);
    dgm_message history[2] = {*user_message(&b, "one", NULL), *user_message(&b, "two", NULL)};
    dgm_llm_event too_long = {.kind = DGM_LLM_MODEL_FAILED,
                              .failure = {.message = DGM_STR("too long"), .is_too_long = true}};
    (void)state;
    s.history = (dgm_messages){history, 2};
    s.message = user_message(&b, "go", NULL);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    step(&b, too_long);
    assert_true(has_line(&b, "SUMMARY 0/0: user one | user two | user Summarize"));
    feed_text(&b, "sum");
    feed_stop(&b);
    assert_true(has_line(&b, "far:\n\nsum | user go\n"));
    step(&b, too_long);
    assert_true(has_line(&b, "failed too long"));
    bench_done(&b);
}

DGM_TEST_MAIN(
    dgm_test_holds(a_text_is_one_artifact_and_the_final_message,
                   "R002-08 R002-09 R002-13 R002-14 R002-15"),
    dgm_test_holds(a_turn_with_a_tool_follows_the_documents_flow,
                   "R002-16 R002-17 R002-18 R002-29"),
    dgm_test(a_value_and_files_reach_the_model_and_an_artifact), dgm_test(a_refusal_is_the_answer),
    dgm_test(a_text_that_was_cut_completes_with_its_reason),
    dgm_test(the_history_comes_before_the_message), dgm_test(a_start_is_accepted_once),
    dgm_test_holds(a_failure_after_text_closes_the_artifact_and_fails, "R002-10 R002-13"),
    dgm_test_holds(a_cancel_stops_the_model_and_closes_the_artifact, "R002-13"),
    dgm_test(a_cancel_stops_the_tools), dgm_test(a_cancel_before_the_commit_starts_no_tool),
    dgm_test(the_time_limit_fails_the_run),
    dgm_test(the_content_filter_rejects_before_output_and_fails_after_it),
    dgm_test(a_forbidden_tool_rejects_the_task), dgm_test(a_message_over_the_limit_is_rejected),
    dgm_test(a_long_answer_is_stopped), dgm_test(the_iterations_have_a_limit),
    dgm_test(the_tokens_have_a_limit), dgm_test(a_long_result_is_cut_between_characters),
    dgm_test(a_state_that_is_too_large_fails_the_task), dgm_test(a_retry_waits_longer_each_time),
    dgm_test(retry_after_is_respected_up_to_the_cap),
    dgm_test(the_next_upstream_is_tried_and_stays), dgm_test(a_cancel_during_the_wait_ends_it),
    dgm_test(older_messages_become_a_summary), dgm_test(a_call_and_its_result_stay_together),
    dgm_test(without_a_summary_the_messages_stay),
    dgm_test(a_context_that_is_too_long_is_compacted_once))
