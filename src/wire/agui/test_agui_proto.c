/* test_agui_proto.c - events in protobuf: every member there and back, and what is broken. */
#include "base/limits.h"
#include "canon/test_stories.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "wire/test_codec.h"

static void check_there_and_back(const char *json, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_buf frame, back;
    yyjson_val *v;
    bool known;
    dgm_buf_init(&frame, SIZE_MAX), dgm_buf_init(&back, SIZE_MAX);
    check_ok(dgm_json_read(a, dgm_str_from(json), SIZE_MAX, "", &v, &err), err);
    assert_true(dgm_agui_proto_write(&frame, v));
    assert_int_equal(dgm_agui_proto_length(frame.p), frame.n - 4);
    check_ok(dgm_agui_proto_read((dgm_str){frame.p + 4, frame.n - 4}, &back, &known, &err), err);
    assert_true(known);
    check_str(back, want ? want : json);
    /* what is cut short is refused, or an event with less in it: never read past its end */
    for (size_t n = 0; n + 4 < frame.n; n++) {
        dgm_auto(dgm_arena_free) dgm_arena *cut = dgm_arena_new();
        char *copy = dgm_arena_alloc_raw(cut, n + 1);
        memcpy(copy, frame.p + 4, n);
        dgm_buf_clear(&back);
        dgm_agui_proto_read((dgm_str){copy, n}, &back, &known, &err);
    }
    dgm_buf_done(&frame), dgm_buf_done(&back);
}

#define PARTS                                                                                      \
    "[{\"type\":\"text\",\"text\":\"a\",\"id\":\"p\",\"metadata\":[1]},{\"type\":\"image\","       \
    "\"source\":{\"type\":\"data\",\"value\":\"aGk=\",\"mimeType\":\"image/png\"}},{\"type\":"     \
    "\"audio\",\"source\":{\"type\":\"url\",\"value\":\"u\"}},{\"type\":\"video\",\"source\":{"    \
    "\"type\":\"file\",\"value\":\"f\",\"provider\":\"x\"}},{\"type\":\"document\",\"source\":{"   \
    "\"type\":\"url\",\"value\":\"u\",\"mimeType\":\"a/b\"}}]"
#define MESSAGES                                                                                   \
    "[{\"id\":\"1\",\"role\":\"user\",\"content\":" PARTS "},{\"id\":\"2\",\"role\":\"assistant\"" \
    ",\"content\":\"\",\"toolCalls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":" \
    "\"f\",\"arguments\":\"{}\"},\"encryptedValue\":\"e\"}]},{\"id\":\"3\",\"role\":\"tool\","     \
    "\"content\":\"x\",\"toolCallId\":\"c\",\"error\":\"no\"},{\"id\":\"4\",\"role\":\"activity\"" \
    ",\"activityType\":\"t\",\"content\":{\"n\":null}},{\"id\":\"5\",\"role\":\"user\","           \
    "\"content\":[]},{\"id\":\"6\",\"role\":\"assistant\"}]"

static void every_event_comes_back(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"RUN_STARTED\",\"timestamp\":1700000000000,\"rawEvent\":{\"a\":[1,-0.5,true,"
        "null,\"x\",{}]},\"metadata\":{\"m\":1e+300},\"threadId\":\"t\",\"runId\":\"r\","
        "\"parentRunId\":\"p\",\"input\":{\"threadId\":\"t\",\"runId\":\"r\",\"state\":{},"
        "\"messages\":" MESSAGES ",\"tools\":[{\"name\":\"f\",\"description\":\"d\","
        "\"parameters\":{\"type\":\"object\"}}],\"context\":[{\"description\":\"d\",\"value\":\"v\""
        "}],\"forwardedProps\":[],\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\","
        "\"payload\":false}],\"protocolVersion\":\"1.0\"},\"protocolVersion\":\"1.0\"}",
        "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"result\":7,\"outcome\":{"
        "\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\",\"message\":\"m\","
        "\"responseSchema\":{},\"metadata\":{\"k\":1}}]},\"usage\":[{\"model\":\"m\","
        "\"inputTokens\":5,\"outputTokens\":0}]}",
        "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":"
        "\"success\",\"pendingToolCallIds\":[\"a\",\"\"]}}",
        "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"\",\"outcome\":{\"type\":"
        "\"cancelled\"}}",
        "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}",
        "{\"type\":\"RUN_ERROR\",\"code\":\"c\",\"message\":\"m\",\"usage\":[{}]}",
        "{\"type\":\"STEP_STARTED\",\"stepName\":\"s\",\"subagentRunId\":\"x\"}",
        "{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}",
        "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\",\"name\":"
        "\"n\"}",
        "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"Hé 😀\"}",
        "{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}",
        "{\"type\":\"TEXT_MESSAGE_CHUNK\",\"delta\":\"\"}",
        "{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\",\"toolCallName\":\"f\","
        "\"parentMessageId\":\"m\"}",
        "{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"c\",\"delta\":\"{}\"}",
        "{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}",
        "{\"type\":\"TOOL_CALL_CHUNK\",\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"delta\":"
        "\"x\"}",
        "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":\"\","
        "\"role\":\"tool\"}",
        "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":" PARTS
        "}",
        "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":[]}",
        "{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":null}",
        "{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/a\",\"value\":null},{"
        "\"op\":\"test\",\"path\":\"\",\"value\":1},{\"op\":\"move\",\"path\":\"/b\",\"from\":\"/"
        "a\""
        "}]}",
        "{\"type\":\"STATE_DELTA\",\"delta\":[]}",
        "{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":" MESSAGES "}",
        "{\"type\":\"ACTIVITY_SNAPSHOT\",\"messageId\":\"m\",\"activityType\":\"t\",\"content\":{},"
        "\"replace\":false}",
        "{\"type\":\"ACTIVITY_DELTA\",\"messageId\":\"m\",\"activityType\":\"t\",\"patch\":[]}",
        "{\"type\":\"REASONING_START\",\"messageId\":\"m\"}",
        "{\"type\":\"REASONING_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"reasoning\"}",
        "{\"type\":\"REASONING_MESSAGE_CONTENT\",\"subagentRunId\":\"s\",\"messageId\":\"m\","
        "\"delta\":\"hm\"}",
        "{\"type\":\"REASONING_MESSAGE_END\",\"messageId\":\"m\"}",
        "{\"type\":\"REASONING_MESSAGE_CHUNK\",\"messageId\":\"m\",\"delta\":\"hm\"}",
        "{\"type\":\"REASONING_END\",\"messageId\":\"m\"}",
        "{\"type\":\"REASONING_ENCRYPTED_VALUE\",\"subtype\":\"message\",\"entityId\":\"m\","
        "\"encryptedValue\":\"e\"}",
        "{\"type\":\"SUBAGENT_STARTED\",\"subagentRunId\":\"s\",\"name\":\"n\",\"description\":"
        "\"d\""
        ",\"parentSubagentRunId\":\"p\",\"parentToolCallId\":\"c\",\"parentMessageId\":\"m\"}",
        "{\"type\":\"SUBAGENT_FINISHED\",\"subagentRunId\":\"s\",\"result\":[],\"outcome\":{"
        "\"type\":\"suspended\",\"interruptIds\":[\"i\"]}}",
        "{\"type\":\"SUBAGENT_ERROR\",\"subagentRunId\":\"s\",\"message\":\"m\",\"code\":\"c\"}",
        "{\"type\":\"RAW\",\"event\":null,\"source\":\"s\"}",
        "{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":[9007199254740991,-9007199254740991,0.1,1e-"
        "07,1.7976931348623157e+308,5e-324]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        check_there_and_back(events[i], NULL);
    /* what has no place, and numbers that doubles cannot hold */
    check_there_and_back("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\",\"odd\":1}",
                         "{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}");
    check_there_and_back(
        "{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":[1e400,1.0,-0.0,"
        "123456789012345678901]}",
        "{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":[null,1,-0,1.2345678901234568e+20]}");
}

/* The reference's own bytes. */
static void the_check_value(void **state)
{
    static const char want[] = "\0\0\0\x0e\x12\x0c\x0a\x02\x08\x01\x12\x02m1\x1a\x02hi";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_agui_proto_write(
        &b, dgm_json_parse_trusted(a, DGM_STR("{\"type\":\"TEXT_MESSAGE_CONTENT\","
                                              "\"messageId\":\"m1\",\"delta\":\"hi\"}")));
    check_same(b, ((dgm_str){want, sizeof want - 1}));
    assert_false(
        dgm_agui_proto_write(&b, dgm_json_parse_trusted(a, DGM_STR("{\"type\":\"NEW\"}"))));
    assert_int_equal(b.n, sizeof want - 1);
    dgm_buf_done(&b);
}

static void what_is_broken_is_refused(void **state)
{
    static const struct {
        dgm_str bytes;
        dgm_code code;
        bool known;
    } rows[] = {
        {DGM_STR(""), DGM_BAD_PARAMS, false},
        {DGM_STR("\x12"), DGM_BAD_PARAMS, false},                 /* no length */
        {DGM_STR("\x12\x05\x12\x01x"), DGM_BAD_PARAMS, false},    /* longer than there is */
        {DGM_STR("\x12\x03\x12\x05x"), DGM_BAD_PARAMS, false},    /* likewise, inside */
        {DGM_STR("\x12\x03\x12\x01\xff"), DGM_BAD_PARAMS, false}, /* no UTF-8 */
        {DGM_STR("\x13\x14"), DGM_BAD_PARAMS, false},             /* a group */
        {DGM_STR("\x1a\x00\x12\x00"), DGM_BAD_PARAMS, false},     /* two events */
        {DGM_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), DGM_BAD_PARAMS, false},
        {DGM_STR("\xc2\x02\x00"), DGM_OK, false}, /* arm 40, of a later protocol */
        {DGM_STR("\x08\x01"), DGM_OK, false},     /* a number where an event should be */
        {DGM_STR("\x1a\x06\x12\x01x\xf8\x07\x07"), DGM_OK, true}, /* a member we do not know */
        {DGM_STR("\x1a\x06\x12\x01x\x12\x01y"), DGM_OK, true},    /* the last one counts */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_err err = {0};
        dgm_buf b;
        bool known = true;
        dgm_buf_init(&b, SIZE_MAX);
        assert_int_equal(dgm_agui_proto_read(rows[i].bytes, &b, &known, &err), rows[i].code);
        assert_int_equal(known, rows[i].known);
        assert_int_equal(!err.msg[0], !rows[i].code);
        dgm_buf_done(&b);
    }
}

/* {"a":{"a":...}}, 1000 deep. */
static void depth_is_bounded(void **state)
{
    dgm_err err = {0};
    dgm_buf b, outer, out;
    bool known;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX), dgm_buf_init(&outer, SIZE_MAX), dgm_buf_init(&out, SIZE_MAX);
    for (int i = 0; i < 1000; i++) { /* Value{5 struct{1 entry{2 value}}}, built from inside */
        const char *tags = "\x12\x0a\x2a";
        for (int k = 0; k < 3; k++) {
            size_t n = b.n;
            dgm_buf_clear(&outer);
            dgm_buf_add_char(&outer, tags[k]);
            for (; n >= 0x80; n >>= 7)
                dgm_buf_add_char(&outer, (char)(n | 0x80));
            dgm_buf_add_char(&outer, (char)n);
            dgm_buf_add_str(&outer, dgm_buf_str(&b));
            dgm_buf t = b;
            b = outer;
            outer = t;
        }
    }
    for (int k = 0; k < 2; k++) { /* CUSTOM{3 value} */
        size_t n = b.n;
        dgm_buf_clear(&outer);
        dgm_buf_add_char(&outer, k ? '\x5a' : '\x1a');
        for (; n >= 0x80; n >>= 7)
            dgm_buf_add_char(&outer, (char)(n | 0x80));
        dgm_buf_add_char(&outer, (char)n);
        dgm_buf_add_str(&outer, dgm_buf_str(&b));
        dgm_buf t = b;
        b = outer;
        outer = t;
    }
    assert_int_equal(dgm_agui_proto_read(dgm_buf_str(&b), &out, &known, &err), DGM_BAD_PARAMS);
    assert_non_null(strstr(err.msg, "json_depth"));
    dgm_buf_done(&b), dgm_buf_done(&outer), dgm_buf_done(&out);
}

/* ---- the codec ------------------------------------------------------------------------------------------------- */

struct both {
    void *json, *proto;
    dgm_buf from_json, from_proto;
    dgm_err err;
};

static dgm_code both_feed(void *arg, const dgm_canon_event *e)
{
    struct both *b = arg;
    dgm_code rc = dgm_codec_agui.encoder_feed(b->json, e, &b->err);
    return rc ? rc : dgm_codec_agui_proto.encoder_feed(b->proto, e, &b->err);
}

static dgm_code put_read(void *arg, dgm_str name, dgm_str payload)
{
    struct both *b = arg;
    bool known;
    assert_int_equal(name.n, 0);
    assert_int_equal(dgm_agui_proto_length(payload.p), payload.n - 4);
    check_ok(dgm_agui_proto_read((dgm_str){payload.p + 4, payload.n - 4}, &b->from_proto, &known,
                                 &b->err),
             b->err);
    dgm_buf_add_char(&b->from_proto, '\n');
    return DGM_OK;
}

/* JSON and protobuf of the same events decode to the same values. */
static void random_stories_are_the_same_in_both(void **state)
{
    (void)state;
    for (size_t story = 1; story < 2000; story++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_event events[20];
        dgm_records_params from = {.whole_snapshots = true, .say_history = story % 2};
        dgm_stream_params params = {0};
        struct both both = {0};
        seed = story;
        size_t n = 1 + roll(20);
        tell_story(a, events, n);
        dgm_buf_init(&both.from_json, SIZE_MAX), dgm_buf_init(&both.from_proto, SIZE_MAX);
        both.json =
            dgm_codec_agui.encoder_new(&params, (dgm_frame_sink){put_line, &both.from_json});
        both.proto = dgm_codec_agui_proto.encoder_new(&params, (dgm_frame_sink){put_read, &both});
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
            dgm_records_to_events_new(&from);
        dgm_code rc = DGM_OK;
        for (size_t i = 0; !rc && i < n; i++)
            rc = dgm_records_to_events_feed(f, &events[i], (dgm_canon_sink){both_feed, &both},
                                            &both.err);
        if (!rc)
            dgm_records_to_events_end(f, (dgm_canon_sink){both_feed, &both}, &both.err);
        dgm_buf_add_char(&both.from_proto, '\0');
        const char *x = both.from_json.p, *y = both.from_proto.p;
        size_t left = both.from_json.n;
        while (left) {
            size_t nx = (size_t)((const char *)memchr(x, '\n', left) - x);
            size_t ny = (size_t)(strchr(y, '\n') - y);
            yyjson_val *vx = dgm_json_parse_trusted(a, (dgm_str){x, nx});
            yyjson_val *vy = dgm_json_parse_trusted(a, (dgm_str){y, ny});
            if (!dgm_json_equal(vx, vy))
                check_same(((dgm_str){y, ny}), ((dgm_str){x, nx}));
            x += nx + 1, left -= nx + 1, y += ny + 1;
        }
        dgm_codec_agui.encoder_free(both.json);
        dgm_codec_agui_proto.encoder_free(both.proto);
        dgm_buf_done(&both.from_json), dgm_buf_done(&both.from_proto);
    }
}

static void peers_of_before_get_what_they_know(void **state)
{
    dgm_stream_params params = {.old_peer = true};
    dgm_records_params from = {0};
    dgm_buf out;
    size_t n = 0;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(
        &dgm_codec_agui_proto, &params, &from,
        "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
        "SUBMITTED\"}}}\n"
        "{\"kind\":\"internal:reasoning\",\"taskId\":\"t\",\"text\":\"hm\",\"timestamp\":"
        "\"2026-01-01T00:00:00Z\"}\n"
        "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_CANCELED\"}}}\n",
        &out);
    for (size_t at = 0; at < out.n; n++) { /* the lines of put_line have an end of their own */
        size_t length = dgm_agui_proto_length(out.p + at);
        assert_true((unsigned char)out.p[at + 4] >> 3 <= 18);
        at += 4 + length + 1;
    }
    assert_int_equal(n, 2); /* RUN_STARTED, RUN_ERROR */
    dgm_buf_done(&out);
}

DGM_TEST_MAIN(dgm_test(every_event_comes_back), dgm_test(the_check_value),
              dgm_test(what_is_broken_is_refused), dgm_test(depth_is_bounded),
              dgm_test(random_stories_are_the_same_in_both),
              dgm_test(peers_of_before_get_what_they_know))
