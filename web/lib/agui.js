// AG-UI 1.0. The page sends and reads over AG-UI, because one stream has everything that an agent sends.
import { error_of, request } from "./http.js";
import { sse_lists } from "./sse.js";

// The events of a run, in lists of batches: { id, events }. A list has all batches that arrived together, because an asynchronous
// step for each record would cost as much time as reading it. A batch is one record of the task's log, or a part of a Message
// answer; id is its number. To read the remaining events, pass the last received id as `cursor`; "0" reads a run from its start.
// on_open({ task, turn }): the response has started. The run goes on without a reader.
export async function* run_batches(base, input, { path = "", cursor, signal, on_open } = {}) {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream", "X-Dragoman-On-Disconnect": "continue" };
  if (cursor !== undefined) headers["Last-Event-ID"] = String(cursor);
  const body = JSON.stringify({ protocolVersion: "1.0", messages: [], ...input });
  const r = await request(`${base}/ag-ui${path}`, { method: "POST", headers, body, signal });
  if (!r.ok) throw await error_of(r);
  on_open?.({ task: r.headers.get("x-a2a-task-id") ?? "", turn: Number(r.headers.get("x-dragoman-turn")) || 0 });
  let events = [], last = 0;
  for await (const list of sse_lists(r.body)) {
    const batches = [];
    for (const { id, data } of list) {
      events.push(JSON.parse(data));
      const number = Number(id) || 0;
      if (number === last) continue; // the last frame of a record has its number
      last = number;
      batches.push({ id: number, events });
      events = [];
    }
    if (batches.length) yield batches;
  }
  if (events.length) yield [{ id: last, events }];
}

// Deltas of the same text that follow each other become one.
const JOINED = new Set(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"]);
export function join_deltas(events) {
  const list = [];
  let last = null, parts = [];
  const close = () => { if (parts.length > 1) list[list.length - 1] = { ...last, delta: parts.join("") }; parts = []; };
  for (const e of events) {
    if (last && JOINED.has(e.type) && e.type === last.type && e.messageId === last.messageId && e.toolCallId === last.toolCallId) {
      parts.push(e.delta);
      continue;
    }
    close();
    list.push(e);
    last = e;
    parts = [e.delta];
  }
  close();
  return list;
}
