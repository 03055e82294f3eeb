// JSON as a tree that opens on demand, and text whose control and bidirectional characters are
// shown by their code. All values are shown as text and never become markup. The number of elements is bounded;
// "Show more" adds the next part.
const PAGE = 100; // members at a time
const CUT = 600; // characters of a text at first
const MORE = 64 << 10; // characters that one "Show more" adds
const MAX_OPEN = 400; // members of branches that open by themselves
const MAX_ODD = 200; // marked characters in one piece of text; the ones after them become U+FFFD

// C0, C1, soft hyphen, bidirectional marks, overrides and isolates, invisible operators, tags, lone surrogates.
// Joiners (U+200C, U+200D) belong to scripts and emoji.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

const element = (name, css, ...children) => {
  const e = document.createElement(name);
  if (css) e.className = css;
  e.append(...children);
  return e;
};

export const code_of = (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
// For attributes and downloads, where no element can mark a character.
export const visible = (text) => String(text).replace(ODD, (c) => `\u27e8${code_of(c)}\u27e9`);

// Appends text; odd characters become marks with their code.
export function put_visible(parent, text) {
  let from = 0, n = 0;
  for (const m of text.matchAll(ODD)) {
    if (n++ === MAX_ODD) break;
    if (m.index > from) parent.append(text.slice(from, m.index));
    parent.append(element("span", "odd", code_of(m[0])));
    from = m.index + m[0].length;
  }
  if (from < text.length) parent.append(n > MAX_ODD ? text.slice(from).replace(ODD, "\ufffd") : text.slice(from));
  return parent;
}

// A piece ends between two characters, not inside of one.
const end_of_piece = (text, at) => (at < text.length && text.charCodeAt(at - 1) >>> 10 === 0x36 ? at + 1 : at);

// Appends the start of a text and, if it is long, a button for the rest.
export function put_text(parent, text, cut = CUT) {
  const end = end_of_piece(text, Math.min(cut, text.length));
  put_visible(parent, text.slice(0, end));
  if (end >= text.length) return parent;
  let shown = end;
  const more = element("button", "more");
  more.type = "button";
  const name = () => (more.textContent = `Show more (${size_of(text.length - shown)} remaining)`);
  name();
  more.addEventListener("click", () => {
    const to = end_of_piece(text, Math.min(shown + MORE, text.length));
    const piece = put_visible(element("span"), text.slice(shown, to));
    more.before(piece);
    shown = to;
    if (shown >= text.length) more.remove();
    else name();
  });
  parent.append(more);
  return parent;
}

export function size_of(n) {
  if (n < 1024) return `${n} B`;
  return n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}

const is_branch = (v) => v !== null && typeof v === "object";

function count_of(v) {
  if (Array.isArray(v)) return `[${v.length}]`;
  const n = Object.keys(v).length;
  return n ? `{${n}}` : "{}";
}

// A few members, so that a closed branch says what it is.
function hint_of(v) {
  if (Array.isArray(v)) return "";
  return Object.entries(v).slice(0, 4).filter(([, x]) => !is_branch(x)).map(([k, x]) => `${k}: ${String(x).slice(0, 40)}`).join(", ").slice(0, 120);
}

function leaf(v) {
  if (typeof v === "string") return put_text(element("span", "string"), v);
  return element("span", v === null ? "null" : typeof v, String(v));
}

function key_of(name) {
  return name === null ? "" : put_visible(element("span", "key"), String(name).slice(0, 200));
}

function branch(name, value, depth, path, changed, budget) {
  const details = element("details"), hint = element("span", "hint");
  const summary = element("summary", "", key_of(name), element("span", "count", count_of(value)), hint);
  details.append(summary);
  put_visible(hint, hint_of(value));
  let is_filled = false;
  const fill = () => {
    if (is_filled || !details.open) return;
    is_filled = true;
    details.append(members(value, depth, path, changed, budget));
  };
  details.addEventListener("toggle", fill);
  details.open = (depth > 0 && budget.left > 0) || Boolean(changed && [...changed].some((p) => p.startsWith(`${path}/`)));
  fill();
  return details;
}

function members(value, depth, path, changed, budget) {
  const list = element("ul"), entries = Object.entries(value);
  let shown = 0;
  const next = () => {
    for (const [k, v] of entries.slice(shown, (shown += PAGE))) {
      budget.left--;
      const at = `${path}/${k}`, item = element("li", changed?.has(at) ? "changed" : "");
      if (is_branch(v) && Object.keys(v).length) item.append(branch(k, v, depth - 1, at, changed, budget));
      else item.append(key_of(k), is_branch(v) ? element("span", "count", count_of(v)) : leaf(v));
      list.append(item);
    }
    if (shown < entries.length) {
      const more = element("button", "more", `Show more (${entries.length - shown} remaining)`);
      more.type = "button";
      more.addEventListener("click", () => { item.remove(); next(); });
      const item = element("li", "", more);
      list.append(item);
    }
  };
  next();
  return list;
}

// open_levels: below the first, at first. changed: paths ("/status/state") that are marked, and whose branches
// are open.
export function json_tree(value, { open_levels = 1, changed = null } = {}) {
  const root = element("div", "tree");
  root.append(is_branch(value) ? members(value, open_levels, "", changed, { left: MAX_OPEN }) : leaf(value));
  return root;
}

// Paths of the members that differ, at most `limit` of them. Texts that grew count as changed.
export function changes_of(before, after, limit = 200) {
  const found = new Set();
  const walk = (a, b, path, depth) => {
    if (found.size >= limit || a === b) return;
    if (!is_branch(a) || !is_branch(b) || Array.isArray(a) !== Array.isArray(b) || depth > 12) {
      found.add(path);
      return;
    }
    let n = 0;
    for (const k of Object.keys(b)) {
      if (++n > 2000) return;
      if (!Object.hasOwn(a, k)) found.add(`${path}/${k}`);
      else walk(a[k], b[k], `${path}/${k}`, depth + 1);
    }
  };
  if (before !== undefined && before !== null) walk(before, after, "", 0);
  return found;
}
