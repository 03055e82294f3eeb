/* test_compact.c - deltas are merged: document 000's events and AG-UI's own. */
#include "canon/compact.h"
#include "canon/message_content.h"
#include "canon/test_dump.h"
#include "canon/verify.h"

/* ---- document 000's: map, reduce ----------------------------------------------------------------------------- */

static void dump_simple(dgm_buf *b, const dgm_simple_event *e)
{
    dgm_buf_add_str(b, dgm_str_from(dgm_simple_type(e->kind)));
    dump_str(b, "", e->message_id);
    dump_str(b, "parent=", e->parent_message_id);
    if (e->delta.p)
        dump_text(b, e->delta);
    dump_content(b, &e->message.content);
    if (e->call.id.p) {
        dump_str(b, "", e->call.id);
        dump_json(b, "", e->call.arguments);
    }
    dump_str(b, "", e->tool_call_id);
    dump_json(b, "", e->result);
    dgm_buf_add_char(b, '\n');
}

/* Messages, a line each, become events; those are compacted. */
static dgm_code run(const char *lines, dgm_buf *out, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_simple_events all = {0}, some, compacted;
    dgm_mint mint = {.count = 0};
    dgm_code rc;
    dgm_buf_init(out, SIZE_MAX);
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = &mint, .err = err};
        dgm_message m = {0};
        yyjson_val *v;
        check_ok(dgm_json_read(a, (dgm_str){lines, n}, DGM_MAX_OBJECT_BYTES, "", &v, err), *err);
        check_ok(dgm_shape_read(&r, &dgm_form_message, v, NULL, &m), *err);
        if (!dgm_json_get(v, DGM_STR("messageId")))
            m.message_id = (dgm_str){0};
        if ((rc = dgm_simple_from_message(a, &m, false, NULL, &some, err)))
            return rc;
        for (size_t i = 0; i < some.n; i++) {
            all.at = dgm_list_grow(a, all.at, all.n, sizeof *all.at);
            all.at[all.n++] = some.at[i];
        }
        lines += n + (lines[n] == '\n');
    }
    if ((rc = dgm_compact_simple(a, &all, &compacted, err)))
        return rc;
    for (size_t i = 0; i < compacted.n; i++)
        dump_simple(out, &compacted.at[i]);
    return DGM_OK;
}

static void check_compacts(const char *lines, const char *want)
{
    dgm_buf out;
    dgm_err err = {0};
    check_ok(run(lines, &out, &err), err);
    check_str(out, want);
    dgm_buf_done(&out);
}

#define M(id, role, parts, type)                                                                   \
    "{" id "\"role\":\"ROLE_" role "\",\"parts\":[" parts                                          \
    "],\"metadata\":{\"canonical_type\":\"" type "\"}}\n"
#define ID(id) "\"messageId\":\"" id "\","
#define TEXT(t) "{\"text\":\"" t "\"}"
#define CHUNK(id, t) M(id, "AGENT", TEXT(t), "TextMessageChunkEvent")
#define ENDS(id, t) M(id, "AGENT", TEXT(t), "TextMessageEndEvent")
#define USER(t) M("", "USER", TEXT(t), "TextMessageContentEvent")
#define CALL(id, args)                                                                             \
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":" args "}]}}"
#define ARGS(id, args) M("", "AGENT", CALL(id, args), "ToolCallArgsEvent")
#define START(id, args) M("", "AGENT", CALL(id, args), "ToolCallStartEvent")

static void chunks_before_an_end_vanish(void **state)
{
    (void)state;
    check_compacts(CHUNK("", "Hel") CHUNK("", "lo") ENDS("", "Hello"),
                   "text-message-end \"Hello\"\n");
    check_compacts(CHUNK(ID("a"), "Hel") CHUNK(ID("a"), "lo") ENDS(ID("a"), "Bye"),
                   "text-message-end a \"Bye\"\n");
    /* each chunk has an id of its own: the ids are ignored */
    check_compacts(CHUNK(ID("a"), "Hel") CHUNK(ID("b"), "lo") ENDS(ID("z"), "Hello!"),
                   "text-message-end z \"Hello!\"\n");
    /* two at once, and something in between */
    check_compacts(CHUNK(ID("a"), "1") CHUNK(ID("b"), "2") START("k", "{}") ENDS(ID("b"), "22")
                       CHUNK(ID("a"), "1") ENDS(ID("a"), "11"),
                   "tool-call-start k {}\ntext-message-end b \"22\"\ntext-message-end a \"11\"\n");
}

static void chunks_without_an_end_survive(void **state)
{
    (void)state;
    check_compacts(CHUNK("", "Hel") CHUNK("", "lo"), "text-message-end \"Hello\"\n");
    check_compacts(CHUNK(ID("a"), "Hel") CHUNK(ID("b"), "lo"), "text-message-end a \"Hello\"\n");
    check_compacts(CHUNK(ID("a"), "1") CHUNK(ID("b"), "2") CHUNK(ID("a"), "3"),
                   "text-message-end a \"13\"\ntext-message-end b \"2\"\n");
    check_compacts(
        CHUNK("", "Hel") USER("?") ENDS("", "Hello"),
        "text-message-end \"Hel\"\ntext-message-content \"?\"\ntext-message-end \"Hello\"\n");
    check_compacts(CHUNK(ID("a"), "Hi") ENDS(ID("b"), "Bye"),
                   "text-message-end a \"Hi\"\ntext-message-end b \"Bye\"\n");
    check_compacts(ENDS(ID("a"), "Hi") CHUNK(ID("a"), " again"),
                   "text-message-end a \"Hi\"\ntext-message-end a \" again\"\n");
}

static void arguments_merge(void **state)
{
    (void)state;
    /* objects by key, in order, the final call's win */
    check_compacts(ARGS("1", "{\"x\":1,\"y\":1}") ARGS("1", "{\"y\":2,\"z\":2}")
                       START("1", "{\"z\":3,\"w\":1.0}"),
                   "tool-call-start 1 {\"x\":1,\"y\":2,\"z\":3,\"w\":1.0}\n");
    /* texts by order, split within an escape, a character's neighbour, a number */
    check_compacts(ARGS("1", "\"{\\\"q\\\": \\\"\\\\u00\"") ARGS("1", "\"e9 72°\"")
                       ARGS("1", "\"F\\\", \\\"n\\\": 1\"") START("1", "\"2}\""),
                   "tool-call-start 1 \"{\\\"q\\\": \\\"\\\\u00e9 72°F\\\", \\\"n\\\": 12}\"\n");
    /* the final text is complete */
    check_compacts(ARGS("1", "\"{\\\"a\\\"\"") START("1", "\"{\\\"a\\\":1}\""),
                   "tool-call-start 1 \"{\\\"a\\\":1}\"\n");
    check_compacts(ARGS("1", "\"{\\\"a\\\":1}\"") START("1", "\"\""),
                   "tool-call-start 1 \"{\\\"a\\\":1}\"\n");
    check_compacts(ARGS("1", "\"{\\\"a\\\":1}\"") START("1", "{\"b\":2}"),
                   "tool-call-start 1 {\"a\":1,\"b\":2}\n");
}

static void interleaved_calls_stay_apart(void **state)
{
    (void)state;
    check_compacts(ARGS("1", "{\"a\":1}") ARGS("2", "\"{\"") ARGS("1", "{\"b\":2}")
                       ARGS("2", "\"}\"") START("2", "\"\"") START("1", "{}"),
                   "tool-call-start 1 {\"a\":1,\"b\":2}\ntool-call-start 2 \"{}\"\n");
    /* the same id again is another call */
    check_compacts(ARGS("1", "{\"a\":1}") START("1", "{}") ARGS("1", "{\"b\":1}") START("1", "{}"),
                   "tool-call-start 1 {\"a\":1}\ntool-call-start 1 {\"b\":1}\n");
}

#define RESULT(id)                                                                                 \
    M("", "USER", "{\"data\":{\"tool_results\":[{\"call_id\":\"" id "\",\"output\":\"r\"}]}}",     \
      "ToolCallResultEvent")

static void pieces_behind_a_start(void **state)
{
    dgm_buf out;
    dgm_err err = {0};
    (void)state;
    /* the Start is the final call: its keys win, and come first */
    check_compacts(START("1", "{\"b\":2}") ARGS("1", "{\"b\":3,\"a\":1}"),
                   "tool-call-start 1 {\"b\":2,\"a\":1}\n");
    check_compacts(START("1", "\"{\\\"a\\\":\"") ARGS("1", "\"1\"") ARGS("1", "\"}\""),
                   "tool-call-start 1 \"{\\\"a\\\":1}\"\n");
    /* behind a result, or in another turn, the id is another call's */
    check_compacts(START("1", "{\"b\":2}") RESULT("1") ARGS("1", "{\"a\":1}"),
                   "tool-call-start 1 {\"b\":2}\ntool-call-result 1 \"r\"\n"
                   "tool-call-start 1 {\"a\":1}\n");
    check_compacts(ARGS("1", "{\"b\":2}") RESULT("1") START("1", "{\"a\":1}"),
                   "tool-call-start 1 {\"b\":2}\ntool-call-result 1 \"r\"\n"
                   "tool-call-start 1 {\"a\":1}\n");
    check_compacts(START("1", "{\"b\":2}") USER("?") ARGS("1", "{\"a\":1}"),
                   "tool-call-start 1 {\"b\":2}\ntext-message-content \"?\"\n"
                   "tool-call-start 1 {\"a\":1}\n");
    check_fails(run(START("c", "{\"b\":2}") ARGS("c", "\"{\\\"a\\\"\""), &out, &err),
                DGM_BAD_PARAMS, err, "");
    dgm_buf_done(&out);
}

static void pieces_without_a_start(void **state)
{
    dgm_buf out;
    dgm_err err = {0};
    (void)state;
    check_compacts(ARGS("1", "{\"a\":1}") ARGS("1", "{\"b\":1}"),
                   "tool-call-start 1 {\"a\":1,\"b\":1}\n");
    check_compacts(ARGS("1", "\"{\\\"a\\\"\"") ARGS("1", "\":1}\""),
                   "tool-call-start 1 \"{\\\"a\\\":1}\"\n");
    check_fails(run(ARGS("call_7", "\"{\\\"a\\\"\""), &out, &err), DGM_BAD_PARAMS, err, "");
    assert_non_null(strstr(err.msg, "call_7"));
    dgm_buf_done(&out);
}

static void messages_of_several_events(void **state)
{
    (void)state;
    check_compacts(
        M(ID("m"), "AGENT", TEXT("One moment.") "," CALL("1", "{}") "," CALL("2", "{\"x\":1}"),
          "ToolCallStartEvent") M(ID("u"), "USER",
                                  "{\"data\":{\"tool_results\":[{\"call_id\":\"1\",\"output\":7},{"
                                  "\"call_id\":\"2\"}]}}," TEXT("So?"),
                                  "ToolCallResultEvent")
            M(ID("n"), "AGENT", CALL("3", "{}"), "TextMessageChunkEvent"),
        "text-message-end m \"One moment.\"\ntool-call-start parent=m 1 {}\n"
        "tool-call-start parent=m 2 {\"x\":1}\ntool-call-result 1 7\ntool-call-result 2 \"\"\n"
        "text-message-content \"So?\"\ntool-call-start 3 {}\n");
}

/* Whatever is compacted stays as it is. */
static void compacting_twice_changes_nothing(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_simple_event in[] = {
        {.kind = DGM_SIMPLE_RUN_STARTED},
        {.kind = DGM_SIMPLE_TEXT_CHUNK, .delta = DGM_STR("x")},
        {.kind = DGM_SIMPLE_STEP_STARTED},
        {.kind = DGM_SIMPLE_CALL_ARGS, .call = {DGM_STR("1"), DGM_STR("f"), NULL, NULL}},
        {.kind = DGM_SIMPLE_RUN_FINISHED},
    };
    dgm_simple_events list = {in, 5}, once, twice;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_compact_simple(a, &list, &once, &err), err);
    check_ok(dgm_compact_simple(a, &once, &twice, &err), err);
    assert_int_equal(once.n, 5);
    assert_int_equal(twice.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(once.at[i].kind, twice.at[i].kind);
    assert_int_equal(once.at[1].kind, DGM_SIMPLE_TEXT_END);
    assert_int_equal(once.at[3].kind, DGM_SIMPLE_CALL_START);
}

/* ---- AG-UI's own ------------------------------------------------------------------------------------------------- */

static dgm_canon_event text(dgm_canon_kind kind, const char *id, const char *delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = dgm_str_from(id);
    e.text.delta = dgm_str_from(delta);
    return e;
}

static dgm_canon_event call(dgm_canon_kind kind, const char *id, const char *delta)
{
    dgm_canon_event e = {.kind = kind};
    e.call.tool_call_id = dgm_str_from(id);
    e.call.delta = dgm_str_from(delta);
    return e;
}

#define K(kind) DGM_CANON_##kind

static void official_streams_are_joined(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_event in[] = {
        {.kind = K(RUN_STARTED)},
        text(K(TEXT_MESSAGE_START), "m", NULL),
        text(K(TEXT_MESSAGE_CONTENT), "m", "Hel"),
        {.kind = K(CUSTOM)},
        text(K(TEXT_MESSAGE_CONTENT), "m", "lo"),
        call(K(TOOL_CALL_START), "1", NULL),
        call(K(TOOL_CALL_START), "2", NULL),
        call(K(TOOL_CALL_ARGS), "1", "{"),
        call(K(TOOL_CALL_ARGS), "2", "{}"),
        text(K(TEXT_MESSAGE_END), "m", NULL),
        call(K(TOOL_CALL_ARGS), "1", "}"),
        call(K(TOOL_CALL_END), "2", NULL),
        call(K(TOOL_CALL_END), "1", NULL),
        text(K(TEXT_MESSAGE_START), "m", NULL), /* goes on */
        text(K(TEXT_MESSAGE_CONTENT), "m", "!"),
        {.kind = K(MESSAGES_SNAPSHOT)},
        text(K(TEXT_MESSAGE_CONTENT), "m", "a"),
        text(K(TEXT_MESSAGE_CONTENT), "m", "b"),
        text(K(TEXT_MESSAGE_END), "m", NULL),
        {.kind = K(RUN_FINISHED)},
    };
    dgm_canon_events list = {in, sizeof in / sizeof *in}, out;
    struct dump d;
    dgm_auto(dgm_verify_free) dgm_verify *v = dgm_verify_new();
    dgm_err err = {0};
    (void)state;
    dgm_compact_canon(a, &list, &out);
    dgm_buf_init(&d.b, SIZE_MAX);
    for (size_t i = 0; i < out.n; i++) {
        dump_event(&d, &out.at[i]);
        assert_int_equal(dgm_verify_feed(v, &out.at[i], &err), DGM_ORDER_FINE);
    }
    check_str(d.b, "RUN_STARTED\nTEXT_MESSAGE_START m\nTEXT_MESSAGE_CONTENT m \"Hello\" whole\n"
                   "TEXT_MESSAGE_END m\nCUSTOM\nTOOL_CALL_START 1\nTOOL_CALL_ARGS 1 \"{}\" whole\n"
                   "TOOL_CALL_END 1\nTOOL_CALL_START 2\nTOOL_CALL_ARGS 2 \"{}\" whole\n"
                   "TOOL_CALL_END 2\nTEXT_MESSAGE_START m\nTEXT_MESSAGE_CONTENT m \"!\"\n"
                   "MESSAGES_SNAPSHOT\nTEXT_MESSAGE_CONTENT m \"ab\"\nTEXT_MESSAGE_END m\n"
                   "RUN_FINISHED\n");
    dgm_buf_done(&d.b);
}

DGM_TEST_MAIN(dgm_test_holds(chunks_before_an_end_vanish, "R000-34"),
              dgm_test_holds(chunks_without_an_end_survive, "R000-35"),
              dgm_test_holds(arguments_merge, "R000-36"),
              dgm_test_holds(interleaved_calls_stay_apart, "R000-36"),
              dgm_test_holds(pieces_behind_a_start, "R000-35 R000-36"),
              dgm_test_holds(pieces_without_a_start, "R000-37"),
              dgm_test_holds(messages_of_several_events, "R000-28 R000-29"),
              dgm_test(compacting_twice_changes_nothing), dgm_test(official_streams_are_joined))
