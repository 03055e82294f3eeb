/* test_table.c - hash tables of objects that contain their node. */
#include "base/table.h"
#include "support/check.h"

#include <sys/wait.h>
#include <unistd.h>

struct thing {
    dgm_table_node node; /* first */
    uint64_t number;
};

static struct thing *thing_find(const dgm_table *t, uint64_t hash, uint64_t number)
{
    dgm_table_node *node = dgm_table_first(t, hash);
    while (node && (node->hash != hash || ((struct thing *)(void *)node)->number != number))
        node = node->next;
    return (struct thing *)(void *)node;
}

static void objects_are_found_until_they_are_removed(void **state)
{
    static struct thing things[1000];
    dgm_table t = {0};
    (void)state;
    assert_null(dgm_table_first(&t, 7));
    for (uint64_t i = 0; i < 1000; i++) {
        things[i].number = i;
        dgm_table_add(&t, &things[i].node, i / 2 * 64); /* two per hash, many hashes per slot */
        assert_int_equal(t.n, i + 1);
        assert_true(t.n <= t.cap);
        assert_ptr_equal(thing_find(&t, i / 4 * 64, i / 2), &things[i / 2]);
    }
    for (uint64_t i = 0; i < 1000; i += 3)
        dgm_table_remove(&t, &things[i].node);
    assert_int_equal(t.n, 666);
    for (uint64_t i = 0; i < 1000; i++)
        assert_ptr_equal(thing_find(&t, i / 2 * 64, i), i % 3 ? &things[i] : NULL);
    dgm_table_done(&t);
    assert_null(dgm_table_first(&t, 64));
}

static void the_hash_of_texts_depends_on_their_places(void **state)
{
    dgm_str none = {0}, a = DGM_STR("a"), b = DGM_STR("b");
    (void)state;
    uint64_t ab = dgm_hash_texts(1, (dgm_str[]){a, b}, 2);
    assert_true(ab == dgm_hash_texts(1, (dgm_str[]){DGM_STR("a"), b}, 2));
    assert_true(ab != dgm_hash_texts(1, (dgm_str[]){b, a}, 2));
    assert_true(ab != dgm_hash_texts(2, (dgm_str[]){a, b}, 2));
    assert_true(ab != dgm_hash_texts(1, (dgm_str[]){DGM_STR("ab"), none}, 2));
    assert_true(dgm_hash_texts(1, (dgm_str[]){none, a}, 2) !=
                dgm_hash_texts(1, (dgm_str[]){a, none}, 2));
}

/* The hash that a process computes which has not hashed anything yet. */
static uint64_t hash_of_a_process(void)
{
    int ends[2];
    uint64_t hash = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        hash = dgm_hash_texts(1, (dgm_str[]){DGM_STR("message-1")}, 1);
        _exit(write(ends[1], &hash, sizeof hash) != sizeof hash);
    }
    assert_int_equal(read(ends[0], &hash, sizeof hash), sizeof hash);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    return hash;
}

/* Callers choose the ids that are hashed. If they could compute the hashes, they could put all ids into one slot. */
static void hashes_differ_between_processes(void **state)
{
    (void)state;
    assert_true(hash_of_a_process() != hash_of_a_process());
}

/* First: a test before it would set the secret that the processes inherit. */
DGM_TEST_MAIN(dgm_test(hashes_differ_between_processes),
              dgm_test(objects_are_found_until_they_are_removed),
              dgm_test(the_hash_of_texts_depends_on_their_places))
