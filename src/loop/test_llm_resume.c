/* test_llm_resume.c - the agent loop after the end of its process: what is repeated, what is not, what is read back. */
#include "loop/test_llm.h"

static const dgm_llm_tool tools[] = {{.name = {"now", 3}},
                                     {.name = {"get", 3}, .is_idempotent = true},
                                     {.name = {"rm", 2}, .needs_approval = true},
                                     {.name = {"ask_user", 8}, .kind = DGM_LLM_TOOL_ASK_USER}};
#define TOOLS .tools = {tools, 4}

static struct bench bench_with_calls(dgm_llm_options options, const char *one, const char *two)
{
    struct bench b = bench_new(options);
    feed_start(&b, "hi");
    feed_call(&b, "a", one, "{}");
    if (two)
        feed_call(&b, "b", two, "{}");
    feed_stop(&b);
    return b;
}

static void a_model_call_restarts_its_artifact(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "now", NULL);
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "x");
    feed_text(&b, "Half of a sen");
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    assert_true(has_line(&b, "llm-call 2\nMODEL 0/0: user hi | agent "));
    skip_lines(&b);
    feed_text(&b, "A whole sentence.");
    feed_stop(&b);
    check_lines(&b, "answer-2 = A whole sentence.", "answer-2 +  last", "checkpoint 2",
                "completed A whole sentence.", "END completed");
    assert_int_equal(dgm_fold_task(b.fold)->artifacts.n, 1);
    bench_done(&b);
}

static void a_stale_artifact_is_closed_in_any_case(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "now", NULL);
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "x");
    feed_text(&b, "Half");
    kill_and_resume(&b, NULL);
    skip_lines(&b);
    feed_stop(&b); /* the second time the model has no text */
    check_lines(&b, "answer-2 =  last", "checkpoint 2", "completed", "END completed");
    bench_done(&b);

    b = bench_with_calls((dgm_llm_options){TOOLS}, "now", NULL);
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "x");
    feed_text(&b, "Half");
    kill_and_resume(&b, NULL);
    skip_lines(&b);
    feed(&b, DGM_LLM_CANCEL);
    check_lines(&b, "STOP MODEL", "answer-2 = Half last", "canceled", "END canceled");
    bench_done(&b);
}

static void a_start_again_does_not_repeat_the_state(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    feed_text(&b, "Half");
    skip_lines(&b);
    dgm_llm_loop_free(b.loop); /* nothing was saved */
    b.loop = dgm_llm_loop_new(&b.options);
    dgm_llm_start s = start_of(&b, user_message(&b, "hi", NULL));
    s.task = dgm_fold_task(b.fold);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_START, .start = s});
    check_lines(&b, "llm-call 1", "MODEL 0/0: user hi");
    feed_text(&b, "All");
    check_lines(&b, "answer-1 = All");
    bench_done(&b);
}

static void a_tool_with_an_unknown_outcome_is_not_repeated(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "now", NULL);
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    assert_true(has_line(&b, "tool-complete a failed The outcome of this call is unknown"));
    assert_true(has_line(&b, "\nMODEL 0/0: "));
    assert_false(has_line(&b, "RUN"));
    bench_done(&b);
}

static void an_idempotent_tool_is_repeated_with_its_key(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "get", NULL);
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "working", "llm-call 1", "MODEL 0/0: user hi",
                "message agent {'tool_calls':[{'call_id':'a','name':'get','arguments':{}}]}",
                "tool-start get a {}", "SAVE", "COMMIT", "RUN get t-t1-0 {}");
    kill_and_resume(&b, NULL);
    check_lines(&b, "SAVE", "COMMIT"); /* the log has its start already */
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "RUN get t-t1-0 again {}");
    for (int i = 0; i < 2; i++) {
        step(&b, (dgm_llm_event){.kind = DGM_LLM_TOOL_UNKNOWN, .call_id = DGM_STR("a")});
        feed(&b, DGM_LLM_COMMITTED);
    }
    skip_lines(&b);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_TOOL_UNKNOWN, .call_id = DGM_STR("a")});
    assert_true(has_line(&b, "outcome of this call is unknown")); /* not for ever */
    bench_done(&b);
}

static void a_result_in_the_log_is_used(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "now", "now");
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "noon");
    skip_lines(&b);
    kill_and_resume(&b, NULL); /* the state was saved before the result came */
    assert_true(has_line(&b,
                         "| user {'tool_results':[{'call_id':'a','name':'now','output':'noon'}]} "
                         "{'tool_results':[{'call_id':'b','name':'now','output':'The outcome"));
    bench_done(&b);
}

/* The log has the error of a wrong call, of a model turn that was lost; the next turn has a call of the same id. */
static void an_error_of_a_lost_turn_is_not_a_result(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "now", NULL);
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "x"); /* iteration 2 is saved */
    dgm_str saved = dgm_arena_dup(b.arena, dgm_buf_str(&b.saved));
    feed_call(&b, "c", "now", "[]");
    feed_stop(&b);
    dgm_buf_clear(&b.saved);
    dgm_buf_add_str(&b.saved, saved); /* iteration 3 is not */
    kill_and_resume(&b, NULL);
    feed_call(&b, "c", "get", "{}");
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    feed(&b, DGM_LLM_COMMITTED);
    assert_true(has_line(&b, "RUN get t-t2-0 again {}\n"));
    bench_done(&b);
}

static void calls_that_had_not_started_are_started(void **state)
{
    struct bench b =
        bench_with_calls((dgm_llm_options){TOOLS, .limits = {.parallel_tools = 1}}, "now", "now");
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    feed(&b, DGM_LLM_COMMITTED);
    assert_true(has_line(&b, "tool-start now b {}\nSAVE\nCOMMIT\nRUN now t-t1-1 {}\n"));
    bench_done(&b);
}

static void a_question_is_asked_again_with_the_same_id(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "rm", NULL);
    dgm_message *yes = user_message(&b, "yes", NULL);
    (void)state;
    dgm_str id = dgm_arena_dup(b.arena, dgm_fold_task(b.fold)->status.message->message_id);
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    assert_true(has_line(&b, "input-required May the tool rm be called?"));
    check_same(dgm_fold_task(b.fold)->status.message->message_id, id);
    skip_lines(&b);
    kill_and_resume(&b, yes); /* the next turn, in another process */
    check_lines(&b, "working", "tool-start rm a {}", "SAVE", "COMMIT");
    kill_and_resume(&b, yes); /* the answer counts once */
    assert_true(has_line(&b, "The outcome of this call is unknown"));
    bench_done(&b);
}

static void a_queued_message_survives(void **state)
{
    struct bench b = bench_new((dgm_llm_options){0});
    (void)state;
    feed_start(&b, "hi");
    feed_message(&b, "and this", NULL);
    skip_lines(&b);
    kill_and_resume(&b, NULL);
    feed_text(&b, "One.");
    feed_stop(&b);
    assert_true(has_line(&b, "MODEL 0/0: user hi | agent One. | user and this\n"));
    bench_done(&b);
}

static void the_opaque_part_of_a_turn_survives(void **state)
{
    struct bench b = bench_new((dgm_llm_options){TOOLS});
    (void)state;
    feed_start(&b, "hi");
    feed_call(&b, "a", "get", "{}");
    feed_end(&b, (dgm_llm_end){.opaque = DGM_STR("{\"signature\":\"abc\"}")});
    assert_non_null(strstr(dgm_arena_dup(b.arena, dgm_buf_str(&b.saved)).p,
                           "\"dragoman:model\":{\"signature\":\"abc\"}"));
    kill_and_resume(&b, NULL);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "a", "x");
    assert_true(has_line(&b, "+metadata |"));
    bench_done(&b);
}

/* ---- texts that are not ours ------------------------------------------------------------------------------------- */

#define DONE_WITHOUT_OUTPUT                                                                        \
    "{\"version\":1,\"phase\":\"tools\",\"calls\":[{\"id\":\"a\",\"state\":\"done\",\"kind\":"     \
    "\"server\","                                                                                  \
    "\"arguments\":{}}]}"

static void an_invalid_text_is_not_loaded(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "nonsense",
        "{\"version\":2,\"phase\":\"model\"}",
        "{\"version\":1,\"phase\":\"asleep\"}",
        "{\"version\":1,\"phase\":\"model\",\"messages\":[{\"role\":1}]}",
        "{\"version\":1,\"phase\":\"tools\",\"calls\":[{\"id\":\"a\",\"state\":\"ready\"}]}",
        DONE_WITHOUT_OUTPUT};
    dgm_llm_options options = {0};
    dgm_llm_loop *loop = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_err err = {0};
        assert_int_equal(dgm_llm_loop_load(dgm_str_from(texts[i]), &options, &loop, &err),
                         DGM_BAD_PARAMS);
        assert_null(loop);
    }
}

static void ignore_action(void *arg, const dgm_llm_action *action)
{
    (void)arg;
    (void)action;
}

static void step_through(struct bench *b, dgm_llm_loop *loop)
{
    dgm_message *yes = user_message(b, "yes", NULL);
    const dgm_llm_event events[] = {
        {.kind = DGM_LLM_RESUMED, .start = {.message = yes}},
        {.kind = DGM_LLM_COMMITTED},
        {.kind = DGM_LLM_TOOL_DONE, .result = {.call_id = DGM_STR("a"), .text = DGM_STR("x")}},
        {.kind = DGM_LLM_MESSAGE, .message = user_message(b, "no", NULL)},
        {.kind = DGM_LLM_MODEL_END, .end = {0}},
        {.kind = DGM_LLM_CANCEL},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        dgm_llm_loop_step(loop, &events[i], (dgm_llm_sink){ignore_action, NULL});
    if (dgm_llm_loop_state(loop) != DGM_STATE_SUBMITTED)
        assert_true(dgm_state_is_terminal(dgm_llm_loop_state(loop)));
}

/* Whatever is cut off or changed: it loads or it does not, and a loop that loads can be stepped. */
static void a_damaged_text_does_no_harm(void **state)
{
    struct bench b = bench_with_calls((dgm_llm_options){TOOLS}, "rm", "ask_user");
    char *text = dgm_xmalloc(b.saved.n);
    unsigned seed = 1;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t n = b.saved.n;
        dgm_llm_loop *loop = NULL;
        memcpy(text, b.saved.p, n);
        seed = seed * 1103515245 + 12345;
        text[(seed >> 8) % n] = "{}[]\",:0a"[(seed >> 4) % 9];
        if (dgm_llm_loop_load((dgm_str){text, n}, &b.options, &loop, NULL))
            continue;
        step_through(&b, loop);
        dgm_llm_loop_free(loop);
    }
    free(text);
    bench_done(&b);
}

DGM_TEST_MAIN(dgm_test_holds(a_model_call_restarts_its_artifact, "R002-32"),
              dgm_test(a_stale_artifact_is_closed_in_any_case),
              dgm_test(a_start_again_does_not_repeat_the_state),
              dgm_test(a_tool_with_an_unknown_outcome_is_not_repeated),
              dgm_test(an_idempotent_tool_is_repeated_with_its_key),
              dgm_test(a_result_in_the_log_is_used),
              dgm_test(an_error_of_a_lost_turn_is_not_a_result),
              dgm_test(calls_that_had_not_started_are_started),
              dgm_test(a_question_is_asked_again_with_the_same_id),
              dgm_test(a_queued_message_survives), dgm_test(the_opaque_part_of_a_turn_survives),
              dgm_test(an_invalid_text_is_not_loaded), dgm_test(a_damaged_text_does_no_harm))
