/* test_responses_simple.c - document 000's last column: its examples, its rows, random agents there and back. */
#define _GNU_SOURCE /* memmem */
#include "canon/records_to_events.h"
#include "canon/test_stories.h"
#include "wire/responses/responses_int.h"

static const dgm_codec *const codec = &dgm_codec_responses_simple;

struct road {
    void *encoder;
    dgm_buf out;
    dgm_err err;
};

static dgm_code put_line(void *arg, dgm_str name, dgm_str payload)
{
    struct road *r = arg;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    dgm_form form;
    check_ok(dgm_json_read(a, payload, SIZE_MAX, "", &v, &r->err), r->err);
    assert_true(dgm_str_eq(dgm_json_str_member(v, "event"), name));
    assert_int_equal(codec->recognise(v, &form), 2);
    assert_int_equal(form, DGM_FORM_EVENTS);
    dgm_buf_add_str(&r->out, payload);
    dgm_buf_add_char(&r->out, '\n');
    return DGM_OK;
}

static dgm_code encode(void *arg, const dgm_canon_event *e)
{
    struct road *r = arg;
    return codec->encoder_feed(r->encoder, e, &r->err);
}

static void open_road(struct road *r)
{
    dgm_stream_params p = {0};
    *r = (struct road){.encoder = codec->encoder_new(&p, (dgm_frame_sink){put_line, r})};
    dgm_buf_init(&r->out, SIZE_MAX);
}

static void close_road(struct road *r)
{
    check_ok(codec->encoder_end(r->encoder, &r->err), r->err);
    codec->encoder_free(r->encoder);
}

/* A2A's events, one per line. */
static void check_records(const char *lines, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_records_params params = {.fragment = true, .say_history = true};
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&params);
    dgm_mint mint = {0};
    struct road road;
    open_road(&road);
    dgm_canon_sink sink = {encode, &road};
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        dgm_event e;
        read_record(a, &mint, (dgm_str){lines, n}, &e);
        check_ok(dgm_records_to_events_feed(from, &e, sink, &road.err), road.err);
        lines += n + (lines[n] == '\n');
    }
    check_ok(dgm_records_to_events_end(from, sink, &road.err), road.err);
    close_road(&road);
    check_str(road.out, want);
    dgm_buf_done(&road.out);
}

/* The dialect through canonical events. */
static dgm_str again(dgm_arena *a, dgm_str lines, bool fragment, size_t *unknown)
{
    dgm_stream_params p = {.fragment = fragment};
    void *decoder = codec->decoder_new(&p);
    struct road road;
    open_road(&road);
    dgm_canon_sink sink = {encode, &road};
    while (lines.n) {
        dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
        dgm_reader r = {.arena = scratch, .err = &road.err};
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t n = end ? (size_t)(end - lines.p) : lines.n;
        yyjson_val *v;
        check_ok(dgm_json_read(scratch, (dgm_str){lines.p, n}, SIZE_MAX, "", &v, &road.err),
                 road.err);
        check_ok(codec->decoder_feed(decoder, &r, v, sink), road.err);
        *unknown += r.n_unknown;
        lines.p += n + (end != NULL);
        lines.n -= n + (end != NULL);
    }
    check_ok(codec->decoder_end(decoder, sink, &road.err), road.err);
    codec->decoder_free(decoder);
    close_road(&road);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&road.out));
    dgm_buf_done(&road.out);
    return text;
}

static void check_again(const char *lines, bool fragment, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t unknown = 0;
    dgm_str got = again(a, dgm_str_from(lines), fragment, &unknown);
    check_str(got, want);
}

#define EVENT(name, data) "{\"event\":\"" name "\",\"data\":{" data "}}\n"
#define RUN(name, state, rest)                                                                     \
    EVENT(name, "\"task_id\":\"t\",\"context_id\":\"c\",\"state\":\"" state "\"" rest)

/* Exactly as the document has them, but for blanks. */
#define USER EVENT("message.delta", "\"role\":\"user\",\"content\":\"What's the weather?\"")
#define CALL                                                                                       \
    EVENT("message.delta",                                                                         \
          "\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_abc123\",\"type\":\"function\","  \
          "\"function\":{"                                                                         \
          "\"name\":\"get_weather\",\"arguments\":\"{\\\"location\\\": \\\"Oakland\\\"}\"}}]")
#define RESULT                                                                                     \
    EVENT("message.delta",                                                                         \
          "\"role\":\"tool\",\"tool_call_id\":\"call_abc123\",\"content\":\"Sunny, 72\xc2\xb0"     \
          "F\"")

static void the_documents_three_examples(void **state)
{
    (void)state;
    check_records("{\"message\":{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"What's the "
                  "weather?\"}],\"metadata\":{"
                  "\"canonical_type\":\"TextMessageContentEvent\"}}}\n",
                  USER);
    check_records(
        "{\"message\":{\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_calls\":[{\"call_id\":"
        "\"call_abc123\",\"name\":\"get_weather\",\"arguments\":{\"location\":\"Oakland\"}}]}}],"
        "\"metadata\":{"
        "\"canonical_type\":\"ToolCallStartEvent\"}}}\n",
        CALL);
    check_records(
        "{\"message\":{\"role\":\"ROLE_USER\",\"parts\":[{\"data\":{\"tool_results\":[{\"call_id\":"
        "\"call_abc123\",\"name\":\"get_weather\",\"output\":\"Sunny, 72\xc2\xb0"
        "F\"}]}}],\"metadata\":{\"canonical_type\":\"ToolCallResultEvent\"}}}\n",
        RESULT);
    check_again(USER CALL RESULT, true, USER CALL RESULT);
}

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}" \
    "}\n"
#define STATUS(state, rest)                                                                        \
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"        \
    "STATE_" state "\"}" rest "}}\n"
#define STARTED RUN("run.started", "submitted", "")
#define WORKING RUN("run.step.started", "working", "")

static void every_row_of_the_table(void **state)
{
#define CHUNK(t)                                                                                   \
    EVENT("message.delta", "\"role\":\"assistant\",\"content\":\"" t "\",\"message_id\":\"m\"")
#define DONE(t)                                                                                    \
    EVENT("message.done", "\"role\":\"assistant\",\"content\":\"" t "\",\"message_id\":\"m\"")
#define SAYS(t, type)                                                                              \
    "{\"message\":{\"messageId\":\"m\",\"taskId\":\"t\",\"role\":\"ROLE_AGENT\",\"parts\":[{"      \
    "\"text\":\"" t "\"}],\"metadata\":{\"canonical_type\":\"" type "\"}}}\n"
    (void)state;
    check_records(TASK STATUS("SUBMITTED", ""), STARTED);
    check_records(TASK STATUS("WORKING", ""), STARTED WORKING);
    check_records(TASK SAYS("Hel", "TextMessageChunkEvent") SAYS("Hello", "TextMessageEndEvent"),
                  STARTED CHUNK("Hel") CHUNK("lo") DONE("Hello"));
    check_records(TASK STATUS("INPUT_REQUIRED", ""),
                  STARTED RUN("run.step.done", "input-required", ""));
    check_records(TASK STATUS("COMPLETED", ""), STARTED RUN("run.done", "completed", ""));
#define ERROR(code, state, message)                                                                \
    RUN("run.error", state, ",\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}")
    check_records(TASK STATUS("FAILED", ",\"metadata\":{\"error\":\"no luck\"}"),
                  STARTED ERROR("failed", "failed", "no luck"));
    check_records(TASK STATUS("CANCELED", ""),
                  STARTED ERROR("canceled", "canceled", "The task was canceled"));
    check_records(TASK STATUS("REJECTED", ""),
                  STARTED ERROR("rejected", "rejected", "The task was rejected"));
    check_again(
        STARTED WORKING CHUNK("Hel") CHUNK("lo") DONE("Hello") RUN("run.done", "completed", ""),
        false,
        STARTED WORKING CHUNK("Hel") CHUNK("lo") DONE("Hello") RUN("run.done", "completed", ""));
    check_again(STARTED ERROR("failed", "failed", "x"), false,
                STARTED ERROR("failed", "failed", "x"));
}

static void fragments_of_calls_have_an_index(void **state)
{
#define TOOLS(calls) EVENT("message.delta", "\"role\":\"assistant\",\"tool_calls\":[" calls "]")
#define CALLED(index, args)                                                                        \
    "{" index                                                                                      \
    "\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":" args "}}"
    (void)state;
    /* texts by order, objects by key */
    check_again(TOOLS(CALLED("\"index\":0,", "\"{\\\"a\\\": \""))
                    TOOLS(CALLED("\"index\":0,", "\"1}\"")) TOOLS(CALLED("", "\"{\\\"a\\\": 1}\"")),
                true,
                TOOLS(CALLED("\"index\":0,", "\"{\\\"a\\\": \""))
                    TOOLS(CALLED("\"index\":0,", "\"1}\""))
                        TOOLS(CALLED("", "\"{\\\"a\\\": 1}\"")));
    check_again(
        TOOLS(CALLED("\"index\":0,", "{\"a\":1}")) TOOLS(CALLED("\"index\":0,", "{\"b\":2}"))
            TOOLS(CALLED("", "\"{\\\"a\\\": 1, \\\"b\\\": 2}\"")),
        true,
        TOOLS(CALLED("\"index\":0,", "{\"a\":1}")) TOOLS(CALLED("\"index\":0,", "{\"b\":2}"))
            TOOLS(CALLED("", "\"{\\\"a\\\": 1, \\\"b\\\": 2}\"")));
}

static void others_write_it_in_other_ways(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t unknown = 0;
    (void)state;
    dgm_str got = again(
        a,
        DGM_STR(STARTED EVENT("nobody.knows", "") RUN("run.step.done", "working", ",\"name\":\"s\"")
                    EVENT("run.error", "\"content\":\"no\",\"code\":\"rejected\"")),
        false, &unknown);
    check_str(got, STARTED RUN("run.error", "rejected",
                               ",\"error\":{\"code\":\"rejected\",\"message\":\"no\"}"));
    assert_int_equal(unknown, 1);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *in, *at;
    } bad[] = {
        {"[]", ""},
        {"{}", "/event"},
        {"{\"event\":\"message.delta\",\"data\":{\"role\":\"tool\"}}", "/data/tool_call_id"},
        {"{\"event\":\"message.delta\",\"data\":{\"tool_calls\":[{}]}}", "/data/tool_calls/0"},
        {"{\"event\":\"message.delta\",\"data\":{\"content\":1}}", "/data/content"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_stream_params p = {0};
        struct road road;
        dgm_reader r = {.arena = a, .err = &road.err};
        void *d = codec->decoder_new(&p);
        yyjson_val *v;
        open_road(&road);
        check_ok(dgm_json_read(a, dgm_str_from(bad[i].in), 1000, "", &v, &road.err), road.err);
        check_fails(codec->decoder_feed(d, &r, v, (dgm_canon_sink){encode, &road}), DGM_BAD_PARAMS,
                    road.err, bad[i].at);
        codec->decoder_free(d);
        close_road(&road);
        dgm_buf_done(&road.out);
    }
}

/* The lines that are no text: texts that were taken back are one message when they are read again. Neither do
 * calls keep to the id of their message, and steps are sent once. */
static dgm_str without_texts(dgm_arena *a, dgm_str lines)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    while (lines.n) {
        const char *end = memchr(lines.p, '\n', lines.n);
        dgm_str line = {lines.p, (size_t)(end + 1 - lines.p)};
        const char *calls = memmem(line.p, line.n, "tool_call", 9);
        const char *id = memmem(line.p, line.n, ",\"message_id\"", 13);
        bool step = memmem(line.p, line.n, "\"working\"", 9) != NULL;
        if (calls || (dgm_str_starts(line, DGM_STR("{\"event\":\"run.")) && !step))
            dgm_buf_add(&b, line.p, id ? (size_t)(id - line.p) : line.n - 3);
        lines = (dgm_str){lines.p + line.n, lines.n - line.n};
    }
    dgm_str kept = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return kept;
}

static void random_agents_there_and_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_records_params params = {0};
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
            dgm_records_to_events_new(&params);
        dgm_event events[20];
        struct road road;
        size_t unknown = 0;
        seed = i;
        size_t n = 1 + roll(20);
        tell_story(a, events, n);
        open_road(&road);
        dgm_canon_sink sink = {encode, &road};
        for (size_t k = 0; k < n; k++)
            check_ok(dgm_records_to_events_feed(from, &events[k], sink, &road.err), road.err);
        check_ok(dgm_records_to_events_end(from, sink, &road.err), road.err);
        close_road(&road);
        dgm_str once = again(a, dgm_buf_str(&road.out), false, &unknown);
        dgm_str got = without_texts(a, once), want = without_texts(a, dgm_buf_str(&road.out));
        check_same(got, want);
        assert_int_equal(unknown, 0);
        dgm_buf_done(&road.out);
    }
}

DGM_TEST_MAIN(dgm_test_holds(the_documents_three_examples, "R000-24 R000-25 R000-26"),
              dgm_test_holds(every_row_of_the_table, "R000-15 R000-16 R000-17 R000-18"),
              dgm_test(fragments_of_calls_have_an_index), dgm_test(others_write_it_in_other_ways),
              dgm_test(nonsense_is_refused), dgm_test(random_agents_there_and_back))
