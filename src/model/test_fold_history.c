/* model/test_fold_history.c - what was said, in order, and nothing twice. */
#include "model/test_fold.h"

static void messages_go_to_the_history(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'message':" SAY("USER", "m1", "one") "}");
    add(&l, "{'kind':'internal:message','taskId':'t','message':" SAY(
                "AGENT", "m2", "two") ",'timestamp':'2026-01-02T03:04:05Z'}");
    add(&l, "{'message':" SAY("USER", "m1", "one") "}"); /* said twice is said twice */
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

static void a_status_message_moves_when_the_next_status_comes(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_SAYS("WORKING", "s1", "thinking"));
    check_task(&l,
               "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','message':" SAY(
                   "AGENT", "s1", "thinking") "}}");
    add(&l, STATUS_SAYS("COMPLETED", "s2", "Done!"));
    check_task(&l,
               "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
                   "AGENT", "s2", "Done!") "},'history':[" SAY("AGENT", "s1", "thinking") "]}");
    end(&l);
}

static void a_question_stands_before_its_answer(void **state)
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
    add(&l, STATUS_SAYS("WORKING", "m", "hi"));
    add(&l, STATUS("WORKING"));
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 1);
    /* the same id with something else to say is another message */
    add(&l, STATUS_SAYS("WORKING", "m", "ho"));
    add(&l, STATUS("WORKING"));
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 2);
    /* a snapshot that has moved it already */
    add(&l, STATUS_SAYS("WORKING", "n", "he"));
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "AGENT", "m", "hi") "," SAY("AGENT", "n", "he") "," SAY("AGENT", "o", "ha") "]}}");
    check_task(
        &l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "AGENT", "m", "hi") "," SAY("AGENT", "m", "ho") "," SAY("AGENT", "n",
                                                                        "he") "," SAY("AGENT", "o",
                                                                                      "ha") "]}");
    /* and one that has lost it: it stands before what is new */
    add(&l, STATUS_SAYS("WORKING", "p", "hu"));
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
    add(&l, STATUS_SAYS("WORKING", "m", "Hello"));
    add(&l, STATUS_SAYS("WORKING", "m", "Hello world"));
    add(&l, STATUS_SAYS("WORKING", "m", "Hello world!"));
    add(&l, STATUS("COMPLETED"));
    check_task(
        &l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'},'history':[" SAY(
                "AGENT", "m", "Hello world!") "]}");
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

/* Progress is shown, not said; words beside it, or in another state, are. */
static void indicators_of_a_working_task_never_enter_the_history(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, SHOW("WORKING", "i1", INDICATOR));
    assert_int_equal(dgm_fold_task(l.fold)->status.message->parts.n, 1); /* while it is shown */
    add(&l, SHOW("WORKING", "i2", INDICATOR "," INDICATOR));
    add(&l, SHOW("WORKING", "said", INDICATOR ",{'text':'half way'}"));
    add(&l, SHOW("WORKING", "other", "{'data':{'type':'table'}}"));
    add(&l, SHOW("WORKING", "i3", INDICATOR));
    add(&l, SHOW("INPUT_REQUIRED", "asked", INDICATOR));
    add(&l, STATUS("COMPLETED"));
    const dgm_messages *h = &dgm_fold_task(l.fold)->history;
    assert_int_equal(h->n, 3);
    check_str(h->at[0].message_id, "said");
    check_str(h->at[1].message_id, "other");
    check_str(h->at[2].message_id, "asked");
    assert_non_null(dgm_fold_message(l.fold, DGM_STR("said")));
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
              dgm_test(a_status_message_moves_when_the_next_status_comes),
              dgm_test(a_question_stands_before_its_answer), dgm_test(no_message_is_moved_twice),
              dgm_test(a_message_that_grows_under_one_id_is_one_message),
              dgm_test_holds(deltas_never_enter_the_history, "R001-08"),
              dgm_test(indicators_of_a_working_task_never_enter_the_history),
              dgm_test(single_facts_can_be_asked_for), dgm_test(a_long_history_is_searched_too),
              dgm_test(internal_events_change_nothing))
