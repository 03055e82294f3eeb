/* lib/test_api_json.c - dragoman/base.h and dragoman/json.h: errors, the out-of-memory hook, JSON values. */
#include "base/arena.h"
#include "base/err.h"
#include "support/check.h"

#include <dragoman/dragoman.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- base.h ------------------------------------------------------------------------------------ */

static void an_error_is_read_through_its_functions(void **state)
{
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_A2A_03, .to = DGM_FORMAT_A2A_10};
    dgm_err *err = dgm_err_new();
    char *out = NULL;
    (void)state;
    assert_int_equal(dgm_err_code(err), DGM_OK);
    assert_string_equal(dgm_err_message(err), "");
    assert_int_equal(dgm_convert(&o, "{\"role\":\"user\",\n\"parts\":[7]}", 28, &out, NULL, err),
                     DGM_BAD_PARAMS);
    assert_int_equal(dgm_err_code(err), DGM_BAD_PARAMS);
    assert_true(strlen(dgm_err_message(err)) > 0);
    assert_string_equal(dgm_err_pointer(err), "/parts/0");
    assert_int_equal(dgm_err_line(err), 2);
    assert_int_equal(dgm_err_column(err), 10);
    dgm_err_free(err);
    dgm_err_free(NULL);
    assert_int_equal(dgm_err_code(NULL), DGM_OK);
    assert_string_equal(dgm_err_message(NULL), "");
    assert_string_equal(dgm_err_pointer(NULL), "");
    assert_int_equal(dgm_err_line(NULL) + dgm_err_column(NULL), 0);
    assert_string_equal(dgm_code_name((dgm_code)999), "INTERNAL");
}

static void on_out_of_memory(size_t n)
{
    _exit(n == (size_t)1 << 62 ? 42 : 43);
}

static int status_without_memory(void (*hook)(size_t n))
{
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        dgm_oom_set_hook(on_out_of_memory);
        dgm_oom_set_hook(hook);
        dgm_document_alloc(dgm_document_new(), (size_t)1 << 62);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void the_hook_is_called_when_memory_is_exhausted(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    /* the sanitizer ends the process itself unless it may return NULL */
    const char *options = getenv("ASAN_OPTIONS");
    if (!options || !strstr(options, "allocator_may_return_null=1"))
        skip();
#endif
    int status = status_without_memory(on_out_of_memory);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 42 || WEXITSTATUS(status) == 43);
    status = status_without_memory(NULL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- json.h ------------------------------------------------------------------------------------ */

static const dgm_json *parse(dgm_document *d, const char *text)
{
    const dgm_json *v = NULL;
    assert_int_equal(dgm_json_parse(d, text, strlen(text), &v, NULL), DGM_OK);
    return v;
}

static void check_text(const dgm_json *v, const char *want)
{
    char *text = dgm_json_text(v);
    assert_string_equal(text, want);
    dgm_free(text);
}

static void values_are_inspected(void **state)
{
    dgm_document *d = dgm_document_new();
    const dgm_json *v =
        parse(d, "{\"s\":\"a\\u0000b\",\"n\":-12,\"big\":1e400,\"t\":true,\"z\":null,"
                 "\"a\":[1,[2],{\"k\":3}],\"o\":{}}");
    int64_t n = 0;
    double x = 0;
    bool b = false;
    (void)state;
    assert_int_equal(dgm_json_kind_of(v), DGM_JSON_KIND_OBJECT);
    assert_int_equal(dgm_json_count(v), 7);
    assert_int_equal(dgm_json_string(dgm_json_member(v, "s")).n, 3);
    assert_true(dgm_json_to_int64(dgm_json_member(v, "n"), &n) && n == -12);
    assert_true(dgm_json_to_double(dgm_json_member(v, "n"), &x) && x == -12);
    check_str(dgm_json_number(dgm_json_member(v, "big")), "1e400");
    assert_false(dgm_json_to_int64(dgm_json_member(v, "big"), &n));
    assert_false(dgm_json_to_double(dgm_json_member(v, "big"), &x));
    assert_true(dgm_json_to_bool(dgm_json_member(v, "t"), &b) && b);
    assert_int_equal(dgm_json_kind_of(dgm_json_member(v, "z")), DGM_JSON_KIND_NULL);
    assert_null(dgm_json_member(v, "none"));
    assert_int_equal(dgm_json_kind_of(NULL), DGM_JSON_KIND_ABSENT);

    const dgm_json *a = dgm_json_member(v, "a"), *e = NULL;
    size_t seen = 0;
    dgm_str key = DGM_STR("x");
    while ((e = dgm_json_iterate(a, e, &key))) {
        assert_ptr_equal(e, dgm_json_element(a, seen++));
        assert_null(key.p);
    }
    assert_int_equal(seen, 3);
    static const char *const keys[] = {"s", "n", "big", "t", "z", "a", "o"};
    for (seen = 0; (e = dgm_json_iterate(v, e, &key)); seen++) {
        check_str(key, keys[seen]);
        assert_ptr_equal(e, dgm_json_member(v, keys[seen]));
    }
    assert_int_equal(seen, 7);
    assert_null(dgm_json_iterate(dgm_json_member(v, "o"), NULL, NULL));
    assert_null(dgm_json_element(a, 3));
    assert_true(dgm_json_is_equal(
        v, parse(d, "{\"o\":{},\"s\":\"a\\u0000b\",\"n\":-12,\"big\":1e400,\"t\":true,"
                    "\"z\":null,\"a\":[1,[2],{\"k\":3}]}")));
    dgm_document_free(d);
}

static void absent_values_and_arguments_are_allowed(void **state)
{
    const dgm_json *v = NULL;
    int64_t n;
    (void)state;
    check_text(NULL, "null");
    assert_null(dgm_json_string(NULL).p);
    assert_null(dgm_json_number(NULL).p);
    assert_false(dgm_json_to_int64(NULL, &n) || dgm_json_to_bool(NULL, NULL));
    assert_int_equal(dgm_json_count(NULL), 0);
    assert_null(dgm_json_member(NULL, "k"));
    assert_null(dgm_json_element(NULL, 0));
    assert_null(dgm_json_iterate(NULL, NULL, NULL));
    assert_true(dgm_json_is_equal(NULL, NULL));
    assert_null(dgm_json_builder_new(NULL));
    dgm_json_builder_object(NULL, NULL);
    dgm_json_builder_close(NULL);
    dgm_json_builder_double(NULL, NULL, NAN);
    assert_int_equal(dgm_json_builder_end(NULL, &v, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_json_parse(NULL, "1", 1, &v, NULL), DGM_BAD_PARAMS);
}

static void a_value_is_built(void **state)
{
    dgm_document *d = dgm_document_new(), *other = dgm_document_new();
    const dgm_json *v = NULL;
    dgm_json_builder *b = dgm_json_builder_new(d);
    (void)state;
    dgm_json_builder_object(b, NULL);
    {
        char key[] = "key", text[] = "text"; /* copied */
        dgm_json_builder_string(b, key, (dgm_str){text, 4});
        memset(key, 'x', 3);
        memset(text, 'x', 4);
    }
    dgm_json_builder_int(b, "min", INT64_MIN);
    dgm_json_builder_double(b, "half", 0.5);
    dgm_json_builder_number(b, "exact", DGM_STR("1.00"));
    dgm_json_builder_bool(b, "no", false);
    dgm_json_builder_null(b, "null");
    dgm_json_builder_array(b, "list");
    dgm_json_builder_value(b, NULL, parse(other, "{\"in\":[\"another\"]}"));
    dgm_json_builder_close(b);
    dgm_json_builder_close(b);
    assert_int_equal(dgm_json_builder_end(b, &v, NULL), DGM_OK);
    dgm_document_free(other);
    check_text(
        v,
        "{\"key\":\"text\",\"min\":-9223372036854775808,\"half\":0.5,\"exact\":1.00,\"no\":false,"
        "\"null\":null,\"list\":[{\"in\":[\"another\"]}]}");
    dgm_document_free(d);
}

static void check_wrong(dgm_document *d, void (*calls)(dgm_json_builder *b))
{
    const dgm_json *v = NULL;
    dgm_err err = {0};
    dgm_json_builder *b = dgm_json_builder_new(d);
    calls(b);
    dgm_json_builder_null(b, NULL); /* does nothing */
    assert_int_equal(dgm_json_builder_end(b, &v, &err), DGM_BAD_PARAMS);
    assert_true(*err.msg);
    assert_null(v);
}

static void key_in_array(dgm_json_builder *b)
{
    dgm_json_builder_array(b, NULL);
    dgm_json_builder_int(b, "k", 1);
}

static void member_without_key(dgm_json_builder *b)
{
    dgm_json_builder_object(b, NULL);
    dgm_json_builder_int(b, NULL, 1);
}

static void close_too_often(dgm_json_builder *b)
{
    dgm_json_builder_close(b);
}

static void not_closed(dgm_json_builder *b)
{
    dgm_json_builder_array(b, NULL);
}

static void two_roots(dgm_json_builder *b)
{
    dgm_json_builder_int(b, NULL, 1);
}

static void not_a_number(dgm_json_builder *b)
{
    dgm_json_builder_double(b, NULL, INFINITY);
}

static void number_that_is_text(dgm_json_builder *b)
{
    dgm_json_builder_number(b, NULL, DGM_STR("1,5"));
}

static void not_utf8(dgm_json_builder *b)
{
    dgm_json_builder_string(b, NULL, DGM_STR("\xff"));
}

static void too_deep(dgm_json_builder *b)
{
    for (int i = 0; i < 1000; i++)
        dgm_json_builder_array(b, NULL);
    for (int i = 0; i < 1000; i++)
        dgm_json_builder_close(b);
}

static void wrong_calls_are_reported_at_the_end(void **state)
{
    dgm_document *d = dgm_document_new();
    (void)state;
    check_wrong(d, key_in_array);
    check_wrong(d, member_without_key);
    check_wrong(d, close_too_often);
    check_wrong(d, not_closed);
    check_wrong(d, two_roots);
    check_wrong(d, not_a_number);
    check_wrong(d, number_that_is_text);
    check_wrong(d, not_utf8);
    check_wrong(d, too_deep);
    dgm_document_free(d);
}

static void text_that_is_not_json_is_an_error(void **state)
{
    dgm_document *d = dgm_document_new();
    const dgm_json *v = NULL;
    dgm_err err = {0};
    (void)state;
    assert_int_equal(dgm_json_parse(d, "{\"a\":\n}", 7, &v, &err), DGM_PARSE);
    assert_int_equal(err.line, 2);
    assert_null(v);
    dgm_document_free(d);
}

DGM_TEST_MAIN(dgm_test(an_error_is_read_through_its_functions),
              dgm_test(the_hook_is_called_when_memory_is_exhausted), dgm_test(values_are_inspected),
              dgm_test(absent_values_and_arguments_are_allowed), dgm_test(a_value_is_built),
              dgm_test(wrong_calls_are_reported_at_the_end),
              dgm_test(text_that_is_not_json_is_an_error))
