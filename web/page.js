// The page: the agent, the conversation, the answer that is being streamed.
import { A2AError, Client, is_over, is_waiting, text_of } from "./a2a.js";
import { make, Turn } from "./turn.js";

const $ = (id) => document.getElementById(id);
const talk = $("talk"), words = $("words"), send = $("send"), cancel = $("cancel");
const PATIENCE = [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000]; // ms before each attempt to come back

let agents = [], agent = null, card = null, client = null, turn = null, stop = null;
// Of this tab; a reload finds its conversation again.
const kept = JSON.parse(sessionStorage.getItem("dragoman") ?? "{}");
const keep = (change) => sessionStorage.setItem("dragoman", JSON.stringify(Object.assign(kept, change)));

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
    b.addEventListener("click", () => { keep({ context: null, task: null }); choose(a); });
    return b;
  }));
  await choose(first);
}

async function choose(a) {
  stop?.abort();
  agent = a;
  client = new Client(a.base, kept.token);
  for (const b of $("agents").children) b.setAttribute("aria-current", String(b.dataset.agent === a.id));
  if (kept.agent !== a.id) keep({ agent: a.id, context: null, task: null });
  talk.replaceChildren();
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
  user_says(text);
  words.value = "";
  grow();
  const message = { messageId: crypto.randomUUID?.() ?? `m-${Date.now()}-${Math.random()}`, role: "ROLE_USER", parts: [{ text }] };
  if (kept.context) message.contextId = kept.context;
  if (kept.task) message.taskId = kept.task;
  await follow(new Turn(talk, Boolean(message.taskId)), "SendStreamingMessage", { message });
}

// Reads a stream to its end; a connection that drops is taken up where it was.
async function follow(t, method, params) {
  turn = t;
  stop = new AbortController();
  const { signal } = stop;
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
            if (is_over(t.state) || is_waiting(t.state)) break; // some streams stay open at a question
          }
        if (is_over(t.state) || is_waiting(t.state)) break;
        throw new Error("the stream ended early");
      } catch (e) {
        if (signal.aborted) return;
        if (e instanceof A2AError && !(e.status >= 502)) throw e;
        if (attempt >= PATIENCE.length || !t.task && attempt) throw new A2AError("the server does not answer");
        t.doing("Connection lost, trying again");
        await new Promise((r) => setTimeout(r, PATIENCE[attempt++]));
        // a message that was sent again finds its turn; a task that is known is subscribed to
        if (t.task) [method, params] = ["SubscribeToTask", { id: t.task }];
      }
    }
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

// After a reload: what the server knows of this conversation, and what still runs.
async function recall() {
  if (!kept.context) return;
  const list = await client.call("ListTasks", { contextId: kept.context, pageSize: 50, historyLength: 100, includeArtifacts: true });
  for (const task of list.tasks.reverse()) {
    for (const m of task.history ?? []) {
      if (m.role === "ROLE_USER") user_says(text_of(m));
      else if (text_of(m)) talk.append(make("article", { class: "agent" }, make("div", { class: "asks" }, text_of(m))));
    }
    const t = new Turn(talk);
    t.take({ event: { task } });
    if (is_waiting(t.state)) keep({ task: t.task });
    else if (!is_over(t.state)) follow(t, "SubscribeToTask", { id: task.id });
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
$("fresh").addEventListener("click", () => { keep({ context: null, task: null }); choose(agent).catch(trouble); });
$("key").addEventListener("submit", (e) => {
  e.preventDefault();
  keep({ token: $("token").value });
  $("key").hidden = true;
  choose(agent).catch(trouble);
});

find_agents().catch(trouble);
