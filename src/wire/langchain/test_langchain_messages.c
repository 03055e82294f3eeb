/* test_langchain_messages.c - LangChain's messages in all their forms. */
#include "wire/langchain/langchain.h"
#include "wire/test_codec.h"

#define LC (&dgm_codec_langchain)

static void check_read(const char *text, const char *want)
{
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(dump_messages_of(LC, text, &b, &err), err);
    check_str(b, want);
    dgm_buf_done(&b);
}

static void check_convert(const char *text, const char *want)
{
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(convert_messages(LC, LC, text, &b, &err), err);
    check_str(b, want);
    dgm_buf_done(&b);
}

#define HUMAN "{\"type\":\"human\",\"data\":{\"content\":\"hi\",\"type\":\"human\",\"id\":\"1\"}}"
#define AI                                                                                         \
    "{\"type\":\"ai\",\"data\":{\"content\":\"\",\"additional_kwargs\":{\"x\":1},"                 \
    "\"usage_metadata\":{\"input_tokens\":1},\"type\":\"ai\",\"id\":\"2\",\"tool_calls\":[{"       \
    "\"args\":{\"q\":1},\"name\":\"f\",\"id\":\"c1\",\"type\":\"tool_call\"}],"                    \
    "\"invalid_tool_calls\":[{\"args\":\"{\",\"name\":\"g\",\"id\":\"c2\",\"error\":\"The "        \
    "arguments are no JSON object\",\"type\":\"invalid_tool_call\"}]}}"
#define TOOL                                                                                       \
    "{\"type\":\"tool\",\"data\":{\"content\":\"3\",\"artifact\":[1],\"type\":\"tool\",\"name\":"  \
    "\"f\",\"id\":\"3\",\"tool_call_id\":\"c1\",\"status\":\"error\"}}"

static void stored_messages_come_back(void **state)
{
    (void)state;
    check_read("[" HUMAN "," AI "," TOOL "]",
               " {user 1 \"hi\"} {assistant 2 c1=f({\"q\": 1}) c2=g({)} {tool 3 \"3\" of c1}");
    check_convert("[" HUMAN "," AI "," TOOL "]", HUMAN "\n" AI "\n" TOOL "\n");
}

static void the_four_forms_are_equivalent(void **state)
{
    static const char *const forms[] = {
        AI,
        "{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain\",\"schema\",\"messages\","
        "\"AIMessage\"],\"kwargs\":{\"content\":\"\",\"id\":\"2\",\"tool_calls\":[{\"name\":\"f\","
        "\"args\":{\"q\":1},\"id\":\"c1\"}],\"invalid_tool_calls\":[{\"name\":\"g\",\"args\":\"{\","
        "\"id\":\"c2\",\"error\":null}]}}",
        "{\"type\":\"ai\",\"content\":[],\"id\":\"2\",\"tool_calls\":[{\"name\":\"f\",\"args\":{"
        "\"q\":1},\"id\":\"c1\"},{\"name\":\"g\",\"args\":\"{\",\"id\":\"c2\"}]}",
        "{\"role\":\"assistant\",\"content\":null,\"id\":\"2\",\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\": 1}\"}},{"
        "\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}]}",
        "{\"type\":\"ai\",\"data\":{\"content\":\"\",\"id\":\"2\",\"tool_calls\":[],"
        "\"additional_kwargs\":{\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{"
        "\"name\":\"f\",\"arguments\":\"{\\\"q\\\": 1}\"}},{\"id\":\"c2\",\"function\":{\"name\":"
        "\"g\",\"arguments\":\"{\"}}]}}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_read(forms[i], " {assistant 2 c1=f({\"q\": 1}) c2=g({)}");
}

static void roles_and_kinds(void **state)
{
    (void)state;
    check_read("[{\"type\":\"system\",\"content\":\"a\",\"id\":\"1\"},"
               "{\"type\":\"chat\",\"data\":{\"role\":\"user\",\"content\":\"b\",\"id\":\"2\"}},"
               "{\"type\":\"system\",\"content\":\"c\",\"id\":\"3\",\"additional_kwargs\":{"
               "\"__openai_role__\":\"developer\"}},{\"role\":\"developer\",\"content\":\"d\","
               "\"id\":\"4\"},{\"type\":\"remove\",\"data\":{\"content\":\"\",\"id\":\"5\"}},"
               "{\"type\":\"function\",\"content\":\"e\",\"name\":\"f\",\"id\":\"6\"},"
               "{\"type\":\"HumanMessageChunk\",\"content\":\"g\",\"id\":\"7\"}]",
               " {system 1 \"a\"} {user 2 \"b\"} {developer 3 \"c\"} {developer 4 \"d\"}"
               " {tool 6 \"e\" of f} {user 7 \"g\"}");
    check_convert(
        "{\"role\":\"developer\",\"content\":\"d\",\"id\":\"4\"}",
        "{\"type\":\"system\",\"data\":{\"content\":\"d\",\"additional_kwargs\":{\"__openai_"
        "role__\":\"developer\"},\"type\":\"system\",\"id\":\"4\"}}\n");
}

static void blocks(void **state)
{
    (void)state;
    check_convert(
        "{\"type\":\"human\",\"id\":\"1\",\"content\":[\"look\",{\"type\":\"image\","
        "\"base64\":\"aGk=\",\"mime_type\":\"image/png\",\"extras\":{\"filename\":\"a.png"
        "\"}},{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x\"}},{\"type\":"
        "\"file\",\"fileId\":\"f1\"},{\"type\":\"image\",\"source_type\":\"base64\","
        "\"data\":\"aGk=\",\"mime_type\":\"image/png\"},{\"type\":\"image_url\","
        "\"image_url\":\"data:image/gif;base64,aGk=\"},{\"type\":\"odd\"}]}",
        "{\"type\":\"human\",\"data\":{\"content\":[{\"type\":\"text\",\"text\":\"look\"},"
        "{\"type\":\"image\",\"base64\":\"aGk=\",\"mime_type\":\"image/png\",\"extras\":{"
        "\"filename\":\"a.png\"}},{\"type\":\"image\",\"url\":\"https://x\"},{\"type\":"
        "\"file\",\"file_id\":\"f1\"},{\"type\":\"image\",\"base64\":\"aGk=\",\"mime_type\":"
        "\"image/png\"},{\"type\":\"image\",\"base64\":\"aGk=\",\"mime_type\":\"image/gif\""
        "}],\"type\":\"human\",\"id\":\"1\"}}\n");
    check_read("{\"type\":\"ai\",\"id\":\"1\",\"content\":[{\"type\":\"reasoning\",\"summary\":[{"
               "\"text\":\"a\"}]},{\"type\":\"thinking\",\"thinking\":\"b\"},{\"type\":\"text\","
               "\"text\":\"x\"},{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"f\",\"args\":{}},"
               "{\"type\":\"image\",\"url\":\"https://x/y.png\"}]}",
               " {reasoning 1-t1 \"a\"} {reasoning 1-t2 \"b\"} {assistant 1 "
               "\"x\\n![](https://x/y.png)\" c=f({})}");
    check_convert("{\"type\":\"ai\",\"id\":\"1\",\"content\":\"x\",\"additional_kwargs\":{"
                  "\"reasoning_content\":\"hm\"}}",
                  "{\"type\":\"ai\",\"data\":{\"content\":[{\"type\":\"reasoning\",\"reasoning\":"
                  "\"hm\"},{\"type\":\"text\",\"text\":\"x\"}],\"additional_kwargs\":{\"reasoning_"
                  "content\":\"hm\"},\"type\":\"ai\",\"id\":\"1\"}}\n");
}

static void what_it_is_shows(void **state)
{
    static const struct {
        const char *text;
        int score;
        dgm_form form;
    } rows[] = {
        {HUMAN, 2, DGM_FORM_MESSAGES},
        {"{\"type\":\"ai\",\"content\":\"x\"}", 2, DGM_FORM_MESSAGES},
        {"{\"type\":\"tool\",\"content\":\"x\"}", 1, DGM_FORM_MESSAGES},
        {"{\"role\":\"user\",\"content\":\"x\"}", 1, DGM_FORM_MESSAGES},
        {"{\"type\":\"AIMessageChunk\",\"content\":\"x\"}", 1, DGM_FORM_EVENTS},
        {"{\"type\":\"AIMessageChunk\",\"data\":{\"content\":\"x\"}}", 2, DGM_FORM_EVENTS},
        {"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"AIMessageChunk\"],\"kwargs\":{}}", 2,
         DGM_FORM_EVENTS},
        {"{\"type\":\"text\",\"data\":{}}", 0, DGM_FORM_NONE},
        {"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"ChatPromptTemplate\"],\"kwargs\":{}}", 0,
         DGM_FORM_NONE},
        {"{\"type\":\"text-delta\",\"id\":\"0\"}", 0, DGM_FORM_NONE},
        {"[]", 0, DGM_FORM_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        dgm_form form;
        yyjson_val *v;
        check_ok(dgm_json_read(a, dgm_str_from(rows[i].text), SIZE_MAX, "", &v, &err), err);
        assert_int_equal(LC->recognise(v, &form), rows[i].score);
        if (rows[i].score)
            assert_int_equal(form, rows[i].form);
    }
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *text, *at;
    } bad[] = {
        {"[7]", "/0"},
        {"{\"type\":\"other\",\"content\":\"x\"}", ""},
        {"{\"type\":\"human\",\"data\":{}}", "/data/content"},
        {"{\"type\":\"human\",\"content\":7}", "/content"},
        {"{\"type\":\"human\",\"content\":[7]}", "/content/0"},
        {"{\"type\":\"tool\",\"data\":{\"content\":\"x\"}}", "/data/tool_call_id"},
        {"{\"type\":\"ai\",\"data\":{\"content\":\"x\",\"tool_calls\":{}}}", "/data/tool_calls"},
        {"{\"type\":\"ai\",\"data\":{\"content\":\"x\",\"tool_calls\":[{}]}}",
         "/data/tool_calls/0/name"},
        {"{\"type\":\"human\",\"content\":[{\"type\":\"image\"}]}", "/content/0"},
        {"{\"type\":\"human\",\"content\":[{\"type\":\"image\",\"base64\":\"!\"}]}", "/content/0"},
        {"{\"type\":\"human\",\"content\":[{\"type\":\"image_url\"}]}", "/content/0/image_url"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_buf b;
        dgm_err err = {0};
        dgm_buf_init(&b, SIZE_MAX);
        check_fails(dump_messages_of(LC, bad[i].text, &b, &err), DGM_BAD_PARAMS, err, bad[i].at);
        dgm_buf_done(&b);
    }
}

DGM_TEST_MAIN(dgm_test(stored_messages_come_back), dgm_test(the_four_forms_are_equivalent),
              dgm_test(roles_and_kinds), dgm_test(blocks), dgm_test(what_it_is_shows),
              dgm_test(what_is_wrong_is_refused))
