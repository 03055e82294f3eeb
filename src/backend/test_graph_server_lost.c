/* test_graph_server_lost.c - graphs on a LangGraph server: lost connections, repeated events, restarts, Protocol v2. */
#include "backend/test_graph_server.h"

/* ---- the runs API ---------------------------------------------------------------------------------------------------------- */

/* Where each frame of the answer ends. */
static size_t frame_ends(const char *body, size_t *ends)
{
    size_t n = 0;
    for (const char *p = body; (p = strstr(p, "\r\n\r\n")); p += 4)
        ends[n++] = (size_t)(p + 4 - body);
    return n;
}

/* The frames behind an id, as the server replays them. */
static const char *frames_behind(const char *body, const char *id)
{
    const char *rest = body;
    char line[40];
    snprintf(line, sizeof line, "id: %s\r\n\r\n", id);
    for (const char *p = body; (p = strstr(p, line)); p++)
        rest = p + strlen(line);
    return rest;
}

enum cut_how {
    CUT_LOST = 1,  /* the connection is lost; else the stream looks complete */
    CUT_ALL = 2,   /* the join repeats everything, as if Last-Event-ID were ignored */
    CUT_ENDED = 4, /* the run has ended when it is looked at for the first time */
};

/* The stream ends within or behind each frame. */
static void cut_everywhere(unsigned how, size_t into)
{
    bool is_all = how & CUT_ALL;
    static const char *const ids[] = {"-1", "1-0", "2-0", "3-0", "4-0", "5-0", "6-0"};
    static char on[7][40];
    size_t ends[32];
    char head[400];
    start_server();
    struct fake *f = open_agent("");
    const char *body = quoted(ANSWER);
    size_t n = frame_ends(body, ends);
    assert_int_equal(n, 10);
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Location: "
             "/threads/t/runs/" RUN "\r\nConnection: close\r\n%s\r\n",
             how & CUT_LOST ? "Content-Length: 1000000\r\n" : "");
    static char joins[7][20000], sent[20000];
    for (size_t i = 0; i < 7; i++) {
        snprintf(on[i], sizeof on[i], "Last-Event-ID: %s\r\n", ids[i]);
        snprintf(joins[i], sizeof joins[i], "%s%s", SSE_HEAD,
                 is_all || i == 0 ? body : frames_behind(body, ids[i]));
    }
    for (size_t k = 0; k <= n; k++) {
        size_t end = (k ? ends[k - 1] : 0) + (k < n ? into : 0);
        pthread_mutex_lock(&server.lock);
        snprintf(sent, sizeof sent, "%s%.*s", head, (int)end, body);
        pthread_mutex_unlock(&server.lock);
        const char *runs = quoted(JSON_HEAD "{'run_id':'" RUN "','status':'running'}");
        if (how & CUT_ENDED)
            runs = succeeded;
        SCRIPT(s, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD, ON_STATE, {sent, 0, ON_SEND, strlen(sent)},
               {runs, 0, "/runs/" RUN " HTTP"}, {succeeded, 0, "/runs/" RUN " HTTP"},
               {joins[0], 0, on[0]}, {joins[1], 0, on[1]}, {joins[2], 0, on[2]},
               {joins[3], 0, on[3]}, {joins[4], 0, on[4]}, {joins[5], 0, on[5]},
               {joins[6], 0, on[6]});
        n_texts--;
        fake_new_task(f);
        fake_run(f, "hi");
        check_hello_(f, is_all ? "all again" : "behind the id", k);
        assert_int_equal(count_in(&f->events, "\"name\":\"d\""), 1);
        assert_int_equal(server_count(ON_SEND), 1);
        assert_int_equal(server_count(ON_JOIN), 1);
    }
    close_agent(f);
}

static void a_lost_stream_is_joined_behind_the_last_id(void **state)
{
    (void)state;
    cut_everywhere(CUT_LOST, 0);
    cut_everywhere(0, 0); /* it looks complete, and the run goes on */
}

static void a_stream_that_is_cut_within_a_frame_is_joined(void **state)
{
    (void)state;
    cut_everywhere(CUT_LOST, 30);
}

static void a_join_may_repeat_everything(void **state)
{
    (void)state;
    cut_everywhere(CUT_LOST | CUT_ALL, 0);
}

static void a_lost_stream_is_joined_although_its_run_has_ended(void **state)
{
    (void)state;
    cut_everywhere(CUT_LOST | CUT_ENDED, 0);
    cut_everywhere(CUT_LOST | CUT_ENDED, 30);
}

/* The run has ended before the join, and its events are gone: the state of the thread has the answer. */
static void the_state_completes_what_was_lost(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, COMMON, {quoted(RUN_HEAD VALUES("1-0", HUMAN) CHUNK("2-0", "Hel")), 0, ON_SEND},
           {quoted(SSE_HEAD ""), 0, ON_JOIN});
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_str(f->final, "Hello world");
    assert_int_equal(f->n_first, f->n_last);
    close_agent(f);
}

/* ---- a message that may have arrived ------------------------------------------------------------------------------------------ */

static const char *list_with_turn(struct fake *f)
{
    static char list[400], turn[64];
    (void)f;
    pthread_mutex_lock(&server.lock);
    dgm_buf_add_char(&server.log, '\0');
    const char *at = strstr(server.log.p, "\"dragoman_turn\":\"");
    snprintf(turn, sizeof turn, "%.32s", at ? at + 17 : "");
    server.log.n--;
    snprintf(list, sizeof list,
             JSON_HEAD "[{\"run_id\":\"other\",\"metadata\":{}},{\"run_id\":\"" RUN
                       "\",\"metadata\":{\"dragoman_turn\":\"%s\"}}]",
             turn);
    pthread_mutex_unlock(&server.lock);
    return list;
}

static void a_message_that_may_have_arrived_is_searched_first(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    /* it has not arrived: it is sent again */
    SCRIPT(s1, COMMON, {NULL, RESET, ON_SEND}, {quoted(RUN_HEAD ANSWER), 0, ON_SEND},
           {quoted(JSON_HEAD "[]"), 0, ON_LIST});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_SEND), 2);
    assert_int_equal(server_count(ON_LIST), 1);
    /* it has: its run is followed */
    const char *list = list_with_turn(f);
    SCRIPT(s2, COMMON, {NULL, RESET, ON_SEND}, {quoted(SSE_HEAD ANSWER), 0, ON_JOIN},
           {list, 0, ON_LIST});
    fake_new_task(f);
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_SEND), 1);
    close_agent(f);
}

/* ---- restarts ------------------------------------------------------------------------------------------------------------------ */

static void a_restart_follows_the_same_run(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, COMMON, {quoted(RUN_HEAD VALUES("1-0", HUMAN)), HOLD, ON_SEND},
           {quoted(JSON_HEAD "{}"), 0, ON_CANCEL});
    f->cancel_ms = 500;
    fake_run(f, "hi"); /* stores the run; it ends canceled, which the next process does not know */
    assert_true(fake_has(&f->stored[DGM_RUN_TASK], RUN));
    f->cancel_ms = 0;
    const char *list = list_with_turn(f);
    restart_task(f);
    SCRIPT(s2, COMMON, {quoted(SSE_HEAD ANSWER), 0, "Last-Event-ID: -1\r\n"});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_SEND), 0);

    /* it ended before the run was stored: the metadata of the server's runs name it */
    fake_new_task(f);
    SCRIPT(s3, COMMON, {quoted(SSE_HEAD ANSWER), 0, ON_JOIN}, {list, 0, ON_LIST});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_SEND), 0);

    /* ... or before it was sent */
    fake_new_task(f);
    SCRIPT(s4, COMMON, {quoted(RUN_HEAD ANSWER), 0, ON_SEND}, {quoted(JSON_HEAD "[]"), 0, ON_LIST});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_SEND), 1);
    close_agent(f);
}

/* The task's status is `working` then, and no longer the question: the answers are stored. */
static void an_answer_is_sent_again_after_a_restart(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    const char *asks = quoted(RUN_HEAD VALUES("1-0", HUMAN) FRAME(
        "2-0", "values", "{'messages':[" HUMAN "],'__interrupt__':[{'value':'Name?','id':'i1'}]}"));
    const char *waiting = quoted(JSON_HEAD "{'thread_id':'t','interrupts':{'x':[{'id':'i1'}]}}");
    const char *none = quoted(JSON_HEAD "[]"), *answer = quoted(RUN_HEAD ANSWER);
    SCRIPT(s1, COMMON, {asks, 0, ON_SEND});
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    SCRIPT(s2, ON_ASSISTANTS, ON_SCHEMAS, {waiting, 0, "POST /threads HTTP"}, {NULL, HOLD, ON_SEND},
           {none, 0, ON_LIST});
    f->cancel_ms = 300;
    fake_run_with(f, "msg-2", "Bob"); /* as if the process had ended while it was sent */
    assert_true(fake_has(&f->stored[DGM_RUN_TASK], "\"resume\":{\"i1\":\"Bob\"}"));
    f->cancel_ms = 0;
    restart_task(f);
    SCRIPT(s3, ON_ASSISTANTS, ON_SCHEMAS, {waiting, 0, "POST /threads HTTP"}, ON_CHECK, ON_STATE,
           {answer, 0, ON_SEND}, {none, 0, ON_LIST});
    fake_run_with(f, "msg-2", "Bob");
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_int_equal(server_count("\"command\":{\"resume\":{\"i1\":\"Bob\"}"), 1);
    close_agent(f);
}

static void a_server_that_does_not_come_back_is_an_error(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'reconnect_timeout':0.5");
    SCRIPT(s, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD,
           {quoted(RUN_HEAD CHUNK("2-0", "Hel")), 0, ON_SEND}, {NULL, RESET, "/runs/" RUN " HTTP"});
    fake_run(f, "hi");
    check_failure(f, "the connection to the agent's server was lost");
    assert_int_equal(f->n_first, f->n_last);
    close_agent(f);
}

/* A loop that stops ends the run, and the task is not settled: it goes on after the restart. */
static void a_stop_leaves_the_task_open(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, COMMON, {quoted(RUN_HEAD CHUNK("2-0", "Hel")), HOLD, ON_SEND});
    fake_prepare(f, "msg-1", "hi");
    dgm_loop_post(f->run.loop, fake_do_start, f);
    while (!server_count(ON_SEND))
        usleep(1000);
    usleep(200000);
    dgm_loops_stop(f->loops);
    uv_sem_wait(&f->ended);
    assert_string_equal(f->error, DGM_SHUTTING_DOWN);
    assert_int_equal(server_count(ON_CANCEL), 0);
    close_agent(f);
}

/* ---- Protocol v2 ----------------------------------------------------------------------------------------------------------------- */

#define V2(seq, id, method, data)                                                                  \
    "event: " method "\r\ndata: {'type':'event','event_id':'" id "','seq':" seq                    \
    ",'method':'" method "','params':{'namespace':[],'timestamp':1,'data':" data "}}\r\nid: " seq  \
    "\r\n\r\n"
#define V2_LIFE(seq, run, event)                                                                   \
    V2(seq, "synth:" run ":lc||" event, "lifecycle", "{'event':'" event "','graph_name':'agent'}")
#define V2_DELTA(seq, text)                                                                        \
    V2(seq, "7-0", "messages",                                                                     \
       "{'event':'content-block-delta','index':0,'delta':{'type':'text-delta','text':'" text       \
       "'}}")
#define V2_TEXT_START                                                                              \
    "{'event':'content-block-start','index':0,'content':{'type':'text','text':''}}"
#define V2_TEXT_END                                                                                \
    "{'event':'content-block-finish','index':0,'content':{'type':'text','text':'Hello world'}}"
#define V2_MESSAGE_START "{'event':'message-start','role':'ai','id':'ai-1'}"
#define V2_HEAD V2_LIFE("4", RUN, "running") V2("5", "1-0", "values", "{'messages':[" HUMAN "]}")
#define V2_START                                                                                   \
    V2("6", "2-0", "messages", V2_MESSAGE_START) V2("7", "2-0.1", "messages", V2_TEXT_START)
#define V2_TEXT_A V2_DELTA("8", "Hel") V2_DELTA("9", "lo") V2_DELTA("10", " ")
#define V2_TEXT_B V2_DELTA("11", "wor") V2_DELTA("12", "ld")
#define V2_END                                                                                     \
    V2("13", "8-0", "messages", V2_TEXT_END)                                                       \
    V2("14", "9-0", "messages", "{'event':'message-finish'}")
#define V2_CUSTOM V2("15", "10-0", "custom", "{'payload':" ARTIFACT "}")
#define V2_VALUES V2("16", "11-0", "values", "{'messages':[" HUMAN "," AI("Hello world") "]}")
#define V2_RUN V2_HEAD V2_START V2_TEXT_A V2_TEXT_B V2_END V2_CUSTOM V2_VALUES
/* The thread has an earlier run, which is replayed, too. */
#define V2_EARLIER                                                                                 \
    V2_LIFE("1", "before", "running")                                                              \
    V2("2", "0-1", "messages", "{'event':'message-start','role':'ai','id':'ai-0'}")                \
    V2_LIFE("3", "before", "completed")
#define V2_ANSWER V2_EARLIER V2_RUN V2_LIFE("17", RUN, "completed")

#define ON_COMMAND "/commands HTTP"
#define ON_EVENTS "/stream/events HTTP"
#define STARTED                                                                                    \
    JSON_HEAD "{'type':'success','id':1,'result':{'run_id':'" RUN                                  \
              "'},'meta':{'applied_through_seq':0}}"

static void v2_events_are_the_same_answer(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    SCRIPT(s, COMMON, {quoted(STARTED), 0, ON_COMMAND},
           {quoted(SSE_HEAD V2_ANSWER), HOLD, ON_EVENTS});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(f->n_chunks, 6);
    assert_int_equal(server_count("\"method\":\"run.start\""), 1);
    assert_int_equal(server_count(ON_SEND), 0);
    close_agent(f);
}

static void a_lost_v2_stream_is_repeated_from_the_start_of_the_run(void **state)
{
    size_t ends[40];
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    const char *body = quoted(V2_ANSWER), *started = quoted(STARTED);
    const char *all = quoted(SSE_HEAD V2_ANSWER),
               *own = quoted(SSE_HEAD V2_RUN V2_LIFE("17", RUN, "completed"));
    const char *running = quoted(JSON_HEAD "{'status':'running'}");
    static char sent[20000];
    size_t n = frame_ends(body, ends);
    assert_int_equal(n, 17);
    for (size_t k = 0; k < n; k++) {
        pthread_mutex_lock(&server.lock);
        snprintf(sent, sizeof sent, "%s%.*s", SSE_HEAD, (int)(k ? ends[k - 1] : 0), body);
        pthread_mutex_unlock(&server.lock);
        SCRIPT(s, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD, ON_STATE, {started, 0, ON_COMMAND},
               {sent, 0, ON_EVENTS, strlen(sent)}, {own, HOLD, "\"since\":3"},
               {all, HOLD, ON_EVENTS}, {running, 0, "/runs/" RUN " HTTP"},
               {succeeded, 0, "/runs/" RUN " HTTP"});
        fake_new_task(f);
        fake_run(f, "hi");
        check_hello_(f, "v2", k);
        assert_int_equal(count_in(&f->events, "\"name\":\"d\""), 1);
        assert_int_equal(server_count(ON_COMMAND), 1);
    }
    close_agent(f);
}

/* The events between two connections are gone; the rest of the text is in the end of its block. */
static void a_gap_is_filled(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    const char *running = quoted(JSON_HEAD "{'status':'running'}");
    SCRIPT(s, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD, ON_STATE, {quoted(STARTED), 0, ON_COMMAND},
           {quoted(SSE_HEAD V2_LIFE("4", RUN, "running") V2(
                "6", "2-0", "messages", "{'event':'message-start','role':'ai','id':'ai-1'}")
                       V2_DELTA("8", "Hel")),
            0, ON_EVENTS},
           {quoted(SSE_HEAD "data: "
                            "{'type':'error','id':null,'error':'resume_gap','message':'x','min_"
                            "available_seq':13}\r\n\r\n"),
            0, "\"since\":3"},
           {quoted(SSE_HEAD V2("13", "8-0", "messages",
                               "{'event':'content-block-finish','index':0,'content':{'type':'text',"
                               "'text':'Hello world'}}") V2_LIFE("17", RUN, "completed")),
            HOLD, "\"since\":12"},
           {running, 0, "/runs/" RUN " HTTP"}, {succeeded, 0, "/runs/" RUN " HTTP"});
    fake_run(f, "hi");
    check_hello(f);
    close_agent(f);
}

/* The last event does not come: the run is asked for. */
static void a_v2_stream_that_stays_silent_is_checked(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    SCRIPT(s, COMMON, {quoted(STARTED), 0, ON_COMMAND},
           {quoted(SSE_HEAD V2_EARLIER V2_RUN), HOLD, ON_EVENTS});
    fake_run(f, "hi");
    check_hello(f);
    close_agent(f);
}

static void a_v2_question_is_answered(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    const char *asks =
        quoted(JSON_HEAD "{'values':{'messages':[" HUMAN
                         "]},'next':['a','b'],'tasks':[{'interrupts':[{'id':'i1','value':'One?'}]},"
                         "{'interrupts':[{'id':'i2','value':'Two?'}]}]}");
    SCRIPT(s1, ON_ASSISTANTS, ON_SCHEMAS, ON_THREAD, ON_CHECK, {asks, 0, "/state HTTP"},
           {quoted(STARTED), 0, ON_COMMAND},
           {quoted(SSE_HEAD V2_LIFE("1", RUN, "running")
                       V2("2", "x", "input.requested", "{'interrupt_id':'i1','payload':'One?'}")
                           V2_LIFE("3", RUN, "interrupted")),
            HOLD, ON_EVENTS});
    fake_run(f, "hi");
    assert_int_equal(f->state, DGM_STATE_INPUT_REQUIRED);
    assert_true(fake_has(&f->events, "i2")); /* the stream ended at the first one */
    const char *list = list_with_turn(f);    /* of the first turn: not found for the second */
    (void)list;
    close_agent(f);
}

/* The next turn of the thread does not read the events of this one again. */
static void the_next_v2_turn_starts_behind_the_last_event(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    SCRIPT(s, COMMON, {quoted(STARTED), 0, ON_COMMAND},
           {quoted(SSE_HEAD V2_ANSWER), HOLD, ON_EVENTS});
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count("\"since\""), 0);
    fake_new_task(f);
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count("\"since\":17"), 1);
    close_agent(f);
}

static void a_server_without_v2_uses_the_runs_api(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent(",'protocol':'v2'");
    SCRIPT(s, COMMON, {NOT_FOUND, 0, ON_COMMAND}, {quoted(RUN_HEAD ANSWER), 0, ON_SEND});
    fake_run(f, "hi");
    check_hello(f);
    fake_new_task(f);
    fake_run(f, "hi");
    check_hello(f);
    assert_int_equal(server_count(ON_COMMAND), 1); /* it is not asked again */
    close_agent(f);
}

DGM_TEST_MAIN(dgm_test(a_lost_stream_is_joined_behind_the_last_id),
              dgm_test(a_stream_that_is_cut_within_a_frame_is_joined),
              dgm_test(a_join_may_repeat_everything),
              dgm_test(a_lost_stream_is_joined_although_its_run_has_ended),
              dgm_test(the_state_completes_what_was_lost),
              dgm_test(a_message_that_may_have_arrived_is_searched_first),
              dgm_test(a_restart_follows_the_same_run),
              dgm_test(an_answer_is_sent_again_after_a_restart),
              dgm_test(a_server_that_does_not_come_back_is_an_error),
              dgm_test(a_stop_leaves_the_task_open), dgm_test(v2_events_are_the_same_answer),
              dgm_test(a_lost_v2_stream_is_repeated_from_the_start_of_the_run),
              dgm_test(a_gap_is_filled), dgm_test(a_v2_stream_that_stays_silent_is_checked),
              dgm_test(a_v2_question_is_answered),
              dgm_test(the_next_v2_turn_starts_behind_the_last_event),
              dgm_test(a_server_without_v2_uses_the_runs_api))
