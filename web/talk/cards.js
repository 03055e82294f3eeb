// The cards of a turn: reasoning, a tool call, state, a sub-agent, progress. Each grows with its events.
import { el, icon } from "../lib/dom.js";
import { json_tree, put_text, visible } from "../lib/tree.js";
import { patched } from "../lib/patch.js";

const seconds = (ms) => (ms < 950 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`);
export const time_text = seconds;

// One line of a value, for a summary.
export function one_line(value, max = 90) {
  let text = value;
  if (value && typeof value === "object" && !Array.isArray(value))
    text = Object.entries(value).map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ");
  else if (typeof value !== "string") text = JSON.stringify(value) ?? "";
  const start = text.slice(0, 4 * max).replace(/\s+/g, " ");
  return visible(start.length > max ? `${start.slice(0, max)}…` : start);
}

const parse = (text) => { try { return JSON.parse(text); } catch { return text; } };
const value_view = (value) => (value && typeof value === "object" ? json_tree(value) : put_text(el("pre", { class: "plain", tabindex: "0" }), String(value)));

const fold = (kind, icon_name, ...summary) => {
  const body = el("div", { class: "fold-body" }), head = el("summary", {}, icon(icon_name), summary, icon("down"));
  return { element: el("details", { class: `fold ${kind}` }, head, body), body };
};

export class ReasoningCard {
  constructor() {
    this.title = el("span", { class: "fold-title" }, "Thinking");
    ({ element: this.element, body: this.body } = fold("reasoning-card", "thought", this.title));
    this.box = el("div", { class: "reasoning-text" });
    this.body.append(this.box);
    this.started = performance.now();
    this.element.classList.add("is-live");
  }
  // in pieces, so that a long text is not laid out from its start again
  append(delta) {
    const line = this.text && this.text.length > 4096 ? delta.indexOf("\n") : -1;
    if (line >= 0) this.text.appendData(delta.slice(0, line));
    if (!this.text || line >= 0 || this.text.length > 65536) this.box.append(el("div", {}, (this.text = document.createTextNode(delta.slice(line + 1)))));
    else this.text.appendData(delta);
  }
  end(ms) {
    this.element.classList.remove("is-live");
    this.title.textContent = ms ? `Thought for ${seconds(ms)}` : "Thoughts";
  }
}

export class ToolCard {
  constructor(id, name) {
    this.id = id;
    this.name = name;
    this.args_text = "";
    this.title = el("span", { class: "fold-title" }, visible(name.slice(0, 200)));
    this.preview = el("span", { class: "fold-preview" });
    this.status = el("span", { class: "status-chip" }, "running");
    ({ element: this.element, body: this.body } = fold("tool-card", "tool", this.title, this.preview, this.status));
    this.element.dataset.tool = name;
    this.element.classList.add("is-live");
    this.args_box = el("div", { class: "labelled" }, el("h3", {}, "Arguments"));
    this.result_box = el("div", { class: "labelled", hidden: true }, el("h3", {}, "Result"));
    this.body.append(this.args_box, this.result_box);
    this.started = performance.now();
  }
  append_arguments(delta) { this.args_text += delta; }
  end_arguments() {
    const args = parse(this.args_text || "{}");
    this.args_box.replaceChildren(this.args_box.firstChild, value_view(args));
    this.args_preview = one_line(args, 60);
    this.preview.textContent = this.args_preview;
  }
  // ms: how long it took, when that is known
  result(content, ms) {
    const value = typeof content === "string" ? parse(content) : content, failed = value && typeof value === "object" && "error" in value;
    this.has_result = true;
    this.element.classList.remove("is-live", "is-pending");
    this.element.classList.toggle("is-failed", Boolean(failed));
    this.form?.remove();
    this.result_box.hidden = false;
    this.result_box.replaceChildren(this.result_box.firstChild, value_view(value));
    this.preview.textContent = `${this.args_preview ?? ""} → ${one_line(value, 60)}`;
    this.status.textContent = failed ? "failed" : ms ? seconds(ms) : "done";
  }
  // The caller runs it.
  wait_for(form, description) {
    if (description) this.body.prepend(put_text(el("p", { class: "soft small tool-description" }), description));
    this.element.classList.remove("is-live");
    this.element.classList.add("is-pending");
    this.element.open = true;
    this.status.textContent = "waits for you";
    this.body.append((this.form = form));
  }
  close() {
    this.element.classList.remove("is-live");
    if (this.has_result) return;
    if (this.element.classList.contains("is-pending")) {
      this.element.classList.remove("is-pending");
      this.element.open = false;
      this.form?.remove();
      this.status.textContent = "sent to the caller";
    } else {
      this.status.textContent = "no result";
    }
  }
}

export class StateCard {
  constructor() {
    this.count = el("span", { class: "status-chip" });
    ({ element: this.element, body: this.body } = fold("state-card", "state", el("span", { class: "fold-title" }, "Shared state"), this.count));
    this.element.open = true;
    this.tree = el("div", { class: "state-now" });
    this.list = el("ol", { class: "changes" });
    this.changes = el("details", { class: "state-changes", open: true, hidden: true }, el("summary", {}, "Changes"), this.list);
    this.body.append(this.tree, this.changes);
    this.n = 0;
    this.is_dirty = false;
  }
  snapshot(value) {
    this.value = value;
    this.is_dirty = true;
    this.add_change("snapshot", "", value);
  }
  delta(patch, before) {
    this.value = patched(this.value === undefined ? before ?? {} : this.value, patch);
    this.is_dirty = true;
    for (const c of patch.slice(0, 200)) this.add_change(c.op, c.path, "value" in c ? c.value : c.from);
  }
  add_change(op, path, value) {
    this.n++;
    if (this.list.children.length >= 500) this.list.firstChild.remove();
    this.list.append(el("li", {}, el("code", { class: "op" }, one_line(op, 20)), path && el("code", { class: "path" }, one_line(path, 200)), el("span", { class: "soft" }, one_line(value, 80))));
  }
  flush() {
    if (!this.is_dirty) return;
    this.is_dirty = false;
    this.tree.replaceChildren(json_tree(this.value, { open_levels: 2 }));
    this.changes.hidden = this.n < 2;
    this.count.textContent = this.n === 1 ? "1 change" : `${this.n} changes`;
  }
}

export class AgentCard {
  constructor(name, description) {
    this.status = el("span", { class: "status-chip" }, "working");
    ({ element: this.element, body: this.body } = fold("subagent-card", "agent", el("span", { class: "fold-title" }, visible(name.slice(0, 200))), el("span", { class: "fold-preview" }, "sub-agent"), this.status));
    this.element.classList.add("is-live");
    this.element.open = true;
    this.started = performance.now();
    if (description) this.body.append(el("p", { class: "soft small" }, visible(description.slice(0, 1000))));
  }
  end(text, ms) {
    this.element.classList.remove("is-live");
    this.element.classList.toggle("is-failed", Boolean(text));
    this.status.textContent = text || (ms ? seconds(ms) : "done");
  }
  note(text) { if (this.body.children.length < 500) this.body.append(el("p", { class: "small indicator" }, visible(text))); }
}

// What the agent was doing, step by step, apart from its answer.
export class ProgressCard {
  constructor() {
    this.title = el("span", { class: "fold-title" });
    this.list = el("ol", { class: "indicators" });
    ({ element: this.element, body: this.body } = fold("progress-card", "check", this.title));
    this.body.append(this.list);
    this.texts = [];
  }
  add(text) {
    if (this.texts.at(-1) === text) return;
    this.texts.push(text);
    if (this.list.children.length < 500) this.list.append(el("li", {}, visible(text)));
    this.title.textContent = this.texts.length === 1 ? "1 status update" : `${this.texts.length} status updates`;
  }
}
