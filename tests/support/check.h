/*
 * support/check.h - what every unit test includes: cmocka, and a few helpers of ours.
 *
 *     #include "support/check.h"
 *
 *     static void a_slice_borrows(void **state) { (void)state; check_str(s, "abc"); }
 *
 *     DGM_TEST_MAIN(dgm_test(a_slice_borrows),
 *                   dgm_test_holds(user_text_gives_a_user_message, "R001-02 R001-06"))
 *
 * A test file is one program that prints TAP. Names must be unique within their file; ids of
 * docs/internals/requirements.md are in brackets at the end of the name, where tests/run finds them.
 */
#pragma once
#include <setjmp.h> /* cmocka wants these four before itself */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format takes these braces for function bodies */
/* clang-format off */
#define dgm_test(fn) {#fn, fn, NULL, NULL, NULL}
#define dgm_test_holds(fn, ids) {#fn " [" ids "]", fn, NULL, NULL, NULL}

/* The same with a table row as *state: one function, many cases, each with a name of its own. */
#define dgm_test_with(name, fn, row) {name, fn, NULL, NULL, (void *)(row)}
/* clang-format on */

/* The environment wins over the setter, so `CMOCKA_MESSAGE_OUTPUT=STDOUT ./test_x` still reads well
 * by hand. */
#define DGM_TEST_MAIN(...)                                                                         \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        cmocka_set_message_output(CM_OUTPUT_TAP);                                                  \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

/* Bytes against bytes; both are shown on failure, and where they part. */
static inline void check_bytes_(const char *got, size_t got_n, const char *want, size_t want_n,
                                const char *file, int line)
{
    size_t i = 0;
    if (got_n == want_n && (got_n == 0 || memcmp(got, want, got_n) == 0))
        return;
    while (i < got_n && i < want_n && got[i] == want[i])
        i++;
    print_error("texts differ from byte %zu on\n  got  (%zu): %.*s\n  want (%zu): %.*s\n", i, got_n,
                (int)(got_n < 4000 ? got_n : 4000), got ? got : "", want_n,
                (int)(want_n < 4000 ? want_n : 4000), want ? want : "");
    _fail(file, line);
}

/* got: anything with members p and n (dgm_str, dgm_buf); want: a C string */
#define check_str(got, want)                                                                       \
    check_bytes_((const char *)(got).p, (got).n, (want), strlen(want), __FILE__, __LINE__)
/* both have members p and n */
#define check_same(got, want)                                                                      \
    check_bytes_((const char *)(got).p, (got).n, (const char *)(want).p, (want).n, __FILE__,       \
                 __LINE__)

/* expr returns a dgm_code; err is the dgm_err it filled: a failure then says what and where. */
#define check_ok(expr, err)                                                                        \
    do {                                                                                           \
        int code_ = (int)(expr);                                                                   \
        if (code_ != 0) {                                                                          \
            print_error("%s: code %d at \"%s\": %s\n", #expr, code_, (err).at, (err).msg);         \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

/* expr must fail with this code and point exactly there */
#define check_fails(expr, want_code, err, want_at)                                                 \
    do {                                                                                           \
        int code_ = (int)(expr);                                                                   \
        if (code_ != (int)(want_code) || strcmp((err).at, (want_at)) != 0) {                       \
            print_error("%s: code %d at \"%s\" (%s), wanted code %d at \"%s\"\n", #expr, code_,    \
                        (err).at, (err).msg, (int)(want_code), (want_at));                         \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)
