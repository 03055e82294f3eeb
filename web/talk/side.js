// The side panel: the agents, and the conversations with the one that is shown.
import { $, el, icon, icon_button } from "../lib/dom.js";
import { get_json } from "../lib/http.js";
import { list_tasks, state_name, text_of } from "../lib/a2a.js";
import { parse_address, talk_address } from "../lib/router.js";
import { show_side } from "../lib/shell.js";
import { on_saved_elsewhere, stored_conversations } from "../lib/store.js";
import { load_agents } from "./agents.js";

const STATES = { submitted: "Waiting to start", working: "Working", "input-required": "Waits for you", "auth-required": "Waits for you to sign in", completed: "Done", failed: "Failed", canceled: "Canceled", rejected: "Refused" };
let refresh_now = () => {};
// Something of a conversation has changed: the list is read again.
export const refresh_side = () => refresh_now();

export function mount_side(element) {
  let agents = [], route = { view: "talk", agent: "", context: "" }, server = [], more = "", reading = 0;
  const agent_list = el("nav", { id: "agents", "aria-label": "Agents" });
  const search = el("input", { id: "search", type: "search", placeholder: "Search conversations", "aria-label": "Search conversations", oninput: () => show_list() });
  const list = el("nav", { id: "conversations", "aria-label": "Conversations" });
  const fresh = el("a", { id: "fresh", class: "button", "data-route": true, href: "/" }, icon("add"), "New conversation");
  const links = el("nav", { class: "side-links", "aria-label": "Tools" },
    el("a", { href: "/compare", "data-route": true }, "Compare"), el("a", { href: "/inspect", "data-route": true }, "Inspect a stream"),
    el("a", { id: "operate-link", href: "/operate", "data-route": true, hidden: true }, "Operate"), el("a", { href: "/licenses" }, "Licenses"));
  element.replaceChildren(
    el("div", { class: "brand" }, el("img", { src: $("link[rel=icon]").href, alt: "", width: "26", height: "26" }), el("strong", {}, "Dragoman"),
      icon_button("close", "Close the panel", () => show_side(false), { class: "icon-button only-small" })),
    agent_list, fresh, el("div", { class: "search-box" }, icon("search"), search), list, links);

  const shown_agent = () => agents.find((a) => a.id === route.agent) ?? (route.view === "talk" && route.agent ? null : agents[0]);

  function show_agents() {
    agent_list.replaceChildren(...agents.map((a) => el("a", { href: talk_address(a.id), "data-route": true, "data-agent": a.id, title: a.description,
      "aria-current": route.view === "talk" && a.id === shown_agent()?.id ? "page" : null }, el("span", { class: "avatar", "aria-hidden": "true" }, [...a.name][0]?.toUpperCase() ?? "?"), el("span", { class: "agent-name" }, a.name))));
    const agent = shown_agent();
    fresh.href = agent ? talk_address(agent.id) : "/";
    fresh.hidden = !agent;
  }

  // One line per conversation: what the server knows of its tasks, and what the browser remembers.
  function rows() {
    const agent = shown_agent(), by_id = new Map();
    if (!agent) return [];
    for (const c of stored_conversations(agent.id)) by_id.set(c.id, { id: c.id, is_stored: true, title: c.title, updated: c.updated, tasks: 0, state: "", texts: [c.title] });
    for (const t of server) {
      const first = (t.history ?? []).find((m) => m.role === "ROLE_USER"), time = Date.parse(t.status?.timestamp ?? "") || 0;
      const text = first ? text_of(first).split("\n")[0].slice(0, 80) : "";
      const row = by_id.get(t.contextId) ?? { id: t.contextId, title: "", updated: 0, tasks: 0, state: "", texts: [] };
      if (!row.tasks) Object.assign(row, { state: state_name(t), preview: text_of(t.status?.message).slice(0, 80) || text });
      if (!row.is_stored) row.title = text || row.title; // of its first task
      row.tasks++;
      row.updated = Math.max(row.updated, time);
      row.texts.push(text, t.id, t.contextId, text_of(t.status?.message).slice(0, 500));
      by_id.set(t.contextId, row);
    }
    return [...by_id.values()].sort((a, b) => b.updated - a.updated);
  }

  function show_list() {
    const words = search.value.trim().toLowerCase(), agent = shown_agent(), all = rows();
    const here = parse_address(location.href).context; // a new conversation has got its id since update()
    const found = all.filter((r) => !words || r.texts.some((t) => t?.toLowerCase().includes(words)));
    list.replaceChildren(...found.slice(0, 300).map((r) => el("a", { href: talk_address(agent.id, r.id), "data-route": true, "data-context": r.id, class: "conversation",
      "aria-current": route.view === "talk" && r.id === here ? "page" : null },
    el("span", { class: "conversation-title" }, r.title || r.preview || "Conversation"),
    el("span", { class: "conversation-about" }, r.state && el("span", { class: `state-dot ${r.state}`, "aria-hidden": "true" }),
      el("span", { class: "conversation-state" }, r.state ? STATES[r.state] ?? r.state : "Messages"), el("time", { datetime: new Date(r.updated).toISOString() }, ago(r.updated)),
      r.tasks > 1 && el("span", {}, `${r.tasks} tasks`)))),
    ...(more ? [el("button", { type: "button", class: "list-more", onclick: () => read_list(true) }, "Older conversations")] : []),
    ...(!found.length ? [el("p", { class: "soft small list-empty" }, words ? "No conversation contains these words." : "Your conversations appear here.")] : []));
  }

  async function read_list(next = false) {
    const agent = shown_agent(), mine = ++reading;
    if (!agent) { server = []; return show_list(); }
    try {
      const r = await list_tasks(agent.base, { historyLength: 100, ...(next ? { pageToken: more } : {}) });
      if (mine !== reading) return;
      server = next ? [...server, ...r.tasks] : r.tasks;
      more = r.nextPageToken ?? "";
    } catch { /* what the browser remembers is shown */ }
    if (mine === reading) show_list();
  }

  let timer = 0, last_agent, me = null;
  refresh_now = () => {
    show_list();
    clearTimeout(timer);
    timer = setTimeout(read_list, 150);
  };
  on_saved_elsewhere(() => refresh_now());
  addEventListener("focus", () => refresh_now());
  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { e.preventDefault(); show_side(true); search.focus(); search.select(); }
    if (e.key === "Escape" && document.body.classList.contains("side-open")) { e.preventDefault(); show_side(false); }
  });
  search.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "Enter") { const first = $("a", list); if (first) { e.preventDefault(); if (e.key === "Enter") first.click(); else first.focus(); } }
    if (e.key === "Escape" && search.value) { e.stopPropagation(); search.value = ""; show_list(); }
  });
  list.addEventListener("keydown", (e) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key], to = step && document.activeElement[step];
    if (to) { e.preventDefault(); to.focus(); }
  });

  return {
    async update(new_route) {
      route = new_route;
      agents = await load_agents().catch(() => agents);
      show_agents();
      show_list();
      const id = shown_agent()?.id;
      me ??= get_json("/debug/me").then((m) => { $("#operate-link").hidden = !m.operator; }).catch(() => { me = null; });
      if (id !== last_agent) {
        last_agent = id;
        server = [];
        show_list();
        await read_list();
      }
    },
  };
}

function ago(time) {
  const s = (Date.now() - time) / 1000;
  if (s < 60) return "now";
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
