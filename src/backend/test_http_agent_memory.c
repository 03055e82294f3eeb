/* test_http_agent_memory.c - services as agents: state, snapshots, the conversation, the form of the answer. */
#include "backend/test_http_agent.h"

/* ---- state, context ------------------------------------------------------------------------------------------------ */

static void state_goes_both_ways(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"n\":1}}") D(
             "{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/m\",\"value\":2}]}")
             FINISHED}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi",
              "{'dragoman:state':{'n':0},'dragoman:context':[{'description':'d','value':'v'}],"
              "'dragoman:forwarded_props':{'p':1}}");
    check_body(0, "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{'n':0},"
                  "'messages':[{'id':'msg-1','role':'user','content':'Hi'}],'tools':[],"
                  "'context':[{'description':'d','value':'v'}],'forwardedProps':{'p':1}}");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_true(fake_has(&f->events, "\"kind\":\"internal:state\",\"taskId\":\"task-1\","
                                     "\"value\":{\"n\":1}"));
    assert_true(fake_has(&f->events, "\"name\":\"m\",\"value\":2"));
    fake_close(f);
    service_close();
}

/* Callers of other protocols have no state: the service gets the one of the turn before. */
static void state_is_stored_for_callers_without_one(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes =
             SSE_HEAD STARTED D("{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"n\":1.0,\"l\":[]}}")
                 D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/l/-\","
                   "\"value\":\"a\"}]}") FINISHED},
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"replace\","
                                     "\"path\":\"/n\",\"value\":2}]}") FINISHED},
        {.bytes = SSE_HEAD STARTED D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"remove\","
                                     "\"path\":\"/none\"}]}") FINISHED},
    };
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi", NULL);
    assert_string_equal(note, "{\"n\":1.0,\"l\":[\"a\"]}");
    fake_new_task(f);
    turn_with(f, "Hi", NULL);
    assert_non_null(strstr(service_body(1), "\"state\":{\"n\":1.0,\"l\":[\"a\"]}"));
    assert_string_equal(note, "{\"n\":2,\"l\":[\"a\"]}");
    fake_new_task(f);
    turn_with(f, "Hi", "{'dragoman:state':{'own':true}}");
    assert_non_null(strstr(service_body(2), "\"state\":{\"own\":true}"));
    assert_string_equal(note, "{\"n\":2,\"l\":[\"a\"]}"); /* the patch did not fit */
    fake_close(f);
    service_close();
}

/* Some servers send the whole conversation at the end, with ids of their own. */
static void a_snapshot_repeats_nothing(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED AGUI_TEXT("m2", "Hello")
             D("{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[{\"id\":\"x1\",\"role\":\"user\","
               "\"content\":\"Hi\"},{\"id\":\"x2\",\"role\":\"assistant\",\"content\":\"Before\"},"
               "{\"id\":\"x3\",\"role\":\"user\",\"content\":\"Hi\"},{\"id\":\"x4\",\"role\":"
               "\"assistant\",\"content\":\"Hello\"},{\"id\":\"x5\",\"role\":\"assistant\","
               "\"content\":\" and more\"}]}") FINISHED}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi", NULL);
    check_str(f->stream, "Hello and more");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    fake_close(f);
    service_close();
}

/* A server that does not stream sends the answer in the snapshot only, also one that it has sent before. */
static void an_answer_may_be_in_a_snapshot_only(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE_HEAD STARTED D(
             "{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[{\"id\":\"x1\",\"role\":\"user\","
             "\"content\":\"Hi\"},{\"id\":\"x2\",\"role\":\"assistant\",\"content\":\"Hello\"},"
             "{\"id\":\"x3\",\"role\":\"user\",\"content\":\"Hi\"},{\"id\":\"x4\",\"role\":"
             "\"assistant\",\"content\":\"Hello\"}]}") FINISHED}};
    dgm_part said = {.kind = DGM_PART_TEXT, .content = DGM_STR("Hello")};
    dgm_message history = {
        .message_id = DGM_STR("x2"), .role = DGM_ROLE_AGENT, .parts = {&said, 1}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    fake_prepare(f, "msg-1", "Hi");
    f->input.history = (dgm_messages){&history, 1};
    start_turn(f);
    check_str(f->stream, "Hello");
    fake_close(f);
    service_close();
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

static const struct history_case {
    const char *format, *more, *body;
} histories[] = {
    {"openai-chat", "",
     "{'model':'dragoman','messages':[{'role':'system','content':'Be brief.'},{'role':'user',"
     "'content':'I am Ann'},{'role':'assistant','content':'Hello Ann'},{'role':'user','content':"
     "'Who am I?'}],'stream':true,'stream_options':{'include_usage':true}}"},
    {"openai-responses", "'model':'gpt-x'",
     "{'model':'gpt-x','instructions':'Be brief.','input':[" USER(
         "I am Ann") ",{'type':'message',"
                     "'id':'msg_h2','role':'assistant','content':[{'type':'output_text','text':'"
                     "Hello Ann',"
                     "'annotations':[],'logprobs':[]}],'status':'completed'}," USER(
                         "Who am I?") "],'stream':true,'store':false}"},
    {"ag-ui", "",
     "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{},'messages':[{'id':"
     "'instructions','role':'system','content':'Be brief.'},{'id':'h1','role':'user','content':"
     "'I am Ann'},{'id':'h2','role':'assistant','content':'Hello Ann'},{'id':'msg-1','role':"
     "'user','content':'Who am I?'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"ai-sdk", "",
     "{'id':'ctx-1','trigger':'submit-message','messages':[{'id':'instructions','role':'system',"
     "'parts':[{'type':'text','text':'Be brief.'}]},{'id':'h1','role':'user','parts':[{'type':"
     "'text','text':'I am Ann'}]},{'id':'h2','role':'assistant','parts':[{'type':'text','text':"
     "'Hello Ann'}]},{'id':'msg-1','role':'user','parts':[{'type':'text','text':'Who am I?'}]}]}"},
    {"ag-ui", "'memory':'service'",
     "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{},'messages':[{'id':"
     "'instructions','role':'system','content':'Be brief.'},{'id':'msg-1','role':'user',"
     "'content':'Who am I?'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"openai-chat", "'memory':'service'",
     "{'model':'dragoman','messages':[{'role':'system','content':'Be brief.'},{'role':'user',"
     "'content':'Who am I?'}],'stream':true,'stream_options':{'include_usage':true},'metadata':{"
     "'a2a_context_id':'ctx-1'}}"},
};

static void the_conversation_is_in_the_request(void **state)
{
    const struct history_case *c = *state;
    struct service_answer answers[] = {{.bytes = JSON_HEAD "{}"}};
    dgm_part said[] = {{.kind = DGM_PART_TEXT, .content = DGM_STR("I am Ann")},
                       {.kind = DGM_PART_TEXT, .content = DGM_STR("Hello Ann")}};
    dgm_message history[] = {
        {.message_id = DGM_STR("h1"), .role = DGM_ROLE_USER, .parts = {&said[0], 1}},
        {.message_id = DGM_STR("h2"), .role = DGM_ROLE_AGENT, .parts = {&said[1], 1}}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent(c->format, c->more);
    fake_prepare(f, "msg-1", "Who am I?");
    f->input.history = (dgm_messages){history, 2};
    f->input.metadata = fake_json(f->arena, "{'dragoman:instructions':'Be brief.'}");
    start_turn(f);
    check_body(0, c->body);
    fake_close(f);
    service_close();
}

/* A transcript is a part of the message that started a context. It is not text of the user. */
static void a_transcript_is_sent_once(void **state)
{
    static const struct service_answer answers[] = {{.bytes = JSON_HEAD "{}"}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-chat", "");
    for (size_t i = 0; i < 2; i++) {
        fake_prepare(f, "msg-1", "Hi");
        dgm_part parts[] = {{.kind = DGM_PART_TEXT,
                             .content = DGM_STR("user: a\nassistant: b\n"),
                             .metadata = fake_json(f->arena, "{'dragoman:part':'transcript'}")},
                            {.kind = DGM_PART_TEXT, .content = DGM_STR("Go on")}};
        dgm_message first = {
            .message_id = DGM_STR("h1"), .role = DGM_ROLE_USER, .parts = {parts, 2}};
        if (i)
            f->input.history = (dgm_messages){&first, 1};
        else
            f->message.parts = first.parts;
        start_turn(f);
        fake_new_task(f);
    }
    check_body(0,
               "{'model':'dragoman','messages':[{'role':'system','content':'user: a\\nassistant: "
               "b\\n'},{'role':'user','content':'Go on'}],'stream':true,'stream_options':{"
               "'include_usage':true}}");
    check_body(1,
               "{'model':'dragoman','messages':[{'role':'system','content':'user: a\\nassistant: "
               "b\\n'},{'role':'user','content':'Go on'},{'role':'user','content':'Hi'}],"
               "'stream':true,'stream_options':{'include_usage':true}}");
    fake_close(f);
    service_close();
}

static void a_service_with_memory_gets_the_response_before(void **state)
{
    static const struct service_answer answers[] = {{.bytes = SSE_HEAD RESPONSES_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-responses", "'memory':'service'");
    turn_with(f, "Hi", NULL);
    check_body(0, "{'model':'dragoman','input':[" USER("Hi") "],"
                                                             "'stream':true,'store':true}");
    assert_string_equal(note, "resp_1");
    fake_new_task(f);
    turn_with(f, "Hi", NULL);
    check_body(1, "{'model':'dragoman','input':[" USER(
                      "Hi") "],"
                            "'previous_response_id':'resp_1','stream':true,'store':true}");
    fake_close(f);
    service_close();
}

static void the_form_of_the_answer_is_passed_on(void **state)
{
    static const struct service_answer answers[] = {{.bytes = JSON_HEAD "{}"}};
    static const char chat[] =
        "{'dragoman:tool_choice':{'type':'function','function':{'name':'f'}},"
        "'dragoman:response_format':{'type':'json_schema','json_schema':{'name':'s','schema':{}}}}";
    static const char responses[] =
        "{'dragoman:tool_choice':{'type':'function','name':'f'},"
        "'dragoman:response_format':{'type':'json_schema','name':'s','schema':{}}}";
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-chat", "");
    for (int i = 0; i < 2; i++) {
        turn_with(f, "Hi", i ? chat : responses);
        assert_non_null(strstr(service_body((size_t)i),
                               "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
                               "\"f\"}},\"response_format\":{\"type\":\"json_schema\","
                               "\"json_schema\":{\"name\":\"s\",\"schema\":{}}}"));
        fake_new_task(f);
    }
    fake_close(f);
    SERVICE_SET(answers);
    f = open_agent("openai-responses", "");
    for (int i = 0; i < 2; i++) {
        turn_with(f, "Hi", i ? chat : responses);
        assert_non_null(strstr(service_body((size_t)i),
                               "\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"},\"text\":{"
                               "\"format\":{\"type\":\"json_schema\",\"name\":\"s\",\"schema\":{}"
                               "}}"));
        fake_new_task(f);
    }
    fake_close(f);
    service_close();
}

DGM_TEST_MAIN(
    dgm_test(state_goes_both_ways), dgm_test(state_is_stored_for_callers_without_one),
    dgm_test(a_snapshot_repeats_nothing), dgm_test(an_answer_may_be_in_a_snapshot_only),
    dgm_test_with("history of chat", the_conversation_is_in_the_request, &histories[0]),
    dgm_test_with("history of responses", the_conversation_is_in_the_request, &histories[1]),
    dgm_test_with("history of ag-ui", the_conversation_is_in_the_request, &histories[2]),
    dgm_test_with("history of ai-sdk", the_conversation_is_in_the_request, &histories[3]),
    dgm_test_with("memory of an ag-ui service", the_conversation_is_in_the_request, &histories[4]),
    dgm_test_with("memory of a chat service", the_conversation_is_in_the_request, &histories[5]),
    dgm_test(a_transcript_is_sent_once), dgm_test(a_service_with_memory_gets_the_response_before),
    dgm_test(the_form_of_the_answer_is_passed_on))
