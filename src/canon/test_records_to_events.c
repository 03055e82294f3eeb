/* test_records_to_events.c - what agents do, as canonical events. */
#include "canon/records_to_events.h"
#include "canon/test_dump.h"

/* ---- records and the events they become --------------------------------------------------------------------- */

static dgm_code run(const dgm_records_params *p, const char *lines, struct dump *d, dgm_err *err)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(p);
    dgm_canon_sink sink = {dump_event, d};
    dgm_mint mint = {0};
    dgm_code rc;
    dgm_buf_init(&d->b, DGM_MAX_OUTPUT_BYTES);
    while (*lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        size_t n = strcspn(lines, "\n");
        dgm_event e;
        read_record(a, &mint, (dgm_str){lines, n}, &e);
        if ((rc = dgm_records_to_events_feed(f, &e, sink, err)))
            return rc;
        lines += n + (lines[n] == '\n');
    }
    return dgm_records_to_events_end(f, sink, err);
}

static void check_run(dgm_records_params p, const char *lines, const char *want)
{
    struct dump d;
    dgm_err err = {0};
    check_ok(run(&p, lines, &d, &err), err);
    check_str(d.b, want);
    dgm_buf_done(&d.b);
}

#define ALONE ((dgm_records_params){0})
#define BARE ((dgm_records_params){.fragment = true, .run_id = DGM_STR("r")})

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}" \
    "}\n"
#define STATUS(state, rest)                                                                        \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"" rest "}}}\n"
#define SAYS(id, parts, meta)                                                                      \
    ",\"message\":{\"messageId\":\"" id "\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]" meta "}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define TYPE(t) ",\"metadata\":{\"canonical_type\":\"" t "\"}"
#define ARTIFACT(id, parts, rest)                                                                  \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"" id \
    "\",\"parts\":[" parts "]}" rest "}}\n"
#define APPEND ",\"append\":true"
#define LAST ",\"lastChunk\":true"
#define INTERNAL(kind, rest)                                                                       \
    "{\"kind\":\"internal:" kind                                                                   \
    "\",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\"," rest "}\n"
#define MESSAGE(id, role, parts, meta)                                                             \
    "{\"message\":{\"messageId\":\"" id "\",\"role\":\"ROLE_" role "\",\"parts\":[" parts "]" meta \
    "}}\n"
#define DATA(d) "{\"data\":" d "}"
#define CALL(id, args)                                                                             \
    DATA("{\"tool_calls\":[{\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":" args "}]}")
#define RESULT(id, out)                                                                            \
    DATA("{\"tool_results\":[{\"call_id\":\"" id "\",\"name\":\"f\",\"output\":" out "}]}")

#define BEGUN "RUN_STARTED c t\n"
#define WORKS BEGUN "STEP_STARTED working\n"
#define DONE "STEP_FINISHED working\nRUN_FINISHED c t\n"
#define AS(id) " metadata={\"dragoman:artifact\":{\"artifactId\":\"" id "\"}}"
#define CORRECTED "MESSAGES_SNAPSHOT {assistant t-m1 \"Bye\"} changed=t-m1\n"

/* ---- text --------------------------------------------------------------------------------------------------- */

static void the_four_events_of_document_004(void **state)
{
    (void)state;
    /* without a mark, the texts are progress; with a mark, or by setting, they are the answer */
#define PLAIN                                                                                      \
    STATUS("WORKING", SAYS("a", TEXT("Hello"), "")) STATUS("WORKING", SAYS("b", TEXT(" world"), ""))
#define CHUNKS                                                                                     \
    STATUS("WORKING", SAYS("a", TEXT("Hello"), TYPE("TextMessageChunkEvent")))                     \
    STATUS("WORKING", SAYS("b", TEXT(" world"), TYPE("TextMessageChunkEvent")))
#define FINAL STATUS("COMPLETED", SAYS("z", TEXT("Hello world!"), ""))
#define ACTIVITY(t)                                                                                \
    "ACTIVITY_SNAPSHOT t-status a2a-status {\"type\":\"status-indicator\",\"text\":\"" t           \
    "\",\"displayAs\":\"loading\"}\n"
#define STREAMED                                                                                   \
    "TEXT_MESSAGE_START a\nTEXT_MESSAGE_CONTENT a \"Hello\"\nTEXT_MESSAGE_CONTENT a \" "           \
    "world\"\nTEXT_MESSAGE_CONTENT a \"!\"\nTEXT_MESSAGE_END a\n"
    check_run(
        ALONE, TASK STATUS("WORKING", "") PLAIN FINAL,
        WORKS ACTIVITY("Hello") ACTIVITY(
            " world") "TEXT_MESSAGE_START z\n"
                      "TEXT_MESSAGE_CONTENT z \"Hello world!\" whole\nTEXT_MESSAGE_END z\n" DONE);
    check_run(ALONE, TASK STATUS("WORKING", "") CHUNKS FINAL, WORKS STREAMED DONE);
    check_run((dgm_records_params){.answer_source = DGM_ANSWER_STATUS},
              TASK STATUS("WORKING", "") PLAIN FINAL, WORKS STREAMED DONE);
    check_run(ALONE,
              TASK STATUS("WORKING", SAYS("p", TEXT("Processing your greeting..."), ""))
                  CHUNKS FINAL,
              WORKS ACTIVITY("Processing your greeting...") STREAMED DONE);
}

static void the_faulty_stream_of_document_004(void **state)
{
    (void)state;
    check_run(ALONE,
              TASK STATUS("WORKING", SAYS("p", TEXT("Processing your greeting..."), ""))
                  STATUS("COMPLETED", SAYS("z", TEXT("Hello! 😊"), "")),
              WORKS ACTIVITY("Processing your greeting...") "TEXT_MESSAGE_START z\n"
                                                            "TEXT_MESSAGE_CONTENT z \"Hello! 😊\" "
                                                            "whole\nTEXT_MESSAGE_END z\n" DONE);
}

static void indicators_are_activities(void **state)
{
    (void)state;
#define IND "{\"type\":\"status-indicator\",\"text\":\"Wait\",\"displayAs\":\"loading\"}"
    check_run(ALONE, TASK STATUS("WORKING", SAYS("p", DATA(IND), "")) STATUS("COMPLETED", ""),
              WORKS "ACTIVITY_SNAPSHOT t-status a2a-status " IND "\n" DONE);
}

static void artifacts_stream(void **state)
{
    (void)state;
    /* END waits: the final text may go on */
    check_run(ALONE,
              TASK STATUS("WORKING", "") ARTIFACT("a", TEXT("Hel"), "")
                  ARTIFACT("a", TEXT("lo"), APPEND) ARTIFACT("a", "", APPEND LAST)
                      STATUS("COMPLETED", SAYS("z", TEXT("Hello!"), "")),
              WORKS "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hel\"\n"
                       "TEXT_MESSAGE_CONTENT t-m1 \"lo\"\nTEXT_MESSAGE_CONTENT t-m1 \"!\"\n"
                       "TEXT_MESSAGE_END t-m1\n" DONE);
    /* one after the other, and side by side */
    check_run(ALONE,
              TASK ARTIFACT("a", TEXT("1"), LAST) ARTIFACT("b", TEXT("2"), "")
                  ARTIFACT("d", TEXT("3"), "") ARTIFACT("b", TEXT("4"), APPEND LAST)
                      STATUS("COMPLETED", SAYS("z", TEXT("1\\n\\n24\\n\\n3"), "")),
              BEGUN "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"1\" whole\n"
                       "TEXT_MESSAGE_END t-m1\nTEXT_MESSAGE_START t-m2" AS(
                           "b") "\n"
                                "TEXT_MESSAGE_CONTENT t-m2 \"2\"\nTEXT_MESSAGE_START t-m3" AS(
                                    "d") "\n"
                                         "TEXT_MESSAGE_CONTENT t-m3 \"3\"\nTEXT_MESSAGE_CONTENT "
                                         "t-m2 \"4\"\n"
                                         "TEXT_MESSAGE_END t-m2\nTEXT_MESSAGE_END "
                                         "t-m3\nRUN_FINISHED c t\n");
}

static void a_text_that_turns_out_to_be_another(void **state)
{
    (void)state;
    static const char story[] =
        TASK ARTIFACT("a", TEXT("Hi"), "") STATUS("COMPLETED", SAYS("z", TEXT("Bye"), ""));
    check_run(ALONE, story,
              BEGUN
              "TEXT_MESSAGE_START t-m1" AS("a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hi\"\n" CORRECTED
                                                "TEXT_MESSAGE_END t-m1\nRUN_FINISHED c t\n");
    /* a reader who builds messages gets them all */
    dgm_canon_message before = {.role = DGM_CANON_USER,
                                .id = DGM_STR("u"),
                                .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("?")}};
    check_run((dgm_records_params){.whole_snapshots = true, .messages = {&before, 1}}, story,
              BEGUN "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hi\"\n"
                       "MESSAGES_SNAPSHOT {user u \"?\"} {assistant t-m1 \"Bye\"} changed=t-m1\n"
                       "TEXT_MESSAGE_END t-m1\nRUN_FINISHED c t\n");
    /* sent again: the rest is appended, or the text is replaced */
    check_run(ALONE,
              TASK ARTIFACT("a", TEXT("Hi"), "") ARTIFACT("a", TEXT("Hi!"), "")
                  ARTIFACT("a", TEXT("Bye"), "") STATUS("COMPLETED", ""),
              BEGUN "TEXT_MESSAGE_START t-m1" AS("a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hi\"\n"
                                                      "TEXT_MESSAGE_CONTENT t-m1 \"!\"\n" CORRECTED
                                                      "TEXT_MESSAGE_END t-m1\n"
                                                      "RUN_FINISHED c t\n");
}

static void parts_other_than_text_are_custom(void **state)
{
    (void)state;
    check_run(ALONE,
              TASK ARTIFACT("a", TEXT("See") "," DATA("{\"n\":1.0}"),
                            LAST) "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\","
                                  "\"status\":{\"state\":\"TASK_"
                                  "STATE_COMPLETED\"},\"metadata\":{\"k\":1}}}\n",
              BEGUN "ARTIFACT {\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"data\":{"
                    "\"n\":1.0}}]},\"lastChunk\":true,\"text\":true}\nTEXT_MESSAGE_START t-m1" AS(
                        "a") "\n"
                             "TEXT_MESSAGE_CONTENT t-m1 \"See\" whole\nTEXT_MESSAGE_END t-m1\n"
                             "CUSTOM dragoman:metadata {\"k\":1}\nRUN_FINISHED c t\n");
}

static void a_message_is_an_answer(void **state)
{
    (void)state;
    check_run((dgm_records_params){.thread_id = DGM_STR("T"), .run_id = DGM_STR("R")},
              MESSAGE("m", "AGENT", TEXT("Hel") "," TEXT("lo"), ""),
              "RUN_STARTED T R\nTEXT_MESSAGE_START m\nTEXT_MESSAGE_CONTENT m \"Hello\" whole\n"
              "TEXT_MESSAGE_END m\nRUN_FINISHED T R\n");
}

/* ---- how runs end -------------------------------------------------------------------------------------------- */

static void every_state_ends_as_it_should(void **state)
{
    (void)state;
    check_run(ALONE, TASK STATUS("CANCELED", ""), BEGUN "RUN_FINISHED c t cancelled\n");
    check_run(ALONE, TASK STATUS("REJECTED", SAYS("z", TEXT("No."), "")),
              BEGUN "RUN_ERROR rejected \"No.\"\n");
    check_run(ALONE, TASK STATUS("FAILED", ""), BEGUN "RUN_ERROR failed \"The task failed\"\n");
    check_run(
        ALONE,
        TASK
        "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"
        "STATE_FAILED\"" SAYS("z", TEXT("Sorry."), "") "},\"metadata\":{\"error\":\"timeout\"}}}\n",
        BEGUN "TEXT_MESSAGE_START z\n"
              "TEXT_MESSAGE_CONTENT z \"Sorry.\" whole\nTEXT_MESSAGE_END z\n"
              "RUN_ERROR failed \"timeout\"\n");
    check_run(ALONE, TASK STATUS("UNSPECIFIED", "") STATUS("COMPLETED", ""),
              BEGUN "RUN_FINISHED c t\n");
    check_run(ALONE, TASK STATUS("WORKING", "") ARTIFACT("a", TEXT("Hi"), ""),
              WORKS "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hi\"\n"
                       "TEXT_MESSAGE_END t-m1\nSTEP_FINISHED working\n"
                       "RUN_ERROR incomplete \"The agent's stream ended before its task did\"\n");
    /* nothing behind the end */
    check_run(ALONE, TASK STATUS("COMPLETED", "") ARTIFACT("a", TEXT("Hi"), "") TASK,
              BEGUN "RUN_FINISHED c t\n");
    /* a second working or submitted is ignored */
    check_run(ALONE,
              TASK STATUS("SUBMITTED", "") STATUS("WORKING", "") STATUS("WORKING", "")
                  STATUS("COMPLETED", ""),
              WORKS DONE);
}

/* A caller whose message reached a task at work reads from there on: the final text does not repeat the answer. */
static void a_turn_that_joins_a_task_at_work(void **state)
{
    dgm_records_params later = {.turn = 2};
    (void)state;
#define JOINED                                                                                     \
    "RUN_STARTED c t\nTEXT_MESSAGE_START t-m1" AS(                                                 \
        "a") "\n"                                                                                  \
             "TEXT_MESSAGE_CONTENT t-m1 \" world\" whole\nTEXT_MESSAGE_END t-m1\n"
    check_run(later,
              ARTIFACT("a", TEXT(" world"), APPEND LAST)
                  STATUS("COMPLETED", SAYS("z", TEXT("Hello world"), "")),
              JOINED "RUN_FINISHED c t\n");
    check_run(later,
              ARTIFACT("a", TEXT(" world"), APPEND LAST) ARTIFACT("b", TEXT("Bye"), LAST)
                  STATUS("COMPLETED", SAYS("z", TEXT("Hello world\\n\\nBye"), "")),
              JOINED "TEXT_MESSAGE_START t-m2" AS(
                  "b") "\n"
                       "TEXT_MESSAGE_CONTENT t-m2 \"Bye\" whole\nTEXT_MESSAGE_END t-m2\n"
                       "RUN_FINISHED c t\n");
}

static void a_question_behind_an_artifact(void **state)
{
    (void)state;
    check_run(ALONE,
              TASK ARTIFACT("a", TEXT("Hi"), LAST)
                  STATUS("INPUT_REQUIRED", SAYS("q", TEXT("Which city?"), "")),
              BEGUN "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\n"
                       "TEXT_MESSAGE_CONTENT t-m1 \"Hi\" whole\nTEXT_MESSAGE_END t-m1\n"
                       "TEXT_MESSAGE_START q\nTEXT_MESSAGE_CONTENT q \"Which city?\" whole\n"
                       "TEXT_MESSAGE_END q\n"
                       "RUN_FINISHED c t interrupt {t input_required \"Which city?\"}\n");
    /* the same Task, read from the store */
    check_run(ALONE,
              "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
              "INPUT_REQUIRED\"" SAYS("q", TEXT("Which city?"),
                                      "") "},"
                                          "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[" TEXT(
                                              "Hi") "]}]}}\n",
              BEGUN "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\n"
                       "TEXT_MESSAGE_CONTENT t-m1 \"Hi\" whole\nTEXT_MESSAGE_END t-m1\n"
                       "TEXT_MESSAGE_START q\nTEXT_MESSAGE_CONTENT q \"Which city?\" whole\n"
                       "TEXT_MESSAGE_END q\n"
                       "RUN_FINISHED c t interrupt {t input_required \"Which city?\"}\n");
}

static void questions_are_interrupts(void **state)
{
    (void)state;
    check_run(ALONE,
              TASK STATUS("WORKING", "")
                  STATUS("INPUT_REQUIRED", SAYS("q", TEXT("Which city?"), "")),
              WORKS "TEXT_MESSAGE_START q\nTEXT_MESSAGE_CONTENT q \"Which city?\" whole\n"
                    "TEXT_MESSAGE_END q\nSTEP_FINISHED working\n"
                    "RUN_FINISHED c t interrupt {t input_required \"Which city?\"}\n");
    check_run(ALONE, TASK STATUS("AUTH_REQUIRED", ""),
              BEGUN "RUN_FINISHED c t interrupt {t a2a:auth_required}\n");
    /* calls of the caller's own tools are no question */
    check_run(ALONE, TASK STATUS("INPUT_REQUIRED", SAYS("q", CALL("k", "{\"a\":1}"), "")),
              BEGUN "TOOL_CALL_START k f parent=q\nTOOL_CALL_ARGS k \"{\\\"a\\\": 1}\" whole\n"
                    "TOOL_CALL_END k\nRUN_FINISHED c t success pending=k\n");
}

static void files_of_the_user(void **state)
{
    static const char story[] =
        MESSAGE("u", "USER", TEXT("See") ",{\"url\":\"https://e/x.png\"}", "");
    (void)state;
    check_run(
        (dgm_records_params){.fragment = true, .whole_snapshots = true}, story,
        "TEXT_MESSAGE_START u user\nTEXT_MESSAGE_CONTENT u \"See\" whole\nTEXT_MESSAGE_END u\n"
        "MESSAGES_SNAPSHOT {user u 2 parts}\n");
    check_run(
        (dgm_records_params){.fragment = true}, story,
        "TEXT_MESSAGE_START u user\nTEXT_MESSAGE_CONTENT u \"See\" whole\nTEXT_MESSAGE_END u\n");
}

static void the_metadata_of_a_question(void **state)
{
    (void)state;
    check_run(ALONE,
              TASK STATUS("INPUT_REQUIRED",
                          SAYS("q", TEXT("?"),
                               ",\"metadata\":{\"canonical_type\":\"TextMessageEndEvent\","
                               "\"interruptId\":\"i\"}")),
              BEGUN
              "TEXT_MESSAGE_START q\nTEXT_MESSAGE_CONTENT q \"?\" whole\nTEXT_MESSAGE_END q\n"
              "RUN_FINISHED c t interrupt {t input_required \"?\" {\"interruptId\":\"i\"}}\n");
}

static void a_task_that_goes_on_is_another_run(void **state)
{
    (void)state;
    check_run((dgm_records_params){.many_turns = true, .say_history = true},
              TASK STATUS("INPUT_REQUIRED", "") MESSAGE("u", "USER", TEXT("Paris"), "")
                  STATUS("WORKING", "") STATUS("INPUT_REQUIRED", "") STATUS("COMPLETED", ""),
              BEGUN "RUN_FINISHED c t interrupt {t input_required}\nRUN_STARTED c t-2\n"
                    "TEXT_MESSAGE_START u user\nTEXT_MESSAGE_CONTENT u \"Paris\" whole\n"
                    "TEXT_MESSAGE_END u\nSTEP_STARTED working\nSTEP_FINISHED working\n"
                    "RUN_FINISHED c t-2 interrupt {t-2 input_required}\nRUN_STARTED c t-3\n"
                    "RUN_FINISHED c t-3\n");
}

/* A run that works has accepted a message, which is a turn of its own: the question is asked in that turn. */
static void a_question_is_named_after_its_turn(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
        dgm_records_to_events_new(&ALONE);
    struct dump d;
    dgm_canon_sink sink = {dump_event, &d};
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_event e;
    (void)state;
    dgm_buf_init(&d.b, DGM_MAX_OUTPUT_BYTES);
    read_record(a, &mint, DGM_STR(TASK), &e);
    check_ok(dgm_records_to_events_feed(f, &e, sink, &err), err);
    dgm_records_to_events_set_turn(f, 2);
    read_record(a, &mint, DGM_STR(STATUS("INPUT_REQUIRED", "")), &e);
    check_ok(dgm_records_to_events_feed(f, &e, sink, &err), err);
    check_str(d.b, BEGUN "RUN_FINISHED c t interrupt {t-2 input_required}\n");
    dgm_buf_done(&d.b);
}

/* ---- tools --------------------------------------------------------------------------------------------------- */

static void calls_of_one_model_call_share_a_parent(void **state)
{
    (void)state;
    check_run(
        ALONE,
        TASK INTERNAL("llm-call", "\"iteration\":1") ARTIFACT(
            "a", TEXT("Let me see."),
            LAST) INTERNAL("tool-start",
                           "\"toolName\":\"f\",\"toolCallId\":\"1\",\"arguments\":{\"q\":[1,2]}")
            INTERNAL("tool-complete", "\"toolCallId\":\"1\",\"success\":true,\"result\":{\"x\":1}")
                INTERNAL("tool-start", "\"toolName\":\"g\",\"toolCallId\":\"2\"") INTERNAL(
                    "tool-complete", "\"toolCallId\":\"2\",\"success\":false,\"error\":\"no\"")
                    INTERNAL("llm-call", "\"iteration\":2") INTERNAL(
                        "tool-start",
                        "\"toolName\":\"f\",\"toolCallId\":\"3\",\"arguments\":\"{\\\"q\\\":3}\"")
                        STATUS("COMPLETED", ""),
        BEGUN "TEXT_MESSAGE_START t-m1" AS(
            "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Let me see.\" whole\n"
                 "TEXT_MESSAGE_END t-m1\nTOOL_CALL_START 1 f parent=t-m1\n"
                 "TOOL_CALL_ARGS 1 \"{\\\"q\\\": [1, 2]}\" whole\nTOOL_CALL_END 1\n"
                 "TOOL_CALL_RESULT t-r2 1 \"{\\\"x\\\": 1}\"\nTOOL_CALL_START 2 g parent=t-m1\n"
                 "TOOL_CALL_ARGS 2 \"{}\" whole\nTOOL_CALL_END 2\n"
                 "TOOL_CALL_RESULT t-r3 2 \"no\" metadata={\"dragoman:error\":true}\n"
                 "TOOL_CALL_START 3 f parent=t-m4\nTOOL_CALL_ARGS 3 \"{\\\"q\\\":3}\" whole\n"
                 "TOOL_CALL_END 3\nRUN_FINISHED c t\n");
    /* without word of model calls: behind a result begins another */
    check_run(
        ALONE,
        TASK INTERNAL("tool-start", "\"toolName\":\"f\",\"toolCallId\":\"1\"")
            INTERNAL("tool-start", "\"toolName\":\"f\",\"toolCallId\":\"2\"")
                INTERNAL("tool-complete", "\"toolCallId\":\"1\",\"success\":true,\"result\":\"a\"")
                    INTERNAL("tool-complete",
                             "\"toolCallId\":\"1\",\"success\":true,\"result\":\"again\"")
                        INTERNAL("tool-start", "\"toolName\":\"f\",\"toolCallId\":\"3\"")
                            STATUS("COMPLETED", ""),
        BEGUN "TOOL_CALL_START 1 f parent=t-m1\nTOOL_CALL_ARGS 1 \"{}\" whole\nTOOL_CALL_END 1\n"
              "TOOL_CALL_START 2 f parent=t-m1\nTOOL_CALL_ARGS 2 \"{}\" whole\nTOOL_CALL_END 2\n"
              "TOOL_CALL_RESULT t-r2 1 \"a\"\nTOOL_CALL_START 3 f parent=t-m3\n"
              "TOOL_CALL_ARGS 3 \"{}\" whole\nTOOL_CALL_END 3\nRUN_FINISHED c t\n");
}

static void arguments_come_in_pieces(void **state)
{
    (void)state;
#define ARGS(id, call, args) MESSAGE(id, "AGENT", CALL(call, args), TYPE("ToolCallArgsEvent"))
    /* text: as it comes; two calls at once */
    check_run(BARE,
              ARGS("a", "1", "\"{\\\"q\"") ARGS("a", "2", "\"{\"") ARGS("b", "1", "\"\\\":1}\"")
                  MESSAGE("d", "AGENT", CALL("1", "{\"q\":1}"), "")
                      MESSAGE("e", "AGENT", CALL("2", "\"{}\""), ""),
              "TOOL_CALL_START 1 f parent=a\nTOOL_CALL_ARGS 1 \"{\\\"q\"\n"
              "TOOL_CALL_START 2 f parent=a\nTOOL_CALL_ARGS 2 \"{\"\nTOOL_CALL_ARGS 1 \"\\\":1}\"\n"
              "TOOL_CALL_END 1\nTOOL_CALL_ARGS 2 \"}\"\nTOOL_CALL_END 2\n");
    /* objects: merged by key, the final one's win; also when it never comes */
    check_run(BARE,
              ARGS("a", "1", "{\"x\":1,\"y\":1}") ARGS("b", "1", "{\"y\":2}")
                  MESSAGE("d", "AGENT", CALL("1", "{\"z\":[3],\"x\":\"é\"}"), ""),
              "TOOL_CALL_START 1 f parent=a\nTOOL_CALL_ARGS 1 +{\"x\":1,\"y\":1}\n"
              "TOOL_CALL_ARGS 1 +{\"y\":2}\n"
              "TOOL_CALL_ARGS 1 \"{\\\"x\\\": \\\"é\\\", \\\"y\\\": 2, \\\"z\\\": [3]}\" whole\n"
              "TOOL_CALL_END 1\n");
    check_run(BARE, ARGS("a", "1", "{\"x\":1}"),
              "TOOL_CALL_START 1 f parent=a\nTOOL_CALL_ARGS 1 +{\"x\":1}\n"
              "TOOL_CALL_ARGS 1 \"{\\\"x\\\": 1}\" whole\nTOOL_CALL_END 1\n");
}

static void messages_of_a_history(void **state)
{
    (void)state;
    check_run(
        BARE,
        MESSAGE("1", "USER", TEXT("Weather?"), "") MESSAGE(
            "2", "AGENT", TEXT("One moment.") "," CALL("k", "{\"q\":1}") "," CALL("l", "{}"), "")
            MESSAGE("3", "USER",
                    RESULT("k", "\"Sunny, 72°F\"") "," RESULT("l", "{\"t\":72}") "," TEXT("And?"),
                    "") MESSAGE("4", "AGENT", CALL("n", "{}"), "")
                MESSAGE("5", "AGENT", TEXT("Fine."), ""),
        "TEXT_MESSAGE_START 1 user\nTEXT_MESSAGE_CONTENT 1 \"Weather?\" whole\nTEXT_MESSAGE_END 1\n"
        "TEXT_MESSAGE_START 2\nTEXT_MESSAGE_CONTENT 2 \"One moment.\" whole\nTEXT_MESSAGE_END 2\n"
        "TOOL_CALL_START k f parent=2\nTOOL_CALL_ARGS k \"{\\\"q\\\": 1}\" whole\nTOOL_CALL_END k\n"
        "TOOL_CALL_START l f parent=2\nTOOL_CALL_ARGS l \"{}\" whole\nTOOL_CALL_END l\n"
        "TOOL_CALL_RESULT r-r1 k \"Sunny, 72°F\"\nTOOL_CALL_RESULT r-r2 l \"{\\\"t\\\": 72}\"\n"
        "TEXT_MESSAGE_START 3 user\nTEXT_MESSAGE_CONTENT 3 \"And?\" whole\nTEXT_MESSAGE_END 3\n"
        "TOOL_CALL_START n f parent=4\nTOOL_CALL_ARGS n \"{}\" whole\nTOOL_CALL_END n\n"
        "TEXT_MESSAGE_START 5\nTEXT_MESSAGE_CONTENT 5 \"Fine.\" whole\nTEXT_MESSAGE_END 5\n");
}

/* In words that a Chat client would write; other data of a user is JSON text. */
static void decisions_of_the_caller(void **state)
{
#define DECIDES(id, rest) MESSAGE(id, "USER", DATA("{\"type\":\"approval\"," rest "}"), "")
#define SHOWN(id, text)                                                                            \
    "TEXT_MESSAGE_START " id " user\nTEXT_MESSAGE_CONTENT " id " \"" text                          \
    "\" whole\nTEXT_MESSAGE_END " id "\n"
    (void)state;
    check_run(BARE,
              DECIDES("1", "\"id\":\"k\",\"approved\":true")
                  DECIDES("2", "\"approved\":false,\"reason\":\"not today\"")
                      DECIDES("3", "\"approved\":true,\"arguments\":{\"n\":2}")
                          DECIDES("4", "\"approved\":1")
                              MESSAGE("5", "USER", DATA("{\"approved\":true}"), ""),
              SHOWN("1", "yes") SHOWN("2", "no: not today") SHOWN("3", "yes, with {\\\"n\\\":2}")
                  SHOWN("4", "{\\\"type\\\": \\\"approval\\\", \\\"approved\\\": 1}")
                      SHOWN("5", "{\\\"approved\\\": true}"));
#undef DECIDES
#undef SHOWN
}

static void a_whole_task_says_everything_once(void **state)
{
    (void)state;
    check_run((dgm_records_params){.say_history = true},
              "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
              "COMPLETED\"" SAYS("z", TEXT("Hello"),
                                 "") "},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":"
                                     "[" TEXT("Hello") "]}],"
                                                       "\"history\":[{\"messageId\":\"u\","
                                                       "\"role\":\"ROLE_USER\",\"parts\":"
                                                       "[" TEXT("Hi") "]},"
                                                                      "{\"messageId\":\"y\","
                                                                      "\"role\":\"ROLE_AGENT\","
                                                                      "\"parts\":[" TEXT(
                                                                          "Hello") "]}]}}\n",
              BEGUN
              "TEXT_MESSAGE_START u user\nTEXT_MESSAGE_CONTENT u \"Hi\" whole\nTEXT_MESSAGE_END u\n"
              "TEXT_MESSAGE_START y\nTEXT_MESSAGE_CONTENT y \"Hello\" whole\nTEXT_MESSAGE_END y\n"
              "RUN_FINISHED c t\n");
    check_run(ALONE,
              "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
              "COMPLETED\"" SAYS(
                  "z", TEXT("Hello!"),
                  "") "},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[" TEXT("Hello") "]}]}}\n",
              BEGUN "TEXT_MESSAGE_START t-m1" AS(
                  "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"Hello\" whole\n"
                       "TEXT_MESSAGE_END t-m1\nTEXT_MESSAGE_START t-m1" AS(
                           "a") "\nTEXT_MESSAGE_CONTENT t-m1 \"!\"\n"
                                "TEXT_MESSAGE_END t-m1\nRUN_FINISHED c t\n");
}

/* ---- beside the answer ------------------------------------------------------------------------------------------ */

static void reasoning_state_steps_usage_custom(void **state)
{
    (void)state;
    check_run(
        ALONE,
        TASK INTERNAL("reasoning", "\"text\":\"Hm\"") INTERNAL(
            "reasoning", "\"text\":\", yes\"") ARTIFACT("a", TEXT("Yes"), LAST)
            INTERNAL("step", "\"name\":\"s\"") INTERNAL("step", "\"name\":\"s\"") INTERNAL(
                "state", "\"value\":{\"n\":1}") INTERNAL("state", "\"name\":\"a/b\",\"value\":null")
                INTERNAL("step", "\"name\":\"s\",\"success\":true") INTERNAL(
                    "usage", "\"value\":{\"model\":\"m\",\"prompt_tokens\":5,\"completion_tokens\":"
                             "2,\"completion_tokens_details\":{\"reasoning_tokens\":1}}")
                    INTERNAL("usage", "\"value\":{\"model\":\"m\",\"inputTokens\":3}")
                        INTERNAL("custom", "\"name\":\"x:y\",\"value\":[1]")
                            INTERNAL("checkpoint", "\"iteration\":1") STATUS("COMPLETED", ""),
        BEGUN
        "REASONING_START t-t1\nREASONING_MESSAGE_START t-t1\nREASONING_MESSAGE_CONTENT t-t1 "
        "\"Hm\"\n"
        "REASONING_MESSAGE_CONTENT t-t1 \", yes\"\nREASONING_MESSAGE_END t-t1\nREASONING_END t-t1\n"
        "TEXT_MESSAGE_START t-m2" AS(
            "a") "\nTEXT_MESSAGE_CONTENT t-m2 \"Yes\" whole\nTEXT_MESSAGE_END t-m2\n"
                 "STEP_STARTED s\nSTATE_SNAPSHOT {\"n\":1}\n"
                 "STATE_DELTA [{\"op\":\"add\",\"path\":\"/a~1b\",\"value\":null}]\nSTEP_FINISHED "
                 "s\n"
                 "CUSTOM x:y [1]\nRUN_FINISHED c t model=m in=8 out=2 reasoning=1\n");
}

/* events_to_records.c stores a patch that is more than one member as a custom record. */
static void a_patch_of_the_state_is_a_delta_again(void **state)
{
#define PATCH(value) INTERNAL("custom", "\"name\":\"ag-ui:state-delta\",\"value\":" value)
    (void)state;
    check_run(ALONE,
              TASK PATCH("[{\"op\":\"replace\",\"path\":\"/a/0\",\"value\":1}]")
                  PATCH("[{\"op\":\"remove\",\"path\":\"\"}]") PATCH("[{\"path\":\"/a\"}]")
                      PATCH("[{\"op\":\"remove\",\"path\":\"a\"}]") PATCH("{\"op\":\"add\"}")
                          STATUS("COMPLETED", ""),
              BEGUN "STATE_DELTA [{\"op\":\"replace\",\"path\":\"/a/0\",\"value\":1}]\n"
                    "STATE_DELTA [{\"op\":\"remove\",\"path\":\"\"}]\n"
                    "CUSTOM ag-ui:state-delta [{\"path\":\"/a\"}]\n"
                    "CUSTOM ag-ui:state-delta [{\"op\":\"remove\",\"path\":\"a\"}]\n"
                    "CUSTOM ag-ui:state-delta {\"op\":\"add\"}\nRUN_FINISHED c t\n");
#undef PATCH
}

static void the_last_status_reports_the_usage(void **state)
{
#define COST                                                                                       \
    "{\"usage\":{\"input_tokens\":3,\"output_tokens\":2,\"output_tokens_details\":{\"reasoning_"   \
    "tokens\":1}}}"
#define ENDS(state)                                                                                \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"},\"metadata\":" COST "}}\n"
    (void)state;
    check_run(ALONE, TASK ENDS("COMPLETED"),
              BEGUN "CUSTOM dragoman:metadata " COST "\nRUN_FINISHED c t in=3 out=2 reasoning=1\n");
    check_run(ALONE, /* reported already: not a second time */
              TASK INTERNAL("usage", "\"value\":{\"inputTokens\":8}") ENDS("COMPLETED"),
              BEGUN "CUSTOM dragoman:metadata " COST "\nRUN_FINISHED c t in=8\n");
}

static void agents_that_are_invoked_are_subagents(void **state)
{
    (void)state;
#define AGENT                                                                                      \
    "{\"type\":\"status-indicator\",\"text\":\"Asking\",\"agent\":{\"name\":\"w\",\"url\":\"u\"}}"
    check_run(ALONE,
              TASK STATUS("WORKING", SAYS("1", DATA(AGENT), ""))
                  STATUS("WORKING", SAYS("2", DATA(AGENT), ""))
                      STATUS("WORKING", SAYS("3", DATA(AGENT), "")) STATUS("COMPLETED", ""),
              WORKS "SUBAGENT_STARTED w by=t-s1\nACTIVITY_SNAPSHOT t-status a2a-status " AGENT "\n"
                    "SUBAGENT_FINISHED by=t-s1\nACTIVITY_SNAPSHOT t-status a2a-status " AGENT "\n"
                    "SUBAGENT_STARTED w by=t-s2\nACTIVITY_SNAPSHOT t-status a2a-status " AGENT "\n"
                    "STEP_FINISHED working\nSUBAGENT_FINISHED by=t-s2\nRUN_FINISHED c t\n");
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void malformed_calls_are_named(void **state)
{
    struct dump d;
    dgm_err err = {0};
    dgm_records_params p = ALONE;
    (void)state;
    check_fails(
        run(&p,
            TASK STATUS(
                "COMPLETED",
                SAYS("z", TEXT("x") "," DATA("{\"tool_calls\":[{\"call_id\":\"k\"}]}"), "")),
            &d, &err),
        DGM_BAD_PARAMS, err, "/statusUpdate/status/message/parts/1/data/tool_calls/0/name");
    dgm_buf_done(&d.b);
}

static void items_keep_to_their_limit(void **state)
{
    struct dump d;
    dgm_err err = {0};
    dgm_records_params p = ALONE;
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    for (int i = 0; i <= DGM_MAX_OPEN_ITEMS; i++)
        dgm_buf_printf(&b, INTERNAL("step", "\"name\":\"s%d\""), i);
    dgm_buf_add_lit(&b, STATUS("COMPLETED", ""));
    dgm_buf_add_char(&b, 0);
    check_ok(run(&p, b.p, &d, &err), err);
    dgm_buf_add_char(&d.b, 0);
    assert_non_null(strstr(d.b.p, "STEP_FINISHED s999\n"));
    assert_null(strstr(d.b.p, " s1000\n"));
    dgm_buf_done(&d.b);
    dgm_buf_done(&b);
}

/* An artifact of so many times a mebibyte. */
static void put_long_text(dgm_buf *b, int mebibytes)
{
    for (int i = 0; i < mebibytes; i++) {
        dgm_buf_add_lit(b,
                        "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"append\":true,"
                        "\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"");
        for (int k = 0; k < 1 << 14; k++)
            dgm_buf_add_lit(b, "0123456789012345678901234567890123456789012345678901234567890123");
        dgm_buf_add_lit(b, "\"}]}}}\n");
    }
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* Past the limit a corrected text is a message of its own. */
static void a_snapshot_too_large_is_not_sent(void **state)
{
    struct dump d;
    dgm_err err = {0};
    dgm_records_params p = {.whole_snapshots = true};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, TASK);
    put_long_text(&b, 9);
    dgm_buf_add_lit(&b, STATUS("COMPLETED", SAYS("z", TEXT("Bye"), "")));
    dgm_buf_add_char(&b, 0);
    check_ok(run(&p, b.p, &d, &err), err);
    dgm_buf_add_char(&d.b, 0);
    assert_int_equal(count(d.b.p, "MESSAGES_SNAPSHOT"), 0);
    assert_non_null(strstr(d.b.p, "TEXT_MESSAGE_END t-m1\nTEXT_MESSAGE_START t-m2"));
    assert_non_null(strstr(d.b.p, "TEXT_MESSAGE_CONTENT t-m2 \"Bye\"\n"));
    dgm_buf_done(&d.b);
    dgm_buf_done(&b);
}

/* And so it is when there were too many of them. */
static void snapshots_without_end_come_to_one(void **state)
{
    struct dump d;
    dgm_err err = {0};
    dgm_records_params p = {.whole_snapshots = true};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, TASK);
    put_long_text(&b, 6);
    for (int i = 0; i < 20; i++)
        dgm_buf_add_lit(&b, ARTIFACT("b", TEXT("Yes"), "") ARTIFACT("b", TEXT("No"), ""));
    dgm_buf_add_lit(&b, STATUS("COMPLETED", SAYS("z", TEXT("No"), "")));
    dgm_buf_add_char(&b, 0);
    check_ok(run(&p, b.p, &d, &err), err);
    dgm_buf_add_char(&d.b, 0);
    assert_in_range(count(d.b.p, "MESSAGES_SNAPSHOT"), 1, 5);
    dgm_buf_done(&d.b);
    dgm_buf_done(&b);
}

DGM_TEST_MAIN(
    dgm_test_holds(the_four_events_of_document_004, "R004-03 R004-04 R004-10"),
    dgm_test_holds(the_faulty_stream_of_document_004, "R004-05 R004-08"),
    dgm_test_holds(indicators_are_activities, "R004-08"),
    dgm_test_holds(artifacts_stream, "R004-04"), dgm_test(a_text_that_turns_out_to_be_another),
    dgm_test(parts_other_than_text_are_custom), dgm_test(a_message_is_an_answer),
    dgm_test_holds(every_state_ends_as_it_should, "R000-16 R000-18 R000-19 R000-23"),
    dgm_test(a_turn_that_joins_a_task_at_work), dgm_test(a_question_behind_an_artifact),
    dgm_test_holds(questions_are_interrupts, "R000-15"), dgm_test(the_metadata_of_a_question),
    dgm_test(a_question_is_named_after_its_turn), dgm_test(files_of_the_user),
    dgm_test_holds(a_task_that_goes_on_is_another_run, "R000-01"),
    dgm_test_holds(calls_of_one_model_call_share_a_parent, "R000-28"),
    dgm_test_holds(arguments_come_in_pieces, "R000-27 R000-36"),
    dgm_test_holds(messages_of_a_history, "R000-21 R000-22 R000-28 R000-29"),
    dgm_test(decisions_of_the_caller), dgm_test(a_whole_task_says_everything_once),
    dgm_test(reasoning_state_steps_usage_custom), dgm_test(a_patch_of_the_state_is_a_delta_again),
    dgm_test(the_last_status_reports_the_usage), dgm_test(agents_that_are_invoked_are_subagents),
    dgm_test(malformed_calls_are_named), dgm_test(items_keep_to_their_limit),
    dgm_test(a_snapshot_too_large_is_not_sent), dgm_test(snapshots_without_end_come_to_one))
