// Server-sent events of a response body: yields lists of { id, event, data }, one list for the events that arrived together. Lines
// may end in CR, LF or both, and be split anywhere. Leaving the loop closes the connection.
export async function* sse_lists(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", id = "", event = "", data = null;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const lines = rest.includes("\r") ? rest.split(/\r\n|\n|\r(?!$)/) : rest.split("\n"); // a CR at the end may be half of a CRLF
      rest = lines.pop();
      const list = [];
      for (const line of lines) {
        if (line === "") {
          if (data !== null) list.push({ id, event, data });
          event = "";
          data = null;
        } else if (!line.startsWith(":")) {
          const colon = line.indexOf(":"), name = colon < 0 ? line : line.slice(0, colon);
          const text = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
          if (name === "data") data = data === null ? text : `${data}\n${text}`;
          else if (name === "id") id = text;
          else if (name === "event") event = text;
        }
      }
      if (list.length) yield list;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
