/* test_events_to_messages.c - the messages that events add up to, as the official client builds them. */
#include "canon/events_to_messages.h"
#include "canon/test_dump.h"

#define K(kind) DGM_CANON_##kind

struct step {
    dgm_canon_kind kind;
    const char *id, *text, *parent;
};

static dgm_canon_event event_of(const struct step *s, dgm_arena *a)
{
    dgm_canon_event e = {.kind = s->kind};
    dgm_str id = dgm_str_from(s->id), text = dgm_str_from(s->text);
    if (s->kind >= K(TOOL_CALL_START) && s->kind <= K(TOOL_CALL_CHUNK)) {
        e.call.tool_call_id = id;
        e.call.name = e.call.delta = text;
        e.call.parent_message_id = dgm_str_from(s->parent);
    } else if (s->kind == K(TOOL_CALL_RESULT)) {
        e.result.message_id = id;
        e.result.tool_call_id = dgm_str_from(s->parent);
        e.result.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text};
    } else if (s->kind == K(ACTIVITY_SNAPSHOT)) {
        e.activity.message_id = id;
        e.activity.activity_type = DGM_STR("a");
        e.activity.content = dgm_json_parse_trusted(a, text);
        e.activity.replace = s->parent ? DGM_FALSE : DGM_UNSET;
    } else {
        e.text.message_id = id;
        e.text.delta = text;
        e.text.role = s->parent ? DGM_CANON_USER : DGM_CANON_ROLE_NONE;
    }
    return e;
}

static void check_fold(const struct step *steps, size_t n, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *f = dgm_canon_fold_new(100000);
    dgm_buf b;
    for (size_t i = 0; i < n; i++) {
        dgm_canon_event e = event_of(&steps[i], a);
        dgm_canon_fold_add(f, &e);
    }
    dgm_canon_messages list = dgm_canon_fold_messages(f, a);
    dgm_buf_init(&b, SIZE_MAX);
    dump_messages(&b, &list);
    check_str(b, want);
    dgm_buf_done(&b);
}
#define CHECK(steps, want) check_fold(steps, sizeof(steps) / sizeof *(steps), want)

static void text_is_appended_to_its_message(void **state)
{
    static const struct step steps[] = {
        {K(TEXT_MESSAGE_START), "u", NULL, "user"},
        {K(TEXT_MESSAGE_CONTENT), "u", "Hi", NULL},
        {K(TEXT_MESSAGE_START), "m", NULL, NULL},
        {K(TEXT_MESSAGE_CONTENT), "m", "Hel", NULL},
        {K(TEXT_MESSAGE_CONTENT), "m", "lo", NULL},
        {K(TEXT_MESSAGE_END), "m", NULL, NULL},
        {K(TEXT_MESSAGE_START), "m", NULL, NULL}, /* goes on */
        {K(TEXT_MESSAGE_CONTENT), "m", "!", NULL},
        {K(TEXT_MESSAGE_CONTENT), "x", "lost", NULL},
        {K(REASONING_MESSAGE_START), "r", NULL, NULL},
        {K(REASONING_MESSAGE_CONTENT), "r", "hm", NULL},
    };
    (void)state;
    CHECK(steps, " {user u \"Hi\"} {assistant m \"Hello!\"} {reasoning r \"hm\"}");
}

static void calls_are_in_their_parent_and_results_behind_it(void **state)
{
    static const struct step steps[] = {
        {K(TEXT_MESSAGE_START), "m", NULL, NULL},
        {K(TEXT_MESSAGE_CONTENT), "m", "x", NULL},
        {K(TOOL_CALL_START), "1", "f", "m"},
        {K(TOOL_CALL_START), "2", "g", "m"},
        {K(TOOL_CALL_ARGS), "1", "{", NULL},
        {K(TOOL_CALL_ARGS), "2", "{}", NULL},
        {K(TOOL_CALL_ARGS), "1", "}", NULL},
        {K(TOOL_CALL_START), "3", "h", "n"},  /* an unknown parent */
        {K(TOOL_CALL_START), "4", "i", NULL}, /* none at all: a message per call */
        {K(TOOL_CALL_RESULT), "b", "B", "2"},
        {K(TOOL_CALL_RESULT), "a", "A", "1"},
        {K(TOOL_CALL_RESULT), "z", "Z", "9"},
    };
    (void)state;
    CHECK(steps, " {assistant m \"x\" 1=f({}) 2=g({})} {tool b \"B\" of 2} {tool a \"A\" of 1}"
                 " {assistant n 3=h()} {assistant 4 4=i()} {tool z \"Z\" of 9}");
}

static void activities_are_replaced_or_left(void **state)
{
    static const struct step steps[] = {
        {K(ACTIVITY_SNAPSHOT), "a", "{\"n\":1}", NULL},
        {K(ACTIVITY_SNAPSHOT), "b", "{\"n\":1}", NULL},
        {K(ACTIVITY_SNAPSHOT), "a", "{\"n\":2}", NULL},
        {K(ACTIVITY_SNAPSHOT), "b", "{\"n\":2}", "keep"},
    };
    (void)state;
    CHECK(steps, " {activity a {\"n\":2}} {activity b {\"n\":1}}");
}

static void a_snapshot_replaces_all_messages(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *f = dgm_canon_fold_new(100000);
    dgm_canon_call call = {.id = DGM_STR("1"), .name = DGM_STR("f"), .arguments = DGM_STR("{}")};
    dgm_canon_part part = {.kind = DGM_CANON_PART_TEXT, .text = DGM_STR("p")};
    dgm_canon_message all[] = {
        {.role = DGM_CANON_USER,
         .id = DGM_STR("u"),
         .content = {.kind = DGM_CANON_CONTENT_PARTS, .parts = {&part, 1}}},
        {.role = DGM_CANON_ASSISTANT, .id = DGM_STR("m"), .tool_calls = {&call, 1}},
    };
    dgm_canon_event start = {.kind = K(TEXT_MESSAGE_START)},
                    snapshot = {.kind = K(MESSAGES_SNAPSHOT)};
    dgm_canon_event result = {.kind = K(TOOL_CALL_RESULT)};
    dgm_buf b;
    (void)state;
    start.text.message_id = DGM_STR("x");
    snapshot.snapshot.messages = (dgm_canon_messages){all, 2};
    result.result.message_id = DGM_STR("t");
    result.result.tool_call_id = DGM_STR("1");
    dgm_canon_fold_add(f, &start);
    dgm_canon_fold_add(f, &snapshot);
    dgm_canon_fold_add(f, &result);
    assert_false(dgm_canon_fold_set_text(f, DGM_STR("x"), DGM_STR("gone")));
    assert_true(dgm_canon_fold_set_text(f, DGM_STR("m"), DGM_STR("said")));
    dgm_canon_messages list = dgm_canon_fold_messages(f, a);
    dgm_buf_init(&b, SIZE_MAX);
    dump_messages(&b, &list);
    check_str(b, " {user u 1 parts} {assistant m \"said\" 1=f({})} {tool t of 1}");
    dgm_buf_done(&b);
}

static void past_the_limit_all_is_forgotten(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const struct step kinds[] = {
        {K(TEXT_MESSAGE_START), "m", NULL, NULL},      {K(TEXT_MESSAGE_CONTENT), "m", "text", NULL},
        {K(TOOL_CALL_START), "1", "f", "m"},           {K(TOOL_CALL_ARGS), "1", "{}", NULL},
        {K(TOOL_CALL_RESULT), "t", "x", "1"},          {K(ACTIVITY_SNAPSHOT), "a", "{}", NULL},
        {K(REASONING_MESSAGE_START), "r", NULL, NULL},
    };
    (void)state;
    /* wherever it is passed */
    for (size_t max = 0; max < 6000; max += 7) {
        dgm_auto(dgm_canon_fold_free) dgm_canon_fold *f = dgm_canon_fold_new(max);
        for (size_t i = 0; i < 70; i++) {
            dgm_canon_event e = event_of(&kinds[i % 7], a);
            dgm_canon_fold_add(f, &e);
        }
        assert_true(dgm_canon_fold_is_over(f));
        assert_int_equal(dgm_canon_fold_messages(f, a).n, 0);
        assert_false(dgm_canon_fold_set_text(f, DGM_STR("m"), DGM_STR("x")));
    }
}

static void a_result_with_an_error_is_an_error(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *f = dgm_canon_fold_new(100000);
    dgm_canon_event e = event_of(&(struct step){K(TOOL_CALL_RESULT), "r", "no", "1"}, a);
    (void)state;
    dgm_canon_fold_add(f, &e);
    e.metadata = dgm_json_parse_trusted(a, DGM_STR("{\"dragoman:error\":true}"));
    e.result.message_id = DGM_STR("r2");
    dgm_canon_fold_add(f, &e);
    dgm_canon_messages list = dgm_canon_fold_messages(f, a);
    assert_int_equal(list.n, 2);
    assert_null(list.at[0].error.p);
    check_str(list.at[1].error, "no");
}

DGM_TEST_MAIN(dgm_test(a_result_with_an_error_is_an_error),
              dgm_test(text_is_appended_to_its_message),
              dgm_test(calls_are_in_their_parent_and_results_behind_it),
              dgm_test(activities_are_replaced_or_left), dgm_test(a_snapshot_replaces_all_messages),
              dgm_test(past_the_limit_all_is_forgotten))
