// A2A 1.0 over JSON-RPC and server-sent events: what the page needs of it.

export class A2AError extends Error {
  constructor(message, status = 0) { super(message); this.status = status; }
}

export class Client {
  constructor(base, token) { this.base = base; this.token = token; }

  headers(more = {}) {
    const h = { "A2A-Version": "1.0", ...more };
    if (this.token) h.Authorization = `Bearer ${this.token}`;
    return h;
  }

  async card() {
    const r = await fetch(`${this.base}/.well-known/agent-card.json`, { headers: this.headers() });
    if (!r.ok) throw new A2AError(`the card: ${r.status}`, r.status);
    return r.json();
  }

  post(method, params, more, signal) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID?.() ?? String(Date.now()), method, params });
    return fetch(`${this.base}/`, { method: "POST", signal, body, headers: this.headers({ "Content-Type": "application/json", ...more }) });
  }

  async call(method, params) {
    const r = await this.post(method, params, { Accept: "application/json" });
    return result_of(r.status, await r.json().catch(() => null));
  }

  // Yields { id, event } of a stream; an error before or in it is thrown.
  async *stream(method, params, last, signal) {
    const more = { Accept: "text/event-stream" };
    if (last) more["Last-Event-ID"] = last;
    const r = await this.post(method, params, more, signal);
    if (!(r.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      result_of(r.status, await r.json().catch(() => null));
      throw new A2AError("the server did not open a stream", r.status);
    }
    for await (const { id, data } of events_of(r.body))
      yield { id, event: result_of(r.status, JSON.parse(data)) };
  }
}

function result_of(status, body) {
  if (body?.error) throw new A2AError(body.error.message ?? "error", status);
  if (!body || !("result" in body)) throw new A2AError(`the server answered with status ${status}`, status);
  return body.result;
}

// Server-sent events of a body: lines may end in CR, LF or both, and be cut anywhere.
export async function* events_of(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", id = "", data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      // a CR at the end may be half of a CRLF: wait for what follows
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { id, data: data.join("\n") };
          data = [];
        } else if (!line.startsWith(":")) {
          const at = line.indexOf(":");
          const name = at < 0 ? line : line.slice(0, at);
          const text = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
          if (name === "data") data.push(text);
          else if (name === "id") id = text;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // who stops reading closes the connection
  }
}

export const is_over = (state) => ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].some((s) => state === `TASK_STATE_${s}`);
export const is_waiting = (state) => ["INPUT_REQUIRED", "AUTH_REQUIRED"].some((s) => state === `TASK_STATE_${s}`);
export const text_of = (message) => (message?.parts ?? []).map((p) => p.text ?? "").join("");
