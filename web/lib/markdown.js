// Markdown that arrives in pieces. markdown-it reads it; the elements are made here, so no text becomes HTML.
//
// new_markdown(element) returns { append(text), end() }. Elements of blocks that can no longer change are made once. Only the last,
// open block is rendered again, at most once per frame. Work that does not fit into a frame is done in the next ones: end() returns a
// promise that is fulfilled when the whole text is shown.
//
// The result depends on the text only, not on the pieces that it came in. Limits, for the same reason, count characters:
// a block that is longer than MAX_BLOCK is shown as it is written, up to the next blank line, and so is a paragraph longer than MAX_INLINE. Definitions of links
// ("[1]: https://...") are shown as text: one at the end would change everything before it.
import MarkdownIt from "markdown-it";
import { copy_text } from "./clipboard.js";

const MAX_BLOCK = 16384; // characters of a block, except of a fenced one
const MAX_HIGHLIGHTED = 16384; // characters of code with colours
const MAX_ELEMENTS = 30000; // of one text; the rest is shown as it is written
const MAX_INLINE = 4096, MAX_LINKED = 2048; // characters of a paragraph with markup, and of one whose addresses become links
const CODE_ELEMENTS = 10; // of a block of code
const PIECE = 8192; // characters between two looks at the clock
const FRAME = 8; // ms of work in a frame
const PART_BLOCKS = 50; // that a browser skips together when they cannot be seen
const CHUNK = 4096, LONGEST_CHUNK = 16384; // characters of an element of plain text: at a line, or within one

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true, maxNesting: 20 }).disable("reference");
markdown.validateLink = (address) => safe_address(address) !== null;
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false }).add("ftp:", null).add("//", null);

const has_links = markdown.linkify.pretest;
markdown.linkify.pretest = (text) => text.length <= MAX_LINKED && has_links.call(markdown.linkify, text);
// Some texts make its work grow with the square of their length.
const parse_inline = markdown.inline.parse;
markdown.inline.parse = (text, md, env, tokens) => {
  if (text.length <= MAX_INLINE) return parse_inline.call(markdown.inline, text, md, env, tokens);
  const { Token } = new md.core.State("", md, env);
  tokens.push(Object.assign(new Token("text", "", 0), { content: text }));
};

// As a browser would follow it, or null.
export function safe_address(address) {
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return null;
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch { return null; }
}

function make(name, class_name, ...children) {
  const e = document.createElement(name);
  if (class_name) e.className = class_name;
  e.append(...children);
  return e;
}

// ---- plain text, in elements that a browser can skip --------------------------------------------------------------------

class TextWriter {
  constructor(box) {
    this.box = box;
    this.text = null; // the last chunk's text node
    this.rest = document.createTextNode(""); // a line that is not complete
    box.append(this.rest);
  }

  // A chunk ends with the first line that makes it CHUNK characters long, or in a line after LONGEST_CHUNK.
  add(text) {
    for (let at = 0; at < text.length;) {
      if (!this.text) {
        this.text = document.createTextNode("");
        this.rest.before(make("span", "md-chunk", this.text));
      }
      const room = LONGEST_CHUNK - this.text.length;
      const line = text.indexOf("\n", at + Math.max(0, CHUNK - this.text.length - 1));
      let size = Math.min(line < 0 ? text.length - at : line + 1 - at, room);
      const is_half = size === room && /[\ud800-\udbff]/.test(text[at + size - 1]);
      if (is_half) size--; // not between the halves of a character
      if (size) this.text.appendData(text.slice(at, at + size));
      at += size;
      if (is_half || size === room || (line >= 0 && line < at)) this.text = null;
    }
  }

  show_rest(text) { if (this.rest.data !== text) this.rest.data = text; }
}

// ---- code ---------------------------------------------------------------------------------------------------------------

const colours = { jobs: [], is_busy: false };

function colour_later(job) {
  colours.jobs.push(job);
  if (!colours.is_busy) colour_next();
}

async function colour_next() {
  colours.is_busy = true;
  try {
    const { highlighted } = await import("./highlight.js");
    for (let job; (job = colours.jobs.shift());) {
      await new Promise((done) => setTimeout(done, 0)); // each in a task of its own
      const nodes = job.code.isConnected === false ? null : highlighted(job.text, job.language);
      if (nodes) job.code.replaceChildren(nodes);
    }
  } catch { /* without colours, then */ }
  colours.is_busy = false;
}

function copy_button(code) {
  const button = make("button", "md-copy", "Copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    await copy_text(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

// A block of code: add(text) and end().
class CodeWriter {
  constructor(info) {
    this.language = info.trim().split(/\s+/)[0].slice(0, 40);
    this.code = make("code");
    const pre = make("pre", "", this.code);
    pre.tabIndex = 0;
    this.element = make("div", "md-code", make("div", "md-code-head", make("span", "", this.language), copy_button(this.code)), pre);
    this.writer = new TextWriter(this.code);
    this.text = "";
  }

  add(text) {
    this.writer.add(text);
    if (this.text !== null) this.text = this.text.length + text.length <= MAX_HIGHLIGHTED ? this.text + text : null;
  }

  end() {
    this.writer.show_rest("");
    if (this.text && /^[\w+#.-]+$/.test(this.language)) colour_later({ code: this.code, text: this.text, language: this.language.toLowerCase() });
  }
}

// ---- tokens to elements ---------------------------------------------------------------------------------------------------

const TAGS = { paragraph: "p", blockquote: "blockquote", bullet_list: "ul", ordered_list: "ol", list_item: "li", thead: "thead", tbody: "tbody", tr: "tr", th: "th",
  td: "td", em: "em", strong: "strong", s: "s" };

function link(address) {
  const href = safe_address(address), a = make(href ? "a" : "span", "md-link");
  if (href) Object.assign(a, { href, rel: "noopener noreferrer", target: "_blank", title: href });
  return a;
}

function open_element(token, name) {
  if (name === "link") return link(token.attrGet("href") ?? "");
  if (name === "table") return make("table");
  const e = make(TAGS[name] ?? "span");
  if (name === "ordered_list" && token.attrGet("start") !== null) e.start = Number(token.attrGet("start"));
  const align = /^text-align:(left|center|right)$/.exec(token.attrGet?.("style") ?? "");
  if (align) e.className = `md-${align[1]}`;
  return e;
}

// Headings are below those of the page (the answer has one of level 2), and no level is left out.
function heading(token, count) {
  count.level = Math.min(6, Number(token.tag[1]) + 2, (count.level ?? 2) + 1);
  return make(`h${count.level}`);
}

// count: `n` grows with every element, `level` is that of the last heading.
function build(tokens, top, count, is_final) {
  const open = [top];
  for (const token of tokens) {
    if (token.hidden) continue; // the paragraphs of a list without blank lines
    const here = open.at(-1), name = token.type.replace(/_(open|close)$/, "");
    count.n++;
    if (token.nesting === 1) {
      const e = name === "heading" ? heading(token, count) : open_element(token, name);
      if (name === "table") {
        const box = make("div", "md-table", e);
        box.tabIndex = 0;
        here.append(box);
      } else here.append(e);
      open.push(e);
    } else if (token.nesting === -1) open.pop();
    else if (token.type === "inline") build(token.children, here, count, is_final);
    else if (token.type === "softbreak" || token.type === "hardbreak") here.append(make("br"), "\n");
    else if (token.type === "hr") here.append(make("hr"));
    else if (token.type === "code_inline") here.append(make("code", "", token.content));
    else if (token.type === "image") {
      const a = link(token.attrGet("src") ?? "");
      a.append(token.content || a.title || "image");
      here.append(a);
    } else if (token.type === "fence" || token.type === "code_block") {
      const code = new CodeWriter(token.info ?? "");
      code.add(token.content);
      here.append(code.element);
      if (is_final) code.end();
    } else here.append(token.content);
  }
}

// ---- blocks -----------------------------------------------------------------------------------------------------------------

const is_blank = (line) => /^[ \t]*$/.test(line);
const FENCE = /^(`{3,}|~{3,})(.*)$/;

// A line that is too long makes its block plain text; its start decides where the block is.
const shortened = (line) => (line.length > MAX_BLOCK ? line.slice(0, 1000).trim() && line.slice(0, MAX_BLOCK) || "text" : line);

// The blocks of lines at the top: [{ start, end, tokens }]
function blocks_of(lines) {
  const tokens = markdown.parse(lines.map(shortened).join("\n"), {});
  const found = [];
  let from = 0;
  tokens.forEach((t, i) => {
    if (t.level || t.nesting === 1) return;
    const [start, end] = (tokens[from].map ?? [0, lines.length]);
    let last = Math.min(end, lines.length);
    while (last > start + 1 && is_blank(lines[last - 1])) last--;
    found.push({ start, end: last, tokens: tokens.slice(from, i + 1) });
    from = i + 1;
  });
  return found;
}

class Markdown {
  constructor(element) {
    this.element = element;
    element.classList.add("md");
    this.queue = [];
    this.is_return = false; // the text so far ends with \r
    this.lines = []; // of the open block
    this.partial = ""; // the line that is not complete
    this.n_read = 0; // lines that were looked at
    this.mode = "blocks"; // "fence", "plain"
    this.count = { n: 0 };
    this.n_blocks = 0;
    this.draft = []; // elements of the open block
    element.append((this.part = make("div", "md-part")));
    this.is_ended = false;
    this.scheduled = null; // the turn that does the work
    this.done = new Promise((resolve) => (this.resolve = resolve));
  }

  append(text) {
    if (!text || this.is_ended) return;
    this.queue.push(text);
    this.schedule();
  }

  end() {
    if (!this.is_ended) {
      this.is_ended = true;
      this.schedule();
    }
    return this.done;
  }

  // No more work: the element is not shown any longer.
  cancel() {
    this.queue = [];
    this.is_ended = this.is_canceled = true;
    this.resolve();
  }

  schedule() {
    if (this.scheduled) return;
    const mine = {};
    this.scheduled = mine;
    const run = () => {
      if (this.scheduled !== mine) return;
      this.scheduled = null;
      this.work(FRAME);
    };
    // a hidden page has no frames
    if (typeof requestAnimationFrame === "function" && !document.hidden) requestAnimationFrame(run);
    setTimeout(run, document.hidden ? 0 : 300);
  }

  work(ms) {
    if (this.is_canceled) return;
    const end = performance.now() + ms;
    while (this.queue.length) {
      this.read(this.next_piece());
      if (performance.now() > end) break;
    }
    if (this.queue.length) return this.schedule();
    if (this.is_ended) this.finish();
    else this.show_draft();
  }

  next_piece() {
    let piece = this.queue[0];
    if (piece.length > PIECE) {
      this.queue[0] = piece.slice(PIECE);
      piece = piece.slice(0, PIECE);
    } else {
      let n = 1, size = piece.length;
      while (n < this.queue.length && size + this.queue[n].length <= PIECE) size += this.queue[n++].length;
      piece = this.queue.splice(0, n).join("");
    }
    return piece;
  }

  // Ends of lines as markdown-it reads them.
  read(piece) {
    if (this.is_return && piece[0] === "\n") piece = piece.slice(1);
    if (!piece) return;
    this.is_return = piece.endsWith("\r");
    const lines = piece.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd").split("\n");
    lines[0] = this.partial + lines[0];
    this.partial = lines.pop();
    for (const l of lines) this.lines.push(l);
    this.settle();
  }

  // Makes what cannot change any more.
  settle() {
    for (let before = -1; before !== this.lines.length || this.again;) {
      before = this.lines.length;
      this.again = false;
      if (this.mode === "blocks") this.settle_blocks();
      else if (this.mode === "fence") this.settle_fence();
      else this.settle_plain();
    }
  }

  settle_blocks() {
    // A line that is too long is enough of a line: the rest of it does not decide where blocks are.
    const is_long = this.partial.length > MAX_BLOCK;
    if (this.lines.length === this.n_read && !is_long) return;
    const lines = is_long ? [...this.lines, this.partial] : this.lines;
    const found = blocks_of(lines);
    let i = 0;
    for (; i < found.length; i++) {
      const { start, end, tokens } = found[i], fence = tokens[0].type === "fence" && FENCE.exec(lines[start]);
      if (fence && lines[start].length <= MAX_BLOCK) {
        if (i === found.length - 1 || lines.slice(start, end).some((l) => l.length > MAX_BLOCK)) return this.start_fence(start, fence);
        this.put_code(fence[2], lines.slice(start + 1, end - 1));
        if (this.count.n > MAX_ELEMENTS) return this.start_plain(end, true);
        continue;
      }
      if (this.is_too_long(lines, start, end)) return this.start_plain(start);
      if (i === found.length - 1) break;
      this.put(tokens);
      if (this.count.n > MAX_ELEMENTS) return this.start_plain(end, true);
    }
    if (found.length) this.lines.splice(0, found[i].start);
    else if (!is_long) this.lines = [];
    this.n_read = this.lines.length;
  }

  // Without the last line: the next one can make it another block.
  is_too_long(lines, start, end) {
    let size = 0;
    for (let i = start; i < end; i++) {
      if (size > MAX_BLOCK || lines[i].length > MAX_BLOCK) return true;
      size += lines[i].length + 1;
    }
    return false;
  }

  start_fence(start, [, marks, info]) {
    this.remove_draft();
    this.mode = "fence";
    this.code = new CodeWriter(info);
    // as many marks as it was opened with, or more
    this.closing = new RegExp(`^ {0,3}\\${marks[0]}{${marks.length},}[ \\t]*$`);
    this.maybe_closing = new RegExp(`^ {0,3}\\${marks[0]}*[ \\t]*$`);
    this.put_element(this.code.element);
    this.cut(start + 1);
  }

  put_code(info, lines) {
    this.remove_draft();
    const code = new CodeWriter(info);
    if (lines.length) code.add(`${lines.join("\n")}\n`);
    code.end();
    this.count.n += CODE_ELEMENTS;
    this.put_element(code.element);
  }

  cut(n) {
    this.lines.splice(0, n);
    this.n_read = 0;
    this.again = true;
  }

  settle_fence() {
    const text = [];
    for (let i = 0; i < this.lines.length; i++) {
      if (!this.is_inside && this.lines[i].length <= MAX_BLOCK && this.closing.test(this.lines[i])) {
        this.code.add(text.join(""));
        this.end_fence();
        return this.cut(i + 1);
      }
      text.push(this.lines[i], "\n");
      this.is_inside = false;
    }
    this.lines = [];
    if (this.partial.length > MAX_BLOCK || this.is_inside) {
      text.push(this.partial);
      this.partial = "";
      this.is_inside = true; // a part of this line is shown
    }
    this.code.add(text.join(""));
  }

  end_fence() {
    this.code.end();
    this.code = null;
    this.mode = "blocks";
    this.is_inside = false;
    this.count.n += CODE_ELEMENTS;
    if (this.count.n > MAX_ELEMENTS) this.start_plain(0, true);
  }

  start_plain(start, is_for_ever = false) {
    this.remove_draft();
    this.mode = "plain";
    this.n_left = is_for_ever ? Infinity : MAX_BLOCK; // characters before a blank line ends it
    const box = make("div", "md-plain");
    this.plain = new TextWriter(box);
    this.put_element(box);
    this.lines.splice(0, start);
    this.n_read = 0;
    this.again = true;
  }

  settle_plain() {
    const text = [];
    for (let i = 0; i < this.lines.length; i++) {
      if (!this.is_inside && this.n_left <= 0 && this.lines[i].length <= MAX_BLOCK && is_blank(this.lines[i])) {
        this.plain.add(text.join(""));
        this.plain.show_rest("");
        this.mode = "blocks";
        return this.cut(i + 1);
      }
      text.push(this.lines[i], "\n");
      this.n_left -= this.lines[i].length + 1;
      this.is_inside = false;
    }
    this.lines = [];
    if (this.partial.length > MAX_BLOCK || this.is_inside) {
      text.push(this.partial);
      this.n_left -= this.partial.length;
      this.is_inside ||= this.partial.length > 0;
      this.partial = "";
    }
    this.plain.add(text.join(""));
  }

  put(tokens) {
    this.remove_draft();
    const block = document.createDocumentFragment();
    build(tokens, block, this.count, true);
    this.put_element(block);
  }

  put_element(e) {
    if (this.n_blocks++ % PART_BLOCKS === PART_BLOCKS - 1) {
      this.part.classList.add("md-whole");
      this.element.append((this.part = make("div", "md-part")));
    }
    this.part.append(e);
  }

  remove_draft() {
    for (const e of this.draft) e.remove();
    this.draft = [];
  }

  show_draft() {
    if (this.mode === "fence") return this.code.writer.show_rest(this.maybe_closing.test(this.partial) ? "" : this.partial);
    if (this.mode === "plain") return this.plain.show_rest(this.partial);
    const lines = this.partial ? [...this.lines, this.partial] : this.lines, block = document.createDocumentFragment();
    const count = { ...this.count };
    for (const { tokens } of lines.length ? blocks_of(lines) : []) build(tokens, block, count, false);
    this.remove_draft();
    this.draft = [...block.childNodes];
    this.part.append(block);
  }

  finish() {
    if (this.partial.length > MAX_BLOCK) this.settle();
    if (this.partial) this.lines.push(this.partial);
    this.partial = "";
    this.settle();
    this.remove_draft();
    if (this.mode === "fence") {
      this.code.end();
    } else if (this.mode === "plain") this.plain.show_rest("");
    else for (const { tokens } of this.lines.length ? blocks_of(this.lines) : []) this.put(tokens);
    this.lines = [];
    this.resolve();
  }
}

export const new_markdown = (element) => new Markdown(element);
