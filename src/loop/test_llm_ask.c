/* test_llm_ask.c - the agent loop: tool calls that are wrong or many, questions, approvals, the caller's tools, steering. */
#include "loop/test_llm.h"

static const dgm_llm_tool tools[] = {
    {.name = {"now", 3}},
    {.name = {"rm", 2}, .needs_approval = true},
    {.name = {"pick", 4}, .kind = DGM_LLM_TOOL_CALLER},
    {.name = {"desk", 4},
     .kind = DGM_LLM_TOOL_AGENT,
     .agent_name = {"Desk", 4},
     .agent_url = {"https://desk", 12}},
    {.name = {"ask_user", 8}, .kind = DGM_LLM_TOOL_ASK_USER},
    {.name = {"request_auth", 12}, .kind = DGM_LLM_TOOL_REQUEST_AUTH},
};
#define TOOLS .tools = {tools, sizeof tools / sizeof *tools}

static struct bench bench_started(dgm_llm_options options)
{
    struct bench b = bench_new(options);
    feed_start(&b, "hi");
    skip_lines(&b);
    return b;
}

static struct bench bench_with_call(const char *name, const char *args)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    feed_call(&b, "a", name, args);
    feed_stop(&b);
    return b;
}

/* ---- calls that are wrong ---------------------------------------------------------------------------------------- */

static void invalid_arguments_are_reported_to_the_model(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "a", "now", "{'zone':");
    feed_call(&b, "b", "now", "[1]");
    feed_call(&b, "c", "clock", "{}");
    feed_stop(&b);
    assert_true(
        has_line(&b, "'call_id':'a','name':'now','output':'The arguments are not valid JSON"));
    assert_true(has_line(&b, "'output':'The arguments must be a JSON object.','is_error':true"));
    assert_true(
        has_line(&b, "'output':'There is no tool with the name clock. Tools: now, rm, pick"));
    assert_true(has_line(&b, "\nllm-call 2\nMODEL 0/0: "));
    assert_false(has_line(&b, "tool-start"));
    assert_false(has_line(&b, "COMMIT"));
    bench_done(&b);
}

static void arguments_that_were_cut_are_not_run(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "a", "now", "{'zone':'U");
    feed_end(&b, (dgm_llm_end){.finish = DGM_LLM_LENGTH});
    assert_true(
        has_line(&b, "'output':'The arguments were cut off at the limit of output tokens."));
    assert_false(has_line(&b, "COMMIT"));
    bench_done(&b);
}

static bool needs_zone(void *arg, dgm_str tool, const dgm_json *arguments, dgm_arena *a,
                       dgm_str *ret_why)
{
    (void)arg;
    if (dgm_json_get(arguments, DGM_STR("zone")))
        return true;
    *ret_why = dgm_arena_printf(a, "%.*s: /zone is missing", DGM_P(tool));
    return false;
}

static void arguments_are_checked_before_an_approval(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS, .check = needs_zone});
    (void)state;
    feed_call(&b, "a", "rm", "{}");
    feed_stop(&b);
    assert_true(has_line(&b, "'output':'rm: /zone is missing','is_error':true"));
    assert_false(has_line(&b, "input-required"));
    bench_done(&b);
}

static void a_custom_tool_gets_its_input(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    step(&b, (dgm_llm_event){.kind = DGM_LLM_MODEL_CALL,
                             .call = {DGM_STR("a"), DGM_STR("now"), DGM_STR("not json"), true}});
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    assert_true(has_line(&b, "RUN now t-t1-0 {'input':'not json'}"));
    bench_done(&b);
}

static void ids_of_calls_are_unique(void **state)
{
    struct bench b = bench_with_call("now", "{}");
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    feed_done(&b, "a", "x");
    skip_lines(&b);
    feed_call(&b, "a", "now", "{}"); /* as in the turn before */
    feed_call(&b, "", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_stop(&b);
    assert_true(has_line(&b,
                         "tool-start now call_2_0 {}\ntool-start now call_2_1 {}\ntool-start now b "
                         "{}\ntool-start now call_2_3 {}\n"));
    bench_done(&b);
}

static void calls_beyond_the_limit_are_refused(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS, .limits = {.calls_per_iteration = 1}});
    (void)state;
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_stop(&b);
    assert_true(has_line(&b, "'call_id':'b','name':'now','output':'Too many calls at once"));
    assert_true(has_line(&b, "tool-start now a {}\nSAVE\nCOMMIT\n"));
    bench_done(&b);
}

/* ---- parallel tools ---------------------------------------------------------------------------------------------- */

static void tools_run_in_parallel_up_to_the_cap(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS, .limits = {.parallel_tools = 2}});
    (void)state;
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_call(&b, "c", "now", "{}");
    skip_lines(&b);
    feed_stop(&b);
    skip_lines(&b);
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "RUN now t-t1-0 {}", "RUN now t-t1-1 {}");
    feed_done(&b, "b", "2");
    check_lines(&b, "tool-complete b ok '2'",
                "message agent {'tool_results':[{'call_id':'b','name':'now','output':'2'}]}",
                "tool-start now c {}", "SAVE", "COMMIT");
    feed_done(&b, "a", "1");
    skip_lines(&b);
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "RUN now t-t1-2 {}");
    feed_done(&b, "c", "3");
    /* for the model the results are in the order of the calls */
    assert_true(has_line(&b, "| user {'tool_results':[{'call_id':'a','name':'now','output':'1'}]} "
                             "{'tool_results':[{'call_id':'b'"));
    skip_lines(&b);
    feed_done(&b, "c", "again");
    feed_done(&b, "unknown", "x");
    check_nothing(&b);
    bench_done(&b);
}

static void a_sub_agent_is_shown_at_its_start_and_its_end(void **state)
{
    struct bench b = bench_with_call("desk", "{'message':'hi'}");
    (void)state;
    assert_true(has_line(&b, "working {'type':'status-indicator','text':'Calling agent "
                             "Desk','displayAs':'loading','agent':{'name':'Desk','url':'https://"
                             "desk'}}\ntool-start desk a"));
    feed(&b, DGM_LLM_COMMITTED);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_TOOL_DONE,
                             .result = {.call_id = DGM_STR("a"),
                                        .text = DGM_STR("ok"),
                                        .agent_task_id = DGM_STR("t9")}});
    assert_true(has_line(&b,
                         "'text':'Called agent Desk','displayAs':'loading','agent':{'name':'Desk',"
                         "'url':'https://desk','taskId':'t9'}}"));
    bench_done(&b);
}

/* ---- ask_user ---------------------------------------------------------------------------------------------------- */

static void ask_user_waits_for_the_answer(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_text(&b, "A question.");
    feed_call(&b, "a", "ask_user", "{'question':'Which one?'}");
    skip_lines(&b);
    feed_stop(&b);
    check_lines(&b, "answer-1 +  last", "message agent A question.", "SAVE",
                "input-required Which one?", "END input-required");
    assert_int_equal(dgm_llm_loop_state(b.loop), DGM_STATE_INPUT_REQUIRED);
    feed(&b, DGM_LLM_TIME_UP); /* the caller has all the time */
    check_nothing(&b);
    feed_message(&b, "The red one", NULL);
    check_lines(&b, "working", "checkpoint 1", "SAVE", "llm-call 2",
                "MODEL 0/0: user hi | agent A question. {'tool_calls':[{'call_id':'a','name':"
                "'ask_user','arguments':{'question':'Which one?'}}]} | user {'tool_results':[{"
                "'call_id':'a','name':'ask_user','output':'The red one'}]}");
    feed_text(&b, "Red.");
    feed_stop(&b);
    assert_true(has_line(&b, "completed Red.\n")); /* the text of this turn */
    bench_done(&b);
}

static void a_question_may_have_choices_and_a_schema(void **state)
{
    struct bench b = bench_with_call(
        "ask_user", "{'question':'Which?','choices':['x','y'],'schema':{'type':'string'}}");
    (void)state;
    assert_true(has_line(&b, "input-required Which?\n- x\n- y {'type':'question','text':"
                             "'Which?','choices':['x','y'],'schema':{'type':'string'}}\n"));
    feed_message(&b, NULL, "{'choice':'x'}");
    assert_true(has_line(&b, "'output':'{\\'choice\\':\\'x\\'}'"));
    bench_done(&b);
}

static void a_question_without_text_is_an_error_for_the_model(void **state)
{
    struct bench b = bench_with_call("ask_user", "{}");
    (void)state;
    assert_true(has_line(&b, "'output':'The question is missing.','is_error':true"));
    assert_false(has_line(&b, "input-required"));
    bench_done(&b);
}

static void questions_come_one_after_the_other(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "a", "ask_user", "{'question':'One?'}");
    feed_call(&b, "b", "ask_user", "{'question':'Two?'}");
    feed_stop(&b);
    assert_true(has_line(&b, "input-required One?\n"));
    assert_false(has_line(&b, "Two?\nEND"));
    skip_lines(&b);
    feed_message(&b, "1", NULL);
    check_lines(&b, "working", "SAVE", "input-required Two?", "END input-required");
    dgm_message *two = user_message(&b, "2", NULL);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = two});
    assert_true(has_line(&b, "'output':'1'}]} {'tool_results':[{'call_id':'b','name':'ask_user',"
                             "'output':'2'}]}"));
    skip_lines(&b);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = two}); /* twice is harmless */
    check_nothing(&b);
    bench_done(&b);
}

/* ---- request_auth ------------------------------------------------------------------------------------------------ */

static void credentials_never_reach_the_model(void **state)
{
    struct bench b = bench_with_call("request_auth", "{'reason':'Sign in','url':'https://login'}");
    (void)state;
    assert_true(has_line(&b, "auth-required Sign in\nhttps://login {'type':'auth-request',"
                             "'url':'https://login','reason':'Sign in'}\nEND auth-required"));
    skip_lines(&b);
    feed_message(&b, "my password is hunter2", NULL);
    assert_false(has_line(&b, "hunter2"));
    assert_true(has_line(&b, "'output':'The user has answered the request for authentication."));
    assert_false(strstr(dgm_arena_dup(b.arena, dgm_buf_str(&b.saved)).p, "hunter2"));
    bench_done(&b);
}

static void authentication_continues_on_completion(void **state)
{
    struct bench b = bench_with_call("request_auth", "{'reason':'Sign in','scheme':'oauth'}");
    (void)state;
    skip_lines(&b);
    feed_done(&b, "a", "done");
    assert_true(has_line(&b, "working\n"));
    assert_true(has_line(&b, "\nMODEL 0/0: "));
    bench_done(&b);
}

static void an_address_to_sign_in_is_a_web_address(void **state)
{
    struct bench b = bench_with_call("request_auth", "{'reason':'x','url':'javascript:x'}");
    (void)state;
    assert_true(has_line(&b, "'output':'The URL must start with https:// or http://.'"));
    assert_false(has_line(&b, "auth-required"));
    bench_done(&b);
}

/* ---- questions of tools ------------------------------------------------------------------------------------------ */

static void a_tool_may_ask(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "a", "now", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_stop(&b);
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    step(&b, (dgm_llm_event){
                 .kind = DGM_LLM_TOOL_ASKS,
                 .question = {.call_id = DGM_STR("a"),
                              .text = DGM_STR("Name?"),
                              .schema = dgm_json_parse_trusted(b.arena, DGM_STR("{}")),
                              .state = dgm_json_parse_trusted(b.arena, DGM_STR("\"s1\""))}});
    check_nothing(&b); /* the other one runs */
    feed_done(&b, "b", "x");
    assert_true(has_line(&b, "input-required Name? {'type':'question','text':'Name?',"
                             "'schema':{}}\nEND"));
    skip_lines(&b);
    feed_message(&b, "Ann", "{'name':'Ann'}");
    check_lines(&b, "working", "SAVE", "COMMIT");
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "ANSWER a yes Ann {'name':'Ann'} 's1'");
    feed_done(&b, "a", "hello Ann");
    assert_true(has_line(&b, "tool-complete a ok 'hello Ann'\n"));
    bench_done(&b);
}

static void a_tool_may_ask_for_authentication(void **state)
{
    struct bench b = bench_with_call("now", "{}");
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    step(&b, (dgm_llm_event){.kind = DGM_LLM_TOOL_ASKS,
                             .question = {.call_id = DGM_STR("a"),
                                          .text = DGM_STR("Sign in"),
                                          .url = DGM_STR("https://login")}});
    assert_true(has_line(&b, "auth-required Sign in\nhttps://login"));
    feed_message(&b, "no", NULL);
    feed(&b, DGM_LLM_COMMITTED);
    assert_true(has_line(&b, "ANSWER a no  null null"));
    bench_done(&b);

    b = bench_with_call("now", "{}");
    feed(&b, DGM_LLM_COMMITTED);
    step(&b, (dgm_llm_event){
                 .kind = DGM_LLM_TOOL_ASKS,
                 .question = {.call_id = DGM_STR("a"), .url = DGM_STR("file:///etc/passwd")}});
    assert_true(has_line(&b, "STOP a\ntool-complete a failed The tool sent a URL"));
    bench_done(&b);
}

/* ---- approvals --------------------------------------------------------------------------------------------------- */

static void an_approval_by_data_runs_the_tool(void **state)
{
    struct bench b = bench_with_call("rm", "{'path':'x'}");
    (void)state;
    assert_true(has_line(
        &b, "input-required May the tool rm with {'path':'x'} be called? Answer yes or no. {'type':"
            "'approval-request','id':'a','tool':'rm','arguments':{'path':'x'}}\n"));
    skip_lines(&b);
    feed_message(&b, NULL, "{'type':'approval','id':'a','approved':true,'arguments':{'path':'y'}}");
    check_lines(&b, "working", "tool-start rm a {'path':'y'}", "SAVE", "COMMIT");
    feed(&b, DGM_LLM_COMMITTED);
    check_lines(&b, "RUN rm t-t1-0 {'path':'y'}");
    feed_done(&b, "a", "x");
    assert_true(has_line(&b, "'output':'x'}]} The user changed the arguments of the call a to "
                             "{'path':'y'}\n"));
    bench_done(&b);
}

static void a_rejection_is_reported_with_its_reason(void **state)
{
    struct bench b = bench_with_call("rm", "{}");
    (void)state;
    skip_lines(&b);
    feed_message(&b, NULL, "{'type':'approval','id':'a','approved':false,'reason':'too risky'}");
    assert_true(has_line(&b,
                         "'output':'The user rejected this call. The tool was not called. Reason: "
                         "too risky','is_error':true"));
    assert_false(has_line(&b, "tool-start"));
    assert_true(has_line(&b, "\nMODEL 0/0: "));
    bench_done(&b);
}

static void only_the_documented_words_decide(void **state)
{
    struct bench b = bench_with_call("rm", "{}");
    (void)state;
    skip_lines(&b);
    feed_message(&b, "well, why not", NULL);
    check_lines(
        &b, "working", "SAVE",
        "input-required The answer was not understood. May the tool rm be called? Answer yes "
        "or no. {'type':'approval-request','id':'a','tool':'rm','arguments':{}}",
        "END input-required");
    feed_message(&b, NULL, "{'type':'approval','id':'a','approved':'yes'}");
    assert_true(has_line(&b, "END input-required"));
    skip_lines(&b);
    feed_message(&b, NULL, "{'type':'approval','id':'unknown','approved':true}");
    assert_true(has_line(&b, "END input-required"));
    skip_lines(&b);
    feed_message(&b, " YES! ", NULL);
    assert_true(has_line(&b, "tool-start rm a"));
    bench_done(&b);
}

static void several_approvals_are_open_at_once(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "a", "rm", "{}");
    feed_call(&b, "b", "now", "{}");
    feed_call(&b, "c", "rm", "{}");
    feed_call(&b, "d", "rm", "{}");
    feed_stop(&b);
    assert_false(has_line(&b, "input-required")); /* the server's first */
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "b", "x");
    assert_true(has_line(&b, "May the tools rm, rm and rm be called?"));
    skip_lines(&b);
    feed_message(&b, NULL, "{'type':'approval','id':'c','approved':true}");
    feed(&b, DGM_LLM_COMMITTED);
    assert_true(has_line(&b, "RUN rm t-t1-2"));
    skip_lines(&b);
    feed_done(&b, "c", "x");
    assert_true(has_line(&b, "May the tools rm and rm be called?"));
    skip_lines(&b);
    feed_message(&b, "no", NULL);
    assert_true(has_line(&b, "\nMODEL 0/0: "));
    assert_false(has_line(&b, "RUN"));
    bench_done(&b);
}

/* ---- the caller's tools ------------------------------------------------------------------------------------------ */

static void the_callers_tools_come_after_the_servers(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "p", "pick", "{'n':1}");
    feed_call(&b, "a", "now", "{}");
    feed_stop(&b);
    /* the history has the caller's call once: in the question */
    assert_true(has_line(
        &b, "message agent {'tool_calls':[{'call_id':'a','name':'now','arguments':{}}]}\n"));
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_done(&b, "a", "x");
    assert_true(has_line(
        &b, "input-required {'tool_calls':[{'call_id':'p','name':'pick','arguments':{'n':1}}]}\n"));
    skip_lines(&b);
    feed_message(&b, "and hurry", "{'tool_results':[{'call_id':'p','output':{'ok':1}}]}");
    assert_true(has_line(&b,
                         "| user {'tool_results':[{'call_id':'p','name':'pick','output':{'ok':1}"
                         "}]} {'tool_results':[{'call_id':'a','name':'now','output':'x'}]} | user "
                         "and hurry\n"));
    bench_done(&b);
}

static void missing_results_are_requested_again(void **state)
{
    struct bench b = bench_started((dgm_llm_options){TOOLS});
    (void)state;
    feed_call(&b, "p", "pick", "{}");
    feed_call(&b, "q", "pick", "{}");
    feed_stop(&b);
    skip_lines(&b);
    feed_message(&b, NULL, "{'tool_results':[{'call_id':'p','output':'1'}]}");
    check_lines(&b, "working", "SAVE",
                "input-required {'tool_calls':[{'call_id':'q','name':'pick','arguments':{}}]}",
                "END input-required");
    feed_message(&b, NULL, "{'tool_results':[{'call_id':'p','output':'1'}]}");
    assert_true(has_line(&b, "END input-required"));
    skip_lines(&b);
    feed_message(&b, "never mind", NULL);
    assert_true(has_line(&b, "'output':'The user sent a message instead of a result of this tool.',"
                             "'is_error':true}]} | user never mind\n"));
    bench_done(&b);
}

/* ---- steering ---------------------------------------------------------------------------------------------------- */

static void a_message_while_tools_run_comes_after_their_results(void **state)
{
    struct bench b = bench_with_call("now", "{}");
    (void)state;
    feed(&b, DGM_LLM_COMMITTED);
    skip_lines(&b);
    feed_message(&b, "in UTC", NULL);
    check_lines(&b, "SAVE");
    feed_done(&b, "a", "x");
    assert_true(has_line(&b, "'output':'x'}]} | user in UTC\n"));
    bench_done(&b);
}

static void a_message_during_the_answer_is_answered_too(void **state)
{
    struct bench b = bench_started((dgm_llm_options){0});
    (void)state;
    feed_text(&b, "One.");
    feed_message(&b, "and two?", NULL);
    skip_lines(&b);
    feed_stop(&b);
    check_lines(&b, "answer-1 +  last", "message agent One.", "checkpoint 1", "SAVE", "llm-call 2",
                "MODEL 0/0: user hi | agent One. | user and two?");
    feed_text(&b, "Two.");
    feed_stop(&b);
    assert_true(has_line(&b, "completed One.\n\nTwo.\n"));
    bench_done(&b);
}

static void late_answers_and_too_many_messages_are_dropped(void **state)
{
    struct bench b = bench_started((dgm_llm_options){0});
    (void)state;
    feed_message(&b, NULL, "{'type':'approval','id':'a','approved':true}");
    feed_message(&b, NULL, "{'tool_results':[{'call_id':'a','output':'x'}]}");
    check_nothing(&b);
    for (int i = 0; i < DGM_MAX_QUEUED_MESSAGES; i++)
        feed_message(&b, "x", NULL);
    skip_lines(&b);
    feed_message(&b, "x", NULL);
    check_lines(&b, "NOTE a message was dropped: 16 messages wait for the next model call");
    bench_done(&b);
}

static void tools_may_change_between_model_calls(void **state)
{
    struct bench b = bench_started((dgm_llm_options){0});
    (void)state;
    feed_call(&b, "a", "now", "{}");
    dgm_llm_loop_set_tools(b.loop, (dgm_llm_tools){tools, 1});
    feed_stop(&b);
    assert_true(has_line(&b, "tool-start now a {}"));
    bench_done(&b);
}

DGM_TEST_MAIN(
    dgm_test(invalid_arguments_are_reported_to_the_model),
    dgm_test(arguments_that_were_cut_are_not_run),
    dgm_test(arguments_are_checked_before_an_approval), dgm_test(a_custom_tool_gets_its_input),
    dgm_test(ids_of_calls_are_unique), dgm_test(calls_beyond_the_limit_are_refused),
    dgm_test(tools_run_in_parallel_up_to_the_cap),
    dgm_test_holds(a_sub_agent_is_shown_at_its_start_and_its_end, "R002-21"),
    dgm_test(ask_user_waits_for_the_answer), dgm_test(a_question_may_have_choices_and_a_schema),
    dgm_test(a_question_without_text_is_an_error_for_the_model),
    dgm_test(questions_come_one_after_the_other), dgm_test(credentials_never_reach_the_model),
    dgm_test(authentication_continues_on_completion),
    dgm_test(an_address_to_sign_in_is_a_web_address), dgm_test(a_tool_may_ask),
    dgm_test(a_tool_may_ask_for_authentication), dgm_test(an_approval_by_data_runs_the_tool),
    dgm_test(a_rejection_is_reported_with_its_reason), dgm_test(only_the_documented_words_decide),
    dgm_test(several_approvals_are_open_at_once),
    dgm_test(the_callers_tools_come_after_the_servers),
    dgm_test(missing_results_are_requested_again),
    dgm_test(a_message_while_tools_run_comes_after_their_results),
    dgm_test(a_message_during_the_answer_is_answered_too),
    dgm_test(late_answers_and_too_many_messages_are_dropped),
    dgm_test(tools_may_change_between_model_calls))
