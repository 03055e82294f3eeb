// Data in the browser's storage: conversations, and their answers that the server does not store (Messages without a
// task). The number is limited: the oldest conversations are deleted first.
const MAX_CONVERSATIONS = 200, MAX_ENTRIES = 500, MAX_MESSAGE_CHARS = 65536;
const INDEX = "dragoman:conversations", key_of = (id) => `dragoman:conversation:${id}`;

function read(key, otherwise) {
  try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
}

// Without storage (private windows, a full disk) the page works, and forgets.
function write(key, value) {
  const text = JSON.stringify(value);
  for (let attempt = 0; attempt < 20; attempt++) {
    try { localStorage.setItem(key, text); return; } catch { /* full */ }
    const list = read(INDEX, []), oldest = list.at(-1);
    if (!oldest || key_of(oldest.id) === key) return;
    localStorage.removeItem(key_of(oldest.id));
    try { localStorage.setItem(INDEX, JSON.stringify(list.slice(0, -1))); } catch { return; }
  }
}

// { id, agent, title, updated }, the newest first
export const stored_conversations = (agent) => read(INDEX, []).filter((c) => !agent || c.agent === agent);

// { id, agent, title, updated, entries: [...], dropped: [message ids] }; null: not known here
export function load_conversation(id) {
  const c = read(key_of(id), null);
  return c && Array.isArray(c.entries) ? c : null;
}

export function save_conversation(c) {
  c.entries = c.entries.slice(-MAX_ENTRIES);
  write(key_of(c.id), { ...c, entries: c.entries.map(stored_entry) });
  const { id, agent, title, updated } = c;
  const list = [{ id, agent, title, updated }, ...read(INDEX, []).filter((x) => x.id !== id)].sort((a, b) => b.updated - a.updated);
  for (const old of list.slice(MAX_CONVERSATIONS)) localStorage.removeItem(key_of(old.id));
  write(INDEX, list.slice(0, MAX_CONVERSATIONS));
}

// handler(id): another tab has saved this conversation.
export function on_saved_elsewhere(handler) {
  const listen = (e) => { if (e.key?.startsWith(key_of(""))) handler(e.key.slice(key_of("").length)); };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}

// ---- the tools that the page offers, as the user wrote them -----------------------------------------------------------

const tools_key = (agent) => `dragoman:tools:${agent}`;
const unsaved_tools = new Map(); // of agents, if the browser has no storage

export function load_tools(agent) {
  const text = unsaved_tools.get(agent) ?? read(tools_key(agent), "");
  return typeof text === "string" ? text : "";
}

export function save_tools(agent, text) {
  write(tools_key(agent), text);
  if (read(tools_key(agent), null) === text) unsaved_tools.delete(agent);
  else unsaved_tools.set(agent, text);
}

// handler(): another tab has saved the tools of an agent.
export function on_tools_saved_elsewhere(handler) {
  const listen = (e) => { if (e.key?.startsWith(tools_key(""))) handler(); };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}

// Bytes of files are not stored, nor long answers in full.
function stored_entry({ message, events, ...entry }) {
  const stored = { ...entry };
  if (message) stored.message = { ...message, files: message.files?.map(({ name, type, size }) => ({ name, type, size })) };
  if (events && !entry.task) stored.events = bounded(events);
  return stored;
}

function bounded(events) {
  let left = MAX_MESSAGE_CHARS;
  return events.map((e) => {
    if (typeof e.delta !== "string") {
      const n = JSON.stringify(e).length;
      return (left -= n) >= 0 || /^(RUN|TEXT_MESSAGE)_/.test(e.type) ? e : { type: "CUSTOM", name: "dragoman:not-stored" };
    }
    const delta = e.delta.slice(0, Math.max(0, left));
    left -= e.delta.length;
    return delta === e.delta ? e : { ...e, delta: `${delta}\n\n(The rest was too long for the browser to store.)` };
  });
}
