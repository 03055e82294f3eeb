// AG-UI, for what A2A does not have: the agent's own tool calls, and the state that it shares with the page.
import { A2AError, events_of } from "./a2a.js";

// Yields the events of a conversation: the messages so far, then the last turn, to its end.
export async function* thread_events(client, threadId, signal) {
  const body = JSON.stringify({ threadId, runId: "page", protocolVersion: "1.0", messages: [] });
  const headers = client.headers({ "Content-Type": "application/json", Accept: "text/event-stream" });
  const r = await fetch(`${client.base}/ag-ui/connect`, { method: "POST", signal, body, headers });
  if (!r.ok) throw new A2AError(`the events of the conversation: ${r.status}`, r.status);
  for await (const { data } of events_of(r.body)) yield JSON.parse(data);
}

// A JSON Patch (RFC 6902) applied to a copy; null: it does not fit, so the agent has another state.
export function patched(state, patch) {
  try { return apply(state, patch); } catch { return null; }
}

function apply(state, patch) {
  const root = { "": structuredClone(state) };
  const place = (path) => {
    const keys = path.split("/").map((k) => k.replaceAll("~1", "/").replaceAll("~0", "~"));
    const key = keys.pop();
    const parent = keys.reduce((o, k) => (Object.hasOwn(o, k) ? o[k] : undefined), root);
    return { parent, key: Array.isArray(parent) && key === "-" ? parent.length : key };
  };
  const read = (path) => { const { parent, key } = place(path); return parent[key]; };
  const remove = (path) => { const { parent, key } = place(path); if (Array.isArray(parent)) parent.splice(key, 1); else delete parent[key]; };
  const add = (path, value) => { const { parent, key } = place(path); if (Array.isArray(parent)) parent.splice(key, 0, value); else parent[key] = value; };
  for (const { op, path, from, value } of patch) {
    if (op === "add") add(path, value);
    else if (op === "remove") remove(path);
    else if (op === "replace") { const { parent, key } = place(path); parent[key] = value; }
    else if (op === "copy") add(path, structuredClone(read(from)));
    else if (op === "move") { const moved = read(from); remove(from); add(path, moved); }
  }
  return root[""];
}
