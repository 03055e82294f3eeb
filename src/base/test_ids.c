/* base/test_ids.c - UUIDv7: the form, and that they ascend. */
#include "base/ids.h"
#include "support/check.h"

#include <pthread.h>

#define EACH 20000

static void ids_have_the_form_and_ascend(void **state)
{
    char before[DGM_UUID_CHARS + 1] = "", id[DGM_UUID_CHARS + 1];
    (void)state;
    for (int i = 0; i < EACH; i++) {
        dgm_uuid7(id);
        assert_int_equal(strlen(id), DGM_UUID_CHARS);
        assert_int_equal(strspn(id, "0123456789abcdef-"), DGM_UUID_CHARS);
        assert_true(id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-');
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
        assert_true(strcmp(before, id) < 0);
        memcpy(before, id, sizeof id);
    }
}

static void *make_ids(void *arg)
{
    char(*ids)[DGM_UUID_CHARS + 1] = arg;
    for (int i = 0; i < EACH; i++)
        dgm_uuid7(ids[i]);
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void threads_never_get_the_same(void **state)
{
    char(*ids)[DGM_UUID_CHARS + 1] = malloc(4 * EACH * sizeof *ids);
    pthread_t threads[4];
    (void)state;
    for (int t = 0; t < 4; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, make_ids, ids + t * EACH), 0);
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    qsort(ids, 4 * EACH, sizeof *ids, by_text);
    for (int i = 1; i < 4 * EACH; i++)
        assert_true(strncmp(ids[i - 1], ids[i], 18) < 0); /* clock and count alone differ */
    free(ids);
}

DGM_TEST_MAIN(dgm_test(ids_have_the_form_and_ascend), dgm_test(threads_never_get_the_same))
