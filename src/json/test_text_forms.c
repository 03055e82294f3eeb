/* test_text_forms.c - times and base64: every format that is read, and the result. */
#include "support/check.h"
#include "json/shape.h"

static void good_times_become_utc(void **state)
{
    static const char *const rows[][2] = {
        /* as we write them: not touched */
        {"2025-10-30T10:00:00Z", "2025-10-30T10:00:00Z"},
        {"2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"},
        {"2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"},
        {"2026-01-02T03:04:05.678901234Z", "2026-01-02T03:04:05.678901234Z"},
        {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
        {"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
        /* without a zone: UTC */
        {"2026-01-02T03:04:05", "2026-01-02T03:04:05Z"},
        {"2026-01-02T03:04:05.123456", "2026-01-02T03:04:05.123456Z"},
        /* 0, 3, 6 or 9 digits */
        {"2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600Z"},
        {"2026-01-02T03:04:05.67Z", "2026-01-02T03:04:05.670Z"},
        {"2026-01-02T03:04:05.6789Z", "2026-01-02T03:04:05.678900Z"},
        {"2026-01-02T03:04:05.67890123Z", "2026-01-02T03:04:05.678901230Z"},
        {"2026-01-02T03:04:05.6789012345678Z", "2026-01-02T03:04:05.678901234Z"},
        {"2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05.500Z"},
        /* other letters */
        {"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
        {"2026-01-02 03:04:05+00:00", "2026-01-02T03:04:05Z"},
        /* offsets */
        {"2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"},
        {"2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"},
        {"2026-01-02T03:04:05+05:30", "2026-01-01T21:34:05Z"},
        {"2026-01-02T03:04:05.25-08:00", "2026-01-02T11:04:05.250Z"},
        {"2026-01-02T03:04:05+0530", "2026-01-01T21:34:05Z"},
        {"2026-01-02T03:04:05+05", "2026-01-01T22:04:05Z"},
        {"2026-06-15T12:00:00+23:59", "2026-06-14T12:01:00Z"},
        {"2026-06-15T12:00:00-23:59", "2026-06-16T11:59:00Z"},
        /* over the ends of day, month, year */
        {"2026-01-01T00:00:00+00:01", "2025-12-31T23:59:00Z"},
        {"2025-12-31T23:59:00-00:01", "2026-01-01T00:00:00Z"},
        {"2026-05-01T00:30:00+01:00", "2026-04-30T23:30:00Z"},
        {"2026-04-30T23:30:00-01:00", "2026-05-01T00:30:00Z"},
        {"2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00Z"},
        {"2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z"},
        {"2024-02-28T23:30:00-01:00", "2024-02-29T00:30:00Z"},
        {"2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00Z"},
        {"2023-02-28T23:30:00-01:00", "2023-03-01T00:30:00Z"},
        {"2000-03-01T00:30:00+01:00", "2000-02-29T23:30:00Z"}, /* 2000 is a leap year */
        {"1900-03-01T00:30:00+01:00", "1900-02-28T23:30:00Z"}, /* 1900 is not */
        {"0001-01-01T00:00:00-00:01", "0001-01-01T00:01:00Z"},
        /* a leap second is a time */
        {"2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str in = dgm_str_from(rows[i][0]), got = {0};
        if (!dgm_time_normalise(a, in, &got))
            fail_msg("%s is a time", rows[i][0]);
        check_str(got, rows[i][1]);
        if (strcmp(rows[i][0], rows[i][1]) == 0)
            assert_ptr_equal(got.p, in.p);
        dgm_str again = {0};
        assert_true(dgm_time_normalise(a, got, &again));
        assert_ptr_equal(again.p, got.p);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "now",
        "2026-01-02",
        "2026-01-02T03:04",
        "2026-01-02T03:04Z",
        "1767323045",
        "2026-1-2T03:04:05Z",
        "2026-01-02T3:04:05Z",
        "26-01-02T03:04:05Z00",
        "2026/01/02T03:04:05Z",
        "2026-01-02X03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-04-31T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:61Z",
        "0000-01-01T00:00:00Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.",
        "2026-01-02T03:04:05.x",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:05 Z",
        "2026-01-02T03:04:05+",
        "2026-01-02T03:04:05+1",
        "2026-01-02T03:04:05+1:00",
        "2026-01-02T03:04:05+01:0",
        "2026-01-02T03:04:05+01:000",
        "2026-01-02T03:04:05+010",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05*01:00",
        "2026-01-02T03:04:05 UTC",
        "2026-01-02T03:04:05Z\n",
        "-026-01-02T03:04:05Z",
        "+2026-01-02T03:04:05Z",
        "0001-01-01T00:00:00+00:01", /* before the first year */
        "9999-12-31T23:59:59-00:01", /* after the last */
        "2026-01-02T03:04:05.0000000000000000000000000000000000000000000000Z",
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* a copy of exactly this length: ASan sees a read past it */
        size_t n = strlen(rows[i]);
        char *copy = malloc(n ? n : 1);
        memcpy(copy, rows[i], n);
        if (dgm_time_normalise(a, (dgm_str){copy, n}, &got))
            fail_msg("%s is no time", rows[i]);
        free(copy);
    }
    assert_false(dgm_time_normalise(a, DGM_STR("2026-01-02T03:04:05\0Z"), &got));
    assert_false(dgm_time_normalise(a, (dgm_str){0}, &got));
}

static void every_day_has_a_neighbour(void **state)
{
    /* One minute over midnight and back, every day of four hundred years' worth of leap rules. */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    char in[40], next[40], today[40];
    (void)state;
    for (int y = 1999; y <= 2101; y += y == 2001 ? 98 : 1) {
        for (int m = 1; m <= 12; m++) {
            bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
            int n = days[m - 1] + (m == 2 && leap);
            for (int d = 1; d <= n; d++) {
                bool end = d == n;
                dgm_str got;
                snprintf(in, sizeof in, "%04d-%02d-%02dT23:59:30-00:01", y, m, d);
                snprintf(next, sizeof next, "%04d-%02d-%02dT00:00:30Z", end && m == 12 ? y + 1 : y,
                         end ? m % 12 + 1 : m, end ? 1 : d + 1);
                assert_true(dgm_time_normalise(a, dgm_str_from(in), &got));
                check_str(got, next);
                next[strlen(next) - 1] = 0;
                strcat(next, "+00:01");
                snprintf(today, sizeof today, "%04d-%02d-%02dT23:59:30Z", y, m, d);
                assert_true(dgm_time_normalise(a, dgm_str_from(next), &got));
                check_str(got, today);
            }
            dgm_arena_reset(a);
        }
    }
}

static void good_base64_becomes_standard(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"AA==", "AA=="},
        {"AAA=", "AAA="},
        {"AAAA", "AAAA"},
        {"SGVsbG8=", "SGVsbG8="},
        {"+/+/", "+/+/"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"},
        {"-_-_", "+/+/"},
        {"-_+/", "+/+/"},
        {"AA", "AA=="},
        {"AAA", "AAA="},
        {"SGVsbG8", "SGVsbG8="},
        {"__8", "//8="},
        {"__8=", "//8="},
        {"-Q==", "+Q=="},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str in = dgm_str_from(rows[i][0]), got = {0};
        if (!dgm_base64_normalise(a, in, &got))
            fail_msg("%s is base64", rows[i][0]);
        check_str(got, rows[i][1]);
        if (strcmp(rows[i][0], rows[i][1]) == 0)
            assert_ptr_equal(got.p, in.p);
    }
}

static void what_is_no_base64_is_refused(void **state)
{
    static const char *const rows[] = {
        "=",        "==",   "===",   "====",  "A",        "A=",    "A==",
        "A===",     "AA=",  "AA===", "AAA==", "AAAA=",    "AAAAA", "AAAA==",
        "AAAA====", "=AAA", "A=AA",  "AA=A",  "AA==AA==", "AA A",  "AAA\n",
        "AAA.",     "AAA@", "AAA[",  "AAA`",  "AAA{",     "AAA:",  "AA\x80\xFF"};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str got;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (dgm_base64_normalise(a, dgm_str_from(rows[i]), &got))
            fail_msg("%s is no base64", rows[i]);
    }
    assert_false(dgm_base64_normalise(a, DGM_STR("AA\0A"), &got));
}

static void every_byte_belongs_to_the_alphabet_or_not(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[4] = {'A', 'A', 'A', (char)c};
        bool want = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    (c && strchr("+/-_=", c));
        dgm_str got;
        if (dgm_base64_normalise(a, (dgm_str){text, 4}, &got) != want)
            fail_msg("byte %d", c);
    }
}

DGM_TEST_MAIN(dgm_test(good_times_become_utc), dgm_test(what_is_no_time_is_refused),
              dgm_test(every_day_has_a_neighbour), dgm_test(good_base64_becomes_standard),
              dgm_test(what_is_no_base64_is_refused),
              dgm_test(every_byte_belongs_to_the_alphabet_or_not))
