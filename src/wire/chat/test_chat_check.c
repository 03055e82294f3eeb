/* test_chat_check.c - types of a request's members, and which of them are ignored. */
#include "support/check.h"
#include "wire/chat/chat_codec.h"

static void check_fault(const char *body, const char *at)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_code rc = dgm_chat_check_request(dgm_json_parse_trusted(a, dgm_str_from(body)), &err);
    assert_int_equal(rc, at ? DGM_BAD_PARAMS : DGM_OK);
    assert_string_equal(err.at, at ? at : "");
}

static void every_type(void **state)
{
    (void)state;
    check_fault("{\"model\":\"m\",\"n\":1,\"temperature\":0.5,\"top_p\":1,\"stream\":true,"
                "\"stop\":[\"a\"],\"logit_bias\":{\"1\":-5},\"metadata\":{\"k\":\"v\"}}",
                NULL);
    check_fault("{\"model\":null,\"n\":null,\"stop\":\"x\",\"tool_choice\":{\"type\":\"function\"},"
                "\"unknown\":{\"deep\":[]}}",
                NULL);
    check_fault("{\"model\":1}", "/model");
    check_fault("{\"n\":1.5}", "/n");
    check_fault("{\"n\":\"1\"}", "/n");
    check_fault("{\"temperature\":\"hot\"}", "/temperature");
    check_fault("{\"stream\":1}", "/stream");
    check_fault("{\"metadata\":[]}", "/metadata");
    check_fault("{\"stop\":{}}", "/stop");
}

static void what_lies_deeper(void **state)
{
    (void)state;
    check_fault("{\"stop\":[\"a\",1]}", "/stop/1");
    check_fault("{\"metadata\":{\"a\":\"b\",\"c\":1}}", "/metadata/c");
    check_fault("{\"messages\":[{},1]}", "/messages/1");
    check_fault("{\"tools\":[{\"function\":{\"parameters\":\"{}\"}}]}",
                "/tools/0/function/parameters");
    check_fault("{\"response_format\":{\"json_schema\":{\"schema\":[]}}}",
                "/response_format/json_schema/schema");
    check_fault("{\"tool_choice\":{\"allowed_tools\":{\"tools\":[1]}}}",
                "/tool_choice/allowed_tools/tools/0");
    check_fault("{\"messages\":[{\"content\":[{\"prompt_cache_breakpoint\":1}]}]}",
                "/messages/0/content/0/prompt_cache_breakpoint");
}

static void ignored_names(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char longer[3000] = "{";
    (void)state;
    yyjson_val *body = dgm_json_parse_trusted(
        a, DGM_STR("{\"model\":\"m\",\"temperature\":1,\"seed\":null,\"my_own\":1,\"a b\":1,"
                   "\"\":1,\"n\":1,\"user\":\"u\"}"));
    assert_true(dgm_str_is(dgm_chat_ignored(a, body), "temperature, my_own, user"));
    body = dgm_json_parse_trusted(a, DGM_STR("{\"model\":\"m\"}"));
    assert_int_equal(dgm_chat_ignored(a, body).n, 0);
    for (int i = 0; i < 200; i++)
        snprintf(longer + strlen(longer), 20, "\"name%d\":1,", i);
    strcpy(longer + strlen(longer) - 1, "}");
    dgm_str names = dgm_chat_ignored(a, dgm_json_parse_trusted(a, dgm_str_from(longer)));
    assert_true(names.n > 900 && names.n <= 1000);
    assert_true(names.p[names.n - 1] != ',' && names.p[names.n - 1] != ' ');
}

DGM_TEST_MAIN(dgm_test(every_type), dgm_test(what_lies_deeper), dgm_test(ignored_names))
