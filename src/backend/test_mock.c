/* test_mock.c - the scripted model: its bytes, read as the answers of a server are. */
#include "backend/llm/mock.h"

#include "support/check.h"
#include "wire/model_call.h"

/* ---- one answer ---------------------------------------------------------------------------------------------------- */

struct answer {
    dgm_buf text, reasoning, calls; /* calls: `NAME ARGUMENTS;` */
    dgm_model_finish finish;
    char refusal[64], error[128];
    uint32_t waited_ms;
    size_t n_steps;
    bool is_cut, has_usage;
    int status;
};

static dgm_code add_text(void *arg, dgm_str delta)
{
    dgm_buf_add_str(&((struct answer *)arg)->text, delta);
    return DGM_OK;
}

static dgm_code add_reasoning(void *arg, dgm_str delta)
{
    dgm_buf_add_str(&((struct answer *)arg)->reasoning, delta);
    return DGM_OK;
}

static dgm_code add_call(void *arg, const dgm_model_call *call)
{
    dgm_buf_printf(&((struct answer *)arg)->calls, "%.*s %.*s;", DGM_P(call->name),
                   DGM_P(call->arguments));
    return DGM_OK;
}

static void feed(dgm_frames *frames, dgm_model_answer *m)
{
    dgm_frames_item item;
    while (!dgm_frames_next(frames, &item, NULL) && item.text.p)
        assert_int_equal(dgm_model_answer_feed(m, &item, NULL), DGM_OK);
}

static void read_steps(dgm_mock *mock, struct answer *ret, dgm_model_answer *m)
{
    dgm_mock_step step = {0};
    dgm_frames frames;
    dgm_frames_init(&frames, false);
    while (!step.is_end && !step.is_cut) {
        dgm_mock_next(mock, &step);
        assert_true(++ret->n_steps < 2000);
        ret->waited_ms += step.wait_ms;
        dgm_frames_feed(&frames, step.bytes.p, step.bytes.n);
        feed(&frames, m);
    }
    ret->is_cut = step.is_cut;
    dgm_frames_end(&frames);
    feed(&frames, m);
    (void)dgm_model_answer_end(m, NULL);
    dgm_frames_done(&frames);
}

static void run_body(dgm_str body, unsigned attempt, struct answer *ret)
{
    dgm_auto(dgm_mock_free) dgm_mock *mock = dgm_mock_new(body, attempt);
    dgm_model_handler handler = {
        .on_text = add_text, .on_reasoning = add_reasoning, .on_call = add_call, .arg = ret};
    dgm_auto(dgm_model_answer_free) dgm_model_answer *m =
        dgm_model_answer_new(DGM_MODEL_CHAT, &handler, 1);
    *ret = (struct answer){.status = dgm_mock_status(mock)};
    dgm_buf_init(&ret->text, SIZE_MAX);
    dgm_buf_init(&ret->reasoning, SIZE_MAX);
    dgm_buf_init(&ret->calls, SIZE_MAX);
    read_steps(mock, ret, m);
    const dgm_model_result *result = dgm_model_answer_result(m);
    ret->finish = result->finish;
    ret->has_usage = result->usage.total_tokens.set;
    snprintf(ret->refusal, sizeof ret->refusal, "%.*s", DGM_P(result->refusal));
    snprintf(ret->error, sizeof ret->error, "%.*s", DGM_P(result->error.message));
}

static void done(struct answer *x)
{
    dgm_buf_done(&x->text);
    dgm_buf_done(&x->reasoning);
    dgm_buf_done(&x->calls);
}

#define TOOLS                                                                                      \
    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"now\",\"description\":\"the "     \
    "time\"}},{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"of a "   \
    "city\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"   \
    "\"days\":{\"type\":\"integer\"},\"unit\":{\"enum\":[\"C\",\"F\"]},\"x\":{\"type\":"           \
    "\"string\"}},\"required\":[\"city\",\"days\",\"unit\"]}}},{\"type\":\"function\","            \
    "\"function\":{\"name\":\"ask_user\",\"description\":\"asks a question\"}}]"

static void write_body(dgm_buf *b, const char *text, bool is_stream, const char *more)
{
    dgm_buf_init(b, SIZE_MAX);
    dgm_buf_printf(
        b, "{\"model\":\"mock:\",\"stream\":%s,\"stream_options\":{\"include_usage\":true},",
        is_stream ? "true" : "false");
    dgm_buf_add_lit(b, "\"messages\":[{\"role\":\"user\",\"content\":");
    dgm_json_put_str(b, dgm_str_from(text));
    dgm_buf_printf(b, "}%s}", more);
}

/* ---- scripts ------------------------------------------------------------------------------------------------------- */

static const struct script {
    const char *text, *more; /* more: behind the messages */
    dgm_model_finish finish;
    const char *answer, *reasoning, *calls, *refusal, *error;
} scripts[] = {
    {"Good day", "]", DGM_MODEL_STOP, "Hello! I am the scripted model. You wrote: Good day"},
    {"echo  two  words", "]", DGM_MODEL_STOP, "two  words"},
    {"ECHO x", "]", DGM_MODEL_STOP, "x"},
    {"call find {\"q\":\"a {b}\"}", "]", DGM_MODEL_TOOL_CALLS, "", "", "find {\"q\":\"a {b}\"};"},
    {"call a\ncall b {\"n\":[1]} call c please", "]", DGM_MODEL_TOOL_CALLS, "", "",
     "a {};b {\"n\":[1]};c {};"},
    {"ask Which one?", "]", DGM_MODEL_TOOL_CALLS, "", "",
     "ask_user {\"question\":\"Which one?\"};"},
    {"think Yes.", "]", DGM_MODEL_STOP, "Yes.", "I think about it. "},
    {"refuse No.", "]", DGM_MODEL_REFUSAL, "", "", "", "No."},
    {"filter", "]", DGM_MODEL_CONTENT_FILTER, ""},
    {"length Once upon", "]", DGM_MODEL_LENGTH, "Once upon"},
    {"json a", "]", DGM_MODEL_STOP, "{\"answer\":\"a\"}"},
    {"five", "],\"response_format\":{\"type\":\"json_object\"}", DGM_MODEL_STOP,
     "{\"answer\":\"five\"}"},
    {"take 5",
     "],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{"
     "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"ok\":{\"type\":"
     "\"boolean\"}},\"required\":[\"n\",\"ok\"]}}}",
     DGM_MODEL_STOP, "{\"n\":5,\"ok\":true}"},
    {"silent", "]", DGM_MODEL_STOP, ""},
    {"What time is it?", "]" TOOLS, DGM_MODEL_TOOL_CALLS, "", "", "now {};"},
    {"The weather for 007 days in Oslo?", "]" TOOLS, DGM_MODEL_TOOL_CALLS, "", "",
     "weather {\"city\":\"Oslo\",\"days\":7,\"unit\":\"C\"};"},
    {"convert 5 km to mile",
     "],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"convert\",\"parameters\":{"
     "\"properties\":{\"value\":{\"type\":\"number\"},\"from\":{\"type\":\"string\"},\"to\":{"
     "\"type\":\"string\"}},\"required\":[\"value\",\"from\",\"to\"]}}}]",
     DGM_MODEL_TOOL_CALLS, "", "", "convert {\"value\":5,\"from\":\"km\",\"to\":\"mile\"};"},
    {"Ask a question", "]" TOOLS, DGM_MODEL_TOOL_CALLS, "", "",
     "ask_user {\"question\":\"a question\"};"},
    {"fail broken", "]", DGM_MODEL_ERROR, "I start ", "", "", "", "broken"},
};

static void check_script(const struct script *x, bool is_stream)
{
    struct answer got;
    dgm_buf body;
    write_body(&body, x->text, is_stream, x->more);
    run_body(dgm_buf_str(&body), 0, &got);
    assert_int_equal(got.status, 200);
    if (got.finish != x->finish)
        fail_msg("%s: finish %d, want %d (%s)", x->text, got.finish, x->finish, got.error);
    check_str(got.text, !is_stream && x->finish == DGM_MODEL_ERROR ? "" : x->answer);
    check_str(got.reasoning, x->reasoning ? x->reasoning : "");
    check_str(got.calls, x->calls ? x->calls : "");
    assert_string_equal(got.refusal, x->refusal ? x->refusal : "");
    assert_string_equal(got.error, x->error ? x->error : "");
    if (x->finish != DGM_MODEL_ERROR)
        assert_true(got.has_usage);
    done(&got);
    dgm_buf_done(&body);
}

static void scripts_have_their_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        check_script(&scripts[i], true);
}

static void whole_answers_are_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        check_script(&scripts[i], false);
}

#define TURN(id, name)                                                                             \
    ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"" id                                       \
    "\",\"type\":\"function\",\"function\":{\"name\":\"" name                                      \
    "\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"" id                        \
    "\",\"content\":\"noon\"}"

static void check_text(const char *text, const char *more, const char *want)
{
    struct answer got;
    dgm_buf body;
    write_body(&body, text, true, more);
    run_body(dgm_buf_str(&body), 0, &got);
    if (got.calls.n)
        check_str(got.calls, want);
    else
        check_str(got.text, want);
    done(&got);
    dgm_buf_done(&body);
}

static void results_are_in_the_answer(void **state)
{
    (void)state;
    check_text("call now", TURN("c1", "now") "]", "The result of now is: noon");
    check_text("What time is it?", TURN("c1", "now") "]" TOOLS, "The result of now is: noon");
}

static void steps_are_rounds(void **state)
{
    const char *text = "call a {} then call b {\"n\":1} then echo done";
    (void)state;
    check_text(text, "]", "a {};");
    check_text(text, TURN("c1", "a") "]", "b {\"n\":1};");
    check_text(text, TURN("c1", "a") TURN("c2", "b") "]", "done");
    check_text(text, TURN("c1", "a") TURN("c2", "b") TURN("c3", "c") "]",
               "The result of a is: noon The result of b is: noon The result of c is: noon");
    /* results of an earlier message do not count */
    check_text(text,
               TURN("c1", "a") ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                               "\"echo new\"}]}]",
               "new");
}

/* ---- errors --------------------------------------------------------------------------------------------------------- */

static void check_status(const char *text, unsigned attempt, int status, const char *words,
                         const char *retry_after)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_model_handler handler = {0};
    dgm_mock_step step;
    dgm_model_error error;
    dgm_buf body;
    write_body(&body, text, true, "]");
    dgm_auto(dgm_mock_free) dgm_mock *mock = dgm_mock_new(dgm_buf_str(&body), attempt);
    assert_int_equal(dgm_mock_status(mock), status);
    check_str(dgm_mock_retry_after(mock), retry_after);
    if (status != 200) {
        assert_false(dgm_mock_is_stream(mock));
        dgm_mock_next(mock, &step);
        assert_true(step.is_end);
        dgm_model_read_error(a, status, step.bytes, &handler, &error);
        check_str(error.message, words);
    }
    dgm_buf_done(&body);
}

static void errors_have_a_status(void **state)
{
    (void)state;
    check_status("error 429 slow down", 0, 429, "slow down", "0");
    check_status("error 503", 3, 503, "the script asks for this error", "0");
    check_status("error 7", 0, 500, "the script asks for this error", "");
    check_status("first error 500", 0, 500, "the script asks for this error", "");
    check_status("first error 500", 1, 200, "", "");
}

static void invalid_requests_are_rejected(void **state)
{
    static const char *const bodies[] = {"", "{", "[]", "{\"messages\":1}"};
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        dgm_auto(dgm_mock_free) dgm_mock *mock = dgm_mock_new(dgm_str_from(bodies[i]), 0);
        assert_int_equal(dgm_mock_status(mock), 400);
    }
}

static void stream_can_be_cut(void **state)
{
    struct answer got;
    dgm_buf body;
    (void)state;
    write_body(&body, "cut Half of it", true, "]");
    run_body(dgm_buf_str(&body), 0, &got);
    assert_true(got.is_cut);
    assert_int_equal(got.finish, DGM_MODEL_ERROR);
    check_str(got.text, "Half of it");
    done(&got);
    dgm_buf_done(&body);
}

static void words_can_be_slow_and_many(void **state)
{
    struct answer got;
    dgm_buf body;
    (void)state;
    write_body(&body, "slow 20 one two three", true, "]");
    run_body(dgm_buf_str(&body), 0, &got);
    check_str(got.text, "one two three");
    assert_true(got.waited_ms >= 60 && got.waited_ms <= 100);
    done(&got);
    dgm_buf_done(&body);
    write_body(&body, "long 1000", true, "]");
    run_body(dgm_buf_str(&body), 0, &got);
    assert_int_equal(got.finish, DGM_MODEL_STOP);
    assert_true(got.n_steps > 1000);
    done(&got);
    dgm_buf_done(&body);
}

static void names_of_the_scripted_model_are_known(void **state)
{
    (void)state;
    assert_true(dgm_mock_is(DGM_STR("mock:")));
    assert_true(dgm_mock_is(DGM_STR("mock:x")));
    assert_false(dgm_mock_is(DGM_STR("mock")));
    assert_false(dgm_mock_is(DGM_STR("https://example.com/mock:")));
}

DGM_TEST_MAIN(dgm_test(scripts_have_their_answers), dgm_test(whole_answers_are_the_same),
              dgm_test(results_are_in_the_answer), dgm_test(steps_are_rounds),
              dgm_test(errors_have_a_status), dgm_test(invalid_requests_are_rejected),
              dgm_test(stream_can_be_cut), dgm_test(words_can_be_slow_and_many),
              dgm_test(names_of_the_scripted_model_are_known))
