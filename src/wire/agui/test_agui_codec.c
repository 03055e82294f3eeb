/* test_agui_codec.c - both dialects through canonical events: each to the other and to itself. */
#include "base/limits.h"
#include "support/check.h"
#include "wire/agui/agui_codec.h"

static dgm_code put_frame(void *arg, dgm_str name, dgm_str payload)
{
    assert_int_equal(name.n, 0);
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

struct path {
    const dgm_codec *to;
    void *encoder;
    dgm_err err;
};

static dgm_code cross(void *arg, const dgm_canon_event *e)
{
    struct path *r = arg;
    return r->to->encoder_feed(r->encoder, e, &r->err);
}

static void check_convert(const dgm_codec *from, const dgm_codec *to, bool fragment,
                          const char *lines, const char *want)
{
    dgm_stream_params p = {.fragment = fragment};
    dgm_buf out;
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    struct path path = {.to = to,
                        .encoder = to->encoder_new(&p, (dgm_frame_sink){put_frame, &out})};
    dgm_canon_sink sink = {cross, &path};
    void *decoder = from->decoder_new(&p);
    while (*lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .err = &path.err};
        size_t n = strcspn(lines, "\n");
        yyjson_val *v;
        check_ok(dgm_json_read(a, (dgm_str){lines, n}, 100000, "", &v, &path.err), path.err);
        dgm_form form;
        assert_int_equal(from->recognise(v, &form), 2);
        assert_int_equal(form, DGM_FORM_EVENTS);
        check_ok(from->decoder_feed(decoder, &r, v, sink), path.err);
        lines += n + (lines[n] == '\n');
    }
    check_ok(from->decoder_end(decoder, sink, &path.err), path.err);
    check_ok(to->encoder_end(path.encoder, &path.err), path.err);
    from->decoder_free(decoder);
    to->encoder_free(path.encoder);
    check_str(out, want);
    dgm_buf_done(&out);
}

#define AGUI (&dgm_codec_agui)
#define SIMPLE (&dgm_codec_agui_simple)

/* The stream of the reference, with a tool of the agent's own. */
#define RUN                                                                                        \
    "{\"type\":\"RUN_STARTED\",\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\"}"  \
    "\n{\"type\":\"STEP_STARTED\",\"stepName\":\"working\"}\n"
#define TEXT(id, a, b, c)                                                                          \
    "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"" id                                         \
    "\",\"role\":\"assistant\"}\n{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"" id           \
    "\",\"delta\":\"" a "\"}\n{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"" id              \
    "\",\"delta\":\"" b "\"}\n{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"" id "\"}\n" c
#define TOOL                                                                                       \
    "{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c1\",\"toolCallName\":\"search\","             \
    "\"parentMessageId\":\"m1\"}\n{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"c1\",\"delta\":"   \
    "\"{\\\"q\\\": 1}\"}\n{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c1\"}\n"
#define RESULT(id)                                                                                 \
    "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"" id                                           \
    "\",\"toolCallId\":\"c1\",\"content\":\"3\"}\n"
#define END                                                                                        \
    "{\"type\":\"STEP_FINISHED\",\"stepName\":\"working\"}\n{\"type\":\"RUN_FINISHED\","           \
    "\"threadId\":\"t1\",\"runId\":\"r1\"}\n"

#define S_RUN                                                                                      \
    "{\"type\":\"run-started\",\"threadId\":\"t1\",\"runId\":\"r1\"}\n{\"type\":\"step-started\"," \
    "\"stepName\":\"working\"}\n"
#define S_CHUNK(id, t)                                                                             \
    "{\"type\":\"text-message-chunk\",\"messageId\":\"" id                                         \
    "\",\"role\":\"assistant\",\"delta\":\"" t "\"}\n"
#define S_END(id, t)                                                                               \
    "{\"type\":\"text-message-end\",\"messageId\":\"" id                                           \
    "\",\"message\":{\"role\":\"assistant\",\"content\":\"" t "\"}}\n"
#define S_ARGS                                                                                     \
    "{\"type\":\"tool-call-args\",\"parentMessageId\":\"m1\",\"toolCall\":{\"id\":\"c1\","         \
    "\"name\":\"search\",\"arguments\":\"{\\\"q\\\": 1}\"}}\n"
#define S_CALL                                                                                     \
    "{\"type\":\"tool-call-start\",\"parentMessageId\":\"m1\",\"toolCall\":{\"id\":\"c1\","        \
    "\"name\":\"search\",\"arguments\":{\"q\":1}}}\n"
#define S_RESULT "{\"type\":\"tool-call-result\",\"toolCallId\":\"c1\",\"result\":\"3\"}\n"
#define S_FINISH "{\"type\":\"run-finished\",\"threadId\":\"t1\",\"runId\":\"r1\"}\n"

static const char official[] =
    RUN TEXT("m1", "Looking", " it up.", "") TOOL RESULT("tm1") TEXT("m2", "3", " hits.", "") END;
static const char simple[] = S_RUN S_CHUNK("m1", "Looking") S_CHUNK("m1", " it up.")
    S_END("m1", "Looking it up.") S_ARGS S_CALL S_RESULT S_CHUNK("m2", "3") S_CHUNK("m2", " hits.")
        S_END("m2", "3 hits.") S_FINISH;

static void the_official_wire_comes_back(void **state)
{
    (void)state;
    check_convert(AGUI, AGUI, false, official, official);
}

static void official_to_simple_and_back(void **state)
{
    (void)state;
    check_convert(AGUI, SIMPLE, false, official, simple);
    check_convert(SIMPLE, SIMPLE, false, simple, simple);
    /* ids of results are made up there */
    check_convert(SIMPLE, AGUI, false, simple,
                  RUN TEXT("m1", "Looking", " it up.", "") TOOL RESULT("r1-r1")
                      TEXT("m2", "3", " hits.", "") END);
}

static void the_documents_three_examples(void **state)
{
    static const char examples[] =
        "{\"type\":\"text-message-content\",\"message\":{\"role\":\"user\",\"content\":\"What's "
        "the weather?\"}}\n"
        "{\"type\":\"tool-call-start\",\"toolCall\":{\"id\":\"call_abc123\",\"name\":\"get_"
        "weather\",\"arguments\":{\"location\":\"Oakland\"}}}\n"
        "{\"type\":\"tool-call-result\",\"toolCallId\":\"call_abc123\",\"result\":\"Sunny, "
        "72°F\"}\n";
    (void)state;
    check_convert(SIMPLE, SIMPLE, true, examples, examples);
}

static void ends_of_runs(void **state)
{
#define S_BEGIN "{\"type\":\"run-started\",\"threadId\":\"t1\",\"runId\":\"r1\"}\n"
#define BEGIN                                                                                      \
    "{\"type\":\"RUN_STARTED\",\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\"}"  \
    "\n"
    (void)state;
    check_convert(SIMPLE, AGUI, false,
                  S_BEGIN "{\"type\":\"run-error\",\"message\":\"no\",\"code\":\"canceled\"}\n",
                  BEGIN "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t1\",\"runId\":\"r1\","
                        "\"outcome\":{\"type\":\"cancelled\"}}\n");
    check_convert(
        AGUI, SIMPLE, false,
        BEGIN "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t1\",\"runId\":\"r1\",\"outcome\":{"
              "\"type\":\"cancelled\"}}\n",
        S_BEGIN
        "{\"type\":\"run-error\",\"message\":\"The task was canceled\",\"code\":\"canceled\"}\n");
    check_convert(
        SIMPLE, AGUI, false, S_BEGIN "{\"type\":\"step-finished\",\"stepName\":\"working\"}\n",
        BEGIN
        "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t1\",\"runId\":\"r1\",\"outcome\":{\"type\":"
        "\"interrupt\",\"interrupts\":[{\"id\":\"r1\",\"reason\":\"input_required\"}]}}\n");
}

static dgm_code add_line(void *arg, dgm_str name, dgm_str payload)
{
    assert_int_equal(name.n, 0);
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

static void messages_and_requests_survive_a_round_trip(void **state)
{
    static const char request[] =
        "{\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\",\"state\":{},\"messages\":"
        "["
        "{\"id\":\"1\",\"role\":\"user\",\"content\":\"hi\"}],\"tools\":[],\"context\":[],"
        "\"forwardedProps\":{}}";
    static const char list[] =
        "[{\"id\":\"1\",\"role\":\"user\",\"content\":\"hi\"},"
        "{\"id\":\"2\",\"role\":\"tool\",\"content\":\"x\",\"toolCallId\":\"c\"}]";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = AGUI->format, .err = &err};
    dgm_stream_params params = {0};
    dgm_buf out;
    yyjson_val *v;
    dgm_form form;
    (void)state;
    dgm_buf_init(&out, 4096);

    assert_false(dgm_json_read(a, dgm_str_from(request), SIZE_MAX, "x", &v, &err));
    assert_int_equal(AGUI->recognise(v, &form), 2);
    assert_int_equal(form, DGM_FORM_REQUEST);
    dgm_canon_input input;
    assert_false(AGUI->read_request(&r, v, NULL, &input));
    dgm_writer w = {.out = &out, .format = AGUI->format};
    assert_false(AGUI->write_request(&w, &input, &params, &err));
    assert_true(dgm_str_eq(dgm_buf_str(&out), dgm_str_from(request)));

    assert_false(dgm_json_read(a, dgm_str_from(list), SIZE_MAX, "x", &v, &err));
    assert_int_equal(AGUI->recognise(yyjson_arr_get(v, 0), &form), 2);
    assert_int_equal(AGUI->recognise(yyjson_arr_get(v, 1), &form), 2);
    assert_int_equal(form, DGM_FORM_MESSAGES);
    dgm_canon_messages messages;
    assert_false(AGUI->read_messages(&r, v, NULL, &messages));
    dgm_buf_clear(&out);
    dgm_frame_sink sink = {add_line, &out};
    assert_false(AGUI->write_messages(&messages, &params, sink, &err));
    assert_true(
        dgm_str_is(dgm_buf_str(&out),
                   "{\"id\":\"1\",\"role\":\"user\",\"content\":\"hi\"}\n"
                   "{\"id\":\"2\",\"role\":\"tool\",\"content\":\"x\",\"toolCallId\":\"c\"}\n"));
    dgm_buf_done(&out);
}

static dgm_code read_many(const dgm_codec *codec, size_t how_many, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_reader r = {.arena = a, .err = err};
    dgm_canon_messages messages = {0};
    dgm_buf list;
    dgm_buf_init(&list, SIZE_MAX);
    for (size_t i = 0; i < how_many; i++)
        dgm_buf_printf(&list, "%s{\"id\":\"m\",\"role\":\"user\",\"content\":\"\"}", i ? "," : "[");
    dgm_buf_add_char(&list, ']');
    dgm_code rc =
        codec->read_messages(&r, dgm_json_parse_trusted(a, dgm_buf_str(&list)), NULL, &messages);
    assert_int_equal(messages.n, rc ? 0 : how_many);
    dgm_buf_done(&list);
    return rc;
}

static void lists_of_messages_have_a_limit(void **state)
{
    static const dgm_codec *const codecs[] = {&dgm_codec_agui, &dgm_codec_agui_old};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dgm_err err = {0};
        check_ok(read_many(codecs[i], DGM_MAX_LIST_ITEMS, &err), err);
        assert_int_equal(read_many(codecs[i], DGM_MAX_LIST_ITEMS + 1, &err), DGM_TOO_LARGE);
        assert_non_null(
            strstr(err.msg, "100001 entries, more than the limit list_items of 100000"));
    }
}

static void peers_from_before_have_a_format(void **state)
{
    static const char request[] = "{\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\","
                                  "\"messages\":[{\"id\":\"1\","
                                  "\"role\":\"tool\",\"toolCallId\":\"c\",\"content\":[{\"type\":"
                                  "\"text\",\"text\":\"x\"}]}]}";
    const dgm_codec *old = &dgm_codec_agui_old;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_stream_params params = {0};
    dgm_canon_input input;
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, 4096);
    check_ok(old->read_request(&r, dgm_json_parse_trusted(a, dgm_str_from(request)), NULL, &input),
             err);
    dgm_writer w = {.out = &out, .format = old->format};
    check_ok(old->write_request(&w, &input, &params, &err), err);
    check_str(
        out,
        "{\"threadId\":\"t\",\"runId\":\"r\",\"state\":{},\"messages\":[{\"id\":\"1\",\"role\":"
        "\"tool\",\"content\":\"x\",\"toolCallId\":\"c\"}],\"tools\":[],\"context\":[],"
        "\"forwardedProps\":{}}");
    dgm_buf_clear(&out);
    check_ok(old->write_messages(&input.messages, &params, (dgm_frame_sink){add_line, &out}, &err),
             err);
    check_str(out, "{\"id\":\"1\",\"role\":\"tool\",\"content\":\"x\",\"toolCallId\":\"c\"}\n");
    dgm_buf_clear(&out);
    void *encoder = old->encoder_new(&params, (dgm_frame_sink){add_line, &out});
    dgm_canon_event end = {.kind = DGM_CANON_RUN_FINISHED};
    end.run_finished.outcome.kind = DGM_CANON_CANCELLED;
    check_ok(old->encoder_feed(encoder, &end, &err), err);
    check_str(out, "{\"type\":\"RUN_ERROR\",\"message\":\"The run was cancelled\",\"code\":"
                   "\"cancelled\"}\n");
    old->encoder_free(encoder);
    dgm_buf_done(&out);
}

DGM_TEST_MAIN(dgm_test(peers_from_before_have_a_format),
              dgm_test(messages_and_requests_survive_a_round_trip),
              dgm_test(lists_of_messages_have_a_limit), dgm_test(the_official_wire_comes_back),
              dgm_test_holds(official_to_simple_and_back, "R000-05"),
              dgm_test_holds(the_documents_three_examples, "R000-24 R000-25 R000-26"),
              dgm_test_holds(ends_of_runs, "R000-15 R000-17 R000-18"))
