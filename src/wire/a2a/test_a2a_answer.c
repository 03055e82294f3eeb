/* test_a2a_answer.c - answers of agents that mix the versions, and the requests to them. */
#include "wire/a2a/a2a_peer.h"

#include "model/form.h"
#include "support/check.h"

static dgm_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = dgm_arena_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dgm_arena_free(arena);
    return 0;
}

static dgm_str with_quotes(const char *text)
{
    dgm_str s = dgm_arena_dup(arena, dgm_str_from(text));
    for (char *p = (char *)(uintptr_t)s.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return s;
}

/* Reads with every codec: the result must not depend on it. want: the event as 1.0, with ' for ". */
static void check_reads(const char *text, const char *want)
{
    const dgm_codec *all[] = {&dgm_codec_a2a_10, &dgm_codec_a2a_03, &dgm_codec_a2a_03_rest};
    for (size_t i = 0; i < 3; i++) {
        dgm_mint mint = {{1, 2}, 0, {0}};
        dgm_a2a_answer answer;
        dgm_err err = {0};
        dgm_buf b;
        check_ok(dgm_a2a_read_answer(arena, all[i], &mint, with_quotes(text), &answer, &err), err);
        assert_null(answer.error);
        dgm_buf_init(&b, SIZE_MAX);
        dgm_form_write_event(&(dgm_writer){.out = &b, .format = DGM_FORMAT_A2A_10}, &answer.event);
        check_str(b, with_quotes(want).p);
        dgm_buf_done(&b);
    }
}

#define DONE "{'task':{'id':'a:b','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'}"

static void test_versions(void **state)
{
    (void)state;
    /* a task: 1.0, 0.3, 1.0 with members and names of 0.3, 0.3 with those of 1.0, bare, wrapped twice */
    check_reads("{'task':{'id':'a:b','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'}}}",
                DONE "}}");
    check_reads("{'jsonrpc':'2.0','id':1,'result':{'kind':'task','id':'a:b','contextId':'c',"
                "'status':{'state':'completed'}}}",
                DONE "}}");
    check_reads(
        "{'jsonrpc':'2.0','id':1,'result':{'task':{'kind':'task','id':'a:b','contextId':'c',"
        "'status':{'state':'completed','timestamp':'yesterday'},"
        "'artifacts':[{'artifactId':'x','parts':[{'kind':'text','text':'hi'},{'kind':'file',"
        "'file':{'uri':'http://h/f','mimeType':'text/plain','name':'f'}},{'kind':'data',"
        "'data':{'a':1}}]}]}}}",
        DONE ",'artifacts':[{'artifactId':'x','parts':[{'text':'hi'},{'url':'http://h/f',"
             "'filename':'f','mediaType':'text/plain'},{'data':{'a':1}}]}]}}");
    check_reads(
        "{'kind':'task','id':'a:b','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'},"
        "'artifacts':[{'artifactId':'x','parts':[{'text':'hi'},{'raw':'aGk=','mediaType':"
        "'text/plain'}]}]}",
        DONE ",'artifacts':[{'artifactId':'x','parts':[{'text':'hi'},{'raw':'aGk=',"
             "'mediaType':'text/plain'}]}]}}");
    check_reads("{'result':{'result':{'task':{'id':'a:b','contextId':'c','status':{'state':"
                "'TASK_STATE_COMPLETED'}}}}}",
                DONE "}}");
    check_reads("{'task':{'id':'a:b','contextId':'c','status':{'state':'TASK_STATE_CANCELLED'}}}",
                "{'task':{'id':'a:b','contextId':'c','status':{'state':'TASK_STATE_CANCELED'}}}");
}

static void test_updates_and_messages(void **state)
{
    (void)state;
    const char *update = "{'artifactUpdate':{'taskId':'t','contextId':'c','artifact':{'artifactId':"
                         "'x','parts':[{'text':'hi'}]},'append':true}}";
    check_reads(update, update);
    check_reads(
        "{'jsonrpc':'2.0','id':1,'result':{'kind':'artifact-update','taskId':'t','contextId':"
        "'c','append':true,'artifact':{'artifactId':'x','parts':[{'kind':'text','text':'hi'}"
        "]}}}",
        update);
    const char *status =
        "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_INPUT_"
        "REQUIRED',"
        "'message':{'messageId':'m','role':'ROLE_AGENT','parts':[{'text':'?'}]}}}}";
    check_reads(status, status);
    check_reads(
        "{'jsonrpc':'2.0','id':1,'result':{'kind':'status-update','final':true,'taskId':'t',"
        "'contextId':'c','status':{'state':'input-required','message':{'kind':'message',"
        "'messageId':'m','role':'agent','parts':[{'kind':'text','text':'?'}]}}}}",
        status);
    const char *message =
        "{'message':{'messageId':'m','contextId':'c','role':'ROLE_AGENT','parts':[{"
        "'text':'hi'}]}}";
    check_reads(message, message);
    check_reads(
        "{'jsonrpc':'2.0','id':1,'result':{'kind':'message','messageId':'m','contextId':'c',"
        "'role':'agent','parts':[{'kind':'text','text':'hi'}]}}",
        message);
    check_reads(
        "{'msg':{'messageId':'m','contextId':'c','role':'ROLE_AGENT','content':[{'text':'hi'}"
        "]}}",
        message);
    check_reads("{'message':{'messageId':'m','contextId':'c','role':'assistant','content':'hi'}}",
                message);
}

/* ---- the answers of a stream ------------------------------------------------------------------------------------------- */

static void put_answer(dgm_buf *b, dgm_code rc, const dgm_a2a_answer *answer, const dgm_err *err)
{
    dgm_buf_clear(b);
    if (rc || answer->error) {
        dgm_buf_printf(b, "%d %s %s", (int)rc, rc ? err->msg : "", rc ? err->at : "");
        return;
    }
    dgm_form_write_event(&(dgm_writer){.out = b, .format = DGM_FORMAT_A2A_10}, &answer->event);
    dgm_buf_printf(b, " %.*s %.*s", DGM_P(answer->task_id), DGM_P(answer->context_id));
}

/* Whatever was read before, an answer is read as if it were the only one. */
static void check_next(const dgm_codec *codec, dgm_str before, dgm_str next)
{
    dgm_a2a_answers s;
    dgm_mint mints[2] = {{{1, 2}, 0, {0}}, {{1, 2}, 0, {0}}};
    dgm_err errs[2] = {0};
    const dgm_a2a_answer *got = NULL;
    dgm_a2a_answer want, first;
    dgm_buf a, b;
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    dgm_buf_init(&a, SIZE_MAX);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_a2a_answers_init(&s);
    dgm_a2a_answers_read(&s, codec, &mints[0], before, &got, &errs[0]);
    dgm_a2a_read_answer(scratch, codec, &mints[1], before, &first, &errs[1]); /* for its ids */
    memset(errs, 0, sizeof errs);
    for (int i = 0; i < 2; i++) { /* the second time it may be the one before itself */
        dgm_code rc = dgm_a2a_answers_read(&s, codec, &mints[0], next, &got, &errs[0]);
        put_answer(&a, rc, got, &errs[0]);
        rc = dgm_a2a_read_answer(scratch, codec, &mints[1], next, &want, &errs[1]);
        put_answer(&b, rc, &want, &errs[1]);
        if (!dgm_str_eq(dgm_buf_str(&a), dgm_buf_str(&b)))
            fail_msg("%.*s behind %.*s: %.*s, expected %.*s", DGM_P(next), DGM_P(before),
                     DGM_P(dgm_buf_str(&a)), DGM_P(dgm_buf_str(&b)));
    }
    dgm_a2a_answers_done(&s);
    dgm_buf_done(&a);
    dgm_buf_done(&b);
}

#define CHUNK_10(text)                                                                             \
    "{'jsonrpc':'2.0','id':1,'result':{'artifactUpdate':{'taskId':'t','contextId':'c',"            \
    "'artifact':{'artifactId':'x','parts':[{'text':'" text "'}]},'append':true}}}"
#define CHUNK_03(text)                                                                             \
    "{'jsonrpc':'2.0','id':1,'result':{'kind':'artifact-update','taskId':'t','contextId':'c',"     \
    "'append':true,'artifact':{'artifactId':'x','parts':[{'kind':'text','text':'" text "'}]}}}"
#define CHUNK_WITHOUT_ID(text)                                                                     \
    "{'artifactUpdate':{'artifact':{'parts':[{'text':'" text "'}]},'append':true}}"

static void test_next_answers(void **state)
{
    static const char *const texts[] = {
        CHUNK_10("hello"),
        CHUNK_10("h"),
        CHUNK_10(""),
        CHUNK_10("\\n"),
        CHUNK_10("\\u00e4"),
        CHUNK_10("\xc3\xa4"),
        CHUNK_10("\xc3"),
        CHUNK_10("a\tb"),
        CHUNK_10("'},{'text':'b"),
        CHUNK_10("','x':'"),
        CHUNK_10("text"),
        CHUNK_10("t"),
        CHUNK_10("a") "x",
        CHUNK_03("hello"),
        CHUNK_03("text"),
        CHUNK_03("a"),
        CHUNK_WITHOUT_ID("a"),
        CHUNK_WITHOUT_ID("b"),
        "{'error':'broken'}",
        "{}",
        "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}",
    };
    size_t n = sizeof texts / sizeof *texts;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            check_next(&dgm_codec_a2a_10, with_quotes(texts[i]), with_quotes(texts[k]));
            check_next(&dgm_codec_a2a_03, with_quotes(texts[i]), with_quotes(texts[k]));
        }
    }
}

/* Every byte of an answer changed, removed and doubled. */
static void test_changed_answers(void **state)
{
    static const char *const texts[] = {CHUNK_10("hello"), CHUNK_03("hello")};
    static const char bytes[] = "\"\\{}[],: x\n\xc3\x80";
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_str before = with_quotes(texts[i]);
        for (size_t at = 0; at < before.n; at++) {
            dgm_str less = dgm_arena_join(arena, (dgm_str){before.p, at},
                                          (dgm_str){before.p + at + 1, before.n - at - 1});
            dgm_str more = dgm_arena_join(arena, (dgm_str){before.p, at + 1},
                                          (dgm_str){before.p + at, before.n - at});
            check_next(&dgm_codec_a2a_10, before, less);
            check_next(&dgm_codec_a2a_10, before, more);
            for (size_t k = 0; k < sizeof bytes - 1; k++) {
                dgm_str other = dgm_arena_dup(arena, before);
                ((char *)(uintptr_t)other.p)[at] = bytes[k];
                check_next(&dgm_codec_a2a_10, before, other);
            }
        }
    }
}

static void test_missing_ids(void **state)
{
    dgm_mint mint = {{1, 2}, 0, {0}};
    dgm_a2a_answer answer;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_a2a_read_answer(
                 arena, &dgm_codec_a2a_10, &mint,
                 with_quotes("{'statusUpdate':{'status':{'state':'TASK_STATE_WORKING'}}}"), &answer,
                 &err),
             err);
    assert_int_equal(answer.event.kind, DGM_EVENT_STATUS);
    assert_int_equal(answer.task_id.n, 0);
    assert_int_equal(answer.context_id.n, 0);
}

static void test_errors(void **state)
{
    static const struct {
        const char *text, *message;
        dgm_code code;
    } rows[] = {
        {"{'jsonrpc':'2.0','id':1,'error':{'code':-32001,'message':'no task'}}", "no task",
         DGM_TASK_NOT_FOUND},
        {"{'error':{'code':404,'status':'NOT_FOUND','message':'no task'}}", "no task",
         DGM_TASK_NOT_FOUND},
        {"{'code':-32004,'message':'cannot'}", "cannot", DGM_UNSUPPORTED_OPERATION},
        {"{'error':'broken'}", "broken", DGM_OK},
        {"{'jsonrpc':'2.0','id':1,'error':{'code':'odd','message':'broken'}}", "broken", DGM_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_mint mint = {{1, 2}, 0, {0}};
        dgm_a2a_answer answer;
        dgm_err err = {0};
        check_ok(dgm_a2a_read_answer(arena, &dgm_codec_a2a_10, &mint, with_quotes(rows[i].text),
                                     &answer, &err),
                 err);
        assert_non_null(answer.error);
        assert_true(dgm_str_eq(answer.error->message, dgm_str_from(rows[i].message)));
        assert_int_equal(answer.error->code, rows[i].code);
    }
}

static void test_garbage(void **state)
{
    static const char *const texts[] = {
        "[]",
        "null",
        "17",
        "{}",
        "{'result':null}",
        "{'task':[]}",
        "{'task':{'id':'x'",
        "{'task':{'id':'x','status':{'state':'TASK_STATE_NEW'}}}",
        "{'kind':'task'}",
        "{'artifactUpdate':{'artifact':{'artifactId':'x','parts':[{'kind':'odd'}]}}}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_mint mint = {{1, 2}, 0, {0}};
        dgm_a2a_answer answer;
        dgm_err err = {0};
        if (!dgm_a2a_read_answer(arena, &dgm_codec_a2a_10, &mint, with_quotes(texts[i]), &answer,
                                 &err))
            fail_msg("%s was read", texts[i]);
        assert_true(err.msg[0]);
    }
}

static void test_card_urls(void **state)
{
    static const char *const rows[][3] = {
        {"http://h:1", "http://h:1/.well-known/agent-card.json", NULL},
        {"http://h/", "http://h/.well-known/agent-card.json", NULL},
        {"http://h/a2a", "http://h/a2a/.well-known/agent-card.json",
         "http://h/.well-known/agent-card.json"},
        {"http://h/agents/x", "http://h/agents/x/.well-known/agent-card.json", NULL},
        {"http://h/card.json", "http://h/card.json", NULL},
        {"http://h/.well-known/agent-card.json?assistant_id=1",
         "http://h/.well-known/agent-card.json?assistant_id=1", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < 2; k++) {
            const char *url = dgm_a2a_card_url(arena, rows[i][0], k);
            if (rows[i][k + 1])
                assert_string_equal(url, rows[i][k + 1]);
            else
                assert_null(url);
        }
        assert_null(dgm_a2a_card_url(arena, rows[i][0], 2));
    }
}

#define CHUNK_BODY                                                                                 \
    "'taskId':'t','contextId':'c','artifact':{'artifactId':'x','parts':[{'text':'hi'}]},"          \
    "'append':true"
#define CHUNK "{'artifactUpdate':{" CHUNK_BODY "}}"

/* Chunks have a fast path: in the usual envelopes, in others and in none they are the same. */
static void test_chunks(void **state)
{
    static const char *const same[] = {
        CHUNK,
        "{'jsonrpc':'2.0','id':1,'result':" CHUNK "}",
        "{'id':1,'jsonrpc':'2.0','result':" CHUNK "}",
        "{'id':'1','jsonrpc':'2.0','result':" CHUNK "}",
        "{'jsonrpc': '2.0', 'id': 1, 'result': " CHUNK "}",
        "{'jsonrpc':'2.0','id':1,'result':{'artifactUpdate':{'kind':'artifact-update'," CHUNK_BODY
        "}}}",
    };
    static const char *const broken[] = {
        "{'jsonrpc':'2.0','id':1,'result':",
        "{'jsonrpc':'2.0','id':1,'result':}",
        "{'jsonrpc':'2.0','id':1,'result':" CHUNK,
        "{'jsonrpc':'2.0','id':1,'result':" CHUNK "}}",
        "{'jsonrpc':'2.0','id':1,'result':" CHUNK ",}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        dgm_a2a_answer answer;
        dgm_err err = {0};
        check_reads(same[i], CHUNK);
        check_ok(dgm_a2a_read_answer(arena, &dgm_codec_a2a_10, NULL, with_quotes(same[i]), &answer,
                                     &err),
                 err);
        assert_true(dgm_str_is(answer.task_id, "t") && dgm_str_is(answer.context_id, "c"));
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        dgm_a2a_answer answer;
        dgm_err err = {0};
        assert_int_equal(dgm_a2a_read_answer(arena, &dgm_codec_a2a_10, NULL, with_quotes(broken[i]),
                                             &answer, &err),
                         DGM_PARSE);
    }
}

/* ---- interfaces -------------------------------------------------------------------------------------------------- */

#define INTERFACE(url, binding, version)                                                           \
    "{'url':'" url "','protocolBinding':'" binding "','protocolVersion':'" version "'}"

static void test_interfaces(void **state)
{
    static const char text[] =
        "{'name':'x','description':'x','version':'1','capabilities':{},'"
        "skills':[],"
        "'defaultInputModes':[],'defaultOutputModes':[],'"
        "supportedInterfaces':[" INTERFACE("http://a", "GRPC", "1.0") "," INTERFACE("http://b", "JSONRPC", "0.3") "," INTERFACE(
            "http://c", "HTTP+JSON",
            "1.0") "," INTERFACE("http://b", "JSONRPC",
                                 "1.0") "," INTERFACE("ftp://d", "JSONRPC",
                                                      "1.0") "," INTERFACE("http://e", "JSONRPC",
                                                                           "2.0") "," INTERFACE("ht"
                                                                                                "tp"
                                                                                                ":/"
                                                                                                "/"
                                                                                                "f",
                                                                                                "HT"
                                                                                                "TP"
                                                                                                "+J"
                                                                                                "SO"
                                                                                                "N",
                                                                                                "0."
                                                                                                "3") "]}";
    static const struct {
        dgm_a2a_version version;
        dgm_a2a_binding binding;
        const char *urls;
    } rows[] = {
        {DGM_A2A_ANY_VERSION, DGM_A2A_ANY_BINDING, "http://b1 http://c1 http://f0 "},
        {DGM_A2A_VERSION_10, DGM_A2A_ANY_BINDING, "http://c1 http://b1 "},
        {DGM_A2A_VERSION_03, DGM_A2A_ANY_BINDING, "http://b0 http://f0 "},
        {DGM_A2A_ANY_VERSION, DGM_A2A_REST, "http://c1 http://f0 "},
        {DGM_A2A_VERSION_03, DGM_A2A_JSONRPC, "http://b0 "},
    };
    const dgm_agent_card *card;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_a2a_read_card(arena, with_quotes(text), NULL, &card, &err), err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_a2a_peer peers[8], first;
        char got[200] = "";
        size_t n = dgm_a2a_interfaces(card, rows[i].version, rows[i].binding, peers, 8);
        for (size_t k = 0; k < n; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s%d ", DGM_P(peers[k].url),
                     peers[k].is_v1);
        assert_string_equal(got, rows[i].urls);
        assert_int_equal(dgm_a2a_interfaces(card, rows[i].version, rows[i].binding, peers, 1), 1);
        assert_true(dgm_a2a_choose_interface(card, rows[i].version, rows[i].binding, &first));
        assert_true(dgm_str_eq(first.url, peers[0].url) && first.is_v1 == peers[0].is_v1);
    }
}

static void test_routes_of_the_extended_card(void **state)
{
    static const struct {
        const char *url, *tenant;
        bool is_rest, is_v1;
        const char *route;
    } rows[] = {
        {"http://h/x/", "", true, true, "GET http://h/x/extendedAgentCard"},
        {"http://h/x", "t 1", true, true, "GET http://h/x/t%201/extendedAgentCard"},
        {"http://h/x", "", true, false, "GET http://h/x/v1/card"},
        {"http://h/x/v1", "", true, false, "GET http://h/x/v1/card"},
        {"http://h/x", "t", false, true, "POST http://h/x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_a2a_peer p = dgm_a2a_peer_at(dgm_str_from(rows[i].url), dgm_str_from(rows[i].tenant),
                                         rows[i].is_rest, rows[i].is_v1);
        dgm_task_request params = {0};
        dgm_buf url;
        dgm_buf_init(&url, 200);
        const char *method = dgm_a2a_put_route(&p, DGM_METHOD_EXTENDED_CARD, &params, &url);
        dgm_str got = dgm_arena_printf(arena, "%s %.*s", method, DGM_P(dgm_buf_str(&url)));
        assert_string_equal(got.p, rows[i].route);
        dgm_buf_done(&url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_updates_and_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_card_urls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interfaces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_routes_of_the_extended_card, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
