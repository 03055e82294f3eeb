/* test_a2a_cards.c - agents of other A2A servers: agent cards, the extended card, several interfaces, settings. */
#include "backend/test_a2a.h"
#include "support/quiet_port.h"

/* ---- agent cards ----------------------------------------------------------------------------------------------------------- */

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
        if (!fake_has(&f->notes, "the extended agent card cannot be used") ||
            !fake_has(&f->notes, rows[i].note)) {
            print_error("row %zu: %.*s\n", i, DGM_P(dgm_buf_str(&f->notes)));
            fail();
        }
        assert_false(fake_has(&f->notes, "s3cret"));
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
    assert_true(f->ms < 30000);
    close_agent(f);
}

/* ---- several interfaces --------------------------------------------------------------------------------------------------- */

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
        if (f->state != DGM_STATE_COMPLETED || !fake_has(&f->notes, rows[i].note)) {
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
        dgm_err err = {0};
        void *agent;
        if (!dgm_backend_a2a.open(fake_json(a, rows[i]), NULL, &agent, &err))
            fail_msg("%s was accepted", rows[i]);
        assert_true(err.msg[0]);
    }
}

DGM_TEST_MAIN(dgm_test(bad_cards_have_their_sentence), dgm_test(cards_are_refreshed),
              dgm_test(the_extended_card_is_used),
              dgm_test(the_public_card_is_used_if_the_extended_one_is_missing),
              dgm_test(a_cancel_ends_the_wait_for_the_extended_card),
              dgm_test(the_next_interface_is_used_if_one_cannot_be_reached),
              dgm_test(a_doubtful_message_is_not_sent_to_another_interface),
              dgm_test(all_interfaces_fail), dgm_test(a_lost_task_is_read_at_another_interface),
              dgm_test(settings_choose_the_interface), dgm_test(wrong_settings_are_refused))
