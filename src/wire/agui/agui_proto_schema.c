/*
 * wire/agui/agui_proto_schema.c - the field number and type of every member.
 *
 * Members with another name in the JSON have that name here; `content` is one of three on the wire.
 */
#include "wire/agui/agui_proto_int.h"

/* clang-format off */
#define STR(n, name)          {n, PB_STR, name, NULL, NULL, NULL}
#define OPT(n, name)          {n, PB_OPT, name, NULL, NULL, NULL}
#define INT(n, name)          {n, PB_INT, name, NULL, NULL, NULL}
#define BOOL(n, name)         {n, PB_BOOL, name, NULL, NULL, NULL}
#define VALUE(n, name)        {n, PB_VALUE, name, NULL, NULL, NULL}
#define STRUCT(n, name)       {n, PB_STRUCT, name, NULL, NULL, NULL}
#define ONE(n, name, of)      {n, PB_ONE, name, NULL, &of, NULL}
#define MANY(n, name, of)     {n, PB_MANY, name, NULL, &of, NULL}
#define STRS_IN(n, name, in)  {n, PB_STRS, name, in, NULL, NULL}
#define STR_IN(n, name, in)   {n, PB_STR, name, in, NULL, NULL}
#define MANY_IN(n, name, in, of) {n, PB_MANY, name, in, &of, NULL}
#define BY(n)                 OPT(n, "subagentRunId")
#define FIELDS(list)          .fields = (list), .n = sizeof(list) / sizeof *(list)
#define MESSAGE(name, ...)                                                                         \
    static const pb_field name##_fields[] = {__VA_ARGS__};                                         \
    static const pb_message name = {.what = #name, FIELDS(name##_fields)}
#define ONE_OF(name, ...)                                                                          \
    static const pb_field name##_fields[] = {__VA_ARGS__};                                         \
    static const pb_message name = {.what = #name, FIELDS(name##_fields), .one_of = true}

/* ---- nouns ---------------------------------------------------------------------------------------------- */

MESSAGE(data_source, STR(1, "value"), STR(2, "mimeType"));
MESSAGE(url_source, STR(1, "value"), OPT(2, "mimeType"));
MESSAGE(file_source, STR(1, "value"), OPT(2, "provider"), OPT(3, "mimeType"));
ONE_OF(source, ONE(1, "data", data_source), ONE(2, "url", url_source), ONE(3, "file", file_source));
MESSAGE(text_part, STR(1, "text"), OPT(2, "id"), VALUE(3, "metadata"));
MESSAGE(media_part, ONE(1, "source", source), VALUE(2, "metadata"), OPT(3, "id"));
ONE_OF(part, ONE(1, "text", text_part), ONE(2, "image", media_part), ONE(3, "audio", media_part),
       ONE(4, "video", media_part), ONE(5, "document", media_part));

MESSAGE(function, STR(1, "name"), STR(2, "arguments"));
MESSAGE(call, STR(1, "id"), STR(2, "type"), ONE(3, "function", function), STRUCT(4, "metadata"),
        OPT(5, "encryptedValue"));
static const pb_field message_fields[] = {
    STR(1, "id"), STR(2, "role"), OPT(3, "content"), OPT(4, "name"), MANY(5, "toolCalls", call),
    OPT(6, "toolCallId"), OPT(7, "error"), MANY(8, "content", part), STRUCT(9, "metadata"), BY(10),
    OPT(11, "encryptedValue"), OPT(12, "activityType"), STRUCT(13, "content"),
};
static const pb_message message = {.what = "message", FIELDS(message_fields), .content = true};

MESSAGE(tool, STR(1, "name"), STR(2, "description"), VALUE(3, "parameters"), STRUCT(4, "metadata"));
MESSAGE(context, STR(1, "description"), STR(2, "value"));
MESSAGE(resume, STR(1, "interruptId"), STR(2, "status"), VALUE(3, "payload"), STRUCT(4, "metadata"));
MESSAGE(input, STR(1, "threadId"), STR(2, "runId"), OPT(3, "parentRunId"), VALUE(4, "state"),
        MANY(5, "messages", message), MANY(6, "tools", tool), MANY(7, "context", context),
        VALUE(8, "forwardedProps"), MANY(9, "resume", resume), OPT(10, "protocolVersion"));
MESSAGE(interrupt, STR(1, "id"), STR(2, "reason"), OPT(3, "message"), OPT(4, "toolCallId"),
        VALUE(5, "responseSchema"), OPT(6, "expiresAt"), VALUE(7, "metadata"), BY(8));
MESSAGE(usage, OPT(1, "provider"), OPT(2, "model"), INT(3, "inputTokens"), INT(4, "outputTokens"),
        INT(5, "totalTokens"), INT(6, "reasoningTokens"), INT(7, "cachedInputTokens"),
        INT(8, "cacheWriteInputTokens"));
static const char *const op_names[] = {"add", "remove", "replace", "move", "copy", "test", NULL};
MESSAGE(op, {1, PB_ENUM, "op", NULL, NULL, op_names}, STR(2, "path"), OPT(3, "from"), VALUE(4, "value"));

/* ---- events ---------------------------------------------------------------------------------------------- */

/* The type is written before these: see write_base(). */
MESSAGE(base, INT(2, "timestamp"), VALUE(3, "rawEvent"), STRUCT(4, "metadata"));
#define EVENT(name, ...) MESSAGE(name, {1, PB_BASE, "", NULL, &base, NULL}, __VA_ARGS__)

EVENT(text_start, STR(2, "messageId"), OPT(3, "role"), OPT(4, "name"), BY(5));
EVENT(text_content, STR(2, "messageId"), STR(3, "delta"), BY(4));
EVENT(text_end, STR(2, "messageId"), BY(3));
EVENT(text_chunk, OPT(2, "messageId"), OPT(3, "role"), OPT(4, "delta"), OPT(5, "name"), BY(6));
EVENT(tool_start, STR(2, "toolCallId"), STR(3, "toolCallName"), OPT(4, "parentMessageId"), BY(5));
EVENT(tool_args, STR(2, "toolCallId"), STR(3, "delta"), BY(4));
EVENT(tool_end, STR(2, "toolCallId"), BY(3));
EVENT(tool_chunk, OPT(2, "toolCallId"), OPT(3, "toolCallName"), OPT(4, "parentMessageId"),
      OPT(5, "delta"), BY(6));
static const pb_field tool_result_fields[] = {
    {1, PB_BASE, "", NULL, &base, NULL}, BY(2), STR(3, "messageId"), STR(4, "toolCallId"),
    OPT(5, "content"), OPT(6, "role"), MANY(7, "content", part)};
static const pb_message tool_result = {
    .what = "tool_result", FIELDS(tool_result_fields), .content = true};
EVENT(state_snapshot, VALUE(2, "snapshot"), BY(3));
EVENT(state_delta, MANY(2, "delta", op), BY(3));
EVENT(messages_snapshot, MANY(2, "messages", message));
EVENT(activity_snapshot, BY(2), STR(3, "messageId"), STR(4, "activityType"), STRUCT(5, "content"),
      BOOL(6, "replace"));
EVENT(activity_delta, BY(2), STR(3, "messageId"), STR(4, "activityType"), MANY(5, "patch", op));
EVENT(raw, VALUE(2, "event"), OPT(3, "source"), BY(4));
EVENT(custom, STR(2, "name"), VALUE(3, "value"), BY(4));
EVENT(run_started, STR(2, "threadId"), STR(3, "runId"), OPT(4, "parentRunId"), ONE(5, "input", input),
      OPT(6, "protocolVersion"));
EVENT(run_finished, STR(2, "threadId"), STR(3, "runId"), VALUE(4, "result"),
      STR_IN(5, "type", "outcome"), MANY_IN(6, "interrupts", "outcome", interrupt),
      MANY(7, "usage", usage), STRS_IN(8, "pendingToolCallIds", "outcome"));
EVENT(run_error, OPT(2, "code"), STR(3, "message"), MANY(4, "usage", usage));
EVENT(step, STR(2, "stepName"), BY(3));
EVENT(reasoning_span, BY(2), STR(3, "messageId"));
EVENT(reasoning_start, BY(2), STR(3, "messageId"), STR(4, "role"));
EVENT(reasoning_content, BY(2), STR(3, "messageId"), STR(4, "delta"));
EVENT(reasoning_chunk, BY(2), OPT(3, "messageId"), OPT(4, "delta"));
EVENT(encrypted, BY(2), STR(3, "subtype"), STR(4, "entityId"), STR(5, "encryptedValue"));
EVENT(subagent_started, STR(2, "subagentRunId"), STR(3, "name"), OPT(4, "description"),
      OPT(5, "parentSubagentRunId"), OPT(6, "parentToolCallId"), OPT(7, "parentMessageId"));
EVENT(subagent_finished, STR(2, "subagentRunId"), VALUE(3, "result"), STR_IN(4, "type", "outcome"),
      STRS_IN(5, "interruptIds", "outcome"));
EVENT(subagent_error, STR(2, "subagentRunId"), STR(3, "message"), OPT(4, "code"));

/* arm, number of the type, JSON's type, message: by arm */
#define EVENTS(X)                                                                                  \
    X(1, 0, "TEXT_MESSAGE_START", text_start)                                                      \
    X(2, 1, "TEXT_MESSAGE_CONTENT", text_content)                                                  \
    X(3, 2, "TEXT_MESSAGE_END", text_end)                                                          \
    X(4, 3, "TOOL_CALL_START", tool_start)                                                         \
    X(5, 4, "TOOL_CALL_ARGS", tool_args)                                                           \
    X(6, 5, "TOOL_CALL_END", tool_end)                                                             \
    X(7, 6, "STATE_SNAPSHOT", state_snapshot)                                                      \
    X(8, 7, "STATE_DELTA", state_delta)                                                            \
    X(9, 8, "MESSAGES_SNAPSHOT", messages_snapshot)                                                \
    X(10, 9, "RAW", raw)                                                                           \
    X(11, 10, "CUSTOM", custom)                                                                    \
    X(12, 11, "RUN_STARTED", run_started)                                                          \
    X(13, 12, "RUN_FINISHED", run_finished)                                                        \
    X(14, 13, "RUN_ERROR", run_error)                                                              \
    X(15, 14, "STEP_STARTED", step)                                                                \
    X(16, 15, "STEP_FINISHED", step)                                                               \
    X(17, 19, "TEXT_MESSAGE_CHUNK", text_chunk)                                                    \
    X(18, 20, "TOOL_CALL_CHUNK", tool_chunk)                                                       \
    X(19, 16, "SUBAGENT_STARTED", subagent_started)                                                \
    X(20, 17, "SUBAGENT_FINISHED", subagent_finished)                                              \
    X(21, 18, "SUBAGENT_ERROR", subagent_error)                                                    \
    X(22, 21, "TOOL_CALL_RESULT", tool_result)                                                     \
    X(23, 22, "ACTIVITY_SNAPSHOT", activity_snapshot)                                              \
    X(24, 23, "ACTIVITY_DELTA", activity_delta)                                                    \
    X(25, 24, "REASONING_START", reasoning_span)                                                   \
    X(26, 25, "REASONING_MESSAGE_START", reasoning_start)                                          \
    X(27, 26, "REASONING_MESSAGE_CONTENT", reasoning_content)                                      \
    X(28, 27, "REASONING_MESSAGE_END", reasoning_span)                                             \
    X(29, 28, "REASONING_MESSAGE_CHUNK", reasoning_chunk)                                          \
    X(30, 29, "REASONING_END", reasoning_span)                                                     \
    X(31, 30, "REASONING_ENCRYPTED_VALUE", encrypted)

static const pb_field event_fields[] = {
#define X(arm, number, type, of) ONE(arm, type, of),
    EVENTS(X)
#undef X
};
/* clang-format on */
const pb_message dgm_pb_event = {.what = "event", FIELDS(event_fields), .one_of = true};

unsigned dgm_pb_event_number(dgm_str type)
{
    static const unsigned char numbers[] = {
#define X(arm, number, type, of) number,
        EVENTS(X)
#undef X
    };
    for (size_t i = 0; i < dgm_pb_event.n; i++) {
        if (dgm_str_eq(dgm_str_from(dgm_pb_event.fields[i].name), type))
            return numbers[i];
    }
    return 0;
}
