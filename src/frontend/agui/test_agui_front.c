/* frontend/agui/test_agui_front.c - what is decided before anybody is asked. */
#include "frontend/agui/agui_front_int.h"
#include "support/check.h"

static void paths(void **state)
{
    dgm_str thread;
    (void)state;
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui"), &thread), AGUI_RUN);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/"), &thread), AGUI_RUN);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/connect"), &thread), AGUI_CONNECT);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/capabilities"), &thread), AGUI_CAPABILITIES);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/threads/a%2Fb/messages"), &thread),
                     AGUI_MESSAGES);
    check_str(thread, "a%2Fb");
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/threads//messages"), &thread), AGUI_NONE);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/threads/a/b/messages"), &thread), AGUI_NONE);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/threads/a/message"), &thread), AGUI_NONE);
    assert_int_equal(agui_route_of(DGM_STR("/ag-ui/threads/"), &thread), AGUI_NONE);
    assert_int_equal(agui_route_of(DGM_STR("/ag-uix"), &thread), AGUI_NONE);
    assert_int_equal(agui_route_of(DGM_STR("/"), &thread), AGUI_NONE);
}

static void peers(void **state)
{
    bool old;
    (void)state;
    assert_true(agui_peer_of((dgm_str){0}, &old) && old);
    assert_true(agui_peer_of(DGM_STR("0.9"), &old) && old);
    assert_true(agui_peer_of(DGM_STR("1.0"), &old) && !old);
    assert_true(agui_peer_of(DGM_STR("1.7"), &old) && !old);
    assert_false(agui_peer_of(DGM_STR("2.0"), &old));
    assert_false(agui_peer_of(DGM_STR("10.0"), &old));
    assert_false(agui_peer_of(DGM_STR("one"), &old));
}

static void interrupts_have_the_name_of_their_turn(void **state)
{
    dgm_str task;
    uint32_t turn;
    (void)state;
    assert_true(agui_split_interrupt(DGM_STR("0190-ab-2"), &task, &turn));
    check_str(task, "0190-ab");
    assert_int_equal(turn, 2);
    assert_false(agui_split_interrupt(DGM_STR("0190-ab"), &task, &turn));
    assert_false(agui_split_interrupt(DGM_STR("t-1"), &task, &turn)); /* the first has no number */
    assert_false(agui_split_interrupt(DGM_STR("t-02"), &task, &turn));
    assert_false(agui_split_interrupt(DGM_STR("t-1234567890"), &task, &turn));
    assert_false(agui_split_interrupt(DGM_STR("-2"), &task, &turn));
    assert_false(agui_split_interrupt(DGM_STR("12"), &task, &turn));
    assert_false(agui_split_interrupt(DGM_STR(""), &task, &turn));
}

static bool has_news(const dgm_canon_role *roles, size_t n)
{
    dgm_canon_message list[4] = {{0}};
    for (size_t i = 0; i < n; i++)
        list[i].role = roles[i];
    return agui_has_news(&(dgm_canon_messages){list, n});
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
    const dgm_json *text = dgm_json_made(a, DGM_STR("{\"text\":\"Paris\"}")),
                   *more = dgm_json_made(a, DGM_STR("{\"text\":\"Paris\",\"n\":1}")),
                   *number = dgm_json_made(a, DGM_STR("{\"text\":1}"));
    (void)state;
    check_str(dgm_json_str(agui_plain_payload(text)), "Paris");
    assert_ptr_equal(agui_plain_payload(more), more);
    assert_ptr_equal(agui_plain_payload(number), number);
    assert_null(agui_plain_payload(NULL));
}

static void cursors(void **state)
{
    dgm_http_header header = {DGM_STR("last-event-id"), DGM_STR(" 42 ")};
    dgm_http_request r = {.headers = &header, .n_headers = 1};
    uint64_t cursor;
    (void)state;
    assert_true(agui_cursor_of(&r, &cursor));
    assert_int_equal(cursor, 42);
    header.value = DGM_STR("x");
    assert_false(agui_cursor_of(&r, &cursor));
    header.value = DGM_STR("99999999999999999999999");
    assert_false(agui_cursor_of(&r, &cursor));
    header.value = DGM_STR("");
    assert_false(agui_cursor_of(&r, &cursor));
    r.n_headers = 0;
    assert_false(agui_cursor_of(&r, &cursor));
}

DGM_TEST_MAIN(dgm_test(paths), dgm_test(peers), dgm_test(interrupts_have_the_name_of_their_turn),
              dgm_test(what_is_new), dgm_test(answers_in_words), dgm_test(cursors))
