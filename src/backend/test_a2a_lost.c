/* test_a2a_lost.c - agents of other A2A servers: lost connections, restarts, cancel, a loop that stops. */
#include "backend/test_a2a.h"

/* ---- lost connections ------------------------------------------------------------------------------------------------------ */

static const char unsupported[] =
    JSON_HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}";

/* The stream is cut at every byte. is_lost: with an error, else as if it were complete. Then the server has a subscription, or
 * only GetTask. */
static void cut_everywhere(const char *card, const char *answer, const char *then, bool is_lost)
{
    char head[300];
    start_server();
    make_card(card_10, sizeof card_10, "JSONRPC", "1.0", "/rpc", true);
    struct fake *f = open_agent("");
    const char *body = quoted(answer), *follow = quoted(then);
    const char *get = quoted(JSON_HEAD "{'jsonrpc':'2.0','id':1,'result':" WHOLE_TASK(
        "TASK_STATE_COMPLETED", "Hello world") "}");
    size_t n = strlen(body);
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n%s\r\n",
             is_lost ? "Content-Length: 1000000\r\n" : "");
    char *bytes = calloc(1, strlen(head) + n + 1);
    for (size_t i = 0; i <= n; i++) {
        size_t head_n = strlen(head);
        pthread_mutex_lock(&server.lock);
        memcpy(bytes, head, head_n);
        memcpy(bytes + head_n, body, i);
        pthread_mutex_unlock(&server.lock);
        SCRIPT(s, {card, 0, ON_CARD}, {bytes, 0, "SendStreamingMessage", head_n + i},
               {*then ? follow : unsupported, 0, "SubscribeToTask"}, {get, 0, "GetTask"});
        fake_new_task(f);
        fake_run(f, "hi");
        bool is_known = strstr(bytes + head_n, "TASK_STATE_SUBMITTED\"}}}}") ||
                        strstr(bytes + head_n, "\"submitted\"}}}}");
        if (is_known || f->state == DGM_STATE_COMPLETED) {
            fake_check(f);
            if (f->stream.n != 11 || memcmp(f->stream.p, "Hello world", 11) != 0) {
                print_error("cut at byte %zu: %.*s\n", i, DGM_P(dgm_buf_str(&f->events)));
                fail();
            }
            assert_int_equal(f->state, DGM_STATE_COMPLETED);
        } else {
            assert_int_equal(f->state, DGM_STATE_FAILED);
        }
        assert_int_equal(server_count("SendStreamingMessage"), 1);
    }
    close_agent(f);
    free(bytes);
}

static void a_cut_stream_is_completed_by_get(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, "", true);
}

static void a_stream_that_ends_early_is_completed_by_get(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, "", false);
}

/* The subscription starts with the task as it is. */
static void a_cut_stream_is_completed_by_a_subscription(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10,
                   SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello wor") "}")
                       RPC(CHUNK_10("ld", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED")),
                   true);
}

/* ... or repeats everything. */
static void a_subscription_may_repeat_everything(void **state)
{
    (void)state;
    cut_everywhere(card_10, ANSWER_10, SSE_HEAD ANSWER_10, true);
}

static void a_cut_stream_of_statuses_is_completed(void **state)
{
    (void)state;
    cut_everywhere(card_10, LANG_ANSWER, "", true);
}

static void a_subscription_names_the_last_event(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC_ID("1", TASK_10("TASK_STATE_SUBMITTED"))
                       RPC_ID("2", CHUNK_10("Hello", "false", "false"))),
            0, "SendStreamingMessage"},
           {quoted(SSE_HEAD RPC_ID("3", CHUNK_10(" world", "true", "true"))
                       RPC_ID("4", STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("Last-Event-ID: 2"), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);
    close_agent(f);
}

static void a_doubtful_message_is_sent_again_only_if_allowed(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD}, {NULL, 0, "POST /rpc"});
    fake_run(f, "hi");
    check_failure(f, "the message may have been received, therefore it was not sent again");
    assert_int_equal(server_count("POST /rpc"), 1);
    close_agent(f);

    start_server();
    f = open_agent(",'resend':true");
    SCRIPT(s2, {card_10, 0, ON_CARD}, {NULL, 0, "POST /rpc"},
           {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("POST /rpc"), 2);
    close_agent(f);
}

static void a_restart_follows_the_same_task(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(CHUNK_10("Hello", "false", "false"))),
            HOLD, "POST /rpc"},
           {quoted(SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello") "}") RPC(
                CHUNK_10(" world", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    f->cancel_ms = 300;
    fake_run(f, "hi"); /* stores the id; it ends canceled, which the next process does not know */
    f->cancel_ms = 0;
    f->is_resumed = true;
    dgm_buf note = f->stored[DGM_RUN_TASK];
    dgm_buf_init(&f->stored[DGM_RUN_TASK], SIZE_MAX);
    fake_new_task(f);
    f->stored[DGM_RUN_TASK] = note;
    SCRIPT(s2, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC("{'task':" WHOLE_TASK("TASK_STATE_WORKING", "Hello") "}") RPC(
                CHUNK_10(" world", "true", "true")) RPC(STATUS_10("TASK_STATE_COMPLETED"))),
            0, "SubscribeToTask"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("SendStreamingMessage"), 0);

    fake_new_task(f); /* nothing is known of this one */
    fake_run(f, "hi");
    check_failure(f, "the server was restarted before the agent had named its task");
    assert_int_equal(server_count("SendStreamingMessage"), 0);
    close_agent(f);
}

/* A restart between the runs: what is stored of the task remains. */
static void restart_task(struct fake *f)
{
    dgm_buf note = f->stored[DGM_RUN_TASK];
    dgm_buf_init(&f->stored[DGM_RUN_TASK], SIZE_MAX);
    fake_new_task(f);
    dgm_buf_done(&f->stored[DGM_RUN_TASK]);
    f->stored[DGM_RUN_TASK] = note;
    f->is_resumed = true;
}

static void a_message_that_is_sent_again_has_its_metadata(void **state)
{
    static dgm_str mode = DGM_STR("text/x-test");
    (void)state;
    start_server();
    struct fake *f = open_agent(",'resend':true");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0, "POST /rpc"});
    fake_prepare(f, "msg-1", "hi");
    f->input.metadata =
        dgm_json_parse_trusted(f->arena, DGM_STR("{\"k\":\"v\",\"dragoman:own\":1}"));
    f->input.accepted_output_modes = (dgm_strs){&mode, 1};
    fake_run_prepared(f);
    check_failure(f, "status 401"); /* as if the process had ended before that */
    assert_true(fake_has(&f->stored[DGM_RUN_TASK], "\"metadata\":{\"k\":\"v\"}"));
    restart_task(f);
    SCRIPT(s2, {card_10, 0, ON_CARD}, {quoted(SSE_HEAD ANSWER_10), 0, "POST /rpc"});
    fake_run(f, "hi");
    check_answer(f, "Hello world");
    assert_int_equal(server_count("\"metadata\":{\"k\":\"v\"}"), 1);
    assert_int_equal(server_count("[\"text/x-test\"]"), 1);
    assert_false(fake_has(&f->stored[DGM_RUN_TASK], "metadata")); /* the task is known now */
    close_agent(f);
}

/* ---- cancel ---------------------------------------------------------------------------------------------------------------- */

static const char canceled_10[] =
    JSON_HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"id\":\"far:1\",\"contextId\":\"far-c\","
              "\"status\":{\"state\":\"TASK_STATE_CANCELED\"}}}";

static void a_cancel_reaches_the_agent(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_SUBMITTED"))
                       RPC(CHUNK_10("Hel", "false", "false"))),
            HOLD, "SendStreamingMessage"},
           {canceled_10, 0, "CancelTask"});
    f->cancel_at = 2;
    fake_run(f, "hi");
    check_trace(f, "task chunk last canceled");
    fake_check(f);
    assert_int_equal(server_count("\"method\":\"CancelTask\""), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);

    /* before the agent has answered: there is no task to cancel */
    f->cancel_at = 0;
    f->cancel_ms = 100;
    SCRIPT(s2, {NULL, HOLD, "SendStreamingMessage"}, {canceled_10, 0, "CancelTask"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_true(f->ms >= 4000 && f->ms < 30000); /* it has had time to name it */
    assert_int_equal(server_count("CancelTask"), 0);

    /* the agent does not answer the cancel */
    SCRIPT(s3, {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "SendStreamingMessage"},
           {NULL, HOLD, "CancelTask"});
    fake_new_task(f);
    fake_run(f, "hi");
    check_trace(f, "working canceled");
    assert_true(f->ms < 30000);
    close_agent(f);

    /* while the card is fetched */
    start_server();
    f = open_agent("");
    f->cancel_ms = 100;
    SCRIPT(s4, {NULL, HOLD, ON_CARD});
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_true(f->ms < 30000);
    close_agent(f);
}

/* Also while its server is not reachable yet. */
static void a_cancel_of_a_resumed_run_reaches_the_agent(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s1, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "SendStreamingMessage"},
           {canceled_10, 0, "CancelTask"});
    f->cancel_ms = 300;
    fake_run(f, "hi");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str note = dgm_arena_dup(a, dgm_buf_str(&f->stored[DGM_RUN_TASK]));
    fake_close(f);

    f = open_agent(",'answer_timeout':0.3"); /* another process */
    dgm_buf_add_str(&f->stored[DGM_RUN_TASK], note);
    f->is_resumed = true;
    f->cancel_ms = 100;
    SCRIPT(s2, {NULL, HOLD, ON_CARD}, {card_10, 0, ON_CARD}, {canceled_10, 0, "CancelTask"});
    fake_run(f, "hi");
    check_trace(f, "canceled");
    assert_int_equal(server_count("CancelTask"), 1);
    assert_int_equal(server_count("\"id\":\"far:1\""), 1);
    close_agent(f);
}

/* ---- stop ------------------------------------------------------------------------------------------------------------------ */

/* A loop that stops ends the run, and the task is not settled: it goes on after the restart. */
static void a_stop_leaves_the_task_open(void **state)
{
    (void)state;
    start_server();
    struct fake *f = open_agent("");
    SCRIPT(s, {card_10, 0, ON_CARD},
           {quoted(SSE_HEAD RPC(TASK_10("TASK_STATE_WORKING"))), HOLD, "POST /rpc"});
    fake_prepare(f, "msg-1", "hi");
    dgm_loop_post(f->run.loop, fake_do_start, f);
    while (!server_count("POST /rpc"))
        usleep(1000);
    usleep(200000);
    dgm_loops_stop(f->loops);
    uv_sem_wait(&f->ended);
    assert_string_equal(f->error, DGM_SHUTTING_DOWN);
    assert_int_equal(f->state, DGM_STATE_WORKING);
    assert_int_equal(server_count("CancelTask"), 0);
    close_agent(f);
}

DGM_TEST_MAIN(dgm_test(a_subscription_names_the_last_event),
              dgm_test(a_doubtful_message_is_sent_again_only_if_allowed),
              dgm_test(a_restart_follows_the_same_task),
              dgm_test(a_message_that_is_sent_again_has_its_metadata),
              dgm_test(a_cancel_reaches_the_agent),
              dgm_test(a_cancel_of_a_resumed_run_reaches_the_agent),
              dgm_test(a_stop_leaves_the_task_open), dgm_test(a_cut_stream_is_completed_by_get),
              dgm_test(a_stream_that_ends_early_is_completed_by_get),
              dgm_test(a_cut_stream_is_completed_by_a_subscription),
              dgm_test(a_subscription_may_repeat_everything),
              dgm_test(a_cut_stream_of_statuses_is_completed))
