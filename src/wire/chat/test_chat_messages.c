/* test_chat_messages.c - messages and requests: into canonical ones and back; whose a value is. */
#include "wire/chat/chat.h"
#include "wire/chat/test_chat_codec.h"

static dgm_code put_line(void *arg, dgm_str name, dgm_str payload)
{
    assert_int_equal(name.n, 0);
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

static yyjson_val *value_of(dgm_arena *a, const char *text)
{
    dgm_err err = {0};
    yyjson_val *v;
    check_ok(dgm_json_read(a, dgm_str_from(text), DGM_MAX_OBJECT_BYTES, "", &v, &err), err);
    return v;
}

/* canon: what others see of it, as lines of dump_messages; NULL: not looked at. */
static void check_messages(const char *in, const char *canon, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = &err};
    dgm_stream_params p = {0};
    dgm_canon_messages messages;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    check_ok(CHAT->read_messages(&r, value_of(a, in), NULL, &messages), err);
    for (size_t i = 0; i < messages.n; i++) {
        assert_true(messages.at[i].id.n);
        messages.at[i].id = (dgm_str){0}; /* minted: not shown */
    }
    if (canon) {
        dump_messages(&out, &messages);
        check_str(out, canon);
        dgm_buf_clear(&out);
    }
    check_ok(CHAT->write_messages(&messages, &p, (dgm_frame_sink){put_line, &out}, &err), err);
    check_str(out, want);
    dgm_buf_done(&out);
}

static void messages_of_every_role(void **state)
{
    (void)state;
    check_messages(
        "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"developer\",\"content\":[{\"type\":"
        "\"text\",\"text\":\"D\"},{\"type\":\"text\",\"text\":\"E\"}]},{\"role\":\"user\","
        "\"name\":\"ann\",\"content\":\"U\"},{\"role\":\"assistant\",\"content\":null,"
        "\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\":1}\"}},{\"id\":\"b\",\"type\":"
        "\"custom\",\"custom\":{\"name\":\"g\",\"input\":\"free\"}}]},{\"role\":\"tool\","
        "\"tool_call_id\":\"a\",\"content\":\"7\"},{\"role\":\"assistant\",\"content\":\"A\"}]",
        " {system  \"S\"} {developer  \"DE\"} {user  \"U\"} {reasoning  \"hm\"} {assistant  "
        "a=f({\"q\":1}) b=g(free)} {tool  \"7\" of a} {assistant  \"A\"}",
        "{\"role\":\"system\",\"content\":\"S\"}\n{\"role\":\"developer\",\"content\":\"DE\"}\n"
        "{\"role\":\"user\",\"name\":\"ann\",\"content\":\"U\"}\n{\"role\":\"assistant\","
        "\"content\":\"\",\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"a\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\":1}\"}},{\"id\":\"b\","
        "\"type\":\"custom\",\"custom\":{\"name\":\"g\",\"input\":\"free\"}}]}\n"
        "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"7\"}\n"
        "{\"role\":\"assistant\",\"content\":\"A\"}\n");
}

static void the_legacy_way_and_refusals(void **state)
{
    static const char same[] =
        "{\"role\":\"assistant\",\"content\":\"\",\"function_call\":{\"name\":\"f\",\"arguments\":"
        "\"{}\"}}\n{\"role\":\"function\",\"name\":\"f\",\"content\":\"7\"}\n"
        "{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}\n"
        "{\"role\":\"assistant\",\"content\":\"so\",\"refusal\":\"no\",\"audio\":{\"id\":\"x\"}}\n";
    (void)state;
    check_messages(
        "[{\"role\":\"assistant\",\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
        "{\"role\":\"function\",\"name\":\"f\",\"content\":\"7\"},"
        "{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"},"
        "{\"role\":\"assistant\",\"content\":\"so\",\"refusal\":\"no\",\"audio\":{\"id\":\"x\"}}]",
        " {assistant  f=f({})} {tool  \"7\" of f} {assistant  \"no\"} {assistant  \"so\"}", same);
}

static void files_of_a_user_come_back(void **state)
{
    static const char same[] =
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"See\",\"x\":1},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://e/a.png\",\"detail\":\"low\"}},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,aGk=\"}},"
        "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"aGk=\",\"format\":\"mp3\"}},"
        "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"aGk=\",\"format\":\"wav\"}},"
        "{\"type\":\"file\",\"file\":{\"filename\":\"a.pdf\",\"file_data\":"
        "\"data:application/pdf;base64,aGk=\",\"file_id\":\"f1\"}},"
        "{\"type\":\"file\",\"file\":{\"filename\":\"b\",\"file_id\":\"f2\"}},"
        "{\"type\":\"video_url\",\"video_url\":{\"url\":\"https://e/a.mp4\"}},"
        "{\"type\":\"hologram\",\"depth\":[1,{}]}]}\n";
    (void)state;
    check_messages(same, " {user  9 parts}", same);
    check_messages("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
                   "\"text\",\"text\":\"b\"}]}",
                   " {user  2 parts}", "{\"role\":\"user\",\"content\":\"ab\"}\n");
}

/* Files as third-party clients send them. */
static void third_party_files(void **state)
{
    static const struct {
        dgm_canon_part part;
        const char *want;
    } rows[] = {
        {{.kind = DGM_CANON_PART_DOCUMENT,
          .source = {DGM_CANON_SOURCE_URL,
                     DGM_STR("https://e/a.pdf"),
                     DGM_STR("application/pdf"),
                     {0},
                     NULL}},
         "\"content\":\"https://e/a.pdf\""},
        {{.kind = DGM_CANON_PART_VIDEO,
          .source =
              {DGM_CANON_SOURCE_URL, DGM_STR("https://e/a.mp4"), DGM_STR("video/mp4"), {0}, NULL}},
         "\"content\":\"https://e/a.mp4\""},
        {{.kind = DGM_CANON_PART_AUDIO,
          .source = {DGM_CANON_SOURCE_DATA, DGM_STR("aGk="), DGM_STR("audio/ogg"), {0}, NULL}},
         "\"content\":[{\"type\":\"file\",\"file\":{\"filename\":\"file.ogg\",\"file_data\":"
         "\"data:audio/ogg;base64,aGk=\"}}]"},
        {{.kind = DGM_CANON_PART_AUDIO,
          .source = {DGM_CANON_SOURCE_DATA, DGM_STR("aGk="), DGM_STR("audio/x-wav"), {0}, NULL}},
         "\"content\":[{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"aGk=\",\"format\":"
         "\"wav\"}}]"},
        {{.kind = DGM_CANON_PART_DOCUMENT,
          .source = {DGM_CANON_SOURCE_FILE, DGM_STR("f1"), {0}, DGM_STR("openai"), NULL}},
         "\"content\":[{\"type\":\"file\",\"file\":{\"file_id\":\"f1\"}}]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_canon_part part = rows[i].part;
        dgm_canon_message m = {.role = DGM_CANON_USER,
                               .content = {.kind = DGM_CANON_CONTENT_PARTS, .parts = {&part, 1}}};
        dgm_canon_messages list = {&m, 1};
        dgm_stream_params p = {0};
        dgm_err err = {0};
        dgm_buf out;
        dgm_buf_init(&out, SIZE_MAX);
        check_ok(CHAT->write_messages(&list, &p, (dgm_frame_sink){put_line, &out}, &err), err);
        char *text = dgm_buf_steal(&out, NULL);
        if (!strstr(text, rows[i].want))
            print_error("%s\n  lacks %s\n", text, rows[i].want);
        assert_non_null(strstr(text, rows[i].want));
        free(text);
    }
}

static void messages_that_chat_has_no_role_for(void **state)
{
    dgm_canon_message list[] = {
        {.role = DGM_CANON_ACTIVITY},
        {.role = DGM_CANON_REASONING,
         .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("a")}},
        {.role = DGM_CANON_REASONING,
         .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("b")}},
        {.role = DGM_CANON_USER, .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("U")}},
        {.role = DGM_CANON_TOOL, .tool_call_id = DGM_STR("c"), .error = DGM_STR("broken")},
    };
    dgm_canon_messages messages = {list, 5};
    dgm_stream_params p = {0};
    dgm_err err = {0};
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    check_ok(CHAT->write_messages(&messages, &p, (dgm_frame_sink){put_line, &out}, &err), err);
    check_str(out, "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"a\\n\\nb\"}\n"
                   "{\"role\":\"user\",\"content\":\"U\"}\n"
                   "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"broken\"}\n");
    dgm_buf_done(&out);
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

static dgm_code read_request(dgm_arena *a, const char *in, dgm_canon_input *ret,
                             size_t *ret_unknown, dgm_err *err)
{
    dgm_mint mint = {0};
    dgm_reader r = {.arena = a, .mint = &mint, .err = err};
    dgm_code rc = CHAT->read_request(&r, value_of(a, in), NULL, ret);
    *ret_unknown = r.n_unknown;
    return rc;
}

static void check_request(const char *in, size_t unknown, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_input input;
    dgm_stream_params p = {0};
    dgm_err err = {0};
    size_t n;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_writer w = {.out = &out, .format = CHAT->format};
    check_ok(read_request(a, in, &input, &n, &err), err);
    assert_int_equal(n, unknown);
    assert_true(input.thread_id.n && input.run_id.n);
    check_ok(CHAT->write_request(&w, &input, &p, &err), err);
    check_str(out, want);
    dgm_buf_done(&out);
}

static void requests_come_back(void **state)
{
    static const char same[] =
        "{\"model\":\"gpt\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[{"
        "\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{"
        "\"type\":\"object\"},\"strict\":true}},{\"type\":\"function\",\"function\":{\"name\":"
        "\"g\"}},{\"type\":\"custom\",\"custom\":{\"name\":\"h\"}}],\"stream\":true,"
        "\"temperature\":0.50,\"tool_choice\":\"auto\",\"user\":\"u\",\"metadata\":{\"k\":\"v\"},"
        "\"top_k\":3}";
    (void)state;
    check_request(same, 2, same); /* top_k and, within a function, strict */
    check_request("{\"messages\":[],\"functions\":[{\"name\":\"f\"}],\"function_call\":{\"name\":"
                  "\"f\"},\"stop\":null}",
                  0,
                  "{\"model\":\"dragoman\",\"messages\":[],\"tools\":[{\"type\":\"function\","
                  "\"function\":{\"name\":\"f\"}}],\"tool_choice\":{\"type\":\"function\","
                  "\"function\":{\"name\":\"f\"}}}");
}

static void the_context_is_in_metadata(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_input input;
    dgm_stream_params p = {.model = DGM_STR("m")};
    dgm_err err = {0};
    size_t n;
    dgm_buf out;
    (void)state;
    check_ok(read_request(a, "{\"messages\":[],\"metadata\":{\"a2a_context_id\":\"c\"}}", &input,
                          &n, &err),
             err);
    check_str(input.thread_id, "c");
    input = (dgm_canon_input){.thread_id = DGM_STR("t"), .run_id = DGM_STR("r")};
    dgm_buf_init(&out, SIZE_MAX);
    dgm_writer w = {.out = &out, .format = CHAT->format};
    check_ok(CHAT->write_request(&w, &input, &p, &err), err);
    check_str(out, "{\"model\":\"m\",\"messages\":[],\"metadata\":{\"a2a_context_id\":\"t\"}}");
    dgm_buf_done(&out);
}

static void requests_that_are_refused(void **state)
{
    static const struct {
        const char *in, *at;
    } rows[] = {
        {"{}", "/messages"},
        {"{\"messages\":\"x\"}", "/messages"},
        {"{\"messages\":[{\"role\":\"user\"}]}", "/messages/0/content"},
        {"{\"messages\":[{\"role\":\"wizard\",\"content\":\"\"}]}", "/messages/0/role"},
        {"{\"messages\":[],\"tools\":{}}", "/tools"},
        {"{\"messages\":[],\"tools\":[7]}", "/tools/0"},
        {"{\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{}}]}",
         "/tools/0/function/name"},
        {"{\"messages\":[],\"user\":1,\"user\":2}", "/user"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_input input;
        dgm_err err = {0};
        size_t n;
        check_fails(read_request(a, rows[i].in, &input, &n, &err), DGM_BAD_PARAMS, err, rows[i].at);
    }
}

/* ---- whose is it? ------------------------------------------------------------------------------------------------ */

static void values_are_recognised(void **state)
{
    static const struct {
        const char *in;
        int score;
        dgm_form form;
    } rows[] = {
        {"{\"role\":\"user\",\"content\":\"x\"}", 2, DGM_FORM_MESSAGES},
        {"[{\"role\":\"user\",\"content\":\"x\"}]", 2, DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"content\":\"x\",\"id\":\"1\"}", 1, DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"content\":\"x\",\"type\":\"message\"}", 1, DGM_FORM_MESSAGES},
        {"{\"role\":\"assistant\",\"tool_calls\":[]}", 2, DGM_FORM_MESSAGES},
        {"{\"role\":\"assistant\",\"toolCalls\":[]}", 0, DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"parts\":[]}", 0, DGM_FORM_MESSAGES},
        {"{\"model\":\"m\",\"messages\":[]}", 1, DGM_FORM_REQUEST},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 2, DGM_FORM_REQUEST},
        {"{\"threadId\":\"t\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 0,
         DGM_FORM_REQUEST},
        {"{\"choices\":[{\"message\":{}}]}", 2, DGM_FORM_RESPONSE},
        {"{\"object\":\"chat.completion\",\"choices\":[]}", 2, DGM_FORM_RESPONSE},
        {"{\"choices\":[{\"delta\":{}}]}", 2, DGM_FORM_EVENTS},
        {"{\"choices\":[],\"usage\":{}}", 2, DGM_FORM_EVENTS},
        {"{\"error\":{\"message\":\"x\",\"type\":\"y\"}}", 1, DGM_FORM_EVENTS},
        {"{\"jsonrpc\":\"2.0\",\"error\":{\"message\":\"x\",\"type\":\"y\"}}", 0, DGM_FORM_EVENTS},
        {"7", 0, DGM_FORM_MESSAGES},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_form form = DGM_FORM_NONE;
        int score = CHAT->recognise(value_of(a, rows[i].in), &form);
        if (score != rows[i].score || form != rows[i].form)
            print_error("%s: %d, %d\n", rows[i].in, score, (int)form);
        assert_int_equal(score, rows[i].score);
        assert_int_equal(form, rows[i].form);
    }
}

DGM_TEST_MAIN(dgm_test(messages_of_every_role), dgm_test(the_legacy_way_and_refusals),
              dgm_test(files_of_a_user_come_back), dgm_test(third_party_files),
              dgm_test(messages_that_chat_has_no_role_for), dgm_test(requests_come_back),
              dgm_test(the_context_is_in_metadata), dgm_test(requests_that_are_refused),
              dgm_test(values_are_recognised))
