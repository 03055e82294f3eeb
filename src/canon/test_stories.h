/*
 * test_stories.h - random agents: records as JSON, of every kind, in any order.
 *
 * The same seed makes the same records.
 */
#pragma once

#include "canon/test_dump.h"

static uint64_t seed;

static size_t roll(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

#define PICK(list) ((list)[roll(sizeof(list) / sizeof *(list))])

static void put_message(dgm_buf *b, const char *role)
{
    /* clang-format off */
    static const char *const parts[] = {
        "{\"text\":\"ha\"}",
        "{\"text\":\"haha\"}",
        "{\"text\":\"Hello\"},{\"text\":\" world\"}",
        "{\"text\":\"\"}",
        "{\"data\":{\"type\":\"status-indicator\",\"text\":\"x\"}}",
        "{\"data\":{\"type\":\"status-indicator\",\"text\":\"x\",\"agent\":{\"name\":\"a\"}}}",
        "{\"data\":{\"type\":\"status-indicator\",\"agent\":{\"name\":\"b\",\"url\":\"u\"}}}",
        "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{\"a\":1}},{\"call_id\":\"2\",\"name\":\"g\",\"arguments\":\"{\"}]}}",
        "{\"data\":{\"tool_results\":[{\"call_id\":\"1\",\"output\":7}]}},{\"text\":\"so\"}",
        "{\"data\":[1]}",
        "{\"raw\":\"aGk=\",\"filename\":\"a.png\"}",
    };
    /* clang-format on */
    static const char *const types[] = {"",
                                        "TextMessageChunkEvent",
                                        "TextMessageEndEvent",
                                        "ToolCallArgsEvent",
                                        "ToolCallStartEvent",
                                        "nonsense"};
    const char *type = PICK(types);
    dgm_buf_printf(b, "{\"messageId\":\"m%zu\",\"role\":\"%s\",\"parts\":[%s]", roll(4), role,
                   PICK(parts));
    if (*type)
        dgm_buf_printf(b, ",\"metadata\":{\"canonical_type\":\"%s\"}", type);
    dgm_buf_add_char(b, '}');
}

static void put_status(dgm_buf *b, const char *state)
{
    dgm_buf_printf(b, "\"status\":{\"state\":\"TASK_STATE_%s\"", state);
    if (roll(2)) {
        dgm_buf_add_lit(b, ",\"message\":");
        put_message(b, "ROLE_AGENT");
    }
    dgm_buf_add_char(b, '}');
}

static void put_artifact(dgm_buf *b)
{
    static const char *const parts[] = {"{\"text\":\"ha\"}", "{\"text\":\"haha\"}", "",
                                        "{\"text\":\"x\"},{\"data\":{}}", "{\"url\":\"u\"}"};
    dgm_buf_printf(b, "{\"artifactId\":\"a%zu\",\"name\":\"n\",\"parts\":[%s]}", roll(3),
                   PICK(parts));
}

static void put_internal(dgm_buf *b)
{
    static const char *const events[] = {
        "llm-call\",\"iteration\":1",
        "checkpoint\",\"iteration\":1",
        "tool-start\",\"toolName\":\"f\",\"toolCallId\":\"1\",\"arguments\":{\"q\":1}",
        "tool-start\",\"toolName\":\"f\",\"toolCallId\":\"3\"",
        "tool-complete\",\"toolCallId\":\"1\",\"success\":true,\"result\":null",
        "tool-complete\",\"toolCallId\":\"3\",\"success\":false",
        "tool-complete\",\"toolCallId\":\"9\",\"success\":true",
        "reasoning\",\"text\":\"hm\"",
        "reasoning\",\"text\":\"\"",
        "state\",\"value\":{}",
        "state\",\"name\":\"~/\",\"value\":1",
        "step\",\"name\":\"working\"",
        "step\",\"name\":\"working\",\"success\":true",
        "step\",\"name\":\"s\"",
        "step\",\"name\":\"s\",\"success\":false",
        "usage\",\"value\":{\"inputTokens\":1,\"model\":\"m\"}",
        "usage\",\"value\":[]",
        "custom\",\"name\":\"x\"",
    };
    dgm_buf_printf(
        b, "{\"kind\":\"internal:%s,\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\"}",
        PICK(events));
}

static const char *const all_states[] = {
    "WORKING", "WORKING",  "WORKING",  "SUBMITTED",      "UNSPECIFIED",  "COMPLETED",
    "FAILED",  "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED"};

static void put_event(dgm_buf *b)
{
    size_t what = roll(12);
    if (what < 3) {
        put_internal(b);
    } else if (what < 6) {
        dgm_buf_add_lit(b,
                        "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":");
        put_artifact(b);
        dgm_buf_printf(b, "%s%s}}", roll(2) ? ",\"append\":true" : "",
                       roll(3) ? "" : ",\"lastChunk\":true");
    } else if (what < 10) {
        /* mostly at work, or nothing would be left to happen */
        dgm_buf_add_lit(b, "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",");
        put_status(b, roll(3) ? "WORKING" : PICK(all_states));
        dgm_buf_add_lit(b, "}}");
    } else if (what == 10) {
        dgm_buf_add_lit(b, "{\"message\":");
        put_message(b, roll(3) ? "ROLE_AGENT" : "ROLE_USER");
        dgm_buf_add_char(b, '}');
    } else {
        dgm_buf_add_lit(b, "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",");
        put_status(b, roll(3) ? "SUBMITTED" : PICK(all_states));
        if (roll(2)) {
            dgm_buf_add_lit(b, ",\"artifacts\":[");
            put_artifact(b);
            dgm_buf_add_lit(b, "],\"history\":[");
            put_message(b, "ROLE_USER");
            dgm_buf_add_char(b, ',');
            put_message(b, "ROLE_AGENT");
            dgm_buf_add_char(b, ']');
        }
        dgm_buf_add_lit(b, "}}");
    }
}

/* A story of n events in the arena. */
static inline void tell_story(dgm_arena *a, dgm_event *events, size_t n)
{
    dgm_mint mint = {.count = 0};
    for (size_t i = 0; i < n; i++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        put_event(&b);
        read_record(a, &mint, dgm_arena_dup(a, dgm_buf_str(&b)), &events[i]);
        dgm_buf_done(&b);
    }
}
