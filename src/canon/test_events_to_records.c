/*
 * test_events_to_records.c - canonical events as A2A's. Most tests convert A2A events to canonical events and
 * back: the result must be equal to the events that our own agents would send.
 */
#include "canon/events_to_messages.h"
#include "canon/events_to_records.h"
#include "canon/records_to_events.h"
#include "canon/test_stories.h"

/* ---- there and back ---------------------------------------------------------------------------------------- */

static dgm_code put_line(void *arg, const dgm_event *e)
{
    dgm_buf *b = arg;
    dgm_writer w = {.out = b, .format = DGM_FORMAT_A2A_10};
    dgm_form_write_event(&w, e);
    dgm_buf_add_char(b, '\n');
    return DGM_OK;
}

struct path {
    dgm_events_to_records *to;
    dgm_err err;
};

static dgm_code cross(void *arg, const dgm_canon_event *e)
{
    struct path *r = arg;
    return dgm_events_to_records_feed(r->to, e, &r->err);
}

static void check_back(dgm_records_params p, const char *lines, const char *want)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(&p);
    dgm_events_params params = {.now = 1767225600000};
    dgm_mint mint = {.count = 0};
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_auto(dgm_events_to_records_free) dgm_events_to_records *to =
        dgm_events_to_records_new(&params, put_line, &out);
    struct path path = {.to = to};
    dgm_canon_sink sink = {cross, &path};
    while (*lines) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        size_t n = strcspn(lines, "\n");
        dgm_event e;
        read_record(a, &mint, (dgm_str){lines, n}, &e);
        check_ok(dgm_records_to_events_feed(f, &e, sink, &path.err), path.err);
        lines += n + (lines[n] == '\n');
    }
    check_ok(dgm_records_to_events_end(f, sink, &path.err), path.err);
    check_ok(dgm_events_to_records_end(to, &path.err), path.err);
    check_str(out, want);
    dgm_buf_done(&out);
}

#define TIME ",\"timestamp\":\"2026-01-01T00:00:00Z\""
#define AT ",\"timestamp\":\"2026-01-01T00:00:00.000Z\""
#define STATUS(state, rest, meta)                                                                  \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"" rest AT "}" meta "}}\n"
#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"              \
    "SUBMITTED\"" AT "}}}\n"
#define SAYS(id, parts)                                                                            \
    ",\"message\":{\"messageId\":\"" id                                                            \
    "\",\"contextId\":\"c\",\"taskId\":\"t\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define ARTIFACT(id, parts, append, last)                                                          \
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"" id \
    "\",\"parts\":[" parts "]}" append last "}}\n"
#define APPEND ",\"append\":true"
#define LAST ",\"lastChunk\":true"
#define INTERNAL(kind, rest) "{\"kind\":\"internal:" kind "\",\"taskId\":\"t\"," rest AT "}\n"
#define MESSAGE(id, role, parts)                                                                   \
    "{\"message\":{\"messageId\":\"" id "\",\"role\":\"ROLE_" role "\",\"parts\":[" parts "]}}\n"
#define CALLS(calls) "{\"data\":{\"tool_calls\":[" calls "]}}"
#define CALL(id, args) "{\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":" args "}"

#define ALONE ((dgm_records_params){0})

static void a_streamed_answer(void **state)
{
    static const char story[] = TASK STATUS("WORKING", "", "") ARTIFACT("a", TEXT("Hel"), "", "")
        ARTIFACT("a", TEXT("lo"), APPEND, "") ARTIFACT("a", TEXT(""), APPEND, LAST)
            STATUS("COMPLETED", SAYS("t-m1", TEXT("Hello")), "");
    (void)state;
    check_back(ALONE, story, story);
    /* in one piece, and a Message for an answer */
    check_back(ALONE,
               TASK ARTIFACT("a", TEXT("Hello"), "", LAST)
                   STATUS("COMPLETED", "", ",\"metadata\":{\"k\":1}"),
               TASK STATUS("WORKING", "", "") ARTIFACT("a", TEXT("Hello"), "", LAST)
                   STATUS("COMPLETED", SAYS("t-m1", TEXT("Hello")), ",\"metadata\":{\"k\":1}"));
    check_back((dgm_records_params){.thread_id = DGM_STR("c"), .run_id = DGM_STR("t")},
               MESSAGE("m", "AGENT", TEXT("Hi")),
               TASK STATUS("WORKING", "", "") ARTIFACT("m", TEXT("Hi"), "", LAST)
                   STATUS("COMPLETED", SAYS("m", TEXT("Hi")), ""));
}

static void a_corrected_answer(void **state)
{
    (void)state;
    check_back(ALONE,
               TASK ARTIFACT("a", TEXT("Hi"), "", "")
                   STATUS("COMPLETED", SAYS("z", TEXT("Bye")), ""),
               TASK STATUS("WORKING", "", "") ARTIFACT("a", TEXT("Hi"), "", "")
                   ARTIFACT("a", TEXT("Bye"), "", "") ARTIFACT("a", TEXT(""), APPEND, LAST)
                       STATUS("COMPLETED", SAYS("t-m1", TEXT("Bye")), ""));
}

static void ends_of_all_kinds(void **state)
{
    (void)state;
    check_back(ALONE, TASK STATUS("CANCELED", "", ""), TASK STATUS("CANCELED", "", ""));
    check_back(ALONE, TASK STATUS("FAILED", "", ",\"metadata\":{\"error\":\"no\"}"),
               TASK STATUS("FAILED", "", ",\"metadata\":{\"error\":\"no\"}"));
    check_back(ALONE, TASK STATUS("AUTH_REQUIRED", "", ""), TASK STATUS("AUTH_REQUIRED", "", ""));
    check_back(
        ALONE, TASK,
        TASK STATUS("FAILED", "",
                    ",\"metadata\":{\"error\":\"The agent's stream ended before its task did\"}"));
}

static void internal_events(void **state)
{
    static const char story[] = TASK STATUS("WORKING", "", "") INTERNAL(
        "reasoning", "\"text\":\"Hm\"") INTERNAL("tool-start", "\"toolName\":\"f\",\"toolCallId\":"
                                                               "\"1\",\"arguments\":{\"q\":1.0}")
        INTERNAL("tool-complete", "\"toolCallId\":\"1\",\"success\":true,\"result\":{\"x\":[1]}")
            INTERNAL("tool-start",
                     "\"toolName\":\"f\",\"toolCallId\":\"2\",\"arguments\":\"{"
                     "\\\"q\\\":1}\"") INTERNAL("tool-complete",
                                                "\"toolCallId\":\"2\",\"success\":false,\"error\":"
                                                "\"no\"") INTERNAL("step", "\"name\":\"s\"")
                INTERNAL("step", "\"success\":true,\"name\":\"s\"") INTERNAL("state",
                                                                             "\"value\":{\"a\":1}")
                    INTERNAL("state", "\"name\":\"b\",\"value\":null") INTERNAL(
                        "custom",
                        "\"name\":\"x:y\",\"value\":[1]") "{\"artifactUpdate\":{\"taskId\":\"t\","
                                                          "\"contextId\":\"c\",\"artifact\":{"
                                                          "\"artifactId\":\"p\",\"name\":\"n\","
                                                          "\"parts\":[{\"raw\":\"aGk=\","
                                                          "\"mediaType\":\"image/"
                                                          "png\"}]},\"lastChunk\":true}}"
                                                          "\n" INTERNAL("usage",
                                                                        "\"value\":{\"model\":"
                                                                        "\"m\",\"inputTokens\":8}")
                                                              STATUS("COMPLETED", "", "");
    (void)state;
    check_back(ALONE, story, story);
}

static void messages_without_a_run(void **state)
{
    static const char story[] = MESSAGE("1", "USER", TEXT("Weather?")) MESSAGE(
        "2", "AGENT",
        TEXT("One moment.") "," CALLS(CALL("k", "{\"q\":1}") "," CALL("l", "\"{\\\"x\\\":2}\"")))
        MESSAGE("3", "AGENT", CALLS(CALL("n", "{}"))) MESSAGE("4", "AGENT", TEXT("Fine."));
    (void)state;
    check_back((dgm_records_params){.fragment = true}, story, story);
    /* files of the user */
    static const char files[] = MESSAGE(
        "1", "USER",
        TEXT("See") ",{\"raw\":\"aGk=\",\"filename\":\"a.png\",\"mediaType\":\"image/png\"}")
        MESSAGE("2", "USER", "{\"url\":\"https://e/x\",\"mediaType\":\"audio/wav\"}");
    check_back((dgm_records_params){.fragment = true}, files, files);
}

/* ---- what only others do ----------------------------------------------------------------------------------------- */

static void check_events(const dgm_canon_event *events, size_t n, const char *want)
{
    dgm_events_params params = {.now = 1767225600000};
    dgm_err err = {0};
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_auto(dgm_events_to_records_free) dgm_events_to_records *to =
        dgm_events_to_records_new(&params, put_line, &out);
    for (size_t i = 0; i < n; i++)
        check_ok(dgm_events_to_records_feed(to, &events[i], &err), err);
    check_ok(dgm_events_to_records_end(to, &err), err);
    check_str(out, want);
    dgm_buf_done(&out);
}

static void an_agent_that_only_sends_snapshots(void **state)
{
    dgm_canon_message asked = {.role = DGM_CANON_USER,
                               .id = DGM_STR("u"),
                               .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("?")}};
    dgm_canon_message all[] = {
        asked,
        {.role = DGM_CANON_ASSISTANT,
         .id = DGM_STR("x"),
         .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("Yes")}}};
    dgm_canon_input input = {.messages = {&asked, 1}};
    dgm_canon_event events[3] = {{.kind = DGM_CANON_RUN_STARTED},
                                 {.kind = DGM_CANON_MESSAGES_SNAPSHOT},
                                 {.kind = DGM_CANON_RUN_FINISHED}};
    (void)state;
    events[0].run_started.run_id = DGM_STR("t");
    events[0].run_started.thread_id = DGM_STR("c");
    events[0].run_started.input = &input;
    events[1].snapshot.messages = (dgm_canon_messages){all, 2};
    check_events(events, 3,
                 "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
                 "SUBMITTED\"" AT "},"
                 "\"history\":[{\"messageId\":\"u\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"?"
                 "\"}]}]}}\n" STATUS("WORKING", "", "") ARTIFACT("x", TEXT("Yes"), "", LAST)
                     STATUS("COMPLETED", SAYS("x", TEXT("Yes")), ""));
}

static void calls_that_wait_for_the_caller(void **state)
{
    dgm_str pending[] = {DGM_STR("k")};
    dgm_canon_event events[5] = {{.kind = DGM_CANON_RUN_STARTED},
                                 {.kind = DGM_CANON_TOOL_CALL_START},
                                 {.kind = DGM_CANON_TOOL_CALL_ARGS},
                                 {.kind = DGM_CANON_TOOL_CALL_END},
                                 {.kind = DGM_CANON_RUN_FINISHED}};
    (void)state;
    events[0].run_started.run_id = DGM_STR("t");
    events[0].run_started.thread_id = DGM_STR("c");
    for (int i = 1; i < 4; i++)
        events[i].call.tool_call_id = pending[0];
    events[1].call.name = DGM_STR("f");
    events[2].call.delta = DGM_STR("{\"a\": 1}");
    events[4].run_finished.outcome =
        (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = {pending, 1}};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = {.count = 0};
    dgm_str id = dgm_mint_id(&mint, a);
    dgm_buf want;
    dgm_buf_init(&want, SIZE_MAX);
    dgm_buf_printf(
        &want,
        TASK STATUS("WORKING", "", "") INTERNAL(
            "tool-start", "\"toolName\":\"f\",\"toolCallId\":\"k\",\"arguments\":{\"a\":1}")
            STATUS("INPUT_REQUIRED", SAYS("%.*s", CALLS(CALL("k", "{\"a\":1}"))), ""),
        DGM_P(id));
    dgm_buf_add_char(&want, 0);
    check_events(events, 5, want.p);
    dgm_buf_done(&want);
}

/* ---- random agents --------------------------------------------------------------------------------------------- */

struct sum {
    dgm_events_to_records *to; /* NULL: the last leg */
    dgm_canon_fold *fold;
    dgm_canon_kind end;
    dgm_canon_outcome_kind outcome;
    dgm_err err;
};

static dgm_code pass(void *arg, const dgm_canon_event *e)
{
    struct sum *s = arg;
    dgm_canon_fold_add(s->fold, e);
    if (dgm_canon_is_terminal(e->kind)) {
        s->end = e->kind;
        s->outcome = e->kind == DGM_CANON_RUN_FINISHED ? e->run_finished.outcome.kind
                                                       : DGM_CANON_OUTCOME_NONE;
    }
    return s->to ? dgm_events_to_records_feed(s->to, e, &s->err) : DGM_OK;
}

struct second {
    dgm_records_to_events *from;
    struct sum sum;
};

static dgm_code take(void *arg, const dgm_event *e)
{
    struct second *s = arg;
    return dgm_records_to_events_feed(s->from, e, (dgm_canon_sink){pass, &s->sum}, &s->sum.err);
}

static void dump_call(dgm_buf *b, const dgm_canon_message *m, dgm_str id)
{
    for (size_t k = 0; k < m->tool_calls.n; k++) {
        const dgm_canon_call *c = &m->tool_calls.at[k];
        if (dgm_str_eq(c->id, id))
            dgm_buf_printf(b, " %.*s=%.*s(%.*s)", DGM_P(id), DGM_P(c->name), DGM_P(c->arguments));
    }
    if (m->role == DGM_CANON_TOOL && dgm_str_eq(m->tool_call_id, id))
        dgm_buf_printf(b, " %.*s->%.*s", DGM_P(id), DGM_P(m->content.text));
}

/* The assistant's texts and calls, and the results. */
static void dump_said(dgm_buf *b, const dgm_canon_fold *f, dgm_arena *a)
{
    dgm_canon_messages list = dgm_canon_fold_messages(f, a);
    for (size_t i = 0; i < list.n; i++) {
        const dgm_canon_message *m = &list.at[i];
        if (m->role == DGM_CANON_ASSISTANT && m->content.text.n)
            dump_text(b, m->content.text);
    }
    /* by their ids: A2A does not have the message that a call belongs to */
    static const char ids[] = "123456789";
    for (size_t k = 0; k < sizeof ids - 1; k++) {
        for (size_t i = 0; i < list.n; i++)
            dump_call(b, &list.at[i], (dgm_str){ids + k, 1});
    }
}

/* To A2A and back: the texts, the calls and the end are the same. */
static void a_second_trip_says_the_same(void **state)
{
    (void)state;
    for (size_t story = 0; story < 5000; story++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_records_params p = {.whole_snapshots = true};
        dgm_events_params params = {.now = 0};
        struct second two = {.from = dgm_records_to_events_new(&p),
                             .sum = {.fold = dgm_canon_fold_new(SIZE_MAX / 2)}};
        struct sum one = {.to = dgm_events_to_records_new(&params, take, &two),
                          .fold = dgm_canon_fold_new(SIZE_MAX / 2)};
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
            dgm_records_to_events_new(&p);
        dgm_canon_sink sink = {pass, &one};
        dgm_event events[16];
        dgm_buf first, second;
        seed = story;
        size_t n = roll(16);
        tell_story(a, events, n);
        for (size_t i = 0; i < n; i++)
            check_ok(dgm_records_to_events_feed(from, &events[i], sink, &one.err), one.err);
        check_ok(dgm_records_to_events_end(from, sink, &one.err), one.err);
        check_ok(dgm_events_to_records_end(one.to, &one.err), one.err);
        dgm_buf_init(&first, SIZE_MAX);
        dgm_buf_init(&second, SIZE_MAX);
        dump_said(&first, one.fold, a);
        dump_said(&second, two.sum.fold, a);
        if (!dgm_str_eq(dgm_buf_str(&second), dgm_buf_str(&first)))
            print_error("story %zu\n", story);
        check_same(second, first);
        assert_int_equal(two.sum.end, one.end);
        assert_int_equal(two.sum.outcome, one.outcome);
        dgm_buf_done(&first);
        dgm_buf_done(&second);
        dgm_events_to_records_free(one.to);
        dgm_canon_fold_free(one.fold);
        dgm_canon_fold_free(two.sum.fold);
        dgm_records_to_events_free(two.from);
    }
}

DGM_TEST_MAIN(dgm_test(a_second_trip_says_the_same), dgm_test(a_streamed_answer),
              dgm_test(a_corrected_answer), dgm_test(ends_of_all_kinds), dgm_test(internal_events),
              dgm_test_holds(messages_without_a_run, "R000-21"),
              dgm_test(an_agent_that_only_sends_snapshots),
              dgm_test(calls_that_wait_for_the_caller))
