// Frames as they are on the wire, in a cell whose width is given: counts their lines and draws them.
import { el } from "../lib/dom.js";
import { put_visible, visible } from "../lib/tree.js";

export const MAX_LINES = 7; // of frames in a cell; the selected record shows everything
const LOSS_LINES = 2; // of a cell in which nothing else is

// Ids fill a cell and say little: a cell shows their last characters, "On the wire" shows them whole.
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8}([0-9a-f]{4})/g;
const MAX_SHORT = 6000; // characters of a frame that a cell looks at
const short = (text) => text.slice(0, MAX_SHORT).replace(IDS, "\u2026$1");
export const set_short_ids = (is_on) => { shortens = is_on; };
let shortens = true;

// The text of a cell; computed once, since a row is measured and drawn again and again.
function text_of(entry) {
  if (!shortens) return entry.frames.slice(0, MAX_SHORT);
  return (entry.short ??= short(entry.frames));
}

// Lines that a text takes when it is broken after `columns` characters.
export function count_lines(text, columns, max) {
  let lines = 0, from = 0, end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 10) end--;
  while (from < end && lines < max) {
    let to = text.indexOf("\n", from);
    if (to < 0 || to > end) to = end;
    lines += Math.max(1, Math.ceil((to - from) / columns));
    from = to + 1;
  }
  return Math.min(lines, max);
}

export const lines_of_cell = (entry, columns) =>
  count_lines(text_of(entry), columns, MAX_LINES) + (!entry.losses?.length ? 0 : entry.frames ? 1 : LOSS_LINES);

// The start of a frame's line belongs to the framing; in JSON the values are what a reader looks for.
const FRAMING = /^(data|event|id|retry): ?|^:.*/;
const STRINGS = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

// needle: the text of the record as JSON; where a value is this text it is marked, in every protocol.
export function put_frames(parent, text, needle = "") {
  for (const [i, line] of text.split("\n").entries()) {
    if (i) parent.append("\n");
    let from = 0;
    const head = FRAMING.exec(line);
    if (head) {
      put_visible(parent.appendChild(el("span", { class: "framing" })), head[0]);
      from = head[0].length;
    }
    let plain = from;
    STRINGS.lastIndex = from;
    for (let m; (m = STRINGS.exec(line)); ) {
      if (m[1] !== undefined) continue; // a member's name
      if (m.index > plain) put_visible(parent, line.slice(plain, m.index));
      put_visible(parent.appendChild(el("b", { class: m[0] === needle ? "same" : "" })), m[0]);
      plain = m.index + m[0].length;
    }
    if (plain < line.length) put_visible(parent, line.slice(plain));
  }
  return parent;
}

export function loss_line(loss) {
  const e = el("p", { class: "loss" }, el("span", {}, "lost"));
  put_visible(e, ` ${loss.what ?? ""}`.slice(0, 300));
  if (loss.why) put_visible(e.appendChild(el("em")), ` ${loss.why}`.slice(0, 500));
  return e;
}

// The start of a frame, and if the text of the record is further behind, a part around it.
function excerpt_of(entry, columns, needle) {
  const text = text_of(entry).replace(/\n+$/, ""), room = columns * MAX_LINES;
  const at = needle.length > 2 && text.length > columns ? text.indexOf(needle) : -1;
  if (at < 0 || count_lines(text.slice(0, at + needle.length), columns, MAX_LINES + 1) <= MAX_LINES) return [text.slice(0, room + 1)];
  const head = text.slice(0, 3 * columns - 1), from = Math.max(head.length, at - columns), member = text.slice(from, at).search(/[{,]"[^"]*":/);
  return [head, text.slice(from + Math.max(0, member), at + room)];
}

// entry: {frames, losses}, null: nothing is sent for this record, undefined: not loaded yet
export function draw_cell(cell, entry, columns, record_text = "") {
  cell.replaceChildren();
  cell.classList.toggle("nothing", !entry?.frames);
  if (!entry || (!entry.frames && !entry.losses?.length)) {
    cell.append(entry === undefined ? "\u2026" : "\u2013");
    return;
  }
  if (entry.frames) {
    const needle = JSON.stringify(record_text), [head, tail] = excerpt_of(entry, columns, record_text.trim() ? needle : "");
    const lines = count_lines(text_of(entry), columns, MAX_LINES);
    const pre = el("code", { class: "frames" });
    pre.style.maxHeight = `calc(${lines} * var(--line-height))`;
    put_frames(pre, head, needle);
    if (tail !== undefined) put_frames(pre.appendChild(el("span", {}, " \u22ef ")), tail, needle);
    cell.append(pre);
  }
  const n = entry.losses?.length ?? 0;
  if (!n) return;
  const line = loss_line(entry.losses.find((l) => !/ \//.test(l.what)) ?? entry.losses[0]); // a whole event before its members
  line.title = visible(entry.losses.map((l) => `${l.what}: ${l.why ?? ""}`).join("\n")).slice(0, 2000);
  if (n > 1) line.firstChild.textContent = `lost ${n}`;
  if (entry.frames) line.classList.add("one");
  cell.append(line);
}
