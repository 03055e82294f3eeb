// Two clients that read the same run. The naive one appends every text that it sees, as useChat does. The
// other one reads what this server sends to useChat: text deltas are the answer, a status is an indicator.

import { as_a2a } from "../inspect/record.js";

// Every text part, in the order of the records.
export function naive_text(raw) {
  const record = as_a2a(raw), parts = record.statusUpdate?.status?.message?.parts ?? record.artifactUpdate?.artifact?.parts ?? (/agent/i.test(record.message?.role) ? record.message.parts : []) ?? [];
  return parts.map((p) => p.text ?? "").join("");
}

export function* data_of(frames) {
  for (const block of frames.split(/\r?\n\r?\n/)) {
    const data = block.split(/\r?\n/).filter((l) => l.startsWith("data:")).map((l) => l.slice(5).replace(/^ /, "")).join("\n");
    if (!data || data === "[DONE]") continue;
    try { yield JSON.parse(data); } catch { /* not JSON: another framing */ }
  }
}

// What a client of each protocol shows: {answer, doing}. Feed the frames in order.
export const READERS = {
  "ai-sdk": () => {
    const texts = new Map();
    return (o, shown) => {
      if (o.type === "text-start") texts.set(o.id, "");
      else if (o.type === "text-delta") texts.set(o.id, (texts.get(o.id) ?? "") + o.delta);
      else if (o.type === "reset-step") texts.clear();
      else if (o.type === "data-a2a-status") shown.doing = o.data?.text ?? shown.doing;
      shown.answer = [...texts.values()].filter(Boolean).join("\n\n");
    };
  },
  "ag-ui": () => {
    const texts = new Map();
    return (o, shown) => {
      if (o.type === "TEXT_MESSAGE_CONTENT") texts.set(o.messageId, (texts.get(o.messageId) ?? "") + o.delta);
      else if (o.type === "MESSAGES_SNAPSHOT") {
        texts.clear();
        for (const m of o.messages ?? []) if (m.role === "assistant" && m.content) texts.set(m.id, m.content);
      } else if (o.type === "ACTIVITY_SNAPSHOT") shown.doing = o.content?.text ?? "";
      shown.answer = [...texts.values()].join("\n\n");
    };
  },
  "openai-chat": () => (o, shown) => {
    const d = o.choices?.[0]?.delta ?? {};
    if (d.reasoning_content) shown.doing = d.reasoning_content.trim();
    shown.answer += d.content ?? "";
  },
  "openai-responses": () => (o, shown) => {
    if (o.type === "response.output_text.delta") shown.answer += o.delta;
    else if (o.type === "response.reasoning_summary_text.delta") shown.doing = o.delta.trim();
  },
};
