/*
 * wire/a2a/a2a_losses.c - losses between the A2A dialects, and from and to canonical events.
 *
 * tests/roundtrip compares every row with the codecs: a row that no test shows is a failure, and so is
 * a loss without a row. docs/internals/losses.md and `dragoman formats` are generated from these rows.
 */
#include "wire/a2a/a2a_card.h"
#include "wire/a2a/a2a_int.h"

#define ROWS(array) (array), sizeof(array) / sizeof *(array)

/* clang-format off: rows, not bodies */
#define UNKNOWN_MEMBERS                                                                            \
    {                                                                                              \
        "any", "/*", "unknown members are written back by the format that they came from only"     \
    }
#define NO_LISTS                                                                                   \
    {"list-tasks-request", "", "0.3 has no such object: rejected"},                                \
    {                                                                                              \
        "list-tasks-response", "", "0.3 has no such object: rejected"                              \
    }
#define PART_NAMES                                                                                 \
    {"part", "/filename", "dropped from text and data parts: 0.3 has it for files only",           \
     DGM_LOSS_NOT_BESIDE, "raw url"},                                                              \
    {                                                                                              \
        "part", "/mediaType", "dropped from text and data parts: 0.3 has it for files only",       \
            DGM_LOSS_NOT_BESIDE, "raw url"                                                         \
    }
#define TENANTS                                                                                    \
    {"send-request", "/tenant", "dropped: 0.3 has no tenants"},                                    \
        {"get-task-request", "/tenant", "dropped: 0.3 has no tenants"},                            \
        {"cancel-request", "/tenant", "dropped: 0.3 has no tenants"},                              \
        {"subscribe-request", "/tenant", "dropped: 0.3 has no tenants"},                           \
        {"push-config", "/tenant", "dropped: 0.3 has no tenants"},                                 \
        {"push-get-request", "/tenant", "dropped: 0.3 has no tenants"},                            \
        {"push-list-request", "/tenant", "dropped: 0.3 has no tenants"},                           \
        {"push-delete-request", "/tenant", "dropped: 0.3 has no tenants"},                         \
    {                                                                                              \
        "extended-card-request", "/tenant", "dropped: 0.3 has no tenants"                          \
    }
#define DEFAULTS                                                                                   \
    {"any", "/append", "an explicit false is left out: it is the default", DGM_LOSS_FALSE},        \
        {"any", "/lastChunk", "an explicit false is left out: it is the default", DGM_LOSS_FALSE}, \
        {"any", "/extensions", "an empty list is left out", DGM_LOSS_EMPTY},                       \
        {"any", "/referenceTaskIds", "an empty list is left out", DGM_LOSS_EMPTY},                 \
        {"any", "/contextId", "an empty text is left out", DGM_LOSS_EMPTY},                        \
        {"any", "/taskId", "an empty text is left out", DGM_LOSS_EMPTY},                           \
        {"any", "/name", "an empty text is left out", DGM_LOSS_EMPTY},                             \
        {"any", "/description", "an empty text is left out", DGM_LOSS_EMPTY},                      \
        {"any", "/mimeType", "an empty text is left out", DGM_LOSS_EMPTY},                         \
        {"task", "/artifacts", "an empty list is left out", DGM_LOSS_EMPTY},                       \
        {"task", "/history", "an empty list is left out", DGM_LOSS_EMPTY},                         \
        {"any", "/token", "an empty text is left out", DGM_LOSS_EMPTY},                            \
    {                                                                                              \
        "any", "/credentials", "an empty text is left out", DGM_LOSS_EMPTY                         \
    }
#define FINAL                                                                                      \
    {                                                                                              \
        "stream-response", "/final",                                                               \
            "1.0 has no such member; on the way back it is derived from the state",                \
            DGM_LOSS_NOT_REPORTED                                                                  \
    }
#define SCHEMES                                                                                    \
    {                                                                                              \
        "any", "/authentication/schemes/*", "1.0 has one scheme: only the first is copied",        \
            DGM_LOSS_NOT_FIRST                                                                     \
    }
#define ENVELOPE                                                                                   \
    {                                                                                              \
        "any", "/jsonrpc", "REST has no envelope: only params, result or error is written"         \
    }
#define REFERENCES                                                                                 \
    {                                                                                              \
        "message", "/referenceTaskIds", "dropped: the 0.3 proto has no such field"                 \
    }
#define ZERO_HISTORY                                                                               \
    {                                                                                              \
        "any", "/historyLength", "0 is read as not set: the 0.3 proto cannot express it",          \
            DGM_LOSS_ZERO                                                                          \
    }
#define HTTP_STATUS                                                                                \
    {                                                                                              \
        "error", "/error/code",                                                                    \
            "0.3 has the JSON-RPC code instead; it comes back as the HTTP status of A2A 1.0.1"     \
    }

/* clang-format on */

static const dgm_loss from_10_to_03[] = {
    UNKNOWN_MEMBERS,
    PART_NAMES,
    TENANTS,
    NO_LISTS,
    {"stream-response", "/task", "0.3 has no wrapper: outside a stream the object comes back bare",
     DGM_LOSS_NOT_REPORTED},
    {"stream-response", "/message",
     "0.3 has no wrapper: outside a stream the object comes back bare", DGM_LOSS_NOT_REPORTED},
    {"any", "/result/status",
     "a bare Task as result comes back wrapped, as the response to a send request",
     DGM_LOSS_NOT_REPORTED},
    {"push-config", "/id", "if it is absent, it comes back as the task's id",
     DGM_LOSS_NOT_REPORTED},
    HTTP_STATUS,
    {"push-list-request", "/pageSize", "dropped: 0.3 lists have one page"},
    {"push-list-request", "/pageToken", "dropped: 0.3 lists have one page"},
    {"push-config-list", "/nextPageToken", "dropped: 0.3 lists have one page"},
};

static const dgm_loss from_03_to_10[] = {
    UNKNOWN_MEMBERS,
    FINAL,
    DEFAULTS,
    SCHEMES,
    {"send-request", "/configuration/blocking", "absent comes back as true", DGM_LOSS_NOT_REPORTED},
    {"get-task-request", "/metadata", "dropped: 1.0 has it on cancel and send requests only"},
    {"subscribe-request", "/metadata", "dropped: 1.0 has it on cancel and send requests only"},
    {"push-get-request", "/metadata", "dropped: 1.0 has it on cancel and send requests only"},
    {"push-list-request", "/metadata", "dropped: 1.0 has it on cancel and send requests only"},
    {"push-delete-request", "/metadata", "dropped: 1.0 has it on cancel and send requests only"},
};

static const dgm_loss from_10_to_03_rest[] = {
    UNKNOWN_MEMBERS,
    PART_NAMES,
    TENANTS,
    NO_LISTS,
    ENVELOPE,
    REFERENCES,
    ZERO_HISTORY,
    {"cancel-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"send-request", "/configuration/taskPushNotificationConfig/taskId",
     "dropped: 0.3 has no member for it there, and the server sets it anyway"},
    HTTP_STATUS,
};

static const dgm_loss from_03_rest_to_10[] = {
    UNKNOWN_MEMBERS,
    {"stream-response", "/statusUpdate/final",
     "1.0 has no such member; on the way back it is derived from the state", DGM_LOSS_NOT_REPORTED},
    SCHEMES,
    {"error", "/code",
     "REST errors of 1.0 have no such code: a code that A2A does not define becomes -32603"},
};

static const dgm_loss from_03_to_03_rest[] = {
    UNKNOWN_MEMBERS,
    ENVELOPE,
    REFERENCES,
    ZERO_HISTORY,
    DEFAULTS,
    {"stream-response", "/final", "if it contradicts the state, the state is used",
     DGM_LOSS_NOT_REPORTED},
    {"send-request", "/configuration/blocking", "absent comes back as true", DGM_LOSS_NOT_REPORTED},
    {"get-task-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"cancel-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"subscribe-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"push-get-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"push-list-request", "/metadata", "dropped: the 0.3 proto has no such field"},
    {"push-delete-request", "/metadata", "dropped: the 0.3 proto has no such field"},
};

static const dgm_loss from_03_rest_to_03[] = {
    UNKNOWN_MEMBERS,
    {"stream-response", "/statusUpdate/final", "if it contradicts the state, the state is used",
     DGM_LOSS_NOT_REPORTED},
    {"stream-response", "/task",
     "that format has no wrapper: outside a stream the object comes back bare",
     DGM_LOSS_NOT_REPORTED},
    {"stream-response", "/message",
     "that format has no wrapper: outside a stream the object comes back bare",
     DGM_LOSS_NOT_REPORTED},
    {"push-list-request", "/pageSize", "dropped: 0.3 JSON-RPC lists have one page"},
    {"push-list-request", "/pageToken", "dropped: 0.3 JSON-RPC lists have one page"},
    {"push-config-list", "/nextPageToken", "dropped: 0.3 JSON-RPC lists have one page"},
};

static const struct {
    const dgm_codec *from, *to;
    const dgm_loss *rows;
    size_t n;
    const dgm_loss *cards;
    const size_t *n_cards;
} tables[] = {
    {&dgm_codec_a2a_10, &dgm_codec_a2a_03, ROWS(from_10_to_03), dgm_a2a_card_losses_10_to_03,
     &dgm_a2a_n_card_losses_10_to_03},
    {&dgm_codec_a2a_03, &dgm_codec_a2a_10, ROWS(from_03_to_10), dgm_a2a_card_losses_03_to_10,
     &dgm_a2a_n_card_losses_03_to_10},
    {&dgm_codec_a2a_10, &dgm_codec_a2a_03_rest, ROWS(from_10_to_03_rest),
     dgm_a2a_card_losses_10_to_03_rest, &dgm_a2a_n_card_losses_10_to_03_rest},
    {&dgm_codec_a2a_03_rest, &dgm_codec_a2a_10, ROWS(from_03_rest_to_10),
     dgm_a2a_card_losses_03_rest_to_10, &dgm_a2a_n_card_losses_03_rest_to_10},
    {&dgm_codec_a2a_03, &dgm_codec_a2a_03_rest, ROWS(from_03_to_03_rest),
     dgm_a2a_card_losses_03_to_03_rest, &dgm_a2a_n_card_losses_03_to_03_rest},
    {&dgm_codec_a2a_03_rest, &dgm_codec_a2a_03, ROWS(from_03_rest_to_03),
     dgm_a2a_card_losses_03_rest_to_03, &dgm_a2a_n_card_losses_03_rest_to_03},
};

size_t dgm_a2a_losses(const dgm_codec *from, const dgm_codec *to, const dgm_loss **ret, size_t max)
{
    size_t n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (tables[t].from != from || tables[t].to != to)
            continue;
        for (size_t i = 0; i < tables[t].n; i++, n++) {
            if (n < max)
                ret[n] = &tables[t].rows[i];
        }
        for (size_t i = 0; i < *tables[t].n_cards; i++, n++) {
            if (n < max)
                ret[n] = &tables[t].cards[i];
        }
    }
    return n;
}

/* ---- canonical events -------------------------------------------------------------------------------------- */

static const dgm_loss to_events[] = {
    {"message", "/metadata",
     "left out, except `canonical_type` and `dragoman:role`, which are read; the metadata of a "
     "question becomes the metadata of the interrupt",
     DGM_LOSS_HAS_OTHERS, "canonical_type dragoman:role"},
    {"message", "/extensions", "left out"},
    {"message", "/referenceTaskIds", "left out"},
    {"message", "/contextId", "left out of single messages; in a request it becomes the thread id",
     DGM_LOSS_ALONE},
    {"message", "/parts", "texts are joined without a separator", DGM_LOSS_SEVERAL_TEXTS},
    {"message", "/parts/*/metadata", "left out"},
    {"message", "/parts/*/data",
     "becomes JSON text on a line of its own, unless it contains tool calls, results or a status "
     "indicator",
     DGM_LOSS_HAS_NONE, "tool_calls tool_results displayAs"},
    {"message", "/parts/*/data/tool_results/*/name", "left out"},
    {"message", "/parts/*/file", "agent message: becomes a link or a file name in the text",
     DGM_LOSS_ROLE_IS, "agent ROLE_AGENT"},
    {"task", "/history",
     "left out in a stream, because the reader already has it; the history of a single task is "
     "converted",
     DGM_LOSS_STREAMED},
    {"task", "/status/timestamp", "left out"},
    {"status-update", "/status/timestamp", "left out"},
    {"status-update", "/status/state", "submitted, working, unknown: written once, or left out",
     DGM_LOSS_IS,
     "submitted working unknown TASK_STATE_SUBMITTED TASK_STATE_WORKING TASK_STATE_UNSPECIFIED"},
    {"status-update", "/status/message",
     "state working: becomes progress, not part of the answer, unless its metadata says otherwise",
     DGM_LOSS_STATE_IS, "working TASK_STATE_WORKING"},
    {"artifact-update", "/artifact",
     "its text becomes a message; everything else becomes a CUSTOM event `dragoman:artifact`"},
    {"send-request", "/configuration", "left out"},
    {"send-request", "/metadata", "left out"},
    {"send-request", "/tenant", "left out"},
    {"error", "", "becomes the end of the run, with the error message only"},
    {"card", "", "rejected, like every object that does not belong to a conversation"},
    {"any", "/jsonrpc", "envelopes are removed"},
    {"any", "/*", "unknown members are left out"},
};

static const dgm_loss from_events[] = {
    {"events", "REASONING_*", "left out"},
    {"events", "STATE_SNAPSHOT", "left out, with its deltas"},
    {"events", "STEP_STARTED", "becomes the state `working`, once; names of steps are left out"},
    {"events", "CUSTOM",
     "left out, except `dragoman:metadata` and `dragoman:artifact`, which become metadata and "
     "artifacts again",
     DGM_LOSS_EVENT_IS_NOT, "dragoman:metadata dragoman:artifact"},
    {"events", "RAW", "left out"},
    {"events", "ACTIVITY_SNAPSHOT", "becomes a status indicator; its deltas are left out"},
    {"events", "SUBAGENT_STARTED",
     "becomes a status indicator; the text of a subagent is written as text of the agent"},
    {"events", "TOOL_CALL_START",
     "calls and results become data parts of `working` statuses, each one complete; the message of "
     "a call is left out"},
    {"events", "RUN_STARTED/input", "only its messages are written, as the task's history"},
    {"events", "RUN_STARTED/parentRunId", "left out"},
    {"events", "RUN_FINISHED/result", "left out"},
    {"events", "RUN_FINISHED/usage", "left out"},
    {"events", "RUN_ERROR/code", "becomes failed, rejected or canceled"},
    {"messages", "/name", "left out"},
    {"messages", "/role",
     "system, developer: become a user message with `dragoman:role`; reasoning and activity "
     "messages are left out",
     DGM_LOSS_IS, "system developer reasoning activity"},
    {"messages", "/error", "tool result: only its text is written"},
    {"messages", "/encryptedValue", "left out"},
    {"request", "/messages",
     "the messages after the agent's last one become one message; the A2A agent already has the "
     "others",
     DGM_LOSS_SEVERAL},
    {"request", "/tools", "left out"},
    {"request", "/context", "left out"},
    {"request", "/state", "left out"},
    {"request", "/forwardedProps", "left out"},
    {"request", "/resume", "left out, except decisions about requests for approval"},
};

const dgm_loss_rows dgm_a2a_lost_reading = {ROWS(to_events)};
const dgm_loss_rows dgm_a2a_lost_writing = {ROWS(from_events)};
