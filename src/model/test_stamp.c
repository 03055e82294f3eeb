/* model/test_stamp.c - what the server writes on messages. */
#include "model/form.h"
#include "model/stamp.h"
#include "support/check.h"

#include "json/json.h"
#include <time.h>

static dgm_message read_message(dgm_arena *a, const char *text)
{
    dgm_message m = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    if (dgm_shape_read(&r, &dgm_form_message, dgm_json_parse_trusted(a, dgm_str_from(text)), NULL,
                       &m))
        fail_msg("%s at %s", err.msg, err.at);
    return m;
}

#define MESSAGE(role, part, rest)                                                                  \
    "{\"messageId\":\"m\",\"role\":\"ROLE_" role "\",\"parts\":[" part "]" rest "}"
#define TEXT "{\"text\":\"hi\"}"
#define CALLS "{\"data\":{\"tool_calls\":[{\"call_id\":\"c\",\"name\":\"f\"}]}}"
#define RESULTS "{\"data\":{\"tool_results\":[{\"call_id\":\"c\",\"output\":1}]}}"

static void the_type_follows_from_role_and_parts(void **state)
{
    static const struct {
        const char *text, *type;
    } rows[] = {
        {MESSAGE("USER", TEXT, ""), "TextMessageContentEvent"},
        {MESSAGE("AGENT", TEXT, ""), "TextMessageEndEvent"},
        {MESSAGE("AGENT", TEXT "," CALLS, ""), "ToolCallStartEvent"},
        {MESSAGE("USER", RESULTS "," TEXT, ""), "ToolCallResultEvent"},
        {MESSAGE("USER", CALLS, ""), "TextMessageContentEvent"},
        {MESSAGE("AGENT", "{\"data\":{\"tool_calls\":[]}}", ""), "TextMessageEndEvent"},
    };
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_message m = read_message(a, rows[i].text);
        assert_string_equal(dgm_message_canonical_type(&m), rows[i].type);
    }
}

static void a_stamp_goes_over_what_was_there(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_message m = read_message(a, MESSAGE("USER", TEXT, ""));
    dgm_message_stamp(a, &m);
    check_str(dgm_json_text_in(a, m.metadata), "{\"canonical_type\":\"TextMessageContentEvent\"}");
    m = read_message(a, MESSAGE("AGENT", TEXT,
                                ",\"metadata\":{\"a\":1.0,\"canonical_type\":{\"x\":1},\"b\":[]}"));
    dgm_message_stamp(a, &m);
    check_str(dgm_json_text_in(a, m.metadata),
              "{\"a\":1.0,\"b\":[],\"canonical_type\":\"TextMessageEndEvent\"}");
}

#define MARK(type) ",\"metadata\":{\"canonical_type\":\"" type "\"}"

static void what_belongs_to_the_conversation_follows_from_state_and_mark(void **state)
{
    static const struct {
        const char *text;
        dgm_status_content working,
            asked; /* submitted and unknown as working, all others as asked */
    } rows[] = {
        {MESSAGE("AGENT", TEXT, ""), DGM_STATUS_PASSING, DGM_STATUS_COMPLETE},
        {MESSAGE("AGENT", "{\"data\":{\"type\":\"table\"}}", ""), DGM_STATUS_PASSING,
         DGM_STATUS_COMPLETE},
        {MESSAGE("AGENT", TEXT, MARK("TextMessageContentEvent")), DGM_STATUS_PASSING,
         DGM_STATUS_COMPLETE},
        {MESSAGE("AGENT", TEXT, MARK("TextMessageEndEvent")), DGM_STATUS_COMPLETE,
         DGM_STATUS_COMPLETE},
        {MESSAGE("AGENT", TEXT, MARK("TextMessageChunkEvent")), DGM_STATUS_PASSING,
         DGM_STATUS_PASSING},
        {MESSAGE("AGENT", CALLS, MARK("ToolCallArgsEvent")), DGM_STATUS_PASSING,
         DGM_STATUS_PASSING},
        {MESSAGE("AGENT", TEXT "," CALLS, ""), DGM_STATUS_CALLS, DGM_STATUS_COMPLETE},
        {MESSAGE("AGENT", RESULTS, ""), DGM_STATUS_CALLS, DGM_STATUS_COMPLETE},
        {MESSAGE("USER", TEXT, ""), DGM_STATUS_COMPLETE, DGM_STATUS_COMPLETE},
    };
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_message m = read_message(a, rows[i].text);
        for (int s = DGM_STATE_UNKNOWN; s <= DGM_STATE_AUTH_REQUIRED; s++) {
            bool early =
                s == DGM_STATE_UNKNOWN || s == DGM_STATE_SUBMITTED || s == DGM_STATE_WORKING;
            assert_int_equal(dgm_status_content_of((dgm_task_state)s, &m),
                             early ? rows[i].working : rows[i].asked);
        }
    }
}

static void errors_are_added_to_existing_metadata(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    check_str(dgm_json_text_in(a, dgm_metadata_with_error(a, NULL, DGM_STR("a \"b\""))),
              "{\"error\":\"a \\\"b\\\"\"}");
    dgm_message m =
        read_message(a, MESSAGE("AGENT", TEXT, ",\"metadata\":{\"error\":1,\"x\":true}"));
    assert_int_equal(dgm_metadata_error(m.metadata).n, 0);
    const dgm_json *with = dgm_metadata_with_error(a, m.metadata, DGM_STR("why"));
    check_str(dgm_json_text_in(a, with), "{\"x\":true,\"error\":\"why\"}");
    check_str(dgm_metadata_error(with), "why");
    assert_int_equal(dgm_metadata_error(NULL).n, 0);
}

static void times_are_utc_with_milliseconds(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    check_str(dgm_time_text(a, 0), "1970-01-01T00:00:00.000Z");
    check_str(dgm_time_text(a, 1767323045678), "2026-01-02T03:04:05.678Z");
    check_str(dgm_time_text(a, -1), "1969-12-31T23:59:59.999Z");
    /* every day there is, as the C library has it */
    for (int64_t day = -25567; day < 109573; day++) { /* 1900 to 2269 */
        time_t seconds = (time_t)(day * 86400 + day % 86400 * (day % 86400 > 0));
        struct tm tm;
        char want[40];
        gmtime_r(&seconds, &tm);
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        dgm_arena_reset(a);
        check_str(dgm_time_text(a, (int64_t)seconds * 1000 + 7), want);
    }
}

DGM_TEST_MAIN(dgm_test_holds(the_type_follows_from_role_and_parts, "R000-03"),
              dgm_test_holds(a_stamp_goes_over_what_was_there, "R000-20"),
              dgm_test_holds(what_belongs_to_the_conversation_follows_from_state_and_mark,
                             "R001-08 R004-25"),
              dgm_test(errors_are_added_to_existing_metadata),
              dgm_test(times_are_utc_with_milliseconds))
