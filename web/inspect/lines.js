// Lines of a response, while they arrive. Work is done in slices, so that a long stream never blocks the page.
const SLICE = 8; // ms

export const breath = () => new Promise((r) => {
  const c = new MessageChannel();
  c.port1.onmessage = () => { c.port1.close(); r(); };
  c.port2.postMessage(0);
});

// Counts the time since the last pause; `await rest()` pauses when a slice is used up.
export function slices() {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE) return;
    await breath();
    since = performance.now();
  };
}

export async function* lines_of(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const rest = slices();
  let parts = []; // of a line that is not complete
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      let from = 0;
      for (let to; (to = value.indexOf("\n", from)) >= 0; from = to + 1) {
        parts.push(value.slice(from, to));
        const line = parts.length === 1 ? parts[0] : parts.join("");
        parts = [];
        if (line) yield line;
        await rest();
      }
      if (from < value.length) parts.push(value.slice(from));
    }
    if (parts.length) yield parts.join("");
  } finally {
    reader.cancel().catch(() => {}); // closes the connection
  }
}
