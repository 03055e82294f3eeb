/* test_json_write.c - values straight to bytes. */
#include "support/check.h"
#include "json/json.h"

static dgm_str quoted(dgm_arena *a, dgm_str s)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put_str(&b, s);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void what_must_be_escaped_is(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    check_str(quoted(a, DGM_STR("")), "\"\"");
    check_str(quoted(a, (dgm_str){0}), "\"\"");
    check_str(quoted(a, DGM_STR("plain")), "\"plain\"");
    check_str(quoted(a, DGM_STR("\"\\/")), "\"\\\"\\\\/\"");
    check_str(quoted(a, DGM_STR("\b\t\n\f\r")), "\"\\b\\t\\n\\f\\r\"");
    check_str(quoted(a, DGM_STR("a\0b\x1F\x7F")), "\"a\\u0000b\\u001f\x7F\"");
    check_str(quoted(a, DGM_STR("\xE2\x80\xA8 72\xC2\xB0"
                                "F \xF0\x9F\x98\x8A")),
              "\"\xE2\x80\xA8 72\xC2\xB0"
              "F \xF0\x9F\x98\x8A\"");
}

static void every_control_character_at_every_place_of_a_word(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const name[32] = {
        [8] = "\\b", [9] = "\\t", [10] = "\\n", [12] = "\\f", [13] = "\\r"};
    char text[40], want[64];
    (void)state;
    for (int c = 0; c < 0x20; c++) {
        for (int at = 0; at < 30; at++) {
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            int n = snprintf(want, sizeof want, "\"%.*s", at, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
            n += name[c] ? snprintf(want + n, 8, "%s", name[c])
                         : snprintf(want + n, 8, "\\u%04x", (unsigned)c);
            snprintf(want + n, sizeof want - (size_t)n, "%.*s\"", 29 - at,
                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
            check_str(quoted(a, (dgm_str){text, 30}), want);
        }
    }
}

static void every_byte_at_every_place_of_every_length(void **state)
{
    char text[64], want[80];
    (void)state;
    memset(text, 'x', sizeof text);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t n = 1; n <= 50; n++) {
        for (size_t at = 0; at < n; at++) {
            for (int c = 0; c < 256; c++) {
                size_t k = 0;
                if (c < 0x20 && !(c >= 8 && c <= 13 && c != 11))
                    k = (size_t)snprintf(want, sizeof want, "\\u%04x", (unsigned)c);
                else if (c < 0x20)
                    k = (size_t)snprintf(want, sizeof want, "\\%c", "btn?fr"[c - 8]);
                else
                    k = (size_t)snprintf(want, sizeof want, "%s%c",
                                         c == '"' || c == '\\' ? "\\" : "", c);
                char *own = dgm_xmalloc(n); /* no byte more: a read too far is seen */
                memset(own, 'x', n);
                own[at] = (char)c;
                dgm_buf_clear(&b);
                dgm_json_put_str(&b, (dgm_str){own, n});
                free(own);
                assert_int_equal(b.n, n + k + 1);
                assert_memory_equal(b.p + 1, text, at);
                assert_memory_equal(b.p + 1 + at, want, k);
                assert_memory_equal(b.p + 1 + at + k, text, n - at - 1);
            }
        }
    }
    dgm_buf_done(&b);
}

/* A little generator of our own: the same texts in every run. */
static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static size_t random_text(uint64_t *seed, char *out, size_t max)
{
    static const char *const pieces[] = {"a",    "xyz",      "\"",           "\\",
                                         "\n",   "\x01",     "\x1F",         " longer plain run ",
                                         "\x7F", "\xC3\xA4", "\xE2\x80\xA8", "\xF0\x9F\x98\x8A"};
    size_t n = 0, want = next(seed) % max;
    while (n < want) {
        const char *piece = pieces[next(seed) % (sizeof pieces / sizeof *pieces)];
        size_t len = strlen(piece);
        if (n + len > max)
            break;
        memcpy(out + n, piece, len);
        n += len;
        if (next(seed) % 13 == 0 && n < max)
            out[n++] = 0;
    }
    return n;
}

static void random_texts_read_back_and_equal_yyjsons_own(void **state)
{
    uint64_t seed = 20261115;
    char text[300];
    (void)state;
    for (int round = 0; round < 5000; round++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        size_t offset = next(&seed) % 8; /* every alignment */
        dgm_str s = {text + offset, random_text(&seed, text + offset, sizeof text - 8)};
        dgm_str got = quoted(a, s);
        yyjson_val *v = dgm_json_parse_trusted(a, got);
        check_same(dgm_json_str(v), s);

        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_doc_set_root(doc, yyjson_mut_strn(doc, s.p, s.n));
        size_t n;
        char *theirs = yyjson_mut_write(doc, 0, &n);
        /* Theirs differs in one thing: hex digits of control characters are upper case. */
        for (size_t i = 0; i + 6 <= n; i++) {
            if (memcmp(theirs + i, "\\u00", 4) == 0 && theirs[i + 5] >= 'A' && theirs[i + 5] <= 'F')
                theirs[i + 5] += 32;
        }
        check_same(got, ((dgm_str){theirs, n}));
        free(theirs);
        yyjson_mut_doc_free(doc);
    }
}

static void the_limit_of_the_buffer_holds(void **state)
{
    /* Fast writers ask for a little more room than they use: within SLACK bytes below the limit they
     * may say `over` early. They never write past it, and never stay silent about it. */
    enum { SLACK = 64 };
    static const char *const texts[] = {"",
                                        "x",
                                        "12345678",
                                        "a much longer text without escapes",
                                        "an escape at the end\n",
                                        "\"in front",
                                        "a\x01\x02z"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        size_t n = quoted(a, dgm_str_from(texts[i])).n;
        for (size_t max = 0; max <= n + SLACK; max++) {
            dgm_buf b;
            dgm_buf_init(&b, max);
            dgm_json_put_str(&b, dgm_str_from(texts[i]));
            assert_true(b.n <= max);
            if (max < n)
                assert_true(b.over);
            if (max >= n + SLACK)
                assert_false(b.over);
            dgm_buf_done(&b);
        }
    }
}

static void whole_numbers(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1000);
    dgm_json_put_int(&b, 0);
    dgm_buf_add_char(&b, ' ');
    dgm_json_put_int(&b, INT64_MIN);
    dgm_buf_add_char(&b, ' ');
    dgm_json_put_int(&b, INT64_MAX);
    check_str(b, "0 -9223372036854775808 9223372036854775807");
    dgm_buf_done(&b);
}

static void check_written(const char *in, const char *compact, const char *spaced)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = dgm_json_parse_trusted(a, dgm_str_from(in));
    dgm_buf b;
    dgm_buf_init(&b, 10000);
    dgm_json_put(&b, v);
    check_str(b, compact);
    dgm_buf_clear(&b);
    dgm_json_put_spaced(&b, v);
    check_str(b, spaced);
    dgm_buf_done(&b);
    dgm_str text = dgm_json_text_in(a, v);
    check_str(text, compact);
    assert_int_equal(text.p[text.n], 0);
}

static void values_are_written_compact_or_spaced(void **state)
{
    (void)state;
    check_written("{\"location\":\"Oakland\"}", "{\"location\":\"Oakland\"}",
                  "{\"location\": \"Oakland\"}");
    check_written(" [ 1 , [ ] , { } , \"a, b: c\" ] ", "[1,[],{},\"a, b: c\"]",
                  "[1, [], {}, \"a, b: c\"]");
    check_written("{\"a\":{\"b\":[true,false,null]},\"c\":-0.0}",
                  "{\"a\":{\"b\":[true,false,null]},\"c\":-0.0}",
                  "{\"a\": {\"b\": [true, false, null]}, \"c\": -0.0}");
    check_written("\"\xC2\xB0\"", "\"\xC2\xB0\"", "\"\xC2\xB0\"");
}

static void nothing_is_null(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 100);
    dgm_json_put(&b, NULL);
    dgm_json_put_spaced(&b, NULL);
    check_str(b, "nullnull");
    dgm_buf_done(&b);
}

DGM_TEST_MAIN(dgm_test(what_must_be_escaped_is),
              dgm_test(every_control_character_at_every_place_of_a_word),
              dgm_test(every_byte_at_every_place_of_every_length),
              dgm_test(random_texts_read_back_and_equal_yyjsons_own),
              dgm_test(the_limit_of_the_buffer_holds), dgm_test(whole_numbers),
              dgm_test(values_are_written_compact_or_spaced), dgm_test(nothing_is_null))
