/* test_example.c - a server with the example's frontend as its only one, and requests to it. */
#include "example_front.h"
#include "frontend/route.h"
#include "support/check.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const dgm_frontend *const fronts[] = {&dgm_front_example, NULL};
static dgm_http_server *server;

/* The least that a router does: app/serve/router.c also checks the caller and the body. */
static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *r)
{
    dgm_front_request *q = dgm_new(dgm_http_arena(x), dgm_front_request);
    dgm_err err = {0};
    q->x = x;
    dgm_route_match(user, r->method, r->path, q);
    if (q->route) {
        q->route->handle(q);
    } else if (q->allow) {
        q->front->refuse_method(q, q->allow);
    } else {
        dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "unknown path");
        q->reporter->refuse(q, &err, NULL, 0);
    }
}

static void check_response(const char *request, const char *status, const char *body)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)dgm_http_server_port(server)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[2000];
    size_t n = 0;
    ssize_t got;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    while ((got = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(fd);
    assert_non_null(strstr(text, status));
    assert_non_null(strstr(text, body));
}

static void requests_reach_the_frontend(void **state)
{
    dgm_http_options o = {.listen = "127.0.0.1:0"};
    dgm_route_tree *tree = dgm_route_tree_new(fronts);
    dgm_loops *loops;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_loops_new(1, &loops, &err), err);
    check_ok(dgm_http_server_new(loops, &o,
                                 (dgm_http_handler){.on_request = on_request, .user = tree},
                                 &server, &err),
             err);
    check_ok(dgm_http_server_start(server, &err), err);
    check_ok(dgm_loops_start(loops, &err), err);
#define HEAD " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    check_response("POST /agents/x/example/J%C3%BCrgen/greeting" HEAD "Content-Length: 2\r\n\r\nhi",
                   "HTTP/1.1 200 ", "{\"name\":\"J\xc3\xbcrgen\",\"text\":\"hi\"}");
    check_response("GET /example/x/greeting" HEAD "\r\n", "HTTP/1.1 405 ", "Allow: POST\r\n");
    check_response("GET /example/x" HEAD "\r\n", "HTTP/1.1 404 ", "{\"problem\":\"unknown path\"}");
    dgm_loops_free(loops);
    dgm_http_server_free(server);
    dgm_route_tree_free(tree);
}

DGM_TEST_MAIN(dgm_test(requests_reach_the_frontend))
