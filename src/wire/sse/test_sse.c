/* Server-Sent Events: what is an event, whatever the pieces it comes in. */
#include "base/arena.h"
#include "base/err.h"
#include "support/check.h"
#include "wire/sse/sse.h"

/* ---- helpers --------------------------------------------------------------------------------- */

/* Events as one text that can be compared: line:column [id] <event> data; then an error's code. */
static dgm_code drain(dgm_sse *s, dgm_buf *out)
{
    dgm_sse_event e;
    dgm_err err = {0};
    dgm_code rc;
    while ((rc = dgm_sse_next(s, &e, &err)) == DGM_OK && e.data.p) {
        dgm_buf_printf(out, "%zu:%zu", e.line, e.column);
        if (e.id.p)
            dgm_buf_printf(out, " [%.*s]", DGM_P(e.id));
        if (e.event.p)
            dgm_buf_printf(out, " <%.*s>", DGM_P(e.event));
        dgm_buf_add_char(out, ' ');
        dgm_buf_add_str(out, e.data);
        dgm_buf_add_char(out, ';');
    }
    if (rc)
        dgm_buf_printf(out, "line %zu: %s", err.line, err.msg);
    return rc;
}

static void feed(dgm_sse *s, const char *p, size_t n, dgm_buf *out)
{
    /* a copy of just that size: reading past it, or later, is seen by ASan */
    char *copy = dgm_xmalloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    dgm_sse_feed(s, copy, n);
    drain(s, out);
    free(copy);
}

/* One read of `first` bytes, then reads of `step`. */
static dgm_buf events_in(dgm_str text, size_t first, size_t step)
{
    dgm_sse s;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_sse_init(&s);
    for (size_t at = 0, n = first; at < text.n && !s.fault; at += n, n = step) {
        if (n > text.n - at)
            n = text.n - at;
        feed(&s, text.p + at, n, &out);
    }
    if (!s.fault) {
        dgm_sse_end(&s);
        drain(&s, &out);
    }
    dgm_sse_done(&s);
    return out;
}

static void check_events_of(dgm_str text, const char *want)
{
    for (size_t first = 0; first <= text.n; first++) {
        dgm_buf got = events_in(text, first, text.n);
        check_str(got, want);
        dgm_buf_done(&got);
    }
    for (size_t step = 1; step < 4; step++) {
        dgm_buf got = events_in(text, step, step);
        check_str(got, want);
        dgm_buf_done(&got);
    }
}

/* Whole, cut in two at every place, and in tiny pieces. */
#define check_events(lit, want) check_events_of(DGM_STR(lit), want)

/* ---- lines and fields -------------------------------------------------------------------------- */

static void a_blank_line_ends_an_event(void **state)
{
    (void)state;
    check_events("data: {\"a\":1}\n\ndata: 2\n\n\n\ndata: 3\n\n", "1:7 {\"a\":1};3:7 2;7:7 3;");
}

static void lines_end_with_lf_crlf_or_cr(void **state)
{
    (void)state;
    check_events("data: 1\r\n\r\ndata: 2\r\n\r\n", "1:7 1;3:7 2;");
    check_events("data: 1\r\rdata: 2\r\r", "1:7 1;3:7 2;");
    check_events("data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\ndata: 4\n\r", "1:7 1;3:7 2;5:7 3;7:7 4;");
}

static void one_space_behind_the_colon_is_dropped(void **state)
{
    (void)state;
    check_events("data:1\n\ndata: 2\n\ndata:  3\n\ndata:\t4\n\n", "1:6 1;3:7 2;5:7  3;7:6 \t4;");
}

static void data_lines_join_with_lf(void **state)
{
    (void)state;
    check_events("data: {\ndata:   \"a\": 1\ndata: }\n\n", "1:7 {\n  \"a\": 1\n};");
    check_events("data: a\ndata\ndata:\ndata: b\n\n", "1:7 a\n\n\nb;");
    check_events("data\ndata: b\n\n", "1:5 \nb;");
    check_events("data: a\nevent: x\ndata: b\n: c\nid: 1\ndata: c\n\n", "1:7 [1] <x> a\nb\nc;");
}

static void events_without_data_are_skipped(void **state)
{
    (void)state;
    check_events("data:\n\ndata\n\ndata: \n\nevent: a\n\nid: 1\n\ndata: x\n\n", "11:7 x;");
    check_events("", "");
    check_events("\n\r\n\r", "");
}

static void comments_and_unknown_fields_are_skipped(void **state)
{
    (void)state;
    check_events(": hello\n:\nfoo: bar\n data: no\nData: no\ndata : no\ndata: 1\n\n", "7:7 1;");
}

/* sse-starlette: CRLF, and a comment with the date every 15 s of silence */
static void pings_of_sse_starlette_are_skipped(void **state)
{
    (void)state;
    check_events(": ping - 2025-01-02 03:04:05.678901+00:00\r\n\r\n"
                 "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\r\n\r\n"
                 ": ping - 2025-01-02 03:04:20.678901+00:00\r\n\r\n"
                 "data: 2\r\n\r\n",
                 "4:7 <message> {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}};8:7 2;");
}

static void a_byte_order_mark_is_skipped_at_the_start_only(void **state)
{
    (void)state;
    check_events("\xef\xbb\xbf"
                 "data: 1\n\n\xef\xbb\xbf"
                 "data: 2\n\n",
                 "1:7 1;");
    check_events("\xef\xbb"
                 "data: 1\n\ndata: 2\n\n",
                 "3:7 2;");
    check_events("\xef\xbb", "");
}

static void the_end_of_input_ends_an_event(void **state)
{
    (void)state;
    check_events("data: 1\n\ndata: {\"a\":", "1:7 1;3:7 {\"a\":;");
    check_events("data: 1\n", "1:7 1;");
    check_events("data: 1\r", "1:7 1;");
    check_events("data: 1\nid: 7", "1:7 [7] 1;");
    check_events("data", "");
    check_events("id: 7", "");
}

static void an_id_belongs_to_its_event(void **state)
{
    (void)state;
    check_events("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "2:7 [1] a;4:7 b;7:7 [] c;");
}

static void an_id_with_nul_is_no_id(void **state)
{
    (void)state;
    check_events("id: 1\nid: a\0b\ndata: x\n\nid: a\0b\ndata: y\n\n", "3:7 [1] x;6:7 y;");
}

static void the_last_name_counts(void **state)
{
    (void)state;
    check_events("event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n", "5:7 [2] <b> x;");
    check_events("event: a\nevent:\ndata: x\n\n", "3:7 x;");
}

static void retry_is_stored_if_it_is_a_number(void **state)
{
    dgm_sse s;
    dgm_buf out;
    (void)state;
    dgm_buf_init(&out, 100);
    dgm_sse_init(&s);
    assert_int_equal(s.retry_ms, -1);
    feed(&s, "retry: x1\n", 10, &out);
    feed(&s, "retry: 99999999999999999999\n", 28, &out);
    feed(&s, "retry:\n", 7, &out);
    assert_int_equal(s.retry_ms, -1);
    feed(&s, "retry: 1500\n", 12, &out);
    assert_int_equal(s.retry_ms, 1500);
    assert_int_equal(out.n, 0);
    dgm_sse_done(&s);
    dgm_buf_done(&out);
}

/* ---- against the definition, done the slow way -------------------------------------------------- */

static void flush_slowly(dgm_buf *data, size_t n_data, dgm_buf *out)
{
    if (n_data && data->n) {
        dgm_buf_add_str(out, dgm_buf_str(data));
        dgm_buf_add_char(out, ';');
    }
    dgm_buf_clear(data);
}

static dgm_buf data_slowly(dgm_str text)
{
    dgm_buf out, data;
    size_t n_data = 0, end;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_buf_init(&data, SIZE_MAX);
    for (size_t at = 0; at < text.n; at = end + 1) {
        for (end = at; end < text.n && text.p[end] != '\n' && text.p[end] != '\r';)
            end++;
        dgm_str line = {text.p + at, end - at};
        if (!line.n) {
            flush_slowly(&data, n_data, &out);
            n_data = 0;
        } else if (dgm_str_is(line, "data") || dgm_str_starts(line, DGM_STR("data:"))) {
            size_t skip = line.n > 4 ? 5 : 4;
            skip += skip < line.n && line.p[skip] == ' ';
            if (n_data++)
                dgm_buf_add_char(&data, '\n');
            dgm_buf_add(&data, line.p + skip, line.n - skip);
        }
        if (end + 1 < text.n && text.p[end] == '\r' && text.p[end + 1] == '\n')
            end++;
    }
    flush_slowly(&data, n_data, &out);
    dgm_buf_done(&data);
    return out;
}

static dgm_buf data_in_random_pieces(dgm_str text)
{
    dgm_sse s;
    dgm_sse_event e;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_sse_init(&s);
    for (size_t at = 0, n; at <= text.n; at += n) {
        n = (size_t)rand() % 20;
        if (n > text.n - at)
            n = text.n - at;
        if (at == text.n)
            dgm_sse_end(&s);
        else
            dgm_sse_feed(&s, text.p + at, n);
        while (dgm_sse_next(&s, &e, NULL) == DGM_OK && e.data.p) {
            dgm_buf_add_str(&out, e.data);
            dgm_buf_add_char(&out, ';');
        }
        if (at == text.n)
            break;
    }
    dgm_sse_done(&s);
    return out;
}

static void random_text_has_the_result_of_the_definition(void **state)
{
    static const char *const words[] = {"data", "data:", "data: ", "\n",    "\r", "\r\n",
                                        "\n\n", "x",     ":",      "id: 1", " ",  "event: e"};
    dgm_buf text;
    (void)state;
    srand(7);
    dgm_buf_init(&text, SIZE_MAX);
    for (int round = 0; round < 20000; round++) {
        dgm_buf_clear(&text);
        for (int i = rand() % 30; i >= 0; i--)
            dgm_buf_add_str(&text, dgm_str_from(words[(size_t)rand() % 12]));
        dgm_buf want = data_slowly(dgm_buf_str(&text));
        dgm_buf got = data_in_random_pieces(dgm_buf_str(&text));
        check_same(got, want);
        dgm_buf_done(&want);
        dgm_buf_done(&got);
    }
    dgm_buf_done(&text);
}

/* ---- limits ------------------------------------------------------------------------------------ */

/* prefix, n times x, suffix */
static dgm_buf long_text(const char *prefix, size_t n, const char *suffix)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_str(&b, dgm_str_from(prefix));
    if (dgm_buf_room(&b, n))
        memset(b.p + b.n, 'x', n);
    b.n += n;
    dgm_buf_add_str(&b, dgm_str_from(suffix));
    return b;
}

/* How does reading it end? In one piece and in pieces of 64 KiB. */
static void check_ends(dgm_buf text, const char *want_limit)
{
    for (int whole = 0; whole < 2; whole++) {
        size_t step = whole ? text.n : 65536;
        dgm_buf got = events_in(dgm_buf_str(&text), step, step);
        dgm_buf_add_char(&got, 0);
        char *error = strstr(got.p, "line ");
        if (!want_limit && error)
            fail_msg("did not expect: %s", error);
        if (want_limit && (!error || !strstr(error, want_limit)))
            fail_msg("expected %s, got: %s", want_limit, error ? error : "no error");
        dgm_buf_done(&got);
    }
    dgm_buf_done(&text);
}

static void a_line_over_the_limit_is_refused(void **state)
{
    (void)state;
    check_ends(long_text(": ", DGM_MAX_SSE_LINE_BYTES - 2, "\n\n"), NULL);
    check_ends(long_text(": ", DGM_MAX_SSE_LINE_BYTES - 1, "\n\n"), "sse_line_bytes");
    check_ends(long_text(": ", DGM_MAX_SSE_LINE_BYTES * 2, ""), "sse_line_bytes");
}

static void data_over_the_limit_is_refused(void **state)
{
    (void)state;
    check_ends(long_text("data: ", DGM_MAX_RECORD_BYTES, "\n\n"), NULL);
    check_ends(long_text("data: ", DGM_MAX_RECORD_BYTES + 1, "\n\n"), "record_bytes");
    check_ends(long_text("data: ", DGM_MAX_RECORD_BYTES - 2, "\ndata: y\n\n"), NULL);
    check_ends(long_text("data: ", DGM_MAX_RECORD_BYTES - 1, "\ndata: y\n\n"), "record_bytes");
    check_ends(long_text("data: y\ndata: ", DGM_MAX_RECORD_BYTES - 1, "\n\n"), "record_bytes");
}

static void an_id_over_the_limit_is_refused(void **state)
{
    (void)state;
    check_ends(long_text("data: 1\nid: ", DGM_MAX_ID_BYTES, "\n\n"), NULL);
    check_ends(long_text("data: 1\nid: ", DGM_MAX_ID_BYTES + 1, "\n\n"), "id_bytes");
    check_ends(long_text("data: 1\nevent: ", DGM_MAX_ID_BYTES + 1, "\n\n"), "id_bytes");
    check_ends(long_text("data: 1\nid: ", DGM_MAX_ID_BYTES + 1, ""), "id_bytes");
}

static void a_fault_is_final_and_names_its_line(void **state)
{
    dgm_buf text = long_text("data: 1\n\n\nid: ", DGM_MAX_ID_BYTES + 1, "\n\ndata: 2\n\n");
    dgm_sse_event e;
    dgm_err err = {0};
    dgm_sse s;
    (void)state;
    dgm_sse_init(&s);
    dgm_sse_feed(&s, text.p, text.n);
    check_ok(dgm_sse_next(&s, &e, &err), err);
    check_str(e.data, "1");
    for (int i = 0; i < 2; i++) {
        check_fails(dgm_sse_next(&s, &e, &err), DGM_TOO_LARGE, err, "");
        assert_int_equal(err.line, 4);
        assert_null(e.data.p);
    }
    dgm_sse_done(&s);
    dgm_buf_done(&text);
}

static void a_long_line_byte_by_byte_costs_no_more_than_its_length(void **state)
{
    dgm_buf text = long_text("data: ", DGM_MAX_RECORD_BYTES, "\n\n");
    dgm_sse_event e = {0};
    dgm_sse s;
    (void)state;
    dgm_sse_init(&s);
    for (size_t i = 0; i < text.n; i++) {
        assert_null(e.data.p);
        dgm_sse_feed(&s, text.p + i, 1);
        assert_int_equal(dgm_sse_next(&s, &e, NULL), DGM_OK);
    }
    assert_int_equal(e.data.n, DGM_MAX_RECORD_BYTES);
    assert_int_equal(dgm_sse_next(&s, &e, NULL), DGM_OK);
    assert_true(s.hold.cap <= 65536); /* and the memory is gone when the event is */
    dgm_sse_done(&s);
    dgm_buf_done(&text);
}

static void an_event_in_one_read_is_not_copied(void **state)
{
    static const char text[] = "data: abc\n\n";
    dgm_sse_event e;
    dgm_sse s;
    (void)state;
    dgm_sse_init(&s);
    dgm_sse_feed(&s, text, sizeof text - 1);
    assert_int_equal(dgm_sse_next(&s, &e, NULL), DGM_OK);
    assert_ptr_equal(e.data.p, text + 6);
    dgm_sse_done(&s);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void check_put(dgm_str id, dgm_str event, dgm_str data, const char *want)
{
    dgm_buf b;
    dgm_buf_init(&b, 1000);
    dgm_sse_put(&b, id, event, data);
    check_str(b, want);
    dgm_buf_done(&b);
}

static void an_event_is_written_with_lf(void **state)
{
    dgm_str none = {0};
    (void)state;
    check_put(none, none, DGM_STR("{}"), "data: {}\n\n");
    check_put(DGM_STR("7"), DGM_STR("error"), DGM_STR("{}"), "id: 7\nevent: error\ndata: {}\n\n");
    check_put(none, none, none, "data: \n\n");
}

static void line_ends_in_data_start_another_data_line(void **state)
{
    dgm_str none = {0};
    (void)state;
    check_put(none, none, DGM_STR("a\nb\r\nc\rd\n\n"),
              "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n");
    check_put(none, none, DGM_STR("\r\n"), "data: \ndata: \n\n");
}

static void names_that_would_break_the_line_are_left_out(void **state)
{
    (void)state;
    check_put(DGM_STR("1\ndata: x"), DGM_STR("a\rb"), DGM_STR("1"), "data: 1\n\n");
    check_put(DGM_STR("1\0"), DGM_STR("a"), DGM_STR("1"), "event: a\ndata: 1\n\n");
}

static void comments_stay_in_one_line(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1000);
    dgm_sse_put_comment(&b, DGM_STR("ping"));
    dgm_sse_put_comment(&b, DGM_STR("a\r\ndata: b"));
    dgm_sse_put_comment(&b, (dgm_str){0});
    check_str(b, ": ping\n\n: a data: b\n\n:\n\n");
    dgm_buf_done(&b);
}

static void what_is_written_reads_back(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1000);
    dgm_sse_put(&b, DGM_STR("1"), DGM_STR("e"), DGM_STR(" a\n\nb:c\n"));
    dgm_sse_put_comment(&b, DGM_STR("ping"));
    dgm_sse_put(&b, DGM_STR(""), (dgm_str){0}, DGM_STR("{\"x\":\"\xc3\xa9\"}"));
    check_events_of(dgm_buf_str(&b), "3:7 [1] <e>  a\n\nb:c\n;11:7 [] {\"x\":\"\xc3\xa9\"};");
    dgm_buf_done(&b);
}

/* Some readers treat them as line ends, so they are always written as escapes. */
static void unusual_line_ends_are_escaped(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}, {"\xc2\x85", "\\u0085"}};
    (void)state;
    char lead[150];
    memset(lead, 'a', sizeof lead);
    for (size_t at = 0; at < sizeof lead; at++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            dgm_buf b, want, fast;
            dgm_buf_init(&fast, SIZE_MAX);
            dgm_buf_init(&b, SIZE_MAX);
            dgm_buf_init(&want, SIZE_MAX);
            dgm_buf_printf(&b, "%.*s%s \u20ac\u00e9 %s", (int)at, lead, rows[i].in, rows[i].in);
            dgm_buf_printf(&want, "%.*s%s \u20ac\u00e9 %s", (int)at, lead, rows[i].out,
                           rows[i].out);
            dgm_sse_put_json(&fast, at % 2 ? DGM_STR("e") : (dgm_str){0}, dgm_buf_str(&b));
            dgm_sse_escape_line_ends(&b, 0);
            check_same(b, want);
            dgm_buf_clear(&b); /* the same, written in place */
            size_t data = dgm_sse_start(&b, (dgm_str){0}, at % 2 ? DGM_STR("e") : (dgm_str){0});
            dgm_buf_add_str(&b, dgm_buf_str(&want));
            dgm_sse_end_data(&b, data, false);
            check_same(fast, b);
            dgm_buf_done(&fast);
            dgm_buf_done(&b);
            dgm_buf_done(&want);
        }
    }
}

DGM_TEST_MAIN(dgm_test(a_blank_line_ends_an_event), dgm_test(lines_end_with_lf_crlf_or_cr),
              dgm_test(one_space_behind_the_colon_is_dropped), dgm_test(data_lines_join_with_lf),
              dgm_test(events_without_data_are_skipped),
              dgm_test(comments_and_unknown_fields_are_skipped),
              dgm_test(pings_of_sse_starlette_are_skipped),
              dgm_test(a_byte_order_mark_is_skipped_at_the_start_only),
              dgm_test(the_end_of_input_ends_an_event), dgm_test(an_id_belongs_to_its_event),
              dgm_test(an_id_with_nul_is_no_id), dgm_test(the_last_name_counts),
              dgm_test(retry_is_stored_if_it_is_a_number),
              dgm_test(random_text_has_the_result_of_the_definition),
              dgm_test(a_line_over_the_limit_is_refused), dgm_test(data_over_the_limit_is_refused),
              dgm_test(an_id_over_the_limit_is_refused),
              dgm_test(a_fault_is_final_and_names_its_line),
              dgm_test(a_long_line_byte_by_byte_costs_no_more_than_its_length),
              dgm_test(an_event_in_one_read_is_not_copied), dgm_test(an_event_is_written_with_lf),
              dgm_test(line_ends_in_data_start_another_data_line),
              dgm_test(unusual_line_ends_are_escaped),
              dgm_test(names_that_would_break_the_line_are_left_out),
              dgm_test(comments_stay_in_one_line), dgm_test(what_is_written_reads_back))
