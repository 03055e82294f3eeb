/* test_worker_exec.c - exec agents with mode: worker: one run at a time, well-behaved workers and all the others. */
#include "backend/exec/exec_int.h"
#include "backend/test_worker.h"

struct worker_test {
    struct fake *f;
    struct worker_lines lines;
};

/* how: what the script does at its start; settings: more of the configuration, with ' for ". */
static struct worker_test *worker_open(const char *how, const char *settings)
{
    struct worker_test *t = dgm_xcalloc(1, sizeof *t);
    char config[1000];
    pthread_mutex_init(&t->lines.lock, NULL);
    dgm_buf_init(&t->lines.text, SIZE_MAX);
    dgm_agent_options options = {
        .id = DGM_STR("tester"), .on_log = worker_on_log, .log_user = &t->lines};
    snprintf(config, sizeof config, "{'command':['python3','%s','%s'],'mode':'worker'%s%s}",
             worker_path, how, *settings ? "," : "", settings);
    t->f = fake_open("exec", config, &options);
    t->f->can_store = true;
    return t;
}

static void worker_close(struct worker_test *t)
{
    fake_close(t->f);
    pthread_mutex_destroy(&t->lines.lock);
    dgm_buf_done(&t->lines.text);
    free(t);
}

static struct worker_test *worker_run_with(const char *how, const char *settings, const char *text)
{
    struct worker_test *t = worker_open(how, settings);
    fake_run(t->f, text);
    return t;
}

static struct worker_test *worker_run(const char *text)
{
    return worker_run_with("", "", text);
}

static void check_failed_(struct worker_test *t, const char *want, const char *file, int line)
{
    const dgm_task *task = dgm_fold_task(t->f->fold);
    dgm_str got = task ? dgm_json_str_member(task->metadata, "error") : (dgm_str){0};
    check_bytes_(got.p, got.n, want, strlen(want), file, line);
    assert_int_equal(t->f->state, DGM_STATE_FAILED);
    assert_string_equal(t->f->fault, "");
}
#define check_failed(t, want) check_failed_((t), (want), __FILE__, __LINE__)

/* ---- well-behaved ---------------------------------------------------------------------------------------------------------- */

static void its_events_are_those_of_a_program(void **state)
{
    struct worker_test *t = worker_run("say Hello");
    (void)state;
    fake_check(t->f);
    check_trace(t->f, "last completed");
    check_str(t->f->final, "Hello");
    worker_close(t);
}

static void one_process_serves_all_messages(void **state)
{
    struct worker_test *t = worker_run("say one");
    (void)state;
    for (int i = 0; i < 5; i++) {
        fake_new_task(t->f);
        fake_run(t->f, "say again");
        check_str(t->f->final, "again");
    }
    assert_true(worker_logged(&t->lines, "is ready"));
    assert_false(worker_logged(&t->lines, "process ended"));
    worker_close(t);
}

static void run_has_the_callers_message_and_conversation(void **state)
{
    struct worker_test *t = worker_open("", "");
    static const char *const members[][2] = {
        {"task", "\"task-1\""},
        {"context", "\"ctx-1\""},
        {"agent", "\"tester\""},
        {"isResumed", "false"},
        {"attempt", "1"},
        {"history", "[]"},
        {"accepted", "[]"},
        {"currentTask", "null"},
        {"journal", "null"},
        {"tools", "[]"},
        {"acceptedOutputModes", "[]"},
        {"principal", "null"},
        {"toolResults", "null"},
        {"principal", "null"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char text[60];
        fake_new_task(t->f);
        snprintf(text, sizeof text, "show %s", members[i][0]);
        fake_run(t->f, text);
        check_str(t->f->final, members[i][1]);
    }
    fake_new_task(t->f);
    fake_run(t->f, "show metadata");
    assert_true(fake_has(&t->f->final, "{\"traceparent\": \"00-"));
    worker_close(t);
}

static void callers_tools_are_in_tools(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    fake_prepare(t->f, "m-1", "show tools");
    t->f->input.metadata = fake_json(
        t->f->arena, "{'dragoman:tools':[{'name':'look','description':'d','parameters':{}}]}");
    fake_run_prepared(t->f);
    check_str(t->f->final, "[{\"name\": \"look\", \"description\": \"d\", \"parameters\": {}}]");
    worker_close(t);
}

static void a_question_is_answered_with_the_journal(void **state)
{
    struct worker_test *t = worker_run("journal first;ask Which?");
    (void)state;
    assert_int_equal(t->f->state, DGM_STATE_INPUT_REQUIRED);
    check_str(t->f->final, "Which?");
    fake_run_with(t->f, "m-2", "show journal");
    check_str(t->f->final, "\"first\"");
    assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
    worker_close(t);
}

static void interrupted_without_a_question_waits_for_input(void **state)
{
    struct worker_test *t = worker_run("status interrupted");
    (void)state;
    assert_int_equal(t->f->state, DGM_STATE_INPUT_REQUIRED);
    worker_close(t);
}

static void journal_is_stored_after_the_events_before_it(void **state)
{
    struct worker_test *t = worker_run("say one;journal text;say two");
    (void)state;
    check_trace(t->f, "last last last completed");
    assert_int_equal(t->f->n_events_before[DGM_RUN_TASK], 1);
    assert_true(fake_has(&t->f->stored[DGM_RUN_TASK], "\ntext"));
    assert_true(fake_has(&t->f->events, "{}"));
    worker_close(t);
}

static void unknown_requests_are_refused(void **state)
{
    struct worker_test *t = worker_run("call nothing/known");
    (void)state;
    assert_true(fake_has(&t->f->events, "-32601"));
    assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
    worker_close(t);
}

static void log_and_prints_are_for_the_operator(void **state)
{
    struct worker_test *t =
        worker_run_with("print", "", "log from the run;print to stdout;errors to stderr;say x");
    (void)state;
    assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
    assert_true(fake_has(&t->f->notes, "info: from the run"));
    worker_wait_log(&t->lines, "hello from the worker");
    worker_wait_log(&t->lines, "to stdout");
    worker_wait_log(&t->lines, "to stderr");
    worker_close(t);
}

static void a_message_while_it_works_reaches_the_run(void **state)
{
    struct worker_test *t = worker_open("", "");
    bool is_accepted = false;
    (void)state;
    fake_prepare(t->f, "m-1", "input;input b");
    dgm_loop_post(t->f->run.loop, fake_do_start, t->f);
    for (int i = 0; i < 1000 && !is_accepted; i++) {
        is_accepted = fake_offer(t->f, "m-2", "steered");
        usleep(10000); /* the process is not ready yet */
    }
    assert_true(is_accepted);
    assert_true(fake_offer(t->f, "m-3", "again"));
    uv_sem_wait(&t->f->ended);
    assert_true(fake_has(&t->f->events, "steered"));
    assert_true(fake_has(&t->f->events, "again"));
    worker_close(t);
}

static void a_message_waits_if_the_worker_does_not_accept_input(void **state)
{
    struct worker_test *t = worker_open("noinput", "");
    (void)state;
    fake_prepare(t->f, "m-1", "say x;sleep 0.3");
    dgm_loop_post(t->f->run.loop, fake_do_start, t->f);
    worker_wait_log(&t->lines, "is ready");
    assert_false(fake_offer(t->f, "m-2", "steered"));
    uv_sem_wait(&t->f->ended);
    worker_close(t);
}

static void cancel_reaches_the_run(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    t->f->cancel_at = 1;
    fake_run(t->f, "part a;wait");
    check_trace(t->f, "chunk last canceled");
    worker_close(t);
}

static void cancel_before_the_process_is_ready(void **state)
{
    struct worker_test *t = worker_open("slow", "");
    (void)state;
    t->f->cancel_ms = 50;
    fake_run(t->f, "say x");
    check_trace(t->f, "canceled");
    worker_close(t);
}

static void a_run_that_ignores_cancel_is_left_behind(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    t->f->cancel_at = 1;
    fake_run(t->f, "part a;deaf");
    check_trace(t->f, "chunk last canceled");
    assert_in_range(t->f->ms, 0, 25000); /* the run goes on for 30 s */
    t->f->cancel_at = 0;
    fake_new_task(t->f);
    fake_run(t->f, "say other runs go on");
    check_str(t->f->final, "other runs go on");
    worker_close(t);
}

static void events_wait_while_the_store_is_full(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    t->f->full_for = 20;
    fake_run(t->f, "many 50 10;say end");
    assert_int_equal(t->f->n_chunks, 51);
    assert_int_equal(t->f->full_for, 0);
    assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
    worker_close(t);
}

static void a_large_stream_waits_without_loss(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    t->f->full_for =
        100; /* half a second; more than the bytes after which the process is not read */
    fake_run(t->f, "many 90 100000;say end");
    assert_int_equal(t->f->n_chunks, 91);
    assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
    worker_close(t);
}

/* ---- faults of the agent's code ------------------------------------------------------------------------------------------------ */

static void an_error_of_the_code_is_not_for_callers(void **state)
{
    struct worker_test *t = worker_run("part a;error -32000");
    (void)state;
    check_failed(t, "the agent failed: its code raised an error");
    assert_true(fake_has(&t->f->notes, "secret -32000"));
    assert_true(fake_has(&t->f->notes, "Traceback: line 1"));
    assert_false(fake_has(&t->f->events, "secret"));
    check_trace(t->f, "chunk last failed");
    worker_close(t);
}

static void a_rejection_is_for_callers(void **state)
{
    struct worker_test *t = worker_run("error -32005");
    (void)state;
    assert_int_equal(t->f->state, DGM_STATE_REJECTED);
    check_str(t->f->final, "secret -32005");
    worker_close(t);
}

static void an_event_that_is_not_one_fails_the_run_only(void **state)
{
    struct worker_test *t = worker_run("event {\"x\":1};wait");
    (void)state;
    check_failed(t, "event 1 of the agent is not an A2A event");
    fake_new_task(t->f);
    fake_run(t->f, "type strange;say fine");
    check_str(t->f->final, "fine");
    assert_true(fake_has(&t->f->notes, "unknown type \"strange\""));
    assert_false(worker_logged(&t->lines, "process ended"));
    worker_close(t);
}

static void an_unknown_status_fails_the_run(void **state)
{
    struct worker_test *t = worker_run("status strange");
    (void)state;
    check_failed(t, "the agent's worker process ended the run with an unknown status");
    worker_close(t);
}

static void timeout_fails_the_run_only(void **state)
{
    struct worker_test *t = worker_open("", "'timeout':4");
    (void)state;
    fake_run(t->f, "say warm");
    fake_new_task(t->f);
    fake_run(t->f, "part a;wait");
    check_failed(t, "the agent took longer than 4 seconds");
    fake_new_task(t->f);
    fake_run(t->f, "say fine");
    check_str(t->f->final, "fine");
    worker_close(t);
}

/* ---- faults of the process ------------------------------------------------------------------------------------------------------- */

/* Each of them ends the process of the one before. */
static void a_lost_run_is_started_again_and_explained(void **state)
{
    static const struct {
        const char *fault, *want;
    } rows[] = {
        {"1:die", "process ended: it ended with exit status 3"},
        {"1:kill", "process ended: it was killed by signal 9 (Killed)"},
        {"1:garbage", "a line that is not JSON"},
        {"1:list", "a line that is not a JSON-RPC message, but an array"},
        {"1:long", "longer than the limit worker_line_bytes of 8388608"},
        {"1:close", "it has closed its channel"},
    };
    struct worker_test *t = worker_open("", "");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        snprintf(text, sizeof text, "part a;%s;1:wait;again:show attempt", rows[i].fault);
        fake_new_task(t->f);
        fake_run(t->f, text);
        assert_int_equal(t->f->state, DGM_STATE_COMPLETED);
        check_str(t->f->final, "2");
        assert_true(fake_has(&t->f->notes, "started again (attempt 2)"));
        worker_wait_log(&t->lines, rows[i].want);
    }
    worker_close(t);
}

static void messages_about_unknown_runs_are_ignored_and_logged(void **state)
{
    struct worker_test *t = worker_run("unknown;say fine");
    (void)state;
    check_str(t->f->final, "fine");
    assert_true(worker_logged(&t->lines, "event of an unknown run \"r999999\" is ignored"));
    assert_true(worker_logged(&t->lines, "a response to an unknown request is ignored"));
    assert_false(worker_logged(&t->lines, "process ended"));
    worker_close(t);
}

static void a_message_that_ends_the_process_every_time_fails(void **state)
{
    struct worker_test *t = worker_run("errors these are my last words;sleep 0.2;die");
    (void)state;
    check_failed(t, "the agent's worker process was lost: it ended with exit status 3");
    assert_true(fake_has(&t->f->notes, "(attempt 3)"));
    assert_false(fake_has(&t->f->notes, "(attempt 4)"));
    assert_true(fake_has(&t->f->notes, "these are my last words"));
    worker_close(t);
}

static void with_one_attempt_a_lost_run_fails(void **state)
{
    struct worker_test *t = worker_run_with("", "'max_attempts':1", "die");
    (void)state;
    check_failed(t, "the agent's worker process was lost: it ended with exit status 3");
    assert_false(dgm_backend_resumes(t->f->backend, t->f->agent));
    worker_close(t);
}

/* A resumed run of a task whose events are not known, but whose note is. */
static void worker_resume(struct worker_test *t, const char *message_id, const char *text)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str note = dgm_arena_dup(a, dgm_buf_str(&t->f->stored[DGM_RUN_TASK]));
    fake_new_task(t->f);
    dgm_buf_add_str(&t->f->stored[DGM_RUN_TASK], note);
    t->f->is_resumed = true;
    fake_run_with(t->f, message_id, text);
}

static void attempts_count_across_restarts_of_the_server(void **state)
{
    struct worker_test *t = worker_open("", "");
    (void)state;
    assert_true(dgm_backend_resumes(t->f->backend, t->f->agent));
    worker_resume(t, "m-1", "journal text;again:show attempt");
    assert_true(fake_has(&t->f->events, "\"2\""));
    worker_resume(t, "m-1", "show journal;again:show attempt");
    assert_true(fake_has(&t->f->events, "text"));
    check_str(t->f->final, "3");
    worker_resume(t, "m-1", "say x");
    check_failed(t, "the agent was started 3 times for this message and did not finish");
    worker_resume(t, "m-2", "show attempt"); /* another message */
    check_str(t->f->final, "2");
    worker_close(t);
}

static void accepted_messages_are_in_the_next_attempt(void **state)
{
    struct worker_test *t = worker_open("", "");
    bool is_accepted = false;
    (void)state;
    fake_prepare(t->f, "m-1", "1:input;1:die;2:show accepted");
    dgm_loop_post(t->f->run.loop, fake_do_start, t->f);
    for (int i = 0; i < 1000 && !is_accepted; i++) {
        is_accepted = fake_offer(t->f, "m-2", "steered");
        usleep(10000);
    }
    uv_sem_wait(&t->f->ended);
    assert_true(fake_has(&t->f->final, "\"messageId\": \"m-2\""));
    worker_close(t);
}

static void a_wrong_seq_fails_the_run_only(void **state)
{
    struct worker_test *t = worker_run("say a;seq b;wait");
    (void)state;
    check_failed(t, "the agent's worker process sent an invalid event");
    assert_true(worker_logged(&t->lines, "expected seq 1, got 4"));
    fake_new_task(t->f);
    fake_run(t->f, "say fine");
    check_str(t->f->final, "fine");
    worker_close(t);
}

static void a_drained_run_is_started_again(void **state)
{
    struct worker_test *t = worker_run("new:status drained;show attempt");
    (void)state;
    check_str(t->f->final, "1");
    fake_new_task(t->f);
    fake_run(t->f, "status drained"); /* every time */
    check_failed(t, "the agent's worker process ended the run with an unknown status");
    worker_close(t);
}

static void a_process_that_hangs_is_killed(void **state)
{
    struct worker_test *t = worker_open("", "'hang_timeout':3");
    (void)state;
    fake_run(t->f, "1:block 30;2:say fine");
    check_str(t->f->final, "fine");
    worker_wait_log(&t->lines, "it has written nothing for 3 seconds");
    worker_close(t);
}

/* ---- a process that does not start ------------------------------------------------------------------------------------------------- */

static void code_that_cannot_be_loaded_is_reported_at_once(void **state)
{
    struct worker_test *t = worker_run_with("broken", "", "say x");
    (void)state;
    check_failed(t, "the agent's code could not be loaded");
    assert_true(worker_logged(&t->lines,
                              "! worker: the agent's code could not be loaded: no module named x"));
    assert_true(worker_logged(&t->lines, "! Traceback one\n! Traceback two\n"));
    assert_false(fake_has(&t->f->events, "no module"));
    fake_new_task(t->f);
    fake_run(t->f, "say x"); /* fails at once */
    check_failed(t, "the agent's code could not be loaded");
    worker_close(t);
}

static void a_process_that_exits_at_once_makes_the_agent_unavailable(void **state)
{
    struct worker_test *t = worker_run_with("exit", "", "say x");
    (void)state;
    check_failed(t, "the agent is unavailable: its worker process does not start");
    assert_true(worker_logged(&t->lines, "it ended with exit status 7"));
    assert_true(worker_logged(&t->lines, "the agent is unavailable"));
    fake_new_task(t->f);
    fake_run(t->f, "say x");
    assert_in_range(t->f->ms, 0, 60000); /* below start_timeout */
    check_failed(t, "the agent is unavailable: its worker process does not start");
    worker_close(t);
}

static void a_process_that_does_not_answer_the_handshake_is_killed(void **state)
{
    struct worker_test *t = worker_run_with("silent", "'start_timeout':0.3", "say x");
    (void)state;
    check_failed(t, "the agent did not become ready in time");
    worker_wait_log(&t->lines, "it has not answered the handshake within 0.3 seconds");
    worker_close(t);
}

static void another_version_of_the_protocol_is_refused(void **state)
{
    struct worker_test *t = worker_run_with("version", "", "say x");
    (void)state;
    assert_int_equal(t->f->state, DGM_STATE_FAILED);
    assert_true(worker_logged(&t->lines, "protocolVersion 2, expected 1"));
    worker_close(t);
}

static void a_worker_of_graphs_is_refused(void **state)
{
    struct worker_test *t = worker_run_with("graph", "", "say x");
    (void)state;
    check_failed(t, "the agent's worker serves graphs: its type must be langgraph");
    worker_close(t);
}

static void text_forms_are_refused_in_mode_worker(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    void *agent;
    (void)state;
    assert_int_equal(
        dgm_backend_exec.open(fake_json(a, "{'command':'true','mode':'worker','output':'text'}"),
                              NULL, &agent, &err),
        DGM_BAD_PARAMS);
    assert_string_equal(err.at, "/output");
}

DGM_TEST_MAIN(
    dgm_test(its_events_are_those_of_a_program), dgm_test(one_process_serves_all_messages),
    dgm_test(run_has_the_callers_message_and_conversation), dgm_test(callers_tools_are_in_tools),
    dgm_test(a_question_is_answered_with_the_journal),
    dgm_test(interrupted_without_a_question_waits_for_input),
    dgm_test(journal_is_stored_after_the_events_before_it), dgm_test(unknown_requests_are_refused),
    dgm_test(log_and_prints_are_for_the_operator),
    dgm_test(a_message_while_it_works_reaches_the_run),
    dgm_test(a_message_waits_if_the_worker_does_not_accept_input), dgm_test(cancel_reaches_the_run),
    dgm_test(cancel_before_the_process_is_ready),
    dgm_test(a_run_that_ignores_cancel_is_left_behind),
    dgm_test(events_wait_while_the_store_is_full), dgm_test(a_large_stream_waits_without_loss),
    dgm_test(an_error_of_the_code_is_not_for_callers), dgm_test(a_rejection_is_for_callers),
    dgm_test(an_event_that_is_not_one_fails_the_run_only),
    dgm_test(an_unknown_status_fails_the_run), dgm_test(timeout_fails_the_run_only),
    dgm_test(a_lost_run_is_started_again_and_explained),
    dgm_test(messages_about_unknown_runs_are_ignored_and_logged),
    dgm_test(a_message_that_ends_the_process_every_time_fails),
    dgm_test(with_one_attempt_a_lost_run_fails),
    dgm_test(attempts_count_across_restarts_of_the_server),
    dgm_test(accepted_messages_are_in_the_next_attempt), dgm_test(a_wrong_seq_fails_the_run_only),
    dgm_test(a_drained_run_is_started_again), dgm_test(a_process_that_hangs_is_killed),
    dgm_test(code_that_cannot_be_loaded_is_reported_at_once),
    dgm_test(a_process_that_exits_at_once_makes_the_agent_unavailable),
    dgm_test(a_process_that_does_not_answer_the_handshake_is_killed),
    dgm_test(another_version_of_the_protocol_is_refused), dgm_test(a_worker_of_graphs_is_refused),
    dgm_test(text_forms_are_refused_in_mode_worker))
