/* test_functions_options.c - a converter whose options are JSON. */
#include "base/err.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

static dgm_code convert(const char *options, const char *in, dgm_str *ret, char *room, size_t size,
                        dgm_err *err)
{
    dgm_converter *c = NULL;
    dgm_code rc = dgm_converter_new_json(options, strlen(options), &c, err);
    for (size_t i = 0; !rc && in[i]; i++) /* byte by byte */
        rc = dgm_converter_feed(c, in + i, 1, err);
    if (!rc && !(rc = dgm_converter_end(c, err))) {
        dgm_str out = dgm_converter_output(c);
        assert_true(out.n < size);
        memcpy(room, out.p, out.n);
        *ret = (dgm_str){room, out.n};
    }
    dgm_converter_free(c);
    return rc;
}

static void check_converts_(const char *options, const char *in, const char *want, int line)
{
    char room[4000];
    dgm_str got = {0};
    dgm_err err = {0};
    check_ok(convert(options, in, &got, room, sizeof room, &err), err);
    check_bytes_(got.p, got.n, want, strlen(want), __FILE__, line);
}
#define check_converts(options, in, want) check_converts_(options, in, want, __LINE__)

#define HI "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}"
#define CHAT "{\"role\":\"user\",\"content\":\"Hi\"}"
#define CHUNK                                                                                      \
    "{\"type\":\"text-message-chunk\",\"messageId\":\"m\",\"role\":\"assistant\",\"delta\":"       \
    "\"ab\"}"
#define END                                                                                        \
    "{\"type\":\"text-message-end\",\"messageId\":\"m\",\"message\":{\"role\":\"assistant\","      \
    "\"content\":"                                                                                 \
    "\"ab\"}}"

static void options_are_heard(void **state)
{
    (void)state;
    check_converts("{\"to\":\"openai-chat\"}", HI, CHAT "\n");
    check_converts("{\"from\":\"a2a-1.0\",\"to\":\"openai-chat\",\"framing\":\"array\",\"object\":"
                   "\"message\",\"seed\":\"s\",\"answer_source\":\"auto\"}",
                   HI, "[" CHAT "]\n");
    check_converts("{\"to\":\"openai-chat\",\"framing\":\"lines\",\"as\":\"messages\"}", HI,
                   CHAT "\n");
    check_converts("{\"from\":\"ag-ui-simple\",\"to\":\"ag-ui-simple\",\"compact\":true}",
                   "[" CHUNK "," END "]", "[" END "]\n");
    check_converts("{\"from\":\"ag-ui-simple\",\"to\":\"ag-ui-simple\",\"compact\":false}",
                   "[" CHUNK "," END "]", "[" CHUNK "," END "]\n");
}

static void a_seed_makes_other_ids(void **state)
{
    static const char in[] = "{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}";
    char rooms[3][500];
    dgm_str got[3] = {{0}};
    dgm_err err = {0};
    (void)state;
    static const char *const options[] = {"{\"to\":\"a2a-1.0\"}",
                                          "{\"to\":\"a2a-1.0\",\"seed\":\"\"}",
                                          "{\"to\":\"a2a-1.0\",\"seed\":\"x\"}"};
    for (int i = 0; i < 3; i++)
        check_ok(convert(options[i], in, &got[i], rooms[i], sizeof rooms[i], &err), err);
    check_same(got[0], got[1]);
    assert_true(got[2].n == got[0].n && memcmp(got[2].p, got[0].p, got[0].n) != 0);
}

static void check_refuses_(const char *options, dgm_code code, const char *at, const char *words,
                           int line)
{
    dgm_converter *c = (dgm_converter *)(uintptr_t)1;
    dgm_err err = {0};
    dgm_code rc = dgm_converter_new_json(options, strlen(options), &c, &err);
    if (rc != code || strcmp(err.at, at) != 0 || !strstr(err.msg, words)) {
        print_error("%s\n  code %d at \"%s\": %s\n", options, rc, err.at, err.msg);
        _fail(__FILE__, line);
    }
    assert_true(c == (dgm_converter *)(uintptr_t)1);
    assert_int_equal(dgm_converter_new_json(options, strlen(options), &c, NULL), code);
}
#define check_refuses(options, code, at, words) check_refuses_(options, code, at, words, __LINE__)

static void wrong_options_are_refused(void **state)
{
    (void)state;
    check_refuses("", DGM_PARSE, "", "nothing");
    check_refuses("[]", DGM_BAD_PARAMS, "", "an object");
    check_refuses("{}", DGM_BAD_PARAMS, "/to", "missing");
    check_refuses("{\"to\":7}", DGM_BAD_PARAMS, "/to", "a string");
    check_refuses("{\"to\":\"a2a-9\"}", DGM_BAD_REQUEST, "", "a2a-9");
    check_refuses("{\"to\":\"a2a-1.0\",\"form\":\"a2a-0.3\"}", DGM_BAD_REQUEST, "/form",
                  "answer_source");
    check_refuses("{\"to\":\"a2a-1.0\",\"framing\":\"xml\"}", DGM_BAD_PARAMS, "/framing", "sse");
    check_refuses("{\"to\":\"a2a-1.0\",\"object\":\"thing\"}", DGM_BAD_REQUEST, "/object", "kind");
    check_refuses("{\"to\":\"a2a-1.0\",\"compact\":1}", DGM_BAD_PARAMS, "/compact", "");
    check_refuses("{\"to\":\"responses-simple\",\"as\":\"request\"}", DGM_BAD_REQUEST, "", "");
}

DGM_TEST_MAIN(dgm_test(options_are_heard), dgm_test(a_seed_makes_other_ids),
              dgm_test(wrong_options_are_refused))
