// The page in chromium: what a person sees and can do in a conversation. TAP.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { check, contains, end, HERE, PATIENCE, pause, ROOT, run_tests, same, same_json, start, until } from "./lib/harness.mjs";
import { json_error } from "../../web/lib/json_error.js";
import { patched } from "../../web/lib/patch.js";

const tests = [];
const test = (name, run, options = {}) => tests.push({ name, run, ...options });
let page; // of the test that runs
const on_page = (fn) => async (t) => { page = t.page; await fn(t); };

// ---- what a person does --------------------------------------------------------------------------------------------

async function open(server, agent = "demo", in_page = page) {
  await in_page.goto(`${server.url}/agents/${agent}/`);
  await in_page.locator(".welcome h2").waitFor();
}
async function say(words, in_page = page) {
  await in_page.fill("#composer-text", words);
  await in_page.press("#composer-text", "Enter");
}
async function settled(in_page = page) {
  await in_page.locator("#stop").waitFor({ state: "hidden" });
  await until(async () => !(await in_page.locator('.agent[aria-busy="true"]').count()), "the answer is shown");
}
async function ask(words) {
  await say(words);
  await settled();
}
const turns = (in_page = page) => in_page.locator(".turn");
const last = (what, options) => page.locator(".turn").last().locator(what, options);
const text = (what = ".markdown") => last(what).first().innerText();
// A text is shown in frames of its own: a mark like .failure may be on the page before it.
const answer = async () => {
  await settled();
  return (await last(".markdown").allInnerTexts()).join("\n").trim();
};
const times_in = (all, part) => all.split(part).length - 1;
const kept = (in_page = page) => in_page.evaluate(() => JSON.parse(localStorage.getItem("dragoman:conversations") ?? "[]"));
const context_of = (in_page = page) => new URL(in_page.url()).searchParams.get("c");
const a2a = (url, path) => fetch(`${url}${path}`, { headers: { "A2A-Version": "1.0" } }).then((r) => r.json());
// Every text that the line of the activity has had, however short. Call it before the message is sent.
async function watch_activity() {
  await page.evaluate(() => {
    window.activities = [];
    new MutationObserver((list) => {
      for (const { target, addedNodes } of list) if (target.className === "activity-text") window.activities.push(...[...addedNodes].map((n) => n.data));
    }).observe(document.body, { childList: true, subtree: true });
  });
  return () => page.evaluate(() => window.activities);
}
async function open_card(card) {
  if (!(await card.evaluate((e) => e.open))) await card.locator("summary").first().press("Enter");
}

// A port whose connections we can cut, as a network does.
function wire_to(url) {
  const port = Number(new URL(url).port), sockets = new Set();
  const s = createServer((a) => {
    const b = connect(port, "127.0.0.1");
    for (const [x, y] of [[a, b], [b, a]]) {
      sockets.add(x);
      x.pipe(y);
      x.on("error", () => y.destroy());
      x.on("close", () => { sockets.delete(x); y.destroy(); });
    }
  });
  return new Promise((done) => s.listen(0, "127.0.0.1", () => done({
    url: `http://127.0.0.1:${s.address().port}`,
    cut: () => { for (const x of sockets) x.destroy(); },
    close: () => { s.close(); for (const x of sockets) x.destroy(); },
  })));
}

const free_port = () => new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});
const listens = (port) => new Promise((done) => {
  const s = connect(port, "127.0.0.1", () => { s.destroy(); done(true); });
  s.on("error", () => done(false));
});

// ---- the demo's scripts: each shows what it is about ------------------------------------------------------------------

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const is_sideways = () => page.evaluate(() => [document.documentElement, ...document.querySelectorAll("#log, #view > *")].some((e) => e.scrollWidth > e.clientWidth));
const scripts = new Set();
function script(words, run, about = "") {
  const name = words.split(" ")[0];
  script_test(name, about, async () => {
    await ask(words);
    await run();
  });
}
// For scripts whose messages are not sent one after the other.
function script_test(name, about, run) {
  scripts.add(name);
  for (const [where, context] of [["", {}], [", phone, dark", { ...PHONE, colorScheme: "dark" }]])
    test(`script ${name}${about}${where}`, on_page(async ({ server }) => {
      await open(server);
      await run();
      same(await is_sideways(), false, "it scrolls sideways");
    }), { context });
}

script("help", async () => {
  check((await last(".markdown li").count()) > 20, "the list of scripts");
  same(await last(".markdown li code").first().innerText(), "help", "the first script, as code");
  same(await last(".inspect-turn").count(), 0, "links to a task");
  const top = (what) => last(what).first().evaluate((e) => e.getBoundingClientRect().top - document.querySelector("#log").getBoundingClientRect().top);
  check((await top(".user-text")) >= 0 && (await top(".markdown")) >= 0, "the answer is not shown from its start");
  await page.locator(".jump:visible").waitFor();
});
script("message what I wrote", async () => contains(await answer(), "what I wrote"));
script("stream", async () => {
  const shown = await answer();
  check(shown.startsWith("An A2A task is a small story") && shown.endsWith("are the same."), shown);
  same(times_in(shown, "An A2A task"), 1, "how often the text is there");
  check(/^\d.* m?s$/.test(await text(".time")), "the time of the run");
}, " [R004-04]");
script("file", async () => {
  const names = await last(".file-name").allInnerTexts();
  same_json(names, ["sales.csv", "dot.png", "report.pdf"], "files");
  const picture = last(".artifact img");
  await until(() => picture.evaluate((i) => i.complete && i.naturalWidth > 0), "the picture is shown");
  same(await last("a[href='https://example.com/report.pdf']").getAttribute("rel"), "noopener noreferrer", "rel of the link");
  const [download] = await Promise.all([page.waitForEvent("download"), last("a[download='sales.csv']").click()]);
  same(download.suggestedFilename(), "sales.csv", "name of the download");
});
script("data", async () => {
  const shown = await text(".artifact .data");
  for (const part of ["city", "Oakland", "°F", "chance_of_rain", "0.05", "null"]) contains(shown, part);
  contains(await answer(), "It is sunny in Oakland");
});
script("ask", async () => {
  await page.locator(".waits").waitFor();
  same(await answer(), "What is your name?", "the question");
  await ask("Ann");
  contains(await answer(), "Hello Ann");
  same(await page.locator(".waits").count(), 0, "open questions");
  same(await turns().count(), 2, "turns");
}, ": the next message is the answer [R004-20]");
script("auth", async () => {
  contains(await answer(), "This needs credentials");
  await last("button.done").click();
  await until(async () => (await turns().count()) === 2, "a second turn");
  await settled();
  contains(await answer(), "Here is the secret: 42.");
  same(await page.locator("button.done:enabled").count(), 0, "buttons of the answered question");
});
script("fail", async () => {
  same(await text(".failure .outcome"), "Failed", "the outcome");
  contains(await text(".failure .reason"), "the demo was asked to fail");
  await last(".retry").click();
  await until(async () => (await turns().count()) === 2, "the message is sent again");
  await settled();
  same(await text(".failure .outcome"), "Failed", "the outcome of the second try");
}, ": the reason, and Retry");
script("break", async () => {
  contains(await answer(), "An A2A task is a small story");
  contains(await text(".failure .reason"), "broke off in the middle");
});
script("reject", async () => {
  same(await text(".failure .outcome"), "Refused", "the outcome");
  contains(await text(".failure .reason"), "I will not do that");
});
script("long 3000", async () => {
  const shown = () => last(".markdown").first().evaluate((e) => e.textContent);
  await until(async () => (await shown()).includes("line 003000"), "the last line");
  for (const n of ["000001", "001500", "003000"]) same(times_in(await shown(), `This is line ${n} `), 1, `how often line ${n} is there`);
});
script("unicode", async () => {
  const shown = await last(".markdown").first().evaluate((e) => e.textContent);
  for (const part of ["Grüße", "שלום", "नमस्ते", "👩‍👩‍👧‍👦", "🇪🇺", "𝒳", "end."]) contains(shown, part);
});
script("tools", async () => {
  const card = last(".tool-card");
  same(await card.locator(".fold-title").innerText(), "get_weather", "the tool");
  contains(await card.locator(".fold-preview").innerText(), "location: Oakland → Sunny, 72°F");
  check(/^\d.* m?s$/.test(await card.locator(".status-chip").innerText()), "the time of the call");
  await open_card(card);
  same_json((await card.locator("h3:visible").allInnerTexts()), ["Arguments", "Result"], "the parts of the card");
  same(await answer(), "It is sunny in Oakland, 72°F.", "the answer");
});
script("parallel-tools", async () => {
  same_json(await last(".tool-card .fold-title").allInnerTexts(), ["get_weather", "get_time"], "tools");
  contains(await last(".tool-card").nth(0).innerText(), "Sunny, 72°F");
  contains(await last(".tool-card").nth(1).innerText(), "09:41");
  same(await last(".turn-body > *").last().getAttribute("class"), "text-block", "the last element");
});
script("client-tool", async () => {
  const card = last(".tool-card.is-pending");
  contains(await card.innerText(), "Oakland");
  await card.locator("textarea").fill("Rain");
  await card.locator("button.primary").click();
  await until(async () => (await turns().count()) === 2, "the result is sent");
  await settled();
  same(await answer(), "Your tool says: Rain", "the answer");
  contains(await turns().first().locator(".tool-card").innerText(), "Rain");
  await page.reload();
  await until(async () => (await turns().count()) === 2, "both turns after a reload");
  await settled();
  same(await page.locator(".tool-result:visible").count(), 0, "forms after a reload");
}, ": its form, and its result");
script("state", async () => {
  const shown = await text(".state-now");
  for (const part of ["pancakes", "servings", "4", "mix", "bake"]) contains(shown, part);
  same_json(await last(".changes .op").allInnerTexts(), ["snapshot", "add", "add"], "changes");
  same_json(await last(".changes .path").allInnerTexts(), ["/servings", "/steps"], "paths");
});
script("reasoning", async () => {
  const card = last(".reasoning-card");
  same(await card.evaluate((e) => e.open), false, "it is open");
  check(/^Thought for/.test(await card.locator(".fold-title").innerText()), "the title");
  await open_card(card);
  contains(await card.innerText(), "17 is prime, because 2, 3 and 4 do not divide it.");
  same(await answer(), "17 is a prime number.", "the answer");
});
script("interrupt", async () => {
  contains(await text(".request"), "old.txt");
  await last(".approve").click();
  await until(async () => (await turns().count()) === 2, "the decision is sent");
  await settled();
  contains(await answer(), "You said yes.");
  contains(await text(".user-text"), "Approved delete_file");
});
script("usage", async () => {
  contains(await text(".usage"), "12 in / 9 out tokens");
  contains(await text(".usage"), "demo-1");
});
script("subagent", async () => {
  const card = last(".subagent-card");
  contains(await card.innerText(), "researcher");
  contains(await card.innerText(), "The researcher has answered");
  same(await card.locator(".markdown").count(), 0, "answers in the card");
  same(await answer(), "The researcher says that all is well.", "the answer");
});

test("every script of the demo agent has a test", on_page(async ({ server }) => {
  await open(server);
  await ask("help");
  const names = await last(".markdown li").evaluateAll((list) => list.map((li) => li.querySelector("code").textContent));
  same_json(names.filter((n) => !scripts.has(n)), [], "scripts without a test");
  same_json([...scripts].filter((n) => !names.includes(n)), [], "tests of scripts that do not exist");
}));

script_test("status", ": what the agent does is shown apart from its answer [R004-07] [R004-08]", async () => {
  const activities = await watch_activity();
  await ask("status");
  const seen = await activities();
  for (const step of ["Looking things up", "Thinking"]) {
    check(seen.includes(step), `it was not shown while it happened: ${step}: ${seen.join(", ")}`);
    check(!(await answer()).includes(step), `${step} is in the answer`);
  }
  same(await text(".progress-card .fold-title"), "5 status updates", "the list of steps");
  same(await last(".activity").isVisible(), false, "the activity is there at the end");
});

script_test("slow", ": a task that works without a message has a generic indicator, which is not part of the answer [R004-06]", async () => {
  const activities = await watch_activity();
  await ask("slow 3");
  const shown = await answer(), seen = await activities();
  check(seen.includes("Working") && seen.includes("Answering"), `indicators: ${seen.join(", ")}`);
  check(!/Working|Answering/.test(shown), shown);
});

script_test("listen", ": messages reach the agent while it works, and everything is shown once", async () => {
  await say("listen");
  await page.locator(".activity:visible", { hasText: "Listening" }).waitFor();
  await say("hello");
  await page.locator(".markdown", { hasText: "hello" }).first().waitFor();
  await ask("done");
  await until(async () => (await answer()).includes("I heard 2 messages."), "the answer");
  const count = async () => {
    const all = await page.locator("#log").innerText();
    same(times_in(all, "I heard 2 messages."), 1, "how often the answer is there");
    same((await page.locator(".markdown").allInnerTexts()).filter((t) => t.trim() === "hello").length, 1, "how often the message is repeated");
  };
  await count();
  await page.reload();
  await until(async () => (await page.locator("#log").innerText()).includes("I heard 2 messages."), "the answer after a reload");
  await settled();
  await count();
});

script_test("files", ": files are attached by button, drop and paste, and come back", async () => {
  await page.locator("#composer-files").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("one") }]);
  await page.locator("#composer .chip", { hasText: "notes.txt" }).waitFor();
  const give = (kind, name) => page.evaluate(([event, file]) => {
    const data = new DataTransfer();
    data.items.add(new File(["two"], file, { type: "text/csv" }));
    const target = document.querySelector(event === "paste" ? "#composer-text" : "#view");
    target.dispatchEvent(event === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [kind, name]);
  await give("drop", "dropped.csv");
  await give("paste", "pasted.csv");
  await until(async () => (await page.locator("#composer .chip").count()) === 3, "all files are attached");
  await ask("files");
  contains(await answer(), "Files that came with your message: 3.");
  same_json(await last(".user .chip-name").allInnerTexts(), ["notes.txt", "dropped.csv", "pasted.csv"], "files of the message");
  same_json((await last(".file-name").allInnerTexts()), ["notes.txt", "dropped.csv", "pasted.csv"], "files of the answer");
});

test("files: a message waits for those that are being read; as much as is allowed reaches the agent, and more is refused", on_page(async ({ server }) => {
  await open(server);
  await page.evaluate(() => {
    const read = FileReader.prototype.readAsDataURL;
    FileReader.prototype.readAsDataURL = function (file) { setTimeout(() => (file.name === "broken" ? this.onerror() : read.call(this, file)), 500); };
  });
  const attach = (...sizes) => page.locator("#composer-files").setInputFiles(sizes.map(([name, size]) => ({ name, mimeType: "text/csv", buffer: Buffer.alloc(size, 65) })));
  const error = page.locator("#composer .error");
  await attach(["broken", 1], ["most.csv", 5_999_990], ["more.csv", 11]);
  await say("echo with a file");
  await page.locator(".user .chip-name").waitFor();
  await settled();
  same_json(await last(".user .chip-name").allInnerTexts(), ["most.csv"], "files of the message");
  contains(await answer(), "with a file");
  same(await page.locator("#composer .chip").count(), 0, "files that are left");
  same(await error.innerText(), "more.csv was not attached: at most 16 files of 6 MB together.", "the error");
  await attach(["broken", 1]);
  await until(async () => (await error.innerText()) === "broken was not attached: the browser cannot read it.", "the error");
}));

test("what is written or sent before the list of agents is here is not lost", on_page(async ({ server }) => {
  let release;
  const held = new Promise((done) => (release = done));
  await page.route("**/ai-catalog.json", async (r) => { await held; await r.continue(); });
  await page.goto(`${server.url}/agents/demo/`);
  await say("echo one");
  await page.fill("#composer-text", "echo two");
  release();
  await page.locator(".markdown", { hasText: "one" }).waitFor();
  await settled();
  same(await page.inputValue("#composer-text"), "echo two", "what was not sent");
  same_json(await page.locator(".user-text").allInnerTexts(), ["echo one"], "messages");
}));

test("files are shown inline if they are images or audio, a PDF after a click; everything else is a download", on_page(async ({ server }) => {
  const wav = Buffer.concat([Buffer.from("RIFF"), Buffer.from([44, 0, 0, 0]), Buffer.from("WAVEfmt "), Buffer.from([16, 0, 0, 0, 1, 0, 1, 0, 64, 31, 0, 0, 64, 31, 0, 0, 1, 0, 8, 0]), Buffer.from("data"), Buffer.from([8, 0, 0, 0]), Buffer.alloc(8, 128)]);
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
  await open(server);
  await page.locator("#composer-files").setInputFiles([
    { name: "dot.png", mimeType: "image/png", buffer: png }, { name: "tone.wav", mimeType: "audio/wav", buffer: wav },
    { name: "page.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>") },
    { name: "page.html", mimeType: "text/html", buffer: Buffer.from("<b>html</b>") }, { name: "false.pdf", mimeType: "application/pdf", buffer: Buffer.from("<b>html</b>") },
  ]);
  await page.locator("#composer .chip", { hasText: "false.pdf" }).waitFor();
  await ask("files");
  const shown = async () => {
    same(await last(".file-part iframe").count(), 0, "documents before the click");
    await last(".file-part", { hasText: "page.pdf" }).getByRole("button", { name: "Show the PDF" }).click();
    const kinds = await last(".file-part").evaluateAll((list) => list.map((e) => `${e.querySelector("a[download]").download} ${e.querySelector("img, audio, video, iframe")?.localName ?? "none"}`));
    same_json(kinds, ["dot.png img", "tone.wav audio", "page.pdf iframe", "page.html none", "false.pdf none"], "previews");
    await until(() => last(".file-part audio").evaluate((a) => a.duration > 0), "the sound is read");
    await until(() => last(".file-part img").evaluate((i) => i.complete && i.naturalWidth === 1), "the picture is shown");
  };
  await shown();
  await page.reload();
  await last(".file-part").first().waitFor();
  await settled();
  await shown();
}));

// ---- the tools of the page ---------------------------------------------------------------------------------------------

const TOOLS = [
  { name: "get_weather", description: "The weather <b>at</b> a place", parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
    returns: { type: "object", properties: { sky: { enum: ["sunny", "rain"] }, celsius: { type: "number", title: "Degrees" }, windy: { type: "boolean" } }, required: ["sky", "celsius"] } },
  { name: "get_time", description: "The time", parameters: { type: "object", properties: { zone: { type: "string" } } }, returns: { type: "string" } },
  { name: "look_up" },
];
const SENT = [{ ...TOOLS[0], returns: undefined }, { ...TOOLS[1], returns: undefined }, { name: "look_up", description: "", parameters: { type: "object", properties: {} } }];
const offered = () => page.getAttribute("#tools", "aria-label");
async function offer(text) {
  await page.click("#tools");
  await page.fill("#tools-text", typeof text === "string" ? text : JSON.stringify(text, null, 2));
  await page.click("#tools-save");
}
// The inputs of the runs that the page sends.
function watch_runs() {
  const inputs = [];
  page.on("request", (r) => { if (r.method() === "POST" && r.url().endsWith("/ag-ui") && !r.headers()["last-event-id"]) inputs.push(r.postDataJSON()); });
  return inputs;
}
const form_in = (card) => card.locator("form.tool-result:visible");

for (const [where, context] of [["", {}], [", phone, dark", { ...PHONE, colorScheme: "dark" }]]) {
  test(`a tool of the page: it is offered with every message, and its call has a form of its schema, after a reload, too${where}`, on_page(async ({ server }) => {
    const inputs = watch_runs();
    await open(server, "model");
    same(await offered(), "Tools of this page: none offered", "the button");
    await ask("echo hello");
    same(inputs.at(-1).tools, undefined, "tools of a page without tools");
    await offer(TOOLS);
    await page.locator(".tools-dialog").waitFor({ state: "detached" });
    same(await offered(), "Tools of this page: 3 offered", "the button");
    same(await page.locator(".tools-count:visible").innerText(), "3", "the count");
    const pending = async () => {
      const card = last(".tool-card.is-pending");
      await form_in(card).waitFor();
      contains(await card.innerText(), "Oakland");
      same(await card.locator(".tool-description").innerText(), "The weather <b>at</b> a place", "the description");
      same_json(await card.locator("form label").allInnerTexts(), ["sky (required)", "Degrees (required)", "windy"], "fields");
      return card;
    };
    await ask('call get_weather {"location": "Oakland"}');
    same_json(inputs.at(-1).tools, SENT, "tools of the run");
    await pending();
    await page.reload();
    await until(async () => (await turns().count()) === 2, "both turns after a reload");
    await settled();
    same(await offered(), "Tools of this page: 3 offered", "the button after a reload");
    const card = await pending();
    await card.locator("select").selectOption({ label: "rain" });
    await card.getByRole("button", { name: "Send the result" }).press("Enter");
    same(await card.locator("[role=alert]").innerText(), "Degrees is missing", "the error");
    await card.getByLabel("Degrees").fill("12.5");
    await card.getByLabel("windy").check();
    same(await is_sideways(), false, "it scrolls sideways");
    await card.getByRole("button", { name: "Send the result" }).press("Enter");
    await until(async () => (await turns().count()) === 3, "the result is sent");
    await settled();
    same_json(JSON.parse(inputs.at(-1).messages[0].content), { sky: "rain", celsius: 12.5, windy: true }, "the result");
    same_json(inputs.at(-1).tools, SENT, "tools of the run with the result");
    contains(await answer(), "The result of get_weather is");
    contains(await answer(), "12.5");
    await ask("call look_up");
    contains(await last(".tool-card.is-pending").innerText(), "text or JSON");
    await form_in(last(".tool-card")).locator("textarea").fill("found it");
    await form_in(last(".tool-card")).locator("button.primary").click();
    await until(async () => (await turns().count()) === 5, "the result is sent");
    contains(await answer(), "The result of look_up is: found it");
  }), { context });

  test(`parallel calls of tools of the page: each has a form of its own, and the results are sent together${where}`, on_page(async ({ server }) => {
    const inputs = watch_runs();
    await open(server, "model");
    await offer(TOOLS);
    await ask('call get_weather {"location": "Oakland"} call get_time {"zone": "UTC"}');
    const cards = last(".tool-card.is-pending");
    await until(async () => (await form_in(cards).count()) === 2, "two forms");
    await form_in(cards.nth(1)).getByLabel("Result", { exact: true }).fill("12:00");
    await form_in(cards.nth(1)).locator("button.primary").click();
    same(await cards.nth(1).locator(".status-chip").innerText(), "waits for the others", "status of the first result");
    await page.reload();
    await until(async () => (await form_in(cards).count()) === 2, "two forms after a reload");
    await settled();
    await form_in(cards.nth(1)).getByLabel("Result", { exact: true }).fill("12:01");
    await form_in(cards.nth(1)).locator("button.primary").click();
    await form_in(cards.nth(0)).getByLabel("Degrees").fill("20");
    await form_in(cards.nth(0)).locator("button.primary").click();
    await until(async () => (await turns().count()) === 2, "the results are sent");
    await settled();
    same_json(inputs.at(-1).messages.map((m) => m.content), ['{"sky":"sunny","celsius":20,"windy":false}', "12:01"], "results, in the order of the calls");
    contains(await answer(), "12:01");
    contains(await turns().first().locator(".tool-card").first().innerText(), "sunny");
    same(await page.locator("form.tool-result:visible").count(), 0, "forms at the end");
  }), { context });
}

test("the tools of the page are checked: each error says what is wrong, and nothing is stored", on_page(async ({ server }) => {
  await open(server, "model");
  await page.focus("#tools");
  await page.keyboard.press("Enter");
  same(await page.evaluate(() => document.activeElement.id), "tools-text", "focus in the dialog");
  const error = page.locator("#tools-error");
  const refused = async (tools, want) => {
    await page.fill("#tools-text", typeof tools === "string" ? tools : JSON.stringify(tools));
    await page.click("#tools-save");
    same(await error.innerText(), want, "the error");
    same(await page.getAttribute("#tools-text", "aria-invalid"), "true", "aria-invalid");
  };
  const deep = (n) => Array.from({ length: n }).reduce((s) => ({ items: s }), {});
  await refused('[\n  {"name": "a",}\n]', "Invalid JSON at line 2, column 16: expected a name in double quotes, got }.");
  await refused('[{"name": "a"', "Invalid JSON at line 1, column 14: expected a comma or }, got the end of the text.");
  await refused(`[\u202e]`, "Invalid JSON at line 1, column 2: expected a value or ], got \u27e8U+202E\u27e9.");
  await refused({ name: "a" }, "Expected an array of tools, got an object.");
  await refused([{ name: "a" }, "b"], "Tool 2: expected an object, got a string.");
  await refused([{ description: "a" }], "Tool 1: the name is missing.");
  await refused([{ name: "<b>x</b>" }], 'Tool 1: invalid name "<b>x</b>". Allowed are 1 to 64 letters (A-Z, a-z), digits, _ and -.');
  await refused([{ name: "x".repeat(65) }], `Tool 1: invalid name "${"x".repeat(65)}". Allowed are 1 to 64 letters (A-Z, a-z), digits, _ and -.`);
  await refused([{ name: "a" }, { name: "b" }, { name: "a" }], 'Tool 3: duplicate name "a": tool 1 has it, too.');
  await refused([{ name: "a", result: {} }], 'Tool 1: unknown member "result". Allowed members: name, description, parameters, returns.');
  await refused([{ name: "a", description: 1 }], "Tool 1: expected a text as description, got a number.");
  await refused([{ name: "a", parameters: [] }], "Tool 1: expected a JSON Schema (an object) as parameters, got an array.");
  await refused([{ name: "a", returns: deep(64) }], "Tool 1: returns is nested deeper than 64 levels.");
  await refused(`[{"name": "a", "returns": {"x": ${"[".repeat(20000)}${"]".repeat(20000)}}}]`, "Tool 1: returns is nested deeper than 64 levels.");
  await refused(Array.from({ length: 33 }, (_, i) => ({ name: `t${i}` })), "There are 33 tools. At most 32 are allowed.");
  await refused([{ name: "a", description: "é".repeat(33000) }], "The tools have 65 KiB. At most 64 KiB are allowed.");
  same(await page.evaluate(() => Object.keys(localStorage).filter((k) => k.startsWith("dragoman:tools")).length), 0, "what is stored");
  await page.click("#tools-example"); // it corrects nothing that the user has written
  contains(await error.innerText(), "At most 64 KiB");
  await page.fill("#tools-text", JSON.stringify([{ name: "mine", returns: deep(63) }, ...Array.from({ length: 30 }, (_, i) => ({ name: `t${i}` }))]));
  await page.click("#tools-example");
  await page.click("#tools-example"); // once
  same(await error.isVisible(), false, "an error for tools that are allowed");
  await page.click("#tools-save");
  await page.locator(".tools-dialog").waitFor({ state: "detached" });
  same(await offered(), "Tools of this page: 32 offered", "the button");
  same(await page.evaluate(() => document.activeElement.id), "tools", "focus after the dialog");
}));

test("tools belong to one agent, are shown in other tabs, and are removed with their text", on_page(async ({ server, context }) => {
  await open(server, "model");
  const tab = await context.newPage();
  await open(server, "model", tab);
  await page.click("#tools");
  await page.click("#tools-example");
  contains(await page.inputValue("#tools-text"), '"get_weather"');
  await page.click("#tools-save");
  same(await offered(), "Tools of this page: 1 offered", "the button");
  await tab.locator('#tools[aria-label="Tools of this page: 1 offered"]').waitFor();
  await page.click('#agents a[data-agent="demo"]');
  await page.locator(".welcome h2", { hasText: "Demo" }).waitFor();
  same(await offered(), "Tools of this page: none offered", "the button at another agent");
  await page.click('#agents a[data-agent="model"]');
  await page.locator(".welcome h2", { hasText: "Model" }).waitFor();
  same(await offered(), "Tools of this page: 1 offered", "the button at the first agent");
  await page.click("#tools");
  await page.fill("#tools-text", "[]");
  await page.keyboard.press("Escape");
  same(await offered(), "Tools of this page: 1 offered", "the button after Escape");
  await offer("");
  same(await offered(), "Tools of this page: none offered", "the button without tools");
  await tab.locator('#tools[aria-label="Tools of this page: none offered"]').waitFor();
  await tab.close();
}));

test("without storage in the browser tools are offered until the page is closed", on_page(async ({ server }) => {
  await page.addInitScript(() => { Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); }; });
  const inputs = watch_runs();
  await open(server, "model");
  await offer(TOOLS.slice(0, 1));
  same(await offered(), "Tools of this page: 1 offered", "the button");
  await ask("call get_weather");
  same(inputs.at(-1).tools.length, 1, "tools of the run");
  await last('.tool-card.is-pending select').waitFor();
}));

test("a run that is tried again has the tools that are offered then", on_page(async ({ server }) => {
  await open(server, "model");
  await offer(TOOLS);
  const inputs = watch_runs();
  let is_refused = true;
  await page.route("**/ag-ui", (route) => (is_refused ? route.fulfill({ status: 400, contentType: "application/json", body: '{"error": {"message": "not now"}}' }) : route.continue()));
  await say("echo hello");
  await last(".retry").waitFor();
  await offer("");
  is_refused = false;
  await last(".retry").click();
  await until(async () => (await answer()) === "hello", "the answer");
  same_json(inputs.map((i) => i.tools?.length ?? 0), [3, 0], "tools of the runs");
}), { allowed: /status of 400/ });

// ---- document 004 ----------------------------------------------------------------------------------------------------

for (const [words, want, progress] of [["faulty", "Hello! How can I assist you today? 😊", true], ["four events", "Hello world!", false], ["four events after progress", "Hello world!", true]])
  test(`document 004, ${words}: the answer is there once, without the progress [R004-05] [R004-10] [R004-12]`, on_page(async ({ server }) => {
    await open(server, "document4");
    await ask(words);
    const shown = async () => {
      same(await answer(), want, "the answer");
      same(await last(".markdown").count(), 1, "texts");
      same(await last(".progress-card").count(), progress ? 1 : 0, "lists of progress");
    };
    await shown();
    await page.reload();
    await last(".markdown").waitFor();
    await settled();
    await shown();
  }));

test("hello: a Message is the answer, and stays after a reload [R004-22] [R004-23]", on_page(async ({ server }) => {
  await open(server, "hello");
  await ask("Ann");
  const before = await answer();
  contains(before.toLowerCase(), "hello");
  same((await a2a(server.url, `/agents/hello/tasks?contextId=${context_of()}`)).tasks.length, 0, "tasks");
  await page.reload();
  await last(".markdown").waitFor();
  same(await answer(), before, "the answer after a reload");
  same(await turns().count(), 1, "turns after a reload");
}));

// ---- remembering -------------------------------------------------------------------------------------------------------

test("a reload, a link, Back and a second tab show the same conversation", on_page(async ({ server, context }) => {
  await open(server);
  await ask("help");
  await ask("parallel-tools");
  await ask("reasoning");
  const shown = (p) => p.locator("#log").innerText().then((t) => t.replace(/\d+ m?s|\d\.\d s/g, "T"));
  const whole = await shown(page), address = page.url();
  await page.reload();
  await until(async () => (await turns().count()) === 3, "all turns after a reload");
  await settled();
  await until(async () => (await shown(page)) === whole, "the same after a reload").catch(async (e) => { throw new Error(`${e.message}: ${await shown(page)} and not ${whole}`); });
  await page.click("#fresh");
  await page.locator(".welcome").waitFor();
  same(await turns().count(), 0, "turns of a new conversation");
  await page.goBack();
  await until(async () => (await turns().count()) === 3, "all turns after Back");
  const tab = await context.newPage();
  await tab.goto(address);
  await until(async () => (await turns(tab).count()) === 3, "all turns in a second tab");
  await settled(tab);
  await until(async () => (await shown(tab)) === whole, "the same in a second tab");
  await say("echo from the second tab", tab);
  await page.locator(".markdown", { hasText: "from the second tab" }).waitFor();
  await tab.close();
}));

test("a running task is followed again after a reload, by a second tab, and after other agents were shown", on_page(async ({ server, context }) => {
  await open(server);
  await say("slow 20"); // long enough to be at work until two pages have loaded
  await last(".markdown", { hasText: "2..." }).waitFor();
  const address = page.url();
  await page.click('#agents a[data-agent="hello"]');
  await page.locator(".welcome h2", { hasText: "Hello" }).waitFor();
  await ask("Ann");
  await page.click('#agents a[data-agent="demo"]');
  await page.locator(`a[data-context="${new URL(address).searchParams.get("c")}"]`).click();
  await page.locator("#stop").waitFor();
  const tab = await context.newPage();
  await tab.goto(address);
  await tab.locator("#stop").waitFor();
  await page.reload();
  for (const p of [page, tab]) {
    await p.locator(".markdown", { hasText: "20. Done." }).waitFor();
    same((await p.locator(".markdown").allInnerTexts()).join("").replace(/\s/g, ""), `${Array.from({ length: 19 }, (_, i) => `${i + 1}...`).join("")}20.Done.`, "the answer");
    same(await turns(p).count(), 1, "turns");
  }
  await page.click('#agents a[data-agent="hello"]');
  await page.locator("#conversations .conversation").first().click();
  await until(async () => (await turns().count()) === 1, "the other agent's conversation");
}));

test("what was written and attached, and not sent, is still there after another agent or view was shown", on_page(async ({ server }) => {
  await open(server);
  await ask("echo one");
  const address = page.url();
  await page.fill("#composer-text", "a draft");
  await page.locator("#composer-files").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("one") }]);
  await page.locator("#composer .chip").waitFor();
  await page.click('#agents a[data-agent="hello"]');
  await page.locator(".welcome h2", { hasText: "Hello" }).waitFor();
  same(await page.inputValue("#composer-text"), "", "the text for the other agent");
  same(await page.locator("#composer .chip").count(), 0, "files for the other agent");
  await page.fill("#composer-text", "another draft");
  await page.click('.side-links a[href="/compare"]');
  await page.locator("#composer-text").waitFor({ state: "detached" });
  await page.goBack();
  await page.locator(".welcome h2", { hasText: "Hello" }).waitFor();
  same(await page.inputValue("#composer-text"), "another draft", "the text after another view");
  await page.goBack();
  await page.locator(".user-text", { hasText: "echo one" }).waitFor();
  same(page.url(), address, "the address");
  same(await page.inputValue("#composer-text"), "a draft", "the text after another agent");
  same_json(await page.locator("#composer .chip-name").allInnerTexts(), ["notes.txt"], "files after another agent");
  await page.press("#composer-text", "Enter");
  await settled();
  await page.click('#agents a[data-agent="hello"]');
  await page.goBack();
  await page.locator(".user-text", { hasText: "a draft" }).waitFor();
  same(await page.inputValue("#composer-text"), "", "the text after it was sent");
}));

test("conversations of other clients are shown: messages, tools, files; a running one is followed", on_page(async ({ server }) => {
  const send = async (words) => {
    const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: { messageId: `m-${words}`, contextId: "from-afar", role: "ROLE_USER", parts: [{ text: words }] }, configuration: { returnImmediately: words.startsWith("slow") } } };
    await fetch(`${server.url}/`, { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" }, body: JSON.stringify(body) }).then((r) => r.text());
  };
  for (const words of ["tools", "file", "slow 6"]) await send(words);
  await open(server);
  await page.locator('a[data-context="from-afar"]').click();
  await until(async () => (await turns().count()) === 3, "three turns");
  same_json(await page.locator(".user-text").allInnerTexts(), ["tools", "file", "slow 6"], "messages of the user");
  await page.locator(".markdown", { hasText: "6. Done." }).waitFor();
  await settled();
  contains(await turns().nth(0).innerText(), "get_weather");
  same(await turns().nth(1).locator(".file-name").count(), 3, "files");
  same(times_in((await turns().nth(2).locator(".markdown").allInnerTexts()).join(""), "Done"), 1, "ends");
  await ask("echo go on");
  contains(await answer(), "go on");
}));

test("the list of conversations has states and previews, and finds words", on_page(async ({ server }) => {
  await open(server);
  await ask("ask");
  await page.locator("#conversations .conversation", { hasText: "Waits for you" }).first().waitFor();
  await page.click("#fresh");
  await page.locator(".welcome").waitFor();
  await ask("echo apples");
  const mine = page.locator(`a[data-context="${context_of()}"]`);
  await mine.filter({ hasText: "Done" }).waitFor();
  contains(await mine.innerText(), "echo apples");
  same(await mine.getAttribute("aria-current"), "page", "the mark of the conversation that is shown");
  same(await page.locator("#conversations [aria-current]").count(), 1, "marked conversations");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("apples");
  same(await page.locator("#conversations .conversation").count(), 1, "conversations with the word");
  await page.fill("#search", "nothing has these words");
  same(await page.locator("#conversations .conversation").count(), 0, "conversations without the word");
}));

test("state changes of a later turn build on the state before, also after a reload", on_page(async ({ server }) => {
  await open(server);
  await ask("state");
  await ask("state");
  await page.reload();
  await until(async () => (await page.locator(".state-now").count()) === 2, "both states");
  await settled();
  contains(await text(".state-now"), "pancakes");
}));

test("an agent that remembers: a conversation goes on after a reload, and a new one starts without it", on_page(async ({ server }) => {
  await open(server, "memory");
  await ask("My name is Ann");
  contains(await answer(), "Hello Ann.");
  await page.reload();
  await last(".markdown").waitFor();
  await ask("What is my name?");
  contains(await answer(), "Your name is Ann.");
  await page.click("#fresh");
  await page.locator(".welcome").waitFor();
  await ask("What is my name?");
  contains(await answer(), "I do not know your name.");
}));

test("edit and resend: the answer is replaced, and stays replaced", on_page(async ({ server }) => {
  await open(server, "memory");
  await ask("My name is Ann");
  await ask("My name is Bob");
  await last(".user-row").hover();
  await last("button[aria-label^='Edit']").click();
  same(await page.inputValue("#composer-text"), "My name is Bob", "the text to edit");
  await ask("What is my name?");
  same_json(await page.locator(".user-text").allInnerTexts(), ["My name is Ann", "What is my name?"], "messages");
  contains(await answer(), "Your name is Ann.");
  await page.reload();
  await until(async () => (await turns().count()) === 2, "both turns");
  await settled();
  same_json(await page.locator(".user-text").allInnerTexts(), ["My name is Ann", "What is my name?"], "messages after a reload");
}));

test("the first message is edited: another conversation starts, and the one before is still there", on_page(async ({ server }) => {
  await open(server);
  await ask("echo apples");
  const before = context_of();
  await last(".user-row").hover();
  await last("button[aria-label^='Edit']").click();
  await ask("echo pears");
  check(context_of() !== before, "the conversation is the same");
  same_json(await page.locator(".user-text").allInnerTexts(), ["echo pears"], "messages");
  await page.locator(`a[data-context="${before}"]`).click();
  await page.locator(".user-text", { hasText: "apples" }).waitFor();
  await settled();
  same_json(await page.locator(".user-text").allInnerTexts(), ["echo apples"], "messages of the conversation before");
  contains(await answer(), "apples");
}));

test("a message is edited while the agent works: its task is canceled before the new message is sent", on_page(async ({ server }) => {
  await open(server);
  await ask("echo before");
  await say("listen");
  await page.locator(".activity:visible", { hasText: "Listening" }).waitFor();
  await last(".user-row").hover();
  await last("button[aria-label^='Edit']").click();
  await ask("echo changed");
  contains(await answer(), "changed");
  const { tasks } = await a2a(server.url, `/tasks?contextId=${context_of()}`);
  same_json(tasks.map((t) => t.status.state).sort(), ["TASK_STATE_CANCELED", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"], "states of the tasks");
}));

// ---- connections, servers, tokens --------------------------------------------------------------------------------------

test("a connection that drops is opened again where it was", on_page(async ({ server }) => {
  const wire = await wire_to(server.url);
  try {
    await open({ url: wire.url });
    await say("slow 8");
    await last(".markdown", { hasText: "2..." }).waitFor();
    wire.cut();
    await page.locator(".markdown", { hasText: "8. Done." }).waitFor();
    await settled();
    same((await answer()).replace(/\s/g, ""), "1...2...3...4...5...6...7...8.Done.", "the answer");
  } finally {
    wire.close();
  }
}), { allowed: /ERR_|Failed to load/ });

test("kill -9 in the middle of an answer, and a restart: nothing twice, nothing of the task lost", on_page(async () => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-browser-")), port = await free_port();
  const args = ["--store", `sqlite:${join(folder, "t.db")}`, "-c", join(HERE, "agents.yaml"), "--listen", `127.0.0.1:${port}`];
  let server = await start(...args);
  try {
    await open(server);
    await ask("help");
    await ask("echo before");
    await say("slow 100");
    await last(".markdown", { hasText: "3..." }).waitFor();
    server.child.removeAllListeners("exit");
    const gone = new Promise((done) => server.child.on("exit", done));
    server.child.kill("SIGKILL");
    await gone;
    await page.locator(".activity:visible", { hasText: "Connection lost" }).waitFor();
    server = await start(...args);
    await last(".failure").waitFor();
    const shown = async () => {
      const words = (await answer()).replace(/\s/g, ""), context = context_of();
      const { tasks } = await a2a(server.url, `/tasks?contextId=${context}&includeArtifacts=true`);
      const task = tasks.find((t) => t.status.state === "TASK_STATE_FAILED");
      same(words, task.artifacts[0].parts.map((p) => p.text).join("").replace(/\s/g, ""), "the answer, and the task's text");
      check(words.startsWith("1...2...3..."), words);
      same(await last(".failure").count(), 1, "failures");
      same(await turns().count(), 3, "turns");
    };
    await shown();
    await page.reload();
    await last(".failure").waitFor();
    await shown();
    contains(await turns().first().innerText(), "this list, as a Message");
  } finally {
    await end(server);
    rmSync(folder, { recursive: true });
  }
}), { allowed: /ERR_|Failed to load/ });

// A server that starts a Message and never ends it.
function start_half_message(target) {
  const port = Number(new URL(target).port);
  let runs = 0;
  const s = createServer((a) => {
    let head = "";
    const b = connect(port, "127.0.0.1");
    b.on("error", () => a.destroy());
    a.on("error", () => b.destroy());
    b.pipe(a);
    a.on("data", (d) => {
      head += d.toString("latin1");
      if (/^POST \S*\/ag-ui /m.test(d.toString("latin1"))) {
        const events = [{ type: "RUN_STARTED", threadId: "t", runId: "r" }, { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Half of a" }];
        runs++;
        b.unpipe(a);
        a.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n${events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join("")}`);
        setTimeout(() => a.destroy(), 200);
      } else b.write(d);
    });
    a.on("close", () => b.destroy());
  });
  return new Promise((done) => s.listen(0, "127.0.0.1", () => done({ url: `http://127.0.0.1:${s.address().port}`, close: () => s.close(), runs: () => runs })));
}

test("a Message that was cut off is marked, before and after a reload, and can be tried again", on_page(async ({ server }) => {
  const half = await start_half_message(server.url);
  try {
    await open(half, "hello");
    await ask("Ann");
    same(await answer(), "Half of a", "what was there");
    same(await text(".failure .outcome"), "Cut off", "the mark");
    await page.reload();
    await last(".failure.cut-off").waitFor();
    same(await answer(), "Half of a", "what was there, after a reload");
    const before = half.runs();
    await last(".retry").click();
    await until(async () => half.runs() > before, "the message is sent again");
    await settled();
    same(await turns().count(), 1, "turns after Retry");
    same(await answer(), "Half of a", "the answer of the second try");
  } finally {
    half.close();
  }
}), { allowed: /ERR_|Failed to load/ });

// The agent "gate" is silent until the file exists that the message names.
async function with_gate(run) {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-browser-")), gate = join(folder, "gate");
  try { await run(gate, () => writeFileSync(gate, "")); } finally { rmSync(folder, { recursive: true }); }
}

test("the page is closed before the answer has started: the message is marked, and Retry sends it again", on_page(({ server }) => with_gate(async (gate, open_gate) => {
  await open(server, "gate");
  await say(gate);
  await page.locator(".activity:visible", { hasText: "Waiting" }).waitFor();
  await page.reload();
  same(await text(".failure .outcome"), "Cut off", "the mark");
  open_gate();
  await last(".retry").click();
  await settled();
  same(await answer(), "open", "the answer of the second try");
  same(await turns().count(), 1, "turns after Retry");
})), { allowed: /400|ERR_/ });

test("the time of a turn includes the wait for an agent that is silent at first, also after a reload", on_page(({ server }) => with_gate(async (gate, open_gate) => {
  await open(server, "gate");
  await say(gate);
  await pause(2500);
  open_gate();
  await settled();
  const shown = await text(".time");
  check(parseFloat(shown) >= 2.5 && shown.endsWith(" s"), `the time is ${shown}`);
  await page.reload();
  await last(".time").waitFor();
  same(await text(".time"), shown, "the time after a reload");
})));

test("an approval that the server refused is sent again by Retry", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("delete old.txt");
  let refused = 0;
  await page.route("**/ag-ui", (r) => (refused++ ? r.continue() : r.fulfill({ status: 400, body: "{}" })));
  await last(".approve").click();
  await last(".retry").click();
  await until(async () => (await page.locator("#log").innerText()).includes("deleted old.txt"), "the approval is sent again");
  same(await turns().count(), 2, "turns");
}), { allowed: /400/ });

test("with tokens: the page asks for one, refuses a wrong one, sends the refused message again, and keeps it for the tab", on_page(async ({ context }) => {
  const closed = await start("--store", "memory:", "-c", join(HERE, "tokens.yaml"));
  try {
    await page.goto(`${closed.url}/`);
    await page.locator("#token-dialog[open]").waitFor();
    await page.fill("#token", "wrong");
    await page.keyboard.press("Enter");
    await page.locator("#token-error:visible").waitFor();
    same(await page.evaluate(() => document.activeElement.id), "token", "focus");
    await page.fill("#token", "browser-secret");
    await page.keyboard.press("Enter");
    await page.locator("#token-dialog[open]").waitFor({ state: "detached" });
    await ask("echo with a token");
    contains(await answer(), "with a token");
    await page.evaluate(() => sessionStorage.setItem("dragoman-token", "outdated"));
    await page.reload();
    await page.locator("#token-dialog[open]").waitFor();
    await page.fill("#token", "browser-secret");
    await page.keyboard.press("Enter");
    await last(".markdown", { hasText: "with a token" }).waitFor();
    await page.reload();
    await last(".markdown", { hasText: "with a token" }).waitFor();
    same(await page.locator("#token-dialog[open]").count(), 0, "questions for the token that is known");
    check(!(await page.evaluate(() => JSON.stringify(localStorage))).includes("browser-secret"), "the token is stored beyond the tab");
    const tab = await context.newPage(); // a message is refused, and sent again
    await tab.route("**/.well-known/**", (r) => r.continue());
    await tab.goto(page.url().replace(/\?.*/, ""));
    await tab.locator("#token-dialog[open]").waitFor();
    await tab.fill("#token", "browser-secret");
    await tab.keyboard.press("Enter");
    await tab.locator("#token-dialog[open]").waitFor({ state: "detached" });
    let refused = 0;
    await tab.route("**/ag-ui", (r) => (refused++ ? r.continue() : r.fulfill({ status: 401, body: "{}" })));
    await say("echo sent again", tab);
    await tab.locator("#token-dialog[open]").waitFor();
    await tab.fill("#token", "browser-secret");
    await tab.keyboard.press("Enter");
    await tab.locator(".markdown", { hasText: "sent again" }).waitFor();
    same(await turns(tab).count(), 1, "turns");
    await tab.close();
  } finally {
    await end(closed);
  }
}), { allowed: /401|ERR_/ });

test("an unknown agent's address shows the page with the list of agents", on_page(async ({ server }) => {
  await page.goto(`${server.url}/agents/nope/`);
  await page.locator(".welcome", { hasText: "nope" }).waitFor();
  check((await page.locator(".agent-choices a").count()) >= 2, "no list of agents");
  await page.locator(".agent-choices a").first().click();
  await page.locator("#examples").waitFor();
}), { allowed: /404/ });

test("an error of the server is shown, with what was written", on_page(async ({ server }) => {
  await open(server);
  await page.route("**/ag-ui", (r) => r.fulfill({ status: 400, contentType: "application/json", body: JSON.stringify({ error: { code: 400, message: "too much of something", pointer: "/messages/0" } }) }));
  await ask("hello");
  contains(await text(".failure"), "too much of something (/messages/0)");
  same(await text(".user-text"), "hello", "the message");
}), { allowed: /400/ });

// ---- asking the user ------------------------------------------------------------------------------------------------------

test("several approvals: each has its buttons, all decisions are sent together", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("delete a b");
  same(await last(".request").count(), 2, "requests");
  await last(".approve").nth(0).click();
  same(await turns().count(), 1, "turns before all are decided");
  await last(".reject").nth(1).click();
  await until(async () => (await turns().count()) === 2, "the decisions are sent");
  await settled();
  same(await answer(), "deleted a; kept b", "the answer");
}));

test("a request for approval has its buttons after a reload, and a typed answer closes them", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("delete old.txt");
  await page.reload();
  await page.locator(".approve:enabled").waitFor();
  await ask("no");
  same(await answer(), "kept old.txt", "the answer");
  same(await page.locator(".questions button:enabled").count(), 0, "open buttons");
}));

test("a question with a schema is a form: a missing value is an error, the answer has the schema's types", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("fill in");
  const field = last(".answer-form input[type=number]");
  await last(".answer-form button.primary").click();
  contains(await last(".answer-form .error").innerText(), "n is missing");
  same(await turns().count(), 1, "turns before the answer");
  await field.fill("3");
  await page.keyboard.press("Enter");
  await until(async () => (await turns().count()) === 2, "the answer is sent");
  await settled();
  same(await answer(), 'You answered: {"n": 3}', "the answer");
}));

test("the arguments of a call are edited before it is approved", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("delete old.txt");
  await last(".edit-arguments").click();
  const editor = last(".question textarea");
  await editor.fill('{"path": ');
  await last(".approve").click();
  contains(await last(".question .error").innerText(), "not JSON");
  await editor.fill('{"path": "new.txt"}');
  await last(".approve").click();
  await until(async () => (await turns().count()) === 2, "the decision is sent");
  await settled();
  same(await answer(), "deleted new.txt", "the answer");
}));

test("choices are buttons, and an address to sign in is a link", on_page(async ({ server }) => {
  await open(server, "asks");
  await ask("choose");
  await last(".choice").nth(1).click();
  await until(async () => (await turns().count()) === 2, "the choice is sent");
  await settled();
  same(await answer(), "You answered: blue", "the answer");
  await ask("sign in");
  same(await last(".questions a").getAttribute("href"), "https://login.example/start", "address");
  await last(".done").click();
  await until(async () => (await turns().count()) === 4, "the answer is sent");
  await settled();
  same(await answer(), "You answered: done", "the answer");
}));

// ---- control -----------------------------------------------------------------------------------------------------------

for (const [how, press] of [["the button", () => page.click("#stop")], ["Escape", () => page.keyboard.press("Escape")]])
  test(`stop ends it, by ${how}`, on_page(async ({ server }) => {
    await open(server);
    await say("slow 600");
    await last(".markdown").waitFor();
    await press();
    await settled();
    contains(await last(".turn-body").innerText(), "Canceled");
    const { tasks } = await a2a(server.url, `/tasks?contextId=${context_of()}`);
    same(tasks[0].status.state, "TASK_STATE_CANCELED", "state of the task");
  }));

test("everything by keyboard: an example, ArrowUp, Shift+Enter, a new conversation; the focus stays in the box", on_page(async ({ server }) => {
  await open(server);
  const focus = () => page.evaluate(() => document.activeElement.id);
  await page.focus(".example");
  await page.keyboard.press("Enter");
  await until(async () => (await turns().count()) === 1, "the example is sent");
  await settled();
  await page.keyboard.press("/");
  same(await focus(), "composer-text", "focus after /");
  await page.keyboard.type("first");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("second");
  await page.keyboard.press("Enter");
  await settled();
  same(await focus(), "composer-text", "focus after an answer");
  same(await last(".user-text").innerText(), "first\nsecond", "both lines");
  await page.keyboard.press("ArrowUp");
  same(await page.inputValue("#composer-text"), "first\nsecond", "the last text");
  await page.keyboard.press("ArrowUp");
  same(await page.inputValue("#composer-text"), "help", "the text before");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  same(await page.inputValue("#composer-text"), "", "after the last text");
  await page.focus("#fresh");
  await page.keyboard.press("Enter");
  await page.locator(".welcome").waitFor();
}));

test("keys that another part of the page uses: Escape in the search does not stop the run, / in the inspector stays there", on_page(async ({ server }) => {
  await open(server);
  await say("slow 600");
  await last(".markdown").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await last(".markdown", { hasText: "3..." }).waitFor();
  same(await page.locator("#stop").isVisible(), true, "the run goes on");
  await page.click("#stop");
  await settled();
  await last(".inspect-turn").click();
  await page.locator("#drawer .grid .row").first().waitFor();
  await page.focus("#drawer .grid");
  await page.keyboard.press("/");
  same(await page.evaluate(() => document.activeElement.type), "search", "the box that has the focus");
}));

test("the answer can be copied as it was written", on_page(async ({ server, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(server);
  await ask("help");
  await last(".turn-foot button[aria-label^='Copy']").click();
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())).includes("- `help`: this list"), "the text is in the clipboard");
}));

test("without https there is no clipboard API: answers, code and addresses are copied all the same", on_page(async ({ server }) => {
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.addEventListener("copy", () => { window.copied = document.activeElement.value; });
  });
  await open(server);
  await ask("echo\n```python\nx = 1\n```");
  const copied = async (button, part) => {
    await button.click();
    await until(async () => (await page.evaluate(() => window.copied))?.includes(part), `it is copied: ${part}`);
  };
  await copied(last(".md-copy"), "x = 1\n");
  await last(".md-copy", { hasText: "Copied" }).waitFor();
  await copied(last(".turn-foot button[aria-label^='Copy']"), "```python\nx = 1\n```");
  await page.click("#about");
  await copied(page.locator(".addresses button").first(), `${server.url}/agents/demo/`);
}));

test("a live region says one sentence at the end of an answer", on_page(async ({ server }) => {
  await open(server);
  await page.evaluate(() => {
    window.announced = [];
    new MutationObserver(() => { const t = document.querySelector("#announcer").textContent; if (t) window.announced.push(t); }).observe(document.querySelector("#announcer"), { childList: true, characterData: true, subtree: true });
  });
  await ask("stream");
  const sentences = await until(async () => { const list = await page.evaluate(() => window.announced); return list.length && list; }, "an announcement");
  same(sentences.length, 1, `announcements: ${sentences}`);
  check(sentences[0].startsWith("Demo answered: An A2A task"), sentences[0]);
}));

test("with reduced motion nothing moves while an answer is awaited", on_page(async ({ server }) => {
  await open(server);
  await say("slow 600");
  await last(".activity:visible").waitFor();
  const moving = () => page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running" && (a.effect.getComputedTiming().endTime > 10)).map((a) => `${a.animationName ?? a.transitionProperty}`));
  for (let i = 0; i < 20; i++, await pause(50)) same_json(await moving(), [], "animations");
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await until(async () => (await moving()).length > 0, "the spinner turns without the setting");
  await page.click("#stop");
  await settled();
}), { context: { reducedMotion: "reduce" } });

test("the reader who scrolls up is left there, and can go back to the end", on_page(async ({ server }) => {
  await open(server);
  await ask("long 200");
  await say("slow 6");
  await last(".markdown").waitFor();
  const at = () => page.locator("#log").evaluate((e) => e.scrollTop);
  const from_end = () => page.locator("#log").evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight);
  await until(async () => (await from_end()) < 100, "the end is shown");
  await page.locator("#log").hover();
  await page.mouse.wheel(0, -3000);
  await page.locator(".jump:visible").waitFor();
  let before = -1;
  await until(async () => { const now = await at(), is_still = now === before; before = now; return is_still; }, "it has scrolled");
  await settled();
  check(Math.abs((await at()) - before) < 200, "it scrolled away from the reader");
  await page.click(".jump");
  await until(async () => (await from_end()) < 100, "the end is shown again");
}));

test("the inspector of a turn opens in a drawer and closes again", on_page(async ({ server }) => {
  await open(server);
  await ask("tools");
  await last(".inspect-turn").click();
  await page.locator("#drawer:visible .drawer-body > *").first().waitFor();
  await page.locator("#drawer", { hasText: "TOOL_CALL" }).or(page.locator("#drawer", { hasText: "tool" })).first().waitFor();
  await page.click("#drawer .view-header .icon-button");
  await page.locator("#drawer").waitFor({ state: "hidden" });
  same(await page.evaluate(() => document.activeElement.className), "inspect-turn", "focus");
}));

test("the agent's card and its addresses are shown", on_page(async ({ server }) => {
  await open(server);
  await page.click("#about");
  const card = page.locator(".card-dialog[open]");
  await card.waitFor();
  contains(await card.innerText(), `${server.url}/agents/demo/v1`);
  contains(await card.innerText(), "JSONRPC 1.0");
  await page.keyboard.press("Escape");
  await card.waitFor({ state: "detached" });
}));

test("nothing the agent says becomes part of the page", on_page(async ({ server }) => {
  await open(server);
  await ask('echo <img src=x onerror="document.title=1"><b>bold</b> [x](javascript:alert(1))');
  contains(await answer(), "<b>bold</b>");
  same(await page.locator(".agent img, .agent b, .agent a[href^='javascript']").count(), 0, "elements");
}));

test("on a phone everything is there: the conversation, the panel with the agents, no sideways scrolling", on_page(async ({ server }) => {
  await open(server);
  await ask("parallel-tools");
  await ask("data");
  for (const what of ["#composer-text", "#send", "#attach", ".view-header .icon-button"]) {
    const box = await page.locator(what).first().boundingBox();
    check(box && box.height > 10 && box.x >= 0 && box.x + box.width <= 390, `${what}: ${JSON.stringify(box)}`);
  }
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
  same(await page.locator(".composer-hint").isVisible(), false, "hints for keyboards");
  await page.locator(".view-header .icon-button").first().click();
  await page.locator('#agents a[data-agent="hello"]').click();
  await page.locator(".welcome h2", { hasText: "Hello" }).waitFor();
  await until(async () => !(await page.locator("#side").isVisible()), "the panel closes");
}), { context: PHONE });

// ---- modules, other agents -----------------------------------------------------------------------------------------------

test("every operation of a JSON Patch changes the state", async () => {
  const before = { a: [1, 2], "x/y~": { b: 1 } };
  const apply = (...patch) => patched(before, patch);
  same_json([
    apply({ op: "add", path: "/a/0", value: 0 }).a, apply({ op: "add", path: "/a/-", value: 3 }).a,
    apply({ op: "replace", path: "/a/1", value: 9 }).a, apply({ op: "remove", path: "/a/0" }).a,
    apply({ op: "copy", from: "/a/0", path: "/a/-" }).a, apply({ op: "move", from: "/a/0", path: "/c" }),
    apply({ op: "replace", path: "/x~1y~0/b", value: 2 })["x/y~"], apply({ op: "test", path: "/a/0", value: 1 }),
    apply({ op: "replace", path: "", value: 5 }), apply({ op: "add", path: "/no/where", value: 1 }),
    apply({ op: "add", path: "/__proto__/polluted", value: 1 }), {}.polluted ?? "clean", before,
  ], [[0, 1, 2], [1, 2, 3], [1, 9], [2], [1, 2, 1], { a: [2], "x/y~": { b: 1 }, c: 1 }, { b: 2 },
    { a: [1, 2], "x/y~": { b: 1 } }, 5, null, null, "clean", { a: [1, 2], "x/y~": { b: 1 } }], "results");
});

test("the position of an error in JSON is found, for every text that JSON.parse refuses", async () => {
  const good = ['{"a": [1, -2.5e+3, true, false, null, "x\\u00e9\\n\\""], "b": {}, "c": []}', " 1\n", '""', "[[[]]]", "[".repeat(30000) + "]".repeat(30000)];
  for (const text of good) same(json_error(text), null, text.slice(0, 50));
  const bad = [["", 0], ["  ", 2], ["[1, 2", 5], ["[1,]", 3], ["[1 2]", 3], ["{a: 1}", 1], ["{'a': 1}", 1], ['{"a" 1}', 5], ['{"a": }', 6], ['{"a": 1,}', 8], ["[01]", 2], ["[1.]", 2], ["tru", 0], ["[1}", 2], ["1 1", 2],
    ['["a\nb"]', 1], ['["\\x"]', 1], ['"', 0], ["[+1]", 1], ["\ufeff1", 0], ["[NaN]", 1], ["}", 0], [",", 0], ["\u00a01", 0]];
  for (const [text, offset] of bad) {
    let is_json = true;
    try { JSON.parse(text); } catch { is_json = false; }
    same(is_json, false, `JSON.parse accepts ${text}`);
    same(json_error(text)?.offset, offset, `the position in ${JSON.stringify(text)}`);
  }
  // a valid text with one character changed, added or removed
  const valid = good[0];
  for (let i = 0; i < valid.length; i++) for (const c of ["", "x", '"', ",", "}", "]", "[", "{", ":", "0", "\\", "\n"]) for (const n of [0, 1]) {
    const text = valid.slice(0, i) + c + valid.slice(i + n);
    let is_json = true;
    try { JSON.parse(text); } catch { is_json = false; }
    same(json_error(text) === null, is_json, `whether it is JSON: ${text}`);
  }
});

const SERVICES = resolve(ROOT, "tests/interop/services");
// The agent of tests/interop/services, whose tools change a list of items that is its state.
async function start_board() {
  const port = await free_port(), folder = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
  const child = spawn(join(SERVICES, ".venv-services/bin/python"), [join(SERVICES, "pydantic_agent_service.py"), String(port)], { stdio: ["ignore", "ignore", "inherit"] });
  let ended = "";
  child.on("error", (e) => (ended = e.message));
  child.on("exit", (code) => (ended ||= `exit status ${code}`));
  for (const end_at = Date.now() + PATIENCE; !(await listens(port)); await pause(100))
    check(!ended && Date.now() < end_at, `the service does not listen (scripts/setup test installs it): ${ended}`);
  const file = join(folder, "dragoman.yaml");
  writeFileSync(file, JSON.stringify({ agents: [{ id: "board", type: "http", default: true, card: { name: "Board" }, settings: { url: `http://127.0.0.1:${port}/ag-ui`, format: "ag-ui" } }] }));
  const front = await start("--store", "memory:", "-c", file);
  return { url: front.url, end: async () => {
    const status = await end(front);
    child.kill("SIGTERM");
    rmSync(folder, { recursive: true });
    check(status === 0, `the server ended with ${status}: ${front.log}`);
  } };
}

test("an AG-UI agent of pydantic-ai: text, a failure, tools and state, before and after a reload", on_page(async () => {
  const board = await start_board();
  try {
    await open(board, "board");
    await ask("hello");
    same(await answer(), "You said hello in turn 1", "answer");
    const steps = [
      ["add milk", "add_item", "1 items", ["milk"]],
      ["add bread", "add_item", "2 items", ["milk", "bread"]], // a snapshot; the agent got the state before
      ["replace tea", "replace_item", "tea is the last item", ["milk", "tea"]], // a delta
    ];
    const shown = async (tool, result, items) => {
      same(await answer(), `The tool ${tool} says: ${result}`, "answer");
      same_json(await last(".tool-card .fold-title").allInnerTexts(), [tool], "tools");
      contains(await text(".tool-card"), result);
      const state = await text(".state-now");
      for (const item of items) contains(state, item);
    };
    for (const [words, tool, result, items] of steps) {
      await ask(words);
      await shown(tool, result, items);
    }
    await page.reload();
    await until(async () => (await turns().count()) === 4, "all turns after a reload");
    await settled();
    await until(async () => (await page.locator(".state-now").count()) === 3, "the states");
    await shown(...steps.at(-1).slice(1));
    check(!(await text(".state-now")).includes("bread"), "an item that was replaced is there after a reload");
    await ask("fail");
    contains(await text(".failure"), "out of order");
  } finally {
    await board.end();
  }
}), { allowed: /ERR_/ });

// Servers of a test's own, whose page is closed before they end.
async function with_server(args, run) {
  const own = await start("--store", "memory:", ...args);
  try {
    await run(own);
    await page.goto("about:blank");
  } finally {
    await end(own);
  }
}

test("a language model with tools: a call with its result, an approval, a question, a call of another agent", on_page(() => with_server(["-c", join(ROOT, "examples/llm/dragoman.yaml")], async (own) => {
  await open(own, "assistant");
  await ask("call now {}");
  await open_card(last(".tool-card"));
  contains(await text(".tool-card"), "UTC");
  contains(await answer(), "The result of now is");
  await ask('call remove {"file": "old.txt"}');
  contains(await text(".request"), "old.txt");
  await last(".approve").click();
  await until(async () => (await turns().count()) === 3, "the decision is sent");
  await settled();
  contains(await page.locator("#log").innerText(), "Approved remove");
  await ask("ask What is your name?");
  contains(await text(".turn-body"), "What is your name?");
  await ask("Ann");
  contains(await answer(), "Ann");
  await ask("think about it");
  await open_card(last(".reasoning-card"));
  contains(await last(".turn-body").innerText(), "about it");
})));

test("a graph of LangGraph: its answer, an interrupt, files and data, before and after a reload", on_page(() => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-browser-")), file = join(folder, "dragoman.yaml");
  const python = join(ROOT, "tests/interop/langgraph/.venv-langgraph/bin/python");
  writeFileSync(file, JSON.stringify({ agents: [{ id: "travel", type: "langgraph", default: true, card: { name: "Travel" }, settings: {
    path: join(ROOT, "examples/langgraph/agent.py:graph"), command: [python, "-m", "dragoman.worker"], env: { PYTHONPATH: join(ROOT, "python") } } }] }));
  return with_server(["-c", file], async (own) => {
    await open(own, "travel");
    await ask("When to go?");
    contains(await answer(), "The best month for Lisbon is May.");
    await ask("book it");
    contains(await text(".turn-body"), "Book the flight to Lisbon for 120 EUR?");
    await ask("yes");
    const shown = async () => {
      contains(await answer(), "Your flight is booked.");
      contains(await last(".turn-body").innerText(), "LX 100");
      contains(await last(".turn-body").innerText(), "example.com");
      same(await turns().count(), 3, "turns");
    };
    await shown();
    await page.reload();
    await until(async () => (await turns().count()) === 3, "all turns after a reload");
    await settled();
    await until(async () => (await answer()).includes("Your flight is booked."), "the answer after a reload");
    await shown();
  }).finally(() => rmSync(folder, { recursive: true }));
}));

await run_tests(tests, { args: ["--store", "memory:", "-c", join(HERE, "agents.yaml")] });
