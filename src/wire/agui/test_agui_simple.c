/* test_agui_simple.c - document 000's rows and examples in its own dialect, and back. */
#include "base/limits.h"
#include "canon/records_to_events.h"
#include "model/form.h"
#include "support/check.h"
#include "wire/agui/agui.h"
#include "wire/agui/agui_simple.h"

/* ---- records in, dialect out ------------------------------------------------------------------------------- */

static dgm_code put_line(void *arg, const dgm_simple_event *e)
{
    dgm_buf *b = arg;
    dgm_writer w = {.out = b, .format = DGM_FORMAT_AG_UI_SIMPLE};
    dgm_agui_simple_write(&w, e);
    dgm_buf_add_char(b, '\n');
    return DGM_OK;
}

struct path {
    dgm_simple_encoder *encoder;
    dgm_err *err;
};

static dgm_code encode(void *arg, const dgm_canon_event *e)
{
    struct path *r = arg;
    return dgm_simple_encoder_feed(r->encoder, e, r->err);
}

static void feed_line(dgm_arena *a, dgm_records_to_events *f, dgm_str line, dgm_mint *mint,
                      struct path *path)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = mint, .err = path->err};
    dgm_event e;
    yyjson_val *v;
    check_ok(dgm_json_read(a, line, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, path->err),
             *path->err);
    check_ok(dgm_form_read_event(&r, v, NULL, &e), *path->err);
    check_ok(dgm_records_to_events_feed(f, &e, (dgm_canon_sink){encode, path}, path->err),
             *path->err);
}

static void check_out(dgm_records_params p, const char *lines, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(&p);
    dgm_buf out;
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    dgm_auto(dgm_simple_encoder_free) dgm_simple_encoder *s =
        dgm_simple_encoder_new(put_line, &out);
    struct path path = {s, &err};
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        feed_line(a, f, (dgm_str){lines, n}, &mint, &path);
        lines += n + (lines[n] == '\n');
    }
    check_ok(dgm_records_to_events_end(f, (dgm_canon_sink){encode, &path}, &err), err);
    check_ok(dgm_simple_encoder_end(s, &err), err);
    check_str(out, want);
    dgm_buf_done(&out);
}

#define BARE ((dgm_records_params){.fragment = true})
#define STATUS(state, rest)                                                                        \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"}" rest "}}\n"
#define MESSAGE(role, parts, type)                                                                 \
    "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_" role "\",\"parts\":[" parts               \
    "],\"metadata\":{\"canonical_type\":\"" type "\"}}}\n"
#define CALL(id, args)                                                                             \
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"" id                                                \
    "\",\"name\":\"get_weather\",\"arguments\":" args "}]}}"
#define RESULT                                                                                     \
    "{\"data\":{\"tool_results\":[{\"call_id\":\"call_abc123\",\"name\":\"get_weather\","          \
    "\"output\":\"Sunny, 72°F\"}]}}"

/* Each row of the document's table by itself. */
static void all_rows_of_document_000(void **state)
{
    (void)state;
    check_out(BARE,
              "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
              "SUBMITTED\"}}}\n",
              "{\"type\":\"run-started\",\"threadId\":\"c\",\"runId\":\"t\"}\n");
    check_out(BARE, STATUS("SUBMITTED", ""),
              "{\"type\":\"run-started\",\"threadId\":\"c\",\"runId\":\"t\"}\n");
    check_out(BARE, STATUS("WORKING", ""),
              "{\"type\":\"step-started\",\"stepName\":\"working\"}\n");
    check_out(BARE,
              MESSAGE("USER", "{\"text\":\"What's the weather?\"}", "TextMessageContentEvent"),
              "{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":"
              "\"What's the weather?\"}}\n");
    check_out(BARE,
              MESSAGE("AGENT", "{\"text\":\"Sun\"}", "TextMessageChunkEvent")
                  MESSAGE("AGENT", "{\"text\":\"Sunny\"}", "TextMessageEndEvent"),
              "{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":\"assistant\","
              "\"delta\":\"Sun\"}\n"
              "{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":\"assistant\","
              "\"delta\":\"ny\"}\n"
              "{\"type\":\"text-message-end\",\"messageId\":\"m\",\"message\":{\"role\":"
              "\"assistant\",\"content\":\"Sunny\"}}\n");
    check_out(BARE, MESSAGE("AGENT", "{\"text\":\"Sunny\"}", "TextMessageEndEvent"),
              "{\"type\":\"text-message-end\",\"messageId\":\"m\",\"message\":{\"role\":"
              "\"assistant\",\"content\":\"Sunny\"}}\n");
    check_out(BARE,
              MESSAGE("AGENT", CALL("k", "{\"a\":1}"), "ToolCallArgsEvent")
                  MESSAGE("AGENT", CALL("k", "{\"b\":2}"), "ToolCallStartEvent"),
              "{\"type\":\"tool-call-args\",\"toolCall\":{\"id\":\"k\",\"name\":\"get_weather\","
              "\"arguments\":{\"a\":1}}}\n"
              "{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"k\",\"name\":\"get_weather\","
              "\"arguments\":{\"a\":1,\"b\":2}}}\n");
    check_out(BARE, MESSAGE("AGENT", CALL("k", "\"{\\\"a\\\"\""), "ToolCallArgsEvent"),
              "{\"type\":\"tool-call-args\",\"toolCall\":{\"id\":\"k\",\"name\":\"get_weather\","
              "\"arguments\":\"{\\\"a\\\"\"}}\n"
              "{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"k\",\"name\":\"get_weather\","
              "\"arguments\":\"{\\\"a\\\"\"}}\n");
    check_out(
        BARE,
        MESSAGE("AGENT", CALL("call_abc123", "{\"location\":\"Oakland\"}"), "ToolCallStartEvent"),
        "{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"call_abc123\",\"name\":\"get_"
        "weather\",\"arguments\":{\"location\":\"Oakland\"}}}\n");
    check_out(BARE, MESSAGE("USER", RESULT, "ToolCallResultEvent"),
              "{\"type\":\"tool-call-result\",\"toolCallId\":\"call_abc123\",\"result\":\"Sunny, "
              "72°F\"}\n");
    check_out(BARE, STATUS("INPUT_REQUIRED", ""),
              "{\"type\":\"step-finished\",\"stepName\":\"working\"}\n");
    check_out(BARE, STATUS("AUTH_REQUIRED", ""),
              "{\"type\":\"step-finished\",\"stepName\":\"working\"}\n");
    check_out(BARE, STATUS("COMPLETED", ""),
              "{\"type\":\"run-finished\",\"threadId\":\"c\",\"runId\":\"t\"}\n");
    check_out(BARE, STATUS("FAILED", ",\"metadata\":{\"error\":\"Connection timeout\"}"),
              "{\"type\":\"run-error\",\"message\":\"Connection timeout\",\"code\":\"failed\"}\n");
    check_out(
        BARE, STATUS("CANCELED", ""),
        "{\"type\":\"run-error\",\"message\":\"The task was canceled\",\"code\":\"canceled\"}\n");
    check_out(
        BARE, STATUS("REJECTED", ""),
        "{\"type\":\"run-error\",\"message\":\"The task was rejected\",\"code\":\"rejected\"}\n");
}

static void a_message_of_several_events_has_a_parent(void **state)
{
    (void)state;
    check_out(BARE, MESSAGE("AGENT", CALL("1", "{}") "," CALL("2", "\"x\""), "ToolCallStartEvent"),
              "{\"type\":\"tool-call-start\",\"parentMessageId\":\"m\",\"toolCall\":{\"id\":\"1\","
              "\"name\":\"get_weather\",\"arguments\":{}}}\n"
              "{\"type\":\"tool-call-start\",\"parentMessageId\":\"m\",\"toolCall\":{\"id\":\"2\","
              "\"name\":\"get_weather\",\"arguments\":\"x\"}}\n");
    check_out(BARE,
              MESSAGE("AGENT", "{\"text\":\"One moment.\"}," CALL("1", "{}"), "ToolCallStartEvent"),
              "{\"type\":\"text-message-end\",\"messageId\":\"m\",\"message\":{\"role\":"
              "\"assistant\",\"content\":\"One moment.\"}}\n"
              "{\"type\":\"tool-call-start\",\"parentMessageId\":\"m\",\"toolCall\":{\"id\":\"1\","
              "\"name\":\"get_weather\",\"arguments\":{}}}\n");
    check_out(BARE, MESSAGE("USER", RESULT ",{\"text\":\"So?\"}", "ToolCallResultEvent"),
              "{\"type\":\"tool-call-result\",\"toolCallId\":\"call_abc123\",\"result\":\"Sunny, "
              "72°F\"}\n"
              "{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":\"So?"
              "\"}}\n");
}

static void a_whole_run(void **state)
{
    (void)state;
    check_out(
        (dgm_records_params){.say_history = true},
        "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
        "SUBMITTED\"},\"history\":[{\"messageId\":\"u\",\"role\":\"ROLE_USER\",\"parts\":[{"
        "\"text\":\"Hi\"}]}]}}\n" STATUS("SUBMITTED", "") STATUS("WORKING", "") STATUS(
            "WORKING", "") "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":"
                           "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"Hel\"}]}}}\n"
                           "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                           "\"state\":\"TASK_STATE_COMPLETED\",\"message\":{\"messageId\":\"z\","
                           "\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"Hi!\"}]}}}}\n",
        "{\"type\":\"run-started\",\"threadId\":\"c\",\"runId\":\"t\"}\n"
        "{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n"
        "{\"type\":\"step-started\",\"stepName\":\"working\"}\n"
        "{\"type\":\"text-message-chunk\",\"messageId\":\"t-m1\",\"role\":\"assistant\",\"delta\":"
        "\"Hel\"}\n"
        "{\"type\":\"text-message-end\",\"messageId\":\"t-m1\",\"message\":{\"role\":\"assistant\","
        "\"content\":\"Hi!\"}}\n"
        "{\"type\":\"run-finished\",\"threadId\":\"c\",\"runId\":\"t\"}\n");
}

/* ---- dialect in ------------------------------------------------------------------------------------------------ */

static dgm_code read_text(dgm_arena *a, const char *text, dgm_simple_event *ret, dgm_err *err)
{
    dgm_reader r = {.arena = a, .err = err};
    yyjson_val *v;
    dgm_code rc;
    if ((rc = dgm_json_read(a, dgm_str_from(text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err)))
        return rc;
    return dgm_agui_simple_read(&r, v, NULL, ret);
}

/* Back as it was, and as the A2A event that it stands for. */
static const struct {
    const char *in, *model;
} rows[] = {
    {"{\"type\":\"run-started\",\"threadId\":\"c\",\"runId\":\"t\"}",
     "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}"
     "}"},
    {"{\"type\":\"step-started\",\"stepName\":\"working\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "WORKING\"}}}"},
    {"{\"type\":\"text-message-content\",\"messageId\":\"m\",\"message\":{\"role\":\"user\","
     "\"content\":\"x\"}}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}],"
     "\"metadata\":{\"canonical_type\":\"TextMessageContentEvent\"}}}"},
    {"{\"type\":\"text-message-content\",\"messageId\":\"m\",\"message\":{\"role\":\"user\","
     "\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\",\"source\":{\"type\":"
     "\"url\",\"value\":\"u\"}}]}}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"},{"
     "\"url\":\"u\"}],\"metadata\":{\"canonical_type\":\"TextMessageContentEvent\"}}}"},
    {"{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":\"assistant\",\"delta\":\"x\"}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}],"
     "\"metadata\":{\"canonical_type\":\"TextMessageChunkEvent\"}}}"},
    {"{\"type\":\"text-message-end\",\"messageId\":\"m\",\"message\":{\"role\":\"assistant\","
     "\"content\":\"x\"}}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}],"
     "\"metadata\":{\"canonical_type\":\"TextMessageEndEvent\"}}}"},
    {"{\"type\":\"tool-call-args\",\"parentMessageId\":\"m\",\"toolCall\":{\"id\":\"k\",\"name\":"
     "\"f\",\"arguments\":\"{\"}}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_"
     "calls\":[{\"call_id\":\"k\",\"name\":\"f\",\"arguments\":\"{\"}]}}],\"metadata\":{"
     "\"canonical_type\":\"ToolCallArgsEvent\"}}}"},
    {"{\"type\":\"tool-call-start\",\"parentMessageId\":\"m\",\"toolCall\":{\"id\":\"k\",\"name\":"
     "\"f\",\"arguments\":{\"n\":1.0}},\"later\":1}",
     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_"
     "calls\":[{\"call_id\":\"k\",\"name\":\"f\",\"arguments\":{\"n\":1.0}}]}}],\"metadata\":{"
     "\"canonical_type\":\"ToolCallStartEvent\"}}}"},
    {"{\"type\":\"step-finished\",\"stepName\":\"working\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "INPUT_REQUIRED\"}}}"},
    {"{\"type\":\"run-finished\",\"threadId\":\"c\",\"runId\":\"t\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "COMPLETED\"}}}"},
    {"{\"type\":\"run-error\",\"message\":\"no\",\"code\":\"failed\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "FAILED\"},\"metadata\":{\"error\":\"no\"}}}"},
    {"{\"type\":\"run-error\",\"message\":\"no\",\"code\":\"canceled\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "CANCELED\"}}}"},
    {"{\"type\":\"run-error\",\"message\":\"no\",\"code\":\"rejected\"}",
     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "REJECTED\"},\"metadata\":{\"error\":\"no\"}}}"},
};

static void events_come_back_and_become_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_simple_event e;
        dgm_event model;
        dgm_mint mint = {0};
        dgm_err err = {0};
        dgm_buf b;
        dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
        check_ok(read_text(a, rows[i].in, &e, &err), err);
        dgm_writer w = {.out = &b, .format = DGM_FORMAT_AG_UI_SIMPLE};
        dgm_agui_simple_write(&w, &e);
        check_str(b, rows[i].in);
        dgm_buf_clear(&b);
        dgm_simple_to_model(a, &e, (dgm_simple_run){DGM_STR("c"), DGM_STR("t")}, &mint, &model);
        w.format = DGM_FORMAT_A2A_10;
        dgm_form_write_event(&w, &model);
        check_str(b, rows[i].model);
        dgm_buf_done(&b);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *in, *at;
    } bad[] = {
        {"7", ""},
        {"{}", "/type"},
        {"{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}", "/type"},
        {"{\"type\":\"state-delta\"}", "/type"},
        {"{\"type\":\"run-started\",\"threadId\":\"c\"}", "/runId"},
        {"{\"type\":\"text-message-end\",\"messageId\":\"m\"}", "/message"},
        {"{\"type\":\"text-message-content\",\"message\":{\"role\":\"agent\",\"content\":\"\"}}",
         "/message/role"},
        {"{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\"}}", "/message/content"},
        {"{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":{}}}",
         "/message/content"},
        {"{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"k\",\"arguments\":{}}}",
         "/toolCall/name"},
        {"{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"k\",\"name\":\"f\",\"arguments\":[]}"
         "}",
         "/toolCall/arguments"},
        {"{\"type\":\"tool-call-result\",\"toolCallId\":\"k\"}", "/result"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_simple_event e;
        dgm_err err = {0};
        check_fails(read_text(a, bad[i].in, &e, &err), DGM_BAD_PARAMS, err, bad[i].at);
    }
}

static void a_text_over_the_limit_is_refused(void **state)
{
    static char text[1 << 20];
    dgm_buf out;
    dgm_err err = {0};
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_auto(dgm_simple_encoder_free) dgm_simple_encoder *s =
        dgm_simple_encoder_new(put_line, &out);
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    e.text.message_id = DGM_STR("m");
    check_ok(dgm_simple_encoder_feed(s, &e, &err), err);
    memset(text, 'x', sizeof text);
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.delta = (dgm_str){text, sizeof text};
    for (size_t i = 0; i < DGM_MAX_RECORD_BYTES / sizeof text; i++) {
        check_ok(dgm_simple_encoder_feed(s, &e, &err), err);
        dgm_buf_clear(&out);
    }
    check_fails(dgm_simple_encoder_feed(s, &e, &err), DGM_TOO_LARGE, err, "");
    dgm_buf_done(&out);
}

DGM_TEST_MAIN(dgm_test_holds(
                  all_rows_of_document_000,
                  "R000-05 R000-06 R000-07 R000-08 R000-09 R000-10 R000-11 R000-12 R000-13 R000-14 "
                  "R000-15 R000-16 R000-17 R000-23"),
              dgm_test_holds(a_message_of_several_events_has_a_parent, "R000-28 R000-29"),
              dgm_test_holds(a_whole_run, "R000-32"),
              dgm_test_holds(events_come_back_and_become_messages, "R000-20 R000-22"),
              dgm_test(what_is_wrong_is_named), dgm_test(a_text_over_the_limit_is_refused))
