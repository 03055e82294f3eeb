/* model/test_fold_history.c - the messages of a task, in order, and nothing twice. */
#include "model/test_fold.h"

static void messages_go_to_the_history(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'message':" SAY("USER", "m1", "one") "}");
    add(&l, "{'kind':'internal:message','taskId':'t','message':" SAY(
                "AGENT", "m2", "two") ",'timestamp':'2026-01-02T03:04:05Z'}");
    add(&l, "{'message':" SAY("USER", "m1", "one") "}"); /* sent twice: stored twice */
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'history':[" SAY(
            "USER", "m1", "one") "," SAY("AGENT", "m2", "two") "," SAY("USER", "m1", "one") "]}");
    end(&l);
}

static void a_message_before_the_task_is_not_lost(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, "{'message':" SAY("USER", "m1", "one") "}");
    assert_null(dgm_fold_task(l.fold));
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "USER", "m1", "one") "," SAY("AGENT", "m2", "two") "]}}");
    check_task(&l, "{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                       "USER", "m1", "one") "," SAY("AGENT", "m2", "two") "]}");
    end(&l);
}

#define MARKED(role, id, text, type)                                                               \
    "{'messageId':'" id "','role':'ROLE_" role "','parts':[{'text':'" text                         \
    "'}],'metadata':{'canonical_type':'" type "'}}"
#define STATUS_MARKED(state, id, text, type)                                                       \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state                                \
    "','message':" MARKED("AGENT", id, text, type) "}}}"
#define STATUS_ENDS(id, text) STATUS_MARKED("WORKING", id, text, "TextMessageEndEvent")

static void a_complete_status_message_moves_when_the_next_status_comes(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_ENDS("s1", "One moment."));
    check_task(&l,
               "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','message':" MARKED(
                   "AGENT", "s1", "One moment.", "TextMessageEndEvent") "}}");
    add(&l, STATUS_SAYS("COMPLETED", "s2", "Done!"));
    check_task(&l,
               "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
                   "AGENT", "s2", "Done!") "},'history':[" MARKED("AGENT", "s1", "One moment.",
                                                                  "TextMessageEndEvent") "]}");
    end(&l);
}

/* The stream of document 004, with the progress text that it warns of in front. */
static void progress_is_shown_and_never_enters_the_history(void **state)
{
    static const char *const states[] = {"SUBMITTED", "WORKING", "UNSPECIFIED"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct log l = begin();
        char text[400];
        add(&l, "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_UNSPECIFIED'},"
                "'history':[" SAY("USER", "u", "hi") "]}}");
        snprintf(text, sizeof text, STATUS_SAYS("%s", "p", "Processing your greeting..."),
                 states[i]);
        add(&l, text);
        check_str(dgm_fold_task(l.fold)->status.message->message_id, "p");
        add(&l, STATUS_SAYS("WORKING", "d1", "Hello"));
        add(&l, STATUS_SAYS("WORKING", "d2", " world"));
        add(&l, STATUS_SAYS("COMPLETED", "a", "Hello world!"));
        check_task(
            &l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
                    "AGENT", "a", "Hello world!") "},'history':[" SAY("USER", "u", "hi") "]}");
        end(&l);
    }
}

/* Followed by a question, a message of the caller, a snapshot: the same. */
static void progress_does_not_enter_whatever_follows_it(void **state)
{
    static const char *const followers[] = {
        STATUS("WORKING"),
        STATUS("FAILED"),
        STATUS_SAYS("INPUT_REQUIRED", "q", "where?"),
        "{'message':" SAY("USER", "u", "more") "}",
        "{'kind':'internal:message','taskId':'t','message':" SAY(
            "AGENT", "m", "x") ",'timestamp':'2026-01-02T03:04:05Z'}",
        "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}}}",
        "{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED'},'history':[" SAY(
            "AGENT", "p", "Processing...") "," SAY("AGENT", "d", "Hel") "]}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof followers / sizeof *followers; i++) {
        struct log l = begin_foreign();
        add(&l, TASK);
        add(&l, STATUS_SAYS("WORKING", "d", "Hel"));
        add(&l, STATUS_SAYS("WORKING", "p", "Processing..."));
        add(&l, followers[i]);
        assert_null(dgm_fold_message(l.fold, DGM_STR("p")));
        assert_null(dgm_fold_message(l.fold, DGM_STR("d")));
        end(&l);
    }
}

/* Calls and results of a task that works are complete messages; text next to them is progress. */
static void calls_enter_without_the_progress_next_to_them(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'c','role':'ROLE_AGENT','parts':[{'text':'Looking it up...'},{'data':{'tool_calls':[{"
            "'call_id':'1','name':'f','arguments':{}}]}}]}}}}");
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'r','role':'ROLE_AGENT','parts':[{'data':{'tool_results':[{'call_id':'1','output':'x'"
            "}]}},{'data':{'type':'status-indicator','text':'done'}}]}}}}");
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'e','role':'ROLE_AGENT','parts':[{'text':'Sunny.'},{'data':{'tool_calls':[{"
            "'call_id':'2','name':'f','arguments':{}}]}}],"
            "'metadata':{'canonical_type':'TextMessageEndEvent'}}}}}");
    add(&l, STATUS("COMPLETED"));
    const dgm_messages *h = &dgm_fold_task(l.fold)->history;
    assert_int_equal(h->n, 3);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(h->at[i].parts.n, 1);
        assert_int_equal(h->at[i].parts.at[0].kind, DGM_PART_DATA);
    }
    assert_int_equal(h->at[2].parts.n, 2); /* marked as content: all of it */
    end(&l);
}

/* The reason of a failure stays in the status, also when a snapshot without it follows. */
static void the_last_message_of_a_task_stays_in_its_status(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_SAYS("FAILED", "f", "out of memory"));
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_FAILED'}}}");
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 0);
    check_str(dgm_fold_task(l.fold)->status.message->message_id, "f");
    end(&l);
}

static void a_question_precedes_its_answer(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'history':"
            "[" SAY("USER", "u1", "weather?") "]}}");
    add(&l, STATUS_SAYS("INPUT_REQUIRED", "q", "where?"));
    add(&l, "{'message':" SAY("USER", "u2", "Oakland") "}");
    /* now, before any status: the run that answers begins here */
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_INPUT_REQUIRED'},'history':[" SAY(
            "USER", "u1", "weather?") "," SAY("AGENT", "q", "where?") "," SAY("USER", "u2",
                                                                              "Oakland") "]}");
    add(&l, STATUS("WORKING"));
    add(&l, STATUS_SAYS("COMPLETED", "a", "sunny"));
    check_task(
        &l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
                "AGENT", "a",
                "sunny") "},'history':[" SAY("USER", "u1",
                                             "weather?") "," SAY("AGENT", "q",
                                                                 "where?") "," SAY("USER", "u2",
                                                                                   "Oakland") "]}");
    end(&l);
}

static void no_message_is_moved_twice(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    /* the agent has put it into the history itself */
    add(&l, "{'kind':'internal:message','taskId':'t','message':" SAY(
                "AGENT", "m", "hi") ",'timestamp':'2026-01-02T03:04:05Z'}");
    add(&l, STATUS_ENDS("m", "hi"));
    add(&l, STATUS("WORKING"));
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 1);
    /* the same id with something else to say is another message */
    add(&l, STATUS_ENDS("m", "ho"));
    add(&l, STATUS("WORKING"));
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 2);
    /* a snapshot that has moved it already */
    add(&l, STATUS_ENDS("n", "he"));
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "AGENT", "m", "hi") "," SAY("AGENT", "n", "he") "," SAY("AGENT", "o", "ha") "]}}");
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
            "AGENT", "m",
            "hi") "," MARKED("AGENT", "m", "ho",
                             "TextMessageEndEvent") "," SAY("AGENT", "n",
                                                            "he") "," SAY("AGENT", "o", "ha") "]"
                                                                                              "}");
    /* and one that has lost it: it is placed before the new messages */
    add(&l, STATUS_ENDS("p", "hu"));
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "AGENT", "q", "hm") "]}}");
    const dgm_messages *h = &dgm_fold_task(l.fold)->history;
    assert_int_equal(h->n, 6);
    check_str(h->at[4].message_id, "p");
    check_str(h->at[5].message_id, "q");
    end(&l);
}

static void a_message_that_grows_under_one_id_is_one_message(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_ENDS("m", "Hello"));
    add(&l, STATUS_ENDS("m", "Hello world"));
    add(&l, STATUS_ENDS("m", "Hello world!"));
    add(&l, STATUS("COMPLETED"));
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'},'history':[" MARKED(
            "AGENT", "m", "Hello world!", "TextMessageEndEvent") "]}");
    end(&l);
}

static void deltas_never_enter_the_history(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'d1','role':'ROLE_AGENT','parts':[{'text':'Hel'}],"
            "'metadata':{'canonical_type':'TextMessageChunkEvent'}}}}}");
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'d2','role':'ROLE_AGENT','parts':[{'data':{}}],"
            "'metadata':{'canonical_type':'ToolCallArgsEvent'}}}}}");
    add(&l, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','message':{'messageId'"
            ":'w','role':'ROLE_AGENT','parts':[{'text':'Hello'}],"
            "'metadata':{'canonical_type':'TextMessageEndEvent'}}}}}");
    add(&l, STATUS("COMPLETED"));
    const dgm_messages *h = &dgm_fold_task(l.fold)->history;
    assert_int_equal(h->n, 1);
    check_str(h->at[0].message_id, "w");
    end(&l);
}

#define SHOW(state, id, parts)                                                                     \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state                                \
    "','message':{'messageId':'" id "','role':'ROLE_AGENT','parts':[" parts "]}}}}"
#define INDICATOR "{'data':{'type':'status-indicator','text':'Thinking','displayAs':'loading'}}"

/* Neither do other parts that a working status shows; in another state they do. */
static void indicators_of_a_working_task_never_enter_the_history(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, SHOW("WORKING", "i1", INDICATOR));
    assert_int_equal(dgm_fold_task(l.fold)->status.message->parts.n, 1); /* while it is shown */
    add(&l, SHOW("WORKING", "i2", INDICATOR "," INDICATOR));
    add(&l, SHOW("WORKING", "beside", INDICATOR ",{'text':'half way'}"));
    add(&l, SHOW("WORKING", "other", "{'data':{'type':'table'}}"));
    add(&l, SHOW("WORKING", "i3", INDICATOR));
    add(&l, SHOW("INPUT_REQUIRED", "asked", INDICATOR));
    add(&l, STATUS("COMPLETED"));
    const dgm_messages *h = &dgm_fold_task(l.fold)->history;
    assert_int_equal(h->n, 1);
    check_str(h->at[0].message_id, "asked");
    assert_null(dgm_fold_message(l.fold, DGM_STR("i1")));
    assert_int_equal(dgm_fold_state(l.fold), DGM_STATE_COMPLETED);
    end(&l);
}

static void single_facts_can_be_asked_for(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    static const char *const ids[] = {"a", DGM_STREAM_DELTA_ID}; /* kept, and not */
    for (size_t i = 0; i < 2; i++) {
        char text[300];
        dgm_str id = dgm_str_from(ids[i]);
        assert_int_equal(dgm_fold_artifact_of(l.fold, id), DGM_ARTIFACT_NEW);
        snprintf(text, sizeof text,
                 "{'artifactUpdate':{" IDS
                 ",'artifact':{'artifactId':'%s','parts':[{'text':'x'}]}}}",
                 ids[i]);
        add(&l, text);
        assert_int_equal(dgm_fold_artifact_of(l.fold, id), DGM_ARTIFACT_OPEN);
        snprintf(text, sizeof text,
                 "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'%s','parts':[{'text':'x'}]},"
                 "'append':true,'lastChunk':true}}",
                 ids[i]);
        add(&l, text);
        assert_int_equal(dgm_fold_artifact_of(l.fold, id), DGM_ARTIFACT_SEALED);
    }
    end(&l);
}

/* Few are looked at one by one, many are indexed: the same is found. */
static void a_long_history_is_searched_too(void **state)
{
    enum { N = 30 };
    struct log l = begin();
    char event[400], id[20];
    (void)state;
    add(&l, TASK);
    for (int i = 0; i < N; i++) {
        snprintf(event, sizeof event, "{'message':" SAY("USER", "m%d", "%d") "}", i % (N - 1), i);
        add(&l, event);
        for (int k = 0; k <= i; k++) {
            snprintf(id, sizeof id, "m%d", k);
            const dgm_message *m = dgm_fold_message(l.fold, dgm_str_from(id));
            if (k == N - 1) /* the first id came again */
                assert_null(m);
            else
                assert_int_equal(atoi(m->parts.at[0].content.p), i == N - 1 && k == 0 ? i : k);
        }
    }
    assert_int_equal(dgm_fold_task(l.fold)->history.n, N);
    snprintf(event, sizeof event,
             "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'history'"
             ":[%s,%s]}}",
             SAY("USER", "m7", "7"), SAY("USER", "new", "x"));
    add_by_server(&l, event);
    assert_int_equal(dgm_fold_task(l.fold)->history.n, N + 1); /* one of them was there */
    end(&l);
}

static void internal_events_change_nothing(void **state)
{
    static const char *const events[] = {
        "{'kind':'internal:llm-call','taskId':'t','iteration':1,'timestamp':'2026-01-02T03:04:05Z'"
        "}",
        "{'kind':'internal:tool-start','taskId':'t','toolName':'n','toolCallId':'i','arguments':{},"
        "'timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:tool-complete','taskId':'t','toolCallId':'i','success':true,'result':1,'"
        "timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:checkpoint','taskId':'t','iteration':1,'timestamp':'2026-01-02T03:04:"
        "05Z'}",
        "{'kind':'internal:reasoning','taskId':'t','text':'x','timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:state','taskId':'t','value':{},'timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:step','taskId':'t','name':'x','timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:usage','taskId':'t','value':{},'timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:custom','taskId':'t','name':'x','timestamp':'2026-01-02T03:04:05Z'}",
    };
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_SAYS("WORKING", "s", "hm"));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        add(&l, events[i]);
    check_task(&l,
               "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','message':" SAY(
                   "AGENT", "s", "hm") "}}");
    check_silent(&l);
    end(&l);
}

DGM_TEST_MAIN(dgm_test(messages_go_to_the_history), dgm_test(a_message_before_the_task_is_not_lost),
              dgm_test(a_complete_status_message_moves_when_the_next_status_comes),
              dgm_test_holds(progress_is_shown_and_never_enters_the_history, "R001-08 R004-25"),
              dgm_test_holds(progress_does_not_enter_whatever_follows_it, "R004-25"),
              dgm_test(calls_enter_without_the_progress_next_to_them),
              dgm_test(the_last_message_of_a_task_stays_in_its_status),
              dgm_test(a_question_precedes_its_answer), dgm_test(no_message_is_moved_twice),
              dgm_test(a_message_that_grows_under_one_id_is_one_message),
              dgm_test_holds(deltas_never_enter_the_history, "R001-08"),
              dgm_test(indicators_of_a_working_task_never_enter_the_history),
              dgm_test(single_facts_can_be_asked_for), dgm_test(a_long_history_is_searched_too),
              dgm_test(internal_events_change_nothing))
