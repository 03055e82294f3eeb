/* test_agents.c - hello, bench and tck; the list of types and their settings. */
#include "backend/test_fake.h"

/* ---- all of them ----------------------------------------------------------------------------------------- */

static void every_type_has_a_name_a_sentence_and_a_card(void **state)
{
    (void)state;
    for (size_t i = 0; dgm_backends[i]; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        const dgm_backend *b = dgm_backends[i];
        yyjson_val *card = dgm_json_parse_trusted(a, dgm_str_from(b->card));
        assert_ptr_equal(dgm_backend_by_type(dgm_str_from(b->type)), b);
        assert_true(strlen(b->about) > 10);
        assert_non_null(dgm_json_get(card, DGM_STR("name")));
        assert_non_null(dgm_json_get(card, DGM_STR("description")));
        yyjson_val *skill = yyjson_arr_get_first(dgm_json_get(card, DGM_STR("skills")));
        assert_non_null(dgm_json_get(skill, DGM_STR("id")));
        assert_non_null(dgm_json_get(skill, DGM_STR("tags")));
    }
    assert_null(dgm_backend_by_type(DGM_STR("nobody")));
}

static void an_unknown_setting_is_named(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    void *agent;
    (void)state;
    yyjson_val *config = dgm_json_parse_trusted(a, DGM_STR("{\"pase\":1}"));
    for (size_t i = 0; dgm_backends[i]; i++)
        check_fails(dgm_backends[i]->open(config, NULL, &agent, &err), DGM_BAD_PARAMS, err,
                    "/pase");
}

static void settings_are_checked(void **state)
{
    static const struct {
        const char *config, *at;
    } rows[] = {{"{\"pace\":-1}", "/pace"},
                {"{\"pace\":\"x\"}", "/pace"},
                {"{\"pace\":[]}", "/pace"},
                {"{\"pace\":1e9}", "/pace"},
                {"[]", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        void *agent;
        yyjson_val *config = dgm_json_parse_trusted(a, dgm_str_from(rows[i].config));
        check_fails(dgm_backend_demo.open(config, NULL, &agent, &err), DGM_BAD_PARAMS, err,
                    rows[i].at);
    }
}

/* ---- hello ----------------------------------------------------------------------------------------------- */

static void hello_answers_with_one_message(void **state)
{
    static const struct {
        const char *said, *answer;
    } rows[] = {
        {"Hello!", "Hello! How can I assist you today? 😊"},
        {"", "Hello! How can I assist you today? 😊"},
        {"My name is Ada.", "Hello, Ada!"},
        {"hi, I'm Ada Lovelace!", "Hello, Ada Lovelace!"},
        {"  Hey! I am 李雷 ", "Hello, 李雷!"},
        {"What is the weather like?", "Hello! How can I assist you today? 😊"},
        {"my name is", "Hello! How can I assist you today? 😊"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = fake_open("hello", NULL, NULL);
        fake_run(f, rows[i].said);
        fake_check(f);
        check_trace(f, "message");
        check_str(f->final, rows[i].answer);
        assert_string_equal(f->error, "");
        fake_close(f);
    }
}

/* ---- bench ----------------------------------------------------------------------------------------------- */

static void bench_echoes(void **state)
{
    struct fake *f = fake_open("bench", NULL, NULL);
    (void)state;
    fake_run(f, "echo one two  three");
    fake_check(f);
    check_trace(f, "message");
    check_str(f->final, "echo one two  three");
    fake_run(f, "what?");
    check_trace(f, "message");
    fake_close(f);
}

static void bench_streams_n_chunks(void **state)
{
    static const struct {
        const char *text, *trace, *answer;
    } rows[] = {
        {"chunks 1", "working last completed", "1 "},
        {"chunks 3 and whatever", "working chunk chunk last completed", "1 2 3 "},
        {"chunks 3 yield x", "working chunk chunk last completed", "1 2 3 "},
        {"chunks 0", "working completed", ""},
        {"chunks 0 yield", "working completed", ""},
        {"chunks 12",
         "working chunk chunk chunk chunk chunk chunk chunk chunk chunk chunk chunk last completed",
         "1 2 3 4 5 6 7 8 9 10 11 12 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = fake_open("bench", NULL, NULL);
        fake_run(f, rows[i].text);
        fake_check(f);
        check_trace(f, rows[i].trace);
        check_str(f->stream, rows[i].answer);
        fake_check_text(f);
        fake_close(f);
    }
}

static void bench_waits_while_the_log_is_full(void **state)
{
    struct fake *f = fake_open("bench", NULL, NULL);
    (void)state;
    f->full_for = 5;
    fake_run(f, "chunks 2");
    fake_check(f);
    check_trace(f, "working chunk last completed");
    assert_true(f->n_asked_full > 5);
    fake_close(f);
}

static void bench_holds(void **state)
{
    struct fake *f = fake_open("bench", NULL, NULL);
    (void)state;
    fake_run(f, "hold 0.1 and say nothing");
    fake_check(f);
    check_trace(f, "working completed");
    assert_in_range(f->ms, 90, 30000);
    fake_close(f);
}

static void bench_is_canceled(void **state)
{
    static const char *const texts[] = {"hold 100", "chunks 1000000 yield"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fake *f = fake_open("bench", NULL, NULL);
        f->cancel_at = i == 0 ? 1 : 4;
        fake_run(f, texts[i]);
        fake_check(f);
        assert_int_equal(f->state, DGM_STATE_CANCELED);
        assert_string_equal(f->error, "");
        fake_close(f);
    }
}

/* ---- tck ------------------------------------------------------------------------------------------------- */

static const struct tck_row {
    const char *name, *id, *trace, *text, *has;
} tck_rows[] = {
    {"tck completes", "tck-complete-task-1a2b3c4d", "working completed", "Hello from TCK", ""},
    {"tck asks back", "tck-input-required-1", "input-required", "", ""},
    {"tck makes a text artifact", "tck-artifact-text-1-jsonrpc", "working last completed",
     "Generated text content", ""},
    {"tck makes a file", "tck-artifact-file-1a2b3c4d", "working artifact completed", "",
     "\"raw\":\"dGNr\",\"filename\":\"output.txt\",\"mediaType\":\"text/plain\""},
    {"tck links a file: the longest prefix wins", "tck-artifact-file-url-1",
     "working artifact completed", "", "\"url\":\"https://example.com/output.txt\""},
    {"tck makes data", "tck-artifact-data-1", "working artifact completed", "",
     "\"data\":{\"key\":\"value\",\"count\":42}"},
    {"tck answers with a message", "tck-message-response-1", "message", "Direct message response",
     ""},
    {"tck rejects", "tck-reject-task-1", "rejected", "rejected", ""},
    {"tck streams", "tck-stream-001-1", "working last completed", "Stream hello from TCK", ""},
    {"tck streams in order", "tck-stream-ordering-001-1", "working last completed",
     "Ordered output", ""},
    {"tck streams chunks", "tck-stream-artifact-chunked-1", "working chunk last completed",
     "chunk-1 chunk-2", ""},
    {"tck streams a file", "tck-stream-artifact-file-1", "working artifact completed", "", "raw"},
    {"tck completes what it does not know", "tck-whatever", "working completed", "Hello from TCK",
     ""},
    {"tck asks back when the kit is older", "any-id", "working input-required", "", ""},
    {"tck stays working to be resubscribed", "test-resubscribe-message-id-1", "working completed",
     "Done", ""},
};

static void tck_follows_the_message_id(void **state)
{
    const struct tck_row *row = *state;
    struct fake *f = fake_open("tck", "{'stay_seconds':0.05,'ask_seconds':0.01}", NULL);
    fake_run_with(f, row->id, "TCK history message 1");
    fake_check(f);
    check_trace(f, row->trace);
    check_str(f->final, row->text);
    dgm_buf_add_char(&f->events, '\0');
    assert_non_null(strstr(f->events.p, row->has));
    fake_close(f);
}

static void tck_goes_on_with_the_same_task(void **state)
{
    struct fake *f = fake_open("tck", "{'ask_seconds':0.01}", NULL);
    (void)state;
    fake_run_with(f, "tck-input-required-1", "1");
    check_trace(f, "input-required");
    fake_run_with(f, "tck-input-required-2", "2");
    check_trace(f, "input-required");
    fake_run_with(f, "tck-complete-task-3", "3");
    check_trace(f, "working completed");
    fake_check(f);
    fake_close(f);
}

static void tck_can_be_canceled_while_it_stays(void **state)
{
    struct fake *f = fake_open("tck", NULL, NULL);
    (void)state;
    f->cancel_at = 1;
    fake_run_with(f, "test-resubscribe-message-id", "x");
    fake_check(f);
    check_trace(f, "working canceled");
    fake_close(f);
}

static void stop_soon(void *arg)
{
    uv_sem_post(arg);
}

/* A run must not delay a loop that ends, and must leave nothing behind. */
static void runs_end_with_their_loop(void **state)
{
    static const struct {
        const char *type, *config, *text, *id;
    } rows[] = {
        {"demo", NULL, "slow", "m"},
        {"demo", NULL, "status", "m"},
        {"bench", NULL, "hold 100", "m"},
        {"bench", NULL, "chunks 1000000 yield", "m"},
        {"tck", NULL, "x", "test-resubscribe-message-id"},
        {"exec", "{'command':'sleep 100'}", "x", "m"},
        {"exec", "{'command':'echo x; sleep 100','output':'text'}", "x", "m"},
        /* one that is busy writing: so much at most as one text may have parts */
        {"exec", "{'command':'yes | head -n 10000; sleep 100','output':'text'}", "x", "m"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = fake_open(rows[i].type, rows[i].config, NULL);
        uv_sem_t begun;
        uv_sem_init(&begun, 0);
        fake_prepare(f, rows[i].id, rows[i].text);
        dgm_loop_post(f->run.loop, fake_do_start, f);
        dgm_loop_post(f->run.loop, stop_soon, &begun);
        uv_sem_wait(&begun);
        dgm_loops_stop(f->loops);
        uv_sem_wait(&f->ended);
        fake_check(f);
        /* how it ended shows that it did not run its course; a busy machine may take its time */
        if (strcmp(rows[i].type, "exec") == 0)
            assert_int_equal(f->state, DGM_STATE_FAILED);
        else
            assert_string_equal(f->error, DGM_SHUTTING_DOWN);
        uv_sem_destroy(&begun);
        fake_close(f);
    }
}

#define TCK(i) dgm_test_with(tck_rows[i].name, tck_follows_the_message_id, &tck_rows[i])

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(every_type_has_a_name_a_sentence_and_a_card),
        dgm_test(an_unknown_setting_is_named),
        dgm_test(settings_are_checked),
        dgm_test_holds(hello_answers_with_one_message, "R004-22"),
        dgm_test(bench_echoes),
        dgm_test_holds(bench_streams_n_chunks, "R002-13 R004-11 R004-17"),
        dgm_test(bench_waits_while_the_log_is_full),
        dgm_test(bench_holds),
        dgm_test_holds(bench_is_canceled, "R002-13"),
        TCK(0),
        TCK(1),
        TCK(2),
        TCK(3),
        TCK(4),
        TCK(5),
        TCK(6),
        TCK(7),
        TCK(8),
        TCK(9),
        TCK(10),
        TCK(11),
        TCK(12),
        TCK(13),
        TCK(14),
        dgm_test(tck_goes_on_with_the_same_task),
        dgm_test(tck_can_be_canceled_while_it_stays),
        dgm_test(runs_end_with_their_loop),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
