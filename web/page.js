// The page: the agent, the conversation, the answer that is being streamed.
import { A2AError, Client, is_over, is_waiting, text_of } from "./a2a.js";
import { patched, thread_events } from "./agui.js";
import { label_of } from "./ask.js";
import { make } from "./make.js";
import { Turn } from "./turn.js";

const $ = (id) => document.getElementById(id);
const talk = $("talk"), words = $("words"), send = $("send"), cancel = $("cancel");
const PATIENCE = [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000]; // ms before each attempt to come back

let agents = [], agent = null, card = null, client = null, turn = null, stop = null;
let state; // that the agent shares with the page; undefined: no state was sent
const turns = new Map(); // id of a message of the user -> the turn that answers it
// Of this tab; a reload finds its conversation again.
const kept = JSON.parse(sessionStorage.getItem("dragoman") ?? "{}");
const keep = (change) => sessionStorage.setItem("dragoman", JSON.stringify(Object.assign(kept, change)));
const NOTHING = { context: null, task: null, state: undefined };

// ---- agents -----------------------------------------------------------------------------------------------

async function find_agents() {
  const r = await fetch("/.well-known/ai-catalog.json");
  const catalog = await r.json();
  agents = catalog.entries.map((e) => ({
    id: e.identifier.split(":").pop(),
    name: e.displayName,
    base: new URL(e.url).pathname.replace(/\/\.well-known\/.*$/, ""),
  }));
  const here = location.pathname.replace(/\/$/, "");
  const first = agents.find((a) => here && a.base === here) ?? agents.find((a) => a.id === kept.agent) ?? agents[0];
  $("agents").replaceChildren(...agents.map((a) => {
    const b = make("button", { type: "button", "data-agent": a.id }, a.name);
    b.addEventListener("click", () => { keep(NOTHING); choose(a); });
    return b;
  }));
  await choose(first);
}

async function choose(a) {
  stop?.abort();
  agent = a;
  client = new Client(a.base, kept.token);
  for (const b of $("agents").children) b.setAttribute("aria-current", String(b.dataset.agent === a.id));
  if (kept.agent !== a.id) keep({ ...NOTHING, agent: a.id });
  talk.replaceChildren();
  turns.clear();
  show_state(undefined);
  set_busy(false);
  card = await client.card();
  show_card();
  words.focus();
  await recall();
}

function show_card() {
  const can = card.capabilities ?? {};
  const facts = [card.version && `version ${card.version}`, can.streaming ? "streams" : "answers at once", ...new Set((card.supportedInterfaces ?? []).map((i) => `${i.protocolBinding} ${i.protocolVersion}`))];
  $("card").replaceChildren(
    make("h2", {}, card.name), make("p", {}, card.description ?? ""),
    make("p", {}, facts.filter(Boolean).join(" · ")),
    ...(card.skills?.length ? [make("h3", {}, "Skills"), make("ul", {}, ...card.skills.map((s) => make("li", {}, make("b", {}, s.name), ` ${s.description}`)))] : []),
    make("p", {}, make("a", { href: `${agent.base}/.well-known/agent-card.json`, target: "_blank", rel: "noopener" }, "The card as JSON")));
  const examples = [...new Set((card.skills ?? []).flatMap((s) => s.examples ?? []))].slice(0, 12);
  $("examples").replaceChildren(...examples.map((e) => {
    const b = make("button", { type: "button" }, e);
    b.addEventListener("click", () => say(e));
    return b;
  }));
  document.title = `${card.name} · Dragoman`;
}

// ---- a conversation ------------------------------------------------------------------------------------------

function user_says(text) {
  talk.append(make("div", { class: "user", "aria-label": "You" }, text));
  talk.scrollTop = talk.scrollHeight;
}

function set_busy(busy) {
  send.disabled = busy;
  cancel.hidden = !busy;
}

async function say(text) {
  if (!text.trim() || !client || send.disabled) return;
  words.value = "";
  grow();
  await submit([{ text }], text);
}

// The answer to a question, by its buttons. The stream of the question may not have been closed yet.
async function answer(parts, label) {
  while (send.disabled) await pause(50);
  await submit(parts, label);
}

async function submit(parts, label) {
  turn?.close_question();
  user_says(label);
  const message = { messageId: crypto.randomUUID?.() ?? `m-${Date.now()}-${Math.random()}`, role: "ROLE_USER", parts };
  if (kept.context) message.contextId = kept.context;
  if (kept.task) message.taskId = kept.task;
  const t = new Turn(talk, answer, Boolean(message.taskId));
  turns.set(message.messageId, t);
  await follow(t, "SendStreamingMessage", { message });
}

const pause = (ms) => new Promise((r) => setTimeout(r, ms));

// Reads a stream to its end; a connection that drops is taken up where it was.
async function follow(t, method, params) {
  turn = t;
  stop = new AbortController();
  const { signal } = stop;
  let watching = null;
  set_busy(true);
  try {
    for (let attempt = 0; !is_over(t.state) && !is_waiting(t.state);) {
      try {
        if (method === "SendStreamingMessage" && !card.capabilities?.streaming)
          t.take({ event: await client.call("SendMessage", params) });
        else
          for await (const one of client.stream(method, params, t.cursor, signal)) {
            attempt = 0;
            t.take(one);
            if (t.context) keep({ context: t.context, task: t.task });
            if (t.task) watching ??= watch(t, signal);
            if (is_over(t.state) || is_waiting(t.state)) break; // some streams stay open at a question
          }
        if (is_over(t.state) || is_waiting(t.state)) break;
        throw new Error("the stream ended early");
      } catch (e) {
        if (signal.aborted) return;
        if (e instanceof A2AError && !(e.status >= 502)) throw e;
        if (attempt >= PATIENCE.length || !t.task && attempt) throw new A2AError("the server does not answer");
        t.doing("Connection lost, trying again");
        await pause(PATIENCE[attempt++]);
        // a message that was sent again finds its turn; a task that is known is subscribed to
        if (t.task) [method, params] = ["SubscribeToTask", { id: t.task }];
      }
    }
    // most often it is over by now; after a connection was lost it is read again
    if (t.task) await Promise.race([(watching ?? watch(t, signal)).then((whole) => whole || replay(t, signal)), pause(2000)]);
  } catch (e) {
    if (e.status === 401) ask_for_token();
    t.fail(e.message);
  } finally {
    if (!signal.aborted) {
      set_busy(false);
      keep({ task: is_waiting(t.state) ? t.task : null });
      words.focus();
    }
  }
}

// ---- the agent's own tool calls, and the shared state -------------------------------------------------------------

function show_state(value) {
  state = value;
  $("state").hidden = value === undefined || value === null;
  $("state").querySelector("pre").textContent = JSON.stringify(value, null, 2);
}

// A snapshot has the calls of all turns, each after the message of the user that it belongs to.
function put_calls(messages) {
  const at = new Map();
  let t;
  for (const m of messages) {
    if (m.role === "user") t = turns.get(m.id);
    for (const call of (t && m.toolCalls) || []) {
      at.set(t, (at.get(t) ?? -1) + 1);
      t.put_call(at.get(t), { id: call.id, name: call.function.name, args: call.function.arguments });
    }
    if (t && m.role === "tool") t.take_call({ type: "TOOL_CALL_RESULT", toolCallId: m.toolCallId, content: m.content });
  }
}

// The events of the last turn change the state that was there before it: that one is stored for a reload.
function watch(t, signal) {
  keep({ state: JSON.stringify(state ?? null).length < 1 << 20 ? state : undefined });
  return replay(t, signal);
}

// True: to the end. The answer is complete without it, so an error is not shown.
async function replay(t, signal) {
  let before = kept.state === undefined ? {} : kept.state;
  try {
    for await (const e of thread_events(client, t.context, signal)) {
      if (signal.aborted) return true; // another conversation is shown
      if (e.type === "MESSAGES_SNAPSHOT") put_calls(e.messages);
      else if (e.type.startsWith("TOOL_CALL_")) t.take_call(e);
      else if (e.type === "STATE_SNAPSHOT") show_state((before = e.snapshot));
      else if (e.type === "STATE_DELTA") show_state((before = patched(before, e.delta)));
      else if (e.type === "RUN_FINISHED" || e.type === "RUN_ERROR") return true;
    }
  } catch { /* see above */ }
  return false;
}

// After a reload: what the server knows of this conversation, and what still runs.
async function recall() {
  if (!kept.context) return;
  const list = await client.call("ListTasks", { contextId: kept.context, pageSize: 50, historyLength: 100, includeArtifacts: true });
  let t;
  show_state(kept.state);
  for (const task of list.tasks.reverse()) {
    t = new Turn(talk, answer);
    for (const m of task.history ?? []) {
      if (m.role === "ROLE_USER") {
        user_says(label_of(m));
        turns.set(m.messageId, t);
      }
      else if (text_of(m)) talk.append(make("article", { class: "agent" }, make("div", { class: "asks" }, text_of(m))));
    }
    talk.append(t.box); // behind the messages
    t.take({ event: { task } });
    if (is_waiting(t.state)) keep({ task: (turn = t).task });
    else if (!is_over(t.state)) follow(t, "SubscribeToTask", { id: task.id });
  }
  if (t && (is_over(t.state) || is_waiting(t.state))) {
    stop = new AbortController();
    await replay(t, stop.signal);
  }
  talk.scrollTop = talk.scrollHeight;
}

async function cancel_it() {
  if (!turn?.task || is_over(turn.state)) return;
  turn.doing("Canceling");
  try {
    await client.call("CancelTask", { id: turn.task });
  } catch (e) {
    turn.fail(e.message);
  }
}

// ---- the form ---------------------------------------------------------------------------------------------------

function ask_for_token() {
  $("key").hidden = false;
  $("token").focus();
}

function grow() {
  words.style.height = "auto";
  words.style.height = `${words.scrollHeight + 2}px`;
}

function trouble(e) {
  if (e.status === 401) ask_for_token();
  talk.append(make("div", { class: "error", role: "alert" }, e.message));
}

$("ask").addEventListener("submit", (e) => { e.preventDefault(); say(words.value); });
words.addEventListener("input", grow);
words.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); say(words.value); }
});
document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !cancel.hidden) cancel_it(); });
cancel.addEventListener("click", cancel_it);
$("fresh").addEventListener("click", () => { keep(NOTHING); choose(agent).catch(trouble); });
$("key").addEventListener("submit", (e) => {
  e.preventDefault();
  keep({ token: $("token").value });
  $("key").hidden = true;
  choose(agent).catch(trouble);
});

find_agents().catch(trouble);
