// The source of an inspector: a task of this server, or a recorded stream that the server decodes. Both have the
// same methods:
//   about()            {title, facts, turns: [{turn, protocol, callerId, firstSeq, lastSeq}], columns: [{format, ...}]}
//   records(signal)    lines {"seq","turn","time","record"}, while they arrive
//   column(format, turn, signal, is_over)   {seq, frames, losses}, one by one; last the end of the stream, if is_over
//   findings(turn, signal), fold(seq, signal)
import { error_of, request } from "../lib/http.js";
import { lines_of } from "./lines.js";

export const FORMATS = [
  { format: "a2a-1.0", name: "A2A 1.0" }, { format: "a2a-0.3", name: "A2A 0.3" }, { format: "ag-ui", name: "AG-UI" },
  { format: "openai-chat", name: "Chat" }, { format: "openai-responses", name: "Responses" }, { format: "ai-sdk", name: "AI SDK" },
];
export const name_of = (format) => FORMATS.find((f) => f.format === format)?.name ?? format;

async function checked(response) {
  if (!response.ok) throw await error_of(response);
  return response;
}

async function* objects_of(body) {
  for await (const line of lines_of(body)) yield JSON.parse(line);
}

const query = (o) => {
  const q = new URLSearchParams(Object.entries(o).filter(([, v]) => v !== undefined && v !== null && v !== ""));
  return String(q) ? `?${q}` : "";
};

export class TaskSource {
  // owner: {tenant, principal} of somebody else's task, for operators
  constructor(id, owner = {}) { Object.assign(this, { id, owner, is_live: true }); }

  async get(path, parameters, signal, headers = {}) {
    return checked(await request(`/debug/tasks/${encodeURIComponent(this.id)}${path}${query({ ...parameters, ...this.owner })}`, { signal, headers }));
  }

  async about(signal) { return (await this.get("", {}, signal)).json(); }
  async *records(signal, { follow = true, after } = {}) { yield* lines_of((await this.get("/records", { follow: follow ? undefined : 0, after }, signal)).body); }
  // Of a running turn the frames so far: a browser has few connections to a server, so none stays open for a column.
  async *column(format, turn, signal, is_over) { yield* objects_of((await this.get(`/columns/${format}`, { turn, follow: is_over ? undefined : 0 }, signal)).body); }
  async findings(turn, signal) { return (await (await this.get("/findings", { turn }, signal)).json()).findings; }
  async fold(seq, signal) { return (await this.get("/fold", { seq }, signal)).json(); }
}

export class StreamSource {
  // body: the recorded stream, as a Blob, so that it can be sent again for each question
  constructor(name, body, format = "auto") { Object.assign(this, { name, body, format, is_live: false }); }

  async post(path, parameters, signal) {
    const headers = { "Content-Type": "application/octet-stream" };
    return checked(await request(`/debug/streams${path}${query({ format: this.format, ...parameters })}`, { method: "POST", body: this.body, signal, headers }));
  }

  async read(signal) { return (this.whole ??= await (await this.post("", {}, signal)).json()); }

  async about(signal) {
    const { format, framing, records } = await this.read(signal);
    const turns = new Map();
    for (const r of records) {
      const n = r.turn ?? 1, t = turns.get(n) ?? { turn: n, protocol: format, callerId: "", firstSeq: r.seq };
      turns.set(n, Object.assign(t, { lastSeq: r.seq }));
    }
    return { name: this.name, recorded: { format, framing }, task: null, records: records.length, turns: [...turns.values()], columns: FORMATS.map((f) => ({ format: f.format, framing: "sse" })) };
  }

  async *records(signal) { for (const r of (await this.read(signal)).records) yield JSON.stringify(r); }
  async *column(format, turn, signal) { yield* objects_of((await this.post(`/columns/${format}`, { turn }, signal)).body); }
  async findings(turn, signal) { return (await (await this.post("/findings", { turn }, signal)).json()).findings; }
  async fold(seq, signal) { return (await this.post("/fold", { seq }, signal)).json(); }
}
