// The turn as bars over time: waiting, reasoning, tools, sub-agents, text, state. A click selects the record.
import { el } from "../lib/dom.js";
import { visible } from "../lib/tree.js";
import { gap_of } from "./record.js";

const MAX_BARS = 400;
const LANES = [["waiting", "Waiting"], ["reasoning", "Reasoning"], ["tool", "Tools"], ["subagent", "Sub-agents"], ["text", "Text"], ["file", "Files"], ["state", "State"]];
const CONTENT = new Set(["text", "file", "message"]);

// Spans {lane, from, to, seq, name} and figures of some records of one or more turns. Without times (a recording
// has none) the position in the stream is used.
export function spans_of(records) {
  const has_time = records.length > 0 && records.every((r) => !Number.isNaN(r.time));
  const spans = [], open = new Map();
  let first_text = NaN, tools = 0;
  const at = (i) => (has_time ? records[i].time : i);
  const close = (key, to) => { const s = open.get(key); if (s) { s.to = to; open.delete(key); } };
  const extend = (key, i, span) => {
    let s = open.get(key);
    if (!s) { open.set(key, (s = { from: at(i), to: at(i), seq: records[i].seq, ...span })); spans.push(s); }
    s.to = at(i);
    return s;
  };
  for (let i = 0; i < records.length; i++) {
    const r = records[i];
    if (i === 0 || r.turn !== records[i - 1].turn) { open.clear(); extend("waiting", i, { lane: "waiting", name: "waiting for the agent" }); }
    if (r.kind === "status" && !r.state.endsWith("required")) { if (open.has("waiting")) open.get("waiting").to = at(i); }
    else if (r.kind !== "task" && !(r.kind === "message" && r.label === "user message")) close("waiting", at(i));
    if (r.kind !== "reasoning") open.delete("reasoning");
    if (r.kind === "reasoning") extend("reasoning", i, { lane: "reasoning", name: "reasoning" });
    else if (r.kind === "tool") {
      const s = extend(`tool ${r.id}`, i, { lane: "tool", name: r.label.replace(/^call /, "") });
      if (r.is_last) open.delete(`tool ${r.id}`);
      else { s.is_open = true; tools++; }
      if (r.is_last) s.is_open = false;
    } else if (r.kind === "subagent") extend(`agent ${r.id}`, i, { lane: "subagent", name: r.label });
    else if (r.kind === "text") {
      extend(`text ${r.id}`, i, { lane: "text", name: "text" });
      if (r.is_last) open.delete(`text ${r.id}`);
    } else if (r.kind === "file" || r.kind === "state") spans.push({ lane: r.kind, from: at(i), to: at(i), seq: r.seq, name: r.label });
    if (CONTENT.has(r.kind) && r.label !== "user message" && Number.isNaN(first_text)) first_text = at(i) - at(0);
    if (r.kind === "status" && r.state.endsWith("required")) extend("question", i, { lane: "waiting", name: "waiting for an answer" });
  }
  const start = records.length ? at(0) : 0, end = records.length ? at(records.length - 1) : 0;
  for (const s of spans) if (s.is_open) s.to = end;
  return { spans, start, end, first_text, tools, has_time };
}

export function figures_of({ start, end, first_text, tools, has_time }, n) {
  const facts = [`${n.toLocaleString("en")} record${n === 1 ? "" : "s"}`];
  if (has_time && !Number.isNaN(first_text)) facts.push(`first text after ${gap_of(first_text).slice(1)}`);
  if (has_time) facts.push(`${gap_of(end - start).slice(1)} in all`);
  if (tools) facts.push(`${tools} tool call${tools === 1 ? "" : "s"}`);
  return facts.join(" · ");
}

export function draw_gantt(box, records, on_select) {
  const found = spans_of(records), width = found.end - found.start || 1;
  const percent = (t) => ((t - found.start) / width) * 100;
  const rows = LANES.map(([lane, name]) => [lane, name, found.spans.filter((s) => s.lane === lane)]).filter(([, , list]) => list.length);
  box.replaceChildren(...rows.map(([lane, name, list]) => {
    const track = el("div", { class: "track" });
    const step = Math.ceil(list.length / MAX_BARS);
    for (let i = 0; i < list.length; i += step) {
      const s = list[i], last = list[Math.min(i + step, list.length) - 1];
      const bar = el("i", { class: `bar ${lane}`, title: visible(`${s.name}, record ${s.seq}${found.has_time ? `, ${gap_of(last.to - s.from).slice(1)}` : ""}`) });
      bar.style.left = `min(${percent(s.from)}%, 100% - 3px)`; // its least width
      bar.style.width = `${Math.max(0, percent(last.to) - percent(s.from))}%`;
      bar.addEventListener("click", () => on_select(s.seq));
      track.append(bar);
    }
    return el("div", { class: "lane" }, el("span", {}, name), track);
  }));
  if (found.has_time && !Number.isNaN(found.first_text) && found.end > found.start) {
    const tracks = el("div", { class: "marks" });
    const mark = el("i", { class: "first", title: "first text" });
    mark.style.left = `${(found.first_text / width) * 100}%`;
    tracks.append(mark);
    box.append(tracks);
  }
  const figures = figures_of(found, records.length);
  box.setAttribute("aria-label", `Timeline: ${figures}`);
  return figures;
}
