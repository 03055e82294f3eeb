/* test_graph_server.c - graphs on a LangGraph server: answers, questions, errors, cancel. */
#include "backend/test_graph_server.h"

static void an_answer_is_streamed_and_complete(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, COMMON, {quoted(RUN_HEAD ANSWER), 0, ON_SEND});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(f->n_chunks, 6);
    assert_int_equal(count_in(&f->events, "\"name\":\"d\""), 1);
    assert_int_equal(
        server_count("\"stream_mode\":[\"values\",\"messages-tuple\",\"custom\",\"updates\"]"), 1);
    assert_int_equal(server_count("\"stream_resumable\":true"), 1);
    assert_int_equal(server_count("\"content\":\"hi\""), 1);
    assert_int_equal(server_count("\"id\":\"msg-1\""), 1);
    assert_int_equal(server_count("a2a_inbox"), 0); /* its state has none */
    assert_int_equal(server_count("if_exists\":\"do_nothing"), 1);
    assert_int_equal(server_count("/state HTTP"), 0); /* nothing was lost */
    fake_new_task(f);
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count("/schemas"), 1); /* they are known now */
    close_agent(f);
}

static void the_state_decides_which_keys_are_set(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(
        s, ON_ASSISTANTS,
        {quoted(JSON_HEAD
                "{'state_schema':{'properties':{'messages':{},'a2a_inbox':{},'a2a_outbox':{}}}}"),
         0, "/schemas"},
        ON_THREAD, ON_CHECK, ON_STATE,
        {quoted(RUN_HEAD VALUES("1-0", HUMAN)
                    FRAME("2-0", "values",
                          "{'messages':[" HUMAN
                          "],'a2a_outbox':{'kind':'message','role':'agent','messageId':'out-1',"
                          "'parts':[{'kind':'text','text':'from the outbox'}]}}")),
         0, ON_SEND});
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_str(f->final, "from the outbox");
    assert_int_equal(server_count("\"a2a_inbox\":{"), 1);
    assert_int_equal(server_count("\"a2a_outbox\":null"), 1);
    /* the state gets the message, as document 003 demands */
    assert_int_equal(server_count("\"values\":{\"messages\":[{"), 1);
    close_agent(f);
}

static void settings_reach_the_server(void **state)
{
    (void)state;
    setenv("TEST_LANGGRAPH_ROOM", "blue", 1);
    start_server();
    struct fake *f =
        open_agent(",'assistant':'a b','recursion_limit':7,'configurable':{'tone':'kind'},"
                   "'headers':{'X-Room':'${TEST_LANGGRAPH_ROOM}'},'a2a_dialect':'1.0'");
    SCRIPT(s, ON_ASSISTANTS,
           {quoted(JSON_HEAD "{'state_schema':{'properties':{'messages':{},'a2a_inbox':{}}}}"), 0,
            "/schemas"},
           ON_THREAD, ON_CHECK, {quoted(RUN_HEAD ANSWER), 0, ON_SEND});
    fake_prepare(f, "msg-1", "hi");
    f->input.metadata = fake_json(f->arena, "{'dragoman:tools':[{'name':'look'}],'k':'v'}");
    fake_run_prepared(f);
    check_hello(f);
    assert_int_equal(server_count("\"assistant_id\":\"a b\""), 1);
    assert_int_equal(server_count("\"config\":{\"recursion_limit\":7,\"configurable\":"
                                  "{\"tone\":\"kind\",\"tools\":[{\"name\":\"look\"}]}}"),
                     1);
    assert_int_equal(server_count("\r\nX-Room: blue\r\n"), 5);
    assert_true(server_count("\"role\":\"ROLE_USER\"") > 0); /* A2A 1.0 */
    assert_int_equal(server_count("\"traceparent\":\"00-"), 1);
    close_agent(f);
    unsetenv("TEST_LANGGRAPH_ROOM");
}

static void settings_that_are_wrong_are_reported(void **state)
{
    static const struct {
        const char *config, *at;
    } rows[] = {
        {"{}", "/url"},
        {"{'url':'ftp://x'}", "/url"},
        {"{'url':'http://x','assistant':''}", "/assistant"},
        {"{'url':'http://x','protocol':'v3'}", "/protocol"},
        {"{'url':'http://x','token_env':'NOT_SET_ANYWHERE'}", "/token_env"},
        {"{'url':'http://x','recursion_limit':-1}", "/recursion_limit"},
    };
    const dgm_backend *b = dgm_backend_by_type(DGM_STR("langgraph-server"));
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        void *agent = NULL;
        assert_int_equal(b->open(fake_json(a, rows[i].config), NULL, &agent, &err), DGM_BAD_PARAMS);
        assert_string_equal(err.at, rows[i].at);
    }
}

/* ---- questions ------------------------------------------------------------------------------------------------------------- */

#define ASKS                                                                                       \
    VALUES("1-0", HUMAN)                                                                           \
    FRAME("2-0", "updates", "{'__interrupt__':[{'value':{'prompt':'Your name?'},'id':'i1'}]}")     \
    FRAME("3-0", "values",                                                                         \
          "{'messages':[" HUMAN                                                                    \
          "],'__interrupt__':[{'value':{'prompt':'Your name?'},'id':'i1'}]}")

static void a_question_is_answered_by_its_id(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, COMMON, {quoted(RUN_HEAD ASKS), 0, ON_SEND});
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(f->final, "Your name?");
    const char *waiting = quoted(
        JSON_HEAD
        "{'thread_id':'t','status':'interrupted','interrupts':{'x':[{'id':'i1','value':1}]}}");
    SCRIPT(s2, ON_ASSISTANTS, ON_SCHEMAS, {waiting, 0, "POST /threads HTTP"}, ON_CHECK, ON_STATE,
           {quoted(RUN_HEAD VALUES("4-0", HUMAN) VALUES("5-0", HUMAN "," AI("Hello Bob"))), 0,
            ON_SEND});
    fake_run_with(f, "msg-2", "Bob");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_str(f->final, "Hello Bob");
    assert_int_equal(server_count("\"command\":{\"resume\":{\"i1\":\"Bob\"}"), 1);
    assert_int_equal(server_count("\"input\":"), 0);
    close_agent(f);
}

static void a_question_that_is_no_longer_open_is_not_answered(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, COMMON, {quoted(RUN_HEAD ASKS), 0, ON_SEND});
    fake_run(f, "hi");
    SCRIPT(s2, COMMON, {quoted(RUN_HEAD ANSWER), 0, ON_SEND}); /* the thread has no question */
    fake_run_with(f, "msg-2", "Bob");
    check_failure(f, "no longer open");
    assert_int_equal(server_count(ON_SEND), 0);
    close_agent(f);
}

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

static void failures_are_explained(void **state)
{
    static const struct {
        const char *settings, *on, *bytes, *sentence;
    } rows[] = {
        {"", "POST /assistants/search", JSON_HEAD "[]",
         "has no graph \\\"agent\\\": check the setting assistant"},
        {"", "POST /assistants/search",
         "HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
         "status 401: it wants other credentials"},
        {"", "POST /threads HTTP",
         "HTTP/1.1 403 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "status 403"},
        {"", ON_SEND,
         "HTTP/1.1 422 Bad\r\nContent-Type: application/json\r\nConnection: "
         "close\r\n\r\n{'detail':'wrong input'}",
         "status 422: it rejects the request: wrong input"},
        {"", ON_SEND,
         RUN_HEAD FRAME("1-0", "error", "{'error':'ValueError','message':'the secret is 42'}"),
         "the graph failed on its server\""},
        {",'expose_errors':true", ON_SEND,
         RUN_HEAD FRAME("1-0", "error", "{'error':'ValueError','message':'the secret is 42'}"),
         "the graph failed on its server: ValueError: the secret is 42"},
        {"", ON_SEND,
         RUN_HEAD FRAME(
             "1-0", "error",
             "{'error':'GraphRecursionError','message':'Recursion limit of 25 reached'}"),
         "the graph reached its recursion limit"},
        {"", ON_SEND, RUN_HEAD FRAME("1-0", "values", "{'messages':["), "cannot be read"},
        {"", ON_SEND,
         "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>",
         "this is a web page"},
        {",'retries':0", ON_SEND,
         "HTTP/1.1 500 Oh\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "status 500"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_server();
        struct fake *f = open_agent(rows[i].settings);
        SCRIPT(s, {quoted(rows[i].bytes), 0, rows[i].on}, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD,
               {quoted(JSON_HEAD "{'status':'error'}"), 0, "/runs/" RUN " HTTP"}, ON_STATE,
               {quoted(JSON_HEAD "[]"), 0, ON_LIST});
        fake_run(f, "hi");
        check_failure(f, rows[i].sentence);
        fake_check(f);
        if (!strstr(rows[i].settings, "expose"))
            assert_false(fake_has(&f->events, "secret")); /* only in the operator's log */
        close_agent(f);
    }
}

static void the_run_of_the_server_may_end_in_other_ways(void **state)
{
    static const struct {
        const char *check, *sentence;
    } rows[] = {
        {NOT_FOUND, "no longer has the run"},
        {JSON_HEAD "{'status':'timeout'}", "took longer than its server allows"},
        {JSON_HEAD "{'status':'error'}", "the graph failed on its server"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_server();
        struct fake *f = open_agent("");
        SCRIPT(s, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD,
               {quoted(rows[i].check), 0, "/runs/" RUN " HTTP"},
               {quoted(JSON_HEAD "{'values':{},'next':['chat'],'tasks':[{'id':'x','name':'chat','"
                                 "error':'ValueError(42)'}]}"),
                0, "/state HTTP"},
               {quoted(RUN_HEAD VALUES("1-0", HUMAN) CHUNK("2-0", "Hel")), 0, ON_SEND});
        fake_run(f, "hi");
        check_failure(f, rows[i].sentence);
        assert_int_equal(f->n_first, f->n_last); /* the text was closed */
        close_agent(f);
    }
}

static void the_key_is_sent_and_never_shown(void **state)
{
    (void)state;
    setenv("TEST_LANGGRAPH_KEY", "lsv2-very-secret", 1);
    start_server();
    struct fake *f = open_agent(",'token_env':'TEST_LANGGRAPH_KEY'");
    SCRIPT(s, COMMON,
           {quoted("HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
                   "{'detail':'bad key lsv2-very-secret'}"),
            0, ON_SEND});
    fake_run(f, "hi");
    check_failure(f, "bad key ****************");
    assert_int_equal(server_count("\r\nX-Api-Key: lsv2-very-secret\r\n"), 4); /* every request */
    assert_false(fake_has(&f->events, "lsv2"));
    assert_false(fake_has(&f->notes, "lsv2"));
    close_agent(f);
    unsetenv("TEST_LANGGRAPH_KEY");
}

/* A state of more than one record's size cannot be read: the run fails, and its memory stays bounded. */
static void a_frame_over_the_limit_is_an_error(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, COMMON, {RUN_HEAD "event: values\ndata: \"", ENDLESS, ON_SEND},
           {RUN_HEAD "event: values\ndata: \"", ENDLESS, ON_JOIN});
    fake_run(f, "hi");
    assert_true(f->state == DGM_STATE_FAILED || f->state == DGM_STATE_COMPLETED);
    close_agent(f);
}

/* ---- cancel ---------------------------------------------------------------------------------------------------------------- */

static void a_cancel_reaches_the_server(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    const char *accepted =
        "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    SCRIPT(s1, COMMON, {quoted(RUN_HEAD VALUES("1-0", HUMAN) CHUNK("2-0", "Hel")), HOLD, ON_SEND},
           {accepted, 0, ON_CANCEL});
    f->cancel_at = 3;
    fake_run(f, "hi");
    assert_true(fake_has(&f->trace, "chunk last canceled"));
    fake_check(f);
    assert_int_equal(server_count(ON_CANCEL), 1);

    /* the server does not answer the cancel */
    SCRIPT(s2, COMMON, {quoted(RUN_HEAD CHUNK("2-0", "Hel")), HOLD, ON_SEND},
           {NULL, HOLD, ON_CANCEL});
    fake_new_task(f);
    fake_run(f, "hi");
    assert_true(fake_has(&f->trace, "chunk last canceled"));
    assert_true(f->ms < 30000);

    /* before the run is known */
    SCRIPT(s3, COMMON, {NULL, HOLD, ON_SEND}, {accepted, 0, ON_CANCEL});
    f->cancel_at = 0;
    f->cancel_ms = 100;
    fake_new_task(f);
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_CANCELED);
    assert_int_equal(server_count(ON_CANCEL), 0);
    close_agent(f);
}

static void a_run_that_takes_too_long_is_canceled(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'timeout':0.5");
    SCRIPT(s, COMMON, {quoted(RUN_HEAD CHUNK("2-0", "Hel")), HOLD, ON_SEND},
           {quoted(JSON_HEAD "{}"), 0, ON_CANCEL}, {quoted(RUN_HEAD), HOLD, ON_JOIN});
    fake_run(f, "hi");
    check_failure(f, "took longer than 0.5 seconds");
    assert_int_equal(server_count(ON_CANCEL), 1);
    close_agent(f);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------- */

static void thread_of(struct fake *f, char *to, size_t size)
{
    SCRIPT(s, COMMON, {quoted(RUN_HEAD ANSWER), 0, ON_SEND});
    fake_new_task(f);
    fake_run(f, "hi");
    pthread_mutex_lock(&server.lock);
    dgm_buf_add_char(&server.log, '\0');
    const char *at = strstr(server.log.p, "{\"thread_id\":\"");
    snprintf(to, size, "%.36s", at ? at + 14 : "");
    server.log.n--;
    pthread_mutex_unlock(&server.lock);
}

/* Callers choose contextIds: what they choose is never the thread of another caller. */
static void each_caller_has_its_own_thread(void **state)
{
    char a[64], b[64], c[64], d[64];
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    thread_of(f, a, sizeof a);
    thread_of(f, b, sizeof b);
    assert_string_equal(a, b); /* the same one in every turn */
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '8');
    f->principal = DGM_STR("ann");
    thread_of(f, c, sizeof c);
    f->principal = DGM_STR("");
    f->tenant = DGM_STR("ann");
    thread_of(f, d, sizeof d);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    assert_string_not_equal(c, d);
    close_agent(f);
}

DGM_TEST_MAIN(dgm_test(an_answer_is_streamed_and_complete),
              dgm_test(the_state_decides_which_keys_are_set), dgm_test(settings_reach_the_server),
              dgm_test(settings_that_are_wrong_are_reported),
              dgm_test(a_question_is_answered_by_its_id),
              dgm_test(a_question_that_is_no_longer_open_is_not_answered),
              dgm_test(failures_are_explained),
              dgm_test(the_run_of_the_server_may_end_in_other_ways),
              dgm_test(the_key_is_sent_and_never_shown),
              dgm_test(a_frame_over_the_limit_is_an_error), dgm_test(a_cancel_reaches_the_server),
              dgm_test(a_run_that_takes_too_long_is_canceled),
              dgm_test(each_caller_has_its_own_thread))
