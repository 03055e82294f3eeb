// The data that the inspector stores of a record: the text of its line, and a summary for the list. The record is
// parsed again when it is shown, so that 100,000 records are not in memory as objects.
import { size_of } from "../lib/tree.js";

const LARGE = 1 << 20; // characters; larger lines are not parsed for the summary

// A line of the endpoint: {"seq","turn"?,"time"?,"record"}.
export function record_of(line) {
  if (line.length > LARGE) return large(line);
  const o = JSON.parse(line);
  return { seq: o.seq, turn: o.turn ?? 1, time: o.time ? Date.parse(o.time) : NaN, line, ...summary_of(o.record) };
}

function large(line) {
  const head = line.slice(0, 400), number = (name) => Number(new RegExp(`"${name}":(\\d+)`).exec(head)?.[1]);
  const time = /"time":"([^"]+)"/.exec(head)?.[1];
  const name = /"record":\{"(\w+)"/.exec(head)?.[1] ?? "record";
  return { seq: number("seq"), turn: number("turn") || 1, time: time ? Date.parse(time) : NaN, line,
    kind: KIND_OF[name] ?? "internal", label: name, text: `large record, ${size_of(line.length)}`, state: "", id: "" };
}

const KIND_OF = { task: "task", message: "message", statusUpdate: "status", artifactUpdate: "text" };

// The record as an object; parsed at every call.
export const value_of = (r) => JSON.parse(r.line).record;

const text_of = (parts) => (parts ?? []).map((p) => p.text ?? "").join("");
export const state_of = (name) => String(name ?? "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-");

function about_parts(parts) {
  const text = text_of(parts);
  if (text) return text;
  const p = (parts ?? [])[0];
  if (!p) return "";
  if (p.data !== undefined) return p.data?.type ? `${p.data.type} ${p.data.text ?? ""}` : JSON.stringify(p.data)?.slice(0, 200) ?? "";
  return p.filename ?? p.mediaType ?? p.url ?? "file";
}

// kind: lane and colour. label: short name. text: what it carries. id: of the artifact, call or sub-agent.
function summary_of(raw) {
  const one = (kind, label, text = "", more = {}) => ({ kind, label, text: String(text).slice(0, 400), state: "", id: "", ...more });
  if (typeof raw === "string") return one("internal", raw);
  if (!raw) return one("internal", "not JSON");
  const r = as_a2a(raw);
  if (r.type) return agui_or_aisdk(r, one);
  if (r.object === "chat.completion.chunk" || r.choices) return chat(r, one);
  if (r?.task) return one("task", "task", about_parts(r.task.history?.at(-1)?.parts), { state: state_of(r.task.status?.state) });
  if (r?.message) return one("message", "message", about_parts(r.message.parts));
  if (r?.statusUpdate) return status(r.statusUpdate, one);
  if (r?.artifactUpdate) return artifact(r.artifactUpdate, one);
  return internal(r ?? {}, one);
}

// Recordings have the events of their protocol. A2A 0.3 and the envelope of JSON-RPC become A2A 1.0.
const KINDS_03 = { task: "task", message: "message", "status-update": "statusUpdate", "artifact-update": "artifactUpdate" };
export function as_a2a(record) {
  let r = record?.jsonrpc ? record.result ?? record : record;
  if (KINDS_03[r?.kind]) r = { [KINDS_03[r.kind]]: r };
  return r ?? {};
}

// The kind of an event by its type: the first pattern that fits.
const TYPES = [
  [/^response\.(output_item|content_part|output_text|refusal)\./, "text"], [/^response\.reasoning/, "reasoning"], [/^response\.(function_call|mcp)/, "tool"], [/^response\./, "status"],
  [/^(TEXT_MESSAGE_|text-)/, "text"], [/^(REASONING_|THINKING_|reasoning)/, "reasoning"], [/^(TOOL_CALL_|tool-)/, "tool"], [/^(STATE_)/, "state"], [/^SUBAGENT_/, "subagent"],
  [/^(RUN_|STEP_|ACTIVITY_|start|finish|abort|error|data-a2a-status)/, "status"], [/^MESSAGES_/, "message"], [/^(file|source)/, "file"], [/^data-/, "state"],
];
const ENDS = /(_END|-end|TOOL_CALL_RESULT|tool-output-available|\.done)$/;

function agui_or_aisdk(r, one) {
  const kind = TYPES.find(([pattern]) => pattern.test(r.type))?.[1] ?? "internal";
  const text = [r.delta, r.inputTextDelta, r.content, r.text, r.toolCallName, r.toolName, r.output, r.arguments, r.message, r.errorText, r.stepName, r.snapshot, r.data, r.name, r.item?.name, r.part?.text].find((v) => v !== undefined && v !== null && v !== "");
  const state = { RUN_FINISHED: "completed", RUN_ERROR: "failed", finish: "completed", "response.completed": "completed", "response.failed": "failed" }[r.type] ?? "";
  return one(kind, r.type, json(text), { id: r.toolCallId ?? r.messageId ?? r.subagentRunId ?? r.item_id ?? r.id ?? "", is_last: ENDS.test(r.type), state });
}

function chat(r, one) {
  const d = r.choices?.[0]?.delta ?? r.choices?.[0]?.message ?? {}, reason = r.choices?.[0]?.finish_reason;
  if (d.tool_calls) return one("tool", "tool call", d.tool_calls[0]?.function?.name ?? d.tool_calls[0]?.function?.arguments ?? "");
  if (d.reasoning_content) return one("reasoning", "reasoning", d.reasoning_content);
  if (d.content) return one("text", "text", d.content);
  return one("status", reason ? `finish: ${reason}` : r.usage ? "usage" : "chunk", "", { state: reason ? "completed" : "" });
}

function status(u, one) {
  const state = state_of(u.status?.state), parts = u.status?.message?.parts ?? [];
  const data = parts.find((p) => p.data?.type === "status-indicator")?.data;
  const text = data ? data.text ?? "" : about_parts(parts);
  if (data?.agent) return one("subagent", `sub-agent ${data.agent.name ?? ""}`.trim(), text, { state, id: data.agent.name ?? "" });
  return one("status", state, text, { state, is_indicator: Boolean(data) });
}

function artifact(u, one) {
  const a = u.artifact ?? {}, text = text_of(a.parts), p = (a.parts ?? []).find((x) => !("text" in x));
  const flags = `${u.append ? "" : "start"}${u.lastChunk ? " end" : ""}`.trim();
  return one(p && !text ? "file" : "text", p && !text ? (p.data !== undefined ? "data" : "file") : "text", text || a.name || about_parts(a.parts), { id: a.artifactId ?? "", flags, is_last: Boolean(u.lastChunk) });
}

const json = (v) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v).slice(0, 300));

function internal(r, one) {
  switch (r.kind) {
  case "internal:tool-start": return one("tool", `call ${r.toolName}`, json(r.arguments), { id: r.toolCallId });
  case "internal:tool-complete": return one("tool", r.success === false ? "tool failed" : "result", r.success === false ? r.error : json(r.result), { id: r.toolCallId, is_last: true });
  case "internal:reasoning": return one("reasoning", "reasoning", r.text);
  case "internal:llm-call": return one("internal", `model call ${r.iteration ?? ""}`.trim(), "");
  case "internal:usage": return one("internal", "usage", json(r.value));
  case "internal:state": return one("state", r.name ? `state ${r.name}` : "state", json(r.value));
  case "internal:message": return one("message", r.message?.role === "ROLE_USER" ? "user message" : "message", about_parts(r.message?.parts));
  case "internal:step": return one("internal", `step ${r.name ?? ""}`, "");
  case "internal:custom": return one("internal", r.name ?? "custom", json(r.value));
  case "internal:checkpoint": return one("internal", "checkpoint", "");
  default: return one("internal", r.kind ?? r.type ?? "record", "");
  }
}

// The message of the user that a turn answers; null: it is not in these records.
export function question_of(records) {
  for (const r of records) {
    if (r.kind !== "task" && r.kind !== "message") continue;
    const v = as_a2a(value_of(r)), m = v.task ? v.task.history?.findLast((x) => x.role === "ROLE_USER") : v.message;
    if (m?.role === "ROLE_USER") return m;
  }
  return null;
}

const two = (n) => String(n).padStart(2, "0");
export function clock_of(ms) {
  if (Number.isNaN(ms)) return "";
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}
export function gap_of(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1000) return `+${Math.round(ms)} ms`;
  return ms < 60000 ? `+${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s` : `+${(ms / 60000).toFixed(1)} min`;
}
