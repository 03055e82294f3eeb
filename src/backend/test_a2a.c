/*
 * test_a2a.c - agents of other A2A servers: a scripted server answers, and the runs are checked for what they emit and what
 * they send.
 */
#include "backend/test_fake.h"
#include "net/test_peer.h"

#include <stdlib.h>

/* ---- what the server answers ------------------------------------------------------------------------------------------- */

#define JSON_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define SSE_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define RPC(result) "data: {'jsonrpc':'2.0','id':1,'result':" result "}\n\n"
#define RPC_ID(id, result) "id: " id "\ndata: {'jsonrpc':'2.0','id':1,'result':" result "}\n\n"
#define IDS "'taskId':'far:1','contextId':'far-c'"
#define TASK_10(state) "{'task':{'id':'far:1','contextId':'far-c','status':{'state':'" state "'}}}"
#define STATUS_10(state) "{'statusUpdate':{" IDS ",'status':{'state':'" state "'}}}"
#define SAYS_10(state, id, text)                                                                   \
    "{'statusUpdate':{" IDS ",'status':{'state':'" state "','message':{'messageId':'" id           \
    "','taskId':'far:1','contextId':'far-c','role':'ROLE_AGENT','parts':[{'text':'" text "'}]}}}}"
#define CHUNK_10(text, append, last)                                                               \
    "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','parts':[{'text':'" text              \
    "'}]},'append':" append ",'lastChunk':" last "}}"
#define WHOLE_TASK(state, text)                                                                    \
    "{'id':'far:1','contextId':'far-c','status':{'state':'" state "'},'artifacts':[{'artifactId':" \
    "'a','parts':[{'text':'" text "'}]}]}"

#define ANSWER_10                                                                                  \
    RPC_ID("1", TASK_10("TASK_STATE_SUBMITTED"))                                                   \
    RPC_ID("2", STATUS_10("TASK_STATE_WORKING"))                                                   \
    RPC_ID("3", CHUNK_10("Hello", "false", "false"))                                               \
    RPC_ID("4", CHUNK_10(" world", "true", "true")) RPC_ID("5", STATUS_10("TASK_STATE_COMPLETED"))

static char card_10[1024], card_03[1024], card_rest[1024], card_polled[1024];
static char texts[16][20000]; /* scripts with " for ' */
static size_t n_texts;

static const char *quoted(const char *text)
{
    char *to = texts[n_texts++];
    assert_true(n_texts <= 16 && strlen(text) < sizeof texts[0]);
    pthread_mutex_lock(&server.lock);
    strcpy(to, text);
    for (; *to; to++)
        *to = *to == '\'' ? '"' : *to;
    pthread_mutex_unlock(&server.lock);
    return texts[n_texts - 1];
}

static void make_card(char *to, size_t size, const char *binding, const char *version,
                      const char *path, bool streams)
{
    snprintf(to, size,
             JSON_HEAD
             "{'name':'x','description':'x','version':'1','capabilities':{'streaming':%s},"
             "'defaultInputModes':['text'],'defaultOutputModes':['text'],'skills':[],"
             "'supportedInterfaces':[{'url':'http://127.0.0.1:%d%s','protocolBinding':'%s',"
             "'protocolVersion':'%s'}]}",
             streams ? "true" : "false", server.port, path, binding, version);
    for (char *p = to; *p; p++)
        *p = *p == '\'' ? '"' : *p;
}

static void start_server(void)
{
    static const struct script none[] = {{NULL, 0}};
    server_start(none, 1);
    n_texts = 0;
    make_card(card_10, sizeof card_10, "JSONRPC", "1.0", "/rpc", true);
    make_card(card_03, sizeof card_03, "JSONRPC", "0.3", "/rpc", true);
    make_card(card_rest, sizeof card_rest, "HTTP+JSON", "1.0", "/rest", true);
    make_card(card_polled, sizeof card_polled, "JSONRPC", "1.0", "/rpc", false);
}

static struct fake *open_agent(const char *more)
{
    char config[400];
    snprintf(config, sizeof config, "{'url':'http://127.0.0.1:%d'%s}", server.port, more);
    struct fake *f = fake_open("a2a", config, NULL);
    f->can_store = true;
    return f;
}

static void close_agent(struct fake *f)
{
    fake_close(f);
    server_stop();
}

#define SCRIPT(name, ...)                                                                          \
    const struct script name[] = {__VA_ARGS__};                                                    \
    server_script(name, sizeof name / sizeof *name)
#define ON_CARD "GET /.well-known"

static bool has(const dgm_buf *b, const char *what)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    return strstr(dgm_arena_dup(a, dgm_buf_str(b)).p, what);
}

/* Text once, in every place; nothing of the agent's ids. */
static void check_answer(struct fake *f, const char *text)
{
    fake_check(f);
    check_str(f->stream, text);
    fake_check_text(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_false(has(&f->events, "far"));
}

static void check_failure(struct fake *f, const char *sentence)
{
    if (f->state != DGM_STATE_FAILED || !has(&f->events, sentence)) {
        print_error("expected \"%s\", got %.*s\n", sentence, DGM_P(dgm_buf_str(&f->events)));
        fail();
    }
    fake_check(f);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

static void streams_over_json_rpc_10(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task working chunk last completed");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"method\":\"SendStreamingMessage\""), 1);
    assert_int_equal(server_count("A2A-Version: 1.0"), 2);
    assert_int_equal(server_count("\"text\":\"hi\""), 1);
    assert_int_equal(server_count("task-1"), 0); /* our ids are ours */
    assert_int_equal(server_count("ctx-1"), 0);
    assert_true(has(&f->stored[DGM_RUN_TASK], "\"task\":\"far:1\""));
    assert_int_equal(f->n_events_before[DGM_RUN_TASK],
                     0); /* so it is stored before they are visible */
    check_str(f->stored[DGM_RUN_CONTEXT], "{\"context\":\"far-c\"}");

    /* another task of the same context: the agent's context is used, the card is not fetched again */
    fake_new_task(f);
    SCRIPT(s2, {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "again");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"contextId\":\"far-c\""), 1);
    assert_int_equal(server_count("\"taskId\""), 0);
    assert_int_equal(server_count(ON_CARD), 0);
    close_agent(f);
}

static void streams_over_json_rpc_03(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_03, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(
                "{'kind':'task','id':'far:1','contextId':'far-c','status':{'state':'submitted'}}")
                       RPC("{'kind':'status-update'," IDS
                           ",'final':false,'status':{'state':'working'}}")
                           RPC("{'kind':'artifact-update'," IDS
                               ",'artifact':{'artifactId':'a','parts':[{'kind':'text','text':"
                               "'Hello world'}]},'append':false,'lastChunk':true}")
                               RPC("{'kind':'status-update'," IDS
                                   ",'final':true,'status':{'state':'completed'}}")),
            0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task working last completed");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"method\":\"message/stream\""), 1);
    assert_int_equal(server_count("\"kind\":\"text\""), 1);
    assert_int_equal(server_count("A2A-Version: 0.3"), 1);
    close_agent(f);
}

static void streams_over_rest(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_rest, 0, ON_CARD},
           {quoted(SSE_HEAD "data: " TASK_10("TASK_STATE_WORKING") "\n\ndata: " CHUNK_10(
                "Hello", "false",
                "false") "\n\ndata: " CHUNK_10(" world", "true",
                                               "false") "\n\ndata: " STATUS_10("TASK_STATE_"
                                                                               "COMPLETED") "\n\n"),
            0, "POST /rest/message:stream"});
    fake_run(f, "hi");
    check_trace(f, "working chunk chunk last completed"); /* the last chunk is ours */
    check_answer(f, "Hello world");
    close_agent(f);
}

static void a_message_is_complete(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC("{'message':{'messageId':'m','contextId':'far-c','taskId':'far:1',"
                                "'role':'ROLE_AGENT','parts':[{'text':'Hi'}]}}")),
            0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "message");
    check_str(f->final, "Hi");
    assert_false(has(&f->events, "far"));
    check_str(f->stored[DGM_RUN_CONTEXT], "{\"context\":\"far-c\"}");
    close_agent(f);
}

static void a_question_is_answered_in_its_task(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(SAYS_10("TASK_STATE_INPUT_REQUIRED", "q1", "Which?"))),
            HOLD, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task input-required");
    check_str(f->final, "Which?");
    /* the stream of the answer starts with the task as it was */
    SCRIPT(s2,
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_INPUT_REQUIRED")) ANSWER_10), 0, "POST /rpc"});
    fake_run_with(f, "msg-2", "this one");
    check_trace(f, "chunk last completed");
    check_str(f->stream, "Hello world");
    assert_int_equal(server_count("\"taskId\":\"far:1\""), 1);
    assert_int_equal(server_count("\"contextId\":\"far-c\""), 1);
    assert_int_equal(server_count("this one"), 1);
    close_agent(f);
}

static void polls_agents_without_streams(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_polled, 0, ON_CARD},
           {quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" TASK_10("TASK_STATE_WORKING") "}"),
            0, "\"method\":\"SendMessage\""},
           {quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK("TASK_STATE_WORKING",
                                                                            "Hello") "}"),
            0, "\"method\":\"GetTask\""},
           {quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK("TASK_STATE_WORKING",
                                                                            "Hello") "}"),
            0, "\"method\":\"GetTask\""},
           {quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK("TASK_STATE_COMPLETED",
                                                                            "Hello world") "}"),
            0, "\"method\":\"GetTask\""});
    fake_run(f, "hi");
    check_trace(f, "working chunk last completed");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"returnImmediately\":true"), 1);
    assert_int_equal(server_count("\"method\":\"GetTask\""), 3);
    assert_true(f->ms >= 1500); /* 0.5 s, 0.8 s, ... */
    close_agent(f);
}

static void the_end_of_a_task_is_passed_on(void **state)
{
    static const char *const rows[][2] = {
        {RPC(SAYS_10("TASK_STATE_FAILED", "m", "no luck")), "working failed"},
        {RPC(SAYS_10("TASK_STATE_REJECTED", "m", "not this")), "working rejected"},
        {RPC(STATUS_10("TASK_STATE_CANCELED")), "working canceled"},
        {RPC(SAYS_10("TASK_STATE_AUTH_REQUIRED", "m", "log in")), "working auth-required"},
        {RPC(CHUNK_10("Hal", "false", "false")) RPC(SAYS_10("TASK_STATE_FAILED", "m", "no luck")),
         "working chunk last failed"},
    };
    char text[4000];
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        n_texts = 0;
        snprintf(text, sizeof text, SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING")) "%s", rows[i][0]);
        SCRIPT(s, {card_10, 0, ON_CARD}, {quoted(text), 0, "POST /rpc"});
        fake_new_task(f);
        fake_run(f, "hi");
        check_trace(f, rows[i][1]);
        fake_check(f);
    }
    close_agent(f);
}

/* LangGraph's server, agents.md C.3: working statuses with the whole text so far and a new id each, then the artifact, then
 * completed without a message; `kind` and parts of 0.3 in answers of 1.0. */
#define LANG_TEXT(id, text)                                                                        \
    RPC("{'statusUpdate':{'kind':'status-update'," IDS                                             \
        ",'final':false,'status':{'state':'TASK_STATE_WORKING','message':{'kind':'message',"       \
        "'messageId':'" id "','role':'ROLE_AGENT','parts':[{'kind':'text','text':'" text           \
        "'}]}}}}")
#define LANG_ANSWER                                                                                \
    RPC("{'task':{'kind':'task','id':'far:1','contextId':'far-c','status':{'state':'submitted'}}"  \
        "}")                                                                                       \
    LANG_TEXT("1", "He")                                                                           \
    LANG_TEXT("2", "Hello")                                                                        \
    LANG_TEXT("3", "Hello wor")                                                                    \
    LANG_TEXT("4", "Hello world")                                                                  \
    RPC("{'artifactUpdate':{'kind':'artifact-update'," IDS                                         \
        ",'artifact':{'artifactId':'u','name':'Assistant "                                         \
        "Response','parts':[{'kind':'text','text':'Hello world'}]},'lastChunk':true}}")            \
    RPC("{'statusUpdate':{'kind':'status-update'," IDS ",'final':true,'status':{'state':"          \
        "'TASK_STATE_COMPLETED'}}}")

static void cumulative_statuses_are_one_text(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD LANG_ANSWER), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task chunk chunk chunk last completed");
    check_answer(f, "Hello world");
    assert_true(has(&f->events, "Assistant Response"));
    close_agent(f);
}

static void progress_stays_progress(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(SAYS_10("TASK_STATE_WORKING", "1", "Looking"))
                           RPC(SAYS_10("TASK_STATE_WORKING", "2", "Writing"))
                               RPC(CHUNK_10("Hello world", "false", "true"))
                                   RPC(STATUS_10("TASK_STATE_COMPLETED"))),
            0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task working+ working+ last completed");
    check_str(f->stream, "Hello world");
    close_agent(f);
}

/* ---- lost connections ------------------------------------------------------------------------------------------------------ */

static const char unsupported[] =
    JSON_HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}";

/* The stream is cut at every byte. is_lost: with an error, else as if it were complete. Then the server has a subscription, or
 * only GetTask. */
static void cut_everywhere(const char *card, const char *answer, const char *then, bool is_lost)
{
    char head[300];
    start_server();
    make_card(card_10, sizeof card_10, "JSONRPC", "1.0", "/rpc", true);
    struct fake *f = open_agent("");
    const char *body = quoted(answer), *follow = quoted(then);
    const char *get = quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK(
        "TASK_STATE_COMPLETED", "Hello world") "}");
    size_t n = strlen(body);
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n%s\r\n",
             is_lost ? "Content-Length: 1000000\r\n" : "");
    char *bytes = calloc(1, strlen(head) + n + 1);
    for (size_t i = 0; i <= n; i++) {
        size_t head_n = strlen(head);
        pthread_mutex_lock(&server.lock);
        memcpy(bytes, head, head_n);
        memcpy(bytes + head_n, body, i);
        pthread_mutex_unlock(&server.lock);
        SCRIPT(s, {card, 0, ON_CARD}, {bytes, 0, "SendStreamingMessage", head_n + i},
               {*then ? follow : unsupported, 0, "SubscribeToTask"}, {get, 0, "GetTask"});
        fake_new_task(f);
        fake_run(f, "hi");
        bool is_known = strstr(bytes + head_n, "TASK_STATE_SUBMITTED\"}}}}") ||
                        strstr(bytes + head_n, "\"submitted\"}}}}");
        if (is_known || f->state == DGM_STATE_COMPLETED) {
            fake_check(f);
            if (f->stream.n != 11 || memcmp(f->stream.p, "Hello world", 11) != 0) {
                print_error("cut at byte %zu: %.*s\n", i, DGM_P(dgm_buf_str(&f->events)));
                fail();
            }
            assert_int_equal(f->state, DGM_STATE_COMPLETED);
        } else {
            assert_int_equal(f->state, DGM_STATE_FAILED);
        }
        assert_int_equal(server_count("SendStreamingMessage"), 1);
    }
    close_agent(f);
    free(bytes);
}

static void a_cut_stream_is_completed_by_get(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, "", true);
}

static void a_stream_that_ends_early_is_completed_by_get(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, "", false);
}

/* The subscription starts with the task as it is. */
static void a_cut_stream_is_completed_by_a_subscription(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10,
                   SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello wor") "}")
                       RPC(CHUNK_10("ld", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED")),
                   true);
}

/* ... or repeats everything. */
static void a_subscription_may_repeat_everything(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, SSE_HEAD ANSWER_10, true);
}

static void a_cut_stream_of_statuses_is_completed(void **state)
{
    (void)state;
    cut_everywhere(card_10, LANG_ANSWER, "", true);
}

static void a_subscription_names_the_last_event(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC_ID("1", TASK_10("TASK_STATE_SUBMITTED"))
                       RPC_ID("2", CHUNK_10("Hello", "false", "false"))),
            0, "SendStreamingMessage"},
           {quoted(SSE_HEAD RPC_ID("3", CHUNK_10(" world", "true", "true"))
                       RPC_ID("4", STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("Last-Event-ID: 2"), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);
    close_agent(f);
}

static void a_doubtful_message_is_sent_again_only_if_allowed(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD}, {NULL, 0, "POST /rpc"});
    fake_run(f, "hi");
    check_failure(f, "the message may have been received, therefore it was not sent again");
    assert_int_equal(server_count("POST /rpc"), 1);
    close_agent(f);

    start_server();
    f = open_agent(",'resend':true");
    SCRIPT(s2, {card_10, 0, ON_CARD}, {NULL, 0, "POST /rpc"},
           {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("POST /rpc"), 2);
    close_agent(f);
}

static void a_restart_follows_the_same_task(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(CHUNK_10("Hello", "false", "false"))),
            HOLD, "POST /rpc"},
           {quoted(SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello") "}") RPC(
                CHUNK_10(" world", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    f->cancel_ms = 300;
    fake_run(f, "hi"); /* stores the id; it ends canceled, which the next process does not know */
    f->cancel_ms = 0;
    f->is_resumed = true;
    dgm_buf note = f->stored[DGM_RUN_TASK];
    dgm_buf_init(&f->stored[DGM_RUN_TASK], SIZE_MAX);
    fake_new_task(f);
    f->stored[DGM_RUN_TASK] = note;
    SCRIPT(s2, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello") "}") RPC(
                CHUNK_10(" world", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("SendStreamingMessage"), 0);

    fake_new_task(f); /* nothing is known of this one */
    fake_run(f, "hi");
    check_failure(f, "the server was restarted before the agent had named its task");
    assert_int_equal(server_count("SendStreamingMessage"), 0);
    close_agent(f);
}

/* A restart between the runs: what is stored of the task remains. */
static void restart_task(struct fake *f)
{
    dgm_buf note = f->stored[DGM_RUN_TASK];
    dgm_buf_init(&f->stored[DGM_RUN_TASK], SIZE_MAX);
    fake_new_task(f);
    dgm_buf_done(&f->stored[DGM_RUN_TASK]);
    f->stored[DGM_RUN_TASK] = note;
    f->is_resumed = true;
}

static void a_message_that_is_sent_again_has_its_metadata(void **state)
{
    static dgm_str mode = DGM_STR("text/x-test");
    (void)state;
    start_server();
    struct fake *f = open_agent(",'resend':true");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0, "POST /rpc"});
    fake_prepare(f, "msg-1", "hi");
    f->input.metadata =
        dgm_json_parse_trusted(f->arena, DGM_STR("{\"k\":\"v\",\"dragoman:own\":1}"));
    f->input.accepted_output_modes = (dgm_strs){&mode, 1};
    dgm_loop_post(f->run.loop, fake_do_start, f);
    uv_sem_wait(&f->ended);
    check_failure(f, "status 401"); /* as if the process had ended before that */
    assert_true(has(&f->stored[DGM_RUN_TASK], "\"metadata\":{\"k\":\"v\"}"));
    restart_task(f);
    SCRIPT(s2, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"metadata\":{\"k\":\"v\"}"), 1);
    assert_int_equal(server_count("[\"text/x-test\"]"), 1);
    assert_false(has(&f->stored[DGM_RUN_TASK], "metadata")); /* the task is known now */
    close_agent(f);
}

/* ---- cancel ---------------------------------------------------------------------------------------------------------------- */

static const char canceled_10[] =
    JSON_HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"id\":\"far:1\",\"contextId\":\"far-c\","
              "\"status\":{\"state\":\"TASK_STATE_CANCELED\"}}}";

static void a_cancel_reaches_the_agent(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(CHUNK_10("Hel", "false", "false"))),
            HOLD, "SendStreamingMessage"},
           {canceled_10, 0, "CancelTask"});
    f->cancel_at = 2;
    fake_run(f, "hi");
    check_trace(f, "task chunk last canceled");
    fake_check(f);
    assert_int_equal(server_count("\"method\":\"CancelTask\""), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);

    /* before the agent has answered: there is no task to cancel */
    f->cancel_at = 0;
    f->cancel_ms = 100;
    SCRIPT(s2, {NULL, HOLD, "SendStreamingMessage"}, {canceled_10, 0, "CancelTask"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_true(f->ms >= 4000 && f->ms < 6000); /* it has had time to name it */
    assert_int_equal(server_count("CancelTask"), 0);

    /* the agent does not answer the cancel */
    SCRIPT(s3, {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "SendStreamingMessage"},
           {NULL, HOLD, "CancelTask"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_trace(f, "working canceled");
    assert_true(f->ms < 6000);
    close_agent(f);

    /* while the card is fetched */
    start_server();
    f = open_agent("");
    f->cancel_ms = 100;
    SCRIPT(s4, {NULL, HOLD, ON_CARD});
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_true(f->ms < 2000);
    close_agent(f);
}

/* Also while its server is not reachable yet. */
static void a_cancel_of_a_resumed_run_reaches_the_agent(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "SendStreamingMessage"},
           {canceled_10, 0, "CancelTask"});
    f->cancel_ms = 300;
    fake_run(f, "hi");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str note = dgm_arena_dup(a, dgm_buf_str(&f->stored[DGM_RUN_TASK]));
    fake_close(f);

    f = open_agent(",'answer_timeout':0.3"); /* another process */
    dgm_buf_add_str(&f->stored[DGM_RUN_TASK], note);
    f->is_resumed = true;
    f->cancel_ms = 100;
    SCRIPT(s2, {NULL, HOLD, ON_CARD}, {card_10, 0, ON_CARD}, {canceled_10, 0, "CancelTask"});
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_int_equal(server_count("CancelTask"), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);
    close_agent(f);
}

/* ---- bad servers -------------------------------------------------------------------------------------------------------- */

#define ERROR_HEAD(status) "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

static void bad_answers_have_their_sentence(void **state)
{
    static const struct {
        const char *bytes;
        unsigned how;
        const char *sentence;
    } rows[] = {
        {ERROR_HEAD("401 Unauthorized"), 0, "answered with status 401: it wants other credentials"},
        {ERROR_HEAD("403 Forbidden"), 0, "answered with status 403: it forbids this"},
        {ERROR_HEAD("404 Not Found"), 0, "answered with status 404: there is nothing at this URL"},
        {ERROR_HEAD("500 Oops"), 0, "answered with status 500: it failed"},
        {ERROR_HEAD("429 Too Many"), 0, "answered with status 429: it gets too many requests"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>", 0,
         "this is a web page: check the URL"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1,'resu", 0, "cannot be read"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':{'odd':1}}", 0, "cannot be read"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'bad parts'}}", 0,
         "reported an error: bad parts (error -32602)"},
        {SSE_HEAD RPC("{'odd':1}"), 0, "cannot be read"},
        {SSE_HEAD "", 0, "ended its answer without a task or a message"},
        {"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
         "{'error':{'code':400,'status':'INVALID_ARGUMENT','message':'no parts'}}",
         0, "answered with status 400: it rejects the request (no parts)"},
        {NULL, HOLD, "the message may have been received"}, /* silence */
        {SSE_HEAD RPC(
             TASK_10("TASK_STATE_WORKING")) "data: {'jsonrpc':'2.0','id':1,'error':{'code':"
                                            "-32603,'message':'it broke'}}\n\n",
         0, "it broke"},
    };
    (void)state;
    start_server();
    struct fake *f = open_agent(",'answer_timeout':0.3");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        n_texts = 0;
        SCRIPT(s, {card_10, 0, ON_CARD},
               {rows[i].bytes ? quoted(rows[i].bytes) : NULL, rows[i].how, "POST /rpc"},
               {quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK(
                    "TASK_STATE_WORKING", "") "}"),
                0, "GetTask"});
        fake_new_task(f);
        fake_run(f, "hi");
        check_failure(f, rows[i].sentence);
        assert_int_equal(server_count("SendStreamingMessage"), 1);
    }
    /* 429 with Retry-After: again */
    n_texts = 0;
    SCRIPT(s, {card_10, 0, ON_CARD},
           {"HTTP/1.1 429 Wait\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            0, "POST /rpc"},
           {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    close_agent(f);
}

static void bad_cards_have_their_sentence(void **state)
{
    static const struct {
        const char *bytes, *sentence;
    } rows[] = {
        {ERROR_HEAD("404 Not Found"), "no agent card at http://127.0.0.1:"},
        {ERROR_HEAD("401 Unauthorized"), "it wants other credentials"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>",
         "this is a web page"},
        {JSON_HEAD "{'name':", "is not an agent card"},
        {JSON_HEAD "[]", "is not an agent card"},
        {JSON_HEAD "{'name':'x','description':'x','version':'1','capabilities':{},'skills':[],"
                   "'defaultInputModes':[],'defaultOutputModes':[],'supportedInterfaces':[{'url':"
                   "'http://h/','protocolBinding':'GRPC','protocolVersion':'1.0'}]}",
         "has no interface that can be used (JSONRPC or HTTP+JSON, A2A 1.0 or 0.3): GRPC 1.0"},
        {JSON_HEAD "{'name':'x','description':'x','version':'1','capabilities':{},'skills':[],"
                   "'defaultInputModes':[],'defaultOutputModes':[],'supportedInterfaces':[{'url':"
                   "'http://10.0.0.1/','protocolBinding':'JSONRPC','protocolVersion':'1.0'}]}",
         "10.0.0.1 is a private address"},
    };
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        n_texts = 0;
        SCRIPT(s, {quoted(rows[i].bytes), 0, ON_CARD});
        fake_new_task(f);
        fake_run(f, "hi");
        check_failure(f, rows[i].sentence);
        assert_int_equal(server_count("POST"), 0);
    }
    /* after the failures it is fetched again */
    n_texts = 0;
    SCRIPT(s, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    close_agent(f);
}

/* A card is fetched again when it is not fresh any more; one that cannot be fetched again is used a while longer. */
static void cards_are_refreshed(void **state)
{
    char card[1200];
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    const char *answer = quoted(SSE_HEAD ANSWER_10);
    snprintf(card, sizeof card,
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nETag: "
             "\"v1\"\r\nCache-Control: public, max-age=0\r\n\r\n%s",
             strstr(card_10, "\r\n\r\n") + 4);
    const char *const again[] = {
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=0\r\nConnection: "
        "close\r\n\r\n",
        "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    };
    SCRIPT(s, {card, 0, ON_CARD}, {answer, 0, "POST /rpc"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    for (size_t i = 0; i < 2; i++) {
        SCRIPT(t, {again[i], 0, ON_CARD}, {answer, 0, "POST /rpc"});
        fake_new_task(f);
        fake_run(f, "hi");
        check_answer(f, "Hello world");
        assert_int_equal(server_count("If-None-Match: \"v1\""), 1);
        assert_int_equal(f->notes.n > 0, i == 1); /* the operator learns of the failure */
    }
    SCRIPT(u, {answer, 0, "POST /rpc"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count(ON_CARD), 0);
    close_agent(f);
}

/* ---- the extended card -------------------------------------------------------------------------------------------------- */

/* A card that says that there is an extended one; its interface is at this path. */
static const char *card_with_extended(const char *binding, bool is_v1, const char *path)
{
    char text[1200];
    int n = snprintf(text, sizeof text,
                     "{'name':'x','description':'x','version':'1','defaultInputModes':['text'],"
                     "'defaultOutputModes':['text'],'skills':[],");
    if (is_v1)
        snprintf(text + n, sizeof text - (size_t)n,
                 "'capabilities':{'streaming':true,'extendedAgentCard':true},"
                 "'supportedInterfaces':[{'url':'http://127.0.0.1:%d%s','protocolBinding':'%s',"
                 "'protocolVersion':'1.0'}]}",
                 server.port, path, binding);
    else
        snprintf(text + n, sizeof text - (size_t)n,
                 "'capabilities':{'streaming':true},'supportsAuthenticatedExtendedCard':true,"
                 "'protocolVersion':'0.3.0','url':'http://127.0.0.1:%d%s','preferredTransport':"
                 "'%s'}",
                 server.port, path, binding);
    return quoted(text);
}

static const char *with_head(const char *head, const char *text, const char *tail)
{
    char all[2000];
    snprintf(all, sizeof all, "%s%s%s", head, text, tail);
    return quoted(all);
}

static const struct {
    const char *binding;
    bool is_v1;
    const char *path, *request;
} extended_rows[] = {
    {"JSONRPC", true, "/rpc", "\"method\":\"GetExtendedAgentCard\""},
    {"JSONRPC", false, "/rpc", "\"method\":\"agent/getAuthenticatedExtendedCard\""},
    {"HTTP+JSON", true, "/rest", "GET /rest/extendedAgentCard "},
    {"HTTP+JSON", false, "/rest", "GET /rest/v1/card "},
};

static void the_extended_card_is_used(void **state)
{
    (void)state;
    setenv("TEST_A2A_TOKEN", "s3cret", 1);
    for (size_t i = 0; i < sizeof extended_rows / sizeof *extended_rows; i++) {
        const char *request = extended_rows[i].request;
        bool is_v1 = extended_rows[i].is_v1, is_rest = request[0] == 'G';
        start_server();
        const char *first = with_head(
            JSON_HEAD, card_with_extended(extended_rows[i].binding, is_v1, extended_rows[i].path),
            "");
        const char *second = with_head(
            is_rest ? JSON_HEAD : JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':",
            card_with_extended(extended_rows[i].binding, is_v1, "/more"), is_rest ? "" : "}");
        const char *answer = quoted(SSE_HEAD ANSWER_10);
        struct fake *f = open_agent(",'token_env':'TEST_A2A_TOKEN'");
        SCRIPT(s, {first, 0, ON_CARD}, {second, 0, request}, {answer, 0, "POST /more"});
        fake_run(f, "hi");
        check_answer(f, "Hello world");
        assert_int_equal(f->notes.n, 0);
        assert_int_equal(server_count(request), 1);
        assert_int_equal(server_count("POST /more"), 1);
        assert_int_equal(server_count("Authorization: Bearer s3cret"), 3);

        SCRIPT(again, {answer, 0, "POST /more"}); /* it is cached */
        fake_new_task(f);
        fake_run(f, "hi");
        check_answer(f, "Hello world");
        fake_close(f);

        f = open_agent(""); /* without a credential it is not requested */
        SCRIPT(t, {first, 0, ON_CARD}, {answer, 0, "POST "});
        fake_run(f, "hi");
        check_answer(f, "Hello world");
        assert_int_equal(server_count(request), 0);
        assert_int_equal(server_count("POST /more"), 0);
        close_agent(f);
    }
}

static void the_public_card_is_used_if_the_extended_one_is_missing(void **state)
{
    static const struct {
        const char *bytes;
        unsigned how;
        const char *note;
    } rows[] = {
        {ERROR_HEAD("401 Unauthorized"), 0, "it wants other credentials"},
        {ERROR_HEAD("404 Not Found"), 0, "status 404"},
        {NULL, 0, "closed the connection without an answer"},
        {NULL, HOLD, "no answer from"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1,'error':{'code':-32007,'message':'none here'}}", 0,
         "none here (error -32007)"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1}", 0, "the answer has no result"},
        {JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':{'name':1}}", 0, "is not an agent card"},
        {JSON_HEAD "{'jsonrpc':", 0, "extended"},
        {JSON_HEAD "", 0, "the answer is empty"},
    };
    (void)state;
    setenv("TEST_A2A_TOKEN", "s3cret", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_server();
        const char *card = with_head(JSON_HEAD, card_with_extended("JSONRPC", true, "/rpc"), "");
        const char *answer = quoted(SSE_HEAD ANSWER_10);
        struct fake *f = open_agent(",'token_env':'TEST_A2A_TOKEN','answer_timeout':0.3");
        SCRIPT(s, {card, 0, ON_CARD},
               {rows[i].bytes ? quoted(rows[i].bytes) : NULL, rows[i].how, "GetExtendedAgentCard"},
               {answer, 0, "SendStreamingMessage"});
        fake_run(f, "hi");
        check_answer(f, "Hello world");
        if (!has(&f->notes, "the extended agent card cannot be used") ||
            !has(&f->notes, rows[i].note)) {
            print_error("row %zu: %.*s\n", i, DGM_P(dgm_buf_str(&f->notes)));
            fail();
        }
        assert_false(has(&f->notes, "s3cret"));
        close_agent(f);
    }
}

/* A cancel while it is fetched. */
static void a_cancel_ends_the_wait_for_the_extended_card(void **state)
{
    (void)state;
    setenv("TEST_A2A_TOKEN", "s3cret", 1);
    start_server();
    const char *card = with_head(JSON_HEAD, card_with_extended("JSONRPC", true, "/rpc"), "");
    struct fake *f = open_agent(",'token_env':'TEST_A2A_TOKEN'");
    f->cancel_ms = 200;
    SCRIPT(s, {card, 0, ON_CARD}, {NULL, HOLD, "GetExtendedAgentCard"});
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_int_equal(server_count("GetExtendedAgentCard"), 1);
    assert_true(f->ms < 2000);
    close_agent(f);
}

/* ---- several interfaces --------------------------------------------------------------------------------------------------- */

/* A port without a server behind it: connections to it are not accepted. */
static int open_quiet_port(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static int quiet_port;

/* A card with these URLs, in this order; PORT in them is that of the server, PLUG the quiet one. */
static const char *card_of_interfaces(const char *const *urls, size_t n)
{
    char text[2000];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        JSON_HEAD "{'name':'x','description':'x','version':'1','capabilities':{'streaming':true},"
                  "'defaultInputModes':['text'],'defaultOutputModes':['text'],'skills':[],"
                  "'supportedInterfaces':[");
    for (size_t i = 0; i < n; i++) {
        const char *plug = strstr(urls[i], "PLUG");
        const char *port = plug ? plug : strstr(urls[i], "PORT");
        int before = port ? (int)(port - urls[i]) : (int)strlen(urls[i]);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s{'url':'%.*s", i ? "," : "", before,
                               urls[i]);
        if (port)
            at += (size_t)snprintf(text + at, sizeof text - at, "%d%s",
                                   plug ? quiet_port : server.port, port + 4);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "','protocolBinding':'%s','protocolVersion':'1.0'}",
                               strstr(urls[i], "/rest") ? "HTTP+JSON" : "JSONRPC");
    }
    snprintf(text + at, sizeof text - at, "]}");
    return quoted(text);
}

static struct fake *open_agent_with_loopback(const char *more)
{
    static dgm_address_range loopback;
    dgm_err err = {0};
    char config[400];
    check_ok(dgm_address_parse_range(DGM_STR("127.0.0.0/8"), &loopback, &err), err);
    snprintf(config, sizeof config, "{'url':'http://127.0.0.1:%d'%s}", server.port, more);
    struct fake *f =
        fake_open("a2a", config, &(dgm_agent_options){.outbound_allow = {&loopback, 1}});
    f->can_store = true;
    return f;
}

/* The message was not received there, for certain: it goes to the next interface, and the next run starts with that one. */
static void the_next_interface_is_used_if_one_cannot_be_reached(void **state)
{
    static const struct {
        const char *urls[2], *bytes, *note;
    } rows[] = {
        {{"http://127.0.0.1:1/dead", "http://127.0.0.1:PORT/rpc"}, NULL, "cannot connect to"},
        {{"https://127.0.0.1:PLUG/dead", "http://127.0.0.1:PORT/rpc"}, NULL, "no connection to"},
        {{"http://10.0.0.1/dead", "http://127.0.0.1:PORT/rest"}, NULL, "private address"},
        {{"http://127.0.0.1:PORT/dead", "http://127.0.0.1:PORT/rpc"},
         ERROR_HEAD("404 Not Found"),
         "status 404"},
        {{"http://127.0.0.1:PORT/dead/rest", "http://127.0.0.1:PORT/rpc"},
         ERROR_HEAD("405 Not Allowed"),
         "status 405"},
    };
    (void)state;
    int quiet = open_quiet_port(&quiet_port);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_server();
        struct fake *f = open_agent_with_loopback(",'connect_timeout':0.5");
        const char *answer = quoted(SSE_HEAD ANSWER_10);
        const char *card = card_of_interfaces(rows[i].urls, 2);
        const char *path = strstr(rows[i].urls[1], "/rest") ? "POST /rest" : "POST /rpc";
        SCRIPT(s, {card, 0, ON_CARD}, {rows[i].bytes, 0, "POST /dead"}, {answer, 0, path});
        fake_run(f, "hi");
        if (f->state != DGM_STATE_COMPLETED || !has(&f->notes, rows[i].note)) {
            print_error("row %zu: %.*s %.*s\n", i, DGM_P(dgm_buf_str(&f->notes)),
                        DGM_P(dgm_buf_str(&f->events)));
            fail();
        }
        check_answer(f, "Hello world");
        assert_int_equal(server_count(path), 1);
        SCRIPT(t, {rows[i].bytes, 0, "POST /dead"}, {answer, 0, path});
        fake_new_task(f);
        fake_run(f, "again");
        check_answer(f, "Hello world");
        assert_int_equal(server_count("POST /dead"), 0);
        close_agent(f);
    }
    close(quiet);
}

static void a_doubtful_message_is_not_sent_to_another_interface(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:PORT/dead", "http://127.0.0.1:PORT/rpc"};
    static const struct {
        const char *bytes;
        unsigned how;
        const char *sentence;
    } rows[] = {
        {NULL, 0, "the message may have been received"},
        {NULL, RESET, "the message may have been received"},
        {NULL, HOLD, "the message may have been received"},
        {ERROR_HEAD("500 Oops"), 0, "answered with status 500"},
        {ERROR_HEAD("401 Unauthorized"), 0, "answered with status 401"},
        {ERROR_HEAD("502 Bad Gateway"), 0, "answered with status 502"},
        {SSE_HEAD "data: {", 0, "cannot be read"},
    };
    (void)state;
    start_server();
    struct fake *f = open_agent_with_loopback(",'answer_timeout':0.3");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        n_texts = 0;
        const char *card = card_of_interfaces(urls, 2), *answer = quoted(SSE_HEAD ANSWER_10);
        SCRIPT(s, {card, 0, ON_CARD}, {rows[i].bytes, rows[i].how, "POST /dead"},
               {answer, 0, "POST /rpc"});
        fake_new_task(f);
        fake_run(f, "hi");
        check_failure(f, rows[i].sentence);
        assert_int_equal(server_count("POST /dead"), 1);
        assert_int_equal(server_count("POST /rpc"), 0);
    }
    close_agent(f);
}

static void all_interfaces_fail(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:1/a", "http://127.0.0.1:PORT/dead",
                                       "http://127.0.0.1:2/b/rest"};
    (void)state;
    start_server();
    struct fake *f = open_agent_with_loopback("");
    SCRIPT(s, {card_of_interfaces(urls, 3), 0, ON_CARD},
           {ERROR_HEAD("404 Not Found"), 0, "POST /dead"});
    fake_run(f, "hi");
    check_failure(f, "cannot connect to 127.0.0.1:1: Connection refused; another interface of the "
                     "agent card: cannot connect to 127.0.0.1:2");
    assert_int_equal(server_count("POST /dead"), 1);
    close_agent(f);
}

/* A task that is running is read at another interface when its own cannot be reached any more. */
static void a_lost_task_is_read_at_another_interface(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:PORT/rpc", "http://127.0.0.1:1/dead"};
    (void)state;
    start_server();
    struct fake *f = open_agent_with_loopback("");
    SCRIPT(s, {card_of_interfaces(urls, 2), 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), 0, "SendStreamingMessage"},
           {NULL, 0, "SubscribeToTask"}, /* then the dead one, then again here */
           {quoted(SSE_HEAD ANSWER_10), 0, "SubscribeToTask"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("SendStreamingMessage"), 1);
    assert_int_equal(server_count("SubscribeToTask"), 2);
    close_agent(f);
}

/* ---- settings ------------------------------------------------------------------------------------------------------------ */

static void settings_choose_the_interface(void **state)
{
    char card[2000];
    (void)state;
    start_server();
    snprintf(
        card, sizeof card,
        JSON_HEAD
        "{'name':'x','description':'x','version':'1','capabilities':{'streaming':true},"
        "'skills':[],'defaultInputModes':[],'defaultOutputModes':[],'supportedInterfaces':["
        "{'url':'http://127.0.0.1:%d/old','protocolBinding':'JSONRPC','protocolVersion':'0.3'},"
        "{'url':'http://localhost:%d/rpc','protocolBinding':'JSONRPC','protocolVersion':'1.0',"
        "'tenant':'acme'},"
        "{'url':'http://127.0.0.1:%d/rest','protocolBinding':'HTTP+JSON','protocolVersion':"
        "'1.0'}],'securitySchemes':{'key':{'apiKeySecurityScheme':{'location':'header','name':"
        "'X-Key'}}},'securityRequirements':[{'schemes':{'key':{'list':[]}}}]}",
        server.port, server.port, server.port);
    const char *text = quoted(card), *answer = quoted(SSE_HEAD ANSWER_10);
    const struct {
        const char *settings, *request, *header;
    } rows[] = {
        /* the newer one; localhost is the server of the card */
        {"", "POST /rpc ", "\"tenant\":\"acme\""},
        {",'protocol':'a2a-0.3'", "POST /old ", "A2A-Version: 0.3"},
        {",'binding':'rest'", "POST /rest/message:stream ", "A2A-Version: 1.0"},
        {",'token_env':'TEST_A2A_TOKEN'", "POST /rpc ", "X-Key: s3cret"},
        {",'token_env':'TEST_A2A_TOKEN','token_header':'X-Own'", "POST /rpc ", "X-Own: s3cret"},
        {",'extensions':'urn:a, urn:b'", "POST /rpc ", "A2A-Extensions: urn:a, urn:b"},
        {",'card':'none','binding':'jsonrpc'", "POST / ", "SendStreamingMessage"},
    };
    setenv("TEST_A2A_TOKEN", "s3cret", 1);
    SCRIPT(s, {text, 0, ON_CARD}, {answer, 0, "POST "});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = open_agent(rows[i].settings);
        server_script(s, 2);
        fake_run(f, "hi");
        if (server_count(rows[i].request) != 1 || !server_count(rows[i].header)) {
            print_error("row %zu: %.*s\n", i, DGM_P(dgm_buf_str(&server.log)));
            fail();
        }
        fake_close(f);
    }
    server_stop();
}

static void wrong_settings_are_refused(void **state)
{
    static const char *const rows[] = {
        "{}",
        "{'url':'ftp://x'}",
        "{'url':'http://x','protocol':'a2a-2.0'}",
        "{'url':'http://x','token_env':'TEST_A2A_NOT_SET'}",
        "{'url':'http://x','resend':'perhaps'}",
        "{'url':'http://x','unknown':1}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str text = dgm_arena_dup(a, dgm_str_from(rows[i]));
        dgm_err err = {0};
        void *agent;
        for (char *p = (char *)(uintptr_t)text.p; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        if (!dgm_backend_a2a.open(dgm_json_parse_trusted(a, text), NULL, &agent, &err))
            fail_msg("%s was accepted", rows[i]);
        assert_true(err.msg[0]);
    }
}

/* A loop that stops ends the run, and the task is not settled: it goes on after the restart. */
static void a_stop_leaves_the_task_open(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "POST /rpc"});
    fake_prepare(f, "msg-1", "hi");
    dgm_loop_post(f->run.loop, fake_do_start, f);
    while (!server_count("POST /rpc"))
        usleep(1000);
    usleep(200000);
    dgm_loops_stop(f->loops);
    uv_sem_wait(&f->ended);
    assert_string_equal(f->error, DGM_SHUTTING_DOWN);
    assert_int_equal(f->state, DGM_STATE_WORKING);
    assert_int_equal(server_count("CancelTask"), 0);
    close_agent(f);
}

DGM_TEST_MAIN(dgm_test(streams_over_json_rpc_10), dgm_test(streams_over_json_rpc_03),
              dgm_test(streams_over_rest), dgm_test(a_message_is_complete),
              dgm_test(a_question_is_answered_in_its_task), dgm_test(polls_agents_without_streams),
              dgm_test(the_end_of_a_task_is_passed_on), dgm_test(cumulative_statuses_are_one_text),
              dgm_test(progress_stays_progress), dgm_test(a_subscription_names_the_last_event),
              dgm_test(a_doubtful_message_is_sent_again_only_if_allowed),
              dgm_test(a_restart_follows_the_same_task),
              dgm_test(a_message_that_is_sent_again_has_its_metadata),
              dgm_test(a_cancel_reaches_the_agent),
              dgm_test(a_cancel_of_a_resumed_run_reaches_the_agent),
              dgm_test(bad_answers_have_their_sentence), dgm_test(bad_cards_have_their_sentence),
              dgm_test(cards_are_refreshed), dgm_test(the_extended_card_is_used),
              dgm_test(the_public_card_is_used_if_the_extended_one_is_missing),
              dgm_test(a_cancel_ends_the_wait_for_the_extended_card),
              dgm_test(the_next_interface_is_used_if_one_cannot_be_reached),
              dgm_test(a_doubtful_message_is_not_sent_to_another_interface),
              dgm_test(all_interfaces_fail), dgm_test(a_lost_task_is_read_at_another_interface),
              dgm_test(settings_choose_the_interface), dgm_test(wrong_settings_are_refused),
              dgm_test(a_stop_leaves_the_task_open), dgm_test(a_cut_stream_is_completed_by_get),
              dgm_test(a_stream_that_ends_early_is_completed_by_get),
              dgm_test(a_cut_stream_is_completed_by_a_subscription),
              dgm_test(a_subscription_may_repeat_everything),
              dgm_test(a_cut_stream_of_statuses_is_completed))
