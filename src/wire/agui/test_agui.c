/* test_agui.c - every event of AG-UI: read tolerantly, written strictly, nothing unknown lost. */
#include "base/limits.h"
#include "support/check.h"
#include "wire/agui/agui.h"

struct row {
    const char *name, *in, *out; /* out NULL: the same; "": nothing is written */
};

static dgm_code read_text(dgm_arena *a, const char *text, dgm_canon_event *ret,
                          dgm_agui_found *ret_found, dgm_err *err)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_AG_UI, .err = err};
    yyjson_val *v;
    dgm_code rc;
    if ((rc = dgm_json_read(a, dgm_str_from(text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err)))
        return rc;
    return dgm_agui_read_event(&r, v, NULL, ret, ret_found);
}

static void check_written(const char *in, const char *want, dgm_agui_peer peer)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_event e = {0};
    dgm_agui_found found = DGM_AGUI_UNKNOWN;
    dgm_err err = {0};
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    check_ok(read_text(a, in, &e, &found, &err), err);
    assert_int_equal(found, DGM_AGUI_EVENT);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_AG_UI};
    dgm_agui_write_event(&w, &e, peer, a);
    check_str(b, want);
    dgm_buf_done(&b);
}

/* ---- what is read is written back ------------------------------------------------------------------ */

#define EV(type, rest) "{\"type\":\"" type "\"," rest "}"
#define ALL                                                                                        \
    ",\"subagentRunId\":\"s\",\"timestamp\":1700000000123,\"rawEvent\":{\"a\":[1.0,null]},"        \
    "\"metadata\":{\"k\":null}"
#define USAGE                                                                                      \
    "\"usage\":[{\"provider\":\"openai\",\"model\":\"m\",\"inputTokens\":9007199254740992,"        \
    "\"outputTokens\":0,\"totalTokens\":3,\"reasoningTokens\":1,\"cachedInputTokens\":2,"          \
    "\"cacheWriteInputTokens\":0}]"
#define MEDIA(type, source)                                                                        \
    "{\"type\":\"" type "\",\"source\":{" source "},\"id\":\"p\",\"metadata\":\"x\"}"

/* clang-format off */
static const struct row rows[] = {
    {"RUN_STARTED", EV("RUN_STARTED", "\"threadId\":\"t\",\"runId\":\"r\""), NULL},
    {"RUN_STARTED with everything",
     EV("RUN_STARTED", "\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\",\"parentRunId\":\"p\","
        "\"input\":{\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\",\"parentRunId\":\"p\",\"state\":[1],"
        "\"messages\":[{\"id\":\"u\",\"role\":\"user\",\"content\":\"hi\"}],"
        "\"tools\":[{\"name\":\"f\",\"description\":\"\",\"parameters\":{\"type\":\"object\"},\"metadata\":{}}],"
        "\"context\":[{\"description\":\"d\",\"value\":\"v\"}],\"forwardedProps\":{\"x\":1e400},"
        "\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\",\"payload\":false,\"metadata\":{}},"
        "{\"interruptId\":\"j\",\"status\":\"cancelled\"}]},\"timestamp\":1"), NULL},
    {"RUN_FINISHED", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\""), NULL},
    {"RUN_FINISHED with success",
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"result\":0,"
        "\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c\"]}," USAGE), NULL},
    {"RUN_FINISHED with an interrupt",
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":["
        "{\"id\":\"i\",\"reason\":\"input_required\",\"message\":\"?\",\"toolCallId\":\"c\",\"responseSchema\":{},"
        "\"expiresAt\":\"2026-01-01T00:00:00Z\",\"metadata\":{},\"subagentRunId\":\"s\"}]}"), NULL},
    {"RUN_FINISHED cancelled",
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"cancelled\"}"), NULL},
    {"RUN_ERROR", EV("RUN_ERROR", "\"message\":\"no\",\"code\":\"failed\"," USAGE), NULL},
    {"STEP_STARTED", EV("STEP_STARTED", "\"stepName\":\"working\"" ALL), NULL},
    {"STEP_FINISHED", EV("STEP_FINISHED", "\"stepName\":\"working\"" ALL), NULL},
    {"TEXT_MESSAGE_START", EV("TEXT_MESSAGE_START", "\"messageId\":\"m\",\"role\":\"user\",\"name\":\"n\"" ALL), NULL},
    {"TEXT_MESSAGE_START without a role", EV("TEXT_MESSAGE_START", "\"messageId\":\"m\""), NULL},
    {"TEXT_MESSAGE_CONTENT", EV("TEXT_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"\\u0000\\n\\\" 😀\"" ALL), NULL},
    {"TEXT_MESSAGE_CONTENT that is empty", EV("TEXT_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"\""), ""},
    {"TEXT_MESSAGE_END", EV("TEXT_MESSAGE_END", "\"messageId\":\"m\"" ALL), NULL},
    {"TEXT_MESSAGE_CHUNK", EV("TEXT_MESSAGE_CHUNK", "\"messageId\":\"m\",\"role\":\"assistant\",\"delta\":\"d\",\"name\":\"n\"" ALL), NULL},
    {"TOOL_CALL_START", EV("TOOL_CALL_START", "\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":\"m\"" ALL), NULL},
    {"TOOL_CALL_ARGS", EV("TOOL_CALL_ARGS", "\"toolCallId\":\"c\",\"delta\":\"{\\\"q\\\":\"" ALL), NULL},
    {"TOOL_CALL_ARGS that is empty", EV("TOOL_CALL_ARGS", "\"toolCallId\":\"c\",\"delta\":\"\""), ""},
    {"TOOL_CALL_END", EV("TOOL_CALL_END", "\"toolCallId\":\"c\"" ALL), NULL},
    {"TOOL_CALL_CHUNK", EV("TOOL_CALL_CHUNK", "\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":\"m\",\"delta\":\"d\"" ALL), NULL},
    {"TOOL_CALL_RESULT", EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":\"4\",\"role\":\"tool\"" ALL), NULL},
    {"TOOL_CALL_RESULT of parts",
     EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":["
        "{\"type\":\"text\",\"text\":\"\",\"id\":\"p\",\"metadata\":[1]},"
        MEDIA("image", "\"type\":\"data\",\"value\":\"aGk=\",\"mimeType\":\"image/png\"") ","
        MEDIA("audio", "\"type\":\"url\",\"value\":\"https://e/x\"") ","
        MEDIA("video", "\"type\":\"url\",\"value\":\"https://e/x\",\"mimeType\":\"video/mp4\"") ","
        MEDIA("document", "\"type\":\"file\",\"value\":\"f-1\",\"mimeType\":\"a/b\",\"provider\":\"openai\"") "]"), NULL},
    {"STATE_SNAPSHOT", EV("STATE_SNAPSHOT", "\"snapshot\":{\"n\":12345678901234567890}" ALL), NULL},
    {"STATE_SNAPSHOT of null", EV("STATE_SNAPSHOT", "\"snapshot\":null"), NULL},
    {"STATE_DELTA", EV("STATE_DELTA", "\"delta\":[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":null},{\"op\":\"remove\",\"path\":\"\"}]" ALL), NULL},
    {"MESSAGES_SNAPSHOT",
     EV("MESSAGES_SNAPSHOT", "\"messages\":["
        "{\"id\":\"1\",\"role\":\"developer\",\"name\":\"n\",\"content\":\"x\"},"
        "{\"id\":\"2\",\"role\":\"system\",\"content\":\"\"},"
        "{\"id\":\"3\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"encryptedValue\":\"e\",\"subagentRunId\":\"s\",\"metadata\":{}},"
        "{\"id\":\"4\",\"role\":\"assistant\",\"toolCalls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"},\"encryptedValue\":\"e\",\"metadata\":{}}]},"
        "{\"id\":\"5\",\"role\":\"tool\",\"content\":\"4\",\"toolCallId\":\"c\",\"error\":\"no\"},"
        "{\"id\":\"6\",\"role\":\"reasoning\",\"content\":\"hm\"},"
        "{\"id\":\"7\",\"role\":\"activity\",\"activityType\":\"a\",\"content\":{\"x\":1}}]"), NULL},
    {"ACTIVITY_SNAPSHOT", EV("ACTIVITY_SNAPSHOT", "\"messageId\":\"m\",\"activityType\":\"a\",\"content\":{},\"replace\":false" ALL), NULL},
    {"ACTIVITY_DELTA", EV("ACTIVITY_DELTA", "\"messageId\":\"m\",\"activityType\":\"a\",\"patch\":[]" ALL), NULL},
    {"REASONING_START", EV("REASONING_START", "\"messageId\":\"m\"" ALL), NULL},
    {"REASONING_MESSAGE_START", EV("REASONING_MESSAGE_START", "\"messageId\":\"m\",\"role\":\"reasoning\"" ALL), NULL},
    {"REASONING_MESSAGE_CONTENT", EV("REASONING_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"d\"" ALL), NULL},
    {"REASONING_MESSAGE_CONTENT that is empty", EV("REASONING_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"\""), ""},
    {"REASONING_MESSAGE_END", EV("REASONING_MESSAGE_END", "\"messageId\":\"m\"" ALL), NULL},
    {"REASONING_MESSAGE_CHUNK", EV("REASONING_MESSAGE_CHUNK", "\"messageId\":\"m\",\"delta\":\"d\"" ALL), NULL},
    {"REASONING_END", EV("REASONING_END", "\"messageId\":\"m\"" ALL), NULL},
    {"REASONING_ENCRYPTED_VALUE", EV("REASONING_ENCRYPTED_VALUE", "\"subtype\":\"tool-call\",\"entityId\":\"c\",\"encryptedValue\":\"x\"" ALL), NULL},
    {"SUBAGENT_STARTED",
     EV("SUBAGENT_STARTED", "\"subagentRunId\":\"s\",\"name\":\"n\",\"description\":\"d\",\"parentSubagentRunId\":\"p\",\"parentToolCallId\":\"c\",\"parentMessageId\":\"m\""), NULL},
    {"SUBAGENT_FINISHED",
     EV("SUBAGENT_FINISHED", "\"subagentRunId\":\"s\",\"result\":\"\",\"outcome\":{\"type\":\"suspended\",\"interruptIds\":[\"i\"]}"), NULL},
    {"SUBAGENT_ERROR", EV("SUBAGENT_ERROR", "\"subagentRunId\":\"s\",\"message\":\"no\",\"code\":\"x\""), NULL},
    {"RAW", EV("RAW", "\"event\":{\"x\":-0},\"source\":\"openai\"" ALL), NULL},
    {"RAW null", EV("RAW", "\"event\":null"), NULL},
    {"CUSTOM", EV("CUSTOM", "\"name\":\"dragoman:x\",\"value\":[]" ALL), NULL},
    {"CUSTOM null", EV("CUSTOM", "\"name\":\"dragoman:x\",\"value\":null"), NULL},
    {"CUSTOM of an artifact",
     EV("CUSTOM", "\"name\":\"dragoman:artifact\",\"value\":{\"x\":1,\"append\":true,"
        "\"artifact\":{\"artifactId\":\"a\",\"later\":2,\"parts\":[{\"data\":1.0}]}}" ALL), NULL},

    /* tolerance */
    {"members nobody knows", EV("RUN_ERROR", "\"message\":\"no\",\"later\":{\"a\":1}"), NULL},
    {"optionals that are null",
     EV("TOOL_CALL_START", "\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":null,\"subagentRunId\":null,\"timestamp\":null,\"rawEvent\":null,\"metadata\":null"),
     EV("TOOL_CALL_START", "\"toolCallId\":\"c\",\"toolCallName\":\"f\"")},
    {"a finish with nulls", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"result\":null,\"outcome\":null,\"usage\":null"),
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\"")},
    {"an outcome of later times", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"paused\"}"),
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\"")},
    {"interrupts of a success", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"success\",\"interrupts\":[]}"),
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"success\"}")},
    {"names in snake_case", EV("TEXT_MESSAGE_CONTENT", "\"message_id\":\"m\",\"delta\":\"d\""),
     EV("TEXT_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"d\"")},
    {"roles and parts of later times",
     EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"0\",\"role\":\"oracle\",\"content\":7},"
        "{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"hologram\"},{\"type\":\"image\",\"source\":{\"type\":\"dream\"}}]},"
        "{\"id\":\"2\",\"role\":\"assistant\",\"content\":null}]"),
     EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[]},{\"id\":\"2\",\"role\":\"assistant\"}]")},
    {"binary parts",
     EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":["
        "{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":\"aGk=\",\"filename\":\"a.png\"},"
        "{\"type\":\"binary\",\"mimeType\":\"application/pdf\",\"url\":\"https://e/x\"},"
        "{\"type\":\"binary\",\"mimeType\":\"audio/wav\",\"id\":\"f-1\"}]}]"),
     EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":["
        "{\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"aGk=\",\"mimeType\":\"image/png\"},\"metadata\":{\"filename\":\"a.png\"}},"
        "{\"type\":\"document\",\"source\":{\"type\":\"url\",\"value\":\"https://e/x\",\"mimeType\":\"application/pdf\"}},"
        "{\"type\":\"audio\",\"source\":{\"type\":\"file\",\"value\":\"f-1\",\"mimeType\":\"audio/wav\"}}]}]")},
};
/* clang-format on */
#define N_ROWS (sizeof rows / sizeof *rows)

static void every_event_comes_back(void **state)
{
    bool seen[DGM_N_CANON_KINDS] = {false};
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_event e = {0};
        dgm_agui_found found = DGM_AGUI_UNKNOWN;
        dgm_err err = {0};
        check_written(rows[i].in, rows[i].out ? rows[i].out : rows[i].in, (dgm_agui_peer){0});
        check_ok(read_text(a, rows[i].in, &e, &found, &err), err);
        seen[e.kind] = true;
    }
    for (int k = 1; k < DGM_N_CANON_KINDS; k++) {
        if (!seen[k])
            fail_msg("no row for %s", dgm_canon_kind_name((dgm_canon_kind)k));
    }
}

/* ---- older peers, before 1.0 -------------------------------------------------------------------------- */

/* clang-format off */
static const struct row old_rows[] = {
    {"cancelled", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"cancelled\"},\"timestamp\":5"),
     EV("RUN_ERROR", "\"message\":\"The run was cancelled\",\"code\":\"cancelled\",\"timestamp\":5")},
    {"pending calls", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c\"]}"),
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\"")},
    {"an interrupt stays", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\"}]}"), NULL},
    {"parts of a result", EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":["
        "{\"type\":\"text\",\"text\":\"a\"}," MEDIA("audio", "\"type\":\"url\",\"value\":\"u\"") ",{\"type\":\"text\",\"text\":\"b\"}]"),
     EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":\"ab\"")},
    {"subagents", EV("SUBAGENT_STARTED", "\"subagentRunId\":\"s\",\"name\":\"n\""), ""},
    {"who speaks", EV("TEXT_MESSAGE_END", "\"messageId\":\"m\",\"subagentRunId\":\"s\""), EV("TEXT_MESSAGE_END", "\"messageId\":\"m\"")},
    {"handles of files", EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":["
        MEDIA("image", "\"type\":\"file\",\"value\":\"f\"") "]}]"),
     EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[]}]")},
    {"steps of subagents", EV("STEP_STARTED", "\"stepName\":\"s\",\"subagentRunId\":\"a\""), ""},
    {"whose interrupt", EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\",\"subagentRunId\":\"a\"}]}"),
     EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\"}]}")},
    {"text", EV("TEXT_MESSAGE_CONTENT", "\"messageId\":\"m\",\"delta\":\"d\""), NULL},
};
/* clang-format on */

static void older_peers_are_spared_what_is_new(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof old_rows / sizeof *old_rows; i++)
        check_written(old_rows[i].in, old_rows[i].out ? old_rows[i].out : old_rows[i].in,
                      (dgm_agui_peer){.old = true});
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *in, *at;
} bad[] = {
    {"[]", ""}, {"{}", "/type"}, {"{\"type\":1}", "/type"},
    {EV("RUN_FINISHED", "\"threadId\":\"t\""), "/runId"},
    {EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":\"success\""), "/outcome"},
    {EV("RUN_FINISHED", "\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[]}"), "/outcome/interrupts"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"usage\":[{\"inputTokens\":1.5}]"), "/usage/0/inputTokens"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"usage\":[{\"inputTokens\":-1}]"), "/usage/0/inputTokens"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"timestamp\":1.5"), "/timestamp"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"timestamp\":\"1\""), "/timestamp"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"timestamp\":9007199254740993"), "/timestamp"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"message\":\"y\""), "/message"},
    {EV("RUN_ERROR", "\"message\":\"x\",\"metadata\":[]"), "/metadata"},
    {EV("TEXT_MESSAGE_START", "\"messageId\":\"m\",\"role\":\"agent\""), "/role"},
    {EV("TEXT_MESSAGE_START", "\"messageId\":\"m\",\"role\":\"tool\""), "/role"},
    {EV("TEXT_MESSAGE_CONTENT", "\"messageId\":\"m\""), "/delta"},
    {EV("TOOL_CALL_ARGS", "\"toolCallId\":\"c\",\"delta\":{}"), "/delta"},
    {EV("TOOL_CALL_RESULT", "\"toolCallId\":\"c\",\"content\":\"\""), "/messageId"},
    {EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":{}"), "/content"},
    {EV("TOOL_CALL_RESULT", "\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":\"\",\"role\":\"user\""), "/role"},
    {EV("STATE_DELTA", "\"delta\":{}"), "/delta"},
    {EV("STATE_DELTA", "\"delta\":[{\"op\":\"add\",\"path\":\"a\"}]"), "/delta/0"},
    {EV("ACTIVITY_DELTA", "\"messageId\":\"m\",\"activityType\":\"a\",\"patch\":[1]"), "/patch/0"},
    {EV("STATE_DELTA", "\"delta\":[{\"op\":\"add\",\"path\":\"/a\"}]"), "/delta/0"},
    {EV("ACTIVITY_SNAPSHOT", "\"messageId\":\"m\",\"activityType\":\"a\",\"content\":\"x\""), "/content"},
    {EV("REASONING_MESSAGE_START", "\"messageId\":\"m\""), "/role"},
    {EV("REASONING_MESSAGE_START", "\"messageId\":\"m\",\"role\":\"assistant\""), "/role"},
    {EV("REASONING_ENCRYPTED_VALUE", "\"subtype\":\"x\",\"entityId\":\"c\",\"encryptedValue\":\"x\""), "/subtype"},
    {EV("CUSTOM", "\"name\":\"x\""), "/value"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\"}]"), "/messages/0/content"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"assistant\",\"content\":[]}]"), "/messages/0/content"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"tool\",\"content\":\"\"}]"), "/messages/0/toolCallId"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"activity\",\"content\":{}}]"), "/messages/0/activityType"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"role\":\"user\",\"content\":\"\"}]"), "/messages/0/id"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"\"}}]}]"), "/messages/0/content/0/source/mimeType"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"binary\",\"mimeType\":\"a/b\"}]}]"), "/messages/0/content/0"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"binary\",\"mimeType\":\"a/b\",\"data\":\"a'\"}]}]"), "/messages/0/content/0/data"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"a'\",\"mimeType\":\"a/b\"}}]}]"), "/messages/0/content/0/source/value"},
    {EV("MESSAGES_SNAPSHOT", "\"messages\":[{\"id\":\"1\",\"role\":\"assistant\",\"toolCalls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]}]"), "/messages/0/toolCalls/0/function/arguments"},
};
/* clang-format on */

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_event e = {0};
        dgm_agui_found found = DGM_AGUI_UNKNOWN;
        dgm_err err = {0};
        check_fails(read_text(a, bad[i].in, &e, &found, &err), DGM_BAD_PARAMS, err, bad[i].at);
    }
}

static void lists_keep_to_their_limit(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_event e = {0};
    dgm_agui_found found = DGM_AGUI_UNKNOWN;
    dgm_err err = {0};
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_lit(&b, "{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[0");
    for (int i = 0; i < DGM_MAX_LIST_ITEMS; i++)
        dgm_buf_add_lit(&b, ",0");
    dgm_buf_add_lit(&b, "]}");
    dgm_buf_add_char(&b, 0);
    check_fails(read_text(a, b.p, &e, &found, &err), DGM_TOO_LARGE, err, "/messages");
    dgm_buf_done(&b);
}

static void an_unknown_event_is_reported(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_event e = {0};
    dgm_agui_found found = DGM_AGUI_EVENT;
    dgm_err err = {0};
    (void)state;
    check_ok(read_text(a, "{\"type\":\"text-message-content\"}", &e, &found, &err), err);
    assert_int_equal(found, DGM_AGUI_UNKNOWN);
}

/* ---- requests -------------------------------------------------------------------------------------------- */

static void requests_of_all_ages_are_read(void **state)
{
    /* in, out: what the 1.0 client sends for an empty run; what tolerance makes of older ones */
    static const char *const requests[][2] = {
        {"{\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\",\"state\":{},"
         "\"messages\":["
         "],\"tools\":[],\"context\":[],\"forwardedProps\":{}}",
         NULL},
        {"{\"threadId\":\"t1\",\"runId\":\"r1\",\"state\":null,\"messages\":[],\"tools\":[{"
         "\"name\":"
         "\"f\",\"description\":\"\",\"parameters\":null}],\"context\":[],\"forwardedProps\":null,"
         "\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\",\"payload\":null}]}",
         "{\"threadId\":\"t1\",\"runId\":\"r1\",\"messages\":[],\"tools\":[{\"name\":\"f\","
         "\"description\":\"\"}],\"context\":[],\"resume\":[{\"interruptId\":\"i\",\"status\":"
         "\"resolved\"}]}"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        dgm_reader r = {.arena = a, .err = &err};
        dgm_canon_input input;
        yyjson_val *v;
        dgm_buf b;
        dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
        check_ok(dgm_json_read(a, dgm_str_from(requests[i][0]), 10000, "object_bytes", &v, &err),
                 err);
        check_ok(dgm_agui_read_input(&r, v, NULL, &input), err);
        dgm_writer w = {.out = &b, .format = DGM_FORMAT_AG_UI};
        dgm_agui_write_input(&w, &input);
        check_str(b, requests[i][1] ? requests[i][1] : requests[i][0]);
        assert_int_equal(dgm_agui_recognise(v), 2);
        dgm_buf_done(&b);
    }
}

DGM_TEST_MAIN(dgm_test_holds(every_event_comes_back, "R000-01"),
              dgm_test_holds(older_peers_are_spared_what_is_new, "R000-18"),
              dgm_test(what_is_wrong_is_named), dgm_test(lists_keep_to_their_limit),
              dgm_test(an_unknown_event_is_reported), dgm_test(requests_of_all_ages_are_read))
