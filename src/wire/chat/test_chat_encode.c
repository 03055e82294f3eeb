/* test_chat_encode.c - runs of A2A agents as chunks, and as whole completions. */
#include "wire/chat/test_chat_codec.h"

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_"            \
    "SUBMITTED\"}}}\n"
#define STATUS(state, message)                                                                     \
    "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_"      \
    "STATE_" state "\"" message "}}}\n"
#define SAYS(parts)                                                                                \
    ",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define ARTIFACT(id, text, more)                                                                   \
    "{\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"artifact\":{\"artifactId\":"    \
    "\"" id "\",\"parts\":[{\"text\":\"" text "\"}]}" more "}}\n"
#define APPEND ",\"append\":true"
#define INTERNAL(what)                                                                             \
    "{\"kind\":\"internal:" what ",\"taskId\":\"t1\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
#define CALLS(list) "{\"data\":{\"tool_calls\":[" list "]}}"

#define ROLE "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}\n"
#define CONTENT(t) "{\"content\":\"" t "\"}\n"
#define THOUGHT(t) "{\"reasoning_content\":\"" t "\"}\n"
#define FINISH(reason) "{},\"finish_reason\":\"" reason "\"}]}\n"
#define CALL(i, id, name, arguments)                                                               \
    "{\"tool_calls\":[{\"index\":" i ",\"id\":\"" id                                               \
    "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments      \
    "\"}}]}\n"
#define ERROR(message, code)                                                                       \
    "{\"error\":{\"message\":\"" message                                                           \
    "\",\"type\":\"server_error\",\"param\":null,\"code\":\"" code "\"}}\n"

static const dgm_stream_params chunks = {0}, whole = {.whole = true}, usage = {.usage = true};

#define WHOLE(message, reason, more)                                                               \
    "{\"id\":\"chatcmpl-t1\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":"     \
    "\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\"," message                 \
    "},\"logprobs\":null,\"finish_reason\":\"" reason "\"}]" more "}\n"

/* ---- text ------------------------------------------------------------------------------------------------ */

static void the_fourth_documents_events_give_the_text_once(void **state)
{
    static const char events[] =
        TASK STATUS("WORKING", SAYS(TEXT("Processing your greeting..."))) ARTIFACT("a", "Hello", "")
            ARTIFACT("a", " world", APPEND) STATUS("COMPLETED", SAYS(TEXT("Hello world!")));
    (void)state;
    check_encode(chunks, events,
                 ROLE THOUGHT("Processing your greeting...") CONTENT("Hello") CONTENT(" world")
                     CONTENT("!") FINISH("stop"));
    check_encode(whole, events,
                 WHOLE("\"content\":\"Hello world!\",\"refusal\":null,\"reasoning_content\":"
                       "\"Processing your greeting...\"",
                       "stop", ""));
}

static void texts_of_several_messages_are_separated(void **state)
{
    static const char events[] = TASK ARTIFACT("a", "one", "") ARTIFACT("b", "two \\\"", "")
        ARTIFACT("b", "2\\u0001", APPEND) ARTIFACT("a", "1", APPEND) STATUS("COMPLETED", "");
    (void)state;
    check_encode(chunks, events,
                 ROLE CONTENT("one") CONTENT("\\n\\ntwo \\\"") CONTENT("2\\u0001")
                     CONTENT("\\n\\n1") FINISH("stop"));
    check_encode(whole, events,
                 WHOLE("\"content\":\"one1\\n\\ntwo \\\"2\\u0001\",\"refusal\":null", "stop", ""));
}

static void a_corrected_text_is_sent_at_the_end(void **state)
{
    static const char events[] = TASK ARTIFACT("a", "Helo", "") ARTIFACT("a", "Hello", "")
        ARTIFACT("a", "Hallo", "") ARTIFACT("a", " Welt", APPEND) STATUS("COMPLETED", "");
    (void)state;
    check_encode(chunks, events, ROLE CONTENT("Helo") CONTENT("\\n\\nHallo Welt") FINISH("stop"));
    check_encode(whole, events, WHOLE("\"content\":\"Hallo Welt\",\"refusal\":null", "stop", ""));
}

static void no_text_is_an_empty_text(void **state)
{
    (void)state;
    check_encode(chunks, TASK STATUS("COMPLETED", ""), ROLE FINISH("stop"));
    check_encode(whole, TASK STATUS("COMPLETED", ""),
                 WHOLE("\"content\":\"\",\"refusal\":null", "stop", ""));
}

/* ---- reasoning and progress --------------------------------------------------------------------------------- */

static void progress_and_reasoning_stay_out_of_the_answer(void **state)
{
    static const char events[] =
        TASK STATUS("WORKING", SAYS(TEXT("Looking"))) STATUS("WORKING", SAYS(TEXT("Looking up")))
            STATUS("WORKING", SAYS(TEXT("Looking up"))) INTERNAL("reasoning\",\"text\":\"hm\"")
                INTERNAL("reasoning\",\"text\":\", so\"") STATUS("WORKING", SAYS(TEXT("Done")))
                    ARTIFACT("a", "42", ",\"lastChunk\":true") STATUS("COMPLETED", "");
    (void)state;
    check_encode(chunks, events,
                 ROLE THOUGHT("Looking") THOUGHT(" up") THOUGHT("\\n\\nhm") THOUGHT(", so")
                     THOUGHT("\\n\\nDone") CONTENT("42") FINISH("stop"));
    check_encode(whole, events,
                 WHOLE("\"content\":\"42\",\"refusal\":null,\"reasoning_content\":\"Looking up"
                       "\\n\\nhm, so\\n\\nDone\"",
                       "stop", ""));
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

static void calls_that_wait_are_the_clients(void **state)
{
    static const char events[] = TASK ARTIFACT("a", "Let me see.", "") STATUS(
        "INPUT_REQUIRED",
        SAYS(CALLS("{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{\"a\":1}},{\"call_id\":\"2\","
                   "\"name\":\"g\",\"arguments\":\"{\\\"b\\\":2}\"}")));
    (void)state;
    check_encode(chunks, events,
                 ROLE CONTENT("Let me see.") CALL("0", "1", "f", "{\\\"a\\\": 1}")
                     CALL("1", "2", "g", "{\\\"b\\\":2}") FINISH("tool_calls"));
    check_encode(
        whole, events,
        WHOLE("\"content\":\"Let me see.\",\"refusal\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":"
              "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}},{"
              "\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":"
              "\"{\\\"b\\\":2}\"}}]",
              "tool_calls", ""));
}

static void calls_of_the_agent_itself_are_not(void **state)
{
    static const char events[] = TASK INTERNAL(
        "tool-start\",\"toolName\":\"f\",\"toolCallId\":\"1\",\"arguments\":{\"q\":1}")
        INTERNAL("tool-complete\",\"toolCallId\":\"1\",\"success\":true,\"result\":\"7\"")
            ARTIFACT("a", "It is 7.", "") STATUS("COMPLETED", "");
    (void)state;
    check_encode(chunks, events, ROLE CONTENT("It is 7.") FINISH("stop"));
    check_encode(whole, events, WHOLE("\"content\":\"It is 7.\",\"refusal\":null", "stop", ""));
}

/* Their maker knows that they are the caller's: no need to wait. */
static void fragments_of_parallel_calls_pass(void **state)
{
    dgm_buf out;
    dgm_err err = {0};
    dgm_stream_params p = {.model = DGM_STR("m"), .now = 1700000000000};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    void *encoder = CHAT->encoder_new(&p, (dgm_frame_sink){put_frame, &out});
    e.run_started.run_id = DGM_STR("t1");
    check_ok(CHAT->encoder_feed(encoder, &e, &err), err);
    static const struct {
        const char *id, *name, *delta;
    } steps[] = {{"1", "f", NULL}, {"1", NULL, "{\"a"},  {"2", "g", NULL},
                 {"2", NULL, "{"}, {"1", NULL, "\":1}"}, {"2", NULL, "}"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        bool starts = steps[i].name;
        e = (dgm_canon_event){.kind =
                                  starts ? DGM_CANON_TOOL_CALL_START : DGM_CANON_TOOL_CALL_ARGS};
        e.call.tool_call_id = dgm_str_from(steps[i].id);
        e.call.pending = starts;
        if (starts)
            e.call.name = dgm_str_from(steps[i].name);
        else
            e.call.delta = dgm_str_from(steps[i].delta);
        check_ok(CHAT->encoder_feed(encoder, &e, &err), err);
    }
    e = (dgm_canon_event){.kind = DGM_CANON_RUN_FINISHED};
    check_ok(CHAT->encoder_feed(encoder, &e, &err), err);
    check_ok(CHAT->encoder_end(encoder, &err), err);
    CHAT->encoder_free(encoder);
#define PIECE(i, t) "{\"tool_calls\":[{\"index\":" i ",\"function\":{\"arguments\":\"" t "\"}}]}\n"
    check_str(out, ROLE CALL("0", "1", "f", "") PIECE("0", "{\\\"a") CALL("1", "2", "g", "")
                       PIECE("1", "{") PIECE("0", "\\\":1}") PIECE("1", "}") FINISH("tool_calls"));
    dgm_buf_done(&out);
}

/* ---- ends ------------------------------------------------------------------------------------------------------ */

static void failures_are_errors(void **state)
{
    (void)state;
    check_encode(chunks, TASK ARTIFACT("a", "So", "") STATUS("FAILED", SAYS(TEXT("no luck"))),
                 ROLE CONTENT("So") ERROR("no luck", "task_failed"));
    check_encode(whole, TASK STATUS("FAILED", SAYS(TEXT("no luck"))),
                 ERROR("no luck", "task_failed"));
    check_encode(chunks, TASK STATUS("CANCELED", ""),
                 ROLE ERROR("The task was canceled", "task_canceled"));
    check_encode(chunks, TASK ARTIFACT("a", "So", ""),
                 ROLE CONTENT("So")
                     ERROR("The agent's stream ended before its task did", "incomplete"));
}

static void a_rejection_is_a_refusal(void **state)
{
    (void)state;
    check_encode(chunks, TASK STATUS("REJECTED", SAYS(TEXT("I must not"))),
                 ROLE "{\"refusal\":\"I must not\"}\n" FINISH("stop"));
    check_encode(whole, TASK STATUS("REJECTED", SAYS(TEXT("I must not"))),
                 WHOLE("\"content\":null,\"refusal\":\"I must not\"", "stop", ""));
}

static void a_question_is_an_answer_that_waits(void **state)
{
    static const char events[] = TASK STATUS("INPUT_REQUIRED", SAYS(TEXT("Which one?")));
#define WAITS ",\"a2a\":{\"context_id\":\"c1\",\"task_id\":\"t1\",\"state\":\"input-required\"}"
    (void)state;
    check_encode(chunks, events,
                 ROLE CONTENT("Which one?") "{},\"finish_reason\":\"stop\"}]" WAITS "}\n");
    check_encode(whole, events,
                 WHOLE("\"content\":\"Which one?\",\"refusal\":null", "stop", WAITS));
}

static void the_finish_reason_is_sent(void **state)
{
    (void)state;
    check_encode(chunks,
                 TASK ARTIFACT("a", "So", "") "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":"
                                              "\"c1\",\"status\":{\"state\":\"TASK_STATE_"
                                              "COMPLETED\"},\"metadata\":{\"finish_reason\":"
                                              "\"length\"}}}\n",
                 ROLE CONTENT("So") FINISH("length"));
}

static void usage_is_sent_when_requested_and_known(void **state)
{
#define COST(more)                                                                                 \
    INTERNAL("usage\",\"value\":{\"inputTokens\":9,\"outputTokens\":3,\"model\":\"x\"" more "}")
#define U                                                                                          \
    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,"                 \
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}"
    static const char events[] = TASK COST(",\"cachedInputTokens\":4")
        INTERNAL("usage\",\"value\":{\"prompt_tokens\":1,\"model\":\"y\"}") STATUS("COMPLETED", "");
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(usage, events, &out);
    static const char want[] =
        "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":null}],"
        "\"usage\":null}\n{},\"finish_reason\":\"stop\"}],\"usage\":null}\n"
        "{\"id\":\"chatcmpl-t1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
        "\"model\":\"m\",\"choices\":[]," U "}\n";
    check_str(out, want);
    dgm_buf_done(&out);
    check_encode(whole, events, WHOLE("\"content\":\"\",\"refusal\":null", "stop", "," U));
    check_encode(chunks, events, ROLE FINISH("stop"));
    check_encode(usage, TASK STATUS("COMPLETED", ""),
                 "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":"
                 "null}],\"usage\":null}\n{},\"finish_reason\":\"stop\"}],\"usage\":null}\n");
}

static void a_log_of_two_turns_is_two_completions(void **state)
{
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(whole,
                   TASK STATUS("INPUT_REQUIRED", SAYS(TEXT("Which?"))) STATUS("WORKING", "")
                       STATUS("COMPLETED", SAYS(TEXT("That."))),
                   &out);
    char *text = dgm_buf_steal(&out, NULL), *second = strchr(text, '\n');
    assert_non_null(second);
    assert_non_null(strstr(second, "\"chatcmpl-t1-2\""));
    assert_non_null(strstr(second, "\"That.\""));
    assert_null(strstr(second, "Which?"));
    free(text);
}

/* ---- pieces, limits ---------------------------------------------------------------------------------------------- */

static void pieces_of_a_run_end_nothing(void **state)
{
    dgm_stream_params p = {.fragment = true};
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(p, ARTIFACT("a", "Hi", ""), &out);
    char *text = dgm_buf_steal(&out, NULL);
    assert_non_null(strstr(text, "\"delta\":{\"content\":\"Hi\"}"));
    assert_null(strstr(text, "\"stop\""));
    assert_null(strstr(text, "error"));
    free(text);
}

static void what_must_be_kept_has_a_limit(void **state)
{
    dgm_buf out, big;
    dgm_err err = {0};
    dgm_stream_params p = {.whole = true};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    dgm_code rc = DGM_OK;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_buf_init(&big, SIZE_MAX);
    assert_true(dgm_buf_room(&big, (size_t)1 << 20));
    memset(big.p, 'x', (size_t)1 << 20);
    big.n = (size_t)1 << 20;
    void *encoder = CHAT->encoder_new(&p, (dgm_frame_sink){put_frame, &out});
    check_ok(CHAT->encoder_feed(encoder, &e, &err), err);
    e = (dgm_canon_event){.kind = DGM_CANON_TEXT_MESSAGE_CONTENT};
    e.text.message_id = DGM_STR("m");
    e.text.delta = dgm_buf_str(&big);
    for (size_t i = 0; !rc && i <= DGM_MAX_OUTPUT_BYTES >> 20; i++)
        rc = CHAT->encoder_feed(encoder, &e, &err);
    assert_int_equal(rc, DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "output_bytes"));
    assert_int_equal(CHAT->encoder_end(encoder, &err), DGM_TOO_LARGE);
    CHAT->encoder_free(encoder);
    assert_int_equal(out.n, 0);
    dgm_buf_done(&big);
    dgm_buf_done(&out);
}

DGM_TEST_MAIN(dgm_test_holds(the_fourth_documents_events_give_the_text_once, "R004-08 R004-10"),
              dgm_test(texts_of_several_messages_are_separated),
              dgm_test(a_corrected_text_is_sent_at_the_end), dgm_test(no_text_is_an_empty_text),
              dgm_test(progress_and_reasoning_stay_out_of_the_answer),
              dgm_test(calls_that_wait_are_the_clients),
              dgm_test(calls_of_the_agent_itself_are_not),
              dgm_test(fragments_of_parallel_calls_pass), dgm_test(failures_are_errors),
              dgm_test(a_rejection_is_a_refusal), dgm_test(a_question_is_an_answer_that_waits),
              dgm_test(the_finish_reason_is_sent), dgm_test(usage_is_sent_when_requested_and_known),
              dgm_test(a_log_of_two_turns_is_two_completions),
              dgm_test(pieces_of_a_run_end_nothing), dgm_test(what_must_be_kept_has_a_limit))
