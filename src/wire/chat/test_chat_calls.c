/* test_chat_calls.c - tool calls in pieces: which call has the piece, and which part of it came before? */
#include "wire/chat/test_chat_codec.h"

#define CALLS(list)                                                                                \
    "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[" list "]}}]}\n"
#define LEGACY(call)                                                                               \
    "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"function_call\":" call "}}]}\n"
#define FINISH "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"
#define F(name, arguments) "\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}"
#define MORE(arguments) "\"function\":{\"arguments\":\"" arguments "\"}"
#define STARTED "RUN_STARTED x x\n"
#define CALL(id, name) "TOOL_CALL_START " id " " name " parent=x-m1\n"
#define ARGS(id, t) "TOOL_CALL_ARGS " id " \"" t "\"\n"
#define CALLED(id) "TOOL_CALL_END " id "\n"
#define PENDING(ids) "RUN_FINISHED x x success" ids "\n"

static const dgm_stream_params plain = {0};

static void two_calls_in_turns(void **state)
{
    (void)state;
    check_decode(
        plain,
        CALLS("{\"index\":0,\"id\":\"a\",\"type\":\"function\"," F("f", "") "}")
            CALLS("{\"index\":0," MORE("{\\\"c\\\":") "}")
                CALLS("{\"index\":1,\"id\":\"b\",\"type\":\"function\"," F("g", "{\\\"d") "}")
                    CALLS("{\"index\":0," MORE("1}") "},{\"index\":1," MORE("\\\":2}") "}") FINISH,
        STARTED CALL("a", "f") ARGS("a", "{\\\"c\\\":") CALL("b", "g") ARGS("b", "{\\\"d")
            ARGS("a", "1}") ARGS("b", "\\\":2}") CALLED("a") CALLED("b")
                PENDING(" pending=a pending=b"));
}

/* Gemini: no index, one call a chunk, no ids. Ollama of old: all at once. */
static void calls_without_an_index(void **state)
{
    (void)state;
    check_decode(
        plain, CALLS("{" F("f", "{\\\"a\\\":1}") "}") CALLS("{" F("f", "{\\\"a\\\":2}") "}") FINISH,
        STARTED CALL("x-c1", "f") ARGS("x-c1", "{\\\"a\\\":1}") CALL("x-c2", "f")
            ARGS("x-c2", "{\\\"a\\\":2}") CALLED("x-c1") CALLED("x-c2")
                PENDING(" pending=x-c1 pending=x-c2"));
    check_decode(plain,
                 CALLS("{\"id\":\"a\"," F("f", "{") "},{\"id\":\"b\"," F("g", "[") "}")
                     CALLS("{" MORE("]") "}") CALLS("{\"id\":\"a\"," MORE("}") "}")
                         CALLS("{" MORE(" ") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{") CALL("b", "g") ARGS("b", "[") ARGS("b", "]")
                     ARGS("a", "}") ARGS("a", " ") CALLED("a") CALLED("b")
                         PENDING(" pending=a pending=b"));
}

static void two_calls_on_one_index(void **state)
{
    (void)state;
    check_decode(
        plain,
        CALLS("{\"index\":0,\"id\":\"a\"," F("f", "{") "}") CALLS("{\"index\":0," MORE("}") "}")
            CALLS("{\"index\":0,\"id\":\"b\"," F("g", "[") "}") CALLS("{\"index\":0," MORE("]") "}")
                CALLS("{\"index\":0,\"id\":\"a\"," MORE(" ") "}") FINISH,
        STARTED CALL("a", "f") ARGS("a", "{") ARGS("a", "}") CALL("b", "g") ARGS("b", "[")
            ARGS("b", "]") ARGS("a", " ") CALLED("a") CALLED("b") PENDING(" pending=a pending=b"));
}

static void ids_that_repeat(void **state)
{
    (void)state;
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\"," F("f", "1") "},{\"index\":1,\"id\":\"a\"," F(
                     "g", "2") "}") CALLS("{\"index\":1,\"id\":\"a\"," F("g", "3") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "1") CALL("x-c1", "g") ARGS("x-c1", "2")
                     ARGS("x-c1", "3") CALLED("a") CALLED("x-c1")
                         PENDING(" pending=a pending=x-c1"));
}

static void names_that_repeat_or_come_late(void **state)
{
    (void)state;
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\"," F("f", "{") "}")
                     CALLS("{\"index\":0,\"id\":\"a\"," F("f", "}") "}")
                         CALLS("{\"index\":0,\"id\":\"\"," F("f", "") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{") ARGS("a", "}") CALLED("a")
                     PENDING(" pending=a"));
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\"," MORE("{") "}")
                     CALLS("{\"index\":0," F("f", "}") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{") ARGS("a", "}") CALLED("a")
                     PENDING(" pending=a"));
    check_decode(plain, CALLS("{\"index\":0,\"id\":\"a\"," MORE("{}") "}") FINISH,
                 STARTED
                 "RUN_ERROR invalid_tool_call \"The model called a tool without naming it\"\n");
}

static void arguments_that_are_sent_twice(void **state)
{
    (void)state;
    /* Bedrock: an empty object before the real one, in one piece or two */
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\"," F("f", "{}") "}")
                     CALLS("{\"index\":0," MORE("{\\\"q\\\":1}") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{\\\"q\\\":1}") CALLED("a")
                     PENDING(" pending=a"));
    check_decode(plain, CALLS("{\"index\":0,\"id\":\"a\"," F("f", "{}{\\\"q\\\":1}") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{\\\"q\\\":1}") CALLED("a")
                     PENDING(" pending=a"));
    /* cumulative, and again */
    check_decode(
        plain,
        CALLS("{\"index\":0,\"id\":\"a\"," F("f", "[1]") "}")
            CALLS("{\"index\":0," MORE("[1] ") "}") CALLS("{\"index\":0," MORE("[1] ") "}") FINISH,
        STARTED CALL("a", "f") ARGS("a", "[1]") ARGS("a", " ") CALLED("a") PENDING(" pending=a"));
    /* pieces that only look like it */
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\"," F("f", "{\\\"q\\\":\\\"") "}")
                     CALLS("{\"index\":0," MORE("{\\\"q\\\":\\\"") "}") FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{\\\"q\\\":\\\"") ARGS("a", "{\\\"q\\\":\\\"")
                     CALLED("a") PENDING(" pending=a"));
}

static void arguments_of_other_types(void **state)
{
    (void)state;
    check_decode(plain,
                 CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{"
                       "\"q\":[1,2.50]}}},{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\"}}")
                     FINISH,
                 STARTED CALL("a", "f") ARGS("a", "{\\\"q\\\": [1, 2.50]}") CALL("b", "g")
                     CALLED("a") ARGS("b", "{}") CALLED("b") PENDING(" pending=a pending=b"));
}

static void the_legacy_call(void **state)
{
    (void)state;
    check_decode(plain,
                 LEGACY("{\"name\":\"f\",\"arguments\":\"\"}") LEGACY("{\"arguments\":\"{\"}")
                     LEGACY("{\"arguments\":\"}\"}") FINISH,
                 STARTED CALL("f", "f") ARGS("f", "{") ARGS("f", "}") CALLED("f")
                     PENDING(" pending=f"));
}

static void calls_have_limits(void **state)
{
    struct dump d;
    dgm_err err = {0};
    size_t unknown = 0;
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_init(&d.b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"id\":\"x\",\"choices\":[{\"delta\":{\"tool_calls\":[");
    for (int i = 0; i <= DGM_MAX_OPEN_ITEMS; i++)
        dgm_buf_printf(&b, "%s{\"index\":%d,\"function\":{\"name\":\"f\"}}", i ? "," : "", i);
    dgm_buf_add_lit(&b, "]}}]}");
    char *line = dgm_buf_steal(&b, NULL);
    void *decoder = CHAT->decoder_new(&plain);
    dgm_canon_sink sink = {dump_event, &d};
    assert_int_equal(decode_values(decoder, line, sink, &err, &unknown), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "open_items"));
    CHAT->decoder_free(decoder);
    dgm_buf_done(&d.b);
    free(line);
}

DGM_TEST_MAIN(dgm_test(two_calls_in_turns), dgm_test(calls_without_an_index),
              dgm_test(two_calls_on_one_index), dgm_test(ids_that_repeat),
              dgm_test(names_that_repeat_or_come_late), dgm_test(arguments_that_are_sent_twice),
              dgm_test(arguments_of_other_types), dgm_test(the_legacy_call),
              dgm_test(calls_have_limits))
