/* test_http_agent.c - services as agents: each format, streamed and whole; tools, interrupts, state, memory; every way to fail. */
#define _GNU_SOURCE /* memmem */
#include "backend/http/http_int.h"
#include "backend/test_fake.h"
#include "backend/test_service.h"
#include "base/limits.h"

#define SSE "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define D(json) "data: " json "\n\n"

/* ---- helpers --------------------------------------------------------------------------------------------------- */

static char note[256], task_note[256]; /* what agents store, by scope */

static void do_remember(dgm_run *run, dgm_run_scope scope, dgm_str text,
                        void (*stored)(void *arg, dgm_code code), void *arg)
{
    (void)run, (void)stored, (void)arg;
    snprintf(scope == DGM_RUN_TASK ? task_note : note, sizeof note, "%.*s", DGM_P(text));
}

static void do_recall(dgm_run *run, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                      void *arg)
{
    const char *text = scope == DGM_RUN_TASK ? task_note : note;
    (void)run;
    found(arg, *text ? dgm_str_from(text) : (dgm_str){0});
}

static dgm_run_ops noting_ops;

static struct fake *open_agent(const char *format, const char *more)
{
    char config[600];
    snprintf(config, sizeof config, "{'url':'%s','format':'%s'%s%s}", service.url, format,
             *more ? "," : "", more);
    note[0] = task_note[0] = '\0';
    return fake_open("http", config, NULL);
}

static void start_turn(struct fake *f)
{
    noting_ops = fake_ops;
    noting_ops.remember = do_remember;
    noting_ops.recall = do_recall;
    f->run.ops = &noting_ops;
    dgm_loop_post(f->run.loop, fake_do_start, f);
    uv_sem_wait(&f->ended);
}

static yyjson_val *json_of(struct fake *f, const char *text)
{
    dgm_str s = dgm_arena_dup(f->arena, dgm_str_from(text));
    for (char *p = (char *)(uintptr_t)s.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return dgm_json_parse_trusted(f->arena, s);
}

/* A turn with a text. metadata: JSON with ' for ", or NULL. */
static void turn_with(struct fake *f, const char *text, const char *metadata)
{
    fake_prepare(f, "msg-1", text);
    if (metadata)
        f->input.metadata = json_of(f, metadata);
    start_turn(f);
}

/* A turn whose message is one part of data. */
static void turn_with_data(struct fake *f, const char *data, const char *metadata)
{
    fake_prepare(f, "msg-2", "");
    f->part = (dgm_part){.kind = DGM_PART_DATA, .data = json_of(f, data)};
    if (metadata)
        f->input.metadata = json_of(f, metadata);
    start_turn(f);
}

static bool has_event(const struct fake *f, const char *part)
{
    return memmem(f->events.p, f->events.n, part, strlen(part)) != NULL;
}

/* The next run is of another task. */
static void forget_task(struct fake *f)
{
    f->is_task = f->has_started = false;
    dgm_fold_free(f->fold);
    f->fold = dgm_fold_new((dgm_fold_options){.foreign = true});
}

static void check_body(size_t i, const char *want)
{
    char *text = strdup(want);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    check_str(dgm_str_from(service_body(i)), text);
    free(text);
}

static void check_failed_(struct fake *f, const char *sentence, const char *file, int line)
{
    dgm_str error = {0};
    const dgm_task *task = dgm_fold_task(f->fold);
    if (task && f->state == DGM_STATE_FAILED)
        error = dgm_json_str_member(task->metadata, "error");
    check_bytes_(error.p, error.n, sentence, strlen(sentence), file, line);
    fake_check_(f, file, line);
}
#define check_failed(f, sentence) check_failed_((f), (sentence), __FILE__, __LINE__)

/* ---- answers of each format ------------------------------------------------------------------------------------ */

#define CHUNK(delta, finish)                                                                       \
    D("{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","         \
      "\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" finish "}]}")
#define CHAT_STREAM                                                                                \
    CHUNK("\"role\":\"assistant\",\"content\":\"\"", "null")                                       \
    CHUNK("\"content\":\"Hel\"", "null")                                                           \
    CHUNK("\"content\":\"lo\"", "null")                                                            \
    CHUNK("", "\"stop\"")                                                                          \
    D("{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","         \
      "\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}")                   \
    D("[DONE]")
#define CHAT_WHOLE                                                                                 \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{"   \
    "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":"    \
    "\"stop\"}]}"

#define RESPONSE(status, output)                                                                   \
    "{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"" status             \
    "\",\"model\":\"m\",\"output\":[" output "]}"
#define RESPONSE_MESSAGE                                                                           \
    "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\","      \
    "\"content\":[{\"type\":\"output_text\",\"text\":\"Hello\",\"annotations\":[]}]}"
#define RESPONSES_STREAM                                                                           \
    "event: response.created\n" D("{\"type\":\"response.created\",\"response\":" RESPONSE(         \
        "in_progress", "") "}") D("{\"type\":\"response.output_item.added\",\"output_index\":0,"   \
                                  "\"item\":{\"type\":\"message\""                                 \
                                  ",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"in_"      \
                                  "progress\",\"content\":[]}}")                                   \
        D("{\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,"     \
          "\"content_index\":0,\"delta\":\"Hel\"}") D("{\"type\":\"response.output_text.delta\","  \
                                                      "\"item_id\":\"msg_1\",\"output_index\":0,"  \
                                                      "\"content_index\":0,\"delta\":\"lo\"}")     \
            D("{\"type\":\"response.output_text.done\",\"item_id\":\"msg_1\",\"output_index\":0,"  \
              "\"content_index\":0,\"text\":\"Hello\"}")                                           \
                D("{\"type\":\"response.output_item.done\",\"output_index\":0,"                    \
                  "\"item\":" RESPONSE_MESSAGE "}")                                                \
                    D("{\"type\":\"response.completed\",\"response\":" RESPONSE(                   \
                        "completed", RESPONSE_MESSAGE) "}")

#define STARTED D("{\"type\":\"RUN_STARTED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}")
#define FINISHED D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}")
#define AGUI_TEXT(id, text)                                                                        \
    D("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"" id "\",\"role\":\"assistant\"}")         \
    D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"" id "\",\"delta\":\"" text "\"}")       \
    D("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"" id "\"}")
#define AGUI_STREAM                                                                                \
    STARTED D("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m1\",\"role\":\"assistant\"}")     \
        D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"Hel\"}")            \
            D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"lo\"}")         \
                D("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m1\"}") FINISHED
#define AGUI_WHOLE                                                                                 \
    "[{\"type\":\"RUN_STARTED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"},"                          \
    "{\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m1\",\"role\":\"assistant\",\"delta\":"      \
    "\"Hello\"},{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}]"

#define AISDK_STREAM                                                                               \
    D("{\"type\":\"start\",\"messageId\":\"a1\"}")                                                 \
    D("{\"type\":\"start-step\"}")                                                                 \
    D("{\"type\":\"text-start\",\"id\":\"t1\"}")                                                   \
    D("{\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"Hel\"}")                                 \
    D("{\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"lo\"}")                                  \
    D("{\"type\":\"text-end\",\"id\":\"t1\"}")                                                     \
    D("{\"type\":\"finish-step\"}") D("{\"type\":\"finish\"}") D("[DONE]")
#define AISDK_WHOLE                                                                                \
    "{\"id\":\"a1\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"Hello\"}]}"

#define RPC(result) "{\"jsonrpc\":\"2.0\",\"id\":\"task-1\",\"result\":" result "}"
#define A2A_10_STREAM                                                                              \
    D(RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"                 \
          "\"TASK_STATE_SUBMITTED\"}}}"))                                                          \
    D(RPC("{\"artifactUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"           \
          "\"artifactId\":\"x\",\"parts\":[{\"text\":\"Hel\"}]}}}"))                               \
    D(RPC("{\"artifactUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"           \
          "\"artifactId\":\"x\",\"parts\":[{\"text\":\"lo\"}]},\"append\":true,\"lastChunk\":"     \
          "true}}"))                                                                               \
    D(RPC("{\"statusUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"     \
          "\"TASK_STATE_COMPLETED\"}}}"))
#define A2A_10_WHOLE                                                                               \
    RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"                   \
        "\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"x\",\"parts\":[{\"text\":"     \
        "\"Hello\"}]}]}}")
#define A2A_03_STREAM                                                                              \
    D(RPC("{\"kind\":\"task\",\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"         \
          "\"submitted\"}}"))                                                                      \
    D(RPC("{\"kind\":\"artifact-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"  \
          "\"artifactId\":\"x\",\"parts\":[{\"kind\":\"text\",\"text\":\"Hel\"}]}}"))              \
    D(RPC("{\"kind\":\"artifact-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"  \
          "\"artifactId\":\"x\",\"parts\":[{\"kind\":\"text\",\"text\":\"lo\"}]},\"append\":true," \
          "\"lastChunk\":true}"))                                                                  \
    D(RPC("{\"kind\":\"status-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"status\":{"      \
          "\"state\":\"completed\"},\"final\":true}"))
#define A2A_03_WHOLE                                                                               \
    RPC("{\"kind\":\"message\",\"messageId\":\"q\",\"role\":\"agent\",\"parts\":[{\"kind\":"       \
        "\"text\",\"text\":\"Hello\"}]}")

/* An item of openai-responses. */
#define USER(text)                                                                                 \
    "{'type':'message','role':'user','content':[{'type':'input_text','text':'" text "'}]}"

static const struct format_case {
    const char *format, *stream, *whole;
    const char *body; /* of the request, with ' for " */
} formats[] = {
    {"ag-ui", SSE AGUI_STREAM, JSON AGUI_WHOLE,
     "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{},'messages':[{'id':"
     "'msg-1','role':'user','content':'Hi'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"ag-ui-0", SSE AGUI_STREAM, JSON AGUI_WHOLE,
     "{'threadId':'ctx-1','runId':'task-1','state':{},'messages':[{'id':'msg-1','role':'user',"
     "'content':'Hi'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"openai-chat", SSE CHAT_STREAM, JSON CHAT_WHOLE,
     "{'model':'dragoman','messages':[{'role':'user','content':'Hi'}],'stream':true,"
     "'stream_options':{'include_usage':true}}"},
    {"openai-responses", SSE RESPONSES_STREAM, JSON RESPONSE("completed", RESPONSE_MESSAGE),
     "{'model':'dragoman','input':[" USER("Hi") "],'stream':true,'store':false}"},
    {"ai-sdk", SSE AISDK_STREAM, JSON AISDK_WHOLE,
     "{'id':'ctx-1','trigger':'submit-message','messages':[{'id':'msg-1','role':'user','parts':[{"
     "'type':'text','text':'Hi'}]}]}"},
    {"a2a-1.0", SSE A2A_10_STREAM, JSON A2A_10_WHOLE,
     "{'jsonrpc':'2.0','id':'task-1','method':'SendStreamingMessage','params':{'message':{"
     "'messageId':'msg-1','contextId':'ctx-1','role':'ROLE_USER','parts':[{'text':'Hi'}]}}}"},
    {"a2a-0.3", SSE A2A_03_STREAM, JSON A2A_03_WHOLE,
     "{'jsonrpc':'2.0','id':'task-1','method':'message/stream','params':{'message':{'kind':"
     "'message','messageId':'msg-1','contextId':'ctx-1','role':'user','parts':[{'kind':'text',"
     "'text':'Hi'}]}}}"},
};

static void a_streamed_answer_is_streamed(void **state)
{
    const struct format_case *c = *state;
    struct service_answer answers[] = {{.bytes = c->stream}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent(c->format, "");
    turn_with(f, "Hi", NULL);
    check_body(0, c->body);
    assert_non_null(strstr(service.requests[0], "POST /run HTTP/1.1\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nContent-Type: application/json\r\n"));
    assert_non_null(
        strstr(service.requests[0], "\r\nAccept: text/event-stream, application/json\r\n"));
    fake_check(f);
    check_str(f->stream, "Hello");
    check_str(f->final, "Hello");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_true(f->n_chunks >= 2);
    fake_check_text(f);
    fake_close(f);
    service_close();
}

static void a_whole_answer_is_an_answer(void **state)
{
    const struct format_case *c = *state;
    struct service_answer answers[] = {{.bytes = c->whole}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent(c->format, "");
    turn_with(f, "Hi", NULL);
    fake_check(f);
    check_str(f->stream, "Hello");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    fake_check_text(f);
    fake_close(f);
    service_close();
}

/* Ids of texts that a service uses again do not replace the text of an earlier turn. */
static void a_second_turn_of_a_task_keeps_the_first(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE STARTED AGUI_TEXT("m1", "Which city?")
             D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
               "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"input_required\""
               ",\"message\":\"Which city?\"}]}}")},
        {.bytes = SSE STARTED AGUI_TEXT("m1", "Sunny.") FINISHED}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "weather", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "Which city?");
    turn_with(f, "Paris", NULL);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_body(1, "{'threadId':'ctx-1','runId':'task-1-msg-1','protocolVersion':'1.0','state':{},"
                  "'messages':[{'id':'msg-1','role':'user','content':'weather'},{'id':'m4','role':"
                  "'assistant','content':'Which city?'}],'tools':[],'context':[],"
                  "'forwardedProps':{},'resume':[{'interruptId':'i1','status':'resolved',"
                  "'payload':'Paris'}]}");
    const dgm_task *task = dgm_fold_task(f->fold);
    assert_int_equal(task->artifacts.n, 2);
    check_str(task->artifacts.at[0].parts.at[0].content, "Which city?");
    check_str(task->artifacts.at[1].parts.at[0].content, "Sunny.");
    fake_close(f);
    service_close();
}

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
     SSE CHUNK("\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":"
               "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]",
               "null") CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"city"
                             "\\\": \\\"Rome\\\"}\"}}]",
                             "null") CHUNK("", "\"tool_calls\"") D("[DONE]"),
     SSE CHAT_STREAM,
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
     JSON RESPONSE("completed",
                   "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":"
                   "\"get_weather\",\"arguments\":\"{\\\"city\\\": \\\"Rome\\\"}\",\"status\":"
                   "\"completed\"}"),
     SSE RESPONSES_STREAM,
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
     SSE STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"call_1\",\"toolCallName\":"
                   "\"get_weather\"}")
         D("{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"call_1\",\"delta\":\"{\\\"city\\\": "
           "\\\"Rome\\\"}\"}") D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"call_1\"}") FINISHED,
     SSE AGUI_STREAM,
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
    assert_true(has_event(f, CALLS));
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
        {.bytes = SSE STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\","
                                "\"toolCallName\":\"own\"}")
             D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}") AGUI_TEXT("m", "Hello")
                 FINISHED}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi", NULL);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_true(has_event(f, "\"kind\":\"internal:tool-start\""));
    fake_close(f);
    service_close();
}

/* ---- interrupts --------------------------------------------------------------------------------------------------- */

static void an_approval_is_requested_and_sent_back(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE STARTED D("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\","
                                "\"toolCallName\":\"delete\"}")
             D("{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"c\",\"delta\":\"{\\\"path\\\": "
               "\\\"x\\\"}\"}") D("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}")
                 D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
                   "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"tool_call\","
                   "\"toolCallId\":\"c\"}]}}")},
        {.bytes = SSE AGUI_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "clean up", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "May the tool delete be called?");
    assert_true(has_event(f, "{\"data\":{\"type\":\"approval-request\",\"id\":\"i1\","
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
    {"openai-responses", "", SSE MCP_STREAM, SSE RESPONSES_STREAM, "mcpr_1",
     MCP_RESPONSE("'approve':true"), MCP_RESPONSE("'approve':false,'reason':'better not'"),
     "'input':[" USER("clean up") ",{'id':'mcpr_1','type':'mcp_approval_request'"},
    {"openai-responses", "", JSON RESPONSE("completed", MCP_REQUEST("mcpr_1", "delete")),
     SSE RESPONSES_STREAM, "mcpr_1", MCP_RESPONSE("'approve':true"),
     MCP_RESPONSE("'approve':false,'reason':'better not'"), NULL},
    {"openai-responses", "'memory':'service'", SSE MCP_STREAM, SSE RESPONSES_STREAM, "mcpr_1",
     "'input':[" MCP_RESPONSE("'approve':true") "]",
     "'input':[" MCP_RESPONSE("'approve':false,'reason':'better not'") "]", NULL},
    {"ai-sdk", "", SSE SDK_START SDK_CALL("c1", "ap1") SDK_FINISH, SSE AISDK_STREAM, "ap1",
     "'role':'assistant','parts':[" SDK_PART("ap1", "c1", "'approved':true") "]}]}",
     SDK_PART("ap1", "c1", "'approved':false,'reason':'better not'"), "clean up"},
    {"ai-sdk", "",
     JSON "{\"id\":\"a1\",\"role\":\"assistant\",\"parts\":[{\"type\":\"tool-delete\","
          "\"toolCallId\":\"c1\",\"state\":\"approval-requested\",\"input\":{\"path\":\"x\"},"
          "\"approval\":{\"id\":\"ap1\"}}]}",
     SSE AISDK_STREAM, "ap1", SDK_PART("ap1", "c1", "'approved':true"),
     SDK_PART("ap1", "c1", "'approved':false,'reason':'better not'"), NULL},
};

static bool body_has(size_t i, const char *want)
{
    char text[1000];
    snprintf(text, sizeof text, "%s", want);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
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
        f->input.metadata = json_of(f, metadata);
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
        {"",
         "{'dragoman:resume':[{'interruptId':'i','status':'resolved','payload':{'approved':"
         "true}}]}",
         c->approved},
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
        forget_task(f);
        turn_with(f, "clean up", NULL);
        assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
        check_str(f->final, "May the tool delete be called?");
        char part[200];
        snprintf(part, sizeof part,
                 "{\"data\":{\"type\":\"approval-request\",\"id\":\"%s\",\"tool\":\"delete\","
                 "\"arguments\":{\"path\":\"x\"}}}",
                 c->id);
        assert_true(has_event(f, part));
        assert_false(has_event(f, "tool_calls"));
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
        {.bytes = SSE SDK_START SDK_CALL("c1", "ap1") SDK_CALL("c2", "ap2") SDK_FINISH},
        {.bytes = SSE AISDK_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ai-sdk", "");
    turn_with(f, "clean up", NULL);
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "May the tools delete and delete be called?");
    assert_true(has_event(f, "{\"type\":\"approval-request\",\"id\":\"ap1\""));
    assert_true(has_event(f, "{\"type\":\"approval-request\",\"id\":\"ap2\""));
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
        {.bytes = SSE STARTED D(
             "{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
             "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"confirmation\","
             "\"message\":\"Sure?\"},{\"id\":\"i2\",\"reason\":\"x:y\",\"message\":\"Really?\"}]"
             "}}")},
        {.bytes = SSE AGUI_STREAM}};
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
        {.bytes = SSE STARTED D("{\"type\":\"CUSTOM\",\"name\":\"on_interrupt\",\"value\":"
                                "\"\\\"Which city?\\\"\"}") FINISHED},
        {.bytes = SSE AGUI_STREAM}};
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

/* ---- state, context ------------------------------------------------------------------------------------------------ */

static void state_goes_both_ways(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE STARTED D("{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"n\":1}}") D(
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
    assert_true(has_event(f, "\"kind\":\"internal:state\",\"taskId\":\"task-1\","
                             "\"value\":{\"n\":1}"));
    assert_true(has_event(f, "\"name\":\"m\",\"value\":2"));
    fake_close(f);
    service_close();
}

/* Callers of other protocols have no state: the service gets the one of the turn before. */
static void state_is_stored_for_callers_without_one(void **state)
{
    static const struct service_answer answers[] = {
        {.bytes = SSE STARTED D("{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"n\":1.0,\"l\":[]}}")
             D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/l/-\","
               "\"value\":\"a\"}]}") FINISHED},
        {.bytes = SSE STARTED D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"replace\","
                                "\"path\":\"/n\",\"value\":2}]}") FINISHED},
        {.bytes = SSE STARTED D("{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"remove\","
                                "\"path\":\"/none\"}]}") FINISHED},
    };
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("ag-ui", "");
    turn_with(f, "Hi", NULL);
    assert_string_equal(note, "{\"n\":1.0,\"l\":[\"a\"]}");
    forget_task(f);
    turn_with(f, "Hi", NULL);
    assert_non_null(strstr(service_body(1), "\"state\":{\"n\":1.0,\"l\":[\"a\"]}"));
    assert_string_equal(note, "{\"n\":2,\"l\":[\"a\"]}");
    forget_task(f);
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
        {.bytes = SSE STARTED AGUI_TEXT("m2", "Hello")
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
        {.bytes = SSE STARTED D(
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
    struct service_answer answers[] = {{.bytes = JSON "{}"}};
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
    f->input.metadata = json_of(f, "{'dragoman:instructions':'Be brief.'}");
    start_turn(f);
    check_body(0, c->body);
    fake_close(f);
    service_close();
}

/* A transcript is a part of the message that started a context. It is not text of the user. */
static void a_transcript_is_sent_once(void **state)
{
    static const struct service_answer answers[] = {{.bytes = JSON "{}"}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-chat", "");
    for (size_t i = 0; i < 2; i++) {
        fake_prepare(f, "msg-1", "Hi");
        dgm_part parts[] = {{.kind = DGM_PART_TEXT,
                             .content = DGM_STR("user: a\nassistant: b\n"),
                             .metadata = json_of(f, "{'dragoman:part':'transcript'}")},
                            {.kind = DGM_PART_TEXT, .content = DGM_STR("Go on")}};
        dgm_message first = {
            .message_id = DGM_STR("h1"), .role = DGM_ROLE_USER, .parts = {parts, 2}};
        if (i)
            f->input.history = (dgm_messages){&first, 1};
        else
            f->message.parts = first.parts;
        start_turn(f);
        forget_task(f);
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
    static const struct service_answer answers[] = {{.bytes = SSE RESPONSES_STREAM}};
    (void)state;
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-responses", "'memory':'service'");
    turn_with(f, "Hi", NULL);
    check_body(0, "{'model':'dragoman','input':[" USER("Hi") "],"
                                                             "'stream':true,'store':true}");
    assert_string_equal(note, "resp_1");
    forget_task(f);
    turn_with(f, "Hi", NULL);
    check_body(1, "{'model':'dragoman','input':[" USER(
                      "Hi") "],"
                            "'previous_response_id':'resp_1','stream':true,'store':true}");
    fake_close(f);
    service_close();
}

static void the_form_of_the_answer_is_passed_on(void **state)
{
    static const struct service_answer answers[] = {{.bytes = JSON "{}"}};
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
        forget_task(f);
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
        forget_task(f);
    }
    fake_close(f);
    service_close();
}

/* ---- errors -------------------------------------------------------------------------------------------------------------- */

#define STATUS(line, body)                                                                         \
    "HTTP/1.1 " line "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define MIDDLE "the answer of the agent's server ended in the middle"

static const struct error_case {
    const char *name, *format, *more, *bytes;
    unsigned how;
    const char *sentence;
} errors[] = {
    {"error object of a 4xx", "openai-chat", "",
     STATUS("400 Bad Request", "{\"error\":{\"message\":\"max_tokens is too\\nlarge\"}}"), 0,
     "the agent's server at HOST answered with status 400: it rejects the request: max_tokens is "
     "too "
     "large"},
    {"detail of a 4xx", "ag-ui", "",
     STATUS("422 Unprocessable Entity",
            "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"Field required\"}]}"),
     0,
     "the agent's server at HOST answered with status 422: it rejects the request: Field required"},
    {"credential", "openai-chat", "'token_env':'DGM_TEST_TOKEN'",
     STATUS("401 Unauthorized", "{\"error\":{\"message\":\"Incorrect API key: sk-secret\"}}"), 0,
     "the agent's server at HOST answered with status 401: it wants other credentials: Incorrect "
     "API key: "
     "*********"},
    {"5xx without words", "ai-sdk", "", STATUS("500 Internal Server Error", "<h1>no</h1>"), 0,
     "the agent's server at HOST answered with status 500: it failed"},
    {"html", "openai-chat", "",
     "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html></html>", 0,
     "the agent's server at HOST answered with text/html: expected JSON or an event stream (this "
     "is a web "
     "page: check the URL)"},
    {"half a JSON", "openai-chat", "", JSON "{\"id\":\"c1\",\"choices\":[", 0,
     "the answer of the agent's server is not JSON"},
    {"another JSON", "openai-chat", "", JSON "{\"hello\":1}", 0,
     "the answer of the agent's server has nothing of the format openai-chat"},
    {"an empty answer", "ag-ui", "", SSE, 0,
     "the answer of the agent's server has nothing of the format ag-ui"},
    {"wrong type", "openai-chat", "", JSON "{\"choices\":{}}", 0,
     "the answer of the agent's server is not of the format openai-chat, at /choices"},
    {"error event of chat", "openai-chat", "",
     SSE CHUNK("\"content\":\"Hel\"", "null") D("{\"error\":{\"message\":\"overloaded\"}}"), 0,
     "overloaded"},
    {"error event of responses", "openai-responses", "",
     SSE D("{\"type\":\"error\",\"message\":\"overloaded\"}"), 0, "overloaded"},
    {"error event of ag-ui", "ag-ui", "",
     SSE STARTED D("{\"type\":\"RUN_ERROR\",\"message\":\"no model\"}"), 0, "no model"},
    {"error event of ai-sdk", "ai-sdk", "",
     SSE D("{\"type\":\"start\"}") D("{\"type\":\"error\",\"errorText\":\"no model\"}")
         D("{\"type\":\"finish\"}") D("[DONE]"),
     0, "no model"},
    {"error of a2a", "a2a-1.0", "",
     JSON "{\"jsonrpc\":\"2.0\",\"id\":\"task-1\",\"error\":{\"code\":-32001,\"message\":\"no "
          "task\"}}",
     0, "no task"},
    {"end without the mark of chat", "openai-chat", "", SSE CHUNK("\"content\":\"Hel\"", "null"), 0,
     MIDDLE},
    {"end within an event", "openai-chat", "",
     SSE CHUNK("\"content\":\"Hel\"", "null") "data: {\"id\":\"c1\",\"cho", 0, MIDDLE},
    {"end without the last event of ag-ui", "ag-ui", "", SSE STARTED AGUI_TEXT("m", "x"), 0,
     MIDDLE},
    {"end without the last event of responses", "openai-responses", "",
     SSE D("{\"type\":\"response.created\",\"response\":" RESPONSE("in_progress", "") "}"), 0,
     MIDDLE},
    {"end without the last chunk of ai-sdk", "ai-sdk", "", SSE D("{\"type\":\"start\"}"), 0,
     MIDDLE},
    {"end without a state of a2a", "a2a-1.0", "",
     SSE D(RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"c\",\"status\":{\"state\":"
               "\"TASK_STATE_WORKING\"}}}")),
     0, MIDDLE},
};
#define N_ERRORS (sizeof errors / sizeof *errors)

static void every_error_has_its_sentence(void **state)
{
    (void)state;
    setenv("DGM_TEST_TOKEN", "sk-secret", 1);
    service_open();
    for (size_t i = 0; i < N_ERRORS; i++) {
        struct service_answer answers[] = {{.bytes = errors[i].bytes, .how = errors[i].how}};
        SERVICE_SET(answers);
        struct fake *f = open_agent(errors[i].format, errors[i].more);
        print_message("# %s\n", errors[i].name);
        turn_with(f, "Hi", NULL);
        check_failed(f, service_placed(errors[i].sentence));
        assert_false(has_event(f, "sk-secret"));
        fake_close(f);
    }
    service_close();
}

/* Their sentences name the address. */
static void transport_errors_have_their_sentences(void **state)
{
    static const struct service_answer silent[] = {{.how = SERVICE_HOLD}};
    static const struct service_answer stuck[] = {
        {.bytes = SSE CHUNK("\"content\":\"Hel\"", "null"), .how = SERVICE_HOLD}};
    static const struct service_answer lost[] = {
        {.bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "
                  "9999\r\n\r\n" CHUNK("\"content\":\"Hel\"", "null")}};
    char want[200];
    (void)state;
    service_open();
    const struct {
        const struct service_answer *answer;
        const char *more, *sentence;
    } cases[] = {
        {silent, "'answer_timeout':0.2", "no answer from 127.0.0.1:%d within 0.2 s"},
        {stuck, "'silence_timeout':0.2", "127.0.0.1:%d sent nothing for 0.2 s"},
        {lost, "", "127.0.0.1:%d closed the connection in the middle of its answer"},
    };
    for (size_t i = 0; i < 3; i++) {
        service_set(cases[i].answer, 1);
        struct fake *f = open_agent("openai-chat", cases[i].more);
        turn_with(f, "Hi", NULL);
        snprintf(want, sizeof want, cases[i].sentence, service.port);
        check_failed(f, want);
        fake_close(f);
    }
    int port = service.port;
    struct fake *f = open_agent("openai-chat", "");
    service_close();
    turn_with(f, "Hi", NULL);
    snprintf(want, sizeof want, "cannot connect to 127.0.0.1:%d: ", port);
    assert_int_equal(f->state, DGM_STATE_FAILED);
    assert_true(has_event(f, want));
    fake_close(f);
}

/* A line over the limit ends the answer before it is read. */
static void a_line_over_the_limit_is_an_error(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, SSE "data: \"");
    while (b.n < DGM_MAX_SSE_LINE_BYTES + 65536)
        dgm_buf_add_lit(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    struct service_answer answers[] = {{.bytes = b.p, .n = b.n}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-chat", "");
    turn_with(f, "Hi", NULL);
    assert_int_equal(f->state, DGM_STATE_FAILED);
    assert_true(has_event(f, "the answer of the agent's server cannot be read: "));
    fake_close(f);
    service_close();
    dgm_buf_done(&b);
}

/* ---- cuts -------------------------------------------------------------------------------------------------------------------- */

/* Wherever the connection is lost: the task ends, and no text comes twice. */
static void a_stream_can_be_cut_at_every_byte(void **state)
{
    static const char body[] = CHAT_STREAM;
    char *bytes = malloc(sizeof body + 200);
    (void)state;
    int head = snprintf(bytes, 200,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        sizeof body - 1);
    memcpy(bytes + head, body, sizeof body);
    service_open();
    struct fake *f = open_agent("openai-chat", "");
    size_t n_completed = 0;
    const char *done = strstr(body, "data: [DONE]") + strlen("data: [DONE]\n");
    for (size_t n = 0; n < sizeof body; n++) {
        struct service_answer answers[] = {{.bytes = bytes, .n = (size_t)head + n}};
        SERVICE_SET(answers);
        forget_task(f);
        turn_with(f, "Hi", NULL);
        fake_check(f);
        bool is_all = f->stream.n == 5 && memcmp(f->stream.p, "Hello", 5) == 0;
        assert_true(is_all || f->stream.n == 0 ||
                    (f->stream.n == 3 && memcmp(f->stream.p, "Hel", 3) == 0));
        assert_int_equal(f->state, body + n > done ? DGM_STATE_COMPLETED : f->state);
        n_completed += f->state == DGM_STATE_COMPLETED;
        if (f->state != DGM_STATE_COMPLETED)
            assert_int_equal(f->state, DGM_STATE_FAILED);
        else
            assert_true(is_all);
    }
    assert_true(n_completed >= 1 && n_completed <= 3);
    fake_close(f);
    service_close();
    free(bytes);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------------------ */

static void cancel_ends_the_request(void **state)
{
    static const struct service_answer silent[] = {{.how = SERVICE_HOLD}};
    static const struct service_answer stuck[] = {
        {.bytes = SSE CHUNK("\"content\":\"Hel\"", "null"), .how = SERVICE_HOLD}};
    (void)state;
    service_open();
    for (int i = 0; i < 2; i++) {
        service_set(i ? stuck : silent, 1);
        struct fake *f = open_agent("openai-chat", "");
        if (i)
            f->cancel_at = 2; /* working, the text */
        else
            f->cancel_ms = 100;
        turn_with(f, "Hi", NULL);
        fake_check(f);
        assert_int_equal(f->state, DGM_STATE_CANCELED);
        check_str(f->stream, i ? "Hel" : "");
        assert_true(f->ms < 5000);
        fake_close(f);
    }
    service_close();
}

/* ---- settings ------------------------------------------------------------------------------------------------------------------ */

static void mistakes_in_settings_are_found(void **state)
{
    static const struct {
        const char *config, *at;
    } cases[] = {
        {"{'format':'ag-ui'}", "/url"},
        {"{'url':'http://a'}", "/format"},
        {"{'url':'ftp://a','format':'ag-ui'}", "/url"},
        {"{'url':'http://a','format':'soap'}", "/format"},
        {"{'url':'http://a','format':'ag-ui','memory':'none'}", "/memory"},
        {"{'url':'http://a','format':'ag-ui','token_env':'DGM_TEST_NONE'}", "/token_env"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake f = {.arena = dgm_arena_new()};
        dgm_err err = {0};
        void *agent;
        assert_int_not_equal(
            dgm_backend_http.open(json_of(&f, cases[i].config), NULL, &agent, &err), DGM_OK);
        assert_string_equal(err.at, cases[i].at);
        dgm_arena_free(f.arena);
    }
}

DGM_TEST_MAIN(
    dgm_test_with("ag-ui streamed", a_streamed_answer_is_streamed, &formats[0]),
    dgm_test_with("ag-ui-0 streamed", a_streamed_answer_is_streamed, &formats[1]),
    dgm_test_with("openai-chat streamed", a_streamed_answer_is_streamed, &formats[2]),
    dgm_test_with("openai-responses streamed", a_streamed_answer_is_streamed, &formats[3]),
    dgm_test_with("ai-sdk streamed", a_streamed_answer_is_streamed, &formats[4]),
    dgm_test_with("a2a-1.0 streamed", a_streamed_answer_is_streamed, &formats[5]),
    dgm_test_with("a2a-0.3 streamed", a_streamed_answer_is_streamed, &formats[6]),
    dgm_test_with("ag-ui whole", a_whole_answer_is_an_answer, &formats[0]),
    dgm_test_with("ag-ui-0 whole", a_whole_answer_is_an_answer, &formats[1]),
    dgm_test_with("openai-chat whole", a_whole_answer_is_an_answer, &formats[2]),
    dgm_test_with("openai-responses whole", a_whole_answer_is_an_answer, &formats[3]),
    dgm_test_with("ai-sdk whole", a_whole_answer_is_an_answer, &formats[4]),
    dgm_test_with("a2a-1.0 whole", a_whole_answer_is_an_answer, &formats[5]),
    dgm_test_with("a2a-0.3 whole", a_whole_answer_is_an_answer, &formats[6]),
    dgm_test(a_second_turn_of_a_task_keeps_the_first),
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
    dgm_test(a_custom_interrupt_is_a_question), dgm_test(state_goes_both_ways),
    dgm_test(state_is_stored_for_callers_without_one), dgm_test(a_snapshot_repeats_nothing),
    dgm_test(an_answer_may_be_in_a_snapshot_only),
    dgm_test_with("history of chat", the_conversation_is_in_the_request, &histories[0]),
    dgm_test_with("history of responses", the_conversation_is_in_the_request, &histories[1]),
    dgm_test_with("history of ag-ui", the_conversation_is_in_the_request, &histories[2]),
    dgm_test_with("history of ai-sdk", the_conversation_is_in_the_request, &histories[3]),
    dgm_test_with("memory of an ag-ui service", the_conversation_is_in_the_request, &histories[4]),
    dgm_test_with("memory of a chat service", the_conversation_is_in_the_request, &histories[5]),
    dgm_test(a_transcript_is_sent_once), dgm_test(a_service_with_memory_gets_the_response_before),
    dgm_test(the_form_of_the_answer_is_passed_on), dgm_test(every_error_has_its_sentence),
    dgm_test(transport_errors_have_their_sentences), dgm_test(a_line_over_the_limit_is_an_error),
    dgm_test(a_stream_can_be_cut_at_every_byte), dgm_test(cancel_ends_the_request),
    dgm_test(mistakes_in_settings_are_found))
