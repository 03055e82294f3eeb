/* test_functions_more.c - tasks, artifacts, states with words, all dialects; and errors, with where they are. */
#include "base/err.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

typedef dgm_code function(const char *text, size_t n, char **ret_text, size_t *ret_n, dgm_err *err);

static dgm_code to_event(const char *text, size_t n, char **ret_text, size_t *ret_n, dgm_err *err)
{
    return dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_SIMPLE, ret_text, ret_n, err);
}

static void check_gives_(function *f, const char *in, const char *want, int line)
{
    char *got = NULL;
    size_t n = 0;
    dgm_err err = {0};
    if (f(in, strlen(in), &got, &n, &err)) {
        print_error("%s\n  failed at \"%s\": %s\n", in, err.at, err.msg);
        _fail(__FILE__, line);
    }
    check_bytes_(got, n, want, strlen(want), __FILE__, line);
    dgm_free(got);
}
#define check_gives(f, in, want) check_gives_(f, in, want, __LINE__)

static void check_refuses_(function *f, const char *in, dgm_code code, const char *at,
                           const char *words, size_t at_line, int line)
{
    char *untouched = (char *)(uintptr_t)1;
    size_t n = 77;
    dgm_err err = {0};
    dgm_code rc = f(in, strlen(in), &untouched, &n, &err);
    if (rc != code || err.code != code || strcmp(err.at, at) != 0 || !strstr(err.msg, words) ||
        err.line != at_line) {
        print_error("%s\n  code %d at \"%s\", line %zu: %s\n", in, rc, err.at, err.line, err.msg);
        _fail(__FILE__, line);
    }
    assert_true(untouched == (char *)(uintptr_t)1 &&
                n == 77); /* outputs are written on success only */
    assert_int_equal(f(in, strlen(in), &untouched, &n, NULL), code);
}
#define check_refuses(f, in, code, at, words, at_line)                                             \
    check_refuses_(f, in, code, at, words, at_line, __LINE__)

/* ---- dialects ------------------------------------------------------------------------------------------------ */

#define HI "{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}"

static void every_dialect_of_a2a_is_read(void **state)
{
    (void)state;
    check_gives(to_event, "{\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"Hi\"}]}",
                HI);
    check_gives(to_event, "{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}", HI);
    check_gives(to_event, "{\"role\":\"ROLE_USER\",\"content\":[{\"text\":\"Hi\"}]}", HI);
    check_gives(to_event, "{\"message\":{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}}",
                HI);
    check_gives(to_event,
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
                "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}}}",
                HI);
    check_gives(to_event,
                "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                "\"state\":\"TASK_STATE_WORKING\"}}}",
                "{\"type\":\"step-started\",\"stepName\":\"working\"}");
    check_gives(to_event, "[{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}]", "[" HI "]");
}

/* ---- tasks and what comes with states -------------------------------------------------------------------------- */

#define SAID(id, text)                                                                             \
    "{\"type\":\"text-message-end\",\"messageId\":\"" id "\",\"message\":{\"role\":\"assistant\"," \
    "\"content\":\"" text "\"}}"
#define RUN(type) "{\"type\":\"run-" type "\",\"threadId\":\"c\",\"runId\":\"t\"}"

static void a_task_says_all_it_holds(void **state)
{
    (void)state;
    static const char task[] =
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\","
        "\"message\":"
        "{\"messageId\":\"z\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"Sunny\"}]}},"
        "\"history\":[{\"messageId\":\"u\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]},"
        "{\"messageId\":\"d\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"Sun\"}],\"metadata\":{"
        "\"canonical_type\":\"TextMessageChunkEvent\"}}],"
        "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"Sunny\"}]},"
        "{\"artifactId\":\"b\",\"parts\":[{\"data\":{\"sun\":true}}]}]}";
    static const char events[] = "[" RUN(
        "started") "," HI ",{\"type\":\"text-message-chunk\",\"messageId\":\"d\",\"role\":"
                   "\"assistant\",\"delta\":\"Sun\"}," SAID("b", "{\\\"sun\\\": true}") "," SAID(
                       "z", "Sunny") "," RUN("finished") "]";
    check_gives(to_event, task, events);
    check_gives(dgm_compact_events, events,
                "[" RUN("started") "," HI "," SAID("b", "{\\\"sun\\\": true}") "," SAID(
                    "z", "Sunny") "," RUN("finished") "]");
}

#define STATUS(state, message)                                                                     \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\"," message "}}}}"
#define WORDS(text, type)                                                                          \
    "\"parts\":[{\"text\":\"" text "\"}],\"metadata\":{\"canonical_type\":\"" type "\"}"
#define STEP "{\"type\":\"step-started\",\"stepName\":\"working\"}"

static void words_that_come_with_a_state(void **state)
{
    (void)state;
    /* progress is no answer, unless it says that it is */
    check_gives(to_event, STATUS("WORKING", WORDS("Thinking...", "")), STEP);
    check_gives(to_event, STATUS("WORKING", WORDS("Hel", "TextMessageChunkEvent")),
                "[" STEP ",{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":"
                "\"assistant\",\"delta\":\"Hel\"}]");
    check_gives(to_event, STATUS("WORKING", WORDS("Hello", "TextMessageEndEvent")),
                "[" STEP "," SAID("m", "Hello") "]");
    check_gives(to_event,
                STATUS("WORKING", "\"parts\":[{\"data\":{\"type\":\"status-indicator\",\"text\":"
                                  "\"Looking\",\"displayAs\":\"loading\"}}]"),
                STEP);
    check_gives(to_event,
                STATUS("WORKING", "\"parts\":[{\"text\":\"hm\"},{\"data\":{\"tool_results\":[{"
                                  "\"call_id\":\"1\",\"output\":null}]}}]"),
                "[" STEP ",{\"type\":\"tool-call-result\",\"toolCallId\":\"1\",\"result\":null}]");
    check_gives(to_event, STATUS("COMPLETED", WORDS("Hello", "TextMessageChunkEvent")),
                "[" SAID("m", "Hello") "," RUN("finished") "]");
    check_gives(to_event, STATUS("INPUT_REQUIRED", WORDS("Which?", "")),
                "[" SAID("m", "Which?") ",{\"type\":\"step-finished\",\"stepName\":\"working\"}]");
    /* an error is reported once */
    check_gives(to_event, STATUS("FAILED", WORDS("No sun", "")),
                "{\"type\":\"run-error\",\"message\":\"No sun\",\"code\":\"failed\"}");
    check_gives(
        to_event,
        "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_FAILED\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\","
        "\"parts\":[{\"text\":\"Sorry.\"}]}},\"metadata\":{\"error\":\"No sun\"}}}",
        "[" SAID("m",
                 "Sorry.") ",{\"type\":\"run-error\",\"message\":\"No sun\",\"code\":\"failed\"}]");
}

#define ARTIFACT(text, rest)                                                                       \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":"      \
    "\"a\",\"parts\":[{\"text\":\"" text "\"}]}" rest "}}"

static void artifacts_come_in_pieces_or_at_once(void **state)
{
    (void)state;
    check_gives(to_event, ARTIFACT("Hel", ""),
                "{\"type\":\"text-message-chunk\",\"messageId\":\"a\",\"role\":\"assistant\","
                "\"delta\":\"Hel\"}");
    check_gives(to_event, ARTIFACT("lo", ",\"append\":true,\"lastChunk\":true"),
                "{\"type\":\"text-message-chunk\",\"messageId\":\"a\",\"role\":\"assistant\","
                "\"delta\":\"lo\"}");
    check_gives(to_event, ARTIFACT("Hello", ",\"lastChunk\":true"), SAID("a", "Hello"));
}

static void a_struct_gives_the_same(void **state)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("Hi")};
    dgm_message m = {.role = DGM_ROLE_USER, .parts = {&part, 1}};
    char *got = NULL;
    size_t n = 0;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_message_to_agui_event(&m, DGM_EVENTS_SIMPLE, &got, &n, &err), err);
    check_bytes_(got, n, HI, sizeof HI - 1, __FILE__, __LINE__);
    dgm_free(got);
    m.role = DGM_ROLE_UNSPECIFIED;
    check_fails(dgm_message_to_agui_event(&m, DGM_EVENTS_SIMPLE, &got, &n, &err), DGM_BAD_PARAMS,
                err, "/role");
}

static void custom_tools_keep_their_type(void **state)
{
    static const char in[] =
        "{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_calls\":[{"
        "\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"free text\",\"type\":\"custom\"}]}}]}";
    static const char event[] =
        "{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"1\",\"name\":\"f\",\"arguments\":"
        "\"free text\",\"type\":\"custom\"}}";
    static const char chat[] = "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
                               "\"1\",\"type\":\"custom\",\"custom\":{\"name\":\"f\",\"input\":"
                               "\"free text\"}}]}";
    char direct[300];
    (void)state;
    check_gives(to_event, in, event);
    check_gives(dgm_convert_agui_event_to_openai_chat, event, chat);
    snprintf(direct, sizeof direct, "[%s,[]]", chat);
    check_gives(dgm_convert_a2a_message_to_openai, in, direct);
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

static void errors_say_where(void **state)
{
    (void)state;
    function *chat = dgm_convert_agui_event_to_openai_chat;
    check_refuses(to_event, "", DGM_PARSE, "", "nothing", 0);
    check_refuses(to_event, "{\"role\":\n \"user\",", DGM_PARSE, "", "", 2);
    check_refuses(to_event, "7", DGM_BAD_PARAMS, "", "an object", 1);
    check_refuses(to_event, "{\"type\":\"x\"}", DGM_BAD_PARAMS, "", "not an A2A message", 1);
    check_refuses(to_event, "{\"role\":\"user\",\"content\":\"Hi\"}", DGM_BAD_PARAMS, "/content",
                  "", 1);
    check_refuses(to_event, "{\"tasks\":[]}", DGM_BAD_PARAMS, "", "not part of a conversation", 1);
    check_refuses(
        to_event,
        "[{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]},\n"
        " {\"role\":\"ROLE_AGENT\",\"parts\":[\n  {\"data\":{\"tool_calls\":[{\"call_id\":"
        "\"1\"}]}}]}]",
        DGM_BAD_PARAMS, "/1/parts/0/data/tool_calls/0/name", "missing", 3);
    check_refuses(to_event,
                  "{\"message\":{\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_calls\":[{"
                  "\"call_id\":\"1\",\"name\":\"f\",\"arguments\":7}]}}]}}",
                  DGM_BAD_PARAMS, "/message/parts/0/data/tool_calls/0/arguments", "an object", 1);
    for (int i = 0; i < 2; i++)
        check_refuses(i ? to_event : dgm_convert_a2a_message_to_openai,
                      "{\"role\":\"ROLE_AGENT\",\"content\":[{\"data\":{\"data\":{\"tool_calls\":[{"
                      "\"call_id\":\"1\"}]}}}]}",
                      DGM_BAD_PARAMS, "/content/0/data/data/tool_calls/0/name", "missing", 1);
    check_refuses(
        dgm_convert_a2a_message_to_openai,
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}",
        DGM_BAD_PARAMS, "", "this is a task", 1);
    check_refuses(chat, "{\"type\":\"run-starting\"}", DGM_BAD_PARAMS, "/type", "ag-ui-simple", 1);
    check_refuses(chat, "{}", DGM_BAD_PARAMS, "/type", "missing", 1);
    check_refuses(chat, "[null,\n[\"x\"]]", DGM_BAD_PARAMS, "/1/0", "an object", 2);
    check_refuses(chat, "[[[]]]", DGM_BAD_PARAMS, "/0/0", "an object", 1);
    check_refuses(chat, "[" HI ",\n{\"type\":\"RUN_ERROR\",\"message\":\"x\"}]", DGM_BAD_PARAMS,
                  "/1/type", "one of ag-ui", 2);
    check_refuses(chat, "[{\"type\":\"RUN_ERROR\",\"message\":\"x\"}," HI "]", DGM_BAD_PARAMS,
                  "/1/type", "those before", 1);
    check_refuses(chat,
                  "[{\"type\":\"RUN_ERROR\",\"message\":\"x\"},{\"type\":\"TEXT_MESSAGE_END\"}]",
                  DGM_BAD_PARAMS, "/1/messageId", "missing", 1);
    check_refuses(dgm_compact_events,
                  "[{\"type\":\"tool-call-args\",\"toolCall\":{\"id\":\"k\","
                  "\"name\":\"f\",\"arguments\":\"{\\\"a\"}}]",
                  DGM_BAD_PARAMS, "", "\"k\"", 1);
}

DGM_TEST_MAIN(dgm_test(every_dialect_of_a2a_is_read),
              dgm_test_holds(a_task_says_all_it_holds, "R000-23 R000-33 R000-34 R000-35"),
              dgm_test_holds(words_that_come_with_a_state, "R000-23 R000-31 R000-32"),
              dgm_test(artifacts_come_in_pieces_or_at_once), dgm_test(a_struct_gives_the_same),
              dgm_test_holds(custom_tools_keep_their_type, "R001-01"),
              dgm_test_holds(errors_say_where, "R000-37"))
