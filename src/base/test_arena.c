/* test_arena.c - memory that goes in one stroke. */
#include "base/arena.h"
#include "base/limits.h"
#include "base/sanitizer.h"
#include "support/check.h"

#if DGM_HAVE_ASAN
size_t __sanitizer_get_current_allocated_bytes(void); /* gcc 12 installs no header for it */
#endif

static void allocations_are_zeroed_aligned_and_apart(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    unsigned char *last = NULL;
    size_t last_n = 0;
    (void)state;
    for (size_t n = 0; n < 3000; n += n < 40 ? 1 : 97) {
        unsigned char *p = dgm_arena_alloc(a, n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xAB, n);
        for (size_t i = 0; i < last_n; i++)
            assert_int_equal(last[i], 0xAB);
        last = p;
        last_n = n;
    }
}

static void nothing_is_a_place_too(void **state)
{
    /* The first allocation of an arena, before it has any block. */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    void *p = dgm_arena_alloc(a, 0), *q = dgm_arena_alloc_raw(a, 0);
    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
}

static void a_large_allocation_gets_a_block_of_its_own(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    char *small = dgm_arena_alloc(a, 10);
    char *large = dgm_arena_alloc(a, (size_t)4 << 20);
    large[((size_t)4 << 20) - 1] = 1;
    small[9] = 1;
    assert_in_range(dgm_arena_used(a), ((size_t)4 << 20) + 10, ((size_t)4 << 20) + 100);
}

static const char digits[10] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'};

static void realloc_grows_the_last_one_in_place(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    char *p = dgm_arena_alloc_raw(a, 10);
    memcpy(p, digits, sizeof digits);
    char *q = dgm_arena_realloc(a, p, 10, 500);
    assert_ptr_equal(p, q);
    assert_memory_equal(q, "0123456789", 10);
    memset(q + 10, 'x', 490);
    assert_in_range(dgm_arena_used(a), 500, 540);
    assert_ptr_equal(dgm_arena_realloc(a, q, 500, 5), p); /* and shrinks it */
    char *r = dgm_arena_alloc_raw(a, 10);
    assert_true(r >= p + 5 && r < p + 500);
    assert_memory_equal(p, "01234", 5);
}

static void realloc_copies_what_is_not_the_last_one(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    char *p = dgm_arena_alloc_raw(a, 10);
    memcpy(p, digits, sizeof digits);
    char *other = dgm_arena_alloc(a, 10);
    char *q = dgm_arena_realloc(a, p, 10, 20);
    assert_ptr_not_equal(p, q);
    assert_memory_equal(q, "0123456789", 10);
    memset(q, 1, 20);
    assert_int_equal(other[0], 0);
    char *r = dgm_arena_realloc(a, q, 20, 100000); /* past the end of its block */
    assert_ptr_not_equal(q, r);
    assert_int_equal(r[19], 1);
    assert_non_null(dgm_arena_realloc(a, NULL, 0, 8));
}

static void realloc_grows_a_block_of_its_own(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char *small = dgm_arena_alloc(a, 100);
    size_t n = DGM_ARENA_KEEP_BYTES * 2;
    char *p = dgm_arena_alloc(a, n);
    memset(small, 'x', 100);
    memset(p, 'y', n);
    for (int i = 0; i < 4; i++, n *= 2) {
        p = dgm_arena_realloc(a, p, n, n * 2);
        assert_int_equal(p[0], 'y');
        assert_int_equal(p[n - 1], 'y');
        memset(p, 'y', n * 2);
    }
    assert_int_equal(small[99], 'x');
    assert_true(dgm_arena_used(a) < n + 1000); /* the shorter ones are not there any more */
}

static void text_is_copied_and_terminated(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    char from[] = {'a', 0, 'b'};
    dgm_str s = dgm_arena_dup(a, (dgm_str){from, 3});
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    assert_ptr_not_equal(s.p, from);
    assert_null(dgm_arena_dup(a, (dgm_str){0}).p); /* absent stays absent, empty stays empty */
    s = dgm_arena_dup(a, DGM_STR(""));
    assert_non_null(s.p);
    assert_int_equal(s.p[0], 0);
    s = dgm_arena_printf(a, "%s-%d", "x", 42);
    check_str(s, "x-42");
    assert_int_equal(s.p[4], 0);
    check_str(dgm_arena_printf(a, "%s", ""), "");
    check_str(dgm_arena_join(a, DGM_STR("one"), DGM_STR("two")), "onetwo");
    check_str(dgm_arena_join(a, (dgm_str){0}, DGM_STR("")), "");
}

/* Things come from the front of a block, texts from its back: none runs into another. */
static void things_and_texts_stay_apart(void **state)
{
    enum { N = 400 };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(64);
    unsigned char *things[N];
    dgm_str texts[N];
    char text[32];
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N; i++) {
            int n =
                snprintf(text, sizeof text, "%.*s%zu", (int)(i % 20), "xxxxxxxxxxxxxxxxxxxx", i);
            texts[i] = dgm_arena_dup(a, (dgm_str){text, (size_t)n});
            things[i] = dgm_arena_alloc_raw(a, i % 50 + 1);
            assert_int_equal((uintptr_t)things[i] % 16, 0);
            memset(things[i], (int)i, i % 50 + 1);
        }
        for (size_t i = 0; i < N; i++) {
            snprintf(text, sizeof text, "%.*s%zu", (int)(i % 20), "xxxxxxxxxxxxxxxxxxxx", i);
            check_str(texts[i], text);
            for (size_t k = 0; k < i % 50 + 1; k++)
                assert_int_equal(things[i][k], (unsigned char)i);
        }
        dgm_arena_reset(a);
    }
}

struct trail {
    char order[8];
    int n;
};

struct step {
    struct trail *trail;
    char name;
};

static void leave(void *arg)
{
    struct step *s = arg; /* lives in the arena: deferred calls run before the memory goes */
    s->trail->order[s->trail->n++] = s->name;
}

static void defer(dgm_arena *a, struct trail *t, char name)
{
    struct step *s = dgm_new(a, struct step);
    *s = (struct step){t, name};
    dgm_arena_defer(a, leave, s);
}

static void deferred_calls_run_once_newest_first(void **state)
{
    struct trail t = {0};
    dgm_arena *a = dgm_arena_new();
    (void)state;
    defer(a, &t, '1');
    defer(a, &t, '2');
    dgm_arena_reset(a);
    assert_string_equal(t.order, "21");
    defer(a, &t, '3');
    dgm_arena_free(a);
    assert_string_equal(t.order, "213");
    dgm_arena_free(NULL);
}

static void reset_keeps_a_small_block(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    char *p = dgm_arena_alloc(a, 100);
    memset(p, 1, 100);
    dgm_arena_reset(a);
    assert_int_equal(dgm_arena_used(a), 0);
    char *q = dgm_arena_alloc(a, 100);
    assert_ptr_equal(p, q);
    assert_int_equal(q[50], 0);
}

static void reset_lets_a_large_block_go(void **state)
{
    (void)state;
#if DGM_HAVE_ASAN
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t before = __sanitizer_get_current_allocated_bytes();
    /* 32 bytes are alignment and ASan's own gap: the block is one past the limit, or just on it */
    dgm_arena_alloc(a, DGM_ARENA_KEEP_BYTES + 1);
    dgm_arena_reset(a);
    assert_int_equal(__sanitizer_get_current_allocated_bytes(), before);
    dgm_arena_alloc(a, DGM_ARENA_KEEP_BYTES - 32);
    dgm_arena_reset(a);
    assert_in_range(__sanitizer_get_current_allocated_bytes() - before, DGM_ARENA_KEEP_BYTES - 32,
                    DGM_ARENA_KEEP_BYTES + 64);
#else
    skip();
#endif
}

static void a_small_one_takes_little(void **state)
{
    (void)state;
#if DGM_HAVE_ASAN
    size_t before = __sanitizer_get_current_allocated_bytes();
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(512);
    dgm_arena_alloc(a, 1300); /* a block of its own ... */
    dgm_arena_alloc(a, 100);  /* ... and the next one is no larger for it */
    assert_true(__sanitizer_get_current_allocated_bytes() - before < 2200);
#else
    skip();
#endif
}

static void asan_sees_a_read_past_the_end_and_after_reset(void **state)
{
    (void)state;
#if DGM_HAVE_ASAN
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char *p = dgm_arena_alloc(a, 13);
    assert_false(__asan_address_is_poisoned(p + 12));
    assert_true(__asan_address_is_poisoned(p + 13));
    p = dgm_arena_realloc(a, p, 13, 40);
    assert_false(__asan_address_is_poisoned(p + 39));
    assert_true(__asan_address_is_poisoned(p + 40));
    p = dgm_arena_realloc(a, p, 40, 3);
    assert_true(__asan_address_is_poisoned(p + 3));
    dgm_arena_reset(a);
    assert_true(__asan_address_is_poisoned(p));
#else
    skip();
#endif
}

DGM_TEST_MAIN(dgm_test(allocations_are_zeroed_aligned_and_apart), dgm_test(nothing_is_a_place_too),
              dgm_test(a_large_allocation_gets_a_block_of_its_own),
              dgm_test(realloc_grows_the_last_one_in_place),
              dgm_test(realloc_copies_what_is_not_the_last_one),
              dgm_test(realloc_grows_a_block_of_its_own), dgm_test(text_is_copied_and_terminated),
              dgm_test(things_and_texts_stay_apart), dgm_test(deferred_calls_run_once_newest_first),
              dgm_test(reset_keeps_a_small_block), dgm_test(reset_lets_a_large_block_go),
              dgm_test(a_small_one_takes_little),
              dgm_test(asan_sees_a_read_past_the_end_and_after_reset))
