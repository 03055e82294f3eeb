/* model/test_fold_artifacts.c - chunks that add up to artifacts. */
#include "model/test_fold.h"

static void the_three_chunks_of_document_002_fold(void **state)
{
    struct log l = begin();
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK("art-1", "Based on ", ",'append':false,'lastChunk':false"));
    add(&l, CHUNK("art-1", "the analysis", APPEND ",'lastChunk':false"));
    add(&l, CHUNK("art-1", ", sales increased 15%", APPEND LAST));
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.n, 1);
    assert_int_equal(dgm_fold_task(l.fold)->artifacts.at[0].parts.n, 1); /* one text, one part */
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
        "artifactId':'a','parts':[{'text':'new!'}],"
        "'metadata':{'y':1},'extensions':['e']},{'artifactId':'b','parts':[{'text':'other'}]}]}");
    check_silent(&l);
    end(&l);
}

#define PARTS(parts, flags)                                                                        \
    "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','parts':[" parts "]}" flags "}}"
#define WITH_PARTS(parts)                                                                          \
    "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts':[{"           \
    "'artifactId':'a','parts':[" parts "]}]}"

static void neighbouring_texts_of_equal_metadata_are_one_part(void **state)
{
    struct log l = begin(), again = begin();
    (void)state;
    add(&l, TASK);
    add(&l, PARTS("{'text':'It '},{'text':'is '}", ""));
    add(&l, PARTS("{'text':'sunny'}", APPEND));
    check_task(&l, WITH_PARTS("{'text':'It is sunny'}"));
    add(&l, PARTS("{'text':'.','metadata':{'b':1}},{'text':'!','metadata':{'b':1}}", APPEND));
    add(&l, PARTS("{'text':'?','metadata':{'b':2}}", APPEND));
    add(&l, PARTS("{'text':'-','mediaType':'text/markdown'}", APPEND));
    add(&l, PARTS("{'text':'='},{'data':{}},{'text':'x'},{'text':'y'},{'text':'z','w':1}", APPEND));
#define JOINED                                                                                     \
    "{'text':'It is sunny'},{'text':'.!','metadata':{'b':1}},{'text':'?','metadata':{'b':2}},"     \
    "{'text':'-','mediaType':'text/markdown'},{'text':'='},{'data':{}},{'text':'xy'},"             \
    "{'text':'z','w':1}"
    check_task(&l, WITH_PARTS(JOINED));
    add(&l, PARTS("{'text':''}", APPEND LAST)); /* closes it and adds nothing */
    check_task(&l, WITH_PARTS(JOINED));
    /* a Task that was written with a part per chunk is joined when it is read */
    add(&again,
        "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts'"
        ":[{'artifactId':'a','parts':[{'text':'It '},{'text':'is '},{'text':'sunny'}]}]}}");
    check_task(&again, WITH_PARTS("{'text':'It is sunny'}"));
    end(&l);
    end(&again);
}

static void closing_an_artifact_adds_no_empty_part(void **state)
{
    static const char *const parts[] = {"{'text':'x'}", "{'data':{'k':1}}",
                                        "{'text':'x','metadata':{'m':1}}",
                                        "{'raw':'SGk=','filename':'f'}"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct log l = begin();
        char text[400];
        add(&l, TASK);
        snprintf(text, sizeof text, PARTS("%s", ""), parts[i]);
        add(&l, text);
        add(&l, PARTS("{'text':''}", APPEND LAST));
        assert_int_equal(dgm_fold_task(l.fold)->artifacts.at[0].parts.n, 1);
        assert_int_equal(dgm_fold_artifact_of(l.fold, DGM_STR("a")), DGM_ARTIFACT_SEALED);
        end(&l);
    }
}

/* A text that grows while others are replaced: memory is put in order in between. */
static void a_growing_text_survives_when_memory_is_put_in_order(void **state)
{
    enum { N = 20000 };
    struct log l = begin();
    char word[32], other[200];
    size_t n = 0;
    char *want = test_malloc(12 * N);
    (void)state;
    add(&l, TASK);
    add(&l, CHUNK("a", "", ""));
    for (int i = 0; i < N; i++) {
        snprintf(word, sizeof word, "%d ", i);
        memcpy(want + n, word, strlen(word) + 1);
        n += strlen(word);
        dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(word)};
        dgm_artifact_update u = {.task_id = DGM_STR("t"),
                                 .context_id = DGM_STR("c"),
                                 .artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}},
                                 .append = DGM_TRUE};
        dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
        check_ok(dgm_fold_add(l.fold, &event, DGM_BY_AGENT, &l.err), l.err);
        if (i % 3 == 0) {
            snprintf(other, sizeof other, CHUNK("b", "replaced each time, %d", ""), i);
            add(&l, other);
        }
    }
    const dgm_artifact *x = &dgm_fold_task(l.fold)->artifacts.at[0];
    assert_int_equal(x->parts.n, 1);
    check_str(x->parts.at[0].content, want);
    test_free(want);
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

DGM_TEST_MAIN(dgm_test_holds(the_three_chunks_of_document_002_fold, "R002-12 R002-11"),
              dgm_test_holds(append_true_adds_and_joins, "R002-11"),
              dgm_test_holds(append_false_replaces_entirely_in_its_place, "R002-11"),
              dgm_test(neighbouring_texts_of_equal_metadata_are_one_part),
              dgm_test(closing_an_artifact_adds_no_empty_part),
              dgm_test(a_growing_text_survives_when_memory_is_put_in_order),
              dgm_test_holds(appending_to_an_unknown_artifact, "R002-13"),
              dgm_test_holds(updates_after_the_last_chunk_are_warned_of, "R002-13"),
              dgm_test(an_update_without_parts_does_not_wipe_out),
              dgm_test_holds(every_member_of_an_artifact_survives, "R002-27"),
              dgm_test_holds(the_stream_delta_artifact_is_transitory, "R003-26"),
              dgm_test_holds(the_stream_delta_artifact_stays_on_request, "R003-26"))
