/*
 * test_model_call.c - requests to models, and errors of their servers. Answers are in tests/models.
 */
#include "wire/model_call.h"

#include "model/form.h"
#include "model/names.h"
#include "support/check.h"

/* ---- requests ----------------------------------------------------------------------------------------------------- */

static yyjson_val *parse(dgm_arena *a, const char *text)
{
    dgm_buf b;
    yyjson_val *v = NULL;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    for (; *text; text++)
        dgm_buf_add_char(&b, *text == '\'' ? '"' : *text);
    if (dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &v, &err))
        fail_msg("%s in %.*s", err.msg, (int)b.n, b.p);
    dgm_buf_done(&b);
    return v;
}

static dgm_messages read_messages(dgm_arena *a, const char *text)
{
    yyjson_val *list = parse(a, text), *e;
    dgm_messages out = {dgm_new_n(a, dgm_message, yyjson_arr_size(list) + 1), 0};
    dgm_err err = {0};
    dgm_mint mint = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = &mint, .err = &err};
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        if (dgm_shape_read(&r, &dgm_form_message, e, NULL, &out.at[out.n++]))
            fail_msg("%s %s", err.at, err.msg);
    }
    return out;
}

static void check_request(dgm_arena *a, const dgm_model_request *r, const char *want)
{
    dgm_buf out;
    dgm_err err = {0};
    yyjson_val *got = NULL, *wanted = parse(a, want);
    dgm_buf_init(&out, SIZE_MAX);
    if (dgm_model_write_request(r, &out, &err))
        fail_msg("%s %s", err.at, err.msg);
    assert_int_equal(dgm_json_read(a, dgm_buf_str(&out), SIZE_MAX, "none", &got, &err), DGM_OK);
    if (!dgm_json_equal(got, wanted))
        fail_msg("got  %.*s\nwant %s", (int)out.n, out.p, dgm_json_text_in(a, wanted).p);
    dgm_buf_done(&out);
}

#define USER(text) "{'messageId':'u','role':'ROLE_USER','parts':[{'text':'" text "'}]}"
#define CALLS                                                                                      \
    "{'messageId':'a','role':'ROLE_AGENT','parts':[{'text':'I look.'},{'data':{'tool_calls':[{"    \
    "'call_id':'c1','name':'find','arguments':{'q':'tea'}},{'call_id':'c2','name':'now',"          \
    "'arguments':'{}'}]}}]"
#define RESULTS                                                                                    \
    "{'messageId':'r','role':'ROLE_USER','parts':[{'data':{'tool_results':[{'call_id':'c2',"       \
    "'output':'noon'},{'call_id':'c1','output':{'n':1}}]}}]}"

static const dgm_canon_tool find_tool = {.name = {"find", 4}, .description = {"finds", 5}};

static void chat_request_has_tools_and_parameters(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_tool tool = find_tool;
    (void)state;
    tool.parameters = parse(a, "{'type':'object'}");
    dgm_model_request r = {
        .model = DGM_STR("m-1"),
        .instructions = DGM_STR("Be brief."),
        .messages = read_messages(a, "[" USER("Hi") "]"),
        .tools = {&tool, 1},
        .tool_choice = parse(a, "{'type':'function','name':'find'}"),
        .response_format = parse(a, "{'type':'json_schema','name':'x','schema':{}}"),
        .parameters = parse(a, "{'temperature':0.5,'max_tokens':10,'top_k':3,'model':'other'}"),
        .caller_parameters = parse(a, "{'temperature':1,'max_output_tokens':7,'top_k':9,'n':2}"),
    };
    check_request(
        a, &r,
        "{'model':'m-1','messages':[{'role':'system','content':'Be brief.'},{'role':'user',"
        "'content':'Hi'}],'tools':[{'type':'function','function':{'name':'find','description':"
        "'finds','parameters':{'type':'object'}}}],'stream':true,'stream_options':{"
        "'include_usage':true},'temperature':1,'top_k':3,'max_completion_tokens':7,'tool_choice':"
        "{'type':'function','function':{'name':'find'}},'response_format':{'type':'json_schema',"
        "'json_schema':{'name':'x','schema':{}}}}");
}

static void responses_request_has_tools_and_parameters(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_tool tool = find_tool;
    (void)state;
    dgm_model_request r = {
        .api = DGM_MODEL_RESPONSES,
        .model = DGM_STR("m-1"),
        .instructions = DGM_STR("Be brief."),
        .messages = read_messages(a, "[" USER("Hi") "]"),
        .tools = {&tool, 1},
        .tool_choice = parse(a, "'required'"),
        .response_format =
            parse(a, "{'type':'json_schema','json_schema':{'name':'x','schema':{}}}"),
        .parameters = parse(a, "{'reasoning':{'summary':'auto'},'seed':1,'verbosity':'low'}"),
        .caller_parameters = parse(a, "{'reasoning_effort':'high','max_tokens':7,'stop':['x']}"),
    };
    check_request(
        a, &r,
        "{'model':'m-1','instructions':'Be brief.','input':[{'type':'message','role':'user',"
        "'content':[{'type':'input_text','text':'Hi'}]}],'tools':[{'type':'function','name':'find',"
        "'description':'finds','parameters':{'type':'object','properties':{}},'strict':false}],"
        "'stream':true,'store':false,'include':['reasoning.encrypted_content'],'reasoning':{"
        "'summary':'auto','effort':'high'},'text':{'verbosity':'low','format':{'type':"
        "'json_schema','name':'x','schema':{}}},'max_output_tokens':7,'tool_choice':'required'}");
}

static void rejected_members_are_left_out(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .messages = read_messages(a, "[" USER("Hi") "]"),
        .parameters = parse(a, "{'max_completion_tokens':5}"),
        .tool_choice = parse(a, "'auto'"), /* there are no tools */
        .without = DGM_MODEL_STREAM_OPTIONS | DGM_MODEL_MAX_COMPLETION_TOKENS,
    };
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'user','content':'Hi'}],'stream':true,"
                  "'max_tokens':5}");
    r.parameters = parse(a, "{'max_tokens':5}");
    r.without = DGM_MODEL_MAX_TOKENS;
    r.is_whole = true;
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'user','content':'Hi'}],'stream':false,"
                  "'max_completion_tokens':5}");
    r.api = DGM_MODEL_RESPONSES;
    r.parameters = NULL;
    r.without = DGM_MODEL_INCLUDE;
    check_request(a, &r,
                  "{'model':'m','input':[{'type':'message','role':'user','content':[{'type':"
                  "'input_text','text':'Hi'}]}],'stream':false,'store':false}");
    r.without = DGM_MODEL_STORE;
    check_request(a, &r,
                  "{'model':'m','input':[{'type':'message','role':'user','content':[{'type':"
                  "'input_text','text':'Hi'}]}],'stream':false}");
}

/* Results follow their calls in the order of the calls, whatever order they have in the history. */
static void every_call_is_followed_by_its_result(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .messages = read_messages(a, "[" USER("Hi") "," CALLS "}," USER("hurry") "," RESULTS "]")};
    check_request(
        a, &r,
        "{'model':'m','messages':[{'role':'user','content':'Hi'},{'role':'assistant','content':"
        "'I look.','tool_calls':[{'id':'c1','type':'function','function':{'name':'find',"
        "'arguments':'{\\'q\\': \\'tea\\'}'}},{'id':'c2','type':'function','function':{'name':"
        "'now','arguments':'{}'}}]},{'role':'tool','tool_call_id':'c1','content':'{\\'n\\': 1}'},{"
        "'role':'tool','tool_call_id':'c2','content':'noon'},{'role':'user','content':'hurry'}],"
        "'stream':true,'stream_options':{'include_usage':true}}");
}

static void calls_without_results_and_results_without_calls_are_repaired(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .messages = read_messages(
            a, "[" RESULTS ",{'messageId':'a','role':'ROLE_AGENT','parts':[{'data':{'tool_calls':[{"
               "'call_id':'c1','name':'now'}]}}]},{'messageId':'b','role':'ROLE_AGENT','parts':[{"
               "'data':{'tool_calls':[{'call_id':'c1','name':'now'}]}}]}," RESULTS "]")};
    check_request(
        a, &r,
        "{'model':'m','messages':[{'role':'assistant','content':'','tool_calls':[{'id':'c1','type':"
        "'function','function':{'name':'now','arguments':'{}'}}]},{'role':'tool','tool_call_id':"
        "'c1','content':'There is no result: the call was not completed.'},{'role':'assistant',"
        "'content':'','tool_calls':[{'id':'c1','type':'function','function':{'name':'now',"
        "'arguments':'{}'}}]},{'role':'tool','tool_call_id':'c1','content':'{\\'n\\': 1}'}],"
        "'stream':true,'stream_options':{'include_usage':true}}");
}

static void chat_gets_signatures_and_reasoning_back(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .sends_reasoning = true,
        .messages = read_messages(
            a,
            "[" CALLS ",'metadata':{'" DGM_META_MODEL "':{'api':'chat','reasoning':'hm',"
            "'details':[{'data':'x'}],'calls':[{'id':'c1','extra':{'extra_content':{'google':{"
            "'thought_signature':'s'}}}},{'id':'old','index':1,'custom':true}]}}}," RESULTS "]")};
    const char *common =
        "{'model':'m','messages':[{'role':'assistant','content':'I look.','reasoning_content':'hm',"
        "'tool_calls':[{'id':'c1','type':'function','function':{'name':'find','arguments':"
        "'{\\'q\\': \\'tea\\'}'},'extra_content':{'google':{'thought_signature':'s'}}},{'id':'c2',"
        "'type':'custom','custom':{'name':'now','input':'{}'}}],'reasoning_details':[{'data':'x'}]"
        "},{'role':'tool','tool_call_id':'c1','content':'{\\'n\\': 1}'},{'role':'tool',"
        "'tool_call_id':'c2','content':'noon'}],'stream':true,'stream_options':{'include_usage':"
        "true}}";
    check_request(a, &r, common);
}

static void responses_gets_encrypted_items_back_in_their_places(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .api = DGM_MODEL_RESPONSES,
        .model = DGM_STR("m"),
        .is_whole = true,
        .messages = read_messages(
            a, "[" CALLS ",'metadata':{'" DGM_META_MODEL "':{'api':'responses','items':[{'type':"
               "'reasoning','id':'rs_1','summary':[],'encrypted_content':'x'},{'call':'old','index'"
               ":1},{"
               "'message':true,'phase':'commentary'}],'calls':[{'id':'c2','custom':true}]}}},"
               "" RESULTS "]")};
    check_request(
        a, &r,
        "{'model':'m','input':[{'type':'reasoning','id':'rs_1','summary':[],'encrypted_content':'x'"
        "},{'type':'custom_tool_call','id':'ctc_c2','call_id':'c2','name':'now','input':'{}',"
        "'status':'completed'},{'type':'message','id':'msg_m3','role':'assistant','content':[{"
        "'type':'output_text','text':'I look.','annotations':[],'logprobs':[]}],'status':"
        "'completed','phase':'commentary'},{'type':'function_call','id':'fc_c1','call_id':'c1',"
        "'name':'find','arguments':'{\\'q\\': \\'tea\\'}','status':'completed'},{'type':"
        "'function_call_output','call_id':'c1','output':'{\\'n\\': 1}'},{'type':"
        "'custom_tool_call_output','call_id':'c2','output':'noon'}],'stream':false,'store':false,"
        "'include':['reasoning.encrypted_content']}");
}

/* A server that did not make the values must not get them. */
static void custom_tools_get_their_text_back(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .is_whole = true,
        .messages = read_messages(
            a, "[{'messageId':'a','role':'ROLE_AGENT','parts':[{'data':{'tool_calls':[{'call_id':"
               "'c1','name':'sql','arguments':{'input':'SELECT 1'}}]}}],'metadata':{"
               "'" DGM_META_MODEL "':{'api':'chat','calls':[{'id':'c1','custom':true}]}}}," RESULTS
               "]")};
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'assistant','content':'','tool_calls':[{'id':"
                  "'c1','type':'custom','custom':{'name':'sql','input':'SELECT 1'}}]},{'role':"
                  "'tool','tool_call_id':'c1','content':'{\\'n\\': 1}'}],'stream':false}");
}

static void values_of_another_server_are_not_sent(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    dgm_model_request r = {
        .model = DGM_STR("m"),
        .sends_reasoning = true,
        .is_whole = true,
        .messages = read_messages(
            a, "[{'messageId':'a','role':'ROLE_AGENT','parts':[{'text':'Hi'}],'metadata':{"
               "'" DGM_META_MODEL "':{'api':'responses','reasoning':'hm','items':[{'type':"
               "'reasoning','encrypted_content':'x'}]}}}]")};
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'assistant','content':'Hi'}],'stream':false}");
    r.messages = read_messages(
        a, "[{'messageId':'a','role':'ROLE_AGENT','parts':[{'text':'Hi'}],'metadata':{"
           "'" DGM_META_MODEL "':{'api':'chat','source':'one','reasoning':'hm'}}}]");
    r.source = DGM_STR("two");
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'assistant','content':'Hi'}],'stream':false}");
    r.source = DGM_STR("one");
    check_request(a, &r,
                  "{'model':'m','messages':[{'role':'assistant','content':'Hi',"
                  "'reasoning_content':'hm'}],'stream':false}");
}

static void parameters_of_both_apis_are_found(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    assert_null(dgm_model_parameters(a, parse(a, "{'model':'m','user':'me','temperature':null}")));
    const dgm_json *got = dgm_model_parameters(
        a, parse(a, "{'temperature':0.2,'reasoning':{'effort':'low'},'text':{'verbosity':'high'},"
                    "'max_output_tokens':5,'service_tier':'priority','stop':'x'}"));
    assert_true(dgm_json_equal(got, parse(a, "{'temperature':0.2,'max_output_tokens':5,'stop':'x',"
                                             "'reasoning_effort':'low','verbosity':'high'}")));
}

/* ---- errors ------------------------------------------------------------------------------------------------------- */

static dgm_str shout(void *arg, dgm_arena *a, dgm_str text)
{
    (void)arg;
    return dgm_arena_printf(a, "!%.*s", DGM_P(text));
}

static const struct {
    int status;
    const char *body, *message, *code;
    bool is_retryable, is_filter, is_too_long;
} errors[] = {
    {429, "{'error':{'message':'slow down','type':'rate_limit_error','code':null}}", "!slow down",
     "rate_limit_error", true, false, false},
    {429, "{'error':{'message':'pay','code':'insufficient_quota'}}", "!pay", "insufficient_quota",
     false, false, false},
    {400, "{'error':{'message':'The prompt was filtered','code':'content_filter'}}",
     "!The prompt was filtered", "content_filter", false, true, false},
    {400,
     "{'error':{'message':'no','code':'x','innererror':{'code':'ResponsibleAIPolicyViolation'}}}",
     "!no", "ResponsibleAIPolicyViolation", false, true, false},
    {400,
     "{'error':{'message':'the request exceeds the available context size','code':400,"
     "'type':'exceed_context_size_error'}}",
     "!the request exceeds the available context size", "400", false, false, true},
    {401, "{'error':'bad key'}", "!bad key", "", false, false, false},
    {503, "", "the model's server answered with status 503", "", true, false, false},
    {502, "<html>Bad Gateway</html>", "the model's server answered with status 502", "", true,
     false, false},
    {422, "{'detail':[{'loc':['body','n'],'msg':'not a number'}]}", "!not a number", "", false,
     false, false},
    {400, "[{'error':{'code':400,'message':'no such model','status':'INVALID_ARGUMENT'}}]",
     "!no such model", "400", false, false, false},
    {501, "{}", "the model's server answered with status 501", "", false, false, false},
};

static void errors_are_classified(void **state)
{
    dgm_model_handler handler = {.clean_error = shout};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_model_error e;
        char body[512];
        snprintf(body, sizeof body, "%s", errors[i].body);
        for (char *p = body; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        dgm_model_read_error(a, errors[i].status, dgm_str_from(body), &handler, &e);
        assert_string_equal(e.message.p, errors[i].message);
        assert_string_equal(e.code.p ? e.code.p : "", errors[i].code);
        assert_int_equal(e.is_retryable, errors[i].is_retryable);
        assert_int_equal(e.is_content_filter, errors[i].is_filter);
        assert_int_equal(e.is_too_long, errors[i].is_too_long);
        assert_int_equal(e.status, errors[i].status);
    }
}

static const struct {
    int status;
    const char *body;
    unsigned bits;
} rejections[] = {
    {400,
     "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens'. Use "
     "'max_completion_tokens'.\","
     "\"param\":\"max_tokens\"}}",
     DGM_MODEL_MAX_TOKENS},
    {400,
     "{\"error\":{\"message\":\"'max_tokens' is not supported, use 'max_completion_tokens'\"}}",
     DGM_MODEL_MAX_TOKENS},
    {400, "{\"error\":\"unknown field max_completion_tokens\"}", DGM_MODEL_MAX_COMPLETION_TOKENS},
    {422, "{\"detail\":[{\"loc\":[\"body\",\"stream_options\"],\"msg\":\"extra\"}]}",
     DGM_MODEL_STREAM_OPTIONS},
    {400, "{\"error\":{\"message\":\"no\",\"param\":\"stream_options.include_usage\"}}",
     DGM_MODEL_STREAM_OPTIONS},
    {400, "{\"error\":{\"message\":\"unknown parameter\",\"param\":\"include\"}}",
     DGM_MODEL_INCLUDE},
    {400, "{\"error\":{\"message\":\"'store' is unknown\"}}", DGM_MODEL_STORE},
    {400, "{\"error\":{\"message\":\"we do not store this; include a key\"}}", 0},
    {400, "{\"error\":{\"message\":\"max_tokens\",\"param\":\"messages\"}}", 0},
    {400, "not JSON: stream_options", DGM_MODEL_STREAM_OPTIONS},
    {500, "{\"error\":{\"param\":\"stream_options\"}}", 0},
    {400, "", 0},
};

static void rejected_members_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rejections / sizeof *rejections; i++) {
        unsigned got = dgm_model_rejected(rejections[i].status, dgm_str_from(rejections[i].body));
        if (got != rejections[i].bits)
            fail_msg("%s: %u", rejections[i].body, got);
    }
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    const int64_t now = 784111777000; /* Sun, 06 Nov 1994 08:49:37 GMT */
    dgm_str none = {0};
    (void)state;
    assert_int_equal(dgm_model_retry_after(none, none, now), -1);
    assert_int_equal(dgm_model_retry_after(DGM_STR("2"), none, now), 2000);
    assert_int_equal(dgm_model_retry_after(DGM_STR("0.5"), none, now), 500);
    assert_int_equal(dgm_model_retry_after(DGM_STR("2"), DGM_STR("150"), now), 150);
    assert_int_equal(dgm_model_retry_after(DGM_STR("Sun, 06 Nov 1994 08:49:40 GMT"), none, now),
                     3000);
    assert_int_equal(dgm_model_retry_after(DGM_STR("Sun, 06 Nov 1994 08:49:30 GMT"), none, now), 0);
    assert_int_equal(dgm_model_retry_after(DGM_STR("-1"), none, now), -1);
    assert_int_equal(dgm_model_retry_after(DGM_STR("soon"), none, now), -1);
    assert_int_equal(dgm_model_retry_after(DGM_STR("99999999999999"), none, now), -1);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static dgm_code stop_at_text(void *arg, dgm_str delta)
{
    (void)delta;
    ++*(int *)arg;
    return DGM_INTERNAL;
}

static void code_of_a_callback_ends_the_answer(void **state)
{
    int n = 0;
    dgm_model_handler handler = {.on_text = stop_at_text, .arg = &n};
    dgm_auto(dgm_model_answer_free) dgm_model_answer *m =
        dgm_model_answer_new(DGM_MODEL_CHAT, &handler, 1);
    dgm_frames_item item = {
        .text =
            DGM_STR("{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}")};
    (void)state;
    assert_int_equal(dgm_model_answer_result(m)->finish, DGM_MODEL_UNFINISHED);
    assert_int_equal(dgm_model_answer_feed(m, &item, NULL), DGM_INTERNAL);
    assert_int_equal(dgm_model_answer_feed(m, &item, NULL), DGM_INTERNAL);
    assert_int_equal(dgm_model_answer_end(m, NULL), DGM_INTERNAL);
    assert_int_equal(n, 1);
    assert_int_equal(dgm_model_answer_result(m)->finish, DGM_MODEL_ERROR);
    assert_true(dgm_model_answer_has_output(m));
}

static void answer_without_callbacks_has_a_result(void **state)
{
    dgm_model_handler handler = {0};
    dgm_auto(dgm_model_answer_free) dgm_model_answer *m =
        dgm_model_answer_new(DGM_MODEL_CHAT, &handler, 1);
    dgm_frames_item item = {.text =
                                DGM_STR("{\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"delta\":{"
                                        "\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}}]}")};
    dgm_frames_item done = {.text = DGM_STR("[DONE]"), .done = true};
    (void)state;
    assert_int_equal(dgm_model_answer_feed(m, &item, NULL), DGM_OK);
    assert_false(dgm_model_answer_is_over(m));
    assert_int_equal(dgm_model_answer_feed(m, &done, NULL), DGM_OK);
    assert_true(dgm_model_answer_is_over(m));
    assert_false(dgm_model_answer_has_output(m));
    const dgm_model_result *result = dgm_model_answer_result(m);
    assert_int_equal(result->finish, DGM_MODEL_TOOL_CALLS);
    check_str(result->id, "c");
    check_str(result->model, "m");
    assert_null(result->opaque.p);
}

DGM_TEST_MAIN(dgm_test(chat_request_has_tools_and_parameters),
              dgm_test(responses_request_has_tools_and_parameters),
              dgm_test(rejected_members_are_left_out),
              dgm_test(every_call_is_followed_by_its_result),
              dgm_test(calls_without_results_and_results_without_calls_are_repaired),
              dgm_test(chat_gets_signatures_and_reasoning_back),
              dgm_test(responses_gets_encrypted_items_back_in_their_places),
              dgm_test(custom_tools_get_their_text_back),
              dgm_test(values_of_another_server_are_not_sent),
              dgm_test(parameters_of_both_apis_are_found), dgm_test(errors_are_classified),
              dgm_test(rejected_members_are_found), dgm_test(retry_after_is_seconds_or_a_date),
              dgm_test(code_of_a_callback_ends_the_answer),
              dgm_test(answer_without_callbacks_has_a_result))
