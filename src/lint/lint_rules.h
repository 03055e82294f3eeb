/*
 * lint/lint_rules.h - the table of rules: one row each, the only place where they are named.
 *
 * symbol, id, severity, protocol, what is wrong, what to do. The rows on single events of tasks are those of
 * model/rules.h, which the server has too. docs/lint.md is printed from this table.
 */
#pragma once

#include "model/rules.h"

/* clang-format off */
#define LINT_ANY_RULES(X)                                                                                      \
    X(JSON, "json", ERROR, "any",                                                                              \
      "invalid JSON",                                                                                      \
      "Write one JSON value per event (RFC 8259, UTF-8); lint continues with the next.")                         \
    X(LIMIT, "limit", ERROR, "any",                                                                            \
      "a value is larger or nested deeper than readers should have to accept",                                   \
      "Split it into several events, or send large content by url.")                                           \
    X(UNKNOWN_VALUE, "unknown-value", ERROR, "any",                                                            \
      "this value is not an object of A2A or AG-UI",                                                           \
      "Check that it is a complete object of the protocol, or name the format with --from.")                      \
    X(WRONG_VALUE, "wrong-value", ERROR, "any",                                                                \
      "a member has a type or value that the protocol does not allow",                                         \
      "Send a value that the protocol allows for this member.")                                                           \
    X(NULL_MEMBER, "null-member", ERROR, "any",                                                                \
      "a member is null where the protocol does not allow null",                                                       \
      "Leave the member out.")                                                            \
    X(DONE_MARKER, "done-marker", ERROR, "any",                                                                \
      "[DONE] is only for OpenAI streams: other readers report it as invalid JSON",                       \
      "End the stream by closing it after the last event.")                                                    \
    X(MISSING_FINAL, "missing-final", ERROR, "any",                                                            \
      "the stream ends without a terminal event",                                                              \
      "Close with a terminal or interrupted status, or one message (AG-UI: RUN_FINISHED or RUN_ERROR).")       \
    X(FINAL_TEXT_TWICE, "final-text-twice", WARNING, "any",                                                    \
      "a text that was already sent is sent again as another text: clients show it twice",                     \
      "Repeat the complete text only in the final status, or under the id that it was streamed with.")         \
    X(FINAL_TEXT_AS_DELTA, "final-text-as-delta", WARNING, "any",                                              \
      "a delta starts with all the text before it: clients append it and show that text twice",                    \
      "Send only the new text as a delta (append:true), or replace the complete text (append:false).")                 \
    X(RESULT_WITHOUT_CALL, "result-without-call", WARNING, "any",                                              \
      "a tool result belongs to a call that was never made",                                                   \
      "Set the id of the call in the result, and send the call first.")

#define LINT_A2A_RULES(X)                                                                                      \
    X(FIRST_EVENT, "first-event", ERROR, "a2a",                                                                \
      "the first event of a stream is neither a task nor a message",                                           \
      "Start with the task in its current state, or answer with one message.")                                             \
    X(FINAL_CONTRADICTS, "final-contradicts-state", ERROR, "a2a",                                              \
      "final of A2A 0.3 contradicts the state",                                                      \
      "Set final to true with terminal states, and to false while the task continues.")                          \
    X(INTERNAL_EVENT, "internal-event", ERROR, "a2a",                                                          \
      "an internal event (internal:...) is on the wire",                                                       \
      "Do not send internal events to clients; send only A2A events.")                                        \
    X(DIALECT_MIXING, "dialect-mixing", ERROR, "a2a",                                                          \
      "this event uses another version of A2A than the events before it",                                    \
      "Use one version and binding per stream: 1.0 has wrappers and TASK_STATE_ names, 0.3 has kind.")       \
    X(SNAKE_CASE, "snake-case-name", WARNING, "a2a",                                                           \
      "a member's name is in snake_case: conformance kits and strict readers reject it",                       \
      "Write the name in lowerCamelCase.")                                                                     \
    X(TIME_ZONE, "timestamp-not-utc", WARNING, "a2a",                                                          \
      "a timestamp is not in UTC with a Z",                                                                    \
      "Write timestamps like 2026-01-02T03:04:05.678Z.")                                                       \
    X(UNKNOWN_STATE, "unknown-state", WARNING, "a2a",                                                          \
      "a task reports no state (unknown, TASK_STATE_UNSPECIFIED)",                                             \
      "Report one of the eight states; use working while the state is not known.")                       \
    X(CHANGING_REQUEST, "changing-request-id", ERROR, "a2a",                                                   \
      "the JSON-RPC id changes within a stream",                                                               \
      "Repeat the id of the request in every frame, with its JSON type.")                                      \
    X(MISSING_LAST_CHUNK, "missing-last-chunk", NOTE, "a2a",                                                   \
      "an artifact was sent in chunks without a lastChunk",                                               \
      "Set lastChunk:true on the last chunk, also when the task fails or is canceled.")                        \
    X(FINAL_TEXT_DIFFERS, "final-text-differs", NOTE, "a2a",                                                   \
      "the final text neither repeats nor extends the streamed text: clients have to replace the text that they show",  \
      "Put the complete answer into the final status, not its last chunk, or leave the text out there.")

#define LINT_AGUI_RULES(X)                                                                                     \
    X(AGUI_FIRST, "agui-first-event", ERROR, "ag-ui",                                                          \
      "the first event is neither RUN_STARTED nor RUN_ERROR",                                                  \
      "Start with RUN_STARTED.")                                                                               \
    X(AGUI_AFTER_ERROR, "agui-after-run-error", ERROR, "ag-ui",                                                \
      "an event other than RUN_STARTED follows RUN_ERROR",                                                     \
      "Send nothing after RUN_ERROR; another run starts with RUN_STARTED.")                                    \
    X(AGUI_AFTER_FINISH, "agui-after-run-finished", ERROR, "ag-ui",                                            \
      "an event other than RUN_STARTED or RUN_ERROR follows RUN_FINISHED",                                     \
      "Send nothing after RUN_FINISHED; another run starts with RUN_STARTED.")                                 \
    X(AGUI_SECOND_RUN, "agui-run-in-run", ERROR, "ag-ui",                                                      \
      "RUN_STARTED comes while a run is active",                                                               \
      "Finish the run first.")                                                                                 \
    X(AGUI_TEXT_OPEN, "agui-text-opened-twice", ERROR, "ag-ui",                                                \
      "TEXT_MESSAGE_START names a message that is open",                                                       \
      "End the message first, or use another messageId for the new one.")                                         \
    X(AGUI_TEXT_CLOSED, "agui-text-not-open", ERROR, "ag-ui",                                                  \
      "TEXT_MESSAGE_CONTENT or _END names a message that is not open",                                         \
      "Send TEXT_MESSAGE_START with this messageId first.")                                                    \
    X(AGUI_CALL_OPEN, "agui-call-opened-twice", ERROR, "ag-ui",                                                \
      "TOOL_CALL_START names a call that is open",                                                             \
      "End the call first, or use another toolCallId for the new one.")                                           \
    X(AGUI_CALL_CLOSED, "agui-call-not-open", ERROR, "ag-ui",                                                  \
      "TOOL_CALL_ARGS or _END names a call that is not open",                                                  \
      "Send TOOL_CALL_START with this toolCallId first.")                                                      \
    X(AGUI_STEP_OPEN, "agui-step-opened-twice", ERROR, "ag-ui",                                                \
      "STEP_STARTED names a step that is open",                                                                \
      "Finish the step first, or use another stepName for the new one.")                                          \
    X(AGUI_STEP_CLOSED, "agui-step-not-open", ERROR, "ag-ui",                                                  \
      "STEP_FINISHED names a step that is not open",                                                           \
      "Send STEP_STARTED with this stepName, of the same subagent, first.")                                    \
    X(AGUI_SPAN, "agui-reasoning-span", ERROR, "ag-ui",                                                        \
      "REASONING_START names a span that is open, or REASONING_END one that is not",                           \
      "Open every span once and close it once.")                                                               \
    X(AGUI_REASONING, "agui-reasoning-message", ERROR, "ag-ui",                                                \
      "REASONING_MESSAGE_START names a message that is open, or _CONTENT or _END one that is not",             \
      "Send REASONING_MESSAGE_START, then the content, then the end; spans have ids of their own.")            \
    X(AGUI_OPEN_AT_FINISH, "agui-open-at-finish", ERROR, "ag-ui",                                              \
      "RUN_FINISHED comes while something is open",                                                            \
      "End every step, message, reasoning, tool call and subagent before RUN_FINISHED.")                       \
    X(AGUI_SUBAGENT_START, "agui-subagent-start", ERROR, "ag-ui",                                              \
      "SUBAGENT_STARTED names a subagent that was started before, or a parent that was not",                    \
      "Use a new subagentRunId, and start parents first.")                                                     \
    X(AGUI_SUBAGENT_END, "agui-subagent-end", ERROR, "ag-ui",                                                  \
      "SUBAGENT_FINISHED or _ERROR names a subagent that is not active",                                       \
      "Send SUBAGENT_STARTED with this subagentRunId first, and end it once.")                                 \
    X(AGUI_OWNER, "agui-subagent-owner", ERROR, "ag-ui",                                                       \
      "a continuation names another subagent than the event that opened it",                                   \
      "Repeat the subagentRunId of the opening event, or leave it out.")                                       \
    X(AGUI_NULLS, "agui-subagent-null", ERROR, "ag-ui",                                                        \
      "subagentRunId, or a member of a SUBAGENT_ event, is null",                                              \
      "Leave the member out.")                                                                                 \
    X(AGUI_CHUNK, "agui-chunk", ERROR, "ag-ui",                                                                \
      "a chunk does not name the object that it opens, or contradicts the open one",                                       \
      "Name messageId (toolCallId and toolCallName) in the first chunk; or send START, CONTENT, END.")         \
    X(AGUI_UNKNOWN, "agui-unknown-event", WARNING, "ag-ui",                                                    \
      "an event has a type that AG-UI 1.0 does not define: new clients ignore it, older clients end the run",               \
      "Use a type of AG-UI 1.0, in capitals, or CUSTOM.")                                              \
    X(AGUI_RETIRED, "agui-retired-event", WARNING, "ag-ui",                                                    \
      "THINKING events are retired",                                                                           \
      "Send REASONING_ events instead.")                                                                       \
    X(AGUI_EMPTY_DELTA, "agui-empty-delta", WARNING, "ag-ui",                                                  \
      "a delta is empty: clients older than 0.0.50 end the run",                                                   \
      "Leave the event out.")                                                                                  \
    X(AGUI_VERSION, "agui-protocol-version", WARNING, "ag-ui",                                                 \
      "protocolVersion is not of the form MAJOR.MINOR",                                                        \
      "Write \"1.0\".")                                                                                        \
    X(AGUI_INTERRUPTS, "agui-interrupt-ids", WARNING, "ag-ui",                                                 \
      "two interrupts of an outcome have the same id",                                                         \
      "Use a different id for each interrupt: the client's answer refers to it.")

#define LINT_CARD_RULES(X)                                                                                     \
    X(CARD_URL, "card-url", ERROR, "card",                                                                     \
      "an interface has an invalid URL",                                                      \
      "Write an absolute http or https URL; for gRPC host:port.")                                              \
    X(CARD_VERSION, "card-version", ERROR, "card",                                                             \
      "protocolVersion is not a version of A2A",                                                               \
      "Write 1.0, or 0.3 (0.3.0).")                                                                            \
    X(CARD_TRANSPORT, "card-transport", WARNING, "card",                                                       \
      "unknown transport: expected JSONRPC, HTTP+JSON, GRPC or a URI",                                           \
      "Use one of the three names, or a URI for a transport of your own.")                                     \
    X(CARD_INTERFACES, "card-interface-conflict", ERROR, "card",                                               \
      "two interfaces of a card contradict or repeat each other",                                              \
      "List every address once per transport and version, the preferred one first.")                           \
    X(CARD_SKILLS, "card-duplicate-skill", ERROR, "card",                                                      \
      "two skills of a card have the same id",                                                                 \
      "Use a different id for each skill.")                                                                    \
    X(CARD_SECURITY, "card-unknown-scheme", ERROR, "card",                                                     \
      "a security requirement names a scheme that the card does not have",                                     \
      "Add the scheme to securitySchemes, or correct the name.")                                               \
    X(CARD_PLACE, "card-place", WARNING, "card",                                                               \
      "the card is not at /.well-known/agent-card.json",                                                       \
      "Serve it there as well: clients do not read it from other paths.")                                                    \
    X(CARD_HOST, "card-host", NOTE, "card",                                                                    \
      "an interface is at another host or port than the card",                                                 \
      "Check that clients can reach that address; behind a proxy set the public URL.")
/* clang-format on */

#define LINT_RULES(X)                                                                              \
    LINT_ANY_RULES(X)                                                                              \
    DGM_EVENT_RULES(X)                                                                             \
    LINT_A2A_RULES(X)                                                                              \
    LINT_AGUI_RULES(X)                                                                             \
    LINT_CARD_RULES(X)

typedef enum lint_rule {
#define X(sym, id, severity, of, about, fix) LINT_##sym,
    LINT_RULES(X)
#undef X
        LINT_N_RULES
} lint_rule;
