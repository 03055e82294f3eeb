/* json/test_find.c - the place of a pointer in a text. */
#include "support/check.h"
#include "json/json.h"

/* Where in the text does the marked value start? The mark is taken out before the search. */
static void found_at_the_mark(void **state)
{
    static const struct {
        const char *marked, *pointer;
    } rows[] = {
        {"@{}", ""},
        {"  @ 1", ""},
        {"{\"a\":@1}", "/a"},
        {"{\"a\" : [1, 2,\n @{\"b\":3}]}", "/a/2"},
        {"{\"a\":[1,2,{\"x\":\"}]\\\"\",\"b\": @3}]}", "/a/2/b"},
        {"{\"a/b\":{\"~\":@null}}", "/a~1b/~0"},
        {"[[],[[0]],[@[]]]", "/2/0"},
        {"{\"a\":1,\"aa\":@2}", "/aa"},
        {"{\"a\":{\"b\":1},\"b\":@2}", "/b"},
        /* what is not there: the nearest value above it */
        {"{\"a\":@{\"b\":1}}", "/a/c"},
        {"{\"a\":@[1]}", "/a/1"},
        {"@{\"a\":1}", "/b/c/d"},
        {"{\"a\":@1}", "/a/b"},
        {"@{\"\\u0061\":1}", "/a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        const char *mark = strchr(rows[i].marked, '@');
        size_t at = (size_t)(mark - rows[i].marked);
        at += strspn(mark + 1, " "); /* white space may follow the mark */
        snprintf(text, sizeof text, "%.*s%s", (int)(mark - rows[i].marked), rows[i].marked,
                 mark + 1);
        size_t found = dgm_json_find(dgm_str_from(text), rows[i].pointer);
        if (found != at)
            fail_msg("%s in %s: byte %zu, not %zu", rows[i].pointer, text, found, at);
    }
}

static void any_bytes_are_safe(void **state)
{
    static const char text[] = "{\"a\":[1,{\"b\":\"x\\\"\"}],\"c\":{\"d\":[[],[2]]}}";
    static const char *const pointers[] = {"/a/1/b", "/c/d/1/0", "/c/d/9", "/", "//", "/a/x"};
    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        char *cut = malloc(n + 1); /* of the exact size: a read past it is seen */
        memcpy(cut, text, n);
        for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
            assert_true(dgm_json_find((dgm_str){cut, n}, pointers[i]) <= n);
        free(cut);
    }
}

static void elements_follow_each_other(void **state)
{
    dgm_str text = DGM_STR("[ 1 , {\"a\":[2,3]},\n\"x,]\" ,[] ]");
    size_t pos = dgm_json_find(text, "/0");
    static const char starts[] = "1{\"[]";
    (void)state;
    for (size_t i = 0; i < strlen(starts); i++) {
        assert_int_equal(text.p[pos], starts[i]);
        pos = dgm_json_next(text, pos);
    }
    assert_int_equal(dgm_json_next(text, text.n), text.n);
}

DGM_TEST_MAIN(dgm_test(elements_follow_each_other), dgm_test(found_at_the_mark),
              dgm_test(any_bytes_are_safe))
