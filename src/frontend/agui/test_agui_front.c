/* frontend/agui/test_agui_front.c - what is decided before anybody is asked. */
#include "frontend/agui/agui_front_int.h"
#include "support/check.h"

static void peers(void **state)
{
    bool old;
    (void)state;
    assert_true(dgm_agui_peer_of((dgm_str){0}, &old) && old);
    assert_true(dgm_agui_peer_of(DGM_STR("0.9"), &old) && old);
    assert_true(dgm_agui_peer_of(DGM_STR("1.0"), &old) && !old);
    assert_true(dgm_agui_peer_of(DGM_STR("1.7"), &old) && !old);
    assert_false(dgm_agui_peer_of(DGM_STR("2.0"), &old));
    assert_false(dgm_agui_peer_of(DGM_STR("10.0"), &old));
    assert_false(dgm_agui_peer_of(DGM_STR("one"), &old));
}

static bool has_news(const dgm_canon_role *roles, size_t n)
{
    dgm_canon_message list[4] = {{0}};
    for (size_t i = 0; i < n; i++)
        list[i].role = roles[i];
    return dgm_agui_has_news(&(dgm_canon_messages){list, n});
}
#define HAS_NEWS(...)                                                                              \
    has_news((const dgm_canon_role[]){__VA_ARGS__},                                                \
             sizeof((const dgm_canon_role[]){__VA_ARGS__}) / sizeof(dgm_canon_role))

static void what_is_new(void **state)
{
    (void)state;
    assert_true(HAS_NEWS(DGM_CANON_USER));
    assert_true(HAS_NEWS(DGM_CANON_USER, DGM_CANON_ASSISTANT, DGM_CANON_TOOL));
    assert_true(HAS_NEWS(DGM_CANON_ASSISTANT, DGM_CANON_USER, DGM_CANON_SYSTEM));
    assert_false(HAS_NEWS(DGM_CANON_USER, DGM_CANON_ASSISTANT));
    assert_false(HAS_NEWS(DGM_CANON_USER, DGM_CANON_ASSISTANT, DGM_CANON_REASONING));
    assert_false(HAS_NEWS(DGM_CANON_SYSTEM));
    assert_false(has_news(NULL, 0));
}

static void answers_in_words(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json *text = dgm_json_parse_trusted(a, DGM_STR("{\"text\":\"Paris\"}")),
                   *more = dgm_json_parse_trusted(a, DGM_STR("{\"text\":\"Paris\",\"n\":1}")),
                   *number = dgm_json_parse_trusted(a, DGM_STR("{\"text\":1}"));
    (void)state;
    check_str(dgm_json_str(dgm_agui_plain_payload(text)), "Paris");
    assert_ptr_equal(dgm_agui_plain_payload(more), more);
    assert_ptr_equal(dgm_agui_plain_payload(number), number);
    assert_null(dgm_agui_plain_payload(NULL));
}

static void cursors(void **state)
{
    dgm_http_header header = {DGM_STR("last-event-id"), DGM_STR(" 42 ")};
    dgm_http_request r = {.headers = &header, .n_headers = 1};
    uint64_t cursor;
    (void)state;
    assert_true(dgm_agui_cursor_of(&r, &cursor));
    assert_int_equal(cursor, 42);
    header.value = DGM_STR("x");
    assert_false(dgm_agui_cursor_of(&r, &cursor));
    header.value = DGM_STR("99999999999999999999999");
    assert_false(dgm_agui_cursor_of(&r, &cursor));
    header.value = DGM_STR("");
    assert_false(dgm_agui_cursor_of(&r, &cursor));
    r.n_headers = 0;
    assert_false(dgm_agui_cursor_of(&r, &cursor));
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

static dgm_canon_message message(dgm_canon_role role, const char *id, const char *text)
{
    dgm_canon_content content = {.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_str_from(text)};
    return (dgm_canon_message){.role = role, .id = dgm_str_from(id), .content = content};
}
#define USER(id, text) message(DGM_CANON_USER, id, text)
#define AGENT(id) message(DGM_CANON_ASSISTANT, id, "")

static void where_a_run_begins(void **state)
{
    dgm_canon_message list[] = {
        message(DGM_CANON_USER, "u", ""), message(DGM_CANON_ASSISTANT, "r1-m1", ""),
        message(DGM_CANON_USER, "u2", ""), message(DGM_CANON_ASSISTANT, "r-m1", "")};
    dgm_canon_messages all = {list, 4};
    (void)state;
    assert_int_equal(dgm_agui_cut(&all, DGM_STR("u2"), DGM_STR("r")), 3);
    assert_int_equal(dgm_agui_cut(&all, DGM_STR("u"), DGM_STR("r")), 1);
    assert_int_equal(dgm_agui_cut(&all, DGM_STR("other"), DGM_STR("r")), 3);
    assert_int_equal(dgm_agui_cut(&all, DGM_STR("other"), DGM_STR("r1")), 1);
    assert_int_equal(dgm_agui_cut(&all, DGM_STR(""), DGM_STR("x")), 4);
}

static void check_shown(const dgm_canon_message *list, size_t n, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_messages all = {(dgm_canon_message *)(uintptr_t)list, n},
                       shown = dgm_agui_shown(a, &all);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < shown.n; i++)
        dgm_buf_printf(&b, "%.*s ", DGM_P(shown.at[i].id));
    check_str(b, want);
    dgm_buf_done(&b);
}

static void what_was_asked_again_counts(void **state)
{
    const dgm_canon_message again[] = {USER("u1", "a"), AGENT("a1"), USER("u2", "b"), AGENT("a2"),
                                       USER("u3", "c"), AGENT("a3"), USER("u2", "b"), AGENT("a4"),
                                       USER("u2", "b"), AGENT("a5")};
    const dgm_canon_message other[] = {USER("u", "a"), AGENT("a1"), USER("u", "b"), AGENT("a2")};
    const dgm_canon_message back[] = {USER("u1", "a"), USER("u2", "b"), USER("u1", "a"),
                                      USER("u2", "b")};
    const dgm_canon_message busy[] = {USER("u1", "a"), message(DGM_CANON_ACTIVITY, "x", ""),
                                      AGENT("a1")};
    (void)state;
    check_shown(again, 10, "u1 a1 u2 a5 ");
    check_shown(other, 4,
                "u a1 u a2 "); /* a client that gives all the same name says other things */
    check_shown(back, 4, "u1 u2 ");
    check_shown(busy, 3, "u1 a1 ");
    check_shown(NULL, 0, "");
}

DGM_TEST_MAIN(dgm_test(peers), dgm_test(what_is_new), dgm_test(answers_in_words), dgm_test(cursors),
              dgm_test(where_a_run_begins), dgm_test(what_was_asked_again_counts))
