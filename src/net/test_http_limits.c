/* test_http_limits.c - slow, rude and many clients; and the end of a server. */
#include "net/test_http.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

/* ---- timers --------------------------------------------------------------------------------------------------- */

static void slow_heads_bodies_and_idle_connections_are_cut(void **state)
{
    dgm_http_times quick = patient;
    static char piece[20000];
    (void)state;
    quick.headers_ms = 200;
    quick.body_ms = 1500; /* far above the pauses below: a busy machine makes them longer */
    quick.idle_ms = 300;
    serve(1, (dgm_http_options){0}, &quick);
    int head = client(), body = client(), idle = client(), drip = client(), steady = client();
    memset(piece, 's', sizeof piece);
    say(head, "GET / HT");
    say(body, "POST / HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nab");
    say(drip, "GET / HTTP/1.1\r\nX: ");
    say(steady, "POST /steady HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");
    for (int i = 0; i < 10;
         i++) { /* progress keeps a body alive; drops do not, nor do they a head */
        usleep(200000);
        send(drip, "x", 1, MSG_NOSIGNAL);
        send(body, "x", 1, MSG_NOSIGNAL);
        say_n(steady, piece, sizeof piece);
    }
    hear(steady, got, "Content-Length: 200013");
    close(steady);
    int slow[] = {head, drip, body};
    for (int i = 0; i < 3; i++) {
        char *all = hear_all(slow[i], NULL, NULL);
        assert_memory_equal(all, "HTTP/1.1 408 ", 13);
        free(all);
        close(slow[i]);
    }
    expect_end(idle);
    wait_for_connections(0);
    assert_int_equal(w.requests, 1);
    stop();
}

static void an_answer_in_the_making_has_no_timer(void **state)
{
    dgm_http_times quick = {400, 400, 400, 400, 400, 20}; /* the request must come in time */
    (void)state;
    serve(2, (dgm_http_options){0}, &quick);
    int fd = client();
    say(fd, GET("/hold"));
    hear(fd, got, ": hello\n\n");
    usleep(1000000);
    assert_int_equal(w.gone, 0);
    assert_int_equal(dgm_http_server_connections(w.server), 1);
    close(fd);
    stop();
}

/* A stream that has begun and then sends nothing but comments. */
static int open_silent_stream(uint64_t ping_ms)
{
    dgm_http_times times = patient;
    times.ping_ms = ping_ms;
    serve(1, (dgm_http_options){0}, &times);
    int fd = client();
    say(fd, GET("/idle"));
    hear(fd, got, ": hello\n\n");
    return fd;
}

static void a_silent_stream_is_kept_alive_and_a_dead_peer_found(void **state)
{
    (void)state;
    int fd = open_silent_stream(30);
    for (int i = 0; i < 3; i++)
        hear(fd, got, "8\r\n: ping\n\n\r\n");
    close(fd); /* a FIN, to begin with: what is written then is answered by a reset */
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    stop();
}

static void a_peer_that_closes_a_silent_stream_is_noticed_at_once(void **state)
{
    (void)state;
    int fd = open_silent_stream(600000);
    close(fd);
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    stop();
}

static void a_peer_that_only_ends_its_side_keeps_its_stream(void **state)
{
    (void)state;
    int fd = open_silent_stream(600000);
    shutdown(fd, SHUT_WR);
    hear(fd, got, "8\r\n: ping\n\n\r\n");
    usleep(50000);
    assert_int_equal(w.gone, 0);
    assert_int_equal(dgm_http_server_connections(w.server), 1);
    close(fd);
    stop();
}

/* ---- slow readers, backlog, gone ------------------------------------------------------------------------------- */

static void a_slow_reader_gets_all_and_the_backlog_stays_small(void **state)
{
    size_t n = 0, k = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client_with(8192);
    say(fd, "GET /blocks?1000 HTTP/1.0\r\n\r\n"); /* 10 MB */
    static char buf[100000];
    for (ssize_t r; (r = hear_some(fd, buf, sizeof buf)) > 0; k++) {
        n += (size_t)r;
        if (k < 20)
            usleep(3000);
    }
    assert_true(n > 1000 * BLOCK && n < 1000 * BLOCK + 500);
    wait_for(&w.released, 1000);
    assert_true(w.rooms > 1);
    assert_true(w.highest <= DGM_HTTP_BACKLOG_MARK + BLOCK + 100);
    assert_int_equal(w.gone, 0);
    close(fd);
    stop();
}

static void what_was_borrowed_from_the_arena_outlives_the_end(void **state)
{
    static char buf[100000];
    size_t n = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client_with(8192), reset = client_with(8192);
    say(fd, "GET /burst HTTP/1.0\r\n\r\n");
    say(reset, GET("/burst"));
    wait_for(&w.requests, 2);
    usleep(20000); /* ended long ago, and most of it still here */
    assert_true(w.released < 1000);
    for (ssize_t r; (r = hear_some(fd, buf, sizeof buf)) > 0;)
        n += (size_t)r;
    assert_true(n > 1000 * BLOCK && n < 1000 * BLOCK + 500);
    close(fd);
    close(reset);
    wait_for(&w.released, 1000);
    wait_for_connections(0);
    stop();
}

static void who_takes_no_byte_is_gone(void **state)
{
    dgm_http_times quick = patient;
    (void)state;
    quick.write_ms = 150;
    serve(1, (dgm_http_options){0}, &quick);
    int fd = client_with(8192);
    say(fd, GET("/blocks?2000")); /* more than the kernel's buffers */
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    close(fd);
    stop();
    assert_true(w.released > 0); /* and nothing leaked, says ASan */
}

static void a_reset_in_the_middle_of_an_answer_is_gone(void **state)
{
    struct linger hard = {1, 0};
    static const char *const paths[] = {GET("/hold"), GET("/silence"), GET("/blocks?2000")};
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    for (int i = 0; i < 3; i++) {
        int fd = client_with(8192);
        say(fd, paths[i]);
        wait_for(&w.requests, i + 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        wait_for(&w.gone, i + 1);
    }
    wait_for_connections(0);
    stop();
}

static void a_fin_is_a_half_close(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    /* one answer that is being made, one request behind it, then nothing more */
    int fd = client();
    say(fd, GET("/wait") GET("/behind"));
    shutdown(fd, SHUT_WR);
    wait_for(&w.requests, 1);
    usleep(30000);
    assert_int_equal(w.gone, 0);
    let_go();
    char *all = hear_all(fd, NULL, NULL);
    assert_non_null(strstr(all, "\r\n\r\n/wait"));
    assert_non_null(strstr(all, "GET /behind "));
    free(all);
    close(fd);
    /* a stream goes on */
    fd = client();
    say(fd, GET("/hold"));
    shutdown(fd, SHUT_WR);
    hear(fd, got, ": hello\n\n");
    usleep(50000);
    assert_int_equal(w.gone, 0);
    /* and a reset behind the FIN is noticed without a write */
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    wait_for(&w.gone, 1);
    /* half a request is not counted */
    fd = client();
    say(fd, "GET / HTT");
    shutdown(fd, SHUT_WR);
    expect_end(fd);
    wait_for_connections(0);
    assert_int_equal(w.requests, 3);
    stop();
}

static void stopping_the_loops_ends_what_is_open(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    int fds[10];
    for (int i = 0; i < 10; i++) {
        fds[i] = client();
        say(fds[i], i % 2 ? GET("/hold") : "GET / HT");
    }
    wait_for(&w.requests, 5);
    stop();
    assert_int_equal(w.gone, 5);
    for (int i = 0; i < 10; i++)
        close(fds[i]);
}

static void a_peer_that_is_always_ahead_is_read_only_so_far(void **state)
{
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int fd = client();
    static char many[64 * 1024];
    size_t n = 0, sent = 0;
    say(fd, GET("/wait"));
    while (n + 100 < sizeof many)
        n += (size_t)snprintf(many + n, sizeof many - n, GET("/many"));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (ssize_t k; sent < (64u << 20);
         sent += (size_t)k) { /* until the kernel's buffers are full */
        k = send(fd, many, n, MSG_NOSIGNAL);
        if (k < 0) {
            struct pollfd p = {fd, POLLOUT, 0};
            if (poll(&p, 1, 100) == 0)
                break;
            k = 0;
        }
    }
    assert_true(sent < (64u << 20));
    assert_int_equal(w.requests, 1);
    close(fd); /* a reset, with all that is unread */
    let_go();
    wait_for_connections(0);
    stop();
}

/* ---- many ----------------------------------------------------------------------------------------------------- */

static void a_thousand_connections_are_served(void **state)
{
    enum { N = 1000 };
    static int fds[N];
    struct rlimit lim;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_cur < 2 * N + 100) {
        lim.rlim_cur = lim.rlim_max < 2 * N + 100 ? lim.rlim_max : 2 * N + 100;
        setrlimit(RLIMIT_NOFILE, &lim);
        if (lim.rlim_cur < 2 * N + 100)
            skip();
    }
    serve(2, (dgm_http_options){0}, NULL);
    for (int i = 0; i < N; i++)
        fds[i] = client();
    for (int i = 0; i < N; i++)
        say(fds[i], GET("/hold"));
    wait_for(&w.requests, N);
    assert_int_equal(dgm_http_server_connections(w.server), N);
    for (int i = 0; i < N; i++)
        hear(fds[i], got, ": hello\n\n");
    struct linger hard = {1, 0}; /* a close alone is a FIN, and a FIN is no farewell */
    for (int i = 0; i < N; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fds[i]);
    }
    wait_for(&w.gone, N);
    wait_for_connections(0);
    stop();
}

static void without_descriptors_it_waits_and_goes_on(void **state)
{
    struct rlimit old, low;
    int fds[64], n = 0;
    (void)state;
    serve(1, (dgm_http_options){0}, NULL);
    int first = client();
    say(first, GET("/x"));
    hear(first, got, "GET /x ");
    /* one descriptor for our client, none for the server */
    getrlimit(RLIMIT_NOFILE, &old);
    int probe = dup(first);
    low = old;
    low.rlim_cur = (rlim_t)probe + 1;
    setrlimit(RLIMIT_NOFILE, &low);
    while (n < 64 && (fds[n] = dup(first)) >= 0)
        n++;
    close(probe);
    int late = client();
    wait_for(&w.refused, 1);
    assert_int_equal(w.last_refused, 503);
    char *all = hear_all(late, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 503 ", 13);
    free(all);
    close(late);
    int before = w.refused;
    usleep(100000); /* no client connects: no busy loop */
    assert_true(w.refused <= before + 1);
    setrlimit(RLIMIT_NOFILE, &old);
    while (n > 0)
        close(fds[--n]);
    say(first, GET("/y"));
    hear(first, got, "GET /y ");
    late = client();
    say(late, GET("/z"));
    hear(late, got, "GET /z ");
    close(late);
    close(first);
    stop();
}

/* ---- draining ----------------------------------------------------------------------------------------------- */

static void on_drained(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.drained, 1);
}

static void draining_lets_answers_end_and_closes_the_rest(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    a.sin_port = htons((uint16_t)dgm_http_server_port(w.server));
    int idle = client(), busy = client();
    say(idle, GET("/x"));
    hear(idle, got, "GET /x ");
    say(busy, GET("/wait"));
    wait_for(&w.requests, 2);
    dgm_http_server_drain(w.server, 5000, on_drained, NULL);
    expect_end(idle);
    usleep(20000);
    assert_int_equal(w.drained, 0);
    assert_int_equal(client_to((struct sockaddr *)&a, sizeof a, 0), -1);
    let_go();
    char *all = hear_all(busy, NULL, NULL);
    assert_non_null(strstr(all, "\r\n\r\n/wait"));
    assert_non_null(strstr(all, "Connection: close\r\n"));
    free(all);
    close(busy);
    wait_for(&w.drained, 1);
    dgm_http_server_free(w.server); /* the loops run on */
    dgm_loops_free(w.loops);
}

static void draining_tells_streams_and_they_end_whole(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    int fds[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = client();
        say(fds[i], GET("/idle?q=1"));
        hear(fds[i], got, ": hello\n\n");
    }
    dgm_http_server_drain(w.server, 25000, on_drained, NULL);
    for (int i = 0; i < 8; i++) { /* the last chunk of the stream, and the end of the connection */
        int end;
        char *all = hear_all(fds[i], NULL, &end);
        assert_int_equal(end, 0);
        assert_non_null(strstr(all, "end of GET /idle?q=1 /idle\r\n0\r\n\r\n"));
        free(all);
        close(fds[i]);
    }
    wait_for(&w.drained, 1);
    assert_int_equal(w.gone, 0);
    stop();
}

static void draining_ends_in_time_whatever_is_open(void **state)
{
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    int fd = client();
    say(fd, GET("/hold"));
    wait_for(&w.requests, 1);
    dgm_http_server_drain(w.server, 100, on_drained, NULL);
    wait_for(&w.drained, 1);
    stop();
    assert_int_equal(w.gone, 1);
    assert_int_equal(w.drained, 1);
    close(fd);
}

DGM_TEST_MAIN(dgm_test(slow_heads_bodies_and_idle_connections_are_cut),
              dgm_test(an_answer_in_the_making_has_no_timer),
              dgm_test(a_silent_stream_is_kept_alive_and_a_dead_peer_found),
              dgm_test(a_peer_that_closes_a_silent_stream_is_noticed_at_once),
              dgm_test(a_peer_that_only_ends_its_side_keeps_its_stream),
              dgm_test(a_slow_reader_gets_all_and_the_backlog_stays_small),
              dgm_test(what_was_borrowed_from_the_arena_outlives_the_end),
              dgm_test(who_takes_no_byte_is_gone),
              dgm_test(a_reset_in_the_middle_of_an_answer_is_gone), dgm_test(a_fin_is_a_half_close),
              dgm_test(stopping_the_loops_ends_what_is_open),
              dgm_test(a_peer_that_is_always_ahead_is_read_only_so_far),
              dgm_test(a_thousand_connections_are_served),
              dgm_test(without_descriptors_it_waits_and_goes_on),
              dgm_test(draining_lets_answers_end_and_closes_the_rest),
              dgm_test(draining_tells_streams_and_they_end_whole),
              dgm_test(draining_ends_in_time_whatever_is_open))
