/* test_aisdk_stream.c - runs as UI message streams, and back. */
#include "canon/test_stories.h"
#include "wire/aisdk/aisdk.h"
#include "wire/test_codec.h"

#define SDK (&dgm_codec_aisdk)

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}" \
    "}\n"
#define STATUS(state, message)                                                                     \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"" message "}}}\n"
#define SAYS(text)                                                                                 \
    ",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"" text "\"}" \
    "]}"
#define PIECE(text)                                                                                \
    ",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"" text       \
    "\"}],\"metadata\":{\"canonical_type\":\"TextMessageChunkEvent\"}}"
#define INTERNAL(event)                                                                            \
    "{\"kind\":\"internal:" event ",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"

#define START                                                                                      \
    "{\"type\":\"start\",\"messageId\":\"t\",\"messageMetadata\":{\"contextId\":\"c\","            \
    "\"taskId\":\"t\"}}\n{\"type\":\"start-step\"}\n"
#define TEXT_START(id) "{\"type\":\"text-start\",\"id\":\"" id "\"}\n"
#define DELTA(id, t) "{\"type\":\"text-delta\",\"id\":\"" id "\",\"delta\":\"" t "\"}\n"
#define TEXT_END(id) "{\"type\":\"text-end\",\"id\":\"" id "\"}\n"
#define FINISH(reason, state)                                                                      \
    "{\"type\":\"finish-step\"}\n{\"type\":\"finish\",\"finishReason\":\"" reason                  \
    "\",\"messageMetadata\":{\"state\":\"" state "\"}}\n"
#define WORKING(text)                                                                              \
    "{\"type\":\"data-a2a-status\",\"id\":\"status\",\"data\":{\"state\":\"working\",\"type\":"    \
    "\"status-indicator\",\"text\":\"" text "\",\"displayAs\":\"loading\"}}\n"
#define NOW(state)                                                                                 \
    "{\"type\":\"data-a2a-status\",\"id\":\"status\",\"data\":{\"state\":\"" state "\"}}\n"

static void check_encode(const char *records, const char *want)
{
    dgm_stream_params params = {0};
    dgm_records_params from = {0};
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(SDK, &params, &from, records, &out);
    check_str(out, want);
    dgm_buf_done(&out);
}

static void document_004_says_hello_world_once(void **state)
{
    (void)state;
    check_encode(TASK STATUS("WORKING", SAYS("Processing your greeting..."))
                     STATUS("WORKING", PIECE("Hello")) STATUS("WORKING", PIECE(" world"))
                         STATUS("COMPLETED", SAYS("Hello world!")),
                 START WORKING("Processing your greeting...") TEXT_START("m") DELTA("m", "Hello")
                     DELTA("m", " world") DELTA("m", "!") TEXT_END("m") NOW("completed")
                         FINISH("stop", "completed"));
}

/* A part only grows: the other text is a part of its own, and the last one counts. */
static void a_final_text_that_differs_is_another_part(void **state)
{
    (void)state;
    check_encode(
        TASK STATUS("WORKING", PIECE("Hullo")) STATUS("COMPLETED", SAYS("Hello")),
        START TEXT_START("m") DELTA("m", "Hullo") TEXT_END(
            "m") "{\"type\":\"text-start\",\"id\":\"m.2\",\"providerMetadata\":{\"dragoman\":{"
                 "\"instead\":true}}}\n" DELTA("m.2", "Hello") TEXT_END("m.2")
                     FINISH("stop", "completed"));
}

#define CALL_START(id, name)                                                                       \
    "{\"type\":\"tool-input-start\",\"toolCallId\":\"" id "\",\"toolName\":\"" name                \
    "\",\"dynamic\":true}\n"
#define CALL_DELTA(id, t)                                                                          \
    "{\"type\":\"tool-input-delta\",\"toolCallId\":\"" id "\",\"inputTextDelta\":\"" t "\"}\n"
#define CALL(id, name, input, by)                                                                  \
    "{\"type\":\"tool-input-available\",\"toolCallId\":\"" id "\",\"toolName\":\"" name            \
    "\",\"input\":" input ",\"dynamic\":true" by "}\n"
#define OURS ",\"providerExecuted\":true"

static void tools_of_the_agent_are_not_the_callers_to_run(void **state)
{
    (void)state;
    check_encode(
        TASK INTERNAL("tool-start\",\"toolName\":\"f\",\"toolCallId\":\"1\",\"arguments\":{\"a\":"
                      "1}") INTERNAL("tool-start\",\"toolName\":\"g\",\"toolCallId\":\"2\"")
            INTERNAL("tool-complete\",\"toolCallId\":\"2\",\"success\":false,\"error\":\"no\"")
                INTERNAL("tool-complete\",\"toolCallId\":\"1\",\"success\":true,\"result\":{\"n\":"
                         "3}") STATUS("COMPLETED", SAYS("Three")),
        START CALL_START("1", "f") CALL_DELTA("1", "{\\\"a\\\": 1}") CALL_START("2", "g")
            CALL_DELTA("2", "{}") CALL(
                "2", "g", "{}",
                OURS) "{\"type\":\"tool-output-error\",\"toolCallId\":\"2\",\"errorText\":\"no\","
                      "\"dynamic\":true" OURS
                      "}\n" CALL("1", "f", "{\"a\":1}",
                                 OURS) "{\"type\":\"tool-output-available\",\"toolCallId\":\"1\","
                                       "\"output\":{\"n\":3},"
                                       "\"dynamic\":true" OURS "}\n"
                                       "{\"type\":\"finish-step\"}\n{\"type\":\"start-step\"}"
                                       "\n" TEXT_START("m") DELTA("m", "Three") TEXT_END("m")
                                           FINISH("stop", "completed"));
}

static void calls_that_wait_are_the_callers(void **state)
{
    (void)state;
    check_encode(
        TASK STATUS("INPUT_REQUIRED",
                    ",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{"
                    "\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{"
                    "\"},{\"call_id\":\"2\",\"name\":\"f\",\"arguments\":{}}]}}]}"),
        START CALL_START("1", "f") CALL_DELTA("1", "{") CALL_START("2", "f") CALL_DELTA(
            "2", "{}") "{\"type\":\"tool-input-error\",\"toolCallId\":\"1\",\"toolName\":\"f\","
                       "\"input\":\"{"
                       "\",\"errorText\":\"The arguments are not JSON\",\"dynamic\":true}\n" CALL(
                           "2", "f", "{}", "") FINISH("tool-calls", "input-required"));
}

static void ends_of_runs(void **state)
{
    (void)state;
    check_encode(TASK STATUS("CANCELED", ""),
                 START "{\"type\":\"finish-step\"}\n{\"type\":\"message-metadata\","
                       "\"messageMetadata\":{\"state\":\"canceled\"}}\n{\"type\":\"abort\","
                       "\"reason\":\"canceled\"}\n");
    check_encode(
        TASK STATUS("WORKING", SAYS("hm")) STATUS("FAILED", SAYS("No such city")),
        START WORKING("hm") NOW(
            "failed") "{\"type\":\"error\",\"errorText\":\"No such city\"}\n"
                      "{\"type\":\"finish-step\"}\n{\"type\":\"finish\",\"finishReason\":\"error\","
                      "\"messageMetadata\":{\"state\":\"failed\",\"code\":\"failed\"}}\n");
    check_encode(
        TASK STATUS("INPUT_REQUIRED", SAYS("Which city?")),
        START TEXT_START("m") DELTA("m", "Which city?") TEXT_END(
            "m") "{\"type\":\"finish-step\"}\n{\"type\":\"finish\",\"finishReason\":\"stop\","
                 "\"messageMetadata\":{\"state\":\"input-required\",\"interrupts\":[{\"id\":\"t\","
                 "\"reason\":\"input_required\",\"message\":\"Which city?\"}]}}\n");
}

static void artifacts_reasoning_and_state(void **state)
{
#define ARTIFACT(parts)                                                                            \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":"      \
    "\"a\",\"parts\":[" parts "]}}}\n"
    (void)state;
    check_encode(
        TASK INTERNAL("reasoning\",\"text\":\"hm\"") ARTIFACT(
            "{\"raw\":\"aGk=\",\"filename\":\"a.png\"},{\"url\":\"https://x/y\",\"mediaType\":"
            "\"text/html\"},{\"data\":{\"n\":1}}") INTERNAL("state\",\"value\":{\"n\":1}")
            STATUS("COMPLETED", ""),
        START
        "{\"type\":\"reasoning-start\",\"id\":\"t-t1\"}\n{\"type\":\"reasoning-delta\",\"id\":\"t-"
        "t1\",\"delta\":\"hm\"}\n"
        "{\"type\":\"file\",\"mediaType\":\"image/png\",\"filename\":\"a.png\",\"url\":\"data:"
        "image/png;base64,aGk=\"}\n"
        "{\"type\":\"file\",\"mediaType\":\"text/html\",\"url\":\"https://x/y\"}\n"
        "{\"type\":\"data-a2a-artifact\",\"id\":\"a\",\"data\":{\"artifactId\":\"a\",\"parts\":[{"
        "\"data\":{\"n\":1}}]}}\n"
        "{\"type\":\"data-state\",\"id\":\"state\",\"data\":{\"n\":1}}\n"
        "{\"type\":\"reasoning-end\",\"id\":\"t-t1\"}\n" FINISH("stop", "completed"));
}

/* ---- there and back ---------------------------------------------------------------------------------------- */

static void check_decode(const char *lines, const char *want)
{
    struct dump dump;
    dgm_stream_params params = {0};
    dgm_err err = {0};
    dgm_buf_init(&dump.b, SIZE_MAX);
    check_ok(
        decode_lines(SDK, &params, dgm_str_from(lines), (dgm_canon_sink){dump_event, &dump}, &err),
        err);
    check_str(dump.b, want);
    dgm_buf_done(&dump.b);
}

static void the_sdks_own_streams_are_read(void **state)
{
    (void)state;
    check_decode(
        START TEXT_START("0") DELTA("0", "a") TEXT_END("0")
            CALL("x", "f", "{\"a\":1}",
                 OURS) "{\"type\":\"tool-output-available\",\"toolCallId\":\"x\",\"output\":\"3\"}"
                       "\n{\"type\":\"finish-step\"}\n{\"type\":\"start-step\"}\n" TEXT_START("0")
                           DELTA("0", "b") TEXT_END("0") FINISH("stop", "completed"),
        "RUN_STARTED c t\nTEXT_MESSAGE_START 0\nTEXT_MESSAGE_CONTENT 0 \"a\"\n"
        "TEXT_MESSAGE_END 0\nTOOL_CALL_START x f parent=0\n"
        "TOOL_CALL_ARGS x \"{\\\"a\\\": 1}\" whole\nTOOL_CALL_END x\n"
        "TOOL_CALL_RESULT t-r1 x \"3\"\nTEXT_MESSAGE_START t-m2\n"
        "TEXT_MESSAGE_CONTENT t-m2 \"b\"\nTEXT_MESSAGE_END t-m2\nRUN_FINISHED c t\n");
    check_decode(START TEXT_START("0") "{\"type\":\"error\",\"errorText\":\"oh\"}\n",
                 "RUN_STARTED c t\nTEXT_MESSAGE_START 0\nTEXT_MESSAGE_END 0\nRUN_ERROR \"oh\"\n");
    check_decode(START "{\"type\":\"abort\"}\n", "RUN_STARTED c t\nRUN_FINISHED c t cancelled\n");
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *line, *at;
    } bad[] = {
        {"{\"type\":\"text-delta\",\"id\":\"0\",\"delta\":\"a\"}", "/id"},
        {"{\"type\":\"text-start\"}", "/id"},
        {"{\"type\":\"tool-output-available\",\"toolCallId\":\"0\",\"output\":1}", "/toolCallId"},
        {"{\"type\":\"tool-input-start\",\"toolCallId\":\"0\"}", "/toolName"},
        {"{\"type\":\"file\",\"mediaType\":\"a/b\"}", "/url"},
        {"{\"type\":\"file\",\"url\":\"data:a/b;base64,!\"}", "/url"},
        {"{\"id\":\"0\"}", "/type"},
        {"[]", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dump dump;
        dgm_stream_params params = {0};
        dgm_err err = {0};
        dgm_buf_init(&dump.b, SIZE_MAX);
        assert_int_equal(decode_lines(SDK, &params, dgm_str_from(bad[i].line),
                                      (dgm_canon_sink){dump_event, &dump}, &err),
                         DGM_BAD_PARAMS);
        assert_string_equal(err.at, bad[i].at);
        assert_true(err.msg[0]);
        dgm_buf_done(&dump.b);
    }
}

/* What a reader has in the end: texts, reasoning, calls with their arguments, results. */
static void dump_story(dgm_buf *b, const dgm_canon_fold *fold)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_messages all = dgm_canon_fold_messages(fold, a);
    for (size_t i = 0; i < all.n; i++) {
        const dgm_canon_message *m = &all.at[i];
        if (m->role == DGM_CANON_ASSISTANT && m->content.text.n)
            dump_text(b, m->content.text);
        if (m->role == DGM_CANON_REASONING)
            dump_text(b, m->content.text);
    }
    /* the stream does not name the message that a call belongs to */
    for (size_t i = 0; i < all.n; i++) {
        const dgm_canon_message *m = &all.at[i];
        for (size_t k = 0; k < m->tool_calls.n; k++) {
            dump_str(b, "call ", m->tool_calls.at[k].id);
            dump_text(b, m->tool_calls.at[k].arguments);
        }
        if (m->role == DGM_CANON_TOOL)
            dump_str(b, "result ", m->tool_call_id);
    }
}

static void random_stories_come_back(void **state)
{
    size_t compared = 0;
    (void)state;
    for (seed = 1; seed < 4000; seed++) {
        uint64_t kept = seed;
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_auto(dgm_canon_fold_free) dgm_canon_fold *said = dgm_canon_fold_new(1 << 20);
        dgm_auto(dgm_canon_fold_free) dgm_canon_fold *read = dgm_canon_fold_new(1 << 20);
        dgm_event events[20];
        dgm_records_params from = {.say_history = false};
        dgm_stream_params params = {0};
        dgm_err err = {0};
        dgm_buf out, want, got;
        dgm_buf_init(&out, SIZE_MAX), dgm_buf_init(&want, SIZE_MAX), dgm_buf_init(&got, SIZE_MAX);
        size_t n = 1 + roll(20);
        tell_story(a, events, n);
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
            dgm_records_to_events_new(&from);
        struct codec_path path = {.to = SDK,
                                  .fold = said,
                                  .arena = a,
                                  .encoder =
                                      SDK->encoder_new(&params, (dgm_frame_sink){put_line, &out})};
        dgm_code rc = DGM_OK;
        for (size_t i = 0; !rc && i < n; i++)
            rc = dgm_records_to_events_feed(f, &events[i],
                                            (dgm_canon_sink){codec_path_write, &path}, &err);
        if (!rc) {
            check_ok(dgm_records_to_events_end(f, (dgm_canon_sink){codec_path_write, &path}, &err),
                     err);
            check_ok(SDK->encoder_end(path.encoder, &err), err);
            struct codec_path back = {.to = SDK, .fold = read};
            /* strict as the SDK: no delta without a start, no result without a call */
            check_ok(decode_lines(SDK, &params, dgm_buf_str(&out),
                                  (dgm_canon_sink){codec_path_write, &back}, &err),
                     err);
            assert_int_equal(back.n_ends, 1);
            if (!path.n_snapshots && !path.n_again && !path.n_early) {
                dump_story(&want, said);
                dump_story(&got, read);
                check_same(got, want);
                compared++;
            }
        }
        SDK->encoder_free(path.encoder);
        dgm_map_done(&path.texts), dgm_map_done(&path.calls);
        dgm_buf_done(&out), dgm_buf_done(&want), dgm_buf_done(&got);
        seed = kept;
    }
    assert_true(compared > 1000);
}

DGM_TEST_MAIN(dgm_test(document_004_says_hello_world_once),
              dgm_test(a_final_text_that_differs_is_another_part),
              dgm_test(tools_of_the_agent_are_not_the_callers_to_run),
              dgm_test(calls_that_wait_are_the_callers), dgm_test(ends_of_runs),
              dgm_test(artifacts_reasoning_and_state), dgm_test(the_sdks_own_streams_are_read),
              dgm_test(what_is_wrong_is_refused), dgm_test(random_stories_come_back))
