/* lib/test_convert.c - the public functions as a stranger would call them. */
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

#define MESSAGE "{\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"hi\"}]}"
#define EVENT                                                                                      \
    "{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\","                            \
    "\"status\":{\"state\":\"working\"},\"final\":false}"

static char *convert(const dgm_convert_options *o, const char *text)
{
    dgm_err err = {0};
    char *out = NULL;
    if (dgm_convert(o, text, strlen(text), &out, NULL, &err))
        fail_msg("%s at %s", err.msg, err.at);
    return out;
}

/* JSON that is written with ` instead of ". */
static char *unquote(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; (p = strchr(p, '`')); p++)
        *p = '"';
    return copy;
}

static void formats_are_listed_and_named_in_errors(void **state)
{
    size_t n = dgm_format_count();
    (void)state;
    assert_null(dgm_format_at(n));
    for (size_t i = 0; i < n; i++) {
        const dgm_format_info *f = dgm_format_at(i);
        dgm_converter *c;
        dgm_convert_options o = {.size = sizeof o, .to = f->id};
        assert_string_equal(dgm_format_id_name(f->id), f->name);
        assert_int_equal(dgm_format_id_by_name(f->name), f->id);
        assert_int_equal(dgm_converter_new(&o, &c, NULL), DGM_OK);
        dgm_converter_free(c);
    }
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_A2A_10, .to = (dgm_format_id)99};
    dgm_converter *c = NULL;
    dgm_err err = {0};
    assert_int_equal(dgm_converter_new(&o, &c, &err), DGM_BAD_REQUEST);
    assert_null(c);
    for (size_t i = 0; i < n; i++)
        assert_non_null(strstr(err.msg, dgm_format_at(i)->name));
}

static void the_seed_and_the_input_make_the_ids(void **state)
{
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_A2A_03, .to = DGM_FORMAT_A2A_10};
    (void)state;
    char *once = convert(&o, MESSAGE), *again = convert(&o, MESSAGE),
         *other = convert(&o, MESSAGE " ");
    o.seed = "x";
    char *seeded = convert(&o, MESSAGE);
    assert_string_equal(once, again);
    assert_string_equal(once, other); /* white space around it is not the message */
    assert_string_not_equal(once, seeded);
    dgm_free(once);
    dgm_free(again);
    dgm_free(other);
    dgm_free(seeded);
}

static void a_fault_is_final_and_what_came_before_stays(void **state)
{
    dgm_convert_options o = {.size = sizeof o,
                             .from = DGM_FORMAT_A2A_03,
                             .to = DGM_FORMAT_A2A_10,
                             .framing = DGM_FRAMING_LINES};
    dgm_converter *c;
    dgm_err err = {0};
    static const char good[] = EVENT "\n", bad[] = "{\"kind\":\"task\"}\n";
    (void)state;
    assert_int_equal(dgm_converter_new(&o, &c, &err), DGM_OK);
    assert_int_equal(dgm_converter_feed(c, good, sizeof good - 1, &err), DGM_OK);
    size_t n = dgm_converter_output(c).n;
    assert_true(n > 0);
    assert_int_equal(dgm_converter_feed(c, bad, sizeof bad - 1, &err), DGM_BAD_PARAMS);
    assert_int_equal(err.line, 2);
    assert_string_equal(err.at, "/status");
    dgm_err later = {0};
    assert_int_equal(dgm_converter_feed(c, good, sizeof good - 1, &later), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_end(c, &later), DGM_BAD_PARAMS);
    assert_string_equal(later.msg, err.msg);
    assert_int_equal(dgm_converter_output(c).n, n);
    dgm_converter_consume(c, n - 1);
    check_str(dgm_converter_output(c), "\n");
    dgm_converter_free(c);
}

/* The pointer contains the index of the element once. */
static void the_pointer_of_an_error_in_an_array_contains_its_index(void **state)
{
    static const struct {
        dgm_format_id from, to;
        const char *in, *at;
    } cases[] = {
        {DGM_FORMAT_AG_UI, DGM_FORMAT_A2A_10,
         "[{`type`:`RUN_STARTED`,`threadId`:`t`,`runId`:`r`},{`id`:`1`,`role`:`user`,`content`:3}]",
         "/1/content"},
        {DGM_FORMAT_AG_UI, DGM_FORMAT_CHAT,
         "[{`id`:`1`,`role`:`user`,`content`:`a`},{`id`:`2`,`role`:`user`,`content`:3}]",
         "/1/content"},
        {DGM_FORMAT_CHAT, DGM_FORMAT_AG_UI,
         "[{`model`:`m`,`messages`:[{`role`:`user`,`content`:`a`}]},"
         "{`model`:`m`,`messages`:[{`role`:`user`,`content`:3}]}]",
         "/1/messages/0/content"},
        {DGM_FORMAT_CHAT, DGM_FORMAT_A2A_10,
         "[{`role`:`user`,`content`:`a`},{`role`:`user`,`content`:3}]", "/1/content"},
        {DGM_FORMAT_CHAT, DGM_FORMAT_AG_UI, "[{`role`:`user`,`content`:`a`},7]", "/1"},
        {DGM_FORMAT_RESPONSES, DGM_FORMAT_AG_UI,
         "[{`model`:`m`,`input`:`a`},{`model`:`m`,`input`:[{`type`:`message`,`role`:`user`,"
         "`content`:3}]}]",
         "/1/input/0/content"},
        {DGM_FORMAT_AI_SDK, DGM_FORMAT_AG_UI,
         "[{`type`:`start`},{`id`:`1`,`role`:`user`,`parts`:[{`type`:`text`,`text`:3}]}]",
         "/1/parts/0/text"},
        {DGM_FORMAT_A2A_10, DGM_FORMAT_CHAT,
         "[{`messageId`:`a`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`a`}]},"
         "{`messageId`:`b`,`role`:`ROLE_AGENT`,`parts`:[{`data`:{`tool_calls`:[{`id`:1}]}}]}]",
         "/1/parts/0/data/tool_calls/0/call_id"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_convert_options o = {.size = sizeof o, .from = cases[i].from, .to = cases[i].to};
        dgm_err err = {0};
        char *out = NULL, *in = unquote(cases[i].in);
        assert_int_not_equal(dgm_convert(&o, in, strlen(in), &out, NULL, &err), DGM_OK);
        assert_string_equal(err.at, cases[i].at);
        free(in);
    }
}

/* Lines of ended tasks are a log, also if the caller names the kind of object. */
static void lines_of_send_responses_are_a_log(void **state)
{
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_A2A_10, .to = DGM_FORMAT_CHAT};
    char *in =
        unquote("{`task`:{`id`:`t`,`contextId`:`c`,`status`:{`state`:`TASK_STATE_COMPLETED`,"
                "`message`:{`messageId`:`m`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`hi`}]}}}}\n"
                "{`task`:{`id`:`u`,`contextId`:`c`,`status`:{`state`:`TASK_STATE_COMPLETED`,"
                "`message`:{`messageId`:`n`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`ho`}]}}}}\n");
    (void)state;
    char *detected = convert(&o, in);
    o.object = DGM_OBJECT_SEND_RESPONSE;
    char *named = convert(&o, in);
    assert_string_equal(detected, named);
    dgm_free(detected);
    dgm_free(named);
    free(in);
}

static void nothing_in_is_an_error(void **state)
{
    dgm_convert_options o = {.size = sizeof o, .to = DGM_FORMAT_A2A_10};
    dgm_err err = {0};
    char *out = NULL;
    (void)state;
    assert_int_equal(dgm_convert(&o, "", 0, &out, NULL, &err), DGM_PARSE);
    assert_int_equal(dgm_convert(&o, " \n", 2, &out, NULL, &err), DGM_PARSE);
    assert_null(out);
    assert_int_equal(dgm_convert(&o, " \n", 2, &out, NULL, NULL), DGM_PARSE); /* err may be NULL */
}

/* A million chat messages of 29 bytes become more than output_bytes by their ids and metadata. */
static void output_bytes_is_held(void **state)
{
    static const char tiny[] = "{\"role\":\"user\",\"content\":\"\"},";
    size_t count = DGM_MAX_OBJECT_BYTES / sizeof tiny, n = 1;
    char *text = malloc(count * sizeof tiny + 2), *out = NULL;
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_CHAT, .to = DGM_FORMAT_A2A_10};
    dgm_err err = {0};
    (void)state;
    text[0] = '[';
    for (size_t i = 0; i < count; i++, n += sizeof tiny - 1)
        memcpy(text + n, tiny, sizeof tiny - 1);
    text[n - 1] = ']';
    assert_int_equal(dgm_convert(&o, text, n, &out, NULL, &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "output_bytes"));
    assert_null(out);
    free(text);
}

static void a_document_is_read_walked_and_written(void **state)
{
    static const char text[] =
        "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"completed\"},"
        "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"kind\":\"data\",\"data\":{\"n\":1.0}}]}"
        "]}";
    dgm_document *d = NULL;
    dgm_err err = {0};
    char *out = NULL;
    (void)state;
    dgm_convert_options o = {.size = sizeof o};
    assert_int_equal(dgm_document_decode(&o, text, sizeof text - 1, &d, &err), DGM_OK);
    assert_int_equal(dgm_document_count(d), 1);
    assert_int_equal(dgm_document_kind(d, 0), DGM_OBJECT_TASK);
    const dgm_task *task = dgm_document_object(d, 0);
    check_str(task->id, "t");
    assert_int_equal(task->status.state, DGM_STATE_COMPLETED);
    char *data = dgm_json_text(task->artifacts.at[0].parts.at[0].data);
    assert_string_equal(data, "{\"n\":1.0}");
    dgm_free(data);
    o.to = DGM_FORMAT_A2A_10;
    assert_int_equal(dgm_document_encode(d, &o, &out, NULL, &err), DGM_OK);
    assert_string_equal(out, "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                             "\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"a\","
                             "\"parts\":[{\"data\":{\"n\":1.0}}]}]}");
    dgm_free(out);
    o.to = (dgm_format_id)99;
    assert_int_equal(dgm_document_encode(d, &o, &out, NULL, &err), DGM_BAD_REQUEST);
    dgm_document_free(d);
    d = NULL;
    o = (dgm_convert_options){.size = sizeof o, .from = DGM_FORMAT_A2A_10};
    assert_int_equal(dgm_document_decode(&o, text, 2, &d, &err), DGM_PARSE);
    o.from = DGM_FORMAT_NONE;
    assert_int_equal(dgm_document_decode(&o, "[1]", 3, &d, NULL), DGM_BAD_PARAMS);
    assert_null(d);
}

/* R002-34: the public headers name the states, the nouns, the three events and the internal ones. */
static void the_public_types_hold_an_agent_s_events(void **state)
{
    dgm_internal call = {.kind = DGM_INTERNAL_LLM_CALL,
                         .task_id = DGM_STR("t"),
                         .iteration = {true, 1},
                         .timestamp = DGM_STR("2026-01-02T03:04:05Z")};
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("hi")};
    dgm_artifact_update chunk = {.task_id = DGM_STR("t"),
                                 .context_id = DGM_STR("c"),
                                 .artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}},
                                 .last_chunk = DGM_TRUE};
    dgm_status_update done = {.status = {.state = DGM_STATE_COMPLETED}};
    dgm_task task = {.id = DGM_STR("t"), .status = {.state = DGM_STATE_SUBMITTED}};
    dgm_event events[] = {{.kind = DGM_EVENT_TASK, .task = &task},
                          {.kind = DGM_EVENT_INTERNAL, .internal = &call},
                          {.kind = DGM_EVENT_ARTIFACT, .artifact = &chunk},
                          {.kind = DGM_EVENT_STATUS, .status = &done}};
    (void)state;
    assert_true(dgm_state_may_become(events[0].task->status.state, events[3].status->status.state));
    assert_true(dgm_state_is_terminal(events[3].status->status.state));
}

static void losses_are_counted_and_given(void **state)
{
    const dgm_loss *rows[200];
    size_t n = dgm_format_losses(DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_03, rows, 200);
    (void)state;
    assert_true(n > 0 && n < 200);
    for (size_t i = 0; i < n; i++)
        assert_true(*rows[i]->object && *rows[i]->what);
    assert_int_equal(dgm_format_losses(DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_03, NULL, 0), n);
    assert_int_equal(dgm_format_losses(DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_10, rows, 200), 0);
    assert_int_equal(dgm_format_losses((dgm_format_id)99, DGM_FORMAT_A2A_10, rows, 200), 0);
}

/* Binary events there and back, in pieces of every size, and what is wrong with them. */
/* In one go or in pieces: the same bytes, the same error. */
static void a_whole_text_is_what_its_pieces_are(void **state)
{
#define M "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"a\"}]}"
    static const char *const texts[] = {M,
                                        " " M "\n",
                                        "[" M "," M "]",
                                        M "\n" M "\n",
                                        "data: {\"message\":" M "}\n\n",
                                        "data: {\"message\":" M "}",
                                        "",
                                        "  ",
                                        "[" M ",",
                                        M "\n{\"role\":1}",
                                        ("\xEF\xBB\xBF" M)};
    dgm_convert_options o = {.size = sizeof o, .from = DGM_FORMAT_A2A_10, .to = DGM_FORMAT_A2A_03};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_converter *whole = NULL, *pieces = NULL;
        dgm_err err = {0}, other = {0};
        size_t n = strlen(texts[i]);
        assert_int_equal(dgm_converter_new(&o, &whole, &err), DGM_OK);
        assert_int_equal(dgm_converter_new(&o, &pieces, &err), DGM_OK);
        dgm_code rc = dgm_converter_feed_all(whole, texts[i], n, &err), other_rc = DGM_OK;
        for (size_t k = 0; k < n && !other_rc; k++)
            other_rc = dgm_converter_feed(pieces, texts[i] + k, 1, &other);
        if (!other_rc)
            other_rc = dgm_converter_end(pieces, &other);
        assert_int_equal(rc, other_rc);
        assert_string_equal(err.msg, other.msg);
        assert_string_equal(err.at, other.at);
        assert_int_equal(err.line, other.line);
        dgm_str a = dgm_converter_output(whole), b = dgm_converter_output(pieces);
        assert_int_equal(a.n, b.n);
        if (a.n)
            assert_memory_equal(a.p, b.p, a.n);
        dgm_converter_free(whole);
        dgm_converter_free(pieces);
    }
}

static void binary_events_go_through(void **state)
{
    static const char events[] = "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n"
                                 "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n";
    dgm_convert_options to = {
        .size = sizeof to, .from = DGM_FORMAT_AG_UI, .to = DGM_FORMAT_AG_UI_PROTO};
    dgm_convert_options from = {
        .size = sizeof from, .to = DGM_FORMAT_AG_UI, .framing = DGM_FRAMING_LINES};
    dgm_err err = {0};
    char *bytes = NULL;
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < dgm_format_count(); i++)
        assert_int_equal(dgm_format_at(i)->binary, dgm_format_at(i)->id == DGM_FORMAT_AG_UI_PROTO);
    check_ok(dgm_convert(&to, events, strlen(events), &bytes, &n, &err), err);
    for (size_t piece = 1; piece <= n; piece++) {
        dgm_converter *c;
        check_ok(dgm_converter_new(&from, &c, &err), err);
        for (size_t at = 0; at < n; at += piece)
            check_ok(dgm_converter_feed(c, bytes + at, n - at < piece ? n - at : piece, &err), err);
        check_ok(dgm_converter_end(c, &err), err);
        check_str(dgm_converter_output(c), events);
        dgm_converter_free(c);
    }
    char *out = NULL;
    assert_int_equal(dgm_convert(&from, bytes, n - 1, &out, NULL, &err), DGM_PARSE);
    assert_non_null(strstr(err.msg, "cut short"));
    assert_int_equal(dgm_convert(&from, "\0\0\0\2\x13\x14", 6, &out, NULL, &err), DGM_BAD_PARAMS);
    from.from = DGM_FORMAT_AG_UI_PROTO; /* longer than any event may be */
    assert_int_equal(dgm_convert(&from, "\0\xff\xff\xff", 4, &out, NULL, &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "record_bytes"));
    dgm_free(bytes);
}

DGM_TEST_MAIN(dgm_test(a_whole_text_is_what_its_pieces_are), dgm_test(binary_events_go_through),
              dgm_test(formats_are_listed_and_named_in_errors),
              dgm_test(the_seed_and_the_input_make_the_ids),
              dgm_test(a_fault_is_final_and_what_came_before_stays),
              dgm_test(the_pointer_of_an_error_in_an_array_contains_its_index),
              dgm_test(lines_of_send_responses_are_a_log), dgm_test(nothing_in_is_an_error),
              dgm_test(output_bytes_is_held), dgm_test(a_document_is_read_walked_and_written),
              dgm_test_holds(the_public_types_hold_an_agent_s_events, "R002-34"),
              dgm_test(losses_are_counted_and_given))
