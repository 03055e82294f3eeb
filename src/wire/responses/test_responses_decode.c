/* test_responses_decode.c - streams and responses of all sorts of servers, as canonical events. */
#include "canon/verify.h"
#include "wire/responses/test_responses.h"

struct out {
    struct dump dump;
    dgm_verify *verify;
};

static dgm_code take(void *arg, const dgm_canon_event *e)
{
    struct out *o = arg;
    dgm_err err = {0};
    if (dgm_verify_feed(o->verify, e, &err))
        print_error("%s\n", err.msg), fail();
    return dump_event(&o->dump, e);
}

/* Values, one per line, as lines of canonical events. Returns how many were unknown. */
static size_t check_lines(const char *lines, const char *want)
{
    dgm_stream_params p = {0};
    void *d = dgm_codec_responses.decoder_new(&p);
    struct out o = {.verify = dgm_verify_new()};
    dgm_canon_sink sink = {take, &o};
    dgm_err err = {0};
    size_t unknown = 0;
    dgm_buf_init(&o.dump.b, SIZE_MAX);
    while (*lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .err = &err};
        size_t n = strcspn(lines, "\n");
        yyjson_val *v;
        dgm_form form;
        check_ok(dgm_json_read(a, (dgm_str){lines, n}, 100000, "", &v, &err), err);
        if (dgm_json_get(v, DGM_STR("type")) || dgm_json_get(v, DGM_STR("object")))
            assert_int_equal(dgm_codec_responses.recognise(v, &form), 2);
        check_ok(dgm_codec_responses.decoder_feed(d, &r, v, sink), err);
        unknown += r.n_unknown;
        lines += n + (lines[n] == '\n');
    }
    check_ok(dgm_codec_responses.decoder_end(d, sink, &err), err);
    dgm_codec_responses.decoder_free(d);
    check_str(o.dump.b, want);
    dgm_buf_done(&o.dump.b);
    dgm_verify_free(o.verify);
    return unknown;
}

#define CREATED                                                                                    \
    "{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}"  \
    "\n"
#define ADDED(i, item)                                                                             \
    "{\"type\":\"response.output_item.added\",\"output_index\":" i ",\"item\":" item "}\n"
#define ITEM_DONE(i, item)                                                                         \
    "{\"type\":\"response.output_item.done\",\"output_index\":" i ",\"item\":" item "}\n"
#define DELTA(id, i, t)                                                                            \
    "{\"type\":\"response.output_text.delta\",\"item_id\":\"" id "\",\"output_index\":" i          \
    ",\"content_index\":0,\"delta\":\"" t "\"}\n"
#define EVENT(name, rest) "{\"type\":\"response." name "\"," rest "}\n"
#define MESSAGE(id, t)                                                                             \
    "{\"id\":\"" id                                                                                \
    "\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","       \
    "\"text\":\"" t "\"}]}"
#define COMPLETED(output)                                                                          \
    "{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\","   \
    "\"output\":[" output "]}}\n"

#define RUN "RUN_STARTED resp_1 resp_1\n"
#define TEXT(id, deltas) "TEXT_MESSAGE_START " id "\n" deltas "TEXT_MESSAGE_END " id "\n"
#define SAYS(id, t) "TEXT_MESSAGE_CONTENT " id " \"" t "\"\n"
#define FINISHED "RUN_FINISHED resp_1 resp_1\n"

static void a_stream_with_everything(void **state)
{
    (void)state;
    check_lines(
        CREATED ADDED("0", "{\"id\":\"m\",\"type\":\"message\",\"content\":[]}")
            EVENT("content_part.added", "\"item_id\":\"m\",\"output_index\":0,\"content_index\":0")
                DELTA("m", "0", "Hel") DELTA("m", "0", "lo")
                    EVENT("output_text.done", "\"item_id\":\"m\",\"output_index\":0,"
                                              "\"content_index\":0,\"text\":\"Hello\"")
                        ITEM_DONE("0", MESSAGE("m", "Hello")) COMPLETED(MESSAGE("m", "Hello")),
        RUN TEXT("m", SAYS("m", "Hel") SAYS("m", "lo")) FINISHED);
}

static void items_only_in_the_response(void **state)
{
    (void)state;
    check_lines(CREATED COMPLETED(MESSAGE("m", "Hello")),
                RUN TEXT("m", SAYS("m", "Hello")) FINISHED);
    check_lines(CREATED DELTA("m", "0", "Hel") COMPLETED(MESSAGE("m", "Hello")),
                RUN TEXT("m", SAYS("m", "Hel") SAYS("m", "lo")) FINISHED);
    check_lines(CREATED ITEM_DONE("0", MESSAGE("m", "Hello")) COMPLETED(""),
                RUN TEXT("m", SAYS("m", "Hello")) FINISHED);
    check_lines(
        CREATED EVENT("output_text.done", "\"item_id\":\"m\",\"content_index\":0,\"text\":\"Hi\"")
            COMPLETED(""),
        RUN TEXT("m", SAYS("m", "Hi")) FINISHED);
}

static void the_response_knows_better(void **state)
{
    (void)state;
    check_lines(
        CREATED DELTA("m", "0", "Helo") COMPLETED(MESSAGE("m", "Hello")),
        RUN "TEXT_MESSAGE_START m\n" SAYS("m", "Helo") "MESSAGES_SNAPSHOT {assistant m \"Hello\"} "
                                                       "changed=m\nTEXT_MESSAGE_END m\n" FINISHED);
}

#define CALL(id, call, args)                                                                       \
    "{\"id\":\"" id "\",\"type\":\"function_call\",\"call_id\":\"" call                            \
    "\",\"name\":\"f\",\"arguments\":\"" args "\"}"
#define ARGS(id, t)                                                                                \
    "{\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"" id "\",\"delta\":\"" t   \
    "\"}\n"

static void calls_side_by_side(void **state)
{
    (void)state;
    check_lines(CREATED ADDED("0", CALL("fc_1", "a", "")) ADDED("1", CALL("fc_2", "b", ""))
                    ARGS("fc_2", "{") ARGS("fc_1", "[") ARGS("fc_1", "]")
                        ITEM_DONE("0", CALL("fc_1", "a", "[]"))
                            ITEM_DONE("1", CALL("fc_2", "b", "{}"))
                                COMPLETED(CALL("fc_1", "a", "[]") "," CALL("fc_2", "b", "{}")),
                RUN "TOOL_CALL_START a f parent=resp_1-m1\nTOOL_CALL_START b f parent=resp_1-m1\n"
                    "TOOL_CALL_ARGS b \"{\"\nTOOL_CALL_ARGS a \"[\"\nTOOL_CALL_ARGS a \"]\"\n"
                    "TOOL_CALL_END a\nTOOL_CALL_ARGS b \"}\"\nTOOL_CALL_END b\n"
                    "RUN_FINISHED resp_1 resp_1 success pending=a pending=b\n");
    /* no `added`: the item tells all */
    check_lines(CREATED ARGS("fc_1", "[") ITEM_DONE("0", CALL("fc_1", "a", "[]")) COMPLETED(""), RUN
                "TOOL_CALL_START a f parent=resp_1-m1\nTOOL_CALL_ARGS a \"[]\"\nTOOL_CALL_END a\n"
                "RUN_FINISHED resp_1 resp_1 success pending=a\n");
}

static void calls_that_are_answered(void **state)
{
    (void)state;
    check_lines(
        CREATED COMPLETED(
            "{\"id\":\"mcp_1\",\"type\":\"mcp_call\",\"name\":\"f\",\"arguments\":\"{}\","
            "\"output\":\"x\"},"
            "{\"id\":\"mcp_2\",\"type\":\"mcp_call\",\"name\":\"f\",\"arguments\":\"{}\",\"error\":"
            "\"no\"}," CALL(
                "fc", "a",
                "{}") ",{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"y\"}"),
        RUN "TOOL_CALL_START mcp_1 f parent=resp_1-m1\nTOOL_CALL_ARGS mcp_1 \"{}\"\nTOOL_CALL_END "
            "mcp_1\n"
            "TOOL_CALL_RESULT resp_1-r2 mcp_1 \"x\"\n"
            "TOOL_CALL_START mcp_2 f parent=resp_1-m3\nTOOL_CALL_ARGS mcp_2 \"{}\"\nTOOL_CALL_END "
            "mcp_2\n"
            "TOOL_CALL_RESULT resp_1-r4 mcp_2 \"no\" metadata={\"dragoman:error\":true}\n"
            "TOOL_CALL_START a f parent=resp_1-m5\nTOOL_CALL_ARGS a \"{}\"\nTOOL_CALL_END a\n"
            "TOOL_CALL_RESULT resp_1-r6 a \"y\"\n" FINISHED);
}

#define THINKS(id, t) "REASONING_MESSAGE_CONTENT " id " \"" t "\"\n"

static void thoughts_of_both_kinds(void **state)
{
    (void)state;
    check_lines(
        CREATED ADDED("0", "{\"id\":\"rs\",\"type\":\"reasoning\",\"summary\":[]}")
            EVENT("reasoning_summary_text.delta",
                  "\"item_id\":\"rs\",\"summary_index\":0,\"delta\":\"a\"")
                EVENT("reasoning_summary_text.done",
                      "\"item_id\":\"rs\",\"summary_index\":0,\"text\":\"ab\"")
                    EVENT("reasoning_text.delta",
                          "\"item_id\":\"rs\",\"content_index\":0,\"delta\":\"c\"")
                        ITEM_DONE(
                            "0",
                            "{\"id\":\"rs\",\"type\":\"reasoning\",\"summary\":[{\"text\":\"ab\"}],"
                            "\"encrypted_content\":\"x\"}") COMPLETED(""),
        RUN "REASONING_START rs\nREASONING_MESSAGE_START rs\n" THINKS("rs", "a")
            THINKS("rs", "b") "REASONING_MESSAGE_END rs\nREASONING_MESSAGE_START rs-2\n" THINKS(
                "rs-2", "c") "REASONING_ENCRYPTED_VALUE rs\nREASONING_MESSAGE_END "
                             "rs-2\nREASONING_END rs\n" FINISHED);
    check_lines(CREATED COMPLETED(
                    "{\"id\":\"rs\",\"type\":\"reasoning\",\"summary\":[],\"content\":[{\"type\":"
                    "\"reasoning_text\",\"text\":\"c\"}]}"),
                RUN "REASONING_START rs\nREASONING_MESSAGE_START rs\n" THINKS(
                    "rs", "c") "REASONING_MESSAGE_END rs\nREASONING_END rs\n" FINISHED);
}

#define REFUSAL                                                                                    \
    "{\"id\":\"m\",\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"No\"}]}"

static void refusals(void **state)
{
    (void)state;
    check_lines(CREATED EVENT("refusal.delta", "\"item_id\":\"m\",\"delta\":\"N\"")
                    EVENT("refusal.done", "\"item_id\":\"m\",\"refusal\":\"No\"")
                        ITEM_DONE("0", REFUSAL) COMPLETED(REFUSAL),
                RUN "RUN_ERROR rejected \"No\"\n");
    check_lines(CREATED DELTA("a", "0", "So") COMPLETED(MESSAGE("a", "So") "," REFUSAL),
                RUN TEXT("a", SAYS("a", "So")) TEXT("m", SAYS("m", "No")) FINISHED);
}

static void ends(void **state)
{
#define ENDS(type, rest)                                                                           \
    "{\"type\":\"response." type "\",\"response\":{\"id\":\"resp_1\"," rest "}}\n"
    (void)state;
    check_lines(CREATED ENDS("incomplete", "\"status\":\"cancelled\""),
                RUN "RUN_FINISHED resp_1 resp_1 cancelled\n");
    check_lines(CREATED ENDS("incomplete",
                             "\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":"
                             "\"max_output_tokens\"}"),
                RUN "CUSTOM dragoman:metadata {\"finish_reason\":\"length\"}\n" FINISHED);
    check_lines(CREATED
                "{\"type\":\"error\",\"sequence_number\":1,\"code\":\"c\",\"message\":\"flat\"}\n",
                RUN "RUN_ERROR c \"flat\"\n");
    check_lines(
        CREATED
        "{\"type\":\"error\",\"sequence_number\":1,\"error\":{\"code\":\"c\",\"message\":\"n\"}}"
        "\n" ENDS("failed",
                  "\"status\":\"failed\",\"error\":{\"code\":\"d\",\"message\":\"m\"},\"usage\":{"
                  "\"input_tokens\":1}"),
        RUN "RUN_ERROR d \"m\" in=1\n");
}

static void no_end_is_an_error(void **state)
{
    (void)state;
    check_lines(
        CREATED DELTA("m", "0", "Hel"),
        RUN TEXT(
            "m",
            SAYS("m",
                 "Hel")) "RUN_ERROR incomplete \"The stream ended before its response did\"\n");
}

static void what_comes_after_the_end_is_nothing(void **state)
{
    (void)state;
    check_lines(CREATED COMPLETED("") DELTA("m", "0", "Hel"), RUN FINISHED);
}

static void strangers_are_counted_and_their_items_kept(void **state)
{
    (void)state;
    assert_int_equal(
        check_lines(
            CREATED EVENT("web_search_call.searching", "\"item_id\":\"ws\"")
                EVENT("nobody.knows", "\"x\":1")
                    ITEM_DONE("0", "{\"id\":\"ws\",\"type\":\"web_search_call\"}") COMPLETED(""),
            RUN "CUSTOM openai:item {\"id\":\"ws\",\"type\":\"web_search_call\"}\n" FINISHED),
        2);
    check_lines(
        CREATED COMPLETED("{\"id\":\"ig\",\"type\":\"image_generation_call\",\"result\":\"aGk=\"}"),
        RUN "ARTIFACT "
            "{\"artifact\":{\"artifactId\":\"ig\",\"parts\":[{\"raw\":\"aGk=\","
            "\"mediaType\":\"image/png\"}]},\"lastChunk\":true}\n" FINISHED);
}

static void marks_of_our_own(void **state)
{
#define OURS(state)                                                                                \
    "{\"object\":\"response\",\"id\":\"resp_t\",\"status\":\"completed\",\"metadata\":{\"a2a_"     \
    "task_id\":\"t\","                                                                             \
    "\"a2a_context_id\":\"c\",\"a2a_task_state\":\"" state "\"},\"output\":[" MESSAGE(             \
        "msg_1", "One") "," MESSAGE("msg_2", "\\n\\nTwo?") "," MESSAGE("msg_2-2", "!") "]}\n"
    (void)state;
    check_lines(OURS("input-required"),
                "RUN_STARTED c t\n" TEXT("1", SAYS("1", "One")) TEXT("2", SAYS("2", "Two?")) TEXT(
                    "2", SAYS("2", "!")) "RUN_FINISHED c t interrupt {t input_required \"!\"}\n");
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *in, *at;
    } bad[] = {{"[]", ""}, {"{}", "/type"}, {"{\"type\":1}", "/type"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_stream_params p = {0};
        dgm_err err = {0};
        dgm_reader r = {.arena = a, .err = &err};
        struct out o = {0};
        void *d = dgm_codec_responses.decoder_new(&p);
        yyjson_val *v;
        check_ok(dgm_json_read(a, dgm_str_from(bad[i].in), 1000, "", &v, &err), err);
        check_fails(dgm_codec_responses.decoder_feed(d, &r, v, (dgm_canon_sink){take, &o}),
                    DGM_BAD_PARAMS, err, bad[i].at);
        dgm_codec_responses.decoder_free(d);
    }
}

DGM_TEST_MAIN(dgm_test(a_stream_with_everything), dgm_test(items_only_in_the_response),
              dgm_test(the_response_knows_better), dgm_test(calls_side_by_side),
              dgm_test(calls_that_are_answered), dgm_test(thoughts_of_both_kinds),
              dgm_test(refusals), dgm_test(ends), dgm_test(no_end_is_an_error),
              dgm_test(what_comes_after_the_end_is_nothing),
              dgm_test(strangers_are_counted_and_their_items_kept), dgm_test(marks_of_our_own),
              dgm_test(nonsense_is_refused))
