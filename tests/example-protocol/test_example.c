/* test_example.c - conversions with the example's codec; a server with the example's frontend, and requests to it. */
#include "example_codec.h"
#include "example_front.h"
#include "frontend/route.h"
#include "support/check.h"
#include "wire/formats.h"
#include "wire/stream.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the codec --------------------------------------------------------------------------------------------- */

static dgm_code add_line(void *arg, dgm_str name, dgm_str payload)
{
    (void)name;
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

/* values: of `from`, one in each line. */
static void check_conversion(const dgm_codec *from, const dgm_codec *to, const char *values,
                             const char *expected)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_auto(dgm_stream_free) dgm_stream *stream = dgm_stream_new(&(dgm_stream_options){
        .to = to, .form = DGM_FORM_EVENTS, .many_tasks = true, .sink = {add_line, &out}});
    for (const char *line = values, *end; *line; line = end + 1) {
        yyjson_val *v;
        dgm_frame frame;
        end = strchr(line, '\n');
        check_ok(dgm_json_read(a, (dgm_str){line, (size_t)(end - line)}, 1000, "", &v, &err), err);
        if (!from->decode) {
            check_ok(dgm_stream_value(stream, from, &r, v), err);
            continue;
        }
        check_ok(from->decode(&r, v, DGM_OBJECT_NONE, true, &frame), err);
        check_ok(dgm_stream_object(stream, &frame.object, a, &err), err);
    }
    check_ok(dgm_stream_end(stream, &err), err);
    dgm_buf_add_char(&out, 0);
    assert_string_equal(out.p, expected);
    dgm_buf_done(&out);
}

static void values_convert_to_and_from_other_formats(void **state)
{
    const dgm_codec *a2a = dgm_codec_by_name("a2a-1.0", NULL);
    (void)state;
#define STREAM "{\"type\":\"start\"}\n{\"type\":\"text\",\"text\":\"Hi\"}\n"
    check_conversion(a2a, &dgm_codec_example,
                     "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"
                     "STATE_WORKING\"}}}\n"
                     "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{"
                     "\"artifactId\":\"a\","
                     "\"parts\":[{\"text\":\"Hi\"}]}}}\n"
                     "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                     "{\"state\":\"TASK_STATE_COMPLETED\"}}}\n",
                     STREAM "{\"type\":\"end\"}\n");
    check_conversion(&dgm_codec_example, &dgm_codec_example, STREAM "{\"type\":\"end\"}\n",
                     STREAM "{\"type\":\"end\"}\n");
    check_conversion(&dgm_codec_example, &dgm_codec_example, STREAM,
                     STREAM "{\"type\":\"end\",\"problem\":\"the stream was cut\"}\n");
}

/* ---- the frontend ------------------------------------------------------------------------------------------ */

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

DGM_TEST_MAIN(dgm_test(values_convert_to_and_from_other_formats),
              dgm_test(requests_reach_the_frontend))
