/*
 * test_client_names.c - guarded requests to names whose addresses change: a name server cannot lead them to this machine.
 *
 * getaddrinfo and connect of this program are the ones below: libcurl calls them. Answers come from the test's list, one
 * for each question. A connection to PUBLIC is made to the test's own server; every address that libcurl would connect to
 * is written down.
 */
#include "net/client.h"

#include "base/buf.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC "8.8.8.8"
#define CLOSED "8.8.4.4" /* public too: the connection is refused */
#define MAX_ANSWERS 4
#define EXPORTED __attribute__((visibility("default")))

/* ---- names ---------------------------------------------------------------------------------------------------------- */

static struct names {
    const char *answers[MAX_ANSWERS]; /* "address,address"; the last one is repeated */
    atomic_size_t questions;
    char connected[500]; /* "8.8.8.8 127.0.0.1" */
    int port;            /* of the server */
} names;

EXPORTED int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                         struct addrinfo **ret);
EXPORTED void freeaddrinfo(struct addrinfo *list);
EXPORTED int connect(int fd, const struct sockaddr *address, socklen_t n);

static struct addrinfo *address_new(const char *text, int port)
{
    struct addrinfo *a = calloc(1, sizeof *a + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (struct sockaddr_in *)(a + 1);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(a + 1);
    a->ai_addr = (struct sockaddr *)(a + 1);
    a->ai_socktype = SOCK_STREAM;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        a->ai_addrlen = sizeof *v4;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        a->ai_addrlen = sizeof *v6;
    }
    a->ai_family = a->ai_addr->sa_family;
    return a;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    size_t i = atomic_fetch_add(&names.questions, 1);
    char all[200], *rest = all;
    (void)node, (void)hints;
    while (i >= MAX_ANSWERS || !names.answers[i])
        i--;
    snprintf(all, sizeof all, "%s", names.answers[i]);
    *ret = NULL;
    for (char *one; (one = strsep(&rest, ","));) {
        *ret = address_new(one, service ? atoi(service) : 0);
        ret = &(*ret)->ai_next;
    }
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* Only the thread of the loop connects. */
int connect(int fd, const struct sockaddr *address, socklen_t n)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)names.port)};
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return (int)syscall(SYS_connect, fd, address, n);
    dgm_address_text(address, text, sizeof text);
    size_t used = strlen(names.connected);
    snprintf(names.connected + used, sizeof names.connected - used, "%s%s", used ? " " : "", text);
    if (strcmp(text, CLOSED) == 0) {
        errno = ECONNREFUSED;
        return -1;
    }
    return (int)syscall(SYS_connect, fd, &server, sizeof server);
}

/* ---- the server -------------------------------------------------------------------------------------------------------- */

static int listener;
static atomic_bool stop;

static void *answer_all(void *arg)
{
    static const char bytes[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    (void)arg;
    while (!atomic_load(&stop)) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        char request[4096];
        if (poll(&p, 1, 20) != 1)
            continue;
        int fd = accept(listener, NULL, NULL);
        if (read(fd, request, sizeof request) > 0)
            assert_int_equal(write(fd, bytes, sizeof bytes - 1), sizeof bytes - 1);
        close(fd);
    }
    return NULL;
}

static pthread_t server_start(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 16), 0);
    getsockname(listener, (struct sockaddr *)&at, &size);
    names.port = ntohs(at.sin_port);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, answer_all, NULL);
    return thread;
}

static void server_stop(pthread_t thread)
{
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    close(listener);
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

struct outcome {
    bool over;
    dgm_fetch_end end;
    char what[300];
};

static void on_end(void *user, const dgm_fetch_result *result)
{
    struct outcome *o = user;
    o->over = true;
    o->end = result->end;
    snprintf(o->what, sizeof o->what, "%.*s", DGM_P(result->what));
}

/* One request of a client: libcurl keeps the answers of names for a minute, a new client asks again. */
static struct outcome fetch_once(uv_loop_t *loop, dgm_client *c, dgm_address_ranges allowed)
{
    struct outcome o = {0};
    dgm_fetch_options options = {.method = "GET",
                                 .url = "http://two-faces.example/",
                                 .is_guarded = true,
                                 .allowed = allowed,
                                 .limits = {.connect_ms = 5000, .total_ms = 10000}};
    dgm_fetch_start(c, &options, (dgm_fetch_handler){.on_end = on_end, .user = &o});
    while (!o.over)
        uv_run(loop, UV_RUN_ONCE);
    return o;
}

static struct outcome fetch_with_new_client(dgm_address_ranges allowed)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    dgm_client *c = dgm_client_new(&loop, 0);
    struct outcome o = fetch_once(&loop, c, allowed);
    dgm_client_close(c, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return o;
}

static void set_answers(const char *first, const char *second)
{
    int port = names.port;
    memset(&names, 0, sizeof names);
    names.port = port;
    names.answers[0] = first;
    names.answers[1] = second;
}

static void a_name_is_resolved_once_for_check_and_connection(void **state)
{
    pthread_t thread = server_start();
    (void)state;
    set_answers(PUBLIC, "127.0.0.1");
    struct outcome o = fetch_with_new_client((dgm_address_ranges){0});
    assert_int_equal(o.end, DGM_FETCH_OK);
    assert_int_equal(atomic_load(&names.questions), 1);
    assert_string_equal(names.connected, PUBLIC);
    /* the next client gets the other answer */
    o = fetch_with_new_client((dgm_address_ranges){0});
    assert_int_equal(atomic_load(&names.questions), 2);
    assert_int_equal(o.end, DGM_FETCH_REFUSED);
    assert_string_equal(
        o.what, "two-faces.example:80 is not connected to: 127.0.0.1 is a loopback address");
    assert_string_equal(names.connected, PUBLIC);
    server_stop(thread);
}

static void one_client_does_not_follow_a_change(void **state)
{
    pthread_t thread = server_start();
    uv_loop_t loop;
    (void)state;
    set_answers(PUBLIC, "127.0.0.1");
    uv_loop_init(&loop);
    dgm_client *c = dgm_client_new(&loop, 0);
    for (int i = 0; i < 3; i++) {
        struct outcome o = fetch_once(&loop, c, (dgm_address_ranges){0});
        assert_true(o.end == DGM_FETCH_OK || o.end == DGM_FETCH_REFUSED);
    }
    assert_null(strstr(names.connected, "127."));
    dgm_client_close(c, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    server_stop(thread);
}

static void private_addresses_of_a_name_are_refused(void **state)
{
    static const struct {
        const char *answer, *connected;
        dgm_fetch_end end;
    } rows[] = {
        {"127.0.0.1", "", DGM_FETCH_REFUSED},
        {CLOSED ",127.0.0.1", CLOSED,
         DGM_FETCH_REFUSED}, /* the second is tried when the first fails */
        {"127.0.0.1," PUBLIC, PUBLIC, DGM_FETCH_OK},
        {"10.0.0.1,169.254.169.254", "", DGM_FETCH_REFUSED},
        {"::1", "", DGM_FETCH_REFUSED},
        {"::ffff:127.0.0.1", "", DGM_FETCH_REFUSED},
        {"64:ff9b::7f00:1", "", DGM_FETCH_REFUSED},
        {"fe80::1,fd00::1", "", DGM_FETCH_REFUSED},
        {CLOSED, CLOSED, DGM_FETCH_UNREACHABLE},
    };
    pthread_t thread = server_start();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_answers(rows[i].answer, NULL);
        struct outcome o = fetch_with_new_client((dgm_address_ranges){0});
        if (o.end != rows[i].end || strcmp(names.connected, rows[i].connected) != 0)
            fail_msg("%s: ended with %d (%s), connected to \"%s\"", rows[i].answer, o.end, o.what,
                     names.connected);
    }
    server_stop(thread);
}

static void allowed_addresses_are_connected_to(void **state)
{
    dgm_address_range range;
    pthread_t thread = server_start();
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_address_parse_range(DGM_STR("127.0.0.0/8"), &range, &err), err);
    set_answers("10.0.0.1,127.0.0.1", NULL);
    struct outcome o = fetch_with_new_client((dgm_address_ranges){&range, 1});
    assert_int_equal(o.end, DGM_FETCH_OK);
    assert_string_equal(names.connected, "127.0.0.1");
    server_stop(thread);
}

DGM_TEST_MAIN(dgm_test(a_name_is_resolved_once_for_check_and_connection),
              dgm_test(one_client_does_not_follow_a_change),
              dgm_test(private_addresses_of_a_name_are_refused),
              dgm_test(allowed_addresses_are_connected_to))
