/*
 * backend/test_a2a.h - what the tests of agents of other A2A servers share: a scripted server, its answers and agent cards, and
 * checks of a run.
 */
#pragma once

#include "backend/test_fake.h"
#include "net/test_peer.h"

/* ---- what the server answers ------------------------------------------------------------------------------------------- */

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

#define ERROR_HEAD(status) "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

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

static char card_10[1024], card_03[1024], card_rest[1024], card_polled[1024];
static char texts[16][20000]; /* scripts with " for ' */
static size_t n_texts;

static inline const char *quoted(const char *text)
{
    char *to = texts[n_texts++];
    assert_true(n_texts <= 16 && strlen(text) < sizeof texts[0]);
    pthread_mutex_lock(&server.lock);
    strcpy(to, text);
    fake_double_quotes(to);
    pthread_mutex_unlock(&server.lock);
    return texts[n_texts - 1];
}

static inline void make_card(char *to, size_t size, const char *binding, const char *version,
                             const char *path, bool streams)
{
    snprintf(to, size,
             JSON_HEAD
             "{'name':'x','description':'x','version':'1','capabilities':{'streaming':%s},"
             "'defaultInputModes':['text'],'defaultOutputModes':['text'],'skills':[],"
             "'supportedInterfaces':[{'url':'http://127.0.0.1:%d%s','protocolBinding':'%s',"
             "'protocolVersion':'%s'}]}",
             streams ? "true" : "false", server.port, path, binding, version);
    fake_double_quotes(to);
}

static inline void start_server(void)
{
    static const struct script none[] = {{NULL, 0}};
    server_start(none, 1);
    n_texts = 0;
    make_card(card_10, sizeof card_10, "JSONRPC", "1.0", "/rpc", true);
    make_card(card_03, sizeof card_03, "JSONRPC", "0.3", "/rpc", true);
    make_card(card_rest, sizeof card_rest, "HTTP+JSON", "1.0", "/rest", true);
    make_card(card_polled, sizeof card_polled, "JSONRPC", "1.0", "/rpc", false);
}

static inline struct fake *open_agent(const char *more)
{
    char config[400];
    snprintf(config, sizeof config, "{'url':'http://127.0.0.1:%d'%s}", server.port, more);
    struct fake *f = fake_open("a2a", config, NULL);
    f->can_store = true;
    return f;
}

static inline void close_agent(struct fake *f)
{
    fake_close(f);
    server_stop();
}

#define SCRIPT(name, ...)                                                                          \
    const struct script name[] = {__VA_ARGS__};                                                    \
    server_script(name, sizeof name / sizeof *name)
#define ON_CARD "GET /.well-known"

/* Text once, in every place; nothing of the agent's ids. */
static inline void check_answer(struct fake *f, const char *text)
{
    fake_check(f);
    check_str(f->stream, text);
    fake_check_text(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_false(fake_has(&f->events, "far"));
}

static inline void check_failure(struct fake *f, const char *sentence)
{
    if (f->state != DGM_STATE_FAILED || !fake_has(&f->events, sentence)) {
        print_error("expected \"%s\", got %.*s\n", sentence, DGM_P(dgm_buf_str(&f->events)));
        fail();
    }
    fake_check(f);
}
