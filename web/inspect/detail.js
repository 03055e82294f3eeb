// All details of one record: lint findings, the record, the Task after it, and its frames in each protocol.
import { el } from "../lib/dom.js";
import { changes_of, json_tree, put_text, put_visible } from "../lib/tree.js";
import { loss_line } from "./cells.js";
import { clock_of, value_of } from "./record.js";
import { name_of } from "./source.js";

const SETTLE = 70; // ms that a selection has to last before the Task is read
const KNOWN = 60; // Tasks in memory

export function finding_card(f, on_seq) {
  const title = el("p", {}, el("b", { class: "severity" }, f.severity), " ", el("code", {}, f.rule));
  if (on_seq) title.append(" ", el("button", { type: "button", class: "link", onclick: () => on_seq(f.seq) }, `record ${f.seq}`));
  const card = el("article", { class: `finding ${f.severity}` }, title);
  put_visible(card.appendChild(el("p")), f.message);
  if (f.at) put_visible(card.appendChild(el("p", { class: "soft" })).appendChild(el("code")), f.at);
  if (f.fix) put_visible(card.appendChild(el("p", { class: "fix" }, el("b", {}, "Fix: "))), f.fix);
  return card;
}

export class Detail {
  // source: see source.js; frames_of(record): [{format, entry}] of the columns that are shown
  constructor(box, source, frames_of, is_small_source, has_task) {
    Object.assign(this, { box, source, frames_of, is_small_source, has_task });
    this.folds = new Map(); // seq -> Task
    this.findings = el("div", { class: "findings" });
    this.record = section("Record");
    this.task = section("Task");
    this.wire = section("On the wire", false);
    this.record.box.classList.add("record");
    this.task.box.classList.add("task");
    this.wire.box.classList.add("wire");
    this.wire.box.addEventListener("toggle", () => this.put_wire());
    this.task.box.addEventListener("toggle", () => this.plan_fold());
    box.replaceChildren(this.findings, this.record.box, this.task.box, this.wire.box);
    this.r = null;
  }

  close() { clearTimeout(this.timer); this.stop?.abort(); }

  // r: a record; before: the seq of the one before it, or 0
  show(r, before, findings) {
    const is_other = this.r !== r;
    this.r = r;
    this.before = before;
    this.findings.replaceChildren(...findings.map((f) => finding_card(f)));
    if (!is_other) { this.put_wire(); return; }
    this.record.title.textContent = `Record ${r.seq}`;
    this.record.note.textContent = [clock_of(r.time), `turn ${r.turn}`, r.label].filter(Boolean).join(" · ");
    try {
      this.record.body.replaceChildren(json_tree(value_of(r), { open_levels: 6 }));
    } catch {
      this.record.body.replaceChildren(put_text(el("pre"), r.line));
    }
    this.put_wire();
    this.plan_fold();
  }

  put_wire() {
    if (!this.r || !this.wire.box.open) return;
    this.wire.body.replaceChildren(...this.frames_of(this.r).map(({ format, entry }) => {
      const part = el("div", {}, el("h3", {}, name_of(format)));
      if (!entry) part.append(el("p", { class: "soft" }, entry === null ? "Nothing is sent for this record." : "Not loaded yet."));
      else if (entry.frames) part.append(put_text(el("pre", { tabindex: "0" }), entry.frames, 4000));
      for (const l of entry?.losses ?? []) part.append(loss_line(l));
      return part;
    }));
  }

  plan_fold() {
    clearTimeout(this.timer);
    if (!this.r || !this.task.box.open) return;
    this.task.title.textContent = `Task after record ${this.r.seq}`;
    this.task.body.setAttribute("aria-busy", "true");
    if (!this.has_task(this.r)) {
      this.task.note.textContent = "";
      this.task.body.removeAttribute("aria-busy");
      this.task.body.replaceChildren(el("p", { class: "soft" }, "No task has started yet in this stream."));
    } else if (this.folds.has(this.r.seq)) this.put_fold();
    else this.timer = setTimeout(() => this.put_fold(), SETTLE);
  }

  async put_fold() {
    const r = this.r, before = this.before;
    this.stop?.abort();
    const { signal } = (this.stop = new AbortController());
    try {
      const [task, old] = [await this.fold(r.seq, signal), before && this.is_small_source() ? await this.fold(before, signal) : null];
      if (this.r !== r) return;
      const changed = changes_of(old, task);
      this.task.note.textContent = changed.size ? `${changed.size} changed` : old ? "unchanged" : "";
      this.task.body.replaceChildren(json_tree(task, { open_levels: 6, changed }));
    } catch (e) {
      if (signal.aborted) return;
      this.task.note.textContent = "";
      this.task.body.replaceChildren(el("p", { class: e.status === 404 ? "soft" : "error" }, e.message));
    }
    this.task.body.removeAttribute("aria-busy");
  }

  async fold(seq, signal) {
    let t = this.folds.get(seq);
    if (t === undefined) {
      t = await this.source.fold(seq, signal);
      if (this.folds.size >= KNOWN) this.folds.delete(this.folds.keys().next().value);
      this.folds.set(seq, t);
    }
    return t;
  }
}

function section(name, is_open = true) {
  const title = el("b", {}, name), note = el("span", { class: "soft" }), body = el("div", { class: "body" });
  const box = el("details", { class: "part" }, el("summary", {}, title, " ", note), body);
  box.open = is_open;
  return { box, title, note, body };
}
