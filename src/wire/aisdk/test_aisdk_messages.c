/* test_aisdk_messages.c - UI messages and requests. */
#include "wire/aisdk/aisdk.h"
#include "wire/test_codec.h"

#define SDK (&dgm_codec_aisdk)

static void check_read(const char *text, const char *want)
{
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(dump_messages_of(SDK, text, &b, &err), err);
    check_str(b, want);
    dgm_buf_done(&b);
}

static void check_convert(const char *text, const char *want)
{
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(convert_messages(SDK, SDK, text, &b, &err), err);
    check_str(b, want);
    dgm_buf_done(&b);
}

#define TURN                                                                                       \
    "{\"id\":\"a\",\"role\":\"assistant\",\"metadata\":{\"n\":1},\"createdAt\":7,\"parts\":["      \
    "{\"type\":\"reasoning\",\"text\":\"hm\"},{\"type\":\"text\",\"text\":\"Looking\"},"           \
    "{\"type\":\"dynamic-tool\",\"toolName\":\"f\",\"toolCallId\":\"1\",\"state\":\"output-"       \
    "available\",\"input\":{\"q\":1},\"output\":\"3\"},"                                           \
    "{\"type\":\"dynamic-tool\",\"toolName\":\"g\",\"toolCallId\":\"2\",\"state\":\"output-error"  \
    "\",\"input\":{},\"errorText\":\"no\"},"                                                       \
    "{\"type\":\"step-start\"},{\"type\":\"text\",\"text\":\"Three\"}]}"

static void a_turn_of_the_assistant_is_many_messages(void **state)
{
    (void)state;
    check_read(TURN, " {reasoning a-2 \"hm\"} {assistant a \"Looking\" 1=f({\"q\": 1}) 2=g({})}"
                     " {tool a-3 \"3\" of 1} {tool a-4 \"no\" of 2} {assistant a-5 \"Three\"}");
}

static void and_one_again(void **state)
{
    (void)state;
    check_convert(TURN, TURN "\n");
}

#define USER                                                                                       \
    "{\"id\":\"u\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"Look\"},"            \
    "{\"type\":\"file\",\"mediaType\":\"image/png\",\"filename\":\"a.png\",\"url\":\"data:image/"  \
    "png;base64,aGk=\"},{\"type\":\"file\",\"mediaType\":\"application/pdf\",\"url\":\"https://x/" \
    "y.pdf\"}]}"

static void files_of_users_come_back(void **state)
{
    (void)state;
    check_read(USER, " {user u 3 parts}");
    check_convert("[" USER ",{\"id\":\"s\",\"role\":\"system\",\"parts\":[{\"type\":\"text\","
                  "\"text\":\"Be kind\"}]}]",
                  USER "\n{\"id\":\"s\",\"role\":\"system\",\"parts\":[{\"type\":\"text\",\"text\":"
                       "\"Be kind\"}]}\n");
}

static void odd_parts(void **state)
{
    (void)state;
    /* parts of the caller's own types, old content, what a file says in an answer */
    check_read(
        "[{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"tool-f\","
        "\"toolCallId\":\"1\",\"state\":\"input-streaming\",\"rawInput\":\"{\\\"a\\\"\"},"
        "{\"type\":\"source-url\",\"sourceId\":\"s\",\"url\":\"u\"},"
        "{\"type\":\"data-weather\",\"data\":1}]},"
        "{\"id\":\"u\",\"role\":\"user\",\"content\":\"old\"},"
        "{\"id\":\"b\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"See\"}"
        ",{\"type\":\"file\",\"mediaType\":\"text/html\",\"url\":\"https://x\"}]},"
        "{\"id\":\"e\",\"role\":\"assistant\",\"parts\":[]}]",
        " {assistant a 1=f({\"a\")} {user u \"old\"} {assistant b \"See\\nhttps://x\"}"
        " {assistant e \"\"}");
    /* a text part marked as a replacement replaces the texts of its step or of earlier steps */
    check_read(
        "{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":"
        "\"Hullo\"},{\"type\":\"text\",\"text\":\"Hello\",\"providerMetadata\":{\"dragoman\":"
        "{\"instead\":true}}}]}",
        " {assistant a \"Hello\"}");
    check_read("{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":"
               "\"Hullo\"},{\"type\":\"step-start\"},{\"type\":\"text\",\"text\":\"Hello\","
               "\"providerMetadata\":{\"dragoman\":{\"instead\":true}}}]}",
               " {assistant a \"Hello\"}");
}

static void results_without_a_call_are_shown_and_progress_is_not(void **state)
{
    dgm_canon_message m[] = {
        {.role = DGM_CANON_TOOL,
         .id = DGM_STR("r"),
         .tool_call_id = DGM_STR("1"),
         .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("7")}},
        {.role = DGM_CANON_DEVELOPER,
         .id = DGM_STR("d"),
         .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("x")}},
        {.role = DGM_CANON_ACTIVITY,
         .id = DGM_STR("p"),
         .activity_type = DGM_STR("a2a-status"),
         .content = {.kind = DGM_CANON_CONTENT_OBJECT}},
    };
    dgm_canon_messages list = {m, 3};
    dgm_stream_params params = {0};
    dgm_err err = {0};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(SDK->write_messages(&list, &params, (dgm_frame_sink){put_line, &b}, &err), err);
    check_str(b, "{\"id\":\"r\",\"role\":\"assistant\",\"parts\":[{\"type\":\"dynamic-tool\","
                 "\"toolName\":\"unknown\",\"toolCallId\":\"1\",\"state\":\"output-available\","
                 "\"input\":{},\"output\":\"7\"}]}\n"
                 "{\"id\":\"d\",\"role\":\"system\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}"
                 "\n");
    dgm_buf_done(&b);
}

static void requests_come_back(void **state)
{
    static const char text[] = "{\"id\":\"chat\",\"trigger\":\"regenerate-message\",\"messageId\":"
                               "\"u\",\"messages\":[" USER "]}";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {.count = 0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = &err};
    dgm_stream_params params = {0};
    dgm_canon_input input;
    dgm_form form;
    dgm_buf b;
    yyjson_val *v;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(dgm_json_read(a, dgm_str_from(text), SIZE_MAX, "", &v, &err), err);
    assert_int_equal(SDK->recognise(v, &form), 2);
    assert_int_equal(form, DGM_FORM_REQUEST);
    check_ok(SDK->read_request(&r, v, NULL, &input), err);
    check_str(input.thread_id, "chat");
    assert_int_equal(input.messages.n, 1);
    dgm_writer w = {.out = &b, .format = SDK->format};
    check_ok(SDK->write_request(&w, &input, &params, &err), err);
    check_str(b, text);
    input.extra = NULL; /* of another format */
    input.messages.n = 0;
    dgm_buf_clear(&b);
    check_ok(SDK->write_request(&w, &input, &params, &err), err);
    check_str(b, "{\"id\":\"chat\",\"trigger\":\"submit-message\",\"messages\":[]}");
    dgm_buf_done(&b);
}

static void what_it_is_shows(void **state)
{
    static const struct {
        const char *text;
        dgm_form form; /* NONE: not ours */
    } rows[] = {
        {USER, DGM_FORM_MESSAGES},
        {"{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[]}", DGM_FORM_MESSAGES},
        {"{\"messageId\":\"a\",\"role\":\"user\",\"parts\":[{\"text\":\"\"}]}", DGM_FORM_NONE},
        {"{\"kind\":\"message\",\"messageId\":\"a\",\"role\":\"user\",\"parts\":[{\"kind\":"
         "\"text\","
         "\"text\":\"\"}]}",
         DGM_FORM_NONE},
        {"{\"role\":\"user\",\"content\":\"x\"}", DGM_FORM_NONE},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"model\":\"m\"}", DGM_FORM_NONE},
        {"{\"messages\":[],\"trigger\":\"submit-message\"}", DGM_FORM_REQUEST},
        {"{\"type\":\"text-delta\",\"id\":\"0\",\"delta\":\"a\"}", DGM_FORM_EVENTS},
        {"{\"type\":\"data-x\",\"data\":null}", DGM_FORM_EVENTS},
        {"{\"type\":\"error\",\"errorText\":\"x\"}", DGM_FORM_EVENTS},
        {"{\"type\":\"error\",\"message\":\"x\"}", DGM_FORM_NONE},
        {"{\"type\":\"text-message-content\"}", DGM_FORM_NONE},
        {"{\"type\":\"RUN_STARTED\"}", DGM_FORM_NONE},
        {"7", DGM_FORM_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        dgm_form form = DGM_FORM_NONE;
        yyjson_val *v;
        check_ok(dgm_json_read(a, dgm_str_from(rows[i].text), SIZE_MAX, "", &v, &err), err);
        int score = SDK->recognise(v, &form);
        assert_int_equal(score, rows[i].form ? 2 : 0);
        if (score)
            assert_int_equal(form, rows[i].form);
    }
}

static void what_the_user_decided_is_a_result(void **state)
{
    (void)state;
    check_read("{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"dynamic-tool\","
               "\"toolName\":\"f\",\"toolCallId\":\"1\",\"state\":\"approval-responded\","
               "\"input\":{},\"approval\":{\"id\":\"p\",\"approved\":false,\"reason\":\"no\"}},"
               "{\"type\":\"tool-g\",\"toolCallId\":\"2\",\"state\":\"approval-requested\","
               "\"input\":{},\"approval\":{\"id\":\"q\"}}]}",
               " {assistant a 1=f({}) 2=g({})} {tool a-2 \"{\\\"approved\\\": false, "
               "\\\"reason\\\": \\\"no\\\"}\" of 1}");
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *text, *at;
    } bad[] = {
        {"{\"id\":\"a\",\"role\":\"tool\",\"parts\":[]}", "/role"},
        {"{\"id\":\"a\",\"role\":\"user\"}", "/parts"},
        {"{\"id\":\"a\",\"role\":\"user\",\"parts\":{}}", "/parts"},
        {"[{\"id\":\"a\",\"role\":\"user\",\"parts\":[{\"type\":\"text\"}]}]", "/0/parts/0/text"},
        {"{\"id\":\"a\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":1}]}",
         "/parts/0/text"},
        {"{\"id\":\"a\",\"role\":\"user\",\"parts\":[{}]}", "/parts/0/type"},
        {"{\"id\":\"a\",\"role\":\"user\",\"parts\":[1]}", "/parts/0"},
        {"{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"tool-f\"}]}",
         "/parts/0/toolCallId"},
        {"{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"dynamic-tool\","
         "\"toolCallId\":\"1\"}]}",
         "/parts/0/toolName"},
        {"{\"id\":\"a\",\"role\":\"user\",\"parts\":[{\"type\":\"file\"}]}", "/parts/0/url"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_buf b;
        dgm_err err = {0};
        dgm_buf_init(&b, SIZE_MAX);
        check_fails(dump_messages_of(SDK, bad[i].text, &b, &err), DGM_BAD_PARAMS, err, bad[i].at);
        dgm_buf_done(&b);
    }
}

DGM_TEST_MAIN(dgm_test(a_turn_of_the_assistant_is_many_messages), dgm_test(and_one_again),
              dgm_test(files_of_users_come_back), dgm_test(odd_parts),
              dgm_test(results_without_a_call_are_shown_and_progress_is_not),
              dgm_test(requests_come_back), dgm_test(what_it_is_shows),
              dgm_test(what_the_user_decided_is_a_result), dgm_test(what_is_wrong_is_refused))
