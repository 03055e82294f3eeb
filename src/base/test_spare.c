/* test_spare.c - freed blocks that a thread retains. */
#include "base/arena.h"
#include "base/limits.h"
#include "base/sanitizer.h"
#include "base/spare.h"
#include "support/check.h"

#include <pthread.h>

static int open_cache(void **state)
{
    (void)state;
    dgm_spare_open((size_t)64 << 10);
    return 0;
}

static int close_cache(void **state)
{
    (void)state;
    dgm_spare_close();
    return 0;
}

static void a_freed_block_is_used_again_for_its_size(void **state)
{
    char *p = dgm_spare_alloc(700), *other = dgm_spare_alloc(800);
    (void)state;
    dgm_spare_free(p, 700);
    assert_in_range(dgm_spare_bytes(), 700, 720);
    char *another = dgm_spare_alloc(800); /* a block of another size is not used */
    assert_ptr_not_equal(another, p);
    dgm_spare_free(another, 800);
    assert_ptr_equal(dgm_spare_alloc(700), p);
    another = dgm_spare_alloc(800);
    dgm_spare_free(another, 800);
    assert_ptr_equal(dgm_spare_alloc(800), another);
    dgm_spare_free(another, 800);
    dgm_spare_sweep();
    dgm_spare_sweep();
    assert_int_equal(dgm_spare_bytes(), 0);
    memset(p, 1, 700);
    memset(other, 1, 800);
    dgm_spare_free(p, 700);
    dgm_spare_free(other, 800);
    dgm_spare_free(NULL, 10);
}

/* ASan sees a write behind a class that is too small. */
static void every_size_has_room(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t n = 0; n <= DGM_SPARE_BLOCK_BYTES + 40; n++) {
            char *p = dgm_spare_alloc(n);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, 0xAB, n);
            dgm_spare_free(p, n);
            p = dgm_spare_alloc_zeroed(n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(p[i], 0);
            dgm_spare_free(p, n);
        }
    }
}

static void no_more_than_the_limit_is_retained(void **state)
{
    enum { N = 100 };
    char *blocks[N];
    size_t most = 0;
    (void)state;
    for (size_t i = 0; i < N; i++)
        blocks[i] = dgm_spare_alloc(1000);
    for (size_t i = 0; i < N; i++) {
        dgm_spare_free(blocks[i], 1000);
        most = dgm_spare_bytes() > most ? dgm_spare_bytes() : most;
    }
    assert_in_range(most, (size_t)63 << 10, (size_t)64 << 10);
}

static void a_large_block_is_not_retained(void **state)
{
    (void)state;
    dgm_spare_free(dgm_spare_alloc(DGM_SPARE_BLOCK_BYTES + 1), DGM_SPARE_BLOCK_BYTES + 1);
    assert_int_equal(dgm_spare_bytes(), 0);
    dgm_spare_free(dgm_spare_alloc(DGM_SPARE_BLOCK_BYTES), DGM_SPARE_BLOCK_BYTES);
    assert_true(dgm_spare_bytes() >= DGM_SPARE_BLOCK_BYTES);
}

static void blocks_that_are_not_needed_are_freed(void **state)
{
    char *blocks[8];
    (void)state;
    for (size_t i = 0; i < 8; i++)
        blocks[i] = dgm_spare_alloc(1000);
    for (size_t i = 0; i < 8; i++)
        dgm_spare_free(blocks[i], 1000);
    size_t all = dgm_spare_bytes();
    dgm_spare_sweep(); /* all of them were in use since the cache was opened */
    assert_int_equal(dgm_spare_bytes(), all);
    blocks[0] = dgm_spare_alloc(1000); /* two at once are needed */
    blocks[1] = dgm_spare_alloc(1000);
    dgm_spare_free(blocks[0], 1000);
    dgm_spare_free(blocks[1], 1000);
    dgm_spare_sweep();
    assert_int_equal(dgm_spare_bytes(), all / 4);
    dgm_spare_sweep();
    assert_int_equal(dgm_spare_bytes(), 0);
}

static void *free_elsewhere(void *block)
{
    dgm_spare_free(block, 500);
    return (void *)dgm_spare_bytes(); /* this thread has no cache */
}

static void a_thread_without_a_cache_retains_nothing(void **state)
{
    pthread_t thread;
    void *retained;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, dgm_spare_alloc(500)), 0);
    assert_int_equal(pthread_join(thread, &retained), 0);
    assert_null(retained);
    assert_int_equal(dgm_spare_bytes(), 0);
}

static void arenas_use_the_blocks_of_those_before(void **state)
{
    dgm_arena *a = dgm_arena_new_small(600), *b;
    (void)state;
    dgm_arena_alloc(a, 100);
    dgm_arena_free(a);
    size_t retained = dgm_spare_bytes();
    assert_true(retained >= 600);
    assert_ptr_equal(b = dgm_arena_new_small(600), a);
    char *p = dgm_arena_alloc(b, 500);
    for (size_t i = 0; i < 500; i++)
        assert_int_equal(p[i], 0);
    dgm_arena_alloc(b, 5000); /* a block to itself goes at once */
    dgm_arena_free(b);
    assert_int_equal(dgm_spare_bytes(), retained);
}

static void asan_sees_a_read_of_a_retained_block(void **state)
{
    (void)state;
#if DGM_HAVE_ASAN
    char *p = dgm_spare_alloc(100);
    dgm_spare_free(p, 100);
    assert_true(__asan_address_is_poisoned(p + 50));
    assert_ptr_equal(dgm_spare_alloc(100), p);
    assert_false(__asan_address_is_poisoned(p + 50));
    dgm_spare_free(p, 100);
#else
    skip();
#endif
}

/* Allocations that stay get the memory of a burst that is over. */
static void misses_free_retained_blocks(void **state)
{
    enum { N = 16 };
    char *blocks[N], *stay[4 * N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        blocks[i] = dgm_spare_alloc(3000);
    for (size_t i = 0; i < N; i++)
        dgm_spare_free(blocks[i], 3000);
    assert_true(dgm_spare_bytes() >= N * (size_t)3000);
    for (size_t i = 0; i < 4 * N; i++)
        stay[i] = dgm_spare_alloc(500);
    assert_int_equal(dgm_spare_bytes(), 0);
    for (size_t i = 0; i < 4 * N; i++)
        dgm_spare_free(stay[i], 500);
}

#define WITH_CACHE(fn)                                                                             \
    {                                                                                              \
#fn, fn, open_cache, close_cache, NULL                                                     \
    }

DGM_TEST_MAIN(WITH_CACHE(a_freed_block_is_used_again_for_its_size), WITH_CACHE(every_size_has_room),
              WITH_CACHE(no_more_than_the_limit_is_retained),
              WITH_CACHE(a_large_block_is_not_retained),
              WITH_CACHE(blocks_that_are_not_needed_are_freed),
              WITH_CACHE(a_thread_without_a_cache_retains_nothing),
              WITH_CACHE(arenas_use_the_blocks_of_those_before),
              WITH_CACHE(misses_free_retained_blocks),
              WITH_CACHE(asan_sees_a_read_of_a_retained_block))
