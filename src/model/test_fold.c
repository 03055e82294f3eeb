/* model/test_fold.c - what events add up to: the task, its status, whose metadata is whose. */
#include "model/test_fold.h"

/* ---- the task -------------------------------------------------------------------------------------------- */

static void the_task_event_begins_it(void **state)
{
    struct log l = begin();
    static const char all[] =
        "{'id':'task-123','contextId':'ctx-456','status':{'state':'TASK_STATE_SUBMITTED','message'"
        ":" SAY("AGENT", "s",
                "hm") ",'timestamp':'2025-10-30T10:00:00Z','x':1},'artifacts':[{'artifactId':'a','"
                      "name':'n','description':'d','parts':"
                      "[{'text':'x'},{'raw':'SGk=','filename':'f','mediaType':'m'},{'url':'u'},{'"
                      "data':[1.0,null],'metadata':{'p':-0}}],"
                      "'metadata':{'k':1e400},'extensions':['e1','e2'],'y':[]}],'history':[" SAY(
                          "USER", "m1",
                          "hi") ",{'messageId':'m2','contextId':'ctx-456','taskId':'task-123','"
                                "role':'ROLE_AGENT','parts':[{'text':'ho'}],"
                                "'metadata':{'q':[]},'extensions':['e'],'referenceTaskIds':['r'],'"
                                "z':0}],'metadata':{'a':{'b':[]}},'w':null}";
    char event[2000];
    (void)state;
    assert_null(dgm_fold_task(l.fold));
    snprintf(event, sizeof event, "{'task':%s}", all);
    add(&l, event);
    check_task(&l, all);
    check_silent(&l);
    end(&l);
}

static void another_task_event_refreshes_what_it_names(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l,
        "{'task':{'id':'t','status':{'state':'TASK_STATE_SUBMITTED'},'history':[" SAY(
            "USER", "m1", "hi") "],'artifacts':[{'artifactId':'a','parts':[{'text':'old'}],'"
                                "metadata':{'k':1}},{'artifactId':'b','parts':[{'text':'stays'}]}],"
                                "'metadata':{'x':1,'y':1}}}");
    add(&l,
        "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
            "USER", "m1",
            "hi") "," SAY("AGENT", "m2",
                          "ho") "],'artifacts':[{'artifactId':'a','parts':[{'text':'new'}]},{'"
                                "artifactId':'d','parts':[{'text':'more'}]}],"
                                "'metadata':{'y':2}}}");
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'artifacts':["
        "{'artifactId':'a','parts':[{'text':'new'}]},{'artifactId':'b','parts':[{'text':'stays'}]},"
        "{'artifactId':'d','parts':[{'text':'more'}]}],'history':[" SAY("USER", "m1", "hi") "," SAY(
            "AGENT", "m2", "ho") "],'metadata':{'x':1,'y':2}}");
    end(&l);
}

static void messages_of_one_id_in_the_first_history_all_stay(void **state)
{
    /* Callers use one id for several messages. */
    struct log l = begin();
    (void)state;
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'history':[" SAY(
                "USER", "m", "1") "," SAY("USER", "m", "2") "," SAY("USER", "m", "1") "]}}");
    assert_int_equal(dgm_fold_task(l.fold)->history.n, 3);
    end(&l);
}

static void without_a_task_first_our_agents_are_refused(void **state)
{
    struct log l = begin();
    (void)state;
    refuse(&l, STATUS("WORKING"), "/statusUpdate");
    refuse(&l, CHUNK("a", "x", ""), "/artifactUpdate");
    assert_null(dgm_fold_task(l.fold));
    add(&l, TASK);
    add(&l, STATUS("WORKING"));
    end(&l);
}

static void without_a_task_first_foreign_agents_are_warned(void **state)
{
    struct log l = begin_foreign();
    (void)state;
    add(&l, STATUS("WORKING"));
    check_warned(&l, 1, "/statusUpdate", "first event of a task is the task");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}");
    end(&l);
    l = begin_foreign();
    add(&l, CHUNK("a", "x", ""));
    check_warned(&l, 1, "/artifactUpdate", "first event of a task is the task");
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.n, 1);
    end(&l);
}

static void other_ids_are_faults(void **state)
{
    static const char *const rows[][2] = {
        {"{'statusUpdate':{'taskId':'u','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}",
         "/statusUpdate/taskId"},
        {"{'statusUpdate':{'taskId':'t','contextId':'d','status':{'state':'TASK_STATE_WORKING'}}}",
         "/statusUpdate/contextId"},
        {"{'artifactUpdate':{'taskId':'u','contextId':'c','artifact':{'artifactId':'a','parts':[{'"
         "text':''}]}}}",
         "/artifactUpdate/taskId"},
        {"{'message':{'messageId':'m','taskId':'u','role':'ROLE_AGENT','parts':[{'text':''}]}}",
         "/message/taskId"},
        {"{'task':{'id':'u','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}", "/task/id"},
        {"{'kind':'internal:llm-call','taskId':'u','iteration':1,'timestamp':'2026-01-02T03:04:05Z'"
         "}",
         "/taskId"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct log ours = begin(), theirs = begin_foreign();
        add(&ours, TASK);
        refuse(&ours, rows[i][0], rows[i][1]);
        assert_non_null(strstr(ours.err.msg, "all events of a task carry the same"));
        check_task(&ours, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'}}");
        add(&theirs, TASK);
        add(&theirs, rows[i][0]);
        check_warned(&theirs, 1, rows[i][1], "carry the same");
        check_str(dgm_fold_task(theirs.fold)->id, "t");
        end(&ours);
        end(&theirs);
    }
}

/* ---- status ------------------------------------------------------------------------------------------------ */

static void a_status_update_sets_the_status_and_merges_metadata(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED','timestamp'"
            ":'2026-01-02T03:04:05Z'},"
            "'metadata':{'keep':{'deep':1},'over':{'a':1,'b':2}}}}");
    add(&l, "{'statusUpdate':{" IDS
            ",'status':{'state':'TASK_STATE_WORKING','timestamp':'2026-01-02T03:04:06Z'},"
            "'metadata':{'over':{'c':3},'new':null}}}");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','timestamp':'"
                   "2026-01-02T03:04:06Z'},"
                   "'metadata':{'keep':{'deep':1},'over':{'c':3},'new':null}}");
    add(&l, STATUS_META("FAILED", "{'error':'Connection timeout'}"));
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_FAILED'},"
        "'metadata':{'keep':{'deep':1},'over':{'c':3},'new':null,'error':'Connection timeout'}}");
    end(&l);
}

static const char *const state_names[] = {"UNSPECIFIED",    "SUBMITTED", "WORKING",
                                          "COMPLETED",      "FAILED",    "CANCELED",
                                          "INPUT_REQUIRED", "REJECTED",  "AUTH_REQUIRED"};

static void only_legal_transitions_fold(void **state)
{
    (void)state;
    for (int from = 0; from < DGM_N_STATES; from++) {
        for (int to = 0; to < DGM_N_STATES; to++) {
            struct log ours = begin(), theirs = begin_foreign();
            char first[200], next[200];
            bool legal = dgm_state_may_become((dgm_task_state)from, (dgm_task_state)to);
            snprintf(first, sizeof first,
                     "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_%s'}}}",
                     state_names[from]);
            snprintf(next, sizeof next,
                     "{'statusUpdate':{" IDS
                     ",'status':{'state':'TASK_STATE_%s'},'metadata':{'m':1}}}",
                     state_names[to]);
            add(&ours, first);
            add(&theirs, first);
            add(&theirs, next);
            assert_int_equal(dgm_fold_task(theirs.fold)->status.state, legal ? to : from);
            assert_int_equal(dgm_fold_task(theirs.fold)->metadata != NULL, legal);
            assert_int_equal(dgm_fold_n_warnings(theirs.fold), !legal);
            if (legal) {
                add(&ours, next);
                assert_int_equal(dgm_fold_task(ours.fold)->status.state, to);
            } else {
                refuse(&ours, next, "/statusUpdate/status/state");
                assert_int_equal(dgm_fold_task(ours.fold)->status.state, from);
                /* also the server cannot wake the dead, whoever the agent is */
                assert_int_equal(add_as(&theirs, DGM_BY_SERVER, next), DGM_INVALID_AGENT_RESPONSE);
            }
            end(&ours);
            end(&theirs);
        }
    }
}

static void nothing_follows_the_end(void **state)
{
    static const char *const late[][2] = {
        {CHUNK("a", "late", ""), "/artifactUpdate"},
        {"{'message':" SAY("AGENT", "m", "late") "}", "/message"},
        {"{'kind':'internal:message','taskId':'t','message':" SAY(
             "AGENT", "m", "late") ",'timestamp':'2026-01-02T03:04:05Z'}",
         "/message"},
        {"{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'metadata':{'"
         "late':1}}}",
         "/task/status/state"},
    };
    static const char *const ends[] = {"COMPLETED", "FAILED", "CANCELED", "REJECTED"};
    (void)state;
    for (size_t e = 0; e < 4; e++) {
        struct log ours = begin(), theirs = begin_foreign();
        char last[200], want[200];
        snprintf(last, sizeof last, "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_%s'}}}",
                 ends[e]);
        snprintf(want, sizeof want, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_%s'}}",
                 ends[e]);
        add(&ours, TASK);
        add(&ours, last);
        add(&theirs, TASK);
        add(&theirs, last);
        for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
            refuse(&ours, late[i][0], late[i][1]);
            add(&theirs, late[i][0]);
            check_warned(&theirs, i + 1, late[i][1], "may");
        }
        /* but what changes nothing may come */
        add(&ours,
            "{'kind':'internal:usage','taskId':'t','value':{},'timestamp':'2026-01-02T03:04:05Z'}");
        check_task(&ours, want);
        check_task(&theirs, want);
        end(&ours);
        end(&theirs);
    }
}

static void a_last_snapshot_may_follow_the_end(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, STATUS_SAYS("COMPLETED", "m", "Done!"));
    add(&l,
        "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
            "AGENT", "m", "Done!") "},'artifacts':[{'artifactId':'a','parts':[{'text':'all'}]}]}}");
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED','message':" SAY(
            "AGENT", "m", "Done!") "},'artifacts':[{'artifactId':'a','parts':[{'text':'all'}]}]}");
    check_silent(&l);
    end(&l);
}

/* ---- the server's own metadata --------------------------------------------------------------------------------- */

static void protected_metadata_changes_only_by_the_server(void **state)
{
    struct log l = begin();
    (void)state;
    add_by_server(&l, "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},"
                      "'metadata':{'aion:network':'n1','dragoman:turn':1,'mine':1}}}");
    add(&l,
        STATUS_META("WORKING",
                    "{'aion:network':'evil','aion:new':1,'dragoman:turn':2,'mine':2,'aionx':3}"));
    check_warned(&l, 3, "/statusUpdate/metadata/dragoman:turn", "only the server");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},"
                   "'metadata':{'aion:network':'n1','dragoman:turn':1,'mine':2,'aionx':3}}");
    add(&l, STATUS_META("WORKING", "{'aion:network':'n1'}")); /* an echo is no attempt */
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'metadata':{'aion:network':'"
            "evil'}}}");
    check_warned(&l, 4, "/task/metadata/aion:network", "only the server");
    add_by_server(&l, STATUS_META("WORKING", "{'aion:network':'n2','dragoman:turn':2}"));
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'},"
                   "'metadata':{'aion:network':'n2','dragoman:turn':2,'mine':2,'aionx':3}}");
    end(&l);
    l = begin_foreign(); /* nor does a foreign agent's own task bring any */
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'},'metadata':{'aion:network':'"
            "x','a':1}}}");
    check_task(&l, "{'id':'t','status':{'state':'TASK_STATE_WORKING'},'metadata':{'a':1}}");
    end(&l);
}

DGM_TEST_MAIN(dgm_test(the_task_event_begins_it),
              dgm_test(another_task_event_refreshes_what_it_names),
              dgm_test(messages_of_one_id_in_the_first_history_all_stay),
              dgm_test(without_a_task_first_our_agents_are_refused),
              dgm_test(without_a_task_first_foreign_agents_are_warned),
              dgm_test(other_ids_are_faults),
              dgm_test_holds(a_status_update_sets_the_status_and_merges_metadata, "R002-05"),
              dgm_test_holds(only_legal_transitions_fold, "R004-02"),
              dgm_test_holds(nothing_follows_the_end, "R004-02"),
              dgm_test(a_last_snapshot_may_follow_the_end),
              dgm_test_holds(protected_metadata_changes_only_by_the_server, "R003-12"))
