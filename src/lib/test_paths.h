/* lib/test_paths.h - random messages of A2A 1.0, for the tests that two paths agree. */
#pragma once

#include "base/buf.h"

static uint64_t seed;

static size_t roll(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}
#define PICK(list) ((list)[roll(sizeof(list) / sizeof *(list))])

/* clang-format off */
static const char *const parts[] = {
    "{\"text\":\"Hello\"}",
    "{\"text\":\"\"}",
    "{\"text\":\" world\\n\"}",
    "{\"data\":{\"a\":[1,2.50],\"b\":\"é\"}}",
    "{\"data\":null}",
    "{\"data\":\"text\"}",
    "{\"data\":{\"tool_calls\":[]}}",
    "{\"data\":{\"tool_calls\":null,\"x\":1}}",
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{\"q\":[1,{}]}}]}}",
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"2\",\"name\":\"g\",\"arguments\":\"{\\\"q\\\":1}\"},{\"call_id\":\"3\",\"name\":\"h\"}]}}",
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"\",\"name\":\"f\"}]}}",
    "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\",\"arguments\":7}]}}",
    "{\"data\":{\"tool_calls\":{}}}",
    "{\"data\":{\"tool_results\":[{\"call_id\":\"1\",\"name\":\"f\",\"output\":\"Sunny, 72°F\"}]}}",
    "{\"data\":{\"tool_results\":[{\"call_id\":\"1\",\"output\":{\"a\":1}},{\"call_id\":\"2\",\"name\":7}]}}",
    "{\"data\":{\"tool_results\":[],\"tool_calls\":[{\"call_id\":\"4\",\"name\":\"i\"}]}}",
    "{\"data\":{\"tool_results\":[{\"call_id\":\"5\",\"output\":null}],\"tool_calls\":[1]}}",
    "{\"data\":{\"tool_results\":[{}]}}",
    "{\"raw\":\"aGk=\",\"filename\":\"a.png\"}",
    "{\"raw\":\"aGk=\",\"mediaType\":\"application/pdf\"}",
    "{\"url\":\"https://e/x y\",\"filename\":\"a [b]\"}",
    "{\"url\":\"https://e/x.png\"}",
    "{\"url\":\"https://e/x.bin\"}",
};
/* clang-format on */
static const char *const types[] = {"",
                                    "",
                                    "",
                                    "TextMessageChunkEvent",
                                    "ToolCallArgsEvent",
                                    "TextMessageEndEvent",
                                    "ToolCallStartEvent",
                                    "nonsense"};

static void put_message(dgm_buf *b)
{
    const char *type = PICK(types);
    size_t n = 1 + roll(4);
    dgm_buf_printf(b, "{\"messageId\":\"m\",\"role\":\"%s\",\"parts\":[",
                   roll(2) ? "ROLE_USER" : "ROLE_AGENT");
    for (size_t i = 0; i < n; i++)
        dgm_buf_printf(b, "%s%s", i ? "," : "", PICK(parts));
    dgm_buf_add_char(b, ']');
    if (*type)
        dgm_buf_printf(b, ",\"metadata\":{\"canonical_type\":\"%s\"}", type);
    dgm_buf_add_char(b, '}');
}
