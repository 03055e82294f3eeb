/* test_map.c - text to index. */
#include "base/arena.h"
#include "base/map.h"
#include "support/check.h"

#include <sys/wait.h>
#include <unistd.h>

static void what_was_put_is_found(void **state)
{
    dgm_map m;
    (void)state;
    dgm_map_init(&m);
    assert_null(dgm_map_get(&m, DGM_STR("a")));
    dgm_map_put(&m, DGM_STR("a"), 1);
    dgm_map_put(&m, DGM_STR("b"), 2);
    dgm_map_put(&m, DGM_STR("a"), 3);
    assert_int_equal(m.n, 2);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("a")), 3);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("b")), 2);
    assert_null(dgm_map_get(&m, DGM_STR("c")));
    assert_null(dgm_map_get(&m, DGM_STR("")));
    dgm_map_done(&m);
    assert_null(dgm_map_get(&m, DGM_STR("a")));
    dgm_map_put(&m, DGM_STR("z"), 9); /* usable again */
    assert_int_equal(*dgm_map_get(&m, DGM_STR("z")), 9);
    dgm_map_done(&m);
}

static void empty_and_absent_keys_are_the_same(void **state)
{
    dgm_map m;
    (void)state;
    dgm_map_init(&m);
    dgm_map_put(&m, (dgm_str){0}, 7);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("")), 7);
    assert_int_equal(*dgm_map_get(&m, (dgm_str){0}), 7);
    assert_int_equal(m.n, 1);
    dgm_map_done(&m);
}

static void keys_may_hold_nuls(void **state)
{
    dgm_map m;
    (void)state;
    dgm_map_init(&m);
    dgm_map_put(&m, DGM_STR("a\0b"), 1);
    dgm_map_put(&m, DGM_STR("a\0c"), 2);
    dgm_map_put(&m, DGM_STR("a"), 3);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("a\0b")), 1);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("a\0c")), 2);
    assert_int_equal(*dgm_map_get(&m, DGM_STR("a")), 3);
    dgm_map_done(&m);
}

static void twenty_thousand_keys_keep_their_values(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_map m;
    (void)state;
    dgm_map_init(&m);
    for (size_t i = 0; i < 20000; i++)
        dgm_map_put(&m, dgm_arena_printf(a, "key-%zu", i), i);
    assert_int_equal(m.n, 20000);
    assert_true(m.n * 3 <= m.cap * 2);
    for (size_t i = 0; i < 20000; i++)
        assert_int_equal(*dgm_map_get(&m, dgm_arena_printf(a, "key-%zu", i)), i);
    assert_null(dgm_map_get(&m, DGM_STR("key-20000")));
    dgm_map_done(&m);
}

/* From a row to a hashed table and on: none is lost, and none is there twice. */
static void growing_keeps_all_at_every_size(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str keys[40];
    dgm_map m;
    (void)state;
    dgm_map_init(&m);
    for (size_t n = 0; n < 40; n++) {
        keys[n] = dgm_arena_printf(a, "%zu", n);
        assert_null(dgm_map_get(&m, keys[n]));
        dgm_map_put(&m, keys[n], n);
        dgm_map_put(&m, keys[n / 2], n / 2 + 100); /* one that is there */
        assert_int_equal(m.n, n + 1);
        assert_int_equal(*dgm_map_get(&m, keys[n / 2]), n / 2 + 100);
        for (size_t i = n / 2 + 1; i <= n; i++)
            assert_int_equal(*dgm_map_get(&m, keys[i]), i);
    }
    dgm_map_done(&m);
}

/* Callers choose keys: they must not know which of them collide. First, before another test uses the seed. */
static void the_seed_is_of_the_process(void **state)
{
    int fds[2], status = 0;
    uint64_t other = 0;
    (void)state;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        uint64_t seed = dgm_hash_seed();
        _exit(write(fds[1], &seed, sizeof seed) != sizeof seed);
    }
    assert_int_equal(read(fds[0], &other, sizeof other), sizeof other);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fds[0]);
    close(fds[1]);
    assert_true(other && dgm_hash_seed() != other);
    assert_true(dgm_hash_seed() == dgm_hash_seed());
}

DGM_TEST_MAIN(dgm_test(the_seed_is_of_the_process), dgm_test(what_was_put_is_found),
              dgm_test(empty_and_absent_keys_are_the_same), dgm_test(keys_may_hold_nuls),
              dgm_test(growing_keeps_all_at_every_size),
              dgm_test(twenty_thousand_keys_keep_their_values))
