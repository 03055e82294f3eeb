/* test_guard.c - metadata that only the server sets. */
#include "model/guard.h"
#include "support/check.h"
#include "json/json.h"

static dgm_str text_of(const dgm_json *v, dgm_arena *a)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, v);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void keys_of_the_server(void **state)
{
    (void)state;
    assert_true(dgm_guard_is_servers(DGM_STR("aion:network")));
    assert_true(dgm_guard_is_servers(DGM_STR("aion:")));
    assert_true(dgm_guard_is_servers(DGM_STR("dragoman:principal")));
    assert_false(dgm_guard_is_servers(DGM_STR("aion")));
    assert_false(dgm_guard_is_servers(DGM_STR("Aion:network")));
    assert_false(dgm_guard_is_servers(DGM_STR("my:aion:network")));
    assert_false(dgm_guard_is_servers(DGM_STR("canonical_type")));
}

static void members_are_removed(void **state)
{
    static dgm_str aion[] = {{"aion:", 5}}, network[] = {{"aion:net", 8}};
    static const struct {
        const char *in, *out;
        dgm_strs may_set;
        bool of_event;
        size_t removed;
    } rows[] = {
        {"{\"a\":1,\"b\":{\"aion:x\":1}}", NULL, {0}, false, 0},
        {"{}", NULL, {0}, true, 0},
        {"{\"aion:network\":\"evil\"}", "", {0}, false, 1},
        {"{\"a\":1,\"aion:network\":1,\"b\":2,\"dragoman:x\":3}",
         "{\"a\":1,\"b\":2}",
         {0},
         false,
         2},
        {"{\"canonical_type\":\"T\",\"a\":1}", NULL, {0}, false, 0},
        {"{\"canonical_type\":\"T\",\"a\":1}", "{\"a\":1}", {0}, true, 1},
        {"{\"canonical_type\":\"T\"}", "", {0}, true, 1},
        {"{\"aion:network\":1,\"dragoman:x\":2}", "{\"aion:network\":1}", {aion, 1}, false, 1},
        {"{\"aion:network\":1,\"aion:x\":2}", "{\"aion:network\":1}", {network, 1}, false, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        const dgm_json *in = dgm_json_parse_trusted(a, dgm_str_from(rows[i].in));
        dgm_guard g = {.may_set = rows[i].may_set};
        const dgm_json *out = dgm_guard_metadata(&g, a, in, rows[i].of_event);
        assert_int_equal(g.removed, rows[i].removed);
        if (!rows[i].out)
            assert_ptr_equal(out, in);
        else if (!*rows[i].out)
            assert_null(out);
        else
            check_str(text_of(out, a), rows[i].out);
        check_str(text_of(in, a), rows[i].in); /* what was given is only read */
    }
}

static void everything_in_a_task_is_cleaned(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json *evil =
        dgm_json_parse_trusted(a, DGM_STR("{\"aion:x\":1,\"canonical_type\":\"T\"}"));
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("t"), .metadata = evil};
    dgm_message m = {.metadata = evil, .parts = {&part, 1}};
    dgm_artifact artifact = {
        .artifact_id = DGM_STR("aion:stream-delta"), .metadata = evil, .parts = {&part, 1}};
    dgm_task t = {.metadata = evil, .history = {&m, 1}, .artifacts = {&artifact, 1}};
    dgm_guard g = {0};
    dgm_guard_task(&g, a, &t);
    assert_null(t.metadata);
    check_str(text_of(t.history.at[0].metadata, a), "{\"canonical_type\":\"T\"}");
    check_str(text_of(t.history.at[0].parts.at[0].metadata, a), "{\"canonical_type\":\"T\"}");
    check_str(text_of(t.artifacts.at[0].metadata, a), "{\"canonical_type\":\"T\"}");
    check_str(text_of(t.artifacts.at[0].parts.at[0].metadata, a), "{\"canonical_type\":\"T\"}");
    check_str(t.artifacts.at[0].artifact_id, "aion:stream-delta");
    assert_ptr_equal(part.metadata, evil);
    assert_ptr_equal(m.metadata, evil);
    assert_int_equal(g.removed, 6); /* the Task's two, and one each of the others */
}

DGM_TEST_MAIN(dgm_test(keys_of_the_server), dgm_test_holds(members_are_removed, "R003-12 R000-31"),
              dgm_test_holds(everything_in_a_task_is_cleaned, "R003-12 R003-42"))
