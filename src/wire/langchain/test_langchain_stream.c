/* test_langchain_stream.c - chunks and messages of a run, and back. */
#include "canon/test_stories.h"
#include "wire/langchain/langchain.h"
#include "wire/test_codec.h"

#define LC (&dgm_codec_langchain)

#define CHUNK(id, content, more)                                                                   \
    "{\"type\":\"AIMessageChunk\",\"data\":{\"content\":" content                                  \
    ",\"type\":\"AIMessageChunk\",\"id\":\"" id "\"" more "}}\n"
#define CALL(name, id, args, index)                                                                \
    ",\"tool_call_chunks\":[{\"name\":" name ",\"id\":" id ",\"args\":\"" args                     \
    "\",\"index\":" index ",\"type\":\"tool_call_chunk\"}]"
#define END(reason) ",\"response_metadata\":{\"finish_reason\":\"" reason "\"}"
#define LAST ",\"chunk_position\":\"last\""

static const char agent[] =
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}}"
    "\n"
    "{\"kind\":\"internal:reasoning\",\"taskId\":\"t\",\"text\":\"hm\",\"timestamp\":\"2026-01-"
    "01T00:"
    "00:00Z\"}\n"
    "{\"kind\":\"internal:tool-start\",\"taskId\":\"t\",\"toolName\":\"f\",\"toolCallId\":\"1\","
    "\"arguments\":{\"a\":1},\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
    "{\"kind\":\"internal:tool-start\",\"taskId\":\"t\",\"toolName\":\"g\",\"toolCallId\":\"2\","
    "\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
    "{\"kind\":\"internal:tool-complete\",\"taskId\":\"t\",\"toolCallId\":\"1\",\"success\":true,"
    "\"result\":3,\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
    "{\"kind\":\"internal:tool-complete\",\"taskId\":\"t\",\"toolCallId\":\"2\",\"success\":false,"
    "\"error\":\"no\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
    "\"parts\":[{\"text\":\"Hel\"}]}}}\n"
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
    "COMPLETED\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":"
    "\"Hello\"}]}}}}\n";

static const char chunks[] =
    CHUNK("t-t1", "[{\"type\":\"reasoning\",\"reasoning\":\"hm\",\"index\":0}]",
          "") CHUNK("t-t1", "\"\"", LAST) CHUNK("t-m2", "\"\"", CALL("\"f\"", "\"1\"", "", "0"))
        CHUNK("t-m2", "\"\"", CALL("null", "null", "{\\\"a\\\": 1}", "0"))
            CHUNK("t-m2", "\"\"", CALL("\"g\"", "\"2\"", "", "1"))
                CHUNK("t-m2", "\"\"", CALL("null", "null", "{}", "1"))
                    CHUNK("t-m2", "\"\"",
                          LAST) "{\"type\":\"tool\",\"data\":{\"content\":\"3\",\"type\":\"tool\","
                                "\"id\":\"t-r3\",\"tool_call_"
                                "id\":\"1\",\"status\":\"success\"}}\n"
                                "{\"type\":\"tool\",\"data\":{\"content\":\"no\",\"type\":\"tool\","
                                "\"id\":\"t-r4\",\"tool_call_"
                                "id\":\"2\",\"status\":\"error\"}}\n" CHUNK("t-m5", "\"Hel\"", "")
                                    CHUNK("t-m5", "\"lo\"", "")
                                        CHUNK("t-m5", "\"\"", END("stop") LAST);

static void a_run_is_chunks_and_results(void **state)
{
    dgm_stream_params params = {0};
    dgm_records_params from = {0};
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(LC, &params, &from, agent, &out);
    check_str(out, chunks);
    dgm_buf_done(&out);
}

static void check_decode(bool fragment, const char *lines, const char *want)
{
    struct dump dump;
    dgm_stream_params params = {.fragment = fragment};
    dgm_err err = {0};
    dgm_buf_init(&dump.b, SIZE_MAX);
    check_ok(
        decode_lines(LC, &params, dgm_str_from(lines), (dgm_canon_sink){dump_event, &dump}, &err),
        err);
    check_str(dump.b, want);
    dgm_buf_done(&dump.b);
}

static void and_back(void **state)
{
    (void)state;
    check_decode(true, chunks,
                 "REASONING_START t-t1-t1\nREASONING_MESSAGE_START t-t1-t1\n"
                 "REASONING_MESSAGE_CONTENT t-t1-t1 \"hm\"\nREASONING_MESSAGE_END t-t1-t1\n"
                 "REASONING_END t-t1-t1\n"
                 "TOOL_CALL_START 1 f parent=t-m2\nTOOL_CALL_ARGS 1 \"{\\\"a\\\": 1}\"\n"
                 "TOOL_CALL_START 2 g parent=t-m2\nTOOL_CALL_ARGS 2 \"{}\"\nTOOL_CALL_END 1\n"
                 "TOOL_CALL_END 2\nTOOL_CALL_RESULT t-r3 1 \"3\"\n"
                 "TOOL_CALL_RESULT t-r4 2 \"no\" metadata={\"dragoman:error\":true}\n"
                 "TEXT_MESSAGE_START t-m5\nTEXT_MESSAGE_CONTENT t-m5 \"Hel\"\n"
                 "TEXT_MESSAGE_CONTENT t-m5 \"lo\"\nTEXT_MESSAGE_END t-m5\n");
}

/* LangGraph's: flat, with its node beside it, ids that come late, the whole message at the end. */
static void langgraphs_stream_is_read_once(void **state)
{
    (void)state;
    check_decode(true,
                 "[{\"type\":\"AIMessageChunk\",\"content\":\"Hel\",\"id\":\"msg_1\"},{\"langgraph_"
                 "node\":\"chat\"}]\n"
                 "[{\"type\":\"AIMessageChunk\",\"content\":\"lo\",\"id\":\"lc_run--7\"},{}]\n"
                 "[{\"type\":\"ai\",\"content\":\"Hello!\",\"id\":\"msg_1\"},{}]\n"
                 "{\"type\":\"ai\",\"content\":\"Hello!\",\"id\":\"msg_1\"}\n"
                 "{\"type\":\"ai\",\"content\":\"Bye\",\"id\":\"msg_1\"}\n",
                 "TEXT_MESSAGE_START msg_1\nTEXT_MESSAGE_CONTENT msg_1 \"Hel\"\n"
                 "TEXT_MESSAGE_CONTENT msg_1 \"lo\"\nTEXT_MESSAGE_END msg_1\n"
                 "TEXT_MESSAGE_START msg_1\nTEXT_MESSAGE_CONTENT msg_1 \"!\" whole\n"
                 "TEXT_MESSAGE_END msg_1\n"
                 "TEXT_MESSAGE_START msg_1-2\nTEXT_MESSAGE_CONTENT msg_1-2 \"Bye\" whole\n"
                 "TEXT_MESSAGE_END msg_1-2\n");
}

static void the_outcome_of_a_run_is_decoded(void **state)
{
    struct dump dump;
    dgm_stream_params params = {0};
    dgm_err err = {0};
    (void)state;
    static const struct {
        const char *lines, *want;
    } rows[] = {
        {CHUNK("m", "\"a\"", ",\"usage_metadata\":{\"input_tokens\":2,\"output_tokens\":1}")
             CHUNK("m", "\"\"",
                   ",\"usage_metadata\":{\"input_tokens\":0,\"output_tokens\":4}" END("stop") LAST),
         " in=2 out=5\n"},
        {CHUNK("m", "\"\"", CALL("\"f\"", "\"1\"", "{}", "0") LAST), " success pending=1\n"},
        {CHUNK("m", "\"\"", END("cancelled") LAST), " cancelled\n"},
        {CHUNK("m", "\"\"",
               ",\"response_metadata\":{\"finish_reason\":\"error\",\"error\":{"
               "\"message\":\"no\",\"code\":\"failed\"}}"),
         "RUN_ERROR failed \"no\"\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_buf_init(&dump.b, SIZE_MAX);
        check_ok(decode_lines(LC, &params, dgm_str_from(rows[i].lines),
                              (dgm_canon_sink){dump_event, &dump}, &err),
                 err);
        assert_true(dump.b.n > strlen(rows[i].want));
        dgm_str tail = {dump.b.p + dump.b.n - strlen(rows[i].want), strlen(rows[i].want)};
        check_str(tail, rows[i].want);
        dgm_buf_done(&dump.b);
    }
}

static void a_text_that_differs_is_emitted_completely(void **state)
{
    dgm_stream_params params = {0};
    dgm_records_params from = {0};
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    encode_records(
        LC, &params, &from,
        "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{"
        "\"artifactId\":\"a\",\"parts\":[{\"text\":\"Hullo\"}]}}}\n"
        "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_COMPLETED\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\""
        ",\"parts\":[{\"text\":\"Hello\"}]}}}}\n",
        &out);
    check_str(
        out,
        CHUNK("t-m1", "\"Hullo\"",
              "") "{\"type\":\"ai\",\"data\":{\"content\":\"Hello\",\"type\":\"ai\",\"id\":\"t-"
                  "m1\"}}\n" CHUNK("t-m1", "\"\"", END("stop") LAST));
    dgm_buf_done(&out);
}

/* What a reader has in the end, without the ids of thoughts. */
static void dump_story(dgm_buf *b, const dgm_canon_fold *fold)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_messages all = dgm_canon_fold_messages(fold, a);
    for (size_t i = 0; i < all.n; i++) {
        dgm_canon_message *m = &all.at[i];
        if (m->role == DGM_CANON_ACTIVITY)
            continue;
        if (m->role == DGM_CANON_REASONING)
            m->id = (dgm_str){0};
        dump_messages(b, &(dgm_canon_messages){m, 1});
    }
}

static void random_stories_come_back(void **state)
{
    size_t compared = 0;
    (void)state;
    for (size_t story = 1; story < 4000; story++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_auto(dgm_canon_fold_free) dgm_canon_fold *said = dgm_canon_fold_new(1 << 20);
        dgm_auto(dgm_canon_fold_free) dgm_canon_fold *read = dgm_canon_fold_new(1 << 20);
        dgm_event events[20];
        dgm_records_params from = {.say_history = story % 2};
        dgm_stream_params params = {0};
        dgm_err err = {0};
        dgm_buf out, want, got;
        dgm_buf_init(&out, SIZE_MAX), dgm_buf_init(&want, SIZE_MAX), dgm_buf_init(&got, SIZE_MAX);
        seed = story;
        size_t n = 1 + roll(20);
        tell_story(a, events, n);
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
            dgm_records_to_events_new(&from);
        struct codec_path path = {.to = LC,
                                  .fold = said,
                                  .arena = a,
                                  .encoder =
                                      LC->encoder_new(&params, (dgm_frame_sink){put_line, &out})};
        dgm_code rc = DGM_OK;
        for (size_t i = 0; !rc && i < n; i++)
            rc = dgm_records_to_events_feed(f, &events[i],
                                            (dgm_canon_sink){codec_path_write, &path}, &err);
        if (!rc) {
            check_ok(dgm_records_to_events_end(f, (dgm_canon_sink){codec_path_write, &path}, &err),
                     err);
            check_ok(LC->encoder_end(path.encoder, &err), err);
            struct codec_path back = {.to = LC, .fold = read};
            check_ok(decode_lines(LC, &params, dgm_buf_str(&out),
                                  (dgm_canon_sink){codec_path_write, &back}, &err),
                     err);
            assert_int_equal(back.n_ends, 1);
            if (!path.n_snapshots && !path.n_early) {
                dump_story(&want, said);
                dump_story(&got, read);
                check_same(got, want);
                compared++;
            }
        }
        LC->encoder_free(path.encoder);
        dgm_map_done(&path.texts), dgm_map_done(&path.calls);
        dgm_buf_done(&out), dgm_buf_done(&want), dgm_buf_done(&got);
    }
    assert_true(compared > 1000);
}

DGM_TEST_MAIN(dgm_test(a_run_is_chunks_and_results), dgm_test(and_back),
              dgm_test(langgraphs_stream_is_read_once), dgm_test(the_outcome_of_a_run_is_decoded),
              dgm_test(a_text_that_differs_is_emitted_completely),
              dgm_test(random_stories_come_back))
