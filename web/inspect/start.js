// /inspect without a task: drop a recording, paste one, choose a task, or talk to another A2A server.
import { el, new_id } from "../lib/dom.js";
import { error_of, get_json, request } from "../lib/http.js";
import { json_tree, put_visible, visible } from "../lib/tree.js";
import { state_of } from "./record.js";

const MAX_ANSWER = 16 << 20; // characters that are read of another server's answer

export function build_start({ me, open_recording, signal }) {
  const file = el("input", { type: "file", id: "recording", onchange: () => { if (file.files[0]) open_recording(file.files[0].name, file.files[0]); } });
  const paste = el("textarea", { rows: "5", id: "recording-text", spellcheck: "false", placeholder: 'data: {"jsonrpc":"2.0","id":1,"result":{...}}' });
  const box = el("div", { class: "start" },
    el("section", { class: "panel drop" },
      el("h2", {}, "Inspect a recorded stream"),
      el("p", { class: "soft" }, "Drop a file here: A2A 1.0 or 0.3, AG-UI, Chat, Responses or AI SDK, as server-sent events, JSON lines or an array. The format is detected."),
      el("label", { class: "button primary", for: "recording" }, "Choose a file"), file,
      el("details", {}, el("summary", {}, "Paste text instead"),
        el("form", { onsubmit: (e) => { e.preventDefault(); if (paste.value.trim()) open_recording("pasted text", new Blob([paste.value])); } },
          el("label", { for: "recording-text", class: "visually-hidden" }, "Recorded stream"), paste, el("button", { class: "button" }, "Inspect it")))),
    el("section", { class: "panel" }, el("h2", {}, "Why text appears twice"),
      el("p", { class: "soft" }, "The same run in a client that shows status text as content, and in a client that shows it as an indicator."),
      el("p", {}, el("a", { href: "/compare", "data-route": true }, "Open the comparison"))));
  me.then((can) => {
    if (signal.aborted) return;
    if (can.remote) box.append(remote_form(open_recording, signal));
    if (can.operator) put_tasks(box, signal);
  });
  return box;
}

async function put_tasks(box, signal) {
  const found = await get_json("/debug/tasks", { signal }).catch(() => null);
  const tasks = found?.tasks ?? [];
  if (!tasks.length || signal.aborted) return;
  box.append(el("section", { class: "panel wide" }, el("h2", {}, "Live tasks"), task_table(tasks)));
}

export function task_address(t) {
  const q = new URLSearchParams();
  for (const k of ["tenant", "principal"]) if (t[k]) q.set(k, t[k]);
  return `/inspect/${encodeURIComponent(t.id)}${String(q) ? `?${q}` : ""}`;
}

export function task_table(tasks) {
  const owner = (t) => [t.tenant, t.principal].filter(Boolean).join(" / ");
  return el("table", { class: "tasks" },
    el("thead", {}, el("tr", {}, ["Task", "Agent", "State", "Owner", "Since"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, tasks.slice(0, 200).map((t) => el("tr", {},
      el("td", {}, el("a", { href: task_address(t), "data-route": true }, el("code", {}, visible(t.id)))),
      el("td", {}, visible(t.agent ?? "")), el("td", {}, el("span", { class: `state ${state_of(t.state)}` }, state_of(t.state))),
      el("td", {}, visible(owner(t))), el("td", {}, t.since ? new Date(t.since).toLocaleTimeString() : "")))));
}

// ---- another A2A server ---------------------------------------------------------------------------------------------

function remote_form(open_recording, signal) {
  const url = el("input", { type: "url", id: "remote-url", required: true, placeholder: "https://agent.example" });
  const token = el("input", { type: "password", id: "remote-token", autocomplete: "off", spellcheck: "false" });
  const words = el("input", { type: "text", id: "remote-words", value: "Hello" });
  const shown = el("div", { class: "remote-card", "aria-live": "polite" });
  const send = el("button", { class: "button primary" }, "Send and inspect");
  const headers = (more) => (token.value ? { ...more, Authorization: `Bearer ${token.value}` } : more);
  const post = async (path, body) => {
    const r = await request(path, { method: "POST", signal, headers: { "Content-Type": "application/json", Accept: "text/event-stream, application/json" }, body: JSON.stringify(body) });
    if (!r.ok) throw await error_of(r);
    return r;
  };
  const fail = (e) => shown.replaceChildren(put_visible(el("p", { class: "error", role: "alert" }), e.message));
  const read_card = async () => {
    const card = await (await post("/debug/remote/card", { url: url.value, headers: headers({}) })).json();
    shown.replaceChildren(put_visible(el("h3"), String(card.name ?? "")), put_visible(el("p", { class: "soft" }), String(card.description ?? "").slice(0, 500)), el("details", {}, el("summary", {}, "The card"), json_tree(card)));
    return card;
  };
  const run = async () => {
    const card = await read_card(), { address, body, version } = message_to(card, url.value, words.value);
    if (token.value && new URL(address, url.value).origin !== new URL(url.value).origin) // a card must not send the token elsewhere
      throw new Error(`The card names another server: ${address}. The token is sent only to the address that was entered.`);
    const r = await post("/debug/remote/send", { url: address, body, headers: headers({ "A2A-Version": version }) });
    const { text, is_cut } = await text_of(r.body);
    open_recording(`${card.name ?? "remote agent"}${is_cut ? " (the answer is cut off)" : ""}`, new Blob([text]));
  };
  return el("section", { class: "panel" }, el("h2", {}, "Another A2A server"),
    el("p", { class: "soft" }, "This server sends the request. Its rules for addresses apply."),
    el("form", { class: "remote", onsubmit: (e) => { e.preventDefault(); send.disabled = true; run().catch(fail).finally(() => { send.disabled = false; }); } },
      el("label", { for: "remote-url" }, "Address"), url, el("label", { for: "remote-token" }, "Token, if required (it is not stored)"), token,
      el("label", { for: "remote-words" }, "Message"), words,
      el("div", { class: "actions" }, el("button", { type: "button", class: "button", onclick: () => { if (url.reportValidity()) read_card().catch(fail); } }, "Read the card"), send)), shown);
}

// The interface of the card that speaks JSON-RPC, and a message in its version.
function message_to(card, url, text) {
  const one = (card.supportedInterfaces ?? []).find((i) => i.protocolBinding === "JSONRPC");
  const is_10 = Boolean(one?.protocolVersion?.startsWith("1"));
  const address = one?.url ?? card.url ?? url;
  const message = is_10 ? { messageId: new_id(), role: "ROLE_USER", parts: [{ text }] } : { kind: "message", messageId: new_id(), role: "user", parts: [{ kind: "text", text }] };
  return { address, version: is_10 ? "1.0" : "0.3", body: { jsonrpc: "2.0", id: 1, method: is_10 ? "SendStreamingMessage" : "message/stream", params: { message } } };
}

// The part that has arrived is worth a look, too: is_cut.
async function text_of(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader(), parts = [];
  let is_cut = false;
  for (let n = 0; !is_cut; ) {
    const { value, done } = await reader.read().catch((e) => {
      if (!n || e.name === "AbortError") throw e;
      return { value: "", done: (is_cut = true) };
    });
    if (done) break;
    parts.push(value);
    n += value.length;
    is_cut = n >= MAX_ANSWER;
  }
  reader.cancel().catch(() => {});
  return { text: parts.join(""), is_cut };
}
