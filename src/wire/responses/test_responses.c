/* test_responses.c - what A2A's events become as a stream of Responses, and as one response. */
#include "wire/responses/test_responses.h"
#include "canon/records_to_events.h"

struct road {
    void *encoder;
    dgm_err err;
};

static dgm_code encode(void *arg, const dgm_canon_event *e)
{
    struct road *r = arg;
    return dgm_codec_responses.encoder_feed(r->encoder, e, &r->err);
}

/* Records, one per line, as frames. */
static void run_with(const char *lines, dgm_stream_params p, struct frames *f)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&(dgm_records_params){0});
    struct road road = {0};
    p.now = 5000;
    road.encoder = dgm_codec_responses.encoder_new(&p, (dgm_frame_sink){keep_frame, f});
    dgm_canon_sink sink = {encode, &road};
    dgm_mint mint = {0};
    f->n = 0;
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        dgm_event e;
        read_record(f->a, &mint, (dgm_str){lines, n}, &e);
        check_ok(dgm_records_to_events_feed(from, &e, sink, &road.err), road.err);
        lines += n + (lines[n] == '\n');
    }
    if (!p.so_far)
        check_ok(dgm_records_to_events_end(from, sink, &road.err), road.err);
    check_ok(dgm_codec_responses.encoder_end(road.encoder, &road.err), road.err);
    dgm_codec_responses.encoder_free(road.encoder);
}

static void run(const char *lines, bool whole, struct frames *f)
{
    run_with(lines, (dgm_stream_params){.whole = whole}, f);
}

/* A line per frame: its type without "response.", its indexes, its text. */
static dgm_str outline(const struct frames *f)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < f->n; i++) {
        yyjson_val *v = f->at[i], *item = dgm_json_get(v, DGM_STR("item"));
        dgm_str type = member(v, "type");
        if (dgm_str_starts(type, DGM_STR("response.")))
            type = (dgm_str){type.p + 9, type.n - 9};
        dgm_buf_add_str(&b, type);
        if (number(v, "output_index") >= 0)
            dgm_buf_printf(&b, " %d", (int)number(v, "output_index"));
        if (item)
            dgm_buf_printf(&b, " %.*s %.*s", DGM_P(member(item, "type")),
                           DGM_P(member(item, "id")));
        for (const char *const *name =
                 (const char *const[]){"delta", "text", "arguments", "refusal", NULL};
             *name; name++) {
            if (member(v, *name).p)
                dump_text(&b, member(v, *name));
        }
        dgm_buf_add_char(&b, '\n');
    }
    dgm_str text = dgm_arena_dup(f->a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static struct frames *new_frames(void)
{
    struct frames *f = calloc(1, sizeof *f);
    f->a = dgm_arena_new();
    return f;
}

static void free_frames(struct frames *f)
{
    dgm_arena_free(f->a);
    free(f);
}

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}" \
    "}\n"
#define STATUS(state, rest)                                                                        \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"" rest "}}}\n"
#define SAYS(parts)                                                                                \
    ",\"message\":{\"messageId\":\"s\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define CHUNK(id, t, rest)                                                                         \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"" id \
    "\",\"parts\":[{\"text\":\"" t "\"}]}" rest "}}\n"
#define MORE ",\"append\":true"
#define INTERNAL(rest)                                                                             \
    "{\"kind\":\"internal:" rest ",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"

static void check_outline(const char *lines, bool corrected, const char *want)
{
    struct frames *f = new_frames();
    run(lines, false, f);
    check_order(f, corrected);
    dgm_str got = outline(f);
    check_str(got, want);
    free_frames(f);
}

#define BEGIN "created\nin_progress\n"
#define MESSAGE(i, id) "output_item.added " i " message " id "\ncontent_part.added " i "\n"
#define DELTA(i, t) "output_text.delta " i " \"" t "\"\n"
#define DONE(i, id, t)                                                                             \
    "output_text.done " i " \"" t "\"\ncontent_part.done " i "\noutput_item.done " i               \
    " message " id "\n"

static void text_in_deltas(void **state)
{
    (void)state;
    check_outline(TASK STATUS("WORKING", "") CHUNK("a", "Hel", "") CHUNK("a", "lo", MORE)
                      STATUS("COMPLETED", SAYS(TEXT("Hello"))),
                  false,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "Hel") DELTA("0", "lo")
                      DONE("0", "msg_t-m1", "Hello") "completed\n");
}

static void a_final_text_that_differs_is_in_what_is_done(void **state)
{
    struct frames *f = new_frames();
    (void)state;
    check_outline(TASK CHUNK("a", "Helo", "") STATUS("COMPLETED", SAYS(TEXT("Hello"))), true,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "Helo")
                      DONE("0", "msg_t-m1", "Hello") "completed\n");
    run(TASK CHUNK("a", "Helo", "") STATUS("COMPLETED", SAYS(TEXT("Hello"))), false, f);
    yyjson_val *response = dgm_json_get(f->at[f->n - 1], DGM_STR("response"));
    yyjson_val *item = yyjson_arr_get_first(dgm_json_get(response, DGM_STR("output")));
    check_str(member(yyjson_arr_get_first(dgm_json_get(item, DGM_STR("content"))), "text"),
              "Hello");
    free_frames(f);
}

/* The agent continues after a crash: its deltas so far are void. */
static void a_text_that_starts_again_is_another_item(void **state)
{
    struct frames *f = new_frames();
    const char *lines = TASK CHUNK("a", "One two", "") CHUNK("a", "One", "")
        CHUNK("a", " three", MORE) STATUS("COMPLETED", SAYS(TEXT("One three")));
    (void)state;
    check_outline(lines, true,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "One two") DONE("0", "msg_t-m1", "")
                      MESSAGE("1", "msg_1") DELTA("1", "One") DELTA("1", " three")
                          DONE("1", "msg_1", "One three") "completed\n");
    run(lines, false, f);
    yyjson_val *output =
        dgm_json_get(dgm_json_get(f->at[f->n - 1], DGM_STR("response")), DGM_STR("output"));
    check_str(member(yyjson_arr_get(output, 0), "status"), "incomplete");
    check_str(member(yyjson_arr_get(output, 1), "status"), "completed");
    free_frames(f);
}

static void texts_that_follow_are_one_message(void **state)
{
    (void)state;
    check_outline(TASK CHUNK("a", "One", ",\"lastChunk\":true") CHUNK("b", "Two", "")
                      CHUNK("b", "!", MORE) STATUS("COMPLETED", ""),
                  false,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "One") DELTA("0", "\\n\\nTwo")
                      DELTA("0", "!") DONE("0", "msg_t-m1", "One\\n\\nTwo!") "completed\n");
}

static void texts_side_by_side_are_two(void **state)
{
    (void)state;
    check_outline(TASK CHUNK("a", "One", "") CHUNK("b", "Two", "") CHUNK("a", "!", MORE)
                      STATUS("COMPLETED", ""),
                  false,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "One") MESSAGE("1", "msg_t-m2")
                      DELTA("1", "\\n\\nTwo") DELTA("0", "!") DONE("0", "msg_t-m1", "One!")
                          DONE("1", "msg_t-m2", "\\n\\nTwo") "completed\n");
}

#define CALL(name, kind, i, id, args)                                                              \
    "output_item.added " i " " name " " id "\n" kind "_arguments.delta " i " \"" args "\"\n" kind  \
    "_arguments.done " i " \"" args "\"\noutput_item.done " i " " name " " id "\n"
#define MCP(i, id, args, end)                                                                      \
    "output_item.added " i " mcp_call " id "\nmcp_call.in_progress " i "\n"                        \
    "mcp_call_arguments.delta " i " \"" args "\"\nmcp_call_arguments.done " i " \"" args           \
    "\"\nmcp_call." end " " i "\noutput_item.done " i " mcp_call " id "\n"

static void calls_that_wait_are_the_callers(void **state)
{
#define TWO_CALLS                                                                                  \
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{\"a\":1}},"       \
    "{\"call_id\":\"2\",\"name\":\"g\"}]}}"
    (void)state;
    check_outline(TASK CHUNK("a", "Now", "") STATUS("INPUT_REQUIRED", SAYS(TWO_CALLS)), false,
                  BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "Now") DONE("0", "msg_t-m1", "Now")
                      CALL("function_call", "function_call", "1", "fc_1", "{\\\"a\\\": 1}")
                          CALL("function_call", "function_call", "2", "fc_2", "{}") "completed\n");
}

static void calls_with_results_are_the_agents(void **state)
{
    (void)state;
    check_outline(
        TASK INTERNAL(
            "tool-start\",\"toolName\":\"f\",\"toolCallId\":\"1\",\"arguments\":{\"q\":1}")
            INTERNAL("tool-start\",\"toolName\":\"f\",\"toolCallId\":\"2\"")
                INTERNAL("tool-complete\",\"toolCallId\":\"2\",\"success\":false,\"error\":\"no\"")
                    INTERNAL("tool-complete\",\"toolCallId\":\"1\",\"success\":true,\"result\":3")
                        CHUNK("a", "3", "") STATUS("COMPLETED", ""),
        false,
        BEGIN MCP("0", "mcp_2", "{}", "failed") MCP("1", "mcp_1", "{\\\"q\\\": 1}", "completed")
            MESSAGE("2", "msg_t-m4") DELTA("2", "3") DONE("2", "msg_t-m4", "3") "completed\n");
}

#define THOUGHT(i, id, t)                                                                          \
    "output_item.added " i " reasoning " id "\nreasoning_summary_part.added " i                    \
    "\nreasoning_summary_text.delta " i " \"" t "\"\nreasoning_summary_text.done " i " \"" t       \
    "\"\nreasoning_summary_part.done " i "\noutput_item.done " i " reasoning " id "\n"

static void progress_and_thoughts_are_reasoning(void **state)
{
    (void)state;
    check_outline(TASK STATUS("WORKING", SAYS(TEXT("Looking")))
                      STATUS("WORKING", SAYS(TEXT("Looking"))) CHUNK("a", "One", "")
                          STATUS("WORKING", SAYS(TEXT("More"))) CHUNK("a", "!", MORE)
                              STATUS("COMPLETED", ""),
                  false,
                  BEGIN THOUGHT("0", "rs_status-0", "Looking") MESSAGE("1", "msg_t-m1")
                      DELTA("1", "One") THOUGHT("2", "rs_status-2", "More") DELTA("1", "!")
                          DONE("1", "msg_t-m1", "One!") "completed\n");
    check_outline(TASK INTERNAL("reasoning\",\"text\":\"hm\"") CHUNK("a", "One", "")
                      STATUS("COMPLETED", ""),
                  false,
                  BEGIN THOUGHT("0", "rs_t-t1", "hm") MESSAGE("1", "msg_t-m2") DELTA("1", "One")
                      DONE("1", "msg_t-m2", "One") "completed\n");
}

static void files_of_artifacts(void **state)
{
#define ARTIFACT(part)                                                                             \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":"      \
    "\"f\","                                                                                       \
    "\"parts\":[" part "]},\"lastChunk\":true}}\n"
    (void)state;
    check_outline(
        TASK CHUNK("a", "See", ",\"lastChunk\":true")
            ARTIFACT("{\"url\":\"https://x.test/a\",\"filename\":\"a\"},{\"data\":{\"k\":1}}")
                ARTIFACT("{\"raw\":\"aGk=\",\"filename\":\"a.png\"}") STATUS("COMPLETED", ""),
        false,
        BEGIN MESSAGE("0", "msg_t-m1") DELTA("0", "See") DELTA("0", "\\n\\n[a](https://x.test/a)")
            DELTA("0", "\\n\\n{\\\"k\\\": 1}") DONE(
                "0", "msg_t-m1",
                "See\\n\\n[a](https://x.test/a)\\n\\n{\\\"k\\\": 1}") "output_item.added 1 "
                                                                      "image_generation_call ig_1\n"
                                                                      "output_item.done 1 "
                                                                      "image_generation_call "
                                                                      "ig_1\ncompleted\n");
}

/* How a run ends, in the last frame. */
static void check_end_of(const char *lines, const char *type, const char *status, const char *task)
{
    struct frames *f = new_frames();
    run(lines, false, f);
    check_order(f, false);
    yyjson_val *response = dgm_json_get(f->at[f->n - 1], DGM_STR("response"));
    check_str(f->names[f->n - 1], type);
    check_str(member(response, "status"), status);
    yyjson_val *metadata = dgm_json_get(response, DGM_STR("metadata"));
    check_str(member(metadata, "a2a_task_state"), task);
    check_str(member(metadata, "a2a_task_id"), "t");
    check_str(member(metadata, "a2a_context_id"), "c");
    free_frames(f);
}

static void ends_of_runs(void **state)
{
    (void)state;
    check_end_of(TASK STATUS("COMPLETED", ""), "response.completed", "completed", "completed");
    check_end_of(TASK STATUS("INPUT_REQUIRED", SAYS(TEXT("Which?"))), "response.completed",
                 "completed", "input-required");
    check_end_of(TASK STATUS("AUTH_REQUIRED", SAYS(TEXT("Who?"))), "response.completed",
                 "completed", "auth-required");
    check_end_of(TASK CHUNK("a", "One", "") STATUS("CANCELED", ""), "response.incomplete",
                 "cancelled", "canceled");
    check_end_of(TASK CHUNK("a", "One", "") STATUS("FAILED", ""), "response.failed", "failed",
                 "failed");
    check_end_of(TASK STATUS("REJECTED", SAYS(TEXT("No"))), "response.completed", "completed",
                 "rejected");
    check_end_of(TASK, "response.failed", "failed", "failed");
}

static void a_failure_is_sent_flat_and_nested(void **state)
{
    struct frames *f = new_frames();
    (void)state;
    run(TASK "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"
             "STATE_"
             "FAILED\"},\"metadata\":{\"error\":\"out of luck\"}}}\n",
        false, f);
    check_str(
        f->texts[2],
        "{\"type\":\"error\",\"sequence_number\":2,\"code\":\"task_failed\",\"message\":\"out of "
        "luck\",\"param\":null,\"error\":{\"type\":\"server_error\",\"code\":\"task_failed\","
        "\"message\":\"out of luck\",\"param\":null}}");
    check_str(f->names[3], "response.failed");
    free_frames(f);
}

static void a_refusal(void **state)
{
    (void)state;
    check_outline(TASK STATUS("REJECTED", SAYS(TEXT("No"))), false,
                  BEGIN "output_item.added 0 message msg_0\ncontent_part.added 0\n"
                        "refusal.delta 0 \"No\"\nrefusal.done 0 \"No\"\ncontent_part.done 0\n"
                        "output_item.done 0 message msg_0\ncompleted\n");
}

static void the_response_as_one_object(void **state)
{
    struct frames *f = new_frames();
    (void)state;
    run(TASK CHUNK("a", "Hi", "") INTERNAL(
            "usage\",\"value\":{\"inputTokens\":3,\"outputTokens\":4,\"cachedInputTokens\":1}")
            STATUS("COMPLETED", ""),
        true, f);
    assert_int_equal(f->n, 1);
    check_str(f->names[0], "");
    check_str(
        f->texts[0],
        "{\"id\":\"resp_t\",\"object\":\"response\",\"created_at\":5,\"completed_at\":5,\"status\":"
        "\"completed\",\"error\":null,\"incomplete_details\":null,\"output\":[{\"id\":\"msg_t-m1\","
        "\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
        "\"annotations\":[],\"logprobs\":[],\"text\":\"Hi\"}],\"status\":\"completed\"}],\"usage\":"
        "{"
        "\"input_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":1},\"output_tokens\":4,"
        "\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":7},\"metadata\":{"
        "\"a2a_"
        "context_id\":\"c\",\"a2a_task_id\":\"t\",\"a2a_task_state\":\"completed\"},\"model\":"
        "\"dragoman\",\"background\":false,\"instructions\":null,\"max_output_tokens\":null,\"max_"
        "tool_calls\":null,\"parallel_tool_calls\":true,\"previous_response_id\":null,"
        "\"conversation\":null,\"prompt_cache_key\":null,\"reasoning\":{\"effort\":null,"
        "\"summary\":"
        "null},\"safety_identifier\":null,\"service_tier\":\"default\",\"store\":true,"
        "\"temperature\":1.0,\"text\":{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"},"
        "\"tool_choice\":\"auto\",\"tools\":[],\"top_logprobs\":0,\"top_p\":1.0,\"presence_"
        "penalty\":0.0,\"frequency_penalty\":0.0,\"truncation\":\"disabled\",\"user\":null}");
    free_frames(f);
}

static void what_ends_early_is_incomplete(void **state)
{
    struct frames *f = new_frames();
    (void)state;
    run(TASK CHUNK("a", "Hi", "") "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\","
                                  "\"status\":{\"state\":\"TASK_STATE_"
                                  "COMPLETED\"},\"metadata\":{\"finish_reason\":\"length\"}}}\n",
        false, f);
    check_order(f, false);
    check_str(f->names[f->n - 1], "response.incomplete");
    yyjson_val *response = dgm_json_get(f->at[f->n - 1], DGM_STR("response"));
    check_str(member(response, "status"), "incomplete");
    check_str(member(dgm_json_get(response, DGM_STR("incomplete_details")), "reason"),
              "max_output_tokens");
    free_frames(f);
}

static void ids_of_items_lead_back_to_their_response(void **state)
{
    struct frames *f = new_frames();
    (void)state;
    run_with(TASK STATUS("WORKING", SAYS(TEXT("Looking"))) CHUNK("a", "Now", "")
                 STATUS("INPUT_REQUIRED", SAYS(TWO_CALLS)),
             (dgm_stream_params){.scoped_ids = true, .task_id = DGM_STR("task-7")}, f);
    check_order(f, false);
    yyjson_val *response = dgm_json_get(f->at[f->n - 1], DGM_STR("response"));
    check_str(member(dgm_json_get(response, DGM_STR("metadata")), "a2a_task_id"), "task-7");
    yyjson_val *output = dgm_json_get(response, DGM_STR("output"));
    static const char *const ids[] = {"rs_t_0", "msg_t_1", "fc_t_2", "fc_t_3"};
    assert_int_equal(yyjson_arr_size(output), 4);
    for (size_t i = 0; i < 4; i++)
        check_str(member(yyjson_arr_get(output, i), "id"), ids[i]);
    check_str(member(yyjson_arr_get(output, 2), "call_id"), "1");
    free_frames(f);
}

static void what_there_is_of_a_response_that_goes_on(void **state)
{
    dgm_stream_params p = {.whole = true, .so_far = true};
    struct frames *f = new_frames();
    (void)state;
    run_with(TASK STATUS("WORKING", SAYS(TEXT("Looking"))) CHUNK("a", "Hal", ""), p, f);
    assert_int_equal(f->n, 1);
    check_str(member(f->at[0], "status"), "in_progress");
    assert_true(yyjson_is_null(dgm_json_get(f->at[0], DGM_STR("completed_at"))));
    yyjson_val *output = dgm_json_get(f->at[0], DGM_STR("output"));
    assert_int_equal(yyjson_arr_size(output), 1); /* what is done: no half of a message */
    check_str(member(yyjson_arr_get_first(output), "type"), "reasoning");
    run_with(TASK CHUNK("a", "Hi", "") STATUS("COMPLETED", ""), p, f);
    assert_int_equal(f->n, 1);
    check_str(member(f->at[0], "status"), "completed");
    run_with("", p, f);
    assert_int_equal(f->n, 1);
    check_str(member(f->at[0], "status"), "in_progress");
    free_frames(f);
}

DGM_TEST_MAIN(dgm_test(text_in_deltas), dgm_test(a_final_text_that_differs_is_in_what_is_done),
              dgm_test(a_text_that_starts_again_is_another_item),
              dgm_test(texts_that_follow_are_one_message), dgm_test(texts_side_by_side_are_two),
              dgm_test(calls_that_wait_are_the_callers),
              dgm_test(calls_with_results_are_the_agents),
              dgm_test(progress_and_thoughts_are_reasoning), dgm_test(files_of_artifacts),
              dgm_test(ends_of_runs), dgm_test(a_failure_is_sent_flat_and_nested),
              dgm_test(a_refusal), dgm_test(the_response_as_one_object),
              dgm_test(what_ends_early_is_incomplete),
              dgm_test(ids_of_items_lead_back_to_their_response),
              dgm_test(what_there_is_of_a_response_that_goes_on))
