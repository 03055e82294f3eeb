/* test_values.c - the functions on flat lists have the results of the functions on text; invalid lists are refused. */
#include "base/err.h"
#include "base/limits.h"
#include "lib/api_int.h"
#include "lib/test_paths.h"
#include "support/check.h"
#include "json/json.h"

#include <dragoman/dragoman.h>

#define N_FUNCTIONS (DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI + 1)
#define MOST_VALUES 4096

/* ---- text and lists -------------------------------------------------------------------------------- */

static void flatten(const dgm_json *v, dgm_value *list, size_t *n)
{
    const dgm_json_kind kind = dgm_json_kind_of(v);
    bool yes = false;
    assert_true(*n < MOST_VALUES);
    dgm_value *to = &list[(*n)++];
    *to = (dgm_value){.kind = kind, .n = dgm_json_count(v)};
    dgm_str text = kind == DGM_JSON_KIND_NUMBER ? dgm_json_number(v) : dgm_json_string(v),
            key = {0};
    if (text.p)
        *to = (dgm_value){kind, text.n, text.p};
    if (dgm_json_to_bool(v, &yes))
        to->n = yes;
    for (const dgm_json *e = NULL; (e = dgm_json_iterate(v, e, &key));) {
        if (key.p)
            list[(*n)++] = (dgm_value){DGM_JSON_KIND_STRING, key.n, key.p};
        flatten(e, list, n);
    }
}

/* Writes the value at *at, and sets *at behind it. */
static void put_flat(dgm_buf *b, const dgm_value **at)
{
    const dgm_value *v = (*at)++;
    bool is_object = v->kind == DGM_JSON_KIND_OBJECT;
    switch (v->kind) {
    case DGM_JSON_KIND_BOOL: dgm_buf_printf(b, "%s", v->n ? "true" : "false"); return;
    case DGM_JSON_KIND_NUMBER: dgm_buf_add(b, v->text, v->n); return;
    case DGM_JSON_KIND_STRING: dgm_json_put_str(b, (dgm_str){v->text, v->n}); return;
    case DGM_JSON_KIND_ARRAY:
    case DGM_JSON_KIND_OBJECT: break;
    case DGM_JSON_KIND_NULL:
    case DGM_JSON_KIND_ABSENT: dgm_buf_add_lit(b, "null"); return;
    }
    dgm_buf_add_char(b, is_object ? '{' : '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        if (is_object) {
            put_flat(b, at);
            dgm_buf_add_char(b, ':');
        }
        put_flat(b, at);
    }
    dgm_buf_add_char(b, is_object ? '}' : ']');
}

static dgm_code on_text(dgm_function f, const char *text, size_t n, char **ret, size_t *ret_n,
                        dgm_err *err)
{
    switch (f) {
    case DGM_FUNCTION_A2A_MESSAGE_TO_AGUI_EVENT:
        return dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_SIMPLE, ret, ret_n, err);
    case DGM_FUNCTION_A2A_MESSAGE_TO_OFFICIAL_EVENT:
        return dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_OFFICIAL, ret, ret_n, err);
    case DGM_FUNCTION_COMPACT_EVENTS: return dgm_compact_events(text, n, ret, ret_n, err);
    case DGM_FUNCTION_AGUI_EVENT_TO_OPENAI_CHAT:
        return dgm_convert_agui_event_to_openai_chat(text, n, ret, ret_n, err);
    case DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI:
        return dgm_convert_a2a_message_to_openai(text, n, ret, ret_n, err);
    }
    return DGM_INTERNAL;
}

/* Both ways; returns the result as text, NULL if there is no result. text: written by dgm_json_put(). */
static char *check_both(dgm_values *v, dgm_function f, const dgm_json *in, const char *text)
{
    static dgm_value list[MOST_VALUES];
    const dgm_value *got = NULL;
    char *want = NULL;
    size_t n = 0, got_n = 99, want_n = 0;
    dgm_err err = {0}, want_err = {0};
    flatten(in, list, &n);
    dgm_code rc = dgm_values_convert(v, f, list, n, &got, &got_n, &err);
    dgm_code want_rc = on_text(f, text, strlen(text), &want, &want_n, &want_err);
    if (rc != want_rc)
        print_error("%s\n  %s\n  %s\n", text, err.msg, want_err.msg);
    assert_int_equal(rc, want_rc);
    if (rc) {
        assert_string_equal(err.at, want_err.at);
        assert_string_equal(err.msg, want_err.msg);
        return NULL;
    }
    assert_int_equal(got_n > 0, want != NULL);
    if (want) {
        const dgm_value *end = got;
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        put_flat(&b, &end);
        assert_int_equal(end - got, got_n);
        check_bytes_(b.p, b.n, want, want_n, __FILE__, __LINE__);
        dgm_buf_done(&b);
    }
    return want;
}

/* Every function on the value, and on the results of the first two. */
static size_t check_all(dgm_values *v, const char *text)
{
    dgm_auto(dgm_document_free) dgm_document *d = dgm_document_new();
    const dgm_json *in = NULL;
    size_t results = 0;
    assert_int_equal(dgm_json_parse(d, text, strlen(text), &in, NULL), DGM_OK);
    char *compact = dgm_json_text(in);
    for (int f = 0; f < N_FUNCTIONS; f++) {
        char *result = check_both(v, (dgm_function)f, in, compact);
        results += result != NULL;
        if (result && f < DGM_FUNCTION_COMPACT_EVENTS) {
            const dgm_json *events = NULL;
            assert_int_equal(dgm_json_parse(d, result, strlen(result), &events, NULL), DGM_OK);
            for (int g = DGM_FUNCTION_COMPACT_EVENTS; g < DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI; g++)
                dgm_free(check_both(v, (dgm_function)g, events, result));
        }
        dgm_free(result);
    }
    dgm_free(compact);
    return results;
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void random_messages_have_the_results_of_text(void **state)
{
    dgm_values *v = dgm_values_new();
    size_t results = 0;
    (void)state;
    for (size_t i = 0; i < 3000; i++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        seed = i;
        put_message(&b);
        dgm_buf_add_char(&b, 0);
        results += check_all(v, b.p);
        dgm_buf_done(&b);
    }
    assert_true(results > 3000);
    dgm_values_free(v);
}

static void other_values_have_the_results_of_text(void **state)
{
    static const char *const texts[] = {
        "null",
        "true",
        "[]",
        "{}",
        "7",
        "\"text\"",
        "[null,[],[[]]]",
        "{\"role\":\"user\",\"content\":\"Hi\"}",
        "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"completed\","
        "\"message\":{\"role\":\"agent\",\"parts\":[{\"kind\":\"text\",\"text\":\"é\\n\"}]}}}",
        /* without ids: those that are generated depend on the text */
        "[{\"role\":\"agent\",\"parts\":[{\"kind\":\"text\",\"text\":\"A\\u0001\"},{\"kind\":"
        "\"data\","
        "\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{\"a\":1e400}}]}"
        "}]},"
        "{\"role\":\"agent\",\"parts\":[{\"kind\":\"text\",\"text\":\"B\"},{\"kind\":\"data\","
        "\"data\":{\"tool_calls\":[{\"call_id\":\"2\",\"name\":\"f\",\"arguments\":{}}]}}]}]",
        "{\"message\":{\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"Hi\"}]}}",
        "{\"role\":\"user\",\"parts\":[7]}",
    };
    dgm_values *v = dgm_values_new();
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_all(v, texts[i]);
    dgm_values_free(v);
}

static void check_refused(const dgm_value *list, size_t n, dgm_code code, const char *words)
{
    dgm_values *v = dgm_values_new();
    const dgm_value *got = NULL;
    size_t got_n = 0;
    dgm_err err = {0};
    assert_int_equal(
        dgm_values_convert(v, DGM_FUNCTION_COMPACT_EVENTS, list, n, &got, &got_n, &err), code);
    if (!strstr(err.msg, words))
        print_error("%s\n", err.msg);
    assert_non_null(strstr(err.msg, words));
    dgm_values_free(v);
}
#define REFUSED(code, words, ...)                                                                  \
    check_refused((const dgm_value[]){__VA_ARGS__},                                                \
                  sizeof((const dgm_value[]){__VA_ARGS__}) / sizeof(dgm_value), code, words)

static void invalid_lists_are_refused(void **state)
{
    const dgm_value object = {DGM_JSON_KIND_OBJECT, 1, NULL},
                    array = {DGM_JSON_KIND_ARRAY, 1, NULL}, key = {DGM_JSON_KIND_STRING, 4, "type"},
                    null = {DGM_JSON_KIND_NULL, 0, NULL};
    (void)state;
    check_refused(NULL, 0, DGM_BAD_PARAMS, "middle");
    REFUSED(DGM_BAD_PARAMS, "middle", array);
    REFUSED(DGM_BAD_PARAMS, "middle", object, key);
    REFUSED(DGM_BAD_PARAMS, "more than one", array, null, null);
    REFUSED(DGM_BAD_PARAMS, "more than one", null, null);
    REFUSED(DGM_BAD_PARAMS, "key", object, null, null);
    REFUSED(DGM_BAD_PARAMS, "no text", {DGM_JSON_KIND_STRING, 4, NULL});
    REFUSED(DGM_BAD_PARAMS, "kind", {DGM_JSON_KIND_ABSENT, 0, NULL});
    REFUSED(DGM_BAD_PARAMS, "kind", {(dgm_json_kind)99, 0, NULL});
    REFUSED(DGM_TOO_LARGE, "object_bytes", {DGM_JSON_KIND_ARRAY, SIZE_MAX, NULL});
    REFUSED(DGM_TOO_LARGE, "object_bytes", {DGM_JSON_KIND_STRING, DGM_MAX_OBJECT_BYTES + 1, "x"});
}

/* An official event is written as text. */
static void invalid_numbers_are_refused(void **state)
{
    dgm_value list[] = {{DGM_JSON_KIND_OBJECT, 3, NULL},     {DGM_JSON_KIND_STRING, 4, "type"},
                        {DGM_JSON_KIND_STRING, 6, "CUSTOM"}, {DGM_JSON_KIND_STRING, 4, "name"},
                        {DGM_JSON_KIND_STRING, 1, "n"},      {DGM_JSON_KIND_STRING, 5, "value"},
                        {DGM_JSON_KIND_NUMBER, 3, "NaN"}};
    static const char *const numbers[] = {"", "x", "1 ", "1,2", "\"", "[", "\xff"};
    (void)state;
    check_refused(list, sizeof list / sizeof *list, DGM_TOO_LARGE, "number");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        list[6] = (dgm_value){DGM_JSON_KIND_NUMBER, strlen(numbers[i]), numbers[i]};
        check_refused(list, sizeof list / sizeof *list, DGM_TOO_LARGE, "number");
    }
}

static void depth_is_limited(void **state)
{
    static dgm_value list[DGM_MAX_JSON_DEPTH + 2];
    dgm_values *v = dgm_values_new();
    const dgm_value *got = NULL;
    size_t got_n = 0;
    dgm_err err = {0};
    (void)state;
    for (size_t i = 0; i <= DGM_MAX_JSON_DEPTH; i++)
        list[i] = (dgm_value){DGM_JSON_KIND_ARRAY, 1, NULL};
    list[DGM_MAX_JSON_DEPTH + 1] = (dgm_value){DGM_JSON_KIND_NULL, 0, NULL};
    check_refused(list, DGM_MAX_JSON_DEPTH + 2, DGM_TOO_LARGE, "json_depth");
    /* one level less is read, and refused because it is not an event */
    check_refused(list + 1, DGM_MAX_JSON_DEPTH + 1, DGM_BAD_PARAMS, "an object");
    assert_int_equal(dgm_values_convert(v, (dgm_function)N_FUNCTIONS, list, 1, &got, &got_n, &err),
                     DGM_BAD_PARAMS);
    assert_int_equal(dgm_values_convert(NULL, (dgm_function)0, list, 1, &got, &got_n, NULL),
                     DGM_BAD_PARAMS);
    dgm_values_free(v);
    dgm_values_free(NULL);
}

static void size_is_limited(void **state)
{
    const size_t n = 1000, each = DGM_MAX_OBJECT_BYTES / n + 1;
    dgm_value *list = calloc(n + 1, sizeof *list);
    char *text = malloc(each);
    (void)state;
    assert_true(list && text);
    memset(text, 'a', each);
    list[0] = (dgm_value){DGM_JSON_KIND_ARRAY, n, NULL};
    for (size_t i = 1; i <= n; i++)
        list[i] = (dgm_value){DGM_JSON_KIND_STRING, each, text};
    check_refused(list, n + 1, DGM_TOO_LARGE, "object_bytes");
    free(list);
    free(text);
}

DGM_TEST_MAIN(dgm_test(random_messages_have_the_results_of_text),
              dgm_test(other_values_have_the_results_of_text), dgm_test(invalid_lists_are_refused),
              dgm_test(invalid_numbers_are_refused), dgm_test(depth_is_limited),
              dgm_test(size_is_limited))
