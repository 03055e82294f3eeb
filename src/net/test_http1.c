#include "net/http1.h"

#include "base/limits.h"
#include "support/check.h"

#define HOST "Host: a\r\n"

/* Feeds pieces of `step` bytes (0: all at once), each in memory of its own so that ASan sees what is
 * kept too long. Returns how it ended; what was used in *used. */
static dgm_http1_step feed(dgm_http1 *h, const char *p, size_t n, size_t step, size_t *used)
{
    dgm_http1_step s = DGM_HTTP1_MORE;
    *used = 0;
    while (*used < n && (s == DGM_HTTP1_MORE || s == DGM_HTTP1_CONTINUE)) {
        size_t k = step && step < n - *used ? step : n - *used, took;
        char *copy = malloc(k);
        memcpy(copy, p + *used, k);
        s = dgm_http1_feed(h, copy, k, &took);
        free(copy);
        *used += took;
    }
    return s;
}

static dgm_http1 *parser(dgm_arena *a)
{
    dgm_http1 *h = dgm_new(a, dgm_http1);
    dgm_http1_init(h, a, DGM_MAX_HTTP_BODY_BYTES);
    return h;
}

/* ---- what is taken ----------------------------------------------------------------------------------------- */

static void a_request_is_read(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char text[] =
        "POST /a/b%20c?x=1&y HTTP/1.1\r\nHost: example.org:8484\r\nX-Odd:  two words \t\r\n"
        "Empty:\r\nCONTENT-length: 5\r\n\r\nhello";
    (void)state;
    for (size_t step = 0; step < 12; step++) {
        dgm_http1 *h = parser(a);
        size_t used;
        assert_int_equal(feed(h, text, sizeof text - 1, step, &used), DGM_HTTP1_REQUEST);
        assert_int_equal(used, sizeof text - 1);
        check_str(h->request.method, "POST");
        check_str(h->request.target, "/a/b%20c?x=1&y");
        check_str(h->request.path, "/a/b%20c");
        check_str(h->request.query, "x=1&y");
        check_str(h->request.body, "hello");
        assert_int_equal(h->request.n_headers, 4);
        check_str(h->request.headers[1].name, "x-odd");
        check_str(h->request.headers[1].value, "two words");
        check_str(dgm_http_header_of(&h->request, DGM_STR("empty")), "");
        check_str(dgm_http_header_of(&h->request, DGM_STR("host")), "example.org:8484");
        assert_null(dgm_http_header_of(&h->request, DGM_STR("cookie")).p);
        assert_true(h->keep_alive);
        assert_false(h->is_http10);
        dgm_arena_reset(a);
    }
}

static void the_next_request_is_left_alone(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const first[] = {
        "GET / HTTP/1.1\r\n" HOST "\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n2;x=\"y\"\r\nab\r\n1\r\nc\r\n"
        "0\r\nX-Trailer: 1\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n"
        "\r\nabc",
    };
    (void)state;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        char text[500];
        int n = snprintf(text, sizeof text, "%sGET /next HTTP/1.1\r\n" HOST "\r\n", first[i]);
        for (size_t step = 0; step < 4; step++) {
            dgm_http1 *h = parser(a);
            size_t used;
            assert_int_equal(feed(h, text, (size_t)n, step, &used), DGM_HTTP1_REQUEST);
            assert_int_equal(used, strlen(first[i]));
            check_str(h->request.path, "/");
            if (dgm_str_is(h->request.method, "POST"))
                check_str(h->request.body, "abc");
            h = parser(a);
            assert_int_equal(feed(h, text + used, (size_t)n - used, step, &used),
                             DGM_HTTP1_REQUEST);
            check_str(h->request.path, "/next");
            dgm_arena_reset(a);
        }
    }
}

static void targets_have_four_forms(void **state)
{
    static const struct {
        const char *line, *path, *query, *host;
    } rows[] = {
        {"GET /x HTTP/1.1", "/x", NULL, "a"},
        {"GET /x? HTTP/1.1", "/x", "", "a"},
        {"OPTIONS * HTTP/1.1", "*", NULL, "a"},
        {"GET http://b:81/y?z HTTP/1.1", "/y", "z", "b:81"}, /* Host is overruled, RFC 9112 3.2.2 */
        {"GET HTTPS://[::1]:81 HTTP/1.1", "/", NULL, "[::1]:81"},
        {"GET http://b?z HTTP/1.1", "/", "z", "b"},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        size_t used;
        int n = snprintf(text, sizeof text, "%s\r\n" HOST "\r\n", rows[i].line);
        dgm_http1 *h = parser(a);
        assert_int_equal(feed(h, text, (size_t)n, 0, &used), DGM_HTTP1_REQUEST);
        check_str(h->request.path, rows[i].path);
        if (rows[i].query)
            check_str(h->request.query, rows[i].query);
        else
            assert_null(h->request.query.p);
        check_str(dgm_http_header_of(&h->request, DGM_STR("host")), rows[i].host);
    }
}

static void keep_alive_is_the_versions_default_or_the_headers_word(void **state)
{
    static const struct {
        const char *text;
        bool keep_alive, is_http10;
    } rows[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", true, false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false, false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n", false, false},
        {"GET / HTTP/1.0\r\n\r\n", false, true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, true},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t used;
        dgm_http1 *h = parser(a);
        assert_int_equal(feed(h, rows[i].text, strlen(rows[i].text), 0, &used), DGM_HTTP1_REQUEST);
        assert_int_equal(h->keep_alive, rows[i].keep_alive);
        assert_int_equal(h->is_http10, rows[i].is_http10);
    }
}

static void a_client_that_expects_100_gets_it_once_and_only_if_it_waits(void **state)
{
    static const char head[] =
        "POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t used;
    (void)state;
    dgm_http1 *h = parser(a);
    assert_int_equal(feed(h, head, sizeof head - 1, 0, &used), DGM_HTTP1_CONTINUE);
    assert_int_equal(dgm_http1_feed(h, "h", 1, &used), DGM_HTTP1_MORE);
    assert_int_equal(dgm_http1_feed(h, "i", 1, &used), DGM_HTTP1_REQUEST);
    check_str(h->request.body, "hi");

    char both[200];
    int n = snprintf(both, sizeof both, "%sh", head);
    h = parser(a);
    assert_int_equal(feed(h, both, (size_t)n, 0, &used), DGM_HTTP1_MORE);
}

/* What a head decides is decided before its body; a request in one piece is not stopped. */
static void it_stops_once_between_head_and_body(void **state)
{
    static const char *const heads[] = {"Content-Length: 3\r\n",
                                        "Content-Length: 3\r\nExpect: 100-continue\r\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = parser(a);
        char text[200];
        int n = snprintf(text, sizeof text, "POST /x HTTP/1.1\r\n" HOST "%s\r\n", heads[i]);
        size_t used;
        h->stops_at_head = true;
        assert_int_equal(dgm_http1_feed(h, text, (size_t)n - 1, &used), DGM_HTTP1_MORE);
        assert_int_equal(dgm_http1_feed(h, text + n - 1, 1, &used), DGM_HTTP1_HEAD);
        check_str(h->request.path, "/x");
        assert_int_equal(dgm_http1_feed(h, text, 0, &used),
                         i ? DGM_HTTP1_CONTINUE : DGM_HTTP1_MORE);
        assert_true(dgm_http1_set_max_body(h, 3));
        assert_false(dgm_http1_set_max_body(h, 2));
        assert_int_equal(dgm_http1_feed(h, "abc", 3, &used), DGM_HTTP1_REQUEST);
        h = parser(a);
        h->stops_at_head = true;
        n += snprintf(text + n, sizeof text - (size_t)n, "abc");
        assert_int_equal(dgm_http1_feed(h, text, (size_t)n, &used), DGM_HTTP1_REQUEST);
    }
}

/* ---- what is refused -------------------------------------------------------------------------------------- */

struct bad {
    const char *name;
    int status;
    const char *text;
    size_t n;
};
#define BAD(name, status, text)                                                                    \
    {                                                                                              \
        name, status, text, sizeof(text) - 1                                                       \
    }
#define GET(headers) "GET / HTTP/1.1\r\n" HOST headers "\r\n"
#define POST(headers, body) "POST / HTTP/1.1\r\n" HOST headers "\r\n" body
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const struct bad bads[] = {
    BAD("length and chunked", 400, POST("Content-Length: 3\r\n" CHUNKED, "0\r\n\r\n")),
    BAD("chunked and length", 400, POST(CHUNKED "Content-Length: 3\r\n", "0\r\n\r\n")),
    BAD("two lengths that differ", 400, POST("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")),
    BAD("two lengths that agree", 400, POST("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")),
    BAD("a list of lengths", 400, POST("Content-Length: 3, 3\r\n", "abc")),
    BAD("a length with a sign", 400, POST("Content-Length: +3\r\n", "abc")),
    BAD("a negative length", 400, POST("Content-Length: -3\r\n", "abc")),
    BAD("a hexadecimal length", 400, POST("Content-Length: 0x3\r\n", "abc")),
    BAD("an empty length", 400, POST("Content-Length:\r\n", "abc")),
    BAD("a length of 20 digits", 400, POST("Content-Length: 99999999999999999999\r\n", "abc")),
    BAD("a space before the colon", 400, POST("Content-Length : 3\r\n", "abc")),
    BAD("chunked twice", 400, POST(CHUNKED CHUNKED, "0\r\n\r\n")),
    BAD("gzip, chunked", 501, POST("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")),
    BAD("chunked, gzip", 400, POST("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")),
    BAD("identity", 501, POST("Transfer-Encoding: identity\r\n", "abc")),
    BAD("a misspelt chunked", 501, POST("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
    BAD("a vertical tab before chunked", 400,
        POST("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n")),
    BAD("an encoding without a value beside a length", 400,
        POST("Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc")),
    BAD("an encoding of blanks beside a length", 400,
        POST("Content-Length: 3\r\nTransfer-Encoding: \t \r\n", "abc")),
    BAD("an encoding without a value", 501, POST("Transfer-Encoding:\r\n", "abc")),
    BAD("chunked, then an empty encoding", 400,
        POST(CHUNKED "Transfer-Encoding:\r\n", "0\r\n\r\n")),
    BAD("chunked in HTTP/1.0", 400, "POST / HTTP/1.0\r\n" CHUNKED "\r\n0\r\n\r\n"),
    BAD("obsolete folding", 400, GET("X: a\r\n b\r\n")),
    BAD("folding behind the request line", 400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    BAD("bare LF everywhere", 400, "GET / HTTP/1.1\nHost: a\n\n"),
    BAD("bare LF behind a header", 400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
    BAD("bare LF at the head's end", 400, "GET / HTTP/1.1\r\nHost: a\r\n\nGET"),
    BAD("bare CR in a value", 400, GET("X: b\rc\r\n")),
    BAD("bare CR at the head's end", 400, "GET / HTTP/1.1\r\nHost: a\r\n\rXGET / HTTP/1.1"),
    BAD("NUL in a value", 400, GET("X: b\0c\r\n")),
    BAD("NUL in a name", 400, GET("X\0Y: b\r\n")),
    BAD("NUL in the target", 400, "GET /\0 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a control character in a value", 400, GET("X: b\x01\r\n")),
    BAD("a header without colon", 400, GET("nocolon\r\n")),
    BAD("a header without name", 400, GET(": x\r\n")),
    BAD("no Host", 400, "GET / HTTP/1.1\r\n\r\n"),
    BAD("two Hosts", 400, GET("Host: a\r\n")),
    BAD("an empty Host", 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    BAD("a Host with a path", 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    BAD("a Host with a user", 400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    BAD("a Host with a space", 400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    BAD("a Host with a word as port", 400, "GET / HTTP/1.1\r\nHost: a:http\r\n\r\n"),
    BAD("a Host with half a bracket", 400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    BAD("a Host with text behind the bracket", 400, "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"),
    BAD("a target that names a user", 400, "GET http://u@b/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a target of another scheme", 400, "GET ftp://b/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a target that is a word", 400, "GET foo HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a target with a fragment", 400, "GET /a#b HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a target that is not ASCII", 400, "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("target * for GET", 400, "GET * HTTP/1.1\r\n" HOST "\r\n"),
    BAD("CONNECT", 501, "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("HTTP/0.9", 505, "GET /\r\n\r\n"),
    BAD("HTTP/1.2", 505, "GET / HTTP/1.2\r\n" HOST "\r\n"),
    BAD("HTTP/2 without its preface", 505, "GET / HTTP/2.0\r\n" HOST "\r\n"),
    BAD("the preface of HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BAD("RTSP", 505, "GET / RTSP/1.0\r\n" HOST "\r\n"),
    BAD("Icecast", 505, "SOURCE /x ICE/1.0\r\n" HOST "\r\n"),
    BAD("two blanks before the target", 400, "GET  / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a blank line, then two blanks", 400, "\r\nPOST  / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("two blanks before the version", 400, "GET /  HTTP/1.1\r\n" HOST "\r\n"),
    BAD("a method in lower case", 400, "get / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("an unknown method", 400, "FOO / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("the beginning of TLS", 400, "\x16\x03\x01\x02"),
    BAD("garbage", 400, "\xff\xfe\xfd"),
    BAD("a chunk size with LF", 400, POST(CHUNKED, "3\nabc\r\n0\r\n\r\n")),
    BAD("a chunk size with a space", 400, POST(CHUNKED, "3 \r\nabc\r\n0\r\n\r\n")),
    BAD("a chunk size with 0x", 400, POST(CHUNKED, "0x3\r\nabc\r\n0\r\n\r\n")),
    BAD("a chunk size with a sign", 400, POST(CHUNKED, "-3\r\nabc\r\n0\r\n\r\n")),
    BAD("a chunk size that overflows", 400, POST(CHUNKED, "fffffffffffffffff\r\nabc")),
    BAD("a chunk that cannot fit", 413, POST(CHUNKED, "ffffffffffffffff\r\n")),
    BAD("a second chunk that cannot fit", 413, POST(CHUNKED, "3\r\nabc\r\n1fffffe\r\n")),
    BAD("an empty chunk size", 400, POST(CHUNKED, "\r\nabc")),
    BAD("a chunk longer than it says", 400, POST(CHUNKED, "3\r\nabcd\r\n0\r\n\r\n")),
    BAD("LF in a chunk extension", 400, POST(CHUNKED, "3;e=\n1\r\nabc\r\n0\r\n\r\n")),
    BAD("another expectation", 417, POST("Expect: tea\r\nContent-Length: 1\r\n", "x")),
    BAD("a body over the limit", 413, POST("Content-Length: 33554433\r\n", "")),
};

static void it_is_refused(void **state)
{
    const struct bad *b = *state;
    for (size_t step = 0; step < 3; step++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = parser(a);
        size_t used;
        dgm_http1_step s = feed(h, b->text, b->n, step, &used);
        if (s != DGM_HTTP1_REFUSED || h->status != b->status)
            print_error("step %zu: %d, status %d (%s)\n", step, s, h->status, h->why ? h->why : "");
        assert_int_equal(s, DGM_HTTP1_REFUSED);
        assert_int_equal(h->status, b->status);
        assert_true(h->why && *h->why);
        assert_int_equal(dgm_http1_feed(h, "GET", 3, &used), DGM_HTTP1_REFUSED);
    }
}

/* ---- limits ------------------------------------------------------------------------------------------------ */

/* A request whose head is exactly n bytes */
static char *head_of(size_t n)
{
    static const char front[] = "GET / HTTP/1.1\r\n" HOST "X: ";
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    memcpy(text, front, sizeof front - 1);
    memcpy(text + n - 4, "\r\n\r\n", 5);
    return text;
}

static void a_head_may_have_its_limit_and_not_a_byte_more(void **state)
{
    (void)state;
    for (size_t step = 0; step < 3000; step += 999) {
        for (size_t more = 0; more < 2; more++) {
            dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
            dgm_http1 *h = parser(a);
            char *text = head_of(DGM_MAX_HTTP_HEADER_BYTES + more);
            size_t used;
            assert_int_equal(feed(h, text, DGM_MAX_HTTP_HEADER_BYTES + more, step, &used),
                             more ? DGM_HTTP1_REFUSED : DGM_HTTP1_REQUEST);
            assert_int_equal(h->status, more ? 431 : 0);
            free(text);
        }
    }
}

static void a_head_may_have_so_many_lines(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = parser(a);
        dgm_buf text;
        size_t used;
        dgm_buf_init(&text, SIZE_MAX);
        dgm_buf_add_lit(&text, "GET / HTTP/1.1\r\n" HOST);
        for (size_t i = 1; i < DGM_MAX_HTTP_HEADERS + more; i++)
            dgm_buf_printf(&text, "X-%zu: %zu\r\n", i, i);
        dgm_buf_add_lit(&text, "\r\n");
        assert_int_equal(feed(h, text.p, text.n, 0, &used),
                         more ? DGM_HTTP1_REFUSED : DGM_HTTP1_REQUEST);
        assert_int_equal(h->status, more ? 431 : 0);
        if (!more)
            check_str(dgm_http_header_of(&h->request, DGM_STR("x-99")), "99");
        dgm_buf_done(&text);
    }
}

static void a_chunked_body_meets_its_limit_as_it_comes(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = dgm_new(a, dgm_http1);
        dgm_buf text;
        size_t used;
        dgm_http1_init(h, a, 100000);
        dgm_buf_init(&text, SIZE_MAX);
        dgm_buf_add_lit(&text, "POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n");
        for (size_t i = 0; i < 10; i++)
            dgm_buf_printf(&text, "%zx\r\n%*zu\r\n", (size_t)10000 + (i == 9) * more,
                           (int)(10000 + (i == 9) * more), i);
        dgm_buf_add_lit(&text, "0\r\n\r\n");
        assert_int_equal(feed(h, text.p, text.n, 7001, &used),
                         more ? DGM_HTTP1_REFUSED : DGM_HTTP1_REQUEST);
        assert_int_equal(h->status, more ? 413 : 0);
        if (!more)
            assert_int_equal(h->request.body.n, 100000);
        dgm_buf_done(&text);
    }
}

static void endless_chunk_extensions_and_trailers_are_refused(void **state)
{
    static const char *const fronts[] = {
        "POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n1;x=",
        "POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n1;",
        "POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nX: ",
        "POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n",
    };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = parser(a);
        size_t used;
        char xs[1000];
        memset(xs, 'x', sizeof xs);
        assert_int_equal(feed(h, fronts[i], strlen(fronts[i]), 0, &used), DGM_HTTP1_MORE);
        dgm_http1_step s = DGM_HTTP1_MORE;
        for (int k = 0; k < 40 && s == DGM_HTTP1_MORE; k++)
            s = dgm_http1_feed(h, xs, sizeof xs, &used);
        assert_int_equal(s, DGM_HTTP1_REFUSED);
        assert_int_equal(h->status, 431);
    }
}

static void a_large_body_grows_as_it_comes(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_http1 *h = parser(a);
    static const char head[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 20000000\r\n\r\n";
    size_t used;
    (void)state;
    assert_int_equal(feed(h, head, sizeof head - 1, 0, &used), DGM_HTTP1_MORE);
    assert_true(dgm_arena_used(a) < 4096);
    assert_true(h->body.cap == 0); /* what is only announced costs nothing */
}

static void a_body_may_go_on_with_any_byte(void **state)
{
    static const char head[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 6000\r\n\r\n";
    (void)state;
    for (int byte = 0; byte < 256; byte++) { /* 0x16 is how TLS begins */
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_http1 *h = parser(a);
        char body[3000];
        size_t used;
        memset(body, byte, sizeof body);
        assert_int_equal(feed(h, head, sizeof head - 1, 0, &used), DGM_HTTP1_MORE);
        assert_int_equal(dgm_http1_feed(h, body, sizeof body, &used), DGM_HTTP1_MORE);
        assert_int_equal(dgm_http1_feed(h, body, sizeof body, &used), DGM_HTTP1_REQUEST);
        assert_int_equal(h->request.body.n, 6000);
    }
}

#define N_BADS (sizeof bads / sizeof *bads)
int main(void)
{
    struct CMUnitTest tests[N_BADS + 16] = {
        dgm_test(a_request_is_read),
        dgm_test(the_next_request_is_left_alone),
        dgm_test(targets_have_four_forms),
        dgm_test(keep_alive_is_the_versions_default_or_the_headers_word),
        dgm_test(a_client_that_expects_100_gets_it_once_and_only_if_it_waits),
        dgm_test(it_stops_once_between_head_and_body),
        dgm_test(a_head_may_have_its_limit_and_not_a_byte_more),
        dgm_test(a_head_may_have_so_many_lines),
        dgm_test(a_chunked_body_meets_its_limit_as_it_comes),
        dgm_test(endless_chunk_extensions_and_trailers_are_refused),
        dgm_test(a_large_body_grows_as_it_comes),
        dgm_test(a_body_may_go_on_with_any_byte),
    };
    char names[N_BADS][80];
    size_t n = 11;
    for (size_t i = 0; i < N_BADS; i++) {
        snprintf(names[i], sizeof names[i], "refused: %s", bads[i].name);
        tests[n++] = (struct CMUnitTest)dgm_test_with(names[i], it_is_refused, &bads[i]);
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("http1", tests, n, NULL, NULL);
}
