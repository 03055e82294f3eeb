/* test_demo.c - every script of the demo agent: legal, complete, the same text however it is read. */
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

static bool ends_with(const dgm_buf *trace, const char *word)
{
    size_t n = strlen(word);
    return trace->n >= n && memcmp(trace->p + trace->n - n, word, n) == 0;
}

/* ---- scripts ----------------------------------------------------------------------------------------------- */

static const struct script_row {
    const char *name, *text, *starts, *ends;
    size_t n_indicators;
} text_rows[] = {
    {"stream tells the same three times [R002-13 R004-06 R004-11 R004-17]", "stream",
     "working chunk", "last completed", 0},
    {"status tells the same three times [R004-07 R004-17]", "status", "working+ working+",
     "last completed", 5},
    {"file tells the same three times [R004-17]", "File please",
     "working artifact artifact artifact chunk", "last completed", 0},
    {"data tells the same three times [R004-17]", "data", "working artifact chunk",
     "last completed", 0},
    {"long tells the same three times [R002-13 R004-17]", "long 200", "working chunk",
     "last completed", 0},
    {"unicode tells the same three times [R002-13 R004-17]", "unicode", "working chunk",
     "last completed", 0},
    {"slow tells the same three times [R004-17]", "slow 3", "working chunk", "last completed", 0},
    {"anything else tells the same three times [R004-17]", "tell me something", "working chunk",
     "last completed", 0},
    {"nothing at all tells the same three times [R004-17]", "", "working chunk", "last completed",
     0},
};

static void sends_the_same_text_three_times(void **state)
{
    const struct script_row *row = *state;
    struct fake *f = play(row->text);
    dgm_buf_add_char(&f->trace, '\0');
    assert_ptr_equal(strstr(f->trace.p, row->starts), f->trace.p);
    f->trace.n--;
    assert_true(ends_with(&f->trace, row->ends));
    assert_true(f->n_chunks > 2);
    assert_true(f->stream.n > 10);
    fake_check_text(f);
    size_t n_indicators = 0;
    for (size_t i = 0; i + 18 < f->indicators.n; i++)
        n_indicators += memcmp(f->indicators.p + i, "\"status-indicator\"", 18) == 0;
    assert_int_equal(n_indicators, row->n_indicators);
    assert_int_equal(dgm_utf8_check(dgm_buf_str(&f->stream)), f->stream.n);
    fake_close(f);
}

static void every_chunk_of_unicode_is_whole_characters(void **state)
{
    struct fake *f = play("unicode");
    (void)state;
    /* the log is JSON, line by line: a cut character would not have been written as one */
    assert_int_equal(dgm_utf8_check(dgm_buf_str(&f->events)), f->events.n);
    assert_true(f->n_chunks > 100);
    fake_close(f);
}

static void help_lists_the_scripts(void **state)
{
    static const char *const words[] = {
        "stream",    "status", "file",           "data",        "ask",     "auth",
        "fail",      "break",  "reject",         "long",        "unicode", "slow",
        "message",   "tools",  "parallel-tools", "client-tool", "state",   "reasoning",
        "interrupt", "usage",  "subagent",       "files"};
    struct fake *f = play(" HELP ");
    (void)state;
    check_trace(f, "message");
    dgm_buf_add_char(&f->final, '\0');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char item[40];
        snprintf(item, sizeof item, "- `%s`: ", words[i]);
        assert_non_null(strstr(f->final.p, item));
    }
    fake_close(f);
}

static void indicators_are_data(void **state)
{
    struct fake *f = play("status");
    (void)state;
    dgm_buf_add_char(&f->indicators, '\0');
    assert_non_null(strstr(f->indicators.p,
                           "{\"type\":\"status-indicator\",\"text\":\"Reading your "
                           "message\",\"displayAs\":\"loading\"}|{\"type\""));
    fake_close(f);
}

static void status_takes_five_seconds(void **state)
{
    double wait = 0;
    dgm_str rest;
    (void)state;
    dgm_run run = {.input = &(dgm_run_input){0}};
    const struct demo_step *step = dgm_demo_script_for(&run, DGM_STR("status"), &rest)->steps;
    for (; step->op != DEMO_END; step++) {
        size_t pieces = 1;
        if (step->op == DEMO_TEXT) {
            dgm_str text = dgm_str_from(step->text);
            for (pieces = 0; text.n > 0; pieces++) {
                size_t n = dgm_demo_chunk(text, step->cut);
                text = (dgm_str){text.p + n, text.n - n};
            }
        }
        wait += step->wait * (double)pieces;
    }
    assert_in_range((uint64_t)wait, 5000, 8000);
}

static void it_asks_and_goes_on_with_the_answer(void **state)
{
    struct fake *f = play("ask");
    (void)state;
    check_trace(f, "working input-required");
    check_str(f->final, "What is your name?");
    fake_run(f, "   ");
    fake_check(f);
    check_trace(f, "working input-required");
    fake_run(f, "Ada");
    fake_check(f);
    assert_true(ends_with(&f->trace, "last completed"));
    check_str(f->final, "Hello Ada, nice to meet you. That was all I wanted to know.");
    fake_check_text(f);
    /* the whole conversation, in order */
    const dgm_task *t = dgm_fold_task(f->fold);
    assert_int_equal(t->history.n, 5);
    check_str(t->history.at[0].parts.at[0].content, "ask");
    check_str(t->history.at[1].parts.at[0].content, "What is your name?");
    check_str(t->history.at[4].parts.at[0].content, "Ada");
    fake_close(f);
}

static void it_gets_messages_while_it_works(void **state)
{
    struct fake *f = fake_open("demo", "{'pace':0}", NULL);
    (void)state;
    fake_prepare(f, "msg-1", "listen");
    dgm_loop_post(f->run.loop, fake_do_start, f);
    assert_true(fake_offer(f, "msg-2", "one"));
    assert_true(fake_offer(f, "msg-3", " done "));
    assert_false(fake_offer(f, "msg-4", "too late"));
    uv_sem_wait(&f->ended);
    fake_check(f);
    assert_true(ends_with(&f->trace, "last completed"));
    const dgm_task *t = dgm_fold_task(f->fold);
    assert_int_equal(t->artifacts.n, 3);
    check_str(t->artifacts.at[0].parts.at[0].content, "one");
    check_str(t->artifacts.at[1].parts.at[0].content, "done");
    check_str(f->final, "I heard 2 messages.");
    fake_close(f);
}

static void it_asks_for_credentials_and_goes_on(void **state)
{
    struct fake *f = play("auth");
    (void)state;
    check_trace(f, "working auth-required");
    fake_run(f, "done");
    fake_check(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    fake_check_text(f);
    fake_close(f);
}

static void failures_say_why(void **state)
{
    struct fake *f = play("fail"), *g = play("break");
    (void)state;
    check_trace(f, "working failed");
    check_str(dgm_json_str(dgm_json_get(dgm_fold_task(f->fold)->metadata, DGM_STR("error"))),
              "the demo was asked to fail");
    fake_close(f);
    assert_true(ends_with(&g->trace, "last failed"));
    assert_true(g->n_chunks > 2);
    assert_non_null(dgm_json_get(dgm_fold_task(g->fold)->metadata, DGM_STR("error")));
    fake_close(g);
}

static void a_refusal_is_a_rejected_task(void **state)
{
    struct fake *f = play("reject");
    (void)state;
    check_trace(f, "rejected");
    assert_true(f->final.n > 0);
    fake_close(f);
}

static void files_and_data_are_artifacts(void **state)
{
    struct fake *f = play("file"), *g = play("data");
    const dgm_task *t = dgm_fold_task(f->fold);
    (void)state;
    assert_int_equal(t->artifacts.n, 4);
    assert_int_equal(t->artifacts.at[0].parts.at[0].kind, DGM_PART_RAW);
    check_str(t->artifacts.at[1].parts.at[0].media_type, "image/png");
    assert_int_equal(t->artifacts.at[2].parts.at[0].kind, DGM_PART_URL);
    fake_close(f);
    t = dgm_fold_task(g->fold);
    assert_int_equal(t->artifacts.n, 2);
    check_str(dgm_json_str(dgm_json_get(t->artifacts.at[0].parts.at[0].data, DGM_STR("city"))),
              "Oakland");
    fake_close(g);
}

/* ---- cancel -------------------------------------------------------------------------------------------------- */

/* Behind every event of a script: what was begun is closed, and the task canceled. */
static void it_is_canceled_at_any_point(void **state)
{
    static const char *const scripts[] = {"status", "stream", "file", "break"};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        for (size_t at = 1; at < 12; at++) {
            /* slow enough that a cancel comes before the next step */
            struct fake *f = fake_open("demo", "{'pace':0.03}", NULL);
            f->cancel_at = at;
            fake_run(f, scripts[i]);
            fake_check(f);
            assert_int_equal(f->state, DGM_STATE_CANCELED);
            assert_int_equal(f->n_first, f->n_last);
            assert_string_equal(f->error, "");
            fake_close(f);
            if (i == 0 && at == 6)
                break; /* its steps take their time */
            if (i > 1 && at == 4)
                break;
        }
    }
}

static void it_waits_while_the_log_is_full(void **state)
{
    struct fake *f = fake_open("demo", "{'pace':0}", NULL);
    (void)state;
    f->full_for = 10;
    fake_run(f, "stream");
    fake_check(f);
    fake_check_text(f);
    assert_true(f->n_asked_full > 10);
    fake_close(f);
}

/* ---- with options ---------------------------------------------------------------------------------------------- */

static void every_script_works_as_a_message(void **state)
{
    static const char *const scripts[] = {"help", "stream", "status",  "file",   "data",    "ask",
                                          "auth", "long 5", "unicode", "slow 2", "say what"};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct fake *task = play(scripts[i]);
        struct fake *f =
            fake_open("demo", "{'pace':0}", &(dgm_agent_options){.reply = DGM_REPLY_MESSAGE});
        fake_run(f, scripts[i]);
        fake_check(f);
        check_trace(f, "message");
        check_same(f->final, task->final);
        fake_close(f);
        fake_close(task);
    }
}

static void what_a_message_cannot_say_is_a_task(void **state)
{
    static const struct {
        const char *script, *trace;
    } rows[] = {{"fail", "failed"}, {"break", "failed"}, {"reject", "rejected"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f =
            fake_open("demo", "{'pace':0}", &(dgm_agent_options){.reply = DGM_REPLY_MESSAGE});
        fake_run(f, rows[i].script);
        fake_check(f);
        check_trace(f, rows[i].trace);
        fake_close(f);
    }
}

#define ROW(i) dgm_test_with(text_rows[i].name, sends_the_same_text_three_times, &text_rows[i])

DGM_TEST_MAIN(ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8),
              dgm_test(every_chunk_of_unicode_is_whole_characters),
              dgm_test(help_lists_the_scripts), dgm_test_holds(indicators_are_data, "R004-07"),
              dgm_test(status_takes_five_seconds),
              dgm_test_holds(it_asks_and_goes_on_with_the_answer, "R004-02"),
              dgm_test(it_gets_messages_while_it_works),
              dgm_test(it_asks_for_credentials_and_goes_on),
              dgm_test_holds(failures_say_why, "R002-10 R002-13"),
              dgm_test(a_refusal_is_a_rejected_task), dgm_test(files_and_data_are_artifacts),
              dgm_test_holds(it_is_canceled_at_any_point, "R002-13"),
              dgm_test(it_waits_while_the_log_is_full),
              dgm_test_holds(every_script_works_as_a_message, "R004-19"),
              dgm_test(what_a_message_cannot_say_is_a_task))
