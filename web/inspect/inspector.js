// The inspector of one source: records as rows, protocols as columns, and one record in full beside them.
import { copy_text } from "../lib/clipboard.js";
import { el, per_frame } from "../lib/dom.js";
import { has_token } from "../lib/http.js";
import { announce } from "../lib/shell.js";
import { put_visible, visible } from "../lib/tree.js";
import { draw_cell, lines_of_cell, set_short_ids } from "./cells.js";
import { Columns } from "./columns.js";
import { curl_of } from "./curl.js";
import { Detail, finding_card } from "./detail.js";
import { draw_gantt } from "./gantt.js";
import { slices } from "./lines.js";
import { clock_of, gap_of, question_of, record_of, state_of, value_of } from "./record.js";
import { Rows } from "./rows.js";
import { save } from "./save.js";
import { FORMATS, name_of } from "./source.js";

const KINDS = [["text", "Text"], ["tool", "Tools"], ["reasoning", "Reasoning"], ["status", "Status"], ["subagent", "Sub-agents"], ["state", "State"], ["file", "Files"], ["message", "Messages"], ["task", "Task"], ["internal", "Other"]];
const UNIFORM = 20000; // more rows have all the same height: measuring their cells would take too long
const LINE = 17, PADDING = 14, HEAD_LINES = 2; // pixels; as in inspect.css
const NARROWEST = 205; // pixels of a column
const SMALL_SCREEN = 640; // pixels: details are shown when a record is tapped
const MAX_BANDS = 3; // findings that a row shows
const SMALL = 1 << 20; // bytes of a recording whose Task is read twice, to mark what changed

let made = 0;

export class Inspector {
  // options: turn, seq, is_drawer, on_place({turn, seq}): for the address
  constructor(box, source, options = {}) {
    Object.assign(this, { box, source, options, id: `i${++made}` });
    this.stop = new AbortController();
    this.records = [];
    this.view = []; // what the rows show: indexes of records, or {tail: turn}
    this.at = new Map(); // seq -> index in records
    this.findings = new Map(); // seq -> list
    this.about = { turns: [], columns: [] };
    this.turn = options.turn ?? 0; // 0: all
    this.selected = null;
    this.filter = "";
    this.kinds = new Set();
    this.kind_buttons = new Map();
    this.is_over = !source.is_live;
    this.columns = new Columns(source, (from) => this.columns_changed(from));
    this.formats = FORMATS.map((f) => f.format);
    this.seen = new Set(); // formats whose heading is in sight
    this.grew = per_frame(() => this.records_changed());
    this.build();
  }

  close() {
    this.stop.abort();
    this.columns.close();
    this.rows.close();
    this.detail.close();
    this.watcher.disconnect();
    this.sizes.disconnect();
    clearTimeout(this.gantt_timer);
    clearTimeout(this.findings_timer);
  }

  // ---- elements ---------------------------------------------------------------------------------------------------

  build() {
    this.facts = el("p", { class: "facts soft" });
    this.turns = el("select", { "aria-label": "Turn", onchange: () => this.choose_turn(Number(this.turns.value)) });
    this.search = el("input", { type: "search", placeholder: "Filter records  ( / )", "aria-label": "Filter records", spellcheck: "false", oninput: () => this.refilter() });
    this.kind_box = el("div", { class: "kinds", role: "group", "aria-label": "Kinds of records" });
    this.column_menu = menu("Columns");
    this.copy_menu = menu("Copy as curl");
    this.save_menu = menu("Download");
    this.follow = el("button", { type: "button", class: "follow", "aria-pressed": "true", hidden: true, onclick: () => this.set_follow(this.follow.getAttribute("aria-pressed") !== "true") }, "Follow");
    this.details = el("button", { type: "button", "aria-pressed": "true", onclick: () => this.set_details(this.detail_box.hidden) }, "Details");
    this.gantt = el("div", { class: "gantt", role: "img", "aria-label": "Timeline" });
    this.alerts = el("div", { class: "alerts" });
    this.head = el("div", { class: "row head", role: "row" });
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.grid = el("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": "Records", "aria-describedby": `${this.id}-keys`, onkeydown: (e) => this.key(e), onclick: (e) => this.click(e) },
      el("div", { class: "head-group", role: "rowgroup" }, this.head), this.body);
    this.empty = el("p", { class: "empty soft", role: "status" }, "Reading the records\u2026");
    this.detail_box = el("aside", { class: "detail", "aria-label": "The selected record", tabindex: "-1" });
    this.keys = el("p", { class: "keys soft", id: `${this.id}-keys` }, ...[["\u2191 \u2193", "step"], ["Home End", "first, last"], ["n p", "findings"], ["/", "filter"], ["Enter", "details"], ["d", "details on, off"]].flatMap(([k, what]) => [el("kbd", {}, k), ` ${what}  `]));
    this.root = el("section", { class: `inspector${this.options.is_drawer ? " in-drawer" : ""}`, "aria-label": "Inspector", onkeydown: (e) => this.key_anywhere(e) },
      el("div", { class: "bar" }, this.facts, el("div", { class: "tools" }, this.turns, this.follow, this.details, this.column_menu.box, this.copy_menu.box, this.save_menu.box)),
      this.gantt, this.alerts,
      el("div", { class: "bar filters" }, this.search, this.kind_box),
      el("div", { class: "panes" }, el("div", { class: "left" }, this.grid, this.empty), this.detail_box), this.keys);
    this.box.append(this.root);
    this.ruler = el("span", { class: "ruler", "aria-hidden": "true" }, "0".repeat(100));
    this.grid.append(this.ruler);
    this.rows = new Rows(this.grid, this.body, { height_of: (i) => this.height_of(i), draw: (i, e) => this.draw(i, e), on_range: () => this.show_active() });
    this.detail = new Detail(this.detail_box, this.source, (r) => this.formats.map((format) => ({ format, entry: this.columns.entry(format, r.turn, r.seq) })), () => !(this.source.body?.size > SMALL), (r) => this.has_task(r));
    this.detail.wire.box.addEventListener("toggle", () => this.want_columns());
    this.watcher = new IntersectionObserver((list) => this.headings_seen(list), { root: this.grid, rootMargin: "0px 200px" });
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.grid);
    this.build_columns();
    this.fill_save_menu();
    if (this.box.clientWidth < SMALL_SCREEN) this.set_details(false);
  }

  build_columns() {
    const names = this.formats.map((format) => {
      const about = this.about.columns.find((c) => c.format === format), turn = this.about.turns.find((t) => t.turn === (this.turn || this.about.turns.at(-1)?.turn));
      const own = Boolean(turn?.replays?.includes(format));
      return el("div", { role: "columnheader", class: own ? "own" : "", "data-format": format }, el("b", {}, name_of(format)),
        turn?.replays ? el("span", { class: own ? "tag" : "soft", title: own ? "Exactly the bytes that an endpoint of this server sends for this turn" : "The frames that a client of this protocol would get, converted from the records" }, own ? "as sent" : "converted") : null,
        el("span", { class: "soft" }, about?.contentType?.startsWith("text/event-stream") || about?.framing === "sse" || !about ? "SSE" : about.framing ?? ""));
    });
    this.watcher.disconnect();
    this.seen.clear();
    this.head.replaceChildren(el("div", { role: "columnheader", class: "first" }, el("b", {}, "Records"), el("span", { class: "soft" }, "in their order")), ...names);
    for (const n of names) this.watcher.observe(n);
    this.grid.setAttribute("aria-colcount", this.formats.length + 1);
    this.column_menu.fill([...FORMATS.map(({ format, name }) => check(name, this.formats.includes(format), (on) => this.choose_columns(format, on))),
      check("Short ids", this.short_ids ?? true, (on) => { set_short_ids((this.short_ids = on)); this.rows.set(this.view.length); })]);
    this.fit();
    this.rows.touch_all();
  }

  // Widths of the columns, in pixels and characters.
  fit() {
    const width = this.grid.clientWidth, small = width < SMALL_SCREEN, n = this.formats.length;
    if (!width) return;
    const first = small ? 150 : 250;
    const column = n ? Math.max(small ? width - first : NARROWEST, Math.floor((width - first) / n)) : 0;
    const character = this.ruler.getBoundingClientRect().width / 100 || 7;
    this.characters = Math.max(12, Math.floor((column - 2 * 8 - 2) / character));
    this.grid.style.setProperty("--first", `${n ? first : width}px`);
    this.grid.style.setProperty("--column", `${column}px`);
    this.grid.style.setProperty("--columns", n);
    this.grid.style.setProperty("--seen", `${width}px`);
    this.rows.set(this.view.length);
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  async run() {
    try {
      this.about = await this.source.about(this.stop.signal);
      this.about.turns ??= [];
      this.about.columns ??= [];
      const is_known = this.about.turns.some((t) => t.turn === this.turn);
      if (!is_known) this.turn = this.about.turns.length > 1 ? this.about.turns.at(-1).turn : 0;
      this.options.on_about?.(this.about);
      this.put_about();
      this.build_columns();
      await this.read_records();
    } catch (e) {
      if (!this.stop.signal.aborted) this.fail(e);
    }
  }

  async read_records() {
    const rest = slices();
    for (let wait = 500; ; wait = Math.min(8000, wait * 2)) {
      try {
        for await (const line of this.source.records(this.stop.signal, { after: this.records.at(-1)?.seq })) {
          const r = record_of(line);
          if (this.at.has(r.seq)) continue;
          this.at.set(r.seq, this.records.length);
          this.records.push(r);
          this.grew();
          wait = 500;
          await rest();
        }
        break;
      } catch (e) { // the connection was lost: continue behind the last record
        if (this.stop.signal.aborted || e.status || !this.records.length || !this.source.is_live) throw e;
        await new Promise((r) => setTimeout(r, wait));
      }
    }
    this.is_over = true;
    this.records_changed();
    if (this.source.is_live) this.about = await this.source.about(this.stop.signal).catch(() => this.about);
    this.put_about();
    this.want_columns();
    await this.read_findings();
  }

  async read_findings() {
    const list = await this.source.findings(this.turn || undefined, this.stop.signal).catch((e) => { if (!this.stop.signal.aborted) this.findings_error = e.message; return null; });
    if (!list) return;
    this.findings.clear();
    for (const f of list) {
      if (!this.findings.has(f.seq)) this.findings.set(f.seq, []);
      this.findings.get(f.seq).push(f);
    }
    this.put_alerts(list);
    this.rows.set(this.view.length);
    if (this.selected) this.show_detail();
  }

  records_changed() {
    this.empty.hidden = this.records.length > 0;
    if (!this.records.length && this.is_over) { this.empty.hidden = false; this.empty.textContent = "There are no records."; }
    this.note_turns();
    if (this.records.at(-1)?.state.endsWith("required") && this.asked_at !== this.records.at(-1).seq) { // this turn is over
      this.asked_at = this.records.at(-1).seq;
      this.source.about(this.stop.signal).then((about) => { this.about = about; this.put_about(); this.want_columns(); }, () => {});
    }
    this.extend_view();
    this.plan_gantt();
    this.want_columns();
    if (this.source.is_live && !this.is_over && !this.findings_timer) // lint reads the records so far, too
      this.findings_timer = setTimeout(() => { this.findings_timer = 0; this.read_findings(); }, 2000);
    if (this.options.seq && this.at.has(this.options.seq)) {
      this.select(this.options.seq);
      this.options.seq = 0;
    } else if (!this.selected && this.view.length) this.select(this.records[this.view[0]]?.seq, false);
    this.follow.hidden = this.is_over;
    if (!this.is_over && this.follow.getAttribute("aria-pressed") === "true" && this.grid.scrollTop > 0) this.rows.show(this.view.length - 1);
  }

  // Records of a turn that was not there when the task was described.
  note_turns() {
    const last = this.records.at(-1)?.turn;
    if (last && !this.about.turns.some((t) => t.turn === last)) {
      this.about.turns.push({ turn: last, protocol: "", callerId: "" });
      this.put_about();
    }
  }

  fail(e) {
    const refused = e.status === 401 || e.status === 403;
    this.empty.hidden = false;
    this.empty.replaceChildren(el("b", {}, refused ? "You are not allowed to inspect this task." : e.status === 404 ? "There is no such task." : "The records cannot be read."), el("br"), visible(e.message),
      ...(refused ? [el("br"), "The setting ", el("code", {}, "inspect"), " decides who is allowed: operators, or also the owners of tasks."] : []));
    this.empty.classList.add("refused");
    this.root.classList.add("is-empty");
  }

  // ---- what is shown ----------------------------------------------------------------------------------------------

  put_about() {
    const { task, recorded, turns, name } = this.about, state = state_of(task?.state);
    const last = this.records.findLast?.((r) => r.state)?.state ?? state;
    this.facts.replaceChildren();
    if (task) this.facts.append(el("span", { class: `state ${last}` }, last || "unknown"), " ", el("b", {}, visible(task.agent ?? "")), " ", el("code", { title: "task" }, visible(task.id ?? "")));
    else if (recorded) this.facts.append(el("span", { class: "state" }, "recorded"), " ", el("b", {}, visible(name ?? "stream")), " ", `${name_of(recorded.format)}, ${recorded.framing}`);
    this.facts.append(" ", (this.figures ??= el("span")));
    const value = String(this.turn);
    this.turns.hidden = turns.length < 2;
    this.turns.replaceChildren(el("option", { value: "0" }, "All turns"), ...turns.map((t) => el("option", { value: t.turn }, visible(`Turn ${t.turn}${t.protocol ? ` \u00b7 ${name_of(t.protocol)}` : ""}${t.callerId ? ` \u00b7 ${t.callerId.slice(0, 20)}` : ""}`))));
    this.turns.value = value;
    this.fill_copy_menu();
  }

  shows(r) {
    if (this.turn && r.turn !== this.turn) return false;
    if (this.kinds.size && !this.kinds.has(r.kind)) return false;
    return !this.filter || this.filter.test(r.line);
  }

  extend_view() {
    const from = this.view.length, had = this.tails ?? 0;
    if (had) this.view.length -= had; // the end of the stream comes last
    for (let i = this.viewed ?? 0; i < this.records.length; i++) if (this.shows(this.records[i])) this.view.push(i);
    this.viewed = this.records.length;
    this.tails = 0;
    if (this.is_over && this.records.length && !this.filter && !this.kinds.size) {
      const turn = this.turn || this.records.at(-1).turn;
      if (this.formats.some((f) => this.columns.tail(f, turn)?.frames)) { this.view.push({ tail: turn }); this.tails = 1; }
    }
    this.put_kinds();
    this.grid.setAttribute("aria-rowcount", this.view.length + 1);
    this.rows.set(this.view.length, Math.max(0, Math.min(from - had, this.view.length) - 1));
  }

  async refilter() {
    const text = this.search.value.trim();
    this.filter = text ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i") : "";
    const mine = (this.filtering = {}), rest = slices(), view = [];
    for (let i = 0; i < this.records.length; i++) {
      if (this.shows(this.records[i])) view.push(i);
      if (i % 64 === 0) await rest();
      if (this.filtering !== mine) return;
    }
    this.view = view;
    this.viewed = this.records.length;
    this.tails = 0;
    this.extend_view();
    this.rows.set(this.view.length);
    this.empty.hidden = this.view.length > 0;
    this.empty.textContent = "No record matches.";
    if (text) announce(`${view.length} records match.`);
    if (!view.some((i) => this.records[i] === this.selected) && view.length) this.select(this.records[view[0]].seq, false);
    else this.rows.touch_all();
  }

  put_kinds() {
    for (let i = this.kinds_to ?? 0; i < this.records.length; i++) (this.kinds_seen ??= new Set()).add(this.records[i].kind);
    this.kinds_to = this.records.length;
    for (const [kind, name] of KINDS) { // in this order, whatever comes first
      if (!this.kinds_seen?.has(kind) || this.kind_buttons.has(kind)) continue;
      const b = el("button", { type: "button", "data-kind": kind, class: kind, "aria-pressed": "false", onclick: () => {
        const on = this.kinds.has(kind);
        if (on) this.kinds.delete(kind);
        else this.kinds.add(kind);
        b.setAttribute("aria-pressed", String(!on));
        this.refilter();
      } }, el("i"), name);
      this.kind_buttons.set(kind, b);
      const next = KINDS.slice(KINDS.findIndex(([k]) => k === kind) + 1).find(([k]) => this.kind_buttons.has(k));
      this.kind_box.insertBefore(b, this.kind_buttons.get(next?.[0]) ?? null);
    }
  }

  choose_turn(turn) {
    this.turn = turn;
    this.options.on_place?.({ turn });
    this.build_columns();
    this.put_about();
    this.selected = null;
    this.refilter();
    this.want_columns();
    this.plan_gantt(0);
    this.read_findings();
  }

  choose_columns(format, is_on) {
    this.formats = FORMATS.map((f) => f.format).filter((f) => (f === format ? is_on : this.formats.includes(f)));
    const open = this.column_menu.box.open;
    this.build_columns();
    this.column_menu.box.open = open;
    this.grid.scrollLeft = 0;
    this.rows.set(this.view.length);
    this.detail.put_wire();
  }

  headings_seen(list) {
    for (const e of list) {
      if (e.isIntersecting) this.seen.add(e.target.dataset.format);
      else this.seen.delete(e.target.dataset.format);
    }
    this.want_columns();
  }

  turns_shown() { return this.turn ? [this.turn] : [...new Set(this.about.turns.map((t) => t.turn))]; }

  want_columns() {
    const last = this.records.at(-1)?.seq ?? 0;
    if (!last) return;
    const wanted = this.detail?.wire.box.open ? this.formats : this.seen;
    for (const format of wanted) for (const turn of this.turns_shown()) this.columns.want(format, turn, last, this.is_turn_over(turn));
  }

  is_turn_over(turn) { return this.is_over || (this.about.turns.find((t) => t.turn === turn)?.lastSeq ?? null) !== null; }

  columns_changed(from) {
    const i = from ? this.view.findIndex((v) => v.tail || this.records[v].seq >= from) : 0;
    if (this.is_over) this.extend_view();
    this.rows.set(this.view.length, Math.max(0, i));
    const errors = this.formats.map((f) => [f, this.turns_shown().map((t) => this.columns.column(f, t)?.error).find(Boolean)]);
    for (const [f, error] of errors) {
      const h = this.head.querySelector(`[data-format="${f}"]`);
      if (h && error && !h.querySelector(".problem")) h.append(el("span", { class: "problem", title: visible(error) }, visible(error).slice(0, 80)));
    }
    if (this.selected) this.detail.put_wire();
    if (!this.is_over) this.want_columns();
  }

  plan_gantt(wait = 400) {
    if (wait && this.gantt_timer) return;
    clearTimeout(this.gantt_timer);
    this.gantt_timer = setTimeout(() => {
      this.gantt_timer = 0;
      const list = this.turn ? this.records.filter((r) => r.turn === this.turn) : this.records;
      this.figures.textContent = draw_gantt(this.gantt, list, (seq) => this.select(seq));
      this.put_about();
    }, this.records.length && !this.gantt.children.length ? 0 : wait);
  }

  put_alerts(list) {
    const rank = { error: 0, warning: 1, note: 2 }, rules = new Map();
    for (const f of list) {
      const key = `${f.severity} ${f.rule}`;
      if (!rules.has(key)) rules.set(key, { f, n: 0 });
      rules.get(key).n++;
    }
    const shown = [...rules.values()].sort((a, b) => (rank[a.f.severity] ?? 3) - (rank[b.f.severity] ?? 3)).slice(0, 12);
    this.alerts.replaceChildren(...shown.map(({ f, n }) => {
      const b = el("button", { type: "button", class: f.severity, title: visible(`${f.message}. ${f.fix ?? ""}`), onclick: () => { this.select(f.seq); this.grid.focus(); } });
      put_visible(b, `${f.rule}${n > 1 ? ` \u00d7 ${n}` : ""}`);
      return b;
    }));
    if (shown.length) this.alerts.prepend(el("span", { class: "soft" }, `Lint: ${list.length} finding${list.length === 1 ? "" : "s"}`));
    else this.alerts.replaceChildren(el("span", { class: "soft clean" }, "Lint: no findings"));
  }

  // ---- rows -------------------------------------------------------------------------------------------------------

  entries(v) {
    if (v.tail !== undefined) return this.formats.map((f) => this.columns.tail(f, v.tail));
    const r = this.records[v];
    return this.formats.map((f) => this.columns.entry(f, r.turn, r.seq));
  }

  height_of(i) {
    const v = this.view[i];
    let lines = HEAD_LINES;
    if (this.view.length > UNIFORM) return 4 * LINE + PADDING;
    for (const e of this.entries(v)) if (e) lines = Math.max(lines, lines_of_cell(e, this.characters));
    const found = v.tail === undefined ? this.findings.get(this.records[v].seq)?.length ?? 0 : 0;
    return lines * LINE + PADDING + (found ? Math.min(found, MAX_BANDS) * (2 * LINE + 8) + 6 : 0);
  }

  draw(i, row) {
    const v = this.view[i], r = v.tail === undefined ? this.records[v] : null;
    const is_selected = r !== null && r === this.selected, found = (r && this.findings.get(r.seq)) ?? [];
    row.className = `row ${r ? r.kind : "end"}${is_selected ? " selected" : ""}${found.length ? ` found ${found[0].severity}` : ""}`;
    row.setAttribute("role", "row");
    row.id = `${this.id}-${r ? r.seq : `end${v.tail}`}`;
    row.dataset.index = i;
    row.setAttribute("aria-rowindex", i + 2);
    row.setAttribute("aria-selected", String(is_selected));
    const cells = this.entries(v).map((entry, n) => {
      const cell = el("div", { role: "gridcell", class: "cell", "data-format": this.formats[n] });
      draw_cell(cell, r ? entry : entry ?? null, this.characters, r?.text);
      return cell;
    });
    row.replaceChildren(r ? this.first_cell(i, r, found) : el("div", { role: "gridcell", class: "cell first" }, el("p", { class: "soft" }, "End of the stream")), ...cells);
  }

  first_cell(i, r, found) {
    const before = this.records[this.view[i] - 1];
    const gap = before && before.turn === r.turn ? r.time - before.time : NaN;
    const what = el("p", { class: "what" }, el("i", { class: r.kind }), put_visible(el("b"), r.label), " ");
    if (r.flags) what.append(el("span", { class: "tag" }, r.flags));
    put_visible(what.appendChild(el("span", { class: "text" })), r.text.replace(/\s+/g, " ").slice(0, 160));
    const cell = el("div", { role: "gridcell", class: "cell first" },
      el("p", { class: "when" }, el("b", { class: "seq" }, r.seq), el("time", {}, clock_of(r.time)), el("span", { class: `gap${gap >= 1000 ? " long" : ""}` }, gap_of(gap))), what);
    if (!found.length) return cell;
    cell.append(el("div", { class: "bands" }, found.slice(0, MAX_BANDS).map((f, n) => {
      const band = el("div", { class: `band ${f.severity}` });
      put_visible(band.appendChild(el("p", {}, el("b", {}, f.rule), " ")), f.message);
      put_visible(band.appendChild(el("p", { class: "fix" }, el("b", {}, "Fix "))), (f.fix ?? "") + (n === MAX_BANDS - 1 && found.length > MAX_BANDS ? ` (${found.length - MAX_BANDS} more findings)` : ""));
      return band;
    })));
    return cell;
  }

  // ---- selection and keys -----------------------------------------------------------------------------------------

  index_of(seq) {
    const index = this.at.get(seq);
    return index === undefined ? -1 : this.view.indexOf(index);
  }

  select(seq, is_shown = true) {
    const r = this.records[this.at.get(seq)];
    if (!r) return;
    if (this.index_of(seq) < 0 && (this.turn && r.turn !== this.turn)) return;
    const old = this.selected ? this.index_of(this.selected.seq) : -1;
    this.selected = r;
    const i = this.index_of(seq);
    this.mark(old, false);
    if (i >= 0) {
      this.mark(i, true);
      if (is_shown) this.rows.show(i);
    }
    this.show_active();
    if (is_shown) this.options.on_place?.({ seq });
    this.show_detail();
  }

  // At once and without drawing the row again: never are two rows selected.
  mark(i, is_selected) {
    const row = this.rows.drawn.get(i);
    row?.classList.toggle("selected", is_selected);
    row?.setAttribute("aria-selected", String(is_selected));
  }

  // Only rows in sight have elements that can be named.
  show_active() {
    const id = this.selected && `${this.id}-${this.selected.seq}`;
    if (id && this.rows.drawn.get(this.index_of(this.selected.seq))?.id === id) this.grid.setAttribute("aria-activedescendant", id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  show_detail() {
    const r = this.selected, index = this.at.get(r.seq);
    if (!this.detail_box.hidden) this.detail.show(r, index ? this.records[index - 1].seq : 0, this.findings.get(r.seq) ?? []);
  }

  // A recording of A2A may start in the middle of a task: then there is nothing to fold.
  has_task(r) { return !this.about.recorded?.format.startsWith("a2a") || this.records.some((x) => x.kind === "task" && x.seq <= r.seq); }

  step(n) {
    const i = this.selected ? this.index_of(this.selected.seq) : -1;
    const last = this.view.length - 1 - (this.tails ?? 0);
    const to = Math.max(0, Math.min(last, i + n));
    if (this.view[to] !== undefined && to !== i) this.select(this.records[this.view[to]].seq);
    if (n === Infinity) this.grid.scrollTop = this.grid.scrollHeight;
  }

  step_finding(direction) {
    const seqs = [...this.findings.keys()].filter((s) => this.index_of(s) >= 0).sort((a, b) => a - b), here = this.selected?.seq ?? 0;
    const seq = direction > 0 ? seqs.find((s) => s > here) ?? seqs[0] : seqs.findLast((s) => s < here) ?? seqs.at(-1);
    if (seq) this.select(seq);
  }

  key(e) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / 90));
    const act = { ArrowDown: () => this.step(1), j: () => this.step(1), ArrowUp: () => this.step(-1), k: () => this.step(-1),
      PageDown: () => this.step(page), PageUp: () => this.step(-page), Home: () => this.step(-Infinity), End: () => this.step(Infinity),
      n: () => this.step_finding(1), p: () => this.step_finding(-1), Enter: () => { this.set_details(true); this.detail_box.focus(); }, d: () => this.set_details(this.detail_box.hidden) }[e.key];
    if (!act) return;
    e.preventDefault();
    if (e.key !== "Enter") this.set_follow(e.key === "End");
    act();
  }

  key_anywhere(e) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    if (e.key === "/" && !typing) { e.preventDefault(); this.search.focus(); }
    if (e.key === "Escape") {
      const open = this.root.querySelector("details.menu[open]");
      if (open) { open.open = false; open.querySelector("summary").focus(); e.stopPropagation(); }
      else if (typing || this.detail_box.contains(e.target)) { this.grid.focus(); e.stopPropagation(); }
    }
  }

  set_details(on) {
    this.detail_box.hidden = !on;
    this.details.setAttribute("aria-pressed", String(on));
    this.root.classList.toggle("no-details", !on);
    if (!on || !this.selected) return;
    this.show_detail();
    requestAnimationFrame(() => this.rows.show(this.index_of(this.selected.seq))); // the rows have less room
  }

  set_follow(on) { this.follow.setAttribute("aria-pressed", String(on)); if (on && !this.is_over) this.rows.show(this.view.length - 1); }

  click(e) {
    const row = e.target.closest(".row[data-index]"), v = row && this.view[Number(row.dataset.index)];
    if (!row || v === undefined || v.tail !== undefined || String(getSelection()) !== "") return;
    this.select(this.records[v].seq);
    if (this.box.clientWidth < SMALL_SCREEN) this.set_details(true);
  }

  // ---- copy and download ------------------------------------------------------------------------------------------

  question() { return question_of(this.turn ? this.records.filter((r) => r.turn === this.turn) : this.records); }

  fill_copy_menu() {
    const { task } = this.about;
    this.copy_menu.box.hidden = !task;
    this.copy_menu.fill(FORMATS.map(({ format, name }) => {
      const b = el("button", { type: "button", "data-format": format, onclick: async () => {
        await copy_text(this.curl(format));
        this.copy_menu.box.open = false;
        announce(`The curl line for ${name} was copied.`);
      } }, name);
      return b;
    }));
  }

  curl(format) {
    return curl_of(format, { origin: location.origin, agent: this.about.task.agent, message: this.question() ?? { parts: [{ text: "hello" }] }, has_token: has_token() });
  }

  fill_save_menu() {
    const name = () => (this.about.task?.id ?? this.about.name ?? "stream").replace(/[^\w.-]+/g, "-").slice(0, 60) || "stream";
    const shown = () => (this.turn ? this.records.filter((r) => r.turn === this.turn) : this.records);
    const records = el("button", { type: "button", "data-format": "records", onclick: () => save(`${name()}.jsonl`, shown().map((r) => `${r.line}\n`), "application/x-ndjson") }, "Records (.jsonl)");
    this.save_menu.fill([records, ...FORMATS.map(({ format, name: title }) => el("button", { type: "button", "data-format": format, onclick: (e) => this.save_column(format, name(), e.currentTarget) }, `${title} (.sse)`))]);
  }

  async save_column(format, name, button) {
    const last = this.records.at(-1)?.seq ?? 0, texts = [];
    button.disabled = true;
    for (const turn of this.turns_shown()) {
      await this.columns.want(format, turn, last, this.is_turn_over(turn));
      texts.push(this.columns.text(format, turn));
    }
    button.disabled = false;
    save(`${name}${this.turn ? `-turn-${this.turn}` : ""}.${format}.sse`, texts, "text/event-stream");
  }
}

function check(name, is_on, on_change) {
  const input = el("input", { type: "checkbox", onchange: () => on_change(input.checked) });
  input.checked = is_on;
  return el("label", {}, input, name);
}

function menu(name) {
  const list = el("div", { class: "menu-list" });
  const box = el("details", { class: "menu" }, el("summary", { class: "button" }, name), list);
  box.addEventListener("focusout", (e) => { if (e.relatedTarget && !box.contains(e.relatedTarget)) box.open = false; });
  return { box, fill: (children) => list.replaceChildren(...children) };
}
