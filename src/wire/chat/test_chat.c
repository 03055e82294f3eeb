/* test_chat.c - chat messages: read tolerantly, written strictly, nothing unknown lost. */
#include "base/limits.h"
#include "support/check.h"
#include "wire/chat/chat.h"

static dgm_code read_text(dgm_arena *a, const char *text, dgm_chat_messages *ret, dgm_err *err)
{
    static dgm_mint mint;
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT, .mint = &mint, .err = err};
    yyjson_val *v;
    dgm_code rc;
    mint = (dgm_mint){0};
    if ((rc = dgm_json_read(a, dgm_str_from(text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err)))
        return rc;
    return dgm_chat_read(&r, v, NULL, ret);
}

static void write_all(dgm_buf *b, const dgm_chat_messages *m)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_CHAT};
    for (size_t i = 0; i < m->n; i++) {
        if (i)
            dgm_buf_add_char(b, '\n');
        dgm_chat_write(&w, &m->at[i]);
    }
}

/* ---- what is read is written back ------------------------------------------------------------------ */

struct row {
    const char *name, *in, *out; /* out NULL: the same */
};

#define A(rest) "{\"role\":\"assistant\"," rest "}"
#define U(rest) "{\"role\":\"user\",\"content\":" rest "}"
#define FN(name) "\"function\":{\"name\":\"" name "\",\"arguments\":\"{}\"}"

/* clang-format off */
static const struct row rows[] = {
    {"a user's text", U("\"Hi\""), NULL},
    {"an empty text", U("\"\""), NULL},
    {"a system message with a name",
     "{\"role\":\"system\",\"name\":\"s\",\"content\":\"Be brief.\"}", NULL},
    {"a developer message", "{\"role\":\"developer\",\"content\":\"Be brief.\"}", NULL},
    {"text with every kind of character",
     U("\"\\u0000\\n\\\"\\\\ \u2028 72°F 😀\""),
     NULL},
    {"a call without content",
     A("\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\"," FN("f") "}]"), NULL},
    {"a call with content null",
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\"," FN("f") "}]"), NULL},
    {"a call with content",
     A("\"content\":\"Let me see.\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\"," FN(
         "f") "}]"),
     NULL},
    {"a call without a type", A("\"content\":\"\",\"tool_calls\":[{\"id\":\"c\"," FN("f") "}]"),
     A("\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\"," FN("f") "}]")},
    {"a call with an object for arguments",
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.0],\"b\":\"é\"}}}]"),
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1, 2.0], \\\"b\\\": \\\"é\\\"}\"}}]")},
    {"a call without arguments",
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"),
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]")},
    {"a call without an id gets one",
     A("\"content\":null,\"tool_calls\":[{\"type\":\"function\"," FN("f") "}]"),
     A("\"content\":null,\"tool_calls\":[{\"id\":\"@\",\"type\":\"function\"," FN("f") "}]")},
    {"a call of a custom tool",
     A("\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"custom\",\"custom\":{\"name\":\"sh\",\"input\":\"ls\"}}]"),
     NULL},
    {"an empty list of calls", A("\"content\":\"x\",\"tool_calls\":[]"), A("\"content\":\"x\"")},
    {"members that are null",
     A("\"content\":\"x\",\"refusal\":null,\"tool_calls\":null,\"function_call\":null,\"name\":null"),
     A("\"content\":\"x\"")},
    {"a refusal", A("\"content\":null,\"refusal\":\"I cannot.\""), NULL},
    {"reasoning", A("\"content\":\"4\",\"reasoning_content\":\"2+2\""), NULL},
    {"an assistant with nothing to say", A("\"content\":null"), NULL},
    {"a legacy call", A("\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}"),
     NULL},
    {"a legacy result", "{\"role\":\"function\",\"name\":\"f\",\"content\":\"4\"}", NULL},
    {"a result", "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"4\"}", NULL},
    {"a result without content", "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":null}",
     NULL},
    {"a result in parts",
     "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":[{\"type\":\"text\",\"text\":\"4\"}]}",
     NULL},
    {"all kinds of parts",
     U("[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x.test/i\",\"detail\":\"low\"}},"
     "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}},"
     "{\"type\":\"file\",\"file\":{\"filename\":\"a.pdf\",\"file_data\":\"data:application/pdf;base64,AAAA\"}},"
     "{\"type\":\"file\",\"file\":{\"file_id\":\"file-1\"}},"
     "{\"type\":\"video_url\",\"video_url\":{\"url\":\"https://x.test/v\"}},"
     "{\"type\":\"refusal\",\"refusal\":\"no\"}]"),
     NULL},
    {"parts without a type",
     U("[{\"text\":\"a\"},{\"image_url\":{\"url\":\"u\"}},{\"file\":{\"file_id\":\"f\"}}]"),
     U("[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}},"
     "{\"type\":\"file\",\"file\":{\"file_id\":\"f\"}}]")},
    {"addresses without an object around them",
     U("[{\"type\":\"image_url\",\"image_url\":\"u\"},"
     "{\"type\":\"video_url\",\"video_url\":\"v\"}]"),
     U("[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}},"
     "{\"type\":\"video_url\",\"video_url\":{\"url\":\"v\"}}]")},
    {"texts as the Responses API spells them",
     U("[\"a\",{\"type\":\"input_text\",\"text\":\"b\"},"
     "{\"type\":\"output_text\",\"text\":\"c\"}]"),
     U("[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},"
     "{\"type\":\"text\",\"text\":\"c\"}]")},
    {"a part of unknown type", U("[{\"type\":\"smell\",\"smell\":{\"of\":[\"roses\",1e400]}}]"),
     NULL},
    {"unknown members everywhere",
     "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"prompt_cache_breakpoint\":true},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\",\"x\":1.0},\"y\":-0}],\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\",\"strict\":null},\"index\":0}],\"annotations\":[],\"audio\":{\"id\":\"a\"}}",
     NULL},
};
/* clang-format on */

static void is_written_back(void **state)
{
    const struct row *row = *state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_chat_messages m = {0};
    dgm_err err = {0};
    dgm_buf out, want;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_buf_init(&want, SIZE_MAX);
    check_ok(read_text(a, row->in, &m, &err), err);
    write_all(&out, &m);
    for (const char *p = row->out ? row->out : row->in; *p; p++) { /* @ stands for the minted id */
        if (*p == '@' && m.n && m.at[0].tool_calls.n)
            dgm_buf_add_str(&want, m.at[0].tool_calls.at[0].id);
        else
            dgm_buf_add_char(&want, *p);
    }
    check_same(out, want);
    dgm_buf_clear(&want);
    check_ok(read_text(a, dgm_arena_dup(a, dgm_buf_str(&out)).p, &m, &err), err);
    write_all(&want, &m);
    check_same(want, out); /* what we write we read the same */
    dgm_buf_done(&out);
    dgm_buf_done(&want);
}

/* ---- faults -------------------------------------------------------------------------------------------- */

struct fault {
    const char *in, *at;
};

/* clang-format off */
static const struct fault faults[] = {
    {"{}", "/role"},
    {"42", ""},
    {"{\"role\":\"wizard\",\"content\":\"x\"}", "/role"},
    {"{\"role\":\"user\"}", "/content"},
    {"{\"role\":\"user\",\"content\":null}", "/content"},
    {"{\"role\":\"system\"}", "/content"},
    {"{\"role\":\"user\",\"content\":5}", "/content"},
    {"{\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}", "/content"},
    {"{\"role\":\"user\",\"content\":[5]}", "/content/0"},
    {"{\"role\":\"user\",\"content\":[{}]}", "/content/0/type"},
    {"{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}", "/content/0/text"},
    {"{\"role\":\"user\",\"content\":[\"a\",{\"type\":\"image_url\",\"image_url\":{}}]}",
     "/content/1/image_url/url"},
    {"{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":7}]}",
     "/content/0/image_url"},
    {"{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{}}]}",
     "/content/0/input_audio/data"},
    {"{\"role\":\"user\",\"content\":[{\"type\":\"file\"}]}", "/content/0/file"},
    {"{\"role\":\"tool\",\"content\":\"x\"}", "/tool_call_id"},
    {"{\"role\":\"function\",\"content\":\"x\"}", "/name"},
    {"{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":[{\"id\":\"c\"," FN("f") "}]}",
     "/tool_calls"},
    {"{\"role\":\"user\",\"content\":\"x\",\"function_call\":{\"name\":\"f\"}}", "/function_call"},
    {"{\"role\":\"assistant\",\"tool_calls\":{}}", "/tool_calls"},
    {"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\"}]}", "/tool_calls/0/function"},
    {"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{\"arguments\":\"{}\"}}]}",
     "/tool_calls/0/function/name"},
    {"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"dance\"," FN("f") "}]}",
     "/tool_calls/0/type"},
    {"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"custom\":{\"name\":\"f\"}}]}",
     "/tool_calls/0/custom/input"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"user\"}]}",
     "/messages/1/content"},
    {"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":4}}]}",
     "/choices/0/message/content"},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}", "/choices/0/delta"},
    {"{\"choices\":[{}]}", "/choices/0/message"},
    {"[{\"role\":\"user\",\"content\":\"x\"},7]", "/1"},
};
/* clang-format on */

static void faults_are_named_with_their_pointer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_chat_messages m = {0};
        dgm_err err = {0};
        print_message("# %s\n", faults[i].in);
        check_fails(read_text(a, faults[i].in, &m, &err), DGM_BAD_PARAMS, err, faults[i].at);
        assert_true(err.msg[0] != 0);
    }
}

static void a_call_without_id_and_without_mint_is_refused(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT, .err = &err};
    dgm_chat_messages m = {0};
    (void)state;
    yyjson_val *v = dgm_json_parse_trusted(a, DGM_STR(A("\"tool_calls\":[{" FN("f") "}]")));
    check_fails(dgm_chat_read(&r, v, NULL, &m), DGM_BAD_PARAMS, err, "/tool_calls/0/id");
}

static void too_many_parts_meet_the_limit(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_chat_messages m = {0};
    dgm_err err = {0};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"role\":\"user\",\"content\":[\"\"");
    for (int i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        dgm_buf_add_lit(&b, ",\"\"");
    dgm_buf_add_lit(&b, "]}");
    dgm_buf_add_char(&b, 0);
    check_fails(read_text(a, b.p, &m, &err), DGM_TOO_LARGE, err, "/content");
    dgm_buf_clear(&b);
    dgm_buf_add_lit(&b, "[1");
    for (int i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        dgm_buf_add_lit(&b, ",1");
    dgm_buf_add_lit(&b, "]");
    dgm_buf_add_char(&b, 0);
    check_fails(read_text(a, b.p, &m, &err), DGM_TOO_LARGE, err, "");
    dgm_buf_done(&b);
}

/* ---- bodies ----------------------------------------------------------------------------------------------- */

static void check_body(const char *in, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_chat_messages m = {0};
    dgm_err err = {0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    check_ok(read_text(a, in, &m, &err), err);
    write_all(&b, &m);
    check_str(b, want);
    dgm_buf_done(&b);
}

static void bodies_give_their_messages(void **state)
{
    (void)state;
    check_body("{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"}," U(
                   "\"x\"") "],\"n\":1}",
               "{\"role\":\"system\",\"content\":\"s\"}\n" U("\"x\""));
    check_body(
        "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":" A(
            "\"content\":\"a\"") ",\"finish_reason\":\"stop\"},{\"index\":1,\"message\":" A("\"cont"
                                                                                            "ent\":"
                                                                                            "\"b\"") "}],\"usage\":{}}",
        A("\"content\":\"a\"") "\n" A("\"content\":\"b\""));
    check_body("[" U("\"x\"") "," A("\"content\":\"a\"") "]",
               U("\"x\"") "\n" A("\"content\":\"a\""));
    check_body("{\"messages\":[]}", "");
}

static void check_recognised(const char *text, int want, bool is_message)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = dgm_json_parse_trusted(a, dgm_str_from(text));
    print_message("# %s\n", text);
    assert_int_equal(dgm_chat_recognise(v), want);
    assert_int_equal(dgm_chat_is_message(v), is_message);
}

static void chat_is_distinguished_from_a2a(void **state)
{
    (void)state;
    check_recognised(U("\"x\""), 2, true);
    check_recognised(A("\"content\":null"), 2, true);
    check_recognised(A("\"tool_calls\":[]"), 2, true);
    check_recognised("{\"role\":\"tool\",\"tool_call_id\":\"c\"}", 2, true);
    check_recognised("{\"messages\":[" U("\"x\"") "]}", 2, false);
    check_recognised("{\"model\":\"m\",\"messages\":[]}", 1, false);
    check_recognised("{\"choices\":[{\"message\":{}}]}", 2, false);
    check_recognised("{\"choices\":[{\"delta\":{}}]}", 2, false);
    check_recognised("[" U("\"x\"") "]", 2, false);
    check_recognised("{\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"x\"}]}", 0, true);
    check_recognised("{\"role\":\"user\",\"parts\":[],\"content\":\"x\"}", 0, true);
    check_recognised("{\"kind\":\"message\",\"role\":\"user\",\"content\":\"x\"}", 0, true);
    check_recognised("{\"messageId\":\"m\",\"role\":\"user\",\"content\":\"x\"}", 0, true);
    check_recognised("{\"role\":\"ROLE_USER\",\"content\":[{\"text\":\"x\"}]}", 0, true);
    check_recognised("{\"role\":\"user\"}", 0, true);
    check_recognised("{\"role\":5,\"content\":\"x\"}", 0, true);
    check_recognised("{\"messages\":[{\"role\":\"user\",\"parts\":[]}]}", 0, false);
    check_recognised("{\"id\":\"t\",\"status\":{}}", 0, true);
    check_recognised("[]", 0, false);
    check_recognised("null", 0, false);
    check_recognised("\"user\"", 0, false);
}

int main(void)
{
    struct CMUnitTest tests[sizeof rows / sizeof *rows + 8];
    const struct CMUnitTest others[] = {
        dgm_test(faults_are_named_with_their_pointer),
        dgm_test(a_call_without_id_and_without_mint_is_refused),
        dgm_test(too_many_parts_meet_the_limit),
        dgm_test(bodies_give_their_messages),
        dgm_test(chat_is_distinguished_from_a2a),
    };
    size_t n = 0;
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tests[n++] = (struct CMUnitTest)dgm_test_with(rows[i].name, is_written_back, &rows[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        tests[n++] = others[i];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("chat", tests, n, NULL, NULL);
}
