/* backend/test_graph_server.h - a scripted LangGraph server, and what the tests of the type langgraph-server share. */
#pragma once

#include "backend/test_fake.h"
#include "net/test_peer.h"

#define RUN "01a1ef87-55c3-709d-a9c6-25a0981f7ff6"
#define RUN_HEAD                                                                                   \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Location: "      \
    "/threads/t/runs/" RUN "\r\nConnection: close\r\n\r\n"

/* One frame of a runs stream. */
#define FRAME(id, event, data) "event: " event "\r\ndata: " data "\r\nid: " id "\r\n\r\n"
#define HUMAN "{'type':'human','content':'hi','id':'msg-1'}"
#define AI(text) "{'type':'ai','content':'" text "','id':'ai-1'}"
#define VALUES(id, messages) FRAME(id, "values", "{'messages':[" messages "]}")
#define CHUNK(id, text)                                                                            \
    FRAME(id, "messages",                                                                          \
          "[{'type':'AIMessageChunk','content':'" text                                             \
          "','id':'ai-1'},{'langgraph_node':'chat','langgraph_step':1,"                            \
          "'langgraph_checkpoint_ns':'chat:1'}]")
#define UPDATES(id) FRAME(id, "updates", "{'chat':{'messages':[" AI("Hello world") "]}}")
/* Several frames have the same id, as those of the development server. */
#define ARTIFACT                                                                                   \
    "{'a2a':{'type':'artifact','kind':'data','name':'d','data':{'n':1},'append':false,"            \
    "'is_last_chunk':true}}"
#define ANSWER_START FRAME("1-0", "metadata", "{'run_id':'" RUN "'}") VALUES("2-0", HUMAN)
#define ANSWER_TEXT CHUNK("3-0", "Hel") CHUNK("4-0", "lo") CHUNK("4-0", " ") CHUNK("4-0", "wor")
#define ANSWER_REST CHUNK("5-0", "ld") FRAME("5-0", "custom", ARTIFACT) UPDATES("6-0")
#define ANSWER ANSWER_START ANSWER_TEXT ANSWER_REST VALUES("6-0", HUMAN "," AI("Hello world"))

#define NOT_FOUND                                                                                  \
    "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: "                     \
    "close\r\n\r\n{\"detail\":\"no such thing\"}"

static char texts[24][20000]; /* scripts with " for ' */
static size_t n_texts;

static inline const char *quoted(const char *text)
{
    char *to = texts[n_texts++];
    assert_true(n_texts <= 24 && strlen(text) < sizeof texts[0]);
    pthread_mutex_lock(&server.lock);
    strcpy(to, text);
    fake_double_quotes(to);
    pthread_mutex_unlock(&server.lock);
    return to;
}

static const char *assistants, *schemas, *thread, *succeeded, *state_done;

#define ON_ASSISTANTS                                                                              \
    {                                                                                              \
        assistants, 0, "POST /assistants/search"                                                   \
    }
#define ON_SCHEMAS                                                                                 \
    {                                                                                              \
        schemas, 0, "/schemas"                                                                     \
    }
#define ON_THREAD                                                                                  \
    {                                                                                              \
        thread, 0, "POST /threads HTTP"                                                            \
    }
#define ON_CHECK                                                                                   \
    {                                                                                              \
        succeeded, 0, "/runs/" RUN " HTTP"                                                         \
    }
#define ON_STATE                                                                                   \
    {                                                                                              \
        state_done, 0, "/state HTTP"                                                               \
    }
#define ON_SEND "/runs/stream HTTP"
#define ON_JOIN "/runs/" RUN "/stream HTTP"
#define ON_CANCEL "/runs/" RUN "/cancel"
#define ON_LIST "/runs?limit"
#define COMMON ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD, ON_CHECK, ON_STATE

#define SCRIPT(name, ...)                                                                          \
    const struct script name[] = {__VA_ARGS__};                                                    \
    server_script(name, sizeof name / sizeof *name)

static inline void start_server(void)
{
    static const struct script none[] = {{NULL, 0}};
    server_start(none, 1);
    n_texts = 0;
    assistants = quoted(JSON_HEAD "[{'assistant_id':'fe096781-5601-53d2-b2f6-0d3403f7e9ca'}]");
    schemas = quoted(JSON_HEAD "{'state_schema':{'properties':{'messages':{}}}}");
    thread = quoted(JSON_HEAD "{'thread_id':'t','status':'idle','interrupts':{}}");
    succeeded = quoted(JSON_HEAD "{'run_id':'" RUN "','status':'success'}");
    state_done = quoted(JSON_HEAD "{'values':{'messages':[" HUMAN
                                  "," AI("Hello world") "]},'next':[],'tasks':[]}");
}

static inline struct fake *open_agent(const char *more)
{
    char config[400];
    snprintf(config, sizeof config, "{'url':'http://127.0.0.1:%d/'%s}", server.port, more);
    struct fake *f = fake_open("langgraph-server", config, NULL);
    f->can_store = true;
    return f;
}

static inline void close_agent(struct fake *f)
{
    fake_close(f);
    server_stop();
}

/* The text once: streamed, and as the answer; the artifact of the graph once. */
static inline void check_hello_(struct fake *f, const char *where, size_t at)
{
    if (f->state != DGM_STATE_COMPLETED || f->stream.n != 11 ||
        memcmp(f->stream.p, "Hello world", 11) != 0 || f->final.n != 11 ||
        memcmp(f->final.p, "Hello world", 11) != 0 || f->fault[0] || f->n_first != f->n_last) {
        print_error("%s, %zu: fault \"%s\", %.*s\n", where, at, f->fault,
                    DGM_P(dgm_buf_str(&f->events)));
        fail();
    }
}
#define check_hello(f) check_hello_((f), __func__, __LINE__)

static inline size_t count_in(const dgm_buf *b, const char *what)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t n = 0;
    for (const char *p = dgm_arena_dup(a, dgm_buf_str(b)).p; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static inline void check_failure(struct fake *f, const char *sentence)
{
    if (f->state != DGM_STATE_FAILED || !fake_has(&f->events, sentence)) {
        print_error("expected \"%s\", got %.*s\n", sentence, DGM_P(dgm_buf_str(&f->events)));
        fail();
    }
}

/* A restart between the runs: what is stored of the task remains. */
static inline void restart_task(struct fake *f)
{
    dgm_buf note = f->stored[DGM_RUN_TASK];
    dgm_buf_init(&f->stored[DGM_RUN_TASK], SIZE_MAX);
    fake_new_task(f);
    dgm_buf_done(&f->stored[DGM_RUN_TASK]);
    f->stored[DGM_RUN_TASK] = note;
    f->is_resumed = true;
}
