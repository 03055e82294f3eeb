/* test_mint.c - ids that depend on nothing but what was stirred in. */
#include "base/mint.h"
#include "support/check.h"

static void same_seed_same_ids(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint x = {0}, y = {0};
    (void)state;
    dgm_mint_seed(&x, DGM_STR("seed"));
    dgm_mint_seed(&y, DGM_STR("seed"));
    for (int i = 0; i < 100; i++) {
        dgm_str one = dgm_mint_id(&x, a), other = dgm_mint_id(&y, a);
        check_same(one, other);
    }
}

static void every_bit_of_input_and_its_order_count(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const stirred[][2] = {{"", ""},   {"a", ""},  {"b", ""},   {"ab", ""},
                                             {"a", "b"}, {"b", "a"}, {"abc", "d"}};
    dgm_str ids[7];
    (void)state;
    for (int i = 0; i < 7; i++) {
        dgm_mint m = {0};
        for (int k = 0; k < 2; k++) {
            if (*stirred[i][k])
                dgm_mint_seed(&m, dgm_str_from(stirred[i][k]));
        }
        ids[i] = dgm_mint_id(&m, a);
        for (int k = 0; k < i; k++)
            assert_false(dgm_str_eq(ids[i], ids[k]));
    }
}

static void ids_are_uuids_and_differ(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint m = {0};
    dgm_str ids[500];
    (void)state;
    for (int i = 0; i < 500; i++) {
        dgm_str id = ids[i] = dgm_mint_id(&m, a);
        assert_int_equal(id.n, 36);
        assert_int_equal(id.p[36], 0);
        for (int k = 0; k < 36; k++) {
            if (k == 8 || k == 13 || k == 18 || k == 23)
                assert_int_equal(id.p[k], '-');
            else
                assert_non_null(strchr("0123456789abcdef", id.p[k]));
        }
        assert_int_equal(id.p[14], '8');           /* version: a rule of our own */
        assert_non_null(strchr("89ab", id.p[19])); /* variant of RFC 9562 */
        for (int k = 0; k < i; k++)
            assert_false(dgm_str_eq(ids[i], ids[k]));
    }
}

static void golden_files_stay_golden(void **state)
{
    /* Minted ids are in the vectors: a change here changes them all. */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint m = {0};
    (void)state;
    dgm_mint_seed(&m, DGM_STR("dragoman"));
    dgm_str first = dgm_mint_id(&m, a), second = dgm_mint_id(&m, a);
    check_str(first, "062a6792-447d-80b2-82f7-ec7b981a720e");
    check_str(second, "ea2dd64c-39e4-8763-837f-38d51d18d71b");
}

DGM_TEST_MAIN(dgm_test(same_seed_same_ids), dgm_test(every_bit_of_input_and_its_order_count),
              dgm_test(ids_are_uuids_and_differ), dgm_test(golden_files_stay_golden))
