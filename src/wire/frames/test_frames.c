/* Texts of single values out of any input, whatever the pieces it comes in. */
#include "base/arena.h"
#include "base/err.h"
#include "frames_int.h"
#include "support/check.h"

/* ---- helpers --------------------------------------------------------------------------------- */

/* What a parser would say of a guess, as far as it matters here. */
static bool is_one_value(dgm_str text)
{
    dgm_frames_scan s = {0};
    bool ended;
    return dgm_frames_scan_plain(&s, text.p, text.n, &ended) == text.n && ended;
}

/* Items as one text that can be compared: line:column, `=` if alone, `!` if [DONE], [id] <event>. */
static dgm_code drain(dgm_frames *f, dgm_buf *out)
{
    dgm_frames_item it;
    dgm_err err = {0};
    dgm_code rc;
    while ((rc = dgm_frames_next(f, &it, &err)) == DGM_OK && it.text.p) {
        if (it.guess && !is_one_value(it.text)) {
            dgm_frames_retry(f);
            continue;
        }
        dgm_buf_printf(out, "%zu:%zu%s%s", it.line, it.column, it.alone ? "=" : "",
                       it.done ? "!" : "");
        if (it.sse_id.p)
            dgm_buf_printf(out, "[%.*s]", DGM_P(it.sse_id));
        if (it.sse_event.p)
            dgm_buf_printf(out, "<%.*s>", DGM_P(it.sse_event));
        dgm_buf_add_char(out, ' ');
        dgm_buf_add_str(out, it.text);
        dgm_buf_add_char(out, '|');
    }
    if (rc)
        dgm_buf_printf(out, "error at %zu:%zu: %s", err.line, err.column, err.msg);
    return rc;
}

static dgm_code feed(dgm_frames *f, const char *p, size_t n, dgm_buf *out)
{
    /* a copy of just that size: reading past it, or later, is seen by ASan */
    char *copy = dgm_xmalloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    dgm_frames_feed(f, copy, n);
    dgm_code rc = drain(f, out);
    free(copy);
    return rc;
}

struct how {
    size_t first, step; /* one read of `first` bytes, then reads of `step`; 0: random ones */
    bool at_once;
    bool end_early; /* dgm_frames_end() is called before the last bytes are read */
};

static dgm_buf items_in(dgm_str text, struct how how)
{
    dgm_frames f;
    dgm_buf out;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_frames_init(&f, how.at_once);
    for (size_t at = 0, n = how.first; at < text.n && !rc;) {
        if (n > text.n - at)
            n = text.n - at;
        if (how.end_early && at + n == text.n) {
            dgm_frames_feed(&f, text.p + at, n);
            break;
        }
        rc = feed(&f, text.p + at, n, &out);
        at += n;
        n = how.step ? how.step : (size_t)rand() % 100;
    }
    if (!rc) {
        dgm_frames_end(&f);
        rc = drain(&f, &out);
        if (!rc)
            drain(&f, &out); /* and nothing more, however often one asks */
    }
    dgm_frames_done(&f);
    return out;
}

static void check_one(dgm_str text, struct how how, const char *want)
{
    dgm_buf got = items_in(text, how);
    check_str(got, want);
    dgm_buf_done(&got);
}

/* Whole, cut in two at every place, and in tiny pieces. */
static void check_items_of(dgm_str text, bool at_once, const char *want)
{
    for (size_t first = 0; first <= text.n; first++) {
        check_one(text, (struct how){first, text.n, at_once, false}, want);
        check_one(text, (struct how){first, text.n, at_once, true}, want);
    }
    for (size_t step = 1; step < 4; step++)
        check_one(text, (struct how){step, step, at_once, false}, want);
}

#define check_items(lit, want) check_items_of(DGM_STR(lit), false, want)
#define check_items_at_once(lit, want) check_items_of(DGM_STR(lit), true, want)

/* ---- JSON -------------------------------------------------------------------------------------- */

static void a_single_value_is_alone(void **state)
{
    (void)state;
    check_items("{\"a\":1}", "1:1= {\"a\":1}|");
    check_items(" \n\t {\n  \"a\": [1,\n 2]\n}\r\n  \n", "2:3= {\n  \"a\": [1,\n 2]\n}|");
    check_items("[{\"a\":1},{\"b\":2}]\n", "1:1= [{\"a\":1},{\"b\":2}]|");
    check_items("123", "1:1= 123|");
    check_items("\"a b\"", "1:1= \"a b\"|");
    check_items("null\n", "1:1= null|");
}

static void an_empty_input_has_no_text(void **state)
{
    (void)state;
    check_items("", "");
    check_items(" \r\n\t", "");
    check_items("\xef\xbb\xbf", "");
    check_items("\xef\xbb\xbf \n", "");
}

static void a_second_value_makes_a_stream(void **state)
{
    (void)state;
    check_items("{\"a\":1}\n{\"b\":2}\n", "1:1 {\"a\":1}|2:1 {\"b\":2}|");
    check_items("{\"a\":1}\r\n\r\n\n  {\"b\":2}", "1:1 {\"a\":1}|4:3 {\"b\":2}|");
    check_items("{}{}[]\"x\"\"y\"1 2{}",
                "1:1 {}|1:3 {}|1:5 []|1:7 \"x\"|1:10 \"y\"|1:13 1|1:15 2{}|");
    check_items("{\n\"a\": {}\n} {\n}\n{}", "1:1 {\n\"a\": {}\n}|3:3 {\n}|5:1 {}|");
    check_items("1\n2\n", "1:1 1|2:1 2|");
}

static void strings_hide_brackets_and_quotes(void **state)
{
    (void)state;
    check_items("{\"a}\":\"]{\\\"}\\\\\"}{\"\\\\\\\"}\":1}", "1:1 {\"a}\":\"]{\\\"}\\\\\"}|"
                                                             "1:17 {\"\\\\\\\"}\":1}|");
    check_items("\"a\\\"b\\\\\"\n\"}\"", "1:1 \"a\\\"b\\\\\"|2:1 \"}\"|");
}

static void text_sequences_are_streams(void **state)
{
    (void)state;
    check_items("\x1e{\"a\":1}\n\x1e{\"b\":2}\n", "1:2 {\"a\":1}|2:2 {\"b\":2}|");
    check_items("\x1e{\"a\":1}\n", "1:2 {\"a\":1}|");
    check_items("{\"a\":1}\n\x1e", "1:1 {\"a\":1}|");
    check_items("\x1e\x1e 1\x1e"
                "2",
                "1:4 1|1:6 2|");
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    check_items("\xef\xbb\xbf{}", "1:1= {}|");
    check_items("\xef\xbb\xbf\n data: {}\n\n", "2:8 {}|");
    check_items(" \xef\xbb\xbf{}", "1:2= \xef\xbb\xbf{}|");
    check_items("\xef\xbb{}", "1:1= \xef\xbb{}|");
    check_items("\xef", "1:1= \xef|");
}

static void invalid_json_is_returned_unchanged(void **state)
{
    (void)state;
    check_items("hello", "1:1= hello|");
    check_items("hello world\n", "1:1 hello|1:7 world|");
    check_items("dat", "1:1= dat|");
    check_items("data", "1:1= data|");
    check_items("\n data {}", "2:2 data|2:7 {}|");
    check_items("eve\n", "1:1= eve|");
    check_items("}", "1:1= }|");
    check_items("{\"a\":1},{\"b\":2}", "1:1 {\"a\":1}|1:8 ,{\"b\":2}|");
    check_items("[}{]", "1:1 [}|1:3 {]|");
    check_items("\\\"{", "1:1= \\\"{|");
}

static void nuls_and_bad_bytes_are_bytes(void **state)
{
    static const char in[] = "{\"a\":\"\0\"}\n\0\xff\x80\n{\0}", want[] =
                                                                     "1:1 {\"a\":\"\0\"}|"
                                                                     "2:1 \0\xff\x80|3:1 {\0}|";
    (void)state;
    for (size_t step = 1; step <= sizeof in; step++) {
        dgm_buf got =
            items_in((dgm_str){in, sizeof in - 1}, (struct how){step, step, false, false});
        check_same(got, ((dgm_str){want, sizeof want - 1}));
        dgm_buf_done(&got);
    }
}

static void a_cut_value_is_handed_over_at_the_end(void **state)
{
    (void)state;
    check_items("{\"a\":[1,", "1:1= {\"a\":[1,|");
    check_items("{}\n{\"a\":\"x\\", "1:1 {}|2:1 {\"a\":\"x\\|");
    check_items("\"abc", "1:1= \"abc|");
    check_items("\"", "1:1= \"|");
    check_items("{\n\n", "1:1= {\n\n|");
}

/* A writer that was killed leaves half a line; its open string must not consume the next line. */
static void a_line_end_in_a_string_ends_the_value(void **state)
{
    (void)state;
    check_items("{\"a\":\"xy\n{\"b\":2}\n", "1:1 {\"a\":\"xy|2:1 {\"b\":2}|");
    check_items("\"xy\r\n{\"b\":2}\n", "1:1 \"xy\r|2:1 {\"b\":2}|");
    check_items("{\n\n\"a\":\"x\\\n1", "1:1 {\n\n\"a\":\"x\\|4:1 1|");
}

static void a_stream_at_once_holds_nothing_back(void **state)
{
    dgm_frames_item it;
    dgm_frames f;
    dgm_buf out;
    (void)state;
    check_items_at_once("{\"a\":1}\n", "1:1 {\"a\":1}|");
    check_items_at_once("{\"a\":1}\n{}", "1:1 {\"a\":1}|2:1 {}|");
    check_items_at_once("data: 1\n\n", "1:7 1|");

    dgm_buf_init(&out, 100);
    for (int at_once = 0; at_once < 2; at_once++) {
        dgm_frames_init(&f, at_once);
        assert_int_equal(dgm_frames_what(&f), DGM_FRAMES_UNKNOWN);
        feed(&f, "{}\n\n", 4, &out);
        assert_int_equal(dgm_frames_what(&f), at_once ? DGM_FRAMES_VALUES : DGM_FRAMES_JSON);
        assert_int_equal(out.n > 0, at_once);
        dgm_frames_end(&f);
        assert_int_equal(dgm_frames_next(&f, &it, NULL), DGM_OK);
        assert_int_equal(it.text.p != NULL, !at_once);
        assert_int_equal(dgm_frames_what(&f), at_once ? DGM_FRAMES_VALUES : DGM_FRAMES_ONE);
        dgm_frames_done(&f);
    }
    dgm_buf_done(&out);
}

static void a_value_in_one_read_is_not_copied(void **state)
{
    static const char text[] = "{\"a\":1}\n{\"b\":2}\n";
    dgm_frames_item it;
    dgm_frames f;
    (void)state;
    dgm_frames_init(&f, false);
    dgm_frames_feed(&f, text, sizeof text - 1);
    assert_int_equal(dgm_frames_next(&f, &it, NULL), DGM_OK);
    assert_ptr_equal(it.text.p, text);
    assert_int_equal(dgm_frames_next(&f, &it, NULL), DGM_OK);
    assert_ptr_equal(it.text.p, text + 8);
    dgm_frames_done(&f);
}

static void a_line_of_a_stream_is_guessed_to_be_a_value(void **state)
{
    static const char text[] = "{} {\"b\":2}\r\n{}{}{}\n{\"c\":3}\n";
    static const struct {
        const char *text;
        bool guess, retry;
    } rows[] = {
        {"{}", false, false},       /* not yet known to be a stream */
        {"{\"b\":2}", true, false}, /* without its CR */
        {"{}{}{}", true, true},     /* wrong, so what follows in this line is not guessed */
        {"{}", false, false},        {"{}", false, false}, {"{}", false, false},
        {"{\"c\":3}", true, true}, /* the parser did not like it: then it gets it for sure */
        {"{\"c\":3}", false, false},
    };
    dgm_frames_item it;
    dgm_frames f;
    (void)state;
    dgm_frames_init(&f, false);
    dgm_frames_feed(&f, text, sizeof text - 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(dgm_frames_next(&f, &it, NULL), DGM_OK);
        check_str(it.text, rows[i].text);
        assert_int_equal(it.guess, rows[i].guess);
        if (rows[i].retry)
            dgm_frames_retry(&f);
    }
    assert_int_equal(dgm_frames_next(&f, &it, NULL), DGM_OK);
    assert_null(it.text.p);
    dgm_frames_done(&f);
}

/* ---- events -------------------------------------------------------------------------------------- */

static void sse_is_detected_from_its_first_field(void **state)
{
    (void)state;
    check_items("data: {}\n\n", "1:7 {}|");
    check_items("data:{}\n\ndata: 2\n\n", "1:6 {}|3:7 2|");
    check_items("event: e\nid: 7\ndata: {}\n\n", "3:7[7]<e> {}|");
    check_items("id: 7\ndata: {}\n\n", "2:7[7] {}|");
    check_items("retry: 7\n\ndata: {}\n\n", "3:7 {}|");
    check_items(": ping\n\ndata: {}\n\n", "3:7 {}|");
    check_items("\r\n\n  data: {}\n\ndata: 1", "3:9 {}|5:7 1|");
    check_items(":", "");
}

static void done_is_a_mark_and_no_value(void **state)
{
    (void)state;
    check_items("data: {}\n\ndata: [DONE]\n\n", "1:7 {}|3:7! [DONE]|");
    check_items("data:  [DONE] \n\n", "1:7!  [DONE] |");
    check_items("[DONE]", "1:1= [DONE]|");
}

static void events_of_blanks_are_skipped(void **state)
{
    (void)state;
    check_items("data:  \n\ndata:\n\ndata: \t\ndata:\n\ndata: 1\n\n", "8:7 1|");
}

static void the_stream_of_the_reference_comes_out(void **state)
{
    (void)state;
    check_items("data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"task\":{}}}\r\n\r\n"
                ": ping - 2025-01-02 03:04:05.678901+00:00\r\n\r\n"
                "event: error\r\ndata: {\r\ndata: \"error\":{}}\r\n\r\n",
                "1:7 {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"task\":{}}}|"
                "6:7<error> {\n\"error\":{}}|");
}

static void the_kind_of_input_is_known(void **state)
{
    static const struct {
        const char *text;
        dgm_frames_kind kind;
    } rows[] = {{" ", DGM_FRAMES_UNKNOWN}, {"{}", DGM_FRAMES_ONE},     {"{} {}", DGM_FRAMES_VALUES},
                {"data:", DGM_FRAMES_SSE}, {"x", DGM_FRAMES_ONE},      {"\x1e", DGM_FRAMES_VALUES},
                {": x\n", DGM_FRAMES_SSE}, {"1\n2", DGM_FRAMES_VALUES}};
    dgm_buf out;
    dgm_frames f;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_frames_init(&f, false);
        feed(&f, rows[i].text, strlen(rows[i].text), &out);
        dgm_frames_end(&f);
        drain(&f, &out);
        assert_int_equal(dgm_frames_what(&f), rows[i].kind);
        dgm_frames_done(&f);
    }
    dgm_buf_done(&out);
}

/* ---- places -------------------------------------------------------------------------------------- */

static void errors_are_placed_in_the_input(void **state)
{
    dgm_frames_item json = {.line = 5, .column = 10}, event = {.line = 5, .column = 7, .margin = 6};
    static const struct {
        size_t line, column, json_line, json_column, event_line, event_column;
    } rows[] = {
        {1, 1, 5, 10, 5, 7}, {1, 4, 5, 13, 5, 10}, {3, 4, 7, 4, 7, 10}, {0, 0, 5, 10, 5, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_err err = {.line = rows[i].line, .column = rows[i].column};
        dgm_frames_place(&json, &err);
        assert_int_equal(err.line, rows[i].json_line);
        assert_int_equal(err.column, rows[i].json_column);
        err = (dgm_err){.line = rows[i].line, .column = rows[i].column};
        dgm_frames_place(&event, &err);
        assert_int_equal(err.line, rows[i].event_line);
        assert_int_equal(err.column, rows[i].event_column);
    }
}

/* ---- limits -------------------------------------------------------------------------------------- */

/* prefix, then blanks so that everything up to here is n bytes, then suffix */
static dgm_buf long_text(const char *prefix, size_t n, const char *suffix)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_str(&b, dgm_str_from(prefix));
    size_t pad = n - b.n;
    if (dgm_buf_room(&b, pad))
        memset(b.p + b.n, 'x', pad);
    b.n += pad;
    dgm_buf_add_str(&b, dgm_str_from(suffix));
    return b;
}

/* want: how the items end, in one read and in reads of 64 KiB */
static void check_ends(dgm_buf text, bool at_once, const char *want)
{
    for (int whole = 0; whole < 2; whole++) {
        size_t step = whole ? text.n : 65536;
        dgm_buf got = items_in(dgm_buf_str(&text), (struct how){step, step, at_once, false});
        dgm_buf_add_char(&got, 0);
        if (!strstr(got.p + (got.n > 300 ? got.n - 300 : 0), want))
            fail_msg("expected %s at the end of %s", want, got.p + (got.n > 300 ? got.n - 300 : 0));
        dgm_buf_done(&got);
    }
    dgm_buf_done(&text);
}

static void a_value_alone_may_be_as_large_as_object_bytes(void **state)
{
    (void)state;
    check_ends(long_text("\n{\"a\":\"", DGM_MAX_OBJECT_BYTES - 1, "\"}\n"), false, "xxx\"}|");
    check_ends(long_text("\n{\"a\":\"", DGM_MAX_OBJECT_BYTES, "\"}\n"), false,
               "error at 2:1: a JSON value is longer than the limit object_bytes");
    check_ends(long_text("\"", DGM_MAX_OBJECT_BYTES - 1, "\""), false, "xxx\"|");
    check_ends(long_text("\"", DGM_MAX_OBJECT_BYTES, "\""), false, "object_bytes");
    check_ends(long_text("1", DGM_MAX_OBJECT_BYTES, ""), false, "xxx|");
    check_ends(long_text("1", DGM_MAX_OBJECT_BYTES + 1, ""), false, "object_bytes");
}

static void a_value_in_a_stream_may_be_as_large_as_record_bytes(void **state)
{
    (void)state;
    check_ends(long_text("{}\n{\"a\":\"", DGM_MAX_RECORD_BYTES + 1, "\"}"), false, "xxx\"}|");
    check_ends(
        long_text("{}\n{\"a\":\"", DGM_MAX_RECORD_BYTES + 2, "\"}"), false,
        "1:1 {}|error at 2:1: a JSON value in a stream is longer than the limit record_bytes");
    /* the first value has the larger limit as long as it may be the only one */
    check_ends(long_text("{\"a\":\"", DGM_MAX_RECORD_BYTES - 2, "\"}\n{}"), false, "|2:1 {}|");
    check_ends(long_text("{\"a\":\"", DGM_MAX_RECORD_BYTES - 1, "\"}\n"), false, "xxx\"}|");
    check_ends(long_text("{\"a\":\"", DGM_MAX_RECORD_BYTES - 1, "\"}\n{}"), false,
               "error at 1:1: ");
    check_ends(long_text("{\"a\":\"", DGM_MAX_RECORD_BYTES - 1, "\"}\n"), true, "record_bytes");
}

static void an_event_may_be_as_large_as_record_bytes(void **state)
{
    (void)state;
    check_ends(long_text("\n\ndata: ", DGM_MAX_RECORD_BYTES + 8, "\n\n"), false, "xxx|");
    check_ends(long_text("\n\ndata: ", DGM_MAX_RECORD_BYTES + 9, "\n\n"), false, "error at 3:1: ");
    check_ends(long_text("\n\ndata: ", 2 * DGM_MAX_RECORD_BYTES, ""), false, "sse_line_bytes");
}

/* A value over the limit is not collected in memory first. */
static void memory_is_bound_by_the_limit(void **state)
{
    static char piece[65536];
    dgm_frames_item it;
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    dgm_frames f;
    (void)state;
    memset(piece, '[', sizeof piece);
    dgm_frames_init(&f, false);
    for (size_t n = 0; !rc; n += sizeof piece) {
        assert_true(n <= DGM_MAX_OBJECT_BYTES);
        dgm_frames_feed(&f, piece, sizeof piece);
        rc = dgm_frames_next(&f, &it, &err);
        assert_true(f.hold.cap <= DGM_MAX_OBJECT_BYTES);
    }
    assert_int_equal(rc, DGM_TOO_LARGE);
    assert_int_equal(dgm_frames_next(&f, &it, &err), DGM_TOO_LARGE); /* and that is final */
    dgm_frames_done(&f);
}

static void a_large_value_does_not_stay_in_memory(void **state)
{
    dgm_buf text = long_text("{\"a\":\"", 1 << 20, "\"}\n{}\n"), out;
    dgm_frames f;
    (void)state;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_frames_init(&f, false);
    for (size_t i = 0; i < text.n; i++)
        feed(&f, text.p + i, 1, &out);
    assert_true(f.hold.cap <= 65536);
    assert_true(out.n > 1 << 20);
    dgm_frames_done(&f);
    dgm_buf_done(&text);
    dgm_buf_done(&out);
}

static void many_values_in_one_line_cost_no_more_than_its_length(void **state)
{
    size_t pairs = DGM_MAX_RECORD_BYTES / 2, n = 0;
    char *text = dgm_xmalloc(2 * pairs + 1);
    dgm_frames_item it;
    (void)state;
    for (size_t i = 0; i < 2 * pairs; i++)
        text[i] = i % 2 ? '}' : '{';
    text[2 * pairs] = '\n';
    for (int lf = 0; lf < 2; lf++) {
        dgm_frames f;
        dgm_frames_init(&f, true);
        dgm_frames_feed(&f, text, 2 * pairs + (size_t)lf);
        for (n = 0; dgm_frames_next(&f, &it, NULL) == DGM_OK && it.text.p; n++) {
            if (it.text.n == 2)
                continue;
            dgm_frames_retry(&f);
            n--;
        }
        assert_int_equal(n, pairs);
        dgm_frames_done(&f);
    }
    free(text);
}

/* ---- the scanners against each other ------------------------------------------------------------- */

typedef size_t scanner(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);

static void random_bytes(char *p, size_t n, unsigned flavour)
{
    static const char *const alphabets[] = {"{}[]\"\\\n x", "{{[[}]\"\"ab\\", "\"xxxxxxx\\{}",
                                            "{}xxxxxxxxxxxxxxx\n", "\\\\\\\"\"{}"};
    const char *from = alphabets[flavour % 5];
    size_t n_from = strlen(from);
    for (size_t i = 0; i < n; i++)
        p[i] = from[(size_t)rand() % n_from];
    if (n && flavour % 3 == 0)
        p[(size_t)rand() % n] = (char)rand();
}

/* All of the text in pieces: the length of the value, and where its last line starts. */
static size_t scan_all(scanner *scan, const char *p, size_t n, size_t piece, size_t *ret_lines,
                       size_t *ret_line_at, bool *ret_ended)
{
    dgm_frames_scan s = {0};
    size_t at = 0, len;
    *ret_lines = *ret_line_at = 0;
    *ret_ended = false;
    while (at < n && !*ret_ended) {
        size_t k = n - at < piece ? n - at : piece;
        len = scan(&s, p + at, k, ret_ended);
        *ret_lines += s.lines;
        if (s.lines)
            *ret_line_at = at + s.line_at;
        at += len;
    }
    return at;
}

static void check_scanner(scanner *scan, const char *p, size_t n, size_t piece)
{
    size_t len[2], lines[2], line_at[2];
    bool ended[2];
    len[0] = scan_all(dgm_frames_scan_plain, p, n, n, &lines[0], &line_at[0], &ended[0]);
    len[1] = scan_all(scan, p, n, piece, &lines[1], &line_at[1], &ended[1]);
    if (len[0] != len[1] || lines[0] != lines[1] || line_at[0] != line_at[1] ||
        ended[0] != ended[1])
        fail_msg("plain %zu (%d, %zu, %zu), fast %zu (%d, %zu, %zu), pieces of %zu: %.*s", len[0],
                 ended[0], lines[0], line_at[0], len[1], ended[1], lines[1], line_at[1], piece,
                 (int)n, p);
}

static void the_fast_scanners_agree_with_the_plain_one(void **state)
{
    (void)state;
    srand(11);
    for (unsigned round = 0; round < 30000; round++) {
        size_t n = 1 + (size_t)rand() % 400;
        char *p = dgm_xmalloc(n);
        random_bytes(p, n, round);
        p[0] = round & 1 ? '{' : '[';
        check_scanner(dgm_frames_scan_fast, p, n, n);
        check_scanner(dgm_frames_scan_portable, p, n, n);
        check_scanner(dgm_frames_scan_fast, p, n, 1 + (size_t)rand() % 150);
        check_scanner(dgm_frames_scan_portable, p, n, 64);
        free(p);
    }
}

static void random_input_has_the_same_result_in_any_pieces(void **state)
{
    (void)state;
    srand(12);
    for (unsigned round = 0; round < 10000; round++) {
        char text[600];
        size_t n = 1 + (size_t)rand() % (sizeof text - 1);
        random_bytes(text, n, round);
        if (round % 7 == 0)
            memcpy(text, "data:", n < 5 ? n : 5);
        dgm_str in = {text, n};
        dgm_buf want = items_in(in, (struct how){n, n, round & 1, false});
        dgm_buf got = items_in(in, (struct how){(size_t)rand() % 100, 0, round & 1, round & 2});
        check_same(got, want);
        dgm_buf_done(&got);
        got = items_in(in, (struct how){1, 1, round & 1, false});
        check_same(got, want);
        dgm_buf_done(&got);
        dgm_buf_done(&want);
    }
}

DGM_TEST_MAIN(dgm_test(a_single_value_is_alone), dgm_test(an_empty_input_has_no_text),
              dgm_test(a_second_value_makes_a_stream), dgm_test(strings_hide_brackets_and_quotes),
              dgm_test(text_sequences_are_streams), dgm_test(a_byte_order_mark_is_skipped),
              dgm_test(invalid_json_is_returned_unchanged), dgm_test(nuls_and_bad_bytes_are_bytes),
              dgm_test(a_cut_value_is_handed_over_at_the_end),
              dgm_test(a_line_end_in_a_string_ends_the_value),
              dgm_test(a_stream_at_once_holds_nothing_back),
              dgm_test(a_value_in_one_read_is_not_copied),
              dgm_test(a_line_of_a_stream_is_guessed_to_be_a_value),
              dgm_test(many_values_in_one_line_cost_no_more_than_its_length),
              dgm_test(sse_is_detected_from_its_first_field), dgm_test(done_is_a_mark_and_no_value),
              dgm_test(events_of_blanks_are_skipped),
              dgm_test(the_stream_of_the_reference_comes_out), dgm_test(the_kind_of_input_is_known),
              dgm_test(errors_are_placed_in_the_input),
              dgm_test(a_value_alone_may_be_as_large_as_object_bytes),
              dgm_test(a_value_in_a_stream_may_be_as_large_as_record_bytes),
              dgm_test(an_event_may_be_as_large_as_record_bytes),
              dgm_test(memory_is_bound_by_the_limit),
              dgm_test(a_large_value_does_not_stay_in_memory),
              dgm_test(the_fast_scanners_agree_with_the_plain_one),
              dgm_test(random_input_has_the_same_result_in_any_pieces))
