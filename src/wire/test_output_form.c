/* test_output_form.c - the form that a request wants its answer in. */
#include "canon/message_content.h"
#include "support/check.h"
#include "wire/chat/chat_codec.h"
#include "wire/output_form.h"
#include "wire/responses/responses.h"

/* What came out: kinds and their words, one per line. */
static dgm_code put_line(void *arg, const dgm_canon_event *e)
{
    dgm_buf *b = arg;
    dgm_buf_printf(b, "%s", dgm_canon_kind_name(e->kind));
    if (e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT)
        dgm_buf_printf(b, " %.*s", DGM_P(e->text.delta));
    else if (e->kind == DGM_CANON_TOOL_CALL_START)
        dgm_buf_printf(b, " %.*s %.*s", DGM_P(e->call.tool_call_id), DGM_P(e->call.name));
    else if (e->kind == DGM_CANON_TOOL_CALL_ARGS)
        dgm_buf_printf(b, " %.*s", DGM_P(e->call.delta));
    else if (e->kind == DGM_CANON_RUN_FINISHED)
        dgm_buf_printf(b, " %d", (int)e->run_finished.usage.at[0].total_tokens.value);
    dgm_buf_add_char(b, '\n');
    return DGM_OK;
}

struct fed {
    dgm_arena *a;
    dgm_output o;
    dgm_buf out;
};

/* A chat request has messages. */
static struct fed fed_for(const char *request)
{
    struct fed f = {.a = dgm_arena_new()};
    dgm_err err = {0};
    dgm_reader r = {.arena = f.a, .err = &err};
    yyjson_val *body = dgm_json_parse_trusted(f.a, dgm_str_from(request));
    dgm_output_form form;
    dgm_canon_input input;
    dgm_buf_init(&f.out, SIZE_MAX);
    if (dgm_json_get(body, DGM_STR("messages"))) {
        assert_int_equal(dgm_codec_openai_chat.read_request(&r, body, NULL, &input), DGM_OK);
        assert_int_equal(dgm_chat_read_output_form(f.a, body, &input.tools, &form, &err), DGM_OK);
    } else {
        assert_int_equal(dgm_responses_read_output_form(f.a, body, &form, &err), DGM_OK);
    }
    dgm_output_init(&f.o, &form);
    return f;
}

static void feed(struct fed *f, const dgm_canon_event *e)
{
    assert_int_equal(dgm_output_event(&f->o, e, (dgm_canon_sink){put_line, &f->out}), DGM_OK);
}

static void feed_text(struct fed *f, const char *text)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_CONTENT};
    e.text.message_id = DGM_STR("m");
    e.text.delta = dgm_str_from(text);
    feed(f, &e);
}

static void feed_data(struct fed *f, const char *id, const char *data, bool append)
{
    dgm_part part = {.kind = DGM_PART_DATA,
                     .data = dgm_json_parse_trusted(f->a, dgm_str_from(data))};
    dgm_artifact artifact = {.artifact_id = dgm_str_from(id), .parts = {&part, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT,
                         .artifact = {.artifact = &artifact, .append = append}};
    feed(f, &e);
}

static void feed_end(struct fed *f, dgm_canon_outcome outcome)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    e.run_finished.run_id = DGM_STR("chatcmpl-7");
    e.run_finished.outcome = outcome;
    feed(f, &e);
}

static void check_fed(struct fed *f, const char *want)
{
    dgm_buf_add_char(&f->out, 0);
    assert_string_equal(f->out.p, want);
    dgm_buf_done(&f->out);
    dgm_output_done(&f->o);
    dgm_output_done(&f->o);
    dgm_arena_free(f->a);
}

#define CHAT "\"messages\":[],"
#define SCHEMA                                                                                     \
    "{" CHAT                                                                                       \
    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"required\":["    \
    "\"city\"]}}}}"

static void data_is_the_answer_where_json_was_requested(void **state)
{
    const char *const requests[] = {
        "{" CHAT "\"response_format\":{\"type\":\"json_object\"}}", SCHEMA,
        "{\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{}}}}"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct fed f = fed_for(requests[i]);
        feed_text(&f, "It is ");
        feed_data(&f, "d", "{\"city\":\"Oakland\"}", false);
        feed_text(&f, "sunny.");
        feed_end(&f, (dgm_canon_outcome){0});
        check_fed(&f, "TEXT_MESSAGE_START\nTEXT_MESSAGE_CONTENT {\"city\": \"Oakland\"}\n"
                      "TEXT_MESSAGE_END\nRUN_FINISHED 0\n");
    }
}

static void without_data_texts_pass(void **state)
{
    struct fed f = fed_for(SCHEMA);
    (void)state;
    feed_text(&f, "{\"city\":");
    feed_text(&f, "\"Oakland\"}");
    feed_end(&f, (dgm_canon_outcome){0});
    check_fed(&f, "TEXT_MESSAGE_CONTENT {\"city\":\"Oakland\"}\nRUN_FINISHED 0\n");
}

static void of_several_the_last_that_fits(void **state)
{
    (void)state;
    struct fed f = fed_for(SCHEMA);
    feed_data(&f, "a", "{\"city\":1}", false);
    feed_data(&f, "b", "{\"city\":2}", false);
    feed_data(&f, "c", "{\"town\":3}", false);
    feed_end(&f, (dgm_canon_outcome){0});
    check_fed(&f, "TEXT_MESSAGE_START\nTEXT_MESSAGE_CONTENT {\"city\": 2}\nTEXT_MESSAGE_END\n"
                  "RUN_FINISHED 0\n");
    f = fed_for(SCHEMA);
    feed_data(&f, "a", "{\"town\":1}", false);
    feed_data(&f, "b", "{\"town\":2}", false);
    feed_end(&f, (dgm_canon_outcome){0});
    check_fed(&f, "TEXT_MESSAGE_START\nTEXT_MESSAGE_CONTENT {\"town\": 2}\nTEXT_MESSAGE_END\n"
                  "RUN_FINISHED 0\n");
    f = fed_for(SCHEMA);
    feed_data(&f, "a", "{\"city\":1}", false);
    feed_data(&f, "a", "{\"town\":2}", false); /* in its place */
    feed_end(&f, (dgm_canon_outcome){0});
    check_fed(&f, "TEXT_MESSAGE_START\nTEXT_MESSAGE_CONTENT {\"town\": 2}\nTEXT_MESSAGE_END\n"
                  "RUN_FINISHED 0\n");
}

static void a_question_is_no_data(void **state)
{
    struct fed f = fed_for(SCHEMA);
    (void)state;
    feed_data(&f, "a", "{\"city\":1}", false);
    feed_text(&f, "Which?");
    feed_end(&f, (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT});
    check_fed(&f, "ARTIFACT\nTEXT_MESSAGE_CONTENT Which?\nRUN_FINISHED 0\n");
}

#define TOOLS                                                                                      \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"other\",\"parameters\":{"          \
    "\"required\":[\"x\"]}}},{\"type\":\"function\",\"name\":\"weather\",\"parameters\":{"         \
    "\"required\":[\"city\"]}}]"
#define CHAT_TOOLS                                                                                 \
    CHAT "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"other\",\"parameters\":{"     \
         "\"required\":[\"x\"]}}},{\"type\":\"function\",\"function\":{\"name\":\"weather\","      \
         "\"parameters\":{\"required\":[\"city\"]}}}]"

static void data_is_the_arguments_of_a_required_call(void **state)
{
    const char *const requests[] = {
        "{\"tool_choice\":\"required\"," TOOLS "}",
        "{\"tool_choice\":\"required\"," CHAT_TOOLS "}",
        "{\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}," CHAT_TOOLS
        "}",
        "{\"function_call\":{\"name\":\"weather\"}," CHAT_TOOLS "}",
        "{\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\","
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}]}}," CHAT_TOOLS "}",
        "{\"tool_choice\":{\"type\":\"function\",\"name\":\"weather\"}," TOOLS "}",
        "{\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[{\"name\":"
        "\"weather\"}]}," TOOLS "}"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct fed f = fed_for(requests[i]);
        feed_data(&f, "d", "{\"city\":\"Oakland\"}", false);
        feed_text(&f, "Sunny.");
        feed_end(&f, (dgm_canon_outcome){0});
        check_fed(&f, "TEXT_MESSAGE_CONTENT Sunny.\nTOOL_CALL_START call_7 weather\n"
                      "TOOL_CALL_ARGS {\"city\": \"Oakland\"}\nTOOL_CALL_END\nRUN_FINISHED 0\n");
    }
}

static void data_that_fits_no_tool_stays_data(void **state)
{
    struct fed f = fed_for("{\"tool_choice\":\"required\"," TOOLS "}");
    (void)state;
    feed_data(&f, "d", "{\"town\":1}", false);
    feed_end(&f, (dgm_canon_outcome){0});
    check_fed(&f, "ARTIFACT\nRUN_FINISHED 0\n");
}

static void nothing_is_held_where_nothing_was_requested(void **state)
{
    struct fed f = fed_for("{\"tool_choice\":\"auto\"," TOOLS "}");
    dgm_canon_usage usage = {.total_tokens = {true, 5}};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    (void)state;
    feed_text(&f, "a");
    feed_data(&f, "d", "{\"city\":1}", false);
    e.run_finished.usage = (dgm_canon_usages){&usage, 1};
    feed(&f, &e);
    check_fed(&f, "TEXT_MESSAGE_CONTENT a\nARTIFACT\nRUN_FINISHED 5\n");
}

/* The error's pointer and text; "": the form can be honoured. */
static void check_refused(const char *request, const char *at, const char *why)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *body = dgm_json_parse_trusted(a, dgm_str_from(request));
    dgm_canon_input input = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .err = &err};
    dgm_output_form form;
    if (dgm_json_get(body, DGM_STR("messages"))) {
        assert_int_equal(dgm_codec_openai_chat.read_request(&r, body, NULL, &input), DGM_OK);
        dgm_chat_read_output_form(a, body, &input.tools, &form, &err);
    } else {
        dgm_responses_read_output_form(a, body, &form, &err);
    }
    assert_string_equal(err.at, at);
    assert_string_equal(err.msg, why);
}

static void what_cannot_be_called_is_refused(void **state)
{
    static const char unknown[] = "unknown function: `tools` does not have it";
    static const char unknown_tool[] = "unknown tool: `tools` does not have it";
    (void)state;
    check_refused("{" CHAT "\"response_format\":{\"type\":\"xml\"}}", "/response_format/type",
                  "expected text, json_object or json_schema");
    check_refused("{" CHAT "\"tool_choice\":\"any\"}", "/tool_choice",
                  "expected none, auto or required");
    check_refused("{" CHAT "\"tool_choice\":\"none\"}", "", "");
    check_refused("{" CHAT "\"function_call\":{\"name\":\"x\"}}", "/function_call",
                  "there are no tools to be called");
    check_refused("{\"tool_choice\":{\"type\":\"custom\",\"custom\":{\"name\":\"c\"}}," CHAT_TOOLS
                  "}",
                  "/tool_choice", unknown_tool);
    check_refused("{\"tool_choice\":\"any\"}", "/tool_choice",
                  "expected \"none\", \"auto\" or \"required\"");
    check_refused("{\"tool_choice\":\"required\"}", "/tool_choice", unknown);
    check_refused("{\"tool_choice\":{\"type\":\"function\",\"name\":\"x\"}," TOOLS "}",
                  "/tool_choice", unknown);
    check_refused("{\"tool_choice\":{\"type\":\"custom\",\"name\":\"weather\"}," TOOLS "}",
                  "/tool_choice", unknown);
    check_refused("{\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\"}}", "", "");
}

DGM_TEST_MAIN(dgm_test(what_cannot_be_called_is_refused),
              dgm_test(data_is_the_answer_where_json_was_requested),
              dgm_test(without_data_texts_pass), dgm_test(of_several_the_last_that_fits),
              dgm_test(a_question_is_no_data), dgm_test(data_is_the_arguments_of_a_required_call),
              dgm_test(data_that_fits_no_tool_stays_data),
              dgm_test(nothing_is_held_where_nothing_was_requested))
