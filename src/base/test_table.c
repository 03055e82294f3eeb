/* test_table.c - hash tables of objects that contain their node. */
#include "base/table.h"
#include "support/check.h"

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

DGM_TEST_MAIN(dgm_test(objects_are_found_until_they_are_removed),
              dgm_test(the_hash_of_texts_depends_on_their_places))
