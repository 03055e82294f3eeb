/*
 * test_a2a.c - agents of other A2A servers: a scripted server answers, and the runs are checked for what they emit and what
 * they send.
 */
#include "backend/test_a2a.h"

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
    assert_true(fake_has(&f->stored[DGM_RUN_TASK], "\"task\":\"far:1\""));
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
    assert_false(fake_has(&f->events, "far"));
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

static void cumulative_statuses_are_one_text(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD LANG_ANSWER), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_trace(f, "task chunk chunk chunk last completed");
    check_answer(f, "Hello world");
    assert_true(fake_has(&f->events, "Assistant Response"));
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

/* ---- bad servers -------------------------------------------------------------------------------------------------------- */

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

DGM_TEST_MAIN(dgm_test(streams_over_json_rpc_10), dgm_test(streams_over_json_rpc_03),
              dgm_test(streams_over_rest), dgm_test(a_message_is_complete),
              dgm_test(a_question_is_answered_in_its_task), dgm_test(polls_agents_without_streams),
              dgm_test(the_end_of_a_task_is_passed_on), dgm_test(cumulative_statuses_are_one_text),
              dgm_test(progress_stays_progress), dgm_test(bad_answers_have_their_sentence))
