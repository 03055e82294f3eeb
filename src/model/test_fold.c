/* test_fold.c - what events add up to. JSON stands here with ' for ". */
#include "base/limits.h"
#include "model/fold.h"
#include "model/form.h"
#include "support/check.h"

/* ---- helpers -------------------------------------------------------------------------------------------- */

struct log {
    dgm_arena *scratch; /* reset after every event: what the fold keeps must be its own */
    dgm_fold *fold;
    dgm_err err;
};

static struct log begin_with(dgm_fold_options options)
{
    return (struct log){.scratch = dgm_arena_new(), .fold = dgm_fold_new(options)};
}

static struct log begin(void)
{
    return begin_with((dgm_fold_options){0});
}

static struct log begin_foreign(void)
{
    return begin_with((dgm_fold_options){.foreign = true});
}

static void end(struct log *l)
{
    dgm_fold_free(l->fold);
    dgm_arena_free(l->scratch);
}

static dgm_code add_as(struct log *l, dgm_author author, const char *quoted)
{
    dgm_event event;
    dgm_reader r = {.arena = l->scratch, .format = dgm_form_name, .err = &l->err};
    dgm_str text = dgm_arena_dup(l->scratch, dgm_str_from(quoted));
    for (char *p = (char *)(uintptr_t)text.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    check_ok(dgm_form_read_event(&r, dgm_json_made(l->scratch, text), NULL, &event), l->err);
    dgm_code rc = dgm_fold_add(l->fold, &event, author, &l->err);
    dgm_arena_reset(l->scratch);
    return rc;
}

#define add(l, text) check_ok(add_as((l), DGM_BY_AGENT, (text)), (l)->err)
#define add_by_server(l, text) check_ok(add_as((l), DGM_BY_SERVER, (text)), (l)->err)
#define refuse(l, text, at)                                                                        \
    check_fails(add_as((l), DGM_BY_AGENT, (text)), DGM_INVALID_AGENT_RESPONSE, (l)->err, (at))

static dgm_str task_text(struct log *l)
{
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = dgm_form_name};
    dgm_buf_init(&b, SIZE_MAX);
    assert_non_null(dgm_fold_task(l->fold));
    dgm_shape_write(&w, &dgm_form_task, dgm_fold_task(l->fold));
    dgm_str text = dgm_arena_dup(l->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void check_task_(struct log *l, const char *want, const char *file, int line)
{
    dgm_str got = task_text(l), quoted = dgm_arena_dup(l->scratch, got);
    for (size_t i = 0; i < quoted.n; i++)
        ((char *)(uintptr_t)quoted.p)[i] = (char)(quoted.p[i] == '"' ? '\'' : quoted.p[i]);
    check_bytes_(quoted.p, quoted.n, want, strlen(want), file, line);
}

#define check_task(l, want) check_task_((l), (want), __FILE__, __LINE__)

static void check_warned_(struct log *l, size_t n, const char *at, const char *says,
                          const char *file, int line)
{
    const dgm_err *w = dgm_fold_warning(l->fold);
    if (dgm_fold_n_warnings(l->fold) != n || strcmp(w->at, at) != 0 || !strstr(w->msg, says)) {
        print_error("%zu warnings, the last at \"%s\": %s; wanted %zu, \"%s\": %s\n",
                    dgm_fold_n_warnings(l->fold), w->at, w->msg, n, at, says);
        _fail(file, line);
    }
}

#define check_warned(l, n, at, says) check_warned_((l), (n), (at), (says), __FILE__, __LINE__)
#define check_silent(l) check_warned_((l), 0, "", "", __FILE__, __LINE__)

/* The text of all text parts of an artifact. */
static dgm_str artifact_text(struct log *l, size_t i)
{
    const dgm_artifact *x = &dgm_fold_task(l->fold)->artifacts.at[i];
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t k = 0; k < x->parts.n; k++)
        dgm_buf_add_str(&b, x->parts.at[k].content);
    dgm_str text = dgm_arena_dup(l->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

#define IDS "'taskId':'t','contextId':'c'"
#define TASK "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'}}}"
#define STATUS(state) "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state "'}}}"
#define SAY(role, id, text)                                                                        \
    "{'messageId':'" id "','role':'ROLE_" role "','parts':[{'text':'" text "'}]}"
#define STATUS_SAYS(state, id, text)                                                               \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state                                \
    "','message':" SAY("AGENT", id, text) "}}}"
#define STATUS_META(state, meta)                                                                   \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state "'},'metadata':" meta "}}"
#define CHUNK(id, text, flags)                                                                     \
    "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'" id "','parts':[{'text':'" text         \
    "'}]}" flags "}}"
#define APPEND ",'append':true"
#define LAST ",'lastChunk':true"

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

/* ---- history ------------------------------------------------------------------------------------------------- */

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

/* ---- artifacts ----------------------------------------------------------------------------------------------- */

static void the_three_chunks_of_document_002_fold(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK("art-1", "Based on ", ",'append':false,'lastChunk':false"));
    add(&l, CHUNK("art-1", "the analysis", APPEND ",'lastChunk':false"));
    add(&l, CHUNK("art-1", ", sales increased 15%", APPEND LAST));
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.n, 1);
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.at[0].parts.n,
                     3); /* parts are never joined */
    dgm_str text = artifact_text(&l, 0);
    check_str(text, "Based on the analysis, sales increased 15%");
    check_silent(&l);
    end(&l);
}

static void append_true_adds_and_joins(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'artifactUpdate':{" IDS
            ",'artifact':{'artifactId':'a','name':'n','description':'d','parts':[{'text':'1'}],"
            "'metadata':{'x':1,'y':1},'extensions':['e1','e2'],'u':1}}}");
    add(&l, "{'artifactUpdate':{" IDS
            ",'artifact':{'artifactId':'a','name':'','parts':[{'data':2},{'text':'3'}],"
            "'metadata':{'y':2,'z':2},'extensions':['e2','e3','e3']},'append':true,'metadata':{'of "
            "the event':1}}}");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
                   ":[{'artifactId':'a','name':'n','description':'d',"
                   "'parts':[{'text':'1'},{'data':2},{'text':'3'}],'metadata':{'x':1,'y':2,'z':2},'"
                   "extensions':['e1','e2','e3'],'u':1}]}");
    add(&l, "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'N','description':'D','"
            "parts':[],'v':2},'append':true}}");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
                   ":[{'artifactId':'a','name':'N','description':'D',"
                   "'parts':[{'text':'1'},{'data':2},{'text':'3'}],'metadata':{'x':1,'y':2,'z':2},'"
                   "extensions':['e1','e2','e3'],'v':2}]}");
    check_silent(&l);
    end(&l);
}

static void append_false_replaces_entirely_in_its_place(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'n','description':'d','"
            "parts':[{'text':'1'},{'text':'2'}],"
            "'metadata':{'x':1},'extensions':['e'],'u':1}}}");
    add(&l, CHUNK("b", "other", ""));
    add(&l, CHUNK("a", "new", ""));
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
                   ":[{'artifactId':'a','parts':[{'text':'new'}]},"
                   "{'artifactId':'b','parts':[{'text':'other'}]}]}");
    /* what was replaced is gone, not hidden */
    add(&l, "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','parts':[{'text':'!'}],'"
            "metadata':{'y':1},'extensions':['e']},'append':true}}");
    check_task(
        &l,
        "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts':[{'"
        "artifactId':'a','parts':[{'text':'new'},{'text':'!'}],"
        "'metadata':{'y':1},'extensions':['e']},{'artifactId':'b','parts':[{'text':'other'}]}]}");
    check_silent(&l);
    end(&l);
}

static void appending_to_an_unknown_artifact(void **state)
{
    struct log ours = begin(), theirs = begin_foreign();
    (void)state;
    add(&ours, TASK);
    refuse(&ours, CHUNK("a", "x", APPEND), "/artifactUpdate/artifact/artifactId");
    check_task(&ours, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'}}");
    add(&theirs, TASK);
    add(&theirs, CHUNK("a", "x", APPEND));
    check_warned(&theirs, 1, "/artifactUpdate/artifact/artifactId",
                 "appends to an artifact that is not there");
    add(&theirs, CHUNK("a", "y", APPEND));
    dgm_str text = artifact_text(&theirs, 0);
    check_str(text, "xy");
    assert_int_equal(dgm_fold_n_warnings(theirs.fold), 1);
    end(&ours);
    end(&theirs);
}

static void updates_after_the_last_chunk_are_warned_of(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK("a", "x", LAST));
    check_silent(&l);
    add(&l, CHUNK("a", "y", APPEND));
    check_warned(&l, 1, "/artifactUpdate/artifact/artifactId", "after the artifact's last chunk");
    add(&l, CHUNK("a", "z", APPEND LAST)); /* it was open again */
    assert_int_equal(dgm_fold_n_warnings(l.fold), 1);
    add(&l, CHUNK("a", "0", ""));
    assert_int_equal(dgm_fold_n_warnings(l.fold), 2);
    dgm_str text = artifact_text(&l, 0);
    check_str(text, "0");
    end(&l);
}

static void an_update_without_parts_does_not_wipe_out(void **state)
{
    /* Some agents close an artifact by an empty chunk and leave append out. */
    struct log l = begin_foreign();
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK("a", "x", ""));
    add(&l,
        "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','parts':[]},'lastChunk':true}}");
    check_warned(&l, 1, "/artifactUpdate/artifact/parts", "taken as an addition");
    dgm_str text = artifact_text(&l, 0);
    check_str(text, "x");
    add(&l, CHUNK("a", "y", APPEND));
    check_warned(&l, 2, "/artifactUpdate/artifact/artifactId", "last chunk");
    end(&l);
}

static void every_member_of_an_artifact_survives(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l,
        "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'n','description':'d','"
        "parts':[{'text':'x','metadata':{'m':1}},"
        "{'raw':'SGk=','metadata':{},'filename':'f','mediaType':'text/plain'},{'url':'http://"
        "u','filename':'g'},{'data':{'k':[1.0,-0,1e400]}},"
        "{'text':'','w':1}],'metadata':{'a':null,'b':{'c':1.50}},'extensions':['https://e']}}}");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
                   ":[{'artifactId':'a','name':'n','description':'d','parts':["
                   "{'text':'x','metadata':{'m':1}},{'raw':'SGk=','metadata':{},'filename':'f','"
                   "mediaType':'text/plain'},{'url':'http://u','filename':'g'},"
                   "{'data':{'k':[1.0,-0,1e400]}},{'text':'','w':1}],'metadata':{'a':null,'b':{'c':"
                   "1.50}},'extensions':['https://e']}]}");
    end(&l);
}

static void the_stream_delta_artifact_is_transitory(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    refuse(&l, CHUNK(DGM_STREAM_DELTA_ID, "x", APPEND), "/artifactUpdate/artifact/artifactId");
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "x", ""));
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "y", APPEND));
    add(&l, CHUNK("a", "kept", ""));
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "", APPEND LAST));
    check_silent(&l);
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "z", APPEND));
    check_warned(&l, 1, "/artifactUpdate/artifact/artifactId", "last chunk");
    add(&l, "{'task':{'id':'t','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts':[{'artifactId'"
            ":'" DGM_STREAM_DELTA_ID "','parts':[{'text':'xyz'}]}]}}");
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
                   ":[{'artifactId':'a','parts':[{'text':'kept'}]}]}");
    end(&l);
}

static void the_stream_delta_artifact_stays_on_request(void **state)
{
    struct log l = begin_with((dgm_fold_options){.keep_transitory = true});
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "x", ""));
    add(&l, CHUNK(DGM_STREAM_DELTA_ID, "y", APPEND LAST));
    dgm_str text = artifact_text(&l, 0);
    check_str(text, "xy");
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

/* ---- what it costs ------------------------------------------------------------------------------------------------ */

static void add_chunk(struct log *l, const char *artifact, size_t i, bool append)
{
    char text[64];
    snprintf(text, sizeof text, "word %zu ", i);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    dgm_artifact_update u = {
        .task_id = DGM_STR("t"),
        .context_id = DGM_STR("c"),
        .artifact = {.artifact_id = dgm_str_from(artifact), .parts = {&part, 1}},
        .append = append ? DGM_TRUE : DGM_FALSE};
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    check_ok(dgm_fold_add(l->fold, &event, DGM_BY_AGENT, &l->err), l->err);
}

static size_t cost_of_chunks(size_t n, bool look)
{
    struct log l = begin();
    add(&l, TASK);
    for (size_t i = 0; i < n; i++) {
        add_chunk(&l, "a", i, i > 0);
        if (look)
            assert_non_null(dgm_fold_task(l.fold));
    }
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.at[0].parts.n, n);
    dgm_fold_cost cost = dgm_fold_cost_of(l.fold);
    assert_true(cost.moved <= 2 * n * sizeof(dgm_part)); /* doubling: at most twice its length */
    end(&l);
    return cost.copied + cost.moved;
}

static void ten_times_the_chunks_cost_ten_times(void **state)
{
    (void)state;
    assert_true(cost_of_chunks(10000, false) <= 11 * cost_of_chunks(1000, false));
    assert_true(cost_of_chunks(10000, true) <=
                11 * cost_of_chunks(1000, true)); /* looking is free */
}

static size_t cost_of_artifacts(size_t n)
{
    struct log l = begin();
    char id[32];
    add(&l, TASK);
    for (size_t i = 0; i < 10 * n; i++) { /* ten chunks each, in turns */
        snprintf(id, sizeof id, "a%zu", i % n);
        add_chunk(&l, id, i, i >= n);
    }
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.n, n);
    dgm_fold_cost cost = dgm_fold_cost_of(l.fold);
    end(&l);
    return cost.copied + cost.moved;
}

static size_t cost_of_metadata(size_t n)
{
    /* as many keys as statuses, and one that changes each time */
    struct log l = begin();
    char text[200];
    add(&l, TASK);
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, STATUS_META("WORKING", "{'k%zu':1,'progress':%zu}"), i, i);
        add(&l, text);
    }
    assert_int_equal(yyjson_obj_size((yyjson_val *)(uintptr_t)dgm_fold_task(l.fold)->metadata),
                     n + 1);
    dgm_fold_cost cost = dgm_fold_cost_of(l.fold);
    end(&l);
    return cost.copied + cost.moved;
}

static void many_artifacts_and_much_metadata_cost_the_same_each(void **state)
{
    (void)state;
    assert_true(cost_of_artifacts(1000) <= 12 * cost_of_artifacts(100));
    assert_true(cost_of_metadata(5000) <= 12 * cost_of_metadata(500));
}

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

static void memory_follows_the_task_not_the_log(void **state)
{
    (void)state;
#ifdef HAVE_ASAN
    size_t before = __sanitizer_get_current_allocated_bytes(), peak = 0;
    struct log l = begin();
    char text[600];
    add(&l, TASK);
    for (int i = 0; i < 20000; i++) {
        /* replaced each time: an artifact, the status and its message, metadata, unknown members */
        snprintf(text, sizeof text,
                 "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'n%d','parts':[{'"
                 "text':'a text of some length, number %d'}],"
                 "'metadata':{'n':%d},'extensions':['e%d'],'x':{'y':%d}}}}",
                 i, i, i, i, i);
        add(&l, text);
        snprintf(text, sizeof text,
                 "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_WORKING','timestamp':'"
                 "2026-01-02T03:04:05.%03dZ','message':"
                 "{'messageId':'m','role':'ROLE_AGENT','parts':[{'text':'%d "
                 "percent'}]},'z':%d},'metadata':{'progress':%d}}}",
                 i % 1000, i, i, i);
        add(&l, text);
        snprintf(text, sizeof text,
                 "{'artifactUpdate':{" IDS
                 ",'artifact':{'artifactId':'a','name':'m%d','description':'%d','parts':[],'"
                 "metadata':{'n':'%d'},'x':%d},'append':true}}",
                 i, i, i, i);
        add(&l, text);
        if (i % 100 == 0) {
            assert_non_null(dgm_fold_task(l.fold));
            size_t now = __sanitizer_get_current_allocated_bytes() - before;
            peak = now > peak ? now : peak;
        }
    }
    assert_true(peak < (size_t)1 << 20);
    check_task(&l, "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','message':{'"
                   "messageId':'m','role':'ROLE_AGENT','parts':[{'text':'19999 percent'}]},"
                   "'timestamp':'2026-01-02T03:04:05.999Z','z':19999},'artifacts':[{'artifactId':'"
                   "a','name':'m19999','description':'19999',"
                   "'parts':[{'text':'a text of some length, number "
                   "19999'}],'metadata':{'n':'19999'},'extensions':['e19999'],'x':19999}],"
                   "'metadata':{'progress':19999}}");
    end(&l);
    assert_int_equal(__sanitizer_get_current_allocated_bytes(), before);
#else
    skip();
#endif
}

static void tidying_up_changes_nothing(void **state)
{
    struct log l = begin();
    static const char history[] =
        "'history':[" SAY("USER", "m1", "hi") "," SAY("AGENT", "m2", "ho") "]";
    char text[1000];
    (void)state;
    snprintf(
        text, sizeof text,
        "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING','message':" SAY(
            "AGENT", "s",
            "hm") "},'artifacts':[{'artifactId':'a','name':'n','description':'d','parts':[{'text':'"
                  "x'}],'metadata':{'k':1},'extensions':['e'],'u':1},"
                  "{'artifactId':'b','parts':[{'text':'0'}]}],%s,'metadata':{'x':[1],'y':2},'w':{'"
                  "v':1}}}",
        history);
    add(&l, text);
    dgm_str before = task_text(&l);
    char *kept = strdup(before.p);
    size_t moved = dgm_fold_cost_of(l.fold).moved;
    for (size_t i = 0; i < 20000; i++)
        add_chunk(&l, "b", i, false);
    add(&l, CHUNK("b", "0", ""));
    assert_true(dgm_fold_cost_of(l.fold).moved > moved + 1000); /* it did tidy up */
    dgm_str after = task_text(&l);
    check_str(after, kept);
    /* and what is looked up by id or key is still found */
    snprintf(text, sizeof text,
             "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING','message':" SAY(
                 "AGENT", "s", "hm") "},%s,'metadata':{'x':[1]}}}",
             history);
    add(&l, text);
    add(&l, "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','parts':[],'metadata':{'k':1},"
            "'extensions':['e']},'append':true}}");
    dgm_str again = task_text(&l);
    check_str(again, kept);
    free(kept);
    end(&l);
}

/* ---- limits -------------------------------------------------------------------------------------------------------- */

static void list_items_is_the_limit_of_every_list(void **state)
{
    struct log l = begin_foreign(); /* a limit is one for everybody */
    char id[32];
    (void)state;
    add(&l, TASK);
    for (size_t i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        add_chunk(&l, "a", i, i > 0);
    check_fails(add_as(&l, DGM_BY_AGENT, CHUNK("a", "x", APPEND)), DGM_TOO_LARGE, l.err,
                "/artifactUpdate/artifact/parts");
    assert_non_null(strstr(l.err.msg, "list_items of 100000"));
    check_silent(&l);
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.at[0].parts.n, DGM_MAX_LIST_ITEMS);
    add(&l, CHUNK("a", "x", "")); /* a replacement is small again */
    for (size_t i = 1; i < DGM_MAX_LIST_ITEMS; i++) {
        snprintf(id, sizeof id, "a%zu", i);
        add_chunk(&l, id, i, false);
    }
    check_fails(add_as(&l, DGM_BY_AGENT, CHUNK("b", "x", "")), DGM_TOO_LARGE, l.err,
                "/artifactUpdate/artifact");
    add(&l, CHUNK("a1", "x", APPEND));
    end(&l);

    l = begin();
    add(&l, TASK);
    dgm_part part = {.kind = DGM_PART_TEXT};
    dgm_message m = {.message_id = DGM_STR("m"), .role = DGM_ROLE_USER, .parts = {&part, 1}};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &m};
    for (size_t i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        check_ok(dgm_fold_add(l.fold, &event, DGM_BY_AGENT, &l.err), l.err);
    check_fails(dgm_fold_add(l.fold, &event, DGM_BY_AGENT, &l.err), DGM_TOO_LARGE, l.err,
                "/message");
    add(&l, STATUS_SAYS("WORKING", "s", "x")); /* fits, but cannot move any more */
    check_fails(add_as(&l, DGM_BY_AGENT, STATUS("WORKING")), DGM_TOO_LARGE, l.err, "/statusUpdate");
    end(&l);
}

static void extensions_keep_the_limit_too(void **state)
{
    struct log l = begin();
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    add(&l, TASK);
    dgm_str *names = dgm_new_n(a, dgm_str, DGM_MAX_LIST_ITEMS);
    for (size_t i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        names[i] = dgm_arena_printf(a, "e%zu", i);
    dgm_part part = {.kind = DGM_PART_TEXT};
    dgm_artifact_update u = {.task_id = DGM_STR("t"),
                             .artifact = {.artifact_id = DGM_STR("a"),
                                          .parts = {&part, 1},
                                          .extensions = {names, DGM_MAX_LIST_ITEMS}}};
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    check_ok(dgm_fold_add(l.fold, &event, DGM_BY_AGENT, &l.err), l.err);
    u.append = DGM_TRUE;
    u.artifact.extensions.n = 1;
    check_fails(dgm_fold_add(l.fold, &event, DGM_BY_AGENT, &l.err), DGM_TOO_LARGE, l.err,
                "/artifactUpdate/artifact/extensions");
    end(&l);
}

/* ---- against a naive fold, with random events ------------------------------------------------------------------------ */

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

struct naive {
    struct {
        char text[24000], name[20];
        int meta[4]; /* values of k0..k3; 0: not there */
        bool there;
    } artifacts[4];
    int meta[4];
};

static void check_naive(struct log *l, const struct naive *n)
{
    const dgm_task *t = dgm_fold_task(l->fold);
    size_t there = 0;
    for (int i = 0; i < 4; i++)
        there += n->artifacts[i].there;
    assert_int_equal(t->artifacts.n, there);
    for (size_t i = 0; i < t->artifacts.n; i++) {
        int k = t->artifacts.at[i].artifact_id.p[1] - '0';
        dgm_str text = artifact_text(l, i);
        check_str(text, n->artifacts[k].text);
        check_str(t->artifacts.at[i].name, n->artifacts[k].name);
    }
    for (size_t i = 0; i <= t->artifacts.n; i++) {
        bool task = i == t->artifacts.n;
        const int *want =
            task ? n->meta : n->artifacts[t->artifacts.at[i].artifact_id.p[1] - '0'].meta;
        const dgm_json *meta = task ? t->metadata : t->artifacts.at[i].metadata;
        for (int k = 0; k < 4; k++) {
            int64_t got = 0;
            char key[] = {'k', (char)('0' + k)};
            dgm_json_int(dgm_json_get(meta, (dgm_str){key, 2}), &got);
            assert_int_equal(got, want[k]);
        }
    }
}

static void random_events_fold_as_a_naive_fold_does(void **state)
{
    uint64_t seed = 4711;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct log l = begin_foreign();
        static struct naive n;
        memset(&n, 0, sizeof n);
        add(&l, TASK);
        for (int step = 0; step < 150; step++) {
            char event[400], text[200];
            int k = (int)(next(&seed) % 4), m = (int)(next(&seed) % 4), value = step + 1;
            bool append = next(&seed) % 4 != 0;
            size_t len = next(&seed) % 100 == 0 ? 150 : next(&seed) % 10;
            memset(text, 'a' + step % 26, len);
            text[len] = 0;
            if (next(&seed) % 5 == 0) {
                snprintf(event, sizeof event, STATUS_META("WORKING", "{'k%d':%d}"), m, value);
                n.meta[m] = value;
            } else {
                bool meta = next(&seed) % 2, name = next(&seed) % 8 == 0;
                char metadata[40] = "", naming[40] = "";
                if (meta)
                    snprintf(metadata, sizeof metadata, ",'metadata':{'k%d':%d}", m, value);
                if (name)
                    snprintf(naming, sizeof naming, ",'name':'n%d'", step);
                snprintf(
                    event, sizeof event,
                    "{'artifactUpdate':{" IDS
                    ",'artifact':{'artifactId':'a%d','parts':[{'text':'%s'}]%s%s},'append':%s}}",
                    k, text, metadata, naming, append ? "true" : "false");
                if (!append)
                    memset(&n.artifacts[k], 0, sizeof n.artifacts[k]);
                n.artifacts[k].there = true;
                strcat(n.artifacts[k].text, text);
                if (meta)
                    n.artifacts[k].meta[m] = value;
                if (name)
                    snprintf(n.artifacts[k].name, sizeof n.artifacts[k].name, "n%d", step);
            }
            add(&l, event);
            if (next(&seed) % 10 == 0)
                check_naive(&l, &n);
        }
        check_naive(&l, &n);
        end(&l);
    }
}

static void any_sequence_of_events_is_survived(void **state)
{
    /* Whatever was decoded: no crash, no leak, and a Task that is written and read back the same. */
    static const char *const pool[] = {
        TASK,
        "{'task':{'id':'u','status':{'state':'TASK_STATE_WORKING','message':" SAY(
            "AGENT", "s",
            "x") "},'history':[" SAY("USER", "m",
                                     "x") "," SAY("USER", "m",
                                                  "y") "],'artifacts':[{'artifactId':'a','parts':[]"
                                                       "},{'artifactId':'a','parts':[{'text':'x'}],"
                                                       "'metadata':{}}],'metadata':{'a':1,'a':2,'"
                                                       "aion:x':1}}}",
        "{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED'},'x':[{}]}}",
        STATUS("UNSPECIFIED"),
        STATUS("SUBMITTED"),
        STATUS("WORKING"),
        STATUS("INPUT_REQUIRED"),
        STATUS_SAYS("WORKING", "m", "x"),
        STATUS_SAYS("WORKING", "s", "y"),
        STATUS_SAYS("AUTH_REQUIRED", "m", "y"),
        STATUS_META("WORKING", "{}"),
        STATUS_META("WORKING", "{'a':{'b':[]},'dragoman:y':null}"),
        "{'message':" SAY("USER", "m", "x") "}",
        "{'message':" SAY("AGENT", "s", "y") "}",
        "{'kind':'internal:message','taskId':'t','message':" SAY(
            "AGENT", "m", "y") ",'timestamp':'2026-01-02T03:04:05Z'}",
        "{'kind':'internal:step','taskId':'v','name':'','timestamp':'2026-01-02T03:04:05Z'}",
        CHUNK("a", "1", ""),
        CHUNK("a", "2", APPEND),
        CHUNK("a", "3", APPEND LAST),
        CHUNK("b", "4", APPEND),
        CHUNK("b", "5", LAST),
        CHUNK(DGM_STREAM_DELTA_ID, "6", APPEND),
        CHUNK(DGM_STREAM_DELTA_ID, "7", LAST),
        "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'n','parts':[],'metadata':{"
        "'k':{}},'extensions':['e','e'],'z':1}}}",
    };
    uint64_t seed = 815;
    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct log l =
            begin_with((dgm_fold_options){.foreign = round % 2, .keep_transitory = round % 3 == 0});
        for (int step = 0; step < 40; step++) {
            const char *event = pool[next(&seed) % (sizeof pool / sizeof *pool)];
            add_as(&l, next(&seed) % 4 ? DGM_BY_AGENT : DGM_BY_SERVER, event);
            if (next(&seed) % 8 == 0)
                dgm_fold_task(l.fold);
        }
        if (dgm_fold_task(l.fold)) {
            dgm_str first = task_text(&l);
            dgm_task again = {0};
            dgm_reader r = {.arena = l.scratch, .format = dgm_form_name, .err = &l.err};
            check_ok(
                dgm_shape_read(&r, &dgm_form_task, dgm_json_made(l.scratch, first), NULL, &again),
                l.err);
            struct log second = begin_with((dgm_fold_options){.keep_transitory = true});
            dgm_event event = {.kind = DGM_EVENT_TASK, .task = &again};
            check_ok(dgm_fold_add(second.fold, &event, DGM_BY_SERVER, &second.err), second.err);
            dgm_str text = task_text(&second);
            check_same(text, first);
            end(&second);
        }
        end(&l);
    }
    dgm_fold_free(NULL);
}

DGM_TEST_MAIN(
    dgm_test(the_task_event_begins_it), dgm_test(another_task_event_refreshes_what_it_names),
    dgm_test(messages_of_one_id_in_the_first_history_all_stay),
    dgm_test(without_a_task_first_our_agents_are_refused),
    dgm_test(without_a_task_first_foreign_agents_are_warned), dgm_test(other_ids_are_faults),
    dgm_test_holds(a_status_update_sets_the_status_and_merges_metadata, "R002-05"),
    dgm_test_holds(only_legal_transitions_fold, "R004-02"),
    dgm_test_holds(nothing_follows_the_end, "R004-02"),
    dgm_test(a_last_snapshot_may_follow_the_end), dgm_test(messages_go_to_the_history),
    dgm_test(a_message_before_the_task_is_not_lost),
    dgm_test(a_status_message_moves_when_the_next_status_comes),
    dgm_test(a_question_stands_before_its_answer), dgm_test(no_message_is_moved_twice),
    dgm_test(a_message_that_grows_under_one_id_is_one_message),
    dgm_test_holds(deltas_never_enter_the_history, "R001-08"),
    dgm_test(indicators_of_a_working_task_never_enter_the_history),
    dgm_test(single_facts_can_be_asked_for), dgm_test(internal_events_change_nothing),
    dgm_test_holds(the_three_chunks_of_document_002_fold, "R002-12 R002-11"),
    dgm_test_holds(append_true_adds_and_joins, "R002-11"),
    dgm_test_holds(append_false_replaces_entirely_in_its_place, "R002-11"),
    dgm_test_holds(appending_to_an_unknown_artifact, "R002-13"),
    dgm_test_holds(updates_after_the_last_chunk_are_warned_of, "R002-13"),
    dgm_test(an_update_without_parts_does_not_wipe_out),
    dgm_test_holds(every_member_of_an_artifact_survives, "R002-27"),
    dgm_test_holds(the_stream_delta_artifact_is_transitory, "R003-26"),
    dgm_test_holds(the_stream_delta_artifact_stays_on_request, "R003-26"),
    dgm_test_holds(protected_metadata_changes_only_by_the_server, "R003-12"),
    dgm_test(ten_times_the_chunks_cost_ten_times),
    dgm_test(many_artifacts_and_much_metadata_cost_the_same_each),
    dgm_test(memory_follows_the_task_not_the_log), dgm_test(tidying_up_changes_nothing),
    dgm_test(list_items_is_the_limit_of_every_list), dgm_test(extensions_keep_the_limit_too),
    dgm_test(random_events_fold_as_a_naive_fold_does), dgm_test(any_sequence_of_events_is_survived))
