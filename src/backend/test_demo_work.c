/* test_demo_work.c - the demo agent's scripts that show how an agent works. */
#include "backend/demo/demo_int.h"
#include "backend/test_fake.h"

static struct fake *play(const char *text)
{
    struct fake *f = fake_open("demo", "{'pace':0}", NULL);
    fake_run(f, text);
    fake_check(f);
    assert_string_equal(f->error, "");
    return f;
}

/* A run whose message has these parts behind its text. */
static void play_parts(struct fake *f, const char *text, dgm_part *parts, size_t n)
{
    fake_prepare(f, "msg-2", text);
    dgm_part *all = dgm_arena_alloc(f->arena, (n + 1) * sizeof *all);
    all[0] = f->part;
    memcpy(all + 1, parts, n * sizeof *parts);
    f->message.parts = (dgm_parts){all, n + 1};
    dgm_loop_post(f->run.loop, fake_do_start, f);
    uv_sem_wait(&f->ended);
    fake_check(f);
    assert_string_equal(f->error, "");
}

static void says(struct fake *f, const char *json)
{
    dgm_buf_add_char(&f->events, '\0');
    if (!strstr(f->events.p, json))
        print_error("no %s in\n%s\n", json, f->events.p);
    assert_non_null(strstr(f->events.p, json));
    f->events.n--;
}

static const struct work_row {
    const char *name, *script, *trace, *event;
} rows[] = {
    {"tools: a call and its result, then the answer", "tools",
     "working internal internal internal internal chunk",
     "\"toolName\":\"get_weather\",\"toolCallId\":\"call-weather-task-1\",\"arguments\":{"
     "\"location\":"
     "\"Oakland\"}"},
    {"parallel-tools: both begin before one is done", "parallel-tools",
     "working internal internal internal internal internal internal chunk",
     "\"toolCallId\":\"call-time-task-1\",\"success\":true,\"result\":{\"time\":\"09:41\"}"},
    {"state: a snapshot, then members of it", "state", "working internal internal internal chunk",
     "\"name\":\"servings\",\"value\":4"},
    {"reasoning: thoughts before the answer", "reasoning",
     "working internal internal internal chunk", "\"text\":\"So I think of something: \""},
    {"usage: what it cost", "usage", "working chunk", "\"inputTokens\":12,\"outputTokens\":9"},
    {"subagent: another agent, twice", "subagent", "working working+ working+ chunk",
     "\"agent\":{\"name\":\"researcher\""},
    {"files: none came", "files", "working chunk", "No "},
};

static void shows_its_work_and_sends_the_same_text_three_times(void **state)
{
    const struct work_row *row = *state;
    struct fake *f = play(row->script);
    dgm_buf_add_char(&f->trace, '\0');
    assert_ptr_equal(strstr(f->trace.p, row->trace), f->trace.p);
    says(f, row->event);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_true(f->n_chunks > 2);
    fake_check_text(f);
    fake_close(f);
}

static void a_tool_of_the_caller_is_requested_and_its_result_sent(void **state)
{
    struct fake *f = play("client-tool");
    (void)state;
    check_trace(f, "working input-required");
    says(f, "\"tool_calls\":[{\"call_id\":\"call-weather-task-1\",\"name\":\"get_weather\","
            "\"arguments\":{\"location\":\"Oakland\"}}]");
    dgm_part result = {
        .kind = DGM_PART_DATA,
        .data = dgm_json_parse_trusted(
            f->config, DGM_STR("{\"tool_results\":[{\"call_id\":\"call-weather-task-1\",\"name\":"
                               "\"get_weather\",\"output\":\"Foggy\"}]}"))};
    play_parts(f, "", &result, 1);
    check_str(f->final, "Your tool says: Foggy");
    fake_check_text(f);
    fake_close(f);

    f = play("client-tool");
    result.data = dgm_json_parse_trusted(
        f->config,
        DGM_STR(
            "{\"tool_results\":[{\"call_id\":\"call-weather-task-1\",\"output\":{\"f\":72}}]}"));
    play_parts(f, "", &result, 1);
    check_str(f->final, "Your tool says: {\"f\":72}");
    fake_close(f);

    f = play("client-tool");
    fake_run(f, "never mind");
    fake_check(f);
    check_str(f->final, "You ran no tool, but you say: never mind");
    fake_close(f);
}

static void it_asks_for_approval_and_heeds_the_answer(void **state)
{
    static const struct {
        const char *text, *data, *start;
    } answers[] = {
        {"Yes", NULL, "You said yes."},
        {"yes, do", NULL, "You said yes."},
        {"yesterday", NULL, "You did not say yes."},
        {"no", NULL, "You did not say yes."},
        {"", "{\"approved\":true}", "You said yes."},
        {"", "{\"approved\":false}", "You did not say yes."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct fake *f = play("interrupt");
        check_trace(f, "working input-required");
        check_str(f->final, dgm_demo_interrupt_question);
        dgm_part data = {.kind = DGM_PART_DATA};
        if (answers[i].data)
            data.data = dgm_json_parse_trusted(f->config, dgm_str_from(answers[i].data));
        play_parts(f, answers[i].text, &data, answers[i].data != NULL);
        assert_memory_equal(f->final.p, answers[i].start, strlen(answers[i].start));
        fake_check_text(f);
        fake_close(f);
    }
}

static void files_come_back(void **state)
{
    dgm_part files[] = {
        {.kind = DGM_PART_RAW,
         .content = DGM_STR("aGk="),
         .filename = DGM_STR("hi.txt"),
         .media_type = DGM_STR("text/plain")},
        {.kind = DGM_PART_URL, .content = DGM_STR("https://example.com/x")},
    };
    struct fake *f = fake_open("demo", "{'pace':0}", NULL);
    (void)state;
    play_parts(f, "files", files, 2);
    check_str(f->final, "Files that came with your message: 2.\n1. hi.txt (text/plain)\n2. a file "
                        "without a name (of unknown type)");
    const dgm_task *t = dgm_fold_task(f->fold);
    assert_int_equal(t->artifacts.n, 3);
    check_str(t->artifacts.at[0].parts.at[0].content, "aGk=");
    check_str(t->artifacts.at[1].parts.at[0].content, "https://example.com/x");
    fake_check_text(f);
    fake_close(f);
}

#define ROW(i)                                                                                     \
    dgm_test_with(rows[i].name, shows_its_work_and_sends_the_same_text_three_times, &rows[i])

DGM_TEST_MAIN(ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6),
              dgm_test(a_tool_of_the_caller_is_requested_and_its_result_sent),
              dgm_test(it_asks_for_approval_and_heeds_the_answer), dgm_test(files_come_back))
