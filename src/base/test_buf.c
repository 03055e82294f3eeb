/* test_buf.c - growing bytes with a limit. */
#include "base/arena.h"
#include "base/buf.h"
#include "support/check.h"

static void it_grows_as_bytes_come(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1 << 20);
    check_str(dgm_buf_str(&b), ""); /* never NULL, also before the first byte */
    for (int i = 0; i < 10000; i++)
        dgm_buf_add_char(&b, (char)('a' + i % 26));
    dgm_buf_add_lit(&b, "0123");
    dgm_buf_add_str(&b, (dgm_str){0});
    dgm_buf_printf(&b, "%d", 45);
    assert_int_equal(b.n, 10006);
    assert_false(b.over);
    assert_memory_equal(b.p + 9998, "op012345", 8);
    dgm_buf_done(&b);
    assert_null(b.p);
    assert_int_equal(b.max, 1 << 20);
}

static void the_limit_is_exact(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 10);
    dgm_buf_add(&b, "0123456789", 10);
    assert_int_equal(b.n, 10);
    assert_false(b.over);
    dgm_buf_add(&b, "", 0);
    assert_false(b.over);
    dgm_buf_add_char(&b, 'x');
    assert_true(b.over);
    assert_int_equal(b.n, 10);
    dgm_buf_clear(&b);
    assert_false(b.over);
    dgm_buf_add(&b, "0123456789x", 11);
    assert_true(b.over);
    assert_int_equal(b.n, 0);
    dgm_buf_clear(&b);
    dgm_buf_add(&b, "12345", 5);
    dgm_buf_add(&b, "123456", 6);
    assert_true(b.over);
    check_str(b, "12345");
    dgm_buf_done(&b);
}

static void printf_may_fill_it_to_the_brim(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 10);
    dgm_buf_printf(&b, "%s", "0123456789");
    assert_false(b.over);
    check_str(b, "0123456789");
    dgm_buf_printf(&b, "%s", "");
    assert_false(b.over);
    dgm_buf_clear(&b);
    dgm_buf_printf(&b, "%s", "0123456789x");
    assert_true(b.over);
    assert_int_equal(b.n, 0);
    dgm_buf_done(&b);
}

static void once_over_it_takes_no_more_memory(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1000);
    dgm_buf_add(&b, "x", 1);
    assert_false(dgm_buf_room(&b, 1000));
    size_t cap = b.cap;
    assert_false(dgm_buf_room(&b, 999)); /* would fit, but something is missing already */
    assert_int_equal(b.cap, cap);
    assert_false(dgm_buf_room(&b, SIZE_MAX));
    dgm_buf_done(&b);
}

static void the_front_drops_off(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 100);
    dgm_buf_add_lit(&b, "0123456789");
    dgm_buf_drop_front(&b, 0);
    dgm_buf_drop_front(&b, 4);
    check_str(b, "456789");
    dgm_buf_drop_front(&b, 6);
    check_str(dgm_buf_str(&b), "");
    dgm_buf_add_lit(&b, "ab");
    dgm_buf_drop_front(&b, 50);
    assert_int_equal(b.n, 0);
    dgm_buf_done(&b);
}

static void shrink_gives_memory_back_but_no_bytes(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, 1 << 20);
    for (int i = 0; i < 5000; i++)
        dgm_buf_add_char(&b, 'x');
    dgm_buf_shrink(&b, 4096); /* more is in use: stays */
    assert_int_equal(b.n, 5000);
    assert_true(b.cap >= 5000);
    dgm_buf_clear(&b);
    dgm_buf_add_lit(&b, "abc");
    dgm_buf_shrink(&b, 4096);
    assert_int_equal(b.cap, 4096);
    check_str(b, "abc");
    dgm_buf_clear(&b);
    dgm_buf_shrink(&b, 0);
    assert_int_equal(b.cap, 0);
    dgm_buf_add_lit(&b, "abc");
    check_str(b, "abc");
    dgm_buf_done(&b);
}

static void stolen_bytes_are_terminated(void **state)
{
    dgm_buf b;
    size_t n = 99;
    (void)state;
    dgm_buf_init(&b, 3);
    dgm_buf_add_lit(&b, "abc");
    char *p = dgm_buf_steal(&b, &n);
    assert_int_equal(n, 3);
    assert_string_equal(p, "abc");
    assert_null(b.p);
    assert_int_equal(b.max, 3);
    free(p);
    p = dgm_buf_steal(&b, NULL);
    assert_string_equal(p, "");
    free(p);
}

DGM_TEST_MAIN(dgm_test(it_grows_as_bytes_come), dgm_test(the_limit_is_exact),
              dgm_test(printf_may_fill_it_to_the_brim), dgm_test(once_over_it_takes_no_more_memory),
              dgm_test(the_front_drops_off), dgm_test(shrink_gives_memory_back_but_no_bytes),
              dgm_test(stolen_bytes_are_terminated))
