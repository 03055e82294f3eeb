/* test_calls.c - calls and results in the data of a message. */
#include "base/limits.h"
#include "model/calls.h"
#include "support/check.h"
#include "json/json.h"

static dgm_part data(dgm_arena *a, const char *text)
{
    return (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_str_from(text))};
}

static void calls_are_data_of_agents(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part calls = data(a, "{\"tool_calls\":[{\"call_id\":\"c\"}]}"),
             results = data(a, "{\"tool_results\":[{\"call_id\":\"c\"}]}"),
             empty = data(a, "{\"tool_calls\":[],\"tool_results\":{}}");
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&calls, 1}};
    assert_true(dgm_message_has(&m, DGM_CALLS));
    assert_false(dgm_message_has(&m, DGM_RESULTS));
    m.role = DGM_ROLE_USER;
    assert_false(dgm_message_has(&m, DGM_CALLS));
    assert_int_equal(dgm_message_call_ids(a, &m, 10).n, 0);
    m.parts.at = &results;
    assert_true(dgm_message_has(&m, DGM_RESULTS));
    m = (dgm_message){.role = DGM_ROLE_AGENT, .parts = {&empty, 1}};
    assert_false(dgm_message_has(&m, DGM_CALLS) || dgm_message_has(&m, DGM_RESULTS));
}

static void ids_are_texts_of_some_length(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char name[DGM_MAX_ID_BYTES + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    dgm_str long_ids = dgm_arena_printf(
        a, "{\"tool_calls\":[{\"call_id\":\"%s\"},{\"call_id\":\"%s\"}]}", name, name + 1);
    dgm_part parts[] = {
        {.kind = DGM_PART_TEXT, .content = DGM_STR("please")},
        data(a, "{\"tool_calls\":[{\"call_id\":\"1\"},{\"call_id\":2},{\"call_id\":\"\"},7,{}]}"),
        data(a, "{\"tool_calls\":{\"call_id\":\"3\"}}"),
        data(a, "[\"tool_calls\"]"),
        data(a, "{\"tool_calls\":[{\"call_id\":\"4\"},{\"call_id\":\"5\"}]}"),
        data(a, long_ids.p)};
    dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {parts, sizeof parts / sizeof *parts}};
    dgm_strs ids = dgm_message_call_ids(a, &m, 10);
    assert_int_equal(ids.n, 4);
    check_str(ids.at[0], "1");
    check_str(ids.at[1], "4");
    check_str(ids.at[2], "5");
    assert_int_equal(ids.at[3].n, DGM_MAX_ID_BYTES);
    assert_int_equal(dgm_message_call_ids(a, &m, 2).n, 2);
}

static void tools_are_data_of_users(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const others[] = {
        "{\"tools\":[]}",
        "{\"tools\":[\"hammer\"]}",
        "{\"tools\":[{\"name\":\"x\"},{\"id\":1}]}",
        "{\"tools\":[{\"name\":\"x\"}],\"more\":1}",
        "{\"tools\":{\"name\":\"x\"}}",
        "[]",
    };
    dgm_part parts[2] = {{.kind = DGM_PART_TEXT, .content = DGM_STR("tools")}};
    dgm_message m = {.role = DGM_ROLE_USER, .parts = {parts, 2}};
    size_t part = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        parts[1] = data(a, others[i]);
        assert_null(dgm_message_tools(&m, &part));
    }
    parts[1] = data(a, "{\"tools\":[{\"name\":\"x\"},{\"name\":7}]}");
    assert_int_equal(yyjson_arr_size((yyjson_val *)(uintptr_t)dgm_message_tools(&m, &part)), 2);
    assert_int_equal(part, 1);
    m.role = DGM_ROLE_AGENT;
    assert_null(dgm_message_tools(&m, &part));
}

DGM_TEST_MAIN(dgm_test(tools_are_data_of_users), dgm_test(calls_are_data_of_agents),
              dgm_test(ids_are_texts_of_some_length))
