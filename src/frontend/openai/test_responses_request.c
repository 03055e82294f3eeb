/* test_responses_request.c - what is kept of requests, ids of items, pages, conversations. */
#include "frontend/openai/responses_front_int.h"
#include "support/check.h"

#define HEX "0123456789abcdef0123456789abcdef"

static yyjson_val *json(dgm_arena *a, const char *text)
{
    return dgm_json_parse_trusted(a, dgm_str_from(text));
}

static void ids_of_items_lead_to_their_response(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    check_str(dgm_responses_of_item(a, DGM_STR("msg_" HEX "_0")), "resp_" HEX);
    check_str(dgm_responses_of_item(a, DGM_STR("fco_" HEX "_i12")), "resp_" HEX);
    assert_null(dgm_responses_of_item(a, DGM_STR("msg_" HEX)).p);
    assert_null(dgm_responses_of_item(a, DGM_STR("msg_" HEX "_")).p);
    assert_null(dgm_responses_of_item(a, DGM_STR("msg_ZZ23456789abcdef0123456789abcdef_0")).p);
    assert_null(dgm_responses_of_item(a, DGM_STR("_")).p);
    assert_null(dgm_responses_of_item(a, (dgm_str){0}).p);
    dgm_str scope = dgm_responses_new_scope(a);
    dgm_str id = dgm_arena_printf(a, "rs_%.*s_3", DGM_P(scope));
    assert_true(dgm_str_eq(dgm_responses_of_item(a, id), dgm_arena_printf(a, "resp_%s", scope.p)));
}

static void check_item(const char *in, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_json_build b = dgm_json_build_start(a);
    dgm_responses_build_item(&b, NULL, json(a, in), DGM_STR("S"), "i", 2);
    check_str(dgm_json_text_in(a, dgm_json_build_end(&b)), want);
}

static void items_have_ids_and_types(void **state)
{
    (void)state;
    check_item("{\"role\":\"user\",\"content\":\"Hi\"}",
               "{\"id\":\"msg_S_i2\",\"type\":\"message\",\"status\":\"completed\",\"content\":[{"
               "\"type\":\"input_text\",\"text\":\"Hi\"}],\"role\":\"user\"}");
    check_item("{\"role\":\"assistant\",\"content\":\"Hi\",\"id\":\"msg_1\",\"status\":\"incomplete"
               "\"}",
               "{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
               "\"annotations\":[],\"logprobs\":[],\"text\":\"Hi\"}],\"role\":\"assistant\","
               "\"status\":\"incomplete\"}");
    check_item(
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[]}",
        "{\"id\":\"msg_S_i2\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"user\","
        "\"content\":[]}");
    check_item(
        "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"1\"}",
        "{\"id\":\"fco_S_i2\",\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":"
        "\"1\"}");
    check_item("{\"type\":\"shell_call\",\"id\":null}",
               "{\"id\":\"item_S_i2\",\"type\":\"shell_call\"}");
}

static void what_is_kept_of_a_request(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct responses_asked asked;
    dgm_err err = {0};
    yyjson_val *body = json(
        a, "{\"model\":\"a2a/x\",\"input\":\"Hi\",\"stream\":true,\"temperature\":0.50,\"user\":"
           "null,\"unknown\":1,\"include\":[],\"text\":{\"verbosity\":\"low\"},\"conversation\":"
           "\"c\",\"metadata\":{\"k\":\"v\"},\"background\":true}");
    (void)state;
    assert_int_equal(dgm_responses_read_asked(a, body, &asked, &err), DGM_OK);
    check_str(asked.model, "a2a/x");
    check_str(asked.conversation, "c");
    assert_true(asked.stream && asked.store && asked.background && !asked.previous.n);
    assert_int_equal(asked.n_items, 1);
    check_str(
        dgm_json_text_in(a, dgm_responses_build_request(a, body, asked.items, 1, DGM_STR("S"))),
        "{\"input\":[{\"id\":\"msg_S_i0\",\"type\":\"message\",\"status\":\"completed\","
        "\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}],\"role\":\"user\"}],\"model\":"
        "\"a2a/x\",\"temperature\":0.50,\"text\":{\"format\":{\"type\":\"text\"},\"verbosity\":"
        "\"low\"},\"conversation\":{\"id\":\"c\"},\"metadata\":{\"k\":\"v\"},\"background\":true}");
}

static void check_refused(const char *text, const char *pointer)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct responses_asked asked;
    dgm_err err = {0};
    dgm_code rc = dgm_responses_read_asked(a, json(a, text), &asked, &err);
    assert_int_equal(rc, pointer ? DGM_BAD_PARAMS : DGM_OK);
    if (pointer)
        assert_string_equal(err.at, pointer);
}

#define TOOL "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"tool_choice\":"

static void tools_that_cannot_be_had_are_refused(void **state)
{
    (void)state;
    check_refused("{\"tool_choice\":\"auto\"}", NULL);
    check_refused("{\"tool_choice\":\"none\"}", NULL);
    check_refused("{\"tool_choice\":\"required\"}", "/tool_choice");
    check_refused("{\"tool_choice\":\"perhaps\"}", "/tool_choice");
    check_refused("{" TOOL "\"required\"}", NULL);
    check_refused("{" TOOL "{\"type\":\"function\",\"name\":\"f\"}}", NULL);
    check_refused("{" TOOL "{\"type\":\"function\",\"name\":\"g\"}}", "/tool_choice");
    check_refused("{" TOOL "{\"type\":\"function\"}}", "/tool_choice");
    check_refused("{" TOOL "{\"type\":\"web_search\"}}", "/tool_choice");
    check_refused("{\"background\":true,\"store\":false}", "/background");
}

static void metadata_sent_to_the_agent_beside_messages(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    yyjson_val *body = json(a, "{\"metadata\":{\"k\":\"v\",\"conversation_id\":\"x\","
                               "\"dragoman:tools\":\"x\"},\"tool_choice\":\"none\","
                               "\"text\":{\"format\":{\"type\":\"json_object\"}}}");
    dgm_output_form form;
    assert_int_equal(dgm_responses_read_output_form(a, body, &form, NULL), DGM_OK);
    const dgm_json *m = dgm_openai_metadata(a, body, &form, true);
    check_str(dgm_json_text_in(a, m), "{\"k\":\"v\",\"dragoman:tool_choice\":\"none\","
                                      "\"dragoman:response_format\":{\"type\":\"json_object\"}}");
}

/* ---- pages ------------------------------------------------------------------------------------------------------------ */

static void check_page(const char *limit, const char *order, const char *after, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_responses_list list = {0};
    for (const char *id = "a\0b\0c"; list.n < 3; id += 2)
        dgm_responses_list_add(a, &list, json(a, dgm_arena_printf(a, "{\"id\":\"%s\"}", id).p));
    dgm_responses_page page;
    dgm_err err = {0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    if (!dgm_responses_read_page(dgm_str_from(limit), dgm_str_from(order), dgm_str_from(after),
                                 &page, &err))
        dgm_responses_put_page(&b, &list, &page, &err);
    check_str(b, err.code ? "" : want);
    if (err.code)
        assert_string_equal(err.at, want);
    dgm_buf_done(&b);
}

#define PAGE(data, first, last, more)                                                              \
    "{\"object\":\"list\",\"data\":[" data "],\"first_id\":" first ",\"last_id\":" last            \
    ",\"has_more\":" more "}"
#define ID(x) "{\"id\":\"" x "\"}"

static void pages_of_items(void **state)
{
    (void)state;
    check_page(NULL, NULL, NULL, PAGE(ID("c") "," ID("b") "," ID("a"), "\"c\"", "\"a\"", "false"));
    check_page("2", "asc", NULL, PAGE(ID("a") "," ID("b"), "\"a\"", "\"b\"", "true"));
    check_page("2", "asc", "b", PAGE(ID("c"), "\"c\"", "\"c\"", "false"));
    check_page("1", "desc", "c", PAGE(ID("b"), "\"b\"", "\"b\"", "true"));
    check_page("100", "asc", "c", PAGE("", "null", "null", "false"));
    check_page("0", NULL, NULL, "/limit");
    check_page("101", NULL, NULL, "/limit");
    check_page("99999999999999999999", NULL, NULL, "/limit");
    check_page("x", NULL, NULL, "/limit");
    check_page("", NULL, NULL, "/limit");
    check_page(NULL, "up", NULL, "/order");
    check_page(NULL, NULL, "nobody", "/after");
}

/* ---- conversations ------------------------------------------------------------------------------------------------------- */

static dgm_canon_message said(dgm_canon_role role, const char *id, const char *text)
{
    return (dgm_canon_message){
        .role = role,
        .id = dgm_str_from(id),
        .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_str_from(text)}};
}

static void check_items(const struct conversation *c, const dgm_canon_messages *messages,
                        const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_responses_list list = dgm_conversation_items(a, c, messages);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < list.n; i++) {
        yyjson_val *item = dgm_json_parse_trusted(a, list.items[i]);
        assert_true(dgm_str_eq(dgm_json_str_member(item, "id"), list.ids[i]));
        dgm_buf_printf(&b, "%s%.*s", i ? " " : "", DGM_P(list.ids[i]));
    }
    check_str(b, want);
    dgm_buf_done(&b);
}

static void inserted_items_keep_their_position(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_message all[] = {said(DGM_CANON_USER, "u1", "Hi"),
                               said(DGM_CANON_ASSISTANT, "a1", "Hello"),
                               said(DGM_CANON_USER, "msg_u2", "Bye")};
    dgm_canon_messages messages = {all, 3}, two = {all, 2}, none = {0};
    struct conversation c = {
        .added =
            json(a, "[{\"after\":\"\",\"item\":{\"id\":\"first\"}},{\"after\":\"gone\",\"item\":"
                    "{\"id\":\"second\"}},{\"after\":\"a1\",\"item\":{\"id\":\"third\"}},{"
                    "\"after\":\"a1\",\"item\":{\"id\":\"fourth\"}}]")};
    yyjson_val **since;
    size_t n;
    (void)state;
    check_items(&c, &messages, "first second msg_u1 msg_a1 third fourth msg_u2");
    check_items(&c, &two, "first second msg_u1 msg_a1 third fourth");
    check_items(&c, &none, "first second third fourth");
    c.gone = json(a, "[\"msg_a1\",\"third\"]");
    check_items(&c, &messages, "first second msg_u1 fourth msg_u2");
    dgm_conversation_added_since(a, &c, DGM_STR("a1"), &since, &n);
    assert_int_equal(n, 1);
    check_str(dgm_json_str_member(since[0], "id"), "fourth");
    dgm_conversation_added_since(a, &c, DGM_STR("msg_u2"), &since, &n);
    assert_int_equal(n, 0);
}

static void calls_and_results_of_a_conversation_have_ids(void **state)
{
    dgm_canon_call call = {
        .id = DGM_STR("call_1"), .name = DGM_STR("f"), .arguments = DGM_STR("{}")};
    dgm_canon_message all[] = {said(DGM_CANON_ASSISTANT, "a1", ""),
                               said(DGM_CANON_TOOL, "t1", "3")};
    dgm_canon_messages messages = {all, 2};
    struct conversation c = {0};
    (void)state;
    all[0].tool_calls = (dgm_canon_calls){&call, 1};
    all[1].tool_call_id = DGM_STR("call_1");
    check_items(&c, &messages, "fc_call_1 fco_call_1");
}

static void items_are_added_behind_the_others(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val **items;
    size_t n;
    (void)state;
    dgm_conversation_items_of(a, json(a, "{\"items\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"),
                              &items, &n);
    assert_int_equal(n, 1);
    yyjson_val *one = dgm_conversation_with(a, NULL, items, n, (dgm_str){0});
    yyjson_val *two = dgm_conversation_with(a, one, items, n, DGM_STR("m"));
    assert_int_equal(yyjson_arr_size(two), 2);
    check_str(dgm_json_str_member(yyjson_arr_get(two, 0), "after"), "");
    check_str(dgm_json_str_member(yyjson_arr_get(two, 1), "after"), "m");
    assert_int_equal(yyjson_arr_size(dgm_conversation_with(a, NULL, NULL, 0, (dgm_str){0})), 0);
}

DGM_TEST_MAIN(dgm_test(ids_of_items_lead_to_their_response), dgm_test(items_have_ids_and_types),
              dgm_test(what_is_kept_of_a_request), dgm_test(tools_that_cannot_be_had_are_refused),
              dgm_test(metadata_sent_to_the_agent_beside_messages), dgm_test(pages_of_items),
              dgm_test(inserted_items_keep_their_position),
              dgm_test(calls_and_results_of_a_conversation_have_ids),
              dgm_test(items_are_added_behind_the_others))
