/*
 * test_functions.c - the documents' functions on JSON text: the twelve rows, the examples, invalid input and
 * what is wrong.
 */
#include "base/err.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

typedef dgm_code function(const char *text, size_t n, char **ret_text, size_t *ret_n, dgm_err *err);

static dgm_code to_event(const char *text, size_t n, char **ret_text, size_t *ret_n, dgm_err *err)
{
    return dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_SIMPLE, ret_text, ret_n, err);
}

static dgm_code to_official(const char *text, size_t n, char **ret_text, size_t *ret_n,
                            dgm_err *err)
{
    return dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_OFFICIAL, ret_text, ret_n,
                                                 err);
}

/* want NULL: nothing comes out. */
static void check_gives_(function *f, const char *in, const char *want, const char *file, int line)
{
    char *got = (char *)(uintptr_t)1;
    size_t n = 99, len = strlen(in);
    dgm_err err = {0};
    char *exact = malloc(len + !len); /* reading beyond it is then seen by the sanitizer */
    assert_non_null(exact);
    memcpy(exact, in, len);
    dgm_code rc = f(exact, len, &got, &n, &err);
    free(exact);
    if (rc) {
        print_error("%s\n  failed at \"%s\": %s\n", in, err.at, err.msg);
        _fail(file, line);
    }
    if (!want) {
        if (got || n)
            print_error("%s\n  gives %s\n", in, got);
        _assert_true(!got && !n, "nothing", file, line);
        return;
    }
    _assert_true(got != NULL, in, file, line);
    check_bytes_(got, n, want, strlen(want), file, line);
    assert_int_equal(got[n], 0);
    dgm_free(got);
}
#define check_gives(f, in, want) check_gives_(f, in, want, __FILE__, __LINE__)

/* ---- document 000 --------------------------------------------------------------------------------------------- */

#define TASK(state)                                                                                \
    "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"" state "\"}}"
#define STATUS(state)                                                                              \
    "{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"      \
    "\"" state "\"},\"final\":false}"
#define MESSAGE(role, parts, type)                                                                 \
    "{\"kind\":\"message\",\"messageId\":\"m\",\"role\":\"" role "\",\"parts\":[" parts            \
    "],\"metadata\":{\"canonical_type\":\"" type "\"}}"
#define TEXT(text) "{\"kind\":\"text\",\"text\":\"" text "\"}"
#define CALL(id, arguments)                                                                        \
    "{\"kind\":\"data\",\"data\":{\"tool_calls\":[{\"call_id\":\"" id                              \
    "\",\"name\":\"get_weather\",\"arguments\":" arguments "}]}}"
#define RESULT                                                                                     \
    "{\"kind\":\"data\",\"data\":{\"tool_results\":[{\"call_id\":\"call_abc123\",\"name\":"        \
    "\"get_weather\",\"output\":\"Sunny, 72°F\"}]}}"
#define RUN(type) "{\"type\":\"run-" type "\",\"threadId\":\"c\",\"runId\":\"t\"}"
#define STEP(type) "{\"type\":\"step-" type "\",\"stepName\":\"working\"}"
#define ERROR(code, message)                                                                       \
    "{\"type\":\"run-error\",\"message\":\"" message "\",\"code\":\"" code "\"}"
#define SAID(type, id, role, content)                                                              \
    "{\"type\":\"text-message-" type "\"" id ",\"message\":{\"role\":\"" role                      \
    "\",\"content\":\"" content "\"}}"
#define CALLED(type, parent, id, arguments)                                                        \
    "{\"type\":\"tool-call-" type "\"" parent ",\"toolCall\":{\"id\":\"" id                        \
    "\",\"name\":\"get_weather\",\"arguments\":" arguments "}}"

/* A row of the table: the object, its event, its message (NULL: N/A). */
static const struct {
    const char *a2a, *event, *chat;
} rows[] = {
    {TASK("submitted"), RUN("started"), NULL},
    {STATUS("created"), RUN("started"), NULL},
    {STATUS("working"), STEP("started"), NULL},
    {MESSAGE("user", TEXT("What's the weather?"), "TextMessageContentEvent"),
     SAID("content", "", "user", "What's the weather?"),
     "{\"role\":\"user\",\"content\":\"What's the weather?\"}"},
    {MESSAGE("agent", TEXT("Sun"), "TextMessageChunkEvent"),
     "{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":\"assistant\",\"delta\":"
     "\"Sun\"}",
     NULL},
    {MESSAGE("agent", TEXT("Sunny"), "TextMessageEndEvent"),
     SAID("end", ",\"messageId\":\"m\"", "assistant", "Sunny"),
     "{\"role\":\"assistant\",\"content\":\"Sunny\"}"},
    {MESSAGE("agent", CALL("k", "{\"a\":1}"), "ToolCallArgsEvent"),
     CALLED("args", "", "k", "{\"a\":1}"), NULL},
    {MESSAGE("agent", CALL("k", "{\"a\":1.50}"), "ToolCallStartEvent"),
     CALLED("start", "", "k", "{\"a\":1.50}"),
     "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"k\",\"type\":\"function\","
     "\"function\":{\"name\":\"get_weather\",\"arguments\":\"{\\\"a\\\": 1.50}\"}}]}"},
    {MESSAGE("user", RESULT, "ToolCallResultEvent"),
     "{\"type\":\"tool-call-result\",\"toolCallId\":\"call_abc123\",\"result\":\"Sunny, 72°F\"}",
     "{\"role\":\"tool\",\"tool_call_id\":\"call_abc123\",\"content\":\"Sunny, 72°F\"}"},
    {STATUS("input-required"), STEP("finished"), NULL},
    {STATUS("completed"), RUN("finished"), NULL},
    {STATUS("failed"), ERROR("failed", "The task failed"), NULL},
    {STATUS("canceled"), ERROR("canceled", "The task was canceled"), NULL},
    {STATUS("rejected"), ERROR("rejected", "The task was rejected"), NULL},
    {STATUS("auth-required"), STEP("finished"), NULL},
};

static void every_row_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_gives(to_event, rows[i].a2a, rows[i].event);
        check_gives(dgm_convert_agui_event_to_openai_chat, rows[i].event, rows[i].chat);
    }
    check_gives(to_event, STATUS("unknown"), NULL);
}

/* As the document prints them: without ids, without a kind of the whole. */
static void the_examples(void **state)
{
    (void)state;
    static const char weather[] =
        "{\"role\": \"user\", \"parts\": [{\"kind\": \"text\", \"text\": \"What's the weather?\"}],"
        " \"metadata\": {\"canonical_type\": \"TextMessageContentEvent\"}}";
    static const char call[] =
        "{\"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": {\"tool_calls\": ["
        "{\"call_id\": \"call_abc123\", \"name\": \"get_weather\","
        " \"arguments\": {\"location\": \"Oakland\"}}]}}]}";
    static const char result[] = "{\"role\": \"user\", \"parts\": [" RESULT "]}";
    check_gives(to_event, weather, rows[3].event);
    check_gives(to_event, call, CALLED("start", "", "call_abc123", "{\"location\":\"Oakland\"}"));
    check_gives(dgm_convert_agui_event_to_openai_chat,
                CALLED("start", "", "call_abc123", "{\"location\":\"Oakland\"}"),
                "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_abc123\","
                "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":"
                "\"{\\\"location\\\": \\\"Oakland\\\"}\"}}]}");
    check_gives(to_event, result, rows[8].event);
    check_gives(dgm_convert_a2a_message_to_openai, weather,
                "[{\"role\":\"user\",\"content\":\"What's the weather?\"},[]]");
    check_gives(dgm_convert_a2a_message_to_openai, call,
                "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_abc123\","
                "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":"
                "\"{\\\"location\\\": \\\"Oakland\\\"}\"}}]},[]]");
    check_gives(dgm_convert_a2a_message_to_openai, result,
                "[null,[{\"role\":\"tool\",\"tool_call_id\":\"call_abc123\",\"content\":\"Sunny, "
                "72°F\"}]]");
}

/* ---- several events ------------------------------------------------------------------------------------------- */

#define TWO_CALLS CALL("1", "{}") "," CALL("2", "\"x\"")
#define PARENT ",\"parentMessageId\":\"m\""

static void events_of_one_message_become_one_message_again(void **state)
{
    (void)state;
    static const char events[] =
        "[" SAID("end", ",\"messageId\":\"m\"", "assistant", "Well.") "," CALLED(
            "start", PARENT, "1", "{}") "," CALLED("start", PARENT, "2", "\"x\"") "]";
    static const char chat[] =
        "[{\"role\":\"assistant\",\"content\":\"Well.\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
        "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}},{\"id\":\"2\","
        "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"x\"}}]}]";
    check_gives(to_event, MESSAGE("agent", TEXT("Well.") "," TWO_CALLS, ""), events);
    check_gives(dgm_compact_events, events, events);
    check_gives(dgm_convert_agui_event_to_openai_chat, events, chat);
    /* results in between: chat wants the calls together */
    check_gives(
        dgm_convert_agui_event_to_openai_chat,
        "[" CALLED("start", PARENT, "1", "{}") ",{\"type\":\"tool-call-result\","
                                               "\"toolCallId\":\"1\",\"result\":{\"a\":1}}," CALLED(
                                                   "start", PARENT, "2", "\"x\"") "]",
        "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
        "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}},{"
        "\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"get_weather\","
        "\"arguments\":\"x\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"{"
        "\\\"a\\\": 1}\"}]");
    /* calls of their own stay apart */
    check_gives(dgm_convert_agui_event_to_openai_chat,
                "[" CALLED("start", "", "1", "{}") "," CALLED("start", "", "2", "\"x\"") "]",
                "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
                "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}}]},{"
                "\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"2\",\"type\":"
                "\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"x\"}}]}]");
}

static void an_id_is_made_up_only_to_be_shared(void **state)
{
    static const char without[] = "{\"role\":\"agent\",\"parts\":[" TWO_CALLS "]}";
    char *first = NULL, *again = NULL;
    dgm_err err = {0};
    (void)state;
    check_ok(to_event(without, sizeof without - 1, &first, NULL, &err), err);
    check_ok(to_event(without, sizeof without - 1, &again, NULL, &err), err);
    assert_string_equal(first, again);
    char *parent = strstr(first, "\"parentMessageId\":\"");
    assert_non_null(parent);
    assert_memory_equal(parent, strstr(parent + 1, "\"parentMessageId\":\""), 19 + 36);
    dgm_free(first);
    dgm_free(again);
    check_gives(to_event, "{\"role\":\"agent\",\"parts\":[" TEXT("Hi") "]}",
                SAID("end", "", "assistant", "Hi"));
}

/* ---- compaction ----------------------------------------------------------------------------------------------- */

#define CHUNK(id, text)                                                                            \
    "{\"type\":\"text-message-chunk\",\"messageId\":\"" id                                         \
    "\",\"role\":\"assistant\",\"delta\":\"" text "\"}"

static void a_streamed_text_is_as_a_complete_one(void **state)
{
    (void)state;
    check_gives(dgm_compact_events, "[]", "[]");
    check_gives(dgm_compact_events, "null", "[]");
    check_gives(dgm_compact_events, "[null,[],[null]]", "[]");
    check_gives(dgm_compact_events,
                "[" CHUNK("m", "Sun") ",[" CHUNK("m", "ny") ",null],null," SAID(
                    "end", ",\"messageId\":\"m\"", "assistant", "Sunny") "]",
                "[" SAID("end", ",\"messageId\":\"m\"", "assistant", "Sunny") "]");
    check_gives(dgm_compact_events, "[" CHUNK("m", "Sun") "," CHUNK("m", "ny") "]",
                "[" SAID("end", ",\"messageId\":\"m\"", "assistant", "Sunny") "]");
    check_gives(
        dgm_compact_events,
        "[" CALLED("args", "", "k", "{\"a\":1}") "," CALLED(
            "args", "", "l",
            "\"{\\\"q\\\"\"") "," CALLED("args", "", "l",
                                         "\":2}\"") "," CALLED("start", "", "k",
                                                               "{\"b\":2}") "," CALLED("start", "",
                                                                                       "l",
                                                                                       "\"{"
                                                                                       "\\\"q\\\":"
                                                                                       "2}\"") "]",
        "[" CALLED("start", "", "k", "{\"a\":1,\"b\":2}") "," CALLED("start", "", "l",
                                                                     "\"{\\\"q\\\":2}\"") "]");
    check_gives(dgm_compact_events, RUN("started"), "[" RUN("started") "]");
}

#define OFFICIAL(type, rest) "{\"type\":\"" type "\"" rest "}"
#define OF_M ",\"messageId\":\"m\""

static void official_events_are_compacted_too(void **state)
{
    (void)state;
    check_gives(
        dgm_compact_events,
        "[" OFFICIAL("TEXT_MESSAGE_START", OF_M ",\"role\":\"assistant\"") "," OFFICIAL(
            "TEXT_MESSAGE_CONTENT", OF_M
            ",\"delta\":\"Sun\"") "," OFFICIAL("TEXT_MESSAGE_CONTENT", OF_M
                                               ",\"delta\":\"ny\"") "," OFFICIAL("TEXT_MESSAGE_END",
                                                                                 OF_M) "]",
        "[" OFFICIAL("TEXT_MESSAGE_START", OF_M ",\"role\":\"assistant\"") "," OFFICIAL(
            "TEXT_MESSAGE_CONTENT", OF_M ",\"delta\":\"Sunny\"") "," OFFICIAL("TEXT_MESSAGE_END",
                                                                              OF_M) "]");
    check_gives(dgm_compact_events,
                "[" OFFICIAL("TEXT_MESSAGE_CHUNK", OF_M ",\"delta\":\"Sun\"") "," OFFICIAL(
                    "TEXT_MESSAGE_CHUNK", ",\"delta\":\"ny\"") "]",
                "[" OFFICIAL("TEXT_MESSAGE_START", OF_M) "," OFFICIAL(
                    "TEXT_MESSAGE_CONTENT",
                    OF_M ",\"delta\":\"Sunny\"") "," OFFICIAL("TEXT_MESSAGE_END", OF_M) "]");
}

/* ---- AG-UI's own events -------------------------------------------------------------------------------------- */

#define CALL_EVENTS(parent)                                                                        \
    OFFICIAL("TOOL_CALL_START", ",\"toolCallId\":\"k\",\"toolCallName\":\"get_weather\"" parent)   \
    "," OFFICIAL(                                                                                  \
        "TOOL_CALL_ARGS",                                                                          \
        ",\"toolCallId\":\"k\",\"delta\":\"{\\\"a\\\": 1}\"") "," OFFICIAL("TOOL_CALL_END",        \
                                                                           ",\"toolCallId\":"      \
                                                                           "\"k\"")

static void the_official_events(void **state)
{
    (void)state;
    check_gives(to_official, rows[1].a2a,
                OFFICIAL("RUN_STARTED", ",\"threadId\":\"c\",\"runId\":\"t\",\"protocolVersion\":"
                                        "\"1.0\""));
    check_gives(to_official, rows[2].a2a, OFFICIAL("STEP_STARTED", ",\"stepName\":\"working\""));
    check_gives(
        to_official, rows[3].a2a,
        "[" OFFICIAL("TEXT_MESSAGE_START", OF_M ",\"role\":\"user\"") "," OFFICIAL(
            "TEXT_MESSAGE_CONTENT",
            OF_M ",\"delta\":\"What's the weather?\"") "," OFFICIAL("TEXT_MESSAGE_END", OF_M) "]");
    check_gives(to_official, rows[4].a2a,
                OFFICIAL("TEXT_MESSAGE_CHUNK", OF_M ",\"role\":\"assistant\",\"delta\":\"Sun\""));
    check_gives(to_official, rows[5].a2a,
                "[" OFFICIAL("TEXT_MESSAGE_START", OF_M ",\"role\":\"assistant\"") "," OFFICIAL(
                    "TEXT_MESSAGE_CONTENT",
                    OF_M ",\"delta\":\"Sunny\"") "," OFFICIAL("TEXT_MESSAGE_END", OF_M) "]");
    check_gives(to_official, rows[6].a2a,
                OFFICIAL("TOOL_CALL_CHUNK", ",\"toolCallId\":\"k\",\"toolCallName\":"
                                            "\"get_weather\",\"delta\":\"{\\\"a\\\": 1}\""));
    check_gives(to_official, MESSAGE("agent", CALL("k", "{\"a\":1}"), ""),
                "[" CALL_EVENTS(",\"parentMessageId\":\"m\"") "]");
    check_gives(to_official, rows[10].a2a,
                OFFICIAL("RUN_FINISHED", ",\"threadId\":\"c\",\"runId\":\"t\""));
}

static void official_events_become_messages(void **state)
{
    (void)state;
    function *chat = dgm_convert_agui_event_to_openai_chat;
    check_gives(
        chat,
        "[" OFFICIAL("TEXT_MESSAGE_START", OF_M) "," OFFICIAL(
            "TEXT_MESSAGE_CONTENT",
            OF_M ",\"delt"
                 "a\":"
                 "\"Sunny"
                 "\"") "," OFFICIAL("TEXT_MESSAGE_END",
                                    OF_M) "," CALL_EVENTS(",\"parentMessageId\":"
                                                          "\"m\"") "," OFFICIAL("TOOL"
                                                                                "_CAL"
                                                                                "L_"
                                                                                "RESU"
                                                                                "LT",
                                                                                ",\"m"
                                                                                "essa"
                                                                                "geId"
                                                                                "\":"
                                                                                "\"r"
                                                                                "\","
                                                                                "\"to"
                                                                                "olCa"
                                                                                "llId"
                                                                                "\":"
                                                                                "\"k"
                                                                                "\","
                                                                                "\"co"
                                                                                "nten"
                                                                                "t\":"
                                                                                "\"We"
                                                                                "t\"") "]",
        "[{\"role\":\"assistant\",\"content\":\"Sunny\",\"tool_calls\":[{\"id\":\"k\","
        "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"{"
        "\\\"a\\\": 1}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"Wet\"}]");
    /* an event that has not ended is not a message yet */
    check_gives(chat,
                "[" OFFICIAL("TEXT_MESSAGE_START", OF_M) "," OFFICIAL("TEXT_MESSAGE_CONTENT", OF_M
                                                                      ",\"delta\":\"Sunny\"") "]",
                "[]");
    check_gives(chat, OFFICIAL("TEXT_MESSAGE_CHUNK", OF_M ",\"delta\":\"Sunny\""), NULL);
    check_gives(chat, OFFICIAL("TEXT_MESSAGE_END", OF_M), NULL);
    check_gives(chat, OFFICIAL("RUN_FINISHED", ",\"threadId\":\"c\",\"runId\":\"t\""), NULL);
    check_gives(
        chat,
        "[" OFFICIAL("MESSAGES_SNAPSHOT",
                     ",\"messages\":[{\"id\":\"u\",\"role\":\"user\",\"content\":\"Hi\"}]") "]",
        "[{\"role\":\"user\",\"content\":\"Hi\"}]");
}

DGM_TEST_MAIN(
    dgm_test_holds(every_row_of_the_table,
                   "R000-06 R000-07 R000-08 R000-09 R000-10 R000-11 R000-12 R000-13 R000-14 "
                   "R000-15 R000-16 R000-17 R000-19 R000-21 R000-33 R000-38"),
    dgm_test_holds(the_examples, "R000-24 R000-25 R000-26 R001-02 R001-04 R001-05 R001-11"),
    dgm_test_holds(events_of_one_message_become_one_message_again, "R000-28 R000-33"),
    dgm_test_holds(an_id_is_made_up_only_to_be_shared, "R000-28"),
    dgm_test_holds(a_streamed_text_is_as_a_complete_one, "R000-33 R000-34 R000-35 R000-36"),
    dgm_test(official_events_are_compacted_too), dgm_test(the_official_events),
    dgm_test(official_events_become_messages))
