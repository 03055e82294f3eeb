/* lib/test_loss_watch.c - which losses a conversion reports for an input. */
#include "base/err.h"
#include "base/str.h"
#include "support/check.h"

#include <dragoman/dragoman.h>
#include <stdio.h>

/* The reported rows as "object member*count@at ", in order. */
static const char *losses_of(const char *from, const char *to, const char *text)
{
    static char out[4096];
    dgm_convert_options o = {.size = sizeof o,
                             .from = dgm_format_id_by_name(from),
                             .to = dgm_format_id_by_name(to),
                             .losses = true};
    dgm_converter *c;
    dgm_err err = {0};
    const dgm_loss_seen *seen;
    check_ok(dgm_converter_new(&o, &c, &err), err);
    check_ok(dgm_converter_feed_all(c, text, strlen(text), &err), err);
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; (seen = dgm_converter_loss_at(c, i)); i++)
        used +=
            (size_t)snprintf(out + used, sizeof out - used, "%s%s %s*%zu@%zu:%zu%s ",
                             seen->canonical ? "AG-UI " : "", seen->loss->object,
                             seen->loss->member, seen->count, seen->line, seen->column, seen->at);
    dgm_converter_free(c);
    return out;
}

static void nothing_is_counted_unless_requested(void **state)
{
    static const char text[] = "{\"messageId\":\"m\",\"contextId\":\"c\",\"role\":\"ROLE_USER\","
                               "\"parts\":[{\"text\":\"a\"}],\"extensions\":[\"x\"]}";
    dgm_convert_options o = {.size = sizeof o, .to = DGM_FORMAT_CHAT};
    dgm_converter *c;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_converter_new(&o, &c, &err), err);
    check_ok(dgm_converter_feed_all(c, text, strlen(text), &err), err);
    assert_int_equal(dgm_converter_loss_count(c), 0);
    assert_null(dgm_converter_loss_at(c, 0));
    dgm_converter_free(c);
}

#define PLAIN_10 "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"a\"}]}"

static void a_message_to_chat_reports_the_members_it_has(void **state)
{
    (void)state;
    assert_string_equal(losses_of("a2a-1.0", "openai-chat",
                                  "{\"messageId\":\"m\",\"contextId\":\"c\",\"role\":\"ROLE_USER\","
                                  "\"parts\":[{\"text\":\"a\"}],\"extensions\":[\"x\"],"
                                  "\"metadata\":{\"k\":1},\"referenceTaskIds\":[\"t\"]}"),
                        "message /messageId*1@1:14/messageId message /contextId*1@1:30/contextId "
                        "message /metadata*1@1:106/metadata message /extensions*1@1:89/extensions "
                        "message /referenceTaskIds*1@1:133/referenceTaskIds ");
    assert_string_equal(losses_of("a2a-1.0", "openai-chat", PLAIN_10),
                        "message /messageId*1@1:14/messageId ");
}

static void conversions_without_a_loss_report_none(void **state)
{
    (void)state;
    assert_string_equal(losses_of("a2a-1.0", "a2a-0.3", PLAIN_10), "");
    assert_string_equal(losses_of("a2a-1.0", "a2a-1.0", PLAIN_10), "");
    assert_string_equal(losses_of("a2a-1.0", "ag-ui", PLAIN_10), "");
    assert_string_equal(
        losses_of("openai-chat", "a2a-1.0", "{\"role\":\"user\",\"content\":\"a\"}"), "");
    assert_string_equal(
        losses_of("openai-chat", "openai-chat", "{\"role\":\"user\",\"content\":\"a\",\"x\":1}"),
        "");
}

static void envelopes_and_pieces_are_looked_into(void **state)
{
    (void)state;
    assert_string_equal(
        losses_of("a2a-1.0", "ag-ui",
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"message\":{\"messageId\":\"m\","
                  "\"contextId\":\"c\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"a\"}]}}}"),
        "any /jsonrpc*1@1:12/jsonrpc message /contextId*1@1:74/result/message/contextId ");
    /* the context of a request is its thread */
    assert_string_equal(
        losses_of("a2a-1.0", "ag-ui",
                  "{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\",\"role\":"
                  "\"ROLE_USER\",\"parts\":[{\"text\":\"a\"}]},\"configuration\":{}}"),
        "");
#define CHUNK(text)                                                                                \
    "{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"" text                    \
    "\"}],\"metadata\":{"                                                                          \
    "\"canonical_type\":\"TextMessageChunkEvent\",\"k\":1}}"
    assert_string_equal(losses_of("a2a-1.0", "ag-ui", "[" CHUNK("a") "," CHUNK("b") "]"),
                        "message /metadata*2@1:73/0/metadata ");
}

/* The history of a task, the message of a status: the objects inside an object have rows of their own. */
static void objects_inside_objects_are_found(void **state)
{
    (void)state;
    assert_string_equal(
        losses_of(
            "a2a-1.0", "a2a-0.3-rest",
            "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\","
            "\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":"
            "\"a\"}],\"referenceTaskIds\":[\"x\"]}},\"history\":[{\"messageId\":\"h\","
            "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"a\",\"mediaType\":\"text/plain\"}],"
            "\"referenceTaskIds\":[\"y\"]}]}"),
        "message /referenceTaskIds*2@1:279/history/0/referenceTaskIds "
        "part /mediaType*1@1:245/history/0/parts/0/mediaType ");
    /* what users put into metadata and data is not an object of A2A */
    assert_string_equal(
        losses_of("a2a-1.0", "a2a-0.3-rest",
                  "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"data\":"
                  "{\"message\":{\"referenceTaskIds\":[\"x\"]}}}],\"metadata\":"
                  "{\"message\":{\"referenceTaskIds\":[\"x\"]}}}"),
        "");
}

static void unknown_members_are_counted_where_they_are_dropped(void **state)
{
    (void)state;
    assert_string_equal(losses_of("a2a-1.0", "a2a-0.3",
                                  "[" PLAIN_10 ",{\"messageId\":\"m\",\"role\":\"ROLE_USER\","
                                  "\"parts\":[{\"text\":\"a\",\"odd\":1}],\"odd\":2}]"),
                        "any /**2@1:125/1/parts/0/odd ");
    assert_string_equal(losses_of("openai-chat", "a2a-1.0",
                                  "[{\"role\":\"user\",\"content\":\"a\"},"
                                  "{\"role\":\"user\",\"content\":\"a\",\"odd\":1}]"),
                        "message /**1@1:67/1/odd ");
    assert_string_equal(losses_of("a2a-1.0", "a2a-1.0",
                                  "{\"messageId\":\"m\",\"role\":\"ROLE_USER\","
                                  "\"parts\":[{\"text\":\"a\"}],\"odd\":2}"),
                        "");
}

#define WORKING                                                                                    \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"               \
    "\"TASK_STATE_WORKING\"}}}\n"
#define INTERNAL(kind, more)                                                                       \
    "{\"kind\":\"internal:" kind "\",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\"" more \
    "}\n"

/* Those that become canonical events are not lost. */
static void internal_events_are_counted_where_they_are_dropped(void **state)
{
    static const char text[] = WORKING INTERNAL("llm-call", ",\"iteration\":1")
        INTERNAL("tool-start", ",\"toolName\":\"f\",\"toolCallId\":\"x\"");
    (void)state;
    assert_string_equal(losses_of("a2a-1.0", "a2a-1.0", text), "internal-event *2@2:1 ");
    assert_string_equal(losses_of("a2a-1.0", "a2a-0.3", text), "internal-event *2@2:1 ");
    assert_non_null(strstr(losses_of("a2a-1.0", "ag-ui", text), "internal-event *1@2:1 "));
}

/* Canonical events have AG-UI's names, and the position of the value that they came from. */
static void streams_are_counted_event_by_event(void **state)
{
    (void)state;
    assert_string_equal(
        losses_of("ag-ui", "ai-sdk",
                  "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n"
                  "{\"type\":\"STEP_STARTED\",\"stepName\":\"s\"}\n"
                  "{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}\n"
                  "{\"type\":\"ODD\"}\n"
                  "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"result\":1}\n"),
        "AG-UI events STEP_**2@2:1 events **1@4:1 AG-UI events RUN_FINISHED/result*1@5:1 ");
}

static void a_request_reports_its_settings(void **state)
{
    (void)state;
    assert_string_equal(losses_of("openai-chat", "ag-ui",
                                  "{\"model\":\"m\",\"temperature\":1,\"messages\":[{\"role\":"
                                  "\"user\",\"content\":\"a\"}]}"),
                        "any /model*1@1:10/model request /**2@1:10/model ");
}

/* Every condition with words has some, and every other has none. */
static void conditions_of_all_rows_are_complete(void **state)
{
    size_t n = dgm_format_count();
    (void)state;
    for (size_t i = 0; i < n * n; i++) {
        const dgm_loss *rows[256];
        size_t n_rows =
            dgm_format_losses(dgm_format_at(i / n)->id, dgm_format_at(i % n)->id, rows, 256);
        assert_true(n_rows <= 256);
        for (size_t k = 0; k < n_rows; k++)
            assert_int_equal(!rows[k]->words, rows[k]->when < DGM_LOSS_IS ||
                                                  rows[k]->when == DGM_LOSS_ALONE ||
                                                  rows[k]->when == DGM_LOSS_STREAMED);
    }
}

DGM_TEST_MAIN(dgm_test(nothing_is_counted_unless_requested),
              dgm_test(a_message_to_chat_reports_the_members_it_has),
              dgm_test(conversions_without_a_loss_report_none),
              dgm_test(envelopes_and_pieces_are_looked_into),
              dgm_test(objects_inside_objects_are_found),
              dgm_test(unknown_members_are_counted_where_they_are_dropped),
              dgm_test(internal_events_are_counted_where_they_are_dropped),
              dgm_test(streams_are_counted_event_by_event),
              dgm_test(a_request_reports_its_settings),
              dgm_test(conditions_of_all_rows_are_complete))
