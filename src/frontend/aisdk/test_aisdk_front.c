/* frontend/aisdk/test_aisdk_front.c - what requests say, what is noted, which messages are shown. */
#include "frontend/aisdk/aisdk_front_int.h"
#include "support/check.h"

static dgm_code read_text(dgm_arena *a, const char *text, struct aisdk_request *ret, dgm_err *err)
{
    yyjson_val *v;
    dgm_reader r = {.arena = a, .strict = true, .err = err};
    dgm_code rc = dgm_json_read(a, dgm_str_from(text), SIZE_MAX, "", &v, err);
    return rc ? rc : dgm_aisdk_read_request(&r, v, ret);
}

#define USER "{\"id\":\"u\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}]}"
#define RAN(id, more)                                                                              \
    "{\"type\":\"dynamic-tool\",\"toolName\":\"f\",\"toolCallId\":\"" id                           \
    "\",\"state\":\"output-available\",\"input\":{},\"output\":1" more "}"
#define ASSISTANT(parts) "{\"id\":\"x\",\"role\":\"assistant\",\"parts\":[" parts "]}"

static void a_message_of_the_users_has_an_answer(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct aisdk_request q;
    dgm_err err = {0};
    (void)state;
    check_ok(read_text(a, "{\"id\":\"c\",\"messages\":[" USER "],\"trigger\":\"submit-message\"}",
                       &q, &err),
             err);
    assert_true(dgm_str_is(q.input.thread_id, "c"));
    assert_true(dgm_str_is(q.note.message_id, "u.answer"));
    assert_false(q.again);
    check_ok(read_text(a, "{\"id\":\"c\",\"messages\":[" USER "],\"messageId\":null}", &q, &err),
             err);
    assert_false(q.again);
}

static void edited_and_regenerated_messages_are_new_turns(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct aisdk_request q;
    dgm_err err = {0};
    (void)state;
    check_ok(read_text(a,
                       "{\"id\":\"c\",\"messages\":[" USER
                       "],\"trigger\":\"submit-message\",\"messageId\":\"u\"}",
                       &q, &err),
             err);
    assert_true(q.again);
    check_ok(read_text(a,
                       "{\"id\":\"c\",\"messages\":[" USER "],\"trigger\":\"regenerate-message\"}",
                       &q, &err),
             err);
    assert_true(q.again);
}

static void results_go_on_with_their_message(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct aisdk_request q;
    dgm_err err = {0};
    (void)state;
    check_ok(read_text(a,
                       "{\"id\":\"c\",\"messageId\":\"x\",\"messages\":[" USER
                       "," ASSISTANT(RAN("1", ",\"providerExecuted\":true") "," RAN("2", "")) "]}",
                       &q, &err),
             err);
    assert_true(dgm_str_is(q.note.message_id, "x"));
    assert_false(q.again);
    assert_int_equal(q.note.results.n, 1); /* the other one is the agent's own */
    assert_true(dgm_str_is(q.note.results.at[0], "2"));
    assert_int_equal(q.input.messages.n, 3);
    assert_true(dgm_str_is(q.input.messages.at[2].tool_call_id, "2"));
}

static void tools_are_a_list_or_named(void **state)
{
    static const char *const both[] = {
        "{\"id\":\"c\",\"messages\":[" USER
        "],\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{}}]}",
        "{\"id\":\"c\",\"messages\":[" USER
        "],\"tools\":{\"f\":{\"description\":\"d\",\"parameters\":{}}}}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct aisdk_request q;
        dgm_err err = {0};
        check_ok(read_text(a, both[i], &q, &err), err);
        assert_int_equal(q.input.tools.n, 1);
        assert_true(dgm_str_is(q.input.tools.at[0].name, "f"));
        assert_true(dgm_str_is(q.input.tools.at[0].description, "d"));
        assert_non_null(q.input.tools.at[0].parameters);
        assert_int_equal(q.note.tools.n, 1);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *at;
    } bad[] = {
        {"7", ""},
        {"{\"messages\":[" USER "]}", "/id"},
        {"{\"id\":\"\",\"messages\":[" USER "]}", "/id"},
        {"{\"id\":1,\"messages\":[" USER "]}", "/id"},
        {"{\"id\":\"c\"}", "/messages"},
        {"{\"id\":\"c\",\"messages\":{}}", "/messages"},
        {"{\"id\":\"c\",\"messages\":[]}", "/messages"},
        {"{\"id\":\"c\",\"messages\":[" USER "," ASSISTANT("") "]}", "/messages"},
        {"{\"id\":\"c\",\"messages\":[" USER
         "," ASSISTANT(RAN("1", ",\"providerExecuted\":true")) "]}",
         "/messages"},
        {"{\"id\":\"c\",\"messages\":[3]}", "/messages/0"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"trigger\":1}", "/trigger"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"trigger\":\"x\"}", "/trigger"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"messageId\":{}}", "/messageId"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"tools\":1}", "/tools"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"tools\":[{}]}", "/tools/0/name"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"tools\":{\"f\":1}}", "/tools/f"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"tools\":{\"f\":{\"parameters\":[]}}}",
         "/tools/f/parameters"},
        {"{\"id\":\"c\",\"messages\":[" USER "],\"tools\":{\"f\":{\"description\":[]}}}",
         "/tools/f/description"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct aisdk_request q;
        dgm_err err = {0};
        check_fails(read_text(a, bad[i].text, &q, &err), DGM_BAD_PARAMS, err, bad[i].at);
    }
}

static void notes_come_back(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str tools[] = {DGM_STR("f"), DGM_STR("g\"")}, results[] = {DGM_STR("1")};
    struct aisdk_note note = {DGM_STR("m"), {tools, 2}, {results, 1}};
    (void)state;
    dgm_str text = dgm_aisdk_note_text(a, &note);
    assert_true(
        dgm_str_is(text, "{\"messageId\":\"m\",\"tools\":[\"f\",\"g\\\"\"],\"results\":[\"1\"]}"));
    note = dgm_aisdk_note_read(a, text);
    assert_true(dgm_str_is(note.message_id, "m"));
    assert_int_equal(note.tools.n, 2);
    assert_true(dgm_str_is(note.tools.at[1], "g\""));
    assert_int_equal(note.results.n, 1);
    assert_int_equal(dgm_aisdk_note_read(a, DGM_STR("broken")).message_id.n, 0);
    assert_int_equal(dgm_aisdk_note_read(a, (dgm_str){0}).results.n, 0);
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

static dgm_canon_message says(dgm_canon_role role, const char *id)
{
    return (dgm_canon_message){.role = role, .id = dgm_str_from(id)};
}

static void check_ids(dgm_canon_messages list, const char *want)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < list.n; i++) {
        dgm_buf_add_str(&b, list.at[i].id);
        dgm_buf_add_char(&b, ' ');
    }
    check_str(b, want);
    dgm_buf_done(&b);
}

#define U(id) says(DGM_CANON_USER, id)
#define A(id) says(DGM_CANON_ASSISTANT, id)

static void answers_are_named_after_what_they_answer(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_message list[] = {A("0"), U("u"), A("1"), says(DGM_CANON_TOOL, "2"), U("v"), A("3")};
    (void)state;
    check_ids(dgm_aisdk_as_seen(a, &(dgm_canon_messages){list, 6}),
              "0 u u.answer u.answer v v.answer ");
}

static void a_repeated_message_replaces_the_first(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_message list[] = {U("u"), A("1"), U("v"), A("2"), U("v"), A("3"),
                                U("u"), A("4"), U("v"), A("5"), U("w")};
    (void)state;
    check_ids(dgm_aisdk_as_seen(a, &(dgm_canon_messages){list, 6}), "u u.answer v v.answer ");
    check_ids(dgm_aisdk_as_seen(a, &(dgm_canon_messages){list, 8}), "u u.answer ");
    check_ids(dgm_aisdk_as_seen(a, &(dgm_canon_messages){list, 11}), "u u.answer v v.answer w ");
}

DGM_TEST_MAIN(dgm_test(a_message_of_the_users_has_an_answer),
              dgm_test(edited_and_regenerated_messages_are_new_turns),
              dgm_test(results_go_on_with_their_message), dgm_test(tools_are_a_list_or_named),
              dgm_test(what_is_wrong_is_named), dgm_test(notes_come_back),
              dgm_test(answers_are_named_after_what_they_answer),
              dgm_test(a_repeated_message_replaces_the_first))
