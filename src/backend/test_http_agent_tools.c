/* test_http_agent_tools.c - services as agents: tools of the caller, interrupts, approvals. */
#include "backend/test_http_agent.h"

/* ---- tools of the caller ---------------------------------------------------------------------------------------- */

#define TOOLS                                                                                      \
    "{'dragoman:tools':[{'name':'get_weather','description':'d','parameters':{'type':'object'}}]," \
    "'dragoman:tool_choice':'auto'}"
#define RESULT "{'tool_results':[{'call_id':'call_1','name':'get_weather','output':'sunny'}]}"
#define CALLS                                                                                      \
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"call_1\",\"name\":\"get_weather\",\"arguments\":{"  \
    "\"city\":\"Rome\"}}]}}"

static const struct tool_case {
    const char *format, *calls, *answer, *first, *second;
} tool_cases[] = {
    {"openai-chat",
     SSE_HEAD CHUNK(
         "\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":"
         "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]",
         "null") CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"city"
                       "\\\": \\\"Rome\\\"}\"}}]",
                       "null") CHUNK("", "\"tool_calls\"") D("[DONE]"),
     SSE_HEAD CHAT_STREAM,
     "{'model':'dragoman','messages':[{'role':'user','content':'Hi'}],'tools':[{'type':'function',"
     "'function':{'name':'get_weather','description':'d','parameters':{'type':'object'}}}],"
     "'stream':true,'stream_options':{'include_usage':true},'tool_choice':'auto'}",
     "{'model':'dragoman','messages':[{'role':'user','content':'Hi'},{'role':'assistant',"
     "'content':'','tool_calls':[{'id':'call_1','type':'function','function':{'name':'get_weather',"
     "'arguments':'{\\'city\\': \\'Rome\\'}'}}]},{'role':'tool','tool_call_id':"
     "'call_1','content':'sunny'}],'tools':[{'type':'function','function':{'name':'get_weather',"
     "'description':'d','parameters':{'type':'object'}}}],'stream':true,'stream_options':{"
     "'include_usage':true},'tool_choice':'auto'}"},
    {"openai-responses",
     JSON_HEAD RESPONSE(
         "completed", "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":"
                      "\"get_weather\",\"arguments\":\"{\\\"city\\\": \\\"Rome\\\"}\",\"status\":"
                      "\"completed\"}"),
     SSE_HEAD RESPONSES_STREAM,
     "{'model':'dragoman','input':[" USER(
         "Hi") "],'tools':[{"
               "'type':'function','name':'get_weather','description':'d','parameters':{'type':'"
               "object'},"
               "'strict':false}],'stream':true,'store':false,'tool_choice':'auto'}",
     "{'model':'dragoman','input':[" USER(
         "Hi") ",{'type':"
               "'function_call','id':'fc_call_1','call_id':'call_1','name':'get_weather','"
               "arguments':"
               "'{\\'city\\': "
               "\\'Rome\\'}','status':'completed'},{'type':'function_call_output','call_id':'call_"
               "1','output':'sunny'}],'tools':"
               "[{'type':'function','name':'get_weather','description':'d','parameters':{'type':'"
               "object'},"
               "'strict':false}],'stream':true,'store':false,'tool_choice':'auto'}"},
    {"ag-ui",
     SSE_HEAD STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"call_1\",\"toolCallName\":"
                        "\"get_weather\"}")
         D("{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"call_1\",\"delta\":\"{\\\"city\\\": "
           "\\\"Rome\\\"}\"}") D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"call_1\"}") FINISHED,
     SSE_HEAD AGUI_STREAM,
     "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{},'messages':[{'id':"
     "'msg-1','role':'user','content':'Hi'}],'tools':[{'name':'get_weather','description':'d',"
     "'parameters':{'type':'object'}}],'context':[],'forwardedProps':{}}",
     "{'threadId':'ctx-1','runId':'task-1-msg-2','protocolVersion':'1.0','state':{},'messages':[{"
     "'id':'msg-1','role':'user','content':'Hi'},{'id':'m3','role':'assistant','toolCalls':[{'id':"
     "'call_1','type':'function','function':{'name':'get_weather','arguments':'{\\'city\\': "
     "\\'Rome\\'}'}}]},{'id':'task-1-r1','role':'tool','content':'sunny','toolCallId':'call_1'}],"
     "'tools':[{'name':'get_weather','description':'d','parameters':{'type':'object'}}],"
     "'context':[],'forwardedProps':{}}"},
};

static void calls_of_the_callers_tools_wait_for_results(void **state)
{
    const struct tool_case *c = *state;
    struct service_answer answers[] = {{.bytes = c->calls}, {.bytes = c->answer}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent(c->format, "");
    turn_with(f, "Hi", TOOLS);
    check_body(0, c->first);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    assert_true(fake_has(&f->events, CALLS));
    turn_with_data(f, RESULT, TOOLS);
    check_body(1, c->second);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_str(f->stream, "Hello");
    fake_close(f);
    service_close();
}

/* Servers that do not report the results of their own tools go on after the call. */
static void calls_of_its_own_tools_do_not_wait(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\","
                                     "\"toolCallName\":\"own\"}")
             D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}") AGUI_TEXT("m", "Hello")
                 FINISHED}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi", NULL);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_true(fake_has(&f->events, "\"kind\":\"internal:tool-start\""));
    fake_close(f);
    service_close();
}

/* ---- interrupts --------------------------------------------------------------------------------------------------- */

static void an_approval_is_requested_and_sent_back(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\","
                                     "\"toolCallName\":\"delete\"}")
             D("{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"c\",\"delta\":\"{\\\"path\\\": "
               "\\\"x\\\"}\"}") D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}")
                 D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
                   "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"tool_call\","
                   "\"toolCallId\":\"c\"}]}}")},
        {.bytes = SSE_HEAD AGUI_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "clean up", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "May the tool delete be called?");
    assert_true(fake_has(&f->events, "{\"data\":{\"type\":\"approval-request\",\"id\":\"i1\","
                                     "\"tool\":\"delete\",\"arguments\":{\"path\":\"x\"}}}"));
    turn_with_data(f, "{'type':'approval','id':'i1','approved':true}", NULL);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_non_null(strstr(service_body(1), "\"resume\":[{\"interruptId\":\"i1\",\"status\":"
                                            "\"resolved\",\"payload\":{\"type\":\"approval\","
                                            "\"id\":\"i1\",\"approved\":true}}]"));
    fake_close(f);
    service_close();
}

/* ---- approvals of the other formats ------------------------------------------------------------------------------ */

#define MCP_REQUEST(id, name)                                                                      \
    "{\"id\":\"" id                                                                                \
    "\",\"type\":\"mcp_approval_request\",\"arguments\":\"{\\\"path\\\":\\\"x\\\"}"                \
    "\",\"name\":\"" name "\",\"server_label\":\"files\"}"
#define MCP_STREAM                                                                                 \
    D("{\"type\":\"response.created\",\"response\":" RESPONSE("in_progress", "") "}")              \
    D("{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":" MCP_REQUEST(         \
        "mcpr_1", "delete") "}")                                                                   \
    D("{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":" MCP_REQUEST(          \
        "mcpr_1", "delete") "}")                                                                   \
    D("{\"type\":\"response.completed\",\"response\":" RESPONSE(                                   \
        "completed", MCP_REQUEST("mcpr_1", "delete")) "}")
#define SDK_CALL(call, approval)                                                                   \
    D("{\"type\":\"tool-input-available\",\"toolCallId\":\"" call                                  \
      "\",\"toolName\":\"delete\",\"input\":{\"path\":\"x\"}}")                                    \
    D("{\"type\":\"tool-approval-request\",\"approvalId\":\"" approval "\",\"toolCallId\":\"" call \
      "\"}")
#define SDK_START D("{\"type\":\"start\",\"messageId\":\"a1\"}") D("{\"type\":\"start-step\"}")
#define SDK_FINISH D("{\"type\":\"finish-step\"}") D("{\"type\":\"finish\"}") D("[DONE]")
#define SDK_PART(id, call, decision)                                                               \
    "{'type':'dynamic-tool','toolName':'delete','toolCallId':'" call "','state':"                  \
    "'approval-responded','input':{'path':'x'},'approval':{'id':'" id "'," decision "}}"
#define MCP_RESPONSE(decision)                                                                     \
    "{'type':'mcp_approval_response','approval_request_id':'mcpr_1'," decision "}"

static const struct approval_case {
    const char *format, *settings, *request, *answer;
    const char *id;
    const char *approved, *refused; /* in the next request */
    const char *also;               /* likewise; may be NULL */
} approval_cases[] = {
    {"openai-responses", "", SSE_HEAD MCP_STREAM, SSE_HEAD RESPONSES_STREAM, "mcpr_1",
     MCP_RESPONSE("'approve':true"), MCP_RESPONSE("'approve':false,'reason':'better not'"),
     "'input':[" USER("clean up") ",{'id':'mcpr_1','type':'mcp_approval_request'"},
    {"openai-responses", "", JSON_HEAD RESPONSE("completed", MCP_REQUEST("mcpr_1", "delete")),
     SSE_HEAD RESPONSES_STREAM, "mcpr_1", MCP_RESPONSE("'approve':true"),
     MCP_RESPONSE("'approve':false,'reason':'better not'"), NULL},
    {"openai-responses", "'memory':'service'", SSE_HEAD MCP_STREAM, SSE_HEAD RESPONSES_STREAM,
     "mcpr_1", "'input':[" MCP_RESPONSE("'approve':true") "]",
     "'input':[" MCP_RESPONSE("'approve':false,'reason':'better not'") "]", NULL},
    {"ai-sdk", "", SSE_HEAD SDK_START SDK_CALL("c1", "ap1") SDK_FINISH, SSE_HEAD AISDK_STREAM,
     "ap1", "'role':'assistant','parts':[" SDK_PART("ap1", "c1", "'approved':true") "]}]}",
     SDK_PART("ap1", "c1", "'approved':false,'reason':'better not'"), "clean up"},
    {"ai-sdk", "",
     JSON_HEAD "{\"id\":\"a1\",\"role\":\"assistant\",\"parts\":[{\"type\":\"tool-delete\","
               "\"toolCallId\":\"c1\",\"state\":\"approval-requested\",\"input\":{\"path\":\"x\"},"
               "\"approval\":{\"id\":\"ap1\"}}]}",
     SSE_HEAD AISDK_STREAM, "ap1", SDK_PART("ap1", "c1", "'approved':true"),
     SDK_PART("ap1", "c1", "'approved':false,'reason':'better not'"), NULL},
};

static bool body_has(size_t i, const char *want)
{
    char text[1000];
    snprintf(text, sizeof text, "%s", want);
    fake_double_quotes(text);
    return strstr(service_body(i), text) != NULL;
}

/* A turn with the caller's decision: data if it starts with a brace, else text. */
static void decide(struct fake *f, const char *decision, const char *metadata)
{
    if (*decision == '{') {
        turn_with_data(f, decision, metadata);
        return;
    }
    fake_prepare(f, "msg-2", decision);
    if (metadata)
        f->input.metadata = fake_json(f->arena, metadata);
    start_turn(f);
}

static void approvals_of_other_formats_go_both_ways(void **state)
{
    const struct approval_case *c = *state;
    char by_id[100], refusal[100], other_id[100];
    snprintf(by_id, sizeof by_id, "{'type':'approval','id':'%s','approved':true}", c->id);
    snprintf(refusal, sizeof refusal,
             "{'type':'approval','id':'%s','approved':false,'reason':'better not'}", c->id);
    snprintf(other_id, sizeof other_id, "{'type':'approval','id':'else','approved':true}");
    const struct {
        const char *decision, *metadata;
        const char *want; /* NULL: it is refused, for any reason */
    } rows[] = {
        {by_id, NULL, c->approved},
        {"{'type':'approval','approved':true}", NULL, c->approved},
        {"{'type':'approval','approved':true,'arguments':{'path':'x'}}", NULL, c->approved},
        {"yes", NULL, c->approved},
        {" Approve. ", NULL, c->approved},
        {refusal, NULL, c->refused},
        {"better not", NULL, c->refused},
        {other_id, NULL, NULL},
        {"{'type':'approval','approved':true,'arguments':{'path':'y'}}", NULL, NULL},
        {"yes, but not now", NULL, NULL},
        {"", "{'dragoman:resume':[{'interruptId':'i','status':'cancelled'}]}", NULL},
    };
    struct service_answer answers[] = {{.bytes = c->request}, {.bytes = c->answer}};
    service_open();
    struct fake *f = open_agent(c->format, c->settings);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SERVICE_SET(answers);
        fake_new_task(f);
        turn_with(f, "clean up", NULL);
        assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
        check_str(f->final,
                  "May the tool delete with {\"path\":\"x\"} be called? Answer yes or no.");
        char part[200];
        snprintf(part, sizeof part,
                 "{\"data\":{\"type\":\"approval-request\",\"id\":\"%s\",\"tool\":\"delete\","
                 "\"arguments\":{\"path\":\"x\"}}}",
                 c->id);
        assert_true(fake_has(&f->events, part));
        assert_false(fake_has(&f->events, "tool_calls"));
        decide(f, rows[i].decision, rows[i].metadata);
        assert_int_equal(f->state, DGM_STATE_COMPLETED);
        check_str(f->stream, "Hello");
        if (!(rows[i].want ? body_has(1, rows[i].want)
                           : body_has(1, "'approved':false") || body_has(1, "'approve':false")) ||
            (c->also && !body_has(1, c->also)) || body_has(1, "May the tool")) {
            print_error("%s: %s\n", rows[i].decision, service_body(1));
            fail();
        }
    }
    fake_close(f);
    service_close();
}

static void several_approvals_are_one_question(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD SDK_START SDK_CALL("c1", "ap1") SDK_CALL("c2", "ap2") SDK_FINISH},
        {.bytes = SSE_HEAD AISDK_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ai-sdk", "");
    turn_with(f, "clean up", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final,
              "May the tools delete with {\"path\":\"x\"} and delete with {\"path\":\"x\"} "
              "be called? Answer yes or no.");
    assert_true(fake_has(&f->events, "{\"type\":\"approval-request\",\"id\":\"ap1\""));
    assert_true(fake_has(&f->events, "{\"type\":\"approval-request\",\"id\":\"ap2\""));
    turn_with_data(f, "{'type':'approval','id':'ap2','approved':true}", NULL);
    assert_true(body_has(1, SDK_PART("ap2", "c2", "'approved':true")));
    assert_true(body_has(1, SDK_PART("ap1", "c1",
                                     "'approved':false,'reason':'the user did not decide about "
                                     "this call'")));
    fake_close(f);
    service_close();
}

/* An AG-UI caller answers with `resume`, which names our interrupt. */
static void an_interrupt_can_be_dismissed(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D(
             "{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
             "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"confirmation\","
             "\"message\":\"Sure?\"},{\"id\":\"i2\",\"reason\":\"x:y\",\"message\":\"Really?\"}]"
             "}}")},
        {.bytes = SSE_HEAD AGUI_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "clean up", NULL);
    check_str(f->final, "Sure?\nReally?");
    turn_with_data(f, "{'interrupt_id':'task-1','status':'cancelled'}",
                   "{'dragoman:resume':[{'interruptId':'task-1','status':'cancelled'}]}");
    assert_non_null(strstr(service_body(1),
                           "\"resume\":[{\"interruptId\":\"i1\",\"status\":\"cancelled\"},{"
                           "\"interruptId\":\"i2\",\"status\":\"cancelled\"}]"));
    fake_close(f);
    service_close();
}

/* LangGraph's AG-UI servers. */
static void a_custom_interrupt_is_a_question(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"CUSTOM\",\"name\":\"on_interrupt\",\"value\":"
                                     "\"\\\"Which city?\\\"\"}") FINISHED},
        {.bytes = SSE_HEAD AGUI_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui-0", "");
    turn_with(f, "weather", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "Which city?");
    turn_with(f, "Rome", NULL);
    assert_non_null(
        strstr(service_body(1), "\"forwardedProps\":{\"command\":{\"resume\":\"Rome\"}}"));
    assert_null(strstr(service_body(1), "\"resume\":["));
    fake_close(f);
    service_close();
}

DGM_TEST_MAIN(
    dgm_test_with("tools of chat", calls_of_the_callers_tools_wait_for_results, &tool_cases[0]),
    dgm_test_with("tools of responses", calls_of_the_callers_tools_wait_for_results,
                  &tool_cases[1]),
    dgm_test_with("tools of ag-ui", calls_of_the_callers_tools_wait_for_results, &tool_cases[2]),
    dgm_test(calls_of_its_own_tools_do_not_wait), dgm_test(an_approval_is_requested_and_sent_back),
    dgm_test_with("approvals of responses", approvals_of_other_formats_go_both_ways,
                  &approval_cases[0]),
    dgm_test_with("approvals of responses, whole", approvals_of_other_formats_go_both_ways,
                  &approval_cases[1]),
    dgm_test_with("approvals of responses with memory", approvals_of_other_formats_go_both_ways,
                  &approval_cases[2]),
    dgm_test_with("approvals of ai-sdk", approvals_of_other_formats_go_both_ways,
                  &approval_cases[3]),
    dgm_test_with("approvals of ai-sdk, whole", approvals_of_other_formats_go_both_ways,
                  &approval_cases[4]),
    dgm_test(several_approvals_are_one_question), dgm_test(an_interrupt_can_be_dismissed),
    dgm_test(a_custom_interrupt_is_a_question))
