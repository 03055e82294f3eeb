/* test_http.c - requests and answers, as raw sockets meet them. */
#include "net/test_http.h"

/* ---- requests and answers -------------------------------------------------------------------------------------- */

static void a_request_is_answered_and_the_connection_stays(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    for (int i = 0; i < 3; i++) {
        say(fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
        hear(fd, got, "POST /x hello");
        assert_non_null(strstr(got, "HTTP/1.1 200 OK\r\nDate: "));
        assert_non_null(
            strstr(got, " GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\n"));
        assert_null(strstr(got, "Connection:"));
    }
    close(fd);
    wait_for_connections(0);
    stop();
}

static void pipelined_requests_are_answered_in_order_wherever_they_are_cut(void **state)
{
    static const char pair[] =
        "POST /later HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        "POST /two HTTP/1.1\r\n" HOST "Content-Length: 3\r\nConnection: close\r\n\r\nxyz";
    size_t n = sizeof pair - 1;
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    for (size_t cut = 1; cut < n; cut++) {
        int fd = client(), end;
        say_n(fd, pair, cut);
        if (cut % 8 == 0)
            usleep(300); /* else the two parts often come together, which is fine as well */
        say_n(fd, pair + cut, n - cut);
        char *all = hear_all(fd, NULL, &end);
        char *one = strstr(all, "\r\n\r\n/later"), *two = strstr(all, "\r\n\r\nPOST /two xyz");
        if (end || !one || !two || one > two)
            print_error("cut at %zu, %d: %s\n", cut, end, all);
        assert_true(!end && one && two && one < two);
        free(all);
        close(fd);
    }
    stop();
}

static void byte_by_byte_is_as_good(void **state)
{
    static const char text[] = "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n0\r\n\r\n" GET("/y");
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    for (size_t i = 0; i < sizeof text - 1; i++)
        say_n(fd, text + i, 1);
    hear(fd, got, "GET /y ");
    assert_non_null(strstr(got, "POST /x hello"));
    close(fd);
    stop();
}

static void a_thousand_pipelined_requests_come_back_in_order(void **state)
{
    enum { N = 1000 };
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    dgm_buf text;
    dgm_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < N; i++) /* some at once, some later: both must keep the order */
        dgm_buf_printf(&text, "GET /%s%s HTTP/1.1\r\n" HOST "%s\r\n", i % 3 ? "n" : "later",
                       i % 3 ? (char[]){(char)('0' + i % 10), 0} : "",
                       i == N - 1 ? "Connection: close\r\n" : "");
    say_n(fd, text.p, text.n);
    dgm_buf_done(&text);
    char *all = hear_all(fd, NULL, NULL), *p = all;
    for (int i = 0; i < N; i++) {
        char want[20];
        if (i % 3)
            snprintf(want, sizeof want, "\r\n\r\nGET /n%d ", i % 10);
        else
            snprintf(want, sizeof want, "\r\n\r\n/later");
        p = strstr(p, "HTTP/1.1 200");
        assert_non_null(p);
        p = strstr(p, "\r\n\r\n");
        assert_memory_equal(p, want, strlen(want));
    }
    free(all);
    close(fd);
    assert_int_equal(w.requests, N);
    stop();
}

static void a_stream_has_one_chunk_per_turn(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/ticks"));
    hear(fd, got, "\r\n0\r\n\r\n");
    assert_non_null(
        strstr(got, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"));
    assert_null(strstr(got, "Content-Length"));
    assert_non_null(strstr(got, "\r\n\r\nc\r\ntick 3\ntock\n\r\nc\r\ntick 2\ntock\n\r\n"
                                "c\r\ntick 1\ntock\n\r\n0\r\n\r\n"));
    say(fd, GET("/again"));
    hear(fd, got, "GET /again ");
    close(fd);
    stop();
}

static void http_1_0_gets_no_chunks_and_the_end_of_the_connection(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, "GET /ticks HTTP/1.0\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_null(strstr(all, "chunked"));
    assert_non_null(
        strstr(all, "Connection: close\r\n\r\ntick 3\ntock\ntick 2\ntock\ntick 1\ntock\n"));
    free(all);
    close(fd);
    fd = client();
    say(fd, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(fd, got, "GET /x ");
    assert_non_null(strstr(got, "Connection: keep-alive\r\n"));
    say(fd, "GET /y HTTP/1.0\r\n\r\n");
    hear(fd, got, "GET /y ");
    assert_non_null(strstr(got, "Connection: close\r\n"));
    expect_end(fd);
    stop();
}

static void head_gets_the_headers_alone(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, "HEAD /x HTTP/1.1\r\n" HOST "\r\nHEAD /ticks HTTP/1.1\r\n" HOST
            "\r\n" GET("/none") "GET /end HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_non_null(strstr(all, "Content-Length: 8\r\n\r\nHTTP/1.1 200 OK"));
    assert_non_null(strstr(all, "Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No Content"));
    assert_null(strstr(all, "tick"));
    assert_non_null(strstr(all, "GMT\r\n\r\nHTTP/1.1 200 OK")); /* 204 has no length either */
    free(all);
    close(fd);
    stop();
}

static void who_waits_for_100_gets_it(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){.max_body = 1000}, NULL);
    int fd = client();
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    hear(fd, got, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "hi");
    hear(fd, got, "POST /x hi");
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
    char *all = hear_all(fd, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 413 ", 13);
    free(all);
    close(fd);
    stop();
}

static void a_header_value_cannot_end_its_line(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/who"));
    hear(fd, got, "loopback plain 0 a");
    assert_non_null(strstr(got, "X-Evil: a  X-Injected: b\r\n"));
    say(fd, GET("/forgot"));
    hear(fd, got, "no answer\n");
    assert_memory_equal(got, "HTTP/1.1 500 ", 13);
    close(fd);
    stop();
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

static void an_answer_has_the_added_headers_and_its_end_is_reported(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/also"));
    hear(fd, got, "one two");
    assert_non_null(strstr(got, "\r\nX-Also: this\r\nX-Own: that\r\n\r\n"));
    assert_int_equal(atomic_load(&w.last_answer), 201 * 1000 + 7);
    close(fd);
    stop();
}

static void what_is_no_request_is_refused_and_the_connection_ends(void **state)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "nonsense\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n"},
        {501, "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"},
    };
    (void)state;
    serve(1, (dgm_http_options){.max_body = 1000}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = client(), end;
        char status[20];
        snprintf(status, sizeof status, "HTTP/1.1 %d ", rows[i].status);
        say(fd, GET("/first")); /* still gets its answer, first */
        say(fd, rows[i].text);
        char *all = hear_all(fd, NULL, &end);
        char *first = strstr(all, "GET /first "), *second = strstr(all, status);
        if (end || !first || !second)
            print_error("row %zu, %d: %s\n", i, end, all);
        assert_true(!end && first && second > first);
        assert_non_null(strstr(second, "Connection: close\r\n\r\n"));
        free(all);
        close(fd);
        wait_for(&w.refused, (int)i + 1);
        assert_int_equal(w.last_refused, rows[i].status);
    }
    stop();
}

static void a_refused_upload_still_sees_why(void **state)
{
    static char junk[300000];
    (void)state;
    serve(1, (dgm_http_options){.max_body = 100000}, NULL);
    int fd = client(), end;
    say(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    memset(junk, 'x', sizeof junk);
    say_n(fd, junk, sizeof junk); /* closing at once would reset and take the answer along */
    char *all = hear_all(fd, NULL, &end);
    assert_int_equal(end, 0);
    assert_non_null(strstr(all, "HTTP/1.1 413 Content Too Large\r\n"));
    assert_non_null(strstr(all, "http_body_bytes"));
    free(all);
    close(fd);

    fd = client();
    say(fd, "GET / HTTP/1.1\r\n" HOST "X: ");
    say_n(fd, junk, 40000);
    all = hear_all(fd, NULL, &end);
    assert_int_equal(end, 0);
    assert_non_null(strstr(all, "HTTP/1.1 431 "));
    free(all);
    close(fd);
    stop();
}

static void say_no(void *user, dgm_http_exchange *x, const dgm_http_request *r,
                   dgm_http_refusal refusal)
{
    (void)user;
    assert_int_equal(r->body.n, 0);
    assert_true(dgm_str_is(r->path, "/up") && dgm_str_is(r->method, "POST"));
    assert_true(dgm_str_is(dgm_http_header_of(r, DGM_STR("x-who")), "me"));
    assert_int_equal(refusal, DGM_HTTP_TOO_LARGE);
    dgm_http_respond(x, 413, DGM_STR("text/x-own"), NULL, 0, DGM_STR("http_body_bytes"));
}

static void who_wants_to_refuse_a_body_does(void **state)
{
    static const char *const heads[] = {"Content-Length: 300000\r\n\r\n",
                                        "Transfer-Encoding: chunked\r\n\r\n493e0\r\n"};
    static char junk[300000];
    (void)state;
    memset(junk, 'x', sizeof junk);
    answer_refused_body = say_no;
    serve(1, (dgm_http_options){.max_body = 100000}, NULL);
    for (size_t i = 0; i < 2; i++) {
        int fd = client(), end;
        say(fd, "POST /up HTTP/1.1\r\nX-Who: me\r\n" HOST);
        say(fd, heads[i]);
        say_n(fd, junk, sizeof junk);
        char *all = hear_all(fd, NULL, &end);
        assert_int_equal(end, 0);
        assert_non_null(strstr(all, "HTTP/1.1 413 Content Too Large\r\n"));
        assert_non_null(strstr(all, "Content-Type: text/x-own\r\n"));
        assert_non_null(strstr(all, "Connection: close\r\n"));
        assert_non_null(strstr(all, "http_body_bytes"));
        free(all);
        close(fd);
    }
    assert_int_equal(w.refused, 0);
    stop();
    answer_refused_body = NULL;
}

static void a_body_at_its_limit_is_taken(void **state)
{
    static char body[100000];
    (void)state;
    serve(1, (dgm_http_options){.max_body = sizeof body}, NULL);
    int fd = client();
    say(fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 100000\r\nConnection: close\r\n\r\n");
    memset(body, 'x', sizeof body);
    say_n(fd, body, sizeof body);
    size_t n;
    char *all = hear_all(fd, &n, NULL);
    assert_non_null(strstr(all, "Content-Length: 100008\r\n"));
    assert_true(n > 100008);
    free(all);
    close(fd);
    stop();
}

static void connections_over_the_limit_get_an_answer(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){.max_connections = 3}, NULL);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = client();
        say(fds[i], GET("/x"));
        hear(fds[i], got, "GET /x ");
    }
    int over = client(), end;
    say(over, GET("/x"));
    char *all = hear_all(over, NULL, &end);
    assert_int_equal(end, 0);
    assert_memory_equal(all, "HTTP/1.1 503 ", 13);
    free(all);
    close(over);
    say(fds[0], GET("/y")); /* the others are unaffected */
    hear(fds[0], got, "GET /y ");
    close(fds[0]);
    wait_for_connections(2);
    over = client();
    say(over, GET("/z"));
    hear(over, got, "GET /z ");
    close(over);
    close(fds[1]);
    close(fds[2]);
    stop();
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

static void illegal_transitions_of_connections_and_exchanges_are_detected(void **state)
{
    (void)state;
    assert_null(dgm_machine_fault(&dgm_http_conn_machine));
    assert_true(dgm_machine_allows(&dgm_http_conn_machine, CONN_BUSY, CONN_IDLE));
    assert_false(dgm_machine_allows(&dgm_http_conn_machine, CONN_IDLE, CONN_BUSY));
    assert_false(dgm_machine_allows(&dgm_http_conn_machine, CONN_CLOSING, CONN_IDLE));
    assert_null(dgm_machine_fault(&dgm_http_exchange_machine));
    assert_true(dgm_machine_allows(&dgm_http_exchange_machine, EXCHANGE_OPEN, EXCHANGE_RESPONDING));
    assert_false(
        dgm_machine_allows(&dgm_http_exchange_machine, EXCHANGE_ENDED, EXCHANGE_RESPONDING));
}

static void the_trace_has_the_transitions_of_a_request(void **state)
{
    static const char *const expected[] = {"idle>head",       "reading>open",     "head>busy",
                                           "open>responding", "responding>ended", "busy>idle"};
    dgm_transition *all;
    char text[64];
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/x"));
    hear(fd, got, "GET /x ");
    size_t n = dgm_loops_read_trace(w.loops, &all);
    assert_in_range(n, 6, 8);
    for (size_t i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "%s>%s", all[i].machine->states[all[i].from],
                 all[i].machine->states[all[i].to]);
        assert_string_equal(text, expected[i]);
        assert_int_equal(all[i].object, 1);
    }
    assert_in_range(all[0].ms, (uint64_t)dgm_loop_unix_ms() - 60000,
                    (uint64_t)dgm_loop_unix_ms() + 1000);
    free(all);
    close(fd);
    stop();
}

DGM_TEST_MAIN(dgm_test(a_request_is_answered_and_the_connection_stays),
              dgm_test(illegal_transitions_of_connections_and_exchanges_are_detected),
              dgm_test(the_trace_has_the_transitions_of_a_request),
              dgm_test(pipelined_requests_are_answered_in_order_wherever_they_are_cut),
              dgm_test(byte_by_byte_is_as_good),
              dgm_test(a_thousand_pipelined_requests_come_back_in_order),
              dgm_test(a_stream_has_one_chunk_per_turn),
              dgm_test(http_1_0_gets_no_chunks_and_the_end_of_the_connection),
              dgm_test(head_gets_the_headers_alone), dgm_test(who_waits_for_100_gets_it),
              dgm_test(a_header_value_cannot_end_its_line),
              dgm_test(an_answer_has_the_added_headers_and_its_end_is_reported),
              dgm_test(what_is_no_request_is_refused_and_the_connection_ends),
              dgm_test(a_refused_upload_still_sees_why), dgm_test(a_body_at_its_limit_is_taken),
              dgm_test(who_wants_to_refuse_a_body_does),
              dgm_test(connections_over_the_limit_get_an_answer))
