/*
 * test_responses_check.c - requests of which one member is wrong: every row of the tables, with every type that it
 * does not take, is refused by its own name.
 */
#include "base/limits.h"
#include "support/check.h"
#include "wire/responses/responses.h"

#define MAX_TEXT 4000

static const struct {
    unsigned kind;
    const char *text;
} samples[] = {{DGM_JSON_TEXT, "\"x\""}, {DGM_JSON_INT | DGM_JSON_NUMBER, "7"},
               {DGM_JSON_NUMBER, "0.5"}, {DGM_JSON_BOOL, "true"},
               {DGM_JSON_LIST, "[]"},    {DGM_JSON_OBJECT, "{}"}};
#define N_SAMPLES (sizeof samples / sizeof *samples)

/* A request with one invalid member, which must be reported; %s is its place. */
static void check_wrong(const char *around, const char *pointer, const dgm_json_rule *row)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        char member[300], text[MAX_TEXT], want[200];
        dgm_err err = {0};
        if (samples[i].kind & row->types)
            continue;
        snprintf(member, sizeof member, "\"%s\":%s", row->name.p, samples[i].text);
        snprintf(text, sizeof text, around, member);
        snprintf(want, sizeof want, "%s/%s", pointer, row->name.p);
        yyjson_val *body = dgm_json_parse_trusted(a, dgm_str_from(text));
        if (dgm_responses_check(body, dgm_responses_request_rules, &err) != DGM_BAD_PARAMS ||
            strcmp(err.at, want) != 0) {
            print_error("%s\n  gave %s %s, not %s\n", text, err.at, err.msg, want);
            fail();
        }
    }
}

static void members_of_requests(void **state)
{
    (void)state;
    for (const dgm_json_rule *row = dgm_responses_request_rules; row->name.p; row++) {
        bool is_model = !strcmp(row->name.p, "model"), list = row->types & DGM_JSON_LIST;
        char around[100], pointer[60];
        check_wrong(is_model ? "{%s}" : "{\"model\":\"m\",%s}", "", row);
        snprintf(around, sizeof around, "{\"model\":\"m\",\"%s\":%s{%%s}%s}", row->name.p,
                 list ? "[" : "", list ? "]" : "");
        snprintf(pointer, sizeof pointer, "/%s%s", row->name.p, list ? "/0" : "");
        for (const dgm_json_rule *m = row->members; m && m->name.p; m++) {
            if (m == row->members || !row->members->is_required)
                check_wrong(around, pointer, m);
        }
    }
}

static const dgm_json_rule *rule_of(const dgm_json_rule *rules, const char *name)
{
    while (strcmp(rules->name.p, name) != 0)
        rules++;
    return rules;
}

/* Rows of an object that is detected from its type, with all required members in front. */
static void check_typed(const char *outer, const char *pointer, const char *type,
                        const dgm_json_rule *list)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str sample = dgm_arena_printf(a, "{\"type\":\"%s\",\"role\":\"user\"}", type);
    const dgm_json_rule *own = list->pick(dgm_json_parse_trusted(a, sample));
    for (const dgm_json_rule *row = own; row->name.p; row++) {
        char around[MAX_TEXT], inner[1000] = "";
        size_t n = 0;
        if (!strcmp(row->name.p, "type"))
            continue;
        for (const dgm_json_rule *r = own; r < row; r++) {
            if (r->is_required && strcmp(r->name.p, "type") != 0)
                n += (size_t)snprintf(inner + n, sizeof inner - n, "\"%s\":%s,", r->name.p,
                                      r->types & DGM_JSON_TEXT   ? "\"x\""
                                      : r->types & DGM_JSON_LIST ? "[]"
                                                                 : "{}");
        }
        snprintf(around, sizeof around, outer, type, inner);
        check_wrong(around, pointer, row);
    }
}

static void items_and_parts_by_their_types(void **state)
{
    static const char *const items[] = {"message",
                                        "function_call",
                                        "custom_tool_call",
                                        "function_call_output",
                                        "custom_tool_call_output",
                                        "reasoning",
                                        "mcp_call",
                                        "item_reference",
                                        NULL};
    static const char *const parts[] = {"input_text", "output_text", "refusal", "input_image",
                                        "input_file", "input_audio", NULL};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json_rule *input = rule_of(dgm_responses_request_rules, "input");
    const dgm_json_rule *message =
        input->pick(dgm_json_parse_trusted(a, DGM_STR("{\"type\":\"message\"}")));
    (void)state;
    for (size_t i = 0; items[i]; i++)
        check_typed("{\"model\":\"m\",\"input\":[{\"type\":\"%s\",%s%%s}]}", "/input/0", items[i],
                    input);
    for (size_t i = 0; parts[i]; i++)
        check_typed("{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"%s\","
                    "%s%%s}]}]}",
                    "/input/0/content/0", parts[i], rule_of(message, "content"));
    check_typed("{\"model\":\"m\",\"tools\":[{\"type\":\"%s\",%s%%s}]}", "/tools/0", "function",
                rule_of(dgm_responses_request_rules, "tools"));
}

static void check_at(const char *text, const char *pointer)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_code rc = dgm_responses_check(dgm_json_parse_trusted(a, dgm_str_from(text)),
                                      dgm_responses_request_rules, &err);
    assert_int_equal(rc, pointer ? DGM_BAD_PARAMS : DGM_OK);
    if (pointer)
        assert_string_equal(err.at, pointer);
}

static void what_is_taken_and_what_is_not(void **state)
{
    (void)state;
    check_at("{\"model\":\"m\"}", NULL);
    check_at("{\"model\":\"m\",\"input\":null,\"temperature\":null,\"new_member\":[1]}", NULL);
    check_at("{}", "/model");
    check_at("{\"model\":null}", "/model");
    check_at("{\"model\":\"m\",\"input\":[null]}", "/input/0");
    check_at("{\"model\":\"m\",\"input\":[{\"role\":null,\"content\":\"x\"}]}", "/input/0/role");
    check_at("[]", "");
    check_at("{\"model\":\"m\",\"input\":[\"x\"]}", "/input/0");
    check_at("{\"model\":\"m\",\"input\":[{}]}", "/input/0/role");
    check_at("{\"model\":\"m\",\"input\":[{\"id\":\"msg_1\"}]}", NULL);
    check_at("{\"model\":\"m\",\"input\":[{\"type\":7,\"role\":\"user\",\"content\":\"x\"}]}",
             "/input/0/type");
    check_at("{\"model\":\"m\",\"input\":[{\"type\":\"web_search_call\",\"id\":1}]}", NULL);
    check_at("{\"model\":\"m\",\"include\":[1]}", "/include/0");
    check_at("{\"model\":\"m\",\"conversation\":{}}", "/conversation/id");
    check_at("{\"model\":\"m\",\"metadata\":{\"a\":1}}", "/metadata/a");
    check_at("{\"model\":\"m\",\"metadata\":{\"a\":\"b\"}}", NULL);
    check_at("{\"model\":\"m\",\"max_output_tokens\":1.5}", "/max_output_tokens");
    check_at("{\"model\":\"m\",\"tools\":[{\"type\":\"function\",\"function\":{}}]}",
             "/tools/0/function/name");
}

static void metadata_has_limits(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"model\":\"m\",\"metadata\":{");
    for (int i = 0; i < 17; i++)
        dgm_buf_printf(&b, "%s\"k%d\":\"v\"", i ? "," : "", i);
    dgm_buf_add_lit(&b, "}}");
    check_at(dgm_arena_dup(a, dgm_buf_str(&b)).p, "/metadata");
    dgm_buf_clear(&b);
    dgm_buf_printf(&b, "{\"model\":\"m\",\"metadata\":{\"k\":\"%0513d\"}}", 7);
    check_at(dgm_arena_dup(a, dgm_buf_str(&b)).p, "/metadata/k");
    dgm_buf_clear(&b);
    dgm_buf_printf(&b, "{\"model\":\"m\",\"metadata\":{\"k%064d\":\"v\"}}", 7);
    check_at(dgm_arena_dup(a, dgm_buf_str(&b)).p, "/metadata");
    dgm_buf_done(&b);
}

static void what_is_nested_too_deeply(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"model\":\"m\",\"new\":");
    for (int i = 0; i < DGM_MAX_JSON_DEPTH - 10; i++)
        dgm_buf_add_char(&b, '[');
    for (int i = 0; i < DGM_MAX_JSON_DEPTH - 10; i++)
        dgm_buf_add_char(&b, ']');
    dgm_buf_add_char(&b, '}');
    check_at(dgm_arena_dup(a, dgm_buf_str(&b)).p, "");
    dgm_buf_done(&b);
}

static void what_is_ignored_is_named(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    check_str(
        dgm_responses_ignored(a, dgm_json_parse_trusted(
                                     a, DGM_STR("{\"model\":\"m\",\"top_p\":1,\"temperature\":0.5,"
                                                "\"user\":null,\"tools\":[{\"type\":\"function\"},{"
                                                "\"type\":\"web_search\"}]}"))),
        "top_p, temperature, tools[1]");
    assert_int_equal(
        dgm_responses_ignored(a, dgm_json_parse_trusted(a, DGM_STR("{\"model\":\"m\"}"))).n, 0);
}

DGM_TEST_MAIN(dgm_test(members_of_requests), dgm_test(items_and_parts_by_their_types),
              dgm_test(what_is_taken_and_what_is_not), dgm_test(metadata_has_limits),
              dgm_test(what_is_nested_too_deeply), dgm_test(what_is_ignored_is_named))
