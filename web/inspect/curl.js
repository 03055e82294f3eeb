// The request of a turn as a curl line, for each protocol. A line never contains the token, but
// $DRAGOMAN_TOKEN, which the shell replaces.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const text_of = (message) => (message.parts ?? []).map((p) => p.text ?? "").join("") || "hello";

// A2A 0.3 has kinds; files and data are named differently.
function part_03(p) {
  if (p.text !== undefined) return { kind: "text", text: p.text };
  if (p.data !== undefined) return { kind: "data", data: p.data };
  const file = p.url !== undefined ? { uri: p.url } : { bytes: p.raw };
  return { kind: "file", file: { ...file, ...(p.mediaType && { mimeType: p.mediaType }), ...(p.filename && { name: p.filename }) } };
}

// New ids: a message that is sent again under its id finds its old turn.
const fresh = () => crypto.randomUUID?.() ?? `m-${Date.now()}-${Math.round(Math.random() * 1e9)}`;

function request_of(format, message, agent) {
  const text = text_of(message);
  switch (format) {
  case "a2a-1.0": return ["/", { jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message: { messageId: fresh(), role: "ROLE_USER", parts: message.parts } } }, ["A2A-Version: 1.0"]];
  case "a2a-0.3": return ["/", { jsonrpc: "2.0", id: 1, method: "message/stream", params: { message: { kind: "message", messageId: fresh(), role: "user", parts: (message.parts ?? []).map(part_03) } } }, ["A2A-Version: 0.3"]];
  case "ag-ui": return ["/ag-ui", { threadId: fresh(), runId: fresh(), state: {}, messages: [{ id: fresh(), role: "user", content: text }], tools: [], context: [], forwardedProps: {} }];
  case "openai-chat": return ["/v1/chat/completions", { model: agent, stream: true, messages: [{ role: "user", content: text }] }];
  case "openai-responses": return ["/v1/responses", { model: agent, stream: true, input: text }];
  case "ai-sdk": return ["/ai-sdk", { id: fresh(), messages: [{ id: fresh(), role: "user", parts: [{ type: "text", text }] }], trigger: "submit-message" }];
  default: throw new Error(`no request is known for ${format}`);
  }
}

// options: origin, agent (its id), message (A2A 1.0), has_token
export function curl_of(format, { origin, agent, message, has_token }) {
  const [path, body, headers = []] = request_of(format, message, agent);
  const url = `${origin}${agent ? `/agents/${encodeURIComponent(agent)}` : ""}${path}`;
  const lines = [`curl -sN ${quoted(url)}`, ...["Content-Type: application/json", ...headers].map((h) => `-H ${quoted(h)}`)];
  if (has_token) lines.push('-H "Authorization: Bearer $DRAGOMAN_TOKEN"');
  lines.push(`-d ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}
