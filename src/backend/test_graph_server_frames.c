/* test_graph_server_frames.c - frames of a LangGraph server to events of the worker protocol. */
#include "backend/graph_server/graph_server_frames.h"
#include "support/check.h"

struct told {
    struct gserver_frames frames;
    dgm_buf events; /* "type ns data", one per line */
};

static dgm_code on_event(void *arg, dgm_str type, const dgm_json *ns, const dgm_json *data,
                         dgm_err *err)
{
    struct told *t = arg;
    (void)err;
    dgm_buf_add_str(&t->events, type);
    dgm_buf_add_char(&t->events, ' ');
    dgm_json_put(&t->events, ns);
    dgm_buf_add_char(&t->events, ' ');
    dgm_json_put(&t->events, data);
    dgm_buf_add_char(&t->events, '\n');
    return DGM_OK;
}

static void told_init(struct told *t)
{
    memset(t, 0, sizeof *t);
    dgm_buf_init(&t->events, SIZE_MAX);
    dgm_gserver_frames_init(&t->frames, on_event, t);
}

static void told_done(struct told *t)
{
    dgm_gserver_frames_done(&t->frames);
    dgm_buf_done(&t->events);
}

/* text: JSON with ' for " */
static enum gserver_frame_end add(struct told *t, bool is_v2, const char *id, const char *event,
                                  const char *text)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str json = dgm_arena_dup(a, dgm_str_from(text));
    enum gserver_frame_end end;
    dgm_err err = {0};
    for (size_t i = 0; i < json.n; i++) {
        if (json.p[i] == '\'')
            ((char *)(uintptr_t)json.p)[i] = '"';
    }
    dgm_frames_item item = {
        .text = json, .sse_id = dgm_str_from(id), .sse_event = dgm_str_from(event)};
    check_ok(
        (is_v2 ? dgm_gserver_frames_add_v2 : dgm_gserver_frames_add)(&t->frames, &item, &end, &err),
        err);
    return end;
}

static void check_told(struct told *t, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_arena_dup(a, dgm_str_from(want));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'')
            ((char *)(uintptr_t)text.p)[i] = '"';
    }
    check_str(t->events, text.p);
    dgm_buf_clear(&t->events);
}

static void messages_of_both_languages_have_one_form(void **state)
{
    struct told t;
    (void)state;
    told_init(&t);
    /* Python */
    add(&t, false, "1-0", "messages",
        "[{'type':'AIMessageChunk','content':'a','id':'x'},{'langgraph_node':'n','langgraph_step':"
        "2,'langgraph_checkpoint_ns':'n:1'}]");
    check_told(&t, "messages null "
                   "{'message':{'content':'a','id':'x','type':'ai','chunk':true},'node':'n','src':'"
                   "n:1','step':2}\n");
    add(&t, false, "2-0", "messages",
        "[{'type':'ai','content':'a','id':'x'},{'langgraph_node':'n','langgraph_checkpoint_ns':'n:"
        "1'}]");
    check_told(
        &t,
        "messages null {'message':{'content':'a','id':'x','type':'ai'},'node':'n','src':'n:1'}\n");
    /* in a subgraph */
    add(&t, false, "3-0", "messages|sub:1",
        "[{'type':'AIMessageChunk','content':'a'},{'langgraph_node':'n','langgraph_checkpoint_ns':'"
        "sub:1|n:2'}]");
    check_told(
        &t, "messages ['sub:1'] "
            "{'message':{'content':'a','type':'ai','chunk':true},'node':'n','src':'sub:1|n:2'}\n");
    /* JavaScript: chunks have the type of messages, and the path is that of the node */
    add(&t, false, "4-0", "messages|n:1",
        "[{'type':'ai','content':'a','tool_call_chunks':[]},{'langgraph_node':'n','langgraph_"
        "checkpoint_ns':'n:1'}]");
    check_told(&t, "messages null "
                   "{'message':{'content':'a','tool_call_chunks':[],'type':'ai','chunk':true},'"
                   "node':'n','src':'n:1'}\n");
    add(&t, false, "5-0", "messages", "[{'type':'HumanMessageChunk','content':'a'},{}]");
    check_told(&t, "messages null {'message':{'content':'a','type':'other'},'node':'','src':''}\n");
    add(&t, false, "6-0", "messages", "['x']");
    add(&t, false, "7-0", "messages", "{}");
    check_told(&t, "");
    told_done(&t);
}

static void updates_name_nodes_and_questions(void **state)
{
    struct told t;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    told_init(&t);
    add(&t, false, "1-0", "updates", "{'a':{'messages':[]},'b':null}");
    check_told(&t, "updates null {'nodes':['a','b']}\n");
    add(&t, false, "2-0", "updates|sub:1", "{'c':{},'__metadata__':{}}");
    check_told(&t, "updates ['sub:1'] {'nodes':['c']}\n");
    add(&t, false, "3-0", "updates", "{'__interrupt__':[{'id':'i1','value':{'q':1}}]}");
    add(&t, false, "4-0", "values",
        "{'__interrupt__':[{'id':'i1','value':{'q':1}},{'id':'i2','value':null},{'value':3},4]}");
    check_told(&t, "");
    assert_true(t.frames.is_interrupted);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, dgm_gserver_frames_result(&t.frames, a, "interrupted", NULL));
    check_str(b, "{\"status\":\"interrupted\",\"interrupts\":[{\"id\":\"i1\",\"value\":{\"q\":1}},{"
                 "\"id\":\"i2\",\"value\":null}],"
                 "\"hasOutbox\":false,\"outbox\":null,\"next\":[],\"messages\":[]}");
    dgm_buf_done(&b);
    told_done(&t);
}

/* Only what is new in this run. */
static void the_result_has_the_new_messages(void **state)
{
    static const char last[] = "{'messages':[{'type':'human','id':'h0'},{'type':'ai','id':'a0'},{'"
                               "type':'human','id':'h1'},"
                               "{'type':'ai','id':'a1','content':'x'}],'a2a_outbox':{'n':1}}";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct told t;
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    for (int knows_first = 0; knows_first < 2; knows_first++) {
        told_init(&t);
        t.frames.message_id = DGM_STR("h1");
        if (knows_first)
            add(&t, false, "1-0", "values",
                "{'messages':[{'type':'human','id':'h0'},{'type':'ai','id':'a0'},{'type':'human','"
                "id':'h1'}]}");
        else
            t.frames.has_old = false;
        if (knows_first) {
            add(&t, false, "2-0", "values", last);
        } else { /* after a restart: the state of the thread */
            const dgm_json *next;
            dgm_str text = dgm_arena_printf(a, "{'values':%s,'next':[],'tasks':[]}", last);
            for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '\'')
                    ((char *)(uintptr_t)text.p)[i] = '"';
            }
            dgm_gserver_frames_state(&t.frames, dgm_json_parse_trusted(a, text), &next, a);
        }
        dgm_buf_clear(&b);
        dgm_json_put(&b, dgm_gserver_frames_result(&t.frames, a, "completed", NULL));
        check_str(b, "{\"status\":\"completed\",\"interrupts\":[],\"hasOutbox\":true,\"outbox\":{"
                     "\"n\":1},\"next\":[],"
                     "\"messages\":[{\"id\":\"a1\",\"content\":\"x\",\"type\":\"ai\"}]}");
        told_done(&t);
    }
    dgm_buf_done(&b);
}

#define V2(seq, method, data)                                                                      \
    "{'type':'event','event_id':'" seq "','seq':" seq ",'method':'" method                         \
    "','params':{'namespace':[],'data':" data "}}"
#define V2_RUNNING                                                                                 \
    "{'type':'event','event_id':'synth:r1:lc','seq':1,'method':'lifecycle','params':{"             \
    "'namespace':[],'data':{'event':'running'}}}"

/* A delta that was lost is in the end of its block; text that differs replaces it. */
static void the_end_of_a_block_completes_its_text(void **state)
{
    struct told t;
    (void)state;
    told_init(&t);
    t.frames.run_id = DGM_STR("r1");
    add(&t, true, "0", "messages",
        V2("0", "messages", "{'event':'message-start','role':'ai','id':'old'}"));
    assert_int_equal(add(&t, true, "1", "lifecycle", V2_RUNNING), GSERVER_STARTED);
    add(&t, true, "2", "messages",
        V2("2", "messages", "{'event':'message-start','role':'ai','id':'m'}"));
    add(&t, true, "3", "messages",
        V2("3", "messages",
           "{'event':'content-block-delta','index':0,'delta':{'type':'reasoning-delta','reasoning':"
           "'hm'}}"));
    check_told(&t, "messages null "
                   "{'message':{'type':'ai','content':[{'type':'reasoning','reasoning':'hm'}],'id':"
                   "'m','chunk':true},'node':'m','src':'m'}\n");
    add(&t, true, "4", "messages",
        V2("4", "messages",
           "{'event':'content-block-delta','index':1,'delta':{'type':'text-delta','text':'ab'}}"));
    add(&t, true, "5", "messages",
        V2("5", "messages",
           "{'event':'content-block-finish','index':1,'content':{'type':'text','text':'abcd'}}"));
    check_told(
        &t,
        "messages null "
        "{'message':{'type':'ai','content':'ab','id':'m','chunk':true},'node':'m','src':'m'}\n"
        "messages null "
        "{'message':{'type':'ai','content':'cd','id':'m','chunk':true},'node':'m','src':'m'}\n");
    add(&t, true, "6", "messages",
        V2("6", "messages",
           "{'event':'content-block-delta','index':2,'delta':{'type':'text-delta','text':'xx'}}"));
    add(&t, true, "7", "messages",
        V2("7", "messages",
           "{'event':'content-block-finish','index':2,'content':{'type':'text','text':'y'}}"));
    check_told(
        &t,
        "messages null "
        "{'message':{'type':'ai','content':'xx','id':'m','chunk':true},'node':'m','src':'m'}\n"
        "messages null {'message':{'type':'ai','content':'y','id':'m'},'node':'m','src':'m'}\n");
    /* the results of tools are messages, too */
    add(&t, true, "8", "messages",
        V2("8", "messages", "{'event':'message-start','role':'tool','id':'t'}"));
    add(&t, true, "9", "messages",
        V2("9", "messages",
           "{'event':'content-block-delta','index':0,'content':{'type':'text','text':'result'}}"));
    check_told(&t, "");
    assert_int_equal(
        add(&t, true, "10", "lifecycle",
            "{'type':'event','event_id':'synth:r2:lc','seq':10,'method':'lifecycle','params':{"
            "'namespace':[],'data':{'event':'running','graph_name':'other'}}}"),
        GSERVER_OTHER_RUN);
    told_done(&t);
}

static bool seen(struct gserver_seen *s, const char *id, const char *text)
{
    dgm_frames_item item = {.text = dgm_str_from(text), .sse_id = dgm_str_from(id)};
    return dgm_gserver_seen_frame(s, &item);
}

static void frames_are_recognised_by_their_ids(void **state)
{
    struct gserver_seen s;
    (void)state;
    dgm_gserver_seen_init(&s);
    assert_true(dgm_str_is(dgm_gserver_seen_cursor(&s), "-1"));
    assert_false(seen(&s, "9-0", "a"));
    assert_false(seen(&s, "10-0", "b"));
    assert_false(seen(&s, "10-0", "b")); /* the same token twice in one millisecond */
    assert_false(seen(&s, "10-0", "c"));
    assert_true(dgm_str_is(dgm_gserver_seen_cursor(&s), "9-0"));
    dgm_gserver_seen_reconnect(&s);
    assert_true(seen(&s, "9-0", "a"));
    assert_true(seen(&s, "10-0", "b"));
    assert_true(seen(&s, "10-0", "b"));
    assert_true(seen(&s, "10-0", "c"));
    assert_false(seen(&s, "10-0", "d")); /* it was cut before this one */
    assert_true(seen(&s, "10-0", "d"));  /* the server repeats it: from its store, and live */
    assert_false(seen(&s, "10-1", "d"));
    assert_false(seen(&s, "100-0", "e"));
    assert_true(seen(&s, "11-0", "e"));
    assert_false(seen(&s, "", "e")); /* without an id nothing is repeated */
    dgm_gserver_seen_done(&s);
}

DGM_TEST_MAIN(dgm_test(messages_of_both_languages_have_one_form),
              dgm_test(updates_name_nodes_and_questions), dgm_test(the_result_has_the_new_messages),
              dgm_test(the_end_of_a_block_completes_its_text),
              dgm_test(frames_are_recognised_by_their_ids))
