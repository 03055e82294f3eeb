/* model/test_fold_cost.c - what a fold costs, and its limits. */
#include "model/test_fold.h"

/* ---- what it costs ------------------------------------------------------------------------------------------------ */

static void add_part(struct log *l, const char *artifact, dgm_part part, bool append)
{
    dgm_artifact_update u = {
        .task_id = DGM_STR("t"),
        .context_id = DGM_STR("c"),
        .artifact = {.artifact_id = dgm_str_from(artifact), .parts = {&part, 1}},
        .append = append ? DGM_TRUE : DGM_FALSE};
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    check_ok(dgm_fold_add(l->fold, &event, DGM_BY_AGENT, &l->err), l->err);
}

static void add_chunk(struct log *l, const char *artifact, size_t i, bool append)
{
    char text[64];
    snprintf(text, sizeof text, "word %zu ", i);
    add_part(l, artifact, (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_str_from(text)}, append);
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
    const dgm_artifact *x = &dgm_fold_task(l.fold)->artifacts.at[0];
    assert_int_equal(x->parts.n, 1);
    dgm_fold_cost cost = dgm_fold_cost_of(l.fold);
    /* its room doubles, and what it left is cleared away: each byte is moved a few times at most */
    assert_true(cost.moved <= 6 * x->parts.at[0].content.n);
    end(&l);
    return cost.copied + cost.moved;
}

static void ten_times_the_chunks_cost_ten_times(void **state)
{
    (void)state;
    /* both are long enough for memory to be put in order; a doubling more or less makes half */
    for (int look = 0; look < 2; look++) /* looking is free */
        assert_true(cost_of_chunks(200000, look) <= 15 * cost_of_chunks(20000, look));
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
    for (size_t i = 0; i < DGM_MAX_LIST_ITEMS; i++) /* links: texts would be one part */
        add_part(&l, "a", (dgm_part){.kind = DGM_PART_URL, .content = DGM_STR("http://u")}, i > 0);
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

DGM_TEST_MAIN(dgm_test(ten_times_the_chunks_cost_ten_times),
              dgm_test(many_artifacts_and_much_metadata_cost_the_same_each),
              dgm_test(memory_follows_the_task_not_the_log), dgm_test(tidying_up_changes_nothing),
              dgm_test(list_items_is_the_limit_of_every_list),
              dgm_test(extensions_keep_the_limit_too))
