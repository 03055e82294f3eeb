// The view of a conversation with an agent. Conversations stay in memory when another one is shown, so their streams go on.
import { $, el, icon, icon_button } from "../lib/dom.js";
import { rename, talk_address } from "../lib/router.js";
import { view_header } from "../lib/shell.js";
import { on_saved_elsewhere } from "../lib/store.js";
import { load_agents, load_card } from "./agents.js";
import { accept_drops, new_composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { stay_at_end } from "./scroll.js";
import { refresh_side } from "./side.js";
import { new_tools_button } from "./tools_dialog.js";
import { copy_with } from "./turn.js";

const MAX_IN_MEMORY = 12;
const conversations = new Map(); // agent/context -> Conversation
const drafts = new Map(); // agent/context -> what was written there and not sent; while another one is shown

export async function mount_talk(element, first_route) {
  let agent = null, conversation = null, follow_end = null, change = 0, set_opened;
  const opened = new Promise((resolve) => (set_opened = resolve)); // a conversation is shown, or the agent is unknown
  const title = el("span", { id: "agent-title" }), log = el("div", { id: "log", role: "log", "aria-live": "off", "aria-label": "Conversation", tabindex: "0" });
  const about = el("button", { type: "button", id: "about", onclick: () => show_card(agent) }, "About");
  const tools = new_tools_button();
  const composer = new_composer({
    buttons: [tools.element],
    on_send: send,
    on_stop: () => conversation.stop(),
    recall: (n) => conversation.sent_texts()[n],
  });
  const stage = el("div", { class: "stage" }, log);
  element.replaceChildren(view_header(title, about), stage, composer.element);
  const draft_key = () => `${conversation.agent.id}/${conversation.id}`;
  const store_draft = () => {
    const draft = conversation && composer.draft();
    if (draft) drafts.set(draft_key(), draft);
    else if (conversation) drafts.delete(draft_key());
  };
  const stop_drops = accept_drops(element, composer.add_files);

  // A message may be written and sent before the list of agents is here.
  async function send(message, replaces) {
    await opened;
    if (!conversation) return composer.reset(message); // the agent is unknown
    await conversation.send(message, replaces).catch(show_fault);
  }
  const show_fault = (e) => conversation.thread.append(el("p", { class: "failure", role: "alert" }, e.message));

  function hooks_of(c) {
    const is_shown = () => c === conversation;
    return {
      on_change: refresh_side,
      on_sent: () => { if (is_shown()) { show_empty(); follow_end?.go_to_end(); } },
      on_running: (running) => { if (is_shown()) composer.set_running(running); },
      on_edit: (slot) => composer.edit(slot.entry.message.text, slot),
      on_named: (id) => {
        for (const [key, other] of conversations) if (other === c) conversations.delete(key); // its first message was edited
        conversations.set(`${c.agent.id}/${id}`, c);
        if (is_shown()) rename(talk_address(c.agent.id, id));
      },
    };
  }

  function conversation_for(id) {
    const found = id && conversations.get(`${agent.id}/${id}`);
    if (found) return found;
    const c = new Conversation(agent, id, null);
    c.hooks = hooks_of(c);
    if (id) conversations.set(`${agent.id}/${id}`, c);
    for (const [key, old] of conversations) {
      if (conversations.size <= MAX_IN_MEMORY) break;
      if (old !== conversation && old !== c && !old.running.length) conversations.delete(key);
    }
    return c;
  }

  async function update(route) {
    const mine = ++change, agents = await load_agents();
    if (mine !== change) return;
    const wanted = route.agent ? agents.find((a) => a.id === route.agent) : agents[0];
    const early = conversation ? null : composer.draft();
    store_draft();
    composer.element.hidden = !wanted;
    about.hidden = !wanted;
    if (!wanted) return show_unknown(route.agent, agents);
    if (!route.agent) rename(talk_address(wanted.id, route.context));
    const is_same = conversation && wanted === agent && route.context === (conversation.id ?? "") && route.context;
    agent = wanted;
    if (is_same) return;
    title.textContent = agent.name;
    document.title = `${agent.name} · Dragoman`;
    tools.show_for(agent);
    follow_end?.stop();
    const known = route.context && conversations.has(`${agent.id}/${route.context}`);
    conversation = conversation_for(route.context);
    conversation.hooks = hooks_of(conversation);
    log.replaceChildren(conversation.thread);
    follow_end = stay_at_end(log, conversation.thread);
    composer.reset(drafts.get(draft_key()) ?? early);
    drafts.delete(draft_key());
    set_opened();
    composer.set_running(conversation.running.length > 0);
    if (matchMedia("(hover: hover)").matches) composer.focus();
    if (route.context && !known) await restore(conversation);
    if (mine !== change) return;
    show_empty();
    follow_end.go_to_end();
    load_card(agent).catch(show_fault);
  }

  async function restore(c) {
    const note = el("p", { class: "soft small loading" }, "Reading the conversation");
    log.prepend(note);
    try {
      if (!(await c.restore())) c.thread.append(el("p", { class: "note unknown" }, "Unknown conversation: neither the server nor this browser has stored it. It may belong to another user, or it was deleted. A message starts it again."));
    } catch (e) {
      conversations.delete(`${c.agent.id}/${c.id}`);
      c.thread.append(el("p", { class: "failure", role: "alert" }, `The conversation could not be read: ${e.message}`));
    } finally { note.remove(); }
  }

  // Before the first message: what the agent is, and examples.
  async function show_empty() {
    $(".welcome", log)?.remove();
    if (!conversation.is_empty || $(".note, .failure", conversation.thread)) return;
    const box = el("div", { class: "welcome" }, el("h2", {}, agent.name), agent.description && el("p", { class: "soft" }, agent.description));
    log.prepend(box);
    const shown = conversation, card = await load_card(agent).catch(() => null);
    if (!card || shown !== conversation || !box.isConnected) return;
    const examples = [...new Set((card.skills ?? []).flatMap((s) => s.examples ?? []))].slice(0, 12);
    if (examples.length) box.append(el("div", { id: "examples", role: "group", "aria-label": "Examples" },
      examples.map((e) => el("button", { type: "button", class: "example", onclick: () => conversation.send({ text: e }).catch(show_fault) }, e))));
  }

  function show_unknown(id, agents) {
    conversation = null;
    set_opened();
    follow_end?.stop();
    follow_end = null;
    title.textContent = "Unknown agent";
    document.title = "Unknown agent · Dragoman";
    log.replaceChildren(el("div", { class: "welcome" }, el("h2", {}, "There is no such agent"), el("p", { class: "soft" }, `The agent id "${id}" is unknown. Agents of this server:`),
      el("ul", { class: "agent-choices" }, agents.map((a) => el("li", {}, el("a", { href: talk_address(a.id), "data-route": true }, a.name), a.description && el("span", { class: "soft" }, ` ${a.description}`))))));
  }

  const on_key = (e) => {
    if (e.defaultPrevented) return; // the panel or the inspector has used it
    if (e.key === "Escape" && conversation?.running.length && !document.querySelector("dialog[open]")) { e.preventDefault(); conversation.stop(); }
    if (e.key === "/" && !e.target.closest("input, textarea, select")) { e.preventDefault(); composer.focus(); }
  };
  const on_leave = () => { for (const c of conversations.values()) c.store_unfinished(); };
  document.addEventListener("keydown", on_key);
  addEventListener("pagehide", on_leave);
  const stop_saved = on_saved_elsewhere((id) => { for (const c of conversations.values()) if (c.id === id) c.catch_up().catch(() => {}); });
  update(first_route).catch((e) => log.replaceChildren(el("p", { class: "failure", role: "alert" }, `The agents could not be read: ${e.message}`))).finally(set_opened);

  return {
    update,
    unmount() {
      store_draft();
      follow_end?.stop();
      stop_drops();
      stop_saved();
      tools.stop();
      document.removeEventListener("keydown", on_key);
      removeEventListener("pagehide", on_leave);
    },
  };
}

// What the agent's card says, and the addresses that clients need.
async function show_card(agent) {
  const card = await load_card(agent).catch(() => null);
  if (!card) return;
  const at = `${location.origin}${agent.base}`, can = card.capabilities ?? {};
  const bases = [["A2A", `${at}/`], ["AG-UI", `${at}/ag-ui`], ["OpenAI", `${at}/v1`], ["AI SDK", `${at}/ai-sdk`]];
  const dialog = el("dialog", { class: "card-dialog", "aria-label": `About ${card.name}` },
    el("div", { class: "dialog-head" }, el("h2", {}, card.name), icon_button("close", "Close", () => dialog.close())),
    el("p", {}, card.description ?? ""),
    el("dl", {}, [["Version", card.version], ["Streams", can.streaming ? "yes" : "no"], ["Interfaces", [...new Set((card.supportedInterfaces ?? []).map((i) => `${i.protocolBinding} ${i.protocolVersion}`))].join(", ")], ["Provider", card.provider?.organization]]
      .filter(([, v]) => v).map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    card.skills?.length > 0 && [el("h3", {}, "Skills"), el("ul", {}, card.skills.map((s) => el("li", {}, el("strong", {}, s.name), ` ${s.description ?? ""}`)))],
    el("h3", {}, "Addresses for clients"),
    el("ul", { class: "addresses" }, bases.map(([name, url]) => el("li", {}, el("span", {}, name), el("code", {}, url), icon_button("copy", `Copy the ${name} address`, (e) => copy_with(e.currentTarget, url))))),
    el("p", {}, el("a", { href: `${agent.base}/.well-known/agent-card.json`, target: "_blank", rel: "noopener" }, icon("link"), "The card as JSON")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
