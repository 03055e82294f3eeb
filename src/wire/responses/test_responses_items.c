/* test_responses_items.c - items as messages, requests, and back. */
#include "wire/responses/test_responses.h"

static const dgm_codec *const codec = &dgm_codec_responses;

static dgm_code add_line(void *arg, dgm_str name, dgm_str payload)
{
    assert_int_equal(name.n, 0);
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

static yyjson_val *value(dgm_arena *a, const char *text)
{
    dgm_err err = {0};
    yyjson_val *v;
    check_ok(dgm_json_read(a, dgm_str_from(text), 1 << 20, "", &v, &err), err);
    return v;
}

/* Items as messages (as a person reads them), and those as items again. */
static void check_items(const char *items, const char *messages, const char *again)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_stream_params params = {0};
    dgm_canon_messages list;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(codec->read_messages(&r, value(a, items), NULL, &list), err);
    dump_messages(&b, &list);
    check_str(b, messages);
    dgm_buf_clear(&b);
    check_ok(codec->write_messages(&list, &params, (dgm_frame_sink){add_line, &b}, &err), err);
    check_str(b, again);
    dgm_buf_done(&b);
}

#define CALL                                                                                       \
    "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\",\"id\":"    \
    "\"fc_1\","                                                                                    \
    "\"status\":\"completed\"}"
#define CALL_AGAIN                                                                                 \
    "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\",\"id\":"    \
    "\"fc_1\","                                                                                    \
    "\"status\":\"completed\"}\n"
#define OUTPUT "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}"

static void a_conversation(void **state)
{
    (void)state;
    check_items(
        "[{\"role\":\"user\",\"content\":\"Hi\"},"
        "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\","
        "\"content\":"
        "[{\"type\":\"output_text\",\"text\":\"Let me\",\"annotations\":[],\"logprobs\":[]}]}," CALL
        "," OUTPUT
        ",{\"role\":\"developer\",\"content\":[{\"type\":\"input_text\",\"text\":\"Be\"}]}]",
        " {user item-0 \"Hi\"} {assistant msg_1 \"Let me\" c=f({})} {tool item-3 \"x\" of c}"
        " {developer item-4 \"Be\"}",
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"Hi\"}]}\n"
        "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[{\"type\":"
        "\"output_text\",\"text\":\"Let me\",\"annotations\":[],\"logprobs\":[]}],\"status\":"
        "\"completed\"}\n" CALL_AGAIN OUTPUT "\n{\"type\":\"message\",\"role\":\"developer\","
        "\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"Be\"}]}\n");
}

static void calls_without_a_message(void **state)
{
    (void)state;
    check_items("[" CALL "," OUTPUT "]", " {assistant fc_1 c=f({})} {tool item-1 \"x\" of c}",
                CALL_AGAIN OUTPUT "\n");
    check_items("{\"type\":\"mcp_call\",\"id\":\"mcp_1\",\"name\":\"f\",\"server_label\":\"s\","
                "\"arguments\":\"{}\","
                "\"output\":\"x\"}",
                " {assistant mcp_1 mcp_1=f({})} {tool mcp_1-result \"x\" of mcp_1}",
                "{\"type\":\"function_call\",\"id\":\"fc_mcp_1\",\"call_id\":\"mcp_1\",\"name\":"
                "\"f\",\"arguments\":"
                "\"{}\",\"status\":\"completed\"}\n{\"type\":\"function_call_output\",\"call_id\":"
                "\"mcp_1\",\"output\":"
                "\"x\"}\n");
    check_items(
        "{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":\"f\",\"input\":\"any text\"}",
        " {assistant item-0 c=f(any text)}",
        "{\"type\":\"custom_tool_call\",\"id\":\"ctc_c\",\"call_id\":\"c\",\"name\":\"f\","
        "\"input\":"
        "\"any text\",\"status\":\"completed\"}\n");
}

/* What messages have no place for comes back as it was. */
static void check_same_items(const char *item, const char *messages)
{
    char again[1000];
    snprintf(again, sizeof again, "%s\n", item);
    check_items(item, messages, again);
}

static void items_that_come_back(void **state)
{
    (void)state;
    check_same_items("{\"type\":\"item_reference\",\"id\":\"msg_9\"}",
                     " {activity msg_9 {\"type\":\"item_reference\",\"id\":\"msg_9\"}}");
    check_same_items(
        "{\"type\":\"web_search_call\",\"id\":\"ws\",\"status\":\"completed\"}",
        " {activity ws {\"type\":\"web_search_call\",\"id\":\"ws\",\"status\":\"completed\"}}");
    check_same_items(
        "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"x\",\"summary\":[{"
        "\"type\":"
        "\"summary_text\",\"text\":\"a\"},{\"type\":\"summary_text\",\"text\":\"b\"}]}",
        " {reasoning rs_1 \"a\\n\\nb\"}");
    check_same_items("{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[{"
                     "\"type\":\"refusal\","
                     "\"refusal\":\"No\"}],\"status\":\"completed\"}",
                     " {assistant msg_1 \"No\"}");
    check_same_items("{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[{"
                     "\"type\":\"output_text\",\"text\":"
                     "\"x\",\"annotations\":[{\"type\":\"url_citation\",\"url\":\"u\"}]}],"
                     "\"status\":\"completed\",\"phase\":"
                     "\"final_answer\"}",
                     " {assistant msg_1 \"x\"}");
}

static void parts_of_all_kinds(void **state)
{
    (void)state;
    check_same_items(
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"See\"},{\"type\":"
        "\"input_image\",\"image_url\":\"data:image/"
        "png;base64,aGk=\",\"detail\":\"low\"},{\"type\":\"input_image\","
        "\"image_url\":\"https://x.test/"
        "a.png\"},{\"type\":\"input_image\",\"file_id\":\"file-1\"},{\"type\":"
        "\"input_file\",\"file_data\":\"data:application/"
        "pdf;base64,aGk=\",\"filename\":\"a.pdf\"},{\"type\":"
        "\"input_file\",\"file_url\":\"https://x.test/"
        "a.pdf\"},{\"type\":\"input_file\",\"file_id\":\"file-2\"},{"
        "\"type\":\"input_audio\",\"input_audio\":{\"data\":\"aGk=\",\"format\":\"mp3\"}}]}",
        " {user item-0 8 parts}");
    check_items(
        "{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":{\"url\":\"u\"}},{"
        "\"type\":"
        "\"hologram\"},{\"type\":\"input_file\",\"file_data\":\"aGk=\",\"filename\":\"a.txt\"}]}",
        " {user item-0 2 parts}",
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_"
        "url\":\"u\"},{"
        "\"type\":\"input_file\",\"file_data\":\"data:text/"
        "plain;base64,aGk=\",\"filename\":\"a.txt\"}]}\n");
}

static void bad_items_are_named(void **state)
{
    static const struct {
        const char *in, *at;
    } bad[] = {
        {"[1]", "/0"},
        {"[{}]", "/0/type"},
        {"[{\"type\":\"message\",\"content\":\"x\"}]", "/0/role"},
        {"[{\"role\":\"robot\",\"content\":\"x\"}]", "/0/role"},
        {"[{\"role\":\"user\"}]", "/0/content"},
        {"[{\"role\":\"user\",\"content\":1}]", "/0/content"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}]",
         "/0/content/0/image_url"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\"}]}]", "/0/content/0/file_data"},
        {"[{\"type\":\"function_call\",\"name\":\"f\"}]", "/0/call_id"},
        {"[{\"type\":\"function_call\",\"call_id\":\"c\"}]", "/0/name"},
        {"[{\"type\":\"function_call_output\"}]", "/0/call_id"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        dgm_reader r = {.arena = a, .err = &err};
        dgm_canon_messages list;
        check_fails(codec->read_messages(&r, value(a, bad[i].in), NULL, &list), DGM_BAD_PARAMS, err,
                    bad[i].at);
    }
}

/* ---- requests ------------------------------------------------------------------------------------------------------- */

static void check_request(const char *request, const char *again, dgm_canon_input *ret,
                          dgm_arena *a)
{
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_stream_params params = {0};
    yyjson_val *v = value(a, request);
    dgm_form form;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    assert_int_equal(codec->recognise(v, &form), 2);
    assert_int_equal(form, DGM_FORM_REQUEST);
    check_ok(codec->read_request(&r, v, NULL, ret), err);
    dgm_writer w = {.out = &b, .format = codec->format};
    check_ok(codec->write_request(&w, ret, &params, &err), err);
    check_str(b, again);
    dgm_buf_done(&b);
}

static void requests(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_input in;
    (void)state;
    check_request("{\"model\":\"m\",\"input\":\"Hi\",\"instructions\":\"Be "
                  "brief\",\"previous_response_id\":\"resp_1\","
                  "\"stream\":true,\"temperature\":0.5,\"metadata\":{\"a2a_context_id\":\"c\","
                  "\"k\":\"v\"},\"tools\":[{"
                  "\"type\":\"web_search\"},{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}"
                  ",\"strict\":true}]}",
                  "{\"model\":\"m\",\"instructions\":\"Be "
                  "brief\",\"input\":[{\"type\":\"message\",\"role\":\"user\","
                  "\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}]}],\"tools\":[{\"type\":"
                  "\"function\",\"name\":"
                  "\"f\",\"parameters\":{},\"strict\":true},{\"type\":\"web_search\"}],\"previous_"
                  "response_id\":"
                  "\"resp_1\",\"stream\":true,\"temperature\":0.5,\"metadata\":{\"a2a_context_id\":"
                  "\"c\",\"k\":\"v\"}}",
                  &in, a);
    check_str(in.thread_id, "c");
    check_str(in.parent_run_id, "resp_1");
    assert_int_equal(in.messages.n, 2);
    assert_int_equal(in.messages.at[0].role, DGM_CANON_SYSTEM);
    assert_int_equal(in.tools.n, 1);
    check_request("{\"input\":[],\"conversation\":{\"id\":\"conv_1\"}}",
                  "{\"model\":\"dragoman\",\"input\":[],\"conversation\":{\"id\":\"conv_1\"}}", &in,
                  a);
    check_str(in.thread_id, "conv_1");
}

/* What others begin a run with. */
static void a_request_of_another_format(void **state)
{
    dgm_canon_message m = {.role = DGM_CANON_USER,
                           .id = DGM_STR("u"),
                           .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("Hi")}};
    dgm_canon_tool tool = {.name = DGM_STR("f")};
    dgm_canon_input in = {.thread_id = DGM_STR("c"), .messages = {&m, 1}, .tools = {&tool, 1}};
    dgm_stream_params params = {.model = DGM_STR("agent")};
    dgm_err err = {0};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = codec->format};
    check_ok(codec->write_request(&w, &in, &params, &err), err);
    check_str(b, "{\"model\":\"agent\",\"input\":[{\"type\":\"message\",\"role\":\"user\","
                 "\"content\":[{\"type\":"
                 "\"input_text\",\"text\":\"Hi\"}]}],\"tools\":[{\"type\":\"function\",\"name\":"
                 "\"f\",\"parameters\":{"
                 "\"type\":\"object\",\"properties\":{}},\"strict\":false}],\"metadata\":{\"a2a_"
                 "context_id\":\"c\"}}");
    dgm_buf_done(&b);
}

/* ---- whose is it ------------------------------------------------------------------------------------------------------ */

static void recognised(void **state)
{
    static const struct {
        const char *in;
        int score;
        dgm_form form;
    } rows[] = {
        {"{\"type\":\"response.created\",\"response\":{}}", 2, DGM_FORM_EVENTS},
        {"{\"type\":\"error\",\"sequence_number\":3,\"message\":\"x\"}", 2, DGM_FORM_EVENTS},
        {"[{\"type\":\"response.created\",\"response\":{}}]", 2, DGM_FORM_EVENTS},
        {"{\"object\":\"response\",\"id\":\"r\",\"output\":[]}", 2, DGM_FORM_RESPONSE},
        {"{\"model\":\"m\",\"input\":\"Hi\"}", 2, DGM_FORM_REQUEST},
        {CALL, 2, DGM_FORM_MESSAGES},
        {"[" OUTPUT "]", 2, DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}", 2,
         DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"content\":\"Hi\"}", 1, DGM_FORM_MESSAGES},
        {"{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"Hi\"}", 0, DGM_FORM_MESSAGES},
        {"{\"type\":\"RUN_STARTED\"}", 0, DGM_FORM_MESSAGES},
        {"{\"object\":\"chat.completion\",\"choices\":[]}", 0, DGM_FORM_MESSAGES},
        {"{\"messageId\":\"m\",\"role\":\"user\",\"parts\":[]}", 0, DGM_FORM_MESSAGES},
        {"{\"model\":\"m\",\"messages\":[]}", 0, DGM_FORM_MESSAGES},
        {"1", 0, DGM_FORM_MESSAGES},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_form form;
        assert_int_equal(codec->recognise(value(a, rows[i].in), &form), rows[i].score);
        assert_int_equal(form, rows[i].form);
    }
}

DGM_TEST_MAIN(dgm_test(a_conversation), dgm_test(calls_without_a_message),
              dgm_test(items_that_come_back), dgm_test(parts_of_all_kinds),
              dgm_test(bad_items_are_named), dgm_test(requests),
              dgm_test(a_request_of_another_format), dgm_test(recognised))
