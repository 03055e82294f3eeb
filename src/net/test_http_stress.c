/*
 * test_http_stress.c - everything at once: clients that ask, wait, dawdle, talk nonsense and vanish, on
 * several loops, until time is up; then the server drains under their feet.
 *
 * Whoever behaves gets the right answer, whole. Made for ThreadSanitizer (tests/tsan), right everywhere.
 * DRAGOMAN_STRESS_S: how long, in all.
 */
#include "net/test_http.h"

#include <pthread.h>
#include <time.h>

enum { LOOPS = 4, CLIENTS = 12 };

static atomic_int n_wrong;
static atomic_ulong n_steps;
static atomic_bool over; /* time is up: the server may drain at any moment */
static char wrong[300];  /* the first one, for a person */

struct actor {
    unsigned random;
    char *got; /* 64 KiB */
};

static void fault(const char *what, const char *heard)
{
    if (atomic_load(&over) || atomic_fetch_add(&n_wrong, 1))
        return;
    snprintf(wrong, sizeof wrong, "%s: %.200s", what, heard);
}

static unsigned draw(struct actor *a, unsigned n)
{
    a->random = a->random * 1664525u + 1013904223u;
    return (a->random >> 8) % n;
}

/* ---- a client ------------------------------------------------------------------------------------------- */

static int try_client(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)dgm_http_server_port(w.server)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = client_to((struct sockaddr *)&to, sizeof to, 0);
    if (fd < 0)
        fault("connect", "");
    return fd;
}

/* In pieces of any size. */
static void tell(struct actor *a, int fd, const char *text)
{
    for (size_t n = strlen(text), at = 0, k; at < n; at += k) {
        k = 1 + draw(a, (unsigned)(n - at));
        if (send(fd, text + at, k, MSG_NOSIGNAL) != (ssize_t)k)
            return;
    }
}

/* Until the text came so many times, or the end. */
static void expect_times(struct actor *a, int fd, const char *text, int times)
{
    size_t n = 0;
    int seen = 0;
    a->got[0] = 0;
    while (seen < times) {
        ssize_t k = hear_some(fd, a->got + n, 65535 - n);
        if (k <= 0) {
            fault(text, a->got);
            return;
        }
        a->got[n += (size_t)k] = 0;
        seen = 0;
        for (const char *p = a->got; (p = strstr(p, text)); p += strlen(text))
            seen++;
        if (seen > times)
            fault("too many answers", a->got);
    }
}

static void vanish(int fd)
{
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

/* ---- what clients do -------------------------------------------------------------------------------------- */

static void asks_ahead(struct actor *a, int fd)
{
    char text[1000] = "";
    int n = 1 + (int)draw(a, 10);
    for (int i = 0; i < n; i++)
        strcat(text, draw(a, 2) ? GET("/later") : GET("/later/n"));
    tell(a, fd, text);
    expect_times(a, fd, "\r\n\r\n", n); /* one per answer: no body has an empty line */
    close(fd);
}

static void posts_chunks(struct actor *a, int fd)
{
    tell(a, fd,
         "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
         "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nT: t\r\n\r\n");
    expect_times(a, fd, "POST /x hello world", 1);
    close(fd);
}

static void reads_a_stream(struct actor *a, int fd)
{
    tell(a, fd, GET("/ticks"));
    expect_times(a, fd, "tick 1\ntock\n\r\n0\r\n\r\n", 1);
    close(fd);
}

static void reads_slowly(struct actor *a, int fd)
{
    size_t n = 0;
    tell(a, fd, "GET /blocks?40 HTTP/1.0\r\n\r\n");
    for (ssize_t k; (k = hear_some(fd, a->got, 1 + draw(a, 60000))) > 0;)
        n += (size_t)k;
    if (n < 40 * BLOCK)
        fault("a short answer", "");
    close(fd);
}

static void half_closes(struct actor *a, int fd)
{
    tell(a, fd, GET("/later"));
    shutdown(fd, SHUT_WR);
    expect_times(a, fd, "/later", 1);
    close(fd);
}

static void waits_and_vanishes(struct actor *a, int fd)
{
    tell(a, fd, draw(a, 2) ? GET("/idle") : GET("/hold"));
    if (draw(a, 2))
        expect_times(a, fd, ": hello\n\n", 1);
    vanish(fd);
}

static void leaves_in_the_middle(struct actor *a, int fd)
{
    static const char *const texts[] = {GET("/blocks?300"), "POST / HTTP/1.1\r\nHost: a\r\n",
                                        "\x16\x03\x01 no TLS here",
                                        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"};
    tell(a, fd, texts[draw(a, 4)]);
    if (draw(a, 2))
        vanish(fd);
    else
        close(fd);
}

static void *act(void *arg)
{
    static void (*const ways[])(struct actor *, int) = {
        asks_ahead,  posts_chunks,       reads_a_stream,      reads_slowly,
        half_closes, waits_and_vanishes, leaves_in_the_middle};
    struct actor *a = arg;
    while (!atomic_load(&over) && !atomic_load(&n_wrong)) {
        int fd = try_client();
        if (fd < 0)
            break;
        ways[draw(a, sizeof ways / sizeof *ways)](a, fd);
        atomic_fetch_add(&n_steps, 1);
    }
    return NULL;
}

/* ---- the test ----------------------------------------------------------------------------------------------- */

static void on_stress_drained(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.drained, 1);
}

static void everything_at_once(void **state)
{
    struct actor actors[CLIENTS];
    pthread_t threads[CLIENTS];
    const char *seconds = getenv("DRAGOMAN_STRESS_S");
    dgm_http_times quick = patient;
    (void)state;
    quick.ping_ms = 5;
    serve(LOOPS, (dgm_http_options){0}, &quick);
    for (int i = 0; i < CLIENTS; i++) {
        actors[i] = (struct actor){(unsigned)i * 7919u + 1, malloc(65536)};
        assert_int_equal(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
    }
    int idle = client();
    say(idle, GET("/idle"));
    time_t end = time(NULL) + (seconds ? atoi(seconds) : 2);
    while (time(NULL) < end && !atomic_load(&n_wrong))
        usleep(20000);
    atomic_store(&over, true);
    dgm_http_server_drain(w.server, 25000, on_stress_drained, NULL);
    char *all = hear_all(idle, NULL, NULL);
    if (!strstr(all, "end of GET /idle? /idle\r\n0\r\n\r\n"))
        fail_msg("a stream without its end: ...%s",
                 strlen(all) > 100 ? all + strlen(all) - 100 : all);
    free(all);
    close(idle);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        free(actors[i].got);
    }
    if (atomic_load(&n_wrong))
        fail_msg("%s", wrong);
    print_message("# %lu clients\n", atomic_load(&n_steps));
    stop();
}

DGM_TEST_MAIN(dgm_test(everything_at_once))
