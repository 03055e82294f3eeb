// The same answer from four agents, as they send it in A2A 0.3.
const update = (state, parts, final = false) => ({
  kind: "status-update", taskId: "task-004", contextId: "context-004", final,
  status: { state, timestamp: "2026-01-02T03:04:05.000Z", ...(parts && { message: { kind: "message", role: "agent", messageId: `m-${state}-${JSON.stringify(parts).length}`, taskId: "task-004", contextId: "context-004", parts } }) },
});
const text = (t) => [{ kind: "text", text: t }];
const TASK = { kind: "task", id: "task-004", contextId: "context-004", status: { state: "submitted", timestamp: "2026-01-02T03:04:05.000Z" },
  history: [{ kind: "message", role: "user", messageId: "m-user", taskId: "task-004", contextId: "context-004", parts: text("Say hello") }] };
const ANSWER = [update("working", text("Hello")), update("working", text(" world")), update("completed", text("Hello world!"), true)];
const artifact = (t, append, last) => ({ kind: "artifact-update", taskId: "task-004", contextId: "context-004", append, lastChunk: last, artifact: { artifactId: "answer", parts: text(t) } });
const STREAMED = [artifact("Hello", false, false), artifact(" world", true, false), artifact("!", true, true), update("completed", text("Hello world!"), true)];

export const RECORDINGS = [
  { id: "text", name: "Status as text", about: "The progress is a text part, like the answer: a client cannot distinguish them.", events: [TASK, update("working", text("Processing...")), ...ANSWER] },
  { id: "none", name: "Option 1: no message", about: "The working status has no message. Clients show an indicator of their own. The last text still repeats the pieces: it is the complete text, not one more piece.", events: [TASK, update("working"), ...ANSWER] },
  { id: "data", name: "Option 2: a data part", about: "The progress is a data part of the type status-indicator. Clients show it outside of the answer.", events: [TASK, update("working", [{ kind: "data", data: { type: "status-indicator", text: "Processing...", displayAs: "loading" } }]), ...ANSWER] },
  { id: "artifact", name: "Like the agents of Dragoman", about: "The answer is an artifact in chunks, and the status is an indicator. The last status repeats the whole text, for clients that read only this status.", events: [TASK, update("working", [{ kind: "data", data: { type: "status-indicator", text: "Processing...", displayAs: "loading" } }]), ...STREAMED] },
];

export const stream_of = (recording) => recording.events.map((e) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: e })}\n\n`).join("");
