// web/lib/markdown.js: pieces give what the whole text gives; hostile texts stay texts; no piece of work is long.
import "./dom.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import MarkdownIt from "markdown-it";
import { highlighted } from "../../web/lib/highlight.js";
import { new_markdown, safe_address } from "../../web/lib/markdown.js";

// The elements of a text that comes in these pieces. Every piece is drawn before the next one comes.
async function drawn(pieces, at_each = () => {}) {
  const element = document.createElement("div"), m = new_markdown(element);
  m.schedule = () => {};
  for (const p of pieces) {
    m.append(p);
    do m.work(1e9); while (m.queue.length);
    at_each(element, m);
  }
  m.is_ended = true;
  m.work(1e9);
  await m.done;
  return element;
}
const outline = async (pieces) => JSON.stringify((await drawn(pieces)).outline);

const TEXTS = [
  "", "\n\n", "one line", "a\r\nb\r\rc\r", "null \0 character",
  "# Title\n\nText with *emphasis*, **strong**, `code` and [a link](https://example.org/x).\nNext line\n",
  "para\n#not a title\n# title\nSetext\n===\n\nother\n---\n\n---\n***\n",
  "- a\n- b\n\n  more of b\n    - deep\n\n      deeper\n- c\n\n\n1. one\n2. two\n5) five\n* other\n+ other\n",
  "```js\nlet a = `x`;\n\n// ``\n```\nafter\n~~~\n```\n~~~ \n````md\n```\n````\n",
  "```\nnot closed\n", "```\nnot closed, no end of line", "``` a`b\ntext\n```\ninside", "   ```py\n   x = 1\n   ```\ntext\n", "    indented\n    code\n\n    more\ntext",
  "> quote\nlazy\n> - list\n>   ```\n>   code\n>   ```\n\nend", "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n\ntext\n| a |\n|---|\nx",
  "text\n| a | b |\n|---|---|\n| 1 | 2\nno row", "[1]: https://example.org\n[text][1]\n", "a  \nb\\\nc&amp;d &#x41; &copy; \\* https://example.org/a?b=c&d mailto:x@example.org",
  "<script>alert(1)</script>\n\n<div onclick=x>\n*a*\n</div>\n\n<!-- x -->", "![picture](https://example.org/a.png) ![](data:image/png;base64,AA==)",
  "*a **b\n\nc** d*\n\n***\n\n_x_y_", "\u{1f600}\u{1f600} text \u{1f469}\u200d\u{1f4bb}\n\n\u05d0\u05d1 \u202egnp.exe\u202c", "1. a\n\n   ```sh\n   ls\n   ```\n2. b\n", "a\n\tb\n-\tc\n\n\td\n",
];

test("every cut of a text gives what the whole text gives", async () => {
  for (const text of TEXTS) {
    const whole = await outline([text]);
    for (let i = 1; i < text.length; i++)
      assert.equal(await outline([text.slice(0, i), text.slice(i)]), whole, `cut ${i} of ${JSON.stringify(text)}`);
    assert.equal(await outline([...text]), whole, JSON.stringify(text));
    assert.equal(await outline(text.split("")), whole, JSON.stringify(text));
  }
});

// A generator of numbers that gives the same ones each time.
function numbers(seed) {
  return (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor((seed / 2147483648) * n); };
}
const SNIPPETS = ["a", "b ", "\n", "\n\n", "- ", "  ", "    ", "1. ", "> ", "# ", "```", "~~~", "---", "===", "|", "|-|", "| a | b |\n", "|---|---|\n", "*", "**", "`", "[x](", "https://e.org)", "\t", "\r\n", "\\", "<b>", "&lt;"];

test("random texts in random pieces give what the whole text gives, and what markdown-it gives", async () => {
  const random = numbers(7), reference = new MarkdownIt({ html: false, linkify: true, breaks: true, maxNesting: 20 }).disable("reference");
  reference.validateLink = (address) => safe_address(address) !== null;
  const words = (s) => s.replace(/\s+/g, "");
  for (let round = 0; round < 1500; round++) {
    const pieces = Array.from({ length: 2 + random(30) }, () => SNIPPETS[random(SNIPPETS.length)]);
    const text = pieces.join("");
    const element = await drawn(pieces);
    assert.equal(JSON.stringify(element.outline), await outline([text]), JSON.stringify(text));
    for (const copy of element.all("button")) copy.remove();
    for (const head of element.all("div").filter((d) => d.className === "md-code-head")) head.remove();
    const html = reference.render(text).replace(/<[^>]*>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
    assert.equal(words(element.textContent), words(html), JSON.stringify(text));
  }
});

test("finished blocks are not made again", async () => {
  const text = "# a\n\npara\n\n- x\n- y\n\ntext\n\n```\ncode\n```\n\nlast\n\nvery last\n";
  let before = [];
  await drawn([...text], (element, m) => {
    const blocks = element.childNodes.flatMap((p) => p.childNodes).filter((c) => !m.draft.includes(c));
    before.forEach((b, i) => assert.equal(blocks[i], b));
    before = blocks;
  });
  assert.equal(before.length, 6);
});

test("long blocks are plain text, the same in all pieces, and nothing is lost", async () => {
  const long = "x ".repeat(20000), texts = [
    long, `${long}\n\n# after\n`, `before\n\n${long}\nmore\n\nafter`, "```\n" + `${"y".repeat(40000)}\n`.repeat(3) + "```\nafter", `- ${"item\n- ".repeat(9000)}\n\nafter\n`,
    `a\n\n${" ".repeat(40000)}b\n\nc`, `${"> ".repeat(20000)}\n\nc`, "line\n".repeat(8000) + "\n\n# after\n", "\ud83d\ude00".repeat(20000), "```" + "z".repeat(20000) + "\nafter",
  ];
  for (const text of texts) {
    const whole = await outline([text]), random = numbers(3);
    for (const size of [997, 4096, 16384, 16385]) {
      const pieces = [];
      for (let i = 0; i < text.length;) {
        const n = size + random(5);
        pieces.push(text.slice(i, i + n));
        i += n;
      }
      assert.equal(await outline(pieces), whole, `${size}: ${text.slice(0, 20)}`);
    }
    const letters = (s) => s.replace(/[^a-z\u{1f600}]/gu, "").replace(/^Copy/, "");
    if (!text.startsWith("```")) assert.equal(letters((await drawn([text])).textContent).length, letters(text).length, text.slice(0, 20));
  }
});

test("a text of very many blocks does not make very many elements", async () => {
  const element = await drawn(["a\n\n".repeat(400000)]);
  assert.ok(element.all("p").length < 40000);
  assert.equal(element.textContent.replace(/[^a]/g, "").length, 400000);
});

test("only http, https and mailto become links", async () => {
  const bad = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)", "\u0001javascript:alert(1)", "data:text/html,<script>", "vbscript:x", "file:///etc/passwd",
    "blob:https://x/y", "//example.org", "/agents/x", "javascript&colon;alert(1)", "&#106;avascript:alert(1)", "https:javascript:alert(1)", "http://", "about:blank", "?c=1", "#x"];
  for (const address of bad) {
    assert.equal(safe_address(address), null, address);
    for (const text of [`[x](${address})`, `[x](<${address}>)`, `<${address}>`, `![x](${address})`, address])
      assert.deepEqual((await drawn([text])).all("a").map((a) => a.href).filter((h) => !/^(https?:\/\/|mailto:)/.test(h)), [], text);
  }
  for (const a of (await drawn(["[x](https://example.org/) <mailto:a@example.org> http://example.com ![y](https://example.org/y.png)"])).all("a")) {
    assert.match(a.href, /^(https?:\/\/|mailto:)/);
    assert.equal(a.rel, "noopener noreferrer");
    assert.equal(a.target, "_blank");
  }
});

test("HTML stays text, and no element is made that loads or runs something", async () => {
  const element = await drawn(["<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> <svg/onload=x>\n\n<iframe src='javascript:x'></iframe>\n\n- <b>x</b>\n\n`<i>`\n\n```html\n<script>alert(2)</script>\n```\n\n![x](https://example.org/x.png)"]);
  for (const name of ["script", "img", "svg", "iframe", "b", "i", "object", "embed", "style", "link", "form", "input"]) assert.equal(element.all(name).length, 0, name);
  assert.ok(element.textContent.includes("<script>alert(1)</script>"));
  assert.ok(element.textContent.includes("<img src=x onerror=alert(1)>"));
});

test("colours: the text of code is unchanged, and only spans are made", () => {
  for (const [language, code] of [["js", "const a = '<script>&amp;' + `${b}` // x < y && z\n"], ["html", "<script>alert(1)</script><!-- x --> &lt;"], ["python", "def f(x):\n    return \"a\" # <b>\n"], ["json", '{"a": [1, null, "</span>"]}']]) {
    const f = highlighted(code, language);
    assert.equal(f.textContent, code, language);
    const names = (e) => (e.childNodes ?? []).flatMap((c) => [c.name, ...names(c)]).filter(Boolean);
    assert.deepEqual([...new Set(names(f))], ["span"]);
  }
  assert.equal(highlighted("x", "no such language"), null);
});

test("no text makes one piece of work long", async () => {
  const hostile = ["[", "![", "*a ", "**", "_a", "`", "``a", "<", "<a ", "&", "\\", "~~", "](", "[a](", "[a](<", "(", "https://", "https://a.", "http://a/(", "mailto:", "> ", "- ", "1. ", "|", "|-", "a | b\n", "\n ", " \n", "  \n", "\t", "# ", "x", "\u202e", "[]()",
    "a**b", "*a_ ", "\"", "(c)", "<!--", "<?", "&#1;", "'", "![](a", "- - ", "> > - ", "```", "~~~\n", "|a\n|-\n", "[x]: ", "\u0000", "\r"];
  const slow = [];
  for (const h of hostile) {
    for (const text of [h.repeat(Math.ceil(60000 / h.length)), `${h.repeat(Math.ceil(16000 / h.length))}\nz`]) {
      const element = document.createElement("div"), m = new_markdown(element);
      m.schedule = () => {};
      m.append(text);
      let worst = 0;
      const timed = () => { const t = process.cpuUsage(); m.work(0); const { user, system } = process.cpuUsage(t); worst = Math.max(worst, (user + system) / 1000); };
      while (m.queue.length) timed();
      m.is_ended = true;
      timed();
      if (worst > 200) slow.push([h, text.length, worst]); // 50 ms and the noise of a busy machine
      if (process.env.SHOW_TIMES) console.error(JSON.stringify(h), text.length, worst.toFixed(1));
    }
  }
  assert.deepEqual(slow, []);
});
