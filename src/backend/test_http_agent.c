/* test_http_agent.c - services as agents: each format, streamed and whole; every way to fail; cancel; settings. */
#include "backend/test_http_agent.h"
#include "backend/http/http_int.h"
#include "base/limits.h"

/* ---- answers of each format ------------------------------------------------------------------------------------ */

static const struct format_case {
    const char *format, *stream, *whole;
    const char *body; /* of the request, with ' for " */
} formats[] = {
    {"ag-ui", SSE_HEAD AGUI_STREAM, JSON_HEAD AGUI_WHOLE,
     "{'threadId':'ctx-1','runId':'task-1','protocolVersion':'1.0','state':{},'messages':[{'id':"
     "'msg-1','role':'user','content':'Hi'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"ag-ui-0", SSE_HEAD AGUI_STREAM, JSON_HEAD AGUI_WHOLE,
     "{'threadId':'ctx-1','runId':'task-1','state':{},'messages':[{'id':'msg-1','role':'user',"
     "'content':'Hi'}],'tools':[],'context':[],'forwardedProps':{}}"},
    {"openai-chat", SSE_HEAD CHAT_STREAM, JSON_HEAD CHAT_WHOLE,
     "{'model':'dragoman','messages':[{'role':'user','content':'Hi'}],'stream':true,"
     "'stream_options':{'include_usage':true}}"},
    {"openai-responses", SSE_HEAD RESPONSES_STREAM,
     JSON_HEAD RESPONSE("completed", RESPONSE_MESSAGE),
     "{'model':'dragoman','input':[" USER("Hi") "],'stream':true,'store':false}"},
    {"ai-sdk", SSE_HEAD AISDK_STREAM, JSON_HEAD AISDK_WHOLE,
     "{'id':'ctx-1','trigger':'submit-message','messages':[{'id':'msg-1','role':'user','parts':[{"
     "'type':'text','text':'Hi'}]}]}"},
    {"a2a-1.0", SSE_HEAD A2A_10_STREAM, JSON_HEAD A2A_10_WHOLE,
     "{'jsonrpc':'2.0','id':'task-1','method':'SendStreamingMessage','params':{'message':{"
     "'messageId':'msg-1','contextId':'ctx-1','role':'ROLE_USER','parts':[{'text':'Hi'}]}}}"},
    {"a2a-0.3", SSE_HEAD A2A_03_STREAM, JSON_HEAD A2A_03_WHOLE,
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
        {.bytes = SSE_HEAD STARTED AGUI_TEXT("m1", "Which city?")
             D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\",\"outcome\":{"
               "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"input_required\""
               ",\"message\":\"Which city?\"}]}}")},
        {.bytes = SSE_HEAD STARTED AGUI_TEXT("m1", "Sunny.") FINISHED}};
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
    {"half a JSON", "openai-chat", "", JSON_HEAD "{\"id\":\"c1\",\"choices\":[", 0,
     "the answer of the agent's server is not JSON"},
    {"another JSON", "openai-chat", "", JSON_HEAD "{\"hello\":1}", 0,
     "the answer of the agent's server has nothing of the format openai-chat"},
    {"an empty answer", "ag-ui", "", SSE_HEAD, 0,
     "the answer of the agent's server has nothing of the format ag-ui"},
    {"wrong type", "openai-chat", "", JSON_HEAD "{\"choices\":{}}", 0,
     "the answer of the agent's server is not of the format openai-chat, at /choices"},
    {"error event of chat", "openai-chat", "",
     SSE_HEAD CHUNK("\"content\":\"Hel\"", "null") D("{\"error\":{\"message\":\"overloaded\"}}"), 0,
     "overloaded"},
    {"error event of responses", "openai-responses", "",
     SSE_HEAD D("{\"type\":\"error\",\"message\":\"overloaded\"}"), 0, "overloaded"},
    {"error event of ag-ui", "ag-ui", "",
     SSE_HEAD STARTED D("{\"type\":\"RUN_ERROR\",\"message\":\"no model\"}"), 0, "no model"},
    {"error event of ai-sdk", "ai-sdk", "",
     SSE_HEAD D("{\"type\":\"start\"}") D("{\"type\":\"error\",\"errorText\":\"no model\"}")
         D("{\"type\":\"finish\"}") D("[DONE]"),
     0, "no model"},
    {"error of a2a", "a2a-1.0", "",
     JSON_HEAD "{\"jsonrpc\":\"2.0\",\"id\":\"task-1\",\"error\":{\"code\":-32001,\"message\":\"no "
               "task\"}}",
     0, "no task"},
    {"end without the mark of chat", "openai-chat", "",
     SSE_HEAD CHUNK("\"content\":\"Hel\"", "null"), 0, MIDDLE},
    {"end within an event", "openai-chat", "",
     SSE_HEAD CHUNK("\"content\":\"Hel\"", "null") "data: {\"id\":\"c1\",\"cho", 0, MIDDLE},
    {"end without the last event of ag-ui", "ag-ui", "", SSE_HEAD STARTED AGUI_TEXT("m", "x"), 0,
     MIDDLE},
    {"end without the last event of responses", "openai-responses", "",
     SSE_HEAD D("{\"type\":\"response.created\",\"response\":" RESPONSE("in_progress", "") "}"), 0,
     MIDDLE},
    {"end without the last chunk of ai-sdk", "ai-sdk", "", SSE_HEAD D("{\"type\":\"start\"}"), 0,
     MIDDLE},
    {"end without a state of a2a", "a2a-1.0", "",
     SSE_HEAD D(RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"c\",\"status\":{\"state\":"
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
        assert_false(fake_has(&f->events, "sk-secret"));
        fake_close(f);
    }
    service_close();
}

/* Their sentences name the address. */
static void transport_errors_have_their_sentences(void **state)
{
    static const struct service_answer silent[] = {{.how = SERVICE_HOLD}};
    static const struct service_answer stuck[] = {
        {.bytes = SSE_HEAD CHUNK("\"content\":\"Hel\"", "null"), .how = SERVICE_HOLD}};
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
    assert_true(fake_has(&f->events, want));
    fake_close(f);
}

/* A line over the limit ends the answer before it is read. */
static void a_line_over_the_limit_is_an_error(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, SSE_HEAD "data: \"");
    while (b.n < DGM_MAX_SSE_LINE_BYTES + 65536)
        dgm_buf_add_lit(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    struct service_answer answers[] = {{.bytes = b.p, .n = b.n}};
    service_open();
    SERVICE_SET(answers);
    struct fake *f = open_agent("openai-chat", "");
    turn_with(f, "Hi", NULL);
    assert_int_equal(f->state, DGM_STATE_FAILED);
    assert_true(fake_has(&f->events, "the answer of the agent's server cannot be read: "));
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
        fake_new_task(f);
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
        {.bytes = SSE_HEAD CHUNK("\"content\":\"Hel\"", "null"), .how = SERVICE_HOLD}};
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
        assert_true(f->ms < 30000);
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
            dgm_backend_http.open(fake_json(f.arena, cases[i].config), NULL, &agent, &err), DGM_OK);
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
    dgm_test(a_second_turn_of_a_task_keeps_the_first), dgm_test(every_error_has_its_sentence),
    dgm_test(transport_errors_have_their_sentences), dgm_test(a_line_over_the_limit_is_an_error),
    dgm_test(a_stream_can_be_cut_at_every_byte), dgm_test(cancel_ends_the_request),
    dgm_test(mistakes_in_settings_are_found))
