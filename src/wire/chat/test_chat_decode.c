/* test_chat_decode.c - what servers of many makers send, as canonical events. */
#include "canon/verify.h"
#include "wire/chat/test_chat_codec.h"

/* Chunks of completion x. */
#define CHUNK(choices, more)                                                                       \
    "{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":5,\"model\":\"gpt\","          \
    "\"choices\":[" choices "]" more "}\n"
#define DELTA(d) CHUNK("{\"index\":0,\"delta\":{" d "},\"finish_reason\":null}", "")
#define FINISH(reason) CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}", "")
#define CALLS(list) DELTA("\"tool_calls\":[" list "]")
#define FUNCTION(name, arguments)                                                                  \
    "\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}"
#define MORE(arguments) "\"function\":{\"arguments\":\"" arguments "\"}"

#define STARTED "RUN_STARTED x x\n"
#define SAYS(a) "TEXT_MESSAGE_START x-m1\nTEXT_MESSAGE_CONTENT x-m1 \"" a "\"\n"
#define MORE_SAID(a) "TEXT_MESSAGE_CONTENT x-m1 \"" a "\"\n"
#define SAID "TEXT_MESSAGE_END x-m1\n"
#define FINISHED "RUN_FINISHED x x\n"
#define CALL(id, name) "TOOL_CALL_START " id " " name " parent=x-m1\n"
#define ARGS(id, t) "TOOL_CALL_ARGS " id " \"" t "\"\n"
#define CALLED(id) "TOOL_CALL_END " id "\n"

static const dgm_stream_params plain = {0};

/* ---- text ------------------------------------------------------------------------------------------------ */

static void a_stream_as_openai_sends_it(void **state)
{
    (void)state;
    check_decode(
        plain,
        DELTA("\"role\":\"assistant\",\"content\":\"\",\"refusal\":null")
            DELTA("\"content\":\"Sun\"") DELTA("\"content\":\"ny.\"") FINISH("stop") CHUNK(
                "", ",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"total_tokens\":12,"
                    "\"completion_tokens_details\":{\"reasoning_tokens\":2}}"),
        STARTED SAYS("Sun") MORE_SAID("ny.") SAID
        "RUN_FINISHED x x model=gpt in=9 out=3 reasoning=2\n");
}

static void roles_nulls_and_parts(void **state)
{
    (void)state;
    /* Azure: no choices, no id. Then roles again and again, null, a list of parts. */
    check_decode(
        plain,
        "{\"choices\":[],\"id\":\"\",\"model\":\"\",\"prompt_filter_results\":[]}\n" DELTA(
            "\"role\":\"assistant\",\"content\":null")
            DELTA("\"role\":\"assistant\",\"content\":\" a \"")
                DELTA("\"role\":\"\",\"refusal\":false,\"content\":[{\"type\":\"text\",\"text\":"
                      "\"b\"},{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":"
                      "\"hm\"}]}]") CHUNK("{\"index\":0,\"finish_reason\":\"stop\"}", ""),
        STARTED SAYS(" a ")
            MORE_SAID("b") "REASONING_START x-t1\nREASONING_MESSAGE_START x-t1\n"
                           "REASONING_MESSAGE_CONTENT x-t1 \"hm\"\n"
                           "REASONING_MESSAGE_END x-t1\nREASONING_END x-t1\n" SAID FINISHED);
    /* vLLM: the end comes with the last piece; usage beside it */
    check_decode(plain,
                 CHUNK("{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"stop_reason\":"
                       "null}",
                       ",\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}"),
                 STARTED SAYS("Hi") SAID "RUN_FINISHED x x model=gpt in=1 out=1\n");
}

static void reasoning_by_any_name(void **state)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "reasoning_text",
                                        "thinking"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str lines = dgm_arena_printf(
            a, DELTA("\"content\":null,\"%s\":\"hm\"") DELTA("\"content\":\"42\"") FINISH("stop"),
            names[i]);
        check_decode(plain, lines.p,
                     STARTED "REASONING_START x-t1\nREASONING_MESSAGE_START x-t1\n"
                             "REASONING_MESSAGE_CONTENT x-t1 \"hm\"\nREASONING_MESSAGE_END x-t1\n"
                             "REASONING_END x-t1\n" SAYS("42") SAID FINISHED);
    }
}

static void only_the_first_choice_is_read(void **state)
{
    struct dump d;
    dgm_err err = {0};
    size_t unknown = 0;
    (void)state;
    dgm_buf_init(&d.b, SIZE_MAX);
    void *decoder = CHAT->decoder_new(&plain);
    dgm_canon_sink sink = {dump_event, &d};
    check_ok(decode_values(decoder,
                           CHUNK("{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"index\":0,"
                                 "\"delta\":{\"content\":\"one\"}}",
                                 "") FINISH("stop"),
                           sink, &err, &unknown),
             err);
    check_ok(CHAT->decoder_end(decoder, sink, &err), err);
    CHAT->decoder_free(decoder);
    assert_int_equal(unknown, 1);
    check_str(d.b, STARTED SAYS("one") SAID FINISHED);
    dgm_buf_done(&d.b);
}

/* ---- whole completions ------------------------------------------------------------------------------------- */

static void a_completion(void **state)
{
    (void)state;
    check_decode(plain,
                 "{\"id\":\"x\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,"
                 "\"message\":{\"role\":\"assistant\",\"content\":\"Hi\",\"tool_calls\":[{\"id\":"
                 "\"a\",\"type\":\"function\"," FUNCTION(
                     "f", "{}") "},{\"id\":\"b\",\"type\":"
                                "\"custom\",\"custom\":{\"name\":\"g\",\"input\":\"free\"}}]},"
                                "\"finish_reason\":\"tool_calls\"}]}\n",
                 STARTED
                 "TEXT_MESSAGE_START x-m1\nTEXT_MESSAGE_CONTENT x-m1 \"Hi\" whole\n" SAID CALL(
                     "a", "f") CALL("b", "g") ARGS("b", "free") ARGS("a", "{}") CALLED("a")
                     CALLED("b") "RUN_FINISHED x x success pending=a pending=b\n");
    /* the least that clients take */
    check_decode(plain,
                 "{\"id\":\"x\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":"
                 "\"Hi\"}}]}\n{\"id\":\"y\",\"choices\":[{\"message\":{\"content\":\"Ho\"}}]}\n",
                 STARTED
                 "TEXT_MESSAGE_START x-m1\nTEXT_MESSAGE_CONTENT x-m1 \"Hi\" whole\n" SAID FINISHED
                 "RUN_STARTED y y\nTEXT_MESSAGE_START y-m1\nTEXT_MESSAGE_CONTENT y-m1 "
                 "\"Ho\" whole\nTEXT_MESSAGE_END y-m1\nRUN_FINISHED y y\n");
}

/* ---- refusals, ends ------------------------------------------------------------------------------------------ */

static void refusals(void **state)
{
    (void)state;
    check_decode(plain,
                 DELTA("\"role\":\"assistant\"") DELTA("\"refusal\":\"I\"")
                     DELTA("\"refusal\":\" can't\"") FINISH("stop"),
                 STARTED "RUN_ERROR rejected \"I can't\"\n");
    check_decode(plain, DELTA("\"content\":\"So\"") DELTA("\"refusal\":\"no\"") FINISH("stop"),
                 STARTED SAYS("So") SAID "TEXT_MESSAGE_START x-m2\nTEXT_MESSAGE_CONTENT x-m2 \"no\""
                                         " whole\nTEXT_MESSAGE_END x-m2\n" FINISHED);
    check_decode(plain, DELTA("\"role\":\"assistant\"") FINISH("content_filter"),
                 STARTED "RUN_ERROR rejected \"The answer was withheld by a content filter\"\n");
}

static void why_it_ended(void **state)
{
    (void)state;
    check_decode(plain, DELTA("\"content\":\"So\"") FINISH("length"),
                 STARTED SAYS("So") SAID
                 "CUSTOM dragoman:metadata {\"finish_reason\":\"length\"}\n" FINISHED);
    check_decode(plain, DELTA("\"content\":\"So\"") FINISH("eos"),
                 STARTED SAYS("So") SAID FINISHED);
    check_decode(plain, DELTA("\"content\":\"So\"") FINISH("error"),
                 STARTED SAYS("So") SAID "RUN_ERROR failed \"The model ended with an error\"\n");
    check_decode(
        plain, CALLS("{\"index\":0,\"id\":\"a\"," FUNCTION("f", "{\\\"q") "}") FINISH("length"),
        STARTED CALL("a", "f") ARGS("a", "{\\\"q") CALLED(
            "a") "RUN_ERROR length \"The answer was cut off within the arguments of a call\"\n");
    check_decode(plain,
                 DELTA("\"content\":\"So\"")
                     CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}",
                           ",\"a2a\":{\"state\":\"auth-required\"}"),
                 STARTED SAYS("So") SAID "RUN_FINISHED x x interrupt {x a2a:auth_required}\n");
}

static void a_stream_that_stops(void **state)
{
    dgm_err err = {0};
    struct dump d;
    size_t unknown = 0;
    (void)state;
    check_decode(plain, DELTA("\"content\":\"So\""),
                 STARTED SAYS("So") SAID
                 "RUN_ERROR incomplete \"The stream ended before the answer did\"\n");
    check_decode(plain, DELTA("\"content\":\"So\"") CHUNK("", ",\"usage\":{\"prompt_tokens\":1}"),
                 STARTED SAYS("So") SAID "RUN_FINISHED x x model=gpt in=1\n");
    check_decode(plain, "", "");
    /* without a reason, but the server says [DONE] */
    dgm_buf_init(&d.b, SIZE_MAX);
    void *decoder = CHAT->decoder_new(&plain);
    dgm_canon_sink sink = {dump_event, &d};
    check_ok(decode_values(decoder, DELTA("\"content\":\"So\""), sink, &err, &unknown), err);
    CHAT->decoder_done(decoder);
    check_ok(CHAT->decoder_end(decoder, sink, &err), err);
    CHAT->decoder_free(decoder);
    check_str(d.b, STARTED SAYS("So") SAID FINISHED);
    dgm_buf_done(&d.b);
}

static void errors_in_the_middle(void **state)
{
    (void)state;
    check_decode(
        plain,
        DELTA("\"content\":\"So\"") "{\"error\":{\"message\":\"no more\",\"type\":"
                                    "\"server_error\",\"param\":null,\"code\":502}}\n" DELTA(
                                        "\"content\":\"late\""),
        STARTED SAYS("So") SAID "RUN_ERROR 502 \"no more\"\n");
    check_decode(plain, DELTA("\"content\":\"So\"") "{\"error\":\"broken\"}\n",
                 STARTED SAYS("So") SAID "RUN_ERROR \"broken\"\n");
    check_decode(plain, DELTA("") "{\"object\":\"error\",\"message\":\"old\",\"type\":\"t\"}\n",
                 STARTED "RUN_ERROR t \"old\"\n");
    check_decode(plain, DELTA("") "{\"error\":{\"message\":\"m\",\"code\":\"task_canceled\"}}\n",
                 STARTED "RUN_FINISHED x x cancelled\n");
    check_decode(plain,
                 DELTA("\"content\":\"a\"") CHUNK("{\"index\":0,\"delta\":{}}", ",\"error\":null")
                     FINISH("stop"),
                 STARTED SAYS("a") SAID FINISHED);
}

static void pieces_of_a_stream_begin_and_end_nothing(void **state)
{
    const dgm_stream_params fragment = {.fragment = true};
    (void)state;
    check_decode(fragment, DELTA("\"content\":\"So\""), SAYS("So") SAID);
}

/* ---- what is refused ------------------------------------------------------------------------------------------ */

static void wrong_types_are_refused(void **state)
{
    static const struct {
        const char *line, *at;
    } rows[] = {
        {"[]", ""},
        {"{\"choices\":{}}", "/choices"},
        {"{\"choices\":[7]}", "/choices/0"},
        {"{\"choices\":[{\"index\":\"x\",\"delta\":{}}]}", "/choices/0/index"},
        {"{\"choices\":[{\"delta\":[]}]}", "/choices/0/delta"},
        {"{\"choices\":[{\"delta\":{\"content\":{}}}]}", "/choices/0/delta/content"},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":{}}}]}", "/choices/0/delta/tool_calls"},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[7]}}]}", "/choices/0/delta/tool_calls/0"},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1.5}]}}]}",
         "/choices/0/delta/tool_calls/0/index"},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":7}]}}]}",
         "/choices/0/delta/tool_calls/0/function"},
        {"{\"choices\":[{\"message\":{\"function_call\":7}}]}", "/choices/0/message/function_call"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dump d;
        dgm_err err = {0};
        size_t unknown = 0;
        dgm_buf_init(&d.b, SIZE_MAX);
        void *decoder = CHAT->decoder_new(&plain);
        dgm_canon_sink sink = {dump_event, &d};
        check_fails(decode_values(decoder, rows[i].line, sink, &err, &unknown), DGM_BAD_PARAMS, err,
                    rows[i].at);
        CHAT->decoder_free(decoder);
        dgm_buf_done(&d.b);
    }
}

DGM_TEST_MAIN(dgm_test(a_stream_as_openai_sends_it), dgm_test(roles_nulls_and_parts),
              dgm_test(reasoning_by_any_name), dgm_test(only_the_first_choice_is_read),
              dgm_test(a_completion), dgm_test(refusals), dgm_test(why_it_ended),
              dgm_test(a_stream_that_stops), dgm_test(errors_in_the_middle),
              dgm_test(pieces_of_a_stream_begin_and_end_nothing), dgm_test(wrong_types_are_refused))
