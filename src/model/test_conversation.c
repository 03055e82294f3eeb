/* model/test_conversation.c - the messages of a context, from its Tasks. */
#include "base/buf.h"
#include "model/conversation.h"
#include "model/record.h"
#include "support/check.h"
#include "json/json.h"

#define USER(id, text)                                                                             \
    "{\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]}"
#define AGENT(id, text)                                                                            \
    "{\"messageId\":\"" id "\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"" text "\"}]}"
#define CALL(id)                                                                                   \
    "{\"messageId\":\"m-" id                                                                       \
    "\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"wait\"},{\"data\":{"                        \
    "\"tool_calls\":[{\"call_id\":\"" id "\",\"name\":\"f\"}]}}]}"
#define RESULT(id)                                                                                 \
    "{\"messageId\":\"r-" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"data\":{\"tool_results\":[{" \
    "\"call_id\":\"" id "\",\"output\":\"1\"}]}}]}"
#define STATUS(state, message) "\"status\":{\"state\":\"TASK_STATE_" state "\"" message "}"
#define SAYS(message) ",\"message\":" message
#define TASK(status, history, more)                                                                \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\"," status ",\"history\":[" history "]" more "}}"
#define ARTIFACT(parts) ",\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[" parts "]}]"

struct row {
    const char *about;
    const char *tasks[4]; /* the newest first */
    const char *
        want; /* u: the user, a: the agent, + a part that is not text, c calls, r results; then a bar */
    size_t messages, bytes; /* 0: many */
    bool no_tools;
    const char *until; /* in the newest */
    const char *next;  /* the message that follows */
};

static void print(dgm_buf *b, const dgm_message *m)
{
    dgm_buf_add_char(b, m->role == DGM_ROLE_USER ? 'u' : 'a');
    dgm_buf_add_char(b, ':');
    for (size_t i = 0; i < m->parts.n; i++) {
        const dgm_part *p = &m->parts.at[i];
        if (p->kind == DGM_PART_TEXT)
            dgm_buf_add_str(b, p->content);
        else if (p->kind == DGM_PART_DATA && dgm_json_get(p->data, DGM_STR("tool_calls")))
            dgm_buf_add_char(b, 'c');
        else if (p->kind == DGM_PART_DATA && dgm_json_get(p->data, DGM_STR("tool_results")))
            dgm_buf_add_char(b, 'r');
        else
            dgm_buf_add_char(b, '+');
    }
    dgm_buf_add_char(b, '|');
}

static const struct row rows[] = {
    {"text of the status",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("2", "Hello"))), USER("1", "hi"), "")},
     "u:hi|a:Hello|"},
    {"the artifact that the status repeats is there once",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("2", "Hello"))), USER("1", "hi"),
           ARTIFACT("{\"text\":\"Hello\"}"))},
     "u:hi|a:Hello|"},
    {"text of the artifact alone",
     {TASK(STATUS("COMPLETED", ""), USER("1", "hi"), ARTIFACT("{\"text\":\"Hello\"}"))},
     "u:hi|a:Hello|"},
    {"files and data beside the text",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("2", "Here"))), USER("1", "hi"),
           ARTIFACT("{\"text\":\"Here\"},{\"raw\":\"aGk=\"},{\"data\":{\"x\":1}}"))},
     "u:hi|a:Here++|"},
    {"the status repeats messages of the history",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("3", "Hello"))), USER("1", "hi") "," AGENT("2", "Hello"),
           "")},
     "u:hi|a:Hello|"},
    {"the newest Task is last",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("4", "d"))), USER("3", "c"), ""),
      TASK(STATUS("COMPLETED", SAYS(AGENT("2", "b"))), USER("1", "a"), "")},
     "u:a|a:b|u:c|a:d|"},
    {"a question, before its answer",
     {TASK(STATUS("INPUT_REQUIRED", SAYS(AGENT("2", "which?"))), USER("1", "a"), "")},
     "u:a|a:which?|"},
    {"up to a message",
     {TASK(STATUS("WORKING", ""), USER("1", "a") "," AGENT("2", "which?") "," USER("3", "that"),
           ARTIFACT("{\"text\":\"half\"}")),
      TASK(STATUS("COMPLETED", SAYS(AGENT("5", "d"))), USER("4", "c"), "")},
     "u:c|a:d|u:a|a:which?|",
     .until = "3"},
    {"chunks and progress are left out",
     {TASK(STATUS("WORKING", SAYS(AGENT("2", "thinking"))), USER("1", "a"),
           ARTIFACT("{\"text\":\"half\"}"))},
     "u:a|"},
    {"the reason of a failure is left out, the text before it is not",
     {TASK(STATUS("FAILED", SAYS(AGENT("2", "broken"))), USER("1", "a"),
           ARTIFACT("{\"text\":\"half\"}"))},
     "u:a|a:half|"},
    {"a rejection is an answer",
     {TASK(STATUS("REJECTED", SAYS(AGENT("2", "no"))), USER("1", "a"), "")},
     "u:a|a:no|"},
    {"messages is a limit",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("4", "d"))), USER("3", "c"), ""),
      TASK(STATUS("COMPLETED", SAYS(AGENT("2", "b"))), USER("1", "a"), "")},
     "a:b|u:c|a:d|",
     .messages = 3},
    {"bytes is a limit",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("4", "d"))), USER("3", "c"), ""),
      TASK(STATUS("COMPLETED", SAYS(AGENT("2", "b"))), USER("1", "a"), "")},
     "u:c|a:d|",
     .bytes = sizeof USER("1", "a") + sizeof AGENT("2", "b") + 20},
    {"a message that does not fit ends it",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("2", "b"))), USER("1", "a long long long text"), "")},
     "a:b|",
     .bytes = 2 * (sizeof AGENT("2", "b") - 1)},
    {"a call and its result",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("3", "done"))),
           USER("1", "a") "," CALL("x") "," RESULT("x"), "")},
     "u:a|a:waitc|u:r|a:done|"},
    {"no tools",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("3", "done"))),
           USER("1", "a") "," CALL("x") "," RESULT("x"), "")},
     "u:a|a:wait|a:done|",
     .no_tools = true},
    {"a result whose call does not fit goes too",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("3", "done"))),
           USER("1", "a") "," CALL("x") "," RESULT("x"), "")},
     "a:done|",
     .messages = 2},
    {"a call without a result",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("3", "done"))), USER("1", "a") "," CALL("x"), "")},
     "u:a|a:wait|a:done|"},
    {"a call whose result is the next message",
     {TASK(STATUS("INPUT_REQUIRED", SAYS(CALL("x"))), USER("1", "a"), "")},
     "u:a|a:waitc|",
     .next = RESULT("x")},
    {"of two calls one has a result",
     {TASK(
         STATUS("COMPLETED", ""),
         USER("1", "a") ",{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{"
                        "\"tool_calls\":[{\"call_id\":\"x\"},{\"call_id\":\"y\"}]}}]}," RESULT("y"),
         "")},
     "u:a|a:c|u:r|"},
    {"a transcript is the history, and nothing is older",
     {TASK(STATUS("COMPLETED", SAYS(AGENT("9", "z"))),
           "{\"messageId\":\"8\",\"role\":\"ROLE_USER\",\"parts\":[{\"data\":{\"messages\":[" USER(
               "6", "x") "," AGENT("7", "y") "]},\"metadata\":{\"dragoman:part\":\"transcript\"}},"
                                             "{\"text\":\"now\"}]}",
           ""),
      TASK(STATUS("COMPLETED", SAYS(AGENT("2", "b"))), USER("1", "a"), "")},
     "u:x|a:y|u:now|a:z|"},
};

static void messages_of_a_context(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_record *records[5] = {0};
        dgm_conversation c;
        dgm_buf b;
        dgm_event e;
        dgm_err err = {0};
        dgm_record_head head = {.seq = 1, .kind = DGM_EVENT_TASK};
        dgm_conversation_init(&c, a,
                              (dgm_history_limits){r->messages ? r->messages : 100,
                                                   r->bytes ? r->bytes : 100000, !r->no_tools});
        for (size_t k = 0; k < 4 && r->tasks[k]; k++) {
            dgm_code rc = dgm_record_from_bytes(head, dgm_str_from(r->tasks[k]), &records[k], &err);
            check_ok(rc, err);
            check_ok(dgm_record_event(records[k], a, &e, &err), err);
            dgm_conversation_add_task(&c, e.task,
                                      k || !r->until ? (dgm_str){0} : dgm_str_from(r->until));
        }
        dgm_message *next = NULL;
        if (r->next) {
            dgm_str text = dgm_arena_printf(a, "{\"message\":%s}", r->next);
            head.kind = DGM_EVENT_MESSAGE;
            check_ok(dgm_record_from_bytes(head, text, &records[4], &err), err);
            check_ok(dgm_record_event(records[4], a, &e, &err), err);
            next = e.message;
        }
        dgm_buf_init(&b, 10000);
        dgm_messages all = dgm_conversation_end(&c, next);
        for (size_t k = 0; k < 5; k++) /* the messages are copies */
            dgm_record_unref(records[k]);
        for (size_t k = 0; k < all.n; k++)
            print(&b, &all.at[k]);
        if (!dgm_str_eq(dgm_buf_str(&b), dgm_str_from(r->want))) {
            print_error("%s: \"%.*s\", not \"%s\"\n", r->about, DGM_P(dgm_buf_str(&b)), r->want);
            fail();
        }
        dgm_buf_done(&b);
    }
}

static void a_transcript_is_read_as_it_was_written(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part hi = {.kind = DGM_PART_TEXT, .content = DGM_STR("hi")},
             hello = {.kind = DGM_PART_TEXT, .content = DGM_STR("hello")}, parts[2];
    dgm_message said[] = {
        {.message_id = DGM_STR("1"), .role = DGM_ROLE_USER, .parts = {&hi, 1}},
        {.message_id = DGM_STR("2"), .role = DGM_ROLE_AGENT, .parts = {&hello, 1}}};
    dgm_conversation c;
    parts[0] = dgm_transcript_part(a, (dgm_messages){said, 2});
    parts[1] = hi;
    dgm_message m = {.message_id = DGM_STR("3"), .role = DGM_ROLE_USER, .parts = {parts, 2}};
    assert_true(dgm_message_has_transcript(&m));
    assert_false(dgm_message_has_transcript(&said[0]));
    dgm_conversation_init(&c, a, (dgm_history_limits){10, 10000, true});
    dgm_conversation_add_transcript(&c, &m);
    dgm_messages all = dgm_conversation_end(&c, &m);
    assert_int_equal(all.n, 2);
    check_str(all.at[0].message_id, "1");
    check_str(all.at[1].parts.at[0].content, "hello");
    assert_true(c.is_full);
}

DGM_TEST_MAIN(dgm_test(messages_of_a_context), dgm_test(a_transcript_is_read_as_it_was_written))
