/* test_str.c - comparison, hashing, UTF-8. */
#include "base/str.h"
#include "support/check.h"

static void comparison_knows_empty_absent_and_nul(void **state)
{
    (void)state;
    assert_true(dgm_str_eq((dgm_str){0}, DGM_STR("")));
    assert_true(dgm_str_eq(DGM_STR("a\0b"), DGM_STR("a\0b")));
    assert_false(dgm_str_eq(DGM_STR("a\0b"), DGM_STR("a\0c")));
    assert_false(dgm_str_eq(DGM_STR("a"), DGM_STR("ab")));
    assert_true(dgm_str_is(DGM_STR("task"), "task"));
    assert_false(dgm_str_is(DGM_STR("task"), "tas"));
    assert_false(dgm_str_is(((dgm_str){0}), "task"));
    assert_true(dgm_str_starts(DGM_STR("aion:x"), DGM_STR("aion:")));
    assert_true(dgm_str_starts(DGM_STR("aion:"), DGM_STR("aion:")));
    assert_false(dgm_str_starts(DGM_STR("aion"), DGM_STR("aion:")));
    assert_true(dgm_str_starts((dgm_str){0}, DGM_STR("")));
    assert_null(dgm_str_from(NULL).p);
    check_str(dgm_str_from("abc"), "abc");
}

static void case_is_ignored_in_ascii_only(void **state)
{
    (void)state;
    assert_true(dgm_str_eq_nocase(DGM_STR("Bearer"), DGM_STR("bEARER")));
    assert_true(dgm_str_eq_nocase(DGM_STR("@[`{"), DGM_STR("@[`{")));
    assert_false(dgm_str_eq_nocase(DGM_STR("@"), DGM_STR("`")));
    assert_false(dgm_str_eq_nocase(DGM_STR("["), DGM_STR("{")));
    assert_false(dgm_str_eq_nocase(DGM_STR("\xC3\x84"), DGM_STR("\xC3\xA4")));
    assert_false(dgm_str_eq_nocase(DGM_STR("a"), DGM_STR("aa")));
    assert_true(dgm_str_eq_nocase((dgm_str){0}, DGM_STR("")));
}

static void hashes_differ_by_seed_length_and_every_byte(void **state)
{
    char bytes[40] = {0};
    uint64_t seen[41];
    (void)state;
    for (size_t n = 0; n <= 40; n++) { /* zeros of different length */
        seen[n] = dgm_hash(1, bytes, n);
        assert_true(dgm_hash(1, bytes, n) == seen[n]);
        assert_true(dgm_hash(2, bytes, n) != seen[n]);
        for (size_t k = 0; k < n; k++)
            assert_true(seen[k] != seen[n]);
    }
    for (size_t i = 0; i < 40; i++) {
        bytes[i] = 1;
        assert_true(dgm_hash(1, bytes, 40) != seen[40]);
        bytes[i] = 0;
    }
    assert_true(dgm_hash(1, NULL, 0) == seen[0]);
}

static void utf8_is_detected(void **state)
{
    static const struct {
        const char *text;
        int bad_at; /* -1: well-formed */
    } rows[] = {
        {"", -1},
        {"plain", -1},
        {"\x7F", -1},
        {"\xC2\x80", -1},         /* first of two bytes */
        {"\xDF\xBF", -1},         /* last of two */
        {"\xE0\xA0\x80", -1},     /* first of three */
        {"\xED\x9F\xBF", -1},     /* last before the surrogates */
        {"\xEE\x80\x80", -1},     /* first behind them */
        {"\xEF\xBF\xBF", -1},     /* U+FFFF */
        {"\xF0\x90\x80\x80", -1}, /* first of four */
        {"\xF4\x8F\xBF\xBF", -1}, /* U+10FFFF */
        {"72\xC2\xB0"
         "F \xF0\x9F\x98\x8A",
         -1},
        {"\x80", 0}, /* continuation without a start */
        {"a\xBF", 1},
        {"\xC0\x80", 0},         /* overlong NUL */
        {"\xC1\xBF", 0},         /* overlong */
        {"\xE0\x9F\xBF", 0},     /* overlong */
        {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
        {"\xED\xA0\x80", 0},     /* U+D800 */
        {"\xED\xBF\xBF", 0},     /* U+DFFF */
        {"\xF4\x90\x80\x80", 0}, /* past U+10FFFF */
        {"\xF5\x80\x80\x80", 0},
        {"\xFF", 0},
        {"ab\xC3", 2}, /* cut off */
        {"ab\xE2\x82", 2},
        {"ab\xF0\x9F\x98", 2},
        {"\xC3(", 0}, /* a start without continuation */
        {"\xE2\x82(", 0},
        {"\xF0\x9F\x98(", 0},
        {"\xE2(\xAC", 0},
        {"ok\xC3\xA4ok\xC3", 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_str s = dgm_str_from(rows[i].text);
        size_t want = rows[i].bad_at < 0 ? s.n : (size_t)rows[i].bad_at;
        if (dgm_utf8_check(s) != want)
            fail_msg("row %zu: %zu, wanted %zu", i, dgm_utf8_check(s), want);
    }
    assert_int_equal(dgm_utf8_check((dgm_str){0}), 0);
    assert_int_equal(dgm_utf8_check(DGM_STR("a\0b")), 3);
}

static void every_code_point_passes_and_no_surrogate(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        size_t n;
        if (c < 0x80) {
            s[0] = (char)c;
            n = 1;
        } else if (c < 0x800) {
            s[0] = (char)(0xC0 | c >> 6);
            n = 2;
        } else if (c < 0x10000) {
            s[0] = (char)(0xE0 | c >> 12);
            n = 3;
        } else {
            s[0] = (char)(0xF0 | c >> 18);
            n = 4;
        }
        for (size_t k = 1; k < n; k++)
            s[k] = (char)(0x80 | (c >> 6 * (n - 1 - k) & 0x3F));
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (dgm_utf8_check((dgm_str){s, n}) != (surrogate ? 0 : n))
            fail_msg("U+%04X", c);
    }
}

DGM_TEST_MAIN(dgm_test(comparison_knows_empty_absent_and_nul),
              dgm_test(case_is_ignored_in_ascii_only),
              dgm_test(hashes_differ_by_seed_length_and_every_byte), dgm_test(utf8_is_detected),
              dgm_test(every_code_point_passes_and_no_surrogate))
