/* test_agui_stream.c - a stream of AG-UI events: chunks expanded, retired events renamed. */
#include "base/limits.h"
#include "support/check.h"
#include "wire/agui/agui.h"

struct out {
    dgm_buf b;
    dgm_arena *a;
};

static dgm_code write_line(void *arg, const dgm_canon_event *e)
{
    struct out *o = arg;
    dgm_writer w = {.out = &o->b, .format = DGM_FORMAT_AG_UI};
    dgm_agui_write_event(&w, e, (dgm_agui_peer){0}, o->a);
    dgm_buf_add_char(&o->b, '\n');
    return DGM_OK;
}

/* One event per line. */
static dgm_code run(const char *lines, struct out *o, dgm_err *err)
{
    dgm_auto(dgm_agui_decoder_free) dgm_agui_decoder *d = dgm_agui_decoder_new();
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_sink sink = {write_line, o};
    dgm_code rc;
    o->a = a;
    dgm_buf_init(&o->b, DGM_MAX_OUTPUT_BYTES);
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        dgm_reader r = {.arena = a, .err = err};
        yyjson_val *v;
        if ((rc = dgm_json_read(a, (dgm_str){lines, n}, 100000, "object_bytes", &v, err)) ||
            (rc = dgm_agui_decoder_feed(d, &r, v, sink)))
            return rc;
        lines += n + (lines[n] == '\n');
    }
    return dgm_agui_decoder_end(d, sink);
}

static void check_stream(const char *in, const char *want)
{
    struct out o;
    dgm_err err = {0};
    check_ok(run(in, &o, &err), err);
    check_str(o.b, want);
    dgm_buf_done(&o.b);
}

#define TEXT(rest) "{\"type\":\"TEXT_MESSAGE_CHUNK\"," rest "}\n"
#define TOOL(rest) "{\"type\":\"TOOL_CALL_CHUNK\"," rest "}\n"
#define START(id) "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"" id "\"}\n"
#define CONTENT(id, d)                                                                             \
    "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"" id "\",\"delta\":\"" d "\"}\n"
#define END(id) "{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"" id "\"}\n"
#define CALL(id) "{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"" id "\",\"toolCallName\":\"f\"}\n"
#define ARGS(id, d) "{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"" id "\",\"delta\":\"" d "\"}\n"
#define DONE(id) "{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"" id "\"}\n"

static void chunks_become_triads(void **state)
{
    (void)state;
    check_stream(TEXT("\"messageId\":\"a\",\"delta\":\"1\"") TEXT("\"delta\":\"2\"")
                     TEXT("\"messageId\":\"a\",\"role\":\"assistant\"")
                         TEXT("\"messageId\":\"b\",\"delta\":\"3\""),
                 START("a") CONTENT("a", "1") CONTENT("a", "2") END("a") START("b")
                     CONTENT("b", "3") END("b"));
    check_stream(TOOL("\"toolCallId\":\"a\",\"toolCallName\":\"f\"") TOOL("\"delta\":\"{\"")
                     TOOL("\"toolCallName\":\"f\",\"delta\":\"}\"")
                         TEXT("\"messageId\":\"m\",\"delta\":\"x\"")
                             TOOL("\"toolCallId\":\"a\",\"toolCallName\":\"f\",\"delta\":\" \""),
                 CALL("a") ARGS("a", "{") ARGS("a", "}") DONE("a") START("m") CONTENT("m", "x")
                     END("m") CALL("a") ARGS("a", " ") DONE("a"));
}

static void what_closes_a_chunk_and_what_does_not(void **state)
{
#define RAW "{\"type\":\"RAW\",\"event\":1}\n"
#define CUSTOM "{\"type\":\"CUSTOM\",\"name\":\"x\",\"value\":1}\n"
#define FINISH "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n"
    (void)state;
    check_stream(TEXT("\"messageId\":\"a\",\"delta\":\"1\"") RAW TEXT("\"delta\":\"2\"") CUSTOM,
                 START("a") CONTENT("a", "1") RAW CONTENT("a", "2") END("a") CUSTOM);
    check_stream(TEXT("\"messageId\":\"a\",\"delta\":\"1\"") FINISH,
                 START("a") CONTENT("a", "1") END("a") FINISH);
}

static void every_speaker_has_a_lane(void **state)
{
    (void)state;
    check_stream(
        TEXT("\"messageId\":\"a\",\"delta\":\"1\"")
            TEXT("\"messageId\":\"b\",\"delta\":\"2\",\"subagentRunId\":\"s\"")
                TEXT("\"delta\":\"3\"") TEXT("\"delta\":\"4\",\"subagentRunId\":\"s\""),
        START("a") CONTENT(
            "a",
            "1") "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"b\",\"subagentRunId\":\"s\"}\n"
                 "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"b\",\"delta\":\"2\","
                 "\"subagentRunId\":\"s\"}\n" CONTENT(
                     "a",
                     "3") "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"b\",\"delta\":\"4\","
                          "\"subagentRunId\":\"s\"}\n" END("a") "{\"type\":\"TEXT_MESSAGE_END\","
                                                                "\"messageId\":\"b\","
                                                                "\"subagentRunId\":\"s\"}\n");
}

static void chunks_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *in, *at;
    } bad[] = {
        {TEXT("\"delta\":\"x\""), "/messageId"},
        {TOOL("\"toolCallName\":\"f\""), "/toolCallId"},
        {TOOL("\"toolCallId\":\"c\""), "/toolCallName"},
        {TEXT("\"messageId\":\"a\"") TEXT("\"role\":\"user\""), "/role"},
        {TEXT("\"messageId\":\"a\",\"name\":\"n\"") TEXT("\"name\":\"o\""), "/name"},
        {TOOL("\"toolCallId\":\"c\",\"toolCallName\":\"f\"") TOOL("\"toolCallName\":\"g\""),
         "/toolCallName"},
        {TOOL("\"toolCallId\":\"c\",\"toolCallName\":\"f\"") TOOL("\"parentMessageId\":\"g\""),
         "/parentMessageId"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct out o;
        dgm_err err = {0};
        check_fails(run(bad[i].in, &o, &err), DGM_BAD_PARAMS, err, bad[i].at);
        dgm_buf_done(&o.b);
    }
}

static void thinking_becomes_reasoning(void **state)
{
#define R(type, id) "{\"type\":\"" type "\",\"messageId\":\"" id "\"}\n"
    (void)state;
    check_stream(
        "{\"type\":\"THINKING_START\",\"title\":\"hm\"}\n"
        "{\"type\":\"THINKING_TEXT_MESSAGE_START\"}\n"
        "{\"type\":\"THINKING_TEXT_MESSAGE_CONTENT\",\"delta\":\"x\",\"messageId\":\"y\"}\n"
        "{\"type\":\"THINKING_TEXT_MESSAGE_END\"}\n"
        "{\"type\":\"THINKING_TEXT_MESSAGE_START\"}\n"
        "{\"type\":\"THINKING_TEXT_MESSAGE_END\"}\n"
        "{\"type\":\"NOBODY_KNOWS\"}\n"
        "{\"type\":\"THINKING_END\"}",
        R("REASONING_START",
          "thinking-1") "{\"type\":\"REASONING_MESSAGE_START\",\"messageId\":\"thinking-message-"
                        "1\","
                        "\"role\":\"reasoning\"}\n"
                        "{\"type\":\"REASONING_MESSAGE_CONTENT\",\"messageId\":\"thinking-message-"
                        "1\","
                        "\"delta\":\"x\"}\n" R(
                            "REASONING_MESSAGE_END",
                            "thinking-message-1") "{\"type\":\"REASONING_MESSAGE_START\","
                                                  "\"messageId\":\"thinking-message-2\","
                                                  "\"role\":\"reasoning\"}\n" R(
                                                      "REASONING_MESSAGE_END", "thinking-message-2")
                                                      R("REASONING_END", "thinking-1"));
}

DGM_TEST_MAIN(dgm_test(chunks_become_triads), dgm_test(what_closes_a_chunk_and_what_does_not),
              dgm_test(every_speaker_has_a_lane), dgm_test(chunks_that_make_no_sense_are_refused),
              dgm_test(thinking_becomes_reasoning))
